"""Few unique tokens: the law, its optimum by brute force, the choices, the cautions."""

import numpy as np
import pytest
from conftest import brute_force, rows_of_others
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import chinchilla_lab as lab
from chinchilla_lab import allocation, repetition
from chinchilla_lab.laws import (
    BESIROGLU_2024,
    MUENNIGHOFF_2023_C4,
    MUENNIGHOFF_2023_REPEATED,
    AdditiveLaw,
    PenaltyLaw,
    RepeatedDataLaw,
)

pytestmark = pytest.mark.filterwarnings("ignore::chinchilla_lab.ExtrapolationWarning")

LAW, BASE = MUENNIGHOFF_2023_REPEATED, MUENNIGHOFF_2023_C4
LAWS = st.builds(
    RepeatedDataLaw,
    base=st.builds(
        AdditiveLaw,
        E=st.floats(0.5, 3.0),
        A=st.floats(50.0, 2e3),
        B=st.floats(50.0, 5e3),
        alpha=st.floats(0.25, 0.5),
        beta=st.floats(0.25, 0.5),
    ),
    R_D=st.floats(2.0, 200.0),
    R_N=st.floats(1.0, 20.0),
)
SIZES = st.floats(7, 12).map(lambda e: 10.0**e)
TOKENS = st.floats(8, 13).map(lambda e: 10.0**e)


# --- the law ------------------------------------------------------------------------


def test_value_of_epochs_of_the_notes():
    epochs = [2, 4, 8, 16, 20, 64, 100]
    share = repetition.effective_tokens(1.0, epochs) / np.array(epochs)
    assert share == pytest.approx([0.984, 0.931, 0.828, 0.661, 0.596, 0.252, 0.164], abs=6e-4)  # fmt: skip
    worth = repetition.marginal_value(epochs)
    assert worth == pytest.approx([0.937, 0.823, 0.635, 0.377, 0.291, 0.017, 0.002], abs=6e-4)  # fmt: skip


@given(LAWS, TOKENS, st.floats(1.0, 60.0))
def test_marginal_value_is_the_slope_of_effective_tokens(law, U, epochs):
    h = 1e-5
    slope = law.effective_tokens(U, epochs + h) - law.effective_tokens(U, epochs)
    # two sums of up to 200 U are subtracted
    worth = law.marginal_value(epochs + h / 2)
    assert slope / (U * h) == pytest.approx(worth, rel=1e-6, abs=1e-8)


@given(LAWS, TOKENS, st.floats(1.0, 1e4))
def test_effective_tokens_stay_below_both_ceilings(law, U, epochs):
    D = law.effective_tokens(U, epochs)
    assert min(epochs * U, U * (1 + law.R_D)) * (1 + 1e-12) >= D
    assert law.marginal_value(1.0 + law.half_life) == pytest.approx(0.5)
    assert law.ceiling == 1 + law.R_D


@given(LAWS, SIZES, TOKENS, TOKENS)
def test_loss_falls_with_all_three_and_stays_above_the_base_law(law, N, D, U):
    here = law.loss(N, D, unique=U)
    tiny = 1e-12
    assert law.loss(2 * N, D, unique=U) <= here + tiny
    assert law.loss(N, 2 * D, unique=U) <= here + tiny
    assert law.loss(N, D, unique=2 * U) <= here + tiny
    assert here >= law.base.loss(N, D) - tiny
    assert here >= law.floor(min(U, D)) - tiny


@given(LAWS, TOKENS, st.floats(0.01, 1.0), st.floats(1.0, 10.0))
def test_one_epoch_is_the_base_law_for_sizes_that_the_data_can_use(law, D, part, more):
    N = part * law.useful_params(D)
    assert law.loss(N, D, unique=more * D) == pytest.approx(law.base.loss(N, D))
    assert law.loss(N, D) == pytest.approx(law.base.loss(N, D))


def test_one_epoch_is_not_the_base_law_for_large_models():
    assert LAW.loss(1e11, 2e11) == pytest.approx(2.1084, abs=5e-5)
    assert BASE.loss(1e11, 2e11) == pytest.approx(2.0918, abs=5e-5)
    notes = repetition.cautions(LAW, 1e11, 2e11, 2e11)
    assert any("surplus" in note for note in notes)
    small = repetition.cautions(LAW, 1e9, 2e11, 2e11)
    assert not any("surplus" in note for note in small)


def test_part_of_an_epoch_is_refused():
    with pytest.raises(ValueError, match="must be at least 1"):
        repetition.marginal_value(0.5)


# --- the penalty law ----------------------------------------------------------------


