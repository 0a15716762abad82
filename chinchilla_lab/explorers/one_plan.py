"""Explorer: is the optimum a point?"""

from chinchilla_lab.explorers.common import budget, law_choice, quantity
from chinchilla_lab.explorers.core import Choice, Explorer, LogSlider, Panel, Reading
from chinchilla_lab.figures.one_plan import (
    Four,
    draw_plane,
    four_optima,
    on_plane,
    series_plane,
)
from chinchilla_lab.figures.style import Series
from chinchilla_lab.laws import LOSS_LAWS
from chinchilla_lab.planning.results import Plan
from chinchilla_lab.units import text

__all__ = ["EXPLORER"]

_N = ("8", "64", "512", "2048", "16384")
# repeats were measured for laws with a floor, which the joint law of Kaplan has not
_LAWS = tuple(name for name in LOSS_LAWS if not name.startswith("kaplan"))


def _four(
    C: float, n: str, days: float, unique: float, served: float, law: str
) -> Four:
    return four_optima(C, int(n), days, unique, served, law)


def _series(
    C: float, n: str, days: float, unique: float, served: float, law: str
) -> Series:
    return series_plane(_four(C, n, days, unique, served, law))


def _size(four: Four, label: str, plan: Plan) -> Reading:
    words = f"{text(plan.N, 'parameter')} on {text(plan.D, 'token')}"
    if not on_plane(four, plan):
        words += ", off the chart"
    return Reading(label=label, text=words, value=plan.N)


def _readout(
    C: float, n: str, days: float, unique: float, served: float, law: str
) -> tuple[Reading, ...]:
    four = _four(C, n, days, unique, served, law)
    of_law = (
        _size(four, "compute-optimal", four.compute),
        _size(four, "data-constrained", four.data),
        _size(four, "inference-optimal", four.served),
    )
    plan, doubt = four.joint, four.doubt
    if plan is None or doubt is None:
        none = "none: no layout of any size divides and fits"
        return (*of_law, Reading(label="joint plan", text=none))
    shape = plan.shape
    assert shape is not None  # joint plans are searched
    low, high = doubt.days
    cheap, dear = doubt.dollars
    joint = _size(four, "joint plan", plan)
    if four.late:
        missed = text(plan.days - days, "", 2)
        words = f"none: the fastest, {joint.text}, misses the deadline by {missed} days"
        joint = Reading(label="joint plan", text=words, value=plan.N)
    # a plan that is late has no deadline to be asked with
    wanted = (
        'objective="time", '
        if four.late
        else f'objective="lifetime", deadline={days:g} * DAY, '
        f"inference_tokens={served:g}, "
    )
    call = (
        f'plan(Cluster(accelerator="h100-sxm-80gb", n_accelerators={n}), '
        f'law=PUBLISHED["{law}"], {wanted}target_loss={plan.loss:.5f}, '
        f"unique_tokens={unique:g})"
    )
    return (
        *of_law,
        joint,
        Reading(label="epochs", text=f"{plan.epochs:.2f}", value=plan.epochs),
        Reading(label="loss", text=f"{plan.loss:.4f} nats/token", value=plan.loss),
        Reading(
            label="days, 90 % interval",
            text=f"{text(plan.days, '')}, {text(low, '')} to {text(high, '')}",
            value=plan.days,
        ),
        Reading(
            label="training, 90 % interval",
            text=f"{text(plan.dollars, 'USD')}, {text(cheap, 'USD')} to "
            f"{text(dear, 'USD')}",
            value=plan.dollars,
        ),
        quantity("serving", plan.serving_dollars, "USD"),
        Reading(
            label="N, over laws and resamples",
            text=f"{text(doubt.N[0], 'parameter')} to {text(doubt.N[1], 'parameter')}",
            value=plan.N,
        ),
        Reading(label="what binds", text=four.binding),
        Reading(
            label="shape and layout",
            text=f"{shape.n_layers} × {shape.d_model:,}, {plan.layout}, "
            f"{plan.utilisation:.1%} of the peak",
        ),
        Reading(
            label="the fastest in Python" if four.late else "the same in Python",
            text=call,
        ),
    )


EXPLORER = Explorer(
    name="one_plan",
    title="Is the optimum a point?",
    controls=(
        budget(1e22),
        Choice(
            name="n", options={n: f"{int(n):,}" for n in _N}, value="64",
            label="H100 accelerators",
        ),
        LogSlider(
            name="days", low=1, high=120, value=6, steps=48, unit="day",
            label="deadline",
        ),
        LogSlider(
            name="unique", low=1e10, high=2e13, value=5e10, steps=66, unit="token",
            label="unique tokens",
        ),
        LogSlider(
            name="served", low=1e9, high=1e15, value=1e12, steps=48, unit="token",
            label="tokens to be served",
        ),
        law_choice(_LAWS),
    ),
    series=_series,
    panels=(
        Panel(
            draw=draw_plane,
            title="Four optima of one budget",
            alt="Size and tokens over the compute-optimal ones: serving pulls the "
            "point up and left along equal loss, scarce data left along the budget; "
            " the deadline bounds the plan from above.",
            width=4.1,
            height=4.4,
        ),
    ),
    readout=_readout,
)  # fmt: skip
