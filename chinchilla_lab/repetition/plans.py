"""The best size and number of epochs when unique tokens are short."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chinchilla_lab.allocation.optimum import optimal_for_loss as base_for_loss
from chinchilla_lab.allocation.solving import bisect, optimum
from chinchilla_lab.checks import (
    ExtrapolationWarning,
    InfeasibleError,
    non_negative,
    positive,
)
from chinchilla_lab.laws.families import AdditiveLaw, RepeatedDataLaw
from chinchilla_lab.laws.penalty import PenaltyLaw
from chinchilla_lab.laws.published import MUENNIGHOFF_2023_REPEATED
from chinchilla_lab.tables import html_table
from chinchilla_lab.units import FLOP_PER_ND, text

__all__ = [
    "EQUALLY_GOOD",
    "FOLLOWED_EPOCHS",
    "DataHedge",
    "DataPlan",
    "RepetitionLaw",
    "cautions",
    "hedge",
    "least_unique",
    "optimal",
    "optimal_for_loss",
    "tokens_for_loss",
]

Array = NDArray[np.float64]
RepetitionLaw = RepeatedDataLaw | PenaltyLaw

FOLLOWED_EPOCHS = 14.0
"""Epochs up to which MUENNIGHOFF_2023_REPEATED followed the measured rows of 2.81B."""

EQUALLY_GOOD = tuple(
    MUENNIGHOFF_2023_REPEATED.with_(
        R_D=R_D,
        R_N=R_N,
        label=f"R_D* = {R_D:.3g}, R_N* = {R_N:.3g}",
    )
    if R_D != MUENNIGHOFF_2023_REPEATED.R_D
    else MUENNIGHOFF_2023_REPEATED
    for R_D, R_N in ((15.387756, 5.309743), (47.0, 2.33), (100.0, 1.68))
)
"""Pairs of scales that fit the authors' 182 runs almost equally well: summed Huber loss
.015826, .015807 and .015805 (recomputed, base law fixed). The published pair first."""


@dataclass(frozen=True, kw_only=True, eq=False)
class DataPlan:
    """A run on few unique tokens.

    Parameters
    ----------
    law : RepeatedDataLaw or PenaltyLaw
        The law, [-]
    unique : numpy.ndarray or float
        Unique tokens there are, U, [token]
    N : numpy.ndarray or float
        Parameters, [parameter]
    D : numpy.ndarray or float
        Training tokens with repeats, [token]
    L : numpy.ndarray or float
        Loss, [nats/token]
    T : numpy.ndarray or float, optional
        Tokens served over the lifetime, [token]
    """

    law: RepetitionLaw
    unique: Array
    N: Array
    D: Array
    L: Array
    T: Array | float = 0.0

    @property
    def C(self) -> Array:
        """Training compute 6ND, [FLOP]."""
        return FLOP_PER_ND * self.N * self.D

    @property
    def total(self) -> Array:
        """Lifetime compute 6ND + 2NT, [FLOP]."""
        return self.C + 2.0 * self.N * self.T

    @property
    def epochs(self) -> Array:
        """Passes over the unique tokens; below 1 some of them are left, [-]."""
        return self.D / self.unique

    @property
    def repeats(self) -> Array:
        """Passes after the first, R = epochs - 1, never below 0, [-]."""
        return np.maximum(self.epochs - 1.0, 0.0)

    @property
    def effective_tokens(self) -> Array:
        """Fresh tokens that would serve as well, [token].

        Known to laws that discount repeats; a law with a penalty has none.
        """
        if not isinstance(self.law, RepeatedDataLaw):
            raise TypeError(
                f"{self.law.label} adds a penalty and discounts no tokens; compare "
                "losses instead"
            )
        u = np.minimum(self.unique, self.D)
        return self.law.effective_tokens(u, np.maximum(self.D / u, 1.0))

    @property
    def kept(self) -> Array:
        """Effective tokens over tokens trained, [-]."""
        return self.effective_tokens / self.D

    @property
    def per_log_unique(self) -> Array:
        """Loss gained by e-folding the unique tokens, dL/dlnU, [nats/token]."""
        return -_slope(self.law, self.N, self.D, self.unique, "unique")

    @property
    def per_log_compute(self) -> Array:
        """Loss gained by e-folding the compute at the optimum, dL/dlnC, [nats/token].

        Along the optimal path all of it may go to tokens, by the envelope theorem.
        """
        return -_slope(self.law, self.N, self.D, self.unique, "D")

    @property
    def compute_share(self) -> Array:
        """Compute that unlimited data would need for this loss, over the spent, [-]."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExtrapolationWarning)
            return base_for_loss(self.law.base, self.L).C / self.C

    def cautions(self) -> list[str]:
        """Say what of this plan the law does not know."""
        return cautions(self.law, self.N, self.D, self.unique)

    def rows(self) -> list[list[str]]:
        """Return the plan as formatted cells, one row for each budget."""
        cells = np.broadcast_arrays(
            self.C, self.unique, self.N, self.D, self.epochs, self.repeats, self.L
        )
        return [
            [
                self.law.label,
                text(c, "FLOP"),
                text(u, "token"),
                text(n, "parameter"),
                text(d, "token"),
                f"{epochs:.2f}",
                f"{repeats:.2f}",
                f"{loss:.4f}",
            ]
            for c, u, n, d, epochs, repeats, loss in zip(
                *map(np.ravel, cells), strict=True
            )
        ]

    def _repr_html_(self) -> str:
        notes = "".join(f"<li>{note}</li>" for note in self.cautions())
        return html_table(_HEADER, self.rows()) + f"<ul>{notes}</ul>"


