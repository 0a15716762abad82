"""Results as tables in HTML, text and Markdown: units in the header, text escaped.

Numbers stay on one line and long texts wrap, so that a page is as wide as its prose.
A table of many columns scrolls by itself on a phone; its style sheet keeps the first
column in sight and shades the edge behind which there is more.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

__all__ = [
    "Cells",
    "Shown",
    "Table",
    "html_table",
    "markdown_table",
    "span",
    "text_table",
]

LONG = 16  # characters of a cell that may break into lines
MANY = 4  # columns, heads included, that a phone shows side by side


def _breakable(head: str) -> str:
    """Escape a head and let a long word of it break behind a slash or underscore."""
    from html import escape  # loads a table of entities that a number never needs

    parts = []
    for word in escape(head).split(" "):
        if len(word) > LONG - 4:
            word = word.replace("/", "/<wbr>").replace("_", "_<wbr>")
        parts.append(word)
    return " ".join(parts)


def html_table(
    header: Sequence[str],
    rows: Iterable[Sequence[object]],
    caption: str = "",
    kind: str = "",
) -> str:
    """Write a table that notebooks and the book show the same way.

    Parameters
    ----------
    header : sequence of str
        Column heads with their units, [-]
    rows : iterable of sequence
        Cells, already formatted; the first of each row is its head, [-]
    caption : str, optional
        Line above the table, [-]
    kind : str, optional
        One more class for the style sheet, [-]

    Returns
    -------
    str
        HTML, [-]

    Examples
    --------
    >>> html_table(["law", "N [parameter]"], [["ratio-20", "9.13B"]])[:24]
    '<table class="cl-table">'
    """
    from html import escape

    table = [[str(cell) for cell in row] for row in rows]
    many = "cl-many" if len(header) > MANY else ""
    classes = " ".join(part for part in ("cl-table", many, kind) if part)
    lines = [f'<table class="{classes}">']
    if caption:
        lines.append(f"<caption>{escape(caption)}</caption>")
    # a column of texts reads from the left; one long cell among numbers just wraps
    texts = [
        sum(len(cell) > LONG for cell in column) > 0.5 * len(table)
        for column in zip(*table, strict=False)
    ]
    texts += [False] * (len(header) - len(texts))
    heads = "".join(
        f'<th scope="col"{_TEXT if is_text else ""}>{_breakable(str(h))}</th>'
        for h, is_text in zip(header, texts, strict=False)
    )
    lines.append(f"<thead><tr>{heads}</tr></thead>\n<tbody>")
    for first, *rest in table:
        cells = "".join(
            f"<td{_TEXT if is_text else _WRAP if len(cell) > LONG else ''}>"
            f"{escape(cell)}</td>"
            for cell, is_text in zip(rest, texts[1:], strict=False)
        )
        lines.append(f'<tr><th scope="row">{_breakable(first)}</th>{cells}</tr>')
    lines.append("</tbody></table>")
    return "\n".join(lines)


_TEXT = ' class="cl-text"'
_WRAP = ' class="cl-long"'


class Table:
    """A table that a notebook shows as HTML and a terminal as aligned text.

    Parameters
    ----------
    header : sequence of str
        Column heads with their units, [-]
    rows : iterable of sequence
        Cells, already formatted; the first of each row is its head, [-]
    caption : str, optional
        Line above the table, [-]

    Examples
    --------
    >>> Table(["width", "waves"], [["14,400", 5], ["13,824", 4]])
    width   waves
    14,400      5
    13,824      4
    """

    def __init__(
        self,
        header: Sequence[str],
        rows: Iterable[Sequence[object]],
        caption: str = "",
    ) -> None:
        self.header = [str(head) for head in header]
        self.rows = [[str(cell) for cell in row] for row in rows]
        self.caption = caption

    def __repr__(self) -> str:
        lines = [self.header, *self.rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        shown = [
            "  ".join(
                cell.rjust(width) if i else cell.ljust(width)
                for i, (cell, width) in enumerate(zip(line, widths, strict=True))
            )
            for line in lines
        ]
        return "\n".join(shown)

    def _repr_html_(self) -> str:
        return html_table(self.header, self.rows, self.caption)


def text_table(
    header: Sequence[str],
    rows: Iterable[Sequence[object]],
    caption: str = "",
    widest: int = 48,
) -> str:
    """Write the same table as aligned text, for a terminal.

    Parameters
    ----------
    header : sequence of str
        Column heads with their units, [-]
    rows : iterable of sequence
        Cells, already formatted, [-]
    caption : str, optional
        Line above the table, [-]
    widest : int, optional
        Characters of a cell; longer ones are cut, the last column excepted, [-]

    Returns
    -------
    str
        Lines of equal columns, [-]

    Examples
    --------
    >>> print(text_table(["law", "N [parameter]"], [["ratio-20", "9.13B"]]))
    law       N [parameter]
    --------  -------------
    ratio-20          9.13B
    """

    def cut(i: int, cell: object) -> str:
        words = " ".join(str(cell).split())
        long = len(words) > widest and i < len(header) - 1
        return f"{words[: widest - 1]}…" if long else words

    cells = [[cut(i, c) for i, c in enumerate(row)] for row in rows]
    heads = [str(h) for h in header]
    wide = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
    # a column of figures stands to the right, one of words to the left
    right = [
        i > 0 and all(not c or c[0] in "+-0123456789" for c in column)
        for i, column in enumerate(zip(*cells, strict=True))
    ] or [False] * len(heads)

    def line(row: Sequence[str]) -> str:
        parts = [
            c.rjust(w) if r else c.ljust(w)
            for c, w, r in zip(row, wide, right, strict=True)
        ]
        return "  ".join(parts).rstrip()

    lines = [caption] if caption else []
    lines += [line(heads), "  ".join("-" * w for w in wide)]
    return "\n".join([*lines, *map(line, cells)])


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Write the same table in Markdown.

    Parameters
    ----------
    header : sequence of str
        Column heads with their units, [-]
    rows : iterable of sequence
        Cells, already formatted; bars in them are escaped, [-]

    Returns
    -------
    str
        Markdown, [-]

    Examples
    --------
    >>> print(markdown_table(["", "N"], [["size", "1"]]).splitlines()[2])
    | size | 1 |
    """

    def line(row: Sequence[object]) -> str:
        cells = (" ".join(str(c).split()).replace("|", r"\|") for c in row)
        return f"| {' | '.join(cells)} |"

    head = [line(header), f"|{'---|' * len(header)}"]
    return "\n".join([*head, *map(line, rows)]) + "\n"


