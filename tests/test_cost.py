"""Money and energy: identities and what authors state of their own runs."""

import pytest

from chinchilla_lab.cluster import (
    ACCELERATORS,
    Price,
    as_price,
    break_even_utilisation,
    energy,
    owned_price,
    published_hours,
    rental_cost,
    whole_run_mfu,
)

RUNS = published_hours()


def test_deepseek2024v3_cost():
    run = RUNS["deepseek-v3"]
    assert rental_cost(run.hours, run.usd_per_hour).low == pytest.approx(
        5.576e6, rel=1e-3
    )


@pytest.mark.parametrize(
    ("run", "share"),
    [
        ("llama-2-70b", 0.429),
        ("llama-3.1-405b", 0.345),
        ("llama-3-8b", 0.156),
        ("llama-3-70b", 0.279),
    ],
)
def test_utilisation_from_published_hours_metahours(run, share):
    row = RUNS[run]
    found = whole_run_mfu(row.N_active, row.D_tokens, row.hours, row.accelerator)
    assert found == pytest.approx(share, rel=0.01)


def test_llama4_maverick_of_two_peaks():
    row = RUNS["llama-4-maverick"]
    args = row.N_active, row.D_tokens, row.hours, row.accelerator
    assert whole_run_mfu(*args) == pytest.approx(0.265, rel=0.01)
    assert whole_run_mfu(*args, dtype="fp8") == pytest.approx(0.132, rel=0.01)


def test_cost_divides_by_what_is_kept():
    plain = rental_cost(1000.0, (2.0, 5.0))
    kept = rental_cost(1000.0, (2.0, 5.0), share_kept=0.8, utilisation=0.5)
    assert kept.low == pytest.approx(plain.low / 0.4)
    assert plain.low <= plain.middle <= plain.high


def test_prices_are_dated_ranges():
    price = as_price(None, "h100-sxm-80gb")
    assert price is ACCELERATORS["h100-sxm-80gb"].price
    assert price.date
    assert as_price(price) is price
    with pytest.raises(ValueError, match=r"give price=2\.5"):
        as_price(None, "mi300x")
    with pytest.raises(ValueError, match="price is missing"):
        as_price(None)
    with pytest.raises(ValueError, match="has no date"):
        Price(low=1.0, high=2.0, date="", source="")


def test_owned_price_and_break_even_are_inverse():
    settings = {"power": 700.0, "pue": 1.2, "usd_per_kwh": 0.1}
    share = break_even_utilisation(2.0, 30000.0, 5.0, **settings)
    assert owned_price(30000.0, 5.0, share, **settings) == pytest.approx(2.0)
    assert break_even_utilisation(0.05, 30000.0, 5.0, **settings) == float("inf")


def test_energy_is_power_times_time():
    used = energy(1000.0, 8, "h100-sxm-80gb", pue=1.1)
    assert used.kwh == pytest.approx(1000.0 * 0.7 * 1.1)
    assert used.watts == pytest.approx(8 * 700.0 * 1.1)
    with pytest.raises(ValueError, match="below 1"):
        energy(1.0, 1, "h100-sxm-80gb", pue=0.9)


def test_days_need_a_number_of_accelerators():
    assert RUNS["llama-3.1-405b"].days == pytest.approx(78.4, rel=0.01)
    with pytest.raises(ValueError, match="how many accelerators"):
        _ = RUNS["llama-2-70b"].days
