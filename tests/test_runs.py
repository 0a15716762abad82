"""Loading runs, refusing runs, warning of runs: bad input loses nothing."""

import io
import json

import numpy as np
import pytest

from chinchilla_lab import compute_optimal, fitting
from chinchilla_lab.fitting import (
    Runs,
    crossed,
    example_runs,
    fit_envelope,
    fit_isoflop,
    fit_parametric,
    read_runs,
    simulate_runs,
)
from chinchilla_lab.laws import BESIROGLU_2024 as BR

N, D = crossed(np.geomspace(5e7, 5e9, 6), np.geomspace(5, 80, 4))
GOOD = simulate_runs(BR, N, D)


# --- columns --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ({"L": [3.0, 2.9]}, r"L has 2 rows where N has 3"),
        ({"D": [2e9, 4e9]}, r"D has 2 rows where N has 3"),
        ({"L": [3.0, np.nan, 2.8]}, r"L\[1\]=nan must be a finite number above 0"),
        ({"L": [3.0, 2.9, np.inf]}, r"L\[2\]=inf"),
        ({"N": [0.0, 2e8, 4e8]}, r"N\[0\]=0 must"),
        ({"D": [2e9, -4e9, 8e9]}, r"D\[1\]=-4e\+09 must"),
        ({"N": ["100M", 2e8, 4e8]}, r"N\[0\]='100M' is not a number; .*read_runs"),
        ({"N": [True, 2e8, 4e8]}, r"N\[0\]=True is not a number"),
        ({"L": [None, 2e8, 4e8]}, r"L\[0\]=None is not a number"),
        ({"N": [], "D": [], "L": []}, r"N is empty"),
        ({"D": None}, r"D and C are both missing"),
        ({"run": ("a",)}, r"run has 1 rows where N has 3"),
        ({"N_counts": "all"}, r"N_counts='all' is not known; choose from: total"),
    ],
)
def test_bad_columns_are_named(bad, says):
    good = {"N": [1e8, 2e8, 4e8], "D": [2e9, 4e9, 8e9], "L": [3.7, 3.3, 3.0]}
    with pytest.raises(ValueError, match=says):
        Runs(**(good | bad))


def test_tokens_follow_from_compute_and_back():
    runs = Runs(N=[1e8, 2e8], C=[1.2e18, 4.8e18], L=[3.7, 3.3])
    assert pytest.approx([2e9, 4e9]) == runs.D
    assert pytest.approx([1.2e18]) == Runs(N=[1e8], D=[2e9], L=[3.7]).C


def test_filters_are_remembered():
    runs = GOOD.drop_highest(3).keep(GOOD.drop_highest(3).N > 1e8, "N above 100M")
    assert [f.split(":")[0] for f in runs.filters] == [
        "loss below the 3 highest",
        "N above 100M",
    ]
    assert "N above 100M" in fit_parametric(runs, resamples=0).method()
    with pytest.raises(ValueError, match="no run is left"):
        GOOD.keep(GOOD.N < 0, "nothing")
    with pytest.raises(ValueError, match="drops all"):
        GOOD.drop_highest(99)


# --- files ----------------------------------------------------------------------------

EXPORT = """name,state,config.n_params,summary.tokens,summary.val_loss,user
a,finished,124M,2.5B tokens,3.2891,me
b,crashed,124M,5B,9.1,me
c,finished,350M,7B,2.9617,me
c,finished,350M,3B,3.2,me
d,finished,1.3B,26e9,2.5,me
e,running,1.3B,26e9,2.9,me
f,finished,2.6B,52B,nan,me
g,finished,2.6B,,2.4,me
"""


def test_C74_tracker_export(tmp_path):
    """Researchers write their own tracker-to-CSV script each time (olmix 29)."""
    file = tmp_path / "export.csv"
    file.write_text(EXPORT)
    runs = read_runs(
        file,
        columns={"N": "config.n_params", "D": "summary.tokens",
                 "loss": "summary.val_loss"},
        keep={"state": "finished"},
        N_counts="total",
    )  # fmt: skip
    assert pytest.approx([124e6, 350e6, 1.3e9]) == runs.N
    assert pytest.approx([2.5e9, 7e9, 26e9]) == runs.D
    assert pytest.approx([3.2891, 2.9617, 2.5]) == runs.L
    assert runs.run == ("a", "c", "d")
    assert [f.split(" (")[0] for f in runs.filters] == [
        "2 rows dropped: state is not finished",
        "1 row dropped: the last loss of their run is no finite positive number",
        "1 row dropped: earlier checkpoints of 4 runs",
        "1 row dropped: no finite positive number in N, D, L",
    ]
    # the usual names are found without a map, and finished runs without a rule
    found = read_runs(file, N_counts="total")
    assert pytest.approx(runs.L) == found.L
    assert len(read_runs(file, rows="all")) == 4


