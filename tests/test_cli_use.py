"""What a new user types first: near misses, narrow screens, files, their own stack."""

import contextlib
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("typer")

from chinchilla_lab.cli import main
from chinchilla_lab.cli.catalogue import CATALOGUE
from chinchilla_lab.cli.drawing import Column, groups, widths
from chinchilla_lab.cli.output import cell, head
from chinchilla_lab.cli.reference import example_records
from chinchilla_lab.cluster import (
    STACKS,
    Cluster,
    Layout,
    MeasuredStep,
    Stack,
    calibrate,
    example_cluster,
    search,
)
from chinchilla_lab.planning import plan
from chinchilla_lab.shape import SHAPES
from chinchilla_lab.units import DAY, FLOP_PER_ND

LOFT = example_cluster("loft")
SMALL = SHAPES["llama-3-8b"]
README = Path(__file__).parent.parent / "README.md"


@pytest.fixture
def told(capsys):
    """Run a command line; return its code, its records and what it says beside them."""

    def run(line, as_json=True):
        code = main([*shlex.split(line), *(["--json"] if as_json else [])])
        said = capsys.readouterr()
        made = json.loads(said.out) if as_json and code == 0 else said.out
        return code, made, said.err

    return run


# --- batches ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "sequences", "seq"),
    [("8M", 2048, 4096), ("4M --seq 8192", 512, 8192), ("3M", 768, 4096)],
)
def test_a_batch_is_moved_to_one_that_divides_and_says_so(told, asked, sequences, seq):
    code, rows, err = told(f"layouts --cluster loft --arch llama-3-8b --batch {asked}")
    assert code == 0
    best = search(SMALL, LOFT, sequences, seq, "megatron-bridge").best
    assert rows[0]["step_s"] == pytest.approx(best.seconds, rel=1e-12)
    assert f"taken are {sequences:,}" in err
    assert f"--batch {sequences * seq}" in err


def test_a_whole_batch_is_left_alone(told):
    code, rows, err = told(
        "layouts --cluster loft --arch llama-3-8b --batch 3932160"  # 960 x 4,096
    )
    assert code == 0
    assert "taken are" not in err
    best = search(SMALL, LOFT, 960, 4096, "megatron-bridge").best
    assert rows[0]["step_s"] == pytest.approx(best.seconds, rel=1e-12)


def test_what_divides_is_named_and_works(told):
    words = "layouts --arch llama-3-8b --cluster"
    code, _, err = told(f"{words} 257xh100-sxm --batch 4M")
    assert code == 1
    batch = re.search(r"--batch (\d+) \(1,028 sequences\)", err)[1]
    assert "256 accelerators" in err
    assert "even_stages" not in err
    assert told(f"{words} 257xh100-sxm --batch {batch}")[0] == 0
    assert told(f"{words} 256xh100-sxm --batch 4M")[0] == 0


@pytest.mark.parametrize(
    ("typed", "options"),
    [
        ("--tp 2,4 --pp 1", {"tp": (2, 4), "pp": (1,)}),
        ("--cp 2 --zero 0,3", {"cp": (2,), "zero": (0, 3)}),
        ("--micro-batch 4 --recompute full", {"micro_batch": 4, "recompute": "full"}),
        ("--pp 5 --uneven-stages --gpus 40", {"pp": 5, "even_stages": False}),
        ("--memory-limit 30GB", {"memory_limit": 30e9}),
    ],
)
def test_layouts_takes_the_axes_of_the_search(told, typed, options):
    machine, batch = LOFT, 1024
    where = "--cluster loft"
    if "--gpus" in typed:
        machine, batch = Cluster(accelerator="h100-sxm-80gb", n_accelerators=40), 1000
        where = "--gpu h100-sxm"
    line = f"layouts {where} --arch llama-3-8b --batch {batch * 4096} {typed} --top 3"
    code, rows, err = told(line)
    assert code == 0, err
    found = search(
        SMALL, machine, batch, 4096, "megatron-bridge", keep=3, **options
    )  # fmt: skip
    assert [r["layout"] for r in rows] == [s.layout.label() for s in found.steps]


