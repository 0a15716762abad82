"""How fast a model can be served at most: a roofline of arithmetic and bytes.

Everything here is an upper bound on speed. It knows no network, no latency of kernels,
no scheduling and no attention arithmetic; measured speeds lie 1.4 to 2 times below.
"""

from dataclasses import dataclass, replace
from math import inf

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chinchilla_lab.checks import InfeasibleError, non_negative, positive
from chinchilla_lab.inference.lifetime import FLOP_PER_NT
from chinchilla_lab.inference.served import ServedModel, ServingHardware
from chinchilla_lab.sources import read_rows
from chinchilla_lab.tables import html_table
from chinchilla_lab.units import text

__all__ = [
    "MEASURED_SLOWDOWN",
    "Roofline",
    "critical_batch",
    "decode_step",
    "largest_batch",
    "prefill",
    "roofline_checks",
    "single_stream_limit",
    "slowdown",
]

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Roofline:
    """One step of service, itemised; an upper bound on speed.

    Parameters
    ----------
    cache : numpy.ndarray or float
        Reading or writing the key-value cache, [s]
    weights : numpy.ndarray or float
        Reading the weights, [s]
    arithmetic : numpy.ndarray or float
        Multiplying with them at the dense peak, [s]
    tokens : numpy.ndarray or float
        Tokens that come out of the step, or prompt tokens that go in, [token]
    mfu : numpy.ndarray or float
        Utilisation that the bound allows, [-]
    n_accelerators : int
        Accelerators that share the model, [count]
    overlapped : bool
        Whether the cache is moved while the weights work (prefill) or after (decode),
        [-]
    """

    cache: Array
    weights: Array
    arithmetic: Array
    tokens: Array
    mfu: Array
    n_accelerators: int
    overlapped: bool = False

    @property
    def step_time(self) -> Array:
        """Least time of the step, [s]."""
        if self.overlapped:
            return np.maximum(self.arithmetic, self.weights + self.cache)
        return self.cache + np.maximum(self.arithmetic, self.weights)

    @property
    def tokens_per_second(self) -> Array:
        """Most tokens a second, all accelerators together, [token/s]."""
        return self.tokens / self.step_time

    @property
    def per_accelerator(self) -> Array:
        """Most tokens a second and accelerator, [token/s]."""
        return self.tokens_per_second / self.n_accelerators

    @property
    def expected(self) -> tuple[Array, Array]:
        """Tokens a second that measurements suggest, slow and fast, [token/s]."""
        fast, slow = MEASURED_SLOWDOWN
        return self.tokens_per_second / slow, self.tokens_per_second / fast

    @property
    def bound(self) -> NDArray[np.str_]:
        """What takes longest: cache, weights or arithmetic."""
        parts = np.stack(np.broadcast_arrays(self.cache, self.weights, self.arithmetic))
        return np.array(["cache", "weights", "arithmetic"])[np.argmax(parts, axis=0)]

    def _repr_html_(self) -> str:
        cells = np.broadcast_arrays(
            self.tokens, self.cache, self.weights, self.arithmetic, self.step_time,
            self.tokens_per_second, self.mfu,
        )  # fmt: skip
        rows = [
            [
                text(b, ""),
                *(f"{1e3 * t:.3g}" for t in times),
                text(rate, ""),
                f"{mfu:.2%}",
            ]
            for b, *times, rate, mfu in zip(*map(np.ravel, cells), strict=True)
        ]
        head = (
            "tokens [token]",
            "cache [ms]",
            "weights [ms]",
            "arithmetic [ms]",
            "step [ms]",
            "at most [token/s]",
            "mfu at most",
        )
        return html_table(head, rows, "An upper bound on speed, not a forecast.")


MEASURED_SLOWDOWN = (1.4, 2.0)
"""Roofline speed over measured speed, from the rows of :func:`roofline_checks`: the
band to show when nothing was measured on the system in question."""


