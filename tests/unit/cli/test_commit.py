"""`omnigraph commit list` and `commit show`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.cli.conftest import Cli

FIELDS = [
    "graph_commit_id",
    "manifest_branch",
    "manifest_version",
    "parent_commit_id",
    "merged_parent_commit_id",
    "actor_id",
    "created_at",
    "operation",
    "message",
    "counts",
]


def commits(cli: Cli, *args: str) -> list[dict[str, Any]]:
    code, out, err = cli("commit", "list", *args, "--json")
    assert (code, err) == (0, "")
    listed: list[dict[str, Any]] = json.loads(out)["commits"]
    return listed


@pytest.fixture
def history(cli, full: str) -> str:
    """The loaded graph with two more loads, by ada on main and by bob on `draft`."""
    load = ["load", full, "--mode", "merge", "--data", "library.jsonl"]
    assert cli("--as", "ada", *load, "-m", "again").code == 0
    assert cli("--as", "bob", *load, "--branch", "draft", "--from", "main").code == 0
    return full


@pytest.mark.acceptance("U-031")
def test_the_history_is_listed_oldest_first_and_each_commit_can_be_shown(cli, full):
    listed = commits(cli, full)
    assert [commit["manifest_version"] for commit in listed] == [1, 2]
    first = listed[0]
    code, out, _ = cli("commit", "show", "--uri", full, first["graph_commit_id"], "--json")
    assert code == 0
    assert json.loads(out) == first


def test_the_document_of_a_commit(cli, full):
    first, loaded = commits(cli, full)
    assert list(first) == FIELDS
    assert (first["operation"], first["parent_commit_id"], first["counts"]) == ("init", None, {})
    assert loaded.pop("load_id")
    assert list(loaded) == FIELDS
    assert (loaded["operation"], loaded["manifest_branch"]) == ("load", None)
    assert loaded["parent_commit_id"] == first["graph_commit_id"]
    assert loaded["counts"]["node:Author"] == {"inserted": 3, "updated": 0, "deleted": 0}
    assert isinstance(loaded["created_at"], int)


def test_the_lines_for_people(cli, history):
    ids = [commit["graph_commit_id"] for commit in commits(cli, history, "--branch", "draft")]
    assert cli("commit", "list", history, "--branch", "draft").out.splitlines() == [
        f"{ids[0]} branch=main version=1",
        f"{ids[1]} branch=main version=2",
        f"{ids[2]} branch=main version=3 actor=ada",
        f"{ids[3]} branch=draft version=4 actor=bob",
    ]


def test_without_a_branch_the_history_is_that_of_main(cli, history):
    assert len(commits(cli, history)) == 3
    assert commits(cli, history) == commits(cli, history, "--branch", "main")


def test_one_commit_in_lines_for_people(cli, history):
    _, _, parent, commit = commits(cli, history, "--branch", "draft")
    shown = cli("commit", "show", commit["graph_commit_id"], "--uri", history)
    assert shown.out.splitlines() == [
        f"graph_commit_id: {commit['graph_commit_id']}",
        "manifest_branch: draft",
        "manifest_version: 4",
        f"parent_commit_id: {parent['graph_commit_id']}",
        "actor_id: bob",
        f"created_at: {commit['created_at']}",
    ]


def test_the_first_commit_has_no_parent_and_no_actor_to_show(cli, empty):
    [first] = commits(cli, empty)
    shown = cli("commit", "show", first["graph_commit_id"], "--uri", empty)
    assert shown.out.splitlines() == [
        f"graph_commit_id: {first['graph_commit_id']}",
        "manifest_branch: main",
        "manifest_version: 1",
        f"created_at: {first['created_at']}",
    ]


def test_the_message_is_kept(cli, history):
    assert [commit["message"] for commit in commits(cli, history)] == [None, None, "again"]


def test_commits_of_one_actor(cli, history):
    by_ada = commits(cli, history, "--filter", "actor=ada")
    assert [commit["manifest_version"] for commit in by_ada] == [3]
    assert commits(cli, history, "--filter", "actor=zoe") == []


def test_a_limit_keeps_the_oldest(cli, history):
    assert [c["manifest_version"] for c in commits(cli, history, "--limit", "2")] == [1, 2]
    assert len(commits(cli, history, "--limit", "99")) == 3


def test_the_newest_first(cli, history):
    assert [c["manifest_version"] for c in commits(cli, history, "--order", "newest")] == [3, 2, 1]
    newest = commits(cli, history, "--order", "newest", "--limit", "1")
    assert [c["manifest_version"] for c in newest] == [3]
    assert cli("commit", "list", history, "--order", "random").code == 2


def test_commits_between_two_bounds(cli, history):
    first, second, third = commits(cli, history)
    assert commits(cli, history, "--since", second["graph_commit_id"]) == [second, third]
    assert commits(cli, history, "--until", second["graph_commit_id"]) == [first, second]
    assert commits(cli, history, "--since", "2000-01-01") == [first, second, third]
    assert commits(cli, history, "--until", "2000-01-01T00:00:00Z") == []
    bounds = ["--since", "2000-01-01", "--until", third["graph_commit_id"]]
    assert commits(cli, history, *bounds, "--filter", "actor=ada") == [third]


@pytest.mark.parametrize("flag", ["--since", "--until"])
def test_an_unknown_bound_is_named(cli, empty, flag):
    code, out, err = cli("commit", "list", empty, flag, "lately")
    assert (code, out) == (1, "")
    assert err == "error[OG-I-000]: 'lately' is neither a time nor a commit of this branch\n"


@pytest.mark.parametrize("value", ["ada", "message=x", "actor"])
def test_an_unknown_filter_is_a_usage_error(cli, empty, value):
    code, out, err = cli("commit", "list", empty, "--filter", value)
    assert (code, out) == (2, "")
    assert "actor=<id>" in err


@pytest.mark.parametrize("value", ["0", "-1", "many"])
def test_a_limit_is_a_positive_number(cli, empty, value):
    code, _, err = cli("commit", "list", empty, "--limit", value)
    assert code == 2
    assert "--limit" in err


def test_an_unknown_commit_is_named(cli, empty):
    message = "error[OG-N-003]: commit 'nope' not found\n"
    assert cli("commit", "show", "nope", "--uri", empty) == (1, "", message)


def test_a_branch_that_does_not_exist_is_named(cli, empty):
    message = "error[OG-N-002]: branch 'gone' not found\n"
    assert cli("commit", "list", empty, "--branch", "gone") == (1, "", message)
