"""Static figures of the compute-optimal chapters."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from chinchilla_lab.allocation import (
    compute_optimal,
    default_interval,
    isoflop,
    local_exponent,
    waste,
)
from chinchilla_lab.figures.style import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PURPLE,
    SKY,
    Drawing,
    Series,
    draw_on_figure,
    log_axis,
)
from chinchilla_lab.laws import (
    PEARCE_2024,
    PORIAN_2024_COSINE,
    PORIAN_2024_HEAD,
    PORIAN_2024_KAPLAN,
    PORIAN_2024_TUNED,
    PORIAN_2024_WARMUP,
    AdditiveLaw,
    Law,
    LossLaw,
)
from chinchilla_lab.units import FLOP_PER_ND, text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "LADDER",
    "plot_four_optima",
    "plot_ladder",
    "plot_local_exponent",
    "plot_loss_ruler",
    "plot_valleys",
    "plot_waste",
]

LADDER = {
    "as Kaplan et al.": PORIAN_2024_KAPLAN,
    "last layer counted": PORIAN_2024_HEAD,
    "short warm-up": PORIAN_2024_WARMUP,
    "cosine decay": PORIAN_2024_COSINE,
    "tuned, no decay": PORIAN_2024_TUNED,
}
"""Steps from the exponent of Kaplan et al. to one half, in order."""

_COLOURS = (BLUE, ORANGE, GREEN, PURPLE, SKY)


def plot_valleys(law: LossLaw, budgets: Sequence[float]) -> Drawing:
    """Draw loss against size on several budgets, with the path of the minima."""
    series: Series = {}
    for C in budgets:
        best = compute_optimal(law, C)
        N = best.N * np.geomspace(0.05, 20, 121)
        series[f"valley-{C:.0e}"] = (N, isoflop(law, C, N)[1])
    path = compute_optimal(law, np.geomspace(min(budgets), max(budgets), 31))
    assert path.L is not None
    series["path"] = (path.N, path.L)

    def draw(ax: "Axes", shown: Series) -> None:
        for C in budgets:
            N, L = shown[f"valley-{C:.0e}"]
            ax.plot(N, L, color=BLUE)
            ax.annotate(
                text(C, "FLOP"), (N[-1], L[-1]), xytext=(4, -3),
                textcoords="offset points", fontsize=8,
            )  # fmt: skip
        ax.plot(*shown["path"], "--", color=ORANGE, label="optimal path")
        log_axis(ax, "x", 2e6, 3e13, "parameter")
        ax.set_xlabel("parameters N")
        ax.set_ylabel("loss L [nats/token]")
        ax.legend(loc="upper right")

    return draw_on_figure(draw, series)


def plot_waste(laws: Sequence[AdditiveLaw]) -> Drawing:
    """Draw wasted compute against the size factor, exact and as a parabola."""
    k = np.geomspace(0.25, 4.0, 121)
    series: Series = {}
    for law in laws:
        exponents = law.alpha + law.beta
        series[law.label] = (k, 100.0 * np.asarray(waste(law, k)))
        rule = 50.0 * exponents * np.log(k) ** 2
        series[f"{law.label}, rule"] = (k, rule)

    def draw(ax: "Axes", shown: Series) -> None:
        for colour, law in zip(_COLOURS, laws, strict=False):
            ax.plot(*shown[law.label], color=colour, label=law.label)
            ax.plot(
                *shown[f"{law.label}, rule"], ":", color=colour, label="its parabola"
            )
        ax.axhline(1.0, color=GREY, lw=0.8)
        ax.set_xscale("log")
        ax.minorticks_off()
        ticks = [0.25, 0.5, 0.8, 1.0, 1.25, 2.0, 4.0]
        ax.set_xticks(ticks, [f"{t:g}" for t in ticks])
        ax.set_xlim(0.25, 4.0)
        ax.set_ylim(0.0, 60.0)
        ax.set_xlabel("size over optimal size, k")
        ax.set_ylabel("wasted compute [%]")
        ax.legend(loc="upper center")

    return draw_on_figure(draw, series)


def plot_ladder() -> Drawing:
    """Draw the exponent after each repair of the experiment of Kaplan et al."""
    names = list(LADDER)
    values = np.array([law.a for law in LADDER.values()])
    series: Series = {"exponent": (np.arange(len(names), dtype=np.float64), values)}

    def draw(ax: "Axes", shown: Series) -> None:
        x, a = shown["exponent"]
        ax.step(x, a, where="mid", color=BLUE)
        ax.plot(x, a, "o", color=BLUE, ms=7)
        for place, value in zip(x, a, strict=True):
            ax.annotate(
                f"{value:.3f}", (place, value), xytext=(0, 8), ha="center",
                textcoords="offset points",
            )  # fmt: skip
        ax.axhline(0.5, ls=":", color=GREY)
        ax.set_xticks(x, names, fontsize=8)
        ax.set_xlim(-0.5, len(names) - 0.5)
        ax.set_ylim(0.4, 0.95)
        ax.set_ylabel("exponent a of N* against C")

    return draw_on_figure(draw, series, height=3.5)


def plot_local_exponent() -> Drawing:
    """Draw the slope that counting without the vocabulary produces."""
    C = np.geomspace(1e9, 1e26, 103)
    plan = compute_optimal(PEARCE_2024, C)
    slope = np.asarray(local_exponent(PEARCE_2024, C))
    series: Series = {"slope": (np.asarray(plan.N), slope)}
    limit = PEARCE_2024.base.a

    def draw(ax: "Axes", shown: Series) -> None:
        ax.axvspan(10**2.9, 10**9.2, color=SKY, alpha=0.15, lw=0)
        ax.plot(*shown["slope"], color=BLUE)
        ax.axhline(limit, ls=":", color=GREY)
        ax.annotate("sizes of Kaplan et al.", (1.2e3, 1.01), fontsize=8)
        ax.annotate("total N", (2e10, limit + 0.01), fontsize=8)
        log_axis(ax, "x", 1e2, 1e12, "parameter", every=2)
        ax.set_ylim(0.45, 1.05)
        ax.set_xlabel("optimal size, non-embedding parameters")
        ax.set_ylabel("local exponent d ln N* / d ln C")

    return draw_on_figure(draw, series, height=3.5)


def plot_four_optima(
    C: float, laws: Sequence[Law], serve: tuple[float, float]
) -> Drawing:
    """Draw one budget, the laws' optima, the interval, and the model to serve."""
    N = np.geomspace(1e8, 1e12, 41)
    nd = C / FLOP_PER_ND
    low, high = default_interval(C).N
    ends = np.geomspace(float(low), float(high), 9)
    sizes = np.array([float(compute_optimal(law, C).N) for law in laws])
    series: Series = {
        "budget": (N, nd / N),
        "laws": (sizes, nd / sizes),
        "interval": (ends, nd / ends),
        "serving": (np.array([serve[0]]), np.array([serve[1]])),
    }

    def draw(ax: "Axes", shown: Series) -> None:
        ax.plot(*shown["budget"], color=BLUE, label="every split of the budget")
        ax.plot(*shown["interval"], color=SKY, lw=8, alpha=0.5, label="90 % interval",
                solid_capstyle="butt")  # fmt: skip
        ax.plot(
            *shown["laws"], "o", color=ORANGE, mfc="none", ms=7, label="one law each"
        )
        ax.plot(
            *shown["serving"], "s", color=GREEN, ms=8, label="same loss, to be served"
        )
        ax.annotate(
            "", xy=serve, xytext=(sizes[0], nd / sizes[0]),
            arrowprops={"arrowstyle": "->", "color": INK},
        )  # fmt: skip
        log_axis(ax, "x", 1e9, 1e11, "parameter")
        log_axis(ax, "y", 1e10, 2e12, "token")
        ax.set_xlabel("parameters N")
        ax.set_ylabel("training tokens D")
        ax.legend(loc="upper right")

    return draw_on_figure(draw, series)


