"""A plan: what to train, how to lay it out, what it takes and what it is worth."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from chinchilla_lab.allocation.optimum import compute_optimal
from chinchilla_lab.cluster.cost import Cost, Energy, energy
from chinchilla_lab.cluster.goodput import Goodput
from chinchilla_lab.planning.losses import silent
from chinchilla_lab.planning.problem import OBJECTIVES, Problem
from chinchilla_lab.planning.speed import Speed
from chinchilla_lab.shape.transformer import TransformerShape
from chinchilla_lab.tables import html_table
from chinchilla_lab.units import DAY, FLOP_PER_ND, GB, HOUR, text

if TYPE_CHECKING:
    from chinchilla_lab.planning.report import Report

__all__ = ["Plan"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan:
    """One way to meet a problem, with everything that follows from it.

    Parameters
    ----------
    problem : Problem
        What was asked, [-]
    N : float
        Parameters, counted as the law says, idle experts left out, [parameter]
    D : float
        Training tokens, [token]
    loss : float
        Loss by the law, repeats and waste of the batch included, [nats/token]
    seconds : float
        Time from start to end, failures included, [s]
    utilisation : float
        6ND over the dense peak of all accelerators, idle ones too, while the job runs,
        [-]
    goodput : Goodput
        What failures leave of the time, [-]
    score : float
        Value of the objective, in its unit, less is better, [any]
    shape : TransformerShape, optional
        The model; None where any N was planned, [-]
    speed : Speed, optional
        Layout, step time and memory; None where a utilisation was given, [-]
    batch : int, optional
        Sequences of a step, [sequence]
    alternatives : tuple of Plan
        The next best, the best first, [-]
    n_searched : int
        Shapes that were looked at, [-]
    assumptions : tuple of str
        What was assumed and not searched, [-]
    """

    problem: Problem
    N: float
    D: float
    loss: float
    seconds: float
    utilisation: float
    goodput: Goodput
    score: float
    shape: TransformerShape | None = None
    speed: Speed | None = None
    batch: int | None = None
    alternatives: tuple["Plan", ...] = field(default=(), repr=False)
    n_searched: int = 0
    assumptions: tuple[str, ...] = ()

    @property
    def C(self) -> float:
        """Training compute 6ND, N being what a token uses, [FLOP]."""
        N = self.N if self.shape is None else self.shape.params().active
        return FLOP_PER_ND * N * self.D

    @property
    def days(self) -> float:
        """Time from start to end, [day]."""
        return self.seconds / DAY

    @property
    def hours(self) -> float:
        """Accelerator-hours that are paid for, those of idle ones too, [h]."""
        return self.seconds * self.problem.n / HOUR

    @property
    def n_idle(self) -> int:
        """Accelerators that stand idle and are paid for, [-]."""
        return self.problem.n - self.problem.working

    @property
    def batch_tokens(self) -> float | None:
        """Tokens of a step, [token]."""
        return None if self.batch is None else self.batch * self.problem.seq_len

    @property
    def steps(self) -> float | None:
        """Steps of the optimizer, a whole number where there is a batch, [-]."""
        return None if self.batch_tokens is None else self.D / self.batch_tokens

    @property
    def waste(self) -> float:
        """Examples over the fewest, for the batch against the critical one, [-]."""
        tokens = self.batch_tokens
        return 1.0 if tokens is None else self.problem.waste(tokens)

    @property
    def epochs(self) -> float:
        """Passes over the unique tokens; at most 1 where none is repeated, [-]."""
        unique = self.problem.unique_tokens
        return 1.0 if unique is None else self.D / unique

    @property
    def tokens_per_param(self) -> float:
        """Training tokens per parameter, [token/parameter]."""
        return self.D / self.N

    @property
    def cost(self) -> Cost | None:
        """Rental of the training, [USD]; None where no price is known."""
        price = self.problem.price
        if price is None:
            return None
        return Cost(
            low=self.hours * price.low, high=self.hours * price.high, hours=self.hours,
            price=price,
        )  # fmt: skip

    @property
    def energy(self) -> Energy | None:
        """Energy of those at work, at rated power; None where that is not known, [J].

        With the PUE of the problem; without one that of the accelerators alone.
        """
        p = self.problem
        if p.cluster.chip.power is None:
            return None
        return energy(self.hours * p.busy, p.working, p.cluster.chip, p.pue or 1.0)

    @property
    def dollars(self) -> float:
        """Rental at the middle price, [USD]; NaN where no price is known."""
        if self.problem.price is None:
            return float("nan")
        return self.hours * self.problem.usd_per_hour

    @property
    def serving_dollars(self) -> float:
        """Cost of serving the tokens asked for, [USD]; NaN without a price."""
        if self.problem.price is None:
            return float("nan")
        served = self.problem.serving_seconds(self.N, self.utilisation)
        return float(served) * self.problem.n / HOUR * self.problem.usd_per_hour

    @cached_property
    def compute_optimal_N(self) -> float:
        """Size that the law alone would give the same compute, [parameter]."""
        return float(compute_optimal(silent(self.problem.law), self.C).N)

    @property
    def size_ratio(self) -> float:
        """Size over the compute-optimal one of the same compute, [-]."""
        return self.N / self.compute_optimal_N

    @cached_property
    def chances(self) -> tuple[float, float]:
        """Chance that its tokens are done within deadline and budget; NaN without, [-].

        Step model, failures and, unless ``whole_run=False``, what whole runs take over
        their steps; for the budget the price as well.
        """
        # that module draws for plans, and so must know them
        from chinchilla_lab.planning.time_doubt import chances

        return chances(self)

    @property
    def binding(self) -> str | None:
        """Limit that binds, "" if none does; None if nobody asked, [-].

        :func:`~chinchilla_lab.planning.sensitivity` finds it and leaves it here.
        """
        found = self.__dict__.get("_sensitivity")
        return None if found is None else str(found.binding)

    def report(self, level: float = 0.9) -> "Report":
        """Return the plan with an interval for each number and the limit that binds.

        Parameters
        ----------
        level : float, optional
            Coverage of the intervals, [-]

        Returns
        -------
        Report
            One table; up to a second of work, kept for the next call, [-]

        Examples
        --------
        >>> from chinchilla_lab.cluster import Cluster
        >>> from chinchilla_lab.planning.plans import plan
        >>> loft = Cluster(accelerator="h100-sxm-80gb", n_accelerators=64)
        >>> plan(loft, deadline=30 * 86400).report().binding
        'deadline'
        """
        from chinchilla_lab.planning.report import report  # it needs plans to exist

        return report(self, level)

    @property
    def layout(self) -> str:
        """Layout in words; empty where none was searched, [-]."""
        return "" if self.speed is None else self.speed.step.layout.label()

    @property
    def label(self) -> str:
        """What the speed rests on, [-]."""
        if self.speed is None:
            return f"utilisation {self.utilisation:.1%} as given"
        return self.speed.step.label

    def record(self) -> dict[str, Any]:
        """Return the plan as plain numbers and words, for files.

        Returns
        -------
        dict
            Values by name, the unit in the name where it is no count, [any]
        """
        shape, p = self.shape, self.problem
        cost, used = self.cost, self.energy
        made: dict[str, Any] = {
            "objective": p.objective,
            "score": self.score,
            "binding": self.binding,
            "law": p.law.label,
            "accelerator": p.cluster.chip.name,
            "n_accelerators": p.n,
            "n_idle": self.n_idle,
            "N": self.N,
            "D": self.D,
            "C_flop": self.C,
            "loss_nats": self.loss,
            "tokens_per_param": self.tokens_per_param,
            "epochs": self.epochs,
            "N_over_compute_optimal": self.size_ratio,
            "n_layers": None if shape is None else shape.n_layers,
            "d_model": None if shape is None else shape.d_model,
            "d_ff": None if shape is None else shape.d_ff,
            "n_heads": None if shape is None else shape.n_heads,
            "n_experts": None if shape is None else shape.n_experts,
            "N_total": None if shape is None else shape.params().total,
            "layout": self.layout,
            "batch_tokens": self.batch_tokens,
            "steps": self.steps,
            "memory_gb": None if self.speed is None else self.speed.memory / GB,
            "utilisation_6nd": self.utilisation,
            "goodput": self.goodput.share,
            "days": self.days,
            "accelerator_hours": self.hours,
            "usd_low": None if cost is None else cost.low,
            "usd_high": None if cost is None else cost.high,
            "serving_usd": self.serving_dollars if p.inference_tokens else None,
            "lifetime_usd": self.dollars + self.serving_dollars
            if p.inference_tokens
            else None,
            "energy_mwh": None if used is None else used.mwh,
            "power_mw": None if used is None else used.watts / 1e6,
            "pue": p.pue,
            "price_date": None if cost is None else cost.price.date,
            "inference_tokens": p.inference_tokens,
            "calibration": self.label,
        }
        return made

    def rows(self) -> list[list[str]]:
        """Return the plan as formatted cells: quantity and value."""
        cost, p, used = self.cost, self.problem, self.energy
        unit = OBJECTIVES[p.objective]
        shown = f"{self.score:.4f}" if unit == "nats/token" else text(self.score, unit)
        cells = [
            [f"objective: {p.objective} [{unit}]", shown],
            ["N [parameter]", text(self.N, "parameter")],
            ["D [token]", text(self.D, "token")],
            ["C = 6ND [FLOP]", text(self.C, "FLOP")],
            ["loss [nats/token]", f"{self.loss:.4f}"],
            ["N over compute-optimal [-]", f"{self.size_ratio:.2f}"],
        ]
        if p.unique_tokens is not None:
            cells.append(["epochs [-]", f"{self.epochs:.2f}"])
        if self.shape is not None:
            s = self.shape
            cells.append(
                ["shape", f"{s.n_layers} layers, width {s.d_model}, MLP {s.d_ff}, "
                 f"{s.n_heads} heads"]
            )  # fmt: skip
            if s.n_experts > 1:
                cells += [
                    ["experts", f"{s.n_experts} of that width, {s.n_active_experts} "
                     f"for a token, {s.n_shared_experts} shared"],
                    ["N with idle experts [parameter]",
                     text(s.params().total, "parameter")],
                ]  # fmt: skip
        if self.n_idle:
            cells.append(
                ["accelerators at work [-]", f"{p.working:,} of {p.n:,}, at "
                 f"{self.utilisation / p.busy:.1%}; {self.n_idle:,} idle, paid for"]
            )  # fmt: skip
        if self.speed is not None and self.batch_tokens is not None:
            cells += [
                ["layout", self.layout],
                ["batch [token]", text(self.batch_tokens, "token")],
                ["steps [-]", f"{self.D / self.batch_tokens:,.0f}"],
                ["memory [GB]", f"{self.speed.memory / GB:.1f}"],
            ]
        cells += [
            ["6ND over peak, in the step [-]", f"{self.utilisation:.1%}"],
            ["time kept by failures [-]", f"{self.goodput.share:.1%}"],
            ["time [day]", f"{self.days:.3g}"],
            ["accelerator-hours [h]", f"{self.hours:,.0f}"],
        ]
        for limit, chance in zip(("deadline", "budget"), self.chances, strict=True):
            if chance == chance:
                cells.append([f"chance to meet the {limit} [-]", f"{chance:.0%}"])
        if p.confidence is not None:
            cut = max(p.slack)
            cells.append(
                [
                    "planned for a chance of [-]",
                    f"{p.confidence:.0%}: limits over {cut:.2f}",
                ]
            )
        if cost is not None:
            cells.append(["cost [USD]", cost.text])
        if used is not None:
            of = "accelerators alone" if p.pue is None else f"PUE {p.pue:g}"
            cells.append(
                ["energy at rated power [MWh]", f"{used.mwh:,.3g}"
                 f" ({used.watts / 1e6:.3g} MW; {of})"]
            )  # fmt: skip
        if p.inference_tokens and cost is not None:
            cells.append(["serving [USD]", text(self.serving_dollars, "USD")])
        if self.binding is not None:
            cells.append(["what binds", self.binding or "nothing"])
        return cells

    def __repr__(self) -> str:
        return "\n".join(f"{name}: {value}" for name, value in self.rows())

    def _repr_html_(self) -> str:
        known = self.__dict__.get("_report")
        if known is not None:
            return str(known._repr_html_())
        caption = f"{self.problem.law.label}; {self.label}"
        if self.assumptions:
            caption += f"; {'; '.join(self.assumptions)}"
        return html_table(("plan", "value"), self.rows(), caption)
