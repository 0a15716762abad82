"""Commands about a model on a machine: utilisation, time, layouts, hardware."""

import sys
from typing import Annotated, Any

import typer

from chinchilla_lab.cli import words
from chinchilla_lab.cli.batches import sequences_of
from chinchilla_lab.cli.options import (
    Active,
    Arch,
    AsCsv,
    AsJson,
    ClusterName,
    Dtype,
    Gpu,
    Gpus,
    PriceRange,
    Seq,
    SomeParams,
    SomeTokens,
    StackName,
    Tokens,
    option,
)
from chinchilla_lab.cli.output import emit, note
from chinchilla_lab.cluster.accelerators import ACCELERATORS
from chinchilla_lab.cluster.calibration import whole_run_mfu
from chinchilla_lab.cluster.collectives import (
    all_gather_time,
    all_reduce_time,
    all_to_all_time,
)
from chinchilla_lab.cluster.hardware import Cluster, ridge_point
from chinchilla_lab.cluster.hardware import mfu as share_of_peak
from chinchilla_lab.cluster.search import search
from chinchilla_lab.cluster.step import tokens_per_second_to_mfu
from chinchilla_lab.planning.estimates import UTILISATION_BAND, estimate_run
from chinchilla_lab.planning.plans import default_stack
from chinchilla_lab.shape.transformer import TransformerShape
from chinchilla_lab.units import FLOP_PER_ND, GB, UnitError, parse, text

__all__ = ["COMMANDS"]

Record = dict[str, Any]


def _peak(gpu: str | None, peak: float | None, dtype: str) -> tuple[Any, float, str]:
    """Return what takes a share of, the rate itself, and what to call it."""
    if peak is not None:
        return peak, peak, "peak as given"
    if gpu is None:
        raise ValueError("give --gpu h100-sxm or --peak 989e12, one of them")
    chip = words.chip(str(gpu))
    return chip, chip.peak(dtype), f"dense {dtype} peak of {chip.name}"


