"""Rows given as Python dicts: the JSON text that the loader reads, one object a line."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID

from omnigraph.errors import LoadSourceError


def is_rows(given: object) -> bool:
    """Whether this is a list of rows, or a table or data frame."""
    return isinstance(given, list | tuple) or hasattr(given, "__arrow_c_stream__")


def json_lines(rows: Iterable[object], source: str) -> bytes:
    """Rows as JSON lines. Raises `LoadSourceError` for a row or value that has no JSON form."""
    lines = []
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, Mapping):
            problem = f"row {number} is not a dict but {type(row).__name__}"
            raise LoadSourceError(source, problem)
        try:
            lines.append(json.dumps(row, ensure_ascii=False, default=_json_value))
        except (TypeError, ValueError) as error:
            raise LoadSourceError(source, f"row {number}: {error}") from None
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogatepass")


def _json_value(value: Any) -> object:
    """The JSON form of a Python value that `json` does not know."""
    match value:
        case datetime():
            moment = value if value.tzinfo else value.replace(tzinfo=UTC)
            return moment.isoformat()
        case date():
            return value.isoformat()
        case bytes() | bytearray() | memoryview():
            return "base64:" + base64.b64encode(value).decode()
        case UUID():
            return str(value)
        case Mapping():
            return dict(value)
    # Scalars and arrays of numpy, without importing it for those who have none.
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"a value of type {type(value).__name__} cannot be stored")
