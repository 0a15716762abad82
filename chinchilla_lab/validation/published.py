"""Published runs as measured steps."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from chinchilla_lab.checks import one_of
from chinchilla_lab.cluster.accelerators import ACCELERATORS
from chinchilla_lab.cluster.calibration import MeasuredStep
from chinchilla_lab.cluster.hardware import Cluster
from chinchilla_lab.cluster.layout import Layout
from chinchilla_lab.cluster.step import hardware_flops, model_flops
from chinchilla_lab.shape.known import SHAPES
from chinchilla_lab.shape.transformer import TransformerShape
from chinchilla_lab.sources import read_rows
from chinchilla_lab.units import GB

__all__ = ["UNUSED", "measured"]

UNUSED = {
    "maxtext_tpu": "no best matrix product of a TPU was measured, and no tile rule",
    "torchtitan_benchmarks": "H100 parts of 500 W, whose best product was not measured",
    "megatron2020_v100_a100": "rates of V100 have no source; micro-batches not stated",
    "megatron_bridge_perf, other than H100": "no measured fp8 product",
    "megatron_bridge_perf, mixtures other than Qwen3": "latent attention, or layers of "
    "two kinds, which the shape does not hold",
    "simumax_b200_real, DeepSeek rows": "latent attention is not modelled",
    "bloom176b_a100_plan_sweep, rows without layers or time": "the shape or the plan "
    "is not stated",
    "nanotron_tp_sweep_3b": "the length of its sequences is not stated",
    "megascale2024_fig9_weak530b": "batch and plan are not stated",
    "KempnerForge, H200": "a stack without calibration, on nodes of four",
}
"""Published tables that are not scored, and why."""


@cache
def published_rows(name: str = "published_runs.csv") -> tuple[dict[str, str], ...]:
    """Return the rows of a table of published runs as text."""
    return tuple(read_rows(name))


def all_steps() -> tuple[dict[str, str], ...]:
    """Return the rows of both files of measured steps."""
    return published_rows() + published_rows("published_runs_unseen.csv")


def shape_of(row: Mapping[str, str]) -> TransformerShape:
    """Return the shape of a row: its columns, or the published shape of its model."""
    if not row["n_layers"]:
        return SHAPES[row["model"]]
    counts = ("n_layers", "d_model", "d_ff", "n_heads", "n_kv_heads", "vocab_size")
    given: dict[str, Any] = {k: int(row[k]) for k in counts if row.get(k)}
    return TransformerShape(gated=row["gated"] == "1", tied=row["tied"] == "1", **given)


def layout_of(row: Mapping[str, str]) -> Layout:
    """Return the layout of a row."""
    names = ("tp", "pp", "dp", "cp", "ep", "micro_batch", "n_chunks", "zero")
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
    if kind.startswith("mfu_"):
        rate = value / 100.0 * ACCELERATORS[row["accelerator"]].peak(row["dtype"])
        each = model_flops(shape, s, "full")
        if kind == "mfu_all_tables":
            # six FLOP for every stored parameter: the input table too, which is a
            # second copy where tied tables lie on two stages of a pipeline
            copies = 1 + (not shape.tied or int(row["pp"]) > 1)
            each += 6.0 * (copies - 1) * shape.vocab_size * shape.d_model
        else:
            one_of("quantity", kind, ("mfu_full",))
        return each * tokens / (n * rate)
    one_of("quantity", kind, ("model_tflops_full", "model_tflops_causal"))
    flop = model_flops(shape, s, "causal" if kind.endswith("causal") else "full")
    return flop * tokens / (n * value * 1e12)


def step_of(row: Mapping[str, str]) -> MeasuredStep:
    """Return a row as a measured step."""
    shape = shape_of(row)
    network = row["scaleout_gbps"]
    return MeasuredStep(
        shape=shape,
        cluster=Cluster(
            accelerator=row["accelerator"],
            n_accelerators=int(row["n_accelerators"]),
            scaleout_bandwidth=float(network) * GB if network else None,
        ),
        layout=layout_of(row),
        batch=int(row["batch"]),
        seq_len=int(row["seq_len"]),
        seconds=_seconds(row, shape),
        dtype=row["dtype"],
        name=row["id"],
    )


@cache
def measured(table: str, use: str = "") -> tuple[MeasuredStep, ...]:
    """Return the published steps of a table.

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
    rows = all_steps()
    one_of("table", table, sorted({row["table"] for row in rows}))
    one_of("use", use, ("", "fit", "test", "dropped"))
    return tuple(
        step_of(row)
        for row in rows
        if row["table"] == table
        and (row["use"] == use if use else row["use"] != "dropped")
    )
