"""A model in service: step by step by hand, limits, and what does not fit."""

from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chinchilla_lab import InfeasibleError
from chinchilla_lab.inference import (
    MEASURED_SLOWDOWN,
    ServedModel,
    ServingHardware,
    critical_batch,
    decode_step,
    fewest_accelerators,
    largest_batch,
    measured_slowdown,
    prefill,
    roofline_checks,
    service,
    single_stream_limit,
)

LLAMA = ServedModel(N=8.03e9, kv_bytes_per_token=131072)
H100 = ServingHardware(peak_flops=989e12, bandwidth=3.35e12, memory=80e9)


@pytest.mark.parametrize(("prompt", "answer", "batch"), [(1000, 300, 64), (10, 1, 1)])
def test_a_batch_is_its_prompts_and_every_single_step(prompt, answer, batch):
    """The mean step times their number is the sum over a growing context."""
    steps = [
        float(decode_step(LLAMA, H100, batch, prompt + k).step_time)
        for k in range(answer)
    ]
    read = float(prefill(LLAMA, H100, prompt, batch).step_time)
    made = service(LLAMA, H100, prompt, answer, batch)
    assert made.batch_seconds == pytest.approx(read + sum(steps), rel=1e-12)
    assert made.tokens_per_second == pytest.approx(
        batch * (prompt + answer) / (read + sum(steps)), rel=1e-12
    )


def test_one_short_stream_runs_at_the_single_stream_limit():
    made = service(LLAMA, H100, prompt=1, answer=1e5, batch=1)
    free = ServedModel(N=LLAMA.N)
    bare = service(free, H100, prompt=1, answer=1e5, batch=1)
    assert bare.answers_per_second == pytest.approx(
        single_stream_limit(free, H100), rel=1e-4
    )
    assert made.answers_per_second < bare.answers_per_second


def test_prompts_alone_run_at_the_peak():
    """Without an answer and a cache a large batch is bound by arithmetic: 2N a token."""
    made = service(ServedModel(N=8.03e9), H100, prompt=4096, answer=0, batch=64)
    assert made.tokens_per_second == pytest.approx(989e12 / (2 * 8.03e9), rel=1e-12)


def test_the_batch_is_what_memory_holds():
    made = service(LLAMA, H100, 1000, 300)
    assert made.batch == largest_batch(LLAMA, H100, 1300)
    with pytest.raises(InfeasibleError, match="smaller batch"):
        service(LLAMA, H100, 1000, 300, batch=made.batch + 1)
    with pytest.raises(InfeasibleError, match="more accelerators"):
        service(LLAMA, H100, 1e6, 300)
    with pytest.raises(ValueError, match="give batch"):
        service(ServedModel(N=8e9), H100, 1000, 300)


def test_fewest_accelerators_hold_the_weights_and_one_request():
    for N in (8e9, 70e9, 405e9):
        model = ServedModel(N=N, kv_bytes_per_token=1e5)
        n = fewest_accelerators(model, H100, 8192)
        need = 2 * N + 8192e5
        assert n * 80e9 >= need > n / 2 * 80e9 or n == 1


@given(
    slow=st.floats(1.0, 5.0), price=st.floats(0.1, 20.0), daily=st.floats(1e6, 1e13),
)  # fmt: skip
def test_money_closes(slow, price, daily):
    """Accelerators at work all day handle the demand; tokens times price is their rent."""
    made = service(LLAMA, H100, 1000, 300, batch=64).with_slowdown(slow)
    n = made.accelerators(daily)
    copies = n / made.n_accelerators
    assert copies * made.tokens_per_second * 86400 >= daily * (1 - 1e-12)
    assert (copies - 1) * made.tokens_per_second * 86400 < daily
    rent = 24 * price * made.n_accelerators
    tokens = 86400 * made.tokens_per_second
    assert made.usd_per_million(price) * tokens / 1e6 == pytest.approx(rent)
    # after the break-even the bill of service, or the gain, is that of training
    T = made.break_even(1e6, price)
    assert T * made.usd_per_million(price) / 1e6 == pytest.approx(1e6)
    charge = 1.5 * made.usd_per_million(price)
    T = made.break_even(1e6, price, charge)
    assert T * (charge - made.usd_per_million(price)) / 1e6 == pytest.approx(1e6)
    assert made.break_even(1e6, price, made.usd_per_million(price)) == inf


def test_no_system_beats_its_roofline():
    with pytest.raises(ValueError, match="no system beats its roofline"):
        service(LLAMA, H100, 1000, 300).with_slowdown(0.9)


def test_C55_published_measurements_give_the_published_band():
    least, typical, most = measured_slowdown(roofline_checks(), LLAMA, H100)
    low, high = MEASURED_SLOWDOWN
    assert low <= least < typical < most <= high


def test_measurements_without_a_prediction_take_the_roofline_of_decoding():
    rows = [
        {"batch": b, "context": "1000", "measured_tokens_per_s": m}
        for b, m in (("1", "100"), ("64", "3000"))
    ]
    own = decode_step(LLAMA, H100, [1.0, 64.0], 1000.0).tokens_per_second
    ratios = np.asarray(own) / [100.0, 3000.0]
    least, typical, most = measured_slowdown(rows, LLAMA, H100)
    assert (least, most) == pytest.approx((ratios.min(), ratios.max()))
    assert typical == pytest.approx(np.exp(np.log(ratios).mean()))
    with pytest.raises(ValueError, match="lack batch, context"):
        measured_slowdown([{"measured_tokens_per_s": "1"}], LLAMA, H100)
    with pytest.raises(ValueError, match="column batch"):
        measured_slowdown([{**rows[0], "batch": "many"}], LLAMA, H100)


def test_above_the_critical_batch_a_short_context_gains_nothing():
    """Throughput of answers is flat where arithmetic binds, as long as caches are small."""
    model = ServedModel(N=8.03e9)
    first = 2 * critical_batch(model, H100)
    one, two = (service(model, H100, 1, 1000, b) for b in (first, 2 * first))
    assert one.answers_per_second == pytest.approx(two.answers_per_second, rel=1e-9)
