"""A server with tokens and a policy."""

from __future__ import annotations

import json

import msgspec
import pytest

from omnigraph.server.routes import ROUTES, Scope
from tests.server.serving import LIB, H, library, refused, serving

TOKENS = {
    "OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": '{"amy": "t-amy", "root": "t-root", "eve": "t-eve"}'
}
AMY = {"Authorization": "Bearer t-amy"}
ROOT = {"Authorization": "Bearer t-root"}

POLICY = """\
version: 1
groups:
  team: [amy, root]
  admins: [root]
protected_branches: [main]
rules:
  - id: team-read
    allow: {actors: {group: team}, actions: [read], branch_scope: any}
  - id: team-write
    allow: {actors: {group: team}, actions: [change], branch_scope: unprotected}
  - id: team-branch
    allow: {actors: {group: team}, actions: [branch_create], target_branch_scope: unprotected}
  - id: admin-write
    allow: {actors: {group: admins}, actions: [change, export], branch_scope: any}
  - id: admin-ops
    allow:
      actors: {group: admins}
      actions: [schema_apply, branch_merge, branch_delete]
      target_branch_scope: any
"""


def add(slug, branch=None):
    body = {"query": LIB, "name": "add_author", "params": {"slug": slug, "born": 1}}
    return body if branch is None else body | {"branch": branch}


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("project")
    (folder / "policy.yaml").write_text(POLICY)
    (folder / "omnigraph.yaml").write_text("policy:\n  file: policy.yaml\n")
    return folder


@pytest.fixture(scope="module")
def guarded(graph_root, project):
    with serving(project, graph_root, "--config", project / "omnigraph.yaml", env=TOKENS) as server:
        yield server


@pytest.mark.acceptance("U-065")
def test_a_policy_needs_tokens(graph_root, project):
    message = refused(graph_root, "--config", project / "omnigraph.yaml", "--unauthenticated")
    assert "policy file is configured but no bearer tokens" in message


@pytest.mark.acceptance("U-064", "U-068")
def test_tokens_of_a_server_with_a_policy(guarded):
    assert guarded.get("/healthz").status_code == 200
    assert guarded.get("/branches").json()["error"] == "missing bearer token"
    assert guarded.get("/branches", headers={"Authorization": "bearer t-amy"}).status_code == 401
    assert guarded.get("/branches", headers=AMY).status_code == 200


@pytest.mark.acceptance("U-069")
def test_the_actor_is_the_one_of_the_token(guarded):
    denied = guarded.post("/mutate", add("no"), headers=AMY | {"X-Actor-Id": "root"})
    assert (denied.status_code, denied.json()["code"]) == (403, "forbidden")
    said = "policy denied action 'change' on branch 'main' for actor 'amy'"
    assert denied.json()["error"] == said
    spoofed = guarded.post("/mutate?actor=root", add("no") | {"actor_id": "root"}, headers=AMY)
    assert spoofed.status_code == 403
    assert "deny change for 'amy'" in guarded.log


@pytest.mark.acceptance("U-070")
def test_a_commit_has_the_actor(guarded):
    done = guarded.post("/mutate", add("by-root"), headers=ROOT)
    assert done.json()["actor_id"] == "root"
    newest = guarded.get("/commits", headers=ROOT).json()["commits"][-1]
    assert newest["actor_id"] == "root"


@pytest.mark.acceptance("U-071", "U-072")
def test_writes_on_unprotected_branches(guarded):
    assert guarded.post("/branches", {"name": "draft"}, headers=AMY).json()["actor_id"] == "amy"
    assert guarded.post("/mutate", add("draft", "draft"), headers=AMY).status_code == 200
    assert guarded.post("/branches/merge", {"source": "draft"}, headers=AMY).status_code == 403
    merged = guarded.post("/branches/merge", {"source": "draft"}, headers=ROOT)
    assert merged.json()["actor_id"] == "root"
    assert guarded.client.delete("/branches/draft", headers=AMY).status_code == 403
    assert guarded.client.delete("/branches/draft", headers=ROOT).status_code == 200


@pytest.mark.acceptance("U-341")
def test_a_padded_name_is_the_same_branch(guarded):
    for headers in (AMY, AMY | H):
        prefix = "/graphs/default" if H.items() <= headers.items() else ""
        denied = guarded.post(f"{prefix}/mutate", add("no", " main "), headers=headers)
        assert denied.status_code == 403
        load = {"data": "", "branch": "main "}
        assert guarded.post(f"{prefix}/load", load, headers=headers).status_code == 403


@pytest.mark.acceptance("U-353")
def test_exports_need_their_own_action(guarded):
    assert guarded.post("/export", {}, headers=AMY).status_code == 403
    assert guarded.post("/export", {}, headers=ROOT).status_code == 200
    baseline = "/graphs/default/changes/baseline"
    assert guarded.post(baseline, {}, headers=AMY | H).status_code == 403
    assert guarded.post(baseline, {}, headers=ROOT | H).status_code == 200


@pytest.mark.acceptance("U-339")
def test_a_denied_delete_does_not_undo_the_merge(graph_root, project, tmp_path):
    policy = POLICY.replace("[schema_apply, branch_merge, branch_delete]", "[branch_merge]")
    (tmp_path / "policy.yaml").write_text(policy)
    (tmp_path / "omnigraph.yaml").write_text("policy:\n  file: policy.yaml\n")
    root = library(tmp_path)
    with serving(tmp_path, root, "--config", tmp_path / "omnigraph.yaml", env=TOKENS) as server:
        headers = ROOT | H
        prefix = "/graphs/default"
        assert server.post(f"{prefix}/branches", {"name": "b"}, headers=headers).status_code == 200
        server.post(f"{prefix}/mutate", add("b", "b"), headers=headers)
        body = {"source": "b", "delete_branch": True}
        merged = server.post(f"{prefix}/branches/merge", body, headers=headers)
        assert merged.status_code == 200
        assert merged.json()["branch_deleted"] is False
        assert merged.json()["branch_delete_error_details"]["code"] == "forbidden"


