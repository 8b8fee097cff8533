"""Rows in which two versions of a table can differ: all of them, and few others."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.storage import changed_rows
from omnigraph.storage.changed_rows import all_rows, differing_rows, locations_of
from omnigraph.storage.compact import compact_with_indexes
from omnigraph.storage.delta import stage_delta
from omnigraph.storage.stage import commit_staged, stage_append, stage_overwrite
from omnigraph.storage.table import Table
from omnigraph.storage.tables import TableStore

SCHEMA = pa.schema([pa.field("id", pa.utf8(), nullable=False), pa.field("n", pa.int64())])


def rows(**values: int) -> pa.Table:
    return pa.table({"id": list(values), "n": list(values.values())}, schema=SCHEMA)


def commit(table: Table, staged) -> Table:
    return commit_staged(table, staged, operation_id="op", writer_kind="Load")


def write(table: Table, deletes: tuple[str, ...] = (), **values: int) -> Table:
    return commit(table, stage_delta(table, rows(**values), list(deletes)))


@pytest.fixture
def table(store: TableStore) -> Table:
    made = store.create("people", SCHEMA)
    first = commit(made, stage_append(made, rows(**{f"p{i}": i for i in range(100)})))
    return commit(first, stage_append(first, rows(a=1, b=2)))


def ids(before: Table, after: Table) -> tuple[list[str], list[str]]:
    left, right = differing_rows(before, after)
    return sorted(left.ids.to_pylist()), sorted(right.ids.to_pylist())


def content(table: Table, side) -> dict[str, int]:
    found = side.read(np.arange(len(side)), ["n", "id"]).to_pylist()
    return {row["id"]: row["n"] for row in found}


def test_a_version_does_not_differ_from_itself(table):
    assert ids(table, table) == ([], [])


def test_only_rows_that_were_touched_are_found(table):
    after = write(table, ("p7",), p3=33, new=5)
    assert ids(table, after) == (["p3", "p7"], ["new", "p3"])
    assert ids(after, table) == (["new", "p3"], ["p3", "p7"])
    left, right = differing_rows(table, after)
    assert (content(table, left), content(after, right)) == (
        {"p3": 3, "p7": 7},
        {"p3": 33, "new": 5},
    )


def test_versions_far_apart_are_compared_directly(table):
    after = table
    for number in range(5):
        after = write(after, (f"p{number}",), **{f"p{number + 10}": -number})
    left, right = differing_rows(table, after)
    changed = {f"p{n}" for n in (*range(5), *range(10, 15))}
    assert set(left.ids.to_pylist()) == changed
    assert content(after, right) == {f"p{n + 10}": -n for n in range(5)}


def test_branches_are_compared_without_what_they_share(store, table):
    branch = store.create_branch("people", "f", source_branch=None, source_version=table.version)
    theirs = write(branch, ("a",), p1=11)
    ours = write(table, (), p2=22)
    assert ids(ours, theirs) == (["a", "p1", "p2"], ["p1", "p2"])


def test_rows_rewritten_by_a_compaction_are_found_once_on_either_side(table):
    after = write(write(table, (), p1=11), (), p2=22)
    compacted = compact_with_indexes(after, 1000, 1000)
    left, right = differing_rows(after, compacted)
    assert sorted(left.ids.to_pylist()) == sorted(right.ids.to_pylist())
    assert content(after, left) == content(compacted, right)


@pytest.mark.parametrize("wanted", [{"p3", "p7", "new", "p50"}, {"p3"}, {"new"}, set()])
def test_of_rows_that_can_differ_some_can_be_asked_for(table, wanted):
    after = write(write(table, ("p7",), p3=33), (), new=5)

    def chosen(ids: pa.Array) -> np.ndarray:
        return np.array([id in wanted for id in ids.to_pylist()], np.bool_)

    left, right = differing_rows(table, after, chosen)
    both = {"p3": 3, "p7": 7}, {"p3": 33, "new": 5}
    assert (content(table, left), content(after, right)) == tuple(
        {id: n for id, n in side.items() if id in wanted} for side in both
    )
    everything = all_rows(after, chosen)
    assert set(everything.ids.to_pylist()) == wanted - {"p7"}


def test_all_rows_of_an_overwritten_table_can_differ(table):
    after = commit(table, stage_overwrite(table, rows(a=1)))
    left, right = differing_rows(table, after)
    assert (len(left), content(after, right)) == (102, {"a": 1})


def test_rows_are_read_in_the_order_they_are_asked_for(table):
    after = write(table, ("p50",), p3=33)
    everything = all_rows(after)
    numbers = np.array([60, 5, 99, 0])
    wanted = everything.ids.take(pa.array(numbers)).to_pylist()
    found = everything.read(numbers, ["id", "_rowid", "n"])
    assert found.column("id").to_pylist() == wanted
    assert found.column_names == ["id", "_rowid", "n"]
    assert everything.read(np.empty(0, np.int64), ["n", "_rowid"]).num_rows == 0


def test_rows_are_found_by_their_ids_after_deletions(table):
    after = write(table, ("p1", "p50"), p3=33)
    found = locations_of(after, pa.array(["p99", "p2", "p3", "b", "nobody"]))
    assert content(after, found) == {"p99": 99, "p2": 2, "p3": 33, "b": 2}


def test_many_rows_that_were_only_rewritten_are_left_out(store, table, monkeypatch):
    monkeypatch.setattr(changed_rows, "_ROWS_COMPARED_ANYWAY", 1)
    branch = store.create_branch("people", "f", source_branch=None, source_version=table.version)
    theirs = compact_with_indexes(write(write(branch, (), p1=11), ("p9",), new=1), 1000, 1000)
    ours = compact_with_indexes(write(table, (), p2=22), 1000, 1000)
    assert ids(table, theirs) == (["p1", "p9"], ["new", "p1"])
    assert ids(table, ours) == (["p2"], ["p2"])
    # Versions of two branches have the same numbers, which say nothing about each other.
    assert ids(ours, theirs) == (["p1", "p2", "p9"], ["new", "p1", "p2"])
    grandchild = store.create_branch(
        "people", "g", source_branch="f", source_version=theirs.version
    )
    later = compact_with_indexes(write(grandchild, (), p3=33), 1000, 1000)
    assert ids(theirs, later) == (["p3"], ["p3"])
    assert ids(table, later) == (["p1", "p3", "p9"], ["new", "p1", "p3"])
