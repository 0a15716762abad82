"""Accelerators as data: a missing figure is an error on use."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from chinchilla_lab.checks import one_of, scalar, whole
from chinchilla_lab.cluster.fields import (
    date_in_words,
    network_rate,
    number,
    shown,
    words,
)
from chinchilla_lab.sources import read_rows
from chinchilla_lab.tables import html_table
from chinchilla_lab.units import GB, GIB

__all__ = [
    "ACCELERATORS",
    "DTYPES",
    "Accelerator",
    "Price",
    "accelerator_from",
    "accelerator_table",
    "find",
]

DTYPES = ("bf16", "fp8", "tf32")
TERA, MIB = 1e12, 2.0**20
_OWN = ("source", "where", "accessed", "evidence")
_REQUIRED = ("name", "sparse", *_OWN)
_WORDS = ("id", "cores_source", "scaleup_link", "notes")
_EVIDENCE = ("vendor", "measured", "paper", "secondary", "estimate")
_PER = ("card", "die", "chip")


@dataclass(frozen=True, kw_only=True)
class Price:
    """Rental of one accelerator, as the range that was seen on a date.

    Parameters
    ----------
    low : float
        Lowest offer, [USD/h]
    high : float
        Highest offer, [USD/h]
    date : str
        When: ``2026``, ``2026-05``, ``2026-05-20``, or two with a stroke between, [-]
    source : str
        Who collected them, and what they blend; ``"own"`` for a quote of yours, [-]

    Raises
    ------
    ValueError
        If an end is not positive, the range is reversed, or date or source is missing.

    Examples
    --------
    >>> Price(low=2.0, high=3.0, date="2026-11", source="own").text
    '2 to 3 USD/h, 2026-11; own'
    """

    low: float
    high: float
    date: str
    source: str

    def __post_init__(self) -> None:
        low = scalar("price low", self.low)
        if scalar("price high", self.high) < low:
            raise ValueError(f"price high={self.high:g} is below low={self.low:g}")
        seen = f"price {self._ends} USD/h"
        if not isinstance(self.date, str) or not self.date.strip():
            raise ValueError(
                f"{seen} has no date; the same card was seen between 1.99 and 5.00 in "
                "one month: say when, date='2026-05'"
            )
        if not date_in_words(self.date):
            raise ValueError(
                f"{seen}: date={shown(self.date)} is no date; write '2026', '2026-05', "
                "'2026-05-20', or two in order such as '2026-01/2026-04'"
            )
        if not isinstance(self.source, str) or not self.source.strip():
            raise ValueError(
                f"{seen} in {self.date} has no source; say who asks it, or "
                "source='own' for a quote of yours"
            )

    @property
    def text(self) -> str:
        """The range with its date and source, [USD/h]."""
        return f"{self._ends} USD/h, {self.date}; {self.source}"

    @property
    def _ends(self) -> str:
        low, high = f"{self.low:g}", f"{self.high:g}"
        return low if low == high else f"{low} to {high}"


@dataclass(frozen=True, kw_only=True)
class Accelerator:
    """One accelerator: data sheet, measured ceilings, links.

    Data-sheet rates, measured ceilings and what a run reaches are three numbers, and
    only the first two belong to the chip.

    Parameters
    ----------
    id : str
        Key in :data:`ACCELERATORS`, [-]
    name : str
        Name as people write it, [-]
    peaks : dict
        Dense data-sheet rate by dtype, [FLOP/s]
    gemm_ceilings : dict
        Best measured matrix product by dtype, [FLOP/s]
    hbm_bytes : float, optional
        Memory as it is sold, in decimal units, [byte]
    device_bytes : float, optional
        Memory that the driver reports, [byte]
    hbm_bandwidth : float, optional
        Memory bandwidth, [byte/s]
    n_cores : int, optional
        Processors among which a matrix product is cut (SMs), [-]
    cores_source : str, optional
        Who counted them: a key of the bibliography or an address, [-]
    scaleup_link : str, optional
        Kind of the link inside a domain, [-]
    scaleup_bandwidth : float, optional
        Link inside the scale-up domain, one way, nominal, [byte/s]
    scaleup_measured : float, optional
        Bus bandwidth of a large ring all-reduce inside a domain, measured, [byte/s]
    scaleup_domain : int, optional
        Accelerators that the link joins, [-]
    scaleout_bandwidth : float, optional
        Network per accelerator, one way, nominal, typical, [byte/s]
    power : float, optional
        Rated power, [W]
    price : Price, optional
        Rental, [USD/h]
    source : str
        Where the figures come from, [-]
    where : str
        Place in it, [-]
    accessed : str
        When it was looked up, [-]
    evidence : str
        vendor where the maker's own page was read, secondary where somebody else's
        table was, measured, paper or estimate, [-]
    per : str, optional
        What the figures count: a card with all of its dies, a die, or a chip, [-]
    notes : str, optional
        What to know beside the figures, [-]
    """

    id: str
    name: str
    peaks: dict[str, float]
    source: str
    where: str
    accessed: str
    evidence: str
    gemm_ceilings: dict[str, float] = field(default_factory=dict)
    hbm_bytes: float | None = None
    device_bytes: float | None = None
    hbm_bandwidth: float | None = None
    n_cores: int | None = None
    cores_source: str = ""
    scaleup_link: str = ""
    scaleup_bandwidth: float | None = None
    scaleup_measured: float | None = None
    scaleup_domain: int | None = None
    scaleout_bandwidth: float | None = None
    power: float | None = None
    price: Price | None = None
    per: str = "card"
    notes: str = ""

    def __post_init__(self) -> None:
        one_of("evidence", self.evidence, _EVIDENCE)
        one_of("per", self.per, _PER)
        for dtype, measured in self.gemm_ceilings.items():
            most = self.peaks.get(dtype, np.inf)
            if measured > most * (1.0 + 1e-9):
                raise ValueError(
                    f"gemm_{dtype}_tflops={measured / TERA:g} of {self.name} exceeds "
                    f"its dense peak of {most / TERA:g}: a measured product cannot; "
                    "check sparse (true halves the headline) and the measured rate"
                )

    def peak(self, dtype: str = "bf16") -> float:
        """Return the dense data-sheet rate.

        Parameters
        ----------
        dtype : {"bf16", "fp8", "tf32"}, optional
            Number format of the matrix products, [-]

        Returns
        -------
        float
            Dense rate, [FLOP/s]

        Raises
        ------
        ValueError
            If the chip has no such rate in the table.

        Examples
        --------
        >>> ACCELERATORS["h100-sxm-80gb"].peak("tf32") / 1e12
        494.7
        """
        return self._rate("peak", self.peaks, dtype)

    def ceiling(self, dtype: str = "bf16") -> float:
        """Return the best measured matrix product.

        Parameters
        ----------
        dtype : {"bf16", "fp8", "tf32"}, optional
            Number format, [-]

        Returns
        -------
        float
            Rate, [FLOP/s]

        Raises
        ------
        ValueError
            If none was measured.

        References
        ----------
        :cite:`mamf`, table of maximum achievable matrix products

        Examples
        --------
        >>> ACCELERATORS["a100-sxm-80gb"].ceiling() / 1e12
        271.2
        """
        return self._rate("measured product", self.gemm_ceilings, dtype)

    def _rate(self, kind: str, rates: dict[str, float], dtype: str) -> float:
        one_of("dtype", dtype, DTYPES)
        column = f"{'gemm_' if rates is self.gemm_ceilings else ''}{dtype}_tflops"
        if dtype not in rates:
            has = f"only for {', '.join(rates)}; choose one of these, or give"
            raise ValueError(
                f"dtype={dtype!r}: no {kind} of {self.name} is known, "
                f"{has if rates else 'in any format; give'} {self._own_file(column)}"
            )
        return rates[dtype]

    def need(self, name: str) -> Any:
        """Return a figure, or say that it is missing.

        Parameters
        ----------
        name : str
            Field such as ``"hbm_bandwidth"``, [-]

        Returns
        -------
        object
            The figure in base units, [any]

        Raises
        ------
        ValueError
            If the table has no figure: none is made up.

        Examples
        --------
        >>> ACCELERATORS["h100-sxm-80gb"].need("scaleup_domain")
        8
        """
        value = getattr(self, name)
        if value is None or value == "":
            column = next((c for c, (own, _) in _UNITS.items() if own == name), name)
            raise ValueError(
                f"{name} of {self.name} is not known; {self._own_file(column)}"
            )
        return value

    def _own_file(self, column: str) -> str:
        """Say how a figure that the table lacks is given."""
        return (
            "give the figure in a cluster file (Cluster.from_file): accelerator = "
            f'{{like = "{self.id}", {column} = ..., source = "...", where = "...", '
            'accessed = "...", evidence = "..."}'
        )

    @property
    def memory(self) -> float:
        """Bytes a job can fill: the driver's figure, else the sold one, [byte]."""
        return float(
            self.need("hbm_bytes") if self.device_bytes is None else self.device_bytes
        )

    @property
    def ring_bandwidth(self) -> float:
        """Ring bandwidth inside a domain: measured, else 0.8 of nominal, [byte/s].

        Large messages reach about 80 % of the one-way rate: 78 % measured on A100, 82 %
        on H200.
        """
        if self.scaleup_measured is not None:
            return self.scaleup_measured
        return 0.8 * float(self.need("scaleup_bandwidth"))

    def _repr_html_(self) -> str:
        rows = [
            [f"dense {k} [TFLOP/s]", f"{v / TERA:g}"] for k, v in self.peaks.items()
        ]
        rows += [
            [f"best measured {k} product [TFLOP/s]", f"{v / TERA:g}"]
            for k, v in self.gemm_ceilings.items()
        ]
        for label, value, unit in (
            ("memory sold [GB]", self.hbm_bytes, GB),
            ("memory reported [GiB]", self.device_bytes, GIB),
            ("memory bandwidth [GB/s]", self.hbm_bandwidth, GB),
            ("scale-up, one way [GB/s]", self.scaleup_bandwidth, GB),
            ("scale-up all-reduce, measured [GB/s]", self.scaleup_measured, GB),
            ("scale-up domain [accelerators]", self.scaleup_domain, 1),
            ("scale-out, one way [GB/s]", self.scaleout_bandwidth, GB),
            ("power [W]", self.power, 1),
        ):
            rows.append(
                [label, "not known" if value is None else f"{value / unit:.4g}"]
            )
        if self.price:
            price = self.price
            rows.append(
                [
                    f"price {price.date} [USD/h]",
                    f"{price.low:g}, single quote"
                    if price.low == price.high
                    else f"{price.low:g} to {price.high:g}",
                ]
            )
        rows.append(["figures of one", self.per])
        rows.append(["source", f"{self.source}, {self.where}, {self.accessed}"])
        return html_table((self.name, "value"), rows)


