"""Values of every source become what their property wants, or an error that says why not."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from omnigraph.errors import LoadError
from tests.unit.load.loading import catalog_of, load, rows_of

ALL = catalog_of(
    """
node Thing {
    flag: Bool?  small: I32?  wide: I64?  count: U32?  huge: U64?
    single: F32?  double: F64?  day: Date?  moment: DateTime?
    text: String?  mood: enum(bad, good)?  blob: Blob?  vec: Vector(2)?
    texts: [String]?  days: [Date]?  doubles: [F64]?  flags: [Bool]?
}
"""
)
REQUIRED = catalog_of("node Need { vec: Vector(2)  blob: Blob  text: String  list: [I32] }")


def stored(name, value):
    """The stored value of a JSON value."""
    (row,) = rows_of(load(json.dumps({"type": "Thing", "data": {name: value}}), ALL), "node:Thing")
    return row[name]


def from_table(name, column):
    """The stored values of a column."""
    result = load({"Thing": pa.table({name: column})}, ALL)
    return [row[name] for row in rows_of(result, "node:Thing")]


def messages(given, catalog=ALL):
    with pytest.raises(LoadError) as caught:
        load(given, catalog)
    return [(e.code, e.property, e.message) for e in caught.value.load_errors]


def complaint(name, value):
    """What is said about a JSON value that does not fit."""
    ((code, prop, message),) = messages(json.dumps({"type": "Thing", "data": {name: value}}))
    assert (code, prop) == ("bad_value", name)
    return message


# JSON


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("flag", True, True),
        ("small", -(2**31), -(2**31)),
        ("wide", 2**63 - 1, 2**63 - 1),
        ("count", 2**32 - 1, 2**32 - 1),
        ("huge", 2**64 - 1, 2**64 - 1),
        ("single", 0.4, 0.4000000059604645),
        ("single", 3, 3.0),
        ("double", 12345678901234567890, 12345678901234567000.0),
        ("day", "2026-4-9", 20552),
        ("day", "20210715", 18823),
        ("day", "2021-07-15T23:30:00-02:00", 18824),
        ("day", "+10999-12-31", 3298139),
        ("day", -5, -5),
        ("moment", "2019-05-01", 1556668800000),
        ("moment", "2019-05-01 08:00:00.1239", 1556697600123),
        ("moment", "2019-05-01t08:00:00+0130", 1556692200000),
        ("moment", 10**15, 10**15),
        ("text", "", ""),
        ("text", '\x00ä😀"\\\n', '\x00ä😀"\\\n'),
        ("mood", "good", "good"),
        ("blob", "base64:", b""),
        ("blob", "base64:/+8=", b"\xff\xef"),
        ("blob", "s3://bucket/key", "s3://bucket/key"),
        ("blob", "", ""),
        ("vec", [1, 0.1], (1.0, 0.10000000149011612)),
        ("texts", ["a", None], ("a", None)),
        ("texts", [], ()),
        ("days", ["2021-07-15", None], (18823, None)),
        ("days", [18823, 1], (18823, 1)),
        ("days", ["2021-07-15", 1], (18823, 1)),
        ("doubles", [1, 0.5, None], (1.0, 0.5, None)),
        ("flags", [True, None, False], (True, None, False)),
    ],
)
def test_json_becomes_a_value(name, value, expected):
    assert stored(name, value) == expected


@pytest.mark.parametrize("name", list(ALL.nodes["Thing"].properties))
def test_null_and_absence_are_null(name):
    assert stored(name, None) is None
    assert rows_of(load('{"type":"Thing"}', ALL), "node:Thing")[0][name] is None


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("flag", "true", "property 'flag' expects Bool, got string"),
        ("flag", 1, "property 'flag' expects Bool, got number"),
        ("small", 3.0, "property 'small' expects I32, got number"),
        ("small", True, "property 'small' expects I32, got boolean"),
        ("small", 2**31, "property 'small': value out of range for I32"),
        ("wide", 2**63, "property 'wide': value out of range for I64"),
        ("count", -1, "property 'count': value out of range for U32"),
        ("huge", 2**64, "property 'huge': value out of range for U64"),
        ("huge", {}, "property 'huge' expects U64, got object"),
        ("single", 1e39, "property 'single': value out of range for F32"),
        ("double", "1", "property 'double' expects F64, got string"),
        ("double", [1], "property 'double' expects F64, got array"),
        ("day", "2021-02-29", "property 'day': invalid Date literal '2021-02-29'"),
        ("day", 2**31, "property 'day': Date value out of range"),
        ("day", 1.5, "property 'day' expects Date, got number"),
        ("moment", "yesterday", "property 'moment': invalid DateTime literal 'yesterday'"),
        ("moment", 2**63, "property 'moment': DateTime value out of range"),
        ("moment", True, "property 'moment' expects DateTime, got boolean"),
        ("text", 3, "property 'text' expects String, got number"),
        ("mood", [], "property 'mood' expects String, got array"),
        ("blob", 3, "property 'blob' must be a URI string or base64: prefixed data"),
        ("blob", "base64:SGk", "property 'blob': invalid base64 blob data"),
        ("blob", "base64:SG k=", "property 'blob': invalid base64 blob data"),
        ("vec", [1], "vector property 'vec' expects 2 dimensions, got 1"),
        ("vec", [], "vector property 'vec' expects 2 dimensions, got 0"),
        ("vec", "x", "property 'vec' expects Vector(2), got string"),
        ("vec", [1, "x"], "property 'vec' expects Vector(2): element 2 is not a number"),
        ("vec", [1, None], "property 'vec' expects Vector(2): element 2 is not a number"),
        ("vec", [1, True], "property 'vec' expects Vector(2): element 2 is not a number"),
        ("vec", [1e39, 1], "element 1 of 'vec': value out of range for F32"),
        ("texts", "a", "property 'texts' expects a JSON array, got string"),
        ("texts", {"a": 1}, "property 'texts' expects a JSON array, got object"),
        ("texts", ["a", 3], "element 2 of 'texts' expects String, got number"),
        ("days", ["2021-07-15", "x"], "element 2 of 'days': invalid Date literal 'x'"),
        ("doubles", [[1]], "element 1 of 'doubles' expects F64, got array"),
    ],
)
def test_json_that_does_not_fit_is_refused(name, value, message):
    assert complaint(name, value) == message


def test_a_number_too_large_for_any_float_is_refused():
    text = '{"type":"Thing","data":{"double":1e400}}'
    assert messages(text) == [
        ("bad_value", "double", "property 'double': value out of range for F64")
    ]
    huge = "1" * 400
    text = f'{{"type":"Thing","data":{{"double":{huge}}}}}'
    assert messages(text) == [
        ("bad_value", "double", "property 'double': value out of range for F64")
    ]


def test_every_misfit_of_a_record_is_reported_by_property():
    given = json.dumps({"type": "Thing", "data": {"small": "x", "flag": 1, "mood": "ugly"}})
    assert [(code, prop) for code, prop, _ in messages(given)] == [
        ("bad_value", "flag"),
        ("bad_value", "small"),
        ("enum", "mood"),
    ]


def test_a_missing_required_value_is_reported():
    assert messages('{"type":"Need"}', REQUIRED) == [
        ("missing_value", "blob", "non-nullable blob property 'blob' has null value"),
        ("missing_value", "list", "non-nullable property 'list' has null value"),
        ("missing_value", "text", "non-nullable property 'text' has null value"),
        ("missing_value", "vec", "non-nullable vector property 'vec' has null value"),
    ]


@pytest.mark.parametrize(
    ("record", "code", "message"),
    [
        ("[1]", "bad_record", "expected 'type' or 'edge' field"),
        ('"x"', "bad_record", "expected 'type' or 'edge' field"),
        ('{"type":3}', "bad_record", "expected 'type' or 'edge' field"),
        ('{"type":"Thing","data":[]}', "bad_record", "'data' must be a JSON object"),
        (
            '{"type":"thing"}',
            "unknown_type",
            "unknown node type 'thing'; did you mean `Thing`?",
        ),
        ('{"edge":"Gone","from":"a","to":"b"}', "unknown_type", "unknown edge type 'Gone'"),
        ('{"type":"Ghost","edge":"Thing"}', "unknown_type", "unknown node type 'Ghost'"),
    ],
)
def test_a_record_of_no_type_is_refused(record, code, message):
    assert messages(record.encode()) == [(code, None, message)]


@pytest.mark.parametrize(
    "record",
    [
        '{"data":{"small":7},"type":"Thing"}',
        '{ "type" : "Thing" , "data" : { "small" : 7 } }',
        '{"note":{"deep":[{}]},"type":"Thing","id":"ignored","data":{"small":7}}',
        '{"type":"Thing","edge":"Thing","from":3,"data":{"small":7}}',
        '{"type":"Th\\u0069ng","data":{"sm\\u0061ll":7}}',
        '{"type":"Thing","data":{"small":7},"edge":null}',
    ],
)
def test_a_record_may_be_written_in_many_ways(record):
    assert [row["small"] for row in rows_of(load(record, ALL), "node:Thing")] == [7]


def test_constraints_speak_of_the_value():
    catalog = catalog_of(
        """
