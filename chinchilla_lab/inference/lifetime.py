"""The size that is cheapest over a model's whole life, trained and served."""

import warnings
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chinchilla_lab.allocation.optimum import optimal_for_loss, optimal_for_params
from chinchilla_lab.allocation.results import Allocation
from chinchilla_lab.allocation.solving import needs_loss, newton, slopes
from chinchilla_lab.allocation.targets import least_params, tokens_for_loss
from chinchilla_lab.checks import (
    ExtrapolationWarning,
    InfeasibleError,
    non_negative,
    positive,
)
from chinchilla_lab.inference.factors import (
    closed_form,
    log_factors,
    saved_share,
)
from chinchilla_lab.laws.families import AdditiveLaw, LossLaw
from chinchilla_lab.laws.published import (
    BESIROGLU_2024,
    HOFFMANN_2022_PRINTED,
    MUENNIGHOFF_2023_C4,
    SARDANA_2024,
)
from chinchilla_lab.tables import html_table
from chinchilla_lab.units import FLOP_PER_ND, text

__all__ = [
    "BAND",
    "FLOP_PER_NT",
    "Lifetime",
    "LifetimeSpread",
    "implied_demand",
    "lifetime_at",
    "lifetime_optimal",
    "lifetime_spread",
    "size_floor",
]

Array = NDArray[np.float64]

FLOP_PER_NT = 2.0  # one multiply-add per parameter and token served

