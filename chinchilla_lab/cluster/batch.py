"""How large a batch may be: the trade of steps against examples, and what bounds it.

The batch bounds the replicas, the replicas bound the cluster: this is where the size of
a cluster meets the loss.
"""

from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chinchilla_lab.checks import one_of, positive, whole
from chinchilla_lab.sources import Source
from chinchilla_lab.tables import html_table
from chinchilla_lab.units import text

__all__ = [
    "BATCH_LAWS",
    "WARMUP_STEPS_SAVED",
    "BatchBand",
    "BatchLaw",
    "StepsAndExamples",
    "batch_range",
    "best_batch",
    "divisible_batch",
    "even_batches",
    "largest_cluster",
    "steps_and_examples",
    "tokens_per_accelerator",
]

Array = NDArray[np.float64]

WARMUP_STEPS_SAVED = 0.43
"""Steps that a batch grown with the critical one saved, at a slightly better loss, in
one run of 1B parameters, :cite:`merrill2025critical`, abstract [-]."""


@dataclass(frozen=True, kw_only=True)
class StepsAndExamples:
    """What a batch costs in steps and in examples, over the least of each.

    Parameters
    ----------
    steps : numpy.ndarray or float
        Steps over the fewest that any batch needs, [-]
    examples : numpy.ndarray or float
        Examples over the fewest that any batch needs, [-]
    """

    steps: Array
    examples: Array

    def _repr_html_(self) -> str:
        cells = np.broadcast_arrays(self.steps, self.examples)
        rows = [
            [f"{s:.3f}", f"{e:.3f}"] for s, e in zip(*map(np.ravel, cells), strict=True)
        ]
        return html_table(("steps / least [-]", "examples / least [-]"), rows)


def steps_and_examples(batch: ArrayLike, critical: ArrayLike) -> StepsAndExamples:
    r"""Return what a batch costs in steps and examples, against the critical batch.

    .. math:: \frac{S}{S_\min} = 1 + \frac{B_c}{B}, \qquad
       \frac{E}{E_\min} = 1 + \frac{B}{B_c}, \qquad
       \left(\frac{S}{S_\min} - 1\right)\left(\frac{E}{E_\min} - 1\right) = 1

    Parameters
    ----------
    batch : array_like
        Batch B, in the unit of ``critical``, [token]
    critical : array_like
        Critical batch B_c, broadcast against ``batch``, [token]

    Returns
    -------
    StepsAndExamples
        Both costs, each over its least, [-]

    Notes
    -----
    From a quadratic loss and a noisy gradient: the best step of a batch lowers the loss
    by 1 / (1 + B_c / B) of what a noiseless one would. At B = B_c both costs double.
    The relation is derived here and holds as an identity, whatever B_c is.

    References
    ----------
    :cite:`mccandlish2018empirical`, trade of steps against examples

    Examples
    --------
    >>> both = steps_and_examples([1e6, 4e6, 16e6], critical=4e6)
    >>> both.steps.tolist(), both.examples.tolist()
    ([5.0, 2.0, 1.25], [1.25, 2.0, 5.0])
    """
    ratio = positive("batch", batch) / positive("critical", critical)
    return StepsAndExamples(steps=(1.0 + 1.0 / ratio)[()], examples=(1.0 + ratio)[()])


def best_batch(
    critical: ArrayLike, fixed_seconds: ArrayLike, seconds_per_token: ArrayLike
) -> Array:
    r"""Batch with which a loss is reached soonest.

    .. math:: t = (\tau_0 + \kappa B)\,S_\min\left(1 + \frac{B_c}{B}\right)
       \quad\Rightarrow\quad B^* = \sqrt{\frac{B_c\,\tau_0}{\kappa}}

    Parameters
    ----------
    critical : array_like
        Critical batch B_c, [token]
    fixed_seconds : array_like
        Part of a step that does not grow with the batch, [s]
    seconds_per_token : array_like
        Part of a step that does, for each token, [s/token]

    Returns
    -------
    numpy.ndarray or float
        The batch, [token]

    Examples
    --------
    >>> f"{best_batch(65.3e6, 2.714, 1.430e-3 / 4096) / 1e6:.1f}M tokens"
    '22.5M tokens'
    """
    ratio = positive("fixed_seconds", fixed_seconds) / positive(
        "seconds_per_token", seconds_per_token
    )
    return np.sqrt(positive("critical", critical) * ratio)[()]


