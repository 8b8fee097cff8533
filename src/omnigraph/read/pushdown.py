"""Conditions of a plan as predicates that the store and the columns in memory evaluate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

from omnigraph.language.query.ast import Junction, Operator
from omnigraph.language.types import Scalar
from omnigraph.plan.ir import Comparison as Compared
from omnigraph.plan.ir import Constant, EntityId, Expr, Logical, NullTest, Param, Prop
from omnigraph.plan.ir import Not as Negated
from omnigraph.storage.filters import And, Comparison, In, IsNull, Not, Or
from omnigraph.storage.filters import Filter as StoredFilter
from omnigraph.storage.filters import Operator as StoredOperator

ValueOf = Callable[[Constant | Param], Any]

_FLIPPED: Final = {
    Operator.EQ: Operator.EQ,
    Operator.NE: Operator.NE,
    Operator.LT: Operator.GT,
    Operator.LE: Operator.GE,
    Operator.GT: Operator.LT,
    Operator.GE: Operator.LE,
}


def stored_predicate(condition: Expr, value_of: ValueOf) -> StoredFilter | None:
    """A condition on one variable as a predicate on its properties; None if it cannot be one."""
    match condition:
        case Compared():
            return _comparison(condition, value_of)
        case NullTest(Prop() as operand, negated) if not operand.type.is_blob:
            missing = IsNull(operand.property)
            return Not(missing) if negated else missing
        case Prop(_, name, kind) if kind.scalar is Scalar.BOOL and not kind.list:
            return Comparison(name, "=", True)
        case Negated(operand):
            inner = stored_predicate(operand, value_of)
            return None if inner is None else Not(inner)
        case Logical(junction, operands):
            found = [stored_predicate(operand, value_of) for operand in operands]
            parts = tuple(part for part in found if part is not None)
            if len(parts) < len(found):
                return None
            return And(parts) if junction is Junction.AND else Or(parts)
        case _:
            return None


def _comparison(comparison: Compared, value_of: ValueOf) -> StoredFilter | None:
    """A comparison of a property with a constant."""
    left, right, operator = comparison.left, comparison.right, comparison.operator
    if left.type.is_vector or right.type.is_vector or operator is Operator.ENDS_WITH:
        return None
    if operator is Operator.IN:
        return _one_of(right, left, value_of) if isinstance(right, Constant | Param) else None
    if operator is Operator.CONTAINS and isinstance(left, Constant | Param) and left.type.list:
        return _one_of(left, right, value_of)
    if isinstance(right, Prop | EntityId) and isinstance(left, Constant | Param):
        if operator not in _FLIPPED:
            return None
        left, right, operator = right, left, _FLIPPED[operator]
    if not isinstance(left, Prop | EntityId) or not isinstance(right, Constant | Param):
        return None
    name = left.property if isinstance(left, Prop) else "id"
    return Comparison(name, cast(StoredOperator, operator.value), value_of(right))


def _one_of(items: Constant | Param, needle: Expr, value_of: ValueOf) -> StoredFilter | None:
    """A list of constants that contains a property, as `property in list`."""
    if not isinstance(needle, Prop | EntityId):
        return None
    name = needle.property if isinstance(needle, Prop) else "id"
    found = value_of(items)
    if found is None:
        return Comparison(name, "=", None)
    return In(name, tuple(item for item in found if item is not None))
