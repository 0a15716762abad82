"""Commands that join law and machine: plans, comparisons, the validation."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Annotated, Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from chinchilla_lab.cli import words
from chinchilla_lab.cli.options import (
    AsCsv,
    AsJson,
    ClusterName,
    Dtype,
    Gpu,
    Gpus,
    LawName,
    PriceRange,
    Seq,
    StackName,
    option,
    price_of,
)
from chinchilla_lab.cli.output import emit, note
from chinchilla_lab.cluster.failures import DEFAULT_RELIABILITY
from chinchilla_lab.laws.published import DEFAULT
from chinchilla_lab.planning.closure import closure, require, typed
from chinchilla_lab.planning.compare import compare as compare_plans
from chinchilla_lab.planning.compare import compare_runs, export
from chinchilla_lab.planning.levers import levers as levers_of
from chinchilla_lab.planning.plans import plan as make_plan
from chinchilla_lab.planning.results import Plan
from chinchilla_lab.planning.sensitivity import sensitivity
from chinchilla_lab.units import parse
from chinchilla_lab.validation.report import HEADER, validation_rows

__all__ = ["COMMANDS"]

Record = dict[str, Any]
PATIENCE = 1.0


@contextmanager
def _bar(label: str) -> Iterator[Callable[[float], None] | None]:
    """Show a bar on the error stream once more than a second has passed."""
    if not sys.stderr.isatty():
        yield None
        return
    bar = Progress(
        TextColumn(label), BarColumn(), console=Console(file=sys.stderr), transient=True
    )
    task = bar.add_task(label, total=1.0)
    start = monotonic()
    shown = False

    def tell(share: float) -> None:
        """Move the bar."""
        nonlocal shown
        if not shown and monotonic() - start > PATIENCE:
            bar.start()
            shown = True
        bar.update(task, completed=share)

    try:
        yield tell
    finally:
        if shown:
            bar.stop()


def _unit(written: str | None, unit: str) -> float | None:
    """Read a limit; ``none`` and ``inf`` stand for no limit."""
    if written is None:
        return None
    if written.lower() in ("none", "inf", "infinity"):
        return float("inf")
    return parse(written, unit)


Deadline = Annotated[str | None, option("--deadline", help="such as '30 days'")]
Budget = Annotated[str | None, option("--budget", help="such as $2M")]


def plan(
    cluster: ClusterName = None,
    gpu: Gpu = None,
    gpus: Gpus = None,
    deadline: Deadline = None,
    budget: Budget = None,
    compute: Annotated[
        str | None, option("--compute", "-C", help="at most", metavar="FLOP")
    ] = None,
    objective: Annotated[
        str, option("--objective", help="loss, time, cost, lifetime")
    ] = "loss",
    target_loss: Annotated[str | None, option("--target-loss", help="to reach")] = None,
    unique: Annotated[str | None, option("--unique", help="unique tokens")] = None,
    inference: Annotated[
        str | None, option("--inference", help="tokens to serve")
    ] = None,
    law: LawName = DEFAULT.name,
    family: Annotated[
        str, option("--family", help="of shapes; none with --mfu")
    ] = "llama",
    seq: Seq = 4096,
    batch_limit: Annotated[
        str | None, option("--batch-limit", help="tokens of a step; none for no limit")
    ] = None,
    critical_batch: Annotated[
        str | None, option("--critical-batch", help="above it examples are wasted")
    ] = None,
    stack: StackName = None,
    dtype: Dtype = "bf16",
    mfu: Annotated[
        str | None, option("--mfu", help="6ND over the peak, instead of layouts")
    ] = None,
    price: PriceRange = None,
    failures: Annotated[
        str | None, option("--failures", help="per 1000 node-days; 0 for none")
    ] = None,
    restart: Annotated[str | None, option("--restart", help="after a failure")] = None,
    keep: Annotated[int, option("--keep", help="plans to show")] = 1,
    binding: Annotated[
        bool, option("--binding", help="what binds, and its worth")
    ] = False,
    levers: Annotated[bool, option("--levers", help="what would help")] = False,
    output: Annotated[
        str | None, option("--out", help="file.csv, .json or .md")
    ] = None,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Size, tokens, shape, batch and layout for a machine, with intervals."""
    if levers and binding:
        raise ValueError("give --levers or --binding, not both: each is a table")
    if target_loss is not None and objective == "loss":
        raise ValueError(
            "--target-loss needs --objective time, cost or lifetime; the objective "
            "loss looks for the least loss"
        )
    if inference is not None and objective != "lifetime" and budget is None:
        note(
            "--inference changes nothing here: serving counts with --budget or "
            "--objective lifetime"
        )
    machine = words.cluster(cluster, gpu, gpus)
    reliable = DEFAULT_RELIABILITY
    if failures is not None:
        rate = parse(failures, "count") / 1000.0
        reliable = reliable.with_(failures_per_node_day=rate, band=(rate, rate))
    if restart is not None:
        reliable = reliable.with_(restart=parse(restart, "s"))
    with _bar("searching") as tell:
        found = make_plan(
            machine, law=words.loss_law(law),
            objective=objective,  # type: ignore[arg-type]
            deadline=words.quantity(deadline, "s"),
            budget=words.quantity(budget, "USD"),
            compute=words.quantity(compute, "FLOP"),
            target_loss=words.quantity(target_loss, "count"),
            unique_tokens=words.quantity(unique, "token"),
            inference_tokens=words.quantity(inference, "token") or 0.0,
            shape_family=None if family == "none" else family, seq_len=seq,
            batch_limit=_unit(batch_limit, "token"),
            critical_batch=words.quantity(critical_batch, "token"), stack=stack,
            dtype=dtype, reliability=reliable, price=price_of(price),
            utilisation=words.share(mfu), keep=keep, progress=tell,
        )  # fmt: skip
    require(closure(found))
    several = [found, *found.alternatives]
    for words_of in found.assumptions:
        note(words_of)
    if output is not None:
        export(several, output)
    if levers:
        _show_levers(found, as_json, as_csv)
    elif binding:
        _show_binding(found, as_json, as_csv)
    else:
        made = compare_plans(several).records
        emit(made, "plan", as_json, as_csv, tall=True)


