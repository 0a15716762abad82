"""Explorer: what does one point of accuracy cost, and what is an error worth?"""

import numpy as np

from chinchilla_lab.checks import InfeasibleError
from chinchilla_lab.explorers.common import quantity
from chinchilla_lab.explorers.core import Choice, Explorer, Panel, Reading, Slider
from chinchilla_lab.figures.thresholds import (
    compute_for_accuracy,
    draw_price,
    series_price,
)
from chinchilla_lab.thresholds import SUITES, price_of_accuracy
from chinchilla_lab.units import text

__all__ = ["EXPLORER"]


def _readout(suite: str, accuracy: float, error: float) -> tuple[Reading, ...]:
    chosen = SUITES[suite]
    plan = chosen.optimal(accuracy)
    low, high = compute_for_accuracy(
        chosen, np.array([accuracy - error, accuracy + error])
    )
    top = text(high, "FLOP") if np.isfinite(high) else "no compute suffices"
    loss, ratio = float(plan.L), float(plan.D / plan.N)  # type: ignore[arg-type]
    try:
        point = float(price_of_accuracy(chosen, accuracy))
        one = f"×{point:.2f}"
    except InfeasibleError:
        point, one = np.inf, "out of reach: above the floor of the law"
    return (
        Reading(label="loss", text=f"{loss:.3f} nats/token", value=loss),
        quantity("parameters", float(plan.N), "parameter"),
        quantity("tokens", float(plan.D), "token"),
        quantity("tokens per parameter", ratio, ""),
        quantity("least training compute", float(plan.C), "FLOP"),
        Reading(
            label="with the error of the score",
            text=f"{text(low, 'FLOP')} to {top}",
            value=float(high / low),
        ),
        Reading(label="one point more costs", text=one, value=point),
        Reading(
            label="caution",
            text="each law rests on five small runs, and its optimum lies outside them",
        ),
    )


EXPLORER = Explorer(
    name="price_of_a_point",
    title="What is a point worth?",
    controls=(
        Choice(
            name="suite",
            options={
                "redpajama": "17 tasks, trained on RedPajama",
                "c4": "17 tasks, trained on C4",
                "refinedweb": "17 tasks, trained on RefinedWeb",
            },
            value="redpajama",
            label="suite",
        ),
        Slider(name="accuracy", low=0.3, high=0.7, value=0.5, step=0.01,
               label="target, mean accuracy"),
        Slider(name="error", low=0.0, high=0.05, value=0.01, step=0.005,
               label="error of the score"),
    ),
    series=series_price,
    panels=(
        Panel(
            draw=draw_price,
            title="Least compute of an accuracy",
            alt="Compute on a logarithmic axis against accuracy: a line that steepens "
            "towards the best accuracy the law can reach, in a band that widens.",
            width=4.2,
            height=3.4,
        ),
    ),
    readout=_readout,
)  # fmt: skip
