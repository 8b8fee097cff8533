"""What cluster commands answer: diagnostics, changes and one document per command.

A field without a default is always in the JSON form; one with a default is left out when it has no value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct

from omnigraph.cluster.ledger import (
    DeploymentResult,
    GraphObservation,
    ResourceStatus,
    Tombstone,
)
from omnigraph.documents import Place

Severity = Literal["error", "warning"]
Operation = Literal["create", "update", "delete"]
Disposition = Literal["applied", "derived", "deferred", "blocked"]

FILE_NAME = "cluster.yaml"


class Diagnostic(Struct, frozen=True, omit_defaults=True):
    """One problem: where it is, as a key of the config, an address or a path, and what it is."""

    code: str
    severity: Severity
    path: str
    message: str
    line: int | None = None
    column: int | None = None
    """The position of the key in the config file."""

    def render(self) -> str:
        """The line for people."""
        word = "ERROR" if self.severity == "error" else "WARN"
        return f"{word}  {self.code} {self.path}: {self.message}"


class ClusterStop(Exception):
    """Ends a command with a diagnostic; the command's document reports it."""

    def __init__(self, code: str, path: str, message: str) -> None:
        self.diagnostic = Diagnostic(code, "error", path, message)
        super().__init__(message)


class Diagnostics:
    """Collects the problems that a command finds."""

    def __init__(self) -> None:
        self._found: list[Diagnostic] = []

    def __iter__(self) -> Iterator[Diagnostic]:
        return iter(self._found)

    @property
    def ok(self) -> bool:
        return all(found.severity != "error" for found in self._found)

    def add(self, found: Diagnostic) -> None:
        self._found.append(found)

    def error(self, code: str, path: str, message: str, place: Place | None = None) -> None:
        self._located(code, "error", path, message, place)

    def warning(self, code: str, path: str, message: str, place: Place | None = None) -> None:
        self._located(code, "warning", path, message, place)

    def _located(
        self, code: str, severity: Severity, path: str, message: str, place: Place | None
    ) -> None:
        if place is None:
            self.add(Diagnostic(code, severity, path, message))
            return
        where = f"{FILE_NAME}:{place.line}:{place.column}"
        self.add(Diagnostic(code, severity, path, f"{message} ({where})", place.line, place.column))


class Dependency(Struct, frozen=True, rename={"source": "from", "target": "to"}):
    """`source` needs `target`."""

    source: str
    target: str


class ResourceSummary(Struct, frozen=True, omit_defaults=True):
    """A declared resource."""

    address: str
    kind: str
    digest: str
    path: str | None = None


class MigrationPreview(Struct, frozen=True):
    """What a schema change would do to the live graph."""

    supported: bool
    steps: Sequence[Mapping[str, Any]]


class Change(Struct, frozen=True, omit_defaults=True):
    """One difference between the declaration and the ledger, and what a run does about it."""

    resource: str
    operation: Operation
    before_digest: str | None = None
    after_digest: str | None = None
    disposition: Disposition | None = None
    reason: str | None = None
    binding_change: bool = False
    metadata_change: bool = False
    migration: MigrationPreview | None = None

    @property
    def kind(self) -> str:
        return self.resource.partition(".")[0]

    @property
    def graph_id(self) -> str:
        """The graph of a `graph`, `schema` or `query` address."""
        return self.resource.split(".")[1]


class StateObservations(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The ledger and the lock as a command found or left them."""

    state_path: str
    lock_path: str
    state_found: bool
    applied_config_digest: str | None = None
    state_revision: int
    state_cas: str | None = None
    resource_count: int
    locked: bool
    lock_id: str | None = None
    lock_acquired: bool
    acquired_lock_id: str | None = None
    lock_operation: str | None = None
    lock_created_at: str | None = None
    lock_pid: int | None = None
    lock_age_seconds: int | None = None


class DesiredRevision(Struct, frozen=True, omit_defaults=True):
    """What the declaration amounts to."""

    config_digest: str | None = None


class Affected(Struct, frozen=True):
    """What depends on a changed resource."""

    resource: str
    affected: Sequence[str]


class ApprovalRequired(Struct, frozen=True):
    """A change that an operator must approve."""

    resource: str
    reason: str
    satisfied: bool


class Output(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The part of a document that every command has."""

    ok: bool
    config_dir: str
    diagnostics: Sequence[Diagnostic]

    def to_json(self) -> dict[str, Any]:
        document: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self))
        document["diagnostics"] = document.pop("diagnostics")
        return document


