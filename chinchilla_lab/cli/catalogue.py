"""The commands by name: where each lives, what it answers, an example."""

from dataclasses import dataclass

__all__ = ["CATALOGUE", "Entry"]


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One command.

    Parameters
    ----------
    module : str
        Module of ``chinchilla_lab.cli`` that holds it, [-]
    summary : str
        What it answers, [-]
    example : str
        Words after the program's name, as in a shell, [-]
    tells : tuple of str, optional
        Columns of its answer that a reader looks for; by default the first, [-]
    """

    module: str
    summary: str
    example: str
    tells: tuple[str, ...] = ()


def _entry(module: str, summary: str, example: str, tells: str = "") -> Entry:
    return Entry(
        module=f"commands_{module}", summary=summary, example=example,
        tells=tuple(tells.split()),
    )  # fmt: skip


CATALOGUE: dict[str, Entry] = {
    "optimal": _entry(
        "laws",
        "Best size and tokens for a budget, a size or a loss, under one or more laws.",
        "optimal --compute 3e24 --law rule20,epoch",
        "law N D tokens_per_param",
    ),
    "loss": _entry(
        "laws",
        "Loss of a size on a number of tokens.",
        "loss -N 7B -D 0.4T",
        "C_flop loss_nats floor_of_N_nats efficiency",
    ),
    "tokens": _entry(
        "laws",
        "Tokens for a size: to reach a loss, by a rule, or the compute-optimal ones.",
        "tokens --params 7B --loss 2.1",
        "D C_flop tokens_per_param",
    ),
    "steps": _entry(
        "laws",
        "Optimizer steps for a size at a ratio of tokens to parameters.",
        "steps --params 125M --batch-seqs 256 --seq 2048 --dataset 7.5B",
        "D batch_tokens steps epochs",
    ),
    "tradeoff": _entry(
        "laws",
        "Tokens and compute of another size at the loss of the optimum.",
        "tradeoff --size-factor 0.5,0.25,0.1",
    ),
    "scale": _entry(
        "laws",
        "Growth of the optimal size and tokens when compute grows.",
        "scale --factor 10 --law kaplan,rule20,epoch",
        "law N_factor D_factor",
    ),
    "exponents": _entry(
        "laws",
        "Exponents of a law: those of its terms, and of its optimum.",
        "exponents --law kaplan-joint,kaplan-joint:alpha_D=0.095",
        "law a_of_N b_of_D",
    ),
    "epochs": _entry(
        "laws",
        "Fresh tokens that some passes over unique ones are worth.",
        "epochs --unique 25B --epochs 4,7,16",
        "epochs D effective_tokens share_of_fresh",
    ),
    "speedup": _entry(
        "laws",
        "Compute that a lower loss is worth on a curve L = Linf + A C^-alpha.",
        "speedup --linf 1.6 --alpha 0.0897 --loss 2.25,2.24",
    ),
    "fit": _entry(
        "fits",
        "Fit a law to runs, with intervals, or refuse and say why.",
        "fit runs.csv --compute 1e23",
    ),
    "isoflop": _entry(
        "fits",
        "Fit parabolas on budgets and a power law through their bottoms.",
        "isoflop sweep.csv --compute 1e23",
    ),
    "laws": _entry("laws", "List the published laws.", "laws"),
    "flops": _entry(
        "model",
        "Training FLOP of a size, or of a shape under each convention.",
        "flops --arch llama-3-8b --seq 8192 --tokens 15T",
    ),
    "params": _entry(
        "model",
        "Parameters of a shape, item by item and under each name of N.",
        "params --layers 9 --d-model 448 --d-ff 1280 --vocab 32000",
        "N_total N_body_and_head N_non_embedding",
    ),
    "memory": _entry(
        "model",
        "Bytes on the fullest accelerator: states of a size, or all of a shape.",
        "memory --arch llama-3-8b --tp 8 --seq 8192 --gpu h100-sxm",
        "weights_gib optimizer_gib activations_gib total_gib total_gb room_gib fits",
    ),
    "mfu": _entry(
        "machine",
        "Share of the dense peak: of a rate, of a speed, or of published hours.",
        "mfu --achieved 480TFLOP/s --gpu h100-sxm",
        "mfu peak_flop_per_s peak",
    ),
    "time": _entry(
        "machine",
        "Days, hours and dollars of a run; a band if no utilisation is known.",
        "time -N 130B -D 400B --gpu a100-40g --gpus 768 --mfu 25%",
    ),
    "layouts": _entry(
        "layouts",
        "Layouts that fit, the fastest first.",
        "layouts --cluster loft --arch llama-3-8b --batch 4M --top 3",
        "layout step_s mfu memory_gb",
    ),
    "calibrate": _entry(
        "calibrate",
        "Constants of your own software from measured steps, for --stack.",
        "calibrate --cluster loft --arch llama-3-8b --tp 2 --zero 1 --recompute full "
        "--batch 4194304 --seq 8192 --tokens 1B --took '35 min'",
        "step measured_s predicted_s gemm calibration",
    ),
    "hardware": _entry(
        "machine",
        "List the accelerators: dense peaks, one-way links, dated prices, sources.",
        "hardware --gpu h100-sxm",
        "name bf16_dense_tflops hbm_gb hbm_gbps usd_low usd_high price_date",
    ),
    "roofline": _entry(
        "machine",
        "Ridge point of a chip: FLOP per byte above which the peak binds.",
        "roofline --gpu h100-sxm",
    ),
    "comm": _entry(
        "machine",
        "Time of a collective on a ring.",
        "comm --collective allgather --bytes 1GB --ranks 8 --bw 450GB/s",
    ),
    "serve": _entry(
        "serving",
        "Speed, accelerators and price of serving a model; break-even with training.",
        "serve --arch llama-3-8b --gpu h100-sxm --prompt 1000 --answer 300 --demand 1B",
        "basis tokens_per_second accelerators usd_per_million_low usd_per_million_high",
    ),
    "plan": _entry(
        "plans",
        "Size, tokens, shape, batch and layout for a machine, with intervals.",
        "plan --cluster loft --deadline '30 days' --unique 100B",
        "N D epochs loss_nats layout days usd_low usd_high",
    ),
    "compare": _entry(
        "plans",
        "Sizes and tokens side by side: compute, loss, and the optimum of each budget.",
        "compare --plan 175B:300B --plan 70B:1.4T",
        "N D C_flop loss_nats optimal_N",
    ),
    "check": _entry(
        "plans",
        "Whether figures of a plan belong to one run; refuses them if they do not.",
        "check -N 70B -D 1.4T -C 5.88e23 --ratio 20",
    ),
    "validate": _entry(
        "plans",
        "Compare published runs with what the step model says of them.",
        "validate",
        "table stack n MAPE_percent",
    ),
}
"""Commands by name, in the order in which the program lists them."""
