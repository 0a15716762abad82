"""What bounds a cluster from outside a step: the batch that feeds it, and failures."""

import warnings
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from chinchilla_lab.allocation import compute_optimal
from chinchilla_lab.checks import ExtrapolationWarning, InfeasibleError
from chinchilla_lab.cluster.accelerators import ACCELERATORS
from chinchilla_lab.cluster.batch import steps_and_examples
from chinchilla_lab.cluster.calibration import MeasuredStep
from chinchilla_lab.cluster.cost import published_hours
from chinchilla_lab.cluster.failures import DEFAULT_RELIABILITY, failure_records, mttf
from chinchilla_lab.cluster.goodput import Goodput, checkpoint_interval, goodput
from chinchilla_lab.cluster.hardware import Cluster
from chinchilla_lab.cluster.search import search
from chinchilla_lab.cluster.simulation import simulate_goodput
from chinchilla_lab.cluster.stacks import UNCALIBRATED
from chinchilla_lab.cluster.step import StepTime
from chinchilla_lab.figures.cluster_memory import SHOWN_SHAPES
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
from chinchilla_lab.laws import DEFAULT
from chinchilla_lab.units import DAY, HOUR

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "BATCHES",
    "SEQ_LEN",
    "SIZES",
    "draw_interval",
    "draw_nodes",
    "draw_scaling",
    "draw_steps_examples",
    "equal_loss",
    "fastest_step",
    "fixed_and_each",
    "interval_used",
    "naive_budget",
    "plan_tokens",
    "plot_batch_days",
    "plot_interval",
    "plot_measured_scaling",
    "plot_mttf",
    "plot_steps_examples",
    "run_goodput",
    "series_interval",
    "series_nodes",
    "series_scaling",
    "series_steps_examples",
]

Array = NDArray[np.float64]
SEQ_LEN = 4096
"""Sequence length of both teams, [token]"""
SIZES = tuple(2**k for k in range(6, 17))
"""Clusters on the axes, [-]"""
BATCHES = tuple(2**k for k in range(7, 16))
"""Batches on the axes, [sequence]"""
# accelerators and days of the teams' plans, which assume 40 % MFU
_PLANS = {"loft": (64, 30.0), "hall": (16384, 60.0)}
_ASSUMED_MFU = 0.4
_CHIP = "h100-sxm-80gb"
_MINUTE = 60.0
_RATIOS = np.geomspace(0.01, 100.0, 81)
# work between checkpoints [s]: lines, and simulated points
_TAUS = _MINUTE * np.geomspace(1.0, 600.0, 41)
_DRAWN = _MINUTE * np.geomspace(1.5, 500.0, 8)
_NODES = np.geomspace(1.0, 16384.0, 21)


def naive_budget(plan: str) -> float:
    """Compute that a team expects of its cluster, at an assumed MFU.

    Parameters
    ----------
    plan : {"loft", "hall"}
        The team, [-]

    Returns
    -------
    float
        Budget, [FLOP]
    """
    n, days = _PLANS[plan]
    return n * days * DAY * _ASSUMED_MFU * ACCELERATORS[_CHIP].peak("bf16")


@lru_cache
def plan_tokens(plan: str) -> float:
    """Tokens of a team's compute-optimal plan, or of a published run.

    Parameters
    ----------
    plan : str
        The team, or a key of :func:`~chinchilla_lab.cluster.published_hours`, [-]

    Returns
    -------
    float
        Training tokens, [token]
    """
    if plan in _PLANS:
        with warnings.catch_warnings():
            # teams plan beyond the fits, as everybody does; their chapters say so
            warnings.simplefilter("ignore", ExtrapolationWarning)
            return float(compute_optimal(DEFAULT, naive_budget(plan)).D)
    return published_hours()[plan].D_tokens


@lru_cache(maxsize=4096)
def fastest_step(
    shape: str, n: int, sequences: int, cp: bool = False, stack: str = UNCALIBRATED.name
) -> StepTime | None:
    """Fastest layout of a shape on H100s at a batch.

    Parameters
    ----------
    shape : str
        Key of :data:`~chinchilla_lab.figures.cluster_memory.SHOWN_SHAPES`, [-]
    n : int
        Accelerators, [-]
    sequences : int
        Batch, [sequence]
    cp : bool, optional
        Sequences may be cut over up to 4 accelerators, [-]
    stack : str, optional
        Constants of the step model, [-]

    Returns
    -------
    StepTime or None
        The step; None if no layout divides and fits, [s]
    """
    machine = Cluster(accelerator=_CHIP, n_accelerators=n)
    ways = (1, 2, 4) if cp else (1,)
    try:
        found = search(
            SHOWN_SHAPES[shape][1], machine, sequences, SEQ_LEN, stack, keep=1, cp=ways
        )
    except InfeasibleError:
        return None
    return found.best


def equal_loss(batch: Array | float, critical: Array | float) -> Array:
    r"""Tokens that a batch needs for a loss, over those at the critical batch.

    .. math:: \frac{E(B)}{E(B_c)} = \frac{1 + B / B_c}{2}

    Parameters
    ----------
    batch : array_like
        Batch, [token]
    critical : array_like
        Critical batch, [token]

    Returns
    -------
    numpy.ndarray or float
        Ratio, [-]
    """
    here = steps_and_examples(batch, critical).examples
    return here / steps_and_examples(critical, critical).examples


def fixed_and_each(shape: str, n: int, cp: bool = False) -> tuple[float, float] | None:
    r"""Split a step into fixed seconds and seconds for each token, by two batches.

    .. math:: t = \tau_0 + \kappa B

    Parameters
    ----------
    shape : str
        Key of the shape, [-]
    n : int
        Accelerators, [-]
    cp : bool, optional
        Sequences may be cut, [-]

    Returns
    -------
    tuple of float or None
        :math:`\tau_0` [s] and :math:`\kappa` [s/token]; None if a batch has no layout
    """
    few, many = BATCHES[-4], BATCHES[-2]
    low, high = fastest_step(shape, n, few, cp), fastest_step(shape, n, many, cp)
    if low is None or high is None:
        return None
    each = (high.seconds - low.seconds) / (many - few)
    return max(low.seconds - few * each, 0.0), each / SEQ_LEN


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
    found = [(k, fastest_step(shape, k, sequences, cp)) for k in SIZES]
    rows = [(float(k), s.tokens_per_second) for k, s in found if s is not None]
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
        found = [(b, fastest_step(shape, n, b, cp)) for b in BATCHES[2:]]
        rows = [(b * SEQ_LEN, s.days(tokens)) for b, s in found if s is not None]
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
