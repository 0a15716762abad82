"""Which runs to train: made-up runs, and what a design would tell before it is paid."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chinchilla_lab.checks import fraction, non_negative, positive
from chinchilla_lab.fitting.fitted import seeded
from chinchilla_lab.fitting.refusals import NotIdentifiableError
from chinchilla_lab.fitting.runs import Runs
from chinchilla_lab.laws.families import AdditiveLaw
from chinchilla_lab.units import FLOP_PER_ND

__all__ = ["crossed", "design_factor", "simulate_runs"]

Array = NDArray[np.float64]


def _pairs(N: ArrayLike, D: ArrayLike) -> tuple[Array, Array]:
    n, d = positive("N", N).ravel(), positive("D", D).ravel()
    if len(n) != len(d):
        raise ValueError(f"D has {len(d)} rows where N has {len(n)}")
    return n, d


def crossed(sizes: ArrayLike, ratios: ArrayLike) -> tuple[Array, Array]:
    """Cross sizes with ratios of tokens to parameters.

    Parameters
    ----------
    sizes : array_like
        Sizes, [parameter]
    ratios : array_like
        Tokens per parameter, [token/parameter]

    Returns
    -------
    N : numpy.ndarray
        Size of each run, [parameter]
    D : numpy.ndarray
        Tokens of each run, [token]

    Examples
    --------
    >>> crossed([1e8, 1e9], [10, 40])[1]
    array([1.e+09, 4.e+09, 1.e+10, 4.e+10])
    """
    n, r = positive("sizes", sizes).ravel(), positive("ratios", ratios).ravel()
    return np.repeat(n, len(r)), (n[:, None] * r).ravel()


def simulate_runs(
    law: AdditiveLaw,
    N: ArrayLike,
    D: ArrayLike,
    noise: float = 0.003,
    rng: int | np.random.Generator = 0,
) -> Runs:
    """Make up runs of a law that is known, to see whether a fit finds it again.

    Parameters
    ----------
    law : AdditiveLaw
        The truth, [-]
    N : array_like
        Size of each run, [parameter]
    D : array_like
        Tokens of each run, same shape, [token]
    noise : float, optional
        Standard deviation of the log loss, 0.003 for 0.3 %, [-]
    rng : int or numpy.random.Generator, optional
        Seed or generator, [-]

    Returns
    -------
    Runs
        The runs, [-]
    """
    n, d = _pairs(N, D)
    generator = seeded(rng)
    scatter = float(non_negative("noise", noise)) * generator.standard_normal(len(n))
    return Runs(
        N=n,
        D=d,
        L=law._loss(n, d) * np.exp(scatter),
        N_counts=law.N_counts,
        source=f"made up from {law.label}, noise {noise:g}",
    )


def design_factor(
    law: AdditiveLaw,
    N: ArrayLike,
    D: ArrayLike,
    C: ArrayLike,
    noise: float = 0.003,
    level: float = 0.9,
) -> Array:
    r"""Return how well a set of runs would know the optimum, before any is trained.

    .. math::

       \ln f = z \sqrt{g^\top \Sigma\, g}, \qquad
       \Sigma = \sigma^2 (J^\top J)^{-1}, \qquad
       g = \frac{\partial \ln N^*(C)}{\partial (a, b, e, \alpha, \beta)}

    Parameters
    ----------
    law : AdditiveLaw
        A law believed to be near the truth, k = 1, [-]
    N : array_like
        Sizes of the runs, [parameter]
    D : array_like
        Tokens of the runs, same shape, [token]
    C : array_like
        Budget of the optimum, [FLOP]
    noise : float, optional
        Standard deviation of the log loss :math:`\sigma`, [-]
    level : float, optional
        Coverage, [-]

    Returns
    -------
    numpy.ndarray or float
        Factor f: the interval runs from N*/f to N* f, [-]

    Raises
    ------
    NotIdentifiableError
        If the runs cannot tell alpha from beta.

    Notes
    -----
    First order in the noise (delta method): it is too narrow where f exceeds about 2.
    J holds the slopes of the predicted log loss.
    """
    from statistics import NormalDist  # loaded where an interval is asked for

    n, d = _pairs(N, D)
    noise = float(positive("noise", noise))
    c = positive("C", C)
    z = NormalDist().inv_cdf(0.5 + float(fraction("level", level)) / 2.0)
    x, y = np.log(n), np.log(d)
    cx, cy = x.mean(), y.mean()
    u = law.A * n**-law.alpha
    v = law.B * d**-law.beta
    total = law.E + u + v
    slopes = np.column_stack(
        [u, v, np.full_like(u, law.E), -(x - cx) * u, -(y - cy) * v]
    )
    slopes /= total[:, None]
    stretch = np.linalg.norm(slopes, axis=0)
    information = (slopes / stretch).T @ (slopes / stretch)
    if len(n) < 5 or np.linalg.cond(information) > 1e12:
        raise NotIdentifiableError(
            "these runs cannot tell alpha from beta, so they know no optimum; spread "
            "the tokens per parameter"
        )
    covariance = noise**2 * np.linalg.inv(information) / np.outer(stretch, stretch)
    # ln N* in letters centred on the runs, so that a and b hardly lean on the exponents
    alpha, beta = law.alpha, law.beta
    both = alpha + beta
    a, b = np.log(law.A) - alpha * cx, np.log(law.B) - beta * cy
    top = np.log(alpha / beta) + a + alpha * cx - b - beta * cy
    log_nd = np.log(c / FLOP_PER_ND)
    by_alpha = (1.0 / alpha + cx) / both - top / both**2 - beta / both**2 * log_nd
    by_beta = -(1.0 / beta + cy) / both - top / both**2 + alpha / both**2 * log_nd
    flat = np.zeros_like(log_nd)
    g = np.stack(
        [flat + 1.0 / both, flat - 1.0 / both, flat, by_alpha, by_beta], axis=-1
    )
    spread = np.sqrt(np.einsum("...i,ij,...j->...", g, covariance, g))
    return np.asarray(np.exp(z * spread))[()]
