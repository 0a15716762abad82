"""The fastest layouts of several shapes in one pass of the formulas.

A search of one small grid spends its time on calls, not on numbers. Here the points of
all grids stand in one row: what divides is kept first, shapes become columns, and the
axes that change no matrix product, ZeRO stage and recomputation, are spread last.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import groupby
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from chinchilla_lab.checks import one_of, whole
from chinchilla_lab.cluster import kernel
from chinchilla_lab.cluster.accelerators import DTYPES
from chinchilla_lab.cluster.grid import axes, divides, named_once, sharded
from chinchilla_lab.cluster.hardware import Cluster
from chinchilla_lab.cluster.layout import RECOMPUTE, Degrees, Layout
from chinchilla_lab.cluster.memory import Recipe, components, recipe_of, room
from chinchilla_lab.cluster.search import tie_of
from chinchilla_lab.cluster.stacks import Stack, find_stack
from chinchilla_lab.cluster.step import StepTime
from chinchilla_lab.shape.transformer import TransformerShape

__all__: list[str] = []

Array = NDArray[np.float64]
TOGETHER = 48  # jobs in a row: their arrays stay in the cache of a core
POINT = ("sequence_parallel", "n_chunks", "micro_batch", "tp", "cp", "ep", "pp")
# what the formulas ask a shape for, and what must be the same in a row of shapes
VARIES = (
    "n_layers", "d_model", "d_ff", "n_heads", "vocab_size", "kv_heads", "head_size",
    "attention_width",
)  # fmt: skip
COUNTS = ("mlp", "non_embedding", "input_embedding", "head", "positions")
SAME = (
    "gated", "n_experts", "n_active_experts", "n_shared_experts", "experts_per_token",
)  # fmt: skip


class Job(NamedTuple):
    """A shape, its batch, the machine and the bytes that it may fill there."""

    shape: TransformerShape
    batch: int
    cluster: Cluster
    memory_limit: float | None = None

    @property
    def room(self) -> float:
        """Bytes of an accelerator that the job may fill, [byte]."""
        return room(self.cluster, self.memory_limit)


class Fastest(NamedTuple):
    """The fastest layout of a job: its step, its bytes, and how it stands out."""

    step: StepTime
    memory: float
    n_feasible: int
    n_ties: int
    median_factor: float


class Columns:
    """Shapes as arrays under the names of a single shape, for the formulas."""

    def __init__(self, shapes: Sequence[TransformerShape], at: NDArray[np.intp]):
        for name in SAME:
            setattr(self, name, getattr(shapes[0], name))
        for name in VARIES:
            own = np.array([getattr(s, name) for s in shapes], dtype=np.float64)
            setattr(self, name, own[at])
        counts = [s.params() for s in shapes]
        self._counts = _Counts(
            *(np.array([float(getattr(c, k)) for c in counts])[at] for k in COUNTS)
        )

    def params(self) -> "_Counts":
        """Return the counts that the formulas use."""
        return self._counts


class _Counts(NamedTuple):
    mlp: Array
    non_embedding: Array
    input_embedding: Array
    head: Array
    positions: Array


@dataclass(frozen=True)
class _Row:
    """Points of several grids, one behind the other."""

    points: dict[str, Array]  # values of POINT
    job: NDArray[np.intp]

    def degrees(self, n: Array, zero: Any, full: Any, selective: Any) -> Degrees:
        x = self.points
        t, p, c = x["tp"], x["pp"], x["cp"]
        return Degrees(
            t=t, p=p, d=n[self.job] / (t * p * c), c=c, e=x["ep"], b=x["micro_batch"],
            v=x["n_chunks"], zero=zero, full=full, selective=selective,
            sp=x["sequence_parallel"],
        )  # fmt: skip

    def where(self, kept: NDArray[np.intp]) -> "_Row":
        points = {name: x[kept] for name, x in self.points.items()}
        return _Row(points, self.job[kept])


def _alike(shapes: Sequence[TransformerShape]) -> list[list[int]]:
    """Return the places of shapes that may stand in one row, kind by kind."""

    def kind(i: int) -> tuple[Any, ...]:
        return tuple(getattr(shapes[i], name) for name in SAME)

    order = sorted(range(len(shapes)), key=kind)
    return [list(places) for _, places in groupby(order, key=kind)]


def _row(
    jobs: Sequence[Job], seq_len: int, stack: Stack, options: dict[str, Any]
) -> _Row:
    """Points that divide, of every job."""
    parts: dict[str, list[Array]] = {name: [] for name in POINT}
    sizes = []
    for job in jobs:
        n = job.cluster.n_accelerators
        grid = axes(job.shape, job.cluster, stack, seq_len, **options)
        for name in ("tp", "pp"):  # what does not divide the cluster goes first
            grid[name] = tuple(k for k in grid[name] if n % k == 0)
        shape = tuple(len(grid[name]) for name in POINT)
        sizes.append(int(np.prod(shape)))
        places = np.unravel_index(np.arange(sizes[-1]), shape)
        for name, at in zip(POINT, places, strict=True):
            parts[name].append(np.array(grid[name], dtype=np.float64)[at])
    points = {name: np.concatenate(part) for name, part in parts.items()}
    flag, t = points["sequence_parallel"], points["tp"]
    listed = named_once(t, flag) if len(np.unique(flag)) > 1 else True
    points["sequence_parallel"] = flag * (t > 1.0)
    row = _Row(points, np.repeat(np.arange(len(jobs)), sizes))
    columns = cast("TransformerShape", Columns([j.shape for j in jobs], row.job))
    batch = np.array([float(j.batch) for j in jobs])[row.job]
    n_all = np.array([float(j.cluster.n_accelerators) for j in jobs])
    g = row.degrees(n_all, 0.0, 0.0, 0.0)
    able = divides(columns, g, batch, seq_len, True) & listed
    return row.where(np.flatnonzero(able))


def _machines(jobs: Sequence[Job], stack: Stack, dtype: str) -> list[kernel.Machine]:
    """Rates of every job; those of one cluster are collected once."""
    known: dict[int, kernel.Machine] = {}
    for job in jobs:
        if id(job.cluster) not in known:
            known[id(job.cluster)] = kernel.machine(job.cluster, stack, dtype)
    return [known[id(job.cluster)] for job in jobs]


def _rates(machines: Sequence[kernel.Machine], at: NDArray[np.intp]) -> kernel.Machine:
    """Rates as numbers where all jobs share them, as arrays where they do not."""
    made: dict[str, Any] = {}
    for f in fields(kernel.Machine):
        own = [getattr(w, f.name) for w in machines]
        made[f.name] = own[0] if len(set(own)) == 1 else np.array(own)[at]
    return kernel.Machine(**made)


def fastest_layouts(
    jobs: Sequence[Job],
    seq_len: int,
    stack: Stack | str,
    dtype: str = "bf16",
    recipe: Recipe | str = "mixed-adam",
    **options: Sequence[Any],
) -> list[Fastest | None]:
    """Return for shapes, batches and machines what ``search(..., keep=1)`` finds.

    None stands where no layout divides and fits.
    """
    used = find_stack(stack)
    one_of("dtype", dtype, DTYPES)
    s = whole("seq_len", seq_len)
    found: dict[int, Fastest] = {}
    for group in _alike([job.shape for job in jobs]):
        for k in range(0, len(group), TOGETHER):
            some = group[k : k + TOGETHER]
            made = _together(
                [jobs[i] for i in some], s, used, dtype, recipe_of(recipe), options
            )
            found |= {some[j]: one for j, one in made.items()}
    return [found.get(i) for i in range(len(jobs))]


def _together(
    jobs: Sequence[Job],
    seq_len: int,
    stack: Stack,
    dtype: str,
    recipe: Recipe,
    options: dict[str, Any],
) -> dict[int, Fastest]:
    """Answer jobs whose shapes are alike, by their place."""
    row = _row(jobs, seq_len, stack, options)
    if not len(row.job):
        return {}
    length = float(seq_len)
    # these two axes are the same for all shapes
    grid = axes(jobs[0].shape, jobs[0].cluster, stack, seq_len, **options)
    stages = np.asarray(grid["zero"], dtype=np.float64)
    again = np.array([RECOMPUTE.index(v) for v in grid["recompute"]])
    n = np.array([float(job.cluster.n_accelerators) for job in jobs])
    g = row.degrees(
        n,
        stages[:, None, None],
        (again == 2)[:, None] * 1.0,
        (again == 1)[:, None] * 1.0,
    )
    machines = _machines(jobs, stack, dtype)
    rates = _rates(machines, row.job)
    columns = cast("TransformerShape", Columns([job.shape for job in jobs], row.job))
    batch = np.array([float(job.batch) for job in jobs])[row.job]
    limit = np.array([job.room for job in jobs])[row.job]
    w, gr, o, kept, logits, buffers = components(
        columns, g, batch / (g.d * g.b), length, recipe, stack.fused, False,
        stack.reserved, stack.head_counted,
    )  # fmt: skip
    sizes = (len(stages), len(again), len(row.job))
    total = np.broadcast_to((w + gr + o) + (kept + logits + buffers), sizes)
    fits = sharded(g, float(stages.min())) & (total <= limit)
    layer, head = _layers(jobs, row, g, length, stack, n, machines)
    seconds = np.where(
        fits,
        kernel.step_seconds(columns, g, batch, length, rates, stack, layer, head),
        np.inf,
    )
    best: dict[int, tuple[int, int, int]] = {}
    times = {}
    first = 0
    ends = np.cumsum(np.bincount(row.job, minlength=len(jobs))).tolist()
    for j, end in enumerate(ends):
        part = seconds[:, :, first:end]
        if part.size:
            # of equal ones the first of the grid
            z, r, i = np.unravel_index(int(part.argmin()), part.shape)
            if part[z, r, i] < np.inf:
                best[j] = (int(z), int(r), first + int(i))
                times[j] = np.sort(part[fits[:, :, first:end]])
        first = end
    if not best:
        return {}
    steps = _steps(jobs, best, row, grid, seq_len, stack, dtype, machines)
    tie = tie_of(stack, jobs[0].shape)
    made = {}
    for j, step in steps.items():
        sorted_ = times[j]
        count = len(sorted_)
        median = (sorted_[(count - 1) // 2] + sorted_[count // 2]) / 2.0
        ties = np.searchsorted(sorted_, step.seconds * (1.0 + tie), side="right")
        made[j] = Fastest(
            step=step, memory=float(total[best[j]]), n_feasible=count,
            n_ties=int(ties), median_factor=float(median / step.seconds),
        )  # fmt: skip
    return made


def _layers(
    jobs: Sequence[Job],
    row: _Row,
    g: Degrees,
    length: float,
    stack: Stack,
    n: Array,
    machines: Sequence[kernel.Machine],
) -> tuple[Array, Array]:
    """Seconds of a layer and of the head: they know nothing of stages and replicas.

    Points that differ in those alone are timed once.
    """
    code = row.job
    for name in ("sequence_parallel", "micro_batch", "tp", "cp", "ep"):
        x = row.points[name].astype(np.intp)
        code = code * (int(x.max()) + 1) + x
    _, kept, back = np.unique(code, return_index=True, return_inverse=True)
    few = row.where(kept)
    shapes = cast("TransformerShape", Columns([job.shape for job in jobs], few.job))
    rates = _rates(machines, few.job)
    own = few.degrees(n, g.zero, g.full, g.selective)
    layer = sum(kernel.layer_items(shapes, own, length, rates, stack).values())
    head = kernel.head_seconds(shapes, own, length, rates, stack)
    return np.asarray(layer)[..., back], head[back]


def _steps(
    jobs: Sequence[Job],
    best: dict[int, tuple[int, int, int]],
    row: _Row,
    grid: dict[str, tuple[Any, ...]],
    seq_len: int,
    stack: Stack,
    dtype: str,
    machines: Sequence[kernel.Machine],
) -> dict[int, StepTime]:
    """Itemise the best point of every job."""
    z, r, i = (np.array(k) for k in zip(*best.values(), strict=True))
    chosen = row.where(i)
    again = np.array([RECOMPUTE.index(v) for v in grid["recompute"]])[r]
    g = chosen.degrees(
        np.array([float(job.cluster.n_accelerators) for job in jobs]),
        np.asarray(grid["zero"], dtype=np.float64)[z],
        (again == 2) * 1.0,
        (again == 1) * 1.0,
    )
    columns = Columns([job.shape for job in jobs], chosen.job)
    batch = np.array([float(jobs[j].batch) for j in best])
    rates = _rates(machines, chosen.job)
    found = kernel.items(
        cast("TransformerShape", columns), g, batch, float(seq_len), rates, stack
    )
    rows = np.array([np.broadcast_to(x, len(best)) for x in found.values()]).T.tolist()
    made = {}
    for k, (j, items) in enumerate(zip(best, rows, strict=True)):
        at: dict[str, Any] = {name: int(x[k]) for name, x in chosen.points.items()}
        at["sequence_parallel"] = bool(at["sequence_parallel"])
        layout = Layout(
            dp=jobs[j].cluster.n_accelerators // (at["tp"] * at["pp"] * at["cp"]),
            zero=grid["zero"][z[k]], recompute=grid["recompute"][r[k]], **at,
        )  # fmt: skip
        made[j] = StepTime(
            items=dict(zip(found, items, strict=True)), shape=jobs[j].shape,
            cluster=jobs[j].cluster, layout=layout, batch=jobs[j].batch,
            seq_len=seq_len,
            dtype=dtype, stack=stack,
        )  # fmt: skip
    return made


class Steps:
    """Steps of given layouts, in columns: timed again and again under other constants.

    Parameters
    ----------
    rows : sequence
        Steps with shape, cluster, layout, batch, seq_len and dtype, [-]
    """

    def __init__(self, rows: Sequence[Any]):
        self.rows = rows
        self._groups: list[tuple[NDArray[np.intp], Columns, Degrees, Array, Array]] = []
        for places in _alike([r.shape for r in rows]):
            at = np.array(places)
            some = [rows[i] for i in at]
            each = [r.layout.degrees() for r in some]
            self._groups.append((
                at,
                Columns([r.shape for r in some], np.arange(len(some))),
                Degrees(*(np.array(x) for x in zip(*each, strict=True))),
                np.array([float(r.batch) for r in some]),
                np.array([float(r.seq_len) for r in some]),
            ))  # fmt: skip

    def items(self, stack: Stack) -> dict[str, Array]:
        """Return the seconds of every step by item."""
        found = {name: np.empty(len(self.rows)) for name in kernel.ITEMS}
        for at, shapes, g, batch, length in self._groups:
            machines = [
                kernel.machine(self.rows[i].cluster, stack, self.rows[i].dtype)
                for i in at
            ]
            rates = _rates(machines, np.arange(len(at)))
            columns = cast("TransformerShape", shapes)
            made = kernel.items(columns, g, batch, length, rates, stack)
            for name, seconds in made.items():
                found[name][at] = seconds
        return found
