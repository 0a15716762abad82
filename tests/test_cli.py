"""Every command against the call that it stands for: the same digits, one code path."""

import contextlib
import csv
import io
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("typer")

from chinchilla_lab import __version__
from chinchilla_lab.allocation import (
    compute_optimal,
    default_interval,
    efficiency,
    growth,
    optimal_for_loss,
    optimal_for_params,
    overhead,
    tokens_for_loss,
)
from chinchilla_lab.cli import main
from chinchilla_lab.cluster import (
    ACCELERATORS,
    RECIPES,
    Cluster,
    Layout,
    all_gather_time,
    all_to_all_time,
    example_cluster,
    memory,
    mfu,
    ridge_point,
    search,
    state_bytes,
    tokens_per_second_to_mfu,
    whole_run_mfu,
)
from chinchilla_lab.fitting import (
    FitWarning,
    fit_isoflop,
    fit_parametric,
    load_law,
    read_runs,
)
from chinchilla_lab.fitting.curve import PowerCurve
from chinchilla_lab.fitting.reading import example_csv
from chinchilla_lab.laws import (
    BESIROGLU_2024,
    HOFFMANN_2022,
    MUENNIGHOFF_2023_REPEATED,
    PUBLISHED,
    RATIO_20,
)
from chinchilla_lab.planning import (
    closure,
    compare,
    compare_runs,
    estimate_run,
    levers,
    plan,
    sensitivity,
    typed,
)
from chinchilla_lab.planning.losses import DataLimit
from chinchilla_lab.shape import (
    CONVENTIONS,
    SHAPES,
    TransformerShape,
    flops_per_token,
    steps_for_tokens,
)
from chinchilla_lab.units import DAY
from chinchilla_lab.validation import validation_rows

LOFT = example_cluster("loft")


@pytest.fixture
def ask(capsys):
    """Run a command and return its records."""

    def run(*words, code=0):
        assert main([*words, "--json"]) == code
        said = capsys.readouterr()
        return json.loads(said.out) if code == 0 else said.err

    return run


@pytest.fixture
def refused(capsys):
    """Run a command that must not answer: one line, and the exit code."""

    def run(*words, code):
        assert main(list(words)) == code
        said = capsys.readouterr()
        assert said.out == ""
        lines = [line for line in said.err.splitlines() if line.startswith("error: ")]
        assert len(lines) == 1
        return lines[0]

    return run


def same(record, expected):
    for name, value in expected.items():
        assert record[name] == pytest.approx(value, rel=1e-12), name


# --- laws -------------------------------------------------------------------------


def test_optimal(ask):
    rows = ask("optimal", "--compute", "3e24,1e22", "--law", "rule20,epoch")
    assert [r["law"] for r in rows] == ["ratio-20"] * 2 + ["besiroglu-2024"] * 2
    for row, law, C in zip(
        rows, [RATIO_20] * 2 + [BESIROGLU_2024] * 2, [3e24, 1e22] * 2, strict=True
    ):
        best = compute_optimal(law, C)
        same(row, {"C_flop": C, "N": best.N, "D": best.D})
    same(rows[3], {"loss_nats": compute_optimal(BESIROGLU_2024, 1e22).L})
    low, high = default_interval(1e22).N
    same(rows[3], {"N_low": low, "N_high": high})
    (row,) = ask("optimal", "--params", "7B")
    same(row, {"D": optimal_for_params(BESIROGLU_2024, 7e9).D})
    (row,) = ask("optimal", "--loss", "2.1")
    same(row, {"C_flop": optimal_for_loss(BESIROGLU_2024, 2.1).C})


def test_loss(ask):
    (row,) = ask("loss", "-N", "7B", "-D", "0.4T")
    same(
        row,
        {
            "loss_nats": BESIROGLU_2024.loss(7e9, 4e11),
            "efficiency": efficiency(BESIROGLU_2024, 7e9, 4e11),
        },
    )
    (row,) = ask("loss", "-N", "7B", "-D", "400B", "--unique", "100B")
    limit = DataLimit(law=BESIROGLU_2024, unique=1e11)
    same(
        row, {"loss_nats": limit.loss(np.asarray(7e9), np.asarray(4e11)), "epochs": 4.0}
    )


def test_tokens(ask):
    (row,) = ask("tokens", "--params", "7e9", "--loss", "2.1")
    same(row, {"D": tokens_for_loss(BESIROGLU_2024, 7e9, 2.1)})
    (row,) = ask("tokens", "--params", "7e9", "--rule", "20")
    same(row, {"D": 1.4e11})
    (row,) = ask("tokens", "--params", "7e9")
    same(row, {"D": optimal_for_params(BESIROGLU_2024, 7e9).D})


