"""Public reports, asked of the command line as their readers would ask them.

The ids are those of the collection; the docstring says what was seen there. The same
answers are tested on the library in ``test_cases.py`` and ``test_cases_cluster.py``.
"""

import json

import pytest

pytest.importorskip("typer")

from chinchilla_lab.cli import main
from chinchilla_lab.fitting.reading import example_csv
from chinchilla_lab.laws import BESIROGLU_2024
from chinchilla_lab.planning import ClosureError, compare_runs, typed
from chinchilla_lab.shape import SHAPES


@pytest.fixture
def ask(capsys):
    """Run a command line as it is written in the collection."""

    def run(line, code=0):
        assert main([*line.split(), "--json"]) == code
        said = capsys.readouterr()
        return json.loads(said.out) if code == 0 else said.err

    return run


def test_C02_both_rules_side_by_side(ask):
    """A web calculator that knows only 20:1."""
    rule, epoch = ask("optimal --compute 3e24 --law rule20,epoch")
    assert (rule["N"], rule["D"]) == pytest.approx((1.581e11, 3.162e12), rel=1e-3)
    assert (epoch["N"], epoch["D"]) == pytest.approx((1.684e11, 2.970e12), rel=1e-3)
    assert epoch["tokens_per_param"] == pytest.approx(17.6, rel=3e-3)


def test_C05_the_rounded_set_contradicts_its_own_rule(ask, capsys):
    """Somebody copies the printed coefficients and expects 20 tokens per parameter."""
    rows = ask("optimal --compute 5.76e23 --law hoffmann-rounded,hoffmann-tex,epoch")
    ratios = [r["tokens_per_param"] for r in rows]
    assert ratios == pytest.approx([92.6, 58.9, 18.4], rel=1e-3)
    assert main(["optimal", "-C", "5.76e23", "--law", "hoffmann-rounded"]) == 0
    assert "is rounded" in capsys.readouterr().err


def test_C06_chinchilla_is_no_partner_of_gpt3(ask):
    """A demo says that both used the same compute: 5.88e23 is 1.87 times 3.15e23."""
    rows = ask("compare --plan 175e9:300e9 --plan 70e9:1.4e12 --law epoch")
    assert [r["C_flop"] for r in rows] == pytest.approx([3.15e23, 5.88e23])
    assert rows[0]["optimal_N"] == pytest.approx(53.0e9, rel=2e-3)
    assert rows[0]["optimal_loss_nats"] == pytest.approx(1.992, abs=1e-3)
    assert rows[0]["loss_nats"] == pytest.approx(2.009, abs=1e-3)
    said = ask("compare --plan 175e9:300e9 --plan 70e9:1.4e12 --same-compute", code=1)
    assert "off by +86.7%" in said
    with pytest.raises(ClosureError, match=r"\+86\.7%"):
        typed(N=70e9, D=1.4e12, same_compute_as=(175e9, 300e9))
    # Gopher is the partner, though 17 % apart
    pair = compare_runs(BESIROGLU_2024, [(280e9, 300e9), (70e9, 1.4e12)])
    assert pair.compute_ratio == pytest.approx(1.167, rel=1e-3)
    assert not pair.same_compute


def test_C07_growth_by_ten(ask):
    """A note credits 5.5 and 1.8 to Chinchilla."""
    kaplan, rule, epoch = ask("scale --factor 10 --law kaplan,rule20,epoch")
    assert (kaplan["N_factor"], kaplan["D_factor"]) == pytest.approx(
        (5.4, 1.86), rel=0.01
    )
    assert rule["N_factor"] == pytest.approx(3.16, rel=1e-3)
    assert (epoch["N_factor"], epoch["D_factor"]) == pytest.approx(
        (3.26, 3.07), rel=2e-3
    )


def test_C10_target_and_unit(ask, capsys):
    """A trainer sets 20 N^0.75 tokens and calls an amount TFLOPS."""
    (row,) = ask("tokens --params 7e9 --rule 20")
    assert row["D"] == 1.4e11
    assert main(["tokens", "--params", "7e9", "--rule", "20"]) == 0
    out = capsys.readouterr().out
    assert "C [FLOP]" in out
    assert "FLOPS" not in out


