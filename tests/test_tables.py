"""Tables: what wraps, what stays on one line, and the same cells as text."""

from chinchilla_lab.tables import LONG, MANY, Table, html_table


def test_a_long_cell_wraps_and_a_number_does_not():
    html = html_table(["item", "value"], [["N", "9.05B"], ["shape", "x" * (LONG + 1)]])
    assert "<td>9.05B</td>" in html
    assert '<td class="cl-long">' in html


def test_a_column_of_texts_reads_from_the_left():
    long = "a sentence with many words"
    html = html_table(["lever", "note", "[-]"], [["a", long, 1], ["b", long, 2]])
    assert html.count('class="cl-text"') == 3  # the head and both cells
    assert '<th scope="col">[-]</th>' in html


def test_only_a_table_of_many_columns_may_scroll_on_a_phone():
    few, many = (["head"] * n for n in (MANY, MANY + 1))
    assert "cl-many" not in html_table(few, [few])
    assert "cl-many" in html_table(many, [many])


def test_long_words_of_heads_break_and_are_escaped():
    html = html_table(["", "D/N [token/parameter]"], [["n_over_compute<optimal", 1]])
    assert "[token/<wbr>parameter]" in html
    assert "compute&lt;optimal" in html
    assert "_<wbr>" in html


def test_no_rows_are_a_table_too():
    assert html_table(["a", "b"], []).count("<tr>") == 1
    assert repr(Table(["a", "b"], [])) == "a  b"
