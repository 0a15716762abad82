"""The loss that a plan reaches when its tokens repeat, and the tokens for a loss."""

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from chinchilla_lab.allocation.solving import additive
from chinchilla_lab.allocation.targets import tokens_for_loss
from chinchilla_lab.checks import InfeasibleError
from chinchilla_lab.laws.families import Fitted, Law, LossLaw, RepeatedDataLaw
from chinchilla_lab.laws.published import MUENNIGHOFF_2023_REPEATED
from chinchilla_lab.units import text

__all__ = ["DataLimit"]

Array = NDArray[np.float64]
FLAT = 1e-4  # nats that more worn tokens, or a larger model, must gain to count
MOST_EPOCHS, LARGE = 1e4, 1e18  # where repeats and parameters have worn out entirely
L = TypeVar("L", bound=Law)


@lru_cache(maxsize=64)
def silent(law: L) -> L:
    """Return a law that does not warn: a search asks it far and wide.

    The plan that comes out is held against the fitted range once, by the law itself.
    """
    return replace(law, fitted=Fitted())


@dataclass(frozen=True, kw_only=True, eq=False)
class DataLimit:
    """A law and the unique tokens that there are.

    Parameters
    ----------
    law : LossLaw
        The law for fresh tokens, or one for repeated tokens, [-]
    unique : float, optional
        Unique tokens; None for as many as are wanted, [token]

    Notes
    -----
    Tokens up to ``unique`` are fresh and count as the law says. Beyond, repeats wear
    out with the constants of ``muennighoff-2023-repeated`` unless the law brings its
    own. These constants are weakly identified, and the law knows no overfitting.

    References
    ----------
    :cite:`muennighoff2023scaling`, section 3
    """

    law: LossLaw
    unique: float | None = None

    @cached_property
    def _parts(self) -> tuple[LossLaw, RepeatedDataLaw]:
        if isinstance(self.law, RepeatedDataLaw):
            return self.law.base, self.law
        base = additive(self.law)
        if base is None:
            raise TypeError(
                f"{self.law.label} has no additive form that repeats could wear; use a "
                "law such as besiroglu-2024, or leave unique_tokens out"
            )
        worn = MUENNIGHOFF_2023_REPEATED
        return self.law, RepeatedDataLaw(base=base, R_D=worn.R_D, R_N=worn.R_N)

    def loss(self, N: Array, D: Array) -> Array:
        """Return the loss of N parameters on D tokens, repeats worn.

        Parameters
        ----------
        N : numpy.ndarray
            Parameters, counted as the law says, [parameter]
        D : numpy.ndarray
            Tokens including repeats, [token]

        Returns
        -------
        numpy.ndarray or float
            Loss, [nats/token]
        """
        if self.unique is None:
            return self.law._loss(N, D)
        fresh, worn = self._parts
        U = np.asarray(self.unique)
        tokens = np.maximum(D, U)
        repeated = worn._worn(np.asarray(N), worn._tokens(U, tokens / U), U)
        return np.where(D <= U, fresh._loss(N, D), repeated)[()]

    def tokens(self, N: Array, L: float) -> Array:
        """Return the tokens with which each size reaches a loss.

        Parameters
        ----------
        N : numpy.ndarray
            Parameters, counted as the law says, [parameter]
        L : float
            Loss, [nats/token]

        Returns
        -------
        numpy.ndarray or float
            Tokens including repeats; NaN where none suffice, [token]
        """
        n = np.asarray(N, dtype=np.float64)
        if self.unique is None:
            return tokens_for_loss(silent(self.law), n, L, infeasible="nan")
        fresh, worn = self._parts
        plain = np.asarray(tokens_for_loss(silent(fresh), n, L, infeasible="nan"))
        if np.all(plain <= self.unique):
            return plain[()]
        # beyond the unique tokens the size counts as far as it works; the fresh tokens
        # that it would need turn into passes
        U = np.asarray(self.unique)
        base = silent(worn.base)
        wanted = tokens_for_loss(base, worn._params(n, U), L, infeasible="nan")
        with np.errstate(invalid="ignore", divide="ignore"):
            epochs = worn._epochs(U, np.asarray(wanted))
            again = np.where(epochs <= MOST_EPOCHS, epochs * U, np.nan)
            return np.where(plain <= U, plain, again)[()]

    def floor(self, N: float | None = None) -> float:
        """Return the loss that no number of repeats gets below.

        Parameters
        ----------
        N : float, optional
            Parameters, counted as the law says; None for the best size, which is any
            large one, since parameters wear out too, [parameter]

        Returns
        -------
        float
            Loss; minus infinity without a limit of unique tokens, [nats/token]
        """
        if self.unique is None:
            return -np.inf
        size = LARGE if N is None else N
        return float(self.loss(np.asarray(size), np.asarray(self.unique * MOST_EPOCHS)))

    @property
    def as_good_as_floor(self) -> float:
        """Loss so close to the floor that more time is not worth it, [nats/token]."""
        return self.floor() + FLAT

    def worn_out(self, N: float, D: float) -> bool:
        """Say whether twice the tokens would lower the loss no more.

        Parameters
        ----------
        N : float
            Parameters, counted as the law says, [parameter]
        D : float
            Tokens including repeats, [token]

        Returns
        -------
        bool
            True beyond the unique tokens where a doubling gains below 1e-4, [-]
        """
        if self.unique is None or self.unique >= D:
            return False
        one, two = self.loss(np.full(2, N), np.array([D, 2.0 * D]))
        return bool(one - two < FLAT)

    def refuse(self, L: float) -> None:
        """Say why no size in reach meets a loss.

        Parameters
        ----------
        L : float
            Loss, [nats/token]

        Raises
        ------
        InfeasibleError
            Always.
        """
        data = "" if self.unique is None else (
            f" with {text(self.unique, 'token')} unique tokens"
        )  # fmt: skip
        raise InfeasibleError(
            f"target_loss={L:.6g} is out of reach of every size that was tried{data} "
            f"under {self.law.label}; aim at a higher loss, or find more unique tokens"
        )
