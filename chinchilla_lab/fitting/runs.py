"""Runs to fit: checked columns, and what was done to them."""

import hashlib
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chinchilla_lab.checks import one_of, whole
from chinchilla_lab.laws.families import N_COUNTS, Fitted, NCount
from chinchilla_lab.tables import html_table
from chinchilla_lab.units import FLOP_PER_ND, text

__all__ = ["Runs"]

Array = NDArray[np.float64]


def _column(name: str, values: ArrayLike, rows: int | None = None) -> Array:
    """Return a column as float64, or name it and the first row that is no number."""
    try:
        given = list(np.ravel(np.asarray(values, dtype=object)))
    except ValueError:
        raise ValueError(f"{name} is not one column; give a flat list") from None
    if rows is not None and len(given) != rows:
        raise ValueError(f"{name} has {len(given)} rows where N has {rows}")
    if not given:
        raise ValueError(f"{name} is empty; give one number a run")
    array = np.empty(len(given))
    for row, value in enumerate(given):
        number = isinstance(value, int | float | np.integer | np.floating)
        if not number or isinstance(value, bool | np.bool_):
            raise ValueError(
                f"{name}[{row}]={value!r} is not a number; read text with "
                "chinchilla_lab.units.parse or load the file with read_runs"
            )
        try:
            array[row] = value
        except OverflowError:
            array[row] = np.inf
        if not 0.0 < array[row] < np.inf:
            raise ValueError(
                f"{name}[{row}]={array[row]:g} must be a finite number above 0; drop "
                "diverged and empty runs before the fit and say how many"
            )
    return array


