"""Explorer: does demand alone decide the size?"""

from chinchilla_lab.explorers.common import fit_note, law_choice, quantity
from chinchilla_lab.explorers.core import Explorer, LogSlider, Panel, Reading
from chinchilla_lab.figures.isoflop import loss_law
from chinchilla_lab.figures.lifetime import (
    draw_lifetime_valley,
    draw_saved,
    plan_for,
    series_lifetime_valley,
)
from chinchilla_lab.inference import BAND, lifetime_spread
from chinchilla_lab.units import text

__all__ = ["EXPLORER"]


def _readout(law: str, quality: float, T: float) -> tuple[Reading, ...]:
    plan = plan_for(loss_law(law), quality, T)
    spread = lifetime_spread(T, quality)
    N, D = float(plan.N), float(plan.D)
    tau, k, saved = (
        float(x) for x in (plan.demand_factor, plan.size_factor, plan.saved)
    )
    ends = (text(float(n), "parameter") for n in (spread.N.min(), spread.N.max()))
    shares = f"{100 * spread.saved.min():.1f} % to {100 * spread.saved.max():.1f} %"
    return (
        quantity("size N*", N, "parameter"),
        quantity("training tokens D*", D, "token"),
        Reading(label="relative demand τ", text=f"{tau:.3g}", value=tau),
        Reading(label="size factor k", text=f"{k:.2f}", value=k),
        Reading(label="lifetime compute", text=text(float(plan.total), "FLOP"),
                value=float(plan.total)),
        Reading(label="saved", text=f"{100 * saved:.1f} %", value=saved),
        Reading(label="N*, four coefficient sets", text=" to ".join(ends),
                value=spread.N.max()),
        Reading(label="saved, four coefficient sets", text=shares,
                value=spread.saved.max()),
        fit_note(plan.law, N, D, float(plan.training)),
    )  # fmt: skip


EXPLORER = Explorer(
    name="lifetime",
    title="Does demand alone decide the size?",
    controls=(
        law_choice([law.name for law in BAND]),
        LogSlider(
            name="quality", low=1e8, high=1e12, value=2e10, steps=120,
            label="quality: the loss of a compute-optimal", unit="parameter",
        ),
        LogSlider(
            name="T", low=1e9, high=1e16, value=1.5e12, steps=140,
            label="tokens served T", unit="token",
        ),
    ),
    series=series_lifetime_valley,
    panels=(
        Panel(
            draw=draw_lifetime_valley,
            title="Every size that reaches the loss",
            alt="Serving falls as the model shrinks, training rises without bound near "
            "the least size; their sum has a lowest point, marked by a diamond.",
        ),
        Panel(
            draw=draw_saved,
            title="What the smaller model saves",
            alt="Saved share of the lifetime compute against tokens served: almost "
            "nothing first, then a steep rise inside a wide band of four laws.",
        ),
    ),
    readout=_readout,
)  # fmt: skip
