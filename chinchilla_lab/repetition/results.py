"""Plans on few unique tokens, and what the laws behind them do not know."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chinchilla_lab.allocation.optimum import optimal_for_loss as base_for_loss
from chinchilla_lab.checks import (
    ExtrapolationWarning,
    positive,
)
from chinchilla_lab.laws.families import RepeatedDataLaw
from chinchilla_lab.laws.penalty import PenaltyLaw
from chinchilla_lab.laws.published import MUENNIGHOFF_2023_REPEATED
from chinchilla_lab.tables import html_table
from chinchilla_lab.units import FLOP_PER_ND, text

__all__ = [
    "EQUALLY_GOOD",
    "FOLLOWED_EPOCHS",
    "DataPlan",
    "RepetitionLaw",
    "cautions",
]

Array = NDArray[np.float64]
RepetitionLaw = RepeatedDataLaw | PenaltyLaw

FOLLOWED_EPOCHS = 14.0
"""Epochs up to which MUENNIGHOFF_2023_REPEATED followed the measured rows of 2.81B."""

EQUALLY_GOOD = tuple(
    MUENNIGHOFF_2023_REPEATED.with_(
        R_D=R_D,
        R_N=R_N,
        label=f"R_D* = {R_D:.3g}, R_N* = {R_N:.3g}",
    )
    if R_D != MUENNIGHOFF_2023_REPEATED.R_D
    else MUENNIGHOFF_2023_REPEATED
    for R_D, R_N in ((15.387756, 5.309743), (47.0, 2.33), (100.0, 1.68))
)
"""Pairs of scales that fit the authors' 182 runs almost equally well: summed Huber loss
.015826, .015807 and .015805 (recomputed, base law fixed). The published pair first."""


@dataclass(frozen=True, kw_only=True, eq=False)
class DataPlan:
    """A run on few unique tokens.

    Parameters
    ----------
    law : RepeatedDataLaw or PenaltyLaw
        The law, [-]
    unique : numpy.ndarray or float
        Unique tokens there are, U, [token]
    N : numpy.ndarray or float
        Parameters, [parameter]
    D : numpy.ndarray or float
        Training tokens with repeats, [token]
    L : numpy.ndarray or float
        Loss, [nats/token]
    T : numpy.ndarray or float, optional
        Tokens served over the lifetime, [token]
    """

    law: RepetitionLaw
    unique: Array
    N: Array
    D: Array
    L: Array
    T: Array | float = 0.0

    @property
    def C(self) -> Array:
        """Training compute 6ND, [FLOP]."""
        return FLOP_PER_ND * self.N * self.D

    @property
    def total(self) -> Array:
        """Lifetime compute 6ND + 2NT, [FLOP]."""
        return self.C + 2.0 * self.N * self.T

    @property
    def epochs(self) -> Array:
        """Passes over the unique tokens; below 1 some of them are left, [-]."""
        return self.D / self.unique

    @property
    def repeats(self) -> Array:
        """Passes after the first, R = epochs - 1, never below 0, [-]."""
        return np.maximum(self.epochs - 1.0, 0.0)

    @property
    def effective_tokens(self) -> Array:
        """Fresh tokens that would serve as well, [token].

        Known to laws that discount repeats; a law with a penalty has none.
        """
        if not isinstance(self.law, RepeatedDataLaw):
            raise TypeError(
                f"{self.law.label} adds a penalty and discounts no tokens; compare "
                "losses instead"
            )
        u = np.minimum(self.unique, self.D)
        return self.law.effective_tokens(u, np.maximum(self.D / u, 1.0))

    @property
    def kept(self) -> Array:
        """Effective tokens over tokens trained, [-]."""
        return self.effective_tokens / self.D

    @property
    def per_log_unique(self) -> Array:
        """Loss gained by e-folding the unique tokens, dL/dlnU, [nats/token]."""
        return -slope(self.law, self.N, self.D, self.unique, "unique")

    @property
    def per_log_compute(self) -> Array:
        """Loss gained by e-folding the compute at the optimum, dL/dlnC, [nats/token].

        Along the optimal path all of it may go to tokens, by the envelope theorem.
        """
        return -slope(self.law, self.N, self.D, self.unique, "D")

    @property
    def compute_share(self) -> Array:
        """Compute that unlimited data would need for this loss, over the spent, [-]."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExtrapolationWarning)
            return base_for_loss(self.law.base, self.L).C / self.C

    def cautions(self) -> list[str]:
        """Say what of this plan the law does not know."""
        return cautions(self.law, self.N, self.D, self.unique)

    def rows(self) -> list[list[str]]:
        """Return the plan as formatted cells, one row for each budget."""
        cells = np.broadcast_arrays(
            self.C, self.unique, self.N, self.D, self.epochs, self.repeats, self.L
        )
        return [
            [
                self.law.label,
                text(c, "FLOP"),
                text(u, "token"),
                text(n, "parameter"),
                text(d, "token"),
                f"{epochs:.2f}",
                f"{repeats:.2f}",
                f"{loss:.4f}",
            ]
            for c, u, n, d, epochs, repeats, loss in zip(
                *map(np.ravel, cells), strict=True
            )
        ]

    def _repr_html_(self) -> str:
        notes = "".join(f"<li>{note}</li>" for note in self.cautions())
        return html_table(HEADER, self.rows()) + f"<ul>{notes}</ul>"


