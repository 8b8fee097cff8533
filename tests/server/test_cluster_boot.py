"""A server for the applied graphs of a cluster."""

from __future__ import annotations

import shutil
import time

import pytest

from omnigraph.cli.main import main
from tests.cluster.clusters import SIDECAR, Cluster, sidecar
from tests.server.serving import H, refused, serving
from tests.server.test_policies import AMY, ROOT, TOKENS

EVE = {"Authorization": "Bearer t-eve"}
DECLARED = """\
version: 1
graphs:
  alpha:
    schema: team.pg
    queries: queries/
  beta:
    schema: shop.pg
policies:
  staff:
    file: staff.yaml
    applies_to: [alpha, beta]
  server:
    file: server.yaml
    applies_to: [cluster]
"""
POLICY = """\
version: 1
groups:
  team: [amy, root]
rules:
  - id: all
    allow: {actors: {group: team}, actions: [read, change, invoke_query, export]}
  - id: schemas
    allow: {actors: {group: team}, actions: [schema_apply]}
"""
SERVER_POLICY = """\
version: 1
groups:
  admins: [root]
rules:
  - id: list
    allow: {actors: {group: admins}, actions: [graph_list]}
"""


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_DURABILITY", "none")
    monkeypatch.chdir(tmp_path)
    made = Cluster(tmp_path / "cluster")
    made.write("staff.yaml", POLICY)
    made.write("server.yaml", SERVER_POLICY)
    made.declare(DECLARED)
    made.converge()
    return made


def readiness(server):
    """What `/readyz` says once no graph is being opened."""
    for _ in range(300):
        found = server.get("/readyz")
        if found.json()["loading_graph_count"] == 0:
            return found
        time.sleep(0.1)
    raise AssertionError(found.text)


def damage(cluster, graph_id):
    shutil.rmtree(cluster.folder / f"graphs/{graph_id}.omni/__manifest")


@pytest.mark.acceptance("U-128", "U-129", "U-132")
def test_the_applied_revision_is_served(cluster, tmp_path):
    (tmp_path / "omnigraph.yaml").write_text("graphs: [")
    shutil.rmtree(cluster.folder / "queries")
    (cluster.folder / "cluster.yaml").unlink()
    with serving(tmp_path, "--cluster", f"file://{cluster.folder}", env=TOKENS) as server:
        ready = readiness(server)
        assert ready.status_code == 200
        state = cluster.state
        found = ready.json()
        assert (found["ready"], found["status"]) == (True, "serving")
        assert (found["served_graph_count"], found["ready_graph_count"]) == (2, 2)
        assert found["state_revision"] == state["state_revision"]
        assert found["state_cas"].startswith("sha256:")
        assert server.get("/graphs/alpha/snapshot", headers=AMY).status_code == 200
        assert server.get("/graphs/alpha/snapshot", headers=EVE).status_code == 403
        catalog = server.get("/graphs/alpha/queries", headers=AMY).json()["queries"]
        assert [one["name"] for one in catalog] == ["people"]
        invoked = server.post("/graphs/alpha/queries/people", headers=AMY)
        assert invoked.json()["rows"] == []
        assert server.get("/graphs", headers=AMY).status_code == 403
        listed = server.get("/graphs", headers=ROOT | H).json()["graphs"]
        assert [(one["graph_id"], one["state"]) for one in listed] == [
            ("alpha", "ready"),
            ("beta", "ready"),
        ]
        new = {"schema_source": "node Person { name: String @key }"}
        for headers, status in ((AMY, 409), (EVE, 403)):
            answer = server.post("/graphs/alpha/schema/apply", new, headers=headers)
            assert answer.status_code == status
        assert server.stop() == 0


@pytest.mark.acceptance("U-129")
@pytest.mark.parametrize("more", [["--config", "x.yaml"], ["some.omni"], ["--target", "x"]])
def test_a_cluster_is_the_only_source(cluster, more):
    text = refused("--cluster", cluster.folder, *more, "--unauthenticated")
    assert "exclusive boot source" in text


