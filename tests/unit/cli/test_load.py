"""`omnigraph load` and its old form `ingest`: documents, lines, options and failures.

What a load makes of its records is the business of the loader's own tests.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.conftest import Cli, Outcome

LOAD = ("load", "--mode", "merge", "--data", "library.jsonl")

RECEIPT = {
    "graph_commit_id",
    "parent_commit_id",
    "manifest_version",
    "operation",
    "counts",
    "load_id",
    "replayed",
    "quarantined",
    "engine",
}

BAD_JSONL = """\
{"type": "Author", "data": {"slug": "ada", "born": 1815}}
{"type": "Ghost", "data": {}}
{"type": "Author", "data": {"slug": "bob", "born": "x"}}
{"type": "Author", "data": {"slug": "cy"}}
{"type": "Book", "data": {"isbn": "b1", "title": "Notes"}}
{"type": "Book", "data": {"isbn": "b2"}}
{"type": "Book", "data": {"isbn": "b3", "title": "Engines"}}
{"edge": "Wrote", "from": "ada", "to": "b1"}
"""


def document(outcome: Outcome) -> dict[str, Any]:
    assert outcome.code == 0, outcome.err
    loaded: dict[str, Any] = json.loads(outcome.out)
    return loaded


def head(cli: Cli, uri: str, branch: str = "main") -> str:
    return cli("commit", "list", uri, "--branch", branch).out.splitlines()[-1].split()[0]


def branches(cli: Cli, uri: str) -> list[str]:
    return cli("branch", "list", "--uri", uri).out.splitlines()


@pytest.mark.acceptance("U-006")
def test_the_mode_has_no_default(cli, empty):
    code, out, err = cli("load", "--data", "library.jsonl", empty)
    assert (code, out) == (2, "")
    assert "--mode" in err


@pytest.mark.acceptance("U-007")
def test_the_document_of_a_load(cli, empty):
    parent = head(cli, empty)
    loaded = document(
        cli("load", "--mode", "overwrite", "--data", "library.jsonl", "--json", empty)
    )
    assert loaded["commit"]["graph_commit_id"] == loaded["graph_commit_id"]
    assert loaded.keys() == RECEIPT | {
        "commit",
        "uri",
        "branch",
        "mode",
        "branch_created",
        "nodes_loaded",
        "edges_loaded",
        "node_types_loaded",
        "edge_types_loaded",
    }
    assert (loaded["uri"], loaded["branch"], loaded["mode"]) == ("G", "main", "overwrite")
    assert (loaded["nodes_loaded"], loaded["edges_loaded"]) == (5, 3)
    assert (loaded["node_types_loaded"], loaded["edge_types_loaded"]) == (2, 2)
    assert loaded["branch_created"] is False
    assert (loaded["operation"], loaded["manifest_version"]) == ("load", 2)
    assert loaded["parent_commit_id"] == parent
    assert loaded["graph_commit_id"] == head(cli, empty)
    assert loaded["counts"]["node:Author"] == {"inserted": 3, "updated": 0, "deleted": 0}
    assert (loaded["replayed"], loaded["quarantined"], loaded["engine"]) == (False, 0, "inline")


def test_the_lines_for_people_end_with_the_commit(cli, empty):
    code, out, err = cli(*LOAD, empty)
    assert code == 0
    assert err.splitlines() == [
        "warning: 1 Cites edge has neither an id nor an identity; loading it again adds it again",
        "warning: 2 Wrote edges have neither an id nor an identity; "
        "loading them again adds them again",
    ]
    assert out.splitlines() == [
        "loaded G on branch main with merge: 5 nodes across 2 node types, "
        "3 edges across 2 edge types",
        f"commit {head(cli, empty)}",
    ]


def test_an_overwrite_takes_edges_along_only_when_it_is_told_to(cli, full, library):
    (library / "one.jsonl").write_text('{"type": "Author", "data": {"slug": "ada"}}\n')
    load = ("load", "--mode", "overwrite", "--data", "one.jsonl")
    code, out, err = cli(*load, full)
    assert (code, out) == (1, "")
    assert "to nodes that the overwrite removes" in err.splitlines()[0]
    code, out, err = cli(*load, "--cascade", full)
    assert (code, err) == (0, "")
    assert out.splitlines()[1].startswith("deleted with their nodes: ")
    code, _, err = cli("load", "--mode", "merge", "--cascade", "--data", "one.jsonl", full)
    assert (code, "removes no nodes" in err) == (1, True)


def test_a_patch_keeps_what_the_input_leaves_out(cli, full, library):
    (library / "one.jsonl").write_text('{"type": "Book", "data": {"isbn": "b1", "title": "New"}}\n')
    before = cli("export", "--type", "Book", full).out
    assert cli("load", "--mode", "patch", "--data", "one.jsonl", full).code == 0
    after = cli("export", "--type", "Book", full).out
    changed = [
        {**json.loads(line), "data": json.loads(line)["data"] | {"title": "New"}}
        for line in before.splitlines()
        if json.loads(line)["data"]["isbn"] == "b1"
    ]
    assert changed[0] in [json.loads(line) for line in after.splitlines()]


@pytest.mark.acceptance("U-008")
def test_a_missing_branch_is_an_error_and_not_created(cli, full):
    code, out, err = cli(*LOAD, "--branch", "draft", full)
    assert (code, out) == (1, "")
    assert "draft" in err
    assert branches(cli, full) == ["main"]


@pytest.mark.acceptance("U-009")
def test_a_missing_branch_is_created_from_its_base(cli, full):
    loaded = document(cli(*LOAD, "--branch", "draft", "--from", "main", "--json", full))
    assert (loaded["branch"], loaded["base_branch"]) == ("draft", "main")
    assert loaded["branch_created"] is True
    assert branches(cli, full) == ["draft", "main"]


def test_the_new_branch_has_a_line_of_its_own(cli, full):
    lines = cli(*LOAD, "--branch", "draft", "--from", "main", full).out.splitlines()
    assert lines[1] == "branch draft created from main"
    assert lines[2] == f"commit {head(cli, full, 'draft')}"
    lines = cli(*LOAD, "--branch", "draft", "--from", "main", full).out.splitlines()
    assert len(lines) == 2


def test_several_files_are_one_load(cli, empty, library):
    (library / "more.jsonl").write_text('{"type": "Author", "data": {"slug": "dee"}}\n')
    loaded = document(cli(*LOAD, "--data", "more.jsonl", "--json", empty))
    assert (loaded["nodes_loaded"], loaded["manifest_version"]) == (6, 2)


@pytest.mark.acceptance("U-141")
def test_a_load_repeated_under_its_id_returns_the_first_receipt(cli, empty):
    first = document(cli(*LOAD, "--load-id", "j1", "--json", empty))
    again = document(cli(*LOAD, "--load-id", "j1", "--json", empty))
    assert (first["load_id"], first["replayed"]) == ("j1", False)
    assert (again["load_id"], again["replayed"]) == ("j1", True)
    assert again["graph_commit_id"] == first["graph_commit_id"] == head(cli, empty)


@pytest.mark.acceptance("U-141")
def test_the_id_of_a_load_in_another_mode_is_refused(cli, empty):
    assert cli(*LOAD, "--load-id", "j1", empty).code == 0
    code, out, err = cli(
        "load", "--mode", "append", "--data", "library.jsonl", "--load-id", "j1", empty
    )
    assert (code, out) == (1, "")
    assert "load id 'j1' was already used" in err


def test_a_repeated_load_says_that_nothing_was_changed(cli, empty):
    assert "nothing was changed" not in cli(*LOAD, "--load-id", "j1", empty).err
    code, out, err = cli(*LOAD, "--load-id", "j1", empty)
    assert (code, out.splitlines()[-1]) == (0, f"commit {head(cli, empty)}")
    assert err == "warning: load id 'j1' was loaded before; nothing was changed\n"


@pytest.mark.acceptance("U-142")
def test_every_bad_record_is_reported_and_nothing_is_loaded(cli, empty, library):
    (library / "bad.jsonl").write_text(BAD_JSONL)
    before = head(cli, empty)
    code, out, err = cli("load", "--mode", "merge", "--data", "bad.jsonl", empty)
    assert (code, out) == (1, "")
    first, *records = err.splitlines()
    assert first == "error[OG-D-001]: load failed: 3 bad records of 8, nothing was loaded"
    assert [re.findall(r"record (\d+): ", line) for line in records] == [["2"], ["3"], ["6"]]
    assert all(line.startswith("  bad.jsonl record ") for line in records)
    assert head(cli, empty) == before


@pytest.mark.acceptance("U-142")
def test_with_quarantine_the_good_records_are_loaded(cli, empty, library):
    (library / "bad.jsonl").write_text(BAD_JSONL)
    load = ["load", "--mode", "merge", "--data", "bad.jsonl", "--quarantine", "q", empty]
    outcome = cli(*load, "--load-id", "j1", "--json")
    loaded = document(outcome)
    assert (loaded["quarantined"], loaded["nodes_loaded"], loaded["edges_loaded"]) == (3, 4, 1)
    assert len((library / "q/j1/bad.jsonl").read_text().splitlines()) == 3
    assert "skipped 3 invalid records; see q/j1/bad.jsonl" in outcome.err


def test_a_repeated_load_does_not_claim_to_have_set_records_aside(cli, empty, library):
    (library / "bad.jsonl").write_text(BAD_JSONL)
    load = ["load", "--mode", "merge", "--data", "bad.jsonl", "--load-id", "j1", empty]
    assert cli(*load, "--quarantine", "q").code == 0
    outcome = cli(*load, "--quarantine", "elsewhere", "--json")
    assert document(outcome)["quarantined"] == 3
    assert "elsewhere" not in outcome.err
    assert not (library / "elsewhere").exists()


def test_fewer_errors_are_listed_when_asked(cli, empty, library):
    (library / "bad.jsonl").write_text(BAD_JSONL)
    load = ["load", "--mode", "merge", "--data", "bad.jsonl", "--max-errors", "1", empty]
    lines = cli(*load).err.splitlines()
    assert len(lines) == 3
    assert lines[2].strip() == "… and 2 more"


def test_the_actor_and_the_message_are_kept_in_the_commit(cli, empty):
    loaded = document(cli(*LOAD, "--as", "ada", "-m", "first books", "--json", empty))
    shown = cli("commit", "show", loaded["graph_commit_id"], "--uri", empty, "--json")
    commit = json.loads(shown.out)
    assert (commit["actor_id"], commit["message"]) == ("ada", "first books")
    assert (commit["counts"], commit["load_id"]) == (loaded["counts"], loaded["load_id"])


@pytest.mark.acceptance("U-140", partly="a load, and no server")
def test_a_head_that_moved_stops_the_load(cli, full):
    old = head(cli, full)
    assert cli(*LOAD, "--expect-head", old, full).code == 0
    new = head(cli, full)
    code, out, err = cli(*LOAD, "--expect-head", old, full)
    assert (code, out) == (1, "")
    assert err == f"error[OG-C-002]: branch 'main' is at {new}, expected {old}\n"
    assert head(cli, full) == new


def test_unknown_properties_are_a_warning(cli, empty, library):
    (library / "library.jsonl").write_text('{"type": "Author", "data": {"slug": "x", "age": 3}}\n')
    outcome = cli(*LOAD, "--json", empty)
    [warning] = document(outcome)["warnings"]
    assert (warning["code"], warning["count"]) == ("unknown_property", 1)
    assert outcome.err.splitlines()[-1] == f"warning: {warning['message']}"


def test_unknown_properties_are_refused_when_asked(cli, empty, library):
    path = library / "library.jsonl"
    path.write_text('{"type": "Author", "data": {"slug": "x", "borm": 3}}\n')
    code, out, err = cli(*LOAD, "--strict", empty)
    assert (code, out) == (1, "")
    assert "load failed: 1 unknown property, nothing was loaded" in err
    assert "Author has no property 'borm'; did you mean `born`? (1 record: " in err


def test_the_inline_engine_can_be_named(cli, empty):
    assert document(cli(*LOAD, "--engine", "inline", "--json", empty))["engine"] == "inline"


@pytest.mark.acceptance("U-145")
def test_the_inline_engine_takes_no_master(cli, empty):
    code, out, err = cli(*LOAD, "--engine", "inline", "--master", "local[2]", empty)
    assert (code, out) == (2, "")
    assert "--master is of no use with --engine inline." in err


def test_a_master_that_cannot_be_reached_is_an_error(cli, empty):
    before = head(cli, empty)
    code, out, err = cli(*LOAD, "--master", "spark://127.0.0.1:1", empty)
    assert (code, out) == (1, "")
    assert "the master spark://127.0.0.1:1 cannot be reached" in err
    assert head(cli, empty) == before


@pytest.mark.parametrize(
    "args",
    [
        ["--mode", "replace", "--data", "library.jsonl"],
        ["--mode", "merge"],
        ["--mode", "merge", "--data", "library.jsonl", "--engine", "cluster"],
        ["--mode", "merge", "--data", "library.jsonl", "--format", "xml"],
        ["--mode", "merge", "--data", "library.jsonl", "--max-errors", "none"],
    ],
)
def test_wrong_options_are_usage_errors(cli, empty, args):
    code, out, _ = cli("load", *args, empty)
    assert (code, out) == (2, "")


@pytest.mark.parametrize("path", ["missing.jsonl", "*.nothing"])
def test_a_file_that_is_not_there_is_named(cli, empty, path):
    code, out, err = cli("load", "--mode", "merge", "--data", path, empty)
    assert (code, out) == (1, "")
    assert err.startswith(f"error[OG-I-001]: {path}: ")


def test_the_format_can_be_told(cli, empty, library):
    (library / "library.jsonl").rename(library / "data.parquet")
    load = ["load", "--mode", "merge", "--data", "data.parquet", empty]
    assert cli(*load).code == 1
    assert cli(*load, "--format", "json").code == 0


# The old form


@pytest.mark.acceptance("U-010")
def test_ingest_is_a_merging_load_that_creates_its_branch(cli, full):
    outcome = cli("ingest", "--branch", "review", "--data", "library.jsonl", "--json", full)
    first, *_ = outcome.err.splitlines()
    assert first == "warning: `omnigraph ingest` is deprecated; use `omnigraph load` instead"
    loaded = document(outcome)
    assert (loaded["branch"], loaded["base_branch"], loaded["mode"]) == ("review", "main", "merge")
    assert (loaded["branch_created"], loaded["actor_id"]) == (True, None)
    assert loaded["tables"][-1] == {"table_key": "node:Book", "rows_loaded": 2}
    assert [table["table_key"] for table in loaded["tables"]] == sorted(
        table["table_key"] for table in loaded["tables"]
    )
    assert loaded.keys() >= RECEIPT


@pytest.mark.acceptance("U-010")
def test_the_first_table_of_an_ingest_of_authors(cli, full, library):
    (library / "f.jsonl").write_text('{"type": "Author", "data": {"slug": "dee"}}\n')
    outcome = cli("ingest", "--branch", "review", "--data", "f.jsonl", "--json", full)
    assert document(outcome)["tables"] == [{"table_key": "node:Author", "rows_loaded": 1}]


def test_ingest_in_lines_for_people(cli, empty):
    code, out, _ = cli("ingest", "--data", "library.jsonl", empty)
    assert code == 0
    assert out.splitlines() == [
        "ingested G into branch main from main with merge (branch exists)",
        "edge:Cites rows_loaded=1",
        "edge:Wrote rows_loaded=2",
        "node:Author rows_loaded=3",
        "node:Book rows_loaded=2",
        f"commit {head(cli, empty)}",
    ]


def test_a_mapping_names_the_files_and_what_is_in_them(cli, empty):
    Path("people.csv").write_text("name;year\nada;1815\n")
    Path("mapping.yaml").write_text(
        """
