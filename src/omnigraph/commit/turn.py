"""Shared turns: the first of several waiting writers of one process commits for all of them.

Each change keeps its own commit, table versions and receipt, and is prepared on what those before it
leave; they share the lock, the sidecar, the syncs and the publish. As the changes are not known when
the sidecar is written, recovery undoes a turn that was not published. A turn that fails is undone,
and its changes are made one by one, so that the failure of one does not touch the others.
Tests: tests/behaviour/test_shared_turns.py, tests/crash.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial

from omnigraph.commit.background import due_compactions
from omnigraph.commit.change import PREPARATIONS, TableWrite, touched_ids
from omnigraph.commit.tables import EarlyStaging, WriteTable, write_table
from omnigraph.commit.writer import (
    AFTER_TABLE,
    BEFORE_PUBLISH,
    BEFORE_TABLE,
    TableWriter,
    WriteRequest,
    final_draft,
    refuse_moved_schema,
    table_versions,
)
from omnigraph.errors import CommitStateUnknown, OmnigraphError, PublishContention
from omnigraph.interrupts import uninterrupted
from omnigraph.limits import MAX_REMOTE_TURN_SECONDS, MAX_TURN_CHANGES, MAX_TURN_SECONDS
from omnigraph.side_by_side import each
from omnigraph.storage.stage import CommitMark, DeferredSyncs, commit_staged
from omnigraph.storage.table import Table
from omnigraph.versioning.commit_sequence import Ending, Operation, sidecar_of, sidecar_table
from omnigraph.versioning.commits import CommitRecord, OperationId, Warning
from omnigraph.versioning.ids import new_ulid
from omnigraph.versioning.locks import HeldLock, Place, SharedTurn
from omnigraph.versioning.manifest import ManifestState
from omnigraph.versioning.publish import Publication, state_after, unknown_outcome
from omnigraph.versioning.recent_commits import RecentCommits
from omnigraph.versioning.snapshot import Snapshot, SnapshotEntry


@dataclass(slots=True, eq=False)
class Offer:
    """A change that waits for its turn, and its outcome."""

    writer: TableWriter
    request: WriteRequest
    early: Callable[[], EarlyStaging] = EarlyStaging
    is_resolved: bool = False
    _commit: CommitRecord | None = None
    _error: Exception | None = None

    def resolve(self, outcome: CommitRecord | Exception | None) -> None:
        self.is_resolved = True
        if isinstance(outcome, Exception):
            self._error = outcome
        else:
            self._commit = outcome

    def result(self) -> CommitRecord | None:
        """The commit; None if there was nothing to write. Raises the error of the write."""
        if self._error is not None:
            raise self._error
        return self._commit


def commit_in_turn(writer: TableWriter, request: WriteRequest) -> CommitRecord | None:
    """Commit a change when its turn comes, in its own turn or in that of another writer."""
    offer = Offer(writer, request, writer.begin_early(request))
    branch, locks = request.branch, writer.parts.locks
    while not offer.is_resolved:
        due: dict[str, int] = {}
        endings: list[Ending] | None = [] if writer.parts.tables.is_remote else None
        with ExitStack() as held:
            turn = held.enter_context(
                locks.share(branch.physical, request.kind.value.lower(), offer)
            )
            if turn is not None:
                leader = _Leader(writer, offer, turn, due, endings)
                uninterrupted(partial(leader.run, held))
        if not endings:
            writer.compactor.after_write(branch, due, request.draft)
    return offer.result()


def _most_seconds(writer: TableWriter) -> float:
    """How long a turn takes further changes."""
    return MAX_REMOTE_TURN_SECONDS if writer.parts.tables.is_remote else MAX_TURN_SECONDS


@dataclass(frozen=True, slots=True)
class _Leader:
    """The writer at the head of the queue, with the lock."""

    writer: TableWriter
    own: Offer
    turn: SharedTurn
    due: dict[str, int]
    """Tables that have too many small files now."""
    endings: list[Ending] | None
    """What is to be done while the lock is held, and after the caller was answered; None if all is
    done before."""
    _begun: float = field(default_factory=time.monotonic)

    def run(self, held: ExitStack) -> None:
        """Make the changes. If work remains after the answer, the lock is released after that work."""
        self._run()
        if self.endings:
            self.writer.endings.begin(partial(self._end, self.endings, held.pop_all()))

    def _end(self, endings: Sequence[Ending], lock: ExitStack) -> None:
        """Finish a turn, and release the lock in any case."""
        with lock:
            for end in endings:
                end()
        request = self.own.request
        self.writer.compactor.after_write(request.branch, self.due, request.draft)

    def _run(self) -> None:
        with self.turn.take(MAX_TURN_CHANGES - 1, self._accepts) as (places, done):
            try:
                self._make(places)
            finally:
                done.update(place for place in places if place.offer.is_resolved)

    def _accepts(self, offer: Offer) -> bool:
        """Whether a change may be made through this writer's handle."""
        return self.writer.parts.tables.is_like(offer.writer.parts.tables)

    def _make(self, places: list[Place]) -> None:
        lock, recovery = self.turn.lock, self.writer.parts.recovery
        # A writer may have died since these looked for sidecars. What it wrote is completed or undone
        # first: no change must be validated against a state that is about to change.
        recovered = recovery.recover_locked(self.own.request.branch.physical, lock)
        offers: list[Offer] = [self.own, *(place.offer for place in places)]

        def late(table_keys: Collection[str]) -> list[Offer]:
            """Changes of these tables alone that writers have offered since the turn began."""
            more = self.turn.take_more(
                places,
                MAX_TURN_CHANGES - len(offers),
                lambda offer: self._accepts(offer) and offer.request.may_write <= set(table_keys),
            )
            found: list[Offer] = [place.offer for place in more]
            for offer in found:
                offer.request = replace(offer.request, quarantined=recovered.quarantined)
            offers.extend(found)
            return found

        for offer in offers:
            offer.request = replace(offer.request, quarantined=recovered.quarantined)
        if len(offers) > 1 or PREPARATIONS.are_pending:
            shared = _TurnChanges.of(self.writer, offers, late, lock, self._begun)
            if shared is not None:
                is_known = shared.run(self.endings)
                self.due.update(shared.due())
                if not is_known:
                    # Recovery comes first; the changes that are left wait for the next turn.
                    return
        for offer in offers:
            is_late = time.monotonic() - self._begun > _most_seconds(self.writer)
            if not offer.is_resolved and (offer is self.own or not is_late):
                self._make_alone(offer)

    def _make_alone(self, offer: Offer) -> None:
        try:
            made = self.writer.make(
                offer.request, offer.early, self.turn.lock, self.due, self.endings
            )
        except Exception as error:
            offer.resolve(error)
        else:
            offer.resolve(made)


