"""The map of the library: who may import whom, and what an import may cost."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "chinchilla_lab"

# each layer may import itself and what stands before it; equals do not meet
LAYERS = [
    {"units"},
    {"checks"},
    {"sources"},
    {"tables"},
    {"shape"},
    {"laws", "cluster"},
    {"allocation"},
    {"fitting", "inference", "repetition", "thresholds"},
    {"datasets"},
    {"planning"},
    {"validation", "replications", "reports", "figures"},
    {"explorers"},
    {"page", "cli"},
]
# shapes know nothing of laws and laws nothing of shapes; a plan joins them with clusters
FORBIDDEN = {("laws", "shape"), ("laws", "cluster"), ("cluster", "laws"),
             ("cluster", "allocation"), ("allocation", "shape")}  # fmt: skip
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}


def part_of(path):
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            # from . and from .. count from the package that holds the module
            here = ("chinchilla_lab", *path.relative_to(PACKAGE).parts)
            above = here[: len(here) - node.level] if node.level else ()
            start = ".".join([*above, *filter(None, [node.module])])
            names = [f"{start}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] == "chinchilla_lab":
                yield parts[1] if len(parts) > 1 else "the whole library"


MODULES = [p for p in sorted(PACKAGE.rglob("*.py")) if part_of(p) != "__init__"]


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_follow_the_map(path):
    here = part_of(path)
    assert here in RANK, f"{here} has no layer: add it to the map in {__file__}"
    for other in imported(path):
        if other == here or other == "__version__":
            continue
        # names that the library lends at its top would hide where they come from
        assert other in RANK, f"{here} must import {other} from its own module"
        assert RANK[other] < RANK[here], f"{here} must not import {other}"
        assert (here, other) not in FORBIDDEN, f"{here} must not import {other}"


def test_core_loads_numpy_alone():
    code = (
        "import sys, chinchilla_lab as lab\n"
        "lab.compute_optimal(lab.DEFAULT, 1e22)\n"
        "lab.explorers.get('isoflop')\n"
        "heavy = {'matplotlib', 'scipy', 'pandas', 'ipywidgets', 'pytest', 'tqdm',"
        " 'pooch'}\n"
        "sys.exit(', '.join(heavy & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
