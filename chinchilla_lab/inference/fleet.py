"""What a stream of requests takes: speed of one copy, accelerators, price, break-even.

A copy reads the prompts of a batch, then writes all answers step by step. Both are
rooflines, so the speed is an upper bound; measured systems lie a slowdown below it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, inf

import numpy as np

from chinchilla_lab.checks import InfeasibleError, non_negative, scalar, whole
from chinchilla_lab.inference.decode import (
    Roofline,
    decode_step,
    largest_batch,
    prefill,
    slowdown,
)
from chinchilla_lab.inference.served import ServedModel, ServingHardware
from chinchilla_lab.tables import html_table
from chinchilla_lab.units import DAY, HOUR, text

__all__ = ["Service", "fewest_accelerators", "measured_slowdown", "service"]

MILLION = 1e6


@dataclass(frozen=True, kw_only=True, eq=False)
class Service:
    """One copy of a model at work, at a given slowdown below its roofline.

    Parameters
    ----------
    prompt : float
        Tokens of a prompt, [token]
    answer : float
        Tokens of an answer, [token]
    batch : float
        Requests handled together, [count]
    reading : Roofline
        Prompts of the batch, [-]
    writing : Roofline
        Mean step of the answers, [-]
    slowdown : float
        Time over the roofline's time, 1 for the upper bound on speed, [-]
    """

    prompt: float
    answer: float
    batch: float
    reading: Roofline
    writing: Roofline
    slowdown: float = 1.0

    @property
    def n_accelerators(self) -> int:
        """Accelerators of one copy, [count]."""
        return self.writing.n_accelerators

    @property
    def prefill_seconds(self) -> float:
        """Time to read the prompts of a batch, [s]."""
        return self.slowdown * float(self.reading.step_time)

    @property
    def step_seconds(self) -> float:
        """Time between two tokens of an answer, mean over the answer, [s]."""
        return self.slowdown * float(self.writing.step_time)

    @property
    def batch_seconds(self) -> float:
        """Time of a batch from its prompts to its last tokens, [s]."""
        return self.prefill_seconds + self.answer * self.step_seconds

    @property
    def tokens_per_second(self) -> float:
        """Prompt and answer tokens that a copy handles, [token/s]."""
        return self.batch * (self.prompt + self.answer) / self.batch_seconds

    @property
    def answers_per_second(self) -> float:
        """Answer tokens that a copy writes, [token/s]."""
        return self.batch * self.answer / self.batch_seconds

    def with_slowdown(self, factor: float) -> "Service":
        """Return the same service at another slowdown.

        Parameters
        ----------
        factor : float
            Time over the roofline's time, at least 1, [-]

        Returns
        -------
        Service
            The changed copy, [-]
        """
        slow = scalar("slowdown", factor)
        if slow < 1.0:
            raise ValueError(
                f"slowdown={slow:g} is below 1: no system beats its roofline; check "
                "the peak, the bandwidth and the bytes of a weight"
            )
        return replace(self, slowdown=slow)

    def accelerators(self, tokens_per_day: float) -> int:
        r"""Accelerators that handle a daily number of tokens at full load.

        .. math:: n \left\lceil \frac{T_\text{day}}{86400\, v} \right\rceil

        Parameters
        ----------
        tokens_per_day : float
            Prompt and answer tokens, [token/day]

        Returns
        -------
        int
            Whole copies times the accelerators n of one; peaks of demand need more,
            [count]
        """
        rate = scalar("tokens_per_day", tokens_per_day) / DAY
        return self.n_accelerators * ceil(rate / self.tokens_per_second)

    def usd_per_million(self, usd_per_hour: float) -> float:
        r"""Price of a million tokens at full load.

        .. math:: 10^6\, \frac{n\, p}{3600\, v}

        Parameters
        ----------
        usd_per_hour : float
            Rental of one accelerator, [USD/h]

        Returns
        -------
        float
            Price of prompt and answer tokens alike, [USD]
        """
        hourly = scalar("usd_per_hour", usd_per_hour) * self.n_accelerators
        return MILLION * hourly / (HOUR * self.tokens_per_second)

    def break_even(
        self, training_usd: float, usd_per_hour: float, charge: float | None = None
    ) -> float:
        r"""Tokens after which serving has cost, or earned, what training cost.

        .. math:: T = \frac{\text{training}}{\text{cost of a token}}
           \quad\text{or}\quad
           T = \frac{\text{training}}{\text{charge} - \text{cost of a token}}

        Parameters
        ----------
        training_usd : float
            What training cost, [USD]
        usd_per_hour : float
            Rental of one accelerator, [USD/h]
        charge : float, optional
            What a million tokens are sold for; without it, the tokens after which the
            bill of service equals that of training, [USD]

        Returns
        -------
        float
            Tokens served; infinite if a charge does not cover the service, [token]
        """
        cost = self.usd_per_million(usd_per_hour)
        gain = cost if charge is None else scalar("charge", charge) - cost
        return inf if gain <= 0.0 else MILLION * scalar("training", training_usd) / gain

    def _repr_html_(self) -> str:
        rows = [
            ["accelerators of a copy", f"{self.n_accelerators}"],
            ["requests together", text(self.batch, "")],
            ["prompts of a batch [ms]", f"{1e3 * self.prefill_seconds:.4g}"],
            ["a token of every answer [ms]", f"{1e3 * self.step_seconds:.4g}"],
            ["tokens of a copy [token/s]", text(self.tokens_per_second, "")],
        ]
        basis = (
            "An upper bound on speed, not a forecast."
            if self.slowdown == 1.0
            else f"Slowdown {self.slowdown:.3g} below the roofline."
        )
        return html_table(("service", "value"), rows, basis)


def service(
    model: ServedModel,
    hardware: ServingHardware,
    prompt: float,
    answer: float,
    batch: float | None = None,
) -> Service:
    r"""Rooflines of requests of one kind on one copy of a model.

    .. math:: v = \frac{B (P + A)}{t_\text{prefill}(B, P)
       + A\, t_\text{step}\left(B, P + \frac{A - 1}{2}\right)}

    Parameters
    ----------
    model : ServedModel
        Weights and cache, [-]
    hardware : ServingHardware
        Accelerators that share one copy, [-]
    prompt : float
        Tokens of a prompt P, [token]
    answer : float
        Tokens of an answer A, [token]
    batch : float, optional
        Requests together B; by default as many as memory holds, [count]

    Returns
    -------
    Service
        The upper bound on speed, slowdown 1, [-]

    Raises
    ------
    InfeasibleError
        If the weights, or the caches of the batch, do not fit.

    Notes
    -----
    The step is affine in the context, so the mean over an answer is the step at the
    mean context. Prompts are read while no answer is written. Left out are the network,
    scheduling, the arithmetic of attention and prompts shared between requests.

    References
    ----------
    :cite:`scalingbook`, chapter on inference

    Examples
    --------
    >>> model = ServedModel(N=8e9, kv_bytes_per_token=131072)
    >>> h100 = ServingHardware(peak_flops=9.89e14, bandwidth=3.35e12, memory=80e9)
    >>> one = service(model, h100, prompt=1000, answer=300)
    >>> one.batch, round(one.tokens_per_second)
    (375.0, 37655)
    >>> f"${one.with_slowdown(1.7).usd_per_million(2.0):.4f} a million tokens"
    '$0.0251 a million tokens'
    """
    P, A = scalar("prompt", prompt), scalar("answer", answer, non_negative)
    most = float(largest_batch(model, hardware, P + A))
    if most < 1.0:
        raise InfeasibleError(
            f"n_accelerators={hardware.n_accelerators} hold the weights, but no cache "
            f"of {P + A:g} tokens beside them: use more accelerators"
        )
    if batch is None and not np.isfinite(most):
        raise ValueError(
            "batch is not limited by memory, since the model keeps no cache; give batch"
        )
    B = most if batch is None else scalar("batch", batch)
    if most < B:
        raise InfeasibleError(
            f"batch={B:g}: memory holds the caches of {most:g} requests of {P + A:g} "
            "tokens; use a smaller batch or more accelerators"
        )
    return Service(
        prompt=P, answer=A, batch=B, reading=prefill(model, hardware, P, B),
        writing=decode_step(model, hardware, B, P + max(A - 1.0, 0.0) / 2.0),
    )  # fmt: skip


def fewest_accelerators(
    model: ServedModel, hardware: ServingHardware, context: float
) -> int:
    """Fewest accelerators, a power of two, that hold the weights and one request.

    Parameters
    ----------
    model : ServedModel
        Weights and cache, [-]
    hardware : ServingHardware
        One accelerator; its own number is not used, [-]
    context : float
        Tokens of the request, [token]

    Returns
    -------
    int
        Accelerators of one copy, [count]

    Examples
    --------
    >>> h100 = ServingHardware(peak_flops=9.89e14, bandwidth=3.35e12, memory=80e9)
    >>> fewest_accelerators(ServedModel(N=70e9), h100, 8192)
    2
    """
    need = model.N * model.weight_bytes
    need += scalar("context", context) * model.kv_bytes_per_token
    each = replace(hardware, n_accelerators=1).total_memory
    n = 1
    while n * each < need:
        n *= 2
    return whole("n_accelerators", n)


def measured_slowdown(
    rows: Sequence[Mapping[str, str]], model: ServedModel, hardware: ServingHardware
) -> tuple[float, float, float]:
    """Roofline over measured speed of a table of measurements.

    Parameters
    ----------
    rows : sequence of mapping
        Text of ``measured_tokens_per_s`` [token/s], and either of
        ``predicted_tokens_per_s`` [token/s] or of ``batch`` [count] and ``context``
        [token], for which the roofline of decoding is taken
    model : ServedModel
        What was measured, [-]
    hardware : ServingHardware
        On what, [-]

    Returns
    -------
    least : float
        Smallest ratio, [-]
    typical : float
        Geometric mean, [-]
    most : float
        Largest ratio, [-]

    Raises
    ------
    ValueError
        If there are no rows, or a column is missing.

    Examples
    --------
    >>> from chinchilla_lab.inference import roofline_checks
    >>> chip = ServingHardware(peak_flops=312e12, bandwidth=2e12)
    >>> ratios = measured_slowdown(roofline_checks(), ServedModel(N=6.74e9), chip)
    >>> " ".join(f"{r:.2f}" for r in ratios)
    '1.44 1.71 1.91'
    """
    names = set(rows[0]) if rows else set()
    ready = "predicted_tokens_per_s" in names
    needed = {"measured_tokens_per_s"} | (set() if ready else {"batch", "context"})
    if missing := sorted(needed - names):
        raise ValueError(
            f"measurements lack {', '.join(missing)}; columns are "
            "measured_tokens_per_s and predicted_tokens_per_s, or "
            "measured_tokens_per_s, batch and context"
        )

    def column(name: str) -> np.ndarray:
        try:
            return np.array([float(row[name]) for row in rows])
        except ValueError as fault:
            raise ValueError(f"column {name} of the measurements: {fault}") from None

    predicted = (
        column("predicted_tokens_per_s")
        if ready
        else decode_step(
            model, hardware, column("batch"), column("context")
        ).tokens_per_second
    )
    return slowdown(predicted, column("measured_tokens_per_s"))
