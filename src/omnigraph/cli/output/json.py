"""The two JSON formats, and the document a command prints with `--json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TextIO

from omnigraph.cli.output.rows import Cell, Rows


def compact(value: Cell) -> str:
    """JSON on one line without blanks."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def write_document(document: Mapping[str, object], out: TextIO) -> None:
    """One pretty-printed document, as every `--json` prints it."""
    json.dump(document, out, ensure_ascii=False, allow_nan=False, indent=2)
    out.write("\n")


def write_json(result: Rows, out: TextIO) -> None:
    """The whole result as one document."""
    facts = result.facts
    document: dict[str, object] = {
        "query_name": facts.query_name,
        "target": facts.target,
        "row_count": facts.row_count,
    }
    if result.columns:
        document["columns"] = list(result.columns)
    document["rows"] = [dict(zip(result.columns, row, strict=True)) for row in result.rows]
    write_document(document, out)


def write_jsonl(result: Rows, out: TextIO) -> None:
    """A line about the result, then one line per row."""
    facts = result.facts
    metadata: dict[str, Cell] = {
        "kind": "metadata",
        "query_name": facts.query_name,
        "row_count": facts.row_count,
        "target": facts.target,
    }
    out.write(compact(metadata) + "\n")
    for row in result.rows:
        out.write(compact(dict(zip(result.columns, row, strict=True))) + "\n")
