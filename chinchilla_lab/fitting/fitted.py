"""What a fit returns: a law that carries its resamples, and how to keep it."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chinchilla_lab import __version__
from chinchilla_lab.allocation.intervals import Interval, interval
from chinchilla_lab.checks import fraction
from chinchilla_lab.fitting.judging import stated_count
from chinchilla_lab.fitting.runs import Runs
from chinchilla_lab.laws.families import AdditiveLaw, AllocationLaw, Fitted, Law
from chinchilla_lab.sources import Source
from chinchilla_lab.tables import html_table

__all__ = [
    "Estimates",
    "FittedAllocation",
    "FittedLaw",
    "FittedLossLaw",
    "Valley",
    "load_law",
    "provenance",
    "seeded",
]

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Valley:
    """One budget and the parabola through its runs.

    Parameters
    ----------
    C : float
        Budget, geometric mean of its runs, [FLOP]
    N : float
        Size at the bottom of the parabola, [parameter]
    D : float
        Tokens at the bottom of the parabola, [token]
    L : float
        Loss at the bottom, [nats/token]
    best_N : float
        Size of the best run, [parameter]
    n_runs : int
        Runs on the budget, [-]
    half_width : float
        Half the range of the grid of sizes, as a factor: 4 means from a fourth to four
        times its middle, [-]
    trouble : str
        Why the budget is left out; empty if it is used, [-]
    """

    C: float
    N: float
    D: float
    L: float
    best_N: float
    n_runs: int
    half_width: float
    trouble: str = ""

    @property
    def interior(self) -> bool:
        """Whether the minimum lies inside the grid of sizes."""
        return not self.trouble


@dataclass(frozen=True, kw_only=True)
class Estimates:
    """Fitted quantities with the interval that the resamples give.

    Parameters
    ----------
    level : float
        Coverage, [-]
    values : dict
        Value, lower and upper end by name; the ends are NaN without resamples, [any]
    correlations : dict
        Correlation over the resamples by pair of names, [-]
    """

    level: float
    values: Mapping[str, tuple[float, float, float]]
    correlations: Mapping[str, float]

    def __getitem__(self, name: str) -> tuple[float, float, float]:
        return self.values[name]

    def rows(self) -> list[list[str]]:
        """Return the estimates as formatted cells."""
        rows = [
            [name, f"{value:.4g}", *(["-"] * 2 if np.isnan(low) else
             [f"{low:.4g}", f"{high:.4g}"])]
            for name, (value, low, high) in self.values.items()
        ]  # fmt: skip
        return rows + [
            [f"correlation of {pair}", f"{value:.3f}", "-", "-"]
            for pair, value in self.correlations.items()
        ]

    def __repr__(self) -> str:
        return "\n".join(
            f"{name}: {value}" + (f" ({low} to {high})" if low != "-" else "")
            for name, value, low, high in self.rows()
        )

    def _repr_html_(self) -> str:
        head = ("quantity", "value", f"{self.level:.0%} from", "to")
        return html_table(head, self.rows())


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedLaw(Law):
    """A law fitted to runs: it stands wherever a published law stands.

    Parameters
    ----------
    estimator : {"parametric", "isoflop", "envelope"}
        How it was fitted, [-]
    settings : dict
        Objective and options, [-]
    n_runs : int
        Runs behind it, [-]
    runs_digest : str
        Hash of the runs' numbers, [-]
    filters : tuple of str
        What was done to the runs before, [-]
    seed : str
        Seed of the resamples, or what the caller's generator was, [-]
    version : str
        Version of the library that fitted it, [-]
    objective : float
        Value of the objective at the fit, [-]
    notes : tuple of str
        Warnings that the fit gave, [-]
    """

    estimator: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    n_runs: int = 0
    runs_digest: str = ""
    filters: tuple[str, ...] = ()
    seed: str = ""
    version: str = __version__
    objective: float = float("nan")
    notes: tuple[str, ...] = ()

    def interval(self, C: ArrayLike, level: float = 0.9) -> Interval:
        """Return the interval of the optimum over the resamples.

        Parameters
        ----------
        C : array_like
            Training compute, [FLOP]
        level : float, optional
            Coverage, [-]

        Returns
        -------
        Interval
            Ends of N [parameter], D [token], their ratio and, for laws that know one,
            the loss [nats/token]

        Raises
        ------
        ValueError
            If the law was fitted without resamples.
        """
        return interval(self, C, level)

    def estimates(self, level: float = 0.9) -> Estimates:
        """Return exponents and scale with their intervals.

        Parameters
        ----------
        level : float, optional
            Coverage, [-]

        Returns
        -------
        Estimates
            alpha, beta, E, a and G, or a alone for a law without loss, [any]

        Notes
        -----
        A and B stand here only as correlations of their logarithms with the exponents:
        a resample that moves alpha moves ln A along, so an interval of A alone says
        nothing about the law.
        """
        tail = 50.0 * (1.0 - float(fraction("level", level)))
        many = self.resampled
        values = {}
        for name in self._reported:
            ends = (float("nan"),) * 2
            if many is not None:
                ends = tuple(np.nanpercentile(getattr(many, name), [tail, 100 - tail]))
            values[name] = (float(getattr(self, name)), float(ends[0]), float(ends[1]))
        pairs = {}
        if isinstance(many, AdditiveLaw):
            few = np.size(many.alpha) < 2
            for scale, power in () if few else (("A", "alpha"), ("B", "beta")):
                both = np.log(getattr(many, scale)), np.asarray(getattr(many, power))
                pairs[f"ln {scale} and {power}"] = float(np.corrcoef(*both)[0, 1])
        return Estimates(level=level, values=values, correlations=pairs)

    @property
    def _reported(self) -> tuple[str, ...]:
        return ("a",)

    @property
    def _letters(self) -> tuple[str, ...]:
        """Names of the coefficients that differ from resample to resample."""
        return ()

    def method(self) -> str:
        """Return one line that says how the law was fitted, to repeat it by."""
        options = ", ".join(f"{k}={v}" for k, v in self.settings.items())
        steps = "".join(f"; {step}" for step in self.filters)
        return (
            f"{self.estimator} fit of {self.n_runs} runs (hash {self.runs_digest}), "
            f"{options}, seed {self.seed or 'none'}, "
            f"chinchilla_lab {self.version}{steps}"
        )

    def _repr_html_(self) -> str:
        notes = "".join(f"<p>{note}</p>" for note in (self.method(), *self.notes))
        return self.estimates()._repr_html_() + notes

    def save(self, path: str | Path) -> None:
        """Write the law with its resamples and its history as JSON.

        Parameters
        ----------
        path : str or Path
            File to write; :func:`load_law` reads it back, [-]
        """
        own = {f.name: getattr(self, f.name) for f in fields(FittedLaw)}
        own.pop("resampled")
        own["fitted"] = {k: getattr(self.fitted, k) for k in ("N", "D", "C")}
        own["source"] = {f.name: getattr(self.source, f.name) for f in fields(Source)}
        own.pop("claims")
        letters = {name: getattr(self, name) for name in self._letters}
        draws = {
            name: np.asarray(getattr(self.resampled, name)).tolist()
            for name in self._letters
            if self.resampled is not None
        }
        record: dict[str, Any] = {
            "kind": type(self).__name__,
            "law": own,
            "coefficients": letters,
        }
        if isinstance(self, FittedAllocation):
            record["gives"] = self.gives
            record["valleys"] = [asdict(valley) for valley in self.valleys]
        record["resampled"] = draws
        text = json.dumps(_plain(record), indent=1, allow_nan=False)
        Path(path).write_text(text + "\n", encoding="utf-8")


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedLossLaw(FittedLaw, AdditiveLaw):
    """An additive law fitted to runs, with its resamples.

    See :class:`FittedLaw` for what it remembers of the fit, and
    :class:`~chinchilla_lab.laws.families.AdditiveLaw` for the equation.
    """

    @property
    def _reported(self) -> tuple[str, ...]:
        outer = ("k",) if self.settings.get("k") == "fit" else ()
        return ("alpha", "beta", "E", "a", "G", *outer)

    @property
    def _letters(self) -> tuple[str, ...]:
        return ("E", "A", "B", "alpha", "beta", "k")


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedAllocation(FittedLaw, AllocationLaw):
    """A power law of the optimum fitted to budgets, with its resamples.

    See :class:`FittedLaw` for what it remembers of the fit, and
    :class:`~chinchilla_lab.laws.families.AllocationLaw` for the equation.

    Parameters
    ----------
    valleys : tuple
        What each budget said, for fits of budgets, [-]
    """

    valleys: tuple[Valley, ...] = ()

    @property
    def _letters(self) -> tuple[str, ...]:
        return ("coefficient", "exponent", "C_unit")


def _plain(value: Any) -> Any:
    """Return a value in the types of JSON; a number that is none becomes null."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _number(value: Any) -> float:
    return float("nan") if value is None else float(value)


