"""From a loss to a score and back: the second step of a two-step law."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chinchilla_lab.allocation.optimum import optimal_for_loss
from chinchilla_lab.allocation.results import Allocation
from chinchilla_lab.checks import InfeasibleError, finite, positive
from chinchilla_lab.laws.families import LossLaw
from chinchilla_lab.laws.published import (
    GADRE_2024_C4,
    GADRE_2024_RPJ,
    GADRE_2024_RW,
)
from chinchilla_lab.sources import Source

__all__ = [
    "GADRE_2024_C4_ERROR",
    "GADRE_2024_RPJ_ERROR",
    "GADRE_2024_RW_ERROR",
    "LADDER_HELLASWAG",
    "SUITES",
    "ExponentialError",
    "SigmoidAccuracy",
    "TwoStepLaw",
    "price_of_accuracy",
]

Array = NDArray[np.float64]
_OWN = Source(
    cite="chinchilla_lab", where="your own coefficients", evidence="recomputed"
)


def _inside(name: str, score: ArrayLike, low: float, high: float, why: str) -> Array:
    values = positive(name, score)
    bad = (values <= low) | (values >= high)
    if np.any(bad):
        raise InfeasibleError(
            f"{name}={values[bad].flat[0]:.6g} is out of reach: it must lie above "
            f"{low:.4f} and below {high:.4f}, {why}"
        )
    return values


@dataclass(frozen=True, kw_only=True)
class SigmoidAccuracy:
    r"""Accuracy as a logistic curve of a loss.

    .. math:: \text{acc}(L) = \frac{a}{1 + e^{-k (L - L_0)}} + b

    Parameters
    ----------
    a : float
        Height, below 0 since accuracy falls with the loss, [-]
    L0 : float
        Loss of the steepest fall, [any]
    k : float
        Steepness, in the inverse unit of the loss, [any]
    b : float
        Accuracy at very low loss, [-]
    unit : str, optional
        Unit of the loss, [-]
    name : str, optional
        Task, [-]
    source : Source, optional
        Where the coefficients come from, [-]

    References
    ----------
    :cite:`ai2ladder`, step 2

    Examples
    --------
    >>> f"{LADDER_HELLASWAG.accuracy(0.62):.3f}"
    '0.906'
    """

    a: float
    L0: float
    k: float
    b: float
    unit: str = "nats/token"
    name: str = "own task"
    source: Source = _OWN

    def __post_init__(self) -> None:
        positive("k", self.k)
        positive("b", self.b)
        if not self.a < 0.0:
            raise ValueError(
                f"a={self.a:g} must be below 0: accuracy falls as the loss rises"
            )

    def accuracy(self, L: ArrayLike) -> Array:
        """Accuracy at a loss.

        Parameters
        ----------
        L : array_like
            Loss in ``unit``, [any]

        Returns
        -------
        numpy.ndarray or float
            Accuracy, [-]
        """
        x = self.k * (positive("L", L) - self.L0)
        # logaddexp: no overflow far from the fall
        return (self.b + self.a * np.exp(-np.logaddexp(0.0, -x)))[()]

    def loss(self, accuracy: ArrayLike) -> Array:
        """Loss at which an accuracy is reached.

        Parameters
        ----------
        accuracy : array_like
            Target, between ``a + b`` and ``b``, [-]

        Returns
        -------
        numpy.ndarray or float
            Loss in ``unit``, [any]

        Raises
        ------
        InfeasibleError
            If no loss gives the accuracy.
        """
        why = "the ends of the curve"
        # a loss is above 0, so the upper end is the accuracy there
        x = -self.k * self.L0
        top = float(self.b + self.a * np.exp(-np.logaddexp(0.0, -x)))
        score = _inside("accuracy", accuracy, max(self.a + self.b, 0.0), top, why)
        share = (score - self.b) / self.a
        return (self.L0 + (np.log(share) - np.log1p(-share)) / self.k)[()]


@dataclass(frozen=True, kw_only=True)
class ExponentialError:
    r"""Mean error of a suite as an exponential of a loss.

    .. math:: \text{err}(L) = \varepsilon - h e^{-s L}

    Parameters
    ----------
    epsilon : float
        Error at very high loss, [-]
    h : float
        Size of the gain, [-]
    s : float
        How fast the loss pays, [token/nats]
    name : str, optional
        Suite, [-]
    source : Source, optional
        Where the coefficients come from, [-]

    References
    ----------
    :cite:`gadre2024language`, law of the mean error

    Examples
    --------
    >>> f"{GADRE_2024_RPJ_ERROR.loss(error=0.5):.3f}"
    '2.549'
    """

    epsilon: float
    h: float
    s: float
    name: str = "own suite"
    source: Source = _OWN

    def __post_init__(self) -> None:
        for field in ("epsilon", "h", "s"):
            positive(field, getattr(self, field))

    def error(self, L: ArrayLike) -> Array:
        """Error at a loss.

        Parameters
        ----------
        L : array_like
            Loss, [nats/token]

        Returns
        -------
        numpy.ndarray or float
            Mean error, [-]

        Raises
        ------
        InfeasibleError
            If the loss is so low that the curve has left the scale of an error.
        """
        values = positive("L", L)
        found = self.epsilon - self.h * np.exp(-self.s * values)
        if np.min(found) < 0.0:
            least = np.log(self.h / self.epsilon) / self.s
            raise InfeasibleError(
                f"L={values.min():.4g} is below {least:.4g}, where the curve of "
                f"{self.name} reaches an error of 0; it says nothing further down"
            )
        return found[()]

    def accuracy(self, L: ArrayLike) -> Array:
        """Accuracy at a loss, one minus the error.

        Parameters
        ----------
        L : array_like
            Loss, [nats/token]

        Returns
        -------
        numpy.ndarray or float
            Mean accuracy, [-]
        """
        return (1.0 - self.error(L))[()]

    def loss(
        self, accuracy: ArrayLike | None = None, error: ArrayLike | None = None
    ) -> Array:
        """Loss at which an accuracy or an error is reached.

        Parameters
        ----------
        accuracy : array_like, optional
            Target accuracy, [-]
        error : array_like, optional
            Target error in its place, [-]

        Returns
        -------
        numpy.ndarray or float
            Loss, [nats/token]

        Raises
        ------
        InfeasibleError
            If no loss gives the score.
        """
        if (accuracy is None) == (error is None):
            raise ValueError(
                f"accuracy={accuracy!r} and error={error!r}: give exactly one of them"
            )
        # a loss is above 0 and so is an error
        low, high = max(self.epsilon - self.h, 0.0), self.epsilon
        why = "the ends of the curve"
        if error is None:
            assert accuracy is not None  # one of them was given
            score = 1.0 - _inside("accuracy", accuracy, 1.0 - high, 1.0 - low, why)
        else:
            score = _inside("error", error, low, high, why)
        return (-(np.log(self.epsilon - score) - np.log(self.h)) / self.s)[()]


Link = SigmoidAccuracy | ExponentialError


@dataclass(frozen=True, kw_only=True, eq=False)
class TwoStepLaw:
    """A law of the loss, then a curve from the loss to a score.

    Parameters
    ----------
    law : LossLaw
        First step, in the loss that the second step reads, [-]
    link : SigmoidAccuracy or ExponentialError
        Second step, [-]

    Notes
    -----
    The errors of both steps chain: for a model of 13B trained on 5e12 tokens the ladder
    of :cite:`ai2ladder` missed scores by 0.7 to 17.5 %.

    Examples
    --------
    >>> f"{SUITES['redpajama'].accuracy(N=6.9e9, D=1.38e11):.3f}"
    '0.528'
    """

    law: LossLaw
    link: Link

    def accuracy(self, N: ArrayLike, D: ArrayLike) -> Array:
        """Accuracy of a model of N parameters trained on D tokens.

        Parameters
        ----------
        N : array_like
            Parameters, [parameter]
        D : array_like
            Training tokens, broadcast against ``N``, [token]

        Returns
        -------
        numpy.ndarray or float
            Accuracy, [-]
        """
        return self.link.accuracy(self.law.loss(N, D))

    def loss(self, accuracy: ArrayLike) -> Array:
        """Loss at which an accuracy is reached.

        Parameters
        ----------
        accuracy : array_like
            Target, [-]

        Returns
        -------
        numpy.ndarray or float
            Loss, [nats/token]

        Raises
        ------
        InfeasibleError
            If no loss gives the accuracy.
        """
        return self.link.loss(accuracy)

    def optimal(self, accuracy: ArrayLike) -> Allocation:
        """Least compute, with its size and tokens, for an accuracy.

        Parameters
        ----------
        accuracy : array_like
            Target, [-]

        Returns
        -------
        Allocation
            N [parameter], D [token], C [FLOP], same shape as ``accuracy``

        Raises
        ------
        InfeasibleError
            If the curve, or the floor of the law, keeps the accuracy out of reach.
        """
        return optimal_for_loss(self.law, self.loss(accuracy))


def _suite(name: str, epsilon: float, h: float, s: float) -> ExponentialError:
    return ExponentialError(
        epsilon=epsilon,
        h=h,
        s=s,
        name=f"mean of 17 tasks, trained on {name}",
        source=Source(
            cite="gadre2024language",
            where=f"repository, fit of six {name} runs",
            evidence="recomputed",
            note="the repository does not print the coefficients",
        ),
    )


GADRE_2024_RPJ_ERROR = _suite("RedPajama", 0.8570, 2.2065, 0.7146)
GADRE_2024_C4_ERROR = _suite("C4", 0.8497, 2.0789, 0.7561)
GADRE_2024_RW_ERROR = _suite("RefinedWeb", 0.8653, 2.2148, 0.7070)

LADDER_HELLASWAG = SigmoidAccuracy(
    a=-0.7363,
    L0=0.7626,
    k=13.45,
    b=1.0,
    unit="bits/byte",
    name="HellaSwag",
    source=Source(
        cite="ai2ladder",
        where="step 2, refit on 20 small runs with the artificial point (0, 1)",
        evidence="recomputed",
        note="reads a task loss in bits per byte, not a validation loss",
    ),
)

SUITES = {
    "redpajama": TwoStepLaw(law=GADRE_2024_RPJ, link=GADRE_2024_RPJ_ERROR),
    "c4": TwoStepLaw(law=GADRE_2024_C4, link=GADRE_2024_C4_ERROR),
    "refinedweb": TwoStepLaw(law=GADRE_2024_RW, link=GADRE_2024_RW_ERROR),
}
"""Two-step laws of one suite of 17 tasks by training data; an epoch in that repository
is a checkpoint, no data repeats."""


def price_of_accuracy(
    two_step: TwoStepLaw, accuracy: ArrayLike, points: ArrayLike = 0.01
) -> Array:
    r"""Compute, as a factor, that some more accuracy costs at the optimum.

    .. math:: \frac{C(\text{acc} + \Delta)}{C(\text{acc})}, \qquad
       d \ln C = \frac{2 \, d\,\text{acc}}{\alpha (L - E) s (\varepsilon - \text{err})}

    The second form holds for an exponential error with tied exponents.

    Parameters
    ----------
    two_step : TwoStepLaw
        Both steps, [-]
    accuracy : array_like
        Accuracy from which is counted, [-]
    points : array_like, optional
        Accuracy added, below 0 for less, as a share: one point is 0.01, [-]

    Returns
    -------
    numpy.ndarray or float
        Compute over compute, [-]

    Raises
    ------
    InfeasibleError
        If the target is out of reach.

    Notes
    -----
    Read backwards it turns an error of a forecast into an error of a budget.

    Examples
    --------
    >>> f"{price_of_accuracy(SUITES['redpajama'], 0.50):.2f}"
    '1.51'
    """
    start = positive("accuracy", accuracy)
    added = finite("points", points)
    least = two_step.optimal(start).C
    return np.asarray(two_step.optimal(start + added).C / least)[()]
