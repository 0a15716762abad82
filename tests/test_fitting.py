"""Fits against truths that are known, other optimisers, and identities."""

import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chinchilla_lab as lab
from chinchilla_lab import allocation, fitting
from chinchilla_lab.fitting import (
    PowerCurve,
    Runs,
    crossed,
    design_factor,
    example_runs,
    fit_curve,
    fit_envelope,
    fit_isoflop,
    fit_parametric,
    isoflop_bias,
    load_law,
    simulate_runs,
)
from chinchilla_lab.fitting.solver import LAD_DELTA, Problem, minimise, objective
from chinchilla_lab.laws import BESIROGLU_2024, HOFFMANN_2022, HOFFMANN_2022_PRINTED

pytestmark = pytest.mark.filterwarnings("ignore::chinchilla_lab.ExtrapolationWarning")
quiet = pytest.mark.filterwarnings("ignore::chinchilla_lab.fitting.FitWarning")
BR = BESIROGLU_2024
DESIGN = crossed(np.geomspace(5e7, 5e9, 8), np.geomspace(3, 300, 6))


def optimum(law, C):
    return float(allocation.compute_optimal(law, C).N)


# --- known truth ----------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["huber", "lad", "squares"])
@pytest.mark.parametrize("law", [BR, HOFFMANN_2022], ids=lambda law: law.name)
def test_runs_without_noise_give_the_law_back(loss, law):
    fit = fit_parametric(simulate_runs(law, *DESIGN, noise=0), loss=loss, resamples=0)
    for letter in ("E", "A", "B", "alpha", "beta"):
        # least absolute deviations stop where their width ends, 5e-9 in log loss
        rtol = 1e-4 if loss == "lad" else 1e-6
        assert getattr(fit, letter) == pytest.approx(getattr(law, letter), rel=rtol)


def test_outer_exponent_is_found():
    law = lab.laws.AdditiveLaw(E=1.6, A=60.0, B=400.0, alpha=0.4, beta=0.45, k=0.7)
    runs = simulate_runs(law, *DESIGN, noise=0)
    fit = fit_parametric(runs, k="fit", loss="squares", resamples=0)
    assert fit.k == pytest.approx(0.7, rel=1e-4)
    assert fit.a == pytest.approx(law.a, rel=1e-4)
    given_k = fit_parametric(runs, k=0.7, resamples=0)
    assert given_k.alpha == pytest.approx(0.4, rel=1e-6)
    assert "k" in fit.estimates().values


def test_tied_exponents_are_tied():
    law = BR.with_(alpha=0.35, beta=0.35)
    fit = fit_parametric(
        simulate_runs(law, *DESIGN, noise=5e-4), tie_exponents=True, resamples=50
    )
    assert fit.alpha == fit.beta == pytest.approx(0.35, rel=0.02)
    assert np.array_equal(fit.resampled.alpha, fit.resampled.beta)
    assert fit.a == 0.5


def test_weights_are_counts():
    runs = simulate_runs(BR, *DESIGN)
    counts = np.random.default_rng(1).integers(0, 3, len(runs))
    index = np.repeat(np.arange(len(runs)), counts)
    twice = Runs(N=runs.N[index], D=runs.D[index], L=runs.L[index], N_counts="total")
    weighted = fit_parametric(runs, weights=counts, resamples=0)
    repeated = fit_parametric(twice, resamples=0)
    assert weighted.alpha == pytest.approx(repeated.alpha, rel=1e-6)
    assert weighted.objective == pytest.approx(repeated.objective, rel=1e-9)


@quiet
@settings(max_examples=25)
@given(
    alpha=st.floats(0.2, 0.6),
    beta=st.floats(0.2, 0.6),
    E=st.floats(1.0, 2.5),
    N=st.floats(1e7, 1e10),
)
def test_any_usual_law_is_found(alpha, beta, E, N):
    law = lab.laws.AdditiveLaw(
        E=E, A=0.7 * N**alpha, B=0.7 * (20 * N) ** beta, alpha=alpha, beta=beta
    )
    sizes = N * np.geomspace(0.05, 20, 7)
    runs = simulate_runs(law, *crossed(sizes, np.geomspace(2, 200, 5)), noise=0)
    fit = fit_parametric(runs, resamples=0)
    assert fit.alpha == pytest.approx(alpha, rel=1e-4)
    assert fit.beta == pytest.approx(beta, rel=1e-4)


