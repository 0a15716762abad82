"""Memory of one accelerator by item, against the card and the micro-batch."""

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from chinchilla_lab.cluster.accelerators import ACCELERATORS
from chinchilla_lab.cluster.layout import Layout
from chinchilla_lab.cluster.memory import RECIPES, MemoryBreakdown, components, memory
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
    log_axis,
)
from chinchilla_lab.shape import SHAPES, TransformerShape
from chinchilla_lab.units import GIB

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "MODES",
    "PARTS",
    "SHOWN_SHAPES",
    "Setting",
    "draw_against_batch",
    "draw_stacks",
    "gpt_like",
    "plot_fit_map",
    "plot_modes",
    "series_against_batch",
    "series_stacks",
]

Array = NDArray[np.float64]
# item of the sum: colour, hatch
PARTS: dict[str, tuple[str, str]] = {
    "weights": (BLUE, ""),
    "gradients": (SKY, "//"),
    "optimizer": (GREEN, "\\\\"),
    "activations": (ORANGE, ""),
    "logits": (PURPLE, "xx"),
    "buffers": (GREY, "//"),
}
MODES: dict[str, dict[str, Any]] = {
    "plain": {},
    "sequence parallel": {"sequence_parallel": True},
    "selective": {"recompute": "selective"},
    "both": {"sequence_parallel": True, "recompute": "selective"},
    "full recompute": {"recompute": "full"},
    "plain, ZeRO-1": {"zero": 1},
    "both, ZeRO-1": {"sequence_parallel": True, "recompute": "selective", "zero": 1},
}
"""Ways to train the same model, as changes of a layout."""
_WIDEST = 200.0  # of the stacks [GiB]
_MOST = 2000.0  # against the batch [GiB]
_BATCHES = np.geomspace(1.0, 64.0, 25)


def gpt_like(n_layers: int, d_model: int, n_heads: int, vocab: int) -> TransformerShape:
    """Return a shape with a plain MLP four widths wide and a tied vocabulary.

    Parameters
    ----------
    n_layers : int
        Layers, [-]
    d_model : int
        Width, [-]
    n_heads : int
        Heads, [-]
    vocab : int
        Vocabulary, [-]

    Returns
    -------
    TransformerShape
        The shape, [-]
    """
    return TransformerShape(
        n_layers=n_layers,
        d_model=d_model,
        d_ff=4 * d_model,
        n_heads=n_heads,
        vocab_size=vocab,
        gated=False,
        tied=True,
    )


# the first four: :cite:`korthikanti2022reducing`, Table 3; then the teams of the book
SHOWN_SHAPES: dict[str, tuple[str, TransformerShape]] = {
    "22b": ("22B, 48 x 6,144", gpt_like(48, 6144, 64, 51200)),
    "175b": ("175B, 96 x 12,288", gpt_like(96, 12288, 96, 51200)),
    "530b": ("530B, 105 x 20,480", gpt_like(105, 20480, 128, 51200)),
    "1t": ("1T, 128 x 25,600", gpt_like(128, 25600, 160, 51200)),
    "loft": ("the Loft's 22.5B", gpt_like(48, 6144, 48, 131072)),
    "hall": ("the Hall's 536B", gpt_like(96, 21504, 168, 131072)),
    "llama-3-8b": ("Llama 3 8B", SHAPES["llama-3-8b"]),
    "llama-3-70b": ("Llama 3 70B", SHAPES["llama-3-70b"]),
    "llama-3-405b": ("Llama 3 405B", SHAPES["llama-3-405b"]),
}
"""Shapes of the memory figures by key: name and shape."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One way to train a model on a card.

    Parameters
    ----------
    shape : TransformerShape
        The model, [-]
    layout : Layout
        How it is cut, [-]
    seq_len : int
        Tokens of a sequence, [token]
    recipe : str
        Key of the recipe, [-]
    fused : bool
        Attention keeps its scores on the chip, [-]
    offset : float
        What the stack takes beside the items, [byte]
    accelerator : str
        Key of the card, [-]
    """

    shape: TransformerShape
    layout: Layout
    seq_len: int
    recipe: str = "mixed-adam-fp32grad"
    fused: bool = False
    offset: float = 0.0
    accelerator: str = "h100-sxm-80gb"

    @property
    def options(self) -> dict[str, Any]:
        """Settings of :func:`chinchilla_lab.cluster.memory`, masks of dropout kept."""
        return {
            "recipe": self.recipe,
            "attention": "fused" if self.fused else "unfused",
            "dropout": True,
            "offset": self.offset,
        }

    def bytes(self, times: int = 1) -> MemoryBreakdown:
        """Itemise the memory, at a multiple of the micro-batch.

        Parameters
        ----------
        times : int, optional
            Multiple, [-]

        Returns
        -------
        MemoryBreakdown
            Items, [byte]
        """
        plan = replace(self.layout, micro_batch=times * self.layout.micro_batch)
        return memory(self.shape, plan, self.seq_len, **self.options)


