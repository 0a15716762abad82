"""The best size and number of epochs for a budget."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chinchilla_lab.allocation.solving import newton, optimum
from chinchilla_lab.checks import (
    ExtrapolationWarning,
    positive,
    scalar,
)
from chinchilla_lab.laws.families import RepeatedDataLaw
from chinchilla_lab.laws.penalty import PenaltyLaw
from chinchilla_lab.repetition.results import (
    EQUALLY_GOOD,
    FOLLOWED_EPOCHS,
    HEADER,
    DataPlan,
    RepetitionLaw,
    needs_repetition,
)
from chinchilla_lab.tables import html_table
from chinchilla_lab.units import FLOP_PER_ND, text

__all__ = [
    "DataHedge",
    "hedge",
    "optimal",
]

Array = NDArray[np.float64]
STEP = 1e-100j
HALVINGS = 50  # of a cell of ln N: beyond the last digit


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
    known = needs_repetition(law)
    c, u = np.broadcast_arrays(
        positive("C", C), positive("unique_tokens", unique_tokens)
    )
    N_0, D_0 = optimum(known.base, c)
    fresh = u >= D_0
    # where data suffices nothing is solved: some limited amount stands in
    limited = np.where(fresh, 0.5 * D_0, u)
    top = np.log(c / (FLOP_PER_ND * limited))

    if isinstance(known, RepeatedDataLaw):
        # a little beyond one epoch, where rounding cannot hide the sign
        low, high = np.log(N_0) - 50.0, top + 1e-3
        falling = _condition(known, c / FLOP_PER_ND, limited)
        x = newton(falling, low, high, np.log(N_0))
    else:
        x = _best_cell(known, c, limited, np.log(N_0), top)
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


def _condition(
    law: RepeatedDataLaw, ND: Array, unique: Array
) -> Callable[[Array], tuple[Array, Array]]:
    """Return log of size side over data side of the condition, and its slope in ln N.

    In logarithms the exponentials of both sides are plain sums, so that nothing
    underflows after any number of epochs.
    """
    base = law.base
    useful = law._useful(unique)

    def falling(x: Array) -> tuple[Array, Array]:
        N = np.exp(x)
        D = ND / N
        epochs, wear = D / unique, (D / unique - 1.0) / law.R_D
        surplus = np.maximum(N / useful - 1.0, 0.0) / law.R_N
        size, tokens = law._params(N, unique), law._tokens(unique, epochs)
        by_size = np.log(base.alpha * base.A * N) - (base.alpha + 1.0) * np.log(size)
        by_data = np.log(base.beta * base.B * D) - (base.beta + 1.0) * np.log(tokens)
        of_size = 1.0 - (base.alpha + 1.0) * N * np.exp(-surplus) / size
        of_size = of_size - np.where(surplus > 0.0, N / useful / law.R_N, 0.0)
        of_data = (base.beta + 1.0) * D * np.exp(-wear) / tokens - 1.0
        return (
            (by_size - surplus) - (by_data - wear),
            of_size - (of_data + epochs / law.R_D),
        )

    return falling


def _best_cell(
    law: PenaltyLaw, C: Array, unique: Array, near: Array, top: Array
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
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        n = np.exp(middle)
        d = C / (FLOP_PER_ND * n)
        # the slope along the budget, by a complex step of both
        below = law._repeated(n * (1.0 + STEP), d * (1.0 - STEP), unique).imag < 0.0
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray(0.5 * (low + high))


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
        return html_table(HEADER, rows, note)


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
    c, u = scalar("C", C), scalar("unique_tokens", unique_tokens)
    plans = tuple(optimal(law, c, u) for law in laws)

    def worst(x: Array) -> Array:
        N = np.exp(x)
        D = c / (FLOP_PER_ND * N)
        regrets = [
            law._repeated(N, D, np.asarray(u)) - plan.L
            for law, plan in zip(laws, plans, strict=True)
        ]
        return np.asarray(np.max(regrets, axis=0))

    sizes = [float(np.log(plan.N)) for plan in plans]
    # the loss of a penalty law may have several valleys in ln N, so the maximum may
    # too, and the lowest may lie outside the optima: a wide grid, then its best cell
    once = float(np.log(c / (FLOP_PER_ND * u)))
    grid = np.linspace(min(sizes) - 4.0, max(sizes) + 4.0, 4001)
    grid = np.unique([*grid, *sizes, once])
    for _ in range(7):
        found = worst(grid)
        i = int(np.argmin(found))
        x, least = float(grid[i]), float(found[i])
        grid = np.unique(
            [*np.linspace(grid[max(i - 1, 0)], grid[min(i + 1, len(grid) - 1)], 65), x]
        )
    N = float(np.exp(x))
    return DataHedge(
        N=N,
        D=c / (FLOP_PER_ND * N),
        unique=u,
        worst=max(least, 0.0),
        plans=tuple(replace(plan) for plan in plans),
    )
