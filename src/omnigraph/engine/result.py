"""The result of a read: an Arrow table that knows what was read, and the forms it can be had in."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import import_module
from math import isfinite
from typing import TYPE_CHECKING, Any, TextIO

import pyarrow as pa

from omnigraph.catalog.ir import compact_json
from omnigraph.diagnostics import counted
from omnigraph.engine.result_json import ELEMENTS, INDENTED, LINES, RowLayout, json_rows
from omnigraph.errors import InputError
from omnigraph.language.types import PropType, Scalar
from omnigraph.versioning.commits import CommitId

if TYPE_CHECKING:
    from collections.abc import Mapping

_PLAIN = frozenset({Scalar.STRING, Scalar.BOOL, Scalar.I32, Scalar.I64, Scalar.U32, Scalar.U64})
_FEW_ROWS = 64
_TEXT_ROWS = 10
_HTML_ROWS = 20


class Result:
    """Rows of a query, with one type per column, and the branch or else the snapshot they are of.

    Columns have the Arrow types of the properties; a blob column is one of null strings, and a
    node stands as its id. Rows as dicts, and as JSON, have the value forms of the wire.
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
        self._table = table
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

    def to_pandas(self) -> Any:
        """A pandas data frame; a DateTime column holds UTC times. Needs pandas."""
        _optional("pandas", "to_pandas")
        # Days as Python objects would end at the year 9999, and take long.
        return self._with_times().to_pandas(date_as_object=False)

    def to_polars(self) -> Any:
        """A Polars data frame; a DateTime column holds UTC times. Needs Polars."""
        return _optional("polars", "to_polars").from_arrow(self._with_times())

    def _with_times(self) -> pa.Table:
        """DateTime columns as timestamps: data frames take the stored type for one of days."""
        table = self._table
        for index, kind in enumerate(self._types):
            if kind.scalar is Scalar.DATETIME:
                stamp = pa.timestamp("ms", "UTC")
                type = pa.list_(pa.field("item", stamp)) if kind.list else stamp
                column = table.column(index).cast(type)
                table = table.set_column(index, table.field(index).with_type(type), column)
        return table

    # -- rows -------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self._dicts(js_safe=False)

    def to_dicts(self, js_safe: bool = False) -> list[dict[str, Any]]:
        """One dict per row, by column name.

        With `js_safe`, integers beyond ±(2^53−1) are strings of their digits.
        """
        if not js_safe and self.row_count <= _FEW_ROWS and self._has_plain_values():
            # Through text, the making of the kernels would take longer than the rows.
            rows: list[dict[str, Any]] = self._table.to_pylist()
            return rows
        return list(self._dicts(js_safe=js_safe))

    def _has_plain_values(self) -> bool:
        """Whether every value is the same on the wire as in Python."""
        for column, kind in zip(self._table.columns, self._types, strict=True):
            if kind.list or kind.is_vector or kind.is_blob:
                return False
            if kind.scalar is Scalar.F64:
                if not all(v is None or isfinite(v) for v in column.to_pylist()):
                    return False
            elif kind.scalar not in _PLAIN:
                return False
        return True

    def _dicts(self, *, js_safe: bool) -> Iterator[dict[str, Any]]:
        for text in self._rows(ELEMENTS, js_safe):
            yield from json.loads(f"[{text.removeprefix(',')}]")

    # -- JSON -------------------------------------------------------------------------------

    def to_envelope(self, js_safe: bool = False) -> dict[str, Any]:
        """The document of a read, as the server sends it."""
        return {**self._head(), "rows": self.to_dicts(js_safe)}

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


def _optional(library: str, method: str) -> Any:
    """A library that is only needed here. Raises `InputError` when it is not installed."""
    try:
        return import_module(library)
    except ImportError:
        advice = f"install it with `pip install {library}`"
        raise InputError(f"{method} needs the library {library}; {advice}") from None