@given(SIZES, TOKENS, st.floats(1.0, 100.0))
def test_penalty_reduces_to_the_base_law_at_one_epoch(N, D, more):
    law = PenaltyLaw(base=BASE)
    assert law.loss(N, D, unique=more * D) == BASE.loss(N, D)
    assert law.loss(N, D) == BASE.loss(N, D)
    assert law.loss(N, D, unique=D / 2) > BASE.loss(N, D)


def test_penalty_says_that_its_numbers_are_illustrations():
    law = PenaltyLaw(base=BASE)
    assert "illustrative" in law.label
    assert "illustrative" in law.caution
    assert any("illustrative" in n for n in repetition.cautions(law, 1e9, 4e9, 1e9))
    with pytest.raises(ValueError, match="P"):
        PenaltyLaw(base=BASE, P=-1.0)


@pytest.mark.parametrize(
    ("delta", "P", "epochs"), [(1, 0.0057, 22.6), (2, 0.0019, 7.6)]
)
def test_penalty_matched_at_four_epochs(delta, P, epochs):
    law = repetition.matched_penalty(LAW, 12.8e9, 60e9, delta=delta)
    assert pytest.approx(P, rel=0.01) == law.P
    effective = LAW.effective_tokens(60e9, 4)
    same = BASE.loss(12.8e9, effective)
    assert law.loss(12.8e9, 240e9, unique=60e9) == pytest.approx(same, rel=1e-12)
    best = repetition.best_epochs(law, 12.8e9, 60e9)
    assert best == pytest.approx(epochs, abs=0.05)
    around = law.loss(12.8e9, 60e9 * np.array([best / 1.05, best, best * 1.05]), 60e9)
    assert around[1] < min(around[0], around[2])


def test_a_harsh_penalty_forbids_the_first_repeat():
    harsh = PenaltyLaw(base=BASE, P=10.0)
    assert repetition.best_epochs(harsh, 1e10, 1e10) == 1.0
    with pytest.raises(ValueError, match="at least 1"):
        repetition.best_epochs(PenaltyLaw(base=BASE, delta=0.5), 1e10, 1e10)


# --- the optimum --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("C", "U", "N", "epochs", "loss", "as_shaped"),
    [
        (1.91e20, 25e9, 1.27e9, 1.00, 2.5098, 2.5098),
        (1e21, 25e9, 2.63e9, 2.54, 2.3548, 2.3552),
        (3e21, 25e9, 4.22e9, 4.74, 2.2811, 2.2821),
        (5e22, 25e9, 13.9e9, 24.0, 2.1748, 2.1785),
        (1e23, 25e9, 18.8e9, 35.4, 2.1643, 2.1681),
        (5.76e23, 1e11, 48.3e9, 19.9, 2.0608, 2.0630),
        (5.76e23, 2e11, 53.8e9, 8.93, 2.0408, 2.0417),
    ],
)
def test_table_of_allocations_of_the_notes(C, U, N, epochs, loss, as_shaped):
    plan = repetition.optimal(LAW, C, U)
    assert pytest.approx(N, rel=4e-3) == plan.N
    assert plan.epochs == pytest.approx(epochs, rel=2e-3)
    # 1.91e20 is itself a rounded budget
    assert pytest.approx(loss, abs=2e-4) == plan.L
    shape = allocation.compute_optimal(BASE, C)
    assert LAW.loss(shape.N, shape.D, unique=U) == pytest.approx(as_shaped, abs=2e-4)


@given(LAWS, st.floats(18, 26), st.floats(-3, 0.5))
def test_optimum_agrees_with_brute_force(law, budget, share):
    C = 10.0**budget
    best = allocation.compute_optimal(law.base, C)
    U = best.D * 10.0**share
    plan = repetition.optimal(law, C, U)
    assert pytest.approx(C, rel=1e-9) == plan.C

    def cost(x):
        N = np.exp(x)
        return law._repeated(N, C / (6 * N), np.asarray(U)) - law.base.E

    x, least = brute_force(cost, np.log(best.N) - 8, np.log(best.N) + 4)
    excess = plan.L - law.base.E
    assert excess <= least * (1 + 1e-9) + 1e-15
    assert excess == pytest.approx(least, rel=1e-6)
    # fully worn data and parameters leave a plain on which every size is the best
    assume(min(cost(x - 0.01), cost(x + 0.01)) > least * (1 + 1e-7))
    # E hides digits of a flat minimum: its place is known to the root of the rest
    assert np.log(plan.N) == pytest.approx(x, abs=1e-5)


