"""What a reader may see of a graph: types, properties, and a predicate on the rows of each type.

A hidden name does not exist for its reader. An edge with an invisible end is invisible.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import ClassVar, TypeVar

from omnigraph.catalog.model import Catalog, EdgeType, EntityType, Group, NodeType
from omnigraph.errors import InputError
from omnigraph.storage.filters import Filter

_Entity = TypeVar("_Entity", NodeType, EdgeType)


def _no_rows() -> Mapping[str, Filter]:
    return MappingProxyType({})


@dataclass(frozen=True)
class ReadView:
    """The part of a graph a reader sees. `ReadView.ALL` sees everything and costs nothing.

    `rows` maps a type to a predicate on its properties, under their present names.
    """

    ALL: ClassVar[ReadView]

    hidden_types: frozenset[str] = frozenset()
    hidden_properties: frozenset[tuple[str, str]] = frozenset()
    rows: Mapping[str, Filter] = field(default_factory=_no_rows)

    def __reduce__(self) -> tuple[type[ReadView], tuple[object, ...]]:
        """As it travels to tasks; a read-only mapping cannot."""
        return ReadView, (self.hidden_types, self.hidden_properties, dict(self.rows))

    @property
    def sees_all(self) -> bool:
        return not (self.hidden_types or self.hidden_properties or self.rows)

    def restrict(self, catalog: Catalog) -> Catalog:
        """The catalog without what is hidden. Raises `InputError` for a view that makes no sense."""
        if not (self.hidden_types or self.hidden_properties):
            return catalog
        nodes = {
            name: self._restricted(node)
            for name, node in catalog.nodes.items()
            if name not in self.hidden_types
        }
        edges = {
            name: self._restricted(edge)
            for name, edge in catalog.edges.items()
            if name not in self.hidden_types and {edge.from_type, edge.to_type} <= nodes.keys()
        }
        folded = {name.lower(): edge for name, edge in edges.items()}
        return Catalog(catalog.ir, nodes, edges, folded)

    def _restricted(self, entity: _Entity) -> _Entity:
        hidden = {name for type_name, name in self.hidden_properties if type_name == entity.name}
        if not hidden:
            return entity
        if not hidden.isdisjoint(_key(entity)):
            message = f"hiding the key of {entity.name} without the type would hide who is who"
            raise InputError(f"{message}; hide the type instead")
        shown = {name: p for name, p in entity.properties.items() if name not in hidden}
        return replace(entity, properties=shown)


def _key(entity: EntityType) -> Group:
    return (entity.key or ()) if isinstance(entity, NodeType) else ()


ReadView.ALL = ReadView()
