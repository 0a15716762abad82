"""The step model as formulas on arrays that broadcast: no checks, no tables.

One code answers a single layout and a grid of a million: every term is computed on the
axes it depends on, and only sums reach the full grid.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from chinchilla_lab.cluster.collectives import two_level_gather
from chinchilla_lab.cluster.dispatch import remote_groups
from chinchilla_lab.cluster.hardware import Cluster
from chinchilla_lab.cluster.layout import Degrees
from chinchilla_lab.cluster.stacks import Stack
from chinchilla_lab.shape.transformer import TransformerShape

__all__ = ["ITEMS", "Machine"]

# output tiles that a library can choose from, rows by columns
TILES = ((256.0, 128.0), (128.0, 256.0))
STEP = 16.0
VALUE_BYTES = {"bf16": 2.0, "fp8": 1.0, "tf32": 4.0}
# products whose depth is no multiple of 8 values leave the matrix units: an A100 does
# 39 TFLOP/s in bf16 without them and 312 with them
ALIGN, MISALIGNED = 8, 8.0
OPTIMIZER_TRAFFIC = 26.0  # bytes that Adam moves for each parameter
WEIGHT_BYTES = 2.0
COMBINE_BYTES = 2.0  # outputs of experts stay in 16 bits
CAST_TRAFFIC = 4.0  # a value read in 16 bits, written in 8, plain and transposed
ITEMS = (
    "gemm",
    "attention",
    "memory_traffic",
    "tp_traffic",
    "cp_traffic",
    "ep_traffic",
    "recompute",
    "overhead",
    "pp_traffic",
    "head_and_uneven",
    "bubble",
    "dp_traffic",
    "optimizer",
    "stragglers",
)


@dataclass(frozen=True)
class Machine:
    """The rates of a cluster under a stack, ready for the formulas.

    Parameters
    ----------
    gemm : float
        Products that fill the cores, [FLOP/s]
    wide : float
        The same in bf16, for the head, [FLOP/s]
    attention : float
        Products of attention, [FLOP/s]
    value_bytes : float
        Width of what a product reads and writes, [byte]
    hbm : float
        Memory bandwidth, [byte/s]
    cores : float
        Cores among which tiles are dealt, [-]
    inside : float
        Ring bandwidth in a domain, [byte/s]
    outside : float
        Network of an accelerator, [byte/s]
    domain : float
        Accelerators of a domain, [-]
    latency : float
        Time of a step without bytes, [s]
    nodes : float
        Domains, [-]
    """

    gemm: float
    wide: float
    attention: float
    value_bytes: float
    hbm: float
    cores: float
    inside: float
    outside: float
    domain: float
    latency: float
    nodes: float


def machine(cluster: Cluster, stack: Stack, dtype: str) -> Machine:
    """Collect the rates; a figure that the chip lacks is an error here."""
    chip = cluster.chip
    wide = chip.ceiling("tf32" if dtype == "tf32" else "bf16")
    return Machine(
        gemm=stack.gemm * chip.ceiling(dtype),
        wide=stack.gemm * wide,
        attention=stack.attention * stack.gemm * wide,
        value_bytes=VALUE_BYTES[dtype],
        hbm=float(chip.need("hbm_bandwidth")),
        cores=float(chip.need("n_cores")),
        inside=chip.ring_bandwidth,
        outside=cluster.network * stack.network,
        domain=float(cluster.domain_size),
        latency=cluster.latency,
        nodes=float(cluster.n_domains),
    )


def wave_efficiency(m: Any, n: Any, cores: float) -> Any:
    """Return the share of tile slots that hold output, best of the tile shapes."""
    best: Any = 0.0
    # a product smaller than a tile takes a smaller tile, in steps of 16
    small_m, small_n = np.ceil(m / STEP) * STEP, np.ceil(n / STEP) * STEP
    for rows, columns in TILES:
        high, wide = np.minimum(rows, small_m), np.minimum(columns, small_n)
        tiles = np.ceil(m / high) * np.ceil(n / wide)
        slots = np.ceil(tiles / cores) * cores
        best = np.maximum(best, m * n / (slots * (high * wide)))
    return best


def product_time(m: Any, n: Any, k: Any, rate: Any, size: Any, w: Machine) -> Any:
    """Seconds of one matrix product of ``size`` bytes a value."""
    compute = 2.0 * m * n * k / (rate * wave_efficiency(m, n, w.cores))
    return np.maximum(compute, size * (m * k + k * n + m * n) / w.hbm)


def trained_products(
    products: Sequence[tuple[Any, Any, Any]], rate: Any, size: Any, w: Machine
) -> list[tuple[Any, Any]]:
    """Seconds forward, and of both products of the backward pass, of each product.

    All are timed in one stack: what a small grid costs are the calls, not the numbers.
    """
    common = np.broadcast(*chain.from_iterable(products)).shape
    sides = np.empty((3, len(products), *common))
    for i, each in enumerate(products):
        for side, x in zip(sides, each, strict=True):
            side[i] = x
    # rows, columns and depth: forward, by the input, by the weights
    forward, by_input, by_weight = product_time(
        sides[[0, 0, 2]], sides[[1, 2, 1]], sides[[2, 1, 0]], rate, size, w
    )
    return list(zip(forward, by_input + by_weight, strict=True))


def expert_traffic(
    shape: TransformerShape, g: Degrees, tokens: Any, w: Machine, stack: Stack
) -> Any:
    """Seconds in which tokens go to their experts and come back, forward.

    A token crosses the network once for each other node that holds one of its experts
    and is spread over the accelerators there; both levels are passed chunk by chunk, so
    that the slower one sets the pace. Outputs are added before they return.
    """
    experts, chosen = shape.n_experts, shape.n_active_experts
    near = np.minimum(g.e, w.domain)
    nodes = g.e / near
    ranks = remote_groups(g.e, experts, chosen)
    outside = remote_groups(nodes, experts, chosen) / w.outside
    # those accelerators of any node that do not receive from the network themselves
    spread = np.where(g.e > 1, g.e / np.maximum(g.e - 1.0, 1.0), 0.0) * ranks
    inside = spread * (near - 1.0) / near / w.inside
    eight = np.equal(w.value_bytes, 1.0)
    width = np.where(eight, stack.dispatch_bytes, COMBINE_BYTES)
    once = np.maximum(inside, outside) * (tokens * shape.d_model / g.t)
    return once * (width + COMBINE_BYTES) + 2.0 * w.latency * np.log2(g.e)


def layer_items(
    shape: TransformerShape, g: Degrees, s: Any, w: Machine, stack: Stack
) -> dict[str, Any]:
    """Seconds of one layer and micro-batch, forward and backward."""
    h, q = shape.d_model, shape.attention_width
    kv = shape.kv_heads * shape.head_size
    f, up = shape.d_ff, 2.0 if shape.gated else 1.0
    is_mixture = shape.n_experts > 1
    tokens = g.b * s / g.c
    rate, size = w.gemm, w.value_bytes
    forward: Any = 0.0
    backward: Any = 0.0
    products = [(tokens, (q + 2.0 * kv) / g.t, h), (tokens, h, q / g.t)]
    dense_f = f * (shape.n_shared_experts if is_mixture else 1)
    if not is_mixture or shape.n_shared_experts:
        products += [(tokens, up * dense_f / g.t, h), (tokens, h, dense_f / g.t)]
    for one, two in trained_products(products, rate, size, w):
        forward = forward + one
        backward = backward + two
    if is_mixture:
        # experts are dealt over ep ranks and not cut: whole matrices, and the fewer
        # tokens each the smaller ep. Every expert fills its own tiles and waves
        own = shape.n_experts / g.e
        each = tokens * shape.n_active_experts / (g.t * own)
        experts = [(each, up * f, h), (each, h, f)]
        for one, two in trained_products(experts, rate, size, w):
            forward = forward + own * one
            backward = backward + own * two
    # scores and weighted sums; a fused kernel skips the masked half and computes the
    # scores again in its backward pass
    align = np.where(shape.head_size % ALIGN == 0, 1.0, MISALIGNED)
    work = 4.0 * tokens * s * (q / g.t) * (0.5 if stack.fused else 1.0)
    scores = align * work / w.attention
    again = 2.5 if stack.fused else 2.0
    wide = np.where(g.sp > 0, g.t, 1.0)
    mlp = f * shape.experts_per_token * (1.3 if shape.gated else 1.0) / (4.0 * h)
    cut = 8.0 * q / h + 20.0 * mlp
    traffic = stack.traffic * tokens * h * (22.0 / wide + cut / g.t) / w.hbm
    cast: Any = 0.0
    cast_back: Any = 0.0
    if np.any(np.equal(size, 1.0)):
        # what enters the four products, and the gradients that come back
        active = f * shape.experts_per_token
        each_cast = np.where(np.equal(size, 1.0), CAST_TRAFFIC, 0.0) * tokens / w.hbm
        cast = each_cast * (2.0 * h + (q + active) / g.t)
        cast_back = each_cast * (2.0 * h + (q + 2.0 * kv + up * active) / g.t)
    softmax = (
        0.0
        if stack.fused
        else stack.traffic * 12.0 * shape.n_heads * tokens * s / g.t / w.hbm
    )
    # two all-reduces a pass; one where the MLP is dealt out to experts, or where it
    # stands beside attention and their outputs are added before
    alone = stack.parallel_block or (is_mixture and not shape.n_shared_experts)
    reduces = 1.0 if alone else 2.0
    gather = two_level_gather(2.0 * tokens * h, g.t, 1.0, w.domain, w.inside, w.outside)
    tp = reduces * (2.0 * gather + w.latency * np.log2(g.t)) * (1.0 - stack.tp_overlap)
    cp = two_level_gather(
        4.0 * g.b * s * kv / g.t, g.c, g.t, w.domain, w.inside, w.outside
    )
    ep: Any = 0.0
    ep_back: Any = 0.0
    if is_mixture:
        # at most the products of another micro-batch stand beside it
        ep = expert_traffic(shape, g, tokens, w, stack)
        shared = stack.ep_overlap * ep
        ep_back = ep - np.minimum(shared, backward + again * scores)
        ep = ep - np.minimum(shared, forward + scores)
    selective = 0.0 if stack.fused else scores + softmax
    once = forward + scores + traffic + softmax + cast + tp + cp + ep
    return {
        "gemm": forward + backward,
        "attention": (1.0 + again) * scores,
        "memory_traffic": 3.0 * (traffic + softmax) + (cast + cast_back),
        "tp_traffic": 2.0 * tp,
        "cp_traffic": 3.0 * cp,
        "ep_traffic": ep + ep_back,
        "recompute": g.full * once + g.selective * selective,
        "overhead": stack.layer_overhead * (1.0 + g.full / 3.0),
    }


def head_seconds(
    shape: TransformerShape, g: Degrees, s: Any, w: Machine, stack: Stack
) -> Any:
    """Seconds of the head and its loss, of one micro-batch, forward and backward."""
    tokens = g.b * s / g.c
    ((forward, backward),) = trained_products(
        [(tokens, shape.vocab_size / g.t, shape.d_model)], w.wide, 2.0, w
    )
    passes = stack.traffic * stack.logit_traffic
    traffic = passes * tokens * shape.vocab_size / g.t / w.hbm
    return forward + backward + traffic


def _pieces(
    shape: TransformerShape,
    g: Degrees,
    batch: Any,
    s: Any,
    w: Machine,
    stack: Stack,
    head: Any,
) -> dict[str, Any]:
    """Parts of a step beside its layers."""
    h, layers = shape.d_model, shape.n_layers
    n = shape.params()
    tokens = g.b * s / g.c
    micro = batch / (g.d * g.b)
    longest, fewest = stage_layers(shape, g.p, g.v, stack.head_counted)
    far = g.t * g.c * g.d >= w.domain
    p2p = 2.0 * g.v * 2.0 * tokens * h / g.t / np.where(far, w.outside, w.inside)
    p2p = np.where(g.p > 1, p2p, 0.0)
    shared = shape.n_shared_experts / (shape.n_experts + shape.n_shared_experts)
    experts = n.mlp * (1.0 - shared) if shape.n_experts > 1 else 0.0
    dense = (n.non_embedding - experts) / layers
    table = np.where(
        g.p > 1, 1.0 * n.input_embedding, 1.0 * (n.input_embedding + n.head)
    )
    local = (longest * dense + table) / g.t
    replicas = g.d * g.c
    gather = two_level_gather(
        WEIGHT_BYTES * local, replicas, g.t, w.domain, w.inside, w.outside
    )
    owned: Any = local
    waits = _latencies(stack, g, WEIGHT_BYTES * local, replicas, w)
    if shape.n_experts > 1:
        own = longest * experts / layers / g.e
        copies = np.maximum(g.t * replicas / g.e, 1.0)
        gather = gather + two_level_gather(
            WEIGHT_BYTES * own, copies, g.e, w.domain, w.inside, w.outside
        )
        shard = np.where(g.zero >= 1, local / replicas + own / copies, local + own)
    else:
        shard = np.where(g.zero >= 1, owned / replicas, owned)
    return {
        "micro": micro,
        "longest": longest,
        "fewest": fewest,
        "head": head,
        "p2p": p2p,
        "gather": gather,
        "waits": waits,
        "optimizer": OPTIMIZER_TRAFFIC * shard / w.hbm,
    }


def stage_layers(
    shape: TransformerShape, p: Any, v: Any, head_counted: bool
) -> tuple[Any, Any]:
    """Return the layers of the longest stage and of the last; arrays broadcast.

    Chunks are as even as can be: the longest stage sets the pace, the last one is among
    the shorter ones and holds the head. Where the head is counted as the layers that it
    costs, stages are filled from the first on and the last takes what is left.
    """
    layers = shape.n_layers
    if not head_counted:
        return np.ceil(layers / (p * v)) * v, np.floor(layers / p)
    n = shape.params()
    table = 1.0 * shape.vocab_size * shape.d_model
    total = layers + table * layers / n.non_embedding
    fill = np.ceil(total / (p * v) - 1e-9) * v
    rest = np.maximum(layers - np.ceil(total * (p - 1.0) / p - 1e-9), 0.0)
    return np.where(p > 1, fill, layers), np.where(p > 1, rest, layers)


def _latencies(stack: Stack, g: Degrees, size: Any, ranks: Any, w: Machine) -> Any:
    """Seconds without bytes of gradients that travel in many messages.

    An all-reduce climbs a tree; a reduce-scatter or an all-gather has only the ring.
    """
    if not stack.bucket:
        return 0.0
    steps = np.where(g.zero >= 1, 2.0 * (ranks - 1.0), 2.0 * np.log2(ranks))
    return size / stack.bucket * steps * w.latency


def _visible(g: Degrees, x: dict[str, Any], work: Any, one: Any, stack: Stack) -> Any:
    """Seconds of data-parallel traffic that nothing hides.

    Gradients are reduced once a step and at most one micro-batch of the backward pass
    stands beside them; ZeRO-2 reduces in every micro-batch and gathers once, ZeRO-3
    gathers twice and reduces once in every micro-batch. A sharded optimizer reduces
    gradients and gathers weights, each in its own width.
    """
    gather, overlap, micro = x["gather"], stack.dp_overlap, x["micro"]
    wide = stack.gradient_bytes / WEIGHT_BYTES
    passes = 2.0 if wide == 1.0 else np.where(g.zero >= 1, 1.0 + wide, 2.0 * wide)
    once = passes * gather + x["waits"]
    once = once - np.minimum(overlap * once, one)
    if np.any(g.zero == 2):  # of one micro-batch it is ZeRO-1
        often = (wide * micro + 1.0) * gather + x["waits"]
        often = often - overlap * np.minimum(often, work)
        once = np.where((g.zero == 2) & (micro > 1), often, once)
    each = (2.0 + wide) * micro * gather
    return np.where(g.zero >= 3, each - overlap * np.minimum(each, work), once)


def seconds(
    shape: TransformerShape,
    g: Degrees,
    batch: Any,
    s: Any,
    w: Machine,
    stack: Stack,
) -> Any:
    """Seconds of a step; the sum of :func:`items` in fewer operations."""
    layer = sum(layer_items(shape, g, s, w, stack).values())
    head = head_seconds(shape, g, s, w, stack)
    return step_seconds(shape, g, batch, s, w, stack, layer, head)


def step_seconds(
    shape: TransformerShape,
    g: Degrees,
    batch: Any,
    s: Any,
    w: Machine,
    stack: Stack,
    layer: Any,
    head: Any,
) -> Any:
    """Seconds of a step whose layer and head are timed already."""
    x = _pieces(shape, g, batch, s, w, stack, head)
    stage = x["longest"] * layer + x["p2p"]
    last = x["fewest"] * layer + x["head"] + x["p2p"]
    slow = np.maximum(stage, last)
    work = x["micro"] * slow + (g.p - 1.0) / g.v * stage
    hidden = _visible(g, x, work, slow, stack)
    factor, extra = _stragglers(stack, w)
    return (work + (hidden + x["optimizer"])) * factor + extra


def _stragglers(stack: Stack, w: Machine) -> tuple[Any, Any]:
    """Return the factor and the seconds by which a step grows with the cluster."""
    return (
        1.0 + stack.jitter * np.log2(w.nodes),
        stack.step_overhead * np.log2(1.0 + w.nodes),
    )


def items(
    shape: TransformerShape,
    g: Degrees,
    batch: Any,
    s: Any,
    w: Machine,
    stack: Stack,
) -> dict[str, Any]:
    """Seconds of a step by item, keys as in :data:`ITEMS`."""
    parts = layer_items(shape, g, s, w, stack)
    layer = sum(parts.values())
    x = _pieces(shape, g, batch, s, w, stack, head_seconds(shape, g, s, w, stack))
    micro = x["micro"]
    stage = x["longest"] * layer + x["p2p"]
    last = x["fewest"] * layer + x["head"] + x["p2p"]
    slow = np.maximum(stage, last)
    work = micro * slow + (g.p - 1.0) / g.v * stage
    found = {k: micro * x["longest"] * part for k, part in parts.items()}
    found["pp_traffic"] = micro * x["p2p"]
    found["head_and_uneven"] = micro * (slow - stage)
    found["bubble"] = (g.p - 1.0) / g.v * stage
    found["dp_traffic"] = _visible(g, x, work, slow, stack)
    found["optimizer"] = x["optimizer"] + 0.0 * work
    factor, extra = _stragglers(stack, w)
    found["stragglers"] = sum(found.values()) * (factor - 1.0) + extra
    return {name: found[name] for name in ITEMS}
