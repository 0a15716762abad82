"""The command that ranks layouts, and the batches that divide among accelerators."""

from dataclasses import replace
from typing import Annotated, Any

import typer

from chinchilla_lab.checks import InfeasibleError
from chinchilla_lab.cli import words
from chinchilla_lab.cli.batches import sequences_of
from chinchilla_lab.cli.options import (
    Arch,
    AsCsv,
    AsJson,
    ClusterName,
    Dtype,
    Experts,
    Gpu,
    Gpus,
    HeadDim,
    Heads,
    KvHeads,
    Layers,
    MemoryLimit,
    Mlp,
    MlpKind,
    Numbers,
    Seq,
    StackName,
    Tied,
    TopK,
    Vocab,
    Width,
    option,
    sizes,
)
from chinchilla_lab.cli.output import emit, note
from chinchilla_lab.cluster.hardware import Cluster
from chinchilla_lab.cluster.search import Ranking, search
from chinchilla_lab.planning.plans import default_stack
from chinchilla_lab.shape.transformer import TransformerShape
from chinchilla_lab.units import GB, GIB

__all__ = ["COMMANDS"]

Record = dict[str, Any]


def _others(
    shape: TransformerShape, machine: Cluster, sequences: int, seq: int, **more: Any
) -> list[str]:
    """Return numbers near those asked for with which a layout divides and fits."""
    n = machine.n_accelerators
    tried: list[tuple[str, Cluster, int]] = [
        (
            f"--batch {near * seq} ({near:,} sequences)",
            machine,
            near,
        )
        for near in {
            max(1, round(sequences / n)) * n,
            1 << (sequences.bit_length() - 1),
            1 << sequences.bit_length(),
        }
        if near != sequences
    ]
    group = machine.domain_size
    for count in {n // group * group, 1 << (n.bit_length() - 1)}:
        if count and count != n:
            smaller = replace(machine, n_accelerators=count)
            tried.append((f"{count:,} accelerators", smaller, sequences))
    works = []
    for said, cluster, near in tried:
        try:
            search(shape, cluster, near, seq, keep=1, **more)
        except ValueError:
            continue
        works.append(said)
    return works


def _found(
    shape: TransformerShape, machine: Cluster, sequences: int, seq: int, top: int,
    even_stages: bool, more: dict[str, Any],
) -> Ranking:  # fmt: skip
    """Search, and say what would divide if nothing does."""
    try:
        return search(
            shape, machine, sequences, seq, keep=top, even_stages=even_stages, **more
        )
    except InfeasibleError as fault:
        if "no layout divides" not in str(fault):
            raise
        ways = _others(shape, machine, sequences, seq, even_stages=even_stages, **more)
        if even_stages:
            ways += ["--uneven-stages"] * _works(shape, machine, sequences, seq, more)
        raise InfeasibleError(
            f"no layout divides {sequences:,} sequences ({sequences * seq:,} tokens) "
            f"of a model of {shape.n_layers} layers and {shape.n_heads} heads among "
            f"{machine.n_accelerators:,} accelerators; "
            + (
                f"one does with {', or with '.join(ways)}"
                if ways
                else "try a --batch with more divisors, another number of "
                "accelerators, or leave out --tp, --pp, --cp, --ep, --zero and "
                "--micro-batch"
            )
        ) from None


def _works(
    shape: TransformerShape, machine: Cluster, sequences: int, seq: int,
    more: dict[str, Any],
) -> bool:  # fmt: skip
    """Say whether stages with unequal layers would do."""
    try:
        search(shape, machine, sequences, seq, keep=1, even_stages=False, **more)
    except ValueError:
        return False
    return True


def _axis(name: str, help: str, least: int | None = None) -> Any:
    """Describe an option that holds one axis of the search to some values."""
    return option(
        name, help=f"{help}: these alone", unit="whole", least=least, several=True
    )


def layouts(
    batch: Annotated[float, option("--batch", help="tokens of a step", unit="token")],
    cluster: ClusterName = None,
    gpu: Gpu = None,
    gpus: Gpus = None,
    arch: Arch = None,
    layers: Layers = None,
    d_model: Width = None,
    d_ff: Mlp = None,
    heads: Heads = None,
    kv_heads: KvHeads = None,
    head_dim: HeadDim = None,
    vocab: Vocab = None,
    experts: Experts = None,
    top_k: TopK = None,
    mlp: MlpKind = "gated",
    tied: Tied = None,
    seq: Seq = 4096,
    stack: StackName = None,
    dtype: Dtype = "bf16",
    tp: Annotated[Numbers | None, _axis("--tp", "tensor parallel")] = None,
    pp: Annotated[Numbers | None, _axis("--pp", "pipeline stages")] = None,
    cp: Annotated[
        Numbers | None, _axis("--cp", "context parallel, by default 1")
    ] = None,
    ep: Annotated[Numbers | None, _axis("--ep", "expert parallel")] = None,
    zero: Annotated[Numbers | None, _axis("--zero", "ZeRO stages", 0)] = None,
    micro_batch: Annotated[
        Numbers | None, _axis("--micro-batch", "sequences of a micro-batch")
    ] = None,
    recompute: Annotated[
        str | None,
        option(
            "--recompute", help="none, selective, full: these alone", metavar="KIND,..."
        ),
    ] = None,
    uneven_stages: Annotated[
        bool,
        typer.Option("--uneven-stages", help="stages may hold unequally many layers"),
    ] = False,
    memory_limit: MemoryLimit = None,
    attention: Annotated[
        str,
        option(
            "--count", help="attention in MFU: full, causal or none", metavar="KIND"
        ),
    ] = "none",
    top: Annotated[int, option("--top", help="how many to show", unit="whole")] = 10,
    items: Annotated[
        bool, typer.Option("--items", help="the step, part by part")
    ] = False,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Layouts that fit, the fastest first."""
    machine = words.cluster(cluster, gpu, gpus)
    shape = words.shape(
        arch,
        sizes(
            layers, d_model, d_ff, heads, kv_heads, head_dim, vocab, mlp, tied, experts,
            top_k,
        ),
    )  # fmt: skip
    if attention not in ("full", "causal", "none"):
        raise ValueError(f"--count {attention!r}: choose full, causal or none")
    used = words.stack(stack or default_stack(machine))
    axes = {
        "tp": tp, "pp": pp, "cp": cp, "ep": ep, "zero": zero, "micro_batch": micro_batch
    }  # fmt: skip
    more: dict[str, Any] = {k: v for k, v in axes.items() if v is not None}
    if recompute is not None:
        more["recompute"] = tuple(word.strip() for word in recompute.split(","))
    more |= {"stack": used, "dtype": dtype, "memory_limit": memory_limit}
    sequences = sequences_of(batch, seq, machine.n_accelerators)
    found = _found(shape, machine, sequences, seq, top, not uneven_stages, more)
    best = found.best.seconds
    parts = [k for k in found.best.items if any(s.items[k] for s in found.steps)]
    records: list[Record] = []
    for step, room in zip(found.steps, found.memory, strict=True):
        record: Record = {
            "layout": step.layout.label(), "step_s": step.seconds,
            "over_best": step.seconds / best, "tie": found.is_tie(step),
            "mfu": step.mfu(attention),  # type: ignore[arg-type]
            "hfu": step.hfu(attention),  # type: ignore[arg-type]
            "memory_gb": float(room) / GB, "memory_gib": float(room) / GIB,
            "tokens_per_second": step.tokens_per_second,
        }  # fmt: skip
        if items:
            record |= {f"{k}_ms": 1e3 * float(step.items[k]) for k in parts}
        records.append(record)
    note(
        f"{sequences:,} sequences of {seq:,} tokens a step; "
        f"{found.n_feasible:,} of {found.n_points:,} layouts divide and fit; "
        f"{found.n_ties} within {found.tie:.0%} of the best"
    )
    counted = {"none": "no attention", "full": "all attention"}.get(
        attention, "causal attention"
    )
    heads_of = {
        "mfu": f"MFU, {counted} [-]", "hfu": f"HFU, {counted} [-]",
        "tie": "ties with best",
    }  # fmt: skip
    emit(records, f"{used.name}: {found.best.label}", as_json, as_csv, heads=heads_of)


COMMANDS = {"layouts": layouts}
