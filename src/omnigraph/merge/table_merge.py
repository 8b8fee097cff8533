"""The merge of one table: its three states, and the rows in which they differ.

A `TableMerge` runs in this process or, split by row id, as Spark tasks. Tasks write files and commit
nothing. Tests: tests/behaviour/test_merge_bases.py, tests/spark/test_comparing.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.model import EntityType
from omnigraph.commit.change import WrittenTable
from omnigraph.diff.changes import (
    HeldSide,
    IdPartition,
    Side,
    Stored,
    StoredSide,
    differing_sides,
    no_rows,
    partitions_for,
)
from omnigraph.errors import ExternalBlobRefused, OmnigraphError
from omnigraph.faults import declare
from omnigraph.limits import MAX_REPORTED_CONFLICTS
from omnigraph.merge.resolution import ConflictResolution
from omnigraph.merge.rows import MergedRows, ThreeSides, merge_rows
from omnigraph.merge.validation import constraint_columns
from omnigraph.progress import SILENT, Progress
from omnigraph.rows.blob_bases import NO_BASES, BlobBases
from omnigraph.spark.tasks import Failed, returning, run_tasks
from omnigraph.storage.changed_rows import Wanted, locations_of
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.table import Table
from omnigraph.storage.tables import TableStore
from omnigraph.storage.written import (
    WrittenRows,
    by_fragment,
    remove_written,
    shrink,
    write_part,
)
from omnigraph.versioning.snapshot import Snapshot, SnapshotEntry
from omnigraph.versioning.snapshot_rows import stored_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BEFORE_WRITE = declare("merge.task_pre_write", "a task has merged its rows and written nothing")
AFTER_WRITE = declare("merge.task_post_write", "a task has written all its rows")

_NO_FILES: Final[Set[str]] = frozenset()


# -- states ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Overlay:
    """Rows of one table that differ from a snapshot."""

    rows: pa.Table
    deleted: pa.Array
    unclear: pa.Array
    """Ids of rows on which several merge bases disagree, so neither side counts as unchanged."""

    @property
    def ids(self) -> pa.Array:
        return pc.unique(pa.concat_arrays([_ids(self.rows), self.deleted, self.unclear]))

    def only(self, wanted: Wanted) -> Overlay:
        """The part of the overlay with wanted ids."""
        return Overlay(
            self.rows.filter(pa.array(wanted(_ids(self.rows)))),
            self.deleted.filter(pa.array(wanted(self.deleted))),
            self.unclear.filter(pa.array(wanted(self.unclear))),
        )

    def under(self, newer: Overlay) -> Overlay:
        """Both overlays combined; the newer one wins."""
        return Overlay(
            pa.concat_tables([self.rows.filter(_outside(_ids(self.rows), newer.ids)), newer.rows]),
            pa.concat_arrays(
                [self.deleted.filter(_outside(self.deleted, newer.ids)), newer.deleted]
            ),
            pc.unique(pa.concat_arrays([self.unclear, newer.unclear])),
        )


@dataclass(frozen=True)
class GraphState:
    """A snapshot, or a virtual merge base: a snapshot with overlays by table key.

    Branches that merged each other crosswise have several merge bases. Their merge stands in for
    the missing single one, and no commit ever held its rows.
    """

    snapshot: Snapshot
    overlays: Mapping[str, Overlay] = field(default_factory=dict)

    def entry(self, declared: EntityType) -> SnapshotEntry | None:
        return self.snapshot.entries.get(declared.table_key)

    def has_same(self, other: GraphState, declared: EntityType) -> bool:
        """Whether both states certainly have the same rows of a type."""
        key = declared.table_key
        if key in self.overlays or key in other.overlays:
            return False
        mine, theirs = self.entry(declared), other.entry(declared)
        if mine is None or theirs is None:
            return mine is theirs
        return mine.version_ref == theirs.version_ref

    def overlay(self, declared: EntityType, wanted: Wanted | None = None) -> Overlay | None:
        """The overlay of a table, restricted to wanted ids."""
        overlay = self.overlays.get(declared.table_key)
        return overlay if overlay is None or wanted is None else overlay.only(wanted)

    def stored(self, declared: EntityType) -> Stored | None:
        entry = self.entry(declared)
        return None if entry is None else (self.snapshot, entry)


def _differing_sides(
    declared: EntityType,
    tables: TableStore,
    left: GraphState,
    right: GraphState,
    wanted: Wanted | None,
) -> tuple[Side, Side]:
    """`differing_sides` of two states, with their overlays applied."""
    sides = differing_sides(declared, tables, left.stored(declared), right.stored(declared), wanted)
    mine, theirs = left.overlay(declared, wanted), right.overlay(declared, wanted)
    if mine is None and theirs is None:
        return sides
    overlaid = pa.concat_arrays([o.ids for o in (mine, theirs) if o is not None])
    known = pa.concat_arrays([side.ids for side in sides])
    others = pc.unique(overlaid.filter(_outside(overlaid, known)))
    return (
        _overlaid(sides[0], _rows_by_id(declared, tables, left, others), mine),
        _overlaid(sides[1], _rows_by_id(declared, tables, right, others), theirs),
    )


def _overlaid(side: Side, more: Side, overlay: Overlay | None) -> Side:
    rows = pa.concat_tables([s.read(np.arange(len(s.ids))) for s in (side, more)])
    if overlay is not None:
        hidden = pa.concat_arrays([_ids(overlay.rows), overlay.deleted])
        rows = pa.concat_tables([rows.filter(_outside(_ids(rows), hidden)), overlay.rows])
    return HeldSide(rows)


def _rows_by_id(declared: EntityType, tables: TableStore, state: GraphState, ids: pa.Array) -> Side:
    entry = state.entry(declared)
    if entry is None or not entry.row_count or not len(ids):
        return no_rows(declared)
    return StoredSide(declared, locations_of(state.snapshot.open(tables, entry.table_key), ids))


def _ids(rows: pa.Table) -> pa.Array:
    return rows.column("id").combine_chunks()


def _outside(ids: pa.Array, values: pa.Array) -> pa.Array:
    return pc.invert(pc.is_in(ids, value_set=values))


# -- one table ------------------------------------------------------------------------------


@dataclass(frozen=True)
class TableMerge:
    """Applies a table's changes from base to theirs to ours. Picklable, so tasks can run it."""

    declared: EntityType
    tables: TableStore
    base: GraphState
    theirs: GraphState
    ours: GraphState
    resolution: ConflictResolution
    is_adopted: bool = False
    """Whether the target will refer to the source's table version, so that no row is written."""

    def sides(self, wanted: Wanted | None = None) -> ThreeSides:
        """The rows to compare, without reading their values."""
        declared, tables, base = self.declared, self.tables, self.base
        overlay = base.overlay(declared)
        return ThreeSides(
            *_differing_sides(declared, tables, base, self.theirs, wanted),
            *_differing_sides(declared, tables, base, self.ours, wanted),
            unclear=pa.array([], pa.utf8()) if overlay is None else overlay.unclear,
        )

    def run(self, sides: ThreeSides, progress: Progress = SILENT) -> MergedRows:
        """Merge the rows."""
        keep = constraint_columns(self.declared) if self.is_adopted else None
        return merge_rows(self.declared, sides, self.resolution, keep=keep, progress=progress)

    def check_blobs(self, rows: MergedRows, blobs: BlobBases) -> None:
        """Raise `ExternalBlobRefused` for an external blob that may not be written again."""
        if self.is_adopted:
            return
        for name in sorted(self.declared.blobs):
            uris = pc.unique(pc.struct_field(rows.upserts.column(name), "uri")).drop_null()
            for uri in uris.to_pylist():
                if not blobs.allow(uri):
                    raise ExternalBlobRefused(name, uri)

    def target(self) -> Table:
        return self.ours.snapshot.open(self.tables, self.declared.table_key)


