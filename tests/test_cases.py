"""Public reports of what people get wrong, each with the right answer.

The ids are those of the collection; the docstring says where the error was seen.
"""

import numpy as np
import pytest

import chinchilla_lab as lab
from chinchilla_lab import allocation
from chinchilla_lab.laws import (
    BESIROGLU_2024,
    HOFFMANN_2022,
    HOFFMANN_2022_PRINTED,
    KAPLAN_2020_CMIN,
    KAPLAN_2020_JOINT,
    RATIO_20,
    AdditiveLaw,
)
from chinchilla_lab.shape import (
    SHAPES,
    TransformerShape,
    flops_per_token,
    steps_for_tokens,
)
from chinchilla_lab.units import UnitError, parse

pytestmark = pytest.mark.filterwarnings("ignore::chinchilla_lab.ExtrapolationWarning")


def test_C02_both_rules_side_by_side():
    """A web calculator that knows only 20:1; C = 3e24."""
    table = allocation.spread([RATIO_20, BESIROGLU_2024], 3e24)
    assert pytest.approx([1.581e11, 1.684e11], rel=1e-3) == table.N
    assert pytest.approx([3.162e12, 2.970e12], rel=1e-3) == table.D
    html = table._repr_html_()
    assert "20 tokens per parameter" in html
    assert "Besiroglu 2024" in html


def test_C04_one_formula_for_both_is_inconsistent():
    """A lesson that gives N and D the same formula and claims a ratio of 20."""
    C = 1e21
    claimed = 0.6 * np.sqrt(C / 6)
    assert 6 * claimed**2 == pytest.approx(0.36 * C)
    rng = np.random.default_rng(0)
    for _ in range(50):
        law = AdditiveLaw(
            E=rng.uniform(1, 2.5),
            A=10 ** rng.uniform(1, 4),
            B=10 ** rng.uniform(1, 4),
            alpha=rng.uniform(0.2, 0.6),
            beta=rng.uniform(0.2, 0.6),
        )
        budget = 10 ** rng.uniform(17, 26)
        plan = allocation.compute_optimal(law, budget)
        assert pytest.approx(budget, rel=1e-9) == 6 * plan.N * plan.D
        excess = law.with_(E=0.0)
        for k in (1.01, 1 / 1.01):
            assert excess.loss(plan.N * k, plan.D / k) > excess.loss(plan.N, plan.D)


@pytest.mark.parametrize(
    ("law", "N", "D", "ratio", "a"),
    [
        (HOFFMANN_2022_PRINTED, 3.22e10, 2.98e12, 92.6, 0.4516),
        (HOFFMANN_2022, 4.04e10, 2.38e12, 58.9, 0.4565),
        (BESIROGLU_2024, 7.22e10, 1.33e12, 18.4, 0.5126),
    ],
)
def test_C05_three_sets_of_coefficients(law, N, D, ratio, a):
    """Somebody copies the printed coefficients and expects 20 tokens per parameter."""
    plan = allocation.compute_optimal(law, 5.76e23)
    assert pytest.approx((N, D), rel=2e-3) == (plan.N, plan.D)
    assert plan.tokens_per_param == pytest.approx(ratio, rel=1e-3)
    assert law.a == pytest.approx(a, abs=5e-5)


def test_C05_the_rounded_set_says_so():
    assert HOFFMANN_2022_PRINTED.rounding == "rounded"
    assert "93" in HOFFMANN_2022_PRINTED.caution


def test_C06_chinchilla_is_no_partner_of_gpt3():
    """A lesson compares 70B/1.4T with 175B/300B at "the same compute"."""
    gpt3, chinchilla, gopher = 6 * 175e9 * 300e9, 6 * 70e9 * 1.4e12, 6 * 280e9 * 300e9
    assert chinchilla / gpt3 == pytest.approx(1.87, abs=0.005)
    assert gopher == pytest.approx(5.04e23)
    rule = allocation.compute_optimal(RATIO_20, gpt3)
    assert pytest.approx((51.2e9, 1.02e12), rel=5e-3) == (rule.N, rule.D)
    plan = allocation.compute_optimal(BESIROGLU_2024, gpt3)
    assert pytest.approx((53.0e9, 0.99e12), rel=5e-3) == (plan.N, plan.D)
    assert pytest.approx(1.992, abs=5e-4) == plan.L
    assert BESIROGLU_2024.loss(175e9, 300e9) == pytest.approx(2.009, abs=1e-3)


