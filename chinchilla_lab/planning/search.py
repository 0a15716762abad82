"""The search: layouts inside shapes inside sizes."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NoReturn

import numpy as np

from chinchilla_lab.checks import InfeasibleError
from chinchilla_lab.planning.any_size import any_size, out_of_time, used_up
from chinchilla_lab.planning.candidates import (
    best_first,
    candidate,
    counted,
    ladder_steps,
    shapes_around,
)
from chinchilla_lab.planning.idle import with_idle
from chinchilla_lab.planning.losses import DataLimit
from chinchilla_lab.planning.problem import Problem
from chinchilla_lab.planning.results import Plan
from chinchilla_lab.planning.serving import with_serving_note
from chinchilla_lab.planning.speed import search_all
from chinchilla_lab.planning.time_doubt import slack_for
from chinchilla_lab.shape.family import FAMILIES, shapes_near
from chinchilla_lab.shape.transformer import TransformerShape
from chinchilla_lab.units import FLOP_PER_ND, GB, text

__all__ = ["solve", "solve_at"]

TOGETHER = 40  # shapes whose layouts are searched in one pass, between two reports
LEADERS = 5  # plans of the first pass whose batches the second tries
Progress = Callable[[float], None]
# shapes that say how many accelerators are worth a whole search, and how far in size
FEW, REACH = 16, 1.15

TRIES, CLOSE = 4, 1.02  # how often, and how closely, a deadline is cut


def solve(
    problem: Problem,
    progress: Progress | None = None,
    shapes: Sequence[TransformerShape] | None = None,
) -> Plan:
    """Solve a problem that is already put together.

    Parameters
    ----------
    problem : Problem
        What is asked, [-]
    progress : callable, optional
        Called with the share that is done, [-]
    shapes : sequence of TransformerShape, optional
        Shapes to choose from, instead of those of a family: a single one for each size
        shows what divisibility alone makes of an answer, [-]

    Returns
    -------
    Plan
        The best plan with its alternatives, [-]

    Warns
    -----
    ExtrapolationWarning
        If the plan leaves the fitted range of the law.
    """
    limited = problem.deadline is not None or problem.budget is not None
    if problem.confidence is None or not limited:
        made = _found(problem, progress, shapes)
    else:
        made = _confident(problem, progress, shapes)
    made = with_serving_note(made)
    problem.law.warn_outside(
        N=np.asarray(made.N), D=np.asarray(made.D), C=np.asarray(made.C)
    )
    return made


def _found(
    problem: Problem,
    progress: Progress | None,
    shapes: Sequence[TransformerShape] | None,
) -> Plan:
    """Solve a problem without asking how sure its plan is."""
    made = _search(problem, progress, shapes)
    limit = DataLimit(law=problem.law, unique=problem.unique_tokens)
    enough = limit.as_good_as_floor
    if problem.objective == "loss" and made.loss <= enough:
        # worn-out data: of all plans with this loss the soonest, whatever the deadline
        soonest = problem.with_(objective="time", target_loss=enough)
        found = _search(soonest, None, shapes)
        top = [
            replace(
                p, score=p.loss, problem=problem.with_(n_working=p.problem.n_working)
            )
            for p in (found, *found.alternatives)
        ]
        made = replace(
            top[0],
            alternatives=tuple(top[1:]),
            n_searched=made.n_searched + found.n_searched,
        )
    return made


def _search(
    problem: Problem,
    progress: Progress | None,
    shapes: Sequence[TransformerShape] | None,
) -> Plan:
    """Search any size, the shapes given, or a family."""
    if shapes is not None:
        few = shapes[:FEW]
        return with_idle(problem, lambda p: _chosen(p, shapes, progress), lambda: few)
    if problem.shape_family is None:
        return any_size(problem)
    return with_idle(problem, lambda p: _solve(p, progress), lambda: _first(problem))


def _confident(
    problem: Problem,
    progress: Progress | None,
    shapes: Sequence[TransformerShape] | None,
) -> Plan:
    """Cut deadline and budget until the plan meets them with its confidence."""
    sure = problem.confidence
    assert sure is not None  # the problem was checked
    if problem.slack == (1.0, 1.0):
        # how much is cut hardly depends on the plan: a quick one will do
        quick = _found(problem.with_(thorough=False), None, shapes)
        problem = problem.with_(slack=slack_for(quick, sure))
    for _ in range(TRIES):
        made = _found(problem, progress, shapes)
        need = slack_for(made, sure)
        pairs = list(zip(need, problem.slack, strict=True))
        if all(n <= s <= CLOSE * n for n, s in pairs):
            break
        problem = problem.with_(slack=need)
    # a plan that jumps from shape to shape may never meet its own cut closely: then be
    # sure rather than close
    while any(n > s for n, s in pairs):
        larger = tuple(max(n, s) for n, s in pairs)
        problem = problem.with_(slack=larger)
        made = _found(problem, progress, shapes)
        pairs = list(zip(slack_for(made, sure), larger, strict=True))
    return made


def solve_at(problem: Problem, N: float, rtol: float = 0.03) -> Plan:
    """Solve a problem for a size that is given: its best shape, layout and tokens.

    Parameters
    ----------
    problem : Problem
        What is asked, for example ``plan(...).problem``, [-]
    N : float
        Parameters that a token uses, all of a dense model, [parameter]
    rtol : float, optional
        How far a shape may be from it, [-]

    Returns
    -------
    Plan
        The best plan of that size, [-]

    Raises
    ------
    InfeasibleError
        If no shape near N meets the limits.
    """
    if problem.shape_family is None:
        raise ValueError(
            "shape_family=None has no shapes to choose from; give a family, or compute "
            "the loss of a size from the law"
        )
    near = [s for _, s in shapes_near(N, rtol, problem.shape_family)]
    return solve(problem, shapes=near)


def _chosen(
    problem: Problem, shapes: Sequence[TransformerShape], progress: Progress | None
) -> Plan:
    found = _all(problem, shapes, progress, 0.0, 1.0) if shapes else []
    if not found:
        raise InfeasibleError(
            f"none of the {len(shapes)} shapes given meets the limits on "
            f"{problem.n} x {problem.cluster.chip.name}; loosen a limit, or give "
            "shapes whose layers and heads have more divisors"
        )
    top = found[: problem.keep]
    return replace(top[0], alternatives=tuple(top[1:]), n_searched=len(shapes))


def _first(problem: Problem) -> list[TransformerShape]:
    """Return a few shapes near the size that the limits favour."""
    guess = _guess(problem)
    return ladder_steps(problem, guess / REACH, guess * REACH)[
        : FEW if problem.thorough else FEW // 4
    ]


def _solve(problem: Problem, progress: Progress | None = None) -> Plan:
    guess = _guess(problem)
    coarse = ladder_steps(problem, guess / 2.5, guess * 2.5)
    found = _all(problem, coarse, progress, 0.0, 0.6 if problem.thorough else 1.0)
    # a best plan at the rim asks for a wider look
    for _ in range(4):
        if not found:
            break
        best = found[0].N
        sizes = [counted(problem, s) for s in coarse]
        if min(sizes) * 1.15 < best < max(sizes) / 1.15:
            break
        low, high = (best / 3, best) if best <= min(sizes) * 1.15 else (best, best * 3)
        more = ladder_steps(problem, low, high)
        if not more or set(more) <= set(coarse):
            break
        coarse = [*coarse, *more]
        found = best_first(problem, [*found, *_all(problem, more, None, 0.6, 0.6)])
    if not found:
        found = _smaller(problem, guess)
    rest: list[TransformerShape] = []
    if problem.thorough:
        around = shapes_around(problem, found[0].N)
        rest = [s for s in around if s not in set(coarse)]
        tried = _all(problem, rest, progress, 0.6, 1.0, _winners(found))
        found = best_first(problem, [*found, *tried])
    top = found[: problem.keep]
    return replace(
        top[0], alternatives=tuple(top[1:]), n_searched=len(set(coarse)) + len(rest)
    )


def _winners(found: Sequence[Plan]) -> tuple[int, ...]:
    """Return batches near those of the best plans that were best for some shape."""
    good = [p.batch for p in found[:LEADERS] if p.batch is not None]
    won = {p.batch for p in found if p.batch is not None}
    return tuple(b for b in won if min(good) <= 2 * b and b <= 2 * max(good))


def _all(
    problem: Problem,
    shapes: Sequence[TransformerShape],
    progress: Progress | None,
    start: float,
    end: float,
    batches: Sequence[int] | None = None,
) -> list[Plan]:
    plans = []
    batches = problem.batches() if batches is None else batches
    for i, shape in enumerate(shapes):
        if i % TOGETHER == 0 and problem.utilisation is None:
            some = shapes[i : i + TOGETHER]
            search_all((problem, one, batch) for one in some for batch in batches)
        plans += [
            made
            for batch in batches
            if (made := candidate(problem, shape, batch)) is not None
        ]
        if progress is not None:
            progress(start + (end - start) * (i + 1) / len(shapes))
    return best_first(problem, plans)


def _guess(problem: Problem) -> float:
    """Size that the limits would favour on a machine of constant utilisation."""
    smooth = problem.with_(shape_family=None, utilisation=problem.utilisation or 0.4)
    try:
        return any_size(smooth).N
    except InfeasibleError:
        used_up(problem, problem.first_size())
        if problem.utilisation is None and _beyond_the_peak(smooth):
            _refuse(problem, problem.first_size())
        # the machine may do better than the guess
        return problem.first_size()


def _beyond_the_peak(smooth: Problem) -> bool:
    """Whether not even a machine at its peak would meet the limits."""
    try:
        any_size(smooth.with_(utilisation=1.0))
    except InfeasibleError:
        return True
    return False


def _smaller(problem: Problem, guess: float) -> list[Plan]:
    """Look at much smaller models before giving up, then say what binds."""
    shapes = ladder_steps(problem, guess / 60, guess / 2.4)
    if problem.objective != "loss":
        shapes += ladder_steps(problem, guess * 2.4, guess * 8)
    found = _all(problem, shapes, None, 0.0, 0.0)
    if found:
        return found
    _refuse(problem, guess)


def _refuse(problem: Problem, guess: float) -> NoReturn:
    """Say which limit nothing meets, and what would."""
    machine = problem.cluster
    family = problem.shape_family or "llama"
    used_up(problem, guess)
    if problem.objective != "loss" and problem.target_loss is not None:
        limit = DataLimit(law=problem.law, unique=problem.unique_tokens)
        sizes = guess * np.geomspace(0.05, 20.0, 200)
        if not np.any(np.isfinite(limit.tokens(sizes, problem.target_loss))):
            limit.refuse(problem.target_loss)
        if problem.deadline is not None or problem.budget is not None:
            try:
                free = problem.with_(
                    deadline=None, budget=None, objective="time", thorough=False
                )
                need = _solve(free)
            except InfeasibleError:
                pass
            else:
                raise InfeasibleError(out_of_time(problem, need))
    shape = ladder_steps(problem, guess / 1.1, guess * 1.1)
    least = shape[0] if shape else None
    room = machine.chip.memory if problem.memory_limit is None else problem.memory_limit
    what = f"N={text(guess, 'parameter')}"
    one_step = FLOP_PER_ND * guess * problem.batches()[-1] * problem.seq_len
    if problem.objective == "loss" and problem.first_compute() < one_step:
        raise InfeasibleError(
            f"the limits leave {text(problem.first_compute(), 'FLOP')} to {what}, less "
            f"than one step of {problem.batches()[-1]} sequences; check their units "
            "(a deadline is in seconds), raise them or lower batch_limit"
        )
    first = problem.first_size()
    if least is None and guess < 0.5 * first:
        # so small only because serving must be paid: held against the usual size
        used_up(problem, first)
    if least is None:
        raise InfeasibleError(
            f"{what}, the best of {text(problem.first_compute(), 'FLOP')}, leaves the "
            f"sizes of the family {family!r}; choose another shape_family "
            f"({', '.join(FAMILIES)}), or check the units of the limits"
        )
    raise InfeasibleError(
        f"no layout of any shape near {what} divides and fits "
        f"{problem.n} x {machine.chip.name} with {room / GB:.0f} GB, batches of "
        f"{' or '.join(map(str, problem.batches()))} sequences of {problem.seq_len}; "
        "use more accelerators, a larger batch_limit, a shorter seq_len or fewer "
        "restrictions in options"
    )
