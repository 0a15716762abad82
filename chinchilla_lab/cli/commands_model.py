"""Commands about a model alone: parameters, FLOP, bytes."""

from typing import Annotated, Any

from chinchilla_lab.cli import words
from chinchilla_lab.cli.options import (
    Active,
    Arch,
    AsCsv,
    AsJson,
    Gpu,
    HeadDim,
    Heads,
    KvHeads,
    Layers,
    Mlp,
    MlpKind,
    RecipeName,
    Seq,
    SomeParams,
    SomeTokens,
    Tied,
    Vocab,
    Width,
    option,
    sizes,
)
from chinchilla_lab.cli.output import emit, note
from chinchilla_lab.cluster.accelerators import Accelerator
from chinchilla_lab.cluster.layout import Layout
from chinchilla_lab.cluster.memory import (
    NOT_INCLUDED,
    RECIPES,
    MemoryBreakdown,
    Recipe,
    state_bytes,
)
from chinchilla_lab.cluster.memory import memory as memory_of
from chinchilla_lab.cluster.step import hardware_flops
from chinchilla_lab.shape.accounting import CONVENTIONS, flops_per_token
from chinchilla_lab.units import FLOP_PER_ND, GB, GIB, parse

__all__ = ["COMMANDS"]

Record = dict[str, Any]


