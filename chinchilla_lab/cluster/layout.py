"""How a model is cut over a cluster, and whether it can be cut so."""

from dataclasses import dataclass, fields
from typing import Any, Literal, NamedTuple

import numpy as np

from chinchilla_lab.checks import one_of, whole
from chinchilla_lab.cluster.hardware import Cluster
from chinchilla_lab.shape.transformer import TransformerShape

__all__ = ["RECOMPUTE", "Degrees", "Layout", "largest_divisor", "sequences"]

Recompute = Literal["none", "selective", "full"]
RECOMPUTE = ("none", "selective", "full")
# a batch of more sequences is one that was given in tokens
MOST_SEQUENCES = 1_000_000


def sequences(batch: int, seq_len: int) -> int:
    """Return a batch as a number of sequences, refused if it counts tokens.

    Parameters
    ----------
    batch : int
        Sequences of a step, [sequence]
    seq_len : int
        Tokens of a sequence, [token]

    Returns
    -------
    int
        The batch, [sequence]

    Raises
    ------
    ValueError
        If it is no whole number, or above a million.

    Examples
    --------
    >>> sequences(1024, 8192)
    1024
    """
    count, s = whole("batch", batch), whole("seq_len", seq_len)
    if count > MOST_SEQUENCES:
        raise ValueError(
            f"batch={count} counts sequences; {count} tokens are "
            f"{max(1, round(count / s))} sequences of {s}"
        )
    return count


class Degrees(NamedTuple):
    """A layout as numbers or arrays that broadcast: what the formulas work on.

    ``full`` and ``selective`` are 1 where that recomputation is used, ``sp`` where the
    sequence is split, ``zero`` is the stage.
    """

    t: Any
    p: Any
    d: Any
    c: Any
    e: Any
    b: Any
    v: Any
    zero: Any
    full: Any
    selective: Any
    sp: Any


def largest_divisor(n: int, most: int) -> int:
    """Return the largest divisor of a count that does not exceed a bound.

    Parameters
    ----------
    n : int
        The count, [-]
    most : int
        The bound, [-]

    Returns
    -------
    int
        The divisor, at least 1, [-]

    Examples
    --------
    >>> largest_divisor(105, 16)
    15
    """
    return max(k for k in range(1, max(1, min(n, most)) + 1) if n % k == 0)


