"""An entity and what is connected with it, as a picture: circles around it, one ring per hop."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

from omnigraph.diagnostics import counted, with_hint
from omnigraph.errors import EntityNotFound, InputError
from omnigraph.pictures.svg import COLOURS, Drawing, Picture, shorten

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from omnigraph.catalog.model import Catalog
    from omnigraph.pictures.graphs import HasEntities

MAX_NODES: Final = 60
"""A picture with more circles cannot be read."""

_RING: Final = 150
_RADIUS: Final = 22
_MAX_LABEL: Final = 18


class _Node(NamedTuple):
    type: str
    id: str


class _Edge(NamedTuple):
    type: str
    source: _Node
    target: _Node


def neighbourhood(graph: HasEntities, type: str, id: str, *, hops: int = 1) -> Picture:
    """A picture of a node and of what its edges lead to, up to a number of hops.

    Raises `EntityNotFound`. Of more than 60 nodes the first ones are drawn.

    >>> pictures.neighbourhood(graph, "Person", "ada@x.org")
    <picture: Person ada@x.org with ...>
    """
    catalog = graph.schema.catalog
    if type not in catalog.nodes:
        raise InputError(with_hint(f"unknown node type '{type}'", type, catalog.nodes))
    if not 1 <= hops <= 3:
        raise InputError("hops is 1, 2 or 3")
    if graph.get(type, id) is None:
        raise EntityNotFound(f"node:{type}", id)
    centre = _Node(type, id)
    rings: list[list[_Node]] = [[centre]]
    seen = {centre}
    edges: dict[_Edge, None] = {}
    for _ in range(hops):
        ring: list[_Node] = []
        for edge in _edges_at(graph, catalog, rings[-1]):
            others = [end for end in (edge.source, edge.target) if end not in seen]
            if others and len(seen) >= MAX_NODES:
                continue
            edges[edge] = None
            seen.update(others)
            ring += others
        rings.append(ring)
    drawing = Drawing()
    _draw(drawing, rings, edges, {name: place for place, name in enumerate(catalog.nodes)})
    return drawing.finish(f"{type} {id} with {counted(len(seen) - 1, 'neighbour')}")


def _edges_at(graph: HasEntities, catalog: Catalog, nodes: Iterable[_Node]) -> Iterator[_Edge]:
    for node in nodes:
        for edge in catalog.edges.values():
            for end, declared in (("from", edge.from_type), ("to", edge.to_type)):
                if declared != node.type:
                    continue
                found = graph.scan(
                    edge.name,
                    columns=["src", "dst"],
                    where=f"{end} = $id",
                    params={"id": node.id},
                )
                for row in found.read_all().to_pylist():
                    source = _Node(edge.from_type, row["src"])
                    yield _Edge(edge.name, source, _Node(edge.to_type, row["dst"]))


def _draw(
    drawing: Drawing,
    rings: list[list[_Node]],
    edges: Iterable[_Edge],
    colours: dict[str, int],
) -> None:
    reach = sum(1 for ring in rings[1:] if ring)
    middle = 60 + reach * _RING
    places = {rings[0][0]: (float(middle), float(middle))}
    for number, ring in enumerate(rings[1:], 1):
        for place, node in enumerate(ring):
            angle = 2 * math.pi * place / len(ring) - math.pi / 2
            places[node] = (
                round(middle + number * _RING * math.cos(angle), 1),
                round(middle + number * _RING * math.sin(angle), 1),
            )
    for edge in edges:
        _draw_edge(drawing, places[edge.source], places[edge.target], edge.type)
    for node, (x, y) in places.items():
        colour = COLOURS[colours[node.type] % len(COLOURS)]
        drawing.circle(x, y, _RADIUS, colour, f"{node.type} {node.id}")
        label = shorten(node.id, _MAX_LABEL)
        drawing.text(x, y + 4, label, "title", "middle", f"{node.type} {node.id}")
        drawing.text(x, y + _RADIUS + 12, node.type, "note", "middle")


def _draw_edge(
    drawing: Drawing, start: tuple[float, float], end: tuple[float, float], label: str
) -> None:
    (x1, y1), (x2, y2) = start, end
    length = math.hypot(x2 - x1, y2 - y1)
    if not length:
        drawing.link(
            f"M{x1 - 10:g} {y1 - 20:g}C{x1 - 30:g} {y1 - 60:g} {x1 + 30:g} {y1 - 60:g} "
            f"{x1 + 10:g} {y1 - 20:g}"
        )
        drawing.text(x1, y1 - 54, label, "note", "middle")
        return
    dx, dy = (x2 - x1) / length * _RADIUS, (y2 - y1) / length * _RADIUS
    drawing.link(f"M{x1 + dx:.1f} {y1 + dy:.1f}L{x2 - dx:.1f} {y2 - dy:.1f}")
    drawing.text((x1 + x2) / 2, (y1 + y2) / 2 - 4, label, "note", "middle")
