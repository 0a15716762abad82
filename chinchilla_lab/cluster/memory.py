"""Bytes on the fullest accelerator, itemised; what is left out is said."""

from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import numpy as np

from chinchilla_lab.checks import non_negative, one_of, positive, whole
from chinchilla_lab.cluster.accelerators import Accelerator, find
from chinchilla_lab.cluster.activations import (
    Attention,
    in_flight,
    layer_activations,
)
from chinchilla_lab.cluster.hardware import Cluster
from chinchilla_lab.cluster.kernel import stage_layers
from chinchilla_lab.cluster.layout import Degrees, Layout, check_interleaving
from chinchilla_lab.shape.transformer import TransformerShape
from chinchilla_lab.sources import Source
from chinchilla_lab.tables import html_table
from chinchilla_lab.units import GB, GIB

__all__ = [
    "NOT_INCLUDED",
    "RECIPES",
    "MemoryBreakdown",
    "Recipe",
    "largest_micro_batch",
    "memory",
    "state_bytes",
]

NOT_INCLUDED = (
    "fragmentation, communication buffers, the context of the driver, temporaries of "
    "the optimizer, offloading and an uneven load of experts"
)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Bytes that training keeps for each parameter.

    Parameters
    ----------
    weights : float
        Copy that multiplies, [byte/parameter]
    gradients : float
        Accumulated gradient, [byte/parameter]
    optimizer : float
        Master copy and moments, [byte/parameter]
    logits : float, optional
        Live bytes of a logit where the loss is taken: both widths, [byte]
    eager : bool, optional
        Gates are not fused with their products, [-]
    lean : bool, optional
        Outputs of norms and of the activation in the MLP are computed again and not
        kept; that moves bytes, under 1 % of a step, which is not timed, [-]
    label : str, optional
        What the bytes are, [-]
    source : Source, optional
        Who trains so, [-]

    Examples
    --------
    >>> RECIPES["mixed-adam-fp32grad"].total
    18.0
    """

    weights: float
    gradients: float
    optimizer: float
    logits: float = 6.0
    eager: bool = False
    lean: bool = False
    label: str = "own"
    source: Source | None = None

    def __post_init__(self) -> None:
        for f in ("weights", "gradients", "optimizer", "logits"):
            non_negative(f, getattr(self, f))

    @property
    def total(self) -> float:
        """All states together, [byte/parameter]."""
        return self.weights + self.gradients + self.optimizer


_EAGER = Source(cite="nanotron", where="optim, models/llama.py and tensor_parallel")


def _recipe(w: float, g: float, o: float, label: str, cite: str = "") -> Recipe:
    source = Source(cite=cite, where="Figure 1, 18 bytes") if cite else None
    return Recipe(weights=w, gradients=g, optimizer=o, label=label, source=source)


RECIPES: dict[str, Recipe] = {
    "mixed-adam": _recipe(
        2.0, 2.0, 12.0, "16-bit weights and gradients, fp32 master and moments"
    ),
    "mixed-adam-fp32grad": _recipe(
        2.0,
        4.0,
        12.0,
        "16-bit weights, fp32 gradients, master and moments",
        "korthikanti2022reducing",
    ),
    "mixed-adam-both-gradients": _recipe(
        2.0, 6.0, 12.0, "16-bit weights, gradients in both widths, fp32 rest"
    ),
    "mixed-adam-lean": Recipe(
        weights=2.0,
        gradients=2.0,
        optimizer=12.0,
        lean=True,
        label="mixed-adam, norms and activations of the MLP computed again",
        source=Source(
            cite="megatronmoe", where="best_practice/Qwen3, recompute: norm, act"
        ),
    ),
    # the loss keeps logits in both widths, a shifted copy and its gradient
    "eager-fp32grad": Recipe(
        weights=2.0,
        gradients=4.0,
        optimizer=12.0,
        logits=14.0,
        eager=True,
        label="fp32 gradients, nothing fused but attention",
        source=_EAGER,
    ),
    "eager-both-gradients": Recipe(
        weights=2.0,
        gradients=6.0,
        optimizer=12.0,
        logits=14.0,
        eager=True,
        label="the same, and buckets of 16-bit gradients for replicas",
        source=_EAGER,
    ),
    "fp32-adam": _recipe(4.0, 4.0, 8.0, "all in fp32"),
    "fp32-adam-transient-gradients": _recipe(
        4.0, 0.0, 8.0, "fp32 weights and moments, gradients not kept"
    ),
}
"""Recipes by name; a recipe of your own is ``Recipe(weights=..., ...)``."""


@dataclass(frozen=True, kw_only=True)
class MemoryBreakdown:
    """Bytes on the fullest accelerator; ``total`` is their sum.

    Parameters
    ----------
    weights : float
        Weights that stay, [byte]
    gradients : float
        Gradients, [byte]
    optimizer : float
        Master weights and moments, [byte]
    activations : float
        Kept for the backward pass, all micro-batches in flight, [byte]
    logits : float
        Logits and their gradient; with a pipeline, by how much they make the last stage
        fuller than the first, [byte]
    buffers : float
        Working set of a recomputed layer, gathered layers of ZeRO-3, and the measured
        offset of the stack, if one is given, [byte]
    """

    weights: float
    gradients: float
    optimizer: float
    activations: float
    logits: float
    buffers: float

    @property
    def states(self) -> float:
        """Weights, gradients and optimizer: they do not depend on the batch, [byte]."""
        return self.weights + self.gradients + self.optimizer

    @property
    def total(self) -> float:
        """Sum of the items, [byte]."""
        return sum(float(getattr(self, f.name)) for f in fields(self))

    def headroom(self, accelerator: Accelerator | str) -> float:
        """Bytes that stay free; negative if it does not fit.

        Parameters
        ----------
        accelerator : Accelerator or str
            The chip or its key, [-]

        Returns
        -------
        float
            Free bytes, against what the driver reports, [byte]
        """
        return find(accelerator).memory - self.total

    def fits(self, accelerator: Accelerator | str) -> bool:
        """Say whether it fits.

        Parameters
        ----------
        accelerator : Accelerator or str
            The chip or its key, [-]

        Returns
        -------
        bool
            True if something stays free, [-]
        """
        return self.headroom(accelerator) >= 0.0

    def _repr_html_(self) -> str:
        items = [(f.name, getattr(self, f.name)) for f in fields(self)]
        rows = [
            [name, f"{value / GIB:.2f}", f"{value / GB:.2f}"]
            for name, value in [*items, ("total", self.total)]
        ]
        return html_table(
            ("fullest accelerator", "[GiB]", "[GB]"),
            rows,
            f"not included: {NOT_INCLUDED}",
        )


def state_bytes(
    params: float, recipe: Recipe | str = "mixed-adam", zero: int = 0, dp: int = 1
) -> MemoryBreakdown:
    r"""States of a number of parameters, ZeRO stages applied.

    .. math:: N\left(\frac{w}{d^{[z \ge 3]}} + \frac{g}{d^{[z \ge 2]}}
       + \frac{o}{d^{[z \ge 1]}}\right)

    Parameters
    ----------
    params : float
        Parameters N of one accelerator before sharding over replicas, [parameter]
    recipe : Recipe or str, optional
        Bytes w, g, o of a parameter, or a key of :data:`RECIPES`, [byte/parameter]
    zero : int, optional
        ZeRO stage z, [-]
    dp : int, optional
        Replicas d, [-]

    Returns
    -------
    MemoryBreakdown
        States only, [byte]

    Raises
    ------
    ValueError
        If there is no such stage.

    References
    ----------
    :cite:`korthikanti2022reducing`, Fig. 1, which 18 bytes reproduce

    Examples
    --------
    >>> states = state_bytes(2.851e9, zero=2, dp=8)
    >>> f"{states.total / 2**30:.2f} GiB, {states.total / 1e9:.2f} GB"
    '9.96 GiB, 10.69 GB'
    """
    used = recipe_of(recipe)
    n, d = float(positive("params", params)), whole("dp", dp)
    stage = Layout(zero=zero).zero
    return MemoryBreakdown(
        weights=n * used.weights / (d if stage >= 3 else 1),
        gradients=n * used.gradients / (d if stage >= 2 else 1),
        optimizer=n * used.optimizer / (d if stage >= 1 else 1),
        activations=0.0,
        logits=0.0,
        buffers=0.0,
    )


def recipe_of(recipe: Recipe | str) -> Recipe:
    """Return a recipe, or the one of that name."""
    return (
        recipe
        if isinstance(recipe, Recipe)
        else RECIPES[one_of("recipe", recipe, RECIPES)]
    )


def room(cluster: Cluster, memory_limit: float | None) -> float:
    """Return the bytes that a job may fill: the given ones or the driver's."""
    given = cluster.chip.memory if memory_limit is None else memory_limit
    return float(positive("memory_limit", given))