_HEADER = (
    "law",
    "C [FLOP]",
    "unique [token]",
    "N [parameter]",
    "D [token]",
    "epochs [-]",
    "repeats [-]",
    "L [nats/token]",
)


def _slope(law: RepetitionLaw, N: Any, D: Any, unique: Any, by: str) -> Array:
    """Return -dL/dln of one argument, by a complex step."""
    moved: dict[str, Any] = {"N": N, "D": D, "unique": unique}
    moved[by] = np.asarray(moved[by]) * (1.0 + 1e-100j)
    found: Any = law._repeated(**moved)
    return np.asarray(-found.imag / 1e-100)[()]


def cautions(
    law: RepetitionLaw, N: ArrayLike, D: ArrayLike, unique: ArrayLike
) -> list[str]:
    """Say what a law of repeated data does not know about a plan.

    Parameters
    ----------
    law : RepeatedDataLaw or PenaltyLaw
        The law, [-]
    N : array_like
        Parameters, [parameter]
    D : array_like
        Training tokens with repeats, [token]
    unique : array_like
        Unique tokens, after deduplication, [token]

    Returns
    -------
    list of str
        One sentence a caution, [-]

    Examples
    --------
    >>> from chinchilla_lab.laws import MUENNIGHOFF_2023_REPEATED as law
    >>> for note in cautions(law, N=4e10, D=6e10, unique=6e10)[-1:]:
    ...     print(note)
    With one epoch and N above 3.06B the law lies above its base law: it calls those parameters surplus.
    """  # noqa: E501 - the sentence is one line, as a user sees it
    n, d, u = np.broadcast_arrays(
        positive("N", N), positive("D", D), positive("unique", unique)
    )
    notes = [
        "Unique tokens are those left after deduplication, not the advertised size.",
        "Differences of loss transfer between settings, absolute losses do not.",
    ]
    if isinstance(law, PenaltyLaw):
        notes.append(
            "P, delta and kappa of the penalty are yours or illustrative: no published "
            "values were found."
        )
    else:
        notes.append(
            "R_D* is weakly identified: values of order 10 to 100 fit the runs equally "
            "well, see EQUALLY_GOOD."
        )
    epochs = d / u
    if epochs.max() > 1.0:
        notes.append(
            f"{text(float(epochs.max()), '')} epochs are "
            f"{text(float(epochs.max()) - 1.0, '')} repeats."
        )
    if isinstance(law, RepeatedDataLaw):
        if epochs.max() > FOLLOWED_EPOCHS:
            notes.append(
                f"Beyond {FOLLOWED_EPOCHS:.0f} epochs measured losses rise again, the "
                "law never does."
            )
        least = np.minimum(u, d)
        once = (epochs <= 1.0) & (n > law.useful_params(least) * (1.0 + 1e-9))
        if np.any(once):
            useful = float(np.min(np.asarray(law.useful_params(least))[once]))
            notes.append(
                f"With one epoch and N above {text(useful, 'parameter')} the law lies "
                "above its base law: it calls those parameters surplus."
            )
    return notes


