"""Random questions that search and rank, against an evaluator that reads one text at a time."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.api.graph import open as open_graph
from omnigraph.catalog.compile import compile_schema
from omnigraph.language.query.ast import QueryFile
from omnigraph.language.query.print_file import print_queries
from omnigraph.language.syntax import Source
from tests.behaviour.random_reads import SEARCHES, changes, images, parameter_values, views
from tests.behaviour.read_answers import asked, assert_right, graph_of, image_of
from tests.behaviour.test_reads_against_reference import RELAXED, engine_of
from tests.support.generate import read_queries

SCHEMA = """
node Page { slug: String @key  title: String?  body: String? @index  vec: Vector(2)? @index  n: I32? }
node Tag { name: String @key  about: String?  vec: Vector(2)? }
edge Links: Page -> Page { }
edge Has: Page -> Tag { }
"""
CATALOG = compile_schema(Source("<schema>", SCHEMA))


def agree(data):
    """Several questions, with writes between them that the searchable columns have to follow.

    Some are asked of a graph with indexes: new ones first, then ones that are behind.
    """
    image = data.draw(images(CATALOG, most=6))
    graph = graph_of(SCHEMA, image)
    is_indexed = data.draw(st.booleans())
    for round in range(4):
        if is_indexed and round == 1:
            graph.maintenance.ensure_indexes()
        if is_indexed and round in (1, 3):
            graph = open_graph(graph.uri)
        view = data.draw(views(CATALOG))
        query = data.draw(read_queries(view.restrict(CATALOG), SEARCHES))
        text = print_queries(QueryFile((query,)))
        question = asked(text, data.draw(parameter_values(query)), view)
        assert_right(image, question, engine_of(graph))
        if round in (0, 2):
            data.draw(changes(image))(graph)
            image = image_of(graph)


@settings(RELAXED, max_examples=40)
@given(st.data())
def test_searches_are_answered_alike(data):
    agree(data)


@pytest.mark.slow
@settings(RELAXED, max_examples=1500)
@given(st.data())
def test_many_more_searches_are_answered_alike(data):
    agree(data)
