"""One plan: limits that must reduce to known answers, published runs, and monotony."""

import json
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chinchilla_lab.allocation import compute_optimal, optimal_for_loss
from chinchilla_lab.checks import InfeasibleError
from chinchilla_lab.cluster import (
    MIXTURE_ERROR,
    STACKS,
    Accelerator,
    Cluster,
    Layout,
    Reliability,
    published_hours,
)
from chinchilla_lab.fitting import example_runs, fit_parametric
from chinchilla_lab.laws import (
    BESIROGLU_2024,
    HOFFMANN_2022,
    MUENNIGHOFF_2023_C4,
    MUENNIGHOFF_2023_REPEATED,
    RATIO_20,
)
from chinchilla_lab.planning import (
    UTILISATION_BAND,
    ClosureError,
    choose,
    closure,
    compare,
    estimate_run,
    export,
    intervals,
    levers,
    measured_shift,
    mfu_slope,
    plan,
    require,
    sensitivity,
    shift,
    solve,
    solve_at,
    sweep,
    typed_plan,
)
from chinchilla_lab.planning.losses import DataLimit
from chinchilla_lab.planning.time_doubt import MAPE_TO_SIGMA, UPPER_BOUND
from chinchilla_lab.shape import SHAPES, TransformerShape, shape_for
from chinchilla_lab.sources import read_rows
from chinchilla_lab.units import DAY, FLOP_PER_ND
from chinchilla_lab.validation import measured, scores

LAW = BESIROGLU_2024
IDEAL = {
    "utilisation": 0.4,
    "shape_family": None,
    "reliability": None,
    "price": "2@2026-11",
}


def h100(n):
    return Cluster(accelerator="h100-sxm-80gb", n_accelerators=n)


LOFT, HALL = h100(64), h100(16384)


@pytest.fixture(scope="module")
def loft():
    return plan(LOFT, deadline=30 * DAY)


@pytest.fixture(scope="module")
def hall():
    return plan(HALL, deadline=60 * DAY)


# --- reductions -------------------------------------------------------------------


@pytest.mark.parametrize("law", [BESIROGLU_2024, HOFFMANN_2022, MUENNIGHOFF_2023_C4])
@pytest.mark.parametrize("C", [1e20, 1e23, 1e26])
def test_without_limits_the_plan_is_compute_optimal(law, C):
    made = plan(LOFT, law=law, compute=C, **IDEAL)
    best = compute_optimal(law, C)
    # a bowl that is flat to the sixteenth digit pins its bottom to the eighth
    assert pytest.approx(best.N, rel=1e-5) == made.N
    assert pytest.approx(best.D, rel=1e-5) == made.D
    assert made.loss == pytest.approx(float(best.L), rel=1e-12)


def test_a_deadline_is_a_budget_of_compute():
    made = plan(LOFT, deadline=30 * DAY, **IDEAL)
    C = 64 * 989.4e12 * 0.4 * 30 * DAY
    assert pytest.approx(compute_optimal(LAW, made.C).N, rel=1e-5) == made.N
    assert pytest.approx(C, rel=1e-3) == made.C


@pytest.mark.parametrize("objective", ["time", "cost", "lifetime"])
def test_least_time_to_a_loss_is_least_compute(objective):
    made = plan(LOFT, objective=objective, target_loss=2.1, **IDEAL)
    best = optimal_for_loss(LAW, 2.1)
    assert pytest.approx(float(best.N), rel=1e-5) == made.N
    assert pytest.approx(float(best.C), rel=1e-8) == made.C


def test_an_ideal_machine_searched_in_earnest_is_compute_optimal():
    """Shapes, layouts, memory and links as in any plan, but none of them costs time."""
    chip = Accelerator(
        id="ideal", name="ideal", peaks={"bf16": 1e15}, gemm_ceilings={"bf16": 1e15},
        hbm_bytes=1e30, hbm_bandwidth=1e30, n_cores=1, scaleup_bandwidth=1e30,
        scaleup_domain=8, scaleout_bandwidth=1e30, source="made up", where="test",
        accessed="2026", evidence="estimate",
    )  # fmt: skip
    machine = Cluster(accelerator=chip, n_accelerators=64, latency=0.0)
    stack = STACKS["uncalibrated"].with_(attention=1.0)
    made = plan(
        machine, deadline=30 * DAY, stack=stack, reliability=None, seq_len=1024,
        batch_limit=float("inf"), price="1@2026-11",
    )  # fmt: skip
    # attention counts in the step and not in 6ND, which favours width by a trifle;
    # 3 % of N cost 0.03 % of the compute
    assert made.size_ratio == pytest.approx(1.0, abs=0.06)
    assert made.utilisation > 0.85


@pytest.mark.parametrize(
    ("T", "N", "D"), [(1e12, 15.1e9, 788e9), (2e12, 12.8e9, 1017e9)]
)
def test_demand_alone_gives_the_lifetime_optimum(T, N, D):
    """Compute-optimal 23.7B at 40 % for 30 days; at equal loss less is served."""
    first = plan(LOFT, deadline=30 * DAY, **IDEAL)
    made = plan(
        LOFT, objective="lifetime", target_loss=first.loss, inference_tokens=T, **IDEAL
    )
    assert pytest.approx(N, rel=0.01) == made.N
    assert pytest.approx(D, rel=0.01) == made.D
    # stationarity: alpha A N^-alpha = beta B D^-beta (1 + T / 3D)
    left = LAW.alpha * LAW.A * made.N**-LAW.alpha
    right = LAW.beta * LAW.B * made.D**-LAW.beta * (1 + T / (3 * made.D))
    assert left == pytest.approx(right, rel=1e-4)


