"""Tables of the reference pages, generated from the library's own constants."""

import warnings
from collections.abc import Sequence

from chinchilla_lab.allocation import compute_optimal
from chinchilla_lab.checks import ExtrapolationWarning
from chinchilla_lab.cluster.accelerators import ACCELERATORS
from chinchilla_lab.cluster.failures import failure_records
from chinchilla_lab.cluster.stacks import FITTABLE, STACKS
from chinchilla_lab.laws import PUBLISHED, AdditiveLaw, Law
from chinchilla_lab.shape import SHAPES
from chinchilla_lab.tables import html_table
from chinchilla_lab.units import HOUR, text

__all__ = [
    "accelerator_source_table",
    "additive_table",
    "caution_table",
    "failure_table",
    "optimum_table",
    "shape_table",
    "source_table",
    "stack_table",
]


def additive_table() -> str:
    """Return the coefficients of every additive law.

    Returns
    -------
    str
        HTML, [-]
    """
    rows = [
        [
            law.name,
            f"{law.E:.5g}",
            f"{law.A:.5g}",
            f"{law.B:.5g}",
            f"{law.alpha:.6g}",
            f"{law.beta:.6g}",
            f"{law.a:.4f}",
            law.rounding,
        ]
        for law in PUBLISHED.values()
        if isinstance(law, AdditiveLaw)
    ]
    head = ("law", "E [nats/token]", "A", "B", "α", "β", "a of N*(C)", "digits")
    return html_table(head, rows)


def optimum_table(budgets: Sequence[float]) -> str:
    """Return the optimum of some budgets under every law.

    Parameters
    ----------
    budgets : sequence of float
        Training compute, [FLOP]

    Returns
    -------
    str
        HTML, [-]
    """
    rows = []
    for law in PUBLISHED.values():
        row = [law.label, law.N_counts.replace("_", " ")]
        for C in budgets:
            with warnings.catch_warnings():
                # the next table of the page says where each law was fitted
                warnings.simplefilter("ignore", ExtrapolationWarning)
                plan = compute_optimal(law, C)
            N, D = float(plan.N), float(plan.D)
            row += [text(N, "parameter"), text(D, "token"), text(D / N, "")]
        rows.append(row)
    head = ["law", "N counts"]
    for C in budgets:
        shown = text(C, "FLOP")
        head += [f"N* at {shown}", f"D* at {shown}", f"D/N at {shown}"]
    return html_table(head, rows)


def _range(law: Law) -> str:
    parts = []
    for name, unit in (("N", "parameter"), ("D", "token"), ("C", "FLOP")):
        limits = getattr(law.fitted, name)
        if limits:
            parts.append(f"{name} {text(limits[0], unit)} to {text(limits[1], unit)}")
    return "; ".join(parts) or "not stated"


def source_table() -> str:
    """Return counts, corpus, fitted range and source of every law.

    Returns
    -------
    str
        HTML, [-]
    """
    rows = [
        [
            law.name,
            law.family,
            law.N_counts.replace("_", " "),
            law.C_counts,
            law.corpus,
            _range(law),
            f"{law.source.cite}: {law.source.where} ({law.source.evidence})",
        ]
        for law in PUBLISHED.values()
    ]
    head = ("law", "family", "N counts", "C counts", "corpus", "fitted on", "source")
    return html_table(head, rows, kind="cl-wide")


def caution_table() -> str:
    """Return what goes wrong when a law is used carelessly.

    Returns
    -------
    str
        HTML, [-]
    """
    rows = [[law.name, law.caution] for law in PUBLISHED.values() if law.caution]
    return html_table(("law", "caution"), rows, kind="cl-wide")


def accelerator_source_table() -> str:
    """Return where the figures of every accelerator come from.

    Returns
    -------
    str
        HTML, [-]
    """
    rows = [
        [
            chip.name,
            chip.id,
            f"{chip.source}: {chip.where} ({chip.evidence}, {chip.accessed})",
            f"{chip.price.source} ({chip.price.date})" if chip.price else "",
            chip.notes,
        ]
        for chip in ACCELERATORS.values()
    ]
    head = ("accelerator", "name in the library", "source", "price from", "notes")
    return html_table(head, rows, kind="cl-wide")


def stack_table() -> str:
    """Return the constants of every calibrated stack, fitted ones marked.

    Returns
    -------
    str
        HTML, [-]
    """
    rows = [
        [
            stack.name,
            *(
                f"{getattr(stack, name):.3g}{'*' if name in stack.fitted else ''}"
                for name in FITTABLE
            ),
            f"{100 * stack.error:.1f}",
            stack.rows,
        ]
        for stack in STACKS.values()
        if stack.fitted
    ]
    units = {"layer_overhead": " [s]", "step_overhead": " [s]"}
    head = [name.replace("_", " ") + units.get(name, "") for name in FITTABLE]
    return html_table(
        ("stack", *head, "error [%]", "fitted on"),
        rows,
        "* fitted; the others were fixed beforehand",
        kind="cl-wide",
    )


def failure_table() -> str:
    """Return the published statistics of failures on one scale.

    Returns
    -------
    str
        HTML, [-]
    """
    rows = [
        [
            record.cluster,
            f"{record.n_nodes:,}",
            f"{1000 * record.failures_per_node_day:.3g}",
            f"{record.mean_time / HOUR:.3g}",
            record.kind,
            f"{record.source}: {record.where} ({record.evidence})",
        ]
        for record in failure_records()
    ]
    head = (
        "job", "nodes", "failures per 1,000 node-days", "mean time between them [h]",
        "kind", "source",
    )  # fmt: skip
    return html_table(head, rows, kind="cl-wide")


def shape_table() -> str:
    """Return the published shapes that the library knows by name.

    Returns
    -------
    str
        HTML, [-]
    """
    rows = []
    for name, shape in SHAPES.items():
        count = shape.params()
        heads = f"{shape.n_heads}/{shape.n_kv_heads or shape.n_heads}"
        experts = f"{shape.n_active_experts} of {shape.n_experts}"
        rows.append(
            [
                name,
                text(float(count.total), "parameter"),
                text(float(count.active), "parameter"),
                *(f"{x:,}" for x in (shape.n_layers, shape.d_model, shape.d_ff)),
                heads,
                experts if shape.n_experts > 1 else "",
                f"{shape.vocab_size:,}",
            ]
        )
    head = (
        "name in the library", "parameters", "active", "layers", "width", "MLP width",
        "heads/key-value heads", "experts", "vocabulary",
    )  # fmt: skip
    return html_table(head, rows, kind="cl-wide")
