"""Deployments to a running server: what is refused, what is served meanwhile, what is installed."""

from __future__ import annotations

import contextlib
import json
import signal
import threading
import time
from pathlib import Path

import httpx
import pytest

from tests.cluster.clusters import SCHEMA, WIDER_QUERY, WIDER_SCHEMA, WRONG_SCHEMA
from tests.server.deploying import (
    AMY,
    DECLARED,
    EVE,
    NONCES,
    POLICY,
    ROOT,
    SERVER_POLICY,
    TOKENS,
    WITH_GAMMA,
    captured,
    declared,
    deployed,
    next_id,
    outcome,
    post,
    ready,
)
from tests.server.serving import H, refused, serving
from tests.support.faults import ENVIRONMENT_VARIABLE, Arm, Kill, describe

LINE = '{"type":"Person","data":{"name":"cy"}}\n'


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_DURABILITY", "none")
    monkeypatch.chdir(tmp_path)
    return declared(tmp_path / "cluster")


@pytest.fixture
def server(cluster, tmp_path):
    with serving(tmp_path, "--cluster", cluster.folder, env=TOKENS) as running:
        ready(running)
        yield running


def schema(server, graph="alpha"):
    return server.get(f"/graphs/{graph}/schema", headers=ROOT).json()["schema_source"]


def refusal(answer):
    assert answer.status_code == 409, answer.text
    return answer.json()["error"].partition("]")[0].strip("[")


@pytest.mark.acceptance("U-361", "U-362", "U-383")
def test_a_revision_is_planned_deployed_and_served_by_the_same_process(cluster, server):
    before = server.get("/graphs/beta/snapshot", headers=ROOT).json()
    cluster.write("team.pg", WIDER_SCHEMA)
    cluster.write("queries/people.gq", WIDER_QUERY)
    cluster.write("staff.yaml", POLICY.replace("actions: [read]}", "actions: [read, change]}"))
    cluster.declare(WITH_GAMMA)
    bundle = captured(cluster)

    planned = server.post("/cluster/plan", {"deployment": bundle}, headers=ROOT)
    assert (planned.status_code, planned.json()["ok"]) == (200, True), planned.text
    changes = {one["resource"]: one for one in planned.json()["changes"]}
    assert changes["schema.alpha"]["migration"]["supported"] is True
    assert changes["schema.alpha"]["migration"]["steps"]
    assert changes["graph.gamma"]["operation"] == "create"
    assert schema(server) == SCHEMA
    assert server.get("/graphs/gamma/snapshot", headers=ROOT).status_code == 404

    deployment_id = next_id(server)
    answer = post(server, bundle, deployment_id)
    assert answer.status_code == 202, answer.text
    assert answer.json()["deployment"]["status"] == "outstanding"
    assert (answer.json()["active"], answer.json()["in_progress"]) == (False, True)
    found = outcome(server, deployment_id)
    assert (found["active"], found["deployment"]["status"]) == (True, "complete")
    result = found["deployment"]["result"]
    assert (result["id"], result["converged"]) == (deployment_id, True)
    assert {name: one["outcome"] for name, one in result["graphs"].items()} == {
        "alpha": "schema",
        "gamma": "created",
    }
    assert result["authority"] == {"kind": "authenticated_identity", "actor": "root"}
    assert schema(server) == WIDER_SCHEMA
    rows = server.post("/graphs/alpha/queries/people", headers=ROOT)
    assert rows.status_code == 200, rows.text
    loaded = server.post(
        "/graphs/gamma/load", {"data": LINE.replace("Person", "Item")}, headers=AMY
    )
    assert loaded.status_code == 200, loaded.text
    assert server.get("/graphs/beta/snapshot", headers=ROOT).json() == before
    commit = server.get("/graphs/alpha/commits", headers=ROOT).json()["commits"][0]
    assert commit["actor_id"] == "root"

    # The same again is looked up and not done again.
    again = post(server, bundle, deployment_id)
    assert (again.status_code, again.json()) == (200, found)
    cluster.declare(DECLARED)
    cluster.write("staff.yaml", POLICY)
    assert refusal(post(server, captured(cluster), deployment_id)) == "input_mismatch"
    stale = deployment_id[:-26] + NONCES[1]
    assert refusal(post(server, bundle, stale)) == "stale_sequence"
    found = server.get(f"/cluster/deployments/{stale}", headers=ROOT).json()
    assert found["deployment"] == {"status": "identity_mismatch"}
    unknown = deployment_id[:-27].rpartition(":")[0] + f":77:{NONCES[0]}"
    found = server.get(f"/cluster/deployments/{unknown}", headers=ROOT).json()
    assert found["deployment"] == {"status": "not_recorded"}
    other = f"{NONCES[2]}:1:{NONCES[0]}"
    found = server.get(f"/cluster/deployments/{other}", headers=ROOT).json()
    assert found["deployment"] == {"status": "different_ledger"}
    assert refusal(post(server, bundle, other)) == "different_ledger"

    # Back to the first revision: a graph goes with all it has, and the policy forgets what it allowed.
    pid = server.process.pid
    deployed(server, cluster)
    assert server.get("/graphs/gamma/snapshot", headers=ROOT).status_code == 404
    assert not cluster.has_graph("gamma")
    denied = server.post("/graphs/alpha/load", {"data": LINE}, headers=AMY)
    assert denied.status_code == 403
    assert server.get("/graphs/beta/snapshot", headers=ROOT).json() == before
    state = server.get("/readyz").json()
    assert (state["ready"], state["served_graph_count"]) == (True, 2)
    assert state["state_revision"] == cluster.state["state_revision"]
    assert (server.process.pid, server.process.poll()) == (pid, None)
    assert cluster.listed("recoveries") == []
    assert not cluster.objects.exists("__cluster/lock.json")
    assert cluster.ok("plan")["changes"] == []


