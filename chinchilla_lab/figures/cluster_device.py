"""One accelerator: products under its ceilings, tiles, and where a peak goes."""

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from chinchilla_lab.cluster.accelerators import ACCELERATORS
from chinchilla_lab.cluster.calibration import whole_run_mfu
from chinchilla_lab.cluster.kernel import OPTIMIZER_TRAFFIC
from chinchilla_lab.cluster.roofline import Product, gemm, roofline, wave_efficiency
from chinchilla_lab.cluster.stacks import STACKS
from chinchilla_lab.figures.style import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PURPLE,
    RED,
    SKY,
    Drawing,
    Series,
    draw_on_figure,
    log_axis,
)
from chinchilla_lab.sources import read_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "LLAMA_3_8B_RUN",
    "PRODUCTS",
    "draw_roofline",
    "draw_teeth",
    "ladder_rates",
    "layer_products",
    "plot_ladder_of_rates",
    "plot_roofline",
    "plot_teeth",
    "product_under",
    "series_roofline",
    "series_teeth",
]

# product of a layer: colour, marker, name in legends
PRODUCTS: dict[str, tuple[str, str, str]] = {
    "qkv": (PURPLE, "o", "Q, K, V"),
    "out": (SKY, "s", "output"),
    "up": (ORANGE, "D", "MLP up"),
    "down": (GREEN, "v", "MLP down"),
}
# operations and bytes of work that is no product, by value or parameter; the
# operations are rough, and a factor of two moves a point by a hair on these axes
SMALL = {"norm": (8.0, 4.0), "adam": (12.0, OPTIMIZER_TRAFFIC)}
# parameters, tokens and H100-hours of Llama 3 8B :cite:`metahours`, llama3 model card
LLAMA_3_8B_RUN = (8.03e9, 15e12, 1.3e6)
_GRID = np.geomspace(0.1, 1e5, 97)
_SPREAD = np.linspace(-0.25, 0.25, 101)


