"""How well a plan is known: each source of doubt alone, and all of them together."""

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from chinchilla_lab.checks import fraction, whole
from chinchilla_lab.laws.families import LossLaw
from chinchilla_lab.planning.doubt_draws import Draws, all_draws
from chinchilla_lab.planning.law_doubt import LawDoubt, law_doubt
from chinchilla_lab.planning.losses import silent
from chinchilla_lab.planning.results import Plan
from chinchilla_lab.planning.time_doubt import chances_of, other_batches, time_doubt
from chinchilla_lab.tables import Cells, Shown, span
from chinchilla_lab.units import DAY, HOUR, text

__all__ = ["Doubt", "Intervals", "intervals"]

Array = NDArray[np.float64]
Range = tuple[float, float]

# resamples that are solved for where only the range matters
FEW_RESAMPLES = 48
_UNKNOWN = (float("nan"), float("nan"))


@dataclass(frozen=True, kw_only=True)
class Doubt:
    """What one source of doubt does to a plan, the others held still.

    Parameters
    ----------
    source : str
        What is not known, [-]
    N : tuple of float, optional
        Size that would be best, from and to, [parameter]
    D : tuple of float, optional
        Tokens that go with it, from and to, [token]
    days : tuple of float, optional
        Time of the plan, from and to, [day]
    dollars : tuple of float, optional
        Cost of the plan, from and to, [USD]
    loss : tuple of float, optional
        Loss of the plan, from and to, [nats/token]
    note : str, optional
        Where it comes from, [-]
    """

    source: str
    N: Range | None = None
    D: Range | None = None
    days: Range | None = None
    dollars: Range | None = None
    loss: Range | None = None
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Intervals(Shown):
    """Intervals of a plan.

    Parameters
    ----------
    level : float
        Coverage, [-]
    N : tuple of float
        Size that would be best, over resamples and laws, [parameter]
    D : tuple of float
        Tokens that go with it, [token]
    days : tuple of float
        Time of the run, all sources drawn together, [day]
    hours : tuple of float
        Accelerator-hours of the run, [h]
    dollars : tuple of float
        Cost of the run; NaN without a price, [USD]
    loss : tuple of float
        Loss of this plan's size by its law, resamples of it and laws of the same data;
        where time limits the tokens, on those that fit into it, [nats/token]
    sources : tuple of Doubt
        Each source alone, [-]
    steps : Doubt
        Step model and failures alone: the days of the steps, not of the run, [-]
    apart : tuple of Doubt
        What is not drawn and not in "together", [-]
    point : Doubt
        What the plan itself says; it may lie outside an interval, [-]
    median : Doubt
        Medians of the draws, [-]
    meets_deadline : float
        Chance that the tokens of the plan are done in time; NaN without, [-]
    meets_budget : float
        Chance that they are paid for; NaN without a budget, [-]
    """

    level: float
    N: Range
    D: Range
    days: Range
    hours: Range
    dollars: Range
    loss: Range
    sources: tuple[Doubt, ...]
    steps: Doubt
    apart: tuple[Doubt, ...]
    point: Doubt
    median: Doubt
    meets_deadline: float
    meets_budget: float

    def _cells(self) -> Cells:
        together = Doubt(
            source="together", N=self.N, D=self.D, days=self.days,
            dollars=self.dollars, loss=self.loss,
        )  # fmt: skip
        chances = [
            f"{word} with {chance:.0%}"
            for word, chance in (
                ("deadline met", self.meets_deadline),
                ("budget met", self.meets_budget),
            )
            if np.isfinite(chance)
        ]
        lines = [
            *self.sources, self.steps, together, self.median, self.point, *self.apart
        ]  # fmt: skip
        head = (
            "doubt", "N [parameter]", "D [token]", "time [day]", "cost [USD]",
            "loss [nats/token]", "from",
        )  # fmt: skip
        caption = "; ".join([f"{self.level:.0%} intervals", *chances])
        return Cells(head, [_row(d) for d in lines], caption)


def _row(d: Doubt) -> list[str]:
    def words(ends: Range | None, unit: str) -> str:
        shown = {"nats": "{:.3f}", "day": "{:.3g}"}

        def write(x: float) -> str:
            return shown[unit].format(x) if unit in shown else text(x, unit)

        if ends is None:
            return ""
        return write(ends[0]) if ends[0] == ends[1] else span(ends, write)

    return [
        d.source, words(d.N, "parameter"), words(d.D, "token"), words(d.days, "day"),
        words(d.dollars, "USD"), words(d.loss, "nats"), d.note,
    ]  # fmt: skip


