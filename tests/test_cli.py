"""Every command against the call that it stands for: the same digits, one code path."""

import csv
import io
import json
import subprocess
import sys

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
        "1e-6",
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
        "--batch-limit", "4M", "--price", "2:3", "--failures", "10", "--restart", "10 min",
        "--stack", "llama-3", "--seq", "8192", "--keep", "3", "--out", str(kept),
    )  # fmt: skip
    from chinchilla_lab.cluster import DEFAULT_RELIABILITY

    made = plan(
        LOFT, objective="lifetime", target_loss=2.1, inference_tokens=1e12, unique_tokens=2e11,
        budget=1e6, law=HOFFMANN_2022, batch_limit=4e6, price=(2.0, 3.0), stack="llama-3",
        seq_len=8192, keep=3,
        reliability=DEFAULT_RELIABILITY.with_(failures_per_node_day=0.01, band=(0.01, 0.01), restart=600.0),
    )  # fmt: skip
    assert len(rows) == 3
    same(rows[0], {"N": made.N, "D": made.D, "days": made.days, "loss_nats": made.loss})
    assert closure(made).holds
    assert "| N |" in kept.read_text(encoding="utf-8")


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
        (("memory", "--arch", "llama-2-7b", "--pp", "64"), 2, "use pp=32"),
        (("memory", "--arch", "llama-2-7b", "--gpus", "8", "--zero", "3"), 2, "use --dp"),
        (("memory", "--params", "7e9", "--dp", "8"), 2, "--dp does not apply"),
        (("memory", "--params", "7e9", "--arch", "llama-2-7b", "--tp", "2"), 2, "--arch, --tp does not"),
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


def test_prices_are_dated(ask):
    words = ("time", "-N", "7B", "-D", "1T", "--gpu", "h100-sxm", "--gpus", "64")
    known = ask(*words, "--mfu", "0.4")[0]
    assert known["price_date"] == ACCELERATORS["h100-sxm-80gb"].price.date
    assert ask(*words, "--mfu", "0.4", "--price", "2")[0]["price_date"] == "undated"


def test_what_changes_nothing_is_noted(capsys):
    words = ["plan", "--cluster", "loft", "--deadline", "1 day", "--mfu", "0.4"]
    assert main([*words, "--family", "none", "--inference", "1T"]) == 0
    assert "--inference changes nothing" in capsys.readouterr().err
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


def test_without_the_extra_it_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "chinchilla_lab.cli.app", None)
    assert main(["laws"]) == 2
    assert "chinchilla-lab[cli]" in capsys.readouterr().err
