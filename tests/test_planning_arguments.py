"""Arguments of a plan: each changes what comes out, or is refused; none is ignored."""

import inspect
import warnings
from dataclasses import replace
from functools import cache

import pytest

from chinchilla_lab.checks import InfeasibleError
from chinchilla_lab.cluster import (
    STACKS,
    Cluster,
    Layout,
    MeasuredStep,
    Reliability,
    calibrate,
    search,
    step_time,
)
from chinchilla_lab.laws import HOFFMANN_2022
from chinchilla_lab.planning import closure, decode_utilisation, plan, typed_plan
from chinchilla_lab.shape import SHAPES
from chinchilla_lab.units import DAY

pytestmark = pytest.mark.filterwarnings("ignore::chinchilla_lab.ExtrapolationWarning")
LOFT = Cluster(accelerator="h100-sxm-80gb", n_accelerators=16)

OBJECTIVES = {
    "loss": {"deadline": 20 * DAY},
    "time": {"target_loss": 2.2},
    "cost": {"target_loss": 2.2},
    "lifetime": {"target_loss": 2.2, "inference_tokens": 1e12},
}
MODES = {
    "searched": {"thorough": False},
    "given utilisation": {"thorough": False, "utilisation": 0.4},
    "any size": {"utilisation": 0.4, "shape_family": None},
}
# a value for each argument that bites
ARGUMENTS = {
    "law": HOFFMANN_2022,
    "n_working": 8,
    "deadline": 18 * DAY,
    "budget": 1e4,
    "compute": 2e21,
    "target_loss": 2.25,
    "unique_tokens": 2e10,
    "inference_tokens": 3e12,
    "shape_family": "small",
    "seq_len": 6000,
    "batch_limit": 2**19,
    "critical_batch": 2**21,
    "stack": STACKS["uncalibrated"],
    "dtype": "fp8",
    "recipe": "fp32-adam",
    "memory_limit": 30e9,
    "reliability": Reliability(failures_per_node_day=0.5, band=(0.5, 0.5)),
    "price": "9@2026-11",
    "utilisation": 0.3,
    "serving_utilisation": 0.2,
    "pue": 1.2,
    "options": {"tp": (8,)},
    "confidence": 0.8,
}
# what cannot count, by objective (None for all) and mode (None for all)
REFUSED = {
    ("loss", None): {"target_loss"},
    **{(o, None): {"confidence"} for o in ("time", "cost", "lifetime")},
    (None, "given utilisation"): {"stack", "recipe", "memory_limit", "options"},
    (None, "any size"): {
        "stack", "recipe", "memory_limit", "options", "seq_len", "batch_limit",
        "critical_batch",
    },
    ("loss", "no demand"): {"serving_utilisation"},
    ("time", "no demand"): {"serving_utilisation"},
    ("cost", "no demand"): {"serving_utilisation"},
}  # fmt: skip


def refused(objective, mode):
    return {
        name
        for (o, m), names in REFUSED.items()
        for name in names
        if o in (None, objective) and m in (None, mode, "no demand")
    }


@cache
def base_plan(objective, mode):
    return plan(LOFT, objective=objective, **OBJECTIVES[objective], **MODES[mode])


def shown(made):
    """Everything that a reader sees of a plan, and the limits it was held against."""
    limits = [(one.name, one.right) for one in closure(made).identities]
    return made.record(), made.rows(), made.assumptions, limits


