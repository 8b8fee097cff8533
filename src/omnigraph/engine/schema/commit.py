"""Phases A to D of a change of the schema, under the lock of main."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from omnigraph.catalog.arrow import physical_schema
from omnigraph.engine.schema.tables import MovedTable
from omnigraph.engine.schema.work import SchemaWork
from omnigraph.errors import CommitStateUnknown, OmnigraphError
from omnigraph.faults import InjectedFault, declare
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.commits import CommitDraft, CommitRecord
from omnigraph.versioning.contract import SchemaContract, write_history
from omnigraph.versioning.ids import process_identity
from omnigraph.versioning.locks import HeldLock
from omnigraph.versioning.manifest import Manifest, ManifestState
from omnigraph.versioning.publish import Publication, publish
from omnigraph.versioning.recovery.act import table_version
from omnigraph.versioning.recovery.heal import Recovery
from omnigraph.versioning.recovery.schema_change import DroppedTable, SchemaChange
from omnigraph.versioning.recovery.sidecar import Sidecar, WriterKind
from omnigraph.versioning.rows import TableRegistration
from omnigraph.versioning.schema_staging import stage_schema
from omnigraph.versioning.snapshot import Snapshot, SnapshotEntry, table_id

BEFORE_CREATE = declare("schema_apply.pre_table_create", "before each new table is made")
BEFORE_TABLE = declare("schema_apply.pre_table_commit", "before each table commit")
AFTER_TABLE = declare("schema_apply.post_table_commit", "after each table commit")
BEFORE_STAGING = declare("schema_apply.before_staging_write", "tables done, no file waits yet")
AFTER_STAGING = declare("schema_apply.after_staging_write", "files wait, nothing is published")
AFTER_PUBLISH = declare("schema_apply.after_manifest_commit", "published, files still wait")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SchemaCommit:
    """One change of the schema, ready to be made: tables staged, places chosen."""

    tables: TableStore
    objects: ObjectStore
    manifest: Manifest
    recovery: Recovery
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
        write_history(self.objects, self.target.ir)
        sidecar = self._sidecar()
        self.lock.check()
        self.recovery.begin(sidecar)
        try:
            publication = self._do_tables()
            BEFORE_STAGING.hit()
            self.lock.check()
            stage_schema(self.objects, self.target)
            AFTER_STAGING.hit()
            commit = publish(self.manifest, None, publication, self.lock.check)
        except (InjectedFault, CommitStateUnknown):
            raise
        except Exception as error:
            self.recovery.undo_own(sidecar, self.lock, error)
            raise
        AFTER_PUBLISH.hit()
        self._finish(sidecar)
        return commit

    def _sidecar(self) -> Sidecar:
        return Sidecar(
            owner=process_identity(),
            branch=None,
            physical=None,
            base_sequence=self.state.sequence,
            writer_kind=WriterKind.SCHEMA_APPLY,
            tables=tuple(table.pinned() for table in self.moved),
            draft=self.draft,
            schema=SchemaChange(
                previous_hash=self.accepted.hash,
                previous_ref=self.accepted.reference,
                added=self.added,
                dropped=tuple(
                    DroppedTable(entry.table_key, entry.table_id, entry.version)
                    for entry in self._dropped()
                ),
            ),
        )

    def _dropped(self) -> list[SnapshotEntry]:
        return [self.snapshot.entry(declared.table_key) for declared in self.work.dropped]

    def _do_tables(self) -> Publication:
        versions = []
        for registration, declared in zip(self.added, self.work.added, strict=True):
            self.lock.check()
            BEFORE_CREATE.hit(table=declared.table_key)
            made = self.tables.create(registration.location, physical_schema(declared))
            versions.append(table_version(registration.table_id, made))
        for moved in self.moved:
            self.lock.check()
            BEFORE_TABLE.hit(table=moved.entry.table_key)
            table = moved.commit(self.draft.operation_id)
            AFTER_TABLE.hit(table=moved.entry.table_key)
            versions.append(table_version(moved.entry.table_id, table))
        return Publication(
            draft=self.draft,
            versions=tuple(versions),
            registrations=self.added,
            dropped=tuple(table_id(declared) for declared in self.work.dropped),
            changes_schema=True,
            expected={e.table_id: e.pin for e in self.snapshot.entries.values()},
            expected_head=self.state.head,
            begun_at=self.state.sequence,
        )

    def _finish(self, sidecar: Sidecar) -> None:
        """Phase D. What cannot be done now is done by the next open or write."""
        try:
            self.recovery.actions.forget(sidecar)
        except InjectedFault:
            raise
        except OmnigraphError as error:
            _log.warning("schema files of %s still wait: %s", sidecar.operation_id, error)