_UNITS = {
    "hbm_gb": ("hbm_bytes", GB),
    "device_mib": ("device_bytes", MIB),
    "hbm_gbps": ("hbm_bandwidth", GB),
    "n_cores": ("n_cores", 1),
    "scaleup_gbps": ("scaleup_bandwidth", GB),
    "scaleup_measured_gbps": ("scaleup_measured", GB),
    "scaleup_domain": ("scaleup_domain", 1),
    "scaleout_gbps": ("scaleout_bandwidth", GB),
    "power_w": ("power", 1),
}


def accelerator_from(row: Mapping[str, Any]) -> Accelerator:
    """Build an accelerator from a row of a table or of a user's file.

    Parameters
    ----------
    row : mapping
        Columns of ``accelerators.csv``, units in their names; an empty cell means that
        the figure is not known. ``like`` names a row of the table whose figures hold
        where none is given; the source must be said all the same, [-]

    Returns
    -------
    Accelerator
        The chip, in base units, [-]

    Raises
    ------
    ValueError
        If a column is unknown or holds no figure, or the row does not say whether its
        rates are sparse and where they come from.
    """
    if not isinstance(row, Mapping):
        raise ValueError(
            f"accelerator={shown(row)}: write an id such as "
            'accelerator = "h100-sxm-80gb", or a table [accelerator] of your own'
        )
    cells = {k: v for k, v in row.items() if not (isinstance(v, str) and not v.strip())}
    if "like" in cells:
        rows = {r["id"]: r for r in read_rows("accelerators.csv")}
        base = rows[one_of("like", words("like", cells.pop("like")), rows)]
        inherited = {k: v for k, v in base.items() if k not in _OWN and v.strip()}
        cells = inherited | cells
    known = {
        *_UNITS, *_REQUIRED, *_WORDS, "per",
        "price_low_usd", "price_high_usd", "price_date", "price_source",
        *(f"{d}_tflops" for d in DTYPES), *(f"gemm_{d}_tflops" for d in DTYPES),
    }  # fmt: skip
    if unknown := sorted(set(cells) - known):
        raise ValueError(
            f"{', '.join(unknown)}: no such field of an accelerator; "
            f"known: {', '.join(sorted(known))}"
        )
    if missing := [name for name in _REQUIRED if name not in cells]:
        raise ValueError(
            f"accelerator {shown(cells.get('id', '?'))} does not say "
            f"{', '.join(missing)}; sparse = false marks dense rates, true the "
            "2:4-sparse ones of a headline"
        )
    said = {
        k: words(k, cells[k]).strip()
        for k in (*_REQUIRED, *_WORDS, "per")
        if k in cells
    }
    flag = one_of("sparse", said.pop("sparse").lower(), ("true", "false"))
    dense = 0.5 if flag == "true" else 1.0
    given: dict[str, Any] = dict(said)
    for column, (name, unit) in _UNITS.items():
        if column == "scaleout_gbps" and column in cells:
            given[name] = network_rate(cells[column])
        elif column in cells:
            value = number(column, cells[column])
            given[name] = whole(column, value) if unit == 1 else value * unit
    if "price_low_usd" in cells or "price_high_usd" in cells:
        low = cells.get("price_low_usd", cells.get("price_high_usd"))
        given["price"] = Price(
            low=number("price_low_usd", low),
            high=number("price_high_usd", cells.get("price_high_usd", low)),
            date=words("price_date", cells.get("price_date", "")),
            source=words("price_source", cells.get("price_source", cells["source"])),
        )
    peaks, ceilings = (
        {
            d: number(f"{pre}{d}_tflops", cells[f"{pre}{d}_tflops"]) * TERA * scale
            for d in DTYPES
            if f"{pre}{d}_tflops" in cells
        }
        for pre, scale in (("", dense), ("gemm_", 1.0))
    )
    return Accelerator(
        peaks=peaks, gemm_ceilings=ceilings, id=given.pop("id", ""), **given
    )


