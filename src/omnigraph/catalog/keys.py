"""Entity ids: how key values become the text that identifies a node or edge.

The same text is made by the loader, by mutations and by endpoint look-up; two rows of a type are
the same entity exactly when their ids are equal.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence

from omnigraph.catalog.ir import compact_json
from omnigraph.catalog.model import EdgeType, NodeType
from omnigraph.language.schema.rules import ENDPOINTS
from omnigraph.language.types import Scalar

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
