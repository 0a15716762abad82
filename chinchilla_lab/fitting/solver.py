r"""Many fits of one model at once: exact Newton steps in plain numpy.

The model of every row of a batch is

.. math::

   \ln\hat L = \mathrm{LSE}\bigl(k\,\mathrm{LSE}(a - \alpha x,\; b - \beta y),\;
   e\bigr)

with :math:`x = \ln N` and :math:`y = \ln D`, centred; what differs between the rows is
the start or the weight of each run. A bootstrap is a batch whose weights are counts, so
one call advances all resamples together and stops each when it has arrived.
"""

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "LAD_DELTA",
    "PARAMETERS",
    "Problem",
    "Solved",
    "minimise",
    "objective",
]

Array = NDArray[np.float64]

PARAMETERS = ("a", "b", "e", "alpha", "beta", "kappa")
"""Letters of a row: logs of A, B and E, the exponents, and the log of k."""

LAD_DELTA = 4.7e-9
"""Width at which a Huber loss is the least absolute deviation for all purposes."""

_ROWS = 64  # rows advanced together: their arrays stay in the processor's cache
_STEPS = 4000
_LOWER = np.tril_indices(6, -1)


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Runs and an objective, ready for :func:`minimise`.

    Parameters
    ----------
    x : numpy.ndarray
        Centred ln N of the runs, shape (n,), [-]
    y : numpy.ndarray
        Centred ln D of the runs, shape (n,), [-]
    log_loss : numpy.ndarray
        ln L of the runs, shape (n,), [-]
    free : numpy.ndarray
        Basis of the moves allowed to a row of :data:`PARAMETERS`, shape (6, f); a tied
        pair of exponents is one column with two ones, [-]
    delta : float
        Width of the Huber loss; ``inf`` for least squares, [-]
    outer : bool, optional
        Whether the outer exponent k may differ from one, [-]
    """

    x: Array
    y: Array
    log_loss: Array
    free: Array
    delta: float
    outer: bool = False


@dataclass(frozen=True, kw_only=True)
class Solved:
    """Where the rows of a batch arrived.

    Parameters
    ----------
    theta : numpy.ndarray
        Parameters, shape (rows, 6), [-]
    objective : numpy.ndarray
        Sum of the loss over the runs, shape (rows,), [-]
    converged : numpy.ndarray
        Whether a row stopped because no step helps any more, shape (rows,), [-]
    steps : int
        Steps of the slowest row, [-]
    """

    theta: Array
    objective: Array
    converged: NDArray[np.bool_]
    steps: int


class _Powers:
    """Products of x and y that every sum over runs is taken with."""

    def __init__(self, x: Array, y: Array) -> None:
        one = np.ones_like(x)
        self.u = np.array([one, -x])
        self.v = np.array([one, -y])
        self.by_x = np.column_stack([one, x, x * x])
        self.by_y = np.column_stack([one, y, y * y])
        self.by_xy = np.column_stack([one, x, y, x * y])


def _expand(
    problem: Problem, powers: _Powers, theta: Array, weights: Array
) -> tuple[Array, Array, Array]:
    """Return the objective of each row, its gradient and its Hessian.

    With ``j_u, j_v, j_e`` the shares of the three terms in the prediction (the first
    two times k), every second derivative is one of their products times a power of x
    and y, so the sums over runs are small matrix products.
    """
    a, b, e, alpha, beta, kappa = theta.T
    outer = problem.outer
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        # the two power terms; a wild trial overflows to inf and is refused as NaN
        j_u = np.column_stack([a, alpha]) @ powers.u
        j_v = np.column_stack([b, beta]) @ powers.v
        np.exp(j_u, out=j_u)
        np.exp(j_v, out=j_v)
        total = j_u + j_v
        if outer:
            k = np.exp(kappa)[:, None]
            log_both, share = np.log(total), k / total
            total = np.exp(k * log_both)
            share *= total
        total += np.exp(e)[:, None]
        share = share / total if outer else 1.0 / total
        j_u *= share
        j_v *= share
        r = np.log(total)
        r -= problem.log_loss

        if np.isinf(problem.delta):
            slope, bend = r, weights * (1.0 - r)
        else:
            slope = np.clip(r, -problem.delta, problem.delta)
            bend = weights * ((slope == r) - slope)
        first = weights * slope
        objective = np.einsum("rn,rn->r", first, r)
        objective -= 0.5 * np.einsum("rn,rn->r", first, slope)
        curve = bend
        if outer:
            w = (j_u + j_v) / k
            curve = bend + (1.0 - 1.0 / k) * first / w

        f_u, f_v = (first * j_u) @ powers.by_x, (first * j_v) @ powers.by_y
        c_u, c_v = curve * j_u, curve * j_v
        m_uu, m_vv = (c_u * j_u) @ powers.by_x, (c_v * j_v) @ powers.by_y
        m_uv = (c_u * j_v) @ powers.by_xy
        if outer:
            j_e = 1.0 - w
            b_e = bend * j_e
            m_ue, m_ve = (b_e * j_u) @ powers.by_x, (b_e * j_v) @ powers.by_y
            m_ee = np.einsum("rn,rn->r", b_e, j_e)
            s_e = np.einsum("rn,rn->r", first, j_e)
        else:
            # the shares add to one, which saves the sums with the floor
            m_ue = c_u @ powers.by_x - m_uu
            m_ve = c_v @ powers.by_y - m_vv
            m_ue[:, :2] -= m_uv[:, :2]
            m_ve[:, :2] -= m_uv[:, ::2]
            m_ee = bend.sum(axis=1) - 2.0 * (m_ue[:, 0] + m_ve[:, 0])
            m_ee -= m_uu[:, 0] + m_vv[:, 0] + 2.0 * m_uv[:, 0]
            s_e = first.sum(axis=1) - f_u[:, 0] - f_v[:, 0]

    grad = np.zeros((len(theta), 6))
    hess = np.zeros((len(theta), 6, 6))
    grad[:, 0], grad[:, 1], grad[:, 2] = f_u[:, 0], f_v[:, 0], s_e
    grad[:, 3], grad[:, 4] = -f_u[:, 1], -f_v[:, 1]
    m_uu += f_u
    m_vv += f_v
    hess[:, 0, 0], hess[:, 0, 3], hess[:, 3, 3] = m_uu[:, 0], -m_uu[:, 1], m_uu[:, 2]
    hess[:, 1, 1], hess[:, 1, 4], hess[:, 4, 4] = m_vv[:, 0], -m_vv[:, 1], m_vv[:, 2]
    hess[:, 0, 1], hess[:, 1, 3] = m_uv[:, 0], -m_uv[:, 1]
    hess[:, 0, 4], hess[:, 3, 4] = -m_uv[:, 2], m_uv[:, 3]
    hess[:, 0, 2], hess[:, 2, 3] = m_ue[:, 0], -m_ue[:, 1]
    hess[:, 1, 2], hess[:, 2, 4] = m_ve[:, 0], -m_ve[:, 1]
    hess[:, 2, 2] = m_ee + s_e
    if outer:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            j_k = w * k * log_both
            f_k = first * j_k
            lift = bend + first / w
            m_uk = (lift * j_u * j_k) @ powers.by_x + f_u
            m_vk = (lift * j_v * j_k) @ powers.by_y + f_v
            m_ek = np.einsum("rn,rn->r", b_e, j_k)
            m_kk = np.einsum("rn,rn->r", lift * j_k, j_k)
        grad[:, 5] = f_k.sum(axis=1)
        hess[:, 0, 5], hess[:, 3, 5] = m_uk[:, 0], -m_uk[:, 1]
        hess[:, 1, 5], hess[:, 4, 5] = m_vk[:, 0], -m_vk[:, 1]
        hess[:, 2, 5], hess[:, 5, 5] = m_ek, m_kk + grad[:, 5]
    hess[:, _LOWER[0], _LOWER[1]] = hess[:, _LOWER[1], _LOWER[0]]
    return objective, grad, hess


def _evaluate(
    problem: Problem, powers: _Powers, theta: Array, weights: Array
) -> list[Array]:
    """Expand all rows, some at a time, so that the arrays stay in the cache."""
    if len(theta) <= _ROWS:
        return list(_expand(problem, powers, theta, weights))
    edges = [*range(0, len(theta), _ROWS), len(theta)]
    parts = [
        _expand(problem, powers, theta[i:j], weights[i:j]) for i, j in pairwise(edges)
    ]
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


def objective(problem: Problem, theta: Array, weights: Array) -> Array:
    """Return the objective of each row.

    Parameters
    ----------
    problem : Problem
        Runs and objective, [-]
    theta : numpy.ndarray
        Rows of :data:`PARAMETERS`, shape (rows, 6), [-]
    weights : numpy.ndarray
        Weight of each run, shape (rows, n) or (n,), [-]

    Returns
    -------
    numpy.ndarray
        Sums over the runs, shape (rows,), [-]
    """
    a, b, e, alpha, beta, kappa = theta.T[:, :, None]
    with np.errstate(over="ignore", invalid="ignore"):
        # a wild start overflows and counts as infinitely bad
        both = np.exp(a - alpha * problem.x) + np.exp(b - beta * problem.y)
        raised = both ** np.exp(kappa) if problem.outer else both
        r = np.log(raised + np.exp(e)) - problem.log_loss
        slope = np.clip(r, -problem.delta, problem.delta)
        total = (weights * slope * (r - 0.5 * slope)).sum(axis=1)
    return np.asarray(np.where(np.isfinite(total), total, np.inf))


def _solve(hess: Array, grad: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Solve small symmetric systems, one a row; False where one is not positive.

    A Cholesky elimination whose loops run over the five unknowns and whose
    operations run over the rows: far fewer calls than a solver a row.
    """
    m = np.moveaxis(hess, 0, -1).copy()
    x = -grad.T.copy()
    n = len(x)
    ok = np.ones(x.shape[1], dtype=bool)
    for i in range(n):
        floor = 1e-14 * np.abs(hess[:, i, i])
        ok &= m[i, i] > floor
        pivot = np.where(m[i, i] > floor, m[i, i], 1.0)
        m[i, i] = pivot
        for j in range(i + 1, n):
            factor = m[i, j] / pivot
            m[j, j:] -= factor * m[i, j:]
            x[j] -= factor * x[i]
    for i in reversed(range(n)):
        x[i] /= m[i, i]
        x[:i] -= m[:i, i] * x[i]
    return x.T, ok


