"""Accelerators left idle: more of them never hurt, and all of them are paid for."""

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chinchilla_lab.cluster import Cluster, Layout
from chinchilla_lab.planning import (
    closure,
    compare,
    intervals,
    levers,
    plan,
    sensitivity,
    solve,
    typed_plan,
)
from chinchilla_lab.planning.idle import far_numbers, near_numbers
from chinchilla_lab.shape import SHAPES
from chinchilla_lab.units import DAY

AWKWARD = (36, 37, 60, 61, 97, 511, 1000, 1023)


def h100(n):
    return Cluster(accelerator="h100-sxm-80gb", n_accelerators=n)


@cache
def by_deadline(n):
    return plan(h100(n), deadline=30 * DAY)


@cache
def soonest(n):
    return plan(h100(n), objective="time", target_loss=2.1, thorough=False)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(AWKWARD), st.sampled_from(AWKWARD))
def test_more_accelerators_never_give_a_worse_loss(one, two):
    few, many = sorted((one, two))
    assert by_deadline(many).loss <= by_deadline(few).loss + 1e-9


@settings(max_examples=40, deadline=None)
@given(*2 * (st.sampled_from((23, 24, 61, 64, 97, 127, 128, 509, 1023, 1024)),))
def test_more_accelerators_never_take_longer(one, two):
    few, many = sorted((one, two))
    # a quick search looks at one shape for 6 % of size: a tenth of that is its grain
    assert soonest(many).seconds <= soonest(few).seconds * 1.006


@pytest.mark.parametrize("n", [37, 61])
def test_no_smaller_number_does_better(n):
    """Brute force: the whole search at every number that could compete."""
    made = by_deadline(n)
    every = [plan(h100(n), deadline=30 * DAY, n_working=k) for k in range(n - 5, n + 1)]
    assert made.loss <= min(p.loss for p in every) + 1e-9
    assert made.problem.working in {p.problem.working for p in every} | set(range(n))
    # the case that a user met: 61 that must all work are worse than 60
    if n == 61:
        assert every[-1].loss > by_deadline(60).loss + 1e-3
        assert made.loss == by_deadline(60).loss


def test_idle_ones_are_paid_for_and_said():
    made, sixty = by_deadline(61), by_deadline(60)
    assert (made.problem.working, made.n_idle) == (60, 1)
    found = closure(made)
    assert found.holds
    assert {
        "tp x pp x dp x cp = accelerators at work",
        "accelerators at work within the cluster",
    } <= {one.name for one in found.identities}
    # hours x price x all accelerators
    assert made.hours == pytest.approx(61 * 24 * made.days)
    assert made.cost.low == pytest.approx(made.hours * made.cost.price.low)
    assert made.dollars / sixty.dollars == pytest.approx(61 / 60)
    # the share of the peak is that of all, too
    assert made.utilisation == pytest.approx(sixty.utilisation * 60 / 61)
    rows = dict(made.rows())
    assert rows["accelerators at work [-]"].startswith("60 of 61")
    assert "1 idle, paid for" in rows["accelerators at work [-]"]
    assert "accelerators at work [-]" not in dict(sixty.rows())
    record = compare([made], level=None).records[0]
    assert (record["n_accelerators"], record["n_idle"]) == (61, 1)


def test_where_dollars_count_a_larger_cluster_may_cost_more():
    costs = [
        plan(h100(n), objective="cost", target_loss=2.15, thorough=False).score
        for n in (64, 67)  # 60 and 61 differ by the rounding of the batch alone
    ]
    assert costs[1] > costs[0]


def test_a_small_batch_leaves_most_of_a_large_cluster_idle():
    limits = {"deadline": 30 * DAY, "batch_limit": 2**20, "thorough": False}
    made = plan(h100(4096), **limits)
    all_of_them = plan(h100(4096), n_working=4096, **limits)
    assert made.n_idle > 1024
    assert made.loss < all_of_them.loss
    # as many as a cluster of that size would use
    own = plan(h100(made.problem.working), **limits)
    assert own.loss == pytest.approx(made.loss, abs=1e-9)


def test_what_follows_from_a_plan_keeps_its_number():
    made = by_deadline(61)
    priced = levers(made)
    assert priced["twice the accelerators"].worth == pytest.approx(2.0, rel=0.03)
    assert sensitivity(made).binding in {"deadline", "accelerators"}
    doubt = intervals(made)
    assert doubt.days[0] < made.days < doubt.days[1]
    assert doubt.hours[1] == pytest.approx(doubt.days[1] * 24 * 61)
    again = solve(made.problem.with_(deadline=20 * DAY))
    assert again.problem.working == 60
    # another machine is asked anew
    assert made.problem.with_(cluster=h100(64)).working == 64


def test_a_typed_layout_may_leave_some_idle():
    shape = SHAPES["llama-3-8b"]
    layout = Layout(tp=2, dp=16, micro_batch=1, zero=1, sequence_parallel=True)
    made = typed_plan(h100(40), shape, 2e11, 512, layout, seq_len=8192)
    assert made.n_idle == 8
    assert closure(made).holds
    small = typed_plan(h100(32), shape, 2e11, 512, layout, seq_len=8192)
    assert made.seconds == pytest.approx(small.seconds)
    assert made.hours == pytest.approx(small.hours * 40 / 32)
    free = typed_plan(h100(37), shape, 2e11, 512, seq_len=8192)
    assert free.problem.working <= 36
    assert free.seconds <= typed_plan(h100(32), shape, 2e11, 512, seq_len=8192).seconds


def test_more_cannot_work_than_there_are():
    with pytest.raises(ValueError, match="n_working=65 exceeds the 64 accelerators"):
        plan(h100(64), deadline=DAY, n_working=65)


@given(st.integers(1, 20_000))
def test_numbers_to_try(n):
    near, far = near_numbers(n), far_numbers(n)
    assert near[0] == n
    assert list(near) == sorted(set(near), reverse=True)
    assert all(1 <= k <= n for k in (*near, *far))
    # whatever a cluster of one less uses far below, this one can use as well
    if n > 1:
        assert set(far_numbers(n - 1)) <= set(far) | set(near) | {n - 1}
