r"""Where to put a budget: the optimum, its inverses, and the price of missing it.

Everything rests on C = 6ND and one condition: on the optimal path a percent of
parameters and a percent of tokens lower the loss by the same amount. Laws of the
additive kind have closed forms; the others are solved on the same condition.
Every function takes arrays and broadcasts them.
"""

from chinchilla_lab.allocation.compare import hedge, spread
from chinchilla_lab.allocation.intervals import (
    Interval,
    default_interval,
    interval,
)
from chinchilla_lab.allocation.optimum import (
    compute_optimal,
    frontier_loss,
    isoflop,
    optimal_for_loss,
    optimal_for_params,
)
from chinchilla_lab.allocation.price import (
    efficiency,
    least_size_factor,
    overhead,
    waste,
)
from chinchilla_lab.allocation.response import (
    elasticities,
    elasticity_ratio,
    growth,
    local_exponent,
)
from chinchilla_lab.allocation.results import (
    Allocation,
    Hedge,
    Overhead,
    Spread,
)
from chinchilla_lab.allocation.targets import (
    least_params,
    loss_floor,
    params_for_loss,
    tokens_for_loss,
)
from chinchilla_lab.units import FLOP_PER_ND

__all__ = [
    "FLOP_PER_ND",
    "Allocation",
    "Hedge",
    "Interval",
    "Overhead",
    "Spread",
    "compute_optimal",
    "default_interval",
    "efficiency",
    "elasticities",
    "elasticity_ratio",
    "frontier_loss",
    "growth",
    "hedge",
    "interval",
    "isoflop",
    "least_params",
    "least_size_factor",
    "local_exponent",
    "loss_floor",
    "optimal_for_loss",
    "optimal_for_params",
    "overhead",
    "params_for_loss",
    "spread",
    "tokens_for_loss",
    "waste",
]
