"""Approach 2: the bottom of a parabola on every budget, then a line through them."""

import warnings
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chinchilla_lab.checks import non_negative, one_of, positive, whole
from chinchilla_lab.fitting.fitted import (
    FittedAllocation,
    Valley,
    provenance,
    seeded,
)
from chinchilla_lab.fitting.judging import distinct, no_checkpoints, stated_count
from chinchilla_lab.fitting.refusals import (
    CountMismatchWarning,
    EdgeMinimumError,
    EdgeMinimumWarning,
    NoPowerLawError,
    ShortRangeWarning,
    WeakFitWarning,
    WideGridWarning,
)
from chinchilla_lab.fitting.runs import Runs
from chinchilla_lab.laws import BESIROGLU_2024, HOFFMANN_2022_PRINTED
from chinchilla_lab.laws.families import AdditiveLaw, AllocationLaw
from chinchilla_lab.units import FLOP_PER_ND, text

__all__ = ["fit_isoflop", "isoflop_bias", "power_line"]

Array = NDArray[np.float64]
# with fewer budgets a resample of them is often no line at all, so runs alone are drawn
_MANY_BUDGETS = 5
_WIDE = 4.0  # half-width of a grid beyond which the bias passes a percent


def isoflop_bias(law: AdditiveLaw, half_width: ArrayLike, points: int = 15) -> Array:
    r"""Return how far off a parabola finds the optimum of a law, without any noise.

    .. math::

       \frac{\hat N}{N^*} - 1 = e^{-c_1 / 2 c_2} - 1, \qquad
       c_1, c_2 \text{ from least squares on }
       f(x) = \frac{e^{-\alpha x}}{\alpha} + \frac{e^{\beta x}}{\beta}

    Parameters
    ----------
    law : AdditiveLaw
        The law; only its exponents matter, [-]
    half_width : array_like
        Half-width of the grid of sizes as a factor, above 1, [-]
    points : int, optional
        Sizes on the grid, even in :math:`x = \ln(N/N^*)` and centred on 0, [-]

    Returns
    -------
    numpy.ndarray or float
        Relative error of the size, the same on every budget, [-]

    Notes
    -----
    The excess loss on a budget is f(x) times a factor that depends on the budget alone.
    So the exponent of :math:`N^*(C)` stays exact and the whole line is shifted, up if
    alpha exceeds beta and down if beta exceeds alpha.

    References
    ----------
    :cite:`czech2026isoflop`

    Examples
    --------
    >>> from chinchilla_lab.laws import HOFFMANN_2022_PRINTED
    >>> f"{isoflop_bias(HOFFMANN_2022_PRINTED, 4.0):+.2%}"
    '+1.32%'
    """
    width = positive("half_width", half_width)
    if width.min() <= 1.0:
        raise ValueError(f"half_width={width.min():g} must be above 1: it is a factor")
    n = whole("points", points, least=3)
    x = np.log(width)[..., None] * np.linspace(-1.0, 1.0, n)
    f = np.exp(-law.alpha * x) / law.alpha + np.exp(law.beta * x) / law.beta
    square = x * x
    bowl = square - square.mean(axis=-1, keepdims=True)
    c1 = (x * f).sum(axis=-1) / square.sum(axis=-1)
    c2 = (bowl * f).sum(axis=-1) / (bowl * bowl).sum(axis=-1)
    return np.asarray(np.expm1(-c1 / (2.0 * c2)))


def power_line(C: Array, y: Array, weights: Array) -> tuple[Array, Array]:
    """Fit a power law by least squares on logarithms.

    Parameters
    ----------
    C : numpy.ndarray
        Budgets, divided by their middle, shape (n,) or (rows, n), [-]
    y : numpy.ndarray
        Sizes or tokens at the optimum, same shape, [parameter or token]
    weights : numpy.ndarray
        Weight of each budget, same shape; budgets of weight 0 may hold NaN, [-]

    Returns
    -------
    coefficient : numpy.ndarray
        Value at the middle budget, [parameter or token]
    exponent : numpy.ndarray
        Slope; NaN where fewer than two budgets have weight, [-]
    """
    w = np.where(np.isfinite(y), weights, 0.0)
    x, z = np.log(C), np.log(np.where(w > 0.0, y, 1.0))
    with np.errstate(invalid="ignore", divide="ignore"):
        total = w.sum(axis=-1, keepdims=True)
        mx = (w * x).sum(axis=-1, keepdims=True) / total
        mz = (w * z).sum(axis=-1, keepdims=True) / total
        spread = (w * (x - mx) ** 2).sum(axis=-1)
        slope = (w * (x - mx) * (z - mz)).sum(axis=-1) / spread
        slope = np.where(spread > 1e-12, slope, np.nan)
        return np.exp(mz[..., 0] - slope * mx[..., 0]), slope


