"""Predicates on properties as predicates on the columns that hold them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa
from msgspec.structs import replace

from omnigraph.catalog.identity import canonical_text
from omnigraph.catalog.model import EntityType, NodeType
from omnigraph.language.types import Scalar
from omnigraph.plan.ir import Condition, Constant
from omnigraph.storage.filters import And, Comparison, Filter, In, IsNull, Not, Or

_UNKNOWN: Final = Comparison("id", "=", None)
_TRUE: Final = Not(IsNull("id"))
"""What a comparison with a missing value is, and what asking whether it is missing is."""

_SELECTIVE_KEYS: Final = frozenset({Scalar.STRING, Scalar.I32, Scalar.I64, Scalar.U32, Scalar.U64})


def condition_filter(condition: Condition, parameters: Mapping[str, Any]) -> Comparison:
    """A condition of a query with the values of its parameters, on properties."""
    value = condition.value
    given: Any = value.value if isinstance(value, Constant) else parameters[value.name]
    return Comparison(condition.property, condition.operator.value, given)


def id_filter(declared: EntityType, predicate: Comparison) -> Comparison | None:
    """Equality with the key as equality with the id it gives, whose column has an index."""
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
    """The same predicate on stored columns. A property a table does not have yet is null."""
    return None if predicate is None else _stored(declared, predicate, schema)


def _stored(declared: EntityType, predicate: Filter, schema: pa.Schema) -> Filter:
    match predicate:
        case Comparison() | In() | IsNull():
            prop = declared.properties.get(predicate.column)
            if prop is None:
                return predicate
            if prop.column not in schema.names:
                return _TRUE if isinstance(predicate, IsNull) else _UNKNOWN
            return replace(predicate, column=prop.column)
        case And(parts):
            return And(tuple(_stored(declared, part, schema) for part in parts))
        case Or(parts):
            return Or(tuple(_stored(declared, part, schema) for part in parts))
        case Not(part):
            return Not(_stored(declared, part, schema))


def filter_columns(predicate: Filter) -> frozenset[str]:
    """The columns a predicate looks at."""
    match predicate:
        case Comparison() | In() | IsNull():
            return frozenset({predicate.column})
        case And(parts) | Or(parts):
            return frozenset[str]().union(*(filter_columns(part) for part in parts))
        case Not(part):
            return filter_columns(part)
