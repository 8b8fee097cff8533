"""`omnigraph lint`: the document, the lines for people, and what it refuses."""

from __future__ import annotations

import json

import pytest

LINT = ("lint", "--query", "lib.gq", "--schema", "library.pg")

BROKEN_GQ = """\
query good($s: String) {
    match { $a: Author { slug: $s } }
    return { $a.slug }
}

query bad() {
    match { $a: Author }
    return { $a.borm }
}
"""


@pytest.mark.acceptance("U-038")
def test_a_clean_file_is_ok(cli, library):
    code, out, err = cli(*LINT, "--json")
    assert (code, err) == (0, "")
    document = json.loads(out)
    assert document["status"] == "ok"
    assert document["schema_source"] == {"kind": "file", "path": "library.pg"}
    assert document["query_path"] == "lib.gq"
    assert document["queries_processed"] == 4
    assert [result["name"] for result in document["results"]] == [
        "by_slug",
        "all_authors",
        "add_author",
        "set_born",
    ]


@pytest.mark.acceptance("U-039")
@pytest.mark.parametrize("old", [["query", "check"], ["query", "lint"], ["check"]])
def test_old_spellings_give_the_same_document_and_a_warning(cli, library, old):
    expected = cli(*LINT, "--json")
    code, out, err = cli(*old, *LINT[1:], "--json")
    assert (code, out) == (0, expected.out)
    assert len(err.splitlines()) == 1
    assert "`omnigraph lint`" in err


def test_an_old_spelling_is_found_behind_global_options(cli, library):
    code, _, err = cli("--as", "ada", "check", *LINT[1:])
    assert code == 0
    assert "`omnigraph lint`" in err


def test_a_clean_file_in_lines_for_people(cli, library):
    code, out, err = cli(*LINT)
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "OK    query `by_slug` (read)",
        "OK    query `all_authors` (read)",
        "OK    query `add_author` (mutation)",
        "OK    query `set_born` (mutation)",
        "INFO  Lint complete: 4 queries processed (0 errors, 0 warnings, 0 info items)",
    ]


@pytest.mark.acceptance("U-040")
def test_an_unknown_property_is_shown_where_it_stands(cli, library):
    (library / "lib.gq").write_text(BROKEN_GQ)
    code, out, err = cli(*LINT)
    assert (code, err) == (1, "")
    lines = out.splitlines()
    assert lines[0] == "OK    query `good` (read)"
    assert lines[1].startswith("ERROR query `bad`: lib.gq:8:17: type error: T6: ")
    assert lines[2] == "          8 |     return { $a.borm }"
    assert lines[3] == "            |                 ^^^^"
    assert lines[4] == "         hint: did you mean `born`?"
    assert lines[5].startswith("INFO  Lint complete: 2 queries processed (1 error")


def test_an_unknown_property_fails_the_document_too(cli, library):
    (library / "lib.gq").write_text(BROKEN_GQ)
    code, out, err = cli(*LINT, "--json")
    assert (code, err) == (1, "")
    document = json.loads(out)
    assert (document["status"], document["errors"]) == ("error", 1)
    good, bad = document["results"]
    assert good["status"] == "ok"
    assert "no property `borm`" in bad["error"]
    assert (bad["position"]["line"], bad["position"]["column"]) == (8, 17)


def test_a_file_that_does_not_parse_is_one_finding(cli, library):
    (library / "lib.gq").write_text("query {")
    code, out, err = cli(*LINT)
    assert (code, err) == (1, "")
    lines = out.splitlines()
    assert lines[0].startswith("ERROR lib.gq:1:7: parse error: ")
    assert lines[2] == "            |       ^"
    assert lines[-1].startswith("INFO  Lint complete: 0 queries processed (1 error")


def test_a_warning_does_not_fail(cli, library):
    (library / "lib.gq").write_text('query fixed() { insert Author { slug: "ada" } }\n')
    code, out, _ = cli(*LINT)
    assert code == 0
    assert out.splitlines()[:2] == [
        "OK    query `fixed` (mutation)",
        "WARN  query `fixed`: mutation declares no params",
    ]


def test_an_unset_property_is_a_finding_in_its_own_line(cli, library):
    (library / "library.pg").write_text(
        "node A {\n    k: String @key\n    n: I32?\n    m: I32?\n}\n"
    )
    (library / "lib.gq").write_text(
        "query set_n($k: String, $n: I32) { update A set { n: $n } where k = $k }\n"
    )
    code, out, _ = cli(*LINT)
    assert code == 0
    assert out.splitlines()[1] == "WARN  A.m exists in schema but no update query sets it"


def test_an_empty_query_file_has_no_queries(cli, library):
    (library / "lib.gq").write_text("")
    code, out, _ = cli(*LINT, "--json")
    assert code == 0
    assert json.loads(out)["queries_processed"] == 0


@pytest.mark.acceptance("U-041")
def test_without_a_schema_it_says_what_it_needs(cli, library):
    assert cli("lint", "--query", "lib.gq") == (
        1,
        "",
        "error[OG-I-005]: lint requires --schema <schema.pg> or a resolvable graph target\n",
    )


@pytest.mark.acceptance("U-041")
def test_a_remote_graph_is_refused(cli, library):
    code, out, err = cli("lint", "--query", "lib.gq", "http://h")
    assert (code, out) == (1, "")
    assert "`lint` is a storage-plane command and needs direct storage access" in err
    assert "remote server" in err


def test_a_graph_lends_its_schema(cli, empty):
    from_file = json.loads(cli(*LINT, "--json").out)
    code, out, err = cli("lint", "--query", "lib.gq", empty, "--json")
    assert (code, err) == (0, "")
    document = json.loads(out)
    assert document.pop("schema_source") == {"kind": "graph", "uri": "G"}
    del from_file["schema_source"]
    assert document == from_file


def test_an_error_is_found_against_the_schema_of_a_graph(cli, empty, library):
    (library / "lib.gq").write_text(BROKEN_GQ)
    code, out, _ = cli("lint", "--query", "lib.gq", empty)
    assert code == 1
    assert "ERROR query `bad`: lib.gq:8:17: type error: T6: " in out


def test_a_place_without_a_graph_lends_nothing(cli, library):
    code, out, err = cli("lint", "--query", "lib.gq", "nowhere")
    assert (code, out) == (1, "")
    assert err.startswith("error[OG-N-001]: no graph at ")


def test_a_graph_beside_a_schema_file_is_mentioned_and_not_used(cli, library):
    code, _, err = cli(*LINT, "graph.omni")
    assert (code, err) == (
        0,
        "warning: --schema is given, so the graph graph.omni is not consulted\n",
    )


def test_a_missing_query_option_is_a_usage_error(cli):
    code, out, err = cli("lint", "--schema", "library.pg")
    assert (code, out) == (2, "")
    assert "--query" in err


def test_a_broken_schema_is_an_error_of_its_own(cli, library):
    (library / "library.pg").write_text("node author { slug: String }\n")
    code, out, err = cli(*LINT, "--json")
    assert (code, out) == (1, "")
    document = json.loads(err)
    assert document["error"].startswith("library.pg:1:")
    assert document["diagnostics"][0]["line"] == 1
