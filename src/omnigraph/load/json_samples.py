"""What a few records suggest about all of them: the keys that nothing asks for, and their types.

Arrow's reader is told of such keys, so that records which have them are still read in columns.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from omnigraph.load.json_values import MalformedText, read_value

_SAMPLED_RECORDS: Final = 64
_MAX_LEARNED_KEYS: Final = 256
"""Objects with more keys than this are likely to have different ones each."""

_MAX_LEARNED_DEPTH: Final = 8


def sampled_objects(texts: pa.Array) -> Iterator[dict[str, Any]]:
    """The first objects, and some from the whole length of the texts."""
    places = {*range(min(len(texts), _SAMPLED_RECORDS // 2))}
    places |= {*range(0, len(texts), max(1, 2 * len(texts) // _SAMPLED_RECORDS))}
    for place in sorted(places):
        try:
            value, _ = read_value(texts[place].as_py().decode())
        except MalformedText:
            continue
        if isinstance(value, dict):
            yield value


def learn_keys(texts: pa.Array, known: Collection[str]) -> Mapping[str, pa.DataType] | None:
    """The other keys of sampled objects and their types; None when columns cannot hold them."""
    objects = list(sampled_objects(texts))
    others = dict.fromkeys(key for given in objects for key in given if key not in known)
    if len(others) > _MAX_LEARNED_KEYS:
        return None
    found: dict[str, pa.DataType] = {}
    for key in others:
        kind = _common_kind([given.get(key) for given in objects], _MAX_LEARNED_DEPTH)
        if kind is None:
            return None
        found[key] = kind
    return found


def _common_kind(values: Sequence[Any], depth: int) -> pa.DataType | None:
    """The Arrow type of all values, nested ones included; None when they have none in common."""
    given = [value for value in values if value is not None]
    if not given:
        return pa.null()
    if any(type(value) is not type(given[0]) for value in given):
        numbers = all(type(value) in (int, float) for value in given)
        return pa.float64() if numbers else None
    match given[0]:
        case list():
            inner = None
            if depth:
                inner = _common_kind([item for value in given for item in value], depth - 1)
            return None if inner is None else pa.list_(inner)
        case dict():
            keys = dict.fromkeys(key for value in given for key in value)
            if not depth or len(keys) > _MAX_LEARNED_KEYS:
                return None
            fields = []
            for key in keys:
                inner = _common_kind([value.get(key) for value in given], depth - 1)
                if inner is None:
                    return None
                fields.append((key, inner))
            return pa.struct(fields)
        case _:
            return scalar_kind(given[0])


def scalar_kind(value: object) -> pa.DataType | None:
    """The Arrow type of a single value; None for an array or an object."""
    match value:
        case None:
            return pa.null()
        case bool():
            return pa.bool_()
        case int() | float():
            return pa.float64()
        case str():
            return pa.utf8()
        case _:
            return None


def are_json(column: pa.Array) -> bool:
    """Whether all numbers of a column are finite, as those of JSON are."""
    if kinds.is_list(column.type):
        return are_json(column.flatten())
    if kinds.is_struct(column.type):
        return all(map(are_json, column.flatten()))
    if not kinds.is_floating(column.type):
        return True
    return pc.all(pc.is_finite(column)).as_py() is not False
