"""Kernels of the functions of values and of arithmetic: whole columns in, whole columns out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.arrow import arrow_type
from omnigraph.errors import ParameterOutOfRange
from omnigraph.language.types import PropType
from omnigraph.plan.ir import Expr, Param
from omnigraph.read.dates import moments
from omnigraph.read.positions import Mask
from omnigraph.rows.columns import build_column

_I64: Final = np.iinfo(np.int64)
_INTEGER_TEXT: Final = r"^[+-]?[0-9]+(\.[0-9]+)?$"
_FLOAT_TEXT: Final = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_MAX_FAST_DIGITS: Final = 18

Integers = npt.NDArray[np.int64]


def is_true(answers: pa.Array) -> Mask:
    """Rows whose answer is true."""
    return np.asarray(pc.fill_null(answers, False).to_numpy(zero_copy_only=False), np.bool_)


def repeated(value: Any, kind: PropType, length: int) -> pa.Array:
    """One value for every row."""
    if value is None:
        return pa.nulls(length, arrow_type(kind))
    if isinstance(value, tuple):
        is_float = kind.scalar.is_float
        value = [float(v) if is_float and v is not None else v for v in value]
    return build_column([value], kind).take(pa.array(np.zeros(length, np.int64)))


# -- arithmetic ---------------------------------------------------------------------------------


def _numbers(values: pa.Array, fill: int = 0) -> Integers:
    return np.asarray(pc.fill_null(values, fill).to_numpy(zero_copy_only=False), np.int64)


def _known(left: pa.Array, right: pa.Array) -> Mask:
    return np.asarray(pc.and_(left.is_valid(), right.is_valid()).to_numpy(zero_copy_only=False))


def _add(left: pa.Array, right: pa.Array) -> tuple[pa.Array, Mask]:
    a, b, known = _numbers(left), _numbers(right), _known(left, right)
    with np.errstate(over="ignore"):
        found = a + b
    return pa.array(found, mask=~known), known & (((a ^ found) & (b ^ found)) < 0)


def _subtract(left: pa.Array, right: pa.Array) -> tuple[pa.Array, Mask]:
    a, b, known = _numbers(left), _numbers(right), _known(left, right)
    with np.errstate(over="ignore"):
        found = a - b
    return pa.array(found, mask=~known), known & (((a ^ b) & (a ^ found)) < 0)


def _multiply(left: pa.Array, right: pa.Array) -> tuple[pa.Array, Mask]:
    a, b, known = _numbers(left), _numbers(right), _known(left, right)
    with np.errstate(over="ignore"):
        found = a * b
    divisor = np.where((b == 0) | (b == -1), 1, b)
    wrong = (found // divisor != a) & (b != 0) & (b != -1)
    wrong |= (b == -1) & (a == _I64.min)
    return pa.array(found, mask=~known), known & wrong


def _remainder(left: pa.Array, right: pa.Array) -> tuple[pa.Array, Mask]:
    a, b = _numbers(left), _numbers(right)
    known = _known(left, right) & (b != 0)
    found = np.fmod(a, np.where((b == 0) | (b == -1), 1, b))
    return pa.array(found, mask=~known), np.zeros(len(a), np.bool_)


INTEGER_ARITHMETIC: Final[dict[str, Callable[[pa.Array, pa.Array], tuple[pa.Array, Mask]]]] = {
    "+": _add,
    "-": _subtract,
    "*": _multiply,
    "%": _remainder,
}
"""The values, null for a null operand or divisor zero, and where they left 64 bits."""


def _divisor(values: pa.Array) -> pa.Array:
    return pc.if_else(pc.equal(values, 0.0), pa.scalar(None, pa.float64()), values)


def _float_remainder(left: pa.Array, right: pa.Array) -> pa.Array:
    divisor = _divisor(right)
    known = _known(left, divisor)
    a, b = (
        np.asarray(pc.fill_null(v, 1.0).to_numpy(zero_copy_only=False)) for v in (left, divisor)
    )
    with np.errstate(invalid="ignore"):
        return pa.array(np.fmod(a, b), mask=~known)


FLOAT_ARITHMETIC: Final[dict[tuple[str, int], Callable[..., pa.Array]]] = {
    ("+", 2): pc.add,
    ("-", 2): pc.subtract,
    ("*", 2): pc.multiply,
    ("/", 2): lambda left, right: pc.divide(left, _divisor(right)),
    ("%", 2): _float_remainder,
    ("-", 1): pc.negate,
}


# -- text ---------------------------------------------------------------------------------------


def _substring(texts: pa.Array, start: pa.Array, count: pa.Array | None = None) -> pa.Array:
    """A part of each text. Rows with equal positions are cut together."""
    longest = pc.max(pc.utf8_length(texts)).as_py() or 0
    first = np.clip(_numbers(start), -1, longest)
    known = np.asarray(start.is_valid().to_numpy(zero_copy_only=False))
    size = np.full(len(texts), longest, np.int64)
    if count is not None:
        size = np.clip(_numbers(count), -1, longest)
        known &= np.asarray(count.is_valid().to_numpy(zero_copy_only=False))
    known &= (first >= 0) & (size >= 0)
    width = longest + 2
    found = pa.nulls(len(texts), pa.utf8())
    codes = first * width + size
    for code in np.unique(codes[known]):
        begin, length = divmod(int(code), width)
        rows = known & (codes == code)
        part = pc.utf8_slice_codeunits(texts, begin, begin + length)
        if rows.all():
            return part
        found = pc.if_else(pa.array(rows), part, found)
    return found


def matches(texts: pa.Array, pattern: object, given: Expr) -> pa.Array:
    """Whether a regular expression is found in each text, in the dialect of `@check`."""
    if pattern is None:
        return pa.nulls(len(texts), pa.bool_())
    try:
        return pc.match_substring_regex(texts, str(pattern))
    except pa.ArrowInvalid as error:
        assert isinstance(given, Param), "the checker has tried literal patterns"
        raise ParameterOutOfRange(given.name, f"has invalid regex: {error}") from error


def _to_string(values: pa.Array) -> pa.Array:
    kind = values.type
    if pa.types.is_string(kind):
        return values
    if pa.types.is_boolean(kind):
        return pc.if_else(values, "true", "false")
    if pa.types.is_integer(kind):
        return values.cast(pa.utf8())
    known = np.asarray(values.is_valid().to_numpy(zero_copy_only=False))
    if pa.types.is_floating(kind):
        numbers = np.asarray(pc.fill_null(values, 0.0).to_numpy(zero_copy_only=False))
        return pa.array(numbers.astype("U").astype(object), pa.utf8(), mask=~known)
    if pa.types.is_date32(kind):
        return pc.strftime(values.cast(pa.timestamp("s")), format="%Y-%m-%d")
    shown = pc.strftime(moments(values), format="%Y-%m-%dT%H:%M:%S")
    return pc.binary_join_element_wise(shown, "Z", "")


def _to_int(values: pa.Array) -> pa.Array:
    kind = values.type
    if pa.types.is_uint64(kind):
        return pc.if_else(pc.less(values, 2**63), values, None).cast(pa.int64())
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        return values.cast(pa.int64())
    if pa.types.is_floating(kind):
        wide = pc.trunc(values.cast(pa.float64()))
        fits = pc.and_(pc.greater_equal(wide, -(2.0**63)), pc.less(wide, 2.0**63))
        return pc.if_else(pc.fill_null(fits, False), wide, None).cast(pa.int64())
    whole = pc.replace_substring_regex(values, r"^\+|\.[0-9]+$", "")
    is_number = pc.fill_null(pc.match_substring_regex(values, _INTEGER_TEXT), False)
    short = pc.less_equal(pc.utf8_length(whole), _MAX_FAST_DIGITS)
    found = pc.if_else(pc.and_(is_number, pc.fill_null(short, False)), whole, None).cast(pa.int64())
    long = np.flatnonzero(is_true(pc.and_(is_number, pc.invert(pc.fill_null(short, True)))))
    if len(long):
        exact = [_int_of(text) for text in whole.take(pa.array(long)).to_pylist()]
        mask = np.zeros(len(values), np.bool_)
        mask[long] = True
        found = pc.replace_with_mask(found, pa.array(mask), pa.array(exact, pa.int64()))
    return found


def _int_of(text: str) -> int | None:
    number = int(text) if len(text) < 4000 else _I64.max + 1
    return number if _I64.min <= number <= _I64.max else None


def _to_float(values: pa.Array) -> pa.Array:
    if not pa.types.is_string(values.type):
        whole = values.cast(pa.int64()) if pa.types.is_boolean(values.type) else values
        return whole.cast(pa.float64(), safe=False)
    is_number = pc.fill_null(pc.match_substring_regex(values, _FLOAT_TEXT), False)
    plain = pc.replace_substring_regex(values, r"^\+", "")
    found = pc.if_else(is_number, plain, None).cast(pa.float64())
    return pc.if_else(pc.is_finite(found), found, None)


# -- lists --------------------------------------------------------------------------------------


def is_one_of(values: pa.Array, items: Sequence[Any] | None) -> pa.Array:
    """Whether each value equals one of some constants, none of which counts if it is null."""
    if items is None:
        return pa.nulls(len(values), pa.bool_())
    from omnigraph.storage.filters import In, bind
    from omnigraph.storage.filters import matches as met_by

    rows = pa.RecordBatch.from_arrays([values], names=["value"])
    given = tuple(item for item in items if item is not None)
    met = met_by(bind(In("value", given), rows.schema), rows)
    return pc.if_else(values.is_valid(), met, pa.scalar(None, pa.bool_()))


def membership(lists: pa.Array, others: pa.Array) -> tuple[Mask, Mask]:
    """For each row, whether some, and whether all elements of another list are in a list.

    A null element equals nothing. Rows of a null list have no meaning.
    """
    length = len(lists)
    mine, theirs = _unified(lists.flatten(), others.flatten())
    my_rows = _numbers(pc.list_parent_indices(lists))
    their_rows = _numbers(pc.list_parent_indices(others))
    encoded = pa.chunked_array([mine, theirs]).combine_chunks().dictionary_encode()
    codes = _numbers(encoded.indices, -1)
    size = len(encoded.dictionary) + 1
    my_codes, their_codes = codes[: len(mine)], codes[len(mine) :]
    found = np.isin(their_rows * size + their_codes, (my_rows * size + my_codes)[my_codes >= 0])
    found &= their_codes >= 0
    some = np.zeros(length, np.bool_)
    some[their_rows[found]] = True
    every = np.ones(length, np.bool_)
    every[their_rows[~found]] = False
    return some, every


def _unified(left: pa.Array, right: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Two columns in one type, with equal numbers spelled alike."""
    if left.type != right.type:
        if pa.types.is_null(right.type) or not len(right):
            right = pa.nulls(len(right), left.type)
        elif pa.types.is_null(left.type) or not len(left):
            left = pa.nulls(len(left), right.type)
        elif pa.types.is_float32(left.type):
            right = right.cast(pa.float32(), safe=False)
        elif pa.types.is_floating(left.type) or pa.types.is_floating(right.type):
            left, right = (v.cast(pa.float64(), safe=False) for v in (left, right))
        elif pa.types.is_integer(left.type) and pa.types.is_integer(right.type):
            left, right = (v.cast(pa.decimal128(38, 0)) for v in (left, right))
    if pa.types.is_floating(left.type):
        zero = pa.scalar(0.0, left.type)
        left, right = (pc.add(v.cast(left.type, safe=False), zero) for v in (left, right))
    return left, right


