"""CSV: records and lines, quotes and nulls, and every kind of value written as text."""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from omnigraph.errors import LoadError, LoadProblem, LoadSourceError
from omnigraph.load import csv_rows
from omnigraph.load.csv_rows import CsvReader, Dialect, read_csv_records
from omnigraph.load.json_text import Records
from omnigraph.load.row_plan import RowPlan
from omnigraph.load.table_rows import TextCells
from omnigraph.rows.columns import build_column
from tests.unit.load.loading import W, catalog_of, load, rows_of

EVERY = catalog_of(
    """
node Every {
    k: String @key
    text: String?
    small: I32?
    big: U64?
    real: F64?
    single: F32?
    flag: Bool?
    day: Date?
    moment: DateTime?
    words: [String]?
    numbers: [I32]?
    vec: Vector(2)?
    data: Blob?
}
edge Tie: Every -> Every { since: Date? }
"""
)


@pytest.fixture
def file(tmp_path: Path):
    def write(text: str | bytes, name: str = "Every.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return write


def every(given: Any, **options: Any) -> list[dict[str, Any]]:
    """The rows of a file, without what is null."""
    rows = rows_of(load(given, EVERY, **options), "node:Every")
    return [{k: v for k, v in row.items() if v is not None and k != "id"} for row in rows]


def dialect(path: Path, **csv: Any) -> dict[str, Any]:
    source = {"path": str(path), "node": "Every", "format": "csv", "csv": csv}
    return {"version": 1, "sources": [source]}


def problems(given: Any, **options: Any) -> list[LoadProblem]:
    with pytest.raises(LoadError) as caught:
        load(given, EVERY, **options)
    return list(caught.value.load_errors)


# -- values ---------------------------------------------------------------------------------------


def test_every_kind_of_value_has_its_text(file):
    path = file(
        "k,text,small,big,real,single,flag,day,moment,words,numbers,vec,data\n"
        "a,hello,-7,18446744073709551615,1.5e3,.5,TRUE,2021-07-15,2019-05-01T08:00:00Z,"
        '"[""x"", null]",[1],"[1, 2.5]",base64:SGk=\n'
        'b,,+8,19,-2,0.1,0,2021-07-15,2019-05-01T08:00:00+02:00,[],"[1,2]","[0.0,0]",s3://b/k\n'
    )
    assert every(path) == [
        {
            "k": "a",
            "text": "hello",
            "small": -7,
            "big": 2**64 - 1,
            "real": 1500.0,
            "single": 0.5,
            "flag": True,
            "day": 18823,
            "moment": 1556697600000,
            "words": ("x", None),
            "numbers": (1,),
            "vec": (1.0, 2.5),
            "data": b"Hi",
        },
        {
            "k": "b",
            "small": 8,
            "big": 19,
            "real": -2.0,
            "single": pytest.approx(0.1),
            "flag": False,
            "day": 18823,
            "moment": 1556690400000,
            "words": (),
            "numbers": (1, 2),
            "vec": (0.0, 0.0),
            "data": "s3://b/k",
        },
    ]


def test_an_empty_field_is_null_and_a_quoted_one_is_empty_text(file):
    assert every(file('k,text\na,\nb,""\n')) == [{"k": "a"}, {"k": "b", "text": ""}]


@pytest.mark.parametrize(
    ("column", "text", "message"),
    [
        ("small", "3.0", "property 'small' expects I32, got number"),
        ("small", "x", "property 'small' expects I32, got string"),
        ("small", " 3", "property 'small' expects I32, got string"),
        ("small", "0x1F", "property 'small' expects I32, got string"),
        ("small", "3000000000", "property 'small': value out of range for I32"),
        ("big", "-1", "property 'big': value out of range for U64"),
        ("big", "18446744073709551616", "property 'big': value out of range for U64"),
        ("real", "nan", "property 'real' expects F64, got string"),
        ("real", "1e999", "property 'real': value out of range for F64"),
        ("flag", "yes", "property 'flag' expects Bool, got string"),
        ("day", "18823", "invalid Date literal"),
        ("words", "x", "property 'words' expects a JSON array, got string"),
        ("words", '"[""x"", 3]"', "element 2 of 'words' expects String, got number"),
        ("words", "[x", "property 'words' expects a JSON array, got string"),
        ("vec", "[1]", "expects 2 dimensions, got 1"),
        ("data", "base64:?", "invalid base64 blob data"),
    ],
)
def test_a_text_that_does_not_fit_is_reported_at_its_record_and_line(file, column, text, message):
    path = file(f"k,{column}\na,\nb,{text}\n")
    (problem,) = problems(path)
    assert message in problem.message
    assert (problem.record, problem.line, problem.property) == (2, 3, column)


def test_lists_are_split_where_the_mapping_says_so(file):
    path = file('k,words,numbers,vec\na,x|y,1|2,0.5|1\nb,[],3,"[1,2]"\nc,"",,1|2\n')
    assert every(None, mapping=dialect(path, list_separator="|")) == [
        {"k": "a", "words": ("x", "y"), "numbers": (1, 2), "vec": (0.5, 1.0)},
        {"k": "b", "words": (), "numbers": (3,), "vec": (1.0, 2.0)},
        {"k": "c", "words": (), "vec": (1.0, 2.0)},
    ]


def test_an_element_that_does_not_fit_is_named(file):
    path = file("k,numbers\na,1|2\nb,1|x\n")
    (problem,) = problems(None, mapping=dialect(path, list_separator="|"))
    assert problem.message == "element 2 of 'numbers' expects I32, got string"


# -- records --------------------------------------------------------------------------------------


def test_quoted_fields_hold_delimiters_quotes_and_line_ends(file):
    path = file('k,text\n"a,1","say ""hi"""\nb,"two\nlines"\nc,x\n')
    assert [row["text"] for row in every(path)] == ['say "hi"', "two\nlines", "x"]


def test_a_quote_inside_a_field_is_a_character(file):
    path = file('k,text\na,12" pipe\nb,6" rod\nc,"x"y\n')
    assert [row["text"] for row in every(path)] == ['12" pipe', '6" rod', "xy"]


def test_lines_are_counted_through_quoted_line_ends_and_blank_lines(file):
    path = file('k,text,small\r\na,"1\r\n2",1\r\n\r\nb,,x\r\n')
    (problem,) = problems(path)
    assert (problem.record, problem.line) == (2, 5)


def test_a_record_with_another_number_of_fields_is_bad_and_only_that_one(file):
    path = file("k,small\na,1\nb\nc,1,2\nd,x\n")
    assert [(p.record, p.code, p.message) for p in problems(path)] == [
        (2, "bad_record", "expected 2 fields, got 1"),
        (3, "bad_record", "expected 2 fields, got 3"),
        (4, "bad_value", "property 'small' expects I32, got string"),
    ]


def test_a_quoted_field_without_end_spoils_its_own_line(file):
    path = file('k,text\na,x\nb,"y\nc,z\n')
    (problem,) = problems(path)
    assert (problem.record, problem.message) == (2, "a quoted field has no end")
    assert [row["k"] for row in every(path, quarantine=True)] == ["a", "c"]


def test_bytes_that_are_no_text_spoil_their_record(file):
    path = file(b"k,text\na,x\nb,\xff\nc,\xc3\xa9\n")
    (problem,) = problems(path)
    assert (problem.record, problem.line, problem.message) == (2, 3, "invalid UTF-8")


def test_bad_records_are_set_aside_as_they_stand(file):
    path = file('k,small\r\na,"x"\r\nb,2\r\nc\r\n')
    bad = load(path, EVERY, quarantine=True).quarantined
    assert [(b.record, b.line, b.raw) for b in bad] == [(1, 2, 'a,"x"'), (3, 4, "c")]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("last", ["", "end"])
def test_lines_may_end_in_any_way(file, end, last):
    path = file(end.join(["k,small", "a,1", "b,2"]) + (end if last else ""))
    assert every(path) == [{"k": "a", "small": 1}, {"k": "b", "small": 2}]


def test_a_byte_order_mark_and_gzip_make_no_difference(file):
    text = "\ufeffk,small\na,1\n".encode()
    for name, data in (("Every.csv", text), ("Every.csv.gz", gzip.compress(text))):
        assert every(file(data, name)) == [{"k": "a", "small": 1}]
    assert every(file(gzip.compress(text))) == [{"k": "a", "small": 1}]


def test_a_tsv_file_is_split_at_tabs(file):
    assert every(file("k\ttext\na\tx,y\n", "Every.tsv")) == [{"k": "a", "text": "x,y"}]


def test_a_file_without_header_has_numbered_columns(file):
    path = file("a;7\n")
    mapping = dialect(path, delimiter=";", header=False)
    mapping["sources"][0]["columns"] = {"k": "c1", "small": "c2"}
    assert every(None, mapping=mapping) == [{"k": "a", "small": 7}]


def test_the_mapping_says_which_texts_are_null(file):
    path = file('k,text\na,NULL\nb,\nc,"NULL"\n')
    found = every(None, mapping=dialect(path, null=["NULL"]))
    assert found == [{"k": "a"}, {"k": "b", "text": ""}, {"k": "c", "text": "NULL"}]


def test_edges_take_their_ends_from_columns_of_that_name(file, tmp_path):
    nodes = file("k\na\nb\n")
    edges = file("from,to,since\na,b,2020-01-01\nb,,\n", "Tie.csv")
    (problem,) = problems([nodes, edges])
    assert (problem.source, problem.record) == (str(edges), 2)
    assert problem.message == "edge missing 'to'"
    edges.write_text("from,to,since\na,b,2020-01-01\n")
    (row,) = rows_of(load([nodes, edges], EVERY), "edge:Tie")
    assert (row["src"], row["dst"], row["since"]) == ("a", "b", 18262)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("text\nx\n", "source has no column 'k'"),
        ("k,k\na,b\n", "source has several columns 'k'"),
        (b"k,\xff\na,b\n", "the header is not UTF-8 text"),
    ],
)
def test_a_file_that_lacks_its_columns_is_refused_before_it_is_read(file, text, message):
    with pytest.raises(LoadSourceError, match=message):
        load(file(text), EVERY)


