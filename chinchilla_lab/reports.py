"""Tables of the reference pages, generated from the library's own constants."""

import warnings
from collections.abc import Sequence

from chinchilla_lab.allocation import compute_optimal
from chinchilla_lab.checks import ExtrapolationWarning
from chinchilla_lab.laws import PUBLISHED, AdditiveLaw, Law
from chinchilla_lab.tables import html_table
from chinchilla_lab.units import text

__all__ = ["additive_table", "caution_table", "optimum_table", "source_table"]


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
