"""What was measured: a small model that crossed, and forecasts that missed."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from chinchilla_lab.sources import read_rows
from chinchilla_lab.tables import html_table
from chinchilla_lab.units import FLOP_PER_ND, text

__all__ = ["Forecasts", "MeasuredCrossing", "ladder_forecasts", "measured_crossing"]


@dataclass(frozen=True, kw_only=True)
class MeasuredCrossing:
    """Two measured models at one loss, the smaller one between two of its runs.

    Parameters
    ----------
    loss : float
        Validation loss of both, [nats/token]
    large : tuple of float
        N [parameter] and D [token] of the larger model, as trained
    small : tuple of float
        N [parameter] and D [token] of the smaller model, D interpolated
    """

    loss: float
    large: tuple[float, float]
    small: tuple[float, float]

    @property
    def compute_ratio(self) -> float:
        """Training compute of the smaller over that of the larger model, [-]."""
        return float(np.prod(self.small) / np.prod(self.large))

    def _repr_html_(self) -> str:
        rows = [
            [name, text(N, "parameter"), text(D, "token"), f"{D / N:.0f}",
             text(FLOP_PER_ND * N * D, "FLOP"), f"{self.loss:.4f}"]
            for name, (N, D) in (("small", self.small), ("large", self.large))
        ]  # fmt: skip
        head = ("model", "N [parameter]", "D [token]", "D/N", "6ND [FLOP]",
                "L [nats/token]")  # fmt: skip
        return html_table(head, rows)


def measured_crossing() -> MeasuredCrossing:
    """Return 1.3B and 3.2B of the ladder at the loss of the larger model.

    Returns
    -------
    MeasuredCrossing
        Sizes without embeddings [parameter], tokens [token] and the loss on C4
        [nats/token]

    Notes
    -----
    The tokens of the smaller model are interpolated in the logarithm of D between the
    two of its runs that enclose the loss. One repeated run of the larger model differs
    by .0006 nats, which moves the ratio of compute by about a percent.

    References
    ----------
    :cite:`ai2ladder`, runs of the paper, last evaluated rows

    Examples
    --------
    >>> f"{measured_crossing().compute_ratio:.2f}"
    '0.87'
    """
    rows = read_rows("ladder_runs.csv")
    runs = {r["run"]: (float(r["N"]), float(r["D"]), float(r["loss"])) for r in rows}
    N, D, loss = runs["3B-1xC"]
    low, high = runs["1B-5xC"], runs["1B-10xC"]
    share = (low[2] - loss) / (low[2] - high[2])
    tokens = float(low[1] * (high[1] / low[1]) ** share)
    return MeasuredCrossing(loss=loss, large=(N, D), small=(low[0], tokens))


@dataclass(frozen=True, kw_only=True)
class Forecasts:
    """Accuracies that a two-step law forecast, beside those that were measured.

    Parameters
    ----------
    tasks : sequence of str
        Tasks, [-]
    predicted : tuple of float
        Forecast accuracies, [-]
    measured : tuple of float
        Measured accuracies, [-]
    """

    tasks: Sequence[str]
    predicted: tuple[float, ...]
    measured: tuple[float, ...]

    @property
    def points(self) -> tuple[float, ...]:
        """Forecast less measurement, [percentage point]."""
        pairs = zip(self.predicted, self.measured, strict=True)
        return tuple(100.0 * (p - m) for p, m in pairs)

    def _repr_html_(self) -> str:
        rows = [
            [task, f"{p:.3f}", f"{m:.3f}", f"{off:+.1f}"]
            for task, p, m, off in zip(
                self.tasks, self.predicted, self.measured, self.points, strict=True
            )
        ]
        head = ("task", "forecast accuracy", "measured accuracy", "off by [points]")
        return html_table(head, rows)


def ladder_forecasts() -> Forecasts:
    """Return the forecasts of a ladder of small models for 13B on 5e12 tokens.

    Returns
    -------
    Forecasts
        Eight tasks, both steps chained, [-]

    References
    ----------
    :cite:`ai2ladder`, chained predictions of the paper

    Examples
    --------
    >>> found = ladder_forecasts()
    >>> f"{found.tasks[2]} {found.points[2]:+.1f}"
    'ARC-Challenge -11.1'
    """
    rows = read_rows("ladder_forecasts.csv")
    return Forecasts(
        tasks=tuple(row["task"] for row in rows),
        predicted=tuple(float(row["predicted"]) for row in rows),
        measured=tuple(float(row["measured"]) for row in rows),
    )
