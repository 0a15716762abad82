"""Corpora: what they advertise, and what of it is unique."""

from dataclasses import dataclass

from chinchilla_lab.checks import one_of, scalar
from chinchilla_lab.sources import read_rows
from chinchilla_lab.tables import html_table
from chinchilla_lab.units import text

__all__ = ["CORPORA", "Corpus", "Passes", "corpora_table", "passes"]


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """A corpus, or a stock of text.

    Parameters
    ----------
    id : str
        Key in :data:`CORPORA`, [-]
    name : str
        Name, [-]
    advertised : float
        Tokens that its source states, [token]
    unique : float or None
        Tokens left after deduplication, where a source says so, [token]
    is_unique : {"yes", "no", "unknown"}
        Whether the advertised tokens are deduplicated as a whole, [-]
    tokenizer : str
        How the tokens were counted, empty if unknown, [-]
    licence : str
        Licence, empty if unknown, [-]
    date : str
        When the size was stated, empty if unknown, [-]
    source : str
        Address or key in ``book/references.bib``, [-]
    where : str
        Place in the source, [-]
    evidence : str
        How the number was read, [-]
    note : str
        What a user must know beside it, [-]
    """

    id: str
    name: str
    advertised: float
    unique: float | None
    is_unique: str
    tokenizer: str
    licence: str
    date: str
    source: str
    where: str
    evidence: str
    note: str

    @property
    def unique_tokens(self) -> float:
        """Tokens to feed to a law, [token]."""
        if self.unique is None:
            raise ValueError(
                f"unique tokens of {self.name} are not known, only the advertised "
                f"{text(self.advertised, 'token')}: deduplicate and count, then give "
                "the number yourself"
            )
        return self.unique

    @property
    def unique_share(self) -> float:
        """Unique over advertised tokens, [-]."""
        return self.unique_tokens / self.advertised


def _read() -> dict[str, Corpus]:
    found = {}
    for row in read_rows("corpora.csv"):
        found[row["id"]] = Corpus(
            id=row["id"],
            name=row["name"],
            advertised=float(row["tokens_advertised"]),
            unique=float(row["tokens_unique"]) if row["tokens_unique"] else None,
            is_unique=one_of("unique", row["unique"], ("yes", "no", "unknown")),
            tokenizer=row["tokenizer"],
            licence=row["licence"],
            date=row["date"],
            source=row["source"],
            where=row["where"],
            evidence=row["evidence"],
            note=row["note"],
        )
    return found


CORPORA = _read()
"""Corpora by id, from ``data/corpora.csv``."""


def corpora_table() -> str:
    """Return the corpora with sizes, licences and sources.

    Returns
    -------
    str
        HTML, [-]

    Examples
    --------
    >>> "FineWeb-Edu" in corpora_table()
    True
    """
    rows = [
        [
            c.name,
            text(c.advertised, "token"),
            "unknown" if c.unique is None else text(c.unique, "token"),
            c.licence or "unknown",
            c.date or "unknown",
            c.source,
            c.evidence,
        ]
        for c in CORPORA.values()
    ]
    head = (
        "corpus",
        "advertised [token]",
        "unique [token]",
        "licence",
        "date",
        "source",
        "evidence",
    )
    return html_table(head, rows, "Advertised tokens are not unique tokens.")


@dataclass(frozen=True, kw_only=True)
class Passes:
    """Unique tokens and passes over them, under all their names.

    Parameters
    ----------
    unique : float
        Unique tokens U, [token]
    tokens : float
        Tokens trained, repeats included, D, [token]
    """

    unique: float
    tokens: float

    @property
    def epochs(self) -> float:
        """Passes D/U, [-]."""
        return self.tokens / self.unique

    @property
    def repeats(self) -> float:
        """Passes after the first, R = epochs - 1, never below 0, [-]."""
        return max(self.epochs - 1.0, 0.0)

    def _repr_html_(self) -> str:
        row = [
            text(self.unique, "token"),
            text(self.tokens, "token"),
            f"{self.epochs:.2f}",
            f"{self.repeats:.2f}",
        ]
        head = ("unique U [token]", "trained D [token]", "epochs D/U", "repeats R")
        return html_table(head, [row])


def passes(
    unique: float, *, tokens: float | None = None, epochs: float | None = None
) -> Passes:
    """Return unique tokens, tokens trained, epochs and repeats from two of them.

    Parameters
    ----------
    unique : float
        Unique tokens, [token]
    tokens : float, optional
        Tokens trained, repeats included, [token]
    epochs : float, optional
        Passes, in place of ``tokens``, [-]

    Returns
    -------
    Passes
        All four names, [-]

    Raises
    ------
    ValueError
        If not exactly one of ``tokens`` and ``epochs`` is given.

    Examples
    --------
    >>> found = passes(25e9, tokens=178e9)
    >>> f"{found.epochs:.2f} epochs, {found.repeats:.2f} repeats"
    '7.12 epochs, 6.12 repeats'
    """
    u = scalar("unique", unique)
    if (tokens is None) == (epochs is None):
        raise ValueError(
            f"tokens={tokens} and epochs={epochs}: give exactly one of them"
        )
    if tokens is None:
        assert epochs is not None  # one of them was given
        return Passes(unique=u, tokens=u * scalar("epochs", epochs))
    return Passes(unique=u, tokens=scalar("tokens", tokens))
