"""Edges as rows with positions: of one type in memory or by look-ups, and of several types together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.model import EdgeType
from omnigraph.plan.ir import Direction
from omnigraph.read.adjacency import Counts, Keys, expand_spans, pair_keys
from omnigraph.read.budget import LookupWork
from omnigraph.read.cache import CachedColumns
from omnigraph.read.incidence import EdgeEnds, Incidence
from omnigraph.read.lookup import LookupNodes, lookup_rows
from omnigraph.read.nodes import Nodes
from omnigraph.read.positions import Mask, Numbering, Positions, in_sorted, sorted_distinct
from omnigraph.storage.filters import Filter
from omnigraph.storage.scan import ROW_ID
from omnigraph.storage.table import Table

MEMBER_BITS: Final = 40
"""Bits of an edge's position; those above have the number of its type among several."""


class EdgesAtNodes(Protocol):
    """The edges that start at nodes in one direction."""

    def counts(self, sources: Positions) -> Counts:
        """How many edges start at each node, or a few more."""
        ...

    def follow(self, sources: Positions) -> tuple[Positions, Positions]:
        """The edges that start at each node: the index of the node, and the edge."""
        ...

    def far(self, edges: Positions) -> Positions:
        """The nodes that edges lead to."""
        ...


class EdgeRows(Nodes):
    """The edges of a type that one reader may see: both ends are visible too."""

    def __init__(
        self,
        declared: EdgeType,
        numbering: Numbering,
        columns: CachedColumns,
        visible: Mask | None,
        ends: EdgeEnds,
        incidence: Callable[[Direction], Incidence],
    ) -> None:
        super().__init__(declared, numbering, columns, visible)
        self._ends = ends
        self._incidence = incidence

    def ends(self, edges: Positions) -> tuple[Positions, Positions]:
        """The nodes at both ends of edges."""
        found = (end.take(edges).astype(np.int64) for end in self._ends.along(Direction.OUT))
        return next(found), next(found)

    def at_nodes(self, direction: Direction) -> EdgesAtNodes:
        return self._incidence(direction)


class LookupEdgeRows(LookupNodes):
    """The visible edges of a type that a query has reached so far. Not shared between queries."""

    def __init__(
        self,
        declared: EdgeType,
        table: Table,
        endpoints: tuple[Nodes, Nodes],
        predicate: Filter | None,
        properties: Sequence[str],
        work: LookupWork,
    ) -> None:
        super().__init__(declared, table, predicate, properties, work)
        self._endpoints = endpoints
        self._sources: Positions = np.empty(0, np.int64)
        self._targets: Positions = np.empty(0, np.int64)
        self._at_nodes: dict[Direction, LookupIncidence] = {}

    id_columns = ("id", ROW_ID, "src", "dst")

    def ends(self, edges: Positions) -> tuple[Positions, Positions]:
        return self._sources[edges], self._targets[edges]

    def at_nodes(self, direction: Direction) -> LookupIncidence:
        found = self._at_nodes.get(direction)
        if found is None:
            found = self._at_nodes[direction] = LookupIncidence(self, direction)
        return found

    def look_up(self, direction: Direction, nodes: Positions) -> tuple[Positions, Positions]:
        """The edges that start at some nodes: the node of each, and the edge."""
        forward = direction is Direction.OUT
        ids = self._endpoints[0 if forward else 1].ids(nodes).to_pylist()
        column = "src" if forward else "dst"
        rows = lookup_rows(self.table, column, ids, self.id_columns, self._predicate, self._work)
        edges = self._register(rows)
        return self.ends(edges)[0 if forward else 1], edges

    def _register(self, rows: pa.Table) -> Positions:
        """As for nodes, but edges with an end that is not visible are left out."""
        known = self.size
        ends = []
        for nodes, name in zip(self._endpoints, ("src", "dst"), strict=True):
            column = rows.column(name).combine_chunks()
            distinct = pc.unique(column)
            positions = nodes.positions_of(distinct)
            hidden = nodes.visible_mask(np.maximum(positions, 0)) if nodes.size else None
            if hidden is not None:
                positions = np.where(hidden, positions, -1)
            at = pc.index_in(column, value_set=distinct).to_numpy()
            ends.append(positions[at] if len(at) else np.empty(0, np.int64))
        kept = (ends[0] >= 0) & (ends[1] >= 0)
        found = super()._register(rows.filter(pa.array(kept)))
        fresh, first = np.unique(found, return_index=True)
        first = first[fresh >= known]
        self._sources = np.concatenate([self._sources, ends[0][kept][first]])
        self._targets = np.concatenate([self._targets, ends[1][kept][first]])
        return found


