"""Reads the clauses of `match` and of blocks.

A clause that starts with a variable is a binding if a `:` follows and a traversal if an edge
selection and another variable follow; all else is a filter.
"""

from __future__ import annotations

from omnigraph.language.query import ast
from omnigraph.language.query.expressions import OPERATOR_WORDS, ExpressionReader
from omnigraph.language.syntax import Span
from omnigraph.language.tokens import STRING, SYMBOL, VARIABLE, WORD

_CLAUSE_WORDS = ("not", "optional", "exists", "case", "null", "true", "false")


class PatternReader(ExpressionReader):
    def clause_block(self, after: str) -> tuple[ast.Clause, ...]:
        self.enter()
        self.expect_symbol("{", f"after {after}")
        clauses = [self._clause()]
        while not self.accept_symbol("}"):
            clauses.append(self._clause())
        self.leave()
        return tuple(clauses)

    def _clause(self) -> ast.Clause:
        first = self.at
        if self.is_symbol("{", ahead=1):
            if self.accept_word("not"):
                return ast.Negation(self.clause_block("`not`"), self.span_since(first))
            if self.accept_word("optional"):
                return ast.Optional(self.clause_block("`optional`"), self.span_since(first))
        if self.kind == VARIABLE:
            if self.is_symbol(":", ahead=1):
                return self._binding()
            if self._at_traversal():
                return self._traversal()
        condition = self.expression()
        self._check_filter(condition, first)
        return ast.Filter(condition, self.span_since(first))

    def _check_filter(self, condition: ast.Expression, first: int) -> None:
        """Refuse what cannot be meant as a filter, where its mistake is."""
        if isinstance(condition, ast.AliasReference):
            self.at = first
            self.fail("expected a clause: a binding, a traversal or a condition")
        begins = self.text in _CLAUSE_WORDS or self.is_symbol("(", ahead=1)
        if isinstance(condition, ast.Variable) and self.kind == WORD and not begins:
            self.fail("expected `: Type`, an edge name or a comparison after the variable")

    def _binding(self) -> ast.Binding:
        first = self.at
        variable = self.variable("a variable")
        self.at += 1
        node_type = self.expect_type_name("a node type name")
        matches: list[ast.PropertyMatch] = []
        if self.accept_symbol("{"):
            matches.append(self._property_match())
            while self.accept_symbol(",") and not self.is_symbol("}"):
                matches.append(self._property_match())
            self.expect_symbol("}", "after the property matches (`,` separates them)")
        return ast.Binding(variable, node_type, tuple(matches), self.span_since(first))

    def _property_match(self) -> ast.PropertyMatch:
        first = self.at
        name = self.expect_ident("a property name")
        self.expect_symbol(":", "after the property name")
        return ast.PropertyMatch(name, self.expression(), self.span_since(first))

    # -- traversals -------------------------------------------------------------------------

    def _at_traversal(self) -> bool:
        if self._is_kind(VARIABLE, 1):
            return self.is_symbol(":", 2) and self._at_edge(3)
        if self.is_word("shortest", 1) and self._at_selection(2):
            return True
        return self._at_selection(1)

    def _is_kind(self, kind: str, ahead: int) -> bool:
        return self.kinds[min(self.at + ahead, len(self.kinds) - 1)] == kind

    def _at_edge(self, ahead: int) -> bool:
        """Whether a token can begin the edges after `$e:`."""
        starts = any(self.is_symbol(text, ahead) for text in "<(*")
        return starts or self.is_ident(ahead) or self._is_kind(STRING, ahead)

    def _at_selection(self, ahead: int) -> bool:
        """Whether an edge selection stands there, with bounds or a variable behind it."""
        i = min(self.at + ahead, len(self.kinds) - 1)
        kind, text = self.kinds[i], self.texts[i]
        if kind == SYMBOL and text in "<(":
            if text == "<" and self.is_symbol("*", ahead + 1):
                return self.is_symbol(">", ahead + 2)
            named = self.is_ident(ahead + 1) or self._is_kind(STRING, ahead + 1)
            closed = text == "<" and self.is_symbol(">", ahead + 2)
            return named and (closed or self.is_symbol("|", ahead + 2))
        is_word = self.is_ident(ahead) and text != "not"
        if not is_word and kind != STRING and not (kind == SYMBOL and text == "*"):
            return False
        if self.is_symbol("{", ahead + 1):
            return True
        if not self._is_kind(VARIABLE, ahead + 1):
            return False
        return (
            kind == STRING or not (text == "*" or text in OPERATOR_WORDS) or self._ends(ahead + 2)
        )

    def _ends(self, ahead: int) -> bool:
        """Whether no expression goes on there: `$a in $b` may be a traversal, `$a in $b.tags` not."""
        here, self.at = self.at, min(self.at + ahead, len(self.kinds) - 1)
        goes_on = self.is_symbol(".") or self.operator_ahead() > 0
        self.at = here
        return not goes_on

    def _traversal(self) -> ast.Traversal:
        first = self.at
        left = self.variable("a variable")
        variable = None
        if self.kind == VARIABLE:
            variable = self.variable("an edge variable")
            self.at += 1
        shortest = self.is_word("shortest") and self._at_selection(1)
        if shortest:
            self.at += 1
        edges = self._selection()
        hops = self._hops() if self.is_symbol("{") else None
        right = self.variable("a variable at the other end of the edge")
        by = None
        if shortest and self.accept_word("by"):
            by = self.expect_ident("the property to minimize after `by`")
        span = self.span_since(first)
        return ast.Traversal(left, edges, right, hops, variable, shortest, by, span)

    def _selection(self) -> ast.EdgeSelection:
        first = self.at
        if self.accept_symbol("<"):
            names = () if self.accept_symbol("*") else self._edge_names()
            self.expect_symbol(">", "after the edges, as in `<knows>`")
            return ast.EdgeSelection(names, True, self.span_since(first))
        if self.accept_symbol("("):
            names = self._edge_names()
            if len(names) == 1:
                self.fail("a selection names several edges, as in `(knows | likes)`")
            self.expect_symbol(")", "after the edges")
            return ast.EdgeSelection(names, span=self.span_since(first))
        if self.accept_symbol("*"):
            return ast.EdgeSelection((), span=self.span_since(first))
        return ast.EdgeSelection((self._edge_name(),), span=self.span_since(first))

    def _edge_names(self) -> tuple[ast.EdgeName, ...]:
        names = [self._edge_name()]
        while self.accept_symbol("|"):
            names.append(self._edge_name())
        return tuple(names)

    def _edge_name(self) -> ast.EdgeName:
        span = self.token_span(self.at)
        if self.kind == STRING:
            return ast.EdgeName(self.read_string(), True, span)
        return ast.EdgeName(self.expect_ident("an edge name").text, span=span)

    def _hops(self) -> ast.Hops:
        first = self.at
        self.at += 1
        low = self._hop_bound("the smallest number of hops")
        self.expect_symbol(",", "between the hop bounds, as in `{1,3}`")
        high = None
        if not self.is_symbol("}"):
            high = self._hop_bound("the largest number of hops")
        self.expect_symbol("}", "after the hop bounds")
        return ast.Hops(low, high, self.span_since(first))

    def _hop_bound(self, what: str) -> int:
        span: Span = self.token_span(self.at)
        value = self.expect_integer(what)
        self.check_integer(value, span)
        return value