def _needs_repetition(law: object) -> RepetitionLaw:
    if isinstance(law, RepeatedDataLaw | PenaltyLaw):
        return law
    raise TypeError(
        f"law={getattr(law, 'label', law)!r} knows no repeated data; use "
        "MUENNIGHOFF_2023_REPEATED, or PenaltyLaw(base=law)"
    )


def optimal(law: RepetitionLaw, C: ArrayLike, unique_tokens: ArrayLike) -> DataPlan:
    r"""Size and epochs with the least loss for a budget and some unique tokens.

    .. math::

       \alpha A \tilde N^{-\alpha-1} e^{-R_N/R_N^*} N =
       \beta B \tilde D^{-\beta-1} e^{-R_D/R_D^*} D, \qquad D = \frac{C}{6N}

    where the left side is :math:`\alpha A N^{-\alpha}` while N is at most the useful
    size of the unique tokens.

    Parameters
    ----------
    law : RepeatedDataLaw or PenaltyLaw
        A law that knows repeats, [-]
    C : array_like
        Training compute, [FLOP]
    unique_tokens : array_like
        Unique tokens U, broadcast against ``C``, [token]

    Returns
    -------
    DataPlan
        N [parameter], D [token], L [nats/token]; the compute-optimal plan of the base
        law where its tokens do not exceed the unique ones

    Raises
    ------
    ValueError
        If a number is not finite and positive.

    Warns
    -----
    ExtrapolationWarning
        If N or D leaves the fitted range of the law, or epochs those it followed.

    Notes
    -----
    Both sides of the condition fall with their own argument, so it has one root. The
    penalty law has no such order: the best cell of a grid in ln N is refined on the
    zero of the derivative.

    References
    ----------
    :cite:`muennighoff2023scaling`; the condition is derived here, their repository
    searches a grid of 500 points

    Examples
    --------
    >>> from chinchilla_lab.laws import MUENNIGHOFF_2023_REPEATED as law
    >>> plan = optimal(law, C=1e22, unique_tokens=25e9)
    >>> f"{plan.N:.4e} {plan.epochs:.3f} {plan.repeats:.3f}"
    '7.0262e+09 9.488 8.488'
    """
    known = _needs_repetition(law)
    c, u = np.broadcast_arrays(
        positive("C", C), positive("unique_tokens", unique_tokens)
    )
    N_0, D_0 = optimum(known.base, c)
    fresh = u >= D_0
    # where data suffices nothing is solved: some limited amount stands in
    limited = np.where(fresh, 0.5 * D_0, u)
    top = np.log(c / (FLOP_PER_ND * limited))

    def rising(x: Array) -> Array:
        N = np.exp(x)
        D = c / (FLOP_PER_ND * N)
        by_data = _slope(known, N, D, limited, "D")
        surplus = by_data - _slope(known, N, D, limited, "N")
        return np.where(fresh, x - top, surplus)

    if isinstance(known, RepeatedDataLaw):
        # a little beyond one epoch, where rounding cannot hide the sign
        low, high = np.log(N_0) - 50.0, top + 1e-3
        x = bisect(rising, low, high, f"the optimum of {known.label}")
    else:
        x = _best_cell(known, c, limited, np.log(N_0), top, rising)
    N = np.where(fresh, N_0, np.exp(x))
    D = np.where(fresh, D_0, c / (FLOP_PER_ND * N))
    L = np.asarray(known._repeated(N, D, u))
    if isinstance(known, PenaltyLaw):
        # below delta 1 the first repeat hurts without limit: stop at one epoch exactly
        N_1 = c / (FLOP_PER_ND * u)
        once = ~fresh & (known.base._loss(N_1, u) <= L)
        N, D = np.where(once, N_1, N), np.where(once, u, D)
        L = np.asarray(known._repeated(N, D, u))
    known.warn_outside(N=N, D=D)
    most = float((D / u).max())
    if isinstance(known, RepeatedDataLaw) and most > FOLLOWED_EPOCHS:
        warnings.warn(
            f"{known.label}: {most:.3g} epochs go beyond the {FOLLOWED_EPOCHS:.0f} up "
            "to which the law followed measured losses; the answer is an extrapolation",
            ExtrapolationWarning,
            stacklevel=2,
        )
    return DataPlan(law=known, unique=u[()], N=N[()], D=D[()], L=L[()])