def _ends(x: Array, level: float) -> Range:
    tail = 50.0 * (1.0 - level)
    low, high = np.percentile(x, [tail, 100.0 - tail])
    return float(low), float(high)


def _known(x: Array | None, level: float) -> Range | None:
    return None if x is None or not x.size else _ends(x, level)


def _middle(x: Array) -> Range:
    return (float(np.median(x)),) * 2


def intervals(
    plan: Plan,
    level: float = 0.9,
    draws: int = 4000,
    seed: int = 0,
    whole_run: bool | None = None,
    leave_out: Sequence[str] = (),
    light: bool = False,
    executor: Executor | None = None,
) -> Intervals:
    """Return the intervals of a plan, and what each source of doubt contributes.

    Parameters
    ----------
    plan : Plan
        The plan, [-]
    level : float, optional
        Coverage, [-]
    draws : int, optional
        Draws of each source, [-]
    seed : int, optional
        Seed, [-]
    whole_run : bool, optional
        Whether days, hours and dollars are those of a whole run and not of its steps;
        by default as the plan was asked, [-]
    leave_out : sequence of str, optional
        Published runs that do not count in what whole runs take, as one that is to be
        predicted, [-]
    light : bool, optional
        Fewer resamples, no losses by source and no other batches: what a control that
        moves needs, [-]
    executor : concurrent.futures.Executor, optional
        Where to draw, in blocks of 4,000; the result does not depend on it, [-]

    Returns
    -------
    Intervals
        N and D [parameter, token]: what would be best; days and dollars [day, USD]:
        what the run may take

    Notes
    -----
    Everything is drawn, sources independently, and an interval holds the middle share
    of the draws: it is not stretched to what the plan says.

    Laws: the plan's own and every law of ``laws.SPREAD`` that counts the same
    parameters, each as likely, with the scatter of the own one's resamples if it has
    any. What a law would
    have answered is solved for on a machine of the plan's utilisation, without shapes.
    For a target loss the tokens, and so days and dollars, follow the law: each is taken
    at its word, for its own best size; one whose loss is of other text than its runs
    trained on stands apart. A loss means the same only on the same data: its
    interval holds laws of the same corpus, and those of others stand apart.

    Time: the error of the step model on rows that were not fitted, with a drift of 3 %
    for each doubling beyond 256 accelerators; without calibration, 1.05 to 2 times as
    long; where no stack was named, over three or four of them. A utilisation that was
    given is taken at its word for the steps. Failures: the band of rates, and chance.
    Whole run: :func:`~chinchilla_lab.planning.whole_run_factors`. A critical batch is
    drawn within its factor; other batches that the law of the batch allows stand apart.

    Examples
    --------
    >>> from chinchilla_lab.cluster import Cluster
    >>> from chinchilla_lab.planning.plans import plan
    >>> loft = Cluster(accelerator="h100-sxm-80gb", n_accelerators=64)
    >>> doubt = intervals(plan(loft, deadline=30 * 86400))
    >>> doubt.steps.days[1] < doubt.days[1]
    True
    """
    share, n = float(fraction("level", level)), whole("draws", draws)
    p = plan.problem
    runs = p.whole_run if whole_run is None else whole_run
    times = time_doubt(plan, runs, tuple(leave_out))
    laws = law_doubt(plan, FEW_RESAMPLES) if light else law_doubt(plan)
    limited = p.deadline is not None or p.budget is not None
    timed = p.objective == "loss" and p.compute is None and limited
    x = all_draws(plan, times, laws, timed, light, n, seed, executor)
    return _summary(plan, share, laws, x, runs, light)


