"""`omnigraph ensure-indices`."""

from __future__ import annotations

import json

import pytest


@pytest.mark.acceptance("U-156")
def test_indexes_are_made_once(cli, full):
    code, out, err = cli("ensure-indices", "--json", full)
    assert (code, err) == (0, "")
    document = json.loads(out)
    assert (document["uri"], document["branch"]) == (full, "main")
    assert document["operation"] == "ensure_indices"
    assert document["graph_commit_id"] is not None
    created = {
        (table["table_key"], index["column"], index["kind"])
        for table in document["tables"]
        for index in table["created"]
    }
    assert {
        ("edge:Wrote", "src", "btree"),
        ("node:Author", "id", "btree"),
        ("node:Author", "slug", "text"),
    } <= created

    code, out, err = cli("ensure-indices", "--json", full)
    again = json.loads(out)
    assert (code, again["graph_commit_id"]) == (0, None)
    assert again["manifest_version"] == document["manifest_version"]
    existing = {
        (table["table_key"], index["column"], index["kind"])
        for table in again["tables"]
        for index in table["existing"]
    }
    assert existing == created
    assert not any(table["created"] or table["pending"] for table in again["tables"])


def test_people_get_a_table_and_the_commit(cli, full):
    code, out, err = cli("ensure-indices", full)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == f"ensure-indices {full} — 4 tables"
    assert [part.strip() for part in lines[1].split("|")] == [
        "table",
        "column",
        "kind",
        "state",
        "rows not indexed",
    ]
    assert lines[-1].startswith("commit ")
    code, out, _ = cli("ensure-indices", full)
    assert "created" not in out
    assert "commit" not in out


def test_a_branch_that_does_not_exist_is_an_error(cli, full):
    code, out, err = cli("ensure-indices", "--branch", "nowhere", full)
    assert (code, out) == (1, "")
    assert "nowhere" in err


def test_a_query_can_ask_for_the_exact_answer(cli, full):
    query = "query q() { match { $a: Author } return { $a.slug } }"
    plain = cli("query", full, "-e", query)
    assert cli("query", full, "--exact", "-e", query) == plain
    assert cli("explain", full, "--exact", "-e", query)[0] == 0
