"""Links of a cluster: rates against size, and the price of leaving the node."""

from typing import TYPE_CHECKING

import numpy as np

from chinchilla_lab.cluster.collectives import (
    all_reduce_time,
    busbw,
    collective_time,
    fit_alpha_beta,
    hierarchical_all_reduce,
    point_to_point_time,
)
from chinchilla_lab.cluster.hardware import Cluster
from chinchilla_lab.cluster.published import all_reduce_rates, all_reduce_systems
from chinchilla_lab.figures.style import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PURPLE,
    Drawing,
    Series,
    draw_on_figure,
)
from chinchilla_lab.units import GB, GIB

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_collective", "plot_crossing", "plot_rates", "series_collective"]

_SIZES = np.geomspace(2.0**10, 2.0**36, 27)
_MIB = 2.0**20


def _size_axis(ax: "Axes", low: float, high: float) -> None:
    ax.set_xscale("log", base=2)
    ax.set_xlim(low, high)
    ticks = [2.0**10, 32 * 2.0**10, _MIB, 32 * _MIB, 2.0**30, 16 * 2.0**30]
    names = ["1 KiB", "32 KiB", "1 MiB", "32 MiB", "1 GiB", "16 GiB"]
    kept = [(t, n) for t, n in zip(ticks, names, strict=True) if low <= t <= high]
    ax.set_xticks([t for t, _ in kept], [n for _, n in kept])
    ax.minorticks_off()


def plot_rates(line: str = "8 A100") -> Drawing:
    """Draw measured bus bandwidth against size, and a fitted line of one machine."""
    series: Series = {}
    for system in all_reduce_systems():
        rates = all_reduce_rates(system)
        series[system] = (rates.size, rates.busbw / GB)
    rates = all_reduce_rates(line)
    alpha, rate = fit_alpha_beta(rates.size, rates.seconds)
    x = np.geomspace(rates.size[0], rates.size[-1], 60)
    said = busbw(x, rates.ranks, alpha + x / rate)
    series[f"line through {line}"] = (x, said / GB)

    def draw(ax: "Axes", shown: Series) -> None:
        looks = zip((BLUE, GREEN, ORANGE, PURPLE), ("o-", "s-", "D--", "^-"),
                    strict=True)  # fmt: skip
        for system, (colour, mark) in zip(all_reduce_systems(), looks, strict=True):
            ax.plot(*shown[system], mark, color=colour, ms=4, lw=1.2, label=system)
        ax.plot(*list(shown.values())[-1], ":", color=INK, lw=1.6,
                label=f"line through {line}")  # fmt: skip
        _size_axis(ax, 2.0**14, 2.0**35)
        ax.set_yscale("log")
        ax.set_ylim(0.3, 1500.0)
        ax.set_yticks([1, 10, 100, 1000], ["1", "10", "100", "1,000"])
        ax.minorticks_off()
        ax.set_xlabel("size of the array")
        ax.set_ylabel("bus bandwidth [GB/s]")
        ax.legend(loc="lower right")

    return draw_on_figure(draw, series)


