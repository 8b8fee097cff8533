"""The nodes of one type at one table version: positions, and columns decoded on demand.

A column wanted for many rows is decoded whole and cached; for few rows only those are fetched.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.arrow import arrow_type
from omnigraph.catalog.model import EdgeType, EntityType, NodeType
from omnigraph.language.schema.ast import ENDPOINTS
from omnigraph.language.types import Scalar
from omnigraph.read.cache import CachedColumns
from omnigraph.read.columns import TextCodes
from omnigraph.read.positions import (
    Mask,
    Numbering,
    Positions,
    are_ascending,
    covers_all,
    distinct_positions,
)
from omnigraph.read.stored_filters import filter_columns
from omnigraph.storage.filters import And, Compare, Comparison, Filter, bind, matches
from omnigraph.storage.scan import ROW_ID

if TYPE_CHECKING:
    from omnigraph.read.vectors import VectorColumn, VectorIndex
    from omnigraph.text.index import TextIndex

MAX_LOOKUP_IDS: Final = 1000
"""Ids up to which single look-ups beat a search among all ids of a larger table."""

MAX_DIRECT_COMPARE_ROWS: Final = 1000
"""Rows up to which texts are compared directly, without dictionary codes."""

MIN_FULL_SCAN_SHARE: Final = 0.25
"""Share of a table's rows from which a predicate is evaluated for all of them."""

MAX_KEY_SPREAD: Final = 8
"""Integer keys spread over more than this many times their number get no direct-address table."""

MAX_FETCHED_VECTORS: Final = 1000
"""Vectors up to which only those are fetched, however often: all may not fit in memory."""

_INTEGER_KEYS: Final = frozenset({Scalar.I32, Scalar.I64, Scalar.U32})

