"""What a change of the schema does to tables: which are made, which get other columns, which go.

Types and properties are recognised by their numbers, so a rename does nothing here, and neither do
interfaces, longer enums and descriptions.
Tests: tests/unit/engine/test_schema_work.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from omnigraph.catalog.arrow import IndexSpec, index_specs
from omnigraph.catalog.identity import embed_column
from omnigraph.catalog.model import Catalog, EntityType, Property


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """Columns that one table loses and properties it gains, and indexes it is to have besides."""

    declared: EntityType
    dropped: tuple[str, ...] = ()
    added: tuple[Property, ...] = ()
    indexes: tuple[IndexSpec, ...] = ()

    @property
    def changes_columns(self) -> bool:
        return bool(self.dropped or self.added)


@dataclass(frozen=True, slots=True)
class SchemaWork:
    """Everything there is to do to tables on the way from one schema to the next."""

    added: tuple[EntityType, ...]
    changed: tuple[ColumnChange, ...]
    dropped: tuple[EntityType, ...]


def schema_work(before: Catalog, after: Catalog) -> SchemaWork:
    """The work between two schemas of one graph, each part in the order of its types."""
    old = {declared.type_id: declared for declared in before}
    new = {declared.type_id: declared for declared in after}
    changes = [_change(old[t], declared) for t, declared in new.items() if t in old]
    return SchemaWork(
        added=tuple(declared for t, declared in new.items() if t not in old),
        changed=tuple(c for c in changes if c.changes_columns or c.indexes),
        dropped=tuple(declared for t, declared in old.items() if t not in new),
    )


def _change(before: EntityType, after: EntityType) -> ColumnChange:
    old = {p.prop_id: p for p in before.properties.values()}
    new = {p.prop_id: p for p in after.properties.values()}
    known = set(index_specs(before))
    return ColumnChange(
        declared=after,
        dropped=tuple(c for i, p in old.items() if i not in new for c in _columns(p)),
        added=tuple(p for i, p in new.items() if i not in old),
        indexes=tuple(intent for intent in index_specs(after) if intent not in known),
    )


def _columns(prop: Property) -> Sequence[str]:
    if prop.embed_source is None:
        return (prop.column,)
    return (prop.column, embed_column(prop.prop_id))
