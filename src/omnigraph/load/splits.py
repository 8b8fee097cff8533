"""Splits: parts of sources that are read apart from each other and give the records of the whole.

A split of a text does not know how many records and lines come before it; `count_split` is asked of
all of them first. Tables know. A source that cannot be split, compressed text for one, is one split.

A JSON stream is cut between two neighbouring lines that both begin with `{` and end with `}`. No JSON
value spans such a cut: `}` followed by `{` is an error anywhere but inside a string, and a string has
no line end. Reading that goes on after a malformed record goes on at the very line of the cut. A
stream without such lines, pretty-printed for one, is not cut. A CSV text is divided into ranges of whole
lines, and cut where the answers of `count_text` say that records begin (`csv_ranges`).

Blocks of a split are read on several threads and arrive in order. At most one block more than there are
threads is in flight; each is a few megabytes of text, or some tens of thousands of rows of a table, and
its columns. Valid rows wait in a `RowStore`."""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, groupby, islice, pairwise
from pathlib import Path
from types import TracebackType
from typing import Final, TypeVar

import pyarrow as pa

from omnigraph.catalog.model import Catalog
from omnigraph.limits import LOAD_MEMORY_BYTES, LOAD_RANGE_ROWS, LOAD_RECORD_BYTES
from omnigraph.load.csv_ranges import RangeReadings, pieces_of, read_range
from omnigraph.load.csv_rows import CsvReader
from omnigraph.load.json_rows import JsonReader, ObjectReader
from omnigraph.load.json_text import read_blocks
from omnigraph.load.record_validation import ValidBlock, ValidRecords, id_prefix, validate_records
from omnigraph.load.records import ParsedRecords
from omnigraph.load.sources import (
    CsvSource,
    FileRange,
    JsonSource,
    ParquetSource,
    Source,
    StagedFile,
    StagedSource,
    csv_records,
    is_compressed,
    open_file,
    open_parquet,
    table_batches,
)
from omnigraph.load.table_rows import read_table
from omnigraph.rows.blob_bases import NO_BASES, BlobBases
from omnigraph.storage.files import stamp_of
from omnigraph.temporary import TemporaryFolder

ReadAt = Callable[[int, int], bytes]
"""Up to that many bytes from a position on; fewer at the end."""

Cut = Callable[[ReadAt, int, int], int | None]
"""The first place from a position on where a text of some size may be divided."""

_FIRST_WINDOW_BYTES: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class Split:
    """A part of a source: what it reads, and what of the source comes before it."""

    number: int
    """The number of the source, from 0."""
    source: Source
    records_before: int = 0
    lines_before: int = 0
    is_counted: bool = True
    """Whether what comes before is known."""
    share: float = 1.0
    """How much of the work of one task it is; a whole one where that is unknown."""


def whole_splits(sources: Sequence[Source]) -> list[Split]:
    """Every source as one split."""
    return [Split(number, source) for number, source in enumerate(sources)]


def split_sources(sources: Sequence[Source], step: int) -> list[Split]:
    """All sources in splits of about `step` bytes, in their order."""
    return [
        split for number, source in enumerate(sources) for split in _split(number, source, step)
    ]


def bundled(splits: Sequence[Split]) -> list[tuple[int, ...]]:
    """The numbers of all splits, those that one task reads together: small ones share a task.

    The largest bundles come first, so that no task begins a large one when others have finished.
    """
    tasks = max(1, math.ceil(sum(split.share for split in splits)))
    bundles: list[list[int]] = [[] for _ in range(min(len(splits), tasks))]
    filled = [(0.0, bundle) for bundle in range(len(bundles))]
    for number in sorted(range(len(splits)), key=lambda n: -splits[n].share):
        share, bundle = filled[0]
        bundles[bundle].append(number)
        heapq.heapreplace(filled, (share + splits[number].share, bundle))
    return [tuple(sorted(bundle)) for bundle in bundles]


@dataclass(frozen=True, slots=True)
class Counted:
    """How many records and lines a split of a text has; of CSV, both readings of a range."""

    size: tuple[int, int] = (0, 0)
    readings: RangeReadings | None = None


def count_split(split: Split) -> tuple[int, int]:
    """How many records and lines a split of a JSON text has."""
    assert isinstance(split.source, JsonSource), "others are counted when they are split"
    records = lines = 0
    with split.source.open() as stream:
        for block in read_blocks(stream):
            records += block.records.count
            lines += block.data.count(b"\n")
    return records, lines


