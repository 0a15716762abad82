"""Where the published laws put a budget, and where real models stand."""

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from chinchilla_lab.allocation.intervals import default_interval
from chinchilla_lab.allocation.optimum import compute_optimal
from chinchilla_lab.figures.style import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PURPLE,
    RED,
    SKY,
    Series,
    log_axis,
)
from chinchilla_lab.laws import PUBLISHED
from chinchilla_lab.sources import read_rows
from chinchilla_lab.units import FLOP_PER_ND

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["LINES", "NEAR", "draw_ratio", "draw_sizes", "models", "series_allocation"]

C_RANGE = (1e17, 1e27)
_XY = tuple[NDArray[np.float64], NDArray[np.float64]]
_GRID = np.geomspace(*C_RANGE, 81)
_NONE = (np.zeros(0), np.zeros(0))

# law, colour, dash: two cues for each line
LINES: dict[str, tuple[str, str]] = {
    "besiroglu-2024": (BLUE, "-"),
    "hoffmann-2022": (ORANGE, "-"),
    "hoffmann-2022-isoflop": (ORANGE, "--"),
    "hoffmann-2022-envelope": (ORANGE, ":"),
    "muennighoff-2023-c4": (GREEN, "--"),
    "ratio-20": (GREY, "-."),
    "gadre-2024-rpj": (SKY, ":"),
    "kaplan-2020-cmin": (RED, "-."),
}


NEAR = (
    "besiroglu-2024",
    "hoffmann-2022",
    "hoffmann-2022-envelope",
    "hoffmann-2022-isoflop",
    "ratio-20",
)
"""Laws of one corpus and one count, which are always drawn."""


@cache
def models() -> tuple[dict[str, str], ...]:
    """Return published training runs, one row each, without unverified ones."""
    rows = read_rows("models.csv")
    return tuple(row for row in rows if row["evidence"] != "unverified")


def _runs(mixture: bool) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return active N and D of the runs, dense ones or mixtures of experts."""
    chosen = [m for m in models() if (m["N_active"] != m["N_total"]) == mixture]
    N = np.array([float(m["N_active"]) for m in chosen])
    return N, np.array([float(m["D_tokens"]) for m in chosen])


def series_allocation(C: float, others: bool, band: bool, dots: bool) -> Series:
    """Optimal size and ratio against compute under every law.

    Parameters
    ----------
    C : float
        Training compute that is marked, [FLOP]
    others : bool
        Whether laws from other data and other counts are drawn, [-]
    band : bool
        Whether the bootstrap band of the default law is drawn, [-]
    dots : bool
        Whether real models are drawn, [-]

    Returns
    -------
    dict
        ``N-<law>`` and ``ratio-<law>`` against C [FLOP], bands, dots and markers
    """
    series: Series = {}
    for name in LINES:
        plan = compute_optimal(PUBLISHED[name], _GRID)
        shown = others or name in NEAR
        series[f"N-{name}"] = (_GRID, np.asarray(plan.N)) if shown else _NONE
        ratio = np.asarray(plan.tokens_per_param)
        series[f"ratio-{name}"] = (_GRID, ratio) if shown else _NONE
    interval = default_interval(_GRID)
    loop = np.concatenate([_GRID, _GRID[::-1]])
    low, high = (np.asarray(x) for x in interval.N)
    few, many = (np.asarray(x) for x in interval.tokens_per_param)
    series["N-band"] = (loop, np.concatenate([low, high[::-1]])) if band else _NONE
    series["ratio-band"] = (loop, np.concatenate([few, many[::-1]])) if band else _NONE
    for key, mixture in (("dense", False), ("experts", True)):
        N, D = _runs(mixture)
        series[f"N-{key}"] = (FLOP_PER_ND * N * D, N) if dots else _NONE
        series[f"ratio-{key}"] = (FLOP_PER_ND * N * D, D / N) if dots else _NONE
    here = compute_optimal(PUBLISHED["besiroglu-2024"], C)
    at = np.array([C])
    series["N-here"] = (at, np.array([here.N]))
    series["ratio-here"] = (at, np.array([here.tokens_per_param]))
    return series


def _draw(ax: "Axes", series: Series, what: str) -> None:
    ax.fill(
        *_filled(series[f"{what}-band"]),
        facecolor=BLUE,
        alpha=0.18,
        gid=f"{what}-band",
        label="90 % of resamples",
    )
    for name, (colour, dash) in LINES.items():
        ax.plot(
            *series[f"{what}-{name}"],
            dash,
            color=colour,
            lw=2.0 if name == "besiroglu-2024" else 1.4,
            gid=f"{what}-{name}",
            label=PUBLISHED[name].label,
        )
    ax.plot(
        *series[f"{what}-dense"],
        "o",
        color=INK,
        ms=3.5,
        gid=f"{what}-dense",
        label="model, dense",
    )
    ax.plot(
        *series[f"{what}-experts"],
        "o",
        color=PURPLE,
        mfc="none",
        ms=4.5,
        gid=f"{what}-experts",
        label="model, experts (active N)",
    )
    ax.plot(*series[f"{what}-here"], "D", color=BLUE, ms=7, gid=f"{what}-here")
    log_axis(ax, "x", *C_RANGE, "FLOP", every=2)
    ax.set_xlabel("training compute C [FLOP]")


def _filled(xy: _XY) -> _XY:
    """Keep one polygon even when a band is switched off: it stays as an artist."""
    if len(xy[0]):
        return xy
    return np.full(3, C_RANGE[0]), np.ones(3)


def draw_sizes(ax: "Axes", series: Series) -> None:
    """Draw optimal size against compute."""
    _draw(ax, series, "N")
    log_axis(ax, "y", 1e6, 1e17, "parameter", every=3)
    ax.set_ylabel("parameters N")
    ax.legend(loc="upper left", fontsize=7, handlelength=2.6, labelspacing=0.25)


def draw_ratio(ax: "Axes", series: Series) -> None:
    """Draw the ratio of tokens to parameters against compute."""
    _draw(ax, series, "ratio")
    log_axis(ax, "y", 1e-1, 1e5, "")
    ax.set_ylabel("tokens per parameter D/N")
