"""The graph a query reads: one snapshot under one view, with what is cached of it.

Numbered nodes, decoded columns and adjacency are kept per table version, and reached from an earlier
version when a write has changed little.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from omnigraph.catalog.model import EdgeType, NodeType
from omnigraph.engine.read.adjacency import Adjacency, build_adjacency, pair_keys
from omnigraph.engine.read.cache import ByteCache
from omnigraph.engine.read.nodes import DenseColumn, Nodes, patched_column, read_column
from omnigraph.engine.read.numbering import (
    Mask,
    Numbering,
    Pieces,
    Positions,
    advance,
    difference,
    number_rows,
)
from omnigraph.engine.read.stored import stored_filter
from omnigraph.engine.read.view import ReadView
from omnigraph.plan.ir import Direction
from omnigraph.storage.table import Table
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.snapshot import Snapshot

_REBUILD: Final = 0.05
"""Share of changed rows from which a cached structure is built anew instead of carried on."""


Identity = tuple[Hashable, ...]
"""A table version. Its number alone does not tell: a branch may be deleted and made again."""


@dataclass(frozen=True, slots=True)
class _Latest:
    """Which version of a table something was last kept of."""

    identity: Identity
    nbytes: int = 0


@dataclass(frozen=True, slots=True)
class _KnownEdges:
    """Adjacency of an edge table version; `complete` when every edge found both its nodes."""

    pieces: Pieces
    adjacency: Adjacency
    complete: bool
    sizes: tuple[int, int]

    @property
    def nbytes(self) -> int:
        return self.adjacency.nbytes


@dataclass(frozen=True, slots=True)
class _VisibleRows:
    mask: Mask

    @property
    def nbytes(self) -> int:
        return int(self.mask.nbytes)


class GraphSource:
    """What one query may read. Not shared between queries; the cache behind it is."""

    def __init__(
        self, snapshot: Snapshot, tables: TableStore, cache: ByteCache, view: ReadView
    ) -> None:
        self.snapshot = snapshot
        self.catalog = snapshot.catalog
        self.view = view
        self._tables = tables
        self._cache = cache
        self._nodes: dict[str, Nodes] = {}
        self._adjacency: dict[tuple[str, Direction], Adjacency] = {}

    def nodes(self, node_type: str) -> Nodes:
        found = self._nodes.get(node_type)
        if found is None:
            found = self._nodes[node_type] = self._open_nodes(self.catalog.nodes[node_type])
        return found

    def adjacency(self, edge: str, direction: Direction) -> Adjacency:
        key = (edge, direction)
        found = self._adjacency.get(key)
        if found is None:
            found = self._adjacency[key] = self._open_edges(self.catalog.edges[edge], direction)
        return found

    # -- nodes ------------------------------------------------------------------------------

    def _open_nodes(self, declared: NodeType) -> Nodes:
        table = self.snapshot.open(self._tables, declared.table_key)
        numbering = self._numbering(table)

        columns = _CachedColumns(numbering, self._cache)
        nodes = Nodes(declared, numbering, columns, numbering.alive)
        predicate = self.view.rows.get(declared.name)
        if predicate is None:
            return nodes
        key = ("visible", *_identity(table), repr(predicate))

        def seen() -> _VisibleRows:
            mask = np.zeros(nodes.size, np.bool_)
            mask[nodes.select(predicate)] = True
            return _VisibleRows(mask)

        mask = self._cache.get_or_make(key, seen).mask
        return Nodes(declared, numbering, columns, mask)

    def _numbering(self, table: Table) -> Numbering:
        identity = _identity(table)
        found: Numbering | None = self._cache.get(("rows", *identity))
        if found is not None:
            return found
        latest: _Latest | None = self._cache.get(("latest rows", table.path))
        known = None if latest is None else self._cache.get(("rows", *latest.identity))
        if known is not None:
            change = difference(known.pieces, table, _REBUILD)
            found = None if change is None else advance(known, change)
        if found is None:
            found = number_rows(table)
        self._cache.put(("rows", *identity), found)
        self._cache.put(("latest rows", table.path), _Latest(identity))
        return found

    # -- edges ------------------------------------------------------------------------------

    def _open_edges(self, edge: EdgeType, direction: Direction) -> Adjacency:
        table = self.snapshot.open(self._tables, edge.table_key)
        ends = (edge.from_type, edge.to_type)
        sources, targets = (self.nodes(name) for name in ends)
        predicate = self.view.rows.get(edge.name)
        origins = (sources.numbering.origin, targets.numbering.origin)
        family: Hashable = ("edges", table.path, direction, origins, repr(predicate))
        known: _KnownEdges | None = self._cache.get(family)
        sizes = (sources.size, targets.size)
        found: _KnownEdges | None = None
        if known is not None and (known.complete or known.sizes == sizes):
            found = self._carried_on(known, table, edge, direction, sizes, predicate is None)
        if found is None:
            rows = table.read(["src", "dst"], filter=stored_filter(edge, predicate))
            pairs, complete = self._pairs(edge, rows)
            start, end = pairs if direction is Direction.OUT else pairs[::-1]
            size = sizes[0] if direction is Direction.OUT else sizes[1]
            built = build_adjacency(start, end, size)
            found = _KnownEdges(Pieces(table), built, complete, sizes)
        if found is not known:
            self._cache.put(family, found)
        return found.adjacency

    def _carried_on(
        self,
        known: _KnownEdges,
        table: Table,
        edge: EdgeType,
        direction: Direction,
        sizes: tuple[int, int],
        plain: bool,
    ) -> _KnownEdges | None:
        """Adjacency of another version, by the edges that differ; None when those are many."""
        change = difference(known.pieces, table, _REBUILD)
        if change is None or known.adjacency.overlay_share > _REBUILD:
            return None
        if not (change.come or change.left):
            return known
        if not plain:
            return None
        keys = []
        complete = known.complete
        for rows in (change.come_rows(["src", "dst"]), change.left_rows(["src", "dst"])):
            pairs, whole = self._pairs(edge, rows)
            complete = complete and whole
            start, end = pairs if direction is Direction.OUT else pairs[::-1]
            keys.append(pair_keys(start, end))
        adjacency = known.adjacency.with_changes(keys[0], keys[1])
        return _KnownEdges(Pieces(table), adjacency, complete, sizes)

    def _pairs(self, edge: EdgeType, rows: pa.Table) -> tuple[tuple[Positions, Positions], bool]:
        """The ends of edges as positions, and whether every edge found both of its nodes."""
        start = self.nodes(edge.from_type).positions_of(rows.column("src").combine_chunks())
        end = self.nodes(edge.to_type).positions_of(rows.column("dst").combine_chunks())
        known = (start >= 0) & (end >= 0)
        complete = bool(known.all())
        if edge.is_self_typed:
            known &= start != end
        return (start[known], end[known]), complete


class _CachedColumns:
    """The columns of a numbered table version, kept in the cache."""

    def __init__(self, numbering: Numbering, cache: ByteCache) -> None:
        self._numbering = numbering
        self._cache = cache

    def cached(self, column: str) -> DenseColumn | None:
        return self._cache.get(("column", *_identity(self._numbering.table), column))

    def load(self, column: str) -> DenseColumn:
        found = self.cached(column)
        if found is not None:
            return found
        table = self._numbering.table
        found = self._carried_on(column) or read_column(self._numbering, column)
        self._cache.put(("column", *_identity(table), column), found)
        self._cache.put(("latest column", table.path, column), _Latest(_identity(table)))
        return found

    def _carried_on(self, column: str) -> DenseColumn | None:
        """The column from that of another version, by the rows that differ."""
        numbering = self._numbering
        latest: _Latest | None = self._cache.get(("latest column", numbering.table.path, column))
        if latest is None:
            return None
        known: Numbering | None = self._cache.get(("rows", *latest.identity))
        values: DenseColumn | None = self._cache.get(("column", *latest.identity, column))
        if known is None or values is None or known.origin != numbering.origin:
            return None
        change = difference(known.pieces, numbering.table, _REBUILD)
        if change is None or known.size > numbering.size:
            return None
        return patched_column(values, numbering, column, change)


def _identity(table: Table) -> Identity:
    return table.lineage.uri, table.version, table.written_at
