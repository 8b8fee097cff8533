"""The setting for durability: what it leaves out, and that nothing else depends on it."""

from __future__ import annotations

import io
import uuid

import pytest

from omnigraph.api.graph import Graph, init
from tests.behaviour.graphs import SCHEMA
from tests.support.faults import recording

ADD = "query add($name: String) { insert Person { name: $name, age: 7 } }"


def written(uri: str) -> tuple[str, int]:
    """What a graph holds after writes of every kind, and how often the disk was asked to confirm."""
    with recording() as record:
        graph = init(uri, SCHEMA)
        graph.load(b'{"type": "Person", "data": {"name": "ada"}}', "append")
        graph.mutate(ADD, {"name": "bo"}, name="add")
        graph.branches.create("feature").mutate(ADD, {"name": "cy"}, name="add")
        graph.branches.delete("feature")
    synced = [hit for hit in record.hits if hit.name == "durability.before_fsync"]
    return exported(graph), len(synced)


def exported(graph: Graph) -> str:
    out = io.BytesIO()
    graph.export(out)
    return out.getvalue().decode()


@pytest.mark.acceptance("S-160")
def test_without_durability_nothing_is_synced_and_everything_else_is_the_same(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("OMNIGRAPH_DURABILITY", "fsync")
    durable, synced = written(str(tmp_path / "durable"))
    assert synced > 0
    assert written(f"memory://{uuid.uuid4().hex}") == (durable, 0)
    monkeypatch.setenv("OMNIGRAPH_DURABILITY", "none")
    assert written(str(tmp_path / "quick")) == (durable, 0)
