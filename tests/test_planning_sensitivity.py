"""What binds, against plans made again from nothing."""

import time

import numpy as np
import pytest

from chinchilla_lab.cluster import Cluster
from chinchilla_lab.laws import BESIROGLU_2024 as LAW
from chinchilla_lab.planning import plan, sensitivity
from chinchilla_lab.planning.sensitivity import describe
from chinchilla_lab.units import DAY

pytestmark = pytest.mark.filterwarnings("ignore::chinchilla_lab.ExtrapolationWarning")
LOFT = Cluster(accelerator="h100-sxm-80gb", n_accelerators=64)
IDEAL = {
    "utilisation": 0.4,
    "shape_family": None,
    "reliability": None,
    "price": "2@2026-11",
}
LIFE = {"objective": "lifetime", "target_loss": 2.05, "inference_tokens": 1e13}


def rows(made):
    return {w.limit: w for w in sensitivity(made).rows}


@pytest.fixture(scope="module")
def free():
    return plan(LOFT, **LIFE)


@pytest.fixture(scope="module")
def hurried(free):
    return plan(LOFT, deadline=0.8 * free.seconds, **LIFE)


def test_a_deadline_binds_the_cost_of_a_life(free, hurried):
    """A tenth more of it saves as many dollars as a plan made again."""
    found = sensitivity(hurried)
    row = {w.limit: w for w in found.rows}["deadline"]
    assert row.binds
    assert found.binding in {"deadline", "accelerators"}
    again = plan(LOFT, deadline=0.88 * free.seconds, **LIFE)
    days = 0.08 * free.days
    assert row.worth * days == pytest.approx(again.score - hurried.score, rel=0.03)
    assert row.time_share == pytest.approx(1 - again.score / hurried.score, rel=0.03)
    # half of it already saves more than $10k
    half = plan(LOFT, deadline=0.84 * free.seconds, **LIFE)
    assert hurried.score - half.score > 10e3
    # without a deadline there is no row, and nothing binds but the target
    assert "deadline" not in rows(free)
    assert sensitivity(free).binding == "target loss"


def test_a_budget_binds_the_time():
    asked = LIFE | {"objective": "time"}
    soonest = plan(LOFT, **asked)
    total = soonest.dollars + soonest.serving_dollars
    made = plan(LOFT, budget=0.9 * total, **asked)
    row = rows(made)["budget"]
    assert row.binds
    again = plan(LOFT, budget=0.99 * total, **asked)
    assert row.time_share == pytest.approx(1 - again.score / made.score, rel=0.05)


@pytest.mark.parametrize(
    "limits",
    [
        {"objective": "cost", "target_loss": 2.1, "deadline": 40 * DAY},
        {"objective": "time", "target_loss": 2.1, "unique_tokens": 1e11},
        {"objective": "lifetime", "target_loss": 2.1, "budget": 3e6,
         "inference_tokens": 1e12},
        {"deadline": 20 * DAY, "budget": 1e6, "critical_batch": 3e7},
        {"compute": 3e22},
    ],
    ids=lambda x: x.get("objective", "loss"),
)  # fmt: skip
def test_every_finite_limit_has_a_row(limits):
    made = plan(LOFT, thorough=False, **limits)
    names = {
        "deadline": "deadline", "budget": "budget", "compute": "compute",
        "unique_tokens": "unique tokens", "critical_batch": "critical batch",
        "target_loss": "target loss",
    }  # fmt: skip
    wanted = {names[k] for k in limits if k in names}
    found = rows(made)
    assert set(found) == wanted | {"accelerators", "network", "memory", "batch"}
    for row in found.values():
        # more of a limit never hurts, but for accelerators, which are paid
        assert row.worth <= 0.0 or row.limit == "accelerators"
        assert np.isfinite(row.time_share)


def test_ten_percent_of_each_compare():
    """On an ideal machine a tenth more time and a tenth more machine are the same."""
    made = plan(LOFT, deadline=30 * DAY, **IDEAL)
    found = rows(made)
    share = 1 - 1.1 ** (-LAW.gamma) - 0.0
    assert share > 0
    assert found["deadline"].time_share == pytest.approx(1 - 1 / 1.1, rel=0.02)
    # 70 accelerators in place of 64, brought to ten percent: to second order alike
    assert found["accelerators"].time_share == pytest.approx(
        found["deadline"].time_share, rel=0.01
    )


def test_target_loss_is_worth_the_slope_of_compute():
    """A tenth of the excess: time falls by 1.1 ** (1 / gamma)."""
    made = plan(LOFT, objective="time", target_loss=2.1, **IDEAL)
    row = rows(made)["target loss"]
    assert row.time_share == pytest.approx(1 - 1.1 ** (-1 / LAW.gamma), rel=1e-3)


def test_sensitivity_is_quick_after_a_plan(hurried):
    hurried.__dict__.pop("_sensitivity", None)
    start = time.process_time()
    found = sensitivity(hurried)
    assert time.process_time() - start < 1.0
    start = time.process_time()
    assert sensitivity(hurried) is found
    assert time.process_time() - start < 0.01


def test_heads_say_unit_sign_and_percent(hurried):
    found = sensitivity(hurried)
    html, lines = found._repr_html_(), str(found).splitlines()
    for head in (
        "one more is worth [USD] (below 0 is better)",
        "10 % more saves, of the cost [%]",
    ):
        assert head in html
        assert head in lines[0]
    assert len(lines) == len(found.rows) + 2
    row = next(w for w in found.rows if w.limit == "deadline")
    assert f"{100 * row.time_share:.2f}" in str(found)
    assert "one more" in describe(found)
    timed = sensitivity(plan(LOFT, deadline=30 * DAY, thorough=False))
    assert timed.heads[1] == "10 % more saves, of the time [%]"
