"""Values to meet, each with its source, one test a row of ``golden_cluster.csv``.

``COMPUTED`` holds how the library answers a row; ``MISSED`` the rows that the model does
not reach, or must not claim to reach, with the reason and what it gives.
"""

import re

import numpy as np
import pytest
from conftest import golden_rows

from chinchilla_lab.allocation import FLOP_PER_ND
from chinchilla_lab.cluster import (
    ACCELERATORS,
    BATCH_LAWS,
    STACKS,
    Cluster,
    Layout,
    accelerator_hours,
    activation_bytes,
    bandwidth_saving,
    bubble_fraction,
    collective_time,
    compute_bound_tokens,
    failure_rate,
    failure_records,
    interleaving_factor,
    least_overhead,
    loss_ratio,
    memory,
    mfu,
    model_flops,
    mttf,
    point_to_point_time,
    rental_cost,
    ridge_point,
    state_bytes,
    step_time,
    steps_and_examples,
    whole_run_mfu,
)
from chinchilla_lab.cluster.step import hardware_flops
from chinchilla_lab.shape import (
    SHAPES,
    TransformerShape,
    recompute_factor,
    training_time,
)
from chinchilla_lab.units import DAY, GB, GIB, HOUR
from chinchilla_lab.validation import measured, ranking

ROWS = golden_rows("golden_cluster.csv")


def gpt(layers, width, heads, vocab=51200):
    return TransformerShape(
        n_layers=layers, d_model=width, d_ff=4 * width, n_heads=heads, vocab_size=vocab,
        gated=False, tied=True,
    )  # fmt: skip


KORTHIKANTI = {
    "22B": (gpt(48, 6144, 64), 4, 1, 1),
    "175B": (gpt(96, 12288, 96), 1, 8, 3),
    "530B": (gpt(105, 20480, 128), 1, 35, 3),
    "1T": (gpt(128, 25600, 160), 1, 64, 1),
}


def published(table, name, stack):
    """Measured step and what the stack says of it."""
    (row,) = [r for r in measured(table) if r.name == name]
    step = step_time(
        row.shape, row.cluster, row.layout, row.batch, row.seq_len, stack, row.dtype,
        check_memory=False,  # it ran; see the one false alarm of the model in memory
    )  # fmt: skip
    return row, step


def megatron(key):
    size = key.removeprefix("mlm21-").removesuffix("B")
    index = {
        "1.7": 0,
        "3.6": 1,
        "18.4": 3,
        "39.1": 4,
        "76.1": 5,
        "310.1": 7,
        "529.6": 8,
    }
    row, step = published("megatron-2021", f"mlm21-{index[size]:02}", "megatron-2021")
    flop = hardware_flops(row.shape, row.seq_len, "full")
    return flop * step.tokens_per_second / row.cluster.n_accelerators / 1e12


def korthikanti(key):
    _, mode, size = key.split("-")
    index = {"22B": "00", "175B": "01", "1T": "03"}[size]
    again = {"full": "full", "sel": "selective"}[mode]
    name = f"kor22-{index}-{again}"
    return published("korthikanti-2022", name, "megatron-2021")[1].seconds


def measured_share(recompute):
    """MFU or HFU that 71.49 s a step stand for."""
    shape, flop = KORTHIKANTI["1T"][0], hardware_flops
    rate = flop(shape, 2048, recompute) * 512 * 2048 / 71.49 / 512
    return 100 * mfu(rate, "a100-sxm-80gb")


def activations(key):
    _, mode, size = key.split("-")
    shape, b, p, v = KORTHIKANTI[size]
    lean = mode == "selsp"
    layer = activation_bytes(
        shape, 2048, b, tp=8, sequence_parallel=lean,
        recompute="selective" if lean else "none",
    )  # fmt: skip
    return layer * shape.n_layers * interleaving_factor(p, v) / GIB


def activation_share(size, **mode):
    shape, b, _, _ = KORTHIKANTI[size]
    plain = activation_bytes(shape, 2048, b, tp=8)
    return 100 * activation_bytes(shape, 2048, b, tp=8, **mode) / plain


def states(size, stages):
    shape = KORTHIKANTI[size][0]
    n = 12 * shape.n_layers * shape.d_model**2 / (8 * stages)
    return state_bytes(n, "mixed-adam-fp32grad").total / GIB


def megascale(gpus, batch):
    name = {256: "ms24-04", 1024: "ms24-07", 3072: "ms24-12"}[gpus]
    row, step = published("megascale-2024", name, "megascale")
    assert row.batch == batch
    return step.seconds


def model_tflops(table, name, stack, attention):
    row, step = published(table, name, stack)
    flop = model_flops(row.shape, row.seq_len, attention)
    return flop * step.tokens_per_second / row.cluster.n_accelerators / 1e12


def step_mfu(table, name):
    return 100 * published(table, name, table)[1].mfu("full")


def busbw(system, n, size, in_network=False):
    cluster = Cluster(accelerator=system, n_accelerators=n)
    return collective_time("all-reduce", size, cluster, in_network).busbw / GB