def plot_loss_ruler(low: float = 1.8, high: float = 3.2) -> Drawing:
    """Draw one loss on three scales: nats, bits and perplexity."""
    nats = np.array([low, high])
    series: Series = {"nats": (nats, np.zeros(2))}

    def draw(ax: "Axes", shown: Series) -> None:
        for y, name, to in (
            (2.0, "nats/token", lambda v: v),
            (1.0, "bits/token", lambda v: v / np.log(2)),
            (0.0, "perplexity", np.exp),
        ):
            ax.plot(shown["nats"][0], [y, y], color=INK, lw=1)
            first, last = to(low), to(high)
            step = {2.0: 0.2, 1.0: 0.2, 0.0: 2.0}[y]
            for mark in np.arange(np.ceil(first / step) * step, last + 1e-9, step):
                back = {2.0: mark, 1.0: mark * np.log(2), 0.0: np.log(mark)}[y]
                ax.plot([back, back], [y, y + 0.12], color=INK, lw=1)
                ax.text(back, y + 0.17, f"{mark:g}", ha="center", fontsize=8)
            ax.text(low - 0.02, y, name, ha="right", va="center")
        ax.set_xlim(low - 0.3, high + 0.03)
        ax.set_ylim(-0.2, 2.6)
        ax.axis("off")

    return draw_on_figure(draw, series, height=2.0)
