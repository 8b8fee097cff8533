"""`omnigraph branch create`, `list` and `delete`."""

from __future__ import annotations

import json

import pytest

from tests.unit.cli.conftest import Cli, without_privileges

ILLEGAL = ["", " ", "a b", "a//b", "/a", "a/", "a..b", "a.lock", "ü", "a\\b", "x" * 121]


def branches(cli: Cli, uri: str) -> list[str]:
    outcome = cli("branch", "list", "--uri", uri)
    assert (outcome.code, outcome.err) == (0, "")
    return outcome.out.splitlines()


@pytest.mark.acceptance("U-021")
def test_a_branch_is_created_and_listed(cli, empty):
    created = cli("branch", "create", "--uri", empty, "feature")
    assert created == (0, "created branch feature from main\n", "")
    assert branches(cli, empty) == ["feature", "main"]


def test_the_list_is_sorted_and_has_a_document(cli, empty):
    for name in ("zeta", "alpha"):
        cli("branch", "create", "--uri", empty, name)
    code, out, _ = cli("branch", "list", "--uri", empty, "--json")
    assert code == 0
    assert json.loads(out) == {"branches": ["alpha", "main", "zeta"]}


def test_the_documents_echo_address_and_actor(cli, empty):
    cli("branch", "create", "--uri", empty, "draft")
    code, out, _ = cli(
        "--as", "ada", "branch", "create", "--uri", empty, "draft/two", "--from", "draft", "--json"
    )
    assert code == 0
    assert json.loads(out) == {"uri": "G", "from": "draft", "name": "draft/two", "actor_id": "ada"}
    code, out, _ = cli("branch", "delete", "--uri", empty, "draft/two", "--json")
    assert code == 0
    assert json.loads(out) == {"uri": "G", "name": "draft/two", "actor_id": None}


@pytest.mark.acceptance("U-022")
def test_a_name_that_is_taken_is_refused(cli, empty):
    cli("branch", "create", "--uri", empty, "feature")
    code, out, err = cli("branch", "create", "--uri", empty, "feature")
    assert (code, out) == (1, "")
    assert err == "error[OG-C-006]: branch 'feature' already exists\n"


def test_a_deleted_branch_is_gone_and_its_name_is_free(cli, empty):
    cli("branch", "create", "--uri", empty, "feature")
    deleted = cli("branch", "delete", "--uri", empty, "feature")
    assert deleted == (0, "deleted branch feature\n", "")
    assert branches(cli, empty) == ["main"]
    assert cli("branch", "create", "--uri", empty, "feature").code == 0


@pytest.mark.acceptance("U-023")
def test_main_cannot_be_deleted(cli, empty):
    code, out, err = cli("branch", "delete", "--uri", empty, "main")
    assert (code, out) == (1, "")
    assert "cannot delete branch 'main'" in err
    assert branches(cli, empty) == ["main"]


def test_a_branch_that_another_depends_on_is_kept(cli, empty):
    cli("branch", "create", "--uri", empty, "base")
    cli("branch", "create", "--uri", empty, "top", "--from", "base")
    code, _, err = cli("branch", "delete", "--uri", empty, "base")
    assert code == 1
    assert "'base'" in err
    assert "'top'" in err
    assert branches(cli, empty) == ["base", "main", "top"]


@pytest.mark.parametrize("args", [["create", "new", "--from", "gone"], ["delete", "gone"]])
def test_a_branch_that_does_not_exist_is_named(cli, empty, args):
    code, out, err = cli("branch", *args, "--uri", empty)
    assert (code, out, err) == (1, "", "error[OG-N-002]: branch 'gone' not found\n")
    assert branches(cli, empty) == ["main"]


@pytest.mark.parametrize("name", ILLEGAL)
def test_an_illegal_name_is_refused_with_the_rule_it_breaks(cli, empty, name):
    code, out, err = cli("branch", "create", "--uri", empty, name)
    assert (code, out) == (1, "")
    assert err.startswith(f"error[OG-I-006]: invalid branch name '{name}': ")
    assert branches(cli, empty) == ["main"]


def test_main_cannot_be_created(cli, empty):
    code, _, err = cli("branch", "create", "--uri", empty, "main")
    assert code == 1
    assert "cannot create branch 'main'" in err


def test_a_read_only_graph_lists_its_branches_and_takes_no_new_one(cli, public):
    with without_privileges():
        assert branches(cli, str(public / "G")) == ["main"]
        code, out, err = cli("branch", "create", "--uri", public / "G", "feature")
        assert (code, out) == (1, "")
        assert "ermission denied" in err
        assert "internal error" not in err
        assert branches(cli, str(public / "G")) == ["main"]


def test_a_family_without_a_command_prints_its_help_as_a_usage_error(cli):
    code, out, err = cli("branch")
    assert (code, out) == (2, "")
    assert "Usage: omnigraph branch" in err
    for word in ("create", "list", "delete"):
        assert f"  {word} " in err


def test_a_misspelt_member_gets_the_close_name(cli):
    code, _, err = cli("branch", "lst")
    assert code == 2
    assert "No such command 'lst'. Did you mean `list`?" in err


def test_a_name_is_required(cli):
    code, _, err = cli("branch", "create", "--uri", "G")
    assert code == 2
    assert "NAME" in err
