"""Approach 3: one law of N and D through all runs at once."""

import hashlib
import warnings
from concurrent.futures import Executor
from dataclasses import replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chinchilla_lab.checks import non_negative, one_of, positive, whole
from chinchilla_lab.fitting.fitted import FittedLossLaw, provenance, seeded
from chinchilla_lab.fitting.judging import check_runs
from chinchilla_lab.fitting.progress import progress_bar
from chinchilla_lab.fitting.refusals import (
    DivergedRunsWarning,
    NoPowerLawError,
    ShortRangeWarning,
    WeakFitWarning,
)
from chinchilla_lab.fitting.runs import Runs
from chinchilla_lab.fitting.solver import (
    LAD_DELTA,
    Problem,
    Solved,
    minimise,
    objective,
)
from chinchilla_lab.laws.families import AdditiveLaw
from chinchilla_lab.units import text

__all__ = ["fit_parametric", "log_residuals"]

Array = NDArray[np.float64]
_GRID = np.linspace(0.15, 0.75, 7)  # exponents from which starts are taken
_STARTS = 3
_CHUNK = 512  # resamples a step of the progress bar


def log_residuals(law: AdditiveLaw, runs: Runs) -> Array:
    r"""Return predicted minus observed log loss of each run.

    Parameters
    ----------
    law : AdditiveLaw
        The law, [-]
    runs : Runs
        The runs, [-]

    Returns
    -------
    numpy.ndarray
        :math:`\ln \hat L - \ln L`, shape (n,), [-]
    """
    return np.asarray(np.log(law._loss(runs.N, runs.D)) - np.log(runs.L))


