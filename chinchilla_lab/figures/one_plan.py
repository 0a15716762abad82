"""Four optima of one budget in one plane, and what widens a plan."""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from chinchilla_lab.cluster.hardware import Cluster
from chinchilla_lab.cluster.stacks import find_stack
from chinchilla_lab.figures.planning import (
    CHIP,
    IDEAL,
    MOST,
    PUBLISHED_LOSS,
    STEP,
    stated,
)
from chinchilla_lab.figures.style import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PURPLE,
    SKY,
    Drawing,
    Series,
    draw_on_figure,
    legend_above,
)
from chinchilla_lab.planning.doubt import Intervals, intervals
from chinchilla_lab.planning.losses import DataLimit
from chinchilla_lab.planning.plans import default_stack
from chinchilla_lab.planning.problem import Problem
from chinchilla_lab.planning.results import Plan
from chinchilla_lab.planning.search import solve
from chinchilla_lab.planning.sensitivity import Sensitivity, describe, sensitivity
from chinchilla_lab.planning.sizes import by_size
from chinchilla_lab.units import DAY

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "Four",
    "draw_plane",
    "four_optima",
    "on_plane",
    "plot_doubt",
    "plot_plane",
    "series_plane",
]

Array = NDArray[np.float64]
# of ln N, within which another size may do better once a limit is loosened
REACH = 0.2
_NONE: tuple[Array, Array] = (np.zeros(0), np.zeros(0))


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
        Plans by size on the cluster, all at the loss of ``data``; empty if no layout of
        any size divides and fits, [-]
    wish : Plan, optional
        The cheapest of them over its life, whatever the deadline, [-]
    joint : Plan, optional
        The cheapest that meets the deadline; the fastest if none does, [-]
    doubt : Intervals, optional
        Intervals of ``joint``, [-]
    """

    days: float
    compute: Plan
    data: Plan
    served: Plan
    plans: tuple[Plan, ...]
    wish: Plan | None = None
    joint: Plan | None = None
    doubt: Intervals | None = None

    @property
    def late(self) -> bool:
        """Whether even the fastest misses the deadline, [-]."""
        return self.joint is not None and self.joint.days > self.days

    @property
    def binding(self) -> str:
        """What keeps the plan from a better one, in words, [-]."""
        if self.joint is None or self.wish is None or self.doubt is None:
            return "layouts: none of any size divides and fits"
        if self.late:
            return f"the deadline: the fastest takes {self.joint.days:.3g} days"
        if self.wish is not self.joint:
            # sizes are coarse here: ten percent more time may not reach the next one
            return f"the deadline: the cheapest takes {self.wish.days:.3g} days"
        return describe(self._limits(self.joint))

    def _limits(self, joint: Plan) -> Sensitivity:
        """Ask what more of each limit is worth among the plans of the coarse grid."""
        asked = joint.problem.with_(deadline=self.days * DAY)
        near = [p for p in self.plans if abs(np.log(p.N / joint.N)) < REACH]
        return sensitivity(replace(joint, problem=asked), among=near, machine=False)


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
    # half a step to each side: no shape lies between two steps
    plans = by_size(ask, sizes, STEP / 2, MOST, every=True)
    return first, data, fresh, tuple(plans)


@lru_cache(maxsize=64)
def four_optima(
    C: float, n: int, days: float, unique: float, served: float, law: str
) -> Four:
    """Answer a budget in three ways, and jointly with many shapes of each size.

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
    Four
        The answers, [-]
    """
    first, data, fresh, plans = _answers(C, n, unique, served, law)
    if not plans:
        return Four(days=days, compute=first, data=data, served=fresh, plans=())
    wish = min(plans, key=lambda p: p.score)
    timely = [p for p in plans if p.seconds <= days * DAY]
    joint = (
        min(timely, key=lambda p: p.score)
        if timely
        else min(plans, key=lambda p: p.seconds)
    )
    return Four(
        days=days, compute=first, data=data, served=fresh, plans=plans, wish=wish,
        joint=joint, doubt=intervals(joint, draws=1000, light=True),
    )  # fmt: skip


PLANE_X = (0.15, 2.5)
PLANE_Y = (0.2, 10.0)


def on_plane(four: Four, plan: Plan) -> bool:
    """Return whether a plan lies within the axes of the plane."""
    x, y = plan.N / four.compute.N, plan.D / four.compute.D
    return PLANE_X[0] <= x <= PLANE_X[1] and PLANE_Y[0] <= y <= PLANE_Y[1]


def _room(four: Four) -> tuple[Array, Array]:
    """Return the area within the deadline, over the fastest shape of each size."""
    fastest: dict[int, Plan] = {}
    for p in four.plans:
        rung = round(np.log(p.N) / STEP)
        if rung not in fastest or p.D / p.seconds > (
            fastest[rung].D / fastest[rung].seconds
        ):
            fastest[rung] = p
    own = sorted(fastest.values(), key=lambda p: p.N)
    top = np.array([p.D / p.seconds for p in own]) * four.days * DAY / four.compute.D
    right = np.array([p.N / four.compute.N for p in own])
    return (
        np.clip([right[0], *right, right[-1]], *PLANE_X),
        np.clip([PLANE_Y[0], *top, PLANE_Y[0]], *PLANE_Y),
    )


def series_plane(four: Four) -> Series:
    """Four optima in the plane of size and tokens, over the compute-optimal ones.

    Parameters
    ----------
    four : Four
        The answers, [-]

    Returns
    -------
    dict
        ``grant``, ``equal``, ``worn``, ``unique`` are lines, ``room`` the area within
        the deadline, ``compute``, ``data``, ``served``, ``joint`` points, ``late`` in
        place of ``joint`` if that misses the deadline; N over the compute-optimal N and
        D over its D, empty beyond the axes, [-]
    """
    N0, D0 = four.compute.N, four.compute.D
    unique = four.data.problem.unique_tokens
    x = np.geomspace(*PLANE_X, 61)

    def level(loss: float, limit: float | None) -> tuple[Array, Array]:
        law = DataLimit(law=four.compute.problem.law, unique=limit)
        y = np.asarray(law.tokens(x * N0, loss)) / D0
        ok = np.isfinite(y) & (y < 2.0 * PLANE_Y[1])
        return x[ok], y[ok]

    corner = (np.full(3, PLANE_X[0]), np.full(3, PLANE_Y[0]))
    made = {
        "room": _room(four) if four.plans else corner,
        "grant": (x, 1.0 / x),
        "equal": level(four.compute.loss, None),
        "worn": level(four.data.loss, unique),
        "unique": (np.array(PLANE_X), np.full(2, float(unique or D0) / D0)),
    }
    points = {
        "compute": four.compute, "data": four.data, "served": four.served,
        "joint": None if four.late else four.joint,
        "late": four.joint if four.late else None,
    }  # fmt: skip
    for name, p in points.items():
        made[name] = _NONE
        if p is not None and on_plane(four, p):
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
    ax.plot(*series["late"], "D", mec=ORANGE, mfc="none", mew=1.8, ms=8, gid="late",
            label="fastest, late")  # fmt: skip
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlim(*PLANE_X)
    ax.set_ylim(*PLANE_Y)
    ax.set_xticks([0.2, 0.5, 1, 2], labels=["0.2", "0.5", "1", "2"])
    ax.set_yticks([0.5, 1, 2, 5, 10], labels=["0.5", "1", "2", "5", "10"])
    ax.minorticks_off()
    ax.set_xlabel("N over the compute-optimal N")
    ax.set_ylabel("D over the compute-optimal D")
    legend_above(ax, ncols=2, rows=5)


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
            if ends is not None and ends[0] < ends[1]:
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
        ax.set_xlim(min(0.3, 0.8 * low.min()), max(5.0, 1.25 * high.max()))
        marks_at = [x for x in (0.1, 0.3, 0.5, 1, 2, 4, 10, 30, 100)
                    if ax.get_xlim()[0] < x < ax.get_xlim()[1]]  # fmt: skip
        ax.set_xticks(marks_at, labels=[f"{x:g}" for x in marks_at])
        ax.minorticks_off()
        ax.set_yticks(y, labels=[r[0] for r in rows])
        ax.invert_yaxis()
        ax.set_xlabel("factor on the plan, 90 % interval")
        ax.figure.subplots_adjust(left=0.36)

    return draw_on_figure(draw, series, height=4.8)
