"""Identities: allocated numbers of types and properties, and entity ids made from key values.

Numbers survive renames, and physical names follow them. Loader, mutations and endpoint look-up make
the same id text: two rows of a type are the same entity exactly when their ids are equal.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from msgspec.structs import replace

from omnigraph.catalog.ir import EdgeIR, InterfaceIR, NodeIR, SchemaIR, compact_json
from omnigraph.catalog.model import EdgeType, NodeType
from omnigraph.language.schema.ast import ENDPOINTS
from omnigraph.language.types import Scalar

# -- types and properties ----------------------------------------------------------------------


FIRST_ID: Final = 1

_Declared = TypeVar("_Declared", InterfaceIR, NodeIR, EdgeIR)


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

    def numbered(declared: _Declared) -> _Declared:
        type_id = counter.take()
        properties = tuple(
            replace(p, prop_id=counter.take(), column=p.name) for p in declared.properties
        )
        return replace(declared, type_id=type_id, properties=properties)

    interfaces = tuple(map(numbered, schema.interfaces))
    nodes = tuple(map(numbered, schema.nodes))
    edges = tuple(map(numbered, schema.edges))
    return SchemaIR(counter.next_id, interfaces, nodes, edges)


def physical_column(name: str, prop_id: int, ever_used: Collection[str]) -> str:
    """The column of a new property: its name, unless the table has or had a column of that name.

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


# -- entities ----------------------------------------------------------------------------------


KeyValue = str | int | float | bool
"""A key value as stored: dates are days, datetimes milliseconds since the epoch."""


def canonical_text(value: KeyValue, scalar: Scalar) -> str:
    """The one text of a key value. Raises `ValueError` for a float that is not finite."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if scalar.is_float:
        return _float_text(float(value), scalar)
    return str(value)


def node_id(node: NodeType, values: Mapping[str, KeyValue]) -> str:
    """The id of a keyed node: the key's text, or a JSON array of all texts for a composite key."""
    if node.key is None:
        raise ValueError(f"node type {node.name} has no key")
    texts = [canonical_text(values[name], node.properties[name].type.scalar) for name in node.key]
    return texts[0] if len(texts) == 1 else id_tuple(texts)


def edge_id(
    edge: EdgeType, src: str, dst: str, values: Mapping[str, KeyValue | None]
) -> str | None:
    """The derived id of an edge with identity; None without identity or with a null in the tuple."""
    if edge.identity is None:
        return None
    texts = [src, dst]
    for name in edge.identity:
        if name in ENDPOINTS:
            continue
        value = values.get(name)
        if value is None:
            return None
        texts.append(canonical_text(value, edge.properties[name].type.scalar))
    return id_tuple(texts)


def id_tuple(texts: Sequence[str]) -> str:
    """Several texts as one id: a compact JSON array with minimal escapes."""
    return compact_json(list(texts))


def _float_text(value: float, scalar: Scalar) -> str:
    if not math.isfinite(value):
        raise ValueError(f"a key cannot be {value}")
    if value == 0:
        return "0"
    text = _shortest_float32(value) if scalar is Scalar.F32 else repr(value)
    return text.removesuffix(".0")


def _shortest_float32(value: float) -> str:
    """The fewest digits that read back to the same single-precision value."""
    single = _single(value)
    if math.isinf(single):
        raise ValueError(f"a key of type F32 cannot be {value}")
    for digits in range(1, 10):
        rounded = float(f"{single:.{digits}g}")
        if _single(rounded) == single:
            return repr(rounded)
    return repr(single)


def _single(value: float) -> float:
    """The value at single precision; rounding may lead beyond the largest one."""
    try:
        single: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return single
