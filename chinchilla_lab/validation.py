"""How wrong the cluster models are: published runs against what the library says.

``python -m chinchilla_lab.validation`` prints the table that the book shows.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chinchilla_lab.checks import one_of
from chinchilla_lab.cluster.calibration import (
    MeasuredStep,
    calibrate,
    predicted_seconds,
)
from chinchilla_lab.cluster.hardware import ACCELERATORS, Cluster
from chinchilla_lab.cluster.layout import Layout
from chinchilla_lab.cluster.memory import activation_bytes, memory, state_bytes
from chinchilla_lab.cluster.stacks import STACKS, UNCALIBRATED
from chinchilla_lab.cluster.step import bubble_fraction, hardware_flops, model_flops
from chinchilla_lab.shape.transformer import TransformerShape
from chinchilla_lab.sources import read_rows
from chinchilla_lab.tables import html_table
from chinchilla_lab.units import GB, GIB

__all__ = [
    "TABLES",
    "MemoryScore",
    "RankingScore",
    "Score",
    "Table",
    "identities",
    "measured",
    "memory_score",
    "ranking",
    "report",
    "score",
    "scores",
    "validation_rows",
    "validation_table",
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
        "plan unknown": micro-batch and interleaving are not published, [-]
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


TABLES = (
    Table(
        name="megatron-2021", stack="megatron-2021", kind="home", mape=0.03, largest=0.06
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
    Table(name="nanotron", stack="nanotron", kind="foreign", mape=0.08),
)  # fmt: skip
"""Tables in the order of the report."""
RANKING_GOAL = {"mean": 0.05, "max": 0.10, "spearman": 0.8}
MEMORY_GOAL = 0.07
IDENTITY_GOAL = 0.001
LEFT_OUT_GOAL = 0.04


@cache
def _rows(name: str = "published_runs.csv") -> tuple[dict[str, str], ...]:
    return tuple(read_rows(name))


def _shape(row: Mapping[str, str]) -> TransformerShape:
    counts = ("n_layers", "d_model", "d_ff", "n_heads", "n_kv_heads", "vocab_size")
    given: dict[str, Any] = {k: int(row[k]) for k in counts if row.get(k)}
    return TransformerShape(gated=row["gated"] == "1", tied=row["tied"] == "1", **given)


def _layout(row: Mapping[str, str]) -> Layout:
    names = ("tp", "pp", "dp", "cp", "micro_batch", "n_chunks", "zero")
    given: dict[str, Any] = {k: int(row[k]) for k in names if row.get(k)}
    given["recompute"] = row["recompute"]
    given["sequence_parallel"] = row.get("sequence_parallel") == "1"
    return Layout(**given)


def _seconds(row: Mapping[str, str], shape: TransformerShape) -> float:
    """Turn what was published into the time of a step."""
    value, n, s = float(row["value"]), int(row["n_accelerators"]), int(row["seq_len"])
    tokens = int(row["batch"]) * s
    kind = row["quantity"]
    if kind == "seconds":
        return value
    if kind == "tokens_per_second":
        return tokens / value
    if kind == "tokens_per_second_each":
        return tokens / (value * n)
    if kind == "hardware_tflops_full":
        return hardware_flops(shape, s, row["recompute"]) * tokens / (n * value * 1e12)
    if kind == "mfu_full":
        rate = value / 100.0 * ACCELERATORS[row["accelerator"]].peak(row["dtype"])
        return model_flops(shape, s, "full") * tokens / (n * rate)
    one_of("quantity", kind, ("model_tflops_full", "model_tflops_causal"))
    flop = model_flops(shape, s, "causal" if kind.endswith("causal") else "full")
    return flop * tokens / (n * value * 1e12)


def _step(row: Mapping[str, str]) -> MeasuredStep:
    shape = _shape(row)
    network = row["scaleout_gbps"]
    return MeasuredStep(
        shape=shape,
        cluster=Cluster(
            accelerator=row["accelerator"],
            n_accelerators=int(row["n_accelerators"]),
            scaleout_bandwidth=float(network) * GB if network else None,
        ),
        layout=_layout(row),
        batch=int(row["batch"]),
        seq_len=int(row["seq_len"]),
        seconds=_seconds(row, shape),
        dtype=row["dtype"],
        name=row["id"],
    )


@cache
def measured(table: str, use: str = "") -> tuple[MeasuredStep, ...]:
    """Published steps of a table.

    Parameters
    ----------
    table : str
        Name of the table, [-]
    use : {"", "fit", "test", "dropped"}, optional
        Only rows of that use; by default all but the dropped ones, [-]

    Returns
    -------
    tuple of MeasuredStep
        Steps with their measured time, [s]

    Raises
    ------
    ValueError
        If there is no such table.

    Examples
    --------
    >>> len(measured("megatron-2021"))
    7
    """
    one_of("table", table, sorted({row["table"] for row in _rows()}))
    one_of("use", use, ("", "fit", "test", "dropped"))
    return tuple(
        _step(row)
        for row in _rows()
        if row["table"] == table
        and (row["use"] == use if use else row["use"] != "dropped")
    )


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


def _errors(rows: Sequence[MeasuredStep], constants: Any) -> Array:
    times = np.array([r.seconds for r in rows])
    return times / predicted_seconds(rows, constants) - 1.0


def _median_mfu(rows: Sequence[MeasuredStep]) -> Array:
    reached = np.array(
        [
            model_flops(r.shape, r.seq_len, "full") * r.batch * r.seq_len
            / (r.seconds * r.cluster.n_accelerators * r.cluster.chip.peak(r.dtype))
            for r in rows
        ]
    )  # fmt: skip
    return np.median(reached) / reached - 1.0


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
    rows = fit if table.kind == "home" else measured(table.name, "test")
    left_out = np.empty(0)
    used = STACKS[table.stack]
    if fit:
        left_out = calibrate(fit, used, used.fitted).left_out
    return Score(
        table=table,
        errors=_errors(rows, table.stack),
        baseline=_median_mfu(rows),
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


def _ranks(x: Array) -> Array:
    """Ranks from 0, ties sharing their mean."""
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


def ranking(constants: str = "bloom", least: int = 3) -> tuple[RankingScore, ...]:
    """Rank the plans of the BLOOM sweep, group by group.

    Parameters
    ----------
    constants : str, optional
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
    for row in _rows():
        if row["table"] == "bloom-plans" and row["group"] and row["use"] != "dropped":
            key = "{group} {n_layers} x {d_model}, {n_heads} heads".format(**row)
            groups.setdefault(key, []).append(_step(row))
    found = []
    for name, rows in groups.items():
        if len(rows) < least:
            continue
        each = np.array([1.0 / r.batch for r in rows])
        true = np.array([r.seconds for r in rows]) * each
        said = predicted_seconds(rows, constants) * each
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


