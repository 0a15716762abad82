"""Public reports that concern service, repeated data and thresholds.

The ids are those of the collection; the docstring says where the error was seen.
"""

import numpy as np
import pytest

import chinchilla_lab as lab
from chinchilla_lab import allocation, inference, repetition, thresholds
from chinchilla_lab.laws import (
    BESIROGLU_2024,
    HOFFMANN_2022,
    HOFFMANN_2022_PRINTED,
    KAPLAN_2020_CMIN,
    MUENNIGHOFF_2023_REPEATED,
    RATIO_20,
    SARDANA_2024,
)

pytestmark = pytest.mark.filterwarnings("ignore::chinchilla_lab.ExtrapolationWarning")


@pytest.mark.parametrize("T", [0.0, 1e10, 1e12, 1e15])
def test_C04_size_and_data_have_two_formulas_under_demand_too(T):
    """A lesson gives N and D one formula; a lifetime budget is spent exactly."""
    plan = inference.lifetime_optimal(BESIROGLU_2024, T, budget=1e23)
    assert pytest.approx(1e23, rel=1e-9) == 6 * plan.N * plan.D + 2 * plan.N * T
    for k in (1.01, 1 / 1.01):
        N = plan.N * k
        D = (1e23 - 2 * N * T) / (6 * N)
        assert BESIROGLU_2024.loss(N, D) > plan.L


def test_C05_every_lifetime_answer_inherits_the_coefficients():
    """Somebody copies the printed coefficients and expects 20 tokens per parameter."""
    laws = (HOFFMANN_2022_PRINTED, HOFFMANN_2022, BESIROGLU_2024)
    ratios = [allocation.compute_optimal(law, 5.76e23).tokens_per_param for law in laws]
    assert ratios == pytest.approx([92.6, 58.9, 18.4], rel=2e-3)
    band = inference.lifetime_spread(3e12, 70e9, laws)
    assert band.saved.max() > 10 * band.saved.min()
    assert "Hoffmann 2022, as printed" in band._repr_html_()


def test_C06_equal_training_is_not_equal_lifetime():
    """A lesson compares 70B/1.4T with 175B/300B at "the same compute"."""
    assert pytest.approx(1.87, abs=5e-3) == 70e9 * 1.4e12 / (175e9 * 300e9)
    served = [2 * N * 1e12 for N in (70e9, 175e9)]
    total = [6 * 70e9 * 1.4e12 + served[0], 6 * 175e9 * 300e9 + served[1]]
    # after 1e12 tokens served the smaller model still costs more, after 3e12 less
    assert total[0] > total[1]
    more = [t + 2 * s for t, s in zip(total, served, strict=True)]
    assert more[0] < more[1]


def test_C07_demand_slows_the_growth_of_size():
    """A note credits 5.5 and 1.8, exponents of the Kaplan type, to Chinchilla."""
    assert allocation.growth(KAPLAN_2020_CMIN, 10)[0] == pytest.approx(5.4, abs=0.05)
    assert allocation.growth(RATIO_20, 10) == pytest.approx((3.162, 3.162), rel=1e-3)
    free = allocation.growth(BESIROGLU_2024, 10)
    assert free == pytest.approx((3.26, 3.07), abs=5e-3)
    plans = inference.lifetime_optimal(BESIROGLU_2024, 1e12, budget=[1e22, 1e23])
    assert plans.N[1] / plans.N[0] > free[0]  # the fixed demand weighs less and less


def test_C15_a_loss_out_of_reach_in_every_module():
    """An exercise asks a 7B model for a loss of 1.968."""
    with pytest.raises(lab.InfeasibleError, match=r"floor is 1\.9987.*11\.9B"):
        inference.lifetime_at(BESIROGLU_2024, 7e9, 1e12, 1.968)
    assert inference.size_floor(BESIROGLU_2024, 1.968) == pytest.approx(
        1.193e10, rel=1e-3
    )
    found = thresholds.smallest_model_for(BESIROGLU_2024, loss=1.968)
    assert pytest.approx(1.193e10, rel=1e-3) == found.N


def test_C16_small_models_at_equal_loss():
    """A tool returned NaN below the least size."""
    half, quarter = (thresholds.crossing_cost(SARDANA_2024, k) for k in (0.5, 0.25))
    assert half.token_factor == pytest.approx(2.416, abs=5e-4)
    assert half.training == pytest.approx(0.208, abs=5e-4)
    assert quarter.training == pytest.approx(1.889, abs=5e-4)
    assert inference.least_size_factor(SARDANA_2024) == pytest.approx(0.0974, abs=5e-5)
    own = thresholds.crossing_cost(BESIROGLU_2024, [0.5, 0.25])
    assert own.training == pytest.approx([0.259, 3.47], rel=5e-3)
    for ask in (inference.factors_for_size, thresholds.crossing_cost):
        with pytest.raises(lab.InfeasibleError, match="cannot reach"):
            ask(BESIROGLU_2024, 0.1)


def test_C55_a_roofline_is_no_forecast():
    """Predicted and measured tokens a second of Llama-7B on A100."""
    rows = inference.roofline_checks()
    predicted = [float(r["predicted_tokens_per_s"]) for r in rows]
    measured = [float(r["measured_tokens_per_s"]) for r in rows]
    ratios = np.array(predicted) / measured
    assert ratios == pytest.approx([1.67, 1.84, 1.44, 1.91], abs=5e-3)
    least, typical, most = inference.slowdown(predicted, measured)
    low, high = inference.MEASURED_SLOWDOWN
    assert low <= least < typical < most <= high
    llama = inference.ServedModel(N=6.74e9)
    a100 = inference.ServingHardware(peak_flops=312e12, bandwidth=2.0e12)
    read = inference.prefill(llama, a100, prompt=2048)
    assert 1e3 * read.step_time == pytest.approx(88.5, abs=0.05)
    assert read.step_time / 120.5e-3 == pytest.approx(0.73, abs=5e-3)
    assert "upper bound" in read._repr_html_()


def test_C60_four_epochs_are_not_free_and_R_is_no_half_life():
    """Students write "4 epochs are free" or "7 is best"; one calls R* a half-life."""
    law = MUENNIGHOFF_2023_REPEATED
    worth = repetition.effective_tokens(1.0, [2, 4, 7, 16])
    assert worth == pytest.approx([1.968, 3.726, 5.969, 10.58], abs=3e-3)
    assert worth[1] / 4 == pytest.approx(0.93, abs=5e-3)
    assert worth[3] / 16 == pytest.approx(0.66, abs=5e-3)
    assert law.ceiling == pytest.approx(16.39, abs=5e-3)
    assert law.half_life == pytest.approx(10.7, abs=0.05)
    assert repetition.marginal_value(1 + law.R_D) == pytest.approx(np.exp(-1))


def test_C62_epochs_are_not_repeats_and_total_is_not_unique():
    """A student takes one for the other: U = 25e9, D = 178e9."""
    found = repetition.passes(25e9, tokens=178e9)
    assert found.epochs == pytest.approx(7.12)
    assert found.repeats == pytest.approx(6.12)
    html = found._repr_html_()
    for shown in ("25B", "178B", "7.12", "6.12"):
        assert shown in html
    plan = repetition.optimal(MUENNIGHOFF_2023_REPEATED, 1e22, 25e9)
    assert plan.epochs - plan.repeats == pytest.approx(1.0)
    for head in (">epochs [-]<", ">repeats [-]<"):
        assert head in plan._repr_html_()
