"""One quantity for another at a target loss, and the floors of each."""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chinchilla_lab.allocation.solving import additive, bisect, needs_loss
from chinchilla_lab.checks import InfeasibleError, one_of, positive
from chinchilla_lab.laws.families import AdditiveLaw, LossLaw
from chinchilla_lab.units import text

__all__ = ["least_params", "loss_floor", "params_for_loss", "tokens_for_loss"]

Array = NDArray[np.float64]
Infeasible = Literal["raise", "nan"]


def loss_floor(law: LossLaw, N: ArrayLike) -> Array:
    r"""Loss that a size cannot go below, however many tokens it sees.

    .. math:: L(N, \infty) = E + \left(A N^{-\alpha}\right)^k

    Parameters
    ----------
    law : LossLaw
        A law with a loss, [-]
    N : array_like
        Parameters, [parameter]

    Returns
    -------
    numpy.ndarray or float
        The floor, [nats/token]

    Examples
    --------
    >>> from chinchilla_lab.laws import BESIROGLU_2024
    >>> f"{loss_floor(BESIROGLU_2024, 7e9):.4f}"
    '1.9987'
    """
    with_loss = needs_loss(law, "floor")
    with_loss = additive(with_loss) or with_loss
    return with_loss._loss(positive("N", N)[()], np.asarray(np.inf))


def least_params(law: LossLaw, L: ArrayLike) -> Array:
    r"""Size below which a loss is out of reach, however many tokens are used.

    .. math:: N_\min = \left(\frac{A}{(L - E)^{1/k}}\right)^{1/\alpha}

    Parameters
    ----------
    law : LossLaw
        A law with a loss, [-]
    L : array_like
        Target loss, [nats/token]

    Returns
    -------
    numpy.ndarray or float
        The least size, not itself sufficient; infinite at or below the law's floor,
        [parameter]

    Examples
    --------
    >>> from chinchilla_lab.laws import BESIROGLU_2024
    >>> f"{least_params(BESIROGLU_2024, 1.968):.3e}"
    '1.193e+10'
    """
    return params_for_loss(law, np.inf, L, infeasible="nan")


def tokens_for_loss(
    law: LossLaw, N: ArrayLike, L: ArrayLike, infeasible: Infeasible = "raise"
) -> Array:
    r"""Tokens with which a model of given size reaches a loss.

    .. math:: D = \left(\frac{B}{(L - E)^{1/k} - A N^{-\alpha}}\right)^{1/\beta}

    Parameters
    ----------
    law : LossLaw
        A law with a loss, [-]
    N : array_like
        Parameters, [parameter]
    L : array_like
        Target loss, broadcast against ``N``, [nats/token]
    infeasible : {"raise", "nan"}, optional
        What to do where no amount of tokens suffices, [-]

    Returns
    -------
    numpy.ndarray or float
        Tokens, [token]

    Raises
    ------
    InfeasibleError
        If the size cannot reach the loss; names its floor and the least size.

    Examples
    --------
    >>> from chinchilla_lab.laws import BESIROGLU_2024
    >>> f"{tokens_for_loss(BESIROGLU_2024, N=7e9, L=2.1):.3e}"
    '6.201e+11'
    >>> tokens_for_loss(BESIROGLU_2024, N=7e9, L=1.968)
    Traceback (most recent call last):
        ...
    chinchilla_lab.checks.InfeasibleError: N=7B cannot reach L=1.968 with any number of tokens: its floor is 1.9987; the least N that can is above 11.9B
    """  # noqa: E501 - the message is one line, as a user sees it
    with_loss = needs_loss(law, "loss to aim at")
    one_of("infeasible", infeasible, ("raise", "nan"))
    n, target = np.broadcast_arrays(positive("N", N), positive("L", L))
    floor = np.asarray(loss_floor(with_loss, n))
    bad = target <= floor
    if infeasible == "raise" and np.any(bad):
        i = np.unravel_index(int(np.argmax(bad)), bad.shape)
        least = least_params(with_loss, target[i])
        way = (
            f"the least N that can is above {text(float(least), 'parameter')}"
            if np.isfinite(least)
            else "no size can, since it is at or below the floor of the law"
        )
        raise InfeasibleError(
            f"N={text(n[i], 'parameter')} cannot reach L={target[i]:.6g} with any "
            f"number of tokens: its floor is {floor[i]:.4f}; {way}"
        )
    closed = additive(with_loss)
    with np.errstate(invalid="ignore", divide="ignore"):
        if closed is not None:
            room = (target - closed.E) ** (1.0 / closed.k)
            room = room - closed.A * n**-closed.alpha
            D = (closed.B / room) ** (1.0 / closed.beta)
        else:
            # where there is no answer look for one that exists, and drop it below
            any_loss = with_loss._loss(n, np.exp(np.asarray(100.0)))
            reachable = np.where(bad, any_loss, target)
            D = np.exp(
                bisect(
                    lambda y: reachable - with_loss._loss(n, np.exp(y)),
                    np.full(n.shape, -200.0),
                    np.full(n.shape, 400.0),
                    "the number of tokens",
                )
            )
    found = np.where(bad, np.nan, D)
    if not np.all(bad):
        # a resampled law has one answer for each resample
        sizes = np.broadcast_to(n, bad.shape)
        with_loss.warn_outside(N=sizes[~bad], D=found[~bad])
    return found[()]


