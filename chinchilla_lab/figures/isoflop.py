"""One budget, every split: the valley of the loss and the dome of useful compute."""

from typing import TYPE_CHECKING

import numpy as np

from chinchilla_lab.allocation.optimum import isoflop
from chinchilla_lab.allocation.price import waste
from chinchilla_lab.allocation.solving import optimum
from chinchilla_lab.figures.style import (
    BLUE,
    GREY,
    ORANGE,
    Series,
    log_axis,
)
from chinchilla_lab.laws import PUBLISHED, LossLaw

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_useful", "draw_valley", "loss_law", "series_isoflop"]

N_RANGE = (1e6, 1e14)
L_RANGE = (1.6, 5.0)
K_RANGE = (0.1, 10.0)


def loss_law(name: str) -> LossLaw:
    """Return a published law that knows a loss, or say which do."""
    law = PUBLISHED.get(name)
    if isinstance(law, LossLaw):
        return law
    known = [key for key, value in PUBLISHED.items() if value.has_loss]
    raise ValueError(f"law={name!r} has no loss; known with a loss: {', '.join(known)}")


def series_isoflop(C: float, law: str, k: float) -> Series:
    """Loss against size on one budget, and what a size factor leaves of it.

    Parameters
    ----------
    C : float
        Training compute, [FLOP]
    law : str
        Key of a law with a loss, [-]
    k : float
        Your size over the optimal one, [-]

    Returns
    -------
    dict
        ``valley``, ``path``, ``optimum``, ``yours`` in N [parameter] and L
        [nats/token]; ``useful`` and ``yours-useful`` in k [-] and percent [-]
    """
    chosen = loss_law(law)
    best, _ = optimum(chosen, np.asarray(C))
    factors = np.geomspace(1e-3, 1e3, 161)
    sizes = best * factors
    losses = isoflop(chosen, C, sizes)[1]
    budgets = np.geomspace(1e15, 1e29, 57)
    path, _ = optimum(chosen, budgets)
    around = np.geomspace(*K_RANGE, 121)
    yours = isoflop(chosen, C, best * k)[1]
    least = isoflop(chosen, C, best)[1]
    return {
        "valley": (sizes, losses),
        "path": (path, isoflop(chosen, budgets, path)[1]),
        "optimum": (np.array([best]), np.array([least])),
        "yours": (np.array([best * k]), np.array([yours])),
        "useful": (around, 100.0 / (1.0 + waste(chosen, around))),
        "yours-useful": (
            np.array([k]),
            np.array([100.0 / (1.0 + float(waste(chosen, k)))]),
        ),
    }


def draw_valley(ax: "Axes", series: Series) -> None:
    """Draw loss against size."""
    ax.plot(*series["path"], "--", color=GREY, lw=1.2, gid="path", label="optimal path")
    ax.plot(*series["valley"], color=BLUE, gid="valley", label="this budget")
    ax.plot(*series["optimum"], "o", color=BLUE, ms=7, gid="optimum", label="optimum")
    ax.plot(*series["yours"], "D", color=ORANGE, ms=7, gid="yours", label="your size")
    log_axis(ax, "x", *N_RANGE, "parameter", every=2)
    ax.set_ylim(*L_RANGE)
    ax.set_xlabel("parameters N")
    ax.set_ylabel("loss L [nats/token]")
    ax.legend(loc="upper right")


def draw_useful(ax: "Axes", series: Series) -> None:
    """Draw the share of the budget that the loss reached was worth."""
    ax.plot(*series["useful"], color=BLUE, gid="useful")
    ax.plot(*series["yours-useful"], "D", color=ORANGE, ms=7, gid="yours-useful")
    ax.set_xscale("log")
    ax.set_xlim(*K_RANGE)
    ticks = [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0]
    ax.minorticks_off()
    ax.set_xticks(ticks, [f"{t:g}" for t in ticks])
    ax.set_ylim(0.0, 105.0)
    ax.set_xlabel("size over optimal size, k")
    ax.set_ylabel("useful share of the budget [%]")
