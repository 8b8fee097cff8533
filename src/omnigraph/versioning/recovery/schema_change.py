"""What a change of the schema does besides moving tables, as its sidecar records it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from omnigraph.versioning.commits import TableId
from omnigraph.versioning.rows import TableRegistration


@dataclass(frozen=True, slots=True)
class DroppedTable:
    """A table that leaves the graph, and the version it had."""

    table_key: str
    table_id: TableId
    version: int

    def to_json(self) -> dict[str, Any]:
        return {
            "table_key": self.table_key,
            "table_id": self.table_id,
            "expected_version": self.version,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> DroppedTable:
        return cls(
            document["table_key"],
            TableId(document["table_id"]),
            int(document["expected_version"]),
        )


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """Tables that come and go, and the schema to return to if the change is undone."""

    previous_hash: str
    previous_ref: str
    added: tuple[TableRegistration, ...] = ()
    dropped: tuple[DroppedTable, ...] = ()

    def to_json(self) -> dict[str, Any]:
        document: dict[str, Any] = {
            "previous_schema_hash": self.previous_hash,
            "previous_schema_ref": self.previous_ref,
        }
        if self.added:
            document["additional_registrations"] = [_registration(table) for table in self.added]
        if self.dropped:
            document["tombstones"] = [table.to_json() for table in self.dropped]
        return document

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> SchemaChange:
        return cls(
            previous_hash=document["previous_schema_hash"],
            previous_ref=document["previous_schema_ref"],
            added=tuple(map(_registered, document.get("additional_registrations", ()))),
            dropped=tuple(map(DroppedTable.from_json, document.get("tombstones", ()))),
        )


def _registration(table: TableRegistration) -> dict[str, Any]:
    return {
        "table_key": f"{table.kind}:{table.name}",
        "table_id": table.table_id,
        "table_path": table.location,
        "name": table.name,
    }


def _registered(document: Mapping[str, Any]) -> TableRegistration:
    kind, _, number = document["table_id"].partition("#")
    return TableRegistration(
        table_id=TableId(document["table_id"]),
        location=document["table_path"],
        kind=kind,
        type_id=int(number),
        name=document["name"],
    )
