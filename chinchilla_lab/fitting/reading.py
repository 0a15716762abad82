"""Readers of runs: what trackers export, and the examples of the library."""

import json
from collections.abc import Iterable, Mapping, Sequence
from csv import DictReader
from io import StringIO
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from chinchilla_lab.checks import one_of
from chinchilla_lab.fitting.runs import Runs
from chinchilla_lab.laws.families import NCount
from chinchilla_lab.units import UnitError, parse

__all__ = ["EXAMPLES", "example_csv", "example_runs", "read_runs"]

EXAMPLES = {
    "grid64": "64 runs, 8 sizes by 8 ratios, 0.2 % noise, of a law that is known",
    "one_ratio": "24 runs, all at 20 tokens per parameter",
    "edge": "28 runs on 4 budgets; the largest budget has no minimum inside",
}
"""Made-up runs that come with the library."""

_DATA = Path(__file__).parent.parent / "data"
_UNITS = {"N": "parameter", "D": "token", "C": "FLOP", "planned": "token"}
# What trackers and papers call the columns, in the order in which they are believed:
# a validation loss before a loss that may be that of training.
_ALIASES = {
    "N": ("n", "params", "n_params", "num_params", "num_parameters", "parameters",
          "model size"),
    "D": ("d", "tokens", "n_tokens", "num_tokens", "tokens_d", "training tokens"),
    "C": ("c", "flops", "flop", "training flop", "compute"),
    "L": ("l", "val_loss", "validation_loss", "valid_loss", "eval_loss", "final_loss",
          "smoothed loss", "loss"),
    "run": ("run", "run_id", "run_name", "name"),
    "state": ("state", "status"),
    "planned": ("planned", "planned_tokens", "target_tokens", "max_tokens"),
}  # fmt: skip
# words that name too many things to be believed inside another name
_GENERIC = ("n", "d", "c", "l", "name", "state", "status", "size", "planned")
_FINISHED = ("finished", "completed", "complete", "success", "succeeded", "done")
_NO_NUMBER = ("", "nan", "none", "null", "-", "n/a", "na", "inf", "diverged", "failed")

Record = Mapping[str, Any]


def read_runs(
    path: str | Path | TextIO,
    columns: Mapping[str, str] | None = None,
    keep: Mapping[str, object] | None = None,
    *,
    N_counts: NCount | None = None,
    rows: str = "last",
    source: str = "",
) -> Runs:
    """Read runs from a CSV or JSONL file, such as a tracker exports.

    Parameters
    ----------
    path : str, Path or text stream
        File or open stream: one JSON object a line, or CSV with a header whose cells
        are parted by commas, semicolons or tabs, [-]
    columns : mapping, optional
        Column of the file for ``N``, ``D``, ``C``, ``L``, ``run``, ``state`` and
        ``planned``; dots step into nested objects (``"config.n_params"``), empty text
        says that there is none. What is not named is looked for under the usual
        names, [-]
    keep : mapping, optional
        Value or values to keep by column of the file, such as
        ``{"state": "finished"}``. If a state column is found and nothing is said, only
        finished runs stay; ``{}`` keeps all, [-]
    N_counts : {"total", "non_embedding", "body_and_head", "active"}, optional
        Which parameters N counts; a fit asks for it, [-]
    rows : {"last", "all"}, optional
        The last row of each run (the one with the most tokens), or all of them, as an
        envelope needs, [-]
    source : str, optional
        Where the runs come from; the file's name by default, [-]

    Returns
    -------
    Runs
        The runs; ``filters`` says how many rows were dropped and why, [-]

    Raises
    ------
    ValueError
        If the file holds no rows, a column is missing, or a kept row holds text that
        is no quantity; names the column and the line of the file.

    Notes
    -----
    Quantities may be written with units (``124M``, ``2.5B tokens``, ``6e18``). A row
    whose loss cell is blank logged none and is passed over; a run whose last logged
    loss is NaN, infinite or a word such as ``diverged`` is dropped with all its rows.
    """
    one_of("rows", rows, ("last", "all"))
    label, lines = _lines(path)
    if not lines:
        raise ValueError(f"{label} holds no rows")
    names = _match([record for _, record in lines], dict(columns or {}), label)
    filters: list[str] = []

    def keep_only(kept: list[tuple[int, Record]], why: str) -> list[tuple[int, Record]]:
        gone = len(lines) - len(kept)
        if gone:
            filters.append(f"{gone} row{'s' * (gone > 1)} dropped: {why}")
        if not kept:
            raise ValueError(f"{label}: {why} leaves no row")
        return kept

    rules: dict[str, object] = dict(keep or {})
    if keep is None and "state" in names:
        rules[names["state"]] = _FINISHED
    for asked, wanted in rules.items():
        column = names.get(asked, asked)
        if not any(_has(record, column) for _, record in lines):
            raise ValueError(_missing(label, column, [r for _, r in lines]))
        given = [wanted] if isinstance(wanted, str) else wanted
        given = given if isinstance(given, Iterable) else [given]
        words = [str(word).strip().lower() for word in given]
        found = {str(_get(record, column)).strip() for _, record in lines}
        lines = keep_only(
            [x for x in lines if str(_get(x[1], column)).strip().lower() in words],
            f"{column} is not {' or '.join(words)} (the file has: "
            f"{', '.join(sorted(found)[:6])})",
        )

    blank = [x for x in lines if not str(_get(x[1], names["L"]) or "").strip()]
    lines = keep_only([x for x in lines if x not in blank], "no loss logged")
    last, bad = _last_rows(lines, names, label)
    if bad:
        shown = ", ".join(list(bad)[:3]) + (", ..." if len(bad) > 3 else "")
        lines = keep_only(
            [x for x in lines if x[0] not in set().union(*bad.values())],
            f"the last loss of their run is no finite positive number ({shown})",
        )
    if rows == "last":
        lines = keep_only(
            [x for x in lines if x[0] in last],
            f"earlier checkpoints of {len(last)} runs",
        )
    lines = keep_only(
        [
            x
            for x in lines
            if all(_filled(_get(x[1], names[k])) for k in _needed(names))
        ],
        "no finite positive number in " + ", ".join(_needed(names)),
    )
    numbers = {
        key: np.array([_quantity(key, x, names[key], label) for x in lines])
        for key in _needed(names)
    }
    if "planned" in names:
        cells = [_get(record, names["planned"]) for _, record in lines]
        # a run that does not say its plan is taken to have ended where it should
        ended = numbers.get("D", np.full(len(lines), np.nan))
        numbers["planned"] = np.array(
            [
                _quantity("planned", x, names["planned"], label) if _filled(cell) else d
                for x, cell, d in zip(lines, cells, ended, strict=True)
            ]
        )
    return Runs(
        **numbers,
        N_counts=N_counts,
        run=_labels(lines, names),
        source=source or label,
        filters=tuple(filters),
    )


