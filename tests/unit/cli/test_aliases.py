"""Aliases: queries of a project file run here, stored queries are called on their server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

PROJECT = """\
graphs: {g: {uri: G}}
aliases:
  who: {command: read, query: lib.gq, name: by_slug, args: [slug], graph: g}
  anyone: {command: query, query: lib.gq, name: by_slug, args: [slug]}
  all: {command: query, query: lib.gq, name: all_authors, graph: g, format: csv}
  several: {query: lib.gq, graph: g}
  add: {command: change, query: lib.gq, name: add_author, args: [slug, born], graph: g, branch: draft}
  lost: {command: read, query: nowhere.gq, graph: g}
  odd: {command: read, query: lib.gq, graph: nowhere}
"""
OPERATOR = """\
servers: {dev: {url: 'http://127.0.0.1:9'}}
aliases:
  who: {server: dev, graph: team, query: by_slug, args: [slug]}
  stored: {server: dev, graph: team, query: by_slug, args: [slug]}
"""


@pytest.fixture
def aliases(full: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The graph `G` and a project file with aliases."""
    monkeypatch.setenv("OMNIGRAPH_SUPPRESS_YAML_DEPRECATION", "1")
    Path("omnigraph.yaml").write_text(PROJECT)
    return full


def slugs(outcome) -> list[str]:
    assert outcome.code == 0, outcome.err
    return [row["a.slug"] for row in json.loads(outcome.out)["rows"]]


def test_arguments_fill_the_parameters_of_an_alias(cli, aliases):
    assert slugs(cli("query", "--alias", "who", "ada", "--json")) == ["ada"]
    assert slugs(cli("query", "ada", "--alias", "who", "--json")) == ["ada"]
    assert slugs(cli("read", "--alias", "who", "bob", "--json")) == ["bob"]


def test_parameters_win_over_arguments(cli, aliases):
    params = ("--params", '{"slug": "bob"}')
    assert slugs(cli("query", "--alias", "who", "ada", *params, "--json")) == ["bob"]
    assert slugs(cli("query", "--alias", "who", *params, "--json")) == ["bob"]
    assert "parameter" in cli("query", "--alias", "who").err


def test_the_command_alias_is_a_query_by_alias(cli, aliases):
    by_option = cli("query", "--alias", "who", "ada", "--json")
    assert cli("alias", "who", "ada", "--json") == by_option
    assert cli("alias", "all").out == "a.slug\nada\nbob\ncy\n"
    assert cli("alias", "all", "--format", "kv").out.startswith("3 rows")
    assert slugs(cli("alias", "who", "--params", '{"slug": "cy"}', "--json")) == ["cy"]
    code, _, err = cli("alias", "add", "dan", "1")
    assert code == 1
    assert "alias 'add' is for `omnigraph mutate`" in err


def test_the_format_of_an_alias_is_a_default(cli, aliases, home):
    (home / "config.yaml").write_text("defaults: {output: kv}\n")
    assert cli("query", "--alias", "all").out == "a.slug\nada\nbob\ncy\n"
    assert cli("query", "--alias", "all", "--format", "jsonl").out.startswith('{"kind"')


def test_an_explicit_address_wins_over_the_graph_of_an_alias(cli, aliases, empty_graph):
    assert slugs(cli("query", "--alias", "all", "--uri", empty_graph, "--json")) == []
    assert slugs(cli("query", "--alias", "all", "--store", empty_graph, "--json")) == []
    assert slugs(cli("query", "--alias", "odd", "--uri", "G", "--name", "all_authors", "--json"))
    assert "graph 'nowhere' not found" in cli("query", "--alias", "odd").err


def test_the_first_word_is_the_graph_only_if_nothing_else_selects_one(cli, aliases):
    assert slugs(cli("query", "--alias", "anyone", "G", "ada", "--json")) == ["ada"]
    assert slugs(cli("query", "--alias", "anyone", "--uri", "G", "ada", "--json")) == ["ada"]
    assert slugs(cli("query", "--alias", "anyone", "--target", "g", "ada", "--json")) == ["ada"]
    code, _, err = cli("query", "--alias", "anyone", "--target", "g", "G", "ada")
    assert code == 1
    assert "alias 'anyone' got 2 positional arguments and takes slug" in err
    with open("omnigraph.yaml", "a") as file:
        file.write("cli: {graph: g}\n")
    assert slugs(cli("query", "--alias", "anyone", "ada", "--json")) == ["ada"]


def test_a_mutation_runs_on_the_branch_of_its_alias(cli, aliases):
    assert cli("branch", "create", "draft", "--uri", "G").code == 0
    done = json.loads(cli("mutate", "--alias", "add", "dan", "1900", "--json").out)
    assert (done["branch"], done["affected_nodes"]) == ("draft", 1)
    done = json.loads(cli("change", "--alias", "add", "eve", "1", "--branch", "main", "--json").out)
    assert done["branch"] == "main"
    assert "alias 'add' is for `omnigraph mutate`" in cli("query", "--alias", "add", "x", "1").err
    assert "alias 'who' is for `omnigraph query`" in cli("mutate", "--alias", "who", "x").err


def test_a_query_of_several_is_chosen_by_name(cli, aliases):
    assert "multiple queries" in cli("query", "--alias", "several").err
    assert slugs(cli("query", "--alias", "several", "--name", "all_authors", "--json"))
    assert "query file 'nowhere.gq' not found" in cli("query", "--alias", "lost").err


def test_an_explanation_of_an_alias(cli, aliases):
    assert cli("explain", "--alias", "who", "ada").code == 0
    assert cli("query", "--alias", "who", "ada", "--explain").code == 0


@pytest.mark.parametrize("more", [("--query", "lib.gq"), ("-e", "query q() {}")])
def test_an_alias_and_another_source_are_a_usage_error(cli, aliases, more):
    code, out, _ = cli("query", "--alias", "all", *more)
    assert (code, out) == (2, "")


def test_an_unknown_alias_is_told_with_those_that_exist(cli, aliases, home):
    (home / "config.yaml").write_text(OPERATOR)
    code, out, err = cli("query", "--alias", "storde")
    assert (code, out) == (1, "")
    assert (
        "unknown alias 'storde' (defined: add, all, anyone, lost, odd, several, stored, who)" in err
    )
    assert "unknown alias 'stored'" in cli("mutate", "--alias", "stored").err


@pytest.mark.acceptance("U-059", partly="no server runs")
def test_an_alias_of_the_operator_config_goes_to_its_server(cli, aliases, home):
    (home / "config.yaml").write_text(OPERATOR)
    code, out, err = cli("query", "--alias", "stored", "ada", "--uri", "G")
    assert (code, out) == (1, "")
    assert "http://127.0.0.1:9: cannot connect" in err
    assert "takes slug" in cli("query", "--alias", "stored", "ada", "bob").err
    assert "takes slug" in cli("alias", "stored", "ada", "bob").err


def test_the_project_file_wins_over_the_operator_config_with_a_warning(cli, aliases, home):
    (home / "config.yaml").write_text(OPERATOR)
    outcome = cli("query", "--alias", "who", "ada", "--json")
    assert slugs(outcome) == ["ada"]
    assert outcome.err.startswith("warning: alias 'who' of omnigraph.yaml hides the one of")


def test_words_without_an_alias_are_one_graph(cli, aliases):
    code, _, err = cli("query", "G", "more", "--query", "lib.gq", "--name", "all_authors")
    assert code == 2
    assert "unexpected extra argument (more)" in err
    assert cli("query", "G", "--uri", "G", "--query", "lib.gq").code == 2
