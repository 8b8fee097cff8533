"""`omnigraph snapshot`."""

from __future__ import annotations

import json

import pytest


@pytest.mark.acceptance("U-027")
def test_the_document_lists_every_type_with_its_rows(cli, full):
    code, out, err = cli("snapshot", full, "--json")
    assert (code, err) == (0, "")
    document = json.loads(out)
    assert (document["branch"], document["manifest_version"]) == ("main", 2)
    assert {table["table_key"]: table["row_count"] for table in document["tables"]} == {
        "edge:Cites": 1,
        "edge:Wrote": 2,
        "node:Author": 3,
        "node:Book": 2,
    }
    keys = [table["table_key"] for table in document["tables"]]
    assert keys == sorted(keys)
    assert set(document["tables"][0]) == {
        "table_key",
        "table_path",
        "table_version",
        "table_branch",
        "row_count",
    }
    assert document["tables"][0]["table_branch"] is None


def test_the_lines_for_people(cli, full):
    assert cli("snapshot", full) == (
        0,
        "branch: main\n"
        "manifest_version: 2\n"
        "edge:Cites v2 branch=main rows=1\n"
        "edge:Wrote v2 branch=main rows=2\n"
        "node:Author v2 branch=main rows=3\n"
        "node:Book v2 branch=main rows=2\n",
        "",
    )


def test_another_branch_shows_what_it_shares_and_what_is_its_own(cli, full, library):
    (library / "dee.jsonl").write_text('{"type": "Author", "data": {"slug": "dee"}}\n')
    load = ["load", full, "--mode", "merge", "--branch", "draft", "--from", "main"]
    assert cli(*load, "--data", "dee.jsonl").code == 0
    lines = cli("snapshot", full, "--branch", "draft").out.splitlines()
    assert lines[0] == "branch: draft"
    assert "node:Book v2 branch=main rows=2" in lines
    assert any(line.endswith("branch=draft rows=4") for line in lines)
    assert "node:Author v2 branch=main rows=3" in cli("snapshot", full).out


def test_a_branch_that_does_not_exist_is_named(cli, empty):
    message = "error[OG-N-002]: branch 'gone' not found\n"
    assert cli("snapshot", empty, "--branch", "gone") == (1, "", message)
