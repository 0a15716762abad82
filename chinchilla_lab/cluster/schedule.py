"""A pipeline schedule, pass by pass: who works when, and who waits."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from chinchilla_lab.checks import positive, whole
from chinchilla_lab.cluster.layout import check_interleaving

__all__ = ["Schedule", "schedule"]

Array = NDArray[np.float64]
Whole = NDArray[np.int64]
Pass = tuple[bool, int, int]  # backward, chunk, micro-batch


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """Passes of a pipeline; the time of a micro-batch through a whole stage is 1.

    Parameters
    ----------
    stage : numpy.ndarray
        Stage of each pass, [-]
    chunk : numpy.ndarray
        Model chunk of each pass, [-]
    micro_batch : numpy.ndarray
        Micro-batch of each pass, [-]
    backward : numpy.ndarray
        Whether it is a backward pass, [-]
    start : numpy.ndarray
        Beginning, in passes of a micro-batch through a stage, [-]
    end : numpy.ndarray
        End, in the same unit, [-]
    pp : int
        Stages, [-]
    n_micro_batches : int
        Micro-batches, [-]
    """

    stage: Whole
    chunk: Whole
    micro_batch: Whole
    backward: NDArray[np.bool_]
    start: Array
    end: Array
    pp: int
    n_micro_batches: int

    @property
    def length(self) -> float:
        """End of the last pass, in passes through a stage, [-]."""
        return float(self.end.max())

    @property
    def bubble(self) -> float:
        """Idle time of a stage over its working time, [-]."""
        return self.length / self.n_micro_batches - 1.0

    @property
    def in_flight(self) -> float:
        """Micro-batches through a whole stage that the first stage holds at most, [-].

        A chunk counts by its share of the stage.
        """
        mine = self.stage == 0
        chunks = int(self.chunk.max()) + 1
        order = np.argsort(self.end[mine], kind="stable")
        held = np.cumsum(np.where(self.backward[mine][order], -1, 1))
        return float(held.max()) / chunks


def _order(p: int, rank: int, m: int, v: int) -> list[Pass]:
    """Return the passes of a stage in the order in which it does them."""

    def split(k: int, backward: bool) -> Pass:
        # groups of p micro-batches go through all chunks before the next group
        chunk = k % (p * v) // p
        place = v - 1 - chunk if backward else chunk
        return backward, place, k // (p * v) * p + k % p

    total = m * v
    warm = p - rank - 1 if v == 1 else 2 * (p - rank - 1) + (v - 1) * p
    warm = min(warm, total)
    if v == 1:
        forward: list[Pass] = [(False, 0, k) for k in range(m)]
        back: list[Pass] = [(True, 0, k) for k in range(m)]
    else:
        forward = [split(k, False) for k in range(total)]
        back = [split(k, True) for k in range(total)]
    order = forward[:warm]
    for k in range(total - warm):
        order += [forward[warm + k], back[k]]
    return order + back[total - warm :]


def schedule(
    pp: int, n_micro_batches: int, n_chunks: int = 1, backward: float = 2.0
) -> Schedule:
    r"""Play 1F1B, plain or interleaved, pass by pass.

    .. math:: t_\text{start} = \max(t_\text{stage free},\; t_\text{input there})

    Parameters
    ----------
    pp : int
        Pipeline stages p, [-]
    n_micro_batches : int
        Micro-batches m, [-]
    n_chunks : int, optional
        Model chunks v of a stage; above 1 the schedule is interleaved, [-]
    backward : float, optional
        Time of a backward pass over that of a forward pass, [-]

    Returns
    -------
    Schedule
        Beginning and end of every pass, [-]

    Raises
    ------
    ValueError
        If the schedule is interleaved and p does not divide m, or p is 1.

    Notes
    -----
    Equal stages, messages free. Its idle time is
    :func:`~chinchilla_lab.cluster.bubble_fraction`, obtained without that formula.

    References
    ----------
    :cite:`narayanan2021efficient`, figures 3 and 4

    Examples
    --------
    >>> plan = schedule(pp=4, n_micro_batches=8)
    >>> round(plan.length, 9), round(plan.bubble, 9)
    (11.0, 0.375)
    """
    p, m = whole("pp", pp), whole("n_micro_batches", n_micro_batches)
    v = whole("n_chunks", n_chunks)
    check_interleaving(p, m, v)
    ratio = float(positive("backward", backward))
    span = {False: 1.0 / (1.0 + ratio) / v, True: ratio / (1.0 + ratio) / v}
    orders = [_order(p, rank, m, v) for rank in range(p)]
    done: dict[tuple[bool, int, int], float] = {}  # backward, layer piece, micro-batch
    free, at = [0.0] * p, [0] * p
    rows: list[tuple[int, int, int, bool, float, float]] = []
    last = p * v - 1
    while len(rows) < 2 * m * v * p:
        for rank in range(p):
            while at[rank] < len(orders[rank]):
                back, chunk, micro = orders[rank][at[rank]]
                piece = chunk * p + rank
                if back:
                    needs = (False, last, micro) if piece == last else (
                        True, piece + 1, micro
                    )  # fmt: skip
                    ready = done.get(needs)
                else:
                    ready = 0.0 if piece == 0 else done.get((False, piece - 1, micro))
                if ready is None:
                    break
                start = max(free[rank], ready)
                end = start + span[back]
                done[back, piece, micro] = free[rank] = end
                rows.append((rank, chunk, micro, back, start, end))
                at[rank] += 1
    columns = list(zip(*rows, strict=True))
    return Schedule(
        stage=np.array(columns[0], dtype=np.int64),
        chunk=np.array(columns[1], dtype=np.int64),
        micro_batch=np.array(columns[2], dtype=np.int64),
        backward=np.array(columns[3], dtype=np.bool_),
        start=np.array(columns[4]),
        end=np.array(columns[5]),
        pp=p,
        n_micro_batches=m,
    )
