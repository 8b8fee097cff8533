"""Printing and reading back: random valid schemas and queries survive it unchanged."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from omnigraph.catalog.compile import compile_schema
from omnigraph.language.format import format_queries, format_schema, print_queries, print_schema
from omnigraph.language.query.parse import parse_queries
from omnigraph.language.schema.parse import parse_schema
from omnigraph.language.syntax import Source
from omnigraph.plan.compile import compile_checked
from tests.support.generate import query_files, schemas

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
