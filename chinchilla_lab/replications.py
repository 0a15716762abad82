"""Published fits, computed again: what the paper says, what comes out, and why.

``python -m chinchilla_lab.replications`` computes every row and compares it with the
stored table; ``--write`` stores what it found, with the date and the version.
``--write-runs`` stores what the step model says of whole published runs.
"""

import csv
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import date
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from chinchilla_lab import __version__, datasets
from chinchilla_lab.allocation.intervals import interval
from chinchilla_lab.allocation.optimum import compute_optimal
from chinchilla_lab.checks import ExtrapolationWarning
from chinchilla_lab.cluster.cost import published_hours
from chinchilla_lab.cluster.hardware import Cluster
from chinchilla_lab.fitting.fitted import FittedLossLaw
from chinchilla_lab.fitting.isoflop import power_line
from chinchilla_lab.fitting.parametric import fit_parametric
from chinchilla_lab.fitting.refusals import FitWarning
from chinchilla_lab.fitting.runs import Runs
from chinchilla_lab.laws import (
    BESIROGLU_2024_NOTEBOOK,
    HOFFMANN_2022,
    HOFFMANN_2022_ENVELOPE,
    HOFFMANN_2022_PRINTED,
)
from chinchilla_lab.laws.families import AdditiveLaw
from chinchilla_lab.planning.closure import closure
from chinchilla_lab.planning.doubt import intervals
from chinchilla_lab.planning.plans import typed_plan
from chinchilla_lab.shape.known import SHAPES
from chinchilla_lab.sources import read_rows
from chinchilla_lab.tables import html_table

__all__ = [
    "DROPPED",
    "LADDER_STEPS",
    "RESAMPLES",
    "Replication",
    "compute",
    "dropped_runs",
    "html",
    "main",
    "stopping",
    "stored",
    "whole_runs",
]

Array = NDArray[np.float64]
CHINCHILLA = 5.76e23  # FLOP, the budget that Gopher and Chinchilla share
RESAMPLES = 4000
KEPT_RESAMPLES = 256
DROPPED = range(9)
LADDER_STEPS = (
    ("as Kaplan et al.", "base long kaplan kaplan train", 0.835),
    ("last layer counted", "base long kaplan standard val", 0.706),
    ("short warm-up", "base short kaplan standard val", 0.602),
    ("cosine decay", "base short chinchilla standard val", 0.571),
    ("tuned, no decay", "tuned short const standard val", None),
)
"""Steps of Porian et al.: label, rows of their summary, the exponent they print."""

_DATA = Path(__file__).parent / "data"


@dataclass(frozen=True, kw_only=True)
class Replication:
    """One published number and the same number computed here.

    Parameters
    ----------
    page : str
        Paper, [-]
    quantity : str
        What is compared, [-]
    says : str
        The number as printed; empty where the paper prints none, [any]
    where : str
        Place of the printed number, [-]
    get : float
        The number computed here, [any]
    why : str
        Why they differ, or what was done, [-]
    data : str
        Data set it needs; empty for none, [-]
    date : str
        Day of the computation, [-]
    version : str
        Version of the library, [-]
    """

    page: str
    quantity: str
    says: str
    where: str
    get: float
    why: str
    data: str = ""
    date: str = ""
    version: str = __version__

    @property
    def key(self) -> tuple[str, str]:
        """Paper and quantity."""
        return self.page, self.quantity


@cache
def _epoch(dropped: int = 5) -> Runs:
    return datasets.load("chinchilla_epoch245").drop_highest(dropped)


@cache
def _huber(dropped: int = 5, resamples: int = RESAMPLES) -> FittedLossLaw:
    return fit_parametric(_epoch(dropped), resamples=resamples, rng=0)


def _ratio(law: AdditiveLaw, C: float = CHINCHILLA) -> float:
    return float(compute_optimal(law, C).tokens_per_param)


