"""Bytes on an accelerator against published figures and hand sums."""

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chinchilla_lab.cluster import (
    RECIPES,
    Layout,
    Recipe,
    activation_bytes,
    interleaving_factor,
    kernel,
    largest_micro_batch,
    memory,
    state_bytes,
)
from chinchilla_lab.shape import SHAPES, TransformerShape
from chinchilla_lab.units import GIB
from chinchilla_lab.validation import memory_score


def gpt(layers, width, heads):
    return TransformerShape(
        n_layers=layers, d_model=width, d_ff=4 * width, n_heads=heads, vocab_size=51200,
        gated=False, tied=True,
    )  # fmt: skip


SIZES = {
    "22B": (gpt(48, 6144, 64), 4),
    "175B": (gpt(96, 12288, 96), 1),
    "530B": (gpt(105, 20480, 128), 1),
    "1T": (gpt(128, 25600, 160), 1),
}
MODES = {
    "none": {},
    "seq": {"sequence_parallel": True},
    "sel": {"recompute": "selective"},
    "seqsel": {"sequence_parallel": True, "recompute": "selective"},
    "full": {"recompute": "full"},
}
# Korthikanti et al., Figure 7, as transcribed by calculon caa4b11f
FIGURE_7 = [
    ("22B", "seqsel", 16.18), ("22B", "full", 7.64), ("175B", "seq", 62.04),
    ("175B", "sel", 56.53), ("175B", "full", 8.71), ("530B", "seq", 58.31),
    ("530B", "sel", 62.04), ("530B", "seqsel", 20.27), ("530B", "full", 9.42),
    ("1T", "seq", 58.31), ("1T", "sel", 62.04),
]  # fmt: skip
EXPERTS = TransformerShape(
    n_layers=32, d_model=4096, d_ff=14336, n_heads=32, n_kv_heads=8, vocab_size=32000,
    n_experts=8, n_active_experts=2,
)  # fmt: skip


@pytest.mark.parametrize(("size", "mode", "share"), FIGURE_7)
def test_figure_7(size, mode, share):
    """Within 1.11 %, as the notes say 1.1: the worst, 530B full, is off by 1.102 %."""
    shape, b = SIZES[size]
    plain = activation_bytes(shape, 2048, b, tp=8)
    found = 100 * activation_bytes(shape, 2048, b, tp=8, **MODES[mode]) / plain
    assert found == pytest.approx(share, rel=0.0111)


def test_published_formulas_term_by_term():
    """Korthikanti et al., equations 1 to 6."""
    shape, b = SIZES["175B"]
    s, h, a, t = 2048, 12288, 96, 8
    sbh = s * b * h
    cases = [
        ({}, sbh * (34 + 5 * a * s / h)),
        ({"tp": t}, sbh * (10 + 24 / t + 5 * a * s / (h * t))),
        ({"tp": t, "sequence_parallel": True}, sbh / t * (34 + 5 * a * s / h)),
        ({"tp": t, "sequence_parallel": True, "recompute": "selective"}, sbh * 34 / t),
        ({"tp": t, "recompute": "full"}, 2 * sbh),
        ({"tp": t, "attention": "fused"}, sbh * (10 + 24 / t)),
    ]
    for how, published in cases:
        assert activation_bytes(shape, s, b, **how) == pytest.approx(
            published, rel=1e-12
        )


@pytest.mark.parametrize(
    ("zero", "gib"), [(0, 31.64), (1, 12.89), (2, 6.64), (3, 3.52)]
)
def test_stages_of_zero(zero, gib):
    """Blueprint of part III, memory, exercise 1: 530B at t 8, p 35, d 9."""
    n = 12 * 105 * 20480**2 / (8 * 35)
    total = state_bytes(n, "mixed-adam-fp32grad", zero=zero, dp=9).total
    assert total / GIB == pytest.approx(gib, abs=0.005)


def test_experts_divide_by_ep_and_not_by_tp():
    """Dividing the experts by tp under-reports (Megatron-Bridge, pull request 3744)."""
    n = EXPERTS.params()
    whole = memory(EXPERTS, Layout(dp=8), 4096)
    dealt = memory(EXPERTS, Layout(dp=8, ep=8), 4096)
    assert whole.weights - dealt.weights == pytest.approx(2 * n.mlp * 7 / 8)
    cut = memory(EXPERTS, Layout(tp=8, ep=1), 4096)
    assert cut.weights == pytest.approx(2 * ((n.total - n.mlp) / 8 + n.mlp))


def test_C42_a_mixture_is_not_priced_as_dense():
    """A public estimator priced every layer as dense; dense results must not change."""
    dense = TransformerShape(
        n_layers=32,
        d_model=4096,
        d_ff=14336,
        n_heads=32,
        n_kv_heads=8,
        vocab_size=32000,
    )
    one = activation_bytes(dense, 4096, attention="fused", dropout=False)
    two = activation_bytes(EXPERTS, 4096, attention="fused", dropout=False)
    # two experts of the same width, and the copies of the tokens they receive
    assert two - one == pytest.approx(4096 * (6 * 14336 + 2 * 2 * 4096))


