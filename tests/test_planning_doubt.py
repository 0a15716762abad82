"""Intervals that are kept: whole runs, laws, levels, and plans for a chance."""

import json
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from chinchilla_lab.checks import ExtrapolationWarning, InfeasibleError
from chinchilla_lab.cluster import Cluster, Layout, published_hours
from chinchilla_lab.cluster.simulation import simulate_goodput, simulate_runs
from chinchilla_lab.laws import BESIROGLU_2024, HOFFMANN_2022, PUBLISHED, SPREAD
from chinchilla_lab.laws.families import LossLaw
from chinchilla_lab.planning import (
    closure,
    compare,
    intervals,
    plan,
    typed_plan,
    whole_run_factors,
    whole_run_ratio_table,
    whole_run_ratios,
)
from chinchilla_lab.planning.law_doubt import (
    count_of,
    law_doubt,
    pick,
    resamples_of,
    same_runs,
)
from chinchilla_lab.replications import whole_runs
from chinchilla_lab.shape import SHAPES
from chinchilla_lab.units import DAY

pytestmark = pytest.mark.filterwarnings(
    "ignore::chinchilla_lab.checks.ExtrapolationWarning"
)
RUNS = published_hours()
DENSE = [k for k, r in RUNS.items() if r.accelerator and "mixture" not in r.notes]


def h100(n):
    return Cluster(accelerator="h100-sxm-80gb", n_accelerators=n)


LOFT, HALL = h100(64), h100(16384)


def ask(cluster, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExtrapolationWarning)
        return plan(cluster, **settings)


@pytest.fixture(scope="module")
def loft():
    return ask(LOFT, deadline=30 * DAY)


@pytest.fixture(scope="module")
def quick():
    return ask(LOFT, objective="time", target_loss=2.05)


def typed_run(row):
    machine = Cluster(
        accelerator=RUNS[row.run].accelerator, n_accelerators=row.n_accelerators
    )
    return typed_plan(
        machine, SHAPES[row.shape], RUNS[row.run].D_tokens,
        row.batch_tokens // row.seq_len, seq_len=row.seq_len,
    )  # fmt: skip


# --- whole runs -------------------------------------------------------------------


def test_every_dense_run_with_a_chip_counts_metahours():
    assert {r.run for r in whole_run_ratios()} == set(DENSE)
    assert len(DENSE) == 6
    assert "assumed" in whole_run_ratio_table()


def test_the_table_of_whole_runs_is_what_the_step_model_says():
    """If it is not: python -m chinchilla_lab.replications --write-runs."""
    made = whole_runs()
    stored = whole_run_ratios()
    assert len(made) == len(stored)
    for new, old in zip(made, stored, strict=True):
        assert (new["run"], int(new["n_accelerators"])) == (old.run, old.n_accelerators)
        assert float(new["steps_hours"]) == pytest.approx(old.steps_hours, rel=0.01)
        assert (new["fits"] == "1") == old.fits


@pytest.mark.parametrize("run", DENSE)
def test_whole_run_in_the_interval_that_leaves_it_out_metahours(run):
    """Every size that the cluster may have had; each plan closes.

    A run that misses must be named here with its reason. With the sibling left out as
    well, Llama 3 8B and 3.1 8B miss at most sizes: see the page of published runs.
    """
    inside = []
    for row in (r for r in whole_run_ratios() if r.run == run):
        made = typed_run(row)
        assert closure(made).holds
        low, high = intervals(made, leave_out=[run], light=True).hours
        inside.append(low <= row.hours <= high)
    assert all(inside)


def test_steps_alone_miss_most_whole_runs():
    """The reason for the factor: the interval of the steps holds few of the rows."""
    inside = []
    for row in whole_run_ratios():
        low, high = intervals(typed_run(row), whole_run=False, light=True).hours
        inside.append(low <= row.hours <= high)
    assert np.mean(inside) < 0.5


def test_own_layout_of_llama_3_405b_says_whether_it_fits_grattafiori2024llama():
    layout = Layout(tp=8, pp=16, dp=128, n_chunks=4, zero=1, sequence_parallel=True)
    made = typed_plan(
        HALL, SHAPES["llama-3-405b"], 15.6e12, 2048, layout, seq_len=8192,
        stack="llama-3",
    )  # fmt: skip
    found = {one.name: one for one in closure(made).identities}["memory needed fits"]
    assert found.holds == (made.speed.memory <= HALL.chip.memory)


