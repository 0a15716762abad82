"""No option of the command line is ignored: it changes the answer, or it is refused.

Every option of every command is added to every way of asking in ``WAYS``. The answer
must then differ from the answer without it, or the program must refuse and name the
option. An option that nobody thought of fails here.
"""

import contextlib
import csv
import importlib
import io
import json
import shlex
from functools import cache

import pytest

pytest.importorskip("typer")

import typer

from chinchilla_lab.cli import main
from chinchilla_lab.cli.app import program
from chinchilla_lab.cli.catalogue import CATALOGUE
from chinchilla_lab.fitting.reading import example_csv

COMMANDS = typer.main.get_command(program()).commands

SHAPE = "--layers 8 --d-model 1024 --d-ff 4096 --vocab 32000"
MODEL = "--arch llama-3-8b"
WAYS = {
    "optimal": ["-C 1e21", "-N 7B", "--loss 2.2"],
    "loss": ["-N 7B -D 200B", "-N 7B -D 200B --unique 50B"],
    "tokens": ["-N 7B", "-N 7B --loss 2.1", "-N 7B --rule 20"],
    "steps": ["-N 125M --batch-seqs 256 --seq 2048"],
    "tradeoff": ["--size-factor 0.5"],
    "scale": ["--law epoch", "--law pearce-2024"],
    "exponents": ["--law epoch"],
    "epochs": ["--unique 1B --epochs 4"],
    "speedup": ["--linf 1.6 --alpha 0.09 --loss 2.25,2.24"],
    "fit": ["RUNS --resamples 0", "RUNS --resamples 5"],
    "isoflop": ["EDGE --resamples 0", "EDGE --resamples 5"],
    "laws": [""],
    "flops": ["-N 7B", "--active-params 7B -N 40B", MODEL, SHAPE],
    "params": [MODEL, SHAPE, f"{SHAPE} --experts 8 --top-k 2"],
    "memory": [
        "-N 7B",
        "-N 7B --gpus 8 --zero 2",
        f"{MODEL} --gpu h100-sxm",
        f"{SHAPE} --dp 8 --tp 2 --zero 1",
        f"{SHAPE} --experts 8 --top-k 2 --dp 8 --zero 1 --ep 8",
        f"{MODEL} --rule zero-paper",
        "-N 7B --bytes 2",
    ],
    "mfu": [
        "--achieved 400e12 --gpu h100-sxm",
        "--achieved 400e12 --peak 989e12",
        "-N 7B -D 1T --gpu-hours 100k --gpu h100-sxm",
        f"--tokens-per-second 500k {MODEL} --gpu h100-sxm --gpus 64",
    ],
    "time": [
        "-N 7B -D 1T --gpu h100-sxm --gpus 64",
        "-N 7B -D 1T --cluster loft --mfu 40%",
        f"-D 1T --cluster loft {MODEL} --batch 4194304",
        "-N 7B -D 1T --calibrate-from 70B:2T:1720320 --gpu a100-80g --gpus 64",
    ],
    "layouts": [
        f"--batch 4M --cluster loft {MODEL} --top 2",
        f"--batch 4M --cluster loft {SHAPE} --experts 8 --top-k 2 --top 2",
    ],
    "calibrate": [
        f"{MODEL} --cluster loft --tp 2 --zero 1 --batch 4194304 --took '9 s'",
        f"STEPS {MODEL} --cluster loft --batch 4194304",
    ],
    "hardware": ["", "--gpu h100-sxm"],
    "roofline": ["--gpu h100-sxm"],
    "comm": ["--bytes 1GB --ranks 8 --bw 450GB/s"],
    "serve": [
        f"--gpu h100-sxm --prompt 1000 --answer 300 {MODEL}",
        f"--gpu h100-sxm --prompt 1000 --answer 300 {MODEL} --demand 1B --charge 1",
        "--gpu h100-sxm --prompt 1000 --answer 300 -N 7B --cache 131072",
        f"--gpu h100-sxm --prompt 1000 --answer 300 {MODEL} --training-cost $2M",
        f"--gpu h100-sxm --prompt 1000 --answer 300 {MODEL} --calibrate MEASURED",
    ],
    "plan": [
        "--cluster loft --deadline 30d --family none --mfu 40%",
        "--cluster loft --deadline 30d --mfu 40%",
        "--cluster 8xh100-sxm --deadline 5d",
        "--cluster loft --objective lifetime --target-loss 2.2 --family none --mfu .4",
        "--cluster loft --deadline 30d --family none --mfu 40% --binding",
        "--cluster loft --deadline 30d --failures 0 --family none --mfu 40%",
    ],
    "compare": ["--plan 70B:1.4T --plan 280B:300B"],
    "check": ["-N 70B -D 1.4T -C 5.88e23", "--steps 4800 --batch 524288 -D 2.517B"],
    "validate": [""],
}  # fmt: skip

