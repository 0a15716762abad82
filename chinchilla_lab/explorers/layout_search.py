"""Explorer: which layout for my model on my cluster?"""

from chinchilla_lab.cluster import Ranking
from chinchilla_lab.explorers.common import without_effect
from chinchilla_lab.explorers.core import (
    Choice,
    Explorer,
    LogSlider,
    Panel,
    Reading,
    Slider,
    Value,
)
from chinchilla_lab.explorers.step_breakdown import BATCHES
from chinchilla_lab.figures.cluster_steps import (
    draw_bars,
    draw_times,
    layouts_of,
    own_shape,
    series_bars,
    series_times,
)
from chinchilla_lab.figures.style import Series
from chinchilla_lab.shape import SHAPES, TransformerShape
from chinchilla_lab.units import GB, text

__all__ = ["EXPLORER"]

_CHIPS = {
    "a100-sxm-80gb": "A100",
    "h100-sxm-80gb": "H100",
    "h200-sxm": "H200",
    "b200-sxm": "B200",
}
_COUNTS = (
    8, 16, 32, 64, 128, 256, 384, 512, 1024, 2048, 3072, 4096, 8192, 16384, 65536,
)  # fmt: skip


_OWN = "own"
_KNOWN = {
    "llama-3-8b": "Llama 3 8B",
    "llama-3-70b": "Llama 3 70B",
    "llama-3-405b": "Llama 3 405B",
    "gpt-3": "GPT-3 175B",
    "mixtral-8x7b": "Mixtral 8x7B",
}
_MLP = {
    "plain-4": "plain, 4 widths",
    "gated-3.5": "gated, 3.5 widths",
    "gated-2.67": "gated, 2.67 widths",
}
_KV = {"0": "as many as heads", "8": "8 at most", "4": "4 at most", "1": "1"}
_VOCABS = ("32000", "50304", "65536", "131072", "262144")
_LENGTHS = ("2048", "4096", "8192", "16384", "32768")
_EXPERTS = {
    "1-1": "none, a dense model",
    "8-2": "8, a token uses 2",
    "64-8": "64, a token uses 8",
}


def _shape(values: dict[str, Value]) -> TransformerShape:
    model = str(values["model"])
    if model != _OWN:
        return SHAPES[model]
    return own_shape(
        float(values["n_layers"]), float(values["d_model"]), str(values["mlp"]),
        int(values["kv"]), int(values["vocab"]), str(values["experts"]),
    )  # fmt: skip


def _found(values: dict[str, Value]) -> Ranking | str:
    length = int(values["length"])
    # the batch is in tokens, whatever the length of a sequence
    batch = 4096 * int(values["batch"]) // length
    return layouts_of(
        _shape(values), int(values["n"]), batch, length, str(values["chip"]),
        float(values["network"]), str(values["stack"]), float(values["memory"]),
    )  # fmt: skip


def _series(**values: Value) -> Series:
    found = _found(values)
    return series_times(found) | series_bars(found)


def _size(shape: TransformerShape) -> tuple[Reading, Reading]:
    counts = shape.params()
    total, active = float(counts.total), float(counts.active)
    words = text(total, "parameter") + " parameters"
    if active < total:
        words += f", {text(active, 'parameter')} used by a token"
    said = (
        f"{shape.n_layers} × {shape.d_model:,}, MLP {shape.d_ff:,}, "
        f"{shape.n_heads} heads, {shape.kv_heads} for keys and values, vocabulary "
        f"{shape.vocab_size:,}"
    )
    return (
        Reading(label="model", text=words, value=total),
        Reading(label="shape", text=said),
    )


def _readout(**values: Value) -> tuple[Reading, ...]:
    named = values["model"] != _OWN
    size = (
        *_size(_shape(values)),
        *without_effect(
            model="layers, width, MLP, key-value heads, vocabulary and experts: the "
            "model has its own" if named else None
        ),
    )  # fmt: skip
    found = _found(values)
    if isinstance(found, str):
        return (*size, Reading(label="answer", text=found))
    best = found.best
    rows = []
    for rank, (step, used) in enumerate(
        zip(found.steps, found.memory, strict=True), start=1
    ):
        behind = step.seconds / best.seconds - 1.0
        tie = "tie" if found.is_tie(step) else f"+{100 * behind:.0f} %"
        rows.append(
            Reading(
                label=f"layout {rank}",
                text=f"{step.layout.label()}: {step.seconds:.4g} s, "
                f"{used / GB:.0f} GB, {tie}",
                value=step.seconds,
            )
        )
    mfu = best.mfu("causal")
    return (
        *size,
        *rows,
        Reading(label="MFU of the best, causal", text=f"{100 * mfu:.1f} %", value=mfu),
        Reading(
            label="layouts",
            text=f"{found.n_points:,} tried, {found.n_divisible:,} divide, "
            f"{found.n_feasible:,} fit",
            value=found.n_feasible,
        ),
        Reading(
            label="ties",
            text=f"{found.n_ties} within the model's {100 * found.tie:.0f} %",
            value=found.n_ties,
        ),
        Reading(
            label="median over best",
            text=f"{found.median_factor:.2f}",
            value=found.median_factor,
        ),
        Reading(label="constants", text=best.label),
    )


EXPLORER = Explorer(
    name="layout_search",
    title="Which layouts tie for the best?",
    controls=(
        Choice(
            name="model",
            options={_OWN: "your own, as below"} | _KNOWN,
            value=_OWN, label="model",
        ),
        Slider(name="n_layers", low=8, high=128, value=48, label="layers", step=2),
        Slider(
            name="d_model", low=1024, high=24576, value=6144, label="width", step=256
        ),
        Choice(name="mlp", options=_MLP, value="plain-4", label="MLP"),
        Choice(name="kv", options=_KV, value="0", label="key-value heads"),
        Choice(
            name="vocab", options={v: f"{int(v):,}" for v in _VOCABS}, value="131072",
            label="vocabulary",
        ),
        Choice(name="experts", options=_EXPERTS, value="1-1", label="experts"),
        Choice(
            name="length", options={s: f"{int(s):,}" for s in _LENGTHS}, value="4096",
            label="sequence length, tokens",
        ),
        Choice(name="chip", options=_CHIPS, value="h100-sxm-80gb", label="accelerator"),
        Choice(
            name="n",
            options={str(n): f"{n:,}" for n in _COUNTS},
            value="64",
            label="accelerators",
        ),
        Choice(name="batch", options=BATCHES, value="2048", label="batch"),
        LogSlider(
            name="network", low=1, high=100, value=50, steps=40,
            label="network of an accelerator, one way", unit="GB/s",
        ),
        Slider(
            name="memory", low=16, high=288, value=80, step=8,
            label="memory that a job may fill", unit="GB",
        ),
        Choice(
            name="stack",
            options={
                "megatron-bridge": "calibrated, Megatron family",
                "llm-foundry-h100": "calibrated, LLM Foundry on H100",
                "uncalibrated": "upper bound",
            },
            value="megatron-bridge",
            label="constants",
        ),
    ),
    series=_series,
    panels=(
        Panel(
            draw=draw_bars,
            title="The fastest five, itemised",
            alt="Five stacked bars of nearly equal length: matrix products fill most "
            "of each, the rest differs in kind more than in size.",
            width=3.7,
            height=3.3,
        ),
        Panel(
            draw=draw_times,
            title="All layouts that fit",
            alt="Sorted times of all feasible layouts over the best: a curve that "
            "rises slowly and then steeply, with a dotted line for the model's error.",
            width=3.7,
            height=3.3,
        ),
    ),
    readout=_readout,
)  # fmt: skip
