"""The tools: name, arguments, and the request of the HTTP API that each stands for.

Arguments are structs, whose JSON schemas clients see. Names are those of the official MCP server for
OmniGraph; `diff`, `entity_get`, `entity_history`, `explain` and `revert` are additions. Four names of its
first version can be called and are not listed. Tests: tests/unit/mcp/test_tools.py, tests/server/test_mcp.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct

from omnigraph.graph.gate import Action
from omnigraph.json_structs import described
from omnigraph.mcp.backend import ToolRequest

MAX_ROWS: Final = 1_000
DEFAULT_ROWS: Final = 100
"""Rows that a tool returns without `maxRows`: an answer is read by a model, which pays for each."""

Text = Annotated[str, Meta(min_length=1)]
Branch = Annotated[str, Meta(min_length=1, description="branch name")]
Rows = Annotated[
    int, Meta(ge=1, le=MAX_ROWS, description=f"most rows to return, by default {DEFAULT_ROWS}")
]
Query = Annotated[str, Meta(min_length=1, description="query text (.gq)")]
QueryName = Annotated[str, Meta(description="which query of the text, if it has several")]
Params = Annotated[dict[str, Any], Meta(description="parameters by name, without `$`")]
Message = Annotated[str, Meta(description="commit message")]
Ref = Annotated[
    str,
    Meta(min_length=1, description="commit id, branch, tag, or a form such as `main~1`"),
]
TypeName = Annotated[str, Meta(min_length=1, description="node or edge type")]
EntityId = Annotated[str, Meta(min_length=1, description="id of the node or edge")]
Page = Annotated[int, Meta(ge=1, le=MAX_ROWS, description="most changes of a page")]
PageToken = Annotated[str, Meta(description="`nextPageToken` of the page before")]


class Arguments(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The arguments of a tool."""


class NoArguments(Arguments, frozen=True, kw_only=True):
    pass


class OfBranch(Arguments, frozen=True, kw_only=True):
    branch: Branch | None = None


class QueryArguments(Arguments, frozen=True, kw_only=True):
    query: Query
    name: QueryName | None = None
    params: Params | None = None
    branch: Branch | None = None
    snapshot: Ref | None = None
    max_rows: Rows = DEFAULT_ROWS


class ExplainArguments(Arguments, frozen=True, kw_only=True):
    query: Query
    name: QueryName | None = None
    params: Params | None = None
    branch: Branch | None = None
    snapshot: Ref | None = None


class CommitsArguments(Arguments, frozen=True, kw_only=True):
    branch: Branch | None = None
    limit: Annotated[int, Meta(ge=1, le=MAX_ROWS)] = 50


class CommitArguments(Arguments, frozen=True, kw_only=True):
    commit_id: Annotated[str, Meta(min_length=1, description="commit id")]


class CommitChangesArguments(CommitArguments, frozen=True, kw_only=True):
    limit: Page = DEFAULT_ROWS
    page_token: PageToken | None = None


class PollArguments(Arguments, frozen=True, kw_only=True):
    branch: Branch | None = None
    cursor: Annotated[str, Meta(description="cursor of an earlier poll")] | None = None
    start: Annotated[str, Meta(description="`now`, `beginning` or `after:<commit>`")] | None = None
    limit: Page = DEFAULT_ROWS
    page_token: PageToken | None = None


class DiffArguments(Arguments, frozen=True, kw_only=True):
    from_: Ref = msgspec.field(name="from")
    to: Ref
    type_names: list[TypeName] = msgspec.field(default_factory=list)
    rows: Annotated[bool, Meta(description="with the values before and after")] = False
    limit: Page = DEFAULT_ROWS
    cursor: Annotated[str, Meta(description="`nextCursor` of the page before")] | None = None


class EntityArguments(Arguments, frozen=True, kw_only=True):
    type: TypeName
    id: EntityId
    branch: Branch | None = None
    snapshot: Ref | None = None


class EntityHistoryArguments(Arguments, frozen=True, kw_only=True):
    type: TypeName
    id: EntityId
    branch: Branch | None = None


