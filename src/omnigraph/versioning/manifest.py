"""Reading the manifest: the state of a branch, now or at an earlier version, and its commits.

State is replayed from rows in publish order. A handle that knows a branch reads only what is new; a
cold one starts from the newest checkpoint. Neither gets slower as history grows.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from omnigraph.errors import (
    BranchNotFound,
    GraphMoved,
    HeadMoved,
    ManifestDamaged,
    StoreCallFailed,
    TableMissing,
    UnknownVersion,
)
from omnigraph.json_structs import described
from omnigraph.limits import (
    CHECKPOINT_INTERVAL,
    HANDED_OVER_IDS,
    HANDOVER_BYTES,
    HEAD_NOTE_BYTES,
    MANIFEST_SMALL_ROWS,
)
from omnigraph.side_by_side import both
from omnigraph.storage.filters import And, Comparison, In
from omnigraph.storage.indexes import noticed_damage
from omnigraph.storage.refs import StoredBranch
from omnigraph.storage.table import Table
from omnigraph.storage.tables import TableStore
from omnigraph.storage.versions import FileWatch, VersionObject, VersionWatch, watch_version
from omnigraph.versioning.branch_names import public_name
from omnigraph.versioning.commits import (
    CommitId,
    CommitRecord,
    LoadNote,
    OperationId,
    OperationKind,
    TableId,
)
from omnigraph.versioning.handover import Handover, boot_id, latest_commits
from omnigraph.versioning.manifest_state import (
    COLUMNS,
    HeadNote,
    KnownState,
    ManifestState,
    after,
    cold_state,
    read_rows,
    replay,
)
from omnigraph.versioning.recent_commits import RecentCommits
from omnigraph.versioning.rows import (
    KEY_COLUMN,
    MANIFEST_PATH,
    PUBLISHED_OUTCOMES,
    OperationMetadata,
    Outcome,
    ancestor_key,
    check_stamp,
    commit_table_key,
    load_key,
    operation_key,
    write_key,
)
from omnigraph.versioning.torn_manifests import damaged, was_acknowledged

if TYPE_CHECKING:
    from omnigraph.storage.torn import Torn
    from omnigraph.versioning.audit import RecordedAudit

__all__ = ["HeadNotes", "KeyedCommit", "Manifest", "ManifestState", "replay"]


class HeadNotes(Protocol):
    """Where notes of branch heads are found."""

    def __call__(self, branch: str | None) -> str | None: ...


@dataclass(frozen=True, slots=True)
class KeyedCommit:
    """A commit found by its idempotency key; `load_note` if the key is a load id."""

    commit: CommitRecord
    load_note: LoadNote | None = None


class Manifest:
    """The manifest of one graph, with what is known about each of its branches. Thread-safe."""

    def __init__(self, tables: TableStore, notes: HeadNotes | None = None) -> None:
        """`notes` are looked at before the first read of a branch on an object store."""
        self.tables = tables
        self._notes = notes
        self._known: dict[str | None, KnownState] = {}
        self._asked_at: dict[str | None, float] = {}
        self._lock = Lock()
        self.recent = RecentCommits()
        """What the latest commits touched."""

    def newest(self, branch: str | None) -> Table:
        """The newest stored version of a branch's manifest, whatever state it is in.

        Raises `BranchNotFound`, or `StorageError` when there is no graph at all.
        """
        return self._open_newest(branch, self.tables.newest_object(MANIFEST_PATH, branch))

    def _open_newest(self, branch: str | None, found: VersionObject | None) -> Table:
        """The same after a look at an object store; `found` is None elsewhere, or without a version."""
        known = self._last_known(branch)
        if found is not None and known is not None and known.table and known.is_found(found):
            return known.table
        try:
            if found is None:
                table = self.tables.open(MANIFEST_PATH, branch)
            else:
                table = self.tables.open_found(MANIFEST_PATH, branch, found)
        except TableMissing:
            if branch is None:
                raise
            raise BranchNotFound(public_name(branch)) from None
        except GraphMoved as moved:
            raise GraphMoved(public_name(branch), moved.made_at, moved.found_at) from None
        return self._checked(table)

    def _checked(self, table: Table) -> Table:
        """The table, if it is of the format that is read here."""
        check_stamp(table.schema)
        return table

    def refs(self) -> Mapping[str, StoredBranch]:
        """The branches of the manifest by their storage names, as stored now."""
        return self.tables.list_branches(MANIFEST_PATH)

    def open(self, branch: str | None) -> Table:
        """The newest version that can be read: one that a power loss has torn is skipped.

        Raises `FileDamaged` for one that was acknowledged and cannot be read any more.
        """
        try:
            table = self.newest(branch)
            self.read(table)
        except TableMissing:
            raise
        except StoreCallFailed:
            torn = self.tables.find_torn(MANIFEST_PATH, branch)
            if torn is None or torn.previous is None:
                raise
            table = self._checked(self.tables.open(MANIFEST_PATH, branch, torn.previous))
            self.refuse_acknowledged(torn, table)
        self.refuse_lost(table)
        return table

    def refuse_lost(self, table: Table) -> None:
        """Raise `FileDamaged` if the newest version there is was not the newest acknowledged one."""
        lost = self.tables.lost_version(table)
        if lost is not None:
            self.refuse_acknowledged(lost, table)

    def refuse_acknowledged(self, torn: Torn, before: Table) -> None:
        """Raise `FileDamaged` if a version that is torn was acknowledged once.

        `before` is the version before it.
        """
        state = cold_state(before, None)
        acknowledged = was_acknowledged(self.tables, before.branch, state.tables, state.registered)
        # Another process may have recovered it meanwhile, and published in its place.
        if acknowledged and torn in (
            self.tables.find_torn(MANIFEST_PATH, before.branch),
            self.tables.lost_version(before),
        ):
            raise damaged(torn)

    def current(self, branch: str | None, *, max_staleness: float = 0.0) -> ManifestState:
        """The state of a branch as stored now, or as it was within the given seconds.

        A branch that is known costs one request of an object store, or none.
        """
        asked_at = time.monotonic()
        with self._lock:
            known, last = self._known.get(branch), self._asked_at.get(branch)
        if known is not None and last is not None and asked_at - last < max_staleness:
            return known.state
        state = self._stored(branch)
        with self._lock:
            self._asked_at[branch] = asked_at
        return state

    def _stored(self, branch: str | None) -> ManifestState:
        if not self.tables.is_remote:
            known = self._newest_known(branch)
            return self.read(self.open(branch)) if known is None else known.state
        known = self._last_known(branch)
        if known is None and self._notes is not None:
            found = self._found_with_note(branch, self._notes)
        else:
            found = self.tables.newest_object(MANIFEST_PATH, branch)
        known = self._last_known(branch)
        if found is not None and known is not None and known.is_found(found):
            return known.state
        return self.read(self._open_newest(branch, found))

    def _found_with_note(self, branch: str | None, notes: HeadNotes) -> VersionObject | None:
        """The newest version of a branch; a note of its head is read at the same time."""
        found, text = both(
            lambda: self.tables.newest_object(MANIFEST_PATH, branch), lambda: notes(branch)
        )
        note = None if text is None else HeadNote.parse(text)
        if found is None or note is None or note.version > found.version:
            return found
        known = KnownState.noted(note, branch)
        # A branch is opened all the same: it may have been made at another address.
        if branch is None and (note.version, note.token) == (found.version, found.token):
            known = replace(known, watch=self.tables.watch_found(MANIFEST_PATH, branch, found))
        with self._lock:
            self._known.setdefault(branch, known)
        return found

    def head_note(self, branch: str | None) -> str | None:
        """What is known of a branch, for other processes; None if it is nothing, or a lot."""
        known = self._last_known(branch)
        if known is None:
            return None
        note = msgspec.json.encode(known.note()).decode()
        return note if len(note) <= HEAD_NOTE_BYTES else None

    def handover(self, branch: str | None) -> str | None:
        """What is known of a branch on a local disk, for the process that locks it next."""
        known, boot = self._last_known(branch), boot_id()
        if known is None or boot is None or not isinstance(known.watch, FileWatch):
            return None
        if known.has_damaged_indexes or not known.watch.is_newest():
            return None
        line = self.tables.line(MANIFEST_PATH, branch)
        text = Handover(
            boot,
            known.watch.identity,
            line.sync is not None and line.sync.is_safe(line, known.storage_version),
            known.note(),
            latest_commits(self.recent, known.state.head),
            line.known.latest(HANDED_OVER_IDS),
        ).to_text()
        return text if len(text) <= HANDOVER_BYTES else None

    def take_over(self, branch: str | None, text: str) -> None:
        """Learn what the last holder of the lock has left, if it follows on what is known; called
        under the lock."""
        known, left = self._last_known(branch), Handover.parse(text)
        if known is None or left is None or not left.leads_from(known.state.head):
            return
        line = self.tables.line(MANIFEST_PATH, branch)
        watch = watch_version(line, left.head.version)
        if not isinstance(watch, FileWatch) or watch.identity != left.file or not watch.is_newest():
            return
        left.tell(self.recent)
        line.known.take_over(left.files)
        if line.sync is not None:
            if not left.is_synced:
                return
            line.sync.trust(line, left.head.version)
        noted = KnownState.noted(left.head, branch)
        state = replace(noted.state, origin=known.state.origin)
        with self._lock:
            self._known[branch] = replace(noted, state=state, watch=watch)

    def known_on_disk(self, branch: str | None) -> ManifestState | None:
        """The state of a branch, if it is known, nothing came after it, and this process has made
        sure that no file of it is missing or has to be made again."""
        known = self._newest_known(branch)
        if known is None or known.has_damaged_indexes:
            return None
        if known.table is None and self.tables.is_remote:
            return None
        lineage = self.tables.line(MANIFEST_PATH, branch)
        if not lineage.is_local and known.table is not None and noticed_damage(known.table):
            return None
        is_safe = lineage.sync is None or lineage.sync.is_safe(lineage, known.storage_version)
        return known.state if is_safe else None

    def last_table(self, branch: str | None) -> Table | None:
        """The version of a branch on an object store that this process read or wrote last."""
        known = self._last_known(branch)
        return None if known is None or not self.tables.is_remote else known.table

    def known_table(self, branch: str | None, sequence: int | None) -> Table | None:
        """The same if it is at this sequence. Another process may have come since."""
        known = self._last_known(branch)
        is_at = known is not None and known.state.sequence == sequence
        return self.last_table(branch) if is_at else None

    def known_state(self, branch: str | None) -> ManifestState | None:
        """The state of that version, if nothing of it has to be made again."""
        known = self._last_known(branch)
        if not self.tables.is_remote or known is None or known.table is None:
            return None
        return None if noticed_damage(known.table) else known.state

    def _last_known(self, branch: str | None) -> KnownState | None:
        with self._lock:
            return self._known.get(branch)

    def _newest_known(self, branch: str | None) -> KnownState | None:
        """What is known of a branch, if the store shows that nothing came after it."""
        known = self._last_known(branch)
        if known is None or known.watch is None or not known.watch.is_newest():
            return None
        return known

    def read(self, table: Table) -> ManifestState:
        """The state an opened manifest describes; only rows not known yet are read."""
        known = self._last_known(table.branch)
        state = None
        if known is not None and known.is_of(table):
            if known.table is not None and known.watch is not None:
                return known.state
            state = known.state
        elif known is not None and known.storage_version < table.version:
            state = _continued(known, table)
        if state is None:
            self.tables.forget_kept()
            state = cold_state(table, None)
        self._remember(table, state, table.watch())
        return state

    def learn(self, table: Table, state: ManifestState) -> None:
        """Note the state of a version that the caller made from one it had read."""
        self._remember(table, state, self.tables.watch_written(table))

    def _remember(self, table: Table, state: ManifestState, watch: VersionWatch | None) -> None:
        learnt = KnownState.of(table, state, watch)
        with self._lock:
            known = self._known.get(table.branch)
            # A reader may be done with a version after a writer of this process has made the next one,
            # on which later writes rely.
            if known is None or not learnt.is_before(known):
                self._known[table.branch] = learnt

    def small_fragment_count(self, branch: str | None) -> int:
        """The number of small fragments a branch's manifest had when it was last read."""
        known = self._last_known(branch)
        return 0 if known is None else known.small_fragment_count

    def at(self, branch: str | None, sequence: int) -> ManifestState:
        """The state of a branch right after its commit number `sequence`."""
        table = self.open(branch)
        head = self.read(table).sequence
        if not 1 <= sequence <= head:
            raise UnknownVersion(sequence, head)
        return cold_state(table, sequence)

    def require_head(self, state: ManifestState, expected: CommitId | None) -> None:
        """Raise `HeadMoved` unless a branch stands at a commit, in a state of it just read.

        Later compactions do not count: a writer makes them on its own after the commit it reports.
        """
        if expected is None or expected == state.head:
            return
        found = self.find_commit(state.branch, expected)
        if found is not None:
            later, _ = self.recorded_commits(state.branch, state.sequence, after=found.sequence)
            if all(commit.draft.operation is OperationKind.OPTIMIZE for commit in later):
                return
        raise HeadMoved(public_name(state.branch), expected, state.head)

    def forget(self, branch: str | None) -> None:
        """Drop what is known about a branch, after it was deleted or created again."""
        with self._lock:
            self._known.pop(branch, None)
            self._asked_at.pop(branch, None)

    def commits(self, branch: str | None) -> list[CommitRecord]:
        """All commits visible on a branch, oldest first."""
        rows = read_rows(self.open(branch), Comparison("object_type", "=", "graph_commit"))
        return sorted((_commit(row) for row in rows), key=lambda commit: commit.sequence)

    def find_commit(self, branch: str | None, commit_id: CommitId) -> CommitRecord | None:
        """A commit visible on a branch, by its id."""
        wanted = And(
            (
                Comparison("table_key", "=", commit_table_key(commit_id)),
                Comparison("object_type", "=", "graph_commit"),
            )
        )
        rows = read_rows(self.open(branch), wanted)
        return _commit(rows[0]) if rows else None

    def find_ancestor(self, branch: str | None, commit_id: CommitId) -> CommitRecord | None:
        """A commit that a merge brought to a branch, by its id."""
        wanted = Comparison(KEY_COLUMN, "=", ancestor_key(commit_id))
        rows = read_rows(self.open(branch), wanted)
        return _commit(rows[0]) if rows else None

    def recorded_commits(
        self, branch: str | None, until: int, *, after: int = 0
    ) -> tuple[list[CommitRecord], list[CommitRecord]]:
        """The commits a branch records between sequences: its own, and merged ones."""
        wanted = And(
            (
                Comparison("commit_seq", ">", after),
                Comparison("commit_seq", "<=", until),
                In("object_type", ("graph_commit", "ancestor_commit")),
            )
        )
        rows = read_rows(self.open(branch), wanted)
        own = [_commit(row) for row in rows if row["object_type"] == "graph_commit"]
        brought = [_commit(row) for row in rows if row["object_type"] == "ancestor_commit"]
        return sorted(own, key=lambda commit: commit.sequence), brought

    def states_after(
        self, branch: str | None, start: int, end: int
    ) -> Iterator[tuple[CommitRecord, ManifestState]]:
        """A branch commit by commit: the state at `start`, then after each commit up to `end`.

        The first commit there is comes without one before it.
        """
        first = max(start, 1)
        state = self.at(branch, first)
        while True:
            last = min(first + CHECKPOINT_INTERVAL, end)
            wanted = And(
                (Comparison("commit_seq", ">=", first), Comparison("commit_seq", "<=", last))
            )
            rows = sorted(read_rows(self.open(branch), wanted), key=lambda row: row["commit_seq"])
            for sequence, of_commit in groupby(rows, key=lambda row: row["commit_seq"]):
                recorded = list(of_commit)
                if sequence > state.sequence:
                    state = replay(state, recorded)
                [commit] = [_commit(r) for r in recorded if r["object_type"] == "graph_commit"]
                yield commit, state
            if last >= end:
                return
            first = last + 1

    def commit_ids(self, branch: str | None, first: int, last: int) -> dict[int, CommitId]:
        """The commits of a branch between two sequences, both included."""
        wanted = And(
            (
                Comparison("commit_seq", ">=", first),
                Comparison("commit_seq", "<=", last),
                Comparison("object_type", "=", "graph_commit"),
            )
        )
        found = self.open(branch).read(["commit_seq", "table_key"], filter=wanted).to_pylist()
        return {
            row["commit_seq"]: CommitId(row["table_key"].removeprefix("commit:")) for row in found
        }

    def made_on(self, branch: str) -> list[CommitId]:
        """The commits that were made on a branch, without those it began with."""
        wanted = And(
            (
                Comparison("object_type", "=", "graph_commit"),
                Comparison("table_branch", "=", branch),
            )
        )
        found = self.open(branch).read(["table_key"], filter=wanted).column("table_key")
        return [CommitId(key.removeprefix("commit:")) for key in found.to_pylist()]

    def recorded(self, table: Table, commits: Iterable[CommitId]) -> set[CommitId]:
        """The subset of commits that an opened manifest records, as its own or merged."""
        keys = tuple(commit_table_key(commit) for commit in commits)
        wanted = And(
            (
                In("table_key", keys),
                In("object_type", ("graph_commit", "ancestor_commit")),
            )
        )
        found = table.read(["table_key"], filter=wanted).column("table_key").to_pylist()
        return {CommitId(key.removeprefix("commit:")) for key in found}

    def operation_outcome(
        self, table: Table, operation_id: OperationId
    ) -> tuple[CommitId, str] | None:
        """What became of an operation, if a publish or a recovery has recorded it."""
        rows = read_rows(table, Comparison(KEY_COLUMN, "=", operation_key(operation_id)))
        if not rows:
            return None
        commit_id = CommitId(rows[0]["table_key"].removeprefix("commit:"))
        return commit_id, _outcome(rows[0])

    def audits(self, branch: str | None) -> list[RecordedAudit]:
        """All recoveries recorded on a branch, oldest first."""
        from omnigraph.versioning.audit import read_audits

        return read_audits(
            read_rows(self.open(branch), Comparison("object_type", "=", "recovery_audit"))
        )

    def drops(self, branch: str | None) -> dict[TableId, int]:
        """The tables that left a branch for good, and the sequence at which they did."""
        rows = read_rows(self.open(branch), Comparison("object_type", "=", "table_tombstone"))
        return {TableId(row["table_key"]): row["commit_seq"] for row in rows}

    def find_keyed(self, branch: str | None, key: str) -> KeyedCommit | None:
        """The commit that a write with this idempotency key or load id made on a branch.

        Keys belong to the branch they were used on: rows that a branch inherited from its source
        do not count. A key that the caller did not choose is the operation's id.
        """
        keys = (
            write_key(branch, key),
            load_key(branch, key),
            load_key(None, key),
            operation_key(OperationId(key)),
        )
        for row in read_rows(self.open(branch), In(KEY_COLUMN, keys)):
            if row["object_type"] == "operation" and not _is_published(row):
                continue
            commit_id = CommitId(row["table_key"].removeprefix("commit:"))
            commit = self.find_commit(branch, commit_id)
            if commit is None:
                raise ManifestDamaged(f"key '{key}' names commit {commit_id}, which is missing")
            if commit.branch == branch:
                return KeyedCommit(commit, _load_note(row))
        return None


