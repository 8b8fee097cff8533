"""Publish: table versions and their commit become visible together, or not at all.

Every publish is one insert, built on the version of the manifest whose state it follows, and storage
lets exactly one of several inserts into a version win. So lineage is linear. A writer that publishes onto
another state than that in which its operation began looks for its operation there first, so an
operation publishes once; a writer with a caller-chosen key looks for the key.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import pyarrow as pa

from omnigraph.errors import (
    BranchLockLost,
    CommitStateUnknown,
    ConflictError,
    ExpectedVersionMismatch,
    IdempotencyKeyReused,
    InsertConflict,
    LoadIdReused,
    ManifestDamaged,
    NotFoundError,
    OmnigraphError,
    OperationFenced,
    PublishContention,
    SchemaMoved,
    StorageError,
    SyncFailed,
    TableExists,
)
from omnigraph.faults import declare
from omnigraph.limits import CHECKPOINT_INTERVAL, PUBLISH_BUDGET_SECONDS
from omnigraph.storage.delta import WrittenRows, insert_exclusively, write_ahead
from omnigraph.storage.table import Table
from omnigraph.versioning.audit import RecoveryAudit
from omnigraph.versioning.branch_names import public_name
from omnigraph.versioning.commits import (
    WITHOUT_KEY,
    CommitDraft,
    CommitId,
    CommitRecord,
    OperationId,
    TableId,
)
from omnigraph.versioning.manifest import Manifest, ManifestState, replay
from omnigraph.versioning.manifest_compaction import compact_if_overdue
from omnigraph.versioning.rows import (
    PUBLISHED_OUTCOMES,
    Outcome,
    Row,
    TableRegistration,
    TableVersion,
    VersionRef,
    ancestor_row,
    audit_row,
    checkpoint_row,
    commit_rows,
    operation_row,
    registration_row,
    rows_table,
    tombstone_row,
    version_row,
)

BEFORE_INSERT = declare("graph_publish.before_manifest_commit", "before the manifest insert")
AFTER_INSERT = declare("graph_publish.after_manifest_commit", "after the publish is confirmed")


RowsAhead = Callable[[], WrittenRows | None]
"""Waits for rows that are being written before the publish."""


def _nothing() -> None:
    """The lock of a caller that holds none cannot be lost."""


@dataclass(frozen=True, slots=True)
class Publication:
    """Everything one publish makes visible, and its preconditions."""

    draft: CommitDraft
    versions: tuple[TableVersion, ...] = ()
    registrations: tuple[TableRegistration, ...] = ()
    dropped: tuple[TableId, ...] = ()
    changes_schema: bool = False
    """Whether the draft's schema is a new one; otherwise it must be the one the branch has."""
    ancestors: tuple[CommitRecord, ...] = ()
    """Commits of the merged branch; those the branch already records are left out."""
    expected: Mapping[TableId, VersionRef] = field(default_factory=dict)
    expected_head: CommitId | None = None
    revalidate: Callable[[ManifestState], None] | None = None
    """Called with the state published onto; raises when the write no longer holds there."""
    outcome: Outcome = "committed"
    audit: RecoveryAudit | None = None
    begun_at: int | None = None
    """The sequence at which the operation began: it cannot have been recovered before that."""
    turn_id: OperationId | None = None
    """The operation of the sidecar, if several writers share it: recorded with the first commit."""
    is_key_new: bool = False
    """Whether the idempotency key was made for this very call, so that no commit can have it."""


def publish(
    manifest: Manifest,
    branch: str | None,
    publication: Publication,
    check_lock: Callable[[], None] = _nothing,
) -> CommitRecord:
    """Publish one commit onto the head of a branch; see `publish_all`."""
    return publish_all(manifest, branch, [publication], check_lock)[0]


