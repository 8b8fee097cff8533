"""`omnigraph query`: its formats, what it reads, its old spelling, and failures.

What a query finds is the business of the engine's own tests.
"""

from __future__ import annotations

import json

import pytest

from tests.unit.cli.conftest import without_privileges

BY_SLUG = ("query", "--query", "lib.gq", "--name", "by_slug")
ADA, CY = '{"slug": "ada"}', '{"slug": "cy"}'


def head(cli, uri):
    return cli("commit", "list", uri).out.splitlines()[-1].split()[0]


@pytest.mark.acceptance("U-011")
def test_the_document_of_a_read(cli, full):
    code, out, err = cli(*BY_SLUG, "--uri", full, "--params", ADA, "--json")
    assert (code, err) == (0, "")
    assert json.loads(out) == {
        "query_name": "by_slug",
        "target": {"branch": "main", "snapshot": None},
        "graph_commit_id": head(cli, full),
        "row_count": 1,
        "columns": ["a.slug", "a.born"],
        "rows": [{"a.slug": "ada", "a.born": 1815}],
    }
    assert out == json.dumps(json.loads(out), indent=2) + "\n"
    assert cli(*BY_SLUG, full, "--params", ADA, "--format", "json").out == out


@pytest.mark.acceptance("U-012")
def test_the_old_spelling_still_works(cli, full):
    asked = ("--query", "lib.gq", "--name", "by_slug", "--params", ADA, "--json")
    code, out, err = cli("read", full, *asked)
    assert code == 0
    assert out == cli("query", "--uri", full, *asked).out
    assert err == "warning: `omnigraph read` is deprecated; use `omnigraph query` instead\n"


@pytest.mark.acceptance("U-015")
def test_csv_is_a_header_and_rows(cli, full):
    out = cli(*BY_SLUG, full, "--params", ADA, "--format", "csv").out
    assert out.splitlines() == ["a.slug,a.born", "ada,1815"]


@pytest.mark.acceptance("U-016")
def test_jsonl_is_a_metadata_line_and_a_line_per_row(cli, full):
    out = cli(*BY_SLUG, full, "--params", ADA, "--format", "jsonl").out
    assert out.splitlines() == [
        '{"kind":"metadata","query_name":"by_slug","row_count":1,'
        '"target":{"branch":"main","snapshot":null}}',
        '{"a.slug":"ada","a.born":1815}',
    ]


@pytest.mark.acceptance("U-017")
def test_kv_is_a_line_per_value(cli, full):
    out = cli(*BY_SLUG, full, "--params", CY, "--format", "kv").out
    assert out.splitlines() == [
        "1 row from branch main via by_slug",
        "row 1",
        "a.slug: cy",
        "a.born: null",
    ]


def test_a_table_is_what_people_get(cli, full):
    table = cli(*BY_SLUG, full, "--params", ADA)
    assert table == cli(*BY_SLUG, full, "--params", ADA, "--format", "table")
    assert table.out.splitlines() == [
        "1 row from branch main via by_slug",
        "a.slug | a.born",
        "-------+-------",
        "ada    | 1815  ",
    ]


def test_every_format_can_show_that_there_are_no_rows(cli, full):
    nobody = (*BY_SLUG, full, "--params", '{"slug": "nobody"}')
    headline = "0 rows from branch main via by_slug"
    assert cli(*nobody).out.splitlines() == [headline, "a.slug | a.born", "-------+-------"]
    assert cli(*nobody, "--format", "kv").out.splitlines() == [headline, "(no rows)"]
    assert cli(*nobody, "--format", "csv").out == "a.slug,a.born\n"
    assert len(cli(*nobody, "--format", "jsonl").out.splitlines()) == 1
    document = json.loads(cli(*nobody, "--json").out)
    assert (document["row_count"], document["rows"]) == (0, [])


def test_the_text_of_a_query_may_be_given(cli, full):
    query = "query q($y: I32) { match { $a: Author { born: $y } } return { $a.slug as who } }"
    out = cli("query", full, "-e", query, "--params", '{"y": 1970}', "--format", "csv").out
    assert out == "who\nbob\n"


def test_parameters_may_come_from_a_file(cli, full, library):
    (library / "p.json").write_text(ADA)
    assert "ada" in cli(*BY_SLUG, full, "--params-file", "p.json").out


def test_a_read_is_of_the_branch_or_the_commit_that_is_named(cli, full):
    before = head(cli, full)
    cli("branch", "create", "--uri", full, "draft")
    born = '{"slug": "ada", "born": 1}'
    change = ("mutate", full, "--query", "lib.gq", "--name", "set_born", "--params", born)
    assert cli(*change, "--branch", "draft").code == 0
    shown = json.loads(cli(*BY_SLUG, full, "--params", ADA, "--branch", "draft", "--json").out)
    assert shown["target"] == {"branch": "draft", "snapshot": None}
    assert shown["rows"][0]["a.born"] == 1
    assert cli(*change).code == 0
    shown = json.loads(cli(*BY_SLUG, full, "--params", ADA, "--snapshot", before, "--json").out)
    assert shown["target"] == {"branch": None, "snapshot": before}
    assert shown["graph_commit_id"] == before
    assert shown["rows"][0]["a.born"] == 1815
    table = cli(*BY_SLUG, full, "--params", ADA, "--snapshot", before).out
    assert table.startswith(f"1 row from snapshot {before} via by_slug\n")


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        pytest.param(
            ("--query", "lib.gq"),
            1,
            "multiple queries; pass --name",
            marks=pytest.mark.acceptance("U-013"),
        ),
        pytest.param(("-e", ""), 1, "must not be empty", marks=pytest.mark.acceptance("U-014")),
        pytest.param(
            (),
            1,
            "exactly one of --query, --query-string, or --alias must be provided",
            marks=pytest.mark.acceptance("U-014"),
        ),
        pytest.param(
            ("--query", "lib.gq", "-e", "query q() { match { $a: Author } return { $a } }"),
            2,
            "exclusive",
            marks=pytest.mark.acceptance("U-014"),
        ),
        pytest.param(
            BY_SLUG[1:],
            1,
            "parameter 'slug' not provided",
            marks=pytest.mark.acceptance("U-164", partly="no server"),
        ),
        (("--query", "lib.gq", "--name", "nope"), 1, "query 'nope' not found"),
        (("--query", "lib.gq", "--name", "add_author"), 1, "run it with `mutate`"),
        (("--query", "gone.gq"), 1, "query file 'gone.gq' not found"),
        ((*BY_SLUG[1:], "--params", '{"slug": 1}'), 1, "param 'slug'"),
        ((*BY_SLUG[1:], "--params", ADA, "--branch", "nope"), 1, "nope"),
        ((*BY_SLUG[1:], "--params", ADA, "--snapshot", "nope"), 1, "nope"),
        ((*BY_SLUG[1:], "--branch", "main", "--snapshot", "c"), 2, "exclusive"),
        ((*BY_SLUG[1:], "--format", "csv", "--json"), 2, "exclusive"),
        ((*BY_SLUG[1:], "--format", "xml"), 2, "xml"),
    ],
)
def test_a_query_that_cannot_be_run_says_why(cli, full, options, code, message):
    outcome = cli("query", full, *options)
    assert (outcome.code, outcome.out) == (code, "")
    assert message in outcome.err


def test_a_read_needs_no_right_to_write(cli, public):
    query = "query q() { match { $a: Author } return { $a } }"
    with without_privileges():
        code, out, err = cli("query", public / "G", "-e", query, "--format", "csv")
    assert (code, out, err) == (0, "a\n", "")
