"""Nodes and edges that are looked up when a query comes to them: nothing is decoded as a whole.

For a query that begins at few nodes of a graph of which nothing is in memory yet. Nodes are numbered
in the order they are found, and only those the reader may see are found at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.model import EdgeType, NodeType
from omnigraph.engine.read.access import Work
from omnigraph.engine.read.adjacency import Keys, Spans, pair_keys, spread_out
from omnigraph.engine.read.nodes import Nodes
from omnigraph.engine.read.numbering import Mask, Positions, distinct_sorted, is_among
from omnigraph.engine.read.stored import stored_filter
from omnigraph.language.types import Scalar
from omnigraph.limits import LOOKUP_CHUNK
from omnigraph.plan.cost import FOUND_COST, LOOKUP_COST
from omnigraph.plan.ir import Direction
from omnigraph.storage.filters import And, Comparison, Filter, In
from omnigraph.storage.scan import ROW_ID
from omnigraph.storage.table import Table


class LookedUpNodes(Nodes):
    """The nodes of a type, as far as a query has come to them. Not shared between queries."""

    def __init__(
        self,
        declared: NodeType,
        table: Table,
        predicate: Filter | None,
        wanted: Sequence[str],
        work: Work,
    ) -> None:
        """`wanted` are properties that are fetched together as soon as one of them is."""
        self.declared = declared
        self.visible = None
        self._table = table
        self._predicate = stored_filter(declared, predicate, table.schema)
        self._wanted = frozenset(filter(None, map(self.column_name, wanted)))
        self._work = work
        self._places: dict[str, int] = {}
        self._row_ids: npt.NDArray[np.uint64] = np.empty(0, np.uint64)
        self._columns_at: dict[str, tuple[Positions, pa.Array]] = {}

    @property
    def is_whole(self) -> bool:
        return False

    @property
    def size(self) -> int:
        return len(self._row_ids)

    def all(self) -> Positions:
        return self._find(None)

    def find(self, predicates: Sequence[Filter], most: int | None = None) -> Positions:
        """The nodes, or at most so many of them, that meet all predicates on properties."""
        parts = [*predicates, *(key for part in predicates for key in self._key_of(part))]
        stored = stored_filter(self.declared, And(tuple(parts)), self._table.schema)
        return self._find(stored if parts else None, most)

    def select(self, predicate: Filter, positions: Positions | None = None) -> Positions:
        return self.find([predicate]) if positions is None else super().select(predicate, positions)

    def ids(self, positions: Positions) -> pa.Array:
        return pa.array(list(self._places), pa.utf8()).take(pa.array(positions))

    def values(self, name: str, positions: Positions) -> pa.Array:
        if name == "id":
            return self.ids(positions)
        column = self.column_name(name)
        if column is None:
            return pa.nulls(len(positions), self.arrow_type(name))
        if not len(positions):
            return self._table.schema.empty_table().column(column).combine_chunks()
        distinct = distinct_sorted(positions)
        known, fetched = self._columns_at.get(column, (distinct[:0], None))
        place = np.minimum(np.searchsorted(known, positions), max(len(known) - 1, 0))
        if fetched is None or not np.array_equal(known[place], positions):
            self._fetch_columns(self._wanted | {column}, distinct)
            _, fetched = self._columns_at[column]
            place = np.searchsorted(distinct, positions)
        return fetched.take(pa.array(place))

    def column_name(self, name: str) -> str | None:
        column = "id" if name == "id" else self.declared.properties[name].column
        return column if column in self._table.schema.names else None

    def positions_of(self, ids: pa.Array) -> Positions:
        """The positions of ids, -1 for those no node has that the reader may see."""
        missing = [id for id in pc.unique(ids).to_pylist() if id not in self._places]
        if missing:
            columns = ["id", ROW_ID]
            found = look_up(self._table, "id", missing, columns, self._predicate, self._work)
            self._register(found)
        places = self._places
        return np.fromiter((places.get(id, -1) for id in ids.to_pylist()), np.int64, len(ids))

    def _key_of(self, predicate: Filter) -> Iterator[Filter]:
        """What a predicate about the key says about the id, by which nodes are found quickest."""
        match predicate:
            case Comparison(column, "=", value) if (column,) == self.declared.key:
                scalar = self.declared.properties[column].type.scalar
                is_text = scalar is Scalar.STRING and isinstance(value, str)
                if is_text or (scalar.is_integer and type(value) is int):
                    yield Comparison("id", "=", str(value))

    def _find(self, predicate: Filter | None, most: int | None = None) -> Positions:
        parts = tuple(part for part in (predicate, self._predicate) if part is not None)
        if most is not None and most >= self._table.row_count():
            most = None
        rows = self._table.read(["id", ROW_ID], And(parts) if parts else None, limit=most)
        self._work.add(self._table.path, LOOKUP_COST + FOUND_COST * rows.num_rows)
        return np.sort(self._register(rows))

    def _register(self, rows: pa.Table) -> Positions:
        """Number nodes that were found; those that had a number keep it."""
        fresh: list[int] = []
        found = np.empty(rows.num_rows, np.int64)
        for row, id in enumerate(rows.column("id").to_pylist()):
            place = self._places.setdefault(id, len(self._places))
            found[row] = place
            if place >= self.size + len(fresh):
                fresh.append(row)
        row_ids = rows.column(ROW_ID).to_numpy()[fresh]
        self._row_ids = np.concatenate([self._row_ids, row_ids])
        return found

    def _fetch_columns(self, columns: frozenset[str], positions: Positions) -> None:
        names = sorted(columns)
        rows = self._table.take(pa.array(self._row_ids[positions]), names)
        self._work.look_up(self._table.path, 0, len(positions))
        for name in names:
            self._columns_at[name] = (positions, rows.column(name).combine_chunks())


class LookedUpEdges:
    """Neighbours over an edge type, looked up for the sources a query comes to."""

    def __init__(
        self,
        edge: EdgeType,
        direction: Direction,
        table: Table,
        ends: tuple[Nodes, Nodes],
        predicate: Filter | None,
        work: Work,
    ) -> None:
        """`ends` are the nodes of the type the edges start from and of that they lead to."""
        forward = direction is Direction.OUT
        self._columns = ["src", "dst"] if forward else ["dst", "src"]
        self._sources, self._targets = ends if forward else ends[::-1]
        self._table = table
        self._predicate = stored_filter(edge, predicate, table.schema)
        self._work = work
        self._known: Positions = np.empty(0, np.int64)
        self._pairs: Keys = np.empty(0, np.int64)

    def spans(self, sources: Positions) -> Spans:
        """Where the neighbours of each source begin among all found, and how many there are."""
        low, high = self._ranges(sources)
        return low, high - low

    def neighbours(
        self, sources: Positions, spans: Spans | None = None
    ) -> tuple[Positions, Positions]:
        """For each source its neighbours: the index of the source, and the neighbour."""
        rows, places = spread_out(*(spans or self.spans(sources)))
        return rows, self._pairs[places] & 0xFFFFFFFF

    def has(self, sources: Positions, targets: Positions) -> Mask:
        """Whether each target is a neighbour of its source."""
        self._ranges(sources)
        return is_among(self._pairs, pair_keys(sources, targets))

    def _ranges(self, sources: Positions) -> tuple[Positions, Positions]:
        """Where in the pairs the neighbours of each source begin and end."""
        distinct = distinct_sorted(sources)
        fresh = distinct[~is_among(self._known, distinct)]
        if len(fresh):
            self._look_up(fresh)
        low = np.searchsorted(self._pairs, sources << 32)
        return low, np.searchsorted(self._pairs, (sources + 1) << 32)

    def _look_up(self, sources: Positions) -> None:
        near, far = self._columns
        ids = self._sources.ids(sources)
        wanted = ids.to_pylist()
        rows = look_up(self._table, near, wanted, [near, far], self._predicate, self._work)
        ends = rows.column(far).combine_chunks()
        # Parallel edges are one neighbour, and most ends are known by several edges.
        distinct = pc.unique(ends)
        positions = self._targets.positions_of(distinct)
        targets = positions[pc.index_in(ends, value_set=distinct).to_numpy()]
        starts = sources[pc.index_in(rows.column(near).combine_chunks(), value_set=ids).to_numpy()]
        kept = targets >= 0
        pairs = pair_keys(starts[kept], targets[kept])
        self._pairs = distinct_sorted(np.concatenate([self._pairs, pairs]))
        self._known = np.sort(np.concatenate([self._known, sources]))


def look_up(
    table: Table,
    column: str,
    values: Sequence[str],
    columns: Sequence[str],
    predicate: Filter | None,
    work: Work,
) -> pa.Table:
    """The rows in which a text column has one of the values and that meet a predicate."""
    found = []
    for start in range(0, max(len(values), 1), LOOKUP_CHUNK):
        wanted: Filter = In(column, tuple(values[start : start + LOOKUP_CHUNK]))
        rows = table.read(columns, wanted if predicate is None else And((wanted, predicate)))
        work.look_up(table.path, min(len(values), LOOKUP_CHUNK), rows.num_rows)
        found.append(rows)
    return pa.concat_tables(found)
