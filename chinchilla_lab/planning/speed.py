"""The fastest layout of a shape on a cluster, found once."""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from chinchilla_lab.cluster.memory import memory
from chinchilla_lab.cluster.several import Job, fastest_layouts
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


@lru_cache(maxsize=256)
def _machine(problem: Problem) -> str:
    # a chip holds dicts, so the cluster goes by what it prints
    return repr((problem.job, problem.memory_limit))


@lru_cache(maxsize=256)
def _settings(problem: Problem) -> str:
    """Return what every job of one search shares."""
    return repr((
        problem.seq_len, problem.stack, problem.dtype, problem.recipe,
        sorted(problem.options.items()),
    ))  # fmt: skip


def _key(problem: Problem, shape: TransformerShape, batch: int) -> Any:
    return _machine(problem), _settings(problem), shape, batch


def search_all(jobs: Iterable[tuple[Problem, TransformerShape, int]]) -> None:
    """Search shapes with their batches together, and keep what is found.

    One search of many takes a small part of the time of many searches. The problems
    may differ in their machines and limits.
    """
    missing: dict[str, dict[Any, tuple[Problem, Job]]] = {}
    for p, shape, batch in jobs:
        key = _key(p, shape, batch)
        if key not in _KEPT:
            job = Job(shape, batch, p.job, p.memory_limit)
            missing.setdefault(_settings(p), {})[key] = p, job
    for some in missing.values():
        p = next(iter(some.values()))[0]
        axes: dict[str, Any] = p.options
        made = fastest_layouts(
            [job for _, job in some.values()], p.seq_len, p.stack, p.dtype, p.recipe,
            **axes,
        )  # fmt: skip
        for key, found in zip(some, made, strict=True):
            _KEPT[key] = None if found is None else Speed(**found._asdict())
    latest = max((len(some) for some in missing.values()), default=0)
    while len(_KEPT) > max(_MOST, latest):
        _KEPT.popitem(last=False)


def fastest(problem: Problem, shape: TransformerShape, batch: int) -> Speed | None:
    """Return the fastest layout of a shape, or None if none divides and fits."""
    key = _key(problem, shape, batch)
    if key not in _KEPT:
        search_all([(problem, shape, batch)])
    return _KEPT[key]


def typed_speed(problem: Problem, step: StepTime) -> Speed:
    """Return the speed of a layout that somebody typed, whether it fits or not."""
    used = problem.stack
    layout = step.layout
    need = memory(
        step.shape, layout, step.seq_len, max(1, step.batch // (
            layout.dp * layout.micro_batch)), problem.recipe,
        "fused" if used.fused else "unfused", offset=used.reserved,
    )  # fmt: skip
    return Speed(
        step=step, memory=need.total, n_feasible=1, n_ties=1, median_factor=1.0
    )