def _best_cell(
    law: PenaltyLaw, C: Array, unique: Array, near: Array, top: Array, rising: Any
) -> Array:
    """Find the lowest cell of a grid, then the zero of the slope inside it."""
    share = np.linspace(0.0, 1.0, 401).reshape(-1, *(1,) * top.ndim)
    start = np.minimum(near, top) - 12.0
    grid = start + share * (top - start)
    N = np.exp(grid)
    loss = law._repeated(N, C / (FLOP_PER_ND * N), unique)
    best = np.expand_dims(np.argmin(loss, axis=0), 0)
    last = len(share) - 1
    low = np.take_along_axis(grid, np.maximum(best - 1, 0), 0)[0]
    high = np.take_along_axis(grid, np.minimum(best + 1, last), 0)[0]
    for _ in range(70):
        middle = 0.5 * (low + high)
        below = rising(middle) < 0.0
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray(0.5 * (low + high))


def _sized(law: RepeatedDataLaw, excess: Array, effective: Array, u: Array) -> Array:
    """Return N that reaches an excess loss with effective tokens; infinite if none."""
    base = law.base
    with np.errstate(invalid="ignore", divide="ignore"):
        room = excess - base.B * effective**-base.beta
        wanted = np.where(room > 0.0, room, np.nan)
        size = (base.A / wanted) ** (1.0 / base.alpha)
        useful = law._useful(u)
        surplus = np.maximum(size / useful - 1.0, 0.0) / law.R_N
        grown = useful * (1.0 - law.R_N * np.log1p(-np.minimum(surplus, 1.0)))
        N = np.where(size > useful, grown, size)
    return np.where(np.isnan(N), np.inf, N)


def least_unique(law: RepeatedDataLaw, L: ArrayLike) -> Array:
    r"""Return the unique tokens below which no repetition reaches a loss.

    .. math:: U_\min = \left(\frac{B \left[\frac{\beta}{\alpha} (1 + R_N^*)^{-\alpha} +
       (1 + R_D^*)^{-\beta}\right]}{L - E}\right)^{1/\beta}

    Parameters
    ----------
    law : RepeatedDataLaw
        A law whose repeats wear out, [-]
    L : array_like
        Target loss, [nats/token]

    Returns
    -------
    numpy.ndarray or float
        The least number, itself only with endless compute; infinite at or below the
        floor of the law, [token]

    Examples
    --------
    >>> from chinchilla_lab.laws import MUENNIGHOFF_2023_REPEATED as law
    >>> f"{least_unique(law, law.floor(25e9)):.3e}"
    '2.500e+10'
    """
    base = law.base
    excess = positive("L", L) - base.E
    worn = base.beta / base.alpha * (1.0 + law.R_N) ** -base.alpha
    worn += law.ceiling**-base.beta
    with np.errstate(invalid="ignore", divide="ignore"):
        U = (base.B * worn / excess) ** (1.0 / base.beta)
    return np.where(excess > 0.0, U, np.inf)[()]


def tokens_for_loss(
    law: RepeatedDataLaw, N: ArrayLike, L: ArrayLike, unique_tokens: ArrayLike
) -> Array:
    r"""Tokens, repeats included, with which a size reaches a loss.

    Parameters
    ----------
    law : RepeatedDataLaw
        A law whose repeats wear out, [-]
    N : array_like
        Parameters, [parameter]
    L : array_like
        Target loss, broadcast against ``N``, [nats/token]
    unique_tokens : array_like
        Unique tokens U, broadcast against ``N``, [token]

    Returns
    -------
    numpy.ndarray or float
        Tokens; NaN where no number of epochs suffices, [token]

    Examples
    --------
    >>> from chinchilla_lab.laws import MUENNIGHOFF_2023_REPEATED as law
    >>> loss = law.loss(7e9, 200e9, unique=25e9)
    >>> f"{tokens_for_loss(law, 7e9, loss, unique_tokens=25e9):.3e}"
    '2.000e+11'
    """
    n, target, u = np.broadcast_arrays(
        positive("N", N), positive("L", L), positive("unique_tokens", unique_tokens)
    )
    most = u * (1.0 + 40.0 * law.R_D)  # e^-40: more epochs change nothing
    bad = np.asarray(law._repeated(n, most, u)) > target
    # where there is no answer look for one that exists, and drop it below
    reachable = np.where(bad, law._repeated(n, most, u), target)
    y = bisect(
        lambda y: reachable - law._repeated(n, np.exp(y), u),
        np.full(n.shape, -200.0),
        np.log(most) + 1e-9,
        "the number of tokens",
    )
    return np.where(bad, np.nan, np.exp(y))[()]


