"""Commands that need no machine: laws, optima, losses, fits."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from chinchilla_lab.allocation.intervals import default_interval, interval
from chinchilla_lab.allocation.optimum import (
    compute_optimal,
    optimal_for_loss,
    optimal_for_params,
)
from chinchilla_lab.allocation.price import efficiency, overhead
from chinchilla_lab.allocation.response import growth
from chinchilla_lab.allocation.results import Allocation
from chinchilla_lab.allocation.solving import additive
from chinchilla_lab.allocation.targets import loss_floor, tokens_for_loss
from chinchilla_lab.cli import words
from chinchilla_lab.cli.options import (
    AsCsv,
    AsJson,
    LawName,
    LawNames,
    Params,
    option,
)
from chinchilla_lab.cli.output import emit, note
from chinchilla_lab.fitting.curve import PowerCurve
from chinchilla_lab.fitting.fitted import FittedAllocation, FittedLaw
from chinchilla_lab.fitting.isoflop import fit_isoflop
from chinchilla_lab.fitting.parametric import fit_parametric
from chinchilla_lab.fitting.reading import read_runs
from chinchilla_lab.fitting.runs import Runs
from chinchilla_lab.laws.families import Law, LossLaw
from chinchilla_lab.laws.published import (
    DEFAULT,
    MUENNIGHOFF_2023_REPEATED,
    PUBLISHED,
)
from chinchilla_lab.planning.losses import DataLimit
from chinchilla_lab.shape.run import steps_for_tokens
from chinchilla_lab.units import FLOP_PER_ND, parse

__all__ = ["COMMANDS"]

Record = dict[str, Any]
TARGETS = "give one of --compute, --params and --loss"


def _row(plan: Allocation, index: Any = ()) -> Record:
    """One optimum as a record, with its interval where the law has one."""
    law, C = plan.law, float(np.asarray(plan.C)[index])
    low = high = None
    if law.resampled is not None:
        low, high = (float(x) for x in interval(law, C).N)
    elif law is DEFAULT and 1e17 <= C <= 1e27:
        low, high = (float(x) for x in default_interval(C).N)
    loss = None if plan.L is None else float(np.asarray(plan.L)[index])
    N, D = (float(np.asarray(x)[index]) for x in (plan.N, plan.D))
    return {
        "law": law.name, "C_flop": C, "N": N, "D": D, "tokens_per_param": D / N,
        "loss_nats": loss, "N_low": low, "N_high": high, "N_counts": law.N_counts,
    }  # fmt: skip


def _cautions(laws: list[Law]) -> None:
    for law in laws:
        if law.rounding == "rounded":
            note(f"{law.name} is rounded: {law.caution}")


def optimal(
    compute: Annotated[
        str | None, option("--compute", "-C", help="budgets", metavar="FLOP,...")
    ] = None,
    params: Params = None,
    loss: Annotated[str | None, option("--loss", help="target [nats/token]")] = None,
    law: LawNames = DEFAULT.name,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Best size and tokens for a budget, a size or a loss, under one or more laws."""
    if sum(x is not None for x in (compute, params, loss)) != 1:
        raise ValueError(TARGETS)
    found = words.laws(law)
    records = []
    for one in found:
        if compute is not None:
            plan = compute_optimal(one, np.array(words.numbers(compute, "FLOP")))
            records += [_row(plan, i) for i in range(len(np.asarray(plan.C)))]
        elif params is not None:
            records.append(_row(optimal_for_params(one, parse(params, "parameter"))))
        else:
            records.append(_row(optimal_for_loss(one, parse(str(loss), "count"))))
    _cautions(found)
    emit(records, "compute-optimal", as_json, as_csv)


