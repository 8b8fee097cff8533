"""Columns of rows that are about to be written: their Arrow types, the values that fit, and arrays.

Row columns are the logical schema with two differences. A blob is either bytes or the URI of bytes
kept elsewhere, so its column is a struct with exactly one of the two. A required `@embed` vector may
still be null: it is computed after the row was checked. Dates are days and datetimes milliseconds
since the epoch.
"""

from __future__ import annotations

import base64
import binascii
import math
import struct
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa

from omnigraph.catalog.arrow import arrow_type, logical_schema
from omnigraph.catalog.model import EntityType
from omnigraph.language.types import INTEGER_RANGES, PropType, Scalar

BLOB: Final = pa.struct([pa.field("data", pa.large_binary()), pa.field("uri", pa.utf8())])


def row_type(prop_type: PropType) -> pa.DataType:
    """The Arrow type of a property's column in a batch of rows."""
    return BLOB if prop_type.is_blob else arrow_type(prop_type)


def row_schema(declared: EntityType) -> pa.Schema:
    """The columns of a batch of rows: id, endpoints, then properties by name."""
    fields = []
    for field in logical_schema(declared):
        prop = declared.properties.get(field.name)
        if prop is not None:
            nullable = field.nullable or prop.embed_source is not None
            field = pa.field(field.name, row_type(prop.type), nullable=nullable)
        fields.append(field)
    return pa.schema(fields)


# -- values ------------------------------------------------------------------------------------


BASE64: Final = "base64:"


class Misfit(ValueError):
    """A value that does not fit its property; the text says why."""


def in_range(value: int, subject: str, scalar: Scalar) -> int:
    """The value, if it is one of the integer type. Raises `Misfit`."""
    low, high = INTEGER_RANGES[scalar]
    if not low <= value <= high:
        raise Misfit(_out_of_range(subject, scalar))
    return value


def nearest_float(given: int | float | Decimal, subject: str, scalar: Scalar) -> float:
    """The nearest finite value of a float type. Raises `Misfit`."""
    try:
        stored = float(given) if scalar is Scalar.F64 else _single(float(given))
    except OverflowError:
        stored = math.inf
    if not math.isfinite(stored):
        raise Misfit(_out_of_range(subject, scalar))
    return stored


def _single(value: float) -> float:
    """The nearest single-precision number. Raises `OverflowError` beyond the largest one."""
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


def check_dimension(name: str, wanted: PropType, found: int) -> None:
    """Raises `Misfit` for a vector of another length."""
    if found != wanted.dimension:
        expected = f"expects {wanted.dimension} dimensions, got {found}"
        raise Misfit(f"vector property '{name}' {expected}")


def blob_value(given: object, subject: str) -> bytes | str:
    """The bytes of a blob, or the URI of bytes kept elsewhere. Raises `Misfit`."""
    if isinstance(given, bytes):
        return given
    if not isinstance(given, str):
        raise Misfit(f"{subject} must be a URI string or base64: prefixed data")
    if not given.startswith(BASE64):
        return given
    try:
        return decode_base64(given.removeprefix(BASE64))
    except ValueError:
        raise Misfit(f"{subject}: invalid base64 blob data") from None


def decode_base64(payload: str) -> bytes:
    """The bytes of standard base64 with padding. Raises `ValueError`."""
    try:
        return base64.b64decode(payload, validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from None


def _out_of_range(subject: str, scalar: Scalar) -> str:
    return f"{subject}: value out of range for {scalar.value}"


# -- arrays ------------------------------------------------------------------------------------


StoredValue = None | bool | int | float | str | bytes | Sequence["StoredValue"]


def build_column(values: Sequence[StoredValue], prop_type: PropType) -> pa.Array:
    """The column of a property that holds the given values."""
    if prop_type.is_blob:
        return _blobs(values)
    wanted = row_type(prop_type)
    if prop_type.list:
        return _lists(values, prop_type.scalar, wanted)
    return _scalars(values, prop_type.scalar, wanted)


def blob_column(data: pa.Array, uri: pa.Array) -> pa.Array:
    """A blob column: null where both columns are."""
    absent = np.logical_and(
        data.is_null().to_numpy(zero_copy_only=False), uri.is_null().to_numpy(zero_copy_only=False)
    )
    return pa.StructArray.from_arrays([data, uri], fields=list(BLOB), mask=pa.array(absent))


def _scalars(values: Sequence[Any], scalar: Scalar, wanted: pa.DataType) -> pa.Array:
    # Arrow makes dates from its own integers only; `pa.array` would go through Python's calendar,
    # which ends at the year 9999.
    if scalar is Scalar.DATE:
        return pa.array(values, pa.int32()).view(wanted)
    if scalar is Scalar.DATETIME:
        return pa.array(values, pa.int64()).view(wanted)
    return pa.array(values, wanted)


def _lists(values: Sequence[Any], scalar: Scalar, wanted: pa.DataType) -> pa.Array:
    lengths = [0 if v is None else len(v) for v in values]
    flat = [item for v in values if v is not None for item in v]
    items = _scalars(flat, scalar, wanted.value_type)
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]), pa.int32())
    absent = pa.array([v is None for v in values], pa.bool_())
    return pa.ListArray.from_arrays(offsets, items, type=wanted, mask=absent)


def _blobs(values: Sequence[Any]) -> pa.Array:
    data = pa.array([v if isinstance(v, bytes) else None for v in values], pa.large_binary())
    uri = pa.array([v if isinstance(v, str) else None for v in values], pa.utf8())
    return blob_column(data, uri)
