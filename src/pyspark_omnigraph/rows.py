"""Reads one type of one state: a partition for each group of fragments, Arrow batches as they are stored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructField, StructType

from omnigraph.api.graph_at import GraphAt, scan_group, scan_groups
from pyspark_omnigraph.options import SourceOptions, opened

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

_SIGNED: Final = {pa.uint32(): pa.int64(), pa.uint64(): pa.decimal128(20)}
"""Spark has no unsigned integers; what holds all of their values."""

CHANGE_FIELDS: Final = (
    pa.field("_op", pa.utf8(), nullable=False),
    pa.field("_commit", pa.utf8(), nullable=False),
    pa.field("_number", pa.int64(), nullable=False),
    pa.field("_time", pa.timestamp("us", "UTC"), nullable=False),
)
"""What a row of changes has before the columns of its type."""


def state_of(options: SourceOptions) -> GraphAt:
    """The state to read: that of a ref, or the newest one of the branch."""
    graph = opened(options.graph, options.branch)
    return graph.at(graph.head().id if options.at is None else options.at)


def table_schema(options: SourceOptions, state: GraphAt) -> pa.Schema:
    """The chosen columns of the type. Raises `UnknownType` or `UnknownColumn`."""
    shown: pa.Schema = scan_group(
        state, options.type, (), options.columns, options.filter, options.params
    ).schema
    if not options.changes:
        return shown
    return pa.schema([*CHANGE_FIELDS, *(field.with_nullable(True) for field in shown)])


def spark_schema(options: SourceOptions) -> StructType:
    """The columns as Spark declares them."""
    found = table_schema(options, state_of(options))
    return StructType(
        [StructField(field.name, _spark_type(field.type), field.nullable) for field in found]
    )


def _spark_type(kind: pa.DataType) -> DataType:
    from pyspark.sql.pandas.types import from_arrow_type

    found: DataType = from_arrow_type(_spark_arrow(kind))
    return found


def _spark_arrow(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        return pa.list_(_spark_arrow(kind.value_type))
    return _SIGNED.get(kind, kind)


def arrow_schema(schema: StructType) -> pa.Schema:
    """What Spark expects of the batches of a schema."""
    from pyspark.sql.pandas.types import to_arrow_schema

    # Before 4.2 there is no such argument, and it is always UTC.
    if "timezone" in signature(to_arrow_schema).parameters:
        return to_arrow_schema(schema, timezone="UTC")
    return to_arrow_schema(schema)


def fitted(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch in the types that Spark expects, without copying where they are equal already."""
    columns = [
        column if column.type == field.type else _cast(column, field.type)
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_fixed_size_list(column.type) and column.null_count:
        # Arrow casts a null vector to a null list only by way of its elements.
        column = column.cast(pa.list_(column.type.value_type))
    return pc.cast(column, kind)


@dataclass(frozen=True)
class FragmentPartition(InputPartition):
    """What one task reads of a commit."""

    commit: str
    fragments: tuple[int, ...]


class TypeReader(DataSourceReader):
    """Reads the rows of a type. The commit is chosen when the read is planned, once for all tasks."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        state = state_of(self._options)
        groups = scan_groups(state, self._options.type)
        # Spark asks for a partition even of nothing.
        return [FragmentPartition(state.commit_id, group) for group in groups or ((),)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, FragmentPartition), "it was made by partitions()"
        options, wanted = self._options, arrow_schema(self._schema)
        if not partition.fragments:
            return
        state = opened(options.graph, options.branch).at(partition.commit)
        names = wanted.names
        rows = scan_group(
            state, options.type, partition.fragments, names, options.filter, options.params
        )
        for batch in rows:
            yield fitted(batch, wanted)