def test_a_header_alone_is_a_table_without_rows(file):
    assert load(file("handle\n", "Maker.csv"), W).records == 0
    emptied_types = load(file("handle\n", "Maker.csv"), W, mode="overwrite")
    assert emptied_types.types["node:Maker"].rows_loaded == 0


# -- framing --------------------------------------------------------------------------------------


def naive_records(text: str, delimiter: str, quote: str) -> list[tuple[int, str]]:
    """Records with the lines they start in, read character by character; a last one may lack its end."""
    found: list[tuple[int, str]] = []
    line, started, record = 1, 1, ""
    state = "start"
    for character in text:
        record += character
        line += character == "\n"
        if state == "quoted":
            state = "closed" if character == quote else state
        elif state == "closed" and character == quote:
            state = "quoted"
        elif character == "\n":
            if record != "\n":
                found.append((started, record))
            started, record, state = line, "", "start"
        elif character == delimiter:
            state = "start"
        else:
            state = "quoted" if state == "start" and character == quote else "plain"
    if state == "quoted":
        # It has no end: its first line is spoilt, and reading goes on behind it.
        first, _, rest = record.partition("\n")
        after = naive_records(rest, delimiter, quote)
        return [*found, (started, f"{first}\n"), *((started + n, text) for n, text in after)]
    return [*found, (started, f"{record}\n")] if record else found


