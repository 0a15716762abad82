"""Exact parameters, every convention, and the traps of counting."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chinchilla_lab.shape import (
    CONVENTIONS,
    FAMILIES,
    SHAPES,
    TransformerShape,
    causal_crossover,
    compare_conventions,
    flops_per_token,
    optimizer_share,
    recompute_factor,
    shape_for,
    shapes_near,
    steps_for_tokens,
    table_a9,
    tokens_for_compute,
    training_compute,
    training_time,
)
from chinchilla_lab.shape.known import shape_rows

PUBLISHED = [
    (k, int(r["published_params"]))
    for k, r in shape_rows().items()
    if r["published_params"]
]


@pytest.mark.parametrize(("name", "expected"), PUBLISHED)
def test_published_integers(name, expected):
    assert SHAPES[name].params().total == expected


def test_shared_buffers_are_no_parameters():
    """Metadata of Llama 2 70B says 68,976,653,312: 5,120 of them are rotary buffers."""
    assert 68_976_653_312 - SHAPES["llama-2-70b"].params().total == 5_120


TABLE = {  # blueprint: FLOP per token of Llama 3 8B at 8192, tokens at 1e22 in billions
    "6N_non_embedding": (4.188e10, 238.8),
    "6N_body_and_head": (4.503e10, 222.1),
    "6N_total": (4.818e10, 207.5),
    "kaplan": (4.832e10, 207.0),
    "porian": (5.147e10, 194.3),
    "deepseek": (5.154e10, 194.0),
    "palm": (5.791e10, 172.7),
}


@pytest.mark.parametrize("name", TABLE)
def test_conventions_of_one_shape(name):
    per_token, tokens = TABLE[name]
    table = compare_conventions(SHAPES["llama-3-8b"], 8192, 1e22)
    assert table.counts[name].total == pytest.approx(per_token, rel=2e-4)
    assert table.tokens[name] / 1e9 == pytest.approx(tokens, abs=0.05)


SHAPE = st.builds(
    lambda layers, heads, group, size, ff, vocab, gated, tied: TransformerShape(
        n_layers=layers,
        d_model=heads * group * size,
        d_ff=ff,
        n_heads=heads * group,
        n_kv_heads=heads,
        vocab_size=vocab,
        gated=gated,
        tied=tied,
    ),
    st.integers(1, 64),
    st.integers(1, 16),
    st.sampled_from([1, 2, 4]),
    st.sampled_from([32, 64, 128]),
    st.integers(64, 20000),
    st.integers(100, 200000),
    st.booleans(),
    st.booleans(),
)


@given(SHAPE)
def test_formula_of_a_gated_model(shape):
    """L(2dhk + 2d h_kv k + m d f + 2d) + d + V d (1 or 2)."""
    d, q, kv = (
        shape.d_model,
        shape.n_heads * shape.head_size,
        shape.kv_heads * shape.head_size,
    )
    m = 3 if shape.gated else 2
    layer = 2 * d * q + 2 * d * kv + m * d * shape.d_ff + 2 * d
    tables = (1 if shape.tied else 2) * shape.vocab_size * d
    n = shape.params()
    assert n.total == shape.n_layers * layer + d + tables
    assert n.non_embedding < n.body_and_head <= n.total == n.active
    parts = n.attention + n.mlp + n.router + n.norms + n.biases
    assert parts + n.input_embedding + n.positions + n.head == n.total


@given(SHAPE, st.integers(1, 100000))
def test_exact_count_is_six_per_weight_and_twelve_per_score(shape, T):
    n = shape.params()
    exact = flops_per_token(shape, T, "exact")
    scores = 12 * shape.n_layers * T * shape.attention_width
    assert exact.total == pytest.approx(6 * n.matrices + scores, rel=1e-12)
    causal = flops_per_token(shape, T, "exact_causal")
    assert causal.attention == pytest.approx(scores / 2)
    for name in CONVENTIONS:
        count = flops_per_token(shape, T, name)
        assert (
            count.total == count.body + count.attention + count.head + count.embedding
        )


@given(SHAPE)
def test_crossover_is_where_attention_equals_the_weights(shape):
    T = max(round(causal_crossover(shape)), 1)
    count = flops_per_token(shape, T, "porian")
    slack = 6 * shape.n_layers * shape.attention_width  # one token of attention
    assert abs(count.attention - count.body - count.head) <= slack


def test_biases_and_positions_of_gpt2():
    """L(12d^2 + 13d) + (V + T)d + 2d."""
    L, d, V, T = 12, 768, 50257, 1024
    n = SHAPES["gpt-2-small"].params()
    assert n.total == L * (12 * d * d + 13 * d) + (V + T) * d + 2 * d
    assert n.total - n.non_embedding == 39_383_808


def test_meanings_of_the_pilot():
    """9 layers, d 448, ff 1280, V 32,000: 22.7, 37.0 and 51.4 million without norms."""
    n = SHAPES["pilot"].params()
    assert n.attention + n.mlp == 22_708_224
    assert n.matrices == 37_044_224
    assert n.matrices + n.head == 51_380_224
    assert pytest.approx(21.68e6, rel=1e-3) == 12 * 9 * 448**2


def test_experts_total_and_active():
    """Mixtral 8x7B: 46.7B in total, 12.9B active."""
    n = SHAPES["mixtral-8x7b"].params()
    assert n.total == pytest.approx(46.7e9, rel=1e-3)
    assert n.active == pytest.approx(12.9e9, rel=2e-3)
    count = flops_per_token(SHAPES["mixtral-8x7b"], 4096, "exact_causal")
    assert count.body + count.head < 6 * n.active


PLAIN = {
    "n_layers": 32,
    "d_model": 4096,
    "d_ff": 14336,
    "n_heads": 32,
    "n_kv_heads": 8,
    "head_dim": 128,
    "vocab_size": 128256,
}


@pytest.mark.parametrize("kind", [float, np.int32, np.int64, np.float32])
def test_counts_stay_exact_integers(kind):
    """32-bit integers once wrapped to -559,673,344 and floats gave a float total."""
    shape = TransformerShape(**{name: kind(value) for name, value in PLAIN.items()})
    total = shape.params().total
    assert type(total) is int
    assert total == 8_030_261_248
    assert shape == TransformerShape(**PLAIN)


def test_shared_experts_always_work():
    """Each adds one expert's matrices to the total and to what a token uses."""
    plain = PLAIN | {"n_experts": 8, "n_active_experts": 2}
    without = TransformerShape(**plain).params()
    with_two = TransformerShape(**plain, n_shared_experts=2).params()
    extra = 2 * 32 * 3 * 4096 * 14336
    assert with_two.total - without.total == extra
    assert with_two.active - without.active == extra
    assert with_two.idle == without.idle


