"""The vectorised search against a loop over every layout."""

import itertools

import numpy as np
import pytest

from chinchilla_lab.checks import InfeasibleError
from chinchilla_lab.cluster import (
    STACKS,
    Cluster,
    Layout,
    Stack,
    axes,
    kernel,
    memory,
    search,
    step_time,
)
from chinchilla_lab.cluster.grid import AXES
from chinchilla_lab.cluster.several import Job, fastest_layouts
from chinchilla_lab.shape import SHAPES, TransformerShape
from chinchilla_lab.shape.family import shapes_near

SMALL = TransformerShape(
    n_layers=12, d_model=2048, d_ff=8192, n_heads=16, n_kv_heads=4, vocab_size=32768
)
MOE = TransformerShape(
    n_layers=8, d_model=2048, d_ff=1024, n_heads=16, vocab_size=32768, n_experts=16,
    n_active_experts=2,
)  # fmt: skip
OWN = Stack(
    name="own", gemm=0.8, traffic=1.2, layer_overhead=5e-4, tp_overlap=0.3,
    dp_overlap=0.5, fused=False, fitted=("gemm",), rows="a test", memory_offset=5e9,
)  # fmt: skip
GRIDS = [
    (
        SMALL, 16, 32, 4096, OWN,
        {
            "tp": (1, 2, 4, 8), "pp": (1, 2, 3, 4, 6), "cp": (1, 2), "zero": (0, 1, 2, 3),
            "micro_batch": (1, 2, 3), "n_chunks": (1, 2, 3),
            "recompute": ("none", "selective", "full"),
            "sequence_parallel": (False, True),
        },
    ),
    (
        MOE, 32, 64, 2048, OWN.with_(fused=True),
        {
            "tp": (1, 2, 4), "pp": (1, 2, 4), "ep": (1, 2, 8, 16), "zero": (0, 1, 3),
            "micro_batch": (1, 2), "n_chunks": (1, 2), "recompute": ("none", "full"),
        },
    ),
]  # fmt: skip


def by_hand(shape, cluster, batch, seq_len, stack, options, limit):
    """Try every combination with the checks and formulas of a single layout."""
    grid = axes(shape, cluster, stack, **options)
    found, divisible, tried = {}, 0, 0
    for values in itertools.product(*(grid[name] for name in AXES)):
        at = dict(zip(AXES, values, strict=True))
        tried += 1
        rest = at["tp"] * at["pp"] * at["cp"]
        if cluster.n_accelerators % rest:
            continue
        dp = cluster.n_accelerators // rest
        both = len(grid["sequence_parallel"]) > 1
        if at["tp"] == 1 and both and at["sequence_parallel"]:
            continue  # nothing to cut a sequence over
        at["sequence_parallel"] = at["sequence_parallel"] and at["tp"] > 1
        if at["zero"] and dp * at["cp"] == 1:
            continue  # nothing to shard over
        try:
            layout = Layout(dp=dp, **at)
            layout.check(shape, cluster, batch, seq_len)
        except ValueError:
            continue
        divisible += 1
        need = memory(
            shape, layout, seq_len, layout.micro_batches(batch),
            attention="fused" if stack.fused else "unfused", offset=stack.reserved,
        )  # fmt: skip
        if need.total <= limit:
            step = step_time(
                shape, cluster, layout, batch, seq_len, stack, check_memory=False
            )
            found.setdefault(layout, []).append((step.seconds, need.total))
    return found, divisible, tried


@pytest.mark.parametrize("grid", GRIDS, ids=["dense", "experts"])
@pytest.mark.parametrize("limit", [80e9, 14e9])
def test_search_is_the_loop(grid, limit):
    shape, n, batch, seq_len, stack, options = grid
    cluster = Cluster(accelerator="h100-sxm-80gb", n_accelerators=n)
    loop, divisible, tried = by_hand(
        shape, cluster, batch, seq_len, stack, options, limit
    )
    found = search(
        shape, cluster, batch, seq_len, stack, memory_limit=limit, keep=10**6, **options
    )
    assert found.n_points == tried
    assert found.n_divisible == divisible
    assert found.n_feasible == sum(map(len, loop.values()))
    assert 0 < found.n_feasible < divisible or limit == 80e9
    for step, bytes_ in zip(found.steps, found.memory, strict=True):
        seconds, total = loop[step.layout][0]
        assert step.seconds == pytest.approx(seconds, rel=1e-9)
        assert bytes_ == pytest.approx(total, rel=1e-9)
    times = sorted(t for rows in loop.values() for t, _ in rows)
    assert np.sort(found.seconds) == pytest.approx(times, rel=1e-9)
    assert found.best.seconds == pytest.approx(times[0], rel=1e-9)


