"""What a team can do about a plan, each thing priced in days and dollars."""

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from chinchilla_lab.allocation.optimum import optimal_for_loss
from chinchilla_lab.checks import InfeasibleError
from chinchilla_lab.cluster.batch import WARMUP_STEPS_SAVED, divisible_batch
from chinchilla_lab.cluster.local_training import bandwidth_saving, loss_ratio
from chinchilla_lab.cluster.stacks import STACKS, UNCALIBRATED, Stack
from chinchilla_lab.planning.losses import silent
from chinchilla_lab.planning.problem import Problem
from chinchilla_lab.planning.results import Plan
from chinchilla_lab.planning.speed import Speed, fastest
from chinchilla_lab.shape.family import shapes_near
from chinchilla_lab.shape.transformer import TransformerShape
from chinchilla_lab.tables import html_table
from chinchilla_lab.units import DAY, HOUR, text

__all__ = ["Lever", "Levers", "levers"]

State = Literal["open", "pulled"]
MOST_SHAPES = 60
NEAR = 0.03
SMALL_BATCH = 2**22  # tokens
# sizes at which the laws of local training were checked
LOCAL_CHECKED = 10e9
# overlap of a well-tuned stack, as of megatron-bridge
TUNED = {"tp_overlap": 0.7, "dp_overlap": 0.8}


@dataclass(frozen=True, kw_only=True)
class Lever:
    """One thing that a team can do, or has done in this plan.

    Parameters
    ----------
    name : str
        What it is, [-]
    state : {"open", "pulled"}
        Whether the plan could still gain it, or would lose it, [-]
    factor : float
        Time in the other state over the time of the plan, [-]
    factors : tuple of float
        The same under other stacks, or over what the source leaves open, [-]
    days : float
        Days that the lever is worth: gained if open, kept if pulled, [day]
    dollars : float
        Dollars that it is worth, at the middle price; NaN without one, [USD]
    note : str
        What was changed, [-]
    measured : str
        What was published of its worth, and where, [-]
    """

    name: str
    state: State
    factor: float
    factors: tuple[float, float]
    days: float
    dollars: float
    note: str = ""
    measured: str = ""

    @property
    def worth(self) -> float:
        """Slower state over faster one, [-]."""
        return 1.0 / self.factor if self.state == "open" else self.factor

    @property
    def worth_range(self) -> tuple[float, float]:
        """The same over other stacks, [-]."""
        ends = [1.0 / f if self.state == "open" else f for f in self.factors]
        return min(ends), max(ends)


@dataclass(frozen=True, kw_only=True)
class Levers:
    """Levers of a plan, by days.

    Parameters
    ----------
    rows : tuple of Lever
        Levers by the days they gain or keep, then by dollars; losses last, [-]
    plan : Plan
        The plan, [-]
    """

    rows: tuple[Lever, ...]
    plan: Plan

    def __getitem__(self, name: str) -> Lever:
        for row in self.rows:
            if row.name == name:
                return row
        known = ", ".join(r.name for r in self.rows)
        raise ValueError(
            f"lever {name!r} does not apply to this plan; there are: {known}"
        )

    @property
    def open(self) -> tuple[Lever, ...]:
        """Those that the plan could still gain, [-]."""
        return tuple(r for r in self.rows if r.state == "open")

    def _repr_html_(self) -> str:
        rows = [
            [
                r.name,
                "to gain" if r.state == "open" else "in the plan",
                f"{r.worth:.3f}",
                f"{r.worth_range[0]:.2f} to {r.worth_range[1]:.2f}",
                f"{r.days:+.2f}",
                "" if np.isnan(r.dollars) else text(r.dollars, "USD"),
                r.note,
                r.measured,
            ]
            for r in self.rows
        ]
        head = ("lever", "state", "time factor [-]", "other stacks [-]", "days",
                "worth [USD]", "changed", "measured")  # fmt: skip
        caption = (
            f"{self.plan.days:.3g} days on {self.plan.problem.n:,} accelerators; each "
            "lever alone, layouts searched again: factors do not multiply"
        )
        return html_table(head, rows, caption)


