"""Size against demand: the lifetime valley, and the price of a small model."""

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from chinchilla_lab.allocation.optimum import optimal_for_params
from chinchilla_lab.allocation.price import least_size_factor, overhead
from chinchilla_lab.figures.isoflop import loss_law
from chinchilla_lab.figures.style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    RED,
    SKY,
    Series,
    log_axis,
)
from chinchilla_lab.inference.factors import factors_for_size
from chinchilla_lab.inference.lifetime import (
    BAND,
    Lifetime,
    lifetime_at,
    lifetime_spread,
)
from chinchilla_lab.laws.families import LossLaw

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "SIZES",
    "demand_for_size",
    "draw_demand_for_size",
    "draw_equal_loss",
    "draw_lifetime_valley",
    "draw_saved",
    "plan_for",
    "ring",
    "series_lifetime_valley",
    "series_price_of_small",
    "size_axis",
    "size_grid",
]

Array = NDArray[np.float64]

SIZES = (0.08, 4.0)
"""Sizes shown, over the compute-optimal size of the same loss."""

DEMANDS = np.geomspace(1e9, 1e16, 57)
_HIGH = 2.5  # upper edge of the valley
_FAR = 1e18  # a demand off the axes, where no demand makes a size right


def ring(x: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """Return the outline of the area between two curves."""
    return np.r_[x, x[::-1]], np.r_[low, high[::-1]]


def plan_for(law: LossLaw, quality: float, T: float) -> Lifetime:
    """Return the lifetime optimum at the loss of a compute-optimal size.

    Parameters
    ----------
    law : LossLaw
        A law with a closed form, [-]
    quality : float
        Size whose compute-optimal loss is the target, [parameter]
    T : float
        Tokens served, [token]

    Returns
    -------
    Lifetime
        The plan, [-]
    """
    return lifetime_spread(T, quality, (law,)).plans[0]


def size_grid(law: LossLaw, points: int = 121) -> Array:
    """Return sizes over the compute-optimal one, from just above the least."""
    least = max(1.003 * least_size_factor(law), SIZES[0])
    return np.geomspace(least, SIZES[1], points)


@lru_cache(maxsize=32)
def _saved_by_set(quality: float) -> Array:
    """Return saved percent of every set at all demands."""
    return 100.0 * lifetime_spread(DEMANDS, quality).saved


def series_lifetime_valley(law: str, quality: float, T: float) -> Series:
    """Lifetime compute of every size that reaches one loss.

    Parameters
    ----------
    law : str
        Key of a law of the band, [-]
    quality : float
        Size whose compute-optimal loss is the target, [parameter]
    T : float
        Tokens served, [token]

    Returns
    -------
    dict
        ``train``, ``serve``, ``total`` and ``optimum``: size over the compute-optimal
        one, and compute over its lifetime compute, [-]; ``band``: sizes that the
        coefficient sets ask for; ``saved``, ``saved-band``, ``yours``: demand [token]
        and percent
    """
    chosen = loss_law(law)
    plan = plan_for(chosen, quality, T)
    best = plan.compute_optimal
    k = size_grid(chosen)
    every = lifetime_at(chosen, k * best.N, T, plan.L)
    unit = float(plan.total / (1.0 - plan.saved))
    asked = lifetime_spread(T, quality).size_factor
    saved = _saved_by_set(quality)
    mine = 100.0 * plan_for(chosen, quality, DEMANDS).saved  # type: ignore[arg-type]
    edge = np.array([asked.min(), asked.max()])
    return {
        "band": ring(edge, np.zeros(2), np.full(2, _HIGH)),
        "train": (k, every.training / unit),
        "serve": (k, every.serving / unit),
        "total": (k, every.total / unit),
        "optimum": (np.array([plan.size_factor]), np.array([plan.total / unit])),
        "saved-band": ring(DEMANDS, saved.min(axis=0), saved.max(axis=0)),
        "saved": (DEMANDS, np.asarray(mine)),
        "yours": (np.array([T]), np.array([100.0 * float(plan.saved)])),
    }


def size_axis(ax: "Axes") -> None:
    """Give axes the sizes over the compute-optimal size."""
    ax.set_xscale("log")
    ax.set_xlim(*SIZES)
    ax.minorticks_off()
    ticks = [0.1, 0.2, 0.5, 1.0, 2.0, 4.0]
    ax.set_xticks(ticks, [f"{t:g}" for t in ticks])
    ax.set_xlabel("size over compute-optimal size, k")


def draw_lifetime_valley(ax: "Axes", series: Series) -> None:
    """Draw training, service and their sum against size."""
    ax.fill(*series["band"], facecolor=SKY, edgecolor=SKY, alpha=0.3, gid="band",
            label="four sets")  # fmt: skip
    ax.plot(*series["train"], "--", color=BLUE, gid="train", label="training")
    ax.plot(*series["serve"], ":", color=GREEN, gid="serve", label="serving")
    ax.plot(*series["total"], color=ORANGE, gid="total", label="lifetime")
    ax.plot(*series["optimum"], "D", color=ORANGE, ms=7, gid="optimum")
    size_axis(ax)
    ax.set_ylim(0.0, _HIGH)
    ax.set_ylabel("compute over that at k = 1")
    ax.legend(loc="upper center", fontsize=7.5, handlelength=1.5)


def draw_saved(ax: "Axes", series: Series) -> None:
    """Draw the saved share against demand, with the spread of the sets."""
    ax.fill(*series["saved-band"], facecolor=SKY, edgecolor=SKY, alpha=0.3,
            gid="saved-band", label="four sets")  # fmt: skip
    ax.plot(*series["saved"], color=BLUE, gid="saved", label="this law")
    ax.plot(*series["yours"], "D", color=ORANGE, ms=7, gid="yours", label="you")
    log_axis(ax, "x", DEMANDS[0], DEMANDS[-1], "token", every=2)
    ax.set_ylim(0.0, 100.0)
    ax.set_xlabel("tokens served T")
    ax.set_ylabel("lifetime compute saved [%]")
    ax.legend(loc="upper left")


def demand_for_size(law: LossLaw, quality: float, k: Array) -> Array:
    """Return the demand for which sizes are right; infinite where none is.

    Parameters
    ----------
    law : LossLaw
        A law with a closed form, [-]
    quality : float
        Size whose compute-optimal loss is the target, [parameter]
    k : numpy.ndarray
        Sizes over the compute-optimal one, at most 1, [-]

    Returns
    -------
    numpy.ndarray
        Tokens served, infinite at and below the least size, [token]
    """
    unit = float(optimal_for_params(law, quality).D)
    good = k > least_size_factor(law) * (1.0 + 1e-9)
    found = np.full(k.shape, np.inf)
    if good.any():
        found[good] = factors_for_size(law, k[good]).demand_factor * unit
    return found


def series_price_of_small(law: str, quality: float, k: float) -> Series:
    """Tokens that a size needs at equal loss, and the demand that pays for them.

    Parameters
    ----------
    law : str
        Key of a law of the band, [-]
    quality : float
        Size whose compute-optimal loss is the target, [parameter]
    k : float
        Size over the compute-optimal one, [-]

    Returns
    -------
    dict
        ``isoloss``, ``compute``, ``floor``, ``point`` and ``naive``: size and tokens
        over the compute-optimal ones, [-]; ``demand``, ``demand-band`` and ``yours``:
        size [-] and tokens served [token]
    """
    chosen = loss_law(law)
    grid = size_grid(chosen, 161)
    mine = overhead(chosen, k, infeasible="nan")
    wall = least_size_factor(chosen)
    reach = bool(np.isfinite(mine.token_factor))
    small = np.geomspace(SIZES[0], 0.999, 101)
    every = [demand_for_size(each, quality, small) for each in BAND]
    bounded = np.minimum(every, _FAR)
    own = demand_for_size(chosen, quality, small)
    has = np.isfinite(own)
    pays = reach and k < 1.0
    here = demand_for_size(chosen, quality, np.array([k])) if pays else np.empty(0)
    return {
        "floor": (np.array([wall, wall]), np.array([1e-3, 1e6])),
        "compute": (np.array(SIZES), 1.0 / np.array(SIZES)),
        "isoloss": (grid, np.asarray(overhead(chosen, grid).token_factor)),
        "naive": (np.array([k]), np.array([1.0 / k])),
        "point": (
            np.full(int(reach), k),
            np.full(int(reach), float(mine.token_factor)),
        ),
        "demand-band": ring(small, bounded.min(axis=0), bounded.max(axis=0)),
        "demand": (small[has], own[has]),
        "yours": (np.full(here.size, k), here),
    }


def draw_equal_loss(ax: "Axes", series: Series) -> None:
    """Draw tokens against size at equal loss, beside equal training compute."""
    ax.plot(*series["floor"], ":", color=GREY, gid="floor", label="no data suffice")
    ax.plot(*series["compute"], "--", color=PURPLE, gid="compute",
            label="same training compute")  # fmt: skip
    ax.plot(*series["isoloss"], color=BLUE, gid="isoloss", label="same loss")
    ax.plot(*series["naive"], "x", color=RED, ms=8, mew=2, gid="naive",
            label="same compute: worse loss")  # fmt: skip
    ax.plot(*series["point"], "D", color=ORANGE, ms=7, gid="point", label="you")
    size_axis(ax)
    log_axis(ax, "y", 0.1, 100.0, "")
    ax.set_ylabel("tokens over optimal tokens, u")
    ax.legend(loc="upper right", fontsize=7.5)


def draw_demand_for_size(ax: "Axes", series: Series) -> None:
    """Draw the demand at which each size is right."""
    ax.fill(*series["demand-band"], facecolor=SKY, edgecolor=SKY, alpha=0.3,
            gid="demand-band", label="four sets")  # fmt: skip
    ax.plot(*series["demand"], color=BLUE, gid="demand", label="this law")
    ax.plot(*series["yours"], "D", color=ORANGE, ms=7, gid="yours", label="you")
    size_axis(ax)
    log_axis(ax, "y", 1e9, 1e16, "token", every=2)
    ax.set_ylabel("demand that pays for it [token]")
    ax.legend(loc="upper right")
