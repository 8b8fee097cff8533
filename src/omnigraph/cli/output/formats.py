"""The result formats by name, and which one is used when several places name one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TextIO, TypeAlias, assert_never, get_args

from omnigraph.cli.output.rows import Rows
from omnigraph.cli.output.table import TableLayout, write_table
from omnigraph.cli.style import Style

if TYPE_CHECKING:
    from omnigraph.engine.read.result import Result

Format: TypeAlias = Literal["table", "kv", "csv", "jsonl", "json"]

FORMATS: tuple[Format, ...] = get_args(Format)


def write_result(
    result: Result, format: Format, out: TextIO, layout: TableLayout, style: Style
) -> None:
    """Write a result in a format; layout and style concern the table alone."""

    match format:
        case "json":
            result.write_json(out)
        case "jsonl":
            result.write_jsonl(out)
        case "csv":
            from omnigraph.cli.output.csv import write_csv

            write_csv(_rows(result), out)
        case "kv":
            from omnigraph.cli.output.kv import write_kv

            write_kv(_rows(result), out)
        case "table":
            write_table(_rows(result), out, layout, style)
        case _:
            assert_never(format)


def _rows(result: Result) -> Rows:
    return Rows(
        result.summary, result.columns, (tuple(row.values()) for row in result.json_dicts())
    )


def choose_format(*wishes: Format | None) -> Format:
    """The first format that is named, from the strongest place to the weakest; else `table`."""
    return next((wish for wish in wishes if wish is not None), "table")
