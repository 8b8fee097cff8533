"""What one atomic write brings to the tables of a graph, before anything is stored.

A write is prepared on the newest snapshot of its branch without the branch lock. `has_moved` tells under
the lock whether it has to be prepared again.
Tests: tests/behaviour/test_contended_writes.py, test_compaction.py, test_cleanup.py.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from threading import Condition
from typing import Final, Literal, TypeVar

import pyarrow as pa

from omnigraph.errors import ConflictError, HistoryRemoved
from omnigraph.graph.parts import GraphParts
from omnigraph.limits import PREPARATION_SECONDS, SMALL_WRITE_ROWS
from omnigraph.storage.table import Table
from omnigraph.storage.tables import TableStore
from omnigraph.storage.written import ShrunkFragments, WrittenRows
from omnigraph.versioning.branches import BranchRef
from omnigraph.versioning.commits import Counts
from omnigraph.versioning.contract import SchemaContract
from omnigraph.versioning.recent_commits import RecentCommits, TouchedIds
from omnigraph.versioning.snapshot import Snapshot, SnapshotEntry

WriteMode = Literal["append", "delta", "overwrite"]


def _no_ids() -> pa.Array:
    return pa.array([], pa.utf8())


@dataclass(frozen=True, slots=True)
class SeenRows:
    """Where rows that a write looked at by id are, in the version of the table it was prepared on."""

    version: int
    branch: str | None
    places: pa.Table


@dataclass(frozen=True, slots=True)
class WrittenTable:
    """Rows that are in files already, written for one version of a table by other processes.

    Rows that a part removes are known by their places, too.
    `shrunk` are the fragments without the rows that are replaced, if they were prepared.
    """

    table: Table
    parts: tuple[WrittenRows, ...]
    shrunk: tuple[ShrunkFragments, ...] = ()

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self.parts)


@dataclass(frozen=True, slots=True)
class TableWrite:
    """The rows one write brings to one table, under property names, and the ids it removes.

    Rows that are in files already come as `written`; there are no others then.
    """

    table_key: str
    mode: WriteMode
    rows: pa.Table
    deletes: pa.Array = field(default_factory=_no_ids)
    seen: SeenRows | None = None
    written: WrittenTable | None = None

    @property
    def row_count(self) -> int:
        return int(self.rows.num_rows) if self.written is None else self.written.rows

    @property
    def ids(self) -> frozenset[str] | None:
        """The ids it writes or removes; None if there are many, or all are replaced."""
        count = self.row_count + len(self.deletes)
        if self.mode == "overwrite" or self.written is not None or count > SMALL_WRITE_ROWS:
            return None
        return frozenset((*self.rows.column("id").to_pylist(), *self.deletes.to_pylist()))


@dataclass(frozen=True, slots=True)
class AdoptedTable:
    """A version of the main line that a branch takes as it is, and what that changes on the branch."""

    entry: SnapshotEntry
    counts: Counts


@dataclass(frozen=True, slots=True)
class Change:
    """All table writes of one atomic write, and the other tables its checks looked at."""

    writes: tuple[TableWrite, ...]
    reads: frozenset[str] = frozenset()
    adopted: tuple[AdoptedTable, ...] = ()
    looked_up: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The tables whose committed rows were read by id alone, and these ids. Commits that touch other
    ids of such a table do not concern the change."""

    @property
    def is_small(self) -> bool:
        """Whether staging it takes no longer than a few look-ups."""
        rows: int = sum(write.row_count + len(write.deletes) for write in self.writes)
        return rows <= SMALL_WRITE_ROWS


def touched_ids(writes: Iterable[TableWrite]) -> TouchedIds:
    """The ids that small writes touch."""
    return {write.table_key: write.ids for write in writes}


def has_moved(
    change: Change, checked: Snapshot, current: Snapshot, recent: RecentCommits | None = None
) -> bool:
    """Whether a table the write read has changed, so that it must be prepared again.

    `recent` may know that commits since then have touched only rows that the write did not read.
    """
    if checked.commit_id == current.commit_id:
        return False
    if checked.catalog.hash != current.catalog.hash:
        return True
    looked_at = (
        *(write.table_key for write in change.writes),
        *change.reads,
        *(table.entry.table_key for table in change.adopted),
    )
    moved = [key for key in looked_at if is_table_moved(key, checked, current)]
    if not moved or recent is None:
        return bool(moved)
    touched = recent.touched_since(checked.commit_id, current.commit_id)
    if touched is None or change.adopted:
        return True
    written = touched_ids(change.writes)
    for key in moved:
        ids, read = written.get(key, frozenset()), change.looked_up.get(key)
        if ids is None or read is None or not touched.get(key, set()).isdisjoint(ids | read):
            return True
    return False


def is_table_moved(table_key: str, checked: Snapshot, current: Snapshot) -> bool:
    """Whether a table has another version than before, be it with the same rows."""
    if table_key not in current.entries:
        raise ConflictError(
            f"'{table_key}' was dropped while the write was prepared; nothing was written, run it again"
        )
    return current.entry(table_key).version_ref != checked.entry(table_key).version_ref


class Preparations:
    """Lets a few writes be prepared at a time, in order of arrival. Thread-safe.

    Threads of one process take turns in the interpreter. Many that prepare their writes at once all
    end late, and hold up the writer that has the lock; a few at a time leave it room, and the next
    ones are ready when it is done. A write that takes long may wait for a provider or read much. It
    does not count any more then.
    """

    def __init__(self, most: int, seconds: float) -> None:
        self._most = most
        self._seconds = seconds
        self._begun: dict[object, float] = {}
        self._waiting = 0
        self._guard = Condition()

    @property
    def are_pending(self) -> bool:
        """Whether writes are being prepared, or wait for it."""
        return bool(self._waiting or self._young())

    @contextmanager
    def begin(self) -> Iterator[None]:
        """Prepare a write in this block, when there is room."""
        token = object()
        with self._guard:
            self._waiting += 1
            try:
                while len(young := self._young()) >= self._most:
                    self._guard.wait(max(0.0, min(young) + self._seconds - time.monotonic()))
            finally:
                self._waiting -= 1
            self._begun[token] = time.monotonic()
        try:
            yield
        finally:
            with self._guard:
                del self._begun[token]
                self._guard.notify()

    def _young(self) -> list[float]:
        """When those that count have begun."""
        since = time.monotonic() - self._seconds
        return [begun for begun in list(self._begun.values()) if begun > since]


PREPARATIONS: Final = Preparations(max(2, os.cpu_count() or 1), PREPARATION_SECONDS)
"""Shared by every handle of this process."""


def preparing(tables: TableStore) -> AbstractContextManager[None]:
    """What a write is prepared in. On an object store it waits for requests most of the time."""
    return nullcontext() if tables.is_remote else PREPARATIONS.begin()


Prepared = TypeVar("Prepared")


def prepare_on_newest(
    parts: GraphParts,
    branch: BranchRef,
    contract: SchemaContract,
    prepare: Callable[[Snapshot], Prepared],
) -> tuple[Snapshot, Prepared]:
    """The state a write was prepared on, and the prepared write.

    If `cleanup` removes the state meanwhile, another commit has replaced it: that one is used.
    """
    with preparing(parts.tables):
        snapshot = parts.snapshot_of(parts.manifest.current(branch.physical), contract)
        try:
            return snapshot, prepare(snapshot)
        except HistoryRemoved:
            newest = parts.snapshot_of(parts.manifest.current(branch.physical))
            if newest.commit_id == snapshot.commit_id:
                raise
        return newest, prepare(newest)
