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

from omnigraph.catalog.model import EntityType
from omnigraph.errors import LoadSourceError, SourceUnreadable
from omnigraph.load.csv_framing import Dialect, read_columns, read_csv_records
from omnigraph.load.framing import Records, read_stretches
from omnigraph.load.row_plan import RowPlan
from omnigraph.storage.files import is_remote, open_remote

TEXT_NAME: Final = "<data>"
"""What messages call input that has no file name."""

_GZIP: Final = b"\x1f\x8b"
_TABLE_ROWS: Final = 65_536
"""Rows of a table read at a time: a few megabytes, like a block of text."""


@dataclass(frozen=True, slots=True)
class JsonText:
    """A JSON stream given as it is."""

    data: bytes
    name: str = TEXT_NAME

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        with io.BytesIO(self.data) as stream:
            yield _decompressed(stream, self.name)


@dataclass(frozen=True, slots=True)
class JsonFile:
    """A JSON stream in a file."""

    path: str

    @property
    def name(self) -> str:
        return self.path

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        with open_file(self.path) as stream:
            yield _decompressed(stream, self.name)


@dataclass(frozen=True, slots=True)
class JsonObjects:
    """A JSON stream of plain objects that all are rows of one type."""

    stream: JsonText | JsonFile
    plan: RowPlan

    @property
    def name(self) -> str:
        return self.stream.name

    @property
    def declared(self) -> EntityType:
        return self.plan.declared

    def has_rows(self) -> bool:
        with self.stream.open() as stream:
            return any(stretch.records.count for stretch in read_stretches(stream))


@dataclass(frozen=True, slots=True)
class CsvFile:
    """Rows of one type in a CSV text; `held` is the text of a pipe, which is read only once."""

    path: str
    plan: RowPlan
    names: tuple[str, ...]
    dialect: Dialect
    held: bytes | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        return self.path

    @property
    def declared(self) -> EntityType:
        return self.plan.declared

    def records(self) -> Iterator[Records]:
        with open_csv(self.path, self.held) as stream:
            yield from read_csv_records(stream, self.dialect)

    def has_rows(self) -> bool:
        return any(records.count for records in self.records())


@dataclass(frozen=True, slots=True)
class ParquetFile:
    """Rows of one type in a Parquet file."""

    path: str
    plan: RowPlan

    @property
    def name(self) -> str:
        return self.path

    @property
    def declared(self) -> EntityType:
        return self.plan.declared

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The rows with the columns of the plan, or with those that are asked for."""
        with open_parquet(self.path) as file:
            names = file.schema_arrow.names
            read = _some(self.plan.sources() if columns is None else columns, names)
            yield from file.iter_batches(_TABLE_ROWS, columns=read)

    def all_columns(self) -> list[str]:
        with open_parquet(self.path) as file:
            return list(file.schema_arrow.names)

    def has_rows(self) -> bool:
        with open_parquet(self.path) as file:
            return bool(file.metadata.num_rows)


@dataclass(frozen=True, slots=True)
class ParquetRowGroups(ParquetFile):
    """Some neighbouring row groups of a Parquet file."""

    groups: tuple[int, ...]

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        with open_parquet(self.path) as file:
            names = file.schema_arrow.names
            read = _some(self.plan.sources() if columns is None else columns, names)
            yield from file.iter_batches(_TABLE_ROWS, row_groups=list(self.groups), columns=read)


@dataclass(frozen=True, slots=True)
class Frame:
    """Rows of one type in memory, or an Arrow dataset that is read as it is needed."""

    name: str
    plan: RowPlan
    rows: pa.Table | ds.Dataset = field(repr=False)

    @property
    def declared(self) -> EntityType:
        return self.plan.declared

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The rows with the columns of the plan, or with those that are asked for."""
        names = self.rows.schema.names
        read = _some(self.plan.sources() if columns is None else columns, names)
        if isinstance(self.rows, ds.Dataset):
            yield from self.rows.to_batches(columns=read, batch_size=_TABLE_ROWS)
        else:
            yield from self.rows.select(read).to_batches(_TABLE_ROWS)

    def all_columns(self) -> list[str]:
        return list(self.rows.schema.names)

    def has_rows(self) -> bool:
        return any(batch.num_rows for batch in self.batches())