def test_C07_growth_by_ten():
    """A note credits 5.5 and 1.8, exponents of the Kaplan type, to Chinchilla."""
    assert allocation.growth(KAPLAN_2020_CMIN, 10)[0] == pytest.approx(5.4, abs=0.05)
    assert allocation.growth(RATIO_20, 10) == pytest.approx((3.162, 3.162), rel=1e-3)
    assert allocation.growth(BESIROGLU_2024, 10) == pytest.approx(
        (3.26, 3.07), abs=0.005
    )


def test_C09_the_displayed_formula_is_the_function():
    """N is C/(6D), and sqrt(C/120) under 20:1, never C/(20D)."""
    plan = allocation.compute_optimal(RATIO_20, 1e22)
    assert pytest.approx(1e22 / (6 * plan.D), rel=1e-12) == plan.N
    assert pytest.approx(np.sqrt(1e22 / 120), rel=1e-12) == plan.N
    law, C = BESIROGLU_2024, 1e22
    G = (law.alpha * law.A / (law.beta * law.B)) ** (1 / (law.alpha + law.beta))
    a = law.beta / (law.alpha + law.beta)
    assert (
        pytest.approx(G * (C / 6) ** a, rel=1e-12)
        == allocation.compute_optimal(law, C).N
    )


def test_C10_target_and_unit():
    """A trainer aims at 20 N^0.75 tokens and calls 6ND/1e12 a rate."""
    right = allocation.optimal_for_params(RATIO_20, 7e9).D
    assert right == pytest.approx(1.4e11)
    assert right / (20 * 7e9**0.75) == pytest.approx(289, abs=1)
    with pytest.raises(UnitError, match="is an amount of FLOP, not a rate"):
        parse("5.88e23 FLOP", "FLOP/s")


def test_C11_small_budgets():
    """A calculator starts at 1e21; a hobbyist has 5e18."""
    rule = allocation.compute_optimal(RATIO_20, 5e18)
    assert pytest.approx((2.04e8, 4.08e9), rel=2e-3) == (rule.N, rule.D)
    plan = allocation.compute_optimal(BESIROGLU_2024, 5e18)
    assert pytest.approx((1.84e8, 4.53e9), rel=2e-3) == (plan.N, plan.D)


@pytest.mark.filterwarnings("default::chinchilla_lab.ExtrapolationWarning")
def test_C11_below_the_runs_warns():
    with pytest.warns(lab.ExtrapolationWarning, match="leaves the fitted range"):
        allocation.compute_optimal(BESIROGLU_2024, 1e18)


def test_C12_a_third_of_an_epoch():
    """A recipe stops a 125M model after 4800 steps of 256 x 2048 tokens."""
    seen = 4800 * 256 * 2048
    assert seen == pytest.approx(2.517e9, rel=1e-3)
    assert seen / 125e6 == pytest.approx(20.1, abs=0.05)
    assert seen / 7.5e9 == pytest.approx(0.34, abs=0.005)
    assert steps_for_tokens(20 * 125e6, 256 * 2048) == 4768


def test_C13_an_identity_fixes_no_ratio():
    """Any split closes C = 6ND; a ratio needs a law, and laws differ."""
    ratios = {
        float(allocation.compute_optimal(law, 3.15e23).tokens_per_param).__round__(1)
        for law in (BESIROGLU_2024, HOFFMANN_2022, RATIO_20)
    }
    assert len(ratios) == 3
    assert 1.7 not in ratios


def test_C14_073_is_a_separate_fit():
    """The joint law gives alpha_D/(alpha_N + alpha_D): .575, or .556 with .095."""
    assert KAPLAN_2020_JOINT.as_additive().a == pytest.approx(0.575, abs=1e-3)
    assert KAPLAN_2020_JOINT.with_(alpha_D=0.095).as_additive().a == pytest.approx(
        0.556, abs=1e-3
    )
    assert KAPLAN_2020_CMIN.a == 0.73


