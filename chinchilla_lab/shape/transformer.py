"""A decoder-only transformer as a handful of integers, and its parameters."""

from dataclasses import dataclass, fields
from typing import Literal

from chinchilla_lab.checks import one_of, whole
from chinchilla_lab.tables import html_table

__all__ = ["ParameterCount", "TransformerShape"]

Norm = Literal["rms", "layer"]
Positions = Literal["rotary", "learned", "relative"]


@dataclass(frozen=True, kw_only=True)
class ParameterCount:
    """Parameters of a transformer, itemised; exact integers.

    Parameters
    ----------
    attention : int
        Query, key, value and output matrices, and relative-position matrices,
        [parameter]
    mlp : int
        MLP matrices, all experts, [parameter]
    router : int
        Matrices that choose the experts, [parameter]
    norms : int
        Gains, and shifts of LayerNorm, [parameter]
    biases : int
        Biases of the matrices, [parameter]
    input_embedding : int
        Table from which a token's row is taken, [parameter]
    positions : int
        Learned position embeddings, [parameter]
    head : int
        Output matrix of its own; 0 where it is tied to the input table, [parameter]
    idle : int
        Matrices of the experts that a token does not use, a part of ``mlp``,
        [parameter]
    """

    attention: int
    mlp: int
    router: int
    norms: int
    biases: int
    input_embedding: int
    positions: int
    head: int
    idle: int = 0

    @property
    def total(self) -> int:
        """All parameters, as Hoffmann et al. count, [parameter]."""
        return sum(getattr(self, f.name) for f in fields(self) if f.name != "idle")

    @property
    def non_embedding(self) -> int:
        """Neither vocabulary nor positions, as Kaplan et al. count, [parameter]."""
        return self.attention + self.mlp + self.router + self.norms + self.biases

    @property
    def body_and_head(self) -> int:
        """Body plus one vocabulary matrix, as Porian et al. count, [parameter].

        The matrix of the head works once per token whether it is tied or not.
        """
        return self.non_embedding + self.input_embedding

    @property
    def active(self) -> int:
        """Parameters that one token uses; the total of a dense model, [parameter].

        Biases of idle experts, where a mixture has any, stay in.
        """
        return self.total - self.idle

    @property
    def matrices(self) -> int:
        """Weights that multiply each token, one vocabulary included, [parameter].

        No norms, biases, positions, row look-up or idle experts: the weights behind
        6 FLOP per weight and token.
        """
        return (
            self.attention + self.mlp + self.router + self.input_embedding - self.idle
        )

    @property
    def vocabulary_share(self) -> float:
        """Input table and own head as a share of the total, [-]."""
        return (self.input_embedding + self.head) / self.total

    def meanings(self) -> dict[str, int]:
        """Return N under each of its four names, [parameter]."""
        return {
            "total": self.total,
            "body_and_head": self.body_and_head,
            "non_embedding": self.non_embedding,
            "active": self.active,
        }

    def _repr_html_(self) -> str:
        items = [
            [f.name.replace("_", " "), f"{getattr(self, f.name):,}"]
            for f in fields(self)
            if f.name != "idle" and getattr(self, f.name)
        ]
        names = [[f"N {key}", f"{n:,}"] for key, n in self.meanings().items()]
        return html_table(("item", "parameters"), items + names)


