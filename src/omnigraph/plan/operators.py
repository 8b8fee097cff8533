"""Types of operators, functions and `case`: the part of the expression checker that is about values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from omnigraph.language.query import ast
from omnigraph.language.query.ast import Operator
from omnigraph.language.types import PropType, Scalar, compatible
from omnigraph.plan.functions import (
    ALIKE,
    argument_types,
    check_call,
    common_type,
    sharing_error,
    shown_type,
)
from omnigraph.plan.ir import (
    Aggregated,
    Case,
    Comparison,
    Compute,
    Constant,
    EntityId,
    Expr,
    Logical,
    MakeList,
    Not,
    Null,
    NullTest,
)

if TYPE_CHECKING:
    from omnigraph.plan.type_errors import TypeErrors

Aliases = Mapping[str, Expr]

_BLOCKS = (ast.Exists, ast.AggregateBlock)


class OperatorChecker(ABC):
    """`aliases` are results that an expression may refer to; None in a pattern, which has none."""

    _errors: TypeErrors

    @abstractmethod
    def check(self, expression: ast.Expression, aliases: Aliases | None = None) -> Expr:
        """Type an expression."""

    def infer(self, expression: ast.Expression, wanted: PropType) -> None:  # noqa: B027
        """Give an undeclared parameter the type that its use asks for."""

    def condition(self, expression: ast.Expression, aliases: Aliases | None = None) -> Expr:
        """Type an expression that must be a single Bool."""
        self.infer(expression, PropType(Scalar.BOOL))
        typed = self.check(expression, aliases)
        if isinstance(typed, Null):
            return Null(PropType(Scalar.BOOL, nullable=True))
        is_bool = typed.type.scalar is Scalar.BOOL and not typed.type.list
        if not is_bool or isinstance(typed, EntityId):
            message = f"a condition must be Boolean, got {shown_type(typed)}"
            hint = None
            if isinstance(typed, EntityId):
                hint = "an edge between two variables is written `$a knows $b`"
            self._errors.fail(expression.span, "T41", message, hint)
        return typed

    def operator(self, expression: ast.Expression, aliases: Aliases | None) -> Expr | None:
        """Type an operator, a function or `case`; None for any other expression."""
        match expression:
            case ast.Comparison():
                return self._comparison(expression, aliases)
            case ast.NullTest(operand, negated):
                return NullTest(self.check(operand, aliases), negated)
            case ast.Not(operand):
                return Not(self.condition(operand, aliases))
            case ast.Logical(junction, operands):
                return Logical(junction, tuple(self.condition(part, aliases) for part in operands))
            case ast.Arithmetic():
                return self._arithmetic(expression, aliases)
            case ast.Negative():
                return self._negative(expression, aliases)
            case ast.Call(function, arguments):
                for argument, wanted in zip(arguments, argument_types(function.text), strict=False):
                    if wanted is not None:
                        self.infer(argument, wanted)
                if function.text in ALIKE:
                    self._infer_alike(arguments, aliases)
                typed = tuple(self.check(argument, aliases) for argument in arguments)
                return check_call(self._errors, expression, typed)
            case ast.Case():
                return self._case(expression, aliases)
            case ast.ListExpression():
                return self._list(expression, aliases)
            case ast.NullLiteral():
                return Null(PropType(Scalar.STRING, nullable=True))
            case _:
                return None

    def _infer_alike(self, values: Sequence[ast.Expression], aliases: Aliases | None) -> None:
        """Give undeclared parameters among values of one type the type of the first other value."""
        waiting = [value for value in values if self.is_undeclared(value)]
        if not waiting or len(waiting) == len(values):
            return
        known = next(value for value in values if not self.is_undeclared(value))
        kind = self.check(known, aliases)
        for value in waiting:
            if not isinstance(kind, Null):
                self.infer(value, kind.type)

    # -- comparisons ------------------------------------------------------------------------

    def _comparison(self, clause: ast.Comparison, aliases: Aliases | None) -> Comparison:
        self._refuse_arrow(clause)
        left, right = self._sides(clause, aliases)
        match clause.operator:
            case Operator.CONTAINS:
                self._check_contains(clause, left.type, right.type)
            case Operator.STARTS_WITH | Operator.ENDS_WITH:
                for side, operand in ((left, clause.left), (right, clause.right)):
                    if not side.type.is_text:
                        word = clause.operator.value
                        message = f"{word} requires a String, got {side.type.display}"
                        self._errors.fail(operand.span, "T7", message)
            case Operator.IN:
                self._check_membership(clause, left, right)
            case _:
                self._check_comparison(clause, left.type, right.type)
        return Comparison(left, clause.operator, right)

    def _refuse_arrow(self, clause: ast.Comparison) -> None:
        """Refuse `$a <- $b` between nodes, which reads as `$a < (-$b)`."""
        right = clause.right
        while isinstance(right, ast.Arithmetic):
            right = right.left
        if clause.operator is not Operator.LT or not isinstance(right, ast.Negative):
            return
        if isinstance(clause.left, ast.Variable) and self.is_entity(clause.left):
            hint = "an edge is written from its source to its destination: `$b knows $a`"
            self._errors.fail(clause.span, "T7", "filter comparisons require scalar operands", hint)

    def is_entity(self, _variable: ast.Variable) -> bool:
        """Whether a variable is bound to a node, an edge or a path."""
        return False

    def _sides(self, clause: ast.Comparison, aliases: Aliases | None) -> tuple[Expr, Expr]:
        """Both operands; an undeclared parameter takes its type from the other one."""
        operator = clause.operator
        if self.is_undeclared(clause.left) and not self.is_undeclared(clause.right):
            right = self._operand(clause.right, aliases)
            self.infer(clause.left, _needle(operator, right.type))
            return self._operand(clause.left, aliases), right
        left = self._operand(clause.left, aliases)
        if self.is_undeclared(clause.right):
            self.infer(clause.right, _haystack(operator, left.type))
        return left, self._operand(clause.right, aliases)

    def is_undeclared(self, _expression: ast.Expression) -> bool:
        """Whether an expression is a parameter whose type is not known yet."""
        return False

    def _operand(self, expression: ast.Expression, aliases: Aliases | None) -> Expr:
        """One side of a comparison. Nodes, and in patterns aggregates and aliases, are none."""
        if isinstance(expression, ast.NullLiteral):
            message = "a comparison with null is never true; use is null or is not null"
            self._errors.fail(expression.span, "T7", f"use is null: {message}")
        typed = None
        only_results = isinstance(expression, ast.Aggregate | ast.AliasReference)
        if aliases is not None or not only_results:
            typed = self.check(expression, aliases)
        if typed is None or (isinstance(typed, EntityId) and not self.allows_id(typed, expression)):
            hint = None
            if isinstance(typed, EntityId):
                hint = "compare one of its properties instead, or `.@id`"
            message = "filter comparisons require scalar operands"
            self._errors.fail(expression.span, "T7", message, hint)
        return typed

    def allows_id(self, _typed: EntityId, expression: ast.Expression) -> bool:
        """Whether the id of a variable was written as such, `$x.@id`."""
        return not isinstance(expression, ast.Variable)

    def _check_contains(self, clause: ast.Comparison, left: PropType, right: PropType) -> None:
        if left.is_vector:
            message = "vector membership filters are not supported"
            self._errors.fail(clause.left.span, "T7", message)
        if not left.list and left.scalar is not Scalar.STRING:
            message = f"contains requires a list or String on the left, got {left.display}"
            self._errors.fail(clause.left.span, "T7", message)
        if right.list:
            message = f"contains requires a scalar right operand, got {right.display}"
            self._errors.fail(clause.right.span, "T7", message)
        if left.list and not compatible(left.element(), right):
            message = f"cannot test membership of {right.display} in {left.display}"
            self._errors.fail(clause.span, "T7", message)
        if not left.list and not right.is_text:
            message = f"cannot test substring: {right.display} is not a String"
            self._errors.fail(clause.right.span, "T7", message)

    def _check_membership(self, clause: ast.Comparison, left: Expr, right: Expr) -> None:
        if not right.type.list:
            message = f"in requires a list on the right, got {right.type.display}"
            self._errors.fail(clause.right.span, "T7", message)
        if left.type.list or left.type.is_vector or left.type.is_blob:
            message = (
                f"in requires a list on the right and a scalar on the left, got {left.type.display}"
            )
            self._errors.fail(clause.left.span, "T7", message)
        is_empty = isinstance(right, Constant) and right.value == ()
        if not is_empty and not compatible(left.type, right.type.element()):
            message = f"cannot test membership of {left.type.display} in {right.type.display}"
            self._errors.fail(clause.span, "T7", message)

    def _check_comparison(self, clause: ast.Comparison, left: PropType, right: PropType) -> None:
        for side, operand in ((left, clause.left), (right, clause.right)):
            problem = None
            if side.list:
                problem = "list comparisons in filters are not supported; use `contains`"
            elif side.is_vector:
                problem = "vector comparisons in filters are not supported; use `nearest`"
            elif side.is_blob:
                problem = "blob comparisons in filters are not supported"
            if problem:
                self._errors.fail(operand.span, "T7", problem)
        if not compatible(left, right):
            message = f"cannot compare {left.display} with {right.display}"
            is_block = any(isinstance(side, _BLOCKS) for side in (clause.left, clause.right))
            self._errors.fail(clause.span, "T40" if is_block else "T7", message)

    # -- arithmetic -------------------------------------------------------------------------

    def _arithmetic(self, written: ast.Arithmetic, aliases: Aliases | None) -> Compute:
        if self.is_undeclared(written.left) and not self.is_undeclared(written.right):
            right = self.check(written.right, aliases)
            self.infer(written.left, right.type)
            left = self.check(written.left, aliases)
        else:
            left = self.check(written.left, aliases)
            self.infer(written.right, left.type)
            right = self.check(written.right, aliases)
        symbol = written.operator.value
        sides = [side for side in (left, right) if not isinstance(side, Null)]
        scalars = [side.type.scalar for side in sides]
        plain = not any(side.type.list or isinstance(side, EntityId) for side in sides)
        nullable = symbol in "/%" or any(
            isinstance(side, Null) or side.type.nullable for side in (left, right)
        )
        if plain and all(scalar.is_numeric for scalar in scalars):
            is_whole = symbol != "/" and all(scalar.is_integer for scalar in scalars)
            result = PropType(Scalar.I64 if is_whole else Scalar.F64, nullable)
        elif plain and symbol == "+" and all(scalar is Scalar.STRING for scalar in scalars):
            result = PropType(Scalar.STRING, nullable)
        else:
            shown = f"{shown_type(left)} {symbol} {shown_type(right)}"
            self._errors.fail(written.span, "T60", f"cannot compute {shown}")
        return Compute(symbol, (left, right), result)

    def _negative(self, written: ast.Negative, aliases: Aliases | None) -> Compute:
        operand = self.check(written.operand, aliases)
        given = operand.type
        is_number = given.scalar.is_numeric and not given.list
        if isinstance(operand, EntityId) or not (is_number or isinstance(operand, Null)):
            self._errors.fail(written.span, "T60", f"cannot compute -{shown_type(operand)}")
        scalar = Scalar.F64 if given.scalar.is_float else Scalar.I64
        nullable = given.nullable or isinstance(operand, Null)
        return Compute("-", (operand,), PropType(scalar, nullable))

    # -- choices ----------------------------------------------------------------------------

    def _case(self, written: ast.Case, aliases: Aliases | None) -> Case:
        conditions = [self.condition(branch.condition, aliases) for branch in written.branches]
        chosen = [branch.value for branch in written.branches]
        self._infer_alike(
            chosen if written.otherwise is None else [*chosen, written.otherwise], aliases
        )
        values = [self._choice(branch.value, aliases) for branch in written.branches]
        otherwise = None
        if written.otherwise is not None:
            otherwise = self._choice(written.otherwise, aliases)
        every = [*values, Null(PropType(Scalar.STRING, True)) if otherwise is None else otherwise]
        shared = common_type(every)
        if shared is None:
            message = f"branches of case {sharing_error(every)}"
            self._errors.fail(written.span, "T62", message)
        return Case(tuple(zip(conditions, values, strict=True)), otherwise, shared)

    def _choice(self, written: ast.Expression, aliases: Aliases | None) -> Expr:
        typed = self.check(written, aliases)
        if typed.type.is_vector or typed.type.is_blob:
            message = f"case cannot choose between values of type {typed.type.display}"
            self._errors.fail(written.span, "T62", message)
        return typed

    def _list(self, written: ast.ListExpression, aliases: Aliases | None) -> MakeList:
        items = tuple(self.check(item, aliases) for item in written.items)
        for item, typed in zip(written.items, items, strict=True):
            if typed.type.list or typed.type.is_vector or isinstance(typed, Aggregated):
                message = "list elements must be scalars"
                self._errors.fail(item.span, "T37", message)
        shared = common_type(items)
        if shared is None:
            message = "list literal elements must share a compatible scalar type"
            self._errors.fail(written.span, "T37", message)
        return MakeList(items, PropType(shared.scalar, list=True))


def _needle(operator: Operator, other: PropType) -> PropType:
    """The type of the left operand, from that of the right one."""
    if operator is Operator.IN:
        return other.element()
    if operator is Operator.CONTAINS:
        return PropType(other.scalar, list=not other.is_text)
    return other


def _haystack(operator: Operator, other: PropType) -> PropType:
    """The type of the right operand, from that of the left one."""
    if operator is Operator.IN:
        return PropType(other.scalar, list=True)
    return other.element() if operator is Operator.CONTAINS else other