def test_lifetime_optimum_meets_a_brute_force():
    T, loss = 5e12, 2.05
    made = plan(
        LOFT, objective="lifetime", target_loss=loss, inference_tokens=T, **IDEAL
    )
    N = np.geomspace(4e9, 1e11, 200_001)
    with np.errstate(invalid="ignore"):
        D = (LAW.B / (loss - LAW.E - LAW.A * N**-LAW.alpha)) ** (1 / LAW.beta)
    total = 6 * N * D + 2 * N * T
    assert pytest.approx(N[np.nanargmin(total)], rel=1e-3) == made.N


def test_a_data_limit_alone_gives_the_repeated_data_optimum():
    """DC12 and DC13: 7.026B on 9.488 epochs of 25B tokens at 1e22 FLOP."""
    made = plan(
        LOFT, law=MUENNIGHOFF_2023_REPEATED, compute=1e22, unique_tokens=25e9, **IDEAL
    )
    assert pytest.approx(7.02615907e9, rel=1e-4) == made.N
    assert made.epochs == pytest.approx(9.48835146, rel=1e-4)


def test_published_loss_of_repeated_tokens():
    """DC01: the check value of the authors' README."""
    limit = DataLimit(law=MUENNIGHOFF_2023_REPEATED, unique=25e9)
    assert limit.loss(np.asarray(6.34e9), np.asarray(242e9)) == pytest.approx(
        2.22564409, rel=1e-8
    )


def test_unique_tokens_beyond_what_is_used_change_nothing(loft):
    again = plan(LOFT, deadline=30 * DAY, unique_tokens=1e14)
    assert (again.N, again.D, again.loss) == (loft.N, loft.D, loft.loss)


def test_tokens_are_the_inverse_of_the_loss():
    limit = DataLimit(law=LAW, unique=1e11)
    N = np.array([5e9, 2e10, 6e10])
    for loss in (2.3, 2.15):
        D = limit.tokens(N, loss)
        ok = np.isfinite(D)
        assert ok.any()
        assert limit.loss(N[ok], D[ok]) == pytest.approx(loss, abs=1e-6)


# --- monotony ---------------------------------------------------------------------


@settings(max_examples=25)
@given(
    st.floats(5.0, 100.0), st.floats(1.05, 4.0),
    st.sampled_from(["deadline", "unique_tokens", "budget", "compute"]),
)  # fmt: skip
def test_tightening_never_helps(days, tighter, what):
    limits = {
        "deadline": days * DAY, "unique_tokens": 3e10 * days, "budget": 3e3 * days,
        "compute": 3e21 * days,
    }  # fmt: skip
    loose = plan(LOFT, **limits, **IDEAL)
    tight = plan(LOFT, **(limits | {what: limits[what] / tighter}), **IDEAL)
    assert tight.loss >= loose.loss - 1e-9


@settings(max_examples=15)
@given(st.floats(2.03, 2.3), st.floats(1.0, 1.1), st.floats(0.0, 1e13))
def test_a_lower_loss_and_more_demand_never_cost_less(loss, factor, T):
    kind = {"objective": "lifetime", **IDEAL}
    one = plan(LOFT, target_loss=loss * factor, inference_tokens=T, **kind)
    two = plan(LOFT, target_loss=loss, inference_tokens=T, **kind)
    three = plan(LOFT, target_loss=loss, inference_tokens=2 * T, **kind)
    assert one.score <= two.score * (1 + 1e-9)
    assert two.score <= three.score * (1 + 1e-9)


@pytest.mark.parametrize(
    "tighter",
    [
        {"deadline": 20 * DAY}, {"unique_tokens": 1e11}, {"memory_limit": 40e9},
        {"options": {"recompute": ("full",)}}, {"batch_limit": 2**20},
        {"reliability": Reliability(failures_per_node_day=0.5, band=(0.5, 0.5))},
        {"budget": 5e4},
    ],
    ids=lambda d: next(iter(d)),
)  # fmt: skip
def test_tightening_a_searched_plan_never_helps(loft, tighter):
    made = plan(LOFT, **({"deadline": 30 * DAY} | tighter))
    assert made.loss >= loft.loss - 1e-9


@pytest.mark.parametrize("thorough", [False, True])
@pytest.mark.parametrize(
    ("n", "days", "limits"),
    [
        # tight ones were better by 1.2e-4 and 2.5e-3 nats: 976 = 16 x 61 sequences and
        # 3000 = 8 x 375 leave their replicas no larger micro-batch
        (16, 8.5, (1e6, 1.7e6, 2.5e6, 4e6, 4.1e6)),
        (8, 78.5, (9e6, 11.21e6, 12.31e6)),
        (24, 20.0, (1e6, 1.3e6, 2.1e6, 3.3e6)),
    ],
)
def test_a_tighter_batch_limit_never_helps(n, days, limits, thorough):
    chip = "a100-sxm-40gb" if n == 8 else "h100-sxm-80gb"
    machine = Cluster(accelerator=chip, n_accelerators=n)
    losses = [
        plan(machine, deadline=days * DAY, batch_limit=b, thorough=thorough).loss
        for b in limits
    ]
    # batches 0.2 % apart count as one: that is worth less than a millionth of a nat
    for loose, tight in zip(losses[1:], losses, strict=False):
        assert loose <= tight + 1e-6


