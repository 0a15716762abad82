"""Accelerators and clusters: each figure has its source, a missing one is an error."""

import csv
import json
import re
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chinchilla_lab.cluster import ACCELERATORS, Cluster, Price, mfu, ridge_point
from chinchilla_lab.cluster.accelerators import accelerator_from, accelerator_table
from chinchilla_lab.cluster.fields import date_in_words
from chinchilla_lab.planning import plan
from chinchilla_lab.sources import read_rows

ROOT = Path(__file__).parent.parent
ROWS = read_rows("accelerators.csv")
OWN = """
n_accelerators = 128
domain = 16
latency_us = 8

[accelerator]
id = "own"
name = "Our chip"
sparse = {sparse}
bf16_tflops = {peak}
gemm_bf16_tflops = 300
hbm_gb = 96
hbm_gbps = 2500
n_cores = 100
scaleup_gbps = 400
scaleout_gbps = 25
source = "data sheet"
where = "page 2"
accessed = "2026-11"
evidence = "vendor"
"""


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_every_row_says_where_it_comes_from(row):
    """C45: readers of a public table met wrong figures for years."""
    assert row["sparse"] == "false"
    for column in ("source", "where", "accessed", "evidence"):
        assert row[column], column
    if row["price_low_usd"]:
        assert row["price_date"]
        assert row["price_source"]
    chip = ACCELERATORS[row["id"]]
    for dtype, peak in chip.peaks.items():
        if dtype in chip.gemm_ceilings:
            assert chip.gemm_ceilings[dtype] < peak, "nothing beats the data sheet"


def test_sources_have_entries():
    text = (ROOT / "book" / "references.bib").read_text(encoding="utf-8")
    for row in ROWS:
        for source in (row["source"], row["cores_source"]):
            if source and not source.startswith("https://"):
                assert f"{{{source}," in text, source


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_C45_a_row_counts_one_card_and_says_who_read_the_vendor(row):
    """A table gave one die's rate for a card of two (MI250X), and vendors for sources."""
    assert row["per"] == (
        "chip" if row["scaleup_link"][:3] in ("ICI", "Neu") else "card"
    )
    assert bool(row["cores_source"]) == bool(row["n_cores"])
    read = row["source"].startswith("https://awsdocs")
    assert row["evidence"] == ("vendor" if read else "secondary")
    assert re.fullmatch(r"20\d\d-\d\d", row["accessed"])
    assert ACCELERATORS[row["id"]].per in ACCELERATORS[row["id"]]._repr_html_()


def test_C45_cores_of_two_dies_are_added():
    """Chips and Cheese: 74 multiprocessors enabled on each die of a B200, 148 in all."""
    assert ACCELERATORS["b200-sxm"].n_cores == 2 * 74
    assert ACCELERATORS["b200-sxm"].cores_source == "chipsandcheese"
    assert ACCELERATORS["gb200-nvl72"].n_cores == 18944 // 128


def test_C45_corrected_figures():
    """An errata list: 2.76 and 0.82 TB/s, 180 GB usable, 400 Gbit/s a card."""
    assert ACCELERATORS["tpu-v5p"].hbm_bandwidth == 2.76e12
    assert ACCELERATORS["tpu-v5e"].hbm_bandwidth == pytest.approx(0.82e12, rel=0.02)
    assert ACCELERATORS["b200-sxm"].hbm_bytes == 180e9
    assert ACCELERATORS["h100-sxm-80gb"].scaleout_bandwidth == 400e9 / 8


@pytest.mark.parametrize(
    ("key", "ratio"),
    [("a100-sxm-80gb", 12), ("h100-sxm-80gb", 9), ("b200-sxm", 18), ("b300-sxm", 9)],
)
def test_scale_up_over_scale_out(key, ratio):
    """Reference notes on hardware, section 15."""
    chip = ACCELERATORS[key]
    assert chip.scaleup_bandwidth / chip.scaleout_bandwidth == pytest.approx(ratio)


def test_bytes_are_named():
    """C41: 81,559 MiB are 85.52 GB and 79.65 GiB; a card sold as 80 GB has 74.5 GiB."""
    chip = ACCELERATORS["h100-sxm-80gb"]
    assert chip.memory == 81559 * 2**20
    assert chip.memory / 1e9 == pytest.approx(85.52, abs=0.005)
    assert chip.memory / 2**30 == pytest.approx(79.65, abs=0.005)
    assert chip.hbm_bytes / 2**30 == pytest.approx(74.5, abs=0.05)


def test_unknown_accelerator_lists_the_known():
    with pytest.raises(
        ValueError, match=r"no accelerator 'h100'; known: .*h100-sxm-80gb"
    ):
        Cluster(accelerator="h100", n_accelerators=8)


