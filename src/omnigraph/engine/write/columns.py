"""Rows under property names to rows under the columns they are stored in, and back."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from omnigraph.catalog.model import EntityType
from omnigraph.rows.bindings import bound_schema
from omnigraph.rows.schema import BLOB
from omnigraph.storage.blobs import read_blob_cells
from omnigraph.storage.delta import ROW_ADDRESS_COLUMNS
from omnigraph.storage.scan import ROW_ID
from omnigraph.storage.table import Table


def stored_rows(declared: EntityType, rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows as a table's columns; columns the rows know nothing about are null."""
    names = {p.column: p.name for p in declared.properties.values()}
    columns = []
    for field in schema:
        name = names.get(field.name, field.name)
        if name in rows.column_names:
            columns.append(rows.column(name))
        else:
            columns.append(pa.nulls(rows.num_rows, field.type))
    return pa.table(columns, names=schema.names)


def property_columns(declared: EntityType, schema: pa.Schema) -> dict[str, str]:
    """Logical column to stored column, for those a table version has."""
    logical = {name: name for name in declared.columns if name in ("id", "src", "dst")}
    logical |= {p.name: p.column for p in declared.properties.values()}
    return {name: column for name, column in logical.items() if column in schema.names}


def rows_by_id(declared: EntityType, table: Table, ids: pa.Array, names: Sequence[str]) -> pa.Table:
    """The stored rows with the given distinct ids, in no order, and where each of them is.

    `names` are properties and bindings. What the table version does not have is null.
    """
    schema = bound_schema(declared)
    stored = property_columns(declared, table.schema)
    stored |= {name: name for name in schema.names if name in table.schema.names}
    wanted = [name for name in names if name not in ROW_ADDRESS_COLUMNS]
    plain = [name for name in wanted if name in stored and name not in declared.blobs]
    rows = table.lookup(ids, [*ROW_ADDRESS_COLUMNS, *(stored[name] for name in plain)])
    found = rows.select(list(ROW_ADDRESS_COLUMNS))
    for name in wanted:
        kind = schema.field(name).type
        if name in plain:
            column = rows.column(stored[name]).cast(kind)
        elif name in stored:
            column = carried_blobs(table, stored[name], rows.column(ROW_ID).combine_chunks())
        else:
            column = pa.nulls(rows.num_rows, kind)
        found = found.append_column(name, column)
    return found


def carried_blobs(table: Table, column: str, row_ids: pa.Array) -> pa.Array:
    """The stored blobs of rows as rows carry them: the bytes, or the reference as it is."""
    cells = read_blob_cells(table, column, row_ids)
    storage = cells.storage if isinstance(cells, pa.ExtensionArray) else cells
    parts = [storage.field(field.name).cast(field.type) for field in BLOB]
    return pa.StructArray.from_arrays(parts, fields=list(BLOB), mask=storage.is_null())