def test_steps(ask):
    (row,) = ask(
        "steps",
        "-N",
        "125M",
        "--batch-seqs",
        "256",
        "--seq",
        "2048",
        "--dataset",
        "7.5B",
    )
    assert row["steps"] == steps_for_tokens(2.5e9, 256 * 2048)
    same(row, {"epochs": 2.5e9 / 7.5e9})


def test_tradeoff(ask):
    rows = ask("tradeoff", "--size-factor", "0.5,0.25,0.1", "--law", "epoch")
    made = overhead(BESIROGLU_2024, [0.5, 0.25])
    for row, t in zip(rows, made.token_factor, strict=False):
        same(row, {"token_factor": t})
    assert rows[2]["token_factor"] is None
    assert rows[2]["reach"] == "unreachable"


def test_scale_exponents_epochs_speedup(ask):
    rows = ask("scale", "--factor", "10", "--law", "kaplan,rule20,epoch")
    for row in rows:
        size, data = growth(PUBLISHED[row["law"]], 10, 1e22)
        same(row, {"N_factor": size, "D_factor": data})
    (row,) = ask("exponents", "--law", "hoffmann-tex")
    same(row, {"a_of_N": HOFFMANN_2022.a, "alpha": HOFFMANN_2022.alpha})
    rows = ask("epochs", "--unique", "1", "--epochs", "1,4")
    same(
        rows[1],
        {"effective_tokens": MUENNIGHOFF_2023_REPEATED.effective_tokens(1.0, 4.0)},
    )
    (row,) = ask("speedup", "--linf", "1.6", "--alpha", "0.0897", "--loss", "2.25,2.24")
    for scale in (1.0, 88.32, 95.18):  # the factor does not depend on the budget
        curve = PowerCurve(E=1.6, scale=scale, exponent=0.0897)
        same(row, {"speedup": curve.factor_between(2.25, 2.24)})


def test_fit_and_isoflop(ask, tmp_path):
    file = tmp_path / "runs.csv"
    file.write_text(example_csv("grid64"), encoding="utf-8")
    kept = tmp_path / "law.json"
    rows = ask("fit", str(file), "-C", "1e23", "--resamples", "20", "--save", str(kept))
    law = fit_parametric(read_runs(file, N_counts="total"), resamples=20)
    by_name = {r["quantity"]: r for r in rows}
    same(by_name["alpha"], {"value": law.alpha})
    same(by_name["N at 1e+23 FLOP"], {"value": compute_optimal(law, 1e23).N})
    same(by_name["N at 1e+23 FLOP"], {"low": law.interval(1e23).N[0]})
    # and a fitted law goes wherever a published one does
    (row,) = ask("optimal", "-C", "1e23", "--law", str(kept))
    same(row, {"N": compute_optimal(load_law(kept), 1e23).N})

    file.write_text(example_csv("edge"), encoding="utf-8")
    rows = ask("isoflop", str(file), "-C", "1e23", "--resamples", "0")
    with pytest.warns(FitWarning):
        law = fit_isoflop(read_runs(file, N_counts="total"), resamples=0)
    same({r["quantity"]: r for r in rows}["a"], {"value": law.a})


def test_fit_maps_columns_and_keeps_rows(ask, capsys, tmp_path):
    text = example_csv("grid64").splitlines()
    head, rows = text[0].split(","), [line.split(",") for line in text[1:]]
    names = {"N": "config.n", "D": "summary.d", "loss": "summary.val"}
    columns = [names.get(h, h) for h in head]
    lines = [",".join([*columns, "phase"])]
    lines += [",".join([*row, "finished"]) for row in rows]
    lines.append(",".join([*rows[0], "crashed"]))
    file = tmp_path / "export.csv"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    mapping = f"N={names['N']},D={names['D']},loss={names['loss']}"
    assert (
        main(
            [
                "fit",
                str(file),
                "--map",
                mapping,
                "--keep",
                "phase=finished",
                "--resamples",
                "0",
                "--json",
            ]
        )
        == 0
    )
    assert "1 row dropped" in capsys.readouterr().err


def test_laws_and_hardware_list_everything(ask):
    assert [r["law"] for r in ask("laws")] == list(PUBLISHED)
    rows = ask("hardware")
    assert [r["id"] for r in rows] == list(ACCELERATORS)
    assert all(r["source"] and r["evidence"] for r in rows)
    (row,) = ask("hardware", "--gpu", "h100-sxm")
    same(row, {"bf16_dense_tflops": ACCELERATORS["h100-sxm-80gb"].peak() / 1e12})


# --- models and machines ----------------------------------------------------------