def test_random_layouts_of_a_large_grid():
    """Points of a grid of Llama 3 405B equal the same layouts taken one by one."""
    shape = SHAPES["llama-3-405b"]
    cluster = Cluster(accelerator="h100-sxm-80gb", n_accelerators=16384)
    found = search(
        shape, cluster, 2048, 8192, "llama-3", keep=400, cp=(1, 2, 4), tp=(4, 8, 16),
        zero=(0, 1), memory_limit=1e12,
    )  # fmt: skip
    assert found.n_feasible > 300
    rng = np.random.default_rng(5)
    for i in rng.choice(len(found.steps), 60, replace=False):
        step = found.steps[i]
        again = step_time(
            shape, cluster, step.layout, 2048, 8192, "llama-3", memory_limit=1e12
        )
        assert again.seconds == pytest.approx(step.seconds, rel=1e-12)
        assert sum(step.items.values()) == pytest.approx(again.seconds, rel=1e-12)
    seconds = [s.seconds for s in found.steps]
    assert seconds == sorted(seconds)


def test_near_ties_are_shown_as_ties():
    cluster = Cluster(accelerator="h100-sxm-80gb", n_accelerators=64)
    loft = TransformerShape(
        n_layers=48,
        d_model=6144,
        d_ff=24576,
        n_heads=48,
        vocab_size=131072,
        gated=False,
    )
    found = search(loft, cluster, 2048, 4096, "llama-3", keep=30)
    assert found.tie == STACKS["llama-3"].error
    ties = [s for s in found.steps if found.is_tie(s)]
    assert 1 < len(ties) == min(found.n_ties, 30)
    assert ties[-1].seconds <= found.best.seconds * (1 + found.tie)
    html = found._repr_html_()
    assert html.count("<td>tie</td>") == len(ties)
    assert "calibrated to" in html
    assert (
        "upper bound" in search(SHAPES["llama-3-8b"], cluster, 512, 8192)._repr_html_()
    )


def test_loft_and_hall():
    """Blueprint of part III: the two teams' best layouts, within 10 %."""
    teams = [
        (64, 48, 6144, 48, 2048, 34.7, 1.40),
        (16384, 96, 21504, 168, 16384, 26.1, 1.44),
    ]
    for n, layers, width, heads, batch, seconds, median in teams:
        shape = TransformerShape(
            n_layers=layers, d_model=width, d_ff=4 * width, n_heads=heads,
            vocab_size=131072, gated=False,
        )  # fmt: skip
        cluster = Cluster(accelerator="h100-sxm-80gb", n_accelerators=n)
        found = search(shape, cluster, batch, 4096, "megatron-bridge", zero=(1,))
        assert found.best.seconds == pytest.approx(seconds, rel=0.10)
        assert found.median_factor == pytest.approx(median, rel=0.05)


