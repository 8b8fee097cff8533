"""Plan, approve and apply: what converges, what is blocked and what fails."""

from __future__ import annotations

import json

import pytest

import omnigraph as og
from omnigraph.cli.main import main
from tests.cluster.clusters import (
    ONE_GRAPH,
    POLICY,
    SCHEMA,
    TWO_GRAPHS,
    WIDER_QUERY,
    WIDER_SCHEMA,
    WRONG_SCHEMA,
)


@pytest.mark.acceptance("U-113")
def test_a_plan_before_anything_creates_everything_and_leaves_no_lock(any_cluster):
    document = any_cluster.ok("plan")
    assert {one["operation"] for one in document["changes"]} == {"create"}
    assert {one["disposition"] for one in document["changes"]} == {"applied"}
    state = document["state_observations"]
    assert (state["state_found"], state["lock_acquired"], state["locked"]) == (False, True, False)
    assert not any_cluster.objects.exists("__cluster/lock.json")
    assert not any_cluster.objects.exists("__cluster/state.json")


@pytest.mark.acceptance("U-115", "U-359")
def test_apply_creates_the_ledger_and_converges_and_a_second_one_changes_nothing(any_cluster):
    first = any_cluster.run("apply")
    assert (first.code, first.document["converged"]) == (0, True)
    assert first.document["state_written"]
    assert first.document["applied_count"] == 4
    assert any_cluster.schema() == SCHEMA
    state = any_cluster.state
    assert (state["version"], state["state_revision"], state["next_sequence"]) == (2, 1, 2)
    [result] = state["deployment_results"]
    assert result["id"] == first.document["deployment_id"]
    assert first.err == f"deployment {result['id']}\n"
    assert result["id"].split(":")[:2] == [state["ledger_id"], "1"]
    assert result["graphs"] == {"team": {"outcome": "created"}}
    assert any_cluster.listed("recoveries") == []

    second = any_cluster.run("apply")
    assert (second.code, second.err) == (0, "")
    assert second.document["converged"]
    assert not second.document["state_written"]
    assert second.document["changes"] == []
    assert any_cluster.state == state
    assert any_cluster.ok("plan")["changes"] == []


@pytest.mark.acceptance("U-115")
def test_import_then_apply(cluster):
    imported = cluster.ok("import")
    assert imported["operation"] == "import"
    assert imported["state_observations"]["state_revision"] == 1
    assert imported["observations"]["graph.team"]["exists"] is False
    cluster.converge()
    assert cluster.run("import").codes == ["state_already_exists"]


@pytest.mark.acceptance("U-359")
def test_a_ledger_of_version_1_becomes_one_of_version_2_and_keeps_its_id(cluster):
    cluster.converge()
    state = cluster.state
    old = {
        "version": 1,
        "state_revision": state["state_revision"],
        "applied_revision": {
            "config_digest": state["applied_revision"]["config_digest"],
            "resources": state["applied_revision"]["resources"],
        },
    }
    cluster.put("state.json", old)
    assert cluster.ok("plan")["changes"] == []
    assert cluster.state == old
    document = cluster.converge()
    assert document["state_written"]
    assert document["changes"] == []
    new = cluster.state
    assert (new["version"], new["next_sequence"]) == (2, 1)
    cluster.write("team.pg", WIDER_SCHEMA)
    cluster.converge()
    assert cluster.state["ledger_id"] == new["ledger_id"]


@pytest.mark.acceptance("U-116")
def test_a_schema_and_the_query_that_needs_it_change_in_one_apply(any_cluster):
    any_cluster.converge()
    with any_cluster.graph() as graph:
        graph.insert("Person", [{"name": "ada", "age": 36}])
    any_cluster.write("team.pg", WIDER_SCHEMA)
    any_cluster.write("queries/people.gq", WIDER_QUERY)
    changes = {one["resource"]: one for one in any_cluster.ok("plan")["changes"]}
    assert changes.keys() == {"graph.team", "query.team.people", "schema.team"}
    assert changes["graph.team"]["disposition"] == "derived"
    migration = changes["schema.team"]["migration"]
    assert migration["supported"]
    assert [step["kind"] for step in migration["steps"]] == ["add_property"]
    any_cluster.converge()
    with any_cluster.graph() as graph:
        assert graph.get("Person", "ada")["city"] is None
        assert graph.head().message == "cluster apply"


