"""Public reports of what people get wrong about clusters, each with the right answer.

The ids are those of the collection; the docstring says where the error was seen. Cases
C27 to C31 and C50, on counting parameters and tokens, are in ``test_cases.py`` too.
"""

import pytest

from chinchilla_lab.cluster import (
    ACCELERATORS,
    RECIPES,
    Cluster,
    Layout,
    accelerator_hours,
    activation_bytes,
    memory,
    mfu,
    ridge_point,
    state_bytes,
    step_time,
    whole_run_mfu,
    zero_paper_activations,
)
from chinchilla_lab.shape import (
    SHAPES,
    TransformerShape,
    recompute_factor,
    training_time,
)
from chinchilla_lab.units import GB, GIB, parse


def gpt(layers, width, heads, vocab=50257):
    return TransformerShape(
        n_layers=layers, d_model=width, d_ff=4 * width, n_heads=heads, vocab_size=vocab,
        gated=False, tied=True,
    )  # fmt: skip


def test_C18_dense_and_not_sparse():
    """An engineer finds 24 % where the README says 46 %: 9,600 tok/s of 0.05 TFLOP."""
    achieved = 9600 * 0.05e12
    assert mfu(achieved, "h100-sxm-80gb") == pytest.approx(0.485, abs=5e-4)
    assert achieved / (2 * 989e12) == pytest.approx(0.243, abs=5e-4)


def test_C19_H200_has_the_peak_of_H100():
    """420 TFLOP/s on H200 taken for 21 %."""
    assert mfu(420e12, "h200-sxm") == pytest.approx(0.425, abs=5e-4)
    assert mfu(420e12, 1979e12) == pytest.approx(0.212, abs=5e-4)


def test_C20_above_one_is_an_error_that_names_the_peak():
    """104 % on H100, because the peak was that of A100."""
    assert pytest.approx(324.5e12, rel=1e-3) == 1.04 * 312e12
    with pytest.raises(
        ValueError, match="104% of the dense bf16 peak of A100 SXM 80GB"
    ):
        mfu(324.5e12, "a100-sxm-80gb")
    assert mfu(324.5e12, "h100-sxm-80gb") == pytest.approx(0.328, abs=5e-4)


def test_C21_one_entry_halved_twice():
    """150 TFLOP/s on A100: 48.1 %, or 96.2 against a peak halved twice."""
    assert mfu(150e12, "a100-sxm-80gb") == pytest.approx(0.481, abs=5e-4)
    assert mfu(150e12, 156e12) == pytest.approx(0.962, abs=5e-4)


def test_C22_the_peak_belongs_to_a_dtype():
    """A TF32 peak for a bf16 run doubles the MFU."""
    chip = ACCELERATORS["h100-sxm-80gb"]
    ratio = mfu(400e12, chip, "tf32") / mfu(400e12, chip, "bf16")
    assert ratio == pytest.approx(2.0, rel=1e-3)


def test_C23_active_parameters_and_a_named_part():
    """37B active of 671B: 21.6 % of the PCIe figure, 16.5 of the SXM one, never 7.2."""
    run = 37e9, 14.8e12, 2.79e6
    assert whole_run_mfu(*run, 1.513e15) == pytest.approx(0.216, abs=5e-4)
    assert whole_run_mfu(*run, "h100-pcie", "fp8") == pytest.approx(0.216, abs=5e-4)
    assert whole_run_mfu(*run, "h100-sxm-80gb", "fp8") == pytest.approx(0.165, abs=5e-4)
    assert whole_run_mfu(*run, 3.026e15) == pytest.approx(0.108, abs=5e-4)
    with pytest.raises(ValueError, match="no share of a peak exceeds 100 %"):
        whole_run_mfu(671e9, 14.8e12, 2.79e6, "h100-sxm-80gb")


def test_C24_sixty_days_are_a_quarter_of_the_peak():
    """How long do 130B and 400B tokens take on 96 nodes of eight A100?"""
    peak = ACCELERATORS["a100-sxm-40gb"].peak()
    work = 6 * 130e9 * 400e9
    quarter = training_time(work, 768, peak, 0.25).days
    assert quarter == pytest.approx(60.3, abs=0.05)
    assert training_time(work, 768, peak, 0.40).days == pytest.approx(37.7, abs=0.05)
    share = whole_run_mfu(130e9, 400e9, 768 * 60 * 24, "a100-sxm-40gb")
    assert share == pytest.approx(0.251, abs=5e-4)
    band = training_time(work, 768, peak, [0.2, 0.6]).days
    assert band[0] / band[1] == pytest.approx(3.0)