def components(
    shape: TransformerShape,
    g: Degrees,
    m: Any,
    seq_len: float,
    recipe: Recipe,
    fused: bool,
    dropout: bool,
    offset: float,
    head_counted: bool = False,
) -> tuple[Any, Any, Any, Any, Any, Any]:
    """Return the items of :class:`MemoryBreakdown`; arrays broadcast."""
    n = shape.params()
    layers, d_model = shape.n_layers, shape.d_model
    shared = shape.n_shared_experts / (shape.n_experts + shape.n_shared_experts)
    is_mixture = shape.n_experts > 1
    experts = n.mlp * (1.0 - shared) if is_mixture else 0.0
    dense = (n.non_embedding - experts) / layers
    per_stage, end = stage_layers(shape, g.p, g.v, head_counted)
    # an end stage of a pipeline holds one vocabulary matrix, a single stage all of
    # them; where layers do not divide, the end stages are the shorter ones
    table = 1.0 * shape.vocab_size * d_model
    tables = np.where(g.p > 1, table, 1.0 * (n.input_embedding + n.head)) + n.positions
    first = per_stage if head_counted else end
    local = np.maximum(first * dense + tables, per_stage * dense) / g.t
    replicas = g.d * g.c
    local_experts = per_stage * experts / layers / g.e
    expert_replicas = np.maximum(g.t * replicas / g.e, 1.0)
    sharded = [
        np.where(
            g.zero >= stage,
            local / replicas + local_experts / expert_replicas,
            local + local_experts,
        )
        for stage in (1, 2, 3)
    ]
    ways = {"eager": recipe.eager, "lean": recipe.lean}
    layer = layer_activations(shape, g, seq_len, fused, dropout, **ways)
    held = per_stage * in_flight(g.p, g.v, m)
    # one layer lives again in full while its backward pass runs
    again = layer_activations(shape, g, seq_len, fused, dropout, full=0.0, **ways)
    tokens = g.b * seq_len / g.c
    gathered = np.where(
        (g.zero >= 3) & (replicas > 1),
        2.0 * recipe.weights * (dense / g.t + experts / layers / g.e),
        0.0,
    )
    buffers = g.full * again + gathered + offset
    kept = layer * held
    # the last stage holds the logits, and one micro-batch where the first holds p
    logits = recipe.logits * tokens * shape.vocab_size / g.t
    last = end if head_counted else per_stage
    logits = np.maximum(logits + layer * last - kept, 0.0)
    return (
        recipe.weights * sharded[2],
        recipe.gradients * sharded[1],
        recipe.optimizer * sharded[0],
        kept,
        logits,
        buffers,
    )


