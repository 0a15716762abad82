"""Hours of published runs against the interval that a plan gives them."""

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from chinchilla_lab.cluster.cost import PublishedHours, published_hours
from chinchilla_lab.cluster.hardware import Cluster
from chinchilla_lab.cluster.layout import Layout
from chinchilla_lab.figures.style import BLUE, INK, ORANGE, SKY, Series, legend_above
from chinchilla_lab.planning.doubt import intervals
from chinchilla_lab.planning.plans import typed_plan
from chinchilla_lab.planning.results import Plan
from chinchilla_lab.shape.known import SHAPES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "COUNTS",
    "RUNS",
    "Replay",
    "draw_replay",
    "hours_said",
    "over_memory",
    "replays",
    "series_replay",
]

Array = NDArray[np.float64]
COUNTS = (256, 512, 1024, 2048, 4096, 8192, 16384)
"""Accelerators on which a run is computed again."""
RUNS = {
    "llama-2-7b": ("llama-2-7b", 4096),
    "llama-2-70b": ("llama-2-70b", 4096),
    "llama-3-8b": ("llama-3-8b", 8192),
    "llama-3-70b": ("llama-3-70b", 8192),
    "llama-3.1-405b": ("llama-3-405b", 8192),
}
"""Runs by their key in the table of hours: shape, and tokens of a sequence."""
# tensor, pipeline and chunks of a run whose layout was published, as its page gives
# them: 126 layers on 16 stages are uneven, which a search of even stages leaves out
LAYOUTS = {"llama-3.1-405b": (8, 16, 4)}
Y = (0.3, 3.0)


class Replay(NamedTuple):
    """A run on a number of accelerators, and the intervals of its hours.

    Of its steps alone, and of the whole run, with the run left out of its own.
    """

    plan: Plan
    low: float
    high: float
    whole_low: float
    whole_high: float


@lru_cache(maxsize=64)
def replays(run: str, batch: int, stack: str) -> dict[int, Replay]:
    """Plan a published run on each of :data:`COUNTS` accelerators.

    Parameters
    ----------
    run : str
        Key of :data:`RUNS`, [-]
    batch : int
        Tokens of a step, [token]
    stack : str
        Constants of the step model; empty for those usual for the accelerator, [-]

    Returns
    -------
    dict
        Plans by number of accelerators; those where none divides and fits are left out
    """
    said = hours_said(run)
    key, seq_len = RUNS[run]
    found: dict[int, Replay] = {}
    for n in COUNTS:
        machine = Cluster(accelerator=said.accelerator, n_accelerators=n)
        made = [
            plan
            for layout in (None, *_published(run, n))
            if (plan := _typed(machine, key, said.D_tokens, batch // seq_len, layout,
                               seq_len, stack)) is not None
        ]  # fmt: skip
        if not made:
            continue
        plan = min(made, key=lambda p: p.hours)
        steps = intervals(plan, draws=1000, light=True, whole_run=False).hours
        whole = intervals(plan, draws=1000, light=True, leave_out=(run,)).hours
        found[n] = Replay(plan, *steps, *whole)
    return found


def _published(run: str, n: int) -> tuple[Layout, ...]:
    # a layout that is given is timed whether it fits or not; where the run ran, it did
    if run not in LAYOUTS or n != hours_said(run).n_accelerators:
        return ()
    t, p, v = LAYOUTS[run]
    return (
        Layout(tp=t, pp=p, dp=n // (t * p), n_chunks=v, zero=1, sequence_parallel=True),
    )


def _typed(
    machine: Cluster, key: str, D: float, batch: int, layout: Layout | None,
    seq_len: int, stack: str,
) -> Plan | None:  # fmt: skip
    try:
        return typed_plan(
            machine, SHAPES[key], D, batch, layout, seq_len=seq_len, stack=stack or None
        )
    except ValueError:  # nothing fits, or a published layout does not divide the batch
        return None


def over_memory(plan: Plan) -> float:
    """Return by how much the memory model overfills a card, [byte]."""
    used = 0.0 if plan.speed is None else plan.speed.memory
    return max(0.0, used - plan.problem.cluster.chip.memory)


def hours_said(run: str) -> PublishedHours:
    """Return what was published of a run."""
    return published_hours()[run]


def series_replay(run: str, batch: int, stack: str, n: int) -> Series:
    """Return computed hours over published ones against the accelerators.

    Parameters
    ----------
    run : str
        Key of :data:`RUNS`, [-]
    batch : int
        Tokens of a step, [token]
    stack : str
        Constants of the step model, [-]
    n : int
        Accelerators that are marked, [-]

    Returns
    -------
    dict
        ``band``, ``middle``, ``here``: accelerators and hours over the published [-]
    """
    found = replays(run, batch, stack)
    said = hours_said(run).hours
    x = np.array([float(k) for k in found])
    low, middle, high = (
        np.clip(np.array([getter(r) for r in found.values()]) / said, *Y)
        for getter in (lambda r: r.low, lambda r: r.plan.hours, lambda r: r.high)
    )
    here = found.get(n)
    none = (np.zeros(0), np.zeros(0))
    return {
        "band": (np.r_[x, x[::-1]], np.r_[low, high[::-1]])
        if len(x)
        else (np.full(3, float(COUNTS[0])), np.full(3, Y[0])),
        "middle": (x, middle),
        "here": none
        if here is None
        else (np.array([float(n)]), np.clip([here.plan.hours / said], *Y)),
    }


def draw_replay(ax: "Axes", series: Series) -> None:
    """Draw computed hours over published ones against the accelerators."""
    ax.fill(*series["band"], facecolor=SKY, alpha=0.3, lw=0, gid="band",
            label="90 % interval")  # fmt: skip
    ax.plot(*series["middle"], color=BLUE, gid="middle", label="computed")
    ax.axhline(1.0, color=INK, ls=":", label="published")
    ax.plot(*series["here"], "D", color=ORANGE, ms=7, gid="here", label="chosen")
    ax.set_xscale("log", base=2)
    ax.set_xlim(COUNTS[0], COUNTS[-1])
    ax.set_xticks([256, 1024, 4096, 16384], ["256", "1,024", "4,096", "16,384"])
    ax.set_yscale("log")
    ax.set_ylim(*Y)
    ax.set_yticks(
        [0.3, 0.5, 0.7, 1.0, 1.5, 2.0], ["0.3", "0.5", "0.7", "1", "1.5", "2"]
    )
    ax.minorticks_off()
    ax.set_xlabel("accelerators")
    ax.set_ylabel("hours over the published")
    legend_above(ax, ncols=2, rows=2)
