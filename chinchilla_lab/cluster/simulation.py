"""Failures drawn at random: the check on the closed forms, and the spread of a run."""

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from chinchilla_lab.checks import non_negative, positive, whole
from chinchilla_lab.cluster.goodput import Goodput
from chinchilla_lab.tables import html_table
from chinchilla_lab.units import text

__all__ = ["RunTimes", "simulate_goodput", "simulate_runs"]

Array = NDArray[np.float64]
T = TypeVar("T")
# more than these are drawn in blocks, each with a generator of its own
FAILURES_BLOCK, RUNS_BLOCK = 100_000, 1000


def _blocks(
    work: Callable[..., T],
    settings: tuple[float | bool, ...],
    n: int,
    size: int,
    seed: int | np.random.Generator,
    executor: Executor | None,
) -> list[T]:
    """Draw in blocks, so that what is drawn does not depend on where."""
    rng = np.random.default_rng(seed)
    if n <= size:
        rngs, sizes = [rng], [n]
    else:
        # the rest goes to the last, which may be larger: none is tiny
        sizes = [size] * (n // size - 1) + [size + n % size]
        rngs = list(rng.spawn(len(sizes)))
    columns = [[value] * len(sizes) for value in settings]
    spread = map if executor is None else executor.map
    return list(spread(work, *columns, sizes, rngs))


def _kept(up: Array, tau: float, delta: float, blocking: bool) -> Array:
    """Work that survives a failure after some time of work and checkpoints."""
    if blocking:
        return tau * np.floor(up / (tau + delta))
    return tau * np.floor(np.maximum(up - delta, 0.0) / tau)


def simulate_goodput(
    mean_time: float,
    restart: float,
    interval: float,
    save: float = 0.0,
    blocking: bool = True,
    failures: int = 100_000,
    seed: int | np.random.Generator = 0,
    executor: Executor | None = None,
) -> Goodput:
    """Draw failures and count what a long run keeps.

    Parameters
    ----------
    mean_time : float
        Mean time between failures, [s]
    restart : float
        Time from a failure to the first new step, [s]
    interval : float
        Work between checkpoints, [s]
    save : float, optional
        Time that a checkpoint takes, [s]
    blocking : bool, optional
        The job waits for the checkpoint, [-]
    failures : int, optional
        Failures to draw, [-]
    seed : int or numpy.random.Generator, optional
        Seed, or a generator, [-]
    executor : concurrent.futures.Executor, optional
        Where to draw, in blocks; the result does not depend on it, [-]

    Returns
    -------
    Goodput
        Shares with the standard error of the first, [-]

    Examples
    --------
    >>> drawn = simulate_goodput(3.09 * 3600, 300, interval=1160, save=60)
    >>> f"{drawn.share:.3f} +- {drawn.error:.4f}"
    '0.875 +- 0.0003'
    """
    M = float(positive("mean_time", mean_time))
    tau, delta = float(positive("interval", interval)), float(
        non_negative("save", save)
    )  # fmt: skip
    back, n = float(non_negative("restart", restart)), whole("failures", failures, 2)
    parts = _blocks(
        _failures, (M, tau, delta, back, blocking), n, FAILURES_BLOCK, seed, executor
    )
    gaps, kept, idle, waits = (
        np.concatenate([p[i] for p in parts]) for i in range(4)
    )  # fmt: skip
    total = float(gaps.sum())
    share, lost = float(kept.sum()) / total, float(idle.sum()) / total
    saving = float(waits.sum()) / total
    error = float(np.std(kept - share * gaps, ddof=1) * np.sqrt(n)) / total
    return Goodput(
        share=share, saving=saving, repeated=1.0 - share - saving - lost,
        restarting=lost, interval=tau, mean_time=M, error=error,
    )  # fmt: skip


def _failures(
    M: float, tau: float, delta: float, back: float, blocking: bool, n: int,
    rng: np.random.Generator,
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    """Draw gaps, work that survives each, restarts and waits for checkpoints."""
    gaps = rng.exponential(M, n)
    up = np.maximum(gaps - back, 0.0)
    kept = _kept(up, tau, delta, blocking)
    waits = kept / tau * delta if blocking else np.zeros(n)
    return gaps, kept, np.minimum(gaps, back), waits


@dataclass(frozen=True, kw_only=True, eq=False)
class RunTimes:
    """Times that the same run takes when failures fall differently.

    Parameters
    ----------
    seconds : numpy.ndarray
        Time of each drawn run, [s]
    failures : numpy.ndarray
        Failures of each, [-]
    """

    seconds: Array
    failures: NDArray[np.int64]

    def interval(self, level: float = 0.9) -> tuple[float, float]:
        """Return the range that holds a share of the runs.

        Parameters
        ----------
        level : float, optional
            Share, [-]

        Returns
        -------
        tuple of float
            Lower and upper end, [s]
        """
        tail = 50.0 * (1.0 - level)
        low, high = np.percentile(self.seconds, [tail, 100.0 - tail])
        return float(low), float(high)

    def _repr_html_(self) -> str:
        low, high = self.interval()
        rows = [
            ["mean", text(float(self.seconds.mean()), "s")],
            ["90 % from", text(low, "s")],
            ["to", text(high, "s")],
            ["failures", f"{self.failures.mean():.1f}"],
        ]
        return html_table(("runs", "value"), rows)


def simulate_runs(
    work: float,
    mean_time: float,
    restart: float,
    interval: float,
    save: float = 0.0,
    blocking: bool = True,
    runs: int = 1000,
    seed: int | np.random.Generator = 0,
    executor: Executor | None = None,
) -> RunTimes:
    """Draw whole runs until each has done its work.

    Parameters
    ----------
    work : float
        Time that the run takes without failures and checkpoints, [s]
    mean_time : float
        Mean time between failures, [s]
    restart : float
        Time from a failure to the first new step, [s]
    interval : float
        Work between checkpoints, [s]
    save : float, optional
        Time that a checkpoint takes, [s]
    blocking : bool, optional
        The job waits for the checkpoint, [-]
    runs : int, optional
        Runs to draw, a thousand at once, [-]
    seed : int or numpy.random.Generator, optional
        Seed, or a generator, [-]
    executor : concurrent.futures.Executor, optional
        Where to draw, in blocks; the result does not depend on it, [-]

    Returns
    -------
    RunTimes
        Times and failures, [s] and [-]

    Examples
    --------
    >>> drawn = simulate_runs(30 * 86400, 33 * 86400, 300, 18000, save=60)
    >>> drawn.seconds.min() >= 30 * 86400
    np.True_
    """
    goal, M = float(positive("work", work)), float(positive("mean_time", mean_time))
    tau, delta = float(positive("interval", interval)), float(
        non_negative("save", save)
    )  # fmt: skip
    back, n = float(non_negative("restart", restart)), whole("runs", runs)
    parts = _blocks(
        _runs, (goal, M, tau, delta, back, blocking), n, RUNS_BLOCK, seed, executor
    )
    return RunTimes(
        seconds=np.concatenate([seconds for seconds, _ in parts]),
        failures=np.concatenate([count for _, count in parts]),
    )


def _runs(
    goal: float, M: float, tau: float, delta: float, back: float, blocking: bool,
    n: int, rng: np.random.Generator,
) -> tuple[Array, NDArray[np.int64]]:  # fmt: skip
    """Draw whole runs, all at once: their times and failures."""
    done, spent = np.zeros(n), np.zeros(n)
    count = np.zeros(n, dtype=np.int64)
    active = np.arange(n)
    first = True
    while len(active):
        left = goal - done[active]
        # no checkpoint is due at the very end
        stops = np.maximum(np.ceil(left / tau - 1e-12) - 1.0, 0.0)
        needed = left + (stops * delta if blocking else 0.0)
        lead = 0.0 if first else back
        gaps = rng.exponential(M, len(active))
        up = gaps - lead
        ends = up >= needed
        spent[active] += np.where(ends, lead + needed, gaps)
        kept = _kept(np.maximum(up, 0.0), tau, delta, blocking)
        done[active] += np.where(ends, left, kept)
        count[active] += ~ends
        active = active[~ends]
        first = False
    return spent, count
