"""Explorer: is R* a half-life?"""

from typing import TYPE_CHECKING

import numpy as np

from chinchilla_lab.explorers.common import quantity
from chinchilla_lab.explorers.core import Explorer, LogSlider, Panel, Reading
from chinchilla_lab.figures.style import BLUE, GREEN, GREY, ORANGE, Series, log_axis
from chinchilla_lab.laws import MUENNIGHOFF_2023_REPEATED, RepeatedDataLaw
from chinchilla_lab.repetition import FOLLOWED_EPOCHS, passes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["EXPLORER"]

_EPOCHS = np.geomspace(1.0, 200.0, 121)


def _law(scale: float) -> RepeatedDataLaw:
    return MUENNIGHOFF_2023_REPEATED.with_(R_D=scale)


def _series(unique: float, epochs: float, scale: float) -> Series:
    law = _law(scale)
    here = np.array([epochs])
    worth = law.effective_tokens(1.0, _EPOCHS)
    half = 1.0 + law.half_life
    return {
        "share": (_EPOCHS, worth / _EPOCHS),
        "marginal": (_EPOCHS, law.marginal_value(_EPOCHS)),
        "point-share": (here, law.effective_tokens(1.0, here) / here),
        "point-marginal": (here, law.marginal_value(here)),
        "half": (np.array([half, half]), np.array([0.0, 0.5])),
        "effective": (_EPOCHS, unique * worth),
        "fresh": (_EPOCHS, unique * _EPOCHS),
        "ceiling": (_EPOCHS[[0, -1]], np.full(2, unique * law.ceiling)),
        "point-effective": (here, unique * law.effective_tokens(1.0, here)),
    }


def _readout(unique: float, epochs: float, scale: float) -> tuple[Reading, ...]:
    law = _law(scale)
    run = passes(unique, epochs=epochs)
    share = float(law.effective_tokens(1.0, epochs)) / epochs
    worth = float(law.marginal_value(epochs))
    beyond = epochs > FOLLOWED_EPOCHS
    return (
        Reading(label="epochs", text=f"{run.epochs:.2f}", value=run.epochs),
        Reading(label="repeats R", text=f"{run.repeats:.2f}", value=run.repeats),
        quantity("tokens trained D", run.tokens, "token"),
        quantity("effective tokens D′", share * run.tokens, "token"),
        Reading(label="worth of all tokens", text=f"{share:.1%}", value=share),
        Reading(label="worth of the next token", text=f"{worth:.1%}", value=worth),
        Reading(
            label="a token is worth half",
            text=f"after {law.half_life:.2f} repeats, in epoch {law.half_life + 1:.1f}",
            value=law.half_life,
        ),
        quantity("ceiling of D′", law.ceiling * unique, "token"),
        Reading(
            label="measured",
            text="beyond the 14 epochs that the law followed"
            if beyond
            else "within the 14 epochs that the law followed",
        ),
    )


def _epoch_axis(ax: "Axes") -> None:
    ax.set_xscale("log")
    ax.set_xlim(1.0, 200.0)
    ax.minorticks_off()
    ticks = [1, 2, 4, 8, 16, 32, 64, 128]
    ax.set_xticks(ticks, [f"{t}" for t in ticks])
    ax.set_xlabel("epochs D/U")


def _draw_worth(ax: "Axes", series: Series) -> None:
    ax.plot(*series["half"], ":", color=GREY, gid="half", label="worth half")
    ax.plot(*series["share"], color=BLUE, gid="share", label="all tokens")
    ax.plot(*series["marginal"], "--", color=ORANGE, gid="marginal", label="next token")
    ax.plot(*series["point-share"], "D", color=BLUE, ms=7, gid="point-share")
    ax.plot(*series["point-marginal"], "s", color=ORANGE, ms=7, gid="point-marginal")
    _epoch_axis(ax)
    ax.set_ylim(0.0, 1.05)
    ax.set_ylabel("worth, of a fresh token")
    ax.legend(loc="lower left")


def _draw_effective(ax: "Axes", series: Series) -> None:
    ax.plot(*series["fresh"], ":", color=GREY, gid="fresh", label="all fresh")
    ax.plot(*series["ceiling"], "--", color=GREEN, gid="ceiling", label="ceiling")
    ax.plot(*series["effective"], color=BLUE, gid="effective", label="effective")
    ax.plot(*series["point-effective"], "D", color=ORANGE, ms=7, gid="point-effective")
    _epoch_axis(ax)
    log_axis(ax, "y", 1e8, 1e16, "token", every=2)
    ax.set_ylabel("tokens")
    ax.legend(loc="upper left")


EXPLORER = Explorer(
    name="epoch_value",
    title="What is the next epoch worth?",
    controls=(
        LogSlider(
            name="epochs", low=1, high=200, value=6.5, label="epochs", steps=120
        ),
        LogSlider(
            name="unique", low=1e8, high=1e13, value=60e9, unit="token",
            label="unique tokens U", steps=150,
        ),
        LogSlider(
            name="scale", low=5, high=200, value=15.4, label="scale of repetition R_D*",
            steps=100,
        ),
    ),
    series=_series,
    panels=(
        Panel(
            draw=_draw_worth,
            title="Worth of all tokens and of the next",
            alt="Two curves that fall from one: the worth of the next token falls to "
            "zero first, the worth of all tokens follows.",
        ),
        Panel(
            draw=_draw_effective,
            title="Effective tokens end at a ceiling",
            alt="Effective tokens rise with the epochs like fresh ones at first and "
            "then level off at a ceiling.",
        ),
    ),
    readout=_readout,
)  # fmt: skip
