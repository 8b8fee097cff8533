"""Compares a declaration with a ledger: the changes, what a run does about each, and its stages in order.

Nothing is read or written here. `plan` prints what this module returns and `apply` walks the same stages; when a
stage fails, the dispositions are computed again with the failure. Tests: tests/cluster/test_apply.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from msgspec.structs import replace

from omnigraph.cluster.documents import Affected, ApprovalRequired, Change, Disposition
from omnigraph.cluster.ledger import Approval, Ledger
from omnigraph.cluster.resources import Desired, dependencies_of
from omnigraph.cluster.store import is_in_catalog

PENDING: Final = "cluster_recovery_pending"
NOT_APPROVED: Final = "approval_required"
NOT_APPLIED: Final = "dependency_not_applied"
UNSUPPORTED: Final = "apply_unsupported_kind"
_GATES: Final = {
    "graph": "deleting a graph removes all its data and history",
    "schema": "deleting a schema",
}


@dataclass(frozen=True, slots=True)
class CreateGraph:
    """Create an empty graph with its schema."""

    graph_id: str


@dataclass(frozen=True, slots=True)
class ApplySchema:
    """Migrate a graph to its declared schema."""

    graph_id: str


@dataclass(frozen=True, slots=True)
class WritePayload:
    """Put the content of a query, policy or provider into the catalog."""

    address: str


@dataclass(frozen=True, slots=True)
class DeleteGraph:
    """Remove a graph. Without an approval, every actor who deploys may apply schemas to it."""

    graph_id: str
    approval: Approval | None = None


Stage: TypeAlias = CreateGraph | ApplySchema | WritePayload | DeleteGraph


@dataclass(frozen=True, slots=True)
class Hindrances:
    """What keeps a run from applying changes: the reason, by graph id."""

    pending: frozenset[str] = frozenset()
    """Graphs with an interrupted operation that is not recovered."""
    creates: dict[str, str] = field(default_factory=dict)
    schemas: dict[str, str] = field(default_factory=dict)
    deletes: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """All changes by address, and the stages that carry out those that can be applied."""

    changes: tuple[Change, ...]
    stages: tuple[Stage, ...]
    approvals_required: tuple[ApprovalRequired, ...]
    blast_radius: tuple[Affected, ...]
    stale_approvals: tuple[Approval, ...]

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left to do once the stages have run."""
        return all(change.disposition in ("applied", "derived") for change in self.changes)


def make_plan(
    desired: Desired,
    ledger: Ledger,
    approvals: Sequence[Approval],
    hindrances: Hindrances | None = None,
    *,
    needs_approvals: bool = True,
) -> ClusterPlan:
    """What a run of `apply` would do, or has done if stages of it failed.

    Without `needs_approvals` every graph may be deleted.
    """
    changes = list(find_changes(desired, ledger))
    unused = [
        one
        for one in approvals
        if one.consumed_at is None and one.approval_id not in ledger.approval_records
    ]
    approved: dict[str, Approval | None] = {}
    if not needs_approvals:
        approved = {change.resource: None for change in gated_changes(changes)}
    stale: list[Approval] = []
    for change in gated_changes(changes):
        for one in unused:
            if one.resource != change.resource:
                continue
            if _covers(one, change, desired.config_digest):
                approved[change.resource] = one
            else:
                stale.append(one)
    context = _Context(desired, changes, approved, hindrances or Hindrances())
    decided = tuple(context.decide(change) for change in changes)
    return ClusterPlan(
        decided,
        tuple(_stages(decided, approved)),
        tuple(
            ApprovalRequired(change.resource, _GATES[change.kind], change.resource in approved)
            for change in gated_changes(changes)
        ),
        tuple(_blast_radius(decided, desired, ledger)),
        tuple(one for one in stale if one.resource not in approved),
    )


def find_changes(desired: Desired, ledger: Ledger) -> Iterator[Change]:
    """The differences, by address."""
    for address in sorted({*desired.resources, *ledger.resources}):
        declared, recorded = desired.resources.get(address), ledger.resources.get(address)
        if declared is None:
            assert recorded is not None
            yield Change(address, "delete", recorded.digest)
        elif recorded is None:
            yield Change(address, "create", None, declared.digest)
        elif recorded.digest != declared.digest:
            yield Change(address, "update", recorded.digest, declared.digest)
        elif recorded != declared.applied:
            is_policy = declared.kind == "policy"
            yield Change(
                address,
                "update",
                recorded.digest,
                declared.digest,
                binding_change=is_policy,
                metadata_change=not is_policy,
            )


def gated_changes(changes: Sequence[Change]) -> list[Change]:
    """The changes that an operator must approve: deleted graphs, and schemas deleted on their own."""
    graphs = {c.graph_id for c in changes if c.kind == "graph" and c.operation == "delete"}
    return [
        change
        for change in changes
        if change.operation == "delete"
        and (change.kind == "graph" or (change.kind == "schema" and change.graph_id not in graphs))
    ]


def gate_reason(change: Change) -> str:
    """Why a change needs an approval."""
    return _GATES[change.kind]


