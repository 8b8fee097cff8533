"""A plan as text a person can read: one line per operation, in the order they run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import assert_never

from omnigraph.language.query.ast import Operator
from omnigraph.language.temporal import format_date, format_datetime
from omnigraph.language.types import PropType, Scalar
from omnigraph.plan.ir import (
    NOW_PARAMETER,
    Aggregated,
    AntiJoin,
    Assign,
    Bm25,
    Condition,
    Constant,
    DeleteEdges,
    DeleteNodes,
    Direction,
    EntityId,
    Expand,
    Expr,
    Filter,
    InsertEdge,
    InsertNode,
    Match,
    MutationPlan,
    Nearest,
    NodeScan,
    Op,
    Param,
    Pipeline,
    Plan,
    Prop,
    ReadPlan,
    Rrf,
    StatementPlan,
    TextMatch,
    UpdateNodes,
)

_INDENT = "  "


def describe_plan(plan: Plan) -> str:
    """The whole plan, without a trailing line break."""
    parameters = ", ".join(f"${p.name}: {p.type.display}" for p in plan.parameters)
    head = f"{'mutation' if isinstance(plan, MutationPlan) else 'read'} {plan.name}({parameters})"
    if isinstance(plan, MutationPlan):
        body: Iterable[str] = (_statement(s) for s in plan.statements)
    else:
        body = _read_lines(plan)
    return "\n".join([head, *(f"{_INDENT}{line}" for line in body)])


def _read_lines(plan: ReadPlan) -> Iterator[str]:
    yield from _pipeline_lines(plan.pipeline)
    columns = ", ".join(f"{c.name} = {describe_expression(c.expression)}" for c in plan.columns)
    yield f"{'group' if plan.is_aggregate else 'project'} {columns}"
    if plan.order:
        keys = (
            f"{describe_expression(k.expression)} {'desc' if k.descending else 'asc'}"
            for k in plan.order
        )
        yield f"order {', '.join(keys)}"
    if plan.limit is not None:
        yield f"limit {plan.limit}"


def _pipeline_lines(pipeline: Pipeline) -> Iterator[str]:
    for op in pipeline:
        yield _op(op)
        if isinstance(op, AntiJoin):
            yield from (f"{_INDENT}{line}" for line in _pipeline_lines(op.inner))


def _op(op: Op) -> str:
    match op:
        case NodeScan():
            return f"scan {op.variable}: {op.node_type}{_matches(op.matches)}"
        case Expand():
            arrow = ("-", "->") if op.direction is Direction.OUT else ("<-", "-")
            hops = "" if (op.low, op.high) == (1, 1) else f"{{{op.low},{op.high}}}"
            path = f"{op.source} {arrow[0]}{op.edge}{hops}{arrow[1]} {op.target}"
            return f"expand {path}: {op.target_type}{_matches(op.target_matches)}"
        case Filter():
            left, right = describe_expression(op.left), describe_expression(op.right)
            return f"filter {left} {op.operator.value} {right}"
        case AntiJoin():
            return f"keep rows of {', '.join(op.outer)} without"
        case _:
            assert_never(op)


def _matches(matches: tuple[Match, ...]) -> str:
    if not matches:
        return ""
    shown = (
        f"{m.property} {(Operator.CONTAINS if m.membership else Operator.EQ).value} "
        f"{describe_expression(m.value)}"
        for m in matches
    )
    return f" where {' and '.join(shown)}"


def _statement(statement: StatementPlan) -> str:
    match statement:
        case InsertNode():
            return f"insert {statement.node_type} ({_assignments(statement.assignments)})"
        case InsertEdge():
            ends = " -> ".join(describe_expression(e) for e in (statement.source, statement.target))
            assignments = _assignments(statement.assignments)
            suffix = f" ({assignments})" if assignments else ""
            return f"insert {statement.edge_type} {ends}{suffix}"
        case UpdateNodes():
            assignments = _assignments(statement.assignments)
            condition = _condition(statement.condition)
            return f"update {statement.node_type} ({assignments}) where {condition}"
        case DeleteNodes():
            return f"delete {statement.node_type} where {_condition(statement.condition)}"
        case DeleteEdges():
            return f"delete {statement.edge_type} where {_condition(statement.condition)}"
        case _:
            assert_never(statement)


def _assignments(assignments: tuple[Assign, ...]) -> str:
    return ", ".join(f"{a.property}: {describe_expression(a.value)}" for a in assignments)


def _condition(condition: Condition) -> str:
    value = describe_expression(condition.value)
    return f"{condition.property} {condition.operator.value} {value}"


def describe_expression(expression: Expr) -> str:
    """An expression in query syntax."""
    match expression:
        case Prop():
            return f"{expression.variable}.{expression.property}"
        case EntityId():
            return f"id({expression.variable})"
        case Param():
            return "now()" if expression.name == NOW_PARAMETER else f"${expression.name}"
        case Constant():
            return _constant(expression)
        case TextMatch():
            word = expression.function.value
            return _call(word, expression.field, expression.query, expression.edits)
        case Nearest():
            return _call("nearest", expression.field, expression.query)
        case Bm25():
            return _call("bm25", expression.field, expression.query)
        case Rrf():
            return _call("rrf", expression.first, expression.second, expression.k)
        case Aggregated():
            return _call(expression.function.value, expression.argument)
        case _:
            assert_never(expression)


def _call(word: str, *arguments: Expr | None) -> str:
    shown = (describe_expression(a) for a in arguments if a is not None)
    return f"{word}({', '.join(shown)})"


def _constant(constant: Constant) -> str:
    value = constant.value
    if isinstance(value, tuple):
        element = constant.type.element() if constant.type.list else PropType(Scalar.F32)
        return f"[{', '.join(_constant(Constant(item, element)) for item in value)}]"
    if constant.type.scalar is Scalar.DATE and isinstance(value, int):
        return format_date(value)
    if constant.type.scalar is Scalar.DATETIME and isinstance(value, int):
        return format_datetime(value)
    return json.dumps(value, ensure_ascii=False)
