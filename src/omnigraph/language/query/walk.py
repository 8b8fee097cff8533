"""The parts of expressions, for what looks at all of them alike."""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.language.query.ast import (
    Aggregate,
    AggregateBlock,
    Arithmetic,
    Bm25Call,
    Call,
    Case,
    Comparison,
    Expression,
    ListExpression,
    Logical,
    NearestCall,
    Negative,
    Not,
    NullTest,
    RrfCall,
    TextCall,
)


def parts_of(expression: Expression) -> tuple[Expression, ...]:
    """The expressions an expression is made of, without those of its clauses."""
    match expression:
        case Aggregate(_, argument):
            return (argument,)
        case TextCall(_, field, query, edits):
            return (field, query) if edits is None else (field, query, edits)
        case NearestCall(field, query) | Bm25Call(field, query):
            return (field, query)
        case RrfCall(first, second, k):
            return (first, second) if k is None else (first, second, k)
        case Call(_, arguments):
            return arguments
        case ListExpression(items):
            return items
        case Case(branches, otherwise):
            parts = tuple(part for b in branches for part in (b.condition, b.value))
            return parts if otherwise is None else (*parts, otherwise)
        case AggregateBlock(_, _, argument):
            return () if argument is None else (argument,)
        case Comparison(left, _, right) | Arithmetic(left, _, right):
            return (left, right)
        case NullTest(operand) | Not(operand) | Negative(operand):
            return (operand,)
        case Logical(_, operands):
            return operands
        case _:
            return ()


def walk(expression: Expression) -> Iterator[Expression]:
    """An expression and all parts of it, outermost first."""
    waiting = [expression]
    while waiting:
        found = waiting.pop()
        yield found
        waiting.extend(reversed(parts_of(found)))