def _covers(approval: Approval, change: Change, config_digest: str) -> bool:
    return (
        approval.operation == change.operation
        and approval.bound_config_digest == config_digest
        and approval.bound_before_digest == change.before_digest
        and approval.bound_after_digest == change.after_digest
    )


class _Context:
    """Decides what a run does about each change."""

    def __init__(
        self,
        desired: Desired,
        changes: Sequence[Change],
        approved: Mapping[str, Approval | None],
        hindrances: Hindrances,
    ) -> None:
        self._desired = desired
        self._by_address = {change.resource: change for change in changes}
        self._approved = approved
        self._found = hindrances

    def decide(self, change: Change) -> Change:
        disposition, reason = {
            "graph": self._graph,
            "schema": self._schema,
            "query": self._query,
            "policy": self._policy,
            "provider": self._provider,
        }[change.kind](change)
        return replace(change, disposition=disposition, reason=reason)

    def _graph(self, change: Change) -> tuple[Disposition, str | None]:
        graph_id = change.graph_id
        if change.operation == "delete":
            return self._deleted(graph_id)
        if change.operation == "create":
            return self._created(graph_id)
        if change.metadata_change:
            return "applied", None
        schema = self._by_address.get(f"schema.{graph_id}")
        if schema is not None and self._schema(schema)[0] != "applied":
            return "deferred", UNSUPPORTED
        return "derived", None

    def _created(self, graph_id: str) -> tuple[Disposition, str | None]:
        if graph_id in self._found.pending:
            return "blocked", PENDING
        if reason := self._found.creates.get(graph_id):
            return "blocked", reason
        return "applied", None

    def _deleted(self, graph_id: str) -> tuple[Disposition, str | None]:
        if graph_id in self._found.pending:
            return "blocked", PENDING
        if f"graph.{graph_id}" not in self._approved:
            return "blocked", NOT_APPROVED
        if reason := self._found.deletes.get(graph_id):
            return "blocked", reason
        return "applied", None

    def _schema(self, change: Change) -> tuple[Disposition, str | None]:
        graph_id = change.graph_id
        graph = self._by_address.get(f"graph.{graph_id}")
        if change.operation == "delete":
            if graph is None or graph.operation != "delete":
                return "deferred", UNSUPPORTED
            return self._deleted(graph_id)
        if change.operation == "create":
            if graph is None or graph.operation != "create":
                return "blocked", PENDING
            return self._created(graph_id)
        if graph_id in self._found.pending:
            return "blocked", PENDING
        if reason := self._found.schemas.get(graph_id):
            return "blocked", reason
        return "applied", None

    def _query(self, change: Change) -> tuple[Disposition, str | None]:
        graph_id = change.graph_id
        if change.operation == "delete":
            graph = self._by_address.get(f"graph.{graph_id}")
            if graph is not None and graph.operation == "delete":
                return self._deleted(graph_id)
            return "applied", None
        if graph_id in self._found.pending:
            return "blocked", PENDING
        if self._is_unready(graph_id):
            return "blocked", NOT_APPLIED
        return "applied", None

    def _policy(self, change: Change) -> tuple[Disposition, str | None]:
        declared = self._desired.resources.get(change.resource)
        scopes = () if declared is None else declared.applied.applies_to or ()
        graphs = [scope.removeprefix("graph.") for scope in scopes if scope.startswith("graph.")]
        if any(graph_id in self._found.pending for graph_id in graphs):
            return "blocked", PENDING
        if any(graph_id in self._found.creates for graph_id in graphs):
            return "blocked", NOT_APPLIED
        return "applied", None

    def _provider(self, change: Change) -> tuple[Disposition, str | None]:
        return "applied", None

    def _is_unready(self, graph_id: str) -> bool:
        """Whether the schema that queries of a graph were checked against cannot be applied."""
        schema = self._by_address.get(f"schema.{graph_id}")
        return schema is not None and self._schema(schema)[0] != "applied"


def _stages(changes: Sequence[Change], approved: Mapping[str, Approval | None]) -> Iterator[Stage]:
    done = [change for change in changes if change.disposition == "applied"]
    for change in done:
        if change.kind == "graph" and change.operation == "create":
            yield CreateGraph(change.graph_id)
    for change in done:
        if change.kind == "schema" and change.operation == "update":
            yield ApplySchema(change.graph_id)
    for change in done:
        if is_in_catalog(change.resource) and change.operation != "delete":
            yield WritePayload(change.resource)
    for change in done:
        if change.kind == "graph" and change.operation == "delete":
            yield DeleteGraph(change.graph_id, approved[change.resource])


def _blast_radius(
    changes: Sequence[Change], desired: Desired, ledger: Ledger
) -> Iterator[Affected]:
    needed_by: dict[str, set[str]] = {}
    for one in (*desired.dependencies, *dependencies_of(ledger.resources)):
        needed_by.setdefault(one.target, set()).add(one.source)
    for change in changes:
        affected: set[str] = set()
        waiting = [change.resource]
        while waiting:
            more = needed_by.get(waiting.pop(), set()) - affected
            affected |= more
            waiting += more
        if affected:
            yield Affected(change.resource, sorted(affected - {change.resource}))
