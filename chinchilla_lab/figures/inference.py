"""Static figures of the chapter on models that are served."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from chinchilla_lab.allocation.optimum import optimal_for_params
from chinchilla_lab.allocation.targets import tokens_for_loss
from chinchilla_lab.figures.lifetime import plan_for, ring, size_axis, size_grid
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
    log_axis,
    style,
)
from chinchilla_lab.inference.lifetime import (
    BAND,
    FLOP_PER_NT,
    lifetime_at,
    lifetime_optimal,
    lifetime_spread,
)
from chinchilla_lab.inference.released import ReleasedModels, released_models
from chinchilla_lab.laws.families import AdditiveLaw, LossLaw
from chinchilla_lab.units import FLOP_PER_ND, text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "plot_bought_or_rented",
    "plot_demand",
    "plot_isoloss",
    "plot_released",
]

Array = NDArray[np.float64]
_LOOKS: tuple[tuple[str, Any], ...] = (
    (BLUE, "-"),
    (ORANGE, "--"),
    (GREEN, "-."),
    (PURPLE, ":"),
)
_DEMAND_LOOKS: tuple[tuple[str, Any], ...] = (
    (INK, "-"),
    (SKY, "--"),
    (GREEN, "-."),
    (PURPLE, ":"),
)


def plot_bought_or_rented(
    law: AdditiveLaw, demands: Sequence[float] = (1.0, 5.0, 20.0), split: int = 1
) -> Drawing:
    """Draw the lifetime compute of every size at equal loss, for relative demands.

    Parameters
    ----------
    law : AdditiveLaw
        The law; at given relative demand only its exponents matter, [-]
    demands : sequence of float, optional
        Tokens served over compute-optimal training tokens, [-]
    split : int, optional
        Position of the demand whose training and service are drawn apart, [-]

    Returns
    -------
    Drawing
        Three valleys and their lowest points, [-]
    """
    best = optimal_for_params(law, 1e10)
    assert best.L is not None
    k = size_grid(law, 161)
    series: Series = {}
    lowest: list[tuple[float, float]] = []
    for i, tau in enumerate(demands):
        T = tau * best.D
        unit = best.C + FLOP_PER_NT * best.N * T
        every = lifetime_at(law, k * best.N, T, best.L)
        series[f"total-{tau:g}"] = (k, every.total / unit)
        if i == split:
            series["train"] = (k, every.training / unit)
            series["serve"] = (k, every.serving / unit)
        plan = lifetime_optimal(law, T, loss=best.L)
        lowest.append((float(plan.size_factor), float(plan.total / unit)))
    series["least"] = (
        np.array([x for x, _ in lowest]),
        np.array([y for _, y in lowest]),
    )
    looks = ((GREY, 1.4), (ORANGE, 2.2), (PURPLE, 1.4))

    def draw(ax: "Axes", shown: Series) -> None:
        ax.plot(
            *shown["train"], "--", color=BLUE, label=f"training, τ = {demands[split]:g}"
        )
        ax.plot(
            *shown["serve"], ":", color=GREEN, label=f"serving, τ = {demands[split]:g}"
        )
        for tau, (colour, width) in zip(demands, looks, strict=False):
            ax.plot(*shown[f"total-{tau:g}"], color=colour, lw=width)
        ax.plot(*shown["least"], "D", color=ORANGE, ms=7, label="least over a life")
        for tau, x, y in zip(demands, *shown["least"], strict=True):
            rise = 8 if tau == min(demands) else -14  # clear of the other curves
            ax.annotate(f"τ = {tau:g}", (x, y), xytext=(0, rise), fontsize=8,
                        textcoords="offset points", ha="center")  # fmt: skip
        size_axis(ax)
        ax.set_ylim(0.0, 2.0)
        ax.set_ylabel("lifetime compute over that at k = 1")
        ax.legend(loc="upper center")

    return draw_on_figure(draw, series)


def _panels(
    parts: Sequence[Callable[["Axes"], None]], width: float, height: float
) -> Any:
    """Return a figure of two columns; each part draws on axes of its own."""
    from matplotlib.figure import Figure

    with style():
        figure = Figure(figsize=(width, height), layout=None)
        axes = figure.subplots((len(parts) + 1) // 2, 2)
        for ax, part in zip(np.ravel(axes), parts, strict=True):
            part(ax)
        figure.subplots_adjust(
            left=0.1, right=0.965, bottom=0.09, top=0.98, wspace=0.28, hspace=0.3
        )
    return figure


def plot_demand(quality: float, laws: Sequence[LossLaw] = BAND) -> Drawing:
    """Draw size, tokens, lifetime compute and saving against demand, by law.

    Parameters
    ----------
    quality : float
        Size whose compute-optimal loss is the target under each law, [parameter]
    laws : sequence of LossLaw, optional
        Coefficient sets, [-]

    Returns
    -------
    Drawing
        Four panels, each with a line a law and the area between them, [-]
    """
    T = np.geomspace(1e10, 1e15, 101)
    spread = lifetime_spread(T, quality, laws)
    quantities: dict[str, Array] = {
        "N": spread.N,
        "D": spread.D,
        "lifetime": spread.total,
        "saved": 100.0 * spread.saved,
    }
    series: Series = {}
    for key, values in quantities.items():
        series[f"{key}-band"] = ring(T, values.min(axis=0), values.max(axis=0))
        for law, line in zip(laws, values, strict=True):
            series[f"{key}-{law.name}"] = (T, line)

    def part(
        key: str, label: str, y: Callable[["Axes"], None]
    ) -> Callable[["Axes"], None]:
        def draw(ax: "Axes") -> None:
            ax.fill(*series[f"{key}-band"], color=GREY, alpha=0.2, lw=0)
            for law, (colour, dash) in zip(laws, _LOOKS, strict=False):
                ax.plot(*series[f"{key}-{law.name}"], ls=dash, color=colour,
                        label=law.label.replace(", exponents", ","))  # fmt: skip
            log_axis(ax, "x", T[0], T[-1], "token")
            y(ax)
            ax.set_ylabel(label)
            if key in ("lifetime", "saved"):
                ax.set_xlabel("tokens served T")
            if key == "lifetime":
                ax.legend(loc="upper left", fontsize=7)

        return draw

    def sizes(ax: "Axes") -> None:
        ax.set_ylim(0.0, 1.15 * quality)
        ax.yaxis.set_major_formatter(lambda v, _: text(v, "parameter") if v else "0")

    def logs(low: float, high: float, unit: str) -> Callable[["Axes"], None]:
        return lambda ax: log_axis(ax, "y", low, high, unit)

    low_c = 10.0 ** np.floor(np.log10(spread.total.min()))
    parts = [
        part("N", "size N*", sizes),
        part("D", "training tokens D*", logs(1e11, 1e14, "token")),
        part("lifetime", "lifetime compute [FLOP]", logs(low_c, 1e4 * low_c, "FLOP")),
        part("saved", "saved [%]", lambda ax: ax.set_ylim(0.0, 90.0)),  # type: ignore[arg-type]
    ]
    return Drawing(_panels(parts, 7.4, 5.6), series)


def plot_isoloss(
    law: AdditiveLaw, quality: float, T: float, laws: Sequence[LossLaw] = BAND
) -> Drawing:
    """Draw the models of one loss, and lines of equal training and lifetime cost.

    Parameters
    ----------
    law : AdditiveLaw
        The law whose tangencies are drawn, [-]
    quality : float
        Size whose compute-optimal loss is the target, [parameter]
    T : float
        Tokens served, [token]
    laws : sequence of LossLaw, optional
        Sets whose own curves of that quality and optima stand behind, [-]

    Returns
    -------
    Drawing
        Curve, two cost lines and two tangent points, [-]
    """
    plan = plan_for(law, quality, T)
    best = plan.compute_optimal
    N = np.geomspace(1e9, 1e12, 241)
    budget = float(plan.total)
    with np.errstate(invalid="ignore"):
        life = (budget - FLOP_PER_NT * N * T) / (FLOP_PER_ND * N)
    series: Series = {}
    for other in laws:
        own = optimal_for_params(other, quality)
        assert own.L is not None
        series[f"isoloss-{other.name}"] = (
            N,
            np.asarray(tokens_for_loss(other, N, own.L, infeasible="nan")),
        )
    series |= {
        "training": (N, float(best.C) / (FLOP_PER_ND * N)),
        "lifetime": (N[life > 0.0], life[life > 0.0]),
        "compute-optimal": (np.array([best.N]), np.array([best.D])),
        "lifetime-optimal": (np.array([plan.N]), np.array([plan.D])),
    }
    spread = lifetime_spread(T, quality, laws)
    series["optima"] = (spread.N, spread.D)

    def draw(ax: "Axes", shown: Series) -> None:
        for other in laws:
            if other != law:
                ax.plot(*shown[f"isoloss-{other.name}"], color=GREY, lw=0.9)
        ax.plot([], [], color=GREY, lw=0.9, label="that quality, other sets")
        ax.plot(*shown["optima"], "s", color=GREY, mfc="none", ms=6,
                label="their lifetime optima")  # fmt: skip
        ax.plot(
            *shown[f"isoloss-{law.name}"],
            color=BLUE,
            label=f"that quality, {law.label}",
        )
        ax.plot(*shown["training"], ":", color=INK, label="equal training cost")
        ax.plot(*shown["lifetime"], "--", color=ORANGE, label="equal lifetime cost")
        ax.plot(
            *shown["compute-optimal"], "o", color=INK, ms=7, label="compute-optimal"
        )
        ax.plot(*shown["lifetime-optimal"], "D", color=ORANGE, ms=7,
                label="lifetime-optimal")  # fmt: skip
        log_axis(ax, "x", 2e9, 2e11, "parameter")
        log_axis(ax, "y", 3e10, 3e13, "token")
        ax.set_xlabel("parameters N")
        ax.set_ylabel("training tokens D")
        ax.legend(loc="upper right", fontsize=7.5)

    return draw_on_figure(draw, series, height=4.4)


_NAMED = (
    "GPT-3 175B", "Chinchilla", "Llama-2-7B", "Llama-2-70B", "Llama-3-8B",
    "Llama-3.1-405B", "TinyLlama-1.1B", "Qwen3-0.6B", "DeepSeek-V3",
    "Cerebras-GPT-13B",
)  # fmt: skip


def plot_released(
    law: LossLaw,
    demands: Sequence[float] = (0.0, 1e12, 1e13, 1e14),
    laws: Sequence[LossLaw] = BAND,
) -> Drawing:
    """Draw released models, and the demand that would justify each.

    Parameters
    ----------
    law : LossLaw
        Law of the lines, [-]
    demands : sequence of float, optional
        Tokens served, one line each, [token]
    laws : sequence of LossLaw, optional
        Sets whose lines of the third demand span the band, [-]

    Returns
    -------
    Drawing
        Models by evidence, mixtures with a bar from active to total parameters, [-]
    """
    models = released_models("all")
    quality = np.geomspace(1e7, 1e14, 241)
    series: Series = {}
    for T in demands:
        line = lifetime_spread(T, quality, (law,))
        series[f"T={T:.0e}"] = (line.N[0], line.D[0])
    edges = lifetime_spread(demands[2], quality, laws)
    grid = np.geomspace(5e7, 3e12, 121)
    bent = np.array(
        [
            np.exp(np.interp(np.log(grid), np.log(n), np.log(d)))
            for n, d in zip(edges.N, edges.D, strict=True)
        ]
    )
    series["band"] = ring(grid, bent.min(axis=0), bent.max(axis=0))
    groups = {
        "primary": models.primary,
        "secondary": np.array([e == "secondary" for e in models.evidence]),
        "unverified": np.array([e == "unverified" for e in models.evidence]),
    }
    for key, rows in groups.items():
        series[key] = (models.N_active[rows], models.D[rows])
    return draw_on_figure(
        lambda ax, shown: _draw_released(ax, shown, models, law, demands),
        series,
        width=7.0,
        height=5.0,
    )


def _draw_released(
    ax: "Axes",
    shown: Series,
    models: ReleasedModels,
    law: LossLaw,
    demands: Sequence[float],
) -> None:
    ax.fill(*shown["band"], color=SKY, alpha=0.2, lw=0, label="T = 10T, four sets")
    for T, (colour, dash) in zip(demands, _DEMAND_LOOKS, strict=False):
        name = "no service" if T == 0.0 else f"T = {T / 1e12:g}T tokens"
        ax.plot(*shown[f"T={T:.0e}"], ls=dash, color=colour, lw=1.3, label=name)
    for i in np.flatnonzero(models.mixture):
        ax.plot([models.N_active[i], models.N_total[i]], [models.D[i]] * 2, color=GREY,
                lw=0.9, marker="|", markevery=[1], ms=7)  # fmt: skip
    ax.plot([], [], color=GREY, lw=0.9, marker="|", label="mixture: active to total")
    ax.plot(*shown["primary"], "o", color=ORANGE, ms=5, label="authors' own text")
    ax.plot(
        *shown["secondary"],
        "o",
        color=ORANGE,
        mfc="none",
        ms=6,
        label="quoted by others",
    )
    ax.plot(*shown["unverified"], "x", color=GREY, ms=5, label="unverified")
    for name in _NAMED:
        at = models.names.index(name)
        ax.annotate(name, (models.N_active[at], models.D[at]), xytext=(5, 3),
                    textcoords="offset points", fontsize=7)  # fmt: skip
    log_axis(ax, "x", 5e7, 3e12, "parameter")
    log_axis(ax, "y", 1e10, 1e14, "token")
    ax.set_xlabel("active parameters")
    ax.set_ylabel("training tokens D")
    ax.legend(loc="lower right", fontsize=7.5, ncols=2, title=f"lines: {law.label}",
              title_fontsize=7.5)  # fmt: skip
