"""Query results: an Arrow table with its source, and conversions to rows, JSON and previews.

A Date column is `date32` and a DateTime column `timestamp[ms, UTC]`; tables store the latter as `date64`,
which other libraries read as days. In Python they are `date`, and `datetime` in UTC. In JSON, dates and
timestamps are text, a non-finite number is its name, a single-precision number has the fewest digits that
read back to it, and blobs are null. Tests: tests/unit/engine/test_result.py, tests/behaviour/test_scan.py."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import islice
from typing import Any, Final, TextIO, overload

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.arrow import arrow_type
from omnigraph.catalog.ir import compact_json
from omnigraph.diagnostics import counted
from omnigraph.errors import InputError, UnknownColumn
from omnigraph.language.types import PropType, Scalar
from omnigraph.rows.json_text import (
    date_texts,
    float_texts,
    joined,
    list_texts,
    moment_texts,
    null_where_null,
    quoted,
    split_batches,
)
from omnigraph.versioning.commits import CommitId

TIMESTAMP: Final = pa.timestamp("ms", "UTC")
ROWS_AT_A_TIME: Final = 4096
"""Rows that an iterator converts at a time."""


def public_type(kind: PropType) -> pa.DataType:
    """The Arrow type of a property or expression in results."""
    if not _has_moments(kind):
        return arrow_type(kind)
    element = TIMESTAMP
    if kind.fields is not None:
        element = pa.struct([pa.field(name, public_type(part)) for name, part in kind.fields])
    return pa.list_(pa.field("item", element)) if kind.list else element


def public_column(column: pa.Array, kind: PropType) -> pa.Array:
    """A stored column in its public type, without copying values."""
    if not _has_moments(kind):
        return column
    if kind.list or kind.fields is not None:
        return column.cast(public_type(kind))
    return column.view(TIMESTAMP)


def _has_moments(kind: PropType) -> bool:
    fields = kind.fields or ()
    return kind.scalar is Scalar.DATETIME or any(_has_moments(part) for _, part in fields)


def python_rows(columns: Mapping[str, pa.ChunkedArray | pa.Array]) -> Iterator[dict[str, Any]]:
    """One dict per row. Raises `InputError` for a date or time that Python cannot represent."""
    values = [_values(name, column) for name, column in columns.items()]
    names = list(columns)
    return (dict(zip(names, row, strict=True)) for row in zip(*values, strict=True))


def _values(name: str, column: pa.ChunkedArray | pa.Array) -> list[Any]:
    kind = column.type
    if not _has_times(kind):
        plain: list[Any] = column.to_pylist()
        return plain
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_struct(kind):
        parts = {field.name: column.field(field.name) for field in kind}
        rows = python_rows(parts)
        there = column.is_valid().to_pylist()
        return [row if valid else None for row, valid in zip(rows, there, strict=True)]
    if not pa.types.is_list(kind):
        return _times(name, column)
    items = iter(_values(name, column.flatten()))
    lengths = column.value_lengths().to_pylist()
    return [None if length is None else list(islice(items, length)) for length in lengths]


def _has_times(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return any(_has_times(field.type) for field in kind)
    if pa.types.is_list(kind):
        return _has_times(kind.value_type)
    return kind == TIMESTAMP or bool(pa.types.is_date32(kind))


def _times(name: str, column: pa.Array) -> list[Any]:
    """Dates or timestamps, through numpy, which is many times faster than Arrow."""
    unit = "datetime64[ms]" if column.type == TIMESTAMP else "datetime64[D]"
    found: list[Any] = column.to_numpy(zero_copy_only=False).astype(unit).tolist()
    if any(isinstance(time, int) for time in found):
        raise InputError(
            f"column '{name}' has a time outside of the years 1 to 9999, which Python cannot "
            "represent; read it as Arrow or JSON"
        )
    if column.type != TIMESTAMP:
        return found
    return [None if moment is None else moment.replace(tzinfo=dt.UTC) for moment in found]


_MAX_SAFE_INTEGER: Final = 2**53 - 1
"""The largest integer up to which every JavaScript number is exact."""

FEW_ROWS: Final = 16
"""Rows up to which calls of Arrow take longer than Python takes for all values."""

_PLAIN: Final = frozenset(
    [Scalar.STRING, Scalar.BOOL, Scalar.I32, Scalar.I64, Scalar.U32, Scalar.U64]
)
"""The types of which single values are written by Python; the others have rules of their own."""


@dataclass(frozen=True, slots=True)
class RowLayout:
    """The text around, between and inside the values of a row."""

    start: str
    between: str
    colon: str
    end: str
    list_start: str = "["
    list_between: str = ","
    list_end: str = "]"


LINES: Final = RowLayout("{", ",", ":", "}\n")
"""One row per line."""

ELEMENTS: Final = RowLayout(",{", ",", ":", "}")
"""Array elements without blanks, each with a leading comma."""

INDENTED: Final = RowLayout(
    ",\n    {\n      ",
    ",\n      ",
    ": ",
    "\n    }",
    "[\n        ",
    ",\n        ",
    "\n      ]",
)
"""Array elements one level deep in a document indented by two spaces."""


def rows_json(table: pa.Table, types: Sequence[PropType]) -> bytes:
    """The rows as a compact JSON array."""
    buffers = json_rows(table, types, ELEMENTS)
    return b"[" + b"".join(map(memoryview, buffers))[1:] + b"]"


def json_rows(
    table: pa.Table, types: Sequence[PropType], layout: RowLayout, *, js_safe: bool = False
) -> Iterator[pa.Buffer]:
    """The rows as UTF-8 text, in buffers of some megabytes.

    With `js_safe`, integers that JavaScript cannot represent exactly are strings.
    """
    keys = [compact_json(name) + layout.colon for name in table.column_names]
    if table.num_rows <= FEW_ROWS and keys and all(map(_is_plain, types)):
        if table.num_rows:
            yield _few_rows(table, keys, layout, js_safe)
        return
    for batch in split_batches(table.to_batches()):
        parts: list[object] = []
        for key, column, kind in zip(keys, batch.columns, types, strict=True):
            parts += [(layout.between if parts else layout.start) + key]
            parts += [pc.fill_null(_json_texts(column, kind, layout, js_safe), "null")]
        yield joined([*parts, layout.end])


def _is_plain(kind: PropType) -> bool:
    """Whether a Python value of the type has the same JSON text as its Arrow value."""
    return kind.scalar in _PLAIN and not (kind.is_vector or kind.is_blob or kind.list)


def _few_rows(table: pa.Table, keys: Sequence[str], layout: RowLayout, js_safe: bool) -> pa.Buffer:
    """The same text, value by value: for a few rows that takes a tenth of the time."""
    columns = [column.to_pylist() for column in table.columns]
    texts = [
        layout.between.join(
            key + _plain_text(value, js_safe) for key, value in zip(keys, row, strict=True)
        )
        for row in zip(*columns, strict=True)
    ]
    return pa.py_buffer("".join(f"{layout.start}{text}{layout.end}" for text in texts).encode())


def _plain_text(value: object, js_safe: bool) -> str:
    if js_safe and type(value) is int and abs(value) > _MAX_SAFE_INTEGER:
        return f'"{value}"'
    return json.dumps(value, ensure_ascii=False)


def _json_texts(column: pa.Array, kind: PropType, layout: RowLayout, js_safe: bool) -> pa.Array:
    if kind.is_blob:
        return pa.nulls(len(column), pa.utf8())
    if kind.is_object:
        return _object_texts(column, kind, js_safe)
    if not kind.is_vector and not kind.list:
        return _scalar_texts(column, kind.scalar, js_safe)
    items = column.flatten()
    # A non-finite number in a vector has no text and becomes null.
    if kind.is_vector:
        texts = float_texts(items)
    elif kind.fields is not None:
        texts = _object_texts(items, kind.element(), js_safe)
    else:
        texts = _scalar_texts(items, kind.scalar, js_safe)
    return list_texts(column, texts, layout.list_start, layout.list_between, layout.list_end)


def _object_texts(column: pa.Array, kind: PropType, js_safe: bool) -> pa.Array:
    """Objects without blanks; null where there is none."""
    parts: list[object] = ["{"]
    for number, (name, part) in enumerate(kind.fields or ()):
        parts += [(',"' if number else '"') + compact_json(name)[1:-1] + '":']
        texts = _json_texts(column.field(name), part, ELEMENTS, js_safe)
        parts += [pc.fill_null(texts, "null")]
    texts = pc.binary_join_element_wise(*parts, "}", "")
    return null_where_null(texts, column)


def _scalar_texts(column: pa.Array, scalar: Scalar, js_safe: bool) -> pa.Array:
    if scalar is Scalar.STRING:
        return quoted(column)
    if scalar is Scalar.DATE:
        return date_texts(column)
    if scalar is Scalar.DATETIME:
        return moment_texts(column)
    if scalar.is_float:
        return _named_floats(column)
    texts = pc.cast(column, pa.utf8())
    return (
        _safe_integers(column, texts) if js_safe and scalar in (Scalar.I64, Scalar.U64) else texts
    )


def _named_floats(column: pa.Array) -> pa.Array:
    texts = float_texts(column)
    if texts.null_count > column.null_count:
        sign = pc.if_else(pc.less(column, 0.0), '"-Infinity"', '"Infinity"')
        names = pc.if_else(pc.is_nan(column), '"NaN"', sign)
        texts = pc.coalesce(texts, names)
    return texts


def _safe_integers(column: pa.Array, texts: pa.Array) -> pa.Array:
    unsafe = pc.greater(column, pa.scalar(_MAX_SAFE_INTEGER, column.type))
    if pa.types.is_signed_integer(column.type):
        unsafe = pc.or_(unsafe, pc.less(column, pa.scalar(-_MAX_SAFE_INTEGER, column.type)))
    if not pc.any(unsafe).as_py():
        return texts
    return pc.if_else(unsafe, pc.binary_join_element_wise('"', texts, '"', ""), texts)


MAX_TEXT_ROWS = 10
MAX_HTML_ROWS = 20


class Result:
    """Rows of a query, and the branch or snapshot they were read from.

    Columns have the Arrow types of the properties, with `timestamp[ms, UTC]` for DateTime. A blob column
    holds null strings, and a node is represented by its id. Rows are dicts of Python values; the JSON
    methods use the wire format.

    `result[0]` is a row, `result[1:3]` a list of rows, `result["p.name"]` a column. `results` has the
    further results of the query by name.
    """

    __slots__ = (
        "_table", "_types", "branch", "commit_id", "entities", "query_name", "results", "scores",
        "snapshot",
    )  # fmt: skip

    def __init__(
        self,
        query_name: str,
        table: pa.Table,
        types: tuple[PropType, ...],
        *,
        branch: str | None,
        snapshot: str | None,
        commit_id: CommitId,
        entities: Mapping[str, str] | None = None,
        scores: Mapping[str, str] | None = None,
    ) -> None:
        """`entities` has the columns that are variables themselves, with the types of their nodes;
        `scores` the unnamed score columns, with their names in contract 0.13.
        """
        if (branch is None) == (snapshot is None):
            raise ValueError("a read has either a branch or a snapshot")
        if table.num_columns != len(types):
            raise ValueError("every column has a type")
        self.query_name = query_name
        self.branch = branch
        self.snapshot = snapshot
        self.commit_id = commit_id
        self.entities = entities or {}
        self.scores = scores or {}
        self.results: Mapping[str, Result] = {}
        self._table = _public(table, types)
        self._types = types

    @property
    def columns(self) -> list[str]:
        """Column names, in the order of `return`."""
        return list(self._table.column_names)

    @property
    def types(self) -> tuple[PropType, ...]:
        """The declared types of the columns."""
        return self._types

    @property
    def row_count(self) -> int:
        return int(self._table.num_rows)

    @property
    def target(self) -> dict[str, str | None]:
        """The branch or snapshot that was read, as in JSON documents."""
        return {"branch": self.branch, "snapshot": self.snapshot}

    @property
    def summary(self) -> str:
        """One line: the number of rows, their source and the query."""
        source = f"branch {self.branch}" if self.snapshot is None else f"snapshot {self.snapshot}"
        return f"{counted(self.row_count, 'row')} from {source} via {self.query_name}"

    def __len__(self) -> int:
        return self.row_count

    # -- tables -----------------------------------------------------------------------------

    def to_arrow(self) -> pa.Table:
        return self._table

    def to_batches(self) -> list[pa.RecordBatch]:
        """The rows as Arrow record batches."""
        return list(self._table.to_batches())

    def to_ipc(self) -> bytes:
        """The rows as an Arrow IPC stream."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self._table.schema) as writer:
            writer.write_table(self._table)
        return bytes(sink.getvalue())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The Arrow C stream protocol."""
        return self._table.__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> Any:
        """A pandas data frame. Needs pandas."""
        _optional("pandas", "to_pandas")
        # Python date objects end at the year 9999 and are slow to make.
        return self._table.to_pandas(date_as_object=False)

    def to_polars(self) -> Any:
        """A Polars data frame. Needs Polars."""
        return _optional("polars", "to_polars").from_arrow(self._table)

    def to_networkx(self, source: str | None = None, target: str | None = None) -> Any:
        """A networkx `MultiDiGraph` with an edge per row. Needs networkx.

        `source` and `target` name the columns of its two nodes, by default the first two. The other
        columns are attributes of the edge; a column that is a node gives its nodes their `type`. A row
        in which one of the two is null is only a node.
        """
        from omnigraph.read.networks import to_networkx

        return to_networkx(self, _optional("networkx", "to_networkx"), source, target)

    # -- rows -------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for start in range(0, self.row_count, ROWS_AT_A_TIME):
            yield from self._slice(start, ROWS_AT_A_TIME)

    @overload
    def __getitem__(self, wanted: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, wanted: slice) -> list[dict[str, Any]]: ...
    @overload
    def __getitem__(self, wanted: str) -> pa.ChunkedArray: ...
    def __getitem__(
        self, wanted: int | slice | str
    ) -> dict[str, Any] | list[dict[str, Any]] | pa.ChunkedArray:
        """A row by number, rows by slice, or a column by name.

        Raises `IndexError`, or `UnknownColumn`, which is a `KeyError`.
        """
        if isinstance(wanted, str):
            if wanted not in self.columns:
                raise UnknownColumn(wanted, "the result", self.columns)
            return self._table.column(wanted)
        if isinstance(wanted, slice):
            numbers = range(self.row_count)[wanted]
            if numbers.step == 1:
                return list(self._slice(numbers.start, len(numbers)))
            return list(self._dicts(self._table.take(list(numbers))))
        return next(self._slice(range(self.row_count)[wanted], 1))

    def to_dicts(self) -> list[dict[str, Any]]:
        """One dict of Python values per row."""
        return list(self._dicts(self._table))

    def _slice(self, start: int, count: int) -> Iterator[dict[str, Any]]:
        return self._dicts(self._table.slice(start, count))

    def _dicts(self, table: pa.Table) -> Iterator[dict[str, Any]]:
        if not table.num_columns:
            return ({} for _ in range(table.num_rows))
        return python_rows(dict(zip(table.column_names, table.columns, strict=True)))

    # -- JSON -------------------------------------------------------------------------------

    def to_envelope(self, js_safe: bool = False) -> dict[str, Any]:
        """The JSON document of a read as a dict, as the server sends it.

        With `js_safe`, integers beyond ±(2^53−1) are strings, here and in `to_json`.
        """
        document = {**self._head(), "rows": list(self.json_dicts(js_safe))}
        if self.results:
            document["results"] = {
                name: {**further.shape, "rows": list(further.json_dicts(js_safe))}
                for name, further in self.results.items()
            }
        return document

    @property
    def shape(self) -> dict[str, Any]:
        """The columns and the number of rows, as a document has them."""
        return {"columns": self.columns, "row_count": self.row_count}

    def json_dicts(self, js_safe: bool = False) -> Iterator[dict[str, Any]]:
        """One dict of JSON values per row."""
        for text in self._rows(ELEMENTS, js_safe):
            yield from json.loads(f"[{text.removeprefix(',')}]")

    def to_json(self, js_safe: bool = False) -> str:
        """The JSON document of a read, compact."""
        head = compact_json(self._head()).removesuffix("}")
        rows = self._elements(ELEMENTS, js_safe)
        return "".join([head, ',"rows":[', *rows, "]", *self._further(js_safe), "}"])

    def _further(self, js_safe: bool) -> Iterator[str]:
        """The further results, as the end of a compact document."""
        for number, (name, result) in enumerate(self.results.items()):
            yield ("," if number else ',"results":{') + compact_json(name) + ":"
            yield compact_json(result.shape).removesuffix("}") + ',"rows":['
            yield from result._elements(ELEMENTS, js_safe)
            yield "]}"
        if self.results:
            yield "}"

    def rows_json(self) -> bytes:
        """The rows as a compact JSON array, as in `to_json`."""
        return rows_json(self._table, self._types)

    def write_json(self, out: TextIO) -> None:
        """Write the JSON document of a read, indented, with a final newline."""
        head = json.dumps(self._head(), ensure_ascii=False, indent=2).removesuffix("\n}")
        out.write(f'{head},\n  "rows": [')
        out.writelines(self._elements(INDENTED))
        out.write("\n  ]" if self.row_count else "]")
        if self.results:
            further = json.loads("{" + "".join(self._further(False))[1:] + "}")
            text = json.dumps(further, ensure_ascii=False, indent=2)
            out.write("," + text.removeprefix("{").removesuffix("\n}"))
        out.write("\n}\n")

    def write_jsonl(self, out: TextIO) -> None:
        """Write a metadata line, then one line per row."""
        facts = {"query_name": self.query_name, "row_count": self.row_count, "target": self.target}
        out.write(compact_json({"kind": "metadata", **facts}) + "\n")
        out.writelines(self._rows(LINES))

    def _head(self) -> Mapping[str, Any]:
        head: dict[str, Any] = {
            "query_name": self.query_name,
            "target": self.target,
            "graph_commit_id": self.commit_id,
            "row_count": self.row_count,
        }
        if self.columns:
            head["columns"] = self.columns
        return head

    def _elements(self, layout: RowLayout, js_safe: bool = False) -> Iterator[str]:
        """The rows as array elements, without the comma before the first."""
        rows = self._rows(layout, js_safe)
        yield next(rows, "").removeprefix(",")
        yield from rows

    def _rows(self, layout: RowLayout, js_safe: bool = False) -> Iterator[str]:
        for buffer in json_rows(self._table, self._types, layout, js_safe=js_safe):
            yield str(buffer, "utf-8")

    # -- previews ---------------------------------------------------------------------------

    def __repr__(self) -> str:

        return text_preview(self.summary, self.columns, self._first(MAX_TEXT_ROWS), self.row_count)

    def _repr_html_(self) -> str:

        return html_preview(self.summary, self.columns, self._first(MAX_HTML_ROWS), self.row_count)

    def _first(self, rows: int) -> list[dict[str, Any]]:
        texts = json_rows(self._table.slice(0, rows), self._types, LINES)
        return [json.loads(line) for text in texts for line in bytes(text).splitlines()]


def _public(table: pa.Table, types: tuple[PropType, ...]) -> pa.Table:
    for index, kind in enumerate(types):
        if _has_moments(kind):
            wanted = public_type(kind)
            chunks = [public_column(chunk, kind) for chunk in table.column(index).chunks]
            field = table.field(index).with_type(wanted)
            table = table.set_column(index, field, pa.chunked_array(chunks, wanted))
    return table


def _optional(library: str, method: str) -> Any:
    """Import an optional library. Raises `MissingExtra` if it is not installed."""
    try:
        return import_module(library)
    except ImportError:
        from omnigraph.extras import missing_library

        raise missing_library(library, f"{method}()") from None


MAX_CELL_CHARS = 40

Row = Mapping[str, object]


def text_preview(summary: str, columns: Sequence[str], rows: Sequence[Row], total: int) -> str:
    """The summary, the rows in aligned columns, and the number of rows not shown."""
    table = [[_cell(name) for name in columns], *_cells(columns, rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = [
        " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in table
    ]
    lines.insert(1, "-+-".join("-" * width for width in widths))
    return "\n".join([summary, *lines, *_note(len(rows), total)])


def html_preview(summary: str, columns: Sequence[str], rows: Sequence[Row], total: int) -> str:
    """As `text_preview`, as an escaped HTML table."""
    from html import escape

    head = "".join(f"<th>{escape(_cell(name))}</th>" for name in columns)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>"
        for row in _cells(columns, rows)
    )
    notes = "".join(f"<p>{escape(note)}</p>" for note in _note(len(rows), total))
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f"<div><p>{escape(summary)}</p>{table}{notes}</div>"


def _cells(columns: Sequence[str], rows: Sequence[Row]) -> list[list[str]]:
    return [[_cell(row[name]) for name in columns] for row in rows]


def _cell(value: object) -> str:
    text = value if isinstance(value, str) else compact_json(value)
    text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text[: MAX_CELL_CHARS + 1])
    return text if len(text) <= MAX_CELL_CHARS else text[: MAX_CELL_CHARS - 1] + "…"


def _note(shown: int, total: int) -> list[str]:
    return [f"… {counted(total - shown, 'more row')}"] if total > shown else []