@given(
    st.floats(1e-5, 1.0),
    st.floats(0.3, 3.0),
    st.floats(0.3, 2.0),
    st.floats(19, 25),
    st.floats(-2.5, 0.5),
)
def test_optimum_with_a_penalty_agrees_with_brute_force(P, delta, kappa, budget, share):
    law = PenaltyLaw(base=BASE, P=P, delta=delta, kappa=kappa)
    C = 10.0**budget
    best = allocation.compute_optimal(BASE, C)
    U = best.D * 10.0**share
    plan = repetition.optimal(law, C, U)

    def cost(x):
        N = np.exp(x)
        return law._repeated(N, C / (6 * N), np.asarray(U)) - BASE.E

    top = max(np.log(C / (6 * U)), np.log(best.N)) + 1
    _, least = brute_force(cost, np.log(best.N) - 8, top)
    assert least * (1 + 1e-6) >= plan.L - BASE.E


@given(LAWS, st.floats(18, 26), st.floats(-3, 0.5))
def test_optimal_epochs_and_size_grow_with_compute(law, budget, share):
    C = 10.0**budget
    best = allocation.compute_optimal(law.base, C)
    U = best.D * 10.0**share
    some, more = (repetition.optimal(law, c, U) for c in (C, 2 * C))
    # fully worn data and parameters leave a plain on which every size is the best
    assume(some.L - more.L > 1e-9)
    assume(more.L - law.floor(U) > 1e-9)
    assert some.epochs < more.epochs
    assert some.N < more.N
    richer = repetition.optimal(law, C, 2 * U)
    assert richer.L <= some.L + 1e-12
    assert best.L - 1e-12 <= some.L


@given(st.floats(18, 26), st.floats(-2.5, 0.5))
def test_published_scales_ask_for_a_smaller_model_than_fresh_data(budget, share):
    """Not a property of the form: surplus parameters may wear more slowly than data."""
    best = allocation.compute_optimal(BASE, 10.0**budget)
    plan = repetition.optimal(LAW, 10.0**budget, best.D * 10.0**share)
    assert plan.N <= best.N * (1 + 1e-9)


def test_enough_data_is_compute_optimal():
    best = allocation.compute_optimal(BASE, 1e21)
    for law in (LAW, PenaltyLaw(base=BASE)):
        plan = repetition.optimal(law, 1e21, [best.D, 10 * best.D])
        assert pytest.approx(best.N, rel=1e-12) == plan.N
        assert pytest.approx(best.L, rel=1e-12) == plan.L
        assert plan.repeats == pytest.approx([0, 0], abs=1e-12)


def test_with_tied_exponents_only_the_share_of_data_counts():
    shares, factors, epochs, worth = (
        (1 / 2, 1 / 4, 1 / 8, 1 / 16),
        (0.92, 0.83, 0.75, 0.68),
        (2.2, 4.8, 10.7, 23.7),
        (0.94, 0.78, 0.52, 0.26),
    )
    for C in (1e20, 1e24):
        best = allocation.compute_optimal(BASE, C)
        plan = repetition.optimal(LAW, C, best.D * np.array(shares))
        assert pytest.approx(factors, abs=6e-3) == plan.N / best.N
        assert plan.epochs == pytest.approx(epochs, abs=0.06)
        assert plan.compute_share == pytest.approx(worth, abs=6e-3)


def test_scenario_of_the_chapter():
    plan = repetition.optimal(LAW, 3e22, 60e9)
    assert pytest.approx((1.281e10, 6.50, 2.150), rel=1e-3) == (plan.N, plan.epochs, plan.L)  # fmt: skip
    assert plan.kept == pytest.approx(0.865, abs=5e-4)
    assert plan.compute_share == pytest.approx(0.69, abs=5e-3)
    assert plan.per_log_unique == pytest.approx(-0.0261, abs=5e-5)
    assert plan.per_log_compute == pytest.approx(-0.0365, abs=5e-5)
    double = repetition.optimal(LAW, 6e22, 60e9)
    assert pytest.approx(1.34, abs=5e-3) == double.N / plan.N
    assert double.epochs == pytest.approx(9.7, abs=0.05)


@given(st.floats(19, 25), st.floats(-2, -0.1))
def test_shadow_prices_are_slopes_of_the_optimal_loss(budget, share):
    C = 10.0**budget
    U = allocation.compute_optimal(BASE, C).D * 10.0**share
    plan, h = repetition.optimal(LAW, C, U), 1e-4

    def slope(c, u):
        more = repetition.optimal(LAW, C * np.exp(c * h), U * np.exp(u * h)).L
        less = repetition.optimal(LAW, C * np.exp(-c * h), U * np.exp(-u * h)).L
        return (more - less) / (2 * h)

    assert slope(1, 0) == pytest.approx(plan.per_log_compute, rel=1e-5)
    assert slope(0, 1) == pytest.approx(plan.per_log_unique, rel=1e-5)


