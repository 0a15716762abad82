"""Lifetime optima without units: three ratios, and only the exponents of the law.

Demand is measured in the tokens of the compute-optimal model of the same loss, size and
data in its size and data. Everything else about a law cancels.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chinchilla_lab.allocation.price import least_size_factor
from chinchilla_lab.allocation.solving import additive, needs_loss, newton
from chinchilla_lab.checks import InfeasibleError, non_negative, positive
from chinchilla_lab.laws.families import AdditiveLaw, LossLaw
from chinchilla_lab.tables import html_table
from chinchilla_lab.units import text

__all__ = [
    "Factors",
    "equal_spend",
    "factors_for_demand",
    "factors_for_size",
    "least_token_factor",
]

Array = NDArray[np.float64]
_BLOCK = 4096


@dataclass(frozen=True, kw_only=True, eq=False)
class Factors:
    """A lifetime optimum relative to the compute-optimal model of the same loss.

    Parameters
    ----------
    demand_factor : numpy.ndarray or float
        Lifetime tokens served over compute-optimal training tokens, tau, [-]
    size_factor : numpy.ndarray or float
        Size over the compute-optimal size, k, [-]
    token_factor : numpy.ndarray or float
        Training tokens over the compute-optimal ones, u, [-]
    saved : numpy.ndarray or float
        Share of the lifetime compute of the compute-optimal model that is saved, [-]
    """

    demand_factor: Array
    size_factor: Array
    token_factor: Array
    saved: Array

    @property
    def training_overhead(self) -> Array:
        """Training compute beyond the compute-optimal model's, as a share, [-]."""
        return self.size_factor * self.token_factor - 1.0

    def _repr_html_(self) -> str:
        cells = np.broadcast_arrays(
            self.demand_factor, self.size_factor, self.token_factor, self.saved
        )
        rows = [
            [text(t, ""), text(k, ""), text(u, ""), f"{k * u - 1.0:+.1%}", f"{s:.2%}"]
            for t, k, u, s in zip(*map(np.ravel, cells), strict=True)
        ]
        head = (
            "demand T/D_c [-]",
            "size N/N_c [-]",
            "tokens D/D_c [-]",
            "extra training compute",
            "lifetime compute saved",
        )
        return html_table(head, rows)


def closed_form(law: LossLaw) -> AdditiveLaw:
    """Return the law in additive letters, or say which laws have a lifetime optimum."""
    closed = additive(needs_loss(law, "lifetime optimum"))
    if closed is None:
        raise TypeError(
            f"{law.label} is no power law in N and D, so its lifetime optimum has no "
            "one-dimensional form; use an additive law, or repetition.optimal_for_loss "
            "for repeated data"
        )
    return closed


def log_factors(law: AdditiveLaw, tau: Array) -> tuple[Array, Array]:
    """Return ln k and ln u of checked demand factors, in blocks that fit the cache."""
    if tau.size <= _BLOCK:
        return _log_factors(law, tau)
    flat = np.ravel(tau)
    log_k, log_u = np.empty_like(flat), np.empty_like(flat)
    for start in range(0, flat.size, _BLOCK):
        part = slice(start, start + _BLOCK)
        log_k[part], log_u[part] = _log_factors(law, flat[part])
    return log_k.reshape(tau.shape), log_u.reshape(tau.shape)


def _log_factors(law: AdditiveLaw, tau: Array) -> tuple[Array, Array]:
    """Solve the condition.

    In v = ln u the condition reads ln(1 + c e^-v) = beta v, falling and convex. Newton
    from the left of its root walks up to it without leaving the bracket.
    """
    alpha, beta = law.alpha, law.beta
    ratio = tau / (3.0 * (alpha + beta))
    c = beta * ratio

    def condition(v: Array) -> tuple[Array, Array]:
        served = c * np.exp(-v)
        return np.log1p(served) - beta * v, -served / (1.0 + served) - beta

    # the step from v = 0 stays left of the root, and u <= 1 + tau / 3 (alpha + beta)
    low = np.log1p(c) / (beta + c / (1.0 + c))
    v = newton(condition, low, np.maximum(np.log1p(ratio), low), low)
    shrink = np.log1p(-np.expm1(-beta * v) * alpha / beta) / -alpha
    return shrink, v


def saved_share(log_k: Array, log_u: Array, tau: Array) -> Array:
    """Return 1 - k (3u + tau) / (3 + tau), by logarithms: the rest is second order."""
    spent = log_k + np.log1p(3.0 * np.expm1(log_u) / (3.0 + tau))
    return 0.0 - np.expm1(spent)


