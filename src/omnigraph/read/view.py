"""A reader's view of a graph: visible types, properties and rows.

A hidden name does not exist for its reader. An edge with an invisible endpoint is invisible.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import ClassVar, TypeVar

from omnigraph.catalog.model import Catalog, EdgeType, EntityType, NodeType
from omnigraph.errors import InputError
from omnigraph.storage.filters import Filter
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.snapshot import Snapshot

_Entity = TypeVar("_Entity", NodeType, EdgeType)


@dataclass(frozen=True)
class ReadView:
    """The part of a graph a reader sees. `ReadView.ALL` sees everything and costs nothing.

    `rows` maps a type to a condition on its rows: text as behind `where` in a mutation, over properties
    under their present names, hidden ones included; or a predicate. A row is visible if the condition is
    true. `params` are the values of the parameters that the texts name; there may be more.

    Raises `LanguageError` for a text that is not a condition. What it says about a type is checked when a
    graph is read: a property that the read commit lacks is an error, never a visible row.
    """

    ALL: ClassVar[ReadView]

    hidden_types: frozenset[str] = frozenset()
    hidden_properties: frozenset[tuple[str, str]] = frozenset()
    rows: Mapping[str, Filter | str] = field(default_factory=lambda: MappingProxyType({}))
    params: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    _compiled: dict[str, tuple[EntityType, Filter]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        for name, condition in self.rows.items():
            if isinstance(condition, str):
                from omnigraph.read.row_predicates import parse_row_condition

                parse_row_condition(name, condition)

    def __reduce__(self) -> tuple[type[ReadView], tuple[object, ...]]:
        """Pickled for tasks with plain dicts; a read-only mapping cannot be pickled."""
        shown = self.hidden_types, self.hidden_properties
        return ReadView, (*shown, dict(self.rows), dict(self.params))

    def predicate(self, declared: EntityType) -> Filter | None:
        """The condition on the rows of a type, given with all its properties; None if all are visible.

        Raises `LanguageError` or `ParameterError`.
        """
        condition = self.rows.get(declared.name)
        if not isinstance(condition, str):
            return condition
        known = self._compiled.get(declared.name)
        if known is not None and known[0] is declared:
            return known[1]
        from omnigraph.read.row_predicates import row_predicate

        found, is_lasting = row_predicate(declared, condition, self.params)
        if is_lasting:
            self._compiled[declared.name] = declared, found
        return found

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