# --- the solver -----------------------------------------------------------------------


def _problem(delta, outer):
    runs = simulate_runs(BR, *DESIGN, noise=0.01, rng=3)
    free = np.eye(6) if outer else np.eye(6)[:, :5]
    x, y = np.log(runs.N), np.log(runs.D)
    return Problem(
        x=x - x.mean(), y=y - y.mean(), log_loss=np.log(runs.L), free=free,
        delta=delta, outer=outer,
    )  # fmt: skip


@pytest.mark.parametrize("delta", [np.inf, 0.02])
@pytest.mark.parametrize("outer", [False, True])
def test_derivatives_are_those_of_the_objective(delta, outer):
    """Central differences; the Hessian of Huber's loss exists between its corners."""
    from chinchilla_lab.fitting.solver import _expand, _Powers

    problem = _problem(delta, outer)
    powers = _Powers(problem.x, problem.y)
    rng = np.random.default_rng(0)
    theta = np.array([-0.5, -0.4, 0.6, 0.35, 0.36, -0.2 if outer else 0.0])
    theta = theta + 0.03 * rng.standard_normal((4, 6)) * problem.free.any(axis=1)
    weights = rng.integers(0, 3, (4, len(problem.x))).astype(float)
    value, grad, hess = _expand(problem, powers, theta, weights)
    assert value == pytest.approx(objective(problem, theta, weights))
    for i in np.flatnonzero(problem.free.any(axis=1)):
        step = np.eye(6)[i] * 1e-6
        up, down = (
            _expand(problem, powers, theta + s * step, weights) for s in (1, -1)
        )
        assert (up[0] - down[0]) / 2e-6 == pytest.approx(grad[:, i], rel=1e-4, abs=1e-7)
        slope = (up[1] - down[1]) / 2e-6
        assert np.abs(slope - hess[:, i]).max() < 1e-4 * np.abs(hess).max()


def _scipy_fit(runs, weights, start, delta):
    """Refit with SciPy's own Huber loss and the Jacobian; runs are repeated."""
    optimize = pytest.importorskip("scipy.optimize")
    index = np.repeat(np.arange(len(runs)), weights.astype(int))
    x, y = np.log(runs.N[index]), np.log(runs.D[index])
    x, y, target = x - x.mean(), y - y.mean(), np.log(runs.L[index])

    def parts(t):
        terms = np.array([t[0] - t[3] * x, t[1] - t[4] * y, np.full_like(x, t[2])])
        return terms, np.logaddexp.reduce(terms)

    def residual(t):
        return parts(t)[1] - target

    def jacobian(t):
        terms, total = parts(t)
        u, v, e = np.exp(terms - total)
        return np.column_stack([u, v, e, -x * u, -y * v])

    law = start
    first = [
        np.log(law.A) - law.alpha * np.log(runs.N[index]).mean(),
        np.log(law.B) - law.beta * np.log(runs.D[index]).mean(),
        np.log(law.E), law.alpha, law.beta,
    ]  # fmt: skip
    done = optimize.least_squares(
        residual, first, jacobian, loss="huber", f_scale=delta, x_scale="jac",
        xtol=1e-15, ftol=1e-15, gtol=1e-15, max_nfev=500,
    )  # fmt: skip
    return done.cost


def no_resample_is_worse(runs, seed, size):
    """The objective of every resample is at least as low as SciPy's, to 1e-8."""
    fit = fit_parametric(runs, resamples=0)
    x, y = np.log(runs.N), np.log(runs.D)
    problem = Problem(
        x=x - x.mean(), y=y - y.mean(), log_loss=np.log(runs.L),
        free=np.eye(6)[:, :5], delta=1e-3,
    )  # fmt: skip
    n = len(runs)
    counts = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=size)
    start = [
        np.log(fit.A) - fit.alpha * x.mean(), np.log(fit.B) - fit.beta * y.mean(),
        np.log(fit.E), fit.alpha, fit.beta, 0.0,
    ]  # fmt: skip
    ours = minimise(problem, np.tile(start, (size, 1)), counts.astype(float))
    assert ours.converged.all()
    for row, value in zip(counts, ours.objective, strict=True):
        assert value <= _scipy_fit(runs, row, fit, 1e-3) * (1 + 1e-8)


