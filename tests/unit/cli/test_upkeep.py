"""`omnigraph optimize`, `cleanup` and `status`."""

from __future__ import annotations

import json

import pytest

import omnigraph as og

EVERYTHING = ["--keep", 1, "--older-than", "0s", "--min-age", "0s"]
KEYS = ["edge:Cites", "edge:Wrote", "node:Author", "node:Book"]


@pytest.fixture
def pieces(full: str) -> str:
    """The library, with its authors in four pieces."""
    graph = og.open(full)
    for slug in ("dee", "eve", "fay"):
        graph.load(json.dumps({"type": "Author", "data": {"slug": slug}}).encode(), "merge")
    return full


@pytest.mark.acceptance("U-042")
def test_optimizing_tells_what_became_of_each_table(cli, pieces):
    code, out, err = cli("optimize", "--json", pieces)
    assert (code, err) == (0, "")
    document = json.loads(out)
    assert [table["table_key"] for table in document["tables"]] == KEYS
    authors = document["tables"][2]
    assert authors == {
        "table_key": "node:Author",
        "fragments_removed": 4,
        "fragments_added": 1,
        "committed": True,
        "skipped": None,
        "manifest_version": None,
        "lance_head_version": None,
    }
    assert document["operation"] == "optimize"
    assert document["graph_commit_id"] == og.open(pieces).head().id


def test_optimizing_in_lines_and_with_nothing_to_do(cli, pieces):
    code, out, _ = cli("optimize", pieces)
    lines = out.splitlines()
    assert code == 0
    assert lines[0] == "optimize G — 4 tables"
    assert lines[3] == f"{'node:Author':<40} frags 4 → 1 ✓"
    assert lines[4] == f"{'node:Book':<40} no-op"
    assert lines[5].startswith("commit ")
    again = cli("optimize", pieces).out.splitlines()
    assert all(line.endswith("no-op") for line in again[1:])
    assert len(again) == 5


@pytest.mark.acceptance("U-043", "U-044")
@pytest.mark.parametrize(
    ("label", "words"),
    [
        ("optimize", ["optimize"]),
        ("cleanup", ["cleanup"]),
        ("schema plan", ["schema", "plan", "--schema", "library.pg"]),
    ],
)
def test_maintenance_needs_the_storage_itself(cli, library, label, words):
    code, _, err = cli(*words, "--server", "prod")
    assert code == 1
    assert f"`{label}` is a storage-plane command" in err
    assert "Use --target <name>, a storage URI" in err
    code, _, err = cli(*words, "https://h.invalid")
    assert code == 1
    assert "needs direct storage access" in err
    assert "remote server" in err


@pytest.mark.acceptance("U-047")
def test_cleaning_up_needs_a_policy_and_a_word(cli, pieces):
    code, out, err = cli("cleanup", pieces, "--confirm")
    assert (code, out) == (1, "")
    assert "policy" in err
    code, out, err = cli("cleanup", pieces, "--keep", 5)
    assert (code, out) == (0, "")
    assert "destructive" in err
    assert "keep 5" in err
    code, out, err = cli("cleanup", pieces, "--older-than", "3y", "--confirm")
    assert (code, out) == (1, "")
    assert "3y" in err
    assert len(og.open(pieces).log(reverse=True)) == 5
    assert og.open(pieces).at(2)._snapshot.entry("node:Author").row_count == 3


def test_cleaning_up_removes_versions_and_says_how_many(cli, pieces):
    code, out, err = cli("cleanup", pieces, *EVERYTHING, "--dry-run")
    assert (code, err) == (0, "")
    planned = out.splitlines()
    assert "would remove 7 versions" in planned[0]
    assert "node:Author: would remove 4 versions, keeps 1 (current on main)" in planned
    code, out, err = cli("cleanup", pieces, *EVERYTHING, "--confirm")
    assert (code, err) == (0, "")
    [line] = out.splitlines()
    assert line.startswith("cleanup G (keep 1, older than 0s, minimum age 0s) — removed ")
    assert line.endswith(" across 5 tables")
    document = json.loads(cli("cleanup", pieces, "--older-than", "2w", "--confirm", "--json").out)
    assert (document["keep_versions"], document["older_than_secs"]) == (None, 1209600)
    assert document["min_age_secs"] == 86400
    assert all(table["old_versions_removed"] == 0 for table in document["tables"])
    assert [t["table_key"] for t in document["tables"]] == [*KEYS, "__manifest"]


