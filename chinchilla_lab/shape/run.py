"""From tokens to steps and from FLOP to days, with recomputation on the way."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chinchilla_lab.checks import fraction, non_negative, positive
from chinchilla_lab.tables import html_table
from chinchilla_lab.units import HOUR, text

__all__ = ["TrainingTime", "recompute_factor", "steps_for_tokens", "training_time"]

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class TrainingTime:
    """Time of a run at a given utilisation.

    Parameters
    ----------
    seconds : numpy.ndarray or float
        Time from first to last step, [s]
    n_accelerators : numpy.ndarray or float
        Accelerators that work on it, [-]
    """

    seconds: Array
    n_accelerators: Array

    @property
    def days(self) -> Array:
        """The same time in days, [day]."""
        return self.seconds / 86400.0

    @property
    def accelerator_hours(self) -> Array:
        """Time times accelerators, [h]."""
        return self.seconds * self.n_accelerators / HOUR

    def _repr_html_(self) -> str:
        cells = np.broadcast_arrays(self.seconds, self.accelerator_hours)
        rows = [
            [text(float(s), "s"), f"{h:,.0f}"]
            for s, h in zip(*map(np.ravel, cells), strict=True)
        ]
        return html_table(("time", "accelerator-hours"), rows)


def training_time(
    C: ArrayLike, n_accelerators: ArrayLike, peak_flops: ArrayLike, mfu: ArrayLike
) -> TrainingTime:
    r"""Time of a run from its FLOP: an amount divided by a rate.

    .. math:: t = \frac{C}{n \cdot \text{peak} \cdot \text{mfu}}

    Parameters
    ----------
    C : array_like
        Training compute, [FLOP]
    n_accelerators : array_like
        Accelerators, [-]
    peak_flops : array_like
        Dense peak of one accelerator at the precision used, [FLOP/s]
    mfu : array_like
        Share of the peak that model FLOP reach, above 0 and at most 1, [-]

    Returns
    -------
    TrainingTime
        Seconds [s], days [day] and accelerator-hours [h]

    Raises
    ------
    ValueError
        If ``mfu`` is above 1: most often the sparse peak stands for the dense one.

    Examples
    --------
    >>> run = training_time(1e22, n_accelerators=64, peak_flops=989e12, mfu=0.4)
    >>> f"{run.days:.2f} days, {run.accelerator_hours:.0f} accelerator-hours"
    '4.57 days, 7022 accelerator-hours'
    """
    hint = "check that peak_flops is the dense peak of the precision used, in FLOP/s"
    n = positive("n_accelerators", n_accelerators)
    rate = n * positive("peak_flops", peak_flops) * fraction("mfu", mfu, hint)
    return TrainingTime(seconds=(positive("C", C) / rate)[()], n_accelerators=n[()])


def recompute_factor(share: ArrayLike = 1.0) -> Array:
    r"""FLOP that the hardware does over FLOP that the model needs.

    .. math:: \frac{6N + 2N s}{6N} = 1 + \frac{s}{3}

    Parameters
    ----------
    share : array_like, optional
        Share s of the forward pass that is done again in the backward pass, from 0 to
        1 for all of it, [-]

    Returns
    -------
    numpy.ndarray or float
        The factor: 4/3 at most, 8N instead of 6N, [-]

    Raises
    ------
    ValueError
        If the share is above 1.

    Notes
    -----
    No convention of :data:`~chinchilla_lab.shape.CONVENTIONS` contains it, and ``mfu``
    of :func:`training_time` leaves it out too: recomputation buys memory, not tokens.
    Divide the share of the peak that the hardware reaches by this factor to get
    ``mfu``.

    References
    ----------
    :cite:`chowdhery2022palm`, appendix B

    Examples
    --------
    >>> 6 * float(recompute_factor())
    8.0
    """
    again = non_negative("share", share)
    if again.max() > 1.0:
        raise ValueError(
            f"share={again.max():g} is more than one forward pass; "
            "1 stands for recomputing all of it"
        )
    return 1.0 + again / 3.0


def steps_for_tokens(D: ArrayLike, batch_tokens: ArrayLike) -> NDArray[np.int64]:
    r"""Optimiser steps for D tokens, to the nearest whole step and at least one.

    .. math:: \left\lfloor \frac{D}{B} + \frac{1}{2} \right\rfloor

    Parameters
    ----------
    D : array_like
        Training tokens, [token]
    batch_tokens : array_like
        Tokens B of a step: sequences times their length, [token]

    Returns
    -------
    numpy.ndarray or int
        Steps, [-]

    Examples
    --------
    >>> int(steps_for_tokens(20 * 125e6, batch_tokens=256 * 2048))
    4768
    """
    exact = positive("D", D) / positive("batch_tokens", batch_tokens)
    if np.max(exact) > 2.0**62:
        raise ValueError(
            f"D/batch_tokens={np.max(exact):.3g} is no number of steps; check the units"
        )
    return np.asarray(np.maximum(np.rint(exact), 1.0), dtype=np.int64)[()]
