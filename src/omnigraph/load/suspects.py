"""The rows of a load that may violate a rule together, brought together without the others.

Buckets name suspicious keys: ids and tuples that occur twice or are taken, endpoints that no node has,
sources with too many or too few edges. Rows with such a key are validated like those of a whole load
(`omnigraph.load.set_validation`); what that needs to know of all other rows is added here: which endpoints are
absent, and which committed rows the load replaces.
Tests: tests/unit/load/test_bucket_validation.py, tests/spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.constraints import other_unique_groups
from omnigraph.catalog.model import Catalog, EdgeType, EntityType, Group
from omnigraph.load.records import Mask
from omnigraph.load.set_validation import CommittedRows, LoadMode, given_ids
from omnigraph.rows.equality import Hashes, hashes_of_tuples
from omnigraph.rows.keys import distinct_tuples, tuples_of

_NO_IDS: Final = pa.array([], pa.utf8())


@dataclass(slots=True)
class Suspects:
    """Suspicious keys by type, each kind as it is looked for in rows."""

    ids: dict[str, pa.Array] = field(default_factory=dict)
    """By table key: ids that occur twice or are taken."""
    tuples: dict[tuple[str, Group], pa.Array] = field(default_factory=dict)
    """By table key and unique group: hashes of tuples. Another tuple may have the same hash."""
    sources: dict[str, pa.Array] = field(default_factory=dict)
    """By table key of edges: nodes with too many or too few of them."""
    absent: dict[str, pa.Array] = field(default_factory=dict)
    """By name of a node type: endpoints that no node has."""

    def __bool__(self) -> bool:
        return bool(self.ids or self.tuples or self.sources or self.absent)

    def update(self, other: Suspects) -> None:
        """Add those of another bucket."""
        _extend(self.ids, other.ids)
        _extend(self.tuples, other.tuples)
        _extend(self.sources, other.sources)
        _extend(self.absent, other.absent)

    def rows_of(self, declared: EntityType, rows: pa.Table) -> pa.Table:
        """Located rows of a type that have a suspicious key."""
        found: Mask = np.zeros(rows.num_rows, np.bool_)
        key = declared.table_key
        if key in self.ids:
            found |= _is_in(rows.column("id"), self.ids[key])
        for group in other_unique_groups(declared):
            if (key, group) in self.tuples:
                tuples, numbers = tuples_of(rows, group)
                hashes = pa.array(tuple_hashes(tuples))
                found[numbers[_is_in(hashes, self.tuples[key, group])]] = True
        if isinstance(declared, EdgeType):
            if key in self.sources:
                found |= _is_in(rows.column("src"), self.sources[key])
            for end, name in (("src", declared.from_type), ("dst", declared.to_type)):
                if name in self.absent:
                    found |= _is_in(rows.column(end), self.absent[name])
        return rows.filter(pa.array(found))

    def sources_left_out(self, catalog: Catalog, tables: Mapping[str, pa.Table]) -> Suspects:
        """Sources of rows that were found whose other edges were not, where edges are counted."""
        left = Suspects()
        for key, rows in tables.items():
            declared = catalog.entity(key)
            if isinstance(declared, EdgeType) and has_bounds(declared) and rows.num_rows:
                sources = pc.unique(rows.column("src"))
                known = self.sources.get(key, _NO_IDS)
                missing = sources.filter(pc.invert(pc.is_in(sources, value_set=known)))
                if len(missing):
                    left.sources[key] = missing
        return left


def has_bounds(edge: EdgeType) -> bool:
    """Whether edges of a type are counted by source."""
    return edge.cardinality.low > 1 or edge.cardinality.high is not None


def tuple_hashes(tuples: pa.Table) -> Hashes:
    """The hashes of tuples as suspects have them."""
    return hashes_of_tuples([column.combine_chunks() for column in tuples.columns])


def replaceable(
    catalog: Catalog, tables: Mapping[str, pa.Table], mode: LoadMode, committed: CommittedRows
) -> dict[str, pa.Array]:
    """By table key: ids of committed rows that matter to these rows unless the load replaces them."""
    found: dict[str, pa.Array] = {}
    for key, rows in tables.items() if mode != "overwrite" else ():
        declared, parts = catalog.entity(key), [_NO_IDS]
        given = pc.unique(given_ids(rows))
        for group in other_unique_groups(declared):
            distinct = distinct_tuples(rows, group)
            owners = committed.owners(declared, group, distinct, given)
            parts.append(owners.column("id").combine_chunks())
        if isinstance(declared, EdgeType) and has_bounds(declared) and declared.identity is None:
            sources = pc.unique(rows.column("src"))
            parts.append(committed.leaving(declared, sources, given))
        ids = pc.unique(pa.concat_arrays(parts))
        if len(ids):
            found[key] = ids
    return found


@dataclass(frozen=True, slots=True)
class CommittedBeside:
    """Committed rows for some rows of a load, but for those that other rows of it replace."""

    committed: CommittedRows
    replaced: Mapping[str, pa.Array]
    """Their ids by table key."""

    def existing(self, declared: EntityType, ids: pa.Array) -> pa.Array:
        return self.committed.existing(declared, ids)

    def owners(
        self, declared: EntityType, group: Group, tuples: pa.Table, without: pa.Array
    ) -> pa.Table:
        return self.committed.owners(declared, group, tuples, self._all(declared, without))

    def stored(self, declared: EntityType, ids: pa.Array, names: Sequence[str]) -> pa.Table:
        return self.committed.stored(declared, ids, names)

    def outgoing(self, edge: EdgeType, sources: pa.Array, without: pa.Array) -> pa.Table:
        return self.committed.outgoing(edge, sources, self._all(edge, without))

    def leaving(self, edge: EdgeType, sources: pa.Array, without: pa.Array) -> pa.Array:
        return self.committed.leaving(edge, sources, self._all(edge, without))

    def _all(self, declared: EntityType, without: pa.Array) -> pa.Array:
        others = self.replaced.get(declared.table_key, _NO_IDS)
        return pc.unique(pa.concat_arrays([without, others]))


Key = TypeVar("Key")


def _extend(mine: dict[Key, pa.Array], others: Mapping[Key, pa.Array]) -> None:
    for key, values in others.items():
        parts = [mine[key], values] if key in mine else [values]
        mine[key] = pc.unique(pa.concat_arrays(parts))


def _is_in(column: pa.Array | pa.ChunkedArray, values: pa.Array) -> Mask:
    mask: Mask = pc.is_in(column, value_set=values).to_numpy(zero_copy_only=False)
    return mask


def joined(parts: Iterable[Mapping[str, pa.Table]]) -> dict[str, pa.Table]:
    """The tables of several splits by table key, in their order."""
    tables: dict[str, list[pa.Table]] = {}
    for part in parts:
        for key, rows in part.items():
            tables.setdefault(key, []).append(rows)
    return {key: pa.concat_tables(rows) for key, rows in sorted(tables.items())}
