"""The ledger, the lock, sidecars and approvals as values: what a storage root records of a cluster.

A ledger of version 1 is read as one of version 2 without a `ledger_id`; the next write gives it one. Every
value here is valid JSON of one object in storage; reading and writing them is `store`.
Tests: tests/cluster/test_records.py.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from omnigraph.json_structs import json_lines
from omnigraph.versioning.ids import new_ulid

VERSION: Final = 2
RECORD_VERSION: Final = 1
"""Of locks, sidecars and approvals."""
MAX_RESULTS: Final = 32

SidecarKind = Literal["graph_create", "schema_apply", "graph_delete"]
Status = Literal["pending", "planned", "applying", "applied", "drifted", "blocked", "error"]


class _Recorded(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    pass


class AppliedResource(_Recorded, frozen=True, kw_only=True):
    """A resource as it was applied last."""

    digest: str
    applies_to: tuple[str, ...] | None = None
    """Of a policy: `cluster` and `graph.<id>`, sorted."""
    embedding_provider: str | None = None
    external_blobs: tuple[str, ...] | None = None
    """Of a graph: the bases under which blobs outside of it may be."""


class AppliedRevision(_Recorded, frozen=True, omit_defaults=False, kw_only=True):
    """All applied resources; the config digest only after a run that left nothing to do."""

    config_digest: str | None = None
    resources: Mapping[str, AppliedResource] = {}
    result_revision: int = 0
    """Rises whenever the resources change."""


class ResourceStatus(_Recorded, frozen=True, kw_only=True):
    """What the last command found out about a resource."""

    status: Status
    conditions: tuple[str, ...] = ()
    message: str | None = None


class ApprovalRecord(_Recorded, frozen=True, kw_only=True):
    """An approval that was used."""

    consumed_at: str
    consumed_by_operation: str


class RecoveryRecord(_Recorded, frozen=True, omit_defaults=False, kw_only=True):
    """An interrupted operation whose effect was recorded later."""

    kind: str
    graph_id: str
    outcome: Literal["rolled_forward"] = "rolled_forward"
    recovered_at: str
    actor: str | None


class GraphObservation(Struct, frozen=True, tag_field="kind", tag="graph", kw_only=True):
    """A live graph as a command saw it."""

    address: str
    graph_uri: str
    observed_at: str
    exists: bool
    manifest_version: int | None
    schema_digest: str | None
    desired_schema_digest: str | None
    schema_matches_desired: bool | None
    error: str | None


class Tombstone(Struct, frozen=True, tag_field="kind", tag="tombstone", kw_only=True):
    """A graph that was deleted."""

    deleted_at: str
    approval_id: str | None
    actor: str | None


class Authority(Struct, frozen=True):
    """On whose authority a deployment ran."""

    kind: Literal["storage_owner", "authenticated_identity"]
    actor: str | None


class GraphResult(Struct, frozen=True):
    """What a deployment did to a graph."""

    outcome: Literal["created", "deleted", "schema", "query_only", "refused", "not_attempted"]


class DeploymentResult(Struct, frozen=True, kw_only=True):
    """The result of one apply. `base` is the state CAS it began with."""

    id: str
    input_digest: str
    authority: Authority
    base: str | None
    result_revision: int
    config_digest: str | None
    graphs: Mapping[str, GraphResult]
    recovery_executors: Mapping[str, Any] = {}
    converged: bool


class Outstanding(Struct, frozen=True, kw_only=True):
    """A deployment that a server has accepted and not finished."""

    id: str
    input_digest: str
    authority: Authority
    base: str | None
    graphs: Mapping[str, GraphResult]
    """What it is to do to graphs."""
    targets: Mapping[str, str | None]
    """The digests of all resources that it changes; None for those that go."""
    lock_id: str | None
    host: str
    pid: int


class Ledger(_Recorded, frozen=True, omit_defaults=False, kw_only=True):
    """What is applied, and what is known about it."""

    version: int
    ledger_id: str | None = None
    state_revision: int = 0
    next_sequence: int = 1
    applied_revision: AppliedRevision
    resource_statuses: Mapping[str, ResourceStatus] = {}
    approval_records: Mapping[str, ApprovalRecord] = {}
    recovery_records: Mapping[str, RecoveryRecord] = {}
    observations: Mapping[str, GraphObservation | Tombstone] = {}
    outstanding: Outstanding | None = None
    deployment_results: tuple[DeploymentResult, ...] = ()

    @property
    def resources(self) -> Mapping[str, AppliedResource]:
        return self.applied_revision.resources

    def digest(self, address: str) -> str | None:
        """The digest of an applied resource."""
        found = self.resources.get(address)
        return None if found is None else found.digest

    @property
    def graph_ids(self) -> list[str]:
        """The applied graphs, sorted."""
        return sorted(a.removeprefix("graph.") for a in self.resources if a.startswith("graph."))


EMPTY: Final = Ledger(version=VERSION, applied_revision=AppliedRevision())


class LedgerDraft:
    """A ledger that a command changes before it writes it."""

    def __init__(self, base: Ledger) -> None:
        self._base = base
        self.ledger_id = base.ledger_id or new_ulid()
        self.config_digest = base.applied_revision.config_digest
        self.resources = dict(base.resources)
        self.statuses = dict(base.resource_statuses)
        self.approvals = dict(base.approval_records)
        self.recoveries = dict(base.recovery_records)
        self.observations = dict(base.observations)
        self.results = base.deployment_results
        self.outstanding = base.outstanding
        self.next_sequence = base.next_sequence

    def record(self, address: str, resource: AppliedResource) -> None:
        """Note a resource as applied."""
        self.resources[address] = resource
        self.statuses[address] = ResourceStatus(status="applied")

    def forget(self, address: str) -> None:
        """Note that a resource is gone."""
        self.resources.pop(address, None)
        self.statuses.pop(address, None)

    def recompute_composites(self, declared: Mapping[str, object]) -> None:
        """Make the digests of recorded graphs follow their schemas and queries."""
        for address, recorded in self.resources.items():
            if address.startswith("graph.") and address in declared:
                graph_id = address.removeprefix("graph.")
                self.resources[address] = msgspec.structs.replace(
                    recorded, digest=composite_digest(graph_id, self.digests)
                )

    def accept(self, outstanding: Outstanding) -> None:
        """Note that a deployment begins. Its sequence number is used up."""
        self.outstanding = outstanding
        self.next_sequence += 1

    def complete(self, result: DeploymentResult) -> None:
        """Record how a deployment has ended."""
        self.results = (*self.results, result)[-MAX_RESULTS:]
        if self.outstanding is None:
            self.next_sequence += 1
        self.outstanding = None

    @property
    def digests(self) -> dict[str, str]:
        return {address: resource.digest for address, resource in self.resources.items()}

    @property
    def is_changed(self) -> bool:
        return self._base.version != VERSION or self.preview() != self._base

    def finish(self) -> Ledger:
        """The ledger to write: the next revision, with its resources in order."""
        return msgspec.structs.replace(
            self.preview(),
            version=VERSION,
            ledger_id=self.ledger_id,
            state_revision=self._base.state_revision + 1,
        )

    def preview(self) -> Ledger:
        """The ledger with all changes so far, still under its old revision."""
        before = self._base.applied_revision
        resources = dict(sorted(self.resources.items()))
        is_same = resources == dict(before.resources) and self.config_digest == before.config_digest
        return msgspec.structs.replace(
            self._base,
            applied_revision=AppliedRevision(
                config_digest=self.config_digest,
                resources=resources,
                result_revision=before.result_revision + (not is_same),
            ),
            resource_statuses=dict(sorted(self.statuses.items())),
            approval_records=self.approvals,
            recovery_records=self.recoveries,
            observations=dict(sorted(self.observations.items())),
            deployment_results=self.results,
            outstanding=self.outstanding,
            next_sequence=self.next_sequence,
        )


class LockRecord(Struct, frozen=True):
    """Who holds the lock of a cluster."""

    version: int
    lock_id: str
    operation: str
    created_at: str
    pid: int


class Sidecar(Struct, frozen=True, kw_only=True):
    """What a run is about to do to a graph, written before it does it."""

    schema_version: int = RECORD_VERSION
    operation_id: str
    started_at: str
    actor: str | None
    kind: SidecarKind
    graph_id: str
    graph_uri: str
    observed_manifest_version: int | None = None
    expected_manifest_version: int | None = None
    desired_schema_digest: str | None = None
    state_cas_base: str | None = None
    approval_id: str | None = None


class Approval(Struct, frozen=True, kw_only=True):
    """An operator's consent to one change of one resource."""

    schema_version: int = RECORD_VERSION
    approval_id: str
    resource: str
    operation: str
    reason: str
    bound_config_digest: str | None
    bound_before_digest: str | None
    bound_after_digest: str | None
    approved_by: str
    created_at: str
    consumed_at: str | None = None
    consumed_by_operation: str | None = None


def ledger_text(ledger: Ledger) -> str:
    return json_lines(ledger)


def state_cas(text: str) -> str:
    """The name of a ledger's content."""
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def text_digest(text: str) -> str:
    """The digest of a resource's file."""
    return hashlib.sha256(text.encode()).hexdigest()


def composite_digest(graph_id: str, digests: Mapping[str, str]) -> str:
    """The digest of a graph, from those of its schema and queries."""
    parts = ["graph", graph_id, "schema", digests.get(f"schema.{graph_id}", "")]
    prefix = f"query.{graph_id}."
    for address in sorted(a for a in digests if a.startswith(prefix)):
        parts += ["query", address.removeprefix(prefix), digests[address]]
    return hashlib.sha256("".join(f"{part}\0" for part in parts).encode()).hexdigest()


def now() -> str:
    """The present time as the records write it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