@pytest.mark.parametrize("name", sorted(set(CONVENTIONS) - {"deepseek"}))
def test_flops_follow_the_experts_that_work(name):
    """Idle experts cost their row in the router and nothing else; active ones do."""
    few, many, more_active = (
        flops_per_token(
            TransformerShape(**PLAIN, n_experts=total, n_active_experts=active),
            4096,
            name,
        ).total
        for total, active in ((8, 2), (16, 2), (8, 4))
    )
    router = 6 * 32 * 4096 * 8
    assert 0 <= many - few <= router * (1 + 1e-9)
    matrices = 2 if name.startswith("chinchilla") else 3  # appendix F knows no gate
    added = 6 * 2 * 32 * matrices * 4096 * 14336
    assert more_active - few == pytest.approx(added, rel=1e-9)


def test_deepseek_formula_sees_no_experts():
    """12 d^2 a layer is the formula as published: trap for mixtures."""
    count = flops_per_token(SHAPES["mixtral-8x7b"], 4096, "deepseek")
    assert count.total / (6 * SHAPES["mixtral-8x7b"].params().active) < 0.6


def test_recomputation_makes_eight_of_six():
    assert 6 * recompute_factor() == pytest.approx(8)
    assert recompute_factor([0.0, 0.5]) == pytest.approx([1, 7 / 6])
    with pytest.raises(ValueError, match=r"share=1\.5 is more than one forward pass"):
        recompute_factor(1.5)


def test_factor_five_of_table_a9():
    """49 of 50 rows within .5 %, none off by more than .8 %; factor 4 is 4.8 to 7.7 % low."""
    errors = [abs(s.params().matrices / printed - 1) for printed, s in table_a9()]
    assert len(errors) == 50
    assert sum(e < 0.005 for e in errors) == 49
    assert max(errors) < 0.0081
    for printed, s in table_a9():
        four = s.params().matrices - s.n_layers * s.d_model * s.attention_width
        assert -0.078 < four / printed - 1 < -0.047


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("N", [1.5e9, 7e9, 2e10])
def test_family_gives_shapes_that_divide(family, N):
    shape = shape_for(N, family)
    assert shape.params().active == pytest.approx(N, rel=0.03)
    assert shape.n_heads % shape.kv_heads == 0
    assert shape.d_model % shape.n_heads == 0
    assert shape.d_ff % 64 == 0
    assert 30 <= shape.d_model / shape.n_layers <= 150


