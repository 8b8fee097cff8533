"""Small tables of people, and the two steps every change consists of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.storage.stage import StagedChange, commit_staged

if TYPE_CHECKING:
    from omnigraph.storage.table import Table
    from omnigraph.storage.tables import TableStore

PEOPLE = pa.schema(
    [
        pa.field("id", pa.utf8(), nullable=False),
        pa.field("age", pa.int32(), metadata={"omnigraph.prop_id": "7"}),
    ],
    metadata={"made by": "a test"},
)

KEYED = pa.schema(
    [
        pa.field(
            "id",
            pa.utf8(),
            nullable=False,
            metadata={"lance-schema:unenforced-primary-key": "true"},
        ),
        pa.field("age", pa.int32()),
    ]
)


def people(**ages: int | None) -> pa.Table:
    return numbered(ages)


def numbered(ages: dict[str, int | None], schema: pa.Schema = PEOPLE) -> pa.Table:
    return pa.table({"id": list(ages), "age": list(ages.values())}, schema=schema)


def make(store: TableStore, **ages: int | None) -> Table:
    return store.create("nodes/people", PEOPLE, rows=people(**ages))


def commit(table: Table, staged: StagedChange | None, operation_id: str = "op-1") -> Table:
    assert staged is not None
    return commit_staged(table, staged, operation_id=operation_id, writer_kind="Mutation")


def content(table: Table) -> dict[str, Any]:
    rows = table.read(["id", "age"]).to_pylist()
    assert len({row["id"] for row in rows}) == len(rows)
    return {row["id"]: row["age"] for row in rows}


def row_ids(table: Table) -> dict[str, int]:
    return {row["id"]: row["_rowid"] for row in table.read(["id"], with_row_ids=True).to_pylist()}