def _show_levers(found: Plan, as_json: bool, as_csv: bool) -> None:
    records: list[Record] = [
        {
            "lever": r.name, "state": r.state, "time_factor": r.worth,
            "factor_low": r.worth_range[0], "factor_high": r.worth_range[1],
            "days": r.days, "days_p5": r.days_range[0], "days_p95": r.days_range[1],
            "usd": r.dollars, "usd_p5": r.dollars_range[0],
            "usd_p95": r.dollars_range[1], "changed": r.note, "measured": r.measured,
        }
        for r in levers_of(found).rows
    ]  # fmt: skip
    emit(records, f"levers of a plan of {found.days:.3g} days", as_json, as_csv)


def _show_binding(found: Plan, as_json: bool, as_csv: bool) -> None:
    limits = sensitivity(found)
    records: list[Record] = [
        {
            "limit": w.limit, "value": w.value, "unit": w.unit, "one_more": w.worth,
            "saved_percent": 100.0 * w.time_share, "binds": w.binds,
        }
        for w in limits.rows
    ]  # fmt: skip
    emit(records, "; ".join(limits.heads), as_json, as_csv)


def compare(
    plans: Annotated[
        list[str], option("--plan", help="N:D, several times", metavar="N:D")
    ],
    law: LawName = DEFAULT.name,
    same_compute: Annotated[
        bool, option("--same-compute", help="refuse unless compute agrees within 5 %")
    ] = False,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Sizes and tokens side by side: compute, loss, and the optimum of each budget."""
    runs = [words.pair(written, "--plan") for written in plans]
    found = compare_runs(words.loss_law(law), runs)
    if same_compute:
        for N, D in runs[1:]:
            typed(N=N, D=D, same_compute_as=runs[0])
    if not found.same_compute:
        note(
            "not the same compute: they differ by a factor of "
            f"{found.compute_ratio:.2f}"
        )
    emit(found.records, "runs", as_json, as_csv)


def check(
    params: Annotated[str | None, option("--params", "-N", help="parameters")] = None,
    tokens: Annotated[str | None, option("--tokens", "-D", help="tokens")] = None,
    compute: Annotated[str | None, option("--compute", "-C", help="FLOP")] = None,
    ratio: Annotated[str | None, option("--ratio", help="tokens per parameter")] = None,
    batch: Annotated[str | None, option("--batch", help="tokens of a step")] = None,
    steps: Annotated[str | None, option("--steps", help="steps")] = None,
    gpus: Gpus = None,
    days: Annotated[str | None, option("--days", help="days")] = None,
    gpu_hours: Annotated[str | None, option("--gpu-hours", help="hours")] = None,
    gpu: Gpu = None,
    mfu: Annotated[str | None, option("--mfu", help="6ND over the peak")] = None,
    price: Annotated[str | None, option("--price", help="USD per hour")] = None,
    cost: Annotated[str | None, option("--cost", help="USD")] = None,
    unique: Annotated[str | None, option("--unique", help="unique tokens")] = None,
    epochs: Annotated[str | None, option("--epochs", help="passes")] = None,
    repeats: Annotated[str | None, option("--repeats", help="passes less one")] = None,
    loss: Annotated[str | None, option("--loss", help="claimed loss")] = None,
    law: LawName = DEFAULT.name,
    rtol: Annotated[float, option("--rtol", help="how far sides may differ")] = 0.05,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Whether figures of a plan belong to one run; refuses them if they do not."""
    n = words.quantity(gpus, "count")
    found = typed(
        rtol=rtol, N=words.quantity(params, "parameter"),
        D=words.quantity(tokens, "token"), C=words.quantity(compute, "FLOP"),
        tokens_per_param=words.quantity(ratio, "count"),
        batch_tokens=words.quantity(batch, "token"),
        steps=words.quantity(steps, "count"),
        n_accelerators=None if n is None else int(n),
        days=words.quantity(days, "count"),
        accelerator_hours=words.quantity(gpu_hours, "count"),
        accelerator=None if gpu is None else words.chip(gpu),
        mfu=words.share(mfu),
        price=words.quantity(price, "USD"), cost=words.quantity(cost, "USD"),
        unique_tokens=words.quantity(unique, "token"),
        epochs=words.quantity(epochs, "count"),
        repeats=words.quantity(repeats, "count"),
        law=words.loss_law(law) if loss is not None else None,
        loss=words.quantity(loss, "count"),
    )  # fmt: skip
    records: list[Record] = [
        {
            "identity": one.name, "left": one.left, "right": one.right,
            "off_by": one.discrepancy, "holds": one.holds,
        }
        for one in found.identities
    ]  # fmt: skip
    if not records:
        records = [{"identity": "loss above the floor of N", "holds": True}]
    emit(records, "closure", as_json, as_csv)


def _number(cell: str) -> str | float:
    """Return a cell of the table as a number, if it is one."""
    try:
        return float(cell)
    except ValueError:
        return cell


def validate(as_json: AsJson = False, as_csv: AsCsv = False) -> None:
    """Compare published runs with what the step model says of them."""
    with _bar("scoring") as tell:
        if tell is not None:
            tell(0.0)
        rows = validation_rows()
    names = [h.split(" [")[0].replace(" ", "_").replace("-", "_") for h in HEADER]
    units = ["_percent" if "[%]" in h else "" for h in HEADER]
    records = [
        {f"{n}{u}": _number(cell) for n, u, cell in zip(names, units, row, strict=True)}
        for row in rows
    ]
    emit(records, "predicted over measured speed, less one", as_json, as_csv)


COMMANDS = {"plan": plan, "compare": compare, "check": check, "validate": validate}
