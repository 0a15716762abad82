"""Plans and runs side by side, and written to files."""

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from chinchilla_lab.allocation.optimum import compute_optimal
from chinchilla_lab.allocation.price import efficiency
from chinchilla_lab.allocation.solving import needs_loss
from chinchilla_lab.checks import one_of, positive
from chinchilla_lab.laws.families import LossLaw
from chinchilla_lab.planning.doubt import intervals
from chinchilla_lab.planning.losses import silent
from chinchilla_lab.planning.problem import OBJECTIVES
from chinchilla_lab.planning.results import Plan
from chinchilla_lab.planning.sensitivity import sensitivity
from chinchilla_lab.tables import Cells, Shown, markdown_table, plain, quantile_of
from chinchilla_lab.units import FLOP_PER_ND, text

__all__ = ["FORMATS", "Comparison", "compare", "compare_runs", "export"]

FORMATS = ("csv", "json", "md")
SAME_COMPUTE = 0.05
# how a record is written for people: head and unit; the rest goes by its ending
HEADS = {
    "N": ("N", "parameter"), "D": ("D", "token"), "C_flop": ("C = 6ND", "FLOP"),
    "loss_nats": ("loss", "nats/token"),
    "tokens_per_param": ("D/N", "token/parameter"),
    "optimal_N": ("optimal N", "parameter"), "optimal_D": ("optimal D", "token"),
    "optimal_loss_nats": ("optimal loss", "nats/token"),
    "n_accelerators": ("accelerators", ""), "n_layers": ("layers", ""),
    "d_model": ("width", ""), "d_ff": ("MLP width", ""), "n_heads": ("heads", ""),
    "batch_tokens": ("batch", "token"), "inference_tokens": ("served", "token"),
    "memory_gb": ("memory", "GB"), "days": ("time", "day"),
    "accelerator_hours": ("accelerator-hours", "h"),
    "usd_low": ("cost, lowest price", "USD"),
    "usd_high": ("cost, highest price", "USD"),
    "serving_usd": ("serving", "USD"), "lifetime_usd": ("training and serving", "USD"),
    "price_date": ("price of", ""), "utilisation_6nd": ("6ND over the peak", "%"),
    "energy_mwh": ("energy at rated power", "MWh"), "power_mw": ("rated power", "MW"),
    "pue": ("PUE", ""), "goodput": ("time kept by failures", "%"),
    "efficiency": ("efficiency", "%"), "usd": ("cost", "USD"),
    "chance_deadline": ("chance of the deadline", "%"),
    "chance_budget": ("chance of the budget", "%"),
}  # fmt: skip
QUANTITIES = ("parameter", "token", "FLOP", "USD")


@dataclass(frozen=True, kw_only=True)
class Comparison(Shown):
    """Records side by side: one a plan, the same columns for all.

    Parameters
    ----------
    records : tuple of dict
        Values by name, units in the names, [any]
    """

    records: tuple[dict[str, Any], ...]

    @property
    def same_compute(self) -> bool:
        """Whether all lie within 5 % of each other's compute, [-]."""
        C = np.array([r["C_flop"] for r in self.records], dtype=np.float64)
        return bool(C.max() <= C.min() * (1.0 + SAME_COMPUTE))

    @property
    def compute_ratio(self) -> float:
        """Largest compute over smallest, [-]."""
        C = np.array([r["C_flop"] for r in self.records], dtype=np.float64)
        return float(C.max() / C.min())

    def _names(self) -> list[str]:
        """Columns of all records: one may know what another does not."""
        return list(dict.fromkeys(name for r in self.records for name in r))

    def to_json(self) -> str:
        """Return the records as JSON; what is not known is null."""
        rows = [{k: plain(v) for k, v in r.items()} for r in self.records]
        return json.dumps(rows, indent=1) + "\n"

    def to_csv(self) -> str:
        """Return the records as CSV; what is not known is an empty cell."""
        out = io.StringIO()
        names = self._names()
        writer = csv.DictWriter(out, names, lineterminator="\n")
        writer.writeheader()
        for r in self.records:
            row = {k: plain(r.get(k)) for k in names}
            writer.writerow({k: "" if v is None else v for k, v in row.items()})
        return out.getvalue()

    def to_markdown(self) -> str:
        """Return the records as a Markdown table, one column a plan, for people."""
        cells = self._cells(fold=False)
        return markdown_table(cells.header, cells.rows)

    def _cells(self, fold: bool = True) -> Cells:
        heads = [str(r.get("label", i + 1)) for i, r in enumerate(self.records)]
        rows, same = [], []
        for name in self._names():
            cells = [_shown(_unit(name, r), r.get(name)) for r in self.records]
            if name == "label" or not any(cells):
                continue  # what no plan knows needs no row
            head = _head(name, self.records)
            if fold and len(cells) > 1 and len(set(cells)) == 1:
                same.append(f"{head} {cells[0]}")
            else:
                rows.append([head, *cells])
        word = (
            "the same compute within 5 %"
            if self.same_compute
            else f"compute differs by a factor of {self.compute_ratio:.2f}"
        )
        if same:
            word += f"; the same for all: {', '.join(same)}"
        return Cells(("", *heads), rows, word if len(self.records) > 1 else "")


def _unit(name: str, record: dict[str, Any]) -> str:
    if name == "score":
        return OBJECTIVES[str(record["objective"])]
    return HEADS.get(quantile_of(name)[0], ("", ""))[1]


