"""From what people type to what the library takes: laws, chips, clusters, shapes."""

import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from chinchilla_lab.cluster.accelerators import ACCELERATORS, Accelerator
from chinchilla_lab.cluster.examples import EXAMPLE_CLUSTERS, example_cluster
from chinchilla_lab.cluster.hardware import Cluster
from chinchilla_lab.cluster.stacks import STACKS, Stack
from chinchilla_lab.fitting.fitted import load_law
from chinchilla_lab.laws.families import Law, LossLaw, RatioLaw
from chinchilla_lab.laws.published import PUBLISHED
from chinchilla_lab.shape.known import SHAPES
from chinchilla_lab.shape.transformer import TransformerShape
from chinchilla_lab.units import UnitError, parse

__all__: list[str] = []

ALIASES = {
    "rule20": "ratio-20",
    "chinchilla": "ratio-20",
    "epoch": "besiroglu-2024",
    "besiroglu": "besiroglu-2024",
    "hoffmann": "hoffmann-2022",
    "hoffmann-tex": "hoffmann-2022",
    "hoffmann-rounded": "hoffmann-2022-printed",
    "kaplan": "kaplan-2020-cmin",
    "kaplan-joint": "kaplan-2020-joint",
    "repeated": "muennighoff-2023-repeated",
}


def meant(name: str, known: Iterable[str]) -> str:
    """Return the question whether the nearest known name was meant, if one is near."""
    near = get_close_matches(name.lower(), list(known), n=1, cutoff=0.6)
    return f" (did you mean {near[0]}?)" if near else ""


def pair(written: str, option: str) -> tuple[float, float]:
    """Read N:D."""
    words = written.split(":")
    if len(words) != 2:
        raise ValueError(f"{option} {written!r}: write N:D, for example 70B:1.4T")
    try:
        return parse(words[0], "parameter"), parse(words[1], "token")
    except UnitError as fault:
        raise ValueError(f"{option} {written!r}: {fault}") from None


def law(name: str) -> Law:
    """Return a law by name, alias, ratio or file, perhaps with constants of one's own.

    ``kaplan-joint:alpha_D=0.095`` is the published law with one constant changed.
    """
    word = name.strip()
    key = ALIASES.get(word, word)
    if key in PUBLISHED:
        return PUBLISHED[key]
    if word.endswith(".json") or Path(word).is_file():
        if not Path(word).is_file():
            raise ValueError(f"--law {word}: no such file; fit --save writes one")
        return load_law(word)
    if word.startswith("ratio:"):
        written = word.removeprefix("ratio:")
        try:
            ratio = parse(written, "count")
        except UnitError as fault:
            raise ValueError(f"--law {word!r}: {fault}") from None
        return RatioLaw(
            name=word, label=f"{ratio:g} tokens per parameter", tokens_per_param=ratio
        )
    base, colon, changes = word.partition(":")
    if colon and ALIASES.get(base, base) in PUBLISHED:
        return _changed(PUBLISHED[ALIASES.get(base, base)], changes, word)
    raise ValueError(
        f"--law: no law {word!r}{meant(word, (*PUBLISHED, *ALIASES))}; known: "
        f"{', '.join(PUBLISHED)}; short: "
        f"{', '.join(ALIASES)}; or ratio:15, or the file of a fit"
    )


def _changed(published: Law, changes: str, written: str) -> Law:
    """Return a published law with constants that the user states."""
    known = [
        f.name
        for f in fields(published)
        if isinstance(getattr(published, f.name), float)
    ]
    given: dict[str, Any] = {}
    for one in changes.split(":"):
        constant, sign, value = one.partition("=")
        if not sign or constant not in known:
            raise ValueError(
                f"--law {written!r}: {one!r} sets no constant of {published.name}; "
                f"write {known[0]}=0.35, or another of {', '.join(known)}"
                if known
                else f"--law {written!r}: {published.name} has no constant to set"
            )
        try:
            given[constant] = parse(value, "count")
        except UnitError as fault:
            raise ValueError(f"--law {written!r}: {fault}") from None
    return published.with_(**given, name=written)


