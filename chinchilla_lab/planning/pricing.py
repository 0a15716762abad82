"""Time of a plan's own run after one change, with the rest of the plan held."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Literal

import numpy as np

from chinchilla_lab.cluster.hardware import Cluster
from chinchilla_lab.cluster.stacks import STACKS, UNCALIBRATED, Stack
from chinchilla_lab.cluster.step import step_time
from chinchilla_lab.planning.doubt import Range, intervals
from chinchilla_lab.planning.problem import Problem
from chinchilla_lab.planning.results import Plan
from chinchilla_lab.planning.speed import Speed, fastest, typed_speed
from chinchilla_lab.shape.transformer import TransformerShape
from chinchilla_lab.units import GB, HOUR

__all__: list[str] = []

State = Literal["open", "pulled", "not applicable"]

# nine in ten differences between two measured layouts of one model on one machine are
# foretold within this factor, see the tests
DIFFERENCE = 1.1
# the same of a mixture under dense constants; one slow container makes most of it
MIXED_DIFFERENCE = 1.75
# a searched layout is recognised by its time
SAME_TIME = 1e-9


@dataclass(frozen=True, kw_only=True)
class Lever:
    """One thing that a team can do, or has done in this plan.

    Parameters
    ----------
    name : str
        What it is, [-]
    state : {"open", "pulled", "not applicable"}
        A gain to be had; in the plan, at a loss if undone; or neither, [-]
    factor : float
        Time in the other state over the time of the plan; NaN where the other state
        does not run, [-]
    factors : tuple of float
        The same over other stacks and over the error of the model, or as published, [-]
    days : float
        Days that the lever is worth: gained, or kept if pulled, [day]
    days_range : tuple of float
        Their interval, [day]
    dollars : float
        Dollars that it is worth, at the middle price; NaN without one, [USD]
    dollars_range : tuple of float
        Their interval, over prices as well, [USD]
    note : str
        What was changed, or why nothing was, [-]
    measured : str
        What was published of its worth, and where, [-]
    modelled : float
        ``factor`` as the step model has it, where a publication replaced it, [-]
    """

    name: str
    state: State
    factor: float
    factors: Range
    days: float
    days_range: Range
    dollars: float
    dollars_range: Range
    note: str = ""
    measured: str = ""
    modelled: float = float("nan")

    @property
    def worth(self) -> float:
        """Slower state over faster one; below 1 if the other state is worse, [-]."""
        return self.factor if self.state == "pulled" else 1.0 / self.factor

    @property
    def worth_range(self) -> Range:
        """The same over other stacks, the model's error or as published, [-]."""
        ends = [f if self.state == "pulled" else 1.0 / f for f in self.factors]
        return min(ends), max(ends)


@dataclass(frozen=True, kw_only=True)
class Published:
    """Worth of a lever as it was measured.

    Parameters
    ----------
    low : float
        Least slower time over faster time, [-]
    high : float
        Largest, [-]
    middle : float, optional
        What is believed where the model promises more; None where the measurements are
        of a part of the lever only and no more than widen the interval, [-]
    """

    low: float
    high: float
    middle: float | None = None


def _ordered(ends: list[float]) -> Range:
    kept = [e for e in ends if not np.isnan(e)]
    return min(kept), max(kept)