def _hoffmann() -> Iterator[Replication]:
    page, printed = "Hoffmann et al. 2022", HOFFMANN_2022_PRINTED
    table_a3 = np.array(
        [
            (2.21e19, 4e8), (1.62e20, 1e9), (2.46e22, 1e10), (1.71e24, 67e9),
            (1.26e25, 175e9), (3.52e25, 280e9), (1.36e26, 520e9), (5.65e26, 1e12),
            (8.55e28, 1e13),
        ]
    )  # fmt: skip
    slope = float(power_line(table_a3[:, 0], table_a3[:, 1], np.ones(9))[1])
    N = float(compute_optimal(HOFFMANN_2022, CHINCHILLA).N)
    rounded = float(compute_optimal(printed, CHINCHILLA).N)
    envelope = float(HOFFMANN_2022_ENVELOPE.optimum(1e21)[0])

    def row(quantity: str, says: str, where: str, get: float, why: str) -> Replication:
        return Replication(
            page=page, quantity=quantity, says=says, where=where, get=get, why=why
        )

    yield row("a, approach 3", "0.46", "Table 2", HOFFMANN_2022.a,
              "from the coefficients in the TeX source")  # fmt: skip
    yield row("a, printed coefficients", "0.46", "Table 2", printed.a,
              "two digits of an exponent are too few")  # fmt: skip
    yield row("N* [parameter] at 5.76e23, TeX source", "40e9", "Figure 4, caption", N,
              "agrees to the rounding of the caption")  # fmt: skip
    yield row("N* [parameter] at 5.76e23, printed", "40e9", "Figure 4, caption",
              rounded, "rounding alone moves the optimum by a fifth")  # fmt: skip
    yield row("N* [parameter] at 1e21, approach 1", "2.86e9", "Appendix D.4", envelope,
              "least squares on the logarithms of Table 3")  # fmt: skip
    yield row("slope of Table 3", "0.50", "Table 2", HOFFMANN_2022_ENVELOPE.a,
              "the same regression")  # fmt: skip
    yield row("slope of Table A3, approach 3", "0.46", "Table 2", slope,
              "neither the TeX source (0.4565) nor the print (0.4516) gives the "
              "column; its 175B row is ten times too small as printed")  # fmt: skip


def _besiroglu() -> Iterator[Replication]:
    page, name = "Besiroglu et al. 2024", "chinchilla_epoch245"
    law = _huber()
    lad = fit_parametric(_epoch(), loss="lad", resamples=0)
    every = _huber(0, 0)
    says = {"E": "1.8172", "A": "482.01", "B": "2085.43", "alpha": "0.3478",
            "beta": "0.3658"}  # fmt: skip

    def row(
        quantity: str, printed: str, get: float, why: str, where: str = "equation 5"
    ) -> Replication:
        return Replication(
            page=page, quantity=quantity, says=printed, where=where, get=get, why=why,
            data=name,
        )  # fmt: skip

    for letter, printed in says.items():
        yield row(f"{letter}, Huber 1e-3", printed, getattr(law, letter),
                  "the optimum of the objective that the paper describes")  # fmt: skip
    for letter, printed in says.items():
        yield row(f"{letter}, least absolute deviations", printed,
                  getattr(lad, letter),
                  "what the published digits are the optimum of")  # fmt: skip
    yield row("objective, Huber 1e-3", "0.0010182740346", law.objective,
              "the notebook's best run", "notebook, cell 18")  # fmt: skip
    yield row("tokens per parameter at 5.76e23, Huber 1e-3", "", _ratio(law),
              "the objective as described")  # fmt: skip
    yield row("tokens per parameter at 5.76e23, LAD", "", _ratio(lad),
              "the published objective in fact")  # fmt: skip
    yield row("tokens per parameter at 5.88e23", "25.6",
              _ratio(BESIROGLU_2024_NOTEBOOK, 5.88e23),
              "25.6 is the ratio at 1e18 FLOP, read from the wrong end of an array",
              "quoted by others; notebook, cell 69")  # fmt: skip
    yield row("tokens per parameter at 1e18", "25.66",
              _ratio(BESIROGLU_2024_NOTEBOOK, 1e18),
              "the value that was printed", "notebook, cell 69")  # fmt: skip
    assert law.resampled is not None
    for letter, printed in (("alpha", "0.02"), ("beta", "0.02"), ("a", "0.020")):
        spread = float(np.std(getattr(law.resampled, letter), ddof=1))
        yield row(f"standard error of {letter}", printed, spread,
                  f"{RESAMPLES} resamples of the runs, seed 0", "Table 1")  # fmt: skip
    yield row("beta, all 245 runs", "", every.beta,
              "five runs of the highest loss kept")  # fmt: skip
    yield row("tokens per parameter at 5.76e23, all 245 runs", "", _ratio(every),
              "five runs of 245 decide")  # fmt: skip