@cache
def _table() -> dict[str, Accelerator]:
    return {row["id"]: accelerator_from(row) for row in read_rows("accelerators.csv")}


class _Accelerators(Mapping[str, Accelerator]):
    """Accelerators by id; the file is read when the first one is asked for."""

    def __getitem__(self, key: str) -> Accelerator:
        if not isinstance(key, str) or key not in _table():
            raise ValueError(
                f"no accelerator {key!r}; known: {', '.join(_table())} "
                "(add a row to chinchilla_lab/data/accelerators.csv, "
                "or use Cluster.from_file)"
            )
        return _table()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(_table())

    def __len__(self) -> int:
        return len(_table())

    def __contains__(self, key: object) -> bool:
        return key in _table()


ACCELERATORS: Mapping[str, Accelerator] = _Accelerators()
"""Accelerators by id, for example ``ACCELERATORS["h100-sxm-80gb"]``."""


def find(accelerator: Accelerator | str) -> Accelerator:
    """Return the chip itself, by its key if need be.

    Parameters
    ----------
    accelerator : Accelerator or str
        The chip or its key, [-]

    Returns
    -------
    Accelerator
        The chip, [-]

    Raises
    ------
    ValueError
        If it is neither a chip nor a known key.
    """
    if isinstance(accelerator, str):
        return ACCELERATORS[accelerator]
    if not isinstance(accelerator, Accelerator):
        raise ValueError(
            f"accelerator={shown(accelerator)} is no accelerator; give one of "
            f"{', '.join(ACCELERATORS)}, or a chip of your own from accelerator_from"
        )
    return accelerator


