"""`omnigraph merge`, which `branch merge` is another name of: outcomes, choices, reports."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Cli


def mutate(cli: Cli, uri: str, branch: str, name: str, **params: object) -> str:
    done = cli(
        "mutate", "--query", "lib.gq", "--name", name, "--params", json.dumps(params),
        "--branch", branch, "--json", uri,
    )  # fmt: skip
    assert done.code == 0, done.err
    commit: str = json.loads(done.out)["graph_commit_id"]
    return commit


def born(cli: Cli, uri: str, slug: str) -> int | None:
    params = json.dumps({"slug": slug})
    done = cli("query", "--query", "lib.gq", "--name", "by_slug", "--params", params, "--json", uri)
    rows = json.loads(done.out)["rows"]
    found: int | None = rows[0]["a.born"] if rows else None
    return found


@pytest.fixture
def parted(cli: Cli, full: str) -> str:
    """Branch `feature` and main have changed `ada` differently."""
    cli("branch", "create", "--uri", full, "feature")
    mutate(cli, full, "feature", "set_born", slug="ada", born=1816)
    mutate(cli, full, "main", "set_born", slug="ada", born=1817)
    return full


@pytest.mark.acceptance("U-024")
def test_a_branch_is_merged_and_then_up_to_date(cli, full):
    cli("branch", "create", "--uri", full, "feature")
    mutate(cli, full, "feature", "add_author", slug="dee", born=1)
    code, out, err = cli("branch", "merge", "--uri", full, "feature", "--json")
    document = json.loads(out)
    stages = [json.loads(line) for line in err.splitlines()]
    assert (code, [(stage["stage"], stage["rows"]) for stage in stages]) == (
        0,
        [("find rows", 0), ("merge rows", 1), ("check rules", 0), ("write", 1)],
    )
    assert {key: document[key] for key in ("source", "target", "outcome", "actor_id")} == {
        "source": "feature",
        "target": "main",
        "outcome": "fast_forward",
        "actor_id": None,
    }
    assert document["counts"] == {"node:Author": {"inserted": 1, "updated": 0, "deleted": 0}}
    again = cli("branch", "merge", "--uri", full, "feature")
    assert again == (0, "merged feature into main: already_up_to_date\n", "")


def test_lines_end_with_the_commit(cli, full):
    cli("branch", "create", "--uri", full, "feature")
    mutate(cli, full, "feature", "add_author", slug="dee", born=1)
    code, out, _ = cli("--as", "ada", "merge", "--uri", full, "feature", "-m", "reviewed")
    first, last = out.splitlines()
    assert (code, first) == (0, "merged feature into main: fast_forward")
    shown = cli("commit", "show", "--uri", full, last.removeprefix("commit "), "--json")
    commit = json.loads(shown.out)
    assert (commit["actor_id"], commit["message"], commit["operation"]) == (
        "ada",
        "reviewed",
        "merge",
    )
    assert commit["merged_parent_commit_id"] is not None


@pytest.mark.acceptance("U-025")
def test_a_branch_is_not_merged_into_itself(cli, full):
    code, out, err = cli("branch", "merge", "--uri", full, "main", "--into", "main")
    assert (code, out) == (1, "")
    assert "distinct source and target" in err


@pytest.mark.acceptance("U-026")
def test_conflicts_are_told_and_nothing_changes(cli, parted):
    code, out, err = cli("branch", "merge", "--uri", parted, "feature")
    assert (code, out) == (1, "")
    lines = err.splitlines()
    assert lines[0].startswith("node:Author ada: divergent_update")
    assert lines[1].strip() == "born: 1815 → ours 1817, theirs 1816"
    assert lines[-1] == "error[OG-C-040]: merge conflicts: node:Author:ada (divergent_update)"
    assert born(cli, parted, "ada") == 1817


@pytest.mark.acceptance("U-154")
def test_a_dry_run_a_strategy_and_properties(cli, parted):
    code, out, _ = cli("merge", "--uri", parted, "feature", "--dry-run", "--json")
    document = json.loads(out)
    assert (code, document["dry_run"], document["outcome"]) == (1, True, "conflicts")
    [conflict] = document["conflicts"]
    assert (conflict["row_id"], conflict["kind"]) == ("ada", "divergent_update")
    assert born(cli, parted, "ada") == 1817
    assert cli("merge", "--uri", parted, "feature", "--strategy", "theirs").code == 0
    assert born(cli, parted, "ada") == 1816


@pytest.mark.acceptance("U-154")
def test_updates_of_two_properties_go_together(cli, library):
    Path("two.pg").write_text("node Note { slug: String @key  a: I32?  b: I32? }\n")
    for number, row in enumerate(({}, {"a": 1}, {"b": 2})):
        record = {"type": "Note", "data": {"slug": "x", **row}}
        Path(f"{number}.jsonl").write_text(json.dumps(record))
    cli("init", "--schema", "two.pg", "T")
    cli("load", "--mode", "append", "--data", "0.jsonl", "T")
    cli("branch", "create", "--uri", "T", "feature")
    cli("load", "--mode", "merge", "--data", "1.jsonl", "--branch", "feature", "T")
    cli("load", "--mode", "merge", "--data", "2.jsonl", "T")
    assert cli("merge", "--uri", "T", "feature").code == 1
    assert cli("merge", "--uri", "T", "feature", "--granularity", "property").code == 0
    row = json.loads(cli("export", "T").out)
    assert row["data"] == {"id": "x", "slug": "x", "a": 1, "b": 2}


@pytest.mark.parametrize("command", ["merge", "diff main", "revert", "cherry-pick"])
def test_a_master_is_of_no_use_without_tasks(cli, parted, command):
    options = ("--uri", parted, "--engine", "inline", "--master", "local[1]")
    code, out, err = cli(*command.split(), "feature", *options)
    assert (code, out) == (2, "")
    assert "--master is of no use with --engine inline." in err


def test_very_many_conflicts_are_not_all_reported(cli, parted, monkeypatch):
    monkeypatch.setattr("omnigraph.merge.rows.MAX_REPORTED_CONFLICTS", 1)
    for branch, year in (("feature", 1), ("main", 2)):
        mutate(cli, parted, branch, "set_born", slug="bob", born=year)
    merge = ("merge", "--uri", parted, "feature")
    code, _, err = cli(*merge, "--conflicts", "c.json")
    assert (code, "… 1 more conflict" in err) == (1, True)
    assert json.loads(Path("c.json").read_text())["conflicts_total"] == 2
    document = json.loads(cli(*merge, "--dry-run", "--json").out)
    assert ([c["row_id"] for c in document["conflicts"]], document["conflicts_total"]) == (
        ["ada"],
        2,
    )


def test_a_report_is_filled_in_and_given_back(cli, parted):
    assert cli("merge", "--uri", parted, "feature", "--conflicts", "c.json").code == 1
    report = json.loads(Path("c.json").read_text())
    [conflict] = report["conflicts"]
    assert (conflict["take"], conflict["base"]["born"]) == (None, 1815)
    assert report["conflicts_total"] == 1
    assert cli("merge", "--uri", parted, "feature", "--resolve", "c.json").code == 1
    conflict["take"] = "base"
    Path("c.json").write_text(json.dumps(report))
    assert cli("merge", "--uri", parted, "feature", "--resolve", "c.json").code == 0
    assert born(cli, parted, "ada") == 1815


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "No such file"), ("{", "is not valid JSON"), ("3", "not hold a list"), ('[{"take": "ours"}]', "table_key")],
)  # fmt: skip
def test_a_file_that_resolves_nothing_is_refused(cli, parted, content, message):
    if content is not None:
        Path("c.json").write_text(content)
    code, _, err = cli("merge", "--uri", parted, "feature", "--resolve", "c.json")
    assert code == 1
    assert message in err


def test_a_strategy_that_is_none_is_wrong_use(cli, parted):
    assert cli("merge", "--uri", parted, "feature", "--strategy", "Author=mine").code == 2
    assert cli("merge", "--uri", parted, "feature", "--strategy", "Author=ours").code == 0