def test_a_schema_whose_comments_alone_change_converges(any_cluster):
    any_cluster.converge()
    any_cluster.write("team.pg", "// who works here\n" + SCHEMA)
    [migration] = [
        one["migration"] for one in any_cluster.ok("plan")["changes"] if "migration" in one
    ]
    assert migration == {"supported": True, "steps": []}
    any_cluster.converge()
    assert any_cluster.schema().startswith("// who works here\n")
    refreshed = any_cluster.ok("refresh")
    assert {one["status"] for one in refreshed["resource_statuses"].values()} == {"applied"}
    assert any_cluster.ok("plan")["changes"] == []


@pytest.mark.acceptance("U-117")
def test_a_schema_that_fails_blocks_its_dependants_and_nothing_else(cluster):
    cluster.converge()
    cluster.write("team.pg", WRONG_SCHEMA)
    cluster.write(
        "queries/people.gq", "// again\n" + (cluster.folder / "queries/people.gq").read_text()
    )
    cluster.write("staff.yaml", POLICY.replace("[ada]", "[ada, bob]"))
    ran = cluster.run("apply")
    assert ran.code == 1
    assert "schema_apply_failed" in ran.codes
    assert ran.changes() == {
        "graph.team": ("update", "deferred", "apply_unsupported_kind"),
        "policy.staff": ("update", "applied", None),
        "query.team.people": ("update", "blocked", "dependency_not_applied"),
        "schema.team": ("update", "blocked", "schema_apply_failed"),
    }
    assert ran.document["resource_statuses"]["query.team.people"]["status"] == "blocked"
    assert cluster.listed("recoveries") == []
    assert cluster.schema() == SCHEMA
    cluster.write("team.pg", SCHEMA)
    document = cluster.converge()
    assert {one["status"] for one in document["resource_statuses"].values()} == {"applied"}


def test_a_graph_that_cannot_be_created_stops_others_and_the_next_run_goes_on(cluster):
    cluster.declare(TWO_GRAPHS)
    (cluster.folder / "graphs").mkdir()
    (cluster.folder / "graphs" / "shop.omni").write_text("in the way")
    ran = cluster.run("apply")
    assert ran.code == 1
    assert ran.codes[:2] == ["graph_create_failed", "graph_create_skipped"]
    assert ran.changes() == {
        "graph.shop": ("create", "blocked", "graph_create_failed"),
        "graph.team": ("create", "blocked", "dependency_not_applied"),
        "policy.staff": ("create", "blocked", "dependency_not_applied"),
        "query.team.people": ("create", "blocked", "dependency_not_applied"),
        "schema.shop": ("create", "blocked", "graph_create_failed"),
        "schema.team": ("create", "blocked", "dependency_not_applied"),
    }
    assert len(cluster.listed("recoveries")) == 1
    (cluster.folder / "graphs" / "shop.omni").unlink()
    cluster.converge()
    assert cluster.listed("recoveries") == []


@pytest.mark.acceptance("U-118")
def test_a_change_of_bindings_alone_is_an_update(cluster):
    cluster.declare(TWO_GRAPHS)
    cluster.converge()
    cluster.declare(TWO_GRAPHS.replace("[team]", "[team, graph.shop]"))
    [change] = cluster.ok("plan")["changes"]
    assert (change["resource"], change["operation"]) == ("policy.staff", "update")
    assert change["binding_change"] is True
    assert change["before_digest"] == change["after_digest"]
    cluster.converge()
    bound = cluster.state["applied_revision"]["resources"]["policy.staff"]["applies_to"]
    assert bound == ["graph.shop", "graph.team"]