def test_missing_figures_are_errors_on_use():
    with pytest.raises(
        ValueError, match="hbm_bandwidth of V100 SXM2 32GB is not known"
    ):
        ACCELERATORS["v100-sxm-32gb"].need("hbm_bandwidth")
    with pytest.raises(
        ValueError, match="no peak of A100 SXM 80GB is known, only for bf16"
    ):
        ACCELERATORS["a100-sxm-80gb"].peak("fp8")
    with pytest.raises(ValueError, match="no measured product of H100 PCIe"):
        ACCELERATORS["h100-pcie"].ceiling()
    with pytest.raises(ValueError, match="dtype='fp4' is not known; choose from: bf16"):
        ACCELERATORS["b200-sxm"].peak("fp4")


def test_price_needs_a_date():
    with pytest.raises(ValueError, match="has no date"):
        Price(low=2.0, high=5.0, date=" ", source="somebody")
    with pytest.raises(ValueError, match="is below low"):
        Price(low=5.0, high=2.0, date="2026-05", source="somebody")
    with pytest.raises(ValueError, match="has no date"):
        accelerator_from(
            {
                "id": "x", "name": "x", "sparse": "false", "price_low_usd": "2",
                "source": "s", "where": "w", "accessed": "a", "evidence": "estimate",
            }
        )  # fmt: skip


def test_every_price_of_the_table_is_dated():
    priced = [chip.price for chip in ACCELERATORS.values() if chip.price is not None]
    assert len(priced) >= 10
    assert all(date_in_words(price.date) and price.source for price in priced)


def test_own_machine_from_toml_and_json(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text(OWN.format(sparse="false", peak=400))
    own = Cluster.from_file(path)
    assert own.chip.peak() == 400e12
    assert own.domain_size == 16
    assert own.n_domains == 8
    assert own.latency == pytest.approx(8e-6)
    path = tmp_path / "own.json"
    path.write_text('{"accelerator": "h100-sxm-80gb", "n_accelerators": 12}')
    assert Cluster.from_file(path).n_domains == 2


def test_C21_sparse_is_said_and_halved():
    """Tables that mix dense and sparse rates are wrong by two."""
    dense = Cluster.from_text(OWN.format(sparse="false", peak=400))
    sparse = Cluster.from_text(OWN.format(sparse="true", peak=800))
    assert dense.chip.peaks == sparse.chip.peaks
    without = OWN.replace("sparse = {sparse}\n", "").format(peak=400)
    with pytest.raises(
        ValueError, match="does not say sparse; sparse = false marks dense"
    ):
        Cluster.from_text(without)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("n_accelerators = 8", "accelerator is missing"),
        ('accelerator = "h100-sxm-80gb"', "n_accelerators is missing"),
        ('accelerator = "h100-sxm-80gb"\nn_accelerators = 0', "must be at least 1"),
        ('accelerator = "h100-sxm-80gb"\nn_gpus = 8', "n_gpus: no such field"),
        (
            'accelerator = "h100-sxm-80gb"\nn_accelerators = 8\nscaleout_gbps = -1',
            "scaleout_gbps=-1 must be a finite number above 0",
        ),
        (
            OWN.format(sparse="false", peak=400) + 'colour = "red"',
            "colour: no such field",
        ),
        (OWN.format(sparse="false", peak=-4), "bf16_tflops=-4 must be a finite number"),
    ],
)
def test_bad_files_say_what_is_wrong(text, message):
    with pytest.raises(ValueError, match=message):
        Cluster.from_text(text)


def test_the_file_is_named_in_the_error(tmp_path):
    path = tmp_path / "lab.toml"
    path.write_text("n_accelerators = 8")
    with pytest.raises(ValueError, match=r"lab\.toml: accelerator is missing"):
        Cluster.from_file(path)


def test_measured_products_stay_below_the_dense_peak(tmp_path):
    file = tmp_path / "own.toml"
    file.write_text(
        'n_accelerators = 64\n[accelerator]\nname = "own"\nsparse = true\n'
        "bf16_tflops = 1979\ngemm_bf16_tflops = 3000\nhbm_gb = 80\n"
        'source = "s"\nwhere = "w"\naccessed = "2026-05"\nevidence = "vendor"\n'
    )
    with pytest.raises(ValueError, match="exceeds its dense peak of 989"):
        Cluster.from_file(file)