def _parabola(x: Array, loss: Array, weights: Array) -> tuple[Array, Array]:
    """Return vertex and height of weighted parabolas; NaN where one is no bowl."""
    power = np.vander(x, 5, increasing=True)
    m = weights @ power
    t = (weights * loss) @ power[:, :3]
    square = np.stack([m[:, i : i + 3] for i in range(3)], axis=1)
    # three sizes at least, or the system has no single answer
    sound = np.linalg.cond(square) < 1e13
    square = np.where(sound[:, None, None], square, np.eye(3))
    c0, c1, c2 = np.linalg.solve(square, t[..., None])[..., 0].T
    bowl = sound & (c2 > 0.0)
    c2 = np.where(bowl, c2, np.nan)
    return -c1 / (2.0 * c2), c0 - c1 * c1 / (4.0 * c2)


def _budgets(
    runs: Runs, budgets: Sequence[float] | None, tolerance: float
) -> NDArray[np.int64]:
    """Return for each run the number of its budget."""
    log_c = np.log(runs.C)
    if budgets is not None:
        middle = np.log(np.sort(positive("budgets", budgets).ravel()))
        return np.asarray(np.abs(log_c[:, None] - middle).argmin(axis=1))
    order = np.argsort(log_c)
    jump = np.diff(log_c[order]) > tolerance
    group = np.empty(len(runs), dtype=np.int64)
    group[order] = np.concatenate([[0], np.cumsum(jump)])
    return group


