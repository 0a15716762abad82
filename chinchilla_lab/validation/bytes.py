"""Memory against measured rows, and figures that are formulas in their source too."""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from chinchilla_lab.checks import one_of
from chinchilla_lab.cluster.accelerators import ACCELERATORS
from chinchilla_lab.cluster.activations import activation_bytes, interleaving_factor
from chinchilla_lab.cluster.memory import memory, state_bytes
from chinchilla_lab.cluster.step import bubble_fraction, hardware_flops
from chinchilla_lab.shape.transformer import TransformerShape
from chinchilla_lab.units import GIB
from chinchilla_lab.validation.published import layout_of, published_rows, shape_of

__all__ = [
    "MEMORY_TABLES",
    "MemoryScore",
    "identities",
    "memory_score",
    "memory_verdict",
]

Array = NDArray[np.float64]
MEMORY_TABLES = ("bloom-memory", "simumax-memory", "nanotron-memory")
"""Tables of measured memory by name."""
MEMORY_GOAL = 0.07


@dataclass(frozen=True, kw_only=True)
class MemoryScore:
    """Predicted against measured memory, one offset fitted.

    Parameters
    ----------
    table : str
        Name of the table, [-]
    offset : float
        Median of measured less itemised bytes, [byte]
    errors : numpy.ndarray
        Predicted over measured, less one, of the rows that ran, [-]
    flagged : int
        Out-of-memory rows that the model flags, [-]
    out_of_memory : int
        Out-of-memory rows, [-]
    false_alarms : int
        Rows that ran and that the model flags, [-]
    """

    table: str
    offset: float
    errors: Array
    flagged: int
    out_of_memory: int
    false_alarms: int

    @property
    def mape(self) -> float:
        """Mean absolute error, [-]."""
        return float(np.abs(self.errors).mean())

    @property
    def largest(self) -> float:
        """Largest absolute error, [-]."""
        return float(np.abs(self.errors).max())


def memory_verdict(score: MemoryScore) -> str:
    """Say whether a table of memory meets the goal.

    Parameters
    ----------
    score : MemoryScore
        The score, [-]

    Returns
    -------
    str
        ``"met"`` if the mean error is within 7 %, every row that ran out of memory is
        flagged and none that ran; otherwise ``"missed"``, [-]

    Examples
    --------
    >>> memory_verdict(memory_score("bloom-memory"))
    'missed'
    """
    within = score.mape <= MEMORY_GOAL
    told = score.flagged == score.out_of_memory and not score.false_alarms
    return "met" if within and told else "missed"


@cache
def memory_score(table: str = "bloom-memory") -> MemoryScore:
    """Compare the itemised memory with measured rows.

    Parameters
    ----------
    table : str, optional
        One of ``MEMORY_TABLES``, [-]

    Returns
    -------
    MemoryScore
        Errors and alarms, [-]

    Raises
    ------
    ValueError
        If there is no such table.

    References
    ----------
    :cite:`bloom`, columns of memory; :cite:`simumax`, allocated memory;
    :cite:`nanotron`, benchmark summary
    """
    one_of("table", table, MEMORY_TABLES)
    rows = [
        r for r in published_rows("published_runs_memory.csv") if r["table"] == table
    ]
    said = np.array(
        [
            memory(
                shape_of(r),
                layout_of(r),
                int(r["seq_len"]),
                recipe=r["recipe"],
                attention="fused" if r["attention"] == "fused" else "unfused",
                dropout=r["attention"] != "fused",
                head_counted=r["head_counted"] == "1",
                stage="first" if r["stage"] == "first" else "fullest",
            ).total
            for r in rows
        ]
    )
    ran = np.array([r["out_of_memory"] == "0" for r in rows])
    true = np.array([float(r["memory_gib"] or "nan") * GIB for r in rows])
    offset = float(np.median((true - said)[ran]))
    room = np.array([ACCELERATORS[r["accelerator"]].memory for r in rows])
    full = said + offset > room
    return MemoryScore(
        table=table,
        offset=offset,
        errors=((said + offset) / true - 1.0)[ran],
        flagged=int((full & ~ran).sum()),
        out_of_memory=int((~ran).sum()),
        false_alarms=int((full & ran).sum()),
    )


def _gpt(layers: int, width: int, heads: int) -> TransformerShape:
    return TransformerShape(
        n_layers=layers, d_model=width, d_ff=4 * width, n_heads=heads, vocab_size=51200,
        gated=False, tied=True,
    )  # fmt: skip


def identities() -> tuple[tuple[str, float, float], ...]:
    """Figures that are formulas in their source too: name, computed, published.

    Returns
    -------
    tuple
        Rows, in the unit of the name, [any]

    References
    ----------
    :cite:`korthikanti2022reducing`, Figure 1; :cite:`narayanan2021efficient`
    """
    models = {
        "22B": (_gpt(48, 6144, 64), 4, 1, 1, 59.25, 9.5625),
        "175B": (_gpt(96, 12288, 96), 1, 8, 3, 66.84375, 12.3515625),
        "530B": (_gpt(105, 20480, 128), 1, 35, 3, 114.0234375, 23.076171875),
        "1T": (_gpt(128, 25600, 160), 1, 64, 1, 131.25, 26.5625),
    }
    found = []
    for name, (shape, b, p, v, plain, lean) in models.items():
        for label, sp, again, published in (
            ("", False, "none", plain),
            (" lean", True, "selective", lean),
        ):
            layer = activation_bytes(
                shape, 2048, b, tp=8, sequence_parallel=sp, recompute=again
            )
            value = layer * shape.n_layers * interleaving_factor(p, v) / GIB
            found.append((f"activations {name}{label} [GiB]", value, published))
    for name, stages, published in (("22B", 1, 45.5625), ("530B", 35, 31.640625)):
        shape = models[name][0]
        n = 12 * shape.n_layers * shape.d_model**2 / (8 * stages)
        states = state_bytes(n, "mixed-adam-fp32grad").total / GIB
        found.append((f"states {name} [GiB]", states, published))
    found.append(("bubble 1T", bubble_fraction(64, 512), 63 / 512))
    found.append(("bubble 530B", bubble_fraction(35, 280, 3), 34 / 840))
    gpt, s = _gpt(96, 12288, 96), 2048
    formula = 96 * s * 96 * 12288**2 * (1 + s / (6 * 12288) + 51200 / (16 * 96 * 12288))
    found.append(("FLOP of a sequence", hardware_flops(gpt, s, "full") * s, formula))
    return tuple(found)