def _porian() -> Iterator[Replication]:
    page, name = "Porian et al. 2024", "porian_optima_rw"
    rows = datasets.table(name)
    for label, key, printed in LADDER_STEPS:
        words = ("hparams", "warmup", "decay", "param_count", "split")
        own = [r for r in rows if " ".join(r[w] for w in words) == key]
        own = [r for r in own if r["N_opt"]]
        C = np.array([float(r["flops"]) for r in own])
        N = np.array([float(r["N_opt"]) for r in own])
        coefficient, slope = power_line(C, N, np.ones(len(C)))
        yield Replication(
            page=page, quantity=f"a, {label}",
            says="about one half" if printed is None else f"{printed}",
            where="Table 1" if printed else "abstract", get=float(slope),
            why="plain least squares on the exported optima; the paper weights them",
            data=name,
        )  # fmt: skip
        yield Replication(
            page=page, quantity=f"N* [parameter] at 5.88e23, {label}",
            says="77.0e9" if printed is None else "", where="repository",
            get=float(coefficient * 5.88e23**slope), why="the same line, extrapolated",
            data=name,
        )  # fmt: skip


def _gadre() -> Iterator[Replication]:
    page, name = "Gadre et al. 2024", "gadre_testbed"

    def row(quantity: str, says: str, get: float, why: str) -> Replication:
        return Replication(
            page=page, quantity=quantity, says=says, where="repository", get=get,
            why=why, data=name,
        )  # fmt: skip

    runs = datasets.load(name, keep={"train_set": "rpj", "val": "c4_val"})
    law = _gadre_fit(runs)
    yield row("alpha = beta", "0.27285", law.alpha,
              "least squares on the loss itself, five runs, one exponent")  # fmt: skip
    yield row("E", "1.83665", law.E, "the same fit")
    yield row("A", "166.21", law.A, "the same fit")
    yield row("B", "366.69", law.B * 6.0 ** (law.alpha / 2.0),
              "in the authors' letters, which hold a factor 6")  # fmt: skip
    for label, least, ratio, says in (
        ("1.4B at 640 tokens per parameter", 1e9, 640.0, "0.71"),
        ("6.9B at 20 tokens per parameter", 5e9, 20.0, ""),
    ):
        at = np.flatnonzero((least < runs.N) & (abs(runs.D / runs.N - ratio) < 1.0))[0]
        off = 100.0 * (law.loss(runs.N[at], runs.D[at]) / runs.L[at] - 1.0)
        yield row(f"error of the loss [%], {label}", says, float(off),
                  "far beyond the five runs of the fit")  # fmt: skip
    other = datasets.load(name, keep={"train_set": "c4_original", "val": "c4_val"})
    on_c4 = _gadre_fit(other)
    at = int(np.argmax(other.N))
    off = 100.0 * (on_c4.loss(other.N[at], other.D[at]) / other.L[at] - 1.0)
    yield row("error of the loss [%], 6.9B, models trained on C4", "", float(off),
              "the same recipe on another corpus")  # fmt: skip
    yield row("tokens per parameter at the optimum", "", float(law.G**-2),
              "outside the fit's own grid, which starts at 20")  # fmt: skip
    for label, most in (("all 35 runs", np.inf), ("22 runs below 80", 85.0)):
        few = runs.keep(most > runs.D / runs.N, label)
        free = fit_parametric(few, resamples=0)
        yield row(f"tokens per parameter at 1e20, untied, {label}", "",
                  _ratio(free, 1e20), "Huber 1e-3 on the log loss")  # fmt: skip


