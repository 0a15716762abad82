"""Errors of the step time, table by table."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from chinchilla_lab.checks import one_of
from chinchilla_lab.cluster.calibration import (
    MeasuredStep,
    calibrate,
    predicted_seconds,
)
from chinchilla_lab.cluster.stacks import STACKS, UNCALIBRATED, Stack
from chinchilla_lab.cluster.step import model_flops
from chinchilla_lab.validation.published import measured

__all__ = [
    "TABLES",
    "Score",
    "Table",
    "median_mfu_errors",
    "one_stack",
    "rates",
    "score",
    "scored_rows",
    "scores",
]

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Table:
    """A published table and the goal that was set for it beforehand.

    Parameters
    ----------
    name : str
        Value of the column ``table`` in ``published_runs.csv``, [-]
    stack : str
        Stack whose constants are used, [-]
    kind : str
        "home": constants fitted on these rows; "family": constants of another table,
        nothing refitted; "foreign": fitted on a part and scored on the rest;
        "plan unknown": micro-batch and interleaving are not published; "unseen": looked
        up after all constants were fixed and never fitted; "mixture": models of experts
        under constants of dense ones, [-]
    first : float, optional
        Mean absolute error when the table was looked up, before any change to the model
        that it may have prompted, [-]
    mape : float, optional
        Goal for the mean absolute error, [-]
    largest : float, optional
        Goal for the largest error, [-]
    """

    name: str
    stack: str
    kind: str
    mape: float | None = None
    largest: float | None = None
    first: float | None = None


TABLES = (
    Table(
        name="megatron-2021", stack="megatron-2021", kind="home", mape=0.03,
        largest=0.06,
    ),
    Table(
        name="korthikanti-2022", stack="megatron-2021", kind="family", mape=0.08,
        largest=0.15,
    ),
    Table(
        name="megascale-2024", stack="megascale", kind="family", mape=0.08, largest=0.15
    ),
    Table(
        name="llama3-405b", stack="llama-3", kind="family", mape=0.08, largest=0.15
    ),
    Table(
        name="megatron-bridge-h100", stack="megatron-bridge", kind="family", mape=0.08,
        largest=0.15,
    ),
    Table(name="megascale-2024-baseline", stack="megatron-2021", kind="family"),
    Table(name="megatron-h100", stack="megatron-bridge", kind="plan unknown"),
    Table(name="bloom-plans", stack="bloom", kind="foreign", mape=0.08),
    Table(name="llm-foundry-a100", stack="llm-foundry-a100", kind="foreign", mape=0.08),
    Table(name="llm-foundry-h100", stack="llm-foundry-h100", kind="foreign", mape=0.08),
    Table(name="llm-foundry-h100-fp8", stack="llm-foundry-h100", kind="foreign"),
    Table(name="simumax-b200", stack="simumax-b200", kind="foreign", mape=0.08),
    Table(name="nanotron", stack="nanotron", kind="foreign", mape=0.08),
    Table(name="dgxc-h100-bf16", stack="megatron-bridge", kind="unseen", first=0.024),
    Table(name="dgxc-h100-fp8", stack="megatron-bridge", kind="unseen", first=0.086),
    Table(name="nemo-2407-h100", stack="megatron-bridge", kind="unseen", first=0.135),
    Table(name="mt-nlg-a100", stack="megatron-2021", kind="unseen", first=0.228),
    Table(name="nanotron-sweep", stack="nanotron", kind="unseen", first=0.235),
    Table(name="nanotron-sweep-slow", stack="nanotron", kind="unseen", first=1.383),
    Table(
        name="qwen3-bridge-h100", stack="megatron-bridge", kind="mixture", first=0.436
    ),
    Table(name="qwen3-zoo-h100", stack="megatron-bridge", kind="mixture", first=0.292),
)  # fmt: skip
"""Tables in the order of the report."""
LEFT_OUT_GOAL = 0.04


@dataclass(frozen=True, kw_only=True)
class Score:
    """Errors of a table; errors are predicted over measured speed, less one.

    Parameters
    ----------
    table : Table
        The table and its goal, [-]
    errors : numpy.ndarray
        Errors of the scored rows, [-]
    baseline : numpy.ndarray
        Errors of "all of them reach the median MFU of these rows", [-]
    left_out : numpy.ndarray
        Errors of the fitted rows, each without itself; empty if none was fitted, [-]
    uncalibrated : numpy.ndarray
        Errors without any calibration, [-]
    names : tuple of str
        Scored rows, [-]
    """

    table: Table
    errors: Array
    baseline: Array
    left_out: Array
    uncalibrated: Array
    names: tuple[str, ...]

    @property
    def bias(self) -> float:
        """Mean error; positive is too fast, [-]."""
        return float(self.errors.mean())

    @property
    def mape(self) -> float:
        """Mean absolute error, [-]."""
        return float(np.abs(self.errors).mean())

    @property
    def p90(self) -> float:
        """90th percentile of the absolute error, [-]."""
        return float(np.percentile(np.abs(self.errors), 90))

    @property
    def largest(self) -> float:
        """Largest absolute error, [-]."""
        return float(np.abs(self.errors).max())

    @property
    def baseline_mape(self) -> float:
        """Mean absolute error of the median MFU, [-]."""
        return float(np.abs(self.baseline).mean())

    @property
    def left_out_mape(self) -> float:
        """Mean absolute error of rows left out of the fit, NaN without a fit, [-]."""
        return (
            float(np.abs(self.left_out).mean()) if self.left_out.size else float("nan")
        )

    @property
    def verdict(self) -> str:
        """Whether the goal is met: ``"met"``, ``"missed"`` or ``"no goal"``, [-]."""
        goal = self.table
        if goal.mape is None:
            return "no goal"
        met = self.mape <= goal.mape
        if goal.largest is not None:
            met = met and self.largest <= goal.largest
        if goal.kind == "home":
            met = met and self.left_out_mape <= LEFT_OUT_GOAL
        if goal.kind == "foreign":
            met = met and self.mape < self.baseline_mape
        return "met" if met else "missed"


def _errors(rows: Sequence[MeasuredStep], stack: Stack | str) -> Array:
    times = np.array([r.seconds for r in rows])
    return times / predicted_seconds(rows, stack) - 1.0


def median_mfu_errors(rows: Sequence[MeasuredStep]) -> Array:
    """Errors of "all of these reach the median MFU of these".

    Parameters
    ----------
    rows : sequence of MeasuredStep
        The steps, [-]

    Returns
    -------
    numpy.ndarray
        Predicted over measured speed, less one, [-]
    """
    reached = np.array(
        [
            model_flops(r.shape, r.seq_len, "full") * r.batch * r.seq_len
            / (r.seconds * r.cluster.n_accelerators * r.cluster.chip.peak(r.dtype))
            for r in rows
        ]
    )  # fmt: skip
    return np.median(reached) / reached - 1.0


def scored_rows(table: str) -> tuple[MeasuredStep, ...]:
    """Rows on which a table is scored: those that were not fitted, or all at home.

    Parameters
    ----------
    table : str
        Name in :data:`TABLES`, [-]

    Returns
    -------
    tuple of MeasuredStep
        Steps, [s]

    Raises
    ------
    ValueError
        If there is no such table.
    """
    one_of("table", table, [t.name for t in TABLES])
    home = next(t for t in TABLES if t.name == table).kind == "home"
    return measured(table, "fit" if home else "test")


def score(table: Table) -> Score:
    """Score one table.

    Parameters
    ----------
    table : Table
        One of :data:`TABLES`, [-]

    Returns
    -------
    Score
        Errors of the speed, [-]
    """
    fit = measured(table.name, "fit")
    rows = scored_rows(table.name)
    left_out = np.empty(0)
    used = STACKS[table.stack]
    if fit:
        left_out = calibrate(fit, used, used.fitted).left_out
    return Score(
        table=table,
        errors=_errors(rows, table.stack),
        baseline=median_mfu_errors(rows),
        left_out=left_out,
        uncalibrated=_errors(rows, replace(UNCALIBRATED, fused=used.fused)),
        names=tuple(r.name for r in rows),
    )


@cache
def scores() -> tuple[Score, ...]:
    """Score all tables.

    Returns
    -------
    tuple of Score
        One for each of :data:`TABLES`, [-]
    """
    return tuple(score(table) for table in TABLES)


@cache
def one_stack(stack: str = "megatron-bridge") -> tuple[Score, ...]:
    """Score the family tables with one stack for all of them.

    Parameters
    ----------
    stack : str, optional
        Stack whose overlaps and block are taken everywhere, [-]

    Returns
    -------
    tuple of Score
        One for each table of the kind "family", [-]

    Examples
    --------
    >>> {s.table.stack for s in one_stack()}
    {'megatron-bridge'}
    """
    return tuple(score(replace(t, stack=stack)) for t in TABLES if t.kind == "family")


def rates(table: str) -> tuple[Array, Array]:
    """Measured and predicted rates of the scored rows of a table.

    Parameters
    ----------
    table : str
        Name in :data:`TABLES`, [-]

    Returns
    -------
    tuple of numpy.ndarray
        Model FLOP per second and accelerator, attention in full: measured, predicted,
        [FLOP/s]

    Raises
    ------
    ValueError
        If there is no such table.

    Examples
    --------
    >>> true, said = rates("megatron-2021")
    >>> bool((abs(said / true - 1) < 0.06).all())
    True
    """
    one_of("table", table, [t.name for t in TABLES])
    found = next(s for s in scores() if s.table.name == table)
    true = np.array(
        [
            model_flops(r.shape, r.seq_len, "full") * r.batch * r.seq_len
            / (r.seconds * r.cluster.n_accelerators)
            for r in scored_rows(table)
        ]
    )  # fmt: skip
    return true, true * (1.0 + found.errors)
