"""An index of texts as bytes, so that another process need not read the texts again.

Rows are kept in the order of their row ids, each with the number of the stored piece it was read
from. Whoever reads the bytes says which rows still hold, and at which position.
Tests: tests/unit/text/test_stored.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.text.index import Segment, TextIndex

_ROWS = pa.schema(
    [
        ("row_ids", pa.large_list(pa.uint64())),
        ("pieces", pa.large_list(pa.int32())),
        ("lengths", pa.large_list(pa.int32())),
    ]
)
_SEGMENTS = pa.schema(
    [
        ("words", pa.large_list(pa.utf8())),
        ("starts", pa.large_list(pa.int64())),
        ("rows", pa.large_list(pa.int32())),
        ("position_starts", pa.large_list(pa.int64())),
        ("positions", pa.large_list(pa.int32())),
        ("owned", pa.large_list(pa.int64())),
    ]
)


@dataclass(frozen=True, slots=True)
class StoredIndex:
    """An index over rows of an earlier state, with their row ids and the pieces they came from."""

    index: TextIndex
    row_ids: npt.NDArray[np.uint64]
    pieces: npt.NDArray[np.int32]

    def moved(self, positions: npt.NDArray[np.int64], size: int) -> TextIndex:
        """The index over other positions: one for each row, in the same order, or -1 for none."""
        kept = positions >= 0
        if len(positions) == size and kept.all():
            return self.index
        lengths = np.full(size, -1, np.int32)
        lengths[positions[kept]] = self.index.lengths[kept]
        segments = tuple(_moved(segment, positions) for segment in self.index.segments)
        return TextIndex(segments, lengths)


def _moved(segment: Segment, positions: npt.NDArray[np.int64]) -> Segment:
    counts = np.diff(segment.position_starts)
    rows = positions[segment.rows]
    kept = rows >= 0
    before = np.concatenate([[0], np.cumsum(kept)])
    owned = segment.owned
    if owned is not None:
        owned = positions[owned]
        owned = owned[owned >= 0]
    return replace(
        segment,
        starts=before[segment.starts],
        rows=rows[kept].astype(np.int32),
        position_starts=np.concatenate([[0], np.cumsum(counts[kept])]),
        positions=segment.positions[np.repeat(kept, counts)],
        owned=owned,
    )


def _spoken_for(segment: Segment, size: int) -> Segment:
    """A segment without the rows that others speak for."""
    if segment.current is None:
        return segment
    rows = np.arange(size, dtype=np.int64)
    rows[: len(segment.current)][~segment.current] = -1
    return replace(_moved(segment, rows), current=None)


def to_bytes(stored: StoredIndex) -> memoryview:
    """An index with its rows."""
    rows = [stored.row_ids, stored.pieces, stored.index.lengths]
    segments = [_spoken_for(segment, stored.index.size) for segment in stored.index.segments]
    out = pa.BufferOutputStream()
    for schema, columns in (
        (_ROWS, [[array] for array in rows]),
        (_SEGMENTS, list(zip(*(_arrays(segment) for segment in segments), strict=True))),
    ):
        arrays = [_lists(values, field.type) for values, field in zip(columns, schema, strict=True)]
        with pa.ipc.new_stream(out, schema) as writer:
            writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))
    return memoryview(out.getvalue()).cast("B")


def from_bytes(content: bytes) -> StoredIndex:
    """What `to_bytes` made. Raises `ValueError` for anything else."""
    source = pa.BufferReader(content)
    tables = [pa.ipc.open_stream(source).read_all() for _ in (_ROWS, _SEGMENTS)]
    if [table.schema for table in tables] != [_ROWS, _SEGMENTS]:
        raise ValueError("these are not the columns of a stored index")
    rows = {name: _numbers(tables[0].column(name), 0) for name in _ROWS.names}
    segments = tuple(_segment(tables[1], number) for number in range(tables[1].num_rows))
    return StoredIndex(TextIndex(segments, rows["lengths"]), rows["row_ids"], rows["pieces"])


def _arrays(segment: Segment) -> tuple[object, ...]:
    return (
        list(segment.numbers),
        segment.starts,
        segment.rows,
        segment.position_starts,
        segment.positions,
        segment.owned,
    )


def _segment(table: pa.Table, number: int) -> Segment:
    words = table.column("words")[number].values.to_pylist()
    names = ("starts", "rows", "position_starts", "positions")
    starts, rows, position_starts, positions = (
        _numbers(table.column(name), number) for name in names
    )
    owned = table.column("owned")
    return Segment(
        {word: place for place, word in enumerate(words)},
        starts,
        rows,
        position_starts,
        positions,
        owned=_numbers(owned, number) if owned[number].is_valid else None,
    )


def _lists(values: Sequence[object], kind: pa.DataType) -> pa.Array:
    """One list per value, without going through Python numbers."""
    items = [pa.array(() if value is None else value, kind.value_type) for value in values]
    offsets = np.concatenate([[0], np.cumsum([len(item) for item in items])]).astype(np.int64)
    missing = np.array([value is None for value in values], np.bool_)
    return pa.LargeListArray.from_arrays(
        pa.array(offsets, mask=np.append(missing, False)), pa.concat_arrays(items), type=kind
    )


def _numbers(column: pa.ChunkedArray, row: int) -> npt.NDArray[Any]:
    return np.asarray(column[row].values.to_numpy(zero_copy_only=False))
