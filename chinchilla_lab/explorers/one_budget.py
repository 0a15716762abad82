"""Explorer: what does a budget decide, and what does it leave open?"""

from chinchilla_lab.allocation import compute_optimal, default_interval
from chinchilla_lab.explorers.common import budget, fit_note, law_choice, quantity
from chinchilla_lab.explorers.core import Explorer, Panel, Reading, Toggle
from chinchilla_lab.figures.budget import draw_budget, draw_rows, series_budget
from chinchilla_lab.laws import PUBLISHED, SPREAD
from chinchilla_lab.units import text

__all__ = ["EXPLORER"]


def _readout(C: float, law: str, spread: bool) -> tuple[Reading, ...]:
    chosen = PUBLISHED[law]
    plan = compute_optimal(chosen, C)
    N, D = float(plan.N), float(plan.D)
    rows = [
        quantity("parameters N", N, "parameter"),
        quantity("tokens D", D, "token"),
        quantity("tokens per parameter", D / N, ""),
    ]
    if plan.L is not None:
        shown = f"{float(plan.L):.3f} nats/token"
        rows.append(Reading(label="loss L", text=shown, value=float(plan.L)))
    if spread:
        low, high = (float(x) for x in default_interval(C).N)
        shown = f"{text(low, 'parameter')} to {text(high, 'parameter')}"
        rows.append(
            Reading(
                label="90 % of resamples, Besiroglu data", text=shown, value=high / low
            )
        )
        sizes = [float(compute_optimal(PUBLISHED[name], C).N) for name in SPREAD]
        shown = f"{text(min(sizes), 'parameter')} to {text(max(sizes), 'parameter')}"
        rows.append(Reading(label="published laws", text=shown, value=max(sizes)))
    rows.append(fit_note(chosen, N, D, C))
    return tuple(rows)


EXPLORER = Explorer(
    name="one_budget",
    title="One budget, many models: which one does a law choose?",
    controls=(
        budget(),
        law_choice(SPREAD),
        Toggle(name="spread", value=True, label="show what else is published"),
    ),
    series=series_budget,
    panels=(
        Panel(
            draw=draw_budget,
            title="Every point of the line costs the same",
            alt="A falling line of all pairs of parameters and tokens that cost the "
            "budget; a diamond marks the pair the law chooses, circles other laws.",
        ),
        Panel(
            draw=draw_rows,
            title="The same question to every law",
            alt="One row for each published law with a marker at its optimal size over "
            "that of the chosen law; a band shows the bootstrap interval.",
        ),
    ),
    readout=_readout,
)
