"""Recovers what interrupted runs left: compares each sidecar with the live graph and the ledger.

Only forward: a finished operation is recorded in the ledger, an operation that did nothing is forgotten, and
everything else stays for an operator. Nothing of a graph is deleted here. Sidecars that are recovered are removed by
the caller, after it has written the ledger. Tests: tests/cluster/test_sweep.py, tests/cluster/test_kills.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from omnigraph.cluster.documents import Diagnostics
from omnigraph.cluster.ledger import (
    AppliedResource,
    ApprovalRecord,
    LedgerDraft,
    RecoveryRecord,
    ResourceStatus,
    Sidecar,
    Tombstone,
    now,
)
from omnigraph.cluster.live import LiveGraph, look_at
from omnigraph.cluster.plan import PENDING
from omnigraph.cluster.store import ClusterStore, StoredSidecar


@dataclass(slots=True)
class SweepResult:
    """Graphs whose sidecar stays, and sidecars to remove once the ledger is written."""

    pending: set[str] = field(default_factory=set)
    recovered: list[StoredSidecar] = field(default_factory=list)


def sweep(
    store: ClusterStore, draft: LedgerDraft, found: Diagnostics, actor: str | None
) -> SweepResult:
    """Recover all sidecars in a draft of the ledger."""
    result = SweepResult()
    for stored in store.sidecars(found):
        if _SidecarRecovery(store, draft, found, actor, stored.sidecar).recover():
            result.recovered.append(stored)
        else:
            result.pending.add(stored.sidecar.graph_id)
    return result


def forget_graph(draft: LedgerDraft, graph_id: str) -> None:
    """Take a graph with its schema and queries out of a ledger."""
    subtree = (f"graph.{graph_id}", f"schema.{graph_id}")
    for address in {*draft.resources, *draft.statuses}:
        if address in subtree or address.startswith(f"query.{graph_id}."):
            draft.forget(address)


class _SidecarRecovery:
    """One sidecar. `recover` answers whether it can be removed."""

    def __init__(
        self,
        store: ClusterStore,
        draft: LedgerDraft,
        found: Diagnostics,
        actor: str | None,
        sidecar: Sidecar,
    ) -> None:
        self._store = store
        self._draft = draft
        self._found = found
        self._actor = actor
        self._sidecar = sidecar
        self._address = f"graph.{sidecar.graph_id}"

    def recover(self) -> bool:
        match self._sidecar.kind:
            case "graph_create":
                return self._created()
            case "schema_apply":
                return self._migrated()
            case "graph_delete":
                return self._deleted()

    def _created(self) -> bool:
        live = look_at(self._store, self._sidecar.graph_id, recover=True)
        if not live.exists:
            return True
        if not live.opens:
            message = (
                f"creating the graph was interrupted, and {self._sidecar.graph_uri} does not open "
                f"({live.error}); remove it, then run `cluster apply` again"
            )
            self._mark("error", "graph_create_incomplete", message)
            self._found.error("graph_create_incomplete", self._address, message)
            return False
        return self._compare(live)

    def _migrated(self) -> bool:
        live = look_at(self._store, self._sidecar.graph_id, recover=True)
        if live.opens:
            return self._compare(live)
        reason = live.error or "it is missing"
        message = f"changing the schema was interrupted, and the graph does not open: {reason}"
        self._found.warning(PENDING, self._address, message)
        return False

    def _compare(self, live: LiveGraph) -> bool:
        """Recover by the schema that a graph has now."""
        schema = self._draft.resources.get(f"schema.{self._sidecar.graph_id}")
        if schema is not None and schema.digest == live.schema_digest:
            return True
        if live.schema_digest == self._sidecar.desired_schema_digest:
            self._roll_forward(live)
            return True
        message = "an interrupted operation left a schema that is neither the old nor the new one"
        self._mark("drifted", "actual_applied_state_pending", message)
        self._found.warning(
            PENDING, self._address, f"{message}; run `cluster refresh`, then `cluster apply`"
        )
        return False

    def _deleted(self) -> bool:
        sidecar = self._sidecar
        if self._store.has_graph(sidecar.graph_id):
            message = "deleting the graph was interrupted; the approval still allows it"
            self._found.warning("graph_delete_incomplete", self._address, message)
            return True
        if self._address not in self._draft.resources:
            return True
        forget_graph(self._draft, sidecar.graph_id)
        self._draft.observations[self._address] = Tombstone(
            deleted_at=now(), approval_id=sidecar.approval_id, actor=sidecar.actor
        )
        if sidecar.approval_id is not None:
            self._draft.approvals[sidecar.approval_id] = ApprovalRecord(
                consumed_at=now(), consumed_by_operation=sidecar.operation_id
            )
        self._note_recovery("the graph is deleted")
        return True

    def _roll_forward(self, live: LiveGraph) -> None:
        graph_id, draft = self._sidecar.graph_id, self._draft
        assert live.schema_digest is not None
        draft.record(f"schema.{graph_id}", AppliedResource(digest=live.schema_digest))
        draft.record(
            self._address, draft.resources.get(self._address) or AppliedResource(digest="")
        )
        draft.recompute_composites({self._address: None})
        self._note_recovery("its effect is recorded now")

    def _note_recovery(self, what: str) -> None:
        sidecar = self._sidecar
        self._draft.recoveries[sidecar.operation_id] = RecoveryRecord(
            kind=sidecar.kind, graph_id=sidecar.graph_id, recovered_at=now(), actor=self._actor
        )
        message = f"an interrupted {sidecar.kind} had finished; {what}"
        self._found.warning("cluster_recovery_rolled_forward", self._address, message)

    def _mark(self, status: str, condition: str, message: str) -> None:
        self._draft.statuses[self._address] = ResourceStatus(
            status="error" if status == "error" else "drifted",
            conditions=(condition,),
            message=message,
        )
