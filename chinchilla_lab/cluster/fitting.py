"""Whether a layout fits its accelerator, and what would make it fit."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from chinchilla_lab.checks import InfeasibleError
from chinchilla_lab.cluster.hardware import Cluster
from chinchilla_lab.cluster.layout import Layout
from chinchilla_lab.cluster.memory import Recipe, components
from chinchilla_lab.cluster.stacks import Stack
from chinchilla_lab.shape.transformer import TransformerShape
from chinchilla_lab.units import GB

__all__ = ["WAYS"]

WAYS = 2
"""Ways out that an error names."""


def bytes_needed(
    shape: TransformerShape,
    layout: Layout,
    batch: int,
    seq_len: int,
    recipe: Recipe,
    stack: Stack,
    dropout: bool = False,
) -> float:
    """Return the bytes of the fullest accelerator, with what the stack reserves."""
    items = components(
        shape,
        layout.degrees(),
        float(layout.micro_batches(batch)),
        float(seq_len),
        recipe,
        stack.fused,
        dropout,
        stack.reserved,
        stack.head_counted,
    )
    return float(sum(items))


def _changed(layout: Layout, domain: int) -> Iterator[tuple[str, Layout]]:
    """Yield leaner layouts of as many accelerators, one change after another."""
    if layout.micro_batch > 1:
        yield "micro_batch=1", replace(layout, micro_batch=1)
    if layout.tp > 1 and not layout.sequence_parallel:
        yield "sequence_parallel=True", replace(layout, sequence_parallel=True)
    for stage in range(layout.zero + 1, 2 if layout.pp > 1 else 4):
        if layout.dp * layout.cp > 1:
            yield f"zero={stage}", replace(layout, zero=stage)
    if layout.recompute != "full":
        yield "recompute='full'", replace(layout, recompute="full")
    for name in ("cp", "tp", "pp"):
        for factor in (2, 4, 8, 16):
            wider = getattr(layout, name) * factor
            if layout.dp % factor or (name == "tp" and wider > domain):
                break
            yield (
                f"{name}={wider}",
                replace(layout, **{name: wider, "dp": layout.dp // factor}),
            )


def _both(layout: Layout, domain: int) -> Iterator[tuple[str, Layout]]:
    """Yield single changes, then pairs of them."""
    seen = list(_changed(layout, domain))
    yield from seen
    for text, one in seen:
        for more, two in _changed(one, domain):
            yield f"{text} with {more}", two


def ways_out(
    layout: Layout,
    domain: int,
    limit: float,
    bytes_of: Callable[[Layout], float],
    pairs: bool = True,
) -> str:
    """Return the nearest changes that fit, or say that there is none."""
    found: list[str] = []
    used: set[str] = set()
    for text, other in (_both if pairs else _changed)(layout, domain):
        kind = text.split("=")[0]
        if kind in used:
            continue
        try:
            need = bytes_of(other)
        except ValueError:
            continue
        if need <= limit:
            found.append(f"{text} ({need / GB:.1f} GB)")
            used.add(kind)
        if len(found) == WAYS:
            break
    return " or ".join(found)


def check_fits(
    shape: TransformerShape,
    cluster: Cluster,
    layout: Layout,
    batch: int,
    seq_len: int,
    recipe: Recipe,
    stack: Stack,
    limit: float,
    even_stages: bool,
) -> None:
    """Refuse a layout that the memory cannot hold, and say what to change."""

    def bytes_of(other: Layout) -> float:
        other.check(shape, cluster, batch, seq_len, even_stages)
        return bytes_needed(shape, other, batch, seq_len, recipe, stack)

    need = bytes_needed(shape, layout, batch, seq_len, recipe, stack)
    if need <= limit:
        return
    way = ways_out(layout, cluster.domain_size, limit, bytes_of)
    raise InfeasibleError(
        f"{layout.label()} needs {need / GB:.1f} GB on the fullest accelerator and "
        f"{limit / GB:.1f} GB are there; "
        + (way if way else "use more accelerators or a shorter sequence")
        + ", or time it all the same with check_memory=False"
    )


def refuse_memory(
    shape: TransformerShape,
    cluster: Cluster,
    batch: int,
    seq_len: int,
    even: bool,
    nearest: Layout,
    limit: float,
    divisible: int,
    bytes_of: Callable[[Layout], float],
) -> None:
    """Name the nearest miss, and the axis whose opening would make it fit."""
    way = ""
    for stages in (True, False) if even else (False,):

        def checked(layout: Layout, stages: bool = stages) -> float:
            layout.check(shape, cluster, batch, seq_len, stages)
            return bytes_of(layout)

        if way := ways_out(nearest, cluster.domain_size, limit, checked, pairs=False):
            way = way if stages or not even else f"even_stages=False and {way}"
            break
    raise InfeasibleError(
        f"no layout fits: of {divisible:,} that divide, the leanest "
        f"({nearest.label()}) needs {bytes_of(nearest) / GB:.1f} GB and memory_limit "
        f"is {limit / GB:.1f} GB; "
        + (
            f"give the search {way}"
            if way
            else "no single axis mends that: use more accelerators, a shorter sequence "
            "or a leaner recipe, or even_stages=False with wider pp"
        )
    )
