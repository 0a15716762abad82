"""Explorer: does the cliff lie in the model or in the metric?"""

import numpy as np

from chinchilla_lab.explorers.core import Choice, Explorer, LogSlider, Panel, Reading
from chinchilla_lab.figures.metric import (
    HALF,
    draw_by_compute,
    draw_by_loss,
    draw_on_log_scale,
    length_of,
    series_metric,
)
from chinchilla_lab.thresholds import (
    compute_for_exact_match,
    exact_match_width,
    loss_for_exact_match,
    transition_decades,
)

__all__ = ["EXPLORER"]


def _readout(metric: str, K: float, gamma: float) -> tuple[Reading, ...]:
    n = length_of(metric, K)
    places = np.log10(compute_for_exact_match([0.1, 0.5, 0.9], n, gamma, HALF))
    tenfold = np.log10(compute_for_exact_match(0.5, [n, 10 * n], gamma, HALF))
    half, span = float(loss_for_exact_match(0.5, n)), float(exact_match_width(n))
    width = float(transition_decades(gamma))
    shift = float(tenfold[1] - tenfold[0])
    return (
        Reading(label="token loss at 50 %", text=f"{half:.4f} nats/token", value=half),
        Reading(
            label="10 to 90 %, in token loss",
            text=f"{span:.3f} nats/token",
            value=span,
        ),
        Reading(
            label="10 to 90 %, in compute", text=f"{width:.1f} decades", value=width
        ),
        Reading(
            label="10, 50, 90 % at compute",
            text=", ".join(f"10^{x:.1f}" for x in places) + " of one token's 50 %",
            value=float(places[1]),
        ),
        Reading(
            label="ten times the length moves it by",
            text=f"{shift:.1f} decades",
            value=shift,
        ),
    )


EXPLORER = Explorer(
    name="metric",
    title="Is the cliff in the model or in the metric?",
    controls=(
        Choice(
            name="metric",
            options={
                "exact": "whole answer right (exact match)",
                "token": "share of tokens right",
            },
            value="exact",
            label="metric",
        ),
        LogSlider(name="K", low=1, high=300, value=10, label="tokens in the answer K",
                  unit="count", steps=60),
        LogSlider(name="gamma", low=0.05, high=0.5, value=0.178, steps=60,
                  label="exponent γ of the token loss in compute"),
    ),
    series=series_metric,
    panels=(
        Panel(
            draw=draw_by_loss,
            title="Against the token loss",
            alt="Score against token loss: gentle for one token, a cliff close to zero "
            "loss for long answers.",
        ),
        Panel(
            draw=draw_by_compute,
            title="Against compute",
            alt="Two S-shaped curves of the same shape, the one for the whole answer "
            "displaced to more compute.",
        ),
        Panel(
            draw=draw_on_log_scale,
            title="On logarithmic scales",
            alt="The score climbs through small values long before it is seen, while "
            "the token loss falls along a straight line.",
        ),
    ),
    readout=_readout,
)  # fmt: skip
