"""Time of one training step, itemised, and what it makes of the peak."""

from dataclasses import dataclass
from typing import Literal

from chinchilla_lab.checks import one_of, positive, whole
from chinchilla_lab.cluster import kernel
from chinchilla_lab.cluster.accelerators import DTYPES
from chinchilla_lab.cluster.fitting import check_fits
from chinchilla_lab.cluster.hardware import Cluster, mfu
from chinchilla_lab.cluster.layout import Layout, check_interleaving, sequences
from chinchilla_lab.cluster.memory import Recipe, recipe_of, room
from chinchilla_lab.cluster.stacks import (
    MIXTURE_ERROR,
    UNCALIBRATED,
    Stack,
    find_stack,
)
from chinchilla_lab.shape.accounting import flops_per_token
from chinchilla_lab.shape.transformer import TransformerShape
from chinchilla_lab.tables import html_table

__all__ = [
    "ATTENTION_CONVENTIONS",
    "SCHEDULES",
    "StepTime",
    "bubble_fraction",
    "hardware_flops",
    "model_flops",
    "step_time",
    "tokens_per_second_to_mfu",
]

AttentionCount = Literal["full", "causal", "none"]
ATTENTION_CONVENTIONS = {"full": "exact", "causal": "exact_causal", "none": "6N_total"}
"""What an MFU counts of attention, and the FLOP convention it uses for that."""


SCHEDULES = {
    "1f1b": 1.0,
    "gpipe": 1.0,
    "zb-1p": 1.0 / 3.0,
    "zb-2p": 0.0,
    "zb-v": 0.0,
}
"""Bubble of a schedule relative to 1F1B, by name, [-]."""


def bubble_fraction(
    pp: int, n_micro_batches: int, n_chunks: int = 1, schedule: str = "1f1b"
) -> float:
    r"""Idle time of a pipeline relative to the ideal step time.

    .. math:: \frac{t_\text{bubble}}{t_\text{ideal}} = \frac{1}{v}\,\frac{p - 1}{m}

    Parameters
    ----------
    pp : int
        Pipeline stages p, [-]
    n_micro_batches : int
        Micro-batches m of a step and pipeline, [-]
    n_chunks : int, optional
        Model chunks v of a stage, [-]
    schedule : {"1f1b", "gpipe", "zb-1p", "zb-2p", "zb-v"}, optional
        Order of the passes, [-]

    Returns
    -------
    float
        Bubble over ideal time, [-]

    Raises
    ------
    ValueError
        If the schedule is unknown, a zero-bubble one is to be interleaved, or chunks
        are interleaved over one stage or over micro-batches that p does not divide.

    Notes
    -----
    Divides by the *ideal* time; the share of the whole step is x / (1 + x). Equal
    stages and free communication. The zero-bubble schedules take the gradient of the
    input, that of the weights and the forward pass to last equally long.

    References
    ----------
    :cite:`narayanan2021efficient`, section 2.2; :cite:`zerobubble`, table of schedules

    Examples
    --------
    >>> bubble_fraction(pp=8, n_micro_batches=32)
    0.21875
    """
    p, m = whole("pp", pp), whole("n_micro_batches", n_micro_batches)
    v = whole("n_chunks", n_chunks)
    one_of("schedule", schedule, SCHEDULES)
    if v > 1 and schedule != "1f1b":
        raise ValueError(
            f"n_chunks={v} interleaves 1F1B; set n_chunks=1 with schedule={schedule!r}"
        )
    check_interleaving(p, m, v)
    return SCHEDULES[schedule] * (p - 1) / (v * m)


def model_flops(
    shape: TransformerShape, seq_len: int, attention: AttentionCount = "full"
) -> float:
    """FLOP that the model needs for a token, under a named count of attention.

    Parameters
    ----------
    shape : TransformerShape
        The model, [-]
    seq_len : int
        Tokens of a sequence, [token]
    attention : {"full", "causal", "none"}, optional
        Scores counted in full (Megatron, PaLM), by half, or 6N alone, [-]

    Returns
    -------
    float
        Training FLOP, [FLOP/token]

    Examples
    --------
    >>> from chinchilla_lab.shape import SHAPES
    >>> f"{model_flops(SHAPES['llama-3-70b'], 8192, 'causal'):.3e}"
    '4.492e+11'
    """
    name = ATTENTION_CONVENTIONS[one_of("attention", attention, ATTENTION_CONVENTIONS)]
    return flops_per_token(shape, seq_len, name).total


