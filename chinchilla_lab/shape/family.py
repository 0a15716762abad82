"""Realistic shapes for a wanted size: heads that divide, widths that tile."""

from bisect import bisect_left
from dataclasses import dataclass
from functools import cache
from math import log

from chinchilla_lab.checks import one_of, positive
from chinchilla_lab.shape.transformer import TransformerShape
from chinchilla_lab.units import text

__all__ = ["FAMILIES", "Family", "shape_for", "shapes_near"]


@dataclass(frozen=True, kw_only=True)
class Family:
    """What the shapes of one lineage share.

    Parameters
    ----------
    head_dim : int
        Size of a head, [-]
    ff_ratio : float
        MLP width over d before rounding, [-]
    ff_multiple : int
        The MLP width is a multiple of this, [-]
    kv_group : int
        Query heads that share a key-value head in wide models, [-]
    vocab_size : int
        Vocabulary, [-]
    gated : bool
        Three MLP matrices instead of two, [-]
    tied : bool
        The head is the input table, [-]
    aspect : tuple of float
        Least and largest width over layers, [-]
    widths : tuple of int
        Least and largest width, [-]
    usual_aspect : float
        Width over layers that most runs choose, [-]
    n_experts : int
        Experts a layer among which a router picks; 1 for dense models, [-]
    n_active_experts : int
        Experts that it picks for a token, [-]
    n_shared_experts : int
        Experts that every token passes, [-]
    """

    head_dim: int
    ff_ratio: float
    ff_multiple: int
    kv_group: int
    vocab_size: int
    gated: bool
    tied: bool
    aspect: tuple[float, float] = (64.0, 144.0)
    widths: tuple[int, int] = (2048, 24576)
    usual_aspect: float = 115.0
    n_experts: int = 1
    n_active_experts: int = 1
    n_shared_experts: int = 0


FAMILIES: dict[str, Family] = {
    "llama": Family(
        head_dim=128,
        ff_ratio=3.5,
        ff_multiple=256,
        kv_group=4,
        vocab_size=32000,
        gated=True,
        tied=False,
    ),
    "llama-3": Family(
        head_dim=128,
        ff_ratio=3.5,
        ff_multiple=256,
        kv_group=4,
        vocab_size=128256,
        gated=True,
        tied=False,
    ),
    "small": Family(
        head_dim=64,
        ff_ratio=8 / 3,
        ff_multiple=64,
        kv_group=1,
        vocab_size=32000,
        gated=True,
        tied=True,
        aspect=(32.0, 96.0),
        widths=(256, 4096),
        usual_aspect=64.0,
    ),
    "mixtral": Family(
        head_dim=128,
        ff_ratio=3.5,
        ff_multiple=256,
        kv_group=4,
        vocab_size=32000,
        gated=True,
        tied=False,
        widths=(1536, 24576),
        n_experts=8,
        n_active_experts=2,
    ),
    "fine-experts": Family(
        head_dim=128,
        ff_ratio=2 / 7,
        ff_multiple=128,
        kv_group=4,
        vocab_size=129280,
        gated=True,
        tied=False,
        widths=(2048, 16384),
        n_experts=256,
        n_active_experts=8,
        n_shared_experts=1,
    ),
}
"""Families of :func:`shape_for`: Llama-like with 32,000 or 128,256 rows of vocabulary,
small tied models, and two of mixtures. ``mixtral``: two of eight wide experts; it holds
Mixtral 8x7B itself (:cite:`jiang2024mixtral`, Table 1). ``fine-experts``: eight of 256
narrow experts beside a shared one, in the widths of DeepSeek-V3
(:cite:`deepseek2024v3`, section 4.2 and released configuration), but with plain grouped
attention and experts in every layer."""

Rung = tuple[int, int, int]
# neighbours on a ladder are at most 8 % apart: no size within it is further from one
_REACH = 0.04


@cache
def _shape(family: str, d: int, layers: int) -> TransformerShape:
    make = FAMILIES[family]
    heads = d // make.head_dim
    return TransformerShape(
        n_layers=layers,
        d_model=d,
        d_ff=round(make.ff_ratio * d / make.ff_multiple) * make.ff_multiple,
        n_heads=heads,
        n_kv_heads=heads // make.kv_group,
        vocab_size=make.vocab_size,
        gated=make.gated,
        tied=make.tied,
        n_experts=make.n_experts,
        n_active_experts=make.n_active_experts,
        n_shared_experts=make.n_shared_experts,
    )