def accelerator_table() -> str:
    """Return all accelerators as one HTML table.

    Returns
    -------
    str
        HTML with units in the header, [-]
    """
    rates, links = [], []
    for chip in ACCELERATORS.values():
        price = chip.price
        rates.append(
            [
                chip.name,
                *(
                    f"{chip.peaks[d] / TERA:g}" if d in chip.peaks else ""
                    for d in DTYPES
                ),
                _given(chip.gemm_ceilings.get("bf16"), TERA),
                f"{price.low:g}-{price.high:g} ({price.date})" if price else "",
            ]
        )
        links.append(
            [
                chip.name,
                _given(chip.hbm_bytes, GB),
                _given(chip.hbm_bandwidth, GB),
                _given(chip.scaleup_bandwidth, GB),
                _given(chip.scaleup_domain, 1),
                _given(chip.scaleout_bandwidth, GB),
            ]
        )
    return html_table(
        (
            "accelerator", "bf16 [TFLOP/s]", "fp8 [TFLOP/s]", "tf32 [TFLOP/s]",
            "best bf16 product [TFLOP/s]", "price [USD/h]",
        ),
        rates,
        "dense rates; empty where no source was found",
    ) + html_table(
        (
            "accelerator", "memory [GB]", "memory [GB/s]", "scale-up [GB/s]", "domain",
            "scale-out [GB/s]",
        ),
        links,
        "links one way, per accelerator",
    )  # fmt: skip


def _given(value: float | None, unit: float) -> str:
    return "" if value is None else f"{value / unit:g}"