def test_layouts_names_its_counts(told):
    line = "layouts --cluster loft --arch llama-3-8b --batch 4194304 --top 2 --items"
    _, rows, _ = told(f"{line} --count causal")
    step = search(SMALL, LOFT, 1024, 4096, "megatron-bridge", keep=2).steps[1]
    assert rows[1]["mfu"] == pytest.approx(step.mfu("causal"))
    assert rows[1]["hfu"] == pytest.approx(step.hfu("causal"))
    assert rows[1]["memory_gb"] * 1e9 == pytest.approx(rows[1]["memory_gib"] * 2**30)
    parts = {k.removesuffix("_ms"): v for k, v in rows[1].items() if k.endswith("_ms")}
    assert sum(parts.values()) == pytest.approx(1e3 * step.seconds)
    _, out, _ = told(f"{line} --count causal", as_json=False)
    assert "MFU, causal attention [-]" in out
    assert "memory [GiB]" in out


# --- screens ----------------------------------------------------------------------


def on_terminal(line, columns):
    pty = pytest.importorskip("pty")
    near, far = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-m", "chinchilla_lab.cli", *shlex.split(line)],
        stdout=far, stderr=subprocess.DEVNULL,
        env={**os.environ, "TERM": "xterm", "COLUMNS": str(columns), "NO_COLOR": "1"},
    )  # fmt: skip
    os.close(far)
    said = b""
    with contextlib.suppress(OSError):  # the far end closes with the child
        while more := os.read(near, 65536):
            said += more
    os.close(near)
    assert child.wait() == 0
    return said.decode().replace("\r", "")


EXAMPLES = re.findall(
    r"^chinchilla-lab (.*)$", README.read_text(encoding="utf-8"), re.MULTILINE
)


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")
@pytest.mark.parametrize(
    "line",
    [*EXAMPLES, "plan --cluster loft --deadline '30 days' --keep 3", "hardware"],
)
def test_no_number_is_cut_on_80_columns(told, line):
    screen = on_terminal(line, 80)
    assert "…" not in screen
    assert max(map(len, screen.splitlines())) <= 80
    # what a pipe holds uncut, a cell of the screen holds uncut
    _, piped, _ = told(line, as_json=False)

    def numbers(text):
        cells = re.split(r"[│\n]", text)
        return {
            c.strip() for c in cells if re.fullmatch(r"[-$]*[\d.,]+\w*%?", c.strip())
        }

    assert numbers(piped) <= numbers(screen)


def test_columns_are_parted_and_the_first_comes_again():
    columns = [
        Column(head=f"c{i} [unit]", cells=["1,234,567"], words=False, free=[False])
        for i in range(5)
    ]
    parts = groups(columns, 40)
    assert [[c.head[:2] for c in p] for p in parts] == [
        ["c0", "c1", "c2"], ["c0", "c3", "c4"],
    ]  # fmt: skip
    for part in parts:
        made = widths(part, 40)
        assert 1 + sum(w + 3 for w in made) <= 40
        assert all(w >= len("1,234,567") for w in made)


def test_numbers_are_written_one_way():
    assert cell("accelerator_hours", 1.3728e7) == "13,728,000"
    assert cell("accelerator_hours", 6.39e6) == "6,390,000"
    assert cell("flop_per_token", 4.818e10) == "4.818e10"
    assert cell("usd_p5", 9.7e4) == "$97k"
    assert head("usd_p95") == "cost, 95 % below [USD]"
    assert head("days_p5") == "time, 5 % below [day]"
    assert head("utilisation_6nd").endswith("[-]")


@pytest.mark.parametrize("command", CATALOGUE)
def test_every_number_in_a_table_has_its_unit(command):
    # a row of these carries its own unit, or a count names what it counts
    mixed = {"value", "low", "high", "left", "right", "one_more"}
    counts = {"constants", "n"}
    for record in example_records(command):
        for name, value in record.items():
            if isinstance(value, float) and name not in mixed | counts:
                assert "[" in head(name), name


