"""The result of a read: its forms, and JSON made from columns against JSON made from values."""

from __future__ import annotations

import datetime as dt
import io
import json
import math
import pickle
import sys

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.catalog.arrow import arrow_type
from omnigraph.errors import InputError, MissingExtra, UnknownColumn
from omnigraph.language.types import INTEGER_RANGES, PropType, Scalar
from omnigraph.read.result import Result
from omnigraph.versioning.commits import CommitId
from tests.support.model.values import shortest_float32

COMMIT = CommitId("01ARZ3NDEKTSV4RRFFQ69G5FAV")
TEXT, BOOL = PropType(Scalar.STRING, nullable=True), PropType(Scalar.BOOL, nullable=True)
I32, I64, U64 = PropType(Scalar.I32), PropType(Scalar.I64, nullable=True), PropType(Scalar.U64)
F32, F64 = PropType(Scalar.F32), PropType(Scalar.F64)
DATE, MOMENT = PropType(Scalar.DATE), PropType(Scalar.DATETIME)
DAY_MS = 86_400_000


def column_type(kind):
    return pa.utf8() if kind.is_blob else arrow_type(kind)


def result_of(columns, *, branch="main", snapshot=None):
    """A result from its columns: name to type and values; times are numbers, as they are stored."""
    arrays = {}
    for name, (kind, values) in columns.items():
        wanted = column_type(kind)
        stored = {pa.date32(): pa.int32(), pa.date64(): pa.int64()}
        if kind.list:
            plain = pa.list_(stored.get(wanted.value_type, wanted.value_type))
        else:
            plain = stored.get(wanted, wanted)
        arrays[name] = pa.array(values, plain).cast(wanted)
    types = tuple(kind for kind, _ in columns.values())
    table = pa.table(arrays)
    return Result("q", table, types, branch=branch, snapshot=snapshot, commit_id=COMMIT)


AUTHORS = {"a.slug": (TEXT, ["ada", "cy"]), "a.born": (I32, [1815, None])}


def only(kind, value, **how):
    """How the one value of a result looks in its JSON, and in its document."""
    result = result_of({"x": (kind, [value])})
    document = json.loads(result.to_json(**how), parse_constant=pytest.fail)
    assert document == result.to_envelope(**how)
    return document["rows"][0]["x"]


def test_a_result_knows_its_columns_its_rows_and_its_commit():
    result = result_of(AUTHORS)
    assert (result.columns, result.row_count, len(result)) == (["a.slug", "a.born"], 2, 2)
    assert (result.commit_id, result.query_name) == (COMMIT, "q")
    assert list(result) == result.to_dicts()
    assert result.to_dicts() == [
        {"a.slug": "ada", "a.born": 1815},
        {"a.slug": "cy", "a.born": None},
    ]


def test_a_result_without_rows_is_false():
    assert not result_of({"x": (I32, [])})
    assert result_of({"x": (I32, [None])})


def test_a_read_has_either_a_branch_or_a_snapshot():
    for branch, snapshot in ((None, None), ("main", COMMIT)):
        with pytest.raises(ValueError):
            result_of(AUTHORS, branch=branch, snapshot=snapshot)


def test_every_column_has_a_type():
    with pytest.raises(ValueError):
        Result("q", pa.table({"x": [1]}), (), branch="main", snapshot=None, commit_id=COMMIT)


# Values


