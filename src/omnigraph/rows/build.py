"""Columns from stored Python values, and back.

Stored values: dates are days and datetimes milliseconds since the epoch, a blob is its bytes or, as
text, the URI of bytes kept elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.language.types import PropType, Scalar
from omnigraph.rows.schema import BLOB, row_type

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
