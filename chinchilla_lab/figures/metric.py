"""One smooth token loss, read through metrics: where the cliff comes from."""

from typing import TYPE_CHECKING

import numpy as np

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
from chinchilla_lab.thresholds import (
    compute_for_exact_match,
    exact_match,
    loss_for_exact_match,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "HALF",
    "draw_by_compute",
    "draw_by_loss",
    "draw_on_log_scale",
    "length_of",
    "plot_cliffs",
    "series_metric",
]

HALF = float(np.log(2.0))
"""Token loss at which one token is right half of the time; its compute is the unit."""

_SHARES = np.r_[np.geomspace(1e-5, 0.01, 40), np.linspace(0.015, 0.995, 120)]
_LOSSES = np.r_[np.geomspace(1e-4, 0.02, 60), np.linspace(0.025, 0.8, 80)]
_MARKS = np.array([0.1, 0.5, 0.9])
_C_RANGE = (1e-4, 1e18)


def length_of(metric: str, K: float) -> float:
    """Return the tokens that must all be right for the metric to count."""
    return K if metric == "exact" else 1.0


def series_metric(metric: str, K: float, gamma: float) -> Series:
    """Scores against token loss and against compute.

    Parameters
    ----------
    metric : str
        ``"exact"`` for the whole answer, ``"token"`` for the share of tokens, [-]
    K : float
        Length of the answer, [token]
    gamma : float
        Exponent of the token loss in compute, [-]

    Returns
    -------
    dict
        Curves and marks at 10, 50 and 90 %; loss [nats/token], compute over the one at
        which a token is right half of the time [-], score [-]
    """
    n = length_of(metric, K)
    by_compute = compute_for_exact_match(_SHARES, n, gamma, HALF)
    one = compute_for_exact_match(_SHARES, 1.0, gamma, HALF)
    marks = compute_for_exact_match(_MARKS, n, gamma, HALF)
    return {
        "accuracy-loss": (_LOSSES, exact_match(_LOSSES, n)),
        "marks-loss": (loss_for_exact_match(_MARKS, n), _MARKS),
        "accuracy": (by_compute, _SHARES),
        "one-token": (one, _SHARES),
        "marks": (marks, _MARKS),
        "accuracy-log": (by_compute, _SHARES),
        "one-token-log": (one, _SHARES),
        "token-loss": (
            compute_for_exact_match(exact_match(_LOSSES, 1.0), 1.0, gamma, HALF),
            _LOSSES,
        ),
    }


def _compute_axis(ax: "Axes") -> None:
    log_axis(ax, "x", *_C_RANGE, "FLOP", every=4)
    ax.set_xlabel("compute, 1 = one token right half the time")


def draw_by_loss(ax: "Axes", series: Series) -> None:
    """Draw the score against the token loss."""
    ax.plot(_LOSSES, exact_match(_LOSSES, 1.0), "--", color=GREY, label="one token")
    ax.plot(*series["accuracy-loss"], color=BLUE, gid="accuracy-loss", label="score")
    ax.plot(*series["marks-loss"], "D", color=ORANGE, ms=6, gid="marks-loss")
    ax.set_xlim(0.0, 0.8)
    ax.set_ylim(0.0, 1.0)
    ax.set_xlabel("token loss [nats/token]")
    ax.set_ylabel("score")
    ax.legend(loc="upper right")


def draw_by_compute(ax: "Axes", series: Series) -> None:
    """Draw the score against compute."""
    ax.plot(*series["one-token"], "--", color=GREY, gid="one-token", label="one token")
    ax.plot(*series["accuracy"], color=BLUE, gid="accuracy", label="score")
    ax.plot(*series["marks"], "D", color=ORANGE, ms=6, gid="marks",
            label="10, 50, 90 %")  # fmt: skip
    _compute_axis(ax)
    ax.set_ylim(0.0, 1.0)
    ax.set_ylabel("score")
    ax.legend(loc="lower right")


def draw_on_log_scale(ax: "Axes", series: Series) -> None:
    """Draw score and token loss against compute, both on logarithmic scales."""
    ax.plot(*series["one-token-log"], "--", color=GREY, gid="one-token-log",
            label="one token")  # fmt: skip
    ax.plot(*series["accuracy-log"], color=BLUE, gid="accuracy-log", label="score")
    ax.plot(*series["token-loss"], "-.", color=GREEN, gid="token-loss",
            label="token loss")  # fmt: skip
    _compute_axis(ax)
    log_axis(ax, "y", 1e-4, 1.0, "")
    ax.set_yticks([1e-4, 1e-3, 1e-2, 0.1, 1], ["0.0001", "0.001", "0.01", "0.1", "1"])
    ax.set_ylabel("score, loss [nats/token]")
    ax.legend(loc="lower right")


def plot_cliffs(against: str, gamma: float) -> Drawing:
    """Draw exact match of four lengths against the token loss or against compute."""
    lengths = (1, 10, 30, 100)
    series: Series = {}
    for K in lengths:
        curves = series_metric("exact", K, gamma)
        name = "accuracy-loss" if against == "loss" else "accuracy"
        series[f"K = {K}"] = curves[name]

    def draw(ax: "Axes", shown: Series) -> None:
        for (name, xy), colour, dash in zip(
            shown.items(),
            (GREY, BLUE, ORANGE, PURPLE),
            ("--", "-", "-.", ":"),
            strict=True,
        ):
            ax.plot(*xy, dash, color=colour, label=name)
        if against == "loss":
            ax.set_xlim(0.0, 0.8)
            ax.set_xlabel("token loss [nats/token]")
        else:
            _compute_axis(ax)
            ax.set_xlabel("compute over that at which one token is right half the time")
        ax.set_ylim(0.0, 1.0)
        ax.set_ylabel("answers right in every token")
        ax.legend(loc="upper right" if against == "loss" else "upper left")

    return draw_on_figure(draw, series, height=3.3)
