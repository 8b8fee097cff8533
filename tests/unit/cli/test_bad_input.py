"""Hostile and careless input: a clear error and exit code 1, from every command that reads source."""

from __future__ import annotations

import pytest

DEEP = 10_000

BAD_SCHEMAS = {
    "not UTF-8": b"node A {\n    n\xe4me: String\n}\n",
    "UTF-16": "\ufeffnode A { }".encode("utf-16-le"),
    "binary": b"\x7fELF\0\0",
    "a line of a megabyte": b"node A { " + b"x" * 1_000_000,
    "a megabyte of strings": b'node A { s: String @check(s, "' + b"a" * 1_000_000,
    "deep brackets": b"node A { x: " + b"[" * DEEP,
    "deep blocks": b"node A { " * DEEP,
}

BAD_QUERIES = {
    "not UTF-8": b"query q\xff() {}",
    "UTF-16": "\ufeffquery q() {}".encode("utf-16-be"),
    "binary": b"PK\x03\x04\0",
    "a line of a megabyte": b"query q() { match { " + b"$a " * 350_000,
    "one name of a megabyte": b"query " + b"q" * 1_000_000,
    "deep negation": b"query q() { match { " + b"not { " * DEEP,
    "deep lists": b"query q() { match { $a: Author { slug: " + b"[" * DEEP,
    "deep calls": b"query q() { match { $a: Author } return { " + b"count(" * DEEP,
}


def assert_clear(outcome, name):
    """One message about the file, no defect, no stack trace, and not a megabyte of it."""
    text = outcome.out + outcome.err
    assert outcome.code == 1
    assert f"{name}:" in text
    assert "Traceback" not in text
    assert "internal error" not in text
    assert len(text) < 2_000


@pytest.mark.parametrize("content", BAD_SCHEMAS.values(), ids=BAD_SCHEMAS)
def test_a_bad_schema_is_refused_clearly(cli, library, content):
    (library / "bad.pg").write_bytes(content)
    assert_clear(cli("fmt", "bad.pg"), "bad.pg")
    assert (library / "bad.pg").read_bytes() == content
    assert_clear(cli("lint", "--query", "lib.gq", "--schema", "bad.pg"), "bad.pg")


@pytest.mark.parametrize("content", BAD_QUERIES.values(), ids=BAD_QUERIES)
def test_a_bad_query_file_is_refused_clearly(cli, library, content):
    (library / "bad.gq").write_bytes(content)
    assert_clear(cli("fmt", "bad.gq"), "bad.gq")
    assert (library / "bad.gq").read_bytes() == content
    assert_clear(cli("lint", "--query", "bad.gq", "--schema", "library.pg"), "bad.gq")


@pytest.mark.parametrize("name", ["missing.pg", "directory.pg"])
def test_a_path_without_a_file_is_refused_clearly(cli, library, name):
    (library / "directory.pg").mkdir()
    assert_clear(cli("fmt", name), name)
    assert_clear(cli("lint", "--query", "lib.gq", "--schema", name), name)
    assert_clear(cli("lint", "--query", name, "--schema", "library.pg"), name)
