"""Models that were released: their size, their tokens and how sure that is."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from chinchilla_lab.checks import one_of
from chinchilla_lab.sources import read_rows
from chinchilla_lab.tables import html_table
from chinchilla_lab.units import text

__all__ = ["ReleasedModels", "released_models"]

Array = NDArray[np.float64]
Trust = Literal["primary", "sourced", "all"]
_PRIMARY = ("paper", "model card or repository")
_SOURCED = (*_PRIMARY, "secondary")


@dataclass(frozen=True, kw_only=True, eq=False)
class ReleasedModels:
    """Columns of the table of released models.

    Parameters
    ----------
    names : tuple of str
        Names, [-]
    dates : tuple of str
        Release, as exact as known, [-]
    N_active : numpy.ndarray
        Parameters that one token uses, [parameter]
    N_total : numpy.ndarray
        All parameters, [parameter]
    D : numpy.ndarray
        Training tokens seen, [token]
    evidence : tuple of str
        ``paper``, ``model card or repository``, ``secondary`` or ``unverified``, [-]
    where : tuple of str
        Place of the numbers, [-]
    notes : tuple of str
        What makes a row hard to compare, [-]
    """

    names: tuple[str, ...]
    dates: tuple[str, ...]
    N_active: Array
    N_total: Array
    D: Array
    evidence: tuple[str, ...]
    where: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def primary(self) -> NDArray[np.bool_]:
        """Rows read in the authors' own text."""
        return np.array([e in _PRIMARY for e in self.evidence])

    @property
    def mixture(self) -> NDArray[np.bool_]:
        """Rows whose tokens use a part of the parameters."""
        return self.N_active < self.N_total

    @property
    def tokens_per_param(self) -> Array:
        """Tokens per active parameter, [token/parameter]."""
        return self.D / self.N_active

    def _repr_html_(self) -> str:
        rows = [
            [
                name,
                date,
                text(active, "parameter"),
                text(total, "parameter"),
                text(tokens, "token"),
                text(tokens / active, ""),
                evidence,
            ]
            for name, date, active, total, tokens, evidence in zip(
                self.names, self.dates, self.N_active, self.N_total, self.D,
                self.evidence, strict=True,
            )
        ]  # fmt: skip
        head = (
            "model",
            "date",
            "active N [parameter]",
            "total N [parameter]",
            "D [token]",
            "D / active N [token/parameter]",
            "evidence",
        )
        return html_table(head, rows)


def released_models(trust: Trust = "sourced") -> ReleasedModels:
    """Return released models for the chart of tokens against parameters.

    Parameters
    ----------
    trust : {"primary", "sourced", "all"}, optional
        Only rows read in papers, cards or repositories of the authors; also rows
        quoted by others; or also rows that nobody here has checked, [-]

    Returns
    -------
    ReleasedModels
        Columns, one entry a model, in order of release, [-]

    Notes
    -----
    Tokens are tokens seen, not the size of a corpus. Active parameters count for
    compute, total ones for memory. Pruned, distilled and multimodal models are marked
    in ``notes``: their ratio does not compare.

    Examples
    --------
    >>> found = released_models("primary")
    >>> i = found.names.index("Llama-2-7B")
    >>> f"{found.tokens_per_param[i]:.1f}"
    '285.7'
    """
    one_of("trust", trust, ("primary", "sourced", "all"))
    kept = {"primary": _PRIMARY, "sourced": _SOURCED}.get(trust)
    rows = [
        row
        for row in read_rows("models.csv")
        if kept is None or row["evidence"] in kept
    ]
    rows.sort(key=lambda row: row["date"])

    def numbers(column: str) -> Array:
        return np.array([float(row[column]) for row in rows])

    return ReleasedModels(
        names=tuple(row["name"] for row in rows),
        dates=tuple(row["date"] for row in rows),
        N_active=numbers("N_active"),
        N_total=numbers("N_total"),
        D=numbers("D_tokens"),
        evidence=tuple(row["evidence"] for row in rows),
        where=tuple(row["where"] for row in rows),
        notes=tuple(row["note"] for row in rows),
    )