def laws(names: str) -> list[Law]:
    """Return laws parted by commas."""
    parts = [name.strip() for name in names.split(",")]
    if not all(parts):
        raise ValueError(
            f"--law {names!r} has an empty place; write laws parted by commas, for "
            "example rule20,epoch"
        )
    return [law(name) for name in parts]


def with_loss(found: Law) -> LossLaw:
    """Return the law itself if it has a loss."""
    if not isinstance(found, LossLaw):
        raise ValueError(
            f"--law {found.name!r} knows no loss; use one that does, such as "
            "besiroglu-2024"
        )
    return found


def loss_law(name: str) -> LossLaw:
    """Return a law with a loss."""
    return with_loss(law(name))


def chip(name: str) -> Accelerator:
    """Return a chip by its id or the start of its parts, or one of a typed peak."""
    word = name.strip().lower()
    if word.startswith("custom:"):
        try:
            peak = parse(word.removeprefix("custom:"), "FLOP/s")
        except UnitError as fault:
            raise ValueError(f"--gpu {name!r}: {fault}") from None
        return Accelerator(
            id=word, name=f"chip of {peak:.4g} FLOP/s", peaks={"bf16": peak},
            source="typed", where="command line", accessed="now", evidence="estimate",
        )  # fmt: skip
    if word in ACCELERATORS:
        return ACCELERATORS[word]
    wanted = word.replace("_", "-").split("-")
    found = [
        key
        for key in ACCELERATORS
        if all(any(p.startswith(w) for p in key.split("-")) for w in wanted)
    ]
    if len(found) == 1:
        return ACCELERATORS[found[0]]
    if found:
        raise ValueError(
            f"--gpu {name!r} could be any of: {', '.join(found)}; say which"
        )
    raise ValueError(
        f"--gpu: no accelerator {name!r}{meant(word, ACCELERATORS)}; known: "
        f"{', '.join(ACCELERATORS)}; or "
        "custom:35.6e12 for a peak of your own"
    )


def cluster(
    name: str | None, gpu: str | None = None, gpus: int | None = None
) -> Cluster:
    """Return a cluster: an example, a file, 64xh100-sxm, or chip and number."""
    if name is not None and (gpu is not None or gpus is not None):
        raise ValueError("give --cluster or --gpu and --gpus, not both")
    if name is None:
        if gpu is None or gpus is None:
            raise ValueError(
                "no machine: give --cluster loft, --cluster machine.toml, "
                "--cluster 64xh100-sxm, or --gpu and --gpus"
            )
        return Cluster(accelerator=chip(gpu), n_accelerators=gpus)
    if name in EXAMPLE_CLUSTERS:
        return example_cluster(name)
    if Path(name).suffix in (".toml", ".json"):
        if not Path(name).is_file():
            raise ValueError(f"--cluster {name}: no such file")
        return _cluster_file(Path(name))
    number, x, kind = name.partition("x")
    if x and number[:1].isdigit():
        try:
            many = int(parse(number, "count"))
        except UnitError as fault:
            raise ValueError(f"--cluster {name!r}: {fault}") from None
        return Cluster(accelerator=chip(kind), n_accelerators=many)
    raise ValueError(
        f"--cluster: no cluster {name!r}{meant(name, EXAMPLE_CLUSTERS)}; known: "
        f"{', '.join(EXAMPLE_CLUSTERS)}; or a "
        "TOML or JSON file (chinchilla-lab hardware --example prints one), or "
        "64xh100-sxm"
    )


