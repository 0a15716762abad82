"""The fastest layout of a shape on a cluster, found once."""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from chinchilla_lab.checks import InfeasibleError
from chinchilla_lab.cluster.memory import memory
from chinchilla_lab.cluster.search import search
from chinchilla_lab.cluster.step import StepTime
from chinchilla_lab.planning.problem import Problem
from chinchilla_lab.shape.transformer import TransformerShape
from chinchilla_lab.units import FLOP_PER_ND

__all__ = ["Speed"]


@dataclass(frozen=True, kw_only=True)
class Speed:
    """What a shape does on a cluster in its fastest layout.

    Parameters
    ----------
    step : StepTime
        The step and its items, [s]
    memory : float
        Bytes on the fullest accelerator, [byte]
    n_feasible : int
        Layouts that divide and fit, [-]
    n_ties : int
        Layouts that the model cannot tell from the fastest, [-]
    median_factor : float
        Time of the median layout over the fastest, [-]
    """

    step: StepTime
    memory: float
    n_feasible: int
    n_ties: int
    median_factor: float

    @property
    def tokens_per_second(self) -> float:
        """Speed without failures, [token/s]."""
        return self.step.tokens_per_second

    @property
    def utilisation(self) -> float:
        """6ND over the dense peak of the accelerators at work, [-]."""
        work = FLOP_PER_ND * self.step.shape.params().active * self.tokens_per_second
        cluster = self.step.cluster
        return work / (cluster.n_accelerators * cluster.chip.peak(self.step.dtype))


_KEPT: OrderedDict[Any, Speed | None] = OrderedDict()
_MOST = 20_000


def _key(problem: Problem, shape: TransformerShape, batch: int) -> Any:
    # a chip holds dicts, so the cluster goes by what it prints
    return (
        repr(problem.job), shape, batch, problem.seq_len, problem.stack,
        problem.dtype, str(problem.recipe), problem.memory_limit,
        str(sorted(problem.options.items())),
    )  # fmt: skip


def fastest(problem: Problem, shape: TransformerShape, batch: int) -> Speed | None:
    """Return the fastest layout of a shape, or None if none divides and fits."""
    key = _key(problem, shape, batch)
    if key in _KEPT:
        return _KEPT[key]
    axes: dict[str, Any] = problem.options
    try:
        found = search(
            shape, problem.job, batch, problem.seq_len, problem.stack,
            problem.dtype, problem.recipe, problem.memory_limit, keep=1,
            **axes,
        )  # fmt: skip
    except InfeasibleError:
        speed = None
    else:
        speed = Speed(
            step=found.best,
            memory=float(found.memory[0]),
            n_feasible=found.n_feasible,
            n_ties=found.n_ties,
            median_factor=found.median_factor,
        )
    _KEPT[key] = speed
    if len(_KEPT) > _MOST:
        _KEPT.popitem(last=False)
    return speed


def typed_speed(problem: Problem, step: StepTime) -> Speed:
    """Return the speed of a layout that somebody typed, whether it fits or not."""
    used = problem.stack
    layout = step.layout
    need = memory(
        step.shape, layout, step.seq_len, max(1, step.batch // (
            layout.dp * layout.micro_batch)), problem.recipe,
        "fused" if used.fused else "unfused", offset=used.memory_offset,
    )  # fmt: skip
    return Speed(
        step=step, memory=need.total, n_feasible=1, n_ties=1, median_factor=1.0
    )