def hardware_flops(
    shape: TransformerShape,
    seq_len: int,
    recompute: str = "none",
    attention: AttentionCount = "full",
) -> float:
    r"""FLOP that the hardware does for a token, recomputation included.

    .. math:: F + \tfrac{1}{3} F_\text{layers}\ (\text{full}), \qquad
       F + \tfrac{1}{3} F_\text{attention}\ (\text{selective})

    Parameters
    ----------
    shape : TransformerShape
        The model, [-]
    seq_len : int
        Tokens of a sequence, [token]
    recompute : {"none", "selective", "full"}, optional
        What is computed again, [-]
    attention : {"full", "causal", "none"}, optional
        How attention is counted, [-]

    Returns
    -------
    float
        Executed FLOP, [FLOP/token]

    Notes
    -----
    With full recomputation and attention in full this is the rate behind the published
    Megatron figures, about 4/3 of what the model needs; the head is not done again.

    References
    ----------
    :cite:`narayanan2021efficient`, equation 3

    Examples
    --------
    >>> from chinchilla_lab.shape import SHAPES
    >>> gpt3 = SHAPES["gpt-3"]
    >>> ratio = hardware_flops(gpt3, 2048, "full") / hardware_flops(gpt3, 2048)
    >>> f"{ratio:.3f}"
    '1.332'
    """
    one_of("recompute", recompute, ("none", "selective", "full"))
    total = model_flops(shape, seq_len, attention)
    name = ATTENTION_CONVENTIONS[attention]
    count = flops_per_token(shape, seq_len, name)
    if recompute == "full":
        return total + (count.body + count.attention) / 3.0
    if recompute == "selective":
        return total + count.attention / 3.0
    return total


def tokens_per_second_to_mfu(
    shape: TransformerShape,
    tokens_per_second: float,
    cluster: Cluster,
    seq_len: int,
    dtype: str = "bf16",
    attention: AttentionCount = "full",
) -> float:
    """MFU of a measured speed.

    Parameters
    ----------
    shape : TransformerShape
        The model, [-]
    tokens_per_second : float
        Speed of the whole job, [token/s]
    cluster : Cluster
        The machine, [-]
    seq_len : int
        Tokens of a sequence, [token]
    dtype : {"bf16", "fp8", "tf32"}, optional
        Format whose dense peak is taken, [-]
    attention : {"full", "causal", "none"}, optional
        How attention is counted, [-]

    Returns
    -------
    float
        MFU, [-]

    Raises
    ------
    ValueError
        If it exceeds 1.
    """
    rate = float(positive("tokens_per_second", tokens_per_second))
    flop = model_flops(shape, seq_len, attention)
    return mfu(rate * flop / cluster.n_accelerators, cluster.chip, dtype)


@dataclass(frozen=True, kw_only=True)
class StepTime:
    """Time of a step by item; ``seconds`` is their sum.

    Parameters
    ----------
    items : dict
        Name to time on the slowest path, [s]
    shape : TransformerShape
        The model, [-]
    cluster : Cluster
        The machine, [-]
    layout : Layout
        How the job is cut, [-]
    batch : int
        Sequences of a step, [sequence]
    seq_len : int
        Tokens of a sequence, [token]
    dtype : str
        Format of the matrix products, [-]
    stack : Stack
        Constants in use, [-]
    """

    items: dict[str, float]
    shape: TransformerShape
    cluster: Cluster
    layout: Layout
    batch: int
    seq_len: int
    dtype: str
    stack: Stack

    @property
    def seconds(self) -> float:
        """Time of the step, [s]."""
        return float(sum(self.items.values()))

    @property
    def tokens_per_second(self) -> float:
        """Speed of the job, [token/s]."""
        return self.batch * self.seq_len / self.seconds

    @property
    def label(self) -> str:
        """``"upper bound"``, or what the constants were calibrated to, [-].

        A mixture of experts under constants of dense models says so.
        """
        known = self.shape.n_experts == 1 or self.stack.mixtures
        if known or not self.stack.fitted:
            return self.stack.label
        low, high = MIXTURE_ERROR
        return (
            f"{self.stack.label}; published mixtures took {low:g} to {high:g} times as "
            "long"
        )

    def mfu(self, attention: AttentionCount = "full") -> float:
        """Share of the dense peak that model FLOP reach.

        Parameters
        ----------
        attention : {"full", "causal", "none"}, optional
            How attention is counted, [-]

        Returns
        -------
        float
            MFU, [-]
        """
        flop = model_flops(self.shape, self.seq_len, attention)
        return mfu(self._rate(flop), self.cluster.chip, self.dtype)

    def hfu(self, attention: AttentionCount = "full") -> float:
        """Share of the dense peak that executed FLOP reach.

        Parameters
        ----------
        attention : {"full", "causal", "none"}, optional
            How attention is counted, [-]

        Returns
        -------
        float
            HFU, at least the MFU, [-]
        """
        again = self.layout.recompute
        flop = hardware_flops(self.shape, self.seq_len, again, attention)
        return mfu(self._rate(flop), self.cluster.chip, self.dtype)

    def _rate(self, flop: float) -> float:
        return flop * self.tokens_per_second / self.cluster.n_accelerators

    def days(self, D: float) -> float:
        """Days for a number of tokens, steps alone.

        Parameters
        ----------
        D : float
            Training tokens, [token]

        Returns
        -------
        float
            Time without failures, checkpoints or evaluation, [day]
        """
        return float(positive("D", D)) / self.tokens_per_second / 86400.0

    def _repr_html_(self) -> str:
        total = self.seconds
        rows = [
            [name.replace("_", " "), f"{1e3 * t:.1f}", f"{t / total:.1%}"]
            for name, t in self.items.items()
            if t > 0.0
        ]
        caption = (
            f"{self.layout.label()}: {self.label}; MFU {self.mfu():.1%} with attention "
            f"in full, {self.mfu('causal'):.1%} causal, "
            f"{self.mfu('none'):.1%} without; "
            f"HFU {self.hfu():.1%}"
        )
        return html_table(
            ("item", "[ms]", "share"),
            [*rows, ["step", f"{1e3 * total:.1f}", "100%"]],
            caption,
        )


