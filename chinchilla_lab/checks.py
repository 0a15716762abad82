"""Checks at the border of the library: bad input is refused with a way out."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "ExtrapolationWarning",
    "InfeasibleError",
    "finite",
    "fraction",
    "non_negative",
    "one_of",
    "positive",
    "positive_span",
    "scalar",
    "whole",
]

Array = NDArray[np.float64]


class ExtrapolationWarning(UserWarning):
    """A law was asked outside the range of the runs it was fitted on."""


class InfeasibleError(ValueError):
    """No plan reaches the target; the message names the floor and the way out."""


def _numbers(name: str, x: ArrayLike, kind: str) -> Array:
    try:
        given = np.asarray(x)
        if given.dtype.kind in "bUS":  # numpy would take "1e22" and True for numbers
            raise TypeError
        values = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            f"{name}={x!r} is not a number; parse text with "
            f"chinchilla_lab.units.parse({x!r}, unit) first"
        ) from None
    if values.size == 0:
        raise ValueError(f"{name} is empty; give at least one {kind} number")
    return values


def _first(values: Array, bad: NDArray[np.bool_]) -> str:
    """Show the first offending value, and where it stands in an array."""
    index = np.unravel_index(int(np.argmax(bad)), values.shape)
    place = f"[{', '.join(map(str, index))}]" if values.ndim else ""
    return f"{place}={values[index]:g}"


def positive(name: str, x: ArrayLike) -> Array:
    """Return ``x`` as float64, all finite and above zero.

    Parameters
    ----------
    name : str
        Argument name for the message, [-]
    x : array_like
        Numbers, any shape, [any]

    Returns
    -------
    numpy.ndarray
        The same numbers, same shape, [any]

    Raises
    ------
    ValueError
        If a number is missing, infinite, zero or negative.

    Examples
    --------
    >>> positive("N", 7e9)
    array(7.e+09)
    """
    return positive_span(name, x)[0]


def positive_span(name: str, x: ArrayLike) -> tuple[Array, Array]:
    """Return ``x`` as :func:`positive` does, and its smallest and largest number.

    Parameters
    ----------
    name : str
        Argument name for the message, [-]
    x : array_like
        Numbers, any shape, [any]

    Returns
    -------
    values : numpy.ndarray
        The same numbers, same shape, [any]
    span : numpy.ndarray
        Smallest and largest, [any]

    Raises
    ------
    ValueError
        If a number is missing, infinite, zero or negative.

    Examples
    --------
    >>> positive_span("N", [7e9, 1e9])[1]
    array([1.e+09, 7.e+09])
    """
    values = _numbers(name, x, "positive")
    # min and max carry NaN along, so two passes settle all four questions
    span = np.array([values.min(), values.max()])
    if not (span[0] > 0.0 and span[1] < np.inf):
        bad = ~((values > 0.0) & (values < np.inf))
        raise ValueError(f"{name}{_first(values, bad)} must be a finite number above 0")
    return values, span


def non_negative(name: str, x: ArrayLike) -> Array:
    """Return ``x`` as float64, all finite and not below zero.

    Parameters
    ----------
    name : str
        Argument name for the message, [-]
    x : array_like
        Numbers, any shape, [any]

    Returns
    -------
    numpy.ndarray
        The same numbers, same shape, [any]

    Raises
    ------
    ValueError
        If a number is missing, infinite or negative.

    Examples
    --------
    >>> non_negative("tokens", 0)
    array(0.)
    """
    values = _numbers(name, x, "non-negative")
    if not (values.min() >= 0.0 and values.max() < np.inf):
        bad = ~((values >= 0.0) & (values < np.inf))
        raise ValueError(
            f"{name}{_first(values, bad)} must be a finite number, 0 or above"
        )
    return values


def finite(name: str, x: ArrayLike) -> Array:
    """Return ``x`` as float64, all finite, of either sign.

    Parameters
    ----------
    name : str
        Argument name for the message, [-]
    x : array_like
        Numbers, any shape, [any]

    Returns
    -------
    numpy.ndarray
        The same numbers, same shape, [any]

    Raises
    ------
    ValueError
        If a number is missing or infinite.

    Examples
    --------
    >>> finite("points", -0.01)
    array(-0.01)
    """
    values = _numbers(name, x, "finite")
    bad = ~np.isfinite(values)
    if bad.any():
        raise ValueError(f"{name}{_first(values, bad)} must be a finite number")
    return values


def scalar(
    name: str, x: ArrayLike, check: Callable[[str, ArrayLike], Array] = positive
) -> float:
    """Return ``x`` as one float, checked; several numbers are refused.

    Parameters
    ----------
    name : str
        Argument name for the message, [-]
    x : float
        One number, [any]
    check : callable, optional
        The check it must pass, by default :func:`positive`, [-]

    Returns
    -------
    float
        The number, [any]

    Raises
    ------
    ValueError
        If the check fails, or ``x`` is a list or an array of several numbers.

    Examples
    --------
    >>> scalar("C", 1e22)
    1e+22
    """
    values = check(name, x)
    if values.ndim:
        raise ValueError(
            f"{name} has shape {values.shape}; give one number, and call once for each"
        )
    return float(values)


def fraction(name: str, x: ArrayLike, hint: str = "") -> Array:
    """Return ``x`` as float64, all above 0 and at most 1.

    Parameters
    ----------
    name : str
        Argument name for the message, [-]
    x : array_like
        Shares, any shape, [-]
    hint : str, optional
        What the reader should look at when the share is too large, [-]

    Returns
    -------
    numpy.ndarray
        The same shares, same shape, [-]

    Raises
    ------
    ValueError
        If a share is outside (0, 1].

    Examples
    --------
    >>> fraction("mfu", 0.4)
    array(0.4)
    """
    values = _numbers(name, x, "share")
    if not (values.min() > 0.0 and values.max() <= 1.0):
        bad = ~((values > 0.0) & (values <= 1.0))
        advice = f"; {hint}" if hint else ""
        raise ValueError(
            f"{name}{_first(values, bad)} must lie above 0 and at most 1{advice}"
        )
    return values


def whole(name: str, x: Any, least: int = 1) -> int:
    """Return ``x`` as an int, refused if it has a fraction or is below ``least``.

    Parameters
    ----------
    name : str
        Argument name for the message, [-]
    x : int
        A count, [-]
    least : int, optional
        Smallest count that makes sense, [-]

    Returns
    -------
    int
        The count, [-]

    Raises
    ------
    ValueError
        If ``x`` is not a whole number or too small.

    Examples
    --------
    >>> whole("n_layers", 32.0)
    32
    """
    try:
        count = int(x)
        exact = count == x
    except (TypeError, ValueError, OverflowError):
        exact = False
    if not exact or isinstance(x, bool | str):
        raise ValueError(f"{name}={x!r} must be a whole number")
    if count < least:
        raise ValueError(f"{name}={count} must be at least {least}")
    return count


def one_of(name: str, x: str, choices: Iterable[str]) -> str:
    """Return ``x`` if it is one of ``choices``.

    Parameters
    ----------
    name : str
        Argument name for the message, [-]
    x : str
        The word to look up, [-]
    choices : iterable of str
        The words that are known, [-]

    Returns
    -------
    str
        ``x`` itself, [-]

    Raises
    ------
    ValueError
        If ``x`` is not known; the message lists what is.

    Examples
    --------
    >>> one_of("norm", "rms", ("rms", "layer"))
    'rms'
    """
    known = tuple(choices)
    if x not in known:
        raise ValueError(f"{name}={x!r} is not known; choose from: {', '.join(known)}")
    return x
