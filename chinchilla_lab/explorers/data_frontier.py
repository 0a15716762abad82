"""Explorer: keep the compute-optimal shape and just repeat?"""

import warnings
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from chinchilla_lab.allocation import compute_optimal
from chinchilla_lab.checks import ExtrapolationWarning
from chinchilla_lab.explorers.common import quantity
from chinchilla_lab.explorers.core import Choice, Explorer, LogSlider, Panel, Reading
from chinchilla_lab.figures.repetition import PENALTIES, band
from chinchilla_lab.figures.style import (
    BLUE,
    INK,
    ORANGE,
    SKY,
    Array,
    Series,
    log_axis,
)
from chinchilla_lab.laws import MUENNIGHOFF_2023_C4
from chinchilla_lab.repetition import (
    EQUALLY_GOOD,
    FOLLOWED_EPOCHS,
    DataPlan,
    RepetitionLaw,
    optimal,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["EXPLORER"]

_C = np.geomspace(1e18, 1e26, 41)
_LAWS: dict[str, RepetitionLaw] = {
    "published": EQUALLY_GOOD[0],
    "pair-47": EQUALLY_GOOD[1],
    "pair-100": EQUALLY_GOOD[2],
    "penalty-1": PENALTIES[1.0],
    "penalty-2": PENALTIES[2.0],
}
_LABELS = {
    "published": "discounted repeats, R_D* 15.4 and R_N* 5.31 (published)",
    "pair-47": "discounted repeats, R_D* 47 and R_N* 2.33 (fits as well)",
    "pair-100": "discounted repeats, R_D* 100 and R_N* 1.68 (fits as well)",
    "penalty-1": "penalty, δ = 1 (illustrative)",
    "penalty-2": "penalty, δ = 2 (illustrative)",
}


def _plan(law: str, C: Array, unique: float) -> DataPlan:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExtrapolationWarning)
        return optimal(_LAWS[law], C, unique)


@lru_cache(maxsize=64)
def _curve(law: str, unique: float) -> tuple[Array, Array]:
    plan = _plan(law, _C, unique)
    return np.asarray(plan.N), np.asarray(plan.epochs)


def _series(C: float, unique: float, law: str) -> Series:
    pairs = [_curve(name, unique) for name in ("published", "pair-47", "pair-100")]
    N, epochs = _curve(law, unique)
    shape = compute_optimal(MUENNIGHOFF_2023_C4, _C)
    here = _plan(law, np.array([C]), unique)
    x = np.array([C])
    return {
        "band": band(_C, [pair[0] for pair in pairs]),
        "chinchilla": (_C, np.asarray(shape.N)),
        "n-opt": (_C, N),
        "point": (x, np.asarray(here.N)),
        "epochs-band": band(_C, [pair[1] for pair in pairs]),
        "chinchilla-epochs": (_C, np.asarray(shape.D) / unique),
        "epochs": (_C, epochs),
        "point-epochs": (x, np.asarray(here.epochs)),
    }


def _readout(C: float, unique: float, law: str) -> tuple[Reading, ...]:
    chosen = _LAWS[law]
    plan = _plan(law, np.array([C, 2.0 * C]), unique)
    N, more = (float(n) for n in plan.N)
    epochs, next_epochs = (float(e) for e in plan.epochs)
    L, worth = float(plan.L[0]), float(plan.compute_share[0])
    shape = compute_optimal(MUENNIGHOFF_2023_C4, C)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExtrapolationWarning)
        repeated = float(chosen.loss(shape.N, shape.D, unique=unique))
    free = float(shape.L) if shape.L is not None else L
    far = epochs > FOLLOWED_EPOCHS
    return (
        quantity("best size N*", N, "parameter"),
        quantity("tokens trained", epochs * unique, "token"),
        Reading(
            label="epochs, repeats",
            text=f"{epochs:.2f}, {max(epochs - 1.0, 0.0):.2f}",
            value=epochs,
        ),
        Reading(
            label="doubling the compute",
            text=f"N times {more / N:.2f}, epochs {epochs:.1f} to {next_epochs:.1f}",
            value=more / N,
        ),
        Reading(
            label="loss above unlimited data",
            text=f"{max(L - free, 0.0):.4f} nats/token",
            value=L - free,
        ),
        Reading(
            label="re-shaping earns",
            text=f"{max(repeated - L, 0.0):.4f} nats/token over the "
            "compute-optimal shape",
            value=repeated - L,
        ),
        Reading(
            label="the budget works like",
            text=f"{min(worth, 1.0):.0%} of itself",
            value=worth,
        ),
        Reading(
            label="measured",
            text="beyond the 14 epochs that were followed"
            if far
            else "within the 14 epochs that were followed",
        ),
    )


def _draw_size(ax: "Axes", series: Series) -> None:
    ax.fill(*series["band"], facecolor=SKY, alpha=0.4, lw=0, gid="band",
            label="pairs that fit as well")  # fmt: skip
    ax.plot(*series["chinchilla"], ":", color=INK, gid="chinchilla",
            label="compute-optimal shape")  # fmt: skip
    ax.plot(*series["n-opt"], color=BLUE, gid="n-opt", label="chosen law")
    ax.plot(*series["point"], "D", color=ORANGE, ms=7, gid="point")
    log_axis(ax, "x", 1e18, 1e26, "FLOP", every=2)
    log_axis(ax, "y", 1e7, 1e13, "parameter")
    ax.set_xlabel("training compute C [FLOP]")
    ax.set_ylabel("best size N*")
    ax.legend(loc="upper left")


def _draw_epochs(ax: "Axes", series: Series) -> None:
    ax.fill(*series["epochs-band"], facecolor=SKY, alpha=0.4, lw=0, gid="epochs-band")
    ax.axhline(FOLLOWED_EPOCHS, color=INK, lw=0.8)
    ax.plot(*series["chinchilla-epochs"], ":", color=INK, gid="chinchilla-epochs")
    ax.plot(*series["epochs"], color=BLUE, gid="epochs")
    ax.plot(*series["point-epochs"], "D", color=ORANGE, ms=7, gid="point-epochs")
    log_axis(ax, "x", 1e18, 1e26, "FLOP", every=2)
    log_axis(ax, "y", 0.1, 1e3, "")
    ax.set_xlabel("training compute C [FLOP]")
    ax.set_ylabel("best epochs; line: 14")


EXPLORER = Explorer(
    name="data_frontier",
    title="Keep the shape and just repeat?",
    controls=(
        LogSlider(
            name="C", low=1e18, high=1e26, value=3e22, unit="FLOP", steps=160,
            label="compute budget C",
        ),
        LogSlider(
            name="unique", low=1e8, high=1e13, value=60e9, unit="token",
            label="unique tokens U", steps=150,
        ),
        Choice(
            name="law", options=_LABELS, value="published", label="law of repetition"
        ),
    ),
    series=_series,
    panels=(
        Panel(
            draw=_draw_size,
            title="Best size",
            alt="Best size against compute on logarithmic axes: it leaves the "
            "compute-optimal line once the unique tokens run out.",
        ),
        Panel(
            draw=_draw_epochs,
            title="Best epochs",
            alt="Best number of epochs against compute: above the compute-optimal "
            "line for discounted repeats, below it for a penalty.",
        ),
    ),
    readout=_readout,
)  # fmt: skip
