"""Apply a schema: all steps of a migration plan become visible in one publish, or none.

Main's lock is held throughout and main is the only branch, so no concurrent write is possible. Phase A
writes the sidecar, even if no table changes. Phase B creates and changes tables, then stages the new
schema files beside the accepted ones. Phase C publishes. Phase D moves the staged files into place and
deletes the sidecar. Recovery undoes a crash before all three files are staged, and completes a later one.

A hard drop then removes dropped data from storage, so that no earlier version can be read with it. What
fails there is left to optimize and cleanup.
Tests: tests/behaviour/test_schema_*.py, tests/crash.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from omnigraph.catalog.arrow import physical_schema
from omnigraph.catalog.compile import build_declared, check_reserved_names
from omnigraph.catalog.migrate import (
    MigrationPlan,
    carry_identities,
    plan_migration,
    refuse_unsupported,
)
from omnigraph.catalog.model import Catalog
from omnigraph.commit.background import optimize_draft, optimize_sidecar
from omnigraph.commit.keys import KeyedRequest
from omnigraph.diagnostics import counted
from omnigraph.errors import (
    BranchLocked,
    BrokenQuery,
    OmnigraphError,
    QueriesBroken,
    RecoveryPending,
    SchemaApplyBlocked,
    SchemaApplyRunning,
)
from omnigraph.faults import declare
from omnigraph.graph.parts import GraphParts
from omnigraph.history.commits import (
    Receipt,
    WriteResult,
    new_draft,
    nothing_done,
    receipt_of,
)
from omnigraph.language.syntax import Source
from omnigraph.maintenance.optimize import TableRewrite
from omnigraph.plan.lint import lint_queries
from omnigraph.progress import SILENT, Progress
from omnigraph.schema.tables import (
    FragmentRunner,
    SchemaWork,
    register_tables,
    schema_work,
    stage_tables,
)
from omnigraph.schema.validation import validate_rows
from omnigraph.spark.choice import AUTO, EngineChoice
from omnigraph.storage.cleanup import remove_versions, stored_versions
from omnigraph.storage.columns import fragments_with_dropped, rewrite_fragment
from omnigraph.storage.compact import commit_rewritten
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.table import Table
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.branch_names import MAIN
from omnigraph.versioning.branches import BranchRef
from omnigraph.versioning.commit_sequence import Operation, sidecar_of
from omnigraph.versioning.commits import CommitDraft, CommitId, CommitRecord, OperationKind
from omnigraph.versioning.contract import (
    SOURCE_FILE,
    SchemaContract,
    stage_schema,
    write_history,
)
from omnigraph.versioning.locks import HeldLock
from omnigraph.versioning.manifest import ManifestState
from omnigraph.versioning.publish import Publication
from omnigraph.versioning.recovery.act import table_version
from omnigraph.versioning.recovery.sidecar import DroppedTable, SchemaChange, WriterKind
from omnigraph.versioning.retention import RetainedVersions, find_retained
from omnigraph.versioning.snapshot import Snapshot, table_id
from omnigraph.versioning.tags import Tags

BEFORE_CREATE = declare("schema_apply.pre_table_create", "before each new table is made")
BEFORE_TABLE = declare("schema_apply.pre_table_commit", "before each table commit")
AFTER_TABLE = declare("schema_apply.post_table_commit", "after each table commit")
BEFORE_STAGING = declare("schema_apply.before_staging_write", "tables done, no file waits yet")
AFTER_STAGING = declare("schema_apply.after_staging_write", "files wait, nothing is published")
AFTER_PUBLISH = declare("schema_apply.after_manifest_commit", "published, files still wait")
BEFORE_REMOVAL = declare("schema_apply.before_removal", "before dropped data is removed")

OPERATION = "schema apply"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SchemaApplyOptions:
    """What a schema apply may do, and what its commit records."""

    request: KeyedRequest
    allow_data_loss: bool = False
    actor: str | None = None
    message: str | None = None
    expected_head: CommitId | None = None
    engine: EngineChoice = AUTO
    """Where tables are rewritten: in this process, or on Spark."""
    queries: tuple[Source, ...] = ()
    """Queries that must be valid under the desired schema."""
    progress: Progress = SILENT


@dataclass(frozen=True, slots=True, repr=False)
class SchemaApplyResult(WriteResult):
    """The applied steps; none if the schema was already accepted."""

    plan: MigrationPlan
    receipt: Receipt

    @property
    def applied(self) -> bool:
        return self.receipt.graph_commit_id is not None

    def __repr__(self) -> str:
        return self._repr_with(counted(len(self.plan.steps), "step"))

    def to_json(self) -> dict[str, Any]:
        steps = [step.to_json() for step in self.plan.steps]
        return {
            "supported": True,
            "applied": self.applied,
            "step_count": len(steps),
            "steps": steps,
            **self.receipt.to_json(),
        }


class SchemaApplication:
    """Changes the schema of one graph."""

    def __init__(self, parts: GraphParts) -> None:
        self._parts = parts
        self._tags = Tags(parts.objects)

    def plan(self, desired: Source, *, allow_data_loss: bool) -> MigrationPlan:
        """The steps from the accepted schema to the desired one. Reads no rows."""
        accepted, declared = self._parts.schemas.contract().ir, build_declared(desired)
        return plan_migration(accepted, declared, allow_data_loss=allow_data_loss)

    def apply(self, desired: Source, options: SchemaApplyOptions) -> SchemaApplyResult:
        """Make the desired schema the accepted one.

        Raises `UnsupportedMigration`, `QueriesBroken`, `SchemaViolated`, `SchemaApplyBlocked`,
        `SchemaApplyRunning` or `RecoveryPending`, and changes nothing then.
        """
        parts = self._parts
        with self._locked() as lock:
            recovered = parts.recovery.recover_locked(None, lock)
            if recovered.quarantined:
                raise RecoveryPending(OPERATION, [found.name for found in recovered.quarantined])
            earlier = options.request.earlier(parts.manifest, None)
            if earlier is not None:
                return self._replayed(earlier, desired, options)
            others = [ref.public for ref in parts.branches.list() if ref.physical is not None]
            if others:
                raise SchemaApplyBlocked(others)
            accepted, state = parts.schemas.contract(), parts.recovery.state(None)
            parts.manifest.require_head(state, options.expected_head)
            declared = build_declared(desired)
            plan = plan_migration(accepted.ir, declared, allow_data_loss=options.allow_data_loss)
            refuse_unsupported(plan, desired)
            if not plan.steps:
                return SchemaApplyResult(plan, nothing_done(state, _draft(accepted, options)))
            check_reserved_names(desired)
            ir = carry_identities(accepted.ir, declared, plan, self._columns_ever())
            target = SchemaContract.accept(desired.text, ir)
            _refuse_broken_queries(options.queries, target.catalog)
            snapshot = parts.snapshot_of(state)
            validate_rows(
                plan, accepted.catalog, target.catalog, snapshot, parts.tables, options.progress
            )
            work = schema_work(accepted.catalog, target.catalog)
            draft = options.request.on(_draft(target, options))
            each = FragmentRunner(parts.tables, options.engine, options.progress)
            commit = self._commit(accepted, target, state, snapshot, work, draft, each, lock)
            if options.allow_data_loss:
                self._remove_dropped(work, snapshot, draft, each, lock)
        return SchemaApplyResult(plan, receipt_of(commit, target.catalog))

    def restate(self, desired: Source) -> None:
        """Store another text of the accepted schema, which differs in comments or layout only.

        A text that means something else is left alone. No commit is made.
        """
        with self._locked():
            accepted = self._parts.schemas.contract()
            is_same = build_declared(desired).hash == accepted.hash
            if is_same and desired.text != accepted.source:
                self._parts.objects.write_text(SOURCE_FILE, desired.text)

    def _replayed(
        self, commit: CommitRecord, desired: Source, options: SchemaApplyOptions
    ) -> SchemaApplyResult:
        """The result of the call that made the commit."""
        before = self._parts.manifest.find_commit(None, commit.parent_commit_id or CommitId(""))
        assert before is not None, "the first commit never applies a schema"
        previous = self._parts.schemas.past(before.draft.schema_ref)
        declared, allowed = build_declared(desired), options.allow_data_loss
        plan = plan_migration(previous.ir, declared, allow_data_loss=allowed)
        catalog = self._parts.schemas.contract().catalog
        return SchemaApplyResult(plan, receipt_of(commit, catalog, replayed=True))

    @contextmanager
    def _locked(self) -> Iterator[HeldLock]:
        """Hold main's lock, without waiting for another schema apply."""
        with ExitStack() as stack:
            try:
                lock = stack.enter_context(self._parts.locks.hold(None, OPERATION, wait_ms=0))
            except BranchLocked as error:
                if error.holder == OPERATION:
                    raise SchemaApplyRunning() from error
                lock = stack.enter_context(self._parts.locks.hold(None, OPERATION))
            yield lock

    def _columns_ever(self) -> Mapping[int, set[str]]:
        """The columns that each type had under any committed schema."""
        found: dict[int, set[str]] = {}
        for reference in sorted({c.draft.schema_ref for c in self._parts.manifest.commits(None)}):
            for declared in self._parts.schemas.past(reference):
                columns = (prop.column for prop in declared.properties.values())
                found.setdefault(declared.type_id, set()).update(columns)
        return found

    def _commit(
        self,
        accepted: SchemaContract,
        target: SchemaContract,
        state: ManifestState,
        snapshot: Snapshot,
        work: SchemaWork,
        draft: CommitDraft,
        each: FragmentRunner,
        lock: HeldLock,
    ) -> CommitRecord:
        """Run phases A to D."""
        parts = self._parts
        added = register_tables(parts.tables, parts.objects, state, work.added)
        moved = stage_tables(parts.recovery, snapshot, work.changed, each)
        entries = [snapshot.entry(declared.table_key) for declared in work.dropped]

        def commit_tables() -> list[Publication]:
            versions = []
            for registration, declared in zip(added, work.added, strict=True):
                lock.check()
                BEFORE_CREATE.hit(table=declared.table_key)
                made = parts.tables.create(registration.location, physical_schema(declared))
                versions.append(table_version(registration.table_id, made))
            for table in moved:
                lock.check()
                BEFORE_TABLE.hit(table=table.entry.table_key)
                committed = table.commit(draft.operation_id)
                AFTER_TABLE.hit(table=table.entry.table_key)
                versions.append(table_version(table.entry.table_id, committed))
            BEFORE_STAGING.hit()
            lock.check()
            stage_schema(parts.objects, target)
            AFTER_STAGING.hit()
            publication = Publication(
                draft=draft,
                versions=tuple(versions),
                registrations=added,
                dropped=tuple(table_id(declared) for declared in work.dropped),
                changes_schema=True,
                expected={e.table_id: e.version_ref for e in snapshot.entries.values()},
                expected_head=state.head,
                begun_at=state.sequence,
            )
            return [publication]

        write_history(parts.objects, target.ir)
        dropped = tuple(DroppedTable(e.table_key, e.table_id, e.version) for e in entries)
        sidecar = sidecar_of(
            WriterKind.SCHEMA_APPLY,
            BranchRef(MAIN, None),
            state,
            draft,
            (table.sidecar_entry() for table in moved),
            schema=SchemaChange(accepted.hash, accepted.reference, added, dropped),
        )
        operation = Operation(sidecar, commit_tables, after_publish=AFTER_PUBLISH)
        return parts.sequence.run(operation, lock)[0]

    def _remove_dropped(
        self,
        work: SchemaWork,
        before: Snapshot,
        draft: CommitDraft,
        each: FragmentRunner,
        lock: HeldLock,
    ) -> None:
        """Remove dropped data. The change is published; leftovers wait for optimize and cleanup."""
        parts = self._parts
        try:
            BEFORE_REMOVAL.hit()
            _rewrite_without_dropped(parts, work, draft, each, lock)
            retained = find_retained(parts.manifest, parts.branches, self._tags.list())
            _remove_dropped(parts.tables, parts.objects, work, before, retained, lock)
        except OmnigraphError as error:
            _log.warning("removal of dropped data postponed: %s", error)


