"""Shrink, repeat or buy data: the three choices at equal compute, in one call."""

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chinchilla_lab.allocation.solving import optimum
from chinchilla_lab.checks import (
    ExtrapolationWarning,
    fraction,
    non_negative,
    positive,
    scalar,
    whole,
)
from chinchilla_lab.repetition.plans import optimal
from chinchilla_lab.repetition.results import (
    DataPlan,
    RepetitionLaw,
    cautions,
    needs_repetition,
)
from chinchilla_lab.tables import html_table
from chinchilla_lab.units import FLOP_PER_ND, text

__all__ = [
    "Choice",
    "Choices",
    "accumulated_variance",
    "break_even_quality",
    "loss_with_added",
    "three_choices",
]

Array = NDArray[np.float64]
_NO_GAIN = 1e-12  # nats/token
_FLOP_PER_TOKEN = 2.0  # a generated token costs one forward pass


@dataclass(frozen=True, kw_only=True)
class Choice:
    """One way to spend a budget on too few unique tokens.

    Parameters
    ----------
    name : str
        Key of the choice, [-]
    label : str
        What is done, [-]
    N : float
        Parameters; NaN where nothing is left to train with, [parameter]
    D : float
        Training tokens with repeats, [token]
    epochs : float
        Passes over the data at hand, [-]
    L : float
        Loss, [nats/token]
    spent : float
        Compute used, generation of tokens included, [FLOP]
    """

    name: str
    label: str
    N: float
    D: float
    epochs: float
    L: float
    spent: float


@dataclass(frozen=True, kw_only=True)
class Choices:
    """The choices side by side, and which wins.

    Parameters
    ----------
    law : RepeatedDataLaw or PenaltyLaw
        The law that compared them, [-]
    C : float
        Training compute, [FLOP]
    unique : float
        Unique tokens at hand, [token]
    extra : float
        Synthetic or filtered tokens that could be added, [token]
    quality : float
        Worth of an added token, 1 for fresh text, [-]
    generation : float
        Compute to make them, [FLOP]
    break_even : float
        Quality from which adding them beats repeating; infinite if none does, [-]
    options : tuple of Choice
        The choices open to the team, then two bounds that are not, [-]
    """

    law: RepetitionLaw
    C: float
    unique: float
    extra: float
    quality: float
    generation: float
    break_even: float
    options: tuple[Choice, ...]

    def __getitem__(self, name: str) -> Choice:
        found = {option.name: option for option in self.options}
        if name not in found:
            raise KeyError(f"no choice {name!r}; there are {', '.join(found)}")
        return found[name]

    @property
    def winner(self) -> Choice:
        """The choice with the least loss among those open to the team."""
        open_to_us = [o for o in self.options if o.name not in ("fresh", "unlimited")]
        # of equals the one that spends less
        return min(
            open_to_us,
            key=lambda o: (np.inf if np.isnan(o.L) else round(o.L, 12), o.spent),
        )

    def verdict(self) -> list[str]:
        """Say when each choice wins, one sentence each."""
        small, repeat = self["small"], self["repeat"]
        notes = []
        if self.unique >= self["unlimited"].D:
            notes.append(
                "The compute-optimal plan needs no more than the unique tokens: "
                "nothing is short, and nothing need be repeated."
            )
        else:
            notes.append(
                f"A small model on one epoch uses {small.spent / self.C:.1%} of the "
                "budget: it is right when compute is as short as data, and gives away "
                f"{small.L - repeat.L:.4f} nats/token here."
            )
            notes.append(
                f"Repeating {text(repeat.epochs, '')} times on "
                f"{text(repeat.N, 'parameter')} is the best use of the tokens at hand."
            )
        if np.isfinite(self.break_even):
            notes.append(
                f"{text(self.extra, 'token')} more win if their quality is above "
                f"{self.break_even:.2f}; {self.quality:.2f} was stated. Measure it on "
                "a small run."
            )
        elif self.unique >= self["unlimited"].D:
            notes.append(
                f"{text(self.extra, 'token')} more cannot help, of whatever quality: "
                "the tokens at hand are not used up."
            )
        else:
            notes.append(
                f"{text(self.extra, 'token')} more win at no quality: making them "
                f"takes {self.generation / self.C:.0%} of the budget."
            )
        return notes

    def _repr_html_(self) -> str:
        rows = [
            [
                o.label,
                *(
                    ["-"] * 4
                    if np.isnan(o.L)
                    else [
                        text(o.N, "parameter"),
                        text(o.D, "token"),
                        f"{o.epochs:.2f}",
                        f"{o.L:.4f}",
                    ]
                ),
                f"{o.spent / self.C:.1%}",
            ]
            for o in self.options
        ]
        head = (
            "choice",
            "N [parameter]",
            "D [token]",
            "epochs [-]",
            "L [nats/token]",
            "budget used",
        )
        repeat = self["repeat"]
        said = [
            *self.verdict(),
            *cautions(self.law, repeat.N, repeat.D, self.unique),
        ]
        return html_table(head, rows) + (
            f"<ul>{''.join(f'<li>{note}</li>' for note in said)}</ul>"
        )