def test_C11_small_budgets(ask):
    """A hobbyist finds the floor of 1e21 FLOP useless."""
    rule, epoch = ask("optimal --compute 5e18 --law rule20,epoch")
    assert (rule["N"], rule["D"]) == pytest.approx((2.04e8, 4.08e9), rel=2e-3)
    assert (epoch["N"], epoch["D"]) == pytest.approx((1.84e8, 4.53e9), rel=2e-3)


def test_C12_a_third_of_an_epoch(ask):
    """A recipe stops after 4,800 steps, and steps times batch must close."""
    (row,) = ask(
        "steps --params 125e6 --batch-seqs 256 --seq 2048 --rule 20 --dataset 7.5e9"
    )
    assert row["steps"] == 4768
    assert row["epochs"] == pytest.approx(1 / 3, rel=1e-3)
    rows = ask("check --tokens 2.517B --steps 4800 --batch 524288")
    assert rows[0]["holds"]
    assert "off by" in ask("check --tokens 7.5B --steps 4800 --batch 524288", code=1)


def test_C14_073_is_a_separate_fit(ask):
    """The joint law gives .575, not .73."""
    (row,) = ask("exponents --law kaplan-joint")
    assert row["a_of_N"] == pytest.approx(0.575, abs=1e-3)


def test_C15_a_loss_out_of_reach(ask):
    """An exercise asks for a loss that 7B cannot reach: floor 1.9987, least 11.9B."""
    said = ask("tokens --params 7e9 --loss 1.968 --law epoch", code=1)
    assert "1.9987" in said
    assert "11.9B" in said
    assert "nan" not in said.lower()
    said = ask("check -N 7e9 --loss 1.968 --law epoch", code=1)
    assert "11.9B" in said


def test_C16_small_models_at_equal_loss(ask):
    """A tool prints NaN for very small models."""
    rows = ask("tradeoff --size-factor 0.5,0.25,0.1 --law epoch")
    assert rows[0]["token_factor"] == pytest.approx(2.519, abs=1e-3)
    assert [r["extra_compute"] for r in rows[:2]] == pytest.approx(
        [0.259, 3.47], rel=3e-3
    )
    assert [r["reach"] for r in rows] == ["reachable", "reachable", "unreachable"]


@pytest.mark.parametrize(
    ("line", "share"),
    [
        ("mfu --achieved 480e12 --gpu h100-sxm --dtype bf16", 0.485),  # C18
        ("mfu --achieved 420e12 --gpu h200-sxm", 0.425),  # C19
        ("mfu --achieved 324.5e12 --gpu h100-sxm", 0.328),  # C20
        ("mfu --achieved 150e12 --gpu a100-80g", 0.481),  # C21
        (
            "mfu --active-params 37e9 --tokens 14.8e12 --gpu-hours 2.79e6 --peak 1.513e15",
            0.216,
        ),
        (
            "mfu --active-params 37e9 --tokens 14.8e12 --gpu-hours 2.79e6 --peak 1.979e15",
            0.165,
        ),
    ],
)
def test_C18_to_C23_shares_of_a_named_peak(ask, line, share):
    (row,) = ask(line)
    assert row["mfu"] == pytest.approx(share, abs=1e-3)
    assert row["peak"]


def test_C20_above_one_is_an_error_that_names_the_peak(ask):
    said = ask("mfu --achieved 324.5e12 --gpu a100-80g", code=2)
    assert "104%" in said
    assert "312 TFLOP/s" in said


def test_C22_the_dtype_is_echoed(ask):
    (one,), (two,) = (
        ask(f"mfu --achieved 400e12 --gpu h100-sxm --dtype {d}")
        for d in ("tf32", "bf16")
    )
    # 494.7 and 989: the sheets round
    assert one["mfu"] == pytest.approx(2 * two["mfu"], rel=1e-3)
    assert (one["dtype"], two["dtype"]) == ("tf32", "bf16")


def test_C24_sixty_days_are_a_quarter_of_the_peak(ask):
    line = "time --params 130e9 --tokens 400e9 --gpus 768 --gpu a100-40g"
    (row,) = ask(f"{line} --mfu 0.25")
    assert row["days"] == pytest.approx(60.3, rel=2e-3)
    (row,) = ask(f"{line} --mfu 0.4")
    assert row["days"] == pytest.approx(37.7, rel=2e-3)
    # without a word on utilisation: a band, not a point
    assert len(ask(line)) == 3


