"""The catalog of stored queries: what clients and tools are told about a query and its parameters.

Tests: tests/unit/stored_queries/test_catalog.py.
"""

from __future__ import annotations

from typing import Final, Literal

from msgspec import UNSET, Struct, UnsetType

from omnigraph.language.query.ast import Query
from omnigraph.language.types import PropType, Scalar

Kind = Literal[
    "string",
    "bool",
    "int",
    "bigint",
    "float",
    "date",
    "datetime",
    "blob",
    "vector",
    "list",
    "object",
]

_KINDS: Final[dict[Scalar, Kind]] = {
    Scalar.STRING: "string",
    Scalar.BOOL: "bool",
    Scalar.I32: "int",
    Scalar.U32: "int",
    Scalar.I64: "bigint",
    Scalar.U64: "bigint",
    Scalar.F32: "float",
    Scalar.F64: "float",
    Scalar.DATE: "date",
    Scalar.DATETIME: "datetime",
    Scalar.BLOB: "blob",
    Scalar.VECTOR: "vector",
    Scalar.OBJECT: "object",
}


class CatalogParameter(Struct, frozen=True, kw_only=True):
    """A parameter and how clients send it; a `bigint` as decimal text."""

    name: str
    kind: Kind
    item_kind: Kind | UnsetType = UNSET
    vector_dim: int | UnsetType = UNSET
    nullable: bool


class CatalogEntry(Struct, frozen=True, kw_only=True):
    """A stored query as the catalog lists it."""

    name: str
    tool_name: str
    description: str | UnsetType = UNSET
    instruction: str | UnsetType = UNSET
    mutation: bool
    params: list[CatalogParameter]


def catalog_entry(query: Query, tool_name: str) -> CatalogEntry:
    """What the catalog says about a query."""
    return CatalogEntry(
        name=query.name.text,
        tool_name=tool_name,
        description=_note(query, "description"),
        instruction=_note(query, "instruction"),
        mutation=query.is_mutation,
        params=[_parameter(one.name, one.type.type) for one in query.parameters],
    )


def _note(query: Query, name: str) -> str | UnsetType:
    found = query.note(name)
    return UNSET if found is None else found


def _parameter(name: str, of: PropType) -> CatalogParameter:
    kind = _KINDS[of.scalar]
    return CatalogParameter(
        name=name,
        kind="list" if of.list else kind,
        item_kind=kind if of.list else UNSET,
        vector_dim=UNSET if of.dimension is None else of.dimension,
        nullable=of.nullable,
    )