@pytest.mark.parametrize("family", FAMILIES)
@given(N=st.floats(1.3e9, 2e10), step=st.floats(1.0, 1.2))
def test_a_larger_size_never_gets_a_smaller_shape(family, N, step):
    smaller, larger = (shape_for(n, family).params().active for n in (N, N * step))
    assert smaller <= larger
    assert smaller == pytest.approx(N, rel=0.04)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_size_within_a_family_is_near_a_shape(family):
    """Just outside the ends a size is refused, not answered with a far shape."""
    sizes = [size for size, _ in shapes_near(1e9, rtol=1e9, family=family)]
    low, high = min(sizes), max(sizes)
    for N in np.geomspace(low, high, 300):
        assert shape_for(N, family).params().active == pytest.approx(N, rel=0.04)
    for N in (low / 1.05, high * 1.05):
        with pytest.raises(ValueError, match="leaves the family"):
            shape_for(N, family)


def test_a_shape_for_nine_billion():
    """Within 2 % of 9.05e9 and at most 5 % vocabulary."""
    n = shape_for(9.05e9).params()
    assert n.total == pytest.approx(9.05e9, rel=0.02)
    assert n.vocabulary_share <= 0.05
    near = shapes_near(9.05e9)
    assert len(near) >= 5
    assert all(abs(total / 9.05e9 - 1) <= 0.02 for total, _ in near)
    with pytest.raises(ValueError, match="leaves the family 'llama'"):
        shape_for(1e6)


def test_run_arithmetic():
    run = training_time(1e22, 64, 989e12, [0.3, 0.4, 0.5])
    assert run.days == pytest.approx([6.10, 4.57, 3.66], abs=0.005)
    assert run.accelerator_hours == pytest.approx([9362, 7022, 5617], abs=1)
    assert training_compute(SHAPES["llama-3-8b"], 1e12, 8192) == pytest.approx(
        4.818e22, rel=1e-3
    )
    assert tokens_for_compute(
        SHAPES["llama-3-8b"], 1e22, 8192, "palm"
    ) == pytest.approx(172.7e9, rel=1e-3)
    assert optimizer_share(1e6) == pytest.approx(2.5e-6)
    assert steps_for_tokens(20 * 125e6, 256 * 2048) == 4768


def test_utilisation_above_one_names_the_peak():
    with pytest.raises(
        ValueError,
        match=r"mfu=1\.2 must lie above 0 and at most 1; check that peak_flops is the dense",
    ):
        training_time(1e22, 64, 989e12, 1.2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_kv_heads": 5}, "n_kv_heads=5 does not divide n_heads=32"),
        ({"n_heads": 33}, "does not divide d_model=4096"),
        ({"n_layers": 0}, "n_layers=0 must be at least 1"),
        ({"d_ff": 1.5}, r"d_ff=1\.5 must be a whole number"),
        ({"norm": "batch"}, "norm='batch' is not known"),
        ({"positions": "learned"}, "n_positions=0 must be at least 1"),
        ({"n_active_experts": 2}, "n_active_experts=2 exceeds n_experts=1"),
        ({"n_shared_experts": 1}, "n_shared_experts=1 stands beside experts"),
        ({"n_shared_experts": -1}, "n_shared_experts=-1 must be at least 0"),
        ({"n_positions": -3}, "n_positions=-3 must be at least 0"),
        ({"head_dim": 0}, "head_dim=0 must be at least 1"),
    ],
)
def test_impossible_shapes_are_refused(change, message):
    plain = {
        "n_layers": 32,
        "d_model": 4096,
        "d_ff": 11008,
        "n_heads": 32,
        "vocab_size": 32000,
    }
    with pytest.raises(ValueError, match=message):
        TransformerShape(**(plain | change))


def test_unknown_names_list_what_is_known():
    with pytest.raises(KeyError, match=r"add a row to chinchilla_lab/data/shapes\.csv"):
        SHAPES["gpt-5"]
    with pytest.raises(ValueError, match="convention='7N' is not known"):
        flops_per_token(SHAPES["pilot"], 128, "7N")


def test_tables_render():
    for thing in (
        SHAPES["pilot"],
        SHAPES["pilot"].params(),
        flops_per_token(SHAPES["pilot"], 128),
        compare_conventions(SHAPES["pilot"], 128, 1e20),
        training_time(1e22, 64, 989e12, 0.4),
    ):
        assert "<table" in thing._repr_html_()
