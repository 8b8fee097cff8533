"""Declarations resolved and checked: interfaces copied into nodes, annotations turned into constraints.

Resolved declarations no longer depend on each other's text. The rules here are those one node or
edge declaration can break, in the order they are reported; interface properties are checked in the
nodes they were copied into. Conflicting or unknown names are found when the catalog is built. Every
rule has a code (`S17` …) that `omnigraph errors` explains.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NoReturn

from msgspec.structs import replace

from omnigraph.diagnostics import did_you_mean
from omnigraph.errors import ParseError
from omnigraph.language.schema.ast import (
    ENDPOINTS,
    Annotation,
    Cardinality,
    Constraint,
    ConstraintKind,
    Edge,
    Interface,
    Node,
    Property,
    ResolvedEdge,
    ResolvedNode,
    ResolvedSchema,
    ResolvedType,
)
from omnigraph.language.schema.parse import parse_schema
from omnigraph.language.syntax import Name, Source, Span
from omnigraph.language.values import backfill_value

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
    """A key of both endpoints declares the same identity as a unique tuple of them."""
    columns = [column.text for column in constraint.columns]
    if constraint.kind is not ConstraintKind.KEY or not {"@src", "@dst"} <= set(columns):
        return constraint
    endpoints = [
        replace(column, text=column.text.removeprefix("@")) for column in constraint.columns
    ]
    return replace(constraint, kind=ConstraintKind.UNIQUE, columns=tuple(endpoints))


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
                span = existing.type.span if existing in own else name.span
                raise ParseError([source.diagnose(span, "parse", "S16", message)])
    return injected


def _desugar(properties: list[Property]) -> list[Constraint]:
    return [
        Constraint(_DESUGARED[a.name.text], (prop.name,), span=a.span)
        for prop in properties
        for a in prop.annotations
        if a.name.text in _DESUGARED
    ]


# -- rules -------------------------------------------------------------------------------------


_CONSTRAINT_WORDS = ("key", "unique", "index", "embed")
_TEXT_WORDS = ("description", "instruction")
_KEYWORDS: Final[Mapping[str, tuple[str, ...]]] = {"embed": ("model",)}


def check_annotations(source: Source, declared: ResolvedType) -> None:
    """Annotations on the declaration itself, then on each property."""
    for annotation in declared.annotations:
        word = annotation.name.text
        _check_arguments(source, annotation)
        if word in _CONSTRAINT_WORDS:
            if _is_edge(declared):
                message = f"@{word} is not supported on edges ({declared.name})"
                _refuse(source, annotation.span, "S18", message)
            message = f"@{word} is only supported on node properties, not on node {declared.name}"
            _refuse(source, annotation.span, "S17", message)
    _check_texts(source, declared.name.text, declared.annotations)
    for prop in declared.properties:
        _check_property(source, declared, prop)


def check_constraints(source: Source, declared: ResolvedType) -> None:
    """Body constraints, those that property annotations stand for included."""
    key_seen = False
    for constraint in declared.constraints:
        if _is_edge(declared):
            _check_edge_constraint(source, declared, constraint)
            continue
        if constraint.kind is ConstraintKind.KEY:
            if key_seen:
                message = f"node {declared.name} has multiple @key constraints"
                _refuse(source, constraint.span, "S32", message)
            key_seen = True
        for column in constraint.columns:
            _check_node_column(source, declared, constraint, column)


def _check_arguments(source: Source, annotation: Annotation) -> None:
    """Keyword arguments: `@embed` has one, others have none."""
    word, seen = annotation.name.text, set()
    known = _KEYWORDS.get(word, ())
    for argument in annotation.arguments:
        name = argument.name.text
        if name not in known:
            message = f"@{word} has no argument '{name}'"
            _refuse(source, argument.name.span, "S47", message, did_you_mean(name, known))
        if name in seen:
            message = f"@{word} has argument '{name}' more than once"
            _refuse(source, argument.name.span, "S47", message)
        seen.add(name)
        if not argument.value.text.strip():
            message = f"@{word} requires a non-empty value for '{name}'"
            _refuse(source, argument.name.span, "S47", message)


def _check_texts(source: Source, owner: str, annotations: Iterable[Annotation]) -> None:
    seen: set[str] = set()
    for annotation in annotations:
        word = annotation.name.text
        if word not in _TEXT_WORDS:
            continue
        if word in seen:
            _refuse(source, annotation.span, "S19", f"{owner} declares @{word} multiple times")
        seen.add(word)
        if annotation.value is None or not annotation.value.text.strip():
            _refuse(
                source, annotation.span, "S19", f"@{word} on {owner} requires a non-empty value"
            )


def _check_property(source: Source, declared: ResolvedType, prop: Property) -> None:
    where = f"{declared.name}.{prop.name}"
    kind = prop.type.type
    seen: set[str] = set()
    for annotation in prop.annotations:
        word = annotation.name.text
        _check_arguments(source, annotation)
        if word == "instruction":
            message = "@instruction is only supported on node and edge types"
            _refuse(source, annotation.span, "S23", f"{message}, not on property {where}")
        if word in _CONSTRAINT_WORDS:
            if kind.list:
                message = f"@{word} is not supported on list property {where}"
                _refuse(source, annotation.span, "S20", message)
            if kind.is_vector and word in ("key", "unique"):
                message = f"@{word} is not supported on vector property {where}"
                _refuse(source, annotation.span, "S21", message)
            if kind.is_blob:
                message = f"@{word} is not supported on blob property {where}"
                _refuse(source, annotation.span, "S22", message)
            if word in ("key", "embed") and _is_edge(declared):
                message = f"@{word} is not supported on edge properties ({where})"
                _refuse(source, annotation.span, "S24", message)
            if word in seen:
                message = f"property {where} declares @{word} multiple times"
                _refuse(source, annotation.span, "S25", message)
            seen.add(word)
            if word == "embed":
                _check_embed(source, declared, prop, annotation)
    _check_texts(source, where, prop.annotations)
    _check_backfill(source, where, prop)


def _check_embed(
    source: Source, declared: ResolvedType, prop: Property, annotation: Annotation
) -> None:
    where = f"{declared.name}.{prop.name}"
    if not prop.type.type.is_vector:
        message = f"@embed is only supported on vector properties, and {where} is"
        _refuse(source, annotation.span, "S26", f"{message} {prop.type.type.display}")
    if annotation.value is None:
        message = f"@embed on {where} requires a source property name"
        _refuse(source, annotation.span, "S27", message)
    origin = annotation.value.text
    if not origin.strip():
        message = f"@embed on {where} requires a non-empty source property name"
        _refuse(source, annotation.span, "S28", message)
    found = declared.by_name.get(origin)
    if found is None:
        message = f"@embed on {where} references unknown source property '{origin}'"
        hint = did_you_mean(origin, _names(declared))
        _refuse(source, annotation.span, "S29", message, hint)
    if not found.type.type.is_text:
        message = f"the @embed source {declared.name}.{origin} must be String, not"
        _refuse(source, annotation.span, "S30", f"{message} {found.type.type.display}")


def _check_backfill(source: Source, where: str, prop: Property) -> None:
    found = [a for a in prop.annotations if a.name.text == "backfill"]
    if len(found) > 1:
        message = f"invalid @backfill on {where}: it is given more than once"
        _refuse(source, found[1].span, "S45", message)
    for annotation in found:
        if annotation.value is None:
            message = f"invalid @backfill on {where}: it needs a value"
            _refuse(source, annotation.span, "S45", message)
        try:
            backfill_value(annotation.value.text, prop.type.type)
        except ValueError as error:
            message = f"invalid @backfill on {where} ({prop.type.type.display}): {error}"
            _refuse(source, annotation.span, "S45", message)


def _check_edge_constraint(source: Source, declared: ResolvedType, constraint: Constraint) -> None:
    word = constraint.kind.value
    if constraint.kind is ConstraintKind.KEY:
        message = f"@key constraint is not supported on edges ({declared.name}) without both ends"
        hint = "write `@key(@src, @dst)` or `@unique(src, dst)`"
        _refuse(source, constraint.span, "S31", message, hint)
    if constraint.kind in (ConstraintKind.RANGE, ConstraintKind.CHECK):
        message = f"@{word} constraint is not supported on edges ({declared.name})"
        _refuse(source, constraint.span, "S37", message)
    for column in constraint.columns:
        if column.text in ENDPOINTS:
            continue
        prop = _known_property(source, declared, constraint, column, extra=ENDPOINTS)
        if constraint.kind is ConstraintKind.INDEX and prop.type.type.is_blob:
            _refuse_index_on_blob(source, declared, column)


def _check_node_column(
    source: Source, declared: ResolvedType, constraint: Constraint, column: Name
) -> None:
    prop = _known_property(source, declared, constraint, column)
    where = f"{declared.name}.{column}"
    kind = prop.type.type
    match constraint.kind:
        case ConstraintKind.KEY:
            if kind.nullable:
                message = f"@key property {where} cannot be nullable"
                _refuse(source, column.span, "S34", message)
            if kind.list or kind.is_vector or kind.is_blob:
                shape = "list" if kind.list else "vector" if kind.is_vector else "blob"
                message = f"@key is not supported on {shape} property {where}"
                _refuse(source, column.span, "S35", message)
        case ConstraintKind.INDEX:
            if kind.is_blob:
                _refuse_index_on_blob(source, declared, column)
        case ConstraintKind.RANGE:
            if not kind.scalar.is_numeric:
                message = f"@range on {where} requires a numeric type, not {kind.display}"
                _refuse(source, column.span, "S38", message)
        case ConstraintKind.CHECK:
            if kind.scalar.value != "String":
                message = f"@check on {where} requires String type, not {kind.display}"
                _refuse(source, column.span, "S39", message)
        case ConstraintKind.UNIQUE:
            pass


def _refuse_index_on_blob(source: Source, declared: ResolvedType, column: Name) -> NoReturn:
    message = f"@index is not supported on blob property {declared.name}.{column}"
    _refuse(source, column.span, "S36", message)


def _known_property(
    source: Source,
    declared: ResolvedType,
    constraint: Constraint,
    column: Name,
    extra: tuple[str, ...] = (),
) -> Property:
    prop = declared.by_name.get(column.text)
    if prop is None:
        word = constraint.kind.value
        message = f"@{word} on {declared.name} references unknown property '{column}'"
        hint = did_you_mean(column.text, (*_names(declared), *extra))
        _refuse(source, column.span, "S33", message, hint)
    return prop


def _names(declared: ResolvedType) -> list[str]:
    return [p.name.text for p in declared.properties]


def _is_edge(declared: ResolvedType) -> bool:
    return isinstance(declared, ResolvedEdge)


def _refuse(
    source: Source, span: Span, code: str, message: str, hint: str | None = None
) -> NoReturn:
    raise ParseError([source.diagnose(span, ParseError.category, code, message, hint)])
