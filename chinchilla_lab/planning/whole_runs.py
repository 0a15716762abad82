"""What whole published runs took over their steps, as a factor on the days of a plan.

``python -m chinchilla_lab.replications --write-runs`` computes the table again: it
holds what the step model says of each run, and so changes with the step model.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from chinchilla_lab.cluster.cost import published_hours
from chinchilla_lab.sources import read_rows
from chinchilla_lab.tables import html_table

__all__ = [
    "WholeRun",
    "whole_run_factors",
    "whole_run_ratio_table",
    "whole_run_ratios",
]

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class WholeRun:
    """A published run on one cluster that may have been its own.

    Parameters
    ----------
    run : str
        Key in :func:`~chinchilla_lab.cluster.published_hours`, [-]
    shape : str
        Key of the shape, [-]
    n_accelerators : int
        Accelerators, [-]
    seq_len : int
        Tokens of a sequence, [token]
    batch_tokens : int
        Batch, [token]
    layout : str
        Layout that the search finds, [-]
    fits : bool
        Whether it fits the memory, [-]
    steps_hours : float
        Median of the accelerator-hours that step model and failures give, [h]
    hours : float
        Published accelerator-hours, [h]
    assumed : str
        What the source does not say, [-]
    """

    run: str
    shape: str
    n_accelerators: int
    seq_len: int
    batch_tokens: int
    layout: str
    fits: bool
    steps_hours: float
    hours: float
    assumed: str

    @property
    def ratio(self) -> float:
        """Published hours over those of the steps, [-]."""
        return self.hours / self.steps_hours


@cache
def whole_run_ratios() -> tuple[WholeRun, ...]:
    """Return the dense runs with published hours on a known chip, over their steps.

    Returns
    -------
    tuple of WholeRun
        One entry for each run and each size of the cluster that it may have had, [-]

    Notes
    -----
    The cards do not say how many accelerators trained a model, except for the largest
    job of Llama 3 405B. Each size of the table is as likely as the others.

    References
    ----------
    :cite:`metahours`, model cards

    Examples
    --------
    >>> sorted({r.run for r in whole_run_ratios()})[:2]
    ['llama-2-70b', 'llama-2-7b']
    """
    hours = {key: run.hours for key, run in published_hours().items()}
    return tuple(
        WholeRun(
            run=row["run"], shape=row["shape"],
            n_accelerators=int(row["n_accelerators"]), seq_len=int(row["seq_len"]),
            batch_tokens=int(row["batch_tokens"]), layout=row["layout"],
            fits=row["fits"] == "1", steps_hours=float(row["steps_hours"]),
            hours=hours[row["run"]], assumed=row["assumed"],
        )
        for row in read_rows("whole_runs.csv")
    )  # fmt: skip


def _by_run(leave_out: Iterable[str]) -> list[Array]:
    """Return the logarithms of the ratios of each run, over its sizes."""
    left = set(leave_out)
    unknown = left - set(published_hours())
    if unknown:
        raise ValueError(
            f"leave_out={', '.join(sorted(unknown))} is no published run; known: "
            f"{', '.join(published_hours())}"
        )
    found: dict[str, list[float]] = {}
    for row in whole_run_ratios():
        if row.run not in left:
            found.setdefault(row.run, []).append(np.log(row.ratio))
    if len(found) < 3:
        raise ValueError(
            f"{len(found)} whole runs are left, and no spread follows from fewer than "
            "three; leave out less, or use whole_run=False"
        )
    return [np.array(x) for x in found.values()]


def whole_run_factors(
    rng: np.random.Generator, draws: int, leave_out: Iterable[str] = ()
) -> Array:
    r"""Draw what a whole run takes over its steps.

    .. math:: \ln w = \bar x + s \sqrt{1 + \frac1k}\; t_{k-1}, \qquad
       x_i = \ln \frac{\text{published hours}_i}{\text{hours of the steps}_i}

    Parameters
    ----------
    rng : numpy.random.Generator
        Where chance comes from, [-]
    draws : int
        Draws, [-]
    leave_out : iterable of str, optional
        Runs that do not count, as one that is to be predicted, [-]

    Returns
    -------
    numpy.ndarray
        Factors, [-]

    Notes
    -----
    The next run of a handful: Student's t of :math:`k - 1` degrees of freedom, since k
    runs know neither their mean nor their spread. Each draw gives every run one of the
    sizes that its cluster may have had. A ratio below 1 says that the steps are
    modelled too slow. It also holds the error of the step model on that run, which is
    so counted twice; against the spread of the ratios that is little.

    Examples
    --------
    >>> w = whole_run_factors(np.random.default_rng(0), 10_000)
    >>> bool(1.2 < np.median(w) < 2.5)
    True
    """
    runs = _by_run(leave_out)
    k = len(runs)
    x = np.stack([one[rng.integers(len(one), size=draws)] for one in runs])
    spread = x.std(axis=0, ddof=1) * np.sqrt(1.0 + 1.0 / k)
    return np.exp(x.mean(axis=0) + spread * rng.standard_t(k - 1, draws))


def whole_run_ratio_table() -> str:
    """Return the ratios as the table of the book.

    Returns
    -------
    str
        HTML, [-]
    """
    rows = [
        [
            published_hours()[r.run].model, f"{r.n_accelerators:,}", r.layout,
            f"{r.steps_hours / 1e6:.3g}", f"{r.hours / 1e6:.3g}", f"{r.ratio:.2f}",
            "" if r.fits else "does not fit",
        ]
        for r in whole_run_ratios()
    ]  # fmt: skip
    head = (
        "run", "accelerators [-]", "layout", "steps [million h]",
        "published [million h]", "ratio [-]", "memory",
    )  # fmt: skip
    return html_table(head, rows, "whole runs over their steps; sizes assumed")
