"""Training that synchronises seldom (DiLoCo): what it saves and what it costs."""

from dataclasses import dataclass
from functools import cache

from chinchilla_lab.checks import one_of, positive, whole
from chinchilla_lab.sources import read_rows

__all__ = ["LocalLoss", "bandwidth_saving", "local_loss", "loss_ratio"]


@dataclass(frozen=True, kw_only=True)
class LocalLoss:
    r"""Loss of a method of training against size, at its optimal data.

    .. math:: L = A N^{a} M^{b}

    Parameters
    ----------
    method : str
        How it was trained, [-]
    A : float
        Scale, [nats/token]
    N_exponent : float
        Exponent a of the size, [-]
    M_exponent : float
        Exponent b of the number of replicas that train apart, [-]
    where : str
        Place in the source, [-]
    """

    method: str
    A: float
    N_exponent: float
    M_exponent: float
    where: str

    def loss(self, N: float, replicas: int = 1) -> float:
        """Return the loss of a size.

        Parameters
        ----------
        N : float
            Parameters, [parameter]
        replicas : int, optional
            Replicas that train apart, [-]

        Returns
        -------
        float
            Loss, [nats/token]
        """
        n, m = float(positive("N", N)), whole("replicas", replicas)
        return float(self.A * n**self.N_exponent * m**self.M_exponent)


@cache
def _rows() -> dict[str, dict[str, str]]:
    return {row["id"]: row for row in read_rows("local_training.csv")}


def local_loss(name: str) -> LocalLoss:
    """Return a published law of local training.

    Parameters
    ----------
    name : {"dp-loss", "diloco-1-loss", "diloco-4-loss", "diloco-joint-loss"}
        Row of the table, [-]

    Returns
    -------
    LocalLoss
        The law, [nats/token]

    References
    ----------
    :cite:`diloco2025scaling`, Tables 7 and 10; fitted at 35M to 2.4B parameters

    Examples
    --------
    >>> f"{local_loss('diloco-joint-loss').loss(1e10, 4):.4f}"
    '2.0224'
    """
    known = [k for k, row in _rows().items() if row["kind"] == "loss"]
    row = _rows()[one_of("name", name, known)]
    return LocalLoss(
        method=row["method"], A=float(row["A"]), N_exponent=float(row["N_exponent"]),
        M_exponent=float(row["M_exponent"] or 0.0), where=row["where"],
    )  # fmt: skip


def loss_ratio(N: float) -> tuple[float, float]:
    """Loss of four replicas that train apart over that of one, by both fits.

    Parameters
    ----------
    N : float
        Parameters, [parameter]

    Returns
    -------
    tuple of float
        Over data-parallel training by the separate fits, and over one replica by the
        joint fit: the source disagrees with itself, [-]

    References
    ----------
    :cite:`diloco2025scaling`, Tables 7 and 10

    Examples
    --------
    >>> separate, joint = loss_ratio(1e10)
    >>> f"{separate:.4f} {joint:.4f}"
    '0.9965 1.0162'
    """
    separate = local_loss("diloco-4-loss").loss(N) / local_loss("dp-loss").loss(N)
    both = local_loss("diloco-joint-loss")
    return separate, both.loss(N, 4) / both.loss(N, 1)


def bandwidth_saving() -> tuple[float, float]:
    """Network of a 405B model for 80 % utilisation: every step, every 100th.

    Returns
    -------
    tuple of float
        Data-parallel training, and DiLoCo with 100 inner steps, [byte/s]

    References
    ----------
    :cite:`diloco2025scaling`, Table 6

    Examples
    --------
    >>> every, seldom = bandwidth_saving()
    >>> round(every / seldom)
    30
    """
    rows = (_rows()["dp-405b-80"], _rows()["diloco-405b-80"])
    every, seldom = (float(row["gbit_per_s"]) * 1e9 / 8.0 for row in rows)
    return every, seldom
