"""Runs to fit: checked columns, and readers for what trackers export."""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from csv import DictReader
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from typing import Any, Self, TextIO

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chinchilla_lab.checks import one_of, whole
from chinchilla_lab.laws.families import N_COUNTS, Fitted, NCount
from chinchilla_lab.tables import html_table
from chinchilla_lab.units import FLOP_PER_ND, UnitError, parse, text

__all__ = ["EXAMPLES", "Runs", "example_csv", "example_runs", "read_runs"]

EXAMPLES = {
    "grid64": "64 runs, 8 sizes by 8 ratios, 0.2 % noise, of a law that is known",
    "one_ratio": "24 runs, all at 20 tokens per parameter",
    "edge": "28 runs on 4 budgets; the largest budget has no minimum inside",
}
"""Made-up runs that come with the library."""

Array = NDArray[np.float64]

_UNITS = {"N": "parameter", "D": "token", "C": "FLOP", "L": "count"}
# what trackers and papers call the columns, in the order in which they are believed
_ALIASES = {
    "N": ("n", "params", "n_params", "num_params", "parameters", "model size", "size"),
    "D": ("d", "tokens", "n_tokens", "num_tokens", "tokens_d", "training tokens"),
    "C": ("c", "flops", "flop", "training flop", "compute", "budget"),
    "L": ("l", "loss", "val_loss", "final_loss", "smoothed loss", "validation_loss"),
    "run": ("run", "run_id", "run_name", "name"),
    "state": ("state", "status"),
    "planned": ("planned", "planned_tokens", "target_tokens", "max_tokens"),
}


def _column(name: str, values: ArrayLike, rows: int | None = None) -> Array:
    """Return a column as float64, or name it and the first row that is no number."""
    try:
        given = list(np.ravel(np.asarray(values, dtype=object)))
    except ValueError:
        raise ValueError(f"{name} is not one column; give a flat list") from None
    if rows is not None and len(given) != rows:
        raise ValueError(f"{name} has {len(given)} rows where N has {rows}")
    if not given:
        raise ValueError(f"{name} is empty; give one number a run")
    array = np.empty(len(given))
    for row, value in enumerate(given):
        number = isinstance(value, int | float | np.integer | np.floating)
        if not number or isinstance(value, bool | np.bool_):
            raise ValueError(
                f"{name}[{row}]={value!r} is not a number; read text with "
                "chinchilla_lab.units.parse or load the file with read_runs"
            )
        array[row] = value
        if not 0.0 < array[row] < np.inf:
            raise ValueError(
                f"{name}[{row}]={array[row]:g} must be a finite number above 0; drop "
                "diverged and empty runs before the fit and say how many"
            )
    return array


