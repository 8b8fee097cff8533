"""Notes whose vectors are computed from their texts, and what tests ask of them."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa

from omnigraph.api.graph import Graph
from omnigraph.catalog.arrow import physical_schema
from omnigraph.catalog.model import EntityType
from omnigraph.commit import tables
from omnigraph.providers.clients import MockProvider, Task
from omnigraph.versioning import genesis

NOTES = (
    "node Note { slug: String @key  body: String?  tag: String?  vec: Vector(4)? @embed(body) }\n"
)
REQUIRED = NOTES.replace("Vector(4)?", "Vector(4)")
MOCK = "OMNIGRAPH_EMBEDDINGS_MOCK"
GIVEN = [1.0, 0.0, 0.0, 0.5]


@contextmanager
def before_bindings() -> Iterator[None]:
    """Graphs made here are like those from before vectors were bound to anything."""

    def unbound(declared: EntityType) -> pa.Schema:
        fields = physical_schema(declared)
        return pa.schema([field for field in fields if not field.name.startswith("__embed_")])

    with (
        patch.object(genesis, "physical_schema", unbound),
        patch.object(tables, "binding_fields", lambda _: ()),
    ):
        yield


def run(graph: Graph, statements: str, **params: Any) -> Any:
    declared = ", ".join(f"${name}: Vector(4)?" for name in params)
    return graph.mutate(f"query q({declared}) {{ {statements} }}", params)


def notes(*rows: dict[str, Any]) -> bytes:
    """Records of a load."""
    return "\n".join(json.dumps({"type": "Note", "data": row}) for row in rows).encode()


def _singles(vector: list[float] | None) -> list[float] | None:
    """The numbers as they are stored: an export has the fewest digits that tell them apart."""
    return None if vector is None else np.array(vector, np.float32).tolist()


def vectors(graph: Graph, **options: Any) -> dict[str, list[float] | None]:
    """The vector of every note."""
    out = io.BytesIO()
    graph.export(out, types=["Note"], **options)
    rows = [json.loads(line)["data"] for line in out.getvalue().decode().splitlines()]
    return {row["slug"]: _singles(row["vec"]) for row in rows}


def mock(text: str) -> list[float]:
    found: list[float] = MockProvider().embed([text], Task.DOCUMENT, 4)[0].tolist()
    return found


def states(graph: Graph, **options: Any) -> dict[str, int]:
    """How many notes are in each state; states nobody is in are left out."""
    (found,) = graph.embed(dry_run=True, **options).properties
    return {name: count for name, count in found.states.to_json().items() if count}


def warnings(result: Any) -> list[tuple[str, str, int | None]]:
    return [(w.code, w.message, w.count) for w in result.receipt.warnings]
