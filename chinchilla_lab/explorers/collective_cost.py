"""Explorer: is bandwidth one number?"""

import numpy as np

from chinchilla_lab.cluster import Cluster, collective_time
from chinchilla_lab.explorers.common import without_effect
from chinchilla_lab.explorers.core import (
    Choice,
    Explorer,
    LogSlider,
    Panel,
    Reading,
    Toggle,
)
from chinchilla_lab.figures.cluster_links import draw_collective, series_collective
from chinchilla_lab.figures.style import Series
from chinchilla_lab.units import GB, text

__all__ = ["EXPLORER"]

_CHIPS = {"a100-sxm-80gb": "A100", "h200-sxm": "H200", "b200-sxm": "B200"}
_NODES = ("1", "2", "4", "8", "16", "64", "256", "1024")


def _series(
    chip: str,
    collective: str,
    size: float,
    nodes: str,
    network: float,
    latency: float,
    in_network: bool,
) -> Series:
    return series_collective(
        chip, collective, size, int(nodes), network, latency, in_network
    )


def _readout(
    chip: str,
    collective: str,
    size: float,
    nodes: str,
    network: float,
    latency: float,
    in_network: bool,
) -> tuple[Reading, ...]:
    machine = Cluster(
        accelerator=chip, n_accelerators=8 * int(nodes),
        scaleout_bandwidth=network * GB, latency=latency * 1e-6,
    )  # fmt: skip
    added = in_network and collective == "all-reduce"
    found = collective_time(collective, size, machine, added)
    total = found.total
    series = _series(chip, collective, size, nodes, network, latency, in_network)
    sizes, times = series["measured"]
    if len(sizes):
        near = int(np.argmin(np.abs(np.log(sizes / size))))
        said = f"{times[near]:.4g} ms at {text(sizes[near], 'byte')}"
    else:
        said = "not for this machine"
    return (
        Reading(label="time", text=f"{1e3 * total:.4g} ms", value=1e3 * total),
        Reading(label="measured", text=said),
        Reading(
            label="algbw", text=f"{found.algbw / GB:.4g} GB/s", value=found.algbw / GB
        ),
        Reading(
            label="busbw", text=f"{found.busbw / GB:.4g} GB/s", value=found.busbw / GB
        ),
        Reading(
            label="share of the latency",
            text=f"{100 * found.latency / total:.1f} %",
            value=found.latency / total,
        ),
        Reading(
            label="share between nodes",
            text=f"{100 * found.outside / total:.1f} %",
            value=found.outside / total,
        ),
        *without_effect(
            network="the network, within one node" if nodes == "1" else None,
            in_network="the adding switch, which only helps an all-reduce"
            if in_network and not added
            else None,
        ),
    )


EXPLORER = Explorer(
    name="collective_cost",
    title="Is bandwidth one number?",
    controls=(
        Choice(name="chip", options=_CHIPS, value="b200-sxm", label="accelerator"),
        Choice(
            name="collective",
            options={
                "all-reduce": "all-reduce",
                "all-gather": "all-gather",
                "reduce-scatter": "reduce-scatter",
                "all-to-all": "all-to-all",
            },
            value="all-reduce",
            label="collective",
        ),
        LogSlider(
            name="size", low=2.0**10, high=2.0**36, value=2.0**20, steps=26,
            label="size of the array", unit="byte",
        ),
        Choice(
            name="nodes", options={n: n for n in _NODES}, value="1",
            label="nodes of eight",
        ),
        LogSlider(
            name="network", low=1, high=400, value=50, steps=60,
            label="network of an accelerator, one way", unit="GB/s",
        ),
        LogSlider(
            name="latency", low=1, high=1000, value=15, steps=60,
            label="latency of a step", unit="us",
        ),
        Toggle(name="in_network", value=False, label="the switch of a node adds"),
    ),
    series=_series,
    panels=(
        Panel(
            draw=draw_collective,
            title="Time against size",
            alt="Time of a collective on two logarithmic scales: flat at the latency "
            "for small arrays, then rising with the bytes; measured points above it.",
            width=4.1,
            height=3.2,
        ),
    ),
    readout=_readout,
)  # fmt: skip