BAND = (BESIROGLU_2024, MUENNIGHOFF_2023_C4, SARDANA_2024, HOFFMANN_2022_PRINTED)
"""Coefficient sets whose spread goes with every lifetime answer, the default first."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Lifetime:
    """A model, its training and its service, beside the compute-optimal one.

    Parameters
    ----------
    law : LossLaw
        The law, [-]
    T : numpy.ndarray or float
        Tokens served over the lifetime, prompts and answers, [token]
    N : numpy.ndarray or float
        Parameters, counted as ``law.N_counts`` says, [parameter]
    D : numpy.ndarray or float
        Training tokens, [token]
    L : numpy.ndarray or float
        Loss, [nats/token]
    compute_optimal : Allocation
        The model of the same loss with the least training compute, [-]
    saved : numpy.ndarray or float
        Share of the lifetime compute of that model that is saved, [-]
    """

    law: LossLaw
    T: Array
    N: Array
    D: Array
    L: Array
    compute_optimal: Allocation
    saved: Array

    @property
    def training(self) -> Array:
        """Training compute 6ND, [FLOP]."""
        return FLOP_PER_ND * self.N * self.D

    @property
    def serving(self) -> Array:
        """Compute of all tokens served, 2NT, [FLOP]."""
        return FLOP_PER_NT * self.N * self.T

    @property
    def total(self) -> Array:
        """Lifetime compute, [FLOP]."""
        return self.training + self.serving

    @property
    def next_token(self) -> Array:
        """What one more token of demand adds to the lifetime compute, [FLOP/token].

        The envelope theorem: at the optimum the plan need not change for it.
        """
        return FLOP_PER_NT * self.N

    @property
    def demand_factor(self) -> Array:
        """Tokens served over compute-optimal training tokens, tau, [-]."""
        return self.T / self.compute_optimal.D

    @property
    def size_factor(self) -> Array:
        """Size over the compute-optimal size, k, [-]."""
        return self.N / self.compute_optimal.N

    @property
    def token_factor(self) -> Array:
        """Training tokens over the compute-optimal ones, u, [-]."""
        return self.D / self.compute_optimal.D

    @property
    def tokens_per_param(self) -> Array:
        """Training tokens per parameter, [token/parameter]."""
        return self.D / self.N

    def outside(self) -> list[str]:
        """Say how far the plan leaves the range of the runs behind the law."""
        return self.law.fitted.outside(N=self.N, D=self.D)

    def rows(self) -> list[list[str]]:
        """Return the plan as formatted cells, one row for each demand."""
        parts = np.broadcast_arrays(
            self.T, self.N, self.D, self.L, self.training, self.serving,
            self.size_factor, self.saved,
        )  # fmt: skip
        return [
            [
                self.law.label,
                text(t, "token").removesuffix(" token") if t else "0",
                text(n, "parameter"),
                text(d, "token"),
                f"{loss:.4f}",
                text(train, "FLOP").removesuffix(" FLOP"),
                text(serve, "FLOP").removesuffix(" FLOP") if serve else "0",
                f"{k:.3f}",
                f"{saved:.2%}",
            ]
            for t, n, d, loss, train, serve, k, saved in zip(
                *map(np.ravel, parts), strict=True
            )
        ]

    def _repr_html_(self) -> str:
        notes = self.outside()
        note = f"<p>Extrapolation: {'; '.join(notes)}.</p>" if notes else ""
        return html_table(_HEADER, self.rows()) + note


_HEADER = (
    "law",
    "T [token]",
    "N [parameter]",
    "D [token]",
    "L [nats/token]",
    "training [FLOP]",
    "serving [FLOP]",
    "N / compute-optimal N [-]",
    "saved",
)


@dataclass(frozen=True, kw_only=True, eq=False)
class LifetimeSpread:
    """The same demand and quality under several laws.

    Parameters
    ----------
    plans : tuple of Lifetime
        One plan a law, [-]
    """

    plans: tuple[Lifetime, ...]

    @property
    def N(self) -> Array:
        """Optimal sizes, first axis the laws, [parameter]."""
        return np.array([plan.N for plan in self.plans], dtype=np.float64)

    @property
    def D(self) -> Array:
        """Optimal training tokens, first axis the laws, [token]."""
        return np.array([plan.D for plan in self.plans], dtype=np.float64)

    @property
    def size_factor(self) -> Array:
        """Sizes over the compute-optimal ones, first axis the laws, [-]."""
        return np.array([plan.size_factor for plan in self.plans], dtype=np.float64)

    @property
    def total(self) -> Array:
        """Lifetime compute, first axis the laws, [FLOP]."""
        return np.array([plan.total for plan in self.plans], dtype=np.float64)

    @property
    def saved(self) -> Array:
        """Saved shares, first axis the laws, [-]."""
        return np.array([plan.saved for plan in self.plans], dtype=np.float64)

    def _repr_html_(self) -> str:
        rows = [row for plan in self.plans for row in plan.rows()]
        table = html_table(
            _HEADER, rows, "Losses compare within one law only; the other columns do."
        )
        far = [plan.law.label for plan in self.plans if plan.outside()]
        note = f"<p>Beyond the runs it was fitted on: {'; '.join(far)}.</p>"
        return table + note if far else table


def _reference(law: LossLaw, L: Array) -> Allocation:
    """Return the compute-optimal model of a loss; the caller warns for its own plan."""
    floor = closed_form(law).E
    if np.min(L) <= floor:
        least = float(least_params(law, np.min(L)))
        way = (
            f"the least N that can reach it is {least:g}"
            if np.isfinite(least)
            else "no size can reach it with any number of tokens"
        )
        raise InfeasibleError(
            f"loss={np.min(L):.6g} is not above the floor E={floor:.6g} of "
            f"{law.label}: {way}, whatever is served; aim at a higher loss"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExtrapolationWarning)
        return optimal_for_loss(law, L)


def lifetime_optimal(
    law: LossLaw,
    T: ArrayLike,
    *,
    loss: ArrayLike | None = None,
    budget: ArrayLike | None = None,
) -> Lifetime:
    r"""Size and tokens that are cheapest to train and serve together.

    .. math::

       \min_{N, D} \; 6 N D + 2 N T \;\text{ at } L(N, D) = L \qquad\text{or}\qquad
       \min_{N, D} \; L(N, D) \;\text{ at } 6 N D + 2 N T = C

    Both ask for the same tangency:

    .. math:: \alpha A N^{-\alpha} = \beta B D^{-\beta} \left(1 + \frac{T}{3D}\right)

    Parameters
    ----------
    law : LossLaw
        A law with a closed form, [-]
    T : array_like
        Tokens served over the lifetime, prompts and answers; 0 asks for the
        compute-optimal model, [token]
    loss : array_like, optional
        Target loss, broadcast against ``T``, [nats/token]
    budget : array_like, optional
        Lifetime compute in place of a loss, broadcast against ``T``, [FLOP]

    Returns
    -------
    Lifetime
        N [parameter], D [token], L [nats/token] and the compute-optimal model of the
        same loss; shape of ``T`` broadcast

    Raises
    ------
    InfeasibleError
        If the loss is at or below the floor of the law.
    ValueError
        If ``T`` is negative, a number is missing, or not exactly one of ``loss`` and
        ``budget`` is given.

    Warns
    -----
    ExtrapolationWarning
        If the plan leaves the fitted range of the law.

    Notes
    -----
    Assumes that a served token costs 2N whatever the batch and context; money and
    utilisation enter through an effective T, see
    :func:`~chinchilla_lab.inference.effective_demand`. Solved in ratios, in ln D, by
    Newton's method inside a bracket.

    References
    ----------
    :cite:`sardana2024beyond`, section 2 and repository

    Examples
    --------
    >>> from chinchilla_lab.laws import SARDANA_2024
    >>> plan = lifetime_optimal(SARDANA_2024, T=2e12, loss=1.947)
    >>> f"{plan.N:.3e} {plan.D:.3e} {1 - plan.saved:.4f}"
    '2.418e+10 2.657e+12 0.9522'
    """
    closed = closed_form(law)
    t = non_negative("T", T)
    if (loss is None) == (budget is None):
        raise ValueError(
            f"loss={loss!r} and budget={budget!r}: give exactly one of them, a target "
            "to reach or lifetime compute to spend"
        )
    if budget is None:
        assert loss is not None  # one of them was given
        goal = positive("loss", loss)
        # once for each loss, whatever the number of demands
        best = _reference(law, goal)
        t, L = np.broadcast_arrays(t, goal)
        tau = t / best.D
        log_k, log_u = log_factors(closed, np.asarray(tau))
        N, D = best.N * np.exp(log_k), best.D * np.exp(log_u)
    else:
        t, total = np.broadcast_arrays(t, positive("budget", budget))
        N, D = _for_budget(closed, t, total)
        L = np.asarray(closed._loss(N, D))
        best = _same_loss(law, closed, N, D)
        tau = t / best.D
        log_k, log_u = np.log(N / best.N), np.log(D / best.D)
    law.warn_outside(N=N, D=D)
    return Lifetime(
        law=law,
        T=t[()],
        N=N[()],
        D=D[()],
        L=L[()],
        compute_optimal=best,
        saved=np.asarray(saved_share(log_k, log_u, np.asarray(tau)))[()],
    )


def _for_budget(law: AdditiveLaw, T: Array, C: Array) -> tuple[Array, Array]:
    """Split lifetime budgets: (1 + beta) ln d = (1 - alpha) ln(d + T / 3 D_0).

    d counts in the tokens D_0 that the budget would train without any service.
    """
    alpha, beta = law.alpha, law.beta
    nd = C / FLOP_PER_ND
    N_0 = law.G * nd**law.a
    D_0 = nd / N_0
    served = T / (3.0 * D_0)

    def condition(w: Array) -> tuple[Array, Array]:
        # logaddexp: neither e^w nor the demand may overflow
        with np.errstate(divide="ignore"):
            both = np.logaddexp(w, np.log(served))
        value = (1.0 - alpha) * both - (1.0 + beta) * w
        return value, (1.0 - alpha) * np.exp(w - both) - (1.0 + beta)

    # d lies between 1 and a power of 1 + served, on the side that alpha decides
    near = (1.0 - alpha) * np.log1p(served) / (1.0 + beta)
    far = (1.0 - alpha) * np.log1p(served) / (alpha + beta)
    low = np.minimum(np.minimum(near, far), 0.0)
    high = np.maximum(np.maximum(near, far), 0.0)
    w = newton(condition, low, high, low)
    d = np.exp(w)
    return np.asarray(N_0 / (d + served)), np.asarray(D_0 * d)


def _same_loss(law: LossLaw, closed: AdditiveLaw, N: Array, D: Array) -> Allocation:
    """Return the compute-optimal model as good as N and D, without forming L - E."""
    excess = closed.A * N**-closed.alpha + closed.B * D**-closed.beta
    nd = (closed.K / excess) ** (1.0 / closed.gamma)
    size = closed.G * nd**closed.a
    return Allocation(
        law=law,
        C=(FLOP_PER_ND * nd)[()],
        N=size[()],
        D=(nd / size)[()],
        L=np.asarray(closed._loss(N, D))[()],
    )


def lifetime_at(law: LossLaw, N: ArrayLike, T: ArrayLike, loss: ArrayLike) -> Lifetime:
    r"""Lifetime of a model of given size, trained until it reaches a loss.

    .. math:: D = \left(\frac{B}{L - E - A N^{-\alpha}}\right)^{1/\beta}

    Parameters
    ----------
    law : LossLaw
        A law with a closed form, [-]
    N : array_like
        Parameters, [parameter]
    T : array_like
        Tokens served over the lifetime, broadcast against ``N``, [token]
    loss : array_like
        Target loss, broadcast against ``N``, [nats/token]

    Returns
    -------
    Lifetime
        The plan; its saving is negative where the size costs more than the
        compute-optimal one, [-]

    Raises
    ------
    InfeasibleError
        If the size cannot reach the loss; names its floor and the least size.

    Examples
    --------
    A 7B model of the quality of a compute-optimal 13B model:

    >>> from chinchilla_lab import allocation
    >>> from chinchilla_lab.laws import SARDANA_2024
    >>> quality = allocation.optimal_for_params(SARDANA_2024, 13e9).L
    >>> f"{lifetime_at(SARDANA_2024, N=7e9, T=2e12, loss=quality).saved:.3f}"
    '0.174'
    """
    closed = closed_form(law)
    n, t, target = np.broadcast_arrays(
        positive("N", N), non_negative("T", T), positive("loss", loss)
    )
    best = _reference(law, target)
    D = np.asarray(tokens_for_loss(law, n, target))
    spent = n * (3.0 * D + t) / (best.N * (3.0 * best.D + t))
    return Lifetime(
        law=law,
        T=t[()],
        N=n[()],
        D=D[()],
        L=np.asarray(closed._loss(n, D))[()],
        compute_optimal=best,
        saved=np.asarray(1.0 - spent)[()],
    )


def lifetime_spread(
    T: ArrayLike, N: ArrayLike, laws: Iterable[LossLaw] = BAND
) -> LifetimeSpread:
    """Return the lifetime optimum under several laws, for one quality and demand.

    Quality is named by a size: the loss of the compute-optimal model of N parameters
    under each law, since losses do not compare between laws.

    Parameters
    ----------
    T : array_like
        Tokens served over the lifetime, [token]
    N : array_like
        Size whose compute-optimal loss is the quality, broadcast against ``T``,
        [parameter]
    laws : iterable of LossLaw, optional
        Laws to compare, by default :data:`BAND`, [-]

    Returns
    -------
    LifetimeSpread
        One :class:`Lifetime` a law, [-]

    Examples
    --------
    >>> band = lifetime_spread(T=1e12, N=70e9)
    >>> [f"{n / 1e9:.1f}" for n in band.N]
    ['55.0', '55.4', '62.9', '65.7']
    """
    plans = []
    for law in laws:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExtrapolationWarning)
            quality = optimal_for_params(law, N).L
        assert quality is not None  # a law with a loss gave it
        plans.append(lifetime_optimal(law, T, loss=quality))
    if not plans:
        raise ValueError("laws is empty; give at least one law with a loss")
    return LifetimeSpread(plans=tuple(plans))


def implied_demand(law: LossLaw, N: ArrayLike, D: ArrayLike) -> Array:
    r"""Demand for which a model that exists is the cheapest of its quality.

    .. math:: T = 3 D \left(\frac{\alpha A N^{-\alpha}}{\beta B D^{-\beta}} - 1\right)

    Parameters
    ----------
    law : LossLaw
        A law with a loss, [-]
    N : array_like
        Parameters, [parameter]
    D : array_like
        Training tokens, broadcast against ``N``, [token]

    Returns
    -------
    numpy.ndarray or float
        Tokens served; negative where the law calls the model under-trained even for
        no service at all, [token]

    Notes
    -----
    What a run did is no proof of why: the demand is what would justify it, under this
    law and with equally dear tokens.

    Examples
    --------
    >>> from chinchilla_lab.laws import BESIROGLU_2024
    >>> f"{implied_demand(BESIROGLU_2024, N=7e9, D=2e12):.2e}"
    '9.69e+12'
    """
    n, d = np.broadcast_arrays(positive("N", N), positive("D", D))
    with_loss = needs_loss(law, "implied demand")
    by_size, by_data = slopes(with_loss, n, d)
    law.warn_outside(N=n, D=d)
    return np.asarray(3.0 * d * (by_size / by_data - 1.0))[()]


def size_floor(law: LossLaw, loss: ArrayLike) -> Array:
    r"""Size to which the lifetime optimum falls as demand grows without end.

    .. math:: \lim_{T \to \infty} N^*(T) = \left(\frac{A}{L - E}\right)^{1/\alpha}

    Parameters
    ----------
    law : LossLaw
        A law with a loss, [-]
    loss : array_like
        Target loss, [nats/token]

    Returns
    -------
    numpy.ndarray or float
        The least size that can reach the loss, itself only with endless data; infinite
        at or below the floor of the law, [parameter]

    Notes
    -----
    Over the compute-optimal size it is
    :func:`~chinchilla_lab.allocation.least_size_factor`. The approach is slow: at 1e6
    compute-optimal data sets served, SARDANA_2024 is still 12 % above it.

    Examples
    --------
    >>> from chinchilla_lab.laws import BESIROGLU_2024
    >>> f"{size_floor(BESIROGLU_2024, 2.0):.3e}"
    '6.860e+09'
    """
    return least_params(law, loss)
