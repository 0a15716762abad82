"""The table of commands for the book: made from the program, answers computed."""

import contextlib
import io
import json
import shlex
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from chinchilla_lab.cli import main
from chinchilla_lab.cli.catalogue import CATALOGUE
from chinchilla_lab.cli.output import cell, head
from chinchilla_lab.fitting.reading import example_csv
from chinchilla_lab.tables import html_table

__all__ = ["command_table", "example_records"]

# files that the examples name, and the tables of the library that stand in for them
FILES = {"runs.csv": "grid64", "sweep.csv": "edge"}
SHOWN = 8


def example_records(command: str) -> list[dict[str, Any]]:
    """Run the example of a command and return what it answers.

    Parameters
    ----------
    command : str
        Key of the catalogue, [-]

    Returns
    -------
    list of dict
        Records, as ``--json`` prints them, [any]

    Raises
    ------
    RuntimeError
        If the example does not run.

    Examples
    --------
    >>> example_records("roofline")[0]["accelerator"]
    'H100 SXM 80GB'
    """
    words = shlex.split(CATALOGUE[command].example)
    out, err = io.StringIO(), io.StringIO()
    with TemporaryDirectory() as folder:
        for name, table in FILES.items():
            (Path(folder) / name).write_text(example_csv(table), encoding="utf-8")
        words = [str(Path(folder) / w) if w in FILES else w for w in words]
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main([*words, "--json"])
    if code:
        raise RuntimeError(f"the example of {command} does not run: {err.getvalue()}")
    records: list[dict[str, Any]] = json.loads(out.getvalue())
    return records


def command_table() -> str:
    """Return every command, what it answers, an example, and how its answer begins.

    Returns
    -------
    str
        HTML, [-]
    """
    rows = []
    for name, entry in CATALOGUE.items():
        records = example_records(name)
        first, rest = records[0], len(records) - 1
        names = entry.tells or tuple(k for k in first if first[k] not in (None, ""))
        begin = "; ".join(f"{head(k)} {cell(k, first[k])}" for k in names[:SHOWN])
        more = f" ({rest} more row{'s' if rest > 1 else ''})" if rest else ""
        rows.append(
            [name, entry.summary, f"chinchilla-lab {entry.example}", f"{begin}{more}"]
        )
    return html_table(
        ("command", "what it answers", "example", "how its answer begins"), rows
    )
