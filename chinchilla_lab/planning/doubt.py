"""How well a plan is known: each source of doubt alone, and all of them together."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from chinchilla_lab.allocation.compare import spread
from chinchilla_lab.allocation.intervals import default_interval, interval
from chinchilla_lab.allocation.optimum import compute_optimal
from chinchilla_lab.checks import fraction, whole
from chinchilla_lab.cluster.failures import Reliability
from chinchilla_lab.cluster.stacks import STACKS, Stack
from chinchilla_lab.laws.families import Law, LossLaw
from chinchilla_lab.laws.published import DEFAULT, PUBLISHED, SPREAD
from chinchilla_lab.planning.losses import DataLimit, silent
from chinchilla_lab.planning.results import Plan
from chinchilla_lab.planning.speed import fastest
from chinchilla_lab.tables import Cells, Shown
from chinchilla_lab.units import DAY, HOUR, text

__all__ = ["Doubt", "Intervals", "intervals"]

Array = NDArray[np.float64]
Range = tuple[float, float]

# A step without calibrated constants takes 1.05 to 2 times as long as modelled: that
# holds nine in ten published rows, see the tests
UPPER_BOUND = (1.05, 2.0)
# a stack calibrated on few accelerators is 10 to 15 % too fast at thousands
# (:cite:`jiang2024megascale`, Table 2): three percent a doubling beyond 256
DRIFT, DRIFT_FROM = 0.03, 256.0
# errors have long tails: with 1.25, that of a normal law, 84 % of the published rows
# would lie in a 90 % interval
MAPE_TO_SIGMA = 1.6
# stacks that a team may well have, if it does not say: fused attention, and FSDP
FAMILY = ("llama-3", "megascale", "megatron-bridge")
OTHERS = ("llm-foundry-a100", "llm-foundry-h100")
OTHERS_UP_TO = 2048  # accelerators: four times the largest that was measured
UNKNOWN_ERROR = 0.1


@dataclass(frozen=True, kw_only=True)
class Doubt:
    """What one source of doubt does to a plan, the others held still.

    Parameters
    ----------
    source : str
        What is not known, [-]
    N : tuple of float, optional
        Size that would be best, from and to, [parameter]
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
        Tokens at the same compute, [token]
    days : tuple of float
        Time of this plan, all sources drawn together, [day]
    hours : tuple of float
        Accelerator-hours of this plan, [h]
    dollars : tuple of float
        Cost of this plan; NaN without a price, [USD]
    loss : tuple of float
        Loss of this plan: of its size on its tokens by other laws and resamples, and,
        where time limits the tokens, on those that fit into it, [nats/token]
    sources : tuple of Doubt
        Each source alone, [-]
    """

    level: float
    N: Range
    D: Range
    days: Range
    hours: Range
    dollars: Range
    loss: Range
    sources: tuple[Doubt, ...]

    def _cells(self) -> Cells:
        def words(ends: Range | None, unit: str) -> str:
            if ends is None or not np.all(np.isfinite(ends)):
                return ""
            if unit == "nats":
                return f"{ends[0]:.3f} to {ends[1]:.3f}"
            if unit == "day":
                return f"{ends[0]:.3g} to {ends[1]:.3g}"
            return f"{text(ends[0], unit)} to {text(ends[1], unit)}"

        rows = [
            [
                d.source,
                words(d.N, "parameter"),
                words(d.days, "day"),
                words(d.dollars, "USD"),
                words(d.loss, "nats"),
                d.note,
            ]
            for d in (
                *self.sources,
                Doubt(
                    source="together",
                    N=self.N,
                    days=self.days,
                    dollars=self.dollars,
                    loss=self.loss,
                ),
            )
        ]
        head = (
            "doubt",
            "N [parameter]",
            "time [day]",
            "cost [USD]",
            "loss [nats/token]",
            "from",
        )
        return Cells(head, rows, f"{self.level:.0%} intervals")


def _ends(x: Array, level: float) -> Range:
    tail = 50.0 * (1.0 - level)
    low, high = np.percentile(x, [tail, 100.0 - tail])
    return float(low), float(high)


def _law_scatter(law: Law, C: float, level: float) -> tuple[Range | None, str]:
    """Optimal sizes over the resamples of a law, as factors of its own optimum."""
    if law.resampled is not None:
        found = interval(law, C, level)
        note = "resamples of the fit"
    elif law is DEFAULT and level in (0.8, 0.9, 0.95) and 1e17 <= C <= 1e27:
        found = default_interval(C, level)
        note = "resamples of the published runs"
    else:
        return None, "no resamples of this law"
    return (float(found.N[0]), float(found.N[1])), note


def _laws_range(law: Law, C: float) -> Range:
    """Optimal sizes of one budget over laws that count the same parameters."""
    others = [PUBLISHED[name] for name in SPREAD]
    alike = [one for one in (law, *others) if one.N_counts == law.N_counts]
    sizes = spread([silent(one) for one in alike], C).N
    return float(sizes.min()), float(sizes.max())


def _law_losses(plan: Plan, level: float) -> tuple[Range | None, Range]:
    """Losses of the plan's size and tokens: over resamples, and over laws."""
    law, C = plan.problem.law, plan.C
    unique = plan.problem.unique_tokens or np.inf
    # repeats shift a loss; what the laws disagree on is that of the fresh tokens
    n, d = np.asarray(plan.N), np.asarray(min(plan.D / plan.waste, unique))
    own = float(silent(law)._loss(n, d))
    scatter: Range | None = None
    if law.resampled is not None:
        many = silent(law.resampled)
        if isinstance(many, LossLaw):
            ends = _ends(np.asarray(many._loss(n, d)), level)
            scatter = _around(plan.loss, _shifted(ends, plan.loss - own))
    elif law is DEFAULT and level in (0.8, 0.9, 0.95) and 1e17 <= C <= 1e27:
        found = default_interval(C, level).L
        best = compute_optimal(silent(law), C).L
        if found is not None and best is not None:
            ends = (float(found[0]), float(found[1]))
            scatter = _around(plan.loss, _shifted(ends, plan.loss - float(best)))
    others = [PUBLISHED[name] for name in SPREAD]
    said = [
        float(silent(one)._loss(n, d))
        for one in (law, *others)
        if isinstance(one, LossLaw) and one.N_counts == law.N_counts
    ]
    return scatter, _shifted((min(said), max(said)), plan.loss - own)