def test_plans_stand_side_by_side_and_are_counted(told):
    line = "plan --cluster loft --deadline '30 days' --keep 3"
    _, out, _ = told(line, as_json=False)
    assert out.startswith("3 of 3 plans asked for")
    assert "plan 3" in out
    for row in ("N, 5 % below [parameter]", "cost, 95 % below [USD]", "memory [GiB]"):
        assert row in out
    code, rows, err = told("plan --cluster 8xh100-sxm --deadline '3 days' --keep 999")
    assert code == 0
    assert f"{len(rows)} of the 999 plans asked for were found" in err


# --- a stack of one's own ---------------------------------------------------------


def test_one_run_becomes_a_stack_that_every_command_reads(told, tmp_path):
    file = tmp_path / "pilot.json"
    code, rows, err = told(
        "calibrate --cluster loft --arch llama-3-8b --tp 2 --zero 1 --recompute full "
        f"--batch 4194304 --seq 8192 --tokens 1B --took '35 min' --save {file}"
    )
    assert code == 0, err
    step = MeasuredStep.from_run(
        SMALL, LOFT, Layout(tp=2, dp=32, zero=1, recompute="full"), batch=512,
        seq_len=8192, tokens=1e9, seconds=2100,
    )  # fmt: skip
    own = calibrate([step], label="one run as typed").stack
    assert rows[0]["gemm"] == pytest.approx(own.gemm, rel=1e-12)
    read = Stack.from_file(file)
    assert read.gemm == pytest.approx(own.gemm, rel=1e-12)
    same = {"name": own.name, "error": 0.0, "gemm": own.gemm, "fitted": own.fitted}
    assert read.with_(**same) == own.with_(**same)
    assert np.isnan(read.error)
    line = "layouts --cluster loft --arch llama-3-8b --batch 4194304 --top 1"
    _, rows, _ = told(f"{line} --stack {file}")
    best = search(SMALL, LOFT, 1024, 4096, own).best
    assert rows[0]["step_s"] == pytest.approx(best.seconds, rel=1e-12)
    _, rows, _ = told(f"plan --cluster loft --deadline '30 days' --stack {file}")
    assert rows[0]["N"] == plan(LOFT, deadline=30 * DAY, stack=read).N
    assert rows[0]["calibration"] == "calibrated to one run as typed"
    _, rows, _ = told(
        f"time -D 1T --cluster loft --arch llama-3-8b --batch 4194304 --stack {file}"
    )
    assert rows[0]["days"] == pytest.approx(1e12 / best.tokens_per_second / DAY)
    assert rows[0]["C_flop"] == FLOP_PER_ND * SMALL.params().active * 1e12


def test_a_table_of_steps_becomes_a_stack(told, tmp_path):
    file = tmp_path / "steps.csv"
    file.write_text(
        "name,tp,pp,zero,recompute,sequence_parallel,seconds\n"
        "a,2,1,1,full,yes,8.81\nb,4,2,1,none,no,8.2\n",
        encoding="utf-8",
    )
    words = "--cluster loft --arch llama-3-8b --batch 4194304 --seq 8192"
    code, rows, err = told(f"calibrate {file} {words}")
    assert code == 0, err
    cuts = [
        Layout(tp=2, dp=32, zero=1, recompute="full", sequence_parallel=True),
        Layout(tp=4, pp=2, dp=8, zero=1),
    ]
    steps = [
        MeasuredStep(
            shape=SMALL, cluster=LOFT, layout=cut, batch=512, seq_len=8192, seconds=s
        )
        for cut, s in zip(cuts, (8.81, 8.2), strict=True)
    ]
    found = calibrate(steps)
    assert [r["error_of_speed"] for r in rows] == pytest.approx(list(found.errors))
    for typed, says in (
        ("--tp 8", "--tp"),
        ("--constants gemm,network,jitter", "--constants"),
    ):
        code, _, err = told(f"calibrate {file} {words} {typed}")
        assert (code, says in err) == (2, True)
    for row, says in (
        ("micro_batchs\n2\n", "did you mean micro_batch?"),
        ("tp,seconds\ntwo,8\n", "line 2: tp 'two'"),
        ("tp,seconds\n2.5,8\n", "whole number"),
        ("tp,sequence_parallel\n2,maybe\n", "true or false"),
        ("tp\n2\n", "seconds is missing; give --took"),
        ("tp,seconds\n", "no measured step"),
    ):
        file.write_text(row, encoding="utf-8")
        code, _, err = told(f"calibrate {file} {words}")
        assert code == 2
        assert says in err


