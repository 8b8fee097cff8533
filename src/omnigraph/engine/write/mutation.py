"""Mutations: a prepared change, committed, or nothing at all when nothing would change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from omnigraph.embed.documents import DocumentVectors
from omnigraph.engine.parts import GraphParts
from omnigraph.engine.receipts import Receipt, nothing_done, receipt_of
from omnigraph.engine.write.change import Change
from omnigraph.engine.write.commit import Begun, TableWriter, WriteRequest
from omnigraph.engine.write.known_state import prepare_on_known
from omnigraph.engine.write.mutate import MutationIds, PreparedMutation, prepare_mutation
from omnigraph.errors import SchemaMoved
from omnigraph.plan.ir import InsertEdge, InsertNode, MutationPlan
from omnigraph.rows.blob_bases import BlobBases
from omnigraph.versioning.branches import BranchRef
from omnigraph.versioning.commits import CommitDraft, CommitId, OperationId, OperationKind
from omnigraph.versioning.contract import SchemaContract
from omnigraph.versioning.ids import new_ulid, now_micros
from omnigraph.versioning.recovery.sidecar import WriterKind
from omnigraph.versioning.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class MutationOptions:
    """What is recorded with a mutation, and the head it insists on."""

    actor: str | None = None
    message: str | None = None
    expected_head: CommitId | None = None


@dataclass(frozen=True, slots=True)
class MutationResult:
    """What a mutation did. Affected rows are summed over statements; the receipt has the net."""

    receipt: Receipt
    query_name: str
    branch: str
    affected_nodes: int
    affected_edges: int

    def to_json(self) -> dict[str, Any]:
        return {
            "branch": self.branch,
            "query_name": self.query_name,
            "affected_nodes": self.affected_nodes,
            "affected_edges": self.affected_edges,
            **self.receipt.to_json(),
        }


class Mutator:
    """Runs mutations on the branches of one graph."""

    def __init__(self, parts: GraphParts, writer: TableWriter) -> None:
        self._parts = parts
        self._writer = writer

    def mutate(
        self,
        plan: MutationPlan,
        parameters: Mapping[str, object],
        branch: BranchRef,
        contract: SchemaContract,
        options: MutationOptions,
        begun: Begun,
    ) -> MutationResult:
        """Prepare and commit. Raises `MutationError` or `AssignmentError`; nothing has changed."""
        ids, vectors, blobs = MutationIds(), DocumentVectors(), BlobBases.from_environment()
        prepared: PreparedMutation

        def prepare(snapshot: Snapshot) -> Change:
            nonlocal prepared
            if snapshot.catalog.ir != contract.catalog.ir:
                raise SchemaMoved()
            prepared = prepare_mutation(
                plan, parameters, snapshot, self._parts.tables, ids, vectors, blobs
            )
            return prepared.change

        # What an update or delete changes is what the caller knows; rows are added to the newest
        # state.
        base = self._parts.manifest.current(branch.physical) if _only_inserts(plan) else begun.base
        snapshot = self._parts.snapshot_of(base, contract)

        def newest() -> Snapshot:
            return self._parts.snapshot_of(self._parts.manifest.current(branch.physical))

        change = prepare_on_known(prepare, snapshot, newest)
        draft = _draft(contract, options, prepared)
        commit = None
        if change.writes or self._parts.manifest.current(branch.physical).head != base.head:
            request = WriteRequest(
                branch=branch,
                kind=WriterKind.MUTATION,
                draft=draft,
                change=change,
                prepare_again=prepare,
                expected_head=options.expected_head,
                quarantined=begun.quarantined,
                heals_first=begun.heals_first,
            )
            commit = self._writer.commit(request, snapshot)
        if commit is None:
            receipt = nothing_done(self._parts.manifest.current(branch.physical), draft)
        else:
            receipt = receipt_of(commit, contract.catalog)
        return MutationResult(
            receipt=receipt,
            query_name=plan.name,
            branch=branch.public,
            affected_nodes=prepared.affected_nodes,
            affected_edges=prepared.affected_edges,
        )


def _only_inserts(plan: MutationPlan) -> bool:
    return all(isinstance(statement, InsertNode | InsertEdge) for statement in plan.statements)


def _draft(
    contract: SchemaContract, options: MutationOptions, prepared: PreparedMutation
) -> CommitDraft:
    return CommitDraft(
        graph_commit_id=CommitId(new_ulid()),
        operation=OperationKind.MUTATE,
        operation_id=OperationId(new_ulid()),
        created_at=now_micros(),
        schema_ir_hash=contract.hash,
        schema_ref=contract.reference,
        actor_id=options.actor,
        message=options.message,
        warnings=prepared.warnings,
    )
