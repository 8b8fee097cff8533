"""The memory cache of reads, bounded in bytes, and the columns of table versions kept in it.

Everything cached is immutable and can be rebuilt, so eviction costs time and nothing else. A structure of
an earlier table version is patched with the rows that differ, unless those are many.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, cast

from omnigraph.instruments import looked_up
from omnigraph.read.columns import (
    DenseColumn,
    HashIndex,
    TextCodes,
    encode_texts,
    patch_column,
    read_column,
    read_columns,
)
from omnigraph.read.positions import FragmentDiff, Numbering, Positions, diff_fragments
from omnigraph.storage.scan import ROW_ID
from omnigraph.storage.table import Table

if TYPE_CHECKING:
    from omnigraph.read.text_indexes import TextIndexStore
    from omnigraph.read.vectors import VectorColumn, VectorIndex
    from omnigraph.text.index import TextIndex

MAX_PATCH_SHARE: Final = 0.05
"""Share of changed rows up to which a cached structure is patched instead of rebuilt."""

MAX_FETCH_SHARE: Final = 0.02
"""Share of a table's rows up to which fetching single rows beats decoding a column."""

MIN_FETCH_SHARE: Final = 0.005
"""Cost of the smallest fetch, as such a share. After a few of them the column is decoded."""

MAX_EAGER_DECODE_ROWS: Final = 10_000
"""Columns of tables up to this size are decoded on first use."""

SCANS_BEFORE_SORT: Final = 32
"""Scans of a column for one value after which its hash index is built."""

Identity = tuple[Hashable, ...]
"""A table version. Its number alone is ambiguous: a branch may be deleted and created again."""


def identity_of(table: Table) -> Identity:
    return table.lineage.uri, table.version, table.written_at


class Sized(Protocol):
    """A value that knows its size in bytes."""

    @property
    def nbytes(self) -> int: ...


_Cached = TypeVar("_Cached", bound=Sized)


@dataclass(frozen=True, slots=True)
class Note:
    """A small fact kept beside cached values, free of charge."""

    value: Any
    nbytes: int = 0


class ByteCache:
    """A least-recently-used cache bounded in bytes. Thread-safe; values are made outside its lock."""

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._entries: OrderedDict[Hashable, Any] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()
        self._losses = 0

    @property
    def nbytes(self) -> int:
        return self._bytes

    @property
    def losses(self) -> int:
        """Number of evictions. Holders of cached values drop them when it grows."""
        return self._losses

    def get(self, key: Hashable) -> Any | None:
        with self._lock:
            found = self._entries.get(key)
            if found is not None:
                self._entries.move_to_end(key)
            return found

    def put(self, key: Hashable, value: Sized) -> None:
        """Cache a value, unless it alone exceeds the budget."""
        size = value.nbytes
        with self._lock:
            self._remove(key)
            if size > self._budget:
                self._losses += 1
                return
            self._entries[key] = value
            self._bytes += size
            while self._bytes > self._budget:
                self._remove(next(iter(self._entries)))

    def put_if_room(self, key: Hashable, value: Sized) -> None:
        """Cache a value only if nothing has to be evicted for it."""
        with self._lock:
            has_room = self._bytes + value.nbytes <= self._budget
        if has_room:
            self.put(key, value)

    def get_or_make(self, key: Hashable, make: Callable[[], _Cached]) -> _Cached:
        found = self.get(key)
        if found is None:
            found = make()
            self.put(key, found)
        return cast(_Cached, found)

    def note(self, key: Hashable) -> Any | None:
        """The value of a `Note`, if there is one."""
        found: Note | None = self.get(key)
        return None if found is None else found.value

    def clear(self) -> bool:
        """Evict everything; whether there was anything."""
        with self._lock:
            had_some = bool(self._entries)
            self._entries.clear()
            self._bytes = 0
            self._losses += 1
        return had_some

    def _remove(self, key: Hashable) -> None:
        gone = self._entries.pop(key, None)
        if gone is not None and gone.nbytes:
            self._bytes -= gone.nbytes
            self._losses += 1


class GuestCache(ByteCache):
    """The cache of a read at an earlier commit: it reads the newest state's entries and adds its own.

    Its own entries neither replace those of the newest state nor evict anything.
    """

    def __init__(self, host: ByteCache, state: Hashable) -> None:
        super().__init__(0)
        self._host = host
        self._state = state

    def get(self, key: Hashable) -> Any | None:
        found = self._host.get(("guest", self._state, key))
        return self._host.get(key) if found is None else found

    def put(self, key: Hashable, value: Sized) -> None:
        self._host.put_if_room(("guest", self._state, key), value)