class MutateArguments(Arguments, frozen=True, kw_only=True):
    query: Query
    name: QueryName | None = None
    params: Params | None = None
    branch: (
        Annotated[str, Meta(min_length=1, description="without it, a new branch of the agent")]
        | None
    ) = None
    message: Message | None = None
    if_graph_commit: (
        Annotated[str, Meta(description="write only if the branch is at this commit")] | None
    ) = None


class LoadArguments(Arguments, frozen=True, kw_only=True):
    branch: Branch
    mode: Literal["overwrite", "append", "merge", "patch"]
    data: Annotated[str, Meta(description="records as JSON Lines")]
    from_: Annotated[str, Meta(description="create a missing branch from this one")] | None = (
        msgspec.field(default=None, name="from")
    )
    message: Message | None = None


class BranchCreateArguments(Arguments, frozen=True, kw_only=True):
    name: Branch
    from_: Ref | None = msgspec.field(default=None, name="from")


class BranchDeleteArguments(Arguments, frozen=True, kw_only=True):
    name: Branch


class MergeArguments(Arguments, frozen=True, kw_only=True):
    source: Branch
    target: Branch | None = None
    dry_run: Annotated[bool, Meta(description="report what would change, write nothing")] = False
    strategy: Literal["fail", "ours", "theirs"] | None = None
    granularity: Literal["row", "property"] | None = None
    delete_source: bool = False
    message: Message | None = None


class RevertArguments(Arguments, frozen=True, kw_only=True):
    ref: Ref
    branch: Branch | None = None
    dry_run: Annotated[bool, Meta(description="report what would change, write nothing")] = False
    message: Message | None = None


class StoredArguments(Arguments, frozen=True, kw_only=True):
    name: Annotated[str, Meta(min_length=1, description="name of the stored query")]
    params: Params | None = None
    branch: Branch | None = None
    snapshot: Ref | None = None
    message: Message | None = None
    max_rows: Rows = DEFAULT_ROWS


class ReadArguments(Arguments, frozen=True, kw_only=True):
    query_source: Text
    query_name: str | None = None
    params: Params | None = None
    branch: Branch | None = None
    snapshot: Ref | None = None


class ChangeArguments(Arguments, frozen=True, kw_only=True):
    query_source: Text
    query_name: str | None = None
    params: Params | None = None
    branch: Branch | None = None


class IngestArguments(Arguments, frozen=True, kw_only=True):
    data: str
    branch: Branch | None = None
    mode: Literal["overwrite", "append", "merge", "patch"] = "merge"
    from_: str | None = msgspec.field(default=None, name="from")


class SchemaApplyArguments(Arguments, frozen=True, kw_only=True):
    schema_source: Text


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """One tool.

    `action` is what the policy must allow somewhere for the tool to exist for a caller; None: nothing.
    """

    name: str
    description: str
    arguments: type[Arguments]
    request: Callable[[Any], ToolRequest]
    action: Action | None
    is_write: bool = False
    is_destructive: bool = False
    is_listed: bool = True
    makes_branch: bool = False
    """Without `branch` it writes to a new branch of the agent."""

    def parsed(self, given: Mapping[str, Any] | None) -> Any:
        """The arguments. Raises `msgspec.ValidationError`."""
        return msgspec.convert(dict(given or {}), described(self.arguments))

    @property
    def input_schema(self) -> dict[str, Any]:
        return input_schema(self.arguments)


def input_schema(arguments: type[Arguments]) -> dict[str, Any]:
    """The JSON schema of the arguments, as one object without references."""
    _, components = msgspec.json.schema_components([arguments])
    schema = dict(components[arguments.__name__])
    schema.pop("title", None)
    schema.pop("description", None)
    schema["properties"] = {
        name: _without_null(prop) for name, prop in schema.get("properties", {}).items()
    }
    return schema


def _without_null(prop: dict[str, Any]) -> dict[str, Any]:
    """A property that may be left out, without saying that it may be null as well."""
    given = prop.get("anyOf", [])
    if len(given) == 2 and {"type": "null"} in given:
        return next(one for one in given if one != {"type": "null"})
    return prop


def _get(*path: str, is_server: bool = False, **query: Any) -> ToolRequest:
    return ToolRequest(
        "GET", path, {k.rstrip("_"): v for k, v in query.items()}, is_server=is_server
    )


