"""What an explorer is: controls, numbers, drawings and a readout."""

import math
import os
import re
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from chinchilla_lab.checks import ExtrapolationWarning
from chinchilla_lab.figures.style import Draw, Drawing, Series, draw_on_figure
from chinchilla_lab.units import DAY, GB, UNITS, UnitError, parse, text

if TYPE_CHECKING:
    from chinchilla_lab.explorers.kernel import KernelFace

__all__ = [
    "Choice",
    "Control",
    "Explorer",
    "LogSlider",
    "Number",
    "Panel",
    "Reading",
    "Sheet",
    "Slider",
    "Toggle",
    "Value",
]

Value = float | str | bool
# units whose values are shown with a prefix: 9.05B, 989 TFLOP/s, 80 GB
_SHORT = ("parameter", "token", "FLOP/s", "byte", "byte/s")
# units of a control that are a multiple of one that can be typed: 45 days, 80 GB
_MULTIPLES = {
    "day": ("s", DAY),
    "min": ("s", 60.0),
    "us": ("s", 1e-6),
    "GB": ("byte", GB),
    "GB/s": ("byte/s", GB),
}
# values of these stay whole where a position falls on a whole number: 2048, 1 MiB
_WHOLE = ("count", "byte")
_BINARY = ("byte", "KiB", "MiB", "GiB", "TiB")


def _plain(value: float) -> str:
    """Write a number so that it reads back exactly: 1e22, 0.4, 8192."""
    short = f"{value:.12g}"
    if "e" in short:
        mantissa, exponent = short.split("e")
        return f"{mantissa}e{int(exponent)}"
    return short


def _check_name(name: str, label: str) -> None:
    if not name.isidentifier():
        raise ValueError(f"{name!r} cannot be an argument; name it like a variable")
    if not label:
        raise ValueError(f"{name}: a control needs a label that a reader understands")


@dataclass(frozen=True, kw_only=True)
class Number:
    """A quantity that is typed: text in, checked number out.

    Parameters
    ----------
    name : str
        Argument of ``series`` and ``readout``, [-]
    low : float
        Least value, [unit]
    high : float
        Largest value, [unit]
    value : float
        Default, [unit]
    label : str
        What a reader calls it, [-]
    unit : str
        Unit of :mod:`chinchilla_lab.units`, or any other text for pure numbers, [-]
    """

    name: str
    low: float
    high: float
    value: float
    label: str
    unit: str = ""

    kind = "number"

    def __post_init__(self) -> None:
        _check_name(self.name, self.label)
        if not -math.inf < self.low < self.high < math.inf:
            raise ValueError(
                f"{self.name}: low={self.low:g} must lie below high={self.high:g}"
            )
        if not self.low <= self.value <= self.high:
            raise ValueError(
                f"{self.name}: default {self.value:g} lies outside "
                f"{self.low:g} to {self.high:g}"
            )

    def parse(self, raw: Value) -> float:
        """Read a typed or moved value.

        Raises
        ------
        ValueError
            If the text is no number or leaves the range; names both.
        """
        if isinstance(raw, bool):
            raise ValueError(f"{self.label}: {raw!r} is not a number")
        number = self._number(raw)
        # a hair of room at each bound, for the dust of decimal text
        low = self.low - 1e-9 * abs(self.low)
        high = self.high + 1e-9 * abs(self.high)
        if not low <= number <= high:
            raise ValueError(
                f"{self.label}: {raw} lies outside {self.show(self.low)} to "
                f"{self.show(self.high)}"
            )
        return float(round(number)) if self.unit == "count" else number

    def _number(self, raw: float | str) -> float:
        """Read text in the unit of the control, or with a word of its label behind."""
        unit = self.unit if self.unit in UNITS else "count"
        try:
            return parse(raw, unit)
        except UnitError as problem:
            written = str(raw).strip()
            if self.unit in _MULTIPLES:
                base, size = _MULTIPLES[self.unit]
                with suppress(UnitError):
                    return parse(written, base) / size
            said = re.sub(r"\W", " ", f"{self.label} {self.suffix}").lower().split()
            word = re.search(r"[^\W\d_]+$", written)
            if word and word.group().lower().rstrip("s") in {
                w.rstrip("s") for w in said
            }:
                with suppress(UnitError):
                    return parse(written[: word.start()], unit)
            if self.unit and written.endswith(self.unit):
                with suppress(UnitError):
                    return parse(written[: -len(self.unit)], unit)
            if self.unit in UNITS:
                raise
            wanted = f"a number of {self.suffix}" if self.unit else "a number"
            raise UnitError(
                f"{self.label}: {raw!r} is not {wanted}; write it like "
                f"{self.show(self.value)} {self.suffix}".rstrip()
            ) from problem

    def show(self, value: Value) -> str:
        """Write a value the way it may be typed."""
        number = float(value)
        if self.unit == "byte":
            for power, prefix in enumerate(_BINARY):
                size = number / 1024.0**power
                if 1.0 <= size < 1024.0 and size == round(size):
                    return f"{size:.0f} {prefix}"
        if self.unit in _SHORT:
            for digits in (4, 7, 10):
                shown = text(number, self.unit, digits)
                if math.isclose(parse(shown, self.unit), number, rel_tol=1e-9):
                    return shown
        return _plain(number)

    @property
    def suffix(self) -> str:
        """What stands behind the box: the unit, unless the box itself says it."""
        words = {
            "parameter": "parameters",
            "token": "tokens",
            "count": "",
            "day": "days",
        }
        inside = self.unit in _SHORT and self.unit not in words
        return "" if inside else words.get(self.unit, self.unit)


