"""What a team asks: the best plan, or what a plan of its own would take."""

import warnings
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from chinchilla_lab.checks import ExtrapolationWarning, InfeasibleError, positive
from chinchilla_lab.cluster.accelerators import Price
from chinchilla_lab.cluster.cost import as_price
from chinchilla_lab.cluster.failures import DEFAULT_RELIABILITY, Reliability
from chinchilla_lab.cluster.hardware import Cluster
from chinchilla_lab.cluster.layout import Layout, sequences
from chinchilla_lab.cluster.memory import Recipe
from chinchilla_lab.cluster.stacks import HasStack, Stack, find_stack
from chinchilla_lab.cluster.step import step_time
from chinchilla_lab.laws.families import LossLaw
from chinchilla_lab.laws.published import DEFAULT
from chinchilla_lab.planning.candidates import finish, mixture_notes
from chinchilla_lab.planning.idle import most_useful
from chinchilla_lab.planning.losses import DataLimit
from chinchilla_lab.planning.problem import OBJECTIVES, Objective, Problem
from chinchilla_lab.planning.results import Plan
from chinchilla_lab.planning.search import Progress, solve
from chinchilla_lab.planning.speed import Speed, typed_speed
from chinchilla_lab.shape.transformer import TransformerShape
from chinchilla_lab.units import FLOP_PER_ND, GB

__all__ = ["default_stack", "plan", "typed_plan"]

# chips of one generation: what was measured on B200 is nearest to all of them
BLACKWELL = ("b200", "b300", "gb200", "gb300")


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
    if not isinstance(cluster, Cluster):
        raise ValueError(
            f"cluster={cluster!r} is no Cluster; use example_cluster('loft'), or "
            "Cluster(accelerator='h100-sxm-80gb', n_accelerators=64)"
        )
    blackwell = cluster.chip.id.startswith(BLACKWELL)
    return "simumax-b200" if blackwell else "megatron-bridge"


def _refuse_unused(problem: Problem) -> None:
    """Refuse arguments that nothing would look at: silence would look like an answer.

    Defaults are let through, and so are those that only say how to search.
    """
    p = problem
    rules: list[tuple[bool, str, tuple[str, ...]]] = [
        (
            p.objective == "loss",
            "with objective='loss', which finds the least loss within the limits; ask "
            "objective='time' or 'cost' for the soonest or cheapest way to it",
            ("target_loss",),
        ),
        (
            p.shape_family is None,
            "with shape_family=None, which plans any N without steps or layouts; name "
            "a family",
            ("seq_len", "batch_limit", "critical_batch"),
        ),
        (
            p.utilisation is not None,
            "where utilisation is given, which stands in for the search of layouts; "
            "leave utilisation out",
            ("memory_limit", "recipe", "options", "stack_given"),
        ),
        (
            not p.inference_tokens,
            "without tokens to serve; give inference_tokens",
            ("serving_utilisation",),
        ),
        (
            p.deadline is None and p.budget is None,
            "without a limit to be sure of; give a deadline or a budget",
            ("confidence",),
        ),
        (
            p.cluster.chip.power is None,
            "where the power of the accelerator is not known; give one with power=...",
            ("pue",),
        ),
        (
            p.price is None,
            "without a price: serving could be neither priced nor weighed; give "
            "price='2.5@2026-11'",
            ("inference_tokens",),
        ),
    ]
    defaults = {f.name: f.default for f in fields(Problem)} | {
        "options": {}, "stack_given": False,
    }  # fmt: skip
    for applies, why, names in rules:
        for name in names:
            value = getattr(p, name)
            if not applies or value == defaults[name]:
                continue
            if name == "batch_limit" and np.isposinf(value):
                continue
            shown = f"stack={p.stack.name!r}" if name == "stack_given" else (
                f"{name}={value!r}"
            )  # fmt: skip
            raise ValueError(f"{shown} counts for nothing {why}, or drop it")


def _refuse_without_target(objective: str, given: dict[str, Any]) -> None:
    """Say what loss the limits reach, for somebody who has none to aim at."""
    words = f"objective={objective!r} needs target_loss, the loss to reach"
    limits = [k for k in ("deadline", "budget", "compute") if given[k] is not None]
    if not limits:
        raise ValueError(
            f"{words}; objective='loss' with a deadline, budget or compute finds what "
            "can be reached"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExtrapolationWarning)
        least = solve(Problem(objective="loss", **(given | {"thorough": False}))).loss
    higher = np.ceil(100.0 * least + 0.5) / 100.0
    raise ValueError(
        f"{words}: the least within this {' and '.join(limits)} is {least:.4f} "
        f"nats/token; aim a little above it, target_loss={higher:.2f}"
    )