@pytest.mark.acceptance("U-360")
def test_deployments_need_their_own_permission(cluster, server):
    bundle = captured(cluster)
    for headers, status in ((AMY, 403), (ROOT, 200), (H, 401)):
        answers = [
            server.get("/cluster/deployments", headers=headers),
            server.post("/cluster/plan", {"deployment": bundle}, headers=headers),
        ]
        assert {answer.status_code for answer in answers} == {status}
    deployment_id = next_id(server)
    assert post(server, bundle, deployment_id, AMY).status_code == 403
    assert server.get(f"/cluster/deployments/{deployment_id}", headers=AMY).status_code == 403
    cluster.write("staff.yaml", POLICY.replace("schema_apply", "config_manage"))
    assert "policy_invalid" in cluster.run("validate").codes


@pytest.mark.acceptance("U-360")
def test_a_server_without_tokens_or_without_a_cluster_has_no_deployments(tmp_path, monkeypatch):
    from tests.cluster.clusters import Cluster

    monkeypatch.setenv("OMNIGRAPH_DURABILITY", "none")
    cluster = Cluster(tmp_path / "open")
    cluster.declare("version: 1\ngraphs: {team: {schema: team.pg}}\n")
    cluster.converge()
    bundle = {"deployment": captured(cluster)}
    with serving(tmp_path, "--cluster", cluster.folder, "--unauthenticated") as open_server:
        ready(open_server)
        answer = open_server.post("/cluster/plan", bundle, headers=H)
        assert answer.status_code == 403
        assert "server policy" in answer.json()["error"]
        assert open_server.post("/cluster/plan", bundle).status_code == 404
    with serving(tmp_path, cluster.uri(), "--unauthenticated") as single:
        for method, path in (
            ("POST", "/cluster/plan"),
            ("POST", "/cluster/deployments"),
            ("GET", "/cluster/deployments"),
            ("GET", f"/cluster/deployments/{NONCES[0]}:1:{NONCES[1]}"),
        ):
            body = bundle | ({"deployment_id": "x"} if path.endswith("deployments") else {})
            sent = body if method == "POST" else None
            assert single.client.request(method, path, headers=H, json=sent).status_code == 404


