"""Fields of a machine that somebody wrote into a file, each checked by its name."""

import re
from contextlib import suppress
from datetime import date
from typing import Any

from chinchilla_lab.checks import scalar
from chinchilla_lab.units import GB

__all__ = ["date_in_words", "network_rate", "number", "shown", "words"]

_MOST_NETWORK = 200.0  # [GB/s]; twice the fastest row: 400 and 800 count bits
_RATES = {"Gb/s": GB / 8.0, "Gbit/s": GB / 8.0, "Gbps": GB / 8.0, "GB/s": GB}
_EXAMPLES = {
    "hbm_gb": 80, "device_mib": 81559, "hbm_gbps": 3350, "n_cores": 132,
    "scaleup_gbps": 450, "scaleup_domain": 8, "scaleout_gbps": 50, "power_w": 700,
    "price_low_usd": 2.5, "price_high_usd": 2.5, "latency_us": 15,
}  # fmt: skip


def shown(value: Any) -> str:
    """Return a value as an error shows it: short, and never an error of its own.

    Parameters
    ----------
    value : object
        What somebody wrote, [-]

    Returns
    -------
    str
        Its text, cut after 60 characters, [-]

    Examples
    --------
    >>> shown("fast"), shown([80])
    ("'fast'", '[80]')
    """
    try:
        written = repr(value)
    except (ValueError, RecursionError):  # thousands of digits or of brackets
        written = f"a {type(value).__name__} too long to print"
    return written if len(written) <= 60 else f"{written[:57]}..."


def number(name: str, value: Any) -> float:
    """Read a positive number, or the text of one as a CSV file has it.

    Parameters
    ----------
    name : str
        Field, for the message, [-]
    value : object
        What stands there, [any]

    Returns
    -------
    float
        The number, [any]

    Raises
    ------
    ValueError
        If it is no finite number above 0; the message names the field.

    Examples
    --------
    >>> number("hbm_gb", "80")
    80.0
    """
    found = value
    if isinstance(value, str):
        try:
            found = float(value)
        except ValueError:
            found = None
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise ValueError(
            f"{name}={shown(value)} is not a number; write it bare, in the unit that "
            f"the name carries, for example {name} = {_EXAMPLES.get(name, 400)}"
        )
    try:
        return scalar(name, float(found))
    except OverflowError:
        raise ValueError(f"{name}={shown(value)} must be a finite number") from None


def words(name: str, value: Any) -> str:
    """Read words; a number or a date is taken as it is written.

    Parameters
    ----------
    name : str
        Field, for the message, [-]
    value : object
        What stands there, [-]

    Returns
    -------
    str
        The words, [-]

    Raises
    ------
    ValueError
        If it is a list, a table or nothing.

    Examples
    --------
    >>> words("name", "Our chip")
    'Our chip'
    """
    if not isinstance(value, str | bool | int | float | date):
        raise ValueError(
            f'{name}={shown(value)} must be words: write {name} = "..." in quotes'
        )
    if isinstance(value, str):
        return value
    return value.isoformat() if isinstance(value, date) else shown(value)


def network_rate(written: Any) -> float:
    """Read the network of an accelerator: GB/s, or words with a unit.

    Parameters
    ----------
    written : float or str
        Number of GB/s (bytes) per accelerator, one way, or words such as
        ``"400 Gb/s"``, [GB/s]

    Returns
    -------
    float
        Rate, [byte/s]

    Raises
    ------
    ValueError
        If it is no rate, or a bare number so large that it must count bits.

    Examples
    --------
    >>> network_rate(50) == network_rate("400 Gb/s")
    True
    """
    name = "scaleout_gbps"
    if isinstance(written, str) and (
        found := re.fullmatch(r"\s*([-+.\deE]+)\s*([A-Za-z/]+)\s*", written)
    ):
        # the case of one letter tells bits from bytes, so it is not forgiven
        scale = _RATES.get(found[2])
        with suppress(ValueError):
            if scale is not None:
                return number(name, found[1]) * scale
    way_out = (
        f"{name} counts GB/s (bytes) per accelerator, one way; 400 Gb/s is 50: write "
        f'{name} = 50, or words such as "400 Gb/s" or "50 GB/s"'
    )
    try:
        rate = number(name, written)
    except ValueError as fault:
        raise ValueError(f"{fault}; {way_out}") from None
    if rate > _MOST_NETWORK:
        raise ValueError(
            f"{name}={rate:g} would be {rate:g} GB/s per accelerator, more than any "
            f"published network; if it is {rate:g} Gb/s, that is {rate / 8:g} GB/s: "
            f'write {name} = "{rate:g} Gb/s" or {name} = {rate / 8:g}; if it is '
            f'bytes, write {name} = "{rate:g} GB/s"'
        )
    return rate * GB


def _begin(day: str) -> date | None:
    """Return the first day that YYYY, YYYY-MM or YYYY-MM-DD names, or None."""
    if not re.fullmatch(r"[0-9]{4}(-[0-9]{2}){0,2}", day):
        return None
    year, month, first = (*(int(part) for part in day.split("-")), 1, 1)[:3]
    try:
        return date(year, month, first)
    except ValueError:
        return None


def date_in_words(written: Any) -> bool:
    """Say whether a text is a date, or two in order with a stroke between.

    Parameters
    ----------
    written : object
        ``2026``, ``2026-05``, ``2026-05-20`` or such as ``2026-01/2026-04``, [-]

    Returns
    -------
    bool
        Whether it is one, [-]

    Examples
    --------
    >>> date_in_words("2026-01/2026-04"), date_in_words("2026-13")
    (True, False)
    """
    if not isinstance(written, str):
        return False
    days = [_begin(day) for day in written.split("/")]
    begun = [day for day in days if day is not None]
    return len(begun) == len(days) <= 2 and begun == sorted(begun)
