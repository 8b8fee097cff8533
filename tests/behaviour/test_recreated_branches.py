"""A branch that another handle deletes and creates again under an open handle is another branch."""

from __future__ import annotations

from omnigraph.api.graph import Graph, init
from omnigraph.api.graph import open as open_graph

SCHEMA = "node Note { slug: String @key }"
NOTES = "query notes() { match { $n: Note } return { $n.slug } }"
ADD = "query add($slug: String) { insert Note { slug: $slug } }"


def notes(graph: Graph) -> list[str]:
    return [row["n.slug"] for row in graph.query(NOTES).to_dicts()]


def test_rows_of_the_old_branch_are_not_needed_any_more(uri: str) -> None:
    graph = init(uri, SCHEMA)
    graph.branches.create("review").mutate(ADD, {"slug": "old"})
    reader = open_graph(uri, branch="review")
    assert notes(reader) == ["old"]
    graph.branches.delete("review")
    graph.branches.create("review")
    assert notes(reader) == []


def test_rows_of_the_old_branch_are_not_taken_for_those_of_the_new_one(uri: str) -> None:
    graph = init(uri, SCHEMA)
    graph.branches.create("review").mutate(ADD, {"slug": "old"})
    reader = open_graph(uri, branch="review")
    assert notes(reader) == ["old"]
    graph.branches.delete("review")
    graph.branches.create("review").mutate(ADD, {"slug": "new"})
    assert notes(reader) == ["new"]
