"""Published shapes, read from ``data/shapes.csv`` and Table A9 on first use."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from chinchilla_lab.shape.transformer import TransformerShape
from chinchilla_lab.sources import read_rows

__all__ = ["SHAPES", "a9_like", "shape_rows", "table_a9"]

_COUNTS = (
    "n_layers",
    "d_model",
    "d_ff",
    "n_heads",
    "n_kv_heads",
    "head_dim",
    "vocab_size",
    "n_positions",
    "n_experts",
    "n_active_experts",
)
_FLAGS = ("gated", "tied", "biases")
_WORDS = ("norm", "positions")


@cache
def shape_rows() -> dict[str, dict[str, str]]:
    """Return the rows of the shape table as text, sources included, by id.

    Returns
    -------
    dict
        Row by id, [-]
    """
    return {row["id"]: row for row in read_rows("shapes.csv")}


def _shape(row: dict[str, str]) -> TransformerShape:
    given: dict[str, Any] = {c: int(row[c]) for c in _COUNTS if row[c]}
    given |= {flag: row[flag] == "1" for flag in _FLAGS}
    given |= {word: row[word] for word in _WORDS}
    return TransformerShape(**given)


class _Shapes(Mapping[str, TransformerShape]):
    """Shapes by id; the file is read when the first one is asked for."""

    def __getitem__(self, key: str) -> TransformerShape:
        rows = shape_rows()
        if key not in rows:
            raise KeyError(
                f"no shape {key!r}; known: {', '.join(rows)} "
                "(add a row to chinchilla_lab/data/shapes.csv)"
            )
        return _shape(rows[key])

    def __iter__(self) -> Iterator[str]:
        return iter(shape_rows())

    def __len__(self) -> int:
        return len(shape_rows())


SHAPES: Mapping[str, TransformerShape] = _Shapes()
"""Published shapes by id, for example ``SHAPES["llama-3-8b"]``."""


def a9_like(
    n_layers: int, d_model: int, d_ff: int, n_heads: int, head_dim: int
) -> TransformerShape:
    """Return a shape of the kind that Hoffmann et al. trained.

    Parameters
    ----------
    n_layers : int
        Layers, [-]
    d_model : int
        Width, [-]
    d_ff : int
        Width of the MLP, [-]
    n_heads : int
        Heads, [-]
    head_dim : int
        Size of a head, [-]

    Returns
    -------
    TransformerShape
        With relative positions and a tied vocabulary of 32,000, [-]

    References
    ----------
    :cite:`hoffmann2022training`, Table A9
    """
    return TransformerShape(
        n_layers=n_layers,
        d_model=d_model,
        d_ff=d_ff,
        n_heads=n_heads,
        head_dim=head_dim,
        vocab_size=32000,
        gated=False,
        tied=True,
        positions="relative",
    )


@cache
def table_a9() -> tuple[tuple[float, TransformerShape], ...]:
    """Return the 50 models behind the laws of Hoffmann et al.

    Returns
    -------
    tuple
        Pairs of printed size [parameter] and shape

    References
    ----------
    :cite:`hoffmann2022training`, Table A9

    Examples
    --------
    >>> printed, shape = table_a9()[0]
    >>> f"{printed:.3g} {shape.params().matrices:.3g}"
    '4.4e+07 4.36e+07'
    """
    names = ("n_layers", "d_model", "d_ff", "n_heads", "head_dim")
    return tuple(
        (
            float(row["params_millions"]) * 1e6,
            a9_like(*(int(row[name]) for name in names)),
        )
        for row in read_rows("hoffmann2022_table_a9.csv")
    )