def check_interleaving(pp: int, n_micro_batches: int, n_chunks: int) -> None:
    """Refuse chunks that a pipeline cannot interleave, and say what to change."""
    if n_chunks > 1 and (pp == 1 or n_micro_batches % pp):
        raise ValueError(
            f"n_chunks={n_chunks} interleaves pp={pp} stages and needs pp above 1 that "
            f"divides n_micro_batches={n_micro_batches}; use "
            f"n_micro_batches={max(pp, n_micro_batches // pp * pp)} or n_chunks=1"
        )


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Degrees of parallelism of a job.

    Parameters
    ----------
    tp : int
        Tensor parallel: matrices cut over accelerators, [-]
    pp : int
        Pipeline parallel: stages, [-]
    dp : int
        Data parallel: replicas, [-]
    cp : int
        Context parallel: pieces of a sequence, [-]
    ep : int
        Expert parallel: groups among which the experts of a layer are dealt; runs
        inside tp x cp x dp and uses no accelerators of its own, [-]
    micro_batch : int
        Sequences of a micro-batch, [sequence]
    n_chunks : int
        Model chunks per stage; above 1 the schedule is interleaved, [-]
    zero : int
        ZeRO stage: 1 shards optimizer states over dp x cp, 2 gradients too, 3 (FSDP)
        weights too, [-]
    recompute : {"none", "selective", "full"}
        Activations computed again in the backward pass: none, the scores of attention,
        or all but the input of each layer, [-]
    sequence_parallel : bool
        Norms and dropout are cut along the sequence over tp, [-]

    Raises
    ------
    ValueError
        If a degree is not a whole number above 0, or a switch no truth value.

    Examples
    --------
    >>> plan = Layout(tp=8, pp=16, dp=64, micro_batch=1)
    >>> plan.n_accelerators
    8192
    """

    tp: int = 1
    pp: int = 1
    dp: int = 1
    cp: int = 1
    ep: int = 1
    micro_batch: int = 1
    n_chunks: int = 1
    zero: int = 0
    recompute: Recompute = "none"
    sequence_parallel: bool = False

    def __post_init__(self) -> None:
        for name in ("tp", "pp", "dp", "cp", "ep", "micro_batch", "n_chunks"):
            object.__setattr__(self, name, whole(name, getattr(self, name)))
        object.__setattr__(self, "zero", whole("zero", self.zero, 0))
        if self.zero > 3:
            raise ValueError(f"zero={self.zero} is no stage; choose 0, 1, 2 or 3")
        one_of("recompute", self.recompute, RECOMPUTE)
        if not isinstance(self.sequence_parallel, bool | np.bool_):
            raise ValueError(
                f"sequence_parallel={self.sequence_parallel!r} is no switch; use True "
                "or False"
            )
        object.__setattr__(self, "sequence_parallel", bool(self.sequence_parallel))
        if self.n_chunks > 1 and self.pp == 1:
            raise ValueError(
                f"n_chunks={self.n_chunks} interleaves stages, but pp=1 has none; "
                "set n_chunks=1 or pp above 1"
            )

    @property
    def n_accelerators(self) -> int:
        """Accelerators that the job needs, [-]."""
        return self.tp * self.pp * self.dp * self.cp

    def degrees(self) -> Degrees:
        """Return the layout as floats for the formulas.

        Returns
        -------
        Degrees
            Numbers, [-]
        """
        return Degrees(
            t=np.float64(self.tp),
            p=np.float64(self.pp),
            d=np.float64(self.dp),
            c=np.float64(self.cp),
            e=np.float64(self.ep),
            b=np.float64(self.micro_batch),
            v=np.float64(self.n_chunks),
            zero=np.float64(self.zero),
            full=np.float64(self.recompute == "full"),
            selective=np.float64(self.recompute == "selective"),
            sp=np.float64(self.sequence_parallel),
        )

    def micro_batches(self, batch: int) -> int:
        """Micro-batches of a replica in a step.

        Parameters
        ----------
        batch : int
            Sequences of a step, [sequence]

        Returns
        -------
        int
            Micro-batches m, [-]

        Raises
        ------
        ValueError
            If the batch does not divide.

        Examples
        --------
        >>> Layout(dp=64, micro_batch=2).micro_batches(2048)
        16
        """
        share = self.dp * self.micro_batch
        if whole("batch", batch) % share:
            near = max(1, batch // share) * share
            raise ValueError(
                f"batch={batch} is no multiple of dp*micro_batch = "
                f"{self.dp}*{self.micro_batch} = {share}; use batch={near} or another "
                "micro_batch"
            )
        return batch // share

    def check(
        self,
        shape: TransformerShape,
        cluster: Cluster,
        batch: int,
        seq_len: int,
        even_stages: bool = True,
    ) -> None:
        """Refuse a layout that cannot run, and say what to change.

        Parameters
        ----------
        shape : TransformerShape
            The model, [-]
        cluster : Cluster
            The machine, [-]
        batch : int
            Sequences of a step, [sequence]
        seq_len : int
            Tokens of a sequence, [token]
        even_stages : bool, optional
            Every stage must hold as many layers as the others, [-]

        Raises
        ------
        ValueError
            If accelerators, heads, layers, experts, sequence or batch do not divide.
        """
        n, used = cluster.n_accelerators, self.n_accelerators
        if used != n:
            rest = self.tp * self.pp * self.cp
            way = (
                f"with tp={self.tp}, pp={self.pp}, cp={self.cp} the largest dp is "
                f"{n // rest}"
                if rest <= n
                else "reduce tp, pp or cp"
            )
            raise ValueError(
                f"tp*pp*dp*cp = {self.tp}*{self.pp}*{self.dp}*{self.cp} = {used}, "
                f"but the cluster has {n}; {way}"
            )
        self.check_shape(shape, seq_len, even_stages)
        m = self.micro_batches(batch)
        if self.n_chunks > 1 and m % self.pp:
            raise ValueError(
                f"the interleaved schedule needs pp={self.pp} to divide the {m} "
                "micro-batches; change micro_batch or dp, or set n_chunks=1"
            )
        if self.zero >= 2 and self.pp > 1:
            raise ValueError(
                f"zero={self.zero} with pp={self.pp} would gather or reduce in every "
                "micro-batch; use zero=1, or pp=1"
            )

    def check_shape(
        self, shape: TransformerShape, seq_len: int, even_stages: bool = True
    ) -> None:
        """Refuse degrees that do not divide a model, whatever the machine.

        Parameters
        ----------
        shape : TransformerShape
            The model, [-]
        seq_len : int
            Tokens of a sequence, [token]
        even_stages : bool, optional
            Every stage must hold as many layers as the others, [-]

        Raises
        ------
        ValueError
            If heads, widths, layers, experts or the sequence do not divide.
        """
        heads, layers = shape.n_heads, shape.n_layers
        if heads % self.tp:
            raise ValueError(
                f"tp={self.tp} does not divide n_heads={heads}; "
                f"tp={largest_divisor(heads, self.tp)} does"
            )
        if max(shape.kv_heads, self.tp) % min(shape.kv_heads, self.tp):
            raise ValueError(
                f"tp={self.tp} and n_kv_heads={shape.kv_heads} do not divide; "
                f"tp={largest_divisor(shape.kv_heads, self.tp)} does"
            )
        for name, size in (("d_ff", shape.d_ff), ("d_model", shape.d_model)):
            if size % self.tp:
                raise ValueError(
                    f"tp={self.tp} does not divide {name}={size}; "
                    f"tp={largest_divisor(size, self.tp)} does"
                )
        if layers < self.pp * self.n_chunks:
            raise ValueError(
                f"pp*n_chunks = {self.pp * self.n_chunks} exceeds n_layers={layers}; "
                f"use pp={largest_divisor(layers, self.pp)} and fewer chunks"
            )
        if even_stages and layers % (self.pp * self.n_chunks):
            fits = largest_divisor(layers, self.pp)
            raise ValueError(
                f"n_layers={layers} do not divide into pp*n_chunks = "
                f"{self.pp}*{self.n_chunks} equal pieces; pp={fits} with "
                f"n_chunks={largest_divisor(layers // fits, self.n_chunks)} do, or "
                "pass even_stages=False and let the longest stage set the pace"
            )
        if shape.n_experts % self.ep:
            raise ValueError(
                f"ep={self.ep} does not divide n_experts={shape.n_experts}; "
                f"ep={largest_divisor(shape.n_experts, self.ep)} does"
            )
        group = self.tp * self.cp * self.dp
        if group % self.ep:
            raise ValueError(
                f"ep={self.ep} does not divide tp*cp*dp = {group}, inside which the "
                f"experts are dealt; ep={largest_divisor(group, self.ep)} does"
            )
        if seq_len % (self.cp * (self.tp if self.sequence_parallel else 1)):
            raise ValueError(
                f"seq_len={seq_len} does not divide into cp={self.cp} pieces"
                + (f" of tp={self.tp} parts" if self.sequence_parallel else "")
                + f"; cp={largest_divisor(seq_len, self.cp)} divides it"
            )

    def label(self) -> str:
        """Write the layout in one line, defaults left out.

        Returns
        -------
        str
            Text, [-]

        Examples
        --------
        >>> Layout(tp=8, pp=16, dp=64).label()
        'tp 8, pp 16, dp 64'
        """
        words = []
        for f in fields(self):
            value = getattr(self, f.name)
            if value != f.default:
                name = f.name.replace("_", " ")
                words.append(name if value is True else f"{name} {value}")
        return ", ".join(words) or "one accelerator"