def _post(*path: str, body: Mapping[str, Any], is_write: bool = False, **more: Any) -> ToolRequest:
    return ToolRequest("POST", path, body=_given(body), is_write=is_write, **more)


def _given(body: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if value is not None}


def _query(a: QueryArguments) -> ToolRequest:
    body = {"query": a.query, "name": a.name, "params": a.params}
    return _post("query", body=body | {"branch": a.branch, "snapshot": a.snapshot})


def _explain(a: ExplainArguments) -> ToolRequest:
    body = {"query": a.query, "name": a.name, "params": a.params}
    return _post("explain", body=body | {"branch": a.branch, "snapshot": a.snapshot})


def _poll(a: PollArguments) -> ToolRequest:
    return _get(
        "changes",
        branch=a.branch,
        cursor=a.cursor,
        start=a.start,
        limit=a.limit,
        page_token=a.page_token,
    )


def _diff(a: DiffArguments) -> ToolRequest:
    body = {"from": a.from_, "to": a.to, "type_names": a.type_names, "rows": a.rows}
    return _post("diff", body=body | {"limit": a.limit, "cursor": a.cursor})


def _mutate(a: MutateArguments) -> ToolRequest:
    body = {"query": a.query, "name": a.name, "params": a.params}
    body |= {"branch": a.branch, "message": a.message}
    if a.if_graph_commit is None:
        return _post("mutate", body=body, is_write=True)
    condition = {"Omnigraph-If-Graph-Commit": a.if_graph_commit}
    return _post("mutate", "if-graph-commit", body=body, is_write=True, headers=condition)


def _load(a: LoadArguments | IngestArguments) -> ToolRequest:
    body = {"data": a.data, "branch": a.branch, "mode": a.mode, "from": a.from_}
    message = a.message if isinstance(a, LoadArguments) else None
    return _post("load", body=body | {"message": message}, is_write=True)


def _merge(a: MergeArguments) -> ToolRequest:
    body = {"source": a.source, "target": a.target, "dry_run": a.dry_run, "strategy": a.strategy}
    body |= {"granularity": a.granularity, "delete_source": a.delete_source, "message": a.message}
    return _post("branches", "merge", body=body, is_write=True)


def _revert(a: RevertArguments) -> ToolRequest:
    body = {"ref": a.ref, "branch": a.branch, "dry_run": a.dry_run, "message": a.message}
    return _post("revert", body=body, is_write=True)


def stored_request(a: StoredArguments, *, is_mutation: bool) -> ToolRequest:
    """The invocation of a stored query."""
    body = {"params": a.params, "branch": a.branch, "snapshot": a.snapshot, "message": a.message}
    return _post(
        "queries", a.name, body=body | {"expect_mutation": is_mutation}, is_write=is_mutation
    )


def _old_read(a: ReadArguments) -> ToolRequest:
    body = {"query": a.query_source, "name": a.query_name, "params": a.params}
    return _post("query", body=body | {"branch": a.branch, "snapshot": a.snapshot})


def _old_change(a: ChangeArguments) -> ToolRequest:
    body = {"query": a.query_source, "name": a.query_name, "params": a.params}
    return _post("mutate", body=body | {"branch": a.branch}, is_write=True)


def _old_schema_apply(a: SchemaApplyArguments) -> ToolRequest:
    body = {"schema_source": a.schema_source}
    return _post("schema", "apply", body=body, is_write=True, contract="0.7")


