"""One power law above a floor: loss against size, data or compute alone."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chinchilla_lab.checks import InfeasibleError, positive
from chinchilla_lab.fitting.refusals import NoPowerLawError, TooFewRunsError
from chinchilla_lab.fitting.solver import Problem, minimise, objective
from chinchilla_lab.tables import html_table

__all__ = ["PowerCurve", "fit_curve"]

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class PowerCurve:
    r"""A loss that falls to a floor as a power of one quantity.

    .. math:: L(x) = E + s\, x^{-p}

    Parameters
    ----------
    E : float
        Floor, [nats/token]
    scale : float
        The factor s; its unit follows from p, [-]
    exponent : float
        The power p, [-]

    Examples
    --------
    >>> curve = PowerCurve(E=1.6, scale=95.18, exponent=0.0897)
    >>> f"{curve.factor_between(2.25, 2.24):.3f}"
    '1.189'
    """

    E: float
    scale: float
    exponent: float

    def __post_init__(self) -> None:
        positive("scale", self.scale)
        positive("exponent", self.exponent)

    def loss(self, x: ArrayLike) -> Array:
        """Loss on the curve.

        Parameters
        ----------
        x : array_like
            Size, data or compute, whichever the curve was fitted on, [any]

        Returns
        -------
        numpy.ndarray or float
            Loss, [nats/token]
        """
        return self.E + self.scale * positive("x", x) ** -self.exponent

    def factor_between(self, L_from: ArrayLike, L_to: ArrayLike) -> Array:
        r"""How many times the quantity must grow for a loss to fall.

        .. math:: \frac{x_2}{x_1} = \left(\frac{L_1 - E}{L_2 - E}\right)^{1/p}

        Parameters
        ----------
        L_from : array_like
            Loss before, [nats/token]
        L_to : array_like
            Loss after, [nats/token]

        Returns
        -------
        numpy.ndarray or float
            The factor: a speedup if the second loss was reached at equal compute, [-]

        Raises
        ------
        InfeasibleError
            If a loss lies at or below the floor.

        Notes
        -----
        It does not depend on the budget nor on the scale of the curve, so only E and
        the exponent can make it wrong.
        """
        before, after = positive("L_from", L_from), positive("L_to", L_to)
        least = min(float(before.min()), float(after.min()))
        if least <= self.E:
            raise InfeasibleError(
                f"loss {least:g} lies at or below the floor E={self.E:g}; no amount of "
                "x reaches it on this curve"
            )
        return np.asarray(((before - self.E) / (after - self.E)) ** (1 / self.exponent))

    def _repr_html_(self) -> str:
        row = (f"{self.E:.4g}", f"{self.scale:.4g}", f"{self.exponent:.4g}")
        return html_table(("E [nats/token]", "scale", "exponent"), [row])


def fit_curve(x: ArrayLike, L: ArrayLike, *, delta: float = 1e-3) -> PowerCurve:
    """Fit a floor and one power law to losses along a line of runs.

    Parameters
    ----------
    x : array_like
        Size, data or compute of the runs, shape (n,), [any]
    L : array_like
        Their losses, shape (n,), [nats/token]
    delta : float, optional
        Width of Huber's loss in log loss, [-]

    Returns
    -------
    PowerCurve
        The curve, [-]

    Raises
    ------
    ValueError
        If lengths differ or a number is not finite and positive.
    TooFewRunsError
        If there are fewer than four runs.

    Notes
    -----
    It is what runs at one ratio of tokens to parameters do tell, where alpha and beta
    are not identifiable.

    Examples
    --------
    >>> curve = fit_curve([1e8, 3e8, 1e9, 3e9], [3.9811, 3.5286, 3.1585, 2.8784])
    >>> bool(1.0 < curve.E < 2.5)
    True
    """
    size, loss = positive("x", x).ravel(), positive("L", L).ravel()
    if len(size) != len(loss):
        raise ValueError(f"L has {len(loss)} rows where x has {len(size)}")
    if len(np.unique(size)) < 4:
        raise TooFewRunsError(
            f"{len(np.unique(size))} distinct x cannot tell a floor from a power law; "
            "give at least 4"
        )
    centre = float(np.log(size).mean())
    free = np.zeros((6, 3))
    free[[0, 2, 3], [0, 1, 2]] = 1.0
    problem = Problem(
        x=np.log(size) - centre,
        y=np.zeros(len(size)),
        log_loss=np.log(loss),
        free=free,
        delta=float(positive("delta", delta)),
    )
    powers = np.linspace(0.03, 1.0, 25)
    floors = np.array([0.05, 0.3, 0.6, 0.9]) * loss.min()
    p, E = (g.ravel() for g in np.meshgrid(powers, floors))
    level = np.log(np.exp(np.log(loss).mean()) - E)
    starts = np.zeros((len(p), 6))
    # the second power term is absent: its logarithm is minus infinity
    starts[:, 0], starts[:, 1], starts[:, 2], starts[:, 3] = (
        level,
        -np.inf,
        np.log(E),
        p,
    )
    ones = np.ones(len(size))
    best = np.argsort(objective(problem, starts, ones))[:6]
    found = minimise(problem, starts[best], ones)
    a, _, e, alpha, _, _ = found.theta[int(np.argmin(found.objective))]
    if not alpha > 1e-3:
        raise NoPowerLawError(
            f"the losses do not fall with x as a power (exponent {alpha:.2g}); look at "
            "the runs, or give a wider range of x"
        )
    return PowerCurve(
        E=float(np.exp(e)),
        scale=float(np.exp(a + alpha * centre)),
        exponent=float(alpha),
    )