def _advance(
    problem: Problem, powers: _Powers, theta: Array, weights: Array, steps: int
) -> tuple[Array, Array, NDArray[np.bool_], int]:
    """Bring all rows to rest."""
    free = problem.free
    diagonal = np.arange(free.shape[1])
    out, done = theta.copy(), np.zeros(len(theta), dtype=bool)
    state = _evaluate(problem, powers, theta, weights)
    objective = state[0].copy()
    # a positive measure of each unknown, the metric of a damped step; in every metric
    # a step that is short enough lowers the sum
    scale = np.abs(np.einsum("rii->ri", free.T @ state[2] @ free))
    scale += 1e-6 * scale.max(axis=1, keepdims=True) + 1e-300
    rows, theta, damping = np.arange(len(theta)), theta.copy(), np.full(len(theta), 0.1)
    taken = 0
    while len(rows) and taken < steps:
        taken += 1
        g = state[1] @ free
        h = free.T @ state[2] @ free
        h[:, diagonal, diagonal] += damping[:, None] * scale
        move, ok = _solve(h, g)
        # a step whose own forecast is dust cannot help, and where no step of any
        # length lowers the sum it is as low as floating point goes
        forecast = -np.einsum("rf,rf->r", g, move)
        rest = (ok & (forecast <= 1e-13 * state[0])) | (damping >= 1e9)
        if rest.any():
            at = rows[rest]
            out[at], objective[at], done[at] = theta[rest], state[0][rest], True
            keep = ~rest
            rows, theta, weights, damping, scale, move, ok = (
                part[keep] for part in (rows, theta, weights, damping, scale, move, ok)
            )
            state = [part[keep] for part in state]
            if not len(rows):
                break
        trial = theta + np.clip(move, -3.0, 3.0) @ free.T
        new = _evaluate(problem, powers, trial, weights)
        better = ok & (new[0] < state[0])
        damping = np.maximum(np.where(better, 0.05, 10.0) * damping, 1e-12)
        theta[better] = trial[better]
        for old, fresh in zip(state, new, strict=True):
            old[better] = fresh[better]
    if len(rows):
        out[rows], objective[rows] = theta, state[0]
    return out, objective, done, taken


