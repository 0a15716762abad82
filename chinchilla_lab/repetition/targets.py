"""What a loss costs on few unique tokens: tokens, compute, and the least data."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chinchilla_lab.allocation.solving import bisect
from chinchilla_lab.checks import (
    InfeasibleError,
    non_negative,
    positive,
)
from chinchilla_lab.laws.families import AdditiveLaw, RepeatedDataLaw
from chinchilla_lab.repetition.results import DataPlan, needs_discount, slope
from chinchilla_lab.units import text

__all__ = [
    "least_unique",
    "optimal_for_loss",
    "tokens_for_loss",
]

Array = NDArray[np.float64]


def _sized(law: RepeatedDataLaw, excess: Array, effective: Array, u: Array) -> Array:
    """Return N that reaches an excess loss with effective tokens; infinite if none."""
    base = law.base
    with np.errstate(invalid="ignore", divide="ignore"):
        room = excess - base.B * effective**-base.beta
        wanted = np.where(room > 0.0, room, np.nan)
        size = (base.A / wanted) ** (1.0 / base.alpha)
        useful = law._useful(u)
        surplus = np.maximum(size / useful - 1.0, 0.0) / law.R_N
        grown = useful * (1.0 - law.R_N * np.log1p(-np.minimum(surplus, 1.0)))
        N = np.where(size > useful, grown, size)
    return np.where(np.isnan(N), np.inf, N)


def least_unique(law: RepeatedDataLaw, L: ArrayLike) -> Array:
    r"""Return the unique tokens below which no repetition reaches a loss.

    .. math:: U_\min = \left(\frac{B \left[\frac{\beta}{\alpha} (1 + R_N^*)^{-\alpha} +
       (1 + R_D^*)^{-\beta}\right]}{L - E}\right)^{1/\beta}

    Parameters
    ----------
    law : RepeatedDataLaw
        A law whose repeats wear out, [-]
    L : array_like
        Target loss, [nats/token]

    Returns
    -------
    numpy.ndarray or float
        The least number, itself only with endless compute; infinite at or below the
        floor of the law, [token]

    Examples
    --------
    >>> from chinchilla_lab.laws import MUENNIGHOFF_2023_REPEATED as law
    >>> f"{least_unique(law, law.floor(25e9)):.3e}"
    '2.500e+10'
    """
    base = needs_discount(law, "least number of unique tokens").base
    excess = positive("L", L) - base.E
    worn = base.beta / base.alpha * (1.0 + law.R_N) ** -base.alpha
    worn += law.ceiling**-base.beta
    with np.errstate(invalid="ignore", divide="ignore"):
        U = (base.B * worn / excess) ** (1.0 / base.beta)
    return np.where(excess > 0.0, U, np.inf)[()]


def tokens_for_loss(
    law: RepeatedDataLaw, N: ArrayLike, L: ArrayLike, unique_tokens: ArrayLike
) -> Array:
    r"""Tokens, repeats included, with which a size reaches a loss.

    Parameters
    ----------
    law : RepeatedDataLaw
        A law whose repeats wear out, [-]
    N : array_like
        Parameters, [parameter]
    L : array_like
        Target loss, broadcast against ``N``, [nats/token]
    unique_tokens : array_like
        Unique tokens U, broadcast against ``N``, [token]

    Returns
    -------
    numpy.ndarray or float
        Tokens; NaN where no number of epochs suffices, [token]

    Examples
    --------
    >>> from chinchilla_lab.laws import MUENNIGHOFF_2023_REPEATED as law
    >>> loss = law.loss(7e9, 200e9, unique=25e9)
    >>> f"{tokens_for_loss(law, 7e9, loss, unique_tokens=25e9):.3e}"
    '2.000e+11'
    """
    law = needs_discount(law, "number of tokens for a loss")
    n, target, u = np.broadcast_arrays(
        positive("N", N), positive("L", L), positive("unique_tokens", unique_tokens)
    )
    most = u * (1.0 + 40.0 * law.R_D)  # e^-40: more epochs change nothing
    bad = np.asarray(law._repeated(n, most, u)) > target
    # where there is no answer look for one that exists, and drop it below
    reachable = np.where(bad, law._repeated(n, most, u), target)
    y = bisect(
        lambda y: reachable - law._repeated(n, np.exp(y), u),
        np.full(n.shape, -200.0),
        np.log(most) + 1e-9,
        "the number of tokens",
    )
    return np.where(bad, np.nan, np.exp(y))[()]


def optimal_for_loss(
    law: RepeatedDataLaw,
    L: ArrayLike,
    unique_tokens: ArrayLike,
    T: ArrayLike = 0.0,
) -> DataPlan:
    r"""Least training or lifetime compute that reaches a loss on few unique tokens.

    .. math:: \min_{N, D} \; 6 N D + 2 N T \;\text{ at } L(N, D, U) = L

    Parameters
    ----------
    law : RepeatedDataLaw
        A law whose repeats wear out, [-]
    L : array_like
        Target loss, [nats/token]
    unique_tokens : array_like
        Unique tokens U, broadcast against ``L``, [token]
    T : array_like, optional
        Tokens served over the lifetime, broadcast against ``L``, [token]

    Returns
    -------
    DataPlan
        N [parameter], D [token] and epochs [-]; ``total`` counts the service, [FLOP]

    Raises
    ------
    InfeasibleError
        If no size and no number of epochs reach the loss; names the floor of these
        tokens and the unique tokens that would do.

    Notes
    -----
    The condition of :func:`optimal` with the right side times :math:`1 + T/3D`.

    Examples
    --------
    >>> from chinchilla_lab import allocation
    >>> from chinchilla_lab.laws import MUENNIGHOFF_2023_REPEATED as law
    >>> best = allocation.optimal_for_params(law.base, 10e9)
    >>> plan = optimal_for_loss(law, best.L, unique_tokens=best.D / 4)
    >>> f"{plan.N / best.N:.2f} {plan.epochs:.1f} {plan.C / best.C:.2f}"
    '0.96 5.8 1.38'
    """
    law = needs_discount(law, "least compute for a loss here")
    target, u, t = np.broadcast_arrays(
        positive("L", L),
        positive("unique_tokens", unique_tokens),
        non_negative("T", T),
    )
    floor = np.asarray(law.floor(u))
    if np.any(target <= floor):
        i = np.unravel_index(int(np.argmax(target <= floor)), target.shape)
        enough = float(least_unique(law, target[i]))
        way = (
            f"more than {text(enough, 'token')} unique tokens can"
            if np.isfinite(enough)
            else f"no data can, the floor of {law.base.label} is {law.base.E:.4f}"
        )
        raise InfeasibleError(
            f"L={target[i]:.6g} is not above the floor {floor[i]:.4f} of "
            f"unique_tokens={text(float(u[i]), 'token')}, whatever N and epochs: {way}"
        )
    base = law.base
    excess = target - base.E
    # the lifetime optimum of the base law, where its tokens are there to be used
    N_0, D_0 = _fresh_lifetime(base, excess, t)
    fresh = u >= D_0
    limited = np.where(fresh, 0.5 * D_0, u)

    def at(R: Array) -> tuple[Array, Array]:
        wear = -np.expm1(-R / law.R_D)
        N = _sized(law, excess, limited * (1.0 + law.R_D * wear), limited)
        return N, limited * (1.0 + R)

    def rising(R: Array) -> Array:
        N, D = at(R)
        usable = np.isfinite(N)
        n = np.where(usable, N, 1.0)
        by_size = np.where(usable, slope(law, n, D, limited, "N"), 0.0)
        by_data = np.where(usable, slope(law, n, D, limited, "D"), 1.0)
        # where data suffices nothing is solved: any root will do
        surplus = by_size - by_data * (1.0 + t / (3.0 * D))
        return np.where(fresh, R - 1.0, surplus)

    zero = np.zeros(target.shape)
    # rounding may hide the sign at one epoch, so look a little before it
    R = bisect(rising, zero - 1e-9, zero + 45.0 * law.R_D, "the number of epochs")
    N, D = at(R)
    N, D = np.where(fresh, N_0, N), np.where(fresh, D_0, D)
    law.warn_outside(N=N, D=D)
    loss = np.asarray(law._repeated(N, D, u))
    return DataPlan(law=law, unique=u[()], N=N[()], D=D[()], L=loss[()], T=t[()])


def _fresh_lifetime(base: AdditiveLaw, excess: Array, T: Array) -> tuple[Array, Array]:
    """Return the lifetime optimum of the base law at an excess loss."""
    alpha, beta = base.alpha, base.beta
    D_c = (base.B * (1.0 + beta / alpha) / excess) ** (1.0 / beta)

    def rising(y: Array) -> Array:
        D = D_c * np.exp(y)
        bill = 1.0 + beta / alpha * (1.0 + T / (3.0 * D))
        return np.asarray(1.0 - base.B * D**-beta * bill / excess)

    # 1 <= u <= 1 + tau / 3 (alpha + beta), as convexity says
    top = np.log1p(T / (3.0 * (alpha + beta) * D_c)) + 1e-9
    y = bisect(rising, np.full(top.shape, -1e-9), top, "the lifetime optimum")
    D = D_c * np.exp(y)
    return (base.A / (excess - base.B * D**-beta)) ** (1.0 / alpha), D
