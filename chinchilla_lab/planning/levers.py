"""What a team can do about a plan, each thing priced in days and dollars."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from chinchilla_lab.checks import one_of
from chinchilla_lab.planning.doubt import Range
from chinchilla_lab.planning.lever_list import every_lever
from chinchilla_lab.planning.pricing import Lever, Pricing
from chinchilla_lab.planning.results import Plan
from chinchilla_lab.tables import Cells, Shown, span
from chinchilla_lab.units import text

__all__ = ["Lever", "LeverTable", "Levers", "levers", "side_by_side"]

STATES = {"open": "to gain", "pulled": "in the plan",
          "not applicable": "not applicable"}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Levers(Shown):
    """Levers of a plan: those that would gain, those it has, and the rest.

    Parameters
    ----------
    rows : tuple of Lever
        Open levers first, then pulled ones, each by days and then by dollars, [-]
    plan : Plan
        The plan, [-]
    days_range : tuple of float
        Interval of its own time, [day]
    dollars_range : tuple of float
        Interval of its own cost, [USD]
    """

    rows: tuple[Lever, ...]
    plan: Plan
    days_range: Range
    dollars_range: Range

    def __getitem__(self, name: str) -> Lever:
        for row in self.rows:
            if row.name == name:
                return row
        known = ", ".join(r.name for r in self.rows)
        raise ValueError(f"no lever {name!r}; there are: {known}")

    @property
    def open(self) -> tuple[Lever, ...]:
        """Those that the plan could still gain, [-]."""
        return tuple(r for r in self.rows if r.state == "open")

    @property
    def pulled(self) -> tuple[Lever, ...]:
        """Those in the plan, with what undoing them would cost, [-]."""
        return tuple(r for r in self.rows if r.state == "pulled")

    def _cells(self) -> Cells:
        rows = [
            [
                r.name,
                STATES[r.state],
                short(r.days, "+"),
                span(r.days_range, lambda x: short(x, "+")),
                _money(r.dollars),
                span(r.dollars_range, _money),
                _number(r.worth, ".3f"),
                span(r.worth_range, "{:.2f}".format),
                r.note,
                r.measured,
            ]
            for r in self.rows
        ]
        head = ("lever", "state", "worth [day]", "interval [day]", "worth [USD]",
                "interval [USD]", "time factor [-]", "factor, from and to [-]",
                "changed, or why not", "measured")  # fmt: skip
        caption = (
            f"{self.plan.days:.3g} days on {self.plan.problem.n:,} accelerators; each "
            "lever alone against this plan, so that they neither add nor multiply"
        )
        return Cells(head, rows, caption)


@dataclass(frozen=True, kw_only=True)
class LeverTable(Shown):
    """Levers of several plans side by side.

    Parameters
    ----------
    found : dict of Levers
        Levers by the name of the plan, [-]
    unit : {"day", "USD"}
        What they are priced in, [-]
    """

    found: dict[str, Levers]
    unit: str

    def _cells(self) -> Cells:
        names: dict[str, float] = {}
        for levers_of in self.found.values():
            for r in levers_of.rows:
                share = r.days / levers_of.plan.days if np.isfinite(r.days) else -np.inf
                names[r.name] = max(names.get(r.name, -np.inf), share)
        rows = [
            [name, *(self._cell(found, name) for found in self.found.values())]
            for name in sorted(names, key=lambda name: -names[name])
        ]
        head = ("lever", *(f"{name.title()} [{self.unit}]" for name in self.found))
        word = "days" if self.unit == "day" else "dollars"
        return Cells(head, rows, f"{word} to gain, or in the plan, with intervals")

    def _cell(self, found: Levers, name: str) -> str:
        row = next((r for r in found.rows if r.name == name), None)
        if row is None or row.state == "not applicable":
            return "-"
        word = "gain" if row.state == "open" else "in it"
        if not np.isfinite(row.days):
            return "does not run without"
        if self.unit == "day":
            value, ends = row.days, row.days_range
            if value < 0.0:
                # a lever for dollars
                word, value, ends = "lose", -value, (-ends[1], -ends[0])
            return f"{word} {short(value)} ({span(ends, short)})"
        if not np.isfinite(row.dollars):
            return word
        return f"{word} {_money(row.dollars)} ({span(row.dollars_range, _money)})"


def side_by_side(found: Mapping[str, Levers], unit: str = "day") -> LeverTable:
    """Set the levers of several plans side by side.

    Parameters
    ----------
    found : mapping of Levers
        Levers by the name of the plan, [-]
    unit : {"day", "USD"}, optional
        What to price them in, [-]

    Returns
    -------
    LeverTable
        A row a lever, those that take the largest share of a plan first, [-]

    Examples
    --------
    >>> from chinchilla_lab.cluster import example_cluster
    >>> from chinchilla_lab.planning.plans import plan
    >>> loft = levers(plan(example_cluster("loft"), deadline=30 * 86400))
    >>> "Loft [day]" in str(side_by_side({"loft": loft}))
    True
    """
    return LeverTable(found=dict(found), unit=one_of("unit", unit, ("day", "USD")))


def short(value: float, sign: str = "") -> str:
    """Write days with two or three digits and without powers of ten."""
    if not np.isfinite(value):
        return ""
    if abs(value) >= 100.0:
        return f"{value:{sign},.0f}"
    return f"{value:{sign}.2g}" if abs(value) < 10.0 else f"{value:{sign}.3g}"


def _number(value: float, form: str) -> str:
    return f"{value:{form}}" if np.isfinite(value) else ""


def _money(value: float) -> str:
    if not np.isfinite(value):
        return ""
    return f"{'-' if value < 0 else '+'}{text(abs(value), 'USD')}"


def levers(plan: Plan, shapes: bool = True) -> Levers:
    """Price everything that a team can do about a plan, one thing at a time.

    Parameters
    ----------
    plan : Plan
        A plan with a shape and a layout, searched or typed, [-]
    shapes : bool, optional
        Look at other shapes of the same size as well, which is most of the work, [-]

    Returns
    -------
    Levers
        Every lever with what it is worth against this plan: gained if it is open, kept
        if it is pulled, [day] and [USD], with intervals

    Raises
    ------
    ValueError
        If the plan has no layout.

    Notes
    -----
    N and D stay. A searched layout is searched again after each change; a typed one is
    held but for the axis that changes, and "other layouts" is what a search gives.
    Levers that do not fit alone may shard more to make room. Levers do not add.

    The interval joins three things, in square: the interval of the plan's own time;
    the factor under other stacks, with an error of 10 % where layout or shape change
    (nine in ten published differences lie within it), the band of failure rates where
    failures count; and, for dollars, the price. Where publications measured less than
    is modelled, their median is used, and their range.

    Hot spares are paid: as many nodes as hold 99 % of the failures of a day. Batch
    warm-up lets the batch grow with the critical one, so that it wastes no more. Local
    training pays for its loss with tokens, between the two fits of its source.

    References
    ----------
    :cite:`korthikanti2022reducing`; :cite:`torchtitan`; :cite:`merrill2025critical`;
    :cite:`diloco2025scaling`

    Examples
    --------
    >>> from chinchilla_lab.cluster import Cluster
    >>> from chinchilla_lab.planning.plans import plan
    >>> loft = Cluster(accelerator="h100-sxm-80gb", n_accelerators=64)
    >>> found = levers(plan(loft, deadline=30 * 86400))
    >>> found["no full recomputation"].worth > found["network as it is"].worth
    True
    """
    if plan.speed is None or plan.shape is None or plan.batch is None:
        raise ValueError(
            "this plan was made at a given utilisation and has no layout to improve; "
            "plan without utilisation=..."
        )
    order = list(STATES)

    def key(row: Lever) -> tuple[int, float, float]:
        days, dollars = (
            -x if np.isfinite(x) else np.inf for x in (row.days, row.dollars)
        )
        return order.index(row.state), days, dollars

    pricing = Pricing(plan)
    days, dollars = pricing.own_ranges()
    return Levers(
        rows=tuple(sorted(every_lever(pricing, shapes), key=key)), plan=plan,
        days_range=days, dollars_range=dollars,
    )  # fmt: skip
