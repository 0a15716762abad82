"""Commands that need no machine: laws, optima, losses."""

from typing import Annotated, Any

import numpy as np

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
    Budgets,
    LawName,
    LawNames,
    Numbers,
    Params,
    Seq,
    SomeLoss,
    SomeParams,
    Tokens,
    Unique,
    option,
)
from chinchilla_lab.cli.output import emit, note
from chinchilla_lab.fitting.curve import PowerCurve
from chinchilla_lab.laws.families import Law, LossLaw
from chinchilla_lab.laws.published import (
    DEFAULT,
    MUENNIGHOFF_2023_REPEATED,
    PUBLISHED,
)
from chinchilla_lab.shape.run import steps_for_tokens
from chinchilla_lab.units import FLOP_PER_ND

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
    compute: Budgets = None,
    params: SomeParams = None,
    loss: SomeLoss = None,
    law: LawNames = DEFAULT.name,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Best size and tokens for a budget, a size or a loss, under one or more laws."""
    if compute is None and params is None and loss is None:
        raise ValueError(TARGETS)
    found = words.laws(law)
    records = []
    for one in found:
        if compute is not None:
            plan = compute_optimal(one, np.array(compute))
            records += [_row(plan, i) for i in range(len(np.asarray(plan.C)))]
        elif params is not None:
            records.append(_row(optimal_for_params(one, params)))
        elif loss is not None:
            records.append(_row(optimal_for_loss(words.with_loss(one), loss)))
    _cautions(found)
    emit(records, "compute-optimal", as_json, as_csv)


def loss(
    params: Params,
    tokens: Tokens,
    unique: Unique = None,
    law: LawNames = DEFAULT.name,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Loss of a size on a number of tokens."""
    from chinchilla_lab.planning.losses import DataLimit  # loads the planner

    N, D, U = params, tokens, unique
    records = []
    for one in map(words.with_loss, words.laws(law)):
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
    params: Params,
    loss: SomeLoss = None,
    rule: Annotated[
        float | None,
        option("--rule", help="tokens per parameter, such as 20", unit="count"),
    ] = None,
    law: LawName = DEFAULT.name,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Tokens for a size: to reach a loss, by a rule, or the compute-optimal ones."""
    N = params
    made: float | None = None
    if rule is not None:
        used = words.law(f"ratio:{rule:g}")
        D = N * rule
    elif loss is not None:
        with_loss = words.loss_law(law)
        used, made = with_loss, loss
        D = float(tokens_for_loss(with_loss, N, loss))
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
    params: Params,
    batch_seqs: Annotated[
        int, option("--batch-seqs", help="sequences of a step", unit="whole")
    ],
    seq: Seq,
    rule: Annotated[
        float, option("--rule", help="tokens per parameter", unit="count")
    ] = 20.0,
    dataset: Annotated[
        float | None, option("--dataset", help="tokens there are", unit="token")
    ] = None,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Optimizer steps for a size at a ratio of tokens to parameters."""
    D = params * rule
    batch = float(batch_seqs * seq)
    record = {
        "N": params, "D": D, "batch_tokens": batch,
        "steps": int(steps_for_tokens(D, batch)),
        "epochs": None if dataset is None else D / dataset,
    }  # fmt: skip
    emit([record], "steps", as_json, as_csv)


def tradeoff(
    size_factor: Annotated[
        Numbers,
        option(
            "--size-factor",
            help="size over the optimal one",
            unit="count",
            several=True,
        ),
    ],
    law: LawName = DEFAULT.name,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Tokens and compute of another size at the loss of the optimum."""
    factors = np.array(size_factor)
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
    factor: Annotated[
        float, option("--factor", help="growth of compute", unit="count")
    ] = 10.0,
    compute: Annotated[
        float, option("--compute", "-C", help="starting at", unit="FLOP")
    ] = 1e22,
    law: LawNames = DEFAULT.name,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Growth of the optimal size and tokens when compute grows."""
    records = []
    for one in words.laws(law):
        size, data = growth(one, factor, compute)
        records.append(
            {"law": one.name, "C_flop": compute, "compute_factor": factor,
             "N_factor": float(size), "D_factor": float(data)}
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
    unique: Annotated[float, option("--unique", help="unique tokens", unit="token")],
    passes: Annotated[
        Numbers, option("--epochs", help="passes", unit="count", several=True)
    ],
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Fresh tokens that some passes over unique ones are worth."""
    U = unique
    records = []
    for e in passes:
        worth = float(MUENNIGHOFF_2023_REPEATED.effective_tokens(U, e))
        records.append(
            {"unique_tokens": U, "epochs": e, "repeats": e - 1.0, "D": U * e,
             "effective_tokens": worth, "effective_over_unique": worth / U,
             "share_of_fresh": worth / (U * e)}
        )  # fmt: skip
    emit(records, MUENNIGHOFF_2023_REPEATED.label, as_json, as_csv)


def speedup(
    linf: Annotated[float, option("--linf", help="floor [nats/token]", unit="count")],
    alpha: Annotated[
        float, option("--alpha", help="exponent of compute", unit="count")
    ],
    loss: Annotated[
        Numbers,
        option(
            "--loss",
            help="loss before and after",
            metavar="L1,L2",
            unit="count",
            several=True,
        ),
    ],
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Compute that a lower loss is worth on a curve L = Linf + A C^-alpha."""
    if len(loss) != 2:
        raise ValueError(
            f"--loss holds {len(loss)} numbers: write two losses, for example 2.25,2.24"
        )
    before, after = loss
    # the factor does not depend on A
    curve = PowerCurve(E=linf, scale=1.0, exponent=alpha)
    times = float(curve.factor_between(before, after))
    record = {"loss_before": before, "loss_after": after, "speedup": times}
    emit([record], "speedup", as_json, as_csv)


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
    "speedup": speedup, "laws": laws,
}  # fmt: skip