def flops(
    params: SomeParams = None,
    active_params: Active = None,
    tokens: SomeTokens = None,
    arch: Arch = None,
    layers: Layers = None,
    d_model: Width = None,
    d_ff: Mlp = None,
    heads: Heads = None,
    kv_heads: KvHeads = None,
    head_dim: HeadDim = None,
    vocab: Vocab = None,
    mlp: MlpKind = "gated",
    tied: Tied = "false",
    seq: Seq = 4096,
    convention: Annotated[
        str, option("--convention", help="all, or names parted by commas")
    ] = "all",
    recompute: Annotated[
        str, option("--recompute", help="none, selective, full")
    ] = "none",
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Training FLOP of a size, or of a shape under each convention."""
    D = words.quantity(tokens, "token")
    if params is not None or active_params is not None:
        total = words.quantity(params, "parameter")
        used = words.quantity(active_params, "parameter")
        per = FLOP_PER_ND * float(used or total or 0.0)
        record: Record = {
            "total_params": total, "active_params": used or total,
            "flop_per_token": per, "D": D,
            "C_flop": None if D is None else per * D,
            "total_over_active": total / used if total and used else None,
        }  # fmt: skip
        emit([record], "6 FLOP per active parameter and token", as_json, as_csv)
        return
    shape = words.shape(
        arch, sizes(layers, d_model, d_ff, heads, kv_heads, head_dim, vocab, mlp, tied)
    )
    names = list(CONVENTIONS) if convention == "all" else convention.split(",")
    base = FLOP_PER_ND * shape.params().active
    records: list[Record] = []
    for name in names:
        per = flops_per_token(shape, seq, name.strip()).total
        records.append(
            {"convention": name.strip(), "flop_per_token": per, "over_6N": per / base,
             "C_flop": None if D is None else per * D}
        )  # fmt: skip
    if recompute != "none":
        per = hardware_flops(shape, seq, recompute)
        records.append(
            {"convention": f"done by the hardware, {recompute} recomputation",
             "flop_per_token": per, "over_6N": per / base,
             "C_flop": None if D is None else per * D}
        )  # fmt: skip
    emit(records, "training FLOP of a token", as_json, as_csv)


def params(
    arch: Arch = None,
    layers: Layers = None,
    d_model: Width = None,
    d_ff: Mlp = None,
    heads: Heads = None,
    kv_heads: KvHeads = None,
    head_dim: HeadDim = None,
    vocab: Vocab = None,
    mlp: MlpKind = "gated",
    tied: Tied = "false",
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Parameters of a shape, item by item and under each name of N."""
    shape = words.shape(
        arch, sizes(layers, d_model, d_ff, heads, kv_heads, head_dim, vocab, mlp, tied)
    )
    n = shape.params()
    record: Record = {
        "attention": n.attention, "mlp": n.mlp, "router": n.router, "norms": n.norms,
        "biases": n.biases, "input_embedding": n.input_embedding,
        "positions": n.positions, "head": n.head, "idle_experts": n.idle,
        "lookup": n.input_embedding, "matmul": n.matrices,
        **{f"N_{name}": count for name, count in n.meanings().items()},
    }  # fmt: skip
    emit([record], "parameters", as_json, as_csv, tall=True)


def _recipe(written: str) -> Recipe | str:
    if written in RECIPES:
        return written
    parts = written.split(":")
    if len(parts) == 3:
        weights, gradients, optimizer = (parse(p, "count") for p in parts)
        return Recipe(weights=weights, gradients=gradients, optimizer=optimizer)
    raise ValueError(
        f"--recipe {written!r} is not known; choose from: {', '.join(RECIPES)}; or "
        "bytes of weights, gradients and optimizer such as 2:2:12"
    )


def _bytes(found: MemoryBreakdown, extra: Record) -> Record:
    items = {
        k: getattr(found, k)
        for k in (
            "weights",
            "gradients",
            "optimizer",
            "activations",
            "logits",
            "buffers",
        )
    }
    made: Record = {}
    for name, value in [*items.items(), ("total", found.total)]:
        made[f"{name}_gib"] = value / GIB
        made[f"{name}_gb"] = value / GB
    return {**made, **extra}


def _unused(why: str, instead: str, options: dict[str, Any]) -> None:
    """Refuse options that would change nothing."""
    idle = [name for name, value in options.items() if value not in (None, False)]
    if idle:
        raise ValueError(f"{', '.join(idle)} does not apply: {why}; {instead}")


def memory(
    params: SomeParams = None,
    gpus: Annotated[int, option("--gpus", help="replicas, with --params")] = 1,
    zero: Annotated[int, option("--zero", help="ZeRO stage")] = 0,
    recipe: RecipeName = "mixed-adam",
    bytes_each: Annotated[
        str | None, option("--bytes", help="bytes of a parameter, nothing else")
    ] = None,
    arch: Arch = None,
    layers: Layers = None,
    d_model: Width = None,
    d_ff: Mlp = None,
    heads: Heads = None,
    kv_heads: KvHeads = None,
    head_dim: HeadDim = None,
    vocab: Vocab = None,
    mlp: MlpKind = "gated",
    tied: Tied = "false",
    tp: Annotated[int, option("--tp", help="tensor parallel")] = 1,
    pp: Annotated[int, option("--pp", help="pipeline stages")] = 1,
    dp: Annotated[int, option("--dp", help="replicas")] = 1,
    micro_batch: Annotated[int, option("--micro-batch", help="sequences")] = 1,
    seq: Seq = 4096,
    recompute: Annotated[
        str, option("--recompute", help="none, selective, full")
    ] = "none",
    attention: Annotated[str, option("--attention", help="fused or unfused")] = "fused",
    sequence_parallel: Annotated[
        bool, option("--sequence-parallel", help="norms cut along the sequence")
    ] = False,
    gpu: Gpu = None,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Bytes on the fullest accelerator: states of a size, or all of a shape."""
    used = _recipe(recipe)
    shown = RECIPES[used] if isinstance(used, str) else used
    if bytes_each is not None:
        shown = used = Recipe(
            weights=parse(bytes_each, "count"), gradients=0.0, optimizer=0.0
        )
    chip: Accelerator | None = None if gpu is None else words.chip(gpu)
    extra: Record = {"recipe_bytes": shown.total, "recipe": shown.label}
    given_sizes = {
        "--layers": layers, "--d-model": d_model, "--d-ff": d_ff, "--heads": heads,
        "--kv-heads": kv_heads, "--head-dim": head_dim, "--vocab": vocab,
    }  # fmt: skip
    if bytes_each is not None and recipe != "mixed-adam":
        raise ValueError("give --recipe or --bytes, not both: each sets the bytes")
    if params is not None:
        _unused(
            "--params knows states only", "use --gpus for replicas, or leave it out",
            {
                "--arch": arch, **given_sizes, "--mlp": mlp != "gated",
                "--tied": tied.lower() != "false", "--tp": tp != 1, "--pp": pp != 1,
                "--dp": dp != 1, "--micro-batch": micro_batch != 1,
                "--seq": seq != 4096, "--recompute": recompute != "none",
                "--attention": attention != "fused",
                "--sequence-parallel": sequence_parallel,
            },
        )  # fmt: skip
        found = state_bytes(parse(params, "parameter"), used, zero, gpus)
        title = "states only: activations need a shape"
    else:
        _unused("a shape counts replicas by --dp", "use --dp", {"--gpus": gpus != 1})
        shape = words.shape(
            arch,
            sizes(layers, d_model, d_ff, heads, kv_heads, head_dim, vocab, mlp, tied),
        )
        layout = Layout(
            tp=tp, pp=pp, dp=dp, micro_batch=micro_batch, zero=zero,
            recompute=recompute,  # type: ignore[arg-type]
            sequence_parallel=sequence_parallel,
        )  # fmt: skip
        found = memory_of(
            shape, layout, seq, recipe=used,
            attention=attention,  # type: ignore[arg-type]
        )  # fmt: skip
        title = f"rule of Korthikanti et al., 16-bit, {attention} attention"
        note(f"not included: {NOT_INCLUDED}")
    if chip is not None:
        extra |= {"room_gib": chip.memory / GIB, "fits": found.fits(chip)}
    emit([_bytes(found, extra)], title, as_json, as_csv, tall=True)


COMMANDS = {"flops": flops, "params": params, "memory": memory}
