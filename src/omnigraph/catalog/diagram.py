"""A schema as a Mermaid class diagram: node types as boxes, edge types as arrows."""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.catalog.model import Catalog, NodeType


def mermaid(catalog: Catalog) -> str:
    """The text of the diagram, without a line break at its end."""
    return "\n".join(_lines(catalog))


def _lines(catalog: Catalog) -> Iterator[str]:
    yield "classDiagram"
    for node in catalog.nodes.values():
        yield f"    class {node.name} {{"
        yield from (f"        {line}" for line in _properties(node))
        yield "    }"
    for edge in catalog.edges.values():
        properties = ", ".join(edge.properties)
        label = f"{edge.name} ({properties})" if properties else edge.name
        yield f"    {edge.from_type} --> {edge.to_type} : {label}"


def _properties(node: NodeType) -> Iterator[str]:
    keys = node.key or ()
    for name in (*keys, *(name for name in node.properties if name not in keys)):
        # Mermaid reads braces and angle brackets as its own; the names of types have neither.
        kind = node.properties[name].type.display
        yield f"{kind} {name}{' @key' if name in keys else ''}"
