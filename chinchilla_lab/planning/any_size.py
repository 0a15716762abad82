"""The same search for any real N at a given utilisation: no shapes, no layouts."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from chinchilla_lab.checks import InfeasibleError
from chinchilla_lab.planning.candidates import finish
from chinchilla_lab.planning.losses import DataLimit
from chinchilla_lab.planning.problem import FIRST_GUESS, Problem
from chinchilla_lab.planning.results import Plan
from chinchilla_lab.units import DAY, FLOP_PER_ND, HOUR, text

__all__: list[str] = []

Array = NDArray[np.float64]
POINTS, ZOOMS = 241, 6
# losses closer than this are one [nats/token]: where repeats and surplus parameters add
# nothing, sizes far apart differ by less, and the last float would choose among them
ONE_LOSS = 1e-9


def any_size(problem: Problem) -> Plan:
    """Solve for any real N at a given utilisation: zoom a grid in ln N.

    Where several sizes of the grid reach one loss, the smallest that does is taken.
    """
    assert problem.utilisation is not None  # the problem was checked
    share = problem.utilisation * problem.busy
    start = np.log(problem.first_size())
    low, high = start - np.log(1e3), start + np.log(1e2)
    sizes, enough, flat = np.empty(0), np.nan, False
    for zoom in range(ZOOMS):
        sizes = np.linspace(low, high, POINTS)
        scores = _scores(problem, np.exp(sizes), share)
        if not np.any(np.isfinite(scores)):
            _refuse_any(problem, share)
        i, last = int(np.nanargmin(scores)), POINTS - 1
        if zoom == 0:
            enough = scores[i] + ONE_LOSS
            flat = problem.objective == "loss" and int(np.sum(scores <= enough)) > 2
        if flat:
            i = last = int(np.argmax(scores <= enough))
        low, high = sizes[max(i - 1, 0)], sizes[min(i + 1, last)]
    N = float(np.exp(sizes[i]))
    made = finish(
        problem, None, None, None, share, problem.peak * share / (FLOP_PER_ND * N), N
    )
    assert made is not None  # its score is finite
    return replace(made, n_searched=POINTS * ZOOMS)


def _scores(problem: Problem, N: Array, share: float) -> Array:
    limit = DataLimit(law=problem.law, unique=problem.unique_tokens)
    rate = problem.peak * share / (FLOP_PER_ND * N)
    keeps = problem.goodput.share
    usable = np.asarray(problem.usable_seconds(N, share))
    most = np.maximum(usable, 0.0) * rate * keeps
    if problem.compute is not None:
        most = np.minimum(most, problem.compute / (FLOP_PER_ND * N))
    if problem.objective == "loss":
        with np.errstate(divide="ignore"):
            loss = limit.loss(N, np.maximum(most, 1.0))
        return np.where(most > 1.0, loss, np.nan)
    assert problem.target_loss is not None  # the problem was checked
    D = np.asarray(limit.tokens(N, problem.target_loss))
    seconds = D / rate / keeps
    if problem.objective == "lifetime":
        total = seconds + problem.serving_seconds(N, share)
    else:
        total = seconds
    return np.where(most * (1 + 1e-12) >= D, total, np.nan)


def _refuse_any(problem: Problem, share: float) -> None:
    if problem.target_loss is not None and problem.objective != "loss":
        free = problem.with_(deadline=None, budget=None, compute=None)
        if np.any(np.isfinite(_scores(free, problem.first_size() * np.geomspace(
            1e-2, 1e2, 400), share))):  # fmt: skip
            raise InfeasibleError(
                out_of_time(problem, any_size(free.with_(objective="time")))
            )
        limit = DataLimit(law=problem.law, unique=problem.unique_tokens)
        limit.refuse(problem.target_loss)
    raise InfeasibleError(
        "the budget is used up by serving alone: raise it, serve fewer tokens, or give "
        "a higher serving_utilisation"
    )


def used_up(problem: Problem, N: float) -> None:
    """Say so if serving alone takes the budget, even of a tenth of the size."""
    if problem.budget is None or not problem.inference_tokens:
        return
    share = problem.serving_utilisation or problem.utilisation or FIRST_GUESS
    seconds = float(problem.serving_seconds(0.1 * N, share))
    serving = seconds * problem.n / HOUR * problem.usd_per_hour
    if serving >= problem.budget:
        raise InfeasibleError(
            f"serving {text(problem.inference_tokens, 'token')} from even "
            f"{text(0.1 * N, 'parameter')} costs about {text(serving, 'USD')}, and the "
            f"budget of training and serving is {text(problem.budget, 'USD')}: raise "
            "it, serve fewer tokens, or give a higher serving_utilisation"
        )


def out_of_time(problem: Problem, need: Plan) -> str:
    """Say how long the target takes, and what would be enough."""
    parts = [
        f"target_loss={problem.target_loss:.6g} takes at least {need.days:.3g} days"
    ]
    if problem.deadline is not None and need.seconds > problem.deadline:
        more = need.seconds / problem.deadline
        parts.append(
            f"and the deadline is {problem.deadline / DAY:.3g} days: about "
            f"{more:.2g} times as many accelerators "
            f"({int(np.ceil(problem.n * more)):,}), a later deadline or a higher loss "
            "would do"
        )
    if problem.budget is not None:
        parts.append(
            f"and about {text(need.dollars + need.serving_dollars, 'USD')} where the "
            f"budget is {text(problem.budget, 'USD')}"
        )
    return " ".join(parts)
