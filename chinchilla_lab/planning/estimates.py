"""Days and dollars of a run that is no more than a size, tokens and a utilisation."""

from dataclasses import dataclass

from chinchilla_lab.checks import fraction, positive
from chinchilla_lab.cluster.accelerators import Price
from chinchilla_lab.cluster.calibration import whole_run_mfu
from chinchilla_lab.cluster.cost import Cost, as_price
from chinchilla_lab.cluster.hardware import Cluster
from chinchilla_lab.shape.run import training_time
from chinchilla_lab.tables import html_table
from chinchilla_lab.units import FLOP_PER_ND, text

__all__ = ["UTILISATION_BAND", "RunEstimate", "estimate_run"]

UTILISATION_BAND = (0.13, 0.6)
"""Share of the dense peak that 6ND reach over whole published runs, from the lowest
(Llama 3.1 8B, 13.9 %) to what single steps of dense models reach, [-]."""


@dataclass(frozen=True, kw_only=True)
class RunEstimate:
    """What a run takes: a point if the utilisation is known, else a band.

    Parameters
    ----------
    C : float
        Compute 6ND, [FLOP]
    utilisation : tuple of float
        Lowest, assumed and highest share of the peak, [-]
    days : tuple of float
        Days at the highest, assumed and lowest utilisation, [day]
    hours : tuple of float
        The same as accelerator-hours, [h]
    cost : Cost, optional
        From the fewest hours at the lowest price to the most at the highest, [USD]
    assumed : bool
        Whether nobody gave the utilisation, [-]
    """

    C: float
    utilisation: tuple[float, float, float]
    days: tuple[float, float, float]
    hours: tuple[float, float, float]
    cost: Cost | None
    assumed: bool

    def _repr_html_(self) -> str:
        rows = [
            [f"{u:.1%}", f"{d:.3g}", f"{h:,.0f}"]
            for u, d, h in zip(
                reversed(self.utilisation), self.days, self.hours, strict=True
            )
        ]
        if not self.assumed:
            rows = rows[1:2]
        word = "nobody gave a utilisation: the band of published runs"
        caption = f"6ND = {text(self.C, 'FLOP')}"
        return html_table(
            ("6ND over peak", "time [day]", "accelerator-hours [h]"),
            rows,
            f"{caption}; {word}" if self.assumed else caption,
        )


def estimate_run(
    N: float,
    D: float,
    cluster: Cluster,
    utilisation: float | None = None,
    like: tuple[float, float, float] | None = None,
    price: Price | str | None = None,
    dtype: str = "bf16",
) -> RunEstimate:
    r"""Estimate days, hours and dollars of a run.

    .. math:: t = \frac{6 N D}{n P u}

    Parameters
    ----------
    N : float
        Parameters that a token uses: the active ones of a mixture, [parameter]
    D : float
        Training tokens, [token]
    cluster : Cluster
        The machine, [-]
    utilisation : float, optional
        Share u of the dense peak; without it the answer is a band, [-]
    like : tuple of float, optional
        N, D and accelerator-hours of a run on the same chip whose utilisation to take,
        [parameter, token, h]
    price : Price or str, optional
        Rental, or words such as ``"2.5@2026-11"``; by default the chip's, where one is
        known, [USD/h]
    dtype : {"bf16", "fp8", "tf32"}, optional
        Format whose peak is taken, [-]

    Returns
    -------
    RunEstimate
        Days [day], hours [h] and dollars [USD]

    Raises
    ------
    ValueError
        If both a utilisation and another run are given.

    Examples
    --------
    >>> glm = Cluster(accelerator="a100-sxm-40gb", n_accelerators=768)
    >>> f"{estimate_run(130e9, 400e9, glm, utilisation=0.25).days[1]:.1f} days"
    '60.3 days'
    """
    if utilisation is not None and like is not None:
        raise ValueError("give utilisation or like, not both: each sets the other")
    if like is not None:
        utilisation = whole_run_mfu(*like, cluster.chip, dtype)
    assumed = utilisation is None
    low, high = UTILISATION_BAND
    middle = (low * high) ** 0.5 if utilisation is None else utilisation
    middle = float(fraction("utilisation", middle))
    shares = (low, middle, high) if assumed else (middle,) * 3
    C = FLOP_PER_ND * float(positive("N", N)) * float(positive("D", D))
    n, peak = cluster.n_accelerators, cluster.chip.peak(dtype)
    times = [training_time(C, n, peak, u) for u in reversed(shares)]
    hours = tuple(float(t.accelerator_hours) for t in times)
    cost = None
    if price is not None or cluster.chip.price is not None:
        quote = as_price(price, cluster.chip)
        cost = Cost(
            low=hours[0] * quote.low, high=hours[2] * quote.high, hours=hours[1],
            price=quote,
        )  # fmt: skip
    return RunEstimate(
        C=C,
        utilisation=(shares[0], shares[1], shares[2]),
        days=(float(times[0].days), float(times[1].days), float(times[2].days)),
        hours=(hours[0], hours[1], hours[2]),
        cost=cost,
        assumed=assumed,
    )
