"""Explorer: a fit of the reader's own runs, or a refusal that says why."""

import io
import warnings
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from chinchilla_lab.allocation import compute_optimal
from chinchilla_lab.explorers.core import (
    Choice,
    Explorer,
    LogSlider,
    Panel,
    Reading,
    Sheet,
)
from chinchilla_lab.figures.style import BLUE, GREEN, ORANGE, Series, log_axis
from chinchilla_lab.fitting import (
    FittedLossLaw,
    FitWarning,
    Runs,
    example_csv,
    fit_parametric,
    read_runs,
)
from chinchilla_lab.units import text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["EXPLORER"]

_GRID = np.geomspace(1e17, 1e27, 41)
_RESAMPLES = 200  # an interval good to a tenth of its width, in a fraction of a second


@lru_cache(maxsize=4)
def _fit(rows: str, N_counts: str) -> tuple[Runs | None, FittedLossLaw | None, str]:
    """Return runs and law, or as far as they go and why not further."""
    runs = None
    try:
        runs = read_runs(io.StringIO(rows), N_counts=N_counts)  # type: ignore[arg-type]
        with warnings.catch_warnings():
            # the readout shows the law's notes
            warnings.simplefilter("ignore", FitWarning)
            law = fit_parametric(runs, resamples=_RESAMPLES, name="your fit")
    except ValueError as refusal:
        return runs, None, str(refusal)
    return runs, law, ""


def _series(rows: str, N_counts: str, C: float) -> Series:
    runs, law, _ = _fit(rows, N_counts)
    none = (np.zeros(0), np.zeros(0))
    hidden = (np.full(3, 1e17), np.full(3, 1e6))
    series: Series = {
        "runs": none if runs is None else (runs.C, runs.N),
        "band": hidden,
        "line": none,
        "here": none,
    }
    if law is None or law.resampled is None:
        return series
    low, high = law.interval(_GRID).N
    series["band"] = (np.r_[_GRID, _GRID[::-1]], np.r_[low, high[::-1]])
    series["line"] = (_GRID, np.asarray(compute_optimal(law, _GRID).N))
    series["here"] = (np.array([C]), np.ravel(compute_optimal(law, C).N))
    return series


def _readout(rows: str, N_counts: str, C: float) -> tuple[Reading, ...]:
    runs, law, why = _fit(rows, N_counts)
    read = "none" if runs is None else "; ".join((f"{len(runs)} runs", *runs.filters))
    first = Reading(label="read", text=read)
    if law is None or law.resampled is None:
        why = why or "every resample fails"
        return (first, Reading(label="answer", text=f"refused: {why}"))
    best = compute_optimal(law, C)
    low, high = law.interval(C).N
    few, many = law.interval(C).tokens_per_param
    estimates = law.estimates()
    shown = [
        Reading(label=name, text=f"{value:.4f} ({start:.4f} to {end:.4f})", value=value)
        for name in ("alpha", "beta", "a")
        for value, start, end in (estimates[name],)
    ]
    notes = [*best.outside(), *law.notes]
    return (
        first,
        Reading(
            label="N* at the planned compute",
            text=f"{text(float(best.N), 'parameter')} "
            f"({text(float(low), 'parameter')} to {text(float(high), 'parameter')})",
            value=float(best.N),
        ),
        Reading(
            label="tokens per parameter",
            text=f"{float(best.tokens_per_param):.1f} ({few:.1f} to {many:.1f})",
        ),
        *shown,
        Reading(label="doubts", text="; ".join(notes) if notes else "none"),
    )


def _draw(ax: "Axes", series: Series) -> None:
    ax.fill(
        *series["band"], facecolor=BLUE, alpha=0.2, gid="band", label="90 % interval"
    )
    ax.plot(*series["line"], color=BLUE, gid="line", label="N* of the fit")
    ax.plot(*series["runs"], "o", color=GREEN, ms=3, gid="runs", label="your runs")
    ax.plot(*series["here"], "D", color=ORANGE, ms=8, gid="here", label="planned run")
    log_axis(ax, "x", 1e15, 1e27, "FLOP", every=3)
    log_axis(ax, "y", 1e5, 1e13, "parameter", every=2)
    ax.set_xlabel("training compute C [FLOP]")
    ax.set_ylabel("parameters N")
    ax.legend(loc="upper left")


EXPLORER = Explorer(
    name="upload",
    title="What do your own runs say?",
    controls=(
        Sheet(
            name="rows",
            value=example_csv("grid64"),
            label="runs as CSV: columns N, D and loss (or C), one run a row",
        ),
        Choice(
            name="N_counts",
            options={
                "total": "all parameters",
                "non_embedding": "without embeddings",
                "body_and_head": "body and head",
                "active": "active parameters",
            },
            value="total",
            label="N counts",
        ),
        LogSlider(
            name="C", low=1e18, high=1e26, value=1e23, unit="FLOP", steps=160,
            label="compute of the planned run",
        ),
    ),
    series=_series,
    panels=(
        Panel(
            draw=_draw,
            title="Optimal size that the runs support",
            alt="Runs as dots and a line of optimal size with a band that widens "
            "beyond them.",
            width=4.1,
            height=3.4,
        ),
    ),
    readout=_readout,
)  # fmt: skip
