"""Query files to text in standard layout."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Protocol, TypeVar, assert_never

from omnigraph.language.layout import Layout
from omnigraph.language.query import ast as gq
from omnigraph.language.query.file_statements import (
    BranchAction,
    BranchStatement,
    Explain,
    FileStatement,
    Reset,
    Setting,
    Show,
)
from omnigraph.language.query.print_expression import (
    clause_texts,
    condition_texts,
    print_expression,
)
from omnigraph.language.syntax import Span
from omnigraph.language.tokens import Tokens, encode_string

_WORD: Final = re.compile(r"[a-z_][A-Za-z0-9_]*", re.ASCII)


def print_queries(file: gq.QueryFile, tokens: Tokens | None = None) -> str:
    """The text of a query file. With the tokens it was read from, comments and blank lines stay."""
    layout = Layout(tokens)
    for setting in file.settings:
        layout.element(_setting(setting), setting.span)
    if file.statement is not None:
        _print_statement_file(layout, file.statement)
    for query in file.queries:
        if query.anonymous:
            _print_body(layout, query.body)
        else:
            _print_query(layout, query)
    return layout.finish()


def _setting(setting: Setting | Reset) -> str:
    if isinstance(setting, Reset):
        return f"reset {setting.name or 'all'};"
    value = setting.value
    shown = str(value) if isinstance(value, int) else _word(value)
    return f"set {setting.name} = {shown};"


def _word(text: str) -> str:
    return text if _WORD.fullmatch(text) else encode_string(text)


def _print_statement_file(layout: Layout, statement: FileStatement) -> None:
    match statement:
        case Show(name):
            layout.element(f"show {name or 'all'};", statement.span)
        case Explain(query):
            _print_query(layout, query, before="explain ")
        case BranchStatement(action, name, other):
            text = f"branch {action.value}"
            if name is not None:
                text += f" {_word(name)}"
            if other is not None:
                text += f" {'into' if action is BranchAction.MERGE else 'from'} {_word(other)}"
            layout.element(text, statement.span)
        case _:
            assert_never(statement)


def _print_query(layout: Layout, query: gq.Query, before: str = "") -> None:
    _print_head(layout, query, before)
    _print_body(layout, query.body)
    layout.close("}", query.span.end)


def _print_body(layout: Layout, body: gq.ReadBody | gq.MutationBody) -> None:
    if isinstance(body, gq.ReadBody):
        _print_match(layout, body.clauses, body.match_span)
        for result in (body.result, *body.further):
            _print_result(layout, result)
        return
    for statement in body.statements:
        _print_statement(layout, statement)


def _print_head(layout: Layout, query: gq.Query, before: str) -> None:
    """Up to the opening brace: on one line, or notes below the name, or parameters too."""
    parameters = [_parameter(p) for p in query.parameters]
    notes = [_note(n) for n in query.notes]
    head = f"{before}query {query.name}({', '.join(parameters)})"
    head_end = query.parameters[-1].span.end if parameters else query.name.span.end
    one_line = " ".join([head, *notes, "{"])
    if layout.fits(one_line):
        last = query.notes[-1].span.end if notes else head_end
        layout.open(one_line, query.span, last, apart=True)
        return
    if layout.fits(f"{head} {{") or not parameters:
        layout.open(head, query.span, head_end, apart=True)
    else:
        opening = f"{before}query {query.name}("
        layout.open(opening, query.span, query.name.span.end, apart=True)
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


def _parameter(parameter: gq.Parameter) -> str:
    text = f"${parameter.name}: {parameter.type.type.display}"
    default = parameter.default
    return text if default is None else f"{text} = {print_expression(default)}"


def _note(note: gq.Note) -> str:
    return f"@{note.name}({note.spelling or encode_string(note.text)})"


# -- reads --------------------------------------------------------------------------------------


def _print_match(layout: Layout, clauses: Sequence[gq.Clause], span: Span) -> None:
    layout.open("match {", span, span.start + len("match"))
    _print_clauses(layout, clauses)
    layout.close("}", span.end)


def _print_result(layout: Layout, result: gq.Result) -> None:
    head = "return"
    if result.name is not None:
        head += f" {result.name}"
    if result.distinct:
        head += " distinct"
    span = result.return_span
    named_end = span.start + len("return") if result.name is None else result.name.span.end
    shown = [_projection(p) for p in result.projections]
    _print_block(layout, head, span, result.projections, shown, head_end=named_end)
    if result.having:
        shown = condition_texts(result.having)
        _print_block(layout, "having", result.having_span, result.having, shown, separator=" ")
    if result.order:
        shown = [_order_key(key) for key in result.order]
        _print_block(layout, "order", result.order_span, result.order, shown)
    if result.offset is not None:
        layout.element(f"offset {_row_count(result.offset)}", result.offset_span)
    if result.limit is not None:
        layout.element(f"limit {_row_count(result.limit)}", result.limit_span)


def _row_count(count: int | gq.Variable) -> str:
    return f"${count.name}" if isinstance(count, gq.Variable) else str(count)


class _Placed(Protocol):
    @property
    def span(self) -> Span: ...


_P = TypeVar("_P", bound=_Placed)


def _print_block(
    layout: Layout,
    head: str,
    span: Span,
    elements: Sequence[_P],
    shown: Sequence[str],
    *,
    tail: str = "",
    head_end: int | None = None,
    separator: str = ",",
) -> None:
    """`head { a, b }` on one line if it fits, else an element per line."""
    one_line = f"{head} {{ {f'{separator} '.join(shown)} }}{tail}"
    if layout.fits(one_line):
        layout.element(one_line, span)
        return
    layout.open(f"{head} {{", span, span.start + len(head) if head_end is None else head_end)
    for element, text in zip(elements[:-1], shown, strict=False):
        layout.element(f"{text}{separator}", element.span)
    layout.element(shown[-1], elements[-1].span)
    layout.close(f"}}{tail}", span.end)


def _print_clauses(layout: Layout, clauses: Sequence[gq.Clause]) -> None:
    for clause, text in zip(clauses, clause_texts(clauses), strict=True):
        _print_clause(layout, clause, text)


def _print_clause(layout: Layout, clause: gq.Clause, text: str) -> None:
    """A block of several clauses, or too long for one line, gets a line per clause."""
    match clause:
        case gq.Negation(inner):
            head = "not"
        case gq.Optional(inner):
            head = "optional"
        case gq.Filter(gq.Exists(inner)):
            head = "exists"
        case _:
            layout.element(text, clause.span)
            return
    if len(inner) == 1 and not _is_block(inner[0]) and layout.fits(text):
        layout.element(text, clause.span)
        return
    layout.open(f"{head} {{", clause.span, clause.span.start + len(head))
    _print_clauses(layout, inner)
    layout.close("}", clause.span.end)


def _is_block(clause: gq.Clause) -> bool:
    return isinstance(clause, gq.Negation | gq.Optional)


def _projection(projection: gq.Projection) -> str:
    text = print_expression(projection.expression)
    return text if projection.alias is None else f"{text} as {projection.alias}"


def _order_key(key: gq.OrderKey) -> str:
    text = print_expression(key.expression)
    if key.descending is not None:
        text += " desc" if key.descending else " asc"
    if key.nulls_first is not None:
        text += " nulls first" if key.nulls_first else " nulls last"
    return text


# -- mutations ----------------------------------------------------------------------------------


def _print_statement(layout: Layout, statement: gq.Statement) -> None:
    match statement:
        case gq.Insert() | gq.Upsert():
            _print_new(layout, statement)
        case gq.Update(target, assignments, condition, back):
            tail = f" where {print_expression(condition)}{_returning(back)}"
            head = f"update {target} set"
            _print_assignments(layout, head, statement.span, assignments, tail, target.span.end)
        case gq.Delete(target, condition, back):
            text = f"delete {target} where {print_expression(condition)}{_returning(back)}"
            layout.element(text, statement.span)
        case gq.MatchStatement(clauses, actions, span):
            _print_match(layout, clauses, span)
            if len(actions) == 1:
                _print_action(layout, actions[0])
                return
            layout.open("do {", Span(span.end, statement.span.end), span.end)
            for action in actions:
                _print_action(layout, action)
            layout.close("}", statement.span.end)
        case _:
            assert_never(statement)


def _print_action(layout: Layout, action: gq.Action) -> None:
    match action:
        case gq.Insert() | gq.Upsert():
            _print_new(layout, action)
        case gq.UpdateMatched(variable, assignments, back):
            head, end = f"update ${variable.name} set", variable.span.end
            _print_assignments(layout, head, action.span, assignments, _returning(back), end)
        case gq.DeleteMatched(variables, back):
            names = ", ".join(f"${variable.name}" for variable in variables)
            layout.element(f"delete {names}{_returning(back)}", action.span)
        case _:
            assert_never(action)


def _print_new(layout: Layout, new: gq.Insert | gq.Upsert) -> None:
    word = "insert" if isinstance(new, gq.Insert) else "upsert"
    name = "" if new.variable is None else f"${new.variable.name}: "
    head, tail = f"{word} {name}{new.type}", _returning(new.returning)
    _print_assignments(layout, head, new.span, new.assignments, tail, new.type.span.end)


def _print_assignments(
    layout: Layout,
    head: str,
    span: Span,
    assignments: Sequence[gq.Assignment],
    tail: str,
    head_end: int,
) -> None:
    shown = [f"{a.property}: {print_expression(a.value)}" for a in assignments]
    _print_block(layout, head, span, assignments, shown, tail=tail, head_end=head_end)


def _returning(back: gq.Returning | None) -> str:
    if back is None:
        return ""
    distinct = " distinct" if back.distinct else ""
    return f" return{distinct} {{ {', '.join(_projection(p) for p in back.projections)} }}"