def test_factors_are_a_predictive_t():
    """Against the closed form at one size a run: mean and spread of the logarithms."""
    scipy_stats = pytest.importorskip("scipy.stats")
    w = np.log(whole_run_factors(np.random.default_rng(1), 200_000))
    runs = {}
    for r in whole_run_ratios():
        runs.setdefault(r.run, []).append(np.log(r.ratio))
    x = np.array([np.mean(v) for v in runs.values()])
    k = len(x)
    reach = x.std(ddof=1) * np.sqrt(1 + 1 / k) * scipy_stats.t.ppf(0.95, k - 1)
    # the sizes scatter too, which widens the draws by a few percent
    assert np.quantile(w, 0.95) == pytest.approx(x.mean() + reach, abs=0.12)
    assert np.quantile(w, 0.05) == pytest.approx(x.mean() - reach, abs=0.12)


def test_whole_run_can_be_switched_off(loft):
    with_it, without = intervals(loft), intervals(loft, whole_run=False)
    assert without.days == pytest.approx(without.steps.days)
    assert with_it.days[1] > 1.5 * without.days[1]
    assert with_it.steps == without.steps
    names = [d.source for d in without.sources]
    assert "whole run over its steps" not in names
    asked = ask(LOFT, deadline=30 * DAY, whole_run=False)
    assert intervals(asked).days == without.days


def test_leaving_out_too_much_or_nobody_is_refused(loft):
    with pytest.raises(ValueError, match="no published run"):
        intervals(loft, leave_out=["gpt-5"])
    with pytest.raises(ValueError, match="fewer than three"):
        intervals(loft, leave_out=DENSE[:4])


# --- laws -------------------------------------------------------------------------

# shapes that divide lie up to a third from the smooth optimum: 33.9B for 27.8B
GRANULARITY = 1.35
ASKED = {
    "loss": {"deadline": 30 * DAY},
    "time": {"objective": "time", "target_loss": 2.05},
    "cost": {"objective": "cost", "target_loss": 2.05},
    "lifetime": {
        "objective": "lifetime", "target_loss": 2.05, "inference_tokens": 1e12,
    },
    "repeats": {"deadline": 30 * DAY, "unique_tokens": 1e11},
}  # fmt: skip


@pytest.mark.parametrize("question", ASKED)
def test_the_plan_under_each_law_lies_in_the_intervals(question):
    asked = ASKED[question]
    made = ask(LOFT, **asked)
    doubt = intervals(made)
    counted = {made.problem.law.name, *(k for k, _ in law_doubt(made).others)}
    elsewhere = [d.source for d in doubt.apart if "other text" in d.note]
    for name in SPREAD:
        law = PUBLISHED[name]
        if not isinstance(law, LossLaw) or law.N_counts != "total":
            continue
        if name not in counted:
            # trained on RedPajama and judged on C4: named with its answer, not drawn
            assert name == "gadre-2024-rpj"
            assert law.label in elsewhere
            continue
        other = ask(LOFT, law=law, **asked)
        assert doubt.N[0] / GRANULARITY < other.N < doubt.N[1] * GRANULARITY
        if made.problem.objective != "loss":
            assert doubt.days[0] < other.days < doubt.days[1]
            assert doubt.dollars[0] < other.dollars < doubt.dollars[1]
            assert doubt.D[0] / GRANULARITY < other.D < doubt.D[1] * GRANULARITY


def test_laws_move_the_days_to_a_loss(quick):
    """10 days under hoffmann-2022 and 83 under muennighoff-2023-c4."""
    row = {d.source: d for d in intervals(quick, whole_run=False).sources}["which law"]
    assert row.days[0] == pytest.approx(10.0, rel=0.05)
    assert row.days[1] == pytest.approx(83.0, rel=0.05)


def test_the_smooth_optimum_is_that_of_the_plan_without_shapes():
    ideal = {"utilisation": 0.4, "shape_family": None, "reliability": None}
    for asked in ASKED.values():
        made = ask(LOFT, **ideal, **asked)
        found = law_doubt(made)
        assert float(np.ravel(found.own.N)[0]) == pytest.approx(made.N, rel=0.02)
        other = ask(LOFT, law=HOFFMANN_2022, **ideal, **asked)
        N = dict(found.others)["hoffmann-2022"].N
        assert float(np.ravel(N)[0]) == pytest.approx(other.N, rel=0.02)