@dataclass(frozen=True, slots=True)
class StagedFile:
    """An Arrow file with some of the rows of a source."""

    address: str
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class StagedRows:
    """Rows of one type that others took from where they were, in files that hold them in order."""

    name: str
    plan: RowPlan
    names: tuple[str, ...]
    files: tuple[StagedFile, ...]

    @property
    def declared(self) -> EntityType:
        return self.plan.declared

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The rows with the columns of the plan, or with those that are asked for."""
        read = _some(self.plan.sources() if columns is None else columns, self.names)
        for file in self.files:
            with open_file(file.address) as stream:
                reader = pa.ipc.open_file(stream)
                for number in range(reader.num_record_batches):
                    yield reader.get_batch(number).select(read)

    def all_columns(self) -> list[str]:
        return list(self.names)

    def has_rows(self) -> bool:
        return any(file.rows for file in self.files)


@dataclass(frozen=True, slots=True)
class SparkFrame:
    """Rows of one type in a data frame of Spark, which are staged before anybody reads them."""

    name: str
    plan: RowPlan
    frame: Any = field(repr=False)


class SparkSide(Protocol):
    """What a load asks of Spark."""

    def table(self, name: str) -> Any:
        """The data frame of a table. Raises `LoadSourceError`, or that Spark may not be used."""
        ...

    def stage(self, frames: Sequence[SparkFrame]) -> Sequence[StagedRows]:
        """The rows of data frames, where other processes find them."""
        ...


TableSource = ParquetFile | Frame | StagedRows
PlannedSource = JsonObjects | CsvFile | TableSource
"""Sources whose rows are all of one type."""

JsonSource = JsonText | JsonFile
Source = JsonSource | PlannedSource


def _some(wanted: Sequence[str], names: Sequence[str]) -> list[str]:
    """The columns, or any one: rows of which nothing is wanted are still to be counted."""
    return list(wanted) or list(names[:1])


# -- bytes --------------------------------------------------------------------------------------


@contextmanager
def open_csv(path: str, held: bytes | None = None) -> Iterator[BinaryIO]:
    """The text of a CSV file, or of a pipe that was read before."""
    with open_file(path) if held is None else io.BytesIO(held) as stream:
        yield _decompressed(stream, path)


@contextmanager
def open_parquet(path: str) -> Iterator[pq.ParquetFile]:
    """A Parquet file. Raises `LoadSourceError` also for what goes wrong while it is read."""
    with open_file(path) as stream:
        try:
            with pq.ParquetFile(stream) as file:
                yield file
        except (pa.ArrowException, OSError) as error:
            raise LoadSourceError(path, f"no readable Parquet file ({error})") from None


def csv_columns(path: str, dialect: Dialect, held: bytes | None) -> tuple[str, ...]:
    """The columns of a CSV text. Raises `LoadSourceError` when it is no UTF-8."""
    with open_csv(path, held) as stream:
        try:
            return read_columns(stream, dialect)
        except UnicodeDecodeError:
            raise LoadSourceError(path, "the header is not UTF-8 text") from None


def pipe_content(path: str) -> bytes | None:
    """What a pipe or a device gives, which cannot be wound back; None for a file."""
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
    """Whether a stream that begins so is compressed. Its name says nothing."""
    return start[: len(_GZIP)] == _GZIP


def _decompressed(stream: BinaryIO, name: str) -> BinaryIO:
    """The stream, or what is compressed in it. Compression shows in the first two bytes."""
    start = stream.read(len(_GZIP))
    stream.seek(0)
    if not is_compressed(start):
        return stream
    return io.BufferedReader(_Gunzipped(stream, name))
