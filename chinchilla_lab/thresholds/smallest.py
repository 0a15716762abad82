"""The smallest model that reaches a loss or an accuracy."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chinchilla_lab.allocation.optimum import optimal_for_loss
from chinchilla_lab.allocation.price import least_size_factor, overhead
from chinchilla_lab.allocation.solving import bisect
from chinchilla_lab.allocation.targets import least_params, params_for_loss
from chinchilla_lab.checks import InfeasibleError, positive
from chinchilla_lab.laws.families import AdditiveLaw, LossLaw
from chinchilla_lab.tables import html_table
from chinchilla_lab.thresholds.crossing import additive_law
from chinchilla_lab.thresholds.links import TwoStepLaw
from chinchilla_lab.units import FLOP_PER_ND, text

__all__ = [
    "SmallestModel",
    "smallest_model_for",
]

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class SmallestModel:
    """The smallest model that reaches a target, beside the compute-optimal one.

    Parameters
    ----------
    law : LossLaw
        The law, [-]
    L : numpy.ndarray or float
        Loss that the target asks for, [nats/token]
    N : numpy.ndarray or float
        Smallest size, [parameter]
    D : numpy.ndarray or float
        Tokens it needs, [token]
    floor : numpy.ndarray or float
        Size that no tokens help below, [parameter]
    N_optimal : numpy.ndarray or float
        Size of the compute-optimal model, [parameter]
    D_optimal : numpy.ndarray or float
        Tokens of the compute-optimal model, [token]
    """

    law: LossLaw
    L: Array
    N: Array
    D: Array
    floor: Array
    N_optimal: Array
    D_optimal: Array

    @property
    def C(self) -> Array:
        """Training compute 6ND, [FLOP]."""
        return FLOP_PER_ND * self.N * self.D

    @property
    def overhead(self) -> Array:
        """Training compute beyond the compute-optimal model's, as a share, [-]."""
        return self.N * self.D / (self.N_optimal * self.D_optimal) - 1.0

    def _repr_html_(self) -> str:
        cells = np.broadcast_arrays(
            self.L, self.N, self.D, self.overhead, self.floor, self.N_optimal,
            self.D_optimal,
        )  # fmt: skip
        rows = [
            [
                f"{loss:.4f}",
                text(n, "parameter"),
                "endless" if np.isinf(d) else text(d, "token"),
                "endless" if np.isinf(over) else f"{over:+.0%}",
                text(floor, "parameter"),
                text(n_c, "parameter"),
                text(d_c, "token"),
            ]
            for loss, n, d, over, floor, n_c, d_c in zip(
                *map(np.ravel, cells), strict=True
            )
        ]
        head = (
            "L [nats/token]",
            "smallest N [parameter]",
            "D [token]",
            "extra training compute",
            "floor of N [parameter]",
            "compute-optimal N [parameter]",
            "compute-optimal D [token]",
        )
        return html_table(head, rows)


def smallest_model_for(
    law: LossLaw | TwoStepLaw,
    *,
    loss: ArrayLike | None = None,
    accuracy: ArrayLike | None = None,
    D: ArrayLike | None = None,
    C: ArrayLike | None = None,
) -> SmallestModel:
    r"""Smallest model that reaches a loss or an accuracy.

    Parameters
    ----------
    law : LossLaw or TwoStepLaw
        A law with a closed form; of two steps if an accuracy is asked, [-]
    loss : array_like, optional
        Target loss, [nats/token]
    accuracy : array_like, optional
        Target accuracy in its place, [-]
    D : array_like, optional
        Tokens that there are, each seen once, [token]
    C : array_like, optional
        Training compute that there is, in place of ``D``, [FLOP]

    Returns
    -------
    SmallestModel
        N [parameter] and the tokens it needs [token]; without ``D`` and ``C`` the floor
        of N, which needs endless tokens

    Raises
    ------
    InfeasibleError
        If the curve, the law, the tokens or the compute keep the target out of reach.
    ValueError
        If not exactly one target is given, or both limits.

    Notes
    -----
    A threshold of the loss is a curve in N and D: every size above the floor crosses
    it. That no small model can do it is a statement about tokens and compute.

    Examples
    --------
    >>> from chinchilla_lab import allocation
    >>> from chinchilla_lab.laws import BESIROGLU_2024
    >>> ten = allocation.optimal_for_params(BESIROGLU_2024, 10e9)
    >>> found = smallest_model_for(BESIROGLU_2024, loss=ten.L, C=2.61 * ten.C)
    >>> f"{found.N:.2e} {found.D:.2e}"
    '3.00e+09 1.76e+12'
    """
    if (loss is None) == (accuracy is None):
        raise ValueError(
            f"loss={loss!r} and accuracy={accuracy!r}: give exactly one target"
        )
    if D is not None and C is not None:
        raise ValueError(f"D={D!r} and C={C!r}: give one limit, or none for the floor")
    if isinstance(law, TwoStepLaw):
        first = law.law
        if accuracy is not None:
            loss = law.loss(accuracy)
    else:
        first = law
        if accuracy is not None:
            raise TypeError(
                f"{law.label} knows no accuracy; give a TwoStepLaw such as "
                "thresholds.SUITES['redpajama']"
            )
    closed = additive_law(first, "smallest model")
    assert loss is not None  # one target was given
    target = positive("loss", loss)
    best = optimal_for_loss(first, target)
    floor = least_params(first, target)
    if D is not None:
        target, tokens = np.broadcast_arrays(target, positive("D", D))
        N: Array = np.asarray(params_for_loss(first, tokens, target))
        used: Array = tokens
    elif C is not None:
        target, budget = np.broadcast_arrays(target, positive("C", C))
        k = _least_factor_for(closed, budget, np.asarray(best.C))
        N = np.asarray(best.N * k)
        used = np.asarray(best.D * overhead(closed, k).token_factor)
    else:
        N, used = np.asarray(floor), np.full(target.shape, np.inf)
    return SmallestModel(
        law=first,
        L=target[()],
        N=N[()],
        D=used[()],
        floor=floor,
        N_optimal=best.N,
        D_optimal=best.D,
    )


def _least_factor_for(law: AdditiveLaw, C: Array, least: Array) -> Array:
    """Return the k below 1 whose training compute is a given one, above the least."""
    budget, floor = np.broadcast_arrays(C, least)
    share = np.asarray(budget / floor)
    if np.any(share < 1.0 - 1e-12):
        i = np.unravel_index(int(np.argmin(share)), share.shape)
        raise InfeasibleError(
            f"C={budget[i]:.4g} FLOP is too little for the target: under {law.label} "
            f"the least compute that reaches it is {floor[i]:.4g} FLOP; give that, or "
            "aim at an easier target"
        )
    goal = np.log(np.maximum(share, 1.0))

    def rising(y: Array) -> Array:
        # tokens u = e^y run from 1 to endless while k falls to its floor
        lack = -np.expm1(-law.beta * y) * law.alpha / law.beta
        return np.asarray(y - np.log1p(lack) / law.alpha - goal)

    high = goal - np.log(least_size_factor(law)) + 1e-6
    y = bisect(rising, np.zeros(goal.shape), high, "the smallest size")
    lack = -np.expm1(-law.beta * y) * law.alpha / law.beta
    return np.asarray(np.exp(-np.log1p(lack) / law.alpha))