@quiet
def test_no_resample_is_worse_than_scipy(others):
    no_resample_is_worse(others("chinchilla_epoch245").drop_highest(5), 7, 60)


def test_lad_is_the_sum_of_absolute_deviations():
    runs = simulate_runs(BR, *DESIGN, noise=0.01)
    fit = fit_parametric(runs, loss="lad", resamples=0)
    residual = np.abs(fitting.log_residuals(fit, runs))
    assert fit.objective == pytest.approx(residual.sum(), rel=1e-6)
    # an optimum of absolute deviations passes through as many runs as it has unknowns
    assert np.sum(residual < 10 * LAD_DELTA) >= 5


def test_singular_rows_do_not_stop_the_others():
    problem = _problem(1e-3, False)
    weights = np.ones((3, len(problem.x)))
    weights[1] = 0.0
    weights[1, :2] = 1.0  # two runs for five unknowns
    starts = np.tile([-0.5, -0.4, 0.6, 0.35, 0.36, 0.0], (3, 1))
    done = minimise(problem, starts, weights)
    assert np.isfinite(done.theta).all()
    assert done.theta[0] == pytest.approx(done.theta[2])
    assert done.converged[[0, 2]].all()


# --- intervals ------------------------------------------------------------------------


def test_coverage_of_the_90_percent_interval():
    """200 data sets: the interval of N* inside the runs covers the truth in 84-96 %.

    Two hundred sets know their coverage to 2.1 points, so the band is 2.8 of them.
    """
    C, truth = 1e20, optimum(BR, 1e20)
    rng = np.random.default_rng(2024)
    hits = 0
    for _ in range(200):
        runs = simulate_runs(BR, *DESIGN, noise=0.003, rng=rng)
        low, high = fit_parametric(runs, resamples=200, rng=rng).interval(C).N
        hits += low <= truth <= high
    assert 0.84 <= hits / 200 <= 0.96


def test_a_fitted_law_is_a_law():
    law = fit_parametric(example_runs("grid64"), resamples=200)
    plan = lab.compute_optimal(law, [1e21, 1e22])
    assert plan.N.shape == (2,)
    assert "90% of resamples" in plan._repr_html_()
    for question in (
        lambda: allocation.waste(law, 2.0),
        lambda: allocation.overhead(law, 0.5),
        lambda: allocation.tokens_for_loss(law, 1e9, 2.5),
        lambda: allocation.hedge([law, BR], 1e21),
        lambda: allocation.frontier_loss(law, 1e21),
        lambda: allocation.elasticity_ratio(law, 1e9, 2e10),
    ):
        assert question() is not None
    box = law.interval([1e21, 1e22])
    assert box.N[0].shape == (2,)
    assert np.all(box.N[0] < plan.N)
    assert np.all(box.N[1] > plan.N)
    assert np.all(box.L[0] < plan.L)
    assert np.all(box.L[1] > plan.L)
    changed = law.with_(alpha=0.4)
    assert changed.resampled is None
    with pytest.raises(ValueError, match="carries no resamples"):
        allocation.interval(BR, 1e22)


def test_interval_grows_with_the_distance():
    law = fit_parametric(example_runs("grid64"), resamples=400)
    box = law.interval(np.geomspace(1e21, 1e26, 6))
    assert np.all(np.diff(np.log(box.N[1] / box.N[0])) > 0)


def test_A_and_B_come_as_correlations():
    estimates = fit_parametric(example_runs("grid64"), resamples=300).estimates()
    assert not {"A", "B"} & set(estimates.values)
    assert estimates.correlations["ln A and alpha"] > 0.99
    assert "correlation of ln A and alpha" in estimates._repr_html_()


