"""The graph a query reads: one snapshot under one view, with what is cached of it.

Numbered nodes, decoded columns and adjacency are cached per table version, and patched from an earlier
version if a write changed little.
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
from omnigraph.limits import INDEX_MIN_ROWS
from omnigraph.plan.cost import ID_COST, LOOKUP_COST, ROW_COST, SCANNED_COST
from omnigraph.plan.ir import Direction
from omnigraph.plan.steps import Hop
from omnigraph.read.adjacency import Adjacency, build_adjacency, pair_keys
from omnigraph.read.budget import (
    LookupLedger,
    LookupWork,
    TraversalMode,
    TraversalSettings,
)
from omnigraph.read.cache import (
    MAX_PATCH_SHARE,
    ByteCache,
    CachedColumns,
    GuestCache,
    Identity,
    Note,
    identity_of,
)
from omnigraph.read.lookup import LookupEdges, LookupNodes
from omnigraph.read.nodes import Nodes
from omnigraph.read.positions import (
    FragmentDiff,
    FragmentSet,
    Mask,
    Numbering,
    Positions,
    advance_numbering,
    diff_fragments,
    number_rows,
)
from omnigraph.read.view import ReadView, stored_filter
from omnigraph.storage.indexes import uncovered_fragments
from omnigraph.storage.table import Table
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.snapshot import Snapshot

if TYPE_CHECKING:
    from omnigraph.read.text_indexes import TextIndexStore

_log = logging.getLogger(__name__)

MAX_JOINT_LOOKUP_EDGES: Final = 500
"""Edges up to which both endpoints are looked up together."""


@dataclass(frozen=True, slots=True)
class _CachedEdges:
    """Adjacency of an edge table version; `complete` if both endpoints of every edge exist."""

    fragments: FragmentSet
    adjacency: Adjacency
    complete: bool
    sizes: tuple[int, int]

    @property
    def nbytes(self) -> int:
        return self.adjacency.nbytes


@dataclass(frozen=True, slots=True)
class _EdgePairs:
    """Endpoint positions of edges; `complete` if both endpoints of every edge exist."""

    sources: Positions
    targets: Positions
    complete: bool

    def along(self, direction: Direction) -> tuple[Positions, Positions]:
        """Where each edge starts and where it leads, in a direction."""
        if direction is Direction.OUT:
            return self.sources, self.targets
        return self.targets, self.sources


@dataclass(frozen=True, slots=True)
class AccessPath:
    """How a query gets at nodes and edges. With `lookups_only` it reads no table as a whole.

    `properties` are those of each type that the query will need.
    """

    settings: TraversalSettings = field(default_factory=TraversalSettings)
    lookups_only: bool = False
    properties: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    work: LookupWork = field(default_factory=LookupWork)
    ledger: LookupLedger = field(default_factory=LookupLedger)


@dataclass(frozen=True, slots=True)
class _OpenTables:
    """Nodes and adjacency opened by queries of one snapshot, while the cache holds all of them."""

    snapshot: Snapshot
    losses: int
    nodes: dict[str, Nodes] = field(default_factory=dict)
    adjacency: dict[tuple[str, Direction], Adjacency] = field(default_factory=dict)
    nbytes: int = 0

    @classmethod
    def of(cls, snapshot: Snapshot, cache: ByteCache) -> _OpenTables:
        """The tables opened of a snapshot; they are kept of the snapshot read last only."""
        found: _OpenTables | None = cache.get("opened")
        if found is None or found.snapshot is not snapshot or found.losses != cache.losses:
            found = cls(snapshot, cache.losses)
            cache.put("opened", found)
        return found


class GraphSource:
    """What one query may read. Not shared between queries, but its cache is."""

    def __init__(
        self,
        snapshot: Snapshot,
        tables: TableStore,
        cache: ByteCache,
        view: ReadView,
        access: AccessPath | None = None,
        texts: TextIndexStore | None = None,
        exact: bool = False,
    ) -> None:
        """With `exact`, nearest vectors are never taken from an index."""
        self.snapshot = snapshot
        self.catalog = snapshot.catalog
        self.view = view
        self._tables = tables
        self._cache = cache
        self._access = access or AccessPath()
        self._texts = texts
        self.exact = exact
        is_guest = isinstance(cache, GuestCache)
        shares = view.sees_all and not self._access.lookups_only and not is_guest
        opened = _OpenTables.of(snapshot, cache) if shares else _OpenTables(snapshot, 0)
        self._nodes = opened.nodes
        self._adjacency = opened.adjacency
        self._lookup_edges: dict[tuple[str, Direction], LookupEdges] = {}
        self._changes: dict[tuple[str, Identity], tuple[FragmentSet, _EdgePairs, _EdgePairs]] = {}

    def nodes(self, node_type: str) -> Nodes:
        found = self._nodes.get(node_type)
        if found is None:
            found = self._nodes[node_type] = self._open_nodes(self.catalog.nodes[node_type])
        return found

    def neighbours(self, hop: Hop, frontier: int) -> Adjacency | LookupEdges:
        """The edges of a hop, in memory or by look-up, to follow from `frontier` nodes."""
        key = (hop.edge, hop.direction)
        built = self._adjacency.get(key)
        if built is not None:
            return built
        if not self._access.lookups_only and not self._should_look_up(hop, frontier):
            return self.adjacency(hop.edge, hop.direction)
        found = self._lookup_edges.get(key)
        if found is None:
            found = self._lookup_edges[key] = self._open_lookup_edges(hop)
        return found

    @property
    def work(self) -> LookupWork:
        """Look-ups made so far, and their cost."""
        return self._access.work

    @property
    def looks_up(self) -> bool:
        """Whether no table is read as a whole."""
        return self._access.lookups_only

    def is_in_memory(self, hop: Hop, frontier: int) -> bool:
        return isinstance(self.neighbours(hop, frontier), Adjacency)

    def adjacency(self, edge: str, direction: Direction) -> Adjacency:
        key = (edge, direction)
        found = self._adjacency.get(key)
        if found is None:
            found = self._adjacency[key] = self._open_edges(self.catalog.edges[edge], direction)
        return found

    def edge_count(self, edge: str) -> int:
        """Number of edges of a type, visible or not."""
        return self.snapshot.entry(self.catalog.edges[edge].table_key).row_count

    # -- cached state -----------------------------------------------------------------------

    def has_nodes(self, node_type: str) -> bool:
        """Whether the nodes of a type are cached, in this version or one to patch."""
        if node_type in self._nodes:
            return True
        table = self._table(self.catalog.nodes[node_type])
        if self._cache.get(("rows", *identity_of(table))) is not None:
            return True
        latest: Identity | None = self._cache.note(("latest rows", table.path))
        return latest is not None and self._cache.get(("rows", *latest)) is not None

    def has_edges(self, edge: str, direction: Direction) -> bool:
        """Whether the adjacency of an edge type is cached, in this version or one to patch."""
        declared = self.catalog.edges[edge]
        if (edge, direction) in self._adjacency:
            return True
        if not (self.has_nodes(declared.from_type) and self.has_nodes(declared.to_type)):
            return False
        # Reversing an adjacency is cheap.
        return any(self._cache.get(self._edges_key(declared, way)) is not None for way in Direction)

    def table_path(self, declared: EntityType) -> str:
        return self.snapshot.entry(declared.table_key).location

    def scanned_rows(self, declared: EntityType, column: str) -> int:
        """Rows that a look-up by a column has to scan because no index covers them."""
        table = self._table(declared)
        uncovered = uncovered_fragments(table, column)
        if uncovered is None:
            return table.row_count()
        return sum(f.rows for f in table.fragments() if f.id in uncovered) if uncovered else 0

    def _table(self, declared: EntityType) -> Table:
        return self.snapshot.open(self._tables, declared.table_key)

    def _edges_key(self, edge: EdgeType, direction: Direction) -> Hashable:
        """The cache key of an adjacency; it does not depend on the version."""
        endpoints = (edge.from_type, edge.to_type)
        origins = tuple(self.nodes(name).numbering.origin for name in endpoints)
        predicate = self.view.rows.get(edge.name)
        return "edges", self.table_path(edge), direction, origins, repr(predicate)

    # -- look-ups ---------------------------------------------------------------------------

    def _should_look_up(self, hop: Hop, frontier: int) -> bool:
        """Whether looking up a few edges is cheaper than building the adjacency."""
        settings = self._access.settings
        mode = settings.mode
        if mode is not TraversalMode.AUTO:
            return mode is TraversalMode.INDEXED
        if frontier > settings.max_frontier or hop.high > settings.max_hops:
            return False
        edge = self.catalog.edges[hop.edge]
        rows = self.edge_count(hop.edge)
        left = self._access.ledger.remaining(self.table_path(edge), LOOKUP_COST + rows)
        if 2 * LOOKUP_COST + ID_COST * frontier > left or self.has_edges(hop.edge, hop.direction):
            return False
        forward = hop.direction is Direction.OUT
        start = self.catalog.nodes[edge.from_type if forward else edge.to_type]
        degree = rows / max(self.snapshot.entry(start.table_key).row_count, 1)
        cost = 2 * LOOKUP_COST + (ID_COST + ROW_COST * degree) * frontier
        if cost > left:
            return False
        return cost + self.scanned_rows(edge, "src" if forward else "dst") * SCANNED_COST < left

    def _open_lookup_edges(self, hop: Hop) -> LookupEdges:
        edge = self.catalog.edges[hop.edge]
        if self._access.settings.mode is TraversalMode.INDEXED:
            column = "src" if hop.direction is Direction.OUT else "dst"
            rows = self.scanned_rows(edge, column)
            if rows >= INDEX_MIN_ROWS:
                _log.warning(
                    "look-ups by %s.%s scan %d rows that no index covers", edge.name, column, rows
                )
        return LookupEdges(
            edge,
            hop.direction,
            self._table(edge),
            (self.nodes(edge.from_type), self.nodes(edge.to_type)),
            self.view.rows.get(edge.name),
            self._access.work,
        )

    # -- nodes ------------------------------------------------------------------------------

    def _open_nodes(self, declared: NodeType) -> Nodes:
        table, predicate = self._table(declared), self.view.rows.get(declared.name)
        if self._access.lookups_only:
            properties = self._access.properties.get(declared.name, ())
            return LookupNodes(declared, table, predicate, properties, self._access.work)
        numbering = self._numbering(table)
        columns = CachedColumns(numbering, self._cache, self._texts)
        nodes = Nodes(declared, numbering, columns, numbering.alive)
        if predicate is None:
            return nodes
        key = ("visible", *identity_of(table), repr(predicate))

        def visible() -> Mask:
            mask = np.zeros(nodes.size, np.bool_)
            mask[nodes.select(predicate)] = True
            return mask

        return Nodes(declared, numbering, columns, self._cache.get_or_make(key, visible))

    def _numbering(self, table: Table) -> Numbering:
        identity = identity_of(table)
        found: Numbering | None = self._cache.get(("rows", *identity))
        if found is not None:
            return found
        latest: Identity | None = self._cache.note(("latest rows", table.path))
        known = None if latest is None else self._cache.get(("rows", *latest))
        if known is not None:
            diff = diff_fragments(known.fragments, table, MAX_PATCH_SHARE)
            found = None if diff is None else advance_numbering(known, diff)
        if found is None:
            found = number_rows(table)
        self._cache.put(("rows", *identity), found)
        self._cache.put(("latest rows", table.path), Note(identity))
        return found

    # -- edges ------------------------------------------------------------------------------

    def _open_edges(self, edge: EdgeType, direction: Direction) -> Adjacency:
        table = self._table(edge)
        sizes = (self.nodes(edge.from_type).size, self.nodes(edge.to_type).size)
        size = sizes[0] if direction is Direction.OUT else sizes[1]
        key = self._edges_key(edge, direction)
        known: _CachedEdges | None = self._cache.get(key)
        found = self._patched(known, table, edge, direction, sizes)
        if found is None:
            other = Direction.IN if direction is Direction.OUT else Direction.OUT
            opposite = self._cache.get(self._edges_key(edge, other))
            opposite = self._patched(opposite, table, edge, other, sizes)
            if opposite is not None:
                turned = opposite.adjacency.reversed(size)
                found = _CachedEdges(opposite.fragments, turned, opposite.complete, sizes)
        if found is None:
            predicate = stored_filter(edge, self.view.rows.get(edge.name), table.schema)
            pairs = self._pairs(edge, table.read(["src", "dst"], filter=predicate))
            built = build_adjacency(*pairs.along(direction), size)
            found = _CachedEdges(FragmentSet(table), built, pairs.complete, sizes)
        if found is not known:
            self._cache.put(key, found)
        return found.adjacency

    def _patched(
        self,
        known: _CachedEdges | None,
        table: Table,
        edge: EdgeType,
        direction: Direction,
        sizes: tuple[int, int],
    ) -> _CachedEdges | None:
        """Cached adjacency, patched to another version; None if too many edges differ."""
        if known is None or not (known.complete or known.sizes == sizes):
            return None
        if known.fragments.table is table and known.sizes == sizes:
            return known
        diff = diff_fragments(known.fragments, table, MAX_PATCH_SHARE)
        if diff is None or known.adjacency.overlay_share > MAX_PATCH_SHARE:
            return None
        if not (diff.added or diff.removed):
            return known
        if edge.name in self.view.rows:
            return None
        fragments, added, removed = self._changed_pairs(edge, known, table, diff)
        adjacency = known.adjacency.with_changes(
            pair_keys(*added.along(direction)), pair_keys(*removed.along(direction))
        )
        complete = known.complete and added.complete and removed.complete
        return _CachedEdges(fragments, adjacency, complete, sizes)

    def _changed_pairs(
        self, edge: EdgeType, known: _CachedEdges, table: Table, diff: FragmentDiff
    ) -> tuple[FragmentSet, _EdgePairs, _EdgePairs]:
        """Added and removed edges; the same for both directions."""
        key = (edge.name, identity_of(known.fragments.table))
        found = self._changes.get(key)
        if found is None:
            added = self._pairs(edge, diff.added_rows(["src", "dst"]))
            removed = self._pairs(edge, diff.removed_rows(["src", "dst"]))
            found = self._changes[key] = (FragmentSet(table), added, removed)
        return found

    def _pairs(self, edge: EdgeType, rows: pa.Table) -> _EdgePairs:
        """The endpoints of edges as positions."""
        sources, targets = self.nodes(edge.from_type), self.nodes(edge.to_type)
        ends = rows.column("src"), rows.column("dst")
        if edge.is_self_typed and rows.num_rows <= MAX_JOINT_LOOKUP_EDGES:
            joined = pa.chunked_array([*ends[0].chunks, *ends[1].chunks], ends[0].type)
            both = sources.positions_of(joined)
            start, end = both[: rows.num_rows], both[rows.num_rows :]
        elif rows.num_rows <= MAX_JOINT_LOOKUP_EDGES:
            start, end = sources.positions_of(ends[0]), targets.positions_of(ends[1])
        else:
            with ThreadPoolExecutor(1) as helper:
                later = helper.submit(targets.positions_of, ends[1])
                start = sources.positions_of(ends[0])
                end = later.result()
        known = (start >= 0) & (end >= 0)
        return _EdgePairs(start[known], end[known], bool(known.all()))
