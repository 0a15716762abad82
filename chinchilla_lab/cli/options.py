"""Options that several commands share, and how what is typed becomes a number."""

import re
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import typer

from chinchilla_lab.units import UnitError, parse

__all__: list[str] = []

METAVAR = {
    "FLOP": "FLOP", "FLOP/s": "RATE", "byte": "BYTES", "byte/s": "RATE", "s": "TIME",
    "USD": "USD", "token": "TOKENS", "parameter": "N", "count": "NUMBER",
    "whole": "COUNT", "share": "SHARE",
}  # fmt: skip


class Numbers(tuple[float, ...]):
    """Numbers that were typed with commas between them."""


class Range(NamedTuple):
    """A price, or the ends of a range of prices."""

    low: float
    high: float


def number(written: Any, unit: str) -> float:
    """Read a quantity; ``share`` is 0.4 or 40%, ``whole`` a count without a rest.

    A time needs its unit: who types a bare 45 means days as often as seconds.
    """
    try:
        if unit == "share":
            return _share(written)
        value = parse(written, "count" if unit == "whole" else unit)
        if unit == "s" and value != 0.0 and not re.search(r"[a-zµ]\s*$", str(written)):
            raise UnitError(
                f"{str(written)!r} has no unit of time; write '{written} days', "
                f"'{written} h', '{written} min' or '{written} s'"
            )
    except UnitError as fault:
        raise typer.BadParameter(str(fault)) from None
    if unit == "whole" and value != int(value):
        raise typer.BadParameter(f"{written!r} is no whole number")
    return int(value) if unit == "whole" else value


def _share(written: Any) -> float:
    word = str(written).strip()
    percent = word.endswith("%")
    value = parse(word.removesuffix("%").strip() if percent else word, "count")
    value = value / 100.0 if percent else value
    if not 0.0 < value <= 1.0:
        raise typer.BadParameter(
            f"{written!r} is no share; write 0.4 or 40%, above 0 and at most 1"
        )
    return value


def reader(unit: str, least: float | None = None, several: bool = False) -> Any:
    """Return what turns the words of an option into numbers of a unit.

    Without ``least`` a number must be above 0.
    """

    def one(written: Any) -> float:
        value = number(written, unit)
        if least is None and not value > 0:
            raise typer.BadParameter(f"{written!r} must be above 0")
        if least is not None and value < least:
            raise typer.BadParameter(f"{written!r} must be at least {least:g}")
        return value

    def many(written: Any) -> Numbers:
        parts = [word.strip() for word in str(written).split(",")]
        if not all(parts):
            raise typer.BadParameter(
                f"{written!r} has an empty place; write numbers parted by commas, 1,2"
            )
        return Numbers(one(word) for word in parts)

    return many if several else one


def option(
    *names: str,
    help: str,
    metavar: str | None = None,
    unit: str | None = None,
    least: float | None = None,
    several: bool = False,
    parser: Callable[[str], Any] | None = None,
) -> Any:
    """Describe an option; with a unit, its words are read as a quantity."""
    if unit is not None:
        parser = reader(unit, least, several)
        metavar = metavar or METAVAR[unit] + (",..." if several else "")
    return typer.Option(
        *names, help=help, metavar=metavar or ("TEXT" if parser is None else None),
        show_default=True, parser=parser,
    )  # fmt: skip


def _price(written: Any) -> Any:
    from chinchilla_lab.cluster.cost import as_price

    # $2.20/h, USD 2 per hour and 2-3 are how offers write it
    amount, _, date = str(written).partition("@")
    plain = re.sub(
        r"\s*(?:/|per\s+)\s*(?:(?:gpu|accelerator)[-\s]?)?h(?:r|our)?s?\b", "", amount
    )
    ends = [end.strip() for end in re.split(r"\s*(?:-|–|:|\bto\b)\s*", plain.strip())]
    written_so = f"{':'.join(ends)}@{date.strip() or '2026-11'}"
    if len(ends) > 2 or not all(ends):
        raise typer.BadParameter(
            f"{written!r} is no price; write 2.5@2026-11 or 2:3@2026-11"
        )
    if not date.strip():
        raise typer.BadParameter(
            f"{written!r} has no date, and prices halve within a year; write it with "
            f"the day, month or year of the offer, {written_so}"
        )
    try:
        return as_price(written_so)
    except ValueError as fault:
        raise typer.BadParameter(str(fault)) from None


