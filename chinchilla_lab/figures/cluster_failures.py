"""What failures take from a cluster, against checkpoints and size."""

from typing import TYPE_CHECKING

import numpy as np

from chinchilla_lab.cluster.failures import DEFAULT_RELIABILITY, failure_records, mttf
from chinchilla_lab.cluster.goodput import Goodput, checkpoint_interval, goodput
from chinchilla_lab.cluster.simulation import simulate_goodput
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
from chinchilla_lab.units import HOUR

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "draw_interval",
    "draw_nodes",
    "interval_used",
    "plot_interval",
    "plot_mttf",
    "run_goodput",
    "series_interval",
    "series_nodes",
]

_MINUTE = 60.0
# work between checkpoints [s]: lines, and simulated points
_TAUS = _MINUTE * np.geomspace(1.0, 600.0, 41)
_DRAWN = _MINUTE * np.geomspace(1.5, 500.0, 8)
_NODES = np.geomspace(1.0, 16384.0, 21)


def interval_used(
    interval: float, save: float, mean_time: float, best: bool, blocking: bool
) -> float:
    """Work between checkpoints: yours or the best, and never too short to be written.

    Parameters
    ----------
    interval : float
        Your interval, [s]
    save : float
        Time that a checkpoint takes, [s]
    mean_time : float
        Mean time between failures, [s]
    best : bool
        Take the interval that loses least, [-]
    blocking : bool
        The job waits for the checkpoint, [-]

    Returns
    -------
    float
        Interval, [s]
    """
    if not best:
        return interval if blocking else max(interval, save)
    # beside the work, checkpoints may follow each other at once
    return float(checkpoint_interval(save, mean_time)) if blocking else save


def run_goodput(
    nodes: float, rate: float, save: float, restart: float, interval: float,
    best: bool = True, blocking: bool = True,
) -> Goodput:  # fmt: skip
    """Share of its time that a job of some nodes keeps.

    Parameters
    ----------
    nodes : float
        Nodes, [-]
    rate : float
        Failures of a node, [1/(node day)]
    save : float
        Time that a checkpoint takes, [s]
    restart : float
        Time from a failure to the first new step, [s]
    interval : float
        Your interval, [s]
    best : bool, optional
        Take the interval that loses least instead, [-]
    blocking : bool, optional
        The job waits for the checkpoint, [-]

    Returns
    -------
    Goodput
        Shares, [-]
    """
    M = float(mttf(nodes, rate))
    tau = interval_used(interval, save, M, best, blocking)
    return goodput(M, restart, tau, save, blocking)


def series_interval(
    mean_time: float, save: float, restart: float, interval: float,
    blocking: bool = True, seed: int = 0, drawn: int = 2000,
) -> Series:  # fmt: skip
    """Return what is lost against the interval, by cause and as simulated.

    Parameters
    ----------
    mean_time : float
        Mean time between failures, [s]
    save : float
        Time that a checkpoint takes, [s]
    restart : float
        Time from a failure to the first new step, [s]
    interval : float
        Your interval, [s]
    blocking : bool, optional
        The job waits for the checkpoint, [-]
    seed : int, optional
        Seed of the simulation, [-]
    drawn : int, optional
        Failures drawn for each point, [-]

    Returns
    -------
    dict
        Interval [min] and share of the time [%]; gaps where nothing is lost
    """
    # beside the work the next checkpoint must wait for the last one
    least = 0.0 if blocking else save
    taus = np.append(_TAUS[least <= _TAUS], interval)
    found = [goodput(mean_time, restart, t, save, blocking) for t in taus]
    rng = np.random.default_rng(seed)
    points = _DRAWN[least <= _DRAWN]
    lost = [
        1.0 - simulate_goodput(mean_time, restart, t, save, blocking, drawn, rng).share
        for t in points
    ]
    x = taus[:-1] / _MINUTE
    parts = {
        "saving": [g.saving for g in found],
        "repeated": [g.repeated for g in found],
        "restarting": [g.restarting for g in found],
        "lost": [1.0 - g.share for g in found],
    }
    shares = {k: 100.0 * np.array(v) for k, v in parts.items()}
    # a logarithmic axis has no zero
    shown = {k: np.where(v > 0.0, v, np.nan) for k, v in shares.items()}
    return {
        **{k: (x, v[:-1]) for k, v in shown.items()},
        "drawn": (points / _MINUTE, 100.0 * np.array(lost)),
        "yours": (taus[-1:] / _MINUTE, shown["lost"][-1:]),
    }


def draw_interval(ax: "Axes", series: Series) -> None:
    """Draw the loss against the interval."""
    ax.plot(*series["saving"], "--", color=BLUE, gid="saving", label="saving")
    ax.plot(*series["repeated"], "-.", color=ORANGE, gid="repeated", label="done again")
    ax.plot(*series["restarting"], ":", color=GREEN, gid="restarting", label="restarts")
    ax.plot(*series["lost"], color=INK, gid="lost", label="all")
    ax.plot(*series["drawn"], "x", color=PURPLE, ms=6, gid="drawn", label="simulated")
    ax.plot(*series["yours"], "D", color=RED, ms=7, gid="yours", label="chosen")
    log_axis(ax, "x", 0.9, 660.0, "")
    log_axis(ax, "y", 0.01, 110.0, "")
    ax.set_xlabel("work between checkpoints [min]")
    ax.set_ylabel("share of the time [%]")
    ax.legend(loc="lower left", ncols=2, fontsize=7.5, columnspacing=0.8)