def _cluster_file(place: Path) -> Cluster:
    """Read a cluster whose chip may go by the short id that ``--gpu`` takes."""
    try:
        written = place.read_text(encoding="utf-8-sig")
        as_json = place.suffix.lower() == ".json"
        given = json.loads(written) if as_json else tomllib.loads(written)
        kind = given["accelerator"]
        inner = isinstance(kind, dict)
        short = kind["like"] if inner else kind
    except (ValueError, KeyError, TypeError, RecursionError):
        return Cluster.from_file(place)  # which says what is wrong
    if not isinstance(short, str) or short in ACCELERATORS:
        return Cluster.from_file(place)
    field = "accelerator.like" if inner else "accelerator"
    try:
        key = chip(short).id
    except ValueError as fault:
        said = str(fault).removeprefix("--gpu: ").removeprefix("--gpu ")
        raise ValueError(f"{place.name}: {field} = {short!r}: {said}") from None
    if key not in ACCELERATORS:
        raise ValueError(
            f"{place.name}: {field} = {short!r} is a peak of your own and no chip; "
            "write a table [accelerator] with bf16_tflops"
        )
    given["accelerator"] = {**kind, "like": key} if inner else key
    try:
        return Cluster.from_text(json.dumps(given, default=str), json_format=True)
    except ValueError as fault:
        raise ValueError(f"{place.name}: {fault}") from None


def stack(name: str | Stack) -> Stack:
    """Return the constants of software by name, or from the file of a calibration."""
    if isinstance(name, Stack):
        return name
    if name in STACKS:
        return STACKS[name]
    if Path(name).suffix in (".json", ".toml") or Path(name).is_file():
        if not Path(name).is_file():
            raise ValueError(
                f"--stack {name}: no such file; calibrate --save writes one"
            )
        return Stack.from_file(name)
    raise ValueError(
        f"--stack: no stack {name!r}{meant(name, STACKS)}; known: {', '.join(STACKS)}; "
        "or the file that chinchilla-lab calibrate --save wrote"
    )


def to_be_written(path: str | None, option: str, endings: tuple[str, ...]) -> None:
    """Refuse a file that could not be written, before anything is computed."""
    if path is None:
        return
    place = Path(path)
    if place.suffix.lower().removeprefix(".") not in endings:
        listed = ", ".join(f".{one}" for one in endings)
        raise ValueError(
            f"{option} {path}: the ending {place.suffix or 'is missing and'} says no "
            f"known format; end it in one of: {listed}"
        )
    if not place.parent.is_dir():
        raise ValueError(
            f"{option} {path}: there is no folder {place.parent}; check the path, or "
            "make the folder first"
        )
    if place.is_dir():
        raise ValueError(f"{option} {path} is a folder; name a file in it")


def shape(arch: str | None, given: Mapping[str, Any]) -> TransformerShape:
    """Return a published shape, or one from its numbers."""
    typed = {k: v for k, v in given.items() if v is not None}
    if arch is not None:
        sizes = {k: v for k, v in typed.items() if k not in ("gated", "tied")}
        if sizes:
            raise ValueError(
                f"give --arch or the sizes of a shape ({', '.join(sizes)}), not both"
            )
        if arch not in SHAPES:
            known = ", ".join(SHAPES)
            raise ValueError(
                f"--arch: no shape {arch!r}{meant(arch, SHAPES)}; known: {known}"
            )
        found = SHAPES[arch]
        return replace(found, tied=typed["tied"]) if "tied" in typed else found
    needed = ("n_layers", "d_model", "d_ff", "vocab_size")
    missing = [k for k in needed if k not in typed]
    if missing:
        raise ValueError(
            f"no model: give --arch llama-3-8b or all of --layers, --d-model, --d-ff "
            f"and --vocab ({', '.join(missing)} missing)"
        )
    if ("n_experts" in typed) != ("n_active_experts" in typed):
        raise ValueError(
            "--experts and --top-k belong together: give how many experts a layer has "
            "and how many a token passes, for example --experts 8 --top-k 2"
        )
    # without a word on heads take the usual 128 values each
    if "n_heads" not in typed:
        width = int(typed["d_model"])
        typed["n_heads"] = width // 128 if width % 128 == 0 else 1
    return TransformerShape(**typed)
