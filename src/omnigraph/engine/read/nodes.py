"""The nodes of one type at one version, numbered, with columns that are decoded when needed.

A column that is asked for many rows is decoded whole and kept; for few rows just those are fetched.
"""

from __future__ import annotations

import functools
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.arrow import arrow_type
from omnigraph.catalog.model import NodeType
from omnigraph.engine.read.dense_column import DenseColumn
from omnigraph.engine.read.numbering import (
    Mask,
    Numbering,
    Positions,
    are_ascending,
    distinct_positions,
    is_everything,
)
from omnigraph.engine.read.stored import filter_columns
from omnigraph.language.types import Scalar
from omnigraph.storage.filters import And, Compare, Comparison, Filter, bind, matches
from omnigraph.storage.scan import ROW_ID

if TYPE_CHECKING:
    from omnigraph.engine.read.value_places import ValuePlaces
    from omnigraph.engine.read.vector_index import VectorIndex
    from omnigraph.engine.read.vectors import VectorColumn
    from omnigraph.text.index import TextIndex

_FEW_IDS: Final = 1000
"""Ids that are looked up one by one in a table of more nodes than this."""

_FEW_ROWS: Final = 1000
"""Rows whose texts are compared as they are, without numbering all texts of the column."""

_MANY: Final = 0.25
"""Share of a table's rows from which a predicate is looked at for all of them."""

_COMPARE: Final[Mapping[str, Callable[..., Mask]]] = {
    "=": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}

_MANY_TEXTS: Final = 0.125
"""Share of a column's rows from which distinct texts are too many to number them."""

_NUMBERED: Final = frozenset({Scalar.I32, Scalar.I64, Scalar.U32})
_LOOSE: Final = 8
"""Keys spread over more than this many times their number are not looked up in a table."""

_FEW_TEXTS: Final = 10_000
"""So many distinct texts are never too many."""

_SOME_TEXTS: Final = 20_000
"""Texts drawn from a column. If almost all of them differ, more than `_MANY_TEXTS` of all do."""

_FEW_VECTORS: Final = 1000
"""So many vectors are fetched by themselves however often: all of them may not even fit in memory."""


@dataclass(frozen=True, slots=True)
class Codes:
    """A column of text as numbers: places in a sorted list of its distinct texts, -1 for null.

    `texts` is None for a column with so many different texts that numbers would not help.
    """

    numbers: npt.NDArray[np.int32]
    texts: pa.Array | None

    @property
    def nbytes(self) -> int:
        return int(self.numbers.nbytes + (0 if self.texts is None else self.texts.nbytes))

    def place(self, text: str) -> int:
        """The number of a text; one that no row has for a text that is nowhere."""
        texts = self.texts
        assert texts is not None
        # Python orders texts by code points, and the bytes of UTF-8 are in the same order.
        place = bisect_left(range(len(texts)), text, key=lambda number: texts[number].as_py())
        return place if place < len(texts) and texts[place].as_py() == text else -2


class Columns(Protocol):
    """The columns of a table version, in the order of its numbering."""

    def cached(self, column: str) -> DenseColumn | None:
        """A column, if it was decoded before."""
        ...

    def load(self, column: str) -> DenseColumn:
        """A column, decoded now if need be."""
        ...

    def texts(self, column: str) -> TextIndex:
        """A column of texts, searchable."""
        ...

    def vectors(self, column: str) -> VectorColumn:
        """A column of vectors, as numbers."""
        ...

    def vector_index(self, column: str) -> VectorIndex | None:
        """What finds the nearest of very many vectors; None if nothing does."""
        ...

    def codes(self, column: str) -> Codes | None:
        """A column of text as numbers; None while it is not decoded."""
        ...

    def places(self, column: str) -> ValuePlaces | None:
        """Where the values of a column are; None while it is not asked for single ones often."""
        ...

    def is_worth_loading(self, column: str, rows: int) -> bool:
        """Whether to decode a column of which so many rows are wanted now, others before."""
        ...


