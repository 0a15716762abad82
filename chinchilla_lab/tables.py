"""Results as HTML tables: units in the header, numbers aligned, text escaped."""

from collections.abc import Iterable, Sequence

__all__ = ["html_table"]


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