@given(
    b=st.integers(1, 64),
    tp=st.sampled_from([1, 2, 4, 8]),
    again=st.sampled_from(["none", "selective", "full"]),
    zero=st.sampled_from([0, 1, 3]),
)
def test_C44_total_is_affine_in_the_micro_batch(b, tp, again, zero):
    """A user asks whether memory doubles with the batch: states stay."""
    shape = SHAPES["llama-3-8b"]

    def at(k):
        plan = Layout(tp=tp, dp=8, micro_batch=k, recompute=again, zero=zero)
        return memory(shape, plan, 2048)

    assert at(b).states == at(2 * b).states
    growth = at(2).total - at(1).total
    assert at(b).total == pytest.approx(at(1).total + (b - 1) * growth, rel=1e-9)
    assert at(2 * b).total < 2 * at(b).total


def test_largest_micro_batch_is_the_largest():
    shape, plan = SHAPES["llama-3-8b"], Layout(tp=4, dp=2, zero=1)
    most = largest_micro_batch(shape, plan, 8192, "h100-sxm-80gb")

    def fits(b):
        layout = Layout(tp=4, dp=2, zero=1, micro_batch=b)
        return memory(shape, layout, 8192).fits("h100-sxm-80gb")

    assert fits(most)
    assert not fits(most + 1)
    assert largest_micro_batch(SHAPES["gpt-3"], Layout(), 2048, "h100-sxm-80gb") == 0


@pytest.mark.parametrize(
    ("settings", "largest"),
    [({}, 2), ({"sequence_parallel": True, "recompute": "selective"}, 14)],
)
def test_largest_micro_batch_of_22B(settings, largest):
    """Blueprint of part III, memory, exercise 2: states by 12 L h^2, card 81,559 MiB."""
    shape = SIZES["22B"][0]
    states = state_bytes(12 * 48 * 6144**2 / 8, "mixed-adam-fp32grad").total
    each = 48 * activation_bytes(shape, 2048, tp=8, **settings)
    assert (81559 * 2**20 - states) // each == largest


def test_interleaving():
    """Blueprint: 1.32 at p 35, v 3."""
    assert interleaving_factor(35, 3) == pytest.approx(1.32, abs=0.005)
    assert interleaving_factor(64) == 1.0
    shape = SIZES["530B"][0]
    plain = memory(shape, Layout(tp=8, pp=35), 2048, attention="unfused", dropout=True)
    more = memory(
        shape, Layout(tp=8, pp=35, n_chunks=3), 2048, attention="unfused", dropout=True
    )
    assert more.activations / plain.activations == pytest.approx(1 + 34 / 105)


def test_fsdp_holds_two_gathered_layers():
    shape = SHAPES["llama-3-8b"]
    n = shape.params()
    sharded = memory(shape, Layout(dp=64, zero=3), 8192)
    assert sharded.states == pytest.approx(16 * n.total / 64, rel=1e-3)
    assert sharded.buffers == pytest.approx(2 * 2 * n.non_embedding / 32)


@pytest.mark.parametrize("table", ["bloom-memory", "simumax-memory"])
def test_measured_memory_with_one_offset(table):
    """Goal of the validation: 7 % with one offset a stack, no false alarm."""
    found = memory_score(table)
    assert found.mape <= 0.07
    assert found.false_alarms == 0
    if table == "bloom-memory":
        assert (found.flagged, found.out_of_memory) == (3, 4)


def test_missed_memory_is_missed_by_no_more_than_is_said():
    """Nanotron: what large micro-batches keep beside our items is not modelled."""
    assert 0.07 < memory_score("nanotron-memory").mape < 0.15


@pytest.mark.parametrize(("chunks", "gigabytes"), [(1, 63.4), (3, 74.7), (6, 69.1)])
def test_the_hall_before_its_offset(chunks, gigabytes):
    """Blueprint of part III, memory, exercise 5: t 8, p 16, d 128, b 1."""
    shape = TransformerShape(
        n_layers=96, d_model=21504, d_ff=86016, n_heads=168, vocab_size=131072,
        gated=False,
    )  # fmt: skip
    plan = Layout(tp=8, pp=16, dp=128, n_chunks=chunks, zero=1, sequence_parallel=True)
    need = memory(shape, plan, 4096, 128, recipe="mixed-adam-fp32grad", dropout=True)
    assert need.total / 1e9 == pytest.approx(gigabytes, rel=0.002)


