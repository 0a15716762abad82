"""Many plans at once, here or on any executor."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, as_completed
from typing import Any

from chinchilla_lab.checks import InfeasibleError
from chinchilla_lab.cluster.hardware import Cluster
from chinchilla_lab.planning.plans import plan
from chinchilla_lab.planning.results import Plan

__all__ = ["choose", "sweep"]


def _one(cluster: Cluster, settings: Mapping[str, Any]) -> Plan | None:
    try:
        return plan(cluster, **settings)
    except InfeasibleError:
        return None


def _block(jobs: Sequence[tuple[Cluster, Mapping[str, Any]]]) -> list[Plan | None]:
    return [_one(cluster, settings) for cluster, settings in jobs]


def sweep(
    jobs: Sequence[tuple[Cluster, Mapping[str, Any]]],
    executor: Executor | None = None,
    block: int = 8,
    progress: Callable[[float], None] | None = None,
) -> list[Plan | None]:
    """Plan many clusters and settings.

    Parameters
    ----------
    jobs : sequence of tuple
        Cluster and settings of each plan, as :func:`~chinchilla_lab.planning.plan`
        takes them, [-]
    executor : concurrent.futures.Executor, optional
        Where to send blocks of plans; that of a Dask client works too, [-]
    block : int, optional
        Plans to send at once, [-]
    progress : callable, optional
        Called with the share that is done, [-]

    Returns
    -------
    list of Plan or None
        One for each job, in their order; None where nothing meets the limits, [-]

    Examples
    --------
    >>> loft = Cluster(accelerator="h100-sxm-80gb", n_accelerators=64)
    >>> found = sweep([(loft, {"deadline": d * 86400.0}) for d in (10, 20)])
    >>> found[0].loss > found[1].loss
    True
    """
    parts = [jobs[i : i + block] for i in range(0, len(jobs), max(1, block))]
    found: dict[int, list[Plan | None]] = {}

    def tell() -> None:
        if progress is not None:
            progress(len(found) / len(parts))

    if executor is None:
        for i, part in enumerate(parts):
            found[i] = _block(part)
            tell()
    else:
        sent = {executor.submit(_block, part): i for i, part in enumerate(parts)}
        # a Dask executor's futures are concurrent.futures' own
        for future in as_completed(sent):
            found[sent[future]] = future.result()
            tell()
    return [one for i in range(len(parts)) for one in found[i]]


def choose(
    clusters: Sequence[Cluster],
    executor: Executor | None = None,
    **settings: Any,
) -> tuple[Plan, ...]:
    """Plan the same on several clusters and rank them.

    Parameters
    ----------
    clusters : sequence of Cluster
        Machines to choose from, for example of several sizes, [-]
    executor : concurrent.futures.Executor, optional
        Where to send the plans, [-]
    **settings : dict
        As for :func:`~chinchilla_lab.planning.plan`, [-]

    Returns
    -------
    tuple of Plan
        Plans by their objective, the best first; of equal ones the cheaper, [-]

    Raises
    ------
    InfeasibleError
        If none of the clusters meets the limits.

    Examples
    --------
    >>> sizes = [Cluster(accelerator="h100-sxm-80gb", n_accelerators=n)
    ...          for n in (32, 64, 128)]
    >>> ranked = choose(sizes, objective="time", target_loss=2.1, thorough=False)
    >>> [p.problem.n for p in ranked]
    [128, 64, 32]
    """
    if not clusters:
        raise ValueError("clusters is empty; give at least one")
    made = sweep([(one, settings) for one in clusters], executor, block=1)
    found = [one for one in made if one is not None]
    if not found:
        sizes = ", ".join(f"{c.n_accelerators:,}" for c in clusters)
        raise InfeasibleError(
            f"none of the clusters of {sizes} accelerators meets the limits; loosen a "
            "limit or add a larger cluster"
        )
    return tuple(sorted(found, key=lambda p: (p.score, p.hours)))
