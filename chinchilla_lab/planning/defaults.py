"""A plan laid out by default, and what each step away from the defaults gains."""

from dataclasses import dataclass
from typing import Any

from chinchilla_lab.checks import InfeasibleError
from chinchilla_lab.planning.lever_list import TUNED
from chinchilla_lab.planning.results import Plan
from chinchilla_lab.planning.speed import fastest
from chinchilla_lab.tables import Cells, Shown
from chinchilla_lab.units import DAY, text

__all__ = ["Steps", "from_defaults"]

ORDER = ("defaults", "overlap", "no full recomputation",
         "micro-batches, interleaving", "any tensor parallelism")  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Steps(Shown):
    """A run from its defaults to its best layout.

    Parameters
    ----------
    names : tuple of str
        What was added last, [-]
    days : tuple of float
        Time of the run with all that was added so far, [day]
    dollars : tuple of float
        Its cost at the middle price; NaN without one, [USD]
    """

    names: tuple[str, ...]
    days: tuple[float, ...]
    dollars: tuple[float, ...]

    @property
    def factor(self) -> float:
        """Time of the defaults over that of the last step, [-]."""
        return self.days[0] / self.days[-1]

    def _cells(self) -> Cells:
        rows = [
            [name, f"{d:.3g}", f"{d / self.days[-1]:.2f}",
             "" if usd != usd else text(usd, "USD")]
            for name, d, usd in zip(self.names, self.days, self.dollars, strict=True)
        ]  # fmt: skip
        return Cells(("with", "time [day]", "over the last [-]", "cost [USD]"), rows)


def from_defaults(plan: Plan) -> Steps:
    """Lay a plan out by default, then let go of one default after another.

    Parameters
    ----------
    plan : Plan
        A plan with a layout, [-]

    Returns
    -------
    Steps
        Days and dollars of each step, [day] and [USD]

    Raises
    ------
    ValueError
        If the plan has no layout.
    InfeasibleError
        If nothing runs by default.

    Notes
    -----
    Defaults are tensor parallelism as wide as runs, up to eight, one sequence a
    micro-batch, one chunk a stage, full recomputation and nothing overlapped. What is
    left open, the stages above all, is searched at every step.

    Examples
    --------
    >>> from chinchilla_lab.cluster import Cluster
    >>> from chinchilla_lab.planning.plans import plan
    >>> loft = Cluster(accelerator="h100-sxm-80gb", n_accelerators=64)
    >>> from_defaults(plan(loft, deadline=30 * 86400)).factor > 1.4
    True
    """
    if plan.speed is None or plan.shape is None or plan.batch is None:
        raise ValueError("this plan has no layout; plan without utilisation=...")
    p = plan.problem
    shape, batch = plan.shape, plan.batch
    held: dict[str, tuple[Any, ...]] = {
        "micro_batch": (1,), "n_chunks": (1,), "recompute": ("full",)
    }  # fmt: skip
    widest = min(8, p.job.domain_size)
    cuts = [t for t in range(widest, 0, -1) if shape.n_heads % t == 0]
    held["tp"] = next(
        (
            (t,)
            for t in cuts
            if fastest(p.with_(options={**p.options, **held, "tp": (t,)}), shape, batch)
        ),
        (1,),
    )
    bare = p.stack.with_(tp_overlap=0.0, dp_overlap=0.0)
    tuned = p.stack
    if not (tuned.tp_overlap or tuned.dp_overlap):
        tuned = tuned.with_(**TUNED)
    drop: tuple[tuple[str, ...], ...] = (
        (), (), ("recompute",), ("micro_batch", "n_chunks"), ("tp",)
    )  # fmt: skip
    days, stack = [], bare
    for name, axes in zip(ORDER, drop, strict=True):
        for axis in axes:
            held.pop(axis)
        stack = bare if name == ORDER[0] else tuned
        asked = p.with_(stack=stack, options={**p.options, **held})
        speed = fastest(asked, shape, batch)
        if speed is None:
            raise InfeasibleError(
                f"{name}: no layout of this shape divides and fits; plan another shape"
            )
        days.append(plan.D / speed.tokens_per_second / plan.goodput.share / DAY)
    hourly = plan.dollars / plan.days
    return Steps(names=ORDER, days=tuple(days), dollars=tuple(d * hourly for d in days))
