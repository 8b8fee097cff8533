"""Policies on the command line: which writes they stop, and the commands about them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from omnigraph.cli.command_table import COMMANDS
from omnigraph.policy import gate as gates
from tests.support.policies import TEAM_POLICY

ADD = (
    "mutate",
    "--query",
    "lib.gq",
    "--name",
    "add_author",
    "--params",
    '{"slug": "dan", "born": 1}',
)
NAMED = "graphs: {g: {uri: G, policy: {file: rules/policy.yaml}}}\ncli: {graph: g}\n"

WRITES = {
    "mutate": ADD,
    "load": ("load", "--mode", "merge", "--data", "library.jsonl"),
    "ingest": ("ingest", "--data", "library.jsonl"),
    "branch create": ("branch", "create", "main2"),
    "branch delete": ("branch", "delete", "idle"),
    "branch reset": ("branch", "reset", "main", "main~1"),
    "branch merge": ("branch", "merge", "idle"),
    "merge": ("merge", "idle"),
    "revert": ("revert", "main"),
    "cherry-pick": ("cherry-pick", "main"),
    "tag create": ("tag", "create", "v2"),
    "tag delete": ("tag", "delete", "v1"),
    "pin create": ("pin", "create", "v3"),
    "pin delete": ("pin", "delete", "v1"),
    "schema apply": ("schema", "apply", "--schema", "library.pg"),
    "ensure-indices": ("ensure-indices",),
    "analyze": ("analyze", "degrees", "--node", "Author", "--write", "degree=born"),
    "embed": ("embed", "--target", "g"),
    "optimize": ("optimize",),
    "cleanup": ("cleanup", "--keep", "1", "--confirm"),
    "repair": ("repair", "--confirm"),
}

NOT_ASKED = {
    "init",  # A graph that does not exist has no policy.
    "query", "explain", "alias", "export", "snapshot", "diff", "changes", "log", "status", "verify",
    "lint", "fmt", "errors", "version", "login", "logout", "blob get", "blob stat", "branch list",
    "commit list", "commit show", "commit changes", "changes poll", "changes baseline", "graphs list",
    "tag list", "pin list", "schema show", "schema plan",
    "queries validate", "queries list", "policy validate", "policy test", "policy explain",
    "profile list", "profile show", "config migrate", "spark warm", "completion", "bisect",
    # Their writes are calls of the graph, in the name of the actor.
    "shell", "mcp", "explore",
    # They work on storage, as its owner.
    "cluster validate", "cluster plan", "cluster apply", "cluster approve", "cluster status",
    "cluster observe", "cluster refresh", "cluster import", "cluster force-unlock",
}  # fmt: skip


@pytest.fixture
def governed(full: str, cli, monkeypatch, tmp_path) -> str:
    """The graph `G` under the policy of the specification, as the graph that commands select."""
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OMNIGRAPH_SUPPRESS_YAML_DEPRECATION", "1")
    assert cli("branch", "create", "idle", "--uri", "G").code == 0
    assert cli("tag", "create", "v1", "--uri", "G").code == 0
    Path("rules").mkdir()
    Path("rules/policy.yaml").write_text(TEAM_POLICY)
    Path("omnigraph.yaml").write_text(NAMED)
    return full


def commits(cli) -> int:
    outcome = cli("commit", "list", "--json")
    assert outcome.code == 0, outcome.err
    return len(json.loads(outcome.out)["commits"])


def test_every_command_is_listed_as_a_write_or_as_none():
    assert not NOT_ASKED & set(WRITES)
    assert NOT_ASKED | set(WRITES) == set(COMMANDS)


@pytest.mark.parametrize("name", WRITES)
def test_a_write_that_no_rule_allows_is_denied(cli, governed, name):
    words, before = WRITES[name], commits(cli)
    code, out, err = cli(*words, "--as", "eve")
    assert (code, out) == (1, "")
    assert "denied action" in err
    assert "unknown actor 'eve'" in err
    code, out, err = cli(*words)
    assert (code, out) == (1, "")
    assert "no actor" in err
    assert commits(cli) == before


@pytest.mark.acceptance("U-051")
def test_a_named_graph_enforces_its_policy(cli, governed):
    code, out, err = cli(*ADD, "--json")
    assert (code, out) == (1, "")
    assert "no actor" in err
    code, out, err = cli(*ADD, "--json", "--as", "amy")
    assert (code, out) == (1, "")
    assert "policy denied action 'change' on branch 'main' for actor 'amy'" in err
    code, out, err = cli(*ADD, "--json", "--as", "root")
    assert (code, json.loads(out)["actor_id"]) == (0, "root")
    assert cli(*ADD, "--branch", "idle", "--as", "amy").code == 0


@pytest.mark.acceptance("U-052")
def test_an_address_does_not_inherit_the_policy_of_a_named_graph(cli, governed):
    code, out, _err = cli(*ADD, "--json", "--uri", "G", "--as", "amy")
    assert (code, json.loads(out)["actor_id"]) == (0, "amy")


def test_the_policy_at_the_top_governs_addresses(cli, governed):
    Path("omnigraph.yaml").write_text("policy: {file: rules/policy.yaml}\n")
    assert "denied" in cli(*ADD, "--uri", "G", "--as", "amy").err
    assert cli(*ADD, "--uri", "G", "--as", "root").code == 0


def test_without_cedarpy_writes_are_refused_and_reads_work(cli, governed, monkeypatch):
    monkeypatch.setattr(gates, "is_installed", lambda _library: False)
    code, out, err = cli(*ADD, "--as", "root")
    assert (code, out) == (1, "")
    assert "needs the extra 'policy'; install it with: pip install" in err
    assert cli("query", "--query", "lib.gq", "--name", "all_authors").code == 0


# -- commands about policies ----------------------------------------------------------------


@pytest.mark.acceptance("U-053")
def test_a_decision_is_explained(cli, governed):
    explain = ("policy", "explain", "--actor", "amy", "--action", "change", "--branch")
    code, out, err = cli(*explain, "main")
    assert (code, err) == (0, "")
    assert out == (
        "decision: deny\nactor: amy\naction: change\nbranch: main\n"
        "message: policy denied action 'change' on branch 'main' for actor 'amy'\n"
    )
    code, out, err = cli(*explain, "draft")
    assert (code, err) == (0, "")
    assert out == (
        "decision: allow\nactor: amy\naction: change\nbranch: draft\nmatched_rule: team-write\n"
        "message: policy allowed action 'change' for actor 'amy'\n"
    )


@pytest.mark.parametrize("action", ["branch-create", "branch_create"])
def test_an_action_is_written_with_either_sign(cli, governed, action):
    code, out, _err = cli(
        "policy", "explain", "--actor", "amy", "--action", action, "--target-branch", "draft"
    )
    assert code == 0
    assert "action: branch_create\ntarget_branch: draft\nmatched_rule: team-branch\n" in out


def test_an_unknown_action_is_a_usage_error(cli, governed):
    code, out, err = cli("policy", "explain", "--actor", "amy", "--action", "drop")
    assert (code, out) == (2, "")
    assert "'drop' is not one of read, export" in err


@pytest.mark.acceptance("U-054")
def test_a_policy_is_validated(cli, governed):
    path = Path("rules/policy.yaml")
    assert cli("policy", "validate").out == f"policy valid: {path} [2 actors]\n"
    path.write_text(TEAM_POLICY.replace("team-write", "team-read"))
    code, out, err = cli("policy", "validate")
    assert (code, out) == (1, "")
    assert "duplicate policy rule id 'team-read'" in err


def test_keys_that_are_ignored_are_named(cli, governed):
    path = Path("rules/policy.yaml")
    path.write_text(TEAM_POLICY + "kind: graph\n")
    code, _out, err = cli("policy", "validate")
    assert (code, "unknown key kind is ignored" in err) == (0, True)


@pytest.mark.acceptance("U-055")
def test_the_cases_beside_a_policy_are_run(cli, governed):
    cases = Path("rules/policy.tests.yaml")
    right = "{id: own, actor: amy, action: change, branch: draft, expect: allow}"
    wrong = "{id: protected, actor: amy, action: change, branch: main, expect: allow}"
    cases.write_text(f"version: 1\ncases: [{right}]\n")
    assert cli("policy", "test").out == "policy tests passed: 1 cases\n"
    cases.write_text(f"version: 1\ncases: [{right}, {wrong}]\n")
    code, out, err = cli("policy", "test")
    assert (code, out) == (1, "")
    assert "policy tests failed" in err
    assert "protected: expected allow; policy denied action 'change'" in err
    assert "own" not in err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (NAMED, None),
        (NAMED.replace("cli:", "server:"), None),
        ("policy: {file: rules/policy.yaml}\n", None),
        ("cli: {graph: h}\n", "graph 'h' not found"),
        ("graphs: {g: {uri: G}}\ncli: {graph: g}\n", "set graphs.g.policy.file"),
        ("{}", "set policy.file"),
    ],
)
def test_the_policy_is_that_of_the_selected_graph(cli, governed, text, said):
    Path("other.yaml").write_text(text)
    code, out, err = cli("policy", "validate", "--config", "other.yaml")
    assert code == (0 if said is None else 1)
    assert "policy valid" in out if said is None else said in err
