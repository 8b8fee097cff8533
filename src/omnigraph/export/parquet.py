"""Rows of one type as Parquet, in columns that a load reads back without a mapping.

Values that Parquet has no type for take another: a time becomes a timestamp in UTC, a blob the
text that loads read it from. The same rows make the same bytes, however they are stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Final

import pyarrow as pa
import pyarrow.parquet as pq

from omnigraph.catalog.arrow import arrow_type
from omnigraph.catalog.model import EdgeType, EntityType
from omnigraph.export.json_lines import blob_texts
from omnigraph.language.types import PropType, Scalar
from omnigraph.limits import BLOB_ROWS

_MAX_GROUP_ROWS: Final = 65_536
_MAX_GROUP_BYTES: Final = 64 * 1024 * 1024
"""Most rows in a group of rows, which is held in memory until it is written."""

_MOMENT: Final = pa.timestamp("ms", "UTC")
_ENDPOINTS: Final = {"from": "src", "to": "dst"}


def file_names(types: Sequence[EntityType]) -> dict[str, str]:
    """Table key to file name: the name of the type, or its key where two types share a name.

    Names that differ in case alone are shared too, as some disks take them for one.
    """
    names = [declared.name.casefold() for declared in types]
    return {
        declared.table_key: f"{declared.name}.parquet"
        if names.count(declared.name.casefold()) == 1
        else f"{declared.table_key}.parquet"
        for declared in types
    }


def part_name(name: str, number: int, count: int) -> str:
    """The name of one of the files that a type is written to; `name` if it is the only one.

    They come in order by name, and a load tells their type by what stands before the first dot.
    """
    return name if count == 1 else f"{name.removesuffix('.parquet')}.{number:05}.parquet"


def write_parquet(
    declared: EntityType, batches: Iterable[pa.RecordBatch], file: IO[bytes]
) -> Iterator[int]:
    """Write rows, which have their columns under logical names, and say how many after each group."""
    schema = _schema(declared)
    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        for rows in _groups(batches, _group_rows(declared)):
            columns = [_column(declared, name, rows) for name in schema.names]
            writer.write_table(pa.table(columns, schema=schema), row_group_size=rows.num_rows)
            yield rows.num_rows


def _groups(batches: Iterable[pa.RecordBatch], size: int) -> Iterator[pa.RecordBatch]:
    """The rows in batches of one size, the last one smaller."""
    held: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        while batch.num_rows:
            part = batch.slice(0, size - count)
            batch = batch.slice(part.num_rows)
            held.append(part)
            count += part.num_rows
            if count == size:
                yield _joined(held)
                held, count = [], 0
    if held:
        yield _joined(held)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _group_rows(declared: EntityType) -> int:
    """Rows in a group: chosen by the types alone, so that files do not depend on how rows are stored."""
    if declared.blobs:
        return BLOB_ROWS
    vectors = [p.type.dimension or 0 for p in declared.properties.values() if p.type.is_vector]
    return max(1, min(_MAX_GROUP_ROWS, _MAX_GROUP_BYTES // (4 * max(1, sum(vectors)))))


def _schema(declared: EntityType) -> pa.Schema:
    fields = [pa.field("id", pa.utf8(), nullable=False)]
    if isinstance(declared, EdgeType):
        fields += [pa.field(endpoint, pa.utf8(), nullable=False) for endpoint in _ENDPOINTS]
    for name in sorted(declared.properties):
        fields.append(pa.field(name, _type(declared.properties[name].type)))
    return pa.schema(fields)


def _type(kind: PropType) -> pa.DataType:
    if kind.is_blob:
        return pa.large_utf8()
    if kind.scalar is Scalar.DATETIME:
        return pa.list_(_MOMENT) if kind.list else _MOMENT
    return arrow_type(kind)


def _column(declared: EntityType, name: str, rows: pa.RecordBatch) -> pa.Array:
    if name not in declared.properties:
        return rows.column(_ENDPOINTS.get(name, name))
    kind = declared.properties[name].type
    column = rows.column(name)
    return (blob_texts(column) if kind.is_blob else column).cast(_type(kind))
