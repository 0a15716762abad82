"""Crossing a threshold of the loss: with which size, and what it costs."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chinchilla_lab.allocation.optimum import optimal_for_loss
from chinchilla_lab.allocation.price import least_size_factor, overhead
from chinchilla_lab.allocation.solving import additive, bisect, needs_loss
from chinchilla_lab.checks import InfeasibleError, non_negative, positive
from chinchilla_lab.laws.families import AdditiveLaw, LossLaw
from chinchilla_lab.tables import html_table
from chinchilla_lab.units import text

__all__ = [
    "Crossing",
    "crossing_cost",
    "crossing_with_tokens",
    "neutral_bonus",
    "size_beyond_loss",
    "tie_demand",
]

Array = NDArray[np.float64]


def additive_law(law: LossLaw, what: str) -> AdditiveLaw:
    """Return the law in additive letters, or say what needs them."""
    closed = additive(needs_loss(law, what))
    if closed is None:
        raise TypeError(
            f"{law.label} is no power law in N and D, so its {what} has no form "
            "without a budget; compare allocation.tokens_for_loss at your sizes instead"
        )
    return closed


@dataclass(frozen=True, kw_only=True, eq=False)
class Crossing:
    """A loss threshold crossed with another size than the compute-optimal one.

    Parameters
    ----------
    size_factor : numpy.ndarray or float
        Size over the compute-optimal one, k, [-]
    token_factor : numpy.ndarray or float
        Tokens over the compute-optimal ones, u, [-]
    demand_factor : numpy.ndarray or float
        Tokens served over compute-optimal training tokens, tau, [-]
    """

    size_factor: Array
    token_factor: Array
    demand_factor: Array

    @property
    def training(self) -> Array:
        """Training compute beyond the compute-optimal model's, as a share, [-]."""
        return self.size_factor * self.token_factor - 1.0

    @property
    def lifetime(self) -> Array:
        """Lifetime compute beyond the compute-optimal model's, as a share, [-]."""
        tau = self.demand_factor
        spent = self.size_factor * (3.0 * self.token_factor + tau)
        return spent / (3.0 + tau) - 1.0

    def _repr_html_(self) -> str:
        cells = np.broadcast_arrays(
            self.size_factor, self.token_factor, self.demand_factor, self.training,
            self.lifetime,
        )  # fmt: skip
        rows = [
            [text(k, ""), text(u, ""), f"{tau:.3g}", f"{train:+.1%}", f"{life:+.1%}"]
            for k, u, tau, train, life in zip(*map(np.ravel, cells), strict=True)
        ]
        head = (
            "size N/N_c [-]",
            "tokens D/D_c [-]",
            "demand T/D_c [-]",
            "training compute",
            "lifetime compute",
        )
        return html_table(head, rows)


def crossing_cost(
    law: LossLaw, size_factor: ArrayLike, demand_factor: ArrayLike = 0.0
) -> Crossing:
    r"""Cost of crossing a loss threshold with a larger or smaller model.

    .. math:: \frac{k (3u + \tau)}{3 + \tau} - 1, \qquad
       u = \left[1 - \frac{\beta}{\alpha}\left(k^{-\alpha} - 1\right)\right]^{-1/\beta}

    Parameters
    ----------
    law : LossLaw
        A law with a closed form; only its exponents matter, [-]
    size_factor : array_like
        Size over the compute-optimal size of the threshold, k, [-]
    demand_factor : array_like, optional
        Tokens served over compute-optimal training tokens, broadcast against
        ``size_factor``, [-]

    Returns
    -------
    Crossing
        Tokens and costs relative to the compute-optimal model, [-]

    Raises
    ------
    InfeasibleError
        If the size cannot reach the loss with any number of tokens.

    Notes
    -----
    Under a law of the loss alone the compute-optimal model crosses for the least
    training compute: a larger under-trained one never pays for training, and less and
    less as demand grows. It pays where tokens are short, or where the capability
    depends on size beyond the loss, see :func:`size_beyond_loss`.

    References
    ----------
    :cite:`devries2023smol`, training part

    Examples
    --------
    >>> from chinchilla_lab.laws import BESIROGLU_2024
    >>> c = crossing_cost(BESIROGLU_2024, [2.0, 0.5])
    >>> c.token_factor.round(2), c.training.round(3)
    (array([0.57, 2.52]), array([0.148, 0.259]))
    """
    closed = additive_law(law, "cost of crossing")
    k, tau = np.broadcast_arrays(
        positive("size_factor", size_factor),
        non_negative("demand_factor", demand_factor),
    )
    u = overhead(closed, k).token_factor
    return Crossing(size_factor=k[()], token_factor=u, demand_factor=tau[()])


