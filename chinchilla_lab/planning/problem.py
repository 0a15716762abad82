"""What is asked of a plan: machine, law, limits, and what counts as best."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from chinchilla_lab.allocation.optimum import compute_optimal, optimal_for_loss
from chinchilla_lab.allocation.solving import needs_loss
from chinchilla_lab.checks import fraction, non_negative, one_of, positive, whole
from chinchilla_lab.cluster.accelerators import DTYPES, Price
from chinchilla_lab.cluster.batch import BATCH_LAWS, divisible_batch, even_batches
from chinchilla_lab.cluster.cost import as_price
from chinchilla_lab.cluster.failures import Reliability
from chinchilla_lab.cluster.goodput import Goodput
from chinchilla_lab.cluster.hardware import Cluster
from chinchilla_lab.cluster.memory import Recipe
from chinchilla_lab.cluster.stacks import Stack, find_stack
from chinchilla_lab.laws.families import LossLaw
from chinchilla_lab.planning.losses import silent
from chinchilla_lab.shape.family import FAMILIES
from chinchilla_lab.units import FLOP_PER_ND, HOUR

__all__ = ["OBJECTIVES", "Objective", "Problem"]

Objective = Literal["loss", "time", "cost", "lifetime"]
OBJECTIVES: dict[str, str] = {
    "loss": "nats/token",
    "time": "s",
    "cost": "USD",
    "lifetime": "USD",
}
"""What a plan can be best at, and the unit of it."""

# utilisation that stands in until layouts were searched
FIRST_GUESS = 0.4
# share of wasted examples that no smaller batch is worth
NO_WASTE = 2e-3
# steps of which a part of one is no loss
FEW_STEPS = 1000
NEVER = Goodput(
    share=1.0, saving=0.0, repeated=0.0, restarting=0.0, interval=float("inf"),
    mean_time=float("inf"),
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem:
    """Everything that a plan answers to.

    Parameters
    ----------
    cluster : Cluster
        The machine, [-]
    n_working : int, optional
        Accelerators that work, the rest idle and paid for; None for as many as are
        best, [-]
    law : LossLaw
        Law with a loss, [-]
    objective : {"loss", "time", "cost", "lifetime"}
        Least loss within the limits, or least time, training cost or training plus
        serving cost at ``target_loss``, [-]
    deadline : float, optional
        Time from start to end, failures included, [s]
    budget : float, optional
        Money for training and, if tokens are to be served, serving, [USD]
    compute : float, optional
        Training compute 6ND at most, [FLOP]
    target_loss : float, optional
        Loss to reach, [nats/token]
    unique_tokens : float, optional
        Tokens that differ; more are repeats, [token]
    inference_tokens : float
        Tokens to be served over the life of the model, [token]
    shape_family : str, optional
        Key of ``shape.FAMILIES``; None for any N, with ``utilisation``, [-]
    seq_len : int
        Tokens of a sequence, [token]
    batch_limit : float, optional
        Largest batch; None for the law ``deepseek-2024``, infinity for none, [token]
    critical_batch : float, optional
        Critical batch, above which examples are wasted; None for no waste, [token]
    stack : Stack
        Constants of the software, [-]
    stack_given : bool
        Whether the software is known; if not, intervals span several stacks, [-]
    dtype : str
        Format of the matrix products, [-]
    recipe : Recipe or str
        Bytes of a parameter, [byte/parameter]
    memory_limit : float, optional
        Bytes that a job may fill on an accelerator, [byte]
    reliability : Reliability, optional
        Failures; None for a machine that never fails, [-]
    price : Price, optional
        Rental; by default the chip's where one is known, [USD/h]
    utilisation : float, optional
        Share of the peak that 6ND reach, instead of a search of layouts, [-]
    serving_utilisation : float, optional
        Share of the peak that 2N per served token reach; by default as in training, [-]
    pue : float, optional
        Power of the hall over that of its accelerators, [-]
    options : dict
        Axes of the layout search, restricted, [-]
    keep : int
        Plans to return, [-]
    thorough : bool
        Look at all shapes near the best size, not only at one for each size, [-]
    confidence : float, optional
        Chance with which deadline and budget, each, are to be met; None for the middle
        of the model, [-]
    whole_run : bool
        Whether intervals and confidence count what whole runs take over their steps,
        [-]
    slack : tuple of float
        What deadline and budget are divided by; ``confidence`` sets it, [-]
    """

    cluster: Cluster
    n_working: int | None = None
    law: LossLaw
    objective: Objective = "loss"
    deadline: float | None = None
    budget: float | None = None
    compute: float | None = None
    target_loss: float | None = None
    unique_tokens: float | None = None
    inference_tokens: float = 0.0
    shape_family: str | None = "llama"
    seq_len: int = 4096
    batch_limit: float | None = None
    critical_batch: float | None = None
    stack: Stack
    stack_given: bool = True
    dtype: str = "bf16"
    recipe: Recipe | str = "mixed-adam"
    memory_limit: float | None = None
    reliability: Reliability | None = None
    price: Price | None = None
    utilisation: float | None = None
    serving_utilisation: float | None = None
    pue: float | None = None
    options: dict[str, Sequence[Any]] = field(default_factory=dict)
    keep: int = 5
    thorough: bool = True
    confidence: float | None = None
    whole_run: bool = True
    slack: tuple[float, float] = (1.0, 1.0)

    def __post_init__(self) -> None:
        needs_loss(self.law, "plan")
        one_of("objective", self.objective, OBJECTIVES)
        one_of("dtype", self.dtype, DTYPES)
        for name in ("deadline", "budget", "compute", "target_loss", "unique_tokens"):
            if getattr(self, name) is not None:
                positive(name, getattr(self, name))
        for name in ("utilisation", "serving_utilisation", "confidence"):
            if getattr(self, name) is not None:
                fraction(name, getattr(self, name))
        if self.critical_batch is not None:
            positive("critical_batch", self.critical_batch)
        if self.batch_limit is not None and not np.isposinf(self.batch_limit):
            positive("batch_limit", self.batch_limit)
        non_negative("inference_tokens", self.inference_tokens)
        if self.unique_tokens is not None and self.unique_tokens < self.seq_len:
            raise ValueError(
                f"unique_tokens={self.unique_tokens:g} are fewer than one sequence of "
                f"{self.seq_len}; write 50e9 or, on the command line, 50B"
            )
        if self.pue is not None and float(positive("pue", self.pue)) < 1.0:
            raise ValueError(
                f"pue={self.pue:g} is below 1: the hall draws what is in it; give the "
                "power of the hall over that of its machines, such as 1.2"
            )
        whole("seq_len", self.seq_len)
        whole("keep", self.keep)
        if self.n_working is not None and whole("n_working", self.n_working) > self.n:
            raise ValueError(
                f"n_working={self.n_working} exceeds the {self.n} accelerators of the "
                "cluster; lower it, or give a larger cluster"
            )
        if self.shape_family is not None:
            one_of("shape_family", self.shape_family, FAMILIES)
        elif self.utilisation is None:
            raise ValueError(
                "shape_family=None plans any N and so has no layouts to search; give "
                "utilisation=0.4 or the like, or name a family"
            )
        if self.objective == "loss":
            if self.deadline is None and self.budget is None and self.compute is None:
                raise ValueError(
                    "nothing limits the loss: give deadline, budget or compute"
                )
        elif self.target_loss is None:
            raise ValueError(
                f"objective={self.objective!r} needs target_loss, the loss to reach"
            )
        needs_money = self.budget is not None or self.objective in ("cost", "lifetime")
        known = self.price is not None or self.cluster.chip.price is not None
        if needs_money or known:
            price = as_price(self.price, self.cluster.chip)
            object.__setattr__(self, "price", price)
        object.__setattr__(self, "stack", find_stack(self.stack))

    def with_(self, **changes: Any) -> "Problem":
        """Return a copy with other settings.

        Parameters
        ----------
        **changes : dict
            Fields to set; of a cluster of another size as many work as are best,
            unless ``n_working`` says otherwise, [-]

        Returns
        -------
        Problem
            The copy, [-]
        """
        other = changes.get("cluster", self.cluster)
        if other.n_accelerators != self.n:
            changes = {"n_working": None, **changes}
        return replace(self, **changes)

    @property
    def n(self) -> int:
        """Accelerators that are paid for, at work or not, [-]."""
        return self.cluster.n_accelerators

    @property
    def working(self) -> int:
        """Accelerators at work, [-]."""
        return self.n if self.n_working is None else self.n_working

    @cached_property
    def job(self) -> Cluster:
        """The accelerators at work, as a cluster of their own, [-]."""
        if self.working == self.n:
            return self.cluster
        return replace(self.cluster, n_accelerators=self.working)

    @property
    def peak(self) -> float:
        """Dense peak of the whole cluster, idle accelerators included, [FLOP/s]."""
        return self.n * self.cluster.chip.peak(self.dtype)

    @property
    def busy(self) -> float:
        """Accelerators at work over all of them, [-]."""
        return self.working / self.n

    @property
    def usd_per_hour(self) -> float:
        """Middle of the price range, geometric, [USD/h]."""
        if self.price is None:
            raise ValueError(
                f"no price of {self.cluster.chip.name} is known; give "
                "price='2.5@2026-11' in USD per accelerator-hour, with its month"
            )
        return float((self.price.low * self.price.high) ** 0.5)

    @cached_property
    def goodput(self) -> Goodput:
        """What failures leave of the time, [-]."""
        if self.reliability is None:
            return NEVER
        return self.reliability.goodput(self.working)

    def serving_seconds(self, N: Any, utilisation: Any) -> Any:
        r"""Time of the cluster that serving would take.

        .. math:: \frac{2 N T}{n P u}

        Parameters
        ----------
        N : array_like
            Parameters that a token uses, [parameter]
        utilisation : array_like
            Share of the peak in training; used unless serving has its own, [-]

        Returns
        -------
        numpy.ndarray or float
            Time, [s]
        """
        # requests need no layout: all serve as well as those at work train
        rate = self.peak * (
            utilisation / self.busy
            if self.serving_utilisation is None
            else self.serving_utilisation
        )
        return 2.0 * N * self.inference_tokens / rate

    def usable_seconds(self, N: Any, utilisation: Any) -> Any:
        """Time from start to end of training that deadline and budget leave.

        Parameters
        ----------
        N : array_like
            Parameters that a token uses, which serving must pay for, [parameter]
        utilisation : array_like
            Share of the peak in training, [-]

        Returns
        -------
        numpy.ndarray or float
            Time, infinite if neither is given, [s]
        """
        limit = np.full(np.shape(N), np.inf)
        if self.deadline is not None:
            limit = np.minimum(limit, self.deadline / self.slack[0])
        if self.budget is not None:
            hourly = self.usd_per_hour * self.n / HOUR
            paid = self.budget / self.slack[1] / hourly
            served = (
                self.serving_seconds(N, utilisation) if self.inference_tokens else 0
            )
            limit = np.minimum(limit, paid - served)
        return limit[()]

    def first_compute(self) -> float:
        """Compute that the answer will need, to the first guess, [FLOP]."""
        if self.target_loss is not None and self.objective != "loss":
            return float(optimal_for_loss(silent(self.law), self.target_loss).C)
        limits = [] if self.compute is None else [self.compute]
        seconds = float(self.usable_seconds(0.0, 1.0))
        if np.isfinite(seconds):
            share = self.utilisation or FIRST_GUESS
            rate = self.peak * self.busy * share
            limits.append(rate * seconds * self.goodput.share)
        return min(limits)

    def first_size(self) -> float:
        """Compute-optimal size at that compute, [parameter]."""
        return float(compute_optimal(silent(self.law), self.first_compute()).N)

    def batches(self) -> tuple[int, ...]:
        """Batches to try, the largest usual one first, [sequence]."""
        C = self.first_compute()
        tokens = self.batch_limit
        tops: list[int] = []
        if tokens is None:
            tokens = float(BATCH_LAWS["deepseek-2024"].batch(C).value)
        if np.isposinf(tokens):
            # as many as feed every accelerator well, in at least a thousand steps
            feed = 16.0 * self.working * self.seq_len
            D = C / (FLOP_PER_ND * self.first_size())
            most_steps = max(D / 1000.0, self.seq_len)
            tokens = max(min(max(feed, 2.0**24), most_steps), self.seq_len)
            # a long run may do better with more: try two larger ones as well
            larger = [k * tokens for k in (4.0, 16.0) if k * tokens < most_steps]
            tops = [int(x // self.seq_len) for x in larger]
        if tokens < self.seq_len:
            raise ValueError(
                f"batch_limit={tokens:g} holds not one sequence of seq_len="
                f"{self.seq_len}; raise it or shorten the sequence"
            )
        most = int(tokens // self.seq_len)
        usual = divisible_batch(most, self.working, "replicas")
        found = [usual]
        for top in (most, *tops):
            found += even_batches(top, self.working)
        for rung in self._rungs(max(most, *tops, 1)):
            found += (
                divisible_batch(rung, self.working, align)
                for align in ("replicas", "most")
            )
        return tuple(dict.fromkeys(found))

    def _rungs(self, most: int) -> list[int]:
        """Return smaller batches that may do better: powers of two, down to where.

        A fixed grid, so that a tighter limit tries none that a looser one does not.
        """
        D = self.first_compute() / (FLOP_PER_ND * self.first_size())
        rungs = []
        rung = 2 ** int(np.log2(most))
        while rung >= 1:
            wastes = self.waste(2 * rung * self.seq_len) >= 1.0 + NO_WASTE
            # of few steps the last one, which has no room, is a large part
            if not wastes and FEW_STEPS * rung * self.seq_len <= D:
                break
            rungs.append(rung)
            rung //= 2
        return rungs

    def waste(self, batch_tokens: float) -> float:
        """Examples over the fewest, for a batch against the critical one.

        Parameters
        ----------
        batch_tokens : float
            Batch, [token]

        Returns
        -------
        float
            The factor; 1 without a critical batch, [-]
        """
        if self.critical_batch is None:
            return 1.0
        return 1.0 + batch_tokens / self.critical_batch
