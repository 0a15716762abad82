"""House style of the figures: palette, tick labels, a figure without pyplot.

Colours are told apart with every common colour blindness, and each series has a second
cue (dash or marker) besides. In the page the colours become CSS variables, so that
light and dark have their own values; see ``SWATCHES``.
"""

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from chinchilla_lab.units import text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "BLUE",
    "GREEN",
    "GREY",
    "INK",
    "ORANGE",
    "PURPLE",
    "RED",
    "SKY",
    "SWATCHES",
    "Drawing",
    "Series",
    "draw_on_figure",
    "legend_above",
    "log_axis",
    "new_figure",
]

Array = NDArray[np.float64]
Series = dict[str, tuple[Array, Array]]
Draw = Callable[["Axes", Series], None]

# name in CSS, colour in light pages, colour in dark pages
SWATCHES: dict[str, tuple[str, str, str]] = {
    "#1b1f24": ("--cl-ink", "#1b1f24", "#e6e8eb"),
    "#d5d9de": ("--cl-grid", "#d5d9de", "#3b424a"),
    "#0064a4": ("--cl-blue", "#0064a4", "#62b5f0"),
    "#b54708": ("--cl-orange", "#b54708", "#f5a05a"),
    "#0a7a55": ("--cl-green", "#0a7a55", "#4fc79a"),
    "#8e3b8a": ("--cl-purple", "#8e3b8a", "#d68fd2"),
    "#2a7f9e": ("--cl-sky", "#2a7f9e", "#7fd0e8"),
    "#b3261e": ("--cl-red", "#b3261e", "#ff8a80"),
    "#687079": ("--cl-grey", "#687079", "#9aa4ae"),
}
INK, GRID, BLUE, ORANGE, GREEN, PURPLE, SKY, RED, GREY = SWATCHES

_RC: Any = {
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "font.size": 9.5,
    "font.family": "sans-serif",
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "lines.linewidth": 1.8,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "savefig.facecolor": "none",
    "svg.hashsalt": "chinchilla_lab",
}


def style() -> Any:
    """Return a context in which matplotlib draws in the house style."""
    import matplotlib as mpl

    return mpl.rc_context(_RC)


def new_figure(width: float = 3.7, height: float = 2.9) -> "tuple[Figure, Axes]":
    """Return a figure with one axes, made without pyplot.

    Parameters
    ----------
    width : float, optional
        Width, [inch]
    height : float, optional
        Height, [inch]

    Returns
    -------
    tuple
        Figure and axes, [-]
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout=None)
    axes = figure.add_subplot()
    # margins in inches hold the same labels whatever the size of the figure
    figure.subplots_adjust(
        left=0.72 / width,
        right=1.0 - 0.2 / width,
        bottom=0.5 / height,
        top=1.0 - 0.12 / height,
    )
    return figure, axes


def legend_above(ax: "Axes", ncols: int, rows: int = 1) -> None:
    """Put the legend above the axes, where no line can run through it.

    Parameters
    ----------
    ax : Axes
        The axes of a figure of their own, [-]
    ncols : int
        Columns of the legend, [-]
    rows : int, optional
        Lines that these columns take, for which room is made, [-]
    """
    ax.legend(
        loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=ncols, fontsize=8,
        columnspacing=1.2, borderaxespad=0.4,
    )  # fmt: skip
    height = ax.get_figure(root=True).get_size_inches()[1]  # type: ignore[union-attr]
    ax.get_figure(root=True).subplots_adjust(  # type: ignore[union-attr]
        top=1.0 - (0.16 + 0.18 * rows) / height
    )


def log_axis(
    ax: "Axes", which: str, low: float, high: float, unit: str, every: int = 1
) -> None:
    """Make one axis logarithmic, with fixed limits and ticks as people write them.

    Parameters
    ----------
    ax : Axes
        The axes, [-]
    which : {"x", "y"}
        Which axis, [-]
    low : float
        Lower limit, [unit]
    high : float
        Upper limit, [unit]
    unit : str
        Unit for the tick labels, as in :func:`chinchilla_lab.units.text`, [-]
    every : int, optional
        Decades between ticks, [-]
    """
    from matplotlib.ticker import NullLocator

    axis = ax.xaxis if which == "x" else ax.yaxis
    if which == "x":
        ax.set_xscale("log")
        ax.set_xlim(low, high)
    else:
        ax.set_yscale("log")
        ax.set_ylim(low, high)
    first = int(np.ceil(np.log10(low) - 1e-9))
    last = int(np.floor(np.log10(high) + 1e-9))
    ticks = [10.0**e for e in range(first, last + 1, every)]
    axis.set_ticks(ticks)
    axis.set_ticklabels([tick_label(t, unit) for t in ticks])
    axis.set_minor_locator(NullLocator())


_SUPER = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def tick_label(value: float, unit: str) -> str:
    """Write a power of ten for a tick."""
    if unit == "FLOP":
        return "10" + str(round(np.log10(value))).translate(_SUPER)
    return text(value, unit)


@dataclass(frozen=True)
class Drawing:
    """A finished figure that a notebook or the book shows as a crisp SVG.

    Parameters
    ----------
    figure : Figure
        The matplotlib figure, [-]
    series : mapping
        The numbers behind it, by name, [-]
    """

    figure: "Figure"
    series: Mapping[str, tuple[Array, Array]]

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        with style():
            file = io.StringIO()
            self.figure.savefig(file, format="svg", metadata={"Date": None})
        return {
            "image/svg+xml": file.getvalue(),
            "text/plain": f"<figure of {', '.join(self.series)}>",
        }


def draw_on_figure(
    draw: Draw, series: Series, width: float = 6.2, height: float = 3.9
) -> Drawing:
    """Draw series on a new figure of their own, for a chapter.

    Parameters
    ----------
    draw : callable
        ``draw(ax, series)``, [-]
    series : dict
        x and y arrays by name, [-]
    width : float, optional
        Width, [inch]
    height : float, optional
        Height, [inch]

    Returns
    -------
    Drawing
        The figure with its numbers, [-]
    """
    with style():
        figure, axes = new_figure(width, height)
        draw(axes, series)
    return Drawing(figure, series)
