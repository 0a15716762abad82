"""Elasticities of a loss, and how the optimum grows with the budget."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chinchilla_lab.allocation.solving import needs_loss, optimum, slopes
from chinchilla_lab.checks import positive
from chinchilla_lab.laws.families import DirectLaw, Law, LossLaw

__all__ = ["elasticities", "elasticity_ratio", "growth", "local_exponent"]

Array = NDArray[np.float64]


def elasticities(law: LossLaw, N: ArrayLike, D: ArrayLike) -> tuple[Array, Array]:
    r"""Return what more parameters, or more tokens, take off the loss.

    .. math:: e_N = -\frac{\partial L}{\partial \ln N} = \alpha A N^{-\alpha}, \qquad
       e_D = -\frac{\partial L}{\partial \ln D} = \beta B D^{-\beta}

    Parameters
    ----------
    law : LossLaw
        A law with a loss, [-]
    N : array_like
        Parameters, [parameter]
    D : array_like
        Tokens, broadcast against ``N``, [token]

    Returns
    -------
    e_N : numpy.ndarray or float
        Fall of the loss per unit of ln N, [nats/token]
    e_D : numpy.ndarray or float
        Fall of the loss per unit of ln D, [nats/token]

    Examples
    --------
    >>> from chinchilla_lab.laws import BESIROGLU_2024
    >>> e_N, e_D = elasticities(BESIROGLU_2024, N=70e9, D=1.4e12)
    >>> f"{e_N / e_D:.4f}"
    '1.0306'
    """
    return slopes(
        needs_loss(law, "elasticities"), positive("N", N)[()], positive("D", D)[()]
    )


def elasticity_ratio(law: LossLaw, N: ArrayLike, D: ArrayLike) -> Array:
    r"""Pull towards parameters over pull towards tokens; 1 on the optimal path.

    .. math:: \frac{e_N}{e_D} = \frac{\alpha A N^{-\alpha}}{\beta B D^{-\beta}}

    Below 1 the run has too few tokens for its size, above 1 too many.

    Parameters
    ----------
    law : LossLaw
        A law with a loss, [-]
    N : array_like
        Parameters, [parameter]
    D : array_like
        Tokens, broadcast against ``N``, [token]

    Returns
    -------
    numpy.ndarray or float
        The ratio; equal to (lifetime compute)/(training compute) of the plan that
        (N, D) would be optimal for, [-]

    Examples
    --------
    >>> from chinchilla_lab.laws import BESIROGLU_2024
    >>> f"{elasticity_ratio(BESIROGLU_2024, N=175e9, D=300e9):.3f}"  # GPT-3
    '0.427'
    """
    e_N, e_D = elasticities(law, N, D)
    return e_N / e_D


def growth(law: Law, factor: ArrayLike, C: ArrayLike = 1e21) -> tuple[Array, Array]:
    r"""How much the optimal N and D grow when the budget grows by a factor.

    .. math:: \frac{N^*(fC)}{N^*(C)} = f^{a}, \qquad \frac{D^*(fC)}{D^*(C)} = f^{1-a}

    Parameters
    ----------
    law : Law
        Any law, [-]
    factor : array_like
        Growth f of the budget, [-]
    C : array_like, optional
        Budget to start from; matters only for laws that are no power of C, [FLOP]

    Returns
    -------
    N : numpy.ndarray or float
        Growth of the optimal size, [-]
    D : numpy.ndarray or float
        Growth of the optimal data, [-]

    Examples
    --------
    >>> from chinchilla_lab.laws import BESIROGLU_2024, KAPLAN_2020_CMIN
    >>> "{:.2f} {:.2f}".format(*growth(BESIROGLU_2024, 10))
    '3.26 3.07'
    >>> "{:.2f} {:.2f}".format(*growth(KAPLAN_2020_CMIN, 10))
    '5.37 1.86'
    """
    f, c = np.broadcast_arrays(positive("factor", factor), positive("C", C))
    if isinstance(law, DirectLaw):
        (n0, d0), (n1, d1) = law.optimum(c), law.optimum(f * c)
        return n1 / n0, d1 / d0
    with_loss = needs_loss(law, "growth")
    before, after = optimum(with_loss, c), optimum(with_loss, f * c)
    return after[0] / before[0], after[1] / before[1]


def local_exponent(law: Law, C: ArrayLike) -> Array:
    r"""Slope of the optimal size against compute, on log axes, at a budget.

    .. math:: \frac{d \ln N^*}{d \ln C}

    Parameters
    ----------
    law : Law
        Any law, [-]
    C : array_like
        Training compute, [FLOP]

    Returns
    -------
    numpy.ndarray or float
        The exponent a; constant for laws that are powers of C, [-]

    Examples
    --------
    >>> from chinchilla_lab.laws import PEARCE_2024
    >>> [f"{a:.2f}" for a in local_exponent(PEARCE_2024, [1e15, 1e30])]
    ['0.84', '0.51']
    """
    c = positive("C", C)
    step = 1e-3  # central difference: error of order step**2
    rise = np.log(growth(law, np.exp(2.0 * step), c * np.exp(-step))[0])
    return np.broadcast_to(rise / (2.0 * step), c.shape)[()]
