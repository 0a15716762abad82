"""One budget under several laws."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chinchilla_lab.allocation.optimum import compute_optimal
from chinchilla_lab.allocation.price import waste
from chinchilla_lab.allocation.results import Hedge, Spread
from chinchilla_lab.allocation.solving import needs_loss, optimum
from chinchilla_lab.checks import positive
from chinchilla_lab.laws.families import Law, LossLaw
from chinchilla_lab.units import FLOP_PER_ND

__all__ = ["hedge", "spread"]

Array = NDArray[np.float64]


def spread(laws: Iterable[Law], C: float) -> Spread:
    """Return the optimum of one budget under several laws, as one table.

    Parameters
    ----------
    laws : iterable of Law
        Laws to compare, [-]
    C : float
        Training compute, [FLOP]

    Returns
    -------
    Spread
        One :class:`Allocation` a law, [-]

    Examples
    --------
    >>> from chinchilla_lab.laws import BESIROGLU_2024, RATIO_20
    >>> spread([BESIROGLU_2024, RATIO_20], 1e22).N.round(-7)
    array([9.05e+09, 9.13e+09])
    """
    return Spread(plans=tuple(compute_optimal(law, C) for law in laws))


def hedge(laws: Iterable[LossLaw], C: ArrayLike) -> Hedge:
    r"""Size whose waste under the worst of several laws is least.

    .. math:: \min_N \max_i \; w_i\!\left(\frac{N}{N_i^*(C)}\right)

    Parameters
    ----------
    laws : iterable of LossLaw
        Laws that may be right; their loss levels need not agree, [-]
    C : array_like
        Training compute, [FLOP]

    Returns
    -------
    Hedge
        N [parameter], D [token] and the worst waste [-], same shape as ``C``

    Examples
    --------
    >>> from chinchilla_lab.laws import BESIROGLU_2024, HOFFMANN_2022
    >>> plan = hedge([BESIROGLU_2024, HOFFMANN_2022], C=1e22)
    >>> f"{plan.N:.3e} {plan.worst:.4f}"
    '7.620e+09 0.0105'
    """
    c = positive("C", C)
    candidates = [needs_loss(law, "waste") for law in laws]
    if not candidates:
        raise ValueError("laws is empty; give at least one law with a loss")
    log_best = np.array([np.log(optimum(law, c)[0]) for law in candidates])

    def worst(x: Array) -> Array:
        regrets = [
            waste(law, np.exp(x - best))
            for law, best in zip(candidates, log_best, strict=True)
        ]
        return np.asarray(np.max(regrets, axis=0))

    # every bowl falls, then rises, so their maximum does too: golden section
    low, high = log_best.min(axis=0), log_best.max(axis=0)
    golden = (np.sqrt(5.0) - 1.0) / 2.0
    for _ in range(80):
        left, right = high - golden * (high - low), low + golden * (high - low)
        keep_left = worst(left) < worst(right)
        low, high = np.where(keep_left, low, left), np.where(keep_left, right, high)
    x = 0.5 * (low + high)
    N = np.exp(x)
    for law in candidates:
        law.warn_outside(N=N, D=c / (FLOP_PER_ND * N), C=c)
    return Hedge(C=c[()], N=N[()], D=(c / (FLOP_PER_ND * N))[()], worst=worst(x)[()])
