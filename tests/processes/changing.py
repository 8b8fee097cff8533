"""What processes do that change the schema of a graph, or write to it meanwhile."""

from __future__ import annotations

from omnigraph.api.graph import open as open_graph
from omnigraph.errors import (
    BranchExists,
    BranchLocked,
    HeadMoved,
    OmnigraphError,
    SchemaApplyBlocked,
    SchemaApplyRunning,
    SchemaMoved,
)

FIELDS = 8


def schema(fields: int) -> str:
    """The schema of these tests with so many fields."""
    names = "".join(f"    f{number}: I32 @backfill({number})\n" for number in range(fields))
    return f"node Person {{\n    name: String @key\n{names}}}\n"


def apply_schemas(uri: str) -> list[int]:
    """Add one field after the other; returns those that this process has added."""
    graph = open_graph(uri)
    added = []
    for fields in range(1, FIELDS + 1):
        while True:
            head = graph.head().id
            try:
                if len(graph.schema.catalog.nodes["Person"].properties) > fields:
                    break
                if graph.schema.apply(schema(fields), expected_head=head).applied:
                    added.append(fields)
                break
            except (HeadMoved, SchemaApplyRunning, BranchLocked, SchemaApplyBlocked):
                continue
    return added


def load_people(uri: str, who: str, count: int) -> list[str]:
    """Load people under whatever schema there is just then."""
    graph = open_graph(uri)
    done = []
    for number in range(count):
        name = f"{who}{number}"
        while True:
            properties = graph.schema.catalog.nodes["Person"].properties
            row = {p: -1 for p in properties if p != "name"} | {"name": name}
            try:
                graph.load([{"type": "Person", "data": row}], "append")
                done.append(name)
                break
            except (SchemaMoved, BranchLocked):
                continue
            except OmnigraphError as error:
                # The schema may have become another one between the look at it and the load.
                if properties.keys() == graph.schema.catalog.nodes["Person"].properties.keys():
                    raise error
    return done


def branch_and_back(uri: str, name: str, times: int) -> int:
    """Make a branch and delete it, again and again."""
    graph = open_graph(uri)
    made = 0
    for _ in range(times):
        try:
            graph.branches.create(name)
            graph.branches.delete(name)
            made += 1
        except (BranchLocked, BranchExists):
            continue
    return made


def apply_once(uri: str, fields: int) -> bool:
    """Add fields, and die wherever a trap says so."""
    return open_graph(uri).schema.apply(schema(fields)).applied
