"""Graphs named by their cluster, and commands that a cluster keeps away from its graphs."""

from __future__ import annotations

import json
import shutil

import pytest

from omnigraph.cli.main import main
from tests.cluster.clusters import POLICY, TWO_GRAPHS, WIDER_SCHEMA


@pytest.mark.acceptance("U-130")
@pytest.mark.parametrize("command", [["optimize"], ["repair"], ["cleanup", "--keep", "1"]])
def test_maintenance_finds_a_graph_by_cluster_and_id(any_cluster, command, capsys):
    any_cluster.declare(TWO_GRAPHS)
    any_cluster.converge()
    for cluster in {str(any_cluster.folder), f"file://{any_cluster.folder}", any_cluster.root}:
        if cluster.startswith("file") and any_cluster.root.startswith("s3"):
            continue
        args = [*command, "--cluster", cluster, "--cluster-graph", "team"]
        assert main(args) == 0
    capsys.readouterr()
    unknown = [*command, "--cluster", str(any_cluster.folder), "--graph", "teem"]
    assert main(unknown) == 1
    err = capsys.readouterr().err
    assert "is not applied in cluster" in err
    assert "applied: shop, team" in err
    assert main([*command, "--cluster", str(any_cluster.folder)]) == 2
    assert main([*command, "--cluster-graph", "team"]) == 2
    assert main([*command, any_cluster.uri(), "--cluster", "x", "--cluster-graph", "y"]) == 2


@pytest.mark.acceptance("U-130")
def test_maintenance_works_without_the_catalog(cluster, capsys):
    cluster.converge()
    shutil.rmtree(cluster.folder / "__cluster" / "resources")
    args = ["--cluster", str(cluster.folder), "--cluster-graph", "team", "--json"]
    assert main(["optimize", *args]) == 0
    assert json.loads(capsys.readouterr().out)["uri"] == cluster.uri()


def test_a_cluster_without_a_ledger_says_what_to_run(cluster, capsys):
    args = ["--cluster", str(cluster.folder), "--cluster-graph", "team"]
    assert main(["optimize", *args]) == 1
    assert "`omnigraph cluster apply`" in capsys.readouterr().err


@pytest.mark.acceptance("U-131")
def test_init_does_not_make_graphs_inside_a_cluster(any_cluster, capsys):
    any_cluster.converge()
    schema = str(any_cluster.folder / "team.pg")
    assert main(["init", "--schema", schema, any_cluster.uri("new")]) == 1
    assert "`omnigraph cluster apply`" in capsys.readouterr().err
    assert not any_cluster.has_graph("new")
    beside = any_cluster.uri().replace("/graphs/team.omni", "/elsewhere.omni")
    assert main(["init", "--schema", schema, beside]) == 0


def test_schema_apply_refuses_a_graph_of_a_cluster(cluster, capsys):
    cluster.converge()
    cluster.write("wider.pg", WIDER_SCHEMA)
    wider = str(cluster.folder / "wider.pg")
    assert main(["schema", "apply", cluster.uri(), "--schema", wider]) == 1
    assert "`omnigraph cluster apply`" in capsys.readouterr().err
    assert "city" not in cluster.schema()


def test_a_profile_selects_a_graph_of_a_cluster_under_its_policy(
    cluster, tmp_path, monkeypatch, capsys
):
    cluster.converge()
    home = tmp_path / "home"
    home.mkdir()
    text = f"clusters: {{c: {{root: {cluster.folder}}}}}\nprofiles: {{p: {{cluster: c}}}}\n"
    (home / "config.yaml").write_text(text)
    monkeypatch.setenv("OMNIGRAPH_HOME", str(home))
    change = 'query q() { insert Person { name: "ada" } }'
    assert main(["mutate", "-e", change, "--profile", "p", "--as", "bob"]) == 1
    assert "policy denied" in capsys.readouterr().err
    assert main(["mutate", "-e", change, "--profile", "p", "--as", "ada"]) == 0
    assert main(["optimize", "--profile", "p"]) == 0
    assert main(["optimize", "--cluster", "c", "--cluster-graph", "team"]) == 0
    cluster.write("staff.yaml", POLICY.replace("[ada]", "[ada, bob]"))
    cluster.converge()
    change = change.replace('"ada"', '"bob"')
    assert main(["mutate", "-e", change, "--profile", "p", "--as", "bob"]) == 0
    cluster.declare(TWO_GRAPHS)
    cluster.converge()
    capsys.readouterr()
    assert main(["optimize", "--profile", "p"]) == 1
    assert "applied: shop, team" in capsys.readouterr().err


CASES = """\
version: 1
cases:
  - {id: staff-reads, actor: ada, action: read, branch: main, expect: allow}
  - {id: guests-do-not, actor: eve, action: read, branch: main, expect: deny}
"""


def test_the_applied_policy_is_validated_tested_and_explained(cluster, capsys, tmp_path):
    cluster.converge()
    (tmp_path / "cases.yaml").write_text(CASES)
    named = ["--cluster", str(cluster.folder), "--cluster-graph", "team", "--json"]
    assert main(["policy", "validate", *named]) == 0
    assert json.loads(capsys.readouterr().out)["actors"] == 1
    assert main(["policy", "test", "--tests", str(tmp_path / "cases.yaml"), *named]) == 0
    assert json.loads(capsys.readouterr().out) == {"ok": True, "cases": 2}
    explain = ["policy", "explain", "--actor", "eve", "--action", "read", "--branch", "main"]
    assert main([*explain, *named]) == 0
    assert json.loads(capsys.readouterr().out)["decision"] == "deny"
    assert main(["policy", "test", *named]) == 2


def test_the_applied_queries_are_listed_and_validated(cluster, capsys):
    cluster.converge()
    named = ["--cluster", str(cluster.folder), "--cluster-graph", "team", "--json"]
    assert main(["queries", "list", *named]) == 0
    assert [one["name"] for one in json.loads(capsys.readouterr().out)["queries"]] == ["people"]
    assert main(["queries", "validate", *named]) == 0
    assert json.loads(capsys.readouterr().out)["ok"] is True
    unknown = ["--cluster", str(cluster.folder), "--cluster-graph", "teem"]
    assert main(["queries", "list", *unknown]) == 1
    assert "is not applied in cluster" in capsys.readouterr().err
