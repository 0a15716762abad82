"""Days of a run against accelerators."""

from typing import TYPE_CHECKING

import numpy as np

from chinchilla_lab.figures.style import BLUE, GREY, ORANGE, Series, log_axis
from chinchilla_lab.shape import training_time

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_days", "series_days"]


def series_days(C: float, n: float, peak: float, mfu: float) -> Series:
    """Days at a utilisation, and at the full peak that nobody reaches.

    Parameters
    ----------
    C : float
        Training compute, [FLOP]
    n : float
        Accelerators, [-]
    peak : float
        Dense peak of one, [FLOP/s]
    mfu : float
        Share of the peak that is reached, [-]

    Returns
    -------
    dict
        ``days``, ``ideal`` and ``yours``: accelerators [-] and time [day]
    """
    grid = np.geomspace(8, 65536, 41)
    return {
        "ideal": (grid, np.asarray(training_time(C, grid, peak, 1.0).days)),
        "days": (grid, np.asarray(training_time(C, grid, peak, mfu).days)),
        "yours": (np.array([n]), np.array([training_time(C, n, peak, mfu).days])),
    }


def draw_days(ax: "Axes", series: Series) -> None:
    """Draw days against accelerators."""
    ax.plot(*series["ideal"], ":", color=GREY, gid="ideal", label="at the full peak")
    ax.plot(*series["days"], color=BLUE, gid="days", label="at this mfu")
    ax.plot(
        *series["yours"], "D", color=ORANGE, ms=8, gid="yours", label="your cluster"
    )
    log_axis(ax, "x", 8, 65536, "count")
    log_axis(ax, "y", 1e-3, 1e5, "")
    ax.set_xlabel("accelerators")
    ax.set_ylabel("time [day]")
    ax.legend(loc="upper right")
