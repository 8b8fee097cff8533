"""Deployments without a server: killed at any step, recovered once by the next process."""

from __future__ import annotations

import os
import signal
import tempfile

import pytest

from omnigraph.cluster.serving import read_snapshot
from tests.cluster.clusters import ONE_GRAPH, SCHEMA, WIDER_QUERY, WIDER_SCHEMA
from tests.support.faults import ENVIRONMENT_VARIABLE, Arm, Kill, describe
from tests.support.fork_server import fork_server

NONCE = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
PATIENCE_SECONDS = 120

BEFORE, ACCEPTED, RECORDED = "before", "accepted", "recorded"
POINTS = [
    ("cluster.after_lock_created", 1, BEFORE),
    ("cluster.before_state_write", 1, BEFORE),
    ("cluster.after_state_write", 1, ACCEPTED),
    ("cluster.after_acceptance", 1, ACCEPTED),
    ("cluster.after_sweep", 1, ACCEPTED),
    ("cluster.after_sidecar", 1, ACCEPTED),
    ("cluster.after_graph_create", 1, ACCEPTED),
    ("cluster.after_schema_apply", 1, ACCEPTED),
    ("cluster.after_sidecar_note", 1, ACCEPTED),
    ("cluster.after_sidecar_note", 2, ACCEPTED),
    ("cluster.after_payload", 1, ACCEPTED),
    ("cluster.after_graph_delete", 1, ACCEPTED),
    ("cluster.before_state_write", 2, ACCEPTED),
    ("cluster.after_state_write", 2, RECORDED),
    ("cluster.after_sidecar_removed", 1, RECORDED),
    ("cluster.after_approvals", 1, RECORDED),
]
IDS = [f"{point}-{number}" for point, number, _ in POINTS]
BEFORE_IT = ONE_GRAPH.replace("policies:", "  shop:\n    schema: shop.pg\npolicies:")
AFTER_IT = ONE_GRAPH.replace("policies:", "  mill:\n    schema: shop.pg\npolicies:")


def deploy(cluster, arms=()):
    """Deploy in a process of its own; its exit code."""
    environment = {**os.environ, ENVIRONMENT_VARIABLE: describe(list(arms))}
    with tempfile.NamedTemporaryFile("r") as output:
        process = fork_server().start(
            "tests.cluster.dying:deploy", [str(cluster.folder), NONCE], environment, output.name
        )
        try:
            code = process.wait(PATIENCE_SECONDS)
        finally:
            process.kill()
        assert code in (0, -signal.SIGKILL), output.read()
        return code


def kill_and_recover(cluster, point, number, reached):
    """A graph is created, one migrated and one deleted; the deployment dies at a step."""
    cluster.declare(BEFORE_IT)
    cluster.converge()
    cluster.write("team.pg", WIDER_SCHEMA)
    cluster.write("queries/people.gq", WIDER_QUERY)
    cluster.declare(AFTER_IT)
    base = cluster.state
    assert deploy(cluster, [Arm(point, Kill(), number)]) == -signal.SIGKILL
    state = cluster.state
    wanted = f"{base['ledger_id']}:{base['next_sequence']}:{NONCE}"
    assert (state["outstanding"] or {}).get("id") == (wanted if reached == ACCEPTED else None)
    assert state["next_sequence"] == base["next_sequence"] + (reached != BEFORE)

    snapshot = read_snapshot(cluster.root if "://" in cluster.root else str(cluster.folder))
    recovered = cluster.state
    assert recovered["outstanding"] is None
    assert recovered["next_sequence"] == state["next_sequence"]
    results = [one for one in recovered["deployment_results"] if one["id"] == wanted]
    assert len(results) == (reached != BEFORE)
    again = read_snapshot(cluster.root if "://" in cluster.root else str(cluster.folder))
    assert (again, cluster.state) == (snapshot, recovered)
    if reached == ACCEPTED:
        [result] = results
        assert result["converged"] is False
        assert not cluster.objects.exists("__cluster/lock.json")
        assert cluster.listed("recoveries") == []
        outcomes = {graph: one["outcome"] for graph, one in result["graphs"].items()}
        assert outcomes.keys() == {"team", "shop", "mill"}
        is_migrated = cluster.schema() == WIDER_SCHEMA
        assert outcomes["team"] == ("schema" if is_migrated else "not_attempted")
        assert cluster.schema() in (SCHEMA, WIDER_SCHEMA)
        assert outcomes["mill"] == ("created" if cluster.has_graph("mill") else "not_attempted")
        assert outcomes["shop"] == ("not_attempted" if cluster.has_graph("shop") else "deleted")
    else:
        # Nothing says that the process is gone, so its lock is for an operator to remove.
        assert cluster.ok("force-unlock", cluster.read("lock.json")["lock_id"])
    assert deploy(cluster) == 0
    assert cluster.schema() == WIDER_SCHEMA
    assert (cluster.has_graph("mill"), cluster.has_graph("shop")) == (True, False)
    assert cluster.ok("plan")["changes"] == []
    assert cluster.listed("recoveries") == []


@pytest.mark.acceptance("U-367")
@pytest.mark.parametrize(("point", "number", "reached"), POINTS, ids=IDS)
def test_a_deployment_killed_at_a_step_is_recovered_once(cluster, point, number, reached):
    kill_and_recover(cluster, point, number, reached)


@pytest.mark.slow
@pytest.mark.parametrize(("point", "number", "reached"), POINTS, ids=IDS)
def test_the_same_on_an_object_store(s3_cluster, point, number, reached):
    kill_and_recover(s3_cluster, point, number, reached)


def test_a_killed_deployment_is_recovered_on_an_object_store(s3_cluster):
    kill_and_recover(s3_cluster, "cluster.after_schema_apply", 1, ACCEPTED)


def test_apply_recovers_an_outstanding_deployment_that_it_is_told_of(cluster):
    cluster.converge()
    cluster.write("team.pg", WIDER_SCHEMA)
    deploy(cluster, [Arm("cluster.after_schema_apply", Kill())])
    assert cluster.ok("force-unlock", cluster.read("lock.json")["lock_id"])
    wanted = cluster.state["outstanding"]["id"]
    refused = cluster.run("apply")
    assert refused.codes == ["deployment_outstanding"]
    assert f"--deployment-id {wanted}" in refused.document["diagnostics"][0]["message"]
    other = cluster.run("apply", "--deployment-id", wanted[:-1] + "W")
    assert other.codes == ["deployment_outstanding"]
    done = cluster.ok("apply", "--deployment-id", wanted)
    assert done["converged"]
    first = cluster.state["deployment_results"][-1]
    assert (first["id"], first["graphs"]) == (wanted, {"team": {"outcome": "schema"}})
    assert cluster.state["outstanding"] is None
    assert cluster.run("apply", "--deployment-id", wanted).codes == ["deployment_not_outstanding"]


def test_the_process_of_another_machine_is_left_alone(cluster):
    cluster.converge()
    cluster.write("team.pg", WIDER_SCHEMA)
    deploy(cluster, [Arm("cluster.after_schema_apply", Kill())])
    state = cluster.state
    state["outstanding"]["host"] = "elsewhere"
    cluster.put("state.json", state)
    snapshot = read_snapshot(str(cluster.folder))
    [graph] = snapshot.graphs
    assert graph.problem is not None
    assert cluster.state["outstanding"] is not None
    # An operator who removes the lock says that the process is gone.
    assert cluster.ok("force-unlock", cluster.read("lock.json")["lock_id"])
    assert read_snapshot(str(cluster.folder)).graphs[0].problem is None
    assert cluster.state["outstanding"] is None
