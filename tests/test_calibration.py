"""Calibration against made-up runs whose constants are known, and against nonsense."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chinchilla_lab.cluster import (
    STACKS,
    TYPICAL,
    UNCALIBRATED,
    CalibrationWarning,
    Cluster,
    Layout,
    MeasuredStep,
    Stack,
    calibrate,
    step_time,
)
from chinchilla_lab.cluster.stacks import FITTABLE, find_stack
from chinchilla_lab.shape import SHAPES

L8 = SHAPES["llama-3-8b"]
H100 = "h100-sxm-80gb"


def timed(n, plan, batch, stack=TYPICAL, times=1.0):
    """A step whose time is that of a stack, or a multiple of it."""
    cluster = Cluster(accelerator=H100, n_accelerators=n)
    seconds = times * step_time(L8, cluster, plan, batch, 8192, stack).seconds
    return MeasuredStep(
        shape=L8, cluster=cluster, layout=plan, batch=batch, seq_len=8192,
        seconds=seconds,
    )  # fmt: skip


PLAN = Layout(tp=2, dp=32, zero=1, recompute="full", sequence_parallel=True)


def one_node(stack=TYPICAL):
    """Three plans that a single node can run: no network, no second node."""
    return [
        timed(8, replace(PLAN, tp=tp, dp=8 // tp, recompute=again), 64, stack)
        for tp, again in ((2, "full"), (4, "full"), (8, "none"))
    ]


@pytest.mark.parametrize("times", [0.5, 0.1, 1e-6])
def test_a_run_faster_than_the_bound_is_refused(times):
    run = timed(64, PLAN, 512, times=times)
    with pytest.raises(ValueError, match=r"times as fast as the machine allows.*peak"):
        calibrate([run], TYPICAL, label="x")


@pytest.mark.parametrize("times", [40.0, 1e3, 1e5])
@pytest.mark.parametrize("constant", FITTABLE)
def test_a_run_far_too_slow_is_refused(times, constant):
    """Whatever constant would have to take the blame."""
    with pytest.raises(ValueError, match="seconds are those of one step"):
        calibrate([timed(64, PLAN, 512, times=times)], TYPICAL, (constant,))


def test_a_run_at_the_bound_is_not_a_fit():
    """Three percent above the bound is clocks and rounding; nothing was fitted."""
    run = timed(64, PLAN, 512, times=0.97)
    with pytest.warns(CalibrationWarning, match="gemm ended at the end of the range"):
        found = calibrate([run], TYPICAL, label="x")
    assert found.stack.gemm == 1.0
    assert found.stack.fitted == ()
    assert found.at_bound == ("gemm",)
    assert found.stack.label == "upper bound"
    assert "at the end of its range: gemm" in found._repr_html_()


def test_what_one_node_cannot_settle_is_not_called_fitted():
    """Network and jitter act between nodes; on one node their slopes are zero."""
    truth = TYPICAL.with_(gemm=0.7)
    with pytest.warns(CalibrationWarning, match="do not settle network, jitter"):
        found = calibrate(one_node(truth), TYPICAL, ("gemm", "network", "jitter"))
    assert found.stack.fitted == ("gemm",)
    assert found.stack.gemm == pytest.approx(0.7, rel=1e-6)
    assert found.unsettled == ("network", "jitter")
    assert found.stack.network == TYPICAL.network
    assert found.stack.jitter == TYPICAL.jitter == 0.0
    assert "not settled by these rows: network, jitter" in found._repr_html_()


def test_two_names_of_one_factor_are_one_constant():
    """Equal rows know one number, however many constants are asked for."""
    rows = [timed(64, PLAN, 512, TYPICAL.with_(gemm=0.6))] * 3
    with pytest.warns(CalibrationWarning, match="do not settle jitter"):
        found = calibrate(rows, TYPICAL, ("gemm", "jitter"))
    assert found.stack.fitted == ("gemm",)
    assert found.stack.gemm == pytest.approx(0.6, rel=1e-6)


def test_a_constant_that_falls_to_zero_is_at_its_bound():
    truth = TYPICAL.with_(gemm=0.8)
    rows = [
        timed(8 * k, replace(PLAN, tp=2, dp=4 * k), 64 * k, truth) for k in (1, 2, 8)
    ]
    with pytest.warns(CalibrationWarning, match="jitter ended at the end"):
        found = calibrate(rows, TYPICAL, ("gemm", "jitter"))
    assert found.stack.jitter == 0.0
    assert found.stack.fitted == ("gemm",)
    assert found.stack.gemm == pytest.approx(0.8, rel=1e-3)


def test_rows_that_the_model_does_not_describe_warn():
    rows = one_node(TYPICAL.with_(gemm=0.5))
    odd = MeasuredStep(
        shape=L8, cluster=rows[0].cluster, layout=rows[0].layout, batch=64,
        seq_len=8192, seconds=4.0 * rows[0].seconds,
    )  # fmt: skip
    with pytest.warns(CalibrationWarning, match="does not describe them"):
        calibrate([*rows, odd], TYPICAL)


@settings(max_examples=25)
@given(gemm=st.floats(0.06, 0.99), jitter=st.floats(0.01, 0.2))
def test_true_constants_come_back_without_a_warning(gemm, jitter):
    truth = TYPICAL.with_(gemm=gemm, jitter=jitter)
    rows = [
        timed(8 * k, replace(PLAN, tp=2, dp=4 * k), 64 * k, truth) for k in (1, 2, 8)
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = calibrate(rows, TYPICAL, ("gemm", "jitter"))
    assert found.stack.gemm == pytest.approx(gemm, rel=1e-4)
    assert found.stack.jitter == pytest.approx(jitter, rel=1e-3)
    assert found.stack.fitted == ("gemm", "jitter")


def test_a_row_that_everything_hangs_on_cannot_be_left_out():
    found = calibrate([timed(64, PLAN, 512, times=1.4)], "megatron-bridge", label="x")
    assert np.isnan(found.left_out).all()
    assert np.isnan(found.stack.error), "the error of other rows is not that of these"
    assert "nan" not in found._repr_html_()
    several = calibrate(
        [timed(64, PLAN, 512, times=1.4), timed(64, PLAN, 256, times=1.5)]
    )
    assert several.stack.error == pytest.approx(np.abs(several.left_out).mean())


@pytest.mark.parametrize(
    "change",
    [
        {"gemm": 0.99}, {"traffic": 0.0}, {"gemm": 0.99, "traffic": 0.0},
        {"tp_overlap": 0.5}, {"dp_overlap": 0.5}, {"fused": True},
        {"parallel_block": True}, {"network": 0.5}, {"jitter": 0.1},
    ],
    ids=lambda change: "+".join(change),
)  # fmt: skip
def test_a_changed_constant_ends_the_calibration(change):
    home = STACKS["megatron-2021"]
    other = home.with_(**change)
    assert other.label == f"changed by hand: {', '.join(change)}"
    assert (other.fitted, other.rows, other.source) == ((), "", "")
    assert np.isnan(other.error)
    assert "by hand" in other._repr_html_()
    again = other.with_(memory_offset=1e9)
    assert again.changed == tuple(change)


def test_what_does_not_touch_the_speed_keeps_the_calibration():
    home = STACKS["megatron-2021"]
    for change in (
        {"memory_offset": 1e9}, {"notes": "x"}, {"name": "mine"}, {"gemm": home.gemm},
    ):  # fmt: skip
        other = home.with_(**change)
        assert other.label == home.label
        assert other.error == home.error
        assert other.fitted == ("gemm",)
    with pytest.raises(ValueError, match="constant='gem' is not known"):
        home.with_(gem=0.5)


def test_only_a_stack_without_losses_is_an_upper_bound():
    assert UNCALIBRATED.label == "upper bound"
    for slow in ({"gemm": 0.6}, {"jitter": 0.1}, {"layer_overhead": 1e-3}):
        assert Stack(name="own", **slow).label == "assumed constants"


def test_shipped_stacks_list_no_constant_at_its_end():
    for stack in STACKS.values():
        for name in stack.fitted:
            assert name in FITTABLE
            assert getattr(stack, name) > 0.0
            assert getattr(stack, name) != 1.0, stack.name


@pytest.mark.parametrize("stack", [5, None, ["bloom"], 0.8])
def test_a_stack_is_a_stack(stack):
    with pytest.raises(ValueError, match="is no stack; give one of uncalibrated"):
        find_stack(stack)
