"""What runs can tell, judged before anything is fitted."""

import numpy as np
from numpy.typing import NDArray

from chinchilla_lab.fitting.refusals import (
    MixedCheckpointsError,
    NotIdentifiableError,
    TooFewRunsError,
    UnstatedCountError,
)
from chinchilla_lab.fitting.runs import Runs
from chinchilla_lab.laws.families import NCount
from chinchilla_lab.units import text

__all__ = ["check_runs", "distinct", "no_checkpoints", "stated_count"]

Array = NDArray[np.float64]


def distinct(*columns: Array) -> int:
    """Return how many rows differ by more than a percent in some column.

    Parameters
    ----------
    *columns : numpy.ndarray
        Positive numbers, one a run, [any]

    Returns
    -------
    int
        Distinct rows, [-]
    """
    # a chain of neighbours within a percent counts once: labels by sorted gaps
    together = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        order = np.argsort(column)
        gap = np.diff(np.log(column[order])) > 0.01
        label = np.empty(len(column), dtype=np.int64)
        label[order] = np.concatenate([[0], np.cumsum(gap)])
        together = together * len(column) + label
    return len(np.unique(together))


def check_runs(runs: Runs, unknowns: int = 5, checkpoints: bool = False) -> list[str]:
    """Refuse runs that cannot tell alpha from beta, and say what else is doubtful.

    Parameters
    ----------
    runs : Runs
        The runs, [-]
    unknowns : int, optional
        Coefficients to be found, [-]
    checkpoints : bool, optional
        Whether several rows of one run are wanted, [-]

    Returns
    -------
    list of str
        Doubts, as sentences; empty if there are none, [-]

    Raises
    ------
    RefusedFitError
        The kind says which question the runs cannot answer.
    """
    stated_count(runs)
    if not checkpoints:
        no_checkpoints(runs)
    for name, column in (("sizes", runs.N), ("token counts", runs.D)):
        count, spread = distinct(column), float(column.max() / column.min())
        if count < 3 or spread < 1.5:
            raise TooFewRunsError(
                f"{count} {name} within a factor {spread:.2f} among {len(runs)} runs "
                f"cannot bend a power law; train at least 3 {name}, better 6, over a "
                "decade or more"
            )
    points = distinct(runs.N, runs.D)
    if points <= unknowns:
        raise TooFewRunsError(
            f"{points} distinct runs for {unknowns} unknowns leave nothing to judge "
            f"the fit by; train at least {unknowns + 4} runs that differ in N or D"
        )
    x, y = np.log(runs.N), np.log(runs.D)
    slope, level = np.polyfit(x, y, 1)
    scatter = float(np.std(y - slope * x - level))
    # D = r N^p, p > 0: the model term and the data term are powers of the same thing
    if slope > 0.0 and scatter < 0.05:
        ratio = text(float(np.exp(np.median(y - x))), "")
        line = (
            f"D = {ratio} N in all runs"
            if abs(slope - 1.0) < 0.05
            else f"D grows like N^{slope:.2f} in all runs"
        )
        raise NotIdentifiableError(
            f"{line}, so alpha and beta are not identifiable: exchanging the two power "
            "terms changes no prediction and mirrors the optimum. There is no N* in "
            "these runs. Train some sizes at a fourth and at four times this ratio; "
            "what the runs do tell is the loss along their line, fit_curve(runs.N, "
            "runs.L)"
        )
    doubts = []
    if points < unknowns + 4:
        doubts.append(
            f"{points} distinct runs for {unknowns} unknowns: many resamples hold "
            "fewer distinct runs than unknowns, and the interval is too narrow; "
            f"train at least {unknowns + 4}"
        )
    for name, spread in (("N", np.ptp(x)), ("D", np.ptp(y))):
        if spread < np.log(10.0):
            doubts.append(
                f"{name} spans a factor {np.exp(spread):.1f}, less than a decade: the "
                "exponents rest on the noise; add smaller or larger runs"
            )
    return doubts


def stated_count(runs: Runs) -> NCount:
    """Return which parameters N counts, or refuse runs that do not say.

    Parameters
    ----------
    runs : Runs
        The runs, [-]

    Returns
    -------
    str
        Their ``N_counts``, [-]
    """
    if runs.N_counts is None:
        raise UnstatedCountError(
            "N_counts is not stated: the same runs give another optimum when N counts "
            "the vocabulary and when it does not; pass N_counts='total', "
            "'non_embedding', 'body_and_head' or 'active'"
        )
    return runs.N_counts


def no_checkpoints(runs: Runs) -> None:
    """Refuse runs that mix finished runs with losses from the middle of a schedule.

    Parameters
    ----------
    runs : Runs
        The runs, [-]
    """
    way_out = (
        "; a decaying learning rate makes their loss too high. Keep the last row of "
        "each run (read_runs(rows='last')), or fit_envelope the curves, or pass "
        "checkpoints=True if the rate was constant"
    )
    if runs.planned is not None:
        early = 0.98 * runs.planned > runs.D
        if early.any():
            raise MixedCheckpointsError(
                f"{int(early.sum())} of {len(runs)} rows stop before the tokens their "
                f"schedule was set for, the first is row {int(np.argmax(early))}"
                f"{way_out}"
            )
    if runs.run and len(set(runs.run)) < len(runs.run):
        raise MixedCheckpointsError(
            f"{len(runs.run)} rows belong to {len(set(runs.run))} runs: checkpoints "
            f"from the middle of a schedule stand beside finished runs{way_out}"
        )