node Box {
    kind: enum(big, small)?
    load: F32?
    count: I64?
    code: String?
    codes: [String]?
    loads: [F64]?
    @range(load, 0.5..)
    @range(count, ..10)
    @check(code, "^[a-z]+$")
    @check(codes, "^[a-z]+$")
    @range(loads, 0..1)
}
"""
    )
    ok = {"kind": "big", "load": 0.5, "count": 10, "code": "abc", "codes": ["1"], "loads": [7]}
    load(json.dumps({"type": "Box", "data": ok}), catalog)
    bad = {"kind": "tiny", "load": 0.25, "count": 11, "code": "a b"}
    assert messages(json.dumps({"type": "Box", "data": bad}), catalog) == [
        ("enum", "kind", "invalid enum value 'tiny' for Box.kind (expected: big, small)"),
        ("range", "count", "@range violation on Box.count: value 11 > max 10"),
        ("range", "load", "@range violation on Box.load: value 0.25 < min 0.5"),
        (
            "check",
            "code",
            "@check violation on Box.code: value 'a b' does not match pattern '^[a-z]+$'",
        ),
    ]


def test_an_invalid_pattern_fails_every_row_of_its_type():
    catalog = catalog_of('node Box { code: String?  @check(code, "(") }')
    ((code, prop, message),) = messages('{"type":"Box"}', catalog)
    assert (code, prop) == ("check", "code")
    assert "@check on Box.code has invalid regex '('" in message


# Tables


@pytest.mark.parametrize(
    ("name", "column", "expected"),
    [
        ("small", pa.array([1, None], pa.int64()), [1, None]),
        ("small", pa.array([1], pa.uint8()), [1]),
        ("huge", pa.array([Decimal(2**64 - 1)], pa.decimal128(20, 0)), [2**64 - 1]),
        ("wide", pa.array([Decimal("-3")], pa.decimal256(40, 0)), [-3]),
        ("double", pa.array([2**53, None], pa.int64()), [2.0**53, None]),
        ("double", pa.array([0.5], pa.float32()), [0.5]),
        ("double", pa.array([Decimal("0.1")], pa.decimal128(5, 2)), [0.1]),
        ("single", pa.array([0.1]), [0.10000000149011612]),
        ("flag", pa.array([True, None]), [True, None]),
        ("text", pa.array(["a", "b", None]).dictionary_encode(), ["a", "b", None]),
        (
            "text",
            pa.DictionaryArray.from_arrays(
                pa.array([1, None, 0]), pa.array(["a", "b"], pa.string_view())
            ),
            ["b", None, "a"],
        ),
        ("text", pa.array(["a"], pa.large_utf8()), ["a"]),
        ("text", pa.array(["a", "b"], pa.string_view()), ["a", "b"]),
        ("text", pa.nulls(2), [None, None]),
        ("mood", pa.array(["good"]), ["good"]),
        ("day", pa.array(["2021-07-15"]), [18823]),
        ("day", pa.array([dt.date(2021, 7, 15)]), [18823]),
        ("day", pa.array([18823]), [18823]),
        ("day", pa.array([dt.datetime(1969, 12, 31, 23)], pa.timestamp("ns")), [-1]),
        ("moment", pa.array([dt.date(1970, 1, 2)]), [86_400_000]),
        ("moment", pa.array([1999, -1], pa.timestamp("us")), [1, -1]),
        ("moment", pa.array([5], pa.timestamp("s", "Europe/Berlin")), [5000]),
        ("moment", pa.array([None, 7], pa.timestamp("ms")), [None, 7]),
        ("blob", pa.array([b"\x00", None], pa.binary()), [b"\x00", None]),
        ("blob", pa.array(["base64:SGk=", "file:///x"]), [b"Hi", "file:///x"]),
        ("vec", pa.array([[1.0, 2.0], None], pa.list_(pa.float64(), 2)), [(1.0, 2.0), None]),
        ("vec", pa.array([[1, 2], None], pa.large_list(pa.int8())), [(1.0, 2.0), None]),
        ("texts", pa.array([["a", None], None, []]), [("a", None), None, ()]),
        ("texts", pa.array([[None]], pa.list_(pa.null())), [(None,)]),
        ("texts", pa.array([["a", None]], pa.large_list(pa.string_view())), [("a", None)]),
        ("days", pa.array([[dt.date(1970, 1, 2)]]), [(1,)]),
        ("doubles", pa.array([[1, 2]], pa.list_(pa.int32(), 2)), [(1.0, 2.0)]),
    ],
)
def test_a_column_becomes_a_property(name, column, expected):
    assert from_table(name, column) == expected


@pytest.mark.parametrize(
    ("name", "column", "message"),
    [
        ("small", pa.array([1, 2**31]), "property 'small': value out of range for I32"),
        ("count", pa.array([1, -1]), "property 'count': value out of range for U32"),
        ("small", pa.array([1.0, 2.0]).slice(1), "property 'small' expects I32, got number"),
        ("small", pa.array(["1"]), "property 'small' expects I32, got string"),
        (
            "wide",
            pa.array([Decimal(2**63)], pa.decimal128(20, 0)),
            "property 'wide': value out of range for I64",
        ),
        (
            "small",
            pa.array([Decimal("1.5")], pa.decimal128(5, 1)),
            "property 'small' expects I32, got number",
        ),
        ("double", pa.array([2**53 + 1]), "property 'double': 9007199254740993 has no exact F64"),
        ("single", pa.array([2**24 + 1]), "property 'single': 16777217 has no exact F32"),
        ("single", pa.array([1e39]), "property 'single': value out of range for F32"),
        ("text", pa.array([dt.date(2020, 1, 1)]), "property 'text' expects String, got date"),
        (
            "text",
            pa.array([5], pa.timestamp("ns")),
            "property 'text' expects String, got timestamp",
        ),
        ("text", pa.array([{"a": 1}]), "property 'text' expects String, got object"),
        ("text", pa.array([b"x"]), "property 'text' expects String, got binary"),
        ("flag", pa.array([1]), "property 'flag' expects Bool, got number"),
        ("mood", pa.array(["x"]), "invalid enum value 'x' for Thing.mood (expected: bad, good)"),
        ("day", pa.array(["x"]), "property 'day': invalid Date literal 'x'"),
        ("day", pa.array([2**40], pa.timestamp("s")), None),
        ("day", pa.array([2**55], pa.timestamp("s")), "property 'day': Date value out of range"),
        (
            "moment",
            pa.array([2**62], pa.timestamp("s")),
            "property 'moment': DateTime value out of range",
        ),
        ("blob", pa.array(["base64:?"]), "property 'blob': invalid base64 blob data"),
        ("vec", pa.array([[1.0]]), "vector property 'vec' expects 2 dimensions, got 1"),
        (
            "vec",
            pa.array([[1.0, None]]),
            "property 'vec' expects Vector(2): element 2 is not a number",
        ),
        ("texts", pa.array(["a"]), "property 'texts' expects a JSON array, got string"),
        ("texts", pa.array([["a"], [1]][1:]), "element 1 of 'texts' expects String, got number"),
        ("days", pa.array([["2020-01-01", "x"]]), "element 2 of 'days': invalid Date literal 'x'"),
    ],
)
def test_a_column_that_does_not_fit_is_refused(name, column, message):
    given = {"Thing": pa.table({name: column})}
    if message is None:
        assert load(given, ALL).records == 1
    else:
        assert [m for _, _, m in messages(given)] == [message]


def test_only_the_rows_that_do_not_fit_are_refused():
    ages = pa.array([1, 2**40, None, 3])
    with pytest.raises(LoadError) as caught:
        load({"Thing": pa.table({"small": ages})}, ALL)
    assert [e.record for e in caught.value.load_errors] == [2]
    good = load({"Thing": pa.table({"small": ages})}, ALL, quarantine=True)
    assert [row["small"] for row in rows_of(good, "node:Thing")] == [1, None, 3]
    assert good.quarantined[0].raw == '{"small":1099511627776}'


def test_a_key_cannot_be_a_number_that_is_not_finite():
    catalog = catalog_of("node At { x: F64 @key }")
    ((code, prop, message),) = messages({"At": pa.table({"x": [1.0, float("nan")]})}, catalog)
    assert (code, prop, message) == ("bad_value", "x", "property 'x': NaN is not a finite number")


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("name", "column", "message"),
    [
        ("double", pa.array([1.0, NAN]), "property 'double': NaN is not a finite number"),
        ("double", pa.array([1.0, -INF]), "property 'double': -Infinity is not a finite number"),
        ("double", pa.array([1, INF], pa.float32()), "property 'double': Infinity is not a finite number"),
        ("single", pa.array([1.0, NAN]), "property 'single': NaN is not a finite number"),
        ("single", pa.array([1, NAN], pa.float16()), "property 'single': NaN is not a finite number"),
        ("single", pa.array([1.0, 1e300]), "property 'single': value out of range for F32"),
        ("double", pa.array([1.0, NAN]).dictionary_encode(), "property 'double': NaN is not a finite number"),
        ("doubles", pa.array([[1.0], [1.0, INF]]), "element 2 of 'doubles': Infinity is not a finite number"),
        ("doubles", pa.array([[1.0], [NAN]], pa.large_list(pa.float32())), "element 1 of 'doubles': NaN is not a finite number"),
        ("vec", pa.array([[1.0, 2.0], [1.0, NAN]]), "element 2 of 'vec': NaN is not a finite number"),
        ("vec", pa.array([[1, 2], [INF, 1]], pa.list_(pa.float32(), 2)), "element 1 of 'vec': Infinity is not a finite number"),
    ],
)  # fmt: skip
def test_numbers_of_tables_that_are_not_finite_are_refused(tmp_path, name, column, message):
    table = pa.table({name: column})
    pq.write_table(table, tmp_path / "Thing.parquet")
    pl_frame = {} if column.type == pa.float16() else {"Thing": pl.from_arrow(table)}
    for given in ({"Thing": table}, tmp_path / "Thing.parquet", pl_frame):
        if given:
            with pytest.raises(LoadError) as caught:
                load(given, ALL)
            assert [(e.record, e.message) for e in caught.value.load_errors] == [(2, message)]


def test_pandas_writes_a_missing_number_as_nan():
    frame = pd.DataFrame({"double": [1.5, NAN], "single": [None, 2.5]})
    assert [
        (row["double"], row["single"]) for row in rows_of(load({"Thing": frame}, ALL), "node:Thing")
    ] == [(1.5, None), (None, 2.5)]
    frame = pd.DataFrame({"double": [1.5, INF]})
    assert messages({"Thing": frame}) == [
        ("bad_value", "double", "property 'double': Infinity is not a finite number")
    ]


def test_a_decimal_of_any_length_is_a_number():
    wide = pa.array([Decimal("1" * 40), Decimal(7)], pa.decimal256(50, 0))
    assert messages({"Thing": pa.table({"wide": wide})}) == [
        ("bad_value", "wide", "property 'wide': value out of range for I64")
    ]
    assert from_table("double", wide)[1] == 7.0


def test_an_end_that_is_no_text_is_missing():
    catalog = catalog_of("node At { x: I32 @key }\nedge To: At -> At")
    given = {"At": pa.table({"x": [1]}), "To": pa.table({"from": [1], "to": ["1"]})}
    assert [m for _, _, m in messages(given, catalog)] == ["edge missing 'from'"]