def _timed_loss(plan: Plan, factors: Array, level: float) -> Range:
    """Losses of the tokens that fit into the time, if the time limits them."""
    p = plan.problem
    limited = p.deadline is not None or p.budget is not None
    if p.objective != "loss" or p.compute is not None or not limited:
        return plan.loss, plan.loss
    low, high = _around(1.0, _ends(factors, level))
    tokens = plan.D / plan.waste / np.array([low, high])
    losses = DataLimit(law=silent(p.law), unique=p.unique_tokens).loss(
        np.full(2, plan.N), tokens
    )
    return _around(plan.loss, (float(losses.min()), float(losses.max())))


def _shifted(ends: Range, by: float) -> Range:
    return ends[0] + by, ends[1] + by


def _own_error(stack: Stack, n: int, rng: np.random.Generator, draws: int) -> Array:
    """Time over the modelled time of a stack, as its own scores have it."""
    if not stack.fitted:
        low, high = np.log(UPPER_BOUND)
        # the middle nine tenths of the draws span the range
        width = (high - low) / 0.9
        return np.exp((low + high) / 2 + width * (rng.random(draws) - 0.5))
    error = UNKNOWN_ERROR if np.isnan(stack.error) else stack.error
    drift = DRIFT * max(0.0, np.log2(n / DRIFT_FROM))
    noise = np.exp(MAPE_TO_SIGMA * error * rng.standard_normal(draws))
    return noise * (1.0 + drift * rng.random(draws))


def _model_factors(plan: Plan, rng: np.random.Generator, draws: int) -> Array:
    """Time over the modelled time, as the error of the step model has it."""
    p, speed = plan.problem, plan.speed
    if speed is None or plan.shape is None or plan.batch is None:
        return np.ones(draws)
    own = _own_error(p.stack, p.working, rng, draws)
    if p.stack_given:
        return own
    # nobody said which software: every stack of that kind is as likely
    made = [own]
    others = [k for k in OTHERS if k.split("-")[-1] in p.cluster.chip.id]
    for name in (*FAMILY, *(others if p.working <= OTHERS_UP_TO else [])):
        stack = STACKS[name]
        other = fastest(p.with_(stack=stack), plan.shape, plan.batch)
        if name == p.stack.name or other is None:
            continue
        ratio = other.step.seconds / speed.step.seconds
        made.append(ratio * _own_error(stack, p.working, rng, draws))
    which = rng.integers(len(made), size=draws)
    return np.asarray(np.stack(made)[which, np.arange(draws)])


def _failure_factors(plan: Plan, rng: np.random.Generator, draws: int) -> Array:
    """Time over the planned time, over rates in the band and over chance."""
    reliable = plan.problem.reliability
    if reliable is None or reliable.failures_per_node_day == 0.0:
        return np.ones(draws)
    low, high = np.log(np.maximum(reliable.band, 1e-12))
    rates = np.exp(np.linspace(low, high, 9))
    kept = np.array([_share(reliable, float(r), plan.problem.working) for r in rates])
    log_rate = rng.uniform(low, high, draws)
    share = np.interp(log_rate, np.log(rates), kept)
    # chance: the number of failures scatters as Poisson's, each costs the same
    mean = plan.seconds / reliable.mean_time(plan.problem.working)
    if mean <= 0.0:
        return plan.goodput.share / share
    drawn = rng.poisson(mean, draws) / max(mean, 1e-12)
    lost = (1.0 - share) * drawn
    return plan.goodput.share * (1.0 / share + (lost - (1.0 - share)) / share)


