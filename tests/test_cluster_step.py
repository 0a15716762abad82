"""The step model against a plain loop, identities and published utilisations."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chinchilla_lab.checks import InfeasibleError
from chinchilla_lab.cluster import (
    STACKS,
    UNCALIBRATED,
    Cluster,
    Layout,
    Stack,
    bubble_fraction,
    gemm,
    hardware_flops,
    kernel,
    model_flops,
    ridge_point,
    ridge_tokens,
    roofline,
    step_time,
    tokens_per_second_to_mfu,
    wave_efficiency,
)
from chinchilla_lab.shape import SHAPES, TransformerShape, recompute_factor

GPT = TransformerShape(
    n_layers=24, d_model=2304, d_ff=9216, n_heads=24, vocab_size=51200, gated=False,
    tied=True, norm="layer", biases=True,
)  # fmt: skip
LLAMA = SHAPES["llama-3-8b"]
MOE = TransformerShape(
    n_layers=16, d_model=4096, d_ff=1536, n_heads=32, n_kv_heads=8, vocab_size=65536,
    n_experts=64, n_active_experts=6, n_shared_experts=2,
)  # fmt: skip
H64 = Cluster(accelerator="h100-sxm-80gb", n_accelerators=64)
A32 = Cluster(accelerator="a100-sxm-80gb", n_accelerators=32, scaleout_bandwidth=6e9)
OVERLAP = Stack(
    name="test", gemm=0.8, traffic=1.3, attention=0.6, layer_overhead=1e-3, network=0.7,
    jitter=0.01, step_overhead=5e-3, tp_overlap=0.5, dp_overlap=0.6, ep_overlap=0.8,
    dispatch_bytes=1.0,
)  # fmt: skip
UNFUSED = OVERLAP.with_(fused=False)
EAGER = OVERLAP.with_(
    head_counted=True, gradient_bytes=4.0, bucket=25 * 2**20, logit_traffic=52.0
)


def elsewhere(shape, groups):
    """Expected groups beside the own one that hold an expert of a token, counted out."""
    experts, k = shape.n_experts, shape.n_active_experts
    none = math.comb(experts - experts // groups, k) / math.comb(experts, k)
    return (groups - 1) * (1 - none)


def plain_step(shape, cluster, layout, batch, seq_len, stack, dtype="bf16"):
    """Time of a step written as a loop over products and micro-batches, no numpy."""
    chip = cluster.chip
    t, p, d, c, e = layout.tp, layout.pp, layout.dp, layout.cp, layout.ep
    b, v = layout.micro_batch, layout.n_chunks
    h, heads, size = shape.d_model, shape.n_heads, shape.head_size
    q, kv = heads * size, shape.kv_heads * size
    rate = stack.gemm * chip.ceiling(dtype)
    wide = stack.gemm * chip.ceiling("bf16")
    hbm, cores = chip.hbm_bandwidth, chip.n_cores
    inside, outside = chip.ring_bandwidth, cluster.network * stack.network
    domain = cluster.domain_size
    tokens = b * seq_len / c

    def product(m, n, k, speed, width):
        tried = []
        for rows, columns in ((256, 128), (128, 256)):
            rows = min(rows, math.ceil(m / 16) * 16)
            columns = min(columns, math.ceil(n / 16) * 16)
            tiles = math.ceil(m / rows) * math.ceil(n / columns)
            # every slot of every wave takes as long as a full tile
            slots = math.ceil(tiles / cores) * cores
            tried.append(slots * 2 * rows * columns * k / speed)
        compute = min(tried)
        return max(compute, width * (m * k + k * n + m * n) / hbm)

    def gather(bytes_, ranks, stride):
        near = min(max(domain / stride, 1), ranks)
        far = ranks / near
        return bytes_ * ((near - 1) / near / inside + (far - 1) / far / near / outside)

    width = 1 if dtype == "fp8" else 2
    products = [(tokens, (q + 2 * kv) / t, h, 1), (tokens, h, q / t, 1)]
    up = 2 if shape.gated else 1
    dense = shape.d_ff * (shape.n_shared_experts if shape.n_experts > 1 else 1)
    if dense:
        products += [(tokens, up * dense / t, h, 1), (tokens, h, dense / t, 1)]
    if shape.n_experts > 1:
        own = shape.n_experts / e
        each = tokens * shape.n_active_experts / t / own
        products += [(each, up * shape.d_ff, h, own), (each, h, shape.d_ff, own)]
    forward = sum(n_ * product(m, n, k, rate, width) for m, n, k, n_ in products)
    backward = sum(
        n_ * (product(m, k, n, rate, width) + product(k, n, m, rate, width))
        for m, n, k, n_ in products
    )
    masked = 0.5 if stack.fused else 1
    scores = 4 * tokens * seq_len * q / t * masked / (stack.attention * wide)
    scores *= 1 if size % 8 == 0 else 8
    f = shape.d_ff * shape.experts_per_token * (1.3 if shape.gated else 1)
    split = t if layout.sequence_parallel else 1
    traffic = tokens * (22 * h / split + (8 * q + 5 * f) / t) * stack.traffic / hbm
    softmax = 0
    if not stack.fused:
        softmax = 12 * heads * tokens * seq_len / t * stack.traffic / hbm
    cast = cast_back = 0
    if width == 1:
        active = shape.d_ff * shape.experts_per_token
        # 2 bytes in, two copies of 1 byte out
        cast = 4 * tokens * (2 * h + (q + active) / t) / hbm
        cast_back = 4 * tokens * (2 * h + (q + 2 * kv + up * active) / t) / hbm
    reduces = 1 if shape.n_experts > 1 and not shape.n_shared_experts else 2
    tp = reduces * (2 * gather(2 * tokens * h, t, 1) + cluster.latency * math.log2(t))
    tp *= 1 - stack.tp_overlap
    cp = gather(4 * b * seq_len * kv / t, c, t)
    ep = ep_back = 0
    if shape.n_experts > 1:
        near = min(e, domain)
        # one copy for every node beside the own one, one for every accelerator of a
        # node beside that which the token starts from or enters by
        across = shape.d_model * elsewhere(shape, e // near) / outside
        around = elsewhere(shape, e) * e / max(e - 1, 1)
        around *= shape.d_model * (near - 1) / near / inside
        there = stack.dispatch_bytes if dtype == "fp8" else 2
        ep = tokens / t * max(across, around) * (there + 2)
        ep += 2 * cluster.latency * math.log2(e)
        again = scores * (2.5 if stack.fused else 2)
        ep_back = ep - min(stack.ep_overlap * ep, backward + again)
        ep -= min(stack.ep_overlap * ep, forward + scores)
    once = forward + scores + traffic + softmax + cast + tp + cp + ep
    layer = once + cast_back + backward + scores * (2.5 if stack.fused else 2)
    layer += 2 * (traffic + softmax) + tp + 2 * cp + ep_back
    if layout.recompute == "full":
        layer += once + stack.layer_overhead / 3
    if layout.recompute == "selective" and not stack.fused:
        layer += scores + softmax
    layer += stack.layer_overhead
    n_layers = shape.n_layers
    longest, fewest = math.ceil(n_layers / (p * v)) * v, n_layers // p
    if stack.head_counted and p > 1:
        one = shape.params().non_embedding / n_layers
        costs = [one] * n_layers + [shape.vocab_size * h]
        # fill each stage until it holds its share of the cost
        held, stages, done = 0, [], 0.0
        for cost in costs:
            held, done = held + (cost == one), done + cost
            if done >= (len(stages) + 1) * sum(costs) / p - 1e-6 * one:
                stages.append(held)
                held = 0
        longest, fewest = max(stages), stages[-1]
    vocab = shape.vocab_size / t
    head = (
        product(tokens, vocab, h, wide, 2)
        + product(tokens, h, vocab, wide, 2)
        + product(h, vocab, tokens, wide, 2)
        + stack.traffic * stack.logit_traffic * tokens * vocab / hbm
    )
    message = 0
    if p > 1:
        link = outside if t * c * d >= domain else inside
        message = 2 * v * 2 * tokens * h / t / link
    stage = longest * layer + message
    last = fewest * layer + head + message
    micro = batch // (d * b)
    work = 0
    for _ in range(micro):
        work += max(stage, last)
    slow = max(stage, last)
    work += (p - 1) / v * stage
    n = shape.params()
    experts = 0
    if shape.n_experts > 1:
        experts = n.mlp * shape.n_experts / (shape.n_experts + shape.n_shared_experts)
    tables = n.input_embedding + (n.head if p == 1 else 0)
    body = (longest * (n.non_embedding - experts) / n_layers + tables) / t
    reduce = gather(2 * body, d * c, t)
    shard = body / (d * c if layout.zero else 1)
    if experts:
        own = longest * experts / n_layers / e
        copies = max(t * d * c / e, 1)
        reduce += gather(2 * own, copies, e)
        shard += own / (copies if layout.zero else 1)
    wide, messages, waits = stack.gradient_bytes / 2, 0, 0
    if stack.bucket:
        messages = 2 * body / stack.bucket
        waits = 2 * (d * c - 1) if layout.zero else 2 * math.log2(d * c)
    if layout.zero == 3:
        seen = (2 + wide) * micro * reduce
        seen -= stack.dp_overlap * min(seen, work)
    else:
        seen = (1 + wide if layout.zero else 2 * wide) * reduce
        seen += messages * waits * cluster.latency
        seen -= min(stack.dp_overlap * seen, slow)
    total = work + seen + 26 * shard / hbm
    nodes = cluster.n_domains
    total *= 1 + stack.jitter * math.log2(nodes)
    return total + stack.step_overhead * math.log2(1 + nodes)


CASES = [
    (GPT, A32, Layout(dp=32, micro_batch=16, recompute="full"), 512, 2048, "bf16"),
    (GPT, A32, Layout(tp=8, pp=2, dp=2, n_chunks=3, recompute="selective"), 32, 2048, "bf16"),
    (GPT, A32, Layout(tp=4, pp=5, dp=1, cp=1), 20, 1024, "bf16"),
    (LLAMA, H64, Layout(tp=8, dp=4, cp=2, sequence_parallel=True, zero=1), 64, 16384, "fp8"),
    (LLAMA, H64, Layout(dp=64, zero=3, micro_batch=2), 256, 8192, "bf16"),
    (LLAMA, H64, Layout(tp=2, dp=8, pp=4, zero=1, sequence_parallel=True), 64, 4096, "bf16"),
    (MOE, H64, Layout(tp=2, dp=32, ep=32, zero=1, sequence_parallel=True), 64, 4096, "bf16"),
    (MOE, H64, Layout(tp=1, pp=4, dp=16, ep=16, n_chunks=2), 64, 4096, "bf16"),
    (MOE, H64, Layout(dp=64, ep=8, zero=1, recompute="full"), 64, 4096, "fp8"),
    (MOE, H64, Layout(dp=64, ep=64, zero=1), 64, 4096, "fp8"),
]  # fmt: skip


@pytest.mark.parametrize(
    "stack", [OVERLAP, UNFUSED, EAGER], ids=["fused", "unfused", "eager"]
)
@pytest.mark.parametrize("case", CASES, ids=lambda c: c[2].label())
def test_plain_loop_gives_the_same_time(case, stack):
    shape, cluster, layout, batch, seq_len, dtype = case
    if stack is EAGER:  # the loop fills whole stages, not chunks
        layout = replace(layout, n_chunks=1)
    if layout.n_accelerators != cluster.n_accelerators:
        cluster = Cluster(
            accelerator=cluster.accelerator,
            n_accelerators=layout.n_accelerators,
            scaleout_bandwidth=cluster.scaleout_bandwidth,
        )
    step = step_time(
        shape, cluster, layout, batch, seq_len, stack, dtype, check_memory=False
    )
    plain = plain_step(shape, cluster, layout, batch, seq_len, stack, dtype)
    assert step.seconds == pytest.approx(plain, rel=1e-9)
    whole = kernel.seconds(
        shape, layout.degrees(), float(batch), float(seq_len),
        kernel.machine(cluster, stack, dtype), stack,
    )  # fmt: skip
    assert float(whole) == pytest.approx(step.seconds, rel=1e-12)


def test_items_are_named_and_sum():
    step = step_time(LLAMA, H64, Layout(tp=4, dp=16, zero=1), 64, 8192)
    assert tuple(step.items) == kernel.ITEMS
    assert all(value >= 0.0 for value in step.items.values())
    assert step.seconds == pytest.approx(sum(step.items.values()))
    html = step._repr_html_()
    assert "upper bound" in html
    assert "MFU" in html
    assert "HFU" in html


def test_C54_what_is_not_calibrated_is_an_upper_bound():
    """A simulator's 80 % were taken for a forecast."""
    plan = Layout(tp=4, dp=16, zero=1)
    assert step_time(LLAMA, H64, plan, 64, 8192).label == "upper bound"
    label = step_time(LLAMA, H64, plan, 64, 2048, "megatron-2021").label
    assert label == "calibrated to 7 rows of Megatron-LM 2021, Table 1"
    assert (
        step_time(LLAMA, H64, plan, 64, 8192).seconds
        < step_time(LLAMA, H64, plan, 64, 8192, "llama-3").seconds
    )