def memory(
    shape: TransformerShape,
    layout: Layout,
    seq_len: int,
    n_micro_batches: int | None = None,
    recipe: Recipe | str = "mixed-adam",
    attention: Attention = "fused",
    dropout: bool = False,
    offset: float = 0.0,
    head_counted: bool = False,
    stage: Literal["fullest", "first"] = "fullest",
) -> MemoryBreakdown:
    """Bytes on the fullest accelerator.

    Parameters
    ----------
    shape : TransformerShape
        The model, [-]
    layout : Layout
        How it is cut, [-]
    seq_len : int
        Tokens of a sequence, [token]
    n_micro_batches : int, optional
        Micro-batches of a step; by default enough to fill the pipeline, [-]
    recipe : Recipe or str, optional
        Bytes of a parameter, or a key of :data:`RECIPES`, [byte/parameter]
    attention : {"fused", "unfused"}, optional
        Whether scores stay on the chip, [-]
    dropout : bool, optional
        Masks of dropout are kept, [-]
    offset : float, optional
        What the stack takes beside the items, as measured, [byte]
    head_counted : bool, optional
        Stages are cut by cost, as in :class:`Stack`, [-]
    stage : {"fullest", "first"}, optional
        Stage of the pipeline that is asked about, [-]

    Returns
    -------
    MemoryBreakdown
        Items and total, [byte]

    Raises
    ------
    ValueError
        If a degree does not divide the model, or the pipeline its micro-batches.

    Notes
    -----
    The fullest stage of a pipeline: the first with its p micro-batches in flight and
    the input table, or the last with the logits. Weights of experts divide by ep, not
    by tp. Not included: see ``NOT_INCLUDED``.

    References
    ----------
    :cite:`korthikanti2022reducing`, equations 1 to 6

    Examples
    --------
    >>> from chinchilla_lab.shape import SHAPES
    >>> plan = Layout(tp=8, dp=8, zero=1, sequence_parallel=True)
    >>> f"{memory(SHAPES['llama-3-8b'], plan, 8192).total / 2**30:.1f} GiB"
    '10.1 GiB'
    """
    one_of("attention", attention, ("fused", "unfused"))
    one_of("stage", stage, ("fullest", "first"))
    m = 2 * layout.pp  # enough for any schedule
    if n_micro_batches is not None:
        m = whole("n_micro_batches", n_micro_batches)
        check_interleaving(layout.pp, m, layout.n_chunks)
    layout.check_shape(shape, whole("seq_len", seq_len), even_stages=False)
    items = components(
        shape,
        layout.degrees(),
        float(m),
        float(whole("seq_len", seq_len)),
        recipe_of(recipe),
        attention == "fused",
        dropout,
        float(non_negative("offset", offset)),
        head_counted,
    )
    found = {
        f.name: float(x) for f, x in zip(fields(MemoryBreakdown), items, strict=True)
    }
    if stage == "first" and layout.pp > 1:
        found["logits"] = 0.0
    return MemoryBreakdown(**found)