def count_text(split: Split) -> Counted:
    """What is counted of a split that is not counted yet."""
    source = split.source
    if not isinstance(source, CsvSource):
        return Counted(count_split(split))
    assert source.range is not None, "a text in one piece is not counted"
    with source.open() as stream:
        readings = read_range(stream.read(), source.dialect, is_first=source.range.start == 0)
    return Counted(readings=readings)


def about_records(splits: Sequence[Split]) -> int:
    """About how many records sources in several splits have; those of others are not known."""
    found = 0
    for _, some in groupby(splits, lambda split: split.number):
        group = list(some)
        if len(group) > 1:
            found += group[-1].records_before * len(group) // (len(group) - 1)
    return found


def placed(splits: Sequence[Split], counted: Mapping[int, Counted]) -> list[Split]:
    """The splits, given what was counted of those that were not: those of CSV cut, all located."""
    result: list[Split] = []
    for _, some in groupby(range(len(splits)), lambda number: splits[number].number):
        group = list(some)
        mine = [splits[number] for number in group]
        found = [counted[number] for number in group if number in counted]
        ranges = [one.readings for one in found if one.readings is not None]
        sizes = [one.size for one in found]
        if ranges:
            mine, sizes = _cut_csv(mine, ranges)
        result += located(mine, sizes) if sizes else mine
    return result


def _cut_csv(
    splits: Sequence[Split], readings: Sequence[RangeReadings]
) -> tuple[list[Split], list[tuple[int, int]]]:
    """The ranges of a CSV text become splits of whole records, with their records and lines."""
    first = splits[0].source
    assert isinstance(first, CsvSource)
    ranges = [split.source.range for split in splits if isinstance(split.source, CsvSource)]
    bounds = [range for range in ranges if range is not None]
    pieces = pieces_of([range.start for range in bounds], readings)
    ends = [*(piece.start for piece in pieces[1:]), bounds[-1].end]
    per_byte = splits[0].share / (bounds[0].end - bounds[0].start)
    cut, sizes = [], []
    for piece, end in zip(pieces, ends, strict=True):
        header = first.dialect.header and piece is pieces[0]
        source = replace(
            first,
            dialect=replace(first.dialect, header=header),
            range=replace(bounds[0], start=piece.start, end=end),
        )
        cut.append(Split(splits[0].number, source, share=per_byte * (end - piece.start)))
        sizes.append((piece.records - header, piece.lines))
    return cut, sizes


def located(splits: Sequence[Split], sizes: Sequence[tuple[int, int]]) -> list[Split]:
    """The splits with the records and lines that come before each in its source."""
    result: list[Split] = []
    before = (0, 0)
    for split, (records, lines) in zip(splits, sizes, strict=True):
        if not result or result[-1].number != split.number:
            before = (0, 0)
        result.append(
            replace(split, records_before=before[0], lines_before=before[1], is_counted=True)
        )
        before = before[0] + records, before[1] + lines
    return result


def _split(number: int, source: Source, step: int) -> Iterator[Split]:
    match source:
        case ParquetSource():
            for before, groups, share in _row_groups(source.name, step):
                yield Split(number, replace(source, groups=groups), before, share=share)
        case StagedSource():
            for before, files, share in _staged_files(source, step):
                yield Split(number, replace(source, files=files), before, share=share)
        case JsonSource():
            parts = _text_parts(source, step)
            for part, share in parts:
                yield Split(number, part, is_counted=len(parts) == 1, share=share)
        case CsvSource(data=None):
            ranges = _csv_ranges(source, step)
            for range_source, share in ranges:
                yield Split(number, range_source, is_counted=len(ranges) == 1, share=share)
        case _:
            yield Split(number, source)


# -- tables -------------------------------------------------------------------------------------


def _row_groups(path: str, step: int) -> Iterator[tuple[int, tuple[int, ...], float]]:
    """Row groups of about `step` bytes together, each with the rows before them and their share.

    Columns of few distinct values take no room and their rows still take time, so rows count too.
    """
    with open_parquet(path) as file:
        metadata = file.metadata
        rows = before = size = 0
        groups: list[int] = []
        for group in range(metadata.num_row_groups):
            groups.append(group)
            rows += metadata.row_group(group).num_rows
            size += metadata.row_group(group).total_byte_size
            if size >= step or rows - before >= LOAD_RANGE_ROWS:
                yield before, tuple(groups), _share(rows - before, size, step)
                before, size, groups = rows, 0, []
        if groups:
            yield before, tuple(groups), _share(rows - before, size, step)


