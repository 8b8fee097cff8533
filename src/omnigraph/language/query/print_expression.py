"""Query trees to text: expressions and clauses on one line each.

Whatever the parser accepts is printed so that it reads back as the same tree; two clauses that
would read as one are kept apart by parentheses.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, assert_never

from omnigraph.language.query import ast as gq
from omnigraph.language.query.expressions import (
    AND,
    COMPARISON,
    FACTOR,
    NOT,
    OPERATOR_WORDS,
    OR,
    SUM,
    TERM,
)
from omnigraph.language.tokens import encode_string

_PRIMARY: Final = FACTOR + 1
_ARITHMETIC: Final = {
    gq.ArithmeticOperator.ADD: SUM,
    gq.ArithmeticOperator.SUBTRACT: SUM,
    gq.ArithmeticOperator.MULTIPLY: TERM,
    gq.ArithmeticOperator.DIVIDE: TERM,
    gq.ArithmeticOperator.REMAINDER: TERM,
}
_LOGICAL: Final = {gq.Junction.OR: OR, gq.Junction.AND: AND}
_ENDS_WITH_WORD: Final = re.compile(r"(?<![A-Za-z0-9_.$@])[a-z_][A-Za-z0-9_]*\Z")
_FIRST_WORD: Final = re.compile(r"[a-z_]*")


def print_expression(expression: gq.Expression) -> str:
    """An expression as text on one line."""
    match expression:
        case gq.StringLiteral(value, spelling):
            return spelling or encode_string(value)
        case gq.IntegerLiteral(value):
            return str(value)
        case gq.FloatLiteral(text):
            return text
        case gq.BoolLiteral(value):
            return "true" if value else "false"
        case gq.NullLiteral():
            return "null"
        case gq.DateLiteral(text):
            return f"date({encode_string(text)})"
        case gq.DateTimeLiteral(text):
            return f"datetime({encode_string(text)})"
        case gq.ListLiteral(items):
            return f"[{', '.join(print_expression(item) for item in items)}]"
        case gq.ListExpression(items):
            return f"[{', '.join(print_expression(item) for item in items)}]"
        case gq.Variable(name):
            return f"${name}"
        case gq.Now():
            return "now()"
        case gq.PropertyAccess(variable, name):
            return f"${variable.name}.{name}"
        case gq.SystemAccess(variable, name):
            return f"${variable.name}.@{name}"
        case gq.SystemReference(name):
            return f"@{name}"
        case gq.WholeEntity(variable):
            return f"${variable.name}.*"
        case gq.AliasReference(name):
            return name.text
        case gq.Aggregate(function, argument, distinct):
            return (
                f"{function.value}({'distinct ' if distinct else ''}{print_expression(argument)})"
            )
        case gq.TextCall(function, field, query, edits):
            return _call(function.value, field, query, edits)
        case gq.NearestCall(field, query):
            return _call("nearest", field, query)
        case gq.Bm25Call(field, query):
            return _call("bm25", field, query)
        case gq.RrfCall(first, second, k):
            return _call("rrf", first, second, k)
        case gq.Call(function, arguments):
            return _call(function.text, *arguments)
        case gq.Case():
            return _case(expression)
        case gq.Exists(clauses):
            return f"exists {print_clauses(clauses)}"
        case gq.AggregateBlock():
            return _aggregate_block(expression)
        case gq.Comparison(left, operator, right):
            return f"{_operand(left, SUM)} {operator.value} {_operand(right, SUM)}"
        case gq.NullTest(operand, negated):
            return f"{_operand(operand, SUM)} is {'not ' if negated else ''}null"
        case gq.Not(operand):
            return f"not {_operand(operand, NOT)}"
        case gq.Logical(junction, operands):
            least = _LOGICAL[junction] + 1
            return f" {junction.value} ".join(_operand(part, least) for part in operands)
        case gq.Arithmetic(left, symbol, right):
            level = _ARITHMETIC[symbol]
            return f"{_operand(left, level)} {symbol.value} {_operand(right, level + 1)}"
        case gq.Negative(operand):
            # A sign before a written number would become a part of it.
            text = _operand(operand, FACTOR)
            return f"-({text})" if text[0].isdigit() else f"-{text}"
        case _:
            assert_never(expression)


def _operand(expression: gq.Expression, least: int) -> str:
    text = print_expression(expression)
    return text if _precedence(expression) >= least else f"({text})"


def _precedence(expression: gq.Expression) -> int:
    match expression:
        case gq.Logical(junction):
            return _LOGICAL[junction]
        case gq.Not():
            return NOT
        case gq.Comparison() | gq.NullTest():
            return COMPARISON
        case gq.Arithmetic(_, operator):
            return _ARITHMETIC[operator]
        case gq.Negative():
            return FACTOR
        case _:
            return _PRIMARY


def _call(word: str, *arguments: gq.Expression | None) -> str:
    shown = ", ".join(print_expression(a) for a in arguments if a is not None)
    return f"{word}({shown})"


def _case(case: gq.Case) -> str:
    parts = ["case"]
    for branch in case.branches:
        condition, value = print_expression(branch.condition), print_expression(branch.value)
        parts.append(f"when {condition} then {value}")
    if case.otherwise is not None:
        parts.append(f"else {print_expression(case.otherwise)}")
    return " ".join([*parts, "end"])


def _aggregate_block(block: gq.AggregateBlock) -> str:
    argument = ""
    if block.argument is not None:
        distinct = "distinct " if block.distinct else ""
        argument = f"({distinct}{print_expression(block.argument)})"
    return f"{block.function.value}{argument} {print_clauses(block.clauses)}"


# -- clauses ------------------------------------------------------------------------------------


def print_clauses(clauses: Sequence[gq.Clause]) -> str:
    """A clause list with its braces, on one line."""
    return f"{{ {'  '.join(clause_texts(clauses))} }}"


def clause_texts(clauses: Sequence[gq.Clause]) -> list[str]:
    """Every clause on one line, so that they read back as these clauses."""
    texts = [_clause(clause) for clause in clauses]
    for i, clause in enumerate(clauses):
        if isinstance(clause, gq.Filter):
            following = texts[i + 1] if i + 1 < len(texts) else None
            if _reads_otherwise(clause.condition, texts[i], following, first=i == 0):
                texts[i] = f"({texts[i]})"
    return texts


def condition_texts(conditions: Sequence[gq.Expression]) -> list[str]:
    """Conditions without separators between them, so that they read back as these conditions."""
    texts = [print_expression(condition) for condition in conditions]
    for i, text in enumerate(texts):
        following = texts[i + 1] if i + 1 < len(texts) else None
        if _joins(text, following, first=i == 0):
            texts[i] = f"({text})"
    return texts


def _joins(text: str, following: str | None, *, first: bool) -> bool:
    """Whether a condition would be read as one with its neighbour."""
    opens = following is not None and following.startswith("(")
    if opens and _ENDS_WITH_WORD.search(text):
        return True
    return not first and (text.startswith("-") or _starts_with_operator(text))


def _starts_with_operator(text: str) -> bool:
    found = _FIRST_WORD.match(text)
    return found is not None and found.group() in OPERATOR_WORDS


def _reads_otherwise(
    condition: gq.Expression, text: str, following: str | None, *, first: bool
) -> bool:
    """Whether a filter would be read as another clause, or as one with its neighbour."""
    match condition:
        case gq.Variable():
            alone = following is None or following.startswith(("$", "not {", "optional {"))
            return not alone
        case gq.Comparison(gq.Variable(), operator, gq.Variable()) if operator.value.isidentifier():
            return True
        case gq.Logical(_, (gq.Variable(), gq.Variable())):
            return True
        case gq.Arithmetic(gq.Variable(), gq.ArithmeticOperator.MULTIPLY, gq.Variable()):
            return True
    return _joins(text, following, first=first)


def _clause(clause: gq.Clause) -> str:
    match clause:
        case gq.Negation(clauses):
            return f"not {print_clauses(clauses)}"
        case gq.Optional(clauses):
            return f"optional {print_clauses(clauses)}"
        case gq.Binding(variable, node_type, matches):
            text = f"${variable.name}: {node_type}"
            if matches:
                inner = ", ".join(f"{m.property}: {print_expression(m.value)}" for m in matches)
                text += f" {{ {inner} }}"
            return text
        case gq.Traversal():
            return _traversal(clause)
        case gq.Filter(condition):
            return print_expression(condition)
        case _:
            assert_never(clause)


def _traversal(traversal: gq.Traversal) -> str:
    name = "" if traversal.variable is None else f" ${traversal.variable.name}:"
    shortest = " shortest" if traversal.shortest else ""
    bounds = ""
    if traversal.hops is not None:
        low, high = traversal.hops.low, traversal.hops.high
        bounds = f"{{{low},{'' if high is None else high}}}"
    by = "" if traversal.by is None else f" by {traversal.by}"
    edges = print_selection(traversal.edges)
    return f"${traversal.left.name}{name}{shortest} {edges}{bounds} ${traversal.right.name}{by}"


def print_selection(edges: gq.EdgeSelection) -> str:
    names = " | ".join(encode_string(e.text) if e.quoted else e.text for e in edges.names) or "*"
    if edges.undirected:
        return f"<{names}>"
    return f"({names})" if len(edges.names) > 1 else names
