"""What tests of merges have in common: people, what they hold, and refusals as short tuples."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import pytest

from omnigraph.api.graph import Graph, init
from omnigraph.errors import MergeConflicts
from tests.behaviour.graphs import SCHEMA


def person(name: str, **more: Any) -> str:
    return json.dumps({"type": "Person", "data": {"name": name, **more}})


def edge(kind: str, source: str, target: str, **data: Any) -> str:
    return json.dumps({"edge": kind, "from": source, "to": target, "data": data})


def lines(*rows: str) -> bytes:
    return "\n".join(rows).encode()


def four_people(uri: str) -> Graph:
    """Four people, two of whom know each other, and a branch `feature`."""
    graph = init(uri, SCHEMA)
    rows = [person("Alice", age=30), person("Bob", age=40), person("Carol"), person("Dan")]
    graph.load(lines(*rows, edge("Knows", "Bob", "Carol", id="k1")), "append")
    graph.branches.create("feature")
    return graph


def exported(graph: Graph, branch: str = "main", *types: str) -> list[dict[str, Any]]:
    out = io.BytesIO()
    graph.export(out, branch=branch, types=types)
    return [json.loads(line) for line in out.getvalue().decode().splitlines()]


def ages(graph: Graph, branch: str = "main") -> dict[str, int | None]:
    rows = (row["data"] for row in exported(graph, branch, "Person"))
    return {row["name"]: row["age"] for row in rows}


def set_age(graph: Graph, branch: str, name: str, age: int | None) -> None:
    value = "null" if age is None else age
    text = f'query q() {{ update Person set {{ age: {value} }} where name = "{name}" }}'
    graph.mutate(text, branch=branch)


def add(graph: Graph, branch: str, name: str) -> None:
    graph.mutate(f'query q() {{ insert Person {{ name: "{name}" }} }}', branch=branch)


def remove(graph: Graph, branch: str, name: str) -> None:
    graph.mutate(f'query q() {{ delete Person where name = "{name}" }}', branch=branch)


def conflicts(refused: Callable[[], object]) -> list[tuple[str, str | None, str]]:
    """What a merge is refused for."""
    with pytest.raises(MergeConflicts) as error:
        refused()
    return [(c.table_key, c.row_id, c.kind) for c in error.value.conflicts]
