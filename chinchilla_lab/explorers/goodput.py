"""Explorer: twice the nodes, the same share lost?"""

from chinchilla_lab.cluster.cost import as_price, rental_cost
from chinchilla_lab.cluster.failures import mttf
from chinchilla_lab.explorers.common import without_effect
from chinchilla_lab.explorers.core import (
    Explorer,
    LogSlider,
    Panel,
    Reading,
    Slider,
    Toggle,
)
from chinchilla_lab.figures.cluster_failures import (
    draw_interval,
    draw_nodes,
    interval_used,
    run_goodput,
    series_interval,
    series_nodes,
)
from chinchilla_lab.figures.style import Series
from chinchilla_lab.units import text

__all__ = ["EXPLORER"]

_NODE = 8
_CHIP = "h100-sxm-80gb"


def _series(
    nodes: float, rate: float, save: float, restart: float, blocking: bool,
    best: bool, interval: float, seed: float,
) -> Series:  # fmt: skip
    r, M = rate / 1000.0, float(mttf(nodes, rate / 1000.0))
    back, wanted = 60.0 * restart, 60.0 * interval
    tau = interval_used(wanted, save, M, best, blocking)
    return series_interval(
        M, save, back, tau, blocking, int(seed)
    ) | series_nodes(nodes, r, save, back, wanted, best, blocking)  # fmt: skip


def _readout(
    nodes: float, rate: float, save: float, restart: float, blocking: bool,
    best: bool, interval: float, seed: float,
) -> tuple[Reading, ...]:  # fmt: skip
    r, back, wanted = rate / 1000.0, 60.0 * restart, 60.0 * interval
    mine = run_goodput(nodes, r, save, back, wanted, best, blocking)
    other = run_goodput(nodes, r, save, back, wanted, best, not blocking)
    twice = run_goodput(2.0 * nodes, r, save, back, wanted, best, blocking)
    lost = 1.0 - mine.share
    hours = nodes * _NODE * 24.0 * lost
    cost = rental_cost(max(hours, 1e-9), as_price(None, _CHIP))
    how = "beside the work" if blocking else "while the job waits"
    return (
        Reading(label="time between failures", text=text(mine.mean_time, "s"),
                value=mine.mean_time),
        Reading(label="work between checkpoints", text=text(mine.interval, "s"),
                value=mine.interval),
        *without_effect(
            interval="the slider of the work between checkpoints, while the best "
            "interval is on" if best else None
        ),
        Reading(label="work kept", text=f"{mine.share:.2%}", value=mine.share),
        Reading(
            label="lost",
            text=f"saving {mine.saving:.2%}, done again {mine.repeated:.2%}, "
            f"restarts {mine.restarting:.2%}",
            value=lost,
        ),
        Reading(
            label="twice the nodes lose",
            text=f"{1.0 - twice.share:.2%} instead of {lost:.2%}",
            value=1.0 - twice.share,
        ),
        Reading(label="work kept the other way", text=f"{other.share:.2%}, saved {how}",
                value=other.share),
        Reading(
            label="lost a day",
            text=f"{hours:,.0f} accelerator-hours, {text(cost.low, 'USD')} to "
            f"{text(cost.high, 'USD')}",
            value=hours,
        ),
    )  # fmt: skip


EXPLORER = Explorer(
    name="goodput",
    title="Twice the nodes, the same share lost?",
    controls=(
        LogSlider(
            name="nodes", low=1, high=16384, value=2048, steps=56, unit="count",
            label="nodes of eight",
        ),
        LogSlider(
            name="rate", low=1.0, high=30.0, value=3.79, steps=60,
            label="failures of 1,000 nodes in a day",
        ),
        Slider(
            name="save", low=5, high=600, value=60, step=5, unit="s",
            label="a checkpoint takes",
        ),
        Slider(
            name="restart", low=1, high=60, value=5, unit="min",
            label="from a failure to the next new step",
        ),
        Toggle(name="blocking", value=True, label="the job waits for the checkpoint"),
        Toggle(name="best", value=True, label="best interval"),
        LogSlider(
            name="interval", low=1.0, high=600.0, value=60.0, steps=60, unit="min",
            label="else: work between checkpoints",
        ),
        Slider(name="seed", low=0, high=20, value=0, label="seed of the simulation"),
    ),
    series=_series,
    panels=(
        Panel(
            draw=draw_interval,
            title="Save too often, redo too much",
            alt="Saving falls and repeated work rises with the interval; their sum "
            "with the restarts is a valley, and simulated points lie on it.",
        ),
        Panel(
            draw=draw_nodes,
            title="What a larger job loses",
            alt="The share that is lost grows with the nodes; waiting for checkpoints "
            "costs more than writing them beside the work.",
        ),
    ),
    readout=_readout,
)  # fmt: skip
