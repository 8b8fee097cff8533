"""The calls that the official clients' own test suites make, made by two small clients of ours.

The first is the client of contract 0.7 on a server for one graph, the second that of contract 0.13 on a server
for two. Both refuse what those clients refuse: an empty document, an answer without the contract's header.
"""

from __future__ import annotations

import base64
import json
import time
from urllib.parse import quote

import pytest

import omnigraph as og
from tests.server.serving import H, serving

SCHEMA = """\
node Person {
    name: String @key
    age: I32?
    avatar: Blob?
}
node Company {
    name: String @key
}
edge Knows: Person -> Person {
    since: Date?
}
edge WorksAt: Person -> Company
"""
AVATAR = b"Hello World"
ROWS = "".join(
    json.dumps(record) + "\n"
    for record in (
        {
            "type": "Person",
            "data": {
                "name": "Alice",
                "age": 25,
                "avatar": "base64:" + base64.b64encode(AVATAR).decode(),
            },
        },
        {"type": "Person", "data": {"name": "Bob", "age": 30}},
        {"type": "Person", "data": {"name": "Cara", "age": 35}},
        {"type": "Person", "data": {"name": "Dan", "age": 40}},
        {"type": "Company", "data": {"name": "Acme"}},
        {"type": "Company", "data": {"name": "Birch"}},
        {"edge": "Knows", "from": "Alice", "to": "Bob", "data": {"since": "2020-01-01"}},
        {"edge": "Knows", "from": "Bob", "to": "Cara"},
        {"edge": "Knows", "from": "Cara", "to": "Dan"},
        {"edge": "WorksAt", "from": "Alice", "to": "Acme"},
        {"edge": "WorksAt", "from": "Bob", "to": "Birch"},
    )
)
QUERIES = """\
query find_person($name: String) { match { $p: Person { name: $name } } return { $p.name as name, $p.age as age } }
query people() { match { $p: Person } return { $p.name, $p.age } order { $p.name asc } }
query add_person($name: String, $age: I32) { insert Person { name: $name, age: $age } }
query set_age($name: String, $age: I32) { update Person set { age: $age } where name = $name }
query add_friend($name: String, $friend: String) {
    insert Person { name: $friend }
    insert Knows { from: $name, to: $friend }
}
"""
ACTIONS = (
    "read, export, change, schema_apply, branch_create, branch_delete, branch_merge, invoke_query"
)
GRAPH_POLICY = f"""\
version: 1
groups:
  admins: [default]
  readers: [reader]
rules:
  - id: all
    allow: {{actors: {{group: admins}}, actions: [{ACTIONS}]}}
  - id: reads
    allow: {{actors: {{group: readers}}, actions: [read]}}
"""
SERVER_POLICY = """\
version: 1
groups:
  admins: [default]
rules:
  - id: config
    allow: {actors: {group: admins}, actions: [config_manage]}
  - id: list
    allow: {actors: {group: admins}, actions: [graph_list]}
"""
TOKENS = {
    "OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": '{"default": "ci-token", "reader": "reader-token"}'
}


def graph_at(path):
    with og.init(path, schema=SCHEMA) as graph:
        graph.load(ROWS.encode(), "overwrite")
    return path


class Failed(Exception):
    """An answer that is not a success."""

    def __init__(self, answer):
        super().__init__(answer.text)
        self.status = answer.status_code
        self.body = answer.json()
        self.code = self.body.get("code")


class OldClient:
    """Flat paths, no version header."""

    def __init__(self, server, token=None):
        self._http = server.client
        self._headers = {"Accept": "application/json, application/x-ndjson"}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"

    def call(self, method, path, body=None, query=None):
        given = {} if body is None else {"json": body}
        answer = self._http.request(method, path, params=query, headers=self._headers, **given)
        if not answer.is_success:
            raise Failed(answer)
        assert answer.status_code != 204
        assert answer.headers.get("content-length") != "0"
        if answer.headers["content-type"].startswith("application/x-ndjson"):
            return [json.loads(line) for line in answer.text.split("\n") if line.strip()]
        return answer.json()


