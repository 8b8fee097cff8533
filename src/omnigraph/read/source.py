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
from omnigraph.instruments import looked_up
from omnigraph.limits import INDEX_MIN_ROWS
from omnigraph.plan.cost import ID_COST, LOOKUP_COST, ROW_COST, SCANNED_COST
from omnigraph.plan.ir import Direction, Member
from omnigraph.plan.steps import Hop
from omnigraph.read.adjacency import Adjacency, Counts, build_adjacency, pair_keys
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
from omnigraph.read.edge_rows import AnyEdgeRows, EdgeRows, LookupEdgeRows, MemberRows
from omnigraph.read.frame import Entities
from omnigraph.read.incidence import EdgeEnds, Incidence, build_incidence
from omnigraph.read.joined import JoinedNeighbours, Neighbours
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
from omnigraph.read.stored_filters import stored_filter
from omnigraph.read.view import ReadView
from omnigraph.storage.filters import Filter
from omnigraph.storage.indexes import uncovered_fragments
from omnigraph.storage.scan import ROW_ID
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
class _CachedEnds:
    """The ends of the edges of a table version, and how many nodes there were."""

    fragments: FragmentSet
    ends: EdgeEnds
    sizes: tuple[int, int]

    @property
    def nbytes(self) -> int:
        return self.ends.nbytes


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
    edge_rows: dict[str, AnyEdgeRows] = field(default_factory=dict)
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
        self._edge_rows = opened.edge_rows
        self._adjacency = opened.adjacency
        self._lookup_edges: dict[tuple[str, Direction], LookupEdges] = {}
        self._predicates: dict[str, Filter | None] = {}
        self._changes: dict[tuple[str, Identity], tuple[FragmentSet, _EdgePairs, _EdgePairs]] = {}

    def nodes(self, node_type: str) -> Nodes:
        found = self._nodes.get(node_type)
        if found is None:
            found = self._nodes[node_type] = self._open_nodes(self.catalog.nodes[node_type])
        return found

    def neighbours(self, hop: Hop, frontier: int) -> Neighbours:
        """The edges of a hop, in memory or by look-up, to follow from `frontier` nodes."""
        if hop.only is not None:
            return self._member(hop.only, frontier, hop.high)
        return JoinedNeighbours(
            tuple(self._member(member, frontier, hop.high) for member in hop.members)
        )

    def _member(self, member: Member, frontier: int, hops: int) -> Adjacency | LookupEdges:
        built = self._adjacency.get(member)
        if built is not None:
            return built
        if not self._access.lookups_only and not self._should_look_up(member, frontier, hops):
            return self.adjacency(*member)
        found = self._lookup_edges.get(member)
        if found is None:
            found = self._lookup_edges[member] = self._open_lookup_edges(*member)
        return found

    def entities(self, kind: Entities) -> Nodes:
        """The nodes of a type, or the edges of one type or of several together."""
        if isinstance(kind, str):
            return self.nodes(kind)
        assert isinstance(kind, tuple), "a path has no rows"
        if len(kind) == 1:
            return self.edges(kind[0])
        return MemberRows({name: self.edges(name) for name in kind})

    def edges(self, edge: str) -> AnyEdgeRows:
        """The edges of a type, each with a position."""
        found = self._edge_rows.get(edge)
        if found is None:
            found = self._edge_rows[edge] = self._open_edge_rows(self.catalog.edges[edge])
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
        """Whether a hop over one edge type in one direction follows edges in memory."""
        return isinstance(self.neighbours(hop, frontier), Adjacency)

    def adjacency(self, edge: str, direction: Direction) -> Adjacency:
        key = (edge, direction)
        found = self._adjacency.get(key)
        if found is None:
            found = self._adjacency[key] = self._open_edges(self.catalog.edges[edge], direction)
        return found

    def degrees(self, edge: str, direction: Direction, size: int) -> Counts:
        """The number of visible neighbours of each of `size` nodes."""
        adjacency, declared = self.adjacency(edge, direction), self.catalog.edges[edge]
        far = declared.to_type if direction is Direction.OUT else declared.from_type
        visible = self.nodes(far).visible
        if visible is None:
            return adjacency.degrees(size)
        key = ("visible degrees", direction, size, *self._seen_key(declared))
        return self._cache.get_or_make(
            key, lambda: adjacency.sum_over_neighbours(visible.astype(np.int64), size)
        )

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

    def _predicate(self, declared: EntityType) -> Filter | None:
        """The view's condition on a type, the same for the whole query."""
        if declared.name not in self.view.rows:
            return None
        found = self._predicates.get(declared.table_key)
        if found is None:
            found = self._predicates[declared.table_key] = self.view.predicate(declared)
        return found

    def _edges_key(self, edge: EdgeType, direction: Direction) -> Hashable:
        """The cache key of an adjacency; it does not depend on the version."""
        endpoints = (edge.from_type, edge.to_type)
        origins = tuple(self.nodes(name).numbering.origin for name in endpoints)
        predicate = self._predicate(edge)
        return "edges", self.table_path(edge), direction, origins, repr(predicate)

    # -- look-ups ---------------------------------------------------------------------------

    def _should_look_up(self, member: Member, frontier: int, hops: int) -> bool:
        """Whether looking up a few edges is cheaper than building the adjacency."""
        settings = self._access.settings
        mode = settings.mode
        if mode is not TraversalMode.AUTO:
            return mode is TraversalMode.INDEXED
        if frontier > settings.max_frontier or hops > settings.max_hops:
            return False
        name, direction = member
        edge = self.catalog.edges[name]
        rows = self.edge_count(name)
        left = self._access.ledger.remaining(self.table_path(edge), LOOKUP_COST + rows)
        if 2 * LOOKUP_COST + ID_COST * frontier > left or self.has_edges(*member):
            return False
        forward = direction is Direction.OUT
        start = self.catalog.nodes[edge.from_type if forward else edge.to_type]
        degree = rows / max(self.snapshot.entry(start.table_key).row_count, 1)
        cost = 2 * LOOKUP_COST + (ID_COST + ROW_COST * degree) * frontier
        if cost > left:
            return False
        return cost + self.scanned_rows(edge, "src" if forward else "dst") * SCANNED_COST < left

    def _open_lookup_edges(self, name: str, direction: Direction) -> LookupEdges:
        edge = self.catalog.edges[name]
        self._warn_of_scans(edge, direction)
        return LookupEdges(
            edge,
            direction,
            self._table(edge),
            (self.nodes(edge.from_type), self.nodes(edge.to_type)),
            self._predicate(edge),
            self._access.work,
        )

    def _warn_of_scans(self, edge: EdgeType, direction: Direction) -> None:
        if self._access.settings.mode is TraversalMode.INDEXED:
            column = "src" if direction is Direction.OUT else "dst"
            rows = self.scanned_rows(edge, column)
            if rows >= INDEX_MIN_ROWS:
                _log.warning(
                    "look-ups by %s.%s scan %d rows that no index covers", edge.name, column, rows
                )

    # -- nodes ------------------------------------------------------------------------------

    def _open_nodes(self, declared: NodeType) -> Nodes:
        table, predicate = self._table(declared), self._predicate(declared)
        if self._access.lookups_only:
            properties = self._access.properties.get(declared.name, ())
            return LookupNodes(declared, table, predicate, properties, self._access.work)
        numbering = self._numbering(table)
        columns = CachedColumns(numbering, self._cache, self._texts)
        nodes = Nodes(declared, numbering, columns, numbering.alive)
        if predicate is None:
            return nodes
        key = ("visible", *identity_of(table), numbering.origin, repr(predicate))

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
        looked_up("edges", found=known is not None)
        found = self._patched(known, table, edge, direction, sizes)
        if found is None:
            other = Direction.IN if direction is Direction.OUT else Direction.OUT
            opposite = self._cache.get(self._edges_key(edge, other))
            opposite = self._patched(opposite, table, edge, other, sizes)
            if opposite is not None:
                turned = opposite.adjacency.reversed(size)
                found = _CachedEdges(opposite.fragments, turned, opposite.complete, sizes)
        if found is None:
            predicate = stored_filter(edge, self._predicate(edge), table.schema)
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
        start, end = self._end_positions(edge, rows)
        known = (start >= 0) & (end >= 0)
        return _EdgePairs(start[known], end[known], bool(known.all()))

    def _end_positions(self, edge: EdgeType, rows: pa.Table) -> tuple[Positions, Positions]:
        """The positions of both ends of edges, -1 for an end that no node has."""
        sources, targets = self.nodes(edge.from_type), self.nodes(edge.to_type)
        ends = rows.column("src"), rows.column("dst")
        if edge.is_self_typed and rows.num_rows <= MAX_JOINT_LOOKUP_EDGES:
            joined = pa.chunked_array([*ends[0].chunks, *ends[1].chunks], ends[0].type)
            both = sources.positions_of(joined)
            return both[: rows.num_rows], both[rows.num_rows :]
        if rows.num_rows <= MAX_JOINT_LOOKUP_EDGES:
            return sources.positions_of(ends[0]), targets.positions_of(ends[1])
        with ThreadPoolExecutor(1) as helper:
            later = helper.submit(targets.positions_of, ends[1])
            return sources.positions_of(ends[0]), later.result()

    # -- edges with positions ---------------------------------------------------------------

    def _open_edge_rows(self, edge: EdgeType) -> AnyEdgeRows:
        table, predicate = self._table(edge), self._predicate(edge)
        mode = self._access.settings.mode
        if self._access.lookups_only or mode is TraversalMode.INDEXED:
            endpoints = (self.nodes(edge.from_type), self.nodes(edge.to_type))
            properties = self._access.properties.get(edge.table_key, ())
            return LookupEdgeRows(edge, table, endpoints, predicate, properties, self._access.work)
        numbering = self._numbering(table)
        columns = CachedColumns(numbering, self._cache, self._texts)
        ends = self._edge_ends(edge, table, numbering)
        visible = self._visible_edges(edge, numbering, columns, ends)

        def incidence(direction: Direction) -> Incidence:
            return self._incidence(edge, direction, numbering, ends)

        return EdgeRows(edge, numbering, columns, visible, ends, incidence)

    def _visible_edges(
        self, edge: EdgeType, numbering: Numbering, columns: CachedColumns, ends: EdgeEnds
    ) -> Mask | None:
        """The edges that exist in this version and that the view shows, as both of their ends."""
        nodes = (self.nodes(edge.from_type), self.nodes(edge.to_type))
        predicate = self._predicate(edge)
        masks = [found.visible for found in nodes]
        if predicate is None and ends.is_complete and all(mask is None for mask in masks):
            return numbering.alive

        def visible() -> Mask:
            rows = Nodes(edge, numbering, columns, numbering.alive)
            mask = np.zeros(rows.size, np.bool_)
            mask[rows.all() if predicate is None else rows.select(predicate)] = True
            for end, seen in zip(ends.along(Direction.OUT), masks, strict=True):
                mask &= end >= 0
                if seen is not None:
                    mask[mask] = seen[end[mask]]
            return mask

        key = ("visible edges", numbering.origin, *self._seen_key(edge))
        return self._cache.get_or_make(key, visible)

    def _seen_key(self, edge: EdgeType) -> tuple[Hashable, ...]:
        """What decides which edges of a type are visible, and at which positions their ends are."""
        parts = (edge, self.catalog.nodes[edge.from_type], self.catalog.nodes[edge.to_type])
        versions = tuple(identity_of(self._table(one)) for one in parts)
        origins = tuple(self.nodes(one.name).numbering.origin for one in parts[1:])
        return versions, origins, repr([self._predicate(one) for one in parts])

    def _ends_key(self, edge: EdgeType, numbering: Numbering) -> Hashable:
        """The cache key of edge ends; it does not depend on the version."""
        origins = (self.nodes(name).numbering.origin for name in (edge.from_type, edge.to_type))
        return self.table_path(edge), numbering.origin, *origins

    def _edge_ends(self, edge: EdgeType, table: Table, numbering: Numbering) -> EdgeEnds:
        key = ("ends", self._ends_key(edge, numbering))
        sizes = (self.nodes(edge.from_type).size, self.nodes(edge.to_type).size)
        known: _CachedEnds | None = self._cache.get(key)
        if known is not None and known.sizes == sizes and known.fragments.table is table:
            return known.ends
        found = self._patched_ends(known, edge, table, numbering, sizes)
        if found is None:
            rows = table.read(["src", "dst", ROW_ID])
            blank = np.full(numbering.size, -1, np.int32)
            found = self._with_ends(EdgeEnds(blank, blank), edge, numbering, rows)
        self._cache.put(key, _CachedEnds(FragmentSet(table), found, sizes))
        return found

    def _patched_ends(
        self,
        known: _CachedEnds | None,
        edge: EdgeType,
        table: Table,
        numbering: Numbering,
        sizes: tuple[int, int],
    ) -> EdgeEnds | None:
        """Cached ends, patched to another version; None if an edge has other ends now."""
        if known is None or not (known.ends.is_complete or known.sizes == sizes):
            return None
        diff = diff_fragments(known.fragments, table, MAX_PATCH_SHARE)
        if diff is None or numbering.size < known.ends.size:
            return None
        if not diff.added and numbering.size == known.ends.size:
            return known.ends
        missing = np.full(numbering.size - known.ends.size, -1, np.int32)
        before = EdgeEnds(
            np.concatenate([known.ends.sources, missing]),
            np.concatenate([known.ends.targets, missing]),
        )
        rows = diff.added_rows(["src", "dst", ROW_ID])
        found = self._with_ends(before, edge, numbering, rows)
        size = known.ends.size
        for old, new in zip(before.along(Direction.OUT), found.along(Direction.OUT), strict=True):
            if not np.array_equal(old[:size], new[:size]):
                return None
        return found

    def _with_ends(
        self, before: EdgeEnds, edge: EdgeType, numbering: Numbering, rows: pa.Table
    ) -> EdgeEnds:
        """Ends after those of some rows became known."""
        at = numbering.positions(rows.column(ROW_ID).to_numpy())
        positions = self._end_positions(edge, rows)
        found = (before.sources.copy(), before.targets.copy())
        for ends, now in zip(found, positions, strict=True):
            ends[at] = now
        return EdgeEnds(*found)

    def _incidence(
        self, edge: EdgeType, direction: Direction, numbering: Numbering, ends: EdgeEnds
    ) -> Incidence:
        key = ("incidence", direction, self._ends_key(edge, numbering))
        known: Incidence | None = self._cache.get(key)
        if known is not None and known.ends is ends:
            return known
        found = None if known is None else known.with_ends(ends)
        if found is None or found.tail_share > MAX_PATCH_SHARE:
            end = edge.from_type if direction is Direction.OUT else edge.to_type
            found = build_incidence(ends, direction, self.nodes(end).size)
        self._cache.put(key, found)
        return found
