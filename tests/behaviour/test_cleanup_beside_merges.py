"""Cleanup during merges: versions that a merge refers to are kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from omnigraph.api.graph import Graph, init
from omnigraph.api.graph import open as open_graph
from omnigraph.errors import ConflictError, RecoveryPending
from omnigraph.merge.plan import MergePlanner
from tests.behaviour.graphs import SCHEMA
from tests.support.faults import Fail, InjectedFault, armed

NOW = timedelta()
MERGED = "branch_merge.post_phase_b_pre_manifest_commit"


@pytest.fixture
def graph(local_uri: str) -> Graph:
    """Main and a branch `feature` without rows of its own, each a commit away from the other."""
    graph = init(local_uri, SCHEMA)
    load(graph, "ada", 1)
    graph.branches.create("feature")
    load(graph, "ada", 2)
    return graph


def load(graph: Graph, name: str, age: int, branch: str | None = None) -> None:
    row = {"type": "Person", "data": {"name": name, "age": age}}
    graph.load(json.dumps(row).encode(), "merge", branch=branch)


def ages(graph: Graph, branch: str) -> dict[object, object]:
    query = "query q() { match { $p: Person } return { $p.name, $p.age } }"
    rows = graph.query(query, branch=branch).to_dicts()
    return {row["p.name"]: row["p.age"] for row in rows}


def clean_up(graph: Graph) -> None:
    open_graph(graph.uri).maintenance.cleanup(keep_versions=1, min_age=NOW)


def after_planning(monkeypatch: pytest.MonkeyPatch, does: Callable[[], None]) -> None:
    """Do something once, when a merge is planned and has nothing locked yet."""
    plan = MergePlanner.plan

    def planned(*arguments: object, **options: object) -> object:
        found = plan(*arguments, **options)  # type: ignore[arg-type]
        monkeypatch.undo()
        does()
        return found

    monkeypatch.setattr(MergePlanner, "plan", planned)


@pytest.mark.parametrize("owns", [False, True], ids=["points at main", "has rows of its own"])
def test_a_merge_of_what_was_cleaned_up_meanwhile_is_refused_and_can_be_repeated(
    graph, monkeypatch, owns
):
    if owns:
        load(graph, "bo", 5, "feature")

    def move_on() -> None:
        load(open_graph(graph.uri), "ada", 3)
        clean_up(graph)

    after_planning(monkeypatch, move_on)
    before = graph.head("feature").id
    with pytest.raises(ConflictError, match="merge again"):
        graph.merge("main", into="feature")
    assert graph.head("feature").id == before
    graph.merge("main", into="feature")
    assert ages(graph, "feature")["ada"] == 3
    load(graph, "cy", 6, "feature")
    clean_up(graph)
    graph.merge("feature")
    assert ages(graph, "main") == ages(graph, "feature")


def test_a_source_that_only_moved_on_is_merged_as_it_was(graph, monkeypatch):
    after_planning(monkeypatch, lambda: load(open_graph(graph.uri), "ada", 3))
    graph.merge("main", into="feature")
    assert ages(graph, "feature") == {"ada": 2}
    clean_up(graph)
    load(graph, "bo", 5, "feature")
    graph.merge("feature")
    assert ages(graph, "main") == {"ada": 3, "bo": 5}


def test_an_interrupted_merge_into_any_branch_is_recovered_before_a_cleanup(graph):
    load(graph, "bo", 5, "feature")
    with armed(MERGED, Fail()), pytest.raises(InjectedFault):
        graph.merge("main", into="feature")
    load(graph, "ada", 3)
    with pytest.raises(RecoveryPending, match="cleanup requires a clean recovery state"):
        graph.maintenance.cleanup(keep_versions=1, min_age=NOW)
    clean_up(graph)
    assert ages(graph, "feature") == {"ada": 2, "bo": 5}
    graph.merge("feature")
    assert ages(graph, "main") == {"ada": 3, "bo": 5}


def test_lock_files_of_deleted_branches_are_deleted_unless_they_are_held(graph):
    def locks() -> set[str]:
        return {path.name for path in Path(graph.uri, "__locks").iterdir()}

    for name in ("gone", "busy"):
        load(graph.branches.create(name), "bo", 1)
        graph.branches.delete(name)
    load(graph, "cy", 1, "feature")
    assert locks() == {"main.lock", "b-busy.lock", "b-feature.lock", "b-gone.lock"}
    with graph._core.locks.hold("busy", "a test"):
        graph.maintenance.cleanup(keep_versions=1, dry_run=True)
        assert "b-gone.lock" in locks()
        clean_up(graph)
    assert locks() == {"main.lock", "b-busy.lock", "b-feature.lock"}
    graph.branches.create("gone")
    clean_up(graph)
    assert locks() == {"main.lock", "b-feature.lock", "b-gone.lock"}
