"""Lifetime optima against brute force, identities and what the notes of others print."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import brentq, minimize_scalar
from scipy.special import beta as beta_function

import chinchilla_lab as lab
from chinchilla_lab import allocation, inference
from chinchilla_lab.allocation.solving import newton
from chinchilla_lab.laws import (
    BESIROGLU_2024,
    HOFFMANN_2022_PRINTED,
    KAPLAN_2020_JOINT,
    MUENNIGHOFF_2023_C4,
    MUENNIGHOFF_2023_REPEATED,
    PEARCE_2024,
    RATIO_20,
    SARDANA_2024,
    AdditiveLaw,
)
from chinchilla_lab.shape import SHAPES

pytestmark = pytest.mark.filterwarnings("ignore::chinchilla_lab.ExtrapolationWarning")

LAWS = st.builds(
    AdditiveLaw,
    E=st.floats(0.0, 3.0),
    A=st.floats(1.0, 1e4),
    B=st.floats(1.0, 1e4),
    alpha=st.floats(0.15, 1.4),
    beta=st.floats(0.15, 1.4),
)
TAUS = st.floats(-4, 8).map(lambda e: 10.0**e)
PUBLISHED = (BESIROGLU_2024, MUENNIGHOFF_2023_C4, SARDANA_2024, HOFFMANN_2022_PRINTED)


def brute_force(cost, low, high):
    """Least of a function of one logarithm: grid, then golden section."""
    x = np.linspace(low, high, 2001)
    i = int(np.argmin([cost(v) for v in x]))
    found = minimize_scalar(
        cost,
        bounds=(x[max(i - 1, 0)], x[min(i + 1, 2000)]),
        method="bounded",
        options={"xatol": 1e-12},
    )
    return found.x, found.fun


# --- ratios -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tau", "k", "u", "saved"),
    [
        (1, (0.725, 0.751, 0.748), (1.43, 1.38, 1.38), (4.2, 3.7, 3.8)),
        (5, (0.486, 0.521, 0.518), (2.53, 2.34, 2.36), (23.5, 21.6, 21.8)),
        (20, (0.337, 0.375, 0.371), (5.16, 4.58, 4.64), (48, 45, 45)),
        (60, (0.262, 0.301, 0.297), (9.97, 8.58, 8.72), (62.6, 59.0, 59.4)),
        (1000, (0.167, 0.208, 0.203), (66.7, 52.5, 54.0), (80.1, 76.0, 76.5)),
    ],
)
def test_table_of_ratios_of_the_notes(tau, k, u, saved):
    laws = (SARDANA_2024, BESIROGLU_2024, MUENNIGHOFF_2023_C4)
    for law, *printed in zip(laws, k, u, saved, strict=True):
        found = inference.factors_for_demand(law, tau)
        assert found.size_factor == pytest.approx(printed[0], abs=6e-4)
        assert found.token_factor == pytest.approx(printed[1], rel=4e-3)
        assert 100 * found.saved == pytest.approx(printed[2], abs=0.6)


@given(LAWS, TAUS)
def test_ratios_solve_their_equation_inside_the_bracket(law, tau):
    found = inference.factors_for_demand(law, tau)
    k, u = found.size_factor, found.token_factor
    a, b = law.alpha, law.beta
    residual = u**-b * (a + b + b * tau / (3 * u)) / (a + b) - 1
    assert abs(residual) < 1e-12
    assert inference.least_size_factor(law) < k < 1 < u
    assert u <= (1 + tau / (3 * (a + b))) * (1 + 1e-12)
    # the iso-loss identity, at the optimum
    assert u == pytest.approx(inference.overhead(law, k).token_factor, rel=1e-6)


@given(LAWS, st.floats(-3, 5).map(lambda e: 10.0**e))
def test_demand_and_size_invert_each_other(law, tau):
    k = inference.factors_for_demand(law, tau).size_factor
    # at the floor all demands share their digits of k
    assume(k > 1.01 * inference.least_size_factor(law))
    back = inference.factors_for_size(law, k)
    assert back.demand_factor == pytest.approx(tau, rel=1e-8)


@given(LAWS, TAUS)
def test_saving_grows_to_one_minus_the_floor(law, tau):
    some, more = (inference.factors_for_demand(law, t).saved for t in (tau, 2 * tau))
    assert 0 < some < more < 1 - inference.least_size_factor(law)


@given(LAWS)
def test_small_demand_follows_its_series(law):
    total = law.alpha + law.beta
    tiny = inference.factors_for_demand(law, 1e-6)
    assert 1 - tiny.size_factor == pytest.approx(1e-6 / (3 * total), rel=1e-4)
    few = inference.factors_for_demand(law, 1e-3)
    series = 1e-6 / (18 * total * (1 + 1e-3 / 3))
    # the next term is of the order tau
    assert few.saved == pytest.approx(series, rel=1e-2)


def test_saving_at_one_percent_of_the_notes():
    assert inference.factors_for_demand(SARDANA_2024, 0.01).saved == pytest.approx(
        8.9e-6, rel=6e-3
    )


@given(LAWS)
def test_equal_spend_serves_for_what_it_trains(law):
    point = inference.equal_spend(law)
    assert point.demand_factor == pytest.approx(3 * point.token_factor, rel=1e-12)
    solved = inference.factors_for_demand(law, point.demand_factor)
    assert solved.size_factor == pytest.approx(point.size_factor, rel=1e-9)
    assert solved.token_factor == pytest.approx(point.token_factor, rel=1e-9)
    assert solved.saved == pytest.approx(point.saved, rel=1e-9)


@given(LAWS, LAWS, TAUS)
def test_only_the_exponents_count(law, other, tau):
    twin = other.with_(alpha=law.alpha, beta=law.beta)
    one, two = (inference.factors_for_demand(x, tau) for x in (law, twin))
    assert one.size_factor == two.size_factor
    assert one.saved == two.saved


@pytest.mark.parametrize(
    ("claim", "demands"),
    [(0.5, (5.9, 5.8, 4.5, 4.5)), (1 / 3, (35.2, 33.2, 20.9, 20.9))],
    ids=["two times smaller", "three times smaller"],
)
def test_what_smaller_for_inference_requires(claim, demands):
    for law, tau in zip(PUBLISHED, demands, strict=True):
        found = inference.factors_for_size(law, claim).demand_factor
        assert found == pytest.approx(tau, rel=0.01)


# --- lifetime optimum ---------------------------------------------------------------


@given(LAWS, st.floats(-2, 3), st.floats(0.02, 2.0))
def test_least_compute_at_a_loss_agrees_with_brute_force(law, exponent, excess):
    assume(law.E + excess > law.E * (1 + 1e-3))
    target = law.E + excess
    best = allocation.optimal_for_loss(law, target)
    assume(1e-20 < best.N < 1e40)
    T = best.D * 10.0**exponent
    plan = inference.lifetime_optimal(law, T, loss=target)
    assert law._loss(plan.N, plan.D) == pytest.approx(target, rel=1e-10)

    def cost(y):
        """Lifetime compute in units of the compute-optimal one, by tokens."""
        u = np.exp(y)
        room = 1 - law.alpha / (law.alpha + law.beta) * u**-law.beta
        k = (room * (law.alpha + law.beta) / law.beta) ** (-1 / law.alpha)
        return k * (3 * u + T / best.D)

    x, least = brute_force(cost, 0.0, np.log1p(T / best.D) + 10)
    spent = plan.total / (2 * best.N * best.D)
    assert spent == pytest.approx(least, rel=1e-9)
    assert spent <= least * (1 + 1e-12)
    # a flat optimum: the minimiser knows its place to the root of its precision
    assert np.log(plan.token_factor) == pytest.approx(x, abs=1e-6, rel=1e-6)


@given(LAWS, st.floats(-2, 4), st.floats(15, 28))
def test_least_loss_of_a_budget_agrees_with_brute_force(law, exponent, budget):
    C = 10.0**budget
    T = allocation.compute_optimal(law, C).D * 10.0**exponent
    plan = inference.lifetime_optimal(law, T, budget=C)
    assert plan.total == pytest.approx(C, rel=1e-12)
    excess = law.with_(E=0.0)

    def cost(x):
        N = np.exp(x)
        D = (C - 2 * N * T) / (6 * N)
        return np.log(excess._loss(N, D)) if D > 0 else 1e9

    x, least = brute_force(cost, np.log(plan.N) - 5, np.log(plan.N) + 5)
    found = np.log(excess._loss(plan.N, plan.D))
    assert found <= least + 1e-12
    assert np.log(plan.N) == pytest.approx(x, abs=1e-6)


@given(LAWS, st.floats(-2, 5), st.floats(16, 27))
def test_budget_and_loss_are_dual(law, exponent, budget):
    C = 10.0**budget
    T = allocation.compute_optimal(law, C).D * 10.0**exponent
    dual = inference.lifetime_optimal(law, T, budget=C)
    # below a thousandth of E the subtraction L - E eats the digits
    assume(1e-3 * max(law.E, 1e-6) < dual.L - law.E)
    primal = inference.lifetime_optimal(law, T, loss=dual.L)
    assert pytest.approx(dual.N, rel=1e-7) == primal.N
    assert pytest.approx(dual.D, rel=1e-7) == primal.D
    assert primal.total == pytest.approx(C, rel=1e-7)
    assert primal.saved == pytest.approx(dual.saved, rel=1e-5, abs=1e-12)


@given(LAWS, st.floats(-1, 3), st.floats(0.05, 1.0))
def test_envelope_one_more_token_costs_two_n(law, exponent, excess):
    target = law.E + excess
    best = allocation.optimal_for_loss(law, target)
    T = best.D * 10.0**exponent
    h = 1e-4 * T
    less, here, more = (
        inference.lifetime_optimal(law, t, loss=target) for t in (T - h, T, T + h)
    )
    # reduced by the part that the plan at T already costs: fewer digits are lost
    slope = (more.total - less.total) / (2 * h)
    assert slope == pytest.approx(here.next_token, rel=1e-6)
    # concave: the slope falls, as the size does
    assert less.N > here.N > more.N
    assert less.D < here.D < more.D
    assert less.total < here.total < more.total
    assert here.total >= (less.total + more.total) / 2 * (1 - 1e-14)


@given(LAWS, st.floats(-3, 6), st.floats(0.05, 1.0))
def test_never_dearer_than_compute_optimal(law, exponent, excess):
    plan_0 = allocation.optimal_for_loss(law, law.E + excess)
    T = plan_0.D * 10.0**exponent
    plan = inference.lifetime_optimal(law, T, loss=law.E + excess)
    bill = 2 * plan_0.N * (3 * plan_0.D + T)
    assert plan.total <= bill * (1 + 1e-12)
    assert 1 - plan.total / bill == pytest.approx(plan.saved, abs=1e-12)
    assert inference.size_floor(law, law.E + excess) * (1 - 1e-9) < plan.N


@given(LAWS, st.floats(0.05, 1.0), st.floats(1.0, 9.0))
def test_a_released_optimum_implies_its_own_demand(law, excess, exponent):
    T = 10.0**exponent * allocation.optimal_for_loss(law, law.E + excess).D / 1e5
    plan = inference.lifetime_optimal(law, T, loss=law.E + excess)
    found = inference.implied_demand(law, plan.N, plan.D)
    # a difference of two nearly equal slopes where little is served
    assert found == pytest.approx(T, rel=1e-6, abs=1e-9 * plan.D)


def test_no_demand_is_compute_optimal_exactly():
    plan = inference.lifetime_optimal(BESIROGLU_2024, 0, loss=2.1)
    best = allocation.optimal_for_loss(BESIROGLU_2024, 2.1)
    assert (plan.N, plan.D, plan.saved) == (best.N, best.D, 0.0)
    spent = inference.lifetime_optimal(BESIROGLU_2024, 0, budget=1e22)
    plain = allocation.compute_optimal(BESIROGLU_2024, 1e22)
    assert pytest.approx((plain.N, plain.D), rel=1e-14) == (spent.N, spent.D)
    assert spent.saved == pytest.approx(0, abs=1e-14)


def test_huge_demand_approaches_the_floor_slowly():
    k = inference.factors_for_demand(SARDANA_2024, [1e4, 1e6, 1e8]).size_factor
    assert k == pytest.approx([0.1345, 0.1094, 0.1015], abs=5e-5)
    floor = inference.least_size_factor(SARDANA_2024)
    endless = inference.factors_for_demand(SARDANA_2024, 1e300)
    assert endless.size_factor == pytest.approx(floor, rel=1e-12)
    plan = inference.lifetime_optimal(SARDANA_2024, 1e30, loss=1.947)
    assert (
        pytest.approx(inference.size_floor(SARDANA_2024, 1.947), rel=3.1e-4) == plan.N
    )
    # the growth of the tokens, still 2.4 % off at 1e20
    T, law = 1e20, SARDANA_2024
    limit = (law.beta * law.B * T / (3 * law.alpha * (1.947 - law.E))) ** (
        1 / (1 + law.beta)
    )
    D = inference.lifetime_optimal(law, T, loss=1.947).D
    assert abs(limit / D - 1) == pytest.approx(0.024, abs=2e-3)


def test_quality_of_a_seventy_billion_model():
    """Section 1.8 of the notes: N* in 1e9 and percent saved."""
    printed = {
        1e12: ((55.0, 2.57), (62.9, 0.40), (65.7, 0.13)),
        3e12: ((43.9, 10.8), (54.2, 2.50), (59.4, 0.97)),
        2e13: ((27.8, 40.9), (34.6, 22.4), (40.5, 13.3)),
        1e14: ((20.2, 61.5), (22.7, 50.5), (26.3, 40.8)),
    }
    laws = (BESIROGLU_2024, SARDANA_2024, HOFFMANN_2022_PRINTED)
    for T, rows in printed.items():
        band = inference.lifetime_spread(T, 70e9, laws)
        assert pytest.approx([r[0] for r in rows], abs=0.06) == band.N / 1e9
        assert 100 * band.saved == pytest.approx([r[1] for r in rows], abs=0.06)


def test_takeaway_of_the_chapter():
    band = inference.lifetime_spread(1.5e12, 20e9)
    assert pytest.approx([11.1, 11.1, 13.1, 14.8], abs=0.06) == band.N / 1e9
    assert pytest.approx([8.23e11, 8.29e11, 1.56e12, 2.33e12], rel=5e-3) == band.D
    assert 100 * band.saved == pytest.approx([17.4, 17.6, 7.5, 3.6], abs=0.06)
    assert [p.demand_factor for p in band.plans] == pytest.approx(
        [3.83, 3.82, 1.56, 0.90], rel=5e-3
    )
    assert "Besiroglu" in band._repr_html_()


def test_llama_2_against_its_own_laws():
    seven = [inference.implied_demand(law, 7e9, 2e12) for law in PUBLISHED]
    assert seven == pytest.approx([9.7e12, 9.4e12, 4.5e12, 3.0e12], rel=0.01)
    seventy = [inference.implied_demand(law, 70e9, 2e12) for law in PUBLISHED]
    assert seventy == pytest.approx([1.0e12, 8.5e11, -1.2e12, -1.9e12], rel=0.05)


def test_fixed_substitution_differs_fivefold_between_sets():
    saved = []
    for law in (SARDANA_2024, HOFFMANN_2022_PRINTED, BESIROGLU_2024):
        quality = allocation.optimal_for_params(law, 30e9).L
        saved.append(inference.lifetime_at(law, 15e9, 5e12, quality).saved)
    assert saved == pytest.approx([0.158, 0.060, 0.305], abs=6e-4)


def test_arrays_broadcast_and_scalars_stay_scalars():
    grid = inference.lifetime_optimal(
        BESIROGLU_2024, [[0.0], [1e12]], loss=[2.0, 2.1, 2.2]
    )
    assert np.shape(grid.N) == np.shape(grid.saved) == (2, 3)
    one = inference.lifetime_optimal(BESIROGLU_2024, 1e12, loss=2.1)
    assert np.ndim(one.N) == 0
    assert grid.N[1, 1] == one.N
    split = inference.lifetime_optimal(BESIROGLU_2024, [[1e11], [1e12]], budget=[1e22])
    assert np.shape(split.L) == (2, 1)
    assert "1T" in grid._repr_html_()


def test_residual_of_many_demands_is_below_1e_12():
    law = BESIROGLU_2024
    # more than a block of the solver, and two axes
    T = np.geomspace(1e6, 1e20, 10_000).reshape(100, 100)
    plan = inference.lifetime_optimal(law, T, loss=2.0)
    assert plan.N.shape == T.shape
    one = inference.lifetime_optimal(law, T[50, 7], loss=2.0)
    assert plan.N[50, 7] == pytest.approx(one.N, rel=1e-14)
    model = law.alpha * law.A * plan.N**-law.alpha
    data = law.beta * law.B * plan.D**-law.beta * (1 + T / (3 * plan.D))
    assert np.max(np.abs(model / data - 1)) < 1e-12


def test_same_as_a_scalar_root():
    law, loss = SARDANA_2024, 1.947
    excess = loss - law.E

    def condition(y, T):
        D = np.exp(y)
        bill = 1 + law.beta / law.alpha * (1 + T / (3 * D))
        return law.B * D**-law.beta * bill - excess

    for T in (1e9, 1e12, 1e15):
        D = np.exp(brentq(condition, 10, 60, args=(T,), xtol=1e-14))
        assert (
            pytest.approx(D, rel=1e-11)
            == inference.lifetime_optimal(law, T, loss=loss).D
        )


def test_outer_exponent_leaves_the_ratios():
    plan = inference.lifetime_optimal(KAPLAN_2020_JOINT, 1e12, loss=2.5)
    assert plan.law is KAPLAN_2020_JOINT
    assert KAPLAN_2020_JOINT.loss(plan.N, plan.D) == pytest.approx(2.5, rel=1e-10)


@pytest.mark.parametrize("T", [-1.0, np.nan, np.inf, "1e12", [1e12, -2.0]])
def test_bad_demand_is_named(T):
    with pytest.raises(ValueError, match="T"):
        inference.lifetime_optimal(BESIROGLU_2024, T, loss=2.1)


def test_what_cannot_be_asked_says_why():
    ask = inference.lifetime_optimal
    with pytest.raises(lab.InfeasibleError, match=r"floor E=1\.8172.*no size can"):
        ask(BESIROGLU_2024, 1e12, loss=1.8)
    with pytest.raises(ValueError, match="exactly one"):
        ask(BESIROGLU_2024, 1e12)
    with pytest.raises(ValueError, match="exactly one"):
        ask(BESIROGLU_2024, 1e12, loss=2.1, budget=1e22)
    with pytest.raises(TypeError, match="knows no loss"):
        ask(RATIO_20, 1e12, loss=2.1)
    for law in (PEARCE_2024, MUENNIGHOFF_2023_REPEATED):
        with pytest.raises(TypeError, match="no power law"):
            ask(law, 1e12, loss=2.1)
    with pytest.raises(lab.InfeasibleError, match=r"floor is 2\.0377.*6\.86B"):
        inference.lifetime_at(BESIROGLU_2024, 4e9, 1e12, 2.0)
    with pytest.raises(lab.InfeasibleError, match=r"above 0\.146"):
        inference.factors_for_size(BESIROGLU_2024, 0.1)
    with pytest.raises(ValueError, match="above 1"):
        inference.factors_for_size(BESIROGLU_2024, 2.0)
    with pytest.raises(ValueError, match="laws is empty"):
        inference.lifetime_spread(1e12, 7e9, ())


@pytest.mark.filterwarnings("default::chinchilla_lab.ExtrapolationWarning")
def test_beyond_the_runs_warns_once():
    with pytest.warns(lab.ExtrapolationWarning) as caught:
        inference.lifetime_optimal(BESIROGLU_2024, 1e13, loss=1.95)
    assert len(caught) == 1


def test_newton_survives_a_bad_start():
    """A steep function throws Newton out of the bracket; the middle takes over."""

    def step(x):
        return -np.tanh(50 * (x - 0.3)), -50 / np.cosh(50 * (x - 0.3)) ** 2 - 1e-300

    root = newton(step, np.zeros(2), np.ones(2), np.array([0.99, 0.01]))
    assert root == pytest.approx([0.3, 0.3], abs=1e-12)


# --- money --------------------------------------------------------------------------

TRAIN = inference.TrainingCost(usd_per_hour=2, peak_flops=989e12, mfu=0.4)
SERVE = inference.ServingCost(
    usd_per_hour=2, peak_flops=1978e12, prefill_mfu=0.5, decode_mfu=0.05
)
ASSISTANT = inference.Demand(
    input_tokens=900, output_tokens=300, requests_per_day=2.5e6, lifetime_days=500
)


def test_worked_example_of_the_notes():
    demand = inference.Demand(input_tokens=1000, output_tokens=300, requests=1e9)
    assert inference.effective_demand(TRAIN, SERVE, demand) == pytest.approx(1.6e12)
    printed = {
        SARDANA_2024: (21.6e9, 2.24e12, 0.720, 528e3, 0.043),
        HOFFMANN_2022_PRINTED: (24.0e9, 3.48e12, 0.800, 827e3, 0.019),
        BESIROGLU_2024: (18.1e9, 1.07e12, 0.602, 280e3, 0.129),
    }
    for law, (N, D, k, usd, saved) in printed.items():
        quality = allocation.optimal_for_params(law, 30e9).L
        best = inference.cheapest(law, TRAIN, SERVE, demand, quality)
        assert pytest.approx(N, rel=5e-3) == best.plan.N
        assert pytest.approx(D, rel=5e-3) == best.plan.D
        assert best.plan.size_factor == pytest.approx(k, abs=6e-4)
        assert best.reference == pytest.approx(usd, rel=3e-3)
        assert best.saved == pytest.approx(saved, abs=6e-4)
        assert best.decode_share == pytest.approx(0.75)
        assert best.saved == pytest.approx(best.plan.saved, rel=1e-9)


def test_money_optimum_agrees_with_brute_force():
    law = BESIROGLU_2024
    quality = allocation.optimal_for_params(law, 20e9).L
    best = inference.cheapest(law, TRAIN, SERVE, ASSISTANT, quality)

    def cost(x):
        return float(
            inference.bill(law, np.exp(x), TRAIN, SERVE, ASSISTANT, quality).total
        )

    x, least = brute_force(cost, np.log(5e9), np.log(5e10))
    assert best.total == pytest.approx(least, rel=1e-10)
    assert np.log(best.plan.N) == pytest.approx(x, abs=1e-6)


def test_bill_of_the_scenario():
    totals, before = [], []
    for law in PUBLISHED:
        quality = allocation.optimal_for_params(law, 20e9).L
        best = inference.cheapest(law, TRAIN, SERVE, ASSISTANT, quality)
        totals.append(best.total / 1e3)
        before.append(best.reference / 1e3)
    assert totals == pytest.approx([138, 137, 244, 371], abs=0.6)
    assert before == pytest.approx([176, 176, 272, 392], abs=0.6)
    html = best._repr_html_()
    assert "1.5T served count as 1.95T" in html.replace(" token", "")


@pytest.mark.parametrize(
    ("mfu", "T", "share"),
    [(0.2, 8.25e11, 0.45), (0.05, 1.95e12, 0.77), (0.01, 7.95e12, 0.94)],
)
def test_decode_utilisation_decides(mfu, T, share):
    serve = SERVE.with_decode(mfu)
    assert inference.effective_demand(TRAIN, serve, ASSISTANT) == pytest.approx(T)
    best = inference.cheapest(BESIROGLU_2024, TRAIN, serve, ASSISTANT, 2.1)
    assert best.decode_share == pytest.approx(share, abs=6e-3)


def test_equal_prices_and_full_use_give_the_real_tokens():
    same = {"usd_per_hour": 3.0, "peak_flops": 1e15}
    train = inference.TrainingCost(**same, mfu=0.4)
    serve = inference.ServingCost(**same, prefill_mfu=0.4, decode_mfu=0.4)
    assert inference.effective_demand(train, serve, ASSISTANT) == pytest.approx(
        ASSISTANT.tokens
    )


def test_peak_by_dtype():
    peaks = {"bf16": 989e12, "fp8": 1978e12}
    cost = {"usd_per_hour": 2.0, "peak_flops": peaks}
    half = inference.TrainingCost(**cost, mfu=0.4)
    full = inference.TrainingCost(**cost, mfu=0.4, dtype="fp8")
    assert half.usd_per_flop == pytest.approx(2 * full.usd_per_flop)
    with pytest.raises(ValueError, match="dtype='int4' is not known"):
        inference.TrainingCost(**cost, mfu=0.4, dtype="int4")
    with pytest.raises(ValueError, match=r"0\.4 for 40 %"):
        inference.TrainingCost(**cost, mfu=40)


@pytest.mark.parametrize(
    "given_",
    [
        {},
        {"requests": 1e9, "lifetime_days": 100},
        {"requests_per_day": 1e6},
        {"requests": 1e9, "requests_per_day": 1e6, "lifetime_days": 100},
    ],
)
def test_demand_wants_requests_or_a_rate_and_days(given_):
    with pytest.raises(ValueError, match="give requests, or both"):
        inference.Demand(input_tokens=1, output_tokens=1, **given_)


def test_roofline_utilisation_goes_into_the_cost():
    model = inference.ServedModel.from_shape(SHAPES["llama-3-8b"])
    h100 = inference.ServingHardware(peak_flops=989e12, bandwidth=3.35e12)
    step = inference.decode_step(model, h100, batch=32, context=4096)
    serve = SERVE.with_decode(step.mfu)
    assert serve.decode_mfu == pytest.approx(float(step.mfu))
    many = inference.decode_step(model, h100, batch=[1, 32], context=4096)
    with pytest.raises(ValueError, match="give one number"):
        SERVE.with_decode(many.mfu)


# --- roofline -----------------------------------------------------------------------

POD = inference.ServingHardware(peak_flops=1.97e14, bandwidth=8.1e11, n_accelerators=16)
THIRTY = inference.ServedModel(N=30e9, weight_bytes=1, kv_bytes_per_token=1e5)


def test_table_of_the_scaling_book():
    step = inference.decode_step(THIRTY, POD, [1, 4, 16, 64], 8192)
    assert 1e3 * step.cache == pytest.approx([0.06, 0.25, 1.01, 4.05], abs=6e-3)
    assert 1e3 * step.weights == pytest.approx([2.31] * 4, abs=6e-3)
    # printed from rounded step times
    printed = [421, 1558, 4810, 10063]
    assert step.tokens_per_second == pytest.approx(printed, rel=1.5e-3)
    assert step.per_accelerator == pytest.approx(step.tokens_per_second / 16)
    assert list(step.bound) == ["weights"] * 3 + ["cache"]


def test_llama_2_13b_on_eight_chips():
    """Printed in ms, total GiB over 6.56: units are mixed, so 2 % by the notes."""
    model = inference.ServedModel(
        N=13e9, kv_bytes_per_token=inference.kv_bytes_per_token(40, 40, 128)
    )
    eight = inference.ServingHardware(
        peak_flops=1.97e14, bandwidth=8.1e11, n_accelerators=8
    )
    step = inference.decode_step(model, eight, [1, 8, 16, 32, 64, 240], 8192)
    printed = [4.98, 12.13, 20.30, 36.65, 69.33, 249.09]
    assert 1e3 * step.step_time == pytest.approx(printed, rel=0.02)


@pytest.mark.parametrize(
    ("peak", "bandwidth", "weight_bytes", "batch"),
    [(1.97e14, 8.2e11, 2, 240), (1.97e14, 8.2e11, 1, 120), (9.89e14, 3.35e12, 2, 295)],
)
def test_critical_batch(peak, bandwidth, weight_bytes, batch):
    hardware = inference.ServingHardware(peak_flops=peak, bandwidth=bandwidth)
    model = inference.ServedModel(N=13e9, weight_bytes=weight_bytes)
    found = inference.critical_batch(model, hardware)
    assert found == pytest.approx(batch, rel=2e-3)
    step = inference.decode_step(model, hardware, found, 0)
    assert step.arithmetic == pytest.approx(step.weights)
    assert step.mfu == pytest.approx(1)


def test_above_the_critical_batch_throughput_is_flat_and_cache_sets_it():
    model = inference.ServedModel(N=8e9, kv_bytes_per_token=131072)
    h100 = inference.ServingHardware(peak_flops=9.89e14, bandwidth=3.35e12)
    B = inference.critical_batch(model, h100)
    speed = inference.decode_step(model, h100, [B, 10 * B], 8192).tokens_per_second
    assert speed[1] == pytest.approx(speed[0])
    fewer = inference.ServedModel(N=8e9, kv_bytes_per_token=131072 / 8)
    assert inference.decode_step(fewer, h100, B, 8192).tokens_per_second > 3 * speed[0]


@given(st.floats(0, 4), st.floats(0, 6))
def test_roofline_is_monotone_and_below_its_ceilings(b, c):
    h100 = inference.ServingHardware(peak_flops=9.89e14, bandwidth=3.35e12)
    model = inference.ServedModel(N=8e9, kv_bytes_per_token=131072)
    batch, context = 10.0**b, 10.0**c
    step = inference.decode_step(model, h100, batch, context)
    assert step.tokens_per_second <= 9.89e14 / 16e9 * (1 + 1e-12)
    assert 0 < step.mfu <= 1
    longer = inference.decode_step(model, h100, batch, 2 * context)
    assert longer.step_time > step.step_time
    assert longer.mfu < step.mfu
    slow, fast = step.expected
    assert slow < fast < step.tokens_per_second


def test_mixture_reads_what_it_touches():
    moe = inference.ServedModel(
        N=671e9, N_active=37e9, n_experts=256, n_active_experts=8
    )
    assert moe.touched([1, 8, 64]) == pytest.approx([0.031, 0.22, 0.87], abs=5e-3)
    assert moe.weights(1) == pytest.approx(2 * 37e9)
    assert moe.weights(1e6) == pytest.approx(2 * 671e9)
    h100 = inference.ServingHardware(peak_flops=9.89e14, bandwidth=3.35e12)
    dense = inference.critical_batch(inference.ServedModel(N=37e9), h100)
    assert inference.critical_batch(moe, h100) == pytest.approx(dense * 671 / 37)
    mixtral = inference.ServedModel.from_shape(SHAPES["mixtral-8x7b"])
    assert mixtral.weights(1) == pytest.approx(2 * mixtral.active)


def test_quantised_weights_speed_up_one_stream():
    h100 = inference.ServingHardware(peak_flops=9.89e14, bandwidth=3.35e12)
    speeds = [
        inference.single_stream_limit(
            inference.ServedModel(N=70e9, weight_bytes=b), h100
        )
        for b in (2, 1, 0.5)
    ]
    assert speeds == pytest.approx([23.93, 47.86, 95.71], rel=1e-3)


def test_grouped_queries_shrink_the_cache():
    assert inference.kv_bytes_per_token(
        40, 40, 128
    ) == 5 * inference.kv_bytes_per_token(40, 8, 128)


def test_missing_hardware_is_an_error_on_use():
    bare = inference.ServingHardware(peak_flops=1e15)
    with pytest.raises(ValueError, match="bandwidth of the accelerator is missing"):
        inference.decode_step(THIRTY, bare, 1, 1)
    with pytest.raises(ValueError, match="memory of the accelerator is missing"):
        inference.largest_batch(THIRTY, bare, 1)
    small = inference.ServingHardware(peak_flops=1e15, bandwidth=1e12, memory=16e9)
    with pytest.raises(lab.InfeasibleError, match="use more accelerators"):
        inference.largest_batch(THIRTY, small, 8192)


def test_impossible_mixtures_are_refused():
    with pytest.raises(ValueError, match="exceeds N"):
        inference.ServedModel(N=1e9, N_active=2e9, n_experts=8, n_active_experts=2)
    with pytest.raises(ValueError, match="no expert is idle"):
        inference.ServedModel(N=2e9, N_active=1e9)
    with pytest.raises(ValueError, match="experts alone would use"):
        inference.ServedModel(N=8e9, N_active=1e9, n_experts=4, n_active_experts=2)
    with pytest.raises(ValueError, match="exceeds n_experts"):
        inference.ServedModel(N=8e9, n_experts=2, n_active_experts=4)


# --- samples ------------------------------------------------------------------------


@pytest.mark.parametrize(("a", "b", "s"), [(0.5, 5, 10), (0.2, 2, 100), (1.5, 3, 7)])
def test_pass_at_is_its_integral(a, b, s):
    failed, _ = quad(lambda p: (1 - p) ** (s + b - 1) * p ** (a - 1), 0, 1)
    expected = 1 - failed / beta_function(a, b)
    assert inference.pass_at(s, a, b) == pytest.approx(expected, rel=1e-6)


def test_tail_of_many_samples():
    exact = 1 - inference.pass_at(1e6, 0.5, 5)
    # lgamma of 1e6 has ten digits left after its subtraction
    assert inference.pass_at_tail(1e6, 0.5, 5) == pytest.approx(exact, rel=1e-4)


def test_sampled_optimum_agrees_with_brute_force():
    law, C, serve, H, gamma = BESIROGLU_2024, 1e22, 1e12, 0.3, 0.4
    plan = inference.sampled_optimal(law, C, serve, H, gamma)

    def cost(x):
        N = np.exp(x)
        return law._loss(N, C / (6 * N)) + H * (serve / (2 * N)) ** -gamma

    x, least = brute_force(cost, np.log(1e8), np.log(1e11))
    assert pytest.approx(least, abs=1e-12) == plan.L
    assert np.log(plan.N) == pytest.approx(x, abs=1e-6)
    best = allocation.compute_optimal(law, C)
    rising = inference.sampled_optimal(law, C, [1e11, 1e12, 1e14, 1e20], H, gamma).N
    assert np.all(np.diff(rising) > 0)
    assert rising[-1] < best.N
    assert rising[-1] == pytest.approx(best.N, rel=1e-2)


# --- released models ----------------------------------------------------------------


def test_released_models_say_how_sure_they_are():
    primary, sourced, every = (
        inference.released_models(trust) for trust in ("primary", "sourced", "all")
    )
    assert len(primary.names) < len(sourced.names) < len(every.names) == 71
    assert primary.primary.all()
    assert "unverified" not in sourced.evidence
    assert all(place for place in every.where)
    assert np.all(every.N_active <= every.N_total)
    assert every.mixture.sum() > 5
    assert "DeepSeek-V3" in primary._repr_html_()


def test_small_released_models_imply_much_demand():
    """Of 25 sourced models below 20B, 20 or 19 imply more than 1e13 tokens served."""
    found = inference.released_models("primary")
    small = found.N_active < 20e9
    assert small.sum() == 25
    counts = [
        int(
            (inference.implied_demand(law, found.N_active, found.D)[small] > 1e13).sum()
        )
        for law in (BESIROGLU_2024, SARDANA_2024)
    ]
    assert counts == [20, 19]


# --- digits and refusals ------------------------------------------------------------


@given(
    st.floats(-6, 6).map(lambda e: 10.0**e),
    st.floats(-6, 15).map(lambda e: 10.0**e),
)
def test_one_sample_solves_the_mean_of_the_beta_distribution(a, b):
    """Exact: E[pass@1] = a / (a + b), at every size of b."""
    assert inference.pass_at(1, a, b) == pytest.approx(a / (a + b), rel=1e-9)


@given(
    st.integers(1, 30),
    st.floats(-3, 3).map(lambda e: 10.0**e),
    st.floats(-3, 14).map(lambda e: 10.0**e),
)
def test_pass_at_is_the_product_over_the_samples(s, a, b):
    failed = np.log1p(-a / (a + b + np.arange(s))).sum()
    assert inference.pass_at(s, a, b) == pytest.approx(-np.expm1(failed), rel=1e-9)


def test_the_tail_keeps_its_digits_for_large_b():
    """For b far above a the ratio of gamma functions is b^a."""
    assert inference.pass_at_tail(1e16, 0.5, 1e14) == pytest.approx(0.1, rel=1e-12)


@pytest.mark.parametrize(
    ("name", "build"),
    [
        ("requests", lambda x: inference.Demand(input_tokens=1, output_tokens=1, requests=x)),
        ("input_tokens", lambda x: inference.Demand(input_tokens=x, output_tokens=1, requests=1)),
        ("usd_per_hour", lambda x: inference.TrainingCost(usd_per_hour=x, peak_flops=1e15, mfu=0.4)),
        ("mfu", lambda x: inference.TrainingCost(usd_per_hour=2, peak_flops=1e15, mfu=x)),
        ("peak_flops", lambda x: inference.ServingHardware(peak_flops=x)),
        ("bandwidth", lambda x: inference.ServingHardware(peak_flops=1e15, bandwidth=x)),
        ("N", lambda x: inference.ServedModel(N=x)),
        ("mfu", lambda x: inference.SARDANA_2024_SERVING.with_decode(x)),
        ("H", lambda x: inference.sampled_optimal(BESIROGLU_2024, 1e22, 1e12, x, 0.3)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("several", [[0.2, 0.3], np.array([0.5])], ids=["list", "one"])
def test_several_numbers_for_one_are_refused_by_name(name, build, several):
    with pytest.raises(ValueError, match=rf"^{name} has shape .*give one number"):
        build(several)


def test_text_for_a_utilisation_is_refused_by_name():
    with pytest.raises(ValueError, match=r"mfu='x' is not a number"):
        inference.SARDANA_2024_SERVING.with_decode("x")


def test_a_loss_below_every_size_says_so():
    with pytest.raises(lab.InfeasibleError, match="no size can reach it"):
        inference.lifetime_optimal(BESIROGLU_2024, 0, loss=1.8)


def test_nothing_served_gives_plain_zeros():
    one = inference.factors_for_size(BESIROGLU_2024, 1.0).demand_factor
    assert str(float(one)) == "0.0"
    none = inference.Demand(input_tokens=1, output_tokens=1, requests=0)
    free = inference.cheapest(
        BESIROGLU_2024, TRAIN, inference.SARDANA_2024_SERVING, none, loss=2.1
    )
    assert free.decode_share == 0.0
