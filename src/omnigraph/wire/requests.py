"""Request bodies of the HTTP API.

An optional field may be null, except lists and switches. Unknown fields are ignored, except in
`SettingsRequest`. Tests: tests/server.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

Limit = Annotated[int, Meta(ge=1, le=2**31)]
U32 = Annotated[int, Meta(ge=0, le=2**32 - 1)]
U63 = Annotated[int, Meta(ge=0, le=2**63 - 1)]
LoadMode = Literal["overwrite", "append", "merge", "patch"]
Params = dict[str, Any]


class SettingsRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Engine settings of one call. They are checked; the engine chooses its own values."""

    ann_nprobes: U32 | None = None
    engine: Literal["v2"] | None = None
    history_release_bytes: U63 | None = None
    merge_lineage: Literal["off", "on", "verify"] | None = None
    traversal_work_limit: U63 | None = None


class BudgetRequest(Struct, frozen=True, kw_only=True):
    """Limits of one read, below those of the server."""

    max_rows: U63 | None = None
    max_bytes: U63 | None = None
    timeout_s: Annotated[float, Meta(ge=0)] | None = None


class QueryRequest(Struct, frozen=True, kw_only=True):
    """A read query. `branch` and `snapshot` are exclusive; without both it reads `main`.

    `typed_params` replace `params`: Python values as the Python client writes them, of which an
    undeclared one is refused.
    """

    query: str
    name: str | None = None
    params: Params | None = None
    branch: str | None = None
    snapshot: str | None = None
    settings: SettingsRequest | None = None
    typed_params: Params | None = None
    budget: BudgetRequest | None = None
    exact: bool = False


class ReadRequest(Struct, frozen=True, kw_only=True):
    """The body of the deprecated route `/read`."""

    query_source: str
    query_name: str | None = None
    params: Params | None = None
    branch: str | None = None
    snapshot: str | None = None


class ExplainRequest(Struct, frozen=True, kw_only=True):
    """A read query whose plan is wanted; with `analyze` it runs."""

    query: str
    name: str | None = None
    params: Params | None = None
    branch: str | None = None
    snapshot: str | None = None
    analyze: bool = False
    typed_params: Params | None = None
    budget: BudgetRequest | None = None
    exact: bool = False


class CheckRequest(Struct, frozen=True, kw_only=True):
    """A text of queries to check against the schema of a branch or commit."""

    query: str
    branch: str | None = None
    snapshot: str | None = None


class ScanRequest(Struct, frozen=True, kw_only=True):
    """Rows of one type as an Arrow stream; without `columns` all of them but blobs."""

    type: str
    columns: list[str] | None = None
    where: str | None = None
    typed_params: Params | None = None
    branch: str | None = None
    snapshot: str | None = None
    budget: BudgetRequest | None = None


class ChangeRequest(Struct, frozen=True, kw_only=True):
    """A mutation query. Exactly one of `query` and `query_source` names it."""

    query: str | None = None
    query_source: str | None = None
    name: str | None = None
    query_name: str | None = None
    params: Params | None = None
    branch: str | None = None
    expected_head: str | None = None
    message: str | None = None
    typed_params: Params | None = None


class MutateRequest(Struct, frozen=True, kw_only=True):
    """A mutation query of contract 0.13."""

    query: str
    name: str | None = None
    params: Params | None = None
    branch: str | None = None
    settings: SettingsRequest | None = None
    expected_head: str | None = None
    message: str | None = None


class InvokeStoredQueryRequest(Struct, frozen=True, kw_only=True):
    """Arguments of a stored query."""

    params: Params | None = None
    branch: str | None = None
    snapshot: str | None = None
    expect_mutation: bool | None = None
    expected_head: str | None = None
    message: str | None = None