def mfu(
    achieved: Annotated[
        float | None,
        option("--achieved", help="model FLOP/s of one accelerator", unit="FLOP/s"),
    ] = None,
    active_params: Active = None,
    params: SomeParams = None,
    tokens: SomeTokens = None,
    gpu_hours: Annotated[
        float | None, option("--gpu-hours", help="of the whole run", unit="count")
    ] = None,
    tokens_per_second: Annotated[
        float | None,
        option(
            "--tokens-per-second", help="of the whole job, with --arch", unit="count"
        ),
    ] = None,
    arch: Arch = None,
    seq: Seq = 4096,
    attention: Annotated[
        str,
        option("--count", help="attention: full, causal or none", metavar="KIND"),
    ] = "full",
    gpu: Gpu = None,
    gpus: Gpus = None,
    peak: Annotated[
        float | None, option("--peak", help="dense peak of your own", unit="FLOP/s")
    ] = None,
    dtype: Dtype = "bf16",
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Share of the dense peak: of a rate, of a speed, or of published hours."""
    if tokens_per_second is not None:
        machine = words.cluster(None, gpu, gpus)
        if arch is None:
            raise ValueError("--tokens-per-second needs --arch, such as llama-3-8b")
        shape = words.shape(arch, {})
        share = tokens_per_second_to_mfu(
            shape, tokens_per_second, machine, seq, dtype,
            attention,  # type: ignore[arg-type]
        )  # fmt: skip
        rate = machine.chip.peak(dtype)
        label = f"dense {dtype} peak of {machine.chip.name}, attention {attention}"
        reached = share * rate
    else:
        of, rate, label = _peak(gpu, peak, dtype)
        if achieved is not None:
            reached = achieved
            share = share_of_peak(reached, of, dtype)
        else:
            size = active_params or params
            if size is None or tokens is None or gpu_hours is None:
                raise ValueError(
                    "give --achieved, or --tokens-per-second with --arch, or "
                    "--active-params, --tokens and --gpu-hours"
                )
            share = whole_run_mfu(size, tokens, gpu_hours, of, dtype)
            reached = share * rate
    record: Record = {
        "mfu": share, "achieved_flop_per_s": reached, "peak_flop_per_s": rate,
        "peak": label, "dtype": None if peak is not None else dtype,
    }  # fmt: skip
    emit([record], f"{label}: {text(rate, 'FLOP/s', 4)}", as_json, as_csv)


def _by_layout(
    shape: TransformerShape, machine: Cluster, batch: float | None, seq: int,
    stack: str | None, dtype: str,
) -> float:  # fmt: skip
    """Return 6ND over the peak of the fastest layout of a shape."""
    if batch is None:
        raise ValueError("--arch needs --batch, the tokens of a step, such as 4M")
    n = machine.n_accelerators
    used = words.stack(stack or default_stack(machine))
    found = search(
        shape, machine, sequences_of(batch, seq, n), seq, used, dtype, keep=1
    )
    note(f"fastest layout: {found.best.layout.label()}; {found.best.label}")
    per_token = FLOP_PER_ND * shape.params().active
    return per_token * found.best.tokens_per_second / (n * machine.chip.peak(dtype))


def time(
    tokens: Tokens,
    params: Annotated[
        float | None,
        option("--params", "-N", help="active parameters", unit="parameter"),
    ] = None,
    arch: Arch = None,
    batch: Annotated[
        float | None,
        option("--batch", help="tokens of a step, with --arch", unit="token"),
    ] = None,
    seq: Seq = 4096,
    stack: StackName = None,
    gpu: Gpu = None,
    gpus: Gpus = None,
    cluster: ClusterName = None,
    mfu: Annotated[
        float | None, option("--mfu", help="6ND over the dense peak", unit="share")
    ] = None,
    calibrate_from: Annotated[
        str | None,
        option(
            "--calibrate-from", "--like", help="a run: N:D:hours", metavar="N:D:HOURS"
        ),
    ] = None,
    price: PriceRange = None,
    dtype: Dtype = "bf16",
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Days, hours and dollars of a run; a band if no utilisation is known."""
    like = None
    if calibrate_from is not None:
        parts = calibrate_from.split(":")
        if len(parts) != 3:
            raise ValueError(
                f"--calibrate-from {calibrate_from!r}: write N:D:hours, for example "
                "70B:2T:1720320"
            )
        try:
            like = (parse(parts[0], "parameter"), parse(parts[1], "token"),
                    parse(parts[2], "count"))  # fmt: skip
        except UnitError as fault:
            raise ValueError(f"--calibrate-from {calibrate_from!r}: {fault}") from None
        if cluster is None and gpu is None:
            # hours carry over whatever the chip: its peak cancels
            gpu = "a100-sxm-80gb"
            note("chip of the other run is not given; its peak cancels in the hours")
        if cluster is None and gpus is None:
            gpus = 1
    machine = words.cluster(cluster, gpu, gpus)
    if arch is not None:
        shape = words.shape(arch, {})
        params = float(shape.params().active)
        mfu = _by_layout(shape, machine, batch, seq, stack, dtype)
    if params is None:
        raise ValueError("no model: give --params 7B, or --arch llama-3-8b and --batch")
    found = estimate_run(params, tokens, machine, mfu, like, price, dtype)
    if found.assumed:
        low, high = UTILISATION_BAND
        note(
            f"no --mfu: shown is the band of published runs, {low:.0%} to {high:.0%} "
            "of the dense peak; --arch and --batch ask the step model"
        )
    which = (0, 1, 2) if found.assumed else (1,)
    records: list[Record] = []
    for i in which:
        cost = found.cost
        hours = found.hours[i]
        records.append(
            {
                "mfu": found.utilisation[2 - i], "days": found.days[i],
                "accelerator_hours": hours,
                "usd_low": None if cost is None else hours * cost.price.low,
                "usd_high": None if cost is None else hours * cost.price.high,
                "price_date": None if cost is None else cost.price.date,
                "C_flop": found.C, "n_accelerators": machine.n_accelerators,
                "accelerator": machine.chip.name,
            }
        )  # fmt: skip
    emit(records, "6ND over rate", as_json, as_csv)


EXAMPLE = """\
# a machine of your own: chinchilla-lab plan --cluster machine.toml ...
accelerator = "h100-sxm"   # an id of chinchilla-lab hardware, or a table as below
n_accelerators = 64
domain = 8                 # accelerators that the fast link joins
scaleout_gbps = 50         # network per accelerator, one way [GB/s]; or "400 Gb/s"
latency_us = 15            # of a message between nodes [us]

# a chip that differs from a known one, instead of the line accelerator = above:
# [accelerator]
# like = "h100-sxm"
# hbm_gb = 96              # and any other column that differs
# source = "ours"          # with where, accessed and evidence
# where = "data sheet"
# accessed = "2026-11"
# evidence = "vendor"
"""


def hardware(
    gpu: Gpu = None,
    example: Annotated[
        bool, typer.Option("--example", help="print a cluster file to start from")
    ] = False,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """List the accelerators: dense peaks, one-way links, dated prices, sources."""
    if example:
        sys.stdout.write(EXAMPLE)
        return
    chips = list(ACCELERATORS.values()) if gpu is None else [words.chip(gpu)]
    records: list[Record] = [
        {
            "id": c.id, "name": c.name,
            "bf16_dense_tflops": c.peaks.get("bf16", float("nan")) / 1e12,
            "fp8_dense_tflops": c.peaks.get("fp8", float("nan")) / 1e12,
            "best_bf16_tflops": c.gemm_ceilings.get("bf16", float("nan")) / 1e12,
            "hbm_gb": None if c.hbm_bytes is None else c.hbm_bytes / GB,
            "hbm_gbps": None if c.hbm_bandwidth is None else c.hbm_bandwidth / GB,
            "domain": c.scaleup_domain,
            "scaleout_gbps": None if c.scaleout_bandwidth is None
            else c.scaleout_bandwidth / GB,
            "usd_low": None if c.price is None else c.price.low,
            "usd_high": None if c.price is None else c.price.high,
            "price_date": None if c.price is None else c.price.date,
            "source": c.source, "evidence": c.evidence,
        }
        for c in chips
    ]  # fmt: skip
    tall = len(records) == 1
    heads = {"usd_low": "price from [USD/h]", "usd_high": "price to [USD/h]"}
    emit(records, "accelerators", as_json, as_csv, tall=tall, heads=heads)


def roofline(
    gpu: Annotated[str, option("--gpu", help="chip", metavar="CHIP")],
    dtype: Dtype = "bf16",
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Ridge point of a chip: FLOP per byte above which the peak binds."""
    chip = words.chip(gpu)
    record: Record = {
        "accelerator": chip.name, "dtype": dtype, "peak_flop_per_s": chip.peak(dtype),
        "hbm_gbps": float(chip.need("hbm_bandwidth")) / GB,
        "ridge_flop_per_byte": ridge_point(chip, dtype),
    }  # fmt: skip
    emit([record], "dense peak over memory bandwidth", as_json, as_csv)


def comm(
    size: Annotated[float, option("--bytes", help="size of the array", unit="byte")],
    ranks: Annotated[int, option("--ranks", help="ranks", unit="whole")],
    bandwidth: Annotated[
        float, option("--bw", help="rate of a rank, one way", unit="byte/s")
    ],
    collective: Annotated[
        str,
        option("--collective", help="allgather, allreduce or alltoall", metavar="KIND"),
    ] = "allreduce",
    latency: Annotated[
        float, option("--latency", help="time of a hop", unit="s", least=0)
    ] = 0.0,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Time of a collective on a ring."""
    known = {
        "allgather": all_gather_time, "allreduce": all_reduce_time,
        "alltoall": all_to_all_time,
    }  # fmt: skip
    word = collective.replace("-", "").replace("_", "").lower()
    if word not in known:
        raise ValueError(f"--collective {collective!r}: choose from {', '.join(known)}")
    took = known[word](size, ranks, bandwidth, latency)
    record: Record = {
        "collective": word, "ranks": ranks, "seconds": float(took),
        "milliseconds": 1e3 * float(took),
    }  # fmt: skip
    emit([record], "ring", as_json, as_csv)


COMMANDS = {
    "mfu": mfu, "time": time,
    "hardware": hardware, "roofline": roofline, "comm": comm,
}  # fmt: skip
