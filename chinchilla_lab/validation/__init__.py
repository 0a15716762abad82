"""How wrong the cluster models are: published runs against what the library says.

``python -m chinchilla_lab.validation`` prints the table that the book shows.
"""

from chinchilla_lab.validation.ablation import Ablation, ablate, seconds_without
from chinchilla_lab.validation.bytes import (
    MEMORY_TABLES,
    MemoryScore,
    identities,
    memory_score,
    memory_verdict,
)
from chinchilla_lab.validation.plans import (
    RankingScore,
    plan_times,
    rank_correlation,
    ranking,
    ranking_table,
    ranking_verdict,
)
from chinchilla_lab.validation.published import UNUSED, measured
from chinchilla_lab.validation.report import (
    report,
    validation_rows,
    validation_table,
)
from chinchilla_lab.validation.speed import (
    TABLES,
    Score,
    Table,
    median_mfu_errors,
    one_stack,
    rates,
    score,
    scored_rows,
    scores,
)

__all__ = [
    "MEMORY_TABLES",
    "TABLES",
    "UNUSED",
    "Ablation",
    "MemoryScore",
    "RankingScore",
    "Score",
    "Table",
    "ablate",
    "identities",
    "measured",
    "median_mfu_errors",
    "memory_score",
    "memory_verdict",
    "one_stack",
    "plan_times",
    "rank_correlation",
    "ranking",
    "ranking_table",
    "ranking_verdict",
    "rates",
    "report",
    "score",
    "scored_rows",
    "scores",
    "seconds_without",
    "validation_rows",
    "validation_table",
]
