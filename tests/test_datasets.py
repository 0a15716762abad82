"""Data of others: found, checked, fetched, or asked for in one sentence."""

import os
import socket
from pathlib import Path

import pytest

from chinchilla_lab import datasets, replications
from chinchilla_lab.datasets import DATASETS, MissingDataError


@pytest.mark.parametrize("name", DATASETS)
def test_load_gives_runs_with_their_citation(name, others):
    if not DATASETS[name].columns:
        with pytest.raises(ValueError, match="holds no runs"):
            datasets.load(name)
        return
    options = {"keep": {"val": "c4_val"}} if DATASETS[name].several else {}
    runs = others(name, **options)
    assert DATASETS[name].cite in runs.source
    assert len(runs) > 20


def test_content_is_checked(tmp_path, monkeypatch):
    monkeypatch.setenv("CHINCHILLA_LAB_DATA", str(tmp_path))
    (tmp_path / "sardana_47runs.csv").write_text("N,D,L\n1,2,3\n")
    with pytest.raises(ValueError, match="pinned is"):
        datasets.load("sardana_47runs")


def test_offline_and_not_cached(tmp_path, monkeypatch):
    pytest.importorskip("pooch")

    def no_net(*args, **kwargs):
        raise OSError("no network in this test")

    monkeypatch.setenv("CHINCHILLA_LAB_DATA", str(tmp_path / "empty"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(socket, "getaddrinfo", no_net)
    monkeypatch.setattr(socket.socket, "connect", no_net)
    with pytest.raises(MissingDataError) as error:
        datasets.load("sardana_47runs")
    said = str(error.value)
    for part in ("sardana_47runs.csv", DATASETS["sardana_47runs"].url,
                 "CHINCHILLA_LAB_DATA"):  # fmt: skip
        assert part in said
    assert "\n" not in said


def test_reduced_files_name_their_origin(monkeypatch):
    monkeypatch.delenv(
        "CHINCHILLA_LAB_DATA"
    ) if "CHINCHILLA_LAB_DATA" in os.environ else None
    with pytest.raises(MissingDataError, match=r"mlfoundations/scaling.*CHINCHILLA"):
        datasets.load("gadre_testbed", keep={"val": "c4_val"})


def test_fetching_checks_the_hash(tmp_path, monkeypatch):
    """A served copy passes, a changed one does not."""
    pooch = pytest.importorskip("pooch")
    folder = os.environ.get("CHINCHILLA_LAB_DATA", "")
    original = Path(folder) / "sardana_47runs.csv"
    if not original.is_file():
        pytest.skip("sardana_47runs.csv is not in CHINCHILLA_LAB_DATA")
    monkeypatch.delenv("CHINCHILLA_LAB_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    content = original.read_bytes()

    def download(url, output_file, owner, check_only=False):
        assert url == DATASETS["sardana_47runs"].url
        Path(output_file).write_bytes(content)

    monkeypatch.setattr(pooch.core, "choose_downloader", lambda *a, **k: download)
    assert len(datasets.load("sardana_47runs")) == 47
    content = content.replace(b"150M", b"151M")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    with pytest.raises(MissingDataError, match="could not be fetched"):
        datasets.load("sardana_47runs")


def test_no_file_of_others_is_committed():
    root = Path(replications.__file__).parent
    hashes = {data.sha256 for data in DATASETS.values()}
    import hashlib

    for file in root.rglob("*.csv"):
        assert hashlib.sha256(file.read_bytes()).hexdigest() not in hashes


def test_stored_replications_come_out_again(others, monkeypatch):
    """Every stored number, computed anew where the data is at hand."""
    for name in {row.data for row in replications.stored() if row.data}:
        if DATASETS[name].columns and not DATASETS[name].several:
            others(name)
    fresh = {row.key: row for row in replications.compute()}
    kept = {row.key: row for row in replications.stored()}
    assert set(fresh) == set(kept)
    for key, row in kept.items():
        assert fresh[key].get == pytest.approx(row.get, rel=1e-6), key
        assert (row.says, row.why) == (fresh[key].says, fresh[key].why)
        assert row.date
        assert row.version


def test_dropped_runs_come_out_again(others):
    others("chinchilla_epoch245")
    from chinchilla_lab.sources import read_rows

    for row, new in zip(
        read_rows("besiroglu2024_dropped.csv"), replications.dropped_runs(), strict=True
    ):
        assert {k: float(v) for k, v in row.items()} == pytest.approx(new, rel=1e-4)


def test_missing_data_is_one_line_of_the_command(monkeypatch, capsys):
    monkeypatch.setattr(
        replications.datasets, "load", lambda *a, **k: datasets.locate("gadre_testbed")
    )
    monkeypatch.setenv("CHINCHILLA_LAB_DATA", "/nowhere")
    replications._epoch.cache_clear()
    replications._huber.cache_clear()
    assert replications.main([]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "CHINCHILLA_LAB_DATA" in said
