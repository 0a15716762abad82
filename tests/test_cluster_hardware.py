"""Accelerators and clusters: each figure has its source, a missing one is an error."""

import csv
import re
from pathlib import Path

import pytest

from chinchilla_lab.cluster import ACCELERATORS, Cluster, Price, mfu, ridge_point
from chinchilla_lab.cluster.accelerators import accelerator_from, accelerator_table
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
        if not row["source"].startswith("http"):
            assert f"{{{row['source']}," in text


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
    for wrong in ('"400"', '"fast Gb/s"', "-1"):
        with pytest.raises(ValueError, match="400 Gb/s"):
            Cluster.from_text(head + wrong)


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
            made = plan(machine, deadline=864000.0, thorough=False, price=2.0)
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