class IngestRequest(Struct, frozen=True, kw_only=True):
    """Records to load, as JSON Lines in `data`."""

    data: str
    branch: str | None = None
    from_: str | None = field(default=None, name="from")
    mode: LoadMode | None = None
    load_id: str | None = None
    max_errors: Limit | None = None
    strict: bool = False
    cascade: bool = False
    expected_head: str | None = None
    message: str | None = None


class LoadPart(Struct, frozen=True, kw_only=True):
    """One source of a load: JSON text, or rows of one type as JSON lines or an Arrow stream."""

    type: str | None = None
    json: bytes | None = None
    arrow: bytes | None = None


class LoadPartsRequest(Struct, frozen=True, kw_only=True):
    """A load of the Python client, encoded as MessagePack.

    `call` is the call it stands for; `insert` and `upsert` have one part with a type.
    """

    call: Literal["load", "insert", "upsert"] = "load"
    parts: list[LoadPart]
    mode: str = "append"
    branch: str | None = None
    from_: str | None = field(default=None, name="from")
    strict: bool = False
    cascade: bool = False
    max_errors: Limit | None = None
    expected_head: str | None = None
    message: str | None = None


class ExportRequest(Struct, frozen=True, kw_only=True):
    """What to export; without filters everything. `branch` and `snapshot` are exclusive."""

    branch: str | None = None
    snapshot: str | None = None
    type_names: list[str] = field(default_factory=list)
    table_keys: list[str] = field(default_factory=list)


class BranchCreateRequest(Struct, frozen=True, kw_only=True):
    name: str
    from_: str | None = field(default=None, name="from")


class Resolution(Struct, frozen=True, kw_only=True):
    """Which side wins for one row of a merge."""

    table_key: str
    row_id: str
    take: Literal["ours", "theirs", "base"]


class BranchMergeRequest(Struct, frozen=True, kw_only=True):
    """A merge of `source` into `target`."""

    source: str
    target: str | None = None
    dry_run: bool = False
    strategy: str | dict[str, str] | None = None
    granularity: Literal["row", "property"] | None = None
    resolutions: list[Resolution] | None = None
    delete_branch: bool = False
    delete_source: bool = False
    settings: SettingsRequest | None = None
    expected_head: str | None = None
    message: str | None = None


class ApplyCommitRequest(Struct, frozen=True, kw_only=True):
    """A commit whose changes are undone on a branch, or applied to it."""

    ref: str
    branch: str | None = None
    dry_run: bool = False
    expected_head: str | None = None
    message: str | None = None


class BranchResetRequest(Struct, frozen=True, kw_only=True):
    """The state whose rows a branch gets."""

    ref: str
    dry_run: bool = False
    expected_head: str | None = None
    message: str | None = None


class TagCreateRequest(Struct, frozen=True, kw_only=True):
    """A name for a commit: that of `ref`, or the head of main."""

    name: str
    ref: str | None = None


class SchemaApplyRequest(Struct, frozen=True, kw_only=True):
    """A new schema, and queries that must keep working beside the stored ones."""

    schema_source: str
    allow_data_loss: bool = False
    expected_head: str | None = None
    message: str | None = None
    queries: list[str] = field(default_factory=list)


class SchemaPlanRequest(Struct, frozen=True, kw_only=True):
    schema_source: str
    allow_data_loss: bool = False


class DiffRequest(Struct, frozen=True, kw_only=True):
    """Two states to compare, each a branch or a commit.

    As an Arrow stream, the answer has one row for each change, or with `values` the changed rows of that
    type.
    """

    from_: str = field(name="from")
    to: str
    type_names: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    ops: list[str] = field(default_factory=list)
    rows: bool = False
    limit: Limit | None = None
    cursor: str | None = None
    values: str | None = None


class BaselineRequest(Struct, frozen=True, kw_only=True):
    """The start of a change feed: all entities, then a cursor. `op` only binds the cursor."""

    branch: str | None = None
    kind: list[str] = field(default_factory=list)
    type: list[str] = field(default_factory=list)
    op: list[str] = field(default_factory=list)
