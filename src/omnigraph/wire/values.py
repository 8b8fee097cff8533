"""Python values in JSON, without loss: what JSON has no form for is an object with one key.

`{"@date": "2026-01-31"}`, `{"@datetime": …}`, `{"@bytes": <base64>}`, `{"@uuid": …}`, `{"@int": …}` for
numbers beyond 64 bits and `{"@float": "nan"}`. The Python client sends parameters and reads entities so.
Tests: tests/unit/client/test_values.py.
"""

from __future__ import annotations

import math
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from typing import Any, Final
from uuid import UUID

_I64: Final = range(-(2**63), 2**63)


def tagged(value: object) -> Any:
    """A value as JSON. Raises `TypeError` for one of another type."""
    match value:
        case None | bool() | str():
            return value
        case int():
            return value if value in _I64 else {"@int": hex(value)}
        case float():
            return value if math.isfinite(value) else {"@float": repr(value)}
        case datetime():
            moment = value if value.tzinfo else value.replace(tzinfo=UTC)
            return {"@datetime": moment.isoformat()}
        case date():
            return {"@date": value.isoformat()}
        case bytes() | bytearray() | memoryview():
            return {"@bytes": b64encode(value).decode()}
        case UUID():
            return {"@uuid": str(value)}
        case list() | tuple():
            return [tagged(item) for item in value]
        case Mapping():
            return {str(name): tagged(item) for name, item in value.items()}
    # Arrays and scalars of numpy, Arrow and pandas know how to become plain Python.
    to_list = getattr(value, "tolist", None)
    if callable(to_list):
        return tagged(to_list())
    raise TypeError(f"a value of type {type(value).__name__} is not supported")


_READERS: Final[Mapping[str, Callable[[str], object]]] = {
    "@int": lambda text: int(text, 16),
    "@float": float,
    "@datetime": datetime.fromisoformat,
    "@date": date.fromisoformat,
    "@bytes": lambda text: b64decode(text, validate=True),
    "@uuid": UUID,
}


def untagged(value: Any) -> Any:
    """The value that `tagged` was given. Raises `ValueError` for a tag with another content."""
    if isinstance(value, list):
        return [untagged(item) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        ((tag, text),) = value.items()
        reader = _READERS.get(tag)
        if reader is not None:
            if not isinstance(text, str):
                raise ValueError(f"the value of {tag} must be text")
            return reader(text)
    return {name: untagged(item) for name, item in value.items()}
