"""The Arrow schema rows have on their way into a graph.

The logical schema with two differences. A blob is either bytes or the URI of bytes kept elsewhere,
so its column is a struct with exactly one of the two. A required `@embed` vector may still be null:
it is computed after the row was checked.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from omnigraph.catalog.arrow import arrow_type, logical_schema
from omnigraph.catalog.model import EntityType
from omnigraph.language.types import PropType

BLOB: Final = pa.struct([pa.field("data", pa.large_binary()), pa.field("uri", pa.utf8())])


def row_type(prop_type: PropType) -> pa.DataType:
    """The Arrow type of a property's column in a batch of rows."""
    return BLOB if prop_type.is_blob else arrow_type(prop_type)


def row_schema(declared: EntityType) -> pa.Schema:
    """The columns of a batch of rows: id, ends, then properties by name."""
    fields = []
    for field in logical_schema(declared):
        prop = declared.properties.get(field.name)
        if prop is not None:
            nullable = field.nullable or prop.embed_source is not None
            field = pa.field(field.name, row_type(prop.type), nullable=nullable)
        fields.append(field)
    return pa.schema(fields)
