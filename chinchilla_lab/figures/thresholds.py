"""Thresholds: who crosses a loss and for how much, and what a score makes of it."""

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from chinchilla_lab.allocation import optimal_for_params, tokens_for_loss
from chinchilla_lab.figures.style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    Drawing,
    Series,
    draw_on_figure,
    log_axis,
)
from chinchilla_lab.inference import BAND
from chinchilla_lab.laws import MUENNIGHOFF_2023_REPEATED, PUBLISHED
from chinchilla_lab.laws.families import AdditiveLaw
from chinchilla_lab.repetition import tokens_for_loss as tokens_with_repeats
from chinchilla_lab.thresholds import (
    SUITES,
    Crossing,
    TwoStepLaw,
    crossing_cost,
    size_beyond_loss,
    smallest_model_for,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "ACCURACIES",
    "COMPUTE_TOP",
    "K_RANGE",
    "U_RANGE",
    "compute_for_accuracy",
    "crossing_at",
    "crossings",
    "draw_costs",
    "draw_crossing",
    "draw_price",
    "law_of",
    "least_bill",
    "plot_accuracy_price",
    "plot_crossing",
    "plot_demand",
    "series_crossing",
    "series_price",
]

K_RANGE = (0.1, 10.0)
U_RANGE = (0.1, 100.0)
ACCURACIES = (0.3, 0.7)
COMPUTE_TOP = 1e30
_DASHES = ("-", "--", "-.", ":")
_COLOURS = (BLUE, ORANGE, GREEN, PURPLE)


def law_of(name: str) -> AdditiveLaw:
    """Return a published additive law."""
    law = PUBLISHED[name]
    if not isinstance(law, AdditiveLaw):
        raise ValueError(f"law={name!r} has no closed form; take one of the band")
    return law


def crossings(
    law: AdditiveLaw,
    quality: float,
    k: np.ndarray,
    tau: float,
    unique: float,
    g: float,
) -> tuple[Crossing, np.ndarray]:
    """Tokens with which each size crosses, repeated where fresh ones run out.

    Parameters
    ----------
    law : AdditiveLaw
        The law, [-]
    quality : float
        Compute-optimal size of the threshold, [parameter]
    k : numpy.ndarray
        Sizes over that size, [-]
    tau : float
        Tokens served over compute-optimal training tokens, [-]
    unique : float
        Unique tokens over compute-optimal training tokens, [-]
    g : float
        What an e-fold of size is worth beyond the loss, [nats/token]

    Returns
    -------
    tuple
        The crossing with NaN where none exists, and tokens over the compute-optimal
        ones if all were fresh, [-]
    """
    best = optimal_for_params(law, quality)
    assert best.L is not None  # the law knows a loss
    sizes, target = quality * k, best.L + g * np.log(k)
    fresh = tokens_for_loss(law, sizes, target, infeasible="nan") / best.D
    short = fresh > unique  # false where no tokens suffice, fresh or not
    used = fresh
    if np.any(short):
        worn = MUENNIGHOFF_2023_REPEATED.with_(base=law)
        again = tokens_with_repeats(worn, sizes, target, unique * best.D) / best.D
        used = np.where(short, again, fresh)
    cost = Crossing(
        size_factor=k, token_factor=used, demand_factor=np.full(k.shape, tau)
    )
    return cost, fresh


# a move of one control asks for both twice, for the picture and for the readout
@lru_cache(maxsize=64)
def crossing_at(
    law: str, quality: float, k: float, tau: float, unique: float, g: float
) -> tuple[Crossing, np.ndarray]:
    """Return :func:`crossings` of one size, kept for the next call."""
    return crossings(law_of(law), quality, np.array([k]), tau, unique, g)


@lru_cache(maxsize=64)
def least_bill(law: str, quality: float, tau: float, g: float) -> Crossing:
    """Return the size of the least lifetime bill, all text fresh, kept for later."""
    best = optimal_for_params(law_of(law), quality)
    assert best.L is not None  # the law knows a loss
    return size_beyond_loss(law_of(law), best.L, g, tau * best.D)


