"""Answers of the HTTP API under `Omnigraph-Http-Api: 0.13`, where they differ from those without it."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType, field

from omnigraph.wire.documents07 import (
    FurtherResultOutput,
    MergeOutcome,
    ReadTargetOutput,
    ReturnedOutput,
    Rows,
    WrittenCommitOutput,
)
from omnigraph.wire.errors import DiagnosticOutput, ErrorOutput13

EntityKind = Literal["node", "edge"]


class SnapshotDatasetOutput(Struct, frozen=True, kw_only=True):
    entity_kind: EntityKind
    type_name: str
    entity_count: int
    dataset_path: str
    published_dataset_version: int
    native_dataset_branch: str | None


class SnapshotOutput(Struct, frozen=True, kw_only=True):
    graph_branch: str
    graph_manifest_version: int
    internal_schema_version: int
    datasets: list[SnapshotDatasetOutput]


class CommitOutput(WrittenCommitOutput, frozen=True, kw_only=True):
    """One commit; a null branch is `main`. It is the same in receipts and lists."""


class CommitListOutput(Struct, frozen=True, kw_only=True):
    commits: list[CommitOutput]


class ReadOutput(Struct, frozen=True, kw_only=True):
    query_name: str
    target: ReadTargetOutput
    row_count: int
    columns: list[str] | UnsetType = UNSET
    rows: Rows
    graph_commit_id: str | None
    results: dict[str, FurtherResultOutput] | UnsetType = UNSET


class BranchCreated(Struct, frozen=True, kw_only=True, tag_field="kind", tag="created"):
    name: str
    from_: str = field(name="from")


class BranchDeleted(Struct, frozen=True, kw_only=True, tag_field="kind", tag="deleted"):
    name: str


class BranchMerged(Struct, frozen=True, kw_only=True, tag_field="kind", tag="merged"):
    source: str
    target: str
    merge: str


class ChangeOutput(Struct, frozen=True, kw_only=True):
    """What a mutation did; `commit` is null if nothing was committed."""

    branch: str
    query_name: str
    affected_nodes: int
    affected_edges: int
    actor_id: str | None
    commit: CommitOutput | None
    outcome: BranchCreated | BranchDeleted | BranchMerged | UnsetType = UNSET
    returned: list[ReturnedOutput] | UnsetType = UNSET


class LoadedTypeOutput(Struct, frozen=True, kw_only=True):
    name: str
    entities_loaded: int


class GraphBatchLoadOutput(Struct, frozen=True, kw_only=True):
    branch: str
    base_branch: str | None
    branch_created: bool
    mode: str
    nodes: list[LoadedTypeOutput]
    edges: list[LoadedTypeOutput]
    total_entities: int
    commit: CommitOutput | None
    actor_id: str | None
    embedding_generation: None = None


class IngestOutput(GraphBatchLoadOutput, frozen=True, kw_only=True):
    uri: str


class BranchMergeOutput(Struct, frozen=True, kw_only=True):
    source: str
    target: str
    outcome: MergeOutcome
    actor_id: str | None
    commit: CommitOutput | None
    branch_deleted: bool | UnsetType = UNSET
    branch_delete_error_details: ErrorOutput13 | UnsetType = UNSET
    dry_run: bool | UnsetType = UNSET
    conflicts: list[dict[str, Any]] | UnsetType = UNSET
    conflicts_total: int | UnsetType = UNSET


class SystemColumnsOutput(Struct, frozen=True, kw_only=True):
    id: str = "id"
    src: str = "src"
    dst: str = "dst"


class SchemaOutput(Struct, frozen=True, kw_only=True):
    schema_source: str
    system_columns: SystemColumnsOutput = SystemColumnsOutput()


GraphAction = Literal[
    "none",
    "wait_for_startup",
    "wait_for_transition",
    "apply_correction_or_restart",
    "wait_for_restart",
]


class GraphInfo(Struct, frozen=True, kw_only=True):
    graph_id: str
    uri: str
    state: Literal["loading", "ready", "transitioning", "blocked", "stopping"]
    read_available: bool
    write_available: bool
    action: GraphAction
    failure: (
        Literal[
            "invalid_configuration",
            "invalid_policy",
            "invalid_external_blob_policy",
            "open_failed",
            "invalid_stored_queries",
        ]
        | UnsetType
    ) = UNSET


class GraphListResponse(Struct, frozen=True, kw_only=True):
    graphs: list[GraphInfo]


# -- change feed ----------------------------------------------------------------------------


class CauseOutput(Struct, frozen=True, kw_only=True):
    """The commit that made changes."""

    graph_commit_id: str | None
    parent_commit_id: str | None
    merged_parent_commit_id: str | None
    actor_id: str | None
    authored_branch: str
    authored_at: int


class ChangeTypeOutput(Struct, frozen=True, kw_only=True):
    """`id` survives a rename of the type."""

    id: str
    name: str


class ImageOutput(Struct, frozen=True, kw_only=True):
    """An entity before or after a change."""

    properties: dict[str, Any]
    endpoints: dict[str, str] | UnsetType = UNSET


class EntityChangeOutput(Struct, frozen=True, kw_only=True):
    kind: EntityKind
    type: ChangeTypeOutput
    id: str
    op: Literal["insert", "update", "delete"]
    before: ImageOutput | UnsetType = UNSET
    after: ImageOutput | UnsetType = UNSET


class CommitDiffOutput(Struct, frozen=True, kw_only=True):
    cause: CauseOutput
    changes: list[EntityChangeOutput]
    next_page_token: str | UnsetType = UNSET


class ChangeBlockOutput(Struct, frozen=True, kw_only=True):
    cause: CauseOutput
    changes: list[EntityChangeOutput]


class ChangeFeedOutput(Struct, frozen=True, kw_only=True):
    """A page of the change feed. Only the last page of a poll has a cursor."""

    blocks: list[ChangeBlockOutput]
    next_page_token: str | UnsetType = UNSET
    cursor: str | UnsetType = UNSET
    caught_up: bool | UnsetType = UNSET


class BaselineHandshake(Struct, frozen=True, kw_only=True):
    snapshot_commit_id: str
    resume_cursor: str


class BaselineOutput(Struct, frozen=True, kw_only=True):
    """The last line of a baseline."""

    baseline: BaselineHandshake


# -- what a page that shows a graph asks first ----------------------------------------------


class SessionOutput(Struct, frozen=True, kw_only=True):
    """Who the caller is, and the graphs to choose from: those that the caller may list."""

    actor_id: str | None
    version: str
    graphs: list[str]


class PermissionsOutput(Struct, frozen=True, kw_only=True):
    """What the policy allows the caller: on `branch`, and a merge of it into `target`."""

    actor_id: str | None
    branch: str
    target: str
    read: bool
    change: bool
    merge: bool


class CheckedParamOutput(Struct, frozen=True, kw_only=True):
    """A declared parameter. `type` is as the query writes it."""

    name: str
    type: str
    has_default: bool


class CheckedQueryOutput(Struct, frozen=True, kw_only=True):
    """A query of a checked text."""

    name: str
    mutation: bool
    params: list[CheckedParamOutput]


class CheckOutput(Struct, frozen=True, kw_only=True):
    """The queries of a text, and what is wrong with it."""

    queries: list[CheckedQueryOutput]
    diagnostics: list[DiagnosticOutput]
