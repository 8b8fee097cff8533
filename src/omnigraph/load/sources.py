"""What a load reads: JSON streams, CSV texts and tables.

Sources are values that can be read more than once and sent to another process. Opening one is the
only thing here that touches a file; `omnigraph.load.recognition` finds out which ones a caller means.
"""

from __future__ import annotations

import gzip
import io
import os
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final, Protocol

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from omnigraph.errors import LoadSourceError, SourceUnreadable
from omnigraph.limits import GZIP_RATIO, PARQUET_ROW_BYTES
from omnigraph.load.csv_rows import Dialect, read_columns, read_csv_records
from omnigraph.load.json_text import Records, read_blocks
from omnigraph.load.row_plan import RowPlan
from omnigraph.storage.files import Stamp, is_remote, open_remote, stamp_of

TEXT_NAME: Final = "<data>"
"""What messages call input that has no file name."""

_GZIP: Final = b"\x1f\x8b"
_BATCH_ROWS: Final = 65_536
"""Rows of a table read at a time: a few megabytes, like a block of text."""

_RANGE_BUFFER_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class FileRange:
    """A part of a file that holds whole records, while the file stays as it was."""

    start: int
    end: int
    stamp: Stamp
    """That of the file when it was split."""


@dataclass(frozen=True, slots=True)
class JsonSource:
    """A JSON stream: bytes, or the file called `name`, or a range of it.

    With a plan the stream holds plain objects that all are rows of one type.
    """

    data: bytes | None = field(default=None, repr=False)
    name: str = TEXT_NAME
    plan: RowPlan | None = None
    range: FileRange | None = None
    address: str | None = None
    """Where the text is, if not in a file of its name."""

    @property
    def path(self) -> str:
        return self.name if self.address is None else self.address

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        with _opened(self.path, self.data, self.range) as stream:
            yield stream


@dataclass(frozen=True, slots=True)
class CsvSource:
    """Rows of one type in a CSV file, or in a range of it.

    `data` is the text of a pipe, which is read only once. Only the first range has the header.
    """

    name: str
    plan: RowPlan
    columns: tuple[str, ...]
    dialect: Dialect
    data: bytes | None = field(default=None, repr=False)
    range: FileRange | None = None

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        with _opened(self.name, self.data, self.range) as stream:
            yield stream


@dataclass(frozen=True, slots=True)
class ParquetSource:
    """Rows of one type in a Parquet file, or in some neighbouring row groups of it."""

    name: str
    plan: RowPlan
    groups: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class FrameSource:
    """Rows of one type in memory, or an Arrow dataset that is read as it is needed."""

    name: str
    plan: RowPlan
    rows: pa.Table | ds.Dataset = field(repr=False)


@dataclass(frozen=True, slots=True)
class StagedFile:
    """An Arrow file with some of the rows of a source."""

    address: str
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class StagedSource:
    """Rows of a Spark data frame that tasks wrote to files, in order."""

    name: str
    plan: RowPlan
    columns: tuple[str, ...]
    files: tuple[StagedFile, ...]


@dataclass(frozen=True, slots=True)
class SparkFrame:
    """Rows of one type in a Spark data frame, which is staged before it is read."""

    name: str
    plan: RowPlan
    frame: Any = field(repr=False)


class FrameStager(Protocol):
    """What a load asks of Spark."""

    def table(self, name: str) -> Any:
        """The data frame of a table. Raises `LoadSourceError`, or that Spark may not be used."""
        ...

    def stage(self, frames: Sequence[SparkFrame]) -> Sequence[StagedSource]:
        """The rows of data frames, in files that other processes can read."""
        ...


TableSource = ParquetSource | FrameSource | StagedSource
Source = JsonSource | CsvSource | TableSource


def csv_records(source: CsvSource) -> Iterator[Records]:
    """The records of a CSV text."""
    with source.open() as stream:
        yield from read_csv_records(stream, source.dialect)


def table_batches(source: TableSource, *, all_columns: bool = False) -> Iterator[pa.RecordBatch]:
    """The rows of a table with the columns of the plan, or with all columns."""

    def columns(names: Sequence[str]) -> list[str]:
        # Any one column if none is wanted: the rows still have to be counted.
        return list(names) if all_columns else source.plan.sources() or list(names[:1])

    match source:
        case ParquetSource(name, _, groups):
            with open_parquet(name) as file:
                chosen = None if groups is None else list(groups)
                names = columns(file.schema_arrow.names)
                yield from file.iter_batches(_BATCH_ROWS, row_groups=chosen, columns=names)
        case FrameSource(_, _, ds.Dataset() as rows):
            names = columns(rows.schema.names)
            yield from rows.to_batches(columns=names, batch_size=_BATCH_ROWS)
        case FrameSource(_, _, rows):
            yield from rows.select(columns(rows.schema.names)).to_batches(_BATCH_ROWS)
        case StagedSource():
            for staged in source.files:
                with open_file(staged.address) as stream:
                    reader = pa.ipc.open_file(stream)
                    for number in range(reader.num_record_batches):
                        yield reader.get_batch(number).select(columns(source.columns))


