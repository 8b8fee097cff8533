"""What a change of the schema does besides moving tables, as its sidecar records it."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec import Struct

from omnigraph.versioning.commits import TableId
from omnigraph.versioning.rows import TableRegistration


class DroppedTable(Struct, frozen=True, rename={"version": "expected_version"}):
    """A table that leaves the graph, and the version it had."""

    table_key: str
    table_id: TableId
    version: int


class StoredTable(Struct, frozen=True):
    """A table that comes, as a sidecar names it."""

    table_key: str
    table_id: TableId
    table_path: str
    name: str

    @classmethod
    def of(cls, table: TableRegistration) -> StoredTable:
        return cls(f"{table.kind}:{table.name}", table.table_id, table.location, table.name)

    def registration(self) -> TableRegistration:
        """Raises `ValueError` for a table id without a number."""
        kind, _, number = self.table_id.partition("#")
        return TableRegistration(self.table_id, self.table_path, kind, int(number), self.name)


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """Tables that come and go, and the schema to return to if the change is undone."""

    previous_hash: str
    previous_ref: str
    added: tuple[TableRegistration, ...] = ()
    dropped: tuple[DroppedTable, ...] = ()
