"""Plans as text and as JSON documents, one entry per step, for explain."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, assert_never

from msgspec.structs import replace

from omnigraph.language.types import PropType, Scalar
from omnigraph.language.values import format_date, format_datetime
from omnigraph.plan.ir import (
    NOW_PARAMETER,
    Aggregated,
    BlockValue,
    Bm25,
    Case,
    Comparison,
    Compute,
    Constant,
    Direction,
    EntityId,
    Expr,
    Filter,
    Logical,
    MakeList,
    MakeObject,
    Nearest,
    Not,
    Null,
    NullTest,
    Param,
    Prop,
    ReadPlan,
    Rrf,
    SortKey,
    SystemField,
    TextMatch,
    reverse,
    walk,
)
from omnigraph.plan.steps import (
    Apply,
    Arrangement,
    Check,
    Connected,
    Count,
    EdgeRow,
    Follow,
    Has,
    Hop,
    Join,
    Lacks,
    LeftCount,
    LeftJoin,
    Present,
    Route,
    Scan,
    ScanEdges,
    Step,
    Subpattern,
    With,
    Without,
    inner_steps,
)

_INDENT = "  "

_OPERATIONS: Final[Mapping[type, str]] = {
    Scan: "scan",
    Join: "join",
    Follow: "follow",
    Connected: "connected",
    ScanEdges: "scan_edges",
    Route: "route",
    Count: "count",
    Has: "semi_join",
    Check: "filter",
    Present: "filter",
    Lacks: "anti_join",
    Without: "anti_join",
    With: "semi_join",
    LeftJoin: "left_join",
    LeftCount: "left_join",
    Apply: "compute",
}


@dataclass(frozen=True, slots=True)
class StepLine:
    """One step as text; `depth` is the number of blocks around it."""

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
    """All steps in the order they run; a block is followed by its inner steps."""
    for step in steps:
        yield StepLine(step, describe_step(step), depth)
        yield from step_lines(inner_steps(step), depth + 1)


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
            path = f"{step.source} {_arrow(step.hop, step.edge)} {step.target}"
            return f"follow {path}: {step.hop.node_type}{_where(step.conditions)}"
        case Connected():
            return f"keep joined {step.source} {_arrow(step.hop, step.edge)} {step.target}"
        case ScanEdges():
            path = f"{step.source} {_arrow(step.hop, step.edge)} {step.target}"
            return f"scan {path}{_where((*step.source_conditions, *step.target_conditions))}"
        case Route():
            ends = (step.target, step.source) if step.backwards else (step.source, step.target)
            by = "" if step.weight is None else f" by {step.weight}"
            how = "keep with route" if step.joined else "route"
            path = f"{ends[0]} {_arrow(_forward(step))} {ends[1]}{by}"
            return f"{how} {path}{_where(step.conditions)}"
        case Count():
            return f"count {step.source} {_subpattern(step.subpattern)}"
        case Has():
            return f"keep with {step.source} {_subpattern(step.subpattern)}"
        case Check():
            has_block = any(isinstance(p, BlockValue) for p in walk(step.filter.condition))
            return f"keep {'with ' if has_block else ''}{_filter(step.filter)}"
        case Present():
            return f"keep with {step.variable}"
        case Lacks():
            return f"keep without {step.source} {_subpattern(step.subpattern)}"
        case Without():
            return f"keep rows of {', '.join(step.outer)} without"
        case With():
            return f"keep rows of {', '.join(step.outer)} with"
        case LeftJoin():
            return f"left join {', '.join(step.outer)} with"
        case LeftCount():
            return f"left join {step.source} {_subpattern(step.subpattern)}, counted"
        case Apply():
            return f"compute {step.name} = {_block(step)}"
        case _:
            assert_never(step)


def _block(step: Apply) -> str:
    """What a block computes, and of what."""
    word = "exists" if step.function is None else step.function.value
    if step.argument is not None:
        before = "distinct " if step.distinct else ""
        word += f"({before}{describe_expression(step.argument)})"
    if isinstance(step.inner, Subpattern):
        return f"{word} of {step.outer[0]} {_subpattern(step.inner)}"
    return f"{word} of {', '.join(step.outer)} with"


def _forward(step: Route) -> Hop:
    """The hop in the direction of the path."""
    hop = step.hop
    return replace(hop, members=reverse(hop.members)) if step.backwards else hop


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
            detail |= {"from": step.source, **_hop(step.hop), **_edge(step.edge)}
        case Connected():
            detail |= {"from": step.source, "to": step.target}
            detail |= {**_hop(step.hop), **_edge(step.edge)}
        case ScanEdges():
            found = (*step.source_conditions, *step.target_conditions)
            detail |= {"from": step.source, "to": step.target, **_hop(step.hop)}
            detail |= {**_edge(step.edge), "conditions": [_filter(c) for c in found]}
        case Route():
            detail |= {"from": step.source, "to": step.target, **_hop(step.hop)}
            detail |= {"path": step.path, "by": step.weight, "joined": step.joined}
            detail["conditions"] = [_filter(c) for c in step.conditions]
        case Count() | Has() | Lacks() | LeftCount():
            detail |= {"from": step.source, **_hop(step.subpattern.hop)}
        case Check():
            detail["conditions"] = [_filter(step.filter)]
        case Present():
            detail["variables"] = [step.variable]
        case Without() | With() | LeftJoin():
            detail["variables"] = list(step.outer)
        case Apply():
            detail |= {"variables": list(step.outer), "value": step.name}
            if isinstance(step.inner, Subpattern):
                detail |= _hop(step.inner.hop)
        case _:
            assert_never(step)
    return detail


def _node(variable: str, node_type: str, conditions: tuple[Filter, ...]) -> dict[str, Any]:
    return {"variable": variable, "type": node_type, "conditions": [_filter(c) for c in conditions]}


def _edge(edge: EdgeRow | None) -> dict[str, Any]:
    if edge is None:
        return {}
    conditions = [_filter(condition) for condition in edge.conditions]
    return {"edge_variable": edge.variable, "edge_conditions": conditions}


def _hop(hop: Hop) -> dict[str, Any]:
    bounds = {} if (hop.low, hop.high) == (1, 1) else {"hops": [hop.low, hop.high]}
    ways = {direction.value for _, direction in hop.members}
    direction = ways.pop() if len(ways) == 1 else "both"
    return {"edge": " | ".join(hop.edge_types), "direction": direction, **bounds}


def describe_return(plan: ReadPlan) -> str:
    """`return`, `order` and `limit` as text."""
    columns = ", ".join(describe_expression(column.expression) for column in plan.columns)
    text = f"return {'distinct ' if plan.distinct else ''}{columns}"
    if plan.having:
        text += f" having {', '.join(map(describe_expression, plan.having))}"
    if plan.order:
        text += f" order by {', '.join(map(_key, plan.order))}"
    for word, bound in (("offset", plan.offset), ("limit", plan.limit)):
        if bound is not None:
            text += f" {word} {bound:,}" if isinstance(bound, int) else f" {word} ${bound.name}"
    return text


def _bound(bound: int | Param) -> int | str:
    return bound if isinstance(bound, int) else describe_expression(bound)


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
    if plan.distinct:
        detail["distinct"] = True
    if plan.having:
        detail["having"] = [describe_expression(condition) for condition in plan.having]
    if plan.offset is not None:
        detail["offset"] = _bound(plan.offset)
    if plan.results:
        detail["results"] = {result.name: describe_return(result) for result in plan.results}
    if plan.order:
        detail["order"] = [_key(key) for key in plan.order]
    if plan.limit is not None:
        detail["limit"] = _bound(plan.limit)
        detail["stops_early"] = arrangement.enough is not None
    return detail


def _properties(plan: ReadPlan) -> Iterator[Prop]:
    expressions = [column.expression for column in plan.columns]
    for expression in (*expressions, *(key.expression for key in plan.order)):
        yield from (part for part in walk(expression) if isinstance(part, Prop))


def _key(key: SortKey) -> str:
    return f"{describe_expression(key.expression)}{' desc' if key.descending else ''}"


def _subpattern(subpattern: Subpattern) -> str:
    arrow = _arrow(subpattern.hop, subpattern.edge)
    text = f"{arrow} {subpattern.hop.node_type}{_where(subpattern.conditions)}"
    parts = [_subpattern(further) for further in subpattern.subpatterns]
    parts += [f"without {_subpattern(lacking)}" for lacking in subpattern.without]
    parts += [f"with {_subpattern(had)}" for had in subpattern.having]
    return f"{text} ({'; '.join(parts)})" if parts else text


def _arrow(hop: Hop, edge: EdgeRow | None = None) -> str:
    ways = {direction for _, direction in hop.members}
    before = "<-" if Direction.IN in ways else "-"
    after = "->" if Direction.OUT in ways else "-"
    hops = "" if (hop.low, hop.high) == (1, 1) else f"{{{hop.low},{hop.high}}}"
    named = "" if edge is None else f"{edge.variable or '_'}: "
    where = "" if edge is None else _where(edge.conditions)
    return f"{before}{named}{' | '.join(hop.edge_types) or '*'}{hops}{where}{after}"


def _where(conditions: tuple[Filter, ...]) -> str:
    return f" where {' and '.join(map(_filter, conditions))}" if conditions else ""


def _filter(condition: Filter) -> str:
    return describe_expression(condition.condition)


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
        case Aggregated(function, argument, _, distinct):
            before = "distinct " if distinct else ""
            return f"{function.value}({before}{describe_expression(argument)})"
        case Null():
            return "null"
        case SystemField(variable, field):
            return f"{variable}.@{field}"
        case Comparison(left, operator, right):
            return f"{_operand(left)} {operator.value} {_operand(right)}"
        case NullTest(operand, negated):
            return f"{_operand(operand)} is {'not ' if negated else ''}null"
        case Not(operand):
            return f"not {_operand(operand)}"
        case Logical(junction, operands):
            return f" {junction.value} ".join(map(_operand, operands))
        case Compute(function, arguments):
            return _computed(function, arguments)
        case Case(branches, otherwise):
            parts = [
                f"when {describe_expression(condition)} then {describe_expression(value)}"
                for condition, value in branches
            ]
            if otherwise is not None:
                parts.append(f"else {describe_expression(otherwise)}")
            return f"case {' '.join(parts)} end"
        case MakeList(items):
            return f"[{', '.join(map(describe_expression, items))}]"
        case MakeObject(variable):
            return f"{variable}.*"
        case BlockValue(name):
            return name
        case _:
            assert_never(expression)


def _operand(expression: Expr) -> str:
    """An expression as an operand of another one."""
    text = describe_expression(expression)
    joined = isinstance(expression, Logical | Comparison | NullTest | Not)
    is_arithmetic = isinstance(expression, Compute) and not expression.function.isidentifier()
    return f"({text})" if joined or is_arithmetic else text


def _computed(function: str, arguments: tuple[Expr, ...]) -> str:
    if function.isidentifier():
        return _call(function, *arguments)
    operands = [_operand(argument) for argument in arguments]
    return f"{function}{operands[0]}" if len(operands) == 1 else f" {function} ".join(operands)


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
