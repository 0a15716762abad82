"""Schedules, measured links, whole runs and ablations against formulas and prints."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chinchilla_lab.cluster import (
    all_reduce_rates,
    all_reduce_systems,
    bubble_fraction,
    interleaving_factor,
    predicted_seconds,
    schedule,
    whole_runs,
)
from chinchilla_lab.validation import ablate, measured, scores, seconds_without


@settings(max_examples=40, deadline=None)
@given(
    p=st.integers(2, 8),
    groups=st.integers(1, 5),
    v=st.integers(1, 4),
    backward=st.sampled_from([1.0, 2.0, 3.0]),
)
def test_played_schedule_idles_as_the_formula_says(p, groups, v, backward):
    """(p-1)/(vm), obtained by playing every pass after what it waits for."""
    played = schedule(p, p * groups, v, backward)
    assert played.bubble == pytest.approx(bubble_fraction(p, p * groups, v), abs=1e-9)
    for rank in range(p):
        mine = played.stage == rank
        order = np.argsort(played.start[mine], kind="stable")
        starts, ends = played.start[mine][order], played.end[mine][order]
        assert (starts[1:] >= ends[:-1] - 1e-12).all(), (
            "a stage does one pass at a time"
        )


@pytest.mark.parametrize(("p", "v"), [(4, 1), (8, 1), (4, 2), (8, 3)])
def test_played_schedule_holds_the_published_activations(p, v):
    """p micro-batches, and 1 + (p-1)/(pv) times that when interleaved."""
    factor = interleaving_factor(p, v)
    assert schedule(p, 4 * p, v).in_flight == pytest.approx(p * factor)


@pytest.mark.parametrize(("p", "m"), [(4, 3), (8, 2), (1, 5)])
def test_few_micro_batches_and_one_stage(p, m):
    assert schedule(p, m).bubble == pytest.approx(bubble_fraction(p, m), abs=1e-12)


def test_interleaving_needs_whole_groups():
    with pytest.raises(ValueError, match="use n_micro_batches=4"):
        schedule(4, 6, 2)
    with pytest.raises(ValueError, match="pp=1"):
        schedule(1, 6, 2)


def test_four_nodes_against_one_in_published_rates():
    """Blueprint of part III: 7.4 times slower at 1 MiB, 2.5 times at 16 GiB."""
    one, four = all_reduce_rates("8 B200"), all_reduce_rates("32 B200")
    for size, factor in ((2.0**20, 7.4), (2.0**34, 2.5)):
        times = [r.seconds[r.size == size][0] for r in (one, four)]
        assert times[1] / times[0] == pytest.approx(factor, rel=0.02)
    assert len(all_reduce_systems()) == 4
    with pytest.raises(ValueError, match="8 A100"):
        all_reduce_rates("9 A100")


@pytest.mark.parametrize(
    ("model", "share"),
    [("Llama 2 70B", 0.429), ("Llama 3.1 405B", 0.345), ("Llama 3 8B", 0.156)],
)
def test_whole_runs_of_published_hours(model, share):
    """Golden rows l2-70b-mfu, l31-405b-mfu, l3-8b-mfu."""
    run = next(r for r in whole_runs() if r.model == model)
    assert run.mfu == pytest.approx(share, rel=0.01)


def test_nothing_left_out_is_the_model_itself():
    rows = measured("megatron-2021")
    np.testing.assert_allclose(
        seconds_without(rows, "megatron-2021"), predicted_seconds(rows, "megatron-2021")
    )
    again = ablate(rows, "megatron-2021")
    np.testing.assert_allclose(again.errors, scores()[0].errors, atol=2e-3)
    assert ablate(rows, "megatron-2021", gemm=0.5).gemm == 0.5
    with pytest.raises(ValueError, match="tp_traffic"):
        seconds_without(rows, "megatron-2021", ["tp"])