def test_two_laws_part():
    """Same unique tokens, opposite advice: with kappa = 1 the penalty wants a larger one."""
    repeated = repetition.optimal(LAW, 3e22, 60e9)
    for delta, N, epochs in ((1, 16.8e9, 5.0), (2, 21.4e9, 3.9)):
        law = repetition.matched_penalty(LAW, 12.8e9, 60e9, delta=delta)
        plan = repetition.optimal(law, 3e22, 60e9)
        assert pytest.approx(N, rel=5e-3) == plan.N
        assert plan.epochs == pytest.approx(epochs, abs=0.05)
        assert plan.N > repeated.N
        with pytest.raises(TypeError, match="discounts no tokens"):
            _ = plan.effective_tokens


# --- at a loss ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tau", "rows"),
    [
        (0, ((1.00, 1.0, 1.00), (0.94, 2.3, 1.07), (0.96, 5.8, 1.38), (1.30, 22.6, 3.67))),
        (1, ((0.76, 1.4, 0.96), (0.77, 2.8, 1.01), (0.83, 6.8, 1.26), (1.25, 23.6, 3.07))),
        (5, ((0.54, 2.2, 0.79), (0.57, 4.4, 0.83), (0.65, 9.6, 0.99), (1.12, 27.0, 2.13))),
        (20, ((0.40, 4.3, 0.57), (0.43, 8.0, 0.60), (0.51, 15.7, 0.71), (0.98, 35.0, 1.41))),
    ],
)  # fmt: skip
def test_short_data_and_serving_together(tau, rows):
    best = allocation.optimal_for_params(BASE, 10e9)
    plan = repetition.optimal_for_loss(
        LAW, best.L, best.D / np.array([1, 2, 4, 8]), tau * best.D
    )
    k, epochs, cost = zip(*rows, strict=True)
    assert pytest.approx(k, abs=6e-3) == plan.N / best.N
    assert plan.epochs == pytest.approx(epochs, abs=0.06)
    bill = 2 * best.N * best.D * (3 + tau)
    assert plan.total / bill == pytest.approx(cost, abs=6e-3)


@settings(max_examples=25)  # four grids of bisections each
@given(LAWS, st.floats(9, 11.5), st.floats(-0.8, 0.5), st.floats(-2, 2))
def test_least_compute_at_a_loss_agrees_with_brute_force(law, size, share, tau):
    best = allocation.optimal_for_params(law.base, 10.0**size)
    U, T = best.D * 10.0**share, best.D * 10.0**tau
    # close to the floor everything is endless
    assume(1.05 * (law.floor(U) - law.base.E) < best.L - law.base.E)
    plan = repetition.optimal_for_loss(law, best.L, U, T)
    assert pytest.approx(best.L, rel=1e-9) == plan.L

    def cost(x):
        N = np.exp(x)
        D = repetition.tokens_for_loss(law, N, best.L, U)
        return np.where(np.isnan(D), np.inf, N * (3 * D + T) / (best.N * best.D))

    _, least = brute_force(cost, np.log(plan.N) - 3, np.log(plan.N) + 3)
    mine = plan.N * (3 * plan.D + T) / (best.N * best.D)
    assert mine <= least * (1 + 1e-9)
    assert mine == pytest.approx(least, rel=1e-6)


@given(LAWS, SIZES, st.floats(0.05, 20.0), TOKENS)
def test_tokens_for_loss_inverts_the_loss(law, N, epochs, U):
    L = law.loss(N, epochs * U, unique=U)
    # far into the flat part no tokens can be told apart
    assume(epochs < 3 * law.R_D)
    back = repetition.tokens_for_loss(law, N, L, U)
    assert law.loss(N, back, unique=U) == pytest.approx(L, rel=1e-12)
    impossible = repetition.tokens_for_loss(law, N, law.floor(U) * 0.999, U)
    assert np.isnan(impossible)


def test_least_unique_tokens():
    best = allocation.optimal_for_params(BASE, 10e9)
    share = repetition.least_unique(LAW, best.L) / best.D
    assert share == pytest.approx(0.102, abs=5e-4)
    others = [
        repetition.least_unique(x, best.L) / best.D for x in repetition.EQUALLY_GOOD
    ]
    assert others == pytest.approx([0.102, 0.107, 0.105], abs=6e-4)
    assert repetition.least_unique(LAW, 1.0) == np.inf