def has_rows(source: Source) -> bool:
    """Whether a source holds any record."""
    match source:
        case JsonSource():
            with source.open() as stream:
                return any(block.records.count for block in read_blocks(stream))
        case CsvSource():
            return any(records.count for records in csv_records(source))
        case _:
            return any(batch.num_rows for batch in table_batches(source))


def input_size(sources: Sequence[Source]) -> tuple[int, int | None]:
    """Bytes of JSON Lines that take as long to load as the files, and how many tasks can share them.

    None for any number of tasks. What is in memory is loaded by the process that has it: sending it to tasks
    takes longer.
    """
    sizes = list(map(_file_size, sources))
    any_number = any(size and parts is None for size, parts in sizes)
    parts = None if any_number else max(1, sum(parts or 0 for _, parts in sizes))
    return sum(size for size, _ in sizes), parts


def _file_size(source: Source) -> tuple[int, int | None]:
    try:
        match source:
            case ParquetSource():
                with open_parquet(source.name) as rows:
                    return rows.metadata.num_rows * PARQUET_ROW_BYTES, None
            case JsonSource(data=None) | CsvSource(data=None):
                with open_file(source.name) as file:
                    size = stamp_of(file)[0]
                    if is_compressed(file.read(len(_GZIP))):
                        return size * GZIP_RATIO, 1
                    return size, None
            case _:
                return 0, 0
    except (SourceUnreadable, LoadSourceError, OSError):
        return 0, 0  # Reading it reports what is wrong.


# -- bytes --------------------------------------------------------------------------------------


def _open(path: str, data: bytes | None) -> BinaryIO:
    return open_file(path) if data is None else io.BytesIO(data)


@contextmanager
def _opened(name: str, data: bytes | None, range: FileRange | None = None) -> Iterator[BinaryIO]:
    """A text, decompressed, or a range of one. Raises `LoadSourceError` if it is another one by now."""
    with _open(name, data) as stream:
        if range is None:
            yield _decompressed(stream, name)
            return
        if stamp_of(stream) != range.stamp:
            raise LoadSourceError(name, "changed while it was loaded; load it again")
        stream.seek(range.start)
        window = _Window(stream, range.end - range.start)
        yield io.BufferedReader(window, _RANGE_BUFFER_BYTES)


@contextmanager
def open_parquet(path: str) -> Iterator[pq.ParquetFile]:
    """A Parquet file. Raises `LoadSourceError` also for what goes wrong while it is read."""
    with open_file(path) as stream:
        try:
            with pq.ParquetFile(stream) as file:
                yield file
        except (pa.ArrowException, OSError) as error:
            raise LoadSourceError(path, f"no readable Parquet file ({error})") from None


def csv_columns(path: str, dialect: Dialect, data: bytes | None) -> tuple[str, ...]:
    """The columns of a CSV text. Raises `LoadSourceError` when its header is not UTF-8."""
    with _opened(path, data) as stream:
        try:
            return read_columns(stream, dialect)
        except UnicodeDecodeError:
            raise LoadSourceError(path, "the header is not UTF-8 text") from None


def pipe_content(path: str) -> bytes | None:
    """What a pipe or a device gives, which cannot be read twice; None for a file."""
    if is_remote(path) or not os.path.exists(path) or os.path.isfile(path):
        return None
    with open_file(path) as stream:
        return stream.read()


def open_file(path: str) -> BinaryIO:
    """The bytes of a file, or of an object at an `s3://` address. Raises `SourceUnreadable`."""
    if is_remote(path):
        return open_remote(path)
    try:
        return Path(path).open("rb")
    except FileNotFoundError:
        raise SourceUnreadable(path, "does not exist", "check the path") from None
    except IsADirectoryError:
        raise SourceUnreadable(path, "is a folder", "name a file") from None
    except OSError as error:
        reason = error.strerror or "cannot be opened"
        raise SourceUnreadable(path, reason.lower(), "check the permissions") from None


class _Window(io.RawIOBase):
    """The next `left` bytes of a file."""

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


class _Gunzipped(io.RawIOBase):
    """Decompressed bytes; damage becomes an error that names the source."""

    def __init__(self, stream: BinaryIO, name: str) -> None:
        self._file = gzip.GzipFile(fileobj=stream)
        self._name = name

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            return self._file.readinto(buffer)
        except (EOFError, OSError, zlib.error) as error:
            raise LoadSourceError(self._name, f"damaged gzip data ({error})") from None


def is_compressed(start: bytes) -> bool:
    """Whether a stream that begins with these bytes is compressed. Its name does not tell."""
    return start[: len(_GZIP)] == _GZIP


def _decompressed(stream: BinaryIO, name: str) -> BinaryIO:
    start = stream.read(len(_GZIP))
    stream.seek(0)
    if not is_compressed(start):
        return stream
    return io.BufferedReader(_Gunzipped(stream, name))
