"""Levers as bars: from the defaults to a plan, and what each is worth."""

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from chinchilla_lab.cluster.accelerators import Price
from chinchilla_lab.cluster.failures import DEFAULT_RELIABILITY
from chinchilla_lab.cluster.hardware import Cluster
from chinchilla_lab.cluster.layout import Layout
from chinchilla_lab.figures.planning import CHIP
from chinchilla_lab.figures.style import (
    BLUE,
    GREEN,
    INK,
    ORANGE,
    PURPLE,
    Drawing,
    Series,
    draw_on_figure,
)
from chinchilla_lab.planning.defaults import Steps
from chinchilla_lab.planning.levers import Levers, levers
from chinchilla_lab.planning.plans import typed_plan
from chinchilla_lab.planning.results import Plan
from chinchilla_lab.shape.transformer import TransformerShape
from chinchilla_lab.units import GB

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "BARS",
    "RUNS",
    "draw_levers",
    "levers_of",
    "plot_steps",
    "run_plan",
    "series_levers",
]

Array = NDArray[np.float64]

# worked shapes of the three clusters: layers, width, heads, batch, tokens, days
RUNS: dict[int, tuple[int, int, int, int, float, float]] = {
    64: (48, 6144, 48, 2048, 522e9, 30.0),
    512: (80, 8192, 64, 4096, 1.27e12, 30.0),
    16384: (96, 20480, 160, 16384, 9.6e12, 60.0),
}
"""A run for each cluster, [-], [-], [-], [sequence], [token] and [day]."""
# bars from top to bottom: lever, and how it is written
BARS: dict[str, str] = {
    "other layouts": "other layouts",
    "no full recomputation": "no full recomputation",
    "sequence parallelism": "sequence parallelism",
    "sharded states (ZeRO)": "sharded states",
    "interleaved stages": "interleaved stages",
    "overlap of communication": "overlap",
    "fp8 products": "fp8",
    "batch above 4.2M tokens": "batch above 4.2M",
    "network twice as fast": "network × 2",
    "network as it is": "network, not a ninth",
    "asynchronous checkpoints": "async. checkpoints",
    "frequent checkpoints": "one in 5 min, not 60",
    "fast restarts (hot spares)": "hot spares",
}
"""Levers that are drawn."""
HALF = 0.34
LOW, HIGH = 0.93, 4.0


