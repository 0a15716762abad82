"""What the clusters of both teams do at a batch: budgets, tokens, fastest steps."""

import warnings
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from chinchilla_lab.allocation import compute_optimal
from chinchilla_lab.checks import ExtrapolationWarning
from chinchilla_lab.cluster.accelerators import ACCELERATORS
from chinchilla_lab.cluster.batch import steps_and_examples
from chinchilla_lab.cluster.cost import published_hours
from chinchilla_lab.cluster.hardware import Cluster
from chinchilla_lab.cluster.several import Job, fastest_layouts
from chinchilla_lab.cluster.stacks import UNCALIBRATED
from chinchilla_lab.cluster.step import StepTime
from chinchilla_lab.figures.cluster_memory import SHOWN_SHAPES
from chinchilla_lab.laws import DEFAULT
from chinchilla_lab.units import DAY

__all__ = [
    "BATCHES",
    "SEQ_LEN",
    "SIZES",
    "equal_loss",
    "fastest_step",
    "fastest_steps",
    "fixed_and_each",
    "naive_budget",
    "plan_tokens",
]

Array = NDArray[np.float64]
SEQ_LEN = 4096
"""Sequence length of both teams, [token]"""
SIZES = tuple(2**k for k in range(6, 17))
"""Clusters on the axes, [-]"""
BATCHES = tuple(2**k for k in range(7, 16))
"""Batches on the axes, [sequence]"""
# accelerators and days of the teams' plans, which assume 40 % MFU
_PLANS = {"loft": (64, 30.0), "hall": (16384, 60.0)}
_ASSUMED_MFU = 0.4
_CHIP = "h100-sxm-80gb"


def naive_budget(plan: str) -> float:
    """Compute that a team expects of its cluster, at an assumed MFU.

    Parameters
    ----------
    plan : {"loft", "hall"}
        The team, [-]

    Returns
    -------
    float
        Budget, [FLOP]
    """
    n, days = _PLANS[plan]
    return n * days * DAY * _ASSUMED_MFU * ACCELERATORS[_CHIP].peak("bf16")


@lru_cache
def plan_tokens(plan: str) -> float:
    """Tokens of a team's compute-optimal plan, or of a published run.

    Parameters
    ----------
    plan : str
        The team, or a key of :func:`~chinchilla_lab.cluster.published_hours`, [-]

    Returns
    -------
    float
        Training tokens, [token]
    """
    if plan in _PLANS:
        with warnings.catch_warnings():
            # teams plan beyond the fits, as everybody does; their chapters say so
            warnings.simplefilter("ignore", ExtrapolationWarning)
            return float(compute_optimal(DEFAULT, naive_budget(plan)).D)
    return published_hours()[plan].D_tokens


_KEPT: dict[tuple[str, bool, str, int, int], StepTime | None] = {}


def fastest_steps(
    shape: str,
    points: Sequence[tuple[int, int]],
    cp: bool = False,
    stack: str = UNCALIBRATED.name,
) -> list[StepTime | None]:
    """Fastest layouts of a shape on H100s, at several clusters and batches.

    Parameters
    ----------
    shape : str
        Key of :data:`~chinchilla_lab.figures.cluster_memory.SHOWN_SHAPES`, [-]
    points : sequence of tuple
        Accelerators [-] and batch [sequence] of each
    cp : bool, optional
        Sequences may be cut over up to 4 accelerators, [-]
    stack : str, optional
        Constants of the step model, [-]

    Returns
    -------
    list of StepTime or None
        Steps; None where no layout divides and fits, [s]
    """
    case = (shape, cp, stack)
    missing = [point for point in points if (*case, *point) not in _KEPT]
    if missing:
        model = SHOWN_SHAPES[shape][1]
        jobs = [
            Job(model, batch, Cluster(accelerator=_CHIP, n_accelerators=n))
            for n, batch in missing
        ]
        ways = (1, 2, 4) if cp else (1,)
        made = fastest_layouts(jobs, SEQ_LEN, stack, cp=ways)
        for point, found in zip(missing, made, strict=True):
            _KEPT[(*case, *point)] = None if found is None else found.step
    return [_KEPT[(*case, *point)] for point in points]


def fastest_step(
    shape: str, n: int, sequences: int, cp: bool = False, stack: str = UNCALIBRATED.name
) -> StepTime | None:
    """Fastest layout of a shape on H100s at a batch.

    Parameters
    ----------
    shape : str
        Key of :data:`~chinchilla_lab.figures.cluster_memory.SHOWN_SHAPES`, [-]
    n : int
        Accelerators, [-]
    sequences : int
        Batch, [sequence]
    cp : bool, optional
        Sequences may be cut over up to 4 accelerators, [-]
    stack : str, optional
        Constants of the step model, [-]

    Returns
    -------
    StepTime or None
        The step; None if no layout divides and fits, [s]
    """
    return fastest_steps(shape, [(n, sequences)], cp, stack)[0]


def equal_loss(batch: Array | float, critical: Array | float) -> Array:
    r"""Tokens that a batch needs for a loss, over those at the critical batch.

    .. math:: \frac{E(B)}{E(B_c)} = \frac{1 + B / B_c}{2}

    Parameters
    ----------
    batch : array_like
        Batch, [token]
    critical : array_like
        Critical batch, [token]

    Returns
    -------
    numpy.ndarray or float
        Ratio, [-]
    """
    here = steps_and_examples(batch, critical).examples
    return here / steps_and_examples(critical, critical).examples


def fixed_and_each(shape: str, n: int, cp: bool = False) -> tuple[float, float] | None:
    r"""Split a step into fixed seconds and seconds for each token, by two batches.

    .. math:: t = \tau_0 + \kappa B

    Parameters
    ----------
    shape : str
        Key of the shape, [-]
    n : int
        Accelerators, [-]
    cp : bool, optional
        Sequences may be cut, [-]

    Returns
    -------
    tuple of float or None
        :math:`\tau_0` [s] and :math:`\kappa` [s/token]; None if a batch has no layout
    """
    few, many = BATCHES[-4], BATCHES[-2]
    low, high = fastest_steps(shape, [(n, few), (n, many)], cp)
    if low is None or high is None:
        return None
    each = (high.seconds - low.seconds) / (many - few)
    return max(low.seconds - few * each, 0.0), each / SEQ_LEN