def decode_step(
    model: ServedModel,
    hardware: ServingHardware,
    batch: ArrayLike,
    context: ArrayLike,
) -> Roofline:
    r"""Least time to write one more token for every sequence of a batch.

    .. math:: t = \frac{B \cdot \text{KV}}{\text{BW}} + \max\left(
       \frac{2 B N}{\text{peak}}, \frac{\text{weight bytes}}{\text{BW}}\right)

    Parameters
    ----------
    model : ServedModel
        Weights and cache, [-]
    hardware : ServingHardware
        Peak and bandwidth, [-]
    batch : array_like
        Sequences decoded together, [token]
    context : array_like
        Tokens in the cache of each, broadcast against ``batch``, [token]

    Returns
    -------
    Roofline
        Itemised times [s], tokens a second [token/s] and utilisation [-]

    Notes
    -----
    An upper bound on speed: full bandwidth, full peak, no network, no latency. Reading
    the cache is always bound by bandwidth, so above the critical batch throughput no
    longer grows, and cache traffic sets it.

    References
    ----------
    :cite:`scalingbook`, chapter on inference

    Examples
    --------
    >>> model = ServedModel(N=30e9, weight_bytes=1, kv_bytes_per_token=1e5)
    >>> pod = ServingHardware(peak_flops=1.97e14, bandwidth=8.1e11, n_accelerators=16)
    >>> step = decode_step(model, pod, batch=[1, 4, 16, 64], context=8192)
    >>> (1e3 * step.step_time).round(2)
    array([2.38, 2.57, 3.33, 6.36])
    """
    b, length = np.broadcast_arrays(
        positive("batch", batch), non_negative("context", context)
    )
    flop = FLOP_PER_NT * b * model.active
    roof = Roofline(
        cache=(b * length * model.kv_bytes_per_token / hardware.total_bandwidth)[()],
        weights=np.asarray(model.weights(b) / hardware.total_bandwidth)[()],
        arithmetic=(flop / hardware.total_flops)[()],
        tokens=b[()],
        mfu=np.asarray(np.nan),
        n_accelerators=hardware.n_accelerators,
    )
    return _with_mfu(roof)


def prefill(
    model: ServedModel,
    hardware: ServingHardware,
    prompt: ArrayLike,
    batch: ArrayLike = 1.0,
) -> Roofline:
    r"""Least time to read the prompts of a batch.

    .. math:: t = \max\left(\frac{2 N B P}{\text{peak}},
       \frac{\text{weight bytes} + \text{KV written}}{\text{BW}}\right)

    Parameters
    ----------
    model : ServedModel
        Weights and cache, [-]
    hardware : ServingHardware
        Peak and bandwidth, [-]
    prompt : array_like
        Tokens of a prompt, P, [token]
    batch : array_like, optional
        Prompts read together, broadcast against ``prompt``, [count]

    Returns
    -------
    Roofline
        Itemised times [s], tokens a second [token/s] and utilisation [-]

    Notes
    -----
    An upper bound on speed. Leaves out the arithmetic of attention, which grows with
    the square of the prompt.

    Examples
    --------
    >>> llama, a100 = ServedModel(N=6.74e9), ServingHardware(peak_flops=312e12,
    ...                                                      bandwidth=2.0e12)
    >>> f"{1e3 * prefill(llama, a100, prompt=2048).step_time:.1f} ms"
    '88.5 ms'
    """
    p, b = np.broadcast_arrays(positive("prompt", prompt), positive("batch", batch))
    tokens = p * b
    flop = FLOP_PER_NT * tokens * model.active
    roof = Roofline(
        cache=(tokens * model.kv_bytes_per_token / hardware.total_bandwidth)[()],
        weights=np.asarray(model.weights(tokens) / hardware.total_bandwidth)[()],
        arithmetic=(flop / hardware.total_flops)[()],
        tokens=tokens[()],
        mfu=np.asarray(np.nan),
        n_accelerators=hardware.n_accelerators,
        overlapped=True,
    )
    return _with_mfu(roof)


def _with_mfu(roof: Roofline) -> Roofline:
    return replace(roof, mfu=roof.arithmetic / roof.step_time)


