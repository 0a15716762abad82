"""Static figures of the chapter on few unique tokens."""

import warnings
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from chinchilla_lab.allocation.optimum import compute_optimal
from chinchilla_lab.checks import ExtrapolationWarning, one_of
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
    log_axis,
)
from chinchilla_lab.laws.families import AdditiveLaw, RepeatedDataLaw
from chinchilla_lab.laws.penalty import PenaltyLaw
from chinchilla_lab.laws.published import (
    BESIROGLU_2024,
    HOFFMANN_2022,
    HOFFMANN_2022_PRINTED,
    MUENNIGHOFF_2023_C4,
    MUENNIGHOFF_2023_REPEATED,
)
from chinchilla_lab.repetition.choices import loss_with_added
from chinchilla_lab.repetition.measured import added_loss, measured_series
from chinchilla_lab.repetition.penalties import matched_penalty
from chinchilla_lab.repetition.plans import (
    EQUALLY_GOOD,
    FOLLOWED_EPOCHS,
    RepetitionLaw,
    optimal,
)
from chinchilla_lab.units import FLOP_PER_ND

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "BASES",
    "PENALTIES",
    "band",
    "plot_choices",
    "plot_epoch_value",
    "plot_frontier",
    "plot_measured",
    "plot_rise",
    "plot_two_ratios",
    "series_choices",
    "series_frontier",
]

Array = NDArray[np.float64]
_XY = tuple[Array, Array]

BASES: tuple[AdditiveLaw, ...] = (
    MUENNIGHOFF_2023_C4,
    BESIROGLU_2024,
    HOFFMANN_2022,
    HOFFMANN_2022_PRINTED,
)
"""Laws of fresh data to which the scales of repetition are carried over."""

PENALTIES: dict[float, PenaltyLaw] = {
    delta: matched_penalty(MUENNIGHOFF_2023_REPEATED, 12.8e9, 60e9, delta=delta)
    for delta in (1.0, 2.0)
}
"""Illustrations of the penalty law by delta: they agree with the data term of the
published law at 12.8B parameters, 60e9 unique tokens and four epochs."""

_SMALL = (1.0, 200.0)  # epochs shown


def band(x: Array, lines: Sequence[Array]) -> _XY:
    """Return the outline of all lines over one x.

    Parameters
    ----------
    x : numpy.ndarray
        Common x, [any]
    lines : sequence of numpy.ndarray
        Lines over it, [any]

    Returns
    -------
    tuple of numpy.ndarray
        A closed polygon, [any]
    """
    low, high = np.min(lines, axis=0), np.max(lines, axis=0)
    return np.concatenate([x, x[::-1]]), np.concatenate([high, low[::-1]])


