"""Tables on the screen: no number is ever cut, whatever the width of the terminal."""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

__all__: list[str] = []

FEW = 4  # records that stand side by side where a table is too wide for the screen
LONG = 24  # a longer word, such as an address, may be folded
ROOM = 16  # width that a column of words is given if it can use it
BORDER = 3  # columns of a terminal between two cells


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column of a table, already written out.

    Parameters
    ----------
    head : str
        Its name with the unit, [-]
    cells : list of str
        Its cells, [-]
    words : bool
        Whether it holds words, which stand to the left, [-]
    free : list of bool
        For each cell, whether it may be broken between words, [-]
    """

    head: str
    cells: list[str]
    words: bool
    free: list[bool]

    @property
    def least(self) -> int:
        """Width without which a number or a word would be cut, or words crowded."""
        crowded = self.words and all(self.free)
        return max(
            _longest_word(self.head),
            min(max(map(len, self.cells)), ROOM) if crowded else 0,
            *(
                min(_longest_word(c), LONG) if free else len(c)
                for c, free in zip(self.cells, self.free, strict=True)
            ),
        )

    @property
    def prose(self) -> int:
        """Width at which no words in its cells are broken."""
        cells = zip(self.cells, self.free, strict=True)
        return max((len(c) for c, free in cells if free), default=0)

    @property
    def most(self) -> int:
        """Width at which nothing is broken."""
        return max(len(self.head), *map(len, self.cells))


def _longest_word(words: str) -> int:
    return max(map(len, words.split()), default=0)


def transposed(columns: Sequence[Column]) -> list[Column]:
    """Return one row for each quantity and one column for each record."""
    several = len(columns[0].cells) > 1
    rest = columns[1:] if several else columns
    names = [c.head for c in rest]
    head = Column(
        head="quantity", cells=names, words=True, free=[True] * len(names)
    )  # fmt: skip
    return [
        head,
        *(
            Column(
                head=columns[0].cells[i] if several else "value",
                cells=[c.cells[i] for c in rest],
                words=not several,
                free=[c.free[i] for c in rest],
            )
            for i in range(len(columns[0].cells))
        ),
    ]


def groups(columns: Sequence[Column], width: int) -> list[list[Column]]:
    """Part columns among tables that fit the screen; each begins with the first."""
    first, *rest = columns
    made: list[list[Column]] = [[first]]
    for column in rest:
        if len(made[-1]) > 1 and _need([*made[-1], column], "least") > width:
            made.append([first])
        made[-1].append(column)
    return made


def _need(columns: Sequence[Column], which: str) -> int:
    return 1 + sum(BORDER + int(getattr(c, which)) for c in columns)


def widths(columns: Sequence[Column], width: int) -> list[int]:
    """Share a screen among columns: needs first, then words, then heads."""
    made = [c.least for c in columns]
    for wish in ("prose", "most"):
        wants = [
            max(int(getattr(c, wish)) - w, 0)
            for c, w in zip(columns, made, strict=True)
        ]
        left = max(width - 1 - sum(BORDER + w for w in made), 0)
        share = min(1.0, left / sum(wants)) if any(wants) else 0.0
        made = [w + int(share * want) for w, want in zip(made, wants, strict=True)]
    return made


def draw(columns: Sequence[Column], title: str, tall: bool) -> None:
    """Draw a table; in a pipe as wide as it needs to be, without colours."""
    from rich.console import Console

    on_screen = sys.stdout.isatty()
    plain_text = not on_screen or bool(os.environ.get("NO_COLOR"))
    looks: dict[str, Any] = {
        "file": sys.stdout,
        "force_terminal": False if plain_text else None,
        "color_system": None if plain_text else "auto",
    }
    if not columns:
        return
    width = Console(**looks).width if on_screen else sys.maxsize
    if tall or (
        _need(columns, "most") > width and len(columns[0].cells) <= FEW
    ):  # fmt: skip
        columns = transposed(columns)
    for i, part in enumerate(groups(columns, width)):
        made = widths(part, width)
        need = 1 + sum(BORDER + w for w in made)
        shown = max(need, len(title)) if not on_screen else max(need, width)
        Console(width=shown, **looks).print(_table(part, made, "" if i else title))


def _table(columns: Sequence[Column], made: Sequence[int], title: str) -> Any:
    """Lay columns out at their widths."""
    from rich.markup import escape
    from rich.table import Table

    table = Table(
        title=escape(title) or None, title_justify="left", show_lines=False
    )  # fmt: skip
    for column, width in zip(columns, made, strict=True):
        table.add_column(
            escape(column.head), justify="left" if column.words else "right",
            overflow="fold", width=width,
        )  # fmt: skip
    for cells in zip(*(c.cells for c in columns), strict=True):
        table.add_row(*map(escape, cells))
    return table
