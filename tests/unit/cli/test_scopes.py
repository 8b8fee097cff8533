"""The graph, actor, branch and format that commands take from configuration files."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

QUERY = ("query", "--query", "lib.gq", "--name", "all_authors", "--json")
ADD = ("mutate", "--query", "lib.gq", "--name", "add_author", "--json", "--params")
DAN = '{"slug": "dan", "born": 1}'


def operator(home: Path, text: str) -> None:
    (home / "config.yaml").write_text(text)


def project(text: str, path: str = "omnigraph.yaml") -> None:
    Path(path).write_text(text)


def authors(outcome) -> int:
    assert outcome.code == 0, outcome.err
    return int(json.loads(outcome.out)["row_count"])


def shown(cli, *args: str) -> tuple[str, str]:
    """What `profile show` says is selected, and by what."""
    document = json.loads(cli("profile", "show", "--json", *args).out)
    return document["address"], document["selected_by"]


@pytest.fixture
def two(full: str, empty_graph: Path, home: Path) -> str:
    """The graph `G` with three authors, and an empty one called `E`."""
    shutil.copytree(empty_graph, "E")
    return full


# -- scopes -------------------------------------------------------------------------------------


@pytest.mark.acceptance("U-371")
def test_a_store_is_like_the_address(cli, two):
    assert authors(cli(*QUERY, "--store", "G")) == 3
    assert authors(cli("--store", "G", *QUERY)) == 3
    assert cli("snapshot", "--store", "G", "--json").out == cli("snapshot", "G", "--json").out
    assert cli("optimize", "--store", "G").code == 0


@pytest.mark.acceptance("U-371")
@pytest.mark.parametrize(
    "args",
    [
        ("--store", "G", "--server", "dev"),
        ("--store", "G", "G"),
        ("--store", "G", "--uri", "G"),
        ("--store", "G", "--target", "g"),
        ("--store", "G", "--graph", "g"),
        ("--graph", "g", "--uri", "G"),
        ("--graph", "g"),
    ],
)
def test_two_scopes_are_a_usage_error(cli, two, args):
    code, out, err = cli(*QUERY, *args)
    assert (code, out) == (2, ""), err


@pytest.mark.parametrize(
    "words",
    [
        (*QUERY, "--uri", "http://ada:hunter2@h?k=hunter2#hunter2"),
        (*QUERY, "--server", "http://ada:hunter2@h"),
        (*QUERY, "--server", "dev", "--uri", "http://ada:hunter2@h"),
        (*QUERY, "--store", "http://ada:hunter2@h"),
        ("init", "--schema", "library.pg", "http://ada:hunter2@h"),
        ("optimize", "http://ada:hunter2@h"),
        ("lint", "--query", "lib.gq", "http://ada:hunter2@h"),
        ("profile", "show", "--server", "http://h?k=hunter2"),
    ],
)
def test_a_password_in_an_address_is_never_repeated(cli, two, words):
    code, out, err = cli(*words)
    assert (code, out) == (1, "")
    assert "hunter2" not in err


def test_an_address_wins_over_a_target_with_one_warning(cli, two):
    project("graphs: {e: {uri: E}}\n")
    outcome = cli("lint", "--query", "lib.gq", "G", "--target", "e", "--json")
    assert json.loads(outcome.out)["schema_source"] == {"kind": "graph", "uri": "G"}
    assert outcome.err.count("--target e is ignored") == 1


@pytest.mark.acceptance("U-058")
def test_a_server_that_is_not_defined_or_not_alone_is_refused(cli, two, home):
    operator(home, "servers: {dev: {url: 'http://h'}, prod: {url: 'http://p'}}\n")
    asked = ("query", "-e", "query q() { match { $a: Author } return { $a.slug } }")
    code, out, err = cli(*asked, "--server", "nope")
    assert (code, out) == (1, "")
    assert "unknown server 'nope'" in err
    assert "dev, prod" in err
    code, out, err = cli(asked[0], "http://h", *asked[1:], "--server", "dev")
    assert (code, out) == (1, "")
    assert "exclusive" in err
    assert "exclusive" in cli(*asked, "--server", "dev", "--target", "g").err


@pytest.mark.acceptance("U-372")
def test_the_nearest_scope_wins_and_profile_show_says_so(cli, two, home, monkeypatch):
    operator(
        home,
        f"defaults: {{store: {os.getcwd()}/G}}\n"
        f"profiles: {{empty: {{store: {os.getcwd()}/E}}, full: {{store: {os.getcwd()}/G}}}}\n",
    )
    assert authors(cli(*QUERY)) == 3
    assert shown(cli) == (f"{os.getcwd()}/G", f"defaults in {home}/config.yaml")
    project("graphs: {e: {uri: E}}\ncli: {graph: e}\n")
    assert authors(cli(*QUERY)) == 0
    assert shown(cli) == ("E", "cli.graph in omnigraph.yaml")
    monkeypatch.setenv("OMNIGRAPH_PROFILE", "full")
    assert authors(cli(*QUERY)) == 3
    assert shown(cli) == (f"{os.getcwd()}/G", "OMNIGRAPH_PROFILE")
    assert authors(cli(*QUERY, "--profile", "empty")) == 0
    assert shown(cli, "--profile", "empty") == (f"{os.getcwd()}/E", "--profile empty")
    assert authors(cli(*QUERY, "--profile", "empty", "--store", "G")) == 3
    assert authors(cli(*QUERY, "--profile", "empty", "G")) == 3
    assert authors(cli(*QUERY, "--profile", "full", "--target", "e")) == 0
    assert shown(cli, "--store", "G", "--profile", "empty") == ("G", "--store")


def test_an_unknown_profile_is_named_with_those_that_exist(cli, two, home, monkeypatch):
    operator(home, "profiles: {work: {store: /g}}\n")
    assert "unknown profile 'works'" in cli(*QUERY, "--profile", "works").err
    monkeypatch.setenv("OMNIGRAPH_PROFILE", "works")
    code, out, err = cli(*QUERY)
    assert (code, out) == (1, "")
    assert "(defined: work); did you mean `work`?" in err
    assert cli(*QUERY, "G").code == 0


def test_a_profile_of_a_server_is_no_storage(cli, two, home):
    operator(home, "servers: {dev: {url: 'http://h'}}\nprofiles: {dev: {server: dev}}\n")
    err = cli("optimize", "--profile", "dev").err
    assert "`optimize` is a storage-plane command and needs direct storage access" in err
    assert "remote server" in err
    assert (
        "--profile does not apply"
        in cli("init", "--schema", "library.pg", "X", "--profile", "dev").err
    )
    assert "--store does not apply" in cli("fmt", "lib.gq", "--store", "G").err


def test_a_server_that_does_not_run_is_named(cli, two, home):
    operator(home, "servers: {dev: {url: 'http://127.0.0.1:9/base'}}\n")
    code, out, err = cli(*QUERY, "--server", "dev", "--graph", "team")
    assert code == 1
    assert json.loads(out)["error"].startswith("http://127.0.0.1:9/base: cannot connect")
    assert "http://127.0.0.1:9/base: cannot connect" in err
    assert "check the address and the server" in err


def test_a_cluster_without_a_ledger_is_refused(cli, two, home):
    operator(home, "clusters: {c: {root: /c}}\nprofiles: {p: {cluster: c, default_graph: g}}\n")
    code, _, err = cli(*QUERY, "--profile", "p")
    assert code == 1
    assert "/c has no ledger" in err
    assert "omnigraph cluster apply" in err


# -- the project file ---------------------------------------------------------------------------


def test_a_graph_of_the_project_file_is_found_from_any_directory(cli, two, library, monkeypatch):
    project("graphs: {full: {uri: G}, gone: {uri: ./nowhere}}\n")
    (library / "sub").mkdir()
    monkeypatch.chdir(library / "sub")
    by_name = ("--config", "../omnigraph.yaml", "--target")
    assert authors(cli(*QUERY, *by_name, "full")) == 3
    monkeypatch.setenv("OMNIGRAPH_CONFIG", str(library / "omnigraph.yaml"))
    assert authors(cli(*QUERY, "--target", "full")) == 3
    assert "no graph at" in cli(*QUERY, "--target", "gone").err
    code, _, err = cli(*QUERY, "--target", "ful")
    assert code == 1
    assert "graph 'ful' not found in omnigraph.yaml" in err


@pytest.mark.acceptance("U-050")
def test_the_project_file_is_announced_silenced_or_forbidden(cli, two, monkeypatch):
    project("graphs: {full: {uri: G}}\ncli: {graph: full, branch: main}\n")
    outcome = cli(*QUERY)
    assert authors(outcome) == 3
    assert outcome.err.count("deprecated (RFC-008)") == 1
    assert "config migrate" in outcome.err
    for key in ("graphs", "cli.graph", "cli.branch"):
        assert f"{key} -> " in outcome.err
    monkeypatch.setenv("OMNIGRAPH_SUPPRESS_YAML_DEPRECATION", "1")
    assert cli(*QUERY).err == ""
    monkeypatch.setenv("OMNIGRAPH_NO_LEGACY_CONFIG", "1")
    for words in (QUERY, ("config", "migrate"), (*QUERY, "G")):
        code, out, err = cli(*words)
        assert (code, out) == (1, "")
        assert "OMNIGRAPH_NO_LEGACY_CONFIG" in err
        assert "config migrate" in err
    Path("omnigraph.yaml").unlink()
    assert authors(cli(*QUERY, "G")) == 3


@pytest.mark.acceptance("U-049")
@pytest.mark.parametrize(
    "words",
    [
        (*ADD, DAN),
        ("branch", "create", "b"),
        ("load", "--mode", "merge", "--data", "library.jsonl"),
    ],
)
def test_a_policy_that_a_named_graph_would_ignore_stops_every_write(cli, two, words):
    project("graphs: {g: {uri: G}}\ncli: {graph: g}\npolicy: {file: p.yaml}\n")
    code, out, err = cli(*words)
    assert (code, out) == (1, "")
    assert "graph 'g'" in err
    assert "policy.file" in err
    assert authors(cli(*QUERY)) == 3
    assert cli("branch", "list").out == "main\n"


def test_a_policy_that_cannot_be_read_stops_writes_and_no_reads(cli, two):
    project("graphs: {g: {uri: G, policy: {file: p.yaml}}}\n")
    code, out, err = cli(*ADD, DAN, "--target", "g", "--as", "ada")
    assert (code, out) == (1, "")
    assert "p.yaml: no such file" in err
    assert authors(cli(*QUERY, "--target", "g")) == 3
    assert cli(*ADD, DAN, "--uri", "G").code == 0


def test_the_actor_of_an_option_wins_over_both_files(cli, two, home):
    names = iter("abcd")

    def actor(*args: str) -> str | None:
        outcome = cli("branch", "create", next(names), "--uri", "G", "--json", *args)
        found: str | None = json.loads(outcome.out)["actor_id"]
        return found

    assert actor() is None
    operator(home, "operator: {actor: of-operator}\n")
    assert actor() == "of-operator"
    project("cli: {actor: of-project}\n")
    assert actor() == "of-project"
    assert actor("--as", "of-option") == "of-option"


def test_the_branch_of_the_project_file_is_the_default_of_commands(cli, two):
    assert cli("branch", "create", "draft", "--uri", "G").code == 0
    project("graphs: {g: {uri: G}}\ncli: {graph: g, branch: draft}\n")
    assert json.loads(cli(*ADD, DAN).out)["branch"] == "draft"
    assert authors(cli(*QUERY)) == 4
    assert authors(cli(*QUERY, "--branch", "main")) == 3
    assert json.loads(cli("snapshot", "--json").out)["branch"] == "draft"
    assert cli("export").out.count('"Author"') == 4
    assert json.loads(cli("branch", "create", "b", "--json").out)["from"] == "draft"
    assert "mode" in json.loads(
        cli("load", "--mode", "merge", "--data", "library.jsonl", "--json").out
    )
    assert authors(cli(*QUERY, "--branch", "main")) == 3
    listed = json.loads(cli("commit", "list", "--json").out)["commits"]
    assert {commit["manifest_branch"] for commit in listed} == {None}
    assert json.loads(cli("branch", "merge", "b", "--json").out)["target"] == "draft"


@pytest.mark.acceptance("U-018")
def test_the_format_of_a_file_is_the_default_and_options_win(cli, two, home):
    asked = (*QUERY[:-1], "G")
    operator(home, "defaults: {output: csv}\n")
    assert cli(*asked).out == "a.slug\nada\nbob\ncy\n"
    assert cli(*asked, "--format", "jsonl").out.startswith('{"kind":"metadata"')
    assert json.loads(cli(*asked, "--json").out)["row_count"] == 3
    project("cli: {output_format: kv}\n")
    assert "row 1\na.slug: ada" in cli(*asked).out


def test_the_layout_of_tables_is_that_of_the_files(cli, two, home):
    asked = ("query", "G", "-e", "query q() { match { $b: Book } return { $b.title as t } }")
    operator(home, "defaults: {table_max_column_width: 3}\n")
    assert "No…" in cli(*asked).out
    project("cli: {table_cell_layout: wrap}\n")
    assert "Eng\nine\ns" in cli(*asked).out.replace(" ", "")


def test_query_files_are_searched_in_the_roots(cli, two):
    Path("queries").mkdir()
    Path("lib.gq").rename("queries/lib.gq")
    assert "query file 'lib.gq' not found" in cli(*QUERY, "G").err
    project("query: {roots: [queries]}\n")
    assert authors(cli(*QUERY, "G")) == 3


def test_variables_of_the_env_file_are_set_unless_they_are(cli, two, monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_MAX_ROWS", "1000")
    project("auth: {env_file: team.env}\n")
    Path("team.env").write_text("OMNIGRAPH_MAX_ROWS=1\nOMNIGRAPH_EXAMPLE=x\n")
    monkeypatch.setattr(os, "environ", os.environ.copy())
    assert authors(cli(*QUERY, "G")) == 3
    assert (os.environ["OMNIGRAPH_MAX_ROWS"], os.environ["OMNIGRAPH_EXAMPLE"]) == ("1000", "x")
    del os.environ["OMNIGRAPH_MAX_ROWS"]
    assert "budget exceeded" in cli(*QUERY, "G").err


def test_an_env_file_that_does_not_exist_is_a_warning(cli, two):
    project("auth: {env_file: team.env}\n")
    outcome = cli(*QUERY, "G")
    assert authors(outcome) == 3
    assert "auth.env_file names team.env, which does not exist" in outcome.err


@pytest.mark.parametrize("text", ["graphs: [", "- a\n", "cli: {graph: {}}\n", "a: \0"])
def test_a_broken_project_file_stops_a_command_and_is_named(cli, two, text):
    project(text)
    code, out, err = cli(*QUERY, "G")
    assert (code, out) == (1, "")
    assert json.loads(err)["error_code"] == "OG-I-024"
    assert json.loads(err)["error"].startswith("omnigraph.yaml")


@pytest.mark.parametrize("text", ["servers: [", "- a\n", "operator: {actor: {}}\n", "a: \0"])
def test_a_broken_operator_config_stops_a_command_and_is_named(cli, two, home, text):
    operator(home, text)
    code, out, err = cli(*QUERY, "G")
    assert (code, out) == (1, "")
    assert json.loads(err)["error_code"] == "OG-I-016"
    message = f"could not parse operator config {home}/config.yaml"
    assert json.loads(err)["error"].startswith(message)


def test_help_and_version_read_no_file(cli, two, home):
    project("graphs: [")
    operator(home, "servers: [")
    for words in (("--help",), ("query", "--help"), ("version",), ("lint", "--help")):
        assert cli(*words).code == 0