class LookupIncidence:
    """The edges at nodes, looked up for the nodes that a query reaches."""

    def __init__(self, rows: LookupEdgeRows, direction: Direction) -> None:
        self._rows = rows
        self._direction = direction
        self._known: Positions = np.empty(0, np.int64)
        self._keys: Keys = np.empty(0, np.int64)

    def counts(self, sources: Positions) -> Counts:
        low, high = self._spans(sources)
        return high - low

    def follow(self, sources: Positions) -> tuple[Positions, Positions]:
        low, high = self._spans(sources)
        rows, offsets = expand_spans(low, high - low)
        return rows, self._keys[offsets] & 0xFFFFFFFF

    def far(self, edges: Positions) -> Positions:
        return self._rows.ends(edges)[1 if self._direction is Direction.OUT else 0]

    def _spans(self, sources: Positions) -> tuple[Positions, Positions]:
        distinct = sorted_distinct(sources)
        fresh = distinct[~in_sorted(self._known, distinct)]
        if len(fresh):
            keys = pair_keys(*self._rows.look_up(self._direction, fresh))
            self._keys = sorted_distinct(np.concatenate([self._keys, keys]))
            self._known = np.sort(np.concatenate([self._known, fresh]))
        return np.searchsorted(self._keys, sources << 32), np.searchsorted(
            self._keys, (sources + 1) << 32
        )


AnyEdgeRows = EdgeRows | LookupEdgeRows


class MemberRows(Nodes):
    """Edges of several types. A position has the number of the type in its upper bits."""

    def __init__(self, members: Mapping[str, AnyEdgeRows]) -> None:
        self.members = tuple(members.values())
        self.declared = self.members[0].declared
        self.visible = None

    @property
    def kind(self) -> tuple[str, ...]:
        return tuple(rows.declared.name for rows in self.members)

    @property
    def is_whole(self) -> bool:
        return False

    @property
    def size(self) -> int:
        return sum(rows.size for rows in self.members)

    def all(self) -> Positions:
        return np.concatenate(
            [rows.all() | number << MEMBER_BITS for number, rows in enumerate(self.members)]
        )

    def select(self, predicate: Filter, positions: Positions | None = None) -> Positions:
        if positions is not None:
            return positions[self.matches(predicate, positions)]
        found = [
            rows.select(predicate) | number << MEMBER_BITS
            for number, rows in enumerate(self.members)
        ]
        return np.concatenate(found)

    def are_distinct(self, positions: Positions) -> bool:
        return bool(np.all(positions[1:] > positions[:-1]))

    def distinct(self, positions: Positions) -> tuple[Positions, Positions | None]:
        distinct, inverse = np.unique(positions, return_inverse=True)
        return distinct, inverse

    def values(self, name: str, positions: Positions) -> pa.Array:
        parts, order = [], []
        for number, (rows, at) in enumerate(self._by_member(positions)):
            parts.append(rows.values(name, positions[at] - (number << MEMBER_BITS)))
            order.append(at)
        kinds = {part.type for part in parts}
        if len(kinds) > 1:
            parts = [part.cast(self.arrow_type(name)) for part in parts]
        inverse = np.empty(len(positions), np.int64)
        inverse[np.concatenate(order)] = np.arange(len(positions))
        return pa.concat_arrays(parts).take(pa.array(inverse))

    def read_together(self, names: Iterable[str], positions: Positions) -> dict[str, pa.Array]:
        for number, (rows, at) in enumerate(self._by_member(positions)):
            rows.read_together(names, positions[at] - (number << MEMBER_BITS))
        return {}

    def matches(self, predicate: Filter, positions: Positions) -> Mask:
        met = np.zeros(len(positions), np.bool_)
        for number, (rows, at) in enumerate(self._by_member(positions)):
            met[at] = rows.matches(predicate, positions[at] - (number << MEMBER_BITS))
        return met

    def codes(self, name: str) -> None:
        return None

    def _by_member(self, positions: Positions) -> list[tuple[AnyEdgeRows, Positions]]:
        numbers = positions >> MEMBER_BITS
        return [
            (rows, np.flatnonzero(numbers == number)) for number, rows in enumerate(self.members)
        ]
