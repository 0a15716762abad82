"""Explorer: who crosses a threshold, and for how much?"""

import numpy as np

from chinchilla_lab.allocation import optimal_for_params
from chinchilla_lab.explorers.common import law_choice, quantity
from chinchilla_lab.explorers.core import Explorer, LogSlider, Panel, Reading, Slider
from chinchilla_lab.figures.thresholds import (
    crossing_at,
    draw_costs,
    draw_crossing,
    law_of,
    least_bill,
    series_crossing,
)
from chinchilla_lab.inference import BAND
from chinchilla_lab.thresholds import smallest_model_for
from chinchilla_lab.units import text

__all__ = ["EXPLORER"]


def _readout(
    quality: float, k: float, tau: float, unique: float, g: float, law: str
) -> tuple[Reading, ...]:
    chosen = law_of(law)
    ten = optimal_for_params(chosen, quality)
    assert ten.L is not None  # the law knows a loss
    mine, fresh = crossing_at(law, quality, k, tau, unique, g)
    u, once = float(mine.token_factor[0]), float(fresh[0])
    floor = float(smallest_model_for(chosen, loss=ten.L).floor)
    best = least_bill(law, quality, tau, g)
    size = quantity("your size", quality * k, "parameter")
    if not np.isfinite(u):
        why = (
            f"no data suffice: the floor is {text(floor, 'parameter')}"
            if not np.isfinite(once)
            else "more passes than ever help: your text is too short"
        )
        head = (
            Reading(label="tokens", text=f"never crosses: {why}"),
            Reading(label="passes over your text", text="no number suffices"),
            Reading(label="training compute", text="unreachable"),
            Reading(label="lifetime compute", text="unreachable"),
        )
    else:
        train, life = float(mine.training[0]), float(mine.lifetime[0])
        passes = u / unique
        how = "one suffices" if passes <= 1.0 else f"{passes:.1f}, repeats discounted"
        head = (
            quantity("tokens", u * float(ten.D), "token"),
            Reading(label="passes over your text", text=how, value=passes),
            Reading(label="training compute", text=f"{train:+.1%}", value=train),
            Reading(label="lifetime compute", text=f"{life:+.1%}", value=life),
        )
    least = float(best.size_factor)
    return (
        size,
        *head,
        Reading(
            label="best size if all text is fresh",
            text=f"k = {least:.2f}, {text(least * quality, 'parameter')}",
            value=least,
        ),
    )


EXPLORER = Explorer(
    name="crossing",
    title="Who crosses, and for how much?",
    controls=(
        LogSlider(
            name="quality", low=1e9, high=1e11, value=1e10, steps=80,
            label="threshold: the quality of a compute-optimal", unit="parameter",
        ),
        LogSlider(name="k", low=0.15, high=4.0, value=0.5, label="your size factor k",
                  steps=120),
        Slider(name="tau", low=0.0, high=100.0, value=0.0, step=0.1,
               label="demand τ, over compute-optimal tokens"),
        LogSlider(name="unique", low=0.1, high=10.0, value=10.0, steps=80,
                  label="unique tokens, over compute-optimal tokens"),
        Slider(name="g", low=0.0, high=0.1, value=0.0, step=0.001,
               label="worth of size beyond the loss g, per e-fold", unit="nats/token"),
        law_choice([law.name for law in BAND]),
    ),
    series=series_crossing,
    panels=(
        Panel(
            draw=draw_crossing,
            title="Every point of the curve crosses",
            alt="Tokens against size at one loss: a curve that rises without bound at "
            "its left end and levels off to the right, with a dashed branch above the "
            "unique tokens.",
            height=3.3,
        ),
        Panel(
            draw=draw_costs,
            title="What it costs over the model's life",
            alt="Extra lifetime compute against size: a valley whose bottom lies at "
            "one without demand and moves to smaller models as demand grows.",
            height=3.3,
        ),
    ),
    readout=_readout,
)  # fmt: skip
