"""Values of operators, functions and `case` for the rows of a binding table, in Arrow kernels.

Every expression is evaluated for all rows at once. An integer that leaves 64 bits is null; a caller
that needs the value (a result, a key, an assigned value) asks for an error instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.arrow import arrow_type
from omnigraph.errors import IntegerOverflow
from omnigraph.language.query.ast import Junction, Operator
from omnigraph.language.types import PropType, Scalar
from omnigraph.plan.ir import (
    RANKS,
    Case,
    Comparison,
    Compute,
    Constant,
    Expr,
    Logical,
    MakeList,
    Not,
    Null,
    NullTest,
    Param,
    Prop,
)
from omnigraph.read import dates, functions
from omnigraph.read.comparing import compare_columns
from omnigraph.read.frame import Frame
from omnigraph.read.positions import Mask


class Leaves(Protocol):
    """Where the values of properties, ids, constants and ranks come from."""

    @property
    def value(self) -> Callable[[Constant | Param], Any]: ...

    def values(self, expression: Expr, frame: Frame) -> pa.Array: ...

    def presence(self, expression: Prop, frame: Frame) -> pa.Array: ...


class Computation:
    """One evaluation of an expression for the rows of a frame."""

    def __init__(self, leaves: Leaves, frame: Frame) -> None:
        self._leaves = leaves
        self._frame = frame
        self._active: Mask | None = None
        self._overflowed = False

    def result(self, expression: Expr, *, lenient: bool) -> pa.Array:
        found = self.evaluate(expression)
        if self._overflowed and not lenient:
            raise IntegerOverflow()
        return found

    def evaluate(self, expression: Expr) -> pa.Array:
        match expression:
            case Comparison():
                return self._comparison(expression)
            case Logical(junction, operands):
                join = pc.and_kleene if junction is Junction.AND else pc.or_kleene
                found = self._boolean(operands[0])
                for operand in operands[1:]:
                    found = join(found, self._boolean(operand))
                return found
            case Not(operand):
                return pc.invert(self._boolean(operand))
            case NullTest(operand, negated):
                return self._null_test(operand, negated=negated)
            case Compute():
                return self._compute(expression)
            case Case():
                return self._case(expression)
            case MakeList(items):
                return self._list([self.evaluate(item) for item in items], expression.type)
            case Null(kind):
                return pa.nulls(self._frame.length, arrow_type(kind))
            case _:
                return self._leaves.values(expression, self._frame)

    # -- logic ------------------------------------------------------------------------------

    def _boolean(self, operand: Expr) -> pa.Array:
        found = self.evaluate(operand)
        return found if pa.types.is_boolean(found.type) else found.cast(pa.bool_())

    def _comparison(self, comparison: Comparison) -> pa.Array:
        left, operator, right = comparison.left, comparison.operator, comparison.right
        found = self._constant_test(left, operator, right)
        if found is None:
            a, b = self.evaluate(left), self.evaluate(right)
            if operator not in (Operator.CONTAINS, Operator.IN):
                a, b = _at_precision(left, a, b, right), _at_precision(right, b, a, left)
            found = compare_columns(a, operator, b)
        if isinstance(left, RANKS) or isinstance(right, RANKS):
            # A row without a score does not meet a condition on it, and meets the opposite.
            return pc.fill_null(found, False)
        return found

    def _constant_test(self, left: Expr, operator: Operator, right: Expr) -> pa.Array | None:
        """A test of values against one constant that has a kernel of its own."""
        if not isinstance(right, Constant | Param):
            return None
        value = self._leaves.value(right)
        if operator is Operator.IN and not isinstance(left, Constant | Param):
            return functions.is_one_of(self.evaluate(left), value)
        if not left.type.is_text or not isinstance(value, str):
            return None
        match operator:
            case Operator.CONTAINS:
                return pc.match_substring(self.evaluate(left), value)
            case Operator.STARTS_WITH:
                return pc.starts_with(self.evaluate(left), value)
            case Operator.ENDS_WITH:
                return pc.ends_with(self.evaluate(left), value)
            case _:
                return None

    def _null_test(self, operand: Expr, *, negated: bool) -> pa.Array:
        if isinstance(operand, Prop) and operand.type.is_blob:
            values = self._leaves.presence(operand, self._frame)
        else:
            values = self.evaluate(operand)
        return values.is_valid() if negated else values.is_null()

    # -- choices ----------------------------------------------------------------------------

    @contextmanager
    def _only(self, rows: Mask) -> Iterator[None]:
        """While a branch is evaluated, only the rows that take it can fail."""
        before = self._active
        self._active = rows if before is None else rows & before
        try:
            yield
        finally:
            self._active = before

    def _case(self, case: Case) -> pa.Array:
        kind = arrow_type(case.type)
        found = pa.nulls(self._frame.length, kind)
        left = np.ones(self._frame.length, np.bool_)
        for condition, value in case.branches:
            with self._only(left):
                taken = left & functions.is_true(self._boolean(condition))
            if taken.any():
                with self._only(taken):
                    found = pc.if_else(pa.array(taken), cast(self.evaluate(value), kind), found)
            left &= ~taken
        if case.otherwise is not None and left.any():
            with self._only(left):
                other = cast(self.evaluate(case.otherwise), kind)
            found = pc.if_else(pa.array(left), other, found)
        return found

    def _coalesce(self, compute: Compute) -> pa.Array:
        kind = arrow_type(compute.type)
        found = pa.nulls(self._frame.length, kind)
        for argument in compute.arguments:
            missing = np.asarray(found.is_null().to_numpy(zero_copy_only=False), np.bool_)
            if not missing.any():
                break
            with self._only(missing):
                found = pc.coalesce(found, cast(self.evaluate(argument), kind))
        return found

    # -- functions --------------------------------------------------------------------------

    def _compute(self, compute: Compute) -> pa.Array:
        name, arguments = compute.function, compute.arguments
        if name == "coalesce":
            return self._coalesce(compute)
        if not name.isidentifier():
            operands = [self.evaluate(argument) for argument in arguments]
            return self._arithmetic(name, operands, compute.type)
        if name == "abs" and compute.type.scalar.is_integer:
            return self._absolute(self.evaluate(arguments[0]))
        if name == "matches":
            pattern = self._leaves.value(_setting(arguments[1]))
            return functions.matches(self.evaluate(arguments[0]), pattern, arguments[1])
        if name.startswith("date_"):
            unit = self._leaves.value(_setting(arguments[-1]))
            operands = [self.evaluate(argument) for argument in arguments[:-1]]
            return cast(dates.FUNCTIONS[name](*operands, unit), arrow_type(compute.type))
        operands = [self.evaluate(argument) for argument in arguments]
        return cast(functions.FUNCTIONS[name](*operands), arrow_type(compute.type))

    def _arithmetic(self, symbol: str, operands: list[pa.Array], kind: PropType) -> pa.Array:
        if kind.scalar is Scalar.STRING:
            texts = [operand.cast(pa.utf8()) for operand in operands]
            return pc.binary_join_element_wise(*texts, "")
        if kind.scalar is Scalar.F64:
            numbers = [operand.cast(pa.float64(), safe=False) for operand in operands]
            return functions.FLOAT_ARITHMETIC[symbol, len(numbers)](*numbers)
        whole = [self._int64(operand) for operand in operands]
        if len(whole) == 1:
            whole.insert(0, pa.array(np.zeros(len(whole[0]), np.int64)))
        found, overflow = functions.INTEGER_ARITHMETIC[symbol](*whole)
        return self._without(found, overflow)

    def _absolute(self, values: pa.Array) -> pa.Array:
        if pa.types.is_unsigned_integer(values.type):
            return values
        low = pa.scalar(np.iinfo(values.type.to_pandas_dtype()).min, values.type)
        overflow = functions.is_true(pc.equal(values, low))
        return self._without(pc.abs(pc.if_else(pa.array(~overflow), values, None)), overflow)

    def _int64(self, values: pa.Array) -> pa.Array:
        if pa.types.is_uint64(values.type):
            beyond = functions.is_true(pc.greater(values, pa.scalar(2**63 - 1, pa.uint64())))
            if beyond.any():
                values = self._without(values, beyond)
        return values.cast(pa.int64(), safe=False)

    def _without(self, values: pa.Array, overflow: Mask) -> pa.Array:
        """The values with null where they left their type."""
        if not overflow.any():
            return values
        failing = overflow if self._active is None else overflow & self._active
        self._overflowed |= bool(failing.any())
        return pc.if_else(pa.array(overflow), pa.scalar(None, values.type), values)

    def _list(self, items: list[pa.Array], kind: PropType) -> pa.Array:
        length = self._frame.length
        element = arrow_type(kind.element())
        if not items:
            offsets = pa.array(np.zeros(length + 1, np.int32))
            return pa.ListArray.from_arrays(offsets, pa.nulls(0, element))
        joined = pa.concat_arrays([cast(item, element) for item in items])
        order = np.arange(len(items) * length).reshape(len(items), length).T.ravel()
        offsets = pa.array(np.arange(length + 1, dtype=np.int32) * len(items))
        return pa.ListArray.from_arrays(offsets, joined.take(pa.array(order)))


def _setting(expression: Expr) -> Constant | Param:
    assert isinstance(expression, Constant | Param)
    return expression


def cast(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Values in the type a result has; numbers of a wider kind are rounded to it."""
    if values.type == kind:
        return values
    if pa.types.is_timestamp(values.type) and pa.types.is_date64(kind):
        # A cast would cut the time of the day off.
        return values.view(kind)
    return values.cast(kind, safe=False)


def _at_precision(side: Expr, values: pa.Array, others: pa.Array, other: Expr) -> pa.Array:
    """Constants compared with a 32-bit float property are rounded to its precision."""
    constant = isinstance(side, Constant | Param) and isinstance(other, Prop)
    if constant and pa.types.is_float32(others.type) and side.type.scalar.is_numeric:
        return values.cast(pa.float32(), safe=False)
    return values