class ValidateOutput(Output, frozen=True, kw_only=True):
    """What `cluster validate` answers."""

    config_file: str
    resource_digests: Mapping[str, str]
    resources: Sequence[ResourceSummary]
    dependencies: Sequence[Dependency]


class PlanOutput(Output, frozen=True, kw_only=True):
    """What `cluster plan` answers."""

    desired_revision: DesiredRevision
    resource_digests: Mapping[str, str]
    dependencies: Sequence[Dependency]
    state_observations: StateObservations | None
    changes: Sequence[Change]
    blast_radius: Sequence[Affected]
    approvals_required: Sequence[ApprovalRequired]


class ApplyOutput(Output, frozen=True, omit_defaults=True, kw_only=True):
    """What `cluster apply` answers."""

    actor: str | None = None
    deployment_id: str | None = None
    """Under which the ledger records the result, if the run changed it."""
    desired_revision: DesiredRevision
    state_observations: StateObservations | None
    changes: Sequence[Change]
    applied_count: int
    deferred_count: int
    converged: bool
    state_written: bool
    resource_statuses: Mapping[str, ResourceStatus]


class ApproveOutput(Output, frozen=True, omit_defaults=True, kw_only=True):
    """What `cluster approve` answers."""

    approval_id: str | None = None
    resource: str | None = None
    operation: Operation | None = None
    approved_by: str | None = None


class StatusOutput(Output, frozen=True, omit_defaults=True, kw_only=True):
    """What `cluster status`, `refresh`, `import` and `observe` answer; `status` has no operation."""

    operation: Literal["refresh", "import", "observe"] | None = None
    state_observations: StateObservations | None
    resource_digests: Mapping[str, str]
    resource_statuses: Mapping[str, ResourceStatus]
    observations: Mapping[str, GraphObservation | Tombstone]


class UnlockOutput(Output, frozen=True, kw_only=True):
    """What `cluster force-unlock` answers."""

    state_observations: StateObservations | None
    lock_removed: bool


# -- deployments through a server -----------------------------------------------------------


class OutstandingDeployment(Struct, frozen=True, tag_field="status", tag="outstanding"):
    """A deployment that was accepted and has no result yet."""

    id: str
    graphs: Mapping[str, str]
    """What it does to graphs."""


class CompleteDeployment(Struct, frozen=True, tag_field="status", tag="complete"):
    """A deployment with its result."""

    result: DeploymentResult


class OtherDeployment(Struct, frozen=True, tag_field="status", tag="identity_mismatch"):
    """The sequence number belongs to a deployment of another name."""


class ExpiredDeployment(Struct, frozen=True, tag_field="status", tag="result_expired"):
    """The result is older than those that the ledger keeps."""

    acceptance: Literal["unknown"] = "unknown"
    outcome: Literal["unknown"] = "unknown"


class UnrecordedDeployment(Struct, frozen=True, tag_field="status", tag="not_recorded"):
    """No deployment of that sequence number was accepted."""


class ForeignDeployment(Struct, frozen=True, tag_field="status", tag="different_ledger"):
    """The id names another ledger."""


Lookup = (
    OutstandingDeployment
    | CompleteDeployment
    | OtherDeployment
    | ExpiredDeployment
    | UnrecordedDeployment
    | ForeignDeployment
)


class DeploymentOutput(Struct, frozen=True):
    """What a server says of one deployment."""

    deployment: Lookup
    active: bool
    """Whether the server has installed exactly this result, and all its graphs are ready."""
    in_progress: bool


class DeploymentStatus(Struct, frozen=True, kw_only=True):
    """The ledger as a client needs it to name the next deployment."""

    canonical_root: str
    ledger_id: str
    state_revision: int
    result_revision: int
    next_sequence: int
    lock_id: str | None
    outstanding_id: str | None
    lookup: None = None


class DeploymentStatusOutput(Struct, frozen=True):
    """What a server says of deployments as a whole."""

    status: DeploymentStatus
    active: bool
    in_progress: bool