def test_what_does_not_fit_is_refused_with_the_way_out():
    """998 GB on a card of 80 were timed without a word."""
    eight = Cluster(accelerator="h100-sxm-80gb", n_accelerators=8)
    huge = (SHAPES["llama-3-405b"], eight, Layout(tp=8), 64, 8192)
    with pytest.raises(
        InfeasibleError, match=r"tp 8 needs 1000\.0 GB .* 85\.5 GB are there; use more"
    ):
        step_time(*huge)
    assert step_time(*huge, check_memory=False).seconds > 100
    assert step_time(*huge, memory_limit=1.1e12).seconds > 100
    wide = Layout(dp=64, zero=3, micro_batch=2)
    with pytest.raises(
        InfeasibleError, match=r"micro_batch=1 \([\d.]+ GB\) or recompute"
    ):
        step_time(LLAMA, H64, wide, 256, 8192)
    # two changes at once, where none alone suffices; taken at its word it fits
    both = (SHAPES["llama-3-70b"], H64, Layout(tp=8, dp=8, micro_batch=4), 64, 8192)
    with pytest.raises(InfeasibleError, match=r"micro_batch=1 with zero=3 \("):
        step_time(*both)
    step_time(*both[:2], Layout(tp=8, dp=8, zero=1, sequence_parallel=True), 64, 8192)