@dataclass(frozen=True, kw_only=True, eq=False)
class Runs:
    """Training runs: one size, token count and loss each.

    Parameters
    ----------
    N : array_like
        Parameters, [parameter]
    L : array_like
        Validation loss, [nats/token]
    D : array_like, optional
        Training tokens; from ``C = 6ND`` where only ``C`` is given, [token]
    C : array_like, optional
        Training compute; ``6ND`` where only ``D`` is given, [FLOP]
    N_counts : {"total", "non_embedding", "body_and_head", "active"}, optional
        Which parameters N counts; a fit asks for it, [-]
    run : sequence of str, optional
        Name of the run a row belongs to; several rows of one name are checkpoints, [-]
    planned : array_like, optional
        Tokens for which the schedule of each run was set, [token]
    source : str
        Where the runs come from, [-]
    filters : tuple of str
        What was done to them since, in order, [-]

    Raises
    ------
    ValueError
        If columns differ in length or hold text, zeros, negatives, NaN or inf; names
        the column and its first bad row.

    Examples
    --------
    >>> Runs(N=[1e8, 2e8], D=[2e9, 4e9], L=[3.7, 3.3], N_counts="total")
    2 runs: N 100M to 200M, D 2B to 4B, C 1.2e18 FLOP to 4.8e18 FLOP, N counts total
    """

    N: Array
    L: Array
    D: Array = None  # type: ignore[assignment]
    C: Array = None  # type: ignore[assignment]
    N_counts: NCount | None = None
    run: tuple[str, ...] = ()
    planned: Array | None = None
    source: str = "given arrays"
    filters: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.N_counts is not None:
            one_of("N_counts", self.N_counts, N_COUNTS)
        N = _column("N", self.N)
        L = _column("L", self.L, len(N))
        if self.D is None and self.C is None:
            raise ValueError("D and C are both missing; give the tokens or the compute")
        D = None if self.D is None else _column("D", self.D, len(N))
        C = None if self.C is None else _column("C", self.C, len(N))
        D = C / (FLOP_PER_ND * N) if D is None and C is not None else D
        C = FLOP_PER_ND * N * D if C is None and D is not None else C
        names = tuple(map(str, self.run))
        if names and len(names) != len(N):
            raise ValueError(f"run has {len(names)} rows where N has {len(N)}")
        columns = {"N": N, "L": L, "D": D, "C": C, "run": names}
        if self.planned is not None:
            columns["planned"] = _column("planned", self.planned, len(N))
        for name, column in columns.items():
            object.__setattr__(self, name, column)

    def __len__(self) -> int:
        return len(self.N)

    @property
    def ranges(self) -> Fitted:
        """Range of N [parameter], D [token] and C [FLOP] that the runs cover."""

        def span(x: Array) -> tuple[float, float]:
            return float(x.min()), float(x.max())

        return Fitted(N=span(self.N), D=span(self.D), C=span(self.C))

    @property
    def digest(self) -> str:
        """Hash of the numbers, which a stored fit keeps: SHA-256, first 16 digits."""
        data = np.ascontiguousarray(np.array([self.N, self.D, self.L])).tobytes()
        return hashlib.sha256(data).hexdigest()[:16]

    def keep(self, mask: ArrayLike, why: str) -> Self:
        """Return the runs that a mask keeps, and remember why.

        Parameters
        ----------
        mask : array_like of bool
            True for the rows to keep, one a run, [-]
        why : str
            The rule, as it should read in a report, [-]

        Returns
        -------
        Runs
            The kept runs, [-]

        Raises
        ------
        ValueError
            If the mask has another length or keeps nothing.
        """
        kept = np.asarray(mask, dtype=bool)
        if kept.shape != self.N.shape:
            raise ValueError(f"mask has shape {kept.shape} where N has {self.N.shape}")
        if not kept.any():
            raise ValueError(f"{why}: no run is left; loosen the rule")
        index = np.flatnonzero(kept)
        return replace(
            self,
            N=self.N[index],
            D=self.D[index],
            C=self.C[index],
            L=self.L[index],
            run=tuple(self.run[i] for i in index) if self.run else (),
            planned=None if self.planned is None else self.planned[index],
            filters=(*self.filters, f"{why}: {len(self)} -> {len(index)} runs"),
        )

    def drop_highest(self, count: int) -> Self:
        """Return the runs without those of the highest loss.

        Parameters
        ----------
        count : int
            Runs to drop: those at or above the loss of rank ``count``, [-]

        Returns
        -------
        Runs
            The kept runs, [-]

        Notes
        -----
        The rule of the replication :cite:`besiroglu2024chinchilla`, whose notebook
        drops five of 245 runs: equal losses at the border all go.
        """
        n = whole("count", count, least=0)
        if n == 0:
            return self
        if n >= len(self):
            raise ValueError(f"count={n} drops all {len(self)} runs; drop fewer")
        edge = np.sort(self.L)[-n]
        return self.keep(edge > self.L, f"loss below the {n} highest")

    def __repr__(self) -> str:
        said = self.N_counts or "nobody said what"
        spans = (
            f"{name} {text(x.min(), unit)} to {text(x.max(), unit)}"
            for name, x, unit in (
                ("N", self.N, "parameter"),
                ("D", self.D, "token"),
                ("C", self.C, "FLOP"),
            )
        )
        lines = [f"{len(self)} runs: {', '.join(spans)}, N counts {said}"]
        return "\n".join([*lines, *(f"  {line}" for line in self.filters)])

    def _repr_html_(self) -> str:
        rows = [
            (name, text(x.min(), unit), text(x.max(), unit))
            for name, x, unit in (
                ("N [parameter]", self.N, "parameter"),
                ("D [token]", self.D, "token"),
                ("C [FLOP]", self.C, "FLOP"),
            )
        ]
        rows.append(("L [nats/token]", f"{self.L.min():.4g}", f"{self.L.max():.4g}"))
        note = "; ".join((f"{len(self)} runs from {self.source}", *self.filters))
        return html_table(("column", "least", "most"), rows, note)


