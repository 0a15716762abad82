"""Results of an allocation: frozen, with units, rendered as tables."""

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from chinchilla_lab.allocation.intervals import interval
from chinchilla_lab.checks import ExtrapolationWarning
from chinchilla_lab.laws.families import Law
from chinchilla_lab.tables import html_table
from chinchilla_lab.units import text

__all__ = ["Allocation", "Hedge", "Overhead", "Spread"]

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Allocation:
    """A budget split into parameters and tokens, under the law that split it.

    Parameters
    ----------
    law : Law
        The law, [-]
    C : numpy.ndarray or float
        Training compute, [FLOP]
    N : numpy.ndarray or float
        Parameters, counted as ``law.N_counts`` says, [parameter]
    D : numpy.ndarray or float
        Training tokens, [token]
    L : numpy.ndarray or float or None
        Loss; None for laws that know no loss, [nats/token]
    """

    law: Law
    C: Array
    N: Array
    D: Array
    L: Array | None

    @property
    def tokens_per_param(self) -> Array:
        """Training tokens per parameter, [token/parameter]."""
        return self.D / self.N

    def outside(self) -> list[str]:
        """Say how far the plan leaves the range of the runs behind the law."""
        return self.law.fitted.outside(N=self.N, D=self.D, C=self.C)

    def rows(self) -> list[list[str]]:
        """Return the plan as formatted cells, one row for each budget."""
        parts = [np.ravel(x) for x in np.broadcast_arrays(self.C, self.N, self.D)]
        losses = [None] * parts[0].size if self.L is None else np.ravel(self.L)
        return [
            [
                self.law.label,
                text(c, "FLOP").removesuffix(" FLOP"),
                text(n, "parameter"),
                text(d, "token"),
                text(d / n, ""),
                "-" if loss is None else f"{loss:.4f}",
            ]
            for c, n, d, loss in zip(*parts, losses, strict=True)
        ]

    def __repr__(self) -> str:
        return "\n".join(
            f"{law}: C={c} FLOP, N={n}, D={d}, D/N={ratio}, L={loss}"
            for law, c, n, d, ratio, loss in self.rows()
        )

    def _repr_html_(self) -> str:
        notes = self.outside()
        note = f"<p>Extrapolation: {'; '.join(notes)}.</p>" if notes else ""
        if self.law.resampled is not None:
            with warnings.catch_warnings():
                # the line above the interval says so
                warnings.simplefilter("ignore", ExtrapolationWarning)
                note += interval(self.law, self.C)._repr_html_()
        return html_table(_HEADER, self.rows()) + note


_HEADER = (
    "law",
    "C [FLOP]",
    "N [parameter]",
    "D [token]",
    "D/N [token/parameter]",
    "L [nats/token]",
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Spread:
    """The same budget under several laws.

    Parameters
    ----------
    plans : tuple of Allocation
        One plan a law, [-]
    """

    plans: tuple[Allocation, ...]

    @property
    def N(self) -> Array:
        """Optimal sizes, one a law, [parameter]."""
        return np.array([plan.N for plan in self.plans], dtype=np.float64)

    @property
    def D(self) -> Array:
        """Optimal data, one a law, [token]."""
        return np.array([plan.D for plan in self.plans], dtype=np.float64)

    def _repr_html_(self) -> str:
        rows = [row for plan in self.plans for row in plan.rows()]
        table = html_table(
            _HEADER,
            rows,
            "Losses compare within one law only; N, D and their ratio do.",
        )
        far = [plan.law.label for plan in self.plans if plan.outside()]
        note = f"<p>Beyond the runs it was fitted on: {'; '.join(far)}.</p>"
        return table + note if far else table


@dataclass(frozen=True, kw_only=True, eq=False)
class Overhead:
    """A model of another size than the optimum, at the loss of the optimum.

    Parameters
    ----------
    size_factor : numpy.ndarray or float
        Its size over the optimal one, [-]
    token_factor : numpy.ndarray or float
        Its tokens over the optimal ones; NaN where the loss is out of reach, [-]
    """

    size_factor: Array
    token_factor: Array

    @property
    def compute(self) -> Array:
        """Extra training compute as a share of the optimum's, [-]."""
        return self.size_factor * self.token_factor - 1.0

    def _repr_html_(self) -> str:
        sizes, tokens = np.broadcast_arrays(self.size_factor, self.token_factor)
        rows = [
            [text(k, ""), text(d, ""), f"{k * d - 1.0:+.1%}"]
            if np.isfinite(d)
            else [text(k, ""), "unreachable", "unreachable"]
            for k, d in zip(np.ravel(sizes), np.ravel(tokens), strict=True)
        ]
        return html_table(
            ("size factor [-]", "token factor [-]", "extra compute"), rows
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Hedge:
    """The size that regrets least whichever law is right.

    Parameters
    ----------
    C : numpy.ndarray or float
        Training compute, [FLOP]
    N : numpy.ndarray or float
        Parameters, [parameter]
    D : numpy.ndarray or float
        Tokens, [token]
    worst : numpy.ndarray or float
        Compute wasted under the law it suits least, as a share of what that law's
        optimum needs, [-]
    """

    C: Array
    N: Array
    D: Array
    worst: Array

    def _repr_html_(self) -> str:
        cells = np.broadcast_arrays(self.C, self.N, self.D, self.worst)
        rows = [
            [text(c, "FLOP"), text(n, "parameter"), text(d, "token"), f"{w:.2%}"]
            for c, n, d, w in zip(*map(np.ravel, cells), strict=True)
        ]
        head = ("C", "N [parameter]", "D [token]", "wasted at worst")
        return html_table(head, rows)
