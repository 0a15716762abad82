"""Training FLOP per token under every convention that is in use."""

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chinchilla_lab.checks import one_of, positive, whole
from chinchilla_lab.shape.transformer import TransformerShape
from chinchilla_lab.sources import Source
from chinchilla_lab.tables import html_table
from chinchilla_lab.units import text

__all__ = [
    "CONVENTIONS",
    "Convention",
    "FlopCount",
    "causal_crossover",
    "compare_conventions",
    "flops_per_token",
    "optimizer_share",
    "tokens_for_compute",
    "training_compute",
]

Array = NDArray[np.float64]

# forward, gradient of the input, gradient of the weight: three products a matrix,
# each of 2 FLOP per weight and token
TRAIN = 3.0
FLOP_PER_WEIGHT = 2.0 * TRAIN


@dataclass(frozen=True, kw_only=True)
class FlopCount:
    """Training FLOP for one token, itemised.

    Parameters
    ----------
    body : float
        Matrices of the layers, [FLOP/token]
    attention : float
        Scores and weighted sums, which no parameter stands for, [FLOP/token]
    head : float
        Logits, [FLOP/token]
    embedding : float
        Input side: 0 in fact, since a row is looked up, but some counts add it,
        [FLOP/token]
    """

    body: float
    attention: float = 0.0
    head: float = 0.0
    embedding: float = 0.0

    @property
    def total(self) -> float:
        """Sum of the items, [FLOP/token]."""
        return float(sum(getattr(self, f.name) for f in fields(self)))

    def _repr_html_(self) -> str:
        rows = [[f.name, f"{getattr(self, f.name):.4g}"] for f in fields(self)]
        return html_table(
            ("item", "training FLOP per token"), [*rows, ["total", f"{self.total:.4g}"]]
        )


Rule = Callable[[TransformerShape, int], FlopCount]


@dataclass(frozen=True, kw_only=True)
class Convention:
    """One way of counting.

    Parameters
    ----------
    label : str
        Short name, [-]
    formula : str
        FLOP per token, as text, [-]
    source : Source
        Who counts so, [-]
    rule : callable
        (shape, seq_len) to :class:`FlopCount`, [-]
    """

    label: str
    formula: str
    source: Source
    rule: Rule


def _parts(shape: TransformerShape) -> tuple[float, float, float]:
    """Return active body parameters, one vocabulary matrix and the other tables."""
    n = shape.params()
    body = float(n.non_embedding - n.idle)
    head = float(n.input_embedding)
    return body, head, float(n.head + n.positions)


def _scores(shape: TransformerShape, seq_len: int, causal: bool) -> float:
    """FLOP of scores and weighted sums, training: 12 L T h k, or half with a mask."""
    full = 4.0 * shape.n_layers * seq_len * shape.attention_width * TRAIN
    return full / 2.0 if causal else full


def _six_total(shape: TransformerShape, seq_len: int) -> FlopCount:
    body, head, rest = _parts(shape)
    return FlopCount(body=6 * body, head=6 * head, embedding=6 * rest)


def _six_body_and_head(shape: TransformerShape, seq_len: int) -> FlopCount:
    body, head, _ = _parts(shape)
    return FlopCount(body=6 * body, head=6 * head)


def _six_non_embedding(shape: TransformerShape, seq_len: int) -> FlopCount:
    return FlopCount(body=6 * _parts(shape)[0])


def _kaplan(shape: TransformerShape, seq_len: int) -> FlopCount:
    return FlopCount(
        body=6 * _parts(shape)[0], attention=_scores(shape, seq_len, causal=True)
    )


def _porian(shape: TransformerShape, seq_len: int) -> FlopCount:
    body, head, _ = _parts(shape)
    return FlopCount(
        body=6 * body, head=6 * head, attention=_scores(shape, seq_len, causal=True)
    )