@dataclass(frozen=True, kw_only=True)
class BatchBand:
    """A batch known to a factor: a band, never a point.

    Parameters
    ----------
    low : numpy.ndarray or float
        Lower end, [token]
    value : numpy.ndarray or float
        What the law says, [token]
    high : numpy.ndarray or float
        Upper end, [token]
    label : str
        The law, [-]
    """

    low: Array
    value: Array
    high: Array
    label: str

    def _repr_html_(self) -> str:
        cells = np.broadcast_arrays(self.low, self.value, self.high)
        rows = [
            [text(float(x), "token") for x in row]
            for row in zip(*map(np.ravel, cells), strict=True)
        ]
        head = ("from [token]", "law [token]", "to [token]")
        return html_table(head, rows, self.label)


@dataclass(frozen=True, kw_only=True)
class BatchLaw:
    r"""How a batch grows with compute or with data.

    .. math:: B = B_0 \left(\frac{x}{x_0}\right)^{e}, \qquad x = C \text{ or } D

    Parameters
    ----------
    name : str
        Key in :data:`BATCH_LAWS`, [-]
    label : str
        Short name, [-]
    along : {"C", "D"}
        What the batch grows with, [-]
    exponent : tuple of float
        Least, usual and largest exponent, [-]
    coefficient : float, optional
        B at x = 1; None where no source that was read gives it, [token]
    spread : float
        Factor up and down within which the batch is known, [-]
    fitted : tuple of float, optional
        Range of x of the runs behind the law, [FLOP or token]
    C_counts : str
        How the source counts compute, [-]
    source : Source
        Publication and place, [-]
    """

    name: str
    label: str
    along: Literal["C", "D"]
    exponent: tuple[float, float, float]
    coefficient: float | None
    spread: float
    source: Source
    fitted: tuple[float, float] | None = None
    C_counts: str = ""

    def batch(
        self, x: ArrayLike, anchor: tuple[float, float] | None = None
    ) -> BatchBand:
        """Return the batch at some compute or data, as a band.

        Parameters
        ----------
        x : array_like
            Compute [FLOP] or tokens, as ``along`` says, [FLOP or token]
        anchor : tuple of float, optional
            A batch [token] and the x at which it was found; needed where the law knows
            only growth, [token and FLOP or token]

        Returns
        -------
        BatchBand
            Lower end, law, upper end, [token]

        Raises
        ------
        ValueError
            If the law has no coefficient and no anchor is given.

        Notes
        -----
        The band holds the spread of exponents, as seen from the anchor, and the law's
        own factor.

        Examples
        --------
        >>> BATCH_LAWS["deepseek-2024"].batch(8.4e22).value.round(-5)
        np.float64(9200000.0)
        """
        at = positive(self.along, x)
        if anchor is not None:
            first = float(positive("anchor batch", anchor[0]))
            ratio = at / float(positive("anchor", anchor[1]))
            made = [first * ratio**e for e in self.exponent]
        elif self.coefficient is None:
            raise ValueError(
                f"{self.label} gives the growth of the batch, not its size; give "
                f"anchor=(batch, {self.along}) of a run whose batch you know"
            )
        else:
            made = [self.coefficient * at ** self.exponent[1]] * 3
        return BatchBand(
            low=(np.minimum(made[0], made[2]) / self.spread)[()],
            value=np.asarray(made[1])[()],
            high=(np.maximum(made[0], made[2]) * self.spread)[()],
            label=self.label,
        )


