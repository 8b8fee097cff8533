"""Query results as table, key-value lines, CSV, JSON Lines or JSON, and execution plans as a table.

Tests: tests/unit/cli/test_output.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest
from typing import TYPE_CHECKING, Any, Literal, TextIO, TypeAlias, assert_never, get_args

from omnigraph.cli.exits import Style, warn
from omnigraph.cli.output.answers import (
    Cell,
    Rows,
    cell_text,
    compact,
    measure,
    one_line,
    pad,
    truncate,
    wrap,
    write_document,
)
from omnigraph.diagnostics import counted

if TYPE_CHECKING:
    from omnigraph.read.result import Result


_NARROWEST_CAP = 8
"""A header stays readable even when the width allowed for cells is smaller."""


@dataclass(frozen=True, slots=True)
class TableLayout:
    """How wide a column may get, and what happens to cells that are wider."""

    max_column_width: int = 80
    overlong: Literal["truncate", "wrap"] = "truncate"

    def __post_init__(self) -> None:
        if self.max_column_width < 1:
            raise ValueError("a column is at least 1 wide")


def write_table(result: Rows, out: TextIO, layout: TableLayout, style: Style) -> None:
    """A read result as a table under a line that says what was read."""
    out.write(result.headline + "\n")
    write_grid(result.columns, result.rows, out, layout, style)


def write_grid(
    columns: Sequence[str],
    rows: Iterable[Sequence[Cell]],
    out: TextIO,
    layout: TableLayout,
    style: Style,
) -> None:
    """Column names, a rule, and the rows."""
    if not columns:
        out.write("(no rows)\n")
        return
    header = [one_line(name) for name in columns]
    body = [[one_line(cell_text(value)) for value in row] for row in rows]
    widths = [
        _column_width(name, (row[index] for row in body), layout.max_column_width)
        for index, name in enumerate(header)
    ]
    for line in _lines(header, widths, layout):
        out.write(style.header(line) + "\n")
    out.write("-+-".join("-" * width for width in widths) + "\n")
    for row in body:
        for line in _lines(row, widths, layout):
            out.write(line + "\n")


def _column_width(name: str, cells: Iterable[str], cap: int) -> int:
    widest = max((min(measure(cell), cap) for cell in cells), default=0)
    return min(max(measure(name), widest), max(cap, _NARROWEST_CAP))


def _lines(cells: Sequence[str], widths: Sequence[int], layout: TableLayout) -> Iterator[str]:
    """The terminal lines of one row: one, or more when cells are wrapped."""
    if layout.overlong == "truncate":
        fitted = [[truncate(cell, width)] for cell, width in zip(cells, widths, strict=True)]
    else:
        fitted = [wrap(cell, width) for cell, width in zip(cells, widths, strict=True)]
    for parts in zip_longest(*fitted, fillvalue=""):
        yield " | ".join(pad(part, width) for part, width in zip(parts, widths, strict=True))


Format: TypeAlias = Literal["table", "kv", "csv", "jsonl", "json"]

FORMATS: tuple[Format, ...] = get_args(Format)


def write_result(
    result: Result,
    format: Format,
    out: TextIO,
    layout: TableLayout,
    style: Style,
    *,
    table_rows: int | None = None,
) -> None:
    """Write a result in a format; layout, style and a limit of rows concern the table alone."""
    match format:
        case "json":
            result.write_json(out)
        case "jsonl":
            result.write_jsonl(out)
        case "csv":
            write_csv(_rows(result), out)
        case "kv":
            write_kv(_rows(result), out)
        case "table":
            write_table(_rows(result, table_rows), out, layout, style)
        case _:
            assert_never(format)


def _rows(result: Result, limit: int | None = None) -> Rows:
    rows = islice(result.json_dicts(), limit)
    return Rows(result.summary, result.columns, (tuple(row.values()) for row in rows))


def write_read(
    document: Mapping[str, Any], format: Format, out: TextIO, layout: TableLayout, style: Style
) -> None:
    """Write the document of a read, which came from a server, in a format."""
    for warning in document.get("warnings", ()):
        warn(warning["message"])
    target, facts = document["target"], {name: document[name] for name in ("query_name", "target")}
    if format == "json":
        head = facts | {name: document.get(name) for name in ("graph_commit_id", "row_count")}
        write_document({**head, **document}, out)
        return
    if format == "jsonl":
        metadata = {"kind": "metadata", "query_name": document["query_name"]}
        metadata |= {"row_count": document["row_count"], "target": target}
        out.writelines(f"{compact(line)}\n" for line in (metadata, *document["rows"]))
        return
    where = f"branch {target['branch']}"
    if target["snapshot"] is not None:
        where = f"snapshot {target['snapshot']}"
    headline = f"{counted(document['row_count'], 'row')} from {where} via {document['query_name']}"
    rows = Rows.from_objects(headline, document.get("columns"), document["rows"])
    match format:
        case "csv":
            write_csv(rows, out)
        case "kv":
            write_kv(rows, out)
        case "table":
            write_table(rows, out, layout, style)
        case _:
            assert_never(format)


def choose_format(*wishes: Format | None) -> Format:
    """The first format given, in order of precedence; else `table`."""
    return next((wish for wish in wishes if wish is not None), "table")


_NEEDS_QUOTES = re.compile('[,"\r\n]')


def write_csv(result: Rows, out: TextIO) -> None:
    out.write(_record(result.columns))
    for row in result.rows:
        out.write(_record(map(cell_text, row)))


def _record(fields: Iterable[str]) -> str:
    return ",".join(map(_quote, fields)) + "\n"


def _quote(field: str) -> str:
    if _NEEDS_QUOTES.search(field):
        return '"' + field.replace('"', '""') + '"'
    return field


def write_kv(result: Rows, out: TextIO) -> None:
    out.write(result.headline + "\n")
    number = 0
    for number, row in enumerate(result.rows, 1):
        if number > 1:
            out.write("\n")
        out.write(f"row {number}\n")
        for column, value in zip(result.columns, row, strict=True):
            out.write(f"{column}: {cell_text(value)}\n")
    if not number:
        out.write("(no rows)\n")


_LAYOUT = TableLayout(max_column_width=100, overlong="wrap")


def write_explanation(explained: Mapping[str, Any], out: TextIO, *, as_json: bool) -> None:
    """A line that says what is read and how, then a line per step in their order; or a document."""
    if as_json:
        write_document(explained, out)
        return
    target, plan = explained["target"], explained["plan"]
    source = f"branch {target['branch']}"
    if target["snapshot"] is not None:
        source = f"snapshot {target['snapshot']}"
    access = "by look-ups" if plan["detail"].get("access") == "look-ups" else "in memory"
    out.write(f"{explained['query_name']} on {source}, {access}\n")
    columns = ["step", "expected rows"]
    if "total_ms" in explained:
        columns += ["rows", "ms", "look-ups"]
    rows = [_row(step) for step in _steps(plan)]
    write_grid(columns, rows, out, _LAYOUT, Style.of(out))


def _steps(step: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The steps of a plan in the order in which they run; its tree has the last one at the top."""
    children = step["children"]
    for child in children:
        if child["depth"] == step["depth"]:
            yield from _steps(child)
    yield step
    for child in children:
        if child["depth"] > step["depth"]:
            yield from _steps(child)


def _row(step: Mapping[str, Any]) -> list[str]:
    cells = [f"{'  ' * step['depth']}{step['text']}", f"{step['estimated_rows']:,}"]
    if "actual_rows" in step:
        lookups = step["detail"].get("lookups", 0)
        cells += [f"{step['actual_rows']:,}", f"{step['ms']:.2f}", f"{lookups}"]
    return cells
