"""Does the model order plans as they were measured?"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from chinchilla_lab.cluster.calibration import MeasuredStep, predicted_seconds
from chinchilla_lab.tables import html_table
from chinchilla_lab.validation.published import published_rows, step_of

__all__ = ["RankingScore", "ranking", "ranking_table", "ranking_verdict"]

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
    """

    group: str
    n: int
    regret: float
    spearman: float


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
    groups: dict[str, list[MeasuredStep]] = {}
    for row in published_rows():
        if row["table"] == "bloom-plans" and row["group"] and row["use"] != "dropped":
            key = "{group} {n_layers} x {d_model}, {n_heads} heads".format(**row)
            groups.setdefault(key, []).append(step_of(row))
    found = []
    for name, rows in groups.items():
        if len(rows) < least:
            continue
        each = np.array([1.0 / r.batch for r in rows])
        true = np.array([r.seconds for r in rows]) * each
        said = predicted_seconds(rows, stack) * each
        correlation = np.corrcoef(_ranks(true), _ranks(said))[0, 1]
        regret = true[np.argmin(said)] / true.min() - 1.0
        found.append(
            RankingScore(
                group=name,
                n=len(rows),
                regret=float(regret),
                spearman=float(correlation),
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
