"""The graph a query reads: one snapshot under one view, with what is cached of it.

Numbered nodes, decoded columns and adjacency are kept per table version, and reached from an earlier
version when a write has changed little.
"""

from __future__ import annotations

import logging
from collections.abc import Hashable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from omnigraph.catalog.model import EdgeType, EntityType, NodeType
from omnigraph.engine.read.access import Ledger, TraversalMode, TraversalSettings, Work
from omnigraph.engine.read.adjacency import Adjacency, build_adjacency, pair_keys
from omnigraph.engine.read.cache import ByteCache, GuestCache
from omnigraph.engine.read.columns import REBUILD, CachedColumns, Identity, Latest, identity_of
from omnigraph.engine.read.looked_up import LookedUpEdges, LookedUpNodes
from omnigraph.engine.read.nodes import Nodes
from omnigraph.engine.read.numbering import (
    Difference,
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
from omnigraph.limits import INDEX_MIN_ROWS
from omnigraph.plan.cost import ID_COST, LOOKUP_COST, ROW_COST, SCANNED_COST
from omnigraph.plan.ir import Direction
from omnigraph.plan.steps import Hop
from omnigraph.storage.indexes import uncovered_fragments
from omnigraph.storage.table import Table
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.snapshot import Snapshot

if TYPE_CHECKING:
    from omnigraph.engine.read.stored_texts import StoredTexts

_log = logging.getLogger(__name__)

_FEW_EDGES: Final = 500
"""Edges of which both ends are looked up together."""


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
class _Pairs:
    """The two ends of edges; `complete` when every edge found both its nodes."""

    ends: tuple[Positions, Positions]
    complete: bool


@dataclass(frozen=True, slots=True)
class _VisibleRows:
    mask: Mask

    @property
    def nbytes(self) -> int:
        return int(self.mask.nbytes)


@dataclass(frozen=True, slots=True)
class Traversal:
    """How a query gets at nodes and edges. With `everything` it looks up all it needs.

    `wanted` are the properties of each type it will ask for.
    """

    settings: TraversalSettings = field(default_factory=TraversalSettings)
    everything: bool = False
    wanted: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    work: Work = field(default_factory=Work)
    ledger: Ledger = field(default_factory=Ledger)


@dataclass(frozen=True, slots=True)
class _Opened:
    """What queries of one snapshot have opened, while all of it is in the cache as well."""

    snapshot: Snapshot
    losses: int
    nodes: dict[str, Nodes] = field(default_factory=dict)
    adjacency: dict[tuple[str, Direction], Adjacency] = field(default_factory=dict)
    nbytes: int = 0

    @classmethod
    def of(cls, snapshot: Snapshot, cache: ByteCache) -> _Opened:
        """What was opened of the snapshot read last, which is the only one it is kept of."""
        found: _Opened | None = cache.get("opened")
        if found is None or found.snapshot is not snapshot or found.losses != cache.losses:
            found = cls(snapshot, cache.losses)
            cache.put("opened", found)
        return found


class GraphSource:
    """What one query may read. Not shared between queries; the cache behind it is."""

    def __init__(
        self,
        snapshot: Snapshot,
        tables: TableStore,
        cache: ByteCache,
        view: ReadView,
        traversal: Traversal | None = None,
        texts: StoredTexts | None = None,
        exact: bool = False,
    ) -> None:
        """With `exact` the nearest vectors are never looked for in an index."""
        self.snapshot = snapshot
        self.catalog = snapshot.catalog
        self.view = view
        self._tables = tables
        self._cache = cache
        self._traversal = traversal or Traversal()
        self._texts = texts
        self.exact = exact
        is_guest = isinstance(cache, GuestCache)
        shares = view.sees_all and not self._traversal.everything and not is_guest
        opened = _Opened.of(snapshot, cache) if shares else _Opened(snapshot, 0)
        self._nodes = opened.nodes
        self._adjacency = opened.adjacency
        self._looked_up: dict[tuple[str, Direction], LookedUpEdges] = {}
        self._changes: dict[tuple[str, Identity], tuple[Pieces, _Pairs, _Pairs]] = {}

    def nodes(self, node_type: str) -> Nodes:
        found = self._nodes.get(node_type)
        if found is None:
            found = self._nodes[node_type] = self._open_nodes(self.catalog.nodes[node_type])
        return found

    def neighbours(self, hop: Hop, frontier: int) -> Adjacency | LookedUpEdges:
        """The edges of a hop to follow from so many nodes, in memory or to be looked up."""
        key = (hop.edge, hop.direction)
        built = self._adjacency.get(key)
        if built is not None:
            return built
        if not self._traversal.everything and not self._is_quicker_by_look_up(hop, frontier):
            return self.adjacency(hop.edge, hop.direction)
        found = self._looked_up.get(key)
        if found is None:
            found = self._looked_up[key] = self._look_up_edges(hop)
        return found

    @property
    def work(self) -> Work:
        """What look-ups have cost so far."""
        return self._traversal.work

    @property
    def looks_up(self) -> bool:
        """Whether nothing is read as a whole."""
        return self._traversal.everything

    def is_in_memory(self, hop: Hop, frontier: int) -> bool:
        return isinstance(self.neighbours(hop, frontier), Adjacency)

    def adjacency(self, edge: str, direction: Direction) -> Adjacency:
        key = (edge, direction)
        found = self._adjacency.get(key)
        if found is None:
            found = self._adjacency[key] = self._open_edges(self.catalog.edges[edge], direction)
        return found

    def edge_count(self, edge: str) -> int:
        """How many edges of a type there are, whoever sees them."""
        return self.snapshot.entry(self.catalog.edges[edge].table_key).row_count

    # -- what is in memory already ------------------------------------------------------------

    def has_nodes(self, node_type: str) -> bool:
        """Whether the nodes of a type are numbered, in this version or one to go on from."""
        if node_type in self._nodes:
            return True
        table = self._table(self.catalog.nodes[node_type])
        if self._cache.get(("rows", *identity_of(table))) is not None:
            return True
        latest: Latest | None = self._cache.get(("latest rows", table.path))
        return latest is not None and self._cache.get(("rows", *latest.identity)) is not None

    def has_edges(self, edge: str, direction: Direction) -> bool:
        """Whether edges are compressed, in this version or one to go on from."""
        declared = self.catalog.edges[edge]
        if (edge, direction) in self._adjacency:
            return True
        if not (self.has_nodes(declared.from_type) and self.has_nodes(declared.to_type)):
            return False
        # Edges that are known one way round are quickly turned the other.
        return any(self._cache.get(self._family(declared, way)) is not None for way in Direction)

    def table_path(self, declared: EntityType) -> str:
        return self.snapshot.entry(declared.table_key).location

    def scanned_rows(self, declared: EntityType, column: str) -> int:
        """How many rows a look-up by a column has to scan because no index covers them."""
        table = self._table(declared)
        uncovered = uncovered_fragments(table, column)
        if uncovered is None:
            return table.row_count()
        return sum(f.rows for f in table.fragments() if f.id in uncovered) if uncovered else 0

    def _table(self, declared: EntityType) -> Table:
        return self.snapshot.open(self._tables, declared.table_key)

    def _family(self, edge: EdgeType, direction: Direction) -> Hashable:
        """What compressed edges are kept under, whatever the version."""
        ends = (edge.from_type, edge.to_type)
        origins = tuple(self.nodes(name).numbering.origin for name in ends)
        predicate = self.view.rows.get(edge.name)
        return "edges", self.table_path(edge), direction, origins, repr(predicate)

    # -- look-ups ---------------------------------------------------------------------------

    def _is_quicker_by_look_up(self, hop: Hop, frontier: int) -> bool:
        """Whether to look up a few edges although all nodes are numbered."""
        traversal = self._traversal
        mode, settings = traversal.settings.mode, traversal.settings
        if mode is not TraversalMode.AUTO:
            return mode is TraversalMode.INDEXED
        if frontier > settings.max_frontier or hop.high > settings.max_hops:
            return False
        edge = self.catalog.edges[hop.edge]
        rows = self.edge_count(hop.edge)
        left = traversal.ledger.left(self.table_path(edge), LOOKUP_COST + rows)
        if 2 * LOOKUP_COST + ID_COST * frontier > left or self.has_edges(hop.edge, hop.direction):
            return False
        forward = hop.direction is Direction.OUT
        start = self.catalog.nodes[edge.from_type if forward else edge.to_type]
        degree = rows / max(self.snapshot.entry(start.table_key).row_count, 1)
        cost = 2 * LOOKUP_COST + (ID_COST + ROW_COST * degree) * frontier
        if cost > left:
            return False
        return cost + self.scanned_rows(edge, "src" if forward else "dst") * SCANNED_COST < left

    def _look_up_edges(self, hop: Hop) -> LookedUpEdges:
        edge = self.catalog.edges[hop.edge]
        if self._traversal.settings.mode is TraversalMode.INDEXED:
            self._warn_of_scans(edge, "src" if hop.direction is Direction.OUT else "dst")
        return LookedUpEdges(
            edge,
            hop.direction,
            self._table(edge),
            (self.nodes(edge.from_type), self.nodes(edge.to_type)),
            self.view.rows.get(edge.name),
            self._traversal.work,
        )

    def _warn_of_scans(self, edge: EdgeType, column: str) -> None:
        """Say so when look-ups were demanded and an index is missing for many edges."""
        rows = self.scanned_rows(edge, column)
        if rows >= INDEX_MIN_ROWS:
            _log.warning(
                "look-ups by %s.%s scan %d rows: no index has them", edge.name, column, rows
            )

    def _look_up_nodes(self, declared: NodeType) -> Nodes:
        traversal = self._traversal
        return LookedUpNodes(
            declared,
            self._table(declared),
            self.view.rows.get(declared.name),
            traversal.wanted.get(declared.name, ()),
            traversal.work,
        )

    # -- nodes ------------------------------------------------------------------------------

    def _open_nodes(self, declared: NodeType) -> Nodes:
        if self._traversal.everything:
            return self._look_up_nodes(declared)
        table = self._table(declared)
        numbering = self._numbering(table)

        columns = CachedColumns(numbering, self._cache, self._texts)
        nodes = Nodes(declared, numbering, columns, numbering.alive)
        predicate = self.view.rows.get(declared.name)
        if predicate is None:
            return nodes
        key = ("visible", *identity_of(table), repr(predicate))

        def seen() -> _VisibleRows:
            mask = np.zeros(nodes.size, np.bool_)
            mask[nodes.select(predicate)] = True
            return _VisibleRows(mask)

        mask = self._cache.get_or_make(key, seen).mask
        return Nodes(declared, numbering, columns, mask)

    def _numbering(self, table: Table) -> Numbering:
        identity = identity_of(table)
        found: Numbering | None = self._cache.get(("rows", *identity))
        if found is not None:
            return found
        latest: Latest | None = self._cache.get(("latest rows", table.path))
        known = None if latest is None else self._cache.get(("rows", *latest.identity))
        if known is not None:
            change = difference(known.pieces, table, REBUILD)
            found = None if change is None else advance(known, change)
        if found is None:
            found = number_rows(table)
        self._cache.put(("rows", *identity), found)
        self._cache.put(("latest rows", table.path), Latest(identity))
        return found

    # -- edges ------------------------------------------------------------------------------

    def _open_edges(self, edge: EdgeType, direction: Direction) -> Adjacency:
        table = self._table(edge)
        sources, targets = self.nodes(edge.from_type), self.nodes(edge.to_type)
        predicate = self.view.rows.get(edge.name)
        family = self._family(edge, direction)
        known: _KnownEdges | None = self._cache.get(family)
        sizes = (sources.size, targets.size)
        found: _KnownEdges | None = None
        if known is not None and (known.complete or known.sizes == sizes):
            found = self._carried_on(known, table, edge, direction, sizes, predicate is None)
        if found is None:
            found = self._turned(edge, direction, table, sizes, predicate is None)
        if found is None:
            rows = table.read(["src", "dst"], filter=stored_filter(edge, predicate, table.schema))
            pairs = self._pairs(edge, rows)
            start, end = pairs.ends if direction is Direction.OUT else pairs.ends[::-1]
            size = sizes[0] if direction is Direction.OUT else sizes[1]
            built = build_adjacency(start, end, size)
            found = _KnownEdges(Pieces(table), built, pairs.complete, sizes)
        if found is not known:
            self._cache.put(family, found)
        return found.adjacency

    def _turned(
        self,
        edge: EdgeType,
        direction: Direction,
        table: Table,
        sizes: tuple[int, int],
        plain: bool,
    ) -> _KnownEdges | None:
        """Edges that are known the other way round; None if they are not."""
        other = Direction.IN if direction is Direction.OUT else Direction.OUT
        known: _KnownEdges | None = self._cache.get(self._family(edge, other))
        if known is None or not (known.complete or known.sizes == sizes):
            return None
        known = self._carried_on(known, table, edge, other, sizes, plain)
        if known is None:
            return None
        turned = known.adjacency.turned(sizes[0] if direction is Direction.OUT else sizes[1])
        return _KnownEdges(known.pieces, turned, known.complete, sizes)

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
        if known.pieces.table is table and known.sizes == sizes:
            return known
        change = difference(known.pieces, table, REBUILD)
        if change is None or known.adjacency.overlay_share > REBUILD:
            return None
        if not (change.come or change.left):
            return known
        if not plain:
            return None
        pieces, come, left = self._changed_pairs(edge, known, table, change)
        keys = [
            pair_keys(*(pairs.ends if direction is Direction.OUT else pairs.ends[::-1]))
            for pairs in (come, left)
        ]
        adjacency = known.adjacency.with_changes(keys[0], keys[1])
        complete = known.complete and come.complete and left.complete
        return _KnownEdges(pieces, adjacency, complete, sizes)

    def _changed_pairs(
        self, edge: EdgeType, known: _KnownEdges, table: Table, change: Difference
    ) -> tuple[Pieces, _Pairs, _Pairs]:
        """Edges that have come and that have left; the same for both directions."""
        key = (edge.name, identity_of(known.pieces.table))
        found = self._changes.get(key)
        if found is None:
            come, left = (
                self._pairs(edge, rows)
                for rows in (change.come_rows(["src", "dst"]), change.left_rows(["src", "dst"]))
            )
            found = self._changes[key] = (Pieces(table), come, left)
        return found

    def _pairs(self, edge: EdgeType, rows: pa.Table) -> _Pairs:
        """The ends of edges as positions."""
        sources, targets = self.nodes(edge.from_type), self.nodes(edge.to_type)
        ends = rows.column("src"), rows.column("dst")
        if edge.is_self_typed and rows.num_rows <= _FEW_EDGES:
            joined = pa.chunked_array([*ends[0].chunks, *ends[1].chunks], ends[0].type)
            both = sources.positions_of(joined)
            start, end = both[: rows.num_rows], both[rows.num_rows :]
        elif rows.num_rows <= _FEW_EDGES:
            start, end = sources.positions_of(ends[0]), targets.positions_of(ends[1])
        else:
            with ThreadPoolExecutor(1) as helper:
                later = helper.submit(targets.positions_of, ends[1])
                start = sources.positions_of(ends[0])
                end = later.result()
        known = (start >= 0) & (end >= 0)
        return _Pairs((start[known], end[known]), bool(known.all()))
