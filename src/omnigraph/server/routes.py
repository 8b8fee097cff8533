"""The route table: what every path accepts and returns.

The server dispatches by it, and the OpenAPI documents and `docs/user/http.md` are made from it. Paths of
graphs are written without their prefix; a server for several graphs puts `/graphs/{graph_id}` before them.
Tests: tests/server/test_bypass.py, tests/docs/test_complete.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from omnigraph.cluster import documents as cluster
from omnigraph.cluster.bundle import DeploymentRequest, PlanRequest
from omnigraph.server.bodies import (
    DEPLOYMENT_BODY_BYTES,
    JSON_BODY_BYTES,
    LOAD_BODY_BYTES,
    MSGPACK,
    NDJSON,
)
from omnigraph.server.call import ARROW_STREAM, Answer, Call, Stream
from omnigraph.server.handlers import (
    blobs,
    branches,
    deployments,
    feed,
    loads,
    polls,
    queries,
    scans,
    state,
)
from omnigraph.wire import documents07 as v07
from omnigraph.wire import documents13 as v13
from omnigraph.wire import requests

Handler = Callable[[Call], Answer | Stream]

ONLY_07: Final = frozenset(["0.7"])
ONLY_13: Final = frozenset(["0.13"])
BOTH: Final = ONLY_07 | ONLY_13


class Scope(Enum):
    """Where a route lives and who may call it."""

    PUBLIC = "public"
    SERVER = "server"
    GRAPH = "graph"


@dataclass(frozen=True, slots=True)
class QueryParameter:
    """A parameter of the query string."""

    name: str
    meaning: str
    kind: str = "string"
    required: bool = False
    repeats: bool = False


@dataclass(frozen=True, slots=True)
class Route:
    """One operation: its address, its documents and its handler."""

    method: str
    path: str
    operation: str
    tag: str
    handler: Handler
    answer: Any = None
    """The struct of a successful answer; several where the answer is one of them."""
    answer_13: Any = None
    body: type[Any] | None = None
    body_13: type[Any] | None = None
    statuses: tuple[int, ...] = ()
    scope: Scope = Scope.GRAPH
    contracts: frozenset[str] = BOTH
    query: tuple[QueryParameter, ...] = ()
    media: str = "application/json"
    body_media: str = "application/json"
    body_bytes: int = JSON_BODY_BYTES
    body_required: bool = True
    is_write: bool = False
    successor: str | None = None
    """The route that replaces a deprecated one."""
    is_documented: bool = True
    action: str = ""
    """What the policy is asked, as the reference page says it."""

    @property
    def summary(self) -> str:
        return (self.handler.__doc__ or "").partition("\n")[0].rstrip(".")

    @property
    def segments(self) -> tuple[str, ...]:
        return tuple(self.path.strip("/").split("/"))

    def body_for(self, version: str) -> type[Any] | None:
        return self.body_13 if version == "0.13" and self.body_13 is not None else self.body

    def answer_for(self, version: str) -> Any:
        return self.answer_13 if version == "0.13" and self.answer_13 is not None else self.answer


_BRANCH: Final = QueryParameter("branch", "branch to read; `main` without it")
_SNAPSHOT: Final = QueryParameter("snapshot", "commit to read instead of a branch")

_TYPED: Final = QueryParameter("typed", "with the values of the Python client", "boolean")

_PAGES: Final = (
    QueryParameter("page_token", "continues the page that returned it"),
    QueryParameter("limit", "most changes of a page, 1 to 8192; 1000 without it", "integer"),
    QueryParameter("kind", "only `node` or `edge`", repeats=True),
    QueryParameter("type", "only this type", repeats=True),
    QueryParameter("op", "only `insert`, `update` or `delete`", repeats=True),
    QueryParameter("set", "an engine setting, NAME=VALUE; it is checked only", repeats=True),
)

ROUTES: Final = (
    # -- the server ---------------------------------------------------------------------
    Route(
        "GET", "/healthz", "health", "health", state.health, v07.HealthOutput,
        scope=Scope.PUBLIC, action="none",
    ),
    Route(
        "GET", "/readyz", "ready", "health", state.ready, v07.ReadyOutput,
        statuses=(503,), scope=Scope.PUBLIC, action="none",
    ),
    Route(
        "GET", "/.well-known/oauth-protected-resource", "oauthProtectedResource", "health",
        state.protected_resource, statuses=(404,), scope=Scope.PUBLIC, contracts=ONLY_13,
        action="none",
    ),
    Route(
        "GET", "/graphs", "listGraphs", "management", state.list_graphs,
        v07.GraphListResponse, v13.GraphListResponse,
        statuses=(403, 405), scope=Scope.SERVER, action="`graph_list` on the server",
    ),
    Route(
        "GET", "/graphs/discovery", "discoverGraphs", "management", state.discover_graphs,
        statuses=(403,), scope=Scope.SERVER, contracts=ONLY_13, action="none",
    ),
    Route(
        "GET", "/caller", "getCaller", "management", state.caller, v07.CallerOutput,
        scope=Scope.SERVER, contracts=ONLY_07, action="none; a token if the server has tokens",
    ),
    Route(
        "GET", "/session", "getSession", "management", state.session, v13.SessionOutput,
        scope=Scope.SERVER, contracts=ONLY_13,
        action="none; graphs of several are shown with `graph_list`",
    ),
    Route(
        "GET", "/metrics", "metrics", "management", state.metrics, media="text/plain",
        scope=Scope.SERVER, action="none; names of graphs are shown with `graph_list`",
    ),
    # -- the cluster --------------------------------------------------------------------
    Route(
        "POST", "/cluster/plan", "planDeployment", "cluster", deployments.plan,
        cluster.PlanOutput, body=PlanRequest, body_bytes=DEPLOYMENT_BODY_BYTES,
        statuses=(400, 403, 404, 409), scope=Scope.SERVER, contracts=ONLY_13,
        action="`config_manage` on the server; `read` and `schema_apply(–, main)` on graphs "
        "whose schema changes, or that go",
    ),
    Route(
        "POST", "/cluster/deployments", "deploy", "cluster", deployments.deploy,
        cluster.DeploymentOutput, body=DeploymentRequest,
        body_bytes=DEPLOYMENT_BODY_BYTES, statuses=(202, 400, 403, 404, 409),
        scope=Scope.SERVER, contracts=ONLY_13, is_write=True, action="as `/cluster/plan`",
    ),
    Route(
        "GET", "/cluster/deployments", "getDeployments", "cluster", deployments.status,
        cluster.DeploymentStatusOutput, statuses=(403, 404, 409), scope=Scope.SERVER,
        contracts=ONLY_13, action="`config_manage` on the server",
    ),
    Route(
        "GET", "/cluster/deployments/{deployment_id}", "getDeployment", "cluster",
        deployments.find, cluster.DeploymentOutput, statuses=(400, 403, 404, 409),
        scope=Scope.SERVER, contracts=ONLY_13,
        action="`config_manage` on the server; none for one's own deployment",
    ),
    # -- queries ------------------------------------------------------------------------
    Route(
        "POST", "/query", "query", "queries", queries.query, v07.ReadOutput, v13.ReadOutput,
        body=requests.QueryRequest, statuses=(400, 403, 404), action="`read(branch)`",
    ),
    Route(
        "POST", "/read", "read", "queries", queries.read, v07.ReadOutput,
        body=requests.ReadRequest, statuses=(400, 403, 404), contracts=ONLY_07,
        successor="/query", action="`read(branch)`",
    ),
    Route(
        "POST", "/explain", "explain", "queries", queries.explain, v07.ExplainOutput,
        body=requests.ExplainRequest, statuses=(400, 403, 404), action="`read(branch)`",
    ),
    Route(
        "POST", "/check", "check", "queries", queries.check, v13.CheckOutput,
        body=requests.CheckRequest, statuses=(400, 403, 404), contracts=ONLY_13,
        action="`read(branch)`",
    ),
    Route(
        "GET", "/queries", "list_queries", "queries", queries.list_queries,
        v07.QueriesCatalogOutput, statuses=(403,), action="`read(main)`",
    ),
    Route(
        "POST", "/queries/{name}", "invoke_query", "queries", queries.invoke,
        (v07.ReadOutput, v07.ChangeOutput),
        (v13.ReadOutput, v13.ChangeOutput),
        body=requests.InvokeStoredQueryRequest, body_required=False,
        statuses=(400, 403, 404, 409, 429), is_write=True,
        action="`invoke_query`, then `read(branch)` or `change(branch)`",
    ),
    Route(
        "POST", "/queries/{name}/if-graph-commit", "invokeQueryIfGraphCommit", "queries",
        queries.invoke_if, v13.ChangeOutput, body=requests.InvokeStoredQueryRequest,
        body_required=False, statuses=(400, 403, 404, 409, 412, 429), contracts=ONLY_13,
        is_write=True, action="`invoke_query`, then `change(branch)`",
    ),
    # -- mutations ----------------------------------------------------------------------
    Route(
        "POST", "/mutate", "mutate", "mutations", queries.mutate,
        v07.ChangeOutput, v13.ChangeOutput,
        body=requests.ChangeRequest, body_13=requests.MutateRequest,
        statuses=(400, 403, 404, 409, 429), is_write=True,
        action="`change(branch)`; a branch statement: `branch_create`, `branch_delete`, `branch_merge`",
    ),
    Route(
        "POST", "/change", "change", "mutations", queries.mutate, v07.ChangeOutput,
        body=requests.ChangeRequest, statuses=(400, 403, 404, 409, 429), contracts=ONLY_07,
        is_write=True, successor="/mutate", action="`change(branch)`",
    ),
    Route(
        "POST", "/mutate/if-graph-commit", "mutateIfGraphCommit", "mutations", queries.mutate_if,
        v13.ChangeOutput, body=requests.MutateRequest,
        statuses=(400, 403, 404, 409, 412, 429), contracts=ONLY_13, is_write=True,
        action="`change(branch)`",
    ),
    Route(
        "POST", "/load", "load", "mutations", loads.load, v07.IngestOutput, v13.IngestOutput,
        body=requests.IngestRequest, body_bytes=LOAD_BODY_BYTES,
        statuses=(400, 403, 404, 409, 429), is_write=True,
        action="`change(branch)`; `branch_create(from, branch)` if the branch is made",
    ),
    Route(
        "POST", "/ingest", "ingest", "mutations", loads.load, v07.IngestOutput,
        body=requests.IngestRequest, body_bytes=LOAD_BODY_BYTES,
        statuses=(400, 403, 404, 409, 429), contracts=ONLY_07, is_write=True, successor="/load",
        action="as `/load`",
    ),
    Route(
        "POST", "/load/parts", "loadParts", "mutations", loads.load_parts,
        v07.IngestOutput, v13.IngestOutput, body=bytes, body_media=MSGPACK,
        body_bytes=LOAD_BODY_BYTES, statuses=(204, 400, 403, 404, 409, 429), is_write=True,
        query=(
            QueryParameter("upload", "name of a body that is sent in several requests"),
            QueryParameter("offset", "where this part begins", "integer"),
            QueryParameter("branch", "branch that the load will write; `main` without it"),
            QueryParameter("last", "the body is complete: load it", "boolean"),
        ),
        action="as `/load`",
    ),
    Route(
        "POST", "/load/ndjson", "loadNdjson", "mutations", loads.load_ndjson,
        v13.GraphBatchLoadOutput, body=bytes, body_media=NDJSON, body_bytes=LOAD_BODY_BYTES,
        statuses=(400, 403, 404, 409, 429), contracts=ONLY_13, is_write=True,
        query=(
            QueryParameter("branch", "branch to load into; `main` without it"),
            QueryParameter("from", "branch to create a missing branch from"),
            QueryParameter("mode", "`merge`, `append`, `overwrite` or `patch`"),
        ),
        action="as `/load`",
    ),
    # -- state --------------------------------------------------------------------------
    Route(
        "GET", "/permissions", "getPermissions", "management", state.permissions,
        v13.PermissionsOutput, contracts=ONLY_13,
        query=(_BRANCH, QueryParameter("target", "branch to merge into; `main` without it")),
        statuses=(400,),
        action="`read(branch)`, `change(branch)`, `branch_merge(branch, target)`; the answer tells",
    ),
    Route(
        "GET", "/snapshot", "getSnapshot", "snapshots", state.snapshot,
        v07.SnapshotOutput, v13.SnapshotOutput,
        query=(_BRANCH, _SNAPSHOT), statuses=(400, 403, 404), action="`read(branch)`",
    ),
    Route(
        "POST", "/export", "export", "queries", loads.export, media=NDJSON,
        body=requests.ExportRequest, statuses=(400, 403, 404), action="`export(branch)`",
    ),
    Route(
        "GET", "/schema", "getSchema", "schema", state.schema,
        v07.SchemaOutput, v13.SchemaOutput,
        query=(
            _SNAPSHOT,
            QueryParameter("compiled", "with the compiled schema", "boolean"),
        ),
        statuses=(400, 403, 404), action="`read`",
    ),
    Route(
        "POST", "/schema/plan", "planSchema", "schema", state.plan_schema,
        v07.SchemaPlanOutput, body=requests.SchemaPlanRequest, statuses=(400, 403),
        action="`read`",
    ),
    Route(
        "POST", "/scan", "scan", "queries", scans.scan, media=ARROW_STREAM,
        body=requests.ScanRequest, statuses=(400, 403, 404), action="`read(branch)`",
    ),
    Route(
        "POST", "/schema/apply", "applySchema", "schema", state.apply_schema,
        v07.SchemaApplyOutput, body=requests.SchemaApplyRequest,
        statuses=(400, 403, 409, 429), contracts=ONLY_07, is_write=True,
        action="`schema_apply(–, main)`",
    ),
    Route(
        "GET", "/status", "getStatus", "management", state.status, v07.StatusOutput,
        query=(_BRANCH,), statuses=(403, 404), action="`read(branch)`",
    ),
    Route(
        "GET", "/entities/{type_name}/{entity_id}", "getEntity", "snapshots", state.entity,
        v07.EntityOutput, query=(_BRANCH, _SNAPSHOT, _TYPED), statuses=(400, 403, 404),
        action="`read(branch)`",
    ),
    Route(
        "GET", "/entities/{type_name}/{entity_id}/history", "getEntityHistory", "commits",
        state.entity_history, v07.EntityHistoryOutput, query=(_BRANCH, _TYPED), statuses=(400, 403, 404),
        action="`read(branch)`",
    ),
    Route(
        "GET", "/blob", "getBlob", "snapshots", blobs.blob, media="application/octet-stream",
        query=(
            QueryParameter("entity", "`node` or `edge`, if it must be one of them"),
            QueryParameter("type", "name of the type", required=True),
            QueryParameter("id", "id of the node or edge", required=True),
            QueryParameter("property", "name of the Blob property", required=True),
            _BRANCH,
            _SNAPSHOT,
        ),
        statuses=(206, 302, 304, 400, 403, 404, 412, 416), action="`read(branch)`",
    ),
    # -- branches -----------------------------------------------------------------------
    Route(
        "GET", "/branches", "listBranches", "branches", branches.list_branches,
        v07.BranchListOutput, statuses=(403,), action="`read`",
    ),
    Route(
        "POST", "/branches", "createBranch", "branches", branches.create_branch,
        v07.BranchCreateOutput, body=requests.BranchCreateRequest,
        statuses=(400, 403, 404, 409, 429), is_write=True, action="`branch_create(from, name)`",
    ),
    Route(
        "DELETE", "/branches/{branch}", "deleteBranch", "branches", branches.delete_branch,
        v07.BranchDeleteOutput, statuses=(400, 403, 404, 409, 429), is_write=True,
        action="`branch_delete(–, branch)`",
    ),
    Route(
        "POST", "/branches/merge", "mergeBranches", "branches", branches.merge_branches,
        v07.BranchMergeOutput, v13.BranchMergeOutput, body=requests.BranchMergeRequest,
        statuses=(400, 403, 404, 409, 429), is_write=True,
        action="`branch_merge(source, target)`; then `branch_delete(–, source)` if asked for",
    ),
    Route(
        "POST", "/branches/{branch}/reset", "resetBranch", "branches", branches.reset_branch,
        v07.AppliedCommitOutput, body=requests.BranchResetRequest,
        statuses=(400, 403, 404, 409, 429), is_write=True,
        action="`change(branch)`, and `read` of the branch of `ref`",
    ),
    Route(
        "POST", "/revert", "revertCommit", "branches", branches.revert,
        v07.AppliedCommitOutput, body=requests.ApplyCommitRequest,
        statuses=(400, 403, 404, 409, 429), is_write=True,
        action="`change(branch)`, and `read` of the branch of `ref`",
    ),
    Route(
        "POST", "/cherry-pick", "cherryPickCommit", "branches", branches.cherry_pick,
        v07.AppliedCommitOutput, body=requests.ApplyCommitRequest,
        statuses=(400, 403, 404, 409, 429), is_write=True,
        action="`change(branch)`, and `read` of the branch of `ref`",
    ),
    Route(
        "GET", "/tags", "listTags", "branches", branches.list_tags, v07.TagListOutput,
        statuses=(403,), action="`read`",
    ),
    Route(
        "POST", "/tags", "createTag", "branches", branches.create_tag, v07.TagOutput,
        body=requests.TagCreateRequest, statuses=(400, 403, 404, 409, 429), is_write=True,
        action="`change(main)`",
    ),
    Route(
        "DELETE", "/tags/{tag}", "deleteTag", "branches", branches.delete_tag,
        v07.TagDeleteOutput, statuses=(400, 403, 404, 429), is_write=True,
        action="`change(main)`",
    ),
    # -- history ------------------------------------------------------------------------
    Route(
        "GET", "/commits", "listCommits", "commits", state.list_commits,
        v07.CommitListOutput, v13.CommitListOutput,
        query=(
            _BRANCH,
            QueryParameter("actor", "only commits of this actor"),
            QueryParameter("operation", "only commits of this operation"),
            QueryParameter("since", "time or commit to begin with; `@N` is in microseconds"),
            QueryParameter("until", "time or commit to end with; `@N` is in microseconds"),
            QueryParameter("limit", "most commits to return", "integer"),
            QueryParameter("merged", "also commits that merges brought", "boolean"),
            QueryParameter("reverse", "`limit` counts from the oldest commit", "boolean"),
            QueryParameter("number", "only the commit of this number on the branch", "integer"),
        ),
        statuses=(400, 403, 404), action="`read(branch)`",
    ),
    Route(
        "GET", "/commits/{commit_id}", "getCommit", "commits", state.commit,
        v07.CommitOutput, v13.CommitOutput, statuses=(400, 403, 404), action="`read`",
    ),
    Route(
        "POST", "/diff", "diff", "commits", feed.diff, v07.DiffOutput,
        body=requests.DiffRequest, statuses=(400, 403, 404), action="`read` of both branches",
    ),
    Route(
        "GET", "/changes", "listChanges", "commits", feed.changes, v07.ChangesOutput,
        query=(
            _BRANCH,
            QueryParameter("since", "cursor or commit; the beginning without it"),
            QueryParameter("limit", "most commits to return", "integer"),
            QueryParameter("rows", "with the values before and after", "boolean"),
            QueryParameter("type_name", "only this type", repeats=True),
            QueryParameter("kind", "only `node` or `edge`", repeats=True),
            QueryParameter("op", "only `insert`, `update` or `delete`", repeats=True),
            QueryParameter("details", "with commit and cursor of each", "boolean"),
            QueryParameter("values", "as an Arrow stream: the changed rows of this type"),
        ),
        statuses=(400, 403, 404, 410), contracts=ONLY_07, action="`read(branch)`",
    ),
    Route(
        "GET", "/changes", "pollChanges", "commits", polls.poll, v13.ChangeFeedOutput,
        query=(
            _BRANCH,
            QueryParameter("cursor", "cursor of the last page of an earlier poll"),
            QueryParameter("start", "`now`, `beginning` or `after:<commit>`; `now` without it"),
            *_PAGES,
        ),
        statuses=(400, 403, 404, 409, 410, 413), contracts=ONLY_13, action="`read(branch)`",
    ),
    Route(
        "GET", "/commits/{commit_id}/changes", "getCommitChanges", "commits",
        polls.commit_changes, v13.CommitDiffOutput, query=_PAGES,
        statuses=(400, 404, 409, 410, 413), contracts=ONLY_13,
        action="`read` of its branch; 404 if denied",
    ),
    Route(
        "POST", "/changes/baseline", "changesBaseline", "commits", polls.baseline, media=NDJSON,
        body=requests.BaselineRequest, statuses=(400, 403, 404), contracts=ONLY_13,
        action="`export(branch)`",
    ),
    # -- runs of an earlier version -----------------------------------------------------
    Route(
        "GET", "/runs", "listRuns", "management", state.list_runs, v07.RunListOutput,
        contracts=ONLY_07, is_documented=False, action="`read`",
    ),
    Route(
        "GET", "/runs/{run_id}", "getRun", "management", state.find_run,
        contracts=ONLY_07, is_documented=False, action="`read`",
    ),
    Route(
        "POST", "/runs/{run_id}/abort", "abortRun", "management", state.find_run,
        contracts=ONLY_07, is_documented=False, action="`read`",
    ),
    Route(
        "POST", "/runs/{run_id}/publish", "publishRun", "management", state.find_run,
        contracts=ONLY_07, is_documented=False, action="`read`",
    ),
)  # fmt: skip
