"""Documents of contract 0.13 in the form of 0.7, for a command that speaks to a server which has only them.

What 0.13 does not say stays unsaid: counts and warnings of receipts, messages of commits, the zone of a
DateTime. Tests: tests/surfaces/remote.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Document = dict[str, Any]


def read(document: Document) -> Document:
    """A `ReadOutput`: null cells are back, and a node is its id."""
    columns = document.get("columns", [])
    rows = [{name: _cell(row.get(name)) for name in columns} for row in document["rows"]]
    return document | {"rows": rows}


def _cell(value: Any) -> Any:
    return value["@id"] if isinstance(value, dict) and "@id" in value else value


def change(document: Document) -> Document:
    """A `ChangeOutput` with the receipt fields that its commit has."""
    return document | _receipt(document["commit"], "mutate")


def ingest(document: Document) -> Document:
    """An `IngestOutput` with one list of tables."""
    tables = [*_tables("edge", document["edges"]), *_tables("node", document["nodes"])]
    kept = ("uri", "branch", "base_branch", "branch_created", "mode", "actor_id", "commit")
    found = {name: document[name] for name in kept if name in document}
    return found | {"tables": tables} | _receipt(document["commit"], "load")


def _tables(kind: str, loaded: Iterable[Document]) -> Iterable[Document]:
    for one in loaded:
        yield {"table_key": f"{kind}:{one['name']}", "rows_loaded": one["entities_loaded"]}


def merge(document: Document) -> Document:
    """A `BranchMergeOutput` with the receipt fields that its commit has."""
    return document | _receipt(document.get("commit"), "merge")


def _receipt(commit: Document | None, operation: str) -> Document:
    if commit is None:
        return {"graph_commit_id": None, "operation": operation}
    return {
        "graph_commit_id": commit["graph_commit_id"],
        "parent_commit_id": commit["parent_commit_id"],
        "manifest_version": commit["graph_manifest_version"],
        "operation": operation,
    }


def commit(document: Document) -> Document:
    return {
        "graph_commit_id": document["graph_commit_id"],
        "manifest_branch": document["graph_branch"],
        "manifest_version": document["graph_manifest_version"],
        "parent_commit_id": document["parent_commit_id"],
        "merged_parent_commit_id": document["merged_parent_commit_id"],
        "actor_id": document["actor_id"],
        "created_at": document["created_at"],
    }


def commits(document: Document) -> Document:
    """A `CommitListOutput`, oldest first."""
    return {"commits": [commit(one) for one in reversed(document["commits"])]}


def to_commit_13(document: Document) -> Document:
    """The other way: a commit of contract 0.7 as receipts show it."""
    return {
        "graph_commit_id": document["graph_commit_id"],
        "graph_branch": document["manifest_branch"],
        "graph_manifest_version": document["manifest_version"],
        "parent_commit_id": document["parent_commit_id"],
        "merged_parent_commit_id": document["merged_parent_commit_id"],
        "actor_id": document["actor_id"],
        "created_at": document["created_at"],
    }


def snapshot(document: Document) -> Document:
    tables = [
        {
            "table_key": f"{one['entity_kind']}:{one['type_name']}",
            "table_path": one["dataset_path"],
            "table_version": one["published_dataset_version"],
            "table_branch": one["native_dataset_branch"],
            "row_count": one["entity_count"],
        }
        for one in document["datasets"]
    ]
    return {
        "branch": document["graph_branch"],
        "manifest_version": document["graph_manifest_version"],
        "tables": sorted(tables, key=lambda table: str(table["table_key"])),
    }


def schema(document: Document) -> Document:
    return {"schema_source": document["schema_source"]}


def graphs(document: Document) -> Document:
    kept = ("graph_id", "uri")
    return {"graphs": [{name: one[name] for name in kept} for one in document["graphs"]]}
