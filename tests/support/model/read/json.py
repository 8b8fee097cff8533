"""An answer as JSON rows, the way query results are written."""

from __future__ import annotations

from typing import TypeAlias

from omnigraph.language.types import PropType, Scalar
from omnigraph.language.values import format_date, format_datetime
from tests.support.model.read.answer import Answer
from tests.support.model.values import Value, shortest_float32
from tests.support.outcome import Json

JsonRows: TypeAlias = list[dict[str, Json]]


def json_rows(answer: Answer) -> JsonRows:
    """The rows, each an object whose keys stand in the order of the columns."""
    rows = answer.rows
    return [dict(zip(answer.columns, map(_json, row, answer.types), strict=True)) for row in rows]


def _json(value: Value, kind: PropType) -> Json:
    if isinstance(value, tuple):
        return [_json(item, kind) for item in value]
    if isinstance(value, dict):
        parts = dict(kind.fields or ())
        return {name: _json(part, parts[name]) for name, part in value.items()}
    scalar = kind.scalar
    assert not isinstance(value, bytes), "blobs are read as null"
    if isinstance(value, int) and scalar is Scalar.DATE:
        return format_date(value)
    if isinstance(value, int) and scalar is Scalar.DATETIME:
        return format_datetime(value)
    if isinstance(value, float) and scalar in (Scalar.F32, Scalar.VECTOR):
        return shortest_float32(value)
    return value