def fit_parametric(
    runs: Runs,
    *,
    loss: Literal["huber", "lad", "squares"] = "huber",
    delta: float = 1e-3,
    tie_exponents: bool = False,
    k: float | Literal["fit"] = 1.0,
    weights: ArrayLike | None = None,
    resamples: int = 1000,
    rng: int | np.random.Generator = 0,
    checkpoints: bool = False,
    name: str = "own fit",
    progress: bool | None = None,
    executor: Executor | None = None,
) -> FittedLossLaw:
    r"""Fit the additive law to runs, and refit it to resamples of them.

    .. math::

       \min \sum_i w_i\, \rho_\delta\!\left( \ln\hat L(N_i, D_i) - \ln L_i \right),
       \qquad \hat L = E + \left(A N^{-\alpha} + B D^{-\beta}\right)^k

    Parameters
    ----------
    runs : Runs
        Finished runs that cross sizes with token counts, [-]
    loss : {"huber", "lad", "squares"}, optional
        :math:`\rho`: Huber's loss, least absolute deviations (its limit of a vanishing
        width), or half the square, [-]
    delta : float, optional
        Width of Huber's loss in log loss, [-]
    tie_exponents : bool, optional
        Whether alpha and beta are one number, for runs that cannot tell them apart, [-]
    k : float or "fit", optional
        Outer exponent, given or fitted, [-]
    weights : array_like, optional
        Weight of each run, shape (n,), [-]
    resamples : int, optional
        Bootstrap resamples of the runs, drawn with replacement; 0 for none, [-]
    rng : int or numpy.random.Generator, optional
        Seed or generator of the resamples, [-]
    checkpoints : bool, optional
        Whether several rows of one run are wanted, which needs a constant rate, [-]
    name : str, optional
        Name of the law in tables and legends, [-]
    progress : bool, optional
        Whether to show a bar; by default for more than about a second's work, [-]
    executor : concurrent.futures.Executor, optional
        Where to send blocks of resamples, [-]

    Returns
    -------
    FittedLossLaw
        The law, its resamples in ``resampled``, and the record of the fit, [-]

    Raises
    ------
    RefusedFitError
        If the runs cannot answer; the kind and the message say why.

    Warns
    -----
    FitWarning
        If ranges are short, runs stick out, or starts or resamples disagree.

    Notes
    -----
    The *sum* is minimised, as :cite:`hoffmann2022training` describe, from the
    three best of 49 starts whose E, A and B solve a linear problem at given
    exponents; all starts and all resamples advance together, see
    :mod:`chinchilla_lab.fitting.solver`.
    Resamples start from the fit. The interval holds the scatter of the runs, not the
    doubt whether the law has this form.

    References
    ----------
    :cite:`hoffmann2022training`, equation 3; :cite:`besiroglu2024chinchilla`

    Examples
    --------
    >>> from chinchilla_lab.laws import BESIROGLU_2024
    >>> N, D = (x.ravel() for x in np.meshgrid(np.geomspace(5e7, 5e9, 6),
    ...                                        np.geomspace(1e9, 1e11, 6)))
    >>> runs = Runs(N=N, D=D, L=BESIROGLU_2024.loss(N, D), N_counts="total")
    >>> law = fit_parametric(runs, resamples=0)
    >>> f"{law.alpha:.4f} {law.beta:.4f} {law.E:.4f}"
    '0.3478 0.3658 1.8172'
    """
    one_of("loss", loss, ("huber", "lad", "squares"))
    if k != "fit":
        k = float(positive("k", k))
    n_draws = whole("resamples", resamples, least=0)
    width = {"huber": float(positive("delta", delta)), "lad": LAD_DELTA}
    free = _free(bool(tie_exponents), k)
    w = np.ones(len(runs)) if weights is None else non_negative("weights", weights)
    if w.shape != (len(runs),):
        raise ValueError(f"weights has shape {w.shape}; give one weight a run")
    if not w.all():
        if not w.any():
            raise ValueError("weights are all zero; give some run a weight")
        runs, w = runs.keep(w > 0.0, "weight above 0"), w[w > 0.0]
    notes = check_runs(runs, unknowns=free.shape[1], checkpoints=checkpoints)
    for note in notes:
        warnings.warn(note, ShortRangeWarning, stacklevel=2)

    centre = np.log(runs.N).mean(), np.log(runs.D).mean()
    problem = Problem(
        x=np.log(runs.N) - centre[0],
        y=np.log(runs.D) - centre[1],
        log_loss=np.log(runs.L),
        free=free,
        delta=width.get(loss, np.inf),
        outer=k != 1.0,
    )
    starts = [
        _starts(problem, w, tie_exponents, outer)
        for outer in ((0.5, 1.0, 3.0) if k == "fit" else (k,))
    ]
    found = minimise(problem, np.concatenate(starts), w)
    best = int(np.argmin(found.objective))
    theta, value = found.theta[best], float(found.objective[best])
    agree = np.abs(found.objective / max(value, 1e-300) - 1.0) < 1e-6
    if value > 1e-12 * len(runs) and not (found.converged[best] and agree.sum() > 1):
        notes.append(
            f"only {int(agree.sum())} of {len(agree)} starts reach the best objective: "
            "the valley has several floors or no floor; tie the exponents or add runs"
        )
        warnings.warn(notes[-1], WeakFitWarning, stacklevel=2)

    if not (theta[3] > 0.0 and theta[4] > 0.0 and np.isfinite(theta).all()):
        raise NoPowerLawError(
            f"the best fit has alpha={theta[3]:.3g} and beta={theta[4]:.3g}: the "
            "losses do not fall with N and with D as powers. Look at the runs; if they "
            "are noise over a short range, train smaller and larger ones"
        )
    if np.exp(theta[2]) < 0.02 * runs.L.min():
        notes.append(
            f"E={np.exp(theta[2]):.2g} is next to nothing: these runs do not see the "
            "floor, and far extrapolations of the loss lean on that"
        )
        warnings.warn(notes[-1], WeakFitWarning, stacklevel=2)

    many, failed = None, 0
    if n_draws:
        many, failed = _resample(
            problem, theta, w, n_draws, rng, centre, progress, executor
        )
    if failed:
        notes.append(
            f"{failed} of {n_draws} resamples have no optimum (an exponent at or below "
            "0, or no end of the search) and are left out of the intervals, which are "
            "too narrow; add runs"
        )
        warnings.warn(notes[-1], WeakFitWarning, stacklevel=2)
    letters = _letters(theta[None], centre)
    found_letters: dict[str, Any] = {key: float(x[0]) for key, x in letters.items()}
    scale = 1.0 / LAD_DELTA if loss == "lad" else 1.0
    settings: dict[str, Any] = {
        "loss": loss,
        "k": k,
        "tie_exponents": bool(tie_exponents),
    }
    if loss == "huber":
        settings["delta"] = float(delta)
    if weights is not None:
        digest = hashlib.sha256(np.ascontiguousarray(w).tobytes()).hexdigest()
        settings["weights"] = f"given, hash {digest[:16]}"
    law = FittedLossLaw(
        **provenance(runs, name, rng if n_draws else None),
        resampled=many,
        estimator="parametric",
        settings=settings,
        objective=value * scale,
        **found_letters,
    )
    notes += _far_runs(law, runs)
    return replace(law, notes=tuple(notes))


def _free(tie: bool, k: float | str) -> Array:
    """Return the basis of the allowed moves."""
    columns = [np.eye(6)[i] for i in range(3)]
    alpha, beta, kappa = np.eye(6)[3:]
    columns += [alpha + beta] if tie else [alpha, beta]
    columns += [kappa] if k == "fit" else []
    return np.array(columns).T