# one word for each option that differs from its default and from the ways of asking
VALUES = {
    "--json": None, "--csv": None,
    "--compute": "3e21", "--params": "6B", "--loss": "2.15", "--law": "hoffmann",
    "--tokens": "300B", "--unique": "40B", "--rule": "30", "--batch-seqs": "128",
    "--seq": "8192", "--dataset": "7.5B", "--size-factor": "0.6", "--factor": "5",
    "--epochs": "2", "--linf": "1.5", "--alpha": "0.1", "--map": "N=size",
    "--keep": "L=2.0", "--counts": "active", "--resamples": "7", "--seed": "3",
    "--save": "SAVED", "--active-params": "3B", "--arch": "mistral-7b",
    "--layers": "16", "--d-model": "2048", "--d-ff": "8192", "--heads": "16",
    "--kv-heads": "2", "--head-dim": "64", "--vocab": "50k", "--experts": "4",
    "--top-k": "1", "--mlp": "plain", "--tied": "true", "--convention": "palm",
    "--recompute": "full", "--gpus": "16", "--zero": "3", "--recipe": "2:4:4:8",
    "--bytes": "4", "--tp": "8", "--pp": "4", "--dp": "4", "--cp": "2", "--ep": "2",
    "--micro-batch": "2", "--attention": "unfused", "--sequence-parallel": None,
    "--dropout": None, "--gpu": "a100-80g", "--achieved": "300e12",
    "--gpu-hours": "200k", "--tokens-per-second": "100k", "--count": "causal",
    "--peak": "1e15", "--dtype": "fp8", "--cluster": "floor", "--mfu": "35%",
    "--calibrate-from": "7B:2T:184320", "--confidence": "80%",
    "--price": "2:3@2026-11", "--batch": "2M",
    "--stack": "llama-3", "--top": "3", "--ranks": "4", "--bw": "100GB/s",
    "--collective": "alltoall", "--latency": "1ms", "--prompt": "500",
    "--answer": "100", "--cache": "65536", "--weight-bytes": "1",
    "--cache-bytes": "1", "--tokens-per-day": "2B", "--requests-per-day": "1M",
    "--training-cost": "$3M", "--charge": "$2", "--slowdown": "1.5",
    "--calibrate": "MEASURED", "--deadline": "20 days", "--budget": "$50k",
    "--objective": "time", "--target-loss": "2.3", "--inference": "1T",
    "--family": "gpt", "--batch-limit": "1M", "--critical-batch": "1M",
    "--failures": "50", "--restart": "1h", "--binding": None, "--levers": None,
    "--out": "OUT", "--plan": "13B:1T", "--same-compute": None, "--ratio": "20",
    "--steps": "5000", "--days": "30", "--cost": "1e6", "--repeats": "3",
    "--rtol": "10%", "--uneven-stages": None, "--items": None,
    "--memory-limit": "40GB", "--example": None, "--serving-utilisation": "10%",
    "--took": "10 s", "--constants": "gemm,traffic", "--label": "pilot",
}  # fmt: skip
OWN = {
    ("check", "--price"): "3",
    ("memory", "--rule"): "zero-paper",
    ("memory", "--bytes"): "4",
    ("comm", "--bytes"): "2GB",
    ("speedup", "--loss"): "2.25,2.2",
    ("serve", "--batch"): "16",
    ("plan", "--keep"): "2",
    ("compare", "--law"): "hoffmann",
    ("scale", "--compute"): "1e20",
    ("check", "--batch"): "524000",
    ("layouts", "--cp"): "2",
    ("layouts", "--stack"): "megatron-2021",
    ("time", "--stack"): "megatron-2021",
    ("layouts", "--memory-limit"): "1GB",
    ("plan", "--memory-limit"): "8GB",
    ("calibrate", "--seq"): "2048",
    ("calibrate", "--pp"): "2",
    ("calibrate", "--tp"): "4",
    ("calibrate", "--tokens"): "5M",
    ("calibrate", "--dp"): "64",
    ("calibrate", "--zero"): "3",
}


def names(command):
    """Long names of the options of a command."""
    return [
        max(p.opts, key=len)
        for p in COMMANDS[command].params
        if p.param_type_name == "option"
    ]


def given(way, option, command):
    short = {s for p in COMMANDS[command].params for s in p.opts if option in p.opts}
    return bool(short & set(way.split()))


# options that belong to the question, though the answer may not depend on them
HARMLESS = {
    ("layouts", "--heads"): "the same width in other portions",
    ("layouts", "--uneven-stages"): "more layouts, which may all be slower",
    ("params", "--heads"): "the same width in other portions",
    ("memory", "--heads"): "the same, where scores stay on the chip",
    ("plan", "--deadline"): "a limit that does not bind moves nothing",
    ("plan", "--budget"): "a limit that does not bind moves nothing",
    ("plan", "--compute"): "a limit that does not bind moves nothing",
}

