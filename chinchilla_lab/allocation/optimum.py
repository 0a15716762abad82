"""The optimum of a budget, and the inverses of that question."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chinchilla_lab.allocation.results import Allocation
from chinchilla_lab.allocation.solving import (
    additive,
    bisect,
    needs_loss,
    optimum,
    slopes,
)
from chinchilla_lab.checks import InfeasibleError, positive
from chinchilla_lab.laws.families import DirectLaw, Law, LossLaw
from chinchilla_lab.units import FLOP_PER_ND

__all__ = [
    "compute_optimal",
    "frontier_loss",
    "isoflop",
    "optimal_for_loss",
    "optimal_for_params",
]

Array = NDArray[np.float64]


def compute_optimal(law: Law, C: ArrayLike) -> Allocation:
    r"""Parameters and tokens with the least loss for a training budget.

    .. math::

       N^* = G \left(\frac{C}{6}\right)^{a}, \quad D^* = \frac{C}{6 N^*}, \quad
       a = \frac{\beta}{\alpha+\beta}, \quad
       G = \left(\frac{\alpha A}{\beta B}\right)^{1/(\alpha+\beta)}

    Parameters
    ----------
    law : Law
        Any law of this library, or one of your own, [-]
    C : array_like
        Training compute, [FLOP]

    Returns
    -------
    Allocation
        N [parameter], D [token], L [nats/token], same shape as ``C``

    Raises
    ------
    ValueError
        If ``C`` is not finite and positive.

    Warns
    -----
    ExtrapolationWarning
        If the plan leaves the fitted range of the law.

    Notes
    -----
    Assumes that the whole budget is spent on C = 6ND with fresh tokens. Laws without
    a closed form are solved on the equality of both elasticities.

    References
    ----------
    :cite:`hoffmann2022training`, equation 4

    Examples
    --------
    >>> from chinchilla_lab.laws import BESIROGLU_2024
    >>> plan = compute_optimal(BESIROGLU_2024, C=1e22)
    >>> f"{plan.N:.3e} {plan.D:.3e} {plan.tokens_per_param:.1f} {plan.L:.3f}"
    '9.045e+09 1.843e+11 20.4 2.141'
    """
    c = positive("C", C)
    if isinstance(law, DirectLaw):
        N, D = law.optimum(c)
        plan = Allocation(law=law, C=c[()], N=N, D=D, L=None)
    else:
        with_loss = needs_loss(law, "optimum")
        N, D = optimum(with_loss, c)
        loss = with_loss._loss(N, D)
        plan = Allocation(law=law, C=c[()], N=N[()], D=D[()], L=loss)
    law.warn_outside(N=plan.N, D=plan.D, C=c)
    return plan


def optimal_for_params(law: Law, N: ArrayLike) -> Allocation:
    r"""Budget and tokens for which a given size is the compute-optimal one.

    .. math:: C = 6 \left(\frac{N}{G}\right)^{1/a}

    Parameters
    ----------
    law : Law
        Any law, [-]
    N : array_like
        Parameters, counted as ``law.N_counts`` says, [parameter]

    Returns
    -------
    Allocation
        C [FLOP], D [token], L [nats/token], same shape as ``N``

    Raises
    ------
    ValueError
        If ``N`` is not finite and positive.

    References
    ----------
    :cite:`hoffmann2022training`, equation 4 solved for C

    Examples
    --------
    >>> from chinchilla_lab.laws import BESIROGLU_2024
    >>> f"{optimal_for_params(BESIROGLU_2024, N=7e9).D:.4e}"
    '1.4441e+11'
    """
    n = positive("N", N)
    if isinstance(law, DirectLaw):
        c = law.budget(n)
        plan = Allocation(law=law, C=c, N=n[()], D=law.optimum(c)[1], L=None)
    else:
        with_loss = needs_loss(law, "optimum")
        closed = additive(with_loss)
        if closed is not None:
            D = (n / closed.G) ** (closed.b / closed.a) / closed.G
        else:

            def surplus(y: Array) -> Array:
                by_size, by_data = slopes(with_loss, n, np.exp(y))
                return by_size - by_data

            start = np.zeros_like(n)
            y = bisect(surplus, start, start + 200.0, f"the budget of {law.label}")
            D = np.exp(y)
        plan = Allocation(
            law=law,
            C=FLOP_PER_ND * n * D,
            N=n[()],
            D=D[()],
            L=with_loss._loss(n, D),
        )
    law.warn_outside(N=n, D=plan.D, C=plan.C)
    return plan


def optimal_for_loss(law: Law, L: ArrayLike) -> Allocation:
    r"""Least compute, with its size and tokens, that reaches a loss.

    .. math:: C = 6 \left(\frac{K}{L - E}\right)^{1/\gamma}

    Parameters
    ----------
    law : Law
        A law with a loss, [-]
    L : array_like
        Target loss, [nats/token]

    Returns
    -------
    Allocation
        C [FLOP], N [parameter], D [token], same shape as ``L``

    Raises
    ------
    InfeasibleError
        If the target is at or below the loss that no compute removes.
    TypeError
        If the law knows no loss.

    Examples
    --------
    >>> from chinchilla_lab.laws import BESIROGLU_2024
    >>> f"{optimal_for_loss(BESIROGLU_2024, L=2.1410991).C:.3e}"
    '1.000e+22'
    """
    with_loss = needs_loss(law, "loss to aim at")
    target = positive("L", L)
    endless = np.asarray(1e300)  # not infinity: laws divide N by what D can use
    floor = float(with_loss._loss(endless, endless))
    if target.min() <= floor:
        raise InfeasibleError(
            f"L={target.min():.6g} is not above the floor E={floor:.6g} of "
            f"{law.label}: no compute reaches it; aim at a higher loss"
        )
    closed = additive(with_loss)
    if closed is not None:
        excess = (target - closed.E) ** (1.0 / closed.k)
        nd = (closed.K / excess) ** (1.0 / closed.gamma)
    else:

        def gap(x: Array) -> Array:
            return target - with_loss._loss(*optimum(with_loss, np.exp(x)))

        span = np.zeros_like(target)
        low, high = span + np.log(FLOP_PER_ND), span + 300.0
        x = bisect(gap, low, high, f"the budget for L={target.min():.6g}")
        nd = np.exp(x) / FLOP_PER_ND
    c = FLOP_PER_ND * nd
    N, D = optimum(with_loss, c)
    law.warn_outside(N=N, D=D, C=c)
    return Allocation(law=law, C=c[()], N=N[()], D=D[()], L=target[()])


def frontier_loss(law: Law, C: ArrayLike) -> Array:
    r"""Least loss that a budget can buy.

    .. math:: L^*(C) = E + K \left(\frac{C}{6}\right)^{-\gamma}, \qquad
       \gamma = \frac{\alpha\beta}{\alpha+\beta}, \qquad
       K = A G^{-\alpha} + B G^{\beta}

    Parameters
    ----------
    law : Law
        A law with a loss, [-]
    C : array_like
        Training compute, [FLOP]

    Returns
    -------
    numpy.ndarray or float
        Loss, [nats/token]

    Raises
    ------
    TypeError
        If the law knows no loss.

    Examples
    --------
    >>> from chinchilla_lab.laws import BESIROGLU_2024
    >>> f"{frontier_loss(BESIROGLU_2024, 1e22):.4f}"
    '2.1411'
    """
    loss = compute_optimal(needs_loss(law, "frontier"), C).L
    assert loss is not None  # a law with a loss gave it
    return loss


def isoflop(law: LossLaw, C: ArrayLike, N: ArrayLike) -> tuple[Array, Array]:
    r"""Tokens and loss of models of any size on one budget.

    .. math:: D = \frac{C}{6N}, \qquad L = L(N, D)

    Parameters
    ----------
    law : LossLaw
        A law with a loss, [-]
    C : array_like
        Training compute, [FLOP]
    N : array_like
        Parameters, broadcast against ``C``, [parameter]

    Returns
    -------
    D : numpy.ndarray or float
        Tokens, [token]
    L : numpy.ndarray or float
        Loss, [nats/token]

    Examples
    --------
    >>> from chinchilla_lab.laws import BESIROGLU_2024
    >>> D, L = isoflop(BESIROGLU_2024, C=1e22, N=[4.5e9, 9.0e9, 1.8e10])
    >>> bool(L[1] < min(L[0], L[2]))
    True
    """
    c, n = positive("C", C), positive("N", N)
    D = c / (FLOP_PER_ND * n)
    law.warn_outside(N=n, D=D, C=c)
    return D, needs_loss(law, "isoFLOP curve")._loss(n, D)