def bloom_oom():
    plan = Layout(tp=8, dp=48, zero=1, recompute="full")
    need = memory(
        gpt(72, 14336, 64, 50304), plan, 2048, attention="unfused", dropout=True,
        offset=STACKS["bloom"].memory_offset,
    )  # fmt: skip
    return "fits" if need.fits("a100-sxm-80gb") else "OOM"


def palm(attention):
    flop = 6 * 540.35e9 + attention * 12 * 118 * 48 * 256 * 2048
    return 100 * mfu(238.3e3 * flop / 6144, 275e12)


def megatron_turing():
    """530B layers, width 20480; the source counts 6N and attention in full."""
    flop = 6 * 530e9 + 12 * 105 * 20480 * 2048
    return 100 * mfu(flop * 1920 * 2048 / 60.1 / 2240, "a100-sxm-80gb")


def recomputed_days(N, D, n, rate):
    work = FLOP_PER_ND * recompute_factor() * N * D
    return training_time(work, n, rate, 1.0).days


def simumax():
    """12 layers of Llama 3 70B over 8 accelerators, 4096 tokens a micro-batch."""
    full = SHAPES["llama-3-70b"]
    shape = TransformerShape(
        n_layers=12, d_model=full.d_model, d_ff=full.d_ff, n_heads=full.n_heads,
        n_kv_heads=full.n_kv_heads, vocab_size=full.vocab_size,
    )  # fmt: skip
    plan = Layout(tp=8, sequence_parallel=True)
    return memory(shape, plan, 4096, recipe="mixed-adam-fp32grad").total / GIB


def tile():
    """Speed of the 13,824-wide model over that of the 14,400-wide one, as modelled."""
    speed = []
    for name in ("bloom-020", "bloom-043"):
        row, step = published("bloom-plans", name, "bloom")
        speed.append(hardware_flops(row.shape, 2048, "full") * step.tokens_per_second)
    return speed[1] / speed[0]


COMPUTED = {
    **{k: lambda k=k: megatron(k) for k in ROWS if k.startswith("mlm21-")},
    **{
        k: lambda k=k: korthikanti(k)
        for k in ("kor-full-22B", "kor-sel-22B", "kor-full-175B", "kor-sel-175B")
    },
    "kor-mfu-1T": lambda: measured_share("none"),
    "kor-hfu-1T": lambda: measured_share("selective"),
    **{
        k: lambda k=k: activations(k)
        for k in ROWS
        if k.startswith(("act-tp-", "act-selsp-"))
    },
    "state-22B": lambda: states("22B", 1),
    "state-530B": lambda: states("530B", 35),
    "act-pct-175B-sel": lambda: activation_share("175B", recompute="selective"),
    "act-pct-22B-seqsel": lambda: activation_share(
        "22B", recompute="selective", sequence_parallel=True
    ),
    "ms-1024": lambda: megascale(1024, 768),
    "ms-3072": lambda: megascale(3072, 6144),
    "ms-days": lambda: 300e9 / 1984e3 / DAY,
    "h100-16B": lambda: model_tflops("megatron-h100", "mlmh100-02", "megatron-bridge", "full"),
    "h100-119B": lambda: model_tflops("megatron-h100", "mlmh100-05", "megatron-bridge", "full"),
    "h100-177B": lambda: model_tflops("megatron-h100", "mlmh100-06", "megatron-bridge", "full"),
    "l3-8k": lambda: model_tflops("llama3-405b", "llama3-8192", "llama-3", "causal"),
    "mbr-70b": lambda: model_tflops(
        "megatron-bridge-h100", "mbr-126", "megatron-bridge", "causal"
    ),
    "lf-70b-512": lambda: step_mfu("llm-foundry-h100", "llmf-000"),
    "lf-7b-128": lambda: step_mfu("llm-foundry-h100", "llmf-011"),
    "nano-886-8": lambda: step_mfu("nanotron", "nano-25"),
    "nano-134-8": lambda: step_mfu("nanotron", "nano-23"),
    "bloom-final": lambda: published("bloom-plans", "bloom-154", "bloom")[1].seconds,
    "bloom-rank": lambda: ranking()[0].spearman,
    "bloom-oom": bloom_oom,
    "palm-mfu": lambda: palm(1),
    "palm-mfu-noattn": lambda: palm(0),
    "palm-hfu": lambda: palm(1) * 4.10 / 3.28,
    "mtnlg": megatron_turing,
    "l2-70b-mfu": lambda: 100 * whole_run_mfu(69e9, 2e12, 1720320, "a100-sxm-80gb"),
    "l31-405b-mfu": lambda: 100 * whole_run_mfu(405e9, 15.6e12, 30.84e6, "h100-sxm-80gb"),
    "l3-8b-mfu": lambda: 100 * whole_run_mfu(8.03e9, 15e12, 1.3e6, "h100-sxm-80gb"),
    "dsv3-util": lambda: 100 * whole_run_mfu(37e9, 14.8e12, 2.79e6, 1513e12),
    "t8tp-175b": lambda: recomputed_days(175e9, 300e9, 1024, 140e12),
    "t8tp-1t": lambda: recomputed_days(1008e9, 450e9, 3072, 163e12),
    "bub-1t": lambda: bubble_fraction(64, 512),
    "bub-530": lambda: bubble_fraction(35, 280, 3),
    "zb1p": lambda: bubble_fraction(8, 32, schedule="zb-1p") / bubble_fraction(8, 32),
    "ar-h200-16g": lambda: busbw("h200-sxm", 8, 2**34, in_network=True),
    "ar-h200-ring": lambda: busbw("h200-sxm", 8, 2**34),
    "ar-h200-1m": lambda: busbw("h200-sxm", 8, 2**20, in_network=True),
    "ar-a100": lambda: busbw("a100-sxm-80gb", 8, 2**34),
    "sb-fsdp": lambda: compute_bound_tokens(4.59e14, 1.8e11),
    "sb-mixed": lambda: compute_bound_tokens(2550.0, 1.0, d_ff=28672),
    "sb-70b-days": lambda: training_time(6.3e24, 8960, 4.59e14, 0.4).days,
    "sb-ag": lambda: point_to_point_time(2 * 1024 * 4096 / 4, 9e10) * 1e6,
    "roof-h100": lambda: ridge_point("h100-sxm-80gb"),
    "mamf-a100": lambda: ACCELERATORS["a100-sxm-80gb"].ceiling() / 1e12,
    "mamf-h100": lambda: ACCELERATORS["h100-sxm-80gb"].ceiling() / 1e12,
    "mamf-b200": lambda: ACCELERATORS["b200-sxm"].ceiling() / 1e12,
    "simumax-mem": simumax,
    "dsv3-cost": lambda: rental_cost(2.788e6, "2@2024-12").low,
    "l3-mttf": lambda: failure_records()[0].mean_time / HOUR,
    "l3-rate": lambda: 1000 * failure_rate(419, 54, 2048),
    "kok-16k": lambda: mttf(2048, 6.5e-3) / HOUR,
    "kok-131k": lambda: mttf(16384, 6.5e-3) / HOUR,
    "young": lambda: least_overhead(60, 2.3 * HOUR),
    "ds-batch": lambda: BATCH_LAWS["deepseek-2024"].batch(8.4e22).value,
    "ds-batch2": lambda: BATCH_LAWS["deepseek-2024"].batch(3.8e25).value,
    "mcc": lambda: steps_and_examples(4e6, 4e6).steps,
    "diloco-l": lambda: loss_ratio(1e10)[0],
    "diloco-bw": lambda: "{:.1f} -> {:.1f}".format(*(8e-9 * w for w in bandwidth_saving())),
}  # fmt: skip

