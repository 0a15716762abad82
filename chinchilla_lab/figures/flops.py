"""Static figures of the accounting chapter."""

from typing import TYPE_CHECKING

import numpy as np

from chinchilla_lab.figures.style import (
    BLUE,
    GREY,
    ORANGE,
    PURPLE,
    Drawing,
    Series,
    draw_on_figure,
    log_axis,
)
from chinchilla_lab.shape import (
    TransformerShape,
    a9_like,
    causal_crossover,
    flops_per_token,
    table_a9,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["TABLE_A4", "plot_appendix_f", "plot_token_flops"]

# layers, width, MLP width, heads, head size; ratio of FLOP to 6N that Table A4 prints
# :cite:`hoffmann2022training`, Tables A4 and A9
TABLE_A4: tuple[tuple[tuple[int, int, int, int, int], float], ...] = (
    ((10, 640, 2560, 10, 64), 1.03),
    ((24, 1280, 5120, 10, 128), 1.08),
    ((26, 1792, 7168, 14, 128), 1.04),
    ((28, 2048, 8192, 16, 128), 1.03),
    ((40, 3584, 14336, 28, 128), 0.99),
)


def plot_token_flops(shape: TransformerShape) -> Drawing:
    """Draw body, head and masked attention per token against the sequence length."""
    T = np.unique(np.geomspace(256, 262144, 61).round())
    counts = [flops_per_token(shape, int(t), "exact_causal") for t in T]
    body = np.array([c.body for c in counts])
    head = body + np.array([c.head for c in counts])
    total = head + np.array([c.attention for c in counts])
    series: Series = {"body": (T, body), "head": (T, head), "attention": (T, total)}

    def draw(ax: "Axes", shown: Series) -> None:
        floor = np.zeros_like(T)
        for name, colour, hatch, label in (
            ("body", BLUE, "", "matrices of the layers"),
            ("head", ORANGE, "", "head"),
            ("attention", PURPLE, "//", "attention under the mask"),
        ):
            top = shown[name][1] / 1e9
            ax.fill_between(T, floor, top, color=colour, alpha=0.75, hatch=hatch,
                            lw=0, label=label)  # fmt: skip
            floor = top
        cross = causal_crossover(shape)
        ax.axvline(cross, ls=":", color=GREY)
        ax.annotate(
            f"attention = weights\nat {cross:,.0f}", (cross, 20), xytext=(-6, 0),
            textcoords="offset points", ha="right", fontsize=8,
        )  # fmt: skip
        ax.set_xscale("log", base=2)
        ax.minorticks_off()
        ticks = [512, 2048, 8192, 32768, 131072]
        ax.set_xticks(ticks, [f"{t:,}" for t in ticks])
        ax.set_xlim(256, 262144)
        ax.set_ylim(0, 150)
        ax.set_xlabel("sequence length T [token]")
        ax.set_ylabel("training FLOP per token [1e9]")
        ax.legend(loc="upper left")

    return draw_on_figure(draw, series)


def plot_appendix_f() -> Drawing:
    """Draw appendix F over 6N for the 50 models, as worded and without vocabulary."""
    shapes = sorted((s.params().matrices, s) for _, s in _by_size())
    N = np.array([float(n) for n, _ in shapes])

    def ratio(convention: str) -> np.ndarray:
        totals = [flops_per_token(s, 2048, convention).total for _, s in shapes]
        return np.array(totals) / (6.0 * N)

    printed = [(a9_like(*row).params().matrices, value) for row, value in TABLE_A4]
    series: Series = {
        "worded": (N, ratio("chinchilla_appendix_f")),
        "table": (N, ratio("chinchilla_table_a4")),
        "printed": (
            np.array([float(n) for n, _ in printed]),
            np.array([value for _, value in printed]),
        ),
    }

    def draw(ax: "Axes", shown: Series) -> None:
        ax.plot(*shown["worded"], color=ORANGE, label="appendix F as worded")
        ax.plot(*shown["table"], "--", color=BLUE, label="without vocabulary terms")
        ax.plot(*shown["printed"], "o", color=PURPLE, label="Table A4, printed")
        ax.axhline(1.0, lw=0.8, color=GREY)
        log_axis(ax, "x", 3e7, 3e10, "parameter")
        ax.set_ylim(0.9, 1.8)
        ax.set_xlabel("parameters N")
        ax.set_ylabel("FLOP over 6N")
        ax.legend(loc="upper right")

    return draw_on_figure(draw, series, height=3.5)


def _by_size() -> list[tuple[float, TransformerShape]]:
    """Return Table A9 without ties, which a sort could not order."""
    seen: dict[int, tuple[float, TransformerShape]] = {}
    for printed, shape in table_a9():
        seen.setdefault(shape.params().matrices, (printed, shape))
    return list(seen.values())