def _staged_files(
    source: StagedSource, step: int
) -> Iterator[tuple[int, tuple[StagedFile, ...], float]]:
    """Neighbouring files of about `step` bytes together, in the same form."""
    before = rows = size = 0
    files: list[StagedFile] = []
    for file in source.files:
        if files and (size + file.bytes > step or rows + file.rows > LOAD_RANGE_ROWS):
            yield before, tuple(files), _share(rows, size, step)
            before, rows, size, files = before + rows, 0, 0, []
        files.append(file)
        rows += file.rows
        size += file.bytes
    if files:
        yield before, tuple(files), _share(rows, size, step)


def _share(rows: int, size: int, step: int) -> float:
    return max(rows / LOAD_RANGE_ROWS, size / step)


# -- texts --------------------------------------------------------------------------------------


def _text_parts(source: JsonSource, step: int) -> Sequence[tuple[JsonSource, float]]:
    """The parts of a text with the share of each; the text itself if it is not cut."""
    data = source.data
    if data is not None:
        bounds = _bounds(
            lambda start, length: data[start : start + length], len(data), step, _first_cut
        )
        return [
            (replace(source, data=data[start:end]), (end - start) / step)
            for start, end in pairwise(bounds)
        ]
    ranges = _file_ranges(source.path, step, _first_cut)
    if len(ranges) == 1:
        return [(source, share) for _, share in ranges]
    return [(replace(source, range=range), share) for range, share in ranges]


def _csv_ranges(source: CsvSource, step: int) -> Sequence[tuple[CsvSource, float]]:
    """The ranges of a CSV file with the share of each; the file itself if it has one."""
    ranges = _file_ranges(source.name, step, _next_line)
    if len(ranges) == 1:
        return [(source, share) for _, share in ranges]
    return [(replace(source, range=range), share) for range, share in ranges]


def _file_ranges(name: str, step: int, cut: Cut) -> Sequence[tuple[FileRange, float]]:
    with open_file(name) as file:
        stamp = stamp_of(file)
        size, _ = stamp
        if size <= step:
            # Small files are not opened before they are read; the size of a compressed one does
            # not tell how much it holds.
            return [(FileRange(0, size, stamp), 1.0 if name.endswith(".gz") else size / step)]

        def read_at(start: int, length: int) -> bytes:
            file.seek(start)
            return file.read(length)

        bounds = _bounds(read_at, size, step, cut)
    return [(FileRange(start, end, stamp), (end - start) / step) for start, end in pairwise(bounds)]