def _share(reliable: Reliability, rate: float, n: int) -> float:
    return reliable.with_(failures_per_node_day=rate).goodput(n).share


def intervals(
    plan: Plan, level: float = 0.9, draws: int = 4000, seed: int = 0
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

    Returns
    -------
    Intervals
        N and D [parameter, token]: where the optimum of the same compute would lie;
        days and dollars [day, USD]: what this plan may take

    Notes
    -----
    Sources are drawn independently. N spans the resamples of the law, where it has any,
    and the published laws that count the same parameters; for a plan that is not
    compute-optimal the factors of the optimum are applied to it. Time: the error of the
    step model on rows that were not fitted, with a drift of 3 % for each doubling
    beyond 256 accelerators; without calibration, 1.05 to 2 times as long; where no
    stack was named, over three or four of them. A utilisation that was given is taken
    at its word. Failures: the band of rates, and chance. Every range is widened to the
    plan's own figure where the errors lie all on one side of it.

    Examples
    --------
    >>> from chinchilla_lab.cluster import Cluster
    >>> from chinchilla_lab.planning.plans import plan
    >>> loft = Cluster(accelerator="h100-sxm-80gb", n_accelerators=64)
    >>> doubt = intervals(plan(loft, deadline=30 * 86400))
    >>> doubt.days[0] < 30 < doubt.days[1]
    True
    """
    share, n = float(fraction("level", level)), whole("draws", draws)
    rng = np.random.default_rng(seed)
    law, C = plan.problem.law, plan.C
    model = _model_factors(plan, rng, n)
    failing = _failure_factors(plan, rng, n)
    price = plan.problem.price
    if price is None:
        rate = np.full(n, np.nan)
    else:
        rate = np.exp(rng.uniform(np.log(price.low), np.log(price.high), n))
    middle = np.nan if price is None else plan.problem.usd_per_hour

    resampled, over_laws = _law_losses(plan, share)

    def timed(source: str, factors: Array, note: str) -> Doubt:
        low, high = _around(1.0, _ends(factors, share))
        money = (plan.dollars * low, plan.dollars * high)
        return Doubt(
            source=source,
            days=(plan.days * low, plan.days * high),
            dollars=money,
            loss=_timed_loss(plan, factors, share),
            note=note,
        )

    best = plan.compute_optimal_N
    scatter, note = _law_scatter(law, C, share)
    laws = _laws_range(law, C)
    sources = []
    ends = [laws]
    if scatter is not None:
        ends.append(scatter)
        sources.append(
            Doubt(
                source="runs behind the law",
                N=_scaled(plan, scatter),
                loss=resampled,
                note=note,
            )
        )
    else:
        sources.append(Doubt(source="runs behind the law", note=note))
    sources.append(
        Doubt(
            source="which law",
            N=_scaled(plan, laws),
            loss=over_laws,
            note="published laws",
        )
    )
    sources.append(timed("step model", model, plan.label))
    if plan.problem.reliability is not None:
        sources.append(timed("failures", failing, "band of rates, and chance"))
    if price is not None:
        sources.append(
            Doubt(
                source="price",
                dollars=(plan.hours * price.low, plan.hours * price.high),
                note=f"{price.date}; {price.source}",
            )
        )
    N = _scaled(plan, (min(e[0] for e in [*ends, (best, 0)]), max(e[1] for e in ends)))
    days = _around(plan.days, _ends(plan.days * model * failing, share))
    hours = (
        days[0] * DAY * plan.problem.n / HOUR,
        days[1] * DAY * plan.problem.n / HOUR,
    )
    if price is None:
        dollars = (float("nan"), float("nan"))
    else:
        dollars = _around(
            plan.dollars, _ends(plan.dollars * model * failing * rate / middle, share)
        )
    N = _around(plan.N, N)
    by_law = [over_laws, *([] if resampled is None else [resampled])]
    parts = (
        (min(e[0] for e in by_law), max(e[1] for e in by_law)),
        _timed_loss(plan, model * failing, share),
    )
    # independent sources: their reaches add in square
    down, up = (
        float(np.hypot(parts[0][k] - plan.loss, parts[1][k] - plan.loss))
        for k in (0, 1)
    )
    nd = plan.N * plan.D
    return Intervals(
        level=share,
        N=N,
        D=(nd / N[1], nd / N[0]),
        days=days,
        hours=hours,
        dollars=dollars,
        loss=(plan.loss - down, plan.loss + up),
        sources=tuple(sources),
    )


def _around(point: float, ends: Range) -> Range:
    """Widen a range to its point: what the plan says is never ruled out."""
    return min(ends[0], point), max(ends[1], point)


def _scaled(plan: Plan, ends: Range) -> Range:
    factor = plan.N / plan.compute_optimal_N
    return ends[0] * factor, ends[1] * factor