@dataclass(frozen=True, kw_only=True)
class Slider(Number):
    """A quantity on an even scale.

    Parameters
    ----------
    step : float
        Distance between positions, [unit]
    """

    step: float = 1.0

    kind = "linear"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.step > 0.0 or self.steps < 1:
            raise ValueError(
                f"{self.name}: step={self.step:g} makes no second position between "
                f"{self.low:g} and {self.high:g}"
            )
        if not math.isclose(self.at(self.steps), self.high, rel_tol=1e-9):
            raise ValueError(
                f"{self.name}: steps of {self.step:g} from {self.low:g} miss "
                f"high={self.high:g}; the last is {self.at(self.steps):g}"
            )
        near = self.at(self.position(self.value))
        if not math.isclose(near, self.value, rel_tol=1e-9, abs_tol=1e-12):
            raise ValueError(
                f"{self.name}: default {self.value:g} is no position; the nearest is "
                f"{near:g}"
            )

    def parse(self, raw: Value) -> float:
        """Read a value and take the nearest step: half a layer is no layer."""
        return self.at(self.position(super().parse(raw)))

    @property
    def steps(self) -> int:
        """Positions beyond the first."""
        return round((self.high - self.low) / self.step)

    def at(self, position: int) -> float:
        """Return the value at a position, free of the dust of addition."""
        return float(f"{self.low + position * self.step:.10g}")

    def position(self, value: float) -> int:
        """Return the position nearest to a value."""
        return round((value - self.low) / self.step)


@dataclass(frozen=True, kw_only=True)
class LogSlider(Number):
    """A quantity on a logarithmic scale; values carry three digits.

    The default is one of the positions. Counts that fall on a whole number keep it, so
    that a scale of doublings has 2048 and not 2050.

    Parameters
    ----------
    steps : int
        Positions beyond the first, [-]
    """

    steps: int = 200

    kind = "log"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.low > 0.0:
            raise ValueError(
                f"{self.name}: low={self.low:g} has no logarithm; use a Slider"
            )
        if self.steps < 1:
            raise ValueError(f"{self.name}: steps={self.steps} must be at least 1")

    def at(self, position: int) -> float:
        """Return the value at a position: three significant digits, whole counts."""
        if position == self.position(self.value):
            return float(self.value)
        exact = self.low * (self.high / self.low) ** (position / self.steps)
        value = float(f"{exact:.2e}")
        if self.unit in _WHOLE:
            near = math.floor(exact + 0.5)
            on_it = abs(exact - near) <= 1e-9 * exact
            value = float(near if on_it else math.floor(value + 0.5))
        # three digits may leave a range whose ends have more
        return min(max(value, self.low), self.high)

    def position(self, value: float) -> int:
        """Return the position nearest to a value."""
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return round(share * self.steps)


