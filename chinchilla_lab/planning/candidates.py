"""Candidates of a search: shapes to try, and what each makes of the limits."""

from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np

from chinchilla_lab.allocation.solving import additive
from chinchilla_lab.laws.families import LossLaw
from chinchilla_lab.planning.losses import DataLimit
from chinchilla_lab.planning.problem import Problem
from chinchilla_lab.planning.results import Plan
from chinchilla_lab.planning.speed import Speed, fastest
from chinchilla_lab.repetition.results import FOLLOWED_EPOCHS
from chinchilla_lab.shape.family import FAMILIES, shape_for, shapes_near
from chinchilla_lab.shape.transformer import TransformerShape
from chinchilla_lab.units import FLOP_PER_ND, HOUR

__all__: list[str] = []

COARSE = 0.06  # step of ln N in the first pass
NEAR = 0.25  # reach of the second pass around the best of the first
MOST_NEAR = 160  # shapes of the second pass
# plans whose loss differs by less than this share of the compute are told apart by time
SAME = 2e-3
# how close to its floor a size whose repeats are worn out is trained [nats/token]
ALIKE = 1e-5


def counted(problem: Problem, shape: TransformerShape) -> float:
    """Return N as the law of a problem counts it, [parameter].

    Laws of dense models know no idle experts: a mixture is held against them by what a
    token uses, its idle experts left out.
    """
    n, counts = shape.params(), problem.law.N_counts
    return float(n.meanings()[counts] - (0 if counts == "active" else n.idle))


def divisions(shape: TransformerShape) -> int:
    """Count the usual numbers of stages that divide the layers of a shape."""
    return sum(shape.n_layers % k == 0 for k in (2, 4, 8, 16))


def well_cut(shape: TransformerShape) -> int:
    """Count the usual stages and tiles that divide a shape's layers and width."""
    wide = sum(shape.d_model % k == 0 for k in (1024, 2048, 4096))
    return divisions(shape) + wide


@cache
def usual_shapes(
    family: str, ln_n: int, only_one: bool = False
) -> tuple[TransformerShape, ...]:
    """Shapes near exp(ln_n * COARSE): those whose layers divide most often."""
    wanted = float(np.exp(ln_n * COARSE))
    usual = FAMILIES[family].usual_aspect

    def order(shape: TransformerShape) -> tuple[int, float]:
        return -divisions(shape), abs(np.log(shape.d_model / shape.n_layers / usual))

    near = [shape for _, shape in shapes_near(wanted, COARSE / 2, family)]
    few = sorted(near, key=order)[: 1 if only_one else 2]
    if only_one:
        return tuple(few)
    with suppress(ValueError):
        few.append(shape_for(wanted, family))
    return tuple(dict.fromkeys(few))


def mixture_notes(law: LossLaw) -> list[str]:
    """Say what is assumed of a mixture of experts."""
    notes = [
        "tokens are spread evenly over experts; step constants are of dense models"
    ]
    if law.N_counts == "active":
        notes.append(f"N is what a token uses, as {law.label} counts")
    else:
        notes.append(
            f"N is what a token uses: {law.label} is of dense models and does not know "
            "what idle experts add, so it says too high a loss; for a law that does, "
            "laws.variants.LUDZIEJEWSKI_2025"
        )
    return notes


def ladder_steps(problem: Problem, low: float, high: float) -> list[TransformerShape]:
    """Return shapes from a small size to a large one, a few for each step."""
    family = problem.shape_family or "llama"
    first, last = (round(float(np.log(x)) / COARSE) for x in (low, high))
    rungs = [
        shape
        for k in range(first, last + 1)
        for shape in usual_shapes(family, k, not problem.thorough)
    ]
    return list(dict.fromkeys(rungs))


def shapes_around(problem: Problem, N: float) -> list[TransformerShape]:
    """Return shapes around a size, those that divide most often first."""
    near = [s for _, s in shapes_near(N, NEAR, problem.shape_family or "llama")]
    return sorted(near, key=lambda s: (-well_cut(s), s.n_layers))[:MOST_NEAR]


def best_first(problem: Problem, plans: Iterable[Plan]) -> list[Plan]:
    """Sort plans, one for each shape; nearly equal losses go by time."""
    ranked = sorted(plans, key=lambda p: (p.score, p.seconds))
    timed = problem.deadline is not None or problem.budget is not None
    if problem.objective == "loss" and not timed and ranked:
        law = additive(problem.law)
        floor = law.E if law is not None else 0.0
        slack = SAME * 0.2 * (ranked[0].loss - floor)
        close = [p for p in ranked if p.score <= ranked[0].score + slack]
        ranked = sorted(close, key=lambda p: p.seconds) + ranked[len(close) :]
    seen: set[Any] = set()
    kept = []
    for p in ranked:
        if p.shape not in seen:
            seen.add(p.shape)
            kept.append(p)
    return kept


