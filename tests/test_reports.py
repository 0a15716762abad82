"""Tables of the reference pages hold every row of the data that they are made from."""

import pytest

from chinchilla_lab import reports
from chinchilla_lab.cluster.failures import failure_records
from chinchilla_lab.cluster.stacks import STACKS
from chinchilla_lab.shape import SHAPES
from chinchilla_lab.sources import read_rows

ROWS = {
    "accelerator_source_table": [r["id"] for r in read_rows("accelerators.csv")],
    "stack_table": [s.name for s in STACKS.values() if s.fitted],
    "failure_table": [r.cluster for r in failure_records()],
    "shape_table": list(SHAPES),
}


@pytest.mark.parametrize("name", ROWS)
def test_no_row_is_lost(name):
    written = getattr(reports, name)()
    assert written.count("<tr>") == len(ROWS[name]) + 1
    for head in ROWS[name]:
        assert f">{head}<" in written


def test_llama_3_failed_every_three_hours():
    """419 unexpected interruptions in 54 days (Llama 3, section 3.3.4)."""
    assert f"<td>{54 * 24 / 419:.3g}</td>" in reports.failure_table()
