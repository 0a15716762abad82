"""Explorer: is 20 tokens per parameter a constant?"""

import numpy as np

from chinchilla_lab.allocation import compute_optimal, default_interval
from chinchilla_lab.explorers.common import budget, fit_note
from chinchilla_lab.explorers.core import Explorer, Panel, Reading, Toggle
from chinchilla_lab.figures.allocation import (
    NEAR,
    draw_ratio,
    draw_sizes,
    series_allocation,
)
from chinchilla_lab.laws import DEFAULT, PUBLISHED, SPREAD
from chinchilla_lab.units import text

__all__ = ["EXPLORER"]


def _readout(C: float, others: bool, band: bool, dots: bool) -> tuple[Reading, ...]:
    rows = []
    for name in SPREAD if others else NEAR:
        law = PUBLISHED[name]
        plan = compute_optimal(law, C)
        ratio = float(plan.tokens_per_param)
        count = "" if law.N_counts == "total" else " (N non-embedding)"
        shown = (
            f"{text(float(plan.N), 'parameter')} on {text(float(plan.D), 'token')}, "
            f"{text(ratio, '')} per parameter{count}"
        )
        rows.append(Reading(label=law.label, text=shown, value=ratio))
    interval = default_interval(C)
    low, high = (float(x) for x in interval.N)
    few, many = (float(x) for x in interval.tokens_per_param)
    rows.append(
        Reading(
            label="90 % of resamples, Besiroglu data",
            text=f"{text(low, 'parameter')} to {text(high, 'parameter')}, "
            f"{text(few, '')} to {text(many, '')} per parameter",
            value=float(np.log(high / low)),
        )
    )
    here = compute_optimal(DEFAULT, C)
    rows.append(fit_note(DEFAULT, float(here.N), float(here.D), C))
    return tuple(rows)


EXPLORER = Explorer(
    name="allocation",
    title="Where do the published laws put a budget?",
    controls=(
        budget(),
        Toggle(name="others", value=True, label="laws from other data and counts"),
        Toggle(name="band", value=True, label="bootstrap band"),
        Toggle(name="dots", value=True, label="real models"),
    ),
    series=series_allocation,
    panels=(
        Panel(
            draw=draw_sizes,
            title="Optimal size",
            alt="Lines of optimal model size against compute: they meet near 1e19 FLOP "
            "and spread beyond 1e22; real models lie on both sides.",
            height=3.7,
        ),
        Panel(
            draw=draw_ratio,
            title="Tokens per parameter at the optimum",
            alt="The ratio of tokens to parameters against compute: one law rises, one "
            "falls, some are flat near 20; recent models lie far above.",
            height=3.7,
        ),
    ),
    readout=_readout,
)
