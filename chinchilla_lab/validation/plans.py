"""Does the model order plans as they were measured?"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from chinchilla_lab.checks import one_of
from chinchilla_lab.cluster.calibration import MeasuredStep, predicted_seconds
from chinchilla_lab.cluster.stacks import Stack
from chinchilla_lab.tables import html_table
from chinchilla_lab.validation.published import measured, published_rows, step_of

__all__ = [
    "RankingScore",
    "plan_times",
    "rank_correlation",
    "ranking",
    "ranking_table",
    "ranking_verdict",
]

Array = NDArray[np.float64]
RANKING_GOAL = {"mean": 0.05, "max": 0.10, "spearman": 0.8}


def _ranks(x: Array) -> Array:
    """Return ranks from 0, ties sharing their mean."""
    order = np.argsort(x, kind="stable")
    ranks = np.empty(len(x))
    ranks[order] = np.arange(len(x))
    for value in np.unique(x):
        same = x == value
        ranks[same] = ranks[same].mean()
    return ranks


def rank_correlation(one: Array, other: Array) -> float:
    """Rank correlation after Spearman, ties sharing their mean rank.

    Parameters
    ----------
    one : numpy.ndarray
        Values, [any]
    other : numpy.ndarray
        Values of the same length, [any]

    Returns
    -------
    float
        Correlation, [-]

    Examples
    --------
    >>> round(rank_correlation(np.array([1.0, 2.0, 3.0]), np.array([3.0, 2.0, 1.0])), 9)
    -1.0
    """
    return float(np.corrcoef(_ranks(one), _ranks(other))[0, 1])


@cache
def _groups() -> dict[str, tuple[MeasuredStep, ...]]:
    """Return the plans of each day and shape."""
    groups: dict[str, list[MeasuredStep]] = {}
    for row in published_rows():
        if row["table"] == "bloom-plans" and row["group"] and row["use"] != "dropped":
            key = "{group} {n_layers} x {d_model}, {n_heads} heads".format(**row)
            groups.setdefault(key, []).append(step_of(row))
    return {name: tuple(rows) for name, rows in groups.items()}


def _per_sequence(
    rows: Sequence[MeasuredStep], stack: Stack | str
) -> tuple[Array, Array]:
    each = np.array([1.0 / r.batch for r in rows])
    true = np.array([r.seconds for r in rows]) * each
    return true, predicted_seconds(rows, stack) * each


def plan_times(
    group: str, stack: Stack | str = "bloom"
) -> tuple[tuple[MeasuredStep, ...], Array, Array]:
    """Plans of one day and shape with their times.

    Parameters
    ----------
    group : str
        As in :func:`ranking`, [-]
    stack : Stack or str, optional
        Whose constants are used, [-]

    Returns
    -------
    tuple
        Plans, then measured and predicted times of a sequence, [s]

    Raises
    ------
    ValueError
        If there is no such group.

    Examples
    --------
    >>> plans, true, said = plan_times("02-25 72 x 14336, 64 heads")
    >>> len(plans), plans[int(true.argmin())].layout.tp
    (14, 4)
    """
    one_of("group", group, _groups())
    rows = _groups()[group]
    return rows, *_per_sequence(rows, stack)


@dataclass(frozen=True, kw_only=True)
class RankingScore:
    """Does the model order the plans of one day and shape as they were measured?

    Parameters
    ----------
    group : str
        Day and shape, [-]
    n : int
        Plans, [-]
    regret : float
        Extra time of the plan predicted best over the plan measured best, [-]
    spearman : float
        Rank correlation of predicted and measured time, [-]
    n_fitted : int
        Plans whose times set the constants of ``bloom``, [-]
    """

    group: str
    n: int
    regret: float
    spearman: float
    n_fitted: int


def ranking(stack: str = "bloom", least: int = 3) -> tuple[RankingScore, ...]:
    """Rank the plans of the BLOOM sweep, group by group.

    Parameters
    ----------
    stack : str, optional
        Stack, [-]
    least : int, optional
        Smallest group, [-]

    Returns
    -------
    tuple of RankingScore
        Largest group first, [-]

    Notes
    -----
    A group is one shape on one day. Times are compared per sequence, since batches of a
    group differ a little; the warm-up rows of the source, where nothing but the batch
    changes, are in no group. The largest group has no row that was fitted.

    References
    ----------
    :cite:`bloom`, trials of 21 to 28 February
    """
    found = []
    fitted = {row.name for row in measured("bloom-plans", "fit")}
    for name, rows in _groups().items():
        if len(rows) < least:
            continue
        true, said = _per_sequence(rows, stack)
        regret = true[np.argmin(said)] / true.min() - 1.0
        found.append(
            RankingScore(
                group=name,
                n=len(rows),
                regret=float(regret),
                spearman=rank_correlation(true, said),
                n_fitted=sum(row.name in fitted for row in rows),
            )
        )
    return tuple(sorted(found, key=lambda g: -g.n))


def ranking_verdict(groups: Sequence[RankingScore]) -> str:
    """Say whether the goal of the ranking is met.

    Parameters
    ----------
    groups : sequence of RankingScore
        As from :func:`ranking`, [-]

    Returns
    -------
    str
        "met" or "missed", [-]
    """
    regrets = [g.regret for g in groups]
    met = (
        np.mean(regrets) <= RANKING_GOAL["mean"]
        and max(regrets) <= RANKING_GOAL["max"]
        and groups[0].spearman >= RANKING_GOAL["spearman"]
    )
    return "met" if met else "missed"


def ranking_table(stack: str = "bloom") -> str:
    """Return the groups as the table of the book.

    Parameters
    ----------
    stack : str, optional
        Whose constants are used, [-]

    Returns
    -------
    str
        HTML, [-]
    """
    groups = ranking(stack)
    rows = [
        [g.group, g.n, f"{100 * g.regret:.1f}", f"{g.spearman:+.2f}"] for g in groups
    ]
    return html_table(
        ("day and shape", "plans", "regret [%]", "Spearman"),
        rows,
        f"constants: {stack}; goal mean 5 %, max 10 %, Spearman 0.8 on the largest: "
        f"{ranking_verdict(groups)}",
    )
