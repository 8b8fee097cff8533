"""Rows get their place in the load: source, record number, line, and an id if they have none.

The places travel beside the row in hidden columns until the load is decided.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.model import EntityType
from omnigraph.load.generated_ids import generated_ids
from omnigraph.load.judging import JudgedRows
from omnigraph.load.typed_rows import Numbers
from omnigraph.rows.columns import row_schema

SOURCE: Final = "__source"
RECORD: Final = "__record"
LINE: Final = "__line"
GENERATED: Final = "__generated"
PLACE_COLUMNS: Final = [SOURCE, RECORD, LINE]
"""The columns that say which record a row was."""

PLACE_FIELDS: Final = (
    pa.field(SOURCE, pa.int32(), nullable=False),
    pa.field(RECORD, pa.int64(), nullable=False),
    pa.field(LINE, pa.int64()),
    pa.field(GENERATED, pa.bool_(), nullable=False),
)


def placed_schema(declared: EntityType) -> pa.Schema:
    """The columns of placed rows."""
    return pa.schema([*row_schema(declared), *PLACE_FIELDS])


def place_rows(
    judged: JudgedRows, source: int, before: int, lines: Numbers | None, prefix: str
) -> pa.RecordBatch:
    """The rows with their places; `before` records of the source come before position 0."""
    rows, positions = judged.rows, judged.positions
    records = positions + (before + 1)
    count = rows.num_rows
    ids = rows.column(0)
    absent = np.zeros(count, np.bool_)
    if ids.null_count == count:
        absent[:] = True
        ids = generated_ids(prefix, records)
    elif ids.null_count:
        absent = ids.is_null().to_numpy(zero_copy_only=False)
        made = generated_ids(prefix, records[absent])
        ids = pc.replace_with_mask(ids, pa.array(absent), made)
    line = pa.nulls(count, pa.int64()) if lines is None else pa.array(lines[positions])
    columns = [
        ids,
        *rows.columns[1:],
        pa.array(np.full(count, source, np.int32)),
        pa.array(records),
        line,
        pa.array(absent),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema([*rows.schema, *PLACE_FIELDS]))
