"""What leaves the planner: records, tables for people, and text outside a notebook."""

import json

import pytest

from chinchilla_lab.cluster import Cluster
from chinchilla_lab.laws import BESIROGLU_2024
from chinchilla_lab.planning import (
    compare,
    compare_runs,
    intervals,
    levers,
    plan,
    sensitivity,
)
from chinchilla_lab.units import DAY

LOFT = Cluster(accelerator="h100-sxm-80gb", n_accelerators=64)


@pytest.fixture(scope="module")
def life():
    return plan(
        LOFT, objective="lifetime", target_loss=2.1, inference_tokens=1e12,
        deadline=60 * DAY, thorough=False,
    )  # fmt: skip


def test_records_hold_lifetime_serving_and_what_binds(life):
    record = compare([life]).records[0]
    assert record["binding"] is None
    assert record["score"] == life.score
    assert record["serving_usd"] == life.serving_dollars
    assert record["lifetime_usd"] == pytest.approx(life.score)
    (record,) = compare([life], limits=True).records
    assert record["binding"] == sensitivity(life).binding
    back = json.loads(compare([life]).to_json())[0]
    assert back["binding"] == record["binding"]
    assert back["days_p5"] <= back["days"] <= back["days_p95"]


def test_markdown_is_for_people(life):
    written = compare([life], ["a | b"]).to_markdown()
    assert r"a \| b" in written
    lines = written.splitlines()
    assert "| N [parameter] | " in written
    assert "| objective: lifetime [USD] | $" in written
    assert f"{life.N:.5g}" not in written
    # no row without a value
    assert all(line.split(" | ", 1)[1].strip(" |") for line in lines[2:])
    assert len({line.count(" | ") for line in lines[2:]}) == 1
    runs = compare_runs(BESIROGLU_2024, [(175e9, 300e9), (70e9, 1.4e12)])
    assert "| C = 6ND [FLOP] | 3.15e23 | 5.88e23 |" in runs.to_markdown()


def test_report_joins_value_interval_and_limit():
    made = plan(LOFT, deadline=30 * DAY, thorough=False)
    assert "interval" not in made._repr_html_()
    assert made.binding is None
    found = made.report()
    assert found.binding == made.binding == "deadline"
    low, high = intervals(made).days
    assert f"{low:.3g} to {high:.3g}" in str(found)
    assert "deadline binds" in str(found)
    assert made.report() is found
    assert "90% interval" in made._repr_html_()
    assert "what binds: deadline" in repr(made)
    assert found.to_markdown().startswith("| plan | value | 90% interval | limit |")


def test_prints_are_tables(life):
    for found in (
        intervals(life), levers(life), sensitivity(life), compare([life]),
        life.report(),
    ):  # fmt: skip
        lines = str(found).splitlines()
        assert not str(found).startswith(type(found).__name__)
        rule = next(i for i, line in enumerate(lines) if set(line) <= {"-", " "})
        # cells begin where the rule does
        assert len(lines) > rule + 2
        assert "(" + type(found).__name__ not in str(found)
        assert "<table" in found._repr_html_()
