"""Arrow's JSON reader: texts of one shape to a table, and which type and keys the texts have.

The reader is safe under four conditions. Every text begins with `{`, ends with `}` and a line end, so
that a table with as many rows as texts has exactly one row per text. No text begins with anything but
an object or holds a bare `null`, which is checked here: that can crash the process. Texts are checked
for UTF-8 beforehand, which the reader does not do. And the reader takes NaN and infinities for numbers,
so callers that ask for a number have to check. A key that an object has twice is a mismatch, as long as
the shape has the key.

A few records show which keys nothing asks for, and their types: the reader is asked for them, so
that records which have them are still read in columns. The type of a record is found by its first
bytes, `{"type":"Person"`, which are usually the same for all records of a type; the others are parsed
for the two keys that count. A record whose beginning and content disagree fails to parse as the type
it was routed to, and is then read by itself.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj
import pyarrow.types as kinds

from omnigraph.catalog.arrow import arrow_type
from omnigraph.catalog.model import Catalog, EntityType
from omnigraph.language.types import PropType, Scalar
from omnigraph.load.json_text import MalformedText, read_value

TIMES: Final = (Scalar.DATE, Scalar.DATETIME)

_OPEN: Final = ord("{")
# Only an object can stand before it: the reader stops at any other value outside of an object.
_NULL: Final = rb"\}[ \t\r\n]*+(null)"
_NULL_AFTER_OBJECT: Final = re.compile(_NULL)
_STRING_OR_NULL: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"|' + _NULL, re.DOTALL)


class JsonMismatch(Exception):
    """The texts are not all objects of the wanted shape."""


class SeveralRecords(Exception):
    """A text that was taken for one record holds more than one."""


def json_shape(wanted: PropType, *, numeric_times: bool = False) -> pa.DataType:
    """What the reader is asked to find for a property; times are texts or numbers."""
    if wanted.is_vector:
        return pa.list_(pa.float64())
    single = _scalar_shape(wanted.scalar, numeric_times=numeric_times)
    return pa.list_(single) if wanted.list else single


def _scalar_shape(scalar: Scalar, *, numeric_times: bool) -> pa.DataType:
    if scalar in TIMES:
        number = pa.int32() if scalar is Scalar.DATE else pa.int64()
        return number if numeric_times else pa.utf8()
    if scalar.is_integer or scalar is Scalar.BOOL:
        return arrow_type(PropType(scalar))
    # F32 is read as a double and rounded once more, as a single value would be.
    return pa.float64() if scalar.is_float else pa.utf8()


def parse_objects(texts: pa.Array, shape: pa.Schema, *, ignore_others: bool = False) -> pa.Table:
    """The texts as rows of the given shape. Raises `JsonMismatch` and `SeveralRecords`.

    A key that is not in the shape is ignored, or counts as a mismatch. A missing key is null.
    """
    content = content_of(texts)
    if content.size == 0:
        return shape.empty_table()
    _check_objects(texts, content)
    try:
        table = pj.read_json(
            pa.BufferReader(content),
            read_options=pj.ReadOptions(use_threads=False, block_size=content.size + 1),
            parse_options=pj.ParseOptions(
                explicit_schema=shape,
                unexpected_field_behavior="ignore" if ignore_others else "error",
            ),
        )
    except pa.ArrowException as error:
        raise JsonMismatch(str(error)) from None
    if table.num_rows != len(texts):
        raise SeveralRecords
    return table


def _check_objects(texts: pa.Array, content: pa.Buffer) -> None:
    """Raises `JsonMismatch` for a text that does not begin with an object, and `SeveralRecords`.

    The reader reads memory that is not its own, and may end the process, when it meets a `null` that is
    not inside an object. Other values there it refuses.
    """
    bounds = _bounds(texts)
    starts = bounds[:-1] - bounds[0]
    if not (np.frombuffer(content, np.uint8)[starts] == _OPEN).all():
        raise JsonMismatch("a text does not begin with an object")
    suspicious = [match.start() for match in _NULL_AFTER_OBJECT.finditer(content)]
    if suspicious:
        for text in np.unique(np.searchsorted(starts, suspicious, "right") - 1).tolist():
            found = _STRING_OR_NULL.finditer(texts[text].as_py())
            if any(match.lastindex for match in found):
                raise SeveralRecords


def is_utf8(texts: pa.Array) -> bool:
    """Whether all texts together are UTF-8. Each ends with a line end, so none continues in the next."""
    content = content_of(texts)
    bounds = pa.py_buffer(np.array([0, content.size], np.int32))
    try:
        pa.Array.from_buffers(pa.utf8(), 1, [None, bounds, content]).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def content_of(texts: pa.Array) -> pa.Buffer:
    """The bytes of all texts, one after the other."""
    data = texts.buffers()[2]
    if data is None or not len(texts):
        return pa.py_buffer(b"")
    bounds = _bounds(texts)
    return data.slice(int(bounds[0]), int(bounds[-1] - bounds[0]))


def _bounds(texts: pa.Array) -> npt.NDArray[np.int32]:
    """Where each text begins in the bytes of all, and where the last one ends."""
    bounds = np.frombuffer(texts.buffers()[1], np.int32)
    return bounds[texts.offset : texts.offset + len(texts) + 1]


def only_chunk(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """A column as one array, without a copy when it already is one."""
    if isinstance(column, pa.Array):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


_MAX_SAMPLED_RECORDS: Final = 64
_MAX_LEARNED_KEYS: Final = 256
"""Objects with more keys than this are likely to have different ones each."""

_MAX_LEARNED_DEPTH: Final = 8


def sampled_objects(texts: pa.Array) -> Iterator[dict[str, Any]]:
    """The first objects, and some from the whole length of the texts."""
    rows = {*range(min(len(texts), _MAX_SAMPLED_RECORDS // 2))}
    rows |= {*range(0, len(texts), max(1, 2 * len(texts) // _MAX_SAMPLED_RECORDS))}
    for row in sorted(rows):
        try:
            value, _ = read_value(texts[row].as_py().decode())
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


Numbers = npt.NDArray[np.int64]
_Words = npt.NDArray[np.uint64]

# No brace in the name: the prefix then always ends before the record does.
_PREFIX: Final = re.compile(rb'\{\s*"(type|edge)"\s*:\s*"([^"\\{}]*)"')
_WORD_BYTES: Final = 8
_MAX_PREFIX_BYTES: Final = 8 * _WORD_BYTES
_MAX_PREFIXES: Final = 512
_KEYS: Final = pa.schema([("type", pa.utf8()), ("edge", pa.utf8())])


@dataclass(frozen=True, slots=True)
class Routed:
    """Rows of a column of record texts that seem to be of one type; None for no known type."""

    declared: EntityType | None
    rows: Numbers


class Router:
    """Routes the record texts of a load. It learns, so one router serves a whole load."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._prefixes: dict[bytes, EntityType | None] = {}

    def route(self, texts: pa.Array) -> list[Routed]:
        """Every row of the column, in one group per type. Raises `SeveralRecords`."""
        found: dict[str | None, list[Routed]] = {}
        for routed in filter(lambda r: len(r.rows), self._by_prefix(texts)):
            key = routed.declared.table_key if routed.declared else None
            found.setdefault(key, []).append(routed)
        return [
            same[0]
            if len(same) == 1
            else Routed(same[0].declared, np.sort(np.concatenate([r.rows for r in same])))
            for same in found.values()
        ]

    def _by_prefix(self, texts: pa.Array) -> Iterator[Routed]:
        heads = _Heads(texts)
        # No prefix is the beginning of another, so a row is found at most once.
        left = np.ones(len(texts), np.bool_)
        for prefix, declared in tuple(self._prefixes.items()):
            same = heads.begin_with(prefix)
            yield Routed(declared, np.flatnonzero(same))
            left &= ~same
        while left.any():
            match = _PREFIX.match(texts[int(np.argmax(left))].as_py())
            if match is None or len(match[0]) > _MAX_PREFIX_BYTES:
                break
            if len(self._prefixes) >= _MAX_PREFIXES:
                break
            declared = self._named(match[1].decode(), match[2])
            self._prefixes[match[0]] = declared
            same = heads.begin_with(match[0])
            yield Routed(declared, np.flatnonzero(same))
            left &= ~same
        if left.any():
            rows = np.flatnonzero(left)
            yield from self._by_keys(texts.take(pa.array(rows)), rows)

    def _by_keys(self, texts: pa.Array, rows: Numbers) -> Iterator[Routed]:
        try:
            keys = parse_objects(texts, _KEYS, ignore_others=True)
        except JsonMismatch:
            # Rare enough to leave all of them to the reader of single records.
            yield Routed(None, rows)
            return
        left = np.ones(len(rows), np.bool_)
        for key in ("type", "edge"):
            encoded = only_chunk(keys.column(key)).dictionary_encode()
            codes = encoded.indices.fill_null(-1).to_numpy()
            for code, name in enumerate(encoded.dictionary.to_pylist()):
                same = left & (codes == code)
                yield Routed(self._named(key, name.encode()), rows[same])
                left &= ~same
        yield Routed(None, rows[left])

    def _named(self, key: str, name: bytes) -> EntityType | None:
        text = name.decode("utf-8", "replace")
        if key == "type":
            return self._catalog.nodes.get(text)
        return self._catalog.edge_for_traversal(text)