_COMPARE: Final[Mapping[str, Callable[..., Mask]]] = {
    "=": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


class Nodes:
    """The nodes of a type that one reader may see, or its edges."""

    def __init__(
        self,
        declared: EntityType,
        numbering: Numbering,
        columns: CachedColumns,
        visible: Mask | None,
    ) -> None:
        self.declared = declared
        self.numbering = numbering
        self.table = numbering.table
        self.visible = visible
        """Positions the reader may see; None for all."""
        self._columns = columns

    @property
    def kind(self) -> str | tuple[str, ...]:
        """The node type, or the edge types."""
        name = self.declared.name
        return name if isinstance(self.declared, NodeType) else (name,)

    @property
    def is_whole(self) -> bool:
        """Whether all nodes of the type have positions, not only those looked up so far."""
        return True

    @property
    def size(self) -> int:
        """Number of positions, including dead and hidden rows."""
        return self.numbering.size

    def all(self) -> Positions:
        if self.visible is None:
            return self.numbering.all_positions
        return np.flatnonzero(self.visible)

    def covers_all(self, positions: Positions) -> bool:
        """Whether positions are all of the type's, in order."""
        return self.is_whole and (
            self.numbering.is_all_positions(positions) or covers_all(positions, self.size)
        )

    def are_distinct(self, positions: Positions) -> bool:
        """Whether positions are strictly ascending."""
        return self.numbering.is_all_positions(positions) or are_ascending(positions)

    def distinct(self, positions: Positions) -> tuple[Positions, Positions | None]:
        """As `distinct_positions`."""
        if self.numbering.is_all_positions(positions):
            return positions, None
        return distinct_positions(positions)

    def visible_mask(self, positions: Positions) -> Mask | None:
        """Which positions the reader may see; None for all."""
        return None if self.visible is None else self.visible[positions]

    def ids(self, positions: Positions) -> pa.Array:
        return self.values("id", positions)

    def values(self, name: str, positions: Positions) -> pa.Array:
        """The values of a property, or of `id`, at positions."""
        column = self.column_name(name)
        if column is None:
            return pa.nulls(len(positions), self.arrow_type(name))
        dense = self._columns.cached(column)
        if dense is None:
            if not self._columns.should_decode(column, len(positions)):
                return self._fetch(column, positions)
            dense = self._columns.load(column)
        if self.covers_all(positions):
            return dense.values
        return dense.take(positions)

    def read_together(self, names: Iterable[str], positions: Positions) -> dict[str, pa.Array]:
        """Read several properties at once: decodes some, and returns the values of the others.

        A read costs about as much for ten columns as for one, on an object store above all.
        """
        columns = {name: self.column_name(name) for name in names}
        missing = {n: c for n, c in columns.items() if c and self._columns.cached(c) is None}
        if len(missing) < 2:
            return {}
        rows = len(positions)
        few = {n: c for n, c in missing.items() if not self._columns.should_decode(c, rows)}
        self._columns.load_together(c for n, c in missing.items() if n not in few)
        found = self._fetch_all(list(few.values()), positions) if few else []
        return dict(zip(few, found, strict=True))

    def dense(self, name: str) -> pa.Array:
        """The values of a property at all positions."""
        column = self.column_name(name)
        if column is None:
            return pa.nulls(self.size, self.arrow_type(name))
        return self._columns.load(column).values

    def codes(self, name: str) -> TextCodes | None:
        """A text property as dictionary codes; None if it has no usable dictionary."""
        if not self.is_whole or name not in self.declared.properties:
            return None
        kind, column = self.declared.properties[name].type, self.column_name(name)
        if column is None or kind.list or kind.scalar is not Scalar.STRING:
            return None
        found = self._columns.codes(column)
        return None if found is None or found.dictionary is None else found

    def select(self, predicate: Filter, positions: Positions | None = None) -> Positions:
        """The positions, of all or of some, whose row matches a predicate on properties."""
        if positions is not None:
            return positions[self.matches(predicate, positions)]
        few = self._candidates(predicate)
        if few is not None:
            few = few if self.visible is None else few[self.visible[few]]
            return few[self.matches(predicate, few)]
        met = self._match_all(predicate)
        return np.flatnonzero(met if self.visible is None else met & self.visible)

    def matches(self, predicate: Filter, positions: Positions) -> Mask:
        """For which positions, which may repeat, the row matches a predicate."""
        if self.is_whole and len(positions) > MIN_FULL_SCAN_SHARE * self.size:
            return self._match_all(predicate)[positions]
        if isinstance(predicate, And) and predicate.parts:
            return _all(self.matches(part, positions) for part in predicate.parts)
        codes = self._equal_text(predicate) if len(positions) > MAX_DIRECT_COMPARE_ROWS else None
        if codes is not None:
            return np.asarray(codes[0][positions] == codes[1], np.bool_)
        names = sorted(filter_columns(predicate))
        return _evaluate(predicate, {name: self.values(name, positions) for name in names})

    def _candidates(self, predicate: Filter) -> Positions | None:
        """The few positions that can match an equality predicate, by hash index; None if unknown."""
        if isinstance(predicate, And):
            found = (self._candidates(part) for part in predicate.parts)
            return next((few for few in found if few is not None), None)
        if not (isinstance(predicate, Comparison) and predicate.operator == "="):
            return None
        column = self.column_name(predicate.column)
        if column is None:
            return None
        index = self._columns.hash_index(column)
        return None if index is None else index.candidates(predicate.value)

    def _match_all(self, predicate: Filter) -> Mask:
        """Which of all positions match a predicate."""
        if isinstance(predicate, And) and predicate.parts:
            return _all(self._match_all(part) for part in predicate.parts)
        codes = self._equal_text(predicate)
        if codes is not None:
            return np.asarray(codes[0] == codes[1], np.bool_)
        return _evaluate(predicate, {name: self.dense(name) for name in filter_columns(predicate)})

    def _equal_text(self, predicate: Filter) -> tuple[npt.NDArray[np.int32], int] | None:
        """For equality with a text: the codes of the property, and the code of the text."""
        if not (isinstance(predicate, Comparison) and predicate.operator == "="):
            return None
        if not isinstance(predicate.value, str):
            return None
        codes = self.codes(predicate.column)
        return None if codes is None else (codes.codes, codes.code_of(predicate.value))

    def text_index(self, name: str) -> TextIndex:
        """The full-text index of a property."""
        from omnigraph.text.index import build_index

        column = self.column_name(name)
        if column is None:
            return build_index(pa.nulls(self.size, pa.utf8()))
        return self._columns.text_index(column)

    def vectors(self, name: str, positions: Positions) -> tuple[VectorColumn, Positions]:
        """Vectors of a property, and the index of each position among them.

        These are all vectors, unless few are wanted and the column is not in memory yet.
        """
        from omnigraph.read.vectors import vector_column

        column = self.column_name(name)
        if column is None:
            some = pa.nulls(len(positions), self.arrow_type(name))
        elif self._columns.cached(column) is not None or (
            len(positions) > MAX_FETCHED_VECTORS
            and self._columns.should_decode(column, len(positions))
        ):
            return self._columns.vectors(column), positions
        else:
            some = self._fetch(column, positions)
        return vector_column(some), np.arange(len(positions), dtype=np.int64)

    def vector_index(self, name: str) -> VectorIndex | None:
        """The stored vector index of a property, if it is usable."""
        column = self.column_name(name)
        return None if column is None else self._columns.vector_index(column)

    def positions_of(self, ids: pa.Array | pa.ChunkedArray) -> Positions:
        """The positions of ids, hidden nodes included; -1 for ids that no node has."""
        if not len(ids):
            return np.empty(0, np.int64)
        if len(ids) <= MAX_LOOKUP_IDS < self.size:
            flat = ids.combine_chunks() if isinstance(ids, pa.ChunkedArray) else ids
            positions = self._lookup(flat)
        else:
            numbered = self._by_number(ids)
            positions = self._by_text(ids) if numbered is None else numbered
        alive = self.numbering.alive
        if alive is not None:
            positions[(positions >= 0) & ~alive[positions]] = -1
        return np.asarray(positions, np.int64)

    def _by_text(self, ids: pa.Array | pa.ChunkedArray) -> Positions:
        found = pc.fill_null(pc.index_in(ids, value_set=self.dense("id")), -1)
        return np.asarray(found.to_numpy(), np.int64)

    def _by_number(self, ids: pa.Array | pa.ChunkedArray) -> Positions | None:
        """The positions of ids that spell an integer key; None if the key is unsuitable.

        A direct-address table of dense numbers is many times faster than a search for texts.
        """
        key = (self.declared.key or ()) if isinstance(self.declared, NodeType) else ()
        if len(key) != 1 or self.declared.properties[key[0]].type.scalar not in _INTEGER_KEYS:
            return None
        wanted = _as_numbers(ids)
        if wanted is None or not self.size or self.column_name(key[0]) is None:
            return None
        numbers = self.dense(key[0]).to_numpy(zero_copy_only=False).astype(np.int64)
        rows = self.numbering.all_positions
        if self.numbering.alive is not None:
            rows = rows[self.numbering.alive]
            numbers = numbers[self.numbering.alive]
        low, high = int(numbers.min(initial=0)), int(numbers.max(initial=0))
        if high - low > MAX_KEY_SPREAD * self.size:
            return None
        table = np.full(high - low + 2, -1, np.int64)
        table[numbers - low] = rows
        # The last slot stands for all numbers that no node has.
        outside = (wanted < low) | (wanted > high)
        return table[np.where(outside, high - low + 1, wanted - low)]

    def _lookup(self, ids: pa.Array) -> Positions:
        rows = self.table.lookup(pc.unique(ids), ["id", ROW_ID])
        at = pc.index_in(ids, value_set=rows.column("id").combine_chunks())
        found = np.append(self.numbering.positions(rows.column(ROW_ID).to_numpy()), -1)
        return np.asarray(found[pc.fill_null(at, -1).to_numpy(zero_copy_only=False)], np.int64)

    def arrow_type(self, name: str) -> pa.DataType:
        if name not in self.declared.properties:
            return pa.utf8()
        return arrow_type(self.declared.properties[name].type)

    def column_name(self, name: str) -> str | None:
        """The stored column of a property; None if this table version does not have it."""
        is_system = name == "id" or (isinstance(self.declared, EdgeType) and name in ENDPOINTS)
        column = name if is_system else self.declared.properties[name].column
        return column if self.table.has_column(column) else None

    def _fetch(self, column: str, positions: Positions) -> pa.Array:
        return self._fetch_all([column], positions)[0]

    def _fetch_all(self, columns: Sequence[str], positions: Positions) -> list[pa.Array]:
        """The values of columns at a few positions."""
        if not len(positions):
            rows = self.table.schema.empty_table()
            return [rows.column(column).combine_chunks() for column in columns]
        distinct, inverse = np.unique(positions, return_inverse=True)
        rows = self.table.take(pa.array(self.numbering.row_ids[distinct]), list(columns))
        at = pa.array(inverse)
        return [rows.column(column).combine_chunks().take(at) for column in columns]


def _as_numbers(ids: pa.Array | pa.ChunkedArray) -> Positions | None:
    """Ids as numbers, if all of them are canonical spellings of integers."""
    padded = pc.and_(pc.starts_with(ids, "0"), pc.greater(pc.binary_length(ids), 1))
    if ids.null_count or pc.any(pc.or_(padded, pc.starts_with(ids, "-0"))).as_py():
        return None
    try:
        return np.asarray(pc.cast(ids, pa.int64()).to_numpy(), np.int64)
    except pa.ArrowInvalid:
        return None


def _all(masks: Iterable[Mask]) -> Mask:
    return functools.reduce(np.logical_and, masks)


def _evaluate(predicate: Filter, columns: dict[str, pa.Array]) -> Mask:
    rows = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
    bound = bind(predicate, rows.schema)
    if isinstance(bound, Compare) and pa.types.is_integer(bound.value.type):
        values = columns[bound.column]
        if not values.null_count:
            # Yields a byte mask directly, without an Arrow bit mask in between.
            return _COMPARE[bound.operator](values.to_numpy(), bound.value.as_py())
    met = matches(bound, rows)
    return np.asarray(met.to_numpy(zero_copy_only=False), np.bool_)
