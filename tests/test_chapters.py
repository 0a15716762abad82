"""Chapters keep the house rules and run from the first cell to the last."""

import re
from pathlib import Path

import jupytext
import nbclient
import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted(
    p
    for p in (ROOT / "book").rglob("[!_]*.md")
    if "{code-cell}" in p.read_text(encoding="utf-8")
)
CHAPTERS = [p for p in PAGES if p.parent.name in ("compute", "beyond", "cluster")]
FENCE = re.MULTILINE | re.DOTALL
ORDER = [
    "The question",
    "What you will be able to do",
    "Notation used",
    "Derivation",
    "By hand",
    "The picture",
    "Explorer",
    "Takeaway",
    "Exercises",
    "What this model leaves out",
    "Sources",
]


def label(path):
    return str(path.relative_to(ROOT / "book"))


def cells(path):
    return [c for c in jupytext.read(path).cells if c.cell_type == "code"]


def tags(cell):
    return cell.metadata.get("tags", [])


@pytest.mark.parametrize("path", PAGES, ids=label)
def test_cells_are_short_and_plain(path):
    for cell in cells(path):
        if "remove-cell" in tags(cell):
            continue  # numbers for the prose; no reader sees it
        lines = cell.source.splitlines()
        assert len(lines) <= 12, f"more than 12 lines:\n{cell.source}"
        for line in lines:
            assert len(line) <= 70, f"more than 70 columns: {line}"
        assert "matplotlib" not in cell.source, "plotting belongs into the library"
        if re.search(r"^\s*def ", cell.source, re.MULTILINE):
            assert "by-hand" in tags(cell), f"def outside by-hand:\n{cell.source}"


@pytest.mark.parametrize("path", PAGES, ids=label)
def test_figures_have_alt_text(path):
    for cell in cells(path):
        nb = cell.metadata.get("mystnb", {})
        draws = "figure" in nb or re.search(r"\bplot(_\w+)?\(", cell.source)
        if draws and "remove-cell" not in tags(cell):
            alt = nb.get("image", {}).get("alt", "")
            assert len(alt) > 30, (
                f"a figure needs `image: alt` that says what is seen:\n{cell.source}"
            )
            assert nb.get("figure", {}).get("caption"), "a figure needs a caption"
            assert nb["figure"].get("name"), "a figure needs a name"


@pytest.mark.parametrize("path", CHAPTERS, ids=label)
def test_chapter_has_the_parts_in_order(path):
    text = path.read_text(encoding="utf-8")
    heads = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert heads == ORDER
    by_hand = [c for c in cells(path) if "by-hand" in tags(c)]
    assert len(by_hand) == 1, "one cell derives by hand"
    assert "assert " in by_hand[0].source, (
        "the cell by hand is checked against the library"
    )


@pytest.mark.parametrize("path", PAGES, ids=label)
def test_page_names_its_kernel(path):
    head = path.read_text(encoding="utf-8").split("\n---\n")[0]
    assert re.search(r"^kernelspec:$", head, re.MULTILINE), (
        "without `kernelspec:` in the header no cell is executed"
    )


@pytest.mark.parametrize("path", PAGES, ids=label)
def test_headings_are_unique(path):
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=FENCE)
    heads = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    assert sorted(heads) == sorted(set(heads)), "links to a heading need its name"


@pytest.mark.parametrize("path", PAGES, ids=label)
def test_exercises_have_hidden_solutions(path):
    text = path.read_text(encoding="utf-8")
    asked = re.findall(r":::\{exercise\}[^\n]*\n:label: (\S+)", text)
    solved = re.findall(r":::\{solution\} (\S+)\n:class: dropdown", text)
    assert len(asked) == len(re.findall(r"^[:`]{3,}\{exercise", text, re.MULTILINE)), (
        "an exercise starts with `:::{exercise} title` and has a `:label:`"
    )
    assert sorted(asked) == sorted(solved)
    if path in CHAPTERS:
        assert len(asked) >= 4
        wrong = re.findall(r":::\{exercise\} What is wrong here\?", text)
        assert len(wrong) >= 2


@pytest.mark.chapters
@pytest.mark.parametrize("path", PAGES, ids=label)
def test_chapter_runs(path):
    notebook = jupytext.read(path)
    folder = {"metadata": {"path": str(path.parent)}}
    client = nbclient.NotebookClient(notebook, timeout=120, resources=folder)
    try:
        client.execute()
    except nbclient.exceptions.CellExecutionError as failure:
        plain = re.sub(r"\x1b\[[\d;]*m", "", str(failure))
        pytest.fail(f"a cell of {label(path)} raises:\n{plain}", pytrace=False)
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            said = output.get("name") == "stderr"
            assert not said, f"{label(path)} writes to stderr: {output.get('text')}"
