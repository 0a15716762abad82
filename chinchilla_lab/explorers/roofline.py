"""Explorer: do more FLOP take more time?"""

from chinchilla_lab.cluster import ACCELERATORS, ridge_point, ridge_tokens
from chinchilla_lab.explorers.core import (
    Choice,
    Explorer,
    LogSlider,
    Panel,
    Reading,
    Slider,
)
from chinchilla_lab.figures.cluster_device import (
    draw_roofline,
    draw_teeth,
    layer_products,
    product_under,
    series_roofline,
    series_teeth,
)
from chinchilla_lab.figures.style import Series
from chinchilla_lab.units import text

__all__ = ["EXPLORER"]

_CHIPS = ("a100-sxm-80gb", "h100-sxm-80gb", "h200-sxm", "b200-sxm", "gb200-nvl72")


def _series(
    accelerator: str, dtype: str, M: float, h: float, tp: str, ceiling: str
) -> Series:
    rows, width, share = round(M), round(h), int(tp)
    points = series_roofline(accelerator, dtype, rows, width, share, ceiling)
    return points | series_teeth(accelerator, rows, width, share)


def _ridge(accelerator: str, dtype: str, width: int) -> Reading:
    label = "tokens that lift a square product off the slope"
    try:
        tokens = ridge_tokens(width, accelerator, dtype)
    except ValueError:
        return Reading(label=label, text="no number of tokens: the width is too small")
    return Reading(label=label, text=f"{tokens:,.0f}", value=tokens)


def _readout(
    accelerator: str, dtype: str, M: float, h: float, tp: str, ceiling: str
) -> tuple[Reading, ...]:
    rows, width, share = round(M), round(h), int(tp)
    m, n, k = layer_products(rows, width, share)["up"]
    found = product_under((m, n, k), accelerator, dtype, ceiling)
    chip = ACCELERATORS[accelerator]
    of = found.rate / chip.peak(dtype)
    ridge = ridge_point(chip, dtype)
    bound = "peak" if found.bound == "compute" else "memory bandwidth"
    return (
        Reading(
            label="product into the MLP",
            text=f"{m:,} by {k:,} times {k:,} by {n:,}: {text(found.flop, 'FLOP')}",
            value=found.flop,
        ),
        Reading(
            label="intensity",
            text=f"{found.intensity:,.0f} FLOP/byte, ridge at {ridge:,.0f}",
            value=found.intensity,
        ),
        Reading(
            label="rate",
            text=f"{text(found.rate, 'FLOP/s')}, {of:.1%} of the dense sheet",
            value=found.rate,
        ),
        Reading(
            label="time",
            text=f"{found.seconds * 1e3:.4g} ms, bound by the {bound}",
            value=found.seconds,
        ),
        Reading(label="waves", text=f"{found.waves:,}", value=float(found.waves)),
        Reading(
            label="wave efficiency",
            text=f"{found.wave_efficiency:.3f}",
            value=found.wave_efficiency,
        ),
        _ridge(accelerator, dtype, width),
    )


EXPLORER = Explorer(
    name="roofline",
    title="Do more FLOP take more time?",
    controls=(
        Choice(
            name="accelerator",
            options={key: ACCELERATORS[key].name for key in _CHIPS},
            value="h100-sxm-80gb",
            label="accelerator",
        ),
        Choice(
            name="dtype", options={"bf16": "bf16", "fp8": "fp8"}, value="bf16",
            label="number format",
        ),
        LogSlider(
            name="M", low=1, high=65536, value=8192, steps=64, unit="count",
            label="tokens of a micro-batch",
        ),
        Slider(name="h", low=512, high=32768, value=6144, step=64, label="width h"),
        Choice(
            name="tp", options={t: t for t in ("1", "2", "4", "8", "16")}, value="1",
            label="accelerators that share a product",
        ),
        Choice(
            name="ceiling",
            options={"measured": "best measured product", "sheet": "data sheet"},
            value="measured",
            label="ceiling",
        ),
    ),
    series=_series,
    panels=(
        Panel(
            draw=draw_roofline,
            title="Under two ceilings",
            alt="A line that rises with intensity and turns flat at the ridge; four "
            "products of a layer, a norm and Adam sit on or below it.",
            height=3.4,
        ),
        Panel(
            draw=draw_teeth,
            title="Tiles that are not full",
            alt="A saw-tooth line of the share of tile slots in use against the width, "
            "with your width marked.",
            height=3.4,
        ),
    ),
    readout=_readout,
)  # fmt: skip
