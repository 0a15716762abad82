"""One accelerator: matrix products between peak and memory bandwidth."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chinchilla_lab.checks import one_of, positive, whole
from chinchilla_lab.cluster import kernel
from chinchilla_lab.cluster.accelerators import DTYPES, Accelerator, find
from chinchilla_lab.tables import html_table

__all__ = [
    "Product",
    "compute_bound_tokens",
    "gemm",
    "ridge_tokens",
    "roofline",
    "wave_efficiency",
]

Array = NDArray[np.float64]


def wave_efficiency(m: ArrayLike, n: ArrayLike, n_cores: int) -> Array:
    r"""Share of the cores' tile slots that hold output.

    .. math:: \frac{M N}{T_M T_N \; k\left\lceil
       \lceil M/T_M \rceil \lceil N/T_N \rceil / k \right\rceil}

    with k cores and tiles of 256 by 128, either way round; a product smaller than a
    tile takes a smaller one, in steps of 16.

    Parameters
    ----------
    m : array_like
        Rows M of the product, [-]
    n : array_like
        Columns N of the product, [-]
    n_cores : int
        Cores k, [-]

    Returns
    -------
    numpy.ndarray or float
        Efficiency, at most 1, [-]

    References
    ----------
    :cite:`bloom`, section on tile and wave quantization

    Examples
    --------
    >>> f"{wave_efficiency(2048, 7200, 108):.3f} {wave_efficiency(2048, 6912, 108):.3f}"
    '0.833 1.000'
    """
    cores = float(whole("n_cores", n_cores))
    return np.asarray(
        kernel.wave_efficiency(positive("m", m), positive("n", n), cores)
    )[()]


@dataclass(frozen=True, kw_only=True)
class Product:
    """One matrix product on one accelerator.

    Parameters
    ----------
    flop : float
        Work, [FLOP]
    size : float
        Bytes read and written, [byte]
    seconds : float
        Time, [s]
    waves : int
        Rounds of tiles over the cores, [-]
    wave_efficiency : float
        Share of tile slots in use, [-]
    bound : str
        "compute" or "memory", whichever takes longer, [-]
    """

    flop: float
    size: float
    seconds: float
    waves: int
    wave_efficiency: float
    bound: str

    @property
    def intensity(self) -> float:
        """Work over bytes, [FLOP/byte]."""
        return self.flop / self.size

    @property
    def rate(self) -> float:
        """Work over time, [FLOP/s]."""
        return self.flop / self.seconds

    def _repr_html_(self) -> str:
        rows = [
            ["intensity [FLOP/byte]", f"{self.intensity:.4g}"],
            ["rate [TFLOP/s]", f"{self.rate / 1e12:.4g}"],
            ["time [ms]", f"{self.seconds * 1e3:.4g}"],
            ["waves", f"{self.waves}"],
            ["wave efficiency", f"{self.wave_efficiency:.3f}"],
            ["bound by", self.bound],
        ]
        return html_table(("product", "value"), rows)


def gemm(
    m: int,
    n: int,
    k: int,
    accelerator: Accelerator | str,
    dtype: str = "bf16",
    efficiency: float = 1.0,
) -> Product:
    r"""Time of one matrix product, M by K times K by N.

    .. math:: t = \max\left(\frac{2MNK}{e\,\eta_\text{wave}\,P},\;
       \frac{w\,(MK + KN + MN)}{W}\right)

    Parameters
    ----------
    m : int
        Rows M: tokens, [-]
    n : int
        Columns N: outputs, [-]
    k : int
        Depth K: inputs, [-]
    accelerator : Accelerator or str
        The chip or its key, [-]
    dtype : {"bf16", "fp8", "tf32"}, optional
        Number format, [-]
    efficiency : float, optional
        Share e of the best measured product, P, [-]

    Returns
    -------
    Product
        Work [FLOP], bytes [byte] and time [s]

    Examples
    --------
    >>> product = gemm(8192, 24576, 6144, "h100-sxm-80gb")
    >>> product.bound, round(product.intensity)
    ('compute', 3072)
    """
    chip = find(accelerator)
    rows, columns, depth = (
        float(whole(x, v)) for x, v in zip("mnk", (m, n, k), strict=True)
    )
    width = kernel.VALUE_BYTES[one_of("dtype", dtype, DTYPES)]
    cores = float(chip.need("n_cores"))
    fill = float(kernel.wave_efficiency(rows, columns, cores))
    flop = 2.0 * rows * columns * depth
    size = width * (rows * depth + depth * columns + rows * columns)
    work = flop / (
        float(positive("efficiency", efficiency)) * fill * chip.ceiling(dtype)
    )
    move = size / float(chip.need("hbm_bandwidth"))
    return Product(
        flop=flop,
        size=size,
        seconds=max(work, move),
        waves=_waves(rows, columns, cores),
        wave_efficiency=fill,
        bound="compute" if work >= move else "memory",
    )


def _waves(rows: float, columns: float, cores: float) -> int:
    counts = []
    for high, wide in kernel.TILES:
        tiles = np.ceil(rows / high) * np.ceil(columns / wide)
        counts.append(int(np.ceil(tiles / cores)))
    return min(counts)


def roofline(
    intensity: ArrayLike,
    accelerator: Accelerator | str,
    dtype: str = "bf16",
    ceiling: Literal["sheet", "measured"] = "sheet",
) -> Array:
    r"""Highest rate at an arithmetic intensity.

    .. math:: \min(P,\; I\, W)

    Parameters
    ----------
    intensity : array_like
        Work I over bytes, [FLOP/byte]
    accelerator : Accelerator or str
        The chip or its key, [-]
    dtype : {"bf16", "fp8", "tf32"}, optional
        Number format, [-]
    ceiling : {"sheet", "measured"}, optional
        Data-sheet peak or best measured product, [-]

    Returns
    -------
    numpy.ndarray or float
        Rate, [FLOP/s]

    Examples
    --------
    >>> roofline([100, 1000], "h100-sxm-80gb") / 1e12
    array([335., 989.])
    """
    chip = find(accelerator)
    one_of("ceiling", ceiling, ("sheet", "measured"))
    top = chip.peak(dtype) if ceiling == "sheet" else chip.ceiling(dtype)
    slope = float(chip.need("hbm_bandwidth"))
    return np.minimum(positive("intensity", intensity) * slope, top)[()]


def ridge_tokens(
    width: int, accelerator: Accelerator | str, dtype: str = "bf16"
) -> float:
    r"""Tokens at which a square product leaves the bandwidth roof.

    .. math:: \frac{M h}{2 M + h} = I^* \;\Rightarrow\; M = \frac{I^* h}{h - 2 I^*}

    with :math:`I^* = w P / 2 W` for values of w bytes.

    Parameters
    ----------
    width : int
        Inputs and outputs h of the product, [-]
    accelerator : Accelerator or str
        The chip or its key, [-]
    dtype : {"bf16", "fp8", "tf32"}, optional
        Number format, [-]

    Returns
    -------
    float
        Tokens M, [token]

    Raises
    ------
    ValueError
        If the width is at most twice the ridge point: then no M suffices.

    Notes
    -----
    A format of half the width and twice the peak needs as many tokens: bytes and FLOP
    take half the time each.

    Examples
    --------
    >>> round(ridge_tokens(6144, "h100-sxm-80gb"))
    327
    """
    h = whole("width", width)
    chip = find(accelerator)
    size = kernel.VALUE_BYTES[one_of("dtype", dtype, DTYPES)]
    # the ridge point for values of two bytes that do as many FLOP as these
    ridge = chip.peak(dtype) / float(chip.need("hbm_bandwidth")) * size / 2.0
    if h <= 2 * ridge:
        raise ValueError(
            f"width={h} is at most twice the ridge point, {ridge:.0f} in 16 bits: no "
            f"number of tokens lifts such a product; use more than {2 * ridge:.0f}"
        )
    return ridge * h / (h - 2 * ridge)


def compute_bound_tokens(
    peak_flops: float, bandwidth: float, d_ff: int | None = None
) -> float:
    r"""Tokens an accelerator needs in a step so that products hide sharded weights.

    .. math:: \alpha = \frac{C}{W} \quad(\text{data parallel, FSDP}), \qquad
       \frac{2 \alpha^2}{F} \quad(\text{FSDP and TP together})

    Parameters
    ----------
    peak_flops : float
        Rate C of the products, [FLOP/s]
    bandwidth : float
        Bandwidth W of an accelerator, all axes, both ways, [byte/s]
    d_ff : int, optional
        Width F of the MLP: given, tensor parallelism shares the load, [-]

    Returns
    -------
    float
        Tokens per accelerator and step, [token]

    References
    ----------
    :cite:`scalingbook`, training

    Examples
    --------
    >>> round(compute_bound_tokens(4.59e14, 1.8e11))
    2550
    """
    alpha = float(positive("peak_flops", peak_flops) / positive("bandwidth", bandwidth))
    return alpha if d_ff is None else 2.0 * alpha**2 / whole("d_ff", d_ff)
