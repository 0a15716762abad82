"""Published runs against the intervals of their plans."""

from typing import TYPE_CHECKING

import numpy as np

from chinchilla_lab.figures.style import (
    BLUE,
    GREY,
    INK,
    ORANGE,
    Drawing,
    Series,
    draw_on_figure,
)
from chinchilla_lab.planning.coverage import Coverage

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_coverage"]


def plot_coverage(found: Coverage) -> Drawing:
    """Plot published hours and intervals of whole runs, over those of the plan."""
    # one row a run: of the sizes that its cluster may have had, the middle one
    by_run: dict[str, list[int]] = {}
    for i, r in enumerate(found.rows):
        by_run.setdefault(r.run, []).append(i)
    rows = [found.rows[ids[len(ids) // 2]] for ids in by_run.values()]
    y = np.arange(len(rows), dtype=float)

    def ends(which: str, end: int) -> np.ndarray:
        return np.array([getattr(r, which)[end] / r.planned for r in rows])

    series: Series = {
        "whole_low": (ends("whole", 0), y + 0.14),
        "whole_high": (ends("whole", 1), y + 0.14),
        "steps_low": (ends("steps", 0), y - 0.14),
        "steps_high": (ends("steps", 1), y - 0.14),
        "published": (np.array([r.hours / r.planned for r in rows]), y),
    }

    def draw(ax: "Axes", data: Series) -> None:
        ax.axvline(1.0, color=GREY, lw=0.8)
        for name, colour, mark, label in (
            ("steps", BLUE, "|", "90 %, steps only"),
            ("whole", ORANGE, "s", "90 %, whole run, itself left out"),
        ):
            low, at = data[f"{name}_low"]
            high, _ = data[f"{name}_high"]
            for i in range(len(rows)):
                ax.plot([low[i], high[i]], [at[i]] * 2, f"-{mark}", color=colour,
                        ms=5, label=label if i == 0 else None)  # fmt: skip
        ax.plot(*data["published"], "D", color=INK, ms=6, ls="", label="published")
        ax.set_xscale("log")
        ax.set_xlim(0.3, 10.0)
        ax.set_xticks([0.5, 1, 2, 4, 8], labels=["0.5", "1", "2", "4", "8"])
        ax.minorticks_off()
        ax.set_yticks(y, labels=[f"{r.model}, {r.n_accelerators:,}" for r in rows])
        ax.set_ylim(len(rows) + 1.0, -0.7)
        ax.set_xlabel("accelerator-hours over those of the plan [-]")
        ax.legend(loc="lower right", ncol=1)
        ax.figure.subplots_adjust(left=0.36)

    return draw_on_figure(draw, series, height=4.0)