@dataclass(frozen=True, kw_only=True, eq=False)
class Runs:
    """Training runs: one size, token count and loss each.

    Parameters
    ----------
    N : array_like
        Parameters, [parameter]
    L : array_like
        Validation loss, [nats/token]
    D : array_like, optional
        Training tokens; from ``C = 6ND`` where only ``C`` is given, [token]
    C : array_like, optional
        Training compute; ``6ND`` where only ``D`` is given, [FLOP]
    N_counts : {"total", "non_embedding", "body_and_head", "active"}, optional
        Which parameters N counts; a fit asks for it, [-]
    run : sequence of str, optional
        Name of the run a row belongs to; several rows of one name are checkpoints, [-]
    planned : array_like, optional
        Tokens for which the schedule of each run was set, [token]
    source : str
        Where the runs come from, [-]
    filters : tuple of str
        What was done to them since, in order, [-]

    Raises
    ------
    ValueError
        If columns differ in length or hold text, zeros, negatives, NaN or inf; names
        the column and its first bad row.

    Examples
    --------
    >>> Runs(N=[1e8, 2e8], D=[2e9, 4e9], L=[3.7, 3.3], N_counts="total")
    2 runs: N 100M to 200M, D 2B to 4B, C 1.2e18 FLOP to 4.8e18 FLOP, N counts total
    """

    N: Array
    L: Array
    D: Array = None  # type: ignore[assignment]
    C: Array = None  # type: ignore[assignment]
    N_counts: NCount | None = None
    run: tuple[str, ...] = ()
    planned: Array | None = None
    source: str = "given arrays"
    filters: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.N_counts is not None:
            one_of("N_counts", self.N_counts, N_COUNTS)
        N = _column("N", self.N)
        L = _column("L", self.L, len(N))
        if self.D is None and self.C is None:
            raise ValueError("D and C are both missing; give the tokens or the compute")
        D = None if self.D is None else _column("D", self.D, len(N))
        C = None if self.C is None else _column("C", self.C, len(N))
        D = C / (FLOP_PER_ND * N) if D is None and C is not None else D
        C = FLOP_PER_ND * N * D if C is None and D is not None else C
        if isinstance(self.run, str):
            raise ValueError(f"run={self.run!r} is one name; give one name a row")
        names = tuple(map(str, self.run))
        if names and len(names) != len(N):
            raise ValueError(f"run has {len(names)} rows where N has {len(N)}")
        columns = {"N": N, "L": L, "D": D, "C": C, "run": names}
        if self.planned is not None:
            columns["planned"] = _column("planned", self.planned, len(N))
        for name, column in columns.items():
            object.__setattr__(self, name, column)

    def __len__(self) -> int:
        return len(self.N)

    @property
    def ranges(self) -> Fitted:
        """Range of N [parameter], D [token] and C [FLOP] that the runs cover."""

        def span(x: Array) -> tuple[float, float]:
            return float(x.min()), float(x.max())

        return Fitted(N=span(self.N), D=span(self.D), C=span(self.C))

    @property
    def digest(self) -> str:
        """Hash of the numbers, which a stored fit keeps: SHA-256, first 16 digits."""
        data = np.ascontiguousarray(
            np.array([self.N, self.D, self.C, self.L])
        ).tobytes()
        return hashlib.sha256(data).hexdigest()[:16]

    def keep(self, mask: ArrayLike, why: str) -> Self:
        """Return the runs that a mask keeps, and remember why.

        Parameters
        ----------
        mask : array_like of bool
            True for the rows to keep, one a run, [-]
        why : str
            The rule, as it should read in a report, [-]

        Returns
        -------
        Runs
            The kept runs, [-]

        Raises
        ------
        ValueError
            If the mask has another length or keeps nothing.
        """
        kept = np.asarray(mask)
        if kept.dtype != bool or kept.shape != self.N.shape:
            raise ValueError(
                f"mask of {kept.dtype} and shape {kept.shape} is not one truth value a "
                f"run; N has shape {self.N.shape}"
            )
        if not kept.any():
            raise ValueError(f"{why}: no run is left; loosen the rule")
        index = np.flatnonzero(kept)
        return replace(
            self,
            N=self.N[index],
            D=self.D[index],
            C=self.C[index],
            L=self.L[index],
            run=tuple(self.run[i] for i in index) if self.run else (),
            planned=None if self.planned is None else self.planned[index],
            filters=(*self.filters, f"{why}: {len(self)} -> {len(index)} runs"),
        )

    def drop_highest(self, count: int) -> Self:
        """Return the runs without those of the highest loss.

        Parameters
        ----------
        count : int
            Runs to drop: those at or above the loss of rank ``count``, [-]

        Returns
        -------
        Runs
            The kept runs, [-]

        Notes
        -----
        The rule of the replication :cite:`besiroglu2024chinchilla`, whose notebook
        drops five of 245 runs: equal losses at the border all go.
        """
        n = whole("count", count, least=0)
        if n == 0:
            return self
        if n >= len(self):
            raise ValueError(f"count={n} drops all {len(self)} runs; drop fewer")
        edge = np.sort(self.L)[-n]
        return self.keep(edge > self.L, f"loss below the {n} highest")

    def __repr__(self) -> str:
        said = self.N_counts or "nobody said what"
        spans = (
            f"{name} {text(x.min(), unit)} to {text(x.max(), unit)}"
            for name, x, unit in (
                ("N", self.N, "parameter"),
                ("D", self.D, "token"),
                ("C", self.C, "FLOP"),
            )
        )
        lines = [f"{len(self)} runs: {', '.join(spans)}, N counts {said}"]
        return "\n".join([*lines, *(f"  {line}" for line in self.filters)])

    def _repr_html_(self) -> str:
        rows = [
            (name, text(x.min(), unit), text(x.max(), unit))
            for name, x, unit in (
                ("N [parameter]", self.N, "parameter"),
                ("D [token]", self.D, "token"),
                ("C [FLOP]", self.C, "FLOP"),
            )
        ]
        rows.append(("L [nats/token]", f"{self.L.min():.4g}", f"{self.L.max():.4g}"))
        note = "; ".join((f"{len(self)} runs from {self.source}", *self.filters))
        return html_table(("column", "least", "most"), rows, note)
