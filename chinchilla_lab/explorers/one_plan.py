"""Explorer: is the optimum a point?"""

from chinchilla_lab.explorers.common import budget, law_choice, quantity
from chinchilla_lab.explorers.core import Choice, Explorer, LogSlider, Panel, Reading
from chinchilla_lab.figures.one_plan import (
    Four,
    draw_plane,
    four_optima,
    series_plane,
)
from chinchilla_lab.figures.style import Series
from chinchilla_lab.laws import LOSS_LAWS
from chinchilla_lab.units import text

__all__ = ["EXPLORER"]

_N = ("8", "64", "512", "2048", "16384")
# repeats were measured for laws with a floor, which the joint law of Kaplan has not
_LAWS = tuple(name for name in LOSS_LAWS if not name.startswith("kaplan"))


def _four(
    C: float, n: str, days: float, unique: float, served: float, law: str
) -> Four | None:
    return four_optima(C, int(n), days, unique, served, law)


def _series(
    C: float, n: str, days: float, unique: float, served: float, law: str
) -> Series:
    return series_plane(_four(C, n, days, unique, served, law))


def _size(label: str, N: float, D: float) -> Reading:
    words = f"{text(N, 'parameter')} on {text(D, 'token')}"
    return Reading(label=label, text=words, value=N)


def _readout(
    C: float, n: str, days: float, unique: float, served: float, law: str
) -> tuple[Reading, ...]:
    four = _four(C, n, days, unique, served, law)
    if four is None:
        return (
            Reading(label="joint plan", text="no layout of any size divides and fits"),
        )
    plan, doubt = four.joint, four.doubt
    shape = plan.shape
    assert shape is not None  # joint plans are searched
    low, high = doubt.days
    cheap, dear = doubt.dollars
    call = (
        f'plan(Cluster(accelerator="h100-sxm-80gb", n_accelerators={n}), '
        f'law=PUBLISHED["{law}"], objective="lifetime", target_loss={plan.loss:.5f}, '
        f"deadline={days:g} * DAY, unique_tokens={unique:g}, "
        f"inference_tokens={served:g})"
    )
    return (
        _size("compute-optimal", four.compute.N, four.compute.D),
        _size("data-constrained", four.data.N, four.data.D),
        _size("inference-optimal", four.served.N, four.served.D),
        _size("joint plan", plan.N, plan.D),
        Reading(label="epochs", text=f"{plan.epochs:.2f}", value=plan.epochs),
        Reading(label="loss", text=f"{plan.loss:.4f} nats/token", value=plan.loss),
        Reading(
            label="days, 90 % interval",
            text=f"{plan.days:.3g}, {low:.3g} to {high:.3g}",
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
        Reading(label="the same in Python, on fine steps", text=call),
    )  # fmt: skip


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
            width=5.6,
            height=4.2,
        ),
    ),
    readout=_readout,
)  # fmt: skip
