"""Published shapes, read from ``data/shapes.csv`` and Table A9 on first use."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from chinchilla_lab.shape.transformer import TransformerShape
from chinchilla_lab.sources import read_rows

__all__ = ["SHAPES", "shape_rows", "table_a9"]

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
    return tuple(
        (
            float(row["params_millions"]) * 1e6,
            TransformerShape(
                n_layers=int(row["n_layers"]),
                d_model=int(row["d_model"]),
                d_ff=int(row["d_ff"]),
                n_heads=int(row["n_heads"]),
                head_dim=int(row["head_dim"]),
                vocab_size=32000,
                gated=False,
                tied=True,
                positions="relative",
            ),
        )
        for row in read_rows("hoffmann2022_table_a9.csv")
    )
