"""The canonical form of a schema: what its identity, its hash and its stored file are.

Order and spelling of the source do not show in it. The fields are written in their fixed order; the hash covers everything but the allocated identities, so it is a function of the source
text alone.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from omnigraph.json_structs import described
from omnigraph.language.types import PropType

IR_VERSION: Final = 2

TypeKind = Literal["interface", "node", "edge"]
Bound = int | float


_BOUNDS: Final = {"low": "min", "high": "max"}


class _Stored(Struct, frozen=True):
    """A part of a schema with its stored form."""

    def to_json(self) -> dict[str, Any]:
        return stored_form(self)


class AnnotationIR(_Stored, frozen=True):
    name: str
    value: str | None
    arguments: tuple[tuple[str, str], ...] = ()
    """Keyword arguments by name."""

    def argument(self, name: str) -> str | None:
        return next((text for key, text in self.arguments if key == name), None)


class PropertyIR(_Stored, frozen=True, rename={"type": "prop_type"}):
    """A property with its identity: `prop_id` survives renames, `column` is its physical name."""

    name: str
    prop_id: int
    column: str
    type: PropType
    annotations: tuple[AnnotationIR, ...]

    def annotation(self, name: str) -> AnnotationIR | None:
        return next((a for a in self.annotations if a.name == name), None)


class KeyIR(_Stored, frozen=True, tag="Key"):
    columns: tuple[str, ...]


class UniqueIR(_Stored, frozen=True, tag="Unique"):
    columns: tuple[str, ...]


class IndexIR(_Stored, frozen=True, tag="Index"):
    columns: tuple[str, ...]


class RangeIR(_Stored, frozen=True, tag="Range", rename=_BOUNDS):
    """Inclusive bounds; an open side is None."""

    property: str
    low: Bound | None
    high: Bound | None


class CheckIR(_Stored, frozen=True, tag="Check"):
    property: str
    pattern: str


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


class InterfaceIR(_Stored, frozen=True):
    name: str
    type_id: int
    properties: tuple[PropertyIR, ...]


class NodeIR(_Stored, frozen=True):
    name: str
    type_id: int
    annotations: tuple[AnnotationIR, ...]
    implements: tuple[str, ...]
    properties: tuple[PropertyIR, ...]
    constraints: tuple[ConstraintIR, ...]


class CardinalityIR(_Stored, frozen=True, rename=_BOUNDS):
    low: int = 0
    high: int | None = None


class EdgeIR(_Stored, frozen=True):
    name: str
    type_id: int
    from_type: str
    to_type: str
    cardinality: CardinalityIR
    annotations: tuple[AnnotationIR, ...]
    properties: tuple[PropertyIR, ...]
    constraints: tuple[ConstraintIR, ...]


TypeIR = InterfaceIR | NodeIR | EdgeIR


class SchemaIR(_Stored, frozen=True, tag=IR_VERSION, tag_field="ir_version"):
    """A whole schema. `next_id` is the next free identity and never decreases."""

    next_id: int
    interfaces: tuple[InterfaceIR, ...]
    nodes: tuple[NodeIR, ...]
    edges: tuple[EdgeIR, ...]

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


def schema_from_json(document: Any) -> SchemaIR:
    """Rebuild a schema from `SchemaIR.to_json()`. Raises `ValueError`."""
    if not isinstance(document, dict) or document.get("ir_version") != IR_VERSION:
        version = document.get("ir_version") if isinstance(document, dict) else document
        raise ValueError(f"schema IR version {version} is not {IR_VERSION}")
    try:
        return msgspec.convert(_from_stored(document), described(SchemaIR))
    except (TypeError, AttributeError) as error:
        raise ValueError(f"not a schema IR document: {error!r}") from error


def stored_form(value: Struct) -> dict[str, Any]:
    """A struct of schema parts as it is stored and printed."""
    document: dict[str, Any] = _to_stored(msgspec.to_builtins(value))
    return document


# The stored form is older than the structs: it names constraints and bounds by a key around them
# (`{"Key": [..]}`, `{"Integer": 3}`), has the dimension of a vector inside its scalar, and no key
# for arguments where there are none, so that the hash of schemas from before there were any holds.


def _to_stored(value: Any) -> Any:
    match value:
        case {"type": "Range", "property": name, "min": low, "max": high}:
            bounds = {"min": _stored_bound(low), "max": _stored_bound(high)}
            return {"Range": {"property": name, **bounds}}
        case {"type": "Check", **body}:
            return {"Check": body}
        case {"type": str(kind), "columns": columns}:
            return {kind: list(columns)}
        case {"scalar": scalar, "dimension": dimension, "fields": _, **rest}:
            shown = scalar if dimension is None else {scalar: dimension}
            return {"scalar": shown, **_to_stored(rest)}
        case {"name": name, "value": text, "arguments": arguments}:
            more = {"arguments": dict(arguments)} if arguments else {}
            return {"name": name, "value": text, **more}
        case dict():
            return {key: _to_stored(item) for key, item in value.items()}
        case list() | tuple():
            return [_to_stored(item) for item in value]
    return value


def _from_stored(value: Any) -> Any:
    match value:
        case {"Range": {"property": name, "min": low, "max": high}}:
            return {"type": "Range", "property": name, "min": _bound(low), "max": _bound(high)}
        case {"Check": dict(body)}:
            return {"type": "Check", **body}
        case {"Key": columns} | {"Unique": columns} | {"Index": columns} if len(value) == 1:
            return {"type": next(iter(value)), "columns": columns}
        case {"scalar": {"Vector": dimension}, **rest}:
            return {"scalar": "Vector", "dimension": dimension, **rest}
        case {"arguments": dict(arguments), **rest}:
            return {**rest, "arguments": sorted(arguments.items())}
        case dict():
            return {key: _from_stored(item) for key, item in value.items()}
        case list():
            return [_from_stored(item) for item in value]
    return value


def _stored_bound(bound: Bound | None) -> dict[str, Any] | None:
    if bound is None:
        return None
    return {"Integer": bound} if isinstance(bound, int) else {"Float": bound}


def _bound(stored: Any) -> Any:
    match stored:
        case {"Integer": bound} if isinstance(bound, int):
            return bound
        case {"Float": bound} if isinstance(bound, int | float):
            return float(bound)
    return stored


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


def _bound_text(bound: Bound | None) -> str:
    return "" if bound is None else str(bound)
