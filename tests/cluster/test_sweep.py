"""What the next run makes of each sidecar that an interrupted one left."""

from __future__ import annotations

import hashlib
import shutil

import pytest

import omnigraph as og
from tests.cluster.clusters import SCHEMA, SIDECAR, WIDER_SCHEMA, sidecar

OLD, NEW = (hashlib.sha256(text.encode()).hexdigest() for text in (SCHEMA, WIDER_SCHEMA))


def is_left(cluster) -> bool:
    return bool(cluster.listed("recoveries"))


@pytest.mark.acceptance("U-125")
def test_a_create_that_finished_is_recorded(any_cluster):
    og.init(any_cluster.uri(), SCHEMA).close()
    any_cluster.put(SIDECAR, sidecar("graph_create", OLD))
    planned = any_cluster.ok("plan")
    assert [one["code"] for one in planned["diagnostics"]] == ["cluster_recovery_pending"]
    document = any_cluster.converge()
    assert [one["code"] for one in document["diagnostics"]] == ["cluster_recovery_rolled_forward"]
    [record] = any_cluster.state["recovery_records"].values()
    assert (record["kind"], record["outcome"]) == ("graph_create", "rolled_forward")
    assert not is_left(any_cluster)


def test_a_create_that_did_nothing_is_forgotten_and_done_again(cluster):
    cluster.put(SIDECAR, sidecar("graph_create", OLD))
    assert cluster.converge()["diagnostics"] == []
    assert not is_left(cluster)


def test_a_create_that_is_in_the_ledger_is_forgotten(cluster):
    cluster.converge()
    cluster.put(SIDECAR, sidecar("graph_create", OLD))
    assert not cluster.converge()["state_written"]
    assert not is_left(cluster)


@pytest.mark.acceptance("U-126")
def test_a_create_whose_graph_does_not_open_is_left_for_an_operator(cluster):
    og.init(cluster.uri(), SCHEMA).close()
    shutil.rmtree(cluster.folder / "graphs/team.omni/__manifest")
    cluster.put(SIDECAR, sidecar("graph_create", OLD))
    ran = cluster.run("apply")
    assert ran.code == 1
    assert "graph_create_incomplete" in ran.codes
    assert ran.document["resource_statuses"]["graph.team"]["status"] == "error"
    assert ran.changes()["query.team.people"] == ("create", "blocked", "cluster_recovery_pending")
    assert ran.changes()["policy.staff"] == ("create", "blocked", "cluster_recovery_pending")
    assert is_left(cluster)
    assert (cluster.folder / "graphs/team.omni/_schema.pg").exists()
    cluster.objects.delete_prefix("graphs/team.omni")
    cluster.converge()
    assert not is_left(cluster)


def test_a_create_with_another_schema_waits_for_refresh(cluster):
    og.init(cluster.uri(), "node Other { k: String @key }\n").close()
    cluster.put(SIDECAR, sidecar("graph_create", OLD))
    ran = cluster.run("apply")
    assert (ran.code, ran.document["converged"]) == (0, False)
    status = ran.document["resource_statuses"]["graph.team"]
    assert (status["status"], status["conditions"]) == (
        "drifted",
        ["actual_applied_state_pending"],
    )
    assert is_left(cluster)
    cluster.ok("refresh")
    cluster.converge()
    assert cluster.schema() == SCHEMA
    assert not is_left(cluster)


@pytest.mark.parametrize(
    ("live", "rolled_forward"), [(SCHEMA, False), (WIDER_SCHEMA, True)], ids=["old", "new"]
)
def test_a_schema_change_is_forgotten_or_recorded(any_cluster, live, rolled_forward):
    any_cluster.converge()
    with any_cluster.graph() as graph:
        graph.schema.apply(live)
    any_cluster.write("team.pg", WIDER_SCHEMA)
    any_cluster.put(SIDECAR, sidecar("schema_apply", NEW))
    any_cluster.converge()
    assert bool(any_cluster.state["recovery_records"]) is rolled_forward
    assert any_cluster.schema() == WIDER_SCHEMA
    assert not is_left(any_cluster)


def test_a_schema_that_is_neither_old_nor_new_blocks_the_graph(cluster):
    cluster.converge()
    with cluster.graph() as graph:
        graph.schema.apply(SCHEMA + "node Extra { k: String @key }\n")
    cluster.write("team.pg", WIDER_SCHEMA)
    cluster.put(SIDECAR, sidecar("schema_apply", NEW))
    ran = cluster.run("apply")
    assert ran.changes()["schema.team"] == ("update", "blocked", "cluster_recovery_pending")
    assert not ran.document["converged"]
    assert is_left(cluster)
    cluster.ok("refresh")
    cluster.converge()
    assert not is_left(cluster)


def test_a_deletion_that_did_not_finish_is_done_again_with_the_same_approval(cluster):
    cluster.converge()
    cluster.declare("version: 1\n")
    approval = cluster.ok("approve", "graph.team", "--as", "kim")["approval_id"]
    cluster.put(SIDECAR, sidecar("graph_delete", None, approval_id=approval))
    document = cluster.converge()
    assert "graph_delete_incomplete" in [one["code"] for one in document["diagnostics"]]
    assert not cluster.has_graph()
    assert not is_left(cluster)


def test_a_deletion_that_finished_is_recorded_and_uses_its_approval(cluster):
    cluster.converge()
    cluster.declare("version: 1\n")
    approval = cluster.ok("approve", "graph.team", "--as", "kim")["approval_id"]
    cluster.objects.delete_prefix("graphs/team.omni")
    cluster.put(SIDECAR, sidecar("graph_delete", None, approval_id=approval))
    cluster.converge()
    assert cluster.state["observations"]["graph.team"]["kind"] == "tombstone"
    assert cluster.read(f"approvals/{approval}.json")["consumed_at"] is not None
    assert not is_left(cluster)


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ({"schema_version": 9}, "unsupported_recovery_sidecar_version"),
        ({"schema_version": 1}, "invalid_recovery_sidecar"),
    ],
)
def test_a_sidecar_that_is_not_understood_stays(cluster, content, code):
    cluster.put(SIDECAR, content)
    document = cluster.converge()
    assert [one["code"] for one in document["diagnostics"]] == [code]
    assert is_left(cluster)
