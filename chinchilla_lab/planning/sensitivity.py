"""Which limit binds, and what one more unit of it is worth."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from chinchilla_lab.planning.candidates import finish
from chinchilla_lab.planning.losses import DataLimit
from chinchilla_lab.planning.problem import OBJECTIVES, Problem
from chinchilla_lab.planning.results import Plan
from chinchilla_lab.planning.speed import fastest, search_all
from chinchilla_lab.tables import html_table
from chinchilla_lab.units import DAY, FLOP_PER_ND, GB, HOUR, text

__all__ = ["Sensitivity", "Worth", "sensitivity"]

# a limit binds if ten percent more of it is worth this share of the time
BINDS = 1e-3
MORE = 0.1


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
        Time that ten percent more are worth, as a share of the plan's, [-]
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
class Sensitivity:
    """All limits of a plan, the one that matters most first.

    Parameters
    ----------
    rows : tuple of Worth
        Limits, [-]
    objective : str
        What the plan is best at, [-]
    """

    rows: tuple[Worth, ...]
    objective: str

    @property
    def binding(self) -> str:
        """The limit of which ten percent more help most; empty if none does, [-]."""
        best = self.rows[0]
        return best.limit if best.binds else ""

    def _repr_html_(self) -> str:
        unit = OBJECTIVES[self.objective]
        rows = [
            [
                w.limit,
                f"{w.value:.4g} {w.unit}",
                f"{w.worth:+.3g}",
                f"{w.time_share:.2%}",
                "binds" if w.binds else "slack",
            ]
            for w in self.rows
        ]
        return html_table(
            (
                "limit",
                "there is",
                f"one more is worth [{unit}]",
                "10 % more, of the time",
                "",
            ),
            rows,
        )


def _again(plan: Plan, problem: Problem, batch: int | None = None) -> Plan | None:
    """Return the same size and shape under other limits, the layout searched again."""
    used = plan.batch if batch is None else batch
    if plan.shape is not None and problem.utilisation is None and used is not None:
        speed = fastest(problem, plan.shape, used)
        if speed is None:
            return None
        share = speed.utilisation * problem.busy
        rate = speed.tokens_per_second
        # tokens in whole steps would hide small changes
        made = finish(problem, plan.shape, None, speed, share, rate)
        return made
    active = plan.N if plan.shape is None else plan.shape.params().active
    share = plan.utilisation
    rate = problem.peak * share / (FLOP_PER_ND * active)
    return finish(problem, plan.shape, None, None, share, rate, plan.N)


def sensitivity(plan: Plan) -> Sensitivity:
    r"""Return what one more unit of each limit is worth, at the plan's own size.

    .. math:: \lambda_x = \frac{\partial\,\text{objective}}{\partial x}

    Parameters
    ----------
    plan : Plan
        The plan, [-]

    Returns
    -------
    Sensitivity
        Rows by worth, [-]

    Notes
    -----
    The size stays: at an optimum its change is worth nothing to first order. Deadline,
    budget, compute and tokens are derivatives. For accelerators twice as many are
    searched at the same batch, and the growth is spread over the doubling; bandwidth,
    memory and batch are searched again, and what a tenth more (twice the batch) gives
    is divided by the units. ``time_share`` measures all limits alike: the time that a
    tenth more of a limit would save at the same objective.

    Examples
    --------
    >>> from chinchilla_lab.cluster import Cluster
    >>> from chinchilla_lab.planning.plans import plan
    >>> loft = Cluster(accelerator="h100-sxm-80gb", n_accelerators=64)
    >>> found = sensitivity(plan(loft, deadline=30 * 86400))
    >>> {"accelerators", "deadline"} >= {found.binding}
    True
    """
    p = plan.problem
    base = _again(plan, p)
    assert base is not None  # the plan itself was found this way
    limit = DataLimit(law=p.law, unique=p.unique_tokens)
    D = base.D
    step = 1e-4

    def slope_of_loss() -> float:
        """Loss for a share more of tokens, repeats included."""
        n = np.asarray(plan.N)
        both = [float(limit.loss(n, np.asarray(D * k))) for k in (1 - step, 1 + step)]
        return (both[1] - both[0]) / (2 * step)

    per_share = slope_of_loss()  # nats for all tokens again, at fixed size
    # repeats that are worn out: no speed lowers the loss, only fresh tokens do
    worn_out = p.objective == "loss" and limit.worn_out(plan.N, D / base.waste)

    def from_rate(share: float) -> float:
        """Objective gained by a speed that is a share higher."""
        if p.objective == "loss":
            return per_share * share
        return -base.score * share / (1.0 + share) * (
            base.seconds / (base.seconds + float(p.serving_seconds(
                plan.N, plan.utilisation))) if p.objective == "lifetime" else 1.0
        )  # fmt: skip

    rows: list[Worth] = []

    def add(
        name: str, value: float, unit: str, rate_share: float, units: float
    ) -> None:
        """Note a limit whose ``units`` more raise the speed by a share."""
        if worn_out:
            rate_share = 0.0
        rows.append(
            Worth(
                limit=name, value=value, unit=unit,
                worth=from_rate(rate_share) / units,
                time_share=rate_share / (1.0 + rate_share) * (MORE * value / units),
            )
        )  # fmt: skip

    timed = p.objective != "loss" or p.deadline is not None or p.budget is not None
    others = _searched_again(plan) if timed else {}
    limits = {
        "deadline": None if p.deadline is None else p.deadline,
        "budget": None if p.budget is None else p.budget,
        "compute": p.compute,
    }
    if p.objective == "loss":
        for name, scale, unit in (
            ("deadline", DAY, "day"), ("budget", 1e3, "thousand USD"),
            ("compute", 1e21, "1e21 FLOP"),
        ):  # fmt: skip
            value = limits[name]
            if value is None:
                continue
            more = _again(plan, p.with_(**{name: value * (1 + MORE)}))
            gain = 0.0 if more is None else more.D / base.D - 1.0
            add(name, value / scale, unit, gain, MORE * value / scale)
    if timed:
        # where dollars count, one more accelerator is paid for as long as it works
        gain = _useful(plan, others)
        share = (gain - float(p.objective in ("cost", "lifetime"))) / p.n
        add("accelerators", p.n, "accelerator", share, 1.0)
    if p.unique_tokens is not None:
        n = np.asarray(plan.N)
        both = [
            float(
                DataLimit(law=p.law, unique=p.unique_tokens * k).loss(n, np.asarray(D))
            )
            for k in (1.0, 1.0 + MORE)
        ]
        change = both[1] - both[0]
        if worn_out and change < 0.0:
            share, time_share = np.inf, 1.0
        else:
            share = change / per_share if per_share else 0.0
            time_share = share / (1.0 + share)
        rows.append(
            Worth(
                limit="unique tokens", value=p.unique_tokens / 1e9,
                unit="billion tokens",
                worth=(change if p.objective == "loss" else from_rate(share))
                / (MORE * p.unique_tokens / 1e9),
                time_share=time_share,
            )
        )  # fmt: skip
    if others:
        _machine_rows(plan, base, others, add)
    rows.sort(key=lambda w: -w.time_share)
    return Sensitivity(rows=tuple(rows), objective=p.objective)


def _searched_again(plan: Plan) -> dict[str, tuple[Problem, int]]:
    """Search with a little more of each thing; return the problems and batches.

    Empty where the plan has no layout that could be searched again.
    """
    p, cluster, batch = plan.problem, plan.problem.cluster, plan.batch
    if plan.speed is None or plan.shape is None or batch is None:
        return {}
    network = cluster.network * (1 + MORE)
    others = {
        "twice": (
            p.with_(
                cluster=replace(cluster, n_accelerators=2 * p.n),
                n_working=2 * p.working,
            ),
            batch,
        ),
        "network": (
            p.with_(cluster=replace(cluster, scaleout_bandwidth=network)), batch
        ),
        "memory": (p.with_(memory_limit=_room(p) * (1 + MORE)), batch),
        "batch": (p, 2 * batch),
    }  # fmt: skip
    search_all((problem, plan.shape, many) for problem, many in others.values())
    return others


def _room(problem: Problem) -> float:
    own = problem.memory_limit
    return problem.cluster.chip.memory if own is None else own


def _useful(plan: Plan, others: dict[str, tuple[Problem, int]]) -> float:
    """Share of an accelerator's own speed that one more would add.

    Twice as many are searched, at the same batch: under a batch limit they add little.
    Where the budget binds they only spend it faster.
    """
    p = plan.problem
    if p.objective == "loss" and p.budget is not None:
        paid = p.budget / (p.usd_per_hour * p.n / HOUR)
        if p.deadline is None or paid < p.deadline:
            return 0.0
    if plan.speed is None or plan.shape is None or not others:
        return 1.0
    twice, batch = others["twice"]
    more = fastest(twice, plan.shape, batch)
    if more is None:
        return 0.0
    speed = more.tokens_per_second * twice.goodput.share
    ratio = speed / (plan.speed.tokens_per_second * plan.goodput.share)
    return float(np.clip(np.log2(ratio), 0.0, 1.0))


def _machine_rows(
    plan: Plan,
    base: Plan,
    others: dict[str, tuple[Problem, int]],
    add: Callable[[str, float, str, float, float], None],
) -> None:
    """Search again with a little more of what the machine has."""
    p = plan.problem
    now = base.utilisation
    network, room, tokens = p.cluster.network, _room(p), plan.batch_tokens or 0.0
    for name, value, unit, units in (
        ("network", network / GB, "GB/s per accelerator", MORE * network / GB),
        ("memory", room / GB, "GB", MORE * room / GB),
        ("batch", tokens / 1e6, "million tokens", tokens / 1e6),
    ):
        problem, batch = others[name]
        more = _again(plan, problem, batch)
        gain = 0.0 if more is None else max(0.0, more.utilisation / now - 1.0)
        if name == "batch" and p.critical_batch is not None:
            before = p.waste(plan.batch_tokens or 0.0)
            after = p.waste(2.0 * (plan.batch_tokens or 0.0))
            gain = max(0.0, (1.0 + gain) * before / after - 1.0)
        add(name, value, unit, gain, units)


def describe(found: Sensitivity) -> str:
    """Say in one line what binds and what more of it is worth."""
    if not found.binding:
        return "nothing binds"
    first = found.rows[0]
    unit = OBJECTIVES[found.objective]
    worth = f"{first.worth:+.3g} {unit}" if unit != "USD" else text(first.worth, "USD")
    return f"{first.limit} binds: one more {first.unit} is worth {worth}"
