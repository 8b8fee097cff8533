"""Query text to syntax tree.

Where the grammar tries alternatives in order, the parser looks ahead a few tokens instead: a clause
that starts with a variable is a binding if a `:` follows, a traversal if a word and (behind optional
bounds) another variable follow, else a filter.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NoReturn, TypeVar

from omnigraph.language.query import ast
from omnigraph.language.syntax import NOWHERE, Source, Span, TypeRef
from omnigraph.language.tokens import (
    FLOAT,
    INTEGER,
    STRING,
    VARIABLE,
    WORD,
    TokenReader,
    Tokens,
    tokenize,
)
from omnigraph.language.types import SCALAR_NAMES, PropType, Scalar
from omnigraph.limits import MAX_VECTOR_DIMENSION

_COMPARISONS = {o.value: o for o in ast.Operator if not o.value.isidentifier()}
_FILTER_OPERATORS = {o.value: o for o in ast.Operator}
_AGGREGATES = {f.value: f for f in ast.AggregateFunction}
_TEXT_FUNCTIONS = {f.value: f for f in ast.TextFunction}
_STATEMENTS = ("insert", "update", "delete")
_NOTES = ("description", "instruction")
_CALLS = (*_AGGREGATES, *_TEXT_FUNCTIONS, "nearest", "bm25", "rrf", "now", "date", "datetime")
_I64_MAX = 2**63 - 1
_U64_MAX = 2**64 - 1

_T = TypeVar("_T")


def parse_queries(source: Source) -> ast.QueryFile:
    """Read a query file. Raises `ParseError` with a position."""
    return parse_query_tokens(tokenize(source))


def parse_query_tokens(tokens: Tokens) -> ast.QueryFile:
    """As `parse_queries`, for a caller that also needs the comments."""
    parser = _QueryParser(tokens, syntax_code="Q001", escape_code="Q002")
    queries: list[ast.Query] = []
    while not parser.at_end:
        queries.append(parser.query())
    seen: set[str] = set()
    for query in queries:
        if query.name.text in seen:
            parser.defer("Q003", f"duplicate query '{query.name}'", query.name.span)
        seen.add(query.name.text)
    parser.raise_deferred()
    return ast.QueryFile(tuple(queries))


def parse_condition(source: Source) -> ast.Predicate:
    """Read what may follow `where` in a mutation. Raises `ParseError` with a position."""
    parser = _QueryParser(tokenize(source), syntax_code="Q001", escape_code="Q002")
    parser.end_name = "the end of the condition"
    found = parser.condition()
    if not parser.at_end:
        parser.fail("expected the end of the condition")
    parser.raise_deferred()
    return found


class _QueryParser(TokenReader):
    # -- header -----------------------------------------------------------------------------

    def query(self) -> ast.Query:
        first = self.at
        self.expect_word("query", "at the start of a query")
        name = self.expect_ident("a query name")
        self.expect_symbol("(", "after the query name")
        parameters: list[ast.Parameter] = []
        if not self.is_symbol(")"):
            parameters = self.comma_separated(self.parameter)
        self.expect_symbol(")", "after the parameters")
        seen: set[str] = set()
        for parameter in parameters:
            if parameter.name in seen:
                message = f"duplicate parameter '${parameter.name}'"
                self.defer("Q004", message, parameter.variable.span)
            seen.add(parameter.name)
        notes = self.notes()
        self.expect_symbol("{", "to open the query body")
        body = self.body()
        self.expect_symbol("}", "to close the query body")
        return ast.Query(name, tuple(parameters), notes, body, self.span_since(first))

    def parameter(self) -> ast.Parameter:
        first = self.at
        variable = self.variable("a parameter such as `$name`")
        self.expect_symbol(":", "after the parameter name")
        return ast.Parameter(variable, self.parameter_type(), self.span_since(first))

    def parameter_type(self) -> TypeRef:
        first = self.at
        dimension = None
        is_list = self.accept_symbol("[")
        if not is_list and self.accept_word("Vector"):
            scalar = Scalar.VECTOR
            self.expect_symbol("(", "after `Vector`")
            dimension = self.expect_integer("the number of dimensions")
            self.expect_symbol(")", "after the number of dimensions")
            # The checker refuses a dimension no vector can have; any number is fine until then.
            dimension = min(dimension, MAX_VECTOR_DIMENSION + 1)
        else:
            found = SCALAR_NAMES.get(self.text) if self.kind == WORD else None
            if found is None:
                self.fail("expected a parameter type", known=(*SCALAR_NAMES, "Vector"))
            scalar = found
            self.at += 1
        if is_list:
            self.expect_symbol("]", "after the element type")
        nullable = self.accept_symbol("?")
        prop_type = PropType(scalar, nullable, is_list, dimension)
        return TypeRef(prop_type, span=self.span_since(first))

    def notes(self) -> tuple[ast.Note, ...]:
        notes: list[ast.Note] = []
        while self.is_symbol("@"):
            first = self.at
            self.at += 1
            if self.kind != WORD or self.text not in _NOTES:
                self.fail("expected `@description(…)` or `@instruction(…)`", known=_NOTES)
            name = self.expect_ident("an annotation name")
            self.expect_symbol("(", "after the annotation name")
            spelling = self.text
            text = self.expect_string("a quoted text")
            self.expect_symbol(")", "after the text")
            note = ast.Note(name, text, spelling, self.span_since(first))
            if any(n.name == name for n in notes):
                self.defer("Q006", f"duplicate @{name}", note.span)
            notes.append(note)
        return tuple(notes)

    def body(self) -> ast.ReadBody | ast.MutationBody:
        if self.is_word("match"):
            return self.read_body()
        statements: list[ast.Statement] = []
        while not statements or not self.is_symbol("}"):
            statements.append(self.statement())
        return ast.MutationBody(tuple(statements))

    # -- reads ------------------------------------------------------------------------------

    def read_body(self) -> ast.ReadBody:
        first = self.at
        self.at += 1
        clauses = self.clause_block("`match`")
        match_span = self.span_since(first)
        first = self.at
        self.expect_word("return", "after the `match` block")
        self.expect_symbol("{", "after `return`")
        projections = [self.projection()]
        while not self.accept_symbol("}"):
            projections.append(self.projection())
        return_span = self.span_since(first)
        self.check_aliases(projections)
        order, order_span = self.order()
        limit, limit_span = self.limit()
        return ast.ReadBody(
            clauses,
            tuple(projections),
            order,
            limit,
            match_span,
            return_span,
            order_span,
            limit_span,
        )

    def order(self) -> tuple[tuple[ast.OrderKey, ...], Span]:
        first = self.at
        if not self.accept_word("order"):
            return (), NOWHERE
        self.expect_symbol("{", "after `order`")
        keys = self.comma_separated(self.order_key)
        self.expect_symbol("}", "after the order keys")
        return tuple(keys), self.span_since(first)

    def limit(self) -> tuple[int | None, Span]:
        first = self.at
        if not self.accept_word("limit"):
            return None, NOWHERE
        number = self.token_span(self.at)
        limit = self.expect_integer("the number of rows after `limit`")
        if limit > _U64_MAX:
            self.defer("Q008", "invalid limit: it must fit an unsigned 64-bit integer", number)
        return limit, self.span_since(first)

    def check_aliases(self, projections: list[ast.Projection]) -> None:
        seen: set[str] = set()
        for projection in projections:
            alias = projection.alias
            if alias is not None:
                if alias.text in seen:
                    self.defer("Q005", f"duplicate alias '{alias}'", alias.span)
                seen.add(alias.text)

    def clause_block(self, after: str) -> tuple[ast.Clause, ...]:
        self.enter()
        self.expect_symbol("{", f"after {after}")
        clauses = [self.clause()]
        while not self.accept_symbol("}"):
            clauses.append(self.clause())
        self.leave()
        return tuple(clauses)

    def clause(self) -> ast.Clause:
        first = self.at
        if self.is_word("not") and self.is_symbol("{", ahead=1):
            self.at += 1
            return ast.Negation(self.clause_block("`not`"), self.span_since(first))
        if self.kind == VARIABLE:
            if self.is_symbol(":", ahead=1):
                return self.binding()
            if self.at_traversal():
                return self.traversal()
        left = self.expression()
        operator = _FILTER_OPERATORS.get(self.text)
        if operator is None:
            if isinstance(left, ast.TextCall):
                return ast.TextClause(left)
            self.refuse_clause(left)
        self.at += 1
        right = self.expression()
        return ast.Filter(left, operator, right, self.span_since(first))

    def refuse_clause(self, left: ast.Expression) -> NoReturn:
        if isinstance(left, ast.Variable):
            self.fail("expected `: Type`, an edge name or a comparison after the variable")
        self.fail("expected a comparison operator", known=("contains", "starts_with"))

    def binding(self) -> ast.Binding:
        first = self.at
        variable = self.variable("a variable")
        self.at += 1
        node_type = self.expect_type_name("a node type name")
        matches: list[ast.PropertyMatch] = []
        if self.accept_symbol("{"):
            matches.append(self.property_match())
            while self.accept_symbol(",") and not self.is_symbol("}"):
                matches.append(self.property_match())
            self.expect_symbol("}", "after the property matches (`,` separates them)")
        return ast.Binding(variable, node_type, tuple(matches), self.span_since(first))

    def property_match(self) -> ast.PropertyMatch:
        first = self.at
        name = self.expect_ident("a property name")
        self.expect_symbol(":", "after the property name")
        return ast.PropertyMatch(name, self.value(), self.span_since(first))

    def at_traversal(self) -> bool:
        if not self.is_ident(ahead=1) or self.is_word("not", ahead=1):
            return False
        after = self.at + 2
        if self.is_symbol("{", ahead=2):
            # `contains { …` cannot start anything else, so broken bounds are reported as bounds.
            return True
        return self.kinds[min(after, len(self.kinds) - 1)] == VARIABLE

    def traversal(self) -> ast.Traversal:
        first = self.at
        left = self.variable("a variable")
        edge = self.expect_ident("an edge name")
        hops = self.hops() if self.is_symbol("{") else None
        right = self.variable("a variable at the other end of the edge")
        return ast.Traversal(left, edge, right, hops, self.span_since(first))

    def hops(self) -> ast.Hops:
        first = self.at
        self.at += 1
        low = self.hop_bound("the smallest number of hops")
        self.expect_symbol(",", "between the hop bounds, as in `{1,3}`")
        high = None
        if not self.is_symbol("}"):
            high = self.hop_bound("the largest number of hops")
        self.expect_symbol("}", "after the hop bounds")
        return ast.Hops(low, high, self.span_since(first))

    def hop_bound(self, what: str) -> int:
        span = self.token_span(self.at)
        value = self.expect_integer(what)
        self.check_integer(value, span)
        return value

    def projection(self) -> ast.Projection:
        first = self.at
        expression = self.expression()
        alias = self.expect_ident("an alias after `as`") if self.accept_word("as") else None
        span = self.span_since(first)
        self.accept_symbol(",")
        return ast.Projection(expression, alias, span)

    def order_key(self) -> ast.OrderKey:
        first = self.at
        expression = self.expression()
        descending = None
        if self.accept_word("desc"):
            descending = True
        elif self.accept_word("asc"):
            descending = False
        return ast.OrderKey(expression, descending, self.span_since(first))

    # -- expressions ------------------------------------------------------------------------

    def expression(self) -> ast.Expression:
        kind = self.kinds[self.at]
        if kind == VARIABLE:
            return self.variable_or_property()
        if kind == WORD and self.texts[self.at] in _CALLS and self.is_symbol("(", ahead=1):
            self.enter()
            call = self.call()
            self.leave()
            return call
        if self.at_literal():
            return self.literal()
        if self.is_ident():
            return self.alias_reference()
        self.refuse_literal("an expression")

    def variable_or_property(self) -> ast.Variable | ast.PropertyAccess:
        first = self.at
        variable = self.variable("a variable")
        if not self.accept_symbol("."):
            return variable
        name = self.expect_ident("a property name after `.`")
        return ast.PropertyAccess(variable, name, self.span_since(first))

    def alias_reference(self) -> ast.AliasReference:
        name = self.expect_ident("an alias")
        if name.text.startswith(("true", "false")):
            message = "an alias that begins with `true` or `false` cannot be referred to"
            raise self.error("Q001", message, name.span)
        return ast.AliasReference(name)

    def call(self) -> ast.Expression:
        first = self.at
        word = self.text
        if word in ("date", "datetime"):
            return self.literal()
        if word == "now":
            self.at += 2
            self.expect_symbol(")", "after `now(` (it takes no arguments)")
            return ast.Now(self.span_since(first))
        if word in _AGGREGATES:
            self.at += 2
            argument = self.expression()
            self.close_call(word)
            return ast.Aggregate(_AGGREGATES[word], argument, self.span_since(first))
        if word in _TEXT_FUNCTIONS:
            return self.text_call()
        if word == "rrf":
            return self.rrf_call()
        return self.rank_call()

    def text_call(self) -> ast.TextCall:
        first = self.at
        word = self.text
        self.at += 2
        field = self.expression()
        self.expect_symbol(",", f"between the arguments of `{word}`")
        query = self.expression()
        edits = None
        if word == "fuzzy" and self.accept_symbol(","):
            edits = self.expression()
        self.close_call(word)
        return ast.TextCall(_TEXT_FUNCTIONS[word], field, query, edits, self.span_since(first))

    def rank_call(self) -> ast.RankCall:
        first = self.at
        if self.is_word("nearest") and self.is_symbol("(", ahead=1):
            self.at += 2
            vector = self.variable_or_property() if self.kind == VARIABLE else None
            if not isinstance(vector, ast.PropertyAccess):
                self.fail("`nearest` ranks by a vector property such as `$x.embedding`")
            self.expect_symbol(",", "between the arguments of `nearest`")
            query = self.expression()
            self.close_call("nearest")
            return ast.NearestCall(vector, query, self.span_since(first))
        if self.is_word("bm25") and self.is_symbol("(", ahead=1):
            self.at += 2
            field = self.expression()
            self.expect_symbol(",", "between the arguments of `bm25`")
            query = self.expression()
            self.close_call("bm25")
            return ast.Bm25Call(field, query, self.span_since(first))
        self.fail("`rrf` fuses two rankings: expected `nearest(…)` or `bm25(…)`")

    def rrf_call(self) -> ast.RrfCall:
        first = self.at
        self.at += 2
        one = self.rank_call()
        self.expect_symbol(",", "between the rankings of `rrf`")
        two = self.rank_call()
        k = self.expression() if self.accept_symbol(",") else None
        self.close_call("rrf")
        return ast.RrfCall(one, two, k, self.span_since(first))

    def close_call(self, word: str) -> None:
        self.expect_symbol(")", f"to close `{word}(…)`")

    # -- literals and values ----------------------------------------------------------------

    def at_literal(self) -> bool:
        if self.kind in (STRING, FLOAT, INTEGER) or self.is_symbol("["):
            return True
        if self.kind != WORD:
            return False
        if self.text in ("date", "datetime"):
            return self.is_symbol("(", ahead=1)
        return self.text in ("true", "false")

    def literal(self) -> ast.Literal:
        span = self.token_span(self.at)
        text = self.text
        if self.kind == STRING:
            return ast.StringLiteral(self.read_string(), text, span)
        if self.kind == INTEGER:
            value = self.expect_integer("a number")
            self.check_integer(value, span)
            return ast.IntegerLiteral(value, span)
        if self.kind == FLOAT:
            self.at += 1
            if math.isinf(float(text)):
                self.defer("Q007", "invalid float: it is too large for a 64-bit float", span)
            return ast.FloatLiteral(text, span)
        if self.is_symbol("["):
            return self.list_literal()
        if text in ("true", "false") and self.kind == WORD:
            self.at += 1
            return ast.BoolLiteral(text == "true", span)
        if self.at_literal():
            return self.temporal_literal()
        self.refuse_literal("a literal")

    def check_integer(self, value: int, span: Span) -> None:
        if value > _I64_MAX:
            self.defer("Q007", "invalid integer: it must fit a signed 64-bit integer", span)

    def refuse_literal(self, expected: str) -> NoReturn:
        if self.is_symbol("-"):
            self.fail("there are no negative literals; pass the number as a parameter")
        if self.is_word("null"):
            self.fail("there is no null literal; pass a nullable parameter")
        self.fail(f"expected {expected}")

    def temporal_literal(self) -> ast.DateLiteral | ast.DateTimeLiteral:
        first = self.at
        word = self.text
        self.at += 2
        text = self.expect_string(f'a quoted text, as in `{word}("2026-01-31")`')
        self.close_call(word)
        span = self.span_since(first)
        return ast.DateLiteral(text, span) if word == "date" else ast.DateTimeLiteral(text, span)

    def list_literal(self) -> ast.ListLiteral:
        first = self.at
        self.at += 1
        self.enter()
        items: list[ast.Literal] = []
        if not self.is_symbol("]"):
            items = self.comma_separated(self.literal)
        self.expect_symbol("]", "after the list elements")
        self.leave()
        return ast.ListLiteral(tuple(items), self.span_since(first))

    def value(self) -> ast.Value:
        if self.kind == VARIABLE:
            return self.variable("a parameter")
        if self.is_word("now") and self.is_symbol("(", ahead=1):
            span_start = self.at
            self.at += 2
            self.expect_symbol(")", "after `now(` (it takes no arguments)")
            return ast.Now(self.span_since(span_start))
        if not self.at_literal():
            self.refuse_literal("a literal, a parameter or `now()`")
        return self.literal()

    def variable(self, what: str) -> ast.Variable:
        if self.kind != VARIABLE:
            self.fail(f"expected {what}")
        variable = ast.Variable(self.text[1:], self.token_span(self.at))
        self.at += 1
        return variable

    # -- mutations --------------------------------------------------------------------------

    def statement(self) -> ast.Statement:
        first = self.at
        if self.accept_word("insert"):
            target = self.expect_type_name("the type to insert")
            return ast.Insert(target, self.assignments(), self.span_since(first))
        if self.accept_word("update"):
            target = self.expect_type_name("the type to update")
            self.expect_word("set", "after the type to update")
            assignments = self.assignments()
            predicate = self.predicate()
            return ast.Update(target, assignments, predicate, self.span_since(first))
        if self.accept_word("delete"):
            target = self.expect_type_name("the type to delete from")
            predicate = self.predicate()
            return ast.Delete(target, predicate, self.span_since(first))
        self.fail("expected `match`, `insert`, `update` or `delete`", known=("match", *_STATEMENTS))

    def assignments(self) -> tuple[ast.Assignment, ...]:
        self.expect_symbol("{", "before the assignments")
        found = [self.assignment()]
        while not self.accept_symbol("}"):
            found.append(self.assignment())
        return tuple(found)

    def assignment(self) -> ast.Assignment:
        first = self.at
        name = self.expect_ident("a property name")
        self.expect_symbol(":", "after the property name")
        value = self.value()
        span = self.span_since(first)
        self.accept_symbol(",")
        return ast.Assignment(name, value, span)

    def predicate(self) -> ast.Predicate:
        self.expect_word("where", "before the condition")
        return self.condition()

    def condition(self) -> ast.Predicate:
        first = self.at
        name = self.expect_ident("a property name")
        operator = _COMPARISONS.get(self.text)
        if operator is None:
            self.fail("expected a comparison (`=`, `!=`, `<`, `<=`, `>`, `>=`)")
        self.at += 1
        return ast.Predicate(name, operator, self.value(), self.span_since(first))

    def comma_separated(self, read: Callable[[], _T]) -> list[_T]:
        found = [read()]
        while self.accept_symbol(","):
            found.append(read())
        return found
