"""The catalog: an accepted schema in the form that readers and writers query.

Built from the canonical form, never from source text. Types, properties and groups come in a fixed
order, so iteration never depends on hashing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from omnigraph.catalog.ir import (
    AnnotationIR,
    CardinalityIR,
    CheckIR,
    ConstraintIR,
    EdgeIR,
    IndexIR,
    KeyIR,
    NodeIR,
    PropertyIR,
    RangeIR,
    SchemaIR,
    UniqueIR,
)
from omnigraph.language.schema.ast import ENDPOINTS
from omnigraph.language.types import PropType

Group = tuple[str, ...]
"""Property names of a key, unique or index group, in identity order."""

_ColumnOrder = Callable[[str], tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Property:
    """A property under its present name; `column` is where its values are stored."""

    name: str
    prop_id: int
    column: str
    type: PropType
    annotations: tuple[AnnotationIR, ...]
    embed_source: str | None = None
    embed_model: str | None = None
    """The model that the schema names for this vector, if it does."""

    @property
    def backfill(self) -> str | None:
        """The text of the value for rows that are older than the property, if it has one."""
        return next((a.value for a in self.annotations if a.name == "backfill"), None)


@dataclass(frozen=True)
class NodeType:
    name: str
    type_id: int
    implements: tuple[str, ...]
    properties: Mapping[str, Property]
    key: Group | None
    unique_groups: tuple[Group, ...]
    index_groups: tuple[Group, ...]
    ranges: tuple[RangeIR, ...]
    checks: tuple[CheckIR, ...]
    annotations: tuple[AnnotationIR, ...] = ()

    @property
    def table_key(self) -> str:
        return f"node:{self.name}"

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The logical columns: the id, then properties by name."""
        return ("id", *self.properties)

    @cached_property
    def blobs(self) -> frozenset[str]:
        return frozenset(p.name for p in self.properties.values() if p.type.is_blob)


