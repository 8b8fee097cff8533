"""Single values on their way into a row: what fits, and the words for what does not."""

from __future__ import annotations

import base64
import binascii
import math
import struct
from decimal import Decimal
from typing import Final

from omnigraph.language.types import INTEGER_RANGES, PropType, Scalar

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
