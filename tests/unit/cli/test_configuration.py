"""`login`, `logout`, `profile` and `config migrate`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import yaml

SECRET = "s3cr3t-Zq9"
DEV = "servers: {dev: {url: 'http://127.0.0.1:9'}}\n"
ASK = ("query", "--server", "dev", "-e", "query q() { match { $a: A } return { $a.x } }")


@pytest.fixture(autouse=True)
def here(library: Path, home: Path) -> Path:
    """The current directory; `home` is that of the operator config."""
    return library


def silent_about(secret: str, outcome) -> None:
    assert secret not in outcome.out
    assert secret not in outcome.err


# -- login and logout ---------------------------------------------------------------------------


@pytest.mark.acceptance("U-056")
def test_a_token_from_standard_input_is_stored_and_checked_by_remote_commands(cli, home):
    (home / "config.yaml").write_text(DEV)
    outcome = cli("login", "dev", stdin=f"{SECRET}\n".encode())
    credentials = home / "credentials"
    assert outcome == (0, f"stored the token for dev in {credentials}\n", "")
    assert credentials.read_text() == f'[dev]\ntoken = "{SECRET}"\n'
    assert credentials.stat().st_mode & 0o777 == 0o600
    assert "cannot connect" in cli(*ASK).err
    credentials.chmod(0o644)
    for words in (ASK, ("login", "dev", "--token", "x"), ("logout", "dev")):
        outcome = cli(*words)
        assert outcome.code == 1
        assert f"chmod 600 {credentials}" in outcome.err
        silent_about(SECRET, outcome)
    assert "chmod" not in cli(*ASK[:2], "http://127.0.0.1:10", *ASK[3:]).err


def test_the_document_of_a_login(cli, home):
    (home / "config.yaml").write_text(DEV)
    outcome = cli("login", "dev", "--token", f" {SECRET} ", "--json")
    assert json.loads(outcome.out) == {
        "server": "dev",
        "credentials_path": str(home / "credentials"),
        "declared": True,
    }
    silent_about(SECRET, outcome)


def test_a_server_that_is_not_defined_is_a_note(cli, home):
    outcome = cli("login", "later", "--token", SECRET, "--json")
    assert (outcome.code, json.loads(outcome.out)["declared"]) == (0, False)
    assert f"{home}/config.yaml has no server 'later'" in outcome.err
    assert (home / "credentials").exists()


@pytest.mark.parametrize("stdin", [b"", b"\n", b"  \t \n", b"\nsecond\n"])
def test_a_blank_token_is_refused(cli, home, stdin):
    code, out, err = cli("login", "dev", stdin=stdin)
    assert (code, out) == (1, "")
    assert "the token is blank" in err
    assert not (home / "credentials").exists()
    assert cli("login", "dev", "--token", " ").code == 1


@pytest.mark.parametrize(
    "stdin", [b"two words\n", b"s3cr3t\x00\n", b"s3cr3t\xff\xfe\n", b"s3cr3t" * 20_000]
)
def test_a_token_that_cannot_be_sent_is_refused_and_not_shown(cli, home, stdin):
    outcome = cli("login", "dev", stdin=stdin)
    assert outcome.code == 1
    assert not (home / "credentials").exists()
    silent_about("s3cr3t", outcome)
    silent_about("two words", outcome)


@pytest.mark.parametrize("name", ["../dev", "a b", "x]\n[y", "-"])
def test_a_name_that_cannot_be_a_section_is_refused(cli, home, name):
    for words in (("login", "--token", SECRET, "--", name), ("logout", "--", name)):
        outcome = cli(*words)
        assert outcome.code == 1
        assert "is not a valid server name" in outcome.err
        silent_about(SECRET, outcome)
    assert os.listdir(home) == []


def test_a_logout_removes_one_token_and_can_be_repeated(cli, home):
    for name in ("a", "dev", "b"):
        cli("login", name, "--token", f"{SECRET}-{name}")
    outcome = cli("logout", "dev", "--json")
    assert json.loads(outcome.out) == {
        "server": "dev",
        "credentials_path": str(home / "credentials"),
    }
    assert (home / "credentials").read_text() == (
        f'[a]\ntoken = "{SECRET}-a"\n[b]\ntoken = "{SECRET}-b"\n'
    )
    assert cli("logout", "dev").out == f"there is no token for dev in {home}/credentials\n"
    assert cli("logout", "a").out == f"removed the token for a from {home}/credentials\n"


def test_a_home_that_does_not_exist_is_made_private(cli, tmp_path, monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path / "new" / "home"))
    assert cli("logout", "dev").code == 0
    assert not (tmp_path / "new").exists()
    assert cli("login", "dev", "--token", SECRET).code == 0
    assert (tmp_path / "new" / "home").stat().st_mode & 0o777 == 0o700


@pytest.mark.acceptance("U-057", partly="no request is sent")
def test_a_token_that_breaks_a_request_names_its_source_and_not_itself(cli, home, monkeypatch):
    (home / "config.yaml").write_text(DEV)
    cli("login", "dev", "--token", "good")
    monkeypatch.setenv("OMNIGRAPH_TOKEN_DEV", f"{SECRET} x")
    outcome = cli(*ASK)
    assert "the token from environment variable OMNIGRAPH_TOKEN_DEV" in outcome.err
    silent_about(SECRET, outcome)
    monkeypatch.delenv("OMNIGRAPH_TOKEN_DEV")
    assert "cannot connect" in cli(*ASK).err


# -- profiles -----------------------------------------------------------------------------------

PROFILES = """\
servers: {dev: {url: 'http://h:8080'}}
clusters: {home: {root: 's3://b/c'}}
profiles:
  work: {server: dev, default_graph: team}
  big: {cluster: home}
  local: {store: /data/g}
