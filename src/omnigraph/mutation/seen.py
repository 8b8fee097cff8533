"""Which of the rows that a statement finds, or takes with it, a reader can see."""

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
    if edge.name not in view.restrict(image.catalog).edges:
        return 0
    return visible_only(image, edges, found, view).count


def visible_only(image: WorkingImage, table: WorkingTable, found: Found, view: ReadView) -> Found:
    """The rows that the view shows; for an edge, with both of its ends."""
    declared = table.declared
    if not found.count or not view.filters(declared):
        return found
    ids = found.rows().column("id").combine_chunks()
    ends = (
        (("src", declared.from_type), ("dst", declared.to_type))
        if isinstance(declared, EdgeType)
        else ()
    )
    rows = table.with_ids(ids, [*(end for end, _ in ends), *_columns(declared, view)])
    rows = _seen(declared, rows, view)
    for end, name in ends:
        if name in view.rows:
            nodes = image[image.catalog.nodes[name]]
            near = rows.column(end).combine_chunks().unique()
            there = nodes.with_ids(near, _columns(nodes.declared, view))
            shown = _seen(nodes.declared, there, view).column("id").combine_chunks()
            rows = rows.filter(pc.is_in(rows.column(end), value_set=shown))
    return found.only(rows.column("id").combine_chunks())


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
