"""A reader's view of a graph: visible types, properties and rows.

A hidden name does not exist for its reader. An edge with an invisible endpoint is invisible.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import ClassVar, TypeVar

from msgspec import structs

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
from omnigraph.errors import InputError, LanguageError
from omnigraph.storage.filters import And, Filter
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.snapshot import Snapshot

_Entity = TypeVar("_Entity", NodeType, EdgeType)
_Stored = TypeVar("_Stored", NodeIR, EdgeIR)

HiddenNames = tuple[frozenset[str], frozenset[tuple[str, str]], frozenset[tuple[str, str]] | None]
"""What a view says about names: see `ReadView.names`."""


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
    known: frozenset[tuple[str, str]] | None = None
    """If given, the only types, as `(type, "")`, and properties that there are. What an earlier schema
    had besides is hidden."""
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
        return ReadView, (*shown, dict(self.rows), dict(self.params), self.known)

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

    def shows(self, declared: EntityType, row: Mapping[str, object]) -> bool:
        """Whether the condition on a type is true of a row, given by properties; those that are missing
        are null. Raises `InputError`."""
        predicate = self.predicate(declared)
        if predicate is None:
            return True
        import pyarrow as pa

        from omnigraph.rows.bindings import bound_schema
        from omnigraph.storage.filters import bind, matches

        schema = bound_schema(declared)
        for name in row:
            if name not in declared.columns:
                raise InputError(f"type {declared.name} has no property '{name}'")
        try:
            table = pa.Table.from_pylist([dict(row)], schema=schema)
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise InputError(f"not a row of {declared.name}: {error}") from None
        return bool(matches(bind(predicate, schema), table)[0].as_py())

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
        params = dict(self.params)
        for name, value in other.params.items():
            if params.setdefault(name, value) != value:
                raise InputError(f"two views give parameter '{name}' different values")
        rows = dict(self.rows)
        for name, condition in other.rows.items():
            rows[name] = _both(name, rows[name], condition) if name in rows else condition
        known = self.known if other.known is None else other.known
        if self.known is not None and other.known is not None:
            known = self.known & other.known
        return ReadView(
            self.hidden_types | other.hidden_types,
            self.hidden_properties | other.hidden_properties,
            MappingProxyType(rows),
            MappingProxyType(params),
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
        if (declared.name, "") not in self.known:
            return True
        try:
            self.predicate(declared)
        except LanguageError:
            # An earlier schema may lack what the condition reads; then no row is shown.
            return True
        return False

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


def _both(type_name: str, one: Filter | str, other: Filter | str) -> Filter | str:
    """Rows that meet both conditions."""
    if isinstance(one, str) and isinstance(other, str):
        return f"({one}) and ({other})"
    if isinstance(one, str) or isinstance(other, str):
        raise InputError(
            f"two views limit the rows of {type_name}; write both as conditions in text"
        )
    return And((one, other))


def _without_rules(node: NodeType) -> NodeType:
    """A node type without the rules on properties that it does not have."""
    shown = node.properties
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