def _is_published(operation: Mapping[str, Any]) -> bool:
    return _outcome(operation) in PUBLISHED_OUTCOMES


def _outcome(operation: Mapping[str, Any]) -> Outcome:
    return msgspec.json.decode(operation["metadata"], type=described(OperationMetadata)).outcome


def _load_note(row: Mapping[str, Any]) -> LoadNote | None:
    if row["object_type"] != "load_id":
        return None
    return msgspec.json.decode(row["metadata"], type=described(LoadNote))


def _continued(known: KnownState, table: Table) -> ManifestState | None:
    """A known state and what came after it; None if the table is not what it was read from.

    A branch that was deleted and made again under the same name has another history.
    """
    state = known.state
    rows, earlier = _newer_rows(known, table)
    commits = sorted((_commit(row) for row in _commits(rows)), key=lambda commit: commit.sequence)
    if commits:
        return replay(state, rows) if commits[0].parent_commit_id == state.head else None
    heads = [row for row in _commits(earlier) if row["commit_seq"] == state.sequence]
    if not heads:
        at_head = And(
            (
                Comparison("commit_seq", "=", state.sequence),
                Comparison("object_type", "=", "graph_commit"),
            )
        )
        heads = read_rows(table, at_head)
    return (
        replay(state, rows) if [_commit(r).graph_commit_id for r in heads] == [state.head] else None
    )


def _commits(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in rows if row["object_type"] == "graph_commit"]


def _newer_rows(
    known: KnownState, table: Table
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The rows of later commits, which are in later fragments, and others that lie beside them.

    Rows are only ever added, so their number tells whether the fragments held all of them.
    """
    newer = [f for f in table.fragments() if f.id > known.newest_fragment]
    rows: list[dict[str, Any]] = []
    earlier: list[dict[str, Any]] = []
    if newer and sum(f.rows for f in newer) <= MANIFEST_SMALL_ROWS:
        # Reading a few rows takes less time than asking an index about them.
        for row in table.read(COLUMNS, fragment_ids=[f.id for f in newer]).to_pylist():
            (rows if row["commit_seq"] > known.state.sequence else earlier).append(row)
    if known.row_count + len(rows) == table.row_count():
        return rows, earlier
    return read_rows(table, after(known.state.sequence)), earlier


def _commit(row: Mapping[str, Any]) -> CommitRecord:
    return CommitRecord.from_metadata(row["metadata"], row["commit_seq"], row["table_branch"])
