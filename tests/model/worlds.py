"""What a graph shows, in the form in which an engine and the reference graph can be compared."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass

from omnigraph.api.graph import Graph
from omnigraph.catalog.model import Catalog
from omnigraph.versioning.audit import RecoveryKind
from tests.support.model import ReferenceGraph

Content = dict[str, list[str]]
"""The rows of every branch."""

Shape = dict[str, list[str]]
"""The properties of every type. Two schemas may be equal in all rows there are."""

_OPERATION_OF_WRITER = {
    "Mutation": "mutate",
    "Load": "load",
    "BranchMerge": "merge",
    "SchemaApply": "schema_apply",
}


@dataclass(frozen=True, slots=True)
class World:
    """The rows of every branch, the operations its users made, in order, and the schema."""

    content: Content
    history: dict[str, list[str]]
    shape: Shape


def world_of_model(model: ReferenceGraph) -> World:
    return World(
        {branch: _comparable(model.export(branch)) for branch in model.branches()},
        {
            branch: [commit.operation for commit in model.commits(branch)]
            for branch in model.branches()
        },
        _shape(model.catalog),
    )


def content_of(graph: Graph) -> Content:
    content: Content = {}
    for branch in list(graph.branches):
        out = io.BytesIO()
        graph.export(out, branch=branch)
        content[branch] = _comparable(out.getvalue().decode().splitlines())
    return content


def world_of(graph: Graph) -> World:
    return World(
        content_of(graph),
        {branch: _history(graph, branch) for branch in list(graph.branches)},
        _shape(graph._snapshot().catalog),
    )


def _shape(catalog: Catalog) -> Shape:
    return {declared.table_key: sorted(declared.properties) for declared in catalog}


def _comparable(lines: list[str]) -> list[str]:
    """Rows in the order of their text; acquaintances have ids that are made up."""
    rows = []
    for line in lines:
        row = json.loads(line)
        if row.get("edge") == "Knows":
            del row["data"]["id"]
        rows.append(json.dumps(row))
    return sorted(rows)


def _history(graph: Graph, branch: str) -> list[str]:
    return list(made_by_users(graph, branch).values())


def made_by_users(graph: Graph, branch: str) -> dict[str, str]:
    """Operations that users made, by commit. One that recovery finished counts; compacting and undoing
    do not."""
    finished = {
        recorded.graph_commit_id: _OPERATION_OF_WRITER.get(recorded.audit.writer_kind)
        for recorded in graph.maintenance.recoveries(branch)
        if recorded.audit.kind is RecoveryKind.ROLLED_FORWARD
    }
    made: dict[str, str] = {}
    for commit in graph.log(branch, reverse=True):
        operation = commit.operation
        if operation == "recovery":
            operation = finished.get(commit.id) or ""
        if operation in ("init", "load", "mutate", "merge", "schema_apply"):
            made[commit.id] = operation
    return made