def _plans(law: RepetitionLaw, C: Array, unique: float) -> tuple[Array, Array]:
    """Return the best sizes and epochs of budgets; below one epoch none is counted."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExtrapolationWarning)
        plan = optimal(law, C, unique)
    return np.asarray(plan.N), np.asarray(plan.epochs)


def _epoch_axis(ax: "Axes", high: float, low: float = 1.0) -> None:
    ax.set_xscale("log")
    ax.set_xlim(low, high)
    ax.minorticks_off()
    ticks = [t for t in (1, 2, 4, 8, 16, 32, 64, 128) if low <= t <= high]
    ax.set_xticks(ticks, [f"{t}" for t in ticks])
    ax.set_xlabel("epochs D/U")


def plot_epoch_value() -> Drawing:
    """Draw what all epochs and what the next token are worth, against the epochs."""
    law = MUENNIGHOFF_2023_REPEATED
    x = np.geomspace(*_SMALL, 121)
    wide = [law.with_(R_D=scale) for scale in (10.0, 100.0)]
    marks = np.array([4.0, 1.0 + law.half_life])
    series: Series = {
        "share": (x, law.effective_tokens(1.0, x) / x),
        "marginal": (x, law.marginal_value(x)),
        "share-band": band(x, [w.effective_tokens(1.0, x) / x for w in wide]),
        "marginal-band": band(x, [w.marginal_value(x) for w in wide]),
        "marks": (
            marks,
            np.array(
                [law.effective_tokens(1.0, 4.0) / 4.0, law.marginal_value(marks[1])]
            ),
        ),
    }

    def draw(ax: "Axes", shown: Series) -> None:
        ax.fill(*shown["share-band"], facecolor=BLUE, alpha=0.18, lw=0)
        ax.fill(*shown["marginal-band"], facecolor=ORANGE, alpha=0.18, lw=0)
        ax.plot(*shown["share"], color=BLUE, label="all tokens so far, D′/D")
        ax.plot(*shown["marginal"], "--", color=ORANGE, label="the next token")
        ax.plot(*shown["marks"], "D", color=INK, ms=6)
        ax.annotate("four epochs", (marks[0], shown["marks"][1][0]), xytext=(6, 6),
                    textcoords="offset points", fontsize=8)  # fmt: skip
        ax.annotate("worth half", (marks[1], 0.5), xytext=(8, 2),
                    textcoords="offset points", fontsize=8)  # fmt: skip
        _epoch_axis(ax, _SMALL[1])
        ax.set_ylim(0.0, 1.05)
        ax.set_ylabel("worth, of a fresh token")
        ax.legend(loc="lower left")

    return draw_on_figure(draw, series)


def plot_measured() -> Drawing:
    """Draw the loss that repeats add: measured, by the law, by its data term alone."""
    rows = measured_series("2.81B on 55B tokens")
    N, D = rows[0].N, rows[0].D
    x = np.geomspace(1.5, 60.0, 61)
    epochs = np.array([row.epochs for row in rows[1:]])
    added = np.array([row.loss - rows[0].loss for row in rows[1:]])
    series: Series = {
        "measured": (epochs, added),
        "band": band(x, [added_loss(N, D, D / x, law) for law in EQUALLY_GOOD]),
        "law": (x, added_loss(N, D, D / x)),
        "data alone": (x, added_loss(N, D, D / x, by_data_alone=True)),
    }

    def draw(ax: "Axes", shown: Series) -> None:
        ax.fill(*shown["band"], facecolor=SKY, alpha=0.3, lw=0,
                label="pairs that fit as well")  # fmt: skip
        ax.plot(*shown["law"], color=BLUE, label="the law")
        ax.plot(*shown["data alone"], "--", color=GREEN, label="its data term alone")
        ax.plot(*shown["measured"], "o", color=ORANGE, ms=7, label="measured")
        ax.axvline(FOLLOWED_EPOCHS, color=GREY, ls=":", lw=1)
        _epoch_axis(ax, 60.0, 1.5)
        log_axis(ax, "y", 1e-3, 1.5, "")
        ax.set_ylabel("loss above one epoch [nats/token]")
        ax.legend(loc="upper left")

    return draw_on_figure(draw, series)


def plot_rise() -> Drawing:
    """Draw measured losses that fall and rise again, and the law that never does."""
    rows = measured_series("281M on 100M unique tokens")
    first = rows[0]
    x = np.geomspace(10.0, 90.0, 61)
    law = MUENNIGHOFF_2023_REPEATED
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExtrapolationWarning)
        line = law.loss(first.N, x * first.unique, unique=first.unique)
        start = law.loss(first.N, first.D, unique=first.unique)
    series: Series = {
        "measured": (
            np.array([row.epochs for row in rows]),
            np.array([row.loss - first.loss for row in rows]),
        ),
        "law": (x, np.asarray(line - start)),
    }

    def draw(ax: "Axes", shown: Series) -> None:
        ax.plot(*shown["law"], color=BLUE, label="the law")
        ax.plot(*shown["measured"], "o--", color=ORANGE, ms=7, lw=1, label="measured")
        ax.axhline(0.0, color=GREY, lw=0.8)
        _epoch_axis(ax, 90.0, 10.0)
        ax.set_xticks([15, 27, 39, 59, 75], ["15", "27", "39", "59", "75"])
        ax.set_ylim(-0.3, 0.3)
        ax.set_ylabel("loss less that after 15 epochs")
        ax.legend(loc="upper left")

    return draw_on_figure(draw, series, height=3.2)


@lru_cache(maxsize=8)
def series_frontier(unique: float) -> dict[str, tuple[Array, Array, Array]]:
    """Best sizes and epochs against compute on some unique tokens, by law.

    Parameters
    ----------
    unique : float
        Unique tokens, [token]

    Returns
    -------
    dict
        Budgets [FLOP], sizes [parameter] and epochs [-] by name: ``chinchilla`` for
        the compute-optimal shape repeated, ``repeated``, the other pairs, the laws
        carried over to other bases, and two penalties, [-]
    """
    C = np.geomspace(1e20, 1e25, 51)
    plan = compute_optimal(MUENNIGHOFF_2023_C4, C)
    found = {"chinchilla": (C, np.asarray(plan.N), np.asarray(plan.D) / unique)}
    for law in EQUALLY_GOOD:
        for base in BASES:
            other = law if base is law.base else law.with_(base=base)
            key = "repeated" if other is MUENNIGHOFF_2023_REPEATED else (
                f"pair {law.R_D:.3g}, {base.name}"
            )  # fmt: skip
            found[key] = (C, *_plans(other, C, unique))
    for delta, penalty in PENALTIES.items():
        found[f"penalty {delta:.0f}"] = (C, *_plans(penalty, C, unique))
    return found


def plot_frontier(unique: float, what: str) -> Drawing:
    """Draw the best size or the best epochs against compute.

    Parameters
    ----------
    unique : float
        Unique tokens, [token]
    what : {"N", "epochs"}
        What is drawn, [-]

    Returns
    -------
    Drawing
        The figure, with bands over pairs and over base laws, [-]
    """
    place = 1 if one_of("what", what, ("N", "epochs")) == "N" else 2
    lines = series_frontier(unique)
    series: Series = {k: (v[0], v[place]) for k, v in lines.items()}
    pairs = [v[place] for k, v in lines.items() if k.endswith(MUENNIGHOFF_2023_C4.name)]
    every = [v[place] for k, v in lines.items() if k.startswith("pair")]
    repeated = lines["repeated"]
    C = repeated[0]
    outer, inner = (band(C, [repeated[place], *group]) for group in (every, pairs))

    def draw(ax: "Axes", shown: Series) -> None:
        ax.fill(*outer, facecolor=GREY, alpha=0.15, lw=0, label="other base laws too")
        ax.fill(*inner, facecolor=SKY, alpha=0.4, lw=0, label="pairs that fit as well")
        ax.plot(*shown["chinchilla"], ":", color=INK,
                label="compute-optimal shape, repeated")  # fmt: skip
        ax.plot(*shown["repeated"], color=BLUE, label="discounted repeats")
        ax.plot(*shown["penalty 1"], "--", color=ORANGE, label="penalty, δ = 1")
        ax.plot(*shown["penalty 2"], "-.", color=RED, label="penalty, δ = 2")
        log_axis(ax, "x", 1e20, 1e25, "FLOP")
        ax.set_xlabel("training compute C [FLOP]")
        if what == "N":
            log_axis(ax, "y", 1e8, 1e12, "parameter")
            ax.set_ylabel("best size N*")
        else:
            log_axis(ax, "y", 0.1, 1e3, "")
            ax.axhline(FOLLOWED_EPOCHS, color=GREY, lw=0.8)
            ax.axhline(1.0, color=GREY, lw=0.8)
            ax.set_ylabel("best epochs")
        ax.legend(loc="upper left")

    return draw_on_figure(draw, series, height=4.2)


def series_choices(
    C: Array,
    unique: float,
    extra: float,
    quality: float,
    generator: float,
    law: RepeatedDataLaw = MUENNIGHOFF_2023_REPEATED,
) -> dict[str, Array]:
    """Loss above unlimited data of every choice, against compute.

    Parameters
    ----------
    C : numpy.ndarray
        Budgets, [FLOP]
    unique : float
        Unique tokens, [token]
    extra : float
        Tokens that could be added, [token]
    quality : float
        Worth of an added token, [-]
    generator : float
        Size of the model that writes them, 0 if they are free, [parameter]
    law : RepeatedDataLaw, optional
        The law, [-]

    Returns
    -------
    dict
        ``small``, ``small_repeated``, ``repeat``, ``add`` and ``fresh``, [nats/token]
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExtrapolationWarning)
        size = float(law.useful_params(unique))
        once = FLOP_PER_ND * size * unique  # compute that one epoch takes
        free = np.asarray(compute_optimal(law.base, C).L)
        small = np.asarray(compute_optimal(law.base, np.minimum(C, once)).L)
        again = law.loss(size, np.maximum(C, once) / FLOP_PER_ND / size, unique=unique)
        both = optimal(law, C, np.array([[unique], [unique + extra]])).L
        added = loss_with_added(law, C, unique, extra, quality, generator)
    return {
        "small": small - free,
        "small_repeated": np.where(once > C, small, again) - free,
        "repeat": both[0] - free,
        "add": np.asarray(added) - free,
        "fresh": both[1] - free,
    }


