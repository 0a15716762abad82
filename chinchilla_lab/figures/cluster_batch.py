"""The batch that feeds a cluster: steps against examples, and speed at one batch."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from chinchilla_lab.cluster.batch import steps_and_examples
from chinchilla_lab.cluster.calibration import MeasuredStep
from chinchilla_lab.figures.cluster_teams import (
    BATCHES,
    SEQ_LEN,
    SIZES,
    equal_loss,
    fastest_steps,
    plan_tokens,
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
    legend_above,
    log_axis,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "draw_scaling",
    "draw_steps_examples",
    "plot_batch_days",
    "plot_measured_scaling",
    "plot_steps_examples",
    "series_scaling",
    "series_steps_examples",
]

Array = NDArray[np.float64]
_RATIOS = np.geomspace(0.01, 100.0, 81)


def series_steps_examples(batch: float, critical: float, band: float = 1.0) -> Series:
    """Return both costs of a batch, and where yours lies.

    Parameters
    ----------
    batch : float
        Batch, [token]
    critical : float
        Critical batch, [token]
    band : float, optional
        Factor within which the critical batch is known, [-]

    Returns
    -------
    dict
        Batch over critical batch and cost over its least, [-]
    """
    costs = steps_and_examples(_RATIOS, 1.0)
    x = np.array([batch / critical])
    here = steps_and_examples(x, 1.0)
    ends = np.clip(x[0] * np.array([1.0 / band, band]), _RATIOS[0], _RATIOS[-1])
    return {
        "steps": (_RATIOS, costs.steps),
        "examples": (_RATIOS, costs.examples),
        "band": (ends, np.full(2, 1.15)),
        "your-steps": (x, here.steps),
        "your-examples": (x, here.examples),
    }


def draw_steps_examples(ax: "Axes", series: Series) -> None:
    """Draw steps and examples against the batch."""
    ax.plot(*series["band"], color=SKY, lw=6, gid="band", label="your batch, band")
    ax.plot(*series["steps"], color=BLUE, gid="steps", label="steps")
    ax.plot(*series["examples"], "--", color=ORANGE, gid="examples", label="examples")
    ax.plot(*series["your-steps"], "o", color=BLUE, ms=8, gid="your-steps")
    ax.plot(*series["your-examples"], "D", color=ORANGE, ms=7, gid="your-examples")
    log_axis(ax, "x", 0.01, 100.0, "")
    log_axis(ax, "y", 1.0, 110.0, "")
    ax.set_xlabel("batch / critical batch")
    ax.set_ylabel("cost / least cost")
    ax.legend(loc="upper center", fontsize=8)


def series_scaling(shape: str, n: int, sequences: int, cp: bool = False) -> Series:
    """Return the modelled speed against the accelerators, at one batch.

    Parameters
    ----------
    shape : str
        Key of the shape, [-]
    n : int
        Accelerators of yours, [-]
    sequences : int
        Batch, [sequence]
    cp : bool, optional
        Sequences may be cut, [-]

    Returns
    -------
    dict
        Accelerators [-] and speed [token/s]
    """
    steps = fastest_steps(shape, [(k, sequences) for k in SIZES], cp)
    rows = [
        (float(k), s.tokens_per_second)
        for k, s in zip(SIZES, steps, strict=True)
        if s is not None
    ]
    x = np.array([k for k, _ in rows])
    y = np.array([speed for _, speed in rows])
    mine = x == float(n)
    ideal = x * float((y / x).max()) if len(x) else y
    return {"ideal": (x, ideal), "speed": (x, y), "yours": (x[mine], y[mine])}


def draw_scaling(ax: "Axes", series: Series) -> None:
    """Draw speed against accelerators."""
    ax.plot(*series["ideal"], ":", color=GREY, gid="ideal", label="twice for twice")
    ax.plot(*series["speed"], "o-", color=BLUE, ms=4, gid="speed", label="model")
    ax.plot(*series["yours"], "D", color=ORANGE, ms=8, gid="yours", label="yours")
    log_axis(ax, "x", 50.0, 1e5, "count")
    log_axis(ax, "y", 1e4, 1e9, "count")
    ax.set_xlabel("accelerators")
    ax.set_ylabel("speed [token/s]")
    ax.legend(loc="upper left")


def plot_steps_examples() -> Drawing:
    """Draw the trade of steps against examples, with the critical batch marked.

    Returns
    -------
    Drawing
        The figure, [-]
    """
    series = series_steps_examples(1.0, 1.0)

    def draw(ax: "Axes", shown: Series) -> None:
        ax.plot(*shown["steps"], color=BLUE, label="steps")
        ax.plot(*shown["examples"], "--", color=ORANGE, label="examples")
        ax.plot(*shown["your-steps"], "o", color=INK, ms=8, label="critical batch")
        log_axis(ax, "x", 0.01, 100.0, "")
        log_axis(ax, "y", 1.0, 110.0, "")
        ax.set_xlabel("batch / critical batch")
        ax.set_ylabel("cost / least cost")
        ax.legend(loc="upper center")

    return draw_on_figure(draw, series)


def plot_measured_scaling(rows: Sequence[MeasuredStep]) -> Drawing:
    """Draw measured speed against accelerators at one batch, for three sizes.

    Parameters
    ----------
    rows : sequence of MeasuredStep
        Steps of the table ``"nanotron"`` of :mod:`chinchilla_lab.validation`, [s]

    Returns
    -------
    Drawing
        The figure, [-]

    References
    ----------
    :cite:`nanotron`, benchmark summary
    """
    looks = {3.57: (BLUE, "o-"), 8.86: (ORANGE, "s--"), 80.0: (GREEN, "D-.")}
    series: Series = {}
    for size in looks:
        found = sorted(
            (float(r.cluster.n_accelerators), r.batch * r.seq_len / r.seconds)
            for r in rows
            if abs(r.shape.params().total / 1e9 / size - 1.0) < 0.01
        )
        series[f"{size:.3g}B"] = (
            np.array([n for n, _ in found]),
            np.array([speed for _, speed in found]),
        )

    def draw(ax: "Axes", shown: Series) -> None:
        for (name, points), (colour, look) in zip(
            shown.items(), looks.values(), strict=True
        ):
            ax.plot(*points, look, color=colour, label=name)
        sizes = np.array([8.0, 512.0])
        ax.plot(sizes, 6e4 * sizes / 8.0, ":", color=GREY, label="twice for twice")
        ax.set_xscale("log", base=2)
        ticks = [8, 16, 32, 64, 128, 256, 512]
        ax.set_xticks(ticks, [str(t) for t in ticks])
        log_axis(ax, "y", 2e4, 6e6, "count")
        ax.minorticks_off()
        ax.set_xlabel("H100s")
        ax.set_ylabel("measured speed [token/s]")
        ax.legend(loc="upper left")

    return draw_on_figure(draw, series)


def plot_batch_days(critical: float, shape: str = "hall", n: int = 16384) -> Drawing:
    """Draw the days of a run against its batch, at equal tokens and at equal loss.

    Parameters
    ----------
    critical : float
        Critical batch, [token]
    shape : str, optional
        The team, [-]
    n : int, optional
        Accelerators, [-]

    Returns
    -------
    Drawing
        The figure, [-]
    """
    tokens = plan_tokens(shape)
    series: Series = {}
    for name, cp in (("plain", False), ("cut", True)):
        steps = fastest_steps(shape, [(n, b) for b in BATCHES[2:]], cp)
        rows = [
            (b * SEQ_LEN, s.days(tokens))
            for b, s in zip(BATCHES[2:], steps, strict=True)
            if s is not None
        ]
        batch = np.array([float(b) for b, _ in rows])
        days = np.array([d for _, d in rows])
        series[f"{name}, equal tokens"] = (batch, days)
        series[f"{name}, equal loss"] = (batch, days * equal_loss(batch, critical))

    def draw(ax: "Axes", shown: Series) -> None:
        ax.plot(*shown["plain, equal tokens"], "o-", color=BLUE, label="equal tokens")
        ax.plot(*shown["plain, equal loss"], "s--", color=ORANGE, label="equal loss")
        ax.plot(*shown["cut, equal tokens"], "o:", color=SKY, mfc="none", zorder=1,
                label="equal tokens, sequences cut")  # fmt: skip
        ax.plot(*shown["cut, equal loss"], "s:", color=PURPLE, mfc="none", zorder=1,
                label="equal loss, sequences cut")  # fmt: skip
        ax.axvline(critical, color=GREY, lw=1, ls=(0, (1, 2)))
        ax.text(critical * 1.05, 150.0, "critical", color=GREY, fontsize=8.5)
        ax.set_xscale("log", base=2)
        ticks = [SEQ_LEN * b for b in BATCHES[2:]]
        ax.set_xticks(ticks, [f"{t / 1e6:.1f}M" for t in ticks])
        ax.set_yscale("log")
        ax.set_ylim(15.0, 200.0)
        ax.set_yticks([20, 50, 100, 200], ["20", "50", "100", "200"])
        ax.minorticks_off()
        ax.set_xlabel("batch [token]")
        ax.set_ylabel("run [day]")
        legend_above(ax, ncols=2, rows=2)

    return draw_on_figure(draw, series)
