"""How a law is solved: additive letters where there are any, else one condition."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chinchilla_lab.checks import InfeasibleError
from chinchilla_lab.laws.families import (
    AdditiveLaw,
    KaplanLaw,
    Law,
    LossLaw,
)
from chinchilla_lab.units import FLOP_PER_ND

__all__ = ["additive", "bisect", "needs_loss", "newton", "optimum", "slopes"]

Array = NDArray[np.float64]


def additive(law: LossLaw) -> AdditiveLaw | None:
    """Return the law in additive letters if it has a closed form."""
    if isinstance(law, AdditiveLaw):
        return law
    if isinstance(law, KaplanLaw):
        return law.as_additive()
    return None


def needs_loss(law: Law, what: str) -> LossLaw:
    """Return the law, typed as one with a loss, or say which question needs one."""
    if isinstance(law, LossLaw):
        return law
    if not isinstance(law, Law):
        raise TypeError(
            f"law={law!r} is no law; use a constant such as "
            "chinchilla_lab.laws.BESIROGLU_2024, or PUBLISHED[name]"
        )
    raise TypeError(
        f"{law.label} says where the optimum lies but knows no loss, so it has no "
        f"{what}; use a law with a loss, for example besiroglu-2024"
    )


def slopes(law: LossLaw, N: Array, D: Array) -> tuple[Array, Array]:
    """Return -dL/dlnN and -dL/dlnD.

    Closed form for additive laws, complex step otherwise (no subtraction, so no loss
    of digits): the ``_loss`` of a family without closed form must take complex N, D.
    """
    closed = additive(law)
    if closed is not None:
        model = closed.A * N**-closed.alpha
        data = closed.B * D**-closed.beta
        outer = closed.k * (model + data) ** (closed.k - 1.0)
        return outer * closed.alpha * model, outer * closed.beta * data
    step = 1e-100
    turn: Any = 1.0 + 1j * step  # exp(i step) to the last digit
    by_size: Any = law._loss(N * turn, D)
    by_data: Any = law._loss(N, D * turn)
    return -by_size.imag / step, -by_data.imag / step


def bisect(f: Callable[[Array], Array], low: Array, high: Array, what: str) -> Array:
    """Find the root of a rising function in each cell of a bracket, to the last digits.

    Bisection: it needs no derivative, cannot leave the bracket, and 70 halvings of
    logarithms reach the spacing of floats.
    """
    low, high = (np.array(x) for x in np.broadcast_arrays(low, high))
    outside = (f(low) > 0.0) | (f(high) < 0.0)
    if np.any(outside):
        raise InfeasibleError(f"{what} lies outside the search range")
    for _ in range(70):
        middle = 0.5 * (low + high)
        below = f(middle) < 0.0
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray(0.5 * (low + high))


def newton(
    f: Callable[[Array], tuple[Array, Array]], low: Array, high: Array, start: Array
) -> Array:
    """Find the root of a falling function in each cell of a bracket by Newton's method.

    ``f`` returns value and slope. The bracket narrows with every sign seen; a step that
    leaves it is replaced by its middle, so no start can send the search away.
    """
    low, high, x = (np.array(v) for v in np.broadcast_arrays(low, high, start))
    for _ in range(100):
        value, slope = f(x)
        np.copyto(low, x, where=value > 0.0)
        np.copyto(high, x, where=value < 0.0)
        new = x - value / slope
        # not (inside) also catches a step that is no number
        inside = (new >= low) & (new <= high)
        if not inside.all():
            middle = np.where(value == 0.0, x, 0.5 * (low + high))
            new = np.where(inside, new, middle)
        # Newton squares its error: after a step this small only rounding is left
        moved, x = np.abs(new - x), new
        if (moved <= 1e-9 * np.abs(x)).all():
            break
    return np.asarray(x)


def optimum(law: LossLaw, C: Array) -> tuple[Array, Array]:
    """Return the optimal N and D of checked budgets, without warnings."""
    closed = additive(law)
    nd = C / FLOP_PER_ND
    if closed is not None:
        N = closed.G * nd**closed.a
    else:
        log_nd = np.log(nd)

        def surplus(x: Array) -> Array:
            by_size, by_data = slopes(law, np.exp(x), np.exp(log_nd - x))
            return by_data - by_size

        what = f"the optimum of {law.label}"
        # far beyond any model and any data, so that only a law without optimum fails
        N = np.exp(bisect(surplus, 0.0 * log_nd - 100.0, log_nd + 100.0, what))
    return N, nd / N