@dataclass(frozen=True, kw_only=True)
class MemoryScore:
    """Predicted against measured memory, one offset fitted.

    Parameters
    ----------
    offset : float
        Median of measured less itemised bytes, [byte]
    errors : numpy.ndarray
        Predicted over measured, less one, of the rows that ran, [-]
    flagged : int
        Out-of-memory rows that the model flags, [-]
    out_of_memory : int
        Out-of-memory rows, [-]
    false_alarms : int
        Rows that ran and that the model flags, [-]
    """

    offset: float
    errors: Array
    flagged: int
    out_of_memory: int
    false_alarms: int

    @property
    def mape(self) -> float:
        """Mean absolute error, [-]."""
        return float(np.abs(self.errors).mean())

    @property
    def largest(self) -> float:
        """Largest absolute error, [-]."""
        return float(np.abs(self.errors).max())


@cache
def memory_score() -> MemoryScore:
    """Compare the itemised memory with the rows of the BLOOM sweep.

    Returns
    -------
    MemoryScore
        Errors and alarms, [-]

    References
    ----------
    :cite:`bloom`, columns of memory
    """
    rows = _rows("published_runs_memory.csv")
    said = np.array(
        [
            memory(
                _shape(r),
                _layout(r),
                int(r["seq_len"]),
                recipe=r["recipe"],
                attention="unfused",
                dropout=True,
            ).total
            for r in rows
        ]
    )
    ran = np.array([r["out_of_memory"] == "0" for r in rows])
    true = np.array([float(r["memory_gib"] or "nan") * GIB for r in rows])
    offset = float(np.median((true - said)[ran]))
    room = np.array([ACCELERATORS[r["accelerator"]].memory for r in rows])
    full = said + offset > room
    return MemoryScore(
        offset=offset,
        errors=((said + offset) / true - 1.0)[ran],
        flagged=int((full & ~ran).sum()),
        out_of_memory=int((~ran).sum()),
        false_alarms=int((full & ran).sum()),
    )


def _gpt(layers: int, width: int, heads: int) -> TransformerShape:
    return TransformerShape(
        n_layers=layers, d_model=width, d_ff=4 * width, n_heads=heads, vocab_size=51200,
        gated=False, tied=True,
    )  # fmt: skip


