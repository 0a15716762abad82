"""Penalty laws set beside a law of repeated data, and their best epochs."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chinchilla_lab.allocation.solving import bisect
from chinchilla_lab.checks import positive, scalar
from chinchilla_lab.laws.families import RepeatedDataLaw
from chinchilla_lab.laws.penalty import PenaltyLaw
from chinchilla_lab.repetition.results import needs_discount

__all__ = ["best_epochs", "matched_penalty"]

Array = NDArray[np.float64]


def matched_penalty(
    law: RepeatedDataLaw,
    N: float,
    unique_tokens: float,
    epochs: float = 4.0,
    delta: float = 1.0,
    kappa: float = 1.0,
) -> PenaltyLaw:
    r"""Penalty law that agrees with a law of repeated data at one point.

    .. math:: P = \frac{B \left(\tilde D^{-\beta} - D^{-\beta}\right)}
       {R^{\delta} (N/U)^{\kappa}}

    Parameters
    ----------
    law : RepeatedDataLaw
        Law whose data term is met, [-]
    N : float
        Parameters of the point, [parameter]
    unique_tokens : float
        Its unique tokens, [token]
    epochs : float, optional
        Its epochs, above 1, [-]
    delta : float, optional
        Exponent of the repeats, [-]
    kappa : float, optional
        Exponent of parameters per unique token, [-]

    Returns
    -------
    PenaltyLaw
        An illustration of the form, not a published law, [-]

    Examples
    --------
    >>> from chinchilla_lab.laws import MUENNIGHOFF_2023_REPEATED as law
    >>> f"{matched_penalty(law, 12.8e9, 60e9).P:.4f}"
    '0.0057'
    """
    law = needs_discount(law, "worn data term to match")
    n, u = scalar("N", N), scalar("unique_tokens", unique_tokens)
    passes = scalar("epochs", epochs)
    delta, kappa = scalar("delta", delta), scalar("kappa", kappa)
    if passes <= 1.0:
        raise ValueError(f"epochs={passes:g} must be above 1: one epoch has no penalty")
    base = law.base
    effective = float(law.effective_tokens(u, passes))
    worn = base.B * (effective**-base.beta - (u * passes) ** -base.beta)
    P = worn / ((passes - 1.0) ** delta * (n / u) ** kappa)
    return PenaltyLaw(base=base, P=P, delta=delta, kappa=kappa)


def best_epochs(law: PenaltyLaw, N: ArrayLike, unique_tokens: ArrayLike) -> Array:
    r"""Epochs after which more of them harm a model of given size.

    .. math:: \delta P R^{\delta-1} \left(\frac{N}{U}\right)^{\kappa} =
       \beta B U^{-\beta} (1 + R)^{-\beta-1}

    Parameters
    ----------
    law : PenaltyLaw
        A law with delta of at least 1 and a penalty, [-]
    N : array_like
        Parameters, [parameter]
    unique_tokens : array_like
        Unique tokens, broadcast against ``N``, [token]

    Returns
    -------
    numpy.ndarray or float
        Epochs, 1 where the first repeat already harms, [-]

    Examples
    --------
    >>> from chinchilla_lab.laws import MUENNIGHOFF_2023_REPEATED as law
    >>> mild = matched_penalty(law, 12.8e9, 60e9)
    >>> f"{best_epochs(mild, 12.8e9, 60e9):.1f}"
    '22.6'
    """
    if not isinstance(law, PenaltyLaw):
        raise TypeError(
            f"law={getattr(law, 'label', law)!r} has no penalty, so no number of "
            "epochs is the best; use a PenaltyLaw"
        )
    if law.delta < 1.0 or law.P == 0.0:
        raise ValueError(
            f"delta={law.delta:g} and P={law.P:g}: a best number of epochs needs a "
            "delta of at least 1 and a P above 0"
        )
    n, u = np.broadcast_arrays(
        positive("N", N), positive("unique_tokens", unique_tokens)
    )
    base = law.base
    gain = np.log(base.beta * base.B) - base.beta * np.log(u)
    harm = np.log(law.delta * law.P) + law.kappa * np.log(n / u)

    def rising(x: Array) -> Array:
        more = harm + (law.delta - 1.0) * x
        return np.asarray(more - gain + (base.beta + 1.0) * np.logaddexp(0.0, x))

    low = np.full(n.shape, -60.0)
    at_once = rising(low) > 0.0  # with delta 1 the first repeat may harm already
    shift = np.where(at_once, rising(low), 0.0)
    high = np.full(n.shape, 690.0)  # e^690 is near the largest float
    never = rising(high) < 0.0
    if np.any(never):
        raise ValueError(
            f"P={law.P:g}, delta={law.delta:g}, kappa={law.kappa:g}: the penalty is so "
            f"small at N={n[never].flat[0]:g} and unique_tokens={u[never].flat[0]:g} "
            "that more epochs help without end; give a larger P"
        )
    x = bisect(lambda x: rising(x) - shift, low, high, "the best epochs")
    return np.where(at_once, 1.0, 1.0 + np.exp(x))[()]
