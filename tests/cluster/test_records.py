"""Lock, ledger, catalog and drift: what is recorded, what is really there, and what repairs it."""

from __future__ import annotations

import json
import shutil

import pytest

from omnigraph.cli.main import main
from tests.cluster.clusters import ONE_GRAPH, SCHEMA, WIDER_SCHEMA
from tests.support.faults import Pause, armed

LOCK = {
    "version": 1,
    "lock_id": "L1",
    "operation": "apply",
    "created_at": "2026-01-01T00:00:00Z",
    "pid": 4711,
}


@pytest.mark.acceptance("U-122")
def test_a_lock_is_respected_until_it_is_removed_by_its_id(any_cluster):
    any_cluster.put("lock.json", LOCK)
    for command in ("plan", "apply", "refresh", "import"):
        ran = any_cluster.run(command)
        assert (ran.code, ran.codes) == (1, ["state_lock_held"])
        assert "force-unlock L1" in ran.document["diagnostics"][0]["message"]
    ran = any_cluster.run("force-unlock", "wrong")
    assert (ran.code, ran.codes) == (1, ["state_lock_id_mismatch"])
    assert any_cluster.read("lock.json") == LOCK
    assert any_cluster.ok("force-unlock", "L1")["lock_removed"]
    assert not any_cluster.objects.exists("__cluster/lock.json")
    assert any_cluster.run("force-unlock", "L1").codes == ["state_lock_missing"]
    any_cluster.converge()


@pytest.mark.parametrize(
    ("text", "code"),
    [("{", "invalid_state_lock"), ({**LOCK, "version": 9}, "unsupported_state_lock_version")],
)
def test_a_lock_that_is_not_understood_is_not_removed(cluster, text, code):
    content = text if isinstance(text, str) else json.dumps(text)
    cluster.objects.write_text("__cluster/lock.json", content)
    assert cluster.run("force-unlock", "L1").codes[0] == code
    assert cluster.run("plan").code == 1
    assert cluster.objects.exists("__cluster/lock.json")


def test_status_shows_the_lock_and_needs_none_of_the_files(cluster):
    cluster.put("lock.json", LOCK)
    shutil.rmtree(cluster.folder / "queries")
    document = cluster.ok("status")
    assert [one["code"] for one in document["diagnostics"]] == ["state_missing"]
    state = document["state_observations"]
    assert (state["locked"], state["lock_id"], state["lock_pid"]) == (True, "L1", 4711)
    assert state["lock_age_seconds"] > 0
    assert not state["lock_acquired"]


def test_the_lock_can_be_switched_off(cluster):
    cluster.put("lock.json", LOCK)
    cluster.declare(ONE_GRAPH + "state: {lock: false}\n")
    document = cluster.converge()
    assert [one["code"] for one in document["diagnostics"]] == ["state_lock_disabled"]
    assert cluster.read("lock.json") == LOCK


def test_of_two_applies_at_once_one_fails_and_names_the_other(cluster):
    from threading import Thread

    pause, results = Pause(), []
    with armed("cluster.after_sweep", pause):
        from omnigraph.cluster.apply import apply

        first = Thread(target=lambda: results.append(apply(cluster.folder)))
        first.start()
        pause.wait_until_reached()
        ran = cluster.run("apply")
        pause.release()
        first.join()
    assert (ran.code, ran.codes) == (1, ["state_lock_held"])
    assert "`cluster apply` of process" in ran.document["diagnostics"][0]["message"]
    assert results[0].converged
    assert cluster.state["state_revision"] == 1
    assert not cluster.run("apply").document["state_written"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{", "invalid_state_json"),
        ('{"version": 3, "applied_revision": {}}', "unsupported_state_version"),
        ('{"version": 1, "applied_revision": {}, "colour": 1}', "invalid_state_json"),
        ('{"version": 2, "applied_revision": {}}', "invalid_state_json"),
        ('{"version": 1}', "invalid_state_json"),
    ],
)
def test_a_ledger_that_is_not_understood_stops_every_command(cluster, text, code):
    cluster.objects.write_text("__cluster/state.json", text)
    for command in ("plan", "apply", "status", "refresh", "import"):
        assert cluster.run(command).codes == [code]
    assert cluster.objects.read_text("__cluster/state.json") == text
    assert not cluster.has_graph()


def test_refresh_needs_a_ledger(cluster):
    ran = cluster.run("refresh")
    assert (ran.code, ran.codes) == (1, ["state_missing"])


