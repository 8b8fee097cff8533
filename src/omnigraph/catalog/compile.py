"""From schema text to canonical form and catalog, with the rules that need several declarations."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NoReturn, TypeVar

from omnigraph.catalog.identity import allocate_identities
from omnigraph.catalog.ir import (
    AnnotationIR,
    Bound,
    CardinalityIR,
    CheckIR,
    ConstraintIR,
    EdgeIR,
    IndexIR,
    InterfaceIR,
    KeyIR,
    NodeIR,
    PropertyIR,
    RangeIR,
    SchemaIR,
    UniqueIR,
    constraint_key,
)
from omnigraph.catalog.model import Catalog
from omnigraph.diagnostics import did_you_mean
from omnigraph.errors import CatalogError
from omnigraph.language.schema.ast import (
    Annotation,
    Bounds,
    Constraint,
    ConstraintKind,
    Property,
    ResolvedSchema,
)
from omnigraph.language.schema.resolve import resolve_schema
from omnigraph.language.syntax import Name, Source

_RESERVED_EVERYWHERE = frozenset(
    {"id", "_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version"}
    | {"_row_last_updated_at_version"}
)
_RESERVED_ON_EDGES = frozenset({"src", "dst"})

_UNALLOCATED = 0

_Named = TypeVar("_Named", InterfaceIR, NodeIR, EdgeIR, PropertyIR)


def build_schema(source: Source) -> SchemaIR:
    """Compile a schema text to its canonical form, with the identities a new graph would give."""
    return allocate_identities(build_declared(source))


def build_declared(source: Source) -> SchemaIR:
    """The canonical form without identities (all zero), as migration planning compares it."""
    schema = resolve_schema(source)
    _check_names(schema)
    _check_endpoints(schema)
    return SchemaIR(
        next_id=_UNALLOCATED,
        interfaces=_by_name(
            InterfaceIR(i.name.text, _UNALLOCATED, _properties(i.members))
            for i in schema.interfaces
        ),
        nodes=_by_name(
            NodeIR(
                name=n.name.text,
                type_id=_UNALLOCATED,
                annotations=_annotations(n.annotations),
                implements=tuple(sorted({name.text for name in n.implements})),
                properties=_properties(n.properties),
                constraints=_constraints(n.constraints),
            )
            for n in schema.nodes
        ),
        edges=_by_name(
            EdgeIR(
                name=e.name.text,
                type_id=_UNALLOCATED,
                from_type=e.source.text,
                to_type=e.target.text,
                cardinality=CardinalityIR(e.cardinality.low, e.cardinality.high),
                annotations=_annotations(e.annotations),
                properties=_properties(e.properties),
                constraints=_constraints(e.constraints),
            )
            for e in schema.edges
        ),
    )


def _by_name(items: Iterable[_Named]) -> tuple[_Named, ...]:
    return tuple(sorted(items, key=lambda item: item.name))


def check_reserved_names(source: Source) -> None:
    """Refuse property names the engine needs for itself; done when a graph is made or migrated."""
    schema = resolve_schema(source)
    for node in schema.nodes:
        _check_reserved(schema, node.name, node.properties, frozenset())
    for edge in schema.edges:
        _check_reserved(schema, edge.name, edge.properties, _RESERVED_ON_EDGES)


def _check_reserved(
    schema: ResolvedSchema, owner: Name, properties: Iterable[Property], extra: frozenset[str]
) -> None:
    for prop in properties:
        name = prop.name.text
        if name in _RESERVED_EVERYWHERE or name in extra or name.startswith("__"):
            message = f"property name '{name}' on {owner} is reserved"
            _refuse(schema, prop.name, "S46", message, "choose another name for the property")


def _check_names(schema: ResolvedSchema) -> None:
    _unique_names(schema, (i.name for i in schema.interfaces), "duplicate interface: {0}")
    _unique_names(schema, (n.name for n in schema.nodes), "duplicate node type: {0}")
    _unique_names(schema, (e.name for e in schema.edges), "duplicate edge type: {0}")
    for interface in schema.interfaces:
        _unique_properties(schema, interface.name, interface.members)
    for declared in (*schema.nodes, *schema.edges):
        _unique_properties(schema, declared.name, declared.properties)
    lower_case: dict[str, str] = {}
    for edge in schema.edges:
        other = lower_case.setdefault(edge.name.text.lower(), edge.name.text)
        if other != edge.name.text:
            message = f"edge name collision after case folding: {other} and {edge.name}"
            _refuse(schema, edge.name, "S43", message)


def _unique_names(schema: ResolvedSchema, names: Iterable[Name], message: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name.text in seen:
            _refuse(schema, name, "S40", message.format(name))
        seen.add(name.text)


def _unique_properties(schema: ResolvedSchema, owner: Name, properties: Iterable[Property]) -> None:
    seen: set[str] = set()
    for prop in properties:
        if prop.name.text in seen:
            _refuse(schema, prop.name, "S41", f"duplicate property '{prop.name}' on {owner}")
        seen.add(prop.name.text)


def _check_endpoints(schema: ResolvedSchema) -> None:
    nodes = [n.name.text for n in schema.nodes]
    for edge in schema.edges:
        for end, name in (("source", edge.source), ("target", edge.target)):
            if name.text not in nodes:
                message = f"edge {edge.name} references unknown {end} type: {name}"
                _refuse(schema, name, "S42", message, did_you_mean(name.text, nodes))


def _refuse(
    schema: ResolvedSchema, name: Name, code: str, message: str, hint: str | None = None
) -> NoReturn:
    diagnostic = schema.source.diagnose(name.span, CatalogError.category, code, message, hint)
    raise CatalogError([diagnostic])


def _annotations(annotations: Iterable[Annotation]) -> tuple[AnnotationIR, ...]:
    found = (
        AnnotationIR(
            a.name.text,
            a.value.text if a.value else None,
            tuple(sorted((argument.name.text, argument.value.text) for argument in a.arguments)),
        )
        for a in annotations
    )
    return tuple(
        sorted(found, key=lambda a: (a.name, a.value is not None, a.value or "", a.arguments))
    )


def _properties(properties: Iterable[Property]) -> tuple[PropertyIR, ...]:
    found = (
        PropertyIR(
            name=p.name.text,
            prop_id=_UNALLOCATED,
            column=p.name.text,
            type=p.type.type,
            annotations=_annotations(p.annotations),
        )
        for p in properties
    )
    return _by_name(found)


def _constraints(constraints: Iterable[Constraint]) -> tuple[ConstraintIR, ...]:
    # Repeats are dropped by their text: `0..5` and `0.0..5.0` are equal values but two constraints,
    # and which of them stays must not depend on the order of the source.
    found = {constraint_key(c): c for c in map(_constraint, constraints)}
    return tuple(found[key] for key in sorted(found))


def _constraint(constraint: Constraint) -> ConstraintIR:
    if constraint.kind is ConstraintKind.RANGE:
        bounds = constraint.bounds or Bounds(None, None)
        low, high = _bound(bounds.low), _bound(bounds.high)
        return RangeIR(constraint.columns[0].text, low, high)
    if constraint.kind is ConstraintKind.CHECK:
        pattern = constraint.pattern.text if constraint.pattern else ""
        return CheckIR(constraint.columns[0].text, pattern)
    groups: dict[ConstraintKind, Callable[[tuple[str, ...]], ConstraintIR]] = {
        ConstraintKind.KEY: KeyIR,
        ConstraintKind.UNIQUE: UniqueIR,
        ConstraintKind.INDEX: IndexIR,
    }
    columns = tuple(sorted({c.text for c in constraint.columns}))
    return groups[constraint.kind](columns)


def _bound(text: str | None) -> Bound | None:
    """A 64-bit integer when it is one, otherwise a float."""
    if text is None:
        return None
    if "." not in text:
        digits = text.lstrip("-").lstrip("0") or "0"
        # Longer ones are no 64-bit integers, and Python refuses to read very long ones.
        if len(digits) <= 19:
            number = -int(digits) if text.startswith("-") else int(digits)
            if -(2**63) <= number < 2**63:
                return number
    return float(text)


def compile_schema(source: Source) -> Catalog:
    """The catalog a new graph with this schema would have. Raises `LanguageError`."""
    return Catalog.from_ir(build_schema(source))
