"""The page face: HTML that stands by itself, and the answers that keep it live.

``answer`` gives the numbers and texts; ``pack`` puts them into the form that the page's
worker sends on. Both run unchanged in CPython, where they are tested, and in Pyodide.
"""

import json
from dataclasses import dataclass
from html import escape
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chinchilla_lab.explorers.core import (
    Choice,
    Control,
    Explorer,
    LogSlider,
    Reading,
    Sheet,
    Slider,
    Toggle,
    Value,
)
from chinchilla_lab.figures.style import Series

__all__ = ["TOGETHER", "Answer", "answer", "html", "pack", "readout_html", "respond"]

TOGETHER = ""
"""Key of a message that belongs to no single control."""

# What stands until the page's script says otherwise: in a page opened as a file, in a
# viewer of notebooks, without scripts.
STATIC = (
    "Figure and values at the defaults. The controls work where this page is served "
    "over http with scripts on; for your own copy run <code>make serve</code>."
)

Array = NDArray[np.float64]
_numbers = count(1)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What the page gets back for one move.

    Parameters
    ----------
    values : dict
        Parsed value by control, [any]
    errors : dict
        Message by control; where there is any, nothing else changed, [-]
    series : dict
        x and y arrays by name, [any]
    readings : tuple of Reading
        The readout, [-]
    """

    values: dict[str, Value]
    errors: dict[str, str]
    series: Series
    readings: tuple[Reading, ...]


def respond(explorer: Explorer, raw: dict[str, Value]) -> Answer:
    """Answer one state of the controls; typed text is parsed here."""
    values: dict[str, Value] = {}
    errors: dict[str, str] = {}
    for control in explorer.controls:
        try:
            values[control.name] = control.parse(raw.get(control.name, control.value))
        except ValueError as problem:
            errors[control.name] = str(problem)
    if errors:
        return Answer(values=values, errors=errors, series={}, readings=())
    try:
        series, readings = explorer.compute(values)
    except ValueError as problem:
        # each value is fine by itself, together they are not
        errors = {TOGETHER: str(problem)}
        return Answer(values=values, errors=errors, series={}, readings=())
    return Answer(values=values, errors={}, series=series, readings=readings)


def answer(name: str, raw_json: str) -> Answer:
    """Answer one state of the controls of a named explorer, given as JSON."""
    from chinchilla_lab.explorers import get

    return respond(get(name), json.loads(raw_json))


def pack(name: str, raw_json: str) -> tuple[str, Array]:
    """Return an answer as a JSON head and one array that holds all numbers."""
    from chinchilla_lab.explorers import get

    found = answer(name, raw_json)
    index: list[list[Any]] = []
    parts: list[Array] = []
    for key, (x, y) in found.series.items():
        index.append([key, len(x)])
        parts += [np.asarray(x, np.float64), np.asarray(y, np.float64)]
    controls = {control.name: control for control in get(name).controls}
    head = {
        "values": found.values,
        "shown": {k: controls[k].show(v) for k, v in found.values.items()},
        "errors": found.errors,
        "series": index,
        "readings": [[r.label, r.text] for r in found.readings],
    }
    return json.dumps(head), np.concatenate(parts) if parts else np.zeros(0)


def html(explorer: Explorer) -> str:
    """Return the page face of an explorer at its defaults."""
    from chinchilla_lab.explorers.svg import panel_svg

    uid = f"cl-{explorer.name}-{next(_numbers)}"
    found = respond(explorer, {})
    panels = "".join(
        f'<figure class="cl-panel"><figcaption>{escape(panel.title)}</figcaption>'
        f"{panel_svg(panel, found.series, f'{uid}-p{i}')}</figure>"
        for i, panel in enumerate(explorer.panels)
    )
    controls = "".join(_control(uid, control) for control in explorer.controls)
    return (
        f'<section class="cl-explorer" id="{uid}" data-explorer="{explorer.name}" '
        f'aria-labelledby="{uid}-title">'
        f'<p class="cl-title" id="{uid}-title">{escape(explorer.title)}</p>'
        f'<div class="cl-panels">{panels}</div>'
        f'<fieldset class="cl-controls" disabled>'
        f'<legend class="cl-hidden">Controls of this figure</legend>{controls}'
        "</fieldset>"
        f'<dl class="cl-readout" aria-live="polite">{readout_html(found.readings)}</dl>'
        f'<div class="cl-foot"><p class="cl-status" role="status">{STATIC}'
        '</p><button type="button" class="cl-reset" hidden>Reset</button></div>'
        "</section>"
    )


def readout_html(readings: tuple[Reading, ...]) -> str:
    """Return the readout as rows of a description list."""
    return "".join(
        f"<div><dt>{escape(r.label)}</dt><dd>{escape(r.text)}</dd></div>"
        for r in readings
    )


def _control(uid: str, control: Control) -> str:
    ident = f"{uid}-{control.name}"
    label = f'<label for="{ident}">{escape(control.label)}</label>'
    head = (
        f'<div class="cl-control" data-control="{control.name}" '
        f'data-kind="{control.kind}" data-value="{escape(_value(control))}"'
    )
    if isinstance(control, Choice):

        def picked(key: str) -> str:
            return " selected" if key == control.value else ""

        options = "".join(
            f'<option value="{escape(key)}"{picked(key)}>{escape(text)}</option>'
            for key, text in control.options.items()
        )
        return (
            f'{head}>{label}<select id="{ident}" autocomplete="off">{options}</select>'
            "</div>"
        )
    if isinstance(control, Toggle):
        checked = " checked" if control.value else ""
        return (
            f'{head}><input type="checkbox" id="{ident}" autocomplete="off"{checked}>'
            f"{label}</div>"
        )
    if isinstance(control, Sheet):
        return (
            f'{head}>{label}<textarea id="{ident}" rows="6" autocomplete="off" '
            f'spellcheck="false" aria-describedby="{ident}-error">'
            f"{escape(control.value)}</textarea>"
            f'<label class="cl-file" for="{ident}-file">or a CSV file, which stays in '
            f'your browser</label><input type="file" id="{ident}-file" '
            f'accept=".csv,text/csv,text/plain">'
            f'<p class="cl-error" id="{ident}-error" role="alert" hidden></p></div>'
        )
    shown = control.show(control.value)
    suffix = control.suffix
    unit = f'<span class="cl-unit">{escape(suffix)}</span>' if suffix else ""
    error = f'<p class="cl-error" id="{ident}-error" role="alert" hidden></p>'
    if isinstance(control, Slider | LogSlider):
        step = control.step if isinstance(control, Slider) else 0
        whole = " data-whole" if control.unit in ("count", "byte") else ""
        return (
            f'{head} data-low="{control.low!r}" data-high="{control.high!r}" '
            f'data-step="{step!r}" data-steps="{control.steps}"{whole}>{label}'
            f'<input type="range" id="{ident}" min="0" max="{control.steps}" step="1" '
            f'value="{control.position(control.value)}" autocomplete="off" '
            f'aria-valuetext="{escape(f"{shown} {suffix}".strip())}">'
            f'<span class="cl-typed"><input type="text" id="{ident}-text" '
            f'value="{escape(shown)}" aria-label="{escape(control.label)}, typed" '
            f'aria-describedby="{ident}-error" autocomplete="off" spellcheck="false">'
            f"{unit}</span>{error}</div>"
        )
    return (
        f'{head}><label for="{ident}-text">{escape(control.label)}</label>'
        f'<span class="cl-typed"><input type="text" id="{ident}-text" '
        f'value="{escape(shown)}" aria-describedby="{ident}-error" autocomplete="off" '
        f'spellcheck="false">{unit}</span>{error}</div>'
    )


def _value(control: Control) -> str:
    return json.dumps(control.value)
