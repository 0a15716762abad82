"""Steps of a cluster: schedules, where the time goes, and layouts side by side."""

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from chinchilla_lab.checks import InfeasibleError
from chinchilla_lab.cluster.hardware import Cluster
from chinchilla_lab.cluster.schedule import schedule
from chinchilla_lab.cluster.search import Ranking, search
from chinchilla_lab.cluster.several import Job, fastest_layouts
from chinchilla_lab.cluster.step import StepTime, bubble_fraction
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
)
from chinchilla_lab.shape.transformer import TransformerShape
from chinchilla_lab.units import GB

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "COUNTS",
    "GROUPS",
    "best_layouts",
    "draw_bars",
    "draw_breakdown",
    "draw_schedule",
    "draw_times",
    "drawn_passes",
    "gpt_like",
    "grouped",
    "layouts_of",
    "own_shape",
    "plot_breakdown",
    "plot_schedules",
    "plot_times",
    "series_bars",
    "series_breakdown",
    "series_schedule",
    "series_times",
]

Array = NDArray[np.float64]
# what is shown as one: its items, colour and hatch
GROUPS: Mapping[str, tuple[tuple[str, ...], str, str]] = {
    "products": (("gemm", "attention"), BLUE, ""),
    "memory traffic": (("memory_traffic", "optimizer"), SKY, "/"),
    "recompute": (("recompute",), ORANGE, "\\"),
    "TP": (("tp_traffic", "cp_traffic", "ep_traffic"), PURPLE, "x"),
    "head, PP": (("head_and_uneven", "pp_traffic"), GREEN, "-"),
    "bubble": (("bubble",), GREY, "/"),
    "DP": (("dp_traffic",), RED, "|"),
    "other": (("overhead", "stragglers"), INK, "+"),
}
COUNTS = (8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
"""Accelerators of the breakdown."""
QUICK: dict[str, Any] = {
    "zero": (1, 3), "n_chunks": (1, 2, 4), "micro_batch": (1, 2),
}  # fmt: skip
"""Fewer chunks and micro-batches, for searches at the speed of the hand."""
_NOTHING = (np.ones(3), np.zeros(3))
_BARS = 5


def gpt_like(n_layers: float, d_model: float, vocab: int = 131072) -> TransformerShape:
    """Return a shape with heads of 128, an MLP of four widths and a tied table."""
    width = round(d_model)
    return TransformerShape(
        n_layers=round(n_layers),
        d_model=width,
        d_ff=4 * width,
        n_heads=max(1, width // 128),
        vocab_size=vocab,
        gated=False,
        tied=True,
    )


def grouped(step: StepTime) -> dict[str, float]:
    """Return the seconds of a step by group."""
    return {
        name: sum(step.items[item] for item in items)
        for name, (items, _, _) in GROUPS.items()
    }


@lru_cache(maxsize=512)
def best_layouts(
    n_layers: float,
    d_model: float,
    n: int,
    batch: int,
    chip: str = "h100-sxm-80gb",
    network: float = 50.0,
    stack: str = "megatron-bridge",
    memory: float = 0.0,
    quick: bool = False,
) -> Ranking | str:
    """Return the ranking of a search, or why there is none.

    Parameters
    ----------
    n_layers : float
        Layers, [-]
    d_model : float
        Width, [-]
    n : int
        Accelerators, [-]
    batch : int
        Sequences of 4096 tokens, [sequence]
    chip : str
        Key of the accelerator, [-]
    network : float
        Network of an accelerator, one way, [GB/s]
    stack : str
        Constants, [-]
    memory : float
        Memory that a job may fill; 0 for what the driver reports, [GB]
    quick : bool
        Try fewer chunks and micro-batches, [-]
    """
    shape = gpt_like(n_layers, d_model)
    return layouts_of(shape, n, batch, 4096, chip, network, stack, memory, quick)


@lru_cache(maxsize=512)
def layouts_of(
    shape: TransformerShape, n: int, batch: int, seq_len: int, chip: str,
    network: float, stack: str, memory: float, quick: bool = False,
) -> Ranking | str:  # fmt: skip
    """Return the ranking of a search for any shape, or why there is none.

    The other parameters are those of :func:`best_layouts`.

    Parameters
    ----------
    shape : TransformerShape
        The model, [-]
    seq_len : int
        Length of a sequence, [token]
    """
    few: dict[str, Any] = QUICK if quick else {}
    cluster = Cluster(
        accelerator=chip, n_accelerators=n, scaleout_bandwidth=network * GB
    )
    try:
        return search(
            shape, cluster, batch, seq_len, stack=stack, keep=1 if quick else _BARS,
            memory_limit=memory * GB if memory else None, **few,
        )  # fmt: skip
    except InfeasibleError as refusal:
        return _in_words(str(refusal), shape, n, batch)


def _in_words(refusal: str, shape: TransformerShape, n: int, batch: int) -> str:
    """Say why there is no layout in the words of the controls."""
    if refusal.startswith("no layout divides"):
        return (
            f"no layout divides: {batch:,} sequences, {shape.n_layers} layers and "
            f"{shape.n_heads} heads on {n:,} accelerators; choose a larger batch, "
            "layers with more divisors or another number of accelerators"
        )
    needs, _, _ = refusal.partition(";")
    needs = needs.replace("memory_limit is", "a card may fill")
    return (
        f"{needs}, whatever is sharded and recomputed; choose more accelerators, more "
        "memory or a smaller model"
    )


def own_shape(
    n_layers: float, d_model: float, mlp: str, kv_heads: int, vocab: int, experts: str
) -> TransformerShape:
    """Return a shape of one's own with heads of 128.

    Parameters
    ----------
    n_layers : float
        Layers, [-]
    d_model : float
        Width, [-]
    mlp : {"plain-4", "gated-3.5", "gated-2.67"}
        Kind of the MLP, and its width over that of the model, [-]
    kv_heads : int
        Key-value heads at most; 0 for as many as there are heads. The largest number
        that divides the heads is taken, [-]
    vocab : int
        Vocabulary, [-]
    experts : str
        Experts, and how many of them a token uses: ``"8-2"``, [-]
    """
    kind, _, factor = mlp.partition("-")
    every, _, used = experts.partition("-")
    heads = max(1, round(d_model) // 128)
    most = kv_heads or heads
    return TransformerShape(
        n_layers=round(n_layers), d_model=round(d_model),
        # in steps of 256, as released models have it
        d_ff=256 * max(1, round(d_model * float(factor) / 256)),
        n_heads=heads,
        n_kv_heads=max(k for k in range(1, heads + 1) if heads % k == 0 and k <= most),
        vocab_size=vocab, gated=kind == "gated", tied=kind == "plain",
        n_experts=int(every), n_active_experts=int(used or 1),
    )  # fmt: skip


@lru_cache(maxsize=64)
def quick_steps(
    n_layers: float, d_model: float, batch: int, network: float, stack: str
) -> tuple[StepTime | None, ...]:
    """Return the step of the best layout on each of :data:`COUNTS` accelerators.

    The same as :func:`best_layouts` with ``quick``, all clusters in one pass; None
    where no layout divides and fits.
    """
    shape = gpt_like(n_layers, d_model)
    clusters = [
        Cluster(
            accelerator="h100-sxm-80gb", n_accelerators=n,
            scaleout_bandwidth=network * GB,
        )
        for n in COUNTS
    ]  # fmt: skip
    found = fastest_layouts(
        [Job(shape, batch, c) for c in clusters], 4096, stack, **QUICK
    )
    return tuple(None if one is None else one.step for one in found)


# schedules

_PASSES = {
    "forward": (BLUE, ""),
    "forward-later": (SKY, "/"),
    "backward": (ORANGE, ""),
    "backward-later": (PURPLE, "\\"),
}
_LABELS = {
    "idle": "idle",
    "forward": "forward",
    "forward-later": "forward, later chunk",
    "backward": "backward",
    "backward-later": "backward, later chunk",
}


def _boxes(x0: Array, x1: Array, y0: Array, y1: Array) -> tuple[Array, Array]:
    """Return many rectangles as one outline, the pen lifted between them."""
    if not len(x0):
        return _NOTHING
    gap = np.full(len(x0), np.nan)
    x = np.stack([x0, x1, x1, x0, x0, gap], axis=1).ravel()[:-1]
    y = np.stack([y0, y0, y1, y1, y0, gap], axis=1).ravel()[:-1]
    return x, y


@lru_cache(maxsize=64)
def _schedule_boxes(
    p: int, m: int, v: int, low: float, high: float
) -> dict[str, tuple[Array, Array]]:
    """Return the passes as rectangles, time 1 being m passes without any idling."""
    played = schedule(p, m, v)
    row = (high - low) / p
    bottom = high - (played.stage + 1.0) * row
    found: dict[str, tuple[Array, Array]] = {}
    lines: Array = high - np.arange(1.0, p + 1.0) * row
    whole = np.full(p, played.length / m)
    found["idle"] = _boxes(np.zeros(p), whole, lines + 0.06 * row, lines + 0.94 * row)
    for name in _PASSES:
        back, later = name.startswith("backward"), name.endswith("later")
        mine = (played.backward == back) & ((played.chunk > 0) == later)
        start, end = played.start[mine] / m, played.end[mine] / m
        # a hair between passes tells them apart; an outline would join them all
        hair = 0.04 * (end - start)
        found[name] = _boxes(
            start + hair, end - hair,
            bottom[mine] + 0.06 * row, bottom[mine] + 0.94 * row,
        )  # fmt: skip
    return found


MOST_STAGES = 16
MOST_PASSES = 4096


def drawn_passes(p: int, m: int, v: int) -> bool:
    """Return whether single passes are large enough to be seen."""
    return p <= MOST_STAGES and 2 * p * m * v <= MOST_PASSES


def series_schedule(p: int, m: int, v: int, order: str = "1f1b") -> Series:
    """Return the passes of a schedule as rectangles.

    Parameters
    ----------
    p : int
        Stages, [-]
    m : int
        Micro-batches, [-]
    v : int
        Chunks of a stage; only 1F1B is interleaved, [-]
    order : {"1f1b", "gpipe"}
        Order of the passes, [-]

    Returns
    -------
    dict
        Rectangles by kind of pass; where passes are too many to be seen, the work of a
        stage in one piece, and its waiting behind it
    """
    if not drawn_passes(p, m, v):
        idle = bubble_fraction(p, m, v, order)
        low, high = np.array([0.06]), np.array([0.94])

        def box(start: float, end: float) -> tuple[Array, Array]:
            return _boxes(np.array([start]), np.array([end]), low, high)

        return {
            "idle": box(1.0, 1.0 + idle), "forward": box(0.0, 1.0 / 3.0),
            "forward-later": _NOTHING, "backward": box(1.0 / 3.0, 1.0),
            "backward-later": _NOTHING,
        }  # fmt: skip
    if order == "gpipe":
        return dict(_all_forward(p, m))
    return dict(_schedule_boxes(p, m, v, 0.0, 1.0))


@lru_cache(maxsize=64)
def _all_forward(p: int, m: int) -> dict[str, tuple[Array, Array]]:
    """Return the passes where all micro-batches go forward before any goes back."""
    stage, micro = (a.ravel() for a in np.mgrid[0:p, 0:m].astype(np.float64))
    there, back = 1.0 / 3.0 / m, 2.0 / 3.0 / m
    turn = (m + p - 1) * there
    ends = {
        "forward": ((stage + micro) * there, there),
        "backward": (turn + (p - 1 - stage + micro) * back, back),
    }
    row = 1.0 / p
    bottom = 1.0 - (stage + 1.0) * row
    found = {
        name: _boxes(start + 0.04 * long, start + 0.96 * long,
                     bottom + 0.06 * row, bottom + 0.94 * row)
        for name, (start, long) in ends.items()
    }  # fmt: skip
    lines: Array = 1.0 - np.arange(1.0, p + 1.0) * row
    whole = np.full(p, turn + (m + p - 1) * back)
    idle = _boxes(np.zeros(p), whole, lines + 0.06 * row, lines + 0.94 * row)
    return {"idle": idle, "forward-later": _NOTHING, "backward-later": _NOTHING} | found


def _fill_passes(ax: "Axes", series: Series, gid: bool, labels: bool) -> None:
    ax.fill(*series["idle"], facecolor="none", edgecolor=GREY, hatch="/", lw=0,
            gid="idle" if gid else None,
            label=_LABELS["idle"] if labels else None)  # fmt: skip
    for name, (colour, hatch) in _PASSES.items():
        ax.fill(*series[name], facecolor=colour, edgecolor="#ffffff", hatch=hatch,
                lw=0, gid=name if gid else None,
                label=_LABELS[name] if labels else None)  # fmt: skip


def draw_schedule(ax: "Axes", series: Series) -> None:
    """Draw one schedule, stage 1 on top."""
    _fill_passes(ax, series, gid=True, labels=True)
    ax.axvline(1.0, color=INK, lw=1, ls=":")
    ax.set_xlim(0.0, 2.0)
    ax.set_ylim(-0.02, 1.02)
    ax.set_yticks([0.0, 1.0], ["last stage", "first stage"])
    ax.tick_params(axis="y", length=0, labelsize=8)
    ax.grid(visible=False)
    ax.set_xlabel("time over a step without bubble")
    legend_above(ax, ncols=2, rows=3)


def plot_schedules(pp: int, n_micro_batches: int, n_chunks: int) -> Drawing:
    """Draw 1F1B above the interleaved schedule of the same work."""
    parts = {
        "1F1B": _schedule_boxes(pp, n_micro_batches, 1, 1.15, 2.15),
        f"{n_chunks} chunks": _schedule_boxes(pp, n_micro_batches, n_chunks, 0.0, 1.0),
    }
    series: Series = {
        f"{label}, {name}": xy
        for label, boxes in parts.items()
        for name, xy in boxes.items()
    }

    def draw(ax: "Axes", shown: Series) -> None:
        for label in parts:
            part = {name: shown[f"{label}, {name}"] for name in ("idle", *_PASSES)}
            _fill_passes(ax, part, gid=False, labels=label == list(parts)[-1])
        ax.axvline(1.0, color=INK, lw=1, ls=":")
        ax.set_xlim(0.0, 1.5)
        ax.set_ylim(-0.05, 2.2)
        ax.set_yticks([1.65, 0.5], list(parts))
        ax.tick_params(axis="y", length=0)
        ax.grid(visible=False)
        ax.set_xlabel("time over a step without bubble")
        legend_above(ax, ncols=3, rows=2)

    return draw_on_figure(draw, series)


# where the time goes against the size of the cluster


def series_breakdown(
    n_layers: float,
    d_model: float,
    batch: int,
    network: float,
    stack: str,
    n: int,
) -> Series:
    """Return shares of the step of the best layout against accelerators, stacked."""
    sizes, shares = [], []
    steps = quick_steps(n_layers, d_model, batch, network, stack)
    for count, step in zip(COUNTS, steps, strict=True):
        if step is not None:
            sizes.append(float(count))
            each = grouped(step)
            shares.append([100.0 * t / step.seconds for t in each.values()])
    series: Series = {}
    if len(sizes) < 2:
        series = {f"area-{i}": _NOTHING for i in range(len(GROUPS))}
        return series | {"here": (np.full(2, float(n)), np.array([0.0, 100.0]))}
    x = np.array(sizes)
    top = np.cumsum(np.array(shares), axis=1)
    bottom = np.zeros(len(x))
    for i in range(len(GROUPS)):
        upper = top[:, i]
        series[f"area-{i}"] = (np.r_[x, x[::-1]], np.r_[bottom, upper[::-1]])
        bottom = upper
    series["here"] = (np.full(2, float(n)), np.array([0.0, 100.0]))
    return series


def draw_breakdown(ax: "Axes", series: Series) -> None:
    """Draw stacked shares of the step against accelerators."""
    for i, (name, (_, colour, hatch)) in enumerate(GROUPS.items()):
        ax.fill(*series[f"area-{i}"], facecolor=colour, edgecolor="#ffffff",
                hatch=hatch, lw=0.5, gid=f"area-{i}", label=name)  # fmt: skip
    ax.plot(*series["here"], ":", color=INK, lw=2, gid="here")
    ax.set_xscale("log", base=2)
    ax.set_xlim(COUNTS[0], COUNTS[-1])
    ax.set_xticks([8, 32, 128, 512, 2048], ["8", "32", "128", "512", "2,048"])
    ax.minorticks_off()
    ax.set_ylim(0.0, 100.0)
    ax.set_yticks([0, 25, 50, 75, 100])
    ax.set_xlabel("accelerators")
    ax.set_ylabel("share of the step [%]")
    legend_above(ax, ncols=3, rows=3)


def plot_breakdown(
    n_layers: int, d_model: int, batch: int, n: int, stack: str = "megatron-bridge"
) -> Drawing:
    """Draw where the time of a fixed batch goes as the cluster grows."""
    series = series_breakdown(n_layers, d_model, batch, 50.0, stack, n)
    return draw_on_figure(draw_breakdown, series)


# layouts side by side


def series_times(found: Ranking | str) -> Series:
    """Return sorted times of all feasible layouts over the best, and the tie."""
    flat = (np.array([0.0, 100.0]), np.ones(2))
    if isinstance(found, str):
        return {"times": (np.zeros(0), np.zeros(0)), "tie": flat}
    share = np.linspace(0.0, 100.0, 101)
    factor = np.percentile(found.seconds, share) / found.best.seconds
    return {
        "times": (share, np.minimum(factor, 10.0)),
        "tie": (flat[0], np.full(2, 1.0 + found.tie)),
    }


def draw_times(ax: "Axes", series: Series) -> None:
    """Draw the times of all feasible layouts, sorted."""
    ax.plot(*series["times"], color=BLUE, gid="times", label="feasible layouts")
    ax.plot(*series["tie"], ":", color=ORANGE, gid="tie", label="the model's own error")
    ax.set_xlim(0.0, 100.0)
    ax.set_yscale("log")
    ax.set_ylim(0.95, 10.0)
    ax.set_yticks([1, 1.4, 2, 3, 5, 10], ["1", "1.4", "2", "3", "5", "10"])
    ax.minorticks_off()
    ax.set_xlabel("layouts, fastest first [%]")
    ax.set_ylabel("time over the best")
    ax.legend(loc="upper left")


def plot_times(rankings: Mapping[str, Ranking]) -> Drawing:
    """Draw the sorted times of several searches."""
    series: Series = {k: series_times(v)["times"] for k, v in rankings.items()}
    tie = max(found.tie for found in rankings.values())
    looks = zip((BLUE, ORANGE, GREEN), ("-", "--", "-."), strict=True)

    def draw(ax: "Axes", shown: Series) -> None:
        for (name, xy), (colour, dash) in zip(shown.items(), looks, strict=False):
            ax.plot(*xy, dash, color=colour, label=name)
        ax.axhspan(1.0, 1.0 + tie, color=GREY, alpha=0.25, lw=0, label="ties")
        ax.set_xlim(0.0, 100.0)
        ax.set_yscale("log")
        ax.set_ylim(0.97, 6.0)
        ax.set_yticks([1, 1.2, 1.5, 2, 3, 5], ["1", "1.2", "1.5", "2", "3", "5"])
        ax.minorticks_off()
        ax.set_xlabel("feasible layouts, fastest first [%]")
        ax.set_ylabel("time of a step over the best")
        ax.legend(loc="upper left")

    return draw_on_figure(draw, series, height=3.4)


def series_bars(found: Ranking | str) -> Series:
    """Return the fastest layouts as stacked bars, in percent of the best step."""
    if isinstance(found, str):
        return {f"bar-{i}": _NOTHING for i in range(len(GROUPS))}
    best = found.best.seconds
    parts = np.array([list(grouped(s).values()) for s in found.steps]) * 100.0 / best
    ends = np.minimum(np.cumsum(parts, axis=1), 200.0)
    starts = np.minimum(ends - parts, 200.0)
    y = -np.arange(len(parts), dtype=np.float64)
    return {
        f"bar-{i}": _boxes(starts[:, i], ends[:, i], y - 0.36, y + 0.36)
        for i in range(len(GROUPS))
    }


def draw_bars(ax: "Axes", series: Series) -> None:
    """Draw the fastest layouts as stacked bars."""
    for i, (name, (_, colour, hatch)) in enumerate(GROUPS.items()):
        ax.fill(*series[f"bar-{i}"], facecolor=colour, edgecolor="#ffffff",
                hatch=hatch, lw=0, gid=f"bar-{i}", label=name)  # fmt: skip
    ax.axvline(100.0, color=INK, lw=1, ls=":")
    ax.set_xlim(0.0, 130.0)
    ax.set_ylim(-_BARS + 0.4, 0.6)
    ax.set_yticks([-float(i) for i in range(_BARS)], [f"{i + 1}" for i in range(_BARS)])
    ax.grid(axis="y", visible=False)
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel("time, best layout = 100 %")
    ax.set_ylabel("rank of the layout")
    legend_above(ax, ncols=3, rows=3)