class Nodes:
    """The nodes of a type as one reader sees them."""

    def __init__(
        self,
        declared: NodeType,
        numbering: Numbering,
        columns: Columns,
        visible: Mask | None,
    ) -> None:
        self.declared = declared
        self.numbering = numbering
        self.visible = visible
        """Positions the reader may see; None when that is all of them."""
        self._columns = columns

    @property
    def is_whole(self) -> bool:
        """Whether all nodes of the type are numbered, not only those that were come across."""
        return True

    @property
    def size(self) -> int:
        """How many positions there are, those of dead and hidden rows included."""
        return self.numbering.size

    def all(self) -> Positions:
        if self.visible is None:
            return self.numbering.everything
        return np.flatnonzero(self.visible)

    def is_everything(self, positions: Positions) -> bool:
        """Whether positions are all there are, in order."""
        return self.is_whole and (
            self.numbering.is_everything(positions) or is_everything(positions, self.size)
        )

    def are_distinct(self, positions: Positions) -> bool:
        """Whether positions are in order, none of them twice."""
        return self.numbering.is_everything(positions) or are_ascending(positions)

    def distinct(self, positions: Positions) -> tuple[Positions, Positions | None]:
        """The distinct ones in order, and where each of the given is among them; None for in place."""
        if self.numbering.is_everything(positions):
            return positions, None
        return distinct_positions(positions)

    def keep_visible(self, positions: Positions) -> Mask | None:
        """Which of the positions may be seen; None when all may."""
        return None if self.visible is None else self.visible[positions]

    def ids(self, positions: Positions) -> pa.Array:
        return self.values("id", positions)

    def values(self, name: str, positions: Positions) -> pa.Array:
        """The values of a property (or of `id`) at positions."""
        column = self.column_name(name)
        if column is None:
            return pa.nulls(len(positions), self.arrow_type(name))
        dense = self._columns.cached(column)
        if dense is None:
            if not self._columns.is_worth_loading(column, len(positions)):
                return self._fetch(column, positions)
            dense = self._columns.load(column)
        if self.is_everything(positions):
            return dense.values
        return dense.take(positions)

    def dense(self, name: str) -> pa.Array:
        """The values of a property at all positions."""
        column = self.column_name(name)
        if column is None:
            return pa.nulls(self.size, self.arrow_type(name))
        return self._columns.load(column).values

    def codes(self, name: str) -> Codes | None:
        """A text property as numbers at all positions; None where that does not help."""
        if not self.is_whole or name == "id":
            return None
        kind, column = self.declared.properties[name].type, self.column_name(name)
        if column is None or kind.list or kind.scalar is not Scalar.STRING:
            return None
        found = self._columns.codes(column)
        return None if found is None or found.texts is None else found

    def select(self, predicate: Filter, positions: Positions | None = None) -> Positions:
        """The positions, of all or of some, whose row meets a predicate on properties."""
        if positions is not None:
            return positions[self.meets(predicate, positions)]
        few = self._candidates(predicate)
        if few is not None:
            few = few if self.visible is None else few[self.visible[few]]
            return few[self.meets(predicate, few)]
        met = self._everywhere(predicate)
        return np.flatnonzero(met if self.visible is None else met & self.visible)

    def meets(self, predicate: Filter, positions: Positions) -> Mask:
        """For which of the positions, some of them repeated, the row meets a predicate."""
        if self.is_whole and len(positions) > _MANY * self.size:
            return self._everywhere(predicate)[positions]
        if isinstance(predicate, And) and predicate.parts:
            return _all(self.meets(part, positions) for part in predicate.parts)
        codes = self._equal_text(predicate) if len(positions) > _FEW_ROWS else None
        if codes is not None:
            return np.asarray(codes[0][positions] == codes[1], np.bool_)
        names = sorted(filter_columns(predicate))
        return _met(predicate, {name: self.values(name, positions) for name in names})

    def _candidates(self, predicate: Filter) -> Positions | None:
        """The few positions that can meet a predicate which asks for one value; None for others."""
        if isinstance(predicate, And):
            found = (self._candidates(part) for part in predicate.parts)
            return next((few for few in found if few is not None), None)
        if not (isinstance(predicate, Comparison) and predicate.operator == "="):
            return None
        column = self.column_name(predicate.column)
        if column is None:
            return None
        places = self._columns.places(column)
        return None if places is None else places.candidates(predicate.value)

    def _everywhere(self, predicate: Filter) -> Mask:
        """At which of all positions a predicate is met."""
        if isinstance(predicate, And) and predicate.parts:
            return _all(self._everywhere(part) for part in predicate.parts)
        codes = self._equal_text(predicate)
        if codes is not None:
            return np.asarray(codes[0] == codes[1], np.bool_)
        return _met(predicate, {name: self.dense(name) for name in filter_columns(predicate)})

    def _equal_text(self, predicate: Filter) -> tuple[npt.NDArray[np.int32], int] | None:
        """Where a predicate says that a property is a text: its numbers, and that of the text."""
        if not (isinstance(predicate, Comparison) and predicate.operator == "="):
            return None
        if not isinstance(predicate.value, str):
            return None
        codes = self.codes(predicate.column)
        return None if codes is None else (codes.numbers, codes.place(predicate.value))

    def texts(self, name: str) -> TextIndex:
        """The texts of a property at all positions, searchable."""
        from omnigraph.text.index import build_index

        column = self.column_name(name)
        if column is None:
            return build_index(pa.nulls(self.size, pa.utf8()))
        return self._columns.texts(column)

    def vectors(self, name: str, positions: Positions) -> tuple[VectorColumn, Positions]:
        """The vectors of a property, and where among them those at positions are.

        All of them, unless few are wanted and they are not in memory yet.
        """
        from omnigraph.engine.read.vectors import vector_column

        column = self.column_name(name)
        if column is None:
            some = pa.nulls(len(positions), self.arrow_type(name))
        elif self._columns.cached(column) is not None or (
            len(positions) > _FEW_VECTORS and self._columns.is_worth_loading(column, len(positions))
        ):
            return self._columns.vectors(column), positions
        else:
            some = self._fetch(column, positions)
        return vector_column(some), np.arange(len(positions), dtype=np.int64)

    def vector_index(self, name: str) -> VectorIndex | None:
        """What finds the nearest of very many vectors of a property; None if nothing does."""
        column = self.column_name(name)
        return None if column is None else self._columns.vector_index(column)

    def positions_of(self, ids: pa.Array | pa.ChunkedArray) -> Positions:
        """The positions of ids, -1 for those no living node has, seen or not."""
        if not len(ids):
            return np.empty(0, np.int64)
        if len(ids) <= _FEW_IDS < self.size:
            flat = ids.combine_chunks() if isinstance(ids, pa.ChunkedArray) else ids
            positions = self._look_up(flat)
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
        """The positions of ids that are the text of an integer key; None when that is no help.

        Numbers that lie close together are found in a table, many times quicker than texts.
        """
        key = self.declared.key or ()
        if len(key) != 1 or self.declared.properties[key[0]].type.scalar not in _NUMBERED:
            return None
        wanted = _as_numbers(ids)
        if wanted is None or not self.size or self.column_name(key[0]) is None:
            return None
        numbers = self.dense(key[0]).to_numpy(zero_copy_only=False).astype(np.int64)
        rows = self.numbering.everything
        if self.numbering.alive is not None:
            rows = rows[self.numbering.alive]
            numbers = numbers[self.numbering.alive]
        low, high = int(numbers.min(initial=0)), int(numbers.max(initial=0))
        if high - low > _LOOSE * self.size:
            return None
        table = np.full(high - low + 2, -1, np.int64)
        table[numbers - low] = rows
        # The last place is that of all numbers no node has.
        outside = (wanted < low) | (wanted > high)
        return table[np.where(outside, high - low + 1, wanted - low)]

    def _look_up(self, ids: pa.Array) -> Positions:
        rows = self.numbering.table.lookup(pc.unique(ids), ["id", ROW_ID])
        place = pc.index_in(ids, value_set=rows.column("id").combine_chunks())
        known = self.numbering.positions(rows.column(ROW_ID).to_numpy())
        found = np.append(known, -1)
        return np.asarray(found[pc.fill_null(place, -1).to_numpy(zero_copy_only=False)], np.int64)

    def arrow_type(self, name: str) -> pa.DataType:
        if name == "id":
            return pa.utf8()
        return arrow_type(self.declared.properties[name].type)

    def column_name(self, name: str) -> str | None:
        """Where a property is stored; None for one this version of the table does not have."""
        column = "id" if name == "id" else self.declared.properties[name].column
        return column if column in self.numbering.table.schema.names else None

    def _fetch(self, column: str, positions: Positions) -> pa.Array:
        if not len(positions):
            return self.numbering.table.schema.empty_table().column(column).combine_chunks()
        distinct, places = np.unique(positions, return_inverse=True)
        row_ids = pa.array(self.numbering.row_ids[distinct])
        rows = self.numbering.table.take(row_ids, [column]).column(column).combine_chunks()
        return rows.take(pa.array(places))


