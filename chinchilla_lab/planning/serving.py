"""What serving would reach on the accelerators of a plan, beside what is assumed."""

from dataclasses import replace

from chinchilla_lab.checks import InfeasibleError
from chinchilla_lab.cluster.hardware import Cluster
from chinchilla_lab.inference.decode import (
    MEASURED_SLOWDOWN,
    decode_step,
    largest_batch,
)
from chinchilla_lab.inference.fleet import fewest_accelerators
from chinchilla_lab.inference.served import ServedModel, ServingHardware
from chinchilla_lab.planning.results import Plan
from chinchilla_lab.shape.transformer import TransformerShape

__all__ = ["decode_utilisation"]

AS_TRAINING = "serving at the utilisation of training"


def decode_utilisation(
    shape: TransformerShape, cluster: Cluster, context: float, dtype: str = "bf16"
) -> tuple[float, float]:
    r"""Return the share of the peak that writing tokens reaches.

    .. math:: u = \frac{2 N B}{t_\text{step}(B)\,n P\,s}

    Parameters
    ----------
    shape : TransformerShape
        The model, [-]
    cluster : Cluster
        Its accelerators serve, one copy of the model on a node or as many as hold it,
        [-]
    context : float
        Tokens of a request when it is done; on average half of them are cached, [token]
    dtype : str, optional
        Format whose peak is taken; weights and cache have 16 bits, [-]

    Returns
    -------
    tuple of float
        Share at the largest and at the least slowdown s below the roofline that was
        measured, [-]

    Raises
    ------
    InfeasibleError
        If not even one request fits.
    ValueError
        If the memory bandwidth is not known.

    Notes
    -----
    As many requests at once as memory holds. Prompts are read in parallel and reach
    more: this is the case of long answers.

    References
    ----------
    :cite:`scalingbook`, chapter on inference

    Examples
    --------
    >>> from chinchilla_lab.shape import SHAPES
    >>> loft = Cluster(accelerator="h100-sxm-80gb", n_accelerators=64)
    >>> low, high = decode_utilisation(SHAPES["llama-3-8b"], loft, 4096)
    >>> f"{low:.0%} to {high:.0%}"
    '8% to 12%'
    """
    model, chip = ServedModel.from_shape(shape), cluster.chip
    one = ServingHardware(
        peak_flops=chip.peak(dtype), bandwidth=chip.need("hbm_bandwidth"),
        memory=chip.memory,
    )  # fmt: skip
    n = max(fewest_accelerators(model, one, context), cluster.domain_size)
    node = replace(one, n_accelerators=n)
    batch = max(1.0, float(largest_batch(model, node, context)))
    share = float(decode_step(model, node, batch, context / 2.0).mfu)
    fast, slow = MEASURED_SLOWDOWN
    return share / slow, share / fast


def with_serving_note(plan: Plan) -> Plan:
    """Put beside the assumed utilisation of serving what its accelerators reach."""
    p = plan.problem
    if AS_TRAINING not in plan.assumptions or plan.shape is None:
        return plan
    try:
        low, high = decode_utilisation(plan.shape, p.cluster, p.seq_len, p.dtype)
    except (InfeasibleError, ValueError):
        return plan
    said = (
        f"{AS_TRAINING}, {plan.utilisation:.0%}: decoding reaches about {low:.0%} to "
        f"{high:.0%} here, so serving costs more; give serving_utilisation="
        f"{(low * high) ** 0.5:.2g}"
    )
    if high > plan.utilisation:
        said = f"{AS_TRAINING}, {plan.utilisation:.0%}"
    notes = tuple(said if x == AS_TRAINING else x for x in plan.assumptions)
    return replace(plan, assumptions=notes)