def test_stored_resamples_scatter_as_the_table_of_quantiles():
    """256 of the 4,000 behind default_interval: their ends scatter by a few percent."""
    from chinchilla_lab.allocation.intervals import default_interval
    from chinchilla_lab.allocation.solving import optimum

    many, note = resamples_of(BESIROGLU_2024, 256)
    assert note == "resamples of the published runs"
    assert count_of(many) == 256
    N, _ = optimum(many, np.asarray(1e24))
    low, high = default_interval(1e24).N
    assert np.percentile(N, [5, 95]) == pytest.approx([low, high], rel=0.06)
    few = pick(many, np.array([3, 5]))
    assert few.E.tolist() == many.E[[3, 5]].tolist()


def test_losses_of_other_data_stand_apart(loft):
    doubt = intervals(loft)
    names = [law.name for law in same_runs(BESIROGLU_2024)]
    assert names == ["hoffmann-2022", "besiroglu-2024-huber"] or set(names) >= {
        "hoffmann-2022", "besiroglu-2024-huber",
    }  # fmt: skip
    assert not {"muennighoff-2023-c4", "gadre-2024-rpj"} & set(names)
    apart = {d.source: d for d in doubt.apart}["laws of other data"]
    # C4 and RedPajama have floors of their own, a tenth of a nat higher and more
    assert apart.loss[1] > doubt.loss[1]
    assert "not in" in apart.note


# --- levels -----------------------------------------------------------------------


@pytest.mark.parametrize("question", ["loss", "time"])
def test_a_higher_level_is_wider_in_everything(question):
    made = ask(LOFT, critical_batch=8e6, thorough=False, **ASKED[question])
    few, many = intervals(made, 0.5), intervals(made, 0.99)
    for name in ("N", "D", "days", "hours", "dollars", "loss"):
        a, b = getattr(few, name), getattr(many, name)
        assert b[0] < a[0] < a[1] < b[1], name
    for a, b in zip(few.sources, many.sources, strict=True):
        if a.source == "which law":
            continue  # a handful of laws, each as likely: their ends are theirs
        for name in ("N", "D", "days", "dollars", "loss"):
            x, y = getattr(a, name), getattr(b, name)
            if x is not None and x[0] < x[1]:
                assert y[1] - y[0] > x[1] - x[0], (a.source, name)


def test_exported_names_say_the_level(loft):
    record = compare([loft], level=0.5).records[0]
    doubt = intervals(loft, 0.5)
    assert (record["N_p25"], record["N_p75"]) == doubt.N
    assert (record["days_p25"], record["days_p75"]) == doubt.days
    assert record["chance_deadline"] == doubt.meets_deadline


def test_nothing_is_stretched_to_the_plan():
    """The plan is the optimistic end of its stacks: it lies below the median."""
    made = ask(HALL, deadline=60 * DAY, thorough=False)
    doubt = intervals(made, whole_run=False)
    assert doubt.point.days[0] == made.days < doubt.median.days[0]
    assert doubt.days[0] > 0.95 * made.days
    table = doubt._repr_html_()
    assert "the plan says" in table
    assert "median" in table
    assert "deadline met" in table


# --- plans for a chance -----------------------------------------------------------


def test_the_plan_says_with_which_chance_it_is_done(loft):
    doubt = intervals(loft)
    assert loft.chances[0] == doubt.meets_deadline
    assert 0.0 < doubt.meets_deadline < 0.5
    assert "chance to meet the deadline" in repr(loft)
    assert np.isnan(loft.chances[1])
    assert "chance" not in repr(ask(LOFT, compute=1e22))


@pytest.mark.parametrize("whole_run", [True, False])
@pytest.mark.parametrize(
    "limits", [{"deadline": 30 * DAY}, {"budget": 2e5}], ids=lambda x: next(iter(x))
)
def test_confidence_is_kept(limits, whole_run):
    limits = limits | {"thorough": False, "whole_run": whole_run}
    made = ask(LOFT, confidence=0.8, **limits)
    doubt = intervals(made)
    chance = np.nanmax([doubt.meets_deadline, doubt.meets_budget])
    # steps are whole, and the plan is cut to within two percent
    assert 0.8 <= chance < 0.85
    assert closure(made).holds
    plain = ask(LOFT, **limits)
    assert made.loss > plain.loss
    assert made.problem.slack != (1.0, 1.0)
    assert plain.problem.slack == (1.0, 1.0)