def test_jitter_and_step_overhead_are_an_item():
    """1 + j log2(nodes) times the step, and t0 log2(1 + nodes) seconds."""
    plan = Layout(tp=4, dp=16, zero=1)
    calm, shaken = (
        step_time(LLAMA, H64, plan, 64, 8192, UNCALIBRATED.with_(**given))
        for given in ({}, {"jitter": 0.02, "step_overhead": 0.01})
    )
    assert calm.items["stragglers"] == 0.0
    waits = 0.02 * 3 * calm.seconds + 0.01 * math.log2(9)
    assert shaken.items["stragglers"] == pytest.approx(waits, rel=1e-12)
    assert shaken.seconds == pytest.approx(calm.seconds + waits, rel=1e-12)
    assert "stragglers" in shaken._repr_html_()
    one = Cluster(accelerator="h100-sxm-80gb", n_accelerators=8)
    alone = step_time(LLAMA, one, Layout(tp=8), 8, 8192, OVERLAP.with_(step_overhead=0))
    assert alone.items["stragglers"] == 0.0  # nobody to wait for


def test_zero_2_reduces_in_every_micro_batch():
    plan = Layout(dp=64, zero=2, recompute="full")
    bare = UNCALIBRATED.with_(dp_overlap=0.0)

    def traffic(stage, batch):
        given = (LLAMA, H64, replace(plan, zero=stage), batch, 8192, bare)
        return step_time(*given, check_memory=False).items["dp_traffic"]

    assert traffic(2, 64) == pytest.approx(traffic(1, 64))
    assert traffic(2, 256) == pytest.approx(2.5 * traffic(1, 256))  # (4 + 1) for 2
    assert traffic(3, 256) == pytest.approx(6.0 * traffic(1, 256))


