"""The command that turns measured steps into the constants of a stack."""

import csv
from pathlib import Path
from typing import Annotated, Any

import typer

from chinchilla_lab.cli import words
from chinchilla_lab.cli.batches import sequences_of
from chinchilla_lab.cli.options import (
    Arch,
    AsCsv,
    AsJson,
    ClusterName,
    Gpu,
    Gpus,
    SomeTokens,
    StackName,
    option,
)
from chinchilla_lab.cli.output import emit, note
from chinchilla_lab.cluster.calibration import (
    MeasuredStep,
    predicted_seconds,
)
from chinchilla_lab.cluster.calibration import calibrate as fit_stack
from chinchilla_lab.cluster.layout import Layout
from chinchilla_lab.cluster.stacks import TYPICAL
from chinchilla_lab.units import UnitError, parse

__all__ = ["COMMANDS"]

Record = dict[str, Any]
# what a column of the file holds: words, a number, yes or no
WORDS = ("name", "arch", "cluster", "gpu", "dtype", "recompute")
SIZES = (
    "layers", "d_model", "d_ff", "heads", "kv_heads", "head_dim", "vocab",
    "experts", "top_k",
)  # fmt: skip
DEGREES = ("tp", "pp", "dp", "cp", "ep", "micro_batch", "n_chunks", "zero")
NUMBERS = (*SIZES, *DEGREES, "gpus", "batch", "seq", "tokens", "seconds")
FLAGS = ("sequence_parallel", "tied", "gated")
LIBRARY = {
    "layers": "n_layers", "heads": "n_heads", "kv_heads": "n_kv_heads",
    "vocab": "vocab_size", "experts": "n_experts", "top_k": "n_active_experts",
}  # fmt: skip


DEFAULTS: Record = {"seq": 4096, "recompute": "none", "dtype": "bf16"}


def _option(column: str) -> str:
    """Return the option that stands for a column."""
    return "--took" if column == "seconds" else f"--{column.replace('_', '-')}"


def _read(path: str) -> list[Record]:
    """Read the rows of a file; an empty cell is one that was not given."""
    if not Path(path).is_file():
        raise ValueError(f"{path}: no such file; check the path")
    with Path(path).open(encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file)
        given = [name.strip() for name in reader.fieldnames or ()]
        known = (*WORDS, *NUMBERS, *FLAGS)
        for name in given:
            if name not in known:
                raise ValueError(
                    f"{path}: column {name!r} is not known"
                    f"{words.meant(name, known)}; known: "
                    f"{', '.join(map(repr, known))}"
                )
        rows = []
        for line, cells in enumerate(reader, start=2):
            row: Record = {}
            for name, value in cells.items():
                word = "" if not isinstance(value, str) else value.strip()
                if name is None:
                    raise ValueError(f"{path}, line {line}: more cells than columns")
                if word:
                    row[name.strip()] = _value(path, line, name.strip(), word)
            rows.append(row)
    if not rows:
        raise ValueError(f"{path} holds no measured step; give one row for each")
    return rows


def _value(path: str, line: int, name: str, word: str) -> Any:
    if name in WORDS:
        return word
    where = f"{path}, line {line}: {name} {word!r}"
    if name in FLAGS:
        if word.lower() not in ("true", "false", "yes", "no", "1", "0"):
            raise ValueError(f"{where} must be true or false")
        return word.lower() in ("true", "yes", "1")
    unit = {"seconds": "s", "batch": "token", "tokens": "token"}.get(name, "count")
    try:
        value = parse(word, unit)
    except UnitError as fault:
        raise ValueError(f"{where}: {fault}") from None
    if unit == "count" and value != int(value):
        raise ValueError(f"{where} must be a whole number")
    return int(value) if unit == "count" else value


