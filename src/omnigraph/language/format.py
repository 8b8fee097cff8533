"""Syntax trees to text in standard layout, with the comments and blank lines of the original."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar, assert_never

from omnigraph.language.query import ast as gq
from omnigraph.language.query.parse import parse_query_tokens
from omnigraph.language.schema import ast as pg
from omnigraph.language.schema.parse import parse_schema_tokens
from omnigraph.language.syntax import Source, Span, TypeRef
from omnigraph.language.tokens import Comment, Tokens, encode_string, tokenize

INDENT = "    "
LINE_WIDTH = 92
"""Widest one-line form of a block; longer ones are written one element per line."""

# What may stand between an element and a comment that belongs behind it.
_JOINT = re.compile(r"[ \t,{(]*\Z")


class Layout:
    """Collects the lines of one file."""

    def __init__(self, tokens: Tokens | None = None) -> None:
        self._text = tokens.source.text if tokens else None
        self._comments: deque[Comment] = deque(tokens.comments if tokens else ())
        self._lines: list[str] = []
        self._depth = 0
        self._at_block_start = True

    def element(
        self, text: str, span: Span, *, apart: bool = False, last: int | None = None
    ) -> None:
        """One element on its own line. `apart` asks for a blank line before it and its comments.

        Comments inside the element are moved before it. `last` is where its text ends in the
        source, when that is before the end of `span` (the head of a block).
        """
        end = span.end if last is None else last
        apart = self._leading(end, apart)
        self._write(text, self._blank_before(span.start, apart))
        self._trailing(end)

    def open(self, head: str, span: Span, last: int, *, apart: bool = False) -> None:
        """The first line of a block whose head ends at `last` in the source."""
        self.element(head, span, apart=apart, last=last)
        self._depth += 1
        self._at_block_start = True

    def close(self, text: str, end: int) -> None:
        """The last line of a block that ends at `end` in the source, closing brace included."""
        self._leading(end, apart=False)
        self._depth -= 1
        self._write(text, blank=False)
        self._trailing(end)

    def reopen(self, text: str, end: int) -> None:
        """A line that ends one block and begins the next, such as the brace under long headers."""
        self.close(text, end)
        self._depth += 1
        self._at_block_start = True

    def finish(self) -> str:
        """The whole text; comments behind the last element come last."""
        if self._text is not None:
            self._leading(len(self._text) + 1, apart=False)
        return "".join(f"{line}\n" for line in self._lines)

    def fits(self, text: str) -> bool:
        """Whether a one-line form is short enough at the present depth."""
        return len(INDENT) * self._depth + len(text) <= LINE_WIDTH and "\n" not in text

    def _leading(self, end: int, apart: bool) -> bool:
        while self._comments and self._comments[0].span.start < end:
            comment = self._comments.popleft()
            self._write(comment.text, self._blank_before(comment.span.start, apart))
            apart = False
        return apart

    def _trailing(self, end: int) -> None:
        if not self._comments or self._text is None:
            return
        comment = self._comments[0]
        if "\n" not in comment.text and _JOINT.match(self._text[end : comment.span.start]):
            self._comments.popleft()
            self._lines[-1] += f"  {comment.text}"

    def _blank_before(self, start: int, apart: bool) -> bool:
        if self._at_block_start or apart or self._text is None:
            return apart and bool(self._lines) and not self._at_block_start
        before = self._text[:start].rstrip(" \t\r\n")
        return self._text.count("\n", len(before), start) >= 2

    def _write(self, text: str, blank: bool) -> None:
        if blank:
            self._lines.append("")
        self._lines.append(INDENT * self._depth + text.rstrip())
        self._at_block_start = False


# -- schemas -----------------------------------------------------------------------------------


def print_schema(schema: pg.Schema, tokens: Tokens | None = None) -> str:
    """The text of a schema. With the tokens it was read from, comments and blank lines stay."""
    layout = Layout(tokens)
    after_block = False
    for declaration in schema.declarations:
        is_block = bool(declaration.members) or not isinstance(declaration, pg.Edge)
        # Blocks stand apart; edges without a body may stay together as one list.
        _print_declaration(layout, declaration, apart=is_block or after_block)
        after_block = is_block
    return layout.finish()


def _print_declaration(layout: Layout, declaration: pg.Declaration, *, apart: bool) -> None:
    head, last = _head(declaration)
    span = declaration.span
    if not declaration.members:
        empty = "" if isinstance(declaration, pg.Edge) else " {}"
        layout.element(head + empty, span, apart=apart)
        return
    layout.open(f"{head} {{", span, last, apart=apart)
    for member in declaration.members:
        layout.element(_member(member), member.span)
    layout.close("}", span.end)


def _head(declaration: pg.Declaration) -> tuple[str, int]:
    """The text before the body, and where it ends in the source."""
    name = declaration.name
    match declaration:
        case pg.Interface():
            return f"interface {name}", name.span.end
        case pg.Node(annotations=annotations, implements=implements):
            text = f"node {name}{_annotations(annotations)}"
            last = annotations[-1].span.end if annotations else name.span.end
            if implements:
                text += f" implements {', '.join(i.text for i in implements)}"
                last = implements[-1].span.end
            return text, last
        case pg.Edge(source=source, target=target, annotations=annotations):
            text = f"edge {name}: {source} -> {target}"
            last = target.span.end
            if declaration.cardinality is not None:
                text += f" {_cardinality(declaration.cardinality)}"
                last = declaration.cardinality.span.end
            if annotations:
                last = annotations[-1].span.end
            return text + _annotations(annotations), last


def _member(member: pg.Member) -> str:
    if isinstance(member, pg.Property):
        return f"{member.name}: {print_type(member.type)}{_annotations(member.annotations)}"
    return _constraint(member)


def print_type(ref: TypeRef) -> str:
    """A type as written; enum values keep the order of the source."""
    if ref.enum_order is None:
        return ref.type.display
    core = f"enum({', '.join(ref.enum_order)})"
    return f"{core}?" if ref.type.nullable else core


def _annotations(annotations: Iterable[pg.Annotation]) -> str:
    return "".join(f" {_annotation(a)}" for a in annotations)


def _annotation(annotation: pg.Annotation) -> str:
    if annotation.value is None:
        return f"@{annotation.name}"
    arguments = "".join(f", {a.name}={_value(a.value)}" for a in annotation.arguments)
    return f"@{annotation.name}({_value(annotation.value)}{arguments})"


def _value(value: pg.AnnotationValue) -> str:
    return encode_string(value.text) if value.spelling is None else value.spelling


def _cardinality(cardinality: pg.Cardinality) -> str:
    high = "" if cardinality.high is None else cardinality.high
    return f"@card({cardinality.low}..{high})"


def _constraint(constraint: pg.Constraint) -> str:
    arguments = [c.text for c in constraint.columns]
    if constraint.bounds is not None:
        arguments.append(_bounds(constraint.bounds))
    if constraint.pattern is not None:
        pattern = constraint.pattern
        arguments.append(pattern.spelling or encode_string(pattern.text))
    return f"@{constraint.kind.value}({', '.join(arguments)})"


def _bounds(bounds: pg.Bounds) -> str:
    return f"{bounds.low or ''}..{bounds.high or ''}"


# -- queries -----------------------------------------------------------------------------------


def print_queries(file: gq.QueryFile, tokens: Tokens | None = None) -> str:
    """The text of a query file. With the tokens it was read from, comments and blank lines stay."""
    layout = Layout(tokens)
    for query in file.queries:
        _print_query(layout, query)
    return layout.finish()


def _print_query(layout: Layout, query: gq.Query) -> None:
    _print_head(layout, query)
    if isinstance(query.body, gq.MutationBody):
        for statement in query.body.statements:
            _print_statement(layout, statement)
    else:
        _print_read(layout, query.body)
    layout.close("}", query.span.end)


def _print_head(layout: Layout, query: gq.Query) -> None:
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


def _note(note: gq.Note) -> str:
    return f"@{note.name}({note.spelling or encode_string(note.text)})"


# -- reads --------------------------------------------------------------------------------------


def _print_read(layout: Layout, body: gq.ReadBody) -> None:
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


def _print_clause(layout: Layout, clause: gq.Clause) -> None:
    if not isinstance(clause, gq.Negation):
        layout.element(_clause(clause), clause.span)
        return
    only = clause.clauses[0] if len(clause.clauses) == 1 else None
    if only is not None and not isinstance(only, gq.Negation):
        one_line = f"not {{ {_clause(only)} }}"
        if layout.fits(one_line):
            layout.element(one_line, clause.span)
            return
    layout.open("not {", clause.span, clause.span.start + len("not"))
    for inner in clause.clauses:
        _print_clause(layout, inner)
    layout.close("}", clause.span.end)


def _clause(clause: gq.Binding | gq.Traversal | gq.Filter | gq.TextClause) -> str:
    match clause:
        case gq.Binding(variable, node_type, matches):
            text = f"${variable.name}: {node_type}"
            if matches:
                inner = ", ".join(f"{m.property}: {print_expression(m.value)}" for m in matches)
                text += f" {{ {inner} }}"
            return text
        case gq.Traversal(left, edge, right, hops):
            bounds = ""
            if hops is not None:
                bounds = f"{{{hops.low},{'' if hops.high is None else hops.high}}}"
            return f"${left.name} {edge}{bounds} ${right.name}"
        case gq.Filter(left, operator, right):
            return f"{print_expression(left)} {operator.value} {print_expression(right)}"
        case gq.TextClause(call):
            return print_expression(call)
        case _:
            assert_never(clause)


def _projection(projection: gq.Projection) -> str:
    text = print_expression(projection.expression)
    return text if projection.alias is None else f"{text} as {projection.alias}"


def _order_key(key: gq.OrderKey) -> str:
    text = print_expression(key.expression)
    if key.descending is None:
        return text
    return f"{text} desc" if key.descending else f"{text} asc"


# -- mutations ----------------------------------------------------------------------------------


def _print_statement(layout: Layout, statement: gq.Statement) -> None:
    target = statement.type
    match statement:
        case gq.Insert(_, assignments):
            _print_block(
                layout,
                f"insert {target}",
                statement.span,
                assignments,
                _assignment,
                head_end=target.span.end,
            )
        case gq.Update(_, assignments, predicate):
            _print_block(
                layout,
                f"update {target} set",
                statement.span,
                assignments,
                _assignment,
                tail=f" where {_predicate(predicate)}",
                head_end=target.span.end,
            )
        case gq.Delete(_, predicate):
            layout.element(f"delete {target} where {_predicate(predicate)}", statement.span)


def _assignment(assignment: gq.Assignment) -> str:
    return f"{assignment.property}: {print_expression(assignment.value)}"


def _predicate(predicate: gq.Predicate) -> str:
    operator = predicate.operator.value
    return f"{predicate.property} {operator} {print_expression(predicate.value)}"


# -- expressions --------------------------------------------------------------------------------


def print_expression(expression: gq.Expression) -> str:
    """An expression or literal as text."""
    match expression:
        case gq.StringLiteral(value, spelling):
            return spelling or encode_string(value)
        case gq.IntegerLiteral(value):
            return str(value)
        case gq.FloatLiteral(text):
            return text
        case gq.BoolLiteral(value):
            return "true" if value else "false"
        case gq.DateLiteral(text):
            return f"date({encode_string(text)})"
        case gq.DateTimeLiteral(text):
            return f"datetime({encode_string(text)})"
        case gq.ListLiteral(items):
            return f"[{', '.join(print_expression(item) for item in items)}]"
        case gq.Variable(name):
            return f"${name}"
        case gq.Now():
            return "now()"
        case gq.PropertyAccess(variable, name):
            return f"${variable.name}.{name}"
        case gq.AliasReference(name):
            return name.text
        case gq.Aggregate(function, argument):
            return _call(function.value, argument)
        case gq.TextCall(function, field, query, edits):
            return _call(function.value, field, query, edits)
        case gq.NearestCall(field, query):
            return _call("nearest", field, query)
        case gq.Bm25Call(field, query):
            return _call("bm25", field, query)
        case gq.RrfCall(first, second, k):
            return _call("rrf", first, second, k)
        case _:
            assert_never(expression)


def _call(word: str, *arguments: gq.Expression | None) -> str:
    shown = ", ".join(print_expression(a) for a in arguments if a is not None)
    return f"{word}({shown})"


# -- files -------------------------------------------------------------------------------------


def format_schema(source: Source) -> str:
    """A schema file in house style. Raises `ParseError` for text that is not a schema."""
    tokens = tokenize(source)
    return print_schema(parse_schema_tokens(tokens), tokens)


def format_queries(source: Source) -> str:
    """A query file in house style. Raises `ParseError` for text that is not a query file."""
    tokens = tokenize(source)
    return print_queries(parse_query_tokens(tokens), tokens)
