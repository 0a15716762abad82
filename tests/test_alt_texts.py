"""Numbers in the alternative texts of figures, against what the figures draw."""

import re
from pathlib import Path

import numpy as np
import pytest

from chinchilla_lab.cluster import Cluster, Layout, search
from chinchilla_lab.figures.cluster_device import (
    plot_ladder_of_rates,
    plot_roofline,
    plot_teeth,
)
from chinchilla_lab.figures.cluster_links import plot_crossing, plot_rates
from chinchilla_lab.figures.cluster_memory import Setting, gpt_like, plot_modes
from chinchilla_lab.figures.cluster_steps import (
    gpt_like as wide_gpt,
)
from chinchilla_lab.figures.cluster_steps import (
    plot_breakdown,
    plot_schedules,
    plot_times,
)

BOOK = Path(__file__).parent.parent / "book" / "cluster"
ALT = {
    name: alt
    for page in BOOK.glob("*.md")
    for name, alt in re.findall(
        r"name: (fig-[\w-]+)\n  image:\n    alt: (.*)", page.read_text("utf-8")
    )
}


def numbers(name):
    """Numbers of an alternative text, in order; commas part thousands."""
    found = re.findall(r"\d[\d,]*(?:\.\d+)?", ALT[name])
    return [float(x.strip(",").replace(",", "")) for x in found]


def test_rates_of_links():
    assert "about seven times below" in ALT["fig-rates"]
    series = plot_rates().series
    at = {k: float(y[x == 2.0**20][0]) for k, (x, y) in series.items() if k[-4:] in (
        "H200", "B200")}  # fmt: skip
    for one in ("8 H200", "8 B200"):
        assert at[one] / at["32 B200"] == pytest.approx(7.0, abs=0.5)
    size, rate = series["32 B200"]
    first = size[rate >= rate.max() / 2].min()
    assert "beyond 64 MiB" in ALT["fig-rates"]
    assert 64 * 2**20 < first <= 128 * 2**20


def test_crossing_of_the_node():
    one, low, high = numbers("fig-crossing")
    dashed, ring, levels, measured = (y for _, y in plot_crossing().series.values())
    assert dashed == pytest.approx(one, rel=2e-3)
    assert low == pytest.approx(ring.min(), rel=0.02)
    assert high == pytest.approx(levels.max(), rel=0.02)
    assert 1.0 < measured[0] / ring[1] < 1.1
    assert measured[0] / dashed[1] == pytest.approx(1 / 4, abs=0.01)


def test_teeth_and_ladder_and_roof():
    top, width, low, yours, at = numbers("fig-teeth")
    share, rate = plot_teeth().series["teeth-up"]
    widths = np.rint(14400 * share)
    assert rate[widths == width] == pytest.approx(top)
    assert rate[widths > width][0] == pytest.approx(low, abs=0.005)
    assert rate[widths == at] == pytest.approx(yours, abs=0.005)
    ((_, rates),) = plot_ladder_of_rates().series.values()
    assert numbers("fig-rate-ladder") == pytest.approx(rates, abs=1.0)
    (ridge,) = numbers("fig-roofline")
    series = plot_roofline().series
    flat = series["roof-sheet"][1].max()
    assert ridge == pytest.approx(flat / 3.35, abs=0.5)
    products = [series[name][0][0] for name in ("qkv", "out", "up", "down")]
    assert min(products) > ridge > 20 * max(series[n][0][0] for n in ("norm", "adam"))


def test_bars_of_memory():
    shape = gpt_like(48, 6144, 64, 51200)
    plan = Layout(tp=8, dp=8, micro_batch=4)
    made = plot_modes(Setting(shape=shape, seq_len=2048, layout=plan)).series
    for item in ("weights", "gradients"):
        assert np.ptp(made[item][1]) == 0.0
    optimizer = made["optimizer"][1]
    assert len(optimizer) == 6
    assert np.ptp(optimizer[:-1]) == 0.0
    assert optimizer[-1] < optimizer[0] / 4
    assert made["buffers"][1].max() < 2.0, "a sliver"


def test_schedules_and_layouts_and_breakdown():
    idle = {
        k.split(",")[0]: float(np.nanmax(x)) - 1.0
        for k, (x, _) in plot_schedules(4, 8, 2).series.items()
        if k.endswith("idle")
    }
    assert idle["2 chunks"] == pytest.approx(idle["1F1B"] / 2)

    def ranked(n, layers, width, batch):
        machine = Cluster(accelerator="h100-sxm-80gb", n_accelerators=n)
        shape = wide_gpt(layers, width)
        return search(shape, machine, batch, 4096, stack="megatron-bridge", keep=5)

    both = {"l": ranked(64, 48, 6144, 2048), "h": ranked(16384, 96, 21504, 16384)}
    (middle,) = numbers("fig-layouts")
    for name, (percent, times) in plot_times(both).series.items():
        assert percent[times > 1.0 + both[name].tie][0] <= 5.0
        assert np.interp(50.0, percent, times) == pytest.approx(middle, abs=0.05)
    x, y = plot_breakdown(48, 6144, 256, 64).series["area-0"]
    first, last = y[x == 64.0].max(), y[x == 4096.0].max()
    assert "from nine tenths to less than a third" in ALT["fig-breakdown"]
    assert first == pytest.approx(90, abs=3)
    assert last < 100 / 3
