"""How well the optimum is known: the scatter of the runs behind a law."""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chinchilla_lab.allocation.solving import needs_loss, optimum
from chinchilla_lab.checks import fraction, positive
from chinchilla_lab.laws.families import DirectLaw, Law
from chinchilla_lab.sources import read_rows
from chinchilla_lab.tables import html_table
from chinchilla_lab.units import FLOP_PER_ND, text

__all__ = ["Interval", "default_interval", "interval"]

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Interval:
    """Interval of a law's optimum over resamples of its runs.

    Parameters
    ----------
    C : numpy.ndarray or float
        Training compute, [FLOP]
    level : float
        Coverage, [-]
    N : tuple of numpy.ndarray or float
        Lower and upper optimal size, [parameter]
    D : tuple of numpy.ndarray or float
        Lower and upper optimal data, [token]
    L : tuple of numpy.ndarray or float, optional
        Lower and upper loss at the optimum, [nats/token]
    """

    C: Array
    level: float
    N: tuple[Array, Array]
    D: tuple[Array, Array]
    L: tuple[Array, Array] | None = None

    @property
    def tokens_per_param(self) -> tuple[Array, Array]:
        """Lower and upper ratio at the optimum, [token/parameter]."""
        return self.D[0] / self.N[1], self.D[1] / self.N[0]

    def _repr_html_(self) -> str:
        ends = (*self.N, *self.D, *self.tokens_per_param)
        losses = [""] * np.size(self.C)
        if self.L is not None:
            pairs = zip(*map(np.ravel, self.L), strict=True)
            losses = [f"{low:.4f} to {high:.4f}" for low, high in pairs]
        rows = [
            [
                text(c, "FLOP"),
                f"{text(n0, 'parameter')} to {text(n1, 'parameter')}",
                f"{text(d0, 'token')} to {text(d1, 'token')}",
                f"{text(r0, '')} to {text(r1, '')}",
                *([loss] if loss else []),
            ]
            for c, n0, n1, d0, d1, r0, r1, loss in zip(
                *map(np.ravel, np.broadcast_arrays(self.C, *ends)), losses, strict=True
            )
        ]
        head = ["C", "N [parameter]", "D [token]", "D/N [token/parameter]"]
        head += ["L [nats/token]"] if self.L is not None else []
        return html_table(head, rows, f"{self.level:.0%} of resamples")


def interval(law: Law, C: ArrayLike, level: float = 0.9) -> Interval:
    """Return the interval of the optimum over a fitted law's resamples.

    Parameters
    ----------
    law : Law
        A law with resamples, as a fit returns it, [-]
    C : array_like
        Training compute, [FLOP]
    level : float, optional
        Coverage, [-]

    Returns
    -------
    Interval
        Ends of N [parameter], D [token], their ratio and, for laws that know one, the
        loss [nats/token]; same shape as ``C``

    Raises
    ------
    ValueError
        If the law carries no resamples.

    Warns
    -----
    ExtrapolationWarning
        If the budget or its optimum leaves the range of the runs.

    Notes
    -----
    Percentiles over the resamples: the scatter of the runs, not the doubt whether the
    law has the right form.
    """
    if law.resampled is None:
        raise ValueError(
            f"{law.label} carries no resamples; fit it to runs with "
            "fitting.fit_parametric(runs, resamples=1000), or use default_interval for "
            "the law besiroglu-2024"
        )
    c = positive("C", C)
    tail = 50.0 * (1.0 - float(fraction("level", level)))
    many = law.resampled
    each = c[..., None]
    if isinstance(many, DirectLaw):
        N, D = many.optimum(each)
        losses = None
    else:
        with_loss = needs_loss(many, "interval")
        N, D = optimum(with_loss, each)
        losses = with_loss._loss(N, D)

    middle = np.median(N, axis=-1)
    law.warn_outside(N=middle, D=c / (FLOP_PER_ND * middle), C=c)

    def ends(x: Array) -> tuple[Array, Array]:
        low, high = np.percentile(x, [tail, 100.0 - tail], axis=-1)
        return low[()], high[()]

    return Interval(
        C=c[()],
        level=float(level),
        N=ends(N),
        D=ends(D),
        L=None if losses is None else ends(losses),
    )


@cache
def _bootstrap() -> dict[str, Array]:
    rows = read_rows("besiroglu2024_bootstrap.csv")
    return {name: np.array([float(row[name]) for row in rows]) for name in rows[0]}


def default_interval(C: ArrayLike, level: float = 0.9) -> Interval:
    """Bootstrap interval of the optimum behind the default law.

    Parameters
    ----------
    C : array_like
        Training compute, 1e17 to 1e27, [FLOP]
    level : {0.8, 0.9, 0.95}, optional
        Coverage, [-]

    Returns
    -------
    Interval
        Lower and upper N [parameter] and D [token], same shape as ``C``

    Raises
    ------
    ValueError
        If ``C`` leaves the table or the level is not in it.

    Notes
    -----
    Four thousand resamples of the 240 digitised runs, each refitted with Huber 1e-3
    (seed 0; ``python -m chinchilla_lab.replications --write`` makes the table). It
    holds the scatter of the runs, not the doubt whether the law is right.

    References
    ----------
    :cite:`besiroglu2024chinchilla`, data; resampled and refitted here

    Examples
    --------
    >>> low, high = default_interval(1e22).N
    >>> f"{low:.2e} {high:.2e}"
    '7.58e+09 1.14e+10'
    """
    c = positive("C", C)
    share = float(fraction("level", level))
    tails = {
        0.8: ("N_p10", "N_p90"),
        0.9: ("N_p5", "N_p95"),
        0.95: ("N_p2.5", "N_p97.5"),
    }
    if share not in tails:
        raise ValueError(f"level={level} is not tabulated; choose 0.8, 0.9 or 0.95")
    table = _bootstrap()
    grid = table["C_flop"]
    if c.min() < grid[0] * (1 - 1e-9) or c.max() > grid[-1] * (1 + 1e-9):
        asked = f"{text(float(c.min()), 'FLOP')} to {text(float(c.max()), 'FLOP')}"
        limits = f"{text(grid[0], 'FLOP')} to {text(grid[-1], 'FLOP')}"
        raise ValueError(f"C={asked} leaves the table of resamples, {limits}")
    low, high = (
        np.exp(np.interp(np.log(c), np.log(grid), np.log(table[name])))
        for name in tails[share]
    )
    nd = c / FLOP_PER_ND
    return Interval(
        C=c[()], level=share, N=(low[()], high[()]), D=((nd / high)[()], (nd / low)[()])
    )
