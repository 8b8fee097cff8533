"""Query results: an Arrow table with its source, and conversions to rows, JSON and previews.

Tests: tests/unit/engine/test_result.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, TextIO, overload

import pyarrow as pa

from omnigraph.catalog.ir import compact_json
from omnigraph.diagnostics import counted
from omnigraph.errors import UnknownColumn
from omnigraph.language.types import PropType, Scalar
from omnigraph.read.result_values import (
    ELEMENTS,
    INDENTED,
    LINES,
    ROWS_AT_A_TIME,
    RowLayout,
    json_rows,
    public_column,
    public_type,
    python_rows,
)
from omnigraph.versioning.commits import CommitId

if TYPE_CHECKING:
    from collections.abc import Mapping


MAX_TEXT_ROWS = 10
MAX_HTML_ROWS = 20


class Result:
    """Rows of a query, and the branch or snapshot they were read from.

    Columns have the Arrow types of the properties, with `timestamp[ms, UTC]` for DateTime. A blob column
    holds null strings, and a node is represented by its id. Rows are dicts of Python values; the JSON
    methods use the wire format.

    `result[0]` is a row, `result[1:3]` a list of rows, `result["p.name"]` a column.
    """

    __slots__ = ("_table", "_types", "branch", "commit_id", "query_name", "snapshot")

    def __init__(
        self,
        query_name: str,
        table: pa.Table,
        types: tuple[PropType, ...],
        *,
        branch: str | None,
        snapshot: str | None,
        commit_id: CommitId,
    ) -> None:
        if (branch is None) == (snapshot is None):
            raise ValueError("a read has either a branch or a snapshot")
        if table.num_columns != len(types):
            raise ValueError("every column has a type")
        self.query_name = query_name
        self.branch = branch
        self.snapshot = snapshot
        self.commit_id = commit_id
        self._table = _public(table, types)
        self._types = types

    @property
    def columns(self) -> list[str]:
        """Column names, in the order of `return`."""
        return list(self._table.column_names)

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
        return {**self._head(), "rows": list(self.json_dicts(js_safe))}

    def json_dicts(self, js_safe: bool = False) -> Iterator[dict[str, Any]]:
        """One dict of JSON values per row."""
        for text in self._rows(ELEMENTS, js_safe):
            yield from json.loads(f"[{text.removeprefix(',')}]")

    def to_json(self, js_safe: bool = False) -> str:
        """The JSON document of a read, compact."""
        head = compact_json(self._head()).removesuffix("}")
        return "".join([head, ',"rows":[', *self._elements(ELEMENTS, js_safe), "]}"])

    def write_json(self, out: TextIO) -> None:
        """Write the JSON document of a read, indented, with a final newline."""
        head = json.dumps(self._head(), ensure_ascii=False, indent=2).removesuffix("\n}")
        out.write(f'{head},\n  "rows": [')
        out.writelines(self._elements(INDENTED))
        out.write("\n  ]\n}\n" if self.row_count else "]\n}\n")

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
        if kind.scalar is Scalar.DATETIME:
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