@dataclass(frozen=True)
class _Change:
    """A lever as a change of the problem."""

    name: str
    state: State
    problem: Problem
    batch: int
    note: str = ""
    measured: str = ""


def _time(plan: Plan, problem: Problem, batch: int) -> float:
    """Seconds of the plan's own N and D under another problem; NaN if it cannot run."""
    assert plan.shape is not None  # levers ask for a shape
    speed = fastest(problem, plan.shape, batch)
    if speed is None:
        return float("nan")
    waste = problem.waste(batch * problem.seq_len) / problem.waste(
        (plan.batch or batch) * problem.seq_len
    )
    return plan.D * waste / speed.tokens_per_second / problem.goodput.share


def _stacks(own: Stack) -> list[Stack]:
    others = [UNCALIBRATED, STACKS["llama-3"], STACKS["megatron-bridge"]]
    return [own, *(s for s in others if s.name != own.name)]


def _with_options(problem: Problem, **changes: tuple[Any, ...]) -> Problem:
    return problem.with_(options={**problem.options, **changes})


def _changes(plan: Plan) -> list[_Change]:
    """List every change that applies to a plan."""
    p = plan.problem
    assert plan.speed is not None  # levers ask for a layout
    assert plan.batch is not None
    layout, b = plan.speed.step.layout, plan.batch
    made: list[_Change] = []

    def restrict(
        name: str, note: str, measured: str = "", **axes: tuple[Any, ...]
    ) -> None:
        """Take something out of the plan by restricting the search."""
        made.append(
            _Change(name, "pulled", _with_options(p, **axes), b, note, measured)
        )

    if layout.recompute != "full":
        restrict(
            "no full recomputation", "full recomputation", recompute=("full",),
            measured="1.29 to 1.32, korthikanti2022reducing, Table 5",
        )  # fmt: skip
    if layout.sequence_parallel:
        restrict("sequence parallelism", "without it", sequence_parallel=(False,))
    if layout.n_chunks > 1:
        restrict("interleaved stages", "one chunk a stage", n_chunks=(1,))
    if layout.micro_batch > 1:
        restrict("larger micro-batches", "one sequence", micro_batch=(1,))
    if layout.zero > 0:
        restrict("sharded states (ZeRO)", "without it", zero=(0,))
    if layout.tp > 1:
        restrict("tensor parallelism", "without it", tp=(1,))
    if layout.pp > 1:
        restrict("pipeline stages", "without them", pp=(1,))
    stack = p.stack
    if stack.tp_overlap or stack.dp_overlap:
        bare = stack.with_(tp_overlap=0.0, dp_overlap=0.0)
        made.append(
            _Change("overlap of communication", "pulled", p.with_(stack=bare), b,
                    "nothing overlapped", _MEASURED["overlap"])
        )  # fmt: skip
    else:
        made.append(
            _Change("overlap of communication", "open",
                    p.with_(stack=stack.with_(**TUNED)), b,
                    "0.7 of tensor, 0.8 of data traffic", _MEASURED["overlap"])
        )  # fmt: skip
    chip = p.cluster.chip
    if p.dtype == "bf16" and "fp8" in chip.peaks and "fp8" in chip.gemm_ceilings:
        made.append(
            _Change("fp8 products", "open", p.with_(dtype="fp8"), b,
                    "loss taken to stay", _MEASURED["fp8"])
        )  # fmt: skip
    network = p.cluster.network
    for name, state, times, note in (
        ("network twice as fast", "open", 2.0, "twice the bandwidth"),
        ("network as it is", "pulled", 1.0 / 9.0, "a ninth of the bandwidth"),
    ):
        other = replace(p.cluster, scaleout_bandwidth=network * times)
        made.append(_Change(name, state, p.with_(cluster=other), b, note))  # type: ignore[arg-type]
    for name, times in (("twice the accelerators", 2), ("half the accelerators", 0.5)):
        n, busy = int(p.n * times), int(p.working * times)
        if busy >= 1 and (n, busy) == (p.n * times, p.working * times):
            changed = p.with_(
                cluster=replace(p.cluster, n_accelerators=n), n_working=busy
            )
            # as near to the batch as that many replicas can share out
            own = divisible_batch(b, busy, "replicas")
            note = f"{n:,}, same batch" if own == b else f"{n:,}, batch of {own:,}"
            made.append(_Change(name, "open", changed, own, note))
    for name, times, measured in (
        ("twice the batch", 2.0, ""),
        ("batch warm-up", 1.0 / (1.0 - WARMUP_STEPS_SAVED),
         "43 % fewer steps of a 1B model, merrill2025critical"),
    ):  # fmt: skip
        larger = divisible_batch(int(b * times + 0.5), p.working, "most")
        if larger > b:
            made.append(
                _Change(name, "open", p, larger, f"{larger / b:.2f} times the batch",
                        measured)
            )  # fmt: skip
    capped = divisible_batch(SMALL_BATCH // p.seq_len, p.working, "most")
    if capped < b:
        made.append(
            _Change("batch above 4.2M tokens", "pulled", p, capped,
                    "a batch of 4.2M tokens")
        )  # fmt: skip
    made += _failure_changes(p, b)
    return made


_MEASURED = {
    "overlap": "1.06 to 1.10 for asynchronous tensor parallelism, torchtitan",
    "fp8": "1.44, torchtitan: less than modelled",
}


def _failure_changes(p: Problem, b: int) -> list[_Change]:
    reliable = p.reliability
    if reliable is None or reliable.failures_per_node_day == 0.0:
        return []
    made = []
    if reliable.blocking:
        beside = reliable.with_(
            blocking=False, interval=max(reliable.save, reliable.interval or 300.0)
        )
        made.append(
            _Change("asynchronous checkpoints", "open", p.with_(reliability=beside), b,
                    "written beside the work")
        )  # fmt: skip
    else:
        waits = reliable.with_(blocking=True, interval=None)
        made.append(
            _Change("asynchronous checkpoints", "pulled", p.with_(reliability=waits), b,
                    "job waits, best interval")
        )  # fmt: skip
    seldom = reliable.with_(interval=3600.0)
    if reliable.interval is None or reliable.interval < 3600.0:
        made.append(
            _Change("frequent checkpoints", "pulled", p.with_(reliability=seldom), b,
                    "one an hour")
        )  # fmt: skip
    else:
        made.append(
            _Change("frequent checkpoints", "open",
                    p.with_(reliability=reliable.with_(interval=300.0)), b,
                    "one in five minutes")
        )  # fmt: skip
    if reliable.restart <= 300.0:
        made.append(
            _Change("fast restarts (hot spares)", "pulled",
                    p.with_(reliability=reliable.with_(restart=900.0)), b,
                    "15 min to restart")
        )  # fmt: skip
    else:
        made.append(
            _Change("fast restarts (hot spares)", "open",
                    p.with_(reliability=reliable.with_(restart=300.0)), b,
                    "5 min to restart")
        )  # fmt: skip
    return made


def levers(plan: Plan) -> Levers:
    """Price everything that a team can do about a plan, one thing at a time.

    Parameters
    ----------
    plan : Plan
        A plan with a shape and a layout, [-]

    Returns
    -------
    Levers
        Levers by days: those still to gain, and those that the plan already uses, with
        what it would lose without them, [day] and [USD]

    Raises
    ------
    ValueError
        If the plan has no layout.

    Notes
    -----
    N and D stay, and layouts are searched again, free to work around what is missing:
    factors of several levers do not multiply. The range is that of the factor under
    other stacks; for the shape it is the middle half of the shapes within 3 % of N; for
    local training both of the loss laws that its source prints, which disagree.
    Published worths stand beside the modelled ones: believe those.

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
    p, base = plan.problem, plan.seconds
    hourly = p.n / HOUR * (p.usd_per_hour if p.price is not None else np.nan)
    rows: list[Lever] = []

    def note(
        change_name: str, state: State, time: float, ends: tuple[float, float],
        n: int, words: str, measured: str,
    ) -> None:  # fmt: skip
        """Add a lever from the time of the other state."""
        paid = time * n / p.n
        sign = 1.0 if state == "pulled" else -1.0
        rows.append(
            Lever(
                name=change_name, state=state, factor=time / base, factors=ends,
                days=sign * (time - base) / DAY, dollars=sign * (paid - base) * hourly,
                note=words, measured=measured,
            )
        )  # fmt: skip

    own = _time(plan, p, plan.batch)
    for change in _changes(plan):
        time = _time(plan, change.problem, change.batch)
        if np.isnan(time):
            continue
        ratios = [time / own]
        changed_stack = change.problem.stack is not p.stack
        if not changed_stack:
            for stack in _stacks(p.stack)[1:]:
                before = _time(plan, p.with_(stack=stack), plan.batch)
                after = _time(plan, change.problem.with_(stack=stack), change.batch)
                if np.isfinite(before) and np.isfinite(after):
                    ratios.append(after / before)
        note(
            change.name, change.state, base * time / own, (min(ratios), max(ratios)),
            change.problem.n, change.note, change.measured,
        )  # fmt: skip
    note(
        "layout", "pulled", base * plan.speed.median_factor,
        (1.0, plan.speed.median_factor), p.n,
        f"median of {plan.speed.n_feasible} that fit",
        "1.32, worst over best of the BLOOM trials, bloom",
    )  # fmt: skip
    rows += _shape_lever(plan, hourly)
    rows += _local_lever(plan, plan.speed, hourly)
    rows.sort(key=lambda r: (-r.days, -np.nan_to_num(r.dollars)))
    return Levers(rows=tuple(rows), plan=plan)


def _shape_lever(plan: Plan, hourly: float) -> list[Lever]:
    p = plan.problem
    assert plan.shape is not None  # checked by the caller
    assert plan.speed is not None
    family = p.shape_family or "llama"
    size = float(plan.shape.params().active)
    near: list[TransformerShape] = [
        s for _, s in shapes_near(size, NEAR, family)[:MOST_SHAPES]
    ]
    found = [fastest(p, s, plan.batch or 1) for s in near]
    shares = np.array([s.utilisation for s in found if s is not None])
    if not len(shares):
        return []
    quarter, median, three = np.percentile(shares, [25.0, 50.0, 75.0])
    own = plan.speed.utilisation
    ends = float(own / three), float(own / quarter)
    factor = float(own / median)
    days = plan.days * (factor - 1.0)
    return [
        Lever(
            name="shape", state="pulled", factor=factor, factors=ends, days=days,
            dollars=days * DAY * hourly,
            note=f"median of {len(shares)} shapes within 3 % of N that run, of "
            f"{len(near)}",
            measured="1.27 for a width in the BLOOM trials, bloom",
        )
    ]  # fmt: skip


def _local_lever(plan: Plan, speed: Speed, hourly: float) -> list[Lever]:
    """Price DiLoCo with four replicas and 100 inner steps."""
    if speed.step.layout.dp < 4:
        return []
    every, seldom = bandwidth_saving()
    step = speed.step
    saved = step.items["dp_traffic"] * (1.0 - seldom / every)
    factor = (step.seconds - saved) / step.seconds
    ends = []
    law = silent(plan.problem.law)
    for ratio in loss_ratio(min(plan.N, LOCAL_CHECKED)):
        try:
            need = float(optimal_for_loss(law, plan.loss / ratio).C)
            have = float(optimal_for_loss(law, plan.loss).C)
        except InfeasibleError:
            ends.append(float("inf"))
        else:
            ends.append(factor * need / have)
    days = plan.days * (1.0 - factor)
    return [
        Lever(
            name="local training (DiLoCo, four replicas)", state="open", factor=factor,
            factors=(min(ends), max(ends)), days=days, dollars=days * DAY * hourly,
            note="a thirtieth of the data traffic, same loss; the range also pays for "
            "the loss",
            measured="222.3 to 7.5 Gbit/s at 80 % utilisation, diloco2025scaling; "
            "losses fitted up to 2.4B parameters, checked at 10B",
        )
    ]  # fmt: skip
