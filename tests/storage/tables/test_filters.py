"""Predicates: literals keep their meaning, and every way to run one gives the same rows."""

from __future__ import annotations

import math
import uuid
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given, settings

from omnigraph.storage.durability import Durability
from omnigraph.storage.filters import And, Comparison, Filter, In, Not, bind, select, split, to_sql
from omnigraph.storage.indexes import stage_btree_index
from omnigraph.storage.stage import commit_staged, stage_append
from omnigraph.storage.tables import TableStore
from omnigraph.storage.uris import normalise_root
from tests.storage.tables.random_filters import COLUMNS, filters, sample_rows

if TYPE_CHECKING:
    from omnigraph.storage.table import Table

ROWS = 600
SAMPLE = sample_rows(ROWS)


def indexed(table: Table) -> Table:
    for column in COLUMNS:
        staged = stage_btree_index(table, column)
        assert staged is not None
        table = commit_staged(table, staged, operation_id="op", writer_kind="Test")
    return table


@pytest.fixture(scope="module")
def tables() -> dict[str, Table]:
    """The same rows without an index, with one, and with one that does not know the last rows."""
    store = TableStore(normalise_root("memory://filters"), Durability.NONE)
    rows = SAMPLE
    plain = store.create("plain", rows.schema, rows=rows)
    full = indexed(store.create("indexed", rows.schema, rows=rows))
    half = indexed(store.create("half", rows.schema, rows=rows.slice(0, ROWS // 2)))
    more = stage_append(half, rows.slice(ROWS // 2))
    half = commit_staged(half, more, operation_id="op", writer_kind="Test")
    return {"plain": plain, "indexed": full, "half": half}


def ids(rows: pa.Table) -> list[str]:
    return sorted(rows.column("id").to_pylist())


def check_every_way(tables: dict[str, Table], predicate: Filter) -> None:
    expected = ids(select(predicate, SAMPLE))
    for name, table in tables.items():
        assert ids(table.read(["id"], predicate)) == expected, name


@settings(max_examples=100)
@given(predicate=filters())
def test_store_and_memory_select_the_same_rows(tables, predicate):
    check_every_way(tables, predicate)


@pytest.mark.slow
@settings(max_examples=5_000)
@given(predicate=filters())
def test_store_and_memory_select_the_same_rows_in_many_cases(tables, predicate):
    check_every_way(tables, predicate)


@settings(max_examples=200)
@given(predicate=filters())
def test_a_predicate_and_its_negation_share_no_row(predicate):
    chosen, others = ids(select(predicate, SAMPLE)), ids(select(Not(predicate), SAMPLE))
    assert not set(chosen) & set(others)


def test_an_index_of_several_pages_orders_nan_and_zeros_like_memory():
    floats = [None, -math.inf, -2.5, -0.0, 0.0, 2.5, math.inf, math.nan]
    rows = pa.table({"id": [str(n) for n in range(20_000)], "x": (floats * 2_500)[:20_000]})
    store = TableStore(normalise_root("memory://pages"), Durability.NONE)
    staged = stage_btree_index(table := store.create("t", rows.schema, rows=rows), "x")
    assert staged is not None
    table = commit_staged(table, staged, operation_id="op", writer_kind="Test")
    for operator in ("=", "!=", "<", "<=", ">", ">="):
        for value in floats[1:]:
            predicate = Comparison("x", operator, value)
            assert ids(table.read(["id"], predicate)) == ids(select(predicate, rows))


COUNTS = pa.table(
    {"id": ["a", "b", "c", "d", "n"], "count": pa.array([1, 2, 3, 4, None], pa.int32())}
)


@pytest.fixture(scope="module")
def counts() -> dict[str, Table]:
    """The same numbers without an index, with one, and with one that does not know the last rows."""
    store = TableStore(normalise_root("memory://counts"), Durability.NONE)
    made = {"plain": store.create("plain", COUNTS.schema, rows=COUNTS)}
    for name, known in (("indexed", len(COUNTS)), ("stale", 2)):
        table = store.create(name, COUNTS.schema, rows=COUNTS.slice(0, known))
        staged = stage_btree_index(table, "count")
        assert staged is not None
        table = commit_staged(table, staged, operation_id="op", writer_kind="Test")
        if known < len(COUNTS):
            more = stage_append(table, COUNTS.slice(known))
            table = commit_staged(table, more, operation_id="op", writer_kind="Test")
        made[name] = table
    return made


@pytest.mark.acceptance("S-122")
@pytest.mark.parametrize(
    ("operator", "value", "pushed", "found"),
    [
        ("=", 2, "`count` = arrow_cast('2', 'Int32')", {2}),
        ("=", 2.0, "`count` = arrow_cast('2', 'Int32')", {2}),
        ("=", 2.7, "false", set()),
        ("!=", 2.7, "`count` is not null", {1, 2, 3, 4}),
        (">", 2.7, "`count` >= arrow_cast('3', 'Int32')", {3, 4}),
        ("<", 2.7, "`count` <= arrow_cast('2', 'Int32')", {1, 2}),
        ("<", 3_000_000_000, "`count` is not null", {1, 2, 3, 4}),
        ("=", 5_000_000_000, "false", set()),
        ("!=", 5_000_000_000, "`count` is not null", {1, 2, 3, 4}),
        (">=", -5_000_000_000, "`count` is not null", {1, 2, 3, 4}),
        ("<", -5_000_000_000, "false", set()),
        ("<", math.nan, "`count` is not null", {1, 2, 3, 4}),
        ("=", None, "false", set()),
    ],
)
def test_an_integer_column_takes_every_number(counts, operator, value, pushed, found):
    predicate = Comparison("count", operator, value)
    assert to_sql(bind(predicate, COUNTS.schema)) == pushed
    assert set(select(predicate, COUNTS).column("count").to_pylist()) == found
    for name, table in counts.items():
        assert set(table.read(["count"], predicate).column("count").to_pylist()) == found, name
        if "arrow_cast" in pushed:
            uses = "ScalarIndexQuery" in plan(table, predicate)
            assert uses == (name != "plain"), name


@pytest.mark.parametrize(
    ("kind", "value", "pushed"),
    [
        (pa.uint32(), 7, "`c` = arrow_cast('7', 'UInt32')"),
        (pa.uint64(), 2**64 - 1, "`c` = arrow_cast('18446744073709551615', 'UInt64')"),
        (pa.float32(), 0.1, "`c` = arrow_cast('0.10000000149011612', 'Float32')"),
        (pa.float64(), -0.0, "`c` = arrow_cast('0.0', 'Float64')"),
        (pa.date32(), "2024-06-01", "`c` = arrow_cast(arrow_cast('19875', 'Int32'), 'Date32')"),
        (pa.date64(), "1970-01-02", "`c` = arrow_cast(arrow_cast('86400000', 'Int64'), 'Date64')"),
        (pa.string(), "it's", "`c` = 'it''s'"),
        (pa.bool_(), True, "`c` = true"),
    ],
)
def test_a_literal_is_written_in_the_type_of_its_column(kind, value, pushed):
    schema = pa.schema([("c", kind)])
    assert to_sql(bind(Comparison("c", "=", value), schema)) == pushed


@pytest.mark.parametrize(("kind", "value"), [(pa.date64(), "not-a-date"), (pa.int32(), "2")])
def test_a_literal_of_another_kind_is_compared_as_text_in_memory(kind, value):
    bound = bind(Comparison("c", "=", value), pa.schema([("c", kind)]))
    pushed, kept = split(bound)
    assert pushed is None
    assert kept is not None


def test_only_what_the_store_cannot_do_is_left_for_memory(tables):
    predicate = And((Comparison("i64", ">", 1), Comparison("Day", "<", "not-a-date")))
    pushed, kept = split(bind(predicate, tables["plain"].schema))
    assert pushed is not None
    assert kept is not None
    assert to_sql(pushed) == "(`i64` > arrow_cast('1', 'Int64'))"


@pytest.mark.parametrize("column", sorted(COLUMNS))
def test_an_index_is_used_for_every_scalar_type(tables, column):
    value = COLUMNS[column][1][1]
    for predicate in (Comparison(column, "=", value), Comparison(column, "<=", value)):
        assert "ScalarIndexQuery" in plan(tables["indexed"], predicate)
        assert "ScalarIndexQuery" not in plan(tables["plain"], predicate)


def test_an_index_is_used_for_lists_of_values_and_prefixes(tables):
    for predicate in (In("u64", (1, 2**63)), Comparison("text", "starts_with", "a")):
        assert "ScalarIndexQuery" in plan(tables["indexed"], predicate)


def plan(table: Table, predicate: Filter) -> str:
    pushed, _ = split(bind(predicate, table.schema))
    assert pushed is not None
    return str(table.dataset.scanner(columns=["id"], filter=to_sql(pushed)).explain_plan(True))


def test_a_limit_counts_rows_that_pass_the_whole_predicate(tables):
    predicate = Comparison("Day", ">=", "19")
    assert split(bind(predicate, tables["plain"].schema))[0] is None
    assert tables["plain"].read(["id"], predicate, limit=7).num_rows == 7
    assert tables["plain"].read(["id"], predicate, limit=0).num_rows == 0


def test_columns_read_only_by_the_predicate_are_not_returned(tables):
    found = tables["plain"].read(["id"], Comparison("Day", ">=", "19"))
    assert found.column_names == ["id"]


def test_null_is_not_a_value_to_look_for():
    with pytest.raises(ValueError, match="IsNull"):
        In("a", (1, None))


@pytest.mark.parametrize(
    "predicate",
    [
        Comparison("nowhere", "=", 1),
        Comparison("words", "=", 1),
        Comparison("i64", "starts_with", "1"),
    ],
)
def test_a_predicate_that_makes_no_sense_for_the_column_is_refused(predicate):
    with pytest.raises(ValueError):
        bind(predicate, sample_rows(1).schema)


@pytest.mark.parametrize(
    "name", ["it's", 'a "b"', "with space", "select", "ÄÖ", "CamelCase", "a.b`"]
)
def test_any_column_name_can_be_filtered_by(name):
    rows: dict[str, Any] = {"id": ["x", "y"], name: [1, 2]}
    assert ids(select(Comparison(name, ">", 1), pa.table(rows))) == ["y"]
    if "`" not in name:
        store = TableStore(normalise_root(f"memory://{uuid.uuid4().hex}"), Durability.NONE)
        table = store.create("t", pa.table(rows).schema, rows=pa.table(rows))
        assert ids(table.read(["id"], Comparison(name, ">", 1))) == ["y"]
