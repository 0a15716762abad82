"""Explorer: how long do the stages of a pipeline wait?"""

from chinchilla_lab.cluster import bubble_fraction, interleaving_factor
from chinchilla_lab.explorers.common import without_effect
from chinchilla_lab.explorers.core import Choice, Explorer, Panel, Reading, Slider
from chinchilla_lab.figures.cluster_steps import (
    draw_schedule,
    drawn_passes,
    series_schedule,
)
from chinchilla_lab.figures.style import Series

__all__ = ["EXPLORER"]


def _cut(p: float, ratio: float, v: float, order: str) -> tuple[int, int, int]:
    """Stages, micro-batches and the chunks that the order of passes can use."""
    return int(p), int(p * ratio), int(v) if p > 1 and order == "1f1b" else 1


def _series(p: float, ratio: float, v: float, order: str) -> Series:
    return series_schedule(*_cut(p, ratio, v, order), order)


def _readout(p: float, ratio: float, v: float, order: str) -> tuple[Reading, ...]:
    stages, m, chunks = _cut(p, ratio, v, order)
    idle = bubble_fraction(stages, m, chunks, order)
    third = bubble_fraction(stages, m, schedule="zb-1p")
    held = stages * interleaving_factor(stages, chunks) if order == "1f1b" else m
    why = None
    if v > chunks:
        why = "chunks, at one stage" if p == 1 else "chunks: only 1F1B is interleaved"
    drawn = "every pass"
    if not drawn_passes(stages, m, chunks):
        drawn = "sums of a stage: single passes would be too small"
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
        Reading(label="drawn", text=drawn),
        *without_effect(v=why),
    )


EXPLORER = Explorer(
    name="pipeline_schedule",
    title="How long do stages wait?",
    controls=(
        Slider(name="p", low=1, high=64, value=4, label="pipeline stages p"),
        Slider(
            name="ratio", low=1, high=8, value=2,
            label="micro-batches per stage, m / p",
        ),
        Slider(name="v", low=1, high=8, value=1, label="chunks of a stage v"),
        Choice(
            name="order",
            options={
                "1f1b": "1F1B, interleaved if v > 1",
                "gpipe": "all forward, then all backward",
            },
            value="1f1b", label="order of the passes",
        ),
    ),
    series=_series,
    panels=(
        Panel(
            draw=draw_schedule,
            title="Who works when",
            alt="One row a stage: forward and backward passes as boxes, idle time "
            "dotted, in a triangle at the beginning and at the end of the step.",
            width=4.1,
            height=3.4,
        ),
    ),
    readout=_readout,
)  # fmt: skip