def fit_isoflop(
    runs: Runs,
    *,
    along: Literal["N", "D"] = "N",
    budgets: Sequence[float] | None = None,
    tolerance: float = 0.1,
    keep_edges: bool = False,
    resamples: int = 1000,
    rng: int | np.random.Generator = 0,
    name: str = "own isoFLOP fit",
) -> FittedAllocation:
    r"""Fit a parabola in log size on each budget and a power law through their bottoms.

    .. math:: L \approx c_0 + c_1 \ln N + c_2 \ln^2 N \text{ on each } C, \qquad
              N^*(C) = c \left(\frac{C}{C_0}\right)^{a}

    Parameters
    ----------
    runs : Runs
        Finished runs, several sizes on each of several budgets, [-]
    along : {"N", "D"}, optional
        Whether the parabola runs in ln N or in ln D, [-]
    budgets : sequence of float, optional
        The budgets; each run joins the nearest. By default runs whose C differ by less
        than the tolerance share one, [FLOP]
    tolerance : float, optional
        Gap in ln C that parts two budgets, [-]
    keep_edges : bool, optional
        Whether budgets without a minimum inside their grid are used all the same, [-]
    resamples : int, optional
        Bootstrap resamples, of the budgets (if there are five or more) and of the runs
        on each; 0 for none, [-]
    rng : int or numpy.random.Generator, optional
        Seed or generator of the resamples, [-]
    name : str, optional
        Name of the law in tables and legends, [-]

    Returns
    -------
    FittedAllocation
        The power law; ``valleys`` says what each budget gave, [-]

    Raises
    ------
    RefusedFitError
        If fewer than three budgets have their minimum inside the grid.

    Warns
    -----
    FitWarning
        For every budget that is left out, and for grids so wide that the parabola is
        biased without any noise.

    References
    ----------
    :cite:`hoffmann2022training`, section 3.2; :cite:`czech2026isoflop` for the bias

    Examples
    --------
    >>> from chinchilla_lab.laws import BESIROGLU_2024
    >>> C, shift = (x.ravel() for x in np.meshgrid([1e19, 1e20, 1e21],
    ...                                            np.geomspace(1 / 3, 3, 7)))
    >>> N = shift * BESIROGLU_2024.G * (C / 6) ** BESIROGLU_2024.a
    >>> runs = Runs(N=N, C=C, L=BESIROGLU_2024.loss(N, C / 6 / N), N_counts="total")
    >>> f"{fit_isoflop(runs, resamples=0).a:.4f} {BESIROGLU_2024.a:.4f}"
    '0.5126 0.5126'
    """
    one_of("along", along, ("N", "D"))
    non_negative("tolerance", tolerance)
    n_draws = whole("resamples", resamples, least=0)
    stated_count(runs)
    no_checkpoints(runs)
    group = _budgets(runs, budgets, tolerance)
    notes: list[str] = []
    if budgets is not None:
        middle_c = np.sort(positive("budgets", budgets).ravel())[group]
        near = np.abs(np.log(runs.C / middle_c)) <= max(tolerance, np.log(1.5))
        if not near.all():
            runs = runs.keep(near, "compute within a factor 1.5 of a given budget")
            group = group[near]
    off = float(np.max(np.abs(np.log(runs.C / (FLOP_PER_ND * runs.N * runs.D)))))
    if off > np.log(1.05):
        notes.append(
            f"the runs' compute differs from 6ND by up to a factor {np.exp(off):.2f}: "
            "the law gives one of N and D from its fit and the other from C = 6ND, so "
            "fits along N and along D disagree; count C as 6ND or read only what is "
            "fitted"
        )
        warnings.warn(notes[-1], CountMismatchWarning, stacklevel=2)
    x = np.log(runs.N if along == "N" else runs.D)
    parts = [np.flatnonzero(group == g) for g in np.unique(group)]
    valleys = tuple(_valley(runs, x, part, along) for part in parts)
    used = [(keep_edges and np.isfinite(v.N)) or v.interior for v in valleys]
    for valley, taken in zip(valleys, used, strict=True):
        if valley.trouble:
            fate = "kept on request" if taken else "left out"
            notes.append(
                f"budget {text(valley.C, 'FLOP')}: {valley.trouble}; {fate}. "
                "Add runs on the side that falls"
            )
            warnings.warn(notes[-1], EdgeMinimumWarning, stacklevel=2)
    if sum(used) < 3:
        raise EdgeMinimumError(
            f"{sum(used)} of {len(valleys)} budgets have a minimum inside their grid "
            "of sizes, 3 are needed for a line and a doubt about it; "
            + (
                "; ".join(notes)
                or "run more budgets, or tell budgets apart with budgets="
            )
        )
    kept = [v for v, taken in zip(valleys, used, strict=True) if taken]
    widest = max(v.half_width for v in kept)
    if widest > _WIDE * 1.001:
        shift = [
            f"{float(isoflop_bias(law, widest)):+.1%} if the exponents are those of "
            f"{law.label}"
            for law in (BESIROGLU_2024, HOFFMANN_2022_PRINTED)
        ]
        notes.append(
            f"the widest grid spans a factor {widest:.0f} either way: a parabola is "
            f"only local, and without any noise N* is off by {shift[0]} and "
            f"{shift[1]}; narrow the grid to a factor 4 or fit_parametric the runs"
        )
        warnings.warn(notes[-1], WideGridWarning, stacklevel=2)

    middle = float(np.exp(np.mean([np.log(v.C) for v in kept])))
    reach = max(v.C for v in kept) / min(v.C for v in kept)
    if reach < 9.5:
        notes.append(
            f"the budgets span a factor {reach:.1f}, less than a decade: the exponent "
            "rests on the noise; add smaller or larger budgets"
        )
        warnings.warn(notes[-1], ShortRangeWarning, stacklevel=2)
    C = np.array([v.C for v in kept])
    y = np.array([v.N if along == "N" else v.D for v in kept])
    coefficient, exponent = power_line(C / middle, y, np.ones(len(C)))
    if not 0.0 < exponent < 1.0:
        raise NoPowerLawError(
            f"{along}* grows like C^{float(exponent):.3g} through {len(kept)} budgets; "
            "an exponent between 0 and 1 is a law. Look at the valleys, or run budgets "
            "further apart"
        )
    many = None
    if n_draws:
        live = [part for part, taken in zip(parts, used, strict=True) if taken]
        many, failed = _resample(runs, x, live, C / middle, middle, along, n_draws, rng)
        if failed > 0.01 * n_draws:
            notes.append(
                f"{failed} of {n_draws} resamples give no rising power law (few "
                "distinct sizes drawn, or budgets too close) and are left out of the "
                "interval, which is too narrow; add runs or budgets"
            )
            warnings.warn(notes[-1], WeakFitWarning, stacklevel=2)
    settings: dict[str, Any] = {
        "drawn": "budgets and runs" if len(kept) >= _MANY_BUDGETS else "runs",
        "along": along, "tolerance": float(tolerance), "keep_edges": bool(keep_edges),
    }  # fmt: skip
    return FittedAllocation(
        **provenance(runs, name, rng if n_draws else None),
        resampled=many,
        estimator="isoflop",
        settings=settings,
        notes=tuple(notes),
        coefficient=float(coefficient),
        exponent=float(exponent),
        gives=along,
        C_unit=middle,
        valleys=valleys,
    )


