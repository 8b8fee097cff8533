"""Ids of nodes and edges, and the folders of their tables."""

from __future__ import annotations

import json
import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.catalog.compile import compile_schema
from omnigraph.catalog.identity import canonical_text, edge_id, fnv1a64, node_id, table_directory
from omnigraph.catalog.model import EdgeType, NodeType
from omnigraph.language.syntax import Source
from omnigraph.language.types import Scalar
from omnigraph.language.values import parse_date


def node(body: str) -> NodeType:
    return compile_schema(Source("<schema>", f"node N {{ {body} }}")).nodes["N"]


def edge(body: str) -> EdgeType:
    text = f"node N {{ }} edge E: N -> N {{ {body} }}"
    return compile_schema(Source("<schema>", text)).edges["E"]


@pytest.mark.parametrize(
    ("written", "value", "text"),
    [
        ("String", "Ada é", "Ada é"),
        ("String", "", ""),
        ("enum(a, b)", "b", "b"),
        ("I32", -7, "-7"),
        ("I64", -(2**63), "-9223372036854775808"),
        ("U64", 2**64 - 1, "18446744073709551615"),
        ("Bool", True, "true"),
        ("Bool", False, "false"),
        ("Date", parse_date("2021-07-15"), "18823"),
        ("Date", -1, "-1"),
        ("DateTime", 1_556_697_600_000, "1556697600000"),
        ("F64", 7.0, "7"),
        ("F64", 0.0, "0"),
        ("F64", -0.0, "0"),
        ("F64", 0.1, "0.1"),
        ("F64", -2.5, "-2.5"),
        ("F64", 7, "7"),
        ("F32", struct.unpack("f", struct.pack("f", 0.1))[0], "0.1"),
        ("F32", 0.5, "0.5"),
        ("F32", -0.0, "0"),
        ("F32", 16777216.0, "16777216"),
        ("F32", 3.4025e38, "3.4025e+38"),
    ],
)
def test_a_key_value_has_one_text(written, value, text):
    assert node_id(node(f"k: {written} @key"), {"k": value}) == text


@pytest.mark.parametrize(
    ("written", "value"),
    [
        *((type, value) for type in ("F32", "F64") for value in (math.nan, math.inf, -math.inf)),
        ("F32", 1e39),
    ],
)
def test_a_float_that_is_not_finite_at_its_width_is_no_key(written, value):
    with pytest.raises(ValueError):
        node_id(node(f"k: {written} @key"), {"k": value})


def digits(text: str) -> int:
    """Significant digits of a number's text."""
    return len(text.partition("e")[0].lstrip("-").replace(".", "").strip("0"))


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_the_text_of_a_float_reads_back_and_is_the_shortest(value):
    text = canonical_text(value, Scalar.F64)
    assert float(text) == value
    assert not text.endswith(".0")
    assert digits(text) == digits(repr(value))


@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_the_text_of_a_float32_reads_back_at_its_own_width_and_is_the_shortest(written):
    value = written + 0.0  # there is one zero

    def reads_back(text: str) -> bool:
        try:
            return struct.pack("f", float(text)) == struct.pack("f", value)
        except OverflowError:
            return False

    text = canonical_text(written, Scalar.F32)
    assert reads_back(text)
    assert not text.endswith(".0")
    shortest = next(n for n in range(1, 10) if reads_back(f"{value:.{n - 1}e}"))
    assert value == 0 or digits(text) <= shortest


def test_a_composite_key_is_a_json_array_in_identity_order():
    slot = node("row: String  col: I64  @key(row, col)  note: String?")
    assert node_id(slot, {"row": "a", "col": 1}) == '["1","a"]'
    assert node_id(slot, {"row": "a", "col": 2, "note": "x"}) == '["2","a"]'


@pytest.mark.parametrize(
    ("value", "id"),
    [
        ('say "hi"', r'["say \"hi\"","7"]'),
        ("é日😀/", '["é日😀/","7"]'),
        ("a\\b\n\x01", r'["a\\b\n\u0001","7"]'),
    ],
)
def test_the_array_escapes_no_more_than_json_demands(value, id):
    found = node_id(node("a: String  b: I32  @key(a, b)"), {"a": value, "b": 7})
    assert found == id
    assert json.loads(found) == [value, "7"]


def test_a_node_without_key_has_no_derived_id():
    with pytest.raises(ValueError):
        node_id(node("a: String"), {"a": "x"})


@pytest.mark.parametrize(
    ("body", "values", "id"),
    [
        ("since: Date?  @unique(src, dst)", {"since": 3}, '["ada","bo"]'),
        ("w: I32?  @unique(src, dst, w)", {"w": 3}, '["ada","bo","3"]'),
        ("w: I32?  @unique(src, dst, w)", {"w": None}, None),
        ("w: I32?  @unique(src, dst, w)", {}, None),
        (
            "b: Bool a: F32  @unique(b, dst, a, src)",
            {"b": True, "a": 1.0},
            '["ada","bo","1","true"]',
        ),
        ("w: I32  @unique(src)", {"w": 3}, None),
        ("w: I32", {"w": 3}, None),
    ],
)
def test_an_edge_with_identity_is_named_by_its_tuple(body, values, id):
    assert edge_id(edge(body), "ada", "bo", values) == id


# -- folders ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "hash"),
    [("", 0xCBF29CE484222325), ("a", 0xAF63DC4C8601EC8C), ("foobar", 0x85944171F73967E8)],
)
def test_the_hash_is_fnv_1a(text, hash):
    assert fnv1a64(text.encode()) == hash


@pytest.mark.acceptance("L-035")
def test_a_table_lies_under_the_hash_of_its_name():
    assert table_directory("node", "Tag", 1) == "nodes/6ce0cb19e201b153"
    assert table_directory("edge", "Tag", 1) == "edges/6ce0cb19e201b153"


def test_a_taken_folder_gets_the_number_of_the_type():
    taken = {"nodes/6ce0cb19e201b153"}
    assert table_directory("node", "Tag", 17, taken) == "nodes/6ce0cb19e201b153-17"
    assert table_directory("edge", "Tag", 17, taken) == "edges/6ce0cb19e201b153"


def test_a_table_is_called_after_its_kind_and_type():
    assert node("a: I32").table_key == "node:N"
    assert edge("a: I32").table_key == "edge:E"
