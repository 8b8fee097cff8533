"""Checks `return` of a change: expressions about a written row, and about what was matched for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NoReturn

from omnigraph.catalog.model import EdgeType, EntityType
from omnigraph.diagnostics import did_you_mean
from omnigraph.language.query import ast
from omnigraph.language.syntax import Name
from omnigraph.language.types import PropType
from omnigraph.plan.check_result import natural_name
from omnigraph.plan.check_rows import ENDPOINT_COLUMNS
from omnigraph.plan.expressions import ExpressionChecker
from omnigraph.plan.ir import ID_TYPE, ROW, Constant, EntityId, Expr, Param, Prop
from omnigraph.plan.operators import Aliases
from omnigraph.plan.scope import Scope
from omnigraph.plan.type_errors import TypeErrors


class ReturnChecker(ExpressionChecker):
    """Bare words and `@` fields are those of the written row, which is of one of the `targets`.

    `$` names are parameters and, in a match statement, its variables: those of the scope.
    """

    def __init__(
        self,
        errors: TypeErrors,
        scope: Scope,
        parameters: Mapping[str, PropType],
        targets: Sequence[EntityType],
    ) -> None:
        super().__init__(errors, scope)
        self._parameters = parameters
        self._targets = targets
        self._shown = " | ".join(target.name for target in targets)

    def returned(self, written: ast.Expression) -> tuple[str, Expr]:
        """What a written row shows, and how the column is called."""
        value = self.check(written)
        match written:
            case ast.AliasReference(name):
                return name.text, value
            case ast.SystemReference(field):
                return f"@{field}", value
            case ast.Variable(name):
                return name, value
            case _:
                return natural_name(written, value), value

    def check(self, expression: ast.Expression, aliases: Aliases | None = None) -> Expr:
        match expression:
            case ast.AliasReference(name):
                return self._column(name)
            case ast.SystemReference(field):
                return self._system_field(field)
            case ast.Variable(name) if name in self._parameters:
                return Param(name, self._parameters[name])
            case ast.Aggregate():
                message = "`return` of a change has no aggregates"
                self._errors.fail(expression.span, "T68", message)
            case ast.TextCall() | ast.NearestCall() | ast.Bm25Call() | ast.RrfCall():
                message = "`return` of a change has no text functions and ranks"
                self._errors.fail(expression.span, "T68", message)
            case ast.Variable(name) if self._scope.find(name) is None:
                self._refuse_variable(expression)
            case (
                ast.PropertyAccess(variable)
                | ast.SystemAccess(variable)
                | ast.WholeEntity(variable)
            ) if self._scope.find(variable.name) is None:
                self._refuse_variable(expression)
            case ast.WholeEntity():
                return self.entity(expression)
            case _:
                return super().check(expression, {})

    def _refuse_variable(self, expression: ast.Expression) -> NoReturn:
        message = "`return` of a change reads the written row: use the bare property name"
        self._errors.fail(expression.span, "T68", message)

    def _column(self, name: Name) -> Prop:
        word = name.text
        if all(isinstance(target, EdgeType) for target in self._targets):
            column = ENDPOINT_COLUMNS.get(word)
            if column is not None:
                return Prop(ROW, column, ID_TYPE)
        found = [target.properties.get(word) for target in self._targets]
        kinds = {prop.type.optional() for prop in found if prop is not None}
        if None in found or len(kinds) != 1:
            message = f"a written row of `{self._shown}` has no `{word}`"
            hint = did_you_mean(word, self._targets[0].properties)
            self._errors.fail(name.span, "T68", message, hint)
        first = found[0]
        assert first is not None
        return Prop(ROW, word, first.type if len(found) == 1 else first.type.optional())

    def _system_field(self, field: Name) -> Expr:
        known = ["id", "type"]
        if all(isinstance(target, EdgeType) for target in self._targets):
            known += ["src", "dst"]
        match field.text:
            case "id":
                return EntityId(ROW)
            case "type" if len(self._targets) == 1:
                return Constant(self._targets[0].name, ID_TYPE)
            case name if name in known:
                return Prop(ROW, f"@{name}" if name == "type" else name, ID_TYPE)
            case _:
                message = f"a written row of `{self._shown}` has no `@{field}`"
                self._errors.fail(field.span, "T68", message, did_you_mean(field.text, known))
