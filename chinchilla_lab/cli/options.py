"""Options that several commands share."""

from typing import Annotated, Any

import typer

__all__: list[str] = []


def option(*names: str, help: str, metavar: str | None = None) -> Any:
    """Describe an option."""
    return typer.Option(*names, help=help, metavar=metavar, show_default=True)


AsJson = Annotated[bool, option("--json", help="all digits, as JSON")]
AsCsv = Annotated[bool, option("--csv", help="all digits, as CSV")]
LawName = Annotated[
    str,
    option("--law", help="name, alias, ratio:15, or the file of a fit", metavar="LAW"),
]
LawNames = Annotated[
    str, option("--law", help="one or several, parted by commas", metavar="LAW,...")
]
Gpu = Annotated[
    str | None,
    option("--gpu", help="chip, or custom:35.6e12 for a peak", metavar="CHIP"),
]
Gpus = Annotated[str | None, option("--gpus", help="how many", metavar="COUNT")]
ClusterName = Annotated[
    str | None,
    option(
        "--cluster", help="loft, floor, hall, file.toml or 64xh100-sxm", metavar="NAME"
    ),
]
Dtype = Annotated[str, option("--dtype", help="bf16, fp8 or tf32")]
Params = Annotated[str | None, option("--params", "-N", help="parameters", metavar="N")]
Tokens = Annotated[
    str | None, option("--tokens", "-D", help="training tokens", metavar="D")
]
Arch = Annotated[
    str | None, option("--arch", help="published shape, such as llama-3-8b")
]
Layers = Annotated[int | None, option("--layers", help="layers")]
Width = Annotated[int | None, option("--d-model", help="width")]
Mlp = Annotated[int | None, option("--d-ff", help="width of the MLP")]
Heads = Annotated[int | None, option("--heads", help="query heads")]
KvHeads = Annotated[int | None, option("--kv-heads", help="key-value heads")]
HeadDim = Annotated[int | None, option("--head-dim", help="size of a head")]
Vocab = Annotated[int | None, option("--vocab", help="rows of the vocabulary")]
MlpKind = Annotated[str, option("--mlp", help="gated (three matrices) or plain (two)")]
Tied = Annotated[str, option("--tied", help="true if the head is the input table")]
Seq = Annotated[int, option("--seq", help="tokens of a sequence")]
StackName = Annotated[
    str | None, option("--stack", help="software constants, such as megatron-bridge")
]
PriceRange = Annotated[
    str | None,
    option(
        "--price",
        help="USD per accelerator-hour and its date, 2:3@2026-11",
        metavar="LOW[:HIGH]@DATE",
    ),
]


def sizes(
    layers: int | None,
    d_model: int | None,
    d_ff: int | None,
    heads: int | None,
    kv_heads: int | None,
    head_dim: int | None,
    vocab: int | None,
    mlp: str,
    tied: str,
) -> dict[str, Any]:
    """Collect the numbers of a shape."""
    if mlp not in ("gated", "plain"):
        raise ValueError(f"--mlp {mlp!r}: choose gated or plain")
    if tied.lower() not in ("true", "false"):
        raise ValueError(f"--tied {tied!r}: choose true or false")
    return {
        "n_layers": layers, "d_model": d_model, "d_ff": d_ff, "n_heads": heads,
        "n_kv_heads": kv_heads, "head_dim": head_dim, "vocab_size": vocab,
        "gated": mlp == "gated", "tied": tied.lower() == "true",
    }  # fmt: skip


def price_of(written: str | None) -> Any:
    """Read a dated price or a range of one."""
    if written is None:
        return None
    from chinchilla_lab.cluster.cost import as_price

    return as_price(written)


SomeParams = Annotated[
    str | None, option("--params", "-N", help="parameters", metavar="N")
]
Active = Annotated[
    str | None, option("--active-params", help="parameters that a token uses")
]
SomeTokens = Annotated[str | None, option("--tokens", "-D", help="tokens", metavar="D")]
RecipeName = Annotated[
    str, option("--recipe", help="bytes of a parameter: a name, or 2:2:12")
]
