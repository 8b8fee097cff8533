"""The result formats by name, and which one is used when several places name one."""

from __future__ import annotations

from typing import Literal, Protocol, TextIO, TypeAlias, get_args

from omnigraph.cli.output.csv import write_csv
from omnigraph.cli.output.json import write_json, write_jsonl
from omnigraph.cli.output.kv import write_kv
from omnigraph.cli.output.rows import Rows
from omnigraph.cli.output.table import TableLayout, TableWriter
from omnigraph.cli.style import Style

Format: TypeAlias = Literal["table", "kv", "csv", "jsonl", "json"]

FORMATS: tuple[Format, ...] = get_args(Format)


class RowWriter(Protocol):
    """Writes a whole result to a stream in one format."""

    def __call__(self, result: Rows, out: TextIO) -> None: ...


def writer_for(name: Format, layout: TableLayout, style: Style) -> RowWriter:
    """The writer of a format; layout and style concern the table alone."""
    writers: dict[Format, RowWriter] = {
        "table": TableWriter(layout, style),
        "kv": write_kv,
        "csv": write_csv,
        "jsonl": write_jsonl,
        "json": write_json,
    }
    return writers[name]


def choose_format(*wishes: Format | None) -> Format:
    """The first format that is named, from the strongest place to the weakest; else `table`."""
    return next((wish for wish in wishes if wish is not None), "table")
