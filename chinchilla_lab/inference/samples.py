"""Compute spent on several answers to one question.

The formulas stand as their sources, or a derivation here, give them. No coefficients of
theirs have been verified, so none are shipped: H, gamma, a and b are your own.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chinchilla_lab.allocation.results import Allocation
from chinchilla_lab.allocation.solving import bisect
from chinchilla_lab.checks import positive, scalar
from chinchilla_lab.inference.factors import closed_form
from chinchilla_lab.inference.lifetime import FLOP_PER_NT
from chinchilla_lab.laws.families import LossLaw
from chinchilla_lab.units import FLOP_PER_ND

__all__ = ["pass_at", "pass_at_tail", "sampled_optimal", "samples_for"]

Array = NDArray[np.float64]
_SHIFT = 20  # from here on the series below is exact to rounding
# Stirling's series without its first term: powers and coefficients
_STIRLING = ((3, -1 / 360), (5, 1 / 1260), (7, -1 / 1680), (9, 1 / 1188))


def _log_rise(x: Array, a: Array) -> Array:
    """Return ln Gamma(x + a) - ln Gamma(x) without forming either."""
    shifted = np.zeros(np.broadcast_shapes(x.shape, a.shape))
    for i in range(_SHIFT):
        shifted = shifted + np.log1p(a / (x + i))
    y = x + _SHIFT
    found = (y - 0.5) * np.log1p(a / y) + a * (np.log(y + a) - 1.0)
    for power, factor in ((1, 1 / 12), *_STIRLING):
        found = found + factor * ((y + a) ** -power - y**-power)
    return np.asarray(found - shifted)


def _log_cross(x: Array, a: Array, k: Array) -> Array:
    """Return ln [x (x + a + k) / (x + a)(x + k)], below 0."""
    gone = a / (x + a) * (k / (x + k))
    near_zero = np.log(x / (x + a)) + np.log1p(a / (x + k))
    return np.where(gone < 0.5, np.log1p(-np.minimum(gone, 0.5)), near_zero)


def _log_failed(x: Array, a: Array, k: Array) -> Array:
    """Return ln B(a, x + k) / B(a, x).

    The four gamma functions nearly cancel, so their second difference is taken term by
    term of Stirling's series, after x has been moved up by the recurrence.
    """
    found = np.zeros(np.broadcast_shapes(x.shape, a.shape, k.shape))
    for i in range(_SHIFT):
        found = found + _log_cross(x + i, a, k)
    y = x + _SHIFT
    ya, yk, all_ = y + a, y + k, y + a + k
    found = found - (y - 0.5) * _log_cross(y, a, k)
    found = found - a * np.log1p(k / ya) - k * np.log1p(a / yk)
    # 1/all - 1/ya - 1/yk + 1/y over one denominator
    found = found - (a / ya) * (k / yk) * ((y + all_) / (12.0 * y * all_))
    for power, factor in _STIRLING:
        found = found - factor * (all_**-power - ya**-power - yk**-power + y**-power)
    return np.asarray(found)


def samples_for(N: ArrayLike, C: ArrayLike) -> Array:
    r"""Answers per token that a compute for inference buys.

    .. math:: s = \frac{C_\text{inf}}{2N}

    Parameters
    ----------
    N : array_like
        Parameters, [parameter]
    C : array_like
        Compute for one token of one question, broadcast against ``N``, [FLOP/token]

    Returns
    -------
    numpy.ndarray or float
        Samples, not rounded, [-]

    Examples
    --------
    >>> float(samples_for(7e9, 1.4e12))
    100.0
    """
    return np.asarray(positive("C", C) / (FLOP_PER_NT * positive("N", N)))[()]


def pass_at(s: ArrayLike, a: ArrayLike, b: ArrayLike) -> Array:
    r"""Share of problems solved by at least one of s samples.

    .. math:: E[\text{pass}@s] = 1 - \frac{B(a, b + s)}{B(a, b)}

    Parameters
    ----------
    s : array_like
        Samples of each problem, [-]
    a : array_like
        First parameter of the Beta distribution of single-sample success, [-]
    b : array_like
        Second parameter, broadcast against ``s``, [-]

    Returns
    -------
    numpy.ndarray or float
        The expected share, [-]

    Notes
    -----
    Every problem alone fails exponentially in s; the power law of the average comes
    from problems with almost no chance. No values of a and b are verified.

    References
    ----------
    :cite:`roberts2026t2`, known through a summary; the expectation is exact

    Examples
    --------
    >>> f"{pass_at(10, a=0.5, b=5):.4f}"
    '0.4322'
    """
    k, first, second = positive("s", s), positive("a", a), positive("b", b)
    return np.asarray(-np.expm1(_log_failed(second, first, k)))[()]


def pass_at_tail(s: ArrayLike, a: ArrayLike, b: ArrayLike) -> Array:
    r"""Share of problems left unsolved by many samples, as a power law.

    .. math:: 1 - E[\text{pass}@s] \approx \frac{\Gamma(a+b)}{\Gamma(b)} \, s^{-a}

    Parameters
    ----------
    s : array_like
        Samples of each problem, many, [-]
    a : array_like
        First parameter of the Beta distribution of single-sample success, [-]
    b : array_like
        Second parameter, broadcast against ``s``, [-]

    Returns
    -------
    numpy.ndarray or float
        The limiting share of failures, [-]

    References
    ----------
    :cite:`schaeffer2025monkeys`, for the origin of the power law; derived here

    Examples
    --------
    >>> f"{pass_at_tail(1000, a=0.5, b=5):.4f} {1 - pass_at(1000, a=0.5, b=5):.4f}"
    '0.0690 0.0688'
    """
    k, first, second = positive("s", s), positive("a", a), positive("b", b)
    return np.asarray(np.exp(_log_rise(second, first) - first * np.log(k)))[()]


def sampled_optimal(
    law: LossLaw, C: ArrayLike, C_inf: ArrayLike, H: float, gamma: float
) -> Allocation:
    r"""Size for a training budget when a fixed compute also buys samples.

    .. math::

       \min_N \; L(N, D) + H s^{-\gamma}, \quad D = \frac{C}{6N}, \quad
       s = \frac{C_\text{inf}}{2N}

    with the one condition
    :math:`\beta B D^{-\beta} + \gamma H s^{-\gamma} = \alpha A N^{-\alpha}`.

    Parameters
    ----------
    law : LossLaw
        A law with a closed form and k = 1, [-]
    C : array_like
        Training compute, [FLOP]
    C_inf : array_like
        Compute for one token of one question, broadcast against ``C``, [FLOP/token]
    H : float
        Size of the sampling term; no published value is verified, [nats/token]
    gamma : float
        Its exponent; no published value is verified, [-]

    Returns
    -------
    Allocation
        N [parameter], D [token] and the loss with the sampling term [nats/token]

    Notes
    -----
    A smaller model takes more samples, so the optimum lies below the compute-optimal
    size, and rises to it as the compute for inference grows.

    References
    ----------
    :cite:`roberts2026t2`, form known through a summary; condition derived here

    Examples
    --------
    >>> from chinchilla_lab.laws import BESIROGLU_2024
    >>> plan = sampled_optimal(BESIROGLU_2024, C=1e22, C_inf=1e12, H=0.1, gamma=0.3)
    >>> bool(plan.N < 9.045e9)
    True
    """
    closed = closed_form(law)
    if closed.k != 1.0:
        raise TypeError(
            f"{law.label} has an outer exponent k={closed.k:g}; the sampling term is "
            "added to the loss itself, so use a law with k=1"
        )
    c, serve = np.broadcast_arrays(positive("C", C), positive("C_inf", C_inf))
    height, decay = scalar("H", H), scalar("gamma", gamma)

    def surplus(x: Array) -> Array:
        N = np.exp(x)
        D = c / (FLOP_PER_ND * N)
        s = serve / (FLOP_PER_NT * N)
        by_rest = closed.beta * closed.B * D**-closed.beta + decay * height * s**-decay
        return by_rest - closed.alpha * closed.A * N**-closed.alpha

    # compute-optimal without samples: there the data term alone balances the model
    high = np.log(closed.G * (c / FLOP_PER_ND) ** closed.a)
    N = np.exp(bisect(surplus, high - 200.0, high, "the optimum with samples"))
    D = c / (FLOP_PER_ND * N)
    s = serve / (FLOP_PER_NT * N)
    law.warn_outside(N=N, D=D)
    loss = closed._loss(N, D) + height * s**-decay
    return Allocation(law=law, C=c[()], N=N[()], D=D[()], L=np.asarray(loss)[()])
