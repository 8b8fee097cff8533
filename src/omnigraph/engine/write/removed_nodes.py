"""The edges that an overwrite of nodes would leave without one of their ends.

Tests: tests/behaviour/test_overwrites.py, tests/spark/test_loads.py.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.model import Catalog, EdgeType, NodeType
from omnigraph.engine.write.change import TableWrite
from omnigraph.engine.write.committed import SnapshotRows
from omnigraph.errors import DanglingEdges, EdgesOfType
from omnigraph.rows.columns import row_schema

_SHOWN: Final = 5
"""Ids of edges that a refusal names, per type."""

NewIds = Callable[[Collection[NodeType]], Mapping[str, pa.Array]]
"""The ids of the rows a load brings for these types, by table key; a type without rows is absent."""


@dataclass(frozen=True, slots=True)
class Cascade:
    """The writes that delete edges together with their nodes, and the edge tables looked at."""

    writes: tuple[TableWrite, ...] = ()
    reads: frozenset[str] = frozenset()


NO_CASCADE: Final = Cascade()


def cascade_of(
    catalog: Catalog,
    committed: SnapshotRows,
    overwritten: Collection[str],
    new_ids: NewIds,
    *,
    deletes: bool,
) -> Cascade:
    """What becomes of edges whose nodes an overwrite of these tables removes.

    Edges of types that are overwritten too were checked with the load. Raises `DanglingEdges`
    for all others, unless they are to be deleted.
    """
    remaining = [
        (edge, ends)
        for edge in catalog.edges.values()
        if edge.table_key not in overwritten and (ends := _ends_in(catalog, edge, overwritten))
    ]
    reads = frozenset(edge.table_key for edge, _ in remaining)
    remaining = [(edge, ends) for edge, ends in remaining if committed.has_rows(edge)]
    nodes = {node.name: node for _, ends in remaining for node in ends.values()}
    removed = _removed(committed, nodes.values(), new_ids)
    found: list[tuple[EdgeType, pa.Array]] = []
    for edge, ends in remaining:
        gone = {end: removed[node.name] for end, node in ends.items() if node.name in removed}
        ids = _column(committed.edges_at(edge, gone)) if gone else pa.array([], pa.utf8())
        if len(ids):
            found.append((edge, ids))
    if found and not deletes:
        raise DanglingEdges([_described(edge, ids) for edge, ids in found])
    writes = [
        TableWrite(edge.table_key, "delta", row_schema(edge).empty_table(), deletes=ids)
        for edge, ids in found
    ]
    return Cascade(tuple(writes), reads)


def _ends_in(catalog: Catalog, edge: EdgeType, tables: Collection[str]) -> dict[str, NodeType]:
    """The ends of an edge type that nodes of these tables stand at."""
    ends = {"src": catalog.nodes[edge.from_type], "dst": catalog.nodes[edge.to_type]}
    return {end: node for end, node in ends.items() if node.table_key in tables}


def _removed(
    committed: SnapshotRows, nodes: Collection[NodeType], new_ids: NewIds
) -> dict[str, pa.Array]:
    """The ids that nodes have and no row of the load brings back, by the name of the type."""
    stored = [node for node in nodes if committed.has_rows(node)]
    if not stored:
        return {}
    brought = new_ids(stored)
    removed: dict[str, pa.Array] = {}
    for node in stored:
        ids = _column(committed.open(node).read(["id"]))
        if node.table_key in brought:
            ids = ids.filter(pc.invert(pc.is_in(ids, value_set=brought[node.table_key])))
        if len(ids):
            removed[node.name] = ids
    return removed


def _described(edge: EdgeType, ids: pa.Array) -> EdgesOfType:
    first = pc.select_k_unstable(ids, len(ids[:_SHOWN]), [("", "ascending")])
    return EdgesOfType(edge.name, len(ids), tuple(ids.take(first).to_pylist()))


def _column(rows: pa.Table) -> pa.Array:
    return rows.column("id").combine_chunks()