PILOT = TransformerShape(
    n_layers=9,
    d_model=448,
    d_ff=1280,
    n_heads=1,
    vocab_size=32000,
    gated=True,
    tied=False,
)
PILOT_WORDS = (
    "--layers",
    "9",
    "--d-model",
    "448",
    "--d-ff",
    "1280",
    "--vocab",
    "32000",
    "--tied",
    "false",
)


def test_params(ask):
    (row,) = ask("params", *PILOT_WORDS)
    for name, count in PILOT.params().meanings().items():
        assert row[f"N_{name}"] == count
    (row,) = ask("params", "--arch", "llama-3-8b")
    assert row["N_total"] == SHAPES["llama-3-8b"].params().total


def test_flops(ask):
    rows = ask("flops", "--arch", "llama-3-8b", "--seq", "8192", "--tokens", "15T")
    assert [r["convention"] for r in rows] == list(CONVENTIONS)
    for row in rows:
        per = flops_per_token(SHAPES["llama-3-8b"], 8192, row["convention"]).total
        same(row, {"flop_per_token": per, "C_flop": per * 15e12})
    (row,) = ask("flops", "--params", "46.7B", "--active-params", "12.9B")
    same(row, {"flop_per_token": 6 * 12.9e9, "total_over_active": 46.7 / 12.9})
    more = ask("flops", "--arch", "gpt-3", "--seq", "2048", "--recompute", "full")
    assert more[-1]["over_6N"] > 1.3


def test_memory(ask):
    (row,) = ask("memory", "--params", "2.851e9", "--gpus", "8", "--zero", "2")
    same(row, {"total_gib": state_bytes(2.851e9, zero=2, dp=8).total / 2**30})
    (row,) = ask(
        "memory",
        "--arch",
        "llama-3-8b",
        "--tp",
        "8",
        "--micro-batch",
        "2",
        "--recompute",
        "full",
        "--seq",
        "8192",
        "--gpu",
        "h100-sxm",
    )
    need = memory(
        SHAPES["llama-3-8b"], Layout(tp=8, micro_batch=2, recompute="full"), 8192
    )
    same(
        row, {"total_gb": need.total / 1e9, "activations_gib": need.activations / 2**30}
    )
    assert row["fits"] is need.fits("h100-sxm-80gb")
    for name in RECIPES:
        (row,) = ask("memory", "--params", "6.738B", "--recipe", name)
        same(row, {"total_gb": state_bytes(6.738e9, name).total / 1e9})
    (row,) = ask("memory", "--params", "1e9", "--recipe", "2:2:12")
    same(row, {"total_gb": 16.0})


def test_mfu(ask):
    (row,) = ask("mfu", "--achieved", "480 TFLOP/s", "--gpu", "h100-sxm")
    same(
        row,
        {
            "mfu": mfu(480e12, "h100-sxm-80gb"),
            "peak_flop_per_s": ACCELERATORS["h100-sxm-80gb"].peak(),
        },
    )
    (row,) = ask(
        "mfu",
        "--active-params",
        "37e9",
        "--tokens",
        "14.8T",
        "--gpu-hours",
        "2.79e6",
        "--peak",
        "1.513e15",
    )
    same(row, {"mfu": whole_run_mfu(37e9, 14.8e12, 2.79e6, 1.513e15)})
    (row,) = ask(
        "mfu",
        "--tokens-per-second",
        "500k",
        "--arch",
        "llama-3-8b",
        "--gpu",
        "h100-sxm",
        "--gpus",
        "64",
        "--seq",
        "8192",
    )
    same(row, {"mfu": tokens_per_second_to_mfu(SHAPES["llama-3-8b"], 5e5, LOFT, 8192)})


def test_time(ask):
    words = ("time", "-N", "130B", "-D", "400B", "--gpus", "768", "--gpu", "a100-40g")
    machine = Cluster(accelerator="a100-sxm-40gb", n_accelerators=768)
    (row,) = ask(*words, "--mfu", "0.25")
    same(row, {"days": estimate_run(130e9, 4e11, machine, 0.25).days[1]})
    rows = ask(*words)
    band = estimate_run(130e9, 4e11, machine)
    assert [r["days"] for r in rows] == pytest.approx(list(band.days), rel=1e-12)
    (row,) = ask(
        "time",
        "-N",
        "10e9",
        "-D",
        "2e12",
        "--calibrate-from",
        "70e9:2e12:1720320",
        "--gpu",
        "a100-80g",
        "--gpus",
        "1k",
    )
    like = estimate_run(
        10e9,
        2e12,
        Cluster(accelerator="a100-sxm-80gb", n_accelerators=1000),
        like=(70e9, 2e12, 1720320.0),
    )
    same(row, {"accelerator_hours": like.hours[1], "mfu": like.utilisation[1]})