@pytest.mark.acceptance("U-073", "U-350")
def test_reads_of_protected_branches_only(tmp_path):
    policy = POLICY.replace("[read], branch_scope: any", "[read], branch_scope: protected")
    (tmp_path / "policy.yaml").write_text(policy)
    (tmp_path / "omnigraph.yaml").write_text("policy:\n  file: policy.yaml\n")
    root = library(tmp_path)
    with serving(tmp_path, root, "--config", tmp_path / "omnigraph.yaml", env=TOKENS) as server:
        assert server.get("/snapshot?branch=main", headers=AMY).status_code == 200
        assert server.get("/branches", headers=AMY).status_code == 403
        read = {"query": LIB, "name": "all_authors"}
        head = server.post("/query", read, headers=AMY).json()["graph_commit_id"]
        found = server.post("/query", read | {"snapshot": head}, headers=AMY)
        assert (found.status_code, found.json()["target"]["branch"]) == (200, None)
        server.post("/branches", {"name": "hidden"}, headers=ROOT)
        made = server.post("/mutate", add("h", "hidden"), headers=AMY).json()["graph_commit_id"]
        assert server.post("/query", read | {"branch": "hidden"}, headers=AMY).status_code == 403
        assert server.post("/query", read | {"snapshot": made}, headers=AMY).status_code == 403
        unreadable = server.get(f"/graphs/default/commits/{made}/changes", headers=AMY | H)
        assert unreadable.status_code == 404
        entity = server.get("/entities/Author/h?branch=hidden", headers=AMY)
        assert entity.status_code == 403
        diff = server.post("/diff", {"from": "main", "to": "hidden"}, headers=AMY)
        assert diff.status_code == 403


@pytest.mark.acceptance("U-101")
def test_policies_of_the_wrong_kind(graph_root, tmp_path):
    (tmp_path / "p.yaml").write_text(POLICY.replace("[read], branch_scope: any", "[graph_list]"))
    (tmp_path / "omnigraph.yaml").write_text("policy:\n  file: p.yaml\n")
    config = ("--config", tmp_path / "omnigraph.yaml")
    assert "graph_list" in refused(graph_root, *config, env=TOKENS)
    (tmp_path / "p.yaml").write_text(POLICY)
    text = f"graphs:\n  alpha:\n    uri: {graph_root}\nserver:\n  policy:\n    file: p.yaml\n"
    (tmp_path / "omnigraph.yaml").write_text(text)
    assert "read" in refused(*config, env=TOKENS)


BODIES = {
    "/query": {"query": LIB, "name": "all_authors"},
    "/read": {"query_source": LIB, "query_name": "all_authors"},
    "/explain": {"query": LIB, "name": "all_authors"},
    "/check": {"query": LIB, "name": "all_authors"},
    "/mutate": add("x"),
    "/change": add("x"),
    "/mutate/if-graph-commit": add("x"),
    "/load": {"data": ""},
    "/ingest": {"data": ""},
    "/load/parts": msgspec.msgpack.encode({"parts": [], "mode": "merge"}),
    "/schema/apply": {"schema_source": ""},
    "/schema/plan": {"schema_source": ""},
    "/scan": {"type": "Author"},
    "/branches/{branch}/reset": {"ref": "main"},
    "/revert": {"ref": "main"},
    "/cherry-pick": {"ref": "main"},
    "/tags": {"name": "x"},
    "/branches": {"name": "x"},
    "/branches/merge": {"source": "x"},
    "/diff": {"from": "main", "to": "main"},
}
HIDDEN = {"/queries/{name}", "/queries/{name}/if-graph-commit", "/commits/{commit_id}/changes"}
"""Routes that answer a caller without the right as if there was nothing."""

TOLD = {"/permissions"}
"""Routes that tell a caller with a token what it may do."""


def without_right(path: str) -> int:
    return 404 if path in HIDDEN else 200 if path in TOLD else 403


@pytest.mark.parametrize(
    "route",
    [route for route in ROUTES if route.scope is Scope.GRAPH],
    ids=lambda route: f"{route.method} {route.path} {'+'.join(sorted(route.contracts))}",
)
def test_every_route_of_a_graph_asks_for_token_and_policy(guarded, route):
    commit = guarded.get("/commits", headers=ROOT).json()["commits"][-1]["graph_commit_id"]
    path = route.path.replace("{commit_id}", commit).replace("{type_name}", "Author")
    path = path.replace("{entity_id}", "ada").replace("{branch}", "x").replace("{name}", "x")
    path = path.replace("{run_id}", "x").replace("{tag}", "x")
    headers = {}
    if "0.7" not in route.contracts:
        path, headers = f"/graphs/default{path}", dict(H)
    if route.path.endswith("/if-graph-commit"):
        headers["Omnigraph-If-Graph-Commit"] = commit
    if route.path == "/blob":
        path += "?entity=node&type=Author&id=ada&property=slug"
    content = BODIES.get(route.path, b"" if route.body in (None, bytes) else {})
    if route.method == "GET" or not isinstance(content, bytes):
        content = b"" if route.method == "GET" else json.dumps(content).encode()
    headers["Content-Type"] = route.body_media
    for token, status in (("nobody", 401), ("t-eve", without_right(route.path))):
        given = headers | {"Authorization": f"Bearer {token}"}
        answer = guarded.client.request(route.method, path, content=content, headers=given)
        assert answer.status_code == status, answer.text
