"""Indexes of vectors: the nearest rows are found through them, however the table has changed since."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.storage.compact import compact_with_indexes, extend_indexes
from omnigraph.storage.delta import stage_delta
from omnigraph.storage.indexes import (
    PARTITIONED,
    build_btree,
    build_partitioned,
    list_indexes,
    probes_of,
    stage_indexes,
    stage_probes,
    uncovered_fragments,
)
from omnigraph.storage.ordered import nearest_row_ids
from omnigraph.storage.stage import stage_append
from omnigraph.storage.table import Table
from tests.storage.tables.rows import commit

SCHEMA = pa.schema([pa.field("id", pa.utf8(), nullable=False), ("vec", pa.list_(pa.float32(), 2))])
CENTRES = np.array([[1, 0], [0, 1], [-1, 0], [0, -1]], np.float32)


def directions(first: int, *degrees: float | None) -> pa.Table:
    """Vectors of some length that point somewhere, numbered from the first on."""
    angles = [None if degree is None else np.deg2rad(degree) for degree in degrees]
    vectors = [None if a is None else [3 * np.cos(a), 3 * np.sin(a)] for a in angles]
    ids = [f"n{first + number}" for number in range(len(degrees))]
    return pa.table({"id": ids, "vec": pa.array(vectors, SCHEMA.field("vec").type)}, SCHEMA)


@pytest.fixture
def table(store) -> Table:
    made = store.create("nodes/points", SCHEMA, rows=directions(0, *range(0, 360, 10), None))
    built = [build_btree(made, "id"), build_partitioned(made, "vec", CENTRES)]
    made = commit(made, stage_indexes(made, built))
    return commit(made, stage_probes(made, {"vec": 3}))


def nearest(table: Table, degree: float, count: int = 3, probes: int = 4) -> list[str]:
    angle = np.deg2rad(degree)
    found = nearest_row_ids(table, "vec", np.array([np.cos(angle), np.sin(angle)]), count, probes)
    rows = table.take(pa.array(found), ["id"]) if len(found) else None
    return [] if rows is None else rows.column("id").to_pylist()


def test_several_indexes_are_one_commit(table):
    assert [(i.columns, i.kind) for i in list_indexes(table)] == [
        (("id",), "BTREE"),
        (("vec",), PARTITIONED),
    ]
    assert table.version == 3
    assert (probes_of(table, "vec"), probes_of(table, "id")) == (3, None)


def test_the_nearest_come_first_and_missing_vectors_never(table):
    assert nearest(table, 91) == ["n9", "n10", "n8"]
    assert len(nearest(table, 0, count=100)) == 36


def test_partitions_that_are_not_looked_into_have_no_answers(table):
    assert set(nearest(table, 0, count=100, probes=1)) == {
        f"n{n}" for n in (*range(5), *range(32, 36))
    }


def test_new_changed_and_deleted_rows(table):
    changed = commit(table, stage_append(table, directions(100, 91.5)))
    moved = directions(9, 271)
    changed = commit(
        changed, stage_delta(changed, pa.concat_tables([moved, directions(101, 92)]), ["n10"])
    )
    assert uncovered_fragments(changed, "vec", PARTITIONED) == frozenset({1, 2})

    def check(now: Table) -> None:
        assert nearest(now, 91) == ["n100", "n101", "n8"]
        assert nearest(now, 271)[0] == "n9"
        assert len(nearest(now, 0, count=100)) == 37

    check(changed)
    extended = extend_indexes(changed)
    assert uncovered_fragments(extended, "vec", PARTITIONED) == frozenset()
    check(extended)
    compacted = compact_with_indexes(extended)
    assert len(compacted.fragments()) == 1
    check(compacted)
    assert probes_of(compacted, "vec") == 3


def test_extensions_leave_one_part(table):
    for number in range(4):
        table = commit(table, stage_append(table, directions(100 + number, number)))
        table = extend_indexes(table)
    [index] = [i for i in list_indexes(table) if i.kind == PARTITIONED]
    assert len(index.parts) == 1