def test_layouts(ask):
    rows = ask(
        "layouts",
        "--cluster",
        "loft",
        "--arch",
        "llama-3-8b",
        "--batch",
        "4194304",
        "--seq",
        "8192",
        "--stack",
        "llama-3",
        "--top",
        "4",
    )
    found = search(SHAPES["llama-3-8b"], LOFT, 512, 8192, "llama-3", keep=4)
    assert [r["layout"] for r in rows] == [s.layout.label() for s in found.steps]
    assert [r["step_s"] for r in rows] == pytest.approx(
        [s.seconds for s in found.steps]
    )


def test_roofline_and_comm(ask):
    (row,) = ask("roofline", "--gpu", "h100-sxm")
    same(row, {"ridge_flop_per_byte": ridge_point("h100-sxm-80gb")})
    (row,) = ask(
        "comm",
        "--collective",
        "all-gather",
        "--bytes",
        "1GB",
        "--ranks",
        "8",
        "--bw",
        "450 GB/s",
    )
    same(row, {"seconds": all_gather_time(1e9, 8, 450e9)})
    (row,) = ask(
        "comm",
        "--collective",
        "alltoall",
        "--bytes",
        "1GB",
        "--ranks",
        "8",
        "--bw",
        "450GB/s",
        "--latency",
        "1e-6 s",
    )
    same(row, {"seconds": all_to_all_time(1e9, 8, 450e9, 1e-6)})


# --- plans ------------------------------------------------------------------------


def test_plan(ask):
    (row,) = ask("plan", "--cluster", "loft", "--deadline", "30 days")
    made = plan(LOFT, deadline=30 * DAY)
    expected = compare([made]).records[0]
    assert row == json.loads(json.dumps(expected))


def test_plan_with_every_limit(ask, tmp_path):
    kept = tmp_path / "plans.md"
    rows = ask(
        "plan", "--cluster", "64xh100-sxm", "--objective", "lifetime", "--target-loss", "2.1",
        "--inference", "1T", "--unique", "200B", "--budget", "$1M", "--law", "hoffmann-tex",
        "--batch-limit", "4M", "--price", "2:3@2026-11", "--failures", "10", "--restart", "10 min",
        "--stack", "llama-3", "--seq", "8192", "--keep", "3", "--out", str(kept),
    )  # fmt: skip
    from chinchilla_lab.cluster import DEFAULT_RELIABILITY

    made = plan(
        LOFT, objective="lifetime", target_loss=2.1, inference_tokens=1e12, unique_tokens=2e11,
        budget=1e6, law=HOFFMANN_2022, batch_limit=4e6, price="2:3@2026-11", stack="llama-3",
        seq_len=8192, keep=3,
        reliability=DEFAULT_RELIABILITY.with_(failures_per_node_day=0.01, band=(0.01, 0.01), restart=600.0),
    )  # fmt: skip
    assert len(rows) == 3
    same(rows[0], {"N": made.N, "D": made.D, "days": made.days, "loss_nats": made.loss})
    assert closure(made).holds
    assert "| N [parameter] |" in kept.read_text(encoding="utf-8")


def test_plan_of_a_file_and_of_any_size(ask, tmp_path):
    file = tmp_path / "machine.toml"
    file.write_text(
        'accelerator = "a100-sxm-80gb"\nn_accelerators = 128\nscaleout_gbps = 6.25\n',
        encoding="utf-8",
    )
    (row,) = ask("plan", "--cluster", str(file), "--deadline", "10 days")
    made = plan(Cluster.from_file(file), deadline=10 * DAY)
    same(row, {"N": made.N, "days": made.days})
    (row,) = ask(
        "plan",
        "--cluster",
        "loft",
        "-C",
        "1e22",
        "--mfu",
        "0.4",
        "--family",
        "none",
        "--failures",
        "0",
    )
    assert row["N"] == pytest.approx(
        float(compute_optimal(BESIROGLU_2024, 1e22).N), rel=1e-4
    )


def test_plan_shows_levers_and_what_binds(ask):
    made = plan(LOFT, deadline=30 * DAY)
    rows = ask("plan", "--cluster", "loft", "--deadline", "30 days", "--levers")
    assert [r["lever"] for r in rows] == [r.name for r in levers(made).rows]
    assert [r["days"] for r in rows] == pytest.approx(
        [None if r.days != r.days else r.days for r in levers(made).rows]
    )
    rows = ask("plan", "--cluster", "loft", "--deadline", "30 days", "--binding")
    assert [r["one_more"] for r in rows] == pytest.approx(
        [w.worth for w in sensitivity(made).rows]
    )