def publish_all(
    manifest: Manifest,
    branch: str | None,
    publications: Sequence[Publication],
    check_lock: Callable[[], None] = _nothing,
    ahead: RowsAhead | None = None,
) -> tuple[CommitRecord, ...]:
    """Publish commits onto the head of a branch, one on top of the other, by one insert.

    Retried with jitter while only commits of other writers conflict. `check_lock` raises when
    the caller has lost the branch's lock, and is called before the insert. `ahead` gives the rows
    that `write_rows_ahead` has written, if it has.
    """
    deadline = time.monotonic() + PUBLISH_BUDGET_SECONDS
    attempt = 0
    while True:
        attempt += 1
        # A version that is not the newest any more is refused by the insert.
        known = manifest.known_table(branch, publications[0].begun_at) if attempt == 1 else None
        table = known or manifest.newest(branch)
        state = manifest.read(table)
        if state.sequence != publications[0].begun_at:
            earlier = _earlier_outcomes(manifest, table, publications)
            if earlier is not None:
                return earlier
        for publication in publications:
            if not publication.is_key_new:
                _refuse_used_key(manifest, branch, publication.draft)
        commits, rows, after = _stack(manifest, table, state, publications)
        last = commits[-1]
        BEFORE_INSERT.hit(branch=branch, sequence=last.sequence)
        check_lock()
        inserted, failure = _try_insert(table, rows_table(rows), ahead)
        is_next = inserted is not None and inserted.version == table.version + 1
        if inserted is not None and is_next:
            # No other version came between, so the state is known without reading it back.
            manifest.learn(inserted, after)
        if is_next and manifest.tables.is_remote:
            confirmed: tuple[CommitRecord, ...] | None = commits  # An object store has said so.
        else:
            confirmed = _confirm(manifest, branch, commits, failure)
        if confirmed is not None:
            if isinstance(failure, SyncFailed):
                # Every reader sees the commit, but a power loss may take it back: not acknowledged.
                raise unknown_outcome(last.draft, failure) from failure
            AFTER_INSERT.hit(branch=branch, sequence=last.sequence)
            if inserted is not None and compact_if_overdue(inserted):
                manifest.current(branch)
            return confirmed
        if time.monotonic() > deadline:
            raise PublishContention(public_name(branch), attempt)
        time.sleep(random.uniform(0, min(0.1, 0.002 * 2 ** min(attempt, 6))))


def write_rows_ahead(
    manifest: Manifest, branch: str | None, publications: Sequence[Publication]
) -> WrittenRows | None:
    """Write the rows that a publish onto the known state will insert; None if it is not known."""
    begun_at = publications[0].begun_at
    table = manifest.known_table(branch, begun_at)
    if table is None:
        return None
    _, rows, _ = _stack(manifest, table, manifest.read(table), publications)
    return write_ahead(table, rows_table(rows))


def _stack(
    manifest: Manifest, table: Table, state: ManifestState, publications: Sequence[Publication]
) -> tuple[tuple[CommitRecord, ...], list[Row], ManifestState]:
    """The commits on top of a state, the rows that say so, and the state they lead to.

    Each commit is checked against the state that those before it leave.
    """
    commits: list[CommitRecord] = []
    rows: list[Row] = []
    for publication in publications:
        manifest.require_head(state, publication.expected_head)
        _check_preconditions(state, publication)
        _check_changes(state, publication)
        commit = next_commit(state, publication)
        ancestors = _unrecorded(manifest, table, publication.ancestors)
        added, state = _advance(state, commit, publication, ancestors)
        commits.append(commit)
        rows += added
    return tuple(commits), rows, state


def next_commit(state: ManifestState, publication: Publication) -> CommitRecord:
    """The commit that a publication becomes on top of a state."""
    return CommitRecord(publication.draft, state.head, state.sequence + 1, state.branch)


def state_after(state: ManifestState, publication: Publication) -> ManifestState:
    """The state that a publication without ancestors leads to."""
    return _advance(state, next_commit(state, publication), publication, [])[1]


def _earlier_outcomes(
    manifest: Manifest, table: Table, publications: Sequence[Publication]
) -> tuple[CommitRecord, ...] | None:
    """The commits of these very operations, when an earlier attempt or a recovery published them."""
    turn_id = publications[0].turn_id
    if turn_id is not None and _earlier_outcome(manifest, table, turn_id) is None:
        return None
    found = [_earlier_outcome(manifest, table, each.draft.operation_id) for each in publications]
    published = tuple(commit for commit in found if commit is not None)
    return published if len(published) == len(found) else None


def _earlier_outcome(
    manifest: Manifest, table: Table, operation_id: OperationId
) -> CommitRecord | None:
    found = manifest.operation_outcome(table, operation_id)
    if found is None:
        return None
    commit_id, outcome = found
    if outcome not in PUBLISHED_OUTCOMES:
        raise OperationFenced(operation_id)
    commit = manifest.find_commit(table.branch, commit_id)
    if commit is None:
        raise ManifestDamaged(f"operation {operation_id} names a commit that is missing")
    return commit


def _check_preconditions(state: ManifestState, publication: Publication) -> None:
    kept = publication.changes_schema or publication.draft.schema_ref == state.schema_ref
    if not kept and state.schema_ref is not None:
        raise SchemaMoved()
    for table_id in sorted(publication.expected):
        expected = publication.expected[table_id]
        entry = state.tables.get(table_id)
        found = VersionRef(entry.version, entry.branch) if entry else VersionRef(0, None)
        if found != expected:
            raise ExpectedVersionMismatch(_name(state, table_id), expected.version, found.version)
    if publication.revalidate is not None:
        publication.revalidate(state)


