"""Explorer: what does a smaller model of the same loss cost, and who should pay it?"""

import numpy as np

from chinchilla_lab.allocation import least_size_factor, optimal_for_params, overhead
from chinchilla_lab.explorers.common import law_choice, quantity
from chinchilla_lab.explorers.core import Explorer, LogSlider, Panel, Reading
from chinchilla_lab.figures.isoflop import loss_law
from chinchilla_lab.figures.lifetime import (
    demand_for_size,
    draw_demand_for_size,
    draw_equal_loss,
    series_price_of_small,
)
from chinchilla_lab.inference import BAND
from chinchilla_lab.units import text

__all__ = ["EXPLORER"]


def _span(low: float, high: float) -> str:
    if not np.isfinite(low):
        return "under no set"
    upper = text(high, "token") if np.isfinite(high) else "never"
    return f"{text(low, 'token')} to {upper}"


def _readout(law: str, quality: float, k: float) -> tuple[Reading, ...]:
    chosen = loss_law(law)
    best = optimal_for_params(chosen, quality)
    mine = overhead(chosen, k, infeasible="nan")
    u, extra = float(mine.token_factor), float(mine.compute)
    wall = least_size_factor(chosen)
    rows = [quantity("your size", k * quality, "parameter")]
    if np.isfinite(u):
        rows += [
            Reading(label="token factor u", text=f"{u:.3g}", value=u),
            quantity("its training tokens", u * float(best.D), "token"),
            Reading(label="extra training compute", text=f"{extra:+.1%}", value=extra),
        ]
    else:
        rows.append(Reading(label="token factor u", text="unreachable"))
    if k > 1.0:
        rows.append(Reading(label="demand that pays for it", text="none: k above 1"))
    elif k == 1.0:
        rows.append(Reading(label="demand that pays for it", text="0 tokens", value=0))
    else:
        every = [demand_for_size(each, quality, np.array([k]))[0] for each in BAND]
        T = float(demand_for_size(chosen, quality, np.array([k]))[0])
        if np.isfinite(T):
            tau = T / float(best.D)
            rows += [
                quantity("demand that pays for it", T, "token"),
                Reading(label="relative demand τ", text=f"{tau:.3g}", value=tau),
            ]
        span = _span(min(every), max(every))
        rows.append(Reading(label="demand, four coefficient sets", text=span))
    rows.append(Reading(label="least size factor", text=f"{wall:.3f}", value=wall))
    return tuple(rows)


EXPLORER = Explorer(
    name="small",
    title="The price of small",
    controls=(
        law_choice([law.name for law in BAND]),
        LogSlider(
            name="quality", low=1e8, high=1e12, value=2e10, steps=120,
            label="quality: the loss of a compute-optimal", unit="parameter",
        ),
        LogSlider(
            name="k", low=0.1, high=4.0, value=0.5, label="size factor k", steps=120
        ),
    ),
    series=series_price_of_small,
    panels=(
        Panel(
            draw=draw_equal_loss,
            title="Half the size, twice the tokens?",
            alt="A curve of equal loss lies above the dashed line of equal compute and "
            "rises without bound at a wall; a cross on the line misses the loss.",
        ),
        Panel(
            draw=draw_demand_for_size,
            title="The demand that makes a size right",
            alt="Tokens served against size: from nothing at the compute-optimal size "
            "to without bound at the wall, in a band of four laws.",
        ),
    ),
    readout=_readout,
)  # fmt: skip