def minimise(
    problem: Problem, starts: Array, weights: Array, steps: int | None = None
) -> Solved:
    """Minimise the objective from every start, each with its own weights.

    Parameters
    ----------
    problem : Problem
        Runs and objective, [-]
    starts : numpy.ndarray
        Rows of :data:`PARAMETERS`, shape (rows, 6), [-]
    weights : numpy.ndarray
        Weight of each run in each row, shape (rows, n) or (n,), [-]
    steps : int, optional
        Steps allowed to a row, [-]

    Returns
    -------
    Solved
        One minimum a row; a row that did not converge says so, [-]

    Notes
    -----
    Newton's step with the exact Hessian, damped by a positive diagonal (Levenberg)
    where the Hessian is not positive or the step does not lower the objective. For the
    narrow Huber loss of least absolute deviations the width is shrunk tenfold a stage,
    each stage starting from the last, because the exact problem has corners.
    """
    most = _STEPS if steps is None else steps
    powers = _Powers(problem.x, problem.y)
    weights = np.broadcast_to(weights, (len(starts), len(problem.x)))
    stages = [problem.delta]
    if problem.delta < 1e-4:
        ladder = 10.0 ** -np.arange(3.0, 12.0)
        stages = [float(d) for d in ladder if d > problem.delta] + stages
    theta, taken = starts, 0
    for delta in stages:
        stage = replace(problem, delta=delta)
        theta, value, converged, used = _advance(stage, powers, theta, weights, most)
        taken += used
    return Solved(
        theta=theta,
        objective=value,
        converged=converged,
        steps=taken,
    )
