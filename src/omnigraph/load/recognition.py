"""Which sources a caller means: text, paths and patterns, data frames, and what a mapping names.

Rows given as Python dicts become the JSON text that the loader reads, one object per line.
"""

from __future__ import annotations

import base64
import glob
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from fnmatch import fnmatchcase
from itertools import groupby
from pathlib import Path
from typing import Any, Final, Protocol, runtime_checkable
from uuid import UUID

import pyarrow as pa
import pyarrow.dataset as ds

from omnigraph.catalog.model import Catalog, EntityType
from omnigraph.errors import LoadSourceError, SourceUnreadable
from omnigraph.load.csv_rows import Dialect
from omnigraph.load.mapping import (
    Format,
    MappedSource,
    SourceMapping,
    read_mapping,
    usual_delimiter,
)
from omnigraph.load.row_plan import Assignment, plan_rows
from omnigraph.load.sources import (
    TEXT_NAME,
    CsvSource,
    FrameSource,
    FrameStager,
    JsonSource,
    ParquetSource,
    Source,
    SparkFrame,
    csv_columns,
    open_parquet,
    pipe_content,
)
from omnigraph.storage.files import is_remote, list_remote


def is_rows(given: object) -> bool:
    """Whether this is a list of rows, or a table or data frame."""
    return isinstance(given, list | tuple) or hasattr(given, "__arrow_c_stream__")


def json_lines(rows: Iterable[object], source: str) -> bytes:
    """Rows as JSON lines. Raises `LoadSourceError` for a row or value that has no JSON form."""
    lines = []
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, Mapping):
            problem = f"row {number} is not a dict but {type(row).__name__}"
            raise LoadSourceError(source, problem)
        try:
            lines.append(json.dumps(row, ensure_ascii=False, default=_json_value))
        except (TypeError, ValueError) as error:
            raise LoadSourceError(source, f"row {number}: {error}") from None
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogatepass")


def _json_value(value: Any) -> object:
    """The JSON form of a Python value that `json` does not know."""
    match value:
        case datetime():
            moment = value if value.tzinfo else value.replace(tzinfo=UTC)
            return moment.isoformat()
        case date():
            return value.isoformat()
        case bytes() | bytearray() | memoryview():
            return "base64:" + base64.b64encode(value).decode()
        case UUID():
            return str(value)
        case Mapping():
            return dict(value)
    # Scalars and arrays of numpy, without importing it for those who have none.
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"a value of type {type(value).__name__} cannot be stored")


_GLOB: Final = frozenset("*?[")
_FORMATS: Final[Mapping[str, Format]] = {
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
}


@runtime_checkable
class Readable(Protocol):
    """A stream of text or bytes."""

    def read(self) -> str | bytes: ...


def recognise_sources(
    given: object,
    catalog: Catalog,
    format: Format | None = None,
    mapping: str | Path | Mapping[str, object] | None = None,
    spark: FrameStager | None = None,
) -> tuple[Source, ...]:
    """The sources a caller means, those that a mapping names first.

    A string is a path, a pattern or a URI; bytes and streams are JSON text. Data frames of
    Spark are staged by `spark`, when nothing else is wrong. Raises `LoadSourceError` and
    `SourceUnreadable`.
    """
    given_mapping = SourceMapping() if mapping is None else read_mapping(mapping, catalog)
    if given is None and not given_mapping.sources:
        raise LoadSourceError(TEXT_NAME, "nothing to load: give a source or a mapping")
    found = list(_Recogniser(catalog, format, given_mapping, spark).recognise(given))
    frames = [source for source in found if isinstance(source, SparkFrame)]
    staged = iter(spark.stage(frames) if frames and spark is not None else ())
    return tuple(next(staged) if isinstance(one, SparkFrame) else one for one in found)


def source_files(given: str | Path, format: Format | None) -> Iterator[tuple[str, Format]]:
    """The files a path, a pattern or a URI stands for, each with its format.

    Raises `SourceUnreadable`, or `LoadSourceError` for text in place of a path.
    """
    if isinstance(given, str) and _is_text(given):
        raise LoadSourceError(TEXT_NAME, "a string is a path; pass JSON text as bytes")
    for path, _ in _files(str(given), format):
        yield path, format or _format_of(path)


def type_named(catalog: Catalog, name: str) -> EntityType | None:
    """The type a table is named after: `node:X`, `edge:X`, or a bare name, nodes first."""
    kind, colon, bare = name.partition(":")
    if not colon:
        return catalog.nodes.get(name) or catalog.edge_for_traversal(name)
    if kind == "node":
        return catalog.nodes.get(bare)
    return catalog.edge_for_traversal(bare) if kind == "edge" else None