def test_a_loss_out_of_reach_names_floor_and_way():
    with pytest.raises(
        lab.InfeasibleError, match=r"floor 2\.1559.*more than .* unique"
    ):
        repetition.optimal_for_loss(LAW, 2.1, 25e9)
    with pytest.raises(lab.InfeasibleError, match="no data can"):
        repetition.optimal_for_loss(LAW, 1.8, 25e9)
    with pytest.raises(TypeError, match="RepeatedDataLaw"):
        repetition.optimal_for_loss(PenaltyLaw(base=BASE), 2.5, 25e9)


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf, "60e9", [1e9, -1e9]])
def test_bad_numbers_are_named(bad):
    with pytest.raises(ValueError, match="unique_tokens"):
        repetition.optimal(LAW, 1e22, bad)
    with pytest.raises(ValueError, match="C"):
        repetition.optimal(LAW, bad, 1e10)


def test_a_law_without_repeats_is_refused():
    with pytest.raises(TypeError, match="knows no repeated data"):
        repetition.optimal(BESIROGLU_2024, 1e22, 1e10)


def test_arrays_broadcast_and_scalars_stay_scalars():
    grid = repetition.optimal(LAW, [[1e21], [1e22]], [1e9, 1e10, 1e12])
    assert np.shape(grid.N) == np.shape(grid.epochs) == (2, 3)
    one = repetition.optimal(LAW, 1e22, 1e10)
    assert np.ndim(one.N) == 0
    assert pytest.approx(grid.N[1, 1], rel=1e-12) == one.N
    assert len(grid.rows()) == 6
    with_penalty = repetition.optimal(
        PenaltyLaw(base=BASE), [[1e21], [1e22]], [1e9, 1e10]
    )
    assert np.shape(with_penalty.N) == (2, 2)


# --- cautions -----------------------------------------------------------------------


@pytest.mark.filterwarnings("default::chinchilla_lab.ExtrapolationWarning")
def test_many_epochs_warn():
    with pytest.warns(lab.ExtrapolationWarning, match="beyond the 14"):
        repetition.optimal(LAW, 5e22, 25e9)


def test_a_plan_carries_its_cautions():
    plan = repetition.optimal(LAW, 5e22, 25e9)
    notes = " ".join(plan.cautions())
    for part in (
        "weakly identified",
        "10 to 100",
        "absolute losses do not",
        "deduplication",
        "24 epochs are 23 repeats",
        "measured losses rise again",
    ):
        assert part in notes
        assert part in plan._repr_html_()


def test_equally_good_scales_and_their_hedge():
    assert repetition.EQUALLY_GOOD[0] is LAW
    plans = [repetition.optimal(law, 3e22, 60e9) for law in repetition.EQUALLY_GOOD]
    assert [p.N / 1e9 for p in plans] == pytest.approx([12.8, 8.8, 7.5], abs=0.06)
    assert [p.epochs for p in plans] == pytest.approx([6.5, 9.5, 11.1], abs=0.06)
    plan = repetition.hedge(3e22, 60e9)
    assert pytest.approx(9.7e9, rel=5e-3) == plan.N
    assert plan.worst == pytest.approx(0.0017, abs=5e-5)
    for factor in (0.97, 1.03):
        N = plan.N * factor
        regrets = [
            law.loss(N, 3e22 / (6 * N), unique=60e9) - best.L
            for law, best in zip(repetition.EQUALLY_GOOD, plans, strict=True)
        ]
        assert max(regrets) > plan.worst
    assert "Least regret" in plan._repr_html_()
    with pytest.raises(ValueError, match="laws is empty"):
        repetition.hedge(1e22, 1e10, ())


def test_measured_differences_transfer_and_absolutes_do_not():
    """The 2.81B rows: added loss over one epoch, about 55e9 tokens."""
    rows = rows_of_others("muennighoff_all_runs.csv")
    chosen = [
        [float(r[c]) for c in ("tokens_D", "unique_tokens_U", "val_loss")]
        for r in rows
        if float(r["params_N"]) == 2.81e9 and 54e9 < float(r["tokens_D"]) < 56e9
    ]
    D, U, measured = np.array(chosen).T
    once = measured[np.isclose(D, U)].mean()
    law_once = LAW.loss(2.81e9, D[0], unique=D[0])
    assert abs(once - law_once) > 0.15  # the level
    few = np.isclose(D / U, 13.75, rtol=0.02)
    assert few.any()
    added = measured[few].mean() - once
    law_added = LAW.loss(2.81e9, D[few][0], unique=U[few][0]) - law_once
    assert law_added == pytest.approx(added, abs=0.02)
    many = np.isclose(D / U, 44, rtol=0.02)
    law_many = LAW.loss(2.81e9, D[many][0], unique=U[many][0]) - law_once
    assert law_many < 0.5 * (measured[many].mean() - once)


