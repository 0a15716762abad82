"""What others measured of links and of whole runs, as facts with their source."""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from chinchilla_lab.checks import one_of
from chinchilla_lab.cluster.cost import PublishedHours, published_hours
from chinchilla_lab.sources import read_rows
from chinchilla_lab.tables import html_table
from chinchilla_lab.units import GB, text

__all__ = [
    "AllReduceRates",
    "all_reduce_rates",
    "all_reduce_systems",
    "whole_run_table",
    "whole_runs",
]

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class AllReduceRates:
    """A measured all-reduce over a range of sizes.

    Parameters
    ----------
    system : str
        Machine, [-]
    accelerator : str
        Key of the chip, [-]
    ranks : int
        Ranks, [-]
    nodes : int
        Nodes, [-]
    size : numpy.ndarray
        Bytes of the array, [byte]
    busbw : numpy.ndarray
        Bus bandwidth, [byte/s]
    """

    system: str
    accelerator: str
    ranks: int
    nodes: int
    size: Array
    busbw: Array

    @property
    def seconds(self) -> Array:
        """Times behind the bus bandwidth, [s]."""
        passes = 2.0 * (self.ranks - 1) / self.ranks
        return self.size * passes / self.busbw


@cache
def _rates() -> dict[str, AllReduceRates]:
    groups: dict[str, list[dict[str, str]]] = {}
    for row in read_rows("collectives.csv"):
        groups.setdefault(row["system"], []).append(row)
    return {
        system: AllReduceRates(
            system=system,
            accelerator=rows[0]["accelerator"],
            ranks=int(rows[0]["ranks"]),
            nodes=int(rows[0]["nodes"]),
            size=np.array([float(r["bytes"]) for r in rows]),
            busbw=np.array([float(r["busbw_gbps"]) * GB for r in rows]),
        )
        for system, rows in groups.items()
    }


def all_reduce_systems() -> tuple[str, ...]:
    """Return the names of the machines whose all-reduce was measured.

    Returns
    -------
    tuple of str
        Names for :func:`all_reduce_rates`, [-]

    Examples
    --------
    >>> all_reduce_systems()
    ('8 H200', '8 B200', '32 B200', '8 A100')
    """
    return tuple(_rates())


def all_reduce_rates(system: str) -> AllReduceRates:
    """Return measured rates of an all-reduce.

    Parameters
    ----------
    system : str
        One of :func:`all_reduce_systems`, [-]

    Returns
    -------
    AllReduceRates
        Sizes and rates, [byte/s]

    Raises
    ------
    ValueError
        If that machine was not measured.

    References
    ----------
    :cite:`nccl`, all-reduce benchmarks

    Examples
    --------
    >>> rates = all_reduce_rates("8 A100")
    >>> len(rates.size), f"{rates.busbw.max() / 1e9:.0f} GB/s"
    (13, '235 GB/s')
    """
    one_of("system", system, all_reduce_systems())
    return _rates()[system]


@cache
def whole_runs() -> tuple[PublishedHours, ...]:
    """Return the runs with published accelerator-hours on a chip that is known.

    Returns
    -------
    tuple of PublishedHours
        Runs, [-]

    References
    ----------
    :cite:`metahours`, model cards

    Examples
    --------
    >>> f"{max(run.mfu for run in whole_runs()):.3f}"
    '0.429'
    """
    return tuple(run for run in published_hours().values() if run.accelerator)


def whole_run_table() -> str:
    """Return the utilisation of whole runs as the table of the book.

    Returns
    -------
    str
        HTML, [-]
    """
    rows = [
        [
            run.model,
            text(run.N_active, "parameter"),
            text(run.D_tokens, "token"),
            run.accelerator.split("-")[0].upper(),
            run.dtype,
            f"{run.hours / 1e6:.3g}",
            f"{100 * run.mfu:.1f}",
        ]
        for run in whole_runs()
    ]
    head = (
        "model", "N", "D", "chip", "peak of", "accelerator-hours [million h]",
        "6ND over the peak [%]",
    )  # fmt: skip
    return html_table(head, rows, "whole runs, stops and restarts included")