@dataclass(frozen=True, slots=True)
class _Recogniser:
    catalog: Catalog
    format: Format | None
    given_mapping: SourceMapping
    spark: FrameStager | None = None
    files: set[Path] = field(default_factory=set)
    """Files the mapping names; no other mention loads them again."""

    def recognise(self, given: object) -> Iterator[Source | SparkFrame]:
        frames = given if isinstance(given, Mapping) else {}
        for mapped in self.given_mapping.sources:
            if mapped.name is not None:
                if mapped.name not in frames:
                    raise LoadSourceError(
                        mapped.name, "the mapping names it, but no frame is given"
                    )
                yield self._frame(mapped.name, frames[mapped.name], mapped)
            elif mapped.table is not None:
                yield self._spark_frame(mapped.table, self._spark().table(mapped.table), mapped)
            else:
                yield from self._mapped_files(mapped)
        named = {mapped.name for mapped in self.given_mapping.sources}
        if isinstance(given, Mapping):
            for name, rows in given.items():
                if name not in named:
                    yield self._frame(str(name), rows, None)
        elif given is not None:
            yield from self._others(given)

    def _others(self, given: object) -> Iterator[Source | SparkFrame]:
        match given:
            case bytes():
                yield JsonSource(given)
            case str() if _is_text(given):
                raise LoadSourceError(TEXT_NAME, "a string is a path; pass JSON text as bytes")
            case str() | Path():
                for path, folder in _files(str(given), self.format):
                    if Path(path).resolve() not in self.files:
                        yield self._file(path, folder, None)
            case Readable():
                # A stream of lines is one text: its records are numbered through, and may span lines.
                content = given.read()
                text = (
                    content.encode("utf-8", "surrogatepass")
                    if isinstance(content, str)
                    else content
                )
                yield JsonSource(bytes(text))
            case Iterable() if not hasattr(given, "__arrow_c_stream__"):
                for is_record, some in groupby(given, lambda one: isinstance(one, Mapping)):
                    if is_record:
                        yield JsonSource(json_lines(some, TEXT_NAME))
                        continue
                    for one in some:
                        yield from self._others(one)
            case _:
                problem = 'needs a mapping: give a data frame as {"Type": frame}'
                raise LoadSourceError(TEXT_NAME, problem)

    def _mapped_files(self, mapped: MappedSource) -> Iterator[Source]:
        assert mapped.path is not None
        for path, folder in _files(mapped.path, mapped.format or self.format):
            self.files.add(Path(path).resolve())
            yield self._file(path, folder, mapped)

    def _file(self, path: str, folder: str | None, mapped: MappedSource | None) -> Source:
        format = mapped.format if mapped else None
        match format or self.format or _format_of(path):
            case "parquet":
                declared, assignment = self._declared(path, _stem(path), folder, mapped)
                with open_parquet(path) as file:
                    names = file.schema_arrow.names
                return ParquetSource(
                    path, plan_rows(declared, names, assignment, path, self.catalog)
                )
            case "csv":
                return self._csv(path, folder, mapped)
            case _:
                # A pipe or a device can be read only once: its text is kept.
                data = pipe_content(path)
                if mapped is None or mapped.declared is None:
                    return JsonSource(data, path)
                plan = plan_rows(mapped.declared, None, mapped.assignment, path, self.catalog)
                return JsonSource(data, path, plan)

    def _csv(self, path: str, folder: str | None, mapped: MappedSource | None) -> CsvSource:
        declared, assignment = self._declared(path, _stem(path), folder, mapped)
        data = pipe_content(path)
        dialect = mapped.dialect if mapped is not None else None
        if dialect is None:
            dialect = Dialect(delimiter=usual_delimiter(path))
        names = csv_columns(path, dialect, data)
        plan = plan_rows(declared, names, assignment, path, self.catalog, is_empty=not names)
        return CsvSource(path, plan, names, dialect, data)

    def _frame(
        self, name: str, rows: Any, mapped: MappedSource | None
    ) -> FrameSource | JsonSource | SparkFrame:
        # Its Arrow stream would bring all rows to this process.
        if type(rows).__module__.startswith("pyspark.sql."):
            return self._spark_frame(name, rows, mapped)
        declared, assignment = self._declared(name, name, None, mapped)
        if isinstance(rows, list | tuple):
            text = json_lines(rows, name)
            keys = list(dict.fromkeys(key for row in rows for key in row))
            plan = plan_rows(declared, keys, assignment, name, self.catalog, is_empty=not keys)
            return JsonSource(text, name, plan)
        if not isinstance(rows, pa.Table | ds.Dataset):
            if not hasattr(rows, "__arrow_c_stream__"):
                kind = type(rows).__name__
                raise LoadSourceError(name, f"is not a table: {kind} offers no Arrow stream")
            rows = pa.table(rows)
        names = rows.schema.names
        is_empty = not names and not (
            rows.count_rows() if isinstance(rows, ds.Dataset) else rows.num_rows
        )
        plan = plan_rows(declared, names, assignment, name, self.catalog, is_empty=is_empty)
        return FrameSource(name, plan, rows)

    def _spark_frame(self, name: str, rows: Any, mapped: MappedSource | None) -> SparkFrame:
        if type(rows).__module__.startswith("pyspark.sql.connect."):
            problem = "is a data frame of Spark Connect; give one of a session with a context"
            raise LoadSourceError(name, problem)
        self._spark()
        declared, assignment = self._declared(name, name, None, mapped)
        plan = plan_rows(declared, rows.columns, assignment, name, self.catalog)
        return SparkFrame(name, plan, rows)

    def _spark(self) -> FrameStager:
        if self.spark is None:
            raise LoadSourceError(TEXT_NAME, "data frames and tables of Spark are not read here")
        return self.spark

    def _declared(
        self, source: str, stem: str, folder: str | None, mapped: MappedSource | None
    ) -> tuple[EntityType, Assignment]:
        """The type of a table, and what the mapping says about its columns."""
        if mapped is not None and mapped.declared is not None:
            return mapped.declared, mapped.assignment
        declared = type_named(self.catalog, stem)
        if declared is None and folder is not None:
            declared = type_named(self.catalog, _stem(folder))
        if declared is None:
            raise LoadSourceError(source, f"needs a mapping: no type is named '{stem}'")
        return declared, Assignment()


