"""A reader's view of a graph: visible types, properties and rows, as filters on stored columns.

A hidden name does not exist for its reader. An edge with an invisible endpoint is invisible.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import ClassVar, Final, TypeVar

import pyarrow as pa
from msgspec import structs

from omnigraph.catalog.identity import canonical_text
from omnigraph.catalog.ir import (
    AnnotationIR,
    CheckIR,
    ConstraintIR,
    EdgeIR,
    NodeIR,
    RangeIR,
    SchemaIR,
)
from omnigraph.catalog.model import Catalog, EdgeType, EntityType, Group, NodeType
from omnigraph.errors import InputError
from omnigraph.language.types import Scalar
from omnigraph.storage.filters import And, Comparison, Filter, In, IsNull, Not, Or
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.snapshot import Snapshot

_Entity = TypeVar("_Entity", NodeType, EdgeType)
_Stored = TypeVar("_Stored", NodeIR, EdgeIR)

HiddenNames = tuple[frozenset[str], frozenset[tuple[str, str]], frozenset[tuple[str, str]] | None]

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
    known: frozenset[tuple[str, str]] | None = None
    """If given, the only types, as `(type, "")`, and properties that there are. What an earlier schema
    had besides is hidden, although nobody can name it any more."""

    def __reduce__(self) -> tuple[type[ReadView], tuple[object, ...]]:
        """Pickled for tasks with a plain dict; a read-only mapping cannot be pickled."""
        return ReadView, (*self.names[:2], dict(self.rows), self.known)

    @property
    def sees_all(self) -> bool:
        return not (self.hides_names or self.rows)

    @property
    def hides_names(self) -> bool:
        """Whether types or properties are hidden, and not only rows."""
        return bool(self.hidden_types or self.hidden_properties) or self.known is not None

    def filters(self, declared: EntityType) -> bool:
        """Whether some rows of a type may be hidden, be it because of their endpoints."""
        ends = (declared.from_type, declared.to_type) if isinstance(declared, EdgeType) else ()
        return any(name in self.rows for name in (declared.name, *ends))

    @property
    def names(self) -> HiddenNames:
        """What decides which names there are."""
        return self.hidden_types, self.hidden_properties, self.known

    def within(self, other: ReadView) -> ReadView:
        """What this view and the other both show."""
        if self.sees_all or self is other:
            return other
        if other.sees_all:
            return self
        rows = dict(self.rows)
        for name, predicate in other.rows.items():
            rows[name] = And((rows[name], predicate)) if name in rows else predicate
        known = self.known if other.known is None else other.known
        if self.known is not None and other.known is not None:
            known = self.known & other.known
        return ReadView(
            self.hidden_types | other.hidden_types,
            self.hidden_properties | other.hidden_properties,
            MappingProxyType(rows),
            known,
        )

    def restrict(self, catalog: Catalog) -> Catalog:
        """The catalog without what is hidden. Raises `InputError` if only a key is hidden."""
        if not self.hides_names:
            return catalog
        nodes = {
            name: _without_rules(self._restrict_type(node))
            for name, node in catalog.nodes.items()
            if not self._hides(node)
        }
        edges = {
            name: self._restrict_type(edge)
            for name, edge in catalog.edges.items()
            if not self._hides(edge) and {edge.from_type, edge.to_type} <= nodes.keys()
        }
        by_lower_name = {name.lower(): edge for name, edge in edges.items()}
        return Catalog(_shown_ir(catalog.ir, nodes, edges), nodes, edges, by_lower_name)

    def loadable(self, catalog: Catalog) -> Catalog:
        """The types that rows can be loaded into: those of which every property is visible.

        Types that nodes of theirs are the ends of stay, and so does the stored form.
        """
        if not self.hides_names:
            return catalog
        shown = self.restrict(catalog)
        return replace(
            catalog,
            nodes={name: node for name, node in catalog.nodes.items() if name in shown.nodes},
            edges={name: edge for name, edge in catalog.edges.items() if name in shown.edges},
            _edges_by_lower_name=shown._edges_by_lower_name,
        )

    def hidden_names(self, catalog: Catalog) -> frozenset[str]:
        """The types, and the properties of visible types, that are hidden wherever there is one."""
        if not self.hides_names:
            return frozenset()
        shown = self.restrict(catalog)
        names = {name for found in catalog for name in (found.name, *found.properties)}
        return frozenset(names.difference(*((t.name, *t.properties) for t in shown)))

    def _hides(self, declared: EntityType) -> bool:
        if declared.name in self.hidden_types:
            return True
        if self.known is None:
            return False
        # An earlier schema may lack what a predicate reads; nobody can tell then which rows to show.
        predicate = self.rows.get(declared.name)
        read = frozenset[str]() if predicate is None else filter_columns(predicate)
        return (declared.name, "") not in self.known or not read <= {*declared.columns}

    def _restrict_type(self, entity: _Entity) -> _Entity:
        hidden = {name for type_name, name in self.hidden_properties if type_name == entity.name}
        if self.known is not None:
            hidden |= {name for name in entity.properties if (entity.name, name) not in self.known}
        if hidden.isdisjoint(entity.properties):
            return entity
        declared: EntityType = entity
        key = declared.key if isinstance(declared, NodeType) else None
        if not hidden.isdisjoint(key or ()):
            raise InputError(f"cannot hide the key of {entity.name}; hide the type instead")
        shown = {name: p for name, p in entity.properties.items() if name not in hidden}
        return replace(
            entity,
            properties=shown,
            unique_groups=_groups_of(entity.unique_groups, shown),
            index_groups=_groups_of(entity.index_groups, shown),
        )


ReadView.ALL = ReadView()


def _without_rules(node: NodeType) -> NodeType:
    """A node type without the rules on properties that it does not have."""
    shown = node.properties
    if all(rule.property in shown for rule in (*node.ranges, *node.checks)):
        return node
    return replace(
        node,
        ranges=tuple(rule for rule in node.ranges if rule.property in shown),
        checks=tuple(rule for rule in node.checks if rule.property in shown),
    )


def _shown_ir(
    ir: SchemaIR, nodes: Mapping[str, NodeType], edges: Mapping[str, EdgeType]
) -> SchemaIR:
    """The stored form of the types that are shown. Interfaces are left out: their properties stay."""
    return structs.replace(
        ir,
        interfaces=(),
        nodes=tuple(
            structs.replace(_shown_type(node, nodes[node.name]), implements=())
            for node in ir.nodes
            if node.name in nodes
        ),
        edges=tuple(_shown_type(edge, edges[edge.name]) for edge in ir.edges if edge.name in edges),
    )


def _shown_type(stored: _Stored, declared: EntityType) -> _Stored:
    shown = {"id", "src", "dst", *declared.properties}
    properties = tuple(
        structs.replace(
            prop, annotations=tuple(a for a in prop.annotations if _may_show(a, stored, shown))
        )
        for prop in stored.properties
        if prop.name in shown
    )
    constraints = tuple(c for c in stored.constraints if shown.issuperset(_columns_of(c)))
    return structs.replace(stored, properties=properties, constraints=constraints)


def _may_show(annotation: AnnotationIR, stored: NodeIR | EdgeIR, shown: set[str]) -> bool:
    """Whether an annotation names no property that is hidden."""
    hidden = {prop.name for prop in stored.properties} - shown
    return annotation.value is None or annotation.value not in hidden


def _columns_of(constraint: ConstraintIR) -> tuple[str, ...]:
    if isinstance(constraint, RangeIR):
        return (constraint.property,)
    return (constraint.property,) if isinstance(constraint, CheckIR) else constraint.columns


def _groups_of(groups: tuple[Group, ...], shown: Collection[str]) -> tuple[Group, ...]:
    columns = {"id", "src", "dst", *shown}
    return tuple(group for group in groups if columns.issuperset(group))


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


def visible_tables(
    snapshot: Snapshot, tables: TableStore, view: ReadView
) -> list[dict[str, object]]:
    """The tables of a snapshot document. Only a view with row predicates reads rows."""
    if view.sees_all:
        return [entry.to_json() for entry in snapshot.entries.values()]
    shown = {declared.table_key: declared.name for declared in view.restrict(snapshot.catalog)}
    counts = visible_counts(snapshot, tables, view)
    return [
        entry.to_json() | {"row_count": counts[shown[key]]}
        for key, entry in snapshot.entries.items()
        if key in shown
    ]


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
