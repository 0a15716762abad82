"""Approach 1: which training curve is lowest at each amount of compute."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chinchilla_lab.checks import whole
from chinchilla_lab.fitting.fitted import FittedAllocation, provenance, seeded
from chinchilla_lab.fitting.isoflop import power_line
from chinchilla_lab.fitting.judging import stated_count
from chinchilla_lab.fitting.progress import progress_bar
from chinchilla_lab.fitting.refusals import (
    EdgeMinimumError,
    EdgeMinimumWarning,
    NoPowerLawError,
    TooFewRunsError,
    WeakFitWarning,
)
from chinchilla_lab.fitting.runs import Runs
from chinchilla_lab.laws.families import AllocationLaw
from chinchilla_lab.units import text

__all__ = ["fit_envelope"]

Array = NDArray[np.float64]


def fit_envelope(
    runs: Runs,
    *,
    points: int = 1500,
    resamples: int = 1000,
    rng: int | np.random.Generator = 0,
    name: str = "own envelope fit",
) -> FittedAllocation:
    r"""Fit a power law to the size of the lowest training curve at each compute.

    .. math:: N^*(C_j) = \arg\min_N L_N(C_j), \qquad
              N^*(C) = c \left(\frac{C}{C_0}\right)^{a}

    Parameters
    ----------
    runs : Runs
        Training curves: several rows of each name in ``run``, [-]
    points : int, optional
        Amounts of compute, even in log C, at which curves are compared, [-]
    resamples : int, optional
        Bootstrap resamples of whole curves; 0 for none, [-]
    rng : int or numpy.random.Generator, optional
        Seed or generator of the resamples, [-]
    name : str, optional
        Name of the law in tables and legends, [-]

    Returns
    -------
    FittedAllocation
        The power law, [-]

    Raises
    ------
    RefusedFitError
        If there are fewer than four curves, or none of a middle size is ever lowest.

    Warns
    -----
    FitWarning
        If much of the compute belongs to the smallest or the largest size.

    Notes
    -----
    Losses between two rows of a curve are interpolated in log C. Compute at which the
    smallest or the largest size leads is left out: a size beyond the grid might have
    led there. A curve whose learning rate decays later than C has a loss that is too
    high at C, which is why :cite:`hoffmann2022training` trained every size with four
    lengths of schedule.

    References
    ----------
    :cite:`hoffmann2022training`, section 3.1, which uses 1,500 amounts of compute
    """
    n_points = whole("points", points, least=10)
    n_draws = whole("resamples", resamples, least=0)
    stated_count(runs)
    if not runs.run:
        raise TooFewRunsError(
            "run is missing: an envelope needs whole training curves, named in run; "
            "load them with read_runs(path, rows='all', columns={'run': ...})"
        )
    labels = np.array(runs.run)
    names = [n for n in dict.fromkeys(runs.run) if np.sum(labels == n) > 1]
    if len(names) < 4:
        raise TooFewRunsError(
            f"{len(names)} curves of two rows or more; give at least 4, with losses "
            "along the way"
        )
    grid = np.linspace(np.log(runs.C.min()), np.log(runs.C.max()), n_points)
    height = np.full((len(names), n_points), np.inf)
    sizes = np.empty(len(names))
    for i, label in enumerate(names):
        rows = np.flatnonzero(labels == label)
        rows = rows[np.argsort(runs.C[rows])]
        sizes[i] = runs.N[rows].mean()
        c = np.log(runs.C[rows])
        height[i] = np.interp(grid, c, runs.L[rows], left=np.inf, right=np.inf)

    def leaders(present: NDArray[np.bool_]) -> tuple[Array, Array]:
        # the ends of what is there: another size beyond them might have led
        here = sizes[present]
        ends = np.isclose(sizes, here.min()) | np.isclose(sizes, here.max())
        shown = np.where(present[:, None], height, np.inf)
        first = shown.argmin(axis=0)
        inner = np.isfinite(shown.min(axis=0)) & ~ends[first]
        return grid[inner], sizes[first[inner]]

    log_c, best = leaders(np.ones(len(names), dtype=bool))
    distinct = len(np.unique(best))
    if distinct < 3:
        raise EdgeMinimumError(
            f"{distinct} sizes between the least and the largest are ever lowest; 3 "
            "are needed. Add sizes, or longer runs of the small ones"
        )
    notes: list[str] = []
    share = 1.0 - len(log_c) / n_points
    if share > 0.5:
        notes.append(
            f"{share:.0%} of the range of compute has no leader between the least and "
            "the largest size and is left out; add sizes beyond both"
        )
        warnings.warn(notes[-1], EdgeMinimumWarning, stacklevel=2)
    middle = float(np.exp(log_c.mean()))
    ones = np.ones(len(log_c))
    coefficient, exponent = power_line(np.exp(log_c) / middle, best, ones)
    if not 0.0 < exponent < 1.0:
        raise NoPowerLawError(
            f"the leading size grows like C^{float(exponent):.3g}; an exponent between "
            "0 and 1 is a law. Look at the curves, or add sizes"
        )
    many = None
    if n_draws:
        generator = seeded(rng)
        n = len(names)
        counts = generator.multinomial(n, np.full(n, 1.0 / n), size=n_draws)
        draws = []
        bar = progress_bar(
            counts, n_draws, "resamples", show=n_draws * height.size > 60_000_000
        )
        for row in bar:
            x, y = leaders(row > 0)
            if len(np.unique(y)) > 2:
                draws.append(power_line(np.exp(x) / middle, y, np.ones(len(x))))
        pairs = np.array([d for d in draws if 0.0 < d[1] < 1.0], dtype=np.float64)
        failed = n_draws - len(pairs)
        if len(pairs):
            many = AllocationLaw(
                coefficient=pairs[:, 0],  # type: ignore[arg-type]
                exponent=pairs[:, 1],  # type: ignore[arg-type]
                C_unit=middle,
            )
        if failed > 0.01 * n_draws:
            notes.append(
                f"{failed} of {n_draws} resamples have too few leading sizes and are "
                "left out of the interval, which is too narrow; add curves"
            )
            warnings.warn(notes[-1], WeakFitWarning, stacklevel=2)
    settings: dict[str, Any] = {
        "points": n_points,
        "range": f"{text(float(np.exp(log_c[0])), 'FLOP')} to "
        f"{text(float(np.exp(log_c[-1])), 'FLOP')}",
    }
    return FittedAllocation(
        **provenance(runs, name, rng if n_draws else None),
        resampled=many,
        estimator="envelope",
        settings=settings,
        notes=tuple(notes),
        coefficient=float(coefficient),
        exponent=float(exponent),
        C_unit=middle,
    )