def _quality(name: str, x: ArrayLike) -> Array:
    return fraction(name, x, "1 is fresh text of the same kind")


def _quiet_optimal(law: RepetitionLaw, C: float, unique: float) -> Choice:
    plan = _quiet_plans(law, np.asarray(C), np.asarray(unique))
    return Choice(
        name="",
        label="",
        N=float(plan.N),
        D=float(plan.D),
        epochs=float(plan.epochs),
        L=float(plan.L),
        spent=C,
    )


def _quiet_plans(law: RepetitionLaw, C: Array, unique: Array) -> DataPlan:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExtrapolationWarning)
        return optimal(law, C, unique)


def _with_extra(
    law: RepetitionLaw, C: float, unique: float, extra: float, q: float, made: float
) -> Choice:
    """Spend the budget on a pool of unique + extra tokens that counts as U + q S."""
    left = C - made
    label = f"add {text(extra, 'token')} of quality {q:.2g}"
    if left <= 0.0:
        nan = float("nan")
        return Choice(name="add", label=label, N=nan, D=nan, epochs=nan, L=nan, spent=C)
    worth = (unique + q * extra) / (unique + extra)
    # a pool token is worth less, so a pool epoch costs more than its worth
    best = _quiet_optimal(law, left * worth, unique + q * extra)
    return Choice(
        name="add",
        label=label,
        N=best.N,
        D=best.D / worth,
        epochs=best.epochs,
        L=best.L,
        spent=C,
    )


def loss_with_added(
    law: RepetitionLaw,
    C: ArrayLike,
    unique_tokens: ArrayLike,
    extra_tokens: ArrayLike,
    quality: ArrayLike,
    generator_params: ArrayLike = 0.0,
) -> Array:
    """Least loss of a budget on a pool of unique and added tokens.

    Parameters
    ----------
    law : RepeatedDataLaw or PenaltyLaw
        A law that knows repeats, [-]
    C : array_like
        Training compute, generation included, [FLOP]
    unique_tokens : array_like
        Unique tokens at hand U, broadcast against ``C``, [token]
    extra_tokens : array_like
        Tokens added S, broadcast against ``C``, [token]
    quality : array_like
        Worth q of an added token, 1 for fresh text, broadcast against ``C``, [-]
    generator_params : array_like, optional
        Size of the model that writes them, 0 if they are free, [parameter]

    Returns
    -------
    numpy.ndarray or float
        Loss; NaN where generation takes the whole budget, [nats/token]

    Notes
    -----
    The pool of U + S tokens counts as U + q S, an assumption of this library.

    Examples
    --------
    >>> from chinchilla_lab.laws import MUENNIGHOFF_2023_REPEATED as law
    >>> loss_with_added(law, 3e22, 60e9, 60e9, quality=[0.6, 1.0]).round(4)
    array([2.1494, 2.1372])
    """
    c, u, s, q, g = np.broadcast_arrays(
        positive("C", C),
        positive("unique_tokens", unique_tokens),
        positive("extra_tokens", extra_tokens),
        _quality("quality", quality),
        non_negative("generator_params", generator_params),
    )
    left = c - _FLOP_PER_TOKEN * g * s
    pool = u + q * s
    # where nothing is left any budget will do, it is dropped below
    spent = np.where(left > 0.0, left, c) * pool / (u + s)
    L = np.asarray(_quiet_plans(law, spent, pool).L)
    return np.where(left > 0.0, L, np.nan)[()]


