"""Commands that join law and machine: plans, comparisons, the validation."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Annotated, Any

import typer

from chinchilla_lab.cli import words
from chinchilla_lab.cli.options import (
    AsCsv,
    AsJson,
    ClusterName,
    Dtype,
    Gpu,
    Gpus,
    LawName,
    MemoryLimit,
    PriceRange,
    Seq,
    SomeParams,
    SomeTokens,
    StackName,
    Unique,
    option,
    reader,
)
from chinchilla_lab.cli.output import emit, note
from chinchilla_lab.cluster.failures import DEFAULT_RELIABILITY
from chinchilla_lab.laws.published import DEFAULT
from chinchilla_lab.planning.closure import Closure, closure, require, typed
from chinchilla_lab.planning.compare import FORMATS, compare_runs, export
from chinchilla_lab.planning.compare import compare as compare_plans
from chinchilla_lab.planning.levers import levers as levers_of
from chinchilla_lab.planning.plans import plan as make_plan
from chinchilla_lab.planning.results import Plan
from chinchilla_lab.planning.sensitivity import sensitivity
from chinchilla_lab.units import GB, GIB, text
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
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

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


def _limit(written: str) -> float:
    """Read a limit; ``none`` and ``inf`` stand for no limit."""
    if str(written).lower() in ("none", "inf", "infinity"):
        return float("inf")
    return float(reader("token")(written))


def plan(
    cluster: ClusterName = None,
    gpu: Gpu = None,
    gpus: Gpus = None,
    deadline: Annotated[
        float | None, option("--deadline", help="such as '30 days'", unit="s")
    ] = None,
    budget: Annotated[
        float | None, option("--budget", help="such as $2M", unit="USD")
    ] = None,
    compute: Annotated[
        float | None, option("--compute", "-C", help="at most", unit="FLOP")
    ] = None,
    objective: Annotated[
        str,
        option("--objective", help="loss, time, cost or lifetime", metavar="WHAT"),
    ] = "loss",
    target_loss: Annotated[
        float | None, option("--target-loss", help="to reach", unit="count")
    ] = None,
    unique: Unique = None,
    inference: Annotated[
        float | None,
        option("--inference", help="tokens to serve", unit="token", least=0),
    ] = None,
    law: LawName = DEFAULT.name,
    family: Annotated[
        str, option("--family", help="of shapes; none with --mfu", metavar="FAMILY")
    ] = "llama",
    seq: Seq = 4096,
    batch_limit: Annotated[
        float | None,
        option(
            "--batch-limit",
            help="tokens of a step; none for no limit",
            parser=_limit,
            metavar="TOKENS",
        ),
    ] = None,
    critical_batch: Annotated[
        float | None,
        option(
            "--critical-batch",
            help="tokens; above it examples are wasted",
            unit="token",
        ),
    ] = None,
    stack: StackName = None,
    dtype: Dtype = "bf16",
    mfu: Annotated[
        float | None,
        option("--mfu", help="6ND over the peak, instead of layouts", unit="share"),
    ] = None,
    memory_limit: MemoryLimit = None,
    serving_utilisation: Annotated[
        float | None,
        option(
            "--serving-utilisation",
            unit="share",
            help="2ND over the peak in service; by default that of training",
        ),
    ] = None,
    price: PriceRange = None,
    failures: Annotated[
        float | None,
        option(
            "--failures", help="per 1000 node-days; 0 for none", unit="count", least=0
        ),
    ] = None,
    restart: Annotated[
        float | None, option("--restart", help="after a failure", unit="s", least=0)
    ] = None,
    confidence: Annotated[
        float | None,
        option(
            "--confidence", help="80%: chance to meet deadline and budget", unit="share"
        ),
    ] = None,
    keep: Annotated[int, option("--keep", help="plans to show", unit="whole")] = 1,
    binding: Annotated[
        bool, typer.Option("--binding", help="what binds, and its worth")
    ] = False,
    levers: Annotated[bool, typer.Option("--levers", help="what would help")] = False,
    output: Annotated[
        str | None,
        option("--out", help="file.csv, .json or .md for the plans", metavar="FILE"),
    ] = None,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Size, tokens, shape, batch and layout for a machine, with intervals."""
    words.to_be_written(output, "--out", FORMATS)
    machine = words.cluster(cluster, gpu, gpus)
    reliable = DEFAULT_RELIABILITY
    if failures is not None:
        rate = failures / 1000.0
        reliable = reliable.with_(failures_per_node_day=rate, band=(rate, rate))
    if restart is not None:
        reliable = reliable.with_(restart=restart)
    with _bar("searching") as tell:
        found = make_plan(
            machine, law=words.loss_law(law),
            objective=objective,  # type: ignore[arg-type]
            deadline=deadline, budget=budget, compute=compute,
            target_loss=target_loss, unique_tokens=unique,
            inference_tokens=inference or 0.0,
            shape_family=None if family == "none" else family, seq_len=seq,
            batch_limit=batch_limit, critical_batch=critical_batch,
            stack=None if stack is None else words.stack(stack),
            dtype=dtype, reliability=reliable, price=price, utilisation=mfu,
            memory_limit=memory_limit, serving_utilisation=serving_utilisation,
            confidence=confidence, keep=keep, progress=tell,
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
        made: list[Record] = [dict(r) for r in compare_plans(several).records]
        title = f"{len(made)} of {keep} plans asked for" if keep > 1 else "plan"
        if keep > 1 and len(made) < keep:
            note(
                f"{len(made)} of the {keep} plans asked for were found: no other shape "
                "and layout comes close within the limits"
            )
        if not (as_json or as_csv):
            made = [_with_gib(r) for r in made]
        emit(made, title, as_json, as_csv, tall=True)


def _with_gib(record: Record) -> Record:
    """Show memory in both units to people; files keep the record of the library."""
    made: Record = {}
    for name, value in record.items():
        made[name] = value
        if name == "memory_gb" and "memory_gib" not in record:
            made["memory_gib"] = None if value is None else value * GB / GIB
    return made


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
    emit(
        records, f"levers of a plan of {text(found.days, '', 4)} days", as_json, as_csv,
        heads={
            "time_factor": "time factor [-]", "factor_low": "from [-]",
            "factor_high": "to [-]", "days": "worth [day]",
        },
    )  # fmt: skip


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
        list[str],
        option("--plan", help="a size and its tokens, several times", metavar="N:D"),
    ],
    law: LawName = DEFAULT.name,
    same_compute: Annotated[
        bool,
        typer.Option("--same-compute", help="refuse unless compute agrees within 5 %"),
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


# what the library calls a figure, and the option that gives it
FIGURES = {
    "N": "--params", "D": "--tokens", "C": "--compute", "tokens_per_param": "--ratio",
    "batch_tokens": "--batch", "steps": "--steps", "n_accelerators": "--gpus",
    "days": "--days", "accelerator_hours": "--gpu-hours", "price": "--price",
    "cost": "--cost", "unique_tokens": "--unique", "epochs": "--epochs",
    "repeats": "--repeats", "mfu": "--mfu",
}  # fmt: skip


def _takes_no_part(name: str, figures: dict[str, Any], found: Closure) -> bool:
    """Say whether a figure was given and could be left out without a change."""
    if figures[name] is None:
        return False
    try:
        without = typed(**{**figures, name: None})
    except ValueError:  # it was needed
        return False
    return [one.name for one in without.identities] == [
        one.name for one in found.identities
    ]


def check(
    params: SomeParams = None,
    tokens: SomeTokens = None,
    compute: Annotated[
        float | None, option("--compute", "-C", help="as claimed", unit="FLOP")
    ] = None,
    ratio: Annotated[
        float | None, option("--ratio", help="tokens per parameter", unit="count")
    ] = None,
    batch: Annotated[
        float | None, option("--batch", help="tokens of a step", unit="token")
    ] = None,
    steps: Annotated[
        float | None, option("--steps", help="steps", unit="count")
    ] = None,
    gpus: Gpus = None,
    days: Annotated[float | None, option("--days", help="days", unit="count")] = None,
    gpu_hours: Annotated[
        float | None, option("--gpu-hours", help="hours", unit="count")
    ] = None,
    gpu: Gpu = None,
    mfu: Annotated[
        float | None, option("--mfu", help="6ND over the peak", unit="share")
    ] = None,
    price: Annotated[
        float | None, option("--price", help="USD per hour", unit="USD")
    ] = None,
    cost: Annotated[float | None, option("--cost", help="USD", unit="USD")] = None,
    unique: Unique = None,
    epochs: Annotated[
        float | None, option("--epochs", help="passes", unit="count")
    ] = None,
    repeats: Annotated[
        float | None, option("--repeats", help="passes less one", unit="count", least=0)
    ] = None,
    loss: Annotated[
        float | None, option("--loss", help="claimed loss", unit="count")
    ] = None,
    law: LawName = DEFAULT.name,
    rtol: Annotated[
        float, option("--rtol", help="how far sides may differ", unit="share")
    ] = 0.05,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Whether figures of a plan belong to one run; refuses them if they do not."""
    figures: dict[str, Any] = {
        "N": params, "D": tokens, "C": compute, "tokens_per_param": ratio,
        "batch_tokens": batch, "steps": steps, "n_accelerators": gpus, "days": days,
        "accelerator_hours": gpu_hours, "price": price, "cost": cost,
        "unique_tokens": unique, "epochs": epochs, "repeats": repeats, "loss": loss,
        "accelerator": None if gpu is None else words.chip(gpu), "mfu": mfu,
        "law": words.loss_law(law) if loss is not None else None,
    }  # fmt: skip
    found = typed(rtol=rtol, **figures)
    if idle := [FIGURES[k] for k in FIGURES if _takes_no_part(k, figures, found)]:
        raise ValueError(
            f"{', '.join(idle)}: no identity joins it with the other figures; leave it "
            "out, or give what belongs to it (--price with --gpu-hours and --cost)"
        )
    records: list[Record] = [
        {
            "identity": one.name, "left": one.left, "right": one.right,
            "off_by": one.discrepancy, "rtol": one.rtol, "holds": one.holds,
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
