"""What failures leave of a run: interval of checkpoints, goodput, stragglers.

Closed forms for a machine that fails at a constant rate. :mod:`.simulation` draws the
same machine, and the tests hold one against the other.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chinchilla_lab.checks import fraction, non_negative, one_of, positive, whole
from chinchilla_lab.sources import read_rows
from chinchilla_lab.tables import html_table
from chinchilla_lab.units import DAY, HOUR, text

__all__ = [
    "DEFAULT_RELIABILITY",
    "FailureRecord",
    "Goodput",
    "Reliability",
    "Stragglers",
    "checkpoint_interval",
    "failure_rate",
    "failure_records",
    "goodput",
    "least_overhead",
    "mttf",
    "restart_budget",
    "spares",
    "stragglers",
]

Array = NDArray[np.float64]
Order = Literal["first", "higher", "exact"]


def failure_rate(events: ArrayLike, days: ArrayLike, n_nodes: ArrayLike) -> Array:
    r"""Failures of a node in a day.

    .. math:: r = \frac{k}{T\,n}

    Parameters
    ----------
    events : array_like
        Interruptions k, [-]
    days : array_like
        Time T, [day]
    n_nodes : array_like
        Nodes n of the job, [-]

    Returns
    -------
    numpy.ndarray or float
        Rate, [1/(node day)]

    References
    ----------
    :cite:`grattafiori2024llama`, Table 5, for the numbers of the example

    Examples
    --------
    >>> f"{1000 * failure_rate(419, 54, 2048):.2f} per 1000 node-days"
    '3.79 per 1000 node-days'
    """
    time = positive("days", days) * positive("n_nodes", n_nodes)
    return (positive("events", events) / time)[()]


def mttf(n_nodes: ArrayLike, failures_per_node_day: ArrayLike) -> Array:
    r"""Mean time between failures of a job that needs all its nodes.

    .. math:: M = \frac{1}{n\,r}

    Parameters
    ----------
    n_nodes : array_like
        Nodes n, [-]
    failures_per_node_day : array_like
        Rate r of a node, [1/(node day)]

    Returns
    -------
    numpy.ndarray or float
        Mean time, [s]

    Notes
    -----
    Nodes fail one by one and at a constant rate. Failures of the hardware of nodes do
    not explain jobs of middling size: the rate that projects 1.8 h at 16,384
    accelerators gives 28.8 h at 1,024, where 7.9 h were measured. Take the rate of jobs
    of your own, or a band.

    References
    ----------
    :cite:`kokolis2024`, mean time to failure by job size

    Examples
    --------
    >>> f"{mttf(2048, 6.5e-3) / 3600:.1f} h"
    '1.8 h'
    """
    rate = positive("failures_per_node_day", failures_per_node_day)
    return (DAY / (positive("n_nodes", n_nodes) * rate))[()]


def checkpoint_interval(
    save: ArrayLike, mean_time: ArrayLike, order: Order = "exact"
) -> Array:
    r"""Time of work between two checkpoints that loses least.

    .. math:: \tau_1 = \sqrt{2\delta M}, \qquad
       \tau_2 = \tau_1\left(1 + \tfrac{1}{6} y + \tfrac{1}{36} y^2\right) - \delta,
       \quad y = \sqrt{2\delta/M}, \qquad
       (1 - x)\,e^{x + \delta/M} = 1,\ \tau = x M

    Parameters
    ----------
    save : array_like
        Time delta in which the job waits for a checkpoint, [s]
    mean_time : array_like
        Mean time M between failures, [s]
    order : {"first", "higher", "exact"}, optional
        Young's square root, the series to third order (Daly), or the root itself, [-]

    Returns
    -------
    numpy.ndarray or float
        Work between checkpoints, [s]

    Notes
    -----
    The exact root minimises :func:`goodput`'s blocking loss; the series is its
    expansion in y. The restart time does not move it.

    Examples
    --------
    >>> f"{checkpoint_interval(60, 3.09 * 3600, 'first') / 60:.1f} min"
    '19.3 min'
    """
    one_of("order", order, ("first", "higher", "exact"))
    d = positive("save", save) / positive("mean_time", mean_time)
    mean = positive("mean_time", mean_time)
    y = np.sqrt(2.0 * d)
    if order == "first":
        return (y * mean)[()]
    series = y * (1.0 + y / 6.0 + y * y / 36.0) - d
    if order == "higher":
        return (np.where(d < 2.0, series, 1.0) * mean)[()]
    # Newton on x + ln(1 - x) + d = 0, kept inside (0, 1)
    x = np.clip(np.where(d < 0.5, series, 1.0 - np.exp(-1.0 - d)), 1e-12, 1.0 - 1e-12)
    for _ in range(60):
        slope = -x / (1.0 - x)
        new = x - (x + np.log1p(-x) + d) / slope
        x = np.clip(new, 0.5 * x, 0.5 * (1.0 + x))
    return (x * mean)[()]


def least_overhead(save: ArrayLike, mean_time: ArrayLike) -> Array:
    r"""Share that checkpoints and repeated work cost at the best interval.

    .. math:: \sqrt{\frac{2\delta}{M}}

    Parameters
    ----------
    save : array_like
        Time delta in which the job waits for a checkpoint, [s]
    mean_time : array_like
        Mean time M between failures, [s]

    Returns
    -------
    numpy.ndarray or float
        Share to first order, restarts aside, [-]

    Examples
    --------
    >>> f"{least_overhead(60, 2.3 * 3600):.2f}"
    '0.12'
    """
    ratio = positive("save", save) / positive("mean_time", mean_time)
    return np.sqrt(2.0 * ratio)[()]


@dataclass(frozen=True, kw_only=True)
class Goodput:
    """Share of the time that ends up in the model (ETTR), and where the rest goes.

    Parameters
    ----------
    share : float
        Work kept over time, [-]
    saving : float
        Share spent waiting for checkpoints, [-]
    repeated : float
        Share of work done again, counted once, [-]
    restarting : float
        Share spent on restarts, failed ones included, [-]
    interval : float
        Work between checkpoints, [s]
    mean_time : float
        Mean time between failures, [s]
    error : float, optional
        Standard error of the share, for simulated ones, [-]
    """

    share: float
    saving: float
    repeated: float
    restarting: float
    interval: float
    mean_time: float
    error: float = 0.0

    def _repr_html_(self) -> str:
        rows = [
            ["work kept", f"{self.share:.2%}"],
            ["waiting for checkpoints", f"{self.saving:.2%}"],
            ["work done again", f"{self.repeated:.2%}"],
            ["restarts", f"{self.restarting:.2%}"],
        ]
        caption = (
            f"a failure every {text(self.mean_time, 's')}, "
            f"a checkpoint every {text(self.interval, 's')}"
        )
        return html_table(("time", "share"), rows, caption)


def goodput(
    mean_time: float,
    restart: float,
    interval: float | None = None,
    save: float = 0.0,
    blocking: bool = True,
    order: Literal["first", "exact"] = "exact",
) -> Goodput:
    r"""Share of the time that a run keeps, with failures at a constant rate.

    .. math:: \frac{\tau}{M e^{R/M}\left(e^{(\tau+\delta)/M} - 1\right)}
       \approx 1 - \frac{\delta}{\tau} - \frac{\tau/2 + R}{M}

    for checkpoints that stop the job; where they are written beside it,

    .. math:: \frac{\tau\,e^{-\delta/M}}{M e^{R/M}\left(e^{\tau/M} - 1\right)}
       \approx 1 - \frac{\tau/2 + \delta + R}{M}

    Parameters
    ----------
    mean_time : float
        Mean time M between failures; infinite for a machine that never fails, [s]
    restart : float
        Time R from a failure to the first new step: detection, repair or exchange,
        loading, [s]
    interval : float, optional
        Work tau between checkpoints; by default the best one, which needs ``save``,
        [s]
    save : float, optional
        Time delta that a checkpoint takes, [s]
    blocking : bool, optional
        The job waits for the checkpoint; otherwise it is written meanwhile and counts
        once it is complete, [-]
    order : {"first", "exact"}, optional
        The expansion that papers print, or the renewal process itself, [-]

    Returns
    -------
    Goodput
        Shares, summing to 1, [-]

    Raises
    ------
    ValueError
        If no interval is given and none follows from ``save``.

    Notes
    -----
    Half an interval is redone after a failure, on average, and it is lost once: the
    time of the first attempt is the loss, the second attempt is work that is kept.
    Failures during a restart start it again. Left out: failures that come together,
    and those that nobody notices.

    References
    ----------
    :cite:`kokolis2024`, effective training time ratio, first order, non-blocking

    Examples
    --------
    >>> hall = mttf(2048, 3.79e-3)
    >>> f"{goodput(hall, restart=300, save=60).share:.3f}"
    '0.876'
    >>> f"{goodput(hall, 300, interval=300, blocking=False, order='first').share:.3f}"
    '0.960'
    """
    one_of("order", order, ("first", "exact"))
    delta = float(non_negative("save", save))
    back = float(non_negative("restart", restart))
    M = float("inf") if np.isposinf(mean_time) else float(
        positive("mean_time", mean_time)
    )  # fmt: skip
    if interval is None:
        if delta == 0.0:
            raise ValueError(
                "interval is missing and save=0 sets none: a checkpoint that costs "
                "nothing is best taken all the time; give interval or save"
            )
        if np.isinf(M):
            return Goodput(
                share=1.0, saving=0.0, repeated=0.0, restarting=0.0,
                interval=float("inf"), mean_time=M,
            )  # fmt: skip
        tau = float(checkpoint_interval(delta, M))
        if not blocking:
            # written beside the work, checkpoints can follow each other at once
            tau = delta
    else:
        tau = float(positive("interval", interval))
    if not blocking and delta > tau:
        raise ValueError(
            f"save={delta:g} s is longer than interval={tau:g} s: the next checkpoint "
            "would start before this one is written; save less often"
        )
    waits = delta if blocking else 0.0
    if np.isinf(M):
        saving = waits / (tau + waits)
        return Goodput(
            share=1.0 - saving, saving=saving, repeated=0.0, restarting=0.0,
            interval=tau, mean_time=M,
        )  # fmt: skip
    if order == "first":
        saving = waits / tau
        redone = (tau / 2.0 + (0.0 if blocking else delta)) / M
        idle = back / M
        share = 1.0 - saving - redone - idle
    else:
        cycle = M * np.exp(back / M)
        if blocking:
            kept = tau / np.expm1((tau + delta) / M)
        else:
            kept = tau * np.exp(-delta / M) / np.expm1(tau / M)
        share = float(kept / cycle)
        saving = share * waits / tau
        # of a cycle all but M is spent on restarts that lead to work or fail themselves
        idle = float(1.0 - np.exp(-back / M))
        redone = 1.0 - share - saving - idle
    if share <= 0.0:
        raise ValueError(
            f"mean_time={text(M, 's')} leaves no time for work: a restart takes "
            f"{text(back, 's')} and a checkpoint comes every {text(tau, 's')}; "
            "save more often, restart faster, or use order='exact'"
        )
    return Goodput(
        share=share, saving=saving, repeated=redone, restarting=idle, interval=tau,
        mean_time=M,
    )  # fmt: skip


def restart_budget(share: float, interval: float, mean_time: float) -> float:
    r"""Longest restart that leaves a wanted share, checkpoints written meanwhile.

    .. math:: R = M (1 - s) - \frac{\tau}{2}

    Parameters
    ----------
    share : float
        Wanted share s of the time, [-]
    interval : float
        Work tau between checkpoints, [s]
    mean_time : float
        Mean time M between failures, [s]

    Returns
    -------
    float
        Restart time to first order, [s]

    Raises
    ------
    ValueError
        If no restart is fast enough; the message names the longest interval.

    Examples
    --------
    >>> f"{restart_budget(0.95, 300, 3.09 * 3600) / 60:.1f} min"
    '6.8 min'
    """
    M = float(positive("mean_time", mean_time))
    room = M * (1.0 - float(fraction("share", share)))
    left = room - float(positive("interval", interval)) / 2.0
    if left <= 0.0:
        raise ValueError(
            f"share={share:g} is out of reach with interval={interval:g} s, however "
            f"fast the restart: save at least every {2.0 * room:.3g} s"
        )
    return left


@dataclass(frozen=True, kw_only=True)
class Stragglers:
    """What slow machines do to a job that waits for its slowest.

    Parameters
    ----------
    expected : float
        Slow machines in the job, on average, [-]
    any_slow : float
        Probability of at least one, [-]
    slowdown : float
        Expected growth of a step, [-]
    """

    expected: float
    any_slow: float
    slowdown: float


def stragglers(n_nodes: int, share: float = 0.005, slow: float = 0.1) -> Stragglers:
    r"""Cost of slow machines.

    .. math:: p = 1 - (1 - q)^n, \qquad \frac{\Delta t}{t} = p\,s

    Parameters
    ----------
    n_nodes : int
        Nodes n of the job, [-]
    share : float, optional
        Share q of machines that are slow, [-]
    slow : float, optional
        By how much they are slower, s, [-]

    Returns
    -------
    Stragglers
        Number, probability, slowdown, [-]

    Notes
    -----
    Every step waits for every node; all slow nodes are equally slow.

    References
    ----------
    :cite:`jiang2024megascale`, section on stragglers: 0.5 % of machines, about 10 %
    slower; removing one such group gave 0.7 points of MFU

    Examples
    --------
    >>> loft, hall = stragglers(8), stragglers(2048)
    >>> f"{loft.any_slow:.3f} {hall.any_slow:.3f} {hall.expected:.1f}"
    '0.039 1.000 10.2'
    """
    n, q = whole("n_nodes", n_nodes), float(fraction("share", share))
    p = float(-np.expm1(n * np.log1p(-min(q, 1.0 - 1e-16))))
    return Stragglers(
        expected=n * q, any_slow=p, slowdown=p * float(non_negative("slow", slow))
    )


def spares(
    n_nodes: int, failures_per_node_day: float, repair: float, confidence: float = 0.99
) -> int:
    r"""Hot spares that suffice while broken nodes are being repaired.

    .. math:: k \sim \text{Poisson}(n\,r\,T), \qquad P(k \le s) \ge c

    Parameters
    ----------
    n_nodes : int
        Nodes n of the job, [-]
    failures_per_node_day : float
        Rate r of a node, [1/(node day)]
    repair : float
        Time T until a broken node is back, [s]
    confidence : float, optional
        Probability c that a spare is ready, [-]

    Returns
    -------
    int
        Spare nodes s, [node]

    Examples
    --------
    >>> spares(2048, 3.79e-3, repair=86400)
    15
    """
    rate = float(positive("failures_per_node_day", failures_per_node_day))
    mean = whole("n_nodes", n_nodes) * rate * float(positive("repair", repair)) / DAY
    wanted = float(fraction("confidence", confidence))
    if wanted >= 1.0:
        raise ValueError("confidence=1 would take a spare for every node; give 0.99")
    term, total, k = np.exp(-mean), np.exp(-mean), 0
    while total < wanted and k < n_nodes:
        k += 1
        term *= mean / k
        total += term
    return k


@dataclass(frozen=True, kw_only=True)
class FailureRecord:
    """Interruptions of a job, as published.

    Parameters
    ----------
    id : str
        Name of the row, [-]
    cluster : str
        Whose job, [-]
    n_nodes : int
        Nodes of the job, [-]
    failures_per_node_day : float
        Rate that follows, [1/(node day)]
    mean_time : float
        Mean time between failures, [s]
    kind : {"measured", "projected"}
        Whether it was counted, or follows from a rate, [-]
    source : str
        Key of the source, [-]
    where : str
        Place in it, [-]
    evidence : str
        primary or secondary, [-]
    notes : str
        What to know beside, [-]
    """

    id: str
    cluster: str
    n_nodes: int
    failures_per_node_day: float
    mean_time: float
    kind: str
    source: str
    where: str
    evidence: str
    notes: str


def failure_records() -> tuple[FailureRecord, ...]:
    """Return the published statistics of failures.

    Returns
    -------
    tuple of FailureRecord
        Rates and mean times, [1/(node day)] and [s]

    Examples
    --------
    >>> llama = failure_records()[0]
    >>> f"{llama.mean_time / 3600:.2f} h"
    '3.09 h'
    """
    found = []
    for row in read_rows("failures.csv"):
        nodes = max(1, int(row["n_accelerators"]) // int(row["accelerators_per_node"]))
        if row["events"]:
            rate = float(failure_rate(float(row["events"]), float(row["days"]), nodes))
        elif row["mttf_h"]:
            rate = DAY / (nodes * float(row["mttf_h"]) * HOUR)
        else:
            rate = float(row["failures_per_1000_node_days"]) / 1000.0
        words: dict[str, Any] = {
            k: row[k] for k in ("id", "cluster", "kind", "source", "where", "notes")
        }
        found.append(
            FailureRecord(
                n_nodes=nodes,
                failures_per_node_day=rate,
                mean_time=float(mttf(nodes, rate)),
                evidence=row["evidence"],
                **words,
            )
        )
    return tuple(found)


@dataclass(frozen=True, kw_only=True)
class Reliability:
    """How often nodes fail and what a run does about it.

    Parameters
    ----------
    failures_per_node_day : float
        Rate of a node; 0 for a machine that never fails, [1/(node day)]
    band : tuple of float
        Least and largest rate that you would believe, [1/(node day)]
    restart : float
        Time from a failure to the first new step, [s]
    save : float
        Time that a checkpoint takes, [s]
    blocking : bool
        The job waits for the checkpoint, [-]
    interval : float, optional
        Work between checkpoints; by default the best one, [s]
    node_size : int
        Accelerators of a node, [-]
    """

    failures_per_node_day: float = 3.79e-3
    band: tuple[float, float] = (3.79e-3, 23.7e-3)
    restart: float = 300.0
    save: float = 60.0
    blocking: bool = False
    interval: float | None = 300.0
    node_size: int = 8

    def __post_init__(self) -> None:
        non_negative("failures_per_node_day", self.failures_per_node_day)
        whole("node_size", self.node_size)
        low, high = self.band
        if not 0.0 <= low <= high:
            raise ValueError(f"band={self.band} must run from the least to the largest")

    def with_(self, **changes: Any) -> "Reliability":
        """Return a copy with other settings.

        Parameters
        ----------
        **changes : dict
            Fields to set, [-]

        Returns
        -------
        Reliability
            The copy, [-]
        """
        return replace(self, **changes)

    def mean_time(self, n_accelerators: int) -> float:
        """Return the mean time between failures of a job.

        Parameters
        ----------
        n_accelerators : int
            Accelerators of the job, [-]

        Returns
        -------
        float
            Mean time, infinite without failures, [s]
        """
        if self.failures_per_node_day == 0.0:
            return float("inf")
        nodes = -(-whole("n_accelerators", n_accelerators) // self.node_size)
        return float(mttf(nodes, self.failures_per_node_day))

    def goodput(self, n_accelerators: int) -> Goodput:
        """Return what failures leave of a job's time.

        Parameters
        ----------
        n_accelerators : int
            Accelerators of the job, [-]

        Returns
        -------
        Goodput
            Shares, [-]

        Examples
        --------
        >>> f"{DEFAULT_RELIABILITY.goodput(16384).share:.3f}"
        '0.955'
        """
        M = self.mean_time(n_accelerators)
        if np.isinf(M) and (self.interval is None or not self.blocking):
            return goodput(M, self.restart, interval=1.0, blocking=False)
        return goodput(M, self.restart, self.interval, self.save, self.blocking)


DEFAULT_RELIABILITY = Reliability()
"""The rate of Llama 3's pre-training, up to that of jobs of 1,024 accelerators; a
checkpoint every five minutes written beside the work, five minutes to restart."""
