"""`omnigraph diff`, `changes`, `log`, `revert` and `cherry-pick`."""

from __future__ import annotations

import json
from pathlib import Path

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


@pytest.mark.acceptance("U-147", partly="no server")
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


@pytest.mark.acceptance("U-148", partly="no server")
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


# Values of every kind


SAMPLES_PG = """
node Sample {
    name: String @key  weight: F32?  day: Date?  at: DateTime?  vec: Vector(64)?  text: String?
    weights: [F32]?
}
"""
VECTOR = [0.1] * 64
LONG = "a" * 5000


def sample(**values: object) -> str:
    return json.dumps({"type": "Sample", "data": {"name": "s", **values}})


@pytest.fixture
def samples(cli: Cli, library: Path) -> str:
    """One sample, which branch `feature` and then main have changed to different values."""
    Path("s.pg").write_text(SAMPLES_PG)
    cli("init", "--schema", "s.pg", "S")
    first = {"weight": 0.4, "day": "2020-01-31", "at": "2019-05-01T08:00:00Z", "text": LONG}
    first |= {"vec": VECTOR, "weights": [0.1, 0.7]}
    theirs = first | {"weight": 0.7, "day": "2020-02-01", "at": "2019-05-01T08:00:00.5Z"}
    theirs |= {"vec": [0.2, *VECTOR[1:]], "text": f"{LONG[:-1]}b"}
    for number, (branch, row) in enumerate(
        [("main", first), ("feature", theirs), ("main", theirs | {"weight": 0.8})]
    ):
        if number == 1:
            cli("branch", "create", "--uri", "S", "feature")
        Path("row.jsonl").write_text(sample(**row))
        done = cli("load", "--mode", "merge", "--data", "row.jsonl", "--branch", branch, "S")
        assert done.code == 0, done.err
    return "S"


SHOWN = [
    "    at: 2019-05-01T08:00:00.000Z → 2019-05-01T08:00:00.500Z",
    "    day: 2020-01-31 → 2020-02-01",
    f"    text: …{'a' * 21} (5,000 characters) → …{'a' * 20}b (5,000 characters)",
    "    vec: [0.1,0.1,0.1,… (64 elements)] → [0.2,0.1,0.1,… (64 elements)]",
    "    weight: 0.4 → 0.7",
]


def test_values_look_the_same_in_diffs_and_changes_and_long_ones_are_cut(cli, samples):
    head, load = json.loads(cli("commit", "list", samples, "--json").out)["commits"][:2]
    before = load["graph_commit_id"]
    diff = ("diff", before, "feature", "--uri", samples, "--rows")
    assert cli(*diff).out.splitlines()[1:-1] == SHOWN
    changes = ("changes", samples, "--branch", "feature", "--since", before, "--rows")
    assert cli(*changes).out.splitlines()[2:-1] == [f"  {line}" for line in SHOWN]
    for command in (diff, changes):
        whole = cli(*command, "--full").out
        assert f"text: {LONG} → {LONG[:-1]}b" in whole
        assert json.dumps(VECTOR, separators=(",", ":")) in whole
    [change] = json.loads(cli(*diff, "--json").out)["changes"]
    assert change["before"] | {"text": ""} == {
        "id": "s",
        "name": "s",
        "weight": 0.4,
        "weights": [0.1, 0.7],
        "day": 18292,
        "at": "2019-05-01T08:00:00.000Z",
        "vec": VECTOR,
        "text": "",
    }
    assert change["before"]["text"] == LONG
    assert head["operation"] == "init"


def test_values_look_the_same_in_every_format_of_a_result(cli, samples):
    query = "query q() { match { $s: Sample } return { $s.weight, $s.weights, $s.at, $s.vec } }"
    read = ("query", samples, "--branch", "feature", "-e", query, "--format")
    vector = json.dumps([0.2, *VECTOR[1:]], separators=(",", ":"))
    assert cli(*read, "kv").out.splitlines()[2:] == [
        "s.weight: 0.7",
        "s.weights: [0.1,0.7]",
        "s.at: 2019-05-01T08:00:00.500Z",
        f"s.vec: {vector}",
    ]
    row = f'0.7,"[0.1,0.7]",2019-05-01T08:00:00.500Z,"{vector}"'
    assert cli(*read, "csv").out.splitlines()[1] == row
    line = f'{{"s.weight":0.7,"s.weights":[0.1,0.7],"s.at":"2019-05-01T08:00:00.500Z","s.vec":{vector}}}'
    assert cli(*read, "jsonl").out.splitlines()[1] == line
    assert (
        cli(*read, "table").out.splitlines()[-1].startswith("0.7      | [0.1,0.7] | 2019-05-01T08")
    )
    assert '"s.weight": 0.7,' in cli(*read, "json").out
    exported = cli("export", samples, "--branch", "feature").out
    assert '"at":"2019-05-01T08:00:00.500","day":18293' in exported
    assert exported.endswith(f'"vec":{vector},"weight":0.7,"weights":[0.1,0.7]}}}}\n')


def test_conflicts_show_values_as_diffs_do_and_can_still_be_resolved(cli, samples):
    merge = ("merge", "feature", "--uri", samples)
    code, out, err = cli(*merge, "--conflicts", "c.json")
    assert (code, out) == (1, "")
    assert "    weight: 0.4 → ours 0.8, theirs 0.7" in err.splitlines()
    [conflict] = json.loads(Path("c.json").read_text())["conflicts"]
    assert conflict["theirs"] == {
        "id": "s",
        "name": "s",
        "weight": 0.7,
        "weights": [0.1, 0.7],
        "day": 18293,
        "at": "2019-05-01T08:00:00.500Z",
        "vec": "[0.2,0.1,0.1,… (64 elements)]",
        "text": f"{'a' * 200}… (5,000 characters)",
    }
    code, out, _ = cli(*merge, "--conflicts", "full.json", "--full", "--dry-run")
    assert (code, out.splitlines()[0]) == (1, "cannot merge feature into main: 1 conflict")
    assert "merged" not in out
    [whole] = json.loads(Path("full.json").read_text())["conflicts"]
    assert (whole["base"]["vec"], whole["base"]["text"]) == (VECTOR, LONG)
    Path("c.json").write_text(json.dumps({"conflicts": [conflict | {"take": "theirs"}]}))
    assert cli(*merge, "--resolve", "c.json").code == 0
    vector = json.dumps([0.2, *VECTOR[1:]], separators=(",", ":"))
    assert f'"vec":{vector},"weight":0.7' in cli("export", samples).out


def test_a_dry_run_of_a_revert_with_conflicts_does_not_say_that_it_would_be_done(cli, full):
    commit = mutate(cli, full, "main", "set_born", slug="ada", born=1)
    mutate(cli, full, "main", "set_born", slug="ada", born=2)
    code, out, _ = cli("revert", commit, "--uri", full, "--dry-run")
    assert (code, out.splitlines()[0]) == (1, f"cannot revert {commit} on main: 1 conflict")
    latest = json.loads(cli("log", full, "--json").out)["commits"][0]["graph_commit_id"]
    code, out, _ = cli("revert", latest, "--uri", full, "--dry-run")
    assert (code, out.splitlines()[0]) == (0, f"would revert {latest} on main")
