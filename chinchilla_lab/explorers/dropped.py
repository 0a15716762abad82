"""Explorer: do outliers average out?"""

from typing import TYPE_CHECKING

import numpy as np

from chinchilla_lab.explorers.core import Explorer, Panel, Reading, Slider
from chinchilla_lab.figures.fitting import dropped_table
from chinchilla_lab.figures.style import BLUE, GREY, ORANGE, SKY, Series

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["EXPLORER"]


def _series(count: float) -> Series:
    rows = dropped_table()
    x = np.array([row["dropped"] for row in rows])
    y = np.array([row["tokens_per_param"] for row in rows])
    row = rows[int(count)]
    return {
        "ratio": (x, y),
        "here": (np.array([row["dropped"]]), np.array([row["tokens_per_param"]])),
        "interval": (np.full(2, row["dropped"]), np.array([row["p5"], row["p95"]])),
    }


def _readout(count: float) -> tuple[Reading, ...]:
    row = dropped_table()[int(count)]
    return (
        Reading(
            label="tokens per parameter at 5.76e23 FLOP",
            text=f"{row['tokens_per_param']:.1f}",
            value=row["tokens_per_param"],
        ),
        Reading(label="90 % interval", text=f"{row['p5']:.1f} to {row['p95']:.1f}"),
        Reading(label="runs left", text=f"{row['runs']:.0f} of 245"),
        Reading(label="alpha", text=f"{row['alpha']:.4f}", value=row["alpha"]),
        Reading(label="beta", text=f"{row['beta']:.4f}", value=row["beta"]),
    )


def _draw(ax: "Axes", series: Series) -> None:
    ax.plot(*series["interval"], color=SKY, lw=5, gid="interval", label="90 % interval")
    ax.plot(*series["ratio"], "o-", color=BLUE, lw=1, ms=4, gid="ratio", label="refit")
    ax.plot(*series["here"], "D", color=ORANGE, ms=8, gid="here", label="chosen")
    ax.axhline(20.0, color=GREY, ls=":", lw=1)
    ax.set_xlim(-0.5, 8.5)
    ax.set_ylim(0.0, 40.0)
    ax.set_xlabel("runs of the highest loss dropped")
    ax.set_ylabel("tokens per parameter")
    ax.legend(loc="upper left")


EXPLORER = Explorer(
    name="dropped",
    title="Do outliers average out?",
    controls=(
        Slider(
            name="count", low=0, high=8, value=5, step=1,
            label="runs of the highest loss dropped, of 245",
        ),
    ),
    series=_series,
    panels=(
        Panel(
            draw=_draw,
            title="Refits of the digitised Chinchilla runs",
            alt="Tokens per parameter at Chinchilla's budget: a staircase from 7 with "
            "all runs to about 18 once five are dropped.",
            width=4.1,
        ),
    ),
    readout=_readout,
)  # fmt: skip