_LAWS = (
    BatchLaw(
        name="deepseek-2024",
        label="DeepSeek LLM 2024, near-optimal batch",
        along="C",
        exponent=(0.3271, 0.3271, 0.3271),
        coefficient=0.2920,
        # Llama 3 used 4M and 16M tokens where the law says 9.2M and 68M
        spread=4.3,
        fitted=(1e17, 2e19),
        C_counts="M D, M being non-embedding FLOP per token",
        source=Source(
            cite="deepseek2024llm",
            where="formula of the near-optimal batch",
            evidence="secondary",
            note="far beyond its runs at every budget of interest",
        ),
    ),
    BatchLaw(
        name="step-law-2025",
        label="Step Law 2025, optimal batch",
        along="D",
        exponent=(0.571, 0.571, 0.571),
        coefficient=0.58,
        # Llama 3 405B used 16M tokens where the law says 20M
        spread=1.3,
        source=Source(
            cite="li2025predictable",
            where="formula of the optimal batch",
            evidence="secondary",
            note="the same for all sizes; the spread is that of one run beside it",
        ),
    ),
    BatchLaw(
        name="zhang-2024",
        label="Zhang et al. 2024, critical batch at 20 % more steps",
        along="D",
        # other studies: 0.37 to 0.57
        exponent=(0.37, 0.47, 0.57),
        coefficient=None,
        spread=1.0,
        source=Source(
            cite="zhang2024critical",
            where="growth of the critical batch with tokens",
            evidence="secondary",
            note="hardly depends on N; its size was not read at the source",
        ),
    ),
)

BATCH_LAWS: dict[str, BatchLaw] = {law.name: law for law in _LAWS}
"""Laws of the batch by name; they differ in what they call a good batch."""


def batch_range(C: ArrayLike, D: ArrayLike) -> BatchBand:
    """Return what all laws with a size say of the batch of a run.

    Parameters
    ----------
    C : array_like
        Training compute, [FLOP]
    D : array_like
        Training tokens, broadcast against ``C``, [token]

    Returns
    -------
    BatchBand
        Least of the lower ends, geometric mean of the laws, largest of the upper ends,
        [token]

    Notes
    -----
    The laws differ in what they hold constant and in what they call good: the range is
    a disagreement, not an error bar. ``zhang-2024`` knows growth alone and is left out,
    as are coefficients that were seen in secondary sources that disagree.

    References
    ----------
    :cite:`deepseek2024llm`; :cite:`li2025predictable`

    Examples
    --------
    >>> found = batch_range(C=3.8e25, D=15.6e12)  # Llama 3 405B, which used 16M
    >>> f"{found.low / 1e6:.0f}M to {found.high / 1e6:.0f}M tokens"
    '15M to 292M tokens'
    """
    x = {"C": positive("C", C), "D": positive("D", D)}
    sized = [law for law in _LAWS if law.coefficient is not None]
    said = [law.batch(x[law.along]) for law in sized]
    lows, values, highs = (
        np.array(np.broadcast_arrays(*(getattr(b, end) for b in said)))
        for end in ("low", "value", "high")
    )
    return BatchBand(
        low=lows.min(axis=0)[()],
        value=np.exp(np.log(values).mean(axis=0))[()],
        high=highs.max(axis=0)[()],
        label="; ".join(law.label for law in sized),
    )


def tokens_per_accelerator(batch_tokens: ArrayLike, n_accelerators: int) -> Array:
    r"""Tokens that an accelerator works on in a step.

    .. math:: \frac{B}{n}

    Parameters
    ----------
    batch_tokens : array_like
        Batch B, [token]
    n_accelerators : int
        Accelerators n, [-]

    Returns
    -------
    numpy.ndarray or float
        Tokens, [token]

    Examples
    --------
    >>> float(tokens_per_accelerator(2**22, 16384))
    256.0
    """
    n = whole("n_accelerators", n_accelerators)
    return (positive("batch_tokens", batch_tokens) / n)[()]


