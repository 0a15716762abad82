"""How far a machine moves the best size: from a slope, or from measured speeds."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chinchilla_lab.allocation.optimum import optimal_for_loss, optimal_for_params
from chinchilla_lab.allocation.solving import additive, needs_loss
from chinchilla_lab.allocation.targets import tokens_for_loss
from chinchilla_lab.checks import InfeasibleError, positive
from chinchilla_lab.laws.families import LossLaw
from chinchilla_lab.planning.losses import silent
from chinchilla_lab.tables import html_table
from chinchilla_lab.units import FLOP_PER_ND, text

__all__ = [
    "MeasuredShift",
    "Shift",
    "SizeShift",
    "best_on_curve",
    "measured_shift",
    "mfu_slope",
    "shift",
    "size_shift",
]

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Shift:
    """How far a slope of the utilisation moves the best size.

    Parameters
    ----------
    k : numpy.ndarray or float
        Best size over the compute-optimal one of the same loss, [-]
    gain : numpy.ndarray or float
        Time of the compute-optimal size over that of the best, less one, [-]
    """

    k: Array | float
    gain: Array | float


def shift(law: LossLaw, slope: ArrayLike) -> Shift:
    r"""Return how far a utilisation that grows with size moves the best size.

    .. math:: \ln k = \frac{\varepsilon}{\alpha + \beta}, \qquad
       \ln(1 + \text{gain}) = \frac{\varepsilon^2}{2 (\alpha + \beta)}

    Parameters
    ----------
    law : LossLaw
        Law of the additive form, [-]
    slope : array_like
        d ln(utilisation) / d ln N, [-]

    Returns
    -------
    Shift
        Factor of the size and relative time gained, [-]

    Raises
    ------
    TypeError
        If the law has no additive form.

    Notes
    -----
    Quadratic in ln N around the optimum at a fixed loss; the time is 6ND over the
    utilisation. The true valley is flatter on the side of large sizes: at a slope of
    0.22 the best size is 1.45 times and the gain 3.9 %.

    References
    ----------
    :cite:`besiroglu2024chinchilla` for the exponents

    Examples
    --------
    >>> from chinchilla_lab.laws.published import BESIROGLU_2024
    >>> found = shift(BESIROGLU_2024, 0.22)
    >>> f"{found.k:.2f}, {found.gain:.1%}"
    '1.36, 3.4%'
    """
    form = additive(law)
    if form is None:
        raise TypeError(
            f"{law.label} has no additive form, whose exponents this needs; use a law "
            "such as besiroglu-2024"
        )
    e = np.asarray(slope, dtype=np.float64)
    stiff = form.alpha + form.beta
    return Shift(k=np.exp(e / stiff)[()], gain=np.expm1(e**2 / (2.0 * stiff))[()])


def best_on_curve(
    law: LossLaw, N: ArrayLike, utilisation: ArrayLike, loss: float
) -> Shift:
    """Return the best size where the utilisation was measured at a few sizes.

    Parameters
    ----------
    law : LossLaw
        Law with a loss, [-]
    N : array_like
        Measured sizes, rising, [parameter]
    utilisation : array_like
        Share of the peak at each; its logarithm is interpolated in ln N, [-]
    loss : float
        Loss to reach, [nats/token]

    Returns
    -------
    Shift
        Best size over the compute-optimal one of that loss, and the time that the
        latter takes beyond the best, [-]

    Raises
    ------
    ValueError
        If fewer than two sizes are given or they do not rise.
    InfeasibleError
        If no size between the ends reaches the loss.

    Examples
    --------
    >>> from chinchilla_lab.laws.published import BESIROGLU_2024
    >>> flat = best_on_curve(BESIROGLU_2024, [1e9, 1e11], [0.4, 0.4], 2.2)
    >>> bool(abs(flat.k - 1.0) < 0.01)
    True
    """
    x = np.log(positive("N", N))
    y = np.log(positive("utilisation", utilisation))
    if x.ndim != 1 or len(x) < 2 or np.any(np.diff(x) <= 0.0):
        raise ValueError("N must be at least two sizes that rise")
    grid = np.linspace(x[0], x[-1], 4001)
    D = np.asarray(tokens_for_loss(law, np.exp(grid), loss, infeasible="nan"))
    with np.errstate(invalid="ignore"):
        work = grid + np.log(D)
    time = work - np.interp(grid, x, y)
    if not np.any(np.isfinite(time)):
        raise InfeasibleError(
            f"loss={loss:.6g} is out of reach of every size from {np.exp(x[0]):.3g} to "
            f"{np.exp(x[-1]):.3g}; aim higher"
        )
    best, naive = int(np.nanargmin(time)), int(np.nanargmin(work))
    return Shift(
        k=float(np.exp(grid[best] - grid[naive])),
        gain=float(np.expm1(time[naive] - time[best])),
    )


@dataclass(frozen=True, kw_only=True)
class SizeShift:
    """What a slope of utilisation against size does to the best size.

    Parameters
    ----------
    slope : float
        d ln MFU / d ln N, [-]
    size_factor : float
        Best size over the compute-optimal one of the same loss, [-]
    gain : float
        Time that the naive size takes beyond the best, as a share of it, [-]
    """

    slope: float
    size_factor: float
    gain: float


def mfu_slope(N: tuple[float, float], mfu: tuple[float, float]) -> float:
    r"""Slope of utilisation against size between two measured models.

    .. math:: \epsilon = \frac{\ln(\text{mfu}_2/\text{mfu}_1)}{\ln(N_2/N_1)}

    Parameters
    ----------
    N : tuple of float
        Two sizes, [parameter]
    mfu : tuple of float
        Their utilisations, [-]

    Returns
    -------
    float
        The slope, [-]

    Examples
    --------
    >>> f"{mfu_slope((32e9, 1024e9), (0.7147, 0.648)):.3f}"
    '-0.028'
    """
    sizes, shares = positive("N", N), positive("mfu", mfu)
    return float(np.log(shares[1] / shares[0]) / np.log(sizes[1] / sizes[0]))


def size_shift(law: LossLaw, slope: float) -> SizeShift:
    r"""Shift of the best size where larger models use a machine better or worse.

    .. math:: \ln k \approx \frac{\epsilon}{\alpha + \beta}, \qquad
       \frac{\Delta t}{t} \approx \frac{\epsilon^2}{2(\alpha + \beta)}

    Parameters
    ----------
    law : LossLaw
        A law with a closed form, [-]
    slope : float
        d ln MFU / d ln N, as of :func:`mfu_slope`, [-]

    Returns
    -------
    SizeShift
        Size factor k and the time that it gains, [-]

    Raises
    ------
    TypeError
        If the law has no closed form.

    Notes
    -----
    Time to a loss is N D(N) / mfu(N). Near the optimum ln(N D) is a parabola in ln N
    of curvature alpha + beta, and the slope tilts it: the valley is flat, so the size
    moves by little and gains less.

    Examples
    --------
    >>> from chinchilla_lab.laws import BESIROGLU_2024
    >>> found = size_shift(BESIROGLU_2024, 0.22)
    >>> f"{found.size_factor:.2f} {found.gain:.1%}"
    '1.36 3.4%'
    """
    found = shift(law, slope)
    # to first order, as the equation says
    return SizeShift(
        slope=slope, size_factor=float(found.k), gain=float(np.log1p(found.gain))
    )


@dataclass(frozen=True, kw_only=True)
class MeasuredShift:
    """Best size on a machine whose utilisation was measured at some sizes.

    Parameters
    ----------
    loss : float
        Loss that both sizes reach, [nats/token]
    naive_N : float
        Compute-optimal size for it, [parameter]
    best_N : float
        Size that reaches it soonest, [parameter]
    naive_seconds : float
        Time of the first, [s]
    best_seconds : float
        Time of the second, [s]
    """

    loss: float
    naive_N: float
    best_N: float
    naive_seconds: float
    best_seconds: float

    @property
    def size_factor(self) -> float:
        """Best size over the compute-optimal one, [-]."""
        return self.best_N / self.naive_N

    @property
    def extra_time(self) -> float:
        """Time that the naive size takes beyond the best, as a share of it, [-]."""
        return self.naive_seconds / self.best_seconds - 1.0

    def _repr_html_(self) -> str:
        rows = [
            ["compute-optimal", text(self.naive_N, "parameter"),
             text(self.naive_seconds, "s")],
            ["soonest", text(self.best_N, "parameter"), text(self.best_seconds, "s")],
        ]  # fmt: skip
        caption = (
            f"loss {self.loss:.4f}; {self.extra_time:.1%} longer at the naive size"
        )
        return html_table(("size", "N [parameter]", "time"), rows, caption)


def measured_shift(
    law: LossLaw,
    N: ArrayLike,
    mfu: ArrayLike,
    peak_flops: float,
    naive_N: float | None = None,
    loss: float | None = None,
) -> MeasuredShift:
    r"""Find the size that reaches a loss soonest, from measured utilisations.

    .. math:: \min_N \frac{6 N D(N, L)}{P\,\text{mfu}(N)}

    Parameters
    ----------
    law : LossLaw
        A law with a loss, [-]
    N : array_like
        Sizes that were measured, [parameter]
    mfu : array_like
        Their utilisations, 6ND over the peak, [-]
    peak_flops : float
        Dense peak of the whole machine, [FLOP/s]
    naive_N : float, optional
        Size whose compute-optimal loss is to be reached, [parameter]
    loss : float, optional
        The loss itself, [nats/token]

    Returns
    -------
    MeasuredShift
        Both sizes and their times, [parameter] and [s]

    Raises
    ------
    ValueError
        If fewer than two sizes are given, or not one of ``naive_N`` and ``loss``.

    Notes
    -----
    ln MFU is interpolated linearly in ln N; outside the measured sizes nothing is
    claimed, so the best size is one between them.

    Examples
    --------
    >>> from chinchilla_lab.laws import BESIROGLU_2024
    >>> flat = measured_shift(BESIROGLU_2024, [1e9, 1e11], [0.4, 0.4], 1e17, 1e10)
    >>> f"{flat.size_factor:.3f}"
    '1.000'
    """
    sizes, shares = positive("N", N).ravel(), positive("mfu", mfu).ravel()
    if len(sizes) < 2 or len(sizes) != len(shares):
        raise ValueError(
            f"N has {len(sizes)} and mfu {len(shares)} entries; give two or more sizes "
            "and one utilisation for each"
        )
    if (naive_N is None) == (loss is None):
        raise ValueError("give naive_N or loss, one of them")
    quiet = silent(needs_loss(law, "time to a loss"))
    plan = (
        optimal_for_params(quiet, float(naive_N))
        if naive_N is not None
        else optimal_for_loss(quiet, float(loss or 0.0))
    )
    target = float(plan.L) if plan.L is not None else 0.0
    order = np.argsort(sizes)
    x, y = np.log(sizes[order]), np.log(shares[order])

    def seconds(ln_n: Array) -> Array:
        n = np.exp(ln_n)
        D = tokens_for_loss(quiet, n, target, infeasible="nan")
        return FLOP_PER_ND * n * D / (peak_flops * np.exp(np.interp(ln_n, x, y)))

    grid = np.linspace(x[0], x[-1], 20_001)
    times = seconds(grid)
    i = int(np.nanargmin(times))
    first = np.log(float(plan.N))
    naive = float(seconds(np.asarray(first)))
    soonest, size = min(
        (float(times[i]), float(np.exp(grid[i]))), (naive, float(plan.N))
    )
    return MeasuredShift(
        loss=target, naive_N=float(plan.N), best_N=size, naive_seconds=naive,
        best_seconds=soonest,
    )  # fmt: skip
