"""The batch: an identity, published values, and a brute-force minimum."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chinchilla_lab.cluster import (
    BATCH_LAWS,
    batch_range,
    best_batch,
    compute_bound_tokens,
    divisible_batch,
    even_batches,
    largest_cluster,
    loss_ratio,
    steps_and_examples,
    tokens_per_accelerator,
)


@given(st.floats(1e3, 1e9), st.floats(1e3, 1e9))
def test_the_hyperbola_is_an_identity(batch, critical):
    both = steps_and_examples(batch, critical)
    assert (both.steps - 1) * (both.examples - 1) == pytest.approx(1.0, rel=1e-9)


def test_quarter_equal_and_four_times_the_critical_batch():
    both = steps_and_examples([0.25, 1.0, 4.0], 1.0)
    assert both.steps.tolist() == [5.0, 2.0, 1.25]
    assert both.examples.tolist() == [1.25, 2.0, 5.0]


@given(st.floats(1e5, 1e8), st.floats(0.01, 10.0), st.floats(1e-9, 1e-6))
def test_best_batch_beats_its_neighbours(critical, fixed, per_token):
    best = best_batch(critical, fixed, per_token)
    grid = best * np.geomspace(0.1, 10.0, 101)
    time = (fixed + per_token * grid) * steps_and_examples(grid, critical).steps
    assert np.argmin(time) == 50


def test_cost_of_a_cap_below_the_best_batch():
    """2.714 s and 1.430 ms a sequence, critical 65.3M: 1.68 and 1.25 times as long."""
    fixed, each, critical = 2.714, 1.430e-3 / 4096, 65.3e6

    def time(batch):
        return (fixed + each * batch) * steps_and_examples(batch, critical).steps

    best = best_batch(critical, fixed, each)
    assert best == pytest.approx(22.5e6, rel=0.01)
    assert time(4.2e6) / time(best) == pytest.approx(1.68, rel=0.02)
    assert time(67.1e6) / time(best) == pytest.approx(1.25, rel=0.02)


@pytest.mark.parametrize(("C", "batch"), [(8.4e22, 9.2e6), (3.8e25, 68e6)])
def test_deepseek_batch_deepseek2024llm(C, batch):
    law = BATCH_LAWS["deepseek-2024"]
    assert law.batch(C).value == pytest.approx(batch, rel=0.02)


@pytest.mark.parametrize(("C", "used"), [(8.4e22, 4e6), (3.8e25, 16e6)])
def test_batches_that_were_used_lie_in_the_band(C, used):
    band = BATCH_LAWS["deepseek-2024"].batch(C)
    assert band.low <= used <= band.high


def test_step_law_li2025predictable():
    """0.58 D^0.571 tokens; Llama 3 405B used 16M on 15.6T."""
    band = BATCH_LAWS["step-law-2025"].batch(15.6e12)
    assert band.value == pytest.approx(0.58 * 15.6e12**0.571)
    assert band.low <= 16e6 <= band.high


def test_the_range_holds_every_law_that_has_a_size():
    C, D = np.array([1e22, 3.8e25]), np.array([3e11, 15.6e12])
    found = batch_range(C, D)
    for name, x in (("deepseek-2024", C), ("step-law-2025", D)):
        own = BATCH_LAWS[name].batch(x)
        assert np.all(found.low <= own.low)
        assert np.all(found.high >= own.high)
        assert name.split("-")[0] in found.label.lower()
    assert np.all((found.low < found.value) & (found.value < found.high))


def test_growth_needs_an_anchor():
    law = BATCH_LAWS["zhang-2024"]
    with pytest.raises(ValueError, match="give anchor"):
        law.batch(1e12)
    band = law.batch(9.6e12, anchor=(8.49e6, 461e9))
    assert band.low == pytest.approx(26.1e6, rel=0.02)
    assert band.high == pytest.approx(48.0e6, rel=0.02)
    assert band.low < band.value < band.high


def test_largest_cluster_that_a_batch_feeds():
    least = compute_bound_tokens(989e12, 400e9)
    assert largest_cluster(2**22, least) == 1696
    assert largest_cluster(2**26, least) == pytest.approx(27142, rel=1e-3)
    assert tokens_per_accelerator(2**22, 16384) == 256.0


@given(st.integers(1, 20000), st.integers(1, 20000))
def test_divisible_batch_stays_below_and_shares_a_divisor(most, n):
    batch = divisible_batch(most, n)
    assert 1 <= batch <= most
    aligned = divisible_batch(most, n, align="replicas")
    assert 1 <= aligned <= most
    largest = max(k for k in range(1, min(n, most) + 1) if n % k == 0)
    assert aligned % largest == 0
    assert batch >= aligned


def test_local_training_diloco2025scaling_table_7_and_10():
    separate, joint = loss_ratio(1e10)
    assert separate == pytest.approx(0.9965, rel=1e-3)
    assert joint == pytest.approx(1.016, rel=1e-3)


@given(st.integers(1, 5000), st.integers(1, 300))
def test_even_batches_serve_every_layout_within_the_slack(most, n):
    found = even_batches(most, n)
    assert max(found) <= most
    for k in (k for k in range(1, min(n, most) + 1) if n % k == 0):
        for b in (1, 2, 4, 8):
            q = k * b
            own = [batch for batch in found if batch % q == 0]
            if q <= most:
                assert max(own) >= (1 - 2e-3) * (most // q * q)
