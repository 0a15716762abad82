"""Explorer: how long do the stages of a pipeline wait?"""

from chinchilla_lab.cluster import bubble_fraction, interleaving_factor
from chinchilla_lab.explorers.core import Explorer, Panel, Reading, Slider
from chinchilla_lab.figures.cluster_steps import draw_schedule, series_schedule
from chinchilla_lab.figures.style import Series

__all__ = ["EXPLORER"]


def _series(p: float, ratio: float, v: float) -> Series:
    return series_schedule(int(p), int(p * ratio), int(v))


def _readout(p: float, ratio: float, v: float) -> tuple[Reading, ...]:
    stages, m, chunks = int(p), int(p * ratio), int(v)
    idle = bubble_fraction(stages, m, chunks)
    third = bubble_fraction(stages, m, schedule="zb-1p")
    held = stages * interleaving_factor(stages, chunks)
    return (
        Reading(label="micro-batches", text=f"{m}", value=m),
        Reading(label="bubble over ideal", text=f"{idle:.4f}", value=idle),
        Reading(
            label="bubble over step",
            text=f"{100 * idle / (1 + idle):.1f} %",
            value=idle / (1 + idle),
        ),
        Reading(label="micro-batches held by stage 1", text=f"{held:.2f}", value=held),
        Reading(
            label="zero-bubble ZB-1P, over ideal", text=f"{third:.4f}", value=third
        ),
    )


EXPLORER = Explorer(
    name="pipeline_schedule",
    title="How long do stages wait?",
    controls=(
        Slider(name="p", low=2, high=8, value=4, label="pipeline stages p"),
        Slider(
            name="ratio", low=1, high=8, value=2,
            label="micro-batches per stage, m / p",
        ),
        Slider(name="v", low=1, high=4, value=1, label="chunks of a stage v"),
    ),
    series=_series,
    panels=(
        Panel(
            draw=draw_schedule,
            title="Who works when",
            alt="One row a stage: forward and backward passes as boxes, idle time "
            "dotted, in a triangle at the beginning and at the end of the step.",
            width=5.2,
            height=3.2,
        ),
    ),
    readout=_readout,
)  # fmt: skip
