"""How often machines fail: rates, published statistics, stragglers, spares."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chinchilla_lab.checks import fraction, non_negative, positive, whole
from chinchilla_lab.cluster.goodput import Goodput, goodput
from chinchilla_lab.sources import read_rows
from chinchilla_lab.units import DAY, HOUR

__all__ = [
    "DEFAULT_RELIABILITY",
    "FailureRecord",
    "Reliability",
    "Stragglers",
    "failure_rate",
    "failure_records",
    "mttf",
    "spares",
    "stragglers",
]

Array = NDArray[np.float64]


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
    slow_share : float
        Share of nodes that are slow and not yet found; see :func:`stragglers`, [-]
    slow_by : float
        By how much they are slower, [-]

    Notes
    -----
    Slow nodes are off by default: the jitter of a calibrated stack holds those of the
    jobs that it was fitted on.
    """

    failures_per_node_day: float = 3.79e-3
    band: tuple[float, float] = (3.79e-3, 23.7e-3)
    restart: float = 300.0
    save: float = 60.0
    blocking: bool = False
    interval: float | None = 300.0
    node_size: int = 8
    slow_share: float = 0.0
    slow_by: float = 0.1

    def __post_init__(self) -> None:
        non_negative("failures_per_node_day", self.failures_per_node_day)
        whole("node_size", self.node_size)
        low, high = self.band
        if not 0.0 <= low <= high:
            raise ValueError(f"band={self.band} must run from the least to the largest")
        non_negative("slow_by", self.slow_by)
        if self.slow_share != 0.0:
            fraction("slow_share", self.slow_share)

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
            found = goodput(M, self.restart, interval=1.0, blocking=False)
        else:
            found = goodput(M, self.restart, self.interval, self.save, self.blocking)
        if self.slow_share == 0.0:
            return found
        nodes = -(-n_accelerators // self.node_size)
        longer = 1.0 + stragglers(nodes, self.slow_share, self.slow_by).slowdown
        kept = found.share / longer
        return replace(found, share=kept, waiting=found.share - kept)


DEFAULT_RELIABILITY = Reliability()
"""The rate of Llama 3's pre-training, up to that of jobs of 1,024 accelerators; a
checkpoint every five minutes written beside the work, five minutes to restart."""