@pytest.mark.acceptance("U-149", partly="no server")
def test_the_status_as_a_document(cli, full):
    code, out, err = cli("status", "--json", full)
    assert (code, err) == (0, "")
    document = json.loads(out)
    graph = og.open(full)
    assert document["uri"] == full
    assert (document["branch"], document["branches"]) == ("main", 1)
    assert document["graph_commit_id"] == graph.head().id
    assert (document["manifest_version"], document["format_version"]) == (2, 4)
    assert document["schema_hash"] == graph.schema.catalog.hash
    assert {t["table_key"]: t["rows"] for t in document["tables"]} == {
        "edge:Cites": 1,
        "edge:Wrote": 2,
        "node:Author": 3,
        "node:Book": 2,
    }
    assert all(t["fragments"] == 1 and t["bytes"] > 0 for t in document["tables"])
    assert document["recovery"] == {"pending": 0, "quarantined": 0}
    assert document["leases"] == []
    assert document["advice"] == []


def test_the_status_in_lines(cli, full):
    og.open(full).branches.create("feature")
    code, out, err = cli("status", full, "--branch", "feature")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].startswith("G on branch feature: version 2, commit ")
    assert lines[0].endswith(", 2 branches")
    assert any(line.startswith("node:Author") for line in lines)
    assert lines[-1] == "interrupted writes: 0 pending, 0 for an operator"


def test_pins_are_made_listed_and_removed(cli, pieces):
    first = og.open(pieces).log(reverse=True)[1].id
    code, out, err = cli("pin", "create", "base", "--at", first, "--uri", pieces)
    assert (code, out, err) == (0, f"pinned {first} as base\n", "")
    assert cli("pin", "list", pieces).out == f"base {first} version=2\n"
    cli("cleanup", pieces, "--keep", 1, "--min-age", "0s", "--confirm")
    assert og.open(pieces).at(first)._snapshot.entry("node:Author").row_count == 3
    [pin] = json.loads(cli("pin", "list", pieces, "--json").out)["pins"]
    assert (pin["name"], pin["graph_commit_id"], pin["version"]) == ("base", first, 2)
    assert cli("pin", "delete", "base", "--uri", pieces).out == "removed pin base\n"
    assert cli("pin", "delete", "base", "--uri", pieces).code == 1


def test_tags_are_made_listed_and_deleted(cli, pieces):
    first = og.open(pieces).log(reverse=True)[1].id
    code, out, err = cli("tag", "create", "base", first[-8:], "--uri", pieces)
    assert (code, out, err) == (0, f"tagged {first} on main as base\n", "")
    assert cli("tag", "list", "--uri", pieces).out == f"base {first} main version=2\n"
    [tag] = json.loads(cli("tag", "list", "--uri", pieces, "--json").out)["tags"]
    assert (tag["name"], tag["graph_commit_id"], tag["branch"]) == ("base", first, "main")
    assert cli("pin", "list", pieces).out == f"base {first} version=2\n"
    made = json.loads(cli("tag", "create", "head", "--uri", pieces, "--json").out)
    assert made["graph_commit_id"] == og.open(pieces).head().id
    gone = json.loads(cli("tag", "delete", "head", "--uri", pieces, "--json").out)
    assert (gone["name"], gone["actor_id"]) == ("head", None)
    assert cli("tag", "delete", "base", "--uri", pieces).out == "deleted tag base\n"


def test_a_branch_is_made_from_a_ref_and_reset_to_one(cli, pieces):
    graph = og.open(pieces)
    made = cli("branch", "create", "old", "--from", "main~1", "--uri", pieces)
    assert (made.code, made.out) == (0, "created branch old from main~1\n")
    assert graph.head("old").id == graph.log()[1].id
    would = cli("branch", "reset", "old", "main", "--dry-run", "--uri", pieces)
    assert (would.code, would.out.splitlines()[0]) == (0, f"would reset old to {graph.head().id}")
    done = json.loads(cli("branch", "reset", "old", "main", "--uri", pieces, "--json").out)
    assert (done["branch"], done["operation"]) == ("old", "revert")
    assert done["reset_to"] == graph.head().id
    again = cli("branch", "reset", "old", "main", "--uri", pieces)
    assert again.out == f"reset old to {graph.head().id}: nothing to change\n"
