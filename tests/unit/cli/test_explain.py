"""`omnigraph explain`: the table, the document, and what it refuses."""

from __future__ import annotations

import json

import pytest

BY_SLUG = ("explain", "--query", "lib.gq", "--name", "by_slug")
ADA = '{"slug": "ada"}'


def head(cli, uri):
    return cli("commit", "list", uri).out.splitlines()[-1].split()[0]


def nodes_of(plan):
    return [plan, *(node for child in plan["children"] for node in nodes_of(child))]


@pytest.mark.acceptance("U-146")
def test_the_steps_of_a_read(cli, full):
    code, out, err = cli(*BY_SLUG, full)
    assert (code, err) == (0, "")
    first, header, _, *steps = out.splitlines()
    assert first.startswith("by_slug on branch main, ")
    assert header.split(" | ")[0].strip() == "step"
    assert [line.split(" | ")[0].strip() for line in steps] == [
        "scan a: Author where a.slug = $slug",
        "return a.slug, a.born",
    ]


@pytest.mark.acceptance("U-146")
def test_the_document_of_a_run(cli, full):
    code, out, err = cli(*BY_SLUG, "--uri", full, "--params", ADA, "--analyze", "--json")
    assert (code, err) == (0, "")
    document = json.loads(out)
    assert document["query_name"] == "by_slug"
    assert document["target"] == {"branch": "main", "snapshot": None}
    assert document["graph_commit_id"] == head(cli, full)
    plan = document["plan"]
    assert plan["children"]
    assert [node["actual_rows"] for node in nodes_of(plan)] == [1, 1]
    assert all(node["ms"] >= 0 for node in nodes_of(plan))
    assert document["total_ms"] > 0


def test_a_run_shows_rows_and_time_of_each_step(cli, full):
    out = cli(*BY_SLUG, full, "--params", ADA, "--analyze").out
    header, step = out.splitlines()[1], out.splitlines()[3]
    assert [cell.strip() for cell in header.split(" | ")] == [
        "step",
        "expected rows",
        "rows",
        "ms",
        "look-ups",
    ]
    assert step.split(" | ")[2].strip() == "1"


def test_without_a_run_no_parameter_is_needed(cli, full):
    assert cli(*BY_SLUG, full).code == 0
    ran = cli(*BY_SLUG, full, "--analyze")
    assert ran.code == 1
    assert "parameter 'slug' not provided" in ran.err


def test_query_can_explain_too(cli, full):
    asked = ("--query", "lib.gq", "--name", "by_slug", full)
    assert cli("query", *asked, "--explain") == cli("explain", *asked)
    assert cli("query", *asked, "--explain", "--json") == cli("explain", *asked, "--json")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("explain", "--branch", "b", "--snapshot", "c"), "--branch and --snapshot are exclusive"),
        (("query", "--explain", "--format", "csv"), "--format and --explain are exclusive"),
    ],
)
def test_options_that_exclude_each_other(cli, full, options, message):
    command, *more = options
    refused = cli(command, "--query", "lib.gq", "--name", "by_slug", full, *more)
    assert refused.code == 2
    assert message in refused.err


def test_a_mutation_has_no_steps_to_explain(cli, full):
    refused = cli("explain", "--query", "lib.gq", "--name", "add_author", full)
    assert refused.code == 1
    assert "is a mutation" in refused.err


def test_what_a_commit_left_can_be_explained(cli, full):
    commit = head(cli, full)
    out = cli(*BY_SLUG, full, "--snapshot", commit, "--json").out
    assert json.loads(out)["target"] == {"branch": None, "snapshot": commit}
