"""Where a number comes from, and what its source says of itself."""

from dataclasses import dataclass
from typing import Literal

__all__ = ["Claim", "Source", "read_rows"]

Evidence = Literal["primary", "secondary", "recomputed"]


@dataclass(frozen=True, kw_only=True)
class Source:
    """A publication and the place in it.

    Parameters
    ----------
    cite : str
        Key in ``book/references.bib``, [-]
    where : str
        Equation, table, figure, notebook cell, [-]
    evidence : {"primary", "secondary", "recomputed"}
        Read in the authors' own text or repository, read in another text that
        quotes it, or obtained by evaluating the authors' formula or data, [-]
    note : str
        What a user must know beside the number, [-]
    """

    cite: str
    where: str
    evidence: Evidence = "primary"
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A number that a source states about its own law.

    Parameters
    ----------
    quantity : str
        What is claimed: ``"N"``, ``"D"``, ``"tokens_per_param"`` or ``"L"`` at the
        optimum of ``C``; ``"loss"`` at ``(N, D)``; or the name of a property such
        as ``"a"``, [-]
    value : float
        The claimed number, in the base unit of the quantity, [any]
    where : str
        Place of the claim, [-]
    rtol : float
        How closely the law must give it back: the rounding of the print, [-]
    C : float, optional
        Training compute at which the claim is made, [FLOP]
    N : float, optional
        Parameters at which the claim is made, [parameter]
    D : float, optional
        Tokens at which the claim is made, [token]
    unique : float, optional
        Unique tokens among ``D``, [token]
    """

    quantity: str
    value: float
    where: str
    rtol: float
    C: float | None = None
    N: float | None = None
    D: float | None = None
    unique: float | None = None


def read_rows(name: str) -> list[dict[str, str]]:
    """Read a table of facts that comes with the package.

    Parameters
    ----------
    name : str
        File in ``chinchilla_lab/data``, [-]

    Returns
    -------
    list of dict
        Cells as text by column, one dict a row, [-]

    Examples
    --------
    >>> read_rows("shapes.csv")[0]["name"]
    'GPT-2 small'
    """
    # loaded only where a table is read: an import of the package needs neither
    from csv import DictReader
    from importlib.resources import files

    path = files("chinchilla_lab") / "data" / name
    return list(DictReader(path.read_text(encoding="utf-8").splitlines()))
