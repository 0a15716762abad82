"""From runs to a law, with an interval or a refusal that says why not."""

from chinchilla_lab.fitting.curve import PowerCurve, fit_curve
from chinchilla_lab.fitting.design import crossed, design_factor, simulate_runs
from chinchilla_lab.fitting.envelope import fit_envelope
from chinchilla_lab.fitting.fitted import (
    Estimates,
    FittedAllocation,
    FittedLaw,
    FittedLossLaw,
    Valley,
    load_law,
)
from chinchilla_lab.fitting.isoflop import fit_isoflop, isoflop_bias
from chinchilla_lab.fitting.judging import check_runs
from chinchilla_lab.fitting.parametric import fit_parametric, log_residuals
from chinchilla_lab.fitting.reading import example_csv, example_runs, read_runs
from chinchilla_lab.fitting.refusals import (
    CountMismatchWarning,
    DivergedRunsWarning,
    EdgeMinimumError,
    EdgeMinimumWarning,
    FitWarning,
    MixedCheckpointsError,
    NoPowerLawError,
    NotIdentifiableError,
    RefusedFitError,
    ShortRangeWarning,
    TooFewRunsError,
    UnstatedCountError,
    WeakFitWarning,
    WideGridWarning,
)
from chinchilla_lab.fitting.runs import Runs

__all__ = [
    "CountMismatchWarning",
    "DivergedRunsWarning",
    "EdgeMinimumError",
    "EdgeMinimumWarning",
    "Estimates",
    "FitWarning",
    "FittedAllocation",
    "FittedLaw",
    "FittedLossLaw",
    "MixedCheckpointsError",
    "NoPowerLawError",
    "NotIdentifiableError",
    "PowerCurve",
    "RefusedFitError",
    "Runs",
    "ShortRangeWarning",
    "TooFewRunsError",
    "UnstatedCountError",
    "Valley",
    "WeakFitWarning",
    "WideGridWarning",
    "check_runs",
    "crossed",
    "design_factor",
    "example_csv",
    "example_runs",
    "fit_curve",
    "fit_envelope",
    "fit_isoflop",
    "fit_parametric",
    "isoflop_bias",
    "load_law",
    "log_residuals",
    "read_runs",
    "simulate_runs",
]