def test_bubble_is_that_of_the_formula():
    """One stage time, free network, no head: bubble over ideal is (p-1)/(v m)."""
    shape = TransformerShape(
        n_layers=64, d_model=8192, d_ff=32768, n_heads=64, vocab_size=128, gated=False
    )
    fast = Cluster(
        accelerator="h100-sxm-80gb", n_accelerators=64, scaleout_bandwidth=1e18
    )
    for v in (1, 2, 4):
        plan = Layout(tp=8, pp=8, n_chunks=v)
        items = step_time(shape, fast, plan, 16, 2048, UNCALIBRATED).items
        ideal = sum(items[k] for k in kernel.ITEMS[:9])
        found = items["bubble"] / ideal
        assert found == pytest.approx(bubble_fraction(8, 16, v), rel=1e-3)


def test_uneven_stages_pay_for_the_longest():
    """Blueprint: 105 layers over 16 stages cost p ceil(L/p) / L = +6.7 %."""
    assert 16 * math.ceil(105 / 16) / 105 == pytest.approx(1.067, abs=5e-4)
    shape = TransformerShape(
        n_layers=105,
        d_model=20480,
        d_ff=81920,
        n_heads=128,
        vocab_size=128,
        gated=False,
    )
    cluster = Cluster(accelerator="a100-sxm-80gb", n_accelerators=128)
    plan = Layout(tp=8, pp=16)
    with pytest.raises(ValueError, match=r"pp=15 .*even_stages=False"):
        step_time(shape, cluster, plan, 512, 2048, even_stages=True)
    free = {"check_memory": False}
    uneven = step_time(shape, cluster, plan, 512, 2048, **free).items["gemm"]
    whole = Cluster(accelerator="a100-sxm-80gb", n_accelerators=120)
    even = step_time(shape, whole, Layout(tp=8, pp=15), 512, 2048, **free).items["gemm"]
    assert uneven / even == pytest.approx(1.0, abs=1e-9)  # seven layers in both


