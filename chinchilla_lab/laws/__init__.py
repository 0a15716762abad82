"""Scaling laws: equations are classes, publications are frozen constants."""

from chinchilla_lab.laws.families import (
    AdditiveLaw,
    AllocationLaw,
    DirectLaw,
    Fitted,
    KaplanLaw,
    Law,
    LossLaw,
    RatioLaw,
    RecountedLaw,
    RepeatedDataLaw,
)
from chinchilla_lab.laws.penalty import PenaltyLaw
from chinchilla_lab.laws.published import *  # noqa: F403 - the constants are the list
from chinchilla_lab.laws.published import __all__ as _published

__all__ = [
    "AdditiveLaw",
    "AllocationLaw",
    "DirectLaw",
    "Fitted",
    "KaplanLaw",
    "Law",
    "LossLaw",
    "PenaltyLaw",
    "RatioLaw",
    "RecountedLaw",
    "RepeatedDataLaw",
    *_published,
]
