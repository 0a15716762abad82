"""Explorer: how far from its peak does an accelerator write answers?"""

from chinchilla_lab.checks import InfeasibleError
from chinchilla_lab.explorers.common import quantity
from chinchilla_lab.explorers.core import (
    Choice,
    Explorer,
    LogSlider,
    Panel,
    Reading,
    Slider,
)
from chinchilla_lab.figures.serving import (
    draw_decode_mfu,
    draw_decode_rate,
    on_accelerators,
    series_decode,
    served,
)
from chinchilla_lab.figures.style import Series
from chinchilla_lab.inference import (
    MEASURED_SLOWDOWN,
    critical_batch,
    decode_step,
    largest_batch,
)

__all__ = ["EXPLORER"]

_MODELS = {
    "llama-2-7b": "Llama 2 7B",
    "llama-3-8b": "Llama 3 8B",
    "llama-3-70b": "Llama 3 70B",
    "mixtral-8x7b": "Mixtral 8x7B",
}
_WEIGHTS = {"2": "16 bits", "1": "8 bits", "0.5": "4 bits"}


def _series(model: str, weights: str, n: float, batch: float, context: float) -> Series:
    return series_decode(
        served(model, float(weights)), on_accelerators(n), batch, context
    )


def _readout(
    model: str, weights: str, n: float, batch: float, context: float
) -> tuple[Reading, ...]:
    mine, hardware = served(model, float(weights)), on_accelerators(n)
    step = decode_step(mine, hardware, batch, context)
    rate, mfu = float(step.tokens_per_second), float(step.mfu)
    fast, slow = MEASURED_SLOWDOWN
    try:
        room = float(largest_batch(mine, hardware, context))
        fits = f"{room:,.0f} sequences"
    except InfeasibleError:
        room, fits = 0.0, "not even the weights"
    balance = critical_batch(mine, hardware)
    milli = 1e3 * float(step.step_time)
    return (
        Reading(label="step, at least", text=f"{milli:.3g} ms", value=milli),
        Reading(label="tokens per second, at most", text=f"{rate:,.0f}", value=rate),
        Reading(
            label="as measured elsewhere",
            text=f"{rate / slow:,.0f} to {rate / fast:,.0f} tokens/s",
            value=rate / slow,
        ),
        Reading(
            label="decode utilisation, at most", text=f"{100 * mfu:.2f} %", value=mfu
        ),
        Reading(label="what takes longest", text=str(step.bound)),
        Reading(
            label="critical batch", text=f"{balance:,.0f} sequences", value=balance
        ),
        Reading(label="memory holds", text=fits, value=room),
        quantity("cache of one token", mine.kv_bytes_per_token, "byte"),
    )


EXPLORER = Explorer(
    name="decode",
    title="How far from its peak does an accelerator write?",
    controls=(
        Choice(
            name="model",
            options=_MODELS,
            value="llama-3-8b",
            label="model",
        ),
        Choice(name="weights", options=_WEIGHTS, value="2", label="stored weights"),
        Slider(name="n", low=1, high=16, value=1, label="accelerators (H100)"),
        LogSlider(
            name="batch", low=1, high=4096, value=1, steps=96,
            label="sequences decoded together", unit="count",
        ),
        LogSlider(
            name="context", low=16, high=131072, value=1024, steps=104,
            label="tokens of context each", unit="count",
        ),
    ),
    series=_series,
    panels=(
        Panel(
            draw=draw_decode_rate,
            title="An upper bound on speed",
            alt="Tokens a second rise with the batch and flatten where reading the "
            "cache takes over; a band below shows what is measured elsewhere.",
        ),
        Panel(
            draw=draw_decode_mfu,
            title="And on utilisation",
            alt="Utilisation of the peak against batch: a third of a percent for one "
            "sequence, rising with the batch until the cache bends it flat.",
        ),
    ),
    readout=_readout,
)  # fmt: skip
