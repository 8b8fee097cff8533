"""Prepared mutations and the reference graph agree: same rows, counts, warnings and words."""

from __future__ import annotations

import io
import os
import uuid
from itertools import count
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from omnigraph.api.graph import init
from omnigraph.catalog.compile import compile_schema
from omnigraph.errors import ExternalBlobRefused, OmnigraphError
from omnigraph.language.query.ast import QueryFile
from omnigraph.language.query.print_file import print_queries
from omnigraph.language.syntax import Source
from omnigraph.mutation import MutationIds, prepare_mutation
from omnigraph.plan.compile import compile_query
from omnigraph.plan.ir import NOW_PARAMETER
from omnigraph.plan.params import bind_parameters
from omnigraph.providers.documents import DocumentVectors
from omnigraph.rows.columns import row_schema
from tests.behaviour.random_mutations import dense_mutations, dense_parameters, parameter_values
from tests.support.generate import mutation_queries
from tests.support.model.export import export
from tests.support.model.graph import numbered_ids
from tests.support.model.history import net_counts
from tests.support.model.image import Image
from tests.support.model.load import load as reference_load
from tests.support.model.mutate import mutate
from tests.support.outcome import Counts, Refusal
from tests.unit.load.inputs import DENSE, dense_inputs, inputs, schema_sources
from tests.unit.load.loading import catalog_of, stored_rows

RELAXED = settings(
    deadline=None,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.filter_too_much,
    ],
)
DENSE_CATALOG = catalog_of(DENSE)
NOW = 1_600_000_000_000


# -- the two sides ------------------------------------------------------------------------------


def committed_image(catalog, text):
    """The good records of a load."""
    try:
        empty = Image.empty(catalog)
        return reference_load(empty, text, "merge", numbered_ids(), 10**9, quarantine=True).image
    except Refusal:
        return Image.empty(catalog)


def committed_graph(schema, image):
    """The same content in an engine."""
    graph = init(f"memory://{uuid.uuid4().hex}", schema)
    lines = export(image, ())
    # Two loads, so that rows of a type lie in several fragments; the endpoints of edges come first.
    nodes = [line for line in lines if line.startswith('{"type"')]
    # Blobs kept elsewhere were allowed when the image was made.
    with patch.dict(os.environ, {"OMNIGRAPH_EXTERNAL_BLOBS": "s3://bucket"}):
        for part in (nodes, [line for line in lines if line not in nodes]):
            if part:
                graph.load("\n".join(part).encode(), "merge")
    return graph


def made_ids():
    numbers = count(1)
    return lambda: f"new{next(numbers)}"


def outcome(call):
    try:
        return call()
    except (OmnigraphError, Refusal) as refused:
        return refused


def assert_alike(schema, image, query, params):
    graph = committed_graph(schema, image)
    snapshot = graph._snapshot()
    plan = compile_query(Source("<query>", query), snapshot.catalog).mutation_plan()
    bound = bind_parameters(plan.parameters, params)
    make = made_ids()
    expected = outcome(lambda: mutate(image, plan, {NOW_PARAMETER: NOW, **bound}, iter(make, None)))
    prepared, vectors = MutationIds(made_ids(), NOW), DocumentVectors()
    for _ in range(2):
        found = outcome(
            lambda: prepare_mutation(plan, bound, snapshot, graph._core.tables, prepared, vectors)
        )
        if isinstance(found, ExternalBlobRefused):
            return
        if isinstance(expected, Refusal) or isinstance(found, OmnigraphError):
            assert_same_refusal(found, expected)
        else:
            assert_same_change(found, expected, image)


def assert_same_refusal(found, expected):
    assert isinstance(found, OmnigraphError), str(expected)
    assert isinstance(expected, Refusal), str(found)
    assert found.kind == expected.kind
    assert sorted(str(found).split("; ")) == sorted(str(expected).split("; "))


