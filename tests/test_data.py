"""Every table of the library says what its columns are (scaling issue 4: no legend)."""

import csv
import re
from pathlib import Path

import pytest

import chinchilla_lab

DATA = Path(chinchilla_lab.__file__).parent / "data"
LEGEND = (DATA / "README.md").read_text(encoding="utf-8")
SECTIONS = {
    name.strip(): body
    for head, body in re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", LEGEND, re.M | re.S)
    for name in head.split(",")
}


def test_legend_and_folder_name_the_same_tables():
    assert set(SECTIONS) == {file.name for file in DATA.glob("*.csv")}


@pytest.mark.parametrize("file", sorted(DATA.glob("*.csv")), ids=lambda f: f.name)
def test_C75_columns_are_explained(file):
    lines = file.read_text(encoding="utf-8").splitlines()
    rows = list(csv.reader(lines))
    text = SECTIONS[file.name]
    if "columns as above" in text:
        text += SECTIONS["published_runs.csv"] + "`seq_len`"
    for column in rows[0]:
        assert f"`{column}`" in text, f"{file.name}: {column} is not explained"
    assert all(len(row) == len(rows[0]) for row in rows)