def _gadre_fit(runs: Runs) -> FittedLossLaw:
    """Fit five runs by least squares on the loss, as the authors do.

    Weights turn squares of log residuals into squares of residuals: the gradient of
    one at the weights below is the gradient of the other.
    """
    ratio = runs.D / runs.N
    small = (abs(ratio - 20.0) < 1.0) & (runs.N < 1e9)
    long = (runs.N < 2e7) & (abs(ratio - 320.0) < 5.0)
    five = runs.keep(small | long, "four sizes at 20, one at 320 tokens a parameter")
    weights = five.L**2
    for _ in range(4):
        law = fit_parametric(
            five, loss="squares", tie_exponents=True, resamples=0, weights=weights
        )
        r = np.log(law._loss(five.N, five.D) / five.L)
        r = np.where(r == 0.0, 1e-12, r)
        weights = five.L**2 * np.exp(r) * np.expm1(r) / r
    return law


def _sardana() -> Iterator[Replication]:
    page, name = "Sardana et al. 2024", "sardana_47runs"
    runs = datasets.load(name)
    ratio = runs.D / runs.N
    far = int(np.argmax(ratio))
    for label, most in (("34 runs up to 100", 100.5), ("all 47 runs", np.inf)):
        law = fit_parametric(runs.keep(ratio < most, label), resamples=0)
        yield Replication(
            page=page,
            quantity=f"loss [nats/token], 150M at 10,000 tokens per parameter, {label}",
            says=f"{runs.L[far]:.3f}", where="measured, repository",
            get=float(law._loss(runs.N[far], runs.D[far])),
            why="a law fitted at usual ratios promises too much far beyond them",
            data=name,
        )  # fmt: skip


def compute() -> list[Replication]:
    """Compute every row anew; data sets that are not at hand raise.

    Returns
    -------
    list of Replication
        The rows, [-]

    Raises
    ------
    MissingDataError
        If a data set is not at hand.
    """
    with warnings.catch_warnings():
        # each is part of the story that the page tells
        warnings.simplefilter("ignore", FitWarning)
        warnings.simplefilter("ignore", ExtrapolationWarning)
        parts = (_hoffmann(), _besiroglu(), _porian(), _gadre(), _sardana())
        return [row for part in parts for row in part]


def dropped_runs() -> list[dict[str, float]]:
    """Refit the Chinchilla runs without those of the highest loss.

    Returns
    -------
    list of dict
        Runs dropped, tokens per parameter at 5.76e23 and its 90 % interval, [any]
    """
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        warnings.simplefilter("ignore", ExtrapolationWarning)
        for count in DROPPED:
            law = _huber(count)
            low, high = interval(law, CHINCHILLA).tokens_per_param
            rows.append(
                {
                    "dropped": count,
                    "runs": law.n_runs,
                    "alpha": law.alpha,
                    "beta": law.beta,
                    "tokens_per_param": _ratio(law),
                    "p5": float(low),
                    "p95": float(high),
                    **{
                        f"{letter}_{end}": law.estimates()[letter][place]
                        for letter in ("alpha", "beta")
                        for place, end in ((1, "p5"), (2, "p95"))
                    },
                }
            )
    return rows


def stopping() -> list[dict[str, str]]:
    """Follow SciPy's L-BFGS-B from the coefficients of Hoffmann et al., three ways.

    Returns
    -------
    list of dict
        Setting, iteration, objective (always as the sum), exponents so far, [any]

    Notes
    -----
    Default tolerances compare the fall of the objective with max(|f|, 1) times 2.2e-9,
    so an objective of a thousandth looks settled long before it is; as a mean over the
    runs it looks settled at once. Needs SciPy.
    """
    from scipy.optimize import minimize

    runs = _epoch()
    x, y, target = np.log(runs.N), np.log(runs.D), np.log(runs.L)
    law = HOFFMANN_2022
    start = [np.log(law.A), np.log(law.B), np.log(law.E), law.alpha, law.beta]

    def value(t: Array) -> tuple[float, Array]:
        logs = np.array([t[0] - t[3] * x, t[1] - t[4] * y, np.full_like(x, t[2])])
        top = np.logaddexp.reduce(logs)
        r = top - target
        slope = np.clip(r, -1e-3, 1e-3)
        u, v, e = np.exp(logs - top) * slope
        gradient = np.array([u.sum(), v.sum(), e.sum(), -(x * u).sum(), -(y * v).sum()])
        return float((slope * (r - 0.5 * slope)).sum()), gradient

    rows = []
    for setting, scale, options in (
        ("sum, default tolerances", 1.0, {}),
        ("mean, default tolerances", 1.0 / len(runs), {}),
        ("sum times 1e4, tight", 1e4, {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 2000}),
    ):
        path = [np.array(start)]
        minimize(
            lambda t, s=scale: tuple(s * part for part in value(t)), start, jac=True,
            method="L-BFGS-B", options=options,
            callback=lambda t, seen=path: seen.append(t.copy()),
        )  # fmt: skip
        for i, t in enumerate(path):
            if i < 40 or i % 10 == 0 or i == len(path) - 1:
                rows.append(
                    {
                        "setting": setting,
                        "iteration": str(i),
                        "objective": f"{value(t)[0]:.7g}",
                        "alpha": f"{t[3]:.5f}",
                        "beta": f"{t[4]:.5f}",
                        "ln_A": f"{t[0]:.6f}",
                        "ln_B": f"{t[1]:.6f}",
                    }
                )
    return rows