@settings(max_examples=8, deadline=None)
@given(
    st.sampled_from([8, 16, 20, 24, 64, 96]), st.floats(5.0, 90.0),
    st.floats(5.7, 7.2), st.floats(1.01, 2.0), st.booleans(),
)  # fmt: skip
def test_a_batch_limit_is_monotone(n, days, exponent, tighter, waste):
    limits = {
        "deadline": days * DAY, "thorough": False,
        "critical_batch": 1e6 if waste else None,
    }  # fmt: skip
    loose, tight = (
        plan(h100(n), batch_limit=10**exponent / k, **limits).loss
        for k in (1.0, tighter)
    )
    # where no examples are wasted the only gap is that batches 0.2 % apart count as
    # one; with waste smaller batches are a grid of powers of two, and the limit itself
    # may lie nearer to the best than any of them
    slack = 1e-4 if waste else 2e-3 * (loose - LAW.E) * LAW.gamma
    assert tight >= loose - slack


# --- what comes out ---------------------------------------------------------------


def test_shapes_are_real(loft, hall):
    for made in (loft, hall, *loft.alternatives, *hall.alternatives):
        shape = made.shape
        assert shape.d_model % shape.n_heads == 0
        assert shape.n_heads % shape.kv_heads == 0
        assert shape.d_ff % 256 == 0
        assert made.speed.memory <= made.problem.cluster.chip.memory
        assert closure(made).holds
        assert pytest.approx(round(made.steps) * made.batch_tokens, rel=1e-12) == made.D


def test_alternatives_are_ranked_and_differ(loft):
    scored = [loft.score, *(p.score for p in loft.alternatives)]
    assert scored == sorted(scored)
    assert len({p.shape for p in (loft, *loft.alternatives)}) == len(scored)


def test_best_shape_beats_a_brute_force_over_shapes(loft):
    from chinchilla_lab.planning.candidates import candidate
    from chinchilla_lab.shape import shapes_near

    problem = loft.problem
    every = [
        p
        for _, shape in shapes_near(loft.N, 0.35, "llama")
        for batch in problem.batches()
        if (p := candidate(problem, shape, batch)) is not None
    ]
    assert len(every) > 100
    # the second pass looks at 160 of the shapes: on 16,384 it misses 0.4 % of compute
    slope = LAW.gamma * (loft.loss - LAW.E)
    assert (loft.score - min(p.score for p in every)) / slope < 3e-3


@pytest.mark.parametrize("n", [64, 512, 2048])
def test_healthy_clusters_hardly_move_N(n):
    """Notes, section 14: ratios of 0.69 to 1.25, and at most 4 % of time for naive N."""
    days = 60 if n > 512 else 30
    made = plan(h100(n), deadline=days * DAY)
    assert 0.69 <= made.size_ratio <= 1.25
    naive = compute_optimal(LAW, made.C)
    near = plan(h100(n), deadline=days * DAY, keep=200)
    around = [p for p in (near, *near.alternatives) if abs(p.N / naive.N - 1) < 0.03]
    best = min(p.loss for p in around)
    # the slope of the frontier turns nats into time
    slope = LAW.gamma * (made.loss - LAW.E)
    assert (best - made.loss) / slope < 0.04


def test_a_small_batch_takes_the_utilisation_of_a_large_cluster(hall):
    """Notes: 46 to 17 % where 65M-token batches become 4M."""
    capped = plan(HALL, deadline=60 * DAY, batch_limit=2**22)
    assert hall.utilisation > 0.45
    every = plan(HALL, deadline=60 * DAY, batch_limit=2**22, n_working=16384)
    assert every.utilisation < 0.22
    # half of them do better: the rest would only wait for one another
    assert capped.loss < every.loss
    assert capped.n_idle >= 8192
    assert capped.utilisation < 0.25
    # the size falls with the compute that is left, hardly with taste
    assert capped.N < hall.N
    assert 0.8 < capped.size_ratio < 1.25
    ratio = (capped.C / hall.C) ** LAW.a
    assert pytest.approx(ratio, rel=0.35) == capped.N / hall.N


def test_a_full_plan_on_16384_takes_less_than_two_seconds():
    plan(HALL, deadline=59 * DAY)  # ladders are built once
    start = time.process_time()
    plan(HALL, deadline=61 * DAY, memory_limit=84e9)
    assert time.process_time() - start < 2.0


def test_a_full_plan_with_a_critical_batch_takes_less_than_two_seconds():
    """A ladder of batches is searched too, some thirteen of them."""
    plan(HALL, deadline=59 * DAY)
    start = time.process_time()
    made = plan(HALL, deadline=60 * DAY, critical_batch=16e6)
    assert time.process_time() - start < 2.0
    assert made.batch_tokens < 16e6


def test_progress_is_told():
    told = []
    plan(LOFT, deadline=11 * DAY, progress=told.append)
    assert told == sorted(told)
    assert told[-1] == pytest.approx(1.0)