def test_C15_a_loss_out_of_reach():
    """An exercise asks a 7B model for a loss of 1.968."""
    with pytest.raises(lab.InfeasibleError) as refusal:
        allocation.tokens_for_loss(BESIROGLU_2024, 7e9, 1.968)
    assert "1.9987" in str(refusal.value)
    assert "11.9B" in str(refusal.value)
    assert allocation.loss_floor(BESIROGLU_2024, 7e9) == pytest.approx(1.9987, abs=5e-5)


def test_C16_small_models_at_equal_loss():
    """A tool returned NaN below the least size."""
    tool = AdditiveLaw(E=1.62, A=1, B=1, alpha=0.336, beta=0.283)
    half, quarter = (allocation.overhead(tool, k) for k in (0.5, 0.25))
    assert half.token_factor == pytest.approx(2.416, abs=5e-4)
    assert half.compute == pytest.approx(0.208, abs=5e-4)
    assert quarter.compute == pytest.approx(1.889, abs=5e-3)
    assert allocation.least_size_factor(tool) == pytest.approx(0.0974, abs=5e-5)
    own = allocation.overhead(BESIROGLU_2024, [0.5, 0.25, 0.1], infeasible="nan")
    assert own.compute[:2] == pytest.approx([0.259, 3.47], rel=5e-3)
    assert "unreachable" in own._repr_html_()


def test_C27_active_for_compute_total_for_memory():
    """A mixture counted its FLOP from all experts: 287.78 in place of 79.98 TFLOP."""
    n = SHAPES["mixtral-8x7b"].params()
    assert n.total / n.active == pytest.approx(3.62, abs=0.01)
    assert pytest.approx(3.60, abs=0.005) == 287.78 / 79.98
    count = flops_per_token(SHAPES["mixtral-8x7b"], 4096, "6N_total")
    assert count.total == pytest.approx(6 * n.active, rel=1e-12)


def test_C28_a_look_up_is_no_product():
    """An untied 1.1B model counts both tables: 6.0 % too much, 35 % is 32.9 %."""
    shape = SHAPES["tinyllama-1.1b"]
    both = flops_per_token(shape, 2048, "6N_total")
    head = flops_per_token(shape, 2048, "6N_body_and_head")
    assert both.embedding == 6 * 2048 * 32000
    assert head.embedding == 0
    tables = 2048 * 32000 / 1.1e9
    assert tables == pytest.approx(0.0596, abs=1e-4)
    assert 35 * head.total / both.total == pytest.approx(32.9, abs=0.1)


def test_C29_three_matrices_and_two_tables():
    """A calculator gives 54.9 to 56.2B for a 72B model."""
    shape = TransformerShape(
        n_layers=80, d_model=8192, d_ff=24576, n_heads=64, vocab_size=152064
    )
    assert shape.params().total == pytest.approx(72.29e9, rel=5e-4)


@pytest.mark.parametrize("written", ["400B", "400G", "4e11", "0.4T"])
def test_C31_B_and_G_are_the_same(written):
    """A reader takes 400B and 456G for a factor of a thousand."""
    assert parse(written, "token") == 4e11


def test_C31_bytes_are_no_tokens():
    with pytest.raises(UnitError, match="size in bytes, not tokens"):
        parse("400GB", "token")
    assert 151e3 * parse("5 weeks", "s") == pytest.approx(4.57e11, rel=1e-3)


def test_C50_the_vocabulary_stands_outside_the_layers():
    """A textbook had D V inside the product with L: 2.67e10."""
    shape = TransformerShape(
        n_layers=64, d_model=4096, d_ff=16384, n_heads=32, n_kv_heads=8, head_dim=256,
        vocab_size=32128, tied=True,
    )  # fmt: skip
    assert shape.params().matrices == pytest.approx(1.8385e10, rel=5e-5)


def test_C72_three_names_of_one_pilot():
    """12 L d^2 where the tables are larger than the body."""
    n = SHAPES["pilot"].params()
    assert n.attention + n.mlp == pytest.approx(2.272e7, rel=1e-3)
    assert n.input_embedding + n.head == pytest.approx(2.867e7, rel=1e-3)
    assert n.total == pytest.approx(5.139e7, rel=1e-3)
    assert set(n.meanings()) == {"total", "body_and_head", "non_embedding", "active"}
