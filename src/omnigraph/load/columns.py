"""Source columns to property columns, a whole column at a time.

One converter for parsed JSON, Parquet and data frames. A value that does not fit is marked and left
null; `omnigraph.load.values` looks at marked rows again, one by one, and finds the words. So a mark
may be cautious, but a value that is not marked must be exactly what that module would have made.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from omnigraph.language.types import INTEGER_RANGES, PropType, Scalar
from omnigraph.load.temporal import read_dates, read_datetimes
from omnigraph.rows.columns import BASE64, blob_column, decode_base64, row_type

Mask = npt.NDArray[np.bool_]
Converted = tuple[pa.Array, Mask | None]
"""A property column and the mask of rows that do not fit; None when all of them do."""

_DAY_MS: Final = 86_400_000
TIME_UNITS: Final = {"s": (1000, 1), "ms": (1, 1), "us": (1, 1000), "ns": (1, 1_000_000)}


def convert_column(column: pa.Array, wanted: PropType) -> Converted:
    """The property column a source column becomes.

    Integers become floats only when nothing is lost. A number that is not finite never fits.
    """
    column = plain(column)
    if kinds.is_null(column.type):
        return pa.nulls(len(column), row_type(wanted)), None
    if wanted.is_vector:
        return _vectors(column, wanted)
    if wanted.list:
        return _lists(column, wanted)
    return _scalars(column, wanted.scalar)


def plain(column: pa.Array) -> pa.Array:
    """The column without dictionary, view or extension encodings."""
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if kinds.is_dictionary(column.type):
        # Arrow cannot decode dictionaries of string views, which Polars makes.
        column = plain(column.dictionary).take(column.indices)
    if kinds.is_run_end_encoded(column.type):
        column = pc.run_end_decode(column)
    kind = column.type
    if kinds.is_large_string(kind) or kinds.is_string_view(kind):
        return pc.cast(column, pa.utf8())
    if kinds.is_binary_view(kind):
        return pc.cast(column, pa.large_binary())
    return column


def _scalars(column: pa.Array, scalar: Scalar) -> Converted:
    kind = column.type
    if scalar is Scalar.STRING and kinds.is_string(kind):
        return column, None
    if scalar is Scalar.BOOL and kinds.is_boolean(kind):
        return column, None
    if scalar is Scalar.BLOB:
        return _blobs(column)
    if scalar is Scalar.DATE or scalar is Scalar.DATETIME:
        return _times(column, scalar)
    if scalar.is_integer and kinds.is_integer(kind):
        return _integers(column, scalar)
    if scalar.is_integer and kinds.is_decimal(kind) and kind.scale == 0:
        return _cast(column, row_type(PropType(scalar)))
    if scalar.is_float and kinds.is_floating(kind):
        return _floats(column, scalar)
    if scalar.is_float and kinds.is_integer(kind):
        return _floats_from_integers(column, scalar)
    if scalar.is_float and kinds.is_decimal(kind):
        return _floats(pc.cast(column, pa.float64()), scalar)
    return _none_fits(column, row_type(PropType(scalar)))


def _none_fits(column: pa.Array, wanted: pa.DataType) -> Converted:
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    return pa.nulls(len(column), wanted), valid if valid.any() else None


def _cast(column: pa.Array, wanted: pa.DataType) -> Converted:
    try:
        return pc.cast(column, wanted), None
    except pa.ArrowInvalid:
        return _none_fits(column, wanted)


def _marked(values: pa.Array, bad: Mask) -> Converted:
    """The values without those that do not fit."""
    if not bad.any():
        return values, None
    return pc.if_else(pa.array(bad), pa.scalar(None, values.type), values), bad


# -- numbers ------------------------------------------------------------------------------------


def _numpy(column: pa.Array) -> tuple[npt.NDArray[Any], Mask]:
    """The values with zeros for nulls, and the mask of values."""
    valid: Mask = column.is_valid().to_numpy(zero_copy_only=False)
    filled = column if column.null_count == 0 else pc.fill_null(column, 0)
    return filled.to_numpy(zero_copy_only=False), valid


def _integers(column: pa.Array, scalar: Scalar) -> Converted:
    wanted = row_type(PropType(scalar))
    if column.type == wanted:
        return column, None
    low, high = INTEGER_RANGES[scalar]
    values, _ = _numpy(column)
    limits = np.iinfo(values.dtype)
    bad = (values < max(low, limits.min)) | (values > min(high, limits.max))
    return _marked(pc.cast(column, wanted, safe=False), bad)


def _floats(column: pa.Array, scalar: Scalar) -> Converted:
    converted = pc.cast(column, row_type(PropType(scalar)), safe=False)
    values, _ = _numpy(converted)
    return _marked(converted, ~np.isfinite(values))


def _floats_from_integers(column: pa.Array, scalar: Scalar) -> Converted:
    """Integers of a typed source become floats only when nothing is lost."""
    converted = pc.cast(column, row_type(PropType(scalar)), safe=False)
    values, exact = _numpy(column)[0], _numpy(converted)[0].astype(np.float64)
    limits = np.iinfo(values.dtype)
    # The largest integer has no float of its own: the next one up would wrap on the way back.
    inside = (exact >= limits.min) & (exact < float(limits.max))
    back = np.where(inside, exact, 0).astype(values.dtype)
    return _marked(converted, ~inside | (back != values))


# -- dates --------------------------------------------------------------------------------------


def _times(column: pa.Array, scalar: Scalar) -> Converted:
    kind = column.type
    is_date = scalar is Scalar.DATE
    if kinds.is_string(kind):
        values, bad = read_dates(column) if is_date else read_datetimes(column)
        return values, bad if bad.any() else None
    if kinds.is_integer(kind):
        numbers, misfits = _integers(column, Scalar.I32 if is_date else Scalar.I64)
        return numbers.view(row_type(PropType(scalar))), misfits
    if kinds.is_date32(kind):
        return (column, None) if is_date else _from_millis(column, _DAY_MS, 1, scalar)
    if kinds.is_date64(kind):
        return _from_millis(column, 1, 1, scalar)
    if kinds.is_timestamp(kind):
        return _from_millis(column, *TIME_UNITS[kind.unit], scalar)
    return _none_fits(column, row_type(PropType(scalar)))


def _from_millis(column: pa.Array, times: int, divided: int, scalar: Scalar) -> Converted:
    """Whole milliseconds, or days, of a column that counts in another unit."""
    counted = column.view(pa.int32() if kinds.is_date32(column.type) else pa.int64())
    numbers, valid = _numpy(counted)
    numbers = numbers.astype(np.int64)
    bad = (numbers > 2**63 // times - 1) | (numbers < -(2**63 // times))
    millis = np.where(bad, 0, numbers) // divided * times
    if scalar is Scalar.DATE:
        days = millis // _DAY_MS
        bad |= (days > 2**31 - 1) | (days < -(2**31))
        stored = pa.array(np.where(bad, 0, days).astype(np.int32), mask=~valid | bad)
        return stored.view(pa.date32()), bad if bad.any() else None
    stored = pa.array(millis, mask=~valid | bad)
    return stored.view(pa.date64()), bad if bad.any() else None


# -- lists, vectors, blobs ----------------------------------------------------------------------


def _as_list(column: pa.Array) -> pa.ListArray | None:
    """A column of arrays of any kind as one of plain lists."""
    kind = column.type
    if kinds.is_list(kind):
        return column
    if kinds.is_large_list(kind) or kinds.is_list_view(kind) or kinds.is_large_list_view(kind):
        return pc.cast(column, pa.list_(kind.value_field))
    if kinds.is_fixed_size_list(kind):
        lengths = np.where(_numpy(column.is_valid())[0], kind.list_size, 0)
        offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
        return pa.ListArray.from_arrays(offsets, column.flatten(), mask=column.is_null())
    return None


def _items(lists: pa.ListArray) -> tuple[pa.Array, npt.NDArray[np.int32], Mask]:
    """The elements of all lists in one column, the bounds of each list in it, and where lists are."""
    valid: Mask = lists.is_valid().to_numpy(zero_copy_only=False)
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    bounds = np.zeros(len(lists) + 1, np.int32)
    np.cumsum(lengths, out=bounds[1:])
    return lists.flatten(), bounds, valid


def _rows_with(bad_items: Mask | None, bounds: npt.NDArray[np.int32]) -> Mask | None:
    if bad_items is None:
        return None
    before = np.concatenate([[0], np.cumsum(bad_items)])
    rows: Mask = before[bounds[1:]] > before[bounds[:-1]]
    return rows


def _lists(column: pa.Array, wanted: PropType) -> Converted:
    target = row_type(wanted)
    lists = _as_list(column)
    if lists is None:
        return _none_fits(column, target)
    flat, bounds, valid = _items(lists)
    flat = plain(flat)
    if kinds.is_null(flat.type):
        items, bad_items = pa.nulls(len(flat), target.value_type), None
    else:
        items, bad_items = _scalars(flat, wanted.scalar)
    # `flatten` leaves out what lies under null lists, so the bounds are always the right ones.
    built = pa.ListArray.from_arrays(pa.array(bounds), items, type=target, mask=pa.array(~valid))
    bad = _rows_with(bad_items, bounds)
    return (built, None) if bad is None else _marked_lists(built, bad)


def _marked_lists(lists: pa.Array, bad: Mask) -> Converted:
    kept = pa.array(np.where(bad, -1, np.arange(len(lists))), mask=bad)
    return lists.take(kept), bad


def _vectors(column: pa.Array, wanted: PropType) -> Converted:
    target = row_type(wanted)
    size = target.list_size
    lists = _as_list(column)
    if lists is None:
        return _none_fits(column, target)
    flat, bounds, valid = _items(lists)
    flat = plain(flat)
    bad = valid & (np.diff(bounds) != size)
    if kinds.is_floating(flat.type) or kinds.is_decimal(flat.type):
        items, bad_items = _scalars(flat, Scalar.F32)
    elif kinds.is_integer(flat.type):
        items, bad_items = _floats_from_integers(flat, Scalar.F32)
    else:
        return _none_fits(column, target)
    null_items = items.is_null().to_numpy(zero_copy_only=False)
    bad_items = null_items if bad_items is None else bad_items | null_items
    bad |= _rows_with(bad_items, bounds) if bad_items.any() else False
    kept = valid & ~bad
    if kept.all():
        return pa.FixedSizeListArray.from_arrays(items, type=target), None
    # Rows without a vector still have an entry in a fixed-size list, so they are filled with zeros.
    values = np.zeros((len(lists), size), np.float32)
    item_kept = np.repeat(kept, np.diff(bounds))
    values[kept] = _numpy(items)[0][item_kept].reshape(-1, size)
    filled = pa.array(values.reshape(-1), pa.float32())
    vectors = pa.FixedSizeListArray.from_arrays(filled, type=target, mask=pa.array(~kept))
    return vectors, bad if bad.any() else None


def _blobs(column: pa.Array) -> Converted:
    kind = column.type
    count = len(column)
    if kinds.is_binary(kind) or kinds.is_large_binary(kind) or kinds.is_fixed_size_binary(kind):
        return blob_column(pc.cast(column, pa.large_binary()), pa.nulls(count, pa.utf8())), None
    if not kinds.is_string(kind):
        return _none_fits(column, row_type(PropType(Scalar.BLOB)))
    inline = pc.fill_null(pc.starts_with(column, BASE64), False)
    uri = pc.if_else(inline, pa.scalar(None, pa.utf8()), column)
    bad = np.zeros(count, np.bool_)
    # The cost of a blob is in its bytes; one call each is not what takes the time.
    data: list[bytes | None] = [None] * count
    for row in np.flatnonzero(inline.to_numpy(zero_copy_only=False)).tolist():
        try:
            data[row] = decode_base64(column[row].as_py().removeprefix(BASE64))
        except ValueError:
            bad[row] = True
    blobs = blob_column(pa.array(data, pa.large_binary()), uri)
    return blobs, bad if bad.any() else None
