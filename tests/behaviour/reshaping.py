"""What tests of schema changes have in common: next schemas of the workshop, and looks at its graph."""

from __future__ import annotations

from io import BytesIO

from omnigraph.api.graph import Graph
from omnigraph.api.graph import open as open_graph
from tests.support.workshop import WORKSHOP

SCORES = "query q() { match { $m: Maker } return { $m.handle, $m.score } order { $m.handle } }"
NICK = WORKSHOP.replace("    score: F64?", '    score: F64?\n    nick: String @backfill("none")')
RATING = WORKSHOP.replace("    score: F64?", '    rating: F64? @rename_from("score")')
WITHOUT_SCORE = WORKSHOP.replace("    score: F64?\n", "")


def makers(graph: Graph, *properties: str, at: str | None = None) -> list[list[object]]:
    """The makers by handle, with the named properties of each."""
    wanted = ", ".join(f"$m.{name}" for name in ("handle", *properties))
    query = f"query q() {{ match {{ $m: Maker }} return {{ {wanted} }} order {{ $m.handle }} }}"
    return [list(row.values()) for row in graph.query(query, at=at).to_dicts()]


def table_versions(graph: Graph) -> dict[str, tuple[str, int]]:
    return {e.table_id: (e.location, e.version) for e in graph._snapshot().entries.values()}


def exported(graph: Graph, *types: str) -> list[str]:
    out = BytesIO()
    graph.export(out, types=types)
    return out.getvalue().decode().splitlines()


def open_again(graph: Graph) -> Graph:
    return open_graph(graph.uri)