def optimal_for_loss(
    law: RepeatedDataLaw,
    L: ArrayLike,
    unique_tokens: ArrayLike,
    T: ArrayLike = 0.0,
) -> DataPlan:
    r"""Least training or lifetime compute that reaches a loss on few unique tokens.

    .. math:: \min_{N, D} \; 6 N D + 2 N T \;\text{ at } L(N, D, U) = L

    Parameters
    ----------
    law : RepeatedDataLaw
        A law whose repeats wear out, [-]
    L : array_like
        Target loss, [nats/token]
    unique_tokens : array_like
        Unique tokens U, broadcast against ``L``, [token]
    T : array_like, optional
        Tokens served over the lifetime, broadcast against ``L``, [token]

    Returns
    -------
    DataPlan
        N [parameter], D [token] and epochs [-]; ``total`` counts the service, [FLOP]

    Raises
    ------
    InfeasibleError
        If no size and no number of epochs reach the loss; names the floor of these
        tokens and the unique tokens that would do.

    Notes
    -----
    The condition of :func:`optimal` with the right side times :math:`1 + T/3D`.

    Examples
    --------
    >>> from chinchilla_lab import allocation
    >>> from chinchilla_lab.laws import MUENNIGHOFF_2023_REPEATED as law
    >>> best = allocation.optimal_for_params(law.base, 10e9)
    >>> plan = optimal_for_loss(law, best.L, unique_tokens=best.D / 4)
    >>> f"{plan.N / best.N:.2f} {plan.epochs:.1f} {plan.C / best.C:.2f}"
    '0.96 5.8 1.38'
    """
    if not isinstance(law, RepeatedDataLaw):
        raise TypeError(
            f"law={getattr(law, 'label', law)!r} has no least compute for a loss here; "
            "use a RepeatedDataLaw such as MUENNIGHOFF_2023_REPEATED"
        )
    target, u, t = np.broadcast_arrays(
        positive("L", L),
        positive("unique_tokens", unique_tokens),
        non_negative("T", T),
    )
    floor = np.asarray(law.floor(u))
    if np.any(target <= floor):
        i = np.unravel_index(int(np.argmax(target <= floor)), target.shape)
        enough = float(least_unique(law, target[i]))
        way = (
            f"more than {text(enough, 'token')} unique tokens can"
            if np.isfinite(enough)
            else f"no data can, the floor of {law.base.label} is {law.base.E:.4f}"
        )
        raise InfeasibleError(
            f"L={target[i]:.6g} is not above the floor {floor[i]:.4f} of "
            f"unique_tokens={text(float(u[i]), 'token')}, whatever N and epochs: {way}"
        )
    base = law.base
    excess = target - base.E
    # the lifetime optimum of the base law, where its tokens are there to be used
    N_0, D_0 = _fresh_lifetime(base, excess, t)
    fresh = u >= D_0
    limited = np.where(fresh, 0.5 * D_0, u)

    def at(R: Array) -> tuple[Array, Array]:
        wear = -np.expm1(-R / law.R_D)
        N = _sized(law, excess, limited * (1.0 + law.R_D * wear), limited)
        return N, limited * (1.0 + R)

    def rising(R: Array) -> Array:
        N, D = at(R)
        usable = np.isfinite(N)
        n = np.where(usable, N, 1.0)
        by_size = np.where(usable, _slope(law, n, D, limited, "N"), 0.0)
        by_data = np.where(usable, _slope(law, n, D, limited, "D"), 1.0)
        # where data suffices nothing is solved: any root will do
        surplus = by_size - by_data * (1.0 + t / (3.0 * D))
        return np.where(fresh, R - 1.0, surplus)

    zero = np.zeros(target.shape)
    # rounding may hide the sign at one epoch, so look a little before it
    R = bisect(rising, zero - 1e-9, zero + 45.0 * law.R_D, "the number of epochs")
    N, D = at(R)
    N, D = np.where(fresh, N_0, N), np.where(fresh, D_0, D)
    law.warn_outside(N=N, D=D)
    loss = np.asarray(law._repeated(N, D, u))
    return DataPlan(law=law, unique=u[()], N=N[()], D=D[()], L=loss[()], T=t[()])


