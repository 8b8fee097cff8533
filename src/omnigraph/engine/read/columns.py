"""The columns of a numbered table version: decoded, encoded, searchable, kept in the cache.

What was made of an earlier version is carried on by the rows that differ, unless those are many.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from omnigraph.engine.read.cache import ByteCache, Sized
from omnigraph.engine.read.dense_column import DenseColumn, patched_column, read_column
from omnigraph.engine.read.nodes import Codes, encode
from omnigraph.engine.read.numbering import Difference, Numbering, difference
from omnigraph.storage.scan import ROW_ID
from omnigraph.storage.table import Table

if TYPE_CHECKING:
    from omnigraph.engine.read.stored_texts import StoredTexts
    from omnigraph.engine.read.value_places import ValuePlaces
    from omnigraph.engine.read.vector_index import VectorIndex
    from omnigraph.engine.read.vectors import VectorColumn
    from omnigraph.text.index import TextIndex

REBUILD: Final = 0.05
"""Share of changed rows from which a cached structure is built anew instead of carried on."""

_FEW: Final = 0.02
"""Share of a table's rows up to which fetching single rows beats decoding a column."""

_FEW_AT_LEAST: Final = 0.005
"""What a fetch of next to nothing costs, as such a share. After a few a column is decoded."""

_SMALL: Final = 10_000
"""Rows of a table whose columns are decoded at once."""

_OFTEN: Final = 32
"""So many times a column is looked through for one value before its values are put in order."""

Identity = tuple[Hashable, ...]
"""A table version. Its number alone does not tell: a branch may be deleted and made again."""


def identity_of(table: Table) -> Identity:
    return table.lineage.uri, table.version, table.written_at


@dataclass(frozen=True, slots=True)
class Latest:
    """Which version of a table something was last kept of."""

    identity: Identity
    nbytes: int = 0


@dataclass(frozen=True, slots=True)
class _Fetched:
    """How many rows of a column were fetched one by one."""

    rows: float
    nbytes: int = 0


@dataclass(frozen=True, slots=True)
class _Asked:
    """How often a column was looked through for one value."""

    times: int = 0
    nbytes: int = 0


@dataclass(frozen=True, slots=True)
class _Found:
    """What a look for an index of vectors has found."""

    index: VectorIndex | None
    nbytes: int = 0


class CachedColumns:
    """The columns of one numbered table version."""

    def __init__(
        self, numbering: Numbering, cache: ByteCache, stored: StoredTexts | None = None
    ) -> None:
        self._numbering = numbering
        self._cache = cache
        self._stored = stored
        self._identity = identity_of(numbering.table)

    def cached(self, column: str) -> DenseColumn | None:
        return self._cache.get(("column", *self._identity, column))

    def load(self, column: str) -> DenseColumn:
        found = self.cached(column)
        if found is None:
            found = self._carried_on(column) or read_column(self._numbering, column)
            self._keep("column", column, found)
        return found

    def codes(self, column: str) -> Codes | None:
        key = ("codes", *self._identity, column)
        found: Codes | None = self._cache.get(key)
        if found is None:
            decoded = self.cached(column)
            if decoded is None:
                return None
            found = encode(decoded.values)
            self._cache.put(key, found)
        return found

    def places(self, column: str) -> ValuePlaces | None:
        found: ValuePlaces | None = self._cache.get(("places", *self._identity, column))
        if found is None:
            found = self._places_carried_on(column) or self._places_put_in_order(column)
            if found is not None:
                self._keep("places", column, found)
        return found

    def is_worth_loading(self, column: str, rows: int) -> bool:
        size = self._numbering.size
        if rows > _FEW * size or size <= _SMALL:
            return True
        key = ("fetched", self._numbering.table.path, column)
        earlier: _Fetched | None = self._cache.get(key)
        fetched = max(rows, _FEW_AT_LEAST * size) + (0 if earlier is None else earlier.rows)
        self._cache.put(key, _Fetched(fetched))
        return fetched > _FEW * size

    def texts(self, column: str) -> TextIndex:
        found: TextIndex | None = self._cache.get(("texts", *self._identity, column))
        if found is None:
            found = self._texts_carried_on(column) or self._texts_stored(column)
            if found is None:
                from omnigraph.text.index import build_index

                found = build_index(self.load(column).values)
            self._keep("texts", column, found)
        return found

    def vectors(self, column: str) -> VectorColumn:
        from omnigraph.engine.read.vectors import vector_column

        key = ("vectors", *self._identity, column)
        return self._cache.get_or_make(key, lambda: vector_column(self.load(column).values))

    def vector_index(self, column: str) -> VectorIndex | None:
        from omnigraph.engine.read.vector_index import vector_index

        key = ("vector index", *self._identity, column)

        def look() -> _Found:
            return _Found(vector_index(self._numbering.table, column))

        return self._cache.get_or_make(key, look).index

    def _places_put_in_order(self, column: str) -> ValuePlaces | None:
        decoded = self.cached(column)
        if decoded is None or self._numbering.size <= _SMALL:
            return None
        key = ("asked", self._numbering.table.path, column)
        asked: _Asked = self._cache.get(key) or _Asked()
        self._cache.put(key, _Asked(asked.times + 1))
        if asked.times < _OFTEN:
            return None
        from omnigraph.engine.read.value_places import ValuePlaces

        return ValuePlaces.of(decoded.values)

    # -- from one version to another --------------------------------------------------------

    def _keep(self, kind: str, column: str, value: Sized) -> None:
        self._cache.put((kind, *self._identity, column), value)
        latest = Latest(self._identity)
        self._cache.put((f"latest {kind}", self._numbering.table.path, column), latest)

    def _earlier(self, kind: str, column: str) -> tuple[Any, Difference] | None:
        """What was last kept of a column, and how its version differs; None if that is no help."""
        numbering = self._numbering
        latest: Latest | None = self._cache.get((f"latest {kind}", numbering.table.path, column))
        if latest is None:
            return None
        known: Numbering | None = self._cache.get(("rows", *latest.identity))
        value = self._cache.get((kind, *latest.identity, column))
        if known is None or value is None or known.origin != numbering.origin:
            return None
        change = difference(known.pieces, numbering.table, REBUILD)
        return None if change is None or known.size > numbering.size else (value, change)

    def _carried_on(self, column: str) -> DenseColumn | None:
        earlier = self._earlier("column", column)
        if earlier is None:
            return None
        values, change = earlier
        return patched_column(values, self._numbering, column, change)

    def _places_carried_on(self, column: str) -> ValuePlaces | None:
        earlier = self._earlier("places", column)
        if earlier is None:
            return None
        places: ValuePlaces = earlier[0]
        row_ids = earlier[1].come_rows([ROW_ID]).column(ROW_ID).to_numpy()
        return places.carried_on(self._numbering.positions(row_ids))

    def _texts_stored(self, column: str) -> TextIndex | None:
        if self._stored is None:
            return None
        return self._stored.read(self._numbering.table, column, self._numbering.row_ids)

    def _texts_carried_on(self, column: str) -> TextIndex | None:
        earlier = self._earlier("texts", column)
        if earlier is None:
            return None
        texts: TextIndex = earlier[0]
        if texts.changed_share > REBUILD:
            return None
        row_ids = earlier[1].come_rows([ROW_ID]).column(ROW_ID).to_numpy()
        return texts.replaced(self._numbering.positions(row_ids), self.load(column).values)
