"""Money and energy: identities and what authors state of their own runs."""

import pytest

from chinchilla_lab.cluster import (
    ACCELERATORS,
    Cluster,
    Price,
    as_price,
    break_even_utilisation,
    energy,
    owned_price,
    published_hours,
    rental_cost,
    whole_run_mfu,
)
from chinchilla_lab.planning import estimate_run, plan

RUNS = published_hours()


def test_deepseek2024v3_cost():
    run = RUNS["deepseek-v3"]
    paid = f"{run.usd_per_hour}@2024-12"  # the month of the report
    assert rental_cost(run.hours, paid).low == pytest.approx(5.576e6, rel=1e-3)


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
    plain = rental_cost(1000.0, "2:5@2026-05")
    kept = rental_cost(1000.0, "2:5@2026-05", share_kept=0.8, utilisation=0.5)
    assert kept.low == pytest.approx(plain.low / 0.4)
    assert plain.low <= plain.middle <= plain.high


def test_prices_are_dated_ranges():
    price = as_price(None, "h100-sxm-80gb")
    assert price is ACCELERATORS["h100-sxm-80gb"].price
    assert price.date
    assert as_price(price) is price
    with pytest.raises(ValueError, match=r"give price='2\.5@2026-11'"):
        as_price(None, "mi300x")
    with pytest.raises(ValueError, match="price is missing"):
        as_price(None)
    with pytest.raises(ValueError, match="has no date"):
        Price(low=1.0, high=2.0, date="", source="")


@pytest.mark.parametrize(
    "price", [2.0, 2, (2.0, 3.0), [2.0, 3.0], "2", "2:3", "2@", True]
)
def test_a_price_without_a_date_is_refused_with_the_way_out(price):
    with pytest.raises(ValueError, match=r"has no date.*@2026-11"):
        as_price(price)
    with pytest.raises(ValueError, match="has no date"):
        rental_cost(1000.0, price)


@pytest.mark.parametrize(
    "date",
    ["yesterday-ish", "2026-13", "2026-02-30", "26-05", "2026/2025", "2025-2026",
     "2026-01/2026-02/2026-03", "2026-01/", "05-2026"],
)  # fmt: skip
def test_a_date_must_be_one(date):
    with pytest.raises(ValueError, match=r"is no date; write '2026'"):
        Price(low=1.0, high=2.0, date=date, source="own")
    with pytest.raises(ValueError, match="no date"):
        as_price(f"2@{date}")


def test_a_price_says_who_asked_it():
    for date in ("2026", "2026-05", "2026-05-20", "2026-01/2026-04", "2025/2026-02-01"):
        assert Price(low=1.0, high=2.0, date=date, source="own").date == date
    with pytest.raises(ValueError, match="source='own' for a quote of yours"):
        Price(low=1.0, high=2.0, date="2026", source=" ")
    quote = as_price(" 2 : 3 @ 2026-11 ")
    assert (quote.low, quote.high, quote.source) == (2.0, 3.0, "own")
    with pytest.raises(ValueError, match="below low"):
        as_price("3:2@2026-11")


def test_planning_refuses_a_bare_price():
    glm = Cluster(accelerator="a100-sxm-40gb", n_accelerators=768)
    with pytest.raises(ValueError, match=r"has no date.*'2\.0@2026-11'"):
        estimate_run(130e9, 400e9, glm, utilisation=0.25, price=2.0)
    made = estimate_run(130e9, 400e9, glm, utilisation=0.25, price="2@2026-11")
    assert made.cost.price.date == "2026-11"
    with pytest.raises(ValueError, match="has no date"):
        plan(glm, deadline=86400.0, price=2.0)


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
