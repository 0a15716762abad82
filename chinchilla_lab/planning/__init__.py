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
from chinchilla_lab.planning.coverage import Coverage, Covered, whole_run_coverage
from chinchilla_lab.planning.defaults import Steps, from_defaults
from chinchilla_lab.planning.doubt import Doubt, Intervals, intervals
from chinchilla_lab.planning.estimates import (
    UTILISATION_BAND,
    RunEstimate,
    estimate_run,
)
from chinchilla_lab.planning.levers import (
    Lever,
    Levers,
    LeverTable,
    levers,
    side_by_side,
)
from chinchilla_lab.planning.plans import default_stack, plan, typed_plan
from chinchilla_lab.planning.problem import OBJECTIVES, Problem
from chinchilla_lab.planning.report import Report
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
from chinchilla_lab.planning.whole_runs import (
    WholeRun,
    whole_run_factors,
    whole_run_ratio_table,
    whole_run_ratios,
)

__all__ = [
    "OBJECTIVES",
    "UTILISATION_BAND",
    "Closure",
    "ClosureError",
    "Comparison",
    "Coverage",
    "Covered",
    "Doubt",
    "Identity",
    "Intervals",
    "Lever",
    "LeverTable",
    "Levers",
    "Plan",
    "Problem",
    "Report",
    "RunEstimate",
    "Sensitivity",
    "Shift",
    "Steps",
    "WholeRun",
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
    "from_defaults",
    "intervals",
    "levers",
    "measured_shift",
    "mfu_slope",
    "naive_size",
    "plan",
    "require",
    "sensitivity",
    "shift",
    "side_by_side",
    "solve",
    "solve_at",
    "sweep",
    "time_at",
    "typed",
    "typed_plan",
    "whole_run_coverage",
    "whole_run_factors",
    "whole_run_ratio_table",
    "whole_run_ratios",
]