def params_for_loss(
    law: LossLaw, D: ArrayLike, L: ArrayLike, infeasible: Infeasible = "raise"
) -> Array:
    r"""Size with which a given number of tokens reaches a loss.

    .. math:: N = \left(\frac{A}{(L - E)^{1/k} - B D^{-\beta}}\right)^{1/\alpha}

    Parameters
    ----------
    law : LossLaw
        A law with a loss, [-]
    D : array_like
        Tokens; infinity asks for the least size at all, [token]
    L : array_like
        Target loss, broadcast against ``D``, [nats/token]
    infeasible : {"raise", "nan"}, optional
        What to do where no size suffices, [-]

    Returns
    -------
    numpy.ndarray or float
        Parameters, [parameter]

    Raises
    ------
    InfeasibleError
        If no size reaches the loss with these tokens; names the floor.

    Examples
    --------
    >>> from chinchilla_lab.laws import BESIROGLU_2024
    >>> f"{params_for_loss(BESIROGLU_2024, D=1.4e12, L=1.9738819):.3e}"
    '7.000e+10'
    """
    with_loss = needs_loss(law, "loss to aim at")
    one_of("infeasible", infeasible, ("raise", "nan"))
    endless = np.isposinf(np.asarray(D, dtype=np.float64))
    positive("D", np.where(endless, 1.0, D))
    d, target = np.broadcast_arrays(np.asarray(D, np.float64), positive("L", L))
    view = additive(with_loss) or with_loss
    floor = np.asarray(view._loss(np.asarray(np.inf), d))
    bad = target <= floor
    if infeasible == "raise" and np.any(bad):
        i = np.unravel_index(int(np.argmax(bad)), bad.shape)
        raise InfeasibleError(
            f"D={text(d[i], 'token')} cannot bring any size to L={target[i]:.6g}: the "
            f"floor with these tokens is {floor[i]:.4f}; use more tokens or aim higher"
        )
    if isinstance(view, AdditiveLaw):
        with np.errstate(invalid="ignore", divide="ignore"):
            room = (target - view.E) ** (1.0 / view.k) - view.B * d**-view.beta
            N = (view.A / room) ** (1.0 / view.alpha)
    else:
        # where there is no answer look for one that exists, and drop it below
        reachable = np.where(bad, view._loss(np.exp(np.asarray(100.0)), d), target)
        N = np.exp(
            bisect(
                lambda x: reachable - view._loss(np.exp(x), d),
                np.full(d.shape, -200.0),
                np.full(d.shape, 400.0),
                "the size",
            )
        )
    # with endless data an unreachable loss has no finite least size
    found = np.where(bad, np.where(np.isinf(d), np.inf, np.nan), N)
    plan = ~bad & np.isfinite(d)
    if np.any(plan):
        with_loss.warn_outside(N=found[plan], D=d[plan])
    return found[()]
