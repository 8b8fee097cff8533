"""Rows as columns: ids, checks and tuples agree with the rules for single values."""

from __future__ import annotations

import json
import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.catalog.arrow import logical_schema
from omnigraph.catalog.constraints import (
    EnumRule,
    PatternRule,
    RangeRule,
    identity_group,
    other_unique_groups,
    unkeyable_column,
    value_rules,
)
from omnigraph.catalog.identity import edge_id, node_id
from omnigraph.rows.columns import BLOB, build_column, row_schema
from omnigraph.rows.json_text import json_escaped
from omnigraph.rows.keys import derived_ids, distinct_tuples, shared_tuples, tuples_of
from omnigraph.rows.validation import (
    InvalidPattern,
    breaks,
    find_nulls,
    is_present,
    rows_where,
    value_violations,
)
from tests.unit.load.inputs import texts
from tests.unit.load.loading import W, catalog_of

KEYS = catalog_of(
    """
node Text { k: String @key }
node Int { k: U64 @key }
node Flag { k: Bool @key }
node Day { k: Date @key }
node Moment { k: DateTime @key }
node Single { k: F32 @key }
node Double { k: F64 @key }
node Both { a: String  b: I32  @key(a, b) }
edge To: Text -> Text { d: F64?  @unique(src, dst, d) }
"""
)
VALUES = {
    "Text": texts,
    "Int": st.integers(0, 2**64 - 1),
    "Flag": st.booleans(),
    "Day": st.integers(-(2**31), 2**31 - 1),
    "Moment": st.integers(-(2**63), 2**63 - 1),
    "Single": st.floats(allow_nan=False, allow_infinity=False, width=32),
    "Double": st.floats(allow_nan=False, allow_infinity=False),
}


@pytest.mark.parametrize("name", list(VALUES))
@given(data=st.data())
def test_a_column_of_keys_becomes_the_ids_of_its_values(name, data):
    node = KEYS.nodes[name]
    values = data.draw(st.lists(VALUES[name], max_size=8))
    ids = derived_ids(node, {"k": build_column(values, node.properties["k"].type)})
    assert ids is not None
    assert ids.to_pylist() == [node_id(node, {"k": value}) for value in values]


@given(st.lists(st.tuples(texts, st.integers(-9, 9)), max_size=8))
def test_a_composite_key_becomes_a_json_array(values):
    node = KEYS.nodes["Both"]
    columns = {
        "a": pa.array([a for a, _ in values], pa.utf8()),
        "b": pa.array([b for _, b in values], pa.int32()),
    }
    ids = derived_ids(node, columns)
    assert ids is not None
    assert ids.to_pylist() == [node_id(node, {"a": a, "b": b}) for a, b in values]


@given(st.lists(st.tuples(texts, texts, st.none() | VALUES["Double"]), max_size=8))
def test_an_edge_with_a_null_in_its_identity_has_no_derived_id(values):
    edge = KEYS.edges["To"]
    columns = {
        "src": pa.array([s for s, _, _ in values], pa.utf8()),
        "dst": pa.array([d for _, d, _ in values], pa.utf8()),
        "d": pa.array([x for _, _, x in values], pa.float64()),
    }
    ids = derived_ids(edge, columns)
    assert ids is not None
    assert ids.to_pylist() == [edge_id(edge, s, d, {"d": x}) for s, d, x in values]


def test_a_type_without_key_derives_no_ids():
    catalog = catalog_of(
        "node L { }\nedge E: L -> L\nedge V: L -> L { v: Vector(2)?  @unique(src, dst, v) }"
    )
    assert derived_ids(catalog.nodes["L"], {}) is None
    assert derived_ids(catalog.edges["E"], {}) is None
    assert identity_group(catalog.edges["V"]) is None
    assert unkeyable_column(catalog.edges["V"]) is not None


# Rules


def test_rules_come_by_kind_and_leave_out_lists():
    catalog = catalog_of(
        """
node T {
    a: enum(y, x)?  b: I32?  c: String?  bs: [I32]?  cs: [String]?
    @check(c, "x")  @range(b, 1..2)  @range(bs, 1..2)  @check(cs, "x")
}
"""
    )
    assert value_rules(catalog.nodes["T"]) == (
        EnumRule("a", ("x", "y")),
        RangeRule("b", 1, 2),
        PatternRule("c", "x"),
    )


