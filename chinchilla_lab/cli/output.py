"""Records on the screen, as JSON or as CSV."""

import csv
import io
import json
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from chinchilla_lab.units import text

__all__: list[str] = []

Record = dict[str, Any]

# how a column is written: its unit, or the digits of a plain number
UNITS = {
    "N": "parameter", "D": "token", "C_flop": "FLOP", "N_low": "parameter",
    "N_high": "parameter", "D_low": "token", "D_high": "token",
    "optimal_N": "parameter", "optimal_D": "token", "batch_tokens": "token",
    "unique_tokens": "token", "inference_tokens": "token", "effective_tokens": "token",
    "usd": "USD", "usd_low": "USD", "usd_high": "USD", "peak_flop_per_s": "FLOP/s",
    "achieved_flop_per_s": "FLOP/s", "usd_p5": "USD", "usd_p95": "USD",
    "N_p5": "parameter", "N_p95": "parameter", "D_p5": "token", "D_p95": "token",
    "total_params": "parameter", "active_params": "parameter",
}  # fmt: skip
HEADS = {
    "N": "N [parameter]", "D": "D [token]", "C_flop": "C [FLOP]",
    "loss_nats": "loss [nats/token]", "tokens_per_param": "D/N [token/parameter]",
    "days": "time [day]", "accelerator_hours": "accelerator-hours [h]",
    "mfu": "MFU [-]", "seconds": "time [s]", "step_s": "step [s]",
    "flop_per_token": "training FLOP [FLOP/token]", "usd_low": "from [USD]",
    "usd_high": "to [USD]", "usd": "worth [USD]",
    "one_more": "one more is worth", "saved_percent": "10 % more saves [%]",
}  # fmt: skip
ENDINGS = {
    "_gib": "GiB", "_gb": "GB", "_gbps": "GB/s", "_tflops": "TFLOP/s",
    "_flop_per_s": "FLOP/s", "_flop_per_byte": "FLOP/byte", "_percent": "%",
    "_nats": "nats/token",
}  # fmt: skip
SHARES = ("mfu", "share", "utilisation", "efficiency", "goodput", "error")


def plain(value: Any) -> Any:
    """Return a value that JSON can hold; what is not a finite number is null."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value


def cell(name: str, value: Any) -> str:
    """Write a value for people."""
    value = plain(value)
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name in UNITS:
        return text(float(value), UNITS[name], 4)
    if isinstance(value, float):
        if name.startswith(SHARES):
            return f"{value:.1%}"
        return text(value, "", 5)
    if isinstance(value, int):
        return f"{value:,}"
    return str(value)


def _head(name: str) -> str:
    """Write a column's name with its unit."""
    if name in HEADS:
        return HEADS[name]
    for ending, unit in ENDINGS.items():
        if name.endswith(ending):
            return f"{name.removesuffix(ending).replace('_', ' ')} [{unit}]"
    return name.replace("_", " ")


def emit(
    records: Sequence[Record],
    title: str,
    as_json: bool,
    as_csv: bool,
    tall: bool = False,
) -> None:
    """Print records: a table, or all digits for other programs."""
    if as_json and as_csv:
        raise ValueError("give --json or --csv, not both")
    rows = [{k: plain(v) for k, v in r.items()} for r in records]
    if as_json:
        sys.stdout.write(json.dumps(rows, indent=1) + "\n")
        return
    if as_csv:
        out = io.StringIO()
        writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        sys.stdout.write(out.getvalue())
        return
    console = Console(file=sys.stdout, width=None if sys.stdout.isatty() else 200)
    table = Table(title=escape(title), title_justify="left", show_lines=False)
    if tall and len(rows) == 1:
        table.add_column("quantity")
        table.add_column("value")
        for name, value in rows[0].items():
            if value is not None and value != "":
                table.add_row(escape(_head(name)), escape(cell(name, value)))
    else:
        used = [k for k in rows[0] if any(r.get(k) not in (None, "") for r in rows)]
        for name in used:
            words = all(isinstance(r.get(name), str) for r in rows)
            table.add_column(
                escape(_head(name)),
                justify="left" if words else "right",
            )
        for r in rows:
            table.add_row(*(escape(cell(name, r.get(name))) for name in used))
    console.print(table)


def note(words: str) -> None:
    """Say something beside the answer, on one line of the error stream."""
    sys.stderr.write(f"note: {' '.join(words.split())}\n")
