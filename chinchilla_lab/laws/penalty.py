"""A law in which too many repeats do harm."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from chinchilla_lab.checks import non_negative, positive
from chinchilla_lab.laws.families import Fitted, UniqueDataLaw, additive_base

__all__ = ["PenaltyLaw"]

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class PenaltyLaw(UniqueDataLaw):
    r"""An additive law with a penalty for repeating data to a large model.

    .. math::

       L(N, D, U) = E + \frac{A}{N^{\alpha}} + \frac{B}{D^{\beta}}
       + P R^{\delta} \left(\frac{N}{U}\right)^{\kappa}, \qquad
       R = \max\left(\frac{D}{U} - 1, 0\right)

    Parameters
    ----------
    base : AdditiveLaw
        The law for data seen once; its fitted range is this law's too, [-]
    P : float, optional
        Size of the penalty. The default is illustrative, [nats/token]
    delta : float, optional
        Exponent of the repeats. The default is illustrative, [-]
    kappa : float, optional
        Exponent of parameters per unique token. The default is illustrative, [-]
    label : str, optional
        Short name for legends, [-]
    caution : str, optional
        What goes wrong when the law is used carelessly, [-]

    Notes
    -----
    At one epoch it is the base law exactly, for every size. It is not monotone in the
    repeats, so each size has a finite best number of epochs.

    The coefficients of the source are not known here. The defaults are illustrative:
    at 12.8B parameters, 60e9 unique tokens and four epochs they agree with the data
    term of MUENNIGHOFF_2023_REPEATED. Give your own, or match others with
    :func:`chinchilla_lab.repetition.matched_penalty`.

    References
    ----------
    :cite:`lovelace2026penalty`, formula as printed in :cite:`weng2026scaling`

    Examples
    --------
    >>> from chinchilla_lab.laws import MUENNIGHOFF_2023_C4
    >>> law = PenaltyLaw(base=MUENNIGHOFF_2023_C4)
    >>> bool(law.loss(4e10, 6e10) == MUENNIGHOFF_2023_C4.loss(4e10, 6e10))
    True
    """

    P: float = 0.0057
    delta: float = 1.0
    kappa: float = 1.0

    label: str = "over-repetition penalty (illustrative)"
    caution: str = (
        "P, delta and kappa are illustrative: no published values were found."
    )
    family: ClassVar[str] = "repetition penalty"

    def __post_init__(self) -> None:
        super().__post_init__()
        # the terms of the base were fitted there, so outside they are extrapolated
        if self.fitted == Fitted():
            object.__setattr__(self, "fitted", self.base.fitted)
        non_negative("P", self.P)
        positive("delta", self.delta)
        positive("kappa", self.kappa)

    def with_(self, **changes: Any) -> Self:
        """Return a changed copy; another base brings its fitted range along.

        Parameters
        ----------
        **changes : float
            New values of the law's own fields, [any]

        Returns
        -------
        PenaltyLaw
            The copy, [-]

        Examples
        --------
        >>> from chinchilla_lab.laws import BESIROGLU_2024, MUENNIGHOFF_2023_C4
        >>> law = PenaltyLaw(base=MUENNIGHOFF_2023_C4).with_(base=BESIROGLU_2024)
        >>> law.fitted == BESIROGLU_2024.fitted
        True
        """
        if "base" in changes:
            changes = {"fitted": additive_base(changes["base"]).fitted} | changes
        return super().with_(**changes)

    def _loss(self, N: Array, D: Array) -> Array:
        return self.base._loss(N, D)

    def _repeated(self, N: Array, D: Array, unique: Array) -> Array:
        u = np.minimum(unique, D)
        harm = self.P * (D / u - 1.0) ** self.delta * (N / u) ** self.kappa
        return self.base._loss(N, D) + harm