def _fresh_lifetime(base: AdditiveLaw, excess: Array, T: Array) -> tuple[Array, Array]:
    """Return the lifetime optimum of the base law at an excess loss."""
    alpha, beta = base.alpha, base.beta
    D_c = (base.B * (1.0 + beta / alpha) / excess) ** (1.0 / beta)

    def rising(y: Array) -> Array:
        D = D_c * np.exp(y)
        bill = 1.0 + beta / alpha * (1.0 + T / (3.0 * D))
        return np.asarray(1.0 - base.B * D**-beta * bill / excess)

    # 1 <= u <= 1 + tau / 3 (alpha + beta), as convexity says
    top = np.log1p(T / (3.0 * (alpha + beta) * D_c)) + 1e-9
    y = bisect(rising, np.full(top.shape, -1e-9), top, "the lifetime optimum")
    D = D_c * np.exp(y)
    return (base.A / (excess - base.B * D**-beta)) ** (1.0 / alpha), D


@dataclass(frozen=True, kw_only=True, eq=False)
class DataHedge:
    """The size that regrets least whichever law of repetition is right.

    Parameters
    ----------
    N : float
        Parameters, [parameter]
    D : float
        Training tokens with repeats, [token]
    unique : float
        Unique tokens, [token]
    worst : float
        Loss given away under the law it suits least, [nats/token]
    plans : tuple of DataPlan
        The optimum under each law, [-]
    """

    N: float
    D: float
    unique: float
    worst: float
    plans: tuple[DataPlan, ...]

    @property
    def epochs(self) -> float:
        """Passes over the unique tokens, [-]."""
        return self.D / self.unique

    def _repr_html_(self) -> str:
        rows = [row for plan in self.plans for row in plan.rows()]
        note = (
            f"Least regret: {text(self.N, 'parameter')} for {self.epochs:.1f} epochs "
            f"gives away at most {self.worst:.4f} nats/token."
        )
        return html_table(_HEADER, rows, note)


def hedge(
    C: float,
    unique_tokens: float,
    laws: Sequence[RepetitionLaw] = EQUALLY_GOOD,
) -> DataHedge:
    r"""Size whose loss lies least above the best under the worst of several laws.

    .. math:: \min_N \max_i \; L_i(N, C/6N, U) - \min_{N'} L_i(N', C/6N', U)

    Parameters
    ----------
    C : float
        Training compute, [FLOP]
    unique_tokens : float
        Unique tokens, [token]
    laws : sequence of RepeatedDataLaw or PenaltyLaw, optional
        Laws that may be right, by default :data:`EQUALLY_GOOD`, [-]

    Returns
    -------
    DataHedge
        N [parameter], epochs [-] and the worst regret [nats/token]

    Examples
    --------
    >>> plan = hedge(C=3e22, unique_tokens=60e9)
    >>> f"{plan.N:.1e} {plan.epochs:.1f} {plan.worst:.4f}"
    '9.7e+09 8.6 0.0017'
    """
    if not laws:
        raise ValueError("laws is empty; give at least one law of repeated data")
    c, u = float(positive("C", C)), float(positive("unique_tokens", unique_tokens))
    plans = tuple(optimal(law, c, u) for law in laws)

    def worst(x: float) -> float:
        N = np.asarray(np.exp(x))
        D = np.asarray(c / (FLOP_PER_ND * N))
        regrets = [
            law._repeated(N, D, np.asarray(u)) - plan.L
            for law, plan in zip(laws, plans, strict=True)
        ]
        return float(np.max(regrets))

    sizes = [float(np.log(plan.N)) for plan in plans]
    low, high = min(sizes), max(sizes)
    # each regret falls, then rises, so their maximum does too: golden section
    golden = (np.sqrt(5.0) - 1.0) / 2.0
    for _ in range(80):
        left, right = high - golden * (high - low), low + golden * (high - low)
        if worst(left) < worst(right):
            high = right
        else:
            low = left
    x = 0.5 * (low + high)
    N = float(np.exp(x))
    return DataHedge(
        N=N,
        D=c / (FLOP_PER_ND * N),
        unique=u,
        worst=max(worst(x), 0.0),
        plans=tuple(replace(plan) for plan in plans),
    )