@dataclass(frozen=True)
class EdgeType:
    """An edge type. `identity` is the tuple that identifies an edge, when one is declared."""

    name: str
    type_id: int
    from_type: str
    to_type: str
    cardinality: CardinalityIR
    properties: Mapping[str, Property]
    identity: Group | None
    unique_groups: tuple[Group, ...]
    index_groups: tuple[Group, ...]
    annotations: tuple[AnnotationIR, ...] = ()

    @property
    def table_key(self) -> str:
        return f"edge:{self.name}"

    @property
    def is_self_typed(self) -> bool:
        return self.from_type == self.to_type

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The logical columns: the id, both endpoints, then properties by name."""
        return ("id", *ENDPOINTS, *self.properties)

    @cached_property
    def blobs(self) -> frozenset[str]:
        return frozenset(p.name for p in self.properties.values() if p.type.is_blob)


EntityType = NodeType | EdgeType


@dataclass(frozen=True, repr=False)
class Catalog:
    """All types of one accepted schema."""

    ir: SchemaIR
    nodes: Mapping[str, NodeType]
    edges: Mapping[str, EdgeType]
    _edges_by_lower_name: Mapping[str, EdgeType] = field(repr=False)

    def __repr__(self) -> str:
        return f"<Catalog: {len(self.nodes)} node types, {len(self.edges)} edge types>"

    @classmethod
    def from_ir(cls, ir: SchemaIR) -> Catalog:
        nodes = {n.name: _node_type(n) for n in ir.nodes}
        edges = {e.name: _edge_type(e) for e in ir.edges}
        lower_case = {name.lower(): edge for name, edge in edges.items()}
        return cls(ir, nodes, edges, lower_case)

    @cached_property
    def hash(self) -> str:
        return self.ir.hash

    def edge_for_traversal(self, word: str) -> EdgeType | None:
        """The edge type a traversal or load record names, in any case."""
        return self._edges_by_lower_name.get(word.lower())

    def entity(self, table_key: str) -> EntityType:
        """The type behind `node:Name` or `edge:Name`. Raises `KeyError` for one it does not have."""
        kind, _, name = table_key.partition(":")
        return self.nodes[name] if kind == "node" else self.edges[name]

    def __iter__(self) -> Iterator[EntityType]:
        """All types, nodes before edges, each by name."""
        yield from self.nodes.values()
        yield from self.edges.values()


def _node_type(node: NodeIR) -> NodeType:
    order = _identity_order(node.properties)
    keys = [tuple(sorted(c.columns, key=order)) for c in node.constraints if isinstance(c, KeyIR)]
    key = keys[0] if keys else None
    indexed = _groups(node, IndexIR, order)
    return NodeType(
        name=node.name,
        type_id=node.type_id,
        implements=node.implements,
        properties={p.name: _property(p) for p in node.properties},
        key=key,
        unique_groups=_groups(node, UniqueIR, order),
        index_groups=(key, *(g for g in indexed if g != key)) if key else indexed,
        ranges=tuple(c for c in node.constraints if isinstance(c, RangeIR)),
        checks=tuple(c for c in node.constraints if isinstance(c, CheckIR)),
        annotations=node.annotations,
    )


def _edge_type(edge: EdgeIR) -> EdgeType:
    order = _identity_order(edge.properties, ENDPOINTS)
    unique_groups = _groups(edge, UniqueIR, order)
    return EdgeType(
        name=edge.name,
        type_id=edge.type_id,
        from_type=edge.from_type,
        to_type=edge.to_type,
        cardinality=edge.cardinality,
        properties={p.name: _property(p) for p in edge.properties},
        identity=_edge_identity(unique_groups, order),
        unique_groups=unique_groups,
        index_groups=_groups(edge, IndexIR, order),
        annotations=edge.annotations,
    )


def edge_identity(constraints: Sequence[ConstraintIR], numbers: Mapping[str, int]) -> Group | None:
    """The tuple that identifies the edges of a type with these constraints.

    `numbers` are the identities of its properties; one that has none yet comes last.
    """
    last = max(numbers.values(), default=0) + 1

    def order(column: str) -> tuple[int, int]:
        if column in ENDPOINTS:
            return (0, ENDPOINTS.index(column))
        return (1, numbers.get(column, last))

    groups = (tuple(sorted(c.columns, key=order)) for c in constraints if isinstance(c, UniqueIR))
    return _edge_identity(tuple(groups), order)


def _edge_identity(unique_groups: tuple[Group, ...], order: _ColumnOrder) -> Group | None:
    """The smallest group that names both endpoints; among equals the first in identity order.

    That is the alphabetically first when the type was made, and no rename changes it.
    """
    candidates = [g for g in unique_groups if set(ENDPOINTS) <= set(g)]
    return min(candidates, key=lambda g: (len(g), [order(c) for c in g]), default=None)


def _property(prop: PropertyIR) -> Property:
    embed = prop.annotation("embed")
    return Property(
        name=prop.name,
        prop_id=prop.prop_id,
        column=prop.column,
        type=prop.type,
        annotations=prop.annotations,
        embed_source=embed.value if embed else None,
        embed_model=embed.argument("model") if embed else None,
    )


def _identity_order(properties: tuple[PropertyIR, ...], ends: Group = ()) -> _ColumnOrder:
    """Sort key of group columns: endpoints first, then by property id, which no rename changes.

    On an edge `src` and `dst` in a group always mean the endpoints; on a node they are properties.
    """
    ids = {p.name: p.prop_id for p in properties}

    def position(column: str) -> tuple[int, int]:
        if column in ends:
            return (0, ends.index(column))
        return (1, ids[column])

    return position


def _groups(
    declared: NodeIR | EdgeIR, kind: type[UniqueIR] | type[IndexIR], order: _ColumnOrder
) -> tuple[Group, ...]:
    return tuple(
        tuple(sorted(c.columns, key=order)) for c in declared.constraints if isinstance(c, kind)
    )


# -- diagram -----------------------------------------------------------------------------------


def mermaid(catalog: Catalog) -> str:
    """The text of the diagram, without a line break at its end."""
    return "\n".join(_diagram_lines(catalog))


def _diagram_lines(catalog: Catalog) -> Iterator[str]:
    yield "classDiagram"
    for node in catalog.nodes.values():
        yield f"    class {node.name} {{"
        yield from (f"        {line}" for line in _property_lines(node))
        yield "    }"
    for edge in catalog.edges.values():
        properties = ", ".join(edge.properties)
        label = f"{edge.name} ({properties})" if properties else edge.name
        yield f"    {edge.from_type} --> {edge.to_type} : {label}"


def _property_lines(node: NodeType) -> Iterator[str]:
    keys = node.key or ()
    for name in (*keys, *(name for name in node.properties if name not in keys)):
        # Mermaid reads braces and angle brackets as its own; the names of types have neither.
        kind = node.properties[name].type.display
        yield f"{kind} {name}{' @key' if name in keys else ''}"