@pytest.mark.acceptance("U-128")
def test_problems_of_the_whole_cluster_refuse_the_start(cluster, tmp_path):
    (tmp_path / "empty").mkdir()
    text = refused("--cluster", tmp_path / "empty", "--unauthenticated")
    assert "not ready to serve" in text
    assert "[cluster_state_missing]" in text

    cluster.put("recoveries/x.json", {"schema_version": 9})
    assert "[cluster_recovery_pending]" in refused("--cluster", cluster.folder, env=TOKENS)
    cluster.objects.delete("__cluster/recoveries/x.json")

    [path] = cluster.objects.list_dir("__cluster/resources/query/alpha/people")
    content = cluster.objects.read_text(path)
    cluster.objects.write_text(path, "query people() {}")
    text = refused("--cluster", cluster.folder, env=TOKENS)
    assert "[catalog_payload_digest_mismatch] query.alpha.people" in text
    cluster.objects.delete(path)
    assert "[catalog_payload_missing]" in refused("--cluster", cluster.folder, env=TOKENS)
    cluster.objects.write_text(path, content)

    state = cluster.state
    resources = state["applied_revision"]["resources"]
    resources["policy.other"] = {**resources["policy.staff"], "applies_to": ["graph.alpha"]}
    cluster.objects.write_text(
        path.replace("query/alpha/people", "policy/other")
        .replace(resources["query.alpha.people"]["digest"], resources["policy.staff"]["digest"])
        .replace(".gq", ".yaml"),
        POLICY,
    )
    cluster.put("state.json", state)
    text = refused("--cluster", cluster.folder, env=TOKENS)
    assert "[duplicate_policy_binding]" in text
    assert "graph.alpha" in text


@pytest.mark.acceptance("U-355", "U-356")
def test_a_graph_with_a_problem_is_blocked_and_the_others_are_served(cluster, tmp_path):
    damage(cluster, "beta")
    with serving(tmp_path, "--cluster", cluster.folder, env=TOKENS) as server:
        ready = readiness(server)
        assert (ready.status_code, ready.json()["status"]) == (200, "degraded")
        assert ready.json()["blocked_graph_count"] == 1
        assert server.get("/graphs/alpha/snapshot", headers=AMY).status_code == 200
        for headers in (AMY, ROOT):
            blocked = server.get("/graphs/beta/snapshot", headers=headers | H)
            assert (blocked.status_code, blocked.json()["code"]) == (503, "graph_unavailable")
        hidden = server.get("/graphs/beta/snapshot", headers=EVE | H)
        unknown = server.get("/graphs/none/snapshot", headers=EVE | H)
        assert (hidden.status_code, unknown.status_code) == (404, 404)
        assert hidden.json()["error"] == "graph 'beta' not found"
        listed = server.get("/graphs", headers=ROOT | H).json()["graphs"]
        beta = listed[1]
        assert (beta["state"], beta["failure"]) == ("blocked", "open_failed")
        assert (beta["read_available"], beta["action"]) == (False, "apply_correction_or_restart")
        assert [
            one["graph_id"] for one in server.get("/graphs", headers=ROOT).json()["graphs"]
        ] == ["alpha"]
        assert "graph 'beta'" in server.log


@pytest.mark.acceptance("U-357")
def test_all_graphs_can_be_required(cluster):
    damage(cluster, "beta")
    text = refused("--cluster", cluster.folder, "--require-all-graphs", env=TOKENS)
    assert "not ready to serve" in text
    assert "[open_failed] graph.beta" in text
    required = TOKENS | {"OMNIGRAPH_REQUIRE_ALL_GRAPHS": "1"}
    assert "graph.beta" in refused("--cluster", cluster.folder, env=required)