def critical_batch(model: ServedModel, hardware: ServingHardware) -> float:
    r"""Tokens in a step from which arithmetic takes longer than reading the weights.

    .. math:: B = \frac{\text{peak}}{\text{BW}} \cdot \frac{\text{bytes}}{2} \cdot
       \frac{N}{N_\text{active}}

    Parameters
    ----------
    model : ServedModel
        Weights, [-]
    hardware : ServingHardware
        Peak and bandwidth, [-]

    Returns
    -------
    float
        The batch, for a mixture with all experts read, [token]

    References
    ----------
    :cite:`scalingbook`, chapter on inference

    Examples
    --------
    >>> h100 = ServingHardware(peak_flops=9.89e14, bandwidth=3.35e12)
    >>> f"{critical_batch(ServedModel(N=8e9), h100):.1f}"
    '295.2'
    """
    balance = hardware.peak_flops * hardware.n_accelerators / hardware.total_bandwidth
    return balance * model.weight_bytes / FLOP_PER_NT * model.N / model.active


def single_stream_limit(model: ServedModel, hardware: ServingHardware) -> float:
    r"""Most tokens a second of one sequence with an empty cache.

    .. math:: \frac{\text{BW}}{\text{bytes} \cdot N}

    Parameters
    ----------
    model : ServedModel
        Weights, [-]
    hardware : ServingHardware
        Bandwidth, [-]

    Returns
    -------
    float
        Speed of a single stream; the throughput of a server is another number,
        [token/s]

    Examples
    --------
    >>> h100 = ServingHardware(peak_flops=9.89e14, bandwidth=3.35e12)
    >>> f"{single_stream_limit(ServedModel(N=70e9), h100):.1f}"
    '23.9'
    """
    return float(decode_step(model, hardware, 1.0, 0.0).tokens_per_second)


def largest_batch(
    model: ServedModel, hardware: ServingHardware, context: ArrayLike
) -> Array:
    r"""Sequences whose cache fits beside the weights.

    .. math:: \left\lfloor \frac{\text{memory} - \text{weights}}{\text{KV per token}
       \cdot \text{context}} \right\rfloor

    Parameters
    ----------
    model : ServedModel
        Weights and cache, [-]
    hardware : ServingHardware
        Memory, [-]
    context : array_like
        Tokens in the cache of each sequence, [token]

    Returns
    -------
    numpy.ndarray or float
        The batch that memory allows; infinite for a model without a cache, [token]

    Raises
    ------
    InfeasibleError
        If the weights alone do not fit.

    Examples
    --------
    >>> model = ServedModel(N=8e9, kv_bytes_per_token=131072)
    >>> h100 = ServingHardware(peak_flops=9.89e14, bandwidth=3.35e12, memory=80e9)
    >>> float(largest_batch(model, h100, context=8192))
    59.0
    """
    length = positive("context", context)
    weights = model.N * model.weight_bytes
    room = hardware.total_memory - weights
    if room <= 0.0:
        raise InfeasibleError(
            f"n_accelerators={hardware.n_accelerators} hold "
            f"{text(hardware.total_memory, 'byte')}, the weights need "
            f"{text(weights, 'byte')}: use more accelerators or fewer bytes a weight"
        )
    each = length * model.kv_bytes_per_token
    if model.kv_bytes_per_token == 0.0:
        return np.full_like(length, inf)[()]
    return np.floor(room / each)[()]


def slowdown(predicted: ArrayLike, measured: ArrayLike) -> tuple[float, float, float]:
    """Roofline speed over measured speed: least, geometric mean and most.

    Parameters
    ----------
    predicted : array_like
        Speeds of the roofline, [token/s]
    measured : array_like
        Measured speeds, broadcast against ``predicted``, [token/s]

    Returns
    -------
    least : float
        Smallest ratio, [-]
    typical : float
        Geometric mean; divide a roofline of the same system by it, [-]
    most : float
        Largest ratio, [-]

    Examples
    --------
    >>> least, typical, most = slowdown([8934, 2797, 789, 1169], [5353, 1518, 547, 613])
    >>> f"{least:.2f} {typical:.2f} {most:.2f}"
    '1.44 1.71 1.91'
    """
    ratio = positive("predicted", predicted) / positive("measured", measured)
    return (
        float(ratio.min()),
        float(np.exp(np.log(ratio).mean())),
        float(ratio.max()),
    )


def roofline_checks() -> list[dict[str, str]]:
    """Return published pairs of roofline and measured speed, with their sources.

    Returns
    -------
    list of dict
        Rows of ``data/roofline_checks.csv``, speeds as text in [token/s]

    Examples
    --------
    >>> roofline_checks()[0]["model"]
    'Llama-7B'
    """
    return read_rows("roofline_checks.csv")