# a limit typed in GiB for a card sold in GB is the whole card, not a mistake
ROUNDED = 1.08


def _room(cluster: Cluster, limit: float | None) -> float | None:
    """Return the bytes that a job may fill, refused where the card has fewer."""
    if limit is None:
        return None
    room = float(positive("memory_limit", limit))
    most = cluster.chip.memory
    if room > ROUNDED * most:
        raise ValueError(
            f"memory_limit={room / GB:.1f} GB is more than the {most / GB:.1f} GB of "
            f"{cluster.chip.name}; leave it out to fill the card, or give an "
            "accelerator of your own with that memory"
        )
    return min(room, most)


def plan(
    cluster: Cluster,
    *,
    n_working: int | None = None,
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
    stack: Stack | str | HasStack | None = None,
    dtype: str = "bf16",
    recipe: Recipe | str = "mixed-adam",
    memory_limit: float | None = None,
    reliability: Reliability | None = DEFAULT_RELIABILITY,
    price: Price | str | None = None,
    utilisation: float | None = None,
    serving_utilisation: float | None = None,
    pue: float | None = None,
    options: dict[str, Sequence[Any]] | None = None,
    keep: int = 5,
    thorough: bool = True,
    confidence: float | None = None,
    whole_run: bool = True,
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
    n_working : int, optional
        Accelerators that work, the rest idle; by default as many as are best, [-]
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
        Key of ``shape.FAMILIES``, mixtures of experts among them; None for any N, with
        ``utilisation``, [-]
    seq_len : int, optional
        Tokens of a sequence, [token]
    batch_limit : float, optional
        Largest batch; None for the law ``deepseek-2024``, infinity for none, [token]
    critical_batch : float, optional
        Critical batch, above which examples are wasted; None for no waste, [token]
    stack : Stack or str or Calibration, optional
        Constants of the software; by default :func:`default_stack`, [-]
    dtype : {"bf16", "fp8", "tf32"}, optional
        Format of the matrix products, [-]
    recipe : Recipe or str, optional
        Bytes of a parameter, [byte/parameter]
    memory_limit : float, optional
        Bytes that a job may fill on an accelerator, [byte]
    reliability : Reliability, optional
        Failures and checkpoints; None for a machine that never fails, [-]
    price : Price or str, optional
        Rental; by default the range of the chip, [USD/h]
    utilisation : float, optional
        Share of the dense peak that 6ND reach, in place of a search of layouts, [-]
    serving_utilisation : float, optional
        Share of the peak that serving reaches; by default that of training, [-]
    pue : float, optional
        Power of the hall over that of its accelerators, for the energy of the plan; by
        default that of the accelerators alone, [-]
    options : dict, optional
        Axes of the layout search, restricted: ``{"recompute": ("none",)}``, [-]
    keep : int, optional
        Plans to return, the best included, [-]
    thorough : bool, optional
        Look at all shapes near the best size; otherwise at one for each 6 % of size,
        several times as fast, as a control that moves needs it, [-]
    confidence : float, optional
        Chance with which the deadline, and with which the budget, is to be met: 0.8
        makes the plan so much shorter. By default the plan is the middle of the step
        model and says with which chance it is done in time, [-]
    whole_run : bool, optional
        Whether confidence and intervals count what whole runs take over their steps;
        False for a stack that was calibrated on whole runs of your own, [-]
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
        If nothing limits the objective, a figure is missing, or an argument is given
        that this objective does not look at.

    Notes
    -----
    Shapes come from a family in which heads divide and MLPs tile; every one is given
    its own search of layouts, since a single shape for each N shows divisibility and
    not scaling. Up to the batch limit examples are taken to be equally good; with
    ``critical_batch`` they cost 1 + B / B_c. Serving costs 2NT; it moves the plan where
    it is paid for, by ``budget`` or ``objective="lifetime"``. The bound in time is
    ``deadline`` and what ``budget`` buys at the middle of the price range.

    Of a mixture of experts N is what a token uses. The published laws of the loss are
    of dense models and do not know what idle experts add: under them the loss of a
    mixture is an upper bound, and the plan says so. A law of mixtures, in which a token
    takes one of E experts, is :data:`~chinchilla_lab.laws.variants.LUDZIEJEWSKI_2025`;
    ``.at(n_experts / n_active_experts)`` is the nearest it has to a token that takes
    several.

    A job may leave accelerators idle where fewer divide better or wait less for one
    another: more accelerators never make it slower. Idle ones are paid for like the
    rest, so where dollars count a larger cluster may well be worse. Hot spares are such
    idle ones: a cluster of their number more, with ``n_working``.

    References
    ----------
    :cite:`hoffmann2022training`; :cite:`sardana2024beyond` for serving;
    :cite:`muennighoff2023scaling` for repeats; :cite:`ludziejewski2025joint` for
    mixtures

    Examples
    --------
    >>> loft = Cluster(accelerator="h100-sxm-80gb", n_accelerators=64)
    >>> best = plan(loft, deadline=30 * 86400)
    >>> best.days <= 30, best.shape.n_heads * 128 == best.shape.d_model
    (True, True)
    """
    usual = default_stack(cluster)
    used = find_stack(usual if stack is None else stack)
    given: dict[str, Any] = {
        "cluster": cluster, "n_working": n_working, "law": law, "deadline": deadline,
        "budget": budget, "compute": compute,
        "unique_tokens": unique_tokens, "inference_tokens": inference_tokens,
        "shape_family": shape_family, "seq_len": seq_len, "batch_limit": batch_limit,
        "critical_batch": critical_batch, "stack": used,
        "stack_given": stack is not None, "dtype": dtype, "recipe": recipe,
        "memory_limit": _room(cluster, memory_limit), "reliability": reliability,
        "price": None if price is None else as_price(price), "utilisation": utilisation,
        "serving_utilisation": serving_utilisation, "pue": pue,
        "options": dict(options or {}), "keep": keep, "thorough": thorough,
        "confidence": confidence, "whole_run": whole_run,
    }  # fmt: skip
    if objective in OBJECTIVES and objective != "loss" and target_loss is None:
        _refuse_without_target(objective, given)
    problem = Problem(objective=objective, target_loss=target_loss, **given)
    _refuse_unused(problem)
    return solve(problem, progress)


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
        How the job is cut, idle accelerators left out; by default the fastest, [-]
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
    for name in ("objective", "target_loss"):
        if name in given:
            raise ValueError(
                f"{name}={given[name]!r} counts for nothing here: the plan is given, "
                "not searched; use plan(...) to search one, or drop it"
            )
    given["stack_given"] = given.get("stack") is not None
    usual = default_stack(cluster)
    given["stack"] = find_stack(given.get("stack") or usual)
    if given.get("price") is not None:
        given["price"] = as_price(given["price"])
    given["memory_limit"] = _room(cluster, given.get("memory_limit"))
    sequences(batch, int(given.get("seq_len", 4096)))
    given.setdefault("compute", FLOP_PER_ND * shape.params().active * float(D))
    given["objective"] = "loss"
    problem = Problem(cluster=cluster, **given)
    speed: Speed | None = None
    if problem.utilisation is not None:
        share = problem.utilisation * problem.busy
        rate = problem.peak * share / (FLOP_PER_ND * shape.params().active)
    else:
        if layout is None:
            problem, speed = most_useful(problem, shape, batch)
            if speed is None:
                raise InfeasibleError(
                    f"no layout divides and fits with batch={batch} sequences on "
                    f"{problem.n} accelerators; type a layout to see what it would "
                    "need, change the batch or use more accelerators"
                )
        else:
            if problem.n_working is None and layout.n_accelerators < problem.n:
                problem = problem.with_(n_working=layout.n_accelerators)
            step = step_time(
                shape, problem.job, layout, batch, problem.seq_len, problem.stack,
                problem.dtype, check_memory=False,
            )  # fmt: skip
            speed = typed_speed(problem, step)
        share = speed.utilisation * problem.busy
        rate = speed.tokens_per_second
    mixture = tuple(mixture_notes(problem.law)) if shape.n_experts > 1 else ()
    free = problem.with_(deadline=None, budget=None)
    made = finish(free, shape, None, speed, share, rate)
    assert made is not None  # nothing limits it but its own compute
    loss = DataLimit(law=problem.law, unique=problem.unique_tokens).loss(
        np.asarray(made.N), np.asarray(D / problem.waste(batch * problem.seq_len))
    )
    return replace(
        made, problem=problem, D=float(D), batch=batch, loss=float(loss),
        score=float(loss), seconds=float(D) / rate / problem.goodput.share,
        assumptions=mixture,
    )  # fmt: skip