class CachedColumns:
    """The columns of one numbered table version."""

    def __init__(
        self, numbering: Numbering, cache: ByteCache, stored: TextIndexStore | None = None
    ) -> None:
        self._numbering = numbering
        self._cache = cache
        self._stored = stored
        # A version whose numbering was evicted is numbered again, maybe in another order.
        self._identity = (identity_of(numbering.table), numbering.origin)

    def cached(self, column: str) -> DenseColumn | None:
        """A column, if it is decoded already."""
        return self._cache.get(("column", *self._identity, column))

    def load(self, column: str) -> DenseColumn:
        """A column, decoded now if necessary."""
        found = self.cached(column)
        looked_up("columns", found=found is not None)
        if found is None:
            found = self._patched_column(column) or read_column(self._numbering, column)
            self._keep("column", column, found)
        return found

    def load_together(self, columns: Iterable[str]) -> None:
        """Decode columns in one scan, apart from those that follow from an earlier version."""
        missing = []
        for column in columns:
            patched = self._patched_column(column)
            if patched is None:
                missing.append(column)
            else:
                self._keep("column", column, patched)
        if missing:
            for column, found in read_columns(self._numbering, missing).items():
                self._keep("column", column, found)

    def codes(self, column: str) -> TextCodes | None:
        """A text column as dictionary codes; None while it is not decoded."""
        key = ("codes", *self._identity, column)
        found: TextCodes | None = self._cache.get(key)
        if found is None:
            decoded = self.cached(column)
            if decoded is None:
                return None
            found = encode_texts(decoded.values)
            self._cache.put(key, found)
        return found

    def hash_index(self, column: str) -> HashIndex | None:
        """The hash index of a column; None until enough scans for single values justify one."""
        found: HashIndex | None = self._cache.get(("hash", *self._identity, column))
        if found is None:
            found = self._patched_hash_index(column) or self._build_hash_index(column)
            if found is not None:
                self._keep("hash", column, found)
        return found

    def should_decode(self, column: str, rows: int) -> bool:
        """Whether to decode a column, given the rows wanted now and those fetched before."""
        size = self._numbering.size
        if rows > MAX_FETCH_SHARE * size or size <= MAX_EAGER_DECODE_ROWS:
            return True
        key = ("fetched", self._numbering.table.path, column)
        fetched = max(rows, MIN_FETCH_SHARE * size) + (self._cache.note(key) or 0)
        self._cache.put(key, Note(fetched))
        return bool(fetched > MAX_FETCH_SHARE * size)

    def text_index(self, column: str) -> TextIndex:
        """The full-text index of a column."""
        found: TextIndex | None = self._cache.get(("texts", *self._identity, column))
        looked_up("texts", found=found is not None)
        if found is None:
            found = self._patched_text_index(column)
            if found is None and self._stored is not None:
                numbering = self._numbering
                found = self._stored.read(numbering.table, column, numbering.row_ids)
            if found is None:
                from omnigraph.text.index import build_index

                found = build_index(self.load(column).values)
            self._keep("texts", column, found)
        return found

    def vectors(self, column: str) -> VectorColumn:
        """A vector column as numbers."""
        from omnigraph.read.vectors import vector_column

        key = ("vectors", *self._identity, column)
        return self._cache.get_or_make(key, lambda: vector_column(self.load(column).values))

    def vector_index(self, column: str) -> VectorIndex | None:
        """The stored index of a vector column, if it is usable."""
        from omnigraph.read.vectors import find_vector_index

        key = ("vector index", *self._identity, column)

        def find() -> Note:
            return Note(find_vector_index(self._numbering.table, column))

        found: VectorIndex | None = self._cache.get_or_make(key, find).value
        return found

    def _build_hash_index(self, column: str) -> HashIndex | None:
        decoded = self.cached(column)
        if decoded is None or self._numbering.size <= MAX_EAGER_DECODE_ROWS:
            return None
        key = ("scans", self._numbering.table.path, column)
        scans = self._cache.note(key) or 0
        self._cache.put(key, Note(scans + 1))
        return None if scans < SCANS_BEFORE_SORT else HashIndex.build(decoded.values)

    # -- from one version to another --------------------------------------------------------

    def _keep(self, kind: str, column: str, value: Sized) -> None:
        self._cache.put((kind, *self._identity, column), value)
        self._cache.put(self._latest_key(kind, column), Note(self._identity))

    def _latest_key(self, kind: str, column: str) -> tuple[object, ...]:
        """Where it is noted which version a structure was cached for last; a type may get wider."""
        table = self._numbering.table
        return (f"latest {kind}", table.path, column, str(table.schema.field(column).type))

    def _earlier(self, kind: str, column: str) -> tuple[Any, FragmentDiff] | None:
        """The structure cached last for a column and how its version differs; None if unusable."""
        numbering = self._numbering
        latest: tuple[Identity, int] | None = self._cache.note(self._latest_key(kind, column))
        if latest is None or latest[1] != numbering.origin:
            return None
        known: Numbering | None = self._cache.get(("rows", *latest[0]))
        value = self._cache.get((kind, *latest, column))
        if known is None or value is None or known.origin != numbering.origin:
            return None
        diff = diff_fragments(known.fragments, numbering.table, MAX_PATCH_SHARE)
        return None if diff is None or known.size > numbering.size else (value, diff)

    def _patched_column(self, column: str) -> DenseColumn | None:
        earlier = self._earlier("column", column)
        return earlier and patch_column(earlier[0], self._numbering, column, earlier[1])

    def _patched_hash_index(self, column: str) -> HashIndex | None:
        earlier = self._earlier("hash", column)
        if earlier is None:
            return None
        index: HashIndex = earlier[0]
        return index.patched(self._changed(earlier[1]))

    def _patched_text_index(self, column: str) -> TextIndex | None:
        earlier = self._earlier("texts", column)
        if earlier is None or earlier[0].changed_share > MAX_PATCH_SHARE:
            return None
        index: TextIndex = earlier[0]
        return index.replaced(self._changed(earlier[1]), self.load(column).values)

    def _changed(self, diff: FragmentDiff) -> Positions:
        return self._numbering.positions(diff.added_rows([ROW_ID]).column(ROW_ID).to_numpy())
