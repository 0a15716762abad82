"""Explorer: which N do you mean?"""

from chinchilla_lab.explorers.common import quantity
from chinchilla_lab.explorers.core import (
    Explorer,
    LogSlider,
    Panel,
    Reading,
    Slider,
    Toggle,
)
from chinchilla_lab.figures.shape import draw_parts, llama_like, series_parts
from chinchilla_lab.figures.style import Series
from chinchilla_lab.units import text

__all__ = ["EXPLORER"]


def _series(
    n_layers: float, d_model: float, d_ff: float, vocab: float, tied: bool, gated: bool
) -> Series:
    return series_parts(llama_like(n_layers, d_model, d_ff, vocab, tied, gated))


def _readout(
    n_layers: float, d_model: float, d_ff: float, vocab: float, tied: bool, gated: bool
) -> tuple[Reading, ...]:
    count = llama_like(n_layers, d_model, d_ff, vocab, tied, gated).params()
    names = {
        "total": "N total",
        "body_and_head": "N body and head",
        "non_embedding": "N non-embedding",
    }
    rows = []
    for key, label in names.items():
        n = count.meanings()[key]
        shown = f"{n:,}, 20 tokens each: {text(20.0 * n, 'token')}"
        rows.append(Reading(label=label, text=shown, value=float(n)))
    share = count.vocabulary_share
    rows.append(
        Reading(label="vocabulary share", text=f"{100 * share:.1f} %", value=share)
    )
    rule = 12.0 * round(n_layers) * round(d_model) ** 2
    rows.append(quantity("the rule 12 L d²", rule, "parameter", 4))
    return tuple(rows)


EXPLORER = Explorer(
    name="four_n",
    title="Which N do you mean?",
    controls=(
        Slider(name="n_layers", low=2, high=96, value=9, label="layers"),
        Slider(
            name="d_model", low=128, high=16384, value=448, step=64, label="width d"
        ),
        Slider(
            name="d_ff", low=256, high=65536, value=1280, step=256, label="MLP width"
        ),
        LogSlider(
            name="vocab",
            low=8000,
            high=256000,
            value=32000,
            label="vocabulary",
            steps=60,
        ),
        Toggle(name="tied", value=False, label="tied head"),
        Toggle(name="gated", value=True, label="gated MLP"),
    ),
    series=_series,
    panels=(
        Panel(
            draw=draw_parts,
            title="What each name of N holds",
            alt="A bar of all parameters split into attention, MLP, norms, head and "
            "input embedding; lines below show how far each meaning of N reaches.",
            width=4.2,
            height=2.6,
        ),
    ),
    readout=_readout,
)
