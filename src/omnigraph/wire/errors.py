"""The error body of the HTTP API, in the shapes of both contracts."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

ErrorCode = Literal[
    "bad_request",
    "unauthorized",
    "forbidden",
    "not_found",
    "method_not_allowed",
    "conflict",
    "too_many_requests",
    "internal",
    "api_contract_mismatch",
    "service_unavailable",
    "graph_unavailable",
]

MergeConflictKindOutput = Literal[
    "divergent_insert",
    "divergent_update",
    "delete_vs_update",
    "orphan_edge",
    "unique_violation",
    "cardinality_violation",
    "value_constraint_violation",
]


class ExceptionOutput(Struct, frozen=True, kw_only=True):
    """The exception of the embedded engine: its class, stable code, retry advice and fields."""

    type: str
    code: str
    retry: str
    message: str = ""
    fields: dict[str, Any] = {}


class DiagnosticOutput(Struct, frozen=True, kw_only=True):
    """A problem in a source text. Lines and columns count from 1."""

    severity: str
    code: str | UnsetType = UNSET
    message: str
    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    hint: str | UnsetType = UNSET


class LoadErrorOutput(Struct, frozen=True, kw_only=True):
    """A problem in one record of a load."""

    source: str | None
    record: int | None
    line: int | UnsetType = UNSET
    code: str
    message: str
    type: str | UnsetType = UNSET
    id: str | UnsetType = UNSET
    property: str | UnsetType = UNSET


class HeadConflictOutput(Struct, frozen=True, kw_only=True):
    """The branch is not at the commit that the request expects."""

    branch: str
    expected: str
    actual: str


class _Additions(Struct, frozen=True, kw_only=True):
    """Details that both contracts have beside their own."""

    diagnostics: list[DiagnosticOutput] | UnsetType = UNSET
    load_errors: list[LoadErrorOutput] | UnsetType = UNSET
    load_errors_total: int | UnsetType = UNSET
    head_conflict: HeadConflictOutput | UnsetType = UNSET
    merge_conflicts_total: int | UnsetType = UNSET
    exception: ExceptionOutput | UnsetType = UNSET


# -- contract 0.7 ---------------------------------------------------------------------------


class MergeConflictOutput(Struct, frozen=True, kw_only=True):
    """One reason why a merge is refused."""

    table_key: str
    row_id: str | None
    kind: MergeConflictKindOutput
    message: str
    base: dict[str, Any] | UnsetType | None = UNSET
    ours: dict[str, Any] | UnsetType | None = UNSET
    theirs: dict[str, Any] | UnsetType | None = UNSET


class ManifestConflictOutput(Struct, frozen=True, kw_only=True):
    """A table moved between a read and a write."""

    table_key: str
    expected: int
    actual: int


class ErrorOutput07(_Additions, frozen=True, kw_only=True):
    """What went wrong. `code` is one of a closed set; the other fields are details."""

    error: str
    code: ErrorCode | UnsetType = UNSET
    merge_conflicts: list[MergeConflictOutput] | UnsetType = UNSET
    manifest_conflict: ManifestConflictOutput | UnsetType = UNSET


# -- contract 0.13 --------------------------------------------------------------------------


class SourcePositionOutput(Struct, frozen=True, kw_only=True):
    line: int
    column: int
    byte: int


class CompilerDiagnosticOutput(Struct, frozen=True, kw_only=True):
    """The first problem of a source text."""

    code: str
    expected: str
    stage: str | UnsetType = UNSET
    fix: str | UnsetType = UNSET
    position: SourcePositionOutput | UnsetType = UNSET


class MergeConflictOutput13(Struct, frozen=True, kw_only=True):
    entity_kind: Literal["node", "edge"]
    type_name: str
    entity_id: str | None
    kind: MergeConflictKindOutput
    message: str
    base: dict[str, Any] | UnsetType | None = UNSET
    """The values of the row, for clients that accept all fields."""
    ours: dict[str, Any] | UnsetType | None = UNSET
    theirs: dict[str, Any] | UnsetType | None = UNSET


class KeyConflictOutput(Struct, frozen=True, kw_only=True):
    """An insert of an id that exists."""

    entity_kind: Literal["node", "edge"]
    type_name: str
    entity_id: str | None


class PublishedDatasetVersionConflictOutput(Struct, frozen=True, kw_only=True):
    entity_kind: Literal["node", "edge"]
    type_name: str
    expected_published_dataset_version: int
    actual_published_dataset_version: int


ChangeDiffReason = Literal["parentless_commit", "schema_boundary", "unknown"]


class ChangeDiffRefusalOutput(Struct, frozen=True, kw_only=True):
    """Why the changes of a commit cannot be shown."""

    graph_commit_id: str
    reason: ChangeDiffReason
    type_name: str | UnsetType = UNSET


class ChangeFeedGapOutput(Struct, frozen=True, kw_only=True):
    """The history after a cursor was deleted."""

    cursor: str | None
    first_unreadable_commit_id: str | None


class PreconditionFailureOutput(Struct, frozen=True, kw_only=True):
    expected: str
    actual: str | None


class BlobRangeOutput(Struct, frozen=True, kw_only=True):
    start: int
    end: int | None
    length: int


class ResourceLimitOutput(Struct, frozen=True, kw_only=True):
    resource: str
    limit: int
    actual: int


class ExternalBlobSourceOutput(Struct, frozen=True, kw_only=True):
    uri: str
    reason: str


class RecoveryRequiredOutput(Struct, frozen=True, kw_only=True):
    operation_id: str | None


class ErrorOutput13(_Additions, frozen=True, kw_only=True):
    """What went wrong. The status tells the kind; at most one detail field tells more."""

    error: str
    code: ErrorCode | UnsetType = UNSET
    diagnostic: CompilerDiagnosticOutput | UnsetType = UNSET
    merge_conflicts: list[MergeConflictOutput13] | UnsetType = UNSET
    key_conflict: KeyConflictOutput | UnsetType = UNSET
    published_dataset_version_conflict: PublishedDatasetVersionConflictOutput | UnsetType = UNSET
    change_diff_refusal: ChangeDiffRefusalOutput | UnsetType = UNSET
    change_feed_gap: ChangeFeedGapOutput | UnsetType = UNSET
    precondition_failure: PreconditionFailureOutput | UnsetType = UNSET
    blob_range: BlobRangeOutput | UnsetType = UNSET
    external_blob_source: ExternalBlobSourceOutput | UnsetType = UNSET
    resource_limit: ResourceLimitOutput | UnsetType = UNSET
    recovery_required: RecoveryRequiredOutput | UnsetType = UNSET
