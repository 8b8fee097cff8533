"""How many of the edges that a deletion takes with it a reader could see."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.model import EdgeType, EntityType
from omnigraph.mutation.working import Found, WorkingImage, WorkingTable
from omnigraph.read.stored_filters import filter_columns
from omnigraph.read.view import ReadView
from omnigraph.storage.filters import bind, matches


def visible_edges(image: WorkingImage, edges: WorkingTable, found: Found, view: ReadView) -> int:
    """The number of edges that the view shows: with their type, themselves and both ends."""
    edge = edges.declared
    assert isinstance(edge, EdgeType)
    if edge.name in view.hidden_types:
        return 0
    ends = (("src", edge.from_type), ("dst", edge.to_type))
    if any(name in view.hidden_types for _, name in ends):
        return 0
    if not found.count or not any(name in view.rows for name in (edge.name, *dict(ends).values())):
        return found.count
    ids = found.rows().column("id").combine_chunks()
    rows = edges.with_ids(ids, ["src", "dst", *_columns(edge, view)])
    rows = _seen(edges.declared, rows, view)
    for end, name in ends:
        if name in view.rows:
            nodes = image[image.catalog.nodes[name]]
            near = rows.column(end).combine_chunks().unique()
            there = nodes.with_ids(near, _columns(nodes.declared, view))
            shown = _seen(nodes.declared, there, view).column("id").combine_chunks()
            rows = rows.filter(pc.is_in(rows.column(end), value_set=shown))
    return int(rows.num_rows)


def _columns(declared: EntityType, view: ReadView) -> list[str]:
    """The properties that the view's predicate on a type reads."""
    predicate = view.predicate(declared)
    read = frozenset[str]() if predicate is None else filter_columns(predicate)
    return sorted(read - {"id", "src", "dst"})


def _seen(declared: EntityType, rows: pa.Table, view: ReadView) -> pa.Table:
    """The rows that the view's predicate on a type shows."""
    predicate = view.predicate(declared)
    if predicate is None or not rows.num_rows:
        return rows
    return rows.filter(matches(bind(predicate, rows.schema), rows))
