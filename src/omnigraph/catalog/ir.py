"""The canonical form of a schema: what its identity, its hash and its stored file are.

Order and spelling of the source do not show in it. `to_json` writes the fields in their fixed
order; the hash covers everything but the allocated identities, so it is a function of the source
text alone.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final, Literal

from msgspec import Struct

from omnigraph.language.types import PropType, Scalar

IR_VERSION: Final = 2

TypeKind = Literal["interface", "node", "edge"]
Bound = int | float


class AnnotationIR(Struct, frozen=True):
    name: str
    value: str | None
    arguments: tuple[tuple[str, str], ...] = ()
    """Keyword arguments by name."""

    def argument(self, name: str) -> str | None:
        return next((text for key, text in self.arguments if key == name), None)

    def to_json(self) -> dict[str, Any]:
        document: dict[str, Any] = {"name": self.name, "value": self.value}
        # Left out where there are none: the hash of schemas from before there were any is the same.
        return document | ({"arguments": dict(self.arguments)} if self.arguments else {})


class PropertyIR(Struct, frozen=True):
    """A property with its identity: `prop_id` survives renames, `column` is its physical name."""

    name: str
    prop_id: int
    column: str
    type: PropType
    annotations: tuple[AnnotationIR, ...]

    def annotation(self, name: str) -> AnnotationIR | None:
        return next((a for a in self.annotations if a.name == name), None)

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "prop_id": self.prop_id,
            "column": self.column,
            "prop_type": prop_type_to_json(self.type),
            "annotations": [a.to_json() for a in self.annotations],
        }


class KeyIR(Struct, frozen=True):
    columns: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return {"Key": list(self.columns)}


class UniqueIR(Struct, frozen=True):
    columns: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return {"Unique": list(self.columns)}


class IndexIR(Struct, frozen=True):
    columns: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return {"Index": list(self.columns)}


class RangeIR(Struct, frozen=True):
    """Inclusive bounds; an open side is None."""

    property: str
    low: Bound | None
    high: Bound | None

    def to_json(self) -> dict[str, Any]:
        return {
            "Range": {
                "property": self.property,
                "min": _bound_to_json(self.low),
                "max": _bound_to_json(self.high),
            }
        }


class CheckIR(Struct, frozen=True):
    property: str
    pattern: str

    def to_json(self) -> dict[str, Any]:
        return {"Check": {"property": self.property, "pattern": self.pattern}}


ConstraintIR = KeyIR | UniqueIR | IndexIR | RangeIR | CheckIR


def constraint_key(constraint: ConstraintIR) -> str:
    """The text constraints are ordered by: kind, then content."""
    match constraint:
        case KeyIR(columns):
            return f"key:{','.join(columns)}"
        case UniqueIR(columns):
            return f"unique:{','.join(columns)}"
        case IndexIR(columns):
            return f"index:{','.join(columns)}"
        case RangeIR(name, low, high):
            return f"range:{name}:{_bound_text(low)}..{_bound_text(high)}"
        case CheckIR(name, pattern):
            return f"check:{name}:{pattern}"


class InterfaceIR(Struct, frozen=True):
    name: str
    type_id: int
    properties: tuple[PropertyIR, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "type_id": self.type_id,
            "properties": [p.to_json() for p in self.properties],
        }


class NodeIR(Struct, frozen=True):
    name: str
    type_id: int
    annotations: tuple[AnnotationIR, ...]
    implements: tuple[str, ...]
    properties: tuple[PropertyIR, ...]
    constraints: tuple[ConstraintIR, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "type_id": self.type_id,
            "annotations": [a.to_json() for a in self.annotations],
            "implements": list(self.implements),
            "properties": [p.to_json() for p in self.properties],
            "constraints": [c.to_json() for c in self.constraints],
        }


class CardinalityIR(Struct, frozen=True):
    low: int = 0
    high: int | None = None

    def to_json(self) -> dict[str, Any]:
        return {"min": self.low, "max": self.high}


class EdgeIR(Struct, frozen=True):
    name: str
    type_id: int
    from_type: str
    to_type: str
    cardinality: CardinalityIR
    annotations: tuple[AnnotationIR, ...]
    properties: tuple[PropertyIR, ...]
    constraints: tuple[ConstraintIR, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "type_id": self.type_id,
            "from_type": self.from_type,
            "to_type": self.to_type,
            "cardinality": self.cardinality.to_json(),
            "annotations": [a.to_json() for a in self.annotations],
            "properties": [p.to_json() for p in self.properties],
            "constraints": [c.to_json() for c in self.constraints],
        }


TypeIR = InterfaceIR | NodeIR | EdgeIR


class SchemaIR(Struct, frozen=True):
    """A whole schema. `next_id` is the next free identity and never decreases."""

    next_id: int
    interfaces: tuple[InterfaceIR, ...]
    nodes: tuple[NodeIR, ...]
    edges: tuple[EdgeIR, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "ir_version": IR_VERSION,
            "next_id": self.next_id,
            "interfaces": [i.to_json() for i in self.interfaces],
            "nodes": [n.to_json() for n in self.nodes],
            "edges": [e.to_json() for e in self.edges],
        }

    @property
    def hash(self) -> str:
        """`sha256:` and the digest of the compact form without identities."""
        text = compact_json(_without_identity(self.to_json()))
        return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def type_kind(declared: TypeIR) -> TypeKind:
    if isinstance(declared, NodeIR):
        return "node"
    return "edge" if isinstance(declared, EdgeIR) else "interface"


def compact_json(document: Any) -> str:
    """JSON without white space and without escaping of non-ASCII text."""
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)


def prop_type_to_json(prop_type: PropType) -> dict[str, Any]:
    scalar: Any = prop_type.scalar.value
    if prop_type.scalar is Scalar.VECTOR:
        scalar = {"Vector": prop_type.dimension}
    values = prop_type.enum_values
    return {
        "scalar": scalar,
        "nullable": prop_type.nullable,
        "list": prop_type.list,
        "enum_values": None if values is None else list(values),
    }


_IDENTITY_FIELDS = frozenset({"next_id", "type_id", "prop_id", "column"})


def _without_identity(document: Any) -> Any:
    if isinstance(document, dict):
        return {
            key: _without_identity(value)
            for key, value in document.items()
            if key not in _IDENTITY_FIELDS
        }
    if isinstance(document, list):
        return [_without_identity(item) for item in document]
    return document


def _bound_to_json(bound: Bound | None) -> dict[str, Any] | None:
    if bound is None:
        return None
    return {"Integer": bound} if isinstance(bound, int) else {"Float": bound}


def _bound_text(bound: Bound | None) -> str:
    return "" if bound is None else str(bound)