# --- choices ------------------------------------------------------------------------


def test_three_choices_of_the_chapter():
    table = repetition.three_choices(LAW, 3e22, 60e9, 60e9, 0.8, generator_params=7e9)
    losses = {option.name: option.L for option in table.options}
    assert losses == pytest.approx(
        {
            "small": 2.340,
            "small_repeated": 2.198,
            "repeat": 2.150,
            "repeat_ratio": 2.151,
            "add": losses["add"],
            "fresh": 2.137,
            "unlimited": 2.132,
        },
        abs=6e-4,
    )
    small = table["small"]
    assert pytest.approx(3.06e9, rel=2e-3) == small.N
    assert small.spent / 3e22 == pytest.approx(0.037, abs=5e-4)
    assert table["small_repeated"].epochs == pytest.approx(27, abs=0.5)
    assert losses["fresh"] < losses["add"] < losses["repeat"]
    assert table.winner.name == "add"
    assert "when compute is as short as data" in table._repr_html_()
    with pytest.raises(KeyError, match="there are small"):
        table["nothing"]


@pytest.mark.parametrize(
    ("generator", "quality"), [(0.0, 0.59), (7e9, 0.62)], ids=["free", "7B"]
)
def test_break_even_quality(generator, quality):
    q = repetition.break_even_quality(LAW, 3e22, 60e9, 60e9, generator)
    assert q == pytest.approx(quality, abs=6e-3)
    for step, winner in ((-0.02, "repeat"), (0.02, "add")):
        table = repetition.three_choices(LAW, 3e22, 60e9, 60e9, q + step, generator)
        assert table.winner.name == winner
        assert table.break_even == q


def test_break_even_is_where_adding_and_repeating_tie():
    for law in (LAW, PenaltyLaw(base=BASE)):
        q = repetition.break_even_quality(law, 3e22, 60e9, 60e9, 7e9)
        tie = repetition.loss_with_added(law, 3e22, 60e9, 60e9, q, 7e9)
        assert tie == pytest.approx(repetition.optimal(law, 3e22, 60e9).L, abs=1e-9)


def test_loss_with_added_is_that_of_the_table():
    table = repetition.three_choices(LAW, 3e22, 60e9, 60e9, 0.6, 7e9)
    C = np.array([1e20, 3e22])
    L = repetition.loss_with_added(LAW, C, 60e9, 60e9, 0.6, 7e9)
    assert np.isnan(L[0]), "a budget below the cost of generation"
    assert pytest.approx(table["add"].L, rel=1e-12) == L[1]


def test_a_large_generator_never_pays():
    table = repetition.three_choices(LAW, 3e22, 60e9, 60e9, 1.0, generator_params=70e9)
    assert table.break_even == np.inf
    assert table.generation / table.C == pytest.approx(0.28)
    assert table.winner.name == "repeat"
    assert any("at no quality" in note for note in table.verdict())
    huge = repetition.three_choices(LAW, 3e22, 60e9, 60e9, 1.0, generator_params=1e12)
    assert np.isnan(huge["add"].L)
    assert huge.winner.name == "repeat"


def test_perfect_free_tokens_are_fresh_tokens():
    table = repetition.three_choices(LAW, 3e22, 60e9, 60e9, 1.0)
    assert pytest.approx(table["fresh"].L, rel=1e-12) == table["add"].L
    assert pytest.approx(table["fresh"].N, rel=1e-12) == table["add"].N


def test_short_compute_needs_no_repeats():
    """Near the ratio the small model is right when compute is short too."""
    table = repetition.three_choices(LAW, 1.91e20, 25e9, 25e9, 0.5)
    assert pytest.approx(table["repeat"].L, abs=1e-3) == table["small"].L
    plenty = repetition.three_choices(LAW, 1e20, 25e9, 25e9, 0.5)
    assert any("nothing is short" in note for note in plenty.verdict())
    assert pytest.approx(plenty["repeat"].L, rel=1e-9) == plenty["small"].L


def test_own_ratio_of_the_small_model():
    table = repetition.three_choices(LAW, 3e22, 60e9, 1e9, 0.5, tokens_per_param=20)
    assert pytest.approx(3e9) == table["small"].N


# --- corpora ------------------------------------------------------------------------


