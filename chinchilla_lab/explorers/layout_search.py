"""Explorer: which layout for my model on my cluster?"""

from chinchilla_lab.cluster import Ranking
from chinchilla_lab.explorers.core import (
    Choice,
    Explorer,
    LogSlider,
    Panel,
    Reading,
    Slider,
)
from chinchilla_lab.explorers.step_breakdown import BATCHES
from chinchilla_lab.figures.cluster_steps import (
    best_layouts,
    draw_bars,
    draw_times,
    gpt_like,
    series_bars,
    series_times,
)
from chinchilla_lab.figures.style import Series
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


def _found(
    n_layers: float,
    d_model: float,
    chip: str,
    n: str,
    batch: str,
    network: float,
    memory: float,
    stack: str,
) -> Ranking | str:
    return best_layouts(
        n_layers, d_model, int(n), int(batch), chip, network, stack, memory
    )


def _series(
    n_layers: float,
    d_model: float,
    chip: str,
    n: str,
    batch: str,
    network: float,
    memory: float,
    stack: str,
) -> Series:
    found = _found(n_layers, d_model, chip, n, batch, network, memory, stack)
    return series_times(found) | series_bars(found)


def _readout(
    n_layers: float,
    d_model: float,
    chip: str,
    n: str,
    batch: str,
    network: float,
    memory: float,
    stack: str,
) -> tuple[Reading, ...]:
    total = float(gpt_like(n_layers, d_model).params().total)
    size = Reading(
        label="model", text=text(total, "parameter") + " parameters", value=total
    )
    found = _found(n_layers, d_model, chip, n, batch, network, memory, stack)
    if isinstance(found, str):
        return (size, Reading(label="answer", text=found))
    best = found.best
    rows = []
    for rank, (step, used) in enumerate(
        zip(found.steps, found.memory, strict=True), start=1
    ):
        behind = step.seconds / best.seconds - 1.0
        tie = "tie" if found.is_tie(step) else f"+{100 * behind:.0f} %"
        rows.append(
            Reading(
                label=f"{rank}",
                text=f"{step.layout.label()}: {step.seconds:.4g} s, "
                f"{used / GB:.0f} GB, {tie}",
                value=step.seconds,
            )
        )
    mfu = best.mfu("causal")
    return (
        size,
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
        Slider(name="n_layers", low=8, high=128, value=48, label="layers", step=2),
        Slider(
            name="d_model", low=1024, high=24576, value=6144, label="width", step=256
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
            width=4.6,
            height=3.2,
        ),
        Panel(
            draw=draw_times,
            title="All layouts that fit",
            alt="Sorted times of all feasible layouts over the best: a curve that "
            "rises slowly and then steeply, with a dotted line for the model's error.",
            width=4.6,
            height=3.2,
        ),
    ),
    readout=_readout,
)  # fmt: skip
