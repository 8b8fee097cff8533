"""Mutations: a prepared change, committed, or nothing at all when nothing would change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, assert_never

from omnigraph.catalog.model import Catalog
from omnigraph.commit.change import Change, prepare_on_newest
from omnigraph.commit.keys import KeyedRequest
from omnigraph.commit.writer import AlreadyWritten, TableWriter, WriteRequest
from omnigraph.diagnostics import counted
from omnigraph.errors import ConstraintError, OmnigraphError, SchemaMoved
from omnigraph.graph.parts import GraphParts
from omnigraph.graph.schema_cache import KnownSchema
from omnigraph.history.commits import Receipt, WriteResult, nothing_done, receipt_of
from omnigraph.mutation import MutationIds, PreparedMutation, prepare_mutation
from omnigraph.mutation.match_reader import MatchReader
from omnigraph.mutation.returned import Returned
from omnigraph.plan.changes import (
    Action,
    DeleteEdges,
    DeleteMatched,
    DeleteNodes,
    InsertEdge,
    InsertNode,
    MatchChange,
    MutationPlan,
    PlainStatement,
    UpdateEdges,
    UpdateMatched,
    UpdateNodes,
    Upsert,
)
from omnigraph.providers.documents import DocumentVectors
from omnigraph.rows.blob_bases import BlobBases
from omnigraph.versioning.branch_names import public_name
from omnigraph.versioning.branches import BranchRef
from omnigraph.versioning.commits import (
    CommitDraft,
    CommitId,
    CommitRecord,
    OperationId,
    OperationKind,
)
from omnigraph.versioning.contract import SchemaContract
from omnigraph.versioning.ids import new_ulid, now_micros
from omnigraph.versioning.manifest import ManifestState
from omnigraph.versioning.recovery.sidecar import Quarantined, WriterKind
from omnigraph.versioning.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class MutationOptions:
    """What is recorded with a mutation, and the head it insists on."""

    request: KeyedRequest
    actor: str | None = None
    message: str | None = None
    expected_head: CommitId | None = None


@dataclass(frozen=True, slots=True, repr=False)
class MutationResult(WriteResult):
    """What a mutation did. Affected rows are summed over statements; the receipt has the net."""

    receipt: Receipt
    query_name: str
    branch: str
    affected_nodes: int
    affected_edges: int
    returned: tuple[Returned, ...] = ()
    """What the statements with a `return` wrote. A repeated call with a key does not have it."""

    def __repr__(self) -> str:
        nodes, edges = counted(self.affected_nodes, "node"), counted(self.affected_edges, "edge")
        return self._repr_with(f"{self.query_name}, {nodes} and {edges} affected")

    def to_json(self) -> dict[str, Any]:
        document: dict[str, Any] = {
            "branch": self.branch,
            "query_name": self.query_name,
            "affected_nodes": self.affected_nodes,
            "affected_edges": self.affected_edges,
            **self.receipt.to_json(),
        }
        if self.returned:
            document["returned"] = [found.to_json() for found in self.returned]
        return document


class Mutator:
    """Runs mutations on the branches of one graph."""

    def __init__(
        self, parts: GraphParts, writer: TableWriter, matches: MatchReader | None = None
    ) -> None:
        self._parts = parts
        self._writer = writer
        self._matches = matches

    def mutate(
        self,
        plan: MutationPlan,
        parameters: Mapping[str, object],
        branch: BranchRef,
        contract: SchemaContract,
        options: MutationOptions,
        quarantined: tuple[Quarantined, ...],
    ) -> MutationResult:
        """Prepare and commit. Raises `MutationError` or `AssignmentError`; nothing has changed.

        If the branch moves meanwhile, the mutation is prepared again with the ids, the time and the
        vectors it had at first.
        """
        manifest = self._parts.manifest
        earlier = options.request.earlier(manifest, branch.physical)
        if earlier is not None:
            return _replayed(earlier, plan, contract)
        if options.expected_head is not None:
            manifest.require_head(manifest.current(branch.physical), options.expected_head)
        done = self._mutate(plan, parameters, branch, contract, options, quarantined)
        assert done is not None, "it was prepared on the newest state"
        return done

    def mutate_known(
        self,
        plan: MutationPlan,
        parameters: Mapping[str, object],
        branch: BranchRef,
        known: KnownSchema,
        options: MutationOptions,
    ) -> MutationResult | None:
        """The same on the state of a branch that is known, without asking whether it is the newest.

        None if that has to be known: the mutation fails on this state, or has nothing to do there.
        What succeeds is compared with the newest state under the lock, as for any mutation.
        """
        contract, state = known.contract, known.state
        try:
            return self._mutate(plan, parameters, branch, contract, options, (), state)
        except SchemaMoved:
            return None

    def _mutate(
        self,
        plan: MutationPlan,
        parameters: Mapping[str, object],
        branch: BranchRef,
        contract: SchemaContract,
        options: MutationOptions,
        quarantined: tuple[Quarantined, ...],
        known: ManifestState | None = None,
    ) -> MutationResult | None:
        manifest, request = self._parts.manifest, options.request
        ids, vectors, blobs = MutationIds(), DocumentVectors(), BlobBases.from_environment()
        prepared: PreparedMutation

        def prepare(snapshot: Snapshot) -> Change:
            nonlocal prepared
            if snapshot.catalog.ir != contract.catalog.ir:
                raise SchemaMoved()
            prepared = prepare_mutation(
                plan, parameters, snapshot, self._parts.tables, ids, vectors, blobs, self._matches
            )
            return prepared.change

        def complete(draft: CommitDraft) -> CommitDraft:
            draft = replace(draft, warnings=prepared.warnings)
            affected = {"nodes": prepared.affected_nodes, "edges": prepared.affected_edges}
            return request.on(draft, affected=affected)

        draft, commit = request.on(_draft(contract, options)), None
        write = WriteRequest(
            branch=branch,
            kind=WriterKind.MUTATION,
            draft=draft,
            prepare=prepare,
            may_write=_tables_of(plan, contract.catalog),
            complete_draft=complete,
            expected_head=options.expected_head,
            quarantined=quarantined,
            vectors=vectors,
        )
        try:
            if known is None:
                checked, change = prepare_on_newest(self._parts, branch, contract, prepare)
            else:
                checked = self._parts.snapshot_of(known, contract)
                tried = _if_it_holds(prepare, checked)
                if tried is None:
                    return None
                change = tried
            if change.writes:
                shares = write.may_write if change.is_small else None
                write = replace(write, change=change, checked=checked, may_write=shares)
                commit = self._writer.commit(write)
        except AlreadyWritten as already:
            return _replayed(request.same(already.found), plan, contract)
        except ConstraintError:
            # Its own rows may be in the way: written by another call with the same key meanwhile.
            earlier = request.earlier(manifest, branch.physical)
            if earlier is None:
                raise
            return _replayed(earlier, plan, contract)
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
            returned=prepared.returned,
        )


def _if_it_holds(prepare: Callable[[Snapshot], Change], checked: Snapshot) -> Change | None:
    """A change that has something to write; None if it fails, too."""
    try:
        change = prepare(checked)
    except OmnigraphError:
        return None
    return change if change.writes else None


def _tables_of(plan: MutationPlan, catalog: Catalog) -> frozenset[str]:
    """The tables that the statements may change. Deleting nodes deletes their edges."""
    keys: set[str] = set()

    def with_edges(name: str) -> Iterator[str]:
        yield catalog.nodes[name].table_key
        for edge in catalog.edges.values():
            if name in (edge.from_type, edge.to_type):
                yield edge.table_key

    statements: list[PlainStatement | Action] = []
    for written in plan.statements:
        statements += written.actions if isinstance(written, MatchChange) else (written,)
    nodes = {node.table_key: name for name, node in catalog.nodes.items()}
    for statement in statements:
        match statement:
            case InsertNode(node_type=name) | UpdateNodes(node_type=name):
                keys.add(catalog.nodes[name].table_key)
            case InsertEdge() | UpdateEdges() | DeleteEdges():
                keys.add(catalog.edges[statement.edge_type].table_key)
            case Upsert(table_key=key):
                keys.add(key)
            case UpdateMatched(table_keys=found):
                keys.update(found)
            case DeleteNodes(node_type=name):
                keys.update(with_edges(name))
            case DeleteMatched(targets=targets):
                for key in (key for _, found in targets for key in found):
                    keys.update(with_edges(nodes[key]) if key in nodes else (key,))
            case _:
                assert_never(statement)
    return frozenset(keys)


def _replayed(commit: CommitRecord, plan: MutationPlan, contract: SchemaContract) -> MutationResult:
    """The result of the call that made the commit."""
    assert commit.draft.write_key is not None
    affected = commit.draft.write_key.answer["affected"]
    return MutationResult(
        receipt=receipt_of(commit, contract.catalog, replayed=True),
        query_name=plan.name,
        branch=public_name(commit.branch),
        affected_nodes=affected["nodes"],
        affected_edges=affected["edges"],
    )


def _draft(contract: SchemaContract, options: MutationOptions) -> CommitDraft:
    return CommitDraft(
        graph_commit_id=CommitId(new_ulid()),
        operation=OperationKind.MUTATE,
        operation_id=OperationId(new_ulid()),
        created_at=now_micros(),
        schema_ir_hash=contract.hash,
        schema_ref=contract.reference,
        actor_id=options.actor,
        message=options.message,
    )