def _palm(shape: TransformerShape, seq_len: int) -> FlopCount:
    body, head, _ = _parts(shape)
    return FlopCount(
        body=6 * body, head=6 * head, attention=_scores(shape, seq_len, causal=False)
    )


def _deepseek(shape: TransformerShape, seq_len: int) -> FlopCount:
    layers, d = shape.n_layers, shape.d_model
    return FlopCount(body=72.0 * layers * d * d, attention=12.0 * layers * d * seq_len)


def _appendix_f(shape: TransformerShape, seq_len: int) -> FlopCount:
    """Every term of the appendix, in its order: a layer, then both vocabulary terms."""
    d, width, t = shape.d_model, shape.attention_width, seq_len
    projections = 6.0 * d * width + 2.0 * width * d
    scores = 4.0 * t * width + 3.0 * shape.n_heads * t  # softmax: 3 FLOP a score
    mlp = 4.0 * d * shape.d_ff * shape.experts_per_token
    vocabulary = 2.0 * shape.vocab_size * d
    return FlopCount(
        body=TRAIN * shape.n_layers * (projections + mlp),
        attention=TRAIN * shape.n_layers * scores,
        head=TRAIN * vocabulary,
        embedding=TRAIN * vocabulary,
    )


def _table_a4(shape: TransformerShape, seq_len: int) -> FlopCount:
    whole_count = _appendix_f(shape, seq_len)
    return FlopCount(body=whole_count.body, attention=whole_count.attention)


def _products(shape: TransformerShape, seq_len: int, causal: bool) -> FlopCount:
    n = shape.params()
    head = float(n.input_embedding)
    return FlopCount(
        body=FLOP_PER_WEIGHT * (n.matrices - head),
        head=FLOP_PER_WEIGHT * head,
        attention=_scores(shape, seq_len, causal),
    )


def _exact(shape: TransformerShape, seq_len: int) -> FlopCount:
    return _products(shape, seq_len, causal=False)


def _exact_causal(shape: TransformerShape, seq_len: int) -> FlopCount:
    return _products(shape, seq_len, causal=True)


def _named(label: str, formula: str, cite: str, where: str, rule: Rule) -> Convention:
    source = Source(cite=cite, where=where)
    return Convention(label=label, formula=formula, source=source, rule=rule)


CONVENTIONS: dict[str, Convention] = {
    "6N_non_embedding": _named(
        "6N, non-embedding",
        "6 N_non_embedding",
        "kaplan2020scaling",
        "section 2.1, attention dropped",
        _six_non_embedding,
    ),
    "6N_body_and_head": _named(
        "6N, body and head",
        "6 N_body_and_head",
        "porian2024resolving",
        "standard count, attention dropped",
        _six_body_and_head,
    ),
    "6N_total": _named(
        "6N, total",
        "6 N_total (active)",
        "hoffmann2022training",
        "section 3.3",
        _six_total,
    ),
    "kaplan": _named(
        "Kaplan",
        "6 N_non_embedding + 6 L T d",
        "kaplan2020scaling",
        "Table 1",
        _kaplan,
    ),
    "porian": _named(
        "Porian",
        "6 N_body_and_head + 6 L T d",
        "porian2024resolving",
        "attention counted",
        _porian,
    ),
    "deepseek": _named(
        "DeepSeek",
        "72 L d^2 + 12 L T d",
        "deepseek2024llm",
        "equation 2",
        _deepseek,
    ),
    "palm": _named(
        "PaLM",
        "6 N_body_and_head + 12 L T d",
        "chowdhery2022palm",
        "appendix B",
        _palm,
    ),
    "chinchilla_appendix_f": _named(
        "Chinchilla, appendix F as worded",
        "3 (forward of every term, both vocabulary products)",
        "hoffmann2022training",
        "appendix F",
        _appendix_f,
    ),
    "chinchilla_table_a4": _named(
        "Chinchilla, Table A4",
        "appendix F without the vocabulary terms",
        "hoffmann2022training",
        "Table A4",
        _table_a4,
    ),
    "exact": _named(
        "every matrix product",
        "6 weights that multiply + 12 L T d",
        "karpathy2022nanogpt",
        "sizing notebook",
        _exact,
    ),
    "exact_causal": _named(
        "every product under the mask",
        "6 weights that multiply + 6 L T d",
        "karpathy2022nanogpt",
        "sizing notebook, scores under the mask only",
        _exact_causal,
    ),
}
"""Conventions by name. L layers, T ``seq_len``, d heads times head size."""


