"""What a run costs: accelerator-hours, dollars, energy; rented or owned."""

from dataclasses import dataclass

from chinchilla_lab.checks import fraction, non_negative, positive, whole
from chinchilla_lab.cluster.accelerators import Accelerator, Price, find
from chinchilla_lab.cluster.calibration import whole_run_mfu
from chinchilla_lab.cluster.fields import shown
from chinchilla_lab.sources import read_rows
from chinchilla_lab.tables import html_table
from chinchilla_lab.units import DAY, HOUR, parse, text

__all__ = [
    "Cost",
    "Energy",
    "PublishedHours",
    "as_price",
    "break_even_utilisation",
    "energy",
    "owned_price",
    "published_hours",
    "rental_cost",
]

JOULES_PER_KWH = 3.6e6


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Money as a range, since prices are ranges.

    Parameters
    ----------
    low : float
        At the lowest price, [USD]
    high : float
        At the highest price, [USD]
    hours : float
        Accelerator-hours that are paid for, [h]
    price : Price
        Range, date and source of the price, [USD/h]
    """

    low: float
    high: float
    hours: float
    price: Price

    @property
    def middle(self) -> float:
        """Geometric mean of both ends, [USD]."""
        return float((self.low * self.high) ** 0.5)

    @property
    def text(self) -> str:
        """Both ends in words, or the one figure that a single quote gives, [USD]."""
        if self.low == self.high:
            return f"{text(self.low, 'USD')}, single quote"
        return f"{text(self.low, 'USD')} to {text(self.high, 'USD')}"

    def _repr_html_(self) -> str:
        rows = [
            ["accelerator-hours", f"{self.hours:,.0f}"],
            ["cost", self.text],
        ]
        return html_table(("cost", "value"), rows, self.price.text)


def as_price(
    price: Price | str | None, accelerator: Accelerator | str | None = None
) -> Price:
    """Return a price as a dated range.

    Parameters
    ----------
    price : Price or str or None
        A range with its date; your own quote in words, ``"2.5@2026-11"`` or
        ``"2:3@2026-11"``; or nothing to take the chip's, [USD/h]
    accelerator : Accelerator or str, optional
        The chip whose price is meant if none is given, [-]

    Returns
    -------
    Price
        The range, [USD/h]

    Raises
    ------
    ValueError
        If the price has no date, or none is given and none of the chip is known.

    Notes
    -----
    A bare number is refused. Prices of one card differ by a factor of two within a
    month and halve within a year: a cost without the date of its price cannot be used.

    Examples
    --------
    >>> as_price(None, "h100-sxm-80gb").low, as_price("2:3@2026-11").text
    (1.99, '2 to 3 USD/h, 2026-11; own')
    """
    if isinstance(price, Price):
        return price
    if isinstance(price, str):
        amount, at, date = (part.strip() for part in price.partition("@"))
        if not at or not date:
            raise ValueError(_dateless(price))
        low, _, high = amount.partition(":")
        first = parse(low, "USD")
        return Price(
            low=first, high=parse(high, "USD") if high else first, date=date,
            source="own",
        )  # fmt: skip
    if price is not None:
        raise ValueError(_dateless(price))
    if accelerator is None:
        raise ValueError(
            "price is missing; give USD per accelerator-hour and when it was asked, "
            "price='2.5@2026-11'"
        )
    chip = find(accelerator)
    if chip.price is None:
        raise ValueError(
            f"no price of {chip.name} is known; give price='2.5@2026-11' or "
            "price='2:4@2026-11' in USD per accelerator-hour, with its month"
        )
    return chip.price


def _dateless(price: object) -> str:
    ends = price if isinstance(price, tuple | list) else (price,)
    amount = ":".join(str(end) for end in ends)
    return (
        f"price={shown(price)} has no date; write it with the day, month or year "
        f"of the offer, {shown(f'{amount}@2026-11')}, or give Price(low=..., "
        "high=..., date='2026-11', source=...)"
    )


def rental_cost(
    hours: float,
    price: Price | str,
    share_kept: float = 1.0,
    utilisation: float = 1.0,
) -> Cost:
    r"""Dollars of a run from its productive accelerator-hours.

    .. math:: \text{cost} = \frac{\text{hours}\cdot\text{price}}
       {\text{ETTR}\cdot\text{utilisation}}

    Parameters
    ----------
    hours : float
        Accelerator-hours of work, failures aside, [h]
    price : Price or str
        Rental of an accelerator, or words such as ``"2.5@2026-11"``, [USD/h]
    share_kept : float, optional
        What failures leave of the time, [-]
    utilisation : float, optional
        Share of the paid hours in which the run has the machine, [-]

    Returns
    -------
    Cost
        From the lowest to the highest price, [USD]

    Examples
    --------
    >>> rental_cost(2.788e6, "2@2024-12").low
    5576000.0
    """
    kept = float(fraction("share_kept", share_kept))
    paid = float(positive("hours", hours)) / (
        kept * float(fraction("utilisation", utilisation))
    )
    quote = as_price(price)
    return Cost(low=paid * quote.low, high=paid * quote.high, hours=paid, price=quote)


@dataclass(frozen=True, kw_only=True)
class Energy:
    """Energy of a run and the power it draws.

    Parameters
    ----------
    joules : float
        Energy with cooling and conversion, [J]
    watts : float
        Power while it runs, [W]
    """

    joules: float
    watts: float

    @property
    def kwh(self) -> float:
        """The same energy, [kWh]."""
        return self.joules / JOULES_PER_KWH

    @property
    def mwh(self) -> float:
        """The same energy, [MWh]."""
        return self.kwh / 1000.0


def energy(
    hours: float, n_accelerators: int, accelerator: Accelerator | str, pue: float
) -> Energy:
    r"""Energy of a run at the rated power of its accelerators.

    .. math:: E = \text{hours}\cdot P\cdot\text{PUE}

    Parameters
    ----------
    hours : float
        Accelerator-hours, [h]
    n_accelerators : int
        Accelerators that run at once, [-]
    accelerator : Accelerator or str
        The chip or its key, [-]
    pue : float
        Power of the hall over that of its machines, at least 1; no default, since no
        verified figure was found, [-]

    Returns
    -------
    Energy
        Energy [J] and power [W]

    Raises
    ------
    ValueError
        If ``pue`` is below 1, or the chip's power is not known.

    Notes
    -----
    Hosts and network are not in the rated power of an accelerator.

    Examples
    --------
    >>> f"{energy(30.84e6, 16384, 'h100-sxm-80gb', pue=1.0).kwh / 1e6:.1f} GWh"
    '21.6 GWh'
    """
    factor = float(positive("pue", pue))
    if factor < 1.0:
        raise ValueError(f"pue={factor:g} is below 1: the hall draws what is in it")
    power = float(find(accelerator).need("power")) * factor
    return Energy(
        joules=float(positive("hours", hours)) * HOUR * power,
        watts=power * whole("n_accelerators", n_accelerators),
    )


def owned_price(
    capital: float,
    years: float,
    utilisation: float,
    power: float = 0.0,
    pue: float = 1.0,
    usd_per_kwh: float = 0.0,
) -> float:
    r"""Price of an hour of an accelerator of one's own.

    .. math:: \frac{K}{T\cdot 365.25\cdot 24\cdot u}
       + P\cdot\text{PUE}\cdot c_\text{el}

    Parameters
    ----------
    capital : float
        Price K of an accelerator with its share of all else, [USD]
    years : float
        Life T, [year]
    utilisation : float
        Share u of its life in which it works, [-]
    power : float, optional
        Power P while it works, [W]
    pue : float, optional
        Power of the hall over that of its machines, [-]
    usd_per_kwh : float, optional
        Electricity, [USD/kWh]

    Returns
    -------
    float
        Price of a used hour, [USD/h]

    Notes
    -----
    All figures are yours: no verified capital cost was found. Staff, space and interest
    are left out.

    Examples
    --------
    >>> f"{owned_price(40000, years=4, utilisation=0.7):.2f}"
    '1.63'
    """
    hours = float(positive("years", years)) * 365.25 * 24.0
    worked = hours * float(fraction("utilisation", utilisation))
    running = float(non_negative("power", power)) / 1000.0 * float(
        positive("pue", pue)
    )  # fmt: skip
    return float(positive("capital", capital)) / worked + running * float(
        non_negative("usd_per_kwh", usd_per_kwh)
    )


def break_even_utilisation(
    rent: float,
    capital: float,
    years: float,
    power: float = 0.0,
    pue: float = 1.0,
    usd_per_kwh: float = 0.0,
) -> float:
    r"""Share of its life that an owned accelerator must work to beat renting.

    .. math:: u = \frac{K}{8766\,T\,(p - P\cdot\text{PUE}\cdot c_\text{el})}

    Parameters
    ----------
    rent : float
        Price p of a rented hour, [USD/h]
    capital : float
        Price K of an accelerator with its share of all else, [USD]
    years : float
        Life T, [year]
    power : float, optional
        Power P while it works, [W]
    pue : float, optional
        Power of the hall over that of its machines, [-]
    usd_per_kwh : float, optional
        Electricity, [USD/kWh]

    Returns
    -------
    float
        Utilisation; above 1 owning never pays, infinite if electricity alone costs the
        rent, [-]

    Examples
    --------
    >>> u = break_even_utilisation(rent=2.0, capital=40000, years=4)
    >>> f"{u:.2f} {owned_price(40000, 4, u):.2f}"
    '0.57 2.00'
    """
    full = owned_price(capital, years, 1.0)
    running = owned_price(capital, years, 1.0, power, pue, usd_per_kwh) - full
    room = float(positive("rent", rent)) - running
    return full / room if room > 0.0 else float("inf")


@dataclass(frozen=True, kw_only=True)
class PublishedHours:
    """Accelerator-hours of a run, as its authors state them.

    Parameters
    ----------
    id : str
        Key, [-]
    model : str
        Name, [-]
    N_active : float
        Parameters that a token uses, [parameter]
    D_tokens : float
        Training tokens, [token]
    hours : float
        Accelerator-hours, [h]
    accelerator : str
        Key of the chip; empty where the table of accelerators has none, [-]
    dtype : str
        Format of its matrix products; empty without a chip, [-]
    n_accelerators : int, optional
        Accelerators of the largest job, where stated, [-]
    usd_per_hour : float, optional
        Price that the authors reckon with, [USD/h]
    source : str
        Key of the source, [-]
    where : str
        Place in it, [-]
    notes : str
        What to know beside, [-]
    """

    id: str
    model: str
    N_active: float
    D_tokens: float
    hours: float
    accelerator: str
    dtype: str
    n_accelerators: int | None
    usd_per_hour: float | None
    source: str
    where: str
    notes: str

    @property
    def days(self) -> float:
        """Days on the stated number of accelerators, [day]."""
        if self.n_accelerators is None:
            raise ValueError(f"{self.id} does not say how many accelerators it used")
        return self.hours * HOUR / self.n_accelerators / DAY

    @property
    def mfu(self) -> float:
        """6ND over what the peak would have done in these hours, [-]."""
        return whole_run_mfu(
            self.N_active, self.D_tokens, self.hours, self.accelerator, self.dtype
        )


def published_hours() -> dict[str, PublishedHours]:
    """Return published runs with their accelerator-hours.

    Returns
    -------
    dict
        Runs by id, [-]

    Examples
    --------
    >>> published_hours()["deepseek-v3"].hours
    2788000.0
    """
    return {
        row["id"]: PublishedHours(
            id=row["id"], model=row["model"], N_active=float(row["N_active"]),
            D_tokens=float(row["D_tokens"]), hours=float(row["accelerator_hours"]),
            accelerator=row["accelerator"], dtype=row["dtype"],
            n_accelerators=int(row["n_accelerators"] or 0) or None,
            usd_per_hour=float(row["usd_per_hour"] or 0.0) or None,
            source=row["source"], where=row["where"], notes=row["notes"],
        )
        for row in read_rows("accelerator_hours.csv")
    }  # fmt: skip