@pytest.mark.parametrize("name", list(STACKS))
def test_a_stack_survives_its_file(tmp_path, name):
    file = tmp_path / "kept.json"
    file.write_text(STACKS[name].to_json(), encoding="utf-8")
    read = Stack.from_file(file)
    assert read.to_json() == STACKS[name].to_json() or name == "uncalibrated"
    assert read.gemm == STACKS[name].gemm


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("gemm = 'fast'", "gemm='fast' must be a number"),
        ("gem = 0.8", "gem"),
        ("fused = 1", "true or false"),
        ("gemm = 1.5", "gemm"),
        ("gemm = ", "no stack"),
        ("fitted = ['speed']", "speed"),
    ],
)
def test_a_wrong_stack_file_is_refused(tmp_path, written, says):
    file = tmp_path / "own.toml"
    file.write_text(written, encoding="utf-8")
    with pytest.raises(ValueError, match=re.escape(says)):
        Stack.from_file(file)


def test_a_stack_typed_by_hand_says_so(tmp_path):
    file = tmp_path / "guess.toml"
    file.write_text("gemm = 0.7\njitter = 0\n", encoding="utf-8")
    read = Stack.from_file(file)
    assert (read.name, read.label) == ("guess", "changed by hand: gemm, jitter")


# --- clusters, prices, times, files -----------------------------------------------


def test_a_cluster_file_takes_the_ids_of_gpu(told, tmp_path):
    file = tmp_path / "own.toml"
    words = f"time -N 7B -D 1T --mfu 40% --cluster {file}"
    answers = []
    for chip in ("h100-sxm", "h100-sxm-80gb"):
        file.write_text(f'accelerator = "{chip}"\nn_accelerators = 64\n', "utf-8")
        answers.append(told(words)[1])
    assert answers[0] == answers[1]
    for chip, says in (("h100", "say which"), ("z80", "no accelerator"),
                       ("custom:1e15", "write a table")):  # fmt: skip
        file.write_text(f'accelerator = "{chip}"\nn_accelerators = 64\n', "utf-8")
        code, _, err = told(words)
        assert code == 2
        assert says in err
        assert "own.toml: accelerator" in err
        assert "from_file" not in err


def test_the_example_of_a_cluster_file_is_one(told, tmp_path):
    code, out, _ = told("hardware --example", as_json=False)
    assert code == 0
    file = tmp_path / "machine.toml"
    file.write_text(out, encoding="utf-8")
    words = f"time -N 7B -D 1T --mfu 40% --cluster {file}"
    code, first, err = told(words)
    assert code == 0, err
    # and so is its second half
    head, _, table = out.partition("# [accelerator]")
    lines = [line for line in head.splitlines() if not line.startswith("accelerator")]
    own = [line.removeprefix("# ") for line in table.splitlines()]
    text = "\n".join([*lines, "[accelerator]", *own])
    assert tomllib.loads(text)["accelerator"]["like"] == "h100-sxm"
    file.write_text(text, encoding="utf-8")
    code, second, err = told(words)
    assert code == 0, err
    assert second[0]["days"] == first[0]["days"]


@pytest.mark.parametrize(
    "written",
    ["2.2@2026-11", "$2.2@2026-11", "$2.20/h@2026-11", "2.2 USD per hour@2026-11",
     "2.2/gpu-hour @ 2026-11"],
)  # fmt: skip
def test_prices_as_offers_write_them(told, written):
    line = "time -N 7B -D 1T --cluster loft --mfu 40% --price"
    code, rows, err = told(f"{line} '{written}'")
    assert code == 0, err
    assert rows == told(f"{line} 2.2@2026-11")[1]


