"""What a real cluster makes of 6ND: compute, memory, links, layouts, constants."""

from chinchilla_lab.cluster.accelerators import (
    ACCELERATORS,
    Accelerator,
    Price,
    accelerator_table,
)
from chinchilla_lab.cluster.activations import (
    activation_bytes,
    interleaving_factor,
    zero_paper_activations,
)
from chinchilla_lab.cluster.calibration import (
    Calibration,
    MeasuredStep,
    accelerator_hours,
    calibrate,
    predicted_seconds,
    whole_run_mfu,
)
from chinchilla_lab.cluster.collectives import (
    CollectiveTime,
    algbw,
    all_gather_time,
    all_reduce_time,
    all_to_all_time,
    busbw,
    collective_time,
    fit_alpha_beta,
    hierarchical_all_reduce,
    point_to_point_time,
    tree_all_reduce_time,
)
from chinchilla_lab.cluster.hardware import Cluster, mfu, ridge_point
from chinchilla_lab.cluster.layout import Layout
from chinchilla_lab.cluster.memory import (
    RECIPES,
    MemoryBreakdown,
    Recipe,
    largest_micro_batch,
    memory,
    state_bytes,
)
from chinchilla_lab.cluster.published import (
    AllReduceRates,
    WholeRun,
    all_reduce_rates,
    all_reduce_systems,
    whole_run_table,
    whole_runs,
)
from chinchilla_lab.cluster.roofline import (
    Product,
    compute_bound_tokens,
    gemm,
    ridge_tokens,
    roofline,
    wave_efficiency,
)
from chinchilla_lab.cluster.schedule import Schedule, schedule
from chinchilla_lab.cluster.search import Ranking, axes, search
from chinchilla_lab.cluster.stacks import STACKS, UNCALIBRATED, Stack
from chinchilla_lab.cluster.step import (
    StepTime,
    bubble_fraction,
    hardware_flops,
    model_flops,
    step_time,
    tokens_per_second_to_mfu,
)

__all__ = [
    "ACCELERATORS",
    "RECIPES",
    "STACKS",
    "UNCALIBRATED",
    "Accelerator",
    "AllReduceRates",
    "Calibration",
    "Cluster",
    "CollectiveTime",
    "Layout",
    "MeasuredStep",
    "MemoryBreakdown",
    "Price",
    "Product",
    "Ranking",
    "Recipe",
    "Schedule",
    "Stack",
    "StepTime",
    "WholeRun",
    "accelerator_hours",
    "accelerator_table",
    "activation_bytes",
    "algbw",
    "all_gather_time",
    "all_reduce_rates",
    "all_reduce_systems",
    "all_reduce_time",
    "all_to_all_time",
    "axes",
    "bubble_fraction",
    "busbw",
    "calibrate",
    "collective_time",
    "compute_bound_tokens",
    "fit_alpha_beta",
    "gemm",
    "hardware_flops",
    "hierarchical_all_reduce",
    "interleaving_factor",
    "largest_micro_batch",
    "memory",
    "mfu",
    "model_flops",
    "point_to_point_time",
    "predicted_seconds",
    "ridge_point",
    "ridge_tokens",
    "roofline",
    "schedule",
    "search",
    "state_bytes",
    "step_time",
    "tokens_per_second_to_mfu",
    "tree_all_reduce_time",
    "wave_efficiency",
    "whole_run_mfu",
    "whole_run_table",
    "whole_runs",
    "zero_paper_activations",
]
