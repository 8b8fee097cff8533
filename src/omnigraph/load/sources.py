"""What a load reads: JSON streams and tables, recognised from what the caller hands over.

Sources are values that can be read more than once and sent to another process. Opening one is the
only thing here that touches a file.
"""

from __future__ import annotations

import glob
import gzip
import io
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from omnigraph.catalog.model import Catalog, EdgeType, EntityType, NodeType
from omnigraph.errors import LoadSourceError, SourceUnreadable

Format = Literal["json", "parquet"]

TEXT_NAME: Final = "<data>"
"""What messages call input that has no file name."""

_GZIP: Final = b"\x1f\x8b"
_GLOB: Final = frozenset("*?[")
_CSV: Final = (".csv", ".tsv")
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
        with _open(self.path) as stream:
            yield _decompressed(stream, self.name)


@dataclass(frozen=True, slots=True)
class ParquetFile:
    """Rows of one type in a Parquet file."""

    path: str
    declared: EntityType

    @property
    def name(self) -> str:
        return self.path

    def schema(self) -> pa.Schema:
        with self._open() as file:
            return file.schema_arrow

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        with self._open() as file:
            yield from file.iter_batches(_TABLE_ROWS, columns=list(columns))

    @contextmanager
    def _open(self) -> Iterator[pq.ParquetFile]:
        with _open(self.path) as stream:
            try:
                with pq.ParquetFile(stream) as file:
                    yield file
            except (pa.ArrowException, OSError) as error:
                raise LoadSourceError(self.path, f"no readable Parquet file ({error})") from None


@dataclass(frozen=True, slots=True)
class Frame:
    """Rows of one type in memory, or an Arrow dataset that is read as it is needed."""

    name: str
    declared: EntityType
    rows: pa.Table | ds.Dataset = field(repr=False)

    def schema(self) -> pa.Schema:
        return self.rows.schema

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        if isinstance(self.rows, ds.Dataset):
            yield from self.rows.to_batches(columns=list(columns), batch_size=_TABLE_ROWS)
        else:
            yield from self.rows.select(list(columns)).to_batches(_TABLE_ROWS)


JsonSource = JsonText | JsonFile
TableSource = ParquetFile | Frame
Source = JsonSource | TableSource


def recognise_sources(
    given: object, catalog: Catalog, format: Format | None = None
) -> tuple[Source, ...]:
    """The sources a caller means: text, paths and globs, data frames by type, or several of those.

    Text is what begins with `{` or `[` or holds a line end; bytes are always text. Raises
    `LoadSourceError` and `SourceUnreadable`.
    """
    match given:
        case bytes():
            return (JsonText(given),)
        case str() if _is_text(given):
            return (JsonText(given.encode("utf-8", "surrogatepass")),)
        case str() | Path():
            return tuple(_files(str(given), catalog, format))
        case Mapping():
            return tuple(_frame(str(name), rows, catalog) for name, rows in given.items())
        case Iterable() if not hasattr(given, "__arrow_c_stream__"):
            return tuple(s for one in given for s in recognise_sources(one, catalog, format))
        case _:
            raise LoadSourceError(
                TEXT_NAME, 'needs a mapping: give a data frame as {"Type": frame}'
            )


def type_named(catalog: Catalog, name: str) -> EntityType | None:
    """The type a table is named after: `node:X`, `edge:X`, or a bare name, nodes first."""
    kind, colon, bare = name.partition(":")
    if not colon:
        return catalog.nodes.get(name) or catalog.edge_for_traversal(name)
    if kind == "node":
        return catalog.nodes.get(bare)
    return catalog.edge_for_traversal(bare) if kind == "edge" else None


def check_columns(source: TableSource) -> None:
    """Refuse a table without the columns its rows are told apart by. Raises `LoadSourceError`."""
    needed: Sequence[str] = ()
    if isinstance(source.declared, EdgeType):
        needed = ("from", "to")
    elif source.declared.key is not None:
        needed = source.declared.key
    present = source.schema().names
    for name in needed:
        if name not in present:
            raise LoadSourceError(source.name, f"source has no column '{name}'")


def table_columns(source: TableSource) -> list[str]:
    """The columns of a table that its rows are made of; others are ignored."""
    declared = source.declared
    wanted = {*declared.properties}
    if isinstance(declared, EdgeType):
        wanted |= {"from", "to"}
    has_derived_ids = declared.key if isinstance(declared, NodeType) else declared.identity
    if not has_derived_ids:
        wanted.add("id")
    return [name for name in source.schema().names if name in wanted]


# -- recognition --------------------------------------------------------------------------------


def _is_text(given: str) -> bool:
    return not given.strip() or "\n" in given or given.lstrip()[0] in "{["


def _files(path: str, catalog: Catalog, format: Format | None) -> Iterator[Source]:
    if not Path(path).exists() and _GLOB & set(path):
        found = sorted(glob.glob(path, recursive=True))
        if not found:
            raise SourceUnreadable(path, "matches no file", "check the pattern")
        for one in found:
            yield from _files(one, catalog, format)
        return
    stem = _without_suffixes(path)
    if Path(path).is_dir():
        parts = sorted(str(p) for p in Path(path).rglob("*.parquet"))
        if not parts:
            raise SourceUnreadable(path, "is a folder without Parquet files", "name a file")
        for part in parts:
            yield ParquetFile(part, _declared(part, _without_suffixes(part), stem, catalog))
        return
    suffixes = [s.lower() for s in Path(path).suffixes if s.lower() != ".gz"]
    last = suffixes[-1] if suffixes else ""
    if format == "parquet" or (format is None and last == ".parquet"):
        yield ParquetFile(path, _declared(path, stem, None, catalog))
    elif format is None and last in _CSV:
        raise LoadSourceError(path, "CSV is not supported; give JSON lines or Parquet")
    elif Path(path).exists() and not Path(path).is_file():
        # A pipe or a device can be read once and not wound back: its text is kept instead.
        with _open(path) as stream:
            yield JsonText(stream.read(), path)
    else:
        yield JsonFile(path)


def _without_suffixes(path: str) -> str:
    return Path(path).name.partition(".")[0]


def _declared(path: str, stem: str, folder: str | None, catalog: Catalog) -> EntityType:
    declared = type_named(catalog, stem)
    if declared is None and folder is not None:
        declared = type_named(catalog, folder)
    if declared is None:
        raise LoadSourceError(path, f"needs a mapping: no type is called '{stem}'")
    return declared


def _frame(name: str, rows: Any, catalog: Catalog) -> Frame:
    declared = _declared(name, name, None, catalog)
    if isinstance(rows, pa.Table | ds.Dataset):
        return Frame(name, declared, rows)
    if not hasattr(rows, "__arrow_c_stream__"):
        kind = type(rows).__name__
        raise LoadSourceError(name, f"is no table: {kind} offers no Arrow stream")
    return Frame(name, declared, pa.table(rows))


# -- bytes --------------------------------------------------------------------------------------


def _open(path: str) -> BinaryIO:
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


def _decompressed(stream: BinaryIO, name: str) -> BinaryIO:
    """The stream, or what is compressed in it. Compression shows in the first two bytes."""
    start = stream.read(len(_GZIP))
    stream.seek(0)
    if start != _GZIP:
        return stream
    return io.BufferedReader(_Gunzipped(stream, name))
