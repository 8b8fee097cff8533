"""The result formats, character by character."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.cli.exits import Style
from omnigraph.cli.output.answers import Cell, Rows, cell_text, write_document
from omnigraph.cli.output.results import (
    TableLayout,
    choose_format,
    write_csv,
    write_grid,
    write_kv,
    write_table,
)

PLAIN = Style(enabled=False)
COLUMNS = ("a.slug", "a.born")
ADA = Rows("1 row from branch main via by_slug", COLUMNS, [("ada", 1815)])
CY = Rows("1 row from branch main via by_slug", COLUMNS, [("cy", None)])
NOBODY = Rows("0 rows from snapshot c7 via by_slug", COLUMNS, [])


def written(write, result, *how):
    out = io.StringIO()
    write(result, out, *how)
    return out.getvalue()


def table(result, layout=TableLayout()):  # noqa: B008  immutable
    return written(write_table, result, layout, PLAIN)


def grid(columns, rows, width=80, overlong="truncate", style=PLAIN):
    out = io.StringIO()
    write_grid(columns, rows, out, TableLayout(width, overlong), style)
    return out.getvalue().splitlines()


def test_csv_is_a_header_and_rows():
    assert written(write_csv, ADA) == "a.slug,a.born\nada,1815\n"


def test_csv_quotes_only_what_a_reader_needs_quoted():
    row: tuple[Cell, ...] = (
        "a,b",
        'say "hi"',
        "two\nlines",
        "cr\r",
        " blank ",
        "semi;colon",
        None,
        [1, "x"],
    )
    result = Rows("q", tuple("abcdefgh"), [row])
    assert written(write_csv, result) == (
        "a,b,c,d,e,f,g,h\n"
        '"a,b","say ""hi""","two\nlines","cr\r", blank ,semi;colon,null,"[1,""x""]"\n'
    )


def test_kv_is_a_line_per_value():
    assert written(write_kv, CY).splitlines() == [
        "1 row from branch main via by_slug",
        "row 1",
        "a.slug: cy",
        "a.born: null",
    ]


def test_kv_has_a_blank_line_between_rows():
    result = Rows("2 rows from branch main via q", ("n",), [(1,), (2,)])
    assert written(write_kv, result) == (
        "2 rows from branch main via q\nrow 1\nn: 1\n\nrow 2\nn: 2\n"
    )


def test_kv_without_rows_says_so():
    assert written(write_kv, NOBODY) == "0 rows from snapshot c7 via by_slug\n(no rows)\n"


def test_a_table_is_aligned_under_its_header():
    assert table(ADA).splitlines() == [
        "1 row from branch main via by_slug",
        "a.slug | a.born",
        "-------+-------",
        "ada    | 1815  ",
    ]


def test_a_table_without_rows_still_shows_its_columns():
    assert table(NOBODY).splitlines() == [
        "0 rows from snapshot c7 via by_slug",
        "a.slug | a.born",
        "-------+-------",
    ]


def test_a_table_without_columns_says_no_rows():
    result = Rows("0 rows from branch main via q", (), [])
    assert table(result) == "0 rows from branch main via q\n(no rows)\n"


def test_line_breaks_in_cells_become_escapes():
    assert grid(["t"], [["a\nb"], ["c\r\nd"]])[2:] == ["a\\nb  ", "c\\r\\nd"]


def test_an_overlong_cell_is_cut_with_an_ellipsis():
    assert grid(["text"], [["x" * 81], ["y" * 80]])[2:] == ["x" * 79 + "…", "y" * 80]


def test_an_overlong_cell_continues_on_the_next_lines_when_wrapped():
    assert grid(["n", "text"], [[1, "abcdefghijk"]], width=8, overlong="wrap") == [
        "n | text    ",
        "--+---------",
        "1 | abcdefgh",
        "  | ijk     ",
    ]


def test_a_header_may_be_wider_than_a_small_cap_but_not_than_eight():
    assert grid(["header"], [["longer"]], width=3) == ["header", "------", "longer"]
    assert grid(["long header"], [["x"]], width=3)[0] == "long he…"