def test_compare_and_check(ask):
    rows = ask(
        "compare", "--plan", "175e9:300e9", "--plan", "70B:1.4T", "--law", "epoch"
    )
    both = compare_runs(BESIROGLU_2024, [(175e9, 300e9), (70e9, 1.4e12)])
    assert rows == json.loads(both.to_json())
    rows = ask("check", "-N", "70B", "-D", "1.4T", "-C", "5.88e23", "--ratio", "20")
    found = typed(N=70e9, D=1.4e12, C=5.88e23, tokens_per_param=20)
    assert [r["left"] for r in rows] == [one.left for one in found.identities]


def test_validate(ask):
    rows = ask("validate")
    assert [r["table"] for r in rows] == [row[0] for row in validation_rows()]
    assert all(isinstance(r["MAPE_percent"], float) for r in rows)


# --- how it speaks ----------------------------------------------------------------


def test_csv_holds_all_digits(capsys):
    assert main(["optimal", "-C", "1e22", "--csv"]) == 0
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert float(row["N"]) == float(compute_optimal(BESIROGLU_2024, 1e22).N)


def test_tables_carry_units(capsys):
    assert main(["optimal", "-C", "1e22"]) == 0
    out = capsys.readouterr().out
    for head in ("N [parameter]", "D [token]", "C [FLOP]", "loss [nats/token]"):
        assert head in out
    assert "9.045B" in out


@pytest.mark.parametrize("written", ["400B", "400G", "4e11", "0.4T", "400 billion"])
def test_quantities_as_people_type_them(ask, written):
    (row,) = ask("loss", "-N", "7B", "-D", written)
    assert row["D"] == 4e11


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("tokens", "-N", "7e9", "--loss", "1.968"), 1, "floor is 1.9987"),
        (("optimal", "--loss", "1.8"), 1, "above the floor"),
        (("compare", "--plan", "175e9:300e9", "--plan", "70e9:1.4e12", "--same-compute"), 1, "off by +86.7%"),
        (("check", "--unique", "25B", "-D", "178B", "--epochs", "6.12"), 1, "off by"),
        (("plan", "--cluster", "loft", "--objective", "time", "--target-loss", "1.9", "--deadline", "30 days"), 1, "times as many accelerators"),
        (("optimal", "-C", "400GB"), 2, "not FLOP"),
        (("loss", "-N", "7B", "-D", "400GB"), 2, "not tokens"),
        (("optimal",), 2, "give one of --compute"),
        (("optimal", "-C", "1e22", "--law", "nobody-2030"), 2, "no law"),
        (("optimal", "-C", "1e22", "--json", "--csv"), 2, "not both"),
        (("loss", "-N", "7B", "-D", "1T", "--law", "rule20"), 2, "knows no loss"),
        (("mfu", "--achieved", "324.5e12", "--gpu", "a100-80g"), 2, "dense bf16 peak of A100"),
        (("mfu", "--achieved", "1e12", "--gpu", "h100"), 2, "say which"),
        (("mfu", "--achieved", "1e12", "--gpu", "z80"), 2, "no accelerator"),
        (("mfu", "--achieved", "1e12"), 2, "give --gpu"),
        (("plan", "--deadline", "1 day"), 2, "no machine"),
        (("plan", "--cluster", "attic", "--deadline", "1 day"), 2, "no cluster"),
        (("plan", "--cluster", "nowhere.toml", "--deadline", "1 day"), 2, "no such file"),
        (("plan", "--cluster", "loft"), 2, "nothing limits"),
        (("params", "--layers", "9"), 2, "missing"),
        (("params", "--arch", "hal-9000"), 2, "no shape"),
        (("memory", "--params", "1B", "--recipe", "diet"), 2, "choose from"),
        (("plan", "--cluster", "loft", "--deadline", "1 day", "--levers", "--binding"), 2, "not both"),
        (("plan", "--cluster", "loft", "--deadline", "1 day", "--target-loss", "2.2"), 2, "--target-loss needs"),
        (("memory", "--arch", "llama-2-7b", "--tp", "3"), 2, "tp=2 does"),
        (("memory", "--arch", "llama-2-7b", "--tp", "64"), 2, "tp=32 does"),
        (("memory", "--arch", "llama-2-7b", "--pp", "64"), 2, "use --pp=32"),
        (("memory", "--arch", "llama-2-7b", "--gpus", "8", "--zero", "3"), 2, "use --dp"),
        (("memory", "--params", "7e9", "--dp", "8"), 2, "--dp does not apply"),
        (("memory", "--params", "7e9", "--arch", "llama-2-7b", "--tp", "2"), 2, "--arch, --tp do not"),
        (("fit", "nowhere.csv"), 2, "no such file"),
        (("compare", "--plan", "70B"), 2, "write N:D"),
        (("time", "-N", "1B", "-D", "1B", "--calibrate-from", "1B:2B", "--gpu", "h100-sxm", "--gpus", "1"), 2, "N:D:hours"),
        (("comm", "--collective", "shout", "--bytes", "1GB", "--ranks", "2", "--bw", "1GB/s"), 2, "choose from"),
        (("nonsense",), 2, "No such command"),
        (("optimal", "--nonsense"), 2, "No such option"),
        (("loss", "-N", "7B"), 2, "Missing option"),
    ],
    ids=lambda x: " ".join(x)[:40] if isinstance(x, tuple) else None,
)  # fmt: skip
def test_one_line_and_an_exit_code(refused, words, code, says):
    assert says in refused(*words, code=code)