def crossing_with_tokens(law: LossLaw, token_factor: ArrayLike) -> Crossing:
    r"""Size that crosses a loss threshold with a given share of the tokens.

    .. math:: k = \left[1 - \frac{\alpha}{\beta}\left(u^{-\beta} - 1\right)
       \right]^{-1/\alpha}

    Parameters
    ----------
    law : LossLaw
        A law with a closed form; only its exponents matter, [-]
    token_factor : array_like
        Tokens, each seen once, over the compute-optimal ones, u, [-]

    Returns
    -------
    Crossing
        The size and its cost, [-]

    Raises
    ------
    InfeasibleError
        If no size reaches the loss with so few tokens.

    Examples
    --------
    >>> from chinchilla_lab.laws import BESIROGLU_2024
    >>> c = crossing_with_tokens(BESIROGLU_2024, 0.5)
    >>> f"{c.size_factor:.2f} {c.training:+.0%}"
    '2.51 +26%'
    """
    closed = additive_law(law, "size for few tokens")
    u = positive("token_factor", token_factor)
    room = 1.0 - np.expm1(-closed.beta * np.log(u)) * closed.alpha / closed.beta
    if np.any(room <= 0.0):
        least = (1.0 + closed.beta / closed.alpha) ** (-1.0 / closed.beta)
        raise InfeasibleError(
            f"token_factor={u[room <= 0.0].flat[0]:.4g} cannot bring any size to the "
            f"loss; under {law.label} it must be above {least:.4f}, or tokens repeat"
        )
    k = room ** (-1.0 / closed.alpha)
    return Crossing(
        size_factor=k[()], token_factor=u[()], demand_factor=np.zeros_like(u)[()]
    )


def tie_demand(law: LossLaw, small: ArrayLike, large: ArrayLike) -> Array:
    r"""Demand at which a smaller and a larger model cost the same to cross.

    .. math:: \tau = \frac{3 (k_1 u_1 - k_2 u_2)}{k_2 - k_1}

    Parameters
    ----------
    law : LossLaw
        A law with a closed form; only its exponents matter, [-]
    small : array_like
        Smaller size over the compute-optimal one, k_1, [-]
    large : array_like
        Larger size over it, k_2, broadcast against ``small``, [-]

    Returns
    -------
    numpy.ndarray or float
        Demand factor; above it the smaller model is cheaper. Negative where it is
        cheaper in training already, [-]

    Examples
    --------
    >>> from chinchilla_lab.laws import BESIROGLU_2024
    >>> f"{tie_demand(BESIROGLU_2024, 0.5, 2.0):.3f}"
    '0.223'
    """
    k_1, k_2 = np.broadcast_arrays(positive("small", small), positive("large", large))
    bad = k_1 >= k_2
    if np.any(bad):
        raise ValueError(
            f"small={k_1[bad].flat[0]:g} must be below large={k_2[bad].flat[0]:g}: "
            "exchange them"
        )
    more = crossing_cost(law, k_1).training - crossing_cost(law, k_2).training
    return np.asarray(3.0 * more / (k_2 - k_1))[()]


