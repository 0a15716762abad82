"""Explorer: is a token a token?"""

from chinchilla_lab.explorers.common import law_choice, quantity
from chinchilla_lab.explorers.core import Explorer, LogSlider, Panel, Reading, Slider
from chinchilla_lab.figures.isoflop import loss_law
from chinchilla_lab.figures.serving import bill_for, costs, draw_bill, series_bill
from chinchilla_lab.figures.style import Series
from chinchilla_lab.inference import BAND, Demand, ServingCost, TrainingCost

__all__ = ["EXPLORER"]


def _inputs(
    per_day: float, days: float, prompt: float, answer: float, mfu: float,
    prefill: float, decode: float, usd_train: float, usd_serve: float,
) -> tuple[TrainingCost, ServingCost, Demand]:  # fmt: skip
    demand = Demand(
        input_tokens=prompt,
        output_tokens=answer,
        requests_per_day=per_day,
        lifetime_days=days,
    )
    return (*costs(mfu, prefill, decode, usd_train, usd_serve), demand)


def _series(law: str, quality: float, **rest: float) -> Series:
    return series_bill(law, quality, *_inputs(**rest))


def _readout(law: str, quality: float, **rest: float) -> tuple[Reading, ...]:
    prices = _inputs(**rest)
    best = bill_for(loss_law(law), quality, *prices)
    every = [float(bill_for(each, quality, *prices).plan.size_factor) for each in BAND]
    share, k = float(best.decode_share), float(best.plan.size_factor)
    total, saved = float(best.total), float(best.saved)
    sizes = f"{min(every):.2f} to {max(every):.2f}"
    return (
        quantity("tokens served T", prices[-1].tokens, "token"),
        quantity("counted as T_eff", float(best.plan.T), "token"),
        Reading(label="decode, of the serving bill", text=f"{100 * share:.0f} %",
                value=share),
        quantity("size N*", float(best.plan.N), "parameter"),
        Reading(label="size factor k", text=f"{k:.2f}", value=k),
        Reading(label="k, four coefficient sets", text=sizes, value=max(every)),
        Reading(label="lifetime bill", text=f"{total:,.0f} USD", value=total),
        Reading(label="saved", text=f"{100 * saved:.1f} %", value=saved),
    )  # fmt: skip


EXPLORER = Explorer(
    name="serving",
    title="Is a token a token?",
    controls=(
        law_choice([law.name for law in BAND]),
        LogSlider(
            name="quality", low=1e8, high=1e12, value=2e10, steps=120,
            label="quality: the loss of a compute-optimal", unit="parameter",
        ),
        LogSlider(
            name="per_day", low=1e3, high=1e9, value=2.5e6, steps=120,
            label="requests per day", unit="count",
        ),
        LogSlider(
            name="days", low=1, high=3650, value=500, steps=100,
            label="days of service", unit="count",
        ),
        LogSlider(
            name="prompt", low=1, high=1e5, value=900, steps=100,
            label="tokens of a prompt", unit="count",
        ),
        LogSlider(
            name="answer", low=1, high=1e5, value=300, steps=100,
            label="tokens of an answer", unit="count",
        ),
        Slider(
            name="mfu", low=0.1, high=0.7, value=0.4, step=0.01,
            label="utilisation in training",
        ),
        Slider(
            name="prefill", low=0.05, high=0.7, value=0.5, step=0.01,
            label="utilisation in prefill",
        ),
        LogSlider(
            name="decode", low=0.001, high=0.5, value=0.05, steps=120,
            label="utilisation in decode",
        ),
        LogSlider(
            name="usd_train", low=0.1, high=10.0, value=2.0, steps=100,
            label="accelerator-hour in training", unit="USD",
        ),
        LogSlider(
            name="usd_serve", low=0.1, high=10.0, value=2.0, steps=100,
            label="accelerator-hour in service", unit="USD",
        ),
    ),
    series=_series,
    panels=(
        Panel(
            draw=draw_bill,
            title="The bill of every size that reaches the loss",
            alt="Three stacked areas against size: training grows to the left, prefill "
            "and decode to the right; a diamond marks the lowest total.",
            width=4.2,
            height=3.3,
        ),
    ),
    readout=_readout,
)  # fmt: skip
