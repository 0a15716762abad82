"""Everything that the intervals of a plan draw, in blocks, here or on an executor."""

from concurrent.futures import Executor
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from chinchilla_lab.planning.law_doubt import LawDoubt
from chinchilla_lab.planning.results import Plan
from chinchilla_lab.planning.time_doubt import TimeDoubt, TimeDraws

__all__: list[str] = []

Array = NDArray[np.float64]

# draws of one block; more are drawn in several, each with a generator of its own
BLOCK = 4000


@dataclass(frozen=True, kw_only=True)
class Draws(TimeDraws):
    """Everything that is drawn, one entry a draw: the factors on the time, and these.

    Parameters
    ----------
    scatter_N : numpy.ndarray
        Best size by resamples of the own law, [parameter]
    scatter_D : numpy.ndarray
        Their tokens, [token]
    scatter_work : numpy.ndarray
        Their compute over the plan's, [-]
    law_N : numpy.ndarray
        Best size by laws without scatter, [parameter]
    law_D : numpy.ndarray
        Their tokens, [token]
    law_work : numpy.ndarray
        Their compute over the plan's, [-]
    N : numpy.ndarray
        Best size by laws with scatter, [parameter]
    D : numpy.ndarray
        Their tokens, [token]
    work : numpy.ndarray
        Their compute over the plan's, [-]
    loss_scatter : numpy.ndarray
        Loss by resamples, [nats/token]
    loss_laws : numpy.ndarray
        Loss by laws of the same data, [nats/token]
    loss_model : numpy.ndarray
        Loss with the time of the step model, [nats/token]
    loss_failures : numpy.ndarray
        Loss with that of failures, [nats/token]
    loss_whole : numpy.ndarray
        Loss with that of the whole run, [nats/token]
    loss_steps : numpy.ndarray
        Loss with that of steps and failures, [nats/token]
    loss_waste : numpy.ndarray
        Loss at the drawn critical batch, [nats/token]
    loss : numpy.ndarray
        Loss with everything drawn, [nats/token]
    """

    scatter_N: Array
    scatter_D: Array
    scatter_work: Array
    law_N: Array
    law_D: Array
    law_work: Array
    N: Array
    D: Array
    work: Array
    loss_scatter: Array
    loss_laws: Array
    loss_model: Array
    loss_failures: Array
    loss_whole: Array
    loss_steps: Array
    loss_waste: Array
    loss: Array


def _block(
    plan: Plan, times: TimeDoubt, laws: LawDoubt, timed: bool, light: bool, draws: int,
    rng: np.random.Generator,
) -> Draws:  # fmt: skip
    t = times.draw(rng, draws)
    scatter = laws.scattered(rng, draws)
    chosen = laws.chosen(rng, draws, whole=False)
    both = laws.chosen(rng, draws, whole=True)
    tokens = np.full(draws, plan.D / plan.waste)

    def loss(
        what: str, factor: Array | None = None, waste: Array | None = None
    ) -> Array:
        if light and what != "both":
            return np.empty(0)
        # a slower run sees fewer tokens until the limit; without one it takes longer
        seen = tokens / factor if timed and factor is not None else tokens
        seen = seen if waste is None else seen / waste
        return laws.losses(plan, seen, rng, what)

    return Draws(
        model=t.model, failures=t.failures, whole=t.whole, waste=t.waste,
        price=t.price, scatter_N=scatter.N, scatter_D=scatter.D,
        scatter_work=scatter.work, law_N=chosen.N, law_D=chosen.D,
        law_work=chosen.work, N=both.N, D=both.D, work=both.work,
        loss_scatter=loss("resamples"), loss_laws=loss("laws"),
        loss_model=loss("nothing", t.model), loss_failures=loss("nothing", t.failures),
        loss_whole=loss("nothing", t.whole), loss_steps=loss("nothing", t.steps),
        loss_waste=loss("nothing", None, t.waste),
        loss=loss("both", t.run, t.waste if timed else None),
    )  # fmt: skip


def _send(
    job: tuple[Plan, TimeDoubt, LawDoubt, bool, bool, int, np.random.Generator],
) -> Draws:
    return _block(*job)


def all_draws(
    plan: Plan, times: TimeDoubt, laws: LawDoubt, timed: bool, light: bool, n: int,
    seed: int, executor: Executor | None,
) -> Draws:  # fmt: skip
    """Draw, in blocks where one is not enough."""
    rng = np.random.default_rng(seed)
    if n <= BLOCK:
        return _block(plan, times, laws, timed, light, n, rng)
    sizes = [BLOCK] * (n // BLOCK) + ([n % BLOCK] if n % BLOCK else [])
    jobs = [
        (plan, times, laws, timed, light, size, child)
        for size, child in zip(sizes, rng.spawn(len(sizes)), strict=True)
    ]
    made = list(map(_send, jobs) if executor is None else executor.map(_send, jobs))
    return Draws(
        **{f.name: np.concatenate([getattr(m, f.name) for m in made])
           for f in fields(Draws)}
    )  # fmt: skip