def neutral_bonus(law: LossLaw, L: ArrayLike, T: ArrayLike) -> Array:
    r"""Worth of size beyond the loss that cancels the pull of serving.

    .. math:: g = \frac{\alpha A N_c^{-\alpha}}{3} \, \frac{T}{D_c}

    Parameters
    ----------
    law : LossLaw
        A law with a closed form and k = 1, [-]
    L : array_like
        Threshold of the loss, [nats/token]
    T : array_like
        Tokens served over the lifetime, broadcast against ``L``, [token]

    Returns
    -------
    numpy.ndarray or float
        g for which the compute-optimal size stays the best, [nats/token]

    Examples
    --------
    >>> from chinchilla_lab import allocation
    >>> from chinchilla_lab.laws import BESIROGLU_2024
    >>> ten = allocation.optimal_for_params(BESIROGLU_2024, 10e9)
    >>> f"{neutral_bonus(BESIROGLU_2024, ten.L, T=ten.D):.4f}"
    '0.0186'
    """
    closed = _plain(law)
    best = optimal_for_loss(closed, L)
    t = non_negative("T", T)
    pull = closed.alpha * closed.A * best.N**-closed.alpha / 3.0
    return np.asarray(pull * t / best.D)[()]


def _plain(law: LossLaw) -> AdditiveLaw:
    closed = additive_law(law, "size beyond the loss")
    if closed.k != 1.0:
        raise TypeError(
            f"{law.label} has an outer exponent k={closed.k:g}; the worth of size is "
            "added to the loss itself, so use a law with k=1"
        )
    return closed


def size_beyond_loss(
    law: LossLaw, L: ArrayLike, g: ArrayLike, T: ArrayLike = 0.0
) -> Crossing:
    r"""Size that crosses for the least compute if size counts beyond the loss.

    .. math::

       L(N, D) - g \ln\frac{N}{N_c} \le L_0, \qquad
       \frac{\alpha A N^{-\alpha} + g}{\beta B D^{-\beta}} = 1 + \frac{T}{3D}

    Parameters
    ----------
    law : LossLaw
        A law with a closed form and k = 1, [-]
    L : array_like
        Threshold of the loss at the compute-optimal size N_c, [nats/token]
    g : array_like
        What an e-fold of size is worth beyond the loss; only evidence at equal loss
        can show it, without such evidence it is 0, [nats/token]
    T : array_like, optional
        Tokens served over the lifetime, [token]

    Returns
    -------
    Crossing
        Size, tokens and costs relative to the compute-optimal model, [-]

    Examples
    --------
    >>> from chinchilla_lab import allocation
    >>> from chinchilla_lab.laws import BESIROGLU_2024
    >>> ten = allocation.optimal_for_params(BESIROGLU_2024, 10e9)
    >>> f"{size_beyond_loss(BESIROGLU_2024, ten.L, g=0.02).size_factor:.2f}"
    '1.57'
    """
    closed = _plain(law)
    target, worth, t = np.broadcast_arrays(
        positive("L", L), non_negative("g", g), non_negative("T", T)
    )
    best = optimal_for_loss(closed, target)
    excess = target - closed.E
    alpha, beta = closed.alpha, closed.beta

    def room(x: Array) -> Array:
        """Loss that is left for the data, at N = N_c e^x."""
        model = excess * beta / (alpha + beta) * np.exp(-alpha * x)
        return np.asarray(excess - model + worth * x)

    def tokens(left: Array) -> Array:
        return np.asarray((closed.B / left) ** (1.0 / beta))

    def rising(x: Array) -> Array:
        left = np.maximum(room(x), 1e-300)
        D = tokens(left)
        model = excess * beta / (alpha + beta) * np.exp(-alpha * x)
        bill = 1.0 + t / (3.0 * D)
        return np.asarray(beta * left * bill - alpha * model - worth)

    zero = np.zeros(target.shape)
    # with g = 0 the root is the start itself, so begin a little before it
    start = zero + np.log(least_size_factor(closed)) - 1e-9
    low = bisect(room, start, zero, "the least size") + 1e-12
    x = bisect(rising, low, zero + 1.0 / beta + 10.0 / alpha, "the best size")
    D = tokens(room(x))
    return Crossing(
        size_factor=np.exp(x)[()],
        token_factor=np.asarray(D / best.D)[()],
        demand_factor=np.asarray(t / best.D)[()],
    )