def test_C25_hours_grow_with_N_times_D(ask):
    """100,000 h for 10B on 2T tokens: 246,000 by the 70B run, 273,000 by the 7B."""
    for run, hours in (("70e9:2e12:1720320", 2.46e5), ("6.74e9:2e12:184320", 2.73e5)):
        (row,) = ask(f"time --calibrate-from {run} --params 10e9 --tokens 2e12")
        assert row["accelerator_hours"] == pytest.approx(hours, rel=3e-3)


def test_C27_active_for_compute_total_for_memory(ask):
    (row,) = ask("flops --params 46.7e9 --active-params 12.9e9")
    assert row["total_over_active"] == pytest.approx(3.62, abs=5e-3)
    (need,) = ask("memory --params 46.7e9")
    assert need["total_gb"] == pytest.approx(46.7 * 16)


def test_C28_a_lookup_is_no_product(ask):
    (row,) = ask("params --arch tinyllama-1.1b")
    shape = SHAPES["tinyllama-1.1b"]
    assert row["lookup"] == shape.vocab_size * shape.d_model
    assert row["lookup"] / row["N_total"] == pytest.approx(0.060, abs=1e-3)
    assert row["matmul"] < row["N_total"] - 0.9 * row["lookup"]


def test_C29_three_matrices_and_two_tables(ask):
    (row,) = ask(
        "params --layers 80 --d-model 8192 --d-ff 24576 --vocab 152064 --mlp gated --tied false"
    )
    assert row["N_total"] == pytest.approx(7.229e10, rel=5e-3)


def test_C31_bytes_are_no_tokens(ask):
    for written in ("400B", "400G", "4e11", "0.4T"):
        (row,) = ask(f"loss -N 70B -D {written}")
        assert row["D"] == 4e11
    assert "not tokens" in ask("loss -N 70B -D 400GB", code=2)


def test_C33_a_missing_utilisation_is_a_band(ask):
    rows = ask("time --params 2.013e8 --tokens 5.35e7 --gpus 4 --gpu custom:35.6e12")
    seconds = [r["days"] * 86400 for r in rows]
    at_peak = 454.0  # 6ND at all of 35.6 TFLOP/s
    assert seconds[0] > at_peak
    assert seconds[2] / seconds[0] > 3
    (row,) = ask(
        "time --params 2.013e8 --tokens 5.35e7 --gpus 4 --gpu custom:35.6e12 --mfu 1"
    )
    assert row["days"] * 86400 == pytest.approx(at_peak, rel=2e-3)


def test_C35_and_C37_recipes_are_printed_and_settable(ask):
    (row,) = ask("memory --params 2.851e9 --gpus 8 --zero 2")
    assert row["total_gib"] == pytest.approx(9.96, abs=0.01)
    assert row["recipe"]
    (row,) = ask("memory --params 2.851e9 --gpus 8 --zero 2 --recipe 2:6:12")
    assert row["total_gib"] == pytest.approx(11.28, abs=0.01)
    for recipe, size in (
        ("fp32-adam", 107.8),
        ("mixed-adam-both-gradients", 134.8),
        ("fp32-adam-transient-gradients", 80.9),
    ):
        (row,) = ask(f"memory --params 6.738e9 --recipe {recipe}")
        assert row["total_gb"] == pytest.approx(size, abs=0.05)


def test_C38_selective_saves_nothing_with_a_fused_kernel(ask):
    line = "memory --arch gpt-3 --tp 8 --seq 2048 --attention {} --recompute {}"
    fused = [
        ask(line.format("fused", r))[0]["activations_gib"]
        for r in ("none", "selective")
    ]
    plain = [
        ask(line.format("unfused", r))[0]["activations_gib"]
        for r in ("none", "selective")
    ]
    assert fused[0] == fused[1]
    assert plain[1] < 0.6 * plain[0]


def test_C41_both_units_and_the_driver(ask):
    (row,) = ask("memory --arch llama-3-8b --tp 8 --gpu a100-80g")
    assert row["total_gb"] / row["total_gib"] == pytest.approx(2**30 / 1e9)
    assert row["room_gib"] == pytest.approx(80.0, abs=0.5)


def test_C43_two_bytes_each(ask):
    (row,) = ask("memory --params 100e12 --bytes 2")
    assert row["total_gb"] == pytest.approx(200e3)
    assert row["total_gib"] / 1024 == pytest.approx(181.9, abs=0.05)


