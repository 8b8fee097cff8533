"""The schema as a picture: a box per node type with its properties, a line per edge type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from omnigraph.diagnostics import counted
from omnigraph.errors import InputError
from omnigraph.pictures.svg import COLOURS, LINE_HEIGHT, PADDING, Drawing, Picture, text_width

if TYPE_CHECKING:
    from omnigraph.catalog.model import Catalog, EdgeType, NodeType
    from omnigraph.pictures.graphs import HasTypes

_GAP: Final = 110
_LOOP: Final = 40


class _Box(NamedTuple):
    x: float
    y: float
    width: float
    height: float


def schema(graph: HasTypes) -> Picture:
    """A picture of the schema of a graph.

    >>> pictures.schema(graph).svg.startswith("<svg")
    True
    """
    return draw_schema(graph.schema.catalog)


def diagram(catalog: Catalog, format: str) -> str:
    """The schema as Mermaid or SVG text. Raises `InputError` for another format."""
    if format == "svg":
        return draw_schema(catalog).svg
    if format == "mermaid":
        from omnigraph.catalog.model import mermaid

        return mermaid(catalog)
    raise InputError(f"unknown diagram format '{format}'; use 'mermaid' or 'svg'")


def draw_schema(catalog: Catalog) -> Picture:
    """A picture of node types in a grid, joined by their edge types."""
    drawing = Drawing()
    boxes = _placed(catalog)
    for number, node in enumerate(catalog.nodes.values()):
        _draw_node(drawing, boxes[node.name], node, COLOURS[number % len(COLOURS)])
    between: dict[frozenset[str], int] = {}
    for edge in catalog.edges.values():
        pair = frozenset((edge.from_type, edge.to_type))
        between[pair] = place = between.get(pair, -1) + 1
        _draw_edge(drawing, boxes, edge, place)
    nodes, edges = (
        counted(len(catalog.nodes), "node type"),
        counted(len(catalog.edges), "edge type"),
    )
    return drawing.finish(f"{nodes}, {edges}")


def _lines(node: NodeType) -> list[str]:
    keys = node.key or ()
    names = (*keys, *(name for name in node.properties if name not in keys))
    return [
        f"{name}: {node.properties[name].type.display}{' @key' if name in keys else ''}"
        for name in names
    ]


def _placed(catalog: Catalog) -> dict[str, _Box]:
    """Boxes in rows, about as many columns as rows; the types with most edges come first."""
    degree = dict.fromkeys(catalog.nodes, 0)
    for edge in catalog.edges.values():
        degree[edge.from_type] += 1
        degree[edge.to_type] += 1
    order = sorted(catalog.nodes.values(), key=lambda node: -degree[node.name])
    columns = max(1, round(len(order) ** 0.5 + 0.4))
    found: dict[str, _Box] = {}
    y = float(_LOOP)
    for start in range(0, len(order), columns):
        x, tallest = float(_LOOP), 0.0
        for node in order[start : start + columns]:
            lines = [node.name, *_lines(node)]
            width = max(map(text_width, lines)) + 2 * PADDING
            height = LINE_HEIGHT * len(lines) + 1.5 * PADDING
            found[node.name] = _Box(x, y, width, height)
            x += width + _GAP
            tallest = max(tallest, height)
        y += tallest + _GAP
    return found


def _draw_node(drawing: Drawing, box: _Box, node: NodeType, colour: str) -> None:
    drawing.box(*box, colour)
    x, y = box.x + PADDING, box.y + LINE_HEIGHT
    drawing.text(x, y, node.name, "title")
    for number, line in enumerate(_lines(node), 1):
        drawing.text(x, y + number * LINE_HEIGHT, line)


def _draw_edge(drawing: Drawing, boxes: dict[str, _Box], edge: EdgeType, place: int) -> None:
    """`place` counts the edges between the same two types, so that their lines do not cover each other."""
    start, end = boxes[edge.from_type], boxes[edge.to_type]
    label = f"{edge.name} ({', '.join(edge.properties)})" if edge.properties else edge.name
    if edge.from_type == edge.to_type:
        x, y = start.x + start.width - 20 - 12 * place, start.y
        reach = _LOOP / 2 + 10 * place
        drawing.link(f"M{x:g} {y:g}C{x:g} {y - reach:g} {x + 30:g} {y - reach:g} {x + 16:g} {y:g}")
        drawing.text(x + 22, y - reach / 2, label, "note")
        return
    shift = 22 * place
    middle_y = start.y + start.height / 2 + shift
    if abs(start.y - end.y) < 1:
        leftwards = end.x < start.x
        x1 = start.x if leftwards else start.x + start.width
        x2 = end.x + end.width if leftwards else end.x
        y2 = min(middle_y, end.y + end.height - 6)
        y1 = min(middle_y, start.y + start.height - 6)
        drawing.link(f"M{x1:g} {y1:g}L{x2:g} {y2:g}")
        drawing.text((x1 + x2) / 2, (y1 + y2) / 2 - 6, label, "note", "middle")
        return
    upwards = end.y < start.y
    x1, x2 = start.x + start.width / 2 + shift, end.x + end.width / 2 + shift
    y1 = start.y if upwards else start.y + start.height
    y2 = end.y + end.height if upwards else end.y
    half = (y1 + y2) / 2
    drawing.link(f"M{x1:g} {y1:g}C{x1:g} {half:g} {x2:g} {half:g} {x2:g} {y2:g}")
    drawing.text((x1 + x2) / 2 + 6, half, label, "note", "middle")