def layer_products(
    rows: int, width: int, tp: int = 1
) -> dict[str, tuple[int, int, int]]:
    """Sizes of the four products of a layer whose MLP is four widths wide.

    Parameters
    ----------
    rows : int
        Tokens of a micro-batch, [token]
    width : int
        Width h of the layer, [-]
    tp : int, optional
        Accelerators that share each product, [-]

    Returns
    -------
    dict
        Rows, columns and depth by name, [-]

    Examples
    --------
    >>> layer_products(8192, 6144, 8)["up"]
    (8192, 3072, 6144)
    """
    return {
        "qkv": (rows, 3 * width // tp, width),
        "out": (rows, width, width // tp),
        "up": (rows, 4 * width // tp, width),
        "down": (rows, width, 4 * width // tp),
    }


def product_under(
    sizes: tuple[int, int, int], accelerator: str, dtype: str, ceiling: str
) -> Product:
    """One product below the sheet's peak or below the best that was measured.

    Parameters
    ----------
    sizes : tuple of int
        Rows, columns and depth, [-]
    accelerator : str
        Key of the chip, [-]
    dtype : str
        Number format, [-]
    ceiling : {"sheet", "measured"}
        Which ceiling, [-]

    Returns
    -------
    Product
        Work, bytes and time, [-]
    """
    chip = ACCELERATORS[accelerator]
    top = chip.peak(dtype) / chip.ceiling(dtype) if ceiling == "sheet" else 1.0
    m, n, k = sizes
    return gemm(m, n, k, chip, dtype, top)


def series_roofline(
    accelerator: str, dtype: str, rows: int, width: int, tp: int, ceiling: str
) -> Series:
    """Both ceilings of a chip and what runs below them.

    Parameters
    ----------
    accelerator : str
        Key of the chip, [-]
    dtype : str
        Number format, [-]
    rows : int
        Tokens of a micro-batch, [token]
    width : int
        Width of the layer, [-]
    tp : int
        Accelerators that share a product, [-]
    ceiling : {"sheet", "measured"}
        Ceiling of the products, [-]

    Returns
    -------
    dict
        Intensity [FLOP/byte] and rate [TFLOP/s]
    """
    series: Series = {
        "roof-sheet": (_GRID, roofline(_GRID, accelerator, dtype) / 1e12),
        "roof-measured": (
            _GRID,
            roofline(_GRID, accelerator, dtype, "measured") / 1e12,
        ),
    }
    for name, sizes in layer_products(rows, width, tp).items():
        found = product_under(sizes, accelerator, dtype, ceiling)
        series[name] = (np.array([found.intensity]), np.array([found.rate / 1e12]))
    for name, (work, size) in SMALL.items():
        x = np.array([work / size])
        series[name] = (x, roofline(x, accelerator, dtype) / 1e12)
    return series


def draw_roofline(ax: "Axes", series: Series) -> None:
    """Draw the ceilings, the products of a layer, a norm and Adam."""
    ax.plot(*series["roof-sheet"], color=GREY, gid="roof-sheet", label="sheet")
    ax.plot(*series["roof-measured"], "--", color=BLUE, gid="roof-measured",
            label="measured")  # fmt: skip
    for name, (colour, marker, label) in PRODUCTS.items():
        ax.plot(*series[name], marker, color=colour, ms=7, gid=name, label=label)
    ax.plot(*series["norm"], "P", color=RED, ms=7, gid="norm", label="norm")
    ax.plot(*series["adam"], "X", color=INK, ms=7, gid="adam", label="Adam")
    log_axis(ax, "x", 0.1, 1e5, "count")
    log_axis(ax, "y", 0.1, 1e4, "count")
    ax.set_xlabel("intensity [FLOP/byte]")
    ax.set_ylabel("rate [TFLOP/s]")
    ax.legend(loc="lower right", ncols=2, columnspacing=1.0)


def plot_roofline(
    accelerator: str = "h100-sxm-80gb", rows: int = 8192, width: int = 6144, tp: int = 8
) -> Drawing:
    """Draw the Loft's products under the ceilings of a chip.

    Parameters
    ----------
    accelerator : str, optional
        Key of the chip, [-]
    rows : int, optional
        Tokens of a micro-batch, [token]
    width : int, optional
        Width of the layer, [-]
    tp : int, optional
        Accelerators that share a product, [-]

    Returns
    -------
    Drawing
        The figure, [-]
    """
    series = series_roofline(accelerator, "bf16", rows, width, tp, "measured")
    return draw_on_figure(draw_roofline, series)


def series_teeth(accelerator: str, rows: int, width: int, tp: int) -> Series:
    """Wave efficiency of widths around a width.

    Parameters
    ----------
    accelerator : str
        Key of the chip, [-]
    rows : int
        Tokens of a micro-batch, [token]
    width : int
        Width in the middle, [-]
    tp : int
        Accelerators that share a product, [-]

    Returns
    -------
    dict
        Width over the chosen one and wave efficiency, of the product into the MLP and
        of all four products weighted by their work, [-]
    """
    cores = int(ACCELERATORS[accelerator].need("n_cores"))
    step = 64
    near = np.maximum(np.round(width * (1.0 + _SPREAD) / step), 1.0) * step
    near = np.append(near, float(width))
    columns = {"qkv": 3.0 * near / tp, "out": near, "up": 4.0 * near / tp, "down": near}
    work = {"qkv": 3.0, "out": 1.0, "up": 4.0, "down": 4.0}
    fill = {
        k: np.asarray(wave_efficiency(float(rows), n, cores))
        for k, n in columns.items()
    }
    total = sum(work.values()) / np.sum([work[k] / fill[k] for k in work], axis=0)
    x = near / width
    return {
        "teeth-up": (x[:-1], fill["up"][:-1]),
        "teeth-all": (x[:-1], total[:-1]),
        "here": (x[-1:], fill["up"][-1:]),
        "here-all": (x[-1:], total[-1:]),
    }


def draw_teeth(ax: "Axes", series: Series, yours: str = "your width") -> None:
    """Draw wave efficiency against width."""
    ax.plot(*series["teeth-all"], "--", color=GREY, lw=1.2, gid="teeth-all",
            label="all four products")  # fmt: skip
    ax.plot(*series["teeth-up"], color=BLUE, lw=1.2, gid="teeth-up", label="MLP up")
    ax.plot(*series["here-all"], "s", color=GREY, ms=6, gid="here-all")
    ax.plot(*series["here"], "D", color=ORANGE, ms=7, gid="here", label=yours)
    ax.set_xlim(0.75, 1.25)
    ax.set_ylim(0.0, 1.05)
    ax.set_xlabel("width over yours")
    ax.set_ylabel("tile slots in use")
    ax.legend(loc="lower right")


def plot_teeth(
    accelerator: str = "a100-sxm-80gb",
    rows: int = 2048,
    width: int = 14400,
    tp: int = 8,
) -> Drawing:
    """Draw wave efficiency around the width that BLOOM's team tried first.

    Parameters
    ----------
    accelerator : str, optional
        Key of the chip, [-]
    rows : int, optional
        Tokens of a micro-batch, [token]
    width : int, optional
        Width in the middle, [-]
    tp : int, optional
        Accelerators that share a product, [-]

    Returns
    -------
    Drawing
        The figure, [-]
    """
    series = series_teeth(accelerator, rows, width, tp)

    def draw(ax: "Axes", shown: Series) -> None:
        draw_teeth(ax, shown, f"{width:,}")
        ax.set_xlabel(f"width over {width:,}")
        ax.axvline(13824 / width, ls=":", color=PURPLE)
        ax.annotate("13,824", (13824 / width, 0.3), xytext=(-4, 0), ha="right",
                    textcoords="offset points", fontsize=8.5)  # fmt: skip

    return draw_on_figure(draw, series, height=3.4)


@lru_cache(maxsize=1)
def ladder_rates() -> dict[str, float]:
    """Rates of one H100 from the data sheet down to a whole run.

    Returns
    -------
    dict
        Rate by name, [FLOP/s]

    References
    ----------
    :cite:`mamf`; :cite:`megatron`, table of H100 runs; :cite:`metahours`
    """
    chip = ACCELERATORS["h100-sxm-80gb"]
    N, D, hours = LLAMA_3_8B_RUN
    rates = {
        "data sheet, dense bf16": chip.peak(),
        "best measured product": chip.ceiling(),
        "products in a step": STACKS["megatron-2021"].gemm * chip.ceiling(),
    }
    steps = {row["id"]: float(row["value"]) for row in read_rows("published_runs.csv")}
    for key, label in (("mlmh100-02", "step of a 16B"), ("mlmh100-00", "of a 1.7B")):
        rates[label] = steps[key] * 1e12  # published as model TFLOP/s
    rates["whole run, Llama 3 8B"] = whole_run_mfu(N, D, hours, chip) * chip.peak()
    return rates


def plot_ladder_of_rates() -> Drawing:
    """Draw where the peak goes, rung by rung.

    Returns
    -------
    Drawing
        The figure, [-]
    """
    rates = ladder_rates()
    names = list(rates)
    values = np.array([rates[name] / 1e12 for name in names])
    series: Series = {"rates": (np.arange(float(len(names))), values)}

    def draw(ax: "Axes", shown: Series) -> None:
        x, y = shown["rates"]
        kinds = [(GREY, ""), (BLUE, ""), (BLUE, "//")]
        kinds += [(ORANGE, ""), (ORANGE, ""), (PURPLE, "\\\\")]
        for place, rate, (colour, hatch) in zip(x, y, kinds, strict=True):
            ax.barh(-place, rate, 0.66, color=colour, hatch=hatch, edgecolor="#ffffff",
                    lw=0.6)  # fmt: skip
            ax.text(rate + 8, -place, f"{rate:.0f}", va="center", fontsize=8.5)
        ax.set_yticks(-x, names)
        ax.tick_params(axis="y", length=0)
        ax.grid(axis="y", visible=False)
        ax.set_xlim(0, 1100)
        ax.set_xlabel("rate of one H100 [TFLOP/s]")
        ax.figure.subplots_adjust(left=0.3)

    return draw_on_figure(draw, series, height=3.0)