@pytest.mark.parametrize(
    ("kind", "stored", "shown"),
    [
        (TEXT, 'a "b"\n\\ é 日 \x07', 'a "b"\n\\ é 日 \x07'),
        (BOOL, True, True),
        (I32, -(2**31), -(2**31)),
        (I64, 2**63 - 1, 2**63 - 1),
        (U64, 2**64 - 1, 2**64 - 1),
        (F32, 0.4, 0.4),
        (F32, 1e-45, 1e-45),
        (F32, math.inf, "Infinity"),
        (F64, 0.1, 0.1),
        (F64, math.nan, "NaN"),
        (F64, math.inf, "Infinity"),
        (F64, -math.inf, "-Infinity"),
        (DATE, 0, "1970-01-01"),
        (DATE, -1, "1969-12-31"),
        (MOMENT, 0, "1970-01-01T00:00:00.000Z"),
        (MOMENT, 1556697600007, "2019-05-01T08:00:00.007Z"),
        (MOMENT, -1, "1969-12-31T23:59:59.999Z"),
        (PropType(Scalar.BLOB, nullable=True), None, None),
        (PropType(Scalar.I64, list=True), [1, None, 3], [1, None, 3]),
        (PropType(Scalar.STRING, list=True), [], []),
        (PropType(Scalar.F64, list=True), [math.nan, 1.0], ["NaN", 1.0]),
        (PropType(Scalar.DATE, list=True), [1, None], ["1970-01-02", None]),
        (PropType(Scalar.DATETIME, list=True), [1], ["1970-01-01T00:00:00.001Z"]),
        (PropType(Scalar.VECTOR, dimension=3), [0.5, math.nan, math.inf], [0.5, None, None]),
        (PropType(Scalar.VECTOR, dimension=2), [0.1, 3.4028235e38], [0.1, 3.4028235e38]),
        (PropType(Scalar.VECTOR, nullable=True, dimension=3), None, None),
        (PropType(Scalar.F32, list=True), [0.1, None, math.nan], [0.1, None, "NaN"]),
    ],
)
def test_the_wire_form_of_a_value(kind, stored, shown):
    assert only(kind, stored) == shown
    assert only(kind, None) is None


@pytest.mark.parametrize(
    ("kind", "stored", "shown"),
    [
        (DATE, 2_932_896, "9999-12-31"),
        (DATE, 2_932_897, "+10000-01-01"),
        (DATE, -719_528, "0000-01-01"),
        (DATE, -719_529, "-0001-12-31"),
        (DATE, 2**31 - 1, "+5881580-07-11"),
        (DATE, -(2**31), "-5877641-06-23"),
        (MOMENT, 2_932_897 * DAY_MS + 1, "+10000-01-01T00:00:00.001Z"),
        (MOMENT, -719_529 * DAY_MS, "-0001-12-31T00:00:00.000Z"),
        (MOMENT, 2**63 - 1, "+292278994-08-17T07:12:55.807Z"),
        (MOMENT, -(2**63), "-292275055-05-16T16:47:04.193Z"),
    ],
)
def test_a_year_without_four_digits_has_a_sign(kind, stored, shown):
    assert only(kind, stored) == shown
    assert repr(result_of({"x": (kind, [stored])})).endswith(shown)


@pytest.mark.parametrize(
    ("kind", "stored", "shown"),
    [
        (I64, 2**53 - 1, 2**53 - 1),
        (I64, 2**53, "9007199254740992"),
        (I64, -(2**53) + 1, -(2**53) + 1),
        (I64, -(2**53), "-9007199254740992"),
        (U64, 2**64 - 1, "18446744073709551615"),
        (U64, 7, 7),
        (I32, 2**31 - 1, 2**31 - 1),
        (PropType(Scalar.I64, list=True), [1, 2**60, None], [1, str(2**60), None]),
        (F64, 2.0**60, 2.0**60),
    ],
)
def test_integers_too_large_for_javascript_are_strings_when_asked_for(kind, stored, shown):
    assert only(kind, stored, js_safe=True) == shown
    assert only(kind, None, js_safe=True) is None
    assert only(kind, stored) == stored


# Python values

UTC_DAY = dt.datetime(1970, 1, 2, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("kind", "stored", "value"),
    [
        (TEXT, "a", "a"),
        (BOOL, True, True),
        (U64, 2**64 - 1, 2**64 - 1),
        (F32, 0.5, 0.5),
        (F64, math.inf, math.inf),
        (DATE, 1, dt.date(1970, 1, 2)),
        (DATE, -719_162, dt.date(1, 1, 1)),
        (MOMENT, DAY_MS, UTC_DAY),
        (MOMENT, -1, dt.datetime(1969, 12, 31, 23, 59, 59, 999_000, dt.UTC)),
        (PropType(Scalar.I64, list=True), [1, None, 3], [1, None, 3]),
        (PropType(Scalar.DATE, list=True), [1, None], [dt.date(1970, 1, 2), None]),
        (PropType(Scalar.DATETIME, list=True), [DAY_MS], [UTC_DAY]),
        (PropType(Scalar.DATETIME, list=True), [], []),
        (PropType(Scalar.VECTOR, dimension=2), [0.5, -1.0], [0.5, -1.0]),
    ],
)
def test_a_row_has_python_values(kind, stored, value):
    result = result_of({"x": (kind, [None, stored, None, stored])})
    rows = [{"x": None}, {"x": value}, {"x": None}, {"x": value}]
    assert result.to_dicts() == list(result) == result[:] == rows
    assert [result[place] for place in range(4)] == rows
    assert type(result[1]["x"]) is type(value)


