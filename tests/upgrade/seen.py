"""What a reader of the converted graph sees, in the terms of the builder's record."""

from __future__ import annotations

from omnigraph.api.graph import Graph
from omnigraph.versioning.snapshot import Snapshot
from tests.upgrade.old_graphs import Entry, OldGraph, Past


def tables(graph: Graph, snapshot: Snapshot) -> dict[str, Entry]:
    found = {}
    for key, entry in snapshot.entries.items():
        table = snapshot.open(graph._core.tables, key)
        ids = tuple(table.read(["id"]).column("id").to_pylist())
        assert entry.row_count == len(ids)
        found[key] = Entry(entry.version, entry.branch, ids)
    return found


def history(graph: Graph, branch: str = "main") -> list[Past]:
    return [
        Past(
            id=commit.id,
            branch=commit.to_json()["manifest_branch"],
            parent=commit.to_json()["parent_commit_id"],
            actor=commit.actor,
            created_at=commit.to_json()["created_at"],
            tables=tables(graph, graph.checkout(branch).at(commit.number)._snapshot),
        )
        for commit in graph.log(branch, reverse=True)
    ]


def check_everything(graph: Graph, old: OldGraph) -> None:
    """Every branch, commit, snapshot and row is as it was when it was written."""
    kept = {name: past for name, past in old.history.items() if not (name or "").startswith("__")}
    assert list(graph.branches) == ["main", *sorted(name for name in kept if name is not None)]
    for name, past in kept.items():
        public = name or "main"
        assert history(graph, public) == past
        assert tables(graph, graph._snapshot(public)) == past[-1].tables
        assert graph._snapshot(public).branch == public
        assert graph.head(public).id == past[-1].id