def plot_choices(
    unique: float, extra: float, quality: float, generator: float, C: float
) -> Drawing:
    """Draw the choices against compute, all above unlimited data.

    Parameters
    ----------
    unique : float
        Unique tokens, [token]
    extra : float
        Tokens that could be added, [token]
    quality : float
        Worth of an added token, [-]
    generator : float
        Size of the model that writes them, [parameter]
    C : float
        Budget that is marked, [FLOP]

    Returns
    -------
    Drawing
        The figure, [-]
    """
    x = np.geomspace(1e20, 1e25, 51)
    lines = series_choices(x, unique, extra, quality, generator)
    series: Series = {name: (x, y) for name, y in lines.items()}
    others = [
        series_choices(x, unique, extra, quality, generator, law)["repeat"]
        for law in EQUALLY_GOOD
    ]
    series["band"] = band(x, others)

    def draw(ax: "Axes", shown: Series) -> None:
        ax.fill(*shown["band"], facecolor=SKY, alpha=0.35, lw=0)
        for name, dash, colour, words in (
            ("small", ":", RED, "20:1 on one epoch"),
            ("small_repeated", "-.", ORANGE, "that size, repeated"),
            ("repeat", "-", BLUE, "best size, repeated"),
            ("add", "--", PURPLE, f"add tokens of quality {quality:g}"),
            ("fresh", (0, (1, 1)), GREEN, "as many fresh tokens"),
        ):
            ax.plot(*shown[name], ls=dash, color=colour, label=words)
        ax.axvline(C, color=GREY, lw=0.8)
        log_axis(ax, "x", 1e20, 1e25, "FLOP")
        ax.set_ylim(-0.005, 0.32)
        ax.set_xlabel("training compute C [FLOP]")
        ax.set_ylabel("loss above unlimited data")
        ax.legend(loc="upper left")

    return draw_on_figure(draw, series)