def break_even_quality(
    law: RepetitionLaw,
    C: float,
    unique_tokens: float,
    extra_tokens: float,
    generator_params: float = 0.0,
) -> float:
    r"""Quality from which added tokens beat repeating the tokens at hand.

    .. math:: L\left(C - 2 N_g S; \; U + S \text{ worth } U + q S\right) = L(C; U)

    Parameters
    ----------
    law : RepeatedDataLaw or PenaltyLaw
        A law that knows repeats, [-]
    C : float
        Training compute, generation included, [FLOP]
    unique_tokens : float
        Unique tokens at hand U, [token]
    extra_tokens : float
        Tokens added S, [token]
    generator_params : float, optional
        Size of the model that writes them, 0 if they are free, [parameter]

    Returns
    -------
    float
        The quality q; infinite if no quality up to 1 pays, as
        where generation is too dear or the tokens at hand already suffice, [-]

    Notes
    -----
    The pool of U + S tokens counting as U + q S is an assumption of this library, not a
    published law: it says what to measure, not what comes out.

    Examples
    --------
    >>> from chinchilla_lab.laws import MUENNIGHOFF_2023_REPEATED as law
    >>> f"{break_even_quality(law, 3e22, 60e9, 60e9, generator_params=7e9):.2f}"
    '0.62'
    """
    budget, U = scalar("C", C), scalar("unique_tokens", unique_tokens)
    S = scalar("extra_tokens", extra_tokens)
    size = scalar("generator_params", generator_params, non_negative)
    goal = _quiet_optimal(law, budget, U).L
    low, high = 1e-12, 1.0  # a quality of 0 is no token at all
    # a grid, then a grid in its cell: few calls, each takes all its points at once
    for _ in range(3):
        q = np.linspace(low, high, 17)
        gain = goal - loss_with_added(law, budget, U, S, q, size)
        # NaN where generation takes it all; rounding where nothing is short
        if high == 1.0 and not gain[-1] > _NO_GAIN:
            return float("inf")
        last = max(int(np.argmax(gain >= 0.0)), 1)
        low, high = float(q[last - 1]), float(q[last])
    # the cell is 2e-4 wide: a line through its ends is off by less than 1e-7
    share = gain[last] / (gain[last] - gain[last - 1])
    return high - float(share) * (high - low)