def _head(name: str, records: Sequence[dict[str, Any]]) -> str:
    stem, end = quantile_of(name)
    word, unit = HEADS.get(stem, (stem.replace("_", " "), ""))
    if name == "score":
        asked = {str(r["objective"]) for r in records if name in r}
        word, unit = "what was asked for", ""  # each plan in a unit of its own
        if len(asked) == 1:
            word, unit = f"objective: {asked.pop()}", _unit(name, records[0])
    if end:
        word += f", {float(end):g} % point"
    return f"{word} [{unit}]" if unit else word


def _shown(unit: str, value: Any) -> str:
    if value is None or plain(value) is None:
        return ""
    if isinstance(value, float | np.floating | int) and not isinstance(value, bool):
        if unit in QUANTITIES:
            return text(float(value), unit, 4).removesuffix(" FLOP")
        if unit == "%":
            return f"{100.0 * float(value):.1f}"
        return f"{value:,.5g}" if abs(float(value)) < 1e5 else f"{value:,.0f}"
    return str(value)


def compare(
    plans: Sequence[Plan],
    labels: Sequence[str] = (),
    level: float | None = 0.9,
    limits: bool = False,
) -> Comparison:
    """Set plans side by side.

    Parameters
    ----------
    plans : sequence of Plan
        The plans, [-]
    labels : sequence of str, optional
        What to call them, [-]
    level : float, optional
        Coverage of the intervals that go with them; None for none, [-]
    limits : bool, optional
        Look for the limit that binds each, up to a second a plan; otherwise it stands
        there where :func:`~chinchilla_lab.planning.sensitivity` was asked before, [-]

    Returns
    -------
    Comparison
        Table, CSV, JSON and Markdown of them, [-]

    Raises
    ------
    ValueError
        If there is no plan, or not one label for each.

    Examples
    --------
    >>> from chinchilla_lab.cluster import Cluster
    >>> from chinchilla_lab.planning.plans import plan
    >>> loft = Cluster(accelerator="h100-sxm-80gb", n_accelerators=64)
    >>> both = compare([plan(loft, deadline=d * 86400) for d in (15, 30)])
    >>> both.same_compute
    False
    """
    if not plans:
        raise ValueError("plans is empty; give at least one")
    if labels and len(labels) != len(plans):
        raise ValueError(f"labels has {len(labels)} entries for {len(plans)} plans")
    records = []
    for i, one in enumerate(plans):
        if limits:
            sensitivity(one)
        record = {"label": labels[i] if labels else f"plan {i + 1}", **one.record()}
        if level is not None:
            doubt = intervals(one, level)
            for name in ("N", "D", "days", "dollars", "loss"):
                low, high = getattr(doubt, name)
                word = {"dollars": "usd", "loss": "loss_nats"}.get(name, name)
                record[f"{word}_p{50 * (1 - level):g}"] = low
                record[f"{word}_p{50 * (1 + level):g}"] = high
            for name in ("deadline", "budget"):
                chance = getattr(doubt, f"meets_{name}")
                record[f"chance_{name}"] = None if np.isnan(chance) else chance
        records.append(record)
    return Comparison(records=tuple(records))


def compare_runs(law: LossLaw, runs: Sequence[tuple[float, float]]) -> Comparison:
    """Set runs side by side that are no more than a size and a number of tokens.

    Parameters
    ----------
    law : LossLaw
        Law of the loss, [-]
    runs : sequence of tuple
        N and D of each, [parameter, token]

    Returns
    -------
    Comparison
        Compute, loss, and what the law would do with the same compute, [-]

    Examples
    --------
    >>> from chinchilla_lab.laws import BESIROGLU_2024
    >>> both = compare_runs(BESIROGLU_2024, [(175e9, 300e9), (70e9, 1.4e12)])
    >>> both.same_compute, f"{both.compute_ratio:.2f}"
    (False, '1.87')
    """
    if not runs:
        raise ValueError("runs is empty; give at least one pair of N and D")
    with_loss = needs_loss(law, "comparison")
    records = []
    for N, D in runs:
        n, d = float(positive("N", N)), float(positive("D", D))
        C = FLOP_PER_ND * n * d
        best = compute_optimal(silent(with_loss), C)
        records.append(
            {
                "label": f"{n:.3g} x {d:.3g}",
                "law": law.label,
                "N": n,
                "D": d,
                "C_flop": C,
                "tokens_per_param": d / n,
                "loss_nats": float(with_loss.loss(n, d)),
                "efficiency": float(efficiency(silent(with_loss), n, d)),
                "optimal_N": float(best.N),
                "optimal_D": float(best.D),
                "optimal_loss_nats": float(best.L) if best.L is not None else None,
            }
        )
    return Comparison(records=tuple(records))


def export(plans: Plan | Sequence[Plan], path: str | Path) -> None:
    """Write plans to a file whose ending says how: csv, json or md.

    Parameters
    ----------
    plans : Plan or sequence of Plan
        The plans, [-]
    path : str or Path
        File, [-]

    Raises
    ------
    ValueError
        If the ending is none of these.
    """
    file = Path(path)
    kind = one_of("path ending", file.suffix.removeprefix("."), FORMATS)
    found = compare([plans] if isinstance(plans, Plan) else plans)
    writer = {
        "csv": found.to_csv, "json": found.to_json, "md": found.to_markdown
    }[kind]  # fmt: skip
    file.write_text(writer(), encoding="utf-8")
