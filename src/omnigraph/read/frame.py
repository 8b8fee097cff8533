"""The binding table of a query, and equality joins on it.

A column of positions per variable, with a weight and fused ranks per row. Joins compare as `compare` does:
numbers by value whatever their types, NaN equal to itself, -0.0 to 0.0, null to nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import QueryBudgetExceeded
from omnigraph.plan.ir import Expr, Rrf
from omnigraph.read.adjacency import Counts, expand_spans
from omnigraph.read.paths import PathStore
from omnigraph.read.positions import Mask, Positions, covers_all

Weights = npt.NDArray[np.int64]

Entities = str | tuple[str, ...] | PathStore
"""A node type, the edge types of an edge variable, or the paths of a path variable."""

ROW: Final = "#row"
"""The column with the outer row of each row of inner steps. No variable has such a name."""

MIN_CHECKED_COLUMNS: Final = 5
"""Columns from which checking whether `take` changes anything pays off."""

MAX_DENSE_RANGE: Final = 4
"""Integers are join codes as they are if their range is at most this many times their number."""

_MAX_WEIGHT: Final = 2**62


@dataclass(frozen=True, slots=True)
class FusedRanks:
    """Fused scores of two rankings per row, and the ranks in both, which break ties.

    The score of a row in neither ranking is NaN.
    """

    scores: npt.NDArray[np.float64]
    first: npt.NDArray[np.int64]
    second: npt.NDArray[np.int64]

    def take(self, rows: Positions) -> FusedRanks:
        return FusedRanks(self.scores[rows], self.first[rows], self.second[rows])


@dataclass(frozen=True, slots=True)
class Frame:
    """Rows of bindings. A row counts as `weights` result rows; None means one each.

    Variables of `optional` blocks have the position -1 in rows that leave them unbound. `fused` is set
    once all rows are known. `given` has values of expressions that the bindings do not tell: aggregates,
    where each row stands for a group.
    """

    length: int
    columns: Mapping[str, Positions] = field(default_factory=dict)
    types: Mapping[str, Entities] = field(default_factory=dict)
    weights: Weights | None = None
    fused: Mapping[Rrf, FusedRanks] = field(default_factory=dict)
    optional: frozenset[str] = frozenset()
    given: Mapping[Expr, pa.Array] = field(default_factory=dict)

    def take(self, rows: Positions) -> Frame:
        """The given rows, in the given order."""
        if (
            len(rows) == self.length
            and len(self.columns) >= MIN_CHECKED_COLUMNS
            and covers_all(rows, self.length)
        ):
            return self
        return Frame(
            len(rows),
            {name: column[rows] for name, column in self.columns.items()},
            self.types,
            None if self.weights is None else self.weights[rows],
            {rank: fused.take(rows) for rank, fused in self.fused.items()},
            self.optional,
            {known: values.take(pa.array(rows)) for known, values in self.given.items()},
        )

    def where(self, mask: Mask) -> Frame:
        return self if mask.all() else self.take(np.flatnonzero(mask))

    def bind(self, variable: str, kind: Entities, positions: Positions) -> Frame:
        """Add a variable, with a node or edge for every row."""
        return Frame(
            self.length,
            {**self.columns, variable: positions},
            {**self.types, variable: kind},
            self.weights,
            optional=self.optional,
        )

    def with_optional(self, names: Iterable[str]) -> Frame:
        """The same rows, in which some variables may be unbound."""
        return replace(self, optional=self.optional | frozenset(names))

    def unbound(self, variable: str) -> Mask | None:
        """The rows that leave a variable unbound; None if none can."""
        return self.columns[variable] < 0 if variable in self.optional else None

    def seed(self, variables: Iterable[str]) -> Frame:
        """Some columns, and the number of each row as `ROW`: what inner steps start from."""
        columns = {name: self.columns[name] for name in variables}
        kinds = {name: self.types[name] for name in columns}
        rows = np.arange(self.length, dtype=np.int64)
        optional = self.optional & columns.keys()
        return Frame(self.length, {**columns, ROW: rows}, kinds, optional=optional)

    def multiply(self, factors: Weights) -> Frame:
        """Multiply the weights and drop rows of weight zero."""
        weights = factors if self.weights is None else product(self.weights, factors)
        frame = Frame(self.length, self.columns, self.types, weights, optional=self.optional)
        return frame.where(weights > 0)

    def expanded(self) -> Frame:
        """Every row repeated by its weight."""
        if self.weights is None:
            return self
        rows = np.repeat(np.arange(self.length, dtype=np.int64), self.weights)
        return replace(self, weights=None).take(rows)

    def total(self) -> int:
        """The number of result rows."""
        return self.length if self.weights is None else int(self.weights.sum())


def product(left: Weights, right: Weights) -> Weights:
    """Weights multiplied. Raises `QueryBudgetExceeded` if they overflow 64 bits."""
    if len(left):
        check_countable(float(left.max()) * float(right.max()))
    return left * right


def check_countable(rows: float) -> None:
    if rows > _MAX_WEIGHT:
        raise QueryBudgetExceeded("rows", "more than can be counted", f"{_MAX_WEIGHT:,}")


def concat_frames(frames: Sequence[Frame]) -> Frame:
    """The rows of one or more frames with the same variables."""
    first = frames[0]
    if len(frames) == 1:
        return first
    columns = {n: np.concatenate([f.columns[n] for f in frames]) for n in first.columns}
    weights = None
    if any(frame.weights is not None for frame in frames):
        parts = [np.ones(f.length, np.int64) if f.weights is None else f.weights for f in frames]
        weights = np.concatenate(parts)
    length = sum(frame.length for frame in frames)
    return Frame(length, columns, first.types, weights, optional=first.optional)


def unit_frame() -> Frame:
    """The one row without bindings that every query starts from."""
    return Frame(1)


# -- joins --------------------------------------------------------------------------------------


class EqualityJoin:
    """Which rows of a right column equal each row of a left one."""

    def __init__(self, left: pa.Array, right: pa.Array) -> None:
        codes, others, size = _join_codes(*_common_type(left, right))
        self._codes = codes
        self._others = others
        # The first slot is that of the code -1, which equals nothing.
        self._per_code = np.bincount(others + 1, minlength=size + 1)
        self._per_code[0] = 0
        self._counts: Counts = self._per_code[codes + 1]

    @property
    def matched(self) -> Mask:
        """Which left rows have an equal right row."""
        return self._counts > 0

    @property
    def total(self) -> int:
        """The number of pairs."""
        return int(self._counts.sum())

    def pairs(self) -> tuple[Positions, Positions]:
        """All pairs: the left row and the right row."""
        if int(self._per_code.max(initial=0)) <= 1:
            row_of = np.empty(len(self._per_code), np.int64)
            row_of[self._others + 1] = np.arange(len(self._others))
            rows = np.flatnonzero(self._counts)
            return rows, row_of[self._codes[rows] + 1]
        nulls = int(np.count_nonzero(self._others < 0))
        begin = nulls + np.cumsum(self._per_code) - self._per_code
        rows, offsets = expand_spans(begin[self._codes + 1], self._counts)
        return rows, np.argsort(self._others, kind="stable")[offsets]


def _join_codes(left: pa.Array, right: pa.Array) -> tuple[Counts, Counts, int]:
    """Numbers that are equal where values are, -1 for null, and how many distinct ones there may be."""
    both = pa.chunked_array([left, right])
    if pa.types.is_integer(left.type):
        low, high = (bound.as_py() or 0 for bound in pc.min_max(both).values())
        if high - low <= MAX_DENSE_RANGE * len(both):
            codes, others = (pc.subtract(c, pa.scalar(low, c.type)) for c in (left, right))
            return _filled(codes, left), _filled(others, right), int(high - low) + 1
    encoded = [
        chunk for chunk in both.dictionary_encode().unify_dictionaries().chunks if len(chunk)
    ]
    size = len(encoded[0].dictionary) if encoded else 0
    indices = [chunk.indices for chunk in encoded]
    codes = indices.pop(0) if len(left) else pa.array([], pa.int32())
    others = indices.pop(0) if len(right) else pa.array([], pa.int32())
    return _filled(codes, left), _filled(others, right), size


def _filled(codes: pa.Array, values: pa.Array) -> Counts:
    """Codes as numbers, -1 for null."""
    found = pc.fill_null(codes, 0).to_numpy(zero_copy_only=False).astype(np.int64)
    if values.null_count:
        found[values.is_null().to_numpy(zero_copy_only=False)] = -1
    return np.asarray(found, np.int64)


def _common_type(left: pa.Array, right: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Both columns in one type; a value that does not fit equals nothing and becomes null."""
    kinds = left.type, right.type
    if all(map(pa.types.is_floating, kinds)):
        return _as_doubles(left), _as_doubles(right)
    if any(map(pa.types.is_floating, kinds)):
        if pa.types.is_floating(left.type):
            return _as_integers(left, right.type), right
        return left, _as_integers(right, left.type)
    if left.type == right.type:
        return left, right
    if all(map(pa.types.is_integer, kinds)):
        return _as_signed(left), _as_signed(right)
    return left.cast(pa.utf8()), right.cast(pa.utf8())


def _as_doubles(values: pa.Array) -> pa.Array:
    """As doubles with one zero."""
    return pc.add(values.cast(pa.float64()), 0.0)


def _as_signed(values: pa.Array) -> pa.Array:
    """As signed integers. A larger value has no equal: the other column is not of the widest type."""
    if not pa.types.is_uint64(values.type):
        return values.cast(pa.int64())
    fits = pc.less_equal(values, pa.scalar(2**63 - 1, pa.uint64()))
    return pc.if_else(fits, values, pa.scalar(None, pa.uint64())).cast(pa.int64())


def _as_integers(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Floats as integers of a type; null where they are not whole or out of range."""
    numbers = values.cast(pa.float64())
    low = 0.0 if pa.types.is_unsigned_integer(kind) else -(2.0 ** (kind.bit_width - 1))
    high = 2.0 ** (kind.bit_width - (0 if pa.types.is_unsigned_integer(kind) else 1))
    fits = pc.and_(pc.greater_equal(numbers, low), pc.less(numbers, high))
    fits = pc.and_(fits, pc.equal(numbers, pc.floor(numbers)))
    return pc.if_else(fits, numbers, pa.scalar(None, pa.float64())).cast(kind)