HEADER = (
    "law",
    "C [FLOP]",
    "unique [token]",
    "N [parameter]",
    "D [token]",
    "epochs [-]",
    "repeats [-]",
    "L [nats/token]",
)


def slope(law: RepetitionLaw, N: Any, D: Any, unique: Any, by: str) -> Array:
    """Return -dL/dln of one argument, by a complex step."""
    moved: dict[str, Any] = {"N": N, "D": D, "unique": unique}
    moved[by] = np.asarray(moved[by]) * (1.0 + 1e-100j)
    found: Any = law._repeated(**moved)
    return np.asarray(-found.imag / 1e-100)[()]


def cautions(
    law: RepetitionLaw, N: ArrayLike, D: ArrayLike, unique: ArrayLike
) -> list[str]:
    """Say what a law of repeated data does not know about a plan.

    Parameters
    ----------
    law : RepeatedDataLaw or PenaltyLaw
        The law, [-]
    N : array_like
        Parameters, [parameter]
    D : array_like
        Training tokens with repeats, [token]
    unique : array_like
        Unique tokens, after deduplication, [token]

    Returns
    -------
    list of str
        One sentence a caution, [-]

    Examples
    --------
    >>> from chinchilla_lab.laws import MUENNIGHOFF_2023_REPEATED as law
    >>> for note in cautions(law, N=4e10, D=6e10, unique=6e10)[-1:]:
    ...     print(note)
    With one epoch and N above 3.06B the law lies above its base law: it calls those parameters surplus.
    """  # noqa: E501 - the sentence is one line, as a user sees it
    needs_repetition(law)
    n, d, u = np.broadcast_arrays(
        positive("N", N), positive("D", D), positive("unique", unique)
    )
    notes = [
        "Unique tokens are those left after deduplication, not the advertised size.",
        "Differences of loss transfer between settings, absolute losses do not.",
    ]
    if isinstance(law, PenaltyLaw):
        notes.append(
            "P, delta and kappa of the penalty are yours or illustrative: no published "
            "values were found."
        )
    else:
        notes.append(
            "R_D* is weakly identified: values of order 10 to 100 fit the runs equally "
            "well, see EQUALLY_GOOD."
        )
    epochs = d / u
    if epochs.max() > 1.0:
        notes.append(
            f"{text(float(epochs.max()), '')} epochs are "
            f"{text(float(epochs.max()) - 1.0, '')} repeats."
        )
    if isinstance(law, RepeatedDataLaw):
        if epochs.max() > FOLLOWED_EPOCHS:
            notes.append(
                f"Beyond {FOLLOWED_EPOCHS:.0f} epochs measured losses rise again, the "
                "law never does."
            )
        least = np.minimum(u, d)
        once = (epochs <= 1.0) & (n > law.useful_params(least) * (1.0 + 1e-9))
        if np.any(once):
            useful = float(np.min(np.asarray(law.useful_params(least))[once]))
            notes.append(
                f"With one epoch and N above {text(useful, 'parameter')} the law lies "
                "above its base law: it calls those parameters surplus."
            )
    return notes


def needs_discount(law: object, what: str) -> RepeatedDataLaw:
    """Return the law, typed as one that discounts repeats, or say which ones do."""
    if isinstance(law, RepeatedDataLaw):
        return law
    raise TypeError(
        f"law={getattr(law, 'label', law)!r} discounts no repeats, so it has no "
        f"{what}; use a RepeatedDataLaw such as MUENNIGHOFF_2023_REPEATED"
    )


def needs_repetition(law: object) -> RepetitionLaw:
    """Return the law, typed as one of repeated data, or say which ones are."""
    if isinstance(law, RepeatedDataLaw | PenaltyLaw):
        return law
    raise TypeError(
        f"law={getattr(law, 'label', law)!r} knows no repeated data; use "
        "MUENNIGHOFF_2023_REPEATED, or PenaltyLaw(base=law)"
    )