def _quantiles() -> list[dict[str, str]]:
    """Tabulate the interval of the default law's optimum, for the book and the page."""
    rows = []
    law = _huber()
    for C in np.geomspace(1e17, 1e27, 21):
        row = {"C_flop": f"{C:.4e}"}
        for level, low, high in (
            (0.95, "2.5", "97.5"), (0.9, "5", "95"), (0.8, "10", "90"),
        ):  # fmt: skip
            ends = interval(law, C, level)
            assert ends.L is not None
            row |= {f"N_p{low}": f"{ends.N[0]:.5e}", f"N_p{high}": f"{ends.N[1]:.5e}"}
            if level == 0.9:
                row |= {"L_p5": f"{ends.L[0]:.5f}", "L_p95": f"{ends.L[1]:.5f}"}
        rows.append(row)
    return rows


def _resampled() -> list[dict[str, str]]:
    """Tabulate the first resamples of the default law, for plans that draw the law."""
    law = _huber().resampled
    assert isinstance(law, AdditiveLaw)  # resamples were asked for
    names = ("E", "A", "B", "alpha", "beta")
    values = [np.asarray(getattr(law, name))[:KEPT_RESAMPLES] for name in names]
    return [
        {name: f"{x:.7g}" for name, x in zip(names, row, strict=True)}
        for row in zip(*values, strict=True)
    ]


# what the cards do not say: sequence, batch, and how many accelerators a run had
_FOUR_M = "batch of 4M tokens stated; number of accelerators assumed"
_LIKE_405B = "batch between the 4M and 16M of Llama 3 405B, and accelerators, assumed"
_WHOLE_RUNS = (
    ("llama-2-7b", "llama-2-7b", 4096, 2**22, (256, 512, 1024, 2048), _FOUR_M),
    ("llama-2-70b", "llama-2-70b", 4096, 2**22, (512, 1024, 2048), _FOUR_M),
    ("llama-3-8b", "llama-3-8b", 8192, 2**23, (1024, 2048, 4096, 8192), _LIKE_405B),
    ("llama-3-70b", "llama-3-70b", 8192, 2**23, (1024, 2048, 4096, 8192), _LIKE_405B),
    ("llama-3.1-8b", "llama-3-8b", 8192, 2**23, (1024, 2048, 4096, 8192), _LIKE_405B),
    ("llama-3.1-405b", "llama-3-405b", 8192, 2**24, (8192, 16384),
     "the paper names jobs of 8,192 and 16,384; layout searched"),
)  # fmt: skip


