"""An earlier schema as it is read today: what was renamed since goes by its present name.

Types and properties are recognised by their numbers. One that was dropped since keeps its last name;
if something else has that name now, its number is appended. A property that was added since is
there as well, so that a query written today can be put to an earlier state.
Tests: tests/unit/catalog/test_past.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from msgspec.structs import replace

from omnigraph.catalog.ir import (
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
from omnigraph.catalog.migrate.annotations import with_embed_source

T = TypeVar("T", NodeIR, EdgeIR)
Named = TypeVar("Named", NodeIR, EdgeIR, PropertyIR)

_Names = Mapping[str, str]


def under_present_names(past: SchemaIR, present: SchemaIR) -> SchemaIR:
    """The types of `past` under the names of `present`."""
    nodes = _names(
        {n.name: n.type_id for n in past.nodes}, {n.type_id: n.name for n in present.nodes}
    )
    edges = _names(
        {e.name: e.type_id for e in past.edges}, {e.type_id: e.name for e in present.edges}
    )
    interfaces = {i.name: i for i in present.interfaces}
    present_nodes = {n.type_id: n for n in present.nodes}
    present_edges = {e.type_id: e for e in present.edges}
    return SchemaIR(
        next_id=past.next_id,
        interfaces=tuple(interfaces.get(i.name, i) for i in past.interfaces),
        nodes=_by_name(_restated(n, nodes, present_nodes) for n in past.nodes),
        edges=_by_name(
            replace(
                _restated(e, edges, present_edges),
                from_type=nodes[e.from_type],
                to_type=nodes[e.to_type],
            )
            for e in past.edges
        ),
    )


def _restated(declared: T, names: _Names, present: Mapping[int, T]) -> T:
    successor = present.get(declared.type_id)
    now = () if successor is None else successor.properties
    properties = _names(
        {p.name: p.prop_id for p in declared.properties}, {p.prop_id: p.name for p in now}
    )
    return replace(
        declared,
        name=names[declared.name],
        properties=_properties(declared.properties, now, properties),
        constraints=tuple(_renamed(c, properties) for c in declared.constraints),
    )


def _properties(
    past: tuple[PropertyIR, ...], present: tuple[PropertyIR, ...], names: _Names
) -> tuple[PropertyIR, ...]:
    """Those there were, with all enum values there are today, then those that came later."""
    now = {p.prop_id: p for p in present}
    found = [
        now.get(p.prop_id)
        or replace(p, name=names[p.name], annotations=with_embed_source(p.annotations, names.get))
        for p in past
    ]
    taken, known = {p.name for p in found}, {p.prop_id for p in past}
    found += [p for p in present if p.prop_id not in known and p.name not in taken]
    return _by_name(found)


def _names(past: Mapping[str, int], present: Mapping[int, str]) -> dict[str, str]:
    """Names of then to names of now."""
    kept = {present[number] for number in past.values() if number in present}
    found = {}
    for name, number in past.items():
        last = f"{name}__{number}" if name in kept else name
        found[name] = present.get(number, last)
    return found


def _renamed(constraint: ConstraintIR, names: _Names) -> ConstraintIR:
    """The ends of an edge, which constraints may name as well, have no other name."""
    match constraint:
        case KeyIR(columns) | UniqueIR(columns) | IndexIR(columns):
            return replace(constraint, columns=tuple(names.get(c, c) for c in columns))
        case RangeIR() | CheckIR():
            return replace(constraint, property=names[constraint.property])


def _by_name(items: Iterable[Named]) -> tuple[Named, ...]:
    return tuple(sorted(items, key=lambda item: item.name))
