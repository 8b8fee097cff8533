"""Reads the expressions of queries: operators by precedence, literals, calls and blocks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Set
from typing import Final, NoReturn, TypeVar

from omnigraph.language.query import ast
from omnigraph.language.query.habits import habit_hint
from omnigraph.language.syntax import Name, Span
from omnigraph.language.tokens import (
    FLOAT,
    INTEGER,
    STRING,
    SYMBOL,
    VARIABLE,
    WORD,
    TokenReader,
    Tokens,
)

OR, AND, NOT, COMPARISON, SUM, TERM, FACTOR = range(1, 8)
"""Precedences: how tightly operators bind."""

_COMPARISONS: Final = {o.value: o for o in ast.Operator}
_ARITHMETIC: Final = {o.value: o for o in ast.ArithmeticOperator}
_SYMBOLS: Final = {
    **dict.fromkeys((">=", "<=", "!=", ">", "<", "="), COMPARISON),
    **dict.fromkeys("+-", SUM),
    **dict.fromkeys("*/%", TERM),
}
_WORDS: Final = {
    "or": OR,
    "and": AND,
    **dict.fromkeys(("contains", "starts_with", "ends_with", "in", "is"), COMPARISON),
}
OPERATOR_WORDS: Final = frozenset(_WORDS)
_JUNCTIONS: Final = {OR: ast.Junction.OR, AND: ast.Junction.AND}
_AGGREGATES: Final = {f.value: f for f in ast.AggregateFunction}
_TEXT_FUNCTIONS: Final = {f.value: f for f in ast.TextFunction}
_I64_MAX: Final = 2**63 - 1

_T = TypeVar("_T")


class ExpressionReader(TokenReader):
    """`aliases` are words that stand for results where the cursor is, also if they are operators."""

    def __init__(self, tokens: Tokens, *, syntax_code: str, escape_code: str) -> None:
        super().__init__(tokens, syntax_code=syntax_code, escape_code=escape_code)
        self.aliases: Set[str] = frozenset()

    def clause_block(self, after: str) -> tuple[ast.Clause, ...]:
        raise NotImplementedError

    # -- operators --------------------------------------------------------------------------

    def expression(self, least: int = OR) -> ast.Expression:
        """An expression whose outermost operator binds at least as tightly as `least`."""
        first = self.at
        self.enter()
        entered = 1
        left = self._prefixed(least)
        while (binding := self.operator_ahead()) >= least:
            if binding in _JUNCTIONS:
                left = self._junction(left, binding, first)
            elif binding == COMPARISON:
                left = self._comparison(left, first)
                if self.operator_ahead() >= COMPARISON:
                    self.fail("comparisons do not chain; join two of them with `and`")
            else:
                # Every operator in a row nests the tree one level deeper.
                self.enter()
                entered += 1
                operator = _ARITHMETIC[self.text]
                self.at += 1
                right = self.expression(binding + 1)
                left = ast.Arithmetic(left, operator, right, self.span_since(first))
        if self.is_word("not"):
            self._refuse_negated_operator()
        for _ in range(entered):
            self.leave()
        return left

    def operator_ahead(self) -> int:
        """How tightly the operator at the cursor binds; 0 if there is none.

        A word before `:` is a name, and so is one that stands for a result.
        """
        text = self.texts[self.at]
        kind = self.kinds[self.at]
        if kind == SYMBOL:
            return _SYMBOLS.get(text, 0)
        if kind != WORD or text not in _WORDS or text in self.aliases:
            return 0
        return 0 if self.is_symbol(":", ahead=1) else _WORDS[text]

    def _junction(self, left: ast.Expression, binding: int, first: int) -> ast.Expression:
        operands = [left]
        while self.operator_ahead() == binding:
            self.at += 1
            operands.append(self.expression(binding + 1))
        return ast.Logical(_JUNCTIONS[binding], tuple(operands), self.span_since(first))

    def _comparison(self, left: ast.Expression, first: int) -> ast.Expression:
        word = self.text
        self.at += 1
        if word == "is" and self.kinds[self.at - 1] == WORD:
            negated = self.accept_word("not")
            self.expect_word("null", "after `is not`" if negated else "after `is` (or `not null`)")
            return ast.NullTest(left, negated, self.span_since(first))
        right = self.expression(SUM)
        return ast.Comparison(left, _COMPARISONS[word], right, self.span_since(first))

    def _prefixed(self, least: int) -> ast.Expression:
        first = self.at
        if self.is_word("not") and not self._is_name():
            if least > NOT:
                self.fail("`not` stands before a whole comparison; put it and its operand in `(…)`")
            self.at += 1
            operand = self.expression(NOT)
            return ast.Not(operand, self.span_since(first))
        if self.is_symbol("-"):
            self.at += 1
            if self.kind in (INTEGER, FLOAT):
                return self._number(first)
            operand = self.expression(FACTOR)
            return ast.Negative(operand, self.span_since(first))
        return self._primary()

    def _refuse_negated_operator(self) -> None:
        """Refuse `$x.p not in …`: the next word cannot begin an operand."""
        following = self.texts[min(self.at + 1, len(self.texts) - 1)]
        if following in OPERATOR_WORDS and following not in self.aliases:
            hint = f"write `not ($x.p {following} …)`"
            self.fail("`not` stands before a whole comparison", hint=hint)

    def _is_name(self) -> bool:
        """Whether a word that may begin an operand is a name here."""
        if self.text in self.aliases:
            return True
        i = min(self.at + 1, len(self.kinds) - 1)
        return self.kinds[i] == SYMBOL and self.texts[i] in (">=", "<=", "!=", ">", "<", "=")

    # -- operands ---------------------------------------------------------------------------

    def _primary(self) -> ast.Expression:
        kind, text = self.kind, self.text
        if kind == VARIABLE:
            return self.variable_or_access()
        if kind in (STRING, INTEGER, FLOAT):
            return self.literal()
        if kind == SYMBOL:
            if text == "(":
                return self._group()
            if text == "[":
                return self._list()
            if text == "@":
                first = self.at
                return ast.SystemReference(self._system_field(), self.span_since(first))
        if kind == WORD:
            if self.is_symbol("(", ahead=1):
                return self._call()
            if text in ("true", "false"):
                return self.literal()
            if text not in self.aliases or self.is_symbol("{", ahead=1):
                found = self._keyword()
                if found is not None:
                    return found
            if self.is_ident():
                return ast.AliasReference(self.expect_ident("a name"))
        self.fail("expected an expression")

    def _keyword(self) -> ast.Expression | None:
        first = self.at
        text = self.text
        if self.is_symbol("{", ahead=1):
            if text == "exists":
                self.at += 1
                return ast.Exists(self._block("`exists`"), self.span_since(first))
            if text in _AGGREGATES:
                self.at += 1
                return self._aggregate_block(_AGGREGATES[text], None, first, distinct=False)
        if text == "case" and self.is_word("when", ahead=1):
            return self._case()
        if text == "null" and not self.is_symbol(":", ahead=1):
            self.at += 1
            return ast.NullLiteral(self.span_since(first))
        return None

    def _group(self) -> ast.Expression:
        self.at += 1
        found = self.expression()
        self.expect_symbol(")", "to close the parenthesis")
        return found

    def _case(self) -> ast.Case:
        first = self.at
        self.at += 1
        branches: list[ast.When] = []
        while self.accept_word("when"):
            condition = self.expression()
            self.expect_word("then", "after the condition of `when`")
            branches.append(ast.When(condition, self.expression()))
        otherwise = self.expression() if self.accept_word("else") else None
        self.expect_word("end", "to close `case`")
        return ast.Case(tuple(branches), otherwise, self.span_since(first))

    def _block(self, after: str) -> tuple[ast.Clause, ...]:
        """A clause list inside an expression; results cannot be mentioned in it."""
        aliases, self.aliases = self.aliases, frozenset()
        clauses = self.clause_block(after)
        self.aliases = aliases
        return clauses

    def _aggregate_block(
        self,
        function: ast.AggregateFunction,
        argument: ast.Expression | None,
        first: int,
        *,
        distinct: bool,
    ) -> ast.AggregateBlock:
        clauses = self._block(f"`{function.value}`")
        return ast.AggregateBlock(function, clauses, argument, distinct, self.span_since(first))

    def variable_or_access(
        self,
    ) -> ast.Variable | ast.PropertyAccess | ast.SystemAccess | ast.WholeEntity:
        first = self.at
        variable = self.variable("a variable")
        if not self.accept_symbol("."):
            return variable
        if self.accept_symbol("*"):
            return ast.WholeEntity(variable, self.span_since(first))
        if self.is_symbol("@"):
            return ast.SystemAccess(variable, self._system_field(), self.span_since(first))
        name = self.expect_ident("a property name after `.`")
        return ast.PropertyAccess(variable, name, self.span_since(first))

    def _system_field(self) -> Name:
        at = self.token_span(self.at)
        self.at += 1
        if not self.is_ident() or self.starts[self.at] != at.end:
            self.fail("expected a system field right after `@`, as in `@id`")
        return self.expect_ident("a system field")

    def variable(self, what: str) -> ast.Variable:
        if self.kind != VARIABLE:
            self.fail(f"expected {what}")
        variable = ast.Variable(self.text[1:], self.token_span(self.at))
        self.at += 1
        return variable

    # -- calls ------------------------------------------------------------------------------

    def _call(self) -> ast.Expression:
        first = self.at
        word = self.text
        if word in ("date", "datetime"):
            return self.literal()
        if word == "now":
            self.at += 2
            self.expect_symbol(")", "after `now(` (it takes no arguments)")
            return ast.Now(self.span_since(first))
        if word in _AGGREGATES:
            return self._aggregate()
        if word in _TEXT_FUNCTIONS:
            return self._text_call()
        if word == "rrf":
            return self._rrf_call()
        if word in ("nearest", "bm25"):
            return self._rank_call()
        name = self.expect_ident("a function name")
        self.at += 1
        arguments: list[ast.Expression] = []
        if not self.is_symbol(")"):
            arguments = self.comma_separated(self.expression)
        self.close_call(name.text)
        return ast.Call(name, tuple(arguments), self.span_since(first))

    def _aggregate(self) -> ast.Aggregate | ast.AggregateBlock:
        first = self.at
        function = _AGGREGATES[self.text]
        self.at += 2
        distinct = self.is_word("distinct") and not self.is_symbol(")", ahead=1)
        if distinct:
            self.at += 1
        if self.is_symbol("*"):
            self.fail(f"`{function.value}` takes a variable or a value, as in `count($x)`")
        argument = self.expression()
        self.close_call(function.value)
        if self.is_symbol("{"):
            return self._aggregate_block(function, argument, first, distinct=distinct)
        return ast.Aggregate(function, argument, distinct, self.span_since(first))

    def _text_call(self) -> ast.TextCall:
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

    def _rank_call(self) -> ast.RankCall:
        first = self.at
        if self.is_word("nearest") and self.is_symbol("(", ahead=1):
            self.at += 2
            vector = self.variable_or_access() if self.kind == VARIABLE else None
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

    def _rrf_call(self) -> ast.RrfCall:
        first = self.at
        self.at += 2
        one = self._rank_call()
        self.expect_symbol(",", "between the rankings of `rrf`")
        two = self._rank_call()
        k = self.expression() if self.accept_symbol(",") else None
        self.close_call("rrf")
        return ast.RrfCall(one, two, k, self.span_since(first))

    def close_call(self, word: str) -> None:
        self.expect_symbol(")", f"to close `{word}(…)`")

    # -- literals ---------------------------------------------------------------------------

    def literal(self) -> ast.Literal:
        """The literal of one token, or a date."""
        span = self.token_span(self.at)
        text = self.text
        if self.kind == STRING:
            return ast.StringLiteral(self.read_string(), text, span)
        if self.kind in (INTEGER, FLOAT):
            return self._number(self.at)
        if text in ("true", "false"):
            self.at += 1
            return ast.BoolLiteral(text == "true", span)
        return self._temporal_literal()

    def _number(self, first: int) -> ast.IntegerLiteral | ast.FloatLiteral:
        """A number that begins at the token `first`, which may be its minus sign."""
        negative = first != self.at
        if self.kind == INTEGER:
            value = self.expect_integer("a number")
            span = self.span_since(first)
            self.check_integer(value - negative, span)
            return ast.IntegerLiteral(-value if negative else value, span)
        text = self.text
        self.at += 1
        span = self.span_since(first)
        if math.isinf(float(text)):
            self.defer("Q007", "invalid float: it is too large for a 64-bit float", span)
        return ast.FloatLiteral(f"-{text}" if negative else text, span)

    def check_integer(self, value: int, span: Span) -> None:
        if value > _I64_MAX:
            self.defer("Q007", "invalid integer: it must fit a signed 64-bit integer", span)

    def _temporal_literal(self) -> ast.DateLiteral | ast.DateTimeLiteral:
        first = self.at
        word = self.text
        self.at += 2
        text = self.expect_string(f'a quoted text, as in `{word}("2026-01-31")`')
        self.close_call(word)
        span = self.span_since(first)
        return ast.DateLiteral(text, span) if word == "date" else ast.DateTimeLiteral(text, span)

    def _list(self) -> ast.ListLiteral | ast.ListExpression:
        first = self.at
        self.at += 1
        items: list[ast.Expression] = []
        if not self.is_symbol("]"):
            items = self.comma_separated(self.expression)
        self.expect_symbol("]", "after the list elements")
        span = self.span_since(first)
        literals = tuple(item for item in items if isinstance(item, ast.Literal))
        if len(literals) == len(items):
            return ast.ListLiteral(literals, span)
        return ast.ListExpression(tuple(items), span)

    # -- helpers ----------------------------------------------------------------------------

    def comma_separated(self, read: Callable[[], _T]) -> list[_T]:
        found = [read()]
        while self.accept_symbol(","):
            found.append(read())
        return found

    def fail(self, message: str, known: Iterable[str] = (), hint: str | None = None) -> NoReturn:
        """As in the base class, with a hint for what users of other query languages write."""
        super().fail(message, known, hint or habit_hint(self.texts, self.at, message))
