"""Is a term of the step model needed? Leave it out, fit again, look at the error."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from chinchilla_lab.checks import fraction, one_of
from chinchilla_lab.cluster import kernel
from chinchilla_lab.cluster.calibration import MeasuredStep
from chinchilla_lab.cluster.several import Steps
from chinchilla_lab.cluster.stacks import Stack, find_stack

__all__ = ["Ablation", "ablate", "seconds_without"]

Array = NDArray[np.float64]
GOLDEN = (5.0**0.5 - 1.0) / 2.0


def seconds_without(
    rows: Sequence[MeasuredStep], stack: Stack | str, items: Sequence[str] = ()
) -> Array:
    """Step times of the model with items left out.

    Parameters
    ----------
    rows : sequence of MeasuredStep
        The steps, [-]
    stack : Stack or str
        The stack, [-]
    items : sequence of str, optional
        Items to leave out, names as in ``StepTime.items``, [-]

    Returns
    -------
    numpy.ndarray
        Times, [s]

    Raises
    ------
    ValueError
        If an item is unknown.
    """
    for item in items:
        one_of("items", item, kernel.ITEMS)
    return _without(Steps(rows), find_stack(stack), items)


def _without(steps: Steps, stack: Stack, items: Sequence[str]) -> Array:
    found = steps.items(stack)
    return np.sum([t for name, t in found.items() if name not in items], axis=0)


@dataclass(frozen=True, kw_only=True)
class Ablation:
    """A table scored with a term left out and the share of the products set anew.

    Parameters
    ----------
    without : tuple of str
        Items left out, [-]
    gemm : float
        Rate of the products as a share of the best measured one, [-]
    errors : numpy.ndarray
        Predicted over measured speed, less one, [-]
    """

    without: tuple[str, ...]
    gemm: float
    errors: Array

    @property
    def mape(self) -> float:
        """Mean absolute error, [-]."""
        return float(np.abs(self.errors).mean())

    @property
    def largest(self) -> float:
        """Largest absolute error, [-]."""
        return float(np.abs(self.errors).max())


def ablate(
    rows: Sequence[MeasuredStep],
    stack: Stack | str,
    without: Sequence[str] = (),
    gemm: float | None = None,
) -> Ablation:
    r"""Score steps with items left out, the share of the products fitted anew.

    .. math:: \min_e \sum_i \ln^2 \frac{t_i(e)}{t_i}

    Parameters
    ----------
    rows : sequence of MeasuredStep
        The steps, [-]
    stack : Stack or str
        All other constants, [-]
    without : sequence of str, optional
        Items to leave out, [-]
    gemm : float, optional
        Share of the products; fitted if not given, [-]

    Returns
    -------
    Ablation
        Share and errors, [-]

    Notes
    -----
    A term whose absence does not raise the error cannot be settled by these rows. The
    share is sought between 0.3 and 1.

    Examples
    --------
    >>> from chinchilla_lab.validation.published import measured
    >>> table = measured("megatron-2021")
    >>> whole = ablate(table, "megatron-2021").mape
    >>> ablate(table, "megatron-2021", ["tp_traffic"]).mape > 1.2 * whole
    True
    """
    base = find_stack(stack)
    measured = np.array([r.seconds for r in rows])
    for item in without:
        one_of("without", item, kernel.ITEMS)
    steps = Steps(rows)

    def logs(e: float) -> Array:
        times = _without(steps, base.with_(gemm=float(e)), without)
        return np.asarray(np.log(measured / times))

    def cost(e: float) -> float:
        found = logs(e)
        return float(found @ found)

    if gemm is None:
        low, high = 0.3, 1.0
        left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        a, b = cost(left), cost(right)
        for _ in range(16):
            if a < b:
                high, right, b = right, left, a
                left = high - GOLDEN * (high - low)
                a = cost(left)
            else:
                low, left, a = left, right, b
                right = low + GOLDEN * (high - low)
                b = cost(right)
        gemm = left if a < b else right
    else:
        fraction("gemm", gemm)
    return Ablation(
        without=tuple(without), gemm=float(gemm), errors=np.expm1(logs(gemm))
    )
