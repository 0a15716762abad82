"""Every layout that fits a cluster, ranked by the time of a step."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chinchilla_lab.checks import one_of, whole
from chinchilla_lab.cluster import kernel
from chinchilla_lab.cluster.accelerators import DTYPES
from chinchilla_lab.cluster.fitting import bytes_needed, refuse_memory
from chinchilla_lab.cluster.grid import (
    AXES,
    axes,
    degrees_of,
    divides,
    listed_once,
    refuse_division,
)
from chinchilla_lab.cluster.hardware import Cluster
from chinchilla_lab.cluster.layout import Layout, sequences
from chinchilla_lab.cluster.memory import Recipe, components, recipe_of, room
from chinchilla_lab.cluster.stacks import UNCALIBRATED, Stack, find_stack
from chinchilla_lab.cluster.step import StepTime
from chinchilla_lab.shape.transformer import TransformerShape
from chinchilla_lab.tables import html_table
from chinchilla_lab.units import GB

__all__ = ["Ranking", "search"]

TIE = 0.10
"""What two layouts may differ by where constants were not tried on their kind, [-].

Mean distance of the published steps from the median error of their table under the
upper bound: what all rows of a table share does not change their order.
"""
SHOWN = 6  # layouts whose step is shown part by part
SLICE = 4_000_000


def tie_of(stack: Stack, shape: TransformerShape) -> float:
    """Return the share by which two layouts of a stack cannot be told apart."""
    unknown = np.isnan(stack.error) or (shape.n_experts > 1 and not stack.mixtures)
    return TIE if unknown else max(stack.error, 0.01)


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
        Bytes that a job may fill; by default what the driver reports. The measured
        offset of the stack, or 2 GB, counts as filled, [byte]
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
    Every layout of a grid: :func:`axes` says which values it tries. Layouts closer than
    the stack's own error are shown as ties: which of them is fastest, the model cannot
    say. Where the error is not known, or stems from dense models and a mixture is asked
    about, that is 10 %: by so much published steps scatter under the upper bound.

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
    grid = axes(shape, cluster, used, s, even_stages, **options)
    rates = kernel.machine(cluster, used, dtype)
    limit, bytes_of = room(cluster, memory_limit), recipe_of(recipe)
    points = divisible = 0
    least: tuple[float, Layout | None] = (np.inf, None)
    times, chosen = [], []
    parts = list(_slices(grid))
    for i, part in enumerate(parts):
        g = degrees_of(part, cluster.n_accelerators)
        sizes = tuple(len(part[name]) for name in AXES)
        least_zero = min(grid["zero"])
        able = divides(shape, g, count, s, even_stages, least_zero)
        able = able & listed_once(g, part)
        fine = np.broadcast_to(able, sizes)
        points += fine.size
        divisible += int(np.count_nonzero(fine))
        w, gr, o, kept, logits, buffers = components(
            shape, g, count / (g.d * g.b), float(s), bytes_of, used.fused, dropout,
            used.reserved, used.head_counted,
        )  # fmt: skip
        total = (w + gr + o) + (kept + logits + buffers)
        fits = fine & (total <= limit)
        seconds = np.broadcast_to(
            kernel.seconds(shape, g, float(count), float(s), rates, used), sizes
        )
        flat = np.flatnonzero(fits)
        if not len(flat):
            if fine.any():
                needs = np.where(fine, np.broadcast_to(total, sizes), np.inf)
                if (low := float(needs.min())) < least[0]:
                    index = np.unravel_index(needs.argmin(), sizes)
                    least = (low, _layout(part, index, cluster))
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
            filled = np.broadcast_to(total, sizes)
            for j in first:
                index = np.unravel_index(flat[j], sizes)
                chosen.append(
                    (
                        float(found[j]),
                        float(filled[index]),
                        _layout(part, index, cluster),
                    )
                )
        if progress is not None:
            progress((i + 1) / len(parts))
    if not chosen:
        if least[1] is None:
            refuse_division(shape, cluster, count, s, even_stages, grid)
        else:
            refuse_memory(
                shape, cluster, count, s, even_stages, least[1], limit, divisible,
                lambda layout: bytes_needed(
                    shape, layout, count, s, bytes_of, used, dropout
                ),
            )  # fmt: skip
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
        tie=tie_of(used, shape),
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