@pytest.mark.acceptance("U-128")
def test_an_interrupted_operation_blocks_its_graph(cluster, tmp_path):
    cluster.put(SIDECAR, sidecar("schema_apply", None, "alpha"))
    with serving(tmp_path, "--cluster", cluster.folder, env=TOKENS) as server:
        readiness(server)
        listed = server.get("/graphs", headers=ROOT | H).json()["graphs"]
        assert [(one["graph_id"], one.get("failure")) for one in listed] == [
            ("alpha", "invalid_configuration"),
            ("beta", None),
        ]
    text = refused("--cluster", cluster.folder, "--require-all-graphs", env=TOKENS)
    assert "[cluster_recovery_pending] graph.alpha" in text


def test_a_cluster_without_graphs_is_served(cluster, tmp_path):
    cluster.declare("version: 1\n")
    for graph_id in ("alpha", "beta"):
        assert (
            main(
                [
                    "cluster",
                    "approve",
                    f"graph.{graph_id}",
                    "--as",
                    "kim",
                    "--config",
                    str(cluster.folder),
                ]
            )
            == 0
        )
    cluster.converge()
    arguments = ("--cluster", cluster.folder, "--unauthenticated", "--require-all-graphs")
    with serving(tmp_path, *arguments) as server:
        found = readiness(server)
        assert (found.status_code, found.json()["served_graph_count"]) == (200, 0)
        assert server.get("/graphs/alpha/snapshot").status_code == 404


def test_a_ledger_of_version_1_is_upgraded_by_the_start(cluster, tmp_path):
    state = cluster.state
    revision = {name: state["applied_revision"][name] for name in ("config_digest", "resources")}
    cluster.put("state.json", {"version": 1, "state_revision": 4, "applied_revision": revision})
    with serving(tmp_path, "--cluster", cluster.folder, env=TOKENS) as server:
        assert readiness(server).json()["state_revision"] == 5
    assert cluster.state["version"] == 2
    assert not cluster.objects.exists("__cluster/lock.json")


NOTES = "node Note {\n    slug: String @key\n    vec: Vector(4)?\n    file: Blob?\n}\n"
NEAREST = """
query near() {
    match { $n: Note }
    return { $n.slug }
    order { nearest($n.vec, "copper") }
    limit 1
}
"""
WITH_PROVIDERS = """\
version: 1
graphs:
  plain: {schema: notes.pg}
  rich:
    schema: notes.pg
    embedding_provider: fake
    external_blobs: {allow: [FOLDER]}
  poor: {schema: notes.pg, embedding_provider: paid}
providers:
  embedding:
    fake: {kind: mock}
    paid: {kind: openai, api_key: "${PAID_KEY}"}
"""


def test_a_graph_has_the_provider_and_the_blob_folders_that_are_declared(tmp_path, monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_DURABILITY", "none")
    cluster = Cluster(tmp_path / "cluster")
    cluster.write("notes.pg", NOTES)
    cluster.declare(WITH_PROVIDERS.replace("FOLDER", str(tmp_path / "kept")))
    cluster.converge()
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "a.bin").write_bytes(b"kept outside")
    row = f'{{"type":"Note","data":{{"slug":"a","vec":[1,0,0,0],"file":"file://{tmp_path}/kept/a.bin"}}}}'
    asked = {"query": NEAREST}
    with serving(tmp_path, "--cluster", cluster.folder, "--unauthenticated") as server:
        readiness(server)
        for graph_id, status in (("rich", 200), ("plain", 400), ("poor", 503)):
            load = {"data": row, "mode": "merge"}
            answer = server.post(f"/graphs/{graph_id}/load", load)
            assert answer.status_code == status, answer.text
        assert server.post("/graphs/rich/query", asked).json()["rows"] == [{"n.slug": "a"}]
        answer = server.post("/graphs/plain/query", asked)
        assert "no embedding provider is configured" in answer.json()["error"]
        assert "PAID_KEY" in server.log
    key = {"PAID_KEY": "sk-secret"}
    arguments = ("--cluster", cluster.folder, "--unauthenticated", "--require-all-graphs")
    with serving(tmp_path, *arguments, env=key) as server:
        assert readiness(server).json()["ready_graph_count"] == 3
        assert "sk-secret" not in server.log
