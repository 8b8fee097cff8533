"""Answers of the HTTP API without a version header, and the documents that both contracts share.

A field with a default is an addition: it is always sent, and optional in the schema.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Raw, Struct, UnsetType, field

Rows = Annotated[Raw, Meta(extra_json_schema={"type": "array", "items": {"type": "object"}})]
"""Rows that were encoded before."""

MergeOutcome = Literal["already_up_to_date", "fast_forward", "merged", "conflicts"]
"""`conflicts` only of a dry run."""


class HealthOutput(Struct, frozen=True, kw_only=True):
    status: Literal["ok"] = "ok"
    version: str
    internal_schema_version: int = 0
    source_version: str | UnsetType = UNSET


class ReadyOutput(Struct, frozen=True, kw_only=True):
    """Whether the server takes requests, and the state of its graphs."""

    ready: bool
    status: Literal["draining", "loading", "blocked", "degraded", "serving"]
    served_graph_count: int
    ready_graph_count: int
    loading_graph_count: int
    blocked_graph_count: int
    state_revision: int
    state_cas: str | None
    booted_serving_digest: str | None
    shutdown_grace_seconds: int


class CountsOutput(Struct, frozen=True, kw_only=True):
    """Net changes of one table."""

    inserted: int
    updated: int
    deleted: int


class WarningOutput(Struct, frozen=True, kw_only=True):
    code: str
    message: str
    count: int | UnsetType = UNSET


class _ReceiptFields(Struct, frozen=True, kw_only=True):
    """What a write adds to its document; `graph_commit_id` is null if nothing was committed."""

    graph_commit_id: str | None = None
    parent_commit_id: str | None = None
    manifest_version: int = 0
    operation: str = ""
    counts: dict[str, CountsOutput] = {}
    operation_id: str = ""
    created_at: int = 0
    replayed: bool | UnsetType = UNSET
    warnings: list[WarningOutput] | UnsetType = UNSET


class WrittenCommitOutput(Struct, frozen=True, kw_only=True):
    """The commit of a write, as contract 0.13 writes a commit; a null branch is `main`."""

    graph_commit_id: str
    graph_branch: str | None
    graph_manifest_version: int
    parent_commit_id: str | None
    merged_parent_commit_id: str | None
    actor_id: str | None
    created_at: int


class SnapshotTableOutput(Struct, frozen=True, kw_only=True):
    table_key: str
    table_path: str
    table_version: int
    table_branch: str | None
    row_count: int


class SnapshotOutput(Struct, frozen=True, kw_only=True):
    branch: str
    manifest_version: int
    tables: list[SnapshotTableOutput]
    graph_commit_id: str | None = None


class ReadTargetOutput(Struct, frozen=True, kw_only=True):
    """What was read: exactly one of the two is set."""

    branch: str | None
    snapshot: str | None


class FurtherResultOutput(Struct, frozen=True, kw_only=True):
    """A further result of a read."""

    columns: list[str]
    row_count: int
    rows: Rows


class ReturnedOutput(Struct, frozen=True, kw_only=True):
    """The rows that a statement of a mutation wrote; statements are counted from 1."""

    statement: int
    columns: list[str]
    rows: Rows


class ReadOutput(Struct, frozen=True, kw_only=True):
    query_name: str
    target: ReadTargetOutput
    row_count: int
    columns: list[str] | UnsetType = UNSET
    rows: Rows
    graph_commit_id: str | None = None
    warnings: list[WarningOutput] | UnsetType = UNSET
    results: dict[str, FurtherResultOutput] | UnsetType = UNSET


class ChangeOutput(_ReceiptFields, frozen=True, kw_only=True):
    branch: str
    query_name: str
    affected_nodes: int
    affected_edges: int
    actor_id: str | None
    commit: WrittenCommitOutput | None = None
    returned: list[ReturnedOutput] | UnsetType = UNSET


class IngestTableOutput(Struct, frozen=True, kw_only=True):
    table_key: str
    rows_loaded: int


class IngestOutput(_ReceiptFields, frozen=True, kw_only=True):
    uri: str
    branch: str
    base_branch: str | None
    branch_created: bool
    mode: str
    tables: list[IngestTableOutput]
    actor_id: str | None
    commit: WrittenCommitOutput | None = None
    load_id: str = ""
    quarantined: int = 0
    engine: str = "inline"


class BranchListOutput(Struct, frozen=True, kw_only=True):
    branches: list[str]


class BranchCreateOutput(Struct, frozen=True, kw_only=True):
    uri: str
    from_: str = field(name="from")
    name: str
    actor_id: str | None


class BranchDeleteOutput(Struct, frozen=True, kw_only=True):
    uri: str
    name: str
    actor_id: str | None


class BranchMergeOutput(_ReceiptFields, frozen=True, kw_only=True):
    source: str
    target: str
    outcome: MergeOutcome
    actor_id: str | None
    commit: WrittenCommitOutput | None = None
    source_commit_id: str | None = None
    branch_deleted: bool | UnsetType = UNSET
    branch_delete_error_details: Any = UNSET
    """The error body of a delete that failed, in contract 0.13."""
    dry_run: bool | UnsetType = UNSET
    conflicts: list[dict[str, Any]] | UnsetType = UNSET
    conflicts_total: int | UnsetType = UNSET


class AppliedCommitOutput(_ReceiptFields, frozen=True, kw_only=True):
    """What a revert, a cherry-pick or a reset did."""

    branch: str
    source_commit_id: str
    actor_id: str | None
    dry_run: bool | UnsetType = UNSET
    conflicts: list[dict[str, Any]] | UnsetType = UNSET
    conflicts_total: int | UnsetType = UNSET


class TagOutput(Struct, frozen=True, kw_only=True):
    """A name of a commit; `version` is the number of the commit on its branch."""

    name: str
    graph_commit_id: str
    branch: str
    version: int
    created_at: int
    actor_id: str | None


class TagListOutput(Struct, frozen=True, kw_only=True):
    tags: list[TagOutput]


class TagDeleteOutput(Struct, frozen=True, kw_only=True):
    uri: str
    name: str
    actor_id: str | None


class CallerOutput(Struct, frozen=True, kw_only=True):
    """Who the server takes the caller for; null without a token."""

    actor_id: str | None


class CommitOutput(Struct, frozen=True, kw_only=True):
    """One commit; a null branch is `main`, `created_at` is in microseconds."""

    graph_commit_id: str
    manifest_branch: str | None
    manifest_version: int
    parent_commit_id: str | None
    merged_parent_commit_id: str | None
    actor_id: str | None
    created_at: int
    operation: str = ""
    message: str | None = None
    counts: dict[str, CountsOutput] = {}
    load_id: str | UnsetType = UNSET
    warnings: list[WarningOutput] | UnsetType = UNSET


class CommitListOutput(Struct, frozen=True, kw_only=True):
    commits: list[CommitOutput]


class SchemaOutput(Struct, frozen=True, kw_only=True):
    schema_source: str
    schema_ir: dict[str, Any] | UnsetType = UNSET


class SchemaPlanOutput(Struct, frozen=True, kw_only=True):
    """The steps that lead to another schema, unsupported ones included."""

    supported: bool
    step_count: int
    steps: list[dict[str, Any]]


class SchemaApplyOutput(_ReceiptFields, frozen=True, kw_only=True):
    uri: str
    supported: bool
    applied: bool
    step_count: int
    manifest_version: int
    steps: list[dict[str, Any]]
    actor_id: str | None = None
    lines: list[str] = []
    """The steps in words."""


class GraphInfo(Struct, frozen=True, kw_only=True):
    graph_id: str
    uri: str


class GraphListResponse(Struct, frozen=True, kw_only=True):
    graphs: list[GraphInfo]


class RunListOutput(Struct, frozen=True, kw_only=True):
    """Runs of an earlier write path, for clients that still ask; there are none."""

    runs: list[dict[str, Any]]


# -- stored queries -------------------------------------------------------------------------

ParamKind = Literal[
    "string", "bool", "int", "bigint", "float", "date", "datetime", "blob", "vector", "list"
]


class QueryParamOutput(Struct, frozen=True, kw_only=True):
    name: str
    kind: ParamKind
    item_kind: ParamKind | UnsetType = UNSET
    vector_dim: int | UnsetType = UNSET
    nullable: bool


class StoredQueryOutput(Struct, frozen=True, kw_only=True):
    name: str
    tool_name: str
    description: str | UnsetType = UNSET
    instruction: str | UnsetType = UNSET
    mutation: bool
    params: list[QueryParamOutput]


class QueriesCatalogOutput(Struct, frozen=True, kw_only=True):
    queries: list[StoredQueryOutput]


# -- additions, the same in both contracts --------------------------------------------------


class EndpointsOutput(Struct, frozen=True, kw_only=True):
    src: str
    dst: str


class ChangeEntry(Struct, frozen=True, kw_only=True):
    """One changed row."""

    table_key: str
    kind: Literal["node", "edge"]
    type_name: str
    id: str
    op: Literal["insert", "update", "delete"]
    endpoints: EndpointsOutput | UnsetType = UNSET
    before: dict[str, Any] | UnsetType | None = UNSET
    after: dict[str, Any] | UnsetType | None = UNSET


class DiffStats(Struct, frozen=True, kw_only=True):
    inserts: int
    updates: int
    deletes: int
    types_affected: list[str]


class DiffOutput(Struct, frozen=True, kw_only=True):
    from_: str = field(name="from")
    to: str
    from_commit: str
    to_commit: str
    changes: list[ChangeEntry]
    stats: DiffStats
    next_cursor: str | None


class CommitChangesOutput(Struct, frozen=True, kw_only=True):
    graph_commit_id: str
    created_at: int
    actor_id: str | None
    operation: str
    changes: list[ChangeEntry]
    commit: CommitOutput | UnsetType = UNSET
    cursor: str | UnsetType = UNSET
    at_head: bool | UnsetType = UNSET
    dropped: list[str] | UnsetType = UNSET


class ChangesOutput(Struct, frozen=True, kw_only=True):
    """Commits of a branch after a cursor, oldest first."""

    branch: str
    commits: list[CommitChangesOutput]
    next_cursor: str | None
    at_head: bool


class EntityOutput(Struct, frozen=True, kw_only=True):
    """One node or edge."""

    entity_kind: Literal["node", "edge"]
    type_name: str
    entity_id: str
    endpoints: dict[str, str] | UnsetType = UNSET
    properties: dict[str, Any]
    graph_commit_id: str
    typed: dict[str, Any] | UnsetType = UNSET


class EntityChangeOutput(Struct, frozen=True, kw_only=True):
    """What one commit did to one entity; the sides are null where it did not exist."""

    graph_commit_id: str
    created_at: int
    actor_id: str | None
    operation: str
    op: Literal["insert", "update", "delete"]
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    commit: CommitOutput | UnsetType = UNSET
    typed_before: dict[str, Any] | UnsetType | None = UNSET
    typed_after: dict[str, Any] | UnsetType | None = UNSET


class EntityHistoryOutput(Struct, frozen=True, kw_only=True):
    entity_kind: Literal["node", "edge"]
    type_name: str
    entity_id: str
    changes: list[EntityChangeOutput]


class MeasuredOutput(Struct, frozen=True, kw_only=True):
    """What a step took."""

    rows: int
    seconds: float
    lookups: int = 0
    nbytes: int | None = None


class ExplainedStepOutput(Struct, frozen=True, kw_only=True):
    """One step of a plan, with the depth it is shown at."""

    op: str
    text: str
    depth: int
    detail: dict[str, Any]
    estimate: float
    measured: MeasuredOutput | None


class ExplainOutput(Struct, frozen=True, kw_only=True):
    """The plan of a query as a tree of steps, and the same steps in execution order."""

    query_name: str
    target: ReadTargetOutput
    graph_commit_id: str
    plan: dict[str, Any]
    total_ms: float | UnsetType = UNSET
    looks_up: bool = False
    steps: list[ExplainedStepOutput] = []


class StatusOutput(Struct, frozen=True, kw_only=True):
    """Sizes, index coverage and interrupted writes of a branch."""

    uri: str
    branch: str
    graph_commit_id: str
    manifest_version: int
    format_version: int
    schema_hash: str
    branches: int
    moved_branches: list[dict[str, Any]]
    tables: list[dict[str, Any]]
    recovery: dict[str, int]
    leases: list[dict[str, Any]]
    scratch: list[Any]
    cached_bytes: int
    advice: list[str]
    pending: list[str] = []
    quarantined: list[dict[str, Any]] = []
    lease_notes: list[dict[str, Any]] = []
