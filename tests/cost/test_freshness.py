"""Few requests, and still never an old answer: what other handles do is seen by the next read.

Each handle here was opened on its own and shares nothing with the others, like those of processes.
"""

from __future__ import annotations

import json
import time

import pytest

from omnigraph.api.graph import Graph, init
from omnigraph.api.graph import open as open_graph
from omnigraph.errors import BranchNotFound
from omnigraph.storage.durability import Durability
from omnigraph.storage.objects import ObjectStore, open_store
from omnigraph.storage.uris import normalise_root
from tests.cost.operations import INSERT, SCHEMA, MeasuredGraph

NOTES = "query notes() { match { $n: Note } return { $n.slug } order { $n.slug } }"
LEASE = "__leases/main.json"


def notes(graph: Graph) -> list[str]:
    return [row["n.slug"] for row in graph.query(NOTES).to_dicts()]


def add(graph: Graph, slug: str) -> None:
    graph.mutate(INSERT, {"slug": slug})


def add_and_wait(graph: Graph, slug: str) -> None:
    """The same until the lease is given back."""
    add(graph, slug)
    graph.maintenance.wait()


def objects_of(measured: MeasuredGraph) -> ObjectStore:
    return open_store(normalise_root(measured.uri), Durability.NONE)


def test_commits_of_others_are_seen_at_once(measured: MeasuredGraph) -> None:
    readers = [open_graph(measured.uri), open_graph(measured.uri, read_only=True)]
    written: list[str] = []
    for number in range(3):
        assert all(notes(reader) == written for reader in readers)
        add(measured.graph, f"n{number}")
        written.append(f"n{number}")
    other = open_graph(measured.uri)
    add(other, "other")
    add(readers[0], "third")
    assert notes(measured.graph) == [*written, "other", "third"]
    assert notes(other) == notes(readers[1]) == notes(measured.graph)


def test_a_branch_that_was_deleted_and_created_again_is_another_one(
    measured: MeasuredGraph,
) -> None:
    bound = measured.graph.branches.create("review")
    reader = open_graph(measured.uri, branch="review", read_only=True)
    add(bound, "old")
    assert notes(reader) == ["old"]
    other = open_graph(measured.uri)
    other.branches.delete("review")
    for handle in (reader, bound):
        with pytest.raises(BranchNotFound):
            notes(handle)
    again = other.branches.create("review")
    assert notes(reader) == notes(bound) == []
    add(again, "new")
    assert notes(reader) == notes(bound) == ["new"]


def test_branches_of_one_name_have_different_storage_names(measured: MeasuredGraph) -> None:
    names = set()
    for _ in range(3):
        names.add(measured.graph.branches.create("review")._bound.physical)
        measured.graph.branches.delete("review")
    assert len(names) == 3


def test_a_change_of_the_schema_is_seen_at_once(measured: MeasuredGraph) -> None:
    reader, writer = open_graph(measured.uri, read_only=True), open_graph(measured.uri)
    assert notes(reader) == notes(writer) == []
    changed = SCHEMA.replace("slug: String @key", "slug: String @key  text: String?")
    measured.graph.schema.apply(changed)
    text = 'query add() { insert Note { slug: "a", text: "b" } }'
    writer.mutate(text)
    read = "query texts() { match { $n: Note } return { $n.text } }"
    assert reader.query(read).to_dicts() == [{"n.text": "b"}]
    assert "text" in reader.schema.source


def test_a_graph_that_was_replaced_is_noticed(measured: MeasuredGraph) -> None:
    add(measured.graph, "old")
    reader = open_graph(measured.uri, read_only=True)
    assert notes(reader) == notes(measured.graph) == ["old"]
    for folder in ("__manifest", "nodes", "__leases", "__schema_history"):
        objects_of(measured).delete_prefix(folder)
    for file in ("_schema.pg", "_schema.ir.json", "__schema_state.json"):
        objects_of(measured).delete(file)
    replaced = init(measured.uri, SCHEMA)
    replaced.upsert("Person", [{"email": "p", "name": "P"}])
    add(replaced, "new")
    assert notes(reader) == notes(measured.graph) == ["new"]


def test_compaction_by_another_handle_changes_nothing(measured: MeasuredGraph) -> None:
    reader = open_graph(measured.uri, read_only=True)
    for number in range(20):
        add(measured.graph, f"n{number:02}")
        if number % 7 == 0:
            assert len(notes(reader)) == number + 1
    measured.graph.maintenance.wait()
    open_graph(measured.uri).maintenance.optimize()
    assert len(notes(reader)) == 20
    assert len(notes(open_graph(measured.uri, read_only=True))) == 20


def test_a_state_is_used_for_as_long_as_the_caller_allows(measured: MeasuredGraph) -> None:
    reader = open_graph(measured.uri, read_only=True, max_staleness=60)
    assert notes(reader) == []
    add(measured.graph, "n")
    assert notes(reader) == []
    assert reader.query(NOTES, max_staleness=0).to_dicts() == [{"n.slug": "n"}]
    assert notes(reader) == ["n"]
    add(measured.graph, "o")
    time.sleep(0.2)
    assert len(reader.query(NOTES, max_staleness=0.1)) == 2
    writer = open_graph(measured.uri, max_staleness=60)
    add(measured.graph, "p")
    add(writer, "q")
    assert notes(writer) == ["n", "o", "p", "q"]


@pytest.mark.parametrize("head", ["", "{", "[]", '{"version": 1}', "7"])
def test_a_note_of_the_head_that_cannot_be_read_is_ignored(
    measured: MeasuredGraph, head: str
) -> None:
    add_and_wait(measured.graph, "n")
    lease = json.loads(objects_of(measured).read_text(LEASE))
    objects_of(measured).write_text(LEASE, json.dumps({**lease, "head": head}))
    assert notes(open_graph(measured.uri)) == ["n"]


def test_a_note_of_the_head_counts_for_its_version_only(measured: MeasuredGraph) -> None:
    add_and_wait(measured.graph, "a")
    old = json.loads(objects_of(measured).read_text(LEASE))
    add_and_wait(measured.graph, "b")
    add_and_wait(measured.graph, "c")
    new = json.loads(objects_of(measured).read_text(LEASE))
    # A note that is behind is continued; one of another graph at the same version is not used.
    objects_of(measured).write_text(LEASE, json.dumps({**new, "head": old["head"]}))
    assert notes(open_graph(measured.uri)) == ["a", "b", "c"]
    foreign = {**json.loads(new["head"]), "token": "another", "written_at": 1}
    foreign["state"] = {**foreign["state"], "head": "01M7PC0B82665TZJAAGF3XMD41", "tables": []}
    objects_of(measured).write_text(LEASE, json.dumps({**new, "head": json.dumps(foreign)}))
    assert notes(open_graph(measured.uri)) == ["a", "b", "c"]


@pytest.mark.parametrize("branch", ["main", "review"])
def test_a_slow_reader_does_not_make_later_writes_stale(
    measured: MeasuredGraph, branch: str
) -> None:
    graph = measured.graph
    if branch != "main":
        graph = graph.branches.create(branch)
    add_and_wait(graph, "first")
    manifest = graph._core.parts.manifest
    physical = graph._ref(None).physical
    slow = manifest.open(physical)
    add_and_wait(graph, "second")
    manifest.read(slow)
    add_and_wait(graph, "third")
    assert {"first", "second", "third"} <= set(notes(graph))
    assert graph.maintenance.recoveries() == []
