"""Commands that turn runs into laws."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from chinchilla_lab.allocation.intervals import interval
from chinchilla_lab.allocation.optimum import compute_optimal
from chinchilla_lab.cli import words
from chinchilla_lab.cli.options import AsCsv, AsJson, Budgets, Numbers, option
from chinchilla_lab.cli.output import emit, note
from chinchilla_lab.fitting.fitted import FittedAllocation, FittedLaw
from chinchilla_lab.fitting.isoflop import fit_isoflop
from chinchilla_lab.fitting.parametric import fit_parametric
from chinchilla_lab.fitting.reading import read_runs
from chinchilla_lab.fitting.refusals import RefusedFitError
from chinchilla_lab.fitting.runs import Runs

__all__ = ["COMMANDS"]

Record = dict[str, Any]


def _mapping(written: str | None, option_name: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for word in (written or "").split(","):
        if not word.strip():
            continue
        name, sign, column = word.partition("=")
        if not sign:
            raise ValueError(f"{option_name} {word!r}: write name=column")
        key = name.strip()
        pairs["L" if key == "loss" else key] = column.strip()
    return pairs


def _runs(path: str, columns: str | None, keep: str | None, counts: str) -> Runs:
    if not Path(path).is_file():
        raise ValueError(f"{path}: no such file; check the path")
    names, rows = _mapping(columns, "--map"), _mapping(keep, "--keep")
    try:
        runs = read_runs(path, names, rows, N_counts=counts)  # type: ignore[arg-type]
    except RefusedFitError:
        raise
    except ValueError as fault:
        typed = {"--map": columns, "--keep": keep}
        said = "".join(f"{o} {value}: " for o, value in typed.items() if value)
        raise ValueError(f"{said}{fault}") from None
    for step in runs.filters:
        note(step)
    return runs


def _fit_records(made: FittedLaw, budgets: Numbers | None) -> list[Record]:
    records: list[Record] = [
        {
            "quantity": name,
            "value": value,
            "low": low,
            "high": high,
            "N_counts": made.N_counts,
        }
        for name, (value, low, high) in made.estimates().values.items()
    ]
    for C in budgets or ():
        plan = compute_optimal(made, C)
        ends = {} if made.resampled is None else {"N": interval(made, C).N}
        low, high = ends.get("N", (np.nan, np.nan))
        records.append(
            {"quantity": f"N at {C:g} FLOP", "value": float(plan.N),
             "low": float(low), "high": float(high), "N_counts": made.N_counts}
        )  # fmt: skip
    return records


Data = Annotated[str, typer.Argument(help="CSV or JSONL of runs")]
Columns = Annotated[
    str | None,
    option("--map", help="columns of the file", metavar="N=...,D=...,loss=..."),
]
Keep = Annotated[
    str | None, option("--keep", help="rows to keep", metavar="state=finished")
]
Counts = Annotated[
    str,
    option(
        "--counts",
        metavar="NAME",
        help="what N counts: total, non_embedding, body_and_head, active",
    ),
]
Draws = Annotated[
    int, option("--resamples", help="bootstrap resamples", unit="whole", least=0)
]
Seed = Annotated[
    int, option("--seed", help="seed of the resamples", unit="whole", least=0)
]
Save = Annotated[
    str | None,
    option("--save", help="file for the law; --law reads it", metavar="FILE.json"),
]


def _told(
    made: FittedLaw, compute: Numbers | None, save: str | None,
    as_json: bool, as_csv: bool,
) -> None:  # fmt: skip
    """Save a fit where that was asked, and print it."""
    if save is not None:
        made.save(save)
    emit(_fit_records(made, compute), made.method(), as_json, as_csv)


def fit(
    data: Data,
    columns: Columns = None,
    keep: Keep = None,
    counts: Counts = "total",
    compute: Budgets = None,
    resamples: Draws = 200,
    seed: Seed = 0,
    save: Save = None,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Fit a law to runs, with intervals, or refuse and say why."""
    words.to_be_written(save, "--save", ("json",))
    made = fit_parametric(
        _runs(data, columns, keep, counts), resamples=resamples, rng=seed,
        name=Path(data).stem, progress=False,
    )  # fmt: skip
    _told(made, compute, save, as_json, as_csv)


def isoflop(
    data: Data,
    columns: Columns = None,
    keep: Keep = None,
    counts: Counts = "total",
    compute: Budgets = None,
    resamples: Draws = 200,
    seed: Seed = 0,
    save: Save = None,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Fit parabolas on budgets and a power law through their bottoms."""
    words.to_be_written(save, "--save", ("json",))
    made: FittedAllocation = fit_isoflop(
        _runs(data, columns, keep, counts), resamples=resamples, rng=seed,
        name=Path(data).stem,
    )  # fmt: skip
    _told(made, compute, save, as_json, as_csv)


COMMANDS = {"fit": fit, "isoflop": isoflop}
