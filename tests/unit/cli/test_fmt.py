"""`omnigraph fmt`: what it rewrites, what it prints, and what it leaves alone."""

from __future__ import annotations

import json

import pytest

from omnigraph.catalog.compile import compile_schema
from omnigraph.read.source_files import read_source

UGLY_PG = "node   Author{slug:String@key\n born : I32 ?}\n"
UGLY_GQ = "query q( ){match{$a:Author}return{$a.slug}}\n"


@pytest.fixture
def ugly(library):
    """An unformatted schema, in the current directory."""
    path = library / "ugly.pg"
    path.write_text(UGLY_PG)
    return path


@pytest.mark.acceptance("U-150")
def test_check_then_format_then_check_keeps_the_meaning(cli, ugly):
    before = compile_schema(read_source(ugly))
    assert cli("fmt", "--check", "ugly.pg") == (1, "would reformat ugly.pg\n", "")
    assert ugly.read_text() == UGLY_PG
    assert cli("fmt", "ugly.pg") == (0, "reformatted ugly.pg\n", "")
    assert ugly.read_text() != UGLY_PG
    assert cli("fmt", "--check", "ugly.pg") == (0, "", "")
    assert compile_schema(read_source(ugly)).hash == before.hash


def test_a_formatted_file_is_not_touched(cli, ugly):
    cli("fmt", "ugly.pg")
    before = ugly.stat()
    assert cli("fmt", "ugly.pg") == (0, "", "")
    after = ugly.stat()
    assert (after.st_mtime_ns, after.st_ino) == (before.st_mtime_ns, before.st_ino)


def test_the_document_says_what_changed(cli, ugly):
    (ugly.parent / "ugly.gq").write_text(UGLY_GQ)
    cli("fmt", "ugly.gq")
    code, out, err = cli("fmt", "--json", "ugly.pg", "ugly.gq")
    assert (code, err) == (0, "")
    assert json.loads(out) == {
        "files": [{"path": "ugly.pg", "changed": True}, {"path": "ugly.gq", "changed": False}]
    }
    assert ugly.read_text() != UGLY_PG


def test_a_diff_shows_the_change_and_writes_nothing(cli, ugly):
    code, out, err = cli("fmt", "--diff", "ugly.pg")
    assert (code, err) == (0, "")
    assert out.startswith("--- ugly.pg\n+++ ugly.pg\n@@ ")
    assert "-node   Author{slug:String@key\n" in out
    assert "+node Author {\n" in out
    assert ugly.read_text() == UGLY_PG


def test_a_diff_with_check_fails_when_something_would_change(cli, ugly):
    assert cli("fmt", "--diff", "--check", "ugly.pg").code == 1
    cli("fmt", "ugly.pg")
    assert cli("fmt", "--diff", "--check", "ugly.pg") == (0, "", "")


def test_a_diff_marks_a_missing_last_line_break(cli, ugly):
    ugly.write_text(UGLY_PG.rstrip("\n"))
    assert "\n\\ No newline at end of file\n" in cli("fmt", "--diff", "ugly.pg").out


def test_all_broken_files_are_reported_and_the_others_formatted(cli, ugly):
    broken = ugly.parent / "broken.pg"
    broken.write_text("node {")
    code, out, err = cli("fmt", "broken.pg", "ugly.pg", "missing.gq")
    assert (code, out) == (1, "reformatted ugly.pg\n")
    assert "broken.pg:1:6: parse error: " in err
    assert "missing.gq: no such file" in err
    assert broken.read_text() == "node {"
    assert ugly.read_text() != UGLY_PG


def test_a_failure_leaves_no_document(cli, ugly):
    code, out, err = cli("fmt", "--json", "--check", "ugly.pg", "missing.gq")
    assert (code, out) == (1, "")
    assert "missing.gq" in err


def test_a_file_that_cannot_be_written_is_reported(cli, ugly, monkeypatch):
    def refuse(*_args: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("omnigraph.cli.commands.sources.replacing", refuse)
    message = "error[OG-I-000]: ugly.pg: cannot be written: Permission denied\n"
    assert cli("fmt", "ugly.pg") == (1, "", message)


def test_a_file_of_another_kind_needs_its_language_named(cli, ugly):
    other = ugly.rename(ugly.parent / "schema.txt")
    code, out, err = cli("fmt", "schema.txt")
    assert (code, out) == (1, "")
    assert "--lang" in err
    assert cli("fmt", "--lang", "pg", "schema.txt").code == 0
    assert other.read_text() != UGLY_PG


@pytest.mark.parametrize("text", [UGLY_PG, UGLY_GQ])
def test_standard_input_is_formatted_in_the_language_it_is(cli, text):
    once = cli("fmt", "-", stdin=text.encode())
    assert (once.code, once.err) == (0, "")
    assert once.out not in ("", text)
    assert cli("fmt", "-", stdin=once.out.encode()).out == once.out
    assert cli("fmt", "-", "--check", stdin=once.out.encode()) == (0, "", "")
    assert cli("fmt", "-", "--check", stdin=text.encode()) == (1, "would reformat -\n", "")


def test_standard_input_with_a_named_language_is_read_as_nothing_else(cli):
    code, out, err = cli("fmt", "-", "--lang", "gq", stdin=UGLY_PG.encode())
    assert (code, out) == (1, "")
    assert err.startswith("<stdin>:1:1: parse error: ")


@pytest.mark.parametrize(
    ("text", "place"),
    [("node A { b: }", "<stdin>:1:13: "), ("query q() { match ! }", "<stdin>:1:19: ")],
)
def test_broken_standard_input_is_checked_as_the_language_it_resembles(cli, text, place):
    code, out, err = cli("fmt", "-", stdin=text.encode())
    assert (code, out) == (1, "")
    assert err.startswith(place)


def test_standard_input_in_the_wrong_encoding_is_refused(cli):
    code, _, err = cli("fmt", "-", stdin=b"node \xff")
    assert (code, err) == (
        1,
        "error[OG-I-001]: <stdin>: is not UTF-8 at byte 5 (line 1); save it as UTF-8\n",
    )


@pytest.mark.parametrize(
    "args",
    [[], ["-", "a.pg"], ["--json", "--diff", "a.pg"], ["--json", "-"], ["--lang", "sql", "a"]],
)
def test_contradicting_arguments_are_usage_errors(cli, args):
    code, out, _ = cli("fmt", *args)
    assert (code, out) == (2, "")


def test_an_empty_file_stays_empty(cli, library):
    for name in ("empty.pg", "empty.gq"):
        (library / name).touch()
        assert cli("fmt", name) == (0, "", "")
        assert (library / name).read_text() == ""
