r"""How the choice of a metric makes a cliff out of a slope.

An answer of K tokens, each right with probability :math:`e^{-\ell}`, is right as a
whole with :math:`e^{-K\ell}`.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chinchilla_lab.checks import InfeasibleError, positive, scalar

__all__ = [
    "compute_for_exact_match",
    "exact_match",
    "exact_match_width",
    "loss_for_exact_match",
    "transition_decades",
]

Array = NDArray[np.float64]


def _probability(p: ArrayLike) -> Array:
    share = positive("p", p)
    if share.max() >= 1.0:
        raise InfeasibleError(
            f"p={share.max():g} must be below 1: certainty needs a loss of 0"
        )
    return share


def exact_match(L: ArrayLike, K: ArrayLike) -> Array:
    r"""Share of answers of K tokens that are right in every token.

    .. math:: p = e^{-K \ell}

    Parameters
    ----------
    L : array_like
        Loss of one token of the answer, [nats/token]
    K : array_like
        Length of the answer, broadcast against ``L``, [token]

    Returns
    -------
    numpy.ndarray or float
        The share, [-]

    Notes
    -----
    Assumes that tokens fail independently and equally often.

    References
    ----------
    :cite:`schaeffer2023mirage`, mechanism; the expression is derived here

    Examples
    --------
    >>> exact_match(0.1, [1, 10, 100]).round(4)
    array([0.9048, 0.3679, 0.    ])
    """
    return np.exp(-positive("K", K) * positive("L", L))[()]


def loss_for_exact_match(p: ArrayLike, K: ArrayLike) -> Array:
    r"""Loss of one token at which a share of answers is right.

    .. math:: \ell = -\frac{\ln p}{K}

    Parameters
    ----------
    p : array_like
        Share of right answers, above 0 and below 1, [-]
    K : array_like
        Length of the answer, broadcast against ``p``, [token]

    Returns
    -------
    numpy.ndarray or float
        Loss, [nats/token]

    Raises
    ------
    InfeasibleError
        If the share is 1 or more.

    Examples
    --------
    >>> f"{loss_for_exact_match(0.5, 30):.4f}"
    '0.0231'
    """
    return (-np.log(_probability(p)) / positive("K", K))[()]


def exact_match_width(K: ArrayLike, low: float = 0.1, high: float = 0.9) -> Array:
    r"""Span of the loss over which exact match rises from low to high.

    .. math:: \Delta \ell = \frac{\ln(p_2 / p_1)}{K}

    Parameters
    ----------
    K : array_like
        Length of the answer, [token]
    low : float, optional
        Lower share, [-]
    high : float, optional
        Upper share, [-]

    Returns
    -------
    numpy.ndarray or float
        The span: on the axis of the loss long answers have steeper cliffs,
        [nats/token]

    Examples
    --------
    >>> f"{exact_match_width(10):.3f}"
    '0.220'
    """
    return np.abs(loss_for_exact_match(low, K) - loss_for_exact_match(high, K))[()]


def compute_for_exact_match(
    p: ArrayLike, K: ArrayLike, gamma: float, scale: float = 1.0
) -> Array:
    r"""Compute at which a share of answers is right, for a loss that is a power of it.

    .. math:: \ell = c\, C^{-\gamma} \;\Rightarrow\;
       C = \left(\frac{c K}{-\ln p}\right)^{1/\gamma}

    Parameters
    ----------
    p : array_like
        Share of right answers, above 0 and below 1, [-]
    K : array_like
        Length of the answer, broadcast against ``p``, [token]
    gamma : float
        Exponent of the token loss in compute, [-]
    scale : float, optional
        Token loss c at one unit of compute, [nats/token]

    Returns
    -------
    numpy.ndarray or float
        Compute, in the unit of ``scale``, [FLOP]

    Examples
    --------
    Ten times the length moves the curve by 1/gamma decades and leaves its shape:

    >>> short, long = compute_for_exact_match(0.5, [10, 100], gamma=0.1783)
    >>> f"{np.log10(long / short):.2f}"
    '5.61'
    """
    power = 1.0 / scalar("gamma", gamma)
    base = scalar("scale", scale) * positive("K", K)
    return ((base / -np.log(_probability(p))) ** power)[()]


def transition_decades(gamma: ArrayLike, low: float = 0.1, high: float = 0.9) -> Array:
    r"""Decades of compute over which exact match rises from low to high.

    .. math:: \frac{1}{\gamma} \log_{10} \frac{\ln p_1}{\ln p_2}

    Parameters
    ----------
    gamma : array_like
        Exponent of the token loss in compute, [-]
    low : float, optional
        Lower share, [-]
    high : float, optional
        Upper share, [-]

    Returns
    -------
    numpy.ndarray or float
        Decades, the same for every length of the answer, [-]

    Examples
    --------
    >>> f"{transition_decades(0.1783):.1f} {transition_decades(0.1783, .01, .5):.2f}"
    '7.5 4.61'
    """
    ends = np.log(_probability(low)) / np.log(_probability(high))
    return (np.abs(np.log10(ends)) / positive("gamma", gamma))[()]
