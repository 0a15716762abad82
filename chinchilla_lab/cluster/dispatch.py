"""Where the tokens of a mixture go: how many groups hold one of their experts."""

from typing import Any

import numpy as np

from chinchilla_lab.checks import whole

__all__ = ["expected_remote_groups"]


def remote_groups(groups: Any, experts: int, chosen: int) -> Any:
    """Return the groups beside its own that a token is sent to; arrays broadcast."""
    elsewhere = experts - experts / groups
    missed: Any = 1.0
    for drawn in range(chosen):
        missed = missed * np.maximum(elsewhere - drawn, 0.0) / (experts - drawn)
    return (groups - 1.0) * (1.0 - missed)


def expected_remote_groups(
    n_groups: int, n_experts: int, n_active_experts: int
) -> float:
    r"""Count the groups beside its own that a token is sent to, once each.

    .. math:: (m - 1) \left[1 - \binom{E - E/m}{k} \Big/ \binom{E}{k}\right]
       \;\approx\; (m - 1) \left[1 - \left(1 - \tfrac{1}{m}\right)^k\right]

    Parameters
    ----------
    n_groups : int
        Groups m among which the experts are dealt evenly: nodes, or accelerators, [-]
    n_experts : int
        Experts E of a layer, [-]
    n_active_experts : int
        Different experts k that a token goes to, [-]

    Returns
    -------
    float
        Expected number of groups, [-]

    Raises
    ------
    ValueError
        If the groups do not divide the experts, or a token goes to more than there are.

    Notes
    -----
    The router is taken to choose evenly and without regard to nodes; a router limited
    to a few nodes sends less. Sending each copy by itself would take k (m-1)/m: with 8
    of 128 experts over 4 nodes 6.0 copies, where 2.7 do.

    References
    ----------
    :cite:`deepep`, kernels that cross the network once and spread inside the node

    Examples
    --------
    >>> round(expected_remote_groups(4, n_experts=128, n_active_experts=8), 2)
    2.72
    """
    m, experts = whole("n_groups", n_groups), whole("n_experts", n_experts)
    k = whole("n_active_experts", n_active_experts)
    if experts % m:
        raise ValueError(
            f"n_groups={m} do not divide n_experts={experts}; use a divisor"
        )
    if k > experts:
        raise ValueError(
            f"n_active_experts={k} exceeds n_experts={experts}; a token goes to each "
            "expert at most once"
        )
    return float(remote_groups(float(m), experts, k))