def _bounds(read_at: ReadAt, size: int, step: int, cut: Cut) -> list[int]:
    if is_compressed(read_at(0, 2)):
        return [0, size]
    # Parts of one size: a remainder would keep one task busy while others wait.
    parts = max(1, -(-size // step))
    return [0, *_cuts(read_at, size, -(-size // parts), cut), size]


def _cuts(read_at: ReadAt, size: int, step: int, cut: Cut) -> Iterator[int]:
    """Positions that divide the stream into parts of about `step` bytes."""
    at = step
    while at < size:
        found = cut(read_at, at, size)
        if found is None:
            return
        yield found
        at = max(at + step, found + 1)


def _next_line(read_at: ReadAt, start: int, size: int) -> int | None:
    """Where the first line begins from `start` on."""
    length = _FIRST_WINDOW_BYTES
    while True:
        found = read_at(start, length).find(b"\n")
        if found >= 0:
            return start + found + 1 if start + found + 1 < size else None
        if start + length >= size or length > LOAD_RECORD_BYTES:
            return None
        length *= 4


def _first_cut(read_at: ReadAt, start: int, size: int) -> int | None:
    length = _FIRST_WINDOW_BYTES
    while True:
        cut = _cut_in(read_at(start, length))
        if cut is not None:
            return start + cut
        if start + length >= size or length > LOAD_RECORD_BYTES:
            return None
        length *= 4


def _cut_in(window: bytes) -> int | None:
    """The start of the first line that may begin a part, both it and the one before complete."""
    # What stands before the first line end began somewhere else.
    before = window.find(b"\n") + 1
    if not before:
        return None
    start = window.find(b"\n", before) + 1
    while start:
        end = window.find(b"\n", start)
        if end < 0:
            return None
        if _is_object(window[before : start - 1]) and _is_object(window[start:end]):
            return start
        before, start = start, end + 1
    return None


def _is_object(line: bytes) -> bool:
    return line.startswith(b"{") and line.rstrip(b" \t\r").endswith(b"}")


Result = TypeVar("Result")


def read_split(
    split: Split,
    catalog: Catalog,
    load_id: str,
    *,
    threads: int,
    blobs: BlobBases = NO_BASES,
    patches: bool = False,
) -> Iterator[ValidRecords]:
    """A split from its first to its last record, located in the load.

    Blobs kept outside of the graph are valid only under one of the bases. Rows of a patch say which
    properties their records have.
    """
    prefix, before = id_prefix(load_id, split.number), split.records_before

    def validated(read: Callable[[], ParsedRecords]) -> ValidBlock:
        return validate_records(read(), blobs)

    blocks = (partial(validated, read) for read in _reads(split.source, catalog, patches))
    for block in _in_order(blocks, threads):
        valid = block.located(split.number, before, split.lines_before, prefix)
        yield valid
        before += valid.count


def _reads(
    source: Source, catalog: Catalog, patches: bool
) -> Iterator[Callable[[], ParsedRecords]]:
    """Calls that parse the blocks of a source; reading its bytes stays with the caller."""
    if isinstance(source, JsonSource):
        reader = (
            JsonReader(catalog, patches=patches)
            if source.plan is None
            else ObjectReader(source.plan, patches)
        )
        with source.open() as stream:
            for block in read_blocks(stream):
                yield partial(reader.read, block)
    elif isinstance(source, CsvSource):
        csv_reader = CsvReader(source.plan, source.columns, source.dialect, patches)
        for records in csv_records(source):
            yield partial(csv_reader.read, records)
    else:
        for batch in table_batches(source):
            yield partial(read_table, source.plan, batch, patches=patches)


def _in_order(calls: Iterator[Callable[[], Result]], threads: int) -> Iterator[Result]:
    """The results of the calls, in their order, with a bounded number of them ahead."""
    first = list(islice(calls, 2))
    if threads <= 1 or len(first) < 2:
        for call in chain(first, calls):
            yield call()
        return
    with ThreadPoolExecutor(threads, thread_name_prefix="omnigraph-load") as pool:
        ahead: deque[Future[Result]] = deque()
        for call in chain(first, calls):
            ahead.append(pool.submit(call))
            if len(ahead) > threads:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()


class RowStore:
    """Located rows by table key, in the order they were added: in memory, beyond a budget in files.

    The files are Arrow files mapped into memory, so that rows read back look like any others and
    cost no memory of their own.
    """

    def __init__(self, scratch: Path | None = None, budget: int = LOAD_MEMORY_BYTES) -> None:
        self._scratch = scratch
        self._budget_bytes = budget
        self._folder: TemporaryFolder | None = None
        self._held: dict[str, list[pa.RecordBatch]] = {}
        self._held_bytes = 0
        self._files: dict[str, list[Path]] = {}

    def __enter__(self) -> RowStore:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove the scratch files. Tables handed out stay readable where files can be unlinked."""
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def add(self, rows: Mapping[str, pa.RecordBatch]) -> None:
        """Take rows by table key."""
        for key, batch in rows.items():
            if batch.num_rows:
                self._held.setdefault(key, []).append(batch)
                self._held_bytes += batch.nbytes
        if self._held_bytes > self._budget_bytes:
            self._spill()

    def tables(self) -> dict[str, pa.Table]:
        """All rows by table key; types without rows are absent."""
        return {key: self._table(key) for key in sorted({*self._held, *self._files})}

    def _table(self, key: str) -> pa.Table:
        batches: list[pa.RecordBatch] = []
        for path in self._files.get(key, ()):
            batches += pa.ipc.open_file(pa.memory_map(str(path))).read_all().to_batches()
        return pa.Table.from_batches([*batches, *self._held.get(key, ())])

    def _spill(self) -> None:
        if self._folder is None:
            self._folder = TemporaryFolder("omnigraph-load-", self._scratch)
        number = sum(map(len, self._files.values()))
        for key, batches in self._held.items():
            path = Path(self._folder.name) / f"{number}.arrow"
            number += 1
            with pa.ipc.new_file(str(path), batches[0].schema) as file:
                for batch in batches:
                    file.write_batch(batch)
            self._files.setdefault(key, []).append(path)
        self._held.clear()
        self._held_bytes = 0
