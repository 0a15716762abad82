"""Time of collective operations: latency, bytes, and the border of the node."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chinchilla_lab.checks import non_negative, one_of, positive
from chinchilla_lab.cluster.hardware import Cluster
from chinchilla_lab.tables import html_table
from chinchilla_lab.units import GB

__all__ = [
    "COLLECTIVES",
    "CollectiveTime",
    "algbw",
    "all_gather_time",
    "all_reduce_time",
    "all_to_all_time",
    "busbw",
    "collective_time",
    "fit_alpha_beta",
    "hierarchical_all_reduce",
    "point_to_point_time",
    "tree_all_reduce_time",
]

Array = NDArray[np.float64]


def _checked(
    size: ArrayLike, ranks: ArrayLike, bandwidth: ArrayLike, latency: ArrayLike
) -> tuple[Array, Array, Array, Array]:
    g = positive("ranks", ranks)
    if (g < 1).any() or (g != np.rint(g)).any():
        raise ValueError(f"ranks={ranks!r} must be whole numbers, 1 or more")
    return (
        non_negative("size", size),
        g,
        positive("bandwidth", bandwidth),
        non_negative("latency", latency),
    )


def _rounds(ranks: Any) -> Any:
    """Return the fewest rounds in which all ranks can have heard of all others, [-]."""
    return np.ceil(np.log2(ranks))


def all_gather_time(
    size: ArrayLike, ranks: ArrayLike, bandwidth: ArrayLike, latency: ArrayLike = 0.0
) -> Array:
    r"""Time of a ring all-gather, or of a reduce-scatter.

    .. math:: \frac{g - 1}{g}\,\frac{S}{W} + (g - 1)\,\alpha

    Parameters
    ----------
    size : array_like
        Bytes S that each rank holds in the end, [byte]
    ranks : array_like
        Ranks g, [-]
    bandwidth : array_like
        Rate W of a rank, one way, [byte/s]
    latency : array_like, optional
        Time alpha of one hop, [s]

    Returns
    -------
    numpy.ndarray or float
        Time, [s]

    References
    ----------
    :cite:`scalingbook`, sharding

    Examples
    --------
    >>> f"{all_gather_time(1e9, 8, 450e9) * 1e3:.2f} ms"
    '1.94 ms'
    """
    s, g, w, a = _checked(size, ranks, bandwidth, latency)
    return (g - 1) / g * s / w + (g - 1) * a


def all_reduce_time(
    size: ArrayLike, ranks: ArrayLike, bandwidth: ArrayLike, latency: ArrayLike = 0.0
) -> Array:
    r"""Time of a ring all-reduce: a reduce-scatter and an all-gather.

    .. math:: 2\,\frac{g - 1}{g}\,\frac{S}{W} + 2\,(g - 1)\,\alpha

    Parameters
    ----------
    size : array_like
        Bytes S of the array, [byte]
    ranks : array_like
        Ranks g, [-]
    bandwidth : array_like
        Rate W of a rank, one way, [byte/s]
    latency : array_like, optional
        Time alpha of one hop, [s]

    Returns
    -------
    numpy.ndarray or float
        Time, [s]

    Examples
    --------
    >>> f"{all_reduce_time(2**34, 8, 367.6e9) * 1e3:.1f} ms"
    '81.8 ms'
    """
    return 2.0 * all_gather_time(size, ranks, bandwidth, latency)


def tree_all_reduce_time(
    size: ArrayLike, ranks: ArrayLike, bandwidth: ArrayLike, latency: ArrayLike = 0.0
) -> Array:
    r"""Time of a tree all-reduce: fewer steps, more bytes.

    .. math:: 2\,\alpha \log_2 g + 2\,\frac{S}{W}

    Parameters
    ----------
    size : array_like
        Bytes S of the array, [byte]
    ranks : array_like
        Ranks g, [-]
    bandwidth : array_like
        Rate W of a rank, one way, [byte/s]
    latency : array_like, optional
        Time alpha of one level, [s]

    Returns
    -------
    numpy.ndarray or float
        Time, 0 for a single rank, [s]

    Examples
    --------
    >>> f"{tree_all_reduce_time(8e6, 1024, 50e9, 10e-6) * 1e3:.2f} ms"
    '0.52 ms'
    """
    s, g, w, a = _checked(size, ranks, bandwidth, latency)
    return np.where(g > 1, 2.0 * a * np.log2(g) + 2.0 * s / w, 0.0)[()]


def all_to_all_time(
    size: ArrayLike, ranks: ArrayLike, bandwidth: ArrayLike, latency: ArrayLike = 0.0
) -> Array:
    r"""Time of an all-to-all on a network of full bisection.

    .. math:: \frac{g - 1}{g}\,\frac{S}{W} + \lceil \log_2 g \rceil\,\alpha

    Parameters
    ----------
    size : array_like
        Bytes S that each rank sends in all, its own part included, [byte]
    ranks : array_like
        Ranks g, [-]
    bandwidth : array_like
        Rate W of a rank, one way, [byte/s]
    latency : array_like, optional
        Time alpha of one round, [s]

    Returns
    -------
    numpy.ndarray or float
        Time, [s]

    Notes
    -----
    The g - 1 messages of a rank do not wait for one another, unlike the rounds of a
    ring, so they do not pay g - 1 latencies. What is counted is the least that any
    algorithm needs: each rank must send all but its own part, and what one of them
    knows can reach at most twice as many with every round. :func:`collective_time` and
    the step model count in the same way. On a ring of TPUs an all-to-all costs about a
    quarter of an all-gather of the whole array.

    Examples
    --------
    >>> f"{all_to_all_time(1e6, 64, 50e9, 15e-6) * 1e6:.0f} us"
    '110 us'
    """
    s, g, w, a = _checked(size, ranks, bandwidth, latency)
    return (g - 1) / g * s / w + _rounds(g) * a


def point_to_point_time(
    size: ArrayLike, bandwidth: ArrayLike, latency: ArrayLike = 0.0
) -> Array:
    r"""Time of one message.

    .. math:: \frac{S}{W} + \alpha

    Parameters
    ----------
    size : array_like
        Bytes S, [byte]
    bandwidth : array_like
        Rate W, one way, [byte/s]
    latency : array_like, optional
        Time alpha without bytes, [s]

    Returns
    -------
    numpy.ndarray or float
        Time, [s]

    Examples
    --------
    >>> f"{point_to_point_time(2 * 8 * 128 * 8192, 2 * 45e9, 6e-6) * 1e6:.0f} us"
    '192 us'
    """
    s, w = non_negative("size", size), positive("bandwidth", bandwidth)
    return s / w + non_negative("latency", latency)


def hierarchical_all_reduce(
    size: float,
    per_node: int,
    nodes: int,
    inside: float,
    outside: float,
    latency: float = 0.0,
) -> tuple[float, float, float]:
    r"""Split an all-reduce over two levels into its three phases.

    .. math:: \frac{g-1}{g}\frac{S}{W_i},\quad 2\,\frac{k-1}{k}\frac{S/g}{W_o},\quad
       \frac{g-1}{g}\frac{S}{W_i}

    Parameters
    ----------
    size : float
        Bytes S of the array, [byte]
    per_node : int
        Ranks g of a node, all of which use their own network card, [-]
    nodes : int
        Nodes k, [-]
    inside : float
        Rate of a rank inside the node, one way, [byte/s]
    outside : float
        Network rate of a rank, one way, [byte/s]
    latency : float, optional
        Time of one hop, [s]

    Returns
    -------
    tuple of float
        Reduce-scatter inside, all-reduce of S/g across, all-gather inside, [s]

    Notes
    -----
    What enters the last phase is a piece of S/g on each rank, and another one on every
    rank: whoever holds S/g and needs S must receive the other g - 1 pieces. So the last
    phase moves as many bytes as the first.

    Examples
    --------
    >>> phases = hierarchical_all_reduce(2**34, 8, 4, 682e9, 50e9)
    >>> f"{sum(phases) * 1e3:.0f} ms"
    '109 ms'
    """
    inner = float(all_gather_time(size, per_node, inside, latency))
    outer = float(all_reduce_time(size / per_node, nodes, outside, latency))
    return inner, outer, inner


def busbw(size: ArrayLike, ranks: ArrayLike, time: ArrayLike) -> Array:
    r"""Bus bandwidth of an all-reduce: the rate that each link carries.

    .. math:: \text{busbw} = \frac{S}{t}\,\frac{2 (g - 1)}{g}

    Parameters
    ----------
    size : array_like
        Bytes S of the array, [byte]
    ranks : array_like
        Ranks g, [-]
    time : array_like
        Time t, [s]

    Returns
    -------
    numpy.ndarray or float
        Bus bandwidth, [byte/s]

    References
    ----------
    :cite:`nccl`, all-reduce benchmarks

    Examples
    --------
    >>> f"{busbw(16 * 2**20, 8, 276.6e-6) / 1e9:.1f} GB/s"
    '106.1 GB/s'
    """
    g = positive("ranks", ranks)
    return algbw(size, time) * 2.0 * (g - 1) / g


def algbw(size: ArrayLike, time: ArrayLike) -> Array:
    r"""Algorithm bandwidth: bytes of the array over time.

    .. math:: \text{algbw} = \frac{S}{t}

    Parameters
    ----------
    size : array_like
        Bytes S of the array, [byte]
    time : array_like
        Time t, [s]

    Returns
    -------
    numpy.ndarray or float
        Algorithm bandwidth, smaller than busbw by 2(g-1)/g, [byte/s]
    """
    return non_negative("size", size) / positive("time", time)


def fit_alpha_beta(size: ArrayLike, time: ArrayLike) -> tuple[float, float]:
    r"""Latency and rate of a straight line through measured times.

    .. math:: \min_{\alpha, \beta} \sum_i
       \left(\frac{\alpha + S_i/\beta}{t_i} - 1\right)^2

    Parameters
    ----------
    size : array_like
        Bytes, [byte]
    time : array_like
        Measured times, [s]

    Returns
    -------
    tuple of float
        Latency [s] and rate [byte/s]

    Notes
    -----
    Least squares of relative errors, so that small messages count as much as large
    ones. The line leaves the middle of the measured curve by tens of percent.

    Examples
    --------
    >>> alpha, beta = fit_alpha_beta([1e6, 1e9], [60e-6, 5.05e-3])
    >>> f"{alpha * 1e6:.0f} us, {beta / 1e9:.0f} GB/s"
    '55 us, 200 GB/s'
    """
    s, t = positive("size", size), positive("time", time)
    if s.size < 2:
        raise ValueError("size needs at least 2 messages to tell latency from rate")
    left = np.stack([1.0 / t, s / t], axis=-1).reshape(-1, 2)
    alpha, slope = np.linalg.lstsq(left, np.ones(len(left)), rcond=None)[0]
    return float(alpha), float(1.0 / slope)


# shared by the step model: two levels, arrays broadcast, no checks


def ring_factor(g: Any) -> Any:
    """Return (g-1)/g, [-]."""
    return 1.0 - 1.0 / g


def two_level_gather(
    size: Any, g: Any, stride: Any, domain: float, inside: float, outside: float
) -> Any:
    """Return seconds of an all-gather of ``size`` bytes over g ranks, arrays broadcast.

    Neighbours in the group are ``stride`` accelerators apart, so ``domain / stride`` of
    them share a node; each carries its share over its own network card, and the two
    levels follow one another. If the nodes do not come out even, the last one has the
    fewest cards for the same bytes and sets the pace.
    """
    near = np.minimum(np.maximum(domain / stride, 1.0), g)
    far = np.ceil(g / near - 1e-9)
    least = g - (far - 1.0) * near
    return size * (ring_factor(near) / inside + ring_factor(far) / least / outside)


COLLECTIVES = {
    "all-reduce": 2.0,
    "all-gather": 1.0,
    "reduce-scatter": 1.0,
    "all-to-all": 1.0,
}
"""Collectives by name, and how often each rank passes the array on, [-]."""


@dataclass(frozen=True, kw_only=True)
class CollectiveTime:
    """A collective over two levels, itemised.

    Parameters
    ----------
    latency : float
        Time without bytes, [s]
    inside : float
        Bytes over the links of a node, [s]
    outside : float
        Bytes over the network, [s]
    size : float
        Bytes of the array, [byte]
    ranks : int
        Ranks, [-]
    factor : float
        Passes over the array that each rank makes: 2 for an all-reduce, [-]
    """

    latency: float
    inside: float
    outside: float
    size: float
    ranks: int
    factor: float

    @property
    def total(self) -> float:
        """Sum of the items, [s]."""
        return self.latency + self.inside + self.outside

    @property
    def algbw(self) -> float:
        """Bytes of the array over time, [byte/s]; an error if nothing is sent."""
        if self.ranks == 1:
            raise ValueError(
                "one rank sends nothing and so has no bandwidth; use a cluster of at "
                "least 2 accelerators"
            )
        return self.size / self.total

    @property
    def busbw(self) -> float:
        """Rate of a link, [byte/s]; an error if nothing is sent."""
        return self.algbw * self.factor * (1.0 - 1.0 / self.ranks)

    def _repr_html_(self) -> str:
        rows = [
            [name, f"{1e3 * value:.4g}"]
            for name, value in (
                ("latency", self.latency),
                ("inside the node", self.inside),
                ("between nodes", self.outside),
                ("total", self.total),
            )
        ]
        caption = "one rank sends nothing"
        if self.ranks > 1:
            caption = (
                f"algbw {self.algbw / GB:.4g} GB/s, busbw {self.busbw / GB:.4g} GB/s, "
                f"{self.ranks} ranks"
            )
        return html_table(("item", "[ms]"), rows, caption)


def collective_time(
    collective: str, size: float, cluster: Cluster, in_network: bool = False
) -> CollectiveTime:
    r"""Time of a collective over all accelerators of a cluster.

    .. math:: \lceil \log_2 g \rceil \alpha
       + f\,\frac{k_i - 1}{k_i}\frac{S}{W_i} + f\,\frac{k - 1}{k}\frac{S}{r\,W_o}

    with g accelerators on k nodes, at most :math:`k_i` and at least r of them on one;
    f is 2 for an all-reduce and 1 for the others. Of an all-to-all,
    :math:`(k_i - 1)/g` of S stay in the node and at most :math:`(g - r)/g` leave it.

    Parameters
    ----------
    collective : {"all-reduce", "all-gather", "reduce-scatter", "all-to-all"}
        What is done, [-]
    size : float
        Bytes of the array; for an all-to-all, what each rank sends, [byte]
    cluster : Cluster
        The machine; its network is used at its nominal rate, [-]
    in_network : bool, optional
        The switch inside a node adds, so that an all-reduce sends each byte once
        there, [-]

    Returns
    -------
    CollectiveTime
        Latency, inside and between nodes, [s]

    Raises
    ------
    ValueError
        If the collective is unknown, or reduction in the switch is asked of another
        one than all-reduce.

    Notes
    -----
    All network cards of a node work. Inside a node the measured ring rate is used;
    8 H200 reach 1.31 times it with reduction in the switch, which only helps
    all-reduce and only above four or five accelerators.

    One rule for the latency of all of them: as many rounds as it takes at the least
    until every rank can have heard of every other, the logarithm of the ranks. The
    libraries come near it with trees for small messages; :func:`all_gather_time` and
    :func:`tree_all_reduce_time` are single algorithms that need more rounds.

    If the last node is not full, its few cards must carry as many bytes as the many of
    the others: twelve accelerators on two nodes of eight are slower than sixteen.

    References
    ----------
    :cite:`nccl`, all-reduce benchmarks

    Examples
    --------
    >>> four = Cluster(accelerator="b200-sxm", n_accelerators=32)
    >>> f"{collective_time('all-reduce', 2**34, four).outside * 1e3:.1f} ms"
    '64.4 ms'
    """
    one_of("collective", collective, COLLECTIVES)
    if in_network and collective != "all-reduce":
        raise ValueError(
            f"in_network=True adds in the switch, which {collective} does not need; "
            "use it with all-reduce"
        )
    passes = COLLECTIVES[collective]
    s = float(positive("size", size))
    g, near, far = cluster.n_accelerators, cluster.domain_size, cluster.n_domains
    least = g - (far - 1) * near
    w_in, w_out = cluster.chip.ring_bandwidth, cluster.network
    if collective == "all-to-all":
        inside = s * (near - 1) / g / w_in
        outside = s * (g - least) / g / w_out if far > 1 else 0.0
    else:
        inside = passes * s * ring_factor(near) / w_in
        outside = passes * s / least * ring_factor(far) / w_out
    if in_network and near > 4:
        inside /= IN_NETWORK
    return CollectiveTime(
        latency=float(cluster.latency * _rounds(g)),
        inside=float(inside),
        outside=float(outside),
        size=s,
        ranks=g,
        factor=passes,
    )


IN_NETWORK = (
    482.26 / 367.6
)  # 8 H200, 16 GiB, :cite:`nccl`: with the switch over the ring
