"""The record phase over whole sources: pieces are read on several threads and arrive in order.

At most one piece more than there are threads is in flight; each is a block of a few megabytes of
text, or some tens of thousands of rows of a table, and its columns.

MERGED: The rows of a load until it is decided: in memory, and beyond a budget in scratch files.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from pathlib import Path
from types import TracebackType

import numpy as np
import pyarrow as pa

from omnigraph.catalog.model import Catalog, EdgeType, EntityType
from omnigraph.limits import LOAD_MEMORY_BYTES
from omnigraph.load.csv_rows import CsvReader
from omnigraph.load.json_rows import JsonReader, ObjectReader
from omnigraph.load.json_text import Records, Stretch, read_stretches
from omnigraph.load.record_validation import (
    JudgedRows,
    id_prefix,
    judge_rows,
    place_rows,
    refuse_outside,
)
from omnigraph.load.records import Finding, Problem, Reading, UnknownProperties, place_problem
from omnigraph.load.row_plan import RowPlan
from omnigraph.load.sources import CsvFile, JsonFile, JsonObjects, JsonText, Source
from omnigraph.load.splits import Piece
from omnigraph.load.table_rows import TypedCells, read_table
from omnigraph.rows.blob_bases import NO_BASES, BlobBases
from omnigraph.temporary import TemporaryFolder

_Task = Callable[[], "JudgedPiece"]


@dataclass(frozen=True, slots=True)
class JudgedPiece:
    """A judged piece of a source that does not know yet how many records come before it."""

    reading: Reading
    judged: list[JudgedRows]
    problems: list[Problem]


@dataclass(frozen=True, slots=True)
class PlacedRows:
    """Good rows of one type from one piece of a source."""

    declared: EntityType
    rows: pa.RecordBatch


@dataclass(frozen=True, slots=True)
class ReadPiece:
    """What a piece of a source gave: rows, findings in order of record, and what was put up with."""

    records: int
    rows: list[PlacedRows]
    findings: list[Finding]
    unknown_properties: UnknownProperties = field(default_factory=UnknownProperties)
    ignored_ids: Counter[str] = field(default_factory=Counter)
    unnamed_edges: Counter[str] = field(default_factory=Counter)
    """Edges whose ids were made for this load, by type."""


def read_sources(
    sources: Sequence[Source],
    catalog: Catalog,
    load_id: str,
    *,
    threads: int,
    blobs: BlobBases = NO_BASES,
    patches: bool = False,
) -> Iterator[ReadPiece]:
    """Every source from its first to its last record, in the order given."""
    for number, source in enumerate(sources):
        piece = Piece(number, source)
        yield from read_piece(
            piece, catalog, load_id, threads=threads, blobs=blobs, patches=patches
        )


def read_piece(
    piece: Piece,
    catalog: Catalog,
    load_id: str,
    *,
    threads: int,
    blobs: BlobBases = NO_BASES,
    patches: bool = False,
) -> Iterator[ReadPiece]:
    """A piece of a source from its first to its last record, placed in the whole.

    Blobs kept outside of the graph are good only under one of the bases. Rows of a patch say which
    properties their records have.
    """
    prefix = id_prefix(load_id, piece.number)
    before = piece.records_before
    for judged in _in_order(_tasks(piece.source, catalog, patches), threads):
        judged = _inside(judged, blobs)
        yield place_piece(judged, piece.number, before, prefix, piece.lines_before)
        before += judged.reading.count


def judge_reading(reading: Reading) -> JudgedPiece:
    """The record phase on what was read; rows of one type end up in one batch, by position."""
    judged: dict[str, list[JudgedRows]] = {}
    problems = list(reading.problems)
    for typed in reading.rows:
        rows, more = judge_rows(typed)
        judged.setdefault(rows.declared.table_key, []).append(rows)
        problems += more
    problems.sort(key=lambda p: p.position)
    return JudgedPiece(reading, [_joined(same) for same in judged.values()], problems)


def _inside(piece: JudgedPiece, allowed: BlobBases) -> JudgedPiece:
    """The piece without rows that keep a blob where none may be."""
    parts = [refuse_outside(rows, allowed) for rows in piece.judged]
    if not any(problems for _, problems in parts):
        return piece
    found = [*piece.problems, *(problem for _, problems in parts for problem in problems)]
    found.sort(key=lambda p: p.position)
    return JudgedPiece(piece.reading, [rows for rows, _ in parts], found)


def _joined(judged: list[JudgedRows]) -> JudgedRows:
    if len(judged) == 1:
        return judged[0]
    positions = np.concatenate([j.positions for j in judged])
    order = np.argsort(positions, kind="stable")
    table = pa.Table.from_batches([j.rows for j in judged]).take(pa.array(order))
    (rows,) = table.combine_chunks().to_batches() or [judged[0].rows]
    ignored = sum(j.ignored_ids for j in judged)
    return JudgedRows(judged[0].declared, rows, positions[order], ignored)


def _tasks(source: Source, catalog: Catalog, patches: bool) -> Iterator[_Task]:
    if isinstance(source, JsonText | JsonFile):
        reader = JsonReader(catalog, patches=patches)
        with source.open() as stream:
            for stretch in read_stretches(stream):
                yield partial(_read_stretch, reader, stretch)
    elif isinstance(source, JsonObjects):
        object_reader = ObjectReader(source.plan, patches)
        with source.stream.open() as stream:
            for stretch in read_stretches(stream):
                yield partial(_read_objects, object_reader, stretch)
    elif isinstance(source, CsvFile):
        csv_reader = CsvReader(source.plan, source.names, source.dialect, patches)
        for records in source.records():
            yield partial(_read_csv, csv_reader, records)
    else:
        for batch in source.batches():
            yield partial(_read_batch, source.plan, batch, patches)


def _read_stretch(reader: JsonReader, stretch: Stretch) -> JudgedPiece:
    return judge_reading(reader.read(stretch))


def _read_objects(reader: ObjectReader, stretch: Stretch) -> JudgedPiece:
    return judge_reading(reader.read(stretch))


def _read_csv(reader: CsvReader, records: Records) -> JudgedPiece:
    return judge_reading(reader.read(records))


def _read_batch(plan: RowPlan, batch: pa.RecordBatch, patches: bool) -> JudgedPiece:
    return judge_reading(read_table(plan, batch, TypedCells(), patches=patches))


def _in_order(tasks: Iterator[_Task], threads: int) -> Iterator[JudgedPiece]:
    """The results of the tasks, in their order, with a bounded number of them ahead."""
    first = list(islice(tasks, 2))
    if threads <= 1 or len(first) < 2:
        for task in chain(first, tasks):
            yield task()
        return
    with ThreadPoolExecutor(threads, thread_name_prefix="omnigraph-load") as pool:
        ahead: deque[Future[JudgedPiece]] = deque()
        for task in chain(first, tasks):
            ahead.append(pool.submit(task))
            if len(ahead) > threads:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()


def place_piece(
    piece: JudgedPiece, source: int, before: int, prefix: str, lines_before: int = 0
) -> ReadPiece:
    """The piece in its place: `before` records of the source come before it."""
    lines = piece.reading.lines
    if lines is not None and lines_before:
        lines = lines + lines_before
    read = ReadPiece(
        piece.reading.count,
        [
            PlacedRows(judged.declared, place_rows(judged, source, before, lines, prefix))
            for judged in piece.judged
        ],
        [place_problem(problem, source, before, lines) for problem in piece.problems],
        piece.reading.unknown.placed(source, before),
    )
    for judged in piece.judged:
        if judged.ignored_ids:
            read.ignored_ids[judged.declared.name] += judged.ignored_ids
        unnamed = judged.rows.column(0).null_count
        if unnamed and isinstance(judged.declared, EdgeType):
            read.unnamed_edges[judged.declared.name] += unnamed
    return read


class RowStore:
    """Placed rows by table key, in the order they were added."""

    def __init__(self, scratch: Path | None = None, budget: int = LOAD_MEMORY_BYTES) -> None:
        self._scratch = scratch
        self._budget = budget
        self._folder: TemporaryFolder | None = None
        self._declared: dict[str, EntityType] = {}
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

    def add(self, declared: EntityType, rows: pa.RecordBatch) -> None:
        if rows.num_rows == 0:
            return
        key = declared.table_key
        self._declared[key] = declared
        self._held.setdefault(key, []).append(rows)
        self._held_bytes += rows.nbytes
        if self._held_bytes > self._budget:
            self._spill()

    def tables(self) -> Mapping[str, pa.Table]:
        """All rows by table key; types without rows are absent."""
        return {key: self._table(key) for key in sorted(self._declared)}

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
