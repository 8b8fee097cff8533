"""Edges between two nodes, and the best of all paths between them, by trying every one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from omnigraph.plan.ir import Direction, EdgePattern, Member
from tests.support.model.image import Image
from tests.support.model.values import Row, text_of

Named = dict[str, Any]
"""An edge with its type and ends under `@` names, or a path with its parts under them."""


def joining_edges(
    image: Image, members: tuple[Member, ...], left: str, right: str
) -> Iterator[Named]:
    """Every edge that leads from one node to the other, each once."""
    seen = set()
    for edge, row, reached in edges_from(image, members, left):
        key = (edge, row["id"])
        if reached == right and key not in seen:
            seen.add(key)
            yield {**row, "@type": edge, "@src": row["src"], "@dst": row["dst"]}


def edges_from(
    image: Image, members: tuple[Member, ...], node: str
) -> Iterator[tuple[str, Row, str]]:
    """The edges that start at a node: their type, the edge, and the node they lead to."""
    for edge, direction in members:
        near, far = ("src", "dst") if direction is Direction.OUT else ("dst", "src")
        for row in image.tables[f"edge:{edge}"].values():
            if row[near] == node:
                yield edge, row, text_of(row, far)


def best_path(image: Image, edge: EdgePattern, left: str, right: str) -> Named | None:
    """The path of a `shortest` traversal: the cheapest, then the shortest, then the first by ids."""
    assert edge.shortest is not None
    weight = edge.shortest.weight
    best: tuple[Any, ...] | None = None
    for nodes, edges, cost in _paths(image, edge.members, weight, left, right, edge.high):
        key = (cost if weight else 0.0, len(edges), nodes, edges, cost)
        best = key if best is None or key < best else best
    if best is None or (weight is None and best[1] < edge.low):
        return None
    cost, length, nodes, edges, _ = best
    return {
        "@length": length,
        "@cost": cost if weight else None,
        "@nodes": nodes,
        "@edges": tuple(id for _, id in edges),
    }


def _paths(
    image: Image,
    members: tuple[Member, ...],
    weight: str | None,
    left: str,
    right: str,
    high: int,
) -> Iterator[tuple[tuple[str, ...], tuple[tuple[str, str], ...], float]]:
    """All paths without a repeated node: node ids, edges, and the sum of the weights."""
    waiting: list[tuple[tuple[str, ...], tuple[tuple[str, str], ...], float]] = [((left,), (), 0.0)]
    while waiting:
        nodes, edges, cost = waiting.pop()
        if nodes[-1] == right:
            yield nodes, edges, cost
            continue
        if len(edges) == high:
            continue
        for name, row, reached in edges_from(image, members, nodes[-1]):
            step = 0.0 if weight is None else row[weight]
            if reached not in nodes and step is not None:
                more = (*edges, (name, text_of(row, "id")))
                waiting.append(((*nodes, reached), more, cost + float(step)))  # type: ignore[arg-type]