def _kept(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    found = np.isfinite(y)
    return x[found], y[found]


def series_crossing(
    quality: float, k: float, tau: float, unique: float, g: float, law: str
) -> Series:
    """Curves of the explorer on crossing a threshold, relative to the optimum.

    Parameters
    ----------
    quality : float
        Compute-optimal size of the threshold, [parameter]
    k : float
        Your size over it, [-]
    tau : float
        Tokens served over compute-optimal training tokens, [-]
    unique : float
        Unique tokens over compute-optimal training tokens, [-]
    g : float
        What an e-fold of size is worth beyond the loss, [nats/token]
    law : str
        Key of a law with a closed form, [-]

    Returns
    -------
    dict
        Tokens and lifetime cost against size, [-]
    """
    chosen = law_of(law)
    sizes = np.geomspace(*K_RANGE, 61)
    curve, fresh = crossings(chosen, quality, sizes, tau, unique, g)
    repeated = np.where(fresh <= unique, np.nan, curve.token_factor)
    plain = Crossing(
        size_factor=sizes, token_factor=fresh, demand_factor=curve.demand_factor
    )
    mine, _ = crossing_at(law, quality, k, tau, unique, g)
    bill = (1.0 + float(least_bill(law, quality, tau, g).lifetime)) * (3.0 + tau)
    isocost = (bill / sizes - tau) / 3.0
    worn = 100.0 * np.where(fresh <= unique, np.nan, curve.lifetime)
    return {
        "isoloss": _kept(sizes, fresh),
        "repeats": _kept(sizes, repeated),
        "isocost": _kept(sizes, np.where(isocost > 0.0, isocost, np.nan)),
        "data-limit": (np.array(K_RANGE), np.array([unique, unique])),
        "point": _kept(np.array([k]), mine.token_factor),
        "cost": _kept(sizes, 100.0 * plain.lifetime),
        "cost-repeats": _kept(sizes, worn),
        "point-cost": _kept(np.array([k]), 100.0 * mine.lifetime),
    }


def _size_axis(ax: "Axes") -> None:
    ax.set_xscale("log")
    ax.set_xlim(*K_RANGE)
    ax.minorticks_off()
    ticks = [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0]
    ax.set_xticks(ticks, [f"{t:g}" for t in ticks])
    ax.set_xlabel("size over compute-optimal size, k")


def draw_crossing(ax: "Axes", series: Series) -> None:
    """Draw what crosses: tokens against size."""
    ax.plot(*series["isoloss"], color=BLUE, gid="isoloss", label="crosses, all fresh")
    ax.plot(*series["repeats"], "--", color=GREEN, gid="repeats", label="with repeats")
    ax.plot(*series["isocost"], "-.", lw=1.2, color=GREY, gid="isocost",
            label="least lifetime bill")  # fmt: skip
    ax.plot(*series["data-limit"], ":", color=PURPLE, gid="data-limit",
            label="unique tokens")  # fmt: skip
    ax.plot(*series["point"], "D", color=ORANGE, ms=7, gid="point", label="you")
    log_axis(ax, "y", *U_RANGE, "")
    _size_axis(ax)
    ax.set_ylabel("tokens over compute-optimal tokens")
    ax.legend(loc="upper right")


def draw_costs(ax: "Axes", series: Series) -> None:
    """Draw the lifetime bill of each size that crosses."""
    ax.axhline(0.0, color=GREY, lw=0.8)
    ax.plot(*series["cost"], color=BLUE, gid="cost")
    ax.plot(*series["cost-repeats"], "--", color=GREEN, gid="cost-repeats")
    ax.plot(*series["point-cost"], "D", color=ORANGE, ms=7, gid="point-cost")
    ax.set_ylim(-60.0, 200.0)
    _size_axis(ax)
    ax.set_ylabel("extra lifetime compute [%]")


def plot_crossing(quality: float = 10e9) -> Drawing:
    """Draw the models that reach one quality, for every set of the band."""
    sizes = np.geomspace(3e8, 3e11, 241)
    curves = []
    for law in BAND:
        loss = optimal_for_params(law, quality).L
        assert loss is not None  # the law knows a loss
        curves.append(tokens_for_loss(law, sizes, loss, infeasible="nan"))
    ends = np.where(np.isnan(curves), np.inf, curves)
    low, high = ends.min(axis=0), np.minimum(ends.max(axis=0), 1e15)
    seen = np.isfinite(low)
    first, best = BAND[0], optimal_for_params(BAND[0], quality)
    assert best.L is not None  # the law knows a loss
    factors = np.array([2.0, 1.0, 0.5, 0.3])
    marks = crossing_cost(first, factors).token_factor * best.D
    five = size_beyond_loss(first, best.L, 0.0, 5.0 * best.D)
    floor = float(smallest_model_for(first, loss=best.L).N)
    bills = {}
    for tau, N, D in (
        (0.0, quality, float(best.D)),
        (5.0, quality * five.size_factor, float(best.D * five.token_factor)),
    ):
        T = tau * best.D
        tokens = (N * (3.0 * D + T) / sizes - T) / 3.0
        bills[tau] = _kept(sizes, np.where(tokens > 0.0, tokens, np.nan))
    series: Series = {
        "band": (np.r_[sizes[seen], sizes[seen][::-1]],
                 np.r_[low[seen], high[seen][::-1]]),
        "isoloss": _kept(sizes, curves[0]),
        "points": (factors * quality, marks),
        "training": bills[0.0],
        "lifetime": bills[5.0],
        "data": (np.array([3e8, 3e11]), np.full(2, 0.5 * best.D)),
        "floor": (np.full(2, floor), np.array([1e10, 1e15])),
    }  # fmt: skip

    def draw(ax: "Axes", shown: Series) -> None:
        ax.fill(*shown["band"], color=BLUE, alpha=0.18, lw=0, label="four sets")
        ax.plot(*shown["isoloss"], color=BLUE, label=first.label)
        ax.plot(*shown["training"], "--", lw=1.2, color=GREY,
                label="equal training bill")  # fmt: skip
        ax.plot(*shown["lifetime"], "-.", lw=1.2, color=GREEN,
                label="equal lifetime bill, τ = 5")  # fmt: skip
        ax.plot(*shown["floor"], ":", color=ORANGE, label="floor of the size")
        ax.plot(*shown["data"], ":", color=PURPLE, label="half of the tokens")
        ax.plot(*shown["points"], "D", color=ORANGE, ms=6)
        for x, y, name in zip(
            *shown["points"], ("20B", "10B", "5B", "3B"), strict=True
        ):
            ax.annotate(name, (x, y), xytext=(6, 4), textcoords="offset points",
                        fontsize=8.5)  # fmt: skip
        log_axis(ax, "x", 3e8, 3e11, "parameter")
        log_axis(ax, "y", 1e10, 1e15, "token")
        ax.set_xlabel("parameters N")
        ax.set_ylabel("training tokens D")
        ax.legend(loc="upper right")

    return draw_on_figure(draw, series, height=4.2)


def plot_demand() -> Drawing:
    """Draw the lifetime bill of three other sizes against demand, over the band."""
    tau = np.linspace(0.0, 6.0, 61)
    series: Series = {}
    names = {2.0: "20B", 0.5: "5B", 1.0 / 3.0: "3.3B"}
    for k, name in names.items():
        costs = np.array([100.0 * crossing_cost(x, k, tau).lifetime for x in BAND])
        low, high = costs.min(axis=0), costs.max(axis=0)
        series[f"{name}-band"] = (np.r_[tau, tau[::-1]], np.r_[low, high[::-1]])
        series[name] = (tau, costs[0])

    def draw(ax: "Axes", shown: Series) -> None:
        for name, colour, dash in zip(names.values(), _COLOURS, _DASHES, strict=False):
            ax.fill(*shown[f"{name}-band"], color=colour, alpha=0.18, lw=0)
            ax.plot(*shown[name], dash, color=colour, label=name)
        ax.axhline(0.0, color=GREY, lw=1)
        ax.annotate("10B", (5.75, 2), fontsize=8.5)
        ax.set_xlim(0.0, 6.0)
        ax.set_ylim(-35.0, 125.0)
        ax.set_xlabel("demand τ = T over compute-optimal tokens")
        ax.set_ylabel("extra lifetime compute [%]")
        ax.legend(loc="upper right")

    return draw_on_figure(draw, series, height=3.5)


def compute_for_accuracy(suite: TwoStepLaw, accuracy: np.ndarray) -> np.ndarray:
    """Compute for accuracies, without bound beyond what the suite can reach, [FLOP]."""
    out = np.full(accuracy.shape, np.inf)
    assert isinstance(suite.law, AdditiveLaw)
    reach = accuracy < float(suite.link.accuracy(suite.law.E))
    if np.any(reach):
        out[reach] = suite.optimal(accuracy[reach]).C
    return out


def series_price(suite: str, accuracy: float, error: float) -> Series:
    """Compute against accuracy, and the range that an error of the score leaves.

    Parameters
    ----------
    suite : str
        Key of a two-step law, [-]
    accuracy : float
        Target, [-]
    error : float
        Error of the score, as a share, [-]

    Returns
    -------
    dict
        ``cost``, ``band``, ``range`` and ``point``: accuracy [-] and compute [FLOP]
    """
    chosen = SUITES[suite]
    grid = np.linspace(*ACCURACIES, 81)
    cost, low, high, here = (
        np.minimum(compute_for_accuracy(chosen, np.atleast_1d(x)), COMPUTE_TOP)
        for x in (
            grid, grid - error, grid + error,
            accuracy + error * np.array([-1.0, 0.0, 1.0]),
        )
    )  # fmt: skip
    return {
        "band": (np.r_[grid, grid[::-1]], np.r_[low, high[::-1]]),
        "cost": (grid, cost),
        "range": (np.full(2, accuracy), here[[0, 2]]),
        "point": (np.array([accuracy]), here[1:2]),
    }


def _price_axes(ax: "Axes") -> None:
    ax.set_xlim(*ACCURACIES)
    log_axis(ax, "y", 1e17, COMPUTE_TOP, "FLOP", every=2)
    ax.set_xlabel("mean accuracy on 17 tasks")
    ax.set_ylabel("least training compute [FLOP]")


def draw_price(ax: "Axes", series: Series) -> None:
    """Draw the least compute of each accuracy with the range of an error."""
    ax.fill(*series["band"], color=BLUE, alpha=0.2, lw=0, gid="band",
            label="error of the score")  # fmt: skip
    ax.plot(*series["cost"], color=BLUE, gid="cost", label="least compute")
    ax.plot(*series["range"], "-", color=ORANGE, lw=2, gid="range")
    ax.plot(*series["point"], "D", color=ORANGE, ms=7, gid="point", label="target")
    _price_axes(ax)
    ax.legend(loc="upper left")


def plot_accuracy_price() -> Drawing:
    """Draw the least compute of an accuracy, give or take a point, for three suites."""
    grid = np.linspace(*ACCURACIES, 161)
    series: Series = {}
    for name, suite in SUITES.items():
        low, mid, high = (
            np.minimum(compute_for_accuracy(suite, grid + d), COMPUTE_TOP)
            for d in (-0.01, 0.0, 0.01)
        )
        series[f"{name}-band"] = (np.r_[grid, grid[::-1]], np.r_[low, high[::-1]])
        series[name] = (grid, mid)
    labels = {"redpajama": "RedPajama", "c4": "C4", "refinedweb": "RefinedWeb"}

    def draw(ax: "Axes", shown: Series) -> None:
        for name, colour, dash in zip(SUITES, _COLOURS, _DASHES, strict=False):
            ax.fill(*shown[f"{name}-band"], color=colour, alpha=0.18, lw=0)
            ax.plot(*shown[name], dash, color=colour, label=labels[name])
        _price_axes(ax)
        ax.legend(loc="upper left", title="trained on")

    return draw_on_figure(draw, series)
