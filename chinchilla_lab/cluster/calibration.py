"""Constants of a stack from measured steps, and whole runs from accelerator-hours."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from chinchilla_lab.checks import fraction, one_of, positive, whole
from chinchilla_lab.cluster import kernel
from chinchilla_lab.cluster.accelerators import Accelerator, find
from chinchilla_lab.cluster.hardware import Cluster, mfu
from chinchilla_lab.cluster.layout import Layout
from chinchilla_lab.cluster.stacks import (
    FITTABLE,
    TYPICAL,
    UNCALIBRATED,
    Stack,
    find_stack,
)
from chinchilla_lab.shape.transformer import TransformerShape
from chinchilla_lab.tables import html_table
from chinchilla_lab.units import FLOP_PER_ND, HOUR

__all__ = [
    "Calibration",
    "MeasuredStep",
    "accelerator_hours",
    "calibrate",
    "predicted_seconds",
    "whole_run_mfu",
]

Array = NDArray[np.float64]
# where a fit starts if the constant is zero: a share of the step small enough to grow
_START = {"layer_overhead": 1e-3, "jitter": 0.02, "step_overhead": 1e-2}


@dataclass(frozen=True, kw_only=True)
class MeasuredStep:
    """A step that somebody timed.

    Parameters
    ----------
    shape : TransformerShape
        The model, [-]
    cluster : Cluster
        The machine, [-]
    layout : Layout
        How the job was cut, [-]
    batch : int
        Sequences of a step, [sequence]
    seq_len : int
        Tokens of a sequence, [token]
    seconds : float
        Time of a step, [s]
    dtype : str, optional
        Format of the matrix products, [-]
    name : str, optional
        What to call it, [-]
    """

    shape: TransformerShape
    cluster: Cluster
    layout: Layout
    batch: int
    seq_len: int
    seconds: float
    dtype: str = "bf16"
    name: str = ""

    def __post_init__(self) -> None:
        positive("seconds", self.seconds)
        self.layout.check(
            self.shape, self.cluster, self.batch, self.seq_len, even_stages=False
        )

    @classmethod
    def from_run(
        cls,
        shape: TransformerShape,
        cluster: Cluster,
        layout: Layout,
        batch: int,
        seq_len: int,
        tokens: float,
        seconds: float,
        dtype: str = "bf16",
    ) -> "MeasuredStep":
        """Take the step time of a single run from its tokens and seconds.

        Parameters
        ----------
        shape : TransformerShape
            The model, [-]
        cluster : Cluster
            The machine, [-]
        layout : Layout
            How the job was cut, [-]
        batch : int
            Sequences of a step, [sequence]
        seq_len : int
            Tokens of a sequence, [token]
        tokens : float
            Tokens that were trained on in that time, [token]
        seconds : float
            Time without stops, [s]
        dtype : {"bf16", "fp8", "tf32"}, optional
            Format of the matrix products, [-]

        Returns
        -------
        MeasuredStep
            The step, [s]
        """
        per_step = whole("batch", batch) * whole("seq_len", seq_len)
        rate = float(positive("tokens", tokens)) / float(positive("seconds", seconds))
        return cls(
            shape=shape,
            cluster=cluster,
            layout=layout,
            batch=batch,
            seq_len=seq_len,
            seconds=per_step / rate,
            dtype=dtype,
        )


def predicted_seconds(
    rows: Sequence[MeasuredStep], stack: Stack | str = UNCALIBRATED
) -> Array:
    """Step times of the model for measured steps.

    Parameters
    ----------
    rows : sequence of MeasuredStep
        The steps, [-]
    stack : Stack or str, optional
        The stack, [-]

    Returns
    -------
    numpy.ndarray
        Times, [s]
    """
    used = find_stack(stack)
    return np.array(
        [
            float(
                kernel.seconds(
                    r.shape,
                    r.layout.degrees(),
                    float(r.batch),
                    float(r.seq_len),
                    kernel.machine(r.cluster, used, r.dtype),
                    used,
                )
            )
            for r in rows
        ]
    )


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """Fitted constants and how well they meet their own rows.

    Parameters
    ----------
    stack : Stack
        The stack with its fitted constants, [-]
    errors : numpy.ndarray
        Predicted over measured speed, less one, row by row, [-]
    left_out : numpy.ndarray
        The same where the row itself was not fitted, [-]
    names : tuple of str
        Rows, [-]
    """

    stack: Stack
    errors: Array
    left_out: Array
    names: tuple[str, ...]

    @property
    def mape(self) -> float:
        """Mean absolute error of the speed, [-]."""
        return float(np.abs(self.errors).mean())

    def _repr_html_(self) -> str:
        rows = [
            [name or str(i), f"{e:+.1%}", f"{out:+.1%}"]
            for i, (name, e, out) in enumerate(
                zip(self.names, self.errors, self.left_out, strict=True)
            )
        ]
        fitted = ", ".join(
            f"{n} {getattr(self.stack, n):.4g}" for n in self.stack.fitted
        )
        return html_table(
            ("row", "error of the speed", "left out"),
            rows,
            f"{fitted}; mean absolute error {self.mape:.1%}",
        )


def calibrate(
    rows: Sequence[MeasuredStep],
    start: Stack | str = TYPICAL,
    constants: Sequence[str] = ("gemm",),
    label: str = "",
) -> Calibration:
    r"""Fit at most four constants to measured steps.

    .. math:: \min_\theta \sum_i \ln^2 \frac{t_i(\theta)}{t_i^\text{measured}}

    Parameters
    ----------
    rows : sequence of MeasuredStep
        Measured steps; one suffices for one constant, [-]
    start : Stack or str, optional
        Where to start, and the constants that stay; by default overlap as in well-tuned
        stacks, [-]
    constants : sequence of str, optional
        Which of ``FITTABLE`` to fit: ``gemm`` from one row, more from rows that differ
        in what the constant stands for, [-]
    label : str, optional
        What the rows are, shown with every result, [-]

    Returns
    -------
    Calibration
        Stack and errors, [-]

    Raises
    ------
    ValueError
        If there are fewer rows than constants, more than four constants, or an unknown
        one.

    Notes
    -----
    Gauss and Newton's method on the logarithms of the constants, damped; ``gemm`` and
    ``attention`` stay at or below 1. What a left-out row would have shown is taken from
    the linearised fit: residual over one minus leverage.

    Examples
    --------
    >>> from chinchilla_lab.shape import SHAPES
    >>> loft = Cluster(accelerator="h100-sxm-80gb", n_accelerators=64)
    >>> plan = Layout(tp=2, dp=32, zero=1, recompute="full", sequence_parallel=True)
    >>> run = MeasuredStep.from_run(SHAPES["llama-3-8b"], loft, plan, batch=512,
    ...     seq_len=8192, tokens=1e9, seconds=2100)
    >>> own = calibrate([run], label="our pilot")
    >>> own.stack.label, f"{own.mape:.4f}"
    ('calibrated to our pilot', '0.0000')
    """
    base, names = find_stack(start), tuple(constants)
    for name in names:
        one_of("constants", name, FITTABLE)
    if not 1 <= len(names) <= 4:
        raise ValueError(
            f"constants={', '.join(names) or 'none'}: fit one to four; more would fit "
            "any table"
        )
    if len(rows) < len(names):
        raise ValueError(
            f"{len(rows)} measured steps cannot settle {len(names)} constants; give "
            "more rows or fit gemm alone"
        )
    measured = np.array([r.seconds for r in rows])

    def made(x: Array) -> Stack:
        return base.with_(
            **{k: float(v) for k, v in zip(names, np.exp(x), strict=True)}
        )

    def residuals(x: Array) -> Array:
        return np.log(predicted_seconds(rows, made(x)) / measured)

    first = [getattr(base, n) or _START.get(n, 1.0) for n in names]
    top = np.array([0.0 if n in ("gemm", "attention") else np.inf for n in names])
    x, jacobian = _gauss_newton(residuals, np.log(np.array(first)), top)
    text = label or f"{len(rows)} measured steps"
    found = made(x).with_(
        name=f"{base.name}, calibrated", fitted=names, rows=text, notes=base.notes
    )
    log_errors = -residuals(x)
    hat = np.einsum("ij,ji->i", jacobian, np.linalg.pinv(jacobian))
    out = log_errors / np.maximum(1.0 - hat, 1e-9) if len(rows) > 1 else log_errors
    return Calibration(
        stack=found,
        errors=np.expm1(log_errors),
        left_out=np.expm1(np.clip(out, -5.0, 5.0)),
        names=tuple(r.name for r in rows),
    )


def _gauss_newton(
    f: Callable[[Array], Array], x: Array, top: Array
) -> tuple[Array, Array]:
    """Return the minimum of the sum of squares at or below ``top``, and the slopes."""
    step, damping = 1e-5, 1e-3
    here = f(x)

    def slopes(x: Array, here: Array) -> Array:
        moves = step * np.eye(len(x))
        return np.stack([(here - f(x - d)) / step for d in moves], axis=1)

    jacobian = slopes(x, here)
    for _ in range(100):
        normal = jacobian.T @ jacobian
        scale = damping * np.diag(np.diag(normal) + 1e-12)
        move = np.clip(np.linalg.solve(normal + scale, -jacobian.T @ here), -0.7, 0.7)
        move = np.minimum(x + move, top) - x
        there = f(x + move)
        if there @ there < here @ here:
            done = np.abs(move).max() < 1e-7
            x, here, damping = x + move, there, damping / 4.0
            jacobian = slopes(x, here)
            if done:
                break
        else:
            damping *= 5.0
            if damping > 1e9:
                break
    return x, jacobian


def whole_run_mfu(
    N: float,
    D: float,
    hours: float,
    accelerator: Accelerator | str | float,
    dtype: str = "bf16",
) -> float:
    r"""Utilisation of a whole run from its published accelerator-hours.

    .. math:: \frac{6 N D}{\text{hours} \cdot 3600 \cdot P}

    Parameters
    ----------
    N : float
        Parameters that a token uses: the active ones of a mixture, [parameter]
    D : float
        Training tokens, [token]
    hours : float
        Accelerator-hours, stops and restarts included, [h]
    accelerator : Accelerator or str or float
        The chip, its key, or a dense peak of your own [FLOP/s], [-]
    dtype : {"bf16", "fp8", "tf32"}, optional
        Format whose peak is taken, [-]

    Returns
    -------
    float
        6ND over what the peak would have done, [-]

    Raises
    ------
    ValueError
        If it exceeds 1: total parameters of a mixture, or another chip's peak.

    Examples
    --------
    >>> f"{whole_run_mfu(69e9, 2e12, 1720320, 'a100-sxm-80gb'):.4f}"
    '0.4285'
    """
    work = FLOP_PER_ND * float(positive("N", N)) * float(positive("D", D))
    return mfu(work / (float(positive("hours", hours)) * HOUR), accelerator, dtype)


def accelerator_hours(
    N: float,
    D: float,
    utilisation: float,
    accelerator: Accelerator | str,
    dtype: str = "bf16",
) -> float:
    r"""Accelerator-hours of a run at the utilisation of another.

    .. math:: \frac{6 N D}{u\, P\, 3600}

    Parameters
    ----------
    N : float
        Parameters that a token uses, [parameter]
    D : float
        Training tokens, [token]
    utilisation : float
        Share of the peak over the whole run, as of :func:`whole_run_mfu`, [-]
    accelerator : Accelerator or str
        The chip or its key, [-]
    dtype : {"bf16", "fp8", "tf32"}, optional
        Format whose peak is taken, [-]

    Returns
    -------
    float
        Accelerator-hours, [h]

    Examples
    --------
    >>> share = whole_run_mfu(70e9, 2e12, 1720320, "a100-sxm-80gb")
    >>> f"{accelerator_hours(10e9, 2e12, share, 'a100-sxm-80gb'):.3g}"
    '2.46e+05'
    """
    rate = find(accelerator).peak(dtype) * float(fraction("utilisation", utilisation))
    work = FLOP_PER_ND * float(positive("N", N)) * float(positive("D", D))
    return work / rate / HOUR
