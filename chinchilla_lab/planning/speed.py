"""The fastest layout of a shape on a cluster, found once."""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from chinchilla_lab.cluster.memory import memory
from chinchilla_lab.cluster.several import fastest_layouts
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
        """6ND over the dense peak, [-]."""
        work = FLOP_PER_ND * self.step.shape.params().active * self.tokens_per_second
        cluster = self.step.cluster
        return work / (cluster.n_accelerators * cluster.chip.peak(self.step.dtype))


_KEPT: OrderedDict[Any, Speed | None] = OrderedDict()
_MOST = 20_000


@lru_cache(maxsize=256)
def _machine(problem: Problem) -> str:
    # a chip holds dicts, so the cluster goes by what it prints
    return repr((
        problem.cluster, problem.seq_len, problem.stack, problem.dtype, problem.recipe,
        problem.memory_limit, sorted(problem.options.items()),
    ))  # fmt: skip


def search_all(problem: Problem, jobs: Iterable[tuple[TransformerShape, int]]) -> None:
    """Search shapes with their batches together, and keep what is found.

    One search of many shapes takes a small part of the time of many searches.
    """
    machine = _machine(problem)
    missing = list(dict.fromkeys(job for job in jobs if (machine, *job) not in _KEPT))
    if not missing:
        return
    axes: dict[str, Any] = problem.options
    made = fastest_layouts(
        missing, problem.cluster, problem.seq_len, problem.stack, problem.dtype,
        problem.recipe, problem.memory_limit, **axes,
    )  # fmt: skip
    for job, found in zip(missing, made, strict=True):
        _KEPT[(machine, *job)] = None if found is None else Speed(**found._asdict())
    while len(_KEPT) > max(_MOST, len(missing)):
        _KEPT.popitem(last=False)


def fastest(problem: Problem, shape: TransformerShape, batch: int) -> Speed | None:
    """Return the fastest layout of a shape, or None if none divides and fits."""
    search_all(problem, [(shape, batch)])
    return _KEPT[(_machine(problem), shape, batch)]


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
