"""Cells that are text, as CSV has them: numbers in decimals, lists as JSON or split at a separator.

A whole column is converted at once where its texts look as they should; a text that does not is
marked and looked at by itself, with the rules and the words of `omnigraph.load.record`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.language.types import PropType, Scalar
from omnigraph.load.columns import Converted, convert_column
from omnigraph.load.json_table import (
    JsonMismatch,
    SeveralRecords,
    json_shape,
    only_chunk,
    parse_objects,
)
from omnigraph.load.json_values import MalformedText, read_value
from omnigraph.load.record import convert_value
from omnigraph.rows.columns import StoredValue, row_type

Mask = npt.NDArray[np.bool_]

_LONGEST_INTEGER: Final = 400
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_DECIMAL: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_TRUTH: Final = {"true": True, "1": True, "false": False, "0": False}
# As many digits as every number of that length has room for; longer texts are looked at singly.
_PLAIN_SIGNED: Final = r"\A-?[0-9]{1,18}\z"
_PLAIN_UNSIGNED: Final = r"\A[0-9]{1,19}\z"
_PLAIN_FLOAT: Final = r"\A-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\z"


@dataclass(frozen=True, slots=True)
class TextCells:
    """Cells of text; a list that is no JSON array is split at the separator, if there is one."""

    list_separator: str | None = None

    def column(self, column: pa.Array, wanted: PropType) -> Converted:
        if column.null_count == len(column):
            return pa.nulls(len(column), row_type(wanted)), None
        if wanted.list or wanted.is_vector:
            return self._lists(column, wanted)
        return _converted(*_scalars(column, wanted.scalar), wanted)

    def value(self, cell: pa.Scalar, name: str, wanted: PropType) -> StoredValue:
        """The value of a text. Raises `Misfit`."""
        return convert_value(self._read(cell.as_py(), wanted), name, wanted, typed=False)

    def _read(self, text: str | None, wanted: PropType) -> object:
        if text is None:
            return None
        if not (wanted.list or wanted.is_vector):
            return _read_scalar(text, wanted.scalar)
        if text.startswith("["):
            try:
                value, end = read_value(text)
            except MalformedText:
                return text
            return text if text[end:].strip() else value
        if self.list_separator is None:
            return text
        scalar = Scalar.F32 if wanted.is_vector else wanted.scalar
        items = text.split(self.list_separator) if text else []
        return [_read_scalar(item, scalar) for item in items]

    def _lists(self, column: pa.Array, wanted: PropType) -> Converted:
        arrays = pc.starts_with(column, "[")
        if pc.all(arrays).as_py():
            return _json_lists(column, wanted)
        if self.list_separator is None or pc.any(arrays).as_py():
            return _doubted(column, wanted)
        return _split_lists(column, wanted, self.list_separator)


def _read_scalar(text: str, scalar: Scalar) -> object:
    """What a text says in place of a value of the type; the text itself when it says no such."""
    if scalar is Scalar.BOOL:
        return _TRUTH.get(text.lower(), text)
    if scalar.is_integer or scalar.is_float:
        if _INTEGER.fullmatch(text):
            # Python does not convert thousands of digits to an integer; no type has room for them.
            return int(text) if len(text) < _LONGEST_INTEGER else Decimal(text)
        if _DECIMAL.fullmatch(text):
            return float(text)
    return text


def _doubted(column: pa.Array, wanted: PropType) -> Converted:
    """Nothing converted, everything that is there marked."""
    return pa.nulls(len(column), row_type(wanted)), _mask(column.is_valid())


def _mask(column: pa.Array) -> Mask:
    mask: Mask = pc.fill_null(column, False).to_numpy(zero_copy_only=False)
    return mask


def _converted(column: pa.Array, doubted: Mask | None, wanted: PropType) -> Converted:
    """The property column of a column whose doubted values are null already."""
    values, bad = convert_column(column, wanted)
    if doubted is None:
        return values, bad
    return values, doubted if bad is None else bad | doubted


def _scalars(column: pa.Array, scalar: Scalar) -> tuple[pa.Array, Mask | None]:
    """A column of the kind JSON has for the type, and the texts that it has no value for."""
    if scalar is Scalar.BOOL:
        known = pa.array(_TRUTH, pa.utf8())
        places = pc.index_in(pc.utf8_lower(column), known)
        values = pa.array(_TRUTH.values(), pa.bool_()).take(places)
        doubted = _mask(pc.and_(column.is_valid(), values.is_null()))
        return values, doubted if doubted.any() else None
    if scalar.is_float:
        return _numbers(column, _PLAIN_FLOAT, pa.float64())
    if scalar is Scalar.U64:
        return _numbers(column, _PLAIN_UNSIGNED, pa.uint64())
    if scalar.is_integer:
        return _numbers(column, _PLAIN_SIGNED, pa.int64())
    return column, None


def _numbers(column: pa.Array, plain: str, kind: pa.DataType) -> tuple[pa.Array, Mask | None]:
    is_plain = pc.match_substring_regex(column, plain)
    if pc.all(is_plain).as_py():
        return pc.cast(column, kind), None
    kept = pc.if_else(is_plain, column, pa.scalar(None, pa.utf8()))
    return pc.cast(kept, kind), _mask(pc.invert(is_plain))


def _split_lists(column: pa.Array, wanted: PropType, separator: str) -> Converted:
    lists = pc.split_pattern(column, separator)
    empty = pc.fill_null(pc.equal(column, ""), False)
    if pc.any(empty).as_py():
        lists = pc.if_else(empty, pa.scalar([], lists.type), lists)
    scalar = Scalar.F32 if wanted.is_vector else wanted.scalar
    items, doubted = _scalars(lists.flatten(), scalar)
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    bounds = np.concatenate([[0], np.cumsum(lengths)])
    built = pa.ListArray.from_arrays(pa.array(bounds, pa.int32()), items, mask=lists.is_null())
    rows: Mask | None = None
    if doubted is not None:
        before = np.concatenate([[0], np.cumsum(doubted)])
        rows = before[bounds[1:]] > before[bounds[:-1]]
        built = pc.if_else(pa.array(rows), pa.scalar(None, built.type), built)
    return _converted(built, rows, wanted)


def _json_lists(column: pa.Array, wanted: PropType) -> Converted:
    texts = pc.binary_join_element_wise('{"v":', pc.fill_null(column, "null"), "}\n", "")
    shape = pa.schema([("v", json_shape(wanted))])
    try:
        table = parse_objects(texts.cast(pa.binary()), shape)
    except (JsonMismatch, SeveralRecords):
        return _doubted(column, wanted)
    return convert_column(only_chunk(table.column("v")), wanted)