def candidate(problem: Problem, shape: TransformerShape, batch: int) -> Plan | None:
    """Return the plan of a shape, or None if it cannot meet the limits."""
    if problem.utilisation is not None:
        speed, share = None, problem.utilisation * problem.busy
        active = shape.params().active
        rate = problem.peak * share / (FLOP_PER_ND * active)
    else:
        speed = fastest(problem, shape, batch)
        if speed is None:
            return None
        share = speed.utilisation * problem.busy
        rate = speed.tokens_per_second
    return finish(problem, shape, batch, speed, share, rate)


def finish(
    problem: Problem,
    shape: TransformerShape | None,
    batch: int | None,
    speed: Speed | None,
    share: float,
    rate: float,
    N: float | None = None,
) -> Plan | None:
    """Give a shape and its speed the tokens that the limits allow or the loss needs."""
    if share > problem.busy:
        raise ValueError(
            f"6ND would reach {share / problem.busy:.0%} of the dense peak of "
            f"{problem.cluster.chip.name}: no run can; check its peak, whether it is "
            "sparse, and the measured products"
        )
    size = (
        counted(problem, shape) if N is None and shape is not None else float(N or 0.0)
    )
    active = size if shape is None else float(shape.params().active)
    limit = DataLimit(law=problem.law, unique=problem.unique_tokens)
    per_step = problem.seq_len * batch if batch is not None else 0
    waste = problem.waste(per_step) if per_step else 1.0
    keeps = problem.goodput
    usable = float(problem.usable_seconds(active, share))
    if usable <= 0.0:
        return None
    most = usable * rate * keeps.share
    if problem.compute is not None:
        most = min(most, problem.compute / (FLOP_PER_ND * active))
    if problem.objective == "loss":
        D = most
        if per_step:
            D = np.floor(D / per_step * (1 + 1e-12)) * per_step
        if D > 0.0 and limit.worn_out(size, D / waste):
            # repeats beyond this gain nothing, however much time there is
            least = limit.floor(size) + ALIKE
            enough = float(limit.tokens(np.asarray(size), least)) * waste
            if per_step and np.isfinite(enough):
                enough = np.ceil(enough / per_step) * per_step
            D = enough if enough < D else D
    else:
        assert problem.target_loss is not None  # the problem was checked
        D = float(limit.tokens(np.asarray(size), problem.target_loss)) * waste
        if per_step and np.isfinite(D):
            D = np.ceil(D / per_step) * per_step
        if not np.isfinite(D) or most * (1 + 1e-12) < D:
            return None
    if not D > 0.0:
        return None
    D = float(D)
    loss = float(limit.loss(np.asarray(size), np.asarray(D / waste)))
    seconds = D / rate / keeps.share
    hourly = problem.n / HOUR * (problem.usd_per_hour if problem.price else np.nan)
    served = float(problem.serving_seconds(active, share))
    score = {
        "loss": loss,
        "time": seconds,
        "cost": seconds * hourly,
        "lifetime": (seconds + served) * hourly,
    }[problem.objective]
    notes = []
    if shape is not None and shape.n_experts > 1:
        notes += mixture_notes(problem.law)
    elif shape is not None and problem.law.N_counts == "active":
        notes.append(
            f"{problem.law.label} counts what a token uses; the shape is dense"
        )
    unique = problem.unique_tokens
    if unique is not None and D / unique > FOLLOWED_EPOCHS:
        notes.append(
            f"{D / unique:.0f} epochs: the law of repeats followed "
            f"measured runs up to {FOLLOWED_EPOCHS:.0f} and knows no overfitting"
        )
    if problem.batch_limit is None and batch is not None:
        notes.append("batch after DeepSeek LLM 2024, known to a factor of four")
    few = "one node" in problem.stack.notes
    if speed is not None and few and problem.cluster.n_domains > 1:
        notes.append(
            f"stack {problem.stack.name} was fitted on one node and serves "
            f"{problem.cluster.n_domains:,} here: its network is assumed, not measured"
        )
    if problem.utilisation is not None:
        notes.append(f"utilisation {problem.utilisation:.0%} is assumed, not modelled")
    if problem.inference_tokens and problem.serving_utilisation is None:
        notes.append("serving at the utilisation of training")
    paid = problem.budget is not None or problem.objective == "lifetime"
    if problem.inference_tokens and not paid:
        notes.append("serving is priced and does not move the plan: no budget, and not "
                     "objective='lifetime'")  # fmt: skip
    return Plan(
        problem=problem, N=size, D=D, loss=loss, seconds=seconds, utilisation=share,
        goodput=keeps, score=float(score), shape=shape, speed=speed, batch=batch,
        assumptions=tuple(notes),
    )  # fmt: skip