def plain(value: Any) -> Any:
    """Return a value that JSON can hold; what is not a finite number is null."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value


def quantile_of(name: str) -> tuple[str, str]:
    """Part ``days_p5`` into the quantity and how much of the draws lie below."""
    base, _, share = name.rpartition("_p")
    return (base, share) if base and share.replace(".", "").isdigit() else (name, "")


class Cells(NamedTuple):
    """Cells of a table, from which HTML and text are written.

    Parameters
    ----------
    header : sequence of str
        Column heads with their units, [-]
    rows : sequence of sequence
        Cells, already formatted, [-]
    caption : str, optional
        Line above the table, [-]
    """

    header: Sequence[str]
    rows: Sequence[Sequence[object]]
    caption: str = ""


def span(ends: tuple[float, float], write: Callable[[float], str]) -> str:
    """Write the ends of a range as a cell, which is empty where they are not known.

    Parameters
    ----------
    ends : tuple of float
        Lower and upper end, [any]
    write : callable
        Turns an end into words, with its unit if the head has none, [-]

    Returns
    -------
    str
        ``"1 to 2"``, or nothing, [-]

    Examples
    --------
    >>> span((1.0, 2.5), "{:g}".format), span((1.0, float("inf")), str)
    ('1 to 2.5', '')
    """
    return " to ".join(map(write, ends)) if np.all(np.isfinite(ends)) else ""


class Shown:
    """A result that a notebook shows as HTML and ``print`` as text, from one table."""

    def _cells(self) -> Cells:
        raise NotImplementedError

    def _repr_html_(self) -> str:
        return html_table(*self._cells())

    def __str__(self) -> str:
        return text_table(*self._cells())