def allowed_blobs(merges: Iterable[TableMerge]) -> BlobBases:
    """The allowed locations of external blobs; read only if a table has blobs."""
    has_blobs = any(merge.declared.blobs for merge in merges)
    return BlobBases.from_environment() if has_blobs else NO_BASES


# -- Spark tasks ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MergedPartition:
    """The result of one task. Its upserts have the constraint columns only."""

    rows: MergedRows
    written: WrittenRows | None


@dataclass(frozen=True, slots=True)
class MergeTasks:
    """The work of all tasks: one partition of one table each."""

    merges: tuple[TableMerge, ...]
    partitions: tuple[tuple[int, IdPartition], ...]
    """The index of a table in `merges`, and the ids to merge."""
    blobs: BlobBases
    writes: bool

    def merge(self, number: int) -> MergedPartition | Failed:
        return returning(lambda: self._merge(*self.partitions[number]))

    def _merge(self, number: int, partition: IdPartition) -> MergedPartition:
        merge = self.merges[number]
        rows = merge.run(merge.sides(partition))
        merge.check_blobs(rows, self.blobs)
        written = None
        if self.writes and rows.has_effect and not (merge.is_adopted or rows.conflicts_total):
            target = merge.target()
            BEFORE_WRITE.hit(table=merge.declared.table_key)
            stored = stored_rows(merge.declared, rows.upserts, target.schema)
            written = write_part(target, stored, "delta", rows.deletes)
            AFTER_WRITE.hit(table=merge.declared.table_key)
        narrow = rows.upserts.select(constraint_columns(merge.declared)).combine_chunks()
        return MergedPartition(replace(rows, upserts=narrow), written)