def test_a_waste_of_examples_makes_the_batch_smaller():
    plain = plan(LOFT, deadline=30 * DAY, batch_limit=2**24)
    wasted = plan(LOFT, deadline=30 * DAY, batch_limit=2**24, critical_batch=4e6)
    assert wasted.batch < plain.batch
    assert wasted.loss > plain.loss


@pytest.mark.parametrize("tokens", [66_000, 2**20, 2**24, float("inf")])
def test_a_tighter_batch_limit_never_helps_with_waste(tokens):
    limits = {"deadline": 30 * DAY, "critical_batch": 3e5}
    free = plan(LOFT, **limits)
    tight = plan(LOFT, batch_limit=tokens, **limits)
    if tokens <= free.problem.batches()[0] * 4096:
        assert tight.loss >= free.loss - 1e-9
    # the best batch lies inside the ones that were tried
    assert min(tight.problem.batches()) < tight.batch or tight.batch == 1


def test_no_batch_limit_is_as_good_as_a_large_one():
    free = plan(LOFT, deadline=30 * DAY, batch_limit=float("inf"))
    assert free.loss <= plan(LOFT, deadline=30 * DAY, batch_limit=1e8).loss + 1e-6


def test_no_plan_runs_above_the_peak():
    fast = STACKS["uncalibrated"]
    chip = h100(64).chip
    boosted = replace(chip, peaks={"bf16": 4e14}, gemm_ceilings={"bf16": 4e14})
    object.__setattr__(boosted, "gemm_ceilings", {"bf16": 8e14})
    machine = Cluster(accelerator=boosted, n_accelerators=64)
    with pytest.raises(ValueError, match="of the dense peak"):
        plan(machine, deadline=30 * DAY, stack=fast)


@pytest.mark.parametrize("C", [1e24, 1e26])
def test_the_last_float_of_a_law_chooses_no_size(C):
    """Where repeats add nothing the valley has no lowest point: the smallest size."""
    nudged = [LAW, *(
        LAW.with_(**{k: float(np.nextafter(getattr(LAW, k), to))})
        for k in ("E", "A", "beta") for to in (0.0, 9e9)
    )]  # fmt: skip
    made = [
        plan(LOFT, law=law, compute=C, unique_tokens=5e10, **IDEAL) for law in nudged
    ]
    for p in made[1:]:
        assert pytest.approx(made[0].N, rel=1e-6) == p.N
    limit = DataLimit(law=LAW, unique=5e10)
    best = min(limit.loss(N, C / (6.0 * N)) for N in np.geomspace(1e9, 1e13, 2000))
    if made[0].loss > limit.as_good_as_floor:
        assert limit.loss(made[0].N, C / (6.0 * made[0].N)) == pytest.approx(
            best, abs=2e-9
        )
    else:
        # worn out: the soonest plan within 1e-4 nats of the floor, on less compute
        assert made[0].C < C
        assert best - 2e-9 <= made[0].loss <= limit.floor() + 1e-4 + 1e-9


def test_worn_out_data_stop_the_clock():
    short, long = (plan(LOFT, deadline=d * DAY, unique_tokens=1e9) for d in (3, 300))
    # of plans with the same loss the soonest, whatever the deadline
    assert (long.days, long.loss, long.shape) == (short.days, short.loss, short.shape)
    assert [p.days for p in long.alternatives] == [p.days for p in short.alternatives]
    assert long.days < 0.5
    limit = DataLimit(law=LAW, unique=1e9)
    assert limit.floor() < long.loss <= limit.floor() + 1e-4
    assert long.score == long.loss
    # no other shape gets there sooner
    every = plan(
        LOFT, objective="time", target_loss=limit.floor() + 1e-4, unique_tokens=1e9,
        keep=10_000,
    )  # fmt: skip
    assert long.seconds <= min(p.seconds for p in every.alternatives) * (1 + 1e-12)
    assert any("knows no overfitting" in words for words in long.assumptions)
    rows = {w.limit: w for w in sensitivity(long).rows}
    assert rows["unique tokens"].binds
    assert [w.limit for w in rows.values() if w.binds] == ["unique tokens"]
    assert rows["unique tokens"].worth < -0.1


@pytest.mark.parametrize("days", [40, 400, 4000])
def test_worn_out_data_of_any_size_meet_a_brute_force(days):
    made = plan(LOFT, deadline=days * DAY, unique_tokens=5e9, **IDEAL)
    limit = DataLimit(law=LAW, unique=5e9)
    N = np.geomspace(2e9, 5e10, 4001)
    work = N * limit.tokens(N, limit.floor() + 1e-4)
    assert pytest.approx(6 * np.nanmin(work), rel=1e-6) == made.C
    assert pytest.approx(N[np.nanargmin(work)], rel=2e-3) == made.N


def test_serving_counts_against_the_budget():
    free = plan(LOFT, budget=2e5, **(IDEAL | {"price": "2@2026-11"}))
    served = plan(
        LOFT, budget=2e5, inference_tokens=2e12, **(IDEAL | {"price": "2@2026-11"})
    )
    assert served.N < free.N
    assert served.loss > free.loss
    assert served.dollars + served.serving_dollars == pytest.approx(2e5, rel=1e-6)
    with pytest.raises(InfeasibleError, match="serving alone"):
        plan(LOFT, budget=1.0, inference_tokens=1e20, **IDEAL)


# --- refusals ---------------------------------------------------------------------


