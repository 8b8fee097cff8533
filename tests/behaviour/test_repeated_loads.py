"""A load that somebody else makes under the same id at the same time."""

from __future__ import annotations

import pytest

from omnigraph.api.graph import Graph, init
from omnigraph.api.graph import open as open_graph
from omnigraph.errors import LoadError
from omnigraph.load.run import Loader

SCHEMA = "node Person { name: String @key }"
ADA = b'{"type": "Person", "data": {"name": "ada"}}'


@pytest.fixture
def graph(tmp_path) -> Graph:
    return init(tmp_path / "graph", SCHEMA)


def _meanwhile(monkeypatch, load_id: str, graph: Graph) -> None:
    """Make the load once more right after the next look whether it has been made."""
    other, look = open_graph(graph.uri), Loader.replay

    def look_and_load(self, branch, options):
        found = look(self, branch, options)
        monkeypatch.setattr(Loader, "replay", look)
        other.load(ADA, "append", load_id=load_id)
        return found

    monkeypatch.setattr(Loader, "replay", look_and_load)


def test_it_is_one_load_even_between_the_look_and_the_check(graph, monkeypatch):
    _meanwhile(monkeypatch, "nightly", graph)
    loaded = graph.load(ADA, "append", load_id="nightly")
    assert loaded.replayed
    assert loaded.receipt.graph_commit_id == graph.head().id
    assert len(graph.log(reverse=True)) == 2


def test_another_load_of_the_same_records_is_still_refused(graph, monkeypatch):
    _meanwhile(monkeypatch, "weekly", graph)
    with pytest.raises(LoadError, match="already exists"):
        graph.load(ADA, "append", load_id="nightly")