def test_a_number_that_is_not_one_stays_a_float():
    assert math.isnan(result_of({"x": (F64, [math.nan])})[0]["x"])


@pytest.mark.parametrize(("kind", "stored"), [(DATE, 2_932_897), (MOMENT, -719_163 * DAY_MS)])
def test_a_time_that_python_cannot_hold_is_an_error_that_names_its_column(kind, stored):
    result = result_of({"x": (kind, [0, stored])})
    assert result[0] is not None
    with pytest.raises(InputError, match="column 'x' has a time outside of the years 1 to 9999"):
        result.to_dicts()


def test_rows_are_had_by_number_and_by_slice():
    result = result_of({"n": (I32, range(5))})
    assert (result[0], result[-1]) == ({"n": 0}, {"n": 4})
    for wanted in (slice(1, 3), slice(None, None, -2), slice(3, 99), slice(4, 1), slice(-2, None)):
        assert result[wanted] == [{"n": n} for n in range(5)[wanted]]
    for place in (5, -6):
        with pytest.raises(IndexError):
            result[place]


def test_rows_without_columns_are_empty():
    assert result_of({}).to_dicts() == list(result_of({})) == []


# The fast text against the naive one


def naive(kind, value):
    """The wire form of one value, the plain way."""
    if value is None or kind.is_blob:
        return None
    if kind.is_vector:
        return [shortest_float32(v) if math.isfinite(v) else None for v in value]
    if kind.list:
        return [naive(kind.element(), v) for v in value]
    if kind.scalar is Scalar.DATE:
        return (dt.date(1970, 1, 1) + dt.timedelta(value)).isoformat()
    if kind.scalar is Scalar.DATETIME:
        moment = dt.datetime(1970, 1, 1) + dt.timedelta(milliseconds=value)
        return moment.isoformat(timespec="milliseconds") + "Z"
    if kind.scalar.is_float and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return shortest_float32(value) if kind.scalar is Scalar.F32 else value


SCALARS = {
    Scalar.STRING: st.text(st.characters(exclude_categories=["Cs"])),
    Scalar.BOOL: st.booleans(),
    **{scalar: st.integers(*bounds) for scalar, bounds in INTEGER_RANGES.items()},
    Scalar.F32: st.floats(width=32),
    Scalar.F64: st.floats(),
    Scalar.DATE: st.integers(-719_162, 2_932_896),
    Scalar.DATETIME: st.integers(-719_162 * DAY_MS, 2_932_896 * DAY_MS),
}
LISTS = {PropType(s, list=True): st.lists(v | st.none(), max_size=4) for s, v in SCALARS.items()}
VECTOR = st.lists(st.floats(width=32), min_size=2, max_size=2)
KINDS = {
    **{PropType(scalar): values for scalar, values in SCALARS.items()},
    **LISTS,
    PropType(Scalar.VECTOR, dimension=2): VECTOR,
    PropType(Scalar.BLOB): st.none(),
}


@st.composite
def columns(draw):
    text = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
    names = draw(st.lists(text, min_size=1, max_size=4, unique=True))
    rows = draw(st.integers(0, 4))
    drawn = {}
    for name in names:
        kind = draw(st.sampled_from(list(KINDS)))
        values = st.lists(KINDS[kind] | st.none(), min_size=rows, max_size=rows)
        drawn[name] = (kind, draw(values))
    return drawn


@given(columns())
def test_json_from_columns_is_json_from_values(given_columns):
    result = result_of(given_columns)
    rows = [
        {name: naive(kind, values[row]) for name, (kind, values) in given_columns.items()}
        for row in range(result.row_count)
    ]
    document = {
        "query_name": "q",
        "target": {"branch": "main", "snapshot": None},
        "graph_commit_id": COMMIT,
        "row_count": len(rows),
        "columns": list(given_columns),
        "rows": rows,
    }
    compact = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    assert result.to_json() == compact
    assert result.to_envelope() == document
    out = io.StringIO()
    result.write_json(out)
    assert out.getvalue() == json.dumps(document, ensure_ascii=False, indent=2) + "\n"
    assert "<table>" in result._repr_html_()
    assert len(repr(result).split("\n")) == 3 + len(rows)