version: 1
sources:
  - path: people.csv
    csv: {delimiter: ";"}
    node: Author
    columns: {slug: name, born: year}
"""
    )
    loaded = document(cli("load", "--mode", "append", "--mapping", "mapping.yaml", "--json", empty))
    assert (loaded["nodes_loaded"], loaded["node_types_loaded"]) == (1, 1)


def test_records_come_from_standard_input(cli, empty):
    loaded = document(cli(*LOAD[:3], "--data", "-", "--json", empty, stdin=BAD_JSONL[:58].encode()))
    assert loaded["nodes_loaded"] == 1


def test_a_load_of_nothing_is_a_usage_error(cli, empty):
    code, out, err = cli("load", "--mode", "append", empty)
    assert (code, out) == (2, "")
    assert "Missing option '--data' or '--mapping'." in err


def test_stages_are_told_beside_the_document(cli, empty):
    outcome = cli("load", "--mode", "append", "--data", "library.jsonl", "--json", empty)
    assert document(outcome)["nodes_loaded"] == 5
    stages = [json.loads(line) for line in outcome.err.splitlines()]
    assert [(stage["stage"], stage["rows"]) for stage in stages] == [
        ("read", 8),
        ("check", 8),
        ("write", 8),
    ]


def test_a_misspelt_property_is_named_beside_the_value_that_is_missing(cli, empty, library):
    """What is ignored is told only where it may be the reason."""
    (library / "typo.jsonl").write_text(
        '{"type": "Book", "data": {"isbn": "b7", "titel": "Engines"}}\n'
        '{"type": "Author", "data": {"slug": "eve", "brn": 1999}}\n'
    )
    outcome = cli("load", "--mode", "merge", "--data", "typo.jsonl", "G")
    assert outcome.code == 1
    assert outcome.err.splitlines()[1:] == [
        "  typo.jsonl record 1: non-nullable property 'title' has null value",
        "  ignored: Book has no property 'titel'; did you mean `title`?",
    ]