def test_seeds_and_generators():
    runs = example_runs("grid64")
    first, again, other = (
        fit_parametric(runs, resamples=20, rng=seed).resampled.alpha
        for seed in (5, np.random.default_rng(5), 6)
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_executor_gives_the_same_numbers():
    from concurrent.futures import ThreadPoolExecutor

    runs = example_runs("grid64")
    with ThreadPoolExecutor(2) as pool:
        spread = fit_parametric(runs, resamples=1100, executor=pool)
    assert np.array_equal(
        spread.resampled.beta, fit_parametric(runs, resamples=1100).resampled.beta
    )


def test_progress_bar_shows_on_request(capsys):
    pytest.importorskip("tqdm")
    fit_parametric(example_runs("grid64"), resamples=1100, progress=True)
    assert "resamples" in capsys.readouterr().err


def test_float32_and_hash_seed():
    """Single precision moves a fit by its own rounding; the hash seed by nothing."""
    runs = simulate_runs(BR, *DESIGN, noise=0.003)
    single = Runs(
        N=runs.N.astype(np.float32), D=runs.D.astype(np.float32),
        L=runs.L.astype(np.float32), N_counts="total",
    )  # fmt: skip
    a, b = (fit_parametric(r, resamples=0) for r in (runs, single))
    assert b.N_counts == "total"
    assert isinstance(b.alpha, float)
    assert a.alpha == pytest.approx(b.alpha, rel=1e-4)
    code = (
        "from chinchilla_lab.fitting import *\n"
        "law = fit_parametric(example_runs('grid64'), resamples=30)\n"
        "print(repr(law.alpha), repr(law.interval(1e22).N))"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, text=True,
            capture_output=True, check=True,
        ).stdout
        for seed in ("0", "1", "4242")
    }  # fmt: skip
    assert len(said) == 1


@pytest.mark.parametrize("estimator", ["parametric", "isoflop"])
@quiet
def test_save_and_load(tmp_path, estimator):
    if estimator == "parametric":
        law = fit_parametric(example_runs("grid64"), resamples=50, name="mine")
    else:
        law = fit_isoflop(example_runs("edge"), resamples=50, name="mine")
    file = tmp_path / "law.json"
    law.save(file)
    back = load_law(file)
    assert type(back) is type(law)
    assert back.interval(1e22).N == law.interval(1e22).N
    assert back.method() == law.method()
    assert (back.fitted, back.notes, back.name) == (law.fitted, law.notes, "mine")
    record = json.loads(file.read_text())
    assert record["law"]["runs_digest"] == law.runs_digest
    assert record["law"]["version"] == lab.__version__
    assert record["law"]["seed"] == "0"
    if estimator == "isoflop":
        assert back.valleys == law.valleys


def test_a_file_that_holds_no_law(tmp_path):
    with pytest.raises(ValueError, match="cannot be read"):
        load_law(tmp_path / "none.json")
    file = tmp_path / "other.json"
    file.write_text('{"law": 3}')
    with pytest.raises(ValueError, match="holds no fitted law"):
        load_law(file)


# --- approach 2 and 1 -----------------------------------------------------------------


def test_parabola_without_noise_is_exact_if_the_exponents_agree():
    law = BR.with_(beta=BR.alpha)
    assert isoflop_bias(law, [2.0, 4.0, 100.0]) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(
    ("law", "expected"),
    [
        (HOFFMANN_2022_PRINTED, [0.013, 0.054, 0.155]),
        (BESIROGLU_2024, [-0.004, -0.016, -0.042]),
    ],
    ids=lambda x: getattr(x, "name", ""),
)
def test_C71_bias_of_a_wide_grid(law, expected):
    """Czech et al.: noise-free grids of factor 4, 16 and 100."""
    found = isoflop_bias(law, [4.0, 16.0, 100.0])
    assert found == pytest.approx(expected, abs=6e-4)


@quiet
@pytest.mark.parametrize("law", [HOFFMANN_2022_PRINTED, BR], ids=lambda law: law.name)
@pytest.mark.parametrize("factor", [4.0, 16.0])
def test_bias_is_what_a_fit_finds(law, factor):
    C = np.repeat(np.geomspace(1e18, 1e22, 5), 15)
    best = allocation.compute_optimal(law, C).N
    N = best * np.tile(np.geomspace(1 / factor, factor, 15), 5)
    runs = Runs(N=N, C=C, L=law.loss(N, C / 6 / N), N_counts="total")
    fit = fit_isoflop(runs, resamples=0)
    assert fit.a == pytest.approx(law.a, rel=1e-9)
    off = fit.optimum(1e24)[0] / optimum(law, 1e24) - 1
    assert off == pytest.approx(float(isoflop_bias(law, factor)), rel=1e-6)