@lru_cache(maxsize=64)
def run_plan(n: int, network: float, rate: float, price: float, kind: str) -> Plan:
    """Return the run of an example cluster, laid out by search or by default.

    Parameters
    ----------
    n : int
        Accelerators, a key of :data:`RUNS`, [-]
    network : float
        Bandwidth between nodes for each accelerator, [GB/s]
    rate : float
        Failures of a node, [1/(node day)]
    price : float
        Rental, [USD/h]
    kind : {"searched", "default"}
        The fastest layout; or tensor parallelism over the node, one sequence at a time,
        everything recomputed, checkpoints once an hour, [-]

    Returns
    -------
    Plan
        The plan, [-]
    """
    layers, width, heads, batch, D, _ = RUNS[n]
    shape = TransformerShape(
        n_layers=layers, d_model=width, d_ff=4 * width, n_heads=heads,
        vocab_size=131072, gated=False,
    )  # fmt: skip
    machine = Cluster(
        accelerator=CHIP, n_accelerators=n, scaleout_bandwidth=network * GB
    )
    reliable = DEFAULT_RELIABILITY.with_(
        failures_per_node_day=rate, band=(min(rate, 3.79e-3), max(rate, 23.7e-3))
    )
    asked = Price(low=price, high=price, date="2026-05", source="own")
    layout = None
    if kind == "default":
        stages = {64: 1, 512: 2, 16384: 16}[n]
        layout = Layout(tp=8, pp=stages, dp=n // 8 // stages, recompute="full", zero=1)
        reliable = reliable.with_(restart=900.0, interval=3600.0)
    return typed_plan(
        machine, shape, D, batch, layout, price=asked, reliability=reliable
    )


@lru_cache(maxsize=64)
def levers_of(n: int, network: float, rate: float, price: float, kind: str) -> Levers:
    """Return the levers of such a run.

    Parameters
    ----------
    n : int
        Accelerators, a key of :data:`RUNS`, [-]
    network : float
        Bandwidth between nodes for each accelerator, [GB/s]
    rate : float
        Failures of a node, [1/(node day)]
    price : float
        Rental, [USD/h]
    kind : {"searched", "default"}
        How the run is laid out, [-]

    Returns
    -------
    Levers
        The levers, [-]
    """
    return levers(run_plan(n, network, rate, price, kind), shapes=False)


def series_levers(found: Levers) -> Series:
    """Return the bars of levers: slower time over faster, a row for each.

    Parameters
    ----------
    found : Levers
        The levers, [-]

    Returns
    -------
    dict
        ``open`` and ``pulled`` are outlines of all bars of a state, ``low`` and
        ``high`` the ends of their intervals: time factor [-] and row [-]
    """
    rows = {r.name: (i, r) for i, r in enumerate(found.rows)}
    made: Series = {}
    low, high, at = [], [], []
    for state in ("open", "pulled"):
        x, y = [1.0], [-1.0]
        for i, name in enumerate(BARS):
            row = rows[name][1] if name in rows else None
            if row is None or row.state != state or not np.isfinite(row.factor):
                continue
            end = float(np.clip(row.worth, LOW, HIGH))
            x += [1.0, end, end, 1.0]
            y += [i - HALF, i - HALF, i + HALF, i + HALF]
            ends = np.clip(row.worth_range, LOW, HIGH)
            low.append(float(ends[0]))
            high.append(float(ends[1]))
            at.append(float(i))
        if len(x) < 3:
            x, y = [1.0] * 3, [-1.0] * 3
        made[state] = (np.array(x), np.array(y))
    made["low"] = (np.array(low), np.array(at))
    made["high"] = (np.array(high), np.array(at))
    return made


def draw_levers(ax: "Axes", series: Series) -> None:
    """Draw what each lever is worth."""
    ax.fill(*series["open"], facecolor=ORANGE, hatch="//", edgecolor="#ffffff", lw=0,
            gid="open", label="to gain")  # fmt: skip
    ax.fill(*series["pulled"], color=BLUE, lw=0.4, gid="pulled", label="in the plan")
    ax.plot(*series["low"], "<", color=INK, ms=4, gid="low", label="interval")
    ax.plot(*series["high"], ">", color=INK, ms=4, gid="high")
    ax.axvline(1.0, color=INK, lw=0.8)
    ax.set_xscale("log")
    ax.set_xlim(LOW, HIGH)
    ax.set_xticks([1, 1.25, 1.5, 2, 3, 4], labels=["1", "1.25", "1.5", "2", "3", "4"])
    ax.minorticks_off()
    ax.set_yticks(np.arange(len(BARS)), labels=list(BARS.values()))
    ax.set_ylim(len(BARS) - 0.4, -0.6)
    ax.set_xlabel("slower time over faster time")
    ax.figure.subplots_adjust(left=0.3)
    ax.legend(loc="lower right")


def _wrapped(name: str) -> str:
    """Break a label at the space nearest to its middle."""
    spaces = [i for i, c in enumerate(name) if c == " "]
    if not spaces:
        return name
    at = min(spaces, key=lambda i: abs(i - len(name) / 2))
    return f"{name[:at]}\n{name[at + 1 :]}"


def plot_steps(steps: Mapping[str, Steps]) -> Drawing:
    """Plot the steps from defaults to the plan for several clusters.

    Parameters
    ----------
    steps : mapping of Steps
        Steps by the name of the cluster, [-]

    Returns
    -------
    Drawing
        The figure, [-]
    """
    names = next(iter(steps.values())).names
    x = np.arange(len(names), dtype=float)
    series: Series = {
        key: (x, np.array(s.days) / s.days[-1]) for key, s in steps.items()
    }
    days = {key: s.days for key, s in steps.items()}

    def draw(ax: "Axes", data: Series) -> None:
        looks = ((ORANGE, "//"), (GREEN, ".."), (BLUE, ""), (PURPLE, "xx"))
        wide = 0.8 / len(data)
        for i, (key, (at, y)) in enumerate(data.items()):
            colour, hatch = looks[i % len(looks)]
            left = at + (i - 0.5 * (len(data) - 1)) * wide
            ax.bar(left, y, 0.92 * wide, color=colour, hatch=hatch, edgecolor="white",
                   lw=0.5, label=f"the {key.title()}")  # fmt: skip
            for where, height, day in zip(left, y, days[key], strict=True):
                ax.text(where, height + 0.02, f"{day:.0f}", ha="center", fontsize=7.5)
        ax.axhline(1.0, color=INK, lw=0.8)
        ax.set_ylim(0.0, 2.1)
        ax.set_xticks(x, labels=list(map(_wrapped, names)))
        ax.set_ylabel("time over the plan's; days above")
        ax.legend(loc="upper right")

    return draw_on_figure(draw, series, width=6.2, height=3.6)
