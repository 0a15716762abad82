"""Errors of the step model: predicted against measured, and order against order."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from chinchilla_lab.figures.style import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PURPLE,
    RED,
    SKY,
    Drawing,
    Series,
    draw_on_figure,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_errors", "plot_drift", "plot_parity", "plot_ranks"]

Array = NDArray[np.float64]
_LOOKS = (
    (BLUE, "o"),
    (GREEN, "s"),
    (SKY, "v"),
    (ORANGE, "D"),
    (PURPLE, "^"),
    (RED, "P"),
    (INK, "X"),
    (GREY, "*"),
)


def plot_parity(points: Mapping[str, tuple[Array, Array]]) -> Drawing:
    """Draw predicted against measured rates, by table, with a band of 5 %."""
    series: Series = {
        name: (true / 1e12, said / 1e12) for name, (true, said) in points.items()
    }
    line = np.array([50.0, 2000.0])

    def draw(ax: "Axes", shown: Series) -> None:
        ax.fill_between(line, 0.95 * line, 1.05 * line, color=GREY, alpha=0.25, lw=0,
                        label="within 5 %")  # fmt: skip
        ax.plot(line, line, color=GREY, lw=0.8)
        for (name, xy), (colour, mark) in zip(shown.items(), _LOOKS, strict=False):
            ax.plot(*xy, mark, color=colour, ms=5, alpha=0.8, label=name)
        for axis, low in (("x", 60.0), ("y", 60.0)):
            getattr(ax, f"set_{axis}scale")("log")
            getattr(ax, f"set_{axis}lim")(low, 1600.0)
            ticks = [100, 200, 400, 800, 1600]
            getattr(ax, f"set_{axis}ticks")(ticks, [f"{t}" for t in ticks])
        ax.minorticks_off()
        ax.set_xlabel("measured [TFLOP/s per accelerator]")
        ax.set_ylabel("predicted [TFLOP/s]")
        ax.legend(loc="lower right", fontsize=7.5)

    return draw_on_figure(draw, series, height=4.6)


def plot_ranks(true: Array, said: Mapping[str, Array]) -> Drawing:
    """Draw the rank that was predicted against the rank that was measured."""

    def ranks(x: Array) -> Array:
        order = np.argsort(np.argsort(x, kind="stable"), kind="stable")
        return order.astype(np.float64) + 1.0

    series: Series = {name: (ranks(true), ranks(x)) for name, x in said.items()}
    ends = np.array([0.5, len(true) + 0.5])

    def draw(ax: "Axes", shown: Series) -> None:
        ax.plot(ends, ends, color=GREY, lw=0.8)
        looks = zip((BLUE, ORANGE), ("o", "x"), strict=True)
        for (name, xy), (colour, mark) in zip(shown.items(), looks, strict=False):
            ax.plot(*xy, mark, color=colour, ms=7, mew=2, label=name)
        ax.set_xlim(*ends)
        ax.set_ylim(0.5, len(true) + 4.5)
        ticks = [1, 5, 10, len(true)]
        ax.set_xticks(ticks)
        ax.set_yticks(ticks)
        ax.set_xlabel("measured rank, 1 is the fastest")
        ax.set_ylabel("predicted rank")
        ax.legend(loc="upper left")

    return draw_on_figure(draw, series, height=3.8)


def plot_drift(lines: Mapping[str, tuple[Array, Array]]) -> Drawing:
    """Draw the error of speed against the size of the cluster."""
    series: Series = {name: (n, 100.0 * e) for name, (n, e) in lines.items()}

    def draw(ax: "Axes", shown: Series) -> None:
        looks = zip((BLUE, ORANGE), ("o-", "s--"), strict=True)
        for (name, xy), (colour, mark) in zip(shown.items(), looks, strict=False):
            ax.plot(*xy, mark, color=colour, label=name)
        ax.axhline(0.0, color=GREY, lw=0.8)
        ax.set_xscale("log", base=2)
        ax.set_xticks([256, 1024, 4096, 8192], ["256", "1,024", "4,096", "8,192"])
        ax.minorticks_off()
        ax.set_ylim(-5.0, 20.0)
        ax.set_xlabel("accelerators")
        ax.set_ylabel("predicted too fast by [%]")
        ax.legend(loc="upper left")

    return draw_on_figure(draw, series, height=3.2)


def draw_errors(ax: "Axes", series: Series) -> None:
    """Draw the error of each row beside that of the median MFU."""
    ax.fill(*series["band"], color=GREY, alpha=0.25, lw=0, gid="band", label="MAPE")
    ax.axhline(0.0, color=GREY, lw=0.8)
    ax.plot(*series["baseline"], "x", color=ORANGE, ms=6, mew=1.6, gid="baseline",
            label="median MFU")  # fmt: skip
    ax.plot(*series["model"], "o", color=BLUE, ms=5, gid="model", label="model")
    ax.set_xlim(0.0, 15.0)
    ax.set_ylim(-60.0, 100.0)
    ax.set_xticks([1, 5, 10, 14])
    ax.set_xlabel("row of the table")
    ax.set_ylabel("predicted speed, error [%]")
    ax.legend(loc="upper right")
