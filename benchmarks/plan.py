"""Speed of the search for layouts, beside the table that says how far it is right.

``python benchmarks/plan.py [--calculon CHECKOUT]``. Peers are timed in the same
process, in turns with the library; one that is not there is printed as skipped.
llm-analysis is on the package index; calculon is a checkout whose path is given.

What counts as a plan of the library is a layout that divides, because a peer is only
ever asked about one of those: points of the grid that do not divide cost time and
count for nothing. Layouts that do not fit the memory count, as a peer too finds that
out by computing all of it. Two stricter ratios are printed beside: only layouts that
fit, and only the axes that the peers have. The last is lower because a search has a
fixed cost, and there are eight times fewer layouts to share it.
"""

import argparse
import importlib
import itertools
import json
import logging
import os
import statistics
import sys
import time
from pathlib import Path

from chinchilla_lab.cluster import Cluster, search
from chinchilla_lab.shape import SHAPES, TransformerShape
from chinchilla_lab.validation import report as validation_report

DENSE = TransformerShape(
    n_layers=96, d_model=21504, d_ff=86016, n_heads=168, vocab_size=131072, gated=False
)
EXPERTS = TransformerShape(
    n_layers=64, d_model=7168, d_ff=2048, n_heads=128, head_dim=128, vocab_size=131072,
    n_experts=256, n_active_experts=8, n_shared_experts=1,
)  # fmt: skip
WIDE = {
    "tp": (1, 2, 4, 8),
    "pp": (1, 2, 4, 8, 16, 32, 64),
    "cp": (1, 2, 4, 8, 16, 32),
    "ep": (1, 2, 4, 8, 16, 32, 64, 128, 256),
    "micro_batch": (1, 2, 3, 4, 6, 8, 12, 16, 24),
    "n_chunks": (1, 2, 4, 8, 16),
    "zero": (0, 1, 2, 3),
    "recompute": ("none", "selective", "full"),
    "sequence_parallel": (False, True),
}
GPT3 = SHAPES["gpt-3"]
PAIR = 64  # plans of a peer in one turn
ROUNDS = 9  # turns


def line(what, value, goal, unit, met):
    """Print one line and return whether the goal is met."""
    sign = ">=" if unit == "x" else "<="
    print(
        f"{what:52} {value:10.1f} {unit:3} goal {sign} {goal:g}  "
        f"{'met' if met else 'MISSED'}"
    )
    return met


def cpu(run, rounds=9):
    """Return the median CPU seconds of all threads, and the last answer."""
    spent = []
    for _ in range(rounds):
        start = time.process_time()
        answer = run()
        spent.append(time.process_time() - start)
    return statistics.median(spent), answer


def dense():
    """Search all layouts of 536B on 16,384 accelerators."""
    cluster = Cluster(accelerator="h100-sxm-80gb", n_accelerators=16384)
    return search(DENSE, cluster, 16384, 4096, "megatron-bridge")


def experts():
    """Search a grid of more than a million layouts of a mixture of 256 experts."""
    cluster = Cluster(accelerator="h100-sxm-80gb", n_accelerators=16384)
    return search(EXPERTS, cluster, 49152, 4096, "megatron-bridge", **WIDE)


def gpt3(**own):
    """Search the layouts of the model that the peers are asked about.

    Only degrees that can divide 4,096 accelerators and 96 layers, as a peer's own
    search lists factors. Peers know no context parallelism: ``cp=(1,)`` leaves it out.
    """
    cluster = Cluster(accelerator="a100-sxm-80gb", n_accelerators=4096)
    grid = {**WIDE, "ep": (1,), "pp": (1, 2, 4, 8, 16, 32)}
    grid["micro_batch"] = (1, 2, 4, 8, 16)
    return search(GPT3, cluster, 4096, 2048, "megatron-2021", **{**grid, **own})


