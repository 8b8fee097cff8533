"""One valid call of every route and of every MCP tool, and what a route asks the policy.

A new route needs an entry in `CALLS`, a new tool one in `TOOL_CALLS`; `tests/server/test_bypass.py` fails
without them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from omnigraph.graph.gate import Action
from omnigraph.server.routes import ROUTES, Route, Scope

SCHEMA = """\
node Author {
    slug: String @key
    born: I32?
    photo: Blob?
}
node Book {
    isbn: String @key
}
edge Wrote: Author -> Book
"""

ROWS = (
    '{"type":"Author","data":{"slug":"ada","born":1815,"photo":"base64:SGVsbG8="}}\n'
    '{"type":"Author","data":{"slug":"bob"}}\n'
    '{"type":"Book","data":{"isbn":"b1"}}\n'
    '{"edge":"Wrote","from":"ada","to":"b1"}\n'
)

LIB = """\
query all_authors() { match { $a: Author } return { $a.slug } order { $a.slug asc } }
query add_author($slug: String) { insert Author { slug: $slug } }
"""

Asked = tuple[Action, str | None, str | None]
"""An action, its branch and its target branch."""

R = Action.READ
READ, CHANGE = "all_authors", "add_author"
WRITE = {"query": LIB, "name": CHANGE, "params": {"slug": "<new>"}, "branch": "<branch>"}
LINE = '{"type":"Author","data":{"slug":"<new>"}}\n'


@dataclass(frozen=True, slots=True)
class Call:
    """A request. `<branch>`, `<head>`, `<new>` stand for a branch, its newest commit and a new name."""

    operation: str
    asks: tuple[Asked, ...] = ()
    """What the policy is asked when everything is allowed."""
    path: dict[str, str] = field(default_factory=dict)
    query: dict[str, str] = field(default_factory=dict)
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    status: int = 200
    denied: int = 403
    only: str | None = None
    """The contract in which the call has this form."""

    def routes(self) -> Iterator[tuple[Route, str]]:
        """The routes of the operation, each with a contract."""
        for route in ROUTES:
            if route.operation == self.operation:
                for version in sorted(route.contracts):
                    if self.only in (None, version):
                        yield route, version


def _calls() -> Iterable[Call]:
    # -- the server -------------------------------------------------------------------------
    yield Call("health")
    yield Call("ready")
    yield Call("oauthProtectedResource", status=404)
    yield Call("listGraphs", ((Action.GRAPH_LIST, None, None),))
    yield Call("discoverGraphs", status=403)
    yield Call("getCaller", denied=200)
    yield Call("getSession", ((Action.GRAPH_LIST, None, None),), denied=200)
    yield Call("metrics", ((Action.GRAPH_LIST, None, None),), denied=200)

    # -- the cluster, which the server of these calls does not have (test_deployments.py) ----
    bundle = {
        "version": 1,
        "canonical_root": "/",
        "config_digest": "",
        "config_semantics": "{}",
        "resources": {},
        "sources": {},
    }
    name = "01ARZ3NDEKTSV4RRFFQ69G5FAV:1:01ARZ3NDEKTSV4RRFFQ69G5FAV"
    plan = {"deployment": bundle}
    yield Call("planDeployment", body=plan, status=404, denied=404)
    yield Call("deploy", body=plan | {"deployment_id": name}, status=404, denied=404)
    yield Call("getDeployments", status=404, denied=404)
    yield Call("getDeployment", path={"deployment_id": name}, status=404, denied=404)

    # -- queries ----------------------------------------------------------------------------
    read = {"query": LIB, "name": READ, "branch": "<branch>"}
    on_branch: Asked = (R, "<branch>", None)
    yield Call("query", (on_branch,), body=read)
    yield Call("query", ((R, "main", None),), body={"query": LIB, "name": READ, "branch": " main "})
    snapshot = {"query": LIB, "name": READ, "snapshot": "<head>"}
    yield Call("query", (on_branch,), body=snapshot)
    yield Call("query", ((R, None, None),), body={"query": "branch list"}, only="0.13")
    old = {"query_source": LIB, "query_name": READ, "branch": "<branch>"}
    yield Call("read", (on_branch,), body=old)
    yield Call("explain", (on_branch,), body=read)
    yield Call("check", (on_branch,), body={"query": LIB, "branch": "<branch>"})
    told: tuple[Asked, ...] = (
        on_branch,
        (Action.CHANGE, "<branch>", None),
        (Action.BRANCH_MERGE, "<branch>", "main"),
    )
    yield Call("getPermissions", told, query={"branch": "<branch>"}, denied=200)
    yield Call("list_queries", ((R, "main", None),))
    invoked: Asked = (Action.INVOKE_QUERY, None, None)
    yield Call(
        "invoke_query",
        (invoked, on_branch),
        {"name": READ},
        body={"branch": "<branch>"},
        denied=404,
    )
    change: Asked = (Action.CHANGE, "<branch>", None)
    stored = {"branch": "<branch>", "params": {"slug": "<new>"}}
    yield Call("invoke_query", (invoked, change), {"name": CHANGE}, body=stored, denied=404)
    condition = {"Omnigraph-If-Graph-Commit": "<head>"}
    yield Call(
        "invokeQueryIfGraphCommit",
        (invoked, change),
        {"name": CHANGE},
        body=stored,
        headers=condition,
        denied=404,
    )

    # -- changes ----------------------------------------------------------------------------
    yield Call("mutate", (change,), body=WRITE)
    yield Call("change", (change,), body=WRITE)
    yield Call("mutateIfGraphCommit", (change,), body=WRITE, headers=condition)
    create: Asked = (Action.BRANCH_CREATE, "<branch>", "<new>")
    statement = 'branch create "<new>" from "<branch>"'
    yield Call("mutate", (create,), body={"query": statement}, only="0.13")
    statement = 'branch delete "<branch>"'
    delete: Asked = (Action.BRANCH_DELETE, None, "<branch>")
    yield Call("mutate", (delete,), body={"query": statement}, only="0.13")
    merge: Asked = (Action.BRANCH_MERGE, "<branch>", "main")
    yield Call("mutate", (merge,), body={"query": 'branch merge "<branch>"'}, only="0.13")
    for operation in ("load", "ingest"):
        yield Call(operation, (change,), body={"data": LINE, "branch": "<branch>"})
        forked = {"data": LINE, "branch": "<new>", "from": "<branch>"}
        yield Call(operation, (create, (Action.CHANGE, "<new>", None)), body=forked)
    yield Call("loadNdjson", (change,), query={"branch": "<branch>"}, body=LINE)
    parts = {"parts": [{"json": LINE.encode()}], "branch": "<branch>"}
    yield Call("loadParts", (change,), body=parts)
    yield Call(
        "loadParts",
        (create, (Action.CHANGE, "<new>", None)),
        body=parts | {"branch": "<new>", "from": "<branch>"},
    )
    yield Call("loadNdjson", (change,), query={"branch": "<branch>"}, body="\n")

    # -- state ------------------------------------------------------------------------------
    branch = {"branch": "<branch>"}
    ada = {"type_name": "Author", "entity_id": "ada"}
    yield Call("getSnapshot", (on_branch,), query=branch)
    yield Call("export", ((Action.EXPORT, "<branch>", None),), body=branch)
    yield Call("getSchema", ((R, None, None),))
    yield Call(
        "applySchema",
        ((Action.SCHEMA_APPLY, None, "main"),),
        body={"schema_source": SCHEMA},
        status=409,
    )
    yield Call("planSchema", ((R, None, None),), body={"schema_source": SCHEMA})
    yield Call("scan", (on_branch,), body={"type": "Author", "branch": "<branch>"})
    yield Call("getStatus", (on_branch,), query=branch)
    yield Call("getEntity", (on_branch,), ada, query=branch)
    yield Call("getEntity", (on_branch,), ada, query={"snapshot": "<head>"})
    yield Call("getEntityHistory", (on_branch,), ada, query=branch)
    photo = {"entity": "node", "type": "Author", "id": "ada", "property": "photo"}
    yield Call("getBlob", (on_branch,), query=photo | branch)
    yield Call("getBlob", (on_branch,), query=photo | {"snapshot": "<head>"})

    # -- branches ---------------------------------------------------------------------------
    yield Call("listBranches", ((R, None, None),))
    yield Call("createBranch", (create,), body={"name": "<new>", "from": "<branch>"})
    yield Call("deleteBranch", (delete,), {"branch": "<branch>"})
    yield Call("mergeBranches", (merge,), body={"source": "<branch>"})
    yield Call("mergeBranches", (merge,), body={"source": "<branch>", "dry_run": True})
    both = {"source": "<branch>", "delete_branch": True}
    yield Call("mergeBranches", (merge, delete), body=both)

    undone = {"ref": "<head>", "branch": "<branch>"}
    yield Call("revertCommit", (change, on_branch), body=undone)
    yield Call("cherryPickCommit", (change, on_branch), body=undone | {"dry_run": True})
    applied = {"ref": "main"}
    yield Call("resetBranch", (change, (R, "main", None)), {"branch": "<branch>"}, body=applied)
    yield Call("listTags", ((R, None, None),))
    on_main: Asked = (Action.CHANGE, "main", None)
    yield Call("createTag", (on_main,), body={"name": "<new>", "ref": "<head>"})
    yield Call("deleteTag", (on_main,), {"tag": "<new>"}, status=404)

    # -- history ----------------------------------------------------------------------------
    yield Call("listCommits", (on_branch,), query=branch)
    yield Call("listCommits", ((R, None, None),), only="0.7")
    yield Call("listCommits", ((R, "main", None),), only="0.13")
    yield Call("getCommit", ((R, None, None),), {"commit_id": "<head>"})
    sides = {"from": "main", "to": "<branch>"}
    yield Call("diff", ((R, "main", None), on_branch), body=sides)
    yield Call("listChanges", (on_branch,), query=branch)
    yield Call("pollChanges", (on_branch,), query=branch)
    yield Call("getCommitChanges", (on_branch,), {"commit_id": "<head>"}, denied=404)
    yield Call("changesBaseline", ((Action.EXPORT, "<branch>", None),), body=branch)
    yield Call("listRuns", ((R, None, None),))
    for operation in ("getRun", "abortRun", "publishRun"):
        yield Call(operation, ((R, None, None),), {"run_id": "x"}, status=404)


CALLS = tuple(_calls())


def unlisted() -> list[str]:
    """What `CALLS` and the route table do not have in common, as advice."""
    listed = {call.operation for call in CALLS}
    known = {route.operation for route in ROUTES}
    return [
        *(
            f"add a valid call of '{name}' to tests/server/calls.py"
            for name in sorted(known - listed)
        ),
        *(f"remove '{name}' from tests/server/calls.py" for name in sorted(listed - known)),
    ]


def is_public(route: Route) -> bool:
    return route.scope is Scope.PUBLIC


_QUESTION = {"query": LIB, "name": READ}
MUTATION = {"query": 'query q() { update Author set { born: 3 } where slug = "ada" }'}
TOOL_CALLS: dict[str, dict[str, Any] | None] = {
    "health": {},
    "snapshot": {},
    "query": _QUESTION,
    "explain": _QUESTION,
    "schema_get": {},
    "branches_list": {},
    "graphs_list": None,
    "commits_list": {},
    "commits_get": {"commitId": "<head>"},
    "commits_changes": {"commitId": "<head>"},
    "changes_poll": {"start": "beginning"},
    "diff": {"from": "main~1", "to": "<branch>", "rows": True},
    "entity_get": {"type": "Author", "id": "ada"},
    "entity_history": {"type": "Author", "id": "ada", "branch": "<branch>"},
    "mutate": MUTATION,
    "load": {
        "branch": "<branch>",
        "mode": "append",
        "data": '{"type":"Book","data":{"isbn":"<new>"}}',
    },
    "branches_create": {"name": "<new>-c"},
    "branches_delete": {"name": "<new>-c"},
    "branches_merge": {"source": "<branch>", "dryRun": True},
    "revert": {"ref": "<head>", "branch": "<branch>"},
    "read": {"querySource": LIB, "queryName": READ},
    "change": {"querySource": MUTATION["query"], "branch": "<branch>"},
    "ingest": {"data": '{"type":"Book","data":{"isbn":"<new>-i"}}', "branch": "<branch>"},
    "schema_apply": {"schemaSource": SCHEMA},
}
"""Arguments for every tool; None where the policy allows it nowhere."""
