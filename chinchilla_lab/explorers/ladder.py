"""Explorer: does one cause explain the exponent of Kaplan et al.?"""

from typing import TYPE_CHECKING

import numpy as np

from chinchilla_lab.explorers.core import Explorer, LogSlider, Panel, Reading, Slider
from chinchilla_lab.figures.laws import LADDER
from chinchilla_lab.figures.style import BLUE, GREY, ORANGE, SKY, Series, log_axis
from chinchilla_lab.units import text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["EXPLORER"]

_RANGE = (1.25e16, 2.56e19)  # compute of the runs, :cite:`porian2024resolving`
_C = np.geomspace(1e16, 1e24, 33)
_NAMES = tuple(LADDER)


def _series(step: float, C: float) -> Series:
    law = LADDER[_NAMES[int(step) - 1]]
    before = LADDER[_NAMES[max(int(step) - 2, 0)]]
    inside = np.geomspace(*_RANGE, 9)
    return {
        "line": (_C, np.asarray(law.optimum(_C)[0])),
        "runs": (inside, np.asarray(law.optimum(inside)[0])),
        "before": (_C, np.asarray(before.optimum(_C)[0])),
        "here": (np.array([C]), np.ravel(law.optimum(C)[0])),
    }


def _readout(step: float, C: float) -> tuple[Reading, ...]:
    place = int(step) - 1
    law = LADDER[_NAMES[place]]
    moved = "" if place == 0 else f", {law.a - LADDER[_NAMES[place - 1]].a:+.3f}"
    N, D = (float(x) for x in law.optimum(C))
    inside = _RANGE[0] <= C <= _RANGE[1]
    far = max(np.log10(C / _RANGE[1]), np.log10(_RANGE[0] / C))
    return (
        Reading(label="step", text=f"{place + 1} of 5: {_NAMES[place]}"),
        Reading(label="exponent a", text=f"{law.a:.3f}{moved}", value=law.a),
        Reading(label="N*", text=f"{text(N, 'parameter')} parameters", value=N),
        Reading(label="tokens per parameter", text=text(D / N, ""), value=D / N),
        Reading(
            label="compute of the runs",
            text="inside" if inside else f"{far:.1f} decades outside",
        ),
    )


def _draw(ax: "Axes", series: Series) -> None:
    ax.plot(*series["before"], ":", color=GREY, gid="before", label="the step before")
    ax.plot(*series["line"], color=BLUE, gid="line", label="this step")
    ax.plot(
        *series["runs"],
        color=SKY,
        lw=6,
        alpha=0.5,
        gid="runs",
        label="range of its runs",
    )
    ax.plot(*series["here"], "D", color=ORANGE, ms=8, gid="here", label="chosen budget")
    log_axis(ax, "x", 1e16, 1e24, "FLOP", every=2)
    log_axis(ax, "y", 1e5, 1e13, "parameter", every=2)
    ax.set_xlabel("training compute C [FLOP]")
    ax.set_ylabel("optimal size N*")
    ax.legend(loc="upper left")


EXPLORER = Explorer(
    name="ladder",
    title="Does one cause explain the exponent of Kaplan et al.?",
    controls=(
        Slider(name="step", low=1, high=5, value=1, step=1, label="repairs made"),
        LogSlider(
            name="C", low=1e16, high=1e24, value=1e19, label="compute budget C",
            unit="FLOP", steps=160,
        ),
    ),
    series=_series,
    panels=(
        Panel(
            draw=_draw,
            title="Optimal size after each repair",
            alt="A line of optimal size against compute that tilts flatter with every "
            "repair of the experiment.",
            width=4.1,
            height=3.2,
        ),
    ),
    readout=_readout,
)  # fmt: skip
