"""Explorer: are generated tokens free?"""

import warnings
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from chinchilla_lab.allocation import compute_optimal
from chinchilla_lab.checks import ExtrapolationWarning
from chinchilla_lab.explorers.common import quantity
from chinchilla_lab.explorers.core import Explorer, LogSlider, Panel, Reading, Slider
from chinchilla_lab.figures.repetition import band, series_choices
from chinchilla_lab.figures.style import (
    BLUE,
    GREEN,
    ORANGE,
    PURPLE,
    RED,
    SKY,
    Array,
    Series,
    log_axis,
)
from chinchilla_lab.laws import MUENNIGHOFF_2023_REPEATED
from chinchilla_lab.repetition import EQUALLY_GOOD, Choices, optimal, three_choices
from chinchilla_lab.units import text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["EXPLORER"]

_C = np.geomspace(1e20, 1e25, 41)
_WORDS = {
    "small": "20:1 on one epoch",
    "small_repeated": "20:1, that size repeated",
    "repeat": "repeat, best size",
    "repeat_ratio": "repeat, compute-optimal shape",
    "add": "add tokens",
}


@lru_cache(maxsize=64)
def _curves(
    unique: float, extra: float, quality: float, generator: float
) -> dict[str, Array]:
    return series_choices(_C, unique, extra, quality, generator)


@lru_cache(maxsize=64)
def _pairs(unique: float) -> tuple[Array, Array]:
    """Return what repetition gives under all pairs of scales that fit as well."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExtrapolationWarning)
        free = np.asarray(compute_optimal(EQUALLY_GOOD[0].base, _C).L)
        return band(_C, [optimal(x, _C, unique).L - free for x in EQUALLY_GOOD])


@lru_cache(maxsize=64)
def _table(
    C: float, unique: float, extra: float, quality: float, generator: float
) -> Choices:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExtrapolationWarning)
        return three_choices(
            MUENNIGHOFF_2023_REPEATED, C, unique, extra, quality, generator
        )


def _series(
    C: float, unique: float, extra: float, quality: float, generator: float
) -> Series:
    lines = _curves(unique, extra, quality, generator)
    table = _table(C, unique, extra, quality, generator)
    free = table["unlimited"].L
    found: Series = {"band": _pairs(unique)}
    for name in ("small", "repeat", "add", "fresh"):
        known = np.isfinite(lines[name])  # no loss where generation takes it all
        found[name] = (_C[known], lines[name][known])
        L = np.array([table[name].L - free])
        kept = np.isfinite(L)
        found[f"point-{name}"] = (np.array([C])[kept], L[kept])
    return found


def _readout(
    C: float, unique: float, extra: float, quality: float, generator: float
) -> tuple[Reading, ...]:
    table = _table(C, unique, extra, quality, generator)
    best = table["repeat"]
    share = table.generation / C
    least = table.break_even
    found = [
        Reading(label="least loss", text=_WORDS[table.winner.name]),
        Reading(
            label="repeat",
            text=f"{text(best.N, 'parameter')} for {best.epochs:.2f} epochs",
            value=best.epochs,
        ),
    ]
    for name, label in (
        ("small", "20:1 on one epoch, against repeat"),
        ("add", "adding, against repeat"),
        ("fresh", "as many fresh tokens, against repeat"),
    ):
        gap = table[name].L - best.L
        said = f"{gap:+.4f} nats/token" if np.isfinite(gap) else "no budget left"
        found.append(Reading(label=label, text=said, value=gap))
    found += [
        Reading(
            label="break-even quality",
            text=f"{least:.2f}" if np.isfinite(least) else "none, not even 1",
            value=least,
        ),
        Reading(
            label="generation takes",
            text=f"{share:.1%} of the budget",
            value=share,
        ),
        quantity("unique tokens U", unique, "token"),
    ]
    return tuple(found)


def _draw(ax: "Axes", series: Series) -> None:
    ax.fill(*series["band"], facecolor=SKY, alpha=0.4, lw=0, gid="band",
            label="repeat, pairs that fit as well")  # fmt: skip
    for name, dash, mark, colour, words in (
        ("small", ":", "v", RED, "20:1 on one epoch"),
        ("repeat", "-", "D", BLUE, "repeat, best size"),
        ("add", "--", "s", PURPLE, "add tokens"),
        ("fresh", "-.", "^", GREEN, "as many fresh tokens"),
    ):
        ax.plot(*series[name], ls=dash, color=colour, gid=name, label=words)
        ax.plot(*series[f"point-{name}"], mark, color=colour, ms=7, gid=f"point-{name}")
    ax.axhline(0.0, color=ORANGE, lw=0.8)
    log_axis(ax, "x", 1e20, 1e25, "FLOP")
    ax.set_ylim(-0.01, 0.35)
    ax.set_xlabel("training compute C [FLOP]")
    ax.set_ylabel("loss above unlimited data")
    ax.legend(loc="upper left")


EXPLORER = Explorer(
    name="three_choices",
    title="Are generated tokens free?",
    controls=(
        LogSlider(
            name="extra", low=1e8, high=1e12, value=60e9, unit="token",
            label="tokens added S", steps=120,
        ),
        Slider(
            name="quality", low=0.05, high=1.0, value=0.6, step=0.05,
            label="worth q of an added token (yours to measure)",
        ),
        Slider(
            name="generator", low=0, high=100e9, value=7e9, step=1e9,
            unit="parameter", label="size of the generator, 0 if the tokens are free",
        ),
        LogSlider(
            name="unique", low=1e9, high=1e12, value=60e9, unit="token",
            label="unique tokens U", steps=90,
        ),
        LogSlider(
            name="C", low=1e20, high=1e25, value=3e22, unit="FLOP", steps=100,
            label="compute budget C",
        ),
    ),
    series=_series,
    panels=(
        Panel(
            draw=_draw,
            title="Loss above what unlimited data would give",
            alt="Four curves of loss above unlimited data against compute: a small "
            "model on one epoch rises steeply, repeating slowly, adding tokens "
            "starts high where generation eats the budget.",
            width=4.2,
            height=3.6,
        ),
    ),
    readout=_readout,
)  # fmt: skip
