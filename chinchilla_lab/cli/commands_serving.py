"""The command about a model in service: speed, accelerators, price, break-even."""

import csv
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from chinchilla_lab.checks import InfeasibleError
from chinchilla_lab.cli import words
from chinchilla_lab.cli.options import (
    Active,
    Arch,
    AsCsv,
    AsJson,
    Dtype,
    Experts,
    PriceRange,
    Range,
    SomeParams,
    TopK,
    number,
    option,
)
from chinchilla_lab.cli.output import emit, note
from chinchilla_lab.cluster.accelerators import Price
from chinchilla_lab.cluster.cost import as_price
from chinchilla_lab.inference.decode import MEASURED_SLOWDOWN, critical_batch
from chinchilla_lab.inference.fleet import (
    Service,
    fewest_accelerators,
    measured_slowdown,
    service,
)
from chinchilla_lab.inference.served import ServedModel, ServingHardware
from chinchilla_lab.units import text

__all__ = ["COMMANDS"]

Record = dict[str, Any]


def _slowdown(written: Any) -> Range:
    """Read a slowdown, or the ends of a range."""
    low, colon, high = str(written).partition(":")
    first = number(low, "count")
    return Range(first, number(high, "count") if colon else first)


def _model(
    arch: str | None,
    params: float | None,
    active: float | None,
    cache: float | None,
    experts: int | None,
    top_k: int | None,
    weight_bytes: float,
    cache_bytes: float,
) -> ServedModel:
    """Return what is served: a shape, or numbers of one's own."""
    if params is None:
        if arch is None:
            raise ValueError(
                "no model: give --arch llama-3-8b, or --params with --cache, the bytes "
                "of key-value cache of a token"
            )
        return ServedModel.from_shape(words.shape(arch, {}), weight_bytes, cache_bytes)
    if cache is None:
        raise ValueError(
            "--params says nothing of layers and heads, so the cache of a token is not "
            "known, and no figure stands in for it; give --cache, for example 131072, "
            "or --arch"
        )
    return ServedModel(
        N=params, N_active=active, weight_bytes=weight_bytes,
        kv_bytes_per_token=cache, n_experts=experts or 1, n_active_experts=top_k or 1,
    )  # fmt: skip


def _measurements(
    path: str, model: ServedModel, hardware: ServingHardware
) -> tuple[float, float, float]:
    """Return the slowdowns that a file of measurements shows."""
    if not Path(path).is_file():
        raise ValueError(f"--calibrate {path}: no such file")
    with Path(path).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    try:
        return measured_slowdown(rows, model, hardware)
    except ValueError as fault:
        raise ValueError(f"--calibrate {path}: {fault}") from None


