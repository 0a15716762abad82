"""Every lever, tried on a plan."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from chinchilla_lab.allocation.optimum import optimal_for_loss
from chinchilla_lab.checks import InfeasibleError
from chinchilla_lab.cluster.batch import WARMUP_STEPS_SAVED, divisible_batch
from chinchilla_lab.cluster.failures import Reliability, spares
from chinchilla_lab.cluster.local_training import bandwidth_saving, loss_ratio
from chinchilla_lab.cluster.stacks import TYPICAL
from chinchilla_lab.planning.losses import silent
from chinchilla_lab.planning.pricing import Lever, Pricing, Published
from chinchilla_lab.planning.problem import Problem
from chinchilla_lab.planning.speed import fastest, search_all
from chinchilla_lab.shape.family import shapes_near
from chinchilla_lab.units import DAY, HOUR

__all__: list[str] = []

MOST_SHAPES = 60
NEAR = 0.03
SMALL_BATCH = 2**22  # tokens
# shapes whose times differ by less are one shape to the search
SAME_SHAPE = 5e-3
# sizes at which the laws of local training were checked
LOCAL_CHECKED = 10e9
REPLICAS = 4
# overlap of a well-tuned stack
TUNED = {"tp_overlap": TYPICAL.tp_overlap, "dp_overlap": TYPICAL.dp_overlap}
# a doubled job waits longer for its slowest: of jobs of thousands, 3 % each doubling
SLOWER_DOUBLED = 1.03
SEVERAL_MINUTES, QUARTER = 300.0, 900.0

# slower time over faster, as measured: rows of the same model on as many H100 in the
# tables of LLM Foundry and of NVIDIA's recipes, see the tests
FP8 = Published(low=1.05, middle=1.38, high=1.55)
RECOMPUTE = Published(low=1.29, middle=1.32, high=1.32)
OVERLAP = Published(low=1.06, high=1.10)  # of tensor parallelism alone
MEASURED = {
    "layouts": "1.32, worst over best of the BLOOM trials, bloom",
    "shape": "1.27 for a width in the BLOOM trials, bloom",
    "recompute": "1.29 to 1.32, korthikanti2022reducing, Table 5",
    "overlap": "1.06 to 1.10 for asynchronous tensor parallelism, torchtitan",
    "fp8": "1.05 to 1.55, median 1.38, of 19 pairs on H100; 1.44, torchtitan",
    "warm-up": "43 % fewer steps of one run of 1B, merrill2025critical",
    "local": "222.3 to 7.5 Gbit/s at 80 % utilisation, diloco2025scaling; losses "
    "fitted up to 2.4B parameters, checked at 10B",
}


def every_lever(c: Pricing, shapes: bool = True) -> Iterator[Lever]:
    """Try each lever on a plan, other shapes only if asked: they are half the work."""
    yield _layouts(c)
    yield from _axes(c)
    yield _overlap(c)
    yield _fp8(c)
    yield from _network(c)
    yield from _accelerators(c)
    yield from _batches(c)
    yield from _failures(c)
    if shapes:
        yield _shape(c)
    yield _local(c)


def _layouts(c: Pricing) -> Lever:
    name, told = "other layouts", MEASURED["layouts"]
    if c.best is None:
        return c.absent(name, "no layout of this shape and batch divides and fits")
    if c.searched:
        median = c.best.median_factor
        return c.lever(
            name, median, [max(1.0, median / c.difference)], pulled=True,
            note=f"median of {c.best.n_feasible} that fit", measured=told,
            why=f"all {c.best.n_feasible} that fit are alike", reorganised=True,
        )  # fmt: skip
    # searched again from nothing, whatever was typed
    others = []
    for stack in c.stacks():
        p = c.problem.with_(stack=stack)
        own, free = c.of(p), fastest(p, c.shape, c.batch)
        if own is not None and free is not None:
            others.append(free.step.seconds / own.step.seconds)
    return c.lever(
        name, c.factor(c.problem, c.best), others, pulled=False,
        note=c.best.step.layout.label(), measured=told, reorganised=True,
        why="what was typed is as fast as any",
    )  # fmt: skip


def _axis(
    c: Pricing, name: str, *, on: bool, off: dict[str, Any],
    tries: list[dict[str, Any]], note: tuple[str, str], measured: str = "",
    free: tuple[str, ...] = (), published: Published | None = None, why: str = "",
) -> Lever:  # fmt: skip
    """Take an axis of the layout out of a plan that has it, or put it in."""
    if on:
        factor = c.factor(c.problem, c.of(c.problem, **off))
        return c.lever(
            name, factor, c.over_stacks(c.problem, **off), pulled=True, note=note[0],
            measured=measured, reorganised=True, published=published,
        )  # fmt: skip
    if not tries:
        return c.absent(name, why, measured)
    if c.searched:
        return c.absent(
            name, "the search tried it: slower here, or does not fit", measured
        )
    # alone if it fits; if not, with more sharding to make room
    for around in dict.fromkeys(((), free)):
        made = [
            (c.factor(c.problem, speed), change, speed)
            for change in tries
            if (speed := c.of(c.problem, free=around, **change)) is not None
        ]
        if made:
            factor, change, speed = min(made, key=lambda m: m[0])
            layout = speed.step.layout
            words = note[1]
            if around:
                words += f", with ZeRO-{layout.zero}" if layout.zero else ""
                words += ", with sequence parallelism" * layout.sequence_parallel
            return c.lever(
                name, factor, c.over_stacks(c.problem, free=around, **change),
                pulled=False, note=words, measured=measured, reorganised=True,
                published=published,
            )  # fmt: skip
    words = "; ".join(dict.fromkeys(c.memory_words(**change) for change in tries))
    return c.absent(name, f"{note[1]}: {words}", measured)


def _axes(c: Pricing) -> Iterator[Lever]:
    own, fused = c.layout, c.problem.stack.fused
    again = [{"recompute": "none"}] + [{"recompute": "selective"}] * (not fused)
    yield _axis(
        c, "no full recomputation", on=own.recompute != "full",
        off={"recompute": "full"}, tries=again,
        note=("everything recomputed",
              "nothing recomputed" if fused else "selective or none"),
        measured=MEASURED["recompute"], free=("zero", "sequence_parallel"),
        published=RECOMPUTE,
    )  # fmt: skip
    cut = own.tp > 1
    yield _axis(
        c, "sequence parallelism", on=own.sequence_parallel,
        off={"sequence_parallel": False}, tries=[{"sequence_parallel": True}] * cut,
        note=("without it", "norms cut along the sequence"),
        why="there is no tensor parallelism whose sequence it could cut",
    )  # fmt: skip
    per_stage = c.shape.n_layers // own.pp
    chunks = [v for v in range(2, 17) if c.shape.n_layers % (own.pp * v) == 0]
    yield _axis(
        c, "interleaved stages", on=own.n_chunks > 1, off={"n_chunks": 1},
        tries=[{"n_chunks": v} for v in chunks] if own.pp > 1 else [],
        note=("one chunk a stage", "several chunks a stage"),
        free=("zero", "sequence_parallel"),
        why="one stage has nothing to interleave" if own.pp == 1
        else f"{per_stage} layers a stage cannot be cut",
    )  # fmt: skip
    larger = [{"micro_batch": b} for b in (2, 4, 8) if b > own.micro_batch]
    yield _axis(
        c, "larger micro-batches", on=own.micro_batch > 1, off={"micro_batch": 1},
        tries=larger, note=("one sequence", "more sequences at a time"),
        free=("zero", "sequence_parallel"),
    )  # fmt: skip
    yield _axis(
        c, "sharded states (ZeRO)", on=own.zero > 0, off={"zero": 0},
        tries=[{"zero": 1}] * (own.dp > 1), note=("without it", "stage 1"),
        why="there are no replicas to shard over",
    )  # fmt: skip
    if own.tp > 1:
        off = {"tp": 1} if c.searched else {"tp": 1, "sequence_parallel": False}
        yield _axis(c, "tensor parallelism", on=True, off=off, tries=[],
                    note=("without it", ""))  # fmt: skip
    if own.pp > 1:
        off = {"pp": 1} if c.searched else {"pp": 1, "n_chunks": 1}
        yield _axis(c, "pipeline stages", on=True, off=off, tries=[],
                    note=("without them", ""))  # fmt: skip


def _overlap(c: Pricing) -> Lever:
    p, name = c.problem, "overlap of communication"
    pulled = bool(p.stack.tp_overlap or p.stack.dp_overlap)
    bare = {"tp_overlap": 0.0, "dp_overlap": 0.0}

    def other(problem: Problem) -> Problem:
        return problem.with_(stack=problem.stack.with_(**(bare if pulled else TUNED)))

    ends = []
    for stack in c.stacks():
        # every stack with and without it
        has = stack.tp_overlap or stack.dp_overlap
        one = stack.with_(**TUNED) if pulled and not has else stack
        one = one if pulled else one.with_(**bare)
        before = p.with_(stack=one)
        ends.append(c.ratio(before, other(before)))
    return c.lever(
        name, c.factor(p, c.of(other(p))), [e for e in ends if np.isfinite(e)],
        pulled=pulled, measured=MEASURED["overlap"], published=OVERLAP,
        note="nothing overlapped" if pulled else "{tp_overlap:g} of tensor, "
        "{dp_overlap:g} of data traffic".format(**TUNED),
        why="" if p.n > 1 else "one accelerator sends nothing",
    )  # fmt: skip


def _fp8(c: Pricing) -> Lever:
    p, chip, name = c.problem, c.problem.cluster.chip, "fp8 products"
    if p.dtype == "fp8":
        other, pulled, note = p.with_(dtype="bf16"), True, "bf16"
    elif "fp8" in chip.peaks and "fp8" in chip.gemm_ceilings:
        other, pulled, note = p.with_(dtype="fp8"), False, "loss taken to stay"
    else:
        return c.absent(
            name, f"no measured fp8 product of {chip.name}", MEASURED["fp8"]
        )
    return c.lever(
        name, c.factor(other, c.of(other)), c.over_stacks(other), pulled=pulled,
        note=note, measured=MEASURED["fp8"], published=FP8,
    )  # fmt: skip


def _network(c: Pricing) -> Iterator[Lever]:
    now = c.problem.cluster.network
    for name, pulled, times, note in (
        ("network twice as fast", False, 2.0, "twice the bandwidth"),
        ("network as it is", True, 1.0 / 9.0, "a ninth of the bandwidth"),
    ):
        if c.problem.cluster.n_domains == 1:
            yield c.absent(name, "one node sends nothing over it")
            continue
        other = c.with_cluster(scaleout_bandwidth=now * times)
        yield c.lever(
            name, c.factor(other, c.of(other)), c.over_stacks(other), pulled=pulled,
            note=note,
        )  # fmt: skip


def _accelerators(c: Pricing) -> Iterator[Lever]:
    for name, times in (
        ("twice the accelerators", 2.0),
        ("half the accelerators", 0.5),
    ):
        other = c.times(times)
        if other is None:
            yield c.absent(name, f"{c.problem.working} do not halve")
            continue
        n = other.n
        # the same batch, or as near to it as that many replicas can share out
        near = divisible_batch(c.batch, other.working, "replicas")
        tried = {b: c.factor(other, c.of(other, b), b) for b in {c.batch: 0, near: 0}}
        own = min(tried, key=lambda b: np.nan_to_num(tried[b], nan=np.inf))
        factor = tried[own]
        slower = SLOWER_DOUBLED ** (1.0 if times > 1.0 else -1.0)
        yield c.lever(
            name, factor, [*c.over_stacks(other, own), factor * slower], pulled=False,
            cards=times,
            note=f"{n:,}, {'same batch' if own == c.batch else f'batch of {own:,}'}",
            why="" if np.isfinite(factor) else f"no layout fits or divides on {n:,}",
        )  # fmt: skip


def _batches(c: Pricing) -> Iterator[Lever]:
    p, b = c.problem, c.batch
    twice = divisible_batch(2 * b, p.working, "most")
    yield c.lever(
        "twice the batch", c.factor(p, c.of(p, twice), twice), c.over_stacks(p, twice),
        pulled=False, note=f"{twice:,} sequences",
    )  # fmt: skip
    yield _warm_up(c)
    capped = divisible_batch(max(1, SMALL_BATCH // p.seq_len), p.working, "most")
    name = "batch above 4.2M tokens"
    if capped >= b:
        yield c.absent(name, "the batch is not above")
    else:
        yield c.lever(
            name, c.factor(p, c.of(p, capped), capped), c.over_stacks(p, capped),
            pulled=True, note="a batch of 4.2M tokens",
        )  # fmt: skip


def _warm_up(c: Pricing) -> Lever:
    """Let the batch grow with the critical one.

    A constant batch is held to what the start of a run bears. Grown with the critical
    batch, it may be larger on average at the same waste: 43 % fewer steps.
    """
    p, times = c.problem, 1.0 / (1.0 - WARMUP_STEPS_SAVED)
    grown = p
    if p.critical_batch is not None:
        grown = p.with_(critical_batch=p.critical_batch * times)
    larger = divisible_batch(int(c.batch * times + 0.5), p.working, "most")
    made = [
        (f, batch)
        for batch in dict.fromkeys((larger, c.batch))
        if np.isfinite(f := c.factor(grown, c.of(grown, batch), batch))
    ]
    if not made:
        return c.absent(
            "batch warm-up", "no layout divides the larger batch", MEASURED["warm-up"]
        )
    factor, batch = min(made)
    if factor >= 1.0:
        return c.absent(
            "batch warm-up", "a larger batch is no faster here", MEASURED["warm-up"]
        )
    # one run of one size: it may be worth nothing to another
    others = [1.0, *c.over_stacks(grown, batch)]
    return c.lever(
        "batch warm-up", factor, others, pulled=False, measured=MEASURED["warm-up"],
        note=f"{batch / c.batch:.2f} times the batch on average"
        + (", waste as before" if p.critical_batch is not None else ""),
    )  # fmt: skip


def _failures(c: Pricing) -> Iterator[Lever]:
    reliable = c.problem.reliability
    names = ("asynchronous checkpoints", "frequent checkpoints",
             "fast restarts (hot spares)")  # fmt: skip
    if reliable is None or reliable.failures_per_node_day == 0.0:
        for name in names:
            yield c.absent(name, "this machine never fails")
        return

    def row(
        name: str, other: Reliability, *, pulled: bool, note: str, cards: float = 1.0,
        own_cards: float = 1.0,
    ) -> Lever:  # fmt: skip
        def factor(rate: float) -> float:
            one, two = (
                r.with_(failures_per_node_day=rate).goodput(c.problem.working).share
                for r in (reliable, other)
            )
            return one / two

        return c.lever(
            name, factor(reliable.failures_per_node_day),
            [factor(rate) for rate in reliable.band if rate > 0.0], pulled=pulled,
            note=note, cards=cards, own_cards=own_cards,
        )  # fmt: skip

    if reliable.blocking:
        beside = reliable.with_(
            blocking=False,
            interval=max(reliable.save, reliable.interval or SEVERAL_MINUTES),
        )
        yield row(names[0], beside, pulled=False, note="written beside the work")
    else:
        waits = reliable.with_(blocking=True, interval=None)
        yield row(names[0], waits, pulled=True, note="job waits, best interval")
    if reliable.interval is None:
        yield c.absent(names[1], "they are already as frequent as pays")
    elif reliable.interval < HOUR:
        seldom = reliable.with_(interval=HOUR)
        yield row(names[1], seldom, pulled=True, note="one an hour")
    else:
        often = None if reliable.blocking else SEVERAL_MINUTES
        yield row(names[1], reliable.with_(interval=often), pulled=False,
                  note="one in five minutes" if often else "best interval")  # fmt: skip
    # a restart waits for no repair where a spare node is ready
    nodes = -(-c.problem.working // reliable.node_size)
    ready = spares(nodes, reliable.failures_per_node_day, repair=DAY)
    more = 1.0 + ready * reliable.node_size / c.problem.n
    words = f"{ready} spare nodes paid" if ready != 1 else "1 spare node paid"
    if reliable.restart <= SEVERAL_MINUTES:
        yield row(names[2], reliable.with_(restart=QUARTER), pulled=True,
                  note=f"15 min to restart; {words}, which the plan's cost leaves out",
                  own_cards=more)  # fmt: skip
    else:
        yield row(names[2], reliable.with_(restart=SEVERAL_MINUTES), pulled=False,
                  note=f"5 min to restart, {words}", cards=more)  # fmt: skip


def _shape(c: Pricing) -> Lever:
    """Compare shapes of equal size at equal compute."""
    family = c.problem.shape_family or "llama"
    active = float(c.shape.params().active)
    near = [s for _, s in shapes_near(active, NEAR, family)[:MOST_SHAPES]]
    if c.searched:
        search_all((c.problem, s, c.batch) for s in near)
    name, told = "shape", MEASURED["shape"]
    found = [(v.utilisation, s) for s in near if (v := c.of(c.problem, shape=s))]
    if not found:
        return c.absent(name, "no shape of this size runs in this layout", told)
    own = c.speed.utilisation
    best, shape = max(found, key=lambda f: f[0])
    if best > own * (1.0 + SAME_SHAPE):
        size = float(shape.params().active) / active
        return c.lever(
            name, own / best, [], pulled=False, measured=told, reorganised=True,
            note=f"{shape.n_layers} layers of width {shape.d_model:,}, {size:.2f} "
            "times the size, same compute",
        )  # fmt: skip
    quarter, median, three = np.percentile([u for u, _ in found], [25.0, 50.0, 75.0])
    return c.lever(
        name, own / float(median), [own / float(three), own / float(quarter)],
        pulled=True, measured=told,
        note=f"median of {len(found)} shapes within 3 % of N that run, of {len(near)}",
    )  # fmt: skip


def _local(c: Pricing) -> Lever:
    """Price DiLoCo with four replicas and 100 inner steps, its loss paid in tokens."""
    name = "local training (DiLoCo, four replicas)"
    if c.layout.dp < REPLICAS:
        return c.absent(name, f"{c.layout.dp} replicas are too few", MEASURED["local"])
    every, seldom = bandwidth_saving()
    step = c.speed.step
    saved = step.items["dp_traffic"] * (1.0 - seldom / every)
    traffic = (step.seconds - saved) / step.seconds
    law = silent(c.problem.law)
    ends = []
    for ratio in loss_ratio(min(c.plan.N, LOCAL_CHECKED)):
        try:
            need = float(optimal_for_loss(law, c.plan.loss / ratio).C)
            ends.append(traffic * need / float(optimal_for_loss(law, c.plan.loss).C))
        except InfeasibleError:
            ends.append(float("inf"))
    gain = f"traffic alone gains {c.plan.days * (1.0 - traffic):.2g} days"
    if not np.all(np.isfinite(ends)):
        return replace(
            c.absent(name, f"{gain}; by one fit of its loss nothing reaches this loss",
                     MEASURED["local"]), modelled=traffic,
        )  # fmt: skip
    # the source has two fits of the loss, which disagree: between them
    factor = float(np.prod(ends)) ** 0.5
    found = c.lever(
        name, factor, ends, pulled=False, measured=MEASURED["local"],
        note=f"{gain}; its two laws of the loss want {min(ends) / traffic:.2f} to "
        f"{max(ends) / traffic:.2f} times the compute",
    )  # fmt: skip
    return replace(found, modelled=traffic)