def merge_on_spark(
    spark: SparkSession,
    merges: Sequence[tuple[TableMerge, int]],
    objects: ObjectStore,
    branch: str | None,
    *,
    writes: bool,
) -> list[MergedRows]:
    """Merge tables, each given with the number of rows to compare. Raises `SparkError`.

    With `writes`, tasks write rows that are not in conflict. `branch` is the target's storage name.
    """
    partitions = tuple(
        (number, part) for number, (_, rows) in enumerate(merges) for part in partitions_for(rows)
    )
    if not partitions:
        return []
    tables = tuple(merge for merge, _ in merges)
    tasks = MergeTasks(tables, partitions, allowed_blobs(tables), writes)
    found: list[list[MergedPartition]] = [[] for _ in merges]
    errors: list[OmnigraphError] = []
    answers = run_tasks(spark, "merge rows", len(partitions), tasks.merge)
    for (number, _), answer in zip(partitions, answers, strict=True):
        if isinstance(answer, Failed):
            errors.append(answer.error)
        else:
            found[number].append(answer)
    written = [_written(merge, answers) for merge, answers in zip(tables, found, strict=True)]
    if errors:
        remove_files(objects, (table for table in written if table is not None))
        raise errors[0]
    return [
        replace(_joined([a.rows for a in answers]), written=_shrunk(merge, table, branch))
        for merge, answers, table in zip(tables, found, written, strict=True)
    ]


def remove_files(
    objects: ObjectStore, written: Iterable[WrittenTable], besides: Set[str] = _NO_FILES
) -> None:
    """Remove files of rows that are not committed, except those named in `besides`."""
    for table in written:
        fragments = (text for part in table.parts for text in part.fragments)
        remove_written(objects, table.table.lineage, fragments, besides=besides)


def _written(merge: TableMerge, answers: Sequence[MergedPartition]) -> WrittenTable | None:
    parts = tuple(answer.written for answer in answers if answer.written is not None)
    return WrittenTable(merge.target(), parts) if parts else None


def _shrunk(
    merge: TableMerge, written: WrittenTable | None, branch: str | None
) -> WrittenTable | None:
    """Add the fragments without their replaced rows, if the branch owns the table."""
    if written is None or merge.ours.snapshot.entry(merge.declared.table_key).branch != branch:
        return written
    left = (shrink(written.table, addresses) for addresses in by_fragment(written.parts))
    return replace(written, shrunk=tuple(left))


def _joined(parts: Sequence[MergedRows]) -> MergedRows:
    """The partitions of one table together."""
    conflicts = sorted((c for part in parts for c in part.conflicts), key=lambda c: c.order)
    resolved: set[str] = set()
    return MergedRows(
        upserts=pa.concat_tables([part.upserts for part in parts]),
        deletes=pa.concat_arrays([part.deletes for part in parts]),
        inserted=sum(part.inserted for part in parts),
        contested=pa.concat_arrays([part.contested for part in parts]),
        conflicts=conflicts[:MAX_REPORTED_CONFLICTS],
        conflicts_total=sum(part.conflicts_total for part in parts),
        resolved=resolved.union(*(part.resolved for part in parts)),
    )
