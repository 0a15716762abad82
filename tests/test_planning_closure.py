"""Figures of one run: what closes, and what is refused."""

from dataclasses import replace

import pytest

from chinchilla_lab.cli import main
from chinchilla_lab.cluster import Cluster, Layout
from chinchilla_lab.planning import ClosureError, closure, plan, typed, typed_plan
from chinchilla_lab.shape import SHAPES
from chinchilla_lab.units import DAY

LOFT = Cluster(accelerator="h100-sxm-80gb", n_accelerators=64)
CHINCHILLA = {"N": 70e9, "D": 1.4e12}


def test_no_accelerator_does_that():
    """Chinchilla on 64 cards in three days: 36 times the peak of an H100."""
    figures = CHINCHILLA | {
        "C": 5.88e23, "n_accelerators": 64, "days": 3, "accelerator_hours": 4608,
        "price": 2, "cost": 9216,
    }  # fmt: skip
    with pytest.raises(ClosureError, match="within hours x peak"):
        typed(**figures)
    with pytest.raises(ClosureError, match=r"\+3[45]\d\d\.\d%"):
        typed(**figures, accelerator="h100-sxm-80gb")
    # the same compute in forty times the time is possible
    assert typed(**CHINCHILLA, n_accelerators=64, days=300).holds


def test_compute_is_hours_times_peak_times_mfu():
    """Llama 3 405B: 30.84M hours of H100, 3.8e25 FLOP, 34.6 % of the bf16 peak."""
    run = {"C": 3.8e25, "accelerator_hours": 30.84e6, "accelerator": "h100-sxm-80gb"}
    assert typed(**run, mfu=0.346, rtol=0.01).holds
    with pytest.raises(ClosureError, match="peak x mfu"):
        typed(**run, mfu=0.43)
    with pytest.raises(ValueError, match="no run does more"):
        typed(**run, mfu=1.2)
    with pytest.raises(ValueError, match="name the accelerator"):
        typed(C=3.8e25, accelerator_hours=30.84e6, mfu=0.3)
    with pytest.raises(ValueError, match="needs compute and time"):
        typed(**CHINCHILLA, tokens_per_param=20, mfu=0.3)


def test_steps_are_whole():
    with pytest.raises(ClosureError, match="steps are whole"):
        typed(D=6.5e6, steps=6.5, batch_tokens=1e6)
    assert typed(D=7e6, steps=7, batch_tokens=1e6).holds
    made = typed_plan(LOFT, SHAPES["llama-3-8b"], 6.5 * 512 * 8192, 512, seq_len=8192)
    broken = [one.name for one in closure(made).broken]
    assert broken == ["steps x batch = tokens"]
    # a round number of tokens misses whole steps by less than anyone writes
    made = typed_plan(LOFT, SHAPES["llama-3-8b"], 2e11, 512, seq_len=8192)
    assert closure(made).holds


def test_no_limit_is_above_the_card():
    layout = Layout(tp=8, pp=1, dp=8, micro_batch=1)
    made = typed_plan(LOFT, SHAPES["llama-3-70b"], 1e11, 512, layout, seq_len=8192)
    assert made.speed.memory > 150e9
    loose = replace(made, problem=made.problem.with_(memory_limit=300e9))
    (row,) = [one for one in closure(loose).identities if "memory" in one.name]
    assert not row.holds
    assert row.right == LOFT.chip.memory
    tight = replace(made, problem=made.problem.with_(memory_limit=10e9))
    (row,) = [one for one in closure(tight).identities if "memory" in one.name]
    assert row.right == 10e9


def test_command_refuses_what_no_card_does(capsys):
    figures = ["check", "-N", "70B", "-D", "1.4T", "--gpus", "64"]
    assert main([*figures, "--days", "3"]) == 1
    assert "within hours x peak" in capsys.readouterr().err
    assert main([*figures, "--days", "300", "--gpu", "h100-sxm-80gb"]) == 0
    words = ["--days", "300", "--gpu", "h100-sxm-80gb", "--mfu", "70%"]
    assert main([*figures, *words]) == 1


def test_closure_prints_as_a_table():
    found = closure(plan(LOFT, deadline=30 * DAY, thorough=False))
    assert found.holds
    assert len(str(found).splitlines()) == len(found.identities) + 2
    assert "identity" in found._repr_html_()