@pytest.fixture(scope="module", params=["open", "with a token and a policy"])
def old(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("old")
    root = graph_at(folder / "g.omni")
    if request.param == "open":
        with serving(folder, root, "--unauthenticated") as server:
            yield OldClient(server)
        return
    (folder / "policy.yaml").write_text(GRAPH_POLICY)
    (folder / "omnigraph.yaml").write_text("policy: {file: policy.yaml}\n")
    options = ("--config", folder / "omnigraph.yaml")
    env = {"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": '{"default": "ci-token", "reader": "r"}'}
    with serving(folder, root, *options, env=env) as server:
        yield OldClient(server, "ci-token")
        with pytest.raises(Failed) as refused:
            OldClient(server, "wrong").call("GET", "/branches")
        assert (refused.value.status, refused.value.code) == (401, "unauthorized")


@pytest.mark.acceptance("U-136", "U-166", partly="the TypeScript client itself, and clusters")
def test_the_suite_of_the_old_client(old):
    call = old.call
    assert call("GET", "/healthz").keys() >= {"status", "version"}
    state = call("GET", "/snapshot")
    assert state.keys() >= {"branch", "manifest_version", "tables"}
    counts = {table["table_key"]: table["row_count"] for table in state["tables"]}
    assert counts == {"node:Person": 4, "node:Company": 2, "edge:Knows": 3, "edge:WorksAt": 2}
    assert state["tables"][0].keys() >= {"table_path", "table_version", "table_branch"}

    made = call("POST", "/branches", {"name": "a b/c".replace(" ", "-"), "from": "main"})
    assert made.keys() >= {"uri", "from", "name", "actor_id"}
    with pytest.raises(Failed) as again:
        call("POST", "/branches", {"name": made["name"]})
    assert (again.value.status, again.value.code) == (409, "conflict")
    assert made["name"] in call("GET", "/branches")["branches"]

    read = {"query_source": QUERIES, "query_name": "people"}
    found = call("POST", "/read", read)
    assert found.keys() >= {"query_name", "target", "row_count", "columns", "rows"}
    assert [row["p.name"] for row in found["rows"]] == ["Alice", "Bob", "Cara", "Dan"]
    one = {"query_source": QUERIES, "query_name": "find_person", "params": {"name": "Alice"}}
    assert call("POST", "/read", one | {"branch": None, "snapshot": None})["rows"] == [
        {"name": "Alice", "age": 25}
    ]
    change = {"query_source": QUERIES, "query_name": "add_person", "branch": made["name"]}
    done = call("POST", "/change", change | {"params": {"name": "Eve", "age": 28}})
    assert done["affected_nodes"] == 1
    assert done.keys() >= {"branch", "query_name", "affected_edges", "actor_id"}
    merged = call("POST", "/branches/merge", {"source": made["name"], "target": "main"})
    assert merged.keys() >= {"source", "target", "outcome", "actor_id"}
    again = call("POST", "/branches/merge", {"source": made["name"]})
    assert again["outcome"] == "already_up_to_date"
    deleted = call("DELETE", f"/branches/{quote(made['name'], safe='')}")
    assert deleted["name"] == made["name"]
    with pytest.raises(Failed) as gone:
        call("DELETE", f"/branches/{quote(made['name'], safe='')}")
    assert (gone.value.status, gone.value.code) == (404, "not_found")

    data = '{"type":"Person","data":{"name":"Fay","age":33}}\n'
    loaded = call(
        "POST", "/ingest", {"data": data, "branch": "loaded", "from": "main", "mode": "merge"}
    )
    assert loaded["branch_created"] is True
    assert loaded["tables"] == [{"table_key": "node:Person", "rows_loaded": 1}]
    assert loaded.keys() >= {"uri", "branch", "base_branch", "mode", "actor_id"}
    call("DELETE", "/branches/loaded")

    commits = call("GET", "/commits")["commits"]
    assert commits[0].keys() >= {
        "graph_commit_id", "manifest_branch", "manifest_version", "parent_commit_id",
        "merged_parent_commit_id", "actor_id", "created_at",
    }  # fmt: skip
    newest = commits[-1]["graph_commit_id"]
    assert call("GET", f"/commits/{newest}")["graph_commit_id"] == newest
    with pytest.raises(Failed) as bogus:
        call("GET", "/commits/bogus")
    assert (bogus.value.status, bogus.value.code) == (404, "not_found")
    schema = call("GET", "/schema")["schema_source"]
    applied = call("POST", "/schema/apply", {"schema_source": schema})
    assert (applied["supported"], applied["applied"]) == (True, False)
    assert applied.keys() >= {"uri", "step_count", "manifest_version", "steps"}
    assert len(call("POST", "/export", {})) >= 4
    assert len(call("POST", "/export", {"type_names": ["Company"], "table_keys": []})) == 2
    assert call("GET", "/runs") == {"runs": []}
    for method, path in (
        ("GET", "/runs/x"),
        ("POST", "/runs/x/abort"),
        ("POST", "/runs/x/publish"),
    ):
        with pytest.raises(Failed) as missing:
            call(method, path)
        assert missing.value.status == 404
    with pytest.raises(Failed) as broken:
        call("POST", "/read", {"query_source": "not a query"})
    assert (broken.value.status, broken.value.code) == (400, "bad_request")


class NewClient:
    """Nested paths and the version header. Every call asks `/healthz` first."""

    def __init__(self, server, token="ci-token", graph="alpha"):
        self._http = server.client
        self._bearer = {"Authorization": f"Bearer {token}"}
        self._graph = graph

    def send(self, method, path, body=None, *, query=None, headers=None, content=None):
        probe = self._http.head("/healthz")
        assert probe.is_success
        assert probe.headers["omnigraph-http-api"] == "0.13"
        given = self._bearer | H | (headers or {})
        if content is not None:
            given["Content-Type"] = "application/x-ndjson"
        answer = self._http.request(
            method,
            path if path.startswith("/") else f"/graphs/{self._graph}/{path}",
            params=query,
            headers=given,
            **({"json": body} if body is not None else {"content": content}),
        )
        assert answer.headers["omnigraph-http-api"] == "0.13"
        return answer

    def call(self, method, path, body=None, **more):
        answer = self.send(method, path, body, **more)
        if not answer.is_success:
            raise Failed(answer)
        assert answer.content
        if answer.headers["content-type"].startswith("application/x-ndjson"):
            return [json.loads(line) for line in answer.text.splitlines()]
        return answer.json()

    def query(self, name, params=None, branch="main"):
        body = {"query": QUERIES, "name": name, "params": params or {}, "branch": branch}
        return self.call("POST", "query", body)

    def mutate(self, name, params, branch="main"):
        body = {"query": QUERIES, "name": name, "params": params, "branch": branch}
        return self.call("POST", "mutate", body)

    def branch(self, name):
        self.call("POST", "branches", {"name": name})
        return name


@pytest.fixture(scope="module")
def new_server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("new")
    (folder / "graph.policy.yaml").write_text(GRAPH_POLICY)
    (folder / "server.policy.yaml").write_text(SERVER_POLICY)
    (folder / "queries.gq").write_text(QUERIES)
    names = ("find_person", "add_person", "set_age", "add_friend")
    stored = "".join(f"      {name}: {{file: queries.gq}}\n" for name in names)
    text = "server:\n  policy: {file: server.policy.yaml}\ngraphs:\n"
    for graph in ("alpha", "beta"):
        graph_at(folder / f"{graph}.omni")
        text += f"  {graph}:\n    uri: {graph}.omni\n    policy: {{file: graph.policy.yaml}}\n"
        text += f"    queries:\n{stored}"
    (folder / "omnigraph.yaml").write_text(text)
    with serving(folder, "--config", folder / "omnigraph.yaml", env=TOKENS) as server:
        yield server


@pytest.fixture
def new(new_server):
    return NewClient(new_server)


SUITE = pytest.mark.acceptance("U-383", partly="a cluster, its deployments, and the client itself")


@SUITE
def test_health_contract_and_graphs(new, new_server):
    health = new.call("GET", "/healthz")
    assert (health["status"], health["version"][:5]) == ("ok", "0.13.")
    body = {"query": QUERIES, "name": "add_person", "params": {"name": "No", "age": 1}}
    other = {"Omnigraph-Http-Api": "0.12", "Authorization": "Bearer ci-token"}
    refused = new_server.post("/graphs/alpha/mutate", body, headers=other)
    assert (refused.status_code, refused.json()["code"]) == (400, "api_contract_mismatch")
    assert new.query("find_person", {"name": "No"})["rows"] == []
    listed = new.call("GET", "/graphs")["graphs"]
    assert [one["graph_id"] for one in listed] == ["alpha", "beta"]
    state = NewClient(new_server, graph="beta").call("GET", "snapshot")
    assert (state["graph_branch"], state["graph_manifest_version"] > 0) == ("main", True)
    counts = {
        one["type_name"]: (one["entity_kind"], one["entity_count"]) for one in state["datasets"]
    }
    assert counts["Person"] == ("node", 4)
    assert counts["Knows"] == ("edge", 3)


@SUITE
def test_branches_and_merges(new):
    name = new.branch("merge-me")
    assert name in new.call("GET", "branches")["branches"]
    assert new.call("POST", "branches/merge", {"source": name})["commit"] is None
    inserted = new.mutate("add_person", {"name": "Merged", "age": 1}, name)["commit"]
    merged = new.call("POST", "branches/merge", {"source": name, "target": "main"})
    assert merged["outcome"] == "fast_forward"
    commit = merged["commit"]
    assert commit["graph_branch"] in (None, "main")
    assert commit["merged_parent_commit_id"] == inserted["graph_commit_id"]
    assert new.call("GET", f"commits/{commit['graph_commit_id']}") == commit
    again = new.call("POST", "branches/merge", {"source": name})
    assert (again["outcome"], again["commit"]) == ("already_up_to_date", None)
    assert new.call("DELETE", f"branches/{name}")["name"] == name
    assert name not in new.call("GET", "branches")["branches"]


@SUITE
def test_conditional_writes(new):
    branch = new.branch("conditional")
    before = new.query("find_person", {"name": "Alice"}, branch)["graph_commit_id"]
    condition = {"Omnigraph-If-Graph-Commit": before}
    body = {"query": QUERIES, "name": "add_person", "branch": branch}
    first = body | {"params": {"name": "Gil", "age": 44}}
    done = new.call("POST", "mutate/if-graph-commit", first, headers=condition)
    assert done["commit"]["parent_commit_id"] == before
    found = new.query("find_person", {"name": "Gil"}, branch)
    assert found["graph_commit_id"] == done["commit"]["graph_commit_id"]
    assert found["rows"] == [{"name": "Gil", "age": 44}]
    late = body | {"params": {"name": "Hal", "age": 1}}
    with pytest.raises(Failed) as stale:
        new.call("POST", "mutate/if-graph-commit", late, headers=condition)
    assert stale.value.status == 412
    assert stale.value.body["precondition_failure"] == {
        "expected": before,
        "actual": found["graph_commit_id"],
    }
    assert new.query("find_person", {"name": "Hal"}, branch)["rows"] == []
    condition = {"Omnigraph-If-Graph-Commit": found["graph_commit_id"]}
    nobody = {"params": {"name": "Nobody", "age": 1}, "branch": branch, "expect_mutation": True}
    path = "queries/set_age/if-graph-commit"
    none = new.call("POST", path, nobody, headers=condition)
    assert (none["affected_nodes"], none["affected_edges"], none["commit"]) == (0, 0, None)
    alice = nobody | {"params": {"name": "Alice", "age": 26}}
    done = new.call("POST", path, alice, headers=condition)
    assert done["commit"]["parent_commit_id"] == found["graph_commit_id"]
    with pytest.raises(Failed) as stale:
        new.call("POST", path, alice, headers=condition)
    assert stale.value.status == 412


@SUITE
def test_loads_and_their_receipts(new):
    line = '{"type":"Person","data":{"name":"%s","age":5}}\n'
    for number, kind in enumerate(("load", "load/ndjson")):
        branch = f"load-{number}"
        if kind == "load":
            body = {"data": line % "Ida", "branch": branch, "from": "main", "mode": "merge"}
            done = new.call("POST", "load", body)
        else:
            query = {"branch": branch, "from": "main", "mode": "merge"}
            done = new.call("POST", kind, query=query, content=(line % "Ida").encode())
        assert done["nodes"] == [{"name": "Person", "entities_loaded": 1}]
        assert (done["edges"], done["branch_created"]) == ([], True)
        commit = done["commit"]
        assert new.call("GET", f"commits/{commit['graph_commit_id']}") == commit
        read = new.query("find_person", {"name": "Ida"}, branch)
        assert read["graph_commit_id"] == commit["graph_commit_id"]
    commits = new.call("GET", "commits", query={"branch": "load-1"})["commits"]
    assert commits[0] == commit
    with pytest.raises(Failed) as bogus:
        new.call("GET", "commits/bogus")
    assert bogus.value.status == 404


@SUITE
def test_baseline_diff_and_feed(new):
    branch = new.branch("feed")
    head = new.query("find_person", {"name": "Alice"}, branch)["graph_commit_id"]
    *lines, last = new.call(
        "POST", "changes/baseline", {"branch": branch, "type": ["Person", "Knows"]}
    )
    assert {one.get("type") or one["edge"] for one in lines} == {"Person", "Knows"}
    assert last["baseline"]["snapshot_commit_id"] == head
    done = new.mutate("add_friend", {"name": "Alice", "friend": "Jo"}, branch)["commit"]

    path = f"commits/{done['graph_commit_id']}/changes"
    first = new.call("GET", path, query={"limit": 1})
    token = first["next_page_token"]
    second = new.call("GET", path, query={"limit": 1, "page_token": token})
    assert "next_page_token" not in second
    node, edge = first["changes"][0], second["changes"][0]
    assert (node["kind"], node["id"]) == ("node", "Jo")
    assert node["after"]["properties"]["name"] == "Jo"
    assert edge["after"]["endpoints"] == {"from": "Alice", "to": "Jo"}

    query = {"branch": branch, "limit": 1, "type": ["Person", "Knows"]}
    page = new.call("GET", "changes", query=query | {"cursor": last["baseline"]["resume_cursor"]})
    assert "cursor" not in page
    end = new.call("GET", "changes", query=query | {"page_token": page["next_page_token"]})
    seen = [
        change for part in (page, end) for block in part["blocks"] for change in block["changes"]
    ]
    assert seen == [node, edge]
    more = new.call("GET", "changes", query=query | {"cursor": end["cursor"]})
    assert (more["blocks"], more["caught_up"]) == ([], True)


@SUITE
def test_the_bytes_of_a_blob(new):
    query = {"entity": "node", "type": "Person", "id": "Alice", "property": "avatar"}

    def blob(method="GET", **headers):
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        return new.send(method, "blob", query=query, headers=given)

    whole = blob()
    assert (whole.status_code, whole.content) == (200, AVATAR)
    tag, snapshot = whole.headers["etag"], whole.headers["omnigraph-snapshot-id"]
    for answer, status, content in (
        (blob("HEAD"), 200, b""),
        (blob(Range="bytes=1-4"), 206, b"ello"),
        (blob(If_None_Match=tag), 304, b""),
        (blob("HEAD", If_Match='"other"'), 412, b""),
    ):
        assert (answer.status_code, answer.content) == (status, content)
        assert answer.headers["etag"] == tag
        assert answer.headers["omnigraph-snapshot-id"] == snapshot
    assert blob(If_Match='"other"').status_code == 412
    beyond = blob(Range="bytes=99-")
    assert (beyond.status_code, beyond.headers["content-range"]) == (416, "bytes */11")


@SUITE
def test_schema_export_and_refusals(new, new_server):
    assert "node Person" in new.call("GET", "schema")["schema_source"]
    branch = new.branch("exported")
    state = new.call("GET", "snapshot", query={"branch": branch})
    expected = sum(one["entity_count"] for one in state["datasets"])
    headers = H | {"Authorization": "Bearer ci-token"}
    path = "/graphs/alpha/export"
    with new_server.client.stream("POST", path, json={"branch": branch}, headers=headers) as answer:
        time.sleep(0.35)
        lines = [json.loads(line) for line in answer.iter_lines() if line]
    assert len(lines) == expected
    with pytest.raises(Failed) as refused:
        NewClient(new_server, "wrong").call("GET", "schema")
    assert refused.value.status == 401
    with pytest.raises(Failed) as refused:
        new.call("POST", "query", {"query": "not a query"})
    assert refused.value.status == 400
    reader = NewClient(new_server, "reader-token")
    assert reader.query("people")["row_count"] >= 4
    with pytest.raises(Failed) as refused:
        reader.mutate("add_person", {"name": "No", "age": 1})
    assert refused.value.status == 403