def test_C25_hours_grow_with_N_times_D():
    """A founder goes from 10B = 100k hours; Llama 2 says 273k at its own tokens."""
    chip = "a100-sxm-80gb"
    large = whole_run_mfu(70e9, 2e12, 1720320, chip)
    small = whole_run_mfu(7e9, 2e12, 184320, chip)
    assert large == pytest.approx(0.435, abs=5e-4)
    # the case prints 39.1 for 6.74e9 parameters, the published size of "7B"
    assert whole_run_mfu(6.74e9, 2e12, 184320, chip) == pytest.approx(0.391, abs=5e-4)
    assert accelerator_hours(10e9, 2e12, large, chip) == pytest.approx(2.46e5, rel=5e-3)
    # between the two anchors: 273k hours from the 7B, 2.46M for 100B from the 70B
    seven = whole_run_mfu(6.74e9, 2e12, 184320, chip)
    assert accelerator_hours(10e9, 2e12, seven, chip) == pytest.approx(2.73e5, rel=5e-3)
    assert accelerator_hours(100e9, 2e12, large, chip) == pytest.approx(
        2.46e6, rel=5e-3
    )
    assert small < large


def test_C27_experts_work_by_the_active_and_weigh_by_the_total():
    """FLOP from all experts: 3.6 times too many; memory needs them all."""
    shape = SHAPES["mixtral-8x7b"]
    n = shape.params()
    assert n.total / n.active == pytest.approx(3.62, abs=0.01)
    weights = memory(shape, Layout(), 4096).weights
    assert weights == pytest.approx(2 * n.total, rel=1e-6)
    cluster = Cluster(accelerator="h100-sxm-80gb", n_accelerators=64)
    plan = Layout(dp=64, ep=8, zero=1)
    mixture = step_time(shape, cluster, plan, 256, 4096)
    assert mixture.mfu("none") < 1.0
    flop = mixture.mfu("none") * 64 * 989e12 * mixture.seconds
    assert flop == pytest.approx(6 * n.active * 256 * 4096, rel=1e-9)


def test_C28_a_lookup_takes_no_time():
    """Tied or not, the head is one product; the input row is looked up."""
    tied = gpt(24, 2048, 16, vocab=128000)
    untied = TransformerShape(
        n_layers=24, d_model=2048, d_ff=8192, n_heads=16, vocab_size=128000, gated=False
    )
    cluster = Cluster(accelerator="h100-sxm-80gb", n_accelerators=8)
    steps = [
        step_time(shape, cluster, Layout(dp=8), 64, 2048).items
        for shape in (tied, untied)
    ]
    assert steps[0]["gemm"] == steps[1]["gemm"]
    assert steps[0]["head_and_uneven"] == steps[1]["head_and_uneven"]


def test_C29_the_states_of_a_72B():
    """A calculator gives 56.2B for 72.29B: its states come out 253 GB too small."""
    shape = TransformerShape(
        n_layers=80, d_model=8192, d_ff=24576, n_heads=64, vocab_size=152064
    )
    n = shape.params().total
    assert n == pytest.approx(72.29e9, rel=5e-4)
    missing = state_bytes(n).total - state_bytes(56.2e9).total
    assert missing / GB == pytest.approx(16 * 16.09, rel=5e-3)


def test_C31_five_weeks_of_tokens():
    """151e3 tok/s for five weeks is 457B = 457G; 402B is 88 % of the wall clock."""
    tokens = 151e3 * parse("5 weeks", "s")
    assert tokens == pytest.approx(4.57e11, rel=1e-3)
    assert 4.02e11 / tokens == pytest.approx(0.88, abs=5e-3)


def test_C33_eight_only_with_full_recomputation():
    """8 x tokens x parameters on four RTX 3090, without knowing the utilisation."""
    work = 5.35e7 * 2.013e8
    eight = 6 * float(recompute_factor()) * work
    assert training_time(eight, 4, 35.6e12, 1.0).seconds == pytest.approx(605, abs=0.5)
    assert training_time(6 * work, 4, 35.6e12, 1.0).seconds == pytest.approx(
        454, abs=0.5
    )
    assert training_time(6 * work, 4, 71e12, 1.0).seconds == pytest.approx(228, abs=0.7)


