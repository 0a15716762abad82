"""Three clusters that the book and the command line call by name."""

from chinchilla_lab.checks import one_of
from chinchilla_lab.cluster.hardware import Cluster

__all__ = ["EXAMPLE_CLUSTERS", "example_cluster"]

EXAMPLE_CLUSTERS: dict[str, int] = {"loft": 64, "floor": 512, "hall": 16384}
"""Accelerators of each by name, all H100 SXM 80 GB on a network of 50 GB/s."""


def example_cluster(name: str) -> Cluster:
    """Return an example cluster.

    Parameters
    ----------
    name : {"loft", "floor", "hall"}
        Its name, [-]

    Returns
    -------
    Cluster
        The machine, [-]

    Examples
    --------
    >>> example_cluster("loft").n_accelerators
    64
    """
    n = EXAMPLE_CLUSTERS[one_of("cluster", name, EXAMPLE_CLUSTERS)]
    return Cluster(accelerator="h100-sxm-80gb", n_accelerators=n)
