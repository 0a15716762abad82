"""Explorer: shall we buy a faster network?"""

from chinchilla_lab.explorers.core import Choice, Explorer, LogSlider, Panel, Reading
from chinchilla_lab.figures.levers import (
    RUNS,
    draw_levers,
    levers_of,
    series_levers,
)
from chinchilla_lab.figures.style import Series
from chinchilla_lab.planning import Lever, Levers
from chinchilla_lab.units import text

__all__ = ["EXPLORER"]

_LINKS = ("50", "25", "5", "1")
_KINDS = {"searched": "as the search found it", "default": "all defaults"}


def _found(n: str, kind: str, network: str, rate: float, price: float) -> Levers:
    return levers_of(int(n), float(network), rate / 1000.0, price, kind)


def _series(n: str, kind: str, network: str, rate: float, price: float) -> Series:
    return series_levers(_found(n, kind, network, rate, price))


def _words(row: Lever) -> str:
    low, high = row.days_range
    said = f"{row.days:.3g} days ({low:.3g} to {high:.3g})"
    cheap, dear = row.dollars_range
    return (
        f"{said}, {text(row.dollars, 'USD')} ({text(cheap, 'USD')} to "
        f"{text(dear, 'USD')})"
    )


def _reading(label: str, row: Lever) -> Reading:
    if row.state == "not applicable" or row.days != row.days:
        return Reading(label=label, text=row.note)
    sign = "gains" if row.state == "open" else "keeps"
    return Reading(label=label, text=f"{sign} {_words(row)}", value=row.days)


def _readout(
    n: str, kind: str, network: str, rate: float, price: float
) -> tuple[Reading, ...]:
    found = _found(n, kind, network, rate, price)
    plan = found.plan
    soon, late = found.days_range
    cheap, dear = found.dollars_range
    free = [r for r in found.open if "accelerators" not in r.name]
    kept = [r for r in found.pulled if r.days == r.days]
    return (
        Reading(
            label="time, 90 % interval",
            text=f"{plan.days:.3g} days, {soon:.3g} to {late:.3g}",
            value=plan.days,
        ),
        Reading(
            label="cost, 90 % interval",
            text=f"{text(plan.dollars, 'USD')}, {text(cheap, 'USD')} to "
            f"{text(dear, 'USD')}",
            value=plan.dollars,
        ),
        Reading(
            label="layout", text=f"{plan.layout}, {plan.utilisation:.1%} of the peak"
        ),
        Reading(
            label="next lever",
            text=f"{free[0].name}: {_words(free[0])}" if free else "none gains",
        ),
        Reading(
            label="most to lose",
            text=f"{kept[0].name}: {_words(kept[0])}" if kept else "nothing",
        ),
        _reading("network twice as fast", found["network twice as fast"]),
        _reading("network, not a ninth of it", found["network as it is"]),
        _reading("hot spares", found["fast restarts (hot spares)"]),
        _reading("twice the accelerators", found["twice the accelerators"]),
        _reading("local training", found["local training (DiLoCo, four replicas)"]),
    )


EXPLORER = Explorer(
    name="levers",
    title="Shall we buy a faster network?",
    controls=(
        Choice(
            name="n", options={str(n): f"{n:,}" for n in RUNS}, value="64",
            label="H100 accelerators",
        ),
        Choice(name="kind", options=_KINDS, value="default", label="the plan"),
        Choice(
            name="network", options={g: f"{g} GB/s" for g in _LINKS}, value="50",
            label="network for each accelerator",
        ),
        LogSlider(
            name="rate", low=1.0, high=30.0, value=3.79, steps=20,
            label="failures of 1,000 nodes in a day",
        ),
        LogSlider(
            name="price", low=1.0, high=10.0, value=2.95, steps=20,
            label="price [USD per accelerator-hour]",
        ),
    ),
    series=_series,
    panels=(
        Panel(
            draw=draw_levers,
            title="What each lever is worth",
            alt="A bar for each lever, from one to the right: hatched bars are still "
            "to be gained, plain ones are in the plan; arrows mark the interval of "
            "each.",
            width=5.6,
            height=4.2,
        ),
    ),
    readout=_readout,
)  # fmt: skip
