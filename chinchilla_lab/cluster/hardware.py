"""Clusters of accelerators, and what a rate is of their peak."""

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from chinchilla_lab.checks import non_negative, scalar, whole
from chinchilla_lab.cluster.accelerators import Accelerator, accelerator_from, find
from chinchilla_lab.cluster.fields import network_rate, number, shown
from chinchilla_lab.tables import html_table
from chinchilla_lab.units import GB, text

__all__ = ["Cluster", "mfu", "ridge_point"]


_LEAST_NETWORK = 1e6  # [byte/s]; below it somebody wrote 400 for 400 Gb/s


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """Accelerators of one kind and the network between them.

    Parameters
    ----------
    accelerator : Accelerator or str
        The chip, or its key in :data:`ACCELERATORS`, [-]
    n_accelerators : int
        How many work on the job, [-]
    domain : int, optional
        Accelerators joined by the fast link; by default as the chip's table says, [-]
    scaleout_bandwidth : float, optional
        Network per accelerator, one way, nominal; by default the typical figure of the
        chip's table, [byte/s]
    latency : float, optional
        Time of one round of a collective without bytes; a collective over g
        accelerators takes the logarithm of g to the base 2 of them, rounded up, [s]

    Raises
    ------
    ValueError
        If the chip is not known, a count is not positive, or the network is so slow
        that its unit must be another one.

    Notes
    -----
    All network cards of a node work at once, so what crosses between nodes is divided
    by the bandwidth of all its accelerators together. The network is taken to be free
    of contention; a measured bandwidth belongs in ``scaleout_bandwidth``.

    Examples
    --------
    >>> loft = Cluster(accelerator="h100-sxm-80gb", n_accelerators=64)
    >>> loft.n_domains, loft.network / 1e9
    (8, 50.0)
    """

    accelerator: Accelerator | str
    n_accelerators: int
    domain: int | None = None
    scaleout_bandwidth: float | None = None
    latency: float = 15e-6

    def __post_init__(self) -> None:
        object.__setattr__(self, "accelerator", find(self.accelerator))
        for name in ("n_accelerators", "domain"):
            if name != "domain" or self.domain is not None:
                object.__setattr__(self, name, whole(name, getattr(self, name)))
        if self.scaleout_bandwidth is not None:
            rate = scalar("scaleout_bandwidth", self.scaleout_bandwidth)
            if rate < _LEAST_NETWORK:
                raise ValueError(
                    f"scaleout_bandwidth={rate:g} counts byte/s; for {rate:g} Gb/s "
                    f"write {rate:g}e9 / 8, for {rate:g} GB/s write {rate:g}e9"
                )
            object.__setattr__(self, "scaleout_bandwidth", rate)
        object.__setattr__(
            self, "latency", scalar("latency", self.latency, non_negative)
        )

    @property
    def chip(self) -> Accelerator:
        """The accelerator, [-]."""
        assert isinstance(self.accelerator, Accelerator)  # set after construction
        return self.accelerator

    @property
    def domain_size(self) -> int:
        """Accelerators that the fast link joins, at most all of them, [-]."""
        size = self.chip.need("scaleup_domain") if self.domain is None else self.domain
        return min(int(size), self.n_accelerators)

    @property
    def n_domains(self) -> int:
        """Domains (nodes), the last one perhaps not full, [-]."""
        return -(-self.n_accelerators // self.domain_size)

    @property
    def network(self) -> float:
        """Network per accelerator, one way, nominal, [byte/s]."""
        own = self.scaleout_bandwidth
        return float(self.chip.need("scaleout_bandwidth") if own is None else own)

    @classmethod
    def from_file(cls, path: str | Path) -> "Cluster":
        """Read a cluster from a TOML or JSON file.

        Parameters
        ----------
        path : str or pathlib.Path
            File with ``n_accelerators`` and ``accelerator``: an id, or a table with
            the columns of ``accelerators.csv``, or with ``like = "an id"``, what is
            different, and its source; optional ``domain``,
            ``scaleout_gbps`` (GB/s, bytes, per accelerator and one way; or words such
            as ``"400 Gb/s"``) and ``latency_us``, [-]

        Returns
        -------
        Cluster
            The machine, [-]

        Raises
        ------
        ValueError
            If the file is no TOML or JSON, a field is unknown or holds no figure, or a
            required one is missing.
        """
        place = Path(path)
        try:
            written = place.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError:
            raise ValueError(f"{place.name} is no text in UTF-8") from None
        try:
            return cls.from_text(written, json_format=place.suffix.lower() == ".json")
        except ValueError as fault:
            raise ValueError(f"{place.name}: {fault}") from None

    @classmethod
    def from_text(cls, written: str, json_format: bool = False) -> "Cluster":
        """Read a cluster from the text of such a file.

        Parameters
        ----------
        written : str
            TOML, or JSON, [-]
        json_format : bool, optional
            The text is JSON, [-]

        Returns
        -------
        Cluster
            The machine, [-]

        Raises
        ------
        ValueError
            If the text is no TOML or JSON, a field is unknown or holds no figure, or a
            required one is missing.

        Examples
        --------
        >>> Cluster.from_text('''n_accelerators = 16
        ... accelerator = "a100-sxm-80gb"
        ... scaleout_gbps = 6.25''').network
        6250000000.0
        """
        kind = "JSON" if json_format else "TOML"
        try:
            given = json.loads(written) if json_format else tomllib.loads(written)
        except (ValueError, RecursionError) as fault:
            raise ValueError(f"this is no {kind}: {fault}") from None
        if not isinstance(given, dict):
            raise ValueError(
                f"{shown(given)} is no table of fields; write "
                '{"accelerator": "h100-sxm-80gb", "n_accelerators": 64}'
            )
        known = {
            "accelerator", "n_accelerators", "domain", "scaleout_gbps", "latency_us"
        }  # fmt: skip
        if unknown := sorted(set(given) - known):
            raise ValueError(
                f"{shown(', '.join(unknown))[1:-1]}: no such field of a cluster; "
                f"known: {', '.join(sorted(known))}"
            )
        for name in ("accelerator", "n_accelerators"):
            if name not in given:
                raise ValueError(f"{name} is missing; write {name} = ...")
        chip = given["accelerator"]
        more: dict[str, Any] = {}
        if "domain" in given:
            more["domain"] = given["domain"]
        if "scaleout_gbps" in given:
            more["scaleout_bandwidth"] = network_rate(given["scaleout_gbps"])
        if "latency_us" in given:
            more["latency"] = _microseconds(given["latency_us"])
        return cls(
            accelerator=chip if isinstance(chip, str) else accelerator_from(chip),
            n_accelerators=given["n_accelerators"],
            **more,
        )

    def _repr_html_(self) -> str:
        rows = [
            ["accelerators", f"{self.n_accelerators:,} x {self.chip.name}"],
            ["domains", f"{self.n_domains:,} of {self.domain_size}"],
            ["ring inside a domain [GB/s]", f"{self.chip.ring_bandwidth / GB:.4g}"],
            ["network per accelerator [GB/s]", f"{self.network / GB:.4g}"],
            ["latency of a step [s]", f"{self.latency:g}"],
        ]
        return html_table(("cluster", "value"), rows)


def _microseconds(written: Any) -> float:
    """Read a latency; none at all is allowed, as in an ideal network."""
    if not isinstance(written, bool) and written == 0:
        return 0.0
    return number("latency_us", written) * 1e-6


def mfu(
    achieved: float, accelerator: Accelerator | str | float, dtype: str = "bf16"
) -> float:
    r"""Share of the dense peak that model FLOP reach.

    .. math:: \frac{\text{model FLOP/s per accelerator}}{\text{dense peak}}

    Parameters
    ----------
    achieved : float
        Model FLOP per second and accelerator, without recomputation, [FLOP/s]
    accelerator : Accelerator or str or float
        The chip, its key, or a dense peak of your own [FLOP/s], [-]
    dtype : {"bf16", "fp8", "tf32"}, optional
        Format of the matrix products, [-]

    Returns
    -------
    float
        MFU, above 0 and at most 1, [-]

    Raises
    ------
    ValueError
        If the result is above 1; the message names the peak that was used.

    Examples
    --------
    >>> f"{mfu(480e12, 'h100-sxm-80gb'):.3f}"
    '0.485'
    """
    rate = scalar("achieved", achieved)
    if isinstance(accelerator, int | float | np.number | np.ndarray):
        peak, of = scalar("accelerator", accelerator), "the peak given"
    else:
        chip = find(accelerator)
        peak, of = chip.peak(dtype), f"the dense {dtype} peak of {chip.name}"
    if rate > peak:
        raise ValueError(
            f"achieved={text(rate, 'FLOP/s')} is {rate / peak:.0%} of {of}, "
            f"{text(peak, 'FLOP/s')}: no share of a peak exceeds 100 %. Check chip and "
            f"dtype, that recomputation is left out, and that the rate is that of one "
            "accelerator; a share taken of the 2:4-sparse headline is half as large"
        )
    return rate / peak


def ridge_point(accelerator: Accelerator | str, dtype: str = "bf16") -> float:
    r"""FLOP per byte above which the peak binds, not the memory bandwidth.

    .. math:: I^* = \frac{\text{peak}}{W_\text{HBM}}

    Parameters
    ----------
    accelerator : Accelerator or str
        The chip or its key, [-]
    dtype : {"bf16", "fp8", "tf32"}, optional
        Format of the matrix products, [-]

    Returns
    -------
    float
        Arithmetic intensity, [FLOP/byte]

    Examples
    --------
    >>> round(ridge_point("h100-sxm-80gb"))
    295
    """
    chip = find(accelerator)
    return chip.peak(dtype) / float(chip.need("hbm_bandwidth"))
