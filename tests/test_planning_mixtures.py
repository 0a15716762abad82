"""Mixtures of experts: N is what a token uses, and the cluster holds all of them."""

import numpy as np
import pytest

from chinchilla_lab.cluster import Cluster, memory
from chinchilla_lab.laws import BESIROGLU_2024, KAPLAN_2020_JOINT
from chinchilla_lab.laws.variants import LUDZIEJEWSKI_2025
from chinchilla_lab.planning import closure, levers, plan, solve_at, typed_plan
from chinchilla_lab.planning.candidates import candidate, counted
from chinchilla_lab.shape import SHAPES, shape_for, shapes_near
from chinchilla_lab.units import DAY, FLOP_PER_ND

pytestmark = pytest.mark.filterwarnings("ignore::chinchilla_lab.ExtrapolationWarning")
MIXTURES = ("mixtral", "fine-experts")


def h100(n):
    return Cluster(accelerator="h100-sxm-80gb", n_accelerators=n)


@pytest.fixture(scope="module", params=MIXTURES)
def mixture(request):
    return plan(h100(64), deadline=30 * DAY, shape_family=request.param)


def test_the_family_holds_mixtral_jiang2024mixtral():
    known = SHAPES["mixtral-8x7b"]
    near = shapes_near(known.params().active, 1e-9, "mixtral")
    assert known in [shape for _, shape in near]
    assert known.params().active == pytest.approx(12.9e9, rel=0.01)
    assert known.params().total == 46702792704


def test_fine_experts_are_close_to_deepseek_v3_deepseek2024v3():
    """61 layers of 7168, experts of 2048: 671B of which a token uses 37B."""
    (shape,) = [
        s for _, s in shapes_near(37e9, 0.15, "fine-experts")
        if (s.n_layers, s.d_model) == (61, 7168)
    ]  # fmt: skip
    assert (shape.d_ff, shape.n_experts, shape.n_active_experts) == (2048, 256, 8)
    # it has three dense layers and richer attention: a tenth apart either way
    assert shape.params().total == pytest.approx(671e9, rel=0.1)
    assert shape.params().active == pytest.approx(37e9, rel=0.1)


def test_a_plan_of_a_mixture_closes_and_fits(mixture):
    for made in (mixture, *mixture.alternatives):
        shape, step = made.shape, made.speed.step
        layout = step.layout
        n = shape.params()
        assert closure(made).holds
        assert n.active == made.N < n.total
        assert pytest.approx(FLOP_PER_ND * n.active * made.D) == made.C
        assert layout.ep > 1
        assert shape.n_experts % layout.ep == 0
        assert (layout.tp * layout.cp * layout.dp) % layout.ep == 0
        assert shape.d_ff % 128 == 0
        layout.check(shape, made.problem.job, made.batch, made.problem.seq_len)
        micro = layout.micro_batches(made.batch)
        need = memory(
            shape, layout, made.problem.seq_len, micro, made.problem.recipe, "fused",
            offset=made.problem.stack.memory_offset,
        )  # fmt: skip
        assert made.speed.memory == pytest.approx(need.total)
        assert need.total <= made.problem.cluster.chip.memory
        # all experts are held somewhere: 18 bytes a parameter at least once
        assert need.total * made.problem.working > 16 * n.total


def test_the_assumption_is_said(mixture):
    words = " ".join(mixture.assumptions)
    assert "dense models and does not know what idle experts add" in words
    assert "evenly over experts" in words
    rows = dict(mixture.rows())
    assert "for a token" in rows["experts"]
    assert "N with idle experts [parameter]" in rows
    record = mixture.record()
    assert record["N_total"] == mixture.shape.params().total > record["N"]
    assert "expert" not in " ".join(plan(h100(64), deadline=DAY).assumptions)


def test_idle_experts_cost_machine_and_gain_nothing_under_a_dense_law(mixture):
    """At equal N the dense law gives the same loss, and the mixture is slower."""
    dense = plan(h100(64), deadline=30 * DAY)
    assert mixture.loss >= dense.loss
    assert mixture.loss == pytest.approx(
        float(BESIROGLU_2024.loss(mixture.N, mixture.D)), rel=1e-9
    )


def test_a_law_of_mixtures_counts_them():
    law = LUDZIEJEWSKI_2025.at(8 / 2)
    made = plan(h100(64), deadline=30 * DAY, shape_family="mixtral", law=law)
    assert made.shape.params().active == made.N
    assert made.loss == pytest.approx(float(law.loss(made.N, made.D)), rel=1e-12)
    # the same N and D without idle experts are worse: the dense law bounds the loss
    assert LUDZIEJEWSKI_2025.at(1).loss(made.N, made.D) > made.loss
    assert any("N is what a token uses, as joint MoE" in w for w in made.assumptions)
    other = plan(h100(64), deadline=DAY, law=law, thorough=False)
    assert any("the shape is dense" in words for words in other.assumptions)


def test_best_shape_beats_a_brute_force_over_shapes():
    made = plan(h100(32), deadline=30 * DAY, shape_family="mixtral")
    every = [
        p
        for _, shape in shapes_near(made.N, 0.3, "mixtral")
        for batch in made.problem.batches()
        if (p := candidate(made.problem, shape, batch)) is not None
    ]
    slope = BESIROGLU_2024.gamma * (made.loss - BESIROGLU_2024.E)
    assert len(every) > 50
    assert (made.score - min(p.score for p in every)) / slope < 3e-3


def test_every_count_of_N_leaves_idle_experts_out():
    problem = plan(h100(64), deadline=DAY, thorough=False).problem
    kaplan = problem.with_(law=KAPLAN_2020_JOINT)
    for key in ("mixtral-8x7b", "llama-3-8b"):
        n = SHAPES[key].params()
        assert counted(problem, SHAPES[key]) == n.total - n.idle == n.active
        assert counted(kaplan, SHAPES[key]) == n.non_embedding - n.idle


def test_typed_plans_of_mixtures():
    known = SHAPES["mixtral-8x7b"]
    made = typed_plan(h100(64), known, 1e12, 512)
    assert known.params().active == made.N
    assert made.speed.step.layout.ep > 1
    assert closure(made).holds
    assert any("idle experts" in words for words in made.assumptions)
    dense = typed_plan(h100(64), SHAPES["llama-3-8b"], 1e12, 512)
    assert dense.assumptions == ()


def test_levers_and_sizes_of_mixtures(mixture):
    assert levers(mixture)["shape"].worth > 0.9
    again = solve_at(mixture.problem, mixture.N)
    assert pytest.approx(mixture.N, rel=0.03) == again.N
    assert again.loss == pytest.approx(mixture.loss, abs=1e-3)


@pytest.mark.parametrize("family", MIXTURES)
def test_shapes_of_mixtures_are_real(family):
    for N in np.geomspace(2e9, 4e10, 12):
        shape = shape_for(N, family)
        assert shape.params().active == pytest.approx(N, rel=0.04)
        assert shape.n_heads * 128 == shape.d_model
        assert shape.n_heads % shape.kv_heads == 0
        assert shape.n_experts > shape.n_active_experts
