"""Pictures of fits: what runs know, what they cannot know, and what breaks."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from chinchilla_lab.allocation.intervals import interval
from chinchilla_lab.allocation.solving import optimum
from chinchilla_lab.figures.laws import LADDER
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
    legend_above,
    log_axis,
)
from chinchilla_lab.fitting import FittedLossLaw, Runs, isoflop_bias
from chinchilla_lab.laws import BESIROGLU_2024, HOFFMANN_2022_PRINTED
from chinchilla_lab.laws.families import AdditiveLaw, DirectLaw, Law
from chinchilla_lab.sources import read_rows
from chinchilla_lab.units import FLOP_PER_ND

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "dropped_table",
    "plot_approaches",
    "plot_bias",
    "plot_dropped",
    "plot_intervals",
    "plot_ladder_lines",
    "plot_mirror",
    "plot_overtraining",
    "plot_recovery",
    "plot_stopping",
]

_COLOURS = (RED, ORANGE, PURPLE, SKY, BLUE)
_DASHES = (":", "-.", "--", (0, (5, 1)), "-")


def dropped_table() -> list[dict[str, float]]:
    """Return the refits of the Chinchilla runs without their highest losses."""
    return [
        {key: float(cell) for key, cell in row.items()}
        for row in read_rows("besiroglu2024_dropped.csv")
    ]


def _sizes(law: Law, C: np.ndarray) -> np.ndarray:
    if isinstance(law, DirectLaw):
        return np.asarray(law.optimum(C)[0])
    assert isinstance(law, AdditiveLaw)
    return np.asarray(optimum(law, C)[0])


def plot_recovery(law: FittedLossLaw, truth: AdditiveLaw, runs: Runs) -> Drawing:
    """Draw the optimum that a fit finds, its interval, and the truth."""
    C = np.geomspace(1e19, 1e26, 57)
    best = _sizes(truth, C)
    low, high = (np.asarray(end) / best for end in interval(law, C).N)
    series: Series = {
        "band": (np.r_[C, C[::-1]], np.r_[low, high[::-1]]),
        "truth": (C, np.ones_like(C)),
        "fit": (C, _sizes(law, C) / best),
    }

    def draw(ax: "Axes", shown: Series) -> None:
        ax.axvspan(1e19, runs.C.max(), color=GREY, alpha=0.12, lw=0)
        ax.annotate("compute of the runs", (1.4e19, 1.33), fontsize=8)
        ax.fill(*shown["band"], color=BLUE, alpha=0.25, lw=0, label="90 % interval")
        ax.plot(*shown["truth"], color=ORANGE, label="truth")
        ax.plot(*shown["fit"], "--", color=BLUE, label="fit")
        log_axis(ax, "x", 1e19, 1e26, "FLOP")
        ax.set_ylim(0.7, 1.4)
        ax.set_xlabel("training compute C [FLOP]")
        ax.set_ylabel("optimal size N* over the true one")
        ax.legend(loc="lower left")

    return draw_on_figure(draw, series)


def plot_approaches(laws: Mapping[str, Law], truth: AdditiveLaw, C: float) -> Drawing:
    """Draw what each approach says of one budget, over the truth."""
    names = list(laws)
    here = np.array([C])
    best = float(_sizes(truth, here)[0])
    values = np.array([float(_sizes(law, here)[0]) for law in laws.values()]) / best
    ends = np.array([interval(law, C).N for law in laws.values()]) / best
    series: Series = {"found": (values, np.arange(len(names), dtype=np.float64))}

    def draw(ax: "Axes", shown: Series) -> None:
        x, y = shown["found"]
        ax.axvline(1.0, color=ORANGE, lw=1.4)
        ax.hlines(y, ends[:, 0], ends[:, 1], color=BLUE, lw=3, alpha=0.5)
        ax.plot(x, y, "o", color=BLUE, ms=7)
        ax.set_yticks(y, names)
        ax.set_ylim(-0.6, len(names) - 0.4)
        ax.invert_yaxis()
        ax.set_xlim(0.6, 1.6)
        ax.set_xlabel("N* found over the true N*")

    drawing = draw_on_figure(draw, series, height=2.6)
    drawing.figure.subplots_adjust(left=0.25)
    return drawing


def plot_mirror(runs: Runs, law: AdditiveLaw, C: float) -> Drawing:
    """Draw runs of one ratio and the two plans that they support equally."""
    ratio = float(np.median(runs.D / runs.N))
    N = float(_sizes(law, np.array([C]))[0])
    D = C / FLOP_PER_ND / N
    line = np.geomspace(3e7, 1e12, 31)
    series: Series = {
        "line": (line, ratio * line),
        "runs": (runs.N, runs.D),
        "budget": (line, C / FLOP_PER_ND / line),
        "plans": (np.array([N, D / ratio]), np.array([D, ratio * N])),
    }

    def draw(ax: "Axes", shown: Series) -> None:
        ax.plot(*shown["line"], ":", color=GREY, label=f"D = {ratio:.0f} N")
        ax.plot(*shown["budget"], color=GREY, lw=1, label="one budget")
        ax.plot(*shown["runs"], "o", color=BLUE, ms=4, label="runs")
        ax.plot(
            *shown["plans"], "D", color=ORANGE, ms=8, label="two plans, equal right"
        )
        log_axis(ax, "x", 3e7, 1e12, "parameter")
        log_axis(ax, "y", 5e8, 1e14, "token")
        ax.set_xlabel("parameters N")
        ax.set_ylabel("training tokens D")
        ax.legend(loc="upper left")

    return draw_on_figure(draw, series)


def plot_dropped() -> Drawing:
    """Draw the ratio at Chinchilla's budget against the highest losses dropped."""
    rows = dropped_table()
    x = np.array([row["dropped"] for row in rows])
    y = np.array([row["tokens_per_param"] for row in rows])
    low = np.array([row["p5"] for row in rows])
    high = np.array([row["p95"] for row in rows])
    series: Series = {"ratio": (x, y)}

    def draw(ax: "Axes", shown: Series) -> None:
        ax.vlines(x, low, high, color=BLUE, lw=5, alpha=0.3, label="90 % interval")
        ax.step(*shown["ratio"], where="mid", color=BLUE, lw=1)
        ax.plot(*shown["ratio"], "o", color=BLUE)
        ax.axvline(5, color=ORANGE, ls=":", label="the rule of the replication")
        ax.set_ylim(0, 40)
        ax.set_xlabel("runs of the highest loss dropped, of 245")
        ax.set_ylabel("tokens per parameter at 5.76e23")
        ax.legend(loc="upper left")

    return draw_on_figure(draw, series, height=3.4)


