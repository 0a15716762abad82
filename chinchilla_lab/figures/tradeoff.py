"""Other sizes at the loss of the optimum: tokens and compute they need."""

from typing import TYPE_CHECKING

import numpy as np

from chinchilla_lab.allocation.price import least_size_factor, overhead
from chinchilla_lab.figures.isoflop import loss_law
from chinchilla_lab.figures.style import BLUE, GREY, ORANGE, Series, log_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_overhead", "draw_tokens", "series_tradeoff"]

K_RANGE = (0.05, 10.0)


def series_tradeoff(C: float, law: str, k: float) -> Series:
    """Tokens and compute of a size factor at equal loss.

    Parameters
    ----------
    C : float
        Training compute of the optimum; only the readout depends on it, [FLOP]
    law : str
        Key of a law with a loss, [-]
    k : float
        Size over the optimal one, [-]

    Returns
    -------
    dict
        ``tokens`` (k, k_D), ``overhead`` (k, percent), your points and the wall of the
        least feasible size, [-]
    """
    chosen = loss_law(law)
    wall = least_size_factor(chosen)
    factors = np.geomspace(max(wall * 1.0005, K_RANGE[0]), K_RANGE[1], 161)
    curve = overhead(chosen, factors, infeasible="nan")
    mine = overhead(chosen, k, infeasible="nan")
    return {
        "tokens": (factors, np.asarray(curve.token_factor)),
        "yours-tokens": (np.array([k]), np.array([mine.token_factor])),
        "wall": (np.array([wall, wall]), np.array([1e-3, 1e6])),
        "overhead": (factors, 100.0 * np.asarray(curve.compute)),
        "yours-overhead": (np.array([k]), np.array([100.0 * float(mine.compute)])),
        "wall-overhead": (np.array([wall, wall]), np.array([-1e3, 1e6])),
    }


def _size_axis(ax: "Axes") -> None:
    ax.set_xscale("log")
    ax.set_xlim(*K_RANGE)
    ax.minorticks_off()
    ticks = [0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0]
    ax.set_xticks(ticks, [f"{t:g}" for t in ticks])
    ax.set_xlabel("size over optimal size, k")


def draw_tokens(ax: "Axes", series: Series) -> None:
    """Draw the token factor at equal loss."""
    ax.plot(*series["wall"], ":", color=GREY, gid="wall", label="no data suffice")
    ax.plot(*series["tokens"], color=BLUE, gid="tokens", label="same loss")
    ax.plot(
        *series["yours-tokens"],
        "D",
        color=ORANGE,
        ms=7,
        gid="yours-tokens",
        label="you",
    )
    log_axis(ax, "y", 0.1, 1e3, "")
    _size_axis(ax)
    ax.set_ylabel("tokens over optimal tokens")
    ax.legend(loc="upper right")


def draw_overhead(ax: "Axes", series: Series) -> None:
    """Draw the extra compute at equal loss."""
    ax.plot(*series["wall-overhead"], ":", color=GREY, gid="wall-overhead")
    ax.plot(*series["overhead"], color=BLUE, gid="overhead")
    ax.plot(*series["yours-overhead"], "D", color=ORANGE, ms=7, gid="yours-overhead")
    ax.set_ylim(-10.0, 300.0)
    _size_axis(ax)
    ax.set_ylabel("extra training compute [%]")
