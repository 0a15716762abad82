"""Explorer: are FLOP time?"""

from chinchilla_lab.explorers.common import budget, quantity
from chinchilla_lab.explorers.core import Explorer, LogSlider, Panel, Reading, Slider
from chinchilla_lab.figures.days import draw_days, series_days
from chinchilla_lab.shape import training_time

__all__ = ["EXPLORER"]


def _readout(C: float, n: float, peak: float, mfu: float) -> tuple[Reading, ...]:
    run = training_time(C, n, peak, mfu)
    hours = float(run.accelerator_hours)
    return (
        quantity("time", float(run.seconds), "s"),
        Reading(label="accelerator-hours", text=f"{hours:,.0f}", value=hours),
        quantity("rate of the cluster", n * peak * mfu, "FLOP/s"),
        quantity("rate on the datasheet", n * peak, "FLOP/s"),
    )


EXPLORER = Explorer(
    name="flop_to_days",
    title="An amount divided by a rate: how many days?",
    controls=(
        budget(),
        LogSlider(
            name="n", low=8, high=65536, value=64, label="accelerators", unit="count",
            steps=104,
        ),
        LogSlider(
            name="peak", low=1e14, high=5e15, value=9.89e14,
            label="dense peak of one", unit="FLOP/s", steps=100,
        ),
        Slider(
            name="mfu", low=0.1, high=0.6, value=0.4, step=0.01,
            label="utilisation mfu",
        ),
    ),
    series=series_days,
    panels=(
        Panel(
            draw=draw_days,
            title="Days against accelerators",
            alt="Two falling lines of training days against accelerators: "
            "one at the chosen utilisation, one at the full peak; a diamond marks you.",
            width=4.2,
            height=3.3,
        ),
    ),
    readout=_readout,
)  # fmt: skip
