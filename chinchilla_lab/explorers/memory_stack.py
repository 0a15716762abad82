"""Explorer: twice the batch, twice the memory?"""

from chinchilla_lab.cluster import ACCELERATORS, RECIPES, Layout, largest_micro_batch
from chinchilla_lab.cluster.memory import NOT_INCLUDED
from chinchilla_lab.explorers.common import without_effect
from chinchilla_lab.explorers.core import (
    Choice,
    Explorer,
    LogSlider,
    Panel,
    Reading,
    Slider,
    Toggle,
    Value,
)
from chinchilla_lab.figures.cluster_memory import (
    SHOWN_SHAPES,
    Setting,
    draw_against_batch,
    draw_stacks,
    series_against_batch,
    series_stacks,
)
from chinchilla_lab.figures.style import Series
from chinchilla_lab.units import GB, GIB

__all__ = ["EXPLORER"]

_CARDS = ("a100-sxm-40gb", "a100-sxm-80gb", "h100-sxm-80gb", "h200-sxm", "b200-sxm",
          "mi300x")  # fmt: skip
_LENGTHS = ("1024", "2048", "4096", "8192", "16384", "32768", "65536", "131072")
_RECOMPUTE = {"none": "none", "selective": "attention scores", "full": "whole layers"}


def _setting(
    shape: str, accelerator: str, b: float, seq_len: str, tp: str, pp: float,
    v: float, dp: float, zero: str, recompute: str, sp: bool, fused: bool,
    recipe: str, offset: float,
) -> Setting:  # fmt: skip
    # more pieces than layers are no model: the most that there can be, and the readout
    # says how many there are
    layers = SHOWN_SHAPES[shape][1].n_layers
    stages = min(round(pp), layers)
    pieces = min(round(v), layers // stages)
    layout = Layout(
        tp=int(tp),
        pp=stages,
        dp=round(dp),
        micro_batch=round(b),
        # chunks are pieces of a stage: without a pipeline there are none
        n_chunks=pieces if stages > 1 else 1,
        zero=int(zero),
        recompute=recompute,  # type: ignore[arg-type]
        sequence_parallel=sp,
    )
    return Setting(
        shape=SHOWN_SHAPES[shape][1],
        layout=layout,
        seq_len=int(seq_len),
        recipe=recipe,
        fused=fused,
        offset=offset * GB,
        accelerator=accelerator,
    )


def _series(**values: Value) -> Series:
    setting = _setting(**values)  # type: ignore[arg-type]
    return series_stacks(setting) | series_against_batch(setting)


def _both(size: float) -> str:
    return f"{size / GIB:,.2f} GiB = {size / GB:,.2f} GB"


def _cut(setting: Setting) -> str:
    layers, plan = setting.shape.n_layers, setting.layout
    chunks = plan.pp * plan.n_chunks
    if chunks == 1:
        return f"none, all {layers} layers on each accelerator"
    if layers % chunks:
        return f"{layers} layers on {chunks} chunks: not even, the fullest counts"
    return f"{layers} layers, {layers // chunks} in each of {chunks} chunks"


def _readout(**values: Value) -> tuple[Reading, ...]:
    setting = _setting(**values)  # type: ignore[arg-type]
    now, twice = setting.bytes(), setting.bytes(2)
    card = ACCELERATORS[setting.accelerator]
    room = now.headroom(card)
    most = largest_micro_batch(
        setting.shape, setting.layout, setting.seq_len, card, **setting.options
    )
    moving = now.activations + now.logits
    grows = twice.total / now.total
    return (
        Reading(label="total", text=_both(now.total), value=now.total),
        Reading(label="states, whatever the batch", text=_both(now.states),
                value=now.states),
        Reading(label="activations and logits", text=_both(moving), value=moving),
        Reading(
            label="twice the micro-batch",
            text=f"states × {twice.states / now.states:.2f}, activations × "
            f"{twice.activations / now.activations:.2f}, total × {grows:.2f}",
            value=grows,
        ),
        Reading(
            label="room on the card",
            text=(_both(room) if room >= 0 else f"none: {_both(-room)} too much")
            + f"; the card has {card.memory / GIB:.2f} GiB",
            value=room,
        ),
        Reading(
            label="largest micro-batch",
            text=f"{most:,}" if most else "not even one sequence fits",
            value=float(most),
        ),
        Reading(label="accelerators", text=f"{setting.layout.n_accelerators:,}",
                value=float(setting.layout.n_accelerators)),
        Reading(label="pipeline", text=_cut(setting)),
        *without_effect(
            v="chunks, at one stage" if values["pp"] == 1 else None,
            sp="sequence parallel, at t = 1" if values["tp"] == "1" else None,
            zero="ZeRO, at one replica"
            if values["dp"] == 1 and values["zero"] != "0" else None,
        ),
        Reading(label="not included", text=NOT_INCLUDED),
    )  # fmt: skip


EXPLORER = Explorer(
    name="memory_stack",
    title="Twice the batch, twice the memory?",
    controls=(
        Choice(
            name="shape",
            options={key: name for key, (name, _) in SHOWN_SHAPES.items()},
            value="22b",
            label="model",
        ),
        Choice(
            name="accelerator",
            options={key: ACCELERATORS[key].name for key in _CARDS},
            value="h100-sxm-80gb",
            label="card",
        ),
        Slider(name="b", low=1, high=64, value=1, label="micro-batch, sequences"),
        Choice(
            name="seq_len", options={s: f"{int(s):,}" for s in _LENGTHS}, value="2048",
            label="sequence length, tokens",
        ),
        Choice(
            name="recompute", options=_RECOMPUTE, value="none", label="recompute",
        ),
        Choice(
            name="zero", options={z: z for z in "0123"}, value="0", label="ZeRO stage"
        ),
        Toggle(name="sp", value=False, label="sequence parallel"),
        Toggle(name="fused", value=False, label="fused attention"),
        Choice(
            name="tp", options={t: t for t in ("1", "2", "4", "8")}, value="8",
            label="tensor parallel t",
        ),
        Slider(name="pp", low=1, high=64, value=1, label="pipeline stages p"),
        Slider(name="v", low=1, high=8, value=1, label="chunks a stage v"),
        LogSlider(
            name="dp", low=1, high=2048, value=8, steps=44, unit="count",
            label="replicas d",
        ),
        Choice(
            name="recipe",
            options={
                key: f"{r.weights:g}+{r.gradients:g}+{r.optimizer:g} bytes"
                for key, r in RECIPES.items()
            },
            value="mixed-adam-fp32grad",
            label="bytes of weights, gradients, optimizer",
        ),
        Slider(
            name="offset", low=0, high=20, value=0, step=0.1, unit="GB",
            label="offset of the stack",
        ),
    ),
    series=_series,
    panels=(
        Panel(
            draw=draw_stacks,
            title="States stay, activations scale",
            alt="Two stacked bars against the line of the card: in the lower one, at "
            "twice the micro-batch, only activations and logits are longer.",
            height=3.2,
        ),
        Panel(
            draw=draw_against_batch,
            title="Memory against the micro-batch",
            alt="A flat line of states, a rising line of activations and their total, "
            "which leaves the states and crosses the line of the card.",
            height=3.2,
        ),
    ),
    readout=_readout,
)  # fmt: skip