def assert_same_change(found, expected, before):
    assert (found.affected_nodes, found.affected_edges) == (
        expected.affected_nodes,
        expected.affected_edges,
    )
    assert [(w.code, w.message, w.count) for w in found.warnings] == [
        (w.code, w.message, w.count) for w in expected.warnings
    ]
    tables = {key: dict(rows) for key, rows in before.tables.items()}
    counts = {}
    for write in found.change.writes:
        old = before.tables[write.table_key]
        declared = before.catalog.entity(write.table_key)
        # What binds vectors to texts is nothing that a user sees.
        visible = write.rows.select(row_schema(declared).names)
        rows = {row["id"]: row for row in stored_rows(declared, visible)}
        deleted = set(write.deletes.to_pylist())
        assert len(rows) == write.rows.num_rows
        assert deleted <= old.keys() - rows.keys()
        if write.mode == "append":
            assert not deleted
            assert not rows.keys() & old.keys()
        updated = len(rows.keys() & old.keys())
        counts[write.table_key] = Counts(len(rows) - updated, updated, len(deleted))
        tables[write.table_key].update(rows)
        for id in deleted:
            del tables[write.table_key][id]
    assert tables == expected.image.tables
    assert counts == net_counts(before, expected.image, expected.touched)
    assert not found.change.reads & counts.keys()


# -- random input --------------------------------------------------------------------------------


def dense(data):
    image = committed_image(DENSE_CATALOG, data.draw(dense_inputs()))
    assert_alike(DENSE, image, data.draw(dense_mutations()), data.draw(dense_parameters))


def dense_history(data):
    """Several queries one after the other, each on what those before it have committed."""
    image = committed_image(DENSE_CATALOG, data.draw(dense_inputs()))
    graph, make, ids = committed_graph(DENSE, image), made_ids(), iter(made_ids(), None)
    with patch("omnigraph.mutation.run.MutationIds", lambda: MutationIds(make, NOW)):
        for _ in range(data.draw(st.integers(2, 4))):
            query, params = data.draw(dense_mutations()), data.draw(dense_parameters)
            image = assert_same_commit(graph, image, ids, query, params)


def assert_same_commit(graph, image, ids, query, params):
    """Both hold the same afterwards, which is returned."""
    plan = compile_query(Source("<query>", query), image.catalog).mutation_plan()
    bound = {NOW_PARAMETER: NOW, **bind_parameters(plan.parameters, params)}
    found = outcome(lambda: graph.mutate(query, params))
    expected = outcome(lambda: mutate(image, plan, bound, ids))
    if isinstance(expected, Refusal) or isinstance(found, OmnigraphError):
        assert_same_refusal(found, expected)
        after = image
    else:
        after = expected.image
        counts = {
            key: Counts(c.inserted, c.updated, c.deleted) for key, c in found.receipt.counts.items()
        }
        assert counts == net_counts(image, after, expected.touched)
        assert (found.receipt.graph_commit_id is None) == (not counts)
    out = io.BytesIO()
    graph.export(out)
    assert [line.decode() for line in out.getvalue().splitlines()] == export(after)
    return after


def anything(data):
    source = data.draw(schema_sources())
    catalog = compile_schema(source)
    image = committed_image(catalog, data.draw(inputs(catalog, damaged=False)))
    query = data.draw(mutation_queries(catalog))
    text = print_queries(QueryFile((query,)))
    assert_alike(source.text, image, text, data.draw(parameter_values(query)))


@settings(RELAXED, max_examples=15)
@given(st.data())
def test_statements_on_a_crowded_graph_end_alike(data):
    dense(data)


@settings(RELAXED, max_examples=15)
@given(st.data())
def test_mutations_of_any_schema_end_alike(data):
    anything(data)


@settings(RELAXED, max_examples=15)
@given(st.data())
def test_one_mutation_after_the_other_leaves_the_same_graph(data):
    dense_history(data)


@pytest.mark.slow
@settings(RELAXED, max_examples=1000)
@given(st.data())
def test_many_more_statements_end_alike(data):
    dense(data)


@pytest.mark.slow
@settings(RELAXED, max_examples=500)
@given(st.data())
def test_many_more_schemas_end_alike(data):
    anything(data)


@pytest.mark.slow
@settings(RELAXED, max_examples=400)
@given(st.data())
def test_many_more_mutations_leave_the_same_graph(data):
    dense_history(data)
