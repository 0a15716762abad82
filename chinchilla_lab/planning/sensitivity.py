"""Which limit binds, and what one more unit of it is worth."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from chinchilla_lab.allocation.targets import loss_floor
from chinchilla_lab.checks import InfeasibleError
from chinchilla_lab.cluster.batch import BATCH_LAWS
from chinchilla_lab.planning.candidates import candidate, finish
from chinchilla_lab.planning.losses import DataLimit, silent
from chinchilla_lab.planning.problem import OBJECTIVES, Problem
from chinchilla_lab.planning.results import Plan
from chinchilla_lab.planning.search import solve
from chinchilla_lab.planning.speed import fastest, search_all
from chinchilla_lab.shape.transformer import TransformerShape
from chinchilla_lab.tables import Cells, Shown
from chinchilla_lab.units import DAY, GB, text

__all__ = ["Sensitivity", "Worth", "sensitivity"]

# a limit binds if ten percent more of it is worth this share of the time
BINDS = 1e-3
MORE = 0.1
# shapes that are searched again on a machine that has a little more
SEARCHED_AGAIN = 6
ASKED = "target loss"
MONEY = ("cost", "lifetime")


@dataclass(frozen=True, kw_only=True)
class Worth:
    """What one more unit of a limit is worth.

    Parameters
    ----------
    limit : str
        What is limited, [-]
    value : float
        How much there is, in units of ``unit``, [any]
    unit : str
        What one more is one of, [-]
    worth : float
        Change of the objective for one more unit; below 0 is better, [any]
    time_share : float
        What ten percent more save, as a share of the plan's time, or of its cost where
        that is the objective, [-]
    """

    limit: str
    value: float
    unit: str
    worth: float
    time_share: float

    @property
    def binds(self) -> bool:
        """Whether more of it would help, [-]."""
        return self.time_share > BINDS and self.worth < 0.0


@dataclass(frozen=True, kw_only=True)
class Sensitivity(Shown):
    """All limits of a plan, the one that matters most first.

    Parameters
    ----------
    rows : tuple of Worth
        Limits by what ten percent more of each save, [-]
    objective : str
        What the plan is best at, [-]
    """

    rows: tuple[Worth, ...]
    objective: str

    @property
    def binding(self) -> str:
        """The limit of which ten percent more help most; empty if none does, [-].

        A target loss is what was asked for, and is named only if nothing else binds.
        Accelerators are worth what the deadline is where they scale: within a tenth,
        the other limit is named.
        """

        def order(w: Worth) -> tuple[bool, float]:
            tie = 0.9 if w.limit == "accelerators" else 1.0
            return w.limit == ASKED, -tie * w.time_share

        found = sorted((w for w in self.rows if w.binds), key=order)
        return found[0].limit if found else ""

    @property
    def saved(self) -> str:
        """What ``time_share`` is a share of, [-]."""
        return "cost" if self.objective in MONEY else "time"

    @property
    def heads(self) -> tuple[str, str]:
        """Heads of the two columns of worth, for tables and files, [-]."""
        unit = OBJECTIVES[self.objective]
        return (
            f"one more is worth [{unit}] (below 0 is better)",
            f"10 % more saves, of the {self.saved} [%]",
        )

    def _cells(self) -> Cells:
        dollars = OBJECTIVES[self.objective] == "USD"
        rows = [
            [
                w.limit,
                f"{w.value:.4g} {w.unit}",
                _signed(w.worth, dollars),
                f"{100.0 * w.time_share + 0.0:.2f}",
                "binds" if w.binds else "slack",
            ]
            for w in self.rows
        ]
        return Cells(("limit", "there is", *self.heads, ""), rows)


def _signed(value: float, dollars: bool) -> str:
    if not dollars:
        return f"{value + 0.0:+.3g}"
    return f"{'-' if value < 0 else '+'}{text(abs(value), 'USD')}"


class _Replans:
    """Plans under changed limits, all from the same shapes and batches."""

    def __init__(self, plan: Plan, among: Sequence[Plan] | None) -> None:
        self.plan, self.among = plan, among
        self.problem = _settled(plan)
        self.pool: dict[tuple[TransformerShape, int | None], None] = {}
        for one in (plan, *plan.alternatives, *(among or ())):
            self._keep(one)

    def _keep(self, plan: Plan) -> None:
        if plan.shape is not None:
            self.pool[plan.shape, plan.batch] = None

    def under(self, problem: Problem) -> Plan | None:
        """Best plan under other limits on the same machine."""
        if self.among is not None and self.problem.shape_family is not None:
            return self.best(problem)
        quiet = problem.with_(law=silent(problem.law))
        try:
            made = solve(quiet)
        except InfeasibleError:
            return self.best(problem)
        for one in (made, *made.alternatives):
            self._keep(one)
        return replace(made, problem=made.problem.with_(law=problem.law))

    def best(self, problem: Problem, pool: Iterable[Any] | None = None) -> Plan | None:
        """Best plan among the shapes seen so far."""
        keys = list(self.pool if pool is None else pool)
        if problem.utilisation is None:
            search_all((problem, s, b) for s, b in keys if b is not None)
        found = [
            made
            for shape, batch in keys
            if batch is not None
            and (made := candidate(problem, shape, batch)) is not None
        ]
        return min(found, key=lambda p: p.score, default=None)

    def faster(self, problem: Problem, share: float, rate: float) -> Plan | None:
        """Best plan if every shape were faster, at a utilisation that much higher."""
        p = self.problem
        found: list[Plan | None] = []
        if p.shape_family is None:
            made = self.plan
            v = made.D / made.seconds / made.goodput.share
            return finish(problem, None, None, None, min(made.utilisation * share, 1.0),
                          v * rate, made.N)  # fmt: skip
        for shape, batch in self.pool:
            if batch is None:
                continue
            now = candidate(p, shape, batch)
            if now is None:
                # too slow for a limit, which more speed may meet
                now = candidate(_free(p), shape, batch)
            if now is None:
                continue
            v = now.D / now.seconds / now.goodput.share
            used = min(now.utilisation * share, 1.0)
            found.append(finish(problem, shape, batch, now.speed, used, v * rate))
        met = [made for made in found if made is not None]
        return min(met, key=lambda p: p.score, default=None)

    def nearest(self) -> list[Any]:
        """Shapes that are worth another search of layouts, the best first."""
        scored = [
            (made.score, i, key)
            for i, key in enumerate(self.pool)
            if key[1] is not None
            and (made := candidate(self.problem, key[0], key[1])) is not None
        ]
        return [key for _, _, key in sorted(scored)[:SEARCHED_AGAIN]]


def _free(problem: Problem) -> Problem:
    if problem.objective == "loss":
        return problem
    return problem.with_(deadline=None, budget=None, compute=None)


def _settled(plan: Plan) -> Problem:
    """Hold the batch, which else moves with the law of batches as limits do."""
    p = plan.problem
    if plan.batch is None or plan.batch_tokens is None:
        return p
    if p.batch_limit is None and plan.batch in p.batches():
        tokens = BATCH_LAWS["deepseek-2024"].batch(p.first_compute()).value
        return p.with_(batch_limit=float(tokens))
    if p.batch_limit is None or np.isposinf(p.batch_limit):
        return p.with_(batch_limit=plan.batch_tokens)
    return p


def sensitivity(
    plan: Plan, among: Sequence[Plan] | None = None, machine: bool = True
) -> Sensitivity:
    r"""Return what one more unit of each limit is worth, with the plan made again.

    .. math:: \lambda_x = \frac{f(1.1\,x) - f(x)}{0.1\,x}

    Parameters
    ----------
    plan : Plan
        The plan, [-]
    among : sequence of Plan, optional
        Plans whose shapes to choose from, in place of a full search: for a control that
        moves, [-]
    machine : bool, optional
        Whether to search layouts again for rows of network, memory and batch, [-]

    Returns
    -------
    Sensitivity
        A row for every limit that is not infinite, [-]

    Notes
    -----
    f is the objective of the best plan, its size, shape and layout free to move; every
    limit is loosened by ten percent, so that shares compare. Ten percent more of a
    target loss are ten percent of its excess over the floor of the law. Ten percent
    more accelerators, or sequences, divide badly: twice as many are searched, and the
    power law through both is followed for ten percent. The batch is held while other
    limits move. Shares are of the time that a speed-up would have to save for the same
    gain of loss, of the time, or of the cost, as the objective is.

    A call takes 0.2 to 1 s of CPU after ``plan``, whose searches it shares.

    Examples
    --------
    >>> from chinchilla_lab.cluster import Cluster
    >>> from chinchilla_lab.planning.plans import plan
    >>> loft = Cluster(accelerator="h100-sxm-80gb", n_accelerators=64)
    >>> found = sensitivity(plan(loft, deadline=30 * 86400))
    >>> {"accelerators", "deadline"} >= {found.binding}
    True
    """
    kept = plan.__dict__.get("_sensitivity")
    full = among is None and machine
    if full and isinstance(kept, Sensitivity):
        return kept
    again = _Replans(plan, among)
    p = again.problem
    loosened = _loosened(p)
    made = {name: again.under(more) for name, _, _, more in loosened}
    # one plan for all: a shape that some replan found by luck counts here too
    base = again.under(p)
    known = [x for x in (base, again.best(p), plan) if x is not None]
    base = min(known, key=lambda x: x.score)
    limit = DataLimit(law=silent(p.law), unique=p.unique_tokens)
    fresh = base.D / base.waste
    worn = p.objective == "loss" and limit.worn_out(base.N, fresh)

    def slope() -> float:
        """Loss for a share more of the tokens, at fixed size."""
        n, step = np.asarray(base.N), 1e-4
        ends = [
            float(limit.loss(n, np.asarray(fresh * (1 + k)))) for k in (-step, step)
        ]
        return (ends[1] - ends[0]) / (2 * step)

    per_share = slope()
    rows: list[Worth] = []

    def add(
        name: str, value: float, unit: str, score: float | None, step: float,
        loosens: bool = True,
    ) -> None:  # fmt: skip
        """Note what ``step`` more of a limit make of the objective."""
        change = 0.0 if score is None else score - base.score
        change = min(change, 0.0) if loosens else change
        if worn and name != "unique tokens":
            change = 0.0
        if p.objective != "loss":
            share = -change / base.score
        elif per_share < 0.0 and not worn:
            share = 1.0 - float(np.exp(-change / per_share))
        else:
            share = 1.0 if change < 0.0 else 0.0
        rows.append(
            Worth(
                limit=name, value=value, unit=unit, worth=change / step,
                time_share=share,
            )
        )  # fmt: skip

    for name, value, unit, more in loosened:
        best = [x.score for x in (made[name], again.best(more)) if x is not None]
        step = MORE * value
        if name == ASKED:
            step = (more.target_loss or 0.0) - value
        add(name, value, unit, min(best, default=None), step)
    _accelerators(again, base, add)
    if machine and plan.speed is not None and p.utilisation is None:
        _machine(again, base, add)
    rows.sort(key=lambda w: -w.time_share)
    found = Sensitivity(rows=tuple(rows), objective=p.objective)
    if full:
        # a plan never changes: what was found of it is kept with it
        plan.__dict__["_sensitivity"] = found
    return found


def _loosened(p: Problem) -> list[tuple[str, float, str, Problem]]:
    """Limits on the same machine: name, value in its unit, unit, ten percent more."""
    found = []
    for name, field, scale, unit in (
        ("deadline", "deadline", DAY, "day"),
        ("budget", "budget", 1e3, "thousand USD"),
        ("compute", "compute", 1e21, "1e21 FLOP"),
        ("unique tokens", "unique_tokens", 1e9, "billion tokens"),
        ("critical batch", "critical_batch", 1e6, "million tokens"),
    ):
        value = getattr(p, field)
        if value is not None and np.isfinite(value):
            more = p.with_(**{field: value * (1.0 + MORE)})
            found.append((name, value / scale, unit, more))
    if p.objective != "loss" and p.target_loss is not None:
        excess = p.target_loss - float(loss_floor(silent(p.law), 1e300))
        more = p.with_(target_loss=p.target_loss + MORE * excess)
        found.append((ASKED, p.target_loss, "nats/token", more))
    return found


def _accelerators(again: _Replans, base: Plan, add: Any) -> None:
    """Follow the power law from a search of twice the accelerators."""
    p = again.problem
    power = 1.0
    if base.speed is not None and base.shape is not None and base.batch is not None:
        twice = p.with_(
            cluster=replace(p.cluster, n_accelerators=2 * p.n), n_working=2 * p.working
        )
        more = fastest(twice, base.shape, base.batch)
        ratio = 1.0
        if more is not None:
            ratio = more.tokens_per_second / base.speed.tokens_per_second
        power = float(np.clip(np.log2(ratio), 0.0, 1.0))
    n = max(p.n + 1, round(p.n * (1.0 + MORE)))
    times = n / p.n
    busy = None if p.n_working is None else round(p.n_working * times)
    larger = p.with_(cluster=replace(p.cluster, n_accelerators=n), n_working=busy)
    made = again.faster(larger, times ** (power - 1.0), times**power)
    # whole accelerators: the change of the step taken, as one of ten percent
    scaled = MORE / (times - 1.0)
    score = base.score + scaled * (made.score - base.score) if made else None
    add("accelerators", float(p.n), "accelerator", score, MORE * p.n, False)


def _machine(again: _Replans, base: Plan, add: Any) -> None:
    """Search again with a little more of what the machine has."""
    p, cluster = again.problem, again.problem.cluster
    near = again.nearest()
    if cluster.n_domains > 1:
        now = cluster.network
        wide = replace(cluster, scaleout_bandwidth=now * (1.0 + MORE))
        made = again.best(p.with_(cluster=wide), near)
        add("network", now / GB, "GB/s per accelerator",
            made.score if made else None, MORE * now / GB)  # fmt: skip
    chip = cluster.chip
    room = float(chip.memory)
    if p.memory_limit is not None and p.memory_limit < room:
        room = p.memory_limit
        roomy = p.with_(memory_limit=min(room * (1.0 + MORE), float(chip.memory)))
    else:
        grown = {
            k: v * (1.0 + MORE)
            for k in ("hbm_bytes", "device_bytes")
            if (v := getattr(chip, k)) is not None
        }
        larger = replace(cluster, accelerator=replace(chip, **grown))
        roomy = p.with_(cluster=larger, memory_limit=None)
    made = again.best(roomy, near)
    add("memory", room / GB, "GB", made.score if made else None, MORE * room / GB)
    tokens, batch = base.batch_tokens, base.batch
    if tokens is None or batch is None or base.shape is None or base.speed is None:
        return
    if np.isposinf(again.plan.problem.batch_limit or 0.0):
        return  # no limit, no row
    most = max(p.batches())
    value = most * p.seq_len / 1e6
    if batch < most:
        # divisors chose it: see what they make of the larger limit
        limit = (p.batch_limit or tokens) * (1.0 + MORE)
        wider = p.with_(batch_limit=limit)
        tried = [(s, b) for s, _ in near for b in wider.batches()]
        made = again.best(wider, dict.fromkeys(tried))
        add("batch", value, "million tokens", made.score if made else None,
            MORE * value)  # fmt: skip
        return
    more = fastest(p, base.shape, 2 * batch)
    ratio = 1.0
    if more is not None:
        ratio = more.tokens_per_second / base.speed.tokens_per_second
    gain = (1.0 + MORE) ** max(float(np.log2(ratio)), 0.0)
    gain = max(gain * base.waste / p.waste((1.0 + MORE) * tokens) - 1.0, 0.0)
    faster = again.faster(p, 1.0 + gain, 1.0 + gain) if gain else None
    add("batch", value, "million tokens", faster.score if faster else None,
        MORE * value)  # fmt: skip


def describe(found: Sensitivity) -> str:
    """Say in one line what binds and what more of it is worth."""
    if not found.binding:
        return "nothing binds"
    first = next(w for w in found.rows if w.limit == found.binding)
    unit = OBJECTIVES[found.objective]
    dollars = unit == "USD"
    worth = _signed(first.worth, dollars) + ("" if dollars else f" {unit}")
    return (
        f"{first.limit}: one more {first.unit} is worth {worth}, 10 % more save "
        f"{first.time_share:.1%} of the {found.saved}"
    )
