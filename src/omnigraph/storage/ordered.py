"""Read a table in id order with bounded memory, and find nearest vectors through an index.

The store sorts in memory. A large table is therefore read once, its rows are divided by id ranges, and
each range is sorted on its own. In one process the ranges wait in scratch files; Spark tasks read parts
of the table and send each range to the task that sorts it.
Tests: tests/storage/tables/test_vectors.py.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.limits import MAX_SORTED_PARTS, SORTED_BYTES
from omnigraph.storage.failures import naming_failures
from omnigraph.storage.scan import ROW_ID, Scan, scan
from omnigraph.storage.table import Table
from omnigraph.temporary import TemporaryFolder

_SAMPLED_ROWS: Final = 1024
"""Rows whose size is taken for that of all."""

_SAMPLES_PER_RANGE: Final = 64
"""Sampled ids per range; enough for ranges of about equal size."""

_MIN_DIVIDED_ROWS: Final = 65_536
"""Rows that are divided among the ranges at a time; fewer would leave crumbs in the files."""

_BATCH_ROWS: Final = 8192


def scan_by_id(
    table: Table, columns: Sequence[str], *, with_row_ids: bool = False
) -> Iterator[pa.RecordBatch]:
    """Stream the rows by id."""
    bounds = id_bounds(table, columns, SORTED_BYTES, MAX_SORTED_PARTS)
    if not bounds:
        yield from table.scan(columns, with_row_ids=with_row_ids, order_by="id")
        return
    names = [*columns, ROW_ID] if with_row_ids else columns
    rows = scan_in_any_order(table, names)
    with TemporaryFolder("omnigraph-sort-") as folder:
        files = [Path(folder) / f"{number}.arrow" for number in range(len(bounds) + 1)]
        _write_ranges(rows, bounds, files)
        for file in files:
            # No name keeps a part alive while the next one is read.
            yield from _sorted(file)


def scan_in_any_order(
    table: Table, columns: Sequence[str], fragment_ids: Collection[int] | None = None
) -> pa.RecordBatchReader:
    """Stream rows as they are stored, all of them or those of some fragments, with little memory."""
    wanted = Scan(columns, fragment_ids=fragment_ids, reads_little_ahead=True)
    return scan(table.dataset, table.lineage, wanted)


def divide(rows: Iterable[pa.RecordBatch], bounds: Sequence[str]) -> Iterator[tuple[int, pa.Table]]:
    """The rows by ranges of ids, each with the number of its range; a range comes many times."""
    for chunk in _chunks(rows):
        ids = chunk.column("id").combine_chunks()
        ranges = np.zeros(len(ids), np.int64)
        for bound in bounds:
            ranges += pc.greater_equal(ids, bound).to_numpy(zero_copy_only=False)
        chunk = chunk.take(pa.array(np.argsort(ranges, kind="stable")))
        ends = np.cumsum(np.bincount(ranges, minlength=len(bounds) + 1))
        for number, (start, end) in enumerate(pairwise([0, *ends.tolist()])):
            if end > start:
                yield number, chunk.slice(start, end - start)


def sorted_batches(rows: pa.Table) -> list[pa.RecordBatch]:
    """The rows of one range by id."""
    return rows.sort_by("id").to_batches(_BATCH_ROWS)  # type: ignore[no-any-return]  # untyped


def _sorted(file: Path) -> list[pa.RecordBatch]:
    rows = pa.ipc.open_file(pa.memory_map(str(file))).read_all()
    file.unlink()
    return sorted_batches(rows)


def _write_ranges(rows: pa.RecordBatchReader, bounds: Sequence[str], files: Sequence[Path]) -> None:
    """Write every row to the file of its range."""
    with ExitStack() as stack:
        writers = [stack.enter_context(pa.ipc.new_file(str(file), rows.schema)) for file in files]
        for number, part in divide(rows, bounds):
            writers[number].write_table(part)


def _chunks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The rows in larger tables."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        is_much = sum(b.nbytes for b in held) >= SORTED_BYTES
        if is_much or sum(b.num_rows for b in held) >= _MIN_DIVIDED_ROWS:
            yield pa.Table.from_batches(held)
            held = []
    if held:
        yield pa.Table.from_batches(held)


def id_bounds(
    table: Table, columns: Sequence[str], range_bytes: int, most: int | None = None
) -> list[str]:
    """The first id of every range but the first; none for a table that is sorted at once."""
    rows = table.row_count()
    if rows <= _SAMPLED_ROWS:
        return []
    sample = table.read(columns, limit=_SAMPLED_ROWS)
    count = sample.nbytes * rows // max(1, sample.num_rows) // range_bytes + 1
    if most is not None:
        count = min(count, most)
    if count == 1:
        return []
    step = max(1, rows // (count * _SAMPLES_PER_RANGE))
    sampled: list[str] = []
    before = 0
    for batch in table.scan(["id"]):
        ids = batch.column("id")
        places = range(-before % step, len(ids), step)
        sampled += ids.take(pa.array(places, pa.int64())).to_pylist()
        before += len(ids)
    sampled.sort(key=str.encode)
    chosen = (sampled[len(sampled) * number // count] for number in range(1, count))
    return list(dict.fromkeys(chosen))


def nearest_row_ids(
    table: Table, column: str, query: npt.NDArray[np.float64], count: int, probes: int
) -> npt.NDArray[np.uint64]:
    """The row ids of about the `count` nearest, nearest first; fewer if there are no more.

    `probes` is the number of partitions searched. Rows outside the index are compared one by one.
    """
    with naming_failures("search", table.lineage.uri):
        found = table.dataset.scanner(
            columns=[ROW_ID, "_distance"],
            nearest={
                "column": column,
                "q": query.astype(np.float32),
                "k": count,
                "metric": "cosine",
                "nprobes": probes,
            },
            disable_scoring_autoprojection=True,
        ).to_table()
    return np.asarray(found.column(ROW_ID).to_numpy(), np.uint64)