def test_full_recomputation_does_one_more_forward():
    """8N for 6N: Megatron 2021, equation 3, against the share of a forward pass."""
    for shape, s in ((GPT, 2048), (SHAPES["gpt-3"], 2048)):
        formula = 96 * s * shape.n_layers * shape.d_model**2 * (
            1 + s / (6 * shape.d_model)
            + shape.vocab_size / (16 * shape.n_layers * shape.d_model)
        )  # fmt: skip
        assert hardware_flops(shape, s, "full") * s == pytest.approx(formula, rel=1e-3)
        layers = model_flops(shape, s) - 6 * shape.vocab_size * shape.d_model
        again = hardware_flops(shape, s, "full") - model_flops(shape, s)
        assert again == pytest.approx((recompute_factor() - 1) * layers, rel=1e-3)


def test_mfu_names_its_attention():
    step = step_time(LLAMA, H64, Layout(tp=4, dp=16, zero=1), 64, 8192, "llama-3")
    full, half = step.mfu("full"), step.mfu("causal")
    share = model_flops(LLAMA, 8192, "full") / model_flops(LLAMA, 8192, "causal")
    assert full / half == pytest.approx(share)
    assert step.hfu() == full
    measured = tokens_per_second_to_mfu(LLAMA, step.tokens_per_second, H64, 8192)
    assert measured == pytest.approx(full)
    with pytest.raises(ValueError, match="attention='half' is not known"):
        step.mfu("half")
    assert step.days(1e12) == pytest.approx(1e12 / step.tokens_per_second / 86400)


def test_waves():
    """Blueprint: FFN-up at 14,400/8 fills 83.3 % of 5 waves, at 13,824/8 all of 4."""
    assert wave_efficiency(2048, 7200, 108) == pytest.approx(0.833, abs=5e-4)
    assert wave_efficiency(2048, 6912, 108) == 1.0
    assert wave_efficiency(2048, 5400, 108) == pytest.approx(0.781, abs=5e-4)
    assert wave_efficiency(2048, 5184, 108) == pytest.approx(0.750, abs=5e-4)
    assert gemm(2048, 7200, 14400, "a100-sxm-80gb").waves == 5
    assert gemm(2048, 6912, 13824, "a100-sxm-80gb").waves == 4


@given(m=st.integers(1, 10**5), n=st.integers(1, 10**5), cores=st.integers(1, 200))
def test_wave_efficiency_is_a_share(m, n, cores):
    assert 0.0 < wave_efficiency(m, n, cores) <= 1.0 + 1e-12


def test_roofline():
    """Blueprint: 327 tokens lift a 6,144-wide product on H100, 165 on A100."""
    assert ridge_tokens(6144, "h100-sxm-80gb") == pytest.approx(327, abs=0.5)
    assert ridge_tokens(6144, "a100-sxm-80gb") == pytest.approx(164.5, abs=0.5)
    assert ridge_tokens(8192, "a100-sxm-80gb") == pytest.approx(162.2, abs=0.1)
    # half the bytes and twice the peak: the same tokens, and there the roofs meet
    eight = ridge_tokens(8192, "h100-sxm-80gb", "fp8")
    assert eight == pytest.approx(ridge_tokens(8192, "h100-sxm-80gb"), rel=2e-3)
    there = gemm(round(eight), 8192, 8192, "h100-sxm-80gb", "fp8").intensity
    assert there == pytest.approx(ridge_point("h100-sxm-80gb", "fp8"), rel=5e-3)
    with pytest.raises(ValueError, match="at most twice the ridge point"):
        ridge_tokens(512, "h100-sxm-80gb")
    assert roofline(1e4, "h100-sxm-80gb", ceiling="measured") == 794.5e12
    small, large = (gemm(m, 6144, 6144, "h100-sxm-80gb") for m in (16, 8192))
    assert (small.bound, large.bound) == ("memory", "compute")
    assert small.rate == pytest.approx(roofline(small.intensity, "h100-sxm-80gb"))
    assert "intensity" in large._repr_html_()


