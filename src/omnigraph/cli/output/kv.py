"""One line per value, for rows too wide to read side by side."""

from __future__ import annotations

from typing import TextIO

from omnigraph.cli.output.cell import cell_text
from omnigraph.cli.output.rows import Rows


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
