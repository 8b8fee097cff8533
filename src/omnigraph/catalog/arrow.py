"""How types are stored: Arrow schemas and physical indexes. The one importer of pyarrow here.

Results never depend on whether an index exists.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.identity import embed_column
from omnigraph.catalog.model import EdgeType, EntityType
from omnigraph.language.types import PropType, Scalar

_SCALARS = {
    Scalar.STRING: pa.utf8(),
    Scalar.BLOB: pa.large_binary(),
    Scalar.BOOL: pa.bool_(),
    Scalar.I32: pa.int32(),
    Scalar.I64: pa.int64(),
    Scalar.U32: pa.uint32(),
    Scalar.U64: pa.uint64(),
    Scalar.F32: pa.float32(),
    Scalar.F64: pa.float64(),
    Scalar.DATE: pa.date32(),
    Scalar.DATETIME: pa.date64(),
}


def arrow_type(prop_type: PropType) -> pa.DataType:
    """The Arrow type of a property's values."""
    if prop_type.is_vector:
        item = pa.field("item", pa.float32(), nullable=True)
        return pa.list_(item, prop_type.dimension)
    if prop_type.fields is not None:
        parts = [pa.field(name, arrow_type(kind)) for name, kind in prop_type.fields]
        scalar = pa.struct(parts)
    else:
        scalar = _SCALARS[prop_type.scalar]
    return pa.list_(pa.field("item", scalar, nullable=True)) if prop_type.list else scalar


def logical_schema(declared: EntityType) -> pa.Schema:
    """What readers see: id, endpoints, then properties by name under their present names."""
    return pa.schema(
        [
            *_identity_fields(declared),
            *(
                pa.field(p.name, arrow_type(p.type), nullable=p.type.nullable)
                for p in declared.properties.values()
            ),
        ]
    )


def physical_schema(declared: EntityType) -> pa.Schema:
    """What a new table holds: the same under physical column names, plus hidden columns."""
    fields = _identity_fields(declared)
    for prop in declared.properties.values():
        fields.append(pa.field(prop.column, arrow_type(prop.type), nullable=prop.type.nullable))
    for prop in declared.properties.values():
        if prop.embed_source is not None:
            fields.append(pa.field(embed_column(prop.prop_id), pa.utf8(), nullable=True))
    return pa.schema(fields)


def _identity_fields(declared: EntityType) -> list[pa.Field]:
    names = ("id", "src", "dst") if isinstance(declared, EdgeType) else ("id",)
    return [pa.field(name, pa.utf8(), nullable=False) for name in names]


# -- indexes -----------------------------------------------------------------------------------


class IndexKind(Enum):
    BTREE = "btree"
    TEXT = "text"
    VECTOR = "vector"


@dataclass(frozen=True, slots=True)
class IndexSpec:
    """One index a table should have; `column` is the physical column."""

    column: str
    kind: IndexKind


def index_specs(declared: EntityType) -> tuple[IndexSpec, ...]:
    """The indexes of a type: its ids and endpoints, then each one-property index group."""
    if isinstance(declared, EdgeType):
        # Property indexes of edges are recorded in the schema only; nothing reads them yet.
        return tuple(IndexSpec(c, IndexKind.BTREE) for c in ("id", "src", "dst"))
    specs = [IndexSpec("id", IndexKind.BTREE)]
    for group in declared.index_groups:
        if len(group) == 1:
            prop = declared.properties[group[0]]
            kind = index_kind(prop.type)
            if kind is not None:
                specs.append(IndexSpec(prop.column, kind))
    return tuple(specs)


def index_kind(prop_type: PropType) -> IndexKind | None:
    """The kind of index a single property of this type gets, if it gets one."""
    if prop_type.list or prop_type.is_blob:
        return None
    if prop_type.is_vector:
        return IndexKind.VECTOR
    if prop_type.scalar is Scalar.STRING and not prop_type.is_enum:
        return IndexKind.TEXT
    return IndexKind.BTREE


def pattern_problem(pattern: str) -> str | None:
    """Why a regular expression is not valid in the dialect of `@check` and `matches`; None if it is."""
    try:
        pc.match_substring_regex(pa.array([""]), pattern)
    except pa.ArrowInvalid as error:
        return str(error)
    return None