@dataclass(frozen=True, kw_only=True)
class Choice:
    """One of a few words.

    Parameters
    ----------
    name : str
        Argument of ``series`` and ``readout``, [-]
    options : mapping
        Label by key; the key is what ``series`` gets, [-]
    value : str
        Default key, [-]
    label : str
        What a reader calls it, [-]
    """

    name: str
    options: Mapping[str, str]
    value: str
    label: str

    kind = "choice"

    def __post_init__(self) -> None:
        _check_name(self.name, self.label)
        if self.value not in self.options:
            raise ValueError(f"{self.name}: default {self.value!r} is not an option")

    def parse(self, raw: Value) -> str:
        """Return a known key or say which there are."""
        if not isinstance(raw, str) or raw not in self.options:
            raise ValueError(
                f"{self.label}: {raw!r} is not one of {', '.join(self.options)}"
            )
        return str(raw)

    def show(self, value: Value) -> str:
        """Return the key."""
        return str(value)


@dataclass(frozen=True, kw_only=True)
class Toggle:
    """Yes or no.

    Parameters
    ----------
    name : str
        Argument of ``series`` and ``readout``, [-]
    value : bool
        Default, [-]
    label : str
        What a reader calls it, [-]
    """

    name: str
    value: bool
    label: str

    kind = "toggle"

    def __post_init__(self) -> None:
        _check_name(self.name, self.label)

    def parse(self, raw: Value) -> bool:
        """Return a truth value."""
        if not isinstance(raw, bool):
            raise ValueError(f"{self.label}: {raw!r} is not true or false")
        return raw

    def show(self, value: Value) -> str:
        """Return ``on`` or ``off``."""
        return "on" if value else "off"


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """A table that the reader pastes or loads from a file, as CSV text.

    Parameters
    ----------
    name : str
        Argument of ``series`` and ``readout``, [-]
    value : str
        Default table, [-]
    label : str
        What a reader calls it, [-]
    most : int
        Longest text that is taken, [character]
    """

    name: str
    value: str
    label: str
    most: int = 200_000

    kind = "sheet"

    def __post_init__(self) -> None:
        _check_name(self.name, self.label)

    def parse(self, raw: Value) -> str:
        """Return the text, or say why it cannot be a table."""
        if not isinstance(raw, str) or not raw.strip():
            raise ValueError(f"{self.label}: no rows; paste CSV text with a header")
        if len(raw) > self.most:
            raise ValueError(
                f"{self.label}: {len(raw)} characters, at most {self.most} are taken; "
                "leave columns and rows out"
            )
        return raw

    def show(self, value: Value) -> str:
        """Return the text."""
        return str(value)


Control = Number | Choice | Toggle | Sheet


