"""Live figures: one definition, two faces.

An explorer is a frozen :class:`~chinchilla_lab.explorers.core.Explorer`. In a notebook
with a kernel it shows ipywidgets; in the built page it is an SVG with native controls
that asks the same Python, run by Pyodide in the reader's browser.
"""

from importlib import import_module

from chinchilla_lab.explorers.core import Explorer

__all__ = ["NAMES", "get"]

NAMES = (
    "one_budget",
    "four_n",
    "accounting",
    "flop_to_days",
    "isoflop",
    "allocation",
    "tradeoff",
    "design",
    "dropped",
    "upload",
    "lifetime",
    "small",
    "serving",
    "decode",
    "epoch_value",
    "data_frontier",
    "three_choices",
    "crossing",
    "metric",
    "price_of_a_point",
    "roofline",
    "memory_stack",
    "collective_cost",
    "pipeline_schedule",
    "step_breakdown",
    "layout_search",
    "calibrate",
    "batch_limit",
    "goodput",
    "cluster_optimal",
    "one_plan",
    "levers",
    "ladder",
    "replicate",
)
"""Every explorer of the book, in the order of its pages."""


def get(name: str) -> Explorer:
    """Return an explorer by name; only its own module is imported.

    Parameters
    ----------
    name : str
        One of :data:`NAMES`, [-]

    Returns
    -------
    Explorer
        The definition, which a notebook shows by itself, [-]

    Raises
    ------
    KeyError
        If there is no such explorer; the message lists what there is.
    """
    if name not in NAMES:
        raise KeyError(f"no explorer {name!r}; known: {', '.join(NAMES)}")
    explorer = import_module(f"{__name__}.{name}").EXPLORER
    assert isinstance(explorer, Explorer)
    return explorer
