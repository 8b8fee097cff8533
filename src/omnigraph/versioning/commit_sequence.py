"""The commit sequence: sidecar, table commits, publish, clean-up. Every writer goes through it.

Phase A writes the sidecar, B commits the tables, C publishes, D removes the sidecar. Nothing of an
operation can be seen before C. A crash from A on is recovered from the sidecar; an error that is not
a crash is undone here, by the code that recovery uses, while the lock is held.
Tests: tests/crash, tests/behaviour.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from omnigraph.errors import CommitStateUnknown, OmnigraphError
from omnigraph.faults import FaultPoint
from omnigraph.instruments import Step, timed
from omnigraph.interrupts import uninterrupted
from omnigraph.side_by_side import both
from omnigraph.versioning.branches import BranchRef
from omnigraph.versioning.commits import CommitDraft, CommitRecord
from omnigraph.versioning.ids import process_identity
from omnigraph.versioning.locks import HeldLock
from omnigraph.versioning.manifest import Manifest, ManifestState
from omnigraph.versioning.publish import Publication, RowsAhead, publish_all
from omnigraph.versioning.recovery.recover import Recovery
from omnigraph.versioning.recovery.sidecar import (
    Pointer,
    SchemaChange,
    Sidecar,
    SidecarTable,
    WriterKind,
)
from omnigraph.versioning.snapshot import SnapshotEntry

Ending = Callable[[], None]
"""Phase D of an operation."""


def sidecar_of(
    kind: WriterKind,
    branch: BranchRef,
    state: ManifestState,
    draft: CommitDraft,
    tables: Iterable[SidecarTable],
    *,
    pointers: Iterable[Pointer] = (),
    schema: SchemaChange | None = None,
    is_shared: bool = False,
) -> Sidecar:
    """The sidecar of an operation that this process begins on a state of a branch."""
    return Sidecar(
        owner=process_identity(),
        branch=None if branch.physical is None else branch.public,
        physical=branch.physical,
        base_sequence=state.sequence,
        writer_kind=kind,
        tables=tuple(tables),
        draft=draft,
        pointers=tuple(pointers),
        schema=schema,
        is_shared=is_shared,
    )


def sidecar_table(
    entry: SnapshotEntry, branch: str | None, *, data_commits: int, forks: bool = False
) -> SidecarTable:
    """The sidecar entry of a table that an operation moves."""
    return SidecarTable.of(
        entry.table_key,
        entry.table_id,
        entry.location,
        entry.version_ref,
        branch,
        data_commits=data_commits,
        forks=forks,
    )


@dataclass(frozen=True, slots=True)
class Operation:
    """A write: its sidecar records how to undo it, `commit_tables` commits its tables."""

    sidecar: Sidecar
    commit_tables: Callable[[], Sequence[Publication]]
    """Moves the tables that the sidecar names. Returns the commits to publish, in order; none if no
    table has moved."""
    before_publish: FaultPoint | None = None
    after_publish: FaultPoint | None = None
    ahead: RowsAhead | None = None
    """The rows of the publish, if they are being written already."""


class CommitSequence:
    """Runs the operations of one graph through the four phases."""

    def __init__(self, manifest: Manifest, recovery: Recovery) -> None:
        self._manifest = manifest
        self._recovery = recovery

    def run(
        self, operation: Operation, lock: HeldLock, endings: list[Ending] | None = None
    ) -> tuple[CommitRecord, ...]:
        """Run phases A to D under the lock of the branch. An interrupt waits until they are done.

        With `endings`, phase D is added there instead: the caller does it before it releases the
        lock. Raises `CommitStateUnknown` for an operation that is left to recovery. After any other
        error nothing of the operation is visible or will be.
        """
        with timed(Step.COMMIT):
            return uninterrupted(lambda: self._run(operation, lock, endings))

    def publish_only(
        self, branch: str | None, publication: Publication, lock: HeldLock
    ) -> CommitRecord:
        """Publish a commit that moves no table, so it cannot be left incomplete."""
        self._recovery.doubt(branch)
        [commit] = uninterrupted(
            lambda: publish_all(self._manifest, branch, [publication], lock.check)
        )
        return commit

    def _run(
        self, operation: Operation, lock: HeldLock, endings: list[Ending] | None
    ) -> tuple[CommitRecord, ...]:
        sidecar = operation.sidecar
        commits: tuple[CommitRecord, ...] = ()
        lock.check()
        self._recovery.begin(sidecar)
        try:
            publications = operation.commit_tables()
            if publications:
                commits = self._publish(operation, publications, lock)
        except CommitStateUnknown:
            raise
        except Exception as error:
            self._recovery.undo_own(sidecar, lock, error)
            raise
        if endings is None:
            self._end(sidecar)
        else:
            endings.append(partial(self._end, sidecar))
        return commits

    def _end(self, sidecar: Sidecar) -> None:
        """Phase D. On an object store the manifest version is read meanwhile: the head note that is
        stored with the lease names its token."""
        if not self._manifest.tables.is_remote:
            self._recovery.end(sidecar)
            return

        def look() -> None:
            with suppress(OmnigraphError):
                self._manifest.current(sidecar.physical)

        both(partial(self._recovery.end, sidecar), look)

    def _publish(
        self, operation: Operation, publications: Sequence[Publication], lock: HeldLock
    ) -> tuple[CommitRecord, ...]:
        branch = operation.sidecar.physical
        if operation.before_publish is not None:
            operation.before_publish.hit(branch=branch)
        commits = publish_all(self._manifest, branch, publications, lock.check, operation.ahead)
        if operation.after_publish is not None:
            operation.after_publish.hit()
        return commits
