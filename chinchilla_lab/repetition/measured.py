"""Measured losses of repeated data, to hold a law against."""

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chinchilla_lab.checks import ExtrapolationWarning, one_of
from chinchilla_lab.laws.families import RepeatedDataLaw
from chinchilla_lab.laws.published import MUENNIGHOFF_2023_REPEATED
from chinchilla_lab.repetition.results import RepetitionLaw, needs_repetition
from chinchilla_lab.sources import read_rows

__all__ = ["MEASURED", "Measured", "added_loss", "measured_series"]

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A loss that was measured after some epochs.

    Parameters
    ----------
    series : str
        Runs that may be compared with each other, [-]
    N : float
        Parameters, [parameter]
    D : float
        Tokens trained, repeats included, [token]
    unique : float
        Unique tokens, [token]
    runs : int
        Runs whose mean it is, [-]
    loss : float
        Validation loss, [nats/token]
    spread : float
        Largest less smallest of the runs, [nats/token]
    source : str
        Key in ``book/references.bib``, [-]
    where : str
        Place in the source, [-]
    evidence : str
        How the number was read, [-]
    """

    series: str
    N: float
    D: float
    unique: float
    runs: int
    loss: float
    spread: float
    source: str
    where: str
    evidence: str

    @property
    def epochs(self) -> float:
        """Passes D/U, [-]."""
        return self.D / self.unique


def _read() -> tuple[Measured, ...]:
    return tuple(
        Measured(
            series=row["series"],
            N=float(row["N"]),
            D=float(row["D"]),
            unique=float(row["unique"]),
            runs=int(row["runs"]),
            loss=float(row["loss"]),
            spread=float(row["spread"]),
            source=row["source"],
            where=row["where"],
            evidence=row["evidence"],
        )
        for row in read_rows("muennighoff2023_repeats.csv")
    )


MEASURED = _read()
"""Measured rows, from ``data/muennighoff2023_repeats.csv``: 2.81B parameters on 55e9
tokens, means of five runs, and 281M on 100e6 unique tokens, single runs."""


def measured_series(series: str) -> tuple[Measured, ...]:
    """Return the rows of one series, by rising epochs.

    Parameters
    ----------
    series : str
        Name of the series, [-]

    Returns
    -------
    tuple of Measured
        The rows; losses of different series do not compare, [-]

    Examples
    --------
    >>> [round(row.epochs, 1) for row in measured_series("2.81B on 55B tokens")]
    [1.0, 2.0, 3.1, 3.9, 5.0, 6.1, 13.8, 44.0]
    """
    known = tuple(dict.fromkeys(row.series for row in MEASURED))
    name = one_of("series", series, known)
    rows = [row for row in MEASURED if row.series == name]
    return tuple(sorted(rows, key=lambda row: row.epochs))


def added_loss(
    N: ArrayLike,
    D: ArrayLike,
    unique_tokens: ArrayLike,
    law: RepetitionLaw = MUENNIGHOFF_2023_REPEATED,
    by_data_alone: bool = False,
) -> Array:
    r"""Loss that repeats add: few unique tokens against as many fresh ones.

    .. math:: L(N, D, U) - L(N, D, D)

    Parameters
    ----------
    N : array_like
        Parameters, [parameter]
    D : array_like
        Tokens trained, repeats included, broadcast against ``N``, [token]
    unique_tokens : array_like
        Unique tokens U, broadcast against ``N``, [token]
    law : RepeatedDataLaw or PenaltyLaw, optional
        A law that knows repeats, by default the published one, [-]
    by_data_alone : bool, optional
        Leave the discount of surplus parameters out, [-]

    Returns
    -------
    numpy.ndarray or float
        The difference, which transfers better between settings than a loss does,
        [nats/token]

    Examples
    --------
    >>> f"{added_loss(2.81e9, 55e9, 4e9):.3f}"
    '0.118'
    >>> f"{added_loss(2.81e9, 55e9, 4e9, by_data_alone=True):.3f}"
    '0.032'
    """
    law = needs_repetition(law)
    if by_data_alone and not isinstance(law, RepeatedDataLaw):
        raise TypeError(f"{law.label} discounts no parameters; leave by_data_alone out")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExtrapolationWarning)
        if by_data_alone:
            assert isinstance(law, RepeatedDataLaw)  # checked above
            n, d, u = np.broadcast_arrays(
                *(np.asarray(x, dtype=np.float64) for x in (N, D, unique_tokens))
            )
            u = np.minimum(u, d)
            worn = law.effective_tokens(u, d / u)
            return np.asarray(law.base.loss(n, worn) - law.base.loss(n, d))[()]
        return np.asarray(law.loss(N, D, unique=unique_tokens) - law.loss(N, D))[()]