def plot_bias() -> Drawing:
    """Draw how far a parabola misses without any noise, against the grid's width."""
    factor = np.geomspace(1.2, 100.0, 60)
    laws = {
        "exponents of Hoffmann, printed": HOFFMANN_2022_PRINTED,
        "exponents of Besiroglu": BESIROGLU_2024,
    }
    series: Series = {
        name: (factor, 100.0 * isoflop_bias(law, factor)) for name, law in laws.items()
    }

    def draw(ax: "Axes", shown: Series) -> None:
        for (name, xy), colour, dash in zip(
            shown.items(), (ORANGE, BLUE), ("-", "--"), strict=True
        ):
            ax.plot(*xy, dash, color=colour, label=name)
        ax.axhline(0.0, color=GREY, lw=0.8)
        ax.set_xscale("log")
        ax.set_xticks([2, 4, 16, 100], ["×2", "×4", "×16", "×100"])
        ax.minorticks_off()
        ax.set_xlim(1.2, 100)
        ax.set_xlabel("half-width of the grid of sizes")
        ax.set_ylabel("error of N* [%]")
        ax.legend(loc="upper left")

    return draw_on_figure(draw, series, height=3.4)


def plot_stopping() -> Drawing:
    """Draw the objective of three runs of one optimiser against the iteration."""
    series: Series = {}
    for row in read_rows("besiroglu2024_stopping.csv"):
        x, y = series.setdefault(row["setting"], (np.zeros(0), np.zeros(0)))
        series[row["setting"]] = (
            np.append(x, float(row["iteration"])),
            np.append(y, 1e3 * float(row["objective"])),
        )

    def draw(ax: "Axes", shown: Series) -> None:
        for (name, xy), colour, dash in zip(
            shown.items(), (ORANGE, RED, BLUE), ("-", "--", "-"), strict=True
        ):
            ax.plot(*xy, dash, color=colour, label=name)
            ax.plot(xy[0][-1:], xy[1][-1:], "o", color=colour, ms=6)
        ax.axhline(series["sum times 1e4, tight"][1].min(), color=GREY, lw=0.8, ls=":")
        ax.set_ylim(1.0, 1.24)
        ax.set_xlabel("iterations of L-BFGS-B")
        ax.set_ylabel("objective, thousandths")
        ax.legend(loc="upper right")

    return draw_on_figure(draw, series, height=3.4)


