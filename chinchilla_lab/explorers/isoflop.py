"""Explorer: how sharp is the optimum?"""

from chinchilla_lab.allocation import compute_optimal, isoflop, waste
from chinchilla_lab.explorers.common import budget, fit_note, law_choice, quantity
from chinchilla_lab.explorers.core import Explorer, LogSlider, Panel, Reading
from chinchilla_lab.figures.isoflop import (
    draw_useful,
    draw_valley,
    loss_law,
    series_isoflop,
)
from chinchilla_lab.units import text

__all__ = ["EXPLORER"]


def _readout(C: float, law: str, k: float) -> tuple[Reading, ...]:
    chosen = loss_law(law)
    best = compute_optimal(chosen, C)
    N = float(best.N) * k
    D, L = isoflop(chosen, C, N)
    lost = float(waste(chosen, k))
    needed = C / (1.0 + lost)
    gap = float(L) - float(best.L if best.L is not None else L)
    return (
        quantity("your model", N, "parameter"),
        quantity("its data", float(D), "token"),
        quantity("tokens per parameter", float(D) / N, ""),
        Reading(label="loss", text=f"{float(L):.4f} nats/token", value=float(L)),
        Reading(label="above the least loss", text=f"{gap:.4f} nats/token", value=gap),
        Reading(label="wasted compute", text=f"{abs(100 * lost):.1f} %", value=lost),
        Reading(
            label="the optimum would need", text=text(needed, "FLOP"), value=needed
        ),
        fit_note(chosen, N, float(D), C),
    )


EXPLORER = Explorer(
    name="isoflop",
    title="How sharp is the optimum?",
    controls=(
        budget(),
        law_choice(),
        LogSlider(
            name="k", low=0.1, high=10.0, value=1.0, label="size factor k", steps=100
        ),
    ),
    series=series_isoflop,
    panels=(
        Panel(
            draw=draw_valley,
            title="Loss of every size on the same budget",
            alt="A U-shaped curve of loss against model size with its lowest point "
            "marked, and a dashed line through the lowest points of all budgets.",
        ),
        Panel(
            draw=draw_useful,
            title="The same dome at every budget",
            alt="A dome: the useful share of the budget is 100 percent at the optimal "
            "size and stays high for a factor of two to either side.",
        ),
    ),
    readout=_readout,
)
