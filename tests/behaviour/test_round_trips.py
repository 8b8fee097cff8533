"""Whatever a graph holds, its export loads into a graph that exports the same text."""

from __future__ import annotations

import io
import json
import tempfile
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from omnigraph.api.graph import Graph, init
from omnigraph.catalog.model import EntityType
from omnigraph.errors import LoadError
from omnigraph.read.entities import read_entity
from tests.unit.load.inputs import DENSE, dense_inputs, json_values, schema_sources

RELAXED = settings(
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.filter_too_much,
    ],
)


def new_graph(schema: str) -> Graph:
    return init(f"memory://{uuid.uuid4().hex}", schema)


def load_what_fits(graph: Graph, text: str) -> None:
    # Where not one record fits, the load fails and the graph stays as it was.
    with tempfile.TemporaryDirectory() as folder, suppress(LoadError):
        graph.load(text.encode(), "merge", quarantine=folder)


def properties(declared: EntityType) -> st.SearchStrategy[dict[str, Any]]:
    """Values for all properties of an entity."""
    return st.fixed_dictionaries(
        {
            name: st.none() | json_values(prop.type)
            if prop.type.nullable
            else json_values(prop.type)
            for name, prop in declared.properties.items()
        }
    )


def random_entities(data: st.DataObject, graph: Graph) -> None:
    """Fill a graph: nodes first, then edges between those that the graph took."""
    nodes, edges = graph.schema.catalog.nodes.values(), graph.schema.catalog.edges.values()
    lines = [
        json.dumps({"type": declared.name, "data": found})
        for declared in nodes
        for found in data.draw(st.lists(properties(declared), min_size=2, max_size=5))
    ]
    load_what_fits(graph, "\n".join(lines))
    ids: dict[str, list[str]] = {}
    for line in exported(graph).splitlines():
        record = json.loads(line)
        ids.setdefault(record["type"], []).append(record["data"]["id"])
    lines = []
    for declared in edges:
        starts, ends = ids.get(declared.from_type), ids.get(declared.to_type)
        if starts and ends:
            endpoints_of = st.tuples(st.sampled_from(starts), st.sampled_from(ends))
            found = data.draw(
                st.lists(st.tuples(endpoints_of, properties(declared)), min_size=2, max_size=5)
            )
            lines += [
                json.dumps({"edge": declared.name, "from": start, "to": end, "data": values})
                for (start, end), values in found
            ]
    load_what_fits(graph, "\n".join(lines))


def exported(graph: Graph, branch: str | None = None) -> bytes:
    out = io.BytesIO()
    graph.export(out, branch=branch)
    return out.getvalue()


def contents(folder: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def check_round_trips(data: st.DataObject, graph: Graph) -> None:
    schema, lines = graph.schema.source, exported(graph)

    copy = new_graph(schema)
    copy.load(lines, "overwrite")
    assert exported(copy) == lines
    copy.load(lines, "overwrite")
    assert exported(copy) == lines

    with tempfile.TemporaryDirectory() as folder:
        assert graph.export(f"{folder}/out", format="parquet") == len(lines.splitlines())
        copy = new_graph(schema)
        copy.load(f"{folder}/out", "overwrite")
        assert exported(copy) == lines
        copy.export(f"{folder}/again", format="parquet")
        assert contents(f"{folder}/again") == contents(f"{folder}/out")

    feature = copy.branches.create("feature")
    feature.load(lines, "merge")
    assert exported(feature) == exported(copy) == lines
    emptied = new_graph(schema).branches.create("feature")
    emptied.load(lines, "overwrite")
    assert exported(emptied) == lines
    assert exported(emptied, "main") == b""

    nodes = [line for line in lines.splitlines() if line.startswith(b'{"type":')]
    first = data.draw(st.lists(st.sampled_from(nodes), unique=True)) if nodes else []
    stepwise = new_graph(schema)
    stepwise.load(b"\n".join(first), "append")
    stepwise.load(lines, "merge")
    assert exported(stepwise) == lines

    for line in lines.splitlines():
        record = json.loads(line)
        ends = {"src": record["from"], "dst": record["to"]} if "edge" in record else {}
        kind, name = next(iter(record.items()))
        key = f"edge:{name}" if kind == "edge" else f"node:{name}"
        id = record["data"]["id"]
        found = read_entity(graph._snapshot(), graph._core.tables, key, id)
        assert found == {**record["data"], **ends}


def random_graph(data: st.DataObject) -> None:
    graph = new_graph(data.draw(schema_sources(plain=True)).text)
    random_entities(data, graph)
    check_round_trips(data, graph)


def dense_graph(data: st.DataObject) -> None:
    graph = new_graph(DENSE)
    for text in data.draw(st.lists(dense_inputs(), min_size=3, max_size=4)):
        load_what_fits(graph, text)
    check_round_trips(data, graph)


@pytest.mark.acceptance("L-267")
@settings(RELAXED, max_examples=8)
@given(st.data())
def test_a_random_graph_survives_export_and_load(data):
    random_graph(data)


@pytest.mark.acceptance("L-267")
@settings(RELAXED, max_examples=5)
@given(st.data())
def test_a_graph_full_of_constraints_survives_export_and_load(data):
    dense_graph(data)


@pytest.mark.slow
@settings(RELAXED, max_examples=120)
@given(st.data())
def test_many_random_graphs_survive_export_and_load(data):
    random_graph(data)


@pytest.mark.slow
@settings(RELAXED, max_examples=120)
@given(st.data())
def test_many_graphs_full_of_constraints_survive_export_and_load(data):
    dense_graph(data)
