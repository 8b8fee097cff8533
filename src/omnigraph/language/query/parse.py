"""Query text to syntax tree: files, queries, results and statements.

Expressions and patterns are read by the base classes, in `expressions.py` and `patterns.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from omnigraph.language.query import ast
from omnigraph.language.query.file_settings import setting_problem
from omnigraph.language.query.file_statements import (
    BranchAction,
    BranchStatement,
    Explain,
    FileStatement,
    Reset,
    Setting,
    Show,
)
from omnigraph.language.query.patterns import PatternReader
from omnigraph.language.syntax import NOWHERE, Name, Source, Span, TypeRef
from omnigraph.language.tokens import INTEGER, STRING, VARIABLE, WORD, Tokens, tokenize
from omnigraph.language.types import SCALAR_NAMES, PropType, Scalar
from omnigraph.limits import MAX_VECTOR_DIMENSION

_STATEMENTS: Final = ("insert", "upsert", "update", "delete")
_BODIES: Final = ("match", *_STATEMENTS)
_BEGINNINGS: Final = ("query", *_BODIES, "explain", "branch", "show")
_NOTES: Final = ("description", "instruction")
_RESERVED_RESULTS: Final = ("rows", "columns")
_BRANCH_ACTIONS: Final = {a.value: a for a in BranchAction}
_U64_MAX: Final = 2**64 - 1

_S = TypeVar("_S", Setting, Reset, Show)

ANONYMOUS_NAME: Final = "query"
"""What an anonymous query is called in results and messages."""


def parse_queries(source: Source) -> ast.QueryFile:
    """Read a query file. Raises `ParseError` with a position.

    A statement that stands alone (`show`, `branch`, `explain`) is refused: see `parse_text`.
    """
    return parse_query_tokens(tokenize(source))


def parse_text(source: Source) -> ast.QueryFile:
    """Read what is given to run at once: a query file, an anonymous query, or a file statement."""
    return parse_query_tokens(tokenize(source), alone=True)


def parse_query_tokens(tokens: Tokens, *, alone: bool = False) -> ast.QueryFile:
    """As `parse_queries`, or `parse_text`, for a caller that also needs the comments."""
    parser = _QueryParser(tokens, syntax_code="Q001", escape_code="Q002")
    file = parser.file(alone=alone)
    parser.raise_deferred()
    return file


def parse_condition(source: Source) -> ast.Expression:
    """Read what may follow `where` in a mutation. Raises `ParseError` with a position."""
    parser = _QueryParser(tokenize(source), syntax_code="Q001", escape_code="Q002")
    parser.end_name = "the end of the condition"
    found = parser.expression()
    if not parser.at_end:
        parser.fail("expected the end of the condition")
    parser.raise_deferred()
    return found


class _QueryParser(PatternReader):
    # -- files ------------------------------------------------------------------------------

    def file(self, *, alone: bool) -> ast.QueryFile:
        settings: list[Setting | Reset] = []
        while self.is_word("set") or self.is_word("reset"):
            settings.append(self._setting())
        if alone and any(self.is_word(word) for word in _BODIES):
            query = self._anonymous()
            if not self.at_end:
                self.fail("expected the end of the query")
            return ast.QueryFile((query,), tuple(settings))
        queries: list[ast.Query] = []
        statement: FileStatement | None = None
        while not self.at_end:
            first = self.at
            found = self._file_statement()
            if alone and found is None and not queries and not self.is_word("query"):
                if statement is not None:
                    self.fail("expected the end of the statement")
                self.fail("expected a query: `match`, `query` or a change", known=_BEGINNINGS)
            if found is None:
                queries.append(self.query())
            elif statement is not None or queries or not alone:
                self._refuse_statement(found.span, alone=alone)
            else:
                statement = found
            if statement is not None and queries:
                self._refuse_statement(self.token_span(first), alone=alone)
        self._check_names(queries)
        return ast.QueryFile(tuple(queries), tuple(settings), statement)

    def _check_names(self, queries: list[ast.Query]) -> None:
        seen: set[str] = set()
        for query in queries:
            if query.name.text in seen:
                self.defer("Q003", f"duplicate query '{query.name}'", query.name.span)
            seen.add(query.name.text)

    def _refuse_statement(self, span: Span, *, alone: bool) -> None:
        message = "a statement such as `explain`, `branch` or `show` stands alone in its text"
        if not alone:
            message += ": it is no stored query"
        self.defer("Q009", message, span)

    def _anonymous(self) -> ast.Query:
        first = self.at
        body = self.body(self._at_end_of_text)
        name = Name(ANONYMOUS_NAME, self.token_span(first))
        return ast.Query(name, (), (), body, True, self.span_since(first))

    def _at_end_of_text(self) -> bool:
        return self.at_end

    def _setting(self) -> Setting | Reset:
        first = self.at
        if self.accept_word("reset"):
            name = None if self.accept_word("all") else self._setting_name()
            self.expect_symbol(";", "after the setting")
            return self._known(Reset(name, self.span_since(first)))
        self.at += 1
        name = self._setting_name()
        self.expect_symbol("=", "after the setting")
        value: int | str
        if self.kind == INTEGER:
            value = self.expect_integer("a value")
        elif self.kind == STRING:
            value = self.read_string()
        else:
            value = self.expect_ident("a number, a word or a quoted text").text
        self.expect_symbol(";", "after the value")
        return self._known(Setting(name, value, self.span_since(first)), value)

    def _known(self, found: _S, value: int | str | None = None) -> _S:
        """A statement about a setting that exists, with a value it takes."""
        problem = setting_problem(found.name, value)
        if problem is not None:
            self.defer("Q010", problem[0], found.span, problem[1])
        return found

    def _setting_name(self) -> str:
        words = [self.expect_ident("the name of a setting").text]
        while self.accept_symbol("."):
            words.append(self.expect_ident("the rest of the name after `.`").text)
        return ".".join(words)

    def _file_statement(self) -> FileStatement | None:
        first = self.at
        if self.accept_word("show"):
            name = None if self.accept_word("all") else self._setting_name()
            if not self.at_end:
                self.expect_symbol(";", "after the setting")
            return self._known(Show(name, self.span_since(first)))
        if self.accept_word("explain"):
            is_body = any(self.is_word(word) for word in _BODIES)
            query = self._anonymous() if is_body else self.query()
            if query.is_mutation:
                self.defer("Q009", "`explain` shows plans of reads only", query.name.span)
            return Explain(query, self.span_since(first))
        if self.accept_word("branch"):
            return self._branch_statement(first)
        return None

    def _branch_statement(self, first: int) -> BranchStatement:
        action = _BRANCH_ACTIONS.get(self.text)
        if action is None:
            known = tuple(_BRANCH_ACTIONS)
            self.fail("expected `create`, `delete`, `merge` or `list`", known=known)
        self.at += 1
        name = other = None
        if action is not BranchAction.LIST:
            name = self._branch_name()
        if action is BranchAction.CREATE and self.accept_word("from"):
            other = self._branch_name()
        if action is BranchAction.MERGE and self.accept_word("into"):
            other = self._branch_name()
        self.accept_symbol(";")
        return BranchStatement(action, name, other, self.span_since(first))

    def _branch_name(self) -> str:
        if self.kind == STRING:
            return self.read_string()
        return self.expect_ident("the name of a branch (quoted, if it is more than a word)").text

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
        body = self.body(self._at_closing_brace)
        self.expect_symbol("}", "to close the query body")
        return ast.Query(name, tuple(parameters), notes, body, span=self.span_since(first))

    def _at_closing_brace(self) -> bool:
        return self.is_symbol("}")

    def parameter(self) -> ast.Parameter:
        first = self.at
        variable = self.variable("a parameter such as `$name`")
        self.expect_symbol(":", "after the parameter name")
        declared = self.parameter_type()
        default = self.expression() if self.accept_symbol("=") else None
        return ast.Parameter(variable, declared, default, self.span_since(first))

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

    def body(self, at_end: Callable[[], bool]) -> ast.ReadBody | ast.MutationBody:
        statements: list[ast.Statement] = []
        if self.is_word("match"):
            first = self.at
            clauses, match_span = self.match_block()
            if self.is_word("return"):
                return self.read_body(clauses, match_span, at_end)
            statements.append(self.match_statement(first, clauses, match_span))
        while not statements or not at_end():
            statements.append(self.statement())
        return ast.MutationBody(tuple(statements))

    def match_block(self) -> tuple[tuple[ast.Clause, ...], Span]:
        first = self.at
        self.expect_word("match", "before the pattern")
        clauses = self.clause_block("`match`")
        return clauses, self.span_since(first)

    # -- reads ------------------------------------------------------------------------------

    def read_body(
        self, clauses: tuple[ast.Clause, ...], match_span: Span, at_end: Callable[[], bool]
    ) -> ast.ReadBody:
        result = self.result(named=False)
        further: list[ast.Result] = []
        seen: set[str] = set(_RESERVED_RESULTS)
        while self.is_word("return"):
            further.append(self.result(named=True))
            name = further[-1].name
            assert name is not None
            if name.text in seen:
                reserved = name.text in _RESERVED_RESULTS
                shown = f"a result cannot be called '{name}'" if reserved else ""
                self.defer("Q011", shown or f"duplicate result '{name}'", name.span)
            seen.add(name.text)
        if not at_end():
            self.fail("expected `having`, `order`, `offset`, `limit` or the end of the query")
        return ast.ReadBody(clauses, result, tuple(further), match_span)

    def result(self, *, named: bool) -> ast.Result:
        first = self.at
        self.at += 1
        name = self.expect_ident("the name of a further result") if named else None
        distinct, projections = self.projections()
        return_span = self.span_since(first)
        self.check_aliases(projections)
        having, having_span = self.having()
        order, order_span = self.order()
        offset, offset_span = self.row_count("offset")
        limit, limit_span = self.row_count("limit")
        if offset is None:
            offset, offset_span = self.row_count("offset")
        self.aliases = frozenset()
        return ast.Result(
            projections,
            distinct,
            having,
            order,
            offset,
            limit,
            name,
            return_span,
            having_span,
            order_span,
            offset_span,
            limit_span,
        )

    def projections(self) -> tuple[bool, tuple[ast.Projection, ...]]:
        """What follows `return`. Its aliases can be mentioned from there on."""
        distinct = self.accept_word("distinct")
        self.expect_symbol("{", "after `return`")
        aliases: set[str] = set()
        self.aliases = aliases
        found: list[ast.Projection] = []
        while not found or not self.accept_symbol("}"):
            found.append(self.projection())
            alias = found[-1].alias
            if alias is not None and alias.text not in ("true", "false"):
                aliases.add(alias.text)
        return distinct, tuple(found)

    def projection(self) -> ast.Projection:
        first = self.at
        expression = self.expression()
        alias = self.expect_ident("an alias after `as`") if self.accept_word("as") else None
        span = self.span_since(first)
        self.accept_symbol(",")
        return ast.Projection(expression, alias, span)

    def check_aliases(self, projections: tuple[ast.Projection, ...]) -> None:
        seen: set[str] = set()
        for projection in projections:
            alias = projection.alias
            if alias is not None:
                if alias.text in seen:
                    self.defer("Q005", f"duplicate alias '{alias}'", alias.span)
                seen.add(alias.text)

    def having(self) -> tuple[tuple[ast.Expression, ...], Span]:
        first = self.at
        if not self.accept_word("having"):
            return (), NOWHERE
        self.expect_symbol("{", "after `having`")
        conditions = [self.expression()]
        while not self.accept_symbol("}"):
            conditions.append(self.expression())
        return tuple(conditions), self.span_since(first)

    def order(self) -> tuple[tuple[ast.OrderKey, ...], Span]:
        first = self.at
        if not self.accept_word("order"):
            return (), NOWHERE
        self.expect_symbol("{", "after `order`")
        keys = self.comma_separated(self.order_key)
        self.expect_symbol("}", "after the order keys")
        return tuple(keys), self.span_since(first)

    def order_key(self) -> ast.OrderKey:
        first = self.at
        expression = self.expression()
        descending = nulls_first = None
        if self.accept_word("desc"):
            descending = True
        elif self.accept_word("asc"):
            descending = False
        if self.accept_word("nulls"):
            nulls_first = self.is_word("first")
            if not nulls_first:
                self.expect_word("last", "after `nulls` (or `first`)")
            else:
                self.at += 1
        return ast.OrderKey(expression, descending, nulls_first, self.span_since(first))

    def row_count(self, word: str) -> tuple[int | ast.Variable | None, Span]:
        first = self.at
        if not self.accept_word(word):
            return None, NOWHERE
        if self.kind == VARIABLE:
            variable = self.variable("a parameter")
            return variable, self.span_since(first)
        span = self.token_span(self.at)
        count = self.expect_integer(f"the number of rows after `{word}`")
        if count > _U64_MAX:
            self.defer("Q008", f"invalid {word}: it must fit an unsigned 64-bit integer", span)
        return count, self.span_since(first)

    # -- mutations --------------------------------------------------------------------------

    def statement(self) -> ast.Statement:
        first = self.at
        if self.is_word("match"):
            clauses, match_span = self.match_block()
            return self.match_statement(first, clauses, match_span)
        if self.is_word("insert") or self.is_word("upsert"):
            return self.new_entity()
        if self.accept_word("update"):
            target = self.expect_type_name("the type to update")
            self.expect_word("set", "after the type to update")
            assignments = self.assignments()
            self.expect_word("where", "before the condition")
            condition = self.expression()
            back = self.returning()
            return ast.Update(target, assignments, condition, back, self.span_since(first))
        if self.accept_word("delete"):
            target = self.expect_type_name("the type to delete from")
            self.expect_word("where", "before the condition")
            condition = self.expression()
            back = self.returning()
            return ast.Delete(target, condition, back, self.span_since(first))
        words = ", ".join(f"`{word}`" for word in _BODIES[:-1])
        self.fail(f"expected {words} or `delete`", known=_BODIES)

    def new_entity(self) -> ast.Insert | ast.Upsert:
        first = self.at
        kind = ast.Insert if self.is_word("insert") else ast.Upsert
        self.at += 1
        variable = None
        if self.kind == VARIABLE:
            variable = self.variable("a variable")
            self.expect_symbol(":", "after the variable")
        target = self.expect_type_name(f"the type to {kind.__name__.lower()}")
        assignments = self.assignments()
        back = self.returning()
        return kind(target, assignments, variable, back, self.span_since(first))

    def match_statement(
        self, first: int, clauses: tuple[ast.Clause, ...], match_span: Span
    ) -> ast.MatchStatement:
        if self.accept_word("do"):
            self.expect_symbol("{", "after `do`")
            actions = [self.action()]
            while not self.accept_symbol("}"):
                actions.append(self.action())
        else:
            actions = [self.action()]
        return ast.MatchStatement(clauses, tuple(actions), match_span, self.span_since(first))

    def action(self) -> ast.Action:
        first = self.at
        if self.is_word("insert") or self.is_word("upsert"):
            return self.new_entity()
        if self.accept_word("update"):
            variable = self.variable("the variable to update")
            self.accept_word("set")
            assignments = self.assignments()
            back = self.returning()
            return ast.UpdateMatched(variable, assignments, back, self.span_since(first))
        if self.accept_word("delete"):
            variables = self.comma_separated(lambda: self.variable("the variable to delete"))
            back = self.returning()
            return ast.DeleteMatched(tuple(variables), back, self.span_since(first))
        expected = "expected `return`, or a change: `insert`, `upsert`, `update`, `delete` or `do`"
        self.fail(expected, known=("return", "do", *_STATEMENTS))

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
        value = self.expression()
        span = self.span_since(first)
        self.accept_symbol(",")
        return ast.Assignment(name, value, span)

    def returning(self) -> ast.Returning | None:
        first = self.at
        if not self.accept_word("return"):
            return None
        distinct, projections = self.projections()
        self.aliases = frozenset()
        self.check_aliases(projections)
        return ast.Returning(projections, distinct, self.span_since(first))
