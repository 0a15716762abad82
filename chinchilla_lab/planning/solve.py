"""The search: layouts inside shapes inside sizes."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chinchilla_lab.allocation.solving import additive
from chinchilla_lab.checks import InfeasibleError
from chinchilla_lab.cluster.accelerators import Price
from chinchilla_lab.cluster.cost import as_price
from chinchilla_lab.cluster.failures import DEFAULT_RELIABILITY, Reliability
from chinchilla_lab.cluster.hardware import Cluster
from chinchilla_lab.cluster.layout import Layout
from chinchilla_lab.cluster.memory import Recipe
from chinchilla_lab.cluster.stacks import Stack, find_stack
from chinchilla_lab.cluster.step import step_time
from chinchilla_lab.laws.families import LossLaw
from chinchilla_lab.laws.published import DEFAULT
from chinchilla_lab.planning.losses import DataLimit
from chinchilla_lab.planning.problem import Objective, Problem
from chinchilla_lab.planning.results import Plan
from chinchilla_lab.planning.speed import Speed, fastest, typed_speed
from chinchilla_lab.shape.family import FAMILIES, shape_for, shapes_near
from chinchilla_lab.shape.transformer import TransformerShape
from chinchilla_lab.units import DAY, FLOP_PER_ND, GB, HOUR, text

__all__ = ["default_stack", "plan", "solve", "typed_plan"]

Array = NDArray[np.float64]
Progress = Callable[[float], None]

COARSE = 0.06  # step of ln N in the first pass
NEAR = 0.12  # reach of the second pass around the best of the first
MOST_NEAR = 160  # shapes of the second pass
# plans whose loss differs by less than this share of the compute are told apart by time
SAME = 2e-3


def default_stack(cluster: Cluster) -> str:
    """Return the stack that is used when none is named.

    Parameters
    ----------
    cluster : Cluster
        The machine, [-]

    Returns
    -------
    str
        ``"megatron-bridge"``, fused attention and overlap, calibrated on A100 and
        scored on H100; ``"simumax-b200"`` for chips whose products were measured far
        below their ceiling there, [-]
    """
    return "simumax-b200" if cluster.chip.id == "b200-sxm" else "megatron-bridge"


def plan(
    cluster: Cluster,
    *,
    law: LossLaw = DEFAULT,
    objective: Objective = "loss",
    deadline: float | None = None,
    budget: float | None = None,
    compute: float | None = None,
    target_loss: float | None = None,
    unique_tokens: float | None = None,
    inference_tokens: float = 0.0,
    shape_family: str | None = "llama",
    seq_len: int = 4096,
    batch_limit: float | None = None,
    critical_batch: float | None = None,
    stack: Stack | str | None = None,
    dtype: str = "bf16",
    recipe: Recipe | str = "mixed-adam",
    memory_limit: float | None = None,
    reliability: Reliability | None = DEFAULT_RELIABILITY,
    price: Price | float | tuple[float, float] | None = None,
    utilisation: float | None = None,
    serving_utilisation: float | None = None,
    options: dict[str, Sequence[Any]] | None = None,
    keep: int = 5,
    progress: Progress | None = None,
) -> Plan:
    r"""Find what to train on a cluster, in which shape and layout, for the best end.

    .. math:: \min_{N,\,D,\,\text{shape},\,\text{layout}} \text{objective}
       \quad\text{with}\quad
       \frac{D}{v(\text{shape, layout})\,g} \le T, \qquad
       L(N, D, U) \le L^*

    Parameters
    ----------
    cluster : Cluster
        The machine, [-]
    law : LossLaw, optional
        Law with a loss, published or fitted, [-]
    objective : {"loss", "time", "cost", "lifetime"}, optional
        Least loss within the limits; or least time, training cost, or training plus
        serving cost at ``target_loss``, [-]
    deadline : float, optional
        Time from start to end, failures included, [s]
    budget : float, optional
        Money for training and for serving ``inference_tokens``, [USD]
    compute : float, optional
        Training compute 6ND at most, [FLOP]
    target_loss : float, optional
        Loss to reach, [nats/token]
    unique_tokens : float, optional
        Tokens that differ; more are repeats and wear out, [token]
    inference_tokens : float, optional
        Tokens to be served, 2N FLOP each, [token]
    shape_family : str, optional
        Key of ``shape.FAMILIES``; None for any N, with ``utilisation``, [-]
    seq_len : int, optional
        Tokens of a sequence, [token]
    batch_limit : float, optional
        Largest batch; None for the law ``deepseek-2024``, infinity for none, [token]
    critical_batch : float, optional
        Critical batch, above which examples are wasted; None for no waste, [token]
    stack : Stack or str, optional
        Constants of the software; by default :func:`default_stack`, [-]
    dtype : {"bf16", "fp8", "tf32"}, optional
        Format of the matrix products, [-]
    recipe : Recipe or str, optional
        Bytes of a parameter, [byte/parameter]
    memory_limit : float, optional
        Bytes that a job may fill on an accelerator, [byte]
    reliability : Reliability, optional
        Failures and checkpoints; None for a machine that never fails, [-]
    price : Price or float or tuple of float, optional
        Rental; by default the range of the chip, [USD/h]
    utilisation : float, optional
        Share of the dense peak that 6ND reach, in place of a search of layouts, [-]
    serving_utilisation : float, optional
        Share of the peak that serving reaches; by default that of training, [-]
    options : dict, optional
        Axes of the layout search, restricted: ``{"recompute": ("none",)}``, [-]
    keep : int, optional
        Plans to return, the best included, [-]
    progress : callable, optional
        Called with the share that is done, [-]

    Returns
    -------
    Plan
        The best plan; ``alternatives`` holds the next ones, [-]

    Raises
    ------
    InfeasibleError
        If nothing meets the limits; the message says what would.
    ValueError
        If nothing limits the objective, or a figure is missing.

    Notes
    -----
    Shapes come from a family in which heads divide and MLPs tile; every one is given
    its own search of layouts, since a single shape for each N shows divisibility and
    not scaling. Up to the batch limit examples are taken to be equally good; with
    ``critical_batch`` they cost 1 + B / B_c. Serving costs 2NT. The bound in time is
    ``deadline`` and what ``budget`` buys at the middle of the price range.

    References
    ----------
    :cite:`hoffmann2022training`; :cite:`sardana2024beyond` for serving;
    :cite:`muennighoff2023scaling` for repeats

    Examples
    --------
    >>> loft = Cluster(accelerator="h100-sxm-80gb", n_accelerators=64)
    >>> best = plan(loft, deadline=30 * 86400)
    >>> best.days <= 30, best.shape.n_heads * 128 == best.shape.d_model
    (True, True)
    """
    used = find_stack(default_stack(cluster) if stack is None else stack)
    problem = Problem(
        cluster=cluster, law=law, objective=objective, deadline=deadline,
        budget=budget, compute=compute, target_loss=target_loss,
        unique_tokens=unique_tokens, inference_tokens=inference_tokens,
        shape_family=shape_family, seq_len=seq_len, batch_limit=batch_limit,
        critical_batch=critical_batch, stack=used, stack_given=stack is not None,
        dtype=dtype, recipe=recipe,
        memory_limit=memory_limit, reliability=reliability,
        price=None if price is None else as_price(price), utilisation=utilisation,
        serving_utilisation=serving_utilisation, options=dict(options or {}), keep=keep,
    )  # fmt: skip
    return solve(problem, progress)


def solve(problem: Problem, progress: Progress | None = None) -> Plan:
    """Solve a problem that is already put together.

    Parameters
    ----------
    problem : Problem
        What is asked, [-]
    progress : callable, optional
        Called with the share that is done, [-]

    Returns
    -------
    Plan
        The best plan with its alternatives, [-]

    Warns
    -----
    ExtrapolationWarning
        If the plan leaves the fitted range of the law.
    """
    made = _solve(problem, progress)
    problem.law.warn_outside(
        N=np.asarray(made.N), D=np.asarray(made.D), C=np.asarray(made.C)
    )
    return made


def _solve(problem: Problem, progress: Progress | None = None) -> Plan:
    if problem.shape_family is None:
        return _any_size(problem)
    guess = _guess(problem)
    coarse = _ladder_steps(problem, guess / 2.5, guess * 2.5)
    found = _all(problem, coarse, progress, 0.0, 0.6)
    # a best plan at the rim asks for a wider look
    for _ in range(4):
        if not found:
            break
        best = found[0].N
        sizes = [s.params().meanings()[problem.law.N_counts] for s in coarse]
        if min(sizes) * 1.15 < best < max(sizes) / 1.15:
            break
        low, high = (best / 3, best) if best <= min(sizes) * 1.15 else (best, best * 3)
        more = _ladder_steps(problem, low, high)
        if not more or set(more) <= set(coarse):
            break
        coarse = [*coarse, *more]
        found = _best(problem, [*found, *_all(problem, more, None, 0.6, 0.6)])
    if not found:
        found = _smaller(problem, guess)
    near = _shapes_around(problem, found[0].N)
    rest = [s for s in near if s not in set(coarse)]
    found = _best(problem, [*found, *_all(problem, rest, progress, 0.6, 1.0)])
    top = found[: problem.keep]
    return replace(
        top[0], alternatives=tuple(top[1:]), n_searched=len(set(coarse)) + len(rest)
    )


def _all(
    problem: Problem,
    shapes: Sequence[TransformerShape],
    progress: Progress | None,
    start: float,
    end: float,
) -> list[Plan]:
    plans = []
    batches = problem.batches()
    for i, shape in enumerate(shapes):
        plans += [
            made
            for batch in batches
            if (made := candidate(problem, shape, batch)) is not None
        ]
        if progress is not None:
            progress(start + (end - start) * (i + 1) / len(shapes))
    return _best(problem, plans)


def _best(problem: Problem, plans: Iterable[Plan]) -> list[Plan]:
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


def _guess(problem: Problem) -> float:
    """Size that the limits would favour on a machine of constant utilisation."""
    smooth = problem.with_(shape_family=None, utilisation=problem.utilisation or 0.4)
    try:
        return _any_size(smooth).N
    except InfeasibleError:
        # the machine may do better than the guess
        return problem.first_size()


@cache
def _usual(family: str, ln_n: int) -> tuple[TransformerShape, ...]:
    """Shapes near exp(ln_n * COARSE): those whose layers divide most often."""
    wanted = float(np.exp(ln_n * COARSE))
    usual = FAMILIES[family].usual_aspect

    def order(shape: TransformerShape) -> tuple[int, float]:
        cuts = sum(shape.n_layers % k == 0 for k in (2, 4, 8, 16))
        return -cuts, abs(np.log(shape.d_model / shape.n_layers / usual))

    near = [shape for _, shape in shapes_near(wanted, COARSE / 2, family)]
    few = sorted(near, key=order)[:2]
    with suppress(ValueError):
        few.append(shape_for(wanted, family))
    return tuple(dict.fromkeys(few))


def _ladder_steps(problem: Problem, low: float, high: float) -> list[TransformerShape]:
    family = problem.shape_family or "llama"
    first, last = (round(float(np.log(x)) / COARSE) for x in (low, high))
    rungs = [shape for k in range(first, last + 1) for shape in _usual(family, k)]
    return list(dict.fromkeys(rungs))


def _shapes_around(problem: Problem, N: float) -> list[TransformerShape]:
    near = [s for _, s in shapes_near(N, NEAR, problem.shape_family or "llama")]

    def order(shape: TransformerShape) -> tuple[int, int]:
        cuts = sum(shape.n_layers % k == 0 for k in (2, 4, 8, 16))
        wide = sum(shape.d_model % k == 0 for k in (1024, 2048, 4096))
        return -cuts - wide, shape.n_layers

    return sorted(near, key=order)[:MOST_NEAR]


def _smaller(problem: Problem, guess: float) -> list[Plan]:
    """Look at much smaller models before giving up, then say what binds."""
    shapes = _ladder_steps(problem, guess / 60, guess / 2.4)
    if problem.objective != "loss":
        shapes += _ladder_steps(problem, guess * 2.4, guess * 8)
    found = _all(problem, shapes, None, 0.0, 0.0)
    if found:
        return found
    _refuse(problem, guess)
    raise AssertionError  # _refuse always raises


def _refuse(problem: Problem, guess: float) -> None:
    """Say which limit nothing meets, and what would."""
    machine = problem.cluster
    family = problem.shape_family or "llama"
    if problem.objective != "loss" and problem.target_loss is not None:
        limit = DataLimit(law=problem.law, unique=problem.unique_tokens)
        sizes = guess * np.geomspace(0.05, 20.0, 200)
        if not np.any(np.isfinite(limit.tokens(sizes, problem.target_loss))):
            limit.refuse(problem.target_loss)
        if problem.deadline is not None or problem.budget is not None:
            try:
                free = problem.with_(deadline=None, budget=None, objective="time")
                need = _solve(free)
            except InfeasibleError:
                pass
            else:
                raise InfeasibleError(_out_of_time(problem, need))
    shape = _ladder_steps(problem, guess / 1.1, guess * 1.1)
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


def _out_of_time(problem: Problem, need: Plan) -> str:
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


def candidate(problem: Problem, shape: TransformerShape, batch: int) -> Plan | None:
    """Return the plan of a shape, or None if it cannot meet the limits."""
    if problem.utilisation is not None:
        speed, share = None, problem.utilisation
        active = shape.params().active
        rate = problem.peak * share / (FLOP_PER_ND * active)
    else:
        speed = fastest(problem, shape, batch)
        if speed is None:
            return None
        share, rate = speed.utilisation, speed.tokens_per_second
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
    size = (
        float(shape.params().meanings()[problem.law.N_counts])
        if N is None and shape is not None
        else float(N or 0.0)
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
    if problem.batch_limit is None and batch is not None:
        notes.append("batch after DeepSeek LLM 2024, known to a factor of four")
    if problem.utilisation is not None:
        notes.append(f"utilisation {problem.utilisation:.0%} is assumed, not modelled")
    if problem.inference_tokens and problem.serving_utilisation is None:
        notes.append("serving at the utilisation of training")
    return Plan(
        problem=problem, N=size, D=D, loss=loss, seconds=seconds, utilisation=share,
        goodput=keeps, score=float(score), shape=shape, speed=speed, batch=batch,
        assumptions=tuple(notes),
    )  # fmt: skip


def _any_size(problem: Problem) -> Plan:
    """Solve for any real N at a given utilisation: zoom a grid in ln N."""
    assert problem.utilisation is not None  # the problem was checked
    share = problem.utilisation
    start = np.log(problem.first_size())
    low, high = start - np.log(1e3), start + np.log(1e2)
    sizes = np.empty(0)
    for _ in range(6):
        sizes = np.linspace(low, high, 241)
        scores = _scores(problem, np.exp(sizes), share)
        if not np.any(np.isfinite(scores)):
            _refuse_any(problem, share)
        i = int(np.nanargmin(scores))
        low, high = sizes[max(i - 1, 0)], sizes[min(i + 1, len(sizes) - 1)]
    N = float(np.exp(sizes[i]))
    made = finish(
        problem, None, None, None, share, problem.peak * share / (FLOP_PER_ND * N), N
    )
    assert made is not None  # its score is finite
    return replace(made, n_searched=241 * 6)


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
                _out_of_time(problem, _any_size(free.with_(objective="time")))
            )
        limit = DataLimit(law=problem.law, unique=problem.unique_tokens)
        limit.refuse(problem.target_loss)
    raise InfeasibleError(
        "the budget is used up by serving alone: raise it, serve fewer tokens, or give "
        "a higher serving_utilisation"
    )


def typed_plan(
    cluster: Cluster,
    shape: TransformerShape,
    D: float,
    batch: int,
    layout: Layout | None = None,
    **settings: Any,
) -> Plan:
    """Return what a plan of your own takes: shape, tokens, batch, and layout if known.

    Parameters
    ----------
    cluster : Cluster
        The machine, [-]
    shape : TransformerShape
        The model, [-]
    D : float
        Training tokens, [token]
    batch : int
        Sequences of a step, [sequence]
    layout : Layout, optional
        How the job is cut; by default the fastest, [-]
    **settings : dict
        As for :func:`plan`: ``law``, ``seq_len``, ``stack``, ``dtype``, ``price``,
        ``reliability``, ``deadline``, ``budget``, ``utilisation`` and so on, [-]

    Returns
    -------
    Plan
        The plan with its time and cost; :func:`~chinchilla_lab.planning.closure` says
        whether it closes, [-]

    Raises
    ------
    InfeasibleError
        If no layout divides and fits.
    ValueError
        If the layout cannot run.

    Examples
    --------
    >>> from chinchilla_lab.shape import SHAPES
    >>> loft = Cluster(accelerator="h100-sxm-80gb", n_accelerators=64)
    >>> made = typed_plan(loft, SHAPES["llama-3-8b"], D=2e11, batch=512, seq_len=8192)
    >>> made.batch_tokens, made.days > 1
    (4194304, True)
    """
    given = {"law": DEFAULT, "reliability": DEFAULT_RELIABILITY, **settings}
    given["stack_given"] = given.get("stack") is not None
    given["stack"] = find_stack(given.get("stack") or default_stack(cluster))
    if given.get("price") is not None:
        given["price"] = as_price(given["price"])
    given.setdefault("compute", FLOP_PER_ND * shape.params().active * float(D))
    given["objective"] = "loss"
    problem = Problem(cluster=cluster, **given)
    speed: Speed | None = None
    if problem.utilisation is not None:
        share = problem.utilisation
        rate = problem.peak * share / (FLOP_PER_ND * shape.params().active)
    else:
        if layout is None:
            speed = fastest(problem, shape, batch)
            if speed is None:
                raise InfeasibleError(
                    f"no layout divides and fits with batch={batch} sequences on "
                    f"{problem.n} accelerators; type a layout to see what it would "
                    "need, change the batch or use more accelerators"
                )
        else:
            step = step_time(
                shape, cluster, layout, batch, problem.seq_len, problem.stack,
                problem.dtype,
            )  # fmt: skip
            speed = typed_speed(problem, step)
        share, rate = speed.utilisation, speed.tokens_per_second
    free = problem.with_(deadline=None, budget=None)
    made = finish(free, shape, None, speed, share, rate)
    assert made is not None  # nothing limits it but its own compute
    loss = DataLimit(law=problem.law, unique=problem.unique_tokens).loss(
        np.asarray(made.N), np.asarray(D / problem.waste(batch * problem.seq_len))
    )
    return replace(
        made, problem=problem, D=float(D), batch=batch, loss=float(loss),
        score=float(loss), seconds=float(D) / rate / problem.goodput.share,
        assumptions=(),
    )  # fmt: skip