def test_a_change_of_the_provider_alone_is_an_update_of_metadata(cluster):
    cluster.converge()
    provider = "providers:\n  embedding:\n    fake:\n      kind: mock\n      api_key: ${FAKE_KEY}\n"
    declared = ONE_GRAPH.replace("schema: team.pg", "schema: team.pg\n    embedding_provider: fake")
    cluster.declare(declared + provider)
    changes = {one["resource"]: one for one in cluster.ok("plan")["changes"]}
    assert changes.keys() == {"graph.team", "provider.fake"}
    assert changes["graph.team"]["metadata_change"] is True
    cluster.converge()
    recorded = cluster.state["applied_revision"]["resources"]["graph.team"]
    assert recorded["embedding_provider"] == "fake"
    cluster.declare(declared)
    assert cluster.run("plan").codes == ["dangling_provider_reference"]


@pytest.mark.acceptance("U-119", "U-120", "U-121")
def test_a_graph_is_deleted_only_with_an_approval_for_just_this_state(any_cluster, monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_NO_LEGACY_CONFIG", "1")
    any_cluster.declare(TWO_GRAPHS)
    any_cluster.converge()
    any_cluster.declare(TWO_GRAPHS.replace("  shop:\n    schema: shop.pg\n", ""))
    planned = any_cluster.ok("plan")
    [gate] = planned["approvals_required"]
    assert (gate["resource"], gate["satisfied"]) == ("graph.shop", False)
    ran = any_cluster.run("apply")
    assert (ran.code, ran.document["converged"]) == (0, False)
    assert ran.changes()["graph.shop"] == ("delete", "blocked", "approval_required")
    assert any_cluster.has_graph("shop")

    config = str(any_cluster.folder)
    assert main(["cluster", "approve", "graph.shop", "--config", config]) == 1
    assert any_cluster.run("approve", "graph.team", "--as", "kim").codes == [
        "approval_not_required"
    ]
    given = any_cluster.ok("approve", "graph.shop", "--as", "kim")
    assert (given["operation"], given["approved_by"]) == ("delete", "kim")
    any_cluster.write("staff.yaml", POLICY.replace("[ada]", "[ada, bob]"))
    ran = any_cluster.run("apply")
    assert "approval_stale" in ran.codes
    assert ran.changes()["graph.shop"] == ("delete", "blocked", "approval_required")

    given = any_cluster.ok("approve", "graph.shop", "--as", "kim")
    assert any_cluster.ok("plan")["approvals_required"][0]["satisfied"]
    done = any_cluster.ok("apply", "--as", "ada")
    assert done["converged"]
    assert not any_cluster.has_graph("shop")
    state = any_cluster.state
    assert sorted(state["applied_revision"]["resources"]) == [
        "graph.team",
        "policy.staff",
        "query.team.people",
        "schema.team",
    ]
    tombstone = state["observations"]["graph.shop"]
    assert (tombstone["kind"], tombstone["actor"]) == ("tombstone", "ada")
    approval = any_cluster.read(f"approvals/{given['approval_id']}.json")
    assert approval["consumed_at"] is not None
    assert given["approval_id"] in state["approval_records"]
    assert any_cluster.ok("plan")["changes"] == []


def test_an_approval_needs_an_actor(cluster, capsys):
    assert main(["cluster", "approve", "graph.team", "--config", str(cluster.folder)]) == 1
    err = capsys.readouterr().err
    assert "--as" in err
    assert "cli.actor" in err


def test_a_broken_project_file_is_read_only_without_as(cluster, tmp_path, capsys):
    (tmp_path / "omnigraph.yaml").write_text("cli: [")
    assert main(["cluster", "apply", "--config", str(cluster.folder)]) == 1
    err = capsys.readouterr().err
    assert "omnigraph.yaml" in err
    assert "--as" in err
    assert cluster.ok("apply", "--as", "kim")["actor"] == "kim"
    assert cluster.ok("plan")["changes"] == []


def test_a_file_that_changes_during_the_run_is_not_recorded(cluster):
    from tests.support.faults import Call, armed

    cluster.converge()
    cluster.write(
        "queries/people.gq", "// two\n" + (cluster.folder / "queries/people.gq").read_text()
    )
    before = cluster.state
    change = Call(lambda hit: cluster.write("queries/people.gq", "// three\n"))
    with armed("cluster.after_sweep", change):
        ran = cluster.run("apply")
    assert ran.code == 1
    assert ran.codes == ["resource_content_changed"]
    assert cluster.state == before


@pytest.mark.acceptance("U-127")
def test_a_ledger_that_changed_meanwhile_is_not_overwritten(any_cluster):
    from tests.support.faults import Call, armed

    any_cluster.converge()
    any_cluster.write("team.pg", WIDER_SCHEMA)
    other = {**any_cluster.state, "state_revision": 77}
    with armed(
        "cluster.before_state_write", Call(lambda hit: any_cluster.put("state.json", other))
    ):
        ran = any_cluster.run("apply")
    assert ran.code == 1
    assert ran.codes == ["state_cas_mismatch"]
    assert any_cluster.state == other
    assert len(any_cluster.listed("recoveries")) == 1
    document = any_cluster.converge()
    codes = [one["code"] for one in document["diagnostics"]]
    assert codes == ["cluster_recovery_rolled_forward"]


@pytest.mark.acceptance("U-132")
def test_storage_elsewhere_has_all_records_and_graphs(cluster, tmp_path):
    other = tmp_path / "other"
    cluster.declare(ONE_GRAPH + f"storage: file://{other}/\n")
    cluster.converge()
    assert sorted(path.name for path in other.iterdir()) == ["__cluster", "graphs"]
    assert not (cluster.folder / "__cluster").exists()
    assert og.open(other / "graphs" / "team.omni").schema.source == SCHEMA
    cluster.declare(ONE_GRAPH + "storage: ../other\n")
    assert cluster.ok("plan")["state_observations"]["state_found"]


def test_a_graph_that_exists_is_not_taken_over_by_apply_but_by_import(cluster):
    og.init(cluster.uri(), "node Other { k: String @key }\n").close()
    ran = cluster.run("apply")
    assert (ran.code, ran.codes[0]) == (1, "graph_create_failed")
    for path in cluster.listed("recoveries"):
        cluster.objects.delete(path)
    cluster.objects.delete("__cluster/state.json")
    imported = cluster.ok("import")
    assert imported["resource_statuses"]["schema.team"]["conditions"] == ["schema_mismatch"]
    cluster.converge()
    assert cluster.schema() == SCHEMA


def test_people_read_what_was_done(cluster, capsys):
    args = ["--config", str(cluster.folder)]
    assert main(["cluster", "plan", *args]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "cluster plan: 4 change(s), 0 approval gate(s)",
        "  Create graph.team",
        "  Create policy.staff",
        "  Create query.team.people",
        "  Create schema.team",
    ]
    assert main(["cluster", "apply", *args]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [
        "cluster apply: 4 applied, 0 deferred/blocked",
        "  Create graph.team [Applied]",
    ]
    assert lines[-2:] == [
        "revision 1, converged: yes, ledger written: yes",
        "running servers pick it up within seconds",
    ]
    assert main(["cluster", "plan", *args]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "  no changes"
    cluster.write("team.pg", WIDER_SCHEMA)
    assert main(["cluster", "plan", *args]) == 0
    out = capsys.readouterr().out
    steps = out.partition("  Update schema.team\n")[2]
    assert json.loads(steps)[0]["property_name"] == "city"
