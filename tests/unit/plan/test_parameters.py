"""Parameter values from JSON and from Python, and what is said about those that do not fit."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any, cast
from uuid import UUID

import numpy as np
import pytest

from omnigraph.errors import HostValueError, ParameterError
from omnigraph.plan.ir import ParameterSpec
from omnigraph.plan.params import Mode, bind_host_values, bind_parameters
from tests.unit.plan.compiling import mutation, read


def declared(type: str) -> tuple[ParameterSpec, ...]:
    """One declared parameter `x`."""
    return mutation("delete Maker where age = 1", f"$x: {type}").parameters


def bind(type: str, value: object, mode: Mode = Mode.STANDARD) -> object:
    return bind_parameters(declared(type), {"x": value}, mode)["x"]


def refused(type: str, value: object, mode: Mode = Mode.STANDARD) -> str:
    """What is said about a value; the message names the parameter."""
    with pytest.raises(ParameterError) as caught:
        bind(type, value, mode)
    assert caught.value.parameter == "x"
    message = str(caught.value)
    assert message.startswith("param 'x': ")
    return message


# fmt: off
# One row per line.
ACCEPTED = [
    ("String", "a", "a"),
    ("String", "", ""),
    ("I32", 7, 7),
    pytest.param("I32", "7", 7, marks=pytest.mark.acceptance("L-165")),
    ("I32", "-7", -7),
    ("I32", -(2**31), -(2**31)),
    ("I32", 2**31 - 1, 2**31 - 1),
    ("I64", 2**63 - 1, 2**63 - 1),
    ("I64", "-9223372036854775808", -(2**63)),
    ("U32", 2**32 - 1, 2**32 - 1),
    ("U32", "0", 0),
    ("U64", 2**63 - 1, 2**63 - 1),
    ("U64", "9223372036854775807", 2**63 - 1),
    ("F32", 1.5, 1.5),
    ("F64", 3, 3.0),
    ("F64", 2**53 + 1, float(2**53)),
    ("Bool", False, False),
    ("Date", "2021-07-15", 18823),
    ("Date", "2026-4-9", 20552),
    ("DateTime", "1970-01-02", 86_400_000),
    ("DateTime", "2019-05-01T10:00:00+02:00", 1_556_697_600_000),
    ("Blob", "base64:SGk=", "base64:SGk="),
    ("Blob", "s3://bucket/key", "s3://bucket/key"),
    ("[I32]", [1, "2"], [1, 2]),
    ("[I32]", [], []),
    ("[Date]", ["1970-01-02"], [1]),
    ("Vector(2)", [1, 0.5], [1.0, 0.5]),
    ("String?", None, None),
    ("[I32]?", None, None),
]

REFUSED = [
    ("String", 3, "expected string, got number"),
    ("String", True, "expected string, got boolean"),
    ("String", ["a"], "expected string, got array"),
    ("String", {}, "expected string, got object"),
    ("String", "a\ud800", "string holds half of a surrogate pair"),
    ("Blob", "\udc00", "string holds half of a surrogate pair"),
    ("[String]", ["a", "\ud800"], "string holds half of a surrogate pair"),
    ("I32", True, "expected integer"),
    ("I32", [1], "expected integer"),
    ("I32", 7.0, "expected integer number"),
    ("I32", 7.5, "expected integer number"),
    ("I32", "seven", "expected integer string, got 'seven'"),
    ("I32", "7.0", "expected integer string, got '7.0'"),
    ("I32", "1_000", "expected integer string, got '1_000'"),
    ("I32", " 7", "expected integer string, got ' 7'"),
    ("I32", "٧", "expected integer string, got '٧'"),
    ("I32", "", "expected integer string, got ''"),
    ("I32", 2**31, "exceeds I32"),
    ("I32", "-2147483649", "exceeds I32"),
    ("I64", True, "expected integer"),
    ("I64", "x", "expected integer string, got 'x'"),
    ("I64", 1e300, "expected integer number"),
    ("U32", -1, "expected unsigned integer"),
    ("U32", "-1", "expected unsigned integer"),
    ("U32", 1.0, "expected unsigned integer"),
    ("U32", True, "expected unsigned integer"),
    ("U32", 2**32, "exceeds U32"),
    ("U32", "4294967296", "exceeds U32"),
    ("U64", 2**63, "exceeds current engine range for U64"),
    ("U64", str(2**63), "exceeds current engine range for U64"),
    ("U64", 2**64, "exceeds current engine range for U64"),
    ("U64", -1, "expected unsigned integer"),
    ("F32", "1.5", "expected float"),
    ("F64", True, "expected float"),
    ("F64", None, "null is not accepted for non-nullable parameter"),
    ("Bool", 1, "expected boolean"),
    ("Bool", "true", "expected boolean"),
    ("Date", 18823, "expected date string"),
    ("Date", "15/07/2021", "invalid Date literal '15/07/2021'"),
    ("DateTime", 0, "expected datetime string"),
    ("DateTime", "now", "invalid DateTime literal 'now'"),
    ("Blob", 3, "expected blob URI string"),
    ("[I32]", 3, "expected array for [I32]"),
    ("[String]", "a", "expected array for [String]"),
    ("[I32]", [1, "x"], "expected integer string, got 'x'"),
    ("[String]", ["a", None], "null"),
    ("Vector(3)", [1, 2], "expected 3 values for Vector(3), got 2"),
    ("Vector(3)", [1, 2, 3, 4], "expected 3 values for Vector(3), got 4"),
    ("Vector(2)", [1, "2"], "vector element is not numeric"),
    ("Vector(2)", [1, True], "vector element is not numeric"),
    ("Vector(2)", [1, None], "vector element is not numeric"),
    ("Vector(2)", "x", "Vector(2)"),
    ("Vector(2)", [0.5, -1e39], "value -1e+39 exceeds F32"),
    ("Vector(2)", [0.5, math.nan], "expected float that is finite"),
    pytest.param("String", None, "null is not accepted for non-nullable parameter", marks=pytest.mark.acceptance("L-164")),
]
# fmt: on


@pytest.mark.parametrize(("type", "value", "bound"), ACCEPTED)
def test_a_value_that_fits_is_converted(type, value, bound):
    found = bind(type, value)
    assert (found, found.__class__) == (bound, bound.__class__)


@pytest.mark.parametrize(("type", "value", "message"), REFUSED)
def test_a_value_that_does_not_fit_is_refused(type, value, message):
    assert message in refused(type, value)


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("type", ["I32", "U64", "F64"])
@pytest.mark.parametrize("digits", [400, 5000])
def test_a_number_with_very_many_digits_is_refused_in_few_words(type, digits, mode):
    assert len(refused(type, 10**digits, mode)) < 200
    assert len(refused(type, -(10**digits), mode)) < 200


# -- the object ---------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [[], "x", 3, True])
def test_parameters_come_as_an_object(given):
    with pytest.raises(ParameterError, match="params must be a JSON object"):
        bind_parameters((), given)


@pytest.mark.parametrize("given", [None, {}])
def test_no_parameters_are_an_empty_object(given):
    assert bind_parameters((), given) == {}


@pytest.mark.parametrize("given", [None, {}, {"a": None}])
def test_an_omitted_nullable_parameter_is_null(given):
    plan = read("$m: Maker { age: $a }", params="$a: I32?")
    assert bind_parameters(plan.parameters, given) == {"a": None}


@pytest.mark.acceptance("L-163")
@pytest.mark.parametrize("given", [None, {}])
def test_an_omitted_parameter_is_an_error(given):
    plan = read("$m: Maker { handle: $who }", params="$who: String")
    with pytest.raises(ParameterError, match="parameter 'who' not provided") as caught:
        bind_parameters(plan.parameters, given)
    assert caught.value.parameter == "who"


@pytest.mark.parametrize("binds", [bind_parameters, bind_host_values])
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"who": "ada", "other": 1}, "unknown parameter 'other' (declared: who, age)"),
        (
            {"wo": "ada"},
            "unknown parameter 'wo' (declared: who, age)",
        ),
        (
            {"whoo": None},
            "unknown parameter 'whoo' (declared: who, age); did you mean `who`?",
        ),
        (
            {"$who": "ada"},
            "unknown parameter '$who' (declared: who, age); omit the `$`",
        ),
        ({"who": "ada", "x": {}}, "unknown parameter 'x' (declared: who, age)"),
    ],
)
def test_an_undeclared_parameter_is_refused_and_the_declared_ones_named(binds, given, message):
    plan = read("$m: Maker { handle: $who, age: $age }", params="$who: String, $age: I32?")
    with pytest.raises(ParameterError) as caught:
        binds(plan.parameters, given)
    assert str(caught.value) == message
    assert caught.value.parameter in given


def test_a_query_without_parameters_says_so():
    with pytest.raises(ParameterError, match=r"unknown parameter 'x' \(none is declared\)"):
        bind_parameters((), {"x": 1})


def test_python_parameters_come_as_a_mapping():
    with pytest.raises(ParameterError, match="params must be a mapping of names to values, not a"):
        bind_host_values((), cast(Any, ["x"]))


def test_a_host_may_set_the_time():
    given = {"__nanograph_now": "1970-01-02T00:00:00Z"}
    assert bind_parameters((), given) == {"__nanograph_now": 86_400_000}


def test_the_time_must_be_a_time():
    with pytest.raises(ParameterError, match="invalid DateTime literal"):
        bind_parameters((), {"__nanograph_now": "soon"})


# -- JavaScript-safe mode -----------------------------------------------------------------------

SAFE = 2**53 - 1


@pytest.mark.parametrize(
    ("type", "value", "bound"),
    [
        ("I32", 7.0, 7),
        ("I64", float(SAFE), SAFE),
        ("I64", SAFE, SAFE),
        ("I64", -SAFE, -SAFE),
        ("I64", str(2**63 - 1), 2**63 - 1),
        ("U32", 7.0, 7),
        ("U64", str(2**60), 2**60),
        ("F64", 0.5, 0.5),
        ("[I32]", [1.0], [1]),
        ("String", "a", "a"),
    ],
)
def test_javascript_numbers_are_accepted(type, value, bound):
    found = bind(type, value, Mode.JS_SAFE)
    assert (found, found.__class__) == (bound, bound.__class__)


@pytest.mark.parametrize(
    ("type", "value", "message"),
    [
        ("I64", 2**53, "exceeds JS safe integer range"),
        ("I64", -(2**53), "exceeds JS safe integer range"),
        ("I64", 1e300, "exceeds JS safe integer range"),
        ("U64", 2**53, "exceeds JS safe integer range"),
        ("I32", 2**31, "exceeds I32"),
        ("I32", 7.5, "expected integer"),
        ("I32", True, "expected integer, got boolean"),
        ("U32", [], "expected unsigned integer, got array"),
        ("F64", "x", "expected float, got string"),
        ("Bool", 1, "expected boolean, got number"),
        ("Date", 1, "expected date string, got number"),
        ("DateTime", True, "expected datetime string, got boolean"),
        ("Blob", 1, "expected blob URI string, got number"),
        ("[I32]", {}, "expected array for [I32], got object"),
        ("String", 1, "expected string, got number"),
    ],
)
def test_javascript_numbers_out_of_reach_are_refused(type, value, message):
    assert message in refused(type, value, Mode.JS_SAFE)


# -- Python values ------------------------------------------------------------------------------


def host(type: str, value: object) -> object:
    return bind_host_values(declared(type), {"x": value})["x"]


@pytest.mark.parametrize(
    ("type", "value", "bound"),
    [
        ("String", "a", "a"),
        ("Bool", True, True),
        ("I64", -(2**63), -(2**63)),
        ("F64", 2.5, 2.5),
        ("F64", 2, 2.0),
        ("Date", dt.date(2021, 7, 15), 18823),
        ("Date", "2021-07-15", 18823),
        ("DateTime", dt.datetime(1970, 1, 2), 86_400_000),
        ("DateTime", dt.datetime(1970, 1, 2, tzinfo=dt.UTC), 86_400_000),
        (
            "DateTime",
            dt.datetime(1970, 1, 2, 1, tzinfo=dt.timezone(dt.timedelta(hours=1))),
            86_400_000,
        ),
        ("DateTime", dt.datetime(1970, 1, 1, 0, 0, 0, 1999), 1),
        ("[Date]", [dt.date(1970, 1, 2)], [1]),
        ("[I32]", (1, 2), [1, 2]),
        ("Vector(2)", [1.0, 2], [1.0, 2.0]),
        ("Vector(2)", (1.0, -2.5), [1.0, -2.5]),
        ("[F64]", [1.0, 1e300], [1.0, 1e300]),
        ("String?", None, None),
        ("String", UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        ("[String]", [UUID(int=0)], ["00000000-0000-0000-0000-000000000000"]),
        ("Blob", b"Hi", "base64:SGk="),
        ("Blob", bytearray(b""), "base64:"),
        ("Vector(2)", np.array([1, 0.5], np.float32), [1.0, 0.5]),
        ("[I64]", np.arange(3), [0, 1, 2]),
        ("I32", np.int64(7), 7),
        ("[Date]", np.array(["1970-01-02"], "datetime64[D]"), [1]),
    ],
)
def test_a_python_value_is_converted(type, value, bound):
    found = host(type, value)
    assert (found, found.__class__) == (bound, bound.__class__)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (2**63, "exceeds current engine range"),
        (-(2**63) - 1, "exceeds current engine range"),
        ([2**63], "exceeds current engine range"),
        (math.nan, "invalid float parameter"),
        (math.inf, "invalid float parameter"),
        ([1.0, -math.inf], "invalid float parameter"),
        (dt.datetime(1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=1))), "years 1 to 9999"),
        (object(), ""),
        ({"a": 1}, ""),
    ],
)
def test_a_python_value_the_engine_cannot_hold_is_an_execution_error(value, message):
    with pytest.raises(HostValueError) as caught:
        host("DateTime", value)
    assert str(caught.value).startswith("execution error: param 'x': ")
    assert message in str(caught.value)
    assert caught.value.parameter == "x"


@pytest.mark.parametrize(
    ("type", "value", "message"),
    [
        ("I32", 2**31, "exceeds I32"),
        ("I32", True, "expected integer"),
        ("String", None, "null is not accepted for non-nullable parameter"),
        ("Vector(2)", [1.0], "expected 2 values for Vector(2), got 1"),
        ("Vector(2)", [1.0, 1e39], "value 1e+39 exceeds F32"),
        ("I32", [1.0, 2.0], "expected integer (I32), got a Python list"),
        ("I32?", True, "expected integer (I32), got a Python bool"),
        ("String", 7, "expected string (String), got a Python int"),
        ("[String]", "a", "expected array for [String], got a Python str"),
        ("[I32]", [1, 2.5], "expected integer number ([I32]), got a Python float"),
        ("Date", 3, "expected date string (Date), got a Python int"),
        ("Date", dt.datetime(1970, 1, 2), "expected Date, got a Python datetime"),
        ("DateTime", dt.date(1970, 1, 2), "expected DateTime, got a Python date"),
        ("I64", UUID(int=1), "expected I64, got a Python UUID"),
        ("String", b"Hi", "expected String, got a Python bytes"),
        ("Blob", 7, "expected blob URI string (Blob), got a Python int"),
    ],
)
def test_python_values_keep_the_same_rules(type, value, message):
    with pytest.raises(ParameterError, match="param 'x': ") as caught:
        host(type, value)
    assert message in str(caught.value)


def test_a_missing_python_value_is_an_error():
    with pytest.raises(ParameterError, match="parameter 'x' not provided"):
        bind_host_values(declared("String"), {})
