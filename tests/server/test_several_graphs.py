"""A server for the graphs of a project file."""

from __future__ import annotations

import pytest

from tests.server.serving import LIB, H, library, refused, serving
from tests.server.test_policies import AMY, POLICY, ROOT, TOKENS, add

SERVER_POLICY = """\
version: 1
kind: server
groups:
  admins: [root]
rules:
  - id: list
    allow: {actors: {group: admins}, actions: [graph_list]}
"""
READ = {"query": LIB, "name": "all_authors"}


def make_project(folder, *, policies=False):
    alpha, beta = folder / "a", folder / "b"
    alpha.mkdir()
    beta.mkdir()
    library(alpha)
    library(beta)
    text = "graphs:\n  beta:\n    uri: b/library.omni\n  alpha:\n    uri: a/library.omni\n"
    if policies:
        (folder / "p.yaml").write_text(POLICY)
        (folder / "s.yaml").write_text(SERVER_POLICY)
        text += "    policy: {file: p.yaml}\nserver:\n  policy: {file: s.yaml}\n"
    (folder / "omnigraph.yaml").write_text(text)
    return folder / "omnigraph.yaml"


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    folder = tmp_path_factory.mktemp("several")
    with serving(folder, "--config", make_project(folder), "--unauthenticated") as server:
        yield server


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("guarded")
    with serving(folder, "--config", make_project(folder, policies=True), env=TOKENS) as server:
        yield server


@pytest.mark.acceptance("U-098")
@pytest.mark.parametrize("headers", [{}, H], ids=["0.7", "0.13"])
def test_paths_of_several_graphs(several, headers):
    for path, status in [
        ("/graphs/alpha/snapshot", 200),
        ("/graphs/beta/snapshot", 200),
        ("/graphs/nope/snapshot", 404),
        ("/graphs/a_b/snapshot", 400),
        ("/graphs/..%2Falpha/snapshot", 400),
        ("/snapshot", 404),
        ("/graphs/alpha", 404),
    ]:
        assert several.get(path, headers=headers).status_code == status, path
    missing = several.get("/graphs/nope/snapshot", headers=headers)
    assert missing.json()["error"] == "graph 'nope' not found"
    assert several.get("/readyz").json()["served_graph_count"] == 2


def test_graphs_are_separate(several):
    done = several.post("/graphs/alpha/mutate", add("only-alpha"))
    assert done.status_code == 200
    found = several.post("/graphs/beta/query", READ).json()["rows"]
    assert {"a.slug": "only-alpha"} not in found
    old = several.post("/graphs/alpha/read", {"query_source": LIB, "query_name": "all_authors"})
    assert old.headers["link"] == '</query>; rel="successor-version"'


@pytest.mark.acceptance("U-099")
def test_the_list_of_graphs_needs_a_server_policy(several, guarded):
    assert several.get("/graphs").status_code == 403
    assert guarded.get("/graphs").status_code == 401
    assert guarded.get("/graphs", headers=AMY).status_code == 403
    listed = guarded.get("/graphs", headers=ROOT).json()["graphs"]
    assert [one["graph_id"] for one in listed] == ["alpha", "beta"]
    assert set(listed[0]) == {"graph_id", "uri"}
    new = guarded.get("/graphs", headers=ROOT | H).json()["graphs"]
    assert (new[0]["state"], new[0]["action"], new[0]["read_available"]) == ("ready", "none", True)
    guarded.post("/graphs/alpha/mutate", add("counted"), headers=ROOT)
    assert 'graph="alpha"' in guarded.get("/metrics", headers=ROOT).text
    assert 'graph="alpha"' not in guarded.get("/metrics", headers=AMY).text


@pytest.mark.acceptance("U-100")
def test_a_graph_without_a_policy_is_read_only(guarded):
    assert guarded.post("/graphs/alpha/mutate", add("r"), headers=ROOT).status_code == 200
    assert guarded.post("/graphs/beta/mutate", add("r"), headers=ROOT).status_code == 403
    assert guarded.post("/graphs/beta/query", READ, headers=ROOT).status_code == 200


@pytest.mark.acceptance("U-102")
def test_the_document_of_several_graphs(guarded):
    document = guarded.get("/openapi.json").json()
    assert "/graphs/{graph_id}/query" in document["paths"]
    assert "/query" not in document["paths"]
    assert document["paths"]["/graphs"]["get"]["security"] == [{"bearer_token": []}]


@pytest.mark.acceptance("U-103")
def test_project_files_that_are_refused(tmp_path):
    config = tmp_path / "omnigraph.yaml"
    options = ("--config", config, "--unauthenticated")
    (tmp_path / "lib.gq").write_text(LIB)
    config.write_text(
        "graphs:\n  x:\n    uri: x.omni\nqueries:\n  all_authors:\n    file: lib.gq\n"
    )
    assert "graphs.x" in refused("--target", "x", *options)
    several = refused(*options)
    assert "not honored" in several
    assert "graphs.<graph_id>" in several
    config.write_text("graphs:\n  policies:\n    uri: x.omni\n")
    assert "invalid graph id 'policies'" in refused(*options)
    config.write_text("graphs:\n  a:\n    uri: x.omni\n  b:\n    uri: ./x.omni\n")
    assert "same address" in refused(*options)
    config.write_text("graphs:\n  a:\n    uri: x.omni\n")
    assert "'nope'" in refused("--target", "nope", *options)
    assert "exclusive" in refused("x.omni", "--target", "a", *options)
    assert "no graph at" in refused(*options)


def test_one_graph_of_a_project_file(tmp_path):
    config = make_project(tmp_path)
    with serving(tmp_path, "--config", config, "--target", "beta", "--unauthenticated") as server:
        assert server.get("/snapshot").status_code == 200
        assert server.get("/graphs/beta/snapshot", headers=H).status_code == 200
        assert server.get("/graphs/default/snapshot", headers=H).status_code == 404