def read_runs(
    path: str | Path | TextIO,
    columns: Mapping[str, str] | None = None,
    keep: Mapping[str, str | Sequence[str]] | None = None,
    *,
    N_counts: NCount | None = None,
    rows: str = "last",
    source: str = "",
) -> Runs:
    """Read runs from a CSV or JSONL file, such as a tracker exports.

    Parameters
    ----------
    path : str, Path or text stream
        File or open CSV stream; ``.jsonl`` or ``.ndjson`` holds one JSON object a
        line, anything else is CSV with a header, [-]
    columns : mapping, optional
        Column of the file for ``N``, ``D``, ``C``, ``L``, ``run``, ``state`` and
        ``planned``; dots step into nested objects (``"config.n_params"``). What is
        not named is looked for under the usual names, [-]
    keep : mapping, optional
        Values to keep by column of the file, such as ``{"state": "finished"}``. If a
        state column is found and nothing is said, only finished runs stay, [-]
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
        If the file holds no rows, a column is missing or mapped to none, or a kept row
        holds text that is no quantity; names the column and the row.

    Notes
    -----
    Quantities may be written with units (``124M``, ``2.5B tokens``, ``6e18``). Rows
    without a finite positive loss, size and data are dropped and counted.
    """
    one_of("rows", rows, ("last", "all"))
    if isinstance(path, str | Path):
        records, label = _records(Path(path)), Path(path).name
    else:
        records, label = list(DictReader(path.read().splitlines())), "the table"
    if not records:
        raise ValueError(f"{label} holds no rows")
    names = _match(records, dict(columns or {}), label)
    filters: list[str] = []

    def drop(kept: list[dict[str, Any]], why: str) -> list[dict[str, Any]]:
        if len(kept) < len(records):
            filters.append(f"{len(records) - len(kept)} rows dropped: {why}")
        if not kept:
            raise ValueError(f"{label}: {why} leaves no row")
        return kept

    rules = dict(keep or {})
    if "state" in names and names["state"] not in rules and "state" not in rules:
        rules[names["state"]] = "finished"
    for column, wanted in rules.items():
        column = names.get(column, column)
        words = [wanted] if isinstance(wanted, str) else [str(w) for w in wanted]
        if not any(_has(record, column) for record in records):
            raise ValueError(_missing(label, column, records))
        records = drop(
            [r for r in records if str(_get(r, column)).strip() in words],
            f"{column} is not {' or '.join(words)}",
        )

    values = {key: [_get(r, names[key]) for r in records] for key in names}
    usable = [
        all(_filled(values[key][i]) for key in names if key in _UNITS)
        for i in range(len(records))
    ]
    records = drop(
        [r for r, good in zip(records, usable, strict=True) if good],
        "no finite positive number in " + ", ".join(k for k in names if k in _UNITS),
    )
    numbers = {
        key: [
            _quantity(key, _get(record, names[key]), names[key], i)
            for i, record in enumerate(records)
        ]
        for key in names
        if key in _UNITS or key == "planned"
    }
    labels = [str(_get(r, names["run"])) for r in records] if "run" in names else []
    if labels and rows == "last" and len(set(labels)) < len(labels):
        order = numbers.get("D") or numbers["C"]
        last: dict[str, int] = {}
        for i, label in enumerate(labels):
            if label not in last or order[i] >= order[last[label]]:
                last[label] = i
        chosen = sorted(last.values())
        filters.append(
            f"{len(labels) - len(chosen)} rows dropped: earlier checkpoints of "
            f"{len(chosen)} runs"
        )
        labels = [labels[i] for i in chosen]
        numbers = {key: [x[i] for i in chosen] for key, x in numbers.items()}
    return Runs(
        **{key: np.array(x) for key, x in numbers.items()},
        N_counts=N_counts,
        run=tuple(labels),
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
    file = Path(__file__).parent.parent / "data" / f"example_{name}.csv"
    return file.read_text(encoding="utf-8")


def _records(file: Path) -> list[dict[str, Any]]:
    try:
        content = file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ValueError(f"path={str(file)!r} cannot be read: {error}") from None
    if file.suffix in (".jsonl", ".ndjson"):
        records = []
        for number, line in enumerate(content.splitlines(), start=1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except json.JSONDecodeError as error:
                raise ValueError(f"{file.name}, line {number}: {error}") from None
            if not isinstance(record, dict):
                raise ValueError(f"{file.name}, line {number}: no JSON object")
            records.append(record)
    else:
        records = list(DictReader(content.splitlines()))
    return records


def _get(record: Mapping[str, Any], column: str) -> Any:
    """Return a cell; dots step into nested objects unless the name itself has dots."""
    if column in record:
        return record[column]
    here: Any = record
    for part in column.split("."):
        if not isinstance(here, Mapping) or part not in here:
            return None
        here = here[part]
    return here


def _has(record: Mapping[str, Any], column: str) -> bool:
    return _get(record, column) is not None


def _names(records: Iterable[Mapping[str, Any]]) -> list[str]:
    found: dict[str, None] = {}

    def walk(prefix: str, record: Mapping[str, Any]) -> None:
        for key, value in record.items():
            if isinstance(value, Mapping):
                walk(f"{prefix}{key}.", value)
            elif key is not None:
                found[f"{prefix}{key}"] = None

    for record in records:
        walk("", record)
    return list(found)


def _missing(file: str, column: str, records: Sequence[Mapping[str, Any]]) -> str:
    return f"{file} has no column {column!r}; it has: {', '.join(_names(records))}"


def _match(
    records: Sequence[Mapping[str, Any]], columns: dict[str, str], file: str
) -> dict[str, str]:
    """Return the file's column for each letter: as told, else by its usual names."""
    if "loss" in columns:
        columns["L"] = columns.pop("loss")
    for key, column in columns.items():
        if key not in _ALIASES:
            raise ValueError(
                f"columns: {key!r} is not known; map {', '.join(_ALIASES)}"
            )
        if not any(_has(record, column) for record in records):
            raise ValueError(_missing(file, column, records))
    present = _names(records)
    by_name = {name.lower(): name for name in present}
    # config.n_params also answers to n_params, unless another column does better
    by_tail = {name.lower().rsplit(".", 1)[-1]: name for name in present}
    for key, aliases in _ALIASES.items():
        for look in (by_name, by_tail):
            if key not in columns:
                hit = next((look[a] for a in aliases if a in look), None)
                if hit is not None:
                    columns[key] = hit
    for key in ("N", "L"):
        if key not in columns:
            raise ValueError(
                f"{file}: no column for {key}; map it with columns={{{key!r}: ...}} to "
                f"one of: {', '.join(present)}"
            )
    if "D" not in columns and "C" not in columns:
        raise ValueError(
            f"{file}: no column for D or C; map tokens or compute to one of: "
            f"{', '.join(present)}"
        )
    return columns


def _filled(value: Any) -> bool:
    """Whether a cell holds something that could be a finite positive quantity."""
    if value is None or isinstance(value, bool):
        return False
    try:
        return bool(0.0 < float(value) < np.inf)
    except (TypeError, ValueError):
        return str(value).strip().lower() not in ("", "nan", "none", "null", "-", "inf")


def _quantity(key: str, value: Any, column: str, row: int) -> float:
    reader: Callable[[Any], float] = float
    try:
        if isinstance(value, str) and key in ("N", "D", "C"):
            return parse(value, _UNITS[key])
        return parse(value, "token") if key == "planned" else reader(value)
    except (UnitError, ValueError, TypeError) as error:
        raise ValueError(f"column {column!r}, row {row}: {error}") from None