def series_nodes(
    nodes: float, rate: float, save: float, restart: float, interval: float,
    best: bool = True, blocking: bool = True,
) -> Series:  # fmt: skip
    """Return what is lost against the nodes, with both kinds of checkpoints.

    Parameters
    ----------
    nodes : float
        Nodes of yours, [-]
    rate : float
        Failures of a node, [1/(node day)]
    save : float
        Time that a checkpoint takes, [s]
    restart : float
        Time from a failure to the first new step, [s]
    interval : float
        Your interval, [s]
    best : bool, optional
        Each size takes its own best interval, [-]
    blocking : bool, optional
        Yours waits for the checkpoint, [-]

    Returns
    -------
    dict
        Nodes [-] and share of the time that is lost [%]
    """
    means = mttf(_NODES, rate)
    waits = checkpoint_interval(save, means) if best else np.full_like(_NODES, interval)
    beside = save if best else max(interval, save)
    lost = [
        (
            1.0 - goodput(float(M), restart, float(tau), save).share,
            1.0 - goodput(float(M), restart, beside, save, blocking=False).share,
        )
        for M, tau in zip(means, waits, strict=True)
    ]
    mine = run_goodput(nodes, rate, save, restart, interval, best, blocking)
    return {
        "waits": (_NODES, np.array([100.0 * a for a, _ in lost])),
        "beside": (_NODES, np.array([100.0 * b for _, b in lost])),
        "here": (np.array([float(nodes)]), np.array([100.0 * (1.0 - mine.share)])),
    }


def draw_nodes(ax: "Axes", series: Series) -> None:
    """Draw the loss against the nodes."""
    ax.plot(*series["waits"], color=BLUE, gid="waits", label="job waits for saving")
    ax.plot(*series["beside"], "--", color=GREEN, gid="beside", label="saved beside")
    ax.plot(*series["here"], "D", color=RED, ms=7, gid="here", label="yours")
    log_axis(ax, "x", 0.8, 2e4, "count")
    log_axis(ax, "y", 0.001, 110.0, "")
    ax.set_xlabel("nodes")
    ax.set_ylabel("lost [%]")
    ax.legend(loc="upper left")


def plot_interval(mean_time: float, save: float, restart: float) -> Drawing:
    """Draw the loss by cause against the interval, with the best one marked.

    Parameters
    ----------
    mean_time : float
        Mean time between failures, [s]
    save : float
        Time that a checkpoint takes, [s]
    restart : float
        Time from a failure to the first new step, [s]

    Returns
    -------
    Drawing
        The figure, [-]
    """
    best = float(checkpoint_interval(save, mean_time))
    series = series_interval(mean_time, save, restart, best, drawn=100_000)
    return draw_on_figure(draw_interval, series)


def plot_mttf() -> Drawing:
    """Draw the mean time between failures against the accelerators of a job.

    Returns
    -------
    Drawing
        The figure, [-]
    """
    size = DEFAULT_RELIABILITY.node_size
    low, high = DEFAULT_RELIABILITY.band
    n = np.geomspace(8.0, 131072.0, 33)
    records = failure_records()
    hardware = next(r for r in records if r.kind == "projected")
    points = {
        kind: [r for r in records if r.kind == kind]
        for kind in ("measured", "projected")
    }
    series: Series = {
        "least rate": (n, mttf(n / size, low) / HOUR),
        "largest rate": (n, mttf(n / size, high) / HOUR),
        "hardware": (n, mttf(n / size, hardware.failures_per_node_day) / HOUR),
    }
    for kind, rows in points.items():
        series[kind] = (
            np.array([float(size * r.n_nodes) for r in rows]),
            np.array([r.mean_time / HOUR for r in rows]),
        )

    def draw(ax: "Axes", shown: Series) -> None:
        ax.fill_between(n, shown["largest rate"][1], shown["least rate"][1], color=SKY,
                        alpha=0.25, lw=0, label="band of rates")  # fmt: skip
        ax.plot(*shown["hardware"], "--", color=GREY,
                label="hardware of the nodes alone")  # fmt: skip
        ax.plot(*shown["measured"], "o", color=BLUE, ms=8, label="measured")
        ax.plot(*shown["projected"], "D", mfc="none", color=ORANGE, ms=8,
                label="projected")  # fmt: skip
        log_axis(ax, "x", 6.0, 2e5, "count")
        log_axis(ax, "y", 0.05, 5e3, "")
        ax.set_xlabel("accelerators of the job")
        ax.set_ylabel("time between failures [h]")
        ax.legend(loc="upper right")

    return draw_on_figure(draw, series)