@pytest.mark.acceptance("U-363")
def test_what_would_break_a_graph_is_refused_before_anything_changes(cluster, server):
    def unchanged():
        assert schema(server) == SCHEMA
        for graph in ("alpha", "beta"):
            assert server.get(f"/graphs/{graph}/snapshot", headers=ROOT).status_code == 200
        assert cluster.state == state
        assert not cluster.objects.exists("__cluster/lock.json")

    state = cluster.state
    deployment_id = next_id(server)
    good = captured(cluster)
    # A query that the schema does not fit. The client would refuse to capture it.
    cluster.write("queries/people.gq", WIDER_QUERY)
    cluster.write("team.pg", WIDER_SCHEMA)
    bundle = captured(cluster)
    old = good["resources"]["schema.alpha"]["digest"]
    bundle["resources"]["schema.alpha"]["digest"] = old
    bundle["sources"][old] = SCHEMA
    del bundle["sources"][captured(cluster)["resources"]["schema.alpha"]["digest"]]
    assert refusal(post(server, bundle, deployment_id)) == "query_typecheck_error"
    planned = server.post("/cluster/plan", {"deployment": bundle}, headers=ROOT)
    assert (planned.status_code, planned.json()["ok"]) == (200, False)
    assert planned.json()["diagnostics"][0]["code"] == "query_typecheck_error"
    unchanged()

    made = server.post("/graphs/alpha/branches", {"name": "draft", "from": "main"}, headers=ROOT)
    assert made.status_code == 200, made.text
    assert refusal(post(server, captured(cluster), deployment_id)) == "schema_has_branches"
    unchanged()
    assert server.client.delete("/graphs/alpha/branches/draft", headers=ROOT).status_code == 200

    cluster.write("team.pg", WRONG_SCHEMA)
    cluster.declare(DECLARED.replace("    queries: queries/\n", ""))
    assert refusal(post(server, captured(cluster), deployment_id)) == "schema_unsupported"
    unchanged()

    providers = (
        "    embedding_provider: paid\n"
        "providers: {embedding: {paid: {kind: openai, api_key: '${PAID_KEY}'}}}\npolicies:"
    )
    cluster.declare(DECLARED.replace("policies:", providers))
    cluster.write("team.pg", SCHEMA)
    cluster.write("queries/people.gq", "query people() { match { $p: Person } return { $p.name } }")
    assert refusal(post(server, captured(cluster), deployment_id)) == "provider_secret_missing"
    unchanged()


@pytest.mark.acceptance("U-364")
def test_other_graphs_are_served_while_one_is_deployed(cluster, server):
    stop = threading.Event()
    statuses: list[int] = []
    changed: list[int] = []

    def read(graph, into):
        with httpx.Client(base_url=f"http://{server.address}", timeout=60) as client:
            while not stop.is_set():
                into.append(client.get(f"/graphs/{graph}/snapshot", headers=ROOT).status_code)

    threads = [
        threading.Thread(target=read, args=("beta", statuses)),
        threading.Thread(target=read, args=("beta", statuses)),
        threading.Thread(target=read, args=("alpha", changed)),
    ]
    for thread in threads:
        thread.start()
    try:
        wider = WIDER_SCHEMA
        for number in range(2):
            wider = wider.replace("}\n", f"    extra{number}: I32?\n}}\n")
            cluster.write("team.pg", wider)
            deployed(server, cluster)
            # A change of queries and policies alone closes nothing.
            cluster.write("queries/people.gq", WIDER_QUERY + f"// {number}\n")
            seen = len(changed)
            while len(changed) < seen + 2:
                time.sleep(0.01)
            before = len(changed)
            deployed(server, cluster)
            assert set(changed[before:]) <= {200}
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert set(statuses) == {200}
    assert len(statuses) > 20
    assert set(changed) <= {200, 503}
    assert schema(server) == wider


def slow_load(server, seconds):
    """A request to alpha that runs for a while."""
    lines = "".join(LINE.replace("cy", f"p{number}") for number in range(3))

    def body():
        yield b'{"data": "'
        time.sleep(seconds)
        yield json.dumps(lines)[1:-1].encode() + b'"}'

    headers = ROOT | {"Content-Type": "application/json"}
    return httpx.post(
        f"http://{server.address}/graphs/alpha/load", content=body(), headers=headers, timeout=60
    )