def test_C45_each_row_of_hardware_has_its_source(ask):
    for row in ask("hardware"):
        assert row["source"]
        assert row["evidence"]
        assert (row["usd_low"] is None) == (row["price_date"] is None)


def test_C48_a_ring_of_eight(ask):
    (row,) = ask("comm --collective allgather --bytes 1e9 --ranks 8 --bw 450e9")
    assert row["milliseconds"] == pytest.approx(1.94, abs=5e-3)


def test_C52_the_ridge_of_an_exam_question(ask):
    (row,) = ask("roofline --gpu h100-sxm --dtype bf16")
    assert row["ridge_flop_per_byte"] == pytest.approx(295, abs=0.5)


def test_C54_every_output_says_what_it_rests_on(ask, capsys):
    """A page's utilisation omits failures and more: an upper bound, to be called so."""
    (row,) = ask("plan --cluster loft --deadline 10d --stack uncalibrated")
    assert row["calibration"] == "upper bound"
    (row,) = ask("plan --cluster loft --deadline 10d")
    assert row["calibration"].startswith("calibrated to")
    assert (
        main(
            [
                "layouts",
                "--cluster",
                "loft",
                "--arch",
                "llama-3-8b",
                "--batch",
                "4M",
                "--stack",
                "uncalibrated",
            ]
        )
        == 0
    )
    assert "upper bound" in capsys.readouterr().out


def test_C60_epochs_are_worth_less_and_less(ask):
    rows = ask("epochs --unique 1 --epochs 2,4,7,16")
    worth = [r["effective_over_unique"] for r in rows]
    assert worth == pytest.approx([1.968, 3.726, 5.969, 10.58], rel=1e-3)


def test_C62_epochs_are_no_repeats(ask):
    """178B tokens of 25B unique ones: 7.12 passes, 6.12 repeats."""
    (row,) = ask("epochs --unique 25e9 --epochs 7.12")
    assert row["repeats"] == pytest.approx(6.12)
    assert row["D"] == pytest.approx(178e9)
    assert ask("check --unique 25e9 -D 178e9 --repeats 6.12")[0]["holds"]
    assert "off by" in ask("check --unique 25e9 -D 178e9 --epochs 6.12", code=1)


@pytest.mark.parametrize(
    ("case", "name", "command", "code"),
    [
        ("C66", "one_ratio", "fit", 1),
        ("C67", "edge", "isoflop", 0),
        ("C70", "grid64", "fit", 0),
    ],
)
def test_C66_to_C70_fits(ask, tmp_path, case, name, command, code):
    file = tmp_path / f"{case}.csv"
    file.write_text(example_csv(name), encoding="utf-8")
    said = ask(f"{command} {file} -C 1e23 --resamples 40", code=code)
    if case == "C66":
        assert "not identifiable" in said
        return
    row = next(r for r in said if r["quantity"].startswith("N at"))
    # the truth behind the made-up runs: 2.90e10
    assert row["value"] == pytest.approx(2.90e10, rel=0.05)
    assert row["low"] < 2.90e10 < row["high"]


def test_C72_three_names_of_one_pilot(ask):
    (row,) = ask(
        "params --layers 9 --d-model 448 --d-ff 1280 --vocab 32000 --tied false"
    )
    assert row["N_total"] == pytest.approx(5.139e7, rel=1e-3)
    assert row["N_non_embedding"] == pytest.approx(2.272e7, rel=1e-3)
    assert row["lookup"] + row["head"] == pytest.approx(2.867e7, rel=1e-3)


def test_C73_a_speedup_that_no_budget_moves(ask):
    (row,) = ask("speedup --linf 1.6 --alpha 0.0897 --loss 2.25,2.24")
    assert row["speedup"] == pytest.approx((0.65 / 0.64) ** (1 / 0.0897))


def test_C74_an_export_of_a_tracker(ask, tmp_path):
    head, *rows = example_csv("grid64").splitlines()
    names = {"N": "config.n_params", "D": "summary.tokens", "loss": "summary.val_loss"}
    columns = ",".join(names.get(h, h) for h in head.split(","))
    lines = [f"{columns},state", *(f"{r},finished" for r in rows), f"{rows[0]},crashed"]
    file = tmp_path / "export.csv"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    words = "N=config.n_params,D=summary.tokens,loss=summary.val_loss"
    said = ask(f"fit {file} --map {words} --keep state=finished --resamples 0")
    assert said[0]["quantity"] == "alpha"
