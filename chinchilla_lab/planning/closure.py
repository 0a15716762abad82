"""Whether the figures of a plan belong to one run."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from chinchilla_lab.allocation.targets import least_params, loss_floor
from chinchilla_lab.checks import InfeasibleError, fraction, positive
from chinchilla_lab.cluster.accelerators import ACCELERATORS, Accelerator
from chinchilla_lab.laws.families import LossLaw
from chinchilla_lab.planning.losses import DataLimit
from chinchilla_lab.planning.results import Plan
from chinchilla_lab.shape.transformer import TransformerShape
from chinchilla_lab.tables import Cells, Shown
from chinchilla_lab.units import DAY, FLOP_PER_ND, HOUR, text

__all__ = ["Closure", "ClosureError", "Identity", "closure", "require", "typed"]


# tokens of a typed plan are rounded, and so miss a whole step by a little
ROUNDED = 1e-3


class ClosureError(ValueError):
    """Figures of one plan that contradict each other; the message says by how much."""


@dataclass(frozen=True, kw_only=True)
class Identity:
    """Two sides that must agree.

    Parameters
    ----------
    name : str
        The identity, [-]
    left : float
        Its left side, [any]
    right : float
        Its right side, [any]
    unit : str
        Unit of both, [-]
    rtol : float
        How far they may differ, [-]
    at_most : bool
        The left side may be smaller, [-]
    """

    name: str
    left: float
    right: float
    unit: str
    rtol: float
    at_most: bool = False

    @property
    def discrepancy(self) -> float:
        """Left over right, less one, [-]."""
        if self.right == 0.0:
            return 0.0 if self.left == 0.0 else float("inf")
        return self.left / self.right - 1.0

    @property
    def holds(self) -> bool:
        """Whether they agree, [-]."""
        if self.at_most:
            return self.discrepancy <= self.rtol
        return abs(self.discrepancy) <= self.rtol

    def words(self) -> str:
        """Return the identity with both sides."""
        unit = self.unit if self.unit != "day" else ""
        shown = [f"{text(x, unit, 4)}" for x in (self.left, self.right)]
        if self.unit == "day":
            shown = [f"{s} days" for s in shown]
        sign = "<=" if self.at_most else "="
        return (
            f"{self.name}: {shown[0]} {sign} {shown[1]} is off by "
            f"{self.discrepancy:+.1%}"
        )


@dataclass(frozen=True, kw_only=True)
class Closure(Shown):
    """The identities of a plan.

    Parameters
    ----------
    identities : tuple of Identity
        All that could be checked, [-]
    """

    identities: tuple[Identity, ...]

    @property
    def holds(self) -> bool:
        """Whether all agree, [-]."""
        return all(one.holds for one in self.identities)

    @property
    def broken(self) -> tuple[Identity, ...]:
        """Those that do not, [-]."""
        return tuple(one for one in self.identities if not one.holds)

    def _cells(self) -> Cells:
        rows = [
            [
                one.name,
                f"{one.left:.6g}",
                f"{one.right:.6g}",
                one.unit,
                f"{one.discrepancy:+.2%}",
                "holds" if one.holds else "broken",
            ]
            for one in self.identities
        ]
        return Cells(("identity", "left", "right", "unit", "off by", ""), rows)


def closure(plan: Plan, rtol: float = 1e-6) -> Closure:
    """Check that the figures of a plan belong to one run.

    Parameters
    ----------
    plan : Plan
        The plan, [-]
    rtol : float, optional
        How far two sides may differ, [-]

    Returns
    -------
    Closure
        Compute, tokens and steps, hours and cost, memory and limits, [-]

    Notes
    -----
    Compute is checked against hours times rate, tokens against whole steps times batch
    (to a thousandth, since typed tokens are rounded), memory against the limit and the
    card, whichever is less.
    Idle accelerators are paid for: hours count all of the cluster.

    Examples
    --------
    >>> from chinchilla_lab.cluster import Cluster
    >>> from chinchilla_lab.planning.plans import plan
    >>> loft = Cluster(accelerator="h100-sxm-80gb", n_accelerators=64)
    >>> closure(plan(loft, deadline=30 * 86400)).holds
    True
    """
    p, keeps = plan.problem, plan.goodput.share
    active = plan.N if plan.shape is None else float(plan.shape.params().active)
    rate = p.peak * plan.utilisation
    found = [
        Identity(
            name="6 N D = rate x time kept",
            left=FLOP_PER_ND * active * plan.D,
            right=rate * plan.seconds * keeps,
            unit="FLOP", rtol=rtol,
        )
    ]  # fmt: skip
    if plan.batch_tokens is not None:
        steps = max(round(plan.D / plan.batch_tokens), 1)
        found.append(
            Identity(
                name="steps x batch = tokens", left=steps * plan.batch_tokens,
                right=plan.D, unit="token", rtol=max(rtol, ROUNDED),
            )
        )  # fmt: skip
    if plan.cost is not None and p.price is not None:
        found.append(
            Identity(
                name="accelerator-hours x price = cost",
                left=plan.days * 24.0 * p.n * p.price.low,
                right=plan.cost.low, unit="USD", rtol=rtol,
            )
        )  # fmt: skip
    if plan.speed is not None:
        found.append(
            Identity(
                name="memory needed fits", left=plan.speed.memory,
                right=min(p.cluster.chip.memory, p.memory_limit or np.inf),
                unit="byte", rtol=0.0, at_most=True,
            )
        )  # fmt: skip
        layout = plan.speed.step.layout
        found.append(
            Identity(
                name="tp x pp x dp x cp = accelerators at work",
                left=float(layout.n_accelerators), right=float(p.working),
                unit="count", rtol=0.0,
            )
        )  # fmt: skip
        found.append(
            Identity(
                name="accelerators at work within the cluster",
                left=float(p.working), right=float(p.n), unit="count", rtol=0.0,
                at_most=True,
            )
        )  # fmt: skip
    for name, left, right, unit in (
        ("time within the deadline", plan.days, p.deadline and p.deadline / DAY, "day"),
        ("compute within its limit", plan.C, p.compute, "FLOP"),
        ("cost and serving within the budget", plan.dollars + (
            plan.serving_dollars if p.inference_tokens else 0.0), p.budget, "USD"),
        ("batch within its limit", plan.batch_tokens, p.batch_limit, "token"),
    ):  # fmt: skip
        if left is not None and right is not None and np.isfinite(right):
            found.append(
                Identity(
                    name=name, left=left, right=right, unit=unit, rtol=rtol,
                    at_most=True,
                )
            )  # fmt: skip
    if p.target_loss is not None and p.objective != "loss":
        found.append(
            Identity(
                name="loss at most the target", left=plan.loss, right=p.target_loss,
                unit="", rtol=rtol, at_most=True,
            )
        )  # fmt: skip
    return Closure(identities=tuple(found))


def require(found: Closure) -> Closure:
    """Return a closure if it holds, and refuse the plan if it does not.

    Parameters
    ----------
    found : Closure
        The identities, [-]

    Returns
    -------
    Closure
        The same, [-]

    Raises
    ------
    ClosureError
        If an identity is broken; the message gives both sides.
    """
    if not found.holds:
        raise ClosureError("; ".join(one.words() for one in found.broken))
    return found


def typed(
    *,
    rtol: float = 0.05,
    N: float | None = None,
    D: float | None = None,
    C: float | None = None,
    same_compute_as: Sequence[float] | None = None,
    shape: TransformerShape | None = None,
    tokens_per_param: float | None = None,
    batch_tokens: float | None = None,
    steps: float | None = None,
    n_accelerators: int | None = None,
    days: float | None = None,
    accelerator_hours: float | None = None,
    accelerator: Accelerator | str | None = None,
    mfu: float | None = None,
    dtype: str = "bf16",
    price: float | None = None,
    cost: float | None = None,
    unique_tokens: float | None = None,
    epochs: float | None = None,
    repeats: float | None = None,
    law: LossLaw | None = None,
    loss: float | None = None,
) -> Closure:
    """Check the figures of a plan that somebody wrote down, whichever are given.

    Parameters
    ----------
    rtol : float, optional
        How far two sides may differ: figures in prose are rounded, [-]
    N : float, optional
        Parameters, [parameter]
    D : float, optional
        Training tokens, repeats included, [token]
    C : float, optional
        Training compute, [FLOP]
    same_compute_as : sequence of float, optional
        N and D of another run that is said to use the same compute, [parameter, token]
    shape : TransformerShape, optional
        A shape that is said to have N parameters, [-]
    tokens_per_param : float, optional
        Ratio, [token/parameter]
    batch_tokens : float, optional
        Tokens of a step, [token]
    steps : float, optional
        Steps, [-]
    n_accelerators : int, optional
        Accelerators, [-]
    days : float, optional
        Time, [day]
    accelerator_hours : float, optional
        Accelerator-hours, [h]
    accelerator : Accelerator or str, optional
        The chip, or its key in ``ACCELERATORS``; without one, no compute is believed
        that none of them could do at its highest peak, [-]
    mfu : float, optional
        Share of the dense peak that the compute is said to reach, [-]
    dtype : {"bf16", "fp8", "tf32"}, optional
        Format whose peak is meant, [-]
    price : float, optional
        Rental, [USD/h]
    cost : float, optional
        Cost, [USD]
    unique_tokens : float, optional
        Tokens that differ, [token]
    epochs : float, optional
        Passes over them, [-]
    repeats : float, optional
        Repeats, which are passes less one, [-]
    law : LossLaw, optional
        Law under which a loss is claimed, [-]
    loss : float, optional
        Claimed loss, [nats/token]

    Returns
    -------
    Closure
        Every identity for which both sides were given, all of them holding, [-]

    Raises
    ------
    ClosureError
        If figures contradict each other.
    InfeasibleError
        If the loss is out of reach of N with any number of tokens.

    Examples
    --------
    >>> typed(N=70e9, D=1.4e12, C=5.88e23, tokens_per_param=20).holds
    True
    >>> typed(N=70e9, D=1.4e12, same_compute_as=(175e9, 300e9))
    Traceback (most recent call last):
        ...
    chinchilla_lab.planning.closure.ClosureError: same compute: 5.88e23 FLOP = 3.15e23 FLOP is off by +86.7%
    """  # noqa: E501 - the message is one line, as a user sees it
    given: dict[str, Any] = {
        k: v for k, v in locals().items()
        if v is not None and k not in (
            "shape", "law", "same_compute_as", "rtol", "accelerator", "dtype"
        )
    }  # fmt: skip
    v = {k: float(positive(k, x)) for k, x in given.items()}
    if mfu is not None:
        fraction("mfu", mfu, "no run does more than the dense peak")
    found: list[Identity] = []

    def check(name: str, unit: str, left: str, *right: str) -> None:
        """Compare a figure with a product of others, if all were given."""
        if all(k in v for k in (left, *right)):
            product = float(np.prod([v[k] for k in right]))
            found.append(
                Identity(name=name, left=v[left], right=product, unit=unit, rtol=rtol)
            )

    if "N" in v and "D" in v:
        v["6ND"] = FLOP_PER_ND * v["N"] * v["D"]
    check("C = 6 N D", "FLOP", "C", "6ND")
    if same_compute_as is not None and "6ND" in v:
        other_n, other_d = (
            float(positive("same_compute_as", x)) for x in same_compute_as
        )
        v["other"] = FLOP_PER_ND * other_n * other_d
        check("same compute", "FLOP", "6ND", "other")
    check("D = N x tokens per parameter", "token", "D", "N", "tokens_per_param")
    check("D = steps x batch", "token", "D", "steps", "batch_tokens")
    if "steps" in v:
        v["whole steps"] = max(1.0, round(v["steps"]))
        check("steps are whole", "", "steps", "whole steps")
        if found[-1].name == "steps are whole":
            found[-1] = replace(found[-1], rtol=1e-9)
            if found[-1].holds:
                found.pop()  # nothing to tell
    if "days" in v and "n_accelerators" in v:
        v["days x n"] = v["days"] * DAY / HOUR * v["n_accelerators"]
    check("hours = accelerators x time", "count", "accelerator_hours", "days x n")
    hours = "accelerator_hours" if "accelerator_hours" in v else "days x n"
    check("cost = hours x price", "USD", "cost", hours, "price")
    found += _rate(v, hours, accelerator, dtype, rtol)
    check("D = unique tokens x epochs", "token", "D", "unique_tokens", "epochs")
    if "repeats" in v:
        v["1 + repeats"] = 1.0 + v["repeats"]
        check("epochs = 1 + repeats", "", "epochs", "1 + repeats")
        check(
            "D = unique x (1 + repeats)", "token", "D", "unique_tokens", "1 + repeats"
        )
    if shape is not None and "N" in v:
        v["counted"] = float(shape.params().total)
        check("N = parameters of the shape", "parameter", "N", "counted")
    if law is not None and "loss" in v and "N" in v:
        _reachable(law, v["N"], v["loss"])
        if "D" in v:
            limit = DataLimit(law=law, unique=v.get("unique_tokens"))
            made = float(limit.loss(np.asarray(v["N"]), np.asarray(v["D"])))
            # losses differ in their third digit: what matters is the excess
            floor = float(loss_floor(law, 1e300))
            found.append(
                Identity(
                    name=f"loss above the floor under {law.label}",
                    left=v["loss"] - floor, right=made - floor, unit="", rtol=rtol,
                )
            )  # fmt: skip
    if not found and not (law is not None and "loss" in v):
        raise ValueError(
            f"{', '.join(given) or 'nothing'} given: no identity joins these figures; "
            "give for example N, D and C, or D, steps and batch_tokens"
        )
    return require(Closure(identities=tuple(found)))


def _rate(
    v: dict[str, float], hours: str, chip: Accelerator | str | None, dtype: str,
    rtol: float,
) -> list[Identity]:  # fmt: skip
    """Hold compute against hours times the peak, and the share that is claimed."""
    compute = v.get("C", v.get("6ND"))
    if compute is None or hours not in v:
        if chip is not None or "mfu" in v:
            claim = f"mfu={v['mfu']:g}" if "mfu" in v else f"accelerator={chip!r}"
            raise ValueError(
                f"{claim} needs compute and time to be held against: give C, or N and "
                "D, and accelerator_hours, or n_accelerators and days"
            )
        return []
    seconds = v[hours] * HOUR
    if chip is None:
        peaks = [
            (peak, one.name, kind)
            for one in ACCELERATORS.values()
            for kind, peak in one.peaks.items()
        ]
        peak, name, kind = max(peaks)
        where = f"the most of any chip, {name} in {kind}"
    else:
        named = ACCELERATORS[chip] if isinstance(chip, str) else chip
        peak = float(named.peak(dtype))
        where = f"{named.name} in {dtype}"
    made = [
        Identity(
            name=f"C within hours x peak ({where})", left=compute, right=seconds * peak,
            unit="FLOP", rtol=0.0, at_most=True,
        )
    ]  # fmt: skip
    if "mfu" in v:
        if chip is None:
            raise ValueError(
                f"mfu={v['mfu']:g} is a share of a peak: name the accelerator"
            )
        made.append(
            Identity(
                name="C = hours x peak x mfu", left=compute,
                right=seconds * peak * v["mfu"], unit="FLOP", rtol=rtol,
            )
        )  # fmt: skip
    return made


def _reachable(law: LossLaw, N: float, loss: float) -> None:
    floor = float(loss_floor(law, N))
    if loss <= floor:
        least = float(least_params(law, loss))
        way = (
            f"the least N that can is above {text(least, 'parameter')}"
            if np.isfinite(least)
            else "no size can"
        )
        raise InfeasibleError(
            f"loss={loss:.6g} is out of reach of N={text(N, 'parameter')} with any "
            f"number of tokens: its floor is {floor:.4f}; {way}"
        )