def _contains_any(lists: pa.Array, others: pa.Array) -> pa.Array:
    return pa.array(membership(lists, others)[0], mask=~_known(lists, others))


def _contains_all(lists: pa.Array, others: pa.Array) -> pa.Array:
    return pa.array(membership(lists, others)[1], mask=~_known(lists, others))


def _rounded(values: pa.Array) -> pa.Array:
    return pc.round(values.cast(pa.float64(), safe=False), round_mode="half_to_even")


FUNCTIONS: Final[dict[str, Callable[..., pa.Array]]] = {
    "lower": pc.utf8_lower,
    "upper": pc.utf8_upper,
    "trim": pc.utf8_trim_whitespace,
    "length": pc.utf8_length,
    "size": pc.list_value_length,
    "substring": _substring,
    "abs": pc.abs,
    "floor": lambda values: pc.floor(values.cast(pa.float64(), safe=False)),
    "ceil": lambda values: pc.ceil(values.cast(pa.float64(), safe=False)),
    "round": _rounded,
    "to_date": lambda values: pc.floor_temporal(moments(values), unit="day"),
    "to_datetime": moments,
    "to_string": _to_string,
    "to_int": _to_int,
    "to_float": _to_float,
    "contains_any": _contains_any,
    "contains_all": _contains_all,
}
