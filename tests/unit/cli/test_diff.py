"""`omnigraph diff`, `changes`, `log`, `revert` and `cherry-pick`."""

from __future__ import annotations

import json

import pytest

from tests.unit.cli.conftest import Cli
from tests.unit.cli.test_merge import born, mutate


@pytest.fixture
def feature(cli: Cli, full: str) -> str:
    """Branch `feature` has a new author and a changed one."""
    cli("branch", "create", "--uri", full, "feature")
    mutate(cli, full, "feature", "add_author", slug="dee", born=1)
    mutate(cli, full, "feature", "set_born", slug="ada", born=1816)
    return full


@pytest.mark.acceptance("U-147", partly="there is no server yet")
def test_a_diff_is_a_document_sorted_by_id(cli, feature):
    code, out, err = cli("diff", "main", "feature", "--uri", feature, "--json")
    document = json.loads(out)
    assert code == 0
    stages = [json.loads(line) for line in err.splitlines()]
    assert [(stage["stage"], stage["rows"]) for stage in stages] == [
        ("find rows", 0),
        ("compare rows", 3),
    ]
    assert [(c["id"], c["op"]) for c in document["changes"]] == [
        ("ada", "update"),
        ("dee", "insert"),
    ]
    assert document["stats"] == {
        "inserts": 1,
        "updates": 1,
        "deletes": 0,
        "types_affected": ["Author"],
    }
    assert (document["from"], document["to"], document["next_cursor"]) == ("main", "feature", None)
    stat = json.loads(cli("diff", "main", "feature", "--uri", feature, "--stat", "--json").out)
    assert ("changes" in stat, stat["stats"]) == (False, document["stats"])


def test_a_diff_for_people_has_signs_values_and_numbers(cli, feature):
    shown = cli("diff", "main", "feature", "--uri", feature, "--rows")
    assert shown.out == (
        "~ node:Author ada\n"
        "    born: 1815 → 1816\n"
        "+ node:Author dee\n"
        "    born: null → 1\n"
        "    slug: null → dee\n"
        "1 insert, 1 update, 0 deletes in Author\n"
    )
    stat = cli("diff", "main", "feature", "--uri", feature, "--stat")
    assert stat.out.startswith("node:Author  1 insert, 1 update\n")
    limited = cli("diff", "main", "feature", "--uri", feature, "--limit", "1", "--op", "update")
    assert limited.out == "~ node:Author ada\n0 inserts, 1 update, 0 deletes in Author\n"
    assert cli("diff", "main", "main", "--uri", feature).out == "no changes\n"


@pytest.mark.acceptance("U-148", partly="there is no server yet")
def test_changes_go_on_where_a_cursor_points(cli, full):
    code, out, _ = cli("changes", full, "--json")
    document = json.loads(out)
    assert (code, document["branch"], document["at_head"]) == (0, "main", True)
    assert [commit["operation"] for commit in document["commits"]] == ["init", "load"]
    made = mutate(cli, full, "main", "add_author", slug="dee", born=1)
    since = ("changes", full, "--since", document["next_cursor"], "--json", "--rows")
    [commit] = json.loads(cli(*since).out)["commits"]
    [change] = commit["changes"]
    assert commit["graph_commit_id"] == made
    assert (change["op"], change["after"]["slug"], change["before"]) == ("insert", "dee", None)


def test_changes_for_people_end_with_the_cursor(cli, full):
    mutate(cli, full, "main", "add_author", slug="dee", born=1)
    shown = cli("changes", full, "--type", "Author").out.splitlines()
    assert "  + node:Author dee" in shown
    assert shown[-1].startswith("cursor c1.")
    followed = cli("changes", full, "--follow", "--limit", "3").out.splitlines()
    assert [json.loads(line)["operation"] for line in followed] == ["init", "load", "mutate"]


@pytest.mark.acceptance("U-152")
def test_a_commit_is_reverted_unless_its_rows_have_changed(cli, full):
    commit = mutate(cli, full, "main", "add_author", slug="dee", born=1)
    code, out, _ = cli("revert", commit, "--uri", full, "--json")
    document = json.loads(out)
    assert (code, document["reverted"], document["conflicts"]) == (0, commit, [])
    assert (document["operation"], born(cli, full, "dee")) == ("revert", None)
    commit = mutate(cli, full, "main", "set_born", slug="ada", born=1)
    mutate(cli, full, "main", "set_born", slug="ada", born=2)
    code, out, err = cli("revert", commit, "--uri", full)
    assert (code, out) == (1, "")
    assert "merge conflicts: node:Author:ada (divergent_update)" in err
    assert born(cli, full, "ada") == 2
    dry = cli("revert", commit, "--uri", full, "--dry-run", "--json")
    assert (dry.code, len(json.loads(dry.out)["conflicts"])) == (1, 1)


@pytest.mark.acceptance("U-153")
def test_a_commit_of_a_branch_is_picked(cli, full):
    cli("branch", "create", "--uri", full, "feature")
    mutate(cli, full, "feature", "add_author", slug="dee", born=1)
    commit = mutate(cli, full, "feature", "set_born", slug="ada", born=1816)
    code, out, _ = cli("cherry-pick", commit, "--onto", "main", "--uri", full)
    assert (code, out.splitlines()[0]) == (0, f"picked {commit} on main")
    assert (born(cli, full, "ada"), born(cli, full, "dee")) == (1816, None)


@pytest.mark.acceptance("U-155")
def test_the_log_is_newest_first_and_can_be_drawn(cli, feature):
    mutate(cli, feature, "main", "set_born", slug="bob", born=1)
    cli("merge", "--uri", feature, "feature", "-m", "bring it")
    document = json.loads(cli("log", feature, "--json").out)
    assert [c["operation"] for c in document["commits"]] == ["merge", "mutate", "load", "init"]
    drawn = cli("log", feature, "--graph", "--oneline").out.splitlines()
    assert [line.split("01")[0].rstrip() for line in drawn] == [
        "●─╮",
        "● │",
        "│ ●",
        "│ ●",
        "●─╯",
        "●",
    ]
    assert drawn[0].endswith("merge bring it")
    assert len(cli("log", feature, "--limit", "2").out.splitlines()) == 2
