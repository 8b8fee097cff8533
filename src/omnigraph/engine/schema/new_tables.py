"""Where the tables of new types go: a place nobody else has or had."""

from __future__ import annotations

from collections.abc import Sequence

from omnigraph.catalog.identity import table_directory
from omnigraph.catalog.model import EntityType, NodeType
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.manifest import ManifestState
from omnigraph.versioning.rows import TableRegistration
from omnigraph.versioning.snapshot import table_id


def new_tables(
    tables: TableStore, objects: ObjectStore, state: ManifestState, added: Sequence[EntityType]
) -> tuple[TableRegistration, ...]:
    """Choose the places. What an apply that was undone has left in one of them is removed."""
    taken = {registered.location for registered in state.registered.values()}
    found = []
    for declared in added:
        kind = "node" if isinstance(declared, NodeType) else "edge"
        plain = table_directory(kind, declared.name, declared.type_id)
        in_the_way = {plain} if plain in taken or tables.exists(plain) else set()
        location = table_directory(kind, declared.name, declared.type_id, in_the_way)
        if in_the_way and tables.exists(location):
            tables.remove(location, objects)
        found.append(
            TableRegistration(
                table_id=table_id(declared),
                location=location,
                kind=kind,
                type_id=declared.type_id,
                name=declared.name,
            )
        )
    return tuple(found)