def test_rows_of_several_batches_come_in_order():
    table = pa.concat_tables(pa.table({"n": pa.array(range(i, i + 3))}) for i in range(0, 9, 3))
    result = Result("q", table, (I64,), branch=None, snapshot=COMMIT, commit_id=COMMIT)
    out = io.StringIO()
    result.write_json(out)
    expected = [{"n": n} for n in range(9)]
    assert [json.loads(result.to_json())["rows"], json.loads(out.getvalue())["rows"]] == (
        [expected, expected]
    )
    assert result.to_dicts() == list(result) == expected
    assert [len(batch) for batch in result.to_batches()] == [3, 3, 3]
    many = result_of({"n": (I64, range(10_000)), "d": (DATE, range(10_000))})
    assert list(many) == many.to_dicts()


def test_jsonl_is_a_metadata_line_and_a_line_per_row():
    out = io.StringIO()
    result_of(AUTHORS).write_jsonl(out)
    assert out.getvalue().splitlines() == [
        '{"kind":"metadata","query_name":"q","row_count":2,'
        '"target":{"branch":"main","snapshot":null}}',
        '{"a.slug":"ada","a.born":1815}',
        '{"a.slug":"cy","a.born":null}',
    ]


def test_columns_are_left_out_when_there_are_none():
    assert "columns" not in json.loads(result_of({}).to_json())


# Tables


def test_columns_have_the_arrow_types_of_days_and_moments():
    moments = PropType(Scalar.DATETIME, list=True)
    result = result_of(
        {"day": (DATE, [1]), "at": (MOMENT, [1]), "all": (moments, [[1]]), "n": (I64, [1])}
    )
    moment = pa.timestamp("ms", "UTC")
    types = [pa.date32(), moment, pa.list_(pa.field("item", moment)), pa.int64()]
    assert result.to_arrow().schema.types == types
    assert pa.ipc.open_stream(result.to_ipc()).read_all() == result.to_arrow()
    assert pa.RecordBatchReader.from_stream(result).read_all() == result.to_arrow()
    assert [batch.schema.types for batch in result.to_batches()] == [types]


def test_a_column_is_had_by_its_name():
    result = result_of(AUTHORS)
    assert result["a.born"] == pa.chunked_array([pa.array([1815, None], pa.int32())])
    with pytest.raises(UnknownColumn) as caught:
        result["a.borm"]
    assert str(caught.value) == "the result has no column 'a.borm'; did you mean `a.born`?"
    assert isinstance(caught.value, KeyError)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_data_frame_needs_its_library(monkeypatch, library):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingExtra, match=f"; install it with: pip install '{library}"):
        getattr(result_of(AUTHORS), f"to_{library}")()


def test_a_data_frame_gets_times_with_their_zone(monkeypatch):
    class Frames:
        @staticmethod
        def from_arrow(table):
            return table

    monkeypatch.setitem(sys.modules, "polars", Frames)
    moments = PropType(Scalar.DATETIME, list=True)
    frame = result_of({"at": (MOMENT, [1, None]), "all": (moments, [[1], None])}).to_polars()
    moment = dt.datetime(1970, 1, 1, microsecond=1000, tzinfo=dt.UTC)
    assert frame.to_pylist() == [{"at": moment, "all": [moment]}, {"at": None, "all": None}]


# People


def test_a_prompt_shows_the_first_rows():
    assert repr(result_of(AUTHORS)).split("\n") == [
        "2 rows from branch main via q",
        "a.slug | a.born",
        "-------+-------",
        "ada    | 1815",
        "cy     | null",
    ]
    many = repr(result_of({"n": (I32, range(30))}, branch=None, snapshot="c7"))
    assert many.startswith("30 rows from snapshot c7 via q\n")
    assert many.endswith("\n9\n… 20 more rows")


def test_overlong_cells_are_cut_and_control_characters_shown():
    shown = repr(result_of({"t": (TEXT, ["x" * 50, "a\nb"])})).split("\n")
    assert shown[3:] == ["x" * 39 + "…", "a\\nb"]


def test_a_notebook_shows_an_escaped_table():
    html = result_of({"<b>": (TEXT, ["<script>&"] * 21)})._repr_html_()
    assert "<script>" not in html
    assert "<th>&lt;b&gt;</th>" in html
    assert html.count("<td>&lt;script&gt;&amp;</td>") == 20
    assert "… 1 more row" in html