def _draft(target: SchemaContract, options: SchemaApplyOptions) -> CommitDraft:
    return new_draft(OperationKind.SCHEMA_APPLY, target, options.actor, options.message)


def _refuse_broken_queries(sources: Sequence[Source], catalog: Catalog) -> None:
    """Raise `QueriesBroken` with all queries that are not valid under a schema."""
    broken = [query for source in sources for query in _broken(source, catalog)]
    if broken:
        raise QueriesBroken(broken)


def _broken(source: Source, catalog: Catalog) -> Iterator[BrokenQuery]:
    report = lint_queries(source, catalog)
    for finding in report.findings:
        if finding.severity == "error" and finding.diagnostic is not None:
            yield BrokenQuery(None, finding.diagnostic)
    for result in report.results:
        if result.diagnostic is not None:
            yield BrokenQuery(result.name, result.diagnostic)


# -- hard drops -----------------------------------------------------------------------------


def _rewrite_without_dropped(
    parts: GraphParts, work: SchemaWork, applied: CommitDraft, each: FragmentRunner, lock: HeldLock
) -> None:
    """Rewrite tables that lost columns, so that their current files do not contain them."""
    lost = {table_id(change.declared) for change in work.changed if change.dropped}
    state = parts.recovery.state(None)
    snapshot = parts.snapshot_of(state)
    heads = {
        entry.table_key: parts.recovery.head_of(entry.location, entry.branch)
        for entry in snapshot.entries.values()
        if entry.table_id in lost
    }
    entries = [snapshot.entry(key) for key, head in heads.items() if fragments_with_dropped(head)]
    if not entries:
        return
    draft = optimize_draft(applied.schema_ir_hash, applied.schema_ref, applied.actor_id)
    sidecar = optimize_sidecar(BranchRef(MAIN, None), state, entries, draft)
    rewrite = TableRewrite(parts, sidecar, lock, partial(_without_dropped, each))
    rewrite.run(state, entries, heads)
    rewrite.extend_texts(snapshot.catalog)