@pytest.mark.acceptance("U-362", "U-364")
def test_running_requests_end_before_their_graph_changes(cluster, server):
    cluster.write("team.pg", WIDER_SCHEMA)
    bundle, deployment_id = captured(cluster), next_id(server)
    answers = {}

    def load():
        answers["load"] = slow_load(server, 3)

    def deploy():
        answers["deploy"] = post(server, bundle, deployment_id)

    loading = threading.Thread(target=load)
    loading.start()
    time.sleep(0.7)
    deploying = threading.Thread(target=deploy)
    deploying.start()
    with httpx.Client(base_url=f"http://{server.address}", timeout=60) as client:
        for _ in range(100):
            answer = client.get("/graphs/alpha/snapshot", headers=ROOT)
            if answer.status_code == 503:
                break
            time.sleep(0.02)
        assert (answer.status_code, answer.json()["code"]) == (503, "graph_unavailable")
        listed = client.get("/graphs", headers=ROOT).json()["graphs"][0]
        assert (listed["state"], listed["action"]) == ("transitioning", "wait_for_transition")
        body = {"deployment_id": deployment_id[:-26] + NONCES[3], "deployment": bundle}
        busy = client.post("/cluster/deployments", json=body, headers=ROOT)
        assert refusal(busy) == "deployment_busy"
        planned = client.post("/cluster/plan", json={"deployment": bundle}, headers=ROOT)
        assert refusal(planned) == "deployment_busy"
        assert client.head("/healthz").status_code == 200
        assert client.get("/graphs/beta/snapshot", headers=ROOT).status_code == 200
    loading.join()
    deploying.join()
    assert answers["load"].status_code == 200, answers["load"].text
    assert answers["deploy"].status_code == 202, answers["deploy"].text
    assert outcome(server, deployment_id)["active"]
    rows = server.post("/graphs/alpha/queries/people", headers=ROOT).json()["rows"]
    assert len(rows) == 3


@pytest.mark.acceptance("U-365")
def test_a_deployment_does_not_allow_itself(cluster, server):
    cluster.write("team.pg", WIDER_SCHEMA)
    cluster.write("staff.yaml", POLICY.replace("admins: [root]", "admins: [root, eve]"))
    deployment_id = next_id(server)
    for answer in (
        post(server, captured(cluster), deployment_id, EVE),
        server.post("/cluster/plan", {"deployment": captured(cluster)}, headers=EVE),
    ):
        assert answer.status_code == 403
        assert "'eve'" in answer.json()["error"]
    cluster.write("team.pg", SCHEMA)
    cluster.write("staff.yaml", POLICY)
    cluster.declare(DECLARED.replace("  beta:\n    schema: shop.pg\n", "").replace(", beta]", "]"))
    assert post(server, captured(cluster), deployment_id, EVE).status_code == 403
    assert cluster.has_graph("beta")
    assert server.get("/graphs/beta/snapshot", headers=ROOT).status_code == 200


@pytest.mark.acceptance("U-366")
def test_a_deployment_can_revoke_the_permission_of_its_caller(cluster, server):
    cluster.write("server.yaml", SERVER_POLICY.replace("[root, eve]", "[eve]"))
    deployment_id = next_id(server)
    assert post(server, captured(cluster), deployment_id).status_code == 202
    assert outcome(server, deployment_id)["active"]
    assert server.get("/cluster/deployments", headers=ROOT).status_code == 403
    assert server.get("/graphs", headers=ROOT).status_code == 403
    assert server.get(f"/cluster/deployments/{deployment_id}", headers=EVE).status_code == 200
    assert server.get(f"/cluster/deployments/{deployment_id}", headers=AMY).status_code == 403


KILLED_AT = [
    (Arm("cluster.after_acceptance", Kill()), "not_attempted"),
    (Arm("cluster.after_schema_apply", Kill()), "schema"),
]


@pytest.mark.acceptance("U-367")
@pytest.mark.parametrize(("arm", "expected"), KILLED_AT, ids=["accepted", "migrated"])
def test_a_deployment_that_was_killed_is_recovered_once_by_the_next_start(
    cluster, tmp_path, arm, expected
):
    cluster.write("team.pg", WIDER_SCHEMA)
    cluster.write("queries/people.gq", WIDER_QUERY)
    bundle = captured(cluster)
    dying = TOKENS | {ENVIRONMENT_VARIABLE: describe([arm])}
    arming = (
        "-c",
        f"import sys; sys.path.insert(0, {str(Path(__file__).parents[2])!r}); from tests.support.faults import arm_from_environment; arm_from_environment();"
        "from omnigraph.server.command import run; sys.exit(run(sys.argv[1:]))",
    )
    with serving(tmp_path, "--cluster", cluster.folder, env=dying, command=arming) as server:
        ready(server)
        deployment_id = next_id(server)
        with contextlib.suppress(httpx.HTTPError):
            assert post(server, bundle, deployment_id).status_code == 202
        assert server.process.wait(60) == -signal.SIGKILL
    assert cluster.state["outstanding"]["id"] == deployment_id
    assert cluster.run("apply").codes == ["state_lock_held"]
    with serving(tmp_path, "--cluster", cluster.folder, env=TOKENS) as server:
        ready(server)
        found = outcome(server, deployment_id)
        assert found["deployment"]["status"] == "complete"
        result = found["deployment"]["result"]
        assert result["graphs"] == {"alpha": {"outcome": expected}}
        assert result["converged"] is False
        wanted = WIDER_SCHEMA if expected == "schema" else SCHEMA
        assert schema(server) == wanted
        revision = cluster.state["state_revision"]
        assert post(server, bundle, deployment_id).json() == found
        assert cluster.state["state_revision"] == revision
        assert deployed(server, cluster)["converged"]
        assert schema(server) == WIDER_SCHEMA
    assert cluster.listed("recoveries") == []
    assert cluster.ok("plan")["changes"] == []


