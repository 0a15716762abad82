"""Records on the screen, as JSON or as CSV."""

import csv
import io
import json
import os
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

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
    "tokens_per_day": "token", "break_even_tokens_low": "token",
    "break_even_tokens_high": "token", "usd_per_million_low": "USD",
    "usd_per_million_high": "USD", "usd_a_day_low": "USD", "usd_a_day_high": "USD",
    "usd_gain_low": "USD", "usd_gain_high": "USD",
}  # fmt: skip
HEADS = {
    "N": "N [parameter]", "D": "D [token]", "C_flop": "C [FLOP]",
    "loss_nats": "loss [nats/token]", "tokens_per_param": "D/N [token/parameter]",
    "days": "time [day]", "accelerator_hours": "accelerator-hours [h]",
    "mfu": "MFU [-]", "seconds": "time [s]", "step_s": "step [s]",
    "flop_per_token": "training FLOP [FLOP/token]", "usd_low": "from [USD]",
    "usd_high": "to [USD]", "usd": "worth [USD]",
    "one_more": "one more is worth", "saved_percent": "10 % more saves [%]",
    "N_low": "N from [parameter]", "N_high": "N to [parameter]",
    "D_low": "D from [token]", "D_high": "D to [token]",
    "optimal_N": "best N [parameter]", "optimal_D": "best D [token]",
    "batch_tokens": "batch [token]", "unique_tokens": "unique [token]",
    "inference_tokens": "to serve [token]", "effective_tokens": "worth [token]",
    "total_params": "all [parameter]", "active_params": "active [parameter]",
    "tokens_per_second": "speed [token/s]", "tokens_per_day": "demand [token/day]",
    "answer_tokens_per_second": "answers [token/s]",
    "prefill_ms": "prompts of a batch [ms]", "token_ms": "token of each answer [ms]",
    "usd_per_million_low": "million tokens from [USD]",
    "usd_per_million_high": "to [USD]", "usd_a_day_low": "a day from [USD]",
    "usd_a_day_high": "to [USD]", "usd_gain_low": "gain at best [USD/million]",
    "usd_gain_high": "at worst [USD/million]",
    "break_even_tokens_low": "repaid at best [token]",
    "break_even_tokens_high": "at worst [token]",
    "break_even_days_low": "repaid at best [day]",
    "break_even_days_high": "at worst [day]",
    "milliseconds": "time [ms]", "recipe_weights": "recipe weights [byte/parameter]",
    "recipe_gradients": "recipe gradients [byte/parameter]",
    "recipe_optimizer": "recipe optimizer [byte/parameter]",
    "recipe_bytes": "recipe total [byte/parameter]",
}  # fmt: skip
ENDINGS = {
    "_gib": "GiB", "_gb": "GB", "_gbps": "GB/s", "_tflops": "TFLOP/s",
    "_flop_per_s": "FLOP/s", "_flop_per_byte": "FLOP/byte", "_percent": "%",
    "_nats": "nats/token",
}  # fmt: skip
FEW = 4  # records that stand side by side where a table is too wide for the screen
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
        # the unit stands in the head
        return text(float(value), UNITS[name], 4).removesuffix(" FLOP")
    if isinstance(value, float):
        if name.startswith(SHARES):
            return f"{value:.1%}"
        return text(value, "", 5)
    if isinstance(value, int):
        return f"{value:,}"
    return str(value)


def head(name: str) -> str:
    """Write a column's name with its unit."""
    if name in HEADS:
        return HEADS[name]
    for ending, unit in ENDINGS.items():
        if name.endswith(ending):
            return f"{name.removesuffix(ending).replace('_', ' ')} [{unit}]"
    return name.replace("_", " ")


def _columns(rows: Sequence[Record]) -> list[str]:
    """Return the names of all columns, in the order in which they appear."""
    return list(dict.fromkeys(name for row in rows for name in row))


def emit(
    records: Sequence[Record],
    title: str,
    as_json: bool,
    as_csv: bool,
    tall: bool = False,
) -> None:
    """Print records: a table, or all digits for other programs.

    A tall table has one row for each quantity and one column for each record.
    """
    rows = [{k: plain(v) for k, v in r.items()} for r in records]
    if as_json:
        sys.stdout.write(json.dumps(rows, indent=1) + "\n")
        return
    if as_csv:
        out = io.StringIO()
        writer = csv.DictWriter(out, _columns(rows), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        sys.stdout.write(out.getvalue())
        return
    _draw(rows, title, tall)


def _draw(rows: list[Record], title: str, tall: bool) -> None:
    """Draw a table; in a pipe as wide as it needs to be, without colours."""
    from rich.console import Console

    on_screen = sys.stdout.isatty()
    plain_text = not on_screen or bool(os.environ.get("NO_COLOR"))
    looks: dict[str, Any] = {
        "file": sys.stdout,
        "force_terminal": False if plain_text else None,
        "color_system": None if plain_text else "auto",
    }
    table = _table(rows, title, tall)
    need = max(_width(table), len(title))
    if not on_screen:
        Console(width=need, **looks).print(table)
        return
    console = Console(**looks)
    if need > console.width and not tall and len(rows) <= FEW:
        table = _table(rows, title, True)
    console.print(table)


def _width(table: Any) -> int:
    """Return the columns of a terminal that a table fills if nothing is folded."""
    from rich.console import Console
    from rich.measure import Measurement

    wide = Console(width=10_000)
    return Measurement.get(wide, wide.options, table).maximum


def _table(rows: list[Record], title: str, tall: bool) -> Any:
    """Lay records out: each in a row or, tall, each in a column."""
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=escape(title), title_justify="left", show_lines=False)
    names = [k for k in _columns(rows) if any(r.get(k) not in (None, "") for r in rows)]
    if tall:
        table.add_column("quantity", overflow="fold")
        first = names.pop(0) if len(rows) > 1 else None
        for r in rows:
            table.add_column(
                escape(str(r[first])) if first else "value",
                justify="left" if first is None else "right",
                overflow="fold",
            )
        for name in names:
            cells = (escape(cell(name, r.get(name))) for r in rows)
            table.add_row(escape(head(name)), *cells)
        return table
    for name in names:
        words = all(isinstance(r.get(name), str) for r in rows)
        table.add_column(
            escape(head(name)), justify="left" if words else "right", overflow="fold"
        )
    for r in rows:
        table.add_row(*(escape(cell(name, r.get(name))) for name in names))
    return table


def note(words: str) -> None:
    """Say something beside the answer, on one line of the error stream."""
    sys.stderr.write(f"note: {' '.join(words.split())}\n")
