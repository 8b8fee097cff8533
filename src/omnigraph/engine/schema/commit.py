"""Phases A to D of a change of the schema, under the lock of main."""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.catalog.arrow import physical_schema
from omnigraph.engine.parts import GraphParts
from omnigraph.engine.schema.tables import MovedTable
from omnigraph.engine.schema.work import SchemaWork
from omnigraph.faults import declare
from omnigraph.versioning.branch_names import MAIN
from omnigraph.versioning.branches import BranchRef
from omnigraph.versioning.commit_sequence import Operation, sidecar_of
from omnigraph.versioning.commits import CommitDraft, CommitRecord
from omnigraph.versioning.contract import SchemaContract, stage_schema, write_history
from omnigraph.versioning.locks import HeldLock
from omnigraph.versioning.manifest import ManifestState
from omnigraph.versioning.publish import Publication
from omnigraph.versioning.recovery.act import table_version
from omnigraph.versioning.recovery.sidecar import DroppedTable, SchemaChange, WriterKind
from omnigraph.versioning.rows import TableRegistration
from omnigraph.versioning.snapshot import Snapshot, SnapshotEntry, table_id

BEFORE_CREATE = declare("schema_apply.pre_table_create", "before each new table is made")
BEFORE_TABLE = declare("schema_apply.pre_table_commit", "before each table commit")
AFTER_TABLE = declare("schema_apply.post_table_commit", "after each table commit")
BEFORE_STAGING = declare("schema_apply.before_staging_write", "tables done, no file waits yet")
AFTER_STAGING = declare("schema_apply.after_staging_write", "files wait, nothing is published")
AFTER_PUBLISH = declare("schema_apply.after_manifest_commit", "published, files still wait")


@dataclass(frozen=True, slots=True)
class SchemaCommit:
    """One change of the schema, ready to be made: tables staged, places chosen."""

    parts: GraphParts
    accepted: SchemaContract
    target: SchemaContract
    state: ManifestState
    snapshot: Snapshot
    work: SchemaWork
    added: tuple[TableRegistration, ...]
    moved: tuple[MovedTable, ...]
    draft: CommitDraft
    lock: HeldLock

    def run(self) -> CommitRecord:
        write_history(self.parts.objects, self.target.ir)
        dropped = tuple(
            DroppedTable(entry.table_key, entry.table_id, entry.version)
            for entry in self._dropped()
        )
        accepted = self.accepted
        sidecar = sidecar_of(
            WriterKind.SCHEMA_APPLY,
            BranchRef(MAIN, None),
            self.state,
            self.draft,
            (table.sidecar_entry() for table in self.moved),
            schema=SchemaChange(accepted.hash, accepted.reference, self.added, dropped),
        )
        operation = Operation(sidecar, self._commit_tables, after_publish=AFTER_PUBLISH)
        return self.parts.sequence.run(operation, self.lock)[0]

    def _dropped(self) -> list[SnapshotEntry]:
        return [self.snapshot.entry(declared.table_key) for declared in self.work.dropped]

    def _commit_tables(self) -> list[Publication]:
        versions = []
        for registration, declared in zip(self.added, self.work.added, strict=True):
            self.lock.check()
            BEFORE_CREATE.hit(table=declared.table_key)
            made = self.parts.tables.create(registration.location, physical_schema(declared))
            versions.append(table_version(registration.table_id, made))
        for moved in self.moved:
            self.lock.check()
            BEFORE_TABLE.hit(table=moved.entry.table_key)
            table = moved.commit(self.draft.operation_id)
            AFTER_TABLE.hit(table=moved.entry.table_key)
            versions.append(table_version(moved.entry.table_id, table))
        BEFORE_STAGING.hit()
        self.lock.check()
        stage_schema(self.parts.objects, self.target)
        AFTER_STAGING.hit()
        publication = Publication(
            draft=self.draft,
            versions=tuple(versions),
            registrations=self.added,
            dropped=tuple(table_id(declared) for declared in self.work.dropped),
            changes_schema=True,
            expected={e.table_id: e.version_ref for e in self.snapshot.entries.values()},
            expected_head=self.state.head,
            begun_at=self.state.sequence,
        )
        return [publication]
