"""Sources in pieces that are read apart from each other and give the records of the whole.

A piece of a text does not know how many records and lines come before it; `count_piece` is asked of
all of them first. Tables know. A source that cannot be cut, compressed text for one, is one piece.
"""

from __future__ import annotations

import heapq
import io
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, BinaryIO

from omnigraph.errors import LoadSourceError
from omnigraph.limits import LOAD_RANGE_ROWS
from omnigraph.load.cutting import ReadAt, find_cuts
from omnigraph.load.framing import read_stretches
from omnigraph.load.sources import (
    JsonFile,
    JsonObjects,
    JsonSource,
    JsonText,
    ParquetFile,
    ParquetRowGroups,
    Source,
    StagedFile,
    StagedRows,
    is_compressed,
    open_file,
    open_parquet,
)
from omnigraph.storage.files import Stamp, stamp_of


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a source: what it reads, and what of the source comes before it."""

    number: int
    """Of the source, from 0."""
    source: Source
    records_before: int = 0
    lines_before: int = 0
    is_counted: bool = True
    """Whether what comes before is known."""
    share: float = 1.0
    """How much of the work of one task it is; a whole one where nobody can tell."""


@dataclass(frozen=True, slots=True)
class PieceSize:
    """What a piece adds to those after it."""

    records: int
    lines: int


@dataclass(frozen=True, slots=True)
class JsonRange(JsonFile):
    """A part of a JSON file that holds whole records, while the file stays as it is."""

    start: int
    end: int
    stamp: Stamp
    """That of the file when it was cut."""

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        with open_file(self.path) as file:
            if stamp_of(file) != self.stamp:
                raise LoadSourceError(self.path, "changed while it was loaded; load it again")
            file.seek(self.start)
            yield io.BufferedReader(_Window(file, self.end - self.start), 1024 * 1024)


class _Window(io.RawIOBase):
    """So many bytes of a file from where it stands."""

    def __init__(self, file: BinaryIO, left: int) -> None:
        self._file = file
        self._left = left

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        content = self._file.read(min(len(buffer), self._left))
        buffer[: len(content)] = content
        self._left -= len(content)
        return len(content)


def cut_sources(sources: Sequence[Source], step: int) -> list[Piece]:
    """All sources in pieces of about `step` bytes, in their order."""
    return [piece for number, source in enumerate(sources) for piece in _cut(number, source, step)]


def bundled(pieces: Sequence[Piece]) -> list[tuple[int, ...]]:
    """The numbers of all pieces, those that one task reads together: small ones share a task.

    The largest bundles come first, so that no task begins a large one when others have finished.
    """
    tasks = max(1, math.ceil(sum(piece.share for piece in pieces)))
    bundles: list[list[int]] = [[] for _ in range(min(len(pieces), tasks))]
    filled = [(0.0, bundle) for bundle in range(len(bundles))]
    for number in sorted(range(len(pieces)), key=lambda n: -pieces[n].share):
        share, bundle = filled[0]
        bundles[bundle].append(number)
        heapq.heapreplace(filled, (share + pieces[number].share, bundle))
    return [tuple(sorted(bundle)) for bundle in bundles]


def count_piece(piece: Piece) -> PieceSize:
    """How many records and lines a piece of a text has."""
    source = piece.source.stream if isinstance(piece.source, JsonObjects) else piece.source
    assert isinstance(source, JsonText | JsonFile), "others are counted when they are cut"
    records = lines = 0
    with source.open() as stream:
        for stretch in read_stretches(stream):
            records += stretch.records.count
            lines += stretch.data.count(b"\n")
    return PieceSize(records, lines)


def placed(pieces: Sequence[Piece], sizes: Sequence[PieceSize]) -> list[Piece]:
    """The pieces with what comes before each in its source."""
    result: list[Piece] = []
    records = lines = 0
    for piece, size in zip(pieces, sizes, strict=True):
        if not result or result[-1].number != piece.number:
            records = lines = 0
        result.append(replace(piece, records_before=records, lines_before=lines, is_counted=True))
        records += size.records
        lines += size.lines
    return result


def _cut(number: int, source: Source, step: int) -> Iterator[Piece]:
    match source:
        case ParquetFile(path, plan):
            for before, groups, share in _row_groups(path, step):
                yield Piece(number, ParquetRowGroups(path, plan, groups), before, share=share)
            return
        case StagedRows():
            yield from _staged(number, source, step)
            return
        case JsonObjects(stream):
            parts: Sequence[tuple[Source, float]] = [
                (replace(source, stream=part), share) for part, share in _text_parts(stream, step)
            ]
        case JsonFile() | JsonText():
            parts = _text_parts(source, step)
        case _:
            parts = [(source, 1.0)]
    for part, share in parts:
        yield Piece(number, part, is_counted=len(parts) == 1, share=share)


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


def _share(rows: int, size: int, step: int) -> float:
    return max(rows / LOAD_RANGE_ROWS, size / step)


def _staged(number: int, source: StagedRows, step: int) -> Iterator[Piece]:
    """Neighbouring files of about `step` bytes together."""
    before = rows = size = 0
    files: list[StagedFile] = []
    for file in source.files:
        if files and (size + file.bytes > step or rows + file.rows > LOAD_RANGE_ROWS):
            piece = replace(source, files=tuple(files))
            yield Piece(number, piece, before, share=_share(rows, size, step))
            before, rows, size, files = before + rows, 0, 0, []
        files.append(file)
        rows += file.rows
        size += file.bytes
    if files:
        piece = replace(source, files=tuple(files))
        yield Piece(number, piece, before, share=_share(rows, size, step))


def _text_parts(source: JsonSource, step: int) -> Sequence[tuple[JsonSource, float]]:
    """The parts of a text with the share of each; the text itself if it is not cut."""
    if isinstance(source, JsonFile):
        return _ranges(source, step)
    data = source.data
    bounds = _bounds(lambda start, length: data[start : start + length], len(data), step)
    return [
        (JsonText(data[start:end], source.name), (end - start) / step)
        for start, end in pairwise(bounds)
    ]


def _ranges(source: JsonFile, step: int) -> Sequence[tuple[JsonFile, float]]:
    """The ranges of a file; the file itself when it is not cut."""
    path = source.path
    with open_file(path) as file:
        stamp = stamp_of(file)
        size, _ = stamp
        if size <= step:
            # Nobody looks into small files before they are read; what a compressed one holds is
            # anybody's guess.
            return [(source, 1.0 if path.endswith(".gz") else size / step)]

        def read_at(start: int, length: int) -> bytes:
            file.seek(start)
            return file.read(length)

        bounds = _bounds(read_at, size, step)
    if len(bounds) == 2:
        return [(source, size / step)]
    return [
        (JsonRange(path, start, end, stamp), (end - start) / step)
        for start, end in pairwise(bounds)
    ]


def _bounds(read_at: ReadAt, size: int, step: int) -> list[int]:
    if is_compressed(read_at(0, 2)):
        return [0, size]
    # Parts of one size: what is left over would keep one task busy while others wait.
    parts = max(1, -(-size // step))
    return [0, *find_cuts(read_at, size, -(-size // parts)), size]
