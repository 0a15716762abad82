"""Draws of the time that a plan takes: steps, failures, and the run around them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from chinchilla_lab.cluster.batch import BATCH_LAWS, divisible_batch
from chinchilla_lab.cluster.failures import Reliability
from chinchilla_lab.cluster.stacks import MIXTURE_ERROR, STACKS, Stack
from chinchilla_lab.planning.results import Plan
from chinchilla_lab.planning.speed import fastest
from chinchilla_lab.planning.whole_runs import whole_run_factors

__all__: list[str] = []

Array = NDArray[np.float64]

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
# factor up and down within which a good or critical batch is known
BATCH_SPREAD = BATCH_LAWS["deepseek-2024"].spread


@dataclass(frozen=True, kw_only=True)
class TimeDraws:
    """Factors on the time of a plan, one entry a draw; they are independent.

    Parameters
    ----------
    model : numpy.ndarray
        Step model, [-]
    failures : numpy.ndarray
        Failures, [-]
    whole : numpy.ndarray
        Whole run over its steps, [-]
    price : numpy.ndarray
        Price over its middle, [-]
    waste : numpy.ndarray
        Examples at the drawn critical batch over the plan's, [-]
    """

    model: Array
    failures: Array
    whole: Array
    price: Array
    waste: Array

    @property
    def steps(self) -> Array:
        """Step model and failures."""
        return self.model * self.failures

    @property
    def run(self) -> Array:
        """The whole run on the tokens of the plan."""
        return self.model * self.failures * self.whole


@dataclass(frozen=True, kw_only=True)
class TimeDoubt:
    """What the draws of a plan's time are made of, worked out once.

    Parameters
    ----------
    stacks : tuple
        Time over the plan's of each stack that it may be, and the stack, [-]
    n : int
        Accelerators at work, [-]
    mixture : bool
        Whether the shape is one of experts, [-]
    rates : numpy.ndarray, optional
        Logarithms of failure rates, [-]
    kept : numpy.ndarray, optional
        What each leaves of the time, [-]
    share : float
        What the plan's rate leaves of the time, [-]
    mean : float
        Failures of the run that the plan expects, [-]
    whole_run : bool
        Whether what whole runs take is drawn, [-]
    leave_out : tuple of str
        Published runs that do not count in it, [-]
    price : tuple of float, optional
        Lowest and highest price over the middle, [-]
    over_critical : float
        Batch over the critical one; 0 where nothing is wasted, [-]
    """

    stacks: tuple[tuple[float, Stack], ...]
    n: int
    mixture: bool
    rates: Array | None
    kept: Array | None
    share: float
    mean: float
    whole_run: bool
    leave_out: tuple[str, ...]
    price: tuple[float, float] | None
    over_critical: float

    def draw(self, rng: np.random.Generator, draws: int) -> TimeDraws:
        """Draw factors."""
        price = np.full(draws, np.nan)
        model, failures = self._model(rng, draws), self._failures(rng, draws)
        whole = np.ones(draws)
        if self.whole_run:
            whole = whole_run_factors(rng, draws, self.leave_out)
        if self.price is not None:
            low, high = np.log(self.price)
            price = np.exp(rng.uniform(low, high, draws))
        waste = np.ones(draws)
        if self.over_critical:
            reach = np.log(BATCH_SPREAD)
            drawn = self.over_critical * np.exp(rng.uniform(-reach, reach, draws))
            waste = (1.0 + drawn) / (1.0 + self.over_critical)
        return TimeDraws(
            model=model, failures=failures, whole=whole, price=price, waste=waste
        )

    def _model(self, rng: np.random.Generator, draws: int) -> Array:
        """Time over the modelled time, as the error of the step model has it."""
        if not self.stacks:
            return np.ones(draws)
        made = [ratio * self._error(stack, rng, draws) for ratio, stack in self.stacks]
        if len(made) == 1:
            return made[0]
        which = rng.integers(len(made), size=draws)
        return np.asarray(np.stack(made)[which, np.arange(draws)])

    def _error(self, stack: Stack, rng: np.random.Generator, draws: int) -> Array:
        dense = self.mixture and not stack.mixtures
        if dense or not stack.fitted:
            low, high = np.log(MIXTURE_ERROR if stack.fitted else UPPER_BOUND)
            # the middle nine tenths of the draws span the range
            width = (high - low) / 0.9
            return np.exp((low + high) / 2 + width * (rng.random(draws) - 0.5))
        error = UNKNOWN_ERROR if np.isnan(stack.error) else stack.error
        drift = DRIFT * max(0.0, np.log2(self.n / DRIFT_FROM))
        noise = np.exp(MAPE_TO_SIGMA * error * rng.standard_normal(draws))
        return noise * (1.0 + drift * rng.random(draws))

    def _failures(self, rng: np.random.Generator, draws: int) -> Array:
        """Time over the planned time, over rates in the band and over chance."""
        if self.rates is None or self.kept is None:
            return np.ones(draws)
        log_rate = rng.uniform(self.rates[0], self.rates[-1], draws)
        kept = np.interp(log_rate, self.rates, self.kept)
        if self.mean <= 0.0:
            return self.share / kept
        # chance: the number of failures scatters as Poisson's, each costs the same
        drawn = rng.poisson(self.mean, draws) / max(self.mean, 1e-12)
        lost = (1.0 - kept) * drawn
        return self.share * (1.0 / kept + (lost - (1.0 - kept)) / kept)


def time_doubt(
    plan: Plan, whole_run: bool, leave_out: tuple[str, ...] = ()
) -> TimeDoubt:
    """Work out what the draws of a plan's time need."""
    p = plan.problem
    reliable = p.reliability
    rates = kept = None
    mean = 0.0
    if reliable is not None and reliable.failures_per_node_day > 0.0:
        low, high = np.log(np.maximum(reliable.band, 1e-12))
        rates = np.linspace(low, high, 9)
        kept = np.array([_share(reliable, float(np.exp(r)), p.working) for r in rates])
        mean = plan.seconds / reliable.mean_time(p.working)
    price = None
    if p.price is not None:
        price = (p.price.low / p.usd_per_hour, p.price.high / p.usd_per_hour)
    return TimeDoubt(
        stacks=_stacks(plan), n=p.working, mixture=_is_mixture(plan),
        rates=rates, kept=kept, share=plan.goodput.share, mean=mean,
        whole_run=whole_run, leave_out=leave_out, price=price,
        over_critical=plan.waste - 1.0,
    )  # fmt: skip