def test_one_ratio_is_refused_with_its_reason(refused, tmp_path):
    file = tmp_path / "ratio.csv"
    file.write_text(example_csv("one_ratio"), encoding="utf-8")
    assert "not identifiable" in refused("fit", str(file), code=1)


def test_extrapolation_is_noted_on_one_line(capsys):
    assert main(["optimal", "-C", "3e24", "--json"]) == 0
    said = capsys.readouterr()
    json.loads(said.out)
    assert said.err.count("extrapolation") == 1


def test_shares_are_read_as_they_are_printed(ask):
    words = ("time", "-N", "7B", "-D", "1T", "--gpu", "h100-sxm", "--gpus", "64")
    assert ask(*words, "--mfu", "40%") == ask(*words, "--mfu", "0.4")


def test_prices_are_dated(ask, capsys):
    words = ("time", "-N", "7B", "-D", "1T", "--gpu", "h100-sxm", "--gpus", "64")
    known = ask(*words, "--mfu", "0.4")[0]
    assert known["price_date"] == ACCELERATORS["h100-sxm-80gb"].price.date
    own = ask(*words, "--mfu", "0.4", "--price", "2@2026-11")[0]
    assert (own["price_date"], own["usd_low"]) == ("2026-11", own["usd_high"])
    assert main([*words, "--mfu", "0.4", "--price", "2"]) != 0
    assert "2@2026-11" in capsys.readouterr().err


def test_a_converted_law_says_so(capsys):
    assert main(["exponents", "--law", "kaplan-joint"]) == 0
    assert "not the exponents that the source prints" in capsys.readouterr().err


def test_help_and_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.strip() == __version__
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    for name in ("optimal", "loss", "tokens", "flops", "params", "memory", "mfu", "time", "layouts",
                 "plan", "fit", "isoflop", "speedup", "compare", "validate", "laws", "hardware"):  # fmt: skip
        assert name in out
    assert main(["plan", "--help"]) == 0
    assert "--deadline" in capsys.readouterr().out


