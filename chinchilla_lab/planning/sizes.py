"""What another size would cost: plans by size."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from chinchilla_lab.allocation.optimum import compute_optimal
from chinchilla_lab.cluster.batch import BATCH_LAWS
from chinchilla_lab.planning.candidates import candidate, well_cut
from chinchilla_lab.planning.losses import DataLimit
from chinchilla_lab.planning.problem import Problem
from chinchilla_lab.planning.results import Plan
from chinchilla_lab.planning.speed import search_all
from chinchilla_lab.shape.family import shape_for, shapes_near
from chinchilla_lab.shape.transformer import TransformerShape

__all__ = [
    "by_size",
    "coarse_batch",
    "naive_size",
    "time_at",
]

Array = NDArray[np.float64]


def coarse_batch(problem: Problem) -> float:
    """Return the batch of the law ``deepseek-2024`` as a power of two.

    Parameters
    ----------
    problem : Problem
        The problem, whose compute is guessed, [-]

    Returns
    -------
    float
        Batch, the power of two below; small changes of a deadline leave it, so that
        layouts already searched are found again, [token]
    """
    tokens = float(BATCH_LAWS["deepseek-2024"].batch(problem.first_compute()).value)
    return float(2.0 ** np.floor(np.log2(tokens)))


def _shapes(
    problem: Problem, N: float, rtol: float, most: int
) -> list[TransformerShape]:
    family = problem.shape_family or "llama"
    if most == 1:
        try:
            return [shape_for(N, family)]
        except ValueError:
            return []
    near = [shape for _, shape in shapes_near(N, rtol, family)]
    # of equally divisible ones the nearest: a sort keeps their order
    return sorted(near, key=lambda s: -well_cut(s))[:most]


def by_size(
    problem: Problem,
    sizes: Sequence[float] | Array,
    rtol: float = 0.03,
    most: int = 8,
    every: bool = False,
) -> list[Plan]:
    """Return the best plan near each size.

    Parameters
    ----------
    problem : Problem
        What is asked, [-]
    sizes : sequence of float
        Sizes to look at, [parameter]
    rtol : float, optional
        How far the shapes may lie from the size, [-]
    most : int, optional
        Shapes to search at each; 1 for the most usual shape alone, [-]
    every : bool, optional
        All shapes that were searched, not only the best of each size, [-]

    Returns
    -------
    list of Plan
        One plan for each size that has one, without repeats; empty if none has, [-]

    Examples
    --------
    >>> from chinchilla_lab.cluster import Cluster
    >>> from chinchilla_lab.planning.plans import plan
    >>> loft = Cluster(accelerator="h100-sxm-80gb", n_accelerators=64)
    >>> made = by_size(plan(loft, deadline=30 * 86400).problem, [1e10, 3e10])
    >>> [f"{p.N:.1e}" for p in made]
    ['1.0e+10', '3.0e+10']
    """
    batches = problem.batches()
    found: dict[TransformerShape, Plan] = {}
    tried = [_shapes(problem, float(N), rtol, most) for N in sizes]
    if problem.utilisation is None:
        every_shape = [shape for near in tried for shape in near]
        search_all(
            (problem, shape, batch) for shape in every_shape for batch in batches
        )
    for near in tried:
        made = [
            p
            for shape in near
            for batch in batches
            if (p := candidate(problem, shape, batch)) is not None
        ]
        if every:
            found |= {p.shape: p for p in made if p.shape is not None}
        elif made:
            best = min(made, key=lambda p: p.score)
            assert best.shape is not None  # candidates have a shape
            found[best.shape] = best
    return list(found.values())


def time_at(plan: Plan, other: Plan) -> float:
    """Return the time that another size or shape takes to the loss of a plan.

    Parameters
    ----------
    plan : Plan
        The plan whose loss is to be reached, [-]
    other : Plan
        A plan of the same machine, whose size and speed are taken, [-]

    Returns
    -------
    float
        Time over that of the plan; infinite if the size cannot reach the loss, [-]

    Examples
    --------
    >>> from chinchilla_lab.cluster import Cluster
    >>> from chinchilla_lab.planning.plans import plan
    >>> loft = Cluster(accelerator="h100-sxm-80gb", n_accelerators=64)
    >>> best = plan(loft, deadline=30 * 86400)
    >>> abs(time_at(best, best) - 1.0) < 1e-6
    True
    """
    return float(times_at(plan, [other])[0])


def times_at(plan: Plan, others: Sequence[Plan]) -> Array:
    """Return :func:`time_at` of many plans at once."""
    limit = DataLimit(law=plan.problem.law, unique=plan.problem.unique_tokens)
    N, own, seconds = np.array([(p.N, p.D, p.seconds) for p in others]).T
    D = np.asarray(limit.tokens(N, plan.loss))
    times = np.where(np.isfinite(D), D / own * seconds / plan.seconds, np.inf)
    # the plan itself exactly, free of the dust of an inverse
    return np.where([p is plan for p in others], 1.0, times)


def naive_size(plan: Plan, utilisation: float = 0.4) -> tuple[float, float, float]:
    """Return the size of a plan as the product of a budget and a taste.

    Parameters
    ----------
    plan : Plan
        The plan, [-]
    utilisation : float, optional
        Share of the peak that was assumed before anything was searched, [-]

    Returns
    -------
    tuple of float
        Compute-optimal size at the assumed utilisation [parameter]; that at the
        compute of the plan over it [-]; size of the plan over the latter [-]
    """
    problem = plan.problem
    seconds = plan.seconds * plan.goodput.share
    C = problem.peak * utilisation * seconds
    N = float(compute_optimal(problem.law, C).N)
    return N, plan.compute_optimal_N / N, plan.size_ratio
