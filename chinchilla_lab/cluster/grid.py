"""Grid of a search: which values are tried, and which layouts can run at all."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from chinchilla_lab.checks import InfeasibleError, one_of, whole
from chinchilla_lab.cluster.hardware import Cluster
from chinchilla_lab.cluster.layout import RECOMPUTE, Degrees, Layout
from chinchilla_lab.cluster.stacks import UNCALIBRATED, Stack, find_stack
from chinchilla_lab.shape.transformer import TransformerShape

__all__ = ["AXES", "axes"]

AXES = (
    "zero", "recompute", "sequence_parallel", "n_chunks", "micro_batch",
    "tp", "cp", "ep", "pp",
)  # fmt: skip
"""Axes of the grid; dp follows from the number of accelerators."""
LONG = 8192  # tokens of a sequence that stay on an accelerator
MICRO_TOKENS = 32768  # of a micro-batch above eight sequences


def _divisors(n: int, most: int) -> tuple[int, ...]:
    return tuple(k for k in range(1, min(n, most) + 1) if n % k == 0)


def _doubled(most: float) -> tuple[int, ...]:
    return tuple(2**i for i in range(max(1, int(most)).bit_length()))


def axes(
    shape: TransformerShape,
    cluster: Cluster,
    stack: Stack | str = UNCALIBRATED,
    seq_len: int = LONG,
    even_stages: bool = True,
    **options: Sequence[Any],
) -> dict[str, tuple[Any, ...]]:
    """Values that a search tries on each axis.

    Parameters
    ----------
    shape : TransformerShape
        The model, [-]
    cluster : Cluster
        The machine, [-]
    stack : Stack or str, optional
        The stack: selective recomputation is tried where it saves something, [-]
    seq_len : int, optional
        Tokens of a sequence, [token]
    even_stages : bool, optional
        Only degrees of pp and n_chunks that divide the layers, [-]
    **options : sequence
        Values of your own for any of :data:`AXES`, [-]

    Returns
    -------
    dict
        Axis to values, [-]

    Raises
    ------
    ValueError
        If an option is no axis, or has no values.

    Notes
    -----
    tp: divisors of the heads inside a domain; pp, n_chunks: divisors of the layers, and
    powers of two where stages may be uneven; cp: powers of two that leave 8,192 tokens
    of a sequence or more; ep: divisors of the experts; micro_batch: powers of two up to
    8, or up to 32,768 tokens. Give an axis of your own for others. Values that make no
    difference appear once: selective recomputation beside none where attention is
    fused, sequence parallelism without tp, ZeRO without replicas.

    Examples
    --------
    >>> from chinchilla_lab.shape import SHAPES
    >>> loft = Cluster(accelerator="h100-sxm-80gb", n_accelerators=64)
    >>> axes(SHAPES["llama-3-8b"], loft)["tp"]
    (1, 2, 4, 8)
    """
    n, layers = cluster.n_accelerators, shape.n_layers
    pieces, chunks = set(_divisors(layers, n)), set(_divisors(layers, 16))
    if not even_stages:
        pieces |= {k for k in _doubled(min(layers, n)) if n % k == 0}
        chunks |= set(_doubled(min(layers, 8)))
    fused = find_stack(stack).fused
    grid: dict[str, tuple[Any, ...]] = {
        "zero": (0, 1, 2, 3),
        "recompute": ("none", "full") if fused else RECOMPUTE,
        "sequence_parallel": (True,),
        "n_chunks": tuple(sorted(chunks)),
        "micro_batch": _doubled(max(8, MICRO_TOKENS // seq_len)),
        "tp": _divisors(shape.n_heads, cluster.domain_size),
        "cp": tuple(k for k in _doubled(seq_len / LONG) if n % k == 0),
        "ep": _divisors(shape.n_experts, n),
        "pp": tuple(sorted(pieces)),
    }
    if unknown := sorted(set(options) - set(AXES)):
        raise ValueError(
            f"{', '.join(unknown)}: no axis of the search; choose from: "
            f"{', '.join(AXES)}"
        )
    for name, values in options.items():
        several = np.iterable(values) and not isinstance(values, str)
        kept = tuple(values) if several else (values,)
        if not kept:
            raise ValueError(
                f"{name} has no value to try; leave it out for the default"
            )
        if name == "recompute":
            for word in kept:
                one_of("recompute", word, RECOMPUTE)
            if fused and "none" in kept:
                kept = tuple(word for word in kept if word != "selective")
        elif name == "zero":
            for stage in kept:
                Layout(zero=stage)
        elif name == "sequence_parallel":
            kept = tuple(Layout(sequence_parallel=v).sequence_parallel for v in kept)
        else:
            kept = tuple(whole(name, v) for v in kept)
        grid[name] = kept
    return grid


def degrees_of(grid: Mapping[str, Sequence[Any]], n: int) -> Degrees:
    """Open arrays: each axis of the grid lies along its own dimension."""
    open_ = {
        name: np.asarray(
            [RECOMPUTE.index(v) for v in grid[name]]
            if name == "recompute"
            else [float(v) for v in grid[name]],
            dtype=np.float64,
        ).reshape([-1 if k == i else 1 for k in range(len(AXES))])
        for i, name in enumerate(AXES)
    }
    t, p, c = open_["tp"], open_["pp"], open_["cp"]
    again = open_["recompute"]
    return Degrees(
        t=t, p=p, d=n / (t * p * c), c=c, e=open_["ep"], b=open_["micro_batch"],
        v=open_["n_chunks"], zero=open_["zero"],
        full=(again == 2.0) * 1.0, selective=(again == 1.0) * 1.0,
        sp=open_["sequence_parallel"] * (t > 1),
    )  # fmt: skip


def _divides(a: Any, b: Any) -> Any:
    """Say where b is a whole multiple of a."""
    return b % a == 0


def conditions(
    shape: TransformerShape,
    g: Degrees,
    batch: Any,
    seq_len: int,
    even: bool,
    least: float = 0.0,
) -> dict[str, Any]:
    """Say where each condition of a layout holds, memory aside."""
    layers, heads = shape.n_layers, shape.n_heads
    kv = 1.0 * shape.kv_heads
    replicas = np.floor(g.d) == g.d
    cut = (
        _divides(g.t, 1.0 * heads)
        & (np.maximum(kv, g.t) % np.minimum(kv, g.t) == 0)
        & _divides(g.t, 1.0 * shape.d_ff)
        & _divides(g.t, 1.0 * shape.d_model)
    )
    sequence = _divides(g.c * np.where(g.sp > 0, g.t, 1.0), float(seq_len))
    pipe = (g.p * g.v <= layers) & ((g.v == 1) | (g.p > 1))
    if even:
        pipe = pipe & _divides(g.p * g.v, 1.0 * layers)
    micro = batch / (np.maximum(g.d, 1.0) * g.b)
    steps = (micro == np.floor(micro)) & (micro >= 1.0)
    interleaved = (g.v == 1) | _divides(g.p, micro)
    experts = _divides(g.e, float(shape.n_experts)) & (
        np.floor(g.t * g.c * g.d / g.e) * g.e == g.t * g.c * g.d
    )
    return {
        "accelerators": replicas, "tp": cut, "sequence": sequence, "experts": experts,
        "zero": sharded(g, least), "stages": pipe, "batch": steps,
        "interleaving": interleaved,
    }  # fmt: skip


def sharded(g: Degrees, least: float = 0.0) -> Any:
    """Where a ZeRO stage goes with the replicas and the stages of the pipeline."""
    # sharding over one replica is no sharding: the least stage of a grid stands for it;
    # stages 2 and 3 do not go with a pipeline
    alone = (g.zero == least) | (g.d * g.c > 1)
    return ((g.zero < 2) | (g.p == 1)) & alone


def listed_once(g: Degrees, grid: Mapping[str, Sequence[Any]]) -> Any:
    """Where no other point of the grid is the same layout."""
    flags = grid["sequence_parallel"]
    if len(set(flags)) < 2:
        return True
    at = [-1 if name == "sequence_parallel" else 1 for name in AXES]
    return named_once(g.t, np.array(flags, dtype=np.float64).reshape(at))


def named_once(t: Any, flag: Any) -> Any:
    """Where a sequence is cut over tensor parallel accelerators, or not said to be."""
    return (t > 1) | (flag == 0.0)


def divides(
    shape: TransformerShape,
    g: Degrees,
    batch: Any,
    seq_len: int,
    even: bool,
    least: float = 0.0,
) -> Any:
    """Where a layout can run at all, memory aside."""
    return _all(conditions(shape, g, batch, seq_len, even, least))


def _all(found: Mapping[str, Any]) -> Any:
    x = found
    small = (x["accelerators"] & x["tp"] & x["sequence"]) & x["experts"]
    return (small & x["zero"]) & (x["stages"] & (x["batch"] & x["interleaving"]))


def refuse_division(
    shape: TransformerShape,
    cluster: Cluster,
    batch: int,
    seq_len: int,
    even: bool,
    grid: Mapping[str, Sequence[Any]],
) -> None:
    """Name the conditions that no layout of the grid meets, or that all but meet."""
    n = cluster.n_accelerators
    stages = f"n_layers={shape.n_layers} do not divide into pp*n_chunks equal pieces"
    words = {
        "accelerators": f"tp*pp*cp divides {n} accelerators nowhere",
        "tp": f"tp does not divide n_heads={shape.n_heads}, n_kv_heads="
        f"{shape.kv_heads}, d_ff={shape.d_ff} and d_model={shape.d_model}",
        "sequence": f"seq_len={seq_len} is no multiple of cp*tp",
        "experts": f"ep does not divide n_experts={shape.n_experts} and tp*cp*dp",
        "zero": "zero 2 and 3 need pp=1, and sharding needs dp*cp above 1",
        "stages": f"{stages}; even_stages=False lets the longest set the pace"
        if even
        else f"pp*n_chunks exceeds n_layers={shape.n_layers}, or n_chunks need pp>1",
        "batch": f"batch={batch} is no multiple of dp*micro_batch on {n} accelerators; "
        "use another batch, or larger tp, pp or cp, which leave fewer replicas",
        "interleaving": "pp does not divide the micro-batches of n_chunks above 1; "
        "n_chunks=(1,) needs no division",
    }
    found = conditions(
        shape, degrees_of(grid, n), batch, seq_len, even, min(grid["zero"])
    )
    true = np.True_
    guilty = [name for name in found if not np.any(found[name])] or [
        name for name in found if np.any(_all({**found, name: true}))
    ]
    reasons = "; ".join(words[name] for name in guilty) or (
        f"batch={batch}, n_layers={shape.n_layers}, n_heads={shape.n_heads} and "
        f"seq_len={seq_len} leave no common cut of {n} accelerators"
    )
    raise InfeasibleError(f"no layout divides: {reasons}")