def whole_runs() -> list[dict[str, str]]:
    """Compute what the step model says of the dense runs with published hours.

    Returns
    -------
    list of dict
        Rows of ``whole_runs.csv``: one a run and size of its cluster, [-]
    """
    rows = []
    hours = published_hours()
    for run, shape, seq_len, batch, sizes, assumed in _WHOLE_RUNS:
        for n in sizes:
            machine = Cluster(accelerator=hours[run].accelerator, n_accelerators=n)
            made = typed_plan(
                machine, SHAPES[shape], hours[run].D_tokens, batch // seq_len,
                seq_len=seq_len,
            )  # fmt: skip
            steps = intervals(made, whole_run=False, light=True).median.days
            assert steps is not None  # a time is always drawn
            rows.append(
                {
                    "run": run, "shape": shape, "n_accelerators": str(n),
                    "seq_len": str(seq_len), "batch_tokens": str(batch),
                    "layout": made.layout, "fits": str(int(closure(made).holds)),
                    "steps_hours": f"{steps[0] * 24.0 * n:.5g}", "assumed": assumed,
                }
            )  # fmt: skip
    return rows


def stored(page: str = "") -> list[Replication]:
    """Return the stored rows, of one paper or of all.

    Parameters
    ----------
    page : str, optional
        Paper, [-]

    Returns
    -------
    list of Replication
        The rows, [-]
    """
    rows = [
        Replication(**{**row, "get": float(row["get"])})  # type: ignore[arg-type]
        for row in read_rows("replications.csv")
    ]
    return [row for row in rows if page in ("", row.page)]


def html(page: str) -> str:
    """Return the stored rows of one paper as a table.

    Parameters
    ----------
    page : str
        Paper, [-]

    Returns
    -------
    str
        HTML, [-]
    """
    rows = [
        (
            row.quantity,
            f"{row.says} ({row.where})" if row.says else "-",
            _shown(row),
            row.why,
        )
        for row in stored(page)
    ]
    when = {(row.date, row.version) for row in stored(page)}
    note = ", ".join(f"computed {day} with version {v}" for day, v in sorted(when))
    head = ("quantity", "the paper says", "we get", "why")
    return html_table(head, rows, note, kind="cl-wide")


def _shown(row: Replication) -> str:
    if "[parameter]" in row.quantity:
        return f"{row.get / 1e9:.2f}e9"
    return f"{row.get:.11g}" if "objective" in row.quantity else f"{row.get:.6g}"


def _write(name: str, rows: Sequence[Mapping[str, object]]) -> None:
    with (_DATA / name).open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Compute, compare with the stored table, and store on request.

    Parameters
    ----------
    arguments : sequence of str, optional
        ``--write`` stores the tables; ``--write-runs`` that of whole runs alone,
        which needs no data, [-]

    Returns
    -------
    int
        0 if every number agrees with the stored one to 1e-6, else 1, [-]
    """
    words = sys.argv[1:] if arguments is None else list(arguments)
    if "--write-runs" in words:
        warnings.simplefilter("ignore", ExtrapolationWarning)
        _write("whole_runs.csv", whole_runs())
        return 0
    warnings.simplefilter("ignore", FitWarning)
    warnings.simplefilter("ignore", ExtrapolationWarning)
    try:
        rows = compute()
    except datasets.MissingDataError as error:
        print(error, file=sys.stderr)
        return 2
    before = {row.key: row for row in stored()} if _has_store() else {}
    wrong = 0
    for row in rows:
        old = before.get(row.key)
        same = old is not None and abs(old.get - row.get) <= 1e-6 * abs(row.get)
        wrong += not same
        mark = "" if same else "  (stored: " + (f"{old.get:.8g})" if old else "none)")
        says = f"paper {row.says}" if row.says else "not in the paper"
        print(f"{row.page}: {row.quantity}: {says}, here {row.get:.8g}{mark}")
    if "--write" in words:
        today = date.today().isoformat()
        names = [f.name for f in fields(Replication)]
        _write(
            "replications.csv",
            [{n: (asdict(r) | {"date": today})[n] for n in names} for r in rows],
        )
        _write(
            "besiroglu2024_dropped.csv",
            [{k: f"{v:.6g}" for k, v in r.items()} for r in dropped_runs()],
        )
        _write("besiroglu2024_bootstrap.csv", _quantiles())
        _write("besiroglu2024_resamples.csv", _resampled())
        _write("besiroglu2024_stopping.csv", stopping())
        return 0
    return int(wrong > 0)


def _has_store() -> bool:
    return (_DATA / "replications.csv").is_file()


if __name__ == "__main__":
    sys.exit(main())
