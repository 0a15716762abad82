"""Explorer: twice the GPUs, half the time?"""

from chinchilla_lab.cluster.batch import (
    best_batch,
    steps_and_examples,
    tokens_per_accelerator,
)
from chinchilla_lab.explorers.core import (
    Choice,
    Explorer,
    LogSlider,
    Panel,
    Reading,
    Slider,
    Toggle,
)
from chinchilla_lab.figures.cluster_batch import (
    draw_scaling,
    draw_steps_examples,
    series_scaling,
    series_steps_examples,
)
from chinchilla_lab.figures.cluster_memory import SHOWN_SHAPES
from chinchilla_lab.figures.cluster_teams import (
    BATCHES,
    SEQ_LEN,
    SIZES,
    equal_loss,
    fastest_step,
    fixed_and_each,
    plan_tokens,
)
from chinchilla_lab.figures.style import Series
from chinchilla_lab.units import text

__all__ = ["EXPLORER"]

_SHAPES = ("hall", "loft", "llama-3-70b")


def _series(
    shape: str, n: str, B: str, critical: float, band: float, cp: bool
) -> Series:
    batch = int(B)
    return series_steps_examples(
        batch * SEQ_LEN, critical, band
    ) | series_scaling(shape, int(n), batch, cp)  # fmt: skip


def _over_half(shape: str, n: int, batch: int, cp: bool, speed: float) -> Reading:
    label = "speed over half as many"
    half = fastest_step(shape, n // 2, batch, cp)
    if half is None:
        return Reading(label=label, text="half as many cannot run it")
    gain = speed / half.tokens_per_second
    word = "slower" if gain < 1.0 else "faster"
    return Reading(label=label, text=f"× {gain:.2f}, {word}", value=gain)


def _soonest(shape: str, n: int, critical: float, cp: bool) -> Reading:
    label = "soonest for the same loss"
    parts = fixed_and_each(shape, n, cp)
    if parts is None:
        return Reading(label=label, text="no layout for the batches that tell")
    fixed, each = parts
    if fixed == 0.0:
        return Reading(label=label, text="the smaller the batch, the sooner")
    best = float(best_batch(critical, fixed, each))
    shown = f"a batch of {text(best, 'token', 2)} tokens"
    return Reading(label=label, text=shown, value=best)


def _readout(
    shape: str, n: str, B: str, critical: float, band: float, cp: bool
) -> tuple[Reading, ...]:
    size, batch = int(n), int(B)
    tokens = batch * SEQ_LEN
    each = float(tokens_per_accelerator(tokens, size))
    costs = steps_and_examples(tokens, critical)
    step = fastest_step(shape, size, batch, cp)
    first = Reading(label="tokens per accelerator", text=f"{each:,.0f}", value=each)
    last = (
        Reading(label="steps over the least", text=f"× {float(costs.steps):.3g}",
                value=float(costs.steps)),
        Reading(label="examples over the least", text=f"× {float(costs.examples):.3g}",
                value=float(costs.examples)),
        _soonest(shape, size, critical, cp),
    )  # fmt: skip
    if step is None:
        none = "no layout divides and fits"
        return (first, Reading(label="answer", text=none), *last[:-1])
    planned = plan_tokens(shape)
    days = step.days(planned)
    same, *ends = (
        days * float(equal_loss(tokens, c))
        for c in (critical, critical * band, critical / band)
    )
    share = step.mfu("causal")
    return (
        first,
        Reading(label="step", text=text(step.seconds, "s"), value=step.seconds),
        Reading(label="MFU", text=f"{share:.1%}, {step.label}", value=share),
        _over_half(shape, size, batch, cp, step.tokens_per_second),
        Reading(
            label="days for the planned tokens",
            text=f"{days:.3g} for {text(planned, 'token')} tokens",
            value=days,
        ),
        Reading(
            label="days for the same loss",
            text=f"{same:.3g}; {ends[0]:.3g} to {ends[1]:.3g} in the band",
            value=same,
        ),
        *last,
    )


EXPLORER = Explorer(
    name="batch_limit",
    title="Twice the GPUs, half the time?",
    controls=(
        Choice(
            name="shape", options={k: SHOWN_SHAPES[k][0] for k in _SHAPES},
            value="hall", label="model",
        ),
        Choice(
            name="n", options={str(k): f"{k:,}" for k in SIZES}, value="16384",
            label="accelerators, H100",
        ),
        Choice(
            name="B",
            options={str(b): f"{b * SEQ_LEN / 1e6:.1f}M tokens" for b in BATCHES},
            value="16384", label="batch",
        ),
        LogSlider(
            name="critical", low=1e6, high=256e6, value=65.3e6, unit="token",
            label="critical batch", steps=96,
        ),
        Slider(
            name="band", low=1.0, high=4.0, value=2.0, step=0.5,
            label="critical batch known to a factor of",
        ),
        Toggle(name="cp", value=False, label="cut sequences over 2 or 4 accelerators"),
    ),
    series=_series,
    panels=(
        Panel(
            draw=draw_scaling,
            title="Speed of the cluster at this batch",
            alt="Modelled tokens per second against accelerators at a fixed batch: the "
            "points leave the dotted line of twice for twice and turn down.",
        ),
        Panel(
            draw=draw_steps_examples,
            title="What the batch costs",
            alt="Steps fall and examples rise with the batch; the curves cross at two "
            "where the batch is the critical one.",
        ),
    ),
    readout=_readout,
)  # fmt: skip