def _without_dropped(each: FragmentRunner, key: str, table: Table) -> Table:
    numbers = fragments_with_dropped(table)
    return commit_rewritten(table, each.run(f"rewrite {key}", table, numbers, rewrite_fragment))


def _remove_dropped(
    tables: TableStore,
    objects: ObjectStore,
    work: SchemaWork,
    before: Snapshot,
    retained: RetainedVersions,
    lock: HeldLock,
) -> None:
    """Remove tables of dropped types, and all earlier versions of tables that lost columns.

    Tagged versions stay.
    """
    locations = {entry.table_id: entry.location for entry in before.entries.values()}
    for declared in work.dropped:
        if retained.versions.get(table_id(declared)):
            continue
        try:
            lock.check()
            tables.remove(locations[table_id(declared)], objects)
        except OmnigraphError as error:
            _log.warning("removal of %s postponed: %s", declared.table_key, error)
    for change in work.changed:
        if not change.dropped:
            continue
        kept = retained.versions.get(table_id(change.declared), {})
        try:
            lock.check()
            table = tables.open(locations[table_id(change.declared)])
            stored = [version.number for version in stored_versions(table)]
            remove_versions(table, [v for v in stored if v < table.version and v not in kept])
        except OmnigraphError as error:
            name = change.declared.table_key
            _log.warning("removal of earlier versions of %s postponed: %s", name, error)
