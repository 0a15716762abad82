"""Explorer: half the model, twice the tokens?"""

import math

from chinchilla_lab.allocation import compute_optimal, least_size_factor, overhead
from chinchilla_lab.explorers.common import budget, law_choice, quantity
from chinchilla_lab.explorers.core import Explorer, LogSlider, Panel, Reading
from chinchilla_lab.figures.isoflop import loss_law
from chinchilla_lab.figures.tradeoff import draw_overhead, draw_tokens, series_tradeoff

__all__ = ["EXPLORER"]


def _readout(C: float, law: str, k: float) -> tuple[Reading, ...]:
    chosen = loss_law(law)
    best = compute_optimal(chosen, C)
    mine = overhead(chosen, k, infeasible="nan")
    factor, extra = float(mine.token_factor), float(mine.compute)
    wall = least_size_factor(chosen)
    floor = Reading(label="least feasible size factor", text=f"{wall:.4f}", value=wall)
    size = quantity("size", float(best.N) * k, "parameter")
    if math.isnan(factor):
        return (
            size,
            Reading(label="tokens for the same loss", text="unreachable"),
            Reading(label="extra training compute", text="unreachable"),
            floor,
        )
    return (
        size,
        quantity("tokens for the same loss", float(best.D) * factor, "token"),
        Reading(label="token factor", text=f"{factor:.3g}", value=factor),
        Reading(label="extra training compute", text=f"{extra:+.1%}", value=extra),
        floor,
    )


EXPLORER = Explorer(
    name="tradeoff",
    title="Half the model, twice the tokens?",
    controls=(
        LogSlider(
            name="k", low=0.05, high=10.0, value=0.5, label="size factor k", steps=120
        ),
        budget(),
        law_choice(),
    ),
    series=series_tradeoff,
    panels=(
        Panel(
            draw=draw_tokens,
            title="Tokens that buy the same loss",
            alt="A curve of equal loss: tokens needed fall with size and rise without "
            "bound as the size nears a wall below which no data suffice.",
        ),
        Panel(
            draw=draw_overhead,
            title="What the other size costs",
            alt="Extra training compute against size: zero at the optimum, rising "
            "slowly for larger models and steeply for smaller ones.",
        ),
    ),
    readout=_readout,
)