def seeded(rng: int | np.random.Generator) -> np.random.Generator:
    """Return a generator for a seed, or the generator itself.

    Parameters
    ----------
    rng : int or numpy.random.Generator
        Seed or generator, [-]

    Returns
    -------
    numpy.random.Generator
        The generator, [-]

    Raises
    ------
    ValueError
        If it is neither.
    """
    whole_number = isinstance(rng, int | np.integer) and not isinstance(rng, bool)
    if isinstance(rng, np.random.Generator) or (whole_number and rng >= 0):
        return np.random.default_rng(rng)
    raise ValueError(
        f"rng={rng!r} is no seed; give a whole number from 0 on or a numpy Generator"
    )


def provenance(
    runs: Runs, name: str, rng: int | np.random.Generator | None
) -> dict[str, Any]:
    """Return what every fit remembers of its runs.

    Parameters
    ----------
    runs : Runs
        The runs, [-]
    name : str
        Name of the law, [-]
    rng : int, numpy.random.Generator or None
        What the resamples were drawn with, [-]

    Returns
    -------
    dict
        Fields of :class:`FittedLaw`, [-]
    """
    seed = ""
    if rng is not None:
        drawn = isinstance(rng, np.random.Generator)
        seed = "a generator of the caller" if drawn else str(int(rng))  # type: ignore[arg-type]
    return {
        "name": name,
        "label": name,
        "N_counts": stated_count(runs),
        "fitted": runs.ranges,
        "source": Source(
            cite="chinchilla_lab", where=runs.source, evidence="recomputed"
        ),
        "n_runs": len(runs),
        "runs_digest": runs.digest,
        "filters": runs.filters,
        "seed": seed,
    }