def test_envelope_finds_the_line():
    rng = np.random.default_rng(0)
    rows = []
    for i, N in enumerate(np.geomspace(3e7, 3e10, 25)):
        D = np.geomspace(2 * N, 300 * N, 60)
        noise = np.exp(1e-4 * rng.standard_normal())
        rows += [(f"r{i}", N, d, BR._loss(N, d) * noise) for d in D]
    run, N, D, L = zip(*rows, strict=True)
    runs = Runs(N=N, D=D, L=L, run=run, N_counts="total")
    fit = fit_envelope(runs, resamples=200)
    assert fit.a == pytest.approx(BR.a, abs=0.01)
    low, high = fit.interval(1e21).N
    assert low < fit.optimum(1e21)[0] < high
    assert fit.optimum(1e21)[0] == pytest.approx(optimum(BR, 1e21), rel=0.05)
    with pytest.raises(fitting.TooFewRunsError, match="whole training curves"):
        fit_envelope(Runs(N=N, D=D, L=L, N_counts="total"))


@quiet
def test_resamples_of_an_allocation_are_seeded():
    runs = example_runs("edge")
    one = fit_isoflop(runs, resamples=50, rng=3)
    two = fit_isoflop(runs, resamples=50, rng=np.random.default_rng(3))
    assert np.array_equal(one.resampled.exponent, two.resampled.exponent)


# --- curves and designs ---------------------------------------------------------------


def test_curve_along_one_ratio():
    N = np.geomspace(1e8, 1e10, 12)
    truth = PowerCurve(E=1.8, scale=900.0, exponent=0.34)
    found = fit_curve(N, truth.loss(N))
    assert pytest.approx(1.8, rel=1e-5) == found.E
    assert found.exponent == pytest.approx(0.34, rel=1e-5)
    with pytest.raises(lab.InfeasibleError, match="floor"):
        truth.factor_between(2.0, 1.7)
    with pytest.raises(fitting.TooFewRunsError):
        fit_curve([1e8, 2e8, 3e8], [3.0, 2.9, 2.8])


def test_design_agrees_with_many_fits():
    """First-order error propagation against 300 made-up experiments."""
    N, D = crossed(np.geomspace(5e7, 2e9, 6), 20 * np.geomspace(0.25, 4, 4))
    promised = float(design_factor(BR, N, D, 1e22, noise=0.003))
    found = [
        optimum(fit_parametric(simulate_runs(BR, N, D, 0.003, seed), loss="squares",
                               resamples=0), 1e22)
        for seed in range(300)
    ]  # fmt: skip
    seen = np.exp(1.6449 * np.std(np.log(found)))
    # 300 experiments know a spread to 4 %
    assert np.log(seen) == pytest.approx(np.log(promised), rel=0.12)


@pytest.mark.parametrize(
    ("ratios", "spread", "factor"), [(4, 16, 1.33), (8, 16, 1.25), (4, 2, 2.47)]
)
def test_spread_of_ratios_beats_the_number_of_runs(ratios, spread, factor):
    N, D = crossed(
        np.geomspace(5e7, 2e9, 6), 20 * np.geomspace(spread**-0.5, spread**0.5, ratios)
    )
    assert design_factor(BR, N, D, 1e24) == pytest.approx(factor, abs=0.006)


def test_one_ratio_knows_no_optimum():
    N, D = crossed(np.geomspace(5e7, 2e9, 12), [20.0])
    with pytest.raises(fitting.NotIdentifiableError):
        design_factor(BR, N, D, 1e24)


# --- breakages that happened, by kind ------------------------------------------------


@quiet
@pytest.mark.parametrize(
    ("name", "keep"),
    [
        ("olmo_ladder_final", None),
        ("sardana_47runs", None),
        ("datablations_c4", {"epochs": "1.0"}),
        ("chinchilla_kyotakano234", None),
    ],
)
def test_no_resample_of_other_runs_is_worse_than_scipy(name, keep, others):
    """Few runs and flat valleys: resamples take thousands of steps there."""
    no_resample_is_worse(others(name, keep=keep), 3, 25)


@quiet
def test_resamples_that_find_no_end_are_left_out_and_said(monkeypatch):
    runs = example_runs("grid64")
    monkeypatch.setattr("chinchilla_lab.fitting.solver._STEPS", 8)
    law = fit_parametric(runs, resamples=60)
    assert any("no end of the search" in note for note in law.notes)
    assert law.resampled is None or len(law.resampled.alpha) < 60


def test_losses_that_do_not_fall_are_refused():
    N, D = DESIGN
    rising = Runs(N=N, D=D, L=2.0 + 1e-10 * N, N_counts="total")
    with pytest.raises(fitting.NoPowerLawError):
        fit_parametric(rising)
    with pytest.raises(fitting.NoPowerLawError):
        fit_curve([1e8, 1e9, 1e10, 1e11], [3.0, 3.0, 3.0, 3.0])


