"""Explorer: where does the time of a step go as the cluster grows?"""

from chinchilla_lab.cluster import Ranking
from chinchilla_lab.explorers.core import (
    Choice,
    Explorer,
    LogSlider,
    Panel,
    Reading,
    Slider,
)
from chinchilla_lab.figures.cluster_steps import (
    COUNTS,
    best_layouts,
    draw_breakdown,
    gpt_like,
    grouped,
    series_breakdown,
)
from chinchilla_lab.figures.style import Series
from chinchilla_lab.units import text

__all__ = ["BATCHES", "EXPLORER"]

BATCHES = {
    str(b): text(4096.0 * b, "token") + " tokens"
    for b in (128, 256, 512, 1024, 2048, 4096, 8192, 16384)
}
"""Sequences of 4096 tokens, and the tokens that they are."""


def _series(
    n_layers: float, d_model: float, batch: str, network: float, stack: str, n: str
) -> Series:
    return series_breakdown(n_layers, d_model, int(batch), network, stack, int(n))


def _readout(
    n_layers: float, d_model: float, batch: str, network: float, stack: str, n: str
) -> tuple[Reading, ...]:
    shape = gpt_like(n_layers, d_model)
    size = Reading(
        label="model",
        text=text(float(shape.params().total), "parameter") + " parameters",
        value=float(shape.params().total),
    )
    found = best_layouts(
        n_layers, d_model, int(n), int(batch), network=network, stack=stack, quick=True
    )
    if not isinstance(found, Ranking):
        return (size, Reading(label="answer", text=found))
    step = found.best
    each = 4096.0 * int(batch) / int(n)
    shares = [
        Reading(label=name, text=f"{100 * t / step.seconds:.1f} %", value=t)
        for name, t in grouped(step).items()
    ]
    mfu = step.mfu("causal")
    return (
        size,
        Reading(label="best layout", text=step.layout.label()),
        Reading(label="step", text=f"{step.seconds:.4g} s", value=step.seconds),
        Reading(label="MFU, causal", text=f"{100 * mfu:.1f} %", value=mfu),
        Reading(
            label="tokens per accelerator and step", text=f"{each:,.0f}", value=each
        ),
        *shares,
        Reading(label="constants", text=step.label),
    )


EXPLORER = Explorer(
    name="step_breakdown",
    title="Where does the step go as the cluster grows?",
    controls=(
        Slider(name="n_layers", low=8, high=128, value=48, label="layers", step=4),
        Slider(
            name="d_model", low=1024, high=24576, value=6144, label="width", step=512
        ),
        Choice(name="batch", options=BATCHES, value="256", label="batch"),
        LogSlider(
            name="network", low=1, high=100, value=50, steps=40,
            label="network of an H100, one way", unit="GB/s",
        ),
        Choice(
            name="stack",
            options={
                "megatron-bridge": "calibrated, Megatron family",
                "llm-foundry-h100": "calibrated, LLM Foundry",
                "uncalibrated": "upper bound",
            },
            value="megatron-bridge",
            label="constants",
        ),
        Choice(
            name="n",
            options={str(n): f"{n:,}" for n in COUNTS},
            value="64",
            label="accelerators",
        ),
    ),
    series=_series,
    panels=(
        Panel(
            draw=draw_breakdown,
            title="Share of the step, fixed batch",
            alt="Stacked areas against accelerators: the share of the products falls "
            "from nine tenths to a third, data-parallel traffic and idle stages grow.",
            width=4.1,
            height=3.4,
        ),
    ),
    readout=_readout,
)  # fmt: skip
