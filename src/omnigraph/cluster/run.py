"""One apply under the lock: sweeps, walks the stages of a plan, and writes the ledger once.

Graphs are created and migrated first, then the catalog is filled, and deletions come last. A sidecar is
written before a graph is touched. The first failure ends the work on graphs; what does not depend on it is
still applied. Tests: tests/cluster/test_apply.py, tests/cluster/test_kills.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from omnigraph.cluster import live
from omnigraph.cluster.documents import Change, Diagnostics
from omnigraph.cluster.ledger import (
    Approval,
    ApprovalRecord,
    Authority,
    DeploymentResult,
    GraphResult,
    Ledger,
    LedgerDraft,
    Outstanding,
    ResourceStatus,
    Sidecar,
    SidecarKind,
    Tombstone,
    now,
)
from omnigraph.cluster.plan import (
    NOT_APPLIED,
    ApplySchema,
    ClusterPlan,
    CreateGraph,
    DeleteGraph,
    Hindrances,
    Stage,
    WritePayload,
    make_plan,
)
from omnigraph.cluster.resources import Desired, Resource, read_again
from omnigraph.cluster.session import Session
from omnigraph.cluster.store import ClusterStore, StoredSidecar
from omnigraph.cluster.sweep import forget_graph, sweep
from omnigraph.errors import OmnigraphError, StorageError
from omnigraph.faults import declare
from omnigraph.versioning.ids import new_ulid

AFTER_SWEEP = declare(
    "cluster.after_sweep", "interrupted runs are recovered, nothing is changed yet"
)
AFTER_SIDECAR = declare("cluster.after_sidecar", "a sidecar is written, its graph is untouched")
AFTER_CREATE = declare("cluster.after_graph_create", "a graph is created, its sidecar is as before")
AFTER_SCHEMA = declare(
    "cluster.after_schema_apply", "a schema is applied, its sidecar is as before"
)
AFTER_NOTE = declare("cluster.after_sidecar_note", "the sidecar has the version of the graph")
AFTER_PAYLOAD = declare("cluster.after_payload", "one content is in the catalog")
AFTER_DELETE = declare("cluster.after_graph_delete", "a graph is removed, the ledger still has it")
AFTER_CLEANUP = declare("cluster.after_sidecar_removed", "one sidecar is removed")
AFTER_CONSUMED = declare("cluster.after_approvals", "used approvals are marked, the lock is held")


class Run:
    """One apply under the lock."""

    def __init__(
        self,
        session: Session,
        desired: Desired,
        actor: str | None,
        *,
        accepted: Outstanding | None = None,
    ) -> None:
        """`accepted` is the deployment that the ledger waits for; it needs no approvals."""
        self._session = session
        self._store: ClusterStore = session.store
        self._found = session.found
        self._desired = desired
        self._actor = actor
        self._draft = LedgerDraft(session.ledger)
        self._sidecars: list[StoredSidecar] = []
        self._hindrances = Hindrances()
        self._failed = False
        self._deleted: dict[str, DeleteGraph] = {}
        self._deleted_by: dict[str, str] = {}
        self.changes: tuple[Change, ...] = ()
        self.is_converged = False
        self.is_written = False
        self._accepted = accepted
        self.deployment_id = None if accepted is None else accepted.id
        self.result: DeploymentResult | None = None

    def run(self, announce: Callable[[str], None] = lambda deployment_id: None) -> None:
        """All steps. Raises `ClusterStop` when the ledger cannot be written."""
        swept = sweep(self._store, self._draft, self._found, self._actor)
        AFTER_SWEEP.hit()
        self._sidecars += swept.recovered
        self._hindrances = Hindrances(frozenset(swept.pending))
        approvals = self._store.approvals(self._found)
        made = self._plan(approvals)
        warn_stale(made, self._found)
        if made.changes and self._accepted is None:
            self._name_deployment(announce)
        self._walk([stage for stage in made.stages if isinstance(stage, CreateGraph | ApplySchema)])
        made = self._plan(approvals)
        self._warn_undone(made)
        if not self._write_payloads(made):
            self.changes = made.changes
            return
        self._walk([stage for stage in made.stages if isinstance(stage, DeleteGraph)])
        made = self._plan(approvals)
        self.changes = made.changes
        self._record(made, swept.pending)
        for stored in self._sidecars:
            self._store.remove_sidecar(stored, self._found)
            AFTER_CLEANUP.hit()
        records = self._session.ledger.approval_records
        self._store.consume_approvals(approvals, records, self._found)
        AFTER_CONSUMED.hit()

    def _plan(self, approvals: list[Approval]) -> ClusterPlan:
        """The plan against the ledger as it was read and recovered, with the failures so far."""
        return make_plan(
            self._desired,
            self._recovered,
            approvals,
            self._hindrances,
            needs_approvals=self._accepted is None,
        )

    @property
    def _recovered(self) -> Ledger:
        # The draft changes only after the last stage, so this is the ledger after the sweep.
        return self._draft.preview()

    def _name_deployment(self, announce: Callable[[str], None]) -> None:
        ledger_id = self._draft.ledger_id
        self.deployment_id = f"{ledger_id}:{self._session.ledger.next_sequence}:{new_ulid()}"
        announce(self.deployment_id)

    # -- stages -----------------------------------------------------------------------------

    def _walk(self, stages: list[Stage]) -> None:
        """Carry out stages that change graphs; after a failure the rest is skipped."""
        for stage in stages:
            if self._failed:
                self._skip(stage)
                continue
            match stage:
                case CreateGraph(graph_id):
                    self._create(graph_id)
                case ApplySchema(graph_id):
                    self._migrate(graph_id)
                case DeleteGraph():
                    self._delete(stage)
                case WritePayload():
                    raise AssertionError("the catalog has its own step")

    def _skip(self, stage: Stage) -> None:
        assert not isinstance(stage, WritePayload)
        code, hindered = {
            CreateGraph: ("graph_create_skipped", self._hindrances.creates),
            ApplySchema: ("schema_apply_skipped", self._hindrances.schemas),
            DeleteGraph: ("graph_delete_skipped", self._hindrances.deletes),
        }[type(stage)]
        hindered[stage.graph_id] = NOT_APPLIED
        message = "skipped, because another graph failed before"
        self._found.warning(code, f"graph.{stage.graph_id}", message)

    def _create(self, graph_id: str) -> None:
        stored = self._begin("graph_create", graph_id)
        schema = self._schema_text(graph_id)
        if schema is None:
            self._withdraw(stored)
            self._fail(self._hindrances.creates, graph_id, "resource_content_changed")
            return
        AFTER_SIDECAR.hit(graph=graph_id)
        try:
            version = live.create(self._store, graph_id, schema, self._actor)
        except OmnigraphError as error:
            self._found.error("graph_create_failed", f"graph.{graph_id}", str(error))
            self._fail(self._hindrances.creates, graph_id, "graph_create_failed")
            return
        AFTER_CREATE.hit(graph=graph_id)
        self._note(stored, version)

    def _migrate(self, graph_id: str) -> None:
        try:
            graph = live.open_for_change(self._store, graph_id, self._actor)
        except OmnigraphError as error:
            self._refuse_schema(graph_id, error)
            return
        with graph:
            stored = self._begin("schema_apply", graph_id, observed=graph.head().number)
            schema = self._schema_text(graph_id)
            if schema is None:
                self._withdraw(stored)
                self._fail(self._hindrances.schemas, graph_id, "resource_content_changed")
                return
            AFTER_SIDECAR.hit(graph=graph_id)
            try:
                version = live.migrate(graph, schema)
            except OmnigraphError as error:
                if live.was_rejected(error):
                    self._withdraw(stored)
                self._refuse_schema(graph_id, error)
                return
        AFTER_SCHEMA.hit(graph=graph_id)
        self._note(stored, version)

    def _refuse_schema(self, graph_id: str, error: OmnigraphError) -> None:
        self._found.error("schema_apply_failed", f"schema.{graph_id}", str(error))
        self._fail(self._hindrances.schemas, graph_id, "schema_apply_failed")

    def _delete(self, stage: DeleteGraph) -> None:
        graph_id = stage.graph_id
        approval_id = None if stage.approval is None else stage.approval.approval_id
        stored = self._begin("graph_delete", graph_id, approval_id=approval_id)
        AFTER_SIDECAR.hit(graph=graph_id)
        try:
            self._store.delete_graph(graph_id)
        except StorageError as error:
            self._found.error("graph_delete_failed", f"graph.{graph_id}", str(error))
            self._fail(self._hindrances.deletes, graph_id, "graph_delete_failed")
            return
        AFTER_DELETE.hit(graph=graph_id)
        self._sidecars.append(stored)
        self._deleted[graph_id] = stage
        self._deleted_by[graph_id] = stored.sidecar.operation_id

    def _write_payloads(self, made: ClusterPlan) -> bool:
        """Fill the catalog. False ends the run: a ledger must not name what is not there."""
        for stage in made.stages:
            if not isinstance(stage, WritePayload):
                continue
            resource = self._desired.resources[stage.address]
            text = self._text_again(resource)
            if text is None:
                return False
            try:
                self._store.write_payload(resource.address, resource.digest, text)
            except StorageError as error:
                self._found.error("resource_payload_write_error", resource.address, str(error))
                return False
            AFTER_PAYLOAD.hit(address=stage.address)
        return True

    def _text_again(self, resource: Resource) -> str | None:
        text = read_again(resource)
        if text is None:
            message = f"{resource.path} has changed since it was validated; run the command again"
            self._found.error("resource_content_changed", resource.address, message)
        return text

    def _schema_text(self, graph_id: str) -> str | None:
        return self._text_again(self._desired.resources[f"schema.{graph_id}"])

    # -- sidecars ---------------------------------------------------------------------------

    def _begin(
        self,
        kind: SidecarKind,
        graph_id: str,
        *,
        observed: int | None = None,
        approval_id: str | None = None,
    ) -> StoredSidecar:
        stored = self._session.stored
        return self._store.write_sidecar(
            Sidecar(
                operation_id=new_ulid(),
                started_at=now(),
                actor=self._actor,
                kind=kind,
                graph_id=graph_id,
                graph_uri=self._store.graph_uri(graph_id),
                observed_manifest_version=observed,
                desired_schema_digest=self._desired.schema_digest(graph_id),
                state_cas_base=None if stored is None else stored.cas,
                approval_id=approval_id,
            )
        )

    def _note(self, stored: StoredSidecar, version: int) -> None:
        noted = replace(stored.sidecar, expected_manifest_version=version)
        self._sidecars.append(self._store.write_sidecar(noted))
        AFTER_NOTE.hit(graph=noted.graph_id)

    def _withdraw(self, stored: StoredSidecar) -> None:
        self._store.remove_sidecar(stored, self._found)

    def _fail(self, hindered: dict[str, str], graph_id: str, reason: str) -> None:
        hindered[graph_id] = reason
        self._failed = True

    # -- ledger -----------------------------------------------------------------------------

    def _warn_undone(self, made: ClusterPlan) -> None:
        for change in made.changes:
            if change.disposition == "deferred":
                message = f"{change.operation} is left for later: {change.reason}"
                self._found.warning("apply_unsupported_change", change.resource, message)
            elif change.disposition == "blocked":
                message = f"{change.operation} is blocked: {change.reason}"
                self._found.warning("apply_dependency_blocked", change.resource, message)

    def _record(self, made: ClusterPlan, pending: set[str]) -> None:
        """Write the ledger, if anything of it has changed."""
        draft = self._draft
        recovering = {f"graph.{graph_id}" for graph_id in pending}
        changed = {change.resource for change in made.changes}
        for change in made.changes:
            self._record_change(change, recovering)
        for address in list(draft.statuses):
            status = draft.statuses[address].status
            if address in changed or address in recovering or status != "blocked":
                continue
            if address in draft.resources:
                draft.statuses[address] = ResourceStatus(status="applied")
            else:
                del draft.statuses[address]
        for graph_id, stage in self._deleted.items():
            self._record_deletion(graph_id, stage)
        draft.recompute_composites(self._desired.resources)
        self.is_converged = made.is_complete and not pending and self._found.ok
        if self.is_converged:
            draft.config_digest = self._desired.config_digest
        if not draft.is_changed and self._session.stored is not None and self._accepted is None:
            return
        if self.deployment_id is not None:
            self.result = self._result(made)
            draft.complete(self.result)
        self._session.stored = self._store.write_ledger(self._session.stored, draft.finish())
        self.is_written = True

    def _record_change(self, change: Change, recovering: set[str]) -> None:
        draft, address = self._draft, change.resource
        if change.disposition == "blocked":
            if address not in recovering:
                reason = change.reason or ""
                draft.statuses[address] = ResourceStatus(status="blocked", conditions=(reason,))
        elif change.disposition == "applied" and change.operation == "delete":
            draft.forget(address)
        elif change.disposition in ("applied", "derived"):
            draft.record(address, self._desired.resources[address].applied)

    def _record_deletion(self, graph_id: str, stage: DeleteGraph) -> None:
        forget_graph(self._draft, graph_id)
        at = now()
        approval_id = None if stage.approval is None else stage.approval.approval_id
        self._draft.observations[f"graph.{graph_id}"] = Tombstone(
            deleted_at=at, approval_id=approval_id, actor=self._actor
        )
        if approval_id is not None:
            self._draft.approvals[approval_id] = ApprovalRecord(
                consumed_at=at, consumed_by_operation=self._deleted_by[graph_id]
            )

    def _result(self, made: ClusterPlan) -> DeploymentResult:
        assert self.deployment_id is not None
        stored, revision = self._session.stored, self._draft.preview().applied_revision
        base = None if stored is None else stored.cas
        authority = Authority("storage_owner", self._actor)
        if self._accepted is not None:
            base, authority = self._accepted.base, self._accepted.authority
        return DeploymentResult(
            id=self.deployment_id,
            input_digest=self._desired.config_digest,
            authority=authority,
            base=base,
            result_revision=revision.result_revision,
            config_digest=revision.config_digest,
            graphs=graph_results(made.changes),
            converged=self.is_converged,
        )


def graph_results(changes: Sequence[Change]) -> dict[str, GraphResult]:
    """What a run does to graphs, by id."""
    graphs: dict[str, GraphResult] = {}
    for change in changes:
        if change.kind in ("graph", "schema", "query"):
            graphs[change.graph_id] = _graph_result(change, graphs.get(change.graph_id))
    return graphs


def _graph_result(change: Change, known: GraphResult | None) -> GraphResult:
    """What happened to a graph, from its changes in the order graph, query, schema."""
    if change.disposition in ("blocked", "deferred"):
        was_tried = change.reason in (
            "graph_create_failed",
            "schema_apply_failed",
            "graph_delete_failed",
        )
        return GraphResult("refused" if was_tried else "not_attempted")
    if known is not None and known.outcome != "query_only":
        return known
    if change.kind == "graph" and change.operation != "update":
        return GraphResult("created" if change.operation == "create" else "deleted")
    return GraphResult("schema" if change.kind == "schema" else "query_only")


def warn_stale(made: ClusterPlan, found: Diagnostics) -> None:
    """Warn of approvals that were given for another state."""
    for approval in made.stale_approvals:
        message = (
            f"approval {approval.approval_id} of {approval.approved_by} was given for another state; "
            f"run `cluster approve {approval.resource}` again"
        )
        found.warning("approval_stale", approval.resource, message)