@pytest.mark.parametrize("name", ARGUMENTS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_no_argument_is_ignored(objective, mode, name):
    base = {"objective": objective, **OBJECTIVES[objective], **MODES[mode]}
    if mode == "any size" and name == "shape_family":
        pytest.skip("a family makes it another mode")
    changed = base | {name: ARGUMENTS[name]}
    if name in refused(objective, mode):
        with pytest.raises(ValueError, match=rf"{name}=.* counts for nothing"):
            plan(LOFT, **changed)
        return
    try:
        made = plan(LOFT, **changed)
    except InfeasibleError:
        return  # a limit that is too tight is anything but ignored
    assert closure(made).holds
    assert shown(made) != shown(base_plan(objective, mode))


def test_every_argument_is_in_the_table():
    # whole_run says what intervals and chances count, which not every plan shows
    free = {"cluster", "objective", "keep", "thorough", "progress", "whole_run"}
    assert set(inspect.signature(plan).parameters) - free == set(ARGUMENTS)


def test_refusals_say_where_to_go():
    with pytest.raises(ValueError, match="ask objective='time' or 'cost' for the soon"):
        plan(LOFT, target_loss=2.0, deadline=DAY)
    with pytest.raises(ValueError, match="leave utilisation out, or drop it"):
        plan(LOFT, deadline=DAY, utilisation=0.4, stack="llama-3")
    for name, value in (("objective", "time"), ("target_loss", 2.0)):
        with pytest.raises(ValueError, match=f"{name}=.* use plan"):
            typed_plan(LOFT, SHAPES["llama-3-8b"], 1e11, 512, **{name: value})


def test_demand_that_does_not_move_the_plan_is_said_to_be_priced_only():
    made = plan(LOFT, deadline=10 * DAY, inference_tokens=1e12, thorough=False)
    plain = plan(LOFT, deadline=10 * DAY, thorough=False)
    assert plain.N == made.N
    assert any("does not move the plan" in words for words in made.assumptions)
    assert any(name == "serving [USD]" for name, _ in made.rows())


def test_a_calibration_is_taken_wherever_a_stack_is():
    shape = SHAPES["llama-3-8b"]
    layout = Layout(dp=16, zero=1, recompute="full")
    step = step_time(shape, LOFT, layout, 64, 8192)
    row = MeasuredStep(
        shape=shape, cluster=LOFT, layout=layout, batch=64, seq_len=8192,
        seconds=1.3 * step.seconds,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one row settles one constant, no error
        own = calibrate([row], constants=("gemm",))
    one, other = (
        (
            plan(LOFT, deadline=DAY, stack=which, thorough=False).seconds,
            typed_plan(LOFT, shape, 1e9, 64, seq_len=8192, stack=which).seconds,
            step_time(shape, LOFT, layout, 64, 8192, which).seconds,
            search(shape, LOFT, 64, 8192, which).best.seconds,
        )
        for which in (own, own.stack)
    )
    assert one == other


def test_a_batch_in_tokens_is_refused_with_its_sequences():
    shape, words = SHAPES["llama-3-8b"], "8388608 tokens are 1024 sequences of 8192"
    with pytest.raises(ValueError, match=words):
        typed_plan(LOFT, shape, 1e11, 8388608, seq_len=8192)
    with pytest.raises(ValueError, match=words):
        search(shape, LOFT, 8388608, 8192)
    with pytest.raises(ValueError, match=words):
        MeasuredStep.from_run(shape, LOFT, Layout(dp=16), 8388608, 8192, 1e9, 1e3)


def test_no_job_fills_more_than_the_card():
    with pytest.raises(ValueError, match=r"199.6 GB is more than the 85.5 GB"):
        plan(LOFT, deadline=DAY, memory_limit=199.6e9)
    with pytest.raises(ValueError, match="leave it out to fill the card"):
        typed_plan(LOFT, SHAPES["llama-3-8b"], 1e11, 512, memory_limit=199.6e9)
    # 80 GiB typed for the card is the card
    full = plan(LOFT, deadline=DAY, memory_limit=80 * 2**30, thorough=False)
    assert full.N == plan(LOFT, deadline=DAY, thorough=False).N


def test_demand_without_a_price_is_refused():
    free = replace(LOFT, accelerator=replace(LOFT.chip, price=None))
    with pytest.raises(ValueError, match=r"inference_tokens=.* counts for nothing"):
        plan(free, deadline=DAY, inference_tokens=1e12)


def test_energy_is_hours_times_power_times_pue():
    made = plan(LOFT, deadline=10 * DAY, pue=1.2, thorough=False)
    bare = plan(LOFT, deadline=10 * DAY, thorough=False)
    kilowatts = LOFT.chip.power / 1000
    assert made.energy.mwh == pytest.approx(made.hours * kilowatts * 1.2 / 1000)
    assert made.energy.watts == pytest.approx(16 * LOFT.chip.power * 1.2)
    assert made.record()["energy_mwh"] == made.energy.mwh
    assert made.energy.joules == pytest.approx(1.2 * bare.energy.joules)
    assert "accelerators alone" in dict(bare.rows())["energy at rated power [MWh]"]
    unknown = replace(LOFT, accelerator=replace(LOFT.chip, power=None))
    assert plan(unknown, deadline=DAY, thorough=False).energy is None
    with pytest.raises(ValueError, match=r"pue=1.2 counts for nothing"):
        plan(unknown, deadline=DAY, pue=1.2)
    with pytest.raises(ValueError, match=r"pue=0.9 is below 1"):
        plan(LOFT, deadline=DAY, pue=0.9)


@pytest.mark.parametrize("objective", ["time", "cost", "lifetime"])
def test_a_missing_target_is_named(objective):
    limits = {"deadline": 10 * DAY, "thorough": False}
    least = plan(LOFT, **limits).loss
    with pytest.raises(ValueError, match=f"is {least:.4f} nats/token") as said:
        plan(LOFT, objective=objective, inference_tokens=1e12, **limits)
    target = float(str(said.value).rpartition("=")[2])
    assert least + 0.005 <= target <= least + 0.015
    made = plan(LOFT, objective=objective, target_loss=target, **limits)
    assert made.seconds < 10 * DAY
    with pytest.raises(ValueError, match="objective='loss' with a deadline"):
        plan(LOFT, objective=objective)


def test_serving_is_told_what_decoding_reaches():
    made = plan(LOFT, budget=2e4, inference_tokens=1e11, thorough=False)
    note = next(x for x in made.assumptions if x.startswith("serving at the util"))
    low, high = decode_utilisation(made.shape, LOFT, 4096)
    assert f"about {low:.0%} to {high:.0%} here" in note
    assert 0.0 < low < high < made.utilisation
    assert high / low == pytest.approx(2.0 / 1.4)
    own = float(note.rpartition("=")[2])
    again = plan(
        LOFT, budget=2e4, inference_tokens=1e11, thorough=False, serving_utilisation=own
    )
    assert not any(x.startswith("serving at the util") for x in again.assumptions)
    # dearer service leaves less for training
    assert again.loss > made.loss


def test_a_single_quote_is_one_figure():
    one, two = (plan(LOFT, deadline=DAY, price=p, thorough=False)
                for p in ("2@2026-11", "2:3@2026-11"))  # fmt: skip
    assert dict(one.rows())["cost [USD]"] == "$768, single quote"
    assert dict(two.rows())["cost [USD]"] == "$768 to $1.15k"
