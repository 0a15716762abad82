"""Quantities as people write them, turned into base units and back.

The core works with plain floats in FLOP, FLOP/s, byte, byte/s, s, USD, token,
parameter and count. Text is parsed and formatted here and nowhere else.
"""

import math
import re

__all__ = [
    "DAY",
    "FLOP_PER_ND",
    "GB",
    "GIB",
    "HOUR",
    "PF_DAY",
    "UNITS",
    "UnitError",
    "parse",
    "text",
]

HOUR = 3600.0
DAY = 86400.0
PF_DAY = 1e15 * DAY  # 8.64e19 FLOP, :cite:`kaplan2020scaling`, section 1.3
GB = 1e9
GIB = 2.0**30
FLOP_PER_ND = 6.0  # the convention C = 6ND: 2 forward and 4 backward

UNITS = (
    "FLOP",
    "FLOP/s",
    "byte",
    "byte/s",
    "s",
    "USD",
    "token",
    "parameter",
    "count",
)

_DECIMAL = {
    "": 1.0,
    "k": 1e3,
    "M": 1e6,
    "G": 1e9,
    "B": 1e9,
    "T": 1e12,
    "P": 1e15,
    "E": 1e18,
    "Z": 1e21,
    "Y": 1e24,
}
_WORDS = {"thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
_BINARY = {f"{p}i": 2.0 ** (10 * k) for k, p in enumerate("KMGTPEZ", start=1)}
_TIME = {
    "s": 1.0,
    "sec": 1.0,
    "second": 1.0,
    "ms": 1e-3,
    "us": 1e-6,
    "µs": 1e-6,
    "min": 60.0,
    "minute": 60.0,
    "h": HOUR,
    "hr": HOUR,
    "hour": HOUR,
    "d": DAY,
    "day": DAY,
    "week": 7 * DAY,
    "month": 365.25 / 12 * DAY,
    "year": 365.25 * DAY,
    "yr": 365.25 * DAY,
}
_NUMBER = r"^([+-]?(?:\d[\d_]*(?:,\d{3})*(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)\s*(.*)$"
_POWER = r"^([+-]?[\d.]*)\s*(?:[x×*]\s*)?10\s*(?:\^|\*\*)\s*([+-]?\d+)\s*(.*)$"
_SUPERSCRIPT = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")


class UnitError(ValueError):
    """Text that is no quantity of the wanted kind; the message says what to write."""


def parse(quantity: str | float, unit: str) -> float:
    """Read a quantity as people write it.

    Parameters
    ----------
    quantity : str or float
        Text such as ``"3e24"``, ``"400B"``, ``"1 PF-day"``, ``"80GiB"``; a number is
        taken to be in the base unit already, [unit]
    unit : str
        One of :data:`UNITS`: the base unit of the answer, [-]

    Returns
    -------
    float
        The quantity in base units, [unit]

    Raises
    ------
    UnitError
        If the text is no number, or a quantity of another kind: bytes where tokens
        are asked, a rate (FLOP/s) where an amount (FLOP) is asked.

    Notes
    -----
    ``B`` and ``G`` both mean 1e9 in front of tokens and parameters; ``GB`` is bytes.
    ``GB`` is 1e9 byte, ``GiB`` is 2**30 byte. ``FLOPS`` in capitals is refused, since
    half of its readers take it for a rate and half for an amount.

    Examples
    --------
    >>> parse("400B", "token") == parse("400G", "token") == parse("0.4T", "token")
    True
    >>> parse("1 PF-day", "FLOP")
    8.64e+19
    >>> parse("80GiB", "byte")
    85899345920.0
    >>> parse("400GB", "token")
    Traceback (most recent call last):
        ...
    chinchilla_lab.units.UnitError: '400GB' is a size in bytes, not tokens; write 400B or 400G for 4e11 tokens
    """  # noqa: E501 - the message is one line, as a user sees it
    if unit not in UNITS:
        raise UnitError(f"unit={unit!r} is not known; choose from: {', '.join(UNITS)}")
    try:
        if isinstance(quantity, int | float) and not isinstance(quantity, bool):
            return _finite(float(quantity), quantity)
        written = str(quantity).strip()
        number, suffix = _split(written, unit)
        return _finite(number * _factor(suffix, unit, written), quantity)
    except OverflowError:
        raise UnitError(f"{quantity!r} is too large for a number") from None


def _finite(value: float, quantity: str | float) -> float:
    if not math.isfinite(value):
        raise UnitError(f"{quantity!r} is not a finite number")
    return value


def _split(written: str, unit: str) -> tuple[float, str]:
    plain = written.replace("\u202f", "").replace("\u00a0", " ").strip()
    if unit == "USD":
        plain = re.sub(r"^(-?)(?:\$|USD\b)\s*", r"\1", plain)
    # 10^22, 3x10^24, 3·10²⁴
    power = re.sub(
        r"10([⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+)",
        lambda m: "10^" + m.group(1).translate(_SUPERSCRIPT),
        plain.replace("·", "*"),
    )
    match = re.match(_POWER, power)
    if match:
        mantissa, exponent, suffix = match.groups()
        if mantissa.count(".") > 1 or mantissa in (".", "-."):
            raise UnitError(
                f"{written!r} is not a number; write it like {_example(unit)}"
            )
        head = float(mantissa + "1" if mantissa in ("", "+", "-") else mantissa)
        return head * 10.0 ** int(exponent), suffix.strip()
    match = re.match(_NUMBER, plain)
    if not match:
        raise UnitError(f"{written!r} is not a number; write it like {_example(unit)}")
    digits, suffix = match.groups()
    if re.search(r"\d,\d", digits) and not re.fullmatch(
        r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?([eE][+-]?\d+)?", digits
    ):
        raise UnitError(f"{written!r} has a misplaced comma; use a decimal point")
    if suffix.startswith(","):
        raise UnitError(f"{written!r} has a decimal comma; use a decimal point")
    return float(digits.replace(",", "").replace("_", "")), suffix.strip()


def _example(unit: str) -> str:
    return {
        "FLOP": "3e24, '1 PF-day' or '5 ZFLOP'",
        "FLOP/s": "'989 TFLOP/s' or 989e12",
        "byte": "80GB or 80GiB",
        "byte/s": "'3.35 TB/s' or '400 Gbit/s'",
        "s": "'30 days' or 86400",
        "USD": "2e6 or $2M",
        "token": "400B, 0.4T or 4e11",
        "parameter": "7B or 7e9",
        "count": "16k or 16384",
    }[unit]


def _prefix(word: str) -> float | None:
    """Return the factor of a decimal prefix; small letters as people type them."""
    if word in _DECIMAL:
        return _DECIMAL[word]
    if word in ("K", "m", "b", "g", "t", "bn", "tn", "mn"):
        return {"K": 1e3, "m": 1e6, "mn": 1e6, "b": 1e9, "bn": 1e9, "g": 1e9}.get(
            word, 1e12
        )
    return _WORDS.get(word.lower())


def _factor(suffix: str, unit: str, written: str) -> float:
    kind, factor = _recognise(suffix, unit)
    if kind == unit:
        return factor
    raise UnitError(_complaint(kind, unit, written, suffix))


def _recognise(suffix: str, unit: str) -> tuple[str, float]:
    """Name the kind of quantity that a suffix stands for, and its factor."""
    word = suffix.strip().rstrip(".")
    if word == "":
        return unit, 1.0
    flop = _flop(word)
    if flop:
        return flop
    size = _bytes(word)
    if size and not (word == "B" and unit not in ("byte", "byte/s")):
        return size
    lower = word.lower()
    plural = lower.endswith("s") and lower not in _TIME
    singular = lower[:-1] if plural else lower
    if singular in _TIME and (unit == "s" or len(singular) > 1):
        return "s", _TIME[singular]
    match = re.fullmatch(r"\$?\s*([A-Za-z]*)\s*(USD|usd|dollars?|\$)", word)
    if match:
        factor = _prefix(match.group(1))
        if factor is not None:
            return "USD", factor
    counted = re.fullmatch(
        r"([A-Za-z]*?)\s*(tokens?|toks?|parameters?|params?|accelerators?|gpus?|tpus?)",
        word,
        flags=re.IGNORECASE,
    )
    if counted:
        factor = _prefix(counted.group(1))
        named = counted.group(2).lower()
        kind = (
            "token"
            if named.startswith("tok")
            else "parameter"
            if named.startswith("param")
            else "count"
        )
        if factor is not None:
            return kind, factor
    factor = _prefix(word)
    if factor is not None and unit in ("token", "parameter", "count", "USD", "FLOP"):
        return unit, factor
    return "?", math.nan


def _flop(word: str) -> tuple[str, float] | None:
    day = re.fullmatch(
        r"([kMGTPEZY]?)(?:F|FLOPS?|FLOPs)(?:/s)?[\s·*-]?(s|sec|h|hours?|days?|years?)",
        _upright(word),
    )
    if day:
        time = day.group(2)
        seconds = _TIME[time] if time in _TIME else _TIME[time.rstrip("s")]
        return "FLOP", _DECIMAL[day.group(1)] * seconds
    match = re.fullmatch(
        r"([kMGTPEZY]?)\s*(FLOPS?|FLOPs|F(?=/s))(/s|ps|/sec)?", _upright(word)
    )
    if not match:
        return None
    prefix, name, rate = match.groups()
    if rate:
        return "FLOP/s", _DECIMAL[prefix]
    if name == "FLOPS":
        return "FLOPS", _DECIMAL[prefix]
    return "FLOP", _DECIMAL[prefix]


_NAMES = {
    "kilo": "k",
    "mega": "M",
    "giga": "G",
    "tera": "T",
    "peta": "P",
    "exa": "E",
    "zetta": "Z",
    "yotta": "Y",
}


def _upright(word: str) -> str:
    """Write a unit of FLOP the usual way: tflop/s, exaflop, pf-day."""
    for name, letter in _NAMES.items():
        word = re.sub(rf"^{name}(?=flop)", letter, word, flags=re.IGNORECASE)
    small = re.match(r"([mgtpezy])(f|flops?)(?=$|/|ps|[\s·*-])", word)
    if small:
        word = small.group(1).upper() + word[1:]
    word = re.sub(r"flops(?=$|/|-|ps)", "FLOPs", word)
    word = re.sub(r"flop(?=$|/|-|ps)", "FLOP", word)
    return re.sub(r"^([kMGTPEZY])f(?=$|/|[\s·*-])", r"\1F", word)


def _bytes(word: str) -> tuple[str, float] | None:
    match = re.fullmatch(
        r"([kKMGTPEZ]i?)?\s*(bytes?|B|bits?|b)(/s|ps|/sec)?",
        word.replace("Bytes", "bytes"),
    )
    if not match:
        return None
    prefix, name, rate = match.groups()
    if prefix is None and name == "b":
        return None
    scale = 1.0
    if prefix:
        scale = _BINARY.get(prefix.replace("k", "K"), 0.0) or _DECIMAL.get(
            prefix.replace("K", "k"), 0.0
        )
    if name in ("b", "bit", "bits"):
        scale /= 8.0
    return ("byte/s" if rate else "byte"), scale


def _complaint(kind: str, unit: str, written: str, suffix: str) -> str:
    plural = {"token": "tokens", "parameter": "parameters", "byte": "bytes"}
    wanted = plural.get(unit, unit)
    if kind == "byte" and unit in ("token", "parameter"):
        number = written[: len(written) - len(suffix)].strip() if suffix else written
        letter = suffix[0].upper() if suffix[:1].upper() in "KMGT" else ""
        factor = {"K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}.get(letter, 1.0)
        shown = f"{number}B or {number}G" if letter == "G" else f"{number}{letter}"
        try:
            base = _exponent(float(number) * factor, 6)
        except ValueError:
            base = "that many"
        return (
            f"{written!r} is a size in bytes, not {wanted}; "
            f"write {shown} for {base} {wanted}"
        )
    if kind == "FLOP/s" and unit == "FLOP":
        return (
            f"{written!r} is a rate (FLOP/s), not an amount of FLOP; multiply it by a "
            "time, for example '1 PFLOP/s-day', or give the amount, for example 3e24"
        )
    if kind == "FLOP" and unit == "FLOP/s":
        return (
            f"{written!r} is an amount of FLOP, not a rate; write FLOP/s, "
            "for example '989 TFLOP/s'"
        )
    if kind == "FLOPS":
        return (
            f"{written!r} can be read as an amount or as a rate; "
            "write FLOP (amount) or FLOP/s (rate)"
        )
    if kind in UNITS:
        names = {
            "s": "a time",
            "USD": "an amount of money",
            "byte/s": "a rate in byte/s",
        }
        found = names.get(kind, f"a number of {kind}s")
        return f"{written!r} is {found}, not {wanted}; write it like {_example(unit)}"
    return (
        f"{written!r}: {suffix!r} is not a unit of {wanted}; "
        f"write it like {_example(unit)}"
    )


def _digits(value: float, digits: int) -> str:
    """Round to significant digits without an exponent or trailing zeros."""
    if value == 0.0:
        return "0"
    places = digits - 1 - math.floor(math.log10(abs(value)))
    rounded = round(value, places)
    shown = f"{rounded:,.{max(places, 0)}f}"
    return shown.rstrip("0").rstrip(".") if "." in shown else shown


def _exponent(value: float, digits: int) -> str:
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    return f"{mantissa}e{int(exponent)}"


def text(value: float, unit: str, digits: int = 3) -> str:
    """Write a quantity for people.

    Parameters
    ----------
    value : float
        The quantity in base units, [unit]
    unit : str
        One of :data:`UNITS`, or ``""`` for a pure number, [-]
    digits : int, optional
        Significant digits, [-]

    Returns
    -------
    str
        Text that :func:`parse` reads back to the same digits, [-]

    Examples
    --------
    >>> text(9.045e9, "parameter"), text(1.84e11, "token"), text(1e22, "FLOP")
    ('9.04B', '184B', '1e22 FLOP')
    >>> text(989.4e12, "FLOP/s"), text(4.57 * 86400, "s"), text(2.5e6, "USD")
    ('989 TFLOP/s', '4.57 days', '$2.5M')
    """
    value = float(value)
    if unit and unit not in UNITS:
        raise UnitError(f"unit={unit!r} is not known; choose from: {', '.join(UNITS)}")
    if not math.isfinite(value):
        return str(value)
    if unit == "FLOP":
        return f"{_exponent(value, digits)} FLOP" if value else "0 FLOP"
    if unit == "s":
        return _time(value, digits)
    if unit in ("FLOP/s", "byte", "byte/s"):
        number, prefix = _scaled(value, digits, ("", "k", "M", "G", "T", "P", "E", "Z"))
        short = {"byte": "B", "byte/s": "B/s"}.get(unit, unit)
        return f"{number} {prefix}{short}"
    if unit in ("token", "parameter", "USD", "count"):
        number, prefix = _scaled(value, digits, ("", "k", "M", "B", "T"))
        if unit == "USD":
            return f"-${number[1:]}{prefix}" if value < 0 else f"${number}{prefix}"
        return f"{number}{prefix}"
    if value == 0.0 or 1e-3 <= abs(value) < 1e7:
        return _digits(value, digits)
    return _exponent(value, digits)


def _scaled(value: float, digits: int, prefixes: tuple[str, ...]) -> tuple[str, str]:
    """Choose the prefix after rounding, so that 999.99e9 becomes 1T."""
    if value == 0.0:
        return "0", ""
    rounded = float(f"{value:.{digits - 1}e}")
    step = min(
        max(math.floor(math.log10(abs(rounded)) / 3 + 1e-12), 0), len(prefixes) - 1
    )
    scaled = rounded / 1000.0**step
    if abs(scaled) >= 1e6 or abs(scaled) < 1e-3:
        return _exponent(scaled, digits), prefixes[step]
    return _digits(scaled, digits), prefixes[step]


def _time(seconds: float, digits: int) -> str:
    size = abs(seconds)
    if size >= 2 * DAY:
        return f"{_digits(seconds / DAY, digits)} days"
    if size >= 2 * HOUR:
        return f"{_digits(seconds / HOUR, digits)} hours"
    if size >= 120.0:
        return f"{_digits(seconds / 60.0, digits)} min"
    if size == 0.0 or size >= 1e-3:
        return f"{_digits(seconds, digits)} s"
    return f"{_exponent(seconds, digits)} s"