def _step(row: Record) -> MeasuredStep:
    """Build a measured step; seconds are those of a step, or of ``tokens`` of them."""
    for name in ("batch", "seconds"):
        if name not in row:
            raise ValueError(
                f"{name} is missing; give {_option(name)}, or a column {name} in a CSV"
            )
    machine = words.cluster(row.get("cluster"), row.get("gpu"), row.get("gpus"))
    given = {LIBRARY.get(k, k): row.get(k) for k in (*SIZES, "tied", "gated")}
    shape = words.shape(row.get("arch"), given)
    cut = {k: row[k] for k in DEGREES if k in row}
    if "dp" not in cut:
        shared = cut.get("tp", 1) * cut.get("pp", 1) * cut.get("cp", 1)
        cut["dp"] = max(1, machine.n_accelerators // shared)
    layout = Layout(
        **cut, recompute=row.get("recompute", "none"),
        sequence_parallel=row.get("sequence_parallel", False),
    )  # fmt: skip
    seq = row["seq"]
    batch = sequences_of(row["batch"], seq, machine.n_accelerators)
    seconds = row["seconds"]
    if "tokens" in row:
        seconds *= batch * seq / row["tokens"]
    return MeasuredStep(
        shape=shape, cluster=machine, layout=layout, batch=batch, seq_len=seq,
        seconds=seconds, dtype=row["dtype"], name=row.get("name", layout.label()),
    )  # fmt: skip


def _degree(name: str, help: str, least: int | None = None) -> Any:
    return option(name, help=help, unit="whole", least=least)


def calibrate(
    data: Annotated[
        str | None,
        typer.Argument(
            help="CSV of measured steps: columns arch, gpu, gpus, tp, pp, dp, batch, "
            "seq, seconds and others; options fill in what it lacks"
        ),
    ] = None,
    tokens: SomeTokens = None,
    took: Annotated[
        float | None,
        option(
            "--took",
            unit="s",
            help="time of --tokens without stops, or of one step without them",
        ),
    ] = None,
    batch: Annotated[
        float | None, option("--batch", help="tokens of a step", unit="token")
    ] = None,
    seq: Annotated[
        int | None,
        option("--seq", help="tokens of a sequence, by default 4096", unit="whole"),
    ] = None,
    arch: Arch = None,
    cluster: ClusterName = None,
    gpu: Gpu = None,
    gpus: Gpus = None,
    tp: Annotated[int | None, _degree("--tp", "tensor parallel")] = None,
    pp: Annotated[int | None, _degree("--pp", "pipeline stages")] = None,
    dp: Annotated[
        int | None, _degree("--dp", "replicas; by default what is left")
    ] = None,
    cp: Annotated[int | None, _degree("--cp", "context parallel")] = None,
    ep: Annotated[int | None, _degree("--ep", "expert parallel")] = None,
    micro_batch: Annotated[
        int | None, _degree("--micro-batch", "sequences of a micro-batch")
    ] = None,
    zero: Annotated[int | None, _degree("--zero", "ZeRO stage", 0)] = None,
    recompute: Annotated[
        str | None,
        option("--recompute", help="none, selective or full", metavar="KIND"),
    ] = None,
    sequence_parallel: Annotated[
        bool,
        typer.Option("--sequence-parallel", help="norms cut along the sequence"),
    ] = False,
    dtype: Annotated[
        str | None, option("--dtype", help="bf16, fp8 or tf32", metavar="FORMAT")
    ] = None,
    stack: StackName = None,
    constants: Annotated[
        str,
        option(
            "--constants",
            metavar="NAME,...",
            help="to fit, at most four: gemm, traffic, attention, layer_overhead, "
            "network, jitter, step_overhead",
        ),
    ] = "gemm",
    label: Annotated[
        str | None,
        option("--label", help="what the rows are, shown later", metavar="WORDS"),
    ] = None,
    save: Annotated[
        str | None,
        option(
            "--save", help="file for the stack; --stack reads it", metavar="FILE.json"
        ),
    ] = None,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Constants of your own software from measured steps, for --stack."""
    words.to_be_written(save, "--save", ("json",))
    typed: Record = {
        "tokens": tokens, "seconds": took, "batch": batch, "seq": seq, "arch": arch,
        "cluster": cluster, "gpu": gpu, "gpus": gpus, "tp": tp, "pp": pp, "dp": dp,
        "cp": cp, "ep": ep, "micro_batch": micro_batch, "zero": zero,
        "recompute": recompute, "sequence_parallel": sequence_parallel or None,
        "dtype": dtype,
    }  # fmt: skip
    typed = {k: v for k, v in typed.items() if v is not None}
    given: list[Record] = [{}] if data is None else _read(data)
    if idle := [k for k in typed if all(k in row for row in given)]:
        options = ", ".join(_option(k) for k in idle)
        raise ValueError(
            f"{options}: {data} says it in every row; leave the option out, or the "
            "column"
        )
    rows = [_step(DEFAULTS | typed | row) for row in given]
    start = TYPICAL if stack is None else words.stack(stack)
    names = tuple(name.strip() for name in constants.split(","))
    if len(names) > len(rows):
        raise ValueError(
            f"--constants {constants} asks for {len(names)} of {len(rows)} measured "
            "step(s); give a CSV with at least as many rows, or --constants gemm"
        )
    what = label or (f"{Path(data).name}" if data else "one run as typed")
    found = fit_stack(rows, start, names, what)
    if save is not None:
        own = found.stack.with_(name=Path(save).stem)
        Path(save).write_text(own.to_json(), encoding="utf-8")
    times = predicted_seconds(rows, found.stack)
    fitted = {n: getattr(found.stack, n) for n in names}
    records: list[Record] = [
        {
            "step": row.name, "measured_s": row.seconds, "predicted_s": float(t),
            "error_of_speed": float(e), "error_left_out": float(out), **fitted,
            "calibration": found.stack.label,
        }
        for row, t, e, out in zip(
            rows, times, found.errors, found.left_out, strict=True
        )
    ]  # fmt: skip
    note(
        ", ".join(f"{n} {value:.4g}" for n, value in fitted.items())
        + f"; mean error of the speed {found.mape:.1%}"
        + ("" if save is None else f"; written to {save}: give it as --stack {save}")
    )
    emit(records, found.stack.label, as_json, as_csv)


COMMANDS = {"calibrate": calibrate}