def test_more_confidence_costs_loss():
    losses = [
        ask(LOFT, deadline=30 * DAY, confidence=c, thorough=False).loss
        for c in (0.5, 0.8, 0.95)
    ]
    assert losses == sorted(losses)


def test_a_target_out_of_reach_with_confidence_says_so():
    with pytest.raises(InfeasibleError, match="to be met with 90%"):
        ask(LOFT, objective="time", target_loss=2.05, deadline=25 * DAY, confidence=0.9)


def test_confidence_on_the_command_line(capsys):
    pytest.importorskip("typer")
    from chinchilla_lab.cli import main

    line = "plan --gpu h100-sxm-80gb --gpus 64 --deadline 30d --mfu 40% --family none"
    assert main([*line.split(), "--confidence", "80%", "--json"]) in (0, None)
    (made,) = json.loads(capsys.readouterr().out)
    ideal = {"utilisation": 0.4, "shape_family": None}
    same = ask(LOFT, deadline=30 * DAY, confidence=0.8, **ideal)
    assert made["days"] == pytest.approx(same.days, rel=1e-9)
    assert 0.8 <= made["chance_deadline"] < 0.85


def test_confidence_is_a_share():
    with pytest.raises(ValueError, match="confidence"):
        ask(LOFT, deadline=30 * DAY, confidence=80)


# --- batches ----------------------------------------------------------------------


def test_a_critical_batch_is_drawn():
    bound = {"critical_batch": 8e6, "thorough": False}
    timed = ask(h100(128), objective="time", target_loss=2.05, **bound)
    row = {d.source: d for d in intervals(timed).sources}["critical batch"]
    assert row.days[0] < timed.days < row.days[1]
    # the ends: a batch law four times off either way
    over = timed.waste - 1.0
    ends = [(1 + over * f) / timed.waste * timed.days for f in (1 / 4.3, 4.3)]
    inner = intervals(timed, level=0.999)
    row = {d.source: d for d in inner.sources}["critical batch"]
    assert row.days == pytest.approx(ends, rel=0.01)
    loss = ask(h100(128), deadline=30 * DAY, **bound)
    row = {d.source: d for d in intervals(loss).sources}["critical batch"]
    assert row.loss[0] < loss.loss < row.loss[1]


def test_other_batches_are_listed():
    made = ask(HALL, deadline=60 * DAY, thorough=False)
    row = {d.source: d for d in intervals(made).apart}["other batch"]
    # a batch four times smaller feeds 16,384 accelerators less well: 2,048 sequences
    # leave 128 replicas sixteen micro-batches to fill sixteen stages with
    assert row.days[1] > 1.1 * made.days
    given = ask(LOFT, deadline=30 * DAY, batch_limit=4e6)
    assert "other batch" not in [d.source for d in intervals(given).apart]


# --- executors and time -----------------------------------------------------------


def test_draws_do_not_depend_on_the_executor(quick):
    here = intervals(quick, draws=9000)
    with ThreadPoolExecutor(3) as pool:
        there = intervals(quick, draws=9000, executor=pool)
    assert repr(here) == repr(there)  # what is not known is no number


def test_simulations_do_not_depend_on_the_executor():
    settings = {"mean_time": 3.09 * 3600, "restart": 300, "interval": 1160, "save": 60}
    here = simulate_goodput(**settings, failures=450_000)
    runs = simulate_runs(work=30 * DAY, runs=2500, **settings)
    with ThreadPoolExecutor(3) as pool:
        assert simulate_goodput(**settings, failures=450_000, executor=pool) == here
        again = simulate_runs(work=30 * DAY, runs=2500, **settings, executor=pool)
    assert len(runs.seconds) == 2500
    np.testing.assert_array_equal(again.seconds, runs.seconds)
    np.testing.assert_array_equal(again.failures, runs.failures)
    # blocks are drawn anew, not repeated
    assert len(np.unique(runs.seconds)) > 2400


def test_intervals_are_quick(loft):
    start = time.process_time()
    for _ in range(5):
        intervals(loft)
        intervals(loft, draws=1000, light=True)
    assert (time.process_time() - start) / 5 < 0.3