def test_corpora_name_their_sources():
    for corpus in repetition.CORPORA.values():
        assert corpus.advertised > 0
        assert corpus.source
        assert corpus.where
        assert corpus.evidence
        if corpus.unique is not None:
            assert corpus.unique <= corpus.advertised
    assert "ODC-By" in repetition.corpora_table()


def test_advertised_tokens_are_not_unique_tokens():
    edu = repetition.CORPORA["fineweb-edu"]
    assert edu.unique_tokens == 3.75e11
    assert edu.unique_share == pytest.approx(0.284, abs=5e-4)
    assert 210e9 * edu.unique_share == pytest.approx(60e9, rel=0.01)
    with pytest.raises(ValueError, match="deduplicate and count"):
        _ = repetition.CORPORA["fineweb"].unique_tokens


def test_passes_from_tokens_or_epochs():
    assert repetition.passes(25e9, epochs=4).tokens == 1e11
    assert repetition.passes(25e9, tokens=10e9).repeats == 0.0
    for both in ({}, {"tokens": 1e9, "epochs": 2}):
        with pytest.raises(ValueError, match="exactly one"):
            repetition.passes(25e9, **both)


def test_accumulating_is_bounded():
    assert repetition.accumulated_variance(100_000) == pytest.approx(
        np.pi**2 / 6, rel=1e-4
    )


# --- measured rows ------------------------------------------------------------------


def test_measured_rows_are_those_of_the_authors():
    """Skipped where the third-party table is not at hand."""
    losses = {}
    for row in rows_of_others("muennighoff_all_runs.csv"):
        key = tuple(float(row[k]) for k in ("params_N", "tokens_D", "unique_tokens_U"))
        losses.setdefault(key, []).append(float(row["val_loss"]))
    for row in repetition.MEASURED:
        found = losses[row.N, row.D, row.unique]
        assert len(found) == row.runs
        assert np.mean(found) == pytest.approx(row.loss, abs=5.1e-5)
        assert np.ptp(found) == pytest.approx(row.spread, abs=5.1e-5)


def test_law_follows_measured_differences_to_14_epochs_and_no_further():
    rows = repetition.measured_series("2.81B on 55B tokens")
    for row in rows:
        measured = row.loss - rows[0].loss
        law = repetition.added_loss(row.N, row.D, row.unique)
        if row.epochs <= repetition.FOLLOWED_EPOCHS:
            assert law == pytest.approx(measured, abs=0.008)
        else:
            assert measured - law > 0.5
        # absolute losses lie elsewhere
        assert row.loss - LAW.loss(row.N, row.D, unique=row.unique) > 0.2
    with pytest.raises(TypeError, match="discounts no parameters"):
        repetition.added_loss(1e9, 4e9, 1e9, PenaltyLaw(base=BASE), by_data_alone=True)
    with pytest.raises(ValueError, match="series"):
        repetition.measured_series("all")


def test_measured_losses_rise_again():
    rows = repetition.measured_series("281M on 100M unique tokens")
    losses = [row.loss for row in rows]
    assert losses.index(min(losses)) == 1
    assert losses[1:] == sorted(losses[1:])


# --- penalty laws: range, base, both directions -------------------------------------


@pytest.mark.filterwarnings("default::chinchilla_lab.ExtrapolationWarning")
def test_a_penalty_inherits_the_fitted_range_of_its_base():
    law = PenaltyLaw(base=BESIROGLU_2024)
    assert law.fitted == BESIROGLU_2024.fitted
    with pytest.warns(lab.ExtrapolationWarning, match="fitted range"):
        law.loss(1e13, 1e15)
    other = PenaltyLaw(base=BASE).with_(base=BESIROGLU_2024)
    assert other.fitted == BESIROGLU_2024.fitted


@pytest.mark.parametrize("base", ["x", LAW, None], ids=str)
def test_only_an_additive_law_can_be_a_base(base):
    with pytest.raises(TypeError, match="is no additive law"):
        PenaltyLaw(base=base)
    with pytest.raises(TypeError, match="is no additive law"):
        RepeatedDataLaw(base=base, R_D=15.0, R_N=5.0)


def test_direction_of_a_penalty_follows_kappa_against_delta():
    """d ln(penalty) / d ln N = kappa - delta (1 + 1/R) on a budget: both signs occur."""
    large = repetition.matched_penalty(LAW, 12.8e9, 60e9, delta=1, kappa=1)
    small = repetition.matched_penalty(LAW, 12.8e9, 60e9, delta=1, kappa=2)
    budgets = [3e22, 1e23, 3e23]
    free = allocation.compute_optimal(BASE, budgets)
    plan = repetition.optimal(small, budgets, 6e10)
    assert pytest.approx([0.84, 0.42, 0.15], abs=6e-3) == plan.N / free.N
    assert plan.epochs == pytest.approx([6.2, 22.6, 113], rel=5e-3)
    assert np.all(repetition.optimal(large, budgets, 6e10).N > free.N)