class Pricing:
    """A plan, and what its run would take after a change.

    A plan whose layout is the fastest lets the search work around each change. One
    whose layout was typed keeps it, but for the axis that changes: what a better layout
    would give is a lever of its own and is not counted twice.
    """

    def __init__(self, plan: Plan) -> None:
        assert plan.speed is not None  # levers ask for a layout
        assert plan.shape is not None
        assert plan.batch is not None
        self.plan, self.problem = plan, plan.problem
        self.speed, self.shape, self.batch = plan.speed, plan.shape, plan.batch
        self.layout = plan.speed.step.layout
        dense = plan.shape.n_experts == 1 or self.problem.stack.mixtures
        self.difference = DIFFERENCE if dense else MIXED_DIFFERENCE
        self.best = fastest(self.problem, self.shape, self.batch)
        own = plan.speed.step.seconds
        self.searched = self.best is not None and own <= self.best.step.seconds * (
            1.0 + SAME_TIME
        )
        # how much longer or shorter than planned the steps may be; what a whole run
        # adds stretches all levers alike. The doubt about the stack compares searched
        # layouts, so that it is asked of one
        fast = plan
        if not self.searched and self.best is not None:
            times = self.best.step.seconds / own
            fast = replace(plan, speed=self.best, seconds=times * plan.seconds)
        doubt = intervals(fast, draws=1000, whole_run=False)
        self.reach = (doubt.days[0] / fast.days, doubt.days[1] / fast.days)
        price = self.problem.price
        self.hourly = self.problem.n / HOUR * (
            self.problem.usd_per_hour if price is not None else np.nan
        )  # fmt: skip
        middle = np.nan if price is None else self.problem.usd_per_hour
        self.prices = (np.nan, np.nan) if price is None else (
            price.low / middle, price.high / middle
        )  # fmt: skip

    def own_ranges(self) -> tuple[Range, Range]:
        """Intervals of the plan's own days and dollars."""
        days, dollars = self.plan.days, self.plan.seconds * self.hourly
        spent = _reaches(
            dollars, [dollars * r for r in self.reach],
            [dollars * k for k in self.prices],
        )  # fmt: skip
        return (days * self.reach[0], days * self.reach[1]), spent

    def room(self, cluster: Cluster) -> float:
        """Bytes that a job may fill on an accelerator."""
        chip = float(cluster.chip.memory)
        limit = self.problem.memory_limit
        return chip if limit is None else min(limit, chip)

    def with_cluster(self, **changes: Any) -> Problem:
        """Return the problem on another machine, with as many at work."""
        p = self.problem
        return p.with_(
            cluster=replace(p.cluster, **changes), n_working=p.n_working
        )  # fmt: skip

    def times(self, times: float) -> Problem | None:
        """Return the problem on a cluster of another size, None if not whole."""
        p = self.problem
        n, busy = int(p.n * times), int(p.working * times)
        if busy < 1 or (n, busy) != (p.n * times, p.working * times):
            return None
        cluster = replace(p.cluster, n_accelerators=n)
        return p.with_(cluster=cluster, n_working=busy)

    def of(
        self, problem: Problem, batch: int | None = None,
        shape: TransformerShape | None = None, free: tuple[str, ...] = (), **axes: Any,
    ) -> Speed | None:  # fmt: skip
        """Return the speed of the plan after a change, None if that does not run."""
        b, s = batch or self.batch, shape or self.shape
        if self.searched:
            options = {**problem.options, **{k: (v,) for k, v in axes.items()}}
            return fastest(problem.with_(options=options), s, b)
        found = [
            speed
            for more in self._around(free)
            if (speed := self._typed(problem, s, b, {**axes, **more})) is not None
        ]
        return min(found, key=lambda v: v.step.seconds, default=None)

    def _around(self, free: tuple[str, ...]) -> Iterator[dict[str, Any]]:
        """Ways around a lack of memory: more sharding, a cut sequence."""
        own = self.layout
        axes: dict[str, tuple[Any, ...]] = {
            "zero": (own.zero, 1) if own.zero == 0 and own.dp > 1 else (own.zero,),
            "sequence_parallel": (own.sequence_parallel, own.tp > 1),
            "recompute": ("none", "selective", "full"),
        }
        names = [k for k in free if k in axes]
        for values in product(*(tuple(dict.fromkeys(axes[k])) for k in names)):
            yield dict(zip(names, values, strict=True))

    def _typed(
        self, problem: Problem, shape: TransformerShape, batch: int,
        changes: dict[str, Any],
    ) -> Speed | None:  # fmt: skip
        n = problem.working
        try:
            layout = replace(self.layout, **changes)
            taken = layout.tp * layout.pp * layout.cp
            layout = replace(layout, dp=max(1, n // taken))
            step = step_time(
                shape, problem.job, layout, batch, problem.seq_len, problem.stack,
                problem.dtype, check_memory=False,
            )  # fmt: skip
        except ValueError:
            return None
        speed = typed_speed(problem, step)
        return speed if speed.memory <= self.room(problem.cluster) else None

    def factor(
        self, problem: Problem, speed: Speed | None, batch: int | None = None
    ) -> float:
        """Time of a changed run over that of the plan; NaN if it does not run."""
        if speed is None:
            return float("nan")
        b = batch or self.batch
        waste = problem.waste(b * problem.seq_len) / self.plan.waste
        seconds = (
            self.plan.D * waste / speed.tokens_per_second / problem.goodput.share
        )  # fmt: skip
        return seconds / self.plan.seconds

    def stacks(self) -> list[Stack]:
        """Stacks that a team may have instead."""
        own = self.problem.stack
        others = [UNCALIBRATED, STACKS["llama-3"], STACKS["megatron-bridge"]]
        return [s for s in others if s.name != own.name]

    def ratio(
        self, before: Problem, after: Problem, batch: int | None = None,
        free: tuple[str, ...] = (), **axes: Any,
    ) -> float:  # fmt: skip
        """Time after over time before, both under another stack."""
        one = self.factor(before, self.of(before))
        other = self.factor(after, self.of(after, batch, free=free, **axes), batch)
        return other / one

    def over_stacks(
        self, changed: Problem, batch: int | None = None,
        free: tuple[str, ...] = (), **axes: Any,
    ) -> list[float]:  # fmt: skip
        """Factors under the other stacks."""
        found = [
            self.ratio(
                self.problem.with_(stack=s), changed.with_(stack=s), batch, free, **axes
            )
            for s in self.stacks()
        ]
        return [f for f in found if np.isfinite(f)]

    def lever(
        self, name: str, factor: float, others: list[float], *, pulled: bool,
        note: str = "", measured: str = "", cards: float = 1.0, own_cards: float = 1.0,
        reorganised: bool = False, published: Published | None = None, why: str = "",
    ) -> Lever:  # fmt: skip
        """Price the other state.

        ``factor`` is its time over the plan's, ``others`` the same under other stacks;
        ``cards`` and ``own_cards`` are the accelerators that each state pays for, over
        those of the plan. A layout or shape that changes brings the error of
        differences.
        """
        if np.isnan(factor):
            cause = "nothing runs without it" if pulled else f"{note}: does not run"
            gone = self.absent(name, why or cause, measured)
            return replace(gone, state="pulled") if pulled else gone
        modelled = np.nan
        ends = [factor, *others]
        if reorganised:
            ends += [factor / self.difference, factor * self.difference]
        if published is not None:
            told = [published.low, published.high]
            middle = published.middle
            said = factor if pulled else 1.0 / factor
            if middle is not None and said > middle:
                modelled, factor = factor, middle if pulled else 1.0 / middle
                ends = [t if pulled else 1.0 / t for t in told]
            else:
                ends += [t if pulled else 1.0 / t for t in told if t > said]
        low, high = _ordered(ends)
        sign = 1.0 if pulled else -1.0
        base = self.plan.days
        days = sign * base * (factor - 1.0)
        ranged = _reaches(
            days, [days * r for r in self.reach],
            [sign * base * (f - 1.0) for f in (low, high)],
        )  # fmt: skip
        paid = self.plan.seconds * self.hourly

        def money(f: float) -> float:
            return sign * paid * (f * cards - own_cards)

        dollars = money(factor)
        spent = _reaches(
            dollars, [dollars * r for r in self.reach],
            [money(f) for f in (low, high)], [dollars * k for k in self.prices],
        )  # fmt: skip
        gains = days > 1e-6 * base or (np.isfinite(dollars) and dollars > 1e-6 * paid)
        state: State = "pulled" if pulled else "open" if gains else "not applicable"
        if pulled and not gains:
            # what is in the plan and slows it: to be undone
            return replace(
                self.lever(name, factor, others, pulled=False, note=f"undone: {note}",
                           measured=measured, cards=cards, own_cards=own_cards,
                           reorganised=reorganised), modelled=modelled
            )  # fmt: skip
        if state == "not applicable":
            lost = f"gains nothing here: {max(-days, 0.0):.3g} days slower"
            note = why or f"{note}: {lost}"
        return Lever(
            name=name, state=state, factor=factor, factors=(low, high), days=days,
            days_range=ranged, dollars=dollars, dollars_range=spent, note=note,
            measured=measured, modelled=modelled,
        )  # fmt: skip

    def absent(self, name: str, why: str, measured: str = "") -> Lever:
        """Return a lever that this plan has no use for."""
        nan = float("nan")
        return Lever(
            name=name, state="not applicable", factor=nan, factors=(nan, nan), days=nan,
            days_range=(nan, nan), dollars=nan, dollars_range=(nan, nan), note=why,
            measured=measured,
        )  # fmt: skip

    def memory_words(self, **axes: Any) -> str:
        """How much a typed layout would need after a change, if it runs at all."""
        try:
            layout = replace(self.layout, **axes)
            step = step_time(
                self.shape, self.problem.job, layout, self.batch,
                self.problem.seq_len, self.problem.stack, self.problem.dtype,
                check_memory=False,
            )  # fmt: skip
        except ValueError:
            return "does not divide"
        need = typed_speed(self.problem, step).memory / GB
        room = self.room(self.problem.cluster) / GB
        return f"needs {need:.0f} GB of {room:.0f}; see other layouts"


def _reaches(point: float, *sources: list[float]) -> Range:
    """Interval of a value from what each source of doubt alone makes of it.

    Sources are independent, so their reaches add in square.
    """
    down = [max(0.0, point - min(ends)) for ends in sources]
    up = [max(0.0, max(ends) - point) for ends in sources]
    return point - float(np.hypot.reduce(down)), point + float(np.hypot.reduce(up))