def plot_intervals() -> Drawing:
    """Draw published and refitted exponents of the Chinchilla runs with intervals."""
    rows = {int(row["dropped"]): row for row in dropped_table()}
    published = BESIROGLU_2024
    table = {
        "Hoffmann, printed": (0.34, 0.28),
        "Besiroglu, published": (published.alpha, published.beta),
        "refit, Huber 1e-3": (rows[5]["alpha"], rows[5]["beta"]),
        "refit, all 245 runs": (rows[0]["alpha"], rows[0]["beta"]),
    }
    values = np.array(list(table.values()))
    series: Series = {
        "alpha": (values[:, 0], np.arange(4.0) - 0.1),
        "beta": (values[:, 1], np.arange(4.0) + 0.1),
    }

    def draw(ax: "Axes", shown: Series) -> None:
        for place, dropped in ((2, 5), (3, 0)):
            for letter, shift, colour in (("alpha", -0.1, BLUE), ("beta", 0.1, ORANGE)):
                low, high = (rows[dropped][f"{letter}_{end}"] for end in ("p5", "p95"))
                ax.hlines(place + shift, low, high, color=colour, lw=5, alpha=0.3)
        ax.plot(*shown["alpha"], "o", color=BLUE, label="alpha")
        ax.plot(*shown["beta"], "s", color=ORANGE, label="beta")
        ax.set_yticks(np.arange(4), list(table))
        ax.invert_yaxis()
        ax.set_xlim(0.25, 0.5)
        ax.set_xlabel("exponent")
        legend_above(ax, ncols=2)

    drawing = draw_on_figure(draw, series, height=3.0)
    drawing.figure.subplots_adjust(left=0.27)
    return drawing


def plot_ladder_lines() -> Drawing:
    """Draw the five lines of Porian et al. over their range and on to Chinchilla's."""
    C = np.geomspace(1e16, 1e24, 25)
    series: Series = {
        name: (C, np.asarray(law.optimum(C)[0])) for name, law in LADDER.items()
    }

    def draw(ax: "Axes", shown: Series) -> None:
        ax.axvspan(1.25e16, 2.56e19, color=GREY, alpha=0.12, lw=0)
        ax.annotate("compute of the runs", (1.6e16, 2e12), fontsize=8)
        for (name, xy), colour, dash in zip(
            shown.items(), _COLOURS, _DASHES, strict=True
        ):
            ax.plot(*xy, ls=dash, color=colour, label=name)
        log_axis(ax, "x", 1e16, 1e24, "FLOP", every=2)
        log_axis(ax, "y", 1e6, 1e13, "parameter")
        ax.set_xlabel("training compute C [FLOP]")
        ax.set_ylabel("optimal size N*")
        ax.legend(loc="lower right")

    return draw_on_figure(draw, series)


def plot_overtraining(rows: Sequence[tuple[str, float, float]]) -> Drawing:
    """Draw errors of extrapolated losses against tokens per parameter.

    Each row holds a label, tokens per parameter, and the relative error in percent.
    """
    series: Series = {
        "errors": (np.array([r[1] for r in rows]), np.array([abs(r[2]) for r in rows]))
    }

    def draw(ax: "Axes", shown: Series) -> None:
        ax.plot(*shown["errors"], "o", color=BLUE, ms=8)
        for label, x, y in rows:
            ax.annotate(label, (x, abs(y)), xytext=(8, -3), textcoords="offset points",
                        fontsize=8)  # fmt: skip
        ax.axhline(1.0, color=GREEN, ls=":", lw=1)
        ax.set_xscale("log")
        ax.set_xticks([10, 20, 100, 640], ["10", "20", "100", "640"])
        ax.minorticks_off()
        ax.set_xlim(8, 4000)
        ax.set_ylim(0, 5)
        ax.set_xlabel("tokens per parameter")
        ax.set_ylabel("error of the predicted loss [%]")
        ax.tick_params(colors=INK)

    return draw_on_figure(draw, series, height=3.2)