def test_refusals_name_the_way_out():
    with pytest.raises(InfeasibleError, match="times as many accelerators"):
        plan(LOFT, objective="time", target_loss=1.95, deadline=30 * DAY)
    with pytest.raises(InfeasibleError, match="above the floor"):
        plan(LOFT, objective="time", target_loss=1.8)
    with pytest.raises(InfeasibleError, match="find more unique tokens"):
        plan(LOFT, objective="time", target_loss=1.95, unique_tokens=1e9)
    with pytest.raises(InfeasibleError, match="use more accelerators"):
        plan(h100(8), compute=1e26, memory_limit=2e9)
    with pytest.raises(ValueError, match="give deadline, budget or compute"):
        plan(LOFT)
    with pytest.raises(ValueError, match="needs target_loss"):
        plan(LOFT, objective="time")
    with pytest.raises(ValueError, match=r"give utilisation"):
        plan(LOFT, deadline=DAY, shape_family=None)
    with pytest.raises(ValueError, match="holds not one sequence"):
        plan(LOFT, deadline=DAY, batch_limit=100)
    with pytest.raises(TypeError, match="knows no loss"):
        plan(LOFT, deadline=DAY, law=RATIO_20)
    with pytest.raises(ValueError, match="give price"):
        plan(Cluster(accelerator="mi300x", n_accelerators=8), budget=1e5)