def _starts(problem: Problem, weights: Array, tie: bool, k: float) -> Array:
    """Return the best of a grid of exponents, E, A and B solved for each.

    At fixed exponents the law is linear in E, A and B (for k = 1; otherwise the power
    k is dropped here and the Newton steps make up for it).
    """
    grid = np.linspace(0.1, 0.9, 17) if tie else _GRID
    n = len(grid)
    first, second = np.divmod(np.arange(n * n), n)
    if tie:
        first = second = np.arange(n)
    loss = np.exp(problem.log_loss)
    root = np.sqrt(weights) / loss
    # the columns of the linear problem, relative to the loss; one for each exponent
    u = np.exp(-np.outer(grid, problem.x)) * root
    v = np.exp(-np.outer(grid, problem.y)) * root
    target = np.sqrt(weights)
    square = np.empty((len(first), 3, 3))
    square[:, 0, 0] = np.einsum("gn,gn->g", u, u)[first]
    square[:, 1, 1] = np.einsum("gn,gn->g", v, v)[second]
    square[:, 0, 1] = square[:, 1, 0] = (u @ v.T)[first, second]
    square[:, 0, 2] = square[:, 2, 0] = (u @ root)[first]
    square[:, 1, 2] = square[:, 2, 1] = (v @ root)[second]
    square[:, 2, 2] = root @ root
    square += 1e-10 * np.trace(square, axis1=1, axis2=2)[:, None, None] * np.eye(3)
    right = np.column_stack(
        [(u @ target)[first], (v @ target)[second], np.full(len(first), root @ target)]
    )
    coefficients = np.linalg.solve(square, right[..., None])[..., 0]
    # a term that the linear problem makes negative starts small instead
    least = float(loss.min())
    coefficients = np.maximum(coefficients, 1e-2 * least)
    coefficients[:, 2] = np.minimum(coefficients[:, 2], 0.98 * least)
    a, b, e = np.log(coefficients).T
    alpha, beta = grid[first], grid[second]
    starts = np.column_stack([a / k, b / k, e, alpha / k, beta / k, 0 * a + np.log(k)])
    return starts[np.argsort(objective(problem, starts, weights))[:_STARTS]]


def _letters(theta: Array, centre: tuple[float, float]) -> dict[str, Array]:
    a, b, e, alpha, beta, kappa = theta.T
    return {
        "E": np.exp(e),
        "A": np.exp(a + alpha * centre[0]),
        "B": np.exp(b + beta * centre[1]),
        "alpha": alpha,
        "beta": beta,
        "k": np.exp(kappa),
    }


def _block(problem: Problem, theta: Array, weights: Array) -> Solved:
    return minimise(problem, np.broadcast_to(theta, (len(weights), 6)), weights)


def _resample(
    problem: Problem,
    theta: Array,
    weights: Array,
    resamples: int,
    rng: int | np.random.Generator,
    centre: tuple[float, float],
    progress: bool | None,
    executor: Executor | None,
) -> tuple[AdditiveLaw | None, int]:
    """Refit the law to resamples of the runs; the weights of a resample are counts."""
    generator = seeded(rng)
    n = len(problem.x)
    counts = generator.multinomial(n, np.full(n, 1.0 / n), size=resamples) * weights
    edges = [*range(0, resamples, _CHUNK), resamples]
    blocks = [counts[i:j] for i, j in pairwise(edges)]
    many = (executor.map if executor else map)(
        _block, [problem] * len(blocks), [theta] * len(blocks), blocks
    )
    show = progress if progress is not None else resamples * n > 4_000_000
    solved = list(progress_bar(many, total=len(blocks), label="resamples", show=show))
    rows = np.concatenate([part.theta for part in solved])
    sound = np.concatenate([part.converged for part in solved])
    sound &= (rows[:, 3] > 0.0) & (rows[:, 4] > 0.0) & np.isfinite(rows).all(axis=1)
    failed = int(np.sum(~sound))
    if not sound.any():
        return None, failed
    return AdditiveLaw(**_letters(rows[sound], centre)), failed  # type: ignore[arg-type]


def _far_runs(law: FittedLossLaw, runs: Runs) -> list[str]:
    """Say which runs stick out: more than ten robust standard deviations."""
    residual = log_residuals(law, runs)
    spread = 1.4826 * float(np.median(np.abs(residual - np.median(residual))))
    far = np.flatnonzero(np.abs(residual) > max(10.0 * spread, 1e-3))
    if not len(far) or len(far) > 0.2 * len(runs):
        return []
    shown = ", ".join(
        f"N={text(runs.N[i], 'parameter')} D={text(runs.D[i], 'token')} "
        f"L={runs.L[i]:.4g}"
        for i in far[:3]
    )
    note = (
        f"{len(far)} of {len(runs)} runs lie more than ten spreads off the law "
        f"({shown}{', ...' if len(far) > 3 else ''}): diverged, cut short or mistyped? "
        "Look at them, and fit with and without"
    )
    warnings.warn(note, DivergedRunsWarning, stacklevel=3)
    return [note]
