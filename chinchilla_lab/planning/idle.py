"""How many accelerators work, where a job need not use them all."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from chinchilla_lab.checks import InfeasibleError
from chinchilla_lab.planning.candidates import best_first, candidate
from chinchilla_lab.planning.problem import Problem
from chinchilla_lab.planning.results import Plan
from chinchilla_lab.planning.speed import Speed, fastest, search_all
from chinchilla_lab.shape.transformer import TransformerShape

__all__: list[str] = []

# numbers without a larger prime factor divide into degrees of every kind
PRIMES = (2, 3, 5, 7)
# share of the cluster that may stand idle for the sake of divisors alone
SPARE = 0.15
MOST_NEAR = 12
# odd part of a number that divides well
SMALL = 15
# steps down without gain after which fewer accelerators are not tried
MISSES = 3
# whole searches at other numbers, on clusters small enough that they are quick
MANY, FEW_UP_TO, MOST_TRIES = 3, 256, 5


@cache
def near_numbers(n: int) -> tuple[int, ...]:
    """Numbers just below a cluster that a job may use, the largest first.

    All of it, numbers that divide well, and whole nodes: the last powers of two
    dropped.
    """
    smooth = [1]
    for p in PRIMES:
        for k in smooth:
            if k * p <= n:
                smooth.append(k * p)  # grows while it is read: every power of p
    few = {n, *(k for k in smooth if k > (1 - SPARE) * n)}
    nodes = {(n >> k) << k for k in range(n.bit_length())}
    return tuple(
        dict.fromkeys(
            sorted(
                {*sorted(few, reverse=True)[:MOST_NEAR],
                 *(k for k in nodes if k > (1 - SPARE) * n)},
                reverse=True,
            )
        )
    )  # fmt: skip


@cache
def far_numbers(n: int) -> tuple[int, ...]:
    """Four numbers an octave below those, for jobs that a small batch holds back."""
    steps = (k << i for i in range(n.bit_length()) for k in (4, 5, 6, 7))
    return tuple(sorted((k for k in steps if k <= (1 - SPARE) * n), reverse=True))


def divides_well(n: int) -> bool:
    """Whether a number is a small one times a power of two: all of it will be used."""
    while n % 2 == 0:
        n //= 2
    return n <= SMALL


def best_numbers(
    problem: Problem, shapes: Iterable[TransformerShape], near: int | None = None
) -> list[int]:
    """Rank numbers of accelerators by what a few shapes make of them, the best first.

    Those at which none of the shapes runs are left out.
    """
    few = tuple(shapes)
    timed = problem.deadline is not None or problem.budget is not None

    def value(p: Plan) -> float:
        """Return the objective, or speed where a limit of compute hides it."""
        if timed or problem.objective != "loss":
            return p.score
        return -p.utilisation * p.goodput.share / p.waste

    found: dict[int, float] = {}

    def look_at(k: int) -> float:
        fewer = problem.with_(n_working=k)
        batches = fewer.batches()
        # the largest usual one; where batches waste examples those near a good one
        some = batches[:1]
        if problem.critical_batch is not None:
            close = [b for b in batches if near and near <= 2 * b <= 4 * near]
            some = tuple(close) or batches[:: 1 if problem.n <= FEW_UP_TO else 4]
        jobs = [(fewer, shape, batch) for shape in few for batch in some]
        if problem.utilisation is None:
            search_all(jobs)
        made = [candidate(*job) for job in jobs]
        least = min((value(p) for p in made if p is not None), default=np.inf)
        if np.isfinite(least):
            found[k] = least
        return least

    best = min(look_at(k) for k in near_numbers(problem.n))
    misses = 0
    for k in far_numbers(problem.n):
        least = look_at(k)
        misses = misses + 1 if least >= best else 0
        best = min(best, least)
        if found and misses == MISSES:
            break
    return sorted(found, key=lambda k: (found[k], k))


def with_idle(
    problem: Problem,
    run: Callable[[Problem], Plan],
    first: Callable[[], Sequence[TransformerShape]],
) -> Plan:
    """Solve a problem at the number of accelerators that serves it best.

    A number that divides well is used whole at first; of others, those are tried that a
    few shapes advise. Then the best shapes are asked again, and where one does better
    with another number, the problem is solved there as well.
    """
    if problem.n_working is not None or problem.utilisation is not None:
        return run(problem)
    n = problem.n
    well = divides_well(n)
    tries = MANY if n <= FEW_UP_TO else 2
    if not problem.thorough:
        tries = 1
    queue = [n] if well else best_numbers(problem, first())[:tries] or [n]
    tried: set[int] = set()
    best: Plan | None = None
    refused: InfeasibleError | None = None
    while queue and len(tried) < MOST_TRIES:
        number = queue.pop(0)
        tried.add(number)
        try:
            # all at work is the usual case, and stays open to later changes
            made = run(problem if number == n else problem.with_(n_working=number))
        except InfeasibleError as fault:
            refused = refused or fault
            if best is None and not queue:
                found = best_numbers(problem, first())
                queue = [k for k in found if k not in tried][:1]
            continue
        known = () if best is None else (best, *best.alternatives)
        ranked = best_first(problem, [made, *made.alternatives, *known])
        searched = made.n_searched + (0 if best is None else best.n_searched)
        best = replace(
            ranked[0],
            alternatives=tuple(ranked[1 : problem.keep]),
            n_searched=searched,
        )
        if not queue:
            top = (best,) if well else (best, *best.alternatives)
            shapes = [p.shape for p in top if p.shape is not None]
            found = best_numbers(problem, shapes, best.batch)
            queue = [k for k in found[:1] if k not in tried]
    if best is None:
        assert refused is not None  # at least one number was tried
        raise refused
    return best


def most_useful(
    problem: Problem, shape: TransformerShape, batch: int
) -> tuple[Problem, Speed | None]:
    """Return the number of accelerators with which a shape and batch are fastest."""
    if problem.n_working is not None:
        return problem, fastest(problem, shape, batch)
    best: tuple[Problem, Speed | None] = problem, None
    most = 0.0
    for k in (*near_numbers(problem.n), *far_numbers(problem.n)):
        fewer = problem if k == problem.n else problem.with_(n_working=k)
        speed = fastest(fewer, shape, batch)
        if speed is None:
            continue
        rate = speed.tokens_per_second * fewer.goodput.share
        if rate > most:
            best, most = (fewer, speed), rate
    return best