def test_out_of_time_names_enough_accelerators():
    with pytest.raises(InfeasibleError) as refusal:
        plan(LOFT, objective="time", target_loss=2.0, deadline=30 * DAY)
    n = int(str(refusal.value).split("(")[1].split(")")[0].replace(",", ""))
    # with a few percent more for what a larger cluster loses
    rich = plan(h100(64 * (1 - (-n // 64))), objective="time", target_loss=2.0)
    assert rich.days < 32


# --- published runs ---------------------------------------------------------------

RUNS = published_hours()


def test_llama_3_405b_hours_in_the_interval_metahours():
    """TP 8, PP 16, DP 128, 16.8M tokens a step on 16,384; the paper says 30.84M h.

    Whether this plan closes is the memory model's to say, and the page says it; that of
    the searched layouts does, see test_planning_doubt.py. The run is left out of its
    own interval.
    """
    row = RUNS["llama-3.1-405b"]
    layout = Layout(tp=8, pp=16, dp=128, n_chunks=4, zero=1, sequence_parallel=True)
    made = typed_plan(
        HALL,
        SHAPES["llama-3-405b"],
        row.D_tokens,
        2048,
        layout,
        seq_len=8192,
        stack="llama-3",
    )
    doubt = intervals(made, leave_out=["llama-3.1-405b"])
    assert doubt.hours[0] <= row.hours <= doubt.hours[1]
    assert doubt.days[0] <= row.days <= doubt.days[1]


def test_llama_2_70b_hours_in_the_interval_metahours():
    """Batches of 4M tokens; the number of A100 is not stated, 2,048 is assumed."""
    row = RUNS["llama-2-70b"]
    machine = Cluster(accelerator="a100-sxm-80gb", n_accelerators=2048)
    made = typed_plan(machine, SHAPES["llama-2-70b"], row.D_tokens, 1024)
    low, high = intervals(made, leave_out=["llama-2-70b"]).hours
    assert low <= row.hours <= high


def test_deepseek_v3_hours_in_the_band_deepseek2024v3():
    """37B active on H800, whose dense bf16 peak is that of H100; no shape is planned.

    The band is a hull of published runs: this is a check of the table, and no score.
    """
    row = RUNS["deepseek-v3"]
    found = estimate_run(row.N_active, row.D_tokens, h100(2048))
    assert found.assumed
    assert found.hours[0] <= row.hours <= found.hours[2]


def test_bloom_days_in_the_interval_bloom():
    """104.5 s a step on 384 A100: 28.8 days for 100B tokens."""
    (row,) = [r for r in measured("bloom-plans") if r.name == "bloom-154"]
    made = typed_plan(
        row.cluster, row.shape, 1e11, row.batch, row.layout, seq_len=row.seq_len,
        stack="bloom", reliability=None,
    )  # fmt: skip
    said = row.seconds * 1e11 / (row.batch * row.seq_len) / DAY
    assert said == pytest.approx(28.8, rel=0.01)
    # a step that was measured, so what whole runs take beside it has no part
    low, high = intervals(made, whole_run=False).days
    assert low <= said <= high


@pytest.mark.parametrize(
    "run", [r for r in RUNS.values() if r.accelerator], ids=lambda r: r.id
)
def test_whole_runs_lie_in_the_band(run):
    machine = Cluster(accelerator=run.accelerator, n_accelerators=1024)
    found = estimate_run(run.N_active, run.D_tokens, machine)
    assert found.hours[0] <= run.hours <= found.hours[2]


def test_typed_layout_that_does_not_fit_is_refused():
    layout = Layout(dp=64)
    made = typed_plan(LOFT, SHAPES["llama-3-70b"], 1e11, 512, layout, seq_len=8192)
    assert not closure(made).holds
    with pytest.raises(ClosureError, match="memory needed fits"):
        require(closure(made))


# --- doubt ------------------------------------------------------------------------


def test_model_error_covers_nine_of_ten_published_rows():
    inside, bound, mixed = [], [], []
    for score in scores():
        if score.table.name == "nanotron-sweep-slow":
            continue  # jobs below a fifth of the peak, which the model does not cover
        if score.table.kind == "mixture":
            mixed += list(1.0 + score.errors)
            continue
        error = STACKS[score.table.stack].error * MAPE_TO_SIGMA
        inside += list(np.abs(np.log1p(score.errors)) < 1.645 * error)
        factors = 1.0 + score.uncalibrated
        bound += list((factors > UPPER_BOUND[0]) & (factors < UPPER_BOUND[1]))
    assert len(inside) > 150
    assert np.mean(inside) >= 0.9
    assert np.mean(bound) >= 0.9
    low, high = MIXTURE_ERROR
    assert np.mean((np.array(mixed) > low) & (np.array(mixed) < high)) > 0.9


def test_intervals_hold_their_parts(loft, hall):
    for made in (loft, hall):
        doubt = intervals(made)
        assert doubt.N[0] < made.N < doubt.N[1]
        assert doubt.D[0] < made.D < doubt.D[1]
        assert doubt.days[0] < doubt.days[1]
        by_name = {d.source: d for d in doubt.sources}
        low, high = by_name["price"].dollars
        assert made.cost.low < low < high < made.cost.high
        # the law is what widens N, the model what widens days
        assert by_name["which law"].N[1] / by_name["which law"].N[0] > 1.5
        assert "doubt" in doubt._repr_html_()
    # more failures, more drift and the same law: the large cluster is known less well
    wide = [d.days[1] / d.days[0] for d in (intervals(loft, 0.8), intervals(hall, 0.8))]
    assert min(wide) > 1.05


def test_intervals_hold_the_loss(loft):
    doubt = intervals(loft)
    assert doubt.loss[0] < loft.loss < doubt.loss[1]
    by_name = {d.source: d for d in doubt.sources}
    # a slower machine sees fewer tokens until the deadline
    slow = loft.D * loft.days / by_name["step model"].days[1]
    assert by_name["step model"].loss[1] == pytest.approx(
        float(LAW.loss(loft.N, slow)), rel=1e-4
    )
    other = float(HOFFMANN_2022.loss(loft.N, loft.D))
    assert by_name["which law"].loss[0] == pytest.approx(other, rel=1e-9)
    assert "loss [nats/token]" in doubt._repr_html_()
    record = compare([loft]).records[0]
    assert (record["loss_nats_p5"], record["loss_nats_p95"]) == doubt.loss
    # at a target the loss is what was asked, by this law
    timed = plan(LOFT, objective="time", target_loss=2.3)
    ends = {d.source: d for d in intervals(timed).sources}["step model"].loss
    assert ends == pytest.approx((timed.loss, timed.loss), rel=1e-9)


@pytest.mark.parametrize("chip", ["b200-sxm", "gb200-nvl72"])
def test_a_stack_of_one_node_says_so_on_many(chip):
    made = plan(Cluster(accelerator=chip, n_accelerators=1152), deadline=DAY)
    assert made.problem.stack.name == "simumax-b200"
    assert any("fitted on one node" in words for words in made.assumptions)


def test_a_name_is_no_cluster():
    for call in (
        lambda: plan("loft", deadline=DAY),
        lambda: typed_plan("loft", SHAPES["llama-3-8b"], D=1e11, batch=512),
    ):
        with pytest.raises(ValueError, match="example_cluster"):
            call()


@pytest.mark.parametrize(
    ("limits", "says"),
    [
        ({"budget": 2e6, "inference_tokens": 1e18}, "serving 1e6T from even"),
        ({"budget": 2e6, "inference_tokens": 1e15}, "raise it, serve fewer tokens"),
        ({"budget": 2e6, "inference_tokens": 1e18, **IDEAL}, "serving"),
        ({"deadline": DAY, "unique_tokens": 1.0}, "fewer than one sequence"),
    ],
)
def test_refusals_name_what_is_short(limits, says):
    with pytest.raises(ValueError, match=says):
        plan(LOFT, **limits)


def test_same_seed_same_intervals(loft):
    assert intervals(loft, seed=3).days == intervals(loft, seed=3).days


def test_naming_the_stack_narrows_the_days():
    named = intervals(plan(LOFT, deadline=30 * DAY, stack="megatron-bridge")).steps.days
    unnamed = intervals(plan(LOFT, deadline=30 * DAY)).steps.days
    assert unnamed[1] / unnamed[0] > named[1] / named[0]


def test_upper_bounds_only_lengthen():
    made = plan(LOFT, deadline=30 * DAY, stack="uncalibrated")
    assert intervals(made).steps.days[0] > 0.99 * made.days
    assert "upper bound" in made.label


def test_a_fitted_law_brings_its_own_scatter():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        law = fit_parametric(
            replace(example_runs("grid64"), N_counts="total"), resamples=60
        )
    made = plan(LOFT, law=law, deadline=30 * DAY)
    doubt = {d.source: d for d in intervals(made).sources}["runs behind the law"]
    assert doubt.note == "resamples of the fit"
    assert doubt.N[0] < doubt.N[1]


# --- what binds -------------------------------------------------------------------


def test_a_day_is_worth_the_slope_of_the_frontier():
    """dL/dt = -gamma (L - E) / t; the blueprint says 1.4e-3 nats a day."""
    made = plan(LOFT, deadline=30 * DAY, **IDEAL)
    row = {w.limit: w for w in sensitivity(made).rows}["deadline"]
    slope = LAW.gamma * (made.loss - LAW.E) / 30
    assert slope == pytest.approx(1.4e-3, rel=0.03)
    # a day of three more, as a plan of 33 days has it: less than the first one
    step = (made.loss - LAW.E) * (1.0 - 1.1**-LAW.gamma) / 3
    assert -row.worth == pytest.approx(step, rel=1e-3)
    assert 0.93 * slope < -row.worth < slope
    one = {w.limit: w for w in sensitivity(made).rows}["accelerators"]
    assert -one.worth == pytest.approx(step * 30 / 64, rel=0.02)


def test_worth_of_a_day_meets_a_new_plan():
    made = plan(LOFT, deadline=30 * DAY, **IDEAL)
    more = plan(LOFT, deadline=31 * DAY, **IDEAL)
    row = {w.limit: w for w in sensitivity(made).rows}["deadline"]
    assert more.loss - made.loss == pytest.approx(row.worth, rel=0.05)


@pytest.mark.parametrize(
    ("limits", "binds", "slack"),
    [
        ({"deadline": 30 * DAY}, "deadline", "batch"),
        ({"deadline": 30 * DAY, "unique_tokens": 1e10}, "unique tokens", "batch"),
        ({"deadline": 300 * DAY, "budget": 2e4}, "budget", "deadline"),
        ({"deadline": 3 * DAY, "budget": 2e6}, "deadline", "budget"),
    ],
)
def test_which_limit_binds(limits, binds, slack):
    found = sensitivity(plan(LOFT, **limits))
    rows = {w.limit: w for w in found.rows}
    assert rows[binds].binds
    assert not rows[slack].binds
    assert found.binding in {binds, "accelerators"}


def test_the_batch_binds_a_large_cluster():
    rows = {
        w.limit: w
        for w in sensitivity(plan(HALL, deadline=60 * DAY, batch_limit=2**22)).rows
    }
    assert rows["batch"].binds
    # accelerators beyond the batch add little: a tenth more gives far less than a tenth
    assert rows["accelerators"].time_share < 0.05


# --- side by side, and many -------------------------------------------------------


def test_comparison_goes_to_files_and_back(loft, tmp_path):
    other = plan(LOFT, deadline=20 * DAY)
    both = compare([loft, other], ["thirty", "twenty"])
    back = json.loads(both.to_json())
    assert [r["label"] for r in back] == ["thirty", "twenty"]
    assert back[0]["N"] == loft.N
    assert back[0]["days_p5"] < back[0]["days"] < back[0]["days_p95"]
    assert not both.same_compute
    for kind in ("csv", "json", "md"):
        export([loft, other], tmp_path / f"plans.{kind}")
        assert (tmp_path / f"plans.{kind}").read_text(encoding="utf-8").count("\n") > 2
    with pytest.raises(ValueError, match="path ending"):
        export(loft, tmp_path / "plans.xlsx")
    with pytest.raises(ValueError, match="plans is empty"):
        compare([])


JOBS = [(LOFT, {"deadline": d * DAY}) for d in (5, 10, 20)] + [
    (LOFT, {"objective": "time", "target_loss": 1.9, "deadline": DAY})
]


@pytest.mark.parametrize("kind", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_sweeps_take_any_executor(kind):
    told = []
    with kind(2) as pool:
        many = sweep(JOBS, executor=pool, block=2, progress=told.append)
    here = sweep(JOBS)
    assert many[3] is None
    assert [p.N for p in many[:3]] == [p.N for p in here[:3]]
    assert told[-1] == 1.0


def test_sweeps_take_the_executor_of_a_dask_client():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None
        ) as local,
        distributed.Client(local) as client,
    ):
        many = sweep(JOBS[:2], executor=client.get_executor(), block=1)
    assert [p.N for p in many] == [p.N for p in sweep(JOBS[:2])]


def test_estimates_are_bands_unless_somebody_knows():
    glm = Cluster(accelerator="a100-sxm-40gb", n_accelerators=768)
    known = estimate_run(130e9, 400e9, glm, utilisation=0.25)
    assert known.days[0] == known.days[2] == pytest.approx(60.3, rel=0.01)
    band = estimate_run(130e9, 400e9, glm)
    assert band.days[2] / band.days[0] == pytest.approx(
        UTILISATION_BAND[1] / UTILISATION_BAND[0]
    )
    assert "nobody gave" in band._repr_html_()
    with pytest.raises(ValueError, match="not both"):
        estimate_run(1e9, 1e10, glm, utilisation=0.4, like=(1e9, 1e10, 1e3))


def test_plan_shows_its_units(loft):
    page = loft._repr_html_()
    assert "[parameter]" in page
    assert "[USD]" in page
    assert pytest.approx(FLOP_PER_ND * loft.shape.params().total * loft.D) == loft.C


# --- how far a machine moves the size ---------------------------------------------


def nanotron(n):
    """Sizes and measured utilisation at one number of accelerators, 1M-token batches."""
    rows = [r for r in read_rows("published_runs.csv") if r["table"] == "nanotron"]
    kept = [r for r in rows if r["n_accelerators"] == str(n)]
    sizes = [1e9 * float(r["model"].removesuffix("B")) for r in kept]
    return sizes, [float(r["value"]) / 100 for r in kept]


@pytest.mark.parametrize(
    ("n", "factor", "extra"), [(128, 1.0, 0.0), (256, 1.45, 0.039), (512, 2.48, 0.43)]
)
def test_strong_scaling_past_the_batch_moves_N_nanotron(n, factor, extra):
    """Where N does move: 2.5 times as large, 43 % sooner, at 512 on 1M tokens a step."""
    found = measured_shift(LAW, *nanotron(n), n * 989e12, naive_N=3.57e9)
    assert found.size_factor == pytest.approx(factor, rel=0.01)
    assert found.gain == pytest.approx(extra, abs=0.01)
    if n == 512:
        assert found.best_seconds / 3600 == pytest.approx(6.0, rel=0.01)


def test_shift_of_a_slope():
    """The slope of .22 at 256 accelerators: 1.36 and 3.4 %; v5p -.028: .96 and .06 %."""

    def both(slope):
        found = shift(LAW, slope)
        # the blueprint prints the exponent, e^2 / 2 (alpha + beta)
        return found.size_factor, np.log1p(found.gain)

    assert both(0.22) == pytest.approx((1.36, 0.034), rel=0.01)
    v5p = both(mfu_slope((32e9, 1024e9), (0.7147, 0.648)))
    assert v5p == pytest.approx((0.96, 0.0006), rel=0.1)
    # the slope below which another size gains less than 2 %
    assert both(0.169)[1] == pytest.approx(0.02, rel=0.01)


@given(st.floats(-0.3, 0.3))
def test_shift_meets_a_search_of_the_same_slope(slope):
    sizes = np.geomspace(1e9, 1e12, 50)
    found = measured_shift(
        LAW, sizes, 0.3 * (sizes / 3e10) ** slope, 1e18, naive_N=3e10
    )
    guess = shift(LAW, slope)
    # the parabola holds to second order
    assert np.log(found.size_factor) == pytest.approx(
        np.log(guess.size_factor), abs=0.02 + 2 * slope**2
    )
    assert found.gain == pytest.approx(guess.gain, abs=0.002 + abs(slope) ** 3)


def test_naive_size_costs_little_and_a_wrong_shape_much(hall):
    problem = hall.problem
    naive = solve_at(problem, hall.compute_optimal_N)
    slope = LAW.gamma * (hall.loss - LAW.E)
    # the search misses up to 0.4 % of compute, see above
    assert -4e-3 <= (naive.loss - hall.loss) / slope < 0.04
    assert levers(hall)["shape"].worth > 1.1 + (naive.loss - hall.loss) / slope


def test_one_shape_a_size_shows_divisibility():
    """The naive demo: one usual shape for each N, so that N jumps with the deadline."""
    single = [shape_for(N) for N in np.geomspace(1e10, 3e11, 60)]
    lost, one_shape, searched = [], [], []
    for days in (10, 14, 20, 28, 40, 57):
        problem = plan(h100(512), deadline=days * DAY, batch_limit=2**24).problem
        one, all_ = solve(problem, shapes=single), solve(problem)
        one_shape.append(one.size_ratio)
        searched.append(all_.size_ratio)
        lost.append((one.loss - all_.loss) / (LAW.gamma * (all_.loss - LAW.E)))
    spread = max(one_shape) / min(one_shape)
    assert spread > 1.3
    assert spread > max(searched) / min(searched)
    # what looks like scaling costs time, and a search of shapes gets it back
    assert min(lost) > -4e-3
    assert max(lost) > 0.02


def test_quick_plans_are_nearly_as_good(loft, hall):
    for made in (loft, hall):
        cluster, days = made.problem.cluster, made.problem.deadline
        start = time.process_time()
        quick = plan(cluster, deadline=days, thorough=False)
        assert time.process_time() - start < 0.6
        slope = LAW.gamma * (made.loss - LAW.E)
        assert (quick.loss - made.loss) / slope < 0.03


def test_shapes_that_cannot_run_are_refused(loft):
    odd = TransformerShape(
        n_layers=127, d_model=24576, d_ff=86016, n_heads=192, vocab_size=32000
    )
    with pytest.raises(InfeasibleError, match="none of the 1 shapes"):
        solve(loft.problem, shapes=[odd])
    with pytest.raises(ValueError, match="no shapes to choose from"):
        solve_at(plan(LOFT, compute=1e21, **IDEAL).problem, 1e9)
    with pytest.raises(ValueError, match="two or more sizes"):
        measured_shift(LAW, [1e9], [0.4], 1e17, naive_N=1e9)
    with pytest.raises(ValueError, match="one of them"):
        measured_shift(LAW, [1e9, 2e9], [0.4, 0.4], 1e17)


def test_least_cost_takes_the_smallest_cluster_that_meets_the_deadline():
    sizes = [h100(n) for n in (64, 128, 256)]
    soonest = choose(sizes, objective="time", target_loss=2.05)
    cheapest = choose(sizes, objective="cost", target_loss=2.05)
    assert soonest[0].problem.n == 256
    assert cheapest[0].dollars == min(p.dollars for p in soonest)
    slow = cheapest[0].days
    if slow > soonest[0].days:
        hurry = choose(
            sizes, objective="cost", target_loss=2.05, deadline=0.6 * slow * DAY
        )
        assert hurry[0].problem.n > cheapest[0].problem.n
    with pytest.raises(InfeasibleError, match="larger cluster"):
        choose(sizes, objective="cost", target_loss=1.9, deadline=DAY)
