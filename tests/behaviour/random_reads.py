"""Random graphs, views and read queries, from pools so small that values meet all the time."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from hypothesis import strategies as st

from omnigraph.api.graph import Graph
from omnigraph.catalog.model import Catalog, EntityType, NodeType, Property
from omnigraph.language.query.ast import (
    BoolLiteral,
    DateLiteral,
    DateTimeLiteral,
    FloatLiteral,
    IntegerLiteral,
    ListLiteral,
    Literal,
    Query,
    StringLiteral,
)
from omnigraph.language.types import PropType, Scalar
from omnigraph.read.view import ReadView
from omnigraph.storage.filters import And, Comparison, Filter, In, IsNull, Not, Or
from tests.support.generate import Range
from tests.support.generate.rows import row_conditions
from tests.support.model.export import export
from tests.support.model.graph import numbered_ids
from tests.support.model.image import Image
from tests.support.model.load import load
from tests.support.model.values import to_float32
from tests.support.outcome import Refusal

CROWDED = """
node A {
    k: String @key
    i: I32?
    l: I64?
    n: U64?
    f: F32?
    d: F64?
    b: Bool?
    on: Date?
    at: DateTime?
    e: enum(x, y, z)?
    tags: [String]?
    nums: [I32]?
}
node B { x: I32  y: String  @key(x, y)  d: F64?  reals: [F32]?  days: [Date]?  vec: Vector(2)? }
node C { t: String?  u: U32?  pic: Blob? }
node Void { k: String @key  i: I32? }
edge Knows: A -> A { w: I32? }
edge Likes: A -> A { far: U32?  w: I32? }
edge Owns: A -> B { since: Date? }
edge Next: B -> B { }
edge Of: C -> A { }
edge Gone: Void -> A { }
"""
"""Every type of value, edges of both kinds, and a type that stays empty."""

# -- values -------------------------------------------------------------------------------------

_POOL: Mapping[Scalar, list[Any]] = {
    Scalar.STRING: ["", "a", "b", "ab", "x", "é", "\U0001f600", "red hens", "Hens of the red hen"],
    Scalar.BLOB: ["base64:SGk=", "base64:"],
    Scalar.BOOL: [True, False],
    Scalar.I32: [-1, 0, 1, 2, 2**31 - 1],
    Scalar.I64: [-1, 0, 1, 2, 2**53 + 1, -(2**63)],
    Scalar.U32: [0, 1, 2, 2**32 - 1],
    Scalar.U64: [0, 1, 2, 2**53 + 1, 2**64 - 1],
    Scalar.F32: [0.0, -0.0, 0.5, 1.0, 2.0, to_float32(0.1)],
    Scalar.F64: [0.0, -0.0, 0.5, 1.0, 2.0, 0.1, to_float32(0.1), 2.0**53],
    Scalar.DATE: ["1970-01-01", "2020-02-29", "0999-12-31"],
    Scalar.DATETIME: ["1970-01-01T00:00:00Z", "2020-02-29T23:59:59.999Z", "2020-02-29"],
}
_COMPONENTS = [0.0, 0.5, 1.0, 2.0]
"""Of vectors: whatever the order of operations, distances are the same to the last digit."""
_NUMBERS = ["0", "1", "2", "2147483648", "9007199254740993", "0.0", "0.5", "0.1", "1.0", "2.7"]


def json_values(kind: PropType, *, nulls: bool = True) -> st.SearchStrategy[Any]:
    """JSON that fits a type, never null itself; lists may hold nulls."""
    if kind.is_vector:
        size = kind.dimension or 1
        return st.lists(st.sampled_from(_COMPONENTS), min_size=size, max_size=size)
    if kind.enum_values is not None:
        return st.sampled_from(kind.enum_values)
    scalars = st.sampled_from(_POOL[kind.scalar])
    if not kind.list:
        return scalars
    return st.lists(st.none() | scalars if nulls else scalars, max_size=3)


def literals(kind: PropType) -> st.SearchStrategy[Literal]:
    """Literals that have a chance to be found."""
    if kind.is_vector:
        return json_values(kind).map(lambda v: ListLiteral(tuple(map(_number, map(str, v)))))
    if kind.list:
        items = st.lists(literals(PropType(kind.scalar)), min_size=1, max_size=3)
        return items.map(lambda found: ListLiteral(tuple(found)))
    if kind.enum_values is not None:
        return st.sampled_from(kind.enum_values).map(StringLiteral)
    if kind.scalar.is_numeric:
        return st.sampled_from(_NUMBERS).map(_number)
    make: dict[Scalar, Any] = {
        Scalar.BOOL: BoolLiteral,
        Scalar.DATE: DateLiteral,
        Scalar.DATETIME: DateTimeLiteral,
    }
    return st.sampled_from(_POOL[kind.scalar]).map(make.get(kind.scalar, StringLiteral))


def _number(text: str) -> Literal:
    return FloatLiteral(text) if "." in text else IntegerLiteral(int(text))


READS = Range(search=False, variables=4, literals=literals)
SEARCHES = Range(search=True, variables=3, literals=literals)
"""Queries a naive evaluator can answer in time."""


@st.composite
def parameter_values(draw: st.DrawFn, query: Query) -> dict[str, Any]:
    """JSON that the parameters of a query accept."""
    given: dict[str, Any] = {}
    for parameter in query.parameters:
        kind = parameter.type.type
        if kind.nullable and draw(st.integers(0, 3)) == 0:
            given[parameter.name] = None
        else:
            fitting = json_values(kind, nulls=False).filter(partial(_is_bindable, kind))
            given[parameter.name] = draw(fitting)
    return given


def _is_bindable(kind: PropType, value: Any) -> bool:
    """Parameters end at the largest signed integer."""
    items = value if isinstance(value, list) else [value]
    return kind.scalar is not Scalar.U64 or all(item < 2**63 for item in items)


# -- graphs -------------------------------------------------------------------------------------


@st.composite
def images(draw: st.DrawFn, catalog: Catalog, *, most: int = 5) -> Image:
    """Some nodes of most types, and edges between them with many self-loops and repetitions."""
    records = []
    for node in catalog.nodes.values():
        if node.name == "Void":
            continue
        for number in range(draw(st.integers(0, most))):
            data = _data(draw, node)
            if node.key is None:
                data["id"] = f"{node.name}{number}"
            records.append({"type": node.name, "data": data})
    image = loaded(Image.empty(catalog), records)
    records = []
    for edge in catalog.edges.values():
        sources = sorted(image.tables[f"node:{edge.from_type}"])
        targets = sorted(image.tables[f"node:{edge.to_type}"])
        if sources and targets:
            for _ in range(draw(st.integers(0, 2 * most))):
                source = draw(st.sampled_from(sources))
                is_loop = edge.is_self_typed and draw(st.integers(0, 2)) == 0
                target = source if is_loop else draw(st.sampled_from(targets))
                ends = {"from": source, "to": target}
                records.append({"edge": edge.name, **ends, "data": _data(draw, edge)})
    return loaded(image, records)


Change = Callable[[Graph], object]


@st.composite
def changes(draw: st.DrawFn, image: Image) -> Change:
    """Something to do to a graph: merge records into it, or delete nodes or edges."""
    catalog = image.catalog
    nodes = [n for n in catalog.nodes.values() if _has_text_key(n) and image.tables[n.table_key]]
    edges = [
        e
        for e in catalog.edges.values()
        if e.name not in catalog.nodes and image.tables[e.table_key]
    ]
    match draw(st.sampled_from(["merge", "merge", "node", "edge"])):
        case "node" if nodes:
            node = draw(st.sampled_from(nodes))
            key = (node.key or ("",))[0]
            id = draw(st.sampled_from(sorted(image.tables[node.table_key])))
            text = f"query d($id: String) {{ delete {node.name} where {key} = $id }}"
            return lambda graph: graph.mutate(text, {"id": id})
        case "edge" if edges:
            edge = draw(st.sampled_from(edges))
            rows = image.tables[edge.table_key].values()
            source = draw(st.sampled_from(sorted(str(row["src"]) for row in rows)))
            text = f"query d($id: String) {{ delete {edge.name} where from = $id }}"
            return lambda graph: graph.mutate(text, {"id": source})
        case _:
            lines = export(draw(images(catalog, most=3)), ())
            return lambda graph: lines and graph.load("\n".join(lines).encode(), "merge")


def _has_text_key(node: NodeType) -> bool:
    key = node.key or ()
    return len(key) == 1 and node.properties[key[0]].type.scalar is Scalar.STRING


def _data(draw: st.DrawFn, declared: EntityType) -> dict[str, Any]:
    data = {}
    for name, prop in declared.properties.items():
        if prop.type.nullable and draw(st.integers(0, 3)) == 0:
            continue
        data[name] = draw(json_values(prop.type))
    return data


def loaded(image: Image, records: list[dict[str, Any]]) -> Image:
    """The image with those of the records that keep the rules."""
    text = "\n".join(map(json.dumps, records))
    try:
        return load(image, text, "merge", numbered_ids(), 10**9, quarantine=True).image
    except Refusal:
        return image


# -- views --------------------------------------------------------------------------------------


@st.composite
def views(draw: st.DrawFn, catalog: Catalog) -> ReadView:
    """Everything, or a part that has at least one node type."""
    if draw(st.booleans()):
        return ReadView.ALL
    nodes = sorted(catalog.nodes)
    hidden_nodes = draw(st.lists(st.sampled_from(nodes), max_size=1)) if len(nodes) > 1 else []
    edges = sorted(catalog.edges.keys() - catalog.nodes.keys())
    hidden_edges = draw(st.lists(st.sampled_from(edges), max_size=1)) if edges else []
    concealable = [
        (declared.name, name)
        for declared in catalog
        for name in declared.properties
        if name not in (getattr(declared, "key", None) or ())
    ]
    hidden = draw(st.lists(st.sampled_from(concealable), max_size=2)) if concealable else []
    rows: dict[str, Filter | str] = {}
    for declared in catalog:
        able = [p for p in declared.properties.values() if not p.type.is_blob]
        is_alone = declared.name not in catalog.nodes.keys() & catalog.edges.keys()
        if able and is_alone and draw(st.integers(0, 2)) == 0:
            written = row_conditions(catalog, declared, READS)
            rows[declared.name] = draw(written if draw(st.booleans()) else predicates(able))
    return ReadView(frozenset(hidden_nodes + hidden_edges), frozenset(hidden), rows)


def predicates(properties: list[Property]) -> st.SearchStrategy[Filter]:
    return st.recursive(
        st.sampled_from(properties).flatmap(_tests),
        lambda part: (
            part.map(Not)
            | st.lists(part, min_size=1, max_size=2).map(tuple).map(And)
            | st.lists(part, min_size=1, max_size=2).map(tuple).map(Or)
        ),
        max_leaves=3,
    )


def _tests(prop: Property) -> st.SearchStrategy[Filter]:
    name, kind = prop.name, prop.type
    is_null = st.just(IsNull(name))
    if kind.is_vector:
        return is_null
    values = json_values(PropType(kind.scalar, enum_values=kind.enum_values))
    if kind.list:
        return is_null | values.map(lambda v: Comparison(name, "contains", v))
    operators = ["=", "!=", "<", "<=", ">", ">="]
    if kind.is_text:
        operators += ["contains", "starts_with"]
    some = st.lists(values, max_size=2).map(tuple)
    return (
        is_null
        | st.builds(Comparison, st.just(name), st.sampled_from(operators), values)
        | st.builds(In, st.just(name), some)
    )
