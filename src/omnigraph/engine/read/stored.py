"""Predicates on properties as predicates on the columns that hold them."""

from __future__ import annotations

from dataclasses import replace

from omnigraph.catalog.model import EntityType
from omnigraph.storage.filters import And, Comparison, Filter, In, IsNull, Not, Or


def stored_filter(declared: EntityType, predicate: Filter | None) -> Filter | None:
    """The same predicate on stored columns."""
    match predicate:
        case None:
            return None
        case Comparison() | In() | IsNull():
            prop = declared.properties.get(predicate.column)
            return replace(predicate, column=prop.column) if prop else predicate
        case And(parts):
            return And(tuple(_stored(declared, part) for part in parts))
        case Or(parts):
            return Or(tuple(_stored(declared, part) for part in parts))
        case Not(part):
            return Not(_stored(declared, part))


def _stored(declared: EntityType, predicate: Filter) -> Filter:
    found = stored_filter(declared, predicate)
    assert found is not None
    return found


def filter_columns(predicate: Filter) -> frozenset[str]:
    """The columns a predicate looks at."""
    match predicate:
        case Comparison() | In() | IsNull():
            return frozenset({predicate.column})
        case And(parts) | Or(parts):
            return frozenset[str]().union(*(filter_columns(part) for part in parts))
        case Not(part):
            return filter_columns(part)