def encode(values: pa.Array) -> Codes:
    """The codes of a column of text."""
    if _are_mostly_different(values):
        return Codes(np.empty(0, np.int32), None)
    encoded = values.dictionary_encode()
    texts = encoded.dictionary
    if len(texts) > max(_MANY_TEXTS * len(values), _FEW_TEXTS):
        return Codes(np.empty(0, np.int32), None)
    order = pc.sort_indices(texts)
    ranks = np.empty(len(texts) + 1, np.int32)
    ranks[order.to_numpy()] = np.arange(len(texts), dtype=np.int32)
    ranks[-1] = -1
    numbers = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)
    return Codes(ranks[numbers], texts.take(order))


def _are_mostly_different(values: pa.Array) -> bool:
    """Whether some of very many texts tell that too many are different to number them."""
    if len(values) <= 8 * _SOME_TEXTS:
        return False
    some = values.take(pa.array(np.random.default_rng(0).integers(0, len(values), _SOME_TEXTS)))
    return len(some.unique()) > 0.95 * _SOME_TEXTS


def _as_numbers(ids: pa.Array | pa.ChunkedArray) -> Positions | None:
    """The numbers ids are written as, if all of them are written as we write numbers."""
    padded = pc.and_(pc.starts_with(ids, "0"), pc.greater(pc.binary_length(ids), 1))
    if ids.null_count or pc.any(pc.or_(padded, pc.starts_with(ids, "-0"))).as_py():
        return None
    try:
        return np.asarray(pc.cast(ids, pa.int64()).to_numpy(), np.int64)
    except pa.ArrowInvalid:
        return None


def _all(masks: Iterable[Mask]) -> Mask:
    return functools.reduce(np.logical_and, masks)


def _met(predicate: Filter, columns: dict[str, pa.Array]) -> Mask:
    rows = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
    bound = bind(predicate, rows.schema)
    if isinstance(bound, Compare) and pa.types.is_integer(bound.value.type):
        values = columns[bound.column]
        if not values.null_count:
            # Straight to a mask of bytes, without one of bits in between.
            return _COMPARE[bound.operator](values.to_numpy(), bound.value.as_py())
    met = matches(bound, rows)
    return np.asarray(met.to_numpy(zero_copy_only=False), np.bool_)
