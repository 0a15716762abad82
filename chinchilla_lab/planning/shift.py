"""How far a machine moves the best size: from a slope, or from measured speeds."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chinchilla_lab.allocation.optimum import optimal_for_loss, optimal_for_params
from chinchilla_lab.allocation.solving import additive, needs_loss
from chinchilla_lab.allocation.targets import tokens_for_loss
from chinchilla_lab.checks import InfeasibleError, positive
from chinchilla_lab.laws.families import LossLaw
from chinchilla_lab.planning.losses import silent
from chinchilla_lab.tables import html_table
from chinchilla_lab.units import FLOP_PER_ND, text

__all__ = ["Shift", "measured_shift", "mfu_slope", "shift"]

Array = NDArray[np.float64]
POINTS = 20_001


@dataclass(frozen=True, kw_only=True)
class Shift:
    """Best size of a machine whose utilisation depends on the size.

    Parameters
    ----------
    size_factor : numpy.ndarray or float
        Size that reaches a loss soonest over the compute-optimal one, [-]
    gain : numpy.ndarray or float
        Time of the compute-optimal size over that of the best, less one, [-]
    loss : float, optional
        Loss that both reach; None where a slope was given, which holds at any, [nats]
    naive_N : float, optional
        Compute-optimal size for it, [parameter]
    naive_seconds : float, optional
        Its time; None without a peak, [s]
    """

    size_factor: Array | float
    gain: Array | float
    loss: float | None = None
    naive_N: float | None = None
    naive_seconds: float | None = None

    @property
    def best_N(self) -> float | None:
        """Size that reaches the loss soonest, [parameter]; None for a slope."""
        return None if self.naive_N is None else float(self.naive_N * self.size_factor)

    @property
    def best_seconds(self) -> float | None:
        """Its time, [s]; None where that of the compute-optimal size is not known."""
        naive = self.naive_seconds
        return None if naive is None else float(naive / (1.0 + self.gain))

    def _repr_html_(self) -> str:
        head = ["best size over compute-optimal [-]", "time gained"]
        cells = [
            [f"{k:.3f}", f"{g:.2%}"]
            for k, g in zip(
                np.ravel(self.size_factor), np.ravel(self.gain), strict=True
            )
        ]
        if self.loss is None or self.naive_N is None or self.best_N is None:
            return html_table(head, cells)
        cells[0] += [text(self.naive_N, "parameter"), text(self.best_N, "parameter")]
        head += ["compute-optimal N [parameter]", "best N [parameter]"]
        if self.naive_seconds is not None and self.best_seconds is not None:
            cells[0] += [text(self.naive_seconds, "s"), text(self.best_seconds, "s")]
            head += ["time of the first", "time of the second"]
        return html_table(head, cells, f"loss {self.loss:.4f} nats/token")


def shift(law: LossLaw, slope: ArrayLike) -> Shift:
    r"""Return how far a utilisation that grows with size moves the best size.

    .. math:: \ln k = \frac{\varepsilon}{\alpha + \beta}, \qquad
       \ln(1 + \text{gain}) = \frac{\varepsilon^2}{2 (\alpha + \beta)}

    Parameters
    ----------
    law : LossLaw
        Law of the additive form, [-]
    slope : array_like
        d ln(utilisation) / d ln N, as of :func:`mfu_slope`, [-]

    Returns
    -------
    Shift
        Factor k of the size and relative time gained, [-]

    Raises
    ------
    TypeError
        If the law has no additive form.

    Notes
    -----
    Time to a loss is N D(N) / u(N). Near the optimum ln(N D) is a parabola in ln N of
    curvature alpha + beta, and the slope tilts it: the valley is flat, so the size
    moves by little and gains less. The true valley is flatter on the side of large
    sizes: at a slope of 0.22 the best size is 1.45 times and the gain 3.9 %.

    References
    ----------
    :cite:`besiroglu2024chinchilla` for the exponents

    Examples
    --------
    >>> from chinchilla_lab.laws.published import BESIROGLU_2024
    >>> found = shift(BESIROGLU_2024, 0.22)
    >>> f"{found.size_factor:.2f}, {found.gain:.1%}"
    '1.36, 3.4%'
    """
    form = additive(law)
    if form is None:
        raise TypeError(
            f"{law.label} has no additive form, whose exponents this needs; use a law "
            "such as besiroglu-2024"
        )
    e = np.asarray(slope, dtype=np.float64)
    stiff = form.alpha + form.beta
    return Shift(
        size_factor=np.exp(e / stiff)[()], gain=np.expm1(e**2 / (2.0 * stiff))[()]
    )


def mfu_slope(N: ArrayLike, mfu: ArrayLike) -> float:
    r"""Slope of utilisation against size, from the first model to the last.

    .. math:: \varepsilon = \frac{\ln(\text{mfu}_2/\text{mfu}_1)}{\ln(N_2/N_1)}

    Parameters
    ----------
    N : array_like
        Two sizes or more, [parameter]
    mfu : array_like
        Their utilisations, [-]

    Returns
    -------
    float
        The slope, [-]

    Raises
    ------
    ValueError
        If fewer than two are given, or not one utilisation for each size.

    Examples
    --------
    >>> f"{mfu_slope((32e9, 1024e9), (0.7147, 0.648)):.3f}"
    '-0.028'
    """
    sizes, shares = _curve(N, mfu)
    return float(np.log(shares[-1] / shares[0]) / np.log(sizes[-1] / sizes[0]))


def _curve(N: ArrayLike, mfu: ArrayLike) -> tuple[Array, Array]:
    """Check sizes and their utilisations."""
    sizes, shares = positive("N", N).ravel(), positive("mfu", mfu).ravel()
    if len(sizes) < 2 or len(sizes) != len(shares):
        raise ValueError(
            f"N has {len(sizes)} and mfu {len(shares)} entries; give two or more sizes "
            "and one utilisation for each"
        )
    if len(set(sizes.tolist())) < len(sizes):
        raise ValueError("N holds a size twice; give one utilisation for each size")
    return sizes, shares


def measured_shift(
    law: LossLaw,
    N: ArrayLike,
    mfu: ArrayLike,
    peak_flops: float | None = None,
    naive_N: float | None = None,
    loss: float | None = None,
) -> Shift:
    r"""Find the size that reaches a loss soonest, from measured utilisations.

    .. math:: \min_N \frac{6 N D(N, L)}{P\,\text{mfu}(N)}

    Parameters
    ----------
    law : LossLaw
        A law with a loss, [-]
    N : array_like
        Sizes that were measured, [parameter]
    mfu : array_like
        Their utilisations, 6ND over the peak, [-]
    peak_flops : float, optional
        Dense peak P of the whole machine; without it no times are known, [FLOP/s]
    naive_N : float, optional
        Size whose compute-optimal loss is to be reached, [parameter]
    loss : float, optional
        The loss itself, [nats/token]

    Returns
    -------
    Shift
        Factor of the size and time gained [-], both sizes and times [parameter, s]

    Raises
    ------
    ValueError
        If fewer than two sizes are given, or not one of ``naive_N`` and ``loss``.
    InfeasibleError
        If no size between the ends reaches the loss.

    Notes
    -----
    ln MFU is interpolated linearly in ln N; outside the measured sizes nothing is
    claimed, so the best size is one between them. A compute-optimal size outside of
    them is given the utilisation of the nearest.

    Examples
    --------
    >>> from chinchilla_lab.laws import BESIROGLU_2024
    >>> flat = measured_shift(BESIROGLU_2024, [1e9, 1e11], [0.4, 0.4], 1e17, 1e10)
    >>> f"{flat.size_factor:.3f}"
    '1.000'
    """
    sizes, shares = _curve(N, mfu)
    if (naive_N is None) == (loss is None):
        raise ValueError("give naive_N or loss, one of them")
    rate = 1.0 if peak_flops is None else float(positive("peak_flops", peak_flops))
    quiet = silent(needs_loss(law, "time to a loss"))
    plan = (
        optimal_for_params(quiet, float(naive_N))
        if naive_N is not None
        else optimal_for_loss(quiet, float(positive("loss", loss or 0.0)))
    )
    assert plan.L is not None  # the law has a loss
    target, first = float(plan.L), float(plan.N)
    order = np.argsort(sizes)
    x, y = np.log(sizes[order]), np.log(shares[order])

    def seconds(ln_n: Array) -> Array:
        n = np.exp(ln_n)
        D = tokens_for_loss(quiet, n, target, infeasible="nan")
        return FLOP_PER_ND * n * D / (rate * np.exp(np.interp(ln_n, x, y)))

    grid = np.linspace(x[0], x[-1], POINTS)
    times = seconds(grid)
    if not np.any(np.isfinite(times)):
        raise InfeasibleError(
            f"loss={target:.6g} is out of reach of every size from {np.exp(x[0]):.3g} "
            f"to {np.exp(x[-1]):.3g}; aim higher"
        )
    naive = float(seconds(np.asarray(np.log(first))))
    i = int(np.nanargmin(times))
    soonest, best = min((float(times[i]), float(np.exp(grid[i]))), (naive, first))
    return Shift(
        size_factor=best / first, gain=naive / soonest - 1.0, loss=target,
        naive_N=first, naive_seconds=None if peak_flops is None else naive,
    )  # fmt: skip