def loss(
    params: Annotated[str, option("--params", "-N", help="parameters", metavar="N")],
    tokens: Annotated[str, option("--tokens", "-D", help="tokens", metavar="D")],
    unique: Annotated[str | None, option("--unique", help="unique tokens")] = None,
    law: LawNames = DEFAULT.name,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Loss of a size on a number of tokens."""
    N, D = parse(params, "parameter"), parse(tokens, "token")
    U = words.quantity(unique, "token")
    records = []
    for name in law.split(","):
        one = words.loss_law(name)
        one.warn_outside(N=np.asarray(N), D=np.asarray(D))
        made = DataLimit(law=one, unique=U).loss(np.asarray(N), np.asarray(D))
        records.append(
            {
                "law": one.name, "N": N, "D": D, "C_flop": FLOP_PER_ND * N * D,
                "tokens_per_param": D / N, "unique_tokens": U,
                "epochs": None if U is None else D / U, "loss_nats": float(made),
                "floor_of_N_nats": float(loss_floor(additive(one) or one, N)),
                "efficiency": float(efficiency(one, N, D)) if U is None else None,
            }
        )  # fmt: skip
    emit(records, "loss", as_json, as_csv)


def tokens(
    params: Annotated[str, option("--params", "-N", help="parameters", metavar="N")],
    loss: Annotated[str | None, option("--loss", help="target [nats/token]")] = None,
    rule: Annotated[
        str | None, option("--rule", help="tokens per parameter, such as 20")
    ] = None,
    law: LawName = DEFAULT.name,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Tokens for a size: to reach a loss, by a rule, or the compute-optimal ones."""
    N = parse(params, "parameter")
    if loss is not None and rule is not None:
        raise ValueError("give --loss or --rule, not both")
    if rule is not None:
        used = words.law(f"ratio:{rule}")
        D = float(N * parse(rule, "count"))
        made = None
    elif loss is not None:
        with_loss = words.loss_law(law)
        used, made = with_loss, parse(loss, "count")
        D = float(tokens_for_loss(with_loss, N, made))
    else:
        used = words.law(law)
        plan = optimal_for_params(used, N)
        D, made = float(plan.D), None if plan.L is None else float(plan.L)
    record = {
        "law": used.name, "N": N, "D": D, "C_flop": FLOP_PER_ND * N * D,
        "tokens_per_param": D / N, "loss_nats": made,
    }  # fmt: skip
    emit([record], "tokens", as_json, as_csv)


def steps(
    params: Annotated[str, option("--params", "-N", help="parameters", metavar="N")],
    batch_seqs: Annotated[int, option("--batch-seqs", help="sequences of a step")],
    seq: Annotated[int, option("--seq", help="tokens of a sequence")],
    rule: Annotated[str, option("--rule", help="tokens per parameter")] = "20",
    dataset: Annotated[str | None, option("--dataset", help="tokens there are")] = None,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Optimizer steps for a size at a ratio of tokens to parameters."""
    N, size = parse(params, "parameter"), words.quantity(dataset, "token")
    D = N * parse(rule, "count")
    batch = float(batch_seqs * seq)
    record = {
        "N": N, "D": D, "batch_tokens": batch,
        "steps": int(steps_for_tokens(D, batch)),
        "epochs": None if size is None else D / size,
    }  # fmt: skip
    emit([record], "steps", as_json, as_csv)


def tradeoff(
    size_factor: Annotated[
        str, option("--size-factor", help="size over the optimal one", metavar="K,...")
    ],
    law: LawName = DEFAULT.name,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Tokens and compute of another size at the loss of the optimum."""
    factors = np.array(words.numbers(size_factor, "count"))
    made = overhead(words.loss_law(law), factors, infeasible="nan")
    records = [
        {
            "size_factor": float(k),
            "token_factor": float(t),
            "extra_compute": float(k * t - 1.0),
            "reach": "reachable" if np.isfinite(t) else "unreachable",
        }
        for k, t in zip(factors, np.asarray(made.token_factor), strict=True)
    ]
    emit(records, "equal loss", as_json, as_csv)


def scale(
    factor: Annotated[str, option("--factor", help="growth of compute")] = "10",
    compute: Annotated[str, option("--compute", "-C", help="starting at")] = "1e22",
    law: LawNames = DEFAULT.name,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Growth of the optimal size and tokens when compute grows."""
    times, C = parse(factor, "count"), parse(compute, "FLOP")
    records = []
    for one in words.laws(law):
        size, data = growth(one, times, C)
        records.append(
            {"law": one.name, "compute_factor": times, "N_factor": float(size),
             "D_factor": float(data)}
        )  # fmt: skip
    emit(records, "growth", as_json, as_csv)


def exponents(
    law: LawNames = DEFAULT.name, as_json: AsJson = False, as_csv: AsCsv = False
) -> None:
    """Exponents of a law: those of its terms, and of its optimum."""
    records = []
    for one in words.laws(law):
        closed = additive(one) if isinstance(one, LossLaw) else None
        records.append(
            {
                "law": one.name,
                "family": one.family,
                "a_of_N": float(getattr(closed or one, "a", np.nan)),
                "b_of_D": float(getattr(closed or one, "b", np.nan)),
                "alpha": None if closed is None else closed.alpha,
                "beta": None if closed is None else closed.beta,
            }
        )
        if closed is not None and one.family != closed.family:
            note(
                f"{one.name}: alpha and beta are those of the additive form of the "
                "optimum, not the exponents that the source prints; a and b are the "
                "powers of compute"
            )
    emit(records, "exponents", as_json, as_csv)


def epochs(
    unique: Annotated[str, option("--unique", help="unique tokens")],
    passes: Annotated[str, option("--epochs", help="passes", metavar="E,...")],
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Fresh tokens that some passes over unique ones are worth."""
    U = parse(unique, "token")
    records = []
    for e in words.numbers(passes, "count"):
        worth = float(MUENNIGHOFF_2023_REPEATED.effective_tokens(U, e))
        records.append(
            {"unique_tokens": U, "epochs": e, "repeats": e - 1.0, "D": U * e,
             "effective_tokens": worth, "effective_over_unique": worth / U,
             "share_of_fresh": worth / (U * e)}
        )  # fmt: skip
    emit(records, MUENNIGHOFF_2023_REPEATED.label, as_json, as_csv)


def speedup(
    linf: Annotated[str, option("--linf", help="floor [nats/token]")],
    alpha: Annotated[str, option("--alpha", help="exponent of compute")],
    loss: Annotated[
        str, option("--loss", help="loss before and after", metavar="L1,L2")
    ],
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Compute that a lower loss is worth on a curve L = Linf + A C^-alpha."""
    both = words.numbers(loss, "count")
    if len(both) != 2:
        raise ValueError(f"--loss {loss!r}: write two losses, for example 2.25,2.24")
    # the factor does not depend on A
    curve = PowerCurve(
        E=parse(linf, "count"), scale=1.0, exponent=parse(alpha, "count")
    )
    times = float(curve.factor_between(both[0], both[1]))
    record = {"loss_before": both[0], "loss_after": both[1], "speedup": times}
    emit([record], "speedup", as_json, as_csv)


def _mapping(written: str | None, option_name: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for word in (written or "").split(","):
        if not word.strip():
            continue
        name, sign, column = word.partition("=")
        if not sign:
            raise ValueError(f"{option_name} {word!r}: write name=column")
        key = name.strip()
        pairs["L" if key == "loss" else key] = column.strip()
    return pairs


def _runs(path: str, columns: str | None, keep: str | None, counts: str) -> Runs:
    if not Path(path).is_file():
        raise ValueError(f"{path}: no such file")
    runs = read_runs(
        path, _mapping(columns, "--map"), _mapping(keep, "--keep"),
        N_counts=counts,  # type: ignore[arg-type]
    )  # fmt: skip
    for step in runs.filters:
        note(step)
    return runs


def _fit_records(made: FittedLaw, budgets: str | None) -> list[Record]:
    records: list[Record] = [
        {"quantity": name, "value": value, "low": low, "high": high}
        for name, (value, low, high) in made.estimates().values.items()
    ]
    for C in words.numbers(budgets or "", "FLOP"):
        plan = compute_optimal(made, C)
        ends = {} if made.resampled is None else {"N": interval(made, C).N}
        low, high = ends.get("N", (np.nan, np.nan))
        records.append(
            {"quantity": f"N at {C:g} FLOP", "value": float(plan.N),
             "low": float(low), "high": float(high)}
        )  # fmt: skip
    return records


Data = Annotated[str, typer.Argument(help="CSV or JSONL of runs")]
Columns = Annotated[
    str | None,
    option("--map", help="columns of the file", metavar="N=...,D=...,loss=..."),
]
Keep = Annotated[
    str | None, option("--keep", help="rows to keep", metavar="state=finished")
]
Counts = Annotated[
    str, option("--counts", help="what N counts: total, non_embedding, ...")
]
Budgets = Annotated[
    str | None, option("--compute", "-C", help="where to give N", metavar="FLOP,...")
]
Draws = Annotated[int, option("--resamples", help="bootstrap resamples")]
Seed = Annotated[int, option("--seed", help="seed of the resamples")]
Save = Annotated[str | None, option("--save", help="file for the law; --law reads it")]


def fit(
    data: Data,
    columns: Columns = None,
    keep: Keep = None,
    counts: Counts = "total",
    compute: Budgets = None,
    resamples: Draws = 200,
    seed: Seed = 0,
    save: Save = None,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Fit a law to runs, with intervals, or refuse and say why."""
    made = fit_parametric(
        _runs(data, columns, keep, counts), resamples=resamples, rng=seed,
        name=Path(data).stem, progress=False,
    )  # fmt: skip
    if save is not None:
        made.save(save)
    emit(_fit_records(made, compute), made.method(), as_json, as_csv)


def isoflop(
    data: Data,
    columns: Columns = None,
    keep: Keep = None,
    counts: Counts = "total",
    compute: Budgets = None,
    resamples: Draws = 200,
    seed: Seed = 0,
    save: Save = None,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Fit parabolas on budgets and a power law through their bottoms."""
    made: FittedAllocation = fit_isoflop(
        _runs(data, columns, keep, counts), resamples=resamples, rng=seed,
        name=Path(data).stem,
    )  # fmt: skip
    if save is not None:
        made.save(save)
    emit(_fit_records(made, compute), made.method(), as_json, as_csv)


def laws(as_json: AsJson = False, as_csv: AsCsv = False) -> None:
    """List the published laws."""
    records: list[Record] = [
        {
            "law": one.name,
            "label": one.label,
            "family": one.family,
            "N_counts": one.N_counts,
            "has_loss": one.has_loss,
            "rounding": one.rounding,
            "cite": one.source.cite,
            "where": one.source.where,
        }
        for one in PUBLISHED.values()
    ]
    emit(records, "published laws", as_json, as_csv)


COMMANDS = {
    "optimal": optimal, "loss": loss, "tokens": tokens, "steps": steps,
    "tradeoff": tradeoff, "scale": scale, "exponents": exponents, "epochs": epochs,
    "speedup": speedup, "fit": fit, "isoflop": isoflop, "laws": laws,
}  # fmt: skip