def flops_per_token(
    shape: TransformerShape, seq_len: int, convention: str = "6N_total"
) -> FlopCount:
    r"""Training FLOP for one token.

    .. math:: y = Wx:\quad 2\,(\text{forward}) + 2\,(\partial x) + 2\,(\partial W)
       = 6 \text{ FLOP per weight and token}

    Parameters
    ----------
    shape : TransformerShape
        The model, [-]
    seq_len : int
        Tokens T of a sequence; each attends over it, [token]
    convention : str, optional
        Key of :data:`CONVENTIONS`, [-]

    Returns
    -------
    FlopCount
        Itemised, [FLOP/token]

    Raises
    ------
    ValueError
        If the convention is not known.

    Notes
    -----
    Forward plus backward without recomputation; full recomputation adds another
    forward, 8N instead of 6N. The lookup of an input row costs nothing; the head costs
    2dV forward, tied or not. A mixture of experts counts the experts that a token uses.
    Three counts are formulas of one architecture and are evaluated as they stand:
    DeepSeek's takes 12 d^2 for a layer, whatever its MLP, and so misses experts
    altogether; appendix F and Table A4 take two MLP matrices, gated or not.

    References
    ----------
    :cite:`kaplan2020scaling`, section 2.1; each convention names its own source

    Examples
    --------
    >>> from chinchilla_lab.shape import SHAPES
    >>> llama = SHAPES["llama-3-8b"]
    >>> f"{flops_per_token(llama, 8192, 'palm').total:.3e}"
    '5.791e+10'
    """
    one_of("convention", convention, CONVENTIONS)
    return CONVENTIONS[convention].rule(shape, whole("seq_len", seq_len))


def training_compute(
    shape: TransformerShape, D: ArrayLike, seq_len: int, convention: str = "6N_total"
) -> Array:
    """Training FLOP of a run.

    Parameters
    ----------
    shape : TransformerShape
        The model, [-]
    D : array_like
        Training tokens, [token]
    seq_len : int
        Tokens of a sequence, [token]
    convention : str, optional
        Key of :data:`CONVENTIONS`, [-]

    Returns
    -------
    numpy.ndarray or float
        Training compute, [FLOP]

    Examples
    --------
    >>> from chinchilla_lab.shape import SHAPES
    >>> f"{training_compute(SHAPES['gpt-3'], 300e9, 2048):.3e}"
    '3.143e+23'
    """
    per_token = flops_per_token(shape, seq_len, convention).total
    return per_token * positive("D", D)


def tokens_for_compute(
    shape: TransformerShape, C: ArrayLike, seq_len: int, convention: str = "6N_total"
) -> Array:
    """Tokens that a budget buys for a shape.

    Parameters
    ----------
    shape : TransformerShape
        The model, [-]
    C : array_like
        Training compute, [FLOP]
    seq_len : int
        Tokens of a sequence, [token]
    convention : str, optional
        Key of :data:`CONVENTIONS`, [-]

    Returns
    -------
    numpy.ndarray or float
        Training tokens, [token]

    Examples
    --------
    >>> from chinchilla_lab.shape import SHAPES
    >>> f"{tokens_for_compute(SHAPES['llama-3-8b'], 1e22, 8192) / 1e9:.1f}"
    '207.5'
    """
    per_token = flops_per_token(shape, seq_len, convention).total
    return positive("C", C) / per_token


