"""Literals and bound parameters as stored values, without losing anything of them.

`MutationIds` supplies new ids and the time, the same on every run of one query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.arrow import arrow_type
from omnigraph.errors import AssignmentError, ExternalBlobRefused
from omnigraph.language.types import PropType, Scalar
from omnigraph.rows.blob_bases import BlobBases
from omnigraph.rows.columns import (
    Misfit,
    StoredValue,
    blob_value,
    check_dimension,
    in_range,
    nearest_float,
)
from omnigraph.versioning.ids import new_ulid, now_micros


def stored_value(given: Any, name: str, wanted: PropType, blobs: BlobBases) -> StoredValue:
    """The value a property will hold. The type checker has seen to it that the kinds agree.

    Raises `AssignmentError`, or `ExternalBlobRefused` for a blob that is kept outside of the bases.
    """
    if given is None:
        return None
    try:
        if wanted.is_blob:
            return _blob(given, name, blobs)
        if wanted.is_vector:
            return _vector(given, name, wanted)
        if wanted.list:
            return [_scalar(item, name, wanted.scalar) for item in given]
        return _scalar(given, name, wanted.scalar)
    except Misfit as misfit:
        raise AssignmentError(name, str(misfit)) from None


def stored_column(values: pa.Array, name: str, wanted: PropType) -> pa.Array:
    """Computed values as a property will hold them. Raises `AssignmentError` for one it cannot."""
    kind = arrow_type(wanted)
    narrows = pa.types.is_floating(values.type) and pa.types.is_floating(kind)
    try:
        stored = values if values.type == kind else values.cast(kind, safe=not narrows)
    except pa.ArrowInvalid:
        raise AssignmentError(name, _misfit(values, name, wanted)) from None
    numbers = pc.list_flatten(stored) if wanted.list else stored
    if pa.types.is_floating(numbers.type) and pc.any(pc.invert(pc.is_finite(numbers))).as_py():
        raise AssignmentError(name, _out_of_range(name, wanted))
    return stored


def _misfit(values: pa.Array, name: str, wanted: PropType) -> str:
    """Why computed values cannot be cast to the type of a property."""
    numbers = pc.list_flatten(values) if wanted.list else values
    if pa.types.is_floating(numbers.type):
        fractions = numbers.filter(pc.not_equal(pc.floor(numbers), numbers))
        if len(fractions):
            return f"property '{name}': cannot convert {fractions[0]} to {wanted.scalar.value}"
    return _out_of_range(name, wanted)


def _out_of_range(name: str, wanted: PropType) -> str:
    return f"property '{name}': value out of range for {wanted.scalar.value}"


def _scalar(given: Any, name: str, scalar: Scalar) -> StoredValue:
    if not scalar.is_numeric:
        stored: str | bool | int = given
        return stored
    subject = f"property '{name}'"
    if scalar.is_integer:
        if isinstance(given, float) and not given.is_integer():
            raise Misfit(f"{subject}: cannot convert {given} to {scalar.value}")
        return in_range(int(given), subject, scalar)
    number = nearest_float(given, subject, scalar)
    if isinstance(given, int) and number != given:
        raise Misfit(f"{subject}: cannot convert {given} to {scalar.value}")
    return number


def _vector(given: Sequence[float], name: str, wanted: PropType) -> StoredValue:
    check_dimension(name, wanted, len(given))
    with np.errstate(over="ignore"):
        single = np.asarray(given, np.float64).astype(np.float32)
    if not np.isfinite(single).all():
        raise Misfit(f"property '{name}': value out of range for {Scalar.F32.value}")
    components: list[StoredValue] = single.tolist()
    return components


def _blob(given: object, name: str, blobs: BlobBases) -> bytes | str:
    blob = blob_value(given, f"property '{name}'")
    if isinstance(blob, str) and not blobs.allow(blob):
        raise ExternalBlobRefused(name, blob)
    return blob


class MutationIds:
    """The ids and the one `now()` of a mutation, kept while it is prepared again and again."""

    def __init__(self, make: Callable[[], str] = new_ulid, now_ms: int | None = None) -> None:
        self.now_ms = now_micros() // 1000 if now_ms is None else now_ms
        self._make = make
        self._made: list[str] = []

    def from_first(self) -> Iterator[str]:
        """The ids from the first one on; each run gets the same ones in the same order."""
        number = 0
        while True:
            if number == len(self._made):
                self._made.append(self._make())
            yield self._made[number]
            number += 1
