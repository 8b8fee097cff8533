"""Blob columns through every kind of change: bytes of any size, references, nulls, carried cells."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from omnigraph.errors import StoreCallFailed
from omnigraph.storage.blobs import BLOB_CELL, read_blob_cells
from omnigraph.storage.compact import compact_with_indexes
from omnigraph.storage.delta import stage_delta
from omnigraph.storage.filters import IsNull, Not
from omnigraph.storage.indexes import stage_btree_index
from omnigraph.storage.stage import stage_append, stage_overwrite
from tests.storage.tables.rows import commit

if TYPE_CHECKING:
    from omnigraph.storage.table import Table

SCHEMA = pa.schema(
    [
        pa.field("id", pa.utf8(), nullable=False),
        pa.field("pic", pa.large_binary(), metadata={"omnigraph.prop_id": "3"}),
        pa.field("note", pa.utf8()),
    ]
)
INLINE, PACKED, DEDICATED = b"tiny", os.urandom(100_000), os.urandom(5_000_000)
SIZES = {"tiny": INLINE, "empty": b"", "packed": PACKED, "big": DEDICATED, "none": None}


def pictures(cells: dict[str, bytes | None], note: str = "") -> pa.Table:
    columns = {"id": list(cells), "pic": list(cells.values()), "note": [note] * len(cells)}
    return pa.table(columns, schema=SCHEMA)


def references(cells: dict[str, Any]) -> pa.Table:
    pics = pa.array(list(cells.values()), BLOB_CELL)
    return pa.table({"id": list(cells), "pic": pics, "note": [""] * len(cells)})


def cells_of(table: Table) -> dict[str, Any]:
    rows = table.read(["id"], with_row_ids=True)
    cells = read_blob_cells(table, "pic", rows.column("_rowid").combine_chunks()).to_pylist()
    return dict(zip(rows.column("id").to_pylist(), cells, strict=True))


def bytes_of(table: Table) -> dict[str, bytes | None]:
    return {name: cell and cell["data"] for name, cell in cells_of(table).items()}


def test_a_binary_column_is_stored_as_blobs_and_read_as_descriptors(store):
    table = store.create("nodes/pictures", SCHEMA, rows=pictures(SIZES))
    assert str(table.schema.field("pic").type).startswith("extension<lance.blob.v2")
    assert table.schema.field("pic").metadata == {b"omnigraph.prop_id": b"3"}
    described = table.read(["id", "pic"]).to_pylist()
    assert {row["id"]: row["pic"] and row["pic"]["size"] for row in described} == {
        name: None if cell is None else len(cell) for name, cell in SIZES.items()
    }
    assert bytes_of(table) == SIZES


def test_blobs_are_filtered_by_their_presence(store):
    table = store.create("nodes/pictures", SCHEMA, rows=pictures(SIZES))
    assert table.read(["id"], IsNull("pic")).column("id").to_pylist() == ["none"]
    assert table.read(["id"], Not(IsNull("pic"))).num_rows == 4


@pytest.mark.parametrize("branch", [None, "b"])
def test_blobs_survive_append_delta_overwrite_and_compaction(store, branch):
    table = store.create("nodes/pictures", SCHEMA)
    if branch is not None:
        table = store.create_branch(table.path, branch, source_branch=None, source_version=1)
    table = commit(table, stage_append(table, pictures(SIZES)))
    table = commit(table, stage_btree_index(table, "id"))
    table = commit(table, stage_append(table, pictures({"late": b"late"})))
    table = commit(table, stage_delta(table, pictures({"tiny": b"new", "more": PACKED}), ["big"]))
    expected = {**SIZES, "late": b"late", "tiny": b"new", "more": PACKED}
    del expected["big"]
    assert bytes_of(table) == expected
    table = compact_with_indexes(table)
    assert len(table.fragments()) == 1
    assert bytes_of(table) == expected
    table = commit(table, stage_overwrite(table, pictures({"tiny": DEDICATED})))
    assert bytes_of(table) == {"tiny": DEDICATED}


def test_cells_are_carried_to_the_row_that_replaces_theirs(store):
    table = store.create("nodes/pictures", SCHEMA, rows=pictures(SIZES))
    rows = table.read(["id"], with_row_ids=True)
    cells = read_blob_cells(table, "pic", rows.column("_rowid").combine_chunks())
    changed = pa.table({"id": rows.column("id"), "pic": cells, "note": ["seen"] * rows.num_rows})
    table = commit(table, stage_delta(table, changed, []))
    assert bytes_of(table) == SIZES
    assert set(table.read(["note"]).column("note").to_pylist()) == {"seen"}


def test_cells_come_in_the_order_they_were_asked_for(store):
    table = store.create("nodes/pictures", SCHEMA, rows=pictures(SIZES))
    cells = read_blob_cells(table, "pic", pa.array([2, 0, 4, 1], pa.uint64())).to_pylist()
    assert [cell and cell["data"] for cell in cells] == [PACKED, INLINE, None, b""]


class TestReferences:
    @pytest.fixture
    def outside(self, tmp_path):
        file = tmp_path / "outside.bin"
        file.write_bytes(b"hello external world")
        return file

    def cells(self, outside):
        uri = outside.as_uri()
        return {
            "whole": {"uri": uri},
            "part": {"uri": uri, "position": 6, "size": 8},
            "inside": {"data": b"inside"},
            "none": None,
        }

    def stored(self, store, outside):
        table = store.create("nodes/pictures", SCHEMA)
        return commit(table, stage_append(table, references(self.cells(outside))))

    def test_they_are_kept_and_carried_without_being_followed(self, store, outside):
        table = self.stored(store, outside)
        found = cells_of(table)
        outside.unlink()
        assert cells_of(table) == found
        changed = references({name: found[name] for name in ("whole", "part")})
        table = commit(table, stage_delta(table, changed, []))
        assert cells_of(table) == found
        assert found["part"]["uri"] == outside.as_uri()
        assert (found["part"]["position"], found["part"]["size"]) == (6, 8)
        assert (found["whole"]["position"], found["whole"]["size"]) == (None, None)
        assert found["inside"]["data"] == b"inside"

    def test_they_are_followed_when_bytes_are_read(self, store, outside):
        table = self.stored(store, outside)
        places = {row["id"]: row["_rowaddr"] for row in table.read(["id", "_rowaddr"]).to_pylist()}
        wanted = [places["whole"], places["part"]]
        read = dict(table.dataset.read_blobs("pic", addresses=wanted))
        assert list(map(read.get, wanted)) == [b"hello external world", b"external"]

    def test_they_survive_compaction_without_being_followed(self, store, outside):
        table = self.stored(store, outside)
        found = cells_of(table)
        table = commit(table, stage_append(table, pictures({"late": b"late"})))
        outside.unlink()
        table = compact_with_indexes(table)
        assert len(table.fragments()) == 1
        assert cells_of(table) == {**found, "late": cells_of(table)["late"]}

    def test_a_cell_with_bytes_and_a_reference_is_refused(self, store, outside):
        table = store.create("nodes/pictures", SCHEMA)
        with pytest.raises(StoreCallFailed):
            stage_append(table, references({"x": {"data": b"1", "uri": outside.as_uri()}}))