@pytest.mark.acceptance("U-123")
def test_a_schema_changed_behind_its_back_is_reported_and_migrated_back(any_cluster):
    any_cluster.converge()
    with any_cluster.graph() as graph:
        graph.schema.apply(WIDER_SCHEMA)
        graph.insert("Person", [{"name": "ada", "city": "Paris"}])
    assert any_cluster.ok("plan")["changes"] == []
    before = any_cluster.state
    seen = any_cluster.ok("observe")
    assert seen["resource_statuses"]["schema.team"]["status"] == "drifted"
    assert any_cluster.state == before
    refreshed = any_cluster.ok("refresh")
    assert refreshed["resource_statuses"]["schema.team"] == {
        "status": "drifted",
        "conditions": ["schema_mismatch"],
    }
    observed = refreshed["observations"]["graph.team"]
    assert (observed["exists"], observed["schema_matches_desired"]) == (True, False)
    assert any_cluster.ok("status")["resource_statuses"]["schema.team"]["status"] == "drifted"
    any_cluster.converge()
    assert any_cluster.schema() == SCHEMA
    with any_cluster.graph() as graph:
        # A soft drop: the past still has the value.
        assert graph.at("main~1").get("Person", "ada")["city"] == "Paris"


@pytest.mark.acceptance("U-124")
def test_a_lost_catalog_file_is_reported_and_written_again(any_cluster):
    any_cluster.converge()
    [path] = any_cluster.objects.list_dir("__cluster/resources/query/team/people")
    content = any_cluster.objects.read_text(path)
    any_cluster.objects.delete(path)
    document = any_cluster.ok("status")
    assert [one["code"] for one in document["diagnostics"]] == ["catalog_payload_missing"]
    assert not any_cluster.run("apply").document["state_written"]
    refreshed = any_cluster.ok("refresh")
    assert refreshed["resource_statuses"]["query.team.people"]["conditions"] == ["payload_missing"]
    assert "query.team.people" not in refreshed["resource_digests"]
    any_cluster.converge()
    assert any_cluster.objects.read_text(path) == content


def test_a_changed_catalog_file_is_reported_and_replaced(cluster):
    cluster.converge()
    [path] = cluster.objects.list_dir("__cluster/resources/policy/staff")
    content = cluster.objects.read_text(path)
    cluster.objects.write_text(path, "version: 1\n")
    codes = [one["code"] for one in cluster.ok("status")["diagnostics"]]
    assert codes == ["catalog_payload_mismatch"]
    cluster.ok("refresh")
    cluster.converge()
    assert cluster.objects.read_text(path) == content
    assert cluster.ok("status")["diagnostics"] == []


def test_a_graph_that_vanished_is_made_again_after_refresh(cluster):
    cluster.converge()
    cluster.objects.delete_prefix("graphs/team.omni")
    assert cluster.ok("plan")["changes"] == []
    refreshed = cluster.ok("refresh")
    assert refreshed["resource_statuses"]["graph.team"]["conditions"] == ["graph_missing"]
    cluster.converge()
    assert cluster.schema() == SCHEMA


def test_a_graph_that_does_not_open_is_an_error_of_refresh_and_import(cluster):
    cluster.converge()
    shutil.rmtree(cluster.folder / "graphs/team.omni/__manifest")
    revision = cluster.state["state_revision"]
    ran = cluster.run("refresh")
    assert (ran.code, ran.codes) == (1, ["graph_observation_error"])
    assert ran.document["resource_statuses"]["graph.team"]["status"] == "error"
    assert cluster.state["state_revision"] == revision + 1
    cluster.objects.delete("__cluster/state.json")
    assert cluster.run("import").codes == ["graph_observation_error"]
    assert not cluster.objects.exists("__cluster/state.json")


def test_people_read_revision_lock_and_drift(cluster, capsys):
    cluster.converge()
    with cluster.graph() as graph:
        graph.schema.apply(WIDER_SCHEMA)
    args = ["--config", str(cluster.folder)]
    assert main(["cluster", "refresh", *args]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "cluster refresh: revision 2, 4 resource(s)"
    assert main(["cluster", "status", *args]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "cluster status: revision 2, 4 resource(s)"
    assert lines[1].startswith("applied config: ")
    assert lines[2:] == [
        "lock: free",
        "  graph.team: drifted (schema_mismatch)",
        "  schema.team: drifted (schema_mismatch)",
    ]