def test_jsonl_with_nested_objects(tmp_path):
    file = tmp_path / "runs.jsonl"
    rows = [
        {"run_id": f"r{i}", "config": {"n_params": 10**8 * i}, "tokens": "2B",
         "summary": {"val_loss": 4.0 - 0.1 * i}, "state": "finished"}
        for i in range(1, 5)
    ]  # fmt: skip
    file.write_text("\n".join(json.dumps(row) for row in rows) + "\n\n")
    runs = read_runs(file, columns={"N": "config.n_params", "L": "summary.val_loss"})
    assert pytest.approx([1e8, 2e8, 3e8, 4e8]) == runs.N
    file.write_text('{"N": 1}\nnot json\n')
    with pytest.raises(ValueError, match="line 2"):
        read_runs(file)


@pytest.mark.parametrize(
    ("content", "options", "says"),
    [
        ("N,D\n1,2\n", {}, "no column for L; map it .* one of: N, D"),
        ("N,L\n1,2\n", {}, "no column for D or C"),
        ("N,D,L\n", {}, "holds no rows"),
        ("N,D,L\n1e8,many,3\n", {}, "line 2, column 'D'"),
        ("N,D,L\n1e8,2e9,low\n", {}, "line 2, column 'L'"),
        ("N,D,L\n1e8,2e9,3\n", {"columns": {"N": "size"}}, "no column 'size'; it has"),
        ("N,D,L\n1e8,2e9,3\n", {"columns": {"M": "N"}}, "'M' is not known"),
        ("N,D,L\n1e8,2e9,3\n", {"keep": {"ok": "1"}}, "no column 'ok'"),
        ("N,D,L,state\n1e8,2e9,3,crashed\n", {}, "leaves no row"),
        ("N,D,L\n1e8,2e9,3\n", {"rows": "first"}, "choose from: last, all"),
    ],
)
def test_bad_files_say_what_to_do(tmp_path, content, options, says):
    file = tmp_path / "runs.csv"
    file.write_text(content)
    with pytest.raises(ValueError, match=says):
        read_runs(file, **options)


def test_missing_file():
    with pytest.raises(ValueError, match="cannot be read"):
        read_runs("nowhere.csv")


# --- refusals -------------------------------------------------------------------------


def test_C66_one_ratio_is_refused_and_the_curve_kept():
    """All models at one ratio (minimind 786): alpha .2 to .5 fit equally well."""
    runs = example_runs("one_ratio")
    with pytest.raises(fitting.NotIdentifiableError, match="D = 20 N") as refusal:
        fit_parametric(runs)
    for word in ("alpha", "beta", "no N*", "fit_curve", "Train some sizes"):
        assert word in str(refusal.value)
    curve = fitting.fit_curve(runs.N, runs.L)
    assert curve.loss(runs.N) == pytest.approx(runs.L, rel=0.01)


def test_one_ratio_really_has_two_answers():
    """Exchanging the power terms on D = rN changes no loss and mirrors the optimum."""
    r = 20.0
    mirror = BR.with_(
        A=BR.B * r**-BR.beta, alpha=BR.beta, B=BR.A * r**BR.alpha, beta=BR.alpha
    )
    sizes = np.geomspace(1e8, 1e10, 5)
    assert mirror._loss(sizes, r * sizes) == pytest.approx(BR._loss(sizes, r * sizes))
    plan, other = (law.G * (1e23 / 6) ** law.a for law in (BR, mirror))
    assert other == pytest.approx((1e23 / 6) / plan / r)
    assert abs(np.log(other / plan)) > 0.01


@pytest.mark.parametrize("power", [0.5, 1.0, 1.5])
def test_any_power_of_the_size_is_refused(power):
    sizes = np.geomspace(1e8, 1e10, 12)
    tokens = 1e10 * (sizes / 1e9) ** power
    with pytest.raises(fitting.NotIdentifiableError, match="alpha and beta"):
        fit_parametric(simulate_runs(BR, sizes, tokens))


