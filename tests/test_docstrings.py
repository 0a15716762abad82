"""Public functions say their units, and every citation has its entry."""

import dataclasses
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest
from numpydoc.docscrape import FunctionDoc

import chinchilla_lab

ROOT = Path(__file__).parent.parent
# plumbing of figures and pages: no quantities of their own
EXEMPT = ("explorers", "figures", "page")
# helpers inside a package that no page shows: one line is enough
HELPERS = ("chinchilla_lab.allocation.solving",)
UNIT = re.compile(r"\[[^\]]+\]")
CITE = re.compile(r":cite(?::[tp])?:`([^`]+)`|\{cite(?::\w+)?\}`([^`]+)`")


def modules():
    for found in pkgutil.walk_packages(chinchilla_lab.__path__, "chinchilla_lab."):
        if found.name.split(".")[1] not in EXEMPT:
            yield importlib.import_module(found.name)


def callables():
    for module in modules():
        for name, thing in vars(module).items():
            if (
                name.startswith("_")
                or getattr(thing, "__module__", "") != module.__name__
            ):
                continue
            if inspect.isfunction(thing):
                yield pytest.param(thing, id=f"{module.__name__}.{name}")
            elif inspect.isclass(thing):
                for member, method in vars(thing).items():
                    if inspect.isfunction(method) and not member.startswith("_"):
                        label = f"{module.__name__}.{name}.{member}"
                        yield pytest.param(method, id=label)


def classes():
    for module in modules():
        for name, thing in vars(module).items():
            public = inspect.isclass(thing) and not name.startswith("_")
            own = public and thing.__module__ == module.__name__
            if own and not issubclass(thing, Exception):
                yield pytest.param(thing, id=f"{module.__name__}.{name}")


def internal(function):
    if function.__module__ in HELPERS:
        return True
    module = importlib.import_module(function.__module__)
    assert hasattr(module, "__all__"), f"{module.__name__} names its public parts"
    return function.__qualname__.split(".")[0] not in module.__all__


@pytest.mark.parametrize("function", list(callables()))
def test_parameters_and_returns_have_units(function):
    doc = FunctionDoc(function)
    assert len("".join(doc["Summary"]).strip()) > 0, "one line that says what it does"
    if internal(function) or not [
        name for name in inspect.signature(function).parameters if name != "self"
    ]:
        return
    described = {name.strip(): text for name, _, text in _flat(doc["Parameters"])}
    for name in inspect.signature(function).parameters:
        if name == "self":
            continue
        text = described.get(
            name, described.get(f"**{name}", described.get(f"*{name}", ""))
        )
        assert UNIT.search(text), f"parameter {name} needs a unit in brackets"
    if inspect.signature(function).return_annotation not in (None, "None"):
        returned = " ".join(" ".join(part[2]) for part in doc["Returns"])
        assert UNIT.search(returned), "what is returned needs a unit in brackets"


@pytest.mark.parametrize("kind", list(classes()))
def test_fields_of_classes_have_units(kind):
    is_data = dataclasses.is_dataclass(kind)
    fields = {f.name for f in dataclasses.fields(kind)} if is_data else set()
    own = [name for name in inspect.get_annotations(kind) if name in fields]
    described = {
        name.strip(): text for name, _, text in _flat(FunctionDoc(kind)["Parameters"])
    }
    for name in own:
        if name in ("N_counts",) and name not in described:
            continue  # described by the base class
        assert UNIT.search(described.get(name, "")), f"field {name} needs a unit"


def _flat(parameters):
    for names, kind, lines in parameters:
        for name in names.split(","):
            yield name, kind, " ".join(lines)


def entries():
    text = (ROOT / "book" / "references.bib").read_text(encoding="utf-8")
    return set(re.findall(r"@\w+\{([^,]+),", text))


SOURCES = [*(ROOT / "chinchilla_lab").rglob("*.py"), *(ROOT / "book").rglob("*.md")]


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_citations_have_entries(path):
    known = entries()
    for match in CITE.finditer(path.read_text(encoding="utf-8")):
        for key in (match.group(1) or match.group(2)).split(","):
            assert key.strip() in known, f"{key} is not in book/references.bib"


def test_sources_of_constants_have_entries():
    from chinchilla_lab.laws import PUBLISHED, variants
    from chinchilla_lab.shape import CONVENTIONS
    from chinchilla_lab.shape.known import shape_rows
    from chinchilla_lab.sources import Source

    cited = [law.source.cite for law in PUBLISHED.values()]
    cited += [c.source.cite for c in CONVENTIONS.values()]
    cited += [
        value.source.cite
        for value in vars(variants).values()
        if not isinstance(value, type)
        and isinstance(getattr(value, "source", None), Source)
    ]
    cited += [r["source"] for r in shape_rows().values() if r["id"] != "pilot"]
    assert set(cited) <= entries()