def test_a_network_names_its_unit():
    head = 'accelerator = "h100-sxm-80gb"\nn_accelerators = 8\nscaleout_gbps = '
    assert Cluster.from_text(head + '"400 Gb/s"').network == 50e9
    assert Cluster.from_text(head + '"50 GB/s"').network == 50e9
    assert Cluster.from_text(head + "50").network == 50e9
    for wrong in ('"fast Gb/s"', '"-1 Gb/s"', "-1", '"400 gb/s"', '"400 Tb/s"'):
        with pytest.raises(ValueError, match="400 Gb/s"):
            Cluster.from_text(head + wrong)

    with pytest.raises(ValueError, match=r"400 Gb/s, that is 50 GB/s: write"):
        Cluster.from_text(head + "400")
    assert Cluster.from_text(head + '"400 GB/s"').network == 400e9
    with pytest.raises(ValueError, match=r"800 Gb/s, that is 100 GB/s"):
        Cluster.from_text(
            OWN.format(sparse="false", peak=400).replace("gbps = 25", "gbps = 800")
        )
    with pytest.raises(ValueError, match=r"counts byte/s; for 400 Gb/s write 400e9"):
        Cluster(accelerator="h100-sxm-80gb", n_accelerators=8, scaleout_bandwidth=400)


def test_no_published_network_is_near_the_limit():
    """A bare number above 200 is taken for bits; the fastest row has half of that."""
    assert max(float(row["scaleout_gbps"] or 0) for row in ROWS) <= 100


@pytest.mark.parametrize("value", [5, None, 2.0, ["h100-sxm-80gb"], {"id": "x"}])
def test_a_cluster_is_made_of_accelerators(value):
    with pytest.raises(ValueError, match="is no accelerator; give one of v100"):
        Cluster(accelerator=value, n_accelerators=8)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("hbm_gb", "[80]"), ("hbm_gb", '"80GB"'), ("hbm_gbps", "true"),
        ("bf16_tflops", '"fast"'), ("bf16_tflops", "nan"), ("n_cores", "1.5"),
        ("n_cores", "{a = 1}"), ("scaleup_gbps", "1979-05-27"), ("power_w", "inf"),
        ("gemm_bf16_tflops", "[]"), ("name", "[1]"), ("source", "{}"),
        ("evidence", '"guess"'), ("evidence", "3"), ("sparse", "[true]"),
        ("per", '"rack"'), ("notes", "[[]]"), ("scaleup_domain", "0"),
    ],
)  # fmt: skip
def test_a_wrong_cell_is_named(field, value):
    rows = [
        line for line in OWN.format(sparse="false", peak=400).splitlines()
        if not line.startswith(f"{field} ")
    ]  # fmt: skip
    with pytest.raises(ValueError, match=f"^{field}"):
        Cluster.from_text("\n".join([*rows, f"{field} = {value}"]))


@pytest.mark.parametrize(
    ("text", "is_json", "message"),
    [
        ("n_accelerators = 8\naccelerator = 5", False, "^accelerator=5: write an id"),
        ("n_accelerators = = 3", False, "this is no TOML: .*line 1"),
        ('{"a":', True, "this is no JSON"),
        ("[1, 2]", True, "is no table of fields"),
        ("null", True, "is no table of fields"),
        ('{"a": ' + "[" * 100_000, True, "this is no JSON"),
        (f"n_accelerators = 0x{'f' * 9000}", False, "accelerator is missing"),
        (
            f'accelerator = "b200-sxm"\nn_accelerators = 8\nlatency_us = 0x{"f" * 9000}',
            False, "latency_us=a int too long to print must be a finite",
        ),
        (
            'accelerator = "b200-sxm"\nn_accelerators = 8\nlatency_us = "low"',
            False, "latency_us='low' is not a number",
        ),
    ],
)  # fmt: skip
def test_a_file_of_anything_else_is_refused(text, is_json, message):
    with pytest.raises(ValueError, match=message):
        Cluster.from_text(text, json_format=is_json)


_LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=9),
    st.sampled_from(["h100-sxm-80gb", "400 Gb/s", "-1 GB/s", "1e999 Gb/s", "2026-05"]),
)  # fmt: skip
_VALUES = st.recursive(
    _LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner)
    ),
    max_leaves=4,
)
_CLUSTER_FIELDS = (
    "accelerator", "n_accelerators", "domain", "scaleout_gbps", "latency_us",
)  # fmt: skip
_CHIP_FIELDS = (
    *(name for name in ROWS[0] if name != "id"), "gemm_tf32_tflops", "id"
)  # fmt: skip
_CHIP = {
    "name": "x", "sparse": False, "source": "s", "where": "w", "accessed": "2026",
    "evidence": "estimate",
}  # fmt: skip


@given(
    top=st.dictionaries(st.sampled_from(_CLUSTER_FIELDS), _VALUES),
    cells=st.none() | st.dictionaries(st.sampled_from(_CHIP_FIELDS), _VALUES),
    stray=st.none() | st.text(min_size=1, max_size=5),
)
def test_any_file_is_a_cluster_or_an_error_that_names_the_field(top, cells, stray):
    given = {"accelerator": "h100-sxm-80gb", "n_accelerators": 8} | top
    if cells is not None:
        given["accelerator"] = _CHIP | cells
    if stray is not None:
        given[stray] = 1
    written = {*top, *(cells or {}), *([] if stray is None else [ascii(stray)[1:-1]])}
    if any(name.startswith("price") for name in written):
        written.add("price ")
    made, fault = None, "text"
    try:
        made = Cluster.from_text(json.dumps(given), json_format=True)
    except ValueError as error:
        fault = ascii(str(error)).replace("\\\\", "\\")
    assert isinstance(made, Cluster) or any(name in fault for name in written), fault


