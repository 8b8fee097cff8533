"""Change a table's columns in one commit, without rewriting the columns that stay.

Dropping a column, adding one without values, or changing whether one may hold nulls changes only the
schema. A column with values is written into its own files beside those of the other columns, also where
it replaces one of the same name. Rows, row ids and the indexes of the other columns are kept.

The values of a dropped column stay in files shared with other columns. `remove_dropped_columns`
rewrites those fragments with the same rows, row ids and row versions; the values are gone once the
versions that name the old files are. `stage_reshaped` and its helpers serve the upgrade of older graphs.
Tests: tests/storage/tables/test_columns.py, test_dropped_columns.py, test_reshape.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import lance
import pyarrow as pa
from lance import LanceOperation
from lance.fragment import write_fragments
from lance.optimize import CompactionTask, RewriteResult
from lance.schema import LanceSchema

from omnigraph.errors import StorageError, StoreCallFailed
from omnigraph.limits import ROWS_PER_FRAGMENT
from omnigraph.storage.blobs import stored_schema
from omnigraph.storage.compact import commit_rewritten
from omnigraph.storage.failures import naming_failures
from omnigraph.storage.lineage import Lineage
from omnigraph.storage.stage import FILE_FORMAT, WRITE_OPTIONS, RowCounts, StagedChange
from omnigraph.storage.table import Table

Compute = Callable[[pa.RecordBatch], pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class NewValues:
    """Columns that get values, and what makes them of the columns they are `made_of`."""

    schema: pa.Schema
    made_of: tuple[str, ...]
    compute: Compute
    replaces: Mapping[str, str] = field(default_factory=dict)
    """New columns that take the name of a stored one, which goes; `made_of` may have that one."""


Fill = Callable[[Table, NewValues], Sequence[lance.FragmentMetadata]]
"""Gives all fragments of a table their new columns with `fill_fragment`."""


def fill_fragment(values: NewValues, table: Table, number: int) -> lance.FragmentMetadata:
    """A fragment with files for new columns. What computing the values raises is raised as it was."""
    computing = _Computing(values.compute)
    udf = lance.batch_udf(output_schema=values.schema)(computing)
    try:
        with naming_failures("fill columns", table.lineage.uri):
            fragment = table.dataset.get_fragment(number)
            assert fragment is not None, "the caller has listed the fragments of this version"
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
) -> StagedChange:
    """Columns to drop, nullable ones to add without values, and others to add with values.

    What computing the values raises is raised again as it was.
    """
    valued: list[pa.Field] = []
    if filled is not None:
        names = filled.replaces
        valued = [f.with_name(names.get(f.name, f.name)) for f in stored_schema(filled.schema)]
        drop = {*drop, *names.values()}
    fields = [*valued, *stored_schema(pa.schema(list(empty)))]
    with naming_failures("change columns", table.lineage.uri):
        schema = _next_schema(table.dataset, drop, fields)
    fragments = [fragment.metadata for fragment in table.dataset.get_fragments()]
    if filled is not None:
        numbers = [fragment.id for fragment in fragments]
        fragments = list(fill(table, filled))
        if [fragment.id for fragment in fragments] != numbers:
            raise StorageError(f"not all fragments of '{table.lineage.name}' got their columns")
    return StagedChange(
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


def stage_nullability(table: Table, nullable: Mapping[str, bool]) -> StagedChange:
    """Whether columns may hold nulls, which no file says.

    The caller knows that no row has a null where none is allowed any more. The library wants a commit
    of its own for this.
    """
    with naming_failures("change columns", table.lineage.uri):
        schema = _schema_with(table.dataset, nullable)
    return StagedChange(
        "columns",
        table.lineage,
        table.version,
        RowCounts(),
        table.row_count(),
        LanceOperation.Project(schema),
    )


def _schema_with(dataset: lance.LanceDataset, nullable: Mapping[str, bool]) -> LanceSchema:
    metadata, stored = _stored_form(dataset.lance_schema)
    fields: list[bytes] = []
    for known, parts in _parts(dataset.lance_schema.fields(), stored):
        if known.name() in nullable:
            column = dataset.schema.field(known.name())
            if _numbered(known.id(), [column]) != list(parts):
                raise StorageError(f"column '{known.name()}' is stored in an unknown form")
            fields += _numbered(known.id(), [column.with_nullable(nullable[known.name()])])
        else:
            fields += parts
    return LanceSchema._from_protos(metadata, *fields)


def _next_schema(
    dataset: lance.LanceDataset, drop: Collection[str], fields: Sequence[pa.Field]
) -> LanceSchema:
    """The schema without some fields and with new ones, which get the numbers after the highest."""
    metadata, stored = _stored_form(dataset.lance_schema)
    kept = [
        part
        for known, parts in _parts(dataset.lance_schema.fields(), stored)
        if known.name() not in drop
        for part in parts
    ]
    return LanceSchema._from_protos(metadata, *kept, *_numbered(dataset.max_field_id + 1, fields))


def _numbered(first: int, fields: Sequence[pa.Field]) -> list[bytes]:
    """The stored form of fields with numbers from the given one on.

    The library numbers the fields of a schema from zero, so as many others are put in front.
    """
    others = [pa.field(f"{number}", pa.int8()) for number in range(first)]
    return _stored_form(LanceSchema.from_pyarrow(pa.schema([*others, *fields])))[1][first:]


def _stored_form(schema: LanceSchema) -> tuple[str, list[bytes]]:
    """Metadata and fields as they are stored, which the library tells only for pickling."""
    reduced: Any = schema.__reduce__()
    metadata, *fields = reduced[1]
    return metadata, fields


def _parts(fields: Sequence[Any], stored: Sequence[bytes]) -> Iterator[tuple[Any, Sequence[bytes]]]:
    """Each field with its stored form, which is followed by those of its children."""
    start = 0
    for known in fields:
        size = _size(known)
        yield known, stored[start : start + size]
        start += size


def _size(field: Any) -> int:
    return 1 + sum(_size(child) for child in field.children())


_OPTIONS: Final = {
    "target_rows_per_fragment": ROWS_PER_FRAGMENT,
    "max_rows_per_group": 1024,
    "materialize_deletions": True,
    "materialize_deletions_threshold": 0.0,
    "defer_index_remap": False,
    "enable_binary_copy": False,
    "enable_binary_copy_force": False,
    "data_storage_version": FILE_FORMAT,
}


def fragments_with_dropped(table: Table) -> list[int]:
    """The numbers of the fragments whose files hold a column that the table does not have."""
    known = set(_field_ids(table.dataset.lance_schema.fields()))
    return [
        fragment.fragment_id
        for fragment in table.dataset.get_fragments()
        if any(_holds_others(file, known) for file in fragment.metadata.files)
    ]


def rewrite_fragment(table: Table, number: int) -> RewriteResult:
    """Write a fragment again with the columns the table has. The result travels between processes.

    The library plans such work by itself only where fragments are small or rows were deleted, so it
    is given a plan.
    """
    with naming_failures("rewrite a fragment", table.lineage.uri):
        fragment = table.dataset.get_fragment(number)
        assert fragment is not None, "the caller has listed the fragments of this version"
        work = {"fragments": [fragment.metadata.to_json()]}
        plan = {"task": work, "read_version": table.version, "options": _OPTIONS}
        tasks: Any = CompactionTask  # Its stub does not have all its methods.
        rewritten: RewriteResult = tasks.from_json(json.dumps(plan)).execute(table.dataset)
        return rewritten


def remove_dropped_columns(table: Table) -> Table:
    """Rewrite all such fragments; the table that was given if there are none."""
    numbers = fragments_with_dropped(table)
    if not numbers:
        return table
    return commit_rewritten(table, [rewrite_fragment(table, number) for number in numbers])


def _field_ids(fields: Iterable[Any]) -> Iterator[int]:
    for known in fields:
        yield known.id()
        yield from _field_ids(known.children())


def _holds_others(file: Any, known: set[int]) -> bool:
    # Negative numbers stand for columns that were taken out of the file's description before.
    return any(number >= 0 and number not in known for number in file.fields)


INSERTED_AT: Final = "_row_created_at_version"
_KEY: Final = b"lance-schema:unenforced-primary-key"


def read_with_versions(table: Table, columns: Sequence[str]) -> pa.Table:
    """Rows with the version that inserted each, in the column `INSERTED_AT`."""
    if not table.dataset.has_stable_row_ids:
        # The library would answer all the same, and say that all rows are of the first version.
        cause = "the table has no insert versions; export the graph and load it into a new one"
        raise StoreCallFailed("read the history", table.lineage.uri, cause)
    return table.read([*columns, INSERTED_AT])


def stage_reshaped(table: Table, rows: pa.Table) -> StagedChange:
    """New rows in new columns instead of everything, with the metadata of the new schema."""
    with naming_failures("write", table.lineage.uri):
        written = write_fragments(rows, table.dataset, mode="overwrite", **WRITE_OPTIONS)
    return StagedChange(
        "overwrite",
        table.lineage,
        table.version,
        RowCounts(inserted=rows.num_rows, deleted=table.row_count()),
        rows.num_rows,
        LanceOperation.Overwrite(rows.schema, list(written)),
    )


def annotate_column(table: Table, column: str, metadata: Mapping[str, str]) -> Table:
    """Add metadata to a column, as a version of its own."""
    handle = table.writable_handle()
    with naming_failures("annotate", table.lineage.uri):
        handle.update_field_metadata({column: dict(metadata)})
    return _synced(table, handle)


def is_keyed(table: Table, column: str) -> bool:
    """Whether a column is declared as the key; the library lets that be done only once."""
    return _KEY in (table.schema.field(column).metadata or {})


def annotate_table(table: Table, metadata: Mapping[str, str]) -> Table:
    """Add metadata to the schema of a table, as a version of its own."""
    handle = table.writable_handle()
    with naming_failures("annotate", table.lineage.uri):
        handle.update_schema_metadata(dict(metadata))
    return _synced(table, handle)


def private_table(path: str, branch: str | None, rows: pa.Table, *, name: str = "private") -> Table:
    """A table in memory that ends with its handle, presented as if it were the named one."""
    lineage = Lineage(path, branch, f"memory://{name}", False, None)
    with naming_failures("create", lineage.uri):
        dataset = lance.write_dataset(
            rows, lineage.uri, enable_stable_row_ids=True, **WRITE_OPTIONS
        )
        return Table(lineage, dataset)


def _synced(table: Table, handle: lance.LanceDataset) -> Table:
    if table.lineage.sync:
        table.lineage.sync.commit(table.lineage, handle)
    return Table(table.lineage, handle)
