"""The kernel face: ipywidgets around kept matplotlib figures.

A move sets the data of the artists that are there; nothing is plotted again. Axes are
fixed, so ticks, grid and labels are painted once and kept as a background.
"""

import io
from html import escape
from typing import Any

import ipywidgets as widgets
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image

from chinchilla_lab.explorers.core import (
    Choice,
    Control,
    Explorer,
    LogSlider,
    Number,
    Sheet,
    Slider,
    Toggle,
    Value,
)
from chinchilla_lab.explorers.page import TOGETHER, readout_html, respond
from chinchilla_lab.explorers.svg import live_artists, panel_figure
from chinchilla_lab.figures.style import Series, style

__all__ = ["KernelFace"]

_WHITE = "#ffffff"
_DPI = 130
_ROW = widgets.Layout(align_items="center")


class _Picture:
    """One panel: a figure that is drawn once and an image that shows it."""

    def __init__(self, panel: Any, series: Series) -> None:
        self.figure, self.axes = panel_figure(panel, series)
        self.figure.set_facecolor(_WHITE)  # notebooks in dark themes need a plate
        self.figure.set_dpi(_DPI)
        self.canvas = FigureCanvasAgg(self.figure)
        self.artists = live_artists(self.axes, series)
        self.image = widgets.Image(format="png", layout={"max_width": "49%"})
        self.image.alt = panel.alt
        # all that may lie over or under a live artist is painted anew, in its order
        ax = self.axes
        legend = [] if ax.get_legend() is None else [ax.get_legend()]
        moving = [*ax.lines, *ax.patches, *ax.collections, *ax.texts, *legend]
        self.moving = sorted(moving, key=lambda artist: artist.get_zorder())
        for artist in self.moving:
            artist.set_animated(True)  # leaves them out of the background
        with style():
            self.canvas.draw()
        self.background = self.canvas.copy_from_bbox(self.figure.bbox)
        self.refresh()

    def update(self, series: Series) -> None:
        for name, artist in self.artists.items():
            x, y = series[name]
            if hasattr(artist, "set_data"):
                artist.set_data(x, y)
            else:
                artist.set_xy(np.column_stack([x, y]))
        self.refresh()

    def refresh(self) -> None:
        self.canvas.restore_region(self.background)
        for artist in self.moving:
            self.axes.draw_artist(artist)
        file = io.BytesIO()
        # level 1: a third of the time of the default, for a few kilobytes more
        pixels = Image.fromarray(np.asarray(self.canvas.buffer_rgba()))
        pixels.convert("RGB").save(file, "png", compress_level=1)
        self.image.value = file.getvalue()


class KernelFace(widgets.VBox):
    """Widgets of an explorer.

    Parameters
    ----------
    explorer : Explorer
        The definition, [-]
    """

    def __init__(self, explorer: Explorer) -> None:
        self.explorer = explorer
        # raw: what the figure shows; asked: what the controls say
        self.raw: dict[str, Value] = {c.name: c.value for c in explorer.controls}
        self.asked: dict[str, Value] = dict(self.raw)
        self.inputs: dict[str, widgets.Widget] = {}
        self.typed: dict[str, widgets.Text] = {}
        self.message = widgets.HTML()
        self._busy = False
        first = respond(explorer, dict(self.raw))
        self.pictures = [_Picture(panel, first.series) for panel in explorer.panels]
        self.readout = widgets.HTML()
        self._show(first)
        rows = [self._row(control) for control in explorer.controls]
        pictures = widgets.HBox([p.image for p in self.pictures])
        super().__init__([pictures, *rows, self.message, self.readout])

    def view(self) -> dict[str, Any]:
        """Return the bundle that a front end with widgets shows."""
        return dict(super()._repr_mimebundle_())

    def _show(self, found: Any) -> None:
        self.readout.value = (
            f"<dl style='columns: 2; margin: 0'>{readout_html(found.readings)}</dl>"
        )

    def _row(self, control: Control) -> widgets.Widget:
        name = control.name
        label = widgets.Label(control.label, layout={"width": "14em"})
        if isinstance(control, Choice):
            options = [(text, key) for key, text in control.options.items()]
            box = widgets.Dropdown(options=options, value=control.value)
            box.observe(lambda change: self._move(name, change["new"]), "value")
            self.inputs[name] = box
            return widgets.HBox([label, box], layout=_ROW)
        if isinstance(control, Toggle):
            tick = widgets.Checkbox(value=control.value, indent=False)
            tick.observe(lambda change: self._move(name, change["new"]), "value")
            self.inputs[name] = tick
            return widgets.HBox([label, tick], layout=_ROW)
        if isinstance(control, Sheet):
            area = widgets.Textarea(
                value=control.value, continuous_update=False, rows=6,
                layout={"width": "28em"},
            )  # fmt: skip
            area.observe(lambda change: self._move(name, change["new"]), "value")
            upload = widgets.FileUpload(accept=".csv", description="CSV file")
            upload.observe(lambda change: self._load(area, change["new"]), "value")
            self.inputs[name] = area
            return widgets.HBox([label, area, upload], layout=_ROW)
        text = widgets.Text(
            control.show(control.value),
            continuous_update=False,
            layout={"width": "8em"},
        )
        text.observe(lambda change: self._type(control, change["new"]), "value")
        self.typed[name] = text
        unit = widgets.Label(control.suffix)
        if isinstance(control, Slider | LogSlider):
            slider = widgets.IntSlider(
                control.position(control.value), 0, control.steps, readout=False
            )
            slider.observe(lambda change: self._slide(control, change["new"]), "value")
            self.inputs[name] = slider
            return widgets.HBox([label, slider, text, unit], layout=_ROW)
        self.inputs[name] = text
        return widgets.HBox([label, text, unit], layout=_ROW)

    def _slide(self, control: Slider | LogSlider, position: int) -> None:
        if self._busy:
            return
        value = control.at(position)
        self._quietly(self.typed[control.name], control.show(value))
        self._move(control.name, value)

    def _type(self, control: Number, text: str) -> None:
        if self._busy:
            return
        self._move(control.name, text)

    def _load(self, area: widgets.Textarea, files: Any) -> None:
        """Put an uploaded file where a pasted one would stand."""
        for file in files:
            area.value = bytes(file["content"]).decode("utf-8-sig", errors="replace")

    def _quietly(self, widget: widgets.Widget, value: Any) -> None:
        """Set a widget without hearing of it as a move of the reader."""
        self._busy = True
        try:
            widget.value = value
        finally:
            self._busy = False

    def _move(self, name: str, raw: Value) -> None:
        found = respond(self.explorer, self.asked | {name: raw})
        if found.errors:
            # nothing is lost: the figure and the last good value stay
            text = escape(" ".join(found.errors.values()))
            self.message.value = f"<b role='alert'>{text}</b>"
            if TOGETHER in found.errors:
                self.asked = dict(found.values)  # until another control gives way
            return
        self.message.value = ""
        self.raw, self.asked = dict(found.values), dict(found.values)
        for control in self.explorer.controls:
            value = self.raw[control.name]
            if control.name in self.typed:
                self._quietly(self.typed[control.name], control.show(value))
            if isinstance(control, Slider | LogSlider) and isinstance(raw, str):
                place = control.position(float(value))
                self._quietly(self.inputs[control.name], place)
        for picture in self.pictures:
            picture.update(found.series)
        self._show(found)
