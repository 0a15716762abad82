"""Collectives against published times, identities and hand sums."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chinchilla_lab.cluster import (
    Cluster,
    algbw,
    all_gather_time,
    all_reduce_time,
    all_to_all_time,
    busbw,
    collective_time,
    fit_alpha_beta,
    hierarchical_all_reduce,
    point_to_point_time,
    tree_all_reduce_time,
)
from chinchilla_lab.cluster.collectives import two_level_gather

# 8 A100, bytes and busbw in GB/s: stas00/ml-engineering, network/README.md, 744d01e1
A100 = np.array([
    [32768, 1.31], [65536, 2.45], [131072, 4.43], [262144, 7.47], [524288, 11.41],
    [4194304, 72.33], [16777216, 106.16], [33554432, 138.49], [268435456, 194.07],
    [536870912, 222.72], [1073741824, 229.04], [2147483648, 231.41],
    [17179869184, 234.89],
])  # fmt: skip


def test_C47_the_last_phase_moves_a_piece():
    """A simulator broadcast the whole message: 62.2 ms in place of 7.8."""
    first, _, last = hierarchical_all_reduce(32e9, 8, 2, 450e9, 50e9)
    assert first == last
    whole = 7 / 8 * 32e9 / 450e9
    assert whole == pytest.approx(62.2e-3, rel=1e-3)
    # what each rank holds after the first phase, and what it would pay for all of it
    piece = float(all_gather_time(32e9 / 8, 8, 450e9))
    assert piece == pytest.approx(7.8e-3, rel=5e-3)
    assert whole / piece == pytest.approx(8)


def test_C48_g_minus_one_over_g():
    """A book dropped (g-1): 1.94 ms is right, 2.22 the limit, 0.28 the slip."""
    assert all_gather_time(1e9, 8, 450e9) == pytest.approx(1.94e-3, abs=5e-6)
    assert point_to_point_time(1e9, 450e9) == pytest.approx(2.22e-3, abs=5e-6)
    assert pytest.approx(0.28e-3, abs=5e-6) == 1e9 / (8 * 450e9)


def test_C49_one_worked_problem_that_changed_four_times():
    """bf16[8,128,8192] over two links of 45 GB/s and six hops of 1 us: 192 us."""
    size = 2 * 8 * 128 * 8192
    assert point_to_point_time(size, 2 * 45e9) == pytest.approx(186.4e-6, rel=1e-3)
    assert point_to_point_time(size, 2 * 45e9, 6e-6) == pytest.approx(192e-6, rel=3e-3)


@pytest.mark.parametrize(("ranks", "factor"), [(8, 1.75), (32, 1.9375)])
def test_busbw_over_algbw(ranks, factor):
    """Blueprint of part III: 1.75 and 1.94."""
    assert busbw(1e9, ranks, 0.01) / algbw(1e9, 0.01) == pytest.approx(factor)


@given(
    size=st.floats(1e3, 1e12),
    ranks=st.integers(2, 4096),
    rate=st.floats(1e9, 1e12),
)
def test_ring_carries_its_own_bus_bandwidth(size, ranks, rate):
    time = all_reduce_time(size, ranks, rate)
    assert busbw(size, ranks, time) == pytest.approx(rate, rel=1e-9)
    assert time == pytest.approx(2 * all_gather_time(size, ranks, rate))
    assert all_to_all_time(size, ranks, rate) == all_gather_time(size, ranks, rate)


@given(size=st.floats(1e3, 1e12), node=st.integers(1, 8), nodes=st.integers(1, 64))
def test_two_levels_of_equal_rate_are_one(size, node, nodes):
    """(g-1)/g telescopes: splitting a ring over equal links costs nothing."""
    split = sum(hierarchical_all_reduce(size, node, nodes, 50e9, 50e9))
    assert split == pytest.approx(all_reduce_time(size, node * nodes, 50e9), rel=1e-9)
    one = two_level_gather(size, node * nodes, 1.0, float(node), 50e9, 50e9)
    assert 2 * one == pytest.approx(split, rel=1e-9, abs=1e-18)


def test_all_cards_of_a_node_work():
    """16 GiB over 4 x 8 B200: one card 344 ms, all of them 83.2, measured 87.2."""
    measured = 2 * 31 / 32 * 2**34 / 381.8e9
    assert measured == pytest.approx(87.2e-3, rel=1e-3)
    assert pytest.approx(344e-3, rel=2e-3) == 2**34 / 50e9
    flat = all_reduce_time(2**34, 32, 8 * 50e9)
    assert flat == pytest.approx(83.2e-3, rel=1e-3)
    four = collective_time(
        "all-reduce", 2**34, Cluster(accelerator="b200-sxm", n_accelerators=32)
    )
    assert four.outside == pytest.approx(2 * 3 / 4 * 2**34 / 8 / 50e9)


def test_tree_beats_ring_on_small_messages_of_many():
    ring = all_reduce_time(1e4, 1024, 50e9, 10e-6)
    tree = tree_all_reduce_time(1e4, 1024, 50e9, 10e-6)
    assert tree < ring / 50
    assert tree_all_reduce_time(1e12, 1024, 50e9) > all_reduce_time(1e12, 1024, 50e9)
    assert tree_all_reduce_time(1e9, 1, 50e9, 1e-5) == 0.0


def test_a_line_through_measured_times():
    """Blueprint of part III, communication: 53 us, 211 GB/s, worst -31 % at 16 MiB."""
    size = A100[:, 0]
    time = size * 1.75 / (A100[:, 1] * 1e9)
    alpha, rate = fit_alpha_beta(size, time)
    assert alpha == pytest.approx(53e-6, rel=0.03)
    assert rate * 1.75 == pytest.approx(211e9, rel=0.03)
    errors = (alpha + size / rate) / time - 1
    assert errors[np.abs(errors).argmax()] == pytest.approx(-0.31, abs=0.01)
    assert size[np.abs(errors).argmax()] == 2**24


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: all_gather_time(-1, 8, 1e9), "size=-1 must be"),
        (lambda: all_gather_time(1e9, 0, 1e9), "ranks=0 must be"),
        (lambda: all_gather_time(1e9, 2.5, 1e9), "must be whole numbers, 1 or more"),
        (lambda: all_reduce_time(1e9, 8, 0), "bandwidth=0 must be"),
        (lambda: fit_alpha_beta([1e6], [1e-3]), "at least 2 messages"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_collectives_by_name():
    cluster = Cluster(accelerator="h200-sxm", n_accelerators=8)
    with pytest.raises(ValueError, match="collective='gather' is not known"):
        collective_time("gather", 1e9, cluster)
    with pytest.raises(ValueError, match="adds in the switch, which all-gather"):
        collective_time("all-gather", 1e9, cluster, in_network=True)
    parts = collective_time("all-to-all", 1e9, cluster)
    assert parts.total == parts.latency + parts.inside + parts.outside
    assert "busbw" in parts._repr_html_()
