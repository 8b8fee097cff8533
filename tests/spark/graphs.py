"""Small graphs for both engines, and ways to look at all of a graph."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

from omnigraph.api.graph import Graph

SCHEMA = """
node Person { name: String @key  age: I32?  email: String? @unique }
node City { name: String @key }
edge Knows: Person -> Person { since: Date? }
edge LivesIn: Person -> City @card(0..1) { @unique(src, dst) }
"""


def person(name: str, **data: object) -> str:
    return json.dumps({"type": "Person", "data": {"name": name, **data}})


def edge(kind: str, source: str, target: str, **data: object) -> str:
    return json.dumps({"edge": kind, "from": source, "to": target, "data": data})


def town(count: int) -> str:
    """Persons who know each other and live in two cities; some records have unknown keys."""
    records = [json.dumps({"type": "City", "data": {"name": name}}) for name in ("Ulm", "Bonn")]
    for n in range(count):
        extra: dict[str, object] = {"shoe": 44} if n % 10 == 0 else {}
        records.append(person(f"p{n}", age=n % 90, email=f"p{n}@example.org", **extra))
    for n in range(count):
        records.append(edge("Knows", f"p{n}", f"p{n * 7 % count}", since="2020-02-01"))
        records.append(edge("LivesIn", f"p{n}", "Ulm" if n % 3 else "Bonn"))
    # Sources of edges come before and after their nodes.
    records = records[::2] + records[1::2]
    return "\n".join(records) + "\n"


def exported(graph: Graph, branch: str = "main") -> str:
    text = io.BytesIO()
    graph.export(text, branch=branch)
    return text.getvalue().decode()


def data_files(uri: str | Path) -> set[str]:
    """The data files below a graph, those of its manifest excepted."""
    # Loads at work make and remove folders meanwhile, which only this way of walking puts up with.
    folders = ((folder, names) for folder, _, names in os.walk(uri) if "__manifest" not in folder)
    return {
        os.path.join(folder, name)
        for folder, names in folders
        if os.path.basename(folder) == "data"
        for name in names
    }


def comparable(result: Any) -> dict[str, Any]:
    """A receipt without what differs between any two loads."""
    passing = {"graph_commit_id", "parent_commit_id", "operation_id", "created_at", "engine"}
    passing |= {"stages", "lock_seconds"}
    return {key: value for key, value in result.to_json().items() if key not in passing}