def _suffix(path: str) -> str:
    """The last suffix of a path that says something about what is in it."""
    suffixes = [s.lower() for s in Path(path).suffixes if s.lower() != ".gz"]
    return suffixes[-1] if suffixes else ""


def _format_of(path: str) -> Format:
    return _FORMATS.get(_suffix(path), "json")


def _stem(path: str) -> str:
    return Path(path).name.partition(".")[0]


def _is_text(given: str) -> bool:
    """Whether a string that should be a path was meant as the data itself."""
    is_json = "\n" in given or given.lstrip().startswith("{")
    return is_json and not os.path.exists(given)


def _files(path: str, format: Format | None) -> Iterator[tuple[str, str | None]]:
    """The files a path stands for, and the folder they were found in, if it is one."""
    if not path:
        raise SourceUnreadable("''", "is not a path", "name a file")
    if is_remote(path):
        yield from _remote_files(path, format)
    elif not os.path.exists(path) and _GLOB & set(path):
        found = sorted(glob.glob(path, recursive=True))
        if not found:
            raise SourceUnreadable(path, "matches no file", "check the pattern")
        for one in found:
            yield from _files(one, format)
    elif os.path.isdir(path):
        files = sorted(str(part) for part in Path(path).rglob("*") if part.is_file())
        yield from _parts(path, files, format)
    else:
        yield path, None


def _remote_files(uri: str, format: Format | None) -> Iterator[tuple[str, str | None]]:
    """The objects an address stands for: a pattern, all below a folder, or the one of that name."""
    if _GLOB & set(uri):
        folder = re.split(r"[*?\[]", uri, maxsplit=1)[0].rpartition("/")[0]
        found = [one for one in list_remote(folder) if _fits(one, uri)]
        if not found:
            raise SourceUnreadable(uri, "matches no file", "check the pattern")
        for one in found:
            yield one, None
        return
    below = [one for one in list_remote(uri) if one.startswith(f"{uri.rstrip('/')}/")]
    if below:
        yield from _parts(uri, below, format)
    else:
        yield uri, None


def _fits(path: str, pattern: str) -> bool:
    """Whether an address fits a pattern, whose `*` stays within a folder and whose `**` does not."""
    if "**" in pattern:
        return fnmatchcase(path, pattern)
    names, wanted = path.split("/"), pattern.split("/")
    return len(names) == len(wanted) and all(map(fnmatchcase, names, wanted))


def _parts(
    folder: str, files: Iterable[str], format: Format | None
) -> Iterator[tuple[str, str | None]]:
    parts = [(file, folder) for file in files if _is_part(file, format)]
    if not parts:
        raise SourceUnreadable(folder, "is a folder without files to load", "name a file")
    yield from parts


def _is_part(path: str, format: Format | None) -> bool:
    """Whether a file in a folder holds data; writers leave marks there that do not."""
    if Path(path).name.startswith(("_", ".")):
        return False
    return format is not None or _suffix(path) in _FORMATS