TOOLS: Final = (
    ToolSpec(
        "health", "Check that the graph answers; show versions.", NoArguments,
        lambda a: _get("healthz", is_server=True), None,
    ),
    ToolSpec(
        "snapshot", "Show a branch's version and the number of entities by type.", OfBranch,
        lambda a: _get("snapshot", branch=a.branch), Action.READ,
    ),
    ToolSpec(
        "query",
        "Run a read query: match a pattern, filter, search, rank, return rows. Read the resource "
        "omnigraph://best-practices/index before writing the first one.",
        QueryArguments, _query, Action.READ,
    ),
    ToolSpec(
        "explain", "Show the execution plan of a read query without running it.",
        ExplainArguments, _explain, Action.READ,
    ),
    ToolSpec(
        "schema_get", "Show the schema source: node types, edge types, properties.", NoArguments,
        lambda a: _get("schema"), Action.READ,
    ),
    ToolSpec(
        "branches_list", "List branches.", NoArguments, lambda a: _get("branches"), Action.READ
    ),
    ToolSpec(
        "graphs_list", "List the graphs of the server.", NoArguments,
        lambda a: _get("graphs", is_server=True), Action.GRAPH_LIST,
    ),
    ToolSpec(
        "commits_list", "List a branch's commits, newest first.", CommitsArguments,
        lambda a: _get("commits", branch=a.branch, limit=a.limit), Action.READ,
    ),
    ToolSpec(
        "commits_get", "Show a commit: actor, time, parents, counts.", CommitArguments,
        lambda a: _get("commits", a.commit_id), Action.READ,
    ),
    ToolSpec(
        "commits_changes", "Show the rows that a commit changed, with their values.",
        CommitChangesArguments,
        lambda a: _get("commits", a.commit_id, "changes", limit=a.limit, page_token=a.page_token),
        Action.READ,
    ),
    ToolSpec(
        "changes_poll", "Show what changed on a branch since a cursor.", PollArguments, _poll,
        Action.READ,
    ),
    ToolSpec(
        "diff", "Compare two branches or commits, row by row.", DiffArguments, _diff, Action.READ
    ),
    ToolSpec(
        "entity_get", "Show one node or edge.", EntityArguments,
        lambda a: _get("entities", a.type, a.id, branch=a.branch, snapshot=a.snapshot),
        Action.READ,
    ),
    ToolSpec(
        "entity_history", "Show every commit that changed one node or edge.",
        EntityHistoryArguments,
        lambda a: _get("entities", a.type, a.id, "history", branch=a.branch), Action.READ,
    ),
    ToolSpec(
        "mutate",
        "Run a mutation query as one commit. Without `branch` it writes to a new branch "
        "`agent/<actor>/<id>`, whose name is in the answer: review it with `diff`, then merge it.",
        MutateArguments, _mutate, Action.CHANGE, is_write=True, makes_branch=True,
    ),
    ToolSpec(
        "load", "Load records into a branch as one commit.", LoadArguments, _load, Action.CHANGE,
        is_write=True, is_destructive=True,
    ),
    ToolSpec(
        "branches_create", "Create a branch; copies no data.", BranchCreateArguments,
        lambda a: _post("branches", body={"name": a.name, "from": a.from_}, is_write=True),
        Action.BRANCH_CREATE, is_write=True,
    ),
    ToolSpec(
        "branches_delete", "Delete a branch.", BranchDeleteArguments,
        lambda a: ToolRequest("DELETE", ("branches", a.name), is_write=True),
        Action.BRANCH_DELETE, is_write=True, is_destructive=True,
    ),
    ToolSpec(
        "branches_merge",
        "Merge a branch into another (three-way). With `dryRun` it only reports changes and conflicts.",
        MergeArguments, _merge, Action.BRANCH_MERGE, is_write=True,
    ),
    ToolSpec(
        "revert", "Undo a commit's changes in a new commit.", RevertArguments, _revert,
        Action.CHANGE, is_write=True,
    ),
    ToolSpec(
        "read", "Run a read query.", ReadArguments, _old_read, Action.READ, is_listed=False
    ),
    ToolSpec(
        "change", "Run a mutation query.", ChangeArguments, _old_change, Action.CHANGE,
        is_write=True, is_listed=False, makes_branch=True,
    ),
    ToolSpec(
        "ingest", "Load records.", IngestArguments, _load, Action.CHANGE, is_write=True,
        is_destructive=True, is_listed=False,
    ),
    ToolSpec(
        "schema_apply", "Migrate the graph to a new schema.", SchemaApplyArguments,
        _old_schema_apply, Action.SCHEMA_APPLY, is_write=True, is_destructive=True,
        is_listed=False,
    ),
)  # fmt: skip

MAX_STORED_TOOLS: Final = 24
"""With more stored queries, two tools list and run them instead of one tool for each."""


def queries_list_tool() -> ToolSpec:
    return ToolSpec(
        "queries_list", "List the stored queries with their parameters.", NoArguments,
        lambda a: _get("queries"), Action.INVOKE_QUERY,
    )  # fmt: skip