AsJson = Annotated[bool, typer.Option("--json", help="all digits, as JSON")]
AsCsv = Annotated[bool, typer.Option("--csv", help="all digits, as CSV")]
LAW = "name, alias, name:alpha=0.35, ratio:15, or the file of a fit"
LawName = Annotated[str, option("--law", help=LAW, metavar="LAW")]
LawNames = Annotated[
    str, option("--law", help=f"parted by commas; each a {LAW}", metavar="LAW,...")
]
Gpu = Annotated[
    str | None,
    option("--gpu", help="chip, or custom:35.6e12 for a peak", metavar="CHIP"),
]
Gpus = Annotated[int | None, option("--gpus", help="how many", unit="whole")]
ClusterName = Annotated[
    str | None,
    option(
        "--cluster",
        metavar="NAME",
        help="loft, floor, hall, 64xh100-sxm, or file.toml (hardware --example)",
    ),
]
Dtype = Annotated[str, option("--dtype", help="bf16, fp8 or tf32", metavar="FORMAT")]
Params = Annotated[float, option("--params", "-N", help="parameters", unit="parameter")]
SomeParams = Annotated[
    float | None, option("--params", "-N", help="parameters", unit="parameter")
]
Active = Annotated[
    float | None,
    option("--active-params", help="parameters that a token uses", unit="parameter"),
]
Tokens = Annotated[float, option("--tokens", "-D", help="tokens", unit="token")]
SomeTokens = Annotated[
    float | None, option("--tokens", "-D", help="tokens", unit="token")
]
Unique = Annotated[float | None, option("--unique", help="unique tokens", unit="token")]
SomeLoss = Annotated[
    float | None, option("--loss", help="target [nats/token]", unit="count")
]
Budgets = Annotated[
    Numbers | None,
    option("--compute", "-C", help="budgets", unit="FLOP", several=True),
]
Arch = Annotated[
    str | None,
    option("--arch", help="published shape, such as llama-3-8b", metavar="SHAPE"),
]
Layers = Annotated[int | None, option("--layers", help="layers", unit="whole")]
Width = Annotated[int | None, option("--d-model", help="width", unit="whole")]
Mlp = Annotated[
    int | None,
    option("--d-ff", help="width of the MLP, or of one expert", unit="whole"),
]
Heads = Annotated[int | None, option("--heads", help="query heads", unit="whole")]
KvHeads = Annotated[
    int | None, option("--kv-heads", help="key-value heads", unit="whole")
]
HeadDim = Annotated[
    int | None, option("--head-dim", help="size of a head", unit="whole")
]
Vocab = Annotated[
    int | None, option("--vocab", help="rows of the vocabulary", unit="whole")
]
MlpKind = Annotated[
    str, option("--mlp", help="gated (three matrices) or plain (two)", metavar="KIND")
]
Tied = Annotated[
    str | None,
    option(
        "--tied",
        metavar="BOOL",
        help="true if the head is the input table; by default as published, or false",
    ),
]
Experts = Annotated[
    int | None, option("--experts", help="experts of a layer", unit="whole")
]
TopK = Annotated[
    int | None, option("--top-k", help="experts that a token passes", unit="whole")
]
Seq = Annotated[int, option("--seq", help="tokens of a sequence", unit="whole")]
Recompute = Annotated[
    str, option("--recompute", help="none, selective or full", metavar="KIND")
]
StackName = Annotated[
    str | None,
    option(
        "--stack",
        metavar="STACK",
        help="software constants: megatron-bridge, or the file of calibrate --save",
    ),
]
MemoryLimit = Annotated[
    float | None,
    option(
        "--memory-limit", unit="byte",
        help="bytes that a job may fill; by default what the driver reports",
    ),
]  # fmt: skip
PriceRange = Annotated[
    Any,
    option(
        "--price",
        help="USD per accelerator-hour and its date, 2:3@2026-11",
        metavar="LOW[:HIGH]@DATE",
        parser=_price,
    ),
]
RecipeName = Annotated[
    str,
    option(
        "--recipe", metavar="RECIPE",
        help="a name, or bytes of weights, gradients, master, moments: 2:2:4:8",
    ),
]  # fmt: skip


def sizes(
    layers: int | None,
    d_model: int | None,
    d_ff: int | None,
    heads: int | None,
    kv_heads: int | None,
    head_dim: int | None,
    vocab: int | None,
    mlp: str,
    tied: str | None,
    experts: int | None = None,
    top_k: int | None = None,
) -> dict[str, Any]:
    """Collect the numbers of a shape."""
    if mlp not in ("gated", "plain"):
        raise ValueError(f"--mlp {mlp!r}: choose gated or plain")
    if tied is not None and tied.lower() not in ("true", "false"):
        raise ValueError(f"--tied {tied!r}: choose true or false")
    return {
        "n_layers": layers, "d_model": d_model, "d_ff": d_ff, "n_heads": heads,
        "n_kv_heads": kv_heads, "head_dim": head_dim, "vocab_size": vocab,
        "gated": mlp == "gated",
        "tied": None if tied is None else tied.lower() == "true",
        "n_experts": experts, "n_active_experts": top_k,
    }  # fmt: skip