def load_law(path: str | Path) -> FittedLaw:
    """Read a law that :meth:`FittedLaw.save` wrote.

    Parameters
    ----------
    path : str or Path
        The file, [-]

    Returns
    -------
    FittedLaw
        The law with its resamples, [-]

    Raises
    ------
    ValueError
        If the file is missing or no such law.
    """
    file = Path(path)
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
        own = dict(record["law"])
        own["fitted"] = Fitted(
            **{k: v and (v[0], v[1]) for k, v in own["fitted"].items()}
        )
        own["source"] = Source(**own["source"])
        own["objective"] = _number(own["objective"])
        own["filters"], own["notes"] = tuple(own["filters"]), tuple(own["notes"])
        letters = record["coefficients"]
        draws: dict[str, Any] = {k: np.array(v) for k, v in record["resampled"].items()}
        if record["kind"] == "FittedLossLaw":
            many = AdditiveLaw(**draws) if draws else None
            return FittedLossLaw(**own, **letters, resampled=many)
        gives = record["gives"]
        few = AllocationLaw(**draws, gives=gives) if draws else None
        valleys = tuple(
            Valley(
                **{  # type: ignore[arg-type]
                    k: v if k in ("trouble", "n_runs") else _number(v)
                    for k, v in valley.items()
                }
            )
            for valley in record["valleys"]
        )
        return FittedAllocation(
            **own, **letters, gives=gives, resampled=few, valleys=valleys
        )
    except OSError as error:
        raise ValueError(f"path={str(file)!r} cannot be read: {error}") from None
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(
            f"{file.name} holds no fitted law ({error!r}); write one with "
            "FittedLaw.save"
        ) from None
