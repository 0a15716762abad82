"""Sizes on a cluster, what moves a plan, and four optima in one plane."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from chinchilla_lab.allocation.optimum import compute_optimal
from chinchilla_lab.allocation.targets import tokens_for_loss
from chinchilla_lab.cluster.failures import DEFAULT_RELIABILITY
from chinchilla_lab.cluster.hardware import Cluster
from chinchilla_lab.cluster.stacks import find_stack
from chinchilla_lab.figures.style import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PURPLE,
    RED,
    SKY,
    Drawing,
    Series,
    draw_on_figure,
)
from chinchilla_lab.laws import BESIROGLU_2024, PUBLISHED, LossLaw
from chinchilla_lab.planning.doubt import Intervals, intervals
from chinchilla_lab.planning.levers import levers
from chinchilla_lab.planning.losses import DataLimit
from chinchilla_lab.planning.problem import Problem
from chinchilla_lab.planning.results import Plan
from chinchilla_lab.planning.sensitivity import Sensitivity, sensitivity
from chinchilla_lab.planning.sizes import by_size, coarse_batch, naive_size, time_at
from chinchilla_lab.planning.solve import default_stack, solve
from chinchilla_lab.units import DAY, GB

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "Artefact",
    "Four",
    "SizeStudy",
    "draw_plane",
    "draw_sizes",
    "draw_utilisation",
    "four_optima",
    "one_shape_study",
    "plot_artefact",
    "plot_doubt",
    "plot_plane",
    "plot_tornado",
    "series_plane",
    "series_sizes",
    "size_study",
    "stated",
]

Array = NDArray[np.float64]
CHIP = "h100-sxm-80gb"
STEP = 0.15  # of ln N between the sizes of a study
REACH = 1.2  # of ln N to each side
IDEAL = 0.4  # utilisation that is assumed before anything is searched
PUBLISHED_LOSS: dict[str, LossLaw] = {
    name: law for name, law in PUBLISHED.items() if isinstance(law, LossLaw)
}
_NONE: tuple[Array, Array] = (np.zeros(0), np.zeros(0))


def stated(
    cluster: Cluster, law: LossLaw, cap: float = float("inf"), failures: bool = True,
    **settings: object,
) -> Problem:  # fmt: skip
    """Return a problem whose batch is a power of two, so that searches are kept.

    Parameters
    ----------
    cluster : Cluster
        The machine, [-]
    law : LossLaw
        Law with a loss, [-]
    cap : float, optional
        Largest batch besides that of the law of batches, [token]
    failures : bool, optional
        Whether accelerators fail, [-]
    **settings : dict
        As in :class:`~chinchilla_lab.planning.Problem`, [-]

    Returns
    -------
    Problem
        The problem, [-]
    """
    first = Problem(
        cluster=cluster, law=law, stack=find_stack(default_stack(cluster)),
        stack_given=False, reliability=DEFAULT_RELIABILITY if failures else None,
        **settings,  # type: ignore[arg-type]
    )  # fmt: skip
    return first.with_(batch_limit=max(min(cap, coarse_batch(first)), first.seq_len))


@dataclass(frozen=True, kw_only=True, eq=False)
class SizeStudy:
    """Plans by size on one cluster.

    Parameters
    ----------
    every : tuple of Plan
        A plan for every shape that was looked at, [-]
    plans : tuple of Plan
        The best at each size; empty if nothing fits, [-]
    best : Plan, optional
        The best of them, [-]
    naive : Plan, optional
        That nearest to the size that 40 % utilisation would suggest, [-]
    limits : Sensitivity, optional
        What more of each limit is worth to the best, [-]
    """

    every: tuple[Plan, ...] = ()
    plans: tuple[Plan, ...] = ()
    best: Plan | None = None
    naive: Plan | None = None
    limits: Sensitivity | None = None

    @cached_property
    def factors(self) -> Array:
        """Time of every shape to the loss of the best, over the best, [-]."""
        assert self.best is not None  # asked where something fits
        return np.array([time_at(self.best, p) for p in self.every])

    @property
    def median_shape(self) -> float:
        """Time of the median shape within 8 % of the best size, over the best, [-]."""
        assert self.best is not None  # asked where something fits
        near = [abs(np.log(p.N / self.best.N)) < 0.08 for p in self.every]
        return float(np.median(self.factors[near]))


@lru_cache(maxsize=64)
def size_study(
    n: int, days: float, cap: float, network: float, law: str, search: bool,
    failures: bool,
) -> SizeStudy:  # fmt: skip
    """Look at sizes around the compute-optimal one, on coarse steps.

    Parameters
    ----------
    n : int
        Accelerators, [-]
    days : float
        Deadline, [day]
    cap : float
        Largest batch, [token]
    network : float
        Bandwidth between nodes for each accelerator, [GB/s]
    law : str
        Key of the law, [-]
    search : bool
        Several shapes at each size, not only the most usual one, [-]
    failures : bool
        Whether accelerators fail, [-]

    Returns
    -------
    SizeStudy
        The plans, [-]
    """
    machine = Cluster(
        accelerator=CHIP, n_accelerators=n, scaleout_bandwidth=network * GB
    )
    problem = stated(machine, PUBLISHED_LOSS[law], cap, failures, deadline=days * DAY)
    middle = round(np.log(problem.first_size()) / STEP)
    rungs = range(middle - round(REACH / STEP), middle + round(REACH / STEP) + 1)
    sizes = np.exp(STEP * np.array(rungs))
    every: list[Plan] = []
    plans: list[Plan] = []
    for N in sizes:
        made = by_size(problem, [float(N)], 0.03, 3 if search else 1, every=True)
        every += made
        plans += [min(made, key=lambda p: p.score)] if made else []
    if not plans:
        return SizeStudy()
    best = min(plans, key=lambda p: p.score)
    wanted, _, _ = naive_size(best, IDEAL)
    return SizeStudy(
        every=tuple(every), plans=tuple(plans), best=best,
        naive=min(plans, key=lambda p: abs(np.log(p.N / wanted))),
        limits=sensitivity(best),
    )  # fmt: skip


def series_sizes(study: SizeStudy) -> Series:
    """Time to one loss against the size.

    Parameters
    ----------
    study : SizeStudy
        Plans by size, [-]

    Returns
    -------
    dict
        ``law``, ``shapes``, ``sizes``, ``best``, ``naive``: size over the
        compute-optimal one [-] and time over that of the best [-]; ``used``,
        ``used-best``: the size and the utilisation [-]
    """
    names = ("law", "shapes", "sizes", "best", "naive", "used", "used-best")
    if study.best is None or study.naive is None:
        return dict.fromkeys(names, _NONE)
    best = study.best
    N0 = best.compute_optimal_N
    free = compute_optimal(best.problem.law, best.C)
    k = np.geomspace(0.3, 3.5, 81)
    D = np.asarray(tokens_for_loss(best.problem.law, k * N0, float(free.L or 0.0),
                                   infeasible="nan"))  # fmt: skip
    ok = np.isfinite(D)
    of = dict(zip(map(id, study.every), study.factors, strict=True))
    line = np.array([(p.N / N0, of[id(p)]) for p in study.plans])
    x = np.array([p.N / N0 for p in study.every])
    at = study.factors
    show = np.isfinite(at)
    line = line[np.isfinite(line[:, 1])]
    return {
        "law": (k[ok], k[ok] * D[ok] / float(free.D)),
        "shapes": (x[show], at[show]),
        "sizes": (line[:, 0], line[:, 1]),
        "best": (np.array([best.N / N0]), np.ones(1)),
        "naive": (
            np.array([study.naive.N / N0]),
            np.array([of[id(study.naive)]]),
        ),
        "used": (x, np.array([p.utilisation for p in study.every])),
        "used-best": (np.array([best.N / N0]), np.array([best.utilisation])),
    }


def _size_axis(ax: "Axes") -> None:
    ax.set_xscale("log")
    ax.set_xlim(0.3, 3.5)
    ax.set_xticks([0.3, 0.5, 1, 2, 3], labels=["0.3", "0.5", "1", "2", "3"])
    ax.minorticks_off()
    ax.set_xlabel("N over the compute-optimal N")


def draw_sizes(ax: "Axes", series: Series) -> None:
    """Draw time to the same loss against the size."""
    ax.plot(*series["law"], ":", color=INK, gid="law", label="law alone")
    ax.plot(*series["shapes"], "o", color=GREY, ms=3.5, gid="shapes", label="shapes")
    ax.plot(*series["sizes"], color=BLUE, gid="sizes", label="best of each size")
    ax.plot(*series["naive"], "s", color=ORANGE, ms=7, gid="naive", label="naive N")
    ax.plot(*series["best"], "D", color=GREEN, ms=7, gid="best", label="best N")
    _size_axis(ax)
    ax.set_ylim(0.95, 1.8)
    ax.set_ylabel("time to the same loss")
    ax.legend(loc="upper center", ncol=2)


def draw_utilisation(ax: "Axes", series: Series) -> None:
    """Draw the utilisation of every shape."""
    ax.plot(*series["used"], "o", color=GREY, ms=3.5, gid="used", label="shapes")
    ax.plot(*series["used-best"], "D", color=GREEN, ms=7, gid="used-best",
            label="best N")  # fmt: skip
    _size_axis(ax)
    ax.set_ylim(0.0, 0.7)
    ax.set_ylabel("6ND over the peak")
    ax.legend(loc="lower right")


# the levers of a tornado, as they are called, and as they are drawn
TORNADO = {
    "batch above 4.2M tokens": "batch of 4.2M tokens",
    "layout": "median layout",
    "shape": "median shape",
    "network as it is": "a ninth of the network",
    "no full recomputation": "full recomputation",
    "overlap of communication": "nothing overlapped",
    "asynchronous checkpoints": "blocking checkpoints",
}
"""Levers in the plan, and what the plan would be without them."""


def plot_tornado(
    loft: Plan, hall: Plan, naive: tuple[float, float], wrong: float
) -> Drawing:
    """Plot what each thing costs when it is wrong, for both teams.

    Parameters
    ----------
    loft : Plan
        Plan of the small team, [-]
    hall : Plan
        Plan of the large team, [-]
    naive : tuple of float
        Time of the naive size over the best, for both, [-]
    wrong : float
        Time of a size 20 % too large over the best, by the law, [-]

    Returns
    -------
    Drawing
        The figure, [-]
    """
    found = [{r.name: r.worth for r in levers(p).rows} for p in (loft, hall)]
    names = [*TORNADO.values(), "N 20 % too large", "naive N"]
    both = [
        [f.get(key, 1.0) for key in TORNADO] + [wrong, n]
        for f, n in zip(found, naive, strict=True)
    ]
    y = np.arange(len(names), dtype=float)
    series: Series = {
        "loft": (np.array(both[0]), y),
        "hall": (np.array(both[1]), y),
    }

    def draw(ax: "Axes", data: Series) -> None:
        for key, shift, colour, hatch in (
            ("hall", -0.19, BLUE, ""), ("loft", 0.19, ORANGE, "//"),
        ):  # fmt: skip
            x, rows = data[key]
            ax.barh(rows + shift, x - 1.0, 0.36, left=1.0, color=colour, hatch=hatch,
                    edgecolor="white", lw=0.5, label=f"the {key.title()}")  # fmt: skip
            for value, row in zip(x, rows, strict=True):
                ax.text(value * 1.01, row + shift, f"{value:.2f}", va="center",
                        fontsize=7.5)  # fmt: skip
        ax.set_xscale("log")
        ax.set_xlim(1.0, 3.3)
        ax.set_xticks([1, 1.25, 1.5, 2, 3], labels=["1", "1.25", "1.5", "2", "3"])
        ax.minorticks_off()
        ax.set_yticks(y, labels=names)
        ax.invert_yaxis()
        ax.set_xlabel("time over that of the plan")
        ax.figure.subplots_adjust(left=0.3)
        ax.legend(loc="lower right")

    return draw_on_figure(draw, series, height=4.4)


@dataclass(frozen=True, kw_only=True)
class Artefact:
    """Best sizes over deadlines, with a number of shapes at each size.

    Parameters
    ----------
    days : numpy.ndarray
        Deadlines, [day]
    k : numpy.ndarray
        Best size over the compute-optimal one, [-]
    lost : numpy.ndarray
        Time of the shape nearest to the compute-optimal size over the best, [-]
    """

    days: Array
    k: Array
    lost: Array


def one_shape_study(
    n: int = 512, most: int = 1, deadlines: Sequence[float] = (), step: float = 0.08
) -> Artefact:
    """Repeat a study of deadlines with one shape at each size, or with several.

    Parameters
    ----------
    n : int, optional
        Accelerators, [-]
    most : int, optional
        Shapes at each size, [-]
    deadlines : sequence of float, optional
        Deadlines; by default twelve from 10 to 57, [day]
    step : float, optional
        Step of ln N, [-]

    Returns
    -------
    Artefact
        Sizes and what the compute-optimal one would lose, [-]
    """
    days = np.geomspace(10.0, 57.0, 12) if not deadlines else np.array(deadlines)
    machine = Cluster(accelerator=CHIP, n_accelerators=n)
    middle = float(np.sqrt(days[0] * days[-1]))
    problem = stated(machine, BESIROGLU_2024, deadline=middle * DAY)
    around = np.log(problem.first_size())
    sizes = np.exp(np.arange(around - 1.6, around + 1.6, step))
    k, lost = [], []
    for d in days:
        plans = by_size(problem.with_(deadline=float(d) * DAY), sizes, 0.03, most)
        best = min(plans, key=lambda p: p.score)
        N0 = best.compute_optimal_N
        near = min(plans, key=lambda p: abs(np.log(p.N / N0)))
        k.append(best.size_ratio)
        lost.append(time_at(best, near))
    return Artefact(days=days, k=np.array(k), lost=np.array(lost))


def plot_artefact(one: Artefact, searched: Artefact) -> Drawing:
    """Plot the best size against the deadline, one shape for a size and searched."""
    series: Series = {"one": (one.days, one.k), "searched": (searched.days, searched.k)}

    def draw(ax: "Axes", data: Series) -> None:
        ax.axhline(1.0, color=INK, lw=0.8)
        ax.plot(*data["one"], "s:", color=RED, label="one shape for each size")
        ax.plot(*data["searched"], "o-", color=BLUE, label="shapes searched")
        ax.set_xscale("log")
        ax.set_xticks([10, 20, 30, 57], labels=["10", "20", "30", "57"])
        ax.minorticks_off()
        ax.set_ylim(0.4, 1.6)
        ax.set_xlabel("deadline [day]")
        ax.set_ylabel("best N over compute-optimal N")
        ax.legend(loc="upper right")

    return draw_on_figure(draw, series)


# --- four optima ------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class Four:
    """One budget, its answers one at a time, and the plan that joins them.

    Parameters
    ----------
    days : float
        Deadline, [day]
    compute : Plan
        Least loss of the grant, fresh tokens, [-]
    data : Plan
        Least loss of the grant with the unique tokens, [-]
    served : Plan
        Least lifetime compute at the loss of ``compute``, fresh tokens, [-]
    plans : tuple of Plan
        Plans by size on the cluster, all at the loss of ``data``, [-]
    wish : Plan
        The cheapest of them over its life, whatever the deadline, [-]
    joint : Plan
        The cheapest that meets the deadline; the fastest if none does, [-]
    doubt : Intervals
        Intervals of ``joint``, [-]
    """

    days: float
    compute: Plan
    data: Plan
    served: Plan
    plans: tuple[Plan, ...]
    wish: Plan
    joint: Plan
    doubt: Intervals

    @property
    def binding(self) -> str:
        """What keeps the plan from a better one, in words, [-]."""
        if self.joint.days > self.days:
            return f"the deadline: the fastest takes {self.joint.days:.3g} days"
        if self.wish is not self.joint:
            return f"the deadline: the cheapest takes {self.wish.days:.3g} days"
        if self.doubt.days[1] > self.days:
            return "the deadline, at the slow end of the interval"
        if self.joint.epochs > 1.0:
            return f"the unique tokens: {self.joint.epochs:.3g} epochs"
        return "none of the limits: more compute or less serving"


@lru_cache(maxsize=64)
def _answers(
    C: float, n: int, unique: float, served: float, law: str
) -> tuple[Plan, Plan, Plan, tuple[Plan, ...]]:
    """Return the answers one at a time, and plans by size whatever the deadline."""
    machine = Cluster(accelerator=CHIP, n_accelerators=n)
    used = PUBLISHED_LOSS[law]
    free = Problem(
        cluster=machine, law=used, stack=find_stack(default_stack(machine)),
        compute=C, shape_family=None, utilisation=IDEAL,
    )  # fmt: skip
    first = solve(free)
    data = solve(free.with_(unique_tokens=unique))
    life = free.with_(
        objective="lifetime", compute=None, inference_tokens=served,
        target_loss=first.loss,
    )  # fmt: skip
    fresh = solve(life)
    # a hair of room: the loss of the data plan is the least that the grant reaches
    goal = data.loss * (1 + 1e-9)
    smooth = solve(life.with_(target_loss=goal, unique_tokens=unique))
    ask = stated(
        machine, used, objective="lifetime", target_loss=goal, unique_tokens=unique,
        inference_tokens=served,
    )  # fmt: skip
    # from below the cheapest to the compute-optimal size, which is fastest
    low, high = round(np.log(smooth.N) / STEP) - 3, round(np.log(data.N) / STEP) + 2
    sizes = np.exp(STEP * np.arange(low, max(high, low + 6)))
    return first, data, fresh, tuple(by_size(ask, sizes, 0.03, 2))


@lru_cache(maxsize=64)
def four_optima(
    C: float, n: int, days: float, unique: float, served: float, law: str
) -> Four | None:
    """Answer a budget in three ways, and jointly on coarse steps of the size.

    Parameters
    ----------
    C : float
        Training compute that sets the loss to reach, [FLOP]
    n : int
        Accelerators, [-]
    days : float
        Deadline, [day]
    unique : float
        Unique tokens, [token]
    served : float
        Tokens to be served, [token]
    law : str
        Key of a law of the additive form, [-]

    Returns
    -------
    Four or None
        The answers; None if no layout of any size fits, [-]
    """
    first, data, fresh, plans = _answers(C, n, unique, served, law)
    if not plans:
        return None
    wish = min(plans, key=lambda p: p.score)
    timely = [p for p in plans if p.seconds <= days * DAY]
    joint = (
        min(timely, key=lambda p: p.score)
        if timely
        else min(plans, key=lambda p: p.seconds)
    )
    return Four(
        days=days, compute=first, data=data, served=fresh, plans=plans, wish=wish,
        joint=joint, doubt=intervals(joint, draws=1000),
    )  # fmt: skip


PLANE_X = (0.15, 2.5)
PLANE_Y = (0.2, 10.0)


def series_plane(four: Four | None) -> Series:
    """Four optima in the plane of size and tokens, over the compute-optimal ones.

    Parameters
    ----------
    four : Four or None
        The answers, [-]

    Returns
    -------
    dict
        ``grant``, ``equal``, ``worn``, ``unique`` are lines, ``room`` the area within
        the deadline, ``compute``, ``data``, ``served``, ``joint`` points; N over the
        compute-optimal N and D over its D, [-]
    """
    lines = ("grant", "equal", "worn", "unique")
    points = ("compute", "data", "served", "joint")
    if four is None:
        corner = (np.full(3, PLANE_X[0]), np.full(3, PLANE_Y[0]))
        return dict.fromkeys((*lines, *points), _NONE) | {"room": corner}
    N0, D0 = four.compute.N, four.compute.D
    unique = four.data.problem.unique_tokens
    x = np.geomspace(*PLANE_X, 61)

    def level(loss: float, limit: float | None) -> tuple[Array, Array]:
        law = DataLimit(law=four.compute.problem.law, unique=limit)
        y = np.asarray(law.tokens(x * N0, loss)) / D0
        ok = np.isfinite(y) & (y < 2.0 * PLANE_Y[1])
        return x[ok], y[ok]

    own = sorted(four.plans, key=lambda p: p.N)
    top = np.array([p.D / p.seconds for p in own]) * four.days * DAY / D0
    right = np.array([p.N / N0 for p in own])
    made = {
        "room": (
            np.clip([right[0], *right, right[-1]], *PLANE_X),
            np.clip([PLANE_Y[0], *top, PLANE_Y[0]], *PLANE_Y),
        ),
        "grant": (x, 1.0 / x),
        "equal": level(four.compute.loss, None),
        "worn": level(four.data.loss, unique),
        "unique": (np.array(PLANE_X), np.full(2, float(unique or D0) / D0)),
    }
    for name in points:
        p = getattr(four, name)
        made[name] = (np.array([p.N / N0]), np.array([p.D / D0]))
    return made


def draw_plane(ax: "Axes", series: Series) -> None:
    """Draw the four optima of one budget."""
    ax.fill(*series["room"], facecolor=SKY, alpha=0.25, lw=0, gid="room",
            label="within the deadline")  # fmt: skip
    ax.plot(*series["grant"], color=GREY, gid="grant", label="6ND = grant")
    ax.plot(*series["equal"], "--", color=BLUE, lw=1.2, gid="equal",
            label="equal loss, fresh")  # fmt: skip
    ax.plot(*series["worn"], "-.", color=PURPLE, lw=1.2, gid="worn",
            label="equal loss, repeats")  # fmt: skip
    ax.plot(*series["unique"], ":", color=INK, gid="unique", label="unique tokens")
    for name, mark, colour, label in (
        ("compute", "s", INK, "compute"), ("served", "^", BLUE, "served"),
        ("data", "o", PURPLE, "data"), ("joint", "D", ORANGE, "joint plan"),
    ):  # fmt: skip
        ax.plot(*series[name], mark, color=colour, ms=7, gid=name, label=label)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlim(*PLANE_X)
    ax.set_ylim(*PLANE_Y)
    ax.set_xticks([0.2, 0.5, 1, 2], labels=["0.2", "0.5", "1", "2"])
    ax.set_yticks([0.5, 1, 2, 5, 10], labels=["0.5", "1", "2", "5", "10"])
    ax.minorticks_off()
    ax.set_xlabel("N over the compute-optimal N")
    ax.set_ylabel("D over the compute-optimal D")
    ax.legend(loc="upper right", fontsize=7.5, ncol=2)


def plot_plane(four: Four) -> Drawing:
    """Plot four optima of one budget in the plane of size and tokens."""
    return draw_on_figure(draw_plane, series_plane(four), height=4.4)


def plot_doubt(plan: Plan, found: Intervals) -> Drawing:
    """Plot what each source of doubt does to size, days and dollars of a plan."""
    rows: list[tuple[str, tuple[float, float] | None, float]] = []
    for name in ("N", "days", "dollars"):
        middle = {"N": plan.N, "days": plan.days, "dollars": plan.dollars}[name]
        for d in found.sources:
            ends = getattr(d, name)
            if ends is not None:
                rows.append((f"{name}: {d.source}", ends, middle))
        rows.append((f"{name}: together", getattr(found, name), middle))
    y = np.arange(len(rows), dtype=float)
    low = np.array([r[1][0] / r[2] for r in rows if r[1] is not None])
    high = np.array([r[1][1] / r[2] for r in rows if r[1] is not None])
    series: Series = {"low": (low, y), "high": (high, y)}
    marks = {"N": (BLUE, "o"), "days": (GREEN, "s"), "dollars": (ORANGE, "D")}

    def draw(ax: "Axes", data: Series) -> None:
        ax.axvline(1.0, color=INK, lw=0.8)
        for i, (name, _, _) in enumerate(rows):
            colour, mark = marks[name.split(":")[0]]
            wide = 3.0 if "together" in name else 1.6
            ends = [data["low"][0][i], data["high"][0][i]]
            ax.plot(ends, [i, i], f"-{mark}", color=colour, lw=wide, ms=4)
        ax.set_xscale("log")
        ax.set_xlim(0.5, 2.2)
        ax.set_xticks([0.5, 0.7, 1, 1.4, 2], labels=["0.5", "0.7", "1", "1.4", "2"])
        ax.minorticks_off()
        ax.set_yticks(y, labels=[r[0] for r in rows])
        ax.invert_yaxis()
        ax.set_xlabel("factor on the plan, 90 % interval")
        ax.figure.subplots_adjust(left=0.33)

    return draw_on_figure(draw, series, height=4.2)