def _is_mixture(plan: Plan) -> bool:
    return plan.shape is not None and plan.shape.n_experts > 1


def _share(reliable: Reliability, rate: float, n: int) -> float:
    return reliable.with_(failures_per_node_day=rate).goodput(n).share


def _stacks(plan: Plan) -> tuple[tuple[float, Stack], ...]:
    """Return the stacks that a plan may run on, with their time over the plan's."""
    p, speed = plan.problem, plan.speed
    if speed is None or plan.shape is None or plan.batch is None:
        return ()
    made = [(1.0, p.stack)]
    if p.stack_given:
        return tuple(made)
    # nobody said which software: every stack of that kind is as likely
    others = [k for k in OTHERS if k.split("-")[-1] in p.cluster.chip.id]
    for name in (*FAMILY, *(others if p.working <= OTHERS_UP_TO else [])):
        stack = STACKS[name]
        if name == p.stack.name:
            continue
        other = fastest(p.with_(stack=stack), plan.shape, plan.batch)
        if other is not None:
            made.append((other.step.seconds / speed.step.seconds, stack))
    return tuple(made)


def other_batches(plan: Plan) -> tuple[float, float] | None:
    """Return the time at the ends of the batch law's spread, over the plan's.

    None where no law bounded the batch, or where neither end has a layout.
    """
    p, batch = plan.problem, plan.batch
    if batch is None or plan.shape is None or plan.speed is None:
        return None
    if p.batch_limit is not None or p.critical_batch is not None:
        return None
    found = [1.0]
    for most in (batch / BATCH_SPREAD, batch * BATCH_SPREAD):
        if most < 1.0:
            continue
        size = divisible_batch(int(most), p.working, "replicas")
        other = fastest(p, plan.shape, size)
        if other is not None:
            found.append(plan.speed.tokens_per_second / other.tokens_per_second)
    return None if len(found) == 1 else (min(found), max(found))


def chances(plan: Plan, draws: int = 4000) -> tuple[float, float]:
    """Return with which chance the tokens of a plan are done within its limits.

    The first entry is of the deadline, the second of the budget; NaN where none is
    given. Drawn as :func:`~chinchilla_lab.planning.intervals` draws by default.
    """
    made = _drawn(plan, draws)
    return chances_of(plan, made.run, made.price)


def _drawn(plan: Plan, draws: int = 4000) -> TimeDraws:
    return time_doubt(plan, plan.problem.whole_run).draw(
        np.random.default_rng(0), draws
    )


def chances_of(plan: Plan, run: Array, price: Array) -> tuple[float, float]:
    """Return the chances of deadline and budget from factors on time and price."""
    p = plan.problem
    timely = affordable = float("nan")
    if p.deadline is not None:
        timely = float(np.mean(plan.seconds * run <= p.deadline * (1 + 1e-9)))
    if p.budget is not None:
        paid = _paid(plan, run, price)
        affordable = float(np.mean(paid <= p.budget * (1 + 1e-9)))
    return timely, affordable


def _served(plan: Plan) -> float:
    return plan.serving_dollars if plan.problem.inference_tokens else 0.0


def _paid(plan: Plan, run: Array, price: Array) -> Array:
    """Dollars of training and serving, from factors on time and price."""
    return (plan.dollars * run + _served(plan)) * price


def slack_for(plan: Plan, confidence: float) -> tuple[float, float]:
    """Return by how much deadline and budget must be cut to be met with confidence."""
    made = _drawn(plan)
    slow, dear = float(np.quantile(made.run, confidence, method="higher")), 1.0
    if plan.problem.budget is not None:
        whole = plan.dollars + _served(plan)
        paid = _paid(plan, made.run, made.price)
        dear = float(np.quantile(paid, confidence, method="higher")) / whole
    return max(slow, 1.0), max(dear, 1.0)
