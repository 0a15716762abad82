"""Checkpoints and goodput: what a constant rate of failures leaves of the time.

:mod:`.simulation` draws the same machine, and the tests hold one against the other.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chinchilla_lab.checks import fraction, non_negative, one_of, positive
from chinchilla_lab.tables import html_table
from chinchilla_lab.units import text

__all__ = [
    "Goodput",
    "checkpoint_interval",
    "goodput",
    "least_overhead",
    "restart_budget",
]

Array = NDArray[np.float64]
Order = Literal["first", "higher", "exact"]


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
    waiting : float, optional
        Share spent waiting for slow machines, [-]
    """

    share: float
    saving: float
    repeated: float
    restarting: float
    interval: float
    mean_time: float
    error: float = 0.0
    waiting: float = 0.0

    def _repr_html_(self) -> str:
        rows = [
            ["work kept", f"{self.share:.2%}"],
            ["waiting for checkpoints", f"{self.saving:.2%}"],
            ["work done again", f"{self.repeated:.2%}"],
            ["restarts", f"{self.restarting:.2%}"],
        ]
        if self.waiting:
            rows.append(["waiting for slow machines", f"{self.waiting:.2%}"])
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
    >>> hall = 3.09 * 3600
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