def example_runs(name: str) -> Runs:
    """Return made-up runs that come with the library, to try a fit on.

    Parameters
    ----------
    name : {"grid64", "one_ratio", "edge"}
        Which, see :data:`EXAMPLES`, [-]

    Returns
    -------
    Runs
        The runs, [-]

    Examples
    --------
    >>> len(example_runs("grid64"))
    64
    """
    return read_runs(
        StringIO(example_csv(name)), N_counts="total", source=EXAMPLES[name]
    )


def example_csv(name: str) -> str:
    """Return the made-up runs as the text of a CSV file.

    Parameters
    ----------
    name : {"grid64", "one_ratio", "edge"}
        Which, see :data:`EXAMPLES`, [-]

    Returns
    -------
    str
        Header and rows, [-]
    """
    one_of("name", name, EXAMPLES)
    return (_DATA / f"example_{name}.csv").read_text(encoding="utf-8")


# --- from a file to records with the number of their line


def _lines(path: str | Path | TextIO) -> tuple[str, list[tuple[int, Record]]]:
    if isinstance(path, str | Path):
        label = Path(path).name
        try:
            content = Path(path).read_text(encoding="utf-8-sig")
        except OSError as error:
            raise ValueError(f"path={str(path)!r} cannot be read: {error}") from None
        except UnicodeDecodeError:
            raise ValueError(f"{label} is not UTF-8 text; save it as UTF-8") from None
    else:
        label, content = "the table", path.read().removeprefix("\ufeff")
    if content.lstrip().startswith("{"):
        return label, list(_objects(content, label))
    head = content.lstrip().split("\n", 1)[0]
    mark = next((m for m in (",", ";", "\t") if m in head), ",")
    reader = DictReader(StringIO(content, newline=""), delimiter=mark)
    return label, [
        (
            reader.line_num,
            {str(key).strip(): cell for key, cell in row.items() if key is not None},
        )
        for row in reader
    ]


