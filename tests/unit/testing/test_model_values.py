"""How input becomes a stored value of the reference graph, and how that value compares and leaves."""

from __future__ import annotations

import pytest

from omnigraph.language.query.ast import Operator
from omnigraph.language.types import PropType, Scalar
from tests.support.model.values import BadValue, from_json, from_query, matches, to_export


def scalar(name: str) -> PropType:
    return PropType(Scalar(name))


VECTOR = PropType(Scalar.VECTOR, dimension=2)
TEXTS = PropType(Scalar.STRING, list=True)
NUMBERS = PropType(Scalar.I32, list=True)


@pytest.mark.parametrize(
    ("kind", "given", "stored"),
    [
        (scalar("String"), "", ""),
        (scalar("Bool"), False, False),
        (scalar("I32"), -(2**31), -(2**31)),
        (scalar("U64"), 2**64 - 1, 2**64 - 1),
        (scalar("F64"), 3, 3.0),
        (scalar("F64"), 0.1, 0.1),
        (scalar("F32"), 0.4, 0.4000000059604645),
        (scalar("Date"), "2021-07-15", 18823),
        (scalar("Date"), -1, -1),
        (scalar("DateTime"), "2019-05-01T10:00:00+02:00", 1556697600000),
        (scalar("DateTime"), 5, 5),
        (scalar("Blob"), "base64:SGk=", b"Hi"),
        (scalar("Blob"), "s3://bucket/key", "s3://bucket/key"),
        (TEXTS, ["a", None], ("a", None)),
        (TEXTS, [], ()),
        (VECTOR, [1, 0.1], (1.0, 0.10000000149011612)),
        (VECTOR, None, None),
    ],
)
def test_load_input_that_fits(kind, given, stored):
    assert from_json(given, "p", kind) == stored


@pytest.mark.parametrize(
    ("kind", "given", "message"),
    [
        (scalar("String"), 3, "property 'p' expects String, got number"),
        (scalar("String"), True, "property 'p' expects String, got boolean"),
        (scalar("Bool"), 1, "property 'p' expects Bool, got number"),
        (scalar("I32"), True, "property 'p' expects I32, got boolean"),
        (scalar("I32"), 3.0, "property 'p' expects I32, got number"),
        (scalar("I32"), 2**31, "value out of range for I32"),
        (scalar("U32"), -1, "value out of range for U32"),
        (scalar("I64"), 2**63, "value out of range for I64"),
        (scalar("F64"), "3", "property 'p' expects F64, got string"),
        (scalar("F32"), 1e39, "value out of range for F32"),
        (scalar("F64"), 10**400, "value out of range for F64"),
        (scalar("Date"), "soon", "invalid Date literal 'soon'"),
        (scalar("Date"), 2**31, "Date value out of range"),
        (scalar("Date"), 1.5, "property 'p' expects Date, got number"),
        (scalar("Date"), {}, "property 'p' expects Date, got object"),
        (scalar("DateTime"), 2**63, "DateTime value out of range"),
        (scalar("DateTime"), [], "property 'p' expects DateTime, got array"),
        (scalar("Blob"), 1, "must be a URI string or base64: prefixed data"),
        (scalar("Blob"), "base64:SGk", "invalid base64 blob data"),
        (scalar("Blob"), "base64:S Gk=", "invalid base64 blob data"),
        (TEXTS, "a", "property 'p' expects a JSON array, got string"),
        (TEXTS, ["a", 3], "element 2 of 'p' expects String, got number"),
        (NUMBERS, [2**31], "element 1 of 'p': value out of range for I32"),
        (VECTOR, [1.0], "vector property 'p' expects 2 dimensions, got 1"),
        (VECTOR, [1.0, "x"], "property 'p' expects Vector(2)"),
        (VECTOR, [1.0, None], "property 'p' expects Vector(2)"),
        (VECTOR, 7, "property 'p' expects Vector(2), got number"),
    ],
)
def test_load_input_that_does_not_fit(kind, given, message):
    with pytest.raises(BadValue) as error:
        from_json(given, "p", kind)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("kind", "given", "stored"),
    [
        (scalar("F64"), 5, 5.0),
        (scalar("F32"), 0.4, 0.4000000059604645),
        (scalar("I32"), 5.0, 5),
        (scalar("Bool"), True, True),
        (scalar("Blob"), "base64:SGk=", b"Hi"),
        (scalar("DateTime"), 7, 7),
        (NUMBERS, (1.0, 2), (1, 2)),
        (VECTOR, [1, 2.5], (1.0, 2.5)),
    ],
)
def test_query_values_that_convert_without_loss(kind, given, stored):
    converted = from_query(given, "p", kind)
    assert (converted, type(converted)) == (stored, type(stored))


@pytest.mark.parametrize(
    ("kind", "given", "message"),
    [
        (scalar("I32"), 2.5, "property 'p': cannot convert 2.5 to I32"),
        (scalar("I32"), 3000000000, "out of range for I32"),
        (scalar("U32"), -1.0, "out of range for U32"),
        (scalar("F32"), 16777217, "cannot convert 16777217 to F32"),
        (scalar("F64"), 2**53 + 1, "cannot convert"),
        (scalar("F32"), 1e39, "out of range for F32"),
        (NUMBERS, (1, 2.5), "property 'p': cannot convert 2.5"),
        (VECTOR, (1.0,), "vector property 'p' expects 2 dimensions, got 1"),
    ],
)
def test_query_values_that_would_lose_something(kind, given, message):
    with pytest.raises(BadValue) as error:
        from_query(given, "p", kind)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("stored", "comparison", "given", "kind", "expected"),
    [
        (None, Operator.EQ, None, Scalar.I32, False),
        (None, Operator.NE, 3, Scalar.I32, False),
        (3, Operator.NE, None, Scalar.I32, False),
        (3, Operator.LT, 3000000000, Scalar.I32, True),
        (3, Operator.EQ, 3.0, Scalar.I32, True),
        (3, Operator.EQ, 2.7, Scalar.I32, False),
        (0.4000000059604645, Operator.EQ, 0.4, Scalar.F32, True),
        (3.0, Operator.LT, 1e39, Scalar.F32, True),
        ("B", Operator.LT, "a", Scalar.STRING, True),
        ("z", Operator.LT, "é", Scalar.STRING, True),
        (False, Operator.LT, True, Scalar.BOOL, True),
        (5, Operator.GE, 5, Scalar.DATE, True),
        (5, Operator.GT, 5, Scalar.DATE, False),
        (5, Operator.LE, 4, Scalar.DATE, False),
    ],
)
def test_predicates_compare_by_value_and_never_match_null(
    stored, comparison, given, kind, expected
):
    assert matches(stored, comparison, given, kind) is expected


@pytest.mark.parametrize(
    ("kind", "stored", "written"),
    [
        (scalar("Date"), 18823, 18823),
        (scalar("DateTime"), 1556697600000, "2019-05-01T08:00:00"),
        (scalar("DateTime"), 1556697600250, "2019-05-01T08:00:00.250"),
        (PropType(Scalar.DATETIME, list=True), (0, None), ["1970-01-01T00:00:00", None]),
        (scalar("Blob"), b"Hi", "base64:SGk="),
        (scalar("Blob"), "s3://bucket/key", "s3://bucket/key"),
        (VECTOR, (1.0, 2.0), [1.0, 2.0]),
        (scalar("String"), None, None),
    ],
)
def test_values_are_written_as_the_loader_reads_them(kind, stored, written):
    assert to_export(stored, kind) == written
    assert from_json(written, "p", kind) == stored