def test_very_large_grids_are_cut_and_report_progress(monkeypatch):
    import importlib

    module = importlib.import_module("chinchilla_lab.cluster.search")
    cluster = Cluster(accelerator="h100-sxm-80gb", n_accelerators=16)
    shape, _, batch, seq_len, stack, options = GRIDS[0]
    whole = search(shape, cluster, batch, seq_len, stack, keep=50, **options)
    monkeypatch.setattr(module, "SLICE", 500)
    heard = []
    parts = search(
        shape, cluster, batch, seq_len, stack, keep=50, progress=heard.append, **options
    )
    assert len(heard) > 1
    assert heard[-1] == 1.0
    assert parts.n_points == whole.n_points
    assert [s.seconds for s in parts.steps] == [s.seconds for s in whole.steps]
    assert np.sort(parts.seconds) == pytest.approx(np.sort(whole.seconds))


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        (
            {"memory_limit": 1e9},
            InfeasibleError,
            r"no layout fits: of .* the leanest \(.*\) needs .* GB and memory_limit is 1.0",
        ),
        (
            {"batch": 7, "tp": (1, 2), "pp": (1,)},
            InfeasibleError,
            "no layout divides: batch=7",
        ),
        ({"gpus": (1,)}, ValueError, "gpus: no axis of the search; choose from: zero"),
        ({"tp": ()}, ValueError, "tp has no value to try"),
        ({"tp": (0, 1)}, ValueError, "tp=0 must be at least 1"),
        ({"zero": (5,)}, ValueError, "zero=5 is no stage"),
        ({"recompute": "most"}, ValueError, "recompute='most' is not known"),
        ({"keep": 0}, ValueError, "keep=0 must be at least 1"),
        ({"recipe": "sgd"}, ValueError, "recipe='sgd' is not known"),
        ({"memory_limit": -1}, ValueError, "memory_limit=-1 must be"),
        ({"dtype": "int8"}, ValueError, "dtype='int8' is not known"),
    ],
)
def test_bad_input(settings, error, message):
    cluster = Cluster(accelerator="h100-sxm-80gb", n_accelerators=16)
    given = {"batch": 32} | settings
    with pytest.raises(error, match=message):
        search(SMALL, cluster, seq_len=4096, **given)


def test_items_of_a_grid_are_those_of_a_layout():
    plan = Layout(tp=2, dp=8, micro_batch=2, zero=1, sequence_parallel=True)
    cluster = Cluster(accelerator="h100-sxm-80gb", n_accelerators=16)
    rates = kernel.machine(cluster, OWN, "bf16")
    g = plan.degrees()
    wide = g._replace(b=np.array([1.0, 2.0, 4.0]))
    many = kernel.items(SMALL, wide, 64.0, 4096.0, rates, OWN)
    one = kernel.items(SMALL, g, 64.0, 4096.0, rates, OWN)
    for name in kernel.ITEMS:
        assert np.broadcast_to(many[name], 3)[1] == pytest.approx(float(one[name]))


@pytest.mark.parametrize("limit", [None, 4e10])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"sequence_parallel": (False, True), "cp": (1, 2), "zero": (1, 0)},
        {"recompute": ("none", "selective", "full")},
    ],
)
def test_many_shapes_together_are_each_searched_alone(limit, options):
    """To the last bit: layouts, items, bytes and counts."""
    shapes = [
        *(s for f in ("llama", "small") for _, s in shapes_near(2e9, 0.05, f)[:3]),
        MOE, SMALL, SHAPES["gpt-3"], SHAPES["llama-2-7b"],
    ]  # fmt: skip
    clusters = [
        Cluster(accelerator="h100-sxm-80gb", n_accelerators=n, scaleout_bandwidth=g)
        for n, g in ((1, 5e10), (48, 5e10), (512, 5e10), (512, 1e9))
    ]
    jobs = [Job(s, b, c, limit) for s in shapes for b in (96, 1024) for c in clusters]
    for stack in ("megatron-bridge", OWN):
        made = fastest_layouts(jobs, 2048, stack, **options)
        for job, one in zip(jobs, made, strict=True):
            try:
                alone = search(
                    job.shape, job.cluster, job.batch, 2048, stack, keep=1,
                    memory_limit=limit, **options,
                )  # fmt: skip
            except InfeasibleError:
                assert one is None
                continue
            assert one is not None
            assert one.step == alone.best
            assert one.memory == alone.memory[0]
            assert (one.n_feasible, one.n_ties) == (alone.n_feasible, alone.n_ties)
            assert one.median_factor == alone.median_factor


def test_one_value_of_an_axis_needs_no_list():
    shape = SHAPES["llama-3-8b"]
    machine = Cluster(accelerator="h100-sxm-80gb", n_accelerators=64)
    one = search(shape, machine, 64, 8192, tp=4)
    assert one.best.layout == search(shape, machine, 64, 8192, tp=(4,)).best.layout
    for wrong in (None, 2.5, True, object()):
        with pytest.raises(ValueError, match=r"^tp="):
            search(shape, machine, 64, 8192, tp=wrong)
