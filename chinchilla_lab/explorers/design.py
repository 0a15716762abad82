"""Explorer: which runs to train, so that they know the optimum?"""

from typing import TYPE_CHECKING

import numpy as np

from chinchilla_lab.allocation import compute_optimal
from chinchilla_lab.explorers.core import Explorer, LogSlider, Panel, Reading, Slider
from chinchilla_lab.figures.style import BLUE, GREY, ORANGE, Series, log_axis
from chinchilla_lab.fitting import NotIdentifiableError, crossed, design_factor
from chinchilla_lab.laws import DEFAULT
from chinchilla_lab.units import FLOP_PER_ND, text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["EXPLORER"]

_GRID = np.geomspace(1e18, 1e27, 73)
_WORST = 30.0  # the top of the axis: beyond it nothing is known


def _runs(
    sizes: float, largest: float, ratios: float, spread: float
) -> tuple[np.ndarray, np.ndarray]:
    many = int(ratios)
    ladder = np.geomspace(spread**-0.5, spread**0.5, many) if many > 1 else np.ones(1)
    return crossed(np.geomspace(5e7, largest, int(sizes)), 20.0 * ladder)


def _series(
    sizes: float, largest: float, ratios: float, spread: float, noise: float, C: float
) -> Series:
    N, D = _runs(sizes, largest, ratios, spread)
    try:
        factor = design_factor(DEFAULT, N, D, _GRID, noise / 100.0)
        here = design_factor(DEFAULT, N, D, C, noise / 100.0)
    except NotIdentifiableError:
        factor = here = np.full_like(_GRID, np.nan)
    top = np.minimum(np.broadcast_to(factor, _GRID.shape), _WORST)
    mark = np.minimum(np.ravel(here)[:1], _WORST)
    return {
        "design": (N, D),
        "factor": (_GRID, top),
        "target": (np.array([C]), mark),
        "reach": (
            np.full(2, FLOP_PER_ND * float(np.max(N * D))),
            np.array([1.0, 30.0]),
        ),
    }


def _readout(
    sizes: float, largest: float, ratios: float, spread: float, noise: float, C: float
) -> tuple[Reading, ...]:
    N, D = _runs(sizes, largest, ratios, spread)
    dearest = FLOP_PER_ND * float(np.max(N * D))
    cost = FLOP_PER_ND * float(np.sum(N * D))
    best = float(compute_optimal(DEFAULT, C).N)
    try:
        factor = float(design_factor(DEFAULT, N, D, C, noise / 100.0))
    except NotIdentifiableError:
        known = "refused: one ratio in all runs, alpha and beta are not identifiable"
        factor = np.inf
    else:
        known = f"×/÷ {factor:.2f}" if factor < 100 else "×/÷ more than 100"
        if factor < 100:
            low, high = best / factor, best * factor
            known += f": {text(low, 'parameter')} to {text(high, 'parameter')}"
    beyond = np.log10(C / dearest)
    where = f"{beyond:.1f} decades beyond" if beyond > 0 else "within the runs"
    return (
        Reading(label="90 % interval of N*", text=known, value=factor),
        Reading(label="runs", text=f"{len(N)}", value=len(N)),
        Reading(label="largest run", text=text(dearest, "FLOP"), value=dearest),
        Reading(label="all runs", text=text(cost, "FLOP"), value=cost),
        Reading(label="target", text=f"{text(C, 'FLOP')}, {where}", value=beyond),
    )


def _draw_design(ax: "Axes", series: Series) -> None:
    ax.plot(*series["design"], "o", color=BLUE, ms=4, gid="design", label="run")
    line = np.geomspace(1e7, 1e11, 9)
    ax.plot(line, 20 * line, ":", color=GREY, label="20 tokens per parameter")
    log_axis(ax, "x", 3e7, 3e10, "parameter")
    log_axis(ax, "y", 5e7, 1e13, "token")
    ax.set_xlabel("parameters N")
    ax.set_ylabel("training tokens D")
    ax.legend(loc="upper left")


def _draw_factor(ax: "Axes", series: Series) -> None:
    ax.plot(*series["factor"], color=BLUE, gid="factor")
    ax.plot(*series["reach"], ":", color=GREY, gid="reach", label="largest run")
    ax.plot(*series["target"], "D", color=ORANGE, ms=7, gid="target", label="target")
    log_axis(ax, "x", 1e18, 1e27, "FLOP", every=3)
    ax.set_yscale("log")
    ax.set_ylim(1.0, 30.0)
    ax.minorticks_off()
    ax.set_yticks([1, 1.5, 2, 3, 5, 10, 30], ["1", "1.5", "2", "3", "5", "10", "30"])
    ax.set_xlabel("compute of the planned run [FLOP]")
    ax.set_ylabel("N* known to a factor (90 %)")
    ax.legend(loc="upper left")


EXPLORER = Explorer(
    name="design",
    title="Do more runs help most?",
    controls=(
        Slider(name="sizes", low=3, high=12, value=6, label="sizes", step=1),
        LogSlider(
            name="largest", low=1e8, high=2e10, value=2e9, label="largest size",
            unit="parameter", steps=60,
        ),
        Slider(name="ratios", low=1, high=8, value=4, label="ratios", step=1),
        LogSlider(
            name="spread", low=1, high=256, value=16, steps=32,
            label="spread of the ratios around 20, as a factor",
        ),
        LogSlider(
            name="noise", low=0.05, high=2, value=0.3, label="noise of the loss",
            unit="%", steps=60,
        ),
        LogSlider(
            name="C", low=1e20, high=1e26, value=1e24, unit="FLOP", steps=120,
            label="compute of the planned run",
        ),
    ),
    series=_series,
    panels=(
        Panel(
            draw=_draw_design,
            title="The runs",
            alt="A grid of runs, sizes against tokens, around the line of 20 tokens "
            "per parameter.",
            height=3.2,
        ),
        Panel(
            draw=_draw_factor,
            title="What they will know",
            alt="The factor to which the optimal size is known, against compute: "
            "lowest inside the runs, rising beyond the largest.",
            height=3.2,
        ),
    ),
    readout=_readout,
)  # fmt: skip
