"""A panel as inline SVG whose live paths a script can rewrite.

Matplotlib draws axes, ticks and legend once. The paths of the live series are written
here, with the same few lines of arithmetic that the page's script uses, so the first
picture and every later one come from one rule.
"""

import io
import json
import re
from typing import Any
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from chinchilla_lab.explorers.core import Panel
from chinchilla_lab.figures.style import SWATCHES, Series, new_figure, style

__all__ = [
    "axes_of",
    "live_artists",
    "panel_figure",
    "panel_svg",
    "path_data",
    "to_svg",
]

Array = NDArray[np.float64]
_SVG = "http://www.w3.org/2000/svg"
_XLINK = "http://www.w3.org/1999/xlink"
# Beyond this a coordinate is off any screen; it keeps path data short.
_FAR = 9999.0


def panel_figure(panel: Panel, series: Series) -> tuple[Any, Any]:
    """Draw a panel on a new matplotlib figure."""
    with style():
        figure, axes = new_figure(panel.width, panel.height)
        panel.draw(axes, series)
    return figure, axes


def live_artists(axes: Any, series: Series) -> dict[str, Any]:
    """Return the artists that carry the name of a series."""
    artists = [*axes.lines, *axes.patches]
    return {a.get_gid(): a for a in artists if a.get_gid() in series}


def axes_of(figure: Any, axes: Any) -> dict[str, Any]:
    """Describe the map from data to SVG coordinates."""
    width, height = (72.0 * size for size in figure.get_size_inches())
    box = axes.get_position()
    return {
        "box": [
            round(box.x0 * width, 3),
            round((1.0 - box.y0) * height, 3),
            round(box.x1 * width, 3),
            round((1.0 - box.y1) * height, 3),
        ],
        "x": [axes.get_xscale(), *map(float, axes.get_xlim())],
        "y": [axes.get_yscale(), *map(float, axes.get_ylim())],
    }


def to_svg(values: Array, scale: list[Any], start: float, end: float) -> Array:
    """Map data to SVG coordinates along one axis."""
    kind, low, high = scale
    v = np.asarray(values, dtype=np.float64)
    if kind == "log":
        with np.errstate(divide="ignore", invalid="ignore"):
            v = np.where(v > 0.0, np.log10(v), np.nan)
        low, high = np.log10(float(low)), np.log10(float(high))
    mapped = start + (v - low) / (high - low) * (end - start)
    return np.clip(mapped, -_FAR, _FAR)


def _points(axes: dict[str, Any], xy: tuple[Array, Array]) -> tuple[Array, Array]:
    x0, y0, x1, y1 = axes["box"]
    return to_svg(xy[0], axes["x"], x0, x1), to_svg(xy[1], axes["y"], y0, y1)


def path_data(
    axes: dict[str, Any], xy: tuple[Array, Array], close: bool = False
) -> str:
    """Write a series as SVG path data; NaN lifts the pen."""
    pieces: list[str] = []
    pen = "M"
    for x, y in zip(*_points(axes, xy), strict=True):
        if np.isnan(x) or np.isnan(y):
            pen = "M"
            continue
        pieces.append(f"{pen}{x:.1f} {y:.1f}")
        pen = "L"
    return " ".join(pieces) + (" Z" if close and pieces else "")


def _dummy(artist: Any, axes: Any) -> None:
    """Give an artist points inside the axes, so that matplotlib writes its elements."""
    middle = axes.transAxes.transform([(0.4, 0.4), (0.6, 0.6)])
    points = axes.transData.inverted().transform(middle)
    if hasattr(artist, "set_data"):
        artist.set_data(points[:, 0], points[:, 1])
    else:
        artist.set_xy(np.vstack([points, points[:1] + (points[1:] - points[:1]) * 0.5]))


def _clean_style(text: str) -> str:
    """Put CSS variables for colours and leave the font to the page."""
    text = re.sub(r"font: ([\d.]+)px [^;]+;?", r"font-size: \1px;", text)
    text = re.sub(r"font-family: [^;]+;?", "", text)
    for colour, (name, _, _) in SWATCHES.items():
        text = text.replace(colour, f"var({name}, {colour})")
    text = re.sub(r";\s+", ";", text)
    return re.sub(r":\s+", ":", text).strip()