def factors_for_demand(law: LossLaw, demand_factor: ArrayLike) -> Factors:
    r"""Size and tokens, relative to compute-optimal, for a relative demand.

    .. math::

       u^{-\beta}\left[\alpha + \beta + \frac{\beta\tau}{3u}\right] = \alpha + \beta,
       \qquad
       k = \left[1 + \frac{\alpha}{\beta}\left(1 - u^{-\beta}\right)\right]^{-1/\alpha}

    Parameters
    ----------
    law : LossLaw
        A law with a closed form; only its exponents matter, [-]
    demand_factor : array_like
        Lifetime tokens over compute-optimal training tokens, tau, [-]

    Returns
    -------
    Factors
        k, u and the saved share, same shape as ``demand_factor``, [-]

    Raises
    ------
    ValueError
        If the demand is negative or no number.

    Notes
    -----
    Assumes 6 FLOP per parameter and trained token, 2 per parameter and served token.

    References
    ----------
    :cite:`sardana2024beyond`, equation of the lifetime optimum, in ratios

    Examples
    --------
    >>> from chinchilla_lab.laws import BESIROGLU_2024
    >>> f = factors_for_demand(BESIROGLU_2024, 5.0)
    >>> f"{f.size_factor:.3f} {f.token_factor:.2f} {f.saved:.3f}"
    '0.521 2.34 0.216'
    """
    tau = non_negative("demand_factor", demand_factor)
    log_k, log_u = log_factors(closed_form(law), tau)
    return Factors(
        demand_factor=tau[()],
        size_factor=np.exp(log_k)[()],
        token_factor=np.exp(log_u)[()],
        saved=saved_share(log_k, log_u, tau)[()],
    )


def factors_for_size(law: LossLaw, size_factor: ArrayLike) -> Factors:
    r"""Relative demand that makes a relative size the right one.

    .. math::

       u = \left[1 - \frac{\beta}{\alpha}\left(k^{-\alpha} - 1\right)\right]^{-1/\beta},
       \qquad \tau = \frac{3u(\alpha+\beta)(u^{\beta} - 1)}{\beta}

    Parameters
    ----------
    law : LossLaw
        A law with a closed form; only its exponents matter, [-]
    size_factor : array_like
        Size over the compute-optimal size, k, at most 1, [-]

    Returns
    -------
    Factors
        The demand and the rest, same shape as ``size_factor``, [-]

    Raises
    ------
    InfeasibleError
        If the size is at or below the least size factor.
    ValueError
        If the size factor is above 1: no demand makes a larger model cheaper.

    Examples
    --------
    >>> from chinchilla_lab.laws import BESIROGLU_2024
    >>> f"{factors_for_size(BESIROGLU_2024, 0.5).demand_factor:.2f}"
    '5.93'
    """
    closed = closed_form(law)
    k = positive("size_factor", size_factor)
    if k.max() > 1.0:
        raise ValueError(
            f"size_factor={k.max():g} is above 1: serving makes smaller models pay, "
            "never larger ones; use allocation.overhead for the price of a larger one"
        )
    least = least_size_factor(closed)
    lack = np.expm1(-closed.alpha * np.log(k)) * closed.beta / closed.alpha
    if k.min() <= least or lack.max() >= 1.0:
        raise InfeasibleError(
            f"size_factor={k.min():.4g} cannot reach the loss with any number of "
            f"tokens; under {law.label} it must be above {least:.4f}"
        )
    log_u = -np.log1p(-lack) / closed.beta
    gain = np.expm1(closed.beta * log_u)
    tau = 3.0 * np.exp(log_u) * (closed.alpha + closed.beta) * gain / closed.beta
    return Factors(
        demand_factor=(tau + 0.0)[()],  # no -0 at k = 1
        size_factor=k[()],
        token_factor=np.exp(log_u)[()],
        saved=saved_share(np.log(k), log_u, tau)[()],
    )


def equal_spend(law: LossLaw) -> Factors:
    r"""Demand at which the lifetime optimum serves for as much compute as it trains.

    .. math:: u = \left(\frac{\alpha + 2\beta}{\alpha + \beta}\right)^{1/\beta},
       \qquad \tau = 3u

    Parameters
    ----------
    law : LossLaw
        A law with a closed form; only its exponents matter, [-]

    Returns
    -------
    Factors
        The point where 2NT = 6ND, [-]

    Examples
    --------
    >>> from chinchilla_lab.laws import BESIROGLU_2024
    >>> f"{equal_spend(BESIROGLU_2024).demand_factor:.3f}"
    '9.299'
    """
    closed = closed_form(law)
    total = closed.alpha + closed.beta
    u = ((total + closed.beta) / total) ** (1.0 / closed.beta)
    log_u = np.asarray(np.log(u))
    tau = np.asarray(3.0 * u)
    shrink = np.log1p(-np.expm1(-closed.beta * log_u) * closed.alpha / closed.beta)
    log_k = np.asarray(-shrink / closed.alpha)
    return Factors(
        demand_factor=tau[()],
        size_factor=np.exp(log_k)[()],
        token_factor=np.exp(log_u)[()],
        saved=saved_share(log_k, log_u, tau)[()],
    )


def least_token_factor(law: LossLaw) -> float:
    r"""Tokens, over the compute-optimal ones, that no size can do without.

    .. math:: u_\min = \left(1 + \frac{\beta}{\alpha}\right)^{-1/\beta}

    Parameters
    ----------
    law : LossLaw
        A law with a closed form; only its exponents matter, [-]

    Returns
    -------
    float
        The limit of an endless model at fixed loss, [-]

    Examples
    --------
    >>> from chinchilla_lab.laws import BESIROGLU_2024
    >>> f"{least_token_factor(BESIROGLU_2024):.4f}"
    '0.1402'
    """
    closed = closed_form(law)
    return float((1.0 + closed.beta / closed.alpha) ** (-1.0 / closed.beta))
