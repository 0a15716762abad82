"""Parameters and FLOP of one shape, as stacked bars."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from chinchilla_lab.figures.style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    Series,
)
from chinchilla_lab.shape import (
    CONVENTIONS,
    ParameterCount,
    TransformerShape,
    compare_conventions,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "PARTS",
    "SHOWN",
    "draw_conventions",
    "draw_parts",
    "llama_like",
    "series_conventions",
    "series_parts",
]

# part of the count, colour, hatch: two cues
PARTS: dict[str, tuple[str, str]] = {
    "attention": (BLUE, ""),
    "MLP": (SKY, "//"),
    "norms": (GREY, ""),
    "head": (ORANGE, ""),
    "input embedding": (GREEN, "\\\\"),
}

SHOWN = (
    "6N_non_embedding",
    "6N_body_and_head",
    "6N_total",
    "kaplan",
    "porian",
    "deepseek",
    "palm",
)
"""Conventions that the figures compare, in the order of the bars."""


def llama_like(
    n_layers: float,
    d_model: float,
    d_ff: float,
    vocab: float,
    tied: bool,
    gated: bool,
    kv_group: int = 1,
) -> TransformerShape:
    """Return a shape with heads of 128, or one head where the width has none."""
    d = round(d_model)
    heads = max(d // 128, 1) if d % 128 == 0 else 1
    group = kv_group if heads % kv_group == 0 else 1
    return TransformerShape(
        n_layers=round(n_layers),
        d_model=d,
        d_ff=round(d_ff),
        n_heads=heads,
        n_kv_heads=heads // group,
        vocab_size=round(vocab),
        tied=tied,
        gated=gated,
    )


def _bar(
    low: float, high: float, centre: float, half: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the corners of one bar piece."""
    x = np.array([low, high, high, low])
    return x, centre + half * np.array([-1.0, -1.0, 1.0, 1.0])


def _sizes(n: ParameterCount) -> dict[str, float]:
    """Split the total; a tied vocabulary works as head and needs no second table."""
    tied = n.head == 0
    return {
        "attention": float(n.attention),
        "MLP": float(n.mlp + n.router),
        "norms": float(n.norms + n.biases),
        "head": float(n.input_embedding if tied else n.head),
        "input embedding": float(n.positions if tied else n.input_embedding),
    }


def series_parts(shape: TransformerShape) -> Series:
    """Shares of the total, one bar piece each.

    Parameters
    ----------
    shape : TransformerShape
        The model, [-]

    Returns
    -------
    dict
        Corners of each piece, x in percent, [-]
    """
    count = shape.params()
    series: Series = {}
    start = 0.0
    for name, size in _sizes(count).items():
        end = start + 100.0 * size / count.total
        series[f"part-{name.replace(' ', '-')}"] = _bar(start, end, 1.0, 0.28)
        start = end
    body = 100.0 * count.non_embedding / count.total
    head = 100.0 * count.body_and_head / count.total
    series["mark-body"] = (np.array([0.0, body]), np.array([0.42, 0.42]))
    series["mark-head"] = (np.array([0.0, head]), np.array([0.22, 0.22]))
    series["mark-total"] = (np.array([0.0, 100.0]), np.array([0.02, 0.02]))
    return series


def draw_parts(ax: "Axes", series: Series) -> None:
    """Draw the shares of the total, with the reach of three meanings of N below."""
    for name, (colour, hatch) in PARTS.items():
        key = f"part-{name.replace(' ', '-')}"
        ax.fill(*series[key], facecolor=colour, hatch=hatch, edgecolor="#ffffff",
                lw=0.6, gid=key, label=name)  # fmt: skip
    for key, text, y in (
        ("mark-body", "non-embedding", 0.42),
        ("mark-head", "body and head", 0.22),
        ("mark-total", "total", 0.02),
    ):
        ax.plot(*series[key], color=PURPLE, lw=3, gid=key, solid_capstyle="butt")
        ax.text(1.0, y + 0.035, text, fontsize=8, va="bottom")
    ax.set_xlim(0.0, 100.0)
    ax.set_ylim(-0.08, 1.9)
    ax.set_yticks([])
    ax.set_xlabel("share of all parameters [%]")
    ax.legend(loc="upper center", ncols=3, fontsize=8, columnspacing=1.2)


def series_conventions(
    shape: TransformerShape, seq_len: int, C: float, chosen: str
) -> Series:
    """FLOP per token under each convention relative to 6N, itemised.

    Parameters
    ----------
    shape : TransformerShape
        The model, [-]
    seq_len : int
        Tokens of a sequence, [token]
    C : float
        Training compute, [FLOP]
    chosen : str
        Convention that is marked, [-]

    Returns
    -------
    dict
        Corners of each bar piece, x relative to 6N total, [-]
    """
    table = compare_conventions(shape, seq_len, C, SHOWN)
    base = 6.0 * shape.params().active
    series: Series = {}
    for row, (name, count) in enumerate(table.counts.items()):
        start = 0.0
        for item in ("body", "head", "embedding", "attention"):
            end = start + getattr(count, item) / base
            series[f"{name}-{item}"] = _bar(start, end, -row, 0.36)
            start = end
        if name == chosen:
            series["chosen"] = (np.array([start]), np.array([-float(row)]))
    return series


def draw_conventions(ax: "Axes", series: Series) -> None:
    """Draw one stacked bar a convention."""
    items = {
        "body": (BLUE, ""),
        "head": (ORANGE, ""),
        "embedding": (GREEN, "\\\\"),
        "attention": (PURPLE, "//"),
    }
    for row, name in enumerate(SHOWN):
        for item, (colour, hatch) in items.items():
            key = f"{name}-{item}"
            ax.fill(*series[key], facecolor=colour, hatch=hatch, edgecolor="#ffffff",
                    lw=0.6, gid=key, label=item if row == 0 else None)  # fmt: skip
    ax.plot(*series["chosen"], "D", color=GREY, ms=7, gid="chosen")
    ax.set_xlim(0.0, 2.5)
    ax.set_ylim(-len(SHOWN) + 0.4, 2.2)
    ax.set_yticks(
        [-float(row) for row in range(len(SHOWN))],
        [
            CONVENTIONS[name].label.replace("non-embedding", "non-emb.")
            for name in SHOWN
        ],
    )
    ax.tick_params(axis="y", labelsize=7.5, length=0)
    ax.grid(axis="y", visible=False)
    ax.set_xlabel("training FLOP per token over 6 N total")
    ax.figure.subplots_adjust(left=0.27)
    ax.legend(loc="upper right", ncols=2, fontsize=8, columnspacing=1.2)
