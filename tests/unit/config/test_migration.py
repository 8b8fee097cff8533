"""What becomes of a project file, and that nothing which exists is lost."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from omnigraph.config.legacy import NEW_HOMES, parse_legacy_config
from omnigraph.config.migration import Migration, plan_migration, write_migration
from omnigraph.config.operator import StoredQueryAlias, parse_operator_config
from omnigraph.errors import OperatorConfigError
from tests.unit.config.test_legacy import EVERYTHING


def plan_for(text: str, folder: Path = Path("/team")) -> Migration:
    return plan_migration(parse_legacy_config(text, folder / "omnigraph.yaml"))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "team").mkdir()
    return tmp_path / "home" / "config.yaml"


def test_personal_settings_go_to_the_operator_config():
    report = plan_for(EVERYTHING).to_json()
    assert report["operator_merge"] == {
        "operator.actor": "ada",
        "defaults.output": "kv",
        "defaults.table_max_column_width": "12",
        "defaults.table_cell_layout": "wrap",
        "servers.remote.url": "https://h:8080/graphs/g",
        "aliases.who": "server: TODO\ngraph: stored\nquery: by_slug\nargs:\n- slug\nformat: csv",
    }


def test_settings_of_the_team_become_a_proposed_cluster():
    text = plan_for(EVERYTHING).to_json()["cluster_yaml"]
    assert yaml.safe_load(text) == {
        "version": 1,
        "metadata": {"name": "team"},
        "graphs": {
            "local": {
                "schema": "TODO",
                "queries": {
                    "by_slug": {"file": "q/by_slug.gq"},
                    "hidden": {"file": "q/hidden.gq"},
                },
            },
            "stored": {"schema": "TODO"},
            "TODO": {"schema": "TODO", "queries": {"top": {"file": "top.gq"}}},
        },
        "policies": {
            "server": {"file": "server.yaml", "applies_to": ["cluster"]},
            "default": {"file": "top.yaml", "applies_to": ["TODO"]},
            "local-policy": {"file": "policy.yaml", "applies_to": ["graph.local"]},
        },
    }
    assert text.startswith("version: 1\n")


def test_keys_without_a_new_home_are_listed_with_a_reason():
    dropped = {entry["key"]: entry["reason"] for entry in plan_for(EVERYTHING).to_json()["dropped"]}
    assert set(dropped) == {
        "query.roots", "server.bind", "server.graph", "cli.graph", "cli.branch", "auth.env_file",
        "aliases.add",
    }  # fmt: skip
    assert all(dropped.values())


def test_every_key_of_a_file_goes_somewhere():
    report = plan_for(EVERYTHING).to_json()
    kept = " ".join(report["operator_merge"])
    for key, found in {
        "project.name": "metadata" in report["cluster_yaml"],
        "graphs": "servers" in kept and "graphs" in report["cluster_yaml"],
        "server.policy": "server.yaml" in report["cluster_yaml"],
        "policy": "top.yaml" in report["cluster_yaml"],
        "queries": "top.gq" in report["cluster_yaml"],
        "aliases": "aliases" in kept,
        "cli.actor": "operator.actor" in kept,
        "cli.output_format": "defaults.output" in kept,
        "cli.table_max_column_width": "defaults.table_max_column_width" in kept,
        "cli.table_cell_layout": "defaults.table_cell_layout" in kept,
        **{entry["key"]: True for entry in report["dropped"] if entry["key"] in NEW_HOMES},
    }.items():
        assert found, key
        assert key in NEW_HOMES


def test_steps_by_hand_name_the_token_the_schema_and_the_queries():
    steps = "\n".join(plan_for(EVERYTHING).manual_steps)
    assert "`omnigraph login remote` with the token of TEAM_TOKEN" in steps
    assert "replace TODO in aliases.who: server" in steps
    assert "replace TODO in cluster.yaml by the schema file of each graph" in steps
    assert "check hidden" in steps


def test_an_alias_of_a_served_graph_knows_its_server():
    plan = plan_for(
        "graphs: {prod: {uri: 'http://h'}}\naliases: {who: {query: l.gq, name: q, graph: prod}}\n"
    )
    assert plan.operator["aliases", "who"] == {"server": "prod", "query": "q"}
    assert plan.cluster_yaml is None


def test_nothing_to_say_is_an_empty_report():
    assert plan_for("colour: blue\n").to_json() == {
        "source": "/team/omnigraph.yaml",
        "cluster_yaml": None,
        "operator_merge": {},
        "dropped": [],
        "manual_steps": [],
    }


def test_a_name_that_no_server_can_have_is_dropped():
    plan = plan_for("graphs: {'my graph': {uri: 'http://h'}}\n")
    assert [entry.key for entry in plan.dropped] == ["graphs.my graph"]
    assert plan.operator == {}


# -- writing ------------------------------------------------------------------------------------


def test_a_new_operator_config_reads_back_as_planned(home, tmp_path):
    plan = plan_for(EVERYTHING, tmp_path / "team")
    assert write_migration(plan, home) == [home, tmp_path / "team" / "cluster.yaml"]
    config = parse_operator_config(home.read_text(), home)
    assert (config.actor, config.servers) == ("ada", {"remote": "https://h:8080/graphs/g"})
    assert config.aliases["who"] == StoredQueryAlias(
        "who", "TODO", "by_slug", "stored", ("slug",), {}, "csv"
    )
    assert config.warnings == ()
    assert (tmp_path / "team" / "cluster.yaml").read_text() == plan.cluster_yaml
    assert sorted(os.listdir(home.parent)) == ["config.yaml"]


def test_keys_that_exist_are_never_overwritten(home, tmp_path):
    home.parent.mkdir()
    before = "# mine\noperator: {actor: bob}\nservers: {remote: {url: 'http://mine'}}\nextra: 1\n"
    home.write_text(before)
    write_migration(plan_for(EVERYTHING, tmp_path / "team"), home)
    document = yaml.safe_load(home.read_text())
    assert document["operator"] == {"actor": "bob"}
    assert document["servers"] == {"remote": {"url": "http://mine"}}
    assert document["extra"] == 1
    assert document["defaults"]["output"] == "kv"
    assert home.with_name("config.yaml.bak").read_text() == before


def test_a_second_time_nothing_is_added_and_the_proposal_goes_beside(home, tmp_path):
    plan = plan_for(EVERYTHING, tmp_path / "team")
    write_migration(plan, home)
    written = home.read_bytes()
    cluster = tmp_path / "team" / "cluster.yaml"
    cluster.write_text("version: 1\n")
    assert write_migration(plan, home) == [tmp_path / "team" / "cluster.yaml.proposed"]
    assert home.read_bytes() == written
    assert cluster.read_text() == "version: 1\n"
    assert not home.with_name("config.yaml.bak").exists()


@pytest.mark.parametrize(
    "before", ["operator: [", "operator: ada\n", "operator: {actor: 1}\n", "- a\n"]
)
def test_an_operator_config_that_is_broken_is_left_alone(home, tmp_path, before):
    home.parent.mkdir()
    home.write_text(before)
    with pytest.raises(OperatorConfigError):
        write_migration(plan_for(EVERYTHING, tmp_path / "team"), home)
    assert home.read_text() == before
    assert os.listdir(home.parent) == ["config.yaml"]
    assert os.listdir(tmp_path / "team") == []


def test_values_that_would_contradict_each_other_are_not_written(home, tmp_path):
    home.parent.mkdir()
    before = "aliases:\n  who:\n"
    home.write_text(before)
    with pytest.raises(OperatorConfigError, match=r"aliases\.who"):
        write_migration(plan_for(EVERYTHING, tmp_path / "team"), home)
    assert home.read_text() == before


def test_words_that_look_like_other_values_stay_text(home):
    plan = plan_for(
        "cli: {actor: '007'}\naliases: {'on': {query: l.gq, name: 'no', args: ['yes']}}\n"
    )
    write_migration(plan, home)
    config = parse_operator_config(home.read_text(), home)
    assert config.actor == "007"
    assert (config.aliases["on"].query, config.aliases["on"].args) == ("no", ("yes",))
