"""Prices and utilisations, reduced to one effective number of tokens served."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chinchilla_lab.checks import fraction, non_negative, one_of, scalar
from chinchilla_lab.inference.lifetime import (
    FLOP_PER_NT,
    Lifetime,
    lifetime_at,
    lifetime_optimal,
)
from chinchilla_lab.laws.families import LossLaw
from chinchilla_lab.tables import html_table
from chinchilla_lab.units import FLOP_PER_ND, HOUR, text

__all__ = [
    "SARDANA_2024_SERVING",
    "SARDANA_2024_TRAINING",
    "Bill",
    "Demand",
    "ServingCost",
    "TrainingCost",
    "bill",
    "cheapest",
    "effective_demand",
]

Array = NDArray[np.float64]
Peak = float | Mapping[str, float]


def _peak(peak_flops: Peak, dtype: str) -> float:
    """Return the peak of a dtype, or the one peak there is."""
    if isinstance(peak_flops, Mapping):
        rate = peak_flops[one_of("dtype", dtype, peak_flops)]
        return scalar(f"peak_flops[{dtype!r}]", rate)
    return scalar("peak_flops", peak_flops)


def _share(name: str, x: ArrayLike) -> Array:
    return fraction(name, x, "give 0.4 for 40 %, of the dense peak of this dtype")


@dataclass(frozen=True, kw_only=True)
class TrainingCost:
    """What an accelerator costs and does in training.

    Parameters
    ----------
    usd_per_hour : float
        Price of one accelerator, [USD/hour]
    peak_flops : float or mapping of str to float
        Dense peak of one accelerator, or one peak a dtype, [FLOP/s]
    mfu : float
        Model FLOP utilisation, above 0 and at most 1, [-]
    dtype : str, optional
        Which peak counts where there are several, [-]

    Examples
    --------
    >>> cost = TrainingCost(usd_per_hour=2.0, peak_flops={"bf16": 989e12}, mfu=0.4)
    >>> f"{cost.usd_per_flop:.3e}"
    '1.404e-18'
    """

    usd_per_hour: float
    peak_flops: Peak
    mfu: float
    dtype: str = "bf16"

    def __post_init__(self) -> None:
        scalar("usd_per_hour", self.usd_per_hour)
        _peak(self.peak_flops, self.dtype)
        scalar("mfu", self.mfu, _share)

    @property
    def usd_per_peak_flop(self) -> float:
        """Price of one FLOP at full use, [USD/FLOP]."""
        return self.usd_per_hour / (HOUR * _peak(self.peak_flops, self.dtype))

    @property
    def usd_per_flop(self) -> float:
        """Price of one FLOP that the model needs, [USD/FLOP]."""
        return self.usd_per_peak_flop / self.mfu


@dataclass(frozen=True, kw_only=True)
class ServingCost:
    """What an accelerator costs and does in service, prompts and answers apart.

    Parameters
    ----------
    usd_per_hour : float
        Price of one accelerator, [USD/hour]
    peak_flops : float or mapping of str to float
        Dense peak of one accelerator, or one peak a dtype, [FLOP/s]
    prefill_mfu : float
        Utilisation while prompts are read, [-]
    decode_mfu : float
        Utilisation while answers are written; from a roofline rather than from a
        guess, see :meth:`with_decode`, [-]
    dtype : str, optional
        Which peak counts where there are several, [-]

    Examples
    --------
    >>> cost = ServingCost(usd_per_hour=2.0, dtype="fp8",
    ...                    peak_flops={"bf16": 989e12, "fp8": 1978e12},
    ...                    prefill_mfu=0.5, decode_mfu=0.05)
    >>> f"{cost.decode_usd_per_flop / cost.prefill_usd_per_flop:.1f}"
    '10.0'
    """

    usd_per_hour: float
    peak_flops: Peak
    prefill_mfu: float
    decode_mfu: float
    dtype: str = "bf16"

    def __post_init__(self) -> None:
        scalar("usd_per_hour", self.usd_per_hour)
        _peak(self.peak_flops, self.dtype)
        scalar("prefill_mfu", self.prefill_mfu, _share)
        scalar("decode_mfu", self.decode_mfu, _share)

    @property
    def usd_per_peak_flop(self) -> float:
        """Price of one FLOP at full use, [USD/FLOP]."""
        return self.usd_per_hour / (HOUR * _peak(self.peak_flops, self.dtype))

    @property
    def prefill_usd_per_flop(self) -> float:
        """Price of one FLOP that a prompt needs, [USD/FLOP]."""
        return self.usd_per_peak_flop / self.prefill_mfu

    @property
    def decode_usd_per_flop(self) -> float:
        """Price of one FLOP that an answer needs, [USD/FLOP]."""
        return self.usd_per_peak_flop / self.decode_mfu

    def with_decode(self, mfu: ArrayLike) -> "ServingCost":
        """Return the same service with another decode utilisation.

        Parameters
        ----------
        mfu : float
            For example ``decode_step(...).mfu``, which is an upper bound, [-]

        Returns
        -------
        ServingCost
            The changed copy, [-]

        Examples
        --------
        >>> SARDANA_2024_SERVING.with_decode(0.05).decode_mfu
        0.05
        """
        # a price needs one batch and one context
        return replace(self, decode_mfu=scalar("mfu", mfu, _share))


@dataclass(frozen=True, kw_only=True)
class Demand:
    """Requests over the life of a model.

    Parameters
    ----------
    input_tokens : float
        Prompt of one request, [token]
    output_tokens : float
        Answer of one request, [token]
    requests : float, optional
        Requests over the lifetime, [count]
    requests_per_day : float, optional
        Requests a day, with ``lifetime_days`` in place of ``requests``, [count/day]
    lifetime_days : float, optional
        Days of service, [day]

    Raises
    ------
    ValueError
        If neither ``requests`` nor both of the others are given, or all are.

    Examples
    --------
    >>> Demand(input_tokens=900, output_tokens=300, requests_per_day=2.5e6,
    ...        lifetime_days=500).tokens
    1500000000000.0
    """

    input_tokens: float
    output_tokens: float
    requests: float | None = None
    requests_per_day: float | None = None
    lifetime_days: float | None = None

    def __post_init__(self) -> None:
        for name in ("input_tokens", "output_tokens"):
            scalar(name, getattr(self, name), non_negative)
        daily = (self.requests_per_day, self.lifetime_days)
        given = [name is not None for name in daily]
        if any(given) == (self.requests is not None) or any(given) != all(given):
            raise ValueError(
                f"requests={self.requests}, requests_per_day={self.requests_per_day}, "
                f"lifetime_days={self.lifetime_days}: give requests, or both of the "
                "others"
            )
        for name in ("requests", "requests_per_day", "lifetime_days"):
            if getattr(self, name) is not None:
                scalar(name, getattr(self, name), non_negative)

    @property
    def count(self) -> float:
        """Requests over the lifetime, [count]."""
        if self.requests is not None:
            return self.requests
        assert self.requests_per_day is not None  # checked when it was built
        assert self.lifetime_days is not None
        return self.requests_per_day * self.lifetime_days

    @property
    def prompt(self) -> float:
        """Prompt tokens over the lifetime, [token]."""
        return self.count * self.input_tokens

    @property
    def answer(self) -> float:
        """Generated tokens over the lifetime, [token]."""
        return self.count * self.output_tokens

    @property
    def tokens(self) -> float:
        """All tokens over the lifetime, T, [token]."""
        return self.prompt + self.answer


SARDANA_2024_TRAINING = TrainingCost(
    usd_per_hour=2.0, peak_flops={"bf16": 989e12}, mfu=0.5
)
"""H100 in training: defaults of cost_optimal.py, :cite:`sardana2024beyond`."""

SARDANA_2024_SERVING = ServingCost(
    usd_per_hour=2.0,
    peak_flops={"bf16": 989e12, "fp8": 1978e12},
    dtype="fp8",
    prefill_mfu=0.5,
    decode_mfu=0.01,
)
"""H100 in service: defaults of cost_optimal.py, :cite:`sardana2024beyond`."""


def effective_demand(
    training: TrainingCost, serving: ServingCost, demand: Demand
) -> float:
    r"""Tokens served, each as dear as a forward pass in training would be.

    .. math:: T_\text{eff} = \frac{c_\text{inf} U_\text{tr}}{c_\text{tr}}
       \left(\frac{T_\text{in}}{U_\text{in}} + \frac{T_\text{out}}{U_\text{out}}\right)

    with prices c of a FLOP at full use and utilisations U.

    Parameters
    ----------
    training : TrainingCost
        Price and utilisation of training, [-]
    serving : ServingCost
        Price and utilisations of service, [-]
    demand : Demand
        Requests, [-]

    Returns
    -------
    float
        The T with which the lifetime optimum of compute is that of money, [token]

    Notes
    -----
    One utilisation holds only at fixed batch and context. At the defaults of the
    reference code one request of 285 tokens counts as 5410: the utilisation of decoding
    counts as much as the number of tokens.

    References
    ----------
    :cite:`sardana2024beyond`, cost section; written as one substitution here

    Examples
    --------
    >>> one = Demand(input_tokens=70, output_tokens=215, requests=1)
    >>> f"{effective_demand(SARDANA_2024_TRAINING, SARDANA_2024_SERVING, one):.1f}"
    '5410.0'
    """
    prompt = demand.prompt / serving.prefill_mfu
    answer = demand.answer / serving.decode_mfu
    price = serving.usd_per_peak_flop / training.usd_per_flop
    return price * (prompt + answer)


@dataclass(frozen=True, kw_only=True, eq=False)
class Bill:
    """What a model costs over its life, in money.

    Parameters
    ----------
    plan : Lifetime
        The model under the effective demand, [-]
    demand : Demand
        The real demand, [-]
    training : numpy.ndarray or float
        Training, [USD]
    prefill : numpy.ndarray or float
        Reading prompts, [USD]
    decode : numpy.ndarray or float
        Writing answers, [USD]
    reference : numpy.ndarray or float
        Lifetime bill of the compute-optimal model of the same loss, [USD]
    """

    plan: Lifetime
    demand: Demand
    training: Array
    prefill: Array
    decode: Array
    reference: Array

    @property
    def total(self) -> Array:
        """Lifetime bill, [USD]."""
        return self.training + self.prefill + self.decode

    @property
    def saved(self) -> Array:
        """Share of the reference bill that is saved, [-]."""
        return 1.0 - self.total / self.reference

    @property
    def decode_share(self) -> Array:
        """Decoding as a share of the service, 0 where nothing is served, [-]."""
        served = np.asarray(self.prefill + self.decode)
        return np.divide(
            self.decode, served, out=np.zeros_like(served), where=served > 0.0
        )[()]

    def _repr_html_(self) -> str:
        cells = np.broadcast_arrays(
            self.plan.N, self.plan.D, self.training, self.prefill, self.decode,
            self.total, self.reference,
        )  # fmt: skip
        rows = [
            [
                text(n, "parameter"),
                text(d, "token"),
                *(f"{usd:,.0f}" for usd in money),
            ]
            for n, d, *money in zip(*map(np.ravel, cells), strict=True)
        ]
        head = (
            "N [parameter]",
            "D [token]",
            "training [USD]",
            "prefill [USD]",
            "decode [USD]",
            "total [USD]",
            "compute-optimal [USD]",
        )
        T, T_eff = text(self.demand.tokens, "token"), np.ravel(self.plan.T)[0]
        note = f"{T} served count as {text(float(T_eff), 'token')} of training price."
        return html_table(head, rows, note)


def _bill(
    plan: Lifetime, training: TrainingCost, serving: ServingCost, demand: Demand
) -> Bill:
    best = plan.compute_optimal
    served = FLOP_PER_NT * (
        demand.prompt * serving.prefill_usd_per_flop
        + demand.answer * serving.decode_usd_per_flop
    )
    return Bill(
        plan=plan,
        demand=demand,
        training=plan.training * training.usd_per_flop,
        prefill=FLOP_PER_NT * plan.N * demand.prompt * serving.prefill_usd_per_flop,
        decode=FLOP_PER_NT * plan.N * demand.answer * serving.decode_usd_per_flop,
        reference=best.N * (FLOP_PER_ND * best.D * training.usd_per_flop + served),
    )


def cheapest(
    law: LossLaw,
    training: TrainingCost,
    serving: ServingCost,
    demand: Demand,
    loss: ArrayLike,
) -> Bill:
    r"""Model of a given quality with the least bill for training and service.

    .. math:: \min_{N, D} \; \frac{c_\text{tr}}{U_\text{tr}}
       \left(6 N D + 2 N T_\text{eff}\right) \;\text{ at } L(N, D) = L

    Parameters
    ----------
    law : LossLaw
        A law with a closed form, [-]
    training : TrainingCost
        Price and utilisation of training, [-]
    serving : ServingCost
        Price and utilisations of service, [-]
    demand : Demand
        Requests, [-]
    loss : array_like
        Target loss, [nats/token]

    Returns
    -------
    Bill
        The plan and its itemised bill, [USD]

    References
    ----------
    :cite:`sardana2024beyond`, cost section

    Examples
    --------
    >>> from chinchilla_lab import allocation
    >>> from chinchilla_lab.laws import BESIROGLU_2024
    >>> quality = allocation.optimal_for_params(BESIROGLU_2024, 30e9).L
    >>> training = TrainingCost(usd_per_hour=2, peak_flops=989e12, mfu=0.4)
    >>> serving = ServingCost(usd_per_hour=2, peak_flops=1978e12, prefill_mfu=0.5,
    ...                       decode_mfu=0.05)
    >>> demand = Demand(input_tokens=1000, output_tokens=300, requests=1e9)
    >>> best = cheapest(BESIROGLU_2024, training, serving, demand, quality)
    >>> f"{best.plan.N:.2e} {best.reference:.0f} {best.saved:.3f}"
    '1.81e+10 280449 0.129'
    """
    T = effective_demand(training, serving, demand)
    plan = lifetime_optimal(law, T, loss=loss)
    return _bill(plan, training, serving, demand)


def bill(
    law: LossLaw,
    N: ArrayLike,
    training: TrainingCost,
    serving: ServingCost,
    demand: Demand,
    loss: ArrayLike,
) -> Bill:
    """Lifetime bill of a model of given size and quality.

    Parameters
    ----------
    law : LossLaw
        A law with a closed form, [-]
    N : array_like
        Parameters, [parameter]
    training : TrainingCost
        Price and utilisation of training, [-]
    serving : ServingCost
        Price and utilisations of service, [-]
    demand : Demand
        Requests, [-]
    loss : array_like
        Target loss, broadcast against ``N``, [nats/token]

    Returns
    -------
    Bill
        The itemised bill, [USD]

    Raises
    ------
    InfeasibleError
        If the size cannot reach the loss.

    Examples
    --------
    >>> from chinchilla_lab.laws import BESIROGLU_2024
    >>> demand = Demand(input_tokens=1000, output_tokens=300, requests=1e9)
    >>> own = bill(BESIROGLU_2024, 2e10, SARDANA_2024_TRAINING,
    ...            SARDANA_2024_SERVING.with_decode(0.05), demand, loss=2.1)
    >>> f"{own.decode_share:.2f}"
    '0.75'
    """
    T = effective_demand(training, serving, demand)
    return _bill(lifetime_at(law, N, T, loss), training, serving, demand)
