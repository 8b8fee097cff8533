"""A merge spread over tasks: each merges and writes the rows of one part of the ids of one table.

Tasks commit nothing and answer with what the rules have to know. Tests: tests/spark/test_merging.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from omnigraph.engine.compare.parts import Part, parts_for
from omnigraph.engine.merge.rows import MergedRows
from omnigraph.engine.merge.rules import columns_of_rules
from omnigraph.engine.merge.table_merge import TableMerge, allowed_blobs
from omnigraph.engine.write.change import WrittenTable
from omnigraph.errors import OmnigraphError
from omnigraph.faults import declare
from omnigraph.limits import CONFLICTS_TOLD
from omnigraph.rows.blob_bases import BlobBases
from omnigraph.spark.tasks import Failed, returning, run_tasks
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.table import Table
from omnigraph.storage.written import (
    WrittenRows,
    by_fragment,
    remove_written,
    shrink,
    write_part,
)
from omnigraph.versioning.snapshot_rows import stored_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BEFORE_WRITE = declare("merge.task_pre_write", "a task has merged its rows and written nothing")
AFTER_WRITE = declare("merge.task_post_write", "a task has written all its rows")

_NO_FILES: Final[Set[str]] = frozenset()


@dataclass(frozen=True, slots=True)
class PartMerged:
    """What became of one part of a table. Upserts have the columns of rules only."""

    rows: MergedRows
    written: WrittenRows | None


@dataclass(frozen=True, slots=True)
class MergeWork:
    """What tasks have to do. A task is about one part of one table."""

    merges: tuple[TableMerge, ...]
    parts: tuple[tuple[int, Part], ...]
    """Number of a table, and which of its ids."""
    blobs: BlobBases
    writes: bool

    def merge(self, number: int) -> PartMerged | Failed:
        return returning(lambda: self._merge(*self.parts[number]))

    def _merge(self, number: int, part: Part) -> PartMerged:
        merge = self.merges[number]
        rows = merge.run(merge.sides(part))
        merge.check_blobs(rows, self.blobs)
        changes = bool(rows.upserts.num_rows or len(rows.deletes))
        written = None
        if self.writes and changes and not (merge.is_taken_over or rows.conflicts_total):
            BEFORE_WRITE.hit(table=merge.declared.table_key)
            written = write_part(
                _target(merge),
                stored_rows(merge.declared, rows.upserts, _target(merge).schema),
                "delta",
                rows.deletes,
            )
            AFTER_WRITE.hit(table=merge.declared.table_key)
        narrow = rows.upserts.select(columns_of_rules(merge.declared)).combine_chunks()
        return PartMerged(replace(rows, upserts=narrow), written)


def merge_on_spark(
    spark: SparkSession,
    merges: Sequence[tuple[TableMerge, int]],
    objects: ObjectStore,
    branch: str | None,
    *,
    writes: bool,
) -> list[MergedRows]:
    """The merged rows of tables, of which so many have to be looked at. Raises `SparkError`.

    With `writes` they are in files, unless they are in conflict. `branch` is the target's storage name.
    """
    parts = tuple(
        (number, part) for number, (_, rows) in enumerate(merges) for part in parts_for(rows)
    )
    if not parts:
        return []
    tables = tuple(merge for merge, _ in merges)
    work = MergeWork(tables, parts, allowed_blobs(tables), writes)
    found: list[list[PartMerged]] = [[] for _ in merges]
    errors: list[OmnigraphError] = []
    answers = run_tasks(spark, "merge rows", len(parts), work.merge)
    for (number, _), answer in zip(parts, answers, strict=True):
        if isinstance(answer, Failed):
            errors.append(answer.error)
        else:
            found[number].append(answer)
    written = [_written(merge, answers) for merge, answers in zip(tables, found, strict=True)]
    if errors:
        remove(objects, (table for table in written if table is not None))
        raise errors[0]
    return [
        replace(_joined([a.rows for a in answers]), written=_shrunk(merge, table, branch))
        for merge, answers, table in zip(tables, found, written, strict=True)
    ]


def remove(
    objects: ObjectStore, written: Iterable[WrittenTable], besides: Set[str] = _NO_FILES
) -> None:
    """Remove the files of rows that are not committed, but for those with these names."""
    for table in written:
        fragments = (text for part in table.parts for text in part.fragments)
        remove_written(objects, table.table.lineage, fragments, besides=besides)


def _target(merge: TableMerge) -> Table:
    return merge.ours.snapshot.open(merge.tables, merge.declared.table_key)


def _written(merge: TableMerge, answers: Sequence[PartMerged]) -> WrittenTable | None:
    parts = tuple(answer.written for answer in answers if answer.written is not None)
    return WrittenTable(_target(merge), parts) if parts else None


def _shrunk(
    merge: TableMerge, written: WrittenTable | None, branch: str | None
) -> WrittenTable | None:
    """With the fragments that rows are taken out of, if the branch has a line of its own of them."""
    if written is None or merge.ours.snapshot.entry(merge.declared.table_key).branch != branch:
        return written
    left = (shrink(written.table, addresses) for addresses in by_fragment(written.parts))
    return replace(written, shrunk=tuple(left))


def _joined(parts: Sequence[MergedRows]) -> MergedRows:
    """Parts of one table together."""
    conflicts = sorted((c for part in parts for c in part.conflicts), key=lambda c: c.order)
    resolved: set[str] = set()
    return MergedRows(
        upserts=pa.concat_tables([part.upserts for part in parts]),
        deletes=pa.concat_arrays([part.deletes for part in parts]),
        inserted=sum(part.inserted for part in parts),
        contested=pa.concat_arrays([part.contested for part in parts]),
        conflicts=conflicts[:CONFLICTS_TOLD],
        conflicts_total=sum(part.conflicts_total for part in parts),
        resolved=resolved.union(*(part.resolved for part in parts)),
    )