@given(text=st.text())
def test_any_text_is_a_cluster_or_a_value_error(text):
    for is_json in (False, True):
        with suppress(ValueError):
            Cluster.from_text(text, json_format=is_json)


def test_a_file_that_is_no_text_is_named(tmp_path):
    path = tmp_path / "own.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match=r"own\.toml is no text in UTF-8"):
        Cluster.from_file(path)
    path = tmp_path / "own.JSON"  # a mark at the beginning, capitals in the ending
    path.write_text(
        '{"accelerator": "h100-sxm-80gb", "n_accelerators": 12}', "utf-8-sig"
    )
    assert Cluster.from_file(path).n_accelerators == 12


def test_a_peak_may_come_from_an_array():
    for kind in (np.float32, np.float64, np.array):
        assert mfu(1e14, kind(989e12)) == pytest.approx(100 / 989, rel=1e-6)
    for wrong in (None, [], object(), True, np.ones(2)):
        with pytest.raises(ValueError, match=r"^accelerator"):
            mfu(1e14, wrong)


def test_mfu_above_one_names_the_peak():
    with pytest.raises(
        ValueError, match="dense bf16 peak of A100 SXM 80GB, 312 TFLOP/s"
    ):
        mfu(324.5e12, "a100-sxm-80gb")
    with pytest.raises(ValueError, match="2:4-sparse headline"):
        mfu(1100e12, "h100-sxm-80gb")


def test_ridge_points():
    """Reference notes: H100 295, A100 156."""
    assert ridge_point("h100-sxm-80gb") == pytest.approx(295, abs=0.5)
    assert ridge_point("a100-sxm-80gb") == pytest.approx(156, abs=0.5)
    assert ridge_point("h200-sxm") == pytest.approx(206, abs=0.5)


def test_tables_are_drawn():
    assert "H100 SXM 80GB" in accelerator_table()
    assert "not known" in ACCELERATORS["v100-sxm-32gb"]._repr_html_()
    assert "TFLOP/s" in ACCELERATORS["h100-sxm-80gb"]._repr_html_()
    assert "domains" in Cluster(accelerator="b200-sxm", n_accelerators=32)._repr_html_()


def test_columns_are_those_that_are_read():
    path = ROOT / "chinchilla_lab" / "data" / "accelerators.csv"
    header = next(csv.reader(path.read_text(encoding="utf-8").splitlines()))
    assert len(header) == len(set(header))
    assert not any("unverified" in row["hbm_gbps"] for row in ROWS)


@pytest.mark.parametrize("key", sorted(ACCELERATORS))
def test_every_chip_can_be_planned_or_says_what_it_lacks(key):
    """Follow the errors: each names a column, and with all of them given it runs."""
    made_up = {
        "bf16_tflops": 100.0, "gemm_bf16_tflops": 80.0, "hbm_gb": 64, "hbm_gbps": 1000,
        "n_cores": 100, "scaleup_domain": 8, "scaleup_gbps": 200, "scaleout_gbps": 25,
    }  # fmt: skip
    own = 'source = "us", where = "test", accessed = "2026-11", evidence = "estimate"'
    given: dict[str, float] = {}
    for _ in range(len(made_up) + 1):
        more = "".join(f"{k} = {v}, " for k, v in given.items())
        machine = Cluster.from_text(
            f'n_accelerators = 64\naccelerator = {{like = "{key}", {more}{own}}}'
        )
        try:
            made = plan(machine, deadline=864000.0, thorough=False, price="2@2026-11")
        except ValueError as fault:
            (column,) = re.findall(rf'like = "{key}", (\w+) = \.\.\.', str(fault))
            assert column not in given
            given[column] = made_up[column]
        else:
            assert 0.0 < made.utilisation < 1.0
            break
    else:
        raise AssertionError(given)
    # what was measured on the best-known chips is all there
    if key.startswith(("a100", "h100-sxm", "h200", "b200", "gb200", "b300")):
        assert not given


def test_like_another_chip_needs_a_source_of_its_own():
    with pytest.raises(ValueError, match="does not say source, where, accessed, evid"):
        Cluster.from_text(
            'n_accelerators = 8\naccelerator = {like = "mi300x", n_cores = 304}'
        )
    with pytest.raises(
        ValueError, match="like='mi300' is not known; choose from: v100"
    ):
        Cluster.from_text('n_accelerators = 8\naccelerator = {like = "mi300"}')
