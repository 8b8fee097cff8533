"""`omnigraph schema show`, `schema plan` and `schema apply`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import omnigraph as og
from tests.unit.cli.conftest import LIBRARY_PG

NICKNAME = LIBRARY_PG.replace("born: I32?", "born: I32?\n    nickname: String?")
RETYPED = LIBRARY_PG.replace("born: I32?", "born: String?")
WITHOUT_BORN = LIBRARY_PG.replace("    born: I32?\n", "")


@pytest.fixture
def schema(library):
    def write(text: str) -> str:
        (library / "next.pg").write_text(text)
        return "next.pg"

    return write


def test_the_schema_is_printed_as_it_was_written(cli, full):
    assert cli("schema", "show", full) == (0, LIBRARY_PG, "")
    assert json.loads(cli("schema", "get", full, "--json").out) == {"schema_source": LIBRARY_PG}


@pytest.mark.acceptance("U-032")
def test_a_plan_shows_the_steps_and_changes_nothing(cli, full, schema):
    before = og.open(full).head().id
    code, out, err = cli("schema", "plan", "--schema", schema(NICKNAME), "--json", full)
    assert (code, err) == (0, "")
    document = json.loads(out)
    assert (document["uri"], document["supported"], document["step_count"]) == (full, True, 1)
    assert document["steps"][0]["kind"] == "add_property"
    assert document["steps"][0]["property_name"] == "nickname"
    code, out, _ = cli("schema", "plan", "--schema", schema(NICKNAME), full)
    assert (code, out.splitlines()) == (
        0,
        [
            "schema plan for G",
            "supported: yes",
            "- add property 'Author.nickname' (String?) on node 'Author'",
        ],
    )
    assert og.open(full).head().id == before
    assert cli("schema", "show", full).out == LIBRARY_PG


@pytest.mark.acceptance("U-033")
def test_a_plan_with_a_change_that_cannot_be_made_is_shown_and_exits_with_1(cli, full, schema):
    code, out, err = cli("schema", "plan", "--schema", schema(RETYPED), "--json", full)
    assert (code, err) == (1, "")
    document = json.loads(out)
    assert document["supported"] is False
    [step] = document["steps"]
    assert step["kind"] == "unsupported_change"
    assert "Author.born" in step["entity"]
    code, out, err = cli("schema", "plan", "--schema", schema(RETYPED), full)
    assert (code, out.splitlines()[1], err) == (1, "supported: no", "")


@pytest.mark.acceptance("U-034")
def test_applying_a_change_that_cannot_be_made_fails_and_points_at_it(cli, full, schema):
    code, out, err = cli("schema", "apply", "--schema", schema(RETYPED), full)
    assert (code, out) == (1, "")
    assert "changing property type for 'Author.born'" in err
    assert "next.pg:3:11" in err
    assert cli("schema", "show", full).out == LIBRARY_PG


def test_a_change_that_would_break_a_query_fails_and_names_it(cli, full, schema):
    Path("authors.gq").write_text(
        "query ada() { match { $a: Author } return { $a.slug } }\n"
        "query births() { match { $a: Author } return { $a.born } }\n"
    )
    words = ("schema", "apply", "--schema", schema(WITHOUT_BORN), full)
    code, out, err = cli(*words, "--query", "authors.gq")
    assert (code, out) == (1, "")
    assert "schema check: 1 query does not fit the new schema" in err
    assert "query 'births': authors.gq:2:51" in err
    assert cli("schema", "show", full).out == LIBRARY_PG
    code, _, err = cli(*words, "--engine", "inline", "--master", "local[1]")
    assert (code, "--master" in err) == (2, True)
    assert cli(*words).code == 0


@pytest.mark.acceptance("U-035")
def test_the_same_schema_is_no_change(cli, full, schema):
    code, out, err = cli("schema", "apply", "--schema", schema(LIBRARY_PG), full)
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "schema apply for G",
        "supported: yes",
        "applied: no",
        "manifest_version: 2",
        "no schema changes",
    ]


@pytest.mark.acceptance("U-036")
@pytest.mark.parametrize(("options", "mode"), [([], "soft"), (["--allow-data-loss"], "hard")])
def test_a_dropped_property_is_soft_unless_loss_is_allowed(cli, full, schema, options, mode):
    text = schema(WITHOUT_BORN)
    planned = json.loads(cli("schema", "plan", "--schema", text, *options, "--json", full).out)
    code, out, err = cli("schema", "apply", "--schema", text, *options, "--json", full)
    assert (code, err) == (0, "")
    applied = json.loads(out)
    for document in (planned, applied):
        [step] = document["steps"]
        assert (step["kind"], step["property_name"], step["mode"]) == (
            "drop_property",
            "born",
            mode,
        )
    assert (applied["applied"], applied["manifest_version"]) == (True, 3)
    assert applied["operation"] == "schema_apply"
    [commit] = og.open(full).log(operation="schema_apply", reverse=True)
    assert applied["graph_commit_id"] == commit.id


def test_an_apply_is_recorded_with_actor_and_message(cli, full, schema):
    text = schema(NICKNAME)
    code, out, err = cli("--as", "ada", "schema", "apply", "--schema", text, "-m", "names", full)
    assert (code, err) == (0, "")
    graph = og.open(full)
    assert out.splitlines()[-1] == f"commit {graph.head().id}"
    commit = graph.commit(graph.head().id)
    assert (commit.actor, commit.message) == ("ada", "names")
    (stale,) = commit.parents
    again = cli("schema", "apply", "--schema", schema(LIBRARY_PG), "--expect-head", stale, full)
    assert again.code == 1
    assert stale in again.err
    assert graph.head().id in again.err


@pytest.mark.acceptance("U-037")
def test_a_branch_is_in_the_way(cli, full, schema):
    cli("branch", "create", "feature", "--uri", full)
    code, out, err = cli("schema", "apply", "--schema", schema(NICKNAME), full)
    assert (code, out) == (1, "")
    assert "requires a graph with only main" in err
    assert "feature" in err


@pytest.mark.acceptance("U-165")
def test_plans_of_longer_enums_renames_and_backfills(cli, library, schema):
    base = "node Author {\n    slug: String @key\n    mood: enum(calm, wild)?\n}\n"
    cli("init", "--schema", schema(base), "E")

    def steps(text: str) -> list[dict[str, object]]:
        planned = cli("schema", "plan", "--schema", schema(text), "--json", "E")
        found: list[dict[str, object]] = json.loads(planned.out)["steps"]
        return found

    assert [s["kind"] for s in steps(base.replace("wild", "wild, odd"))] == ["extend_enum"]
    renamed = base.replace("node Author", 'node Writer @rename_from("Author")')
    assert [s["kind"] for s in steps(renamed)] == ["rename_type"]
    required = base.replace("mood", "nick: String\n    mood")
    [refused] = steps(required)
    assert (refused["kind"], refused["code"]) == ("unsupported_change", "OG-MF-103")
    assert "@backfill" in str(refused["reason"])
    [added] = steps(required.replace("nick: String", 'nick: String @backfill("none")'))
    assert (added["kind"], added["backfill"]) == ("add_property", "none")
