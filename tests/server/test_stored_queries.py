"""Stored queries over HTTP."""

from __future__ import annotations

import pytest

from tests.server.serving import LIB, SCHEMA, H, library, refused, serving
from tests.server.test_policies import AMY, POLICY, ROOT, TOKENS

QUERIES = """\
queries:
  by_slug: {file: lib.gq, mcp: {tool_name: find_author}}
  add_author: {file: lib.gq}
  all_authors: {file: lib.gq, mcp: {expose: false}}
  set_born: {file: lib.gq}
"""
INVOKE = """\
  - id: invoke
    allow: {actors: {group: admins}, actions: [invoke_query]}
"""


def make_project(folder, queries=QUERIES, policy=None):
    (folder / "lib.gq").write_text(LIB)
    text = queries
    if policy is not None:
        (folder / "policy.yaml").write_text(policy)
        text += "policy:\n  file: policy.yaml\n"
    (folder / "omnigraph.yaml").write_text(text)
    return folder / "omnigraph.yaml"


@pytest.fixture(scope="module")
def server(graph_root, tmp_path_factory):
    folder = tmp_path_factory.mktemp("stored")
    config = make_project(folder)
    with serving(folder, graph_root, "--config", config, "--unauthenticated") as running:
        yield running


def invoke(server, name, body=None, **headers):
    return server.post(f"/queries/{name}", body, headers=headers)


@pytest.mark.acceptance("U-104", "U-105")
def test_registries_that_are_refused(graph_root, tmp_path):
    options = (graph_root, "--unauthenticated", "--config")
    wrong = make_project(tmp_path, "queries:\n  other: {file: lib.gq}\n")
    assert "'other'" in refused(*options, wrong)
    twice = "queries:\n  by_slug: {file: lib.gq, mcp: {tool_name: t}}\n  set_born: {file: lib.gq, mcp: {tool_name: t}}\n"
    message = refused(*options, make_project(tmp_path, twice))
    assert "'by_slug' and 'set_born'" in message
    assert "'t'" in message
    (tmp_path / "bad.gq").write_text("query bad() { match { $x: Nope } return { $x } }")
    config = make_project(tmp_path, "queries:\n  bad: {file: bad.gq}\n")
    message = refused(*options, config)
    assert "'bad'" in message
    assert "schema check" in message


@pytest.mark.acceptance("U-106")
def test_the_catalog(server):
    listed = server.get("/queries").json()["queries"]
    assert [one["name"] for one in listed] == ["add_author", "by_slug", "set_born"]
    assert listed[1] == {
        "name": "by_slug",
        "tool_name": "find_author",
        "mutation": False,
        "params": [{"name": "slug", "kind": "string", "nullable": False}],
    }
    assert listed[0]["mutation"] is True
    assert listed[0]["params"][1]["kind"] == "int"
    assert invoke(server, "all_authors").status_code == 200


@pytest.mark.acceptance("U-108")
def test_bodies_of_an_invocation(server):
    path = "/queries/all_authors"
    for content, status in [(b"", 200), (b"{}", 200), (b"null", 200), (b"{", 400), (b"[]", 400)]:
        answer = server.client.post(path, content=content)
        assert answer.status_code == status, content
        if status == 400:
            assert "invalid stored-query invocation body" in answer.json()["error"]
    found = invoke(server, "by_slug", {"params": {"slug": "ada"}}).json()
    assert found["rows"] == [{"a.slug": "ada", "a.born": 1815}]
    done = invoke(server, "add_author", {"params": {"slug": "st", "born": 1}}).json()
    assert (done["affected_nodes"], done["query_name"]) == (1, "add_author")


@pytest.mark.acceptance("U-110")
def test_mistakes_in_an_invocation(server):
    params = {"slug": "s", "born": 1}
    assert invoke(server, "add_author", {"params": params, "snapshot": "x"}).status_code == 400
    wrong = invoke(server, "by_slug", {"params": {"slug": 7}})
    assert wrong.status_code == 400
    assert "slug" in wrong.json()["error"]
    assert invoke(server, "nope").status_code == 404
    assert invoke(server, "by_slug%2F..").status_code == 404


@pytest.mark.acceptance("U-327", "U-325")
def test_invocations_of_013(server):
    path = "/queries/by_slug"
    expecting = {"params": {"slug": "ada"}, "expect_mutation": True}
    assert server.post13(path, expecting).status_code == 400
    assert server.post13(path, expecting | {"expect_mutation": False}).status_code == 200
    head = server.head()
    conditional = server.post13(
        f"{path}/if-graph-commit", {"params": {"slug": "ada"}}, omnigraph_if_graph_commit=head
    )
    assert conditional.status_code == 400
    header = server.post13(path, {"params": {"slug": "ada"}}, omnigraph_if_graph_commit=head)
    assert header.status_code == 400
    assert "/queries/by_slug/if-graph-commit" in header.json()["error"]
    body = {"params": {"slug": "bob", "born": 1971}, "expect_mutation": True}
    path = "/queries/set_born/if-graph-commit"
    done = server.post13(path, body, omnigraph_if_graph_commit=head)
    assert done.json()["commit"]["parent_commit_id"] == head
    stale = server.post13(path, body, omnigraph_if_graph_commit=head)
    assert stale.status_code == 412
    assert stale.json()["precondition_failure"]["expected"] == head


@pytest.mark.acceptance("U-107", "U-109")
def test_invocation_and_policy(graph_root, tmp_path):
    no_read = POLICY.replace("group: team}, actions: [read]", "group: nobody}, actions: [read]")
    no_read = no_read.replace("admins: [root]", "admins: [root]\n  nobody: [nobody]")
    config = make_project(tmp_path, policy=no_read.replace("[change, export]", "[export]") + INVOKE)
    with serving(tmp_path, graph_root, "--config", config, env=TOKENS) as server:
        unknown = server.post("/queries/nope", headers=ROOT)
        denied = server.post("/queries/by_slug", headers=AMY)
        assert unknown.status_code == denied.status_code == 404
        assert unknown.content == denied.content
        body = {"params": {"slug": "s", "born": 1}}
        assert server.post("/queries/add_author", body, headers=ROOT).status_code == 403
        read = {"params": {"slug": "s"}}
        assert server.post("/queries/by_slug", read, headers=ROOT).status_code == 403
        assert server.post("/graphs/default/queries/x", headers=ROOT | H).status_code == 404


@pytest.mark.acceptance("U-096")
def test_a_schema_change_that_breaks_a_stored_query(tmp_path):
    root = library(tmp_path)
    config = make_project(tmp_path)
    with serving(tmp_path, root, "--config", config, "--unauthenticated") as server:
        renamed = SCHEMA.replace("born: I32?", 'year: I32? @rename_from("born")')
        refused = server.post("/schema/apply", {"schema_source": renamed})
        assert refused.status_code == 400, refused.text
        assert "by_slug" in refused.json()["error"]
        assert "schema check" in refused.json()["error"]
        assert invoke(server, "by_slug", {"params": {"slug": "ada"}}).status_code == 200
