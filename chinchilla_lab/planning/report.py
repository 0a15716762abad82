"""A plan with an interval for each number, and the limit that binds."""

from dataclasses import dataclass

from chinchilla_lab.planning.doubt import Intervals, intervals
from chinchilla_lab.planning.results import Plan
from chinchilla_lab.planning.sensitivity import Sensitivity, describe, sensitivity
from chinchilla_lab.tables import Cells, Shown, markdown_table, span
from chinchilla_lab.units import text

__all__ = ["Report", "report"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Report(Shown):
    """A plan, its intervals and its limits in one table.

    Parameters
    ----------
    plan : Plan
        The plan, [-]
    intervals : Intervals
        What its numbers may be, [-]
    limits : Sensitivity
        What more of each limit is worth, [-]
    """

    plan: Plan
    intervals: Intervals
    limits: Sensitivity

    @property
    def binding(self) -> str:
        """Limit that binds; empty if none does, [-]."""
        return self.limits.binding

    def to_markdown(self) -> str:
        """Return the table in Markdown."""
        cells = self._cells()
        return markdown_table(cells.header, cells.rows)

    def _cells(self) -> Cells:
        found = {
            "N [parameter]": _ends(self.intervals.N, "parameter"),
            "D [token]": _ends(self.intervals.D, "token"),
            "loss [nats/token]": _ends(self.intervals.loss, ".3f"),
            "time [day]": _ends(self.intervals.days, ".3g"),
            "accelerator-hours [h]": _ends(self.intervals.hours, ",.0f"),
            "cost [USD]": _ends(self.intervals.dollars, "USD"),
        }
        worth = {w.limit: w for w in self.limits.rows}
        marks = {"time [day]": "deadline", "cost [USD]": "budget",
                 "C = 6ND [FLOP]": "compute", "batch [token]": "batch",
                 "epochs [-]": "unique tokens", "memory [GB]": "memory"}  # fmt: skip
        rows = []
        for name, value in self.plan.rows():
            if name == "what binds":
                continue
            limit = worth.get(marks.get(name, ""))
            binds = f"{limit.limit} binds" if limit is not None and limit.binds else ""
            rows.append([name, value, found.get(name, ""), binds])
        rows.append(["what binds", describe(self.limits), "", ""])
        head = ("plan", "value", f"{self.intervals.level:.0%} interval", "limit")
        caption = f"{self.plan.problem.law.label}; {self.plan.label}"
        if self.plan.assumptions:
            caption += f"; {'; '.join(self.plan.assumptions)}"
        return Cells(head, rows, caption)


def _ends(ends: tuple[float, float], form: str) -> str:
    unit = form in ("parameter", "token", "USD")
    return span(ends, lambda x: text(x, form) if unit else format(x, form))


def report(plan: Plan, level: float = 0.9) -> Report:
    """Return a plan with its intervals and what binds, as ``plan.report()`` does.

    Parameters
    ----------
    plan : Plan
        The plan, [-]
    level : float, optional
        Coverage of the intervals, [-]

    Returns
    -------
    Report
        One table, [-]

    Examples
    --------
    >>> from chinchilla_lab.cluster import Cluster
    >>> from chinchilla_lab.planning.plans import plan
    >>> loft = Cluster(accelerator="h100-sxm-80gb", n_accelerators=64)
    >>> report(plan(loft, deadline=30 * 86400)).binding
    'deadline'
    """
    kept = plan.__dict__.get("_report")
    if isinstance(kept, Report) and kept.intervals.level == level:
        return kept
    made = Report(plan=plan, intervals=intervals(plan, level), limits=sensitivity(plan))
    # the plan shows it from now on
    plan.__dict__["_report"] = made
    return made