@cache
def _ladder(family: str) -> tuple[Rung, ...]:
    """Parameters that a token uses, width and layers of every shape, by size.

    A family has thousands of shapes: a shape is made where it is asked for.
    """
    make = FAMILIES[family]
    step = make.head_dim * make.kv_group
    rungs = []
    for d in range(make.widths[0], make.widths[1] + 1, step):
        low, high = d / make.aspect[1], d / make.aspect[0]
        # each layer adds the same
        one, two = (_shape(family, d, k).params().active for k in (1, 2))
        rungs += [
            (one + (layers - 1) * (two - one), d, layers)
            for layers in range(max(2, round(low)), round(high) + 1)
        ]
    return tuple(sorted(rungs))


def _close(ladder: tuple[Rung, ...], wanted: float, rtol: float) -> list[Rung]:
    """Return the rungs whose size is within a share of what is wanted."""
    low, high = wanted * (1.0 - rtol) - 1.0, wanted * (1.0 + rtol) + 1.0
    first, last = (bisect_left(ladder, x, key=lambda r: r[0]) for x in (low, high))
    return [r for r in ladder[first:last] if abs(r[0] / wanted - 1.0) <= rtol]


def shapes_near(
    N: float, rtol: float = 0.02, family: str = "llama"
) -> list[tuple[int, TransformerShape]]:
    """Return the shapes of a family that are close to N.

    Parameters
    ----------
    N : float
        Wanted parameters that a token uses: all of a dense model, [parameter]
    rtol : float, optional
        Relative distance allowed, [-]
    family : str, optional
        Key of :data:`FAMILIES`, [-]

    Returns
    -------
    list of tuple
        Pairs of active parameters [parameter] and shape, nearest first; empty if none
        is close

    Examples
    --------
    >>> near = shapes_near(9.05e9)
    >>> all(abs(total / 9.05e9 - 1) <= 0.02 for total, _ in near) and len(near) > 2
    True
    """
    one_of("family", family, FAMILIES)
    wanted = float(positive("N", N))
    close = _close(_ladder(family), wanted, rtol)
    near = sorted(close, key=lambda rung: abs(rung[0] - wanted))
    return [(total, _shape(family, d, layers)) for total, d, layers in near]


def shape_for(N: float, family: str = "llama") -> TransformerShape:
    """Return the most usual shape of a family with a size close to N.

    Parameters
    ----------
    N : float
        Wanted parameters that a token uses: all of a dense model, [parameter]
    family : str, optional
        Key of :data:`FAMILIES`, [-]

    Returns
    -------
    TransformerShape
        The shape; ask its ``params()`` for the exact counts, [-]

    Raises
    ------
    ValueError
        If N lies more than 4 % outside the sizes of the family.

    Notes
    -----
    Heads divide, key-value heads divide heads, the MLP width is a multiple of 256 and
    width over layers stays within the family's range. Among the shapes within 1 % of N
    the one with the family's usual width over layers is taken; where there is none
    within 1 %, the nearest, which is at most 4 % away. A larger N never gets a smaller
    shape.

    Examples
    --------
    >>> shape = shape_for(9.05e9)
    >>> shape.d_model, shape.n_layers, f"{shape.params().total / 9.05e9 - 1:+.1%}"
    (4096, 40, '-0.7%')
    """
    one_of("family", family, FAMILIES)
    wanted = float(positive("N", N))
    ladder = _ladder(family)
    smallest, largest = ladder[0][0], ladder[-1][0]
    if not (1 - _REACH) * smallest <= wanted <= (1 + _REACH) * largest:
        raise ValueError(
            f"N={text(wanted, 'parameter')} leaves the family {family!r}, "
            f"{text(smallest, 'parameter')} to {text(largest, 'parameter')}; "
            f"other families: {', '.join(f for f in FAMILIES if f != family)}"
        )
    close = _close(ladder, wanted, 0.01)
    if not close:
        _, d, layers = min(ladder, key=lambda rung: abs(rung[0] - wanted))
        return _shape(family, d, layers)
    usual = FAMILIES[family].usual_aspect

    def oddity(rung: Rung) -> tuple[float, float]:
        total, d, layers = rung
        return abs(log(d / layers / usual)), abs(total - wanted)

    _, d, layers = min(close, key=oddity)
    return _shape(family, d, layers)
