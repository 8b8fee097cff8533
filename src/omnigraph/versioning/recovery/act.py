"""Carry out a recovery decision: finish or undo an operation, and record it in one publish.

Every function is called under the branch's lock. The sidecar is deleted last, so after a crash
in this module the next recovery starts over.
Tests: tests/crash.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from omnigraph.errors import ManifestDamaged, OperationFenced
from omnigraph.faults import declare
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.stage import commit_staged, stage_restore
from omnigraph.storage.table import Table
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.ancestry import merged_commits
from omnigraph.versioning.audit import (
    RECOVERY_ACTOR,
    RecoveryAudit,
    RecoveryKind,
    TableOutcome,
)
from omnigraph.versioning.commits import (
    CommitDraft,
    CommitId,
    CommitRecord,
    OperationId,
    OperationKind,
    TableId,
)
from omnigraph.versioning.contract import StagedSchema, has_staging, place_staged_files
from omnigraph.versioning.ids import new_ulid, now_micros
from omnigraph.versioning.manifest import Manifest
from omnigraph.versioning.publish import Publication, publish
from omnigraph.versioning.recovery.classify import Finding
from omnigraph.versioning.recovery.sidecar import SchemaChange, Sidecar, Sidecars, SidecarTable
from omnigraph.versioning.rows import TableVersion, VersionRef

BEFORE_PUBLISH = declare("recovery.before_publish", "before a recovery is published")
AFTER_RESTORE = declare("recovery.post_table_restore_pre_publish", "after each restored table")

_RESTORE_KIND = "Recovery"


@dataclass(frozen=True, slots=True)
class LateTable:
    """A table that a writer moved after its operation had been recovered."""

    table_key: str
    table_id: TableId
    table: Table
    version_ref: VersionRef
    operations: Sequence[tuple[int, OperationId]]


class Actions:
    """The recovery actions on one graph."""

    def __init__(
        self, tables: TableStore, objects: ObjectStore, manifest: Manifest, sidecars: Sidecars
    ) -> None:
        self._tables = tables
        self._objects = objects
        self._manifest = manifest
        self._sidecars = sidecars

    def roll_forward(
        self, sidecar: Sidecar, findings: Sequence[Finding], check_lock: Callable[[], None]
    ) -> None:
        """Publish what the operation wrote, as it would have done itself."""
        versions = []
        for finding in findings:
            recorded = finding.table
            table = self._tables.open(recorded.location, recorded.branch, finding.own_head)
            versions.append(table_version(recorded.table_id, table))
        draft = replace(
            sidecar.draft,
            operation=OperationKind.RECOVERY,
            actor_id=RECOVERY_ACTOR,
            created_at=now_micros(),
        )
        outcomes = tuple(_outcome(f, f.published, f.own_head) for f in findings)
        publication = Publication(
            draft=draft,
            versions=tuple(versions),
            expected={f.table.table_id: f.table.before for f in findings},
            outcome="rolled_forward",
            audit=_audit(RecoveryKind.ROLLED_FORWARD, sidecar, outcomes),
        )
        if sidecar.schema is not None:
            publication = self._with_schema(publication, sidecar.schema)
        if sidecar.draft.merged_parent_commit_id is not None:
            publication = self._with_merge(
                publication, sidecar, sidecar.draft.merged_parent_commit_id
            )
        self._resolve(sidecar, publication, check_lock)

    def _with_schema(self, publication: Publication, schema: SchemaChange) -> Publication:
        """Tables that come with a schema have been made, as nothing is staged before that."""
        added = [table_version(t.table_id, self._tables.open(t.location)) for t in schema.added]
        return replace(
            publication,
            versions=(*publication.versions, *added),
            registrations=schema.added,
            dropped=tuple(table.table_id for table in schema.dropped),
            changes_schema=True,
        )

    def _with_merge(
        self, publication: Publication, sidecar: Sidecar, merged: CommitId
    ) -> Publication:
        """What a merge publishes besides the tables it has written."""
        adopted = [
            table_version(p.table_id, self._tables.open(p.location, None, p.version))
            for p in sidecar.pointers
        ]
        before = {pointer.table_id: pointer.before for pointer in sidecar.pointers}
        return replace(
            publication,
            versions=(*publication.versions, *adopted),
            expected={**publication.expected, **before},
            ancestors=merged_commits(self._manifest, sidecar.physical, merged),
        )

    def roll_back(
        self, sidecar: Sidecar, findings: Sequence[Finding], check_lock: Callable[[], None]
    ) -> None:
        """Restore every table to its published content, and publish that."""
        versions: list[TableVersion] = []
        expected: dict[TableId, VersionRef] = {}
        outcomes: list[TableOutcome] = []
        for finding in findings:
            recorded = finding.table
            if recorded.forks:
                # The line exists for this operation only; the graph still reads the one before it.
                check_lock()
                self._remove_fork(recorded)
            elif finding.has_moved:
                restored = self._restore(
                    recorded.location,
                    recorded.branch,
                    finding.published,
                    sidecar.operation_id,
                    check_lock,
                )
                versions.append(table_version(recorded.table_id, restored))
                expected[recorded.table_id] = VersionRef(finding.published, recorded.branch)
            if finding.has_moved:
                outcomes.append(_outcome(finding, finding.head, finding.published))
        publication = Publication(
            draft=_recovery_draft(sidecar.undone),
            versions=tuple(versions),
            expected=expected,
            outcome="rolled_back",
            audit=_audit(RecoveryKind.ROLLED_BACK, sidecar, tuple(outcomes)),
        )
        self._resolve(sidecar, publication, check_lock)

    def discard(
        self, sidecar: Sidecar, findings: Sequence[Finding], check_lock: Callable[[], None]
    ) -> None:
        """Fence an operation that has done nothing yet: its writer may only be slow."""
        for finding in findings:
            if finding.table.forks:
                check_lock()
                self._remove_fork(finding.table)
        publication = Publication(
            draft=_recovery_draft(sidecar.undone),
            outcome="discarded",
            audit=_audit(RecoveryKind.ROLLED_BACK, sidecar, ()),
        )
        self._resolve(sidecar, publication, check_lock)

    def discard_orphan(self, sidecar: Sidecar, check_lock: Callable[[], None]) -> None:
        """The branch of the operation is gone, and its tables with it. Recorded on main."""
        publication = Publication(
            draft=_recovery_draft(sidecar.undone),
            outcome="discarded",
            audit=_audit(RecoveryKind.ORPHANED_BRANCH_DISCARDED, sidecar, ()),
        )
        self._resolve(replace(sidecar, physical=None), publication, check_lock)

    def discard_late(
        self,
        branch: str | None,
        late: LateTable,
        draft: CommitDraft,
        check_lock: Callable[[], None],
    ) -> CommitRecord:
        """Undo what a writer did to a table after its operation had been recovered.

        The restore carries the id of that operation: interrupted here, it looks just as late.
        """
        version, operation_id = late.operations[-1]
        restored = self._restore(
            late.table.path, late.table.branch, late.version_ref.version, operation_id, check_lock
        )
        outcome = TableOutcome(late.table_key, late.table_id, version, late.version_ref.version)
        record = late.table.record(version)
        publication = Publication(
            draft=_recovery_draft(draft, operation_id=OperationId(new_ulid())),
            versions=(table_version(late.table_id, restored),),
            expected={late.table_id: late.version_ref},
            audit=RecoveryAudit(
                RecoveryKind.LATE_COMMIT_DISCARDED,
                None,
                operation_id,
                record.writer_kind or "",
                (outcome,),
                now_micros(),
                late_version=version,
            ),
        )
        BEFORE_PUBLISH.hit(branch=branch)
        return publish(self._manifest, branch, publication, check_lock)

    def _resolve(
        self, sidecar: Sidecar, publication: Publication, check_lock: Callable[[], None]
    ) -> None:
        BEFORE_PUBLISH.hit(branch=sidecar.physical)
        # Fenced: another process has recovered it meanwhile, and the manifest records that.
        with suppress(OperationFenced):
            publish(self._manifest, sidecar.physical, publication, check_lock)
        self.forget(sidecar)

    def forget(self, sidecar: Sidecar) -> None:
        """Remove a sidecar whose operation is resolved; schema files follow the newest commit."""
        if sidecar.schema is not None:
            self.place_schema_files()
        self._sidecars.delete(sidecar.name)

    def place_schema_files(self) -> None:
        """Put staged schema files in place, or delete them, as the newest commit of main requires."""
        if not has_staging(self._objects):
            return
        head = self._manifest.current(None).head
        commit = self._manifest.find_commit(None, head)
        if commit is None:
            raise ManifestDamaged(f"the newest commit {head} is missing")
        target = StagedSchema(commit.draft.schema_ir_hash, commit.draft.schema_ref)
        place_staged_files(self._objects, target)

    def _restore(
        self,
        location: str,
        branch: str | None,
        version: int,
        operation_id: OperationId,
        check_lock: Callable[[], None],
    ) -> Table:
        table = self._tables.open(location, branch)
        staged = stage_restore(table, version)
        check_lock()
        restored = commit_staged(
            table, staged, operation_id=operation_id, writer_kind=_RESTORE_KIND
        )
        AFTER_RESTORE.hit(location=location)
        return restored

    def _remove_fork(self, recorded: SidecarTable) -> None:
        """Remove a fork that an operation has made, unless a later one has published it."""
        assert recorded.branch is not None, "main is never forked"
        named = self._manifest.current(recorded.branch).tables.get(recorded.table_id)
        if named is None or named.branch != recorded.branch:
            self._tables.reclaim_branch(recorded.location, recorded.branch, self._objects)


def table_version(table_id: TableId, table: Table) -> TableVersion:
    """A table as a publish names it."""
    return TableVersion(
        table_id=table_id,
        version=table.version,
        branch=table.branch,
        row_count=table.row_count(),
        info=table.version_info().to_json(),
    )


def _recovery_draft(draft: CommitDraft, operation_id: OperationId | None = None) -> CommitDraft:
    """A commit in the name of recovery that changes nothing a user could see."""
    return CommitDraft(
        graph_commit_id=CommitId(new_ulid()),
        operation=OperationKind.RECOVERY,
        operation_id=operation_id or draft.operation_id,
        created_at=now_micros(),
        schema_ir_hash=draft.schema_ir_hash,
        schema_ref=draft.schema_ref,
        actor_id=RECOVERY_ACTOR,
    )


def _outcome(finding: Finding, from_version: int, to_version: int) -> TableOutcome:
    recorded = finding.table
    return TableOutcome(recorded.table_key, recorded.table_id, from_version, to_version)


def _audit(
    kind: RecoveryKind, sidecar: Sidecar, outcomes: tuple[TableOutcome, ...]
) -> RecoveryAudit:
    return RecoveryAudit(
        kind=kind,
        operation_id=sidecar.operation_id,
        for_actor=sidecar.draft.actor_id,
        writer_kind=sidecar.writer_kind.value,
        outcomes=outcomes,
        created_at=now_micros(),
    )
