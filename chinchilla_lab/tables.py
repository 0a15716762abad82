"""Results as tables, HTML or text: units in the header, numbers aligned."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

__all__ = ["Cells", "Shown", "html_table", "markdown_table", "text_table"]


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
    from html import escape  # loads a table of entities that a number never needs

    lines = [f'<table class="{" ".join(["cl-table", kind]).strip()}">']
    if caption:
        lines.append(f"<caption>{escape(caption)}</caption>")
    heads = "".join(f'<th scope="col">{escape(str(h))}</th>' for h in header)
    lines.append(f"<thead><tr>{heads}</tr></thead>\n<tbody>")
    for first, *rest in rows:
        cells = "".join(f"<td>{escape(str(cell))}</td>" for cell in rest)
        lines.append(f'<tr><th scope="row">{escape(str(first))}</th>{cells}</tr>')
    lines.append("</tbody></table>")
    return "\n".join(lines)


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


class Shown:
    """A result that a notebook shows as HTML and ``print`` as text, from one table."""

    def _cells(self) -> Cells:
        raise NotImplementedError

    def _repr_html_(self) -> str:
        return html_table(*self._cells())

    def __str__(self) -> str:
        return text_table(*self._cells())