def calculon_plan(checkout):
    """Return a function that times one plan of GPT-3, or why there is none.

    One plan is what calculon's search does for one candidate: an execution, ``compile``
    (the layers of one block) and ``run`` (time of each layer, of the pipeline and of
    the network, then memory against capacity). Only the time of a step and the memory
    are read, which costs less than the dictionary of all figures that its search takes.
    Four executions take turns, with and without recomputation, sequence parallelism and
    overlap. All fit, and one that does not would raise, so none returns sooner.

    The logger is disabled, which is the fastest that calculon goes without a change:
    its search hands over a logger without level or handler, for which every message is
    made and thrown away, and that takes about seven times longer. The arguments of the
    messages are worked out even so, and take about two thirds of what is left.
    """
    root = Path(checkout)
    if not (root / "calculon").is_dir():
        return f"{root} holds no package calculon"
    sys.path.insert(0, str(root))
    try:
        llm = importlib.import_module("calculon.llm")
    except ImportError as fault:
        return f"calculon does not import: {fault}"
    files = ("models/gpt3-175B.json", "systems/a100_80g.json")
    found = [root / name for name in files]
    if missing := [str(f) for f in found if not f.is_file()]:
        return f"not in the checkout: {', '.join(missing)}"
    model, system = (json.loads(f.read_text(encoding="utf-8")) for f in found)
    app, machine = llm.Llm.Application(model), llm.System(system)
    quiet = logging.Logger("quiet")
    quiet.disabled = True
    plan = {
        "num_procs": 4096, "tensor_par": 8, "pipeline_par": 8, "data_par": 64,
        "tensor_par_net": 0, "pipeline_par_net": 1, "data_par_net": 1,
        "batch_size": 4096, "microbatch_size": 1, "datatype": "float16",
        "fused_activation": True, "attention_type": "multihead",
        "activation_recompute": "full", "pipeline_interleaving": 1,
        "optimizer_sharding": True, "tensor_par_comm_type": "ar",
        "tensor_par_overlap": "none", "seq_par_ag_redo": False,
        "data_par_overlap": False, "weight_offload": False,
        "activations_offload": False, "optimizer_offload": False, "training": True,
    }  # fmt: skip
    split = {"tensor_par_comm_type": "rs_ag", "activation_recompute": "attn_only"}
    chunks = {"tensor_par_overlap": "pipe", "pipeline_interleaving": 3}
    deep = {"activation_recompute": "none", "pipeline_par": 16, "data_par": 32}
    plans = itertools.cycle(
        (
            plan,
            {**plan, **chunks},
            {**plan, **split, "tensor_par_overlap": "ring", "data_par_overlap": True},
            {**plan, **split, **deep},
        )
    )

    def one():
        model = llm.Llm(app, quiet)
        model.compile(machine, llm.Llm.Execution.from_json(next(plans)))
        model.run(machine)
        return model.get_total_time(), model.get_mem_tier1_cap_req()

    return one


def llm_analysis_plan():
    """Return a function that times one plan of OPT-175B, or why there is none."""
    try:
        analysis = importlib.import_module("llm_analysis.analysis")
        config = importlib.import_module("llm_analysis.config")
    except ImportError as fault:
        return f"llm-analysis does not import: {fault}"
    parts = (
        config.get_model_config_by_name("facebook_opt-175b"),
        config.get_gpu_config_by_name("a100-sxm-80gb"),
        config.get_dtype_config_by_name("w16a16e16"),
        config.ParallelismConfig(tp_size=8, pp_size=8, dp_size=64),
    )

    def one():
        return analysis.LLMAnalysis(*parts).training(
            batch_size_per_gpu=8,
            total_num_tokens=300e9,
            activation_recomputation=analysis.ActivationRecomputation.FULL,
        )

    return one


def against(name, one, goal):
    """Compare plans per second with a peer, in turns."""
    if isinstance(one, str):
        print(f"{f'plans per second over {name}':52} skipped: {one}")
        return
    try:
        one()
    except Exception as fault:  # a peer's own failure must not end the run
        print(f"{f'plans per second over {name}':52} skipped: {fault!r}")
        return
    peer, library, narrow = [], [], []
    for _ in range(ROUNDS):
        theirs, _ = cpu(lambda: [one() for _ in range(PAIR)], rounds=1)
        ours, answer = cpu(gpt3, rounds=1)
        fewer, part = cpu(lambda: gpt3(cp=(1,)), rounds=1)
        peer.append(PAIR / theirs)
        library.append(answer.n_divisible / ours)
        narrow.append(part.n_divisible / fewer / peer[-1])
    ratios = [ours / theirs for ours, theirs in zip(library, peer, strict=True)]
    ratio = statistics.median(ratios)
    yield line(f"plans per second over {name}", ratio, goal, "x", ratio >= goal)
    fit = ratio * answer.n_feasible / answer.n_divisible
    print(
        f"  {statistics.median(library):,.0f} a second against "
        f"{statistics.median(peer):,.0f}; {min(ratios):,.0f} to {max(ratios):,.0f} x "
        f"in {ROUNDS} turns; {fit:,.0f} x if only layouts that fit count; "
        f"{statistics.median(narrow):,.0f} x without context parallelism"
    )


def main():
    """Run all comparisons."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--calculon", default=os.environ.get("CALCULON", ""))
    chosen = options.parse_args()
    logging.disable(logging.CRITICAL)
    spent, answer = cpu(dense)
    results = [
        line(
            f"dense search, 16,384 accelerators, {answer.n_points:,} layouts",
            1e3 * spent, 20, "ms", spent <= 0.020,
        )
    ]  # fmt: skip
    spent, answer = cpu(experts)
    results.append(
        line(
            f"experts, grid of {answer.n_points:,} layouts",
            1e3 * spent, 150, "ms", spent <= 0.150 and answer.n_points >= 10**6,
        )
    )  # fmt: skip
    peer = (
        calculon_plan(chosen.calculon)
        if chosen.calculon
        else "give a checkout with --calculon PATH"
    )
    results += [*against("calculon", peer, 1000)]
    results += [*against("llm-analysis", llm_analysis_plan(), 500)]
    print(f"{sum(results)} of {len(results)} goals met\n")
    print(validation_report())


if __name__ == "__main__":
    main()