@dataclass(frozen=True, kw_only=True)
class TransformerShape:
    r"""A decoder-only transformer.

    .. math::

       N = L\left[d h k + 2 d h_{kv} k + h k d + m\, d\, f + \text{norms}\right]
           + d + V d\,(1 \text{ if tied else } 2)

    with L layers, width d, h query heads and :math:`h_{kv}` key-value heads of size k,
    MLP width f, m = 3 matrices for a gated MLP and 2 otherwise, vocabulary V.

    Parameters
    ----------
    n_layers : int
        Layers L, [-]
    d_model : int
        Width d of the residual stream, [-]
    d_ff : int
        Width f of the MLP, of one expert in a mixture, [-]
    n_heads : int
        Query heads h, [-]
    vocab_size : int
        Rows V of the vocabulary matrix, [-]
    n_kv_heads : int, optional
        Key-value heads; by default as many as query heads, [-]
    head_dim : int, optional
        Size k of a head; by default d / h, [-]
    gated : bool, optional
        Three MLP matrices instead of two, [-]
    tied : bool, optional
        The head is the input table, [-]
    norm : {"rms", "layer"}, optional
        One or two vectors per norm; two norms a layer and one at the end, [-]
    biases : bool, optional
        Biases in all matrices of a layer, [-]
    positions : {"rotary", "learned", "relative"}, optional
        Learned: a table of ``n_positions`` rows; relative: one more h k by d matrix a
        layer, as in Chinchilla and Gopher, [-]
    n_positions : int, optional
        Rows of the learned table, [-]
    n_experts : int, optional
        Experts a layer, 1 for a dense model, [-]
    n_active_experts : int, optional
        Experts that the router picks for a token, [-]
    n_shared_experts : int, optional
        Further experts of the same width that every token uses, [-]

    Raises
    ------
    ValueError
        If a count is not a whole number, or heads do not divide.

    Notes
    -----
    Counts are kept as Python integers whatever they came as: 32-bit integers of an
    array would overflow at the first vocabulary matrix, and floats are not exact.

    References
    ----------
    :cite:`touvron2023llama2`, :cite:`radford2019language`; the relative-position
    matrix after :cite:`hoffmann2022training`, Table A9

    Examples
    --------
    >>> llama = TransformerShape(n_layers=32, d_model=4096, d_ff=14336, n_heads=32,
    ...                          n_kv_heads=8, vocab_size=128256)
    >>> llama.params().total
    8030261248
    """

    n_layers: int
    d_model: int
    d_ff: int
    n_heads: int
    vocab_size: int
    n_kv_heads: int | None = None
    head_dim: int | None = None
    gated: bool = True
    tied: bool = False
    norm: Norm = "rms"
    biases: bool = False
    positions: Positions = "rotary"
    n_positions: int = 0
    n_experts: int = 1
    n_active_experts: int = 1
    n_shared_experts: int = 0

    def __post_init__(self) -> None:
        counts = ("n_layers", "d_model", "d_ff", "n_heads", "vocab_size")
        for name in (*counts, "n_experts", "n_active_experts"):
            self._keep_whole(name)
        self._keep_whole("n_shared_experts", least=0)
        self._keep_whole("n_positions", least=int(self.positions == "learned"))
        for name in ("n_kv_heads", "head_dim"):
            if getattr(self, name) is not None:
                self._keep_whole(name)
        one_of("norm", self.norm, ("rms", "layer"))
        one_of("positions", self.positions, ("rotary", "learned", "relative"))
        if self.n_heads % self.kv_heads:
            raise ValueError(
                f"n_kv_heads={self.n_kv_heads} does not divide n_heads={self.n_heads}; "
                "each key-value head serves a whole number of query heads"
            )
        if self.head_dim is None and self.d_model % self.n_heads:
            raise ValueError(
                f"n_heads={self.n_heads} does not divide d_model={self.d_model}; "
                "choose a divisor or give head_dim"
            )
        if self.n_active_experts > self.n_experts:
            raise ValueError(
                f"n_active_experts={self.n_active_experts} exceeds "
                f"n_experts={self.n_experts}"
            )
        if self.n_shared_experts and self.n_experts == 1:
            raise ValueError(
                f"n_shared_experts={self.n_shared_experts} stands beside experts to "
                "choose from: give n_experts above 1, or a wider d_ff"
            )

    def _keep_whole(self, name: str, least: int = 1) -> None:
        count = whole(name, getattr(self, name), least)
        object.__setattr__(self, name, count)  # frozen: the one place that writes

    @property
    def kv_heads(self) -> int:
        """Key-value heads, [-]."""
        return self.n_heads if self.n_kv_heads is None else self.n_kv_heads

    @property
    def head_size(self) -> int:
        """Size of a head, [-]."""
        return self.d_model // self.n_heads if self.head_dim is None else self.head_dim

    @property
    def attention_width(self) -> int:
        """Query heads times their size; equals d in most models, [-]."""
        return self.n_heads * self.head_size

    @property
    def experts_per_token(self) -> int:
        """Experts that a token passes, shared ones included; 1 if dense, [-]."""
        return self.n_active_experts + self.n_shared_experts

    def params(self) -> ParameterCount:
        """Count the parameters.

        Returns
        -------
        ParameterCount
            Itemised exact integers, [parameter]

        Examples
        --------
        >>> gpt2 = TransformerShape(n_layers=12, d_model=768, d_ff=3072, n_heads=12,
        ...     vocab_size=50257, gated=False, tied=True, norm="layer", biases=True,
        ...     positions="learned", n_positions=1024)
        >>> gpt2.params().total
        124439808
        """
        d, f, layers = self.d_model, self.d_ff, self.n_layers
        q, kv = self.attention_width, self.kv_heads * self.head_size
        matrices = 3 if self.gated else 2
        relative = d * q if self.positions == "relative" else 0
        attention = layers * (2 * d * q + 2 * d * kv + relative)
        expert = layers * matrices * d * f
        is_mixture = self.n_experts > 1
        vectors = 2 if self.norm == "layer" else 1
        experts = self.n_experts + self.n_shared_experts
        bias = q + 2 * kv + d + ((matrices - 1) * f + d) * experts
        vocabulary = self.vocab_size * d
        return ParameterCount(
            attention=attention,
            mlp=expert * experts,
            router=layers * d * self.n_experts if is_mixture else 0,
            norms=vectors * d * (2 * layers + 1),
            biases=layers * bias if self.biases else 0,
            input_embedding=vocabulary,
            positions=self.n_positions * d if self.positions == "learned" else 0,
            head=0 if self.tied else vocabulary,
            idle=expert * (self.n_experts - self.n_active_experts),
        )

    def _repr_html_(self) -> str:
        rows = [
            [f.name, str(getattr(self, f.name))]
            for f in fields(self)
            if getattr(self, f.name) != f.default
        ]
        return html_table(("shape", "value"), rows)
