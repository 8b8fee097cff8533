"""Other columns for a table in one commit: some go, some come, no other column is rewritten.

Dropping a column and adding one without values changes nothing but the schema. A column with values
is written into files of its own beside those of the other columns. Rows, row ids and the indexes on
columns that stay are kept.
Tests: tests/storage/tables/test_columns.py.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import lance
import pyarrow as pa
from lance import LanceOperation
from lance.schema import LanceSchema

from omnigraph.errors import StorageError
from omnigraph.storage.blobs import stored_schema
from omnigraph.storage.conflicts import naming_failures
from omnigraph.storage.stage import RowCounts, Staged
from omnigraph.storage.table import Table

Compute = Callable[[pa.RecordBatch], pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class NewValues:
    """Columns that get values, and what makes them of the columns they are `made_of`."""

    schema: pa.Schema
    made_of: tuple[str, ...]
    compute: Compute


Fill = Callable[[Table, NewValues], Sequence[lance.FragmentMetadata]]
"""Gives all fragments of a table their new columns with `fill_fragment`."""


def fill_fragment(values: NewValues, table: Table, number: int) -> lance.FragmentMetadata:
    """A fragment with files for new columns. What computing the values raises is raised as it was."""
    computing = _Computing(values.compute)
    udf = lance.batch_udf(output_schema=values.schema)(computing)
    try:
        with naming_failures("fill columns", table.lineage.uri):
            fragment = table.dataset.get_fragment(number)
            assert fragment is not None, "whoever asks has listed the fragments of this version"
            written, _ = fragment.merge_columns(udf, columns=list(values.made_of))
    except Exception:
        if computing.error is not None:
            raise computing.error from None
        raise
    return written


def _fill_here(table: Table, values: NewValues) -> Sequence[lance.FragmentMetadata]:
    return [fill_fragment(values, table, fragment.id) for fragment in table.fragments()]


def stage_columns(
    table: Table,
    *,
    drop: Collection[str] = (),
    empty: Sequence[pa.Field] = (),
    filled: NewValues | None = None,
    fill: Fill = _fill_here,
) -> Staged:
    """Columns to drop, nullable ones to add without values, and others to add with values.

    What computing the values raises is raised again as it was.
    """
    valued = [] if filled is None else list(stored_schema(filled.schema))
    fields = [*valued, *stored_schema(pa.schema(list(empty)))]
    with naming_failures("add columns", table.lineage.uri):
        schema = _next_schema(table.dataset, drop, fields)
    fragments = [fragment.metadata for fragment in table.dataset.get_fragments()]
    if filled is not None:
        numbers = [fragment.id for fragment in fragments]
        fragments = list(fill(table, filled))
        if [fragment.id for fragment in fragments] != numbers:
            raise StorageError(f"not all fragments of '{table.lineage.name}' got their columns")
    return Staged(
        "columns",
        table.lineage,
        table.version,
        RowCounts(),
        table.row_count(),
        LanceOperation.Merge(fragments, schema),
    )


class _Computing:
    """Values on their way to the table library, which would turn their errors into text."""

    def __init__(self, compute: Compute) -> None:
        self._compute = compute
        self.error: Exception | None = None

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        try:
            return self._compute(batch)
        except Exception as error:
            self.error = error
            raise


def _next_schema(
    dataset: lance.LanceDataset, drop: Collection[str], fields: Sequence[pa.Field]
) -> LanceSchema:
    """The schema without some fields and with new ones, which get the numbers after the highest.

    The library numbers the fields of a schema from zero, so as many others are put in front.
    """
    metadata, stored = _stored_form(dataset.lance_schema)
    kept = [
        part
        for field, parts in _parts(dataset.lance_schema.fields(), stored)
        if field not in drop
        for part in parts
    ]
    first = dataset.max_field_id + 1
    others = [pa.field(f"{number}", pa.int8()) for number in range(first)]
    numbered = LanceSchema.from_pyarrow(pa.schema([*others, *fields]))
    _, added = _stored_form(numbered)
    return LanceSchema._from_protos(metadata, *kept, *added[first:])


def _stored_form(schema: LanceSchema) -> tuple[str, list[bytes]]:
    """Metadata and fields as they are stored, which the library tells only for pickling."""
    reduced: Any = schema.__reduce__()
    metadata, *fields = reduced[1]
    return metadata, fields


def _parts(fields: Sequence[Any], stored: Sequence[bytes]) -> Iterator[tuple[str, Sequence[bytes]]]:
    """Each field by name with its stored form, which is followed by those of its children."""
    start = 0
    for field in fields:
        size = _size(field)
        yield field.name(), stored[start : start + size]
        start += size


def _size(field: Any) -> int:
    return 1 + sum(_size(child) for child in field.children())