def test_one_budget_is_no_line_of_that_kind():
    """On one isoFLOP D falls with N, so the terms differ; but a line it is not."""
    sizes = np.geomspace(1e8, 1e10, 20)
    fit = fit_parametric(simulate_runs(BR, sizes, 1e20 / sizes, noise=0), resamples=0)
    assert fit.alpha == pytest.approx(BR.alpha, rel=1e-3)


@pytest.mark.parametrize(
    ("sizes", "tokens", "says"),
    [
        ([1e8, 1e9], np.geomspace(1e9, 1e11, 6), "2 sizes"),
        (np.geomspace(1e8, 1e10, 6), [1e9, 1e11], "2 token counts"),
        ([1e8, 5e8, 1e9], [1e10], "1 token counts"),
    ],
)
def test_too_few_sizes_or_tokens(sizes, tokens, says):
    n, d = (x.ravel() for x in np.meshgrid(sizes, tokens))
    with pytest.raises(fitting.TooFewRunsError, match=says):
        fit_parametric(simulate_runs(BR, n, d))


def test_as_many_unknowns_as_runs():
    with pytest.raises(fitting.TooFewRunsError, match="5 distinct runs for 5"):
        fit_parametric(simulate_runs(BR, [1e8, 3e8, 1e9, 3e9, 1e10],
                                     [2e10, 1e9, 4e10, 7e9, 2e11]))  # fmt: skip


def test_less_than_a_decade_is_said():
    n, d = crossed(np.geomspace(1e8, 5e8, 5), [5, 20, 80])
    with pytest.warns(fitting.ShortRangeWarning, match="N spans a factor 5.0"):
        law = fit_parametric(simulate_runs(BR, n, d), resamples=0)
    assert any("less than a decade" in note for note in law.notes)


def test_unstated_count_is_refused():
    runs = Runs(N=GOOD.N, D=GOOD.D, L=GOOD.L)
    for fit in (fit_parametric, fit_isoflop, fit_envelope):
        with pytest.raises(fitting.UnstatedCountError, match="N_counts='total'"):
            fit(runs)


def test_checkpoints_among_finished_runs_are_refused():
    twice = Runs(N=[*GOOD.N, GOOD.N[0]], D=[*GOOD.D, GOOD.D[0] / 2],
                 L=[*GOOD.L, GOOD.L[0] * 1.1], N_counts="total",
                 run=(*(f"r{i}" for i in range(len(GOOD))), "r0"))  # fmt: skip
    with pytest.raises(fitting.MixedCheckpointsError, match="rows='last'"):
        fit_parametric(twice)
    assert fit_parametric(twice, checkpoints=True, resamples=0).n_runs == len(twice)
    planned = Runs(N=GOOD.N, D=GOOD.D, L=GOOD.L, N_counts="total",
                   planned=np.where(np.arange(len(GOOD)) == 4, 2.0, 1.0) * GOOD.D)  # fmt: skip
    with pytest.raises(fitting.MixedCheckpointsError, match="the first is row 4"):
        fit_parametric(planned)
    with pytest.raises(fitting.MixedCheckpointsError):
        fit_isoflop(planned)


def test_diverged_runs_stick_out():
    L = GOOD.L.copy()
    L[7] *= 1.4
    runs = Runs(N=GOOD.N, D=GOOD.D, L=L, N_counts="total")
    with pytest.warns(fitting.DivergedRunsWarning, match="1 of 24 runs"):
        law = fit_parametric(runs, resamples=0)
    assert law.alpha == pytest.approx(BR.alpha, rel=0.1)


@pytest.mark.filterwarnings("ignore::chinchilla_lab.fitting.WideGridWarning")
def test_C67_minimum_at_the_edge():
    """The largest budget of a student's sweep has no minimum inside (psionic 1103)."""
    runs = example_runs("edge")
    with pytest.warns(fitting.EdgeMinimumWarning, match="3e20 FLOP.*left out"):
        law = fit_isoflop(runs, resamples=0)
    assert [v.interior for v in law.valleys] == [True, True, True, False]
    assert law.a == pytest.approx(0.512, abs=1e-3)
    assert law.optimum(1e23)[0] == pytest.approx(2.84e10, rel=2e-3)
    with pytest.warns(fitting.EdgeMinimumWarning, match="kept on request"):
        kept = fit_isoflop(runs, keep_edges=True, resamples=0)
    assert kept.a == pytest.approx(0.479, abs=1e-3)
    assert kept.optimum(1e23)[0] == pytest.approx(2.15e10, rel=3e-3)
    best = np.array([v.best_N for v in law.valleys])
    slope = np.polyfit(np.log([v.C for v in law.valleys]), np.log(best), 1)[0]
    assert slope == pytest.approx(0.359, abs=1e-3)


