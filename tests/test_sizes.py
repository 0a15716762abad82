"""How far a cluster moves the best size: closed forms against brute force."""

import numpy as np
import pytest

from chinchilla_lab.allocation import tokens_for_loss
from chinchilla_lab.checks import InfeasibleError
from chinchilla_lab.cluster import Cluster
from chinchilla_lab.figures.one_plan import four_optima
from chinchilla_lab.figures.planning import one_shape_study, size_study
from chinchilla_lab.laws import BESIROGLU_2024, PUBLISHED
from chinchilla_lab.planning import (
    by_size,
    measured_shift,
    naive_size,
    plan,
    sensitivity,
    shift,
    time_at,
)
from chinchilla_lab.units import DAY

pytestmark = pytest.mark.filterwarnings("ignore::chinchilla_lab.ExtrapolationWarning")
LAW = BESIROGLU_2024
LOFT = Cluster(accelerator="h100-sxm-80gb", n_accelerators=64)


@pytest.mark.parametrize("slope", [-0.05, -0.02, 0.02, 0.05])
def test_shift_meets_a_brute_force_where_the_valley_is_a_parabola(slope):
    N = np.geomspace(3e9, 6e10, 200_001)
    work = N * tokens_for_loss(LAW, N, 2.1)
    time = work / N**slope
    found = shift(LAW, slope)
    assert N[time.argmin()] / N[work.argmin()] == pytest.approx(
        found.size_factor, rel=5e-3
    )
    gain = time[work.argmin()] / time.min() - 1
    # a third of a percent of slope is missing to the cubic term
    assert gain == pytest.approx(found.gain, rel=0.05)


def test_shift_of_the_blueprint():
    found = shift(LAW, [0.03, 0.22])
    assert found.size_factor == pytest.approx([1.04, 1.36], abs=0.005)
    assert found.gain == pytest.approx([0.0006, 0.034], abs=5e-4)
    with pytest.raises(TypeError, match="no additive form"):
        shift(PUBLISHED["muennighoff-2023-repeated"], 0.1)


def test_a_measured_power_law_is_the_shift():
    N = np.geomspace(2e9, 1e11, 5)
    found = measured_shift(LAW, N, 0.4 * (N / 2e9) ** 0.05, loss=2.1)
    assert found.size_factor == pytest.approx(shift(LAW, 0.05).size_factor, rel=0.01)
    assert found.gain == pytest.approx(shift(LAW, 0.05).gain, rel=0.05)
    assert found.best_seconds is None
    with pytest.raises(ValueError, match="a size twice"):
        measured_shift(LAW, [1e10, 1e10], [0.4, 0.4], loss=2.1)
    with pytest.raises(InfeasibleError, match="out of reach"):
        measured_shift(LAW, [1e7, 1e8], [0.4, 0.4], loss=2.0)


def test_budget_times_taste_is_the_factor():
    made = plan(LOFT, deadline=30 * DAY)
    N, budget, taste = naive_size(made)
    assert N * budget * taste == pytest.approx(made.N, rel=1e-9)
    assert budget == pytest.approx((made.utilisation / 0.4) ** LAW.a, rel=1e-3)


def test_time_at_is_the_time_that_a_planner_finds():
    best = plan(LOFT, deadline=30 * DAY)
    other = by_size(best.problem, [2 * best.N])[0]
    again = by_size(
        best.problem.with_(objective="time", target_loss=best.loss, deadline=None,
                           batch_limit=best.batch_tokens),
        [other.N], 1e-9,
    )[0]  # fmt: skip
    assert again.shape == other.shape
    ratio = again.seconds / best.seconds
    assert time_at(best, other) == pytest.approx(ratio, rel=1e-3)


def test_more_shapes_lose_less():
    one, many = one_shape_study(most=1), one_shape_study(most=8)
    assert one.lost.max() > 1.2
    assert many.lost.max() < 1.05
    assert np.ptp(np.log(many.k)) < np.ptp(np.log(one.k))


def test_the_law_alone_lies_under_the_shapes_of_equal_speed():
    study = size_study(64, 30.0, np.inf, 50.0, "besiroglu-2024", True, True)
    assert min(study.factors) == pytest.approx(1.0, abs=1e-9)
    assert study.median_shape >= 1.0


def test_joint_plan_costs_no_more_than_meeting_the_deadline_asks():
    loose = four_optima(1e22, 64, 10.0, 5e10, 1e12, "besiroglu-2024")
    tight = four_optima(1e22, 64, 4.0, 5e10, 1e12, "besiroglu-2024")
    assert loose.joint is loose.wish
    assert tight.joint.days <= 4.0
    assert tight.joint.score >= loose.joint.score
    assert tight.joint.loss <= tight.data.loss * (1 + 1e-8)


def test_an_accelerator_is_no_free_dollar():
    """One more is paid for: a plan for least cost gains nothing from it."""
    made = plan(LOFT, objective="cost", target_loss=2.1)
    rows = {r.limit: r for r in sensitivity(made).rows}
    assert rows["accelerators"].worth >= 0.0
    assert not rows["accelerators"].binds
