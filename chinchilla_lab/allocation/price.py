"""The price of missing the optimum, at equal compute and at equal loss."""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chinchilla_lab.allocation.optimum import optimal_for_loss
from chinchilla_lab.allocation.results import Overhead
from chinchilla_lab.allocation.solving import additive, needs_loss
from chinchilla_lab.checks import InfeasibleError, one_of, positive
from chinchilla_lab.laws.families import AdditiveLaw, LossLaw
from chinchilla_lab.units import FLOP_PER_ND

__all__ = ["efficiency", "least_size_factor", "overhead", "waste"]

Array = NDArray[np.float64]
Infeasible = Literal["raise", "nan"]


def _closed_form(law: LossLaw, what: str) -> AdditiveLaw:
    closed = additive(needs_loss(law, what))
    if closed is None:
        raise TypeError(
            f"{law.label} is no power law in N and D, so its {what} depends on the "
            "budget; compare efficiency(law, N, D) at your plan instead"
        )
    return closed


def waste(law: LossLaw, size_factor: ArrayLike) -> Array:
    r"""Compute thrown away by a size k times the optimal one, the budget being fixed.

    .. math:: w(k) = \left[\gamma \left(\frac{k^{-\alpha}}{\alpha} +
       \frac{k^{\beta}}{\beta}\right)\right]^{1/\gamma} - 1
       \approx \frac{\alpha+\beta}{2} (\ln k)^2

    Parameters
    ----------
    law : LossLaw
        A law with a loss and a closed form, [-]
    size_factor : array_like
        Size over the optimal size, k, [-]

    Returns
    -------
    numpy.ndarray or float
        Spent compute over the least compute for the loss reached, minus 1; the same
        at every budget, [-]

    Examples
    --------
    >>> from chinchilla_lab.laws import BESIROGLU_2024, HOFFMANN_2022
    >>> f"{waste(BESIROGLU_2024, 2):.3f} {waste(HOFFMANN_2022, 2):.3f}"
    '0.186 0.158'
    """
    closed = _closed_form(law, "waste")
    k = positive("size_factor", size_factor)
    bowl = k**-closed.alpha / closed.alpha + k**closed.beta / closed.beta
    return (closed.gamma * bowl) ** (1.0 / closed.gamma) - 1.0


def efficiency(law: LossLaw, N: ArrayLike, D: ArrayLike) -> Array:
    r"""Share of a run's compute that the optimum would have needed for its loss.

    .. math:: \frac{C^*(L(N, D))}{6 N D}

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
        The share, 1 on the optimal path, [-]

    Examples
    --------
    >>> from chinchilla_lab.laws import BESIROGLU_2024
    >>> f"{efficiency(BESIROGLU_2024, N=175e9, D=300e9):.3f}"  # GPT-3
    '0.608'
    """
    with_loss = needs_loss(law, "efficiency")
    n, d = positive("N", N), positive("D", D)
    with_loss.warn_outside(N=n, D=d)
    closed = additive(with_loss)
    if closed is not None:
        # the excess cancels E, so no digits are lost near the floor
        excess = closed.A * n**-closed.alpha + closed.B * d**-closed.beta
        nd = (closed.K / excess) ** (1.0 / closed.gamma)
        return nd / (n * d)
    loss = with_loss._loss(n, d)
    return optimal_for_loss(law, loss).C / (FLOP_PER_ND * n * d)


def overhead(
    law: LossLaw, size_factor: ArrayLike, infeasible: Infeasible = "raise"
) -> Overhead:
    r"""Tokens and compute of a size k times the optimal one, the loss being fixed.

    .. math:: k_D = \left[1 - \left(k^{-\alpha} - 1\right)
       \frac{\beta}{\alpha}\right]^{-1/\beta}, \qquad \text{overhead} = k\,k_D - 1

    Parameters
    ----------
    law : LossLaw
        A law with a loss and a closed form, [-]
    size_factor : array_like
        Size over the optimal size, k, [-]
    infeasible : {"raise", "nan"}, optional
        What to do for sizes too small to reach the loss, [-]

    Returns
    -------
    Overhead
        Token factor [-] and extra compute [-], same at every loss

    Raises
    ------
    InfeasibleError
        If the size is at or below :func:`least_size_factor`.

    References
    ----------
    :cite:`devries2023smol`, and the tangency condition of :cite:`hoffmann2022training`

    Examples
    --------
    >>> from chinchilla_lab.laws import BESIROGLU_2024
    >>> half = overhead(BESIROGLU_2024, 0.5)
    >>> f"{half.token_factor:.3f} {half.compute:+.1%}"
    '2.519 +25.9%'
    """
    closed = _closed_form(law, "overhead")
    one_of("infeasible", infeasible, ("raise", "nan"))
    k = positive("size_factor", size_factor)
    least = least_size_factor(law)
    room = 1.0 - (k**-closed.alpha - 1.0) * closed.beta / closed.alpha
    bad = room <= 0.0
    if infeasible == "raise" and np.any(bad):
        raise InfeasibleError(
            f"size_factor={k[bad][0]:.3g} cannot reach the loss of the optimum "
            f"with any number of tokens; under {law.label} it must be above {least:.4f}"
        )
    tokens = np.where(bad, 1.0, room) ** (-1.0 / closed.beta)
    return Overhead(size_factor=k[()], token_factor=np.where(bad, np.nan, tokens)[()])


def least_size_factor(law: LossLaw) -> float:
    r"""Size, over the optimal one, below which the optimum's loss is out of reach.

    .. math:: k_\min = \left(1 + \frac{\alpha}{\beta}\right)^{-1/\alpha}

    Parameters
    ----------
    law : LossLaw
        A law with a loss and a closed form, [-]

    Returns
    -------
    float
        The factor, the same at every loss, [-]

    Examples
    --------
    >>> from chinchilla_lab.laws import BESIROGLU_2024
    >>> f"{least_size_factor(BESIROGLU_2024):.3f}"
    '0.146'
    """
    closed = _closed_form(law, "least size")
    return float((1.0 + closed.alpha / closed.beta) ** (-1.0 / closed.alpha))