def test_edges_everywhere_are_refused():
    C = np.repeat([1e19, 1e20, 1e21], 7)
    sizes = np.tile(np.geomspace(1e10, 1e11, 7), 3)
    runs = Runs(N=sizes, C=C, L=BR._loss(sizes, C / 6 / sizes), N_counts="total")
    with (
        pytest.warns(fitting.EdgeMinimumWarning),
        pytest.raises(fitting.EdgeMinimumError, match="0 of 3 budgets"),
    ):
        fit_isoflop(runs)


def test_wide_grids_are_said_with_their_bias():
    C = np.repeat([1e19, 1e20, 1e21], 9)
    sizes = (C / 120) ** 0.5 * np.tile(np.geomspace(1 / 16, 16, 9), 3)
    runs = Runs(N=sizes, C=C, L=BR._loss(sizes, C / 6 / sizes), N_counts="total")
    with pytest.warns(fitting.WideGridWarning, match=r"factor 16.*-1\.6%.*\+5\.4%"):
        fit_isoflop(runs, resamples=0)


def test_C70_clean_grid():
    """Baseline: 64 runs, .2 % noise; truth .348, .366 and 2.90e10 at 1e23."""
    law = fit_parametric(example_runs("grid64"), resamples=1000, rng=0)
    assert [law.E, law.A, law.B, law.alpha, law.beta] == pytest.approx(
        [1.816, 451, 2064, 0.3445, 0.3651], rel=2e-3
    )
    N = law.G * (1e23 / 6) ** law.a
    assert pytest.approx(2.90e10, rel=0.05) == N
    with pytest.warns(match="leaves the fitted range .* by 0.6 decades"):
        compute_optimal(law, 1e23)
    low, high = law.interval(1e23).N
    assert low < 2.90e10 < high
    # 27.4 to 31.7 in the collection, with other resamples
    assert [low, high] == pytest.approx([2.74e10, 3.17e10], rel=0.02)


def test_C73_speedup_has_one_source():
    """A constant in the docs drifted from the fit (marin 8096)."""
    curve = fitting.PowerCurve(E=1.6, scale=95.18, exponent=0.0897)
    speedup = float(curve.factor_between(2.25, 2.24))
    assert speedup == pytest.approx((0.65 / 0.64) ** (1 / 0.0897))
    for budget in (1e18, 1e20, 1e22):
        # another scale, another budget: the same factor
        other = fitting.PowerCurve(E=1.6, scale=0.65 * budget**0.0897, exponent=0.0897)
        assert other.loss(budget) == pytest.approx(2.25)
        assert other.loss(budget * speedup) == pytest.approx(2.24)


def test_C76_a_fit_states_version_filter_loss_and_seed():
    """Refits of published data give other coefficients (steplaw 10)."""
    runs = GOOD.drop_highest(2)
    line = fit_parametric(runs, resamples=10, rng=7).method()
    for word in ("huber", "delta=0.001", "seed 7", "chinchilla_lab 0.", runs.digest,
                 "loss below the 2 highest: 24 -> 22 runs"):  # fmt: skip
        assert word in line


@pytest.mark.parametrize(
    "options",
    [
        {"loss": "mse"},
        {"delta": 0.0},
        {"k": -1.0},
        {"resamples": -1},
        {"weights": [1.0]},
        {"weights": np.zeros(len(GOOD))},
    ],
)
def test_bad_options(options):
    name = next(iter(options))
    with pytest.raises(ValueError, match=name):
        fit_parametric(GOOD, **options)


# --- breakages that happened, by kind ------------------------------------------------


def _read(content, **options):
    return read_runs(io.StringIO(content), **options)


def test_names_inside_names_are_not_runs():
    """config.optimizer.name is no run, config.batch.size is no model size."""
    rows = [
        {"config": {"optimizer": {"name": "adamw"}, "batch": {"size": 512},
                    "num_parameters": n, "tokens": 20 * n}, "summary": {"val_loss": L}}
        for n, L in ((1e8, 3.7), (2e8, 3.4), (4e8, 3.1))
    ]  # fmt: skip
    runs = _read("\n".join(json.dumps(row) for row in rows))
    assert pytest.approx([1e8, 2e8, 4e8]) == runs.N
    assert runs.run == ()


