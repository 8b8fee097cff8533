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


LONG = "x" * 5_000

BAD_PARAMS = {
    "deep arrays": b"[" * 100_000,
    "deep objects": b'{"a":' * 100_000,
    "deep and closed": b'{"slug":' + b"[" * 50_000 + b"]" * 50_000 + b"}",
    "digits": b'{"slug": ' + b"9" * 5_000 + b"}",
    "not UTF-8": b'{"slug": "\xff"}',
    "cut off": b'{"slug":\n  ',
    "long value": b'{"slug": ["' + LONG.encode() + b'"]}',
    "twice": b'{"slug": "a", "slug": "b"}',
}
READ = "query q($slug: String) { match { $a: Author { slug: $slug } } return { $a.slug } }"


def assert_one_sentence(outcome, codes=(1,)):
    assert outcome.code in codes
    assert outcome.out == ""
    for part in ("Traceback", "internal error", ".rs:", "LanceError", "sys.set_int", "codec"):
        assert part not in outcome.err
    assert len(outcome.err) < 700
    return outcome.err


@pytest.mark.parametrize("content", BAD_PARAMS.values(), ids=BAD_PARAMS)
@pytest.mark.parametrize("as_json", [(), ("--json",)])
def test_bad_parameters_are_refused_in_one_sentence(cli, empty, library, content, as_json):
    (library / "params.json").write_bytes(content)
    told = cli("query", empty, "--query-string", READ, "--params-file", "params.json", *as_json)
    assert assert_one_sentence(told).count("\n") == 1


def test_broken_json_is_reported_with_line_and_column(cli, empty, library):
    (library / "broken.json").write_text('{"slug":\n  [,')
    assert cli("branch", "create", "b", "--uri", empty).code == 0
    for args in (
        ("query", empty, "--query-string", READ, "--params-file", "broken.json"),
        ("merge", "b", "--uri", empty, "--resolve", "broken.json"),
        ("load", empty, "--mode", "append", "--mapping", "broken.json"),
    ):
        assert "line 2, column 4" in assert_one_sentence(cli(*args))


@pytest.mark.parametrize(
    "args",
    [
        ("query", "G", "--query-string", READ, "--params", f'{{"slug": ["{LONG}"]}}'),
        ("query", "G", "--query-string", READ, "--params", "{}", "--name", LONG),
        ("query", "G", "--query-string", f"query q() {{ match {{ $a: {LONG} }} return {{ $a }} }}"),
        ("query", "G", "--query-string", READ, "--params", '{"slug": "a"}', "--branch", LONG),
        ("query", "G", "--query-string", READ, "--params", '{"slug": "a"}', "--snapshot", LONG),
        ("query", LONG, "--query-string", READ),
        ("query", f"--{LONG}"),
        ("query", "G", "--params", LONG, "--query-string", READ),
        ("commit", "show", LONG, "--uri", "G"),
        ("branch", "create", LONG, "--uri", "G"),
        ("branch", "delete", LONG, "--uri", "G"),
        ("merge", LONG, "--uri", "G"),
        ("diff", LONG, "main", "--uri", "G"),
        ("export", "G", "--type", LONG),
        ("errors", LONG),
        ("init", "--schema", LONG, "H"),
        ("load", "G", "--mode", LONG),
        ("load", "G", "--mode", "merge", "--data", LONG),
        ("load", "G", "--mode", "merge", "--mapping", LONG),
        (LONG,),
        ("branch", LONG),
    ],
    ids=lambda args: " ".join(args)[:60],
)
def test_no_message_shows_a_long_argument_as_a_whole(cli, empty, args):
    assert_one_sentence(cli(*args), codes=(1, 2))
