"""Explorer: does a published run fall into its interval?"""

from chinchilla_lab.explorers.core import Choice, Explorer, Panel, Reading
from chinchilla_lab.figures.replicate import (
    COUNTS,
    RUNS,
    draw_replay,
    hours_said,
    over_memory,
    replays,
    series_replay,
)
from chinchilla_lab.figures.style import Series
from chinchilla_lab.planning.results import Plan
from chinchilla_lab.units import GB, text

__all__ = ["EXPLORER"]

_BATCHES = {str(2**k): f"{2**k / 1e6:.1f}M tokens" for k in range(21, 26)}
_STACKS = {
    "": "usual for the accelerator",
    "llama-3": "calibrated to Llama 3",
    "megatron-bridge": "calibrated, Megatron family",
    "uncalibrated": "upper bound",
}


def _series(run: str, n: str, batch: str, stack: str) -> Series:
    return series_replay(run, int(batch), stack, int(n))


def _hours(hours: float) -> str:
    return f"{text(hours, 'count')} accelerator-hours"


def _layout(plan: Plan) -> str:
    words = str(plan.layout)
    over = over_memory(plan)
    if over:
        words += (
            f"; as published, though the memory model has it {over / GB:.0f} GB too "
            "large for the card"
        )
    return words


def _inside(low: float, high: float, hours: float) -> str:
    side = "inside"
    if hours < low:
        side = "outside: the run took less"
    elif hours > high:
        side = "outside: the run took more"
    return f"{text(low, 'count')} to {text(high, 'count')}: {side}"


def _readout(run: str, n: str, batch: str, stack: str) -> tuple[Reading, ...]:
    said = hours_said(run)
    stated = (
        "accelerators not stated"
        if said.n_accelerators is None
        else f"up to {said.n_accelerators:,} accelerators"
    )
    first = (
        Reading(label="published", text=f"{_hours(said.hours)}, {stated}",
                value=said.hours),
        Reading(label="tokens", text=f"{text(said.D_tokens, 'token')} tokens",
                value=said.D_tokens),
    )  # fmt: skip
    found = replays(run, int(batch), stack).get(int(n))
    if found is None:
        none = "no layout divides and fits; choose more accelerators or another batch"
        return (*first, Reading(label="computed", text=none))
    plan = found.plan
    off = said.hours / plan.hours - 1.0
    return (
        *first,
        Reading(label="computed", text=_hours(plan.hours), value=plan.hours),
        Reading(
            label="90 % interval of the steps",
            text=_inside(found.low, found.high, said.hours),
        ),
        Reading(
            label="of the whole run, itself left out",
            text=_inside(found.whole_low, found.whole_high, said.hours),
        ),
        Reading(label="published over computed", text=f"{off:+.0%}", value=off),
        Reading(label="days", text=text(plan.days, ""), value=plan.days),
        Reading(label="6ND over the peak", text=f"{plan.utilisation:.1%}",
                value=plan.utilisation),
        Reading(label="layout", text=_layout(plan)),
    )  # fmt: skip


EXPLORER = Explorer(
    name="replicate",
    title="Does a published run fall into its interval?",
    controls=(
        Choice(
            name="run", options={k: hours_said(k).model for k in RUNS},
            value="llama-2-70b", label="published run",
        ),
        Choice(
            name="n", options={str(k): f"{k:,}" for k in COUNTS}, value="2048",
            label="accelerators",
        ),
        Choice(name="batch", options=_BATCHES, value="4194304", label="batch"),
        Choice(name="stack", options=_STACKS, value="", label="constants of the step"),
    ),
    series=_series,
    panels=(
        Panel(
            draw=draw_replay,
            title="Computed over published hours",
            alt="Hours over the published ones against accelerators: a line of the "
            "computed in a band, the interval of its steps, and a dotted line at one.",
            width=4.1,
            height=3.4,
        ),
    ),
    readout=_readout,
)  # fmt: skip
