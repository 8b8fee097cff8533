"""Printing and reading back: random valid schemas and queries survive it unchanged."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from omnigraph.catalog.compile import compile_schema
from omnigraph.language.format import format_queries, format_schema, print_schema
from omnigraph.language.query.parse import parse_queries
from omnigraph.language.query.print_file import print_queries
from omnigraph.language.schema.parse import parse_schema
from omnigraph.language.syntax import Source
from omnigraph.plan.compile import compile_checked
from tests.support.cases import read_cases
from tests.support.cases.actions import Mutate
from tests.support.cases.expectations import Refused
from tests.support.cases.readings import Ask
from tests.support.generate import query_files, schemas

ROOT = Path(__file__).parents[3]
STORIES = sorted((ROOT / "tests/cases").glob("*.gqt"))
FILES = sorted((ROOT / "examples").rglob("*.gq"))

RELAXED = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@RELAXED
@given(schemas())
def test_a_printed_schema_reads_back_as_the_same_tree(schema):
    text = print_schema(schema)
    assert parse_schema(Source("<schema>", text)) == schema


@RELAXED
@given(schemas())
def test_a_generated_schema_is_accepted_and_formatting_keeps_its_hash(schema):
    text = print_schema(schema)
    formatted = format_schema(Source("<schema>", text))
    before = compile_schema(Source("<schema>", text)).hash
    assert compile_schema(Source("<schema>", formatted)).hash == before
    assert format_schema(Source("<schema>", formatted)) == formatted


@RELAXED
@given(st.data())
def test_a_printed_query_reads_back_as_the_same_tree_and_fits_the_schema(data):
    catalog = compile_schema(Source("<schema>", print_schema(data.draw(schemas(min_nodes=1)))))
    file = data.draw(query_files(catalog))
    source = Source("<query>", print_queries(file))
    assert parse_queries(source) == file
    for query in parse_queries(source).queries:
        plan = compile_checked(source, catalog, query).plan
        assert plan.name == query.name.text
        assert [p.name for p in plan.parameters] == [p.name for p in query.parameters]


@RELAXED
@given(st.data())
def test_formatting_queries_is_idempotent_and_keeps_the_tree(data):
    catalog = compile_schema(Source("<schema>", print_schema(data.draw(schemas(min_nodes=1)))))
    file = data.draw(query_files(catalog))
    once = format_queries(Source("<query>", print_queries(file)))
    assert parse_queries(Source("<query>", once)) == file
    assert format_queries(Source("<query>", once)) == once


def accepted_queries(story: Path) -> list[str]:
    """The queries of a story that have a name and are not refused."""
    found = []
    for case in read_cases(story):
        does = [step.does for step in case.steps]
        for one, following in pairwise([*does, None]):
            if not isinstance(one, Ask | Mutate) or isinstance(following, Refused):
                continue
            if one.query.startswith("query"):
                found.append(one.query)
    return found


def assert_printing_keeps(text: str) -> None:
    tree = parse_queries(Source("<query>", text))
    printed = print_queries(tree)
    assert parse_queries(Source("<query>", printed)) == tree
    formatted = format_queries(Source("<query>", text))
    assert parse_queries(Source("<query>", formatted)) == tree


@pytest.mark.acceptance("L-393", partly="public cookbooks are not among the files")
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.stem)
def test_queries_of_the_stories_keep_their_tree_when_printed(story):
    for text in accepted_queries(story):
        assert_printing_keeps(text)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.parent.name)
def test_queries_of_the_examples_keep_their_tree_when_printed(file):
    assert_printing_keeps(file.read_text())


def test_the_stories_have_queries():
    assert sum(len(accepted_queries(story)) for story in STORIES) > 100
