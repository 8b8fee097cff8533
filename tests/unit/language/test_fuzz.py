"""Whatever text comes in, a compiler answers: a tree, or a language error that points somewhere."""

import random
import re
import signal
from contextlib import contextmanager

import pytest

from omnigraph.catalog.compile import compile_schema
from omnigraph.errors import LanguageError
from omnigraph.language.format import format_queries, format_schema
from omnigraph.language.query.parse import parse_queries
from omnigraph.language.schema.parse import parse_schema
from omnigraph.language.syntax import Source
from omnigraph.plan.lint import lint_queries
from tests.unit.language.sources import QUERIES, SCHEMA

CATALOG = compile_schema(Source("library.pg", SCHEMA))
PIECE = re.compile(r"\s+|\w+|.", re.DOTALL)
ALPHABET = [chr(c) for c in range(32, 127)] + list('\n\t\r\0"\\$@{}[]()/*.,:<>=!-é漢🎈\u202e')
SECONDS_PER_INPUT = 60


@contextmanager
def never_hang(text):
    """Fail with the input when a compiler takes longer than any honest one needs."""

    def give_up(_signal, _frame):
        raise AssertionError(f"still busy after {SECONDS_PER_INPUT} s with {text!r}")

    previous = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(SECONDS_PER_INPUT)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)


def random_text(rng):
    return "".join(rng.choices(ALPHABET, k=rng.randrange(60)))


def random_bytes(rng):
    return rng.randbytes(rng.randrange(80)).decode("utf-8", errors="replace")


def mutated(rng, original):
    """A valid source with a few pieces removed, repeated, swapped or replaced."""
    pieces = PIECE.findall(original)
    start = rng.randrange(len(pieces))
    pieces = pieces[start : start + rng.randrange(20, 220)] if rng.random() < 0.5 else pieces
    for _ in range(rng.randrange(1, 5)):
        if not pieces:
            break
        at = rng.randrange(len(pieces))
        match rng.randrange(5):
            case 0:
                del pieces[at]
            case 1:
                pieces.insert(at, pieces[rng.randrange(len(pieces))])
            case 2:
                other = rng.randrange(len(pieces))
                pieces[at], pieces[other] = pieces[other], pieces[at]
            case 3:
                pieces[at] = random_text(rng)
            case _:
                pieces[at] = rng.choice(
                    ["999999999999999999999", "$", "@card(0..*)", "not {", "[["]
                )
    return "".join(pieces)


def compile_and_format_schema(source):
    tree = parse_schema(source)
    formatted = format_schema(source)
    assert parse_schema(Source("<schema>", formatted)) == tree
    assert format_schema(Source("<schema>", formatted)) == formatted
    compile_schema(source)


def lint_and_format_queries(source):
    lint_queries(source, CATALOG)
    tree = parse_queries(source)
    formatted = format_queries(source)
    assert parse_queries(Source("<query>", formatted)) == tree
    assert format_queries(Source("<query>", formatted)) == formatted


def run(seed, count):
    rng = random.Random(seed)
    outcomes = {"accepted": 0, "refused": 0}
    for _ in range(count):
        compiler, original = rng.choice(
            [(compile_and_format_schema, SCHEMA), (lint_and_format_queries, QUERIES)]
        )
        kind = rng.random()
        if kind < 0.15:
            text = random_text(rng)
        elif kind < 0.25:
            text = random_bytes(rng)
        else:
            text = mutated(rng, original)
        source = Source("input", text)
        with never_hang(text):
            try:
                compiler(source)
            except LanguageError as error:
                outcomes["refused"] += 1
                check_position(error, text)
            else:
                outcomes["accepted"] += 1
    return outcomes


def check_position(error, text):
    where = error.diagnostic.position
    lines = text.split("\n")
    assert 1 <= where.line <= where.end_line <= len(lines), text
    assert 1 <= where.column <= len(lines[where.line - 1]) + 1, text
    assert 0 <= where.start < where.end <= len(text.encode()) + 1, text
    assert str(error).startswith(f"input:{where.line}:{where.column}: "), text


def test_random_and_damaged_sources_are_refused_with_a_position():
    outcomes = run(seed=20260101, count=2_000)
    assert min(outcomes.values()) > 50, outcomes


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_many_random_and_damaged_sources_are_refused_with_a_position(seed):
    outcomes = run(seed=seed, count=10_000)
    assert min(outcomes.values()) > 250, outcomes


HUGE_SCHEMAS = {
    "1 MB unterminated string": 'node A { x: String @d("' + "\\n" * 500_000,
    "1 MB unterminated comment": "/*" + "*" * 1_000_000,
    "100,000 enum values, then nothing": "node A { x: enum(" + "a," * 100_000,
    "10,000 braces": "{" * 10_000,
    "1 MB line with an error at its end": "node A { x: String } " + " " * 1_000_000 + "x",
}
HUGE_QUERIES = {
    "10,000 nested blocks": "query q() { match { " + "not { " * 10_000,
    "10,000 nested lists": "query q() { match { $a.x = " + "[" * 10_000,
    "10,000 nested calls": "query q() { match { " + "search(" * 10_000,
    "1 MB number": "query q() { match { $a.x = " + "9" * 1_000_000,
    "1 MB name": "query " + "q" * 1_000_000,
    "100,000 projections, then nothing": "query q() { match { $a: A } return { " + "$a, " * 100_000,
}


@pytest.mark.parametrize("name", HUGE_SCHEMAS)
def test_a_huge_bad_schema_is_refused_quickly_with_a_readable_excerpt(name):
    assert_refused_quickly(HUGE_SCHEMAS[name], compile_and_format_schema)


@pytest.mark.parametrize("name", HUGE_QUERIES)
def test_a_huge_bad_query_is_refused_quickly_with_a_readable_excerpt(name):
    assert_refused_quickly(HUGE_QUERIES[name], lint_and_format_queries)


def test_a_valid_file_with_a_1_mb_line_is_accepted():
    text = "node A { x: String } // " + "x" * 1_000_000
    with never_hang(text[:80]):
        compile_and_format_schema(Source("input", text))


def assert_refused_quickly(text, compiler):
    with never_hang(text[:80]), pytest.raises(LanguageError) as caught:
        compiler(Source("input", text))
    assert len(str(caught.value)) < 1_000
    check_position(caught.value, text)