# row: how the model answers, the largest error that it may show, and why
MISSED = {
    "ms-256": (
        lambda: megascale(256, 768), 0.14,
        "operators of its own and sliding-window attention, Table 3, are not modelled",
    ),
    "kor-full-1T": (
        lambda: korthikanti("kor-full-1T"), 0.13,
        "8.6 % faster than the same plan in Table 1 of 2021: the software had changed",
    ),
    "kok-1k-gap": (
        lambda: mttf(128, 6.5e-3) / HOUR, 2.66,
        "hardware of the nodes does not explain jobs of middling size: 28.8 h",
    ),
    "kor-sel-1T": (lambda: korthikanti("kor-sel-1T"), 0.13, "as the row before"),
    "bloom-tile": (
        tile, 0.15,
        "waves and heads of 150 values explain a third; the rest no rule of ours does",
    ),
}  # fmt: skip


def test_every_row_is_answered_or_accounted_for():
    answered = [*COMPUTED, *MISSED]
    assert sorted(answered) == sorted(ROWS)


def expected(row):
    text = row["expected"]
    return {"B/3": 1 / 3}.get(text) or float(re.sub(r"[^\d.e+-]", "", text))


@pytest.mark.parametrize(
    "key", COMPUTED, ids=lambda k: f"{k}: {ROWS[k]['source'][:60]}"
)
def test_golden(key):
    row, value = ROWS[key], COMPUTED[key]()
    if isinstance(value, str):
        assert value == row["expected"]
    elif "at least" in row["quantity"]:
        assert value >= expected(row)
    else:
        # rows that print no tolerance are printed to the digit
        rel = float(row["rel_tol"]) or 1e-9
        assert value == pytest.approx(expected(row), rel=rel)


@pytest.mark.parametrize("key", MISSED)
def test_missed_by_no_more_than_is_said(key):
    row = ROWS[key]
    value, bound, why = MISSED[key]
    error = abs(value() / expected(row) - 1)
    assert float(row["rel_tol"]) < error <= bound, why


def test_single_step_is_in_its_own_hours():
    """Hours at the utilisation of a run are the hours of that run."""
    share = whole_run_mfu(8.03e9, 15e12, 1.3e6, "h100-sxm-80gb")
    hours = accelerator_hours(8.03e9, 15e12, share, "h100-sxm-80gb")
    assert hours == pytest.approx(1.3e6, rel=1e-12)
    assert np.isfinite(hours)