def test_groups_that_ids_cover_are_not_checked_again():
    catalog = catalog_of("node T { a: I32  b: I32?  @key(a)  @unique(a)  @unique(a, b) }")
    assert other_unique_groups(catalog.nodes["T"]) == (("a", "b"),)


@pytest.mark.parametrize(
    ("rule", "values", "broken"),
    [
        (EnumRule("p", ("a", "b")), pa.array(["a", None, "c"]), [2]),
        (RangeRule("p", 1, 3), pa.array([0, 1, 3, 4, None]), [0, 3]),
        (RangeRule("p", None, 3), pa.array([-(2**40), 4]), [1]),
        (RangeRule("p", 0.5, None), pa.array([0.5, 0.4, float("nan"), float("inf")]), [1, 2]),
        (RangeRule("p", None, 2**63), pa.array([2**64 - 1], pa.uint64()), [0]),
        (PatternRule("p", "b+"), pa.array(["abbc", "ac", None]), [1]),
        (PatternRule("p", r"^\pL$"), pa.array(["ä", "1"]), [1]),
    ],
)
def test_rows_that_break_a_rule_are_found(rule, values, broken):
    assert rows_where(breaks(rule, values)) == broken


@pytest.mark.parametrize("pattern", ["(", r"(?=x)", r"(a)\1"])
def test_a_pattern_of_another_dialect_is_invalid(pattern):
    with pytest.raises(InvalidPattern):
        breaks(PatternRule("p", pattern), pa.array(["x"]))


def test_an_empty_batch_breaks_nothing():
    catalog = catalog_of('node T { p: String?  @check(p, "(") }')
    assert list(value_violations(catalog.nodes["T"], {"p": pa.array([], pa.utf8())})) == []


def test_a_vector_with_text_waits_and_one_without_is_missing():
    catalog = catalog_of("node T { s: String?  v: Vector(1) @embed(s) }")
    columns = {
        "s": pa.array(["x", "x", " ", None]),
        "v": build_column([[1.0], None, None, None], catalog.nodes["T"].properties["v"].type),
    }
    found = find_nulls(catalog.nodes["T"], columns)
    assert found.pending["v"].to_pylist() == [False, True, False, False]
    assert [v.row for v in found.missing] == [2, 3]


# Columns


def test_rows_have_the_logical_columns_with_blobs_by_content_or_address():
    catalog = catalog_of("node T { b: Blob  s: String?  v: Vector(2) @embed(s)  n: I32 }")
    schema = row_schema(catalog.nodes["T"])
    logical = logical_schema(catalog.nodes["T"])
    assert schema.names == logical.names
    assert schema.field("b").type == BLOB
    assert not schema.field("b").nullable
    assert schema.field("v").nullable
    assert schema.field("n") == logical.field("n")
    for name in ("Maker", "Tool"):
        assert row_schema(W.nodes[name]) == logical_schema(W.nodes[name])


@given(st.lists(st.none() | texts, max_size=6))
def test_json_escapes_are_python_s(values):
    found = json_escaped(pa.array(values, pa.utf8())).to_pylist()
    assert found == [v if v is None else json.dumps(v, ensure_ascii=False)[1:-1] for v in values]


@given(
    st.lists(st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=3), max_size=6)
)
def test_blank_means_what_strip_removes(values):
    found = is_present(pa.array(values, pa.utf8())).to_pylist()
    assert found == [v is not None and bool(v.strip()) for v in values]


def test_every_white_space_is_blank():
    spaces = [chr(c) for c in range(sys.maxunicode + 1) if chr(c).isspace()]
    assert not any(is_present(pa.array(spaces)).to_pylist())


# Tuples


def test_shared_tuples_are_found_in_order_of_first_occurrence():
    rows = pa.table({"a": [1, 2, 1, None, 2, 1], "b": ["x", "y", "x", "x", "y", "z"]})
    found = shared_tuples(*tuples_of(rows, ["a", "b"]))
    assert [f.tolist() for f in found] == [[0, 2], [1, 4]]
    assert [f.tolist() for f in shared_tuples(*tuples_of(rows, ["a"]))] == [[0, 2, 5], [1, 4]]


def test_distinct_tuples_keep_their_names_and_types():
    moments = pa.array([5, 5, 86_400_005]).view(pa.date64())
    rows = pa.table({"at": moments, "x": np.array([0.0, -0.0, 1.0], np.float32)})
    found = distinct_tuples(rows, ["at", "x"])
    assert found.schema.equals(rows.schema)
    assert found.num_rows == 2