def test_optimizer_moves_26_bytes():
    """Blueprint: Adam takes 21.9 ms for 22.5B at TP 8 on H100."""
    assert pytest.approx(21.9e-3, rel=5e-3) == 26 * 22.5e9 / 8 / 3.35e12
    loft = TransformerShape(
        n_layers=48,
        d_model=6144,
        d_ff=24576,
        n_heads=48,
        vocab_size=131072,
        gated=False,
    )
    step = step_time(loft, H64, Layout(tp=8, dp=8), 64, 4096)
    n = loft.params()
    assert step.items["optimizer"] == pytest.approx(
        26 * n.total / 8 / 3.35e12, rel=1e-3
    )


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        (
            Layout(tp=8, pp=4, dp=16),
            r"8\*4\*16\*1 = 512, but the cluster has 64; .* dp is 2",
        ),
        (Layout(tp=3, dp=21), "but the cluster has 64"),
        (Layout(tp=64), "tp=64 does not divide n_heads=32; tp=32 does"),
        (Layout(pp=64), r"pp\*n_chunks = 64 exceeds n_layers=32"),
        (Layout(dp=64, micro_batch=3), r"batch=64 is no multiple of dp\*micro_batch"),
        (Layout(dp=4, pp=16, n_chunks=2, micro_batch=2), "needs pp=16 to divide the 8"),
        (Layout(dp=64, ep=2), "ep=2 does not divide n_experts=1; ep=1 does"),
        (Layout(dp=16, pp=4, zero=3), "zero=3 with pp=4 would gather"),
    ],
)
def test_layouts_that_cannot_run_say_what_to_change(layout, message):
    with pytest.raises(ValueError, match=message):
        step_time(LLAMA, H64, layout, 64, 8192)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Layout(tp=0), "tp=0 must be at least 1"),
        (lambda: Layout(dp=1.5), "dp=1.5 must be a whole number"),
        (lambda: Layout(zero=4), "zero=4 is no stage"),
        (lambda: Layout(recompute="some"), "recompute='some' is not known"),
        (lambda: Layout(n_chunks=2), "but pp=1 has none"),
        (lambda: Stack(name="x", gemm=1.2), "gemm=1.2 must lie above 0 and at most 1"),
        (lambda: Stack(name="x", fitted=tuple("abcde")), "more than four constants"),
        (lambda: STACKS["mosaic"], "no stack 'mosaic'; known: uncalibrated, megatron-2021"),
        (lambda: bubble_fraction(8, 32, 2, "zb-1p"), "n_chunks=2 interleaves 1F1B"),
        (lambda: bubble_fraction(8, 0), "n_micro_batches=0 must be at least 1"),
        (lambda: bubble_fraction(8, 12, 4), "n_micro_batches=12; use n_micro_batches=8"),
        (lambda: bubble_fraction(1, 32, 4), "interleaves pp=1 stages .* or n_chunks=1"),
        (lambda: Layout(sequence_parallel="no"), "sequence_parallel='no' is no switch"),
        (lambda: Layout(sequence_parallel=1), "sequence_parallel=1 is no switch; use True"),
        (
            lambda: step_time(LLAMA, H64, Layout(dp=64), 64, 8192, dtype="fp4"),
            "dtype='fp4' is not known",
        ),
        (
            lambda: step_time(
                LLAMA,
                Cluster(accelerator="a100-sxm-80gb", n_accelerators=64),
                Layout(dp=64), 64, 8192, dtype="fp8",
            ),
            "no measured product of A100 SXM 80GB",
        ),
        (
            lambda: step_time(
                LLAMA, Cluster(accelerator="tpu-v5p", n_accelerators=64),
                Layout(dp=64), 64, 8192,
            ),
            "no measured product of TPU v5p",
        ),
    ],
)  # fmt: skip
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_every_stack_has_at_most_four_constants_and_a_source():
    for name, stack in STACKS.items():
        assert len(stack.fitted) <= 4
        if name != "uncalibrated":
            assert stack.fitted
            assert stack.rows
            assert stack.source
            assert np.isfinite(stack.error)
        assert stack.label in stack._repr_html_()
