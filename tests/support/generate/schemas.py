"""Random schema trees that every rule accepts."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from omnigraph.language.schema.ast import (
    Annotation,
    AnnotationArgument,
    AnnotationValue,
    Bounds,
    Cardinality,
    Constraint,
    ConstraintKind,
    Declaration,
    Edge,
    Interface,
    Member,
    Node,
    Pattern,
    Property,
    Schema,
)
from omnigraph.language.syntax import Name, TypeRef
from omnigraph.language.types import PropType, Scalar
from tests.support.generate.names import (
    decimal_floats,
    enum_values,
    idents,
    texts,
    type_names,
)

_LIST_ELEMENTS = [s for s in Scalar if s not in (Scalar.BLOB, Scalar.VECTOR, Scalar.OBJECT)]
_PLAIN = [s for s in Scalar if s not in (Scalar.VECTOR, Scalar.OBJECT)]
_CUSTOM_ANNOTATIONS = ("shelf", "hue", "owner", "default")


@st.composite
def type_refs(draw: st.DrawFn) -> TypeRef:
    """Every shape of property type."""
    nullable = draw(st.booleans())
    shape = draw(st.sampled_from(["plain", "plain", "list", "enum", "vector"]))
    if shape == "enum":
        values = draw(st.lists(enum_values, min_size=1, max_size=4, unique=True))
        kind = PropType(Scalar.STRING, nullable, enum_values=tuple(sorted(values)))
        return TypeRef(kind, tuple(values))
    if shape == "vector":
        dimension = draw(st.integers(1, 8))
        return TypeRef(PropType(Scalar.VECTOR, nullable, dimension=dimension))
    if shape == "list":
        return TypeRef(PropType(draw(st.sampled_from(_LIST_ELEMENTS)), nullable, list=True))
    return TypeRef(PropType(draw(st.sampled_from(_PLAIN)), nullable))


@st.composite
def schemas(draw: st.DrawFn, *, min_nodes: int = 0, max_nodes: int = 4) -> Schema:
    """A schema file with interfaces, nodes and edges that fit together."""
    interfaces = _interfaces(draw)
    names = draw(st.lists(type_names, min_size=min_nodes, max_size=max_nodes, unique_by=str.lower))
    nodes = [_node(draw, name, interfaces) for name in names]
    edges: list[Edge] = []
    if names:
        edge_names = draw(st.lists(type_names, max_size=4, unique_by=str.lower))
        edges = [_edge(draw, name, names) for name in edge_names]
    declarations: list[Declaration] = [*interfaces, *nodes, *edges]
    return Schema(tuple(draw(st.permutations(declarations))))


def _interfaces(draw: st.DrawFn) -> list[Interface]:
    """Interfaces agree with each other on the type of a shared property name."""
    pool = {name: draw(type_refs()) for name in draw(st.lists(idents, max_size=3, unique=True))}
    names = draw(st.lists(type_names, max_size=2, unique=True))
    found = []
    for name in names:
        chosen = draw(st.lists(st.sampled_from(sorted(pool)), unique=True)) if pool else []
        members = tuple(Property(Name(p), pool[p]) for p in chosen)
        found.append(Interface(Name(name), members))
    return found


def _node(draw: st.DrawFn, name: str, interfaces: Sequence[Interface]) -> Node:
    implemented = []
    if interfaces:
        implemented = draw(st.lists(st.sampled_from(list(interfaces)), max_size=2))
    inherited = {p.name.text: p.type for i in implemented for p in i.members}
    own = draw(st.lists(idents, max_size=5, unique=True))
    types = {p: inherited.get(p) or draw(type_refs()) for p in own}
    key = _key(draw, {**inherited, **types})
    properties = [_node_property(draw, p, types) for p in own]
    members: list[Member] = [*properties, *_node_constraints(draw, {**inherited, **types})]
    if key:
        members.append(Constraint(ConstraintKind.KEY, tuple(Name(p) for p in key)))
    return Node(
        Name(name),
        _header_annotations(draw),
        tuple(i.name for i in implemented),
        tuple(draw(st.permutations(members))),
    )


def _key(draw: st.DrawFn, types: dict[str, TypeRef]) -> list[str]:
    able = sorted(p for p, ref in types.items() if _can_be_key(ref.type))
    if not able or not draw(st.booleans()):
        return []
    return draw(st.lists(st.sampled_from(able), min_size=1, max_size=2, unique=True))


def _can_be_key(kind: PropType) -> bool:
    return not (kind.nullable or kind.list or kind.is_vector or kind.is_blob)


def _node_property(draw: st.DrawFn, name: str, types: dict[str, TypeRef]) -> Property:
    kind = types[name].type
    annotations = _property_annotations(draw, kind)
    sources = sorted(p for p, ref in types.items() if ref.type.is_text)
    if kind.is_vector and sources and draw(st.booleans()):
        source = AnnotationValue(draw(st.sampled_from(sources)))
        named = ("openai/text-embedding-3-large", "gemini/x", 'odd "model"')
        models = draw(st.lists(st.sampled_from(named), max_size=1))
        arguments = tuple(AnnotationArgument(Name("model"), AnnotationValue(m)) for m in models)
        annotations.append(Annotation(Name("embed"), source, arguments))
    return Property(Name(name), types[name], tuple(annotations))


def _property_annotations(draw: st.DrawFn, kind: PropType) -> list[Annotation]:
    found = []
    if not (kind.list or kind.is_blob):
        if draw(st.booleans()):
            found.append(Annotation(Name("index")))
        if not kind.is_vector and draw(st.booleans()):
            found.append(Annotation(Name("unique")))
    if draw(st.booleans()):
        found.append(_custom_annotation(draw))
    return found


def _header_annotations(draw: st.DrawFn) -> tuple[Annotation, ...]:
    found = []
    for word in ("description", "instruction"):
        if draw(st.booleans()):
            text = draw(texts.filter(str.strip))
            found.append(Annotation(Name(word), AnnotationValue(text)))
    if draw(st.booleans()):
        found.append(_custom_annotation(draw))
    return tuple(found)


def _custom_annotation(draw: st.DrawFn) -> Annotation:
    word = draw(st.sampled_from(_CUSTOM_ANNOTATIONS))
    value = draw(st.one_of(st.none(), texts))
    return Annotation(Name(word), None if value is None else AnnotationValue(value))


def _node_constraints(draw: st.DrawFn, types: dict[str, TypeRef]) -> list[Constraint]:
    found = []
    for name, ref in types.items():
        kind = ref.type
        column = (Name(name),)
        if kind.scalar.is_numeric and draw(st.booleans()):
            found.append(Constraint(ConstraintKind.RANGE, column, bounds=draw(_bounds())))
        if kind.scalar is Scalar.STRING and draw(st.booleans()):
            pattern = Pattern(draw(texts))
            found.append(Constraint(ConstraintKind.CHECK, column, pattern=pattern))
    groupable = sorted(types)
    if draw(st.booleans()) and groupable:
        group = draw(st.lists(st.sampled_from(groupable), min_size=1, max_size=3, unique=True))
        found.append(Constraint(ConstraintKind.UNIQUE, tuple(Name(p) for p in group)))
    return found


@st.composite
def _bounds(draw: st.DrawFn) -> Bounds:
    number = st.one_of(st.integers(-(10**20), 10**20).map(str), decimal_floats(signed=True))
    sides = draw(st.sampled_from(["low", "high", "both"]))
    return Bounds(
        draw(number) if sides != "high" else None,
        draw(number) if sides != "low" else None,
    )


def _edge(draw: st.DrawFn, name: str, nodes: Sequence[str]) -> Edge:
    end = st.sampled_from(list(nodes))
    own = draw(st.lists(idents, max_size=3, unique=True))
    types = {p: draw(type_refs()) for p in own}
    members: list[Member] = [
        Property(Name(p), types[p], tuple(_property_annotations(draw, types[p].type))) for p in own
    ]
    if draw(st.booleans()):
        extra = draw(st.lists(st.sampled_from(own), unique=True)) if own else []
        group = tuple(Name(p) for p in ("src", "dst", *extra))
        members.append(Constraint(ConstraintKind.UNIQUE, group))
    cardinality = None
    if draw(st.booleans()):
        low = draw(st.integers(0, 3))
        high = draw(st.one_of(st.none(), st.integers(low, 2**32 - 1)))
        cardinality = Cardinality(low, high)
    return Edge(
        Name(name),
        Name(draw(end)),
        Name(draw(end)),
        cardinality,
        _header_annotations(draw),
        tuple(draw(st.permutations(members))),
    )
