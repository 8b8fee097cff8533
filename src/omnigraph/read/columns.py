"""Decoded columns of a numbered table version: values, dictionary codes and hash indexes.

A later version shares the values of an earlier one; its changed values lie in an overlay until a caller
needs all values. Tests: tests/unit/engine/test_columns.py, test_hash_index.py.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.read.positions import FragmentDiff, Numbering, Positions, sorted_distinct
from omnigraph.rows.equality import Hashes, hashes_of
from omnigraph.storage.scan import ROW_ID

MAX_PICK_SHARE: Final = 0.125
"""Share of the values up to which they are picked from base and overlay separately."""

MAX_COPIED_RUNS: Final = 1000
"""Runs of changed positions up to which the values between them are copied run by run."""

MAX_OVERLAY_SHARE: Final = 0.005
"""Share of the values that an overlay may hold."""

MAX_DISTINCT_SHARE: Final = 0.125
"""Share of distinct texts above which a column gets no dictionary."""

MIN_DISTINCT_LIMIT: Final = 10_000
"""Distinct texts that always fit a dictionary, whatever their share."""

SAMPLE_TEXTS: Final = 20_000
"""Sample size. If nearly all sampled texts differ, more than `MAX_DISTINCT_SHARE` of all do."""

MAX_ROWS_PER_VALUE: Final = 16
"""Mean rows per value up to which a hash index is selective enough to use."""

MAX_CHANGED_SHARE: Final = 0.005
"""Share of changed rows from which a hash index is built again."""

_INT64: Final = range(-(2**63), 2**63)


class DenseColumn:
    """One value per position; the value at a dead position is undefined.

    Thread-safe: its parts are replaced as a whole, by an equal column.
    """

    def __init__(
        self,
        values: pa.Array,
        size: int | None = None,
        changed: Positions | None = None,
        fresh: pa.Array | None = None,
    ) -> None:
        """`changed` are ascending positions whose values are the `fresh` ones."""
        self._size = len(values) if size is None else size
        none = np.empty(0, np.int64)
        self._parts = (values, none if changed is None else changed, fresh)
        self.nbytes = int(values.nbytes + (0 if fresh is None else fresh.nbytes))

    def __len__(self) -> int:
        return self._size

    @property
    def values(self) -> pa.Array:
        """The values at all positions."""
        values, changed, fresh = self._parts
        if fresh is None and len(values) == self._size:
            return values
        combined = _combine(values, self._size, changed, fresh)
        self._parts = (combined, changed[:0], None)
        return combined

    def take(self, positions: Positions) -> pa.Array:
        """The values at some positions."""
        if len(positions) > MAX_PICK_SHARE * self._size:
            return self.values.take(pa.array(positions))
        values, changed, fresh = self._parts
        if fresh is None and len(values) == self._size:
            return values.take(pa.array(positions))
        at = np.searchsorted(changed, positions)
        is_fresh = np.append(changed, -1)[at] == positions
        is_old = ~is_fresh & (positions < len(values))
        old = np.count_nonzero(is_old)
        picks = np.full(len(positions), -1, np.int64)
        picks[is_old] = np.arange(old)
        picks[is_fresh] = old + np.arange(np.count_nonzero(is_fresh))
        picked = [values.take(pa.array(positions[is_old]))]
        if fresh is not None:
            picked.append(fresh.take(pa.array(at[is_fresh])))
        return pa.concat_arrays(picked).take(pa.array(picks, mask=picks < 0))

    def patched(self, size: int, changed: Positions, fresh: pa.Array) -> DenseColumn:
        """The column of a later version, in which some positions have fresh values."""
        values, before, kept = self._parts
        if kept is not None:
            stays = ~np.isin(before, changed)
            changed = np.concatenate([before[stays], changed])
            fresh = pa.concat_arrays([kept.filter(pa.array(stays)), fresh])
        order = np.argsort(changed)
        changed, fresh = changed[order], fresh.take(pa.array(order))
        if not len(changed):
            return DenseColumn(values, size)
        if len(changed) > MAX_OVERLAY_SHARE * size:
            return DenseColumn(_combine(values, size, changed, fresh))
        return DenseColumn(values, size, changed, fresh)


def _combine(values: pa.Array, size: int, changed: Positions, fresh: pa.Array | None) -> pa.Array:
    """Base and overlay as one array of `size` values."""
    fresh = values[:0] if fresh is None else fresh
    runs = np.flatnonzero(np.diff(changed, prepend=-2) != 1)
    if len(runs) <= MAX_COPIED_RUNS:
        # Several times faster for texts than picking value by value.
        parts, done = [], 0
        for begin, end in pairwise([*runs.tolist(), len(changed)]):
            first = int(changed[begin])
            parts += [*_slice(values, done, first), fresh[begin:end]]
            done = first + end - begin
        return pa.concat_arrays([*parts, *_slice(values, done, size)])
    picks = np.arange(size, dtype=np.int64)
    picks[len(values) :] = -1
    picks[changed] = len(values) + np.arange(len(changed))
    return pa.concat_arrays([values, fresh]).take(pa.array(picks, mask=picks < 0))


def _slice(values: pa.Array, first: int, end: int) -> list[pa.Array]:
    """Values from one position to another; null for rows added and deleted between two versions."""
    missing = end - max(first, len(values))
    kept = values[min(first, len(values)) : end]
    return [kept, pa.nulls(missing, values.type)] if missing > 0 else [kept]


def read_column(numbering: Numbering, column: str) -> DenseColumn:
    """Decode a whole column of a table version, in position order."""
    return read_columns(numbering, [column])[column]


def read_columns(numbering: Numbering, columns: Sequence[str]) -> dict[str, DenseColumn]:
    """Decode whole columns of a table version, in position order."""
    rows = numbering.table.read([*columns, ROW_ID])
    row_ids = rows.column(ROW_ID).to_numpy()
    found = {column: rows.column(column).combine_chunks() for column in columns}
    if len(row_ids) != numbering.size or not np.array_equal(row_ids, numbering.row_ids):
        picks = np.full(numbering.size, -1, np.int64)
        picks[numbering.positions(row_ids)] = np.arange(len(row_ids))
        rows_at = pa.array(picks, mask=picks < 0)
        found = {column: values.take(rows_at) for column, values in found.items()}
    return {column: DenseColumn(values) for column, values in found.items()}


def patch_column(
    earlier: DenseColumn, numbering: Numbering, column: str, diff: FragmentDiff
) -> DenseColumn:
    """The column of a later version, from an earlier one and the fragments added since."""
    added = diff.added_rows([column, ROW_ID])
    changed = numbering.positions(added.column(ROW_ID).to_numpy())
    return earlier.patched(numbering.size, changed, added.column(column).combine_chunks())


# -- dictionary codes ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TextCodes:
    """A dictionary-encoded text column: indexes into a sorted dictionary, -1 for null.

    `dictionary` is None for a column with too many distinct texts.
    """

    codes: npt.NDArray[np.int32]
    dictionary: pa.Array | None

    @property
    def nbytes(self) -> int:
        return int(self.codes.nbytes + (0 if self.dictionary is None else self.dictionary.nbytes))

    def code_of(self, text: str) -> int:
        """The code of a text; for an unknown text, a code that no row has."""
        texts = self.dictionary
        assert texts is not None
        # Python orders texts by code points, and the bytes of UTF-8 are in the same order.
        at = bisect_left(range(len(texts)), text, key=lambda number: texts[number].as_py())
        return at if at < len(texts) and texts[at].as_py() == text else -2


def encode_texts(values: pa.Array) -> TextCodes:
    """Dictionary-encode a text column."""
    no_codes = TextCodes(np.empty(0, np.int32), None)
    if _are_mostly_distinct(values):
        return no_codes
    encoded = values.dictionary_encode()
    texts = encoded.dictionary
    if len(texts) > max(MAX_DISTINCT_SHARE * len(values), MIN_DISTINCT_LIMIT):
        return no_codes
    order = pc.sort_indices(texts)
    ranks = np.empty(len(texts) + 1, np.int32)
    ranks[order.to_numpy()] = np.arange(len(texts), dtype=np.int32)
    ranks[-1] = -1
    numbers = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)
    return TextCodes(ranks[numbers], texts.take(order))


def _are_mostly_distinct(values: pa.Array) -> bool:
    """Whether a sample of a large column shows that a dictionary would be too large."""
    if len(values) <= 8 * SAMPLE_TEXTS:
        return False
    sample = values.take(pa.array(np.random.default_rng(0).integers(0, len(values), SAMPLE_TEXTS)))
    return len(sample.unique()) > 0.95 * SAMPLE_TEXTS


# -- hash index ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HashIndex:
    """Positions in the order of their values' hashes, without nulls.

    A value leads to candidates that the caller checks. So hash collisions do no harm, and rows changed
    since are candidates for every value.
    """

    size: int
    hashes: Hashes
    positions: npt.NDArray[np.int32] | Positions
    changed: Positions
    is_selective: bool

    @classmethod
    def build(cls, values: pa.Array) -> HashIndex | None:
        """Index a column; None for a type that cannot be hashed."""
        if not (pa.types.is_string(values.type) or pa.types.is_integer(values.type)):
            return None
        filled = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
        hashes = hashes_of(values.drop_null())
        order = np.argsort(hashes, kind="stable")
        hashes, positions = hashes[order], filled[order]
        if len(values) < 2**31:
            positions = positions.astype(np.int32)
        distinct = 1 + int(np.count_nonzero(hashes[1:] != hashes[:-1]))
        is_selective = len(hashes) <= MAX_ROWS_PER_VALUE * distinct
        return cls(len(values), hashes, positions, np.empty(0, np.int64), is_selective)

    @property
    def nbytes(self) -> int:
        return int(self.hashes.nbytes + self.positions.nbytes + self.changed.nbytes)

    def patched(self, changed: Positions) -> HashIndex | None:
        """The index of a later version in which some rows changed; None if too many did."""
        changed = sorted_distinct(np.concatenate([self.changed, changed]))
        if len(changed) > MAX_CHANGED_SHARE * self.size:
            return None
        return replace(self, changed=changed)

    def candidates(self, value: object) -> Positions | None:
        """Ascending positions that may have a value; None if the index cannot tell."""
        if not self.is_selective:
            return None
        if isinstance(value, str):
            probe = pa.array([value], pa.utf8())
        elif isinstance(value, int) and not isinstance(value, bool) and value in _INT64:
            probe = pa.array([value], pa.int64())
        else:
            return None
        [wanted] = hashes_of(probe)
        first = np.searchsorted(self.hashes, wanted)
        end = np.searchsorted(self.hashes, wanted, side="right")
        found = self.positions[first:end].astype(np.int64)
        if not len(self.changed):
            return found
        return sorted_distinct(np.concatenate([found, self.changed]))
