"""Allocated identities: numbers that survive renames, and the physical names that follow them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from omnigraph.catalog.ir import EdgeIR, InterfaceIR, NodeIR, PropertyIR, SchemaIR

FIRST_ID: Final = 1


@dataclass(slots=True)
class IdCounter:
    """The one counter of a graph."""

    next_id: int

    def take(self) -> int:
        taken = self.next_id
        self.next_id += 1
        return taken


def allocate_identities(schema: SchemaIR) -> SchemaIR:
    """Number a new graph's schema: interfaces, nodes, edges by name, each with its properties."""
    counter = IdCounter(FIRST_ID)

    def numbered(properties: tuple[PropertyIR, ...]) -> tuple[PropertyIR, ...]:
        return tuple(replace(p, prop_id=counter.take(), column=p.name) for p in properties)

    interfaces: list[InterfaceIR] = []
    for interface in schema.interfaces:
        type_id = counter.take()
        properties = numbered(interface.properties)
        interfaces.append(replace(interface, type_id=type_id, properties=properties))
    nodes: list[NodeIR] = []
    for node in schema.nodes:
        type_id = counter.take()
        nodes.append(replace(node, type_id=type_id, properties=numbered(node.properties)))
    edges: list[EdgeIR] = []
    for edge in schema.edges:
        type_id = counter.take()
        edges.append(replace(edge, type_id=type_id, properties=numbered(edge.properties)))
    return SchemaIR(counter.next_id, tuple(interfaces), tuple(nodes), tuple(edges))


def physical_column(name: str, prop_id: int, ever_used: Collection[str]) -> str:
    """The column of a new property: its name, unless the table has or had a column so called.

    Then the property's number is appended, again if some other property was created under just
    that name.
    """
    column = name
    while column in ever_used:
        column = f"{column}__{prop_id}"
    return column


def embed_column(prop_id: int) -> str:
    """The hidden column that binds a computed vector to its source text and model."""
    return f"__embed_{prop_id}"


def table_directory(
    kind: str, name: str, type_id: int, taken: Collection[str] = frozenset()
) -> str:
    """Where a new type's data goes: `nodes/<hash of its name>`, with a suffix if that is taken."""
    folder = "nodes" if kind == "node" else "edges"
    path = f"{folder}/{fnv1a64(name.encode()):016x}"
    return f"{path}-{type_id}" if path in taken else path


def fnv1a64(data: bytes) -> int:
    """The 64-bit FNV-1a hash."""
    value = 0xCBF29CE484222325
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value