"""


def test_profiles_are_listed_with_what_they_bind(cli, home, monkeypatch):
    assert cli("profile", "list").out == "(no profiles)\n"
    assert json.loads(cli("profile", "list", "--json").out) == {"profiles": []}
    (home / "config.yaml").write_text(PROFILES)
    monkeypatch.setenv("OMNIGRAPH_PROFILE", "big")
    assert cli("profile", "list").out == (
        "  work  server dev, graph team\n* big  cluster home\n  local  store /data/g\n"
    )
    assert "* work" in cli("profile", "list", "--profile", "work").out
    assert json.loads(cli("profile", "list", "--json").out)["profiles"][0] == {
        "name": "work", "server": "dev", "cluster": None, "store": None, "default_graph": "team",
        "selected": False,
    }  # fmt: skip


def test_one_profile_is_shown_by_its_name(cli, home):
    (home / "config.yaml").write_text(PROFILES)
    assert cli("profile", "show", "work").out == "work  server dev, graph team\n"
    assert json.loads(cli("profile", "show", "local", "--json").out) == {
        "name": "local", "server": None, "cluster": None, "store": "/data/g", "default_graph": None
    }  # fmt: skip
    code, _, err = cli("profile", "show", "wrok")
    assert code == 1
    assert "unknown profile 'wrok'" in err


def test_what_is_selected_is_shown_with_its_reason(cli, home):
    assert cli("profile", "show").out == "no graph is selected\n"
    (home / "config.yaml").write_text(PROFILES)
    assert cli("profile", "show", "--profile", "work").out == (
        "server: http://h:8080\ngraph: team\nselected by: --profile work\n"
    )
    assert json.loads(cli("profile", "show", "--server", "dev", "--json").out) == {
        "profile": None,
        "kind": "server",
        "address": "http://h:8080",
        "graph": None,
        "selected_by": "--server dev",
    }
    assert "cluster: s3://b/c" in cli("profile", "show", "--profile", "big").out


# -- migration ----------------------------------------------------------------------------------

PROJECT = """\
project: {name: team}
graphs:
  local: {uri: G, queries: {by_slug: {file: by_slug.gq}}}
  prod: {uri: 'https://h', bearer_token_env: PROD_TOKEN}