def plot_two_ratios() -> Drawing:
    """Draw tokens per parameter, trained and unique, against the shortage."""
    shortage = np.geomspace(1.0, 32.0, 51)
    best = compute_optimal(MUENNIGHOFF_2023_C4, 1e22)
    unique = float(best.D) / shortage
    trained, fresh = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExtrapolationWarning)
        for law in EQUALLY_GOOD:
            plan = optimal(law, 1e22, unique)
            trained.append(np.asarray(plan.D / plan.N))
            fresh.append(np.asarray(unique / plan.N))
    series: Series = {
        "trained": (shortage, trained[0]),
        "unique": (shortage, fresh[0]),
        "trained-band": band(shortage, trained),
        "unique-band": band(shortage, fresh),
    }

    def draw(ax: "Axes", shown: Series) -> None:
        ax.fill(*shown["trained-band"], facecolor=BLUE, alpha=0.2, lw=0)
        ax.fill(*shown["unique-band"], facecolor=ORANGE, alpha=0.2, lw=0)
        ax.plot(*shown["trained"], color=BLUE, label="trained tokens per parameter")
        ax.plot(*shown["unique"], "--", color=ORANGE,
                label="unique tokens per parameter")  # fmt: skip
        ax.axhline(20.0, color=GREY, ls=":", label="20")
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.minorticks_off()
        ax.set_xlim(1.0, 32.0)
        ax.set_ylim(0.5, 500.0)
        ax.set_xticks([1, 2, 4, 8, 16, 32], ["1", "1/2", "1/4", "1/8", "1/16", "1/32"])
        ax.set_yticks([1, 5, 20, 100, 500], ["1", "5", "20", "100", "500"])
        ax.set_xlabel("unique tokens over those of the compute-optimal plan")
        ax.set_ylabel("tokens per parameter")
        ax.legend(loc="upper left")

    return draw_on_figure(draw, series, height=3.4)
