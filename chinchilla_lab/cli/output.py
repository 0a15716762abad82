"""Records on the screen, as JSON or as CSV."""

import csv
import io
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from chinchilla_lab.tables import plain, quantile_of
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
    "achieved_flop_per_s": "FLOP/s", "N_total": "parameter",
    "serving_usd": "USD", "serving_usd_low": "USD", "serving_usd_high": "USD",
    "lifetime_usd": "USD", "lifetime_usd_low": "USD", "lifetime_usd_high": "USD",
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
    "mfu": "MFU [-]", "hfu": "HFU [-]", "seconds": "time [s]", "step_s": "step [s]",
    "flop_per_token": "training FLOP [FLOP/token]", "usd_low": "cost from [USD]",
    "usd_high": "cost to [USD]", "usd": "worth [USD]", "usd_each": "cost [USD]",
    "price_date": "prices of", "n_accelerators": "accelerators",
    "n_idle": "accelerators idle", "n_layers": "layers", "d_model": "width",
    "d_ff": "MLP width", "n_heads": "heads", "n_experts": "experts",
    "N_total": "N, all [parameter]", "N_counts": "N counts", "epochs": "epochs [-]",
    "N_over_compute_optimal": "N over compute-optimal [-]",
    "utilisation_6nd": "6ND over peak, in the step [-]",
    "goodput": "time kept by failures [-]", "efficiency": "efficiency [-]",
    "memory_gb": "memory [GB]", "memory_gib": "memory [GiB]",
    "serving_usd": "serving [USD]", "lifetime_usd": "training and serving [USD]",
    "serving_usd_low": "serving from [USD]", "serving_usd_high": "serving to [USD]",
    "lifetime_usd_low": "training and serving from [USD]",
    "lifetime_usd_high": "training and serving to [USD]",
    "measured_s": "measured [s]", "predicted_s": "predicted [s]",
    "error_of_speed": "error of the speed [-]",
    "error_left_out": "error, row left out [-]", "gemm": "gemm [-]",
    "traffic": "traffic [-]", "layer_overhead": "layer overhead [s]",
    "network": "network [-]", "jitter": "jitter [-]", "attention": "attention [-]",
    "step_overhead": "step overhead [s]",
    "one_more": "one more is worth", "saved_percent": "10 % more saves [%]",
    "energy_mwh": "energy at rated power [MWh]", "power_mw": "rated power [MW]",
    "pue": "PUE [-]",
    "score": "objective [in its unit]",
    "chance_deadline": "chance of the deadline [-]",
    "chance_budget": "chance of the budget [-]",
    "off_by": "off by [-]",
    "optimal_loss_nats": "best loss [nats/token]", "rtol": "may differ by [-]",
    "loss_before": "loss before [nats/token]", "loss_after": "loss after [nats/token]",
    "batch": "batch [request]", "steps": "steps [step]", "n": "rows",
    "accelerators_a_copy": "accelerators a copy",
    "over_best": "over best [-]", "bf16_dense_tflops": "bf16, dense [TFLOP/s]",
    "fp8_dense_tflops": "fp8, dense [TFLOP/s]",
    "best_bf16_tflops": "best bf16 measured [TFLOP/s]", "hbm_gb": "memory [GB]",
    "hbm_gbps": "memory rate [GB/s]", "scaleout_gbps": "network [GB/s]",
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
    "_ms": "ms", "_gib": "GiB", "_gb": "GB", "_gbps": "GB/s", "_tflops": "TFLOP/s",
    "_flop_per_s": "FLOP/s", "_flop_per_byte": "FLOP/byte", "_percent": "%",
    "_nats": "nats/token",
}  # fmt: skip
PURE = (
    "size_factor", "token_factor", "extra_compute", "compute_factor", "N_factor",
    "D_factor", "a_of_N", "b_of_D", "alpha", "beta", "repeats",
    "effective_over_unique", "share_of_fresh", "speedup", "over_6N", "slowdown",
)  # fmt: skip
SHARES = (
    "mfu",
    "hfu",
    "time_share",
    "share",
    "utilisation",
    "efficiency",
    "goodput",
    "error",
)


def cell(name: str, value: Any) -> str:
    """Write a value for people."""
    value = plain(value)
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    name = quantile_of(name)[0]
    if name in UNITS:
        # the unit stands in the head
        return text(float(value), UNITS[name], 4).removesuffix(" FLOP")
    if isinstance(value, float):
        if name.startswith(SHARES):
            return f"{value:.1%}"
        return _decimal(value, "flop" in name.lower())
    if isinstance(value, int):
        return f"{value:,}"
    return str(value)


def _decimal(value: float, counts_flop: bool) -> str:
    """Write five digits; what people count in hours or steps has no exponent."""
    if 1e7 <= abs(value) < 1e15 and not counts_flop:
        return f"{float(f'{value:.4e}'):,.0f}"
    return text(value, "", 5)


def head(name: str) -> str:
    """Write a column's name with its unit."""
    base, share = quantile_of(name)
    if share:
        words, bracket, unit = head("usd_each" if base == "usd" else base).partition(
            " ["
        )
        return f"{words}, {share} % below{bracket}{unit}"
    if name in HEADS:
        return HEADS[name]
    for ending, unit in ENDINGS.items():
        if name.endswith(ending):
            return f"{name.removesuffix(ending).replace('_', ' ')} [{unit}]"
    words = name.replace("_", " ")
    return f"{words} [-]" if name in PURE else words


def _columns(rows: Sequence[Record]) -> list[str]:
    """Return the names of all columns, in the order in which they appear."""
    return list(dict.fromkeys(name for row in rows for name in row))


def emit(
    records: Sequence[Record],
    title: str,
    as_json: bool,
    as_csv: bool,
    tall: bool = False,
    heads: Mapping[str, str] | None = None,
) -> None:
    """Print records: a table, or all digits for other programs.

    A tall table has one row for each quantity and one column for each record. ``heads``
    names columns that mean something else here than in other answers.
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
    from chinchilla_lab.cli.drawing import Column, draw  # loads rich

    named = {name: head(name) for name in _columns(rows)} | dict(heads or {})
    table = [
        Column(
            head=named[name],
            cells=[cell(name, r.get(name)) for r in rows],
            words=all(isinstance(r.get(name), str | None) for r in rows),
            free=[isinstance(r.get(name), str) for r in rows],
        )
        for name in named
        if any(r.get(name) not in (None, "") for r in rows)
    ]
    draw(table, title, tall)


def note(words: str) -> None:
    """Say something beside the answer, on one line of the error stream."""
    sys.stderr.write(f"note: {' '.join(words.split())}\n")