def test_a_range_of_prices_with_a_hyphen(told):
    line = "time -N 7B -D 1T --cluster loft --mfu 40% --price"
    assert told(f"{line} 2-3@2026-11")[1] == told(f"{line} 2:3@2026-11")[1]
    code, _, err = told(f"{line} 2-3")
    assert code == 2
    assert "2:3@2026-11" in err


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("plan --cluster loft --deadline 45", "'45 days'"),
        ("plan --cluster loft --deadline 1e6", "no unit of time"),
        ("plan --cluster loft --deadline 1d --restart 600", "'600 s'"),
        ("plan --cluster loft --deadline 1d --out /nowhere/x.csv", "no folder /nowhere"),
        ("plan --cluster loft --deadline 1d --out plans.xlsx", ".csv, .json, .md"),
        ("plan --cluster loft --deadline 1d --out plans", "is missing"),
        ("plan --cluster loft --objective lifetime", "needs --target-loss"),
        ("fit FILE --save law.yaml", ".json"),
        ("fit FILE", "--map N=NAME"),
        ("fit FILE --map N=size,loss=val", "--map D=NAME or --map C=NAME"),
        ("fit FILE --map Q=size", "--map"),
        ("layouts --cluster loft --arch llama-3-8b --batch 512", "2097152"),
        ("layouts --cluster loft --arch llama-3-8b --batch 4M --count half", "--count"),
        ("time -D 1T --cluster loft", "--arch"),
        ("time -D 1T --cluster loft --arch llama-3-8b", "--batch"),
        ("flops --arch llama-7b", "did you mean llama-2-7b?"),
        ("roofline --gpu h100-smx-80gb", "did you mean h100-sxm-80gb?"),
        ("optimal -C 1e22 --law besiroglu-2023", "did you mean besiroglu-2024?"),
        ("plan --cluster lofd --deadline 1d", "did you mean loft?"),
        ("plan --cluster loft --deadline 1d --stack lama-3", "did you mean llama-3?"),
        ("plan --cluster loft --deadline 1d --stack no.json", "no such file"),
        ("plan --cluster loft --deadline 1d --family lama", "did you mean llama?"),
        ("plan --cluster loft --deadline 1d --objective cots", "did you mean cost?"),
        ("memory -N 7B --recipe mixd-adam", "did you mean mixed-adam?"),
        ("effective-tokens", "did you mean epochs?"),
        ("layotus", "layouts"),
        ("optimale", "optimal"),
    ],
)  # fmt: skip
def test_near_misses_get_a_way_out(told, tmp_path, line, says):
    file = tmp_path / "runs.csv"
    file.write_text("size,tok,val\n1e9,2e10,2.5\n", encoding="utf-8")
    code, out, err = told(line.replace("FILE", str(file)), as_json=False)
    assert (code, out) == (2, "")
    assert says in err
    assert not re.search(r"columns=|even_stages|memory_limit|from_file|Price\(", err)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("layouts --cluster loft --arch llama-3-405b --batch 4M --tp 1", "--memory-limit"),
        ("layouts --cluster loft --arch llama-3-405b --batch 4M --tp 1", "--uneven-stages"),
        ("plan --cluster loft --objective time --target-loss 1.9 --deadline 1d", "times"),
    ],
)  # fmt: skip
def test_what_cannot_be_met_is_said_in_options(told, line, says):
    code, _, err = told(line, as_json=False)
    assert code == 1
    assert says in err
    assert not re.search(r"e\+|zero=\(|recompute=\(", err.split("error:")[1])


def test_memory_and_serving_reach_the_plan(told):
    line = "plan --cluster loft --deadline '10 days' --memory-limit 8GB"
    made = plan(LOFT, deadline=10 * DAY, memory_limit=8e9)
    assert told(line)[1][0]["N"] == made.N
    line = "plan --cluster loft --objective lifetime --target-loss 2.2 --inference 10T"
    made = plan(
        LOFT, objective="lifetime", target_loss=2.2, inference_tokens=1e13,
        serving_utilisation=0.05,
    )  # fmt: skip
    assert told(f"{line} --serving-utilisation 5%")[1][0]["N"] == made.N