CASES = [
    pytest.param(command, way, option, id=f"{command} {way} {option}".replace("  ", " "))
    for command, ways in WAYS.items()
    for way in ways
    for option in names(command)
    if option not in ("--json", "--csv") and not given(way, option, command)
]  # fmt: skip


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Files that some options name; ``SAVED`` and ``OUT`` are to be written."""
    place = tmp_path_factory.mktemp("files")
    (place / "runs.csv").write_text(example_csv("grid64"), encoding="utf-8")
    (place / "edge.csv").write_text(example_csv("edge"), encoding="utf-8")
    (place / "measured.csv").write_text(
        "batch,context,measured_tokens_per_s\n1,1000,150\n32,1000,3100\n",
        encoding="utf-8",
    )
    (place / "steps.csv").write_text(
        "name,tp,pp,zero,seconds\na,2,1,1,9.5\nb,4,2,1,9.8\n", encoding="utf-8"
    )
    return {
        "RUNS": place / "runs.csv", "EDGE": place / "edge.csv",
        "MEASURED": place / "measured.csv", "STEPS": place / "steps.csv", "SAVED": place / "law.json",
        "OUT": place / "plans.json",
    }  # fmt: skip


@pytest.fixture(scope="module")
def answer(files):
    """Run a command line; answers are kept, since many lines share a beginning."""

    @cache
    def run(line):
        for word, path in files.items():
            line = line.replace(word, str(path))
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(shlex.split(line))
        return code, out.getvalue(), err.getvalue()

    return run


@pytest.mark.parametrize(("command", "way", "option"), CASES)
def test_an_option_counts_or_is_refused(answer, files, command, way, option):
    value = OWN.get((command, option), VALUES[option])
    more = option if value is None else f"{option} {shlex.quote(value)}"
    code, plain, told = answer(f"{command} {way} --json")
    assert code == 0, told
    code, out, err = answer(f"{command} {way} {more} --json")
    if code == 0:
        if option in ("--save", "--out"):
            assert files["SAVED" if option == "--save" else "OUT"].is_file()
        elif (command, option) not in HARMLESS:
            assert out != plain, f"{option} changes nothing and nobody says so"
    else:
        assert out == ""
        assert code == 1 or option in err, err  # code 1: it made the question too hard


def test_every_command_is_asked_in_some_way():
    assert set(WAYS) == set(CATALOGUE) == set(COMMANDS)


@pytest.mark.parametrize("command", CATALOGUE)
def test_an_option_given_twice_is_refused(answer, command):
    for option in names(command):
        param = next(p for p in COMMANDS[command].params if option in p.opts)
        if param.multiple or param.is_flag:
            continue
        value = shlex.quote(OWN.get((command, option), VALUES[option]))
        code, out, err = answer(
            f"{command} {WAYS[command][0]} {option} {value} {option} {value}"
        )
        assert (code, out) == (2, "")
        assert f"{option} is given twice" in err


@pytest.mark.parametrize("command", CATALOGUE)
def test_json_and_csv_hold_the_same_digits(answer, command):
    line = f"{command} {WAYS[command][0]}"
    records = json.loads(answer(f"{line} --json")[1])
    rows = list(csv.DictReader(io.StringIO(answer(f"{line} --csv")[1])))
    assert len(rows) == len(records) > 0
    for row, record in zip(rows, records, strict=True):
        assert set(record) <= set(row)
        for name, value in record.items():
            shown = "" if value is None else str(value)
            assert row[name] == shown
    assert answer(f"{line} --json --csv")[0] == 2


@pytest.mark.parametrize("command", CATALOGUE)
def test_piped_tables_are_whole(answer, command):
    """No column is cut, whatever its width, and no colour goes into a pipe."""
    code, out, _ = answer(f"{command} {WAYS[command][0]}")
    assert code == 0
    assert "…" not in out
    assert "\x1b" not in out
    body = [line for line in out.splitlines() if line.startswith(("│", "┃"))]
    for record in json.loads(answer(f"{command} {WAYS[command][0]} --json")[1]):
        for value in record.values():
            if isinstance(value, str) and value:
                assert any(value in line for line in body), value


@pytest.mark.parametrize("command", CATALOGUE)
def test_help_has_an_example_and_every_option(answer, command):
    code, out, _ = answer(f"{command} --help")
    assert code == 0
    assert "Example: chinchilla-lab" in out
    assert CATALOGUE[command].summary.split()[0] in out
    for param in COMMANDS[command].params:
        assert param.help, f"{param.name} is not described"
        assert param.metavar or getattr(param, "is_flag", True)


@pytest.mark.parametrize("command", CATALOGUE)
def test_the_function_says_what_the_catalogue_says(command):
    entry = CATALOGUE[command]
    module = importlib.import_module(f"chinchilla_lab.cli.{entry.module}")
    assert module.COMMANDS[command].__doc__.splitlines()[0] == entry.summary


@pytest.mark.parametrize("command", CATALOGUE)
def test_examples_run(answer, files, command):
    words = CATALOGUE[command].example
    for name, file in (("runs.csv", "RUNS"), ("sweep.csv", "EDGE")):
        words = words.replace(name, f"{file} --resamples 5")
    code, out, err = answer(words)
    assert code == 0, err
    assert out