def step_time(
    shape: TransformerShape,
    cluster: Cluster,
    layout: Layout,
    batch: int,
    seq_len: int,
    stack: Stack | str = UNCALIBRATED,
    dtype: str = "bf16",
    even_stages: bool = False,
    recipe: Recipe | str = "mixed-adam",
    memory_limit: float | None = None,
    check_memory: bool = True,
) -> StepTime:
    r"""Time of one training step.

    .. math:: t = \left[m\,\max(t_\text{stage}, t_\text{last})
       + \frac{p-1}{v}\,t_\text{stage} + t_\text{DP} + t_\text{opt}\right]
       (1 + j \log_2 k) + t_0 \log_2 (1 + k)

    with k nodes; a stage is its layers' matrix products (by shape, with tiles and
    waves), attention, element-wise traffic, TP, CP and EP traffic, recomputation and
    launches, and the messages to its neighbours; the last stage adds the head.

    Parameters
    ----------
    shape : TransformerShape
        The model, [-]
    cluster : Cluster
        The machine, [-]
    layout : Layout
        How the job is cut, [-]
    batch : int
        Sequences of a step, [sequence]
    seq_len : int
        Tokens of a sequence, [token]
    stack : Stack or str, optional
        Constants, or a key of :data:`~chinchilla_lab.cluster.STACKS`; without one the
        answer is an upper bound on the speed, [-]
    dtype : {"bf16", "fp8", "tf32"}, optional
        Format of the matrix products; attention and head stay in bf16, [-]
    even_stages : bool, optional
        Refuse layers that do not divide, [-]
    recipe : Recipe or str, optional
        Bytes of a parameter, for the check of memory, [byte/parameter]
    memory_limit : float, optional
        Bytes that a job may fill; by default what the driver reports, [byte]
    check_memory : bool, optional
        Refuse what does not fit; switch off for machines of thought, [-]

    Returns
    -------
    StepTime
        Items and sum, [s]

    Raises
    ------
    ValueError
        If the layout cannot run, or the chip's table lacks a figure.
    InfeasibleError
        If it does not fit the memory; the message names what would.

    Notes
    -----
    Left out: data loading, checkpoints, failures, contention in the network, an uneven
    load of experts. A token crosses the network once for each node that holds one of
    its experts (:func:`expected_remote_groups`); products of experts fill tiles and
    waves one by one, which few tokens an expert do badly: 144 TFLOP/s for the 128
    experts of Qwen3 30B at 512 tokens each on H100, where 130 to 160 were measured.

    References
    ----------
    :cite:`narayanan2021efficient`, sections 2 and 3; :cite:`korthikanti2022reducing`;
    :cite:`deepseek2024v3`, section 3.3.3, 8-bit dispatch; :cite:`groupedgemm`

    Examples
    --------
    >>> from chinchilla_lab.shape import SHAPES
    >>> hall = Cluster(accelerator="h100-sxm-80gb", n_accelerators=8192)
    >>> plan = Layout(tp=8, pp=16, dp=64, n_chunks=4, zero=1, sequence_parallel=True)
    >>> lean = "mixed-adam-lean"
    >>> step = step_time(SHAPES["llama-3-405b"], hall, plan, 2048, 8192, recipe=lean)
    >>> step.label
    'upper bound'
    """
    used = find_stack(stack)
    one_of("dtype", dtype, DTYPES)
    count, s = sequences(batch, seq_len), whole("seq_len", seq_len)
    layout.check(shape, cluster, count, s, even_stages)
    rates = kernel.machine(cluster, used, dtype)
    if check_memory:
        check_fits(
            shape, cluster, layout, count, s, recipe_of(recipe), used,
            room(cluster, memory_limit), even_stages,
        )  # fmt: skip
    found = kernel.items(shape, layout.degrees(), float(count), float(s), rates, used)
    return StepTime(
        items={name: float(t) for name, t in found.items()},
        shape=shape,
        cluster=cluster,
        layout=layout,
        batch=count,
        seq_len=s,
        dtype=dtype,
        stack=used,
    )