def records_of(text: str, block: int) -> list[Records]:
    """The records of a text that is read in blocks of so many bytes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_rows, "LOAD_BLOCK_BYTES", block)
        return list(read_csv_records(io.BytesIO(text.encode()), Dialect(header=False)))


@given(
    st.text(st.sampled_from('ab,"\n'), max_size=60),
    st.sampled_from([3, 7, 1000]),
)
@example('a""b,"\n"\n', 3)
def test_records_are_those_of_a_reader_of_characters(text, block):
    pieces = records_of(text, block)
    found: list[tuple[int, str]] = []
    for records in pieces:
        texts = dict(zip(records.positions.tolist(), records.texts.to_pylist(), strict=True))
        spoilt = {m.problem.position(): f"{m.raw}\n".encode() for m in records.malformed}
        for position, line in enumerate(records.lines.tolist()):
            found.append((line, (texts | spoilt)[position].decode()))
    assert found == naive_records(text, ",", '"')


@given(
    st.text(st.sampled_from('ab,"\n\r'), max_size=60),
    st.sampled_from([3, 7, 1000]),
)
@example('a\ra,"\r\n"\r\n', 3)
def test_fields_are_those_of_the_standard_library(text, block):
    pieces = records_of(text, block)
    assume(not any(records.malformed for records in pieces))
    declared = EVERY.nodes["Every"]
    plan = RowPlan(declared, {"k": "c1", "text": "c2"}, {}, {}, None)
    reader = CsvReader(plan, ("c1", "c2"), Dialect(header=False, null=()))
    found: list[list[str]] = []
    ragged = 0
    for records in pieces:
        reading = reader.read(records)
        ragged += len(reading.problems)
        for rows in reading.rows:
            columns = (rows.columns[name].to_pylist() for name in ("k", "text"))
            found += map(list, zip(*columns, strict=True))
    expected = [fields for fields in csv.reader(io.StringIO(text, newline="")) if fields]
    assert found == [fields for fields in expected if len(fields) == 2]
    assert ragged == sum(len(fields) != 2 for fields in expected)


# -- columns at once and texts one by one ---------------------------------------------------------

TEXTS = st.one_of(
    st.none(),
    st.text(st.sampled_from("0123456789+-.eE"), max_size=22),
    st.sampled_from(["true", "False", "1", "0", "", "TRUE ", "2021-07-15", "base64:SGk=", "nan"]),
    st.text(st.sampled_from('[]|,"1.x '), max_size=8),
    st.lists(st.integers(-5, 5) | st.floats(width=32) | st.none(), max_size=3).map(json.dumps),
)


@given(
    st.sampled_from([p.type for p in EVERY.nodes["Every"].properties.values()]),
    st.lists(TEXTS, min_size=1, max_size=4),
    st.sampled_from([None, "|"]),
)
def test_a_column_holds_what_each_of_its_texts_says(wanted, texts, separator):
    cells = TextCells(separator)
    column, doubted = cells.column(pa.array(texts, pa.utf8()), wanted)
    for row, text in enumerate(texts):
        if doubted is not None and doubted[row]:
            continue
        value = cells.value(pa.scalar(text, pa.utf8()), "p", wanted)
        assert column.slice(row, 1).equals(build_column([value], wanted)), (row, text)
