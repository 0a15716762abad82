"""Why a fit is refused, and what a reader should doubt when it is not."""

__all__ = [
    "CountMismatchWarning",
    "DivergedRunsWarning",
    "EdgeMinimumError",
    "EdgeMinimumWarning",
    "FitWarning",
    "MixedCheckpointsError",
    "NoPowerLawError",
    "NotIdentifiableError",
    "RefusedFitError",
    "ShortRangeWarning",
    "TooFewRunsError",
    "UnstatedCountError",
    "WeakFitWarning",
    "WideGridWarning",
]


class RefusedFitError(ValueError):
    """The runs cannot answer the question; the message says why and what to do."""


class NotIdentifiableError(RefusedFitError):
    """Another law with another optimum describes the same runs equally well."""


class NoPowerLawError(RefusedFitError):
    """No law of this form describes the runs: losses do not fall as powers."""


class TooFewRunsError(RefusedFitError):
    """Fewer sizes, token counts, budgets or runs than the law has unknowns."""


class EdgeMinimumError(RefusedFitError):
    """Too few budgets have their best run inside the grid of sizes."""


class MixedCheckpointsError(RefusedFitError):
    """Losses from the middle of a schedule stand beside losses of finished runs."""


class UnstatedCountError(RefusedFitError):
    """Nobody said which parameters N counts, so no other law may be compared."""


class FitWarning(UserWarning):
    """A fit that answers, with a reason to doubt the answer."""


class ShortRangeWarning(FitWarning):
    """Sizes or token counts span less than a decade."""


class DivergedRunsWarning(FitWarning):
    """A few runs lie far from the law that describes the others."""


class EdgeMinimumWarning(FitWarning):
    """A budget has no minimum inside its grid and was left out."""


class WideGridWarning(FitWarning):
    """A parabola over a wide grid misses the minimum even without noise."""


class CountMismatchWarning(FitWarning):
    """The runs' compute is not 6ND, so an optimum in N and one in D disagree."""


class WeakFitWarning(FitWarning):
    """Starts or resamples disagree so much that the optimum is hardly known."""
