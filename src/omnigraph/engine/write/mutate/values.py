"""Literals and bound parameters as stored values, without losing anything of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

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
