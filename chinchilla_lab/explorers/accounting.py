"""Explorer: is 6ND exact?"""

from typing import Any

from chinchilla_lab.explorers.common import budget, quantity
from chinchilla_lab.explorers.core import (
    Choice,
    Explorer,
    LogSlider,
    Panel,
    Reading,
    Slider,
    Toggle,
)
from chinchilla_lab.figures.shape import (
    SHOWN,
    draw_conventions,
    draw_parts,
    llama_like,
    series_conventions,
    series_parts,
)
from chinchilla_lab.figures.style import Series
from chinchilla_lab.shape import (
    CONVENTIONS,
    TransformerShape,
    causal_crossover,
    compare_conventions,
)
from chinchilla_lab.units import text

__all__ = ["EXPLORER"]


def _shape(values: dict[str, Any]) -> TransformerShape:
    keys = ("n_layers", "d_model", "d_ff", "vocab", "tied", "gated")
    group = int(values["kv_group"])
    return llama_like(**{key: values[key] for key in keys}, kv_group=group)


def _series(seq_len: float, C: float, convention: str, **values: Any) -> Series:
    shape = _shape(values)
    bars = series_conventions(shape, round(seq_len), C, convention)
    return series_parts(shape) | bars


def _readout(
    seq_len: float, C: float, convention: str, **values: Any
) -> tuple[Reading, ...]:
    shape = _shape(values)
    n = shape.params()
    table = compare_conventions(shape, round(seq_len), C, SHOWN)
    count, tokens = table.counts[convention], table.tokens
    items = f"attention {n.attention:,} + MLP {n.mlp:,} + norms {n.norms:,}"
    tables = 1 if shape.tied else 2
    per_token = f"{count.total:.3e}".replace("e+", "e")
    few, many = min(tokens.values()), max(tokens.values())
    return (
        Reading(label="N total", text=f"{n.total:,}", value=float(n.total)),
        Reading(label="body", text=items, value=float(n.non_embedding)),
        Reading(
            label="vocabulary",
            text=f"{tables} x {n.input_embedding:,}",
            value=float(n.input_embedding + n.head),
        ),
        Reading(
            label="training FLOP per token",
            text=f"{per_token}, {CONVENTIONS[convention].formula}",
            value=count.total,
        ),
        quantity("tokens for the budget", tokens[convention], "token", 4),
        Reading(
            label="over all conventions",
            text=f"{text(few, 'token', 4)} to {text(many, 'token', 4)}, "
            f"a factor {many / few:.2f}",
            value=many / few,
        ),
        quantity(
            "masked attention equals the weights at T [token]",
            causal_crossover(shape),
            "",
            5,
        ),
    )


EXPLORER = Explorer(
    name="accounting",
    title="How many tokens does a budget buy, and whose count is right?",
    controls=(
        Slider(name="n_layers", low=2, high=128, value=32, label="layers"),
        Slider(
            name="d_model", low=128, high=16384, value=4096, step=128, label="width d"
        ),
        Slider(
            name="d_ff", low=256, high=65536, value=14336, step=256, label="MLP width"
        ),
        Choice(
            name="kv_group",
            options={"1": "1", "4": "4", "8": "8"},
            value="4",
            label="query heads per key-value head",
        ),
        LogSlider(
            name="vocab", low=8000, high=256000, value=128256, label="vocabulary",
            steps=60,
        ),
        LogSlider(
            name="seq_len", low=512, high=131072, value=8192, steps=64,
            label="sequence length T, tokens", unit="count",
        ),
        Toggle(name="tied", value=False, label="tied head"),
        Toggle(name="gated", value=True, label="gated MLP"),
        budget(),
        Choice(
            name="convention",
            options={name: CONVENTIONS[name].label for name in SHOWN},
            value="6N_total",
            label="convention",
        ),
    ),
    series=_series,
    panels=(
        Panel(
            draw=draw_parts,
            title="Where the parameters are",
            alt="A bar of all parameters split into attention, MLP, norms, head and "
            "input embedding; lines below show how far each meaning of N reaches.",
        ),
        Panel(
            draw=draw_conventions,
            title="FLOP per token under seven conventions",
            alt="Seven stacked bars of training FLOP per token relative to 6N: body, "
            "head, embedding and attention; they differ by more than a third.",
        ),
    ),
    readout=_readout,
)  # fmt: skip
