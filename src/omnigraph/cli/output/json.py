"""JSON for cells, and the document a command prints with `--json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TextIO

from omnigraph.cli.output.rows import Cell


def compact(value: Cell) -> str:
    """JSON on one line without blanks."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def write_document(document: Mapping[str, object], out: TextIO) -> None:
    """One pretty-printed document, as every `--json` prints it."""
    json.dump(document, out, ensure_ascii=False, allow_nan=False, indent=2)
    out.write("\n")