def test_runs_of_weight_zero_do_not_count():
    runs = simulate_runs(BR, *DESIGN)
    ratio = runs.D / runs.N
    with pytest.raises(fitting.NotIdentifiableError):
        fit_parametric(runs, weights=np.isclose(ratio, ratio[2]).astype(float))
    with pytest.raises(ValueError, match="all zero"):
        fit_parametric(runs, weights=np.zeros(len(runs)))
    law = fit_parametric(runs, weights=(runs.N < 1e9).astype(float), resamples=0)
    assert law.fitted.N[1] < 1e9
    assert "weight above 0" in law.method()


def test_resampled_envelopes_keep_to_the_truth():
    """Whichever curves are drawn, their own ends are left out."""
    rows = [
        (f"r{i}", N, d, float(BR._loss(N, d)))
        for i, N in enumerate(np.geomspace(3e7, 3e10, 16))
        for d in np.geomspace(2 * N, 300 * N, 40)
    ]
    run, N, D, L = zip(*rows, strict=True)
    fit = fit_envelope(Runs(N=N, D=D, L=L, run=run, N_counts="total"), resamples=300)
    assert np.median(fit.resampled.exponent) == pytest.approx(fit.a, abs=0.02)


def test_best_run_at_the_edge_is_seen_whatever_the_order():
    C = np.repeat([1e19, 1e20, 1e21, 1e22], 8)
    best = allocation.compute_optimal(BR, C).N
    shift = np.tile([0.3, 0.5, 0.8, 1.2, 1.8, 2.6, 3.5, 3.5], 4)
    N = best * shift
    L = np.array(BR._loss(N, C / 6 / N))
    L[7] = L.min() * 0 + L[:7].min() - 0.01  # a lucky second seed of the largest size
    for order in (np.arange(32), np.r_[7, np.arange(7), np.arange(8, 32)]):
        runs = Runs(N=N[order], C=C[order], L=L[order], N_counts="total")
        with pytest.warns(fitting.EdgeMinimumWarning):
            law = fit_isoflop(runs, resamples=0)
        assert not law.valleys[0].interior


@quiet
def test_compute_that_is_not_6nd_is_said():
    C = np.repeat([1e19, 1e20, 1e21], 7)
    best = allocation.compute_optimal(BR, C).N
    N = best * np.tile(np.geomspace(1 / 3, 3, 7), 3)
    D = C / 6 / N
    runs = Runs(N=N, D=D, C=9 * N * D, L=BR._loss(N, D), N_counts="total")
    with pytest.warns(fitting.CountMismatchWarning, match="factor 1.50"):
        fit_isoflop(runs, resamples=0)


def test_interval_says_how_far_it_extrapolates():
    law = fit_parametric(example_runs("grid64"), resamples=50)
    with pytest.warns(lab.ExtrapolationWarning, match="decades"):
        law.interval(1e27)


def test_outer_exponent_starts_on_both_sides_of_one():
    law = lab.laws.AdditiveLaw(E=2.35, A=1.5, B=2.0, alpha=0.05, beta=0.06, k=6.0)
    runs = simulate_runs(law, *DESIGN, noise=0)
    fit = fit_parametric(runs, k="fit", loss="squares", resamples=0)
    assert fit.objective < 1e-10


@pytest.mark.parametrize("rng", [-1, "a", 1.5, True])
def test_seeds_that_are_none(rng):
    with pytest.raises(ValueError, match="is no seed"):
        fit_parametric(example_runs("grid64"), resamples=5, rng=rng)


def test_few_distinct_runs_are_counted_once():
    N, D = crossed([1e8, 1e9], [5.0, 80.0])
    jitter = np.exp(1e-4 * np.random.default_rng(0).standard_normal((20, 4)))
    runs = simulate_runs(BR, (N * jitter).ravel(), np.tile(D, 20))
    with pytest.raises(fitting.TooFewRunsError, match="2 sizes"):
        fit_parametric(runs)
    few = crossed([1e8, 4e8, 2e9], [5.0, 80.0])
    with pytest.warns(fitting.ShortRangeWarning, match="6 distinct runs"):
        fit_parametric(simulate_runs(BR, *few), resamples=0)
