"""Named training stacks: the few constants that were fitted, and on which rows."""

import json
import math
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from chinchilla_lab.checks import fraction, non_negative, one_of, positive
from chinchilla_lab.cluster.fields import shown
from chinchilla_lab.sources import read_rows
from chinchilla_lab.tables import html_table

__all__ = [
    "FITTABLE",
    "MIXTURE_ERROR",
    "RESERVE",
    "STACKS",
    "TYPICAL",
    "UNCALIBRATED",
    "Stack",
    "find_stack",
]

FITTABLE = (
    "gemm",
    "traffic",
    "attention",
    "layer_overhead",
    "network",
    "jitter",
    "step_overhead",
)
"""Constants that measured steps may set; at most four of them at once."""
# fields that say nothing of the speed; whatever else is changed ends a calibration
_ASIDE = (
    "name", "memory_offset", "mixtures", "error", "fitted", "rows", "source", "notes",
    "changed",
)  # fmt: skip
MIXTURE_ERROR = (0.94, 1.9)
"""How many times as long steps of mixtures took as constants of dense models say, [-].

Eleven of twelve published steps of Qwen3 on H100 (:cite:`bridge`, :cite:`megatronmoe`).
"""
RESERVE = 2e9
"""What a stack without a measured offset takes beside the itemised bytes, [byte].

Measured offsets are 2.3, 15.3 and 17.6 GB (:cite:`simumax`, :cite:`nanotron`,
:cite:`bloom`). With the least of them a published run that ran would be refused: the
fullest one whose plan is known and not assumed, LLM Foundry on A100, leaves 2.1 GB.
"""


