"""Predicates on the properties of a type as filters on its stored columns."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from msgspec import structs

from omnigraph.catalog.identity import canonical_text
from omnigraph.catalog.model import EntityType, NodeType
from omnigraph.language.types import Scalar
from omnigraph.storage.filters import And, Comparison, Computed, Filter, In, IsNull, Not, Or

_NEVER: Final = Comparison("id", "=", None)
"""A comparison with a missing value is never true."""

_ALWAYS: Final = Not(IsNull("id"))
"""A missing column is null in every row."""

_SELECTIVE_KEYS: Final = frozenset({Scalar.STRING, Scalar.I32, Scalar.I64, Scalar.U32, Scalar.U64})


def id_filter(declared: EntityType, predicate: Comparison) -> Comparison | None:
    """Equality with the key as equality with the id derived from it, which is indexed."""
    value = predicate.value
    if predicate.operator != "=" or not isinstance(declared, NodeType):
        return None
    if declared.key != (predicate.column,) or not isinstance(value, str | int):
        return None
    scalar = declared.properties[predicate.column].type.scalar
    if scalar not in _SELECTIVE_KEYS:
        return None
    return Comparison("id", "=", canonical_text(value, scalar))


def stored_filter(
    declared: EntityType, predicate: Filter | None, schema: pa.Schema
) -> Filter | None:
    """A predicate on properties as one on stored columns; a missing column counts as null."""
    return None if predicate is None else _stored(declared, predicate, schema)


def _stored(declared: EntityType, predicate: Filter, schema: pa.Schema) -> Filter:
    match predicate:
        case Comparison() | In() | IsNull():
            prop = declared.properties.get(predicate.column)
            if prop is None:
                return predicate
            if prop.column not in schema.names:
                return _ALWAYS if isinstance(predicate, IsNull) else _NEVER
            return structs.replace(predicate, column=prop.column)
        case Computed(columns, test):
            names = tuple((name, _column(declared, name, schema)) for name, _ in columns)
            return Computed(names, test)
        case And(parts):
            return And(tuple(_stored(declared, part, schema) for part in parts))
        case Or(parts):
            return Or(tuple(_stored(declared, part, schema) for part in parts))
        case Not(part):
            return Not(_stored(declared, part, schema))


def _column(declared: EntityType, name: str, schema: pa.Schema) -> str | None:
    """The stored column of a property, an id or an end; None if the table lacks it."""
    prop = declared.properties.get(name)
    column = name if prop is None else prop.column
    return column if column in schema.names else None


def filter_columns(predicate: Filter) -> frozenset[str]:
    """The columns a predicate reads."""
    match predicate:
        case Comparison() | In() | IsNull():
            return frozenset({predicate.column})
        case Computed(columns):
            return frozenset(name for name, _ in columns)
        case And(parts) | Or(parts):
            return frozenset[str]().union(*(filter_columns(part) for part in parts))
        case Not(part):
            return filter_columns(part)