def test_the_hedge_of_penalties_is_the_least_of_a_grid():
    laws = [
        repetition.matched_penalty(LAW, 12.8e9, 60e9, delta=d, kappa=k)
        for d, k in ((1, 1), (1, 2), (2, 1), (2, 2.5), (0.7, 0.5))
    ]
    for C in (3e22, 1e23, 1e24):
        plan = repetition.hedge(C, 60e9, laws)
        best = [repetition.optimal(law, C, 60e9).L for law in laws]

        def worst(x, C=C, best=best):
            N = np.exp(x)
            found = [law.loss(N, C / (6 * N), unique=60e9) for law in laws]
            return np.max([f - b for f, b in zip(found, best, strict=True)], axis=0)

        _, least = brute_force(worst, np.log(1e8), np.log(1e14))
        assert plan.worst == pytest.approx(least, rel=1e-6)


@pytest.mark.parametrize("P", [1e-300, 1e-30, 1e-12])
def test_a_tiny_penalty_has_its_best_epochs(P):
    law = PenaltyLaw(base=BASE, P=P)
    R = repetition.best_epochs(law, 1e10, 6e10) - 1.0
    gain = np.log(BASE.beta * BASE.B) - BASE.beta * np.log(6e10)
    gain -= (BASE.beta + 1.0) * np.log1p(R)
    assert gain == pytest.approx(np.log(P) + np.log(1e10 / 6e10), abs=1e-9)
    endless = PenaltyLaw(base=BASE, P=1e-300, kappa=400.0)
    with pytest.raises(ValueError, match="give a larger P"):
        repetition.best_epochs(endless, 1e9, 6e10)


# --- refusals -----------------------------------------------------------------------


def test_plenty_of_tokens_leaves_nothing_to_break_even():
    table = repetition.three_choices(LAW, 1e20, 25e9, 25e9, 1.0)
    assert table.break_even == np.inf
    assert table.winner.name != "add"
    said = " ".join(table.verdict())
    assert "cannot help" in said
    assert "more win" not in said


@pytest.mark.parametrize(
    "call",
    [
        lambda law: repetition.three_choices(law, 1e22, 1e10, 1e10, 0.5),
        lambda law: repetition.break_even_quality(law, 1e22, 1e10, 1e10),
        lambda law: repetition.loss_with_added(law, 1e22, 1e10, 1e10, 0.5),
        lambda law: repetition.hedge(1e22, 1e10, [law]),
        lambda law: repetition.least_unique(law, 2.5),
        lambda law: repetition.tokens_for_loss(law, 1e9, 2.5, 1e10),
        lambda law: repetition.optimal_for_loss(law, 2.5, 1e10),
        lambda law: repetition.effective_tokens(1e9, 2, law),
        lambda law: repetition.marginal_value(2, law),
        lambda law: repetition.matched_penalty(law, 1e9, 1e10),
        lambda law: repetition.best_epochs(law, 1e9, 1e10),
        lambda law: repetition.added_loss(1e9, 1e10, 1e9, law),
        lambda law: repetition.cautions(law, 1e9, 1e10, 1e9),
    ],
)
@pytest.mark.parametrize("law", [BESIROGLU_2024, "x"], ids=["additive", "text"])
def test_every_call_refuses_a_law_without_repetition(call, law):
    with pytest.raises(TypeError, match=r"^law="):
        call(law)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("unique", lambda x: repetition.passes(x, epochs=2)),
        ("epochs", lambda x: repetition.passes(1e9, epochs=x)),
        ("C", lambda x: repetition.hedge(x, 1e10)),
        ("unique_tokens", lambda x: repetition.hedge(1e22, x)),
        ("C", lambda x: repetition.three_choices(LAW, x, 1e10, 1e10, 0.5)),
        ("quality", lambda x: repetition.three_choices(LAW, 1e22, 1e10, 1e10, x)),
        ("extra_tokens", lambda x: repetition.break_even_quality(LAW, 1e22, 1e10, x)),
        ("N", lambda x: repetition.matched_penalty(LAW, x, 1e10)),
        ("kappa", lambda x: repetition.matched_penalty(LAW, 1e9, 1e10, kappa=x)),
    ],
)
def test_several_numbers_for_one_are_refused_by_name(name, call):
    with pytest.raises(ValueError, match=rf"^{name} has shape .*give one number"):
        call([0.5, 0.6])