@dataclass(frozen=True, kw_only=True)
class Stack:
    """How well software uses a machine: a handful of constants.

    Parameters
    ----------
    name : str
        Key in :data:`STACKS`, [-]
    gemm : float
        Rate of a large matrix product that fills all cores, as a share of the best
        measured product, [-]
    traffic : float
        Bytes that element-wise operations move, over the count of the model, [-]
    attention : float
        Rate of the products of attention, relative to ``gemm``, [-]
    layer_overhead : float
        Launches and gaps of a layer and micro-batch, forward and backward, [s]
    network : float
        Share of the nominal network rate that messages reach, [-]
    jitter : float
        Growth of a step with each doubling of the nodes, waiting for the slowest, [-]
    step_overhead : float
        Seconds of a step that grow with the logarithm of the nodes, [s]
    tp_overlap : float
        Share of tensor-parallel traffic hidden behind products, [-]
    dp_overlap : float
        Share of data-parallel traffic hidden behind the backward pass, [-]
    ep_overlap : float
        Share of expert-parallel traffic hidden behind products, [-]
    dispatch_bytes : float
        Width in which tokens go to their experts where products are in 8 bits; they
        come back in 16, [byte]
    mixtures : bool
        Steps of mixtures of experts are among those that the constants were tried on,
        [-]
    fused : bool
        Attention keeps its scores on the chip and skips what the mask hides, [-]
    parallel_block : bool
        MLP and attention stand side by side and share their all-reduces, [-]
    head_counted : bool
        Pipeline stages are cut by cost, the head counted as the layers that it costs,
        [-]
    gradient_bytes : float
        Width in which gradients are reduced over replicas, [byte]
    bucket : float
        16-bit gradients that travel in one message; 0 takes all in one, whose latency
        is neglected, [byte]
    logit_traffic : float
        Bytes that head and loss move for each logit, [byte]
    memory_offset : float
        Bytes beside the itemised ones, fitted on measured memory; where it is 0,
        :data:`RESERVE` is kept free, [byte]
    error : float
        Mean absolute error on rows that were not fitted, of the step time; not known
        once a constant is changed, [-]
    fitted : tuple of str
        Names of the constants that were fitted, [-]
    rows : str
        Table and number of rows that they were fitted on, [-]
    source : str
        Key of the table's source, [-]
    notes : str
        What was assumed and not fitted, [-]
    changed : tuple of str
        Names of the constants that somebody set by hand, [-]
    """

    name: str
    gemm: float = 1.0
    traffic: float = 1.0
    attention: float = 0.75
    layer_overhead: float = 0.0
    network: float = 0.88
    jitter: float = 0.0
    step_overhead: float = 0.0
    tp_overlap: float = 0.0
    dp_overlap: float = 0.0
    ep_overlap: float = 0.0
    dispatch_bytes: float = 2.0
    mixtures: bool = False
    fused: bool = True
    parallel_block: bool = False
    head_counted: bool = False
    gradient_bytes: float = 2.0
    bucket: float = 0.0
    logit_traffic: float = 12.0
    memory_offset: float = 0.0
    error: float = float("nan")
    fitted: tuple[str, ...] = ()
    rows: str = ""
    source: str = ""
    notes: str = ""
    changed: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("gemm", "attention"):
            fraction(
                name,
                getattr(self, name),
                "products cannot beat the best that was measured",
            )
        positive("network", self.network)
        counts = ("traffic", "layer_overhead", "jitter", "step_overhead")
        positive("gradient_bytes", self.gradient_bytes)
        for name in (*counts, "memory_offset", "bucket", "logit_traffic"):
            non_negative(name, getattr(self, name))
        positive("dispatch_bytes", self.dispatch_bytes)
        for name in ("tp_overlap", "dp_overlap", "ep_overlap"):
            if getattr(self, name) != 0.0:
                fraction(name, getattr(self, name))
        if len(self.fitted) > 4:
            raise ValueError(
                f"fitted={', '.join(self.fitted)}: more than four constants fit any "
                "table; fix the others"
            )

    @property
    def label(self) -> str:
        """``"upper bound"``, or what is behind the constants, [-]."""
        if self.changed:
            return f"changed by hand: {', '.join(self.changed)}"
        if self.fitted:
            return f"calibrated to {self.rows}"
        slow = self.layer_overhead or self.jitter or self.step_overhead
        return "assumed constants" if self.gemm < 1.0 or slow else "upper bound"

    @property
    def reserved(self) -> float:
        """Bytes beside the itemised ones, measured or ``RESERVE``, [byte]."""
        return self.memory_offset or RESERVE

    def with_(self, **changes: Any) -> "Stack":
        """Return a copy with other constants.

        Parameters
        ----------
        **changes : dict
            Fields to set, [-]

        Returns
        -------
        Stack
            The copy, [-]

        Notes
        -----
        No constant can be changed and the measurement behind the others be kept: the
        rows that set them set them together. A copy with another speed is therefore
        labelled as changed by hand, and it has neither fitted rows nor a known error.

        Examples
        --------
        >>> STACKS["megatron-2021"].with_(traffic=0.0).label
        'changed by hand: traffic'
        """
        for name in changes:
            one_of("constant", name, [f.name for f in fields(self)])
        moved = [
            name
            for name in changes
            if name not in _ASIDE and changes[name] != getattr(self, name)
        ]
        if moved and "fitted" not in changes:
            given = dict.fromkeys((*self.changed, *moved))
            changes = {
                "fitted": (), "rows": "", "source": "", "error": float("nan"),
                "changed": tuple(given),
            } | changes  # fmt: skip
        return replace(self, **changes)

    def to_json(self) -> str:
        """Return the stack as JSON that :meth:`from_file` reads; no error is null.

        Returns
        -------
        str
            Every field by its name, times in seconds and widths in bytes, [-]

        Examples
        --------
        >>> '"name": "megatron-2021"' in STACKS["megatron-2021"].to_json()
        True
        """
        given = asdict(self) | {"error": None if math.isnan(self.error) else self.error}
        return json.dumps(given, indent=1) + "\n"

    @classmethod
    def from_file(cls, path: str | Path) -> "Stack":
        """Read a stack from a JSON or TOML file.

        Parameters
        ----------
        path : str or pathlib.Path
            File that :meth:`to_json` wrote, or one with some of the fields by name;
            what it leaves out is as in an upper bound, [-]

        Returns
        -------
        Stack
            The stack, [-]

        Raises
        ------
        ValueError
            If the file is no JSON or TOML, or a field is unknown or of another kind.

        Notes
        -----
        A file that says nothing of measurements counts as changed by hand.
        """
        place = Path(path)
        try:
            written = place.read_text(encoding="utf-8-sig")
            toml = place.suffix.lower() == ".toml"
            given = tomllib.loads(written) if toml else json.loads(written)
        except (ValueError, RecursionError) as fault:
            raise ValueError(f"{place.name} is no stack: {fault}") from None
        if not isinstance(given, dict):
            raise ValueError(
                f"{place.name} holds {shown(given)}, no table of fields; write "
                "gemm = 0.8 and other constants by name"
            )
        try:
            read = {name: _field(name, value) for name, value in given.items()}
            read = {"name": place.stem} | read
            if not read.get("fitted") and not read.get("rows"):
                hand = [k for k in read if k not in _ASIDE]
                read["changed"] = read.get("changed") or tuple(hand)
            return cls(**read)
        except ValueError as fault:
            raise ValueError(f"{place.name}: {fault}") from None

    def _kind(self, name: str) -> str:
        if name in self.changed:
            return "by hand"
        return "fitted" if name in self.fitted else "assumed"

    def _repr_html_(self) -> str:
        rows = [
            [
                f.name.replace("_", " "),
                str(getattr(self, f.name)),
                self._kind(f.name),
            ]
            for f in fields(self)
            if f.name not in _ASIDE or f.name == "memory_offset"
        ]
        return html_table((self.name, "value", "kind"), rows, self.label)


