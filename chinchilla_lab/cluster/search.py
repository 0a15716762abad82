"""Every layout that fits a cluster, ranked by the time of a step."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chinchilla_lab.checks import InfeasibleError, one_of, positive, whole
from chinchilla_lab.cluster import kernel
from chinchilla_lab.cluster.accelerators import DTYPES
from chinchilla_lab.cluster.hardware import Cluster
from chinchilla_lab.cluster.layout import RECOMPUTE, Degrees, Layout, sequences
from chinchilla_lab.cluster.memory import Recipe, components, recipe_of
from chinchilla_lab.cluster.stacks import UNCALIBRATED, Stack, find_stack
from chinchilla_lab.cluster.step import StepTime
from chinchilla_lab.shape.transformer import TransformerShape
from chinchilla_lab.tables import html_table
from chinchilla_lab.units import GB

__all__ = ["AXES", "Ranking", "axes", "search"]

AXES = (
    "zero", "recompute", "sequence_parallel", "n_chunks", "micro_batch",
    "tp", "cp", "ep", "pp",
)  # fmt: skip
"""Axes of the grid; dp follows from the number of accelerators."""
TIE = 0.05
SHOWN = 6  # layouts whose step is shown part by part
SLICE = 4_000_000


def _divisors(n: int, most: int) -> tuple[int, ...]:
    return tuple(k for k in range(1, min(n, most) + 1) if n % k == 0)


def axes(
    shape: TransformerShape,
    cluster: Cluster,
    stack: Stack | str = UNCALIBRATED,
    **options: Sequence[Any],
) -> dict[str, tuple[Any, ...]]:
    """Values that a search tries on each axis.

    Parameters
    ----------
    shape : TransformerShape
        The model, [-]
    cluster : Cluster
        The machine, [-]
    stack : Stack or str, optional
        The stack: selective recomputation is tried where it saves something, [-]
    **options : sequence
        Values of your own for any of :data:`AXES`, [-]

    Returns
    -------
    dict
        Axis to values, [-]

    Raises
    ------
    ValueError
        If an option is no axis, or has no values.

    Examples
    --------
    >>> from chinchilla_lab.shape import SHAPES
    >>> loft = Cluster(accelerator="h100-sxm-80gb", n_accelerators=64)
    >>> axes(SHAPES["llama-3-8b"], loft)["tp"]
    (1, 2, 4, 8)
    """
    n, layers = cluster.n_accelerators, shape.n_layers
    pieces = _divisors(layers, n)
    fused = find_stack(stack).fused
    grid: dict[str, tuple[Any, ...]] = {
        "zero": (0, 1, 3),
        "recompute": ("none", "full") if fused else RECOMPUTE,
        "sequence_parallel": (True,),
        "n_chunks": tuple(k for k in _divisors(layers, 16)),
        "micro_batch": (1, 2, 4, 8),
        "tp": _divisors(shape.n_heads, cluster.domain_size),
        "cp": (1,),
        "ep": _divisors(shape.n_experts, n),
        "pp": pieces,
    }
    if unknown := sorted(set(options) - set(AXES)):
        raise ValueError(
            f"{', '.join(unknown)}: no axis of the search; choose from: "
            f"{', '.join(AXES)}"
        )
    for name, values in options.items():
        several = np.iterable(values) and not isinstance(values, str)
        kept = tuple(values) if several else (values,)
        if not kept:
            raise ValueError(
                f"{name} has no value to try; leave it out for the default"
            )
        if name == "recompute":
            for word in kept:
                one_of("recompute", word, RECOMPUTE)
        elif name == "zero":
            for stage in kept:
                Layout(zero=stage)
        elif name == "sequence_parallel":
            kept = tuple(bool(v) for v in kept)
        else:
            kept = tuple(whole(name, v) for v in kept)
        grid[name] = kept
    return grid


def degrees_of(grid: Mapping[str, Sequence[Any]], n: int) -> Degrees:
    """Open arrays: each axis of the grid lies along its own dimension."""
    open_ = {
        name: np.asarray(
            [RECOMPUTE.index(v) for v in grid[name]]
            if name == "recompute"
            else [float(v) for v in grid[name]],
            dtype=np.float64,
        ).reshape([-1 if k == i else 1 for k in range(len(AXES))])
        for i, name in enumerate(AXES)
    }
    t, p, c = open_["tp"], open_["pp"], open_["cp"]
    again = open_["recompute"]
    return Degrees(
        t=t, p=p, d=n / (t * p * c), c=c, e=open_["ep"], b=open_["micro_batch"],
        v=open_["n_chunks"], zero=open_["zero"],
        full=(again == 2.0) * 1.0, selective=(again == 1.0) * 1.0,
        sp=open_["sequence_parallel"] * (t > 1),
    )  # fmt: skip


def _divides(a: Any, b: Any) -> Any:
    """Say where b is a whole multiple of a."""
    return b % a == 0


def divides(
    shape: TransformerShape, g: Degrees, batch: Any, seq_len: int, even: bool
) -> Any:
    """Where a layout can run at all, memory aside."""
    layers, heads = shape.n_layers, shape.n_heads
    kv = 1.0 * shape.kv_heads
    replicas = np.floor(g.d) == g.d
    cut = (
        _divides(g.t, 1.0 * heads)
        & (np.maximum(kv, g.t) % np.minimum(kv, g.t) == 0)
        & _divides(g.t, 1.0 * shape.d_ff)
        & _divides(g.t, 1.0 * shape.d_model)
    )
    sequence = _divides(g.c * np.where(g.sp > 0, g.t, 1.0), float(seq_len))
    pipe = (g.p * g.v <= layers) & ((g.v == 1) | (g.p > 1))
    if even:
        pipe = pipe & _divides(g.p * g.v, 1.0 * layers)
    micro = batch / (np.maximum(g.d, 1.0) * g.b)
    steps = (micro == np.floor(micro)) & (micro >= 1.0)
    interleaved = (g.v == 1) | _divides(g.p, micro)
    experts = _divides(g.e, float(shape.n_experts)) & (
        np.floor(g.t * g.c * g.d / g.e) * g.e == g.t * g.c * g.d
    )
    small = (replicas & cut & sequence) & experts
    return (small & sharded(g)) & (pipe & (steps & interleaved))


def sharded(g: Degrees) -> Any:
    """Where a ZeRO stage goes with the replicas and the stages of the pipeline."""
    # sharding over one replica is no sharding, and stages 2 and 3 do not go with stages
    return (g.zero == 0) | (((g.zero < 2) | (g.p == 1)) & (g.d * g.c > 1))


def tie_of(stack: Stack) -> float:
    """Return the share by which two layouts of a stack cannot be told apart."""
    return TIE if np.isnan(stack.error) else max(stack.error, 0.01)


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """Layouts of a search, the fastest first.

    Parameters
    ----------
    steps : tuple of StepTime
        The fastest layouts with their items, [s]
    memory : numpy.ndarray
        Bytes on the fullest accelerator, for each of ``steps``, [byte]
    seconds : numpy.ndarray
        Time of every feasible layout, in no order, [s]
    n_points : int
        Layouts that were looked at, [-]
    n_divisible : int
        Those that divide, whether they fit the memory or not, [-]
    tie : float
        Two layouts closer than this share cannot be told apart: the model's error, [-]
    """

    steps: tuple[StepTime, ...]
    memory: NDArray[np.float64]
    seconds: NDArray[np.float64] = field(repr=False)
    n_points: int
    n_divisible: int
    tie: float

    @property
    def best(self) -> StepTime:
        """The fastest layout, [-]."""
        return self.steps[0]

    @property
    def n_feasible(self) -> int:
        """Layouts that divide and fit, [-]."""
        return len(self.seconds)

    @cached_property
    def n_ties(self) -> int:
        """Layouts that the model cannot tell from the best, itself included, [-]."""
        return int((self.seconds <= self.best.seconds * (1.0 + self.tie)).sum())

    @cached_property
    def median_factor(self) -> float:
        """Time of the median feasible layout over the best, [-]."""
        return float(np.median(self.seconds) / self.best.seconds)

    def is_tie(self, step: StepTime) -> bool:
        """Say whether a layout is as good as the best, for all the model knows.

        Parameters
        ----------
        step : StepTime
            One of ``steps``, [-]

        Returns
        -------
        bool
            True if it is, [-]
        """
        return step.seconds <= self.best.seconds * (1.0 + self.tie)

    def _repr_html_(self) -> str:
        short = {
            "gemm": "products", "attention": "attention", "memory_traffic": "traffic",
            "tp_traffic": "TP", "cp_traffic": "CP", "ep_traffic": "EP",
            "recompute": "recompute", "overhead": "launches", "pp_traffic": "PP",
            "head_and_uneven": "head, uneven", "bubble": "bubble", "dp_traffic": "DP",
            "optimizer": "optimizer", "stragglers": "stragglers",
        }  # fmt: skip
        used = [k for k in short if any(s.items[k] > 0.0 for s in self.steps)]
        rows = [
            [
                s.layout.label(),
                "tie"
                if self.is_tie(s)
                else f"+{s.seconds / self.best.seconds - 1:.0%}",
                f"{s.seconds:.3f}",
                f"{s.mfu('causal'):.1%}",
                f"{bytes_ / GB:.1f}",
            ]
            for s, bytes_ in zip(self.steps, self.memory, strict=True)
        ]
        caption = (
            f"{self.n_points:,} layouts, {self.n_divisible:,} divide, "
            f"{self.n_feasible:,} fit; {self.n_ties} within the model's {self.tie:.0%} "
            f"of the best; median {self.median_factor:.2f} times the best; "
            f"{self.best.label}"
        )
        head = ("layout", "against best", "step [s]", "MFU, causal", "memory [GB]")
        shown = self.steps[:SHOWN]
        parts = [
            [f"{short[k]} [ms]", *(f"{1e3 * s.items[k]:.0f}" for s in shown)]
            for k in used
        ]
        ranks = [str(i + 1) for i in range(len(shown))]
        return html_table(head, rows, caption) + html_table(
            ("of the step", *ranks), parts, "the same layouts, best first"
        )


def _slices(grid: dict[str, tuple[Any, ...]]) -> Iterator[dict[str, tuple[Any, ...]]]:
    """Cut a very large grid along its longest axis."""
    size = int(np.prod([len(v) for v in grid.values()]))
    longest = max(grid, key=lambda name: len(grid[name]))
    parts = min(len(grid[longest]), -(-size // SLICE))
    for chunk in np.array_split(np.arange(len(grid[longest])), parts):
        yield grid | {longest: tuple(grid[longest][i] for i in chunk)}


def search(
    shape: TransformerShape,
    cluster: Cluster,
    batch: int,
    seq_len: int,
    stack: Stack | str = UNCALIBRATED,
    dtype: str = "bf16",
    recipe: Recipe | str = "mixed-adam",
    memory_limit: float | None = None,
    keep: int = 10,
    even_stages: bool = True,
    dropout: bool = False,
    progress: Callable[[float], None] | None = None,
    **options: Sequence[Any],
) -> Ranking:
    """Time every layout of a grid and rank those that fit.

    Parameters
    ----------
    shape : TransformerShape
        The model, [-]
    cluster : Cluster
        The machine, [-]
    batch : int
        Sequences of a step, [sequence]
    seq_len : int
        Tokens of a sequence, [token]
    stack : Stack or str, optional
        Constants or a key of ``STACKS``, [-]
    dtype : {"bf16", "fp8", "tf32"}, optional
        Format of the matrix products, [-]
    recipe : Recipe or str, optional
        Bytes of a parameter, [byte/parameter]
    memory_limit : float, optional
        Bytes that a job may fill; by default what the driver reports, [byte]
    keep : int, optional
        How many of the fastest to itemise, [-]
    even_stages : bool, optional
        Only layouts whose stages hold equally many layers, [-]
    dropout : bool, optional
        Masks of dropout are kept, [-]
    progress : callable, optional
        Called with the share that is done; a grid above four million layouts is worked
        off in slices, [-]
    **options : sequence
        Values of your own for any of ``AXES``, [-]

    Returns
    -------
    Ranking
        The fastest layouts, [s]

    Raises
    ------
    InfeasibleError
        If no layout divides, or none fits the memory.

    Notes
    -----
    Layouts closer than the stack's own error, 5 % where that is not known, are shown as
    ties: which of them is fastest, the model cannot say.

    Examples
    --------
    >>> from chinchilla_lab.shape import SHAPES
    >>> loft = Cluster(accelerator="h100-sxm-80gb", n_accelerators=64)
    >>> found = search(SHAPES["llama-3-8b"], loft, batch=512, seq_len=8192)
    >>> found.best.layout.n_accelerators, found.n_feasible < found.n_points
    (64, True)
    """
    used = find_stack(stack)
    one_of("dtype", dtype, DTYPES)
    count, s = sequences(batch, seq_len), whole("seq_len", seq_len)
    top = whole("keep", keep)
    grid = axes(shape, cluster, used, **options)
    rates = kernel.machine(cluster, used, dtype)
    limit = float(
        positive(
            "memory_limit",
            cluster.chip.memory if memory_limit is None else memory_limit,
        )
    )
    bytes_of = recipe_of(recipe)
    points = divisible = 0
    least = np.inf
    times, chosen = [], []
    parts = list(_slices(grid))
    for i, part in enumerate(parts):
        g = degrees_of(part, cluster.n_accelerators)
        sizes = tuple(len(part[name]) for name in AXES)
        valid = np.broadcast_to(divides(shape, g, count, s, even_stages), sizes)
        points += valid.size
        divisible += int(np.count_nonzero(valid))
        w, gr, o, kept, logits, buffers = components(
            shape, g, count / (g.d * g.b), float(s), bytes_of, used.fused, dropout,
            used.memory_offset,
        )  # fmt: skip
        total = (w + gr + o) + (kept + logits + buffers)
        fits = valid & (total <= limit)
        seconds = np.broadcast_to(
            kernel.seconds(shape, g, float(count), float(s), rates, used), sizes
        )
        flat = np.flatnonzero(fits)
        if not len(flat):
            if valid.any():
                least = min(least, float(np.broadcast_to(total, sizes)[valid].min()))
        else:
            found = (
                seconds.reshape(-1)[flat]
                if seconds.flags.c_contiguous
                else seconds[fits]
            )
            near = np.arange(len(found))
            if len(found) > top:
                # of equal ones the first of the grid, whatever numpy's partition does
                near = np.flatnonzero(found <= np.partition(found, top - 1)[top - 1])
            first = near[np.argsort(found[near], kind="stable")[:top]]
            times.append(found)
            room = np.broadcast_to(total, sizes)
            for j in first:
                index = np.unravel_index(flat[j], sizes)
                chosen.append(
                    (float(found[j]), float(room[index]), _layout(part, index, cluster))
                )
        if progress is not None:
            progress((i + 1) / len(parts))
    if not chosen:
        _refuse(shape, cluster, count, s, divisible, least, limit)
    chosen.sort(key=lambda row: row[0])
    chosen = chosen[:top]
    steps = tuple(
        _itemised(shape, cluster, layout, count, s, dtype, used, rates)
        for _, _, layout in chosen
    )
    return Ranking(
        steps=steps,
        memory=np.array([m for _, m, _ in chosen]),
        seconds=np.concatenate(times),
        n_points=points,
        n_divisible=divisible,
        tie=tie_of(used),
    )


def _layout(
    grid: Mapping[str, Sequence[Any]], index: Sequence[Any], cluster: Cluster
) -> Layout:
    at = {name: grid[name][int(i)] for name, i in zip(AXES, index, strict=True)}
    dp = cluster.n_accelerators // (at["tp"] * at["pp"] * at["cp"])
    at["sequence_parallel"] = at["sequence_parallel"] and at["tp"] > 1
    return Layout(dp=dp, **at)


def _itemised(
    shape: TransformerShape,
    cluster: Cluster,
    layout: Layout,
    batch: int,
    seq_len: int,
    dtype: str,
    used: Stack,
    rates: kernel.Machine,
) -> StepTime:
    found = kernel.items(
        shape, layout.degrees(), float(batch), float(seq_len), rates, used
    )
    return StepTime(
        items={name: float(t) for name, t in found.items()},
        shape=shape, cluster=cluster, layout=layout, batch=batch, seq_len=seq_len,
        dtype=dtype, stack=used,
    )  # fmt: skip


def _refuse(
    shape: TransformerShape,
    cluster: Cluster,
    batch: int,
    seq_len: int,
    divisible: int,
    least: float,
    limit: float,
) -> None:
    if not divisible:
        raise InfeasibleError(
            f"no layout divides: batch={batch}, n_layers={shape.n_layers}, "
            f"n_heads={shape.n_heads}, seq_len={seq_len} on "
            f"{cluster.n_accelerators} accelerators; try a batch with more divisors, "
            "even_stages=False, or another number of accelerators"
        )
    raise InfeasibleError(
        f"no layout fits: the leanest of {divisible:,} needs {least / GB:.1f} GB and "
        f"memory_limit is {limit / GB:.1f} GB; use more accelerators, a shorter "
        "sequence, or zero=(3,), recompute=('full',) and larger tp or pp"
    )
