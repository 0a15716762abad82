"""Capabilities with a threshold: in the loss, in a score, or in size itself.

A threshold of the loss is a curve in N and D that every size above a floor crosses;
what differs is the price. A threshold of a score adds a second step and its error. The
choice of the metric moves a cliff without making it.
"""

from chinchilla_lab.thresholds.crossing import (
    Crossing,
    crossing_cost,
    crossing_with_tokens,
    neutral_bonus,
    size_beyond_loss,
    tie_demand,
)
from chinchilla_lab.thresholds.links import (
    GADRE_2024_C4_ERROR,
    GADRE_2024_RPJ_ERROR,
    GADRE_2024_RW_ERROR,
    LADDER_HELLASWAG,
    SUITES,
    ExponentialError,
    SigmoidAccuracy,
    TwoStepLaw,
    price_of_accuracy,
)
from chinchilla_lab.thresholds.measured import (
    Forecasts,
    MeasuredCrossing,
    ladder_forecasts,
    measured_crossing,
)
from chinchilla_lab.thresholds.metric import (
    compute_for_exact_match,
    exact_match,
    exact_match_width,
    loss_for_exact_match,
    transition_decades,
)
from chinchilla_lab.thresholds.smallest import SmallestModel, smallest_model_for

__all__ = [
    "GADRE_2024_C4_ERROR",
    "GADRE_2024_RPJ_ERROR",
    "GADRE_2024_RW_ERROR",
    "LADDER_HELLASWAG",
    "SUITES",
    "Crossing",
    "ExponentialError",
    "Forecasts",
    "MeasuredCrossing",
    "SigmoidAccuracy",
    "SmallestModel",
    "TwoStepLaw",
    "compute_for_exact_match",
    "crossing_cost",
    "crossing_with_tokens",
    "exact_match",
    "exact_match_width",
    "ladder_forecasts",
    "loss_for_exact_match",
    "measured_crossing",
    "neutral_bonus",
    "price_of_accuracy",
    "size_beyond_loss",
    "smallest_model_for",
    "tie_demand",
    "transition_decades",
]
