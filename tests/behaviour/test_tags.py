"""Tags: names for commits that stay readable whatever is cleaned up."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from omnigraph.api.graph import Graph, init
from omnigraph.api.graph import open as open_graph
from omnigraph.errors import (
    BranchExists,
    BranchInUse,
    CommitNotFound,
    HistoryRemoved,
    InvalidTagName,
    ManifestDamaged,
    ReadOnlyHandle,
    StorageError,
    TagExists,
    TagNotFound,
)
from omnigraph.versioning.branch_names import branch_name
from omnigraph.versioning.tags import TAGS_DIR
from tests.behaviour.graphs import SCHEMA, Backstage
from tests.support.faults import Call, FailStorage, armed, recording

NOW = timedelta()


@pytest.fixture
def graph(local_uri: str) -> Graph:
    graph = init(local_uri, SCHEMA)
    for number in range(4):
        put(graph, number)
    return graph


def put(graph: Graph, age: int, branch: str | None = None) -> None:
    row = json.dumps({"type": "Person", "data": {"name": "ada", "age": age}})
    graph.load(row.encode(), "merge", branch=branch)


def ages(graph: Graph, at: str) -> list[object]:
    query = "query q() { match { $p: Person } return { $p.age } }"
    return [row["p.age"] for row in open_graph(graph.uri).query(query, at=at).to_dicts()]


def clean(graph: Graph) -> dict[str, int]:
    """Remove all that may go; the reasons why versions of people stay."""
    report = graph.maintenance.cleanup(older_than=NOW, min_age=NOW)
    return dict(next(t for t in report.tables if t.table_key == "node:Person").kept)


# -- making, listing, removing ---------------------------------------------------------------


def test_a_tag_says_what_it_names(graph):
    second = graph.log(reverse=True)[2].id
    tag = graph.as_actor("ada").tags.create("release-1", second)
    assert (tag.name, tag.commit_id, tag.branch, tag.number, tag.actor) == (
        "release-1",
        second,
        "main",
        3,
        "ada",
    )
    assert datetime.now(UTC) - tag.created_at < timedelta(minutes=1)
    newest = graph.tags.create("a")
    assert newest.commit_id == graph.head().id
    assert open_graph(graph.uri, read_only=True).tags.all() == [newest, tag]
    graph.tags.delete("a")
    assert graph.tags.all() == [tag]


def test_a_tag_of_main_is_stored_as_a_pin(graph):
    """Graphs of earlier releases have pins, and those releases read the tags of main."""
    tag = graph.as_actor("ada").tags.create("keep", "main~1")
    stored = json.loads(Path(graph.uri, TAGS_DIR, "keep.json").read_text())
    assert stored == {
        "pin_version": 1,
        "name": "keep",
        "graph_commit_id": tag.commit_id,
        "version": 4,
        "created_at": tag.to_json()["created_at"],
        "actor_id": "ada",
    }


def test_what_cannot_be_tagged_is_refused(graph):
    first = graph.log(reverse=True)[1].id
    graph.tags.create("a")
    with pytest.raises(TagExists, match="tag 'a' already exists"):
        graph.tags.create("a")
    with pytest.raises(CommitNotFound):
        graph.tags.create("b", "01KV8Z6M3Q9V2X4T7B5N0C1D2E")
    for name in ("", "a/b", ".a", "x" * 65, "a~1", "a@{now}", "a b", first, first.lower()):
        with pytest.raises(InvalidTagName):
            graph.tags.create(name)
    graph.maintenance.cleanup(older_than=NOW, min_age=NOW)
    with pytest.raises(HistoryRemoved):
        graph.tags.create("late", first)
    graph.tags.create("later")
    with pytest.raises(TagNotFound, match="did you mean `later`"):
        graph.tags.delete("late")
    for name in ("none", "", "../a", "a/b"):
        with pytest.raises(TagNotFound):
            graph.tags.delete(name)
    reader = open_graph(graph.uri, read_only=True)
    for refused in (lambda: reader.tags.create("c"), lambda: reader.tags.delete("a")):
        with pytest.raises(ReadOnlyHandle):
            refused()


def test_tags_and_branches_share_their_names(graph):
    graph.branches.create("draft")
    for name in ("draft", "main"):
        with pytest.raises(BranchExists):
            graph.tags.create(name)
    graph.tags.create("v1")
    with pytest.raises(TagExists, match="tag 'v1' already exists"):
        graph.branches.create("v1")
    assert list(graph.branches) == ["main", "draft"]
    graph.tags.delete("v1")
    graph.branches.create("v1")


def test_a_name_that_is_taken_while_its_tag_waits_for_the_lock_is_refused(graph):
    branches, name = Backstage(graph.uri).branches, branch_name("v1")

    def take(_hit: object) -> None:
        branches.create(name, branches.free_name(name), branches.find("main"), lambda: None)

    with armed("lock.after_acquire", Call(take), times=1), pytest.raises(BranchExists):
        graph.tags.create("v1")


# -- keeping commits -------------------------------------------------------------------------


def test_a_tagged_commit_outlives_a_cleanup_until_the_tag_goes(graph):
    graph.tags.create("release-1", graph.log(reverse=True)[2])
    assert clean(graph) == {"current on main": 1, "tagged as release-1": 1}
    assert ages(graph, "release-1") == [1]
    with pytest.raises(HistoryRemoved):
        ages(graph, "release-1~1")
    second = graph.tags.all()[0].commit_id
    graph.tags.delete("release-1")
    clean(graph)
    with pytest.raises(HistoryRemoved):
        ages(graph, second)


def test_a_tag_protects_from_hard_drops_and_dropped_types(graph):
    graph.tags.create("before")
    text = SCHEMA.replace("  age: I32?", "").replace("edge WorksAt: Person -> Company\n", "")
    graph.schema.apply(text, allow_data_loss=True)
    clean(graph)
    assert ages(graph, "before") == [3]
    fresh = open_graph(graph.uri)
    assert fresh.at("before")._snapshot.open(fresh._core.tables, "edge:WorksAt").row_count() == 0


def test_a_tag_of_a_branch_keeps_what_the_branch_had_from_main(graph):
    """The branch has moved on to tables of its own, so that only the tag needs those of main."""
    graph.branches.create("feature")
    graph.mutate('query q() { insert Company { name: "acme" } }', branch="feature")
    tag = graph.tags.create("v1", "feature")
    assert (tag.branch, tag.number) == ("feature", 6)
    put(graph, 8, "feature")
    for number in range(10, 13):
        put(graph, number)
    graph.merge("main", "feature", strategy="ours")
    assert clean(graph)["tagged as v1"] == 1
    assert (ages(graph, "v1"), ages(graph, "feature")) == ([3], [8])
    graph.tags.delete("v1")
    assert "tagged as v1" not in clean(graph)


def test_a_branch_with_a_tagged_commit_is_not_deleted(graph):
    graph.branches.create("feature")
    graph.tags.create("inherited", "feature")
    put(graph, 8, "feature")
    graph.tags.create("v2", "feature")
    graph.tags.create("v1", "feature")
    with pytest.raises(BranchInUse, match="named by tags 'v1', 'v2'"):
        graph.branches.delete("feature")
    graph.tags.delete("v1")
    with pytest.raises(BranchInUse, match="named by tag 'v2'"):
        graph.branches.delete("feature")
    assert ages(graph, "v2") == [8]
    graph.tags.delete("v2")
    graph.branches.delete("feature")
    assert ages(graph, "inherited") == [3]


def test_a_tag_that_cannot_be_read_stops_every_cleanup(graph):
    graph.tags.create("a")
    Path(graph.uri, TAGS_DIR, "a.json").write_text("{")
    with pytest.raises(ManifestDamaged, match="tag 'a'"):
        graph.maintenance.cleanup(keep_versions=1, min_age=NOW)
    assert ages(graph, graph.log(reverse=True)[1].id) == [0]


def test_a_tag_whose_write_fails_is_there_or_can_be_made_again(graph):
    with recording() as record:
        graph.tags.create("probe")
    steps = [hit.name for hit in record.hits]
    for number in range(len(steps)):
        name = f"t{number}"
        hit = steps[: number + 1].count(steps[number])
        with armed(steps[number], FailStorage(), first=hit, times=1), suppress(StorageError):
            graph.tags.create(name)
        if name not in [tag.name for tag in graph.tags.all()]:
            graph.tags.create(name)
        assert ages(graph, name) == [3]
