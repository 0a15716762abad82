"""Bytes that a layer keeps for its backward pass."""

from typing import Any, Literal

import numpy as np

from chinchilla_lab.checks import one_of, whole
from chinchilla_lab.cluster.layout import (
    RECOMPUTE,
    Degrees,
    Layout,
    check_interleaving,
)
from chinchilla_lab.shape.transformer import TransformerShape

__all__ = ["activation_bytes", "interleaving_factor", "zero_paper_activations"]

Attention = Literal["fused", "unfused"]


def layer_activations(
    shape: TransformerShape,
    g: Degrees,
    seq_len: float,
    fused: bool,
    dropout: bool,
    full: Any = None,
    lean: bool = False,
    eager: bool = False,
) -> Any:
    """Return the bytes of one layer and micro-batch; arrays broadcast."""
    d, f = shape.d_model, shape.d_ff * shape.experts_per_token
    q, kv = shape.attention_width, shape.kv_heads * shape.head_size
    tokens = g.b * seq_len / g.c
    # 2 bytes a value: inputs of two norms, of QKV and of the MLP, and two dropout masks
    whole_width = 8.0 + (2.0 if dropout else 0.0)
    # a gate that is not fused keeps its activated half beside the product
    gate = 8.0 if eager else 6.0
    inner = gate if shape.gated else 4.0
    if lean:  # outputs of norms and of the MLP's activation are computed again
        whole_width, inner = whole_width - 4.0, inner - 2.0
    cut = 4.0 * q + 4.0 * kv + inner * f
    if shape.n_experts > 1:  # copies of the tokens that the chosen experts receive
        cut = cut + 2.0 * d * shape.n_active_experts
    sequence = np.where(g.sp > 0, g.t, 1.0)
    kept = whole_width * d / sequence + cut / g.t
    if not fused:
        scores = (5.0 if dropout else 4.0) * shape.n_heads * seq_len / g.t
        kept = kept + scores * (1.0 - g.selective)
    checkpoint = 2.0 * d / sequence
    full = g.full if full is None else full
    return tokens * (kept + full * (checkpoint - kept))


def activation_bytes(
    shape: TransformerShape,
    seq_len: int,
    micro_batch: int = 1,
    tp: int = 1,
    cp: int = 1,
    sequence_parallel: bool = False,
    recompute: str = "none",
    attention: Attention = "unfused",
    dropout: bool = True,
) -> float:
    r"""Activations that one layer keeps for one micro-batch, 16-bit.

    .. math:: s b h\left(10 + \frac{24}{t} + \frac{5 a s}{h t}\right),
       \qquad s b h\,\frac{34 + 5 a s/h}{t} \ \text{with sequence parallelism}

    for a plain layer; the last term falls away with selective recomputation or a fused
    kernel, and full recomputation keeps the input, 2 s b h, alone.

    Parameters
    ----------
    shape : TransformerShape
        The model, [-]
    seq_len : int
        Tokens s of a sequence, [token]
    micro_batch : int, optional
        Sequences b, [sequence]
    tp : int, optional
        Tensor parallel degree t, [-]
    cp : int, optional
        Context parallel degree, [-]
    sequence_parallel : bool, optional
        Norms and dropout cut along the sequence, [-]
    recompute : {"none", "selective", "full"}, optional
        What is computed again, [-]
    attention : {"unfused", "fused"}, optional
        Whether scores are written to memory, [-]
    dropout : bool, optional
        Masks of dropout are kept, as in the published formula, [-]

    Returns
    -------
    float
        Bytes of one layer, [byte]

    Raises
    ------
    ValueError
        If tp or cp does not divide the model or the sequence.

    Notes
    -----
    The published 34 is 8 + 2 for inputs and masks, 8 for Q, K, V and the input of the
    projection, 16 for the MLP; grouped heads, gates, other MLP widths and the chosen
    experts of a mixture are counted in the same way. The few fp32 values of a norm and
    of a fused kernel are neglected.

    References
    ----------
    :cite:`korthikanti2022reducing`, equations 1 to 6

    Examples
    --------
    >>> gpt = TransformerShape(n_layers=48, d_model=6144, d_ff=24576, n_heads=64,
    ...                        vocab_size=51200, gated=False)
    >>> 48 * activation_bytes(gpt, 2048, micro_batch=4, tp=8) / 2**30
    59.25
    """
    one_of("attention", attention, ("fused", "unfused"))
    one_of("recompute", recompute, RECOMPUTE)
    plan = Layout(
        tp=tp,
        cp=cp,
        micro_batch=micro_batch,
        recompute=recompute,  # type: ignore[arg-type]
        sequence_parallel=sequence_parallel,
    )
    s = float(whole("seq_len", seq_len))
    plan.check_shape(shape, int(s), even_stages=False)
    fused = attention == "fused"
    return float(layer_activations(shape, plan.degrees(), s, fused, dropout))


def in_flight(p: Any, v: Any, m: Any) -> Any:
    """Return the micro-batches that the first stage holds; arrays broadcast."""
    return np.minimum(np.where(v > 1, p + (p - 1.0) / v, p), m)


def interleaving_factor(
    pp: int, n_chunks: int = 1, n_micro_batches: int | None = None
) -> float:
    r"""Activations of the first stage, relative to all layers of one micro-batch.

    .. math:: \min\left(1 + \frac{p - 1}{p v},\; \frac{m}{p}\right)\ (v > 1),
       \qquad \min\left(1,\; \frac{m}{p}\right)\ (v = 1)

    Parameters
    ----------
    pp : int
        Stages p, [-]
    n_chunks : int, optional
        Chunks v a stage, [-]
    n_micro_batches : int, optional
        Micro-batches m of a step, more than which no stage holds; by default enough,
        [-]

    Returns
    -------
    float
        The factor, [-]

    Raises
    ------
    ValueError
        If chunks are interleaved over one stage, or over micro-batches that p does not
        divide.

    References
    ----------
    :cite:`korthikanti2022reducing`, section 4.2.3; capped by what there is

    Examples
    --------
    >>> round(interleaving_factor(35, 3), 2)
    1.32
    >>> interleaving_factor(16, 2, n_micro_batches=16)
    1.0
    """
    p, v = whole("pp", pp), whole("n_chunks", n_chunks)
    m = 2 * p if n_micro_batches is None else whole("n_micro_batches", n_micro_batches)
    check_interleaving(p, m, v)
    return float(in_flight(float(p), float(v), float(m)) / p)


def zero_paper_activations(shape: TransformerShape, seq_len: int, batch: int) -> float:
    r"""Activations after the older rule of the ZeRO paper.

    .. math:: 12\, h\, b\, s\, L \text{ values of 2 bytes}

    Parameters
    ----------
    shape : TransformerShape
        The model, [-]
    seq_len : int
        Tokens s of a sequence, [token]
    batch : int
        Sequences b, [sequence]

    Returns
    -------
    float
        Bytes, [byte]

    Examples
    --------
    >>> from chinchilla_lab.shape import SHAPES
    >>> zero_paper_activations(SHAPES["llama-2-7b"], 512, 8) / 2**30
    12.0
    """
    tokens = whole("seq_len", seq_len) * whole("batch", batch)
    return 2.0 * 12.0 * shape.d_model * tokens * shape.n_layers
