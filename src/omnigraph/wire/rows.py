"""Rows and export lines as contract 0.13 writes them.

A null is left out, except inside a list. A DateTime has no zone, and a fraction only if it is not zero. A
number that is not finite is null. An export line has the id beside the type.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import msgspec

from omnigraph.language.types import PropType, Scalar
from omnigraph.read.result import rows_json

if TYPE_CHECKING:
    from omnigraph.mutation.returned import Returned
    from omnigraph.read.result import Result

_NOT_FINITE: Final = frozenset(["NaN", "Infinity", "-Infinity"])
_encoder: Final = msgspec.json.Encoder()


Objects = dict[str, dict[str, dict[str, Any]]]
"""Nodes by column and id, for the columns that are variables themselves."""


def columns_13(result: Result) -> list[str]:
    """The column names. A score without an alias is named after its variable: `d._distance`."""
    if not result.scores:
        return result.columns
    names: list[str] = []
    for column in result.columns:
        base = name = result.scores.get(column, column)
        number = 1
        while name in names:
            number += 1
            name = f"{base}_{number}"
        names.append(name)
    return names


def rows_13(result: Result | Returned, names: list[str], objects: Objects) -> bytes:
    """The rows of a result as a JSON array, with these names of its columns."""
    table, types = result.to_arrow().rename_columns(names), result.types
    text = rows_json(table, types)
    has_nulls = any(column.null_count for column in table.columns)
    if not has_nulls and not objects and not any(map(_is_rewritten, types)):
        return text
    columns = dict(zip(names, types, strict=True))
    rows: list[dict[str, Any]] = [_row(row, columns) for row in msgspec.json.decode(text)]
    for name, nodes in objects.items():
        for row in rows:
            if name in row:
                row[name] = nodes.get(row[name], {"@id": row[name]})
    return _encoder.encode(rows)


def object_13(values: dict[str, Any], types: dict[str, PropType]) -> dict[str, Any]:
    """A node as the value of a variable. Nulls are left out."""
    shown = {name: value for name, value in values.items() if name != "id" and value is not None}
    return {"@id": values["id"]} | {
        name: _cell(value, types[name]) for name, value in sorted(shown.items())
    }


def _is_rewritten(kind: PropType) -> bool:
    if any(_is_rewritten(part) for _, part in kind.fields or ()):
        return True
    return kind.scalar is Scalar.DATETIME or kind.scalar.is_float or kind.is_blob


def _row(row: dict[str, Any], columns: dict[str, PropType]) -> dict[str, Any]:
    return {name: _cell(value, columns[name]) for name, value in row.items() if value is not None}


def _cell(value: Any, kind: PropType) -> Any:
    if isinstance(value, list):
        return [_cell(item, kind) for item in value]
    if isinstance(value, dict):
        fields = dict(kind.fields or ())
        return {name: _cell(part, fields[name]) for name, part in value.items()}
    if not isinstance(value, str):
        return value
    if kind.scalar is Scalar.DATETIME:
        return value.removesuffix("Z").removesuffix(".000")
    return None if kind.scalar.is_float and value in _NOT_FINITE else value


def image_13(values: dict[str, Any], types: dict[str, PropType]) -> dict[str, Any]:
    """The properties of a change image. Nulls are kept."""
    return {name: _cell(value, types[name]) for name, value in values.items()}


def export_lines_13(lines: bytes) -> Iterator[bytes]:
    """Whole lines of an export, rewritten one by one."""
    for line in lines.splitlines():
        record: dict[str, Any] = msgspec.json.decode(line)
        data: dict[str, Any] = record.pop("data")
        identity = {"id": data.pop("id")}
        kept = {name: value for name, value in data.items() if value is not None}
        kind = "edge" if "edge" in record else "type"
        head = {kind: record.pop(kind)}
        yield _encoder.encode(head | identity | record | {"data": kept}) + b"\n"
