"""One budget as a line in the plane of N and D, with the optima of several laws."""

from typing import TYPE_CHECKING

import numpy as np

from chinchilla_lab.allocation.compare import default_interval
from chinchilla_lab.allocation.optimum import compute_optimal
from chinchilla_lab.figures.style import BLUE, GREY, ORANGE, SKY, Series, log_axis
from chinchilla_lab.laws import PUBLISHED, SPREAD

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_budget", "series_budget"]


def series_budget(C: float, law: str, spread: bool) -> Series:
    """Every split of a budget, and the splits that laws choose.

    Parameters
    ----------
    C : float
        Training compute, [FLOP]
    law : str
        Key of the chosen law, [-]
    spread : bool
        Whether the other laws are drawn, [-]

    Returns
    -------
    dict
        ``line``, ``optimum``, ``others`` and ``interval`` in N [parameter] and D
        [token]
    """
    N = np.geomspace(1e5, 1e15, 41)
    plan = compute_optimal(PUBLISHED[law], C)
    sizes = np.zeros(0)
    if spread:
        rest = [PUBLISHED[name] for name in SPREAD if name != law]
        sizes = np.array([float(compute_optimal(each, C).N) for each in rest])
    low, high = (float(x) for x in default_interval(C).N)
    ends = np.geomspace(low, high, 9) if spread else np.zeros(0)
    nd = C / 6.0
    return {
        "line": (N, nd / N),
        "interval": (ends, nd / ends),
        "others": (sizes, nd / sizes),
        "optimum": (np.array([plan.N]), np.array([plan.D])),
    }


def draw_budget(ax: "Axes", series: Series) -> None:
    """Draw the budget line and the optima on it."""
    ratio = np.array([1e5, 1e15])
    ax.plot(ratio, 20 * ratio, ":", color=GREY, lw=1.2, label="20 tokens per parameter")
    ax.plot(*series["line"], color=BLUE, gid="line", label="6ND = C")
    ax.plot(
        *series["interval"],
        color=SKY,
        lw=7,
        alpha=0.5,
        gid="interval",
        label="90 % of resamples",
        solid_capstyle="butt",
    )
    ax.plot(
        *series["others"], "o", color=ORANGE, mfc="none", ms=6, gid="others",
        label="other laws",
    )  # fmt: skip
    ax.plot(*series["optimum"], "D", color=BLUE, ms=8, gid="optimum", label="this law")
    log_axis(ax, "x", 1e6, 1e14, "parameter", every=2)
    log_axis(ax, "y", 1e7, 1e16, "token", every=2)
    ax.set_xlabel("parameters N")
    ax.set_ylabel("training tokens D")
    ax.legend(loc="upper right", fontsize=8)