def _pieces(found: MemoryBreakdown, row: float, prefix: str) -> Series:
    """Return one stacked bar as polygons, cut at the end of the axis."""
    series: Series = {}
    start = 0.0
    for name in PARTS:
        end = start + getattr(found, name) / GIB
        low, high = min(start, _WIDEST), min(end, _WIDEST)
        series[f"{prefix}-{name}"] = (
            np.array([low, high, high, low]),
            row + 0.34 * np.array([-1.0, -1.0, 1.0, 1.0]),
        )
        start = end
    return series


def series_stacks(setting: Setting) -> Series:
    """Items at a micro-batch and at twice that, and the card.

    Parameters
    ----------
    setting : Setting
        What is trained and how, [-]

    Returns
    -------
    dict
        Corners of each piece, x in GiB, [-]
    """
    card = ACCELERATORS[setting.accelerator].memory / GIB
    return {
        **_pieces(setting.bytes(), 1.0, "now"),
        **_pieces(setting.bytes(2), 0.0, "twice"),
        "card": (np.full(2, card), np.array([-0.5, 1.5])),
    }


def draw_stacks(ax: "Axes", series: Series) -> None:
    """Draw both stacks and the line of the card."""
    for prefix in ("now", "twice"):
        for name, (colour, hatch) in PARTS.items():
            key = f"{prefix}-{name}"
            label = name if prefix == "now" else None
            ax.fill(*series[key], facecolor=colour, hatch=hatch, edgecolor="#ffffff",
                    lw=0.6, gid=key, label=label)  # fmt: skip
    ax.plot(*series["card"], "--", color=RED, gid="card", label="card")
    ax.set_xlim(0.0, _WIDEST)
    ax.set_ylim(-0.6, 2.6)
    ax.set_yticks([1.0, 0.0], ["now", "twice\nthe batch"])
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="y", visible=False)
    ax.set_xlabel("fullest accelerator [GiB]")
    ax.legend(loc="upper right", ncols=3, fontsize=8, columnspacing=1.0)


def series_against_batch(setting: Setting) -> Series:
    """States, activations and total against the micro-batch.

    Parameters
    ----------
    setting : Setting
        What is trained and how, [-]

    Returns
    -------
    dict
        Micro-batch [sequence] and memory [GiB]
    """
    b = setting.layout.micro_batch
    batches = np.append(_BATCHES, float(b))
    items = components(
        setting.shape,
        setting.layout.degrees()._replace(b=batches),
        float(setting.layout.pp),
        float(setting.seq_len),
        RECIPES[setting.recipe],
        setting.fused,
        True,
        setting.offset,
    )
    names = [f.name for f in fields(MemoryBreakdown)]
    found = {
        name: np.broadcast_to(np.asarray(item, dtype=float) / GIB, batches.shape)
        for name, item in zip(names, items, strict=True)
    }
    states = found["weights"] + found["gradients"] + found["optimizer"]
    moving = found["activations"] + found["logits"]
    total = states + moving + found["buffers"]
    card = ACCELERATORS[setting.accelerator].memory / GIB
    return {
        "states": (_BATCHES, states[:-1]),
        "moving": (_BATCHES, np.minimum(moving, _MOST)[:-1]),
        "total": (_BATCHES, np.minimum(total, _MOST)[:-1]),
        "limit": (np.array([1.0, 64.0]), np.full(2, card)),
        "yours": (batches[-1:], np.minimum(total, _MOST)[-1:]),
    }


