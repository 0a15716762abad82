r"""Training on few unique tokens: what a repeat is worth, and what to do about it.

Two laws stand side by side. In MUENNIGHOFF_2023_REPEATED each repeat is worth a little
less, so more epochs never harm; in :class:`~chinchilla_lab.laws.PenaltyLaw` they do. A
law of each kind answers :func:`optimal`, and :func:`cautions` says what neither knows.
"""

from chinchilla_lab.laws.families import RepeatedDataLaw
from chinchilla_lab.laws.penalty import PenaltyLaw
from chinchilla_lab.repetition.choices import (
    Choice,
    Choices,
    accumulated_variance,
    break_even_quality,
    loss_with_added,
    three_choices,
)
from chinchilla_lab.repetition.corpora import (
    CORPORA,
    Corpus,
    Passes,
    corpora_table,
    passes,
)
from chinchilla_lab.repetition.measured import (
    MEASURED,
    Measured,
    added_loss,
    measured_series,
)
from chinchilla_lab.repetition.penalties import best_epochs, matched_penalty
from chinchilla_lab.repetition.plans import DataHedge, hedge, optimal
from chinchilla_lab.repetition.results import (
    EQUALLY_GOOD,
    FOLLOWED_EPOCHS,
    DataPlan,
    RepetitionLaw,
    cautions,
)
from chinchilla_lab.repetition.targets import (
    least_unique,
    optimal_for_loss,
    tokens_for_loss,
)
from chinchilla_lab.repetition.value import effective_tokens, marginal_value

__all__ = [
    "CORPORA",
    "EQUALLY_GOOD",
    "FOLLOWED_EPOCHS",
    "MEASURED",
    "Choice",
    "Choices",
    "Corpus",
    "DataHedge",
    "DataPlan",
    "Measured",
    "Passes",
    "PenaltyLaw",
    "RepeatedDataLaw",
    "RepetitionLaw",
    "accumulated_variance",
    "added_loss",
    "best_epochs",
    "break_even_quality",
    "cautions",
    "corpora_table",
    "effective_tokens",
    "hedge",
    "least_unique",
    "loss_with_added",
    "marginal_value",
    "matched_penalty",
    "measured_series",
    "optimal",
    "optimal_for_loss",
    "passes",
    "three_choices",
    "tokens_for_loss",
]
