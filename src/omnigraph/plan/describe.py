"""Plans as text and as JSON documents, one entry per step, for explain."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, assert_never

from omnigraph.language.types import PropType, Scalar
from omnigraph.language.values import format_date, format_datetime
from omnigraph.plan.ir import (
    NOW_PARAMETER,
    Aggregated,
    Bm25,
    Constant,
    Direction,
    EntityId,
    Expr,
    Filter,
    Nearest,
    Param,
    Prop,
    ReadPlan,
    Rrf,
    SortKey,
    TextMatch,
)
from omnigraph.plan.steps import (
    Arrangement,
    Check,
    Connected,
    Count,
    Follow,
    Has,
    Hop,
    Join,
    Lacks,
    Scan,
    Step,
    Subpattern,
    Without,
)

_INDENT = "  "

_OPERATIONS: Final[Mapping[type, str]] = {
    Scan: "scan",
    Join: "join",
    Follow: "follow",
    Connected: "connected",
    Count: "count",
    Has: "semi_join",
    Check: "filter",
    Lacks: "anti_join",
    Without: "anti_join",
}


@dataclass(frozen=True, slots=True)
class StepLine:
    """One step as text; `depth` is the number of negations around it."""

    step: Step
    text: str
    depth: int

    @property
    def indented(self) -> str:
        return f"{_INDENT * self.depth}{self.text}"

    @property
    def op(self) -> str:
        return _OPERATIONS[type(self.step)]

    @property
    def detail(self) -> dict[str, Any]:
        return step_detail(self.step)


def step_lines(steps: Iterable[Step], depth: int = 0) -> Iterator[StepLine]:
    """All steps in the order they run; a negation is followed by its inner steps."""
    for step in steps:
        yield StepLine(step, describe_step(step), depth)
        if isinstance(step, Without):
            yield from step_lines(step.inner, depth + 1)


def describe_step(step: Step) -> str:
    match step:
        case Scan():
            enough = "" if step.enough is None else f", {step.enough:,} of them"
            return f"scan {step.variable}: {step.node_type}{_where(step.conditions)}{enough}"
        case Join():
            how = "keep with" if step.only_whether else "join"
            on = f" on {describe_expression(step.bound)} = {describe_expression(step.property)}"
            return f"{how} {step.variable}: {step.node_type}{on}{_where(step.conditions)}"
        case Follow():
            path = f"{step.source} {_arrow(step.hop)} {step.target}"
            return f"follow {path}: {step.hop.node_type}{_where(step.conditions)}"
        case Connected():
            return f"keep joined {step.source} {_arrow(step.hop)} {step.target}"
        case Count():
            return f"count {step.source} {_subpattern(step.subpattern)}"
        case Has():
            return f"keep with {step.source} {_subpattern(step.subpattern)}"
        case Check():
            return f"keep {_filter(step.filter)}"
        case Lacks():
            return f"keep without {step.source} {_subpattern(step.subpattern)}"
        case Without():
            return f"keep rows of {', '.join(step.outer)} without"
        case _:
            assert_never(step)


def step_detail(step: Step) -> dict[str, Any]:
    """A step as a JSON document."""
    detail: dict[str, Any] = {"text": describe_step(step)}
    match step:
        case Scan():
            detail |= _node(step.variable, step.node_type, step.conditions)
            if step.enough is not None:
                detail["limit"] = step.enough
        case Join():
            detail |= _node(step.variable, step.node_type, step.conditions)
            detail["on"] = [describe_expression(e) for e in (step.bound, step.property)]
            detail["semi"] = step.only_whether
        case Follow():
            detail |= _node(step.target, step.hop.node_type, step.conditions)
            detail |= {"from": step.source, **_hop(step.hop)}
        case Connected():
            detail |= {"from": step.source, "to": step.target, **_hop(step.hop)}
        case Count() | Has() | Lacks():
            detail |= {"from": step.source, **_hop(step.subpattern.hop)}
        case Check():
            detail["conditions"] = [_filter(step.filter)]
        case Without():
            detail["variables"] = list(step.outer)
        case _:
            assert_never(step)
    return detail


def _node(variable: str, node_type: str, conditions: tuple[Filter, ...]) -> dict[str, Any]:
    return {"variable": variable, "type": node_type, "conditions": [_filter(c) for c in conditions]}


def _hop(hop: Hop) -> dict[str, Any]:
    bounds = {} if (hop.low, hop.high) == (1, 1) else {"hops": [hop.low, hop.high]}
    return {"edge": hop.edge, "direction": hop.direction.value, **bounds}


def describe_return(plan: ReadPlan) -> str:
    """`return`, `order` and `limit` as text."""
    columns = ", ".join(describe_expression(column.expression) for column in plan.columns)
    text = f"return {columns}"
    if plan.order:
        text += f" order by {', '.join(map(_key, plan.order))}"
    return text if plan.limit is None else f"{text} limit {plan.limit:,}"


def return_detail(plan: ReadPlan, arrangement: Arrangement) -> dict[str, Any]:
    """`return`, `order` and `limit` as a JSON document, with the properties they fetch."""
    detail: dict[str, Any] = {
        "text": describe_return(plan),
        "columns": [column.name for column in plan.columns],
        "fetch": sorted({describe_expression(p) for p in _properties(plan)}),
    }
    if plan.is_aggregate:
        keys = [c.expression for c in plan.columns if not c.is_aggregate]
        detail["group_by"] = [describe_expression(key) for key in keys]
    if plan.order:
        detail["order"] = [_key(key) for key in plan.order]
    if plan.limit is not None:
        detail["limit"] = plan.limit
        detail["stops_early"] = arrangement.enough is not None
    return detail


def _properties(plan: ReadPlan) -> Iterator[Prop]:
    expressions = [column.expression for column in plan.columns]
    for expression in (*expressions, *(key.expression for key in plan.order)):
        inner = expression.argument if isinstance(expression, Aggregated) else expression
        if isinstance(inner, Prop):
            yield inner


def _key(key: SortKey) -> str:
    return f"{describe_expression(key.expression)}{' desc' if key.descending else ''}"


def _subpattern(subpattern: Subpattern) -> str:
    text = f"{_arrow(subpattern.hop)} {subpattern.hop.node_type}{_where(subpattern.conditions)}"
    parts = [_subpattern(further) for further in subpattern.subpatterns]
    parts += [f"without {_subpattern(lacking)}" for lacking in subpattern.without]
    return f"{text} ({'; '.join(parts)})" if parts else text


def _arrow(hop: Hop) -> str:
    before, after = ("-", "->") if hop.direction is Direction.OUT else ("<-", "-")
    hops = "" if (hop.low, hop.high) == (1, 1) else f"{{{hop.low},{hop.high}}}"
    return f"{before}{hop.edge}{hops}{after}"


def _where(conditions: tuple[Filter, ...]) -> str:
    return f" where {' and '.join(map(_filter, conditions))}" if conditions else ""


def _filter(condition: Filter) -> str:
    left, right = describe_expression(condition.left), describe_expression(condition.right)
    return f"{left} {condition.operator.value} {right}"


# -- expressions --------------------------------------------------------------------------------


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