def test_rows_of_one_run_have_one_size():
    with pytest.raises(ValueError, match="sizes from 1e\\+08 to 2e\\+08; map run"):
        _read("name,N,D,L\nadam,1e8,1e9,4\nadam,2e8,4e9,3.3\n")
    assert len(_read("name,N,D,L\nadam,1e8,1e9,4\nadam,2e8,4e9,3.3\n",
                     columns={"run": ""})) == 2  # fmt: skip


@pytest.mark.parametrize("name", ["val_loss", "eval_loss", "validation_loss"])
def test_validation_loss_comes_before_training_loss(name):
    runs = _read(f"params,tokens,loss,{name}\n1e8,2e9,1.0,3.5\n2e8,4e9,1.0,3.2\n")
    assert pytest.approx([3.5, 3.2]) == runs.L


def test_a_diverged_run_goes_as_a_whole():
    runs = _read("run,N,D,L\nr1,1e8,1e9,4\nr1,1e8,2e9,nan\nr2,2e8,4e9,3.3\n")
    assert pytest.approx([3.3]) == runs.L
    assert "r1" in runs.filters[0]
    # a blank cell logged nothing: the last logged loss counts
    runs = _read("run,N,D,L\nr1,1e8,1e9,4\nr1,1e8,2e9,\nr2,2e8,4e9,3.3\n")
    assert pytest.approx([4.0, 3.3]) == runs.L


@pytest.mark.parametrize(
    "content",
    [
        "\ufeffN,D,L\n1e8,2e9,3\n2e8,4e9,2.9\n",
        "N; D; L\n1e8; 2e9; 3\n2e8; 4e9; 2.9\n",
        "N\tD\tL\n1e8\t2e9\t3\n2e8\t4e9\t2.9\n",
        "n , d , loss\n1e8,2e9,3\n2e8,4e9,2.9\n",
        'note,N,D,L\n"a\u2028b",1e8,2e9,3\nc,2e8,4e9,2.9\n',
        "N,D,L,state\n1e8,2e9,3,FINISHED\n2e8,4e9,2.9,completed\n",
        "N,D,L\n1e8,2e9,3\n2e8,4e9,2.9\n3e8,4e9,N/A\n3e8,4e9,diverged\n",
        "N,D,L,planned\n1e8,2e9,3,2e9\n2e8,4e9,2.9,\n",
        "run,N,D,L\n,1e8,2e9,3\n,2e8,4e9,2.9\n",
        "N,D,L\n1e8,2e9,3\n2e8,4e9,2.9\n1e400,4e9,2.9\n",
    ],
)
def test_files_as_they_come(content):
    runs = _read(content)
    assert pytest.approx([1e8, 2e8]) == runs.N
    assert pytest.approx([3.0, 2.9]) == runs.L


def test_dots_inside_nested_names():
    row = json.dumps({"config": {"model.n_params": 1e8}, "tokens": 2e9, "loss": 3.0})
    assert pytest.approx([1e8]) == _read(row).N
    assert pytest.approx([1e8]) == _read(row, columns={"N": "config.model.n_params"}).N


def test_state_rules_say_what_the_file_has():
    with pytest.raises(ValueError, match="the file has: crashed, running"):
        _read("N,D,L,state\n1e8,2e9,3,crashed\n2e8,4e9,3,running\n")
    assert len(_read("N,D,L,state\n1e8,2e9,3,crashed\n", keep={})) == 1
    assert len(_read("N,D,L,e\n1e8,2e9,3,1\n1e8,3e9,3,2\n", keep={"e": 1})) == 1


def test_lines_are_those_of_the_file():
    with pytest.raises(ValueError, match="line 4, column 'L'"):
        _read("N,D,L\n1e8,1e9,nan\n1e8,2e9,nan\n2e8,4e9,oops\n")


def test_data_of_others_in_several_versions(others):
    from chinchilla_lab import datasets

    others("gadre_testbed", keep={"val": "c4_val"})
    with pytest.raises(ValueError, match=r"keep=\{'val': \.\.\.\}"):
        datasets.load("gadre_testbed")
    runs = datasets.load(
        "gadre_testbed", keep={"val": "c4_val"}, columns={"N": "N_no_embed"}
    )
    assert len(runs) == 104
    assert runs.N_counts is None