def panel_svg(panel: Panel, series: Series, prefix: str) -> str:
    """Return a panel as an SVG element for the page.

    Parameters
    ----------
    panel : Panel
        The drawing, [-]
    series : dict
        x and y arrays by name, [-]
    prefix : str
        Makes the ids of the element unique in its page, [-]

    Returns
    -------
    str
        SVG, [-]
    """
    import matplotlib as mpl

    figure, axes = panel_figure(panel, series)
    description = axes_of(figure, axes)
    artists = live_artists(axes, series)
    shapes = {
        name: (hasattr(a, "set_data"), getattr(a, "get_marker", lambda: "None")())
        for name, a in artists.items()
    }
    for artist in artists.values():
        _dummy(artist, axes)
    file = io.StringIO()
    with style(), mpl.rc_context({"svg.fonttype": "none"}):
        figure.savefig(file, format="svg", metadata={"Date": None})
    root = ElementTree.fromstring(file.getvalue())
    _strip(root)
    for element in root.iter():
        _rename(element, prefix)
    for name, (is_line, marker) in shapes.items():
        group = next(e for e in root.iter() if e.get("id") == f"{prefix}-{name}")
        _fill(group, name, is_line, marker, description, series[name])
    _drop_unused_ids(root)
    root.attrib.pop("width")
    root.attrib.pop("height")
    # A label, no <title>: browsers pop up a title as a tooltip over the figure.
    root.attrib |= {
        "role": "img",
        "aria-label": panel.alt,
        "data-axes": json.dumps(description, separators=(",", ":")),
    }
    ElementTree.register_namespace("", _SVG)
    ElementTree.register_namespace("xlink", _XLINK)
    svg = ElementTree.tostring(root, encoding="unicode")
    return re.sub(r">\s+<", "><", svg)


def _strip(root: ElementTree.Element) -> None:
    """Remove metadata, backgrounds and the style sheet, which would leak out."""
    for parent in list(root.iter()):
        for child in list(parent):
            tag = child.tag.rsplit("}", 1)[-1]
            if (
                tag == "metadata"
                or any(grand.tag.endswith("}style") for grand in child)
                or child.get("id") in ("patch_1", "patch_2")
            ):
                parent.remove(child)


def _rename(element: ElementTree.Element, prefix: str) -> None:
    if "id" in element.attrib:
        element.set("id", f"{prefix}-{element.get('id')}")
    for name in (f"{{{_XLINK}}}href", "href"):
        link = element.get(name)
        if link and link.startswith("#"):
            element.set(name, f"#{prefix}-{link[1:]}")
    clip = element.get("clip-path")
    if clip:
        element.set("clip-path", clip.replace("url(#", f"url(#{prefix}-"))
    if "style" in element.attrib:
        own = element.get("style", "").replace("url(#", f"url(#{prefix}-")
        element.set("style", _clean_style(own))


def _drop_unused_ids(root: ElementTree.Element) -> None:
    """Keep only the ids that something refers to; matplotlib names every group."""
    used: set[str] = set()
    for element in root.iter():
        for value in element.attrib.values():
            used.update(re.findall(r"url\(#([^)]+)\)", value))
            if value.startswith("#"):
                used.add(value[1:])
    for element in root.iter():
        if element.get("id") not in used:
            element.attrib.pop("id", None)


def _fill(
    group: ElementTree.Element,
    name: str,
    is_line: bool,
    marker: Any,
    axes: dict[str, Any],
    xy: tuple[Array, Array],
) -> None:
    """Write the real data of a series into its group."""
    group.set("data-series", name)
    parents = {child: parent for parent in group.iter() for child in parent}
    paths = [
        e for e in group.iter(f"{{{_SVG}}}path") if not parents[e].tag.endswith("}defs")
    ]
    for path in paths:
        path.set("data-live", "line" if is_line else "fill")
        path.set("d", path_data(axes, xy, close=not is_line))
    uses = list(group.iter(f"{{{_SVG}}}use"))
    if not uses or str(marker) in ("None", "", " "):
        return
    holder = parents[uses[0]]
    holder.set("data-live", "markers")
    template = uses[0].attrib.copy()
    for use in uses:
        holder.remove(use)
    for x, y in zip(*_points(axes, xy), strict=True):
        shown = not (np.isnan(x) or np.isnan(y))
        place = (
            {"x": f"{x:.1f}", "y": f"{y:.1f}"} if shown else {"x": "-99", "y": "-99"}
        )
        ElementTree.SubElement(holder, f"{{{_SVG}}}use", template | place)
    if not len(xy[0]):
        # an empty series keeps one marker out of sight, as a pattern for the script
        ElementTree.SubElement(
            holder, f"{{{_SVG}}}use", template | {"x": "-99", "y": "-99"}
        )