def largest_micro_batch(
    shape: TransformerShape,
    layout: Layout,
    seq_len: int,
    accelerator: Accelerator | str,
    most: int = 1024,
    **settings: Any,
) -> int:
    """Largest micro-batch that fits; 0 if not even one sequence does.

    Parameters
    ----------
    shape : TransformerShape
        The model, [-]
    layout : Layout
        How it is cut; its own micro-batch is not used, [-]
    seq_len : int
        Tokens of a sequence, [token]
    accelerator : Accelerator or str
        The chip or its key, [-]
    most : int, optional
        Where to stop, [sequence]
    **settings : dict
        As for :func:`memory`, [-]

    Returns
    -------
    int
        Sequences, [sequence]

    Notes
    -----
    The total is affine in the micro-batch: states stay, activations grow in step.

    Examples
    --------
    >>> from chinchilla_lab.shape import SHAPES
    >>> plan = Layout(tp=8, zero=1, recompute="full", sequence_parallel=True)
    >>> largest_micro_batch(SHAPES["llama-3-8b"], plan, 8192, "h100-sxm-80gb")
    57
    """
    room = find(accelerator).memory
    one, two = (
        memory(shape, replace(layout, micro_batch=b), seq_len, **settings).total
        for b in (1, 2)
    )
    if one > room:
        return 0
    return min(most, 1 + int((room - one) // (two - one)))
