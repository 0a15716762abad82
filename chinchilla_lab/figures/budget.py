"""One budget as a line in the plane of N and D, with the optima of several laws."""

from typing import TYPE_CHECKING

import numpy as np

from chinchilla_lab.allocation.intervals import default_interval
from chinchilla_lab.allocation.optimum import compute_optimal
from chinchilla_lab.figures.style import BLUE, GREY, ORANGE, SKY, Series, log_axis
from chinchilla_lab.laws import PUBLISHED, SPREAD
from chinchilla_lab.units import FLOP_PER_ND

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_budget", "draw_rows", "series_budget"]


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
        [token]; ``row-<law>`` and ``row-interval`` in N over this law's N [-]
    """
    N = np.geomspace(1e5, 1e15, 41)
    plan = compute_optimal(PUBLISHED[law], C)
    sizes = np.zeros(0)
    if spread:
        rest = [PUBLISHED[name] for name in SPREAD if name != law]
        sizes = np.array([float(compute_optimal(each, C).N) for each in rest])
    low, high = (float(x) for x in default_interval(C).N)
    ends = np.geomspace(low, high, 9) if spread else np.zeros(0)
    nd = C / FLOP_PER_ND
    rows = {
        f"row-{name}": (
            np.array([float(compute_optimal(PUBLISHED[name], C).N) / float(plan.N)]),
            np.array([-float(row)]),
        )
        if spread or name == law
        else (np.zeros(0), np.zeros(0))
        for row, name in enumerate(SPREAD)
    }
    x = np.array([low, high, high, low]) / float(plan.N)
    y = np.array([-0.3, -0.3, 0.3, 0.3])
    return rows | {
        "row-interval": (x, y) if spread else (x, 0.0 * y + 9.0),
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
    ax.figure.subplots_adjust(left=0.2)
    ax.legend(loc="upper right", fontsize=8)


def draw_rows(ax: "Axes", series: Series) -> None:
    """Draw each law's size over the chosen law's, one row a law."""
    ax.axvline(1.0, color=BLUE, lw=1.2)
    ax.fill(*series["row-interval"], facecolor=SKY, alpha=0.4, gid="row-interval")
    for row, name in enumerate(SPREAD):
        key = f"row-{name}"
        marker = "D" if row == 0 else "o"
        ax.plot(*series[key], marker, color=ORANGE, ms=6, gid=key)
    ax.set_xscale("log")
    ax.set_xlim(0.05, 50.0)
    ax.minorticks_off()
    ticks = [0.1, 0.3, 1.0, 3.0, 10.0, 30.0]
    ax.set_xticks(ticks, [f"{t:g}" for t in ticks])
    ax.set_ylim(-len(SPREAD) + 0.4, 0.6)
    labels = [PUBLISHED[name].label for name in SPREAD]
    ax.set_yticks([-float(row) for row in range(len(SPREAD))], labels)
    ax.tick_params(axis="y", labelsize=7.5, length=0)
    ax.set_xlabel("optimal size over that of the chosen law")
    ax.figure.subplots_adjust(left=0.36)
