"""Look-up indexes of large tables that a load on Spark has written, built by tasks after its commit.

A task builds the part of an index over some fragments, and one task per index joins the parts. The branch is
locked only for the commit that adds finished indexes; it is made like that of a compaction, since no row
changes. Tables that are written meanwhile are begun again. A failure does not concern the load: look-ups
work without an index, and the next load or `ensure-indices` builds it.
Tests: tests/spark/test_indexes.py.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from omnigraph.commit.background import (
    BEFORE_PUBLISH,
    optimize_draft,
    optimize_sidecar,
    rewritten_tables,
)
from omnigraph.commit.tables import missing_lookups
from omnigraph.commit.writer import LockTime, TableWriter
from omnigraph.errors import OmnigraphError
from omnigraph.limits import INDEX_PART_ROWS
from omnigraph.progress import Progress
from omnigraph.spark.following import following
from omnigraph.spark.tasks import Failed, FragmentGroup, fragment_groups, returning, run_tasks
from omnigraph.storage.indexes import (
    BuiltIndex,
    build_btree_part,
    join_parts,
    remove_built,
    stage_indexes,
)
from omnigraph.storage.stage import commit_staged
from omnigraph.storage.table import Table
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.branches import BranchRef
from omnigraph.versioning.commit_sequence import Operation
from omnigraph.versioning.contract import SchemaContract
from omnigraph.versioning.publish import Publication
from omnigraph.versioning.recovery.sidecar import WriterKind
from omnigraph.versioning.snapshot import Snapshot, SnapshotEntry

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ATTEMPTS: Final = 3
"""How often indexes of tables that others keep writing to are begun."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """An index to be built, and the version of the table to build it on."""

    entry: SnapshotEntry
    table: Table
    column: str


@dataclass(frozen=True, slots=True)
class _Tasks:
    """The work of tasks. It is sent to them as it is."""

    tables: TableStore
    parts: tuple[tuple[SnapshotEntry, str, FragmentGroup], ...]
    """Table, column and fragments of every part."""

    def build(self, number: int) -> BuiltIndex | Failed:
        entry, column, fragments = self.parts[number]
        return returning(lambda: build_btree_part(self._open(entry), column, fragments))

    def join(
        self, built: Sequence[tuple[SnapshotEntry, Sequence[BuiltIndex]]], number: int
    ) -> BuiltIndex | Failed:
        entry, parts = built[number]
        return returning(lambda: join_parts(self._open(entry), parts))

    def _open(self, entry: SnapshotEntry) -> Table:
        return self.tables.open(entry.location, entry.branch, entry.version)


@dataclass(frozen=True, slots=True)
class SparkIndexing:
    """Builds the missing look-up indexes of tables that a load has written to a branch."""

    spark: SparkSession
    writer: TableWriter
    branch: BranchRef
    contract: SchemaContract
    lock_time: LockTime
    progress: Progress

    def run(self, table_keys: Iterable[str]) -> None:
        """Build and commit what is missing. Failures are logged."""
        keys = tuple(table_keys)
        try:
            # It would rewrite the fragments that tasks are just reading.
            self.writer.compactor.wait()
            for _ in range(_ATTEMPTS):
                wanted = self._wanted(keys)
                if not wanted or not self._index(wanted):
                    return
            _log.warning("no index was built of tables that others write to: %s", ", ".join(keys))
        except OmnigraphError as error:
            _log.warning("could not build the indexes of %s: %s", ", ".join(keys), error)

    def _wanted(self, keys: Sequence[str]) -> list[_Wanted]:
        """The indexes that tables of the branch lack."""
        parts, physical = self.writer.parts, self.branch.physical
        snapshot = parts.snapshot_of(parts.manifest.current(physical))
        found = []
        for key in keys:
            entry = snapshot.entries.get(key)
            if entry is not None and entry.branch == physical:
                table = snapshot.open(parts.tables, key)
                columns = missing_lookups(table, snapshot.catalog.entity(key))
                found += [_Wanted(entry, table, column) for column in columns]
        return found

    def _index(self, wanted: Sequence[_Wanted]) -> bool:
        """Build indexes and commit them; whether some have to be begun again."""
        built = self._build(wanted)
        # After an error it is open whether a version names them, so that they stay for cleanup.
        added = self._commit(wanted, built)
        self._remove(zip(wanted, ([index] for index in built), strict=True), besides=added)
        return len(added) < len(built)

    # -- tasks ----------------------------------------------------------------------------------

    def _build(self, wanted: Sequence[_Wanted]) -> list[BuiltIndex]:
        """The indexes, in files that no version names yet."""
        groups = [fragment_groups(one.table, INDEX_PART_ROWS) for one in wanted]
        parts = [
            (number, one.entry, one.column, group)
            for number, one in enumerate(wanted)
            for group in groups[number]
        ]
        tasks = _Tasks(self.writer.parts.tables, tuple((e, c, g) for _, e, c, g in parts))
        rows = sum(one.table.row_count() for one in wanted)
        self.progress.stage("index", rows)
        with following(self.progress, rows) as followed:
            found = run_tasks(self.spark, "index", len(parts), tasks.build)
            followed.reach(rows)
        of_each: list[list[BuiltIndex]] = [[] for _ in wanted]
        for (number, *_), part in zip(parts, found, strict=True):
            if not isinstance(part, Failed):
                of_each[number].append(part)
        try:
            self._raise_first(found)
            joins = [(one.entry, each) for one, each in zip(wanted, of_each, strict=True)]
            several = [number for number, (_, each) in enumerate(joins) if len(each) > 1]
            joined = self._join(tasks, [joins[number] for number in several])
        except BaseException:
            self._remove(zip(wanted, of_each, strict=True))
            raise
        for number, index in zip(several, joined, strict=True):
            self._remove([(wanted[number], of_each[number])])
            of_each[number] = [index]
        return [index for [index] in of_each]

    def _join(
        self, tasks: _Tasks, joins: Sequence[tuple[SnapshotEntry, Sequence[BuiltIndex]]]
    ) -> list[BuiltIndex]:
        if not joins:
            return []
        found = run_tasks(self.spark, "join indexes", len(joins), partial(tasks.join, joins))
        self._raise_first(found)
        return [index for index in found if not isinstance(index, Failed)]

    def _raise_first(self, found: Iterable[BuiltIndex | Failed]) -> None:
        for answer in found:
            if isinstance(answer, Failed):
                raise answer.error

    def _remove(
        self,
        built: Iterable[tuple[_Wanted, Sequence[BuiltIndex]]],
        besides: Sequence[BuiltIndex] = (),
    ) -> None:
        kept = {index.uuid for index in besides}
        with suppress(OmnigraphError):  # Cleanup removes leftovers.
            for one, indexes in built:
                gone = [index for index in indexes if index.uuid not in kept]
                remove_built(self.writer.parts.objects, one.table.lineage, gone)

    # -- commit ---------------------------------------------------------------------------------

    def _commit(self, wanted: Sequence[_Wanted], built: Sequence[BuiltIndex]) -> list[BuiltIndex]:
        """Commit the indexes of tables that are as they were; returns these."""
        parts, physical = self.writer.parts, self.branch.physical
        by_table: dict[str, list[BuiltIndex]] = {}
        for one, index in zip(wanted, built, strict=True):
            by_table.setdefault(one.entry.table_key, []).append(index)
        entries = {one.entry.table_key: one.entry for one in wanted}
        with parts.locks.hold(physical, "index") as lock, self.lock_time.measured():
            parts.recovery.recover_locked(physical, lock)
            state = parts.recovery.state(physical)
            unmoved = list(self._unmoved(parts.snapshot_of(state), entries))
            if not unmoved:
                return []
            draft = optimize_draft(self.contract.hash, self.contract.reference)
            committed: list[Table] = []

            def commit_tables() -> list[Publication]:
                for entry, table in unmoved:
                    lock.check()
                    staged = stage_indexes(table, by_table[entry.table_key])
                    committed.append(
                        commit_staged(
                            table,
                            staged,
                            operation_id=draft.operation_id,
                            writer_kind=WriterKind.OPTIMIZE.value,
                        )
                    )
                moved = [(e, t) for (e, _), t in zip(unmoved, committed, strict=True)]
                return rewritten_tables(draft, state, moved)

            sidecar = optimize_sidecar(self.branch, state, [entry for entry, _ in unmoved], draft)
            operation = Operation(sidecar, commit_tables, BEFORE_PUBLISH)
            for commit in parts.sequence.run(operation, lock):
                self.writer.note_compaction(commit)
            parts.tables.keep(committed)
        return [index for entry, _ in unmoved for index in by_table[entry.table_key]]

    def _unmoved(
        self, current: Snapshot, entries: Mapping[str, SnapshotEntry]
    ) -> Iterator[tuple[SnapshotEntry, Table]]:
        """The tables that still have the version that was indexed, as their newest."""
        for key, entry in entries.items():
            now = current.entries.get(key)
            if now is None or now.table_id != entry.table_id:
                continue
            head = self.writer.parts.recovery.head_of(entry.location, entry.branch)
            if now.version_ref == entry.version_ref and head.version == entry.version:
                yield now, head