def test_wide_characters_count_as_two_cells():
    lines = grid(["name", "n"], [["日本", 1], ["ab", 2]])
    assert lines[2:] == ["日本 | 1", "ab   | 2"]
    assert grid(["name"], [["日本語の本"]], width=8)[2] == "日本語… "


def test_the_header_of_a_table_is_bold_in_colour():
    lines = grid(["n"], [[1]], style=Style(enabled=True))
    assert lines == ["\x1b[1mn\x1b[0m", "-", "1"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        ("", ""),
        ("null", "null"),
        ("é", "é"),
        (True, "true"),
        (9007199254740993, "9007199254740993"),
        (0.4000000059604645, "0.4000000059604645"),
        (-1.0, "-1.0"),
        ([], "[]"),
        ([1, None, "é"], '[1,null,"é"]'),
        ({"a": [True]}, '{"a":[true]}'),
    ],
)
def test_cell_text(value, text):
    assert cell_text(value) == text


def test_missing_columns_are_the_sorted_keys_of_all_rows():
    result = Rows.from_objects("q", None, [{"b": 1}, {"a": 2, "b": None}, "bare"])
    assert result.columns == ["a", "b", "value"]
    assert result.rows == [[None, 1, None], [2, None, None], [None, None, "bare"]]


def test_given_columns_decide_the_order():
    result = Rows.from_objects(ADA.headline, COLUMNS, [{"a.born": 1815, "a.slug": "ada"}])
    assert result.rows == [["ada", 1815]]


def test_a_column_has_at_least_one_cell():
    with pytest.raises(ValueError):
        TableLayout(max_column_width=0)


def test_the_strongest_wish_decides_the_format():
    assert choose_format() == "table"
    assert choose_format(None, None, "csv") == "csv"
    assert choose_format(None, "jsonl", "csv") == "jsonl"


def test_a_document_keeps_non_ascii_text():
    out = io.StringIO()
    write_document({"name": "Ada é"}, out)
    assert out.getvalue() == '{\n  "name": "Ada é"\n}\n'


def cells(text):
    """Any value a result can hold, with this kind of text in it."""
    finite = st.floats(allow_nan=False, allow_infinity=False)
    plain = st.none() | st.booleans() | st.integers() | finite | text
    return plain | st.lists(plain, max_size=3) | st.dictionaries(text, plain, max_size=2)


@st.composite
def results(draw, alphabet):
    text = st.text(alphabet)
    columns = draw(st.lists(text, min_size=1, max_size=4, unique=True))
    rows = draw(st.lists(st.tuples(*([cells(text)] * len(columns))), max_size=5))
    return Rows("q", columns, rows)


# Lone surrogates cannot be stored as text, so no result holds one.
UNICODE = st.characters(exclude_categories=["Cs"])
PRINTABLE = st.characters(min_codepoint=32, max_codepoint=126)


@given(results(UNICODE))
def test_a_csv_reader_gets_every_cell_back(result):
    read = list(csv.reader(io.StringIO(written(write_csv, result), newline="")))
    expected = [list(result.columns), *([cell_text(cell) for cell in row] for row in result.rows)]
    # A record of one empty field is an empty line, which the reader gives as no fields at all.
    assert [record or [""] for record in read] == expected


@given(results(PRINTABLE), st.integers(1, 12), st.sampled_from(["truncate", "wrap"]))
def test_all_lines_of_a_table_are_equally_long(result, width, overlong):
    lines = table(result, TableLayout(width, overlong)).removesuffix("\n").split("\n")
    assert len(set(map(len, lines[1:]))) == 1


@given(results(UNICODE), st.integers(1, 12), st.sampled_from(["truncate", "wrap"]))
def test_every_format_takes_any_text(result, width, overlong):
    texts = (
        written(write_csv, result),
        written(write_kv, result),
        table(result, TableLayout(width, overlong)),
    )
    assert all(text.endswith("\n") for text in texts)