def identities() -> tuple[tuple[str, float, float], ...]:
    """Figures that are formulas in their source too: name, computed, published.

    Returns
    -------
    tuple
        Rows, in the unit of the name, [any]

    References
    ----------
    :cite:`korthikanti2022reducing`, Figure 1; :cite:`narayanan2021efficient`
    """
    models = {
        "22B": (_gpt(48, 6144, 64), 4, 1, 1, 59.25, 9.5625),
        "175B": (_gpt(96, 12288, 96), 1, 8, 3, 66.84375, 12.3515625),
        "530B": (_gpt(105, 20480, 128), 1, 35, 3, 114.0234375, 23.076171875),
        "1T": (_gpt(128, 25600, 160), 1, 64, 1, 131.25, 26.5625),
    }
    found = []
    for name, (shape, b, p, v, plain, lean) in models.items():
        for label, sp, again, published in (
            ("", False, "none", plain),
            (" lean", True, "selective", lean),
        ):
            layer = activation_bytes(
                shape, 2048, b, tp=8, sequence_parallel=sp, recompute=again
            )
            factor = 1.0 + (p - 1) / (p * v) if v > 1 else 1.0
            value = layer * shape.n_layers * factor / GIB
            found.append((f"activations {name}{label} [GiB]", value, published))
    for name, stages, published in (("22B", 1, 45.5625), ("530B", 35, 31.640625)):
        shape = models[name][0]
        n = 12 * shape.n_layers * shape.d_model**2 / (8 * stages)
        states = state_bytes(n, "mixed-adam-fp32grad").total / GIB
        found.append((f"states {name} [GiB]", states, published))
    found.append(("bubble 1T", bubble_fraction(64, 512), 63 / 512))
    found.append(("bubble 530B", bubble_fraction(35, 280, 3), 34 / 840))
    gpt, s = _gpt(96, 12288, 96), 2048
    formula = 96 * s * 96 * 12288**2 * (1 + s / (6 * 12288) + 51200 / (16 * 96 * 12288))
    found.append(("FLOP of a sequence", hardware_flops(gpt, s, "full") * s, formula))
    return tuple(found)


def validation_rows() -> list[list[str]]:
    """Rows of the table that the book shows.

    Returns
    -------
    list of list of str
        Cells, already formatted, [-]
    """
    rows = []
    for s in scores():
        goal = s.table
        left = "" if np.isnan(s.left_out_mape) else f"{100 * s.left_out_mape:.1f}"
        aim = "" if goal.mape is None else f"{100 * goal.mape:.0f}"
        if goal.largest is not None:
            aim += f" / {100 * goal.largest:.0f}"
        rows.append(
            [
                goal.name,
                goal.kind,
                goal.stack,
                str(len(STACKS[goal.stack].fitted)),
                str(len(s.errors)),
                f"{100 * s.bias:+.1f}",
                f"{100 * s.mape:.1f}",
                f"{100 * s.p90:.1f}",
                f"{100 * s.largest:.1f}",
                left,
                f"{100 * s.baseline_mape:.1f}",
                f"{100 * np.abs(s.uncalibrated).mean():.1f}",
                aim,
                s.verdict,
            ]
        )
    return rows


HEADER = (
    "table", "kind", "stack", "constants", "n", "bias [%]", "MAPE [%]", "p90 [%]",
    "max [%]", "leave-one-out [%]", "median-MFU baseline [%]", "uncalibrated [%]",
    "goal MAPE / max [%]", "goal",
)  # fmt: skip


def validation_table() -> str:
    """Return the table of the book.

    Returns
    -------
    str
        HTML with units in the header, [-]
    """
    return html_table(
        HEADER,
        validation_rows(),
        "predicted over measured speed, less one; the baseline takes the median MFU of "
        "the rows it is scored on",
    )


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


def report() -> str:
    """Write the whole validation as text.

    Returns
    -------
    str
        Tables of speed, ranking, memory and identities, [-]
    """
    rows = [list(HEADER), *validation_rows()]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEADER))]
    lines = ["Speed: predicted over measured, less one", ""]
    for row in rows:
        cells = [
            cell.ljust(w) if i < 3 else cell.rjust(w)
            for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    for name in ("bloom", "uncalibrated"):
        groups = ranking(name)
        regrets = [g.regret for g in groups]
        lines += ["", f"Ranking of BLOOM plans, constants: {name}", ""]
        lines += [
            f"{g.group:32} {g.n:3} plans  regret {100 * g.regret:5.1f} %  "
            f"Spearman {g.spearman:+.2f}"
            for g in groups
        ]
        lines.append(
            f"regret mean {100 * np.mean(regrets):.1f} %, max {100 * max(regrets):.1f} %;"
            f" goal 5 / 10 %, Spearman 0.8 on the largest: {ranking_verdict(groups)}"
        )
    m = memory_score()
    verdict = "met" if m.mape <= MEMORY_GOAL and not m.false_alarms else "missed"
    lines += [
        "",
        f"Memory, BLOOM: n {len(m.errors)}, offset {m.offset / GB:.1f} GB, MAPE "
        f"{100 * m.mape:.1f} %, max {100 * m.largest:.1f} %; out of memory "
        f"{m.flagged} of {m.out_of_memory} flagged, false alarms {m.false_alarms}; "
        f"goal 7 %, none: {verdict}",
    ]
    worst = max(abs(value / published - 1.0) for _, value, published in identities())
    lines.append(
        f"Identities: {len(identities())} figures, worst {100 * worst:.4f} %; goal "
        f"0.1 %: {'met' if worst <= IDENTITY_GOAL else 'missed'}"
    )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(report() + "\n")
