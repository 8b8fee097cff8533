"""Checks the changes that a pattern is put before, and builds the read that finds their rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NoReturn

from omnigraph.catalog.model import Catalog, EntityType
from omnigraph.diagnostics import did_you_mean
from omnigraph.language.query import ast
from omnigraph.language.query.ast import Assignment
from omnigraph.language.types import PropType
from omnigraph.plan.changes import (
    Action,
    Assign,
    DeleteMatched,
    InsertEdge,
    UpdateMatched,
)
from omnigraph.plan.check_rows import RowChecker
from omnigraph.plan.constants import InferredParameters
from omnigraph.plan.expressions import ExpressionChecker
from omnigraph.plan.ir import (
    ID_TYPE,
    ROW,
    Column,
    EntityId,
    Expr,
    Param,
    Pattern,
    ReadPlan,
    SortKey,
    SystemField,
    parts_of,
    variables_of,
    walk,
)
from omnigraph.plan.operators import Aliases
from omnigraph.plan.scope import BoundEdge, BoundNode, Scope
from omnigraph.plan.type_errors import TypeErrors


class MatchedChecker(RowChecker):
    """Values of changes by pattern: expressions about the variables of the match."""

    def __init__(
        self, errors: TypeErrors, scope: Scope, parameters: Mapping[str, PropType]
    ) -> None:
        super().__init__(errors, parameters, None, "a change by pattern")
        self._scope = scope

    @property
    def scope(self) -> Scope:
        return self._scope

    def check(self, expression: ast.Expression, aliases: Aliases | None = None) -> Expr:
        match expression:
            case ast.AliasReference(name):
                self._refuse_word(expression, name.text)
            case ast.SystemReference(name):
                self._refuse_word(expression, f"@{name}")
            case _:
                self.refuse_ranks(expression)
                return ExpressionChecker.check(self, expression, {})

    def _refuse_word(self, expression: ast.Expression, word: str) -> NoReturn:
        message = f"`{word}` has no variable: values are read of the match"
        self._errors.fail(expression.span, "T6", message, f"write `$x.{word}`")

    def is_plain(self, value: ast.Expression) -> bool:
        if isinstance(value, ast.Variable) and value.name not in self._parameters:
            is_inferred = isinstance(self._parameters, InferredParameters)
            return is_inferred and self._scope.find(value.name) is None
        return super().is_plain(value)

    # -- targets ----------------------------------------------------------------------------

    def target(
        self, catalog: Catalog, variable: ast.Variable, word: str
    ) -> tuple[str, tuple[EntityType, ...]]:
        """A variable whose entities are changed: its name in the plan, and their types."""
        bound = self._scope.own.get(variable.name)
        shown = f"`${variable.name}`"
        match bound:
            case BoundNode():
                return bound.name, (catalog.nodes[bound.node_type.name],)
            case BoundEdge() if bound.members:
                names = dict.fromkeys(member.name for member in bound.members)
                return bound.name, tuple(catalog.edges[name] for name in names)
            case None:
                hint = did_you_mean(variable.name, self._scope.own)
                message = f"{shown} is no node or edge of the match, and cannot be {word}"
                self._errors.fail(variable.span, "T67", message, hint)
            case _:
                message = f"{shown} is a {bound.shown_type}, and cannot be {word}"
                self._errors.fail(variable.span, "T67", message)

    def require_same(
        self,
        assignments: Sequence[Assignment],
        first: EntityType,
        other: EntityType,
        expected: Mapping[str, Assign],
        found: Mapping[str, Assign],
    ) -> None:
        """Refuse a property that two edge types of a variable declare in different ways."""
        for assignment in assignments:
            name = assignment.property.text
            if expected[name].type != found[name].type:
                message = f"`{name}` has another type in `{other.name}` than in `{first.name}`"
                self._errors.fail(assignment.span, "T7", message)

    def shown_type(self, variable: str) -> str | None:
        """The type of a variable of the match, by its name in the plan."""
        for bound in self._scope.own.values():
            if bound.name == variable:
                return bound.shown_type
        return None


# -- the read -----------------------------------------------------------------------------------


def match_plan(
    name: str,
    pattern: Pattern,
    variables: tuple[tuple[str, str | tuple[str, ...]], ...],
    actions: Sequence[Action],
    made: Sequence[str],
) -> ReadPlan:
    """The read that returns what the actions need of each row, in the order of the ids."""
    needed = dict.fromkeys(part for action in actions for part in _needed(action, made))
    columns = tuple(Column(f"#{number}", part) for number, part in enumerate(needed))
    order: list[SortKey] = []
    for variable, kind in variables:
        order.append(SortKey(EntityId(variable), descending=False))
        if isinstance(kind, tuple) and len(kind) > 1:
            order.append(SortKey(SystemField(variable, "type", ID_TYPE), descending=False))
    return ReadPlan(name, (), pattern, columns, tuple(order), None, variables)


def _needed(action: Action, made: Sequence[str]) -> Iterator[Expr]:
    targets: tuple[tuple[str, tuple[str, ...]], ...] = ()
    match action:
        case UpdateMatched():
            targets = ((action.variable, action.table_keys),)
        case DeleteMatched():
            targets = action.targets
    for variable, keys in targets:
        yield EntityId(variable)
        if len(keys) > 1:
            yield SystemField(variable, "type", ID_TYPE)
    values: list[Expr] = []
    if not isinstance(action, DeleteMatched):
        values += [assign.value for assign in action.assignments]
    if isinstance(action, InsertEdge):
        values += [action.source, action.target]
    if action.returning is not None:
        values += [column.expression for column in action.returning.columns]
    for value in values:
        yield from read_of_match(value, made)


def read_of_match(expression: Expr, made: Sequence[str]) -> Iterator[Expr]:
    """The largest parts of an expression that the match alone gives."""
    if is_of_match(expression, made):
        yield expression
        return
    for part in parts_of(expression):
        yield from read_of_match(part, made)


def is_of_match(expression: Expr, made: Sequence[str]) -> bool:
    """Whether an expression reads variables of the match, and nothing of what is written."""
    variables = variables_of(expression)
    if not variables or ROW in variables:
        return False
    return not any(isinstance(part, Param) and part.name in made for part in walk(expression))