def serve(
    gpu: Annotated[str, option("--gpu", help="chip", metavar="CHIP")],
    prompt: Annotated[float, option("--prompt", help="of a request", unit="token")],
    answer: Annotated[
        float, option("--answer", help="of a request", unit="token", least=0)
    ],
    arch: Arch = None,
    params: SomeParams = None,
    active_params: Active = None,
    cache: Annotated[
        float | None,
        option("--cache", help="of one token, with --params", unit="byte", least=0),
    ] = None,
    experts: Experts = None,
    top_k: TopK = None,
    weight_bytes: Annotated[
        float, option("--weight-bytes", help="of a stored weight", unit="count")
    ] = 2.0,
    cache_bytes: Annotated[
        float, option("--cache-bytes", help="of a cached number", unit="count")
    ] = 2.0,
    dtype: Dtype = "bf16",
    gpus: Annotated[
        int | None,
        option(
            "--gpus",
            unit="whole",
            help="that share one copy; by default the fewest, a power of two",
        ),
    ] = None,
    batch: Annotated[
        float | None,
        option(
            "--batch",
            help="requests together; by default what memory holds",
            unit="count",
        ),
    ] = None,
    tokens_per_day: Annotated[
        float | None,
        option(
            "--tokens-per-day", "--demand", help="prompts and answers", unit="token"
        ),
    ] = None,
    requests_per_day: Annotated[
        float | None, option("--requests-per-day", help="requests", unit="count")
    ] = None,
    price: PriceRange = None,
    training_cost: Annotated[
        float | None, option("--training-cost", help="such as $2M", unit="USD")
    ] = None,
    charge: Annotated[
        float | None,
        option("--charge", help="what a million tokens are sold for", unit="USD"),
    ] = None,
    slowdown: Annotated[
        Range | None,
        option(
            "--slowdown",
            help="roofline over measured speed",
            metavar="LOW[:HIGH]",
            parser=_slowdown,
        ),
    ] = None,
    calibrate: Annotated[
        str | None,
        option(
            "--calibrate",
            metavar="FILE.csv",
            help="measured_tokens_per_s, and predicted_tokens_per_s or batch and "
            "context",
        ),
    ] = None,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Speed, accelerators and price of serving a model; break-even with training."""
    chip = words.chip(gpu)
    model = _model(
        arch, params, active_params, cache, experts, top_k, weight_bytes, cache_bytes
    )
    one = ServingHardware(
        peak_flops=chip.peak(dtype), bandwidth=float(chip.need("hbm_bandwidth")),
        memory=chip.memory,
    )  # fmt: skip
    shared = gpus or fewest_accelerators(model, one, prompt + answer)
    hardware = replace(one, n_accelerators=shared)
    bound = service(model, hardware, prompt, answer, batch)
    daily = tokens_per_day
    if requests_per_day is not None:
        daily = requests_per_day * (prompt + answer)
    known: Price | None = None
    if price is not None:
        known = as_price(price)
    elif chip.price is not None:
        known = chip.price
    elif charge is not None or training_cost is not None:
        raise ValueError(f"no price of {chip.name} is known; give --price 2.5@2026-11")
    # the roofline itself, then what measurements make of it
    factors: list[tuple[str, float]] = [("upper bound", 1.0)]
    if calibrate is not None:
        least, typical, most = _measurements(calibrate, model, hardware)
        name = Path(calibrate).name
        factors += [
            (f"calibrated to {name}, fastest", least),
            (f"calibrated to {name}, mean", typical),
            (f"calibrated to {name}, slowest", most),
        ]
    elif slowdown is not None:
        factors += [("slowdown as given", f) for f in dict.fromkeys(slowdown)]
    else:
        fast, slow = MEASURED_SLOWDOWN
        factors += [("published band, fast", fast), ("published band, slow", slow)]
        note(
            f"no measurement of this system: shown is the band of {fast:g} to {slow:g} "
            "below the roofline that four published pairs on one chip suggest; "
            "--calibrate measured.csv replaces it"
        )
    note(
        f"{shared} x {chip.name} a copy, full load around the clock; critical batch "
        f"{critical_batch(model, hardware):.0f}; left out are network, scheduling, the "
        "arithmetic of attention and peaks of demand"
    )
    records = [
        _record(basis, bound.with_slowdown(factor), daily, known, training_cost, charge)
        for basis, factor in factors
    ]
    if charge is not None and known is not None:
        cheapest = bound.usd_per_million(known.low)
        if charge <= cheapest:
            raise InfeasibleError(
                f"--charge {text(charge, 'USD')} a million tokens never repays: they "
                f"cost at least {text(cheapest, 'USD')} even at the roofline; charge "
                "more, use a larger --batch, shorter requests or fewer --weight-bytes"
            )
    emit(
        records, f"service of {text(model.N, 'parameter')}", as_json, as_csv, tall=True
    )


def _record(
    basis: str,
    made: Service,
    daily: float | None,
    price: Price | None,
    training: float | None,
    charge: float | None,
) -> Record:
    """Return one row: the service at one slowdown."""
    record: Record = {
        "basis": basis, "slowdown": made.slowdown, "accelerators_a_copy":
        made.n_accelerators, "batch": made.batch,
        "prefill_ms": 1e3 * made.prefill_seconds, "token_ms": 1e3 * made.step_seconds,
        "tokens_per_second": made.tokens_per_second,
        "answer_tokens_per_second": made.answers_per_second,
        "accelerators": None if daily is None else made.accelerators(daily),
        "tokens_per_day": daily,
    }  # fmt: skip
    if price is not None:
        ends = {"low": price.low, "high": price.high}
        for end, rate in ends.items():
            record[f"usd_per_million_{end}"] = made.usd_per_million(rate)
        if daily is not None:
            hours = 24.0 * made.accelerators(daily)
            record |= {f"usd_a_day_{end}": hours * r for end, r in ends.items()}
        if training is not None:
            for end, rate in ends.items():
                tokens = made.break_even(training, rate, charge)
                record[f"break_even_tokens_{end}"] = tokens
                if daily is not None:
                    record[f"break_even_days_{end}"] = tokens / daily
        elif charge is not None:
            for end, rate in ends.items():
                record[f"usd_gain_{end}"] = charge - made.usd_per_million(rate)
        record["price_date"] = price.date
    return record


COMMANDS = {"serve": serve}