def test_it_runs_as_a_program():
    done = subprocess.run(
        [sys.executable, "-m", "chinchilla_lab.cli", "tokens", "-N", "7e9", "--loss", "1.968"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("error: N=7B cannot reach")
    assert done.stderr.count("\n") == 1


def run_program(*words, **environment):
    return subprocess.run(
        [sys.executable, *words], capture_output=True, text=True,
        env={**os.environ, **environment},
    )  # fmt: skip


def test_the_module_is_the_program():
    """python -m chinchilla_lab.cli and the script of pyproject.toml run one function."""
    pyproject = Path(__file__).parent.parent / "pyproject.toml"
    scripts = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]["scripts"]
    assert scripts == {"chinchilla-lab": "chinchilla_lab.cli:main"}
    script = "import sys; from chinchilla_lab.cli import main; sys.exit(main())"
    for words in (
        ["optimal", "-C", "1e22"],
        ["tokens", "-N", "7B", "--loss", "1.9"],
        [],
    ):
        one = run_program("-m", "chinchilla_lab.cli", *words)
        two = run_program("-c", script, *words)
        assert (one.returncode, one.stdout, one.stderr) == (
            two.returncode, two.stdout, two.stderr,
        )  # fmt: skip


def test_a_narrow_terminal_does_not_cut_what_is_piped():
    done = run_program("-m", "chinchilla_lab.cli", "hardware", COLUMNS="40")
    assert "…" not in done.stdout
    assert all(ACCELERATORS[key].name in done.stdout for key in ACCELERATORS)


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")
def test_no_color_is_heeded_on_a_terminal():
    import pty

    def on_terminal(columns=200, **environment):
        near, far = pty.openpty()
        child = subprocess.Popen(
            [sys.executable, "-m", "chinchilla_lab.cli", "optimal", "-C", "1e22"],
            stdout=far, stderr=subprocess.DEVNULL,
            env={**os.environ, "TERM": "xterm", "COLUMNS": str(columns), **environment},
        )  # fmt: skip
        os.close(far)
        said = b""
        with contextlib.suppress(OSError):  # the far end closes with the child
            while more := os.read(near, 65536):
                said += more
        os.close(near)
        assert child.wait() == 0
        return said

    assert b"\x1b[" in on_terminal(NO_COLOR="")
    plain = on_terminal(NO_COLOR="1")
    assert b"besiroglu-2024" in plain
    assert b"\x1b[" not in plain
    # on a narrow screen one record stands as a column: no word is folded
    narrow = on_terminal(columns=72, NO_COLOR="1")
    assert b"quantity" in narrow
    assert b"besiroglu-2024" in narrow


def test_who_reads_no_further_is_no_error():
    done = subprocess.run(
        f"'{sys.executable}' -m chinchilla_lab.cli laws --json | head -1",
        shell=True, capture_output=True, text=True,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("[\n", "")


def test_no_words_are_a_question_for_help(capsys):
    assert main([]) == 0
    alone = capsys.readouterr()
    assert main(["--help"]) == 0
    assert capsys.readouterr() == alone
    assert "..." not in alone.out.partition("Commands:")[2]  # no summary is cut


def test_help_waits_for_no_library():
    """The list of commands needs the parser of options alone."""
    code = (
        "import sys; from chinchilla_lab.cli import main; main(['--help']);"
        "heavy = {'numpy', 'rich.table', 'chinchilla_lab.planning'} & set(sys.modules);"
        "sys.exit(', '.join(heavy) or 0)"
    )
    done = run_program("-c", code)
    assert done.returncode == 0, done.stderr


CHIP = """
n_accelerators = 16
[accelerator]
id = "own"
name = "Own chip"
sparse = false
bf16_tflops = 500
hbm_gb = 64
hbm_gbps = 2000
scaleup_gbps = 300
scaleup_domain = 8
scaleout_gbps = 25
price_low_usd = 1.5
price_high_usd = 2.0
price_date = "2026-05"
source = "ours"
where = "data sheet"
accessed = "2026-05"
evidence = "vendor"
"""


def test_clusters_come_from_toml_and_json(ask, tmp_path):
    toml, other = tmp_path / "own.toml", tmp_path / "own.json"
    toml.write_text(CHIP, encoding="utf-8")
    other.write_text(json.dumps(tomllib.loads(CHIP)), encoding="utf-8")
    words = ("time", "-N", "7B", "-D", "1T", "--mfu", "40%", "--cluster")
    (one,), (two,) = ask(*words, str(toml)), ask(*words, str(other))
    assert one == two
    same(one, {"days": estimate_run(7e9, 1e12, Cluster.from_file(toml), 0.4).days[1]})
    assert one["accelerator"] == "Own chip"
    toml.write_text(CHIP.replace("hbm_gb =", "hbm_gigabytes ="), encoding="utf-8")
    assert "hbm_gigabytes: no such field" in ask(*words, str(toml), code=2)
    toml.write_text("n_accelerators = ", encoding="utf-8")
    assert "own.toml" in ask(*words, str(toml), code=2)


@pytest.mark.parametrize(
    ("words", "column", "value"),
    [
        (("optimal", "-C", "3e24"), "C_flop", 3e24),
        (("optimal", "-C", "3·10²⁴"), "C_flop", 3e24),
        (("optimal", "-C", "1 PF-day"), "C_flop", 8.64e19),
        (("optimal", "-N", "7 billion"), "N", 7e9),
        (("steps", "-N", "0.125B", "--batch-seqs", "1k", "--seq", "2048"), "batch_tokens", 2048e3),
        (("comm", "--bytes", "80GiB", "--ranks", "8", "--bw", "400 Gbit/s"), "seconds",
         2 * 7 / 8 * 80 * 2**30 / 50e9),
        (("time", "-N", "7B", "-D", "1T", "--gpus", "16k", "--gpu", "h100-sxm", "--mfu", "40%"), "n_accelerators", 16000),
        (("mfu", "--achieved", "0.48 PFLOP/s", "--gpu", "h100-sxm"), "achieved_flop_per_s", 480e12),
        (("memory", "-N", "7B", "--gpus", "2", "--recipe", "2:2:4:8"), "recipe_bytes", 16.0),
        (("serve", "--arch", "llama-3-8b", "--gpu", "h100-sxm", "--prompt", "1k", "--answer", "300", "--demand", "0.5T"), "tokens_per_day", 5e11),
    ],
    ids=lambda x: " ".join(x) if isinstance(x, tuple) else None,
)  # fmt: skip
def test_every_kind_of_quantity_as_people_type_it(ask, words, column, value):
    assert ask(*words)[0][column] == pytest.approx(value, rel=1e-12)


def test_times_and_money_as_people_type_them(ask):
    words = ("plan", "--cluster", "loft", "--family", "none", "--mfu", "40%")
    one = ask(*words, "--deadline", "30 days", "--budget", "$2M")
    assert ask(*words, "--deadline", "2592000 s", "--budget", "2e6") == one
    assert ask(*words, "--deadline", "720h", "--budget", "2 million") == one


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("optimal", "-C", "3e24 FLOP/s"), ["--compute", "3e24 FLOP/s", "a rate"]),
        (("optimal", "-N", "-7B"), ["--params", "'-7B'", "above 0"]),
        (("time", "-N", "7B", "-D", "1T", "--gpus", "8", "--gpu", "h100-sxm", "--mfu", "40"), ["--mfu", "'40'", "40%"]),
        (("time", "-N", "7B", "-D", "1T", "--gpus", "8.5", "--gpu", "h100-sxm"), ["--gpus", "8.5", "whole"]),
        (("plan", "--cluster", "loft", "--deadline", "soon"), ["--deadline", "'soon'", "30 days"]),
        (("plan", "--cluster", "loft", "--budget", "30 days"), ["--budget", "30 days", "$2M"]),
        (("plan", "--cluster", "loft", "--deadline", "1d", "--price", "3:2@2026-11"), ["--price", "high=2 is below low=3"]),
        (("optimal", "-C", "1e22,,2e22"), ["--compute", "1e22,,2e22", "empty"]),
        (("optimal", "-C", "1e22", "--law", "epoch:gamma=1"), ["--law", "gamma=1", "alpha"]),
        (("optimal", "-C", "1e22", "--law", "epoch:alpha=x"), ["--law", "'x' is not a number"]),
        (("optimal", "-C", "1e22", "--law", "ratio:many"), ["--law", "ratio:many"]),
        (("optimal", "-C", "1e22", "--law", "lost.json"), ["--law", "lost.json", "no such file"]),
        (("compare", "--plan", "70B:many"), ["--plan", "70B:many", "not a number"]),
        (("memory", "-N", "7B", "--recipe", "2:x:12"), ["--recipe", "2:x:12"]),
        (("memory", "--arch", "llama-3-8b", "--layers", "4"), ["--layers does not apply with --arch"]),
        (("memory", "--arch", "mixtral-8x7b", "--ep", "3", "--dp", "3"), ["--ep=3"]),
        (("flops", "-N", "7B", "--active-params", "9B"), ["--active-params", "swap"]),
        (("layouts", "--cluster", "loft", "--arch", "llama-3-8b", "--batch", "1k"), ["--batch", "at least 4096", "4096000"]),
        (("serve", "--arch", "llama-3-8b", "--gpu", "h100-sxm", "--prompt", "9", "--answer", "9", "--slowdown", "0.5"), ["slowdown", "0.5", "roofline"]),
        (("mfu", "--tokens-per-second", "1M", "--gpu", "h100-sxm", "--gpus", "8"), ["--arch"]),
        (("memory", "--layers", "8", "--d-model", "1024", "--d-ff", "4096", "--vocab", "32k", "--heads", "3"), ["--heads=3", "--d-model=1024", "--head-dim"]),
        (("plan", "--cluster", "8xh100-pcie", "--budget", "$1M"), ["--price='2.5@2026-11'", "2:4@2026-11"]),
        (("plan", "--cluster", "loft", "--deadline", "1d", "--family", "none"), ["--family=none", "--mfu=0.4"]),
        (("mfu", "--tokens-per-second", "1M", "--arch", "llama-3-8b", "--gpu", "h100-sxm", "--gpus", "64", "--count", "half"), ["--count='half'", "causal"]),
        (("optimal", "-C", "1e22", "--law", "epoch,,rule20"), ["--law", "empty place"]),
        (("loss", "-N", "7B"), ["--tokens", "see chinchilla-lab loss --help"]),
        (("fit", "RUNS", "--resamples", "0", "--save", "/nowhere/law.json"), ["/nowhere/law.json", "check the path"]),
        (("check", "-N", "70B", "-D", "1.4T", "-C", "5.88e23", "--price", "2"), ["--price", "--gpu-hours"]),
    ],
    ids=lambda x: " ".join(x) if isinstance(x, tuple) else None,
)  # fmt: skip
def test_an_error_names_argument_value_and_way_out(refused, tmp_path, words, says):
    file = tmp_path / "runs.csv"
    file.write_text(example_csv("grid64"), encoding="utf-8")
    line = refused(*(str(file) if w == "RUNS" else w for w in words), code=2)
    for word in says:
        assert word in line


def test_without_the_extra_it_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "chinchilla_lab.cli.app", None)
    assert main(["laws"]) == 2
    assert "chinchilla-lab[cli]" in capsys.readouterr().err
