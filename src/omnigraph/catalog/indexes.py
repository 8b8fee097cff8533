"""Which physical indexes a type asks for. No result ever depends on whether they exist."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from omnigraph.catalog.model import EdgeType, EntityType
from omnigraph.language.types import PropType, Scalar


class IndexKind(Enum):
    BTREE = "btree"
    TEXT = "text"
    VECTOR = "vector"


@dataclass(frozen=True, slots=True)
class IndexIntent:
    """One index a table should have; `column` is the physical column."""

    column: str
    kind: IndexKind


def index_intents(declared: EntityType) -> tuple[IndexIntent, ...]:
    """The indexes of a type: always its ids and ends, then each one-property index group."""
    if isinstance(declared, EdgeType):
        # Property indexes of edges are recorded in the schema only; nothing reads them yet.
        return tuple(IndexIntent(c, IndexKind.BTREE) for c in ("id", "src", "dst"))
    intents = [IndexIntent("id", IndexKind.BTREE)]
    for group in declared.index_groups:
        if len(group) == 1:
            prop = declared.properties[group[0]]
            kind = index_kind(prop.type)
            if kind is not None:
                intents.append(IndexIntent(prop.column, kind))
    return tuple(intents)


def index_kind(prop_type: PropType) -> IndexKind | None:
    """The kind of index a single property of this type gets, if it gets one."""
    if prop_type.list or prop_type.is_blob:
        return None
    if prop_type.is_vector:
        return IndexKind.VECTOR
    if prop_type.scalar is Scalar.STRING and not prop_type.is_enum:
        return IndexKind.TEXT
    return IndexKind.BTREE
