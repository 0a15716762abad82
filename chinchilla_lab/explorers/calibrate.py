"""Explorer: what does an error of 2 % say?"""

from functools import lru_cache

import numpy as np

from chinchilla_lab.cluster import STACKS, UNCALIBRATED, MeasuredStep, Stack
from chinchilla_lab.explorers.core import (
    Choice,
    Explorer,
    Panel,
    Reading,
    Slider,
    Toggle,
)
from chinchilla_lab.figures.cluster_errors import draw_errors
from chinchilla_lab.figures.style import Series
from chinchilla_lab.validation import (
    Ablation,
    ablate,
    median_mfu_errors,
    plan_times,
    rank_correlation,
    ranking,
    scored_rows,
)

__all__ = ["EXPLORER"]

_TABLES = {
    "megatron-2021": "Megatron-LM 2021, Table 1",
    "korthikanti-2022": "Korthikanti 2022",
    "megascale-2024": "MegaScale 2024",
    "megatron-bridge-h100": "Megatron-Bridge, H100",
    "bloom-plans": "BLOOM, plans of one day",
    "simumax-b200": "SimuMax, B200",
    "nanotron": "nanotron",
}
_STACKS = {
    "megascale-2024": "megascale",
    "megatron-bridge-h100": "megatron-bridge",
    "bloom-plans": "bloom",
    "simumax-b200": "simumax-b200",
    "nanotron": "nanotron",
}
_WITHOUT = {
    "nothing": (),
    "tp": ("tp_traffic",),
    "bubble": ("bubble",),
    "dp": ("dp_traffic",),
    "memory": ("memory_traffic",),
    "links": ("tp_traffic", "pp_traffic", "dp_traffic"),
}


def _rows(table: str) -> tuple[MeasuredStep, ...]:
    if table == "bloom-plans":
        return plan_times(ranking()[0].group)[0]
    return scored_rows(table)


def _stack(table: str, own: bool) -> Stack:
    home = STACKS[_STACKS.get(table, "megatron-2021")]
    if own:
        return home
    return UNCALIBRATED.with_(fused=home.fused, parallel_block=home.parallel_block)


@lru_cache(maxsize=128)
def _scored(
    table: str, own: bool, without: str, refit: bool, gemm: float
) -> tuple[Ablation, np.ndarray, float]:
    rows = _rows(table)
    found = ablate(rows, _stack(table, own), _WITHOUT[without], None if refit else gemm)
    true = np.array([r.seconds / r.batch for r in rows])
    order = rank_correlation(true, true / (1.0 + found.errors))
    return found, median_mfu_errors(rows), order


def _series(table: str, own: bool, without: str, refit: bool, gemm: float) -> Series:
    found, baseline, _ = _scored(table, own, without, refit, gemm)
    x = np.arange(1.0, len(baseline) + 1.0)
    wide = 100.0 * found.mape
    return {
        "band": (
            np.array([0.0, 15.0, 15.0, 0.0]),
            np.array([-wide, -wide, wide, wide]),
        ),
        "baseline": (x, 100.0 * baseline),
        "model": (x, 100.0 * found.errors),
    }


def _readout(
    table: str, own: bool, without: str, refit: bool, gemm: float
) -> tuple[Reading, ...]:
    found, baseline, order = _scored(table, own, without, refit, gemm)
    bias = float(found.errors.mean())
    median = float(np.abs(baseline).mean())
    return (
        Reading(
            label="share of the best product", text=f"{found.gemm:.3f}",
            value=found.gemm,
        ),
        Reading(label="bias", text=f"{100 * bias:+.1f} %", value=bias),
        Reading(label="MAPE", text=f"{100 * found.mape:.1f} %", value=found.mape),
        Reading(label="max", text=f"{100 * found.largest:.1f} %", value=found.largest),
        Reading(
            label="baseline, median MFU", text=f"{100 * median:.1f} %", value=median
        ),
        Reading(label="Spearman of the times", text=f"{order:+.2f}", value=order),
    )  # fmt: skip


EXPLORER = Explorer(
    name="calibrate",
    title="What does a small error say?",
    controls=(
        Choice(name="table", options=_TABLES, value="megatron-2021", label="table"),
        Toggle(name="own", value=True, label="constants of its stack"),
        Choice(
            name="without",
            options={
                "nothing": "nothing",
                "tp": "TP traffic",
                "bubble": "the bubble",
                "dp": "DP traffic",
                "memory": "memory traffic",
                "links": "all messages",
            },
            value="nothing",
            label="leave out",
        ),
        Toggle(name="refit", value=False, label="fit the share anew"),
        Slider(
            name="gemm", low=0.4, high=1.0, value=0.8, step=0.01,
            label="share of the best product, if not fitted",
        ),
    ),
    series=_series,
    panels=(
        Panel(
            draw=draw_errors,
            title="Error of every row",
            alt="Errors of the rows of a published table: dots of the model inside a "
            "grey band of its mean error, crosses of the median utilisation.",
            width=4.1,
            height=3.2,
        ),
    ),
    readout=_readout,
)  # fmt: skip