def _valley(runs: Runs, x: Array, part: NDArray[np.int64], along: str) -> Valley:
    C = float(np.exp(np.log(runs.C[part]).mean()))
    here, loss = x[part], runs.L[part]
    lowest = int(np.argmin(loss))
    width = float(np.exp(np.ptp(here) / 2.0))
    trouble, bottom, height = "", float("nan"), float("nan")
    if distinct(np.exp(here)) < 4:
        trouble = f"{distinct(np.exp(here))} sizes, a parabola needs 4"
    else:
        middle = float(here.mean())
        vertex, low = _parabola(here - middle, loss, np.ones((1, len(part))))
        bottom, height = float(vertex[0] + middle), float(low[0])
        ends = {"least": here.min(), "largest": here.max()}
        edge = [word for word, end in ends.items() if abs(here[lowest] - end) < 1e-6]
        if not np.isfinite(bottom):
            trouble = "the parabola through its runs has no minimum"
        elif not here.min() < bottom < here.max():
            trouble = "the parabola's minimum lies outside the grid"
        elif edge:
            trouble = f"the best run is one of {edge[0]} {along}"
    optimum = np.exp(bottom)
    other = C / (FLOP_PER_ND * optimum)
    N, D = (optimum, other) if along == "N" else (other, optimum)
    return Valley(
        C=C, N=float(N), D=float(D), L=height, best_N=float(runs.N[part][lowest]),
        n_runs=len(part), half_width=width, trouble=trouble,
    )  # fmt: skip


def _resample(
    runs: Runs,
    x: Array,
    parts: Sequence[NDArray[np.int64]],
    C: Array,
    middle: float,
    along: Literal["N", "D"],
    resamples: int,
    rng: int | np.random.Generator,
) -> tuple[AllocationLaw | None, int]:
    """Draw budgets, and runs on each, with replacement; refit all at once."""
    generator = seeded(rng)
    bottoms = np.empty((resamples, len(parts)))
    for j, part in enumerate(parts):
        n = len(part)
        counts = generator.multinomial(n, np.full(n, 1.0 / n), size=resamples)
        mean = x[part].mean()
        vertex, _ = _parabola(x[part] - mean, runs.L[part], counts.astype(np.float64))
        # a vertex far outside the runs is a failed parabola, not an optimum
        inside = np.abs(vertex) <= np.ptp(x[part])
        bottoms[:, j] = np.where(inside, np.exp(vertex + mean), np.nan)
    n = len(parts)
    drawn: Array = np.ones((resamples, n))
    if n >= _MANY_BUDGETS:
        picks = generator.multinomial(n, np.full(n, 1.0 / n), size=resamples)
        drawn = picks.astype(np.float64)
    coefficient, exponent = power_line(
        np.broadcast_to(C, bottoms.shape), bottoms, drawn
    )
    sound = np.isfinite(exponent) & (exponent > 0.0) & (exponent < 1.0)
    if not sound.any():
        return None, resamples
    law = AllocationLaw(
        coefficient=coefficient[sound],  # type: ignore[arg-type]
        exponent=exponent[sound],  # type: ignore[arg-type]
        gives=along,
        C_unit=middle,
    )
    return law, int(np.sum(~sound))