def plot_crossing(size: float = 16 * GIB) -> Drawing:
    """Draw an all-reduce over nodes of eight B200 in three ways of counting."""
    nodes = np.geomspace(2.0, 512.0, 9)
    chip = Cluster(accelerator="b200-sxm", n_accelerators=8)
    inside, outside = chip.chip.ring_bandwidth, chip.network
    one, flat, levels = [], [], []
    for k in nodes:
        one.append(float(point_to_point_time(size, outside)))
        flat.append(float(all_reduce_time(size, 8 * round(k), 8 * outside)))
        levels.append(sum(hierarchical_all_reduce(size, 8, round(k), inside, outside)))
    rates = all_reduce_rates("32 B200")
    here = rates.seconds[rates.size == size]
    series: Series = {
        "all bytes through one card": (nodes, 1e3 * np.array(one)),
        "one ring, eight cards a node": (nodes, 1e3 * np.array(flat)),
        "two levels, one after the other": (nodes, 1e3 * np.array(levels)),
        "measured": (np.full(len(here), 4.0), 1e3 * here),
    }

    def draw(ax: "Axes", shown: Series) -> None:
        looks = zip((ORANGE, BLUE, GREEN, INK), ("--", "-", "-.", "D"), strict=True)
        for (name, xy), (colour, dash) in zip(shown.items(), looks, strict=True):
            ax.plot(*xy, dash, color=colour, ms=8, label=name)
        ax.set_xscale("log", base=2)
        ax.set_xticks(nodes[::2], [f"{k:.0f}" for k in nodes[::2]])
        ax.minorticks_off()
        ax.set_xlim(2.0, 512.0)
        ax.set_ylim(0.0, 520.0)
        ax.set_xlabel("nodes of eight B200")
        ax.set_ylabel("time of the all-reduce [ms]")
        ax.legend(loc="upper right")

    return draw_on_figure(draw, series, height=3.4)


_MEASURED = {
    ("a100-sxm-80gb", 1): "8 A100",
    ("h200-sxm", 1): "8 H200",
    ("b200-sxm", 1): "8 B200",
    ("b200-sxm", 4): "32 B200",
}


def series_collective(
    chip: str,
    collective: str,
    size: float,
    nodes: int,
    network: float,
    latency: float,
    in_network: bool,
) -> Series:
    """Return time against size, split, and what was measured of that machine.

    Parameters
    ----------
    chip : str
        Key of the accelerator, [-]
    collective : str
        What is done, [-]
    size : float
        Bytes, [byte]
    nodes : int
        Nodes of eight, [-]
    network : float
        Network of an accelerator, [GB/s]
    latency : float
        Time of a step without bytes, [us]
    in_network : bool
        The switch adds, [-]
    """
    machine = Cluster(
        accelerator=chip, n_accelerators=8 * nodes, scaleout_bandwidth=network * GB,
        latency=latency * 1e-6,
    )  # fmt: skip
    added = in_network and collective == "all-reduce"
    grid = [collective_time(collective, float(s), machine, added) for s in _SIZES]
    here = collective_time(collective, size, machine, added)
    system = _MEASURED.get((chip, nodes)) if collective == "all-reduce" else None
    empty = (np.zeros(0), np.zeros(0))
    found = all_reduce_rates(system) if system else None
    return {
        "time": (_SIZES, np.array([1e3 * t.total for t in grid])),
        "latency": (_SIZES, np.array([1e3 * t.latency for t in grid])),
        "outside": (_SIZES, np.array([max(1e3 * t.outside, 1e-6) for t in grid])),
        "measured": (found.size, 1e3 * found.seconds) if found else empty,
        "here": (np.array([size]), np.array([1e3 * here.total])),
    }


def draw_collective(ax: "Axes", series: Series) -> None:
    """Draw the time of a collective against the size of the array."""
    ax.plot(*series["latency"], ":", color=GREY, gid="latency", label="latency")
    ax.plot(*series["outside"], "--", color=GREEN, gid="outside", label="between nodes")
    ax.plot(*series["time"], color=BLUE, gid="time", label="model, in all")
    ax.plot(*series["measured"], "^", color=PURPLE, ms=5, gid="measured",
            label="measured")  # fmt: skip
    ax.plot(*series["here"], "D", color=ORANGE, ms=8, gid="here", label="chosen")
    _size_axis(ax, 2.0**10, 2.0**36)
    ax.set_yscale("log")
    ax.set_ylim(1e-3, 1e4)
    ax.set_yticks([1e-2, 1, 100, 1e4], ["0.01", "1", "100", "10,000"])
    ax.minorticks_off()
    ax.set_xlabel("size of the array")
    ax.set_ylabel("time [ms]")
    ax.legend(loc="upper left", fontsize=8)
