"""Applying a schema: all steps of a plan become visible in one publish, or none of them.

The lock of main is held from the plan to the end, and main is the only branch, so nothing can move
meanwhile. Phase A writes the sidecar, also when no table moves; B makes and changes tables, and then
puts the new schema files beside the accepted ones; C publishes; D puts the files in place and
removes the sidecar. A crash before all three files wait is undone, a later one is completed.
Tests: tests/behaviour/test_schema_*.py, tests/crash.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from omnigraph.catalog.build import build_declared, check_reserved_names
from omnigraph.catalog.migrate import (
    MigrationPlan,
    carry_identities,
    plan_migration,
    refuse_unsupported,
)
from omnigraph.diagnostics import counted
from omnigraph.engine.engines import AUTO, EngineChoice
from omnigraph.engine.parts import GraphParts
from omnigraph.engine.receipts import Receipt, WriteResult, nothing_done, receipt_of
from omnigraph.engine.schema.commit import SchemaCommit
from omnigraph.engine.schema.fragments import EachFragment
from omnigraph.engine.schema.hard_drop import remove_dropped, rewrite_without_dropped
from omnigraph.engine.schema.new_tables import new_tables
from omnigraph.engine.schema.queries import refuse_broken_queries
from omnigraph.engine.schema.tables import ready_tables
from omnigraph.engine.schema.work import schema_work
from omnigraph.engine.write.keys import KeyedRequest
from omnigraph.errors import (
    BranchLocked,
    OmnigraphError,
    RecoveryPending,
    SchemaApplyBlocked,
    SchemaApplyRunning,
)
from omnigraph.faults import declare
from omnigraph.language.span import Source
from omnigraph.progress import SILENT, Progress
from omnigraph.versioning.commits import (
    CommitDraft,
    CommitId,
    CommitRecord,
    OperationId,
    OperationKind,
)
from omnigraph.versioning.contract import SchemaContract
from omnigraph.versioning.ids import new_ulid, now_micros
from omnigraph.versioning.locks import HeldLock
from omnigraph.versioning.retention import find_retained
from omnigraph.versioning.tags import Tags

BEFORE_REMOVAL = declare("schema_apply.before_removal", "before dropped data is removed")

OPERATION = "schema apply"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SchemaApplyOptions:
    """What is recorded with a change of the schema, and what it may do."""

    request: KeyedRequest
    allow_data_loss: bool = False
    actor: str | None = None
    message: str | None = None
    expected_head: CommitId | None = None
    engine: EngineChoice = AUTO
    """Where tables are written anew: here, or as Spark tasks."""
    queries: tuple[Source, ...] = ()
    """Queries that have to fit the desired schema."""
    progress: Progress = SILENT


@dataclass(frozen=True, slots=True, repr=False)
class SchemaApplyResult(WriteResult):
    """The steps that were made; none when the schema was the accepted one already."""

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
        """The steps from the accepted schema to the desired one. Looks at no rows."""
        accepted, declared = self._parts.schemas.contract().ir, build_declared(desired)
        return plan_migration(accepted, declared, allow_data_loss=allow_data_loss)

    def apply(self, desired: Source, options: SchemaApplyOptions) -> SchemaApplyResult:
        """Make the desired schema the accepted one.

        Raises `UnsupportedMigration`, `QueriesBroken`, `SchemaApplyBlocked`, `SchemaApplyRunning`
        or `RecoveryPending`; nothing has changed then.
        """
        with self._locked() as lock:
            recovered = self._parts.recovery.recover_locked(None, lock)
            if recovered.quarantined:
                raise RecoveryPending(OPERATION, [found.name for found in recovered.quarantined])
            earlier = options.request.earlier(self._parts.manifest, None)
            if earlier is not None:
                return self._replayed(earlier, desired, options)
            others = [ref.public for ref in self._parts.branches.list() if ref.physical is not None]
            if others:
                raise SchemaApplyBlocked(others)
            accepted = self._parts.schemas.contract()
            state = self._parts.recovery.state(None)
            self._parts.manifest.require_head(state, options.expected_head)
            declared = build_declared(desired)
            plan = plan_migration(accepted.ir, declared, allow_data_loss=options.allow_data_loss)
            refuse_unsupported(plan, desired)
            if not plan.steps:
                return SchemaApplyResult(plan, nothing_done(state, _draft(accepted, options)))
            check_reserved_names(desired)
            ir = carry_identities(accepted.ir, declared, plan, self._columns_ever())
            target = SchemaContract.accept(desired.text, ir)
            refuse_broken_queries(options.queries, target.catalog)
            change = self._change(accepted, target, options, lock)
            commit = change.run()
            if options.allow_data_loss:
                self._remove_dropped(change, options, lock)
        return SchemaApplyResult(plan, receipt_of(commit, change.target.catalog))

    def _replayed(
        self, commit: CommitRecord, desired: Source, options: SchemaApplyOptions
    ) -> SchemaApplyResult:
        """The result of the call that made the commit."""
        before = self._parts.manifest.find_commit(None, commit.parent_commit_id or CommitId(""))
        assert before is not None, "a schema is never applied by the first commit"
        previous = self._parts.schemas.past(before.draft.schema_ref)
        declared, allowed = build_declared(desired), options.allow_data_loss
        plan = plan_migration(previous.ir, declared, allow_data_loss=allowed)
        catalog = self._parts.schemas.contract().catalog
        return SchemaApplyResult(plan, receipt_of(commit, catalog, replayed=True))

    def _remove_dropped(
        self, change: SchemaCommit, options: SchemaApplyOptions, lock: HeldLock
    ) -> None:
        """The change is made; what cannot be removed now is left for `optimize` and `cleanup`."""
        try:
            BEFORE_REMOVAL.hit()
            each = self._each(options)
            rewrite_without_dropped(self._parts, change.work, change.draft, each, lock)
            needed = find_retained(self._parts.manifest, self._parts.branches, self._tags.list())
            work, before = change.work, change.snapshot
            remove_dropped(self._parts.tables, self._parts.objects, work, before, needed, lock)
        except OmnigraphError as error:
            _log.warning("dropped data stays stored for now: %s", error)

    @contextmanager
    def _locked(self) -> Iterator[HeldLock]:
        """The lock of main; another change of the schema is not waited for."""
        with ExitStack() as stack:
            try:
                lock = stack.enter_context(self._parts.locks.hold(None, OPERATION, wait_ms=0))
            except BranchLocked as error:
                if error.holder == OPERATION:
                    raise SchemaApplyRunning() from error
                lock = stack.enter_context(self._parts.locks.hold(None, OPERATION))
            yield lock

    def _columns_ever(self) -> Mapping[int, set[str]]:
        """The columns each type has had under any schema that something was committed under."""
        found: dict[int, set[str]] = {}
        for reference in sorted({c.draft.schema_ref for c in self._parts.manifest.commits(None)}):
            for declared in self._parts.schemas.past(reference):
                columns = (prop.column for prop in declared.properties.values())
                found.setdefault(declared.type_id, set()).update(columns)
        return found

    def _change(
        self,
        accepted: SchemaContract,
        target: SchemaContract,
        options: SchemaApplyOptions,
        lock: HeldLock,
    ) -> SchemaCommit:
        state = self._parts.recovery.state(None)
        snapshot = self._parts.snapshot_of(state)
        work = schema_work(accepted.catalog, target.catalog)
        return SchemaCommit(
            parts=self._parts,
            accepted=accepted,
            target=target,
            state=state,
            snapshot=snapshot,
            work=work,
            added=new_tables(self._parts.tables, self._parts.objects, state, work.added),
            moved=ready_tables(self._parts.recovery, snapshot, work.changed, self._each(options)),
            draft=options.request.on(_draft(target, options)),
            lock=lock,
        )

    def _each(self, options: SchemaApplyOptions) -> EachFragment:
        return EachFragment(self._parts.tables, options.engine, options.progress)


def _draft(target: SchemaContract, options: SchemaApplyOptions) -> CommitDraft:
    return CommitDraft(
        graph_commit_id=CommitId(new_ulid()),
        operation=OperationKind.SCHEMA_APPLY,
        operation_id=OperationId(new_ulid()),
        created_at=now_micros(),
        schema_ir_hash=target.hash,
        schema_ref=target.reference,
        actor_id=options.actor,
        message=options.message,
    )
