"""Reads and the reference graph agree, on random graphs, for random queries, under random views."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from omnigraph.catalog.compile import compile_schema
from omnigraph.language.query.ast import QueryFile
from omnigraph.language.query.print import print_queries
from omnigraph.language.span import Source
from omnigraph.plan.params import JsonParameters
from omnigraph.testing.generate import read_queries
from omnigraph.testing.model.image import Image
from tests.behaviour.random_reads import CROWDED, READS, images, loaded, parameter_values, views
from tests.behaviour.read_answers import asked, assert_right, graph_of
from tests.unit.load.inputs import schema_sources

RELAXED = settings(
    deadline=None,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.filter_too_much,
    ],
)
CATALOG = compile_schema(Source("<schema>", CROWDED))


def engine_of(schema, image):
    graph = graph_of(schema, image)

    def engine(question):
        given = JsonParameters(question.params)
        return graph.query(question.text, None, given, view=question.view).to_arrow()

    return engine


# -- questions that are easy to get wrong --------------------------------------------------------

BIG = 2**53 + 1
"""An integer between two doubles."""
NODES = [
    {"type": "A", "data": data}
    for data in (
        {"k": "a", "i": 1, "l": BIG, "n": BIG, "f": 0.1, "d": 2.0**53, "tags": ["y"], "nums": [1]},
        {"k": "b", "i": 2, "l": 1, "n": 1, "f": 0.5, "d": 1.5, "tags": ["x", "y"], "nums": [1]},
        {"k": "c", "i": 1, "l": -1, "n": 2**64 - 1, "d": -0.0, "tags": ["x"]},
        {"k": "d", "i": 0, "d": 0.0},
    )
]
NODES += [
    {"type": "B", "data": {"x": 1, "y": "p", "d": 0.1, "reals": [0.1], "vec": [0.1, 1]}},
    {"type": "B", "data": {"x": 2, "y": "p", "vec": [0.1, 0]}},
    {"type": "B", "data": {"x": 3, "y": "p"}},
    {"type": "C", "data": {"id": "c0", "u": 0, "pic": "base64:SGk="}},
    {"type": "C", "data": {"id": "c1", "u": 1}},
    {"type": "C", "data": {"id": "c2", "u": 0}},
]
EDGES = [
    {"edge": "Of", "from": a, "to": b}
    for a, b in (("c0", "a"), ("c0", "b"), ("c1", "b"), ("c1", "b"))
]
SMALL = loaded(loaded(Image.empty(CATALOG), NODES), EDGES)


@pytest.mark.parametrize(
    ("match", "returned", "tail"),
    [
        pytest.param("$m: A  $m.l > $m.d", "$m", "", id="integers and floats by value"),
        pytest.param("$m: A  $m.n = $m.d", "$m", "", id="unsigned integers and floats by value"),
        pytest.param("$m: A  $m.n = $m.l", "$m", "", id="signed and unsigned by value"),
        pytest.param("$m: A  $m.nums contains $m.d", "$m", "", id="no fraction in an integer list"),
        pytest.param("$m: B  $m.reals contains $m.d", "$m", "", id="a needle at list precision"),
        pytest.param("$m: A  [0.1] contains $m.f", "$m", "", id="a list at column precision"),
        pytest.param(f"$m: A  [0.5, {BIG}] contains $m.d", "$m", "", id="a list of mixed numbers"),
        pytest.param("$m: B { vec: [0.1, 1] }", "$m", "", id="a vector match"),
        pytest.param("$m: A", "$m.d, count($m)", "", id="both zeros in one group"),
        pytest.param("$m: A", "$m.tags, count($m) as n", "order { n }", id="tied lists"),
        pytest.param("$m: B", "$m.vec, count($m) as n", "order { n }", id="tied vectors"),
        pytest.param("$m: C", "count($m.pic)", "", id="blobs are counted"),
        pytest.param("$m: C", "$m.pic, count($m)", "", id="blobs are one group"),
        pytest.param("$m: A", "count($m)", f"limit {2**64 - 1}", id="the largest limit, grouped"),
        pytest.param("$m: A", "$m", f"order {{ $m.i }} limit {2**64 - 1}", id="the largest limit"),
        pytest.param("$_ of $_  $m: C", "$m", "order { $m.u }", id="an order of repeated rows"),
        pytest.param("$_ of $_  $m: C", "$m", "order { $m.u } limit 4", id="the first of them"),
    ],
)
def test_a_hard_question_is_answered_alike(match, returned, tail):
    text = f"query q() {{ match {{ {match} }} return {{ {returned} }} {tail} }}"
    assert_right(SMALL, asked(text, {}), engine_of(CROWDED, SMALL))


# -- random questions ----------------------------------------------------------------------------


def agree(data, schema, catalog):
    """Several questions to one graph, so that later ones find what earlier ones have cached."""
    image = data.draw(images(catalog))
    engine = engine_of(schema, image)
    for _ in range(4):
        view = data.draw(views(catalog))
        query = data.draw(read_queries(view.restrict(catalog), READS))
        text = print_queries(QueryFile((query,)))
        assert_right(image, asked(text, data.draw(parameter_values(query)), view), engine)


def crowded(data):
    agree(data, CROWDED, CATALOG)


def anything(data):
    source = data.draw(schema_sources(plain=True))
    agree(data, source.text, compile_schema(source))


@settings(RELAXED, max_examples=40)
@given(st.data())
def test_questions_to_a_crowded_graph_are_answered_alike(data):
    crowded(data)


@settings(RELAXED, max_examples=15)
@given(st.data())
def test_questions_to_any_schema_are_answered_alike(data):
    anything(data)


@pytest.mark.slow
@settings(RELAXED, max_examples=1500)
@given(st.data())
def test_many_more_questions_are_answered_alike(data):
    crowded(data)


@pytest.mark.slow
@settings(RELAXED, max_examples=500)
@given(st.data())
def test_many_more_schemas_are_answered_alike(data):
    anything(data)
