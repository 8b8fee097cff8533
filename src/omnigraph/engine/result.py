"""The result of a read: an Arrow table that knows what was read, and the forms it can be had in."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any, TextIO, overload

import pyarrow as pa

from omnigraph.catalog.ir import compact_json
from omnigraph.diagnostics import counted
from omnigraph.engine.python_values import ROWS_AT_A_TIME, public_column, public_type, python_rows
from omnigraph.engine.result_json import ELEMENTS, INDENTED, LINES, RowLayout, json_rows
from omnigraph.errors import UnknownColumn
from omnigraph.language.types import PropType, Scalar
from omnigraph.versioning.commits import CommitId

if TYPE_CHECKING:
    from collections.abc import Mapping

_TEXT_ROWS = 10
_HTML_ROWS = 20


class Result:
    """Rows of a query, with one type per column, and the branch or else the snapshot they are of.

    Columns have the Arrow types of the properties, with `timestamp[ms, UTC]` for DateTime; a blob
    column is one of null strings, and a node stands as its id. Rows are dicts of Python values;
    only the JSON forms have the texts of the wire.

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
        """The names of the columns, in the order of `return`."""
        return list(self._table.column_names)

    @property
    def row_count(self) -> int:
        return int(self._table.num_rows)

    @property
    def target(self) -> dict[str, str | None]:
        """What was read, as documents say it."""
        return {"branch": self.branch, "snapshot": self.snapshot}

    @property
    def summary(self) -> str:
        """One line for people: how many rows, from where, by which query."""
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
        """The rows for any library that takes Arrow data."""
        return self._table.__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> Any:
        """A pandas data frame. Needs pandas."""
        _optional("pandas", "to_pandas")
        # Days as Python objects would end at the year 9999, and take long.
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
        """A row by its number, rows by a slice, a column by its name.

        Raises `IndexError` for a row and `UnknownColumn`, a `KeyError`, for a column that is not
        there.
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
        """One dict of Python values per row, by column name."""
        return list(self._dicts(self._table))

    def _slice(self, start: int, count: int) -> Iterator[dict[str, Any]]:
        return self._dicts(self._table.slice(start, count))

    def _dicts(self, table: pa.Table) -> Iterator[dict[str, Any]]:
        if not table.num_columns:
            return ({} for _ in range(table.num_rows))
        return python_rows(dict(zip(table.column_names, table.columns, strict=True)))

    # -- JSON -------------------------------------------------------------------------------

    def to_envelope(self, js_safe: bool = False) -> dict[str, Any]:
        """The document of a read, as the server sends it: values have their JSON forms.

        With `js_safe`, integers beyond ±(2^53−1) are strings of their digits, here and in `to_json`.
        """
        return {**self._head(), "rows": list(self.json_dicts(js_safe))}

    def json_dicts(self, js_safe: bool = False) -> Iterator[dict[str, Any]]:
        """One dict per row whose values have their JSON forms."""
        for text in self._rows(ELEMENTS, js_safe):
            yield from json.loads(f"[{text.removeprefix(',')}]")

    def to_json(self, js_safe: bool = False) -> str:
        """The document of a read as JSON without blanks."""
        head = compact_json(self._head()).removesuffix("}")
        return "".join([head, ',"rows":[', *self._elements(ELEMENTS, js_safe), "]}"])

    def write_json(self, out: TextIO) -> None:
        """Write the document of a read as JSON indented by two blanks, and a line break."""
        head = json.dumps(self._head(), ensure_ascii=False, indent=2).removesuffix("\n}")
        out.write(f'{head},\n  "rows": [')
        out.writelines(self._elements(INDENTED))
        out.write("\n  ]\n}\n" if self.row_count else "]\n}\n")

    def write_jsonl(self, out: TextIO) -> None:
        """Write a line about the result, then one line per row."""
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
        """The rows as elements of an array, without the comma before the first."""
        rows = self._rows(layout, js_safe)
        yield next(rows, "").removeprefix(",")
        yield from rows

    def _rows(self, layout: RowLayout, js_safe: bool = False) -> Iterator[str]:
        for piece in json_rows(self._table, self._types, layout, js_safe=js_safe):
            yield str(piece, "utf-8")

    # -- people -----------------------------------------------------------------------------

    def __repr__(self) -> str:
        from omnigraph.engine.result_preview import text_preview

        return text_preview(self.summary, self.columns, self._first(_TEXT_ROWS), self.row_count)

    def _repr_html_(self) -> str:
        from omnigraph.engine.result_preview import html_preview

        return html_preview(self.summary, self.columns, self._first(_HTML_ROWS), self.row_count)

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
    """A library that is only needed here. Raises `MissingExtra` when it is not installed."""
    try:
        return import_module(library)
    except ImportError:
        from omnigraph.extras import missing_library

        raise missing_library(library, f"{method}()") from None
