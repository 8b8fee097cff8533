"""Nodes and edges found by index look-ups as a query reaches them, without decoding whole columns.

For a query that starts at few nodes of a graph that is not in memory yet. Nodes get positions in the order
they are found, and only nodes that the reader may see are found.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.model import EdgeType, EntityType
from omnigraph.limits import LOOKUP_CHUNK
from omnigraph.plan.cost import FOUND_COST, LOOKUP_COST
from omnigraph.plan.ir import Direction
from omnigraph.read.adjacency import Keys, Spans, expand_spans, pair_keys
from omnigraph.read.budget import LookupWork
from omnigraph.read.nodes import Nodes
from omnigraph.read.positions import Mask, Positions, in_sorted, sorted_distinct
from omnigraph.read.stored_filters import id_filter, stored_filter
from omnigraph.storage.filters import And, Comparison, Filter, In
from omnigraph.storage.scan import ROW_ID
from omnigraph.storage.table import Table


class LookupNodes(Nodes):
    """The nodes of a type that a query has reached so far. Not shared between queries."""

    id_columns: tuple[str, ...] = ("id", ROW_ID)
    """The columns read of rows that get a position."""

    def __init__(
        self,
        declared: EntityType,
        table: Table,
        predicate: Filter | None,
        properties: Sequence[str],
        work: LookupWork,
    ) -> None:
        """`properties` are fetched together as soon as one of them is needed."""
        self.declared = declared
        self.visible = None
        self.table = table
        self._predicate = stored_filter(declared, predicate, table.schema)
        self._prefetched = frozenset(filter(None, map(self.column_name, properties)))
        self._work = work
        self._by_id: dict[str, int] = {}
        self._row_ids: npt.NDArray[np.uint64] = np.empty(0, np.uint64)
        self._fetched: dict[str, tuple[Positions, pa.Array]] = {}

    @property
    def is_whole(self) -> bool:
        return False

    @property
    def size(self) -> int:
        return len(self._row_ids)

    def all(self) -> Positions:
        return self._find(None)

    def find(self, predicates: Sequence[Filter], limit: int | None = None) -> Positions:
        """The nodes that match all predicates on properties, up to a limit."""
        # Ids are indexed, so an equality with the key is looked up as one with the id as well.
        keys = [id_filter(self.declared, p) for p in predicates if isinstance(p, Comparison)]
        parts = (*predicates, *(key for key in keys if key is not None))
        stored = stored_filter(self.declared, And(parts), self.table.schema)
        return self._find(stored if parts else None, limit)

    def select(self, predicate: Filter, positions: Positions | None = None) -> Positions:
        return self.find([predicate]) if positions is None else super().select(predicate, positions)

    def ids(self, positions: Positions) -> pa.Array:
        return pa.array(list(self._by_id), pa.utf8()).take(pa.array(positions))

    def values(self, name: str, positions: Positions) -> pa.Array:
        if name == "id":
            return self.ids(positions)
        column = self.column_name(name)
        if column is None:
            return pa.nulls(len(positions), self.arrow_type(name))
        if not len(positions):
            return self.table.schema.empty_table().column(column).combine_chunks()
        distinct = sorted_distinct(positions)
        known, fetched = self._fetched.get(column, (distinct[:0], None))
        at = np.minimum(np.searchsorted(known, positions), max(len(known) - 1, 0))
        if fetched is None or not np.array_equal(known[at], positions):
            self._fetch_columns(self._prefetched | {column}, distinct)
            _, fetched = self._fetched[column]
            at = np.searchsorted(distinct, positions)
        return fetched.take(pa.array(at))

    def read_together(self, names: Iterable[str], positions: Positions) -> dict[str, pa.Array]:
        """Nothing: what a query reads of a type is known here, and fetched together anyway."""
        return {}

    def positions_of(self, ids: pa.Array) -> Positions:
        """The positions of ids, -1 for ids that no visible node has."""
        missing = [id for id in pc.unique(ids).to_pylist() if id not in self._by_id]
        if missing:
            self._register(
                lookup_rows(self.table, "id", missing, self.id_columns, self._predicate, self._work)
            )
        known = self._by_id
        return np.fromiter((known.get(id, -1) for id in ids.to_pylist()), np.int64, len(ids))

    def _find(self, predicate: Filter | None, limit: int | None = None) -> Positions:
        parts = tuple(part for part in (predicate, self._predicate) if part is not None)
        if limit is not None and limit >= self.table.row_count():
            limit = None
        rows = self.table.read(list(self.id_columns), And(parts) if parts else None, limit=limit)
        self._work.add(self.table.path, LOOKUP_COST + FOUND_COST * rows.num_rows)
        return np.sort(self._register(rows))

    def _register(self, rows: pa.Table) -> Positions:
        """Give found nodes positions; nodes found before keep theirs."""
        fresh: list[int] = []
        found = np.empty(rows.num_rows, np.int64)
        for row, id in enumerate(rows.column("id").to_pylist()):
            position = self._by_id.setdefault(id, len(self._by_id))
            found[row] = position
            if position >= self.size + len(fresh):
                fresh.append(row)
        row_ids = rows.column(ROW_ID).to_numpy()[fresh]
        self._row_ids = np.concatenate([self._row_ids, row_ids])
        return found

    def _fetch_columns(self, columns: frozenset[str], positions: Positions) -> None:
        names = sorted(columns)
        rows = self.table.take(pa.array(self._row_ids[positions]), names)
        self._work.add_lookup(self.table.path, 0, len(positions))
        for name in names:
            self._fetched[name] = (positions, rows.column(name).combine_chunks())


class LookupEdges:
    """Neighbours over an edge type, looked up for the sources that a query reaches."""

    def __init__(
        self,
        edge: EdgeType,
        direction: Direction,
        table: Table,
        endpoints: tuple[Nodes, Nodes],
        predicate: Filter | None,
        work: LookupWork,
    ) -> None:
        """`endpoints` are the nodes of the edge type's source and destination types."""
        forward = direction is Direction.OUT
        self._columns = ["src", "dst"] if forward else ["dst", "src"]
        self._sources, self._targets = endpoints if forward else endpoints[::-1]
        self._table = table
        self._predicate = stored_filter(edge, predicate, table.schema)
        self._work = work
        self._known: Positions = np.empty(0, np.int64)
        self._pairs: Keys = np.empty(0, np.int64)

    def spans(self, sources: Positions) -> Spans:
        """Where the neighbours of each source begin among all found, and how many there are."""
        distinct = sorted_distinct(sources)
        fresh = distinct[~in_sorted(self._known, distinct)]
        if len(fresh):
            self._lookup(fresh)
        low = np.searchsorted(self._pairs, sources << 32)
        return low, np.searchsorted(self._pairs, (sources + 1) << 32) - low

    def neighbours(
        self, sources: Positions, spans: Spans | None = None
    ) -> tuple[Positions, Positions]:
        """The neighbours of each source: the index of the source, and the neighbour."""
        rows, offsets = expand_spans(*(spans or self.spans(sources)))
        return rows, self._pairs[offsets] & 0xFFFFFFFF

    def has(self, sources: Positions, targets: Positions) -> Mask:
        """Whether each target is a neighbour of its source."""
        self.spans(sources)
        return in_sorted(self._pairs, pair_keys(sources, targets))

    def _lookup(self, sources: Positions) -> None:
        near, far = self._columns
        ids = self._sources.ids(sources)
        wanted = ids.to_pylist()
        rows = lookup_rows(self._table, near, wanted, [near, far], self._predicate, self._work)
        ends = rows.column(far).combine_chunks()
        # Parallel edges are one neighbour, and most endpoints occur in several edges.
        distinct = pc.unique(ends)
        positions = self._targets.positions_of(distinct)
        targets = positions[pc.index_in(ends, value_set=distinct).to_numpy()]
        starts = sources[pc.index_in(rows.column(near).combine_chunks(), value_set=ids).to_numpy()]
        kept = targets >= 0
        pairs = pair_keys(starts[kept], targets[kept])
        self._pairs = sorted_distinct(np.concatenate([self._pairs, pairs]))
        self._known = np.sort(np.concatenate([self._known, sources]))


def lookup_rows(
    table: Table,
    column: str,
    values: Sequence[str],
    columns: Sequence[str],
    predicate: Filter | None,
    work: LookupWork,
) -> pa.Table:
    """The rows in which a text column has one of the values and that match a predicate."""
    found = []
    for start in range(0, max(len(values), 1), LOOKUP_CHUNK):
        wanted: Filter = In(column, tuple(values[start : start + LOOKUP_CHUNK]))
        rows = table.read(list(columns), wanted if predicate is None else And((wanted, predicate)))
        work.add_lookup(table.path, min(len(values), LOOKUP_CHUNK), rows.num_rows)
        found.append(rows)
    return pa.concat_tables(found)
