"""Scaling laws, cost models and plans for training runs, each number with a source.

The names below load on first use, so importing the package costs what numpy costs.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_MODULES = (
    "allocation",
    "checks",
    "cli",
    "cluster",
    "datasets",
    "explorers",
    "figures",
    "fitting",
    "inference",
    "laws",
    "page",
    "planning",
    "repetition",
    "replications",
    "reports",
    "shape",
    "sources",
    "tables",
    "thresholds",
    "units",
    "validation",
)
_NAMES = {
    "BESIROGLU_2024": "laws",
    "DEFAULT": "laws",
    "PUBLISHED": "laws",
    "ExtrapolationWarning": "checks",
    "InfeasibleError": "checks",
    "TransformerShape": "shape",
    "compute_optimal": "allocation",
}

__all__ = [*_MODULES, *_NAMES]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    if name in _NAMES:
        return getattr(import_module(f"{__name__}.{_NAMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
