"""The record phase over whole sources: pieces are read on several threads and arrive in order.

At most one piece more than there are threads is in flight; each is a block of a few megabytes of
text, or some tens of thousands of rows of a table, and its columns.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice

import numpy as np
import pyarrow as pa

from omnigraph.catalog.model import Catalog, EntityType
from omnigraph.load.findings import Finding, place_problem
from omnigraph.load.framing import Stretch, read_stretches
from omnigraph.load.generated_ids import id_prefix
from omnigraph.load.json_rows import JsonReader
from omnigraph.load.judging import JudgedRows, judge_rows
from omnigraph.load.placing import place_rows
from omnigraph.load.sources import JsonFile, JsonText, Source, table_columns
from omnigraph.load.table_rows import read_table
from omnigraph.load.typed_rows import Problem, Reading

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
    unknown_properties: Counter[tuple[str, str]] = field(default_factory=Counter)
    ignored_ids: Counter[str] = field(default_factory=Counter)


def read_sources(
    sources: Sequence[Source], catalog: Catalog, load_id: str, *, threads: int
) -> Iterator[ReadPiece]:
    """Every source from its first to its last record, in the order given."""
    reader = JsonReader(catalog)
    for number, source in enumerate(sources):
        prefix = id_prefix(load_id, number)
        before = 0
        for piece in _in_order(_tasks(source, reader), threads):
            yield place_piece(piece, number, before, prefix)
            before += piece.reading.count


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


def _joined(judged: list[JudgedRows]) -> JudgedRows:
    if len(judged) == 1:
        return judged[0]
    positions = np.concatenate([j.positions for j in judged])
    order = np.argsort(positions, kind="stable")
    table = pa.Table.from_batches([j.rows for j in judged]).take(pa.array(order))
    (rows,) = table.combine_chunks().to_batches() or [judged[0].rows]
    ignored = sum(j.ignored_ids for j in judged)
    return JudgedRows(judged[0].declared, rows, positions[order], ignored)


def _tasks(source: Source, reader: JsonReader) -> Iterator[_Task]:
    if isinstance(source, JsonText | JsonFile):
        with source.open() as stream:
            for stretch in read_stretches(stream):
                yield partial(_read_stretch, reader, stretch)
    else:
        for batch in source.batches(table_columns(source)):
            yield partial(_read_batch, source.declared, batch)


def _read_stretch(reader: JsonReader, stretch: Stretch) -> JudgedPiece:
    return judge_reading(reader.read(stretch))


def _read_batch(declared: EntityType, batch: pa.RecordBatch) -> JudgedPiece:
    return judge_reading(read_table(declared, batch))


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


def place_piece(piece: JudgedPiece, source: int, before: int, prefix: str) -> ReadPiece:
    """The piece in its place: `before` records of the source come before it."""
    lines = piece.reading.lines
    read = ReadPiece(
        piece.reading.count,
        [
            PlacedRows(judged.declared, place_rows(judged, source, before, lines, prefix))
            for judged in piece.judged
        ],
        [place_problem(problem, source, before, lines) for problem in piece.problems],
        piece.reading.unknown,
    )
    for judged in piece.judged:
        if judged.ignored_ids:
            read.ignored_ids[judged.declared.name] += judged.ignored_ids
    return read
