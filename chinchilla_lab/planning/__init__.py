"""One plan: a law of the loss joined with a machine, a deadline, data and demand."""

from chinchilla_lab.planning.closure import (
    Closure,
    ClosureError,
    Identity,
    closure,
    require,
    typed,
)
from chinchilla_lab.planning.compare import (
    Comparison,
    compare,
    compare_runs,
    export,
)
from chinchilla_lab.planning.doubt import Doubt, Intervals, intervals
from chinchilla_lab.planning.estimates import (
    UTILISATION_BAND,
    RunEstimate,
    estimate_run,
)
from chinchilla_lab.planning.levers import Lever, Levers, levers
from chinchilla_lab.planning.plans import default_stack, plan, typed_plan
from chinchilla_lab.planning.problem import OBJECTIVES, Problem
from chinchilla_lab.planning.results import Plan
from chinchilla_lab.planning.search import solve, solve_at
from chinchilla_lab.planning.sensitivity import Sensitivity, Worth, sensitivity
from chinchilla_lab.planning.serving import decode_utilisation
from chinchilla_lab.planning.shift import (
    Shift,
    measured_shift,
    mfu_slope,
    shift,
)
from chinchilla_lab.planning.sizes import (
    by_size,
    coarse_batch,
    naive_size,
    time_at,
)
from chinchilla_lab.planning.sweep import choose, sweep

__all__ = [
    "OBJECTIVES",
    "UTILISATION_BAND",
    "Closure",
    "ClosureError",
    "Comparison",
    "Doubt",
    "Identity",
    "Intervals",
    "Lever",
    "Levers",
    "Plan",
    "Problem",
    "RunEstimate",
    "Sensitivity",
    "Shift",
    "Worth",
    "by_size",
    "choose",
    "closure",
    "coarse_batch",
    "compare",
    "compare_runs",
    "decode_utilisation",
    "default_stack",
    "estimate_run",
    "export",
    "intervals",
    "levers",
    "measured_shift",
    "mfu_slope",
    "naive_size",
    "plan",
    "require",
    "sensitivity",
    "shift",
    "solve",
    "solve_at",
    "sweep",
    "time_at",
    "typed",
    "typed_plan",
]
