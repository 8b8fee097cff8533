"""Interfaces copied into nodes, property annotations turned into constraints.

The result is what the rest of the product works with: declarations that no longer depend on each
other's text. Names that clash or dangle are found later, when the catalog is built.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from omnigraph.diagnostics import did_you_mean
from omnigraph.errors import ParseError
from omnigraph.language.schema.ast import (
    Cardinality,
    Constraint,
    ConstraintKind,
    Edge,
    Interface,
    Node,
    Property,
)
from omnigraph.language.schema.parse import parse_schema
from omnigraph.language.schema.resolved import ResolvedEdge, ResolvedNode, ResolvedSchema
from omnigraph.language.schema.rules import check_annotations, check_constraints
from omnigraph.language.span import Source

_DESUGARED = {
    kind.value: kind for kind in (ConstraintKind.KEY, ConstraintKind.UNIQUE, ConstraintKind.INDEX)
}


def resolve_schema(source: Source) -> ResolvedSchema:
    """Parse a schema and apply every rule that a single file can break."""
    schema = parse_schema(source)
    declarations = reversed(schema.declarations)
    interfaces = {d.name.text: d for d in declarations if isinstance(d, Interface)}
    resolved = [_resolve(source, interfaces, d) for d in schema.declarations]
    types = [t for t in resolved if not isinstance(t, Interface)]
    for declared in types:
        check_annotations(source, declared)
    for declared in types:
        check_constraints(source, declared)
    return ResolvedSchema(
        source,
        tuple(t for t in resolved if isinstance(t, Interface)),
        tuple(t for t in resolved if isinstance(t, ResolvedNode)),
        tuple(t for t in resolved if isinstance(t, ResolvedEdge)),
    )


def _resolve(
    source: Source, interfaces: Mapping[str, Interface], declared: Interface | Node | Edge
) -> Interface | ResolvedNode | ResolvedEdge:
    if isinstance(declared, Interface):
        return declared
    properties = [m for m in declared.members if isinstance(m, Property)]
    constraints = [m for m in declared.members if isinstance(m, Constraint)]
    constraints += _desugar(properties)
    if isinstance(declared, Edge):
        constraints = list(map(_edge_constraint, constraints))
        return ResolvedEdge(
            declared.name,
            declared.source,
            declared.target,
            declared.cardinality or Cardinality(),
            declared.annotations,
            tuple(properties),
            tuple(constraints),
        )
    injected = _injected_properties(source, interfaces, declared, properties)
    return ResolvedNode(
        declared.name,
        declared.annotations,
        declared.implements,
        (*properties, *injected),
        (*constraints, *_desugar(injected)),
    )


def _edge_constraint(constraint: Constraint) -> Constraint:
    """A key of both ends is the identity that a unique tuple of them declares."""
    columns = [column.text for column in constraint.columns]
    if constraint.kind is not ConstraintKind.KEY or not {"@src", "@dst"} <= set(columns):
        return constraint
    ends = [replace(column, text=column.text.removeprefix("@")) for column in constraint.columns]
    return replace(constraint, kind=ConstraintKind.UNIQUE, columns=tuple(ends))


def _injected_properties(
    source: Source, interfaces: Mapping[str, Interface], node: Node, own: list[Property]
) -> list[Property]:
    known = {p.name.text: p for p in reversed(own)}
    injected = []
    for name in node.implements:
        interface = interfaces.get(name.text)
        if interface is None:
            message = f"node {node.name} implements unknown interface '{name}'"
            hint = did_you_mean(name.text, interfaces)
            raise ParseError([source.diagnose(name.span, "parse", "S15", message, hint)])
        for prop in interface.members:
            existing = known.get(prop.name.text)
            if existing is None:
                known[prop.name.text] = prop
                injected.append(prop)
            elif existing.type.type != prop.type.type:
                message = (
                    f"node {node.name} declares '{prop.name}' as {existing.type.type.display}, "
                    f"but interface {interface.name} declares it as {prop.type.type.display}"
                )
                place = existing.type.span if existing in own else name.span
                raise ParseError([source.diagnose(place, "parse", "S16", message)])
    return injected


def _desugar(properties: list[Property]) -> list[Constraint]:
    return [
        Constraint(_DESUGARED[a.name.text], (prop.name,), span=a.span)
        for prop in properties
        for a in prop.annotations
        if a.name.text in _DESUGARED
    ]