def _objects(content: str, label: str) -> Iterable[tuple[int, Record]]:
    for number, line in enumerate(content.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise ValueError(f"{label}, line {number}: {error}") from None
        if not isinstance(record, dict):
            raise ValueError(f"{label}, line {number}: no JSON object")
        yield number, record


def _get(record: Record, column: str) -> Any:
    """Return a cell; dots step into nested objects, whose own names may hold dots."""
    if column in record:
        return record[column]
    for cut in range(len(column) - 1, 0, -1):
        if column[cut] == "." and isinstance(record.get(column[:cut]), Mapping):
            found = _get(record[column[:cut]], column[cut + 1 :])
            if found is not None:
                return found
    return None


def _has(record: Record, column: str) -> bool:
    return _get(record, column) is not None


def _names(records: Iterable[Record]) -> list[str]:
    found: dict[str, None] = {}

    def walk(prefix: str, record: Record) -> None:
        for key, value in record.items():
            if isinstance(value, Mapping):
                walk(f"{prefix}{key}.", value)
            else:
                found[f"{prefix}{key}"] = None

    for record in records:
        walk("", record)
    return list(found)


def _missing(file: str, column: str, records: Sequence[Record]) -> str:
    return f"{file} has no column {column!r}; it has: {', '.join(_names(records))}"


def _match(
    records: Sequence[Record], columns: dict[str, str], file: str
) -> dict[str, str]:
    """Return the file's column for each letter: as told, else by its usual names."""
    if "loss" in columns:
        columns["L"] = columns.pop("loss")
    for key, column in columns.items():
        if key not in _ALIASES:
            raise ValueError(
                f"columns: {key!r} is not known; map {', '.join(_ALIASES)}"
            )
        if column and not any(_has(record, column) for record in records):
            raise ValueError(_missing(file, column, records))
    present = _names(records)
    whole = {name.lower(): name for name in present}
    # config.n_params also answers to n_params, if no other column does
    tails: dict[str, list[str]] = {}
    for name in present:
        tails.setdefault(name.lower().rsplit(".", 1)[-1], []).append(name)
    for key, aliases in _ALIASES.items():
        for alias in aliases:
            if key in columns:
                break
            if alias in whole:
                columns[key] = whole[alias]
            elif alias not in _GENERIC and len(tails.get(alias, ())) == 1:
                columns[key] = tails[alias][0]
    names = {key: column for key, column in columns.items() if column}
    listed = ", ".join(present)
    for key in ("N", "L"):
        if key not in names:
            raise ValueError(
                f"{file}: no column for {key}; map it with columns={{{key!r}: ...}} to "
                f"one of: {listed}"
            )
    if "D" not in names and "C" not in names:
        raise ValueError(
            f"{file}: no column for D or C; map tokens or compute to one of: {listed}"
        )
    return names


# --- from records to runs


def _needed(names: Mapping[str, str]) -> list[str]:
    return [key for key in ("N", "D", "C", "L") if key in names]


def _labels(
    lines: Sequence[tuple[int, Record]], names: Mapping[str, str]
) -> tuple[str, ...]:
    """Return the run of each row; rows that name none are runs of their own."""
    if "run" not in names:
        return ()
    cells = [(number, _get(record, names["run"])) for number, record in lines]
    return tuple(
        f"line {number}" if cell is None or not str(cell).strip() else str(cell)
        for number, cell in cells
    )


def _last_rows(
    lines: list[tuple[int, Record]], names: Mapping[str, str], label: str
) -> tuple[set[int], dict[str, set[int]]]:
    """Return the last line of each sound run, and the lines of each diverged one."""
    amount = names.get("D", names.get("C", ""))
    groups: dict[str, list[tuple[int, Record]]] = {}
    for line, run in zip(
        lines, _labels(lines, names) or map(str, range(len(lines))), strict=False
    ):
        groups.setdefault(run, []).append(line)
    last: set[int] = set()
    bad: dict[str, set[int]] = {}
    for run, own in groups.items():
        if len(own) == 1 and "run" not in names:
            last.add(own[0][0])
            continue
        sizes = [
            _quantity("N", line, names["N"], label)
            for line in own
            if _filled(_get(line[1], names["N"]))
        ]
        if sizes and max(sizes) > 1.01 * min(sizes):
            raise ValueError(
                f"{label}: rows of run {run!r} have sizes from {min(sizes):g} to "
                f"{max(sizes):g}; map run to the column that tells runs apart, or to "
                "'' if every row is a run"
            )
        usable = [line for line in own if _filled(_get(line[1], amount))]
        key = "D" if "D" in names else "C"
        end = max(
            reversed(usable),
            key=lambda line: _quantity(key, line, amount, label),
            default=own[-1],
        )
        if _filled(_get(end[1], names["L"])):
            last.add(end[0])
        else:
            bad[run] = {number for number, _ in own}
    return last, bad


def _filled(value: Any) -> bool:
    """Whether a cell holds something that could be a finite positive quantity."""
    if value is None or isinstance(value, bool):
        return False
    try:
        return bool(0.0 < float(value) < np.inf)
    except OverflowError:
        return False
    except (TypeError, ValueError):
        return str(value).strip().lower() not in _NO_NUMBER


def _quantity(key: str, line: tuple[int, Record], column: str, label: str) -> float:
    value = _get(line[1], column)
    try:
        if key == "L" or not isinstance(value, str):
            return float(value)
        return parse(value, _UNITS[key])
    except (UnitError, ValueError, TypeError, OverflowError) as error:
        raise ValueError(
            f"{label}, line {line[0]}, column {column!r}: {error}"
        ) from None