@dataclass(frozen=True, slots=True)
class _ReadyChange:
    """A change with its tables, made ready on what those before it leave; or one that has to fail."""

    request: WriteRequest
    tables: Sequence[WriteTable]
    fails: bool = False
    error: Exception | None = None
    """None if there is nothing to do."""

    @property
    def writes(self) -> set[str]:
        return {ready.write.table_key for ready in self.tables}


def _looks_at(request: WriteRequest, changes: Sequence[_ReadyChange]) -> bool:
    """Whether a change may look at tables that others write to: it is prepared after those then."""
    if not changes:
        return False
    change = request.change
    if change is None:
        return True
    looked_at = {*(request.may_write or ()), *change.reads, *change.looked_up}
    looked_at.update(write.table_key for write in change.writes)
    return any(not looked_at.isdisjoint(other.writes) for other in changes)


@dataclass(slots=True)
class _TurnChanges:
    """Changes of several writers under one sidecar, in one publish."""

    writer: TableWriter
    offers: Sequence[Offer]
    """Those so far: `late` adds to them."""
    late: Callable[[Collection[str]], Sequence[Offer]]
    lock: HeldLock
    begun: float
    state: ManifestState
    """The state that the changes made so far lead to. It is not published yet."""
    snapshot: Snapshot
    heads: dict[str, Table]
    """The newest version of each table that may change."""
    turn_id: OperationId = field(default_factory=lambda: OperationId(new_ulid()))
    _base: ManifestState = field(init=False)
    _first_heads: dict[str, Table] = field(init=False)
    _recent: RecentCommits = field(init=False)
    """What earlier commits have touched, and the commits of the turn so far."""
    _deferred: DeferredSyncs = field(default_factory=DeferredSyncs)
    _made: list[Offer] = field(default_factory=list)
    _not_made: list[tuple[Offer, Exception | None]] = field(default_factory=list)
    """Changes that fail or have nothing to do, if the changes before them are published."""
    _moved: dict[str, Table] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._base = self.state
        self._first_heads = dict(self.heads)
        self._recent = self.writer.parts.manifest.recent.copy()

    @classmethod
    def of(
        cls,
        writer: TableWriter,
        offers: Sequence[Offer],
        late: Callable[[Collection[str]], Sequence[Offer]],
        lock: HeldLock,
        begun: float,
    ) -> _TurnChanges | None:
        """The turn on the newest state of the branch; None if a table is not where it should be, of
        which each change then gets."""
        request, physical = offers[0].request, offers[0].request.branch.physical
        state = writer.parts.recovery.state(physical, lock)
        snapshot = writer.parts.snapshot_of(state)
        wanted = frozenset[str]().union(*(o.request.may_write or () for o in offers))
        entries = [snapshot.entries[key] for key in sorted(wanted & snapshot.entries.keys())]
        heads = _heads(writer, request, entries, lock)
        if heads.keys() != wanted:
            return None
        if not writer.parts.tables.is_remote:
            # Other writers, which may still come, most likely write what was written last.
            likely = (snapshot.entries.get(key) for key in sorted(writer.in_turns - wanted))
            owned = [entry for entry in likely if entry is not None and entry.branch == physical]
            heads |= _heads(writer, request, owned, lock)
        return cls(writer, offers, late, lock, begun, state, snapshot, heads)

    def run(self, endings: list[Ending] | None) -> bool:
        """Make the changes and resolve their offers. Those that are left have to be made on their own.

        False if the outcome of the turn is unknown.
        """
        try:
            commits = self.writer.parts.sequence.run(self._operation(), self.lock, endings)
        except CommitStateUnknown as unknown:
            for offer in self._made:
                offer.resolve(unknown_outcome(offer.request.draft, unknown))
            return False
        except Exception:
            # It is undone. The failed change reports its error when it is made on its own.
            return True
        except BaseException as crash:
            for offer in self.offers:
                offer.resolve(unknown_outcome(offer.request.draft, RuntimeError(str(crash))))
            raise
        self.writer.parts.tables.keep(self._moved.values())
        self.writer.in_turns = frozenset(self._moved)
        for writer in {id(offer.writer): offer.writer for offer in self.offers}.values():
            writer.parts.manifest.recent = self._recent
        for offer, commit in zip(self._made, commits, strict=True):
            offer.resolve(commit)
        for offer, error in self._not_made:
            offer.resolve(error)
        return True

    def due(self) -> dict[str, int]:
        """Tables that the turn has left with too many small fragments."""
        return due_compactions(self._moved.items())

    def _operation(self) -> Operation:
        request, physical = self.offers[0].request, self.offers[0].request.branch.physical
        entries = [self.snapshot.entry(key) for key in self.heads]
        sidecar = sidecar_of(
            request.kind,
            request.branch,
            self.state,
            replace(request.draft, operation_id=self.turn_id, write_key=None, load_id=None),
            (
                sidecar_table(e, physical, data_commits=0, forks=e.branch != physical)
                for e in entries
            ),
            is_shared=True,
        )
        return Operation(sidecar, self._commit_tables, BEFORE_PUBLISH)

    def _commit_tables(self) -> list[Publication]:
        publications: list[Publication] = []
        beside: list[_ReadyChange] = []
        keys: set[str] = set()

        def commit() -> None:
            publications.extend(self._commit(beside, is_first=not publications))
            beside.clear()

        for offer in self._in_turn():
            key = offer.request.draft.idempotency_key
            if key in keys:
                continue
            if _looks_at(offer.request, beside):
                commit()
            ready = self._try(offer)
            if beside and (ready is None or ready.fails or _looks_at(ready.request, beside)):
                commit()
                ready = self._try(offer)
            if ready is None:
                continue
            if ready.fails:
                self._not_made.append((offer, ready.error))
                continue
            beside.append(ready)
            self._made.append(offer)
            keys.add(key)
            # Requests to an object store are worth making side by side; a disk answers too quickly.
            if not self.writer.parts.tables.is_remote:
                commit()
        commit()
        self._deferred.sync()
        return publications

    def _try(self, offer: Offer) -> _ReadyChange | None:
        """A change, or why there is none; None if it has to be made on its own."""
        try:
            ready = self._ready(offer)
        except Exception as error:
            return _ReadyChange(offer.request, (), fails=True, error=error)
        if ready is None:
            return None
        request, tables = ready
        return _ReadyChange(request, tables, fails=not tables and not request.commits_without_rows)

    def _in_turn(self) -> Iterator[Offer]:
        """The changes that there is time for, those included that are offered meanwhile."""
        waiting = list(self.offers)
        while waiting:
            for offer in waiting:
                if time.monotonic() - self.begun > _most_seconds(self.writer):
                    return
                yield offer
            waiting = list(self.late(self.heads))

    def _ready(self, offer: Offer) -> tuple[WriteRequest, list[WriteTable]] | None:
        """A change on what those before it leave; None if it writes to other tables than foreseen."""
        request, early = offer.request, offer.early()
        refuse_moved_schema(request, self.state)
        self.writer.refuse_repeated(request)
        holds = request.holds_on(self.snapshot, self._recent)
        offer.writer.note_contention(request, holds=holds)
        if not holds:
            request, early = request.prepared_on(self.snapshot), EarlyStaging()
        assert request.change is not None
        tables = []
        for write in request.change.writes:
            if write.table_key not in self.heads:
                return None
            entry = self.snapshot.entry(write.table_key)
            ready = write_table(
                write,
                entry,
                self.heads[write.table_key],
                forks=entry.branch != request.branch.physical,
                catalog=self.snapshot.catalog,
                early=early.staged,
                looked_up_in=self._looked_up_in(write),
            )
            if ready is not None:
                tables.append(ready)
        return request, tables

    def _looked_up_in(self, write: TableWrite) -> Table:
        """The version of a table in which the rows of a write are looked up.

        Other changes of the turn do not move them, so the first version will do, of which more is
        known already.
        """
        touched = self._recent.touched_since(self._base.head, self.state.head)
        if (
            write.ids is not None
            and touched is not None
            and touched.get(write.table_key, set()).isdisjoint(write.ids)
        ):
            return self._first_heads[write.table_key]
        return self.heads[write.table_key]

    def _commit(self, changes: Sequence[_ReadyChange], *, is_first: bool) -> list[Publication]:
        """The table commits of changes of which none looks at what another one writes.

        An error ends the turn: part of them may be made. All of them have ended by then.
        """
        committed = each([partial(self._commit_tables_of, change) for change in changes])
        publications: list[Publication] = []
        for change, (written, warnings) in zip(changes, committed, strict=True):
            is_first_of_turn = is_first and not publications
            publication = self._publication(change, written, warnings, is_first=is_first_of_turn)
            publications.append(publication)
            touched = touched_ids(ready.write for ready in change.tables)
            commit_id = publication.draft.graph_commit_id
            self._recent.add(commit_id, self.state.head, touched)
            keys = (ready.entry.table_key for ready in change.tables)
            self._advance(publication, dict(zip(keys, written, strict=True)))
        return publications

    def _commit_tables_of(self, change: _ReadyChange) -> tuple[list[Table], list[Warning]]:
        request, tables = change.request, change.tables
        mark: CommitMark = {"operation_id": self.turn_id, "writer_kind": request.kind.value}
        written: list[Table] = []
        for ready in tables:
            self.lock.check()
            line = self.writer.line_of(ready, request.branch.physical, mark)
            staged = ready.stage_on(line, self.writer.parts.objects)
            BEFORE_TABLE.hit(table=ready.write.table_key)
            self.lock.check()
            written.append(commit_staged(line, staged, **mark, deferred=self._deferred))
            AFTER_TABLE.hit(table=ready.write.table_key)
        warnings: list[Warning] = []
        if any(ready.write.table_key not in self._moved for ready in tables):
            # A table that gets its indexes later in the turn than it could is unaffected.
            warnings = self.writer.index(request, tables, written, mark, self.lock)
        return written, warnings

    def _publication(
        self,
        change: _ReadyChange,
        written: Sequence[Table],
        warnings: Sequence[Warning],
        *,
        is_first: bool,
    ) -> Publication:
        tables = change.tables
        draft = final_draft(change.request, tables)
        return Publication(
            draft=replace(draft, warnings=(*draft.warnings, *warnings)),
            versions=tuple(table_versions(tables, written)),
            expected={ready.entry.table_id: ready.entry.version_ref for ready in tables},
            revalidate=self._refuse_disturbed if is_first else None,
            begun_at=self._base.sequence,
            turn_id=self.turn_id if is_first else None,
            is_key_new=change.request.is_key_new,
        )

    def _refuse_disturbed(self, found: ManifestState) -> None:
        if found.sequence != self._base.sequence:
            raise PublishContention(self.snapshot.branch, 1)

    def _advance(self, publication: Publication, written: dict[str, Table]) -> None:
        self.state = state_after(self.state, publication)
        self.heads |= written
        self._moved |= written
        self.snapshot = self.snapshot.followed_by(self.state, written)


def _heads(
    writer: TableWriter, request: WriteRequest, entries: Sequence[SnapshotEntry], lock: HeldLock
) -> dict[str, Table]:
    """Tables as the writes of a turn find them; none if one of them is not where it should be."""
    try:
        heads = writer.bases_of(request, entries, lock)
    except OmnigraphError:
        return {}
    moved = (
        entry.branch == request.branch.physical and heads[entry.table_key].version != entry.version
        for entry in entries
    )
    return {} if any(moved) else heads
