"""Commands about a model alone: parameters, FLOP, bytes."""

from dataclasses import replace
from typing import Annotated, Any

import typer

from chinchilla_lab.cli import words
from chinchilla_lab.cli.options import (
    Active,
    Arch,
    AsCsv,
    AsJson,
    Experts,
    Gpu,
    HeadDim,
    Heads,
    KvHeads,
    Layers,
    Mlp,
    MlpKind,
    RecipeName,
    Recompute,
    Seq,
    SomeParams,
    SomeTokens,
    Tied,
    TopK,
    Vocab,
    Width,
    option,
    sizes,
)
from chinchilla_lab.cli.output import emit, note
from chinchilla_lab.cluster.accelerators import Accelerator
from chinchilla_lab.cluster.activations import zero_paper_activations
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
from chinchilla_lab.units import FLOP_PER_ND, GB, GIB, UnitError, parse

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
    experts: Experts = None,
    top_k: TopK = None,
    mlp: MlpKind = "gated",
    tied: Tied = None,
    seq: Seq = 4096,
    convention: Annotated[
        str,
        option(
            "--convention", help="all, or names parted by commas", metavar="NAME,..."
        ),
    ] = "all",
    recompute: Recompute = "none",
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Training FLOP of a size, or of a shape under each convention."""
    D = tokens
    if params is not None or active_params is not None:
        total, used = params, active_params
        if total and used and used > total:
            raise ValueError(
                f"--active-params {used:g} exceeds --params {total:g}: a token uses a "
                "part of all parameters; swap them"
            )
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
        arch,
        sizes(
            layers, d_model, d_ff, heads, kv_heads, head_dim, vocab, mlp, tied, experts,
            top_k,
        ),
    )  # fmt: skip
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
    experts: Experts = None,
    top_k: TopK = None,
    mlp: MlpKind = "gated",
    tied: Tied = None,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Parameters of a shape, item by item and under each name of N."""
    shape = words.shape(
        arch,
        sizes(
            layers, d_model, d_ff, heads, kv_heads, head_dim, vocab, mlp, tied, experts,
            top_k,
        ),
    )  # fmt: skip
    n = shape.params()
    record: Record = {
        "attention": n.attention, "mlp": n.mlp, "router": n.router, "norms": n.norms,
        "biases": n.biases, "input_embedding": n.input_embedding,
        "positions": n.positions, "head": n.head, "idle_experts": n.idle,
        "lookup": n.input_embedding, "matmul": n.matrices,
        **{f"N_{name}": count for name, count in n.meanings().items()},
    }  # fmt: skip
    emit([record], "parameters", as_json, as_csv, tall=True)


def _recipe(written: str) -> Recipe:
    if written in RECIPES:
        return RECIPES[written]
    parts = written.split(":")
    if len(parts) in (3, 4):
        try:
            weights, gradients, *rest = (parse(p, "count") for p in parts)
        except UnitError as fault:
            raise ValueError(f"--recipe {written!r}: {fault}") from None
        return Recipe(
            weights=weights, gradients=gradients, optimizer=sum(rest),
            label="own: no source but who typed it",
        )  # fmt: skip
    raise ValueError(
        f"--recipe {written!r} is not known{words.meant(written, RECIPES)}; choose "
        f"from: {', '.join(RECIPES)}; or "
        "bytes of weights, gradients, master copy and moments such as 2:2:4:8"
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


def memory(
    params: SomeParams = None,
    gpus: Annotated[
        int, option("--gpus", help="replicas, with --params", unit="whole")
    ] = 1,
    zero: Annotated[
        int, option("--zero", help="ZeRO stage", unit="whole", least=0)
    ] = 0,
    recipe: RecipeName = "mixed-adam",
    bytes_each: Annotated[
        float | None,
        option("--bytes", help="bytes of a parameter, nothing else", unit="count"),
    ] = None,
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
    tp: Annotated[int, option("--tp", help="tensor parallel", unit="whole")] = 1,
    pp: Annotated[int, option("--pp", help="pipeline stages", unit="whole")] = 1,
    dp: Annotated[int, option("--dp", help="replicas", unit="whole")] = 1,
    cp: Annotated[int, option("--cp", help="context parallel", unit="whole")] = 1,
    ep: Annotated[int, option("--ep", help="expert parallel", unit="whole")] = 1,
    micro_batch: Annotated[
        int, option("--micro-batch", help="sequences", unit="whole")
    ] = 1,
    seq: Seq = 4096,
    recompute: Recompute = "none",
    attention: Annotated[
        str, option("--attention", help="fused or unfused", metavar="KIND")
    ] = "fused",
    sequence_parallel: Annotated[
        bool,
        typer.Option("--sequence-parallel", help="norms cut along the sequence"),
    ] = False,
    dropout: Annotated[
        bool, typer.Option("--dropout", help="masks are kept, as in 34 s b h")
    ] = False,
    rule: Annotated[
        str,
        option(
            "--rule",
            metavar="RULE",
            help="of activations: korthikanti, itemised, or zero-paper, 12 h b s L",
        ),
    ] = "korthikanti",
    gpu: Gpu = None,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Bytes on the fullest accelerator: states of a size, or all of a shape."""
    used = _recipe(recipe)
    if bytes_each is not None:
        used = Recipe(
            weights=bytes_each, gradients=0.0, optimizer=0.0, label="as typed"
        )
    chip: Accelerator | None = None if gpu is None else words.chip(gpu)
    if params is not None:
        found = state_bytes(params, used, zero, gpus)
        cut = Layout(dp=gpus, zero=zero)
        title = "states only: activations need a shape"
    else:
        shape = words.shape(
            arch,
            sizes(
                layers, d_model, d_ff, heads, kv_heads, head_dim, vocab, mlp, tied,
                experts, top_k,
            ),
        )  # fmt: skip
        cut = Layout(
            tp=tp, pp=pp, dp=dp, cp=cp, ep=ep, micro_batch=micro_batch, zero=zero,
            recompute=recompute,  # type: ignore[arg-type]
            sequence_parallel=sequence_parallel,
        )  # fmt: skip
        found = memory_of(
            shape, cut, seq, recipe=used, dropout=dropout,
            attention=attention,  # type: ignore[arg-type]
        )  # fmt: skip
        title = f"rule of Korthikanti et al., 16-bit, {attention} attention"
        if rule == "zero-paper":
            kept = zero_paper_activations(shape, seq, micro_batch)
            found = replace(found, activations=kept)
            title = "12 h b s L values after the ZeRO paper, 16-bit"
        elif rule != "korthikanti":
            raise ValueError(f"--rule {rule!r}: choose korthikanti or zero-paper")
        if shape.n_experts > 1:
            title += (
                f"; {shape.n_active_experts} of {shape.n_experts} experts a token, "
                "evenly loaded"
            )
        note(f"not included: {NOT_INCLUDED}")
    extra: Record = {
        "recipe_weights": used.weights, "recipe_gradients": used.gradients,
        "recipe_optimizer": used.optimizer, "recipe_bytes": used.total,
        "recipe": used.label, "rule": title, "layout": cut.label(),
    }  # fmt: skip
    if chip is not None:
        extra |= {"room_gib": chip.memory / GIB, "room_gb": chip.memory / GB,
                  "fits": found.fits(chip)}  # fmt: skip
    emit([_bytes(found, extra)], title, as_json, as_csv, tall=True)


COMMANDS = {"flops": flops, "params": params, "memory": memory}