def three_choices(
    law: RepetitionLaw,
    C: float,
    unique_tokens: float,
    extra_tokens: float,
    quality: float,
    generator_params: float = 0.0,
    tokens_per_param: float | None = None,
) -> Choices:
    """Compare shrinking, repeating and adding data for one budget.

    Parameters
    ----------
    law : RepeatedDataLaw or PenaltyLaw
        A law that knows repeats, [-]
    C : float
        Training compute, generation included, [FLOP]
    unique_tokens : float
        Unique tokens at hand, after deduplication, [token]
    extra_tokens : float
        Synthetic or filtered tokens that could be added, [token]
    quality : float
        Worth of an added token, 1 for fresh text: yours to measure, [-]
    generator_params : float, optional
        Size of the model that writes them, 0 if they are free, [parameter]
    tokens_per_param : float, optional
        Ratio of the small model; by default the law's own for as many tokens, which is
        19.6 for MUENNIGHOFF_2023_C4, [token/parameter]

    Returns
    -------
    Choices
        ``small``: one epoch at the ratio; ``small_repeated``: that size with the whole
        budget; ``repeat``: the optimum; ``repeat_ratio``: the compute-optimal shape
        repeated; ``add``: more data; and as bounds ``fresh``, as many fresh tokens for
        nothing, and ``unlimited`` data, [-]

    Examples
    --------
    >>> from chinchilla_lab.laws import MUENNIGHOFF_2023_REPEATED as law
    >>> table = three_choices(law, C=3e22, unique_tokens=60e9, extra_tokens=60e9,
    ...                       quality=0.8, generator_params=7e9)
    >>> [f"{option.name} {option.L:.3f}" for option in table.options][:3]
    ['small 2.340', 'small_repeated 2.198', 'repeat 2.150']
    >>> table.winner.name
    'add'
    """
    law = needs_repetition(law)
    budget, U = scalar("C", C), scalar("unique_tokens", unique_tokens)
    S = scalar("extra_tokens", extra_tokens)
    q = scalar("quality", quality, _quality)
    size = scalar("generator_params", generator_params, non_negative)
    made = _FLOP_PER_TOKEN * S * size
    if tokens_per_param is None:
        base = law.base
        ratio = U / (base.G * (base.G * U) ** (base.beta / base.alpha))
    else:
        ratio = scalar("tokens_per_param", tokens_per_param)

    def given(name: str, label: str, N: float, D: float) -> Choice:
        loss = law._repeated(np.asarray(N), np.asarray(D), np.asarray(U))
        return Choice(
            name=name,
            label=label,
            N=N,
            D=D,
            epochs=D / U,
            L=float(loss),
            spent=FLOP_PER_ND * N * D,
        )

    # one epoch at the ratio, or less where the budget ends first
    tokens = min(U, float(np.sqrt(budget * ratio / FLOP_PER_ND)))
    N_small = tokens / ratio
    N_0, D_0 = (float(x) for x in optimum(law.base, np.asarray(budget)))
    repeat = _quiet_optimal(law, budget, U)
    fresh = _quiet_optimal(law, budget, U + S)
    options = (
        given("small", f"{ratio:.3g} tokens per parameter, one epoch", N_small, tokens),
        given(
            "small_repeated",
            "that size, the whole budget",
            N_small,
            budget / (FLOP_PER_ND * N_small),
        ),
        Choice(**(vars(repeat) | {"name": "repeat", "label": "repeat, best size"})),
        given("repeat_ratio", "repeat, compute-optimal shape", N_0, D_0),
        _with_extra(law, budget, U, S, q, made),
        Choice(**(vars(fresh) | {"name": "fresh", "label": "as many fresh tokens"})),
        Choice(
            name="unlimited",
            label="unlimited data",
            N=N_0,
            D=D_0,
            epochs=1.0,
            L=float(law.base._loss(np.asarray(N_0), np.asarray(D_0))),
            spent=budget,
        ),
    )
    return Choices(
        law=law,
        C=budget,
        unique=U,
        extra=S,
        quality=q,
        generation=made,
        break_even=break_even_quality(law, budget, U, S, generator_params),
        options=options,
    )


def accumulated_variance(generations: int) -> float:
    r"""Variance after training on one's own data for some generations, all data kept.

    .. math:: \sum_{i=1}^{n} \frac{1}{i^2} \;\to\; \frac{\pi^2}{6}

    Parameters
    ----------
    generations : int
        Generations n, [-]

    Returns
    -------
    float
        Variance over that of the first fit, [-]

    Notes
    -----
    A toy model: each generation refits a mean. Replacing the data instead adds 1 a
    generation without end.

    References
    ----------
    :cite:`gerstgrasser2024model`, :cite:`dey2024synthetic`, abstracts

    Examples
    --------
    >>> f"{accumulated_variance(20):.4f}"
    '1.5962'
    """
    n = np.arange(1, whole("generations", generations) + 1, dtype=np.float64)
    return float(np.sum(n**-2.0))