def draw_against_batch(ax: "Axes", series: Series) -> None:
    """Draw memory against the micro-batch."""
    ax.plot(*series["limit"], "--", color=RED, lw=1.2, gid="limit", label="card")
    ax.plot(*series["states"], "-.", color=GREEN, gid="states", label="states")
    ax.plot(*series["moving"], ":", color=ORANGE, gid="moving",
            label="activations, logits")  # fmt: skip
    ax.plot(*series["total"], color=INK, gid="total", label="total")
    ax.plot(*series["yours"], "D", color=BLUE, ms=7, gid="yours", label="yours")
    ax.set_xscale("log", base=2)
    ax.set_xlim(0.9, 70.0)
    ticks = [1, 2, 4, 8, 16, 32, 64]
    ax.set_xticks(ticks, [str(t) for t in ticks])
    log_axis(ax, "y", 1.0, _MOST, "count")
    ax.minorticks_off()
    ax.set_xlabel("micro-batch [sequence]")
    ax.set_ylabel("fullest accelerator [GiB]")
    ax.legend(loc="upper left", ncols=2, fontsize=8, columnspacing=1.0)


def plot_modes(setting: Setting) -> Drawing:
    """Draw the items under several ways to train, against the card.

    Parameters
    ----------
    setting : Setting
        What is trained; recomputation, sequence parallelism and ZeRO are set here, [-]

    Returns
    -------
    Drawing
        The figure, [-]
    """
    shown = [name for name in MODES if name != "both, ZeRO-1"]
    stacks = [_changed(setting, name, 0).bytes() for name in shown]
    x = np.arange(float(len(shown)))
    series: Series = {
        part: (x, np.array([getattr(stack, part) / GIB for stack in stacks]))
        for part in PARTS
    }

    def draw(ax: "Axes", found: Series) -> None:
        floor = np.zeros_like(x)
        for part, (colour, hatch) in PARTS.items():
            height = found[part][1]
            ax.bar(x, height, 0.68, floor, color=colour, hatch=hatch,
                   edgecolor="#ffffff", lw=0.6, label=part)  # fmt: skip
            floor = floor + height
        card = ACCELERATORS[setting.accelerator].memory / GIB
        ax.axhline(card, ls="--", color=RED, label="card")
        ax.set_xticks(x, [name.replace(" ", "\n", 1) for name in shown])
        ax.set_ylim(0, 140)
        ax.grid(axis="x", visible=False)
        ax.set_ylabel("one accelerator [GiB]")
        ax.legend(loc="upper right", ncols=4, fontsize=8, columnspacing=1.0)

    return draw_on_figure(draw, series)


def _changed(setting: Setting, mode: str, micro_batch: int) -> Setting:
    changes: dict[str, Any] = {
        "recompute": "none", "sequence_parallel": False, "zero": 0, **MODES[mode]
    }  # fmt: skip
    if micro_batch:
        changes["micro_batch"] = micro_batch
    return replace(setting, layout=replace(setting.layout, **changes))


def plot_fit_map(setting: Setting) -> Drawing:
    """Draw which micro-batches fit, by the way to train.

    Parameters
    ----------
    setting : Setting
        What is trained; recomputation, sequence parallelism and ZeRO are set here, [-]

    Returns
    -------
    Drawing
        The figure, [-]
    """
    batches = (1, 2, 4, 8, 16, 32)
    card = ACCELERATORS[setting.accelerator].memory / GIB
    totals = np.array(
        [
            [_changed(setting, mode, b).bytes().total / GIB for b in batches]
            for mode in MODES
        ]
    )
    series: Series = {
        mode: (np.array(batches, dtype=float), row)
        for mode, row in zip(MODES, totals, strict=True)
    }

    def draw(ax: "Axes", shown: Series) -> None:
        for y, mode in enumerate(MODES):
            for x, total in enumerate(shown[mode][1]):
                fits = total <= card
                ax.fill(
                    x + 0.47 * np.array([-1, 1, 1, -1]),
                    -y + 0.44 * np.array([-1, -1, 1, 1]),
                    facecolor=GREEN if fits else "none",
                    edgecolor=GREEN if fits else GREY,
                    hatch="" if fits else "//",
                    alpha=0.45,
                    lw=0.6,
                )
                ax.text(x, -y, f"{total:.0f}", ha="center", va="center", fontsize=8.5)
        ax.set_xticks(range(len(batches)), [str(b) for b in batches])
        ax.set_yticks([-y for y in range(len(MODES))], list(MODES))
        ax.tick_params(length=0)
        ax.grid(visible=False)
        ax.set_xlim(-0.6, len(batches) - 0.4)
        ax.set_ylim(-len(MODES) + 0.4, 0.6)
        ax.set_xlabel("micro-batch [sequence]")
        ax.figure.subplots_adjust(left=0.25)

    return draw_on_figure(draw, series, height=3.4)