class _Heads:
    """The beginnings of texts, compared eight bytes at a time."""

    def __init__(self, texts: pa.Array) -> None:
        _, offsets, data = texts.buffers()
        bounds = np.frombuffer(offsets, np.int32)
        self._starts = bounds[texts.offset : texts.offset + len(texts)].astype(np.int64)
        content = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
        padded = np.concatenate([content, np.zeros(_MAX_PREFIX_BYTES + _WORD_BYTES, np.uint8)])
        # Word i begins at byte i, so that a text may begin anywhere.
        self._words: _Words = np.ndarray(
            (len(padded) - _WORD_BYTES + 1,), "<u8", padded.data, strides=(1,)
        )
        self._columns: dict[int, _Words] = {}

    def begin_with(self, prefix: bytes) -> npt.NDArray[np.bool_]:
        """Which texts begin with the prefix."""
        same = np.ones(len(self._starts), np.bool_)
        for offset in range(0, len(prefix), _WORD_BYTES):
            part = prefix[offset : offset + _WORD_BYTES]
            words = self._column(offset)
            if len(part) < _WORD_BYTES:
                words = words & np.uint64((1 << (8 * len(part))) - 1)
            same &= words == np.uint64(int.from_bytes(part, "little"))
        return same

    def _column(self, offset: int) -> _Words:
        if offset not in self._columns:
            self._columns[offset] = self._words[self._starts + offset]
        return self._columns[offset]
