"""Whether published whole runs lie in the intervals of plans: the score, misses too."""

from dataclasses import dataclass

from chinchilla_lab.cluster.cost import published_hours
from chinchilla_lab.cluster.hardware import Cluster
from chinchilla_lab.planning.closure import closure
from chinchilla_lab.planning.doubt import Range, intervals
from chinchilla_lab.planning.plans import typed_plan
from chinchilla_lab.planning.whole_runs import WholeRun, whole_run_ratios
from chinchilla_lab.shape.known import SHAPES
from chinchilla_lab.tables import html_table

__all__ = ["Coverage", "Covered", "whole_run_coverage"]


@dataclass(frozen=True, kw_only=True)
class Covered:
    """A published run against the intervals of its plan on one cluster.

    Parameters
    ----------
    run : str
        Key of the run, [-]
    model : str
        Name, [-]
    n_accelerators : int
        Accelerators, [-]
    hours : float
        Published accelerator-hours, [h]
    planned : float
        What the plan says, [h]
    steps : tuple of float
        Interval of the steps alone, [h]
    whole : tuple of float
        Interval of the whole run, the run itself left out of it, [h]
    apart : tuple of float
        The same with every run of its shape left out, [h]
    closes : bool
        Whether the typed plan closes, its memory included, [-]
    """

    run: str
    model: str
    n_accelerators: int
    hours: float
    planned: float
    steps: Range
    whole: Range
    apart: Range
    closes: bool

    def within(self, which: str) -> bool:
        """Say whether the published hours lie in an interval.

        Parameters
        ----------
        which : {"steps", "whole", "apart"}
            The interval, [-]

        Returns
        -------
        bool
            Whether they do, [-]
        """
        low, high = getattr(self, which)
        return bool(low <= self.hours <= high)


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """Published whole runs against intervals.

    Parameters
    ----------
    level : float
        What the intervals promise, [-]
    rows : tuple of Covered
        One row for each run and size of its cluster, [-]
    """

    level: float
    rows: tuple[Covered, ...]

    def count(self, which: str) -> tuple[int, int]:
        """Count the rows whose plan closes and which lie inside, and all that close.

        Parameters
        ----------
        which : {"steps", "whole", "apart"}
            The interval, [-]

        Returns
        -------
        tuple of int
            Inside, and all, [-]
        """
        closed = [r for r in self.rows if r.closes]
        return sum(r.within(which) for r in closed), len(closed)

    def runs(self, which: str) -> tuple[int, int]:
        """Count the runs inside on every cluster that they may have had, and all runs.

        Parameters
        ----------
        which : {"steps", "whole", "apart"}
            The interval, [-]

        Returns
        -------
        tuple of int
            Inside, and all, [-]
        """
        every: dict[str, bool] = {}
        for r in self.rows:
            if r.closes:
                every[r.run] = every.get(r.run, True) and r.within(which)
        return sum(every.values()), len(every)

    def _repr_html_(self) -> str:
        def words(r: Covered, which: str) -> str:
            low, high = getattr(r, which)
            mark = "" if r.within(which) else ", missed"
            return f"{low / 1e6:.3g} to {high / 1e6:.3g}{mark}"

        body = [
            [
                r.model, f"{r.n_accelerators:,}", f"{r.hours / 1e6:.3g}",
                f"{r.planned / 1e6:.3g}", words(r, "steps"), words(r, "whole"),
                words(r, "apart"), "yes" if r.closes else "no",
            ]
            for r in self.rows
        ]  # fmt: skip
        head = (
            "run", "accelerators, assumed [-]", "published [million h]",
            "plan [million h]", "steps only", "whole run, itself left out",
            "its shape left out", "closes",
        )  # fmt: skip
        counts = "; ".join(
            "{} of {} inside, {}".format(*self.count(which), name)
            for which, name in (
                ("steps", "steps only"), ("whole", "whole run"),
                ("apart", "its shape left out"),
            )
        )  # fmt: skip
        return html_table(head, body, f"{self.level:.0%} intervals: {counts}")


def whole_run_coverage(level: float = 0.9) -> Coverage:
    """Hold every dense published whole run against an interval that does not know it.

    Parameters
    ----------
    level : float, optional
        Coverage that is promised, [-]

    Returns
    -------
    Coverage
        Rows, with the count of those inside, [-]

    Notes
    -----
    Layouts are searched, with no stack named. Mixtures, and runs on a chip that the
    table of accelerators does not have, are not planned and do not count. Two runs of
    one shape by one team are hardly two runs: the last column leaves out both.

    References
    ----------
    :cite:`metahours`, model cards

    Examples
    --------
    >>> found = whole_run_coverage()
    >>> found.count("steps")[0] < found.count("whole")[0]
    True
    """
    rows = whole_run_ratios()
    return Coverage(level=level, rows=tuple(_covered(r, rows, level) for r in rows))


def _covered(row: WholeRun, rows: tuple[WholeRun, ...], level: float) -> Covered:
    run = published_hours()[row.run]
    machine = Cluster(accelerator=run.accelerator, n_accelerators=row.n_accelerators)
    made = typed_plan(
        machine, SHAPES[row.shape], run.D_tokens, row.batch_tokens // row.seq_len,
        seq_len=row.seq_len,
    )  # fmt: skip
    alike = sorted({r.run for r in rows if r.shape == row.shape})
    steps, whole, apart = (
        intervals(made, level, light=True, whole_run=on, leave_out=out).hours
        for on, out in ((False, []), (True, [row.run]), (True, alike))
    )
    return Covered(
        run=row.run, model=run.model, n_accelerators=row.n_accelerators,
        hours=run.hours, planned=made.hours, steps=steps, whole=whole, apart=apart,
        closes=closure(made).holds,
    )  # fmt: skip
