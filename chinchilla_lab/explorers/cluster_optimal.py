"""Explorer: does a cluster want another size?"""

from math import isfinite

from chinchilla_lab.explorers.common import law_choice, quantity
from chinchilla_lab.explorers.core import (
    Choice,
    Explorer,
    LogSlider,
    Panel,
    Reading,
    Toggle,
)
from chinchilla_lab.figures.planning import (
    SizeStudy,
    draw_sizes,
    draw_utilisation,
    series_sizes,
    size_study,
)
from chinchilla_lab.figures.style import Series
from chinchilla_lab.planning import naive_size, time_at
from chinchilla_lab.units import text

__all__ = ["EXPLORER"]

_N = ("8", "64", "512", "2048", "16384", "65536")
_CAPS = {"inf": "as the law of batches says", "16777216": "16.8M tokens",
         "4194304": "4.2M tokens", "1048576": "1.0M tokens"}  # fmt: skip
_LINKS = ("50", "25", "5", "1")


def _study(
    n: str, days: float, cap: str, network: str, law: str, search: bool, failures: bool
) -> SizeStudy:
    return size_study(
        int(n), days, float(cap), float(network), law, search, failures
    )  # fmt: skip


def _series(
    n: str, days: float, cap: str, network: str, law: str, search: bool, failures: bool
) -> Series:
    return series_sizes(_study(n, days, cap, network, law, search, failures))


def _readout(
    n: str, days: float, cap: str, network: str, law: str, search: bool, failures: bool
) -> tuple[Reading, ...]:
    study = _study(n, days, cap, network, law, search, failures)
    best, near, limits = study.best, study.naive, study.limits
    if best is None or near is None or limits is None:
        return (Reading(label="best N", text="no layout divides and fits here"),)
    naive, budget, taste = naive_size(best)
    lost = (time_at(best, near) - 1.0) * best.days
    low, high = study.flat
    given = "1 day" if days == 1 else f"{days:g} days"
    of_one = "" if search else ", of one shape each: divisibility, not size"
    shape = (study.median_shape - 1.0) * best.days
    tokens = best.batch_tokens or 0.0
    tenth = [f"{r.limit} {r.time_share:.1%}" for r in limits.rows if r.binds]
    return (
        quantity("best N", best.N, "parameter"),
        quantity("naive N, at 40 % of the peak", naive, "parameter"),
        Reading(
            label="best over naive",
            text=f"{budget * taste:.2f} = {budget:.2f} (budget) × {taste:.2f} (taste)",
            value=budget * taste,
        ),
        Reading(label="6ND over the peak", text=f"{best.utilisation:.1%}",
                value=best.utilisation),
        Reading(label="N within 1 % of the time",
                text=f"{text(low, 'parameter')} to {text(high, 'parameter')}"
                if high > low else "no other size"),
        Reading(label="lost by the naive N",
                text=f"{lost:.2f} of {given}{of_one}" if isfinite(lost)
                else "all: it cannot reach the loss", value=lost),
        Reading(label="lost by the median shape of the best size",
                text=f"{shape:.2f} of {given}" if search
                else "one shape has no median", value=shape),
        quantity("batch", tokens, "token"),
        Reading(label="time that ten percent more would save",
                text=", ".join(tenth) or "none does"),
        Reading(label="loss", text=f"{best.loss:.4f} nats/token", value=best.loss),
        Reading(label="shape and layout",
                text=f"{best.shape.n_layers} × {best.shape.d_model:,}, {best.layout}"
                if best.shape is not None else "none"),
    )  # fmt: skip


EXPLORER = Explorer(
    name="cluster_optimal",
    title="Does a cluster want another size?",
    controls=(
        Choice(
            name="n", options={n: f"{int(n):,}" for n in _N}, value="64",
            label="H100 accelerators",
        ),
        LogSlider(
            name="days", low=1, high=120, value=30, steps=24, unit="day",
            label="deadline",
        ),
        Choice(name="cap", options=_CAPS, value="inf", label="largest batch"),
        Choice(
            name="network", options={g: f"{g} GB/s" for g in _LINKS}, value="50",
            label="network for each accelerator",
        ),
        law_choice(),
        Toggle(name="search", value=True, label="search shapes"),
        Toggle(name="failures", value=True, label="failures"),
    ),
    series=_series,
    panels=(
        Panel(
            draw=draw_sizes,
            title="Time to the same loss",
            alt="Time against size: a flat dotted valley of the law, grey points of "
            "single shapes scattered above it, a line through the best of each size.",
            height=3.3,
        ),
        Panel(
            draw=draw_utilisation,
            title="Utilisation of every shape",
            alt="Utilisation against size: points of single shapes scatter far more at "
            "one size than the best of them change from size to size.",
            height=3.3,
        ),
    ),
    readout=_readout,
)  # fmt: skip