@pytest.mark.acceptance("U-368")
def test_a_replica_installs_what_the_other_has_deployed(cluster, tmp_path):
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
    env = TOKENS | {"OMNIGRAPH_LEDGER_POLL_SECONDS": "1"}
    with (
        serving(folders[0], "--cluster", cluster.folder, env=env) as first,
        serving(folders[1], "--cluster", cluster.folder, env=env) as second,
    ):
        ready(first)
        ready(second)
        cluster.write("team.pg", WIDER_SCHEMA)
        cluster.declare(WITH_GAMMA)
        deployment_id = deployed(first, cluster)["id"]
        for _ in range(200):
            found = second.get(f"/cluster/deployments/{deployment_id}", headers=ROOT).json()
            if found["active"]:
                break
            time.sleep(0.05)
        assert found["active"], second.log
        assert schema(second) == WIDER_SCHEMA
        assert second.get("/graphs/gamma/snapshot", headers=ROOT).status_code == 200
        # What `cluster apply` does beside them is installed as well, without closing anything.
        cluster.write("server.yaml", SERVER_POLICY.replace("[root, eve]", "[root, amy]"))
        cluster.converge()
        for server in (first, second):
            for _ in range(200):
                if server.get("/graphs", headers=AMY).status_code == 200:
                    break
                time.sleep(0.05)
            assert server.get("/graphs", headers=AMY).status_code == 200, server.log


@pytest.mark.acceptance("U-370")
def test_bundles_that_are_not_what_they_say_are_refused(cluster, server):
    bundle, deployment_id = captured(cluster), next_id(server)

    def answer(**changed):
        return post(server, bundle | changed, deployment_id)

    digest = bundle["resources"]["schema.alpha"]["digest"]
    other = {**bundle["sources"], digest: bundle["sources"][digest] + "\n"}
    assert refusal(answer(sources=other)) == "bundle_digest_mismatch"
    assert refusal(answer(sources={})) == "bundle_digest_mismatch"
    assert refusal(answer(config_digest="0" * 64)) == "bundle_digest_mismatch"
    assert refusal(answer(canonical_root="/elsewhere")) == "bundle_other_root"
    assert refusal(answer(version=2)) == "bundle_unsupported_version"
    assert refusal(answer(config_semantics="{}")) in (
        "bundle_digest_mismatch",
        "unsupported_cluster_config_version",
    )
    many = {f"policy.p{number}": {"digest": "x"} for number in range(4097)}
    assert answer(resources=many).status_code == 413
    large = answer(sources={"x": "y" * 1_048_577})
    assert (large.status_code, large.json()["resource_limit"]["limit"]) == (413, 1_048_576)
    assert answer(sources={"x": "y" * (17 * 1_048_576)}).status_code == 413
    closed = server.post("/cluster/plan", {"deployment": bundle, "more": 1}, headers=ROOT)
    assert closed.status_code == 400
    assert post(server, bundle, "x:1:y").status_code == 400
    lower = deployment_id.lower()
    assert post(server, bundle, lower).status_code == 400
    assert server.get(f"/cluster/deployments/{lower}", headers=ROOT).status_code == 400
    assert answer(more=1).status_code == 400


def test_a_damaged_cluster_still_refuses_the_start(cluster):
    state = cluster.state
    state["outstanding"] = {"id": 1}
    cluster.put("state.json", state)
    assert "invalid_state_json" in refused("--cluster", cluster.folder, env=TOKENS)
