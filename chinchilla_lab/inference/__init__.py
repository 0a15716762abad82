r"""Models that are trained once and served for long: lifetime compute and money.

Training costs 6ND and a served token 2N, so a parameter pays rent on every token. One
condition decides the size: the elasticity of the loss to size over that to data equals
the lifetime bill over the training bill, :math:`1 + T/3D`. In money the same condition
holds with an effective T, and the roofline of decoding says how large that is.
"""

from chinchilla_lab.allocation.price import least_size_factor, overhead
from chinchilla_lab.allocation.targets import least_params, tokens_for_loss
from chinchilla_lab.inference.decode import (
    MEASURED_SLOWDOWN,
    Roofline,
    critical_batch,
    decode_step,
    largest_batch,
    prefill,
    roofline_checks,
    single_stream_limit,
    slowdown,
)
from chinchilla_lab.inference.factors import (
    Factors,
    equal_spend,
    factors_for_demand,
    factors_for_size,
    least_token_factor,
)
from chinchilla_lab.inference.fleet import (
    Service,
    fewest_accelerators,
    measured_slowdown,
    service,
)
from chinchilla_lab.inference.lifetime import (
    BAND,
    FLOP_PER_NT,
    Lifetime,
    LifetimeSpread,
    implied_demand,
    lifetime_at,
    lifetime_optimal,
    lifetime_spread,
    size_floor,
)
from chinchilla_lab.inference.money import (
    SARDANA_2024_SERVING,
    SARDANA_2024_TRAINING,
    Bill,
    Demand,
    ServingCost,
    TrainingCost,
    bill,
    cheapest,
    effective_demand,
)
from chinchilla_lab.inference.released import ReleasedModels, released_models
from chinchilla_lab.inference.samples import (
    pass_at,
    pass_at_tail,
    sampled_optimal,
    samples_for,
)
from chinchilla_lab.inference.served import (
    ServedModel,
    ServingHardware,
    kv_bytes_per_token,
)

__all__ = [
    "BAND",
    "FLOP_PER_NT",
    "MEASURED_SLOWDOWN",
    "SARDANA_2024_SERVING",
    "SARDANA_2024_TRAINING",
    "Bill",
    "Demand",
    "Factors",
    "Lifetime",
    "LifetimeSpread",
    "ReleasedModels",
    "Roofline",
    "ServedModel",
    "Service",
    "ServingCost",
    "ServingHardware",
    "TrainingCost",
    "bill",
    "cheapest",
    "critical_batch",
    "decode_step",
    "effective_demand",
    "equal_spend",
    "factors_for_demand",
    "factors_for_size",
    "fewest_accelerators",
    "implied_demand",
    "kv_bytes_per_token",
    "largest_batch",
    "least_params",
    "least_size_factor",
    "least_token_factor",
    "lifetime_at",
    "lifetime_optimal",
    "lifetime_spread",
    "measured_slowdown",
    "overhead",
    "pass_at",
    "pass_at_tail",
    "prefill",
    "released_models",
    "roofline_checks",
    "sampled_optimal",
    "samples_for",
    "service",
    "single_stream_limit",
    "size_floor",
    "slowdown",
    "tokens_for_loss",
]
