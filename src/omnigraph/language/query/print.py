"""Query trees back to text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar, assert_never

from omnigraph.language.layout import Layout
from omnigraph.language.lexer import Tokens, encode_string
from omnigraph.language.query.ast import (
    Aggregate,
    AliasReference,
    Assignment,
    Binding,
    Bm25Call,
    BoolLiteral,
    Clause,
    DateLiteral,
    DateTimeLiteral,
    Delete,
    Expression,
    Filter,
    FloatLiteral,
    Insert,
    IntegerLiteral,
    ListLiteral,
    MutationBody,
    NearestCall,
    Negation,
    Note,
    Now,
    OrderKey,
    Predicate,
    Projection,
    PropertyAccess,
    Query,
    QueryFile,
    ReadBody,
    RrfCall,
    Statement,
    StringLiteral,
    TextCall,
    TextClause,
    Traversal,
    Update,
    Variable,
)
from omnigraph.language.span import Span


def print_queries(file: QueryFile, tokens: Tokens | None = None) -> str:
    """The text of a query file. With the tokens it was read from, comments and blank lines stay."""
    layout = Layout(tokens)
    for query in file.queries:
        _print_query(layout, query)
    return layout.finish()


def _print_query(layout: Layout, query: Query) -> None:
    _print_head(layout, query)
    if isinstance(query.body, MutationBody):
        for statement in query.body.statements:
            _print_statement(layout, statement)
    else:
        _print_read(layout, query.body)
    layout.close("}", query.span.end)


def _print_head(layout: Layout, query: Query) -> None:
    """Up to the opening brace: on one line, or notes below the name, or parameters too."""
    parameters = [f"${p.name}: {p.type.type.display}" for p in query.parameters]
    notes = [_note(n) for n in query.notes]
    head = f"query {query.name}({', '.join(parameters)})"
    head_end = query.parameters[-1].span.end if parameters else query.name.span.end
    one_line = " ".join([head, *notes, "{"])
    if layout.fits(one_line):
        last = query.notes[-1].span.end if notes else head_end
        layout.open(one_line, query.span, last, apart=True)
        return
    if layout.fits(f"{head} {{") or not parameters:
        layout.open(head, query.span, head_end, apart=True)
    else:
        layout.open(f"query {query.name}(", query.span, query.name.span.end, apart=True)
        for parameter, text in zip(query.parameters[:-1], parameters, strict=False):
            layout.element(f"{text},", parameter.span)
        layout.element(parameters[-1], query.parameters[-1].span)
        if not notes:
            layout.reopen(") {", head_end)
            return
        layout.reopen(")", head_end)
    for note, text in zip(query.notes, notes, strict=True):
        layout.element(text, note.span)
    layout.reopen("{", query.notes[-1].span.end if notes else head_end)


def _note(note: Note) -> str:
    return f"@{note.name}({note.spelling or encode_string(note.text)})"


# -- reads --------------------------------------------------------------------------------------


def _print_read(layout: Layout, body: ReadBody) -> None:
    span = body.match_span
    layout.open("match {", span, span.start + len("match"))
    for clause in body.clauses:
        _print_clause(layout, clause)
    layout.close("}", span.end)
    _print_block(layout, "return", body.return_span, body.projections, _projection)
    if body.order:
        _print_block(layout, "order", body.order_span, body.order, _order_key)
    if body.limit is not None:
        layout.element(f"limit {body.limit}", body.limit_span)


class _Placed(Protocol):
    @property
    def span(self) -> Span: ...


_P = TypeVar("_P", bound=_Placed)


def _print_block(
    layout: Layout,
    head: str,
    span: Span,
    elements: Sequence[_P],
    show: Callable[[_P], str],
    *,
    tail: str = "",
    head_end: int | None = None,
) -> None:
    """`head { a, b }` on one line if it fits, else an element per line."""
    one_line = f"{head} {{ {', '.join(show(e) for e in elements)} }}{tail}"
    if layout.fits(one_line):
        layout.element(one_line, span)
        return
    layout.open(f"{head} {{", span, span.start + len(head) if head_end is None else head_end)
    for element in elements[:-1]:
        layout.element(f"{show(element)},", element.span)
    layout.element(show(elements[-1]), elements[-1].span)
    layout.close(f"}}{tail}", span.end)


def _print_clause(layout: Layout, clause: Clause) -> None:
    if not isinstance(clause, Negation):
        layout.element(_clause(clause), clause.span)
        return
    only = clause.clauses[0] if len(clause.clauses) == 1 else None
    if only is not None and not isinstance(only, Negation):
        one_line = f"not {{ {_clause(only)} }}"
        if layout.fits(one_line):
            layout.element(one_line, clause.span)
            return
    layout.open("not {", clause.span, clause.span.start + len("not"))
    for inner in clause.clauses:
        _print_clause(layout, inner)
    layout.close("}", clause.span.end)


def _clause(clause: Binding | Traversal | Filter | TextClause) -> str:
    match clause:
        case Binding(variable, node_type, matches):
            text = f"${variable.name}: {node_type}"
            if matches:
                inner = ", ".join(f"{m.property}: {print_expression(m.value)}" for m in matches)
                text += f" {{ {inner} }}"
            return text
        case Traversal(left, edge, right, hops):
            bounds = ""
            if hops is not None:
                bounds = f"{{{hops.low},{'' if hops.high is None else hops.high}}}"
            return f"${left.name} {edge}{bounds} ${right.name}"
        case Filter(left, operator, right):
            return f"{print_expression(left)} {operator.value} {print_expression(right)}"
        case TextClause(call):
            return print_expression(call)
        case _:
            assert_never(clause)


def _projection(projection: Projection) -> str:
    text = print_expression(projection.expression)
    return text if projection.alias is None else f"{text} as {projection.alias}"


def _order_key(key: OrderKey) -> str:
    text = print_expression(key.expression)
    if key.descending is None:
        return text
    return f"{text} desc" if key.descending else f"{text} asc"


# -- mutations ----------------------------------------------------------------------------------


def _print_statement(layout: Layout, statement: Statement) -> None:
    target = statement.type
    match statement:
        case Insert(_, assignments):
            _print_block(
                layout,
                f"insert {target}",
                statement.span,
                assignments,
                _assignment,
                head_end=target.span.end,
            )
        case Update(_, assignments, predicate):
            _print_block(
                layout,
                f"update {target} set",
                statement.span,
                assignments,
                _assignment,
                tail=f" where {_predicate(predicate)}",
                head_end=target.span.end,
            )
        case Delete(_, predicate):
            layout.element(f"delete {target} where {_predicate(predicate)}", statement.span)


def _assignment(assignment: Assignment) -> str:
    return f"{assignment.property}: {print_expression(assignment.value)}"


def _predicate(predicate: Predicate) -> str:
    operator = predicate.operator.value
    return f"{predicate.property} {operator} {print_expression(predicate.value)}"


# -- expressions --------------------------------------------------------------------------------


def print_expression(expression: Expression) -> str:
    """An expression or literal as text."""
    match expression:
        case StringLiteral(value, spelling):
            return spelling or encode_string(value)
        case IntegerLiteral(value):
            return str(value)
        case FloatLiteral(text):
            return text
        case BoolLiteral(value):
            return "true" if value else "false"
        case DateLiteral(text):
            return f"date({encode_string(text)})"
        case DateTimeLiteral(text):
            return f"datetime({encode_string(text)})"
        case ListLiteral(items):
            return f"[{', '.join(print_expression(item) for item in items)}]"
        case Variable(name):
            return f"${name}"
        case Now():
            return "now()"
        case PropertyAccess(variable, name):
            return f"${variable.name}.{name}"
        case AliasReference(name):
            return name.text
        case Aggregate(function, argument):
            return _call(function.value, argument)
        case TextCall(function, field, query, edits):
            return _call(function.value, field, query, edits)
        case NearestCall(field, query):
            return _call("nearest", field, query)
        case Bm25Call(field, query):
            return _call("bm25", field, query)
        case RrfCall(first, second, k):
            return _call("rrf", first, second, k)
        case _:
            assert_never(expression)


def _call(word: str, *arguments: Expression | None) -> str:
    shown = ", ".join(print_expression(a) for a in arguments if a is not None)
    return f"{word}({shown})"