def test_C35_zero_2_states():
    """An old tool says 15.93 GiB for 2.851B on eight; theory says 9.96."""
    n = 2.851e9
    assert state_bytes(n, zero=2, dp=8).total / GIB == pytest.approx(9.96, abs=5e-3)
    assert state_bytes(n, zero=2, dp=8).total / GB == pytest.approx(10.69, abs=5e-3)
    both = state_bytes(n, "mixed-adam-both-gradients", zero=2, dp=8).total
    assert both / GIB == pytest.approx(11.28, abs=5e-3)
    assert n * (4 + 16 / 8) / GIB == pytest.approx(15.93, abs=5e-3)


@pytest.mark.parametrize(
    ("recipe", "gigabytes"),
    [
        ("mixed-adam-both-gradients", 134.8),
        ("mixed-adam", 107.8),
        ("fp32-adam", 107.8),
        ("fp32-adam-transient-gradients", 80.9),
    ],
)
def test_C37_bytes_depend_on_the_recipe(recipe, gigabytes):
    """134 GB computed, and the run fits in 128: all of it is right for some recipe."""
    assert state_bytes(6.738e9, recipe).total / GB == pytest.approx(gigabytes, abs=0.06)
    assert RECIPES[recipe].label


def test_C38_selective_saves_nothing_with_a_fused_kernel():
    """30 % were expected, 25.52 -> 24.94 GB seen."""
    shape = gpt(96, 12288, 96)
    assert 5 * 96 * 2048 / 12288 == 80
    plain, selective = (
        activation_bytes(shape, 2048, recompute=again)
        for again in ("none", "selective")
    )
    assert selective / plain == pytest.approx(0.298, abs=5e-4)
    fused = [
        activation_bytes(shape, 2048, recompute=again, attention="fused")
        for again in ("none", "selective")
    ]
    assert fused[0] == fused[1] == selective


def test_C39_two_rules_and_neither_is_the_reading():
    """12 h b s L and 34 s b h + 5 a s^2 b: 12.0 and 27.0 GiB, the card shows 45.6 GB."""
    llama, xl = gpt(32, 4096, 32), gpt(48, 1600, 25)
    assert zero_paper_activations(llama, 512, 8) / GIB == pytest.approx(12.0, abs=0.05)
    assert zero_paper_activations(xl, 1000, 32) / GIB == pytest.approx(54.9, abs=0.05)
    rule = [
        shape.n_layers * activation_bytes(shape, s, b) / GIB
        for shape, s, b in ((llama, 512, 8), (xl, 1024, 32))
    ]
    assert rule == pytest.approx([27.0, 267], rel=2e-3)


def test_C41_gigabytes_and_gibibytes():
    """83 GB on an 80 GB card: 77.3 GiB of 79.65."""
    assert pytest.approx(77.3, abs=0.05) == 83e9 / GIB
    card = ACCELERATORS["h100-sxm-80gb"]
    assert card.memory > 83e9
    assert card.memory / 80e9 == pytest.approx(1.069, abs=5e-4)


def test_C43_eight_bits_a_byte():
    """A printed book multiplies 100T parameters of 16 bits by 8: 200 TB, 181.9 TiB."""
    size = 100e12 * RECIPES["mixed-adam"].weights
    assert size == 200e12
    assert size / 2**40 == pytest.approx(181.9, abs=0.05)


def test_C50_the_vocabulary_stands_outside_the_layers():
    """A textbook had D V inside the product with L: the states would be 45 % too large."""
    shape = TransformerShape(
        n_layers=64, d_model=4096, d_ff=16384, n_heads=32, n_kv_heads=8, head_dim=256,
        vocab_size=32128, tied=True,
    )  # fmt: skip
    weights = memory(shape, Layout(), 4096).weights
    assert weights == pytest.approx(2 * 1.8385e10, rel=1e-4)


def test_C51_a_product_of_the_text_is_computed():
    """850 tokens a chip, 7.6M tokens, 9,660 chips do not multiply: 8,960 do."""
    assert ACCELERATORS["tpu-v5p"].scaleup_domain == 8960
    assert 850 * ACCELERATORS["tpu-v5p"].scaleup_domain == 7_616_000
    assert 850 * 9660 == 8_211_000


def test_C52_the_ridge_of_an_exam_question():
    """1,979 TFLOP/s fp16 with 3.35 TB/s: 591 in place of 295."""
    assert ridge_point("h100-sxm-80gb") == pytest.approx(295, abs=0.5)
    assert 1979e12 / ACCELERATORS["h100-sxm-80gb"].hbm_bandwidth == pytest.approx(
        591, abs=0.5
    )