def _field(name: str, value: Any) -> Any:
    """Read one field of a file, and refuse what is not of its kind."""
    kinds: dict[str, Any] = {f.name: f.default for f in fields(Stack)} | {"name": ""}
    one_of("field", name, kinds)
    kind = kinds[name]
    if name == "error" and value is None:
        return float("nan")
    several = isinstance(kind, tuple) and isinstance(value, list)
    if several and all(isinstance(v, str) for v in value):
        if name == "fitted":
            for constant in value:
                one_of("fitted", constant, FITTABLE)
        return tuple(value)
    if isinstance(value, type(kind)) and not isinstance(kind, tuple):
        return value
    if isinstance(kind, float) and type(value) is int:
        return float(value)
    wanted = {bool: "true or false", float: "a number", str: "words"}
    raise ValueError(
        f"{name}={shown(value)} must be {wanted.get(type(kind), 'a list of names')}"
    )


UNCALIBRATED = Stack(
    name="uncalibrated",
    tp_overlap=0.7,
    dp_overlap=1.0,
    ep_overlap=1.0,
    dispatch_bytes=1.0,
    notes="products at the best measured rate; traffic of replicas and experts hidden "
    "as far as there is work to hide it, that of tensors as in well-tuned stacks; "
    "tokens sent to experts in 8 bits beside 8-bit products, as DeepSeek-V3 does",
)
"""No constant fitted: what comes out is an upper bound on the speed."""
TYPICAL = Stack(
    name="typical",
    tp_overlap=0.7,
    dp_overlap=0.8,
    notes="overlap as in well-tuned stacks, expert traffic in 16 bits and not hidden",
)
"""Where a calibration starts: no bound, for what is hidden cannot be fitted."""

_COUNTED = ("gradient_bytes", "bucket", "logit_traffic")
_NUMBERS = (
    *FITTABLE, *_COUNTED, "tp_overlap", "dp_overlap", "ep_overlap", "dispatch_bytes",
    "memory_offset", "error",
)  # fmt: skip


@cache
def _table() -> dict[str, Stack]:
    found = {}
    for row in read_rows("stacks.csv"):
        given: dict[str, Any] = {k: float(row[k]) for k in _NUMBERS if row.get(k)}
        given |= {k: row[k] for k in ("name", "rows", "source", "notes")}
        fitted = tuple(row["fitted"].split())
        given |= {k: row[k] == "1" for k in ("fused", "parallel_block", "head_counted")}
        given["mixtures"] = row.get("mixtures") == "1"
        found[row["name"]] = Stack(fitted=fitted, **given)
    return found


class _Stacks(Mapping[str, Stack]):
    """Stacks by name; the file is read when the first one is asked for."""

    def __getitem__(self, key: str) -> Stack:
        if key == UNCALIBRATED.name:
            return UNCALIBRATED
        if key not in _table():
            raise ValueError(
                f"no stack {key!r}; known: {', '.join(self)} (calibrate one of your "
                "own: chinchilla_lab.cluster.calibrate)"
            )
        return _table()[key]

    def __iter__(self) -> Iterator[str]:
        return iter((UNCALIBRATED.name, *_table()))

    def __len__(self) -> int:
        return 1 + len(_table())

    def __contains__(self, key: object) -> bool:
        return key == UNCALIBRATED.name or key in _table()


STACKS: Mapping[str, Stack] = _Stacks()
"""Stacks by name, for example ``STACKS["megatron-2021"]``."""


class HasStack(Protocol):
    """Whatever carries a stack, as a calibration does."""

    @property
    def stack(self) -> Stack:
        """Return the stack."""


def find_stack(which: Stack | str | HasStack) -> Stack:
    """Return the stack itself, by its name if need be.

    Parameters
    ----------
    which : Stack or str or Calibration
        The stack, its name, or the calibration that fitted it, [-]

    Returns
    -------
    Stack
        The stack, [-]

    Raises
    ------
    ValueError
        If it is neither a stack nor a known name.
    """
    if isinstance(which, str):
        return STACKS[which]
    which = getattr(which, "stack", which)
    if not isinstance(which, Stack):
        raise ValueError(
            f"stack={shown(which)} is no stack; give one of {', '.join(STACKS)}, or "
            "one of your own from chinchilla_lab.cluster.calibrate"
        )
    return which