cli: {actor: ada, output_format: csv, branch: draft}
aliases: {who: {command: read, query: lib.gq, name: by_slug, args: [slug], graph: prod}}
"""


@pytest.mark.acceptance("U-060")
def test_a_migration_is_proposed_then_written_and_overwrites_nothing(cli, home, here):
    (here / "omnigraph.yaml").write_text(PROJECT)
    (home / "config.yaml").write_text("operator: {actor: bob}\n")
    before = sorted(os.listdir(here)), sorted(os.listdir(home))
    code, out, err = cli("config", "migrate")
    assert (code, err) == (0, "")
    for heading in (
        "team half -> cluster.yaml",
        "personal half -> ~/.omnigraph/config.yaml",
        "no destination",
        "manual steps",
    ):
        assert heading in out
    assert "omnigraph login prod" in out
    assert (sorted(os.listdir(here)), sorted(os.listdir(home))) == before

    document = json.loads(cli("config", "migrate", "--write", "--json").out)
    assert set(document) == {"report", "written"}
    assert document["written"] == [f"{home}/config.yaml", "cluster.yaml"]
    merged = yaml.safe_load((home / "config.yaml").read_text())
    assert merged["operator"] == {"actor": "bob"}
    assert merged["servers"] == {"prod": {"url": "https://h"}}
    assert merged["defaults"] == {"output": "csv"}
    assert merged["aliases"]["who"] == {"server": "prod", "query": "by_slug", "args": ["slug"]}
    assert (home / "config.yaml.bak").read_text() == "operator: {actor: bob}\n"
    written = (here / "cluster.yaml").read_text()
    assert yaml.safe_load(written)["metadata"] == {"name": "team"}

    third = cli("config", "migrate", "--write")
    assert "wrote cluster.yaml.proposed" in third.out
    assert (here / "cluster.yaml.proposed").read_text() == written
    assert (here / "cluster.yaml").read_text() == written
    assert (here / "omnigraph.yaml").read_text() == PROJECT


def test_the_proposed_cluster_is_valid_once_it_names_the_schema(cli, home, here):
    policies = "server: {policy: {file: server.yaml}}\n"
    (here / "omnigraph.yaml").write_text(PROJECT + policies)
    (here / "server.yaml").write_text(
        "version: 1\ngroups: {ops: [ada]}\n"
        "rules: [{id: list, allow: {actors: {group: ops}, actions: [graph_list]}}]\n"
    )
    (here / "by_slug.gq").write_text(
        "query by_slug($slug: String) { match { $a: Author { slug: $slug } } return { $a.slug } }"
    )
    (here / "library.pg").write_text("node Author { slug: String @key }")
    assert cli("config", "migrate", "--write").code == 0
    proposal = here / "cluster.yaml"
    assert "schema_file_missing graphs.local.schema" in cli("cluster", "validate").out
    proposal.write_text(proposal.read_text().replace("schema: TODO", "schema: library.pg"))
    code, out, _ = cli("cluster", "validate")
    assert (code, out) == (0, "cluster config valid: 4 resource(s), 3 dependency edge(s)\n")


def test_the_report_of_a_migration(cli, here):
    (here / "other.yaml").write_text(PROJECT)
    report = json.loads(cli("config", "migrate", "--config", "other.yaml", "--json").out)
    assert list(report) == ["source", "cluster_yaml", "operator_merge", "dropped", "manual_steps"]
    assert report["source"] == "other.yaml"
    assert report["operator_merge"]["operator.actor"] == "ada"
    assert [entry["key"] for entry in report["dropped"]] == ["cli.branch"]


def test_without_a_file_there_is_nothing_to_migrate(cli, home):
    for words in ((), ("--config", "no.yaml"), ("--write",)):
        code, out, err = cli("config", "migrate", *words)
        assert (code, out) == (1, "")
        assert "nothing to migrate" in err
    assert os.listdir(home) == []


def test_a_broken_project_file_is_not_migrated(cli, here, home):
    (here / "omnigraph.yaml").write_text("cli: {actor: ada, actor: bob}\n")
    code, out, err = cli("config", "migrate", "--write")
    assert (code, out) == (1, "")
    assert "omnigraph.yaml:1:19: key 'actor' stands twice" in err
    assert os.listdir(home) == []