def test_the_memory_table_has_sources():
    path = (
        Path(__file__).parent.parent / "chinchilla_lab/data/published_runs_memory.csv"
    )
    rows = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
    assert all(row["source"] and row["where"] and row["evidence"] for row in rows)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Recipe(weights=-2, gradients=2, optimizer=12), "weights=-2 must be"),
        (lambda: state_bytes(0), "params=0 must be a finite number above 0"),
        (lambda: state_bytes(1e9, "adam"), "recipe='adam' is not known; choose from"),
        (lambda: activation_bytes(EXPERTS, 0), "seq_len=0 must be at least 1"),
        (lambda: activation_bytes(EXPERTS, 8, recompute="half"), "recompute='half'"),
        (lambda: memory(EXPERTS, Layout(), 8, offset=-1.0), "offset=-1 must be"),
        (lambda: memory(EXPERTS, Layout(), 8, attention="flash"), "attention='flash'"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_every_view_has_both_units():
    html = memory(SHAPES["llama-3-8b"], Layout(dp=8, zero=1), 8192)._repr_html_()
    assert "[GiB]" in html
    assert "[GB]" in html
    assert "not included" in html
    assert {r.total for r in RECIPES.values()} == {12.0, 16.0, 18.0, 20.0}


# --- what a stack was read to do ------------------------------------------------------

NANOTRON = {
    "1.34B": TransformerShape(
        n_layers=16, d_model=2048, d_ff=8192, n_heads=32, vocab_size=131072, tied=True
    ),
    "3.57B": TransformerShape(
        n_layers=28, d_model=3072, d_ff=8192, n_heads=32, vocab_size=131072, tied=True
    ),
    "8.86B": TransformerShape(
        n_layers=32, d_model=4096, d_ff=14336, n_heads=32, vocab_size=131072
    ),
}


@pytest.mark.parametrize(
    ("model", "tp", "pp", "printed", "job"),
    [
        ("1.34B", 1, 2, 940e6, 14098541), ("1.34B", 1, 4, 604e6, 14098548),
        ("1.34B", 2, 8, 235e6, 14099000), ("3.57B", 1, 2, 2.21e9, 14098558),
        ("3.57B", 1, 4, 1.31e9, 14098561), ("3.57B", 2, 8, 428e6, 14098734),
        ("3.57B", 1, 16, 629e6, 14098728), ("8.86B", 1, 2, 4.92e9, 14097157),
        ("8.86B", 1, 4, 2.73e9, 14097147), ("8.86B", 4, 8, 438e6, 14098941),
        ("8.86B", 4, 16, 317e6, 14098946),
    ],
)  # fmt: skip
def test_stages_cut_by_cost_hold_the_printed_parameters(model, tp, pp, printed, job):
    """Local parameters of the first rank, as the jobs of nanotron's sweep print them."""
    shape = NANOTRON[model]
    longest, last = kernel.stage_layers(shape, float(pp), 1.0, True)
    n = shape.params()
    local = (longest * n.non_embedding / shape.n_layers + n.input_embedding) / tp
    assert local == pytest.approx(printed, rel=0.005)
    assert 0 <= last <= longest


@pytest.mark.parametrize(
    ("model", "tp", "zero", "printed", "job"),
    [("1.34B", 1, 0, 25.07, 14113488), ("1.34B", 2, 0, 12.60, 13502031),
     ("3.57B", 4, 0, 16.79, 13522752), ("3.57B", 2, 0, 33.42, 13502027)],
)  # fmt: skip
def test_states_with_buckets_take_twenty_bytes(model, tp, zero, printed, job):
    """Allocated memory between steps, as printed in GiB: 2 + 6 + 12 bytes each."""
    found = state_bytes(
        NANOTRON[model].params().total / tp, "eager-both-gradients", zero
    )
    assert found.total / GIB == pytest.approx(printed, rel=0.02)


def test_an_eager_gate_keeps_its_activated_half():
    """Gate, up, activated gate and product in 2 bytes each: 8 f where fused have 6."""
    shape, plan = NANOTRON["8.86B"], Layout(pp=4, micro_batch=2)
    fused = memory(shape, plan, 4096, recipe="mixed-adam-both-gradients")
    eager = memory(shape, plan, 4096, recipe="eager-both-gradients")
    more = 2 * shape.d_ff * 2 * 4096 * shape.n_layers
    assert eager.activations - fused.activations == pytest.approx(more)
    assert eager.states == fused.states


def test_the_first_stage_may_be_asked_about():
    shape, plan = NANOTRON["1.34B"], Layout(pp=2, dp=4, micro_batch=4, zero=1)
    given = {"recipe": "eager-both-gradients", "head_counted": True}
    fullest = memory(shape, plan, 4096, **given)
    first = memory(shape, plan, 4096, **given, stage="first")
    assert first.logits == 0.0 < fullest.logits
    # six layers and 14 bytes a logit on the last, ten layers twice on the first
    layer = first.activations / 20
    logits = 14 * 4 * 4096 * shape.vocab_size
    assert fullest.logits == pytest.approx(logits + 6 * layer - 20 * layer)
    with pytest.raises(ValueError, match="stage='last' is not known"):
        memory(shape, plan, 4096, stage="last")