@dataclass(frozen=True, kw_only=True)
class ConventionTable:
    """One shape and one budget under several conventions.

    Parameters
    ----------
    shape : TransformerShape
        The model, [-]
    seq_len : int
        Tokens of a sequence, [token]
    C : float
        Training compute, [FLOP]
    counts : dict
        Convention to :class:`FlopCount`, [FLOP/token]
    """

    shape: TransformerShape
    seq_len: int
    C: float
    counts: dict[str, FlopCount]

    @property
    def tokens(self) -> dict[str, float]:
        """Tokens that the budget buys, by convention, [token]."""
        return {name: self.C / count.total for name, count in self.counts.items()}

    @property
    def spread(self) -> float:
        """Largest over smallest count, [-]."""
        totals = [count.total for count in self.counts.values()]
        return max(totals) / min(totals)

    def _repr_html_(self) -> str:
        base = 6.0 * self.shape.params().active
        rows = [
            [
                CONVENTIONS[name].label,
                CONVENTIONS[name].formula,
                f"{count.total:.3e}".replace("e+", "e"),
                f"{count.total / base:.3f}",
                text(self.C / count.total, "token", 4),
            ]
            for name, count in self.counts.items()
        ]
        head = ("convention", "FLOP per token", "value", "of 6N total", "tokens bought")
        return html_table(head, rows)


def compare_conventions(
    shape: TransformerShape,
    seq_len: int,
    C: float,
    conventions: tuple[str, ...] = tuple(CONVENTIONS),
) -> ConventionTable:
    """Count the same run under several conventions.

    Parameters
    ----------
    shape : TransformerShape
        The model, [-]
    seq_len : int
        Tokens of a sequence, [token]
    C : float
        Training compute, [FLOP]
    conventions : tuple of str, optional
        Keys of :data:`CONVENTIONS`; by default all, [-]

    Returns
    -------
    ConventionTable
        FLOP per token [FLOP/token] and tokens [token], by convention

    Examples
    --------
    >>> from chinchilla_lab.shape import SHAPES
    >>> table = compare_conventions(SHAPES["llama-3-8b"], 8192, 1e22)
    >>> f"{table.tokens['kaplan'] / 1e9:.1f} {table.tokens['palm'] / 1e9:.1f}"
    '207.0 172.7'
    """
    compute = float(positive("C", C))
    counts = {name: flops_per_token(shape, seq_len, name) for name in conventions}
    return ConventionTable(shape=shape, seq_len=seq_len, C=compute, counts=counts)


def causal_crossover(shape: TransformerShape) -> float:
    r"""Sequence length at which masked attention costs as much as the weights.

    .. math:: T = \frac{N_\text{body and head}}{L\, h\, k}

    Parameters
    ----------
    shape : TransformerShape
        The model, [-]

    Returns
    -------
    float
        Sequence length, [token]

    Examples
    --------
    >>> from chinchilla_lab.shape import SHAPES
    >>> round(causal_crossover(SHAPES["llama-3-8b"]))
    57258
    """
    body, head, _ = _parts(shape)
    return (body + head) / (shape.n_layers * shape.attention_width)


def optimizer_share(batch_tokens: ArrayLike, flop_per_param: float = 15.0) -> Array:
    r"""FLOP of the optimiser's update as a share of 6N per token.

    .. math:: \frac{f}{6\, B}

    Parameters
    ----------
    batch_tokens : array_like
        Tokens B of a step, [token]
    flop_per_param : float, optional
        FLOP f of one update: about 15 terms in Adam with weight decay, [FLOP/parameter]

    Returns
    -------
    numpy.ndarray or float
        The share, [-]

    Notes
    -----
    The update runs once a *step*, forward and backward once a *token*: this is why it
    does not appear in 6N.

    Examples
    --------
    >>> f"{optimizer_share(1e6):.1e}"
    '2.5e-06'
    """
    return flop_per_param / (6.0 * positive("batch_tokens", batch_tokens))
