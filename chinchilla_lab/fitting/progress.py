"""A progress bar where tqdm is installed, silence where it is not."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

__all__ = ["progress_bar"]

T = TypeVar("T")


def progress_bar(
    items: Iterable[T], total: int, label: str, show: bool = True
) -> Iterator[T]:
    """Pass items on and show how far they are.

    Parameters
    ----------
    items : iterable
        What is being worked through, [-]
    total : int
        How many there are, [-]
    label : str
        What they are, [-]
    show : bool, optional
        Whether to show a bar, [-]

    Returns
    -------
    iterator
        The items, [-]
    """
    if show:
        try:
            # the bar of a notebook in a notebook, of a terminal in a terminal
            from tqdm.auto import tqdm
        except ImportError:
            pass
        else:
            yield from tqdm(items, total=total, desc=label, leave=False)
            return
    yield from items
