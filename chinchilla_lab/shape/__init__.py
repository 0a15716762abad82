"""Shapes of transformers: what N counts, and what a token costs to train."""

from chinchilla_lab.shape.accounting import (
    CONVENTIONS,
    Convention,
    FlopCount,
    causal_crossover,
    compare_conventions,
    flops_per_token,
    optimizer_share,
    tokens_for_compute,
    training_compute,
)
from chinchilla_lab.shape.family import FAMILIES, shape_for, shapes_near
from chinchilla_lab.shape.known import SHAPES, a9_like, table_a9
from chinchilla_lab.shape.run import (
    TrainingTime,
    recompute_factor,
    steps_for_tokens,
    training_time,
)
from chinchilla_lab.shape.transformer import ParameterCount, TransformerShape

__all__ = [
    "CONVENTIONS",
    "FAMILIES",
    "SHAPES",
    "Convention",
    "FlopCount",
    "ParameterCount",
    "TrainingTime",
    "TransformerShape",
    "a9_like",
    "causal_crossover",
    "compare_conventions",
    "flops_per_token",
    "optimizer_share",
    "recompute_factor",
    "shape_for",
    "shapes_near",
    "steps_for_tokens",
    "table_a9",
    "tokens_for_compute",
    "training_compute",
    "training_time",
]
