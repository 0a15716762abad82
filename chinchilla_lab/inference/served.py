"""What is served and on what: weights, cache, peak, bandwidth, memory."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chinchilla_lab.checks import non_negative, positive, scalar, whole
from chinchilla_lab.shape.transformer import TransformerShape

__all__ = [
    "ServedModel",
    "ServingHardware",
    "kv_bytes_per_token",
]

Array = NDArray[np.float64]


def kv_bytes_per_token(
    n_layers: int, n_kv_heads: int, head_dim: int, kv_bytes: float = 2.0
) -> float:
    r"""Bytes of key-value cache that one token of context occupies.

    .. math:: 2 \cdot \text{bytes} \cdot k \cdot h_{kv} \cdot \text{layers}

    Parameters
    ----------
    n_layers : int
        Layers, [-]
    n_kv_heads : int
        Key-value heads; fewer than query heads with grouped queries, [-]
    head_dim : int
        Size of a head, [-]
    kv_bytes : float, optional
        Bytes of a cached number, [byte]

    Returns
    -------
    float
        Keys and values of all layers, [byte/token]

    References
    ----------
    :cite:`scalingbook`, chapter on inference; grouped queries :cite:`ainslie2023gqa`

    Examples
    --------
    >>> kv_bytes_per_token(32, 8, 128)  # Llama 3 8B
    131072.0
    """
    heads = whole("n_layers", n_layers) * whole("n_kv_heads", n_kv_heads)
    size = scalar("kv_bytes", kv_bytes)
    return 2.0 * size * whole("head_dim", head_dim) * heads


@dataclass(frozen=True, kw_only=True)
class ServedModel:
    """A model as its server sees it: weights to read, a cache to keep.

    Parameters
    ----------
    N : float
        All parameters, [parameter]
    N_active : float, optional
        Parameters that one token uses; by default all, [parameter]
    weight_bytes : float, optional
        Bytes of a stored weight: 2 in bf16, 1 in 8 bits, 0.5 in 4 bits, [byte]
    kv_bytes_per_token : float, optional
        Key-value cache of one token of context, [byte/token]
    n_experts : int, optional
        Experts to choose from, 1 for a dense model, [-]
    n_active_experts : int, optional
        Experts that a token passes, [-]

    Examples
    --------
    >>> ServedModel(N=70e9).weights(batch=1.0)  # bytes read in a step
    np.float64(140000000000.0)
    """

    N: float
    N_active: float | None = None
    weight_bytes: float = 2.0
    kv_bytes_per_token: float = 0.0
    n_experts: int = 1
    n_active_experts: int = 1

    def __post_init__(self) -> None:
        scalar("N", self.N)
        scalar("weight_bytes", self.weight_bytes)
        scalar("kv_bytes_per_token", self.kv_bytes_per_token, non_negative)
        experts = whole("n_experts", self.n_experts)
        if whole("n_active_experts", self.n_active_experts) > experts:
            raise ValueError(
                f"n_active_experts={self.n_active_experts} exceeds n_experts={experts}"
            )
        if self.N_active is not None:
            if scalar("N_active", self.N_active) > self.N:
                raise ValueError(
                    f"N_active={self.N_active:g} exceeds N={self.N:g}; N counts all "
                    "parameters, the idle experts included"
                )
            if self.N_active < self.N and self.n_active_experts == experts:
                raise ValueError(
                    f"N_active={self.N_active:g} is below N={self.N:g}, but no expert "
                    "is idle; give n_experts and n_active_experts"
                )
            if self._routed > self.N * (1.0 + 1e-9):
                raise ValueError(
                    f"N_active={self.N_active:g} of N={self.N:g} is less than "
                    f"{self.n_active_experts} of {experts} experts alone would use"
                )

    @classmethod
    def from_shape(
        cls, shape: TransformerShape, weight_bytes: float = 2.0, kv_bytes: float = 2.0
    ) -> "ServedModel":
        """Read sizes and cache off a transformer.

        Parameters
        ----------
        shape : TransformerShape
            The model, [-]
        weight_bytes : float, optional
            Bytes of a stored weight, [byte]
        kv_bytes : float, optional
            Bytes of a cached number, [byte]

        Returns
        -------
        ServedModel
            The same model to be served, [-]

        Examples
        --------
        >>> from chinchilla_lab.shape import SHAPES
        >>> ServedModel.from_shape(SHAPES["llama-3-8b"]).kv_bytes_per_token
        131072.0
        """
        count = shape.params()
        return cls(
            N=count.total,
            N_active=count.active,
            weight_bytes=weight_bytes,
            kv_bytes_per_token=kv_bytes_per_token(
                shape.n_layers, shape.kv_heads, shape.head_size, kv_bytes
            ),
            n_experts=shape.n_experts,
            n_active_experts=shape.n_active_experts,
        )

    @property
    def active(self) -> float:
        """Parameters that one token uses, [parameter]."""
        return self.N if self.N_active is None else self.N_active

    @property
    def _routed(self) -> float:
        """Parameters of all experts to choose from."""
        idle = 1.0 - self.n_active_experts / self.n_experts
        return (self.N - self.active) / idle if idle else 0.0

    def touched(self, batch: ArrayLike) -> Array:
        r"""Share of the experts that a step of some tokens uses.

        .. math:: 1 - \left(1 - \frac{k}{E}\right)^{B}

        Parameters
        ----------
        batch : array_like
            Tokens in the step, [token]

        Returns
        -------
        numpy.ndarray or float
            The share, for tokens that choose k of E experts at random, [-]

        Examples
        --------
        >>> moe = ServedModel(N=671e9, N_active=37e9, n_experts=256, n_active_experts=8)
        >>> moe.touched([1, 8, 64]).round(3)
        array([0.031, 0.224, 0.869])
        """
        tokens = positive("batch", batch)
        share = self.n_active_experts / self.n_experts
        if share == 1.0:
            return np.ones_like(tokens)[()]
        return np.asarray(-np.expm1(tokens * np.log1p(-share)))[()]

    def weights(self, batch: ArrayLike) -> Array:
        """Bytes of weights that a step reads.

        Parameters
        ----------
        batch : array_like
            Tokens in the step, [token]

        Returns
        -------
        numpy.ndarray or float
            The shared weights and the experts touched: near the active parameters at
            batch 1, all of them in large batches, [byte]
        """
        shared = self.N - self._routed
        read = shared + self._routed * self.touched(batch)
        return np.asarray(self.weight_bytes * read)[()]


@dataclass(frozen=True, kw_only=True)
class ServingHardware:
    """The accelerators that hold one copy of a model.

    Parameters
    ----------
    peak_flops : float
        Dense peak of one accelerator in the arithmetic used, [FLOP/s]
    bandwidth : float, optional
        Memory bandwidth of one accelerator, [byte/s]
    memory : float, optional
        Memory of one accelerator, [byte]
    n_accelerators : int, optional
        Accelerators that share the model, [count]
    """

    peak_flops: float
    bandwidth: float | None = None
    memory: float | None = None
    n_accelerators: int = 1

    def __post_init__(self) -> None:
        scalar("peak_flops", self.peak_flops)
        whole("n_accelerators", self.n_accelerators)
        for name in ("bandwidth", "memory"):
            if getattr(self, name) is not None:
                scalar(name, getattr(self, name))

    @property
    def total_flops(self) -> float:
        """Peak of all accelerators, [FLOP/s]."""
        return self.peak_flops * self.n_accelerators

    @property
    def total_bandwidth(self) -> float:
        """Bandwidth of all accelerators, [byte/s]."""
        return self._given("bandwidth", "byte/s") * self.n_accelerators

    @property
    def total_memory(self) -> float:
        """Memory of all accelerators, [byte]."""
        return self._given("memory", "bytes") * self.n_accelerators

    def _given(self, name: str, unit: str) -> float:
        value = getattr(self, name)
        if value is None:
            raise ValueError(f"{name} of the accelerator is missing: give it in {unit}")
        return float(value)