def largest_cluster(batch_tokens: float, least_tokens: float) -> int:
    r"""Most accelerators that a batch can feed.

    .. math:: n = \left\lfloor \frac{B}{B_\min} \right\rfloor

    Parameters
    ----------
    batch_tokens : float
        Batch B, [token]
    least_tokens : float
        Tokens below which an accelerator waits for its links, as of
        :func:`~chinchilla_lab.cluster.compute_bound_tokens`, [token]

    Returns
    -------
    int
        Accelerators, [-]

    Examples
    --------
    >>> largest_cluster(2**22, 2472), largest_cluster(2**26, 2472.5)
    (1696, 27142)
    """
    room = positive("batch_tokens", batch_tokens) / positive(
        "least_tokens", least_tokens
    )
    return int(room)


def divisible_batch(most: int, n_accelerators: int, align: str = "most") -> int:
    """Return a batch that replicas can share out evenly.

    Parameters
    ----------
    most : int
        Sequences that the batch may hold, [sequence]
    n_accelerators : int
        Accelerators, [-]
    align : {"most", "replicas"}, optional
        As many sequences as possible, or a multiple of the most replicas possible, [-]

    Returns
    -------
    int
        Sequences, a multiple of a large divisor of the cluster, [sequence]

    Notes
    -----
    A batch that shares no large divisor with the cluster leaves the search few
    layouts, and what comes out is the arithmetic of divisors.

    Examples
    --------
    >>> divisible_batch(2072, 64), divisible_batch(2072, 2500)
    (2072, 2000)
    >>> divisible_batch(2072, 64, align="replicas")
    2048
    """
    top, n = whole("most", most), whole("n_accelerators", n_accelerators)
    one_of("align", align, ("most", "replicas"))
    divisors = [k for k in range(1, min(n, top) + 1) if n % k == 0]
    if align == "replicas":
        return (top // divisors[-1]) * divisors[-1]
    large = [k for k in divisors if 8 * k >= divisors[-1]]
    return max((top // k) * k for k in large)


# micro-batches that a search of layouts tries
MICRO = (1, 2, 4, 8)


@cache
def even_batches(
    most: int, n_accelerators: int, slack: float = 2e-3
) -> tuple[int, ...]:
    r"""Return the largest batches that each kind of layout can share out evenly.

    .. math:: B_q = \left\lfloor \frac{B_\max}{q} \right\rfloor q, \qquad
       q = k\,b, \quad k \mid n, \quad b \in \{1, 2, 4, 8\}

    Parameters
    ----------
    most : int
        Sequences that the batch may hold, [sequence]
    n_accelerators : int
        Accelerators n, [-]
    slack : float, optional
        Share of a batch that may be given up for one that more layouts divide, [-]

    Returns
    -------
    tuple of int
        Batches, the largest first, [sequence]

    Notes
    -----
    A layout takes batches that are multiples of its replicas times its micro-batch, and
    of its stages too where these are interleaved: q is that product. Its best batch is
    the largest multiple within the limit, so a tighter limit gives every layout a
    smaller batch, never a better one. A single batch at the limit does not: 976 leaves
    16 replicas no micro-batch but 1, where 608 leaves them 2.

    Examples
    --------
    >>> even_batches(976, 16), even_batches(610, 16)
    ((976, 960, 896), (610, 608, 576, 512))
    """
    top, n = whole("most", most), whole("n_accelerators", n_accelerators)
    # the products of all divisors with all micro-batches, the largest first
    quanta = {k * b for k in range(1, min(n, top) + 1) if n % k == 0 for b in MICRO}
    kept: list[int] = []
    for q in sorted((q for q in quanta if q <= top), reverse=True):
        batch = top // q * q
        if not any(k % q == 0 and k >= (1.0 - slack) * batch for k in kept):
            kept.append(batch)
    return tuple(sorted(kept, reverse=True))
