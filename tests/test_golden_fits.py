"""Rows of ``golden_laws.csv`` that need a fit: of data of others, or of made-up runs."""

import numpy as np
import pytest
from conftest import golden_rows

from chinchilla_lab import allocation
from chinchilla_lab.fitting import Runs, fit_isoflop, fit_parametric
from chinchilla_lab.laws import HOFFMANN_2022_PRINTED

pytestmark = [
    pytest.mark.filterwarnings("ignore::chinchilla_lab.ExtrapolationWarning"),
    pytest.mark.filterwarnings("ignore::chinchilla_lab.fitting.FitWarning"),
]

ROWS = golden_rows("golden_laws.csv")
CHINCHILLA = 5.76e23


def meets(key, found):
    row = ROWS[key]
    assert found == pytest.approx(
        float(row["expected"]), rel=max(float(row["rel_tol"]), 1e-12)
    ), row["source"]


@pytest.fixture(scope="module")
def epoch(others):
    return others("chinchilla_epoch245")


@pytest.fixture(scope="module")
def kept(epoch):
    return epoch.drop_highest(5)


@pytest.fixture(scope="module")
def huber(kept):
    return fit_parametric(kept, resamples=200, rng=0)


def ratio(law):
    return float(allocation.compute_optimal(law, CHINCHILLA).tokens_per_param)


def test_L031_rows_kept(kept):
    assert len(kept) == int(ROWS["L031"]["expected"])


def test_L033_printed_coefficients_on_the_runs(kept):
    law = HOFFMANN_2022_PRINTED
    r = np.log(law.loss(kept.N, kept.D)) - np.log(kept.L)
    size = np.abs(r)
    terms = np.where(size <= 1e-3, 0.5 * r * r, 1e-3 * (size - 0.5e-3))
    meets("L033", terms.sum())


def test_L034_objective(huber):
    meets("L034", huber.objective)
    # to more digits than the row: two other optimisers agree on these
    assert huber.objective == pytest.approx(1.018274017800598e-3, rel=1e-10)


@pytest.mark.parametrize(
    ("key", "letter"),
    [("L035", "E"), ("L036", "A"), ("L037", "B"), ("L038", "alpha"), ("L039", "beta")],
)
def test_huber_optimum(huber, key, letter):
    meets(key, getattr(huber, letter))


def test_L040_tokens_per_parameter(huber):
    meets("L040", ratio(huber))


@pytest.mark.parametrize(("key", "letter"), [("L041", "A"), ("L042", "B")])
def test_least_absolute_deviations_give_the_published_digits(kept, key, letter):
    meets(key, getattr(fit_parametric(kept, loss="lad", resamples=0), letter))


def test_L043_L044_five_runs_decide(epoch):
    law = fit_parametric(epoch, resamples=0)
    meets("L043", law.beta)
    meets("L044", ratio(law))


@pytest.mark.parametrize(
    ("key", "letter"), [("L045", "alpha"), ("L046", "beta"), ("L047", "a")]
)
def test_standard_errors_of_200_resamples(huber, key, letter):
    meets(key, np.std(getattr(huber.resampled, letter), ddof=1))


def test_L093_L094_gadre(others):
    from chinchilla_lab.replications import _gadre_fit

    runs = others("gadre_testbed", keep={"train_set": "rpj", "val": "c4_val"})
    law = _gadre_fit(runs)
    meets("L093", -law.alpha)
    at = np.flatnonzero((runs.N > 1e9) & (abs(runs.D / runs.N - 640) < 1))[0]
    meets("L094", 100 * (law.loss(runs.N[at], runs.D[at]) / runs.L[at] - 1))


@pytest.mark.parametrize("factor", [2.0, 16.0])
def test_L096_L098_parabola_on_a_surface_without_noise(factor):
    law = HOFFMANN_2022_PRINTED
    C = np.geomspace(1e17, 1e21, 5)
    best = allocation.compute_optimal(law, C)
    x = np.linspace(-1, 1, 15) * np.log(factor)
    D = (best.D[:, None] * np.exp(x)).ravel()
    c = np.repeat(C, 15)
    N = c / (6 * D)
    runs = Runs(N=N, D=D, L=law.loss(N, D), N_counts="total")
    fit = fit_isoflop(runs, along="D", resamples=0)
    if factor == 2.0:
        off = fit.optimum(1e19)[1] / allocation.compute_optimal(law, 1e19).D - 1
        # the row is rounded to four digits of a small number
        assert off == pytest.approx(float(ROWS["L096"]["expected"]), rel=1e-4)
    else:
        meets("L098", fit.b)
