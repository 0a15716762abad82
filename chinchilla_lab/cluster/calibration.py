"""Constants of a stack from measured steps, and whole runs from accelerator-hours."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from chinchilla_lab.checks import fraction, one_of, positive
from chinchilla_lab.cluster import kernel
from chinchilla_lab.cluster.accelerators import Accelerator, find
from chinchilla_lab.cluster.hardware import Cluster, mfu
from chinchilla_lab.cluster.layout import Layout, sequences
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
    "CalibrationWarning",
    "MeasuredStep",
    "accelerator_hours",
    "calibrate",
    "predicted_seconds",
    "whole_run_mfu",
]

Array = NDArray[np.float64]
# where a fit starts if the constant is zero: a share of the step small enough to grow
_START = {"layer_overhead": 1e-3, "jitter": 0.02, "step_overhead": 1e-2}
# the fastest that each constant allows; nothing that is measured beats all of them
_FASTEST = {
    "gemm": 1.0, "attention": 1.0, "traffic": 0.0, "layer_overhead": 0.0,
    "network": 1.0, "jitter": 0.0, "step_overhead": 0.0,
}  # fmt: skip
FASTER = 0.05
"""How far a run may beat the bound before it is refused: clocks and rounding, [-]."""
SLOWEST = 0.05
"""Share of the best speed, or product, below which a fit is refused, [-]."""
POOR = 0.25
"""Mean error of the fitted rows above which the fit warns, [-]."""
NO_EFFECT = 1e-3
"""Change of the log time below which a constant is not settled, [-]."""


class CalibrationWarning(UserWarning):
    """Constants do not describe the rows, or rows do not settle the constants."""


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
        per_step = sequences(batch, seq_len) * seq_len
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
        The same where the row itself was not fitted; NaN for a row without which
        nothing could be fitted, [-]
    names : tuple of str
        Rows, [-]
    unsettled : tuple of str
        Constants on which the rows say nothing; they stay as they were, [-]
    at_bound : tuple of str
        Constants that the rows push to the end of their range, [-]
    """

    stack: Stack
    errors: Array
    left_out: Array
    names: tuple[str, ...]
    unsettled: tuple[str, ...] = ()
    at_bound: tuple[str, ...] = ()

    @property
    def mape(self) -> float:
        """Mean absolute error of the speed, [-]."""
        return float(np.abs(self.errors).mean())

    def _repr_html_(self) -> str:
        rows = [
            [name or str(i), f"{e:+.1%}", "" if np.isnan(out) else f"{out:+.1%}"]
            for i, (name, e, out) in enumerate(
                zip(self.names, self.errors, self.left_out, strict=True)
            )
        ]
        fitted = ", ".join(
            f"{n} {getattr(self.stack, n):.4g}" for n in self.stack.fitted
        )
        parts = [fitted or "nothing fitted", f"mean absolute error {self.mape:.1%}"]
        if self.unsettled:
            parts.append(f"not settled by these rows: {', '.join(self.unsettled)}")
        if self.at_bound:
            parts.append(f"at the end of its range: {', '.join(self.at_bound)}")
        return html_table(
            ("row", "error of the speed", "left out"), rows, "; ".join(parts)
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
        one; if a row is faster than the machine allows, or so slow that its unit must
        be another one.

    Warns
    -----
    CalibrationWarning
        If the rows say nothing about a constant or push it to the end of its range, or
        if the fitted model is still far from its rows.

    Notes
    -----
    Gauss and Newton's method on the logarithms of the constants, damped; ``gemm`` and
    ``attention`` stay at or below 1. What a left-out row would have shown is taken from
    the linearised fit: residual over one minus leverage.

    A constant is called fitted only if the rows settle it: if, beside the constants
    before it in the list, it changes the times of the rows at all. ``network`` does not
    on a single node, and ``jitter`` is one more factor of the speed if all rows have
    the same number of nodes. Such a constant keeps the value it had and is listed as
    ``unsettled``.

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
    _refuse_impossible(rows, base, names)
    wanted, unsettled = names, _unsettled(rows, measured, base, names)
    names = tuple(n for n in names if n not in unsettled)
    at_bound: tuple[str, ...] = ()
    while True:
        base, jacobian, log_errors = _fit(rows, measured, base, names)
        stuck = tuple(n for n in names if _stuck(n, base, jacobian, names))
        if not stuck:
            break
        # what has come to its end is no longer free: fit the others beside it
        ends = {n: 1.0 if n in _TOP else 0.0 for n in stuck}
        base = replace(base, **ends)  # type: ignore[arg-type]
        at_bound = tuple(n for n in wanted if n in (*at_bound, *stuck))
        names = tuple(n for n in names if n not in stuck)
    if base.gemm < SLOWEST:
        raise ValueError(
            f"gemm={base.gemm:.2g} would fit: products at {base.gemm:.1%} of the best "
            f"measured rate; {_CHECKS}"
        )
    hat = np.einsum("ij,ji->i", jacobian, np.linalg.pinv(jacobian))
    out = np.full(len(rows), np.nan)
    free = hat < 1.0 - 1e-6
    out[free] = np.expm1(np.clip(log_errors[free] / (1.0 - hat[free]), -5.0, 5.0))
    found = Calibration(
        stack=replace(
            base, name=f"{find_stack(start).name}, calibrated", fitted=names,
            rows=(label or f"{len(rows)} measured steps") if names else "",
            error=float(np.abs(out).mean()) if names else float("nan"),
            source="", changed=(),
        ),
        errors=np.expm1(log_errors), left_out=out, names=tuple(r.name for r in rows),
        unsettled=unsettled, at_bound=at_bound,
    )  # fmt: skip
    _warn(found)
    return found


_TOP = ("gemm", "attention")
_CHECKS = (
    "check that seconds are those of one step, that batch counts sequences, that the "
    "number of accelerators, the shape and the dtype are those of the run"
)


def _refuse_impossible(
    rows: Sequence[MeasuredStep], base: Stack, names: Sequence[str]
) -> None:
    """Refuse rows far from the model with every fitted constant at its best."""
    best = {
        n: max(_FASTEST[n], base.network) if n == "network" else _FASTEST[n]
        for n in names
    }
    bound = predicted_seconds(rows, replace(base, **best))  # type: ignore[arg-type]
    for row, least in zip(rows, bound, strict=True):
        if row.seconds < least / (1.0 + FASTER):
            raise ValueError(
                f"seconds={row.seconds:.4g}{f' of {row.name}' if row.name else ''} is "
                f"{least / row.seconds:.2f} times as fast as the machine allows, "
                f"{least:.4g} s with {', '.join(names)} at the best: the peak or the "
                f"count of FLOP is not that of the run; {_CHECKS}, and that what else "
                "is assumed (recompute, overlap) is not too slow"
            )
        if row.seconds * SLOWEST > least:
            raise ValueError(
                f"seconds={row.seconds:.4g}{f' of {row.name}' if row.name else ''} is "
                f"{row.seconds / least:.3g} times what the machine needs at its best, "
                f"{least:.4g} s: no constant of software explains that; {_CHECKS}"
            )


def _unsettled(
    rows: Sequence[MeasuredStep], measured: Array, base: Stack, names: Sequence[str]
) -> tuple[str, ...]:
    """Return constants that change no time, or only as those before them do."""
    x, residuals, _ = _problem(rows, measured, base, names)
    jacobian = _slopes(residuals, x, residuals(x))
    kept: list[int] = []
    for i in range(len(names)):
        column = jacobian[:, i]
        others = jacobian[:, kept]
        own = column - others @ (np.linalg.pinv(others) @ column) if kept else column
        # 1e-6 is nothing at all; 1e-4 is what the difference quotients leave of it
        if np.abs(column).max() > 1e-6 and (
            np.linalg.norm(own) > 1e-4 * np.linalg.norm(column)
        ):
            kept.append(i)
    return tuple(n for i, n in enumerate(names) if i not in kept)


def _stuck(name: str, stack: Stack, jacobian: Array, names: Sequence[str]) -> bool:
    """Whether a fitted constant has come to the end of its range."""
    if name in _TOP and getattr(stack, name) > 1.0 - 1e-9:
        return True
    falls = _FASTEST[name] == 0.0
    return falls and bool(np.abs(jacobian[:, names.index(name)]).max() < NO_EFFECT)


def _warn(found: Calibration) -> None:
    said = []
    if found.unsettled:
        said.append(
            f"the rows do not settle {', '.join(found.unsettled)}, which stay as they "
            "were; give rows that differ in the number of nodes or in the layout, or "
            "leave them out of constants"
        )
    if found.at_bound:
        said.append(
            f"{', '.join(found.at_bound)} ended at the end of the range and counts as "
            "assumed; if gemm did, the run reaches the bound: " + _CHECKS
        )
    if found.mape > POOR:
        said.append(
            f"mean error {found.mape:.0%} of the rows that were fitted: the model does "
            f"not describe them; {_CHECKS}"
        )
    if said:
        warnings.warn("; ".join(said), CalibrationWarning, stacklevel=3)


def _problem(
    rows: Sequence[MeasuredStep], measured: Array, base: Stack, names: Sequence[str]
) -> tuple[Array, Callable[[Array], Array], Callable[[Array], Stack]]:
    """Return the start, the residuals and the stack of logarithms of constants."""

    def made(x: Array) -> Stack:
        values = {n: float(v) for n, v in zip(names, np.exp(x), strict=True)}
        return replace(base, **values)  # type: ignore[arg-type]

    def residuals(x: Array) -> Array:
        return np.log(predicted_seconds(rows, made(x)) / measured)

    first = [getattr(base, n) or _START.get(n, 1.0) for n in names]
    return np.log(np.array(first, dtype=np.float64)), residuals, made


def _fit(
    rows: Sequence[MeasuredStep], measured: Array, base: Stack, names: Sequence[str]
) -> tuple[Stack, Array, Array]:
    """Return the stack, the slopes at it, and the logarithmic errors of the speed."""
    x, residuals, made = _problem(rows, measured, base, names)
    jacobian = np.zeros((len(rows), 0))
    if names:
        top = np.array([0.0 if n in _TOP else np.inf for n in names])
        x, jacobian = _gauss_newton(residuals, x, top)
    return made(x), jacobian, -residuals(x)


def _slopes(f: Callable[[Array], Array], x: Array, here: Array) -> Array:
    """Return the slopes of ``f``, by differences downwards: 1 is the top for some."""
    step = 1e-5
    moves = step * np.eye(len(x))
    return np.stack([(here - f(x - d)) / step for d in moves], axis=1)


def _gauss_newton(
    f: Callable[[Array], Array], x: Array, top: Array
) -> tuple[Array, Array]:
    """Return the minimum of the sum of squares at or below ``top``, and the slopes."""
    damping = 1e-3
    here = f(x)
    jacobian = _slopes(f, x, here)
    for _ in range(100):
        normal = jacobian.T @ jacobian
        scale = damping * np.diag(np.diag(normal) + 1e-12)
        move = np.clip(np.linalg.solve(normal + scale, -jacobian.T @ here), -0.7, 0.7)
        move = np.minimum(x + move, top) - x
        there = f(x + move)
        if there @ there < here @ here:
            done = np.abs(move).max() < 1e-7
            x, here, damping = x + move, there, damping / 4.0
            jacobian = _slopes(f, x, here)
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