def _check_changes(state: ManifestState, publication: Publication) -> None:
    """A change that makes no sense must not get in: rows are never taken back."""
    locations = {table.location for table in state.registered.values()}
    for table in publication.registrations:
        if table.table_id in state.registered or table.location in locations:
            raise TableExists(table.location)
        locations.add(table.location)
    known = state.registered.keys() | {table.table_id for table in publication.registrations}
    changed: set[TableId] = set()
    for change in publication.versions:
        name, entry = _name(state, change.table_id), state.tables.get(change.table_id)
        if change.table_id not in known:
            raise NotFoundError(f"the graph has no table '{name}'")
        if change.table_id in changed:
            raise ConflictError(f"a change of '{name}' already exists in this publish")
        if entry is not None and (entry.version, entry.branch) == (change.version, change.branch):
            raise ConflictError(f"version {change.version} of '{name}' already exists")
        changed.add(change.table_id)
    for table_id in publication.dropped:
        if table_id not in state.tables or table_id in changed:
            raise NotFoundError(f"the graph has no table '{_name(state, table_id)}' to drop")


def _name(state: ManifestState, table_id: TableId) -> str:
    """How messages call a table: after its type, by the name the type had at first."""
    registered = state.registered.get(table_id)
    return f"{registered.kind}:{registered.name}" if registered else table_id


def _unrecorded(
    manifest: Manifest, table: Table, commits: tuple[CommitRecord, ...]
) -> list[CommitRecord]:
    """The commits that the branch does not record yet."""
    if not commits:
        return []
    recorded = manifest.recorded(table, [commit.graph_commit_id for commit in commits])
    return [commit for commit in commits if commit.graph_commit_id not in recorded]


def _advance(
    state: ManifestState,
    commit: CommitRecord,
    publication: Publication,
    ancestors: list[CommitRecord],
) -> tuple[list[Row], ManifestState]:
    """The rows of one commit, and the state after it."""
    sequence = commit.sequence
    rows = [registration_row(r, sequence) for r in publication.registrations]
    rows += [version_row(v, sequence) for v in publication.versions]
    rows += [tombstone_row(t, state.tables[t].version, sequence) for t in publication.dropped]
    rows += commit_rows(commit, publication.outcome)
    if publication.turn_id is not None:
        rows.append(operation_row(commit, publication.turn_id, publication.outcome))
    rows += [ancestor_row(ancestor, sequence) for ancestor in ancestors]
    if publication.audit is not None:
        rows.append(audit_row(publication.audit, commit))
    after = replay(state, rows)
    if sequence % CHECKPOINT_INTERVAL == 0:
        rows.append(checkpoint_row(sequence, after.to_checkpoint()))
    return rows, after


def _try_insert(
    table: Table, rows: pa.Table, ahead: RowsAhead | None
) -> tuple[Table | None, Exception | None]:
    """The table with the rows, or what the insert reported instead."""
    written = None
    if ahead is not None:
        with suppress(OmnigraphError):
            written = ahead()
    try:
        return insert_exclusively(table, rows, written), None
    except (InsertConflict, StorageError) as error:
        return None, error


def _confirm(
    manifest: Manifest,
    branch: str | None,
    commits: tuple[CommitRecord, ...],
    failure: Exception | None,
) -> tuple[CommitRecord, ...] | None:
    """The commits as stored; None if another publish won, whatever the insert itself reported."""
    first, last = commits[0], commits[-1]
    try:
        state = manifest.current(branch)
        if failure is None and state.head == last.graph_commit_id:
            return commits
        # After a failure it may be a recovery that published the operation under the same id.
        found = [manifest.find_commit(branch, commit.graph_commit_id) for commit in commits]
    except StorageError as error:
        raise unknown_outcome(first.draft, error) from error
    stored = tuple(commit for commit in found if commit is not None)
    if len(stored) == len(commits):
        return stored
    if state.sequence >= first.sequence:
        return None
    if isinstance(failure, InsertConflict):
        return None
    if failure is not None:
        raise failure
    raise unknown_outcome(first.draft)


def unknown_outcome(draft: CommitDraft, cause: Exception | None = None) -> CommitStateUnknown:
    """The error of a write that recovery will finish or undo."""
    match cause:
        # Their advice is for the write that raised them.
        case CommitStateUnknown(reason=reason) | BranchLockLost(reason=reason):
            pass
        case _:
            reason = None if cause is None else str(cause)
    return CommitStateUnknown(
        draft.operation_id,
        draft.graph_commit_id,
        draft.idempotency_key,
        is_load=draft.load_id is not None,
        takes_key=draft.operation not in WITHOUT_KEY,
        reason=reason,
    )


def _refuse_used_key(manifest: Manifest, branch: str | None, draft: CommitDraft) -> None:
    """A key that a caller chose belongs to one commit of a branch; waiting would not free it."""
    if draft.idempotency_key == draft.operation_id:
        return
    earlier = manifest.find_keyed(branch, draft.idempotency_key)
    if earlier is None:
        return
    used_by = earlier.commit.graph_commit_id
    if draft.load_id is not None:
        note = earlier.load_note
        raise LoadIdReused(draft.load_id, used_by, None if note is None else note.mode)
    raise IdempotencyKeyReused(draft.idempotency_key, used_by)
