"""A reader's view of a graph: visible types, properties and rows, as filters on stored columns.

A hidden name does not exist for its reader. An edge with an invisible endpoint is invisible.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import ClassVar, Final, TypeVar

import pyarrow as pa
from msgspec import structs

from omnigraph.catalog.identity import canonical_text
from omnigraph.catalog.model import Catalog, EdgeType, EntityType, NodeType
from omnigraph.errors import InputError
from omnigraph.language.types import Scalar
from omnigraph.storage.filters import And, Comparison, Filter, In, IsNull, Not, Or
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.snapshot import Snapshot

_Entity = TypeVar("_Entity", NodeType, EdgeType)

_NEVER: Final = Comparison("id", "=", None)
"""A comparison with a missing value is never true."""

_ALWAYS: Final = Not(IsNull("id"))
"""A missing column is null in every row."""

_SELECTIVE_KEYS: Final = frozenset({Scalar.STRING, Scalar.I32, Scalar.I64, Scalar.U32, Scalar.U64})


@dataclass(frozen=True)
class ReadView:
    """The part of a graph a reader sees. `ReadView.ALL` sees everything and costs nothing.

    `rows` maps a type to a predicate on its properties, under their present names.
    """

    ALL: ClassVar[ReadView]

    hidden_types: frozenset[str] = frozenset()
    hidden_properties: frozenset[tuple[str, str]] = frozenset()
    rows: Mapping[str, Filter] = field(default_factory=lambda: MappingProxyType({}))

    def __reduce__(self) -> tuple[type[ReadView], tuple[object, ...]]:
        """Pickled for tasks with a plain dict; a read-only mapping cannot be pickled."""
        return ReadView, (self.hidden_types, self.hidden_properties, dict(self.rows))

    @property
    def sees_all(self) -> bool:
        return not (self.hidden_types or self.hidden_properties or self.rows)

    def restrict(self, catalog: Catalog) -> Catalog:
        """The catalog without what is hidden. Raises `InputError` if only a key is hidden."""
        if not (self.hidden_types or self.hidden_properties):
            return catalog
        nodes = {
            name: self._restrict_type(node)
            for name, node in catalog.nodes.items()
            if name not in self.hidden_types
        }
        edges = {
            name: self._restrict_type(edge)
            for name, edge in catalog.edges.items()
            if name not in self.hidden_types and {edge.from_type, edge.to_type} <= nodes.keys()
        }
        by_lower_name = {name.lower(): edge for name, edge in edges.items()}
        return Catalog(catalog.ir, nodes, edges, by_lower_name)

    def _restrict_type(self, entity: _Entity) -> _Entity:
        hidden = {name for type_name, name in self.hidden_properties if type_name == entity.name}
        if not hidden:
            return entity
        declared: EntityType = entity
        key = declared.key if isinstance(declared, NodeType) else None
        if not hidden.isdisjoint(key or ()):
            raise InputError(f"cannot hide the key of {entity.name}; hide the type instead")
        shown = {name: p for name, p in entity.properties.items() if name not in hidden}
        return replace(entity, properties=shown)


ReadView.ALL = ReadView()


def visible_counts(snapshot: Snapshot, tables: TableStore, view: ReadView) -> dict[str, int]:
    """Row counts by type name, edge types first. Only a view with row predicates reads rows."""
    catalog = view.restrict(snapshot.catalog)
    by_key = {declared.table_key: declared.name for declared in catalog}
    if not view.rows:
        return {
            by_key[key]: entry.row_count for key, entry in snapshot.entries.items() if key in by_key
        }
    from omnigraph.read.scan import scan_type

    return {
        name: sum(
            batch.num_rows
            for batch in scan_type(snapshot, tables, name, columns=("id",), view=view)
        )
        for key, name in sorted(by_key.items())
    }


# -- filters on stored columns ------------------------------------------------------------------


def id_filter(declared: EntityType, predicate: Comparison) -> Comparison | None:
    """Equality with the key as equality with the id derived from it, which is indexed."""
    value = predicate.value
    if predicate.operator != "=" or not isinstance(declared, NodeType):
        return None
    if declared.key != (predicate.column,) or not isinstance(value, str | int):
        return None
    scalar = declared.properties[predicate.column].type.scalar
    if scalar not in _SELECTIVE_KEYS:
        return None
    return Comparison("id", "=", canonical_text(value, scalar))


def stored_filter(
    declared: EntityType, predicate: Filter | None, schema: pa.Schema
) -> Filter | None:
    """A predicate on properties as one on stored columns; a missing column counts as null."""
    return None if predicate is None else _stored(declared, predicate, schema)


def _stored(declared: EntityType, predicate: Filter, schema: pa.Schema) -> Filter:
    match predicate:
        case Comparison() | In() | IsNull():
            prop = declared.properties.get(predicate.column)
            if prop is None:
                return predicate
            if prop.column not in schema.names:
                return _ALWAYS if isinstance(predicate, IsNull) else _NEVER
            return structs.replace(predicate, column=prop.column)
        case And(parts):
            return And(tuple(_stored(declared, part, schema) for part in parts))
        case Or(parts):
            return Or(tuple(_stored(declared, part, schema) for part in parts))
        case Not(part):
            return Not(_stored(declared, part, schema))


def filter_columns(predicate: Filter) -> frozenset[str]:
    """The columns a predicate reads."""
    match predicate:
        case Comparison() | In() | IsNull():
            return frozenset({predicate.column})
        case And(parts) | Or(parts):
            return frozenset[str]().union(*(filter_columns(part) for part in parts))
        case Not(part):
            return filter_columns(part)
