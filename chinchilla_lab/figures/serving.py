"""What service costs: the lifetime bill by item, and the roofline of decoding."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from chinchilla_lab.allocation.optimum import optimal_for_params
from chinchilla_lab.cluster.accelerators import find
from chinchilla_lab.figures.isoflop import loss_law
from chinchilla_lab.figures.lifetime import ring, size_axis, size_grid
from chinchilla_lab.figures.style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    SKY,
    Series,
    legend_above,
    log_axis,
)
from chinchilla_lab.inference.decode import (
    MEASURED_SLOWDOWN,
    Roofline,
    ServedModel,
    ServingHardware,
    decode_step,
)
from chinchilla_lab.inference.money import (
    SARDANA_2024_SERVING,
    SARDANA_2024_TRAINING,
    Bill,
    Demand,
    ServingCost,
    TrainingCost,
    bill,
    cheapest,
)
from chinchilla_lab.laws.families import LossLaw
from chinchilla_lab.shape.known import SHAPES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "ACCELERATOR",
    "bill_for",
    "costs",
    "draw_bill",
    "draw_decode_mfu",
    "draw_decode_rate",
    "on_accelerators",
    "series_bill",
    "series_decode",
    "served",
]

ACCELERATOR = "h100-sxm-80gb"
_FAR = 1e3  # off the axes
BATCHES = np.geomspace(1.0, 4096.0, 73)


def costs(
    mfu: float, prefill: float, decode: float, usd_train: float, usd_serve: float
) -> tuple[TrainingCost, ServingCost]:
    """Return prices on the accelerator of the reference code, at own utilisations.

    Parameters
    ----------
    mfu : float
        Utilisation in training, of the bf16 peak, [-]
    prefill : float
        Utilisation while prompts are read, of the fp8 peak, [-]
    decode : float
        Utilisation while answers are written, of the fp8 peak, [-]
    usd_train : float
        Accelerator in training, [USD/hour]
    usd_serve : float
        Accelerator in service, [USD/hour]

    Returns
    -------
    tuple
        Training and service, [-]
    """
    return (
        replace(SARDANA_2024_TRAINING, mfu=mfu, usd_per_hour=usd_train),
        replace(
            SARDANA_2024_SERVING,
            prefill_mfu=prefill,
            decode_mfu=decode,
            usd_per_hour=usd_serve,
        ),
    )


def bill_for(
    law: LossLaw,
    quality: float,
    training: TrainingCost,
    serving: ServingCost,
    demand: Demand,
) -> Bill:
    """Return the cheapest model of a quality, named by a compute-optimal size."""
    loss = optimal_for_params(law, quality).L
    assert loss is not None  # a law with a loss gave it
    return cheapest(law, training, serving, demand, loss)


def series_bill(
    law: str,
    quality: float,
    training: TrainingCost,
    serving: ServingCost,
    demand: Demand,
) -> Series:
    """Bill of every size that reaches one loss, stacked.

    Parameters
    ----------
    law : str
        Key of a law of the band, [-]
    quality : float
        Size whose compute-optimal loss is the target, [parameter]
    training : TrainingCost
        Price of training, [-]
    serving : ServingCost
        Price of service, [-]
    demand : Demand
        Requests, [-]

    Returns
    -------
    dict
        ``train``, ``prefill`` and ``decode`` as areas on top of each other, ``total``
        their upper edge, ``least`` its lowest point: size over the compute-optimal
        one, and percent of that model's bill
    """
    chosen = loss_law(law)
    best = bill_for(chosen, quality, training, serving, demand)
    k = size_grid(chosen, 81)
    size = k * best.plan.compute_optimal.N
    every = bill(chosen, size, training, serving, demand, best.plan.L)
    unit = 100.0 / best.reference
    steps = [np.zeros_like(k)]
    for part in (every.training, every.prefill, every.decode):
        steps.append(np.minimum(steps[-1] + part * unit, _FAR))
    return {
        "train": ring(k, steps[0], steps[1]),
        "prefill": ring(k, steps[1], steps[2]),
        "decode": ring(k, steps[2], steps[3]),
        "total": (k, steps[3]),
        "least": (np.array([best.plan.size_factor]), np.array([best.total * unit])),
    }


def draw_bill(ax: "Axes", series: Series) -> None:
    """Draw the stacked bill against size."""
    looks = {
        "train": (BLUE, "//", "training"),
        "prefill": (GREEN, "--", "prefill"),
        "decode": (SKY, "\\\\", "decode"),
    }
    for key, (colour, hatch, label) in looks.items():
        ax.fill(*series[key], facecolor=colour, hatch=hatch, edgecolor="#ffffff",
                lw=0.4, alpha=0.8, gid=key, label=label)  # fmt: skip
    ax.plot(*series["total"], color=ORANGE, gid="total", label="total")
    ax.plot(*series["least"], "D", color=ORANGE, ms=8, gid="least", label="cheapest")
    size_axis(ax)
    ax.set_ylim(0.0, 200.0)
    ax.set_ylabel("bill [% of that at k = 1]")
    legend_above(ax, ncols=3, rows=2)


def served(shape: str, weight_bytes: float) -> ServedModel:
    """Return a known model with weights of some bytes and a cache in bf16."""
    return ServedModel.from_shape(SHAPES[shape], weight_bytes=weight_bytes)


def on_accelerators(n: float) -> ServingHardware:
    """Return some accelerators of :data:`ACCELERATOR` that hold one model."""
    chip = find(ACCELERATOR)
    return ServingHardware(
        peak_flops=chip.peak("bf16"),
        bandwidth=chip.hbm_bandwidth,
        memory=chip.hbm_bytes,
        n_accelerators=round(n),
    )


def series_decode(
    model: ServedModel, hardware: ServingHardware, batch: float, context: float
) -> Series:
    """Most tokens a second and accelerator, and the utilisation, against batch.

    Parameters
    ----------
    model : ServedModel
        Weights and cache, [-]
    hardware : ServingHardware
        Accelerators that share it, [-]
    batch : float
        Your batch, [token]
    context : float
        Tokens in the cache of each sequence, [token]

    Returns
    -------
    dict
        ``bound``, ``empty`` (no cache), ``measured`` (area) and ``yours``: batch
        [token] and speed [token/s]; ``mfu``, ``mfu-empty`` and ``mfu-yours`` in percent
    """
    roof = decode_step(model, hardware, BATCHES, context)
    empty = decode_step(model, hardware, BATCHES, 0.0)
    here = decode_step(model, hardware, batch, context)
    fast, slow = MEASURED_SLOWDOWN
    at = np.array([batch])

    def percent(found: Roofline) -> np.ndarray:
        return 100.0 * np.atleast_1d(found.mfu)

    return {
        "measured": ring(
            BATCHES, roof.per_accelerator / slow, roof.per_accelerator / fast
        ),
        "empty": (BATCHES, empty.per_accelerator),
        "bound": (BATCHES, roof.per_accelerator),
        "yours": (at, np.atleast_1d(here.per_accelerator)),
        "mfu-empty": (BATCHES, percent(empty)),
        "mfu": (BATCHES, percent(roof)),
        "mfu-yours": (at, percent(here)),
    }


def _batch_axis(ax: "Axes") -> None:
    ax.set_xscale("log")
    ax.set_xlim(BATCHES[0], BATCHES[-1])
    ax.minorticks_off()
    ticks = [1, 4, 16, 64, 256, 1024, 4096]
    ax.set_xticks(ticks, [str(t) for t in ticks])
    ax.set_xlabel("sequences decoded together")


def draw_decode_rate(ax: "Axes", series: Series) -> None:
    """Draw the bound on speed and the range that measurements suggest."""
    ax.fill(*series["measured"], facecolor=SKY, edgecolor=SKY, alpha=0.3,
            gid="measured", label="as measured elsewhere")  # fmt: skip
    ax.plot(*series["empty"], ":", color=GREY, gid="empty", label="at most, no context")
    ax.plot(*series["bound"], color=BLUE, gid="bound", label="at most")
    ax.plot(*series["yours"], "D", color=ORANGE, ms=7, gid="yours", label="you")
    _batch_axis(ax)
    log_axis(ax, "y", 1.0, 1e5, "token")
    ax.set_ylabel("token/s of one accelerator")
    ax.legend(loc="lower right")


def draw_decode_mfu(ax: "Axes", series: Series) -> None:
    """Draw the utilisation that the bound allows."""
    ax.plot(*series["mfu-empty"], ":", color=GREY, gid="mfu-empty", label="no context")
    ax.plot(*series["mfu"], color=BLUE, gid="mfu", label="at most")
    ax.plot(*series["mfu-yours"], "D", color=ORANGE, ms=7, gid="mfu-yours", label="you")
    _batch_axis(ax)
    log_axis(ax, "y", 0.01, 100.0, "")
    ax.set_ylabel("decode utilisation [%]")
    ax.legend(loc="lower right")