def _summary(
    plan: Plan, share: float, laws: LawDoubt, x: Draws, runs: bool, light: bool
) -> Intervals:
    p = plan.problem
    target = p.objective != "loss"

    def timed(
        source: str, factor: Array, loss: Array | None, note: str = "", **more: Range
    ) -> Doubt:
        low, high = _ends(factor, share)
        return Doubt(
            source=source, days=(plan.days * low, plan.days * high),
            dollars=(plan.dollars * low, plan.dollars * high),
            loss=_known(loss, share), note=note, **more,
        )  # fmt: skip

    def of_laws(
        source: str, N: Array, D: Array, work: Array, loss: Array, note: str
    ) -> Doubt:
        if target:
            return timed(source, work, loss, note, N=_ends(N, share), D=_ends(D, share))
        return Doubt(
            source=source, N=_ends(N, share), D=_ends(D, share),
            loss=_known(loss, share), note=note,
        )  # fmt: skip

    sources = [Doubt(source="runs behind the law", note=laws.note)]
    if laws.scatter is not None:
        sources = [
            of_laws(
                "runs behind the law", x.scatter_N, x.scatter_D, x.scatter_work,
                x.loss_scatter, laws.note,
            )
        ]  # fmt: skip
    alone = f"{len(laws.others)} published laws beside it, each as likely"
    sources.append(
        of_laws("which law", x.law_N, x.law_D, x.law_work, x.loss_laws, alone)
    )
    waste = np.ones(len(x.model))
    if plan.waste > 1.0:
        # at a target the wasted examples are made up for, which takes time
        waste = x.waste if target else waste
        note = "known to a factor of four"
        if target:
            sources.append(timed("critical batch", waste, None, note))
        else:
            losses = _known(x.loss_waste, share)
            sources.append(Doubt(source="critical batch", loss=losses, note=note))
    sources.append(timed("step model", x.model, x.loss_model, plan.label))
    if p.reliability is not None:
        sources.append(
            timed("failures", x.failures, x.loss_failures, "band of rates, and chance")
        )
    if runs:
        sources.append(
            timed(
                "whole run over its steps", x.whole, x.loss_whole,
                "published hours over modelled steps",
            )
        )  # fmt: skip
    dollars = plan.dollars * x.price
    if p.price is not None:
        sources.append(
            Doubt(
                source="price", dollars=_ends(dollars, share),
                note=f"{p.price.date}; {p.price.source}",
            )
        )  # fmt: skip
    work = x.work * waste if target else waste
    days = plan.days * x.run * work
    cost = dollars * x.run * work
    ends = _ends(days, share)
    hourly = DAY * p.n / HOUR
    timely, affordable = chances_of(plan, x.run, x.price)
    return Intervals(
        level=share, N=_ends(x.N, share), D=_ends(x.D, share), days=ends,
        hours=(ends[0] * hourly, ends[1] * hourly),
        dollars=_UNKNOWN if p.price is None else _ends(cost, share),
        loss=_ends(x.loss, share), sources=tuple(sources),
        steps=timed("steps only", x.steps, x.loss_steps,
                    "step model and failures"),
        apart=_apart(plan, laws, light),
        point=Doubt(
            source="the plan says", N=(plan.N,) * 2, D=(plan.D,) * 2,
            days=(plan.days,) * 2, dollars=(plan.dollars,) * 2, loss=(plan.loss,) * 2,
            note="the steps, at the middle price",
        ),
        median=Doubt(
            source="median", N=_middle(x.N), D=_middle(x.D), days=_middle(days),
            dollars=_UNKNOWN if p.price is None else _middle(cost),
            loss=_middle(x.loss), note="of the draws",
        ),
        meets_deadline=timely, meets_budget=affordable,
    )  # fmt: skip


def _apart(plan: Plan, laws: LawDoubt, light: bool) -> tuple[Doubt, ...]:
    """Return what is shown beside the draws: hulls, not in "together"."""
    found = []
    n, d = np.asarray(plan.N), np.asarray(plan.D / plan.waste)
    unique = plan.problem.unique_tokens
    d = d if unique is None else np.minimum(d, unique)
    said = [float(silent(one)._loss(n, d)) for one in laws.foreign]
    if said:
        own: LossLaw = silent(laws.law)
        by = plan.loss - float(own._loss(n, d))
        found.append(
            Doubt(
                source="laws of other data", loss=(min(said) + by, max(said) + by),
                note="lowest and highest; another floor, not in \"together\"",
            )
        )  # fmt: skip
    for label, one in laws.elsewhere:
        N, D, days, dollars = (
            (float(np.min(x)), float(np.max(x)))
            for x in (one.N, one.D, plan.days * one.work, plan.dollars * one.work)
        )
        found.append(
            Doubt(
                source=label, N=N, D=D, days=days, dollars=dollars,
                note='its loss is of other text than it trains on; not in "together"',
            )
        )  # fmt: skip
    found += [
        Doubt(source=label, note='no size reaches the target; not in "together"')
        for label in laws.unreached
    ]
    batches = None if light else other_batches(plan)
    if batches is not None:
        found.append(
            Doubt(
                source="other batch",
                days=(plan.days * batches[0], plan.days * batches[1]),
                dollars=(plan.dollars * batches[0], plan.dollars * batches[1]),
                note="a batch four times smaller to four times larger, ends; not in "
                "\"together\"",
            )
        )  # fmt: skip
    return tuple(found)
