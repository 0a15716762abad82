"""Sizes on a cluster, and what moves a plan."""

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
    RED,
    Drawing,
    Series,
    draw_on_figure,
    legend_above,
)
from chinchilla_lab.laws import BESIROGLU_2024, PUBLISHED, LossLaw
from chinchilla_lab.planning.levers import levers
from chinchilla_lab.planning.plans import default_stack
from chinchilla_lab.planning.problem import Problem
from chinchilla_lab.planning.results import Plan
from chinchilla_lab.planning.sensitivity import Sensitivity, sensitivity
from chinchilla_lab.planning.sizes import (
    by_size,
    coarse_batch,
    naive_size,
    time_at,
    times_at,
)
from chinchilla_lab.units import DAY, GB

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "Artefact",
    "SizeStudy",
    "draw_sizes",
    "draw_utilisation",
    "one_shape_study",
    "plot_artefact",
    "plot_tornado",
    "series_sizes",
    "size_study",
    "stated",
]

Array = NDArray[np.float64]
CHIP = "h100-sxm-80gb"
STEP = 0.15  # of ln N between the sizes of a study
REACH = 1.2  # of ln N to each side
NEAR = 0.08  # of ln N: sizes that count as one
MOST = 16  # shapes of each step, those whose layers and width divide most often
SHOWN = 6  # of them that are drawn
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
        The fastest within 8 % of the size that 40 % utilisation would suggest, or the
        nearest to it, [-]
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
        return times_at(self.best, self.every)

    @property
    def median_shape(self) -> float:
        """Time of the median shape within 8 % of the best size, over the best, [-]."""
        assert self.best is not None  # asked where something fits
        near = [abs(np.log(p.N / self.best.N)) < NEAR for p in self.every]
        return float(np.median(self.factors[near]))

    @property
    def flat(self) -> tuple[float, float]:
        """Least and largest size within 1 % of the time of the best, [parameter]."""
        sizes = [
            p.N for p, at in zip(self.every, self.factors, strict=True) if at <= 1.01
        ]
        return min(sizes), max(sizes)

    @property
    def shown(self) -> tuple[Plan, ...]:
        """The fastest, the slowest and a few between them at each size, [-]."""
        rungs: dict[int, list[tuple[float, int]]] = {}
        for i, (p, at) in enumerate(zip(self.every, self.factors, strict=True)):
            rungs.setdefault(round(np.log(p.N) / STEP), []).append((float(at), i))
        places = []
        for rung in rungs.values():
            by_time = sorted(rung)
            few = np.linspace(0, len(by_time) - 1, min(SHOWN, len(by_time)))
            places += [by_time[round(k)][1] for k in few]
        return tuple(self.every[i] for i in sorted(set(places)))


@lru_cache(maxsize=64)
def size_study(
    n: int, days: float, cap: float, network: float, law: str, search: bool,
    failures: bool,
) -> SizeStudy:  # fmt: skip
    """Look at sizes around the compute-optimal one, with many shapes of each.

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
        Many shapes of each step, not only the most usual one, [-]
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
    # half a step to each side: no shape lies between two steps
    every = by_size(
        problem, sizes, STEP / 2 if search else 0.03, MOST if search else 1, every=True
    )
    if not every:
        return SizeStudy()
    best_of: dict[int, Plan] = {}
    for p in every:
        assert p.shape is not None  # candidates have a shape
        rung = round(np.log(p.shape.params().total) / STEP)
        if rung not in best_of or p.score < best_of[rung].score:
            best_of[rung] = p
    plans = list(best_of.values())
    best = min(plans, key=lambda p: p.score)
    wanted, _, _ = naive_size(best, IDEAL)
    return SizeStudy(
        every=tuple(every), plans=tuple(plans), best=best,
        naive=_nearest(best, every, wanted),
        limits=sensitivity(best, among=plans),
    )  # fmt: skip


def _nearest(best: Plan, every: Sequence[Plan], N: float) -> Plan:
    """Return the fastest of the shapes that count as of one size, or the nearest."""
    near = [p for p in every if abs(np.log(p.N / N)) < NEAR]
    if not near:
        return min(every, key=lambda p: abs(np.log(p.N / N)))
    return near[int(np.argmin(times_at(best, near)))]


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
    line = np.array([
        (p.N / N0, of[id(p)]) for p in sorted(study.plans, key=lambda p: p.N)
    ])  # fmt: skip
    shown = study.shown
    x = np.array([p.N / N0 for p in shown])
    at = np.array([of[id(p)] for p in shown])
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
        "used": (x, np.array([p.utilisation for p in shown])),
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
    legend_above(ax, ncols=2, rows=3)


def draw_utilisation(ax: "Axes", series: Series) -> None:
    """Draw the utilisation of every shape."""
    ax.plot(*series["used"], "o", color=GREY, ms=3.5, gid="used", label="shapes")
    ax.plot(*series["used-best"], "D", color=GREEN, ms=7, gid="used-best",
            label="best N")  # fmt: skip
    _size_axis(ax)
    ax.set_ylim(0.0, 0.7)
    ax.set_ylabel("6ND over the peak")
    legend_above(ax, ncols=2)


# the levers of a tornado, as they are called, and as they are drawn
TORNADO = {
    "batch above 4.2M tokens": "batch of 4.2M tokens",
    "other layouts": "median layout",
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
    found = [{r.name: r.worth for r in levers(p).pulled} for p in (loft, hall)]
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
