"""Mappings: documents that say which type the rows of a source are, and where their values are.

A document is checked against the schema before any source is opened. Tests: tests/unit/load.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, get_args

from omnigraph.catalog.model import Catalog, EdgeType, EntityType
from omnigraph.diagnostics import did_you_mean
from omnigraph.errors import LoadSourceError, SourceUnreadable
from omnigraph.load.csv_rows import Dialect
from omnigraph.load.row_plan import ENDPOINTS, Assignment, Constant
from omnigraph.storage.files import is_remote

Format = Literal["json", "csv", "parquet"]

GIVEN: Final = "<mapping>"
"""What messages call a mapping that is not a file."""

_ADDRESSES: Final = ("path", "table", "name")
_TYPES: Final = ("node", "edge")
_KEYS: Final = (*_ADDRESSES, *_TYPES, *ENDPOINTS, "format", "csv", "id", "columns")
_CSV_KEYS: Final = ("delimiter", "quote", "header", "null", "list_separator")


@dataclass(frozen=True, slots=True)
class MappedSource:
    """What a mapping says about one source: a path or pattern, a table, or a data frame's name.

    Without a type the source holds records that name theirs.
    """

    declared: EntityType | None
    assignment: Assignment = field(default_factory=Assignment)
    path: str | None = None
    table: str | None = None
    name: str | None = None
    format: Format | None = None
    dialect: Dialect | None = None


@dataclass(frozen=True, slots=True)
class SourceMapping:
    """The sources of a mapping, in its order."""

    sources: tuple[MappedSource, ...] = ()


def usual_delimiter(path: str) -> str:
    """What separates the fields of a file unless a mapping says otherwise."""
    return "\t" if path.lower().removesuffix(".gz").endswith(".tsv") else ","


def read_mapping(given: str | Path | Mapping[str, object], catalog: Catalog) -> SourceMapping:
    """The mapping in a file, or in a document given as it is. Paths are relative to the file.

    Raises `LoadSourceError` and `SourceUnreadable`.
    """
    if isinstance(given, Mapping):
        return _Reader(catalog, GIVEN, Path()).read(given)
    path = Path(given)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        reason = (error.strerror or "cannot be opened").lower()
        raise SourceUnreadable(str(path), reason, "check the path of the mapping") from None
    except UnicodeDecodeError:
        raise SourceUnreadable(str(path), "is not UTF-8 text", "save it as UTF-8") from None
    # Imported here because few loads have a mapping, and every command would wait for YAML.
    from omnigraph.documents import DocumentError, parse_document

    try:
        document = parse_document(text)
    except DocumentError as error:
        raise LoadSourceError(str(path), str(error)) from None
    return _Reader(catalog, str(path), path.parent).read(document)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads one document; `where` says in every message which part is wrong."""

    catalog: Catalog
    where: str
    folder: Path

    def read(self, document: object) -> SourceMapping:
        fields = self._object(document, "a mapping", ("version", "sources"))
        if fields.get("version") != 1:
            raise self._wrong("'version' must be 1")
        sources = fields.get("sources")
        if not isinstance(sources, list) or not sources:
            raise self._wrong("'sources' must be a list with at least one source")
        return SourceMapping(
            tuple(
                _Reader(self.catalog, f"{self.where}: source {number}", self.folder)._source(one)
                for number, one in enumerate(sources, 1)
            )
        )

    def _source(self, given: object) -> MappedSource:
        fields = self._object(given, "a source", _KEYS)
        address = self._one_of(fields, _ADDRESSES)
        if address is None:
            raise self._wrong("needs one of 'path', 'table' and 'name'")
        text = self._text(fields, address)
        declared = self._declared(fields)
        is_file = address == "path"
        format = self._format(fields)
        if not is_file and (format or "csv" in fields):
            what = "data frame" if address == "name" else address
            raise self._wrong(f"a {what} has no format")
        if declared is None and (not is_file or format in ("csv", "parquet")):
            raise self._wrong("needs 'node' or 'edge'")
        return MappedSource(
            declared,
            self._assignment(fields, declared),
            path=self._located(text) if is_file else None,
            table=text if address == "table" else None,
            name=text if address == "name" else None,
            format=format,
            dialect=self._dialect(fields, text, format),
        )

    def _located(self, path: str) -> str:
        return path if is_remote(path) else str(self.folder / path)

    def _declared(self, fields: Mapping[str, Any]) -> EntityType | None:
        kind = self._one_of(fields, _TYPES)
        if kind is None:
            return None
        name = self._text(fields, kind)
        nodes, edges = self.catalog.nodes, self.catalog.edges
        declared: EntityType | None = nodes.get(name)
        if kind == "edge":
            declared = self.catalog.edge_for_traversal(name)
        if declared is None:
            known: Collection[str] = nodes if kind == "node" else edges
            raise self._unknown(f"unknown {kind} type '{name}'", name, known)
        return declared

    def _assignment(self, fields: Mapping[str, Any], declared: EntityType | None) -> Assignment:
        assigned = [key for key in (*ENDPOINTS, "id", "columns") if key in fields]
        if declared is None and assigned:
            raise self._wrong(f"'{assigned[0]}' needs 'node' or 'edge'")
        endpoints = {
            endpoint: self._endpoint(fields[endpoint], endpoint)
            for endpoint in ENDPOINTS
            if endpoint in fields
        }
        if endpoints and not isinstance(declared, EdgeType):
            raise self._wrong("only an edge has 'from' and 'to'")
        columns = self._object(fields.get("columns", {}), "'columns'", None)
        return Assignment(
            {name: self._origin(name, origin) for name, origin in columns.items()},
            endpoints,
            self._text(fields, "id") if "id" in fields else None,
        )

    def _origin(self, name: str, origin: object) -> str | Constant | None:
        if origin is None or isinstance(origin, str):
            return origin
        if isinstance(origin, Mapping) and set(origin) == {"value"}:
            return Constant(origin["value"])
        raise self._wrong(f"'{name}' must be a column, null, or an object with 'value'")

    def _endpoint(self, given: object, endpoint: str) -> str | Mapping[str, str]:
        if isinstance(given, str):
            return given
        columns = self._object(given, f"'{endpoint}'", None)
        return {name: self._text(columns, name) for name in columns}

    def _format(self, fields: Mapping[str, Any]) -> Format | None:
        if "format" not in fields:
            return None
        for known in get_args(Format):
            if fields["format"] == known:
                found: Format = known
                return found
        raise self._wrong(f"'format' must be one of {', '.join(get_args(Format))}")

    def _dialect(
        self, fields: Mapping[str, Any], path: str, format: Format | None
    ) -> Dialect | None:
        if "csv" not in fields:
            return None
        if format not in (None, "csv"):
            raise self._wrong(f"'csv' does not go with the format '{format}'")
        given = self._object(fields["csv"], "'csv'", _CSV_KEYS)
        null = given.get("null", [""])
        if not isinstance(null, list) or not all(isinstance(text, str) for text in null):
            raise self._wrong("'null' must be a list of texts")
        header = given.get("header", True)
        if not isinstance(header, bool):
            raise self._wrong("'header' must be true or false")
        separator = given.get("list_separator")
        return Dialect(
            delimiter=self._character(given, "delimiter", usual_delimiter(path)),
            quote=self._character(given, "quote", '"'),
            header=header,
            null=tuple(null),
            list_separator=None if separator is None else self._text(given, "list_separator"),
        )

    def _character(self, fields: Mapping[str, Any], key: str, default: str) -> str:
        given = fields.get(key, default)
        if not isinstance(given, str) or len(given) != 1 or not given.isascii() or given in "\r\n":
            raise self._wrong(f"'{key}' must be one ASCII character")
        return given

    # -- the shape of a document ------------------------------------------------------------------

    def _object(self, given: object, what: str, known: Collection[str] | None) -> Mapping[str, Any]:
        if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
            raise self._wrong(f"{what} must be an object")
        for key in given:
            if known is not None and key not in known:
                raise self._unknown(f"unknown key '{key}'", key, known)
        return given

    def _one_of(self, fields: Mapping[str, Any], keys: Collection[str]) -> str | None:
        found = [key for key in keys if key in fields]
        if len(found) > 1:
            raise self._wrong(f"'{found[0]}' and '{found[1]}' exclude each other")
        return found[0] if found else None

    def _text(self, fields: Mapping[str, Any], key: str) -> str:
        if not isinstance(fields[key], str) or not fields[key]:
            raise self._wrong(f"'{key}' must be a text")
        return str(fields[key])

    def _unknown(self, problem: str, name: str, known: Collection[str]) -> LoadSourceError:
        hint = did_you_mean(name, known)
        return self._wrong(f"{problem}; {hint}" if hint else problem)

    def _wrong(self, problem: str) -> LoadSourceError:
        return LoadSourceError(self.where, problem)