@dataclass(frozen=True, kw_only=True)
class Reading:
    """One line of a readout: the text is what both faces show.

    Parameters
    ----------
    label : str
        What it is, [-]
    text : str
        The value with its unit, formatted, [-]
    value : float, optional
        The number behind the text, [any]
    """

    label: str
    text: str
    value: float = math.nan


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One drawing of an explorer, on axes of its own.

    Parameters
    ----------
    draw : callable
        ``draw(ax, series)``: fixed axes, artists tagged with the name of their series
        as ``gid``; lines, markers and filled polygons may be live, [-]
    title : str
        Caption, one line, [-]
    alt : str
        What a reader who cannot see it should know, [-]
    width : float
        Width of the drawing, [inch]
    height : float
        Height of the drawing, [inch]
    """

    draw: Draw
    title: str
    alt: str
    width: float = 3.7
    height: float = 2.9

    def __post_init__(self) -> None:
        if not callable(self.draw):
            raise ValueError(f"{self.title}: draw={self.draw!r} cannot be called")
        if len(self.alt) < 20:
            raise ValueError(
                f"{self.title}: alt={self.alt!r} does not tell what is seen; "
                "write a sentence"
            )


@dataclass(frozen=True, kw_only=True)
class Explorer:
    """A figure with controls.

    Parameters
    ----------
    name : str
        Name of its module, and of its figure in the page, [-]
    title : str
        Heading, [-]
    controls : tuple of Control
        What can be moved, [-]
    series : callable
        ``series(**values)`` to x and y arrays by name; numpy only, [-]
    panels : tuple of Panel
        Drawings of the series, [-]
    readout : callable
        ``readout(**values)`` to a tuple of :class:`Reading`, [-]
    """

    name: str
    title: str
    controls: tuple[Control, ...]
    series: Callable[..., Series]
    panels: tuple[Panel, ...]
    readout: Callable[..., tuple[Reading, ...]]

    def __post_init__(self) -> None:
        names = [control.name for control in self.controls]
        if len(set(names)) < len(names):
            raise ValueError(f"{self.name}: two controls share a name: {names}")
        if not self.name.isidentifier():
            raise ValueError(f"{self.name!r} cannot be the name of a module")
        if not self.controls or not self.panels:
            raise ValueError(f"{self.name}: needs a control and a panel at least")
        for part in (self.series, self.readout):
            if not callable(part):
                raise ValueError(f"{self.name}: {part!r} cannot be called")

    def values(self, **changes: Value) -> dict[str, Value]:
        """Return the value of every control, defaults where none is given.

        Raises
        ------
        ValueError
            If a name is no control of this explorer or a value leaves its range.
        """
        known = {control.name: control for control in self.controls}
        unknown = set(changes) - set(known)
        if unknown:
            raise ValueError(
                f"{self.name} has no control {sorted(unknown)}; it has {list(known)}"
            )
        return {
            name: control.parse(changes[name]) if name in changes else control.value
            for name, control in known.items()
        }

    def compute(
        self, values: Mapping[str, Value]
    ) -> tuple[Series, tuple[Reading, ...]]:
        """Return series and readings at values that were checked.

        Both faces and the tests come through here. Extrapolations are not warned of:
        a slider leaves a fitted range all the time, and the readout says so in words.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExtrapolationWarning)
            return self.series(**values), self.readout(**values)

    def plot(self, panel: int = 0, **changes: Value) -> Drawing:
        """Draw one panel at given values, as a static figure.

        Parameters
        ----------
        panel : int, optional
            Which panel, [-]
        **changes : float or str or bool
            Values that differ from the defaults, [any]

        Returns
        -------
        Drawing
            The figure, [-]
        """
        series, _ = self.compute(self.values(**changes))
        return draw_on_figure(self.panels[panel].draw, series)

    def html(self) -> str:
        """Return the page face: complete before any script runs."""
        from chinchilla_lab.explorers.page import html

        return html(self)

    def widget(self) -> "KernelFace":
        """Return the kernel face, made of ipywidgets."""
        from chinchilla_lab.explorers.kernel import KernelFace

        return KernelFace(self)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        bundle: dict[str, Any] = {}
        # The book builder sets this: its pages need no widget state.
        if os.environ.get("CHINCHILLA_LAB_FACE") != "page":
            bundle |= dict(self.widget().view())
        _, readings = self.compute(self.values())
        bundle["text/html"] = self.html()
        bundle["text/plain"] = f"{self.title}: " + "; ".join(
            f"{reading.label} {reading.text}" for reading in readings
        )
        return bundle
