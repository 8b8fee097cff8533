"""Expressions of a query, from syntax to typed plan expressions."""

from __future__ import annotations

from collections.abc import Container
from typing import assert_never

from omnigraph.diagnostics import did_you_mean
from omnigraph.language.query import ast
from omnigraph.language.query.habits import name_hint
from omnigraph.language.query.print_expression import print_expression
from omnigraph.language.syntax import Name
from omnigraph.language.types import PropType, Scalar
from omnigraph.plan.constants import (
    NOW,
    InferredParameters,
    ask_for_declaration,
    constant,
    is_number_list,
    undecided,
    vector_constant,
)
from omnigraph.plan.ir import (
    ID_TYPE,
    MATCH_TYPE,
    Aggregated,
    Block,
    BlockValue,
    Bm25,
    Constant,
    EntityId,
    Expr,
    MakeObject,
    Nearest,
    Param,
    Prop,
    Rrf,
    SystemField,
    TextMatch,
    has_aggregate,
    variables_of,
)
from omnigraph.plan.mentions import mentions_outer
from omnigraph.plan.operators import Aliases, OperatorChecker
from omnigraph.plan.scope import Bound, BoundEdge, BoundNode, BoundPath, Scope
from omnigraph.plan.type_errors import TypeErrors, find_property

_TEXT_CODES = {
    ast.TextFunction.SEARCH: "T19",
    ast.TextFunction.FUZZY: "T19",
    ast.TextFunction.MATCH_TEXT: "T20",
}
_MAX_EDITS = 2


def _properties(bound: Bound | None) -> Container[str]:
    return () if bound is None else bound.properties


def _has_extremes(kind: PropType) -> bool:
    ordered = (Scalar.STRING, Scalar.BOOL, Scalar.DATE, Scalar.DATETIME)
    return kind.scalar in ordered or kind.scalar.is_numeric


class ExpressionChecker(OperatorChecker):
    """Types the expressions of one clause list."""

    def __init__(self, errors: TypeErrors, scope: Scope) -> None:
        self._errors = errors
        self._scope = scope

    def check(self, expression: ast.Expression, aliases: Aliases | None = None) -> Expr:
        """Type an expression; `aliases` are those it may refer to."""
        match expression:
            case ast.PropertyAccess():
                return self.property(expression)
            case ast.Variable():
                return self.variable(expression)
            case ast.SystemAccess():
                return self._system_access(expression)
            case ast.Exists() | ast.AggregateBlock():
                return self._block(expression)
            case ast.Now():
                return NOW
            case ast.Aggregate():
                return self._aggregate(expression, aliases)
            case ast.WholeEntity():
                message = f"${expression.variable.name}.* is an object"
                self._errors.fail(expression.span, "T65", message, "use one of its properties")
            case ast.SystemReference(name):
                message = f"`@{name}` has no variable"
                self._errors.fail(expression.span, "T6", message, f"write `$x.@{name}`")
            case ast.AliasReference():
                return self._alias(expression, aliases or {})
            case ast.TextCall():
                return self._text(expression)
            case ast.NearestCall():
                return self._nearest(expression)
            case ast.Bm25Call():
                return self._bm25(expression)
            case ast.RrfCall():
                return self._rrf(expression)
            case (
                ast.StringLiteral()
                | ast.IntegerLiteral()
                | ast.FloatLiteral()
                | ast.BoolLiteral()
                | ast.DateLiteral()
                | ast.DateTimeLiteral()
                | ast.ListLiteral()
            ):
                return constant(self._errors, expression)
            case _:
                found = self.operator(expression, aliases)
                assert found is not None, "every other expression is an operator"
                return found

    def is_undeclared(self, expression: ast.Expression) -> bool:
        return (
            isinstance(expression, ast.Variable)
            and isinstance(self._scope.parameters, InferredParameters)
            and expression.name not in self._scope.parameters
            and self._scope.find(expression.name) is None
        )

    def is_entity(self, variable: ast.Variable) -> bool:
        return self._scope.find(variable.name) is not None

    def infer(self, expression: ast.Expression, wanted: PropType) -> None:
        parameters = self._scope.parameters
        if self.is_undeclared(expression):
            assert isinstance(expression, ast.Variable)
            assert isinstance(parameters, InferredParameters)
            parameters.infer(expression.name, wanted)

    def property(self, access: ast.PropertyAccess, code: str = "T6") -> Prop | SystemField:
        """A property of a node or edge, or a part of a path."""
        bound = self._bound(access.variable, code)
        if isinstance(bound, BoundNode):
            kind = find_property(self._errors, bound.node_type, access.property, code).type
        else:
            kind = self._common_property(bound, access.property, code)
        kind = kind.optional() if bound.optional else kind
        name = access.property.text
        if isinstance(bound, BoundPath):
            return SystemField(bound.name, name, kind)
        return Prop(bound.name, name, kind)

    def node_property(self, access: ast.PropertyAccess, code: str, word: str) -> Prop:
        """A property of a node: text and rank functions take no others."""
        bound = self._bound(access.variable, code)
        if not isinstance(bound, BoundNode):
            kind = "edge" if isinstance(bound, BoundEdge) else "path"
            message = f"{kind} variable `${access.variable.name}` cannot be used in {word}"
            self._errors.fail(access.span, "T23", message)
        found = self.property(access, code)
        assert isinstance(found, Prop)
        return found

    def _bound(self, variable: ast.Variable, code: str) -> Bound:
        found = self._scope.find(variable.name)
        if found is None:
            hint = did_you_mean(variable.name, self._scope.names())
            message = f"variable `${variable.name}` is not bound"
            self._errors.fail(variable.span, code, message, hint)
        return found

    def _common_property(self, bound: BoundEdge | BoundPath, name: Name, code: str) -> PropType:
        """A property that every edge type of a variable has, or a part of a path."""
        kind = bound.properties.get(name.text)
        if kind is None:
            hint = did_you_mean(name.text, bound.properties)
            if name.text in ("id", "src", "dst", "type") and isinstance(bound, BoundEdge):
                hint = f"write `@{name}`"
            is_edge = isinstance(bound, BoundEdge)
            shown = f"type `{bound.shown_type}`" if is_edge else "a path"
            message = f"{shown} has no property `{name}`"
            self._errors.fail(name.span, code, message, hint)
        return kind

    def _system_access(self, access: ast.SystemAccess) -> Expr:
        bound, name = self._bound(access.variable, "T6"), access.field.text
        fields = {BoundNode: ("id", "type"), BoundEdge: ("id", "type", "src", "dst")}
        known = fields.get(type(bound), ())
        if name not in known:
            shown = f"`${access.variable.name}` of type `{bound.shown_type}`"
            hint = did_you_mean(name, known)
            self._errors.fail(access.span, "T6", f"{shown} has no property `@{name}`", hint)
        kind = ID_TYPE.optional() if bound.optional else ID_TYPE
        if name == "id":
            return EntityId(bound.name, kind)
        return SystemField(bound.name, name, kind)

    # -- blocks -----------------------------------------------------------------------------

    def _block(self, written: ast.Exists | ast.AggregateBlock) -> BlockValue:
        scope = self._scope
        if scope.check_pattern is None:
            word = "exists" if isinstance(written, ast.Exists) else written.function.value
            self._errors.fail(written.span, "T44", f"`{word}` cannot appear in a change")
        if not mentions_outer(written.clauses, scope):
            word = "exists" if isinstance(written, ast.Exists) else written.function.value
            message = f"{word} block must reference at least one variable bound outside of it"
            self._errors.fail(written.span, "T39", message)
        inner = Scope(scope.parameters, parent=scope)
        pattern = scope.check_pattern(inner, written.clauses)
        outer = pattern.outer_variables()
        known = sorted((v, b.name, b.shown_type) for v in scope.names() if (b := scope.find(v)))
        name = scope.block_name(f"{print_expression(written)} {known}")
        if isinstance(written, ast.Exists):
            block = Block(tuple(sorted(outer)), pattern)
            return BlockValue(name, block, None, None, False, MATCH_TYPE)
        function, argument = written.function, None
        if function is ast.AggregateFunction.COLLECT:
            self._errors.fail(written.span, "T40", "collect cannot be a block")
        kind = PropType(Scalar.I64)
        if written.argument is not None:
            within = ExpressionChecker(self._errors, inner)
            as_call = ast.Aggregate(function, written.argument, span=written.span)
            checked = within.check(as_call)
            assert isinstance(checked, Aggregated)
            argument, kind = checked.argument, checked.type
            outer |= variables_of(argument) - pattern.introduced.keys()
        elif function is not ast.AggregateFunction.COUNT:
            message = f"{function.value} block needs an argument: `{function.value}($x.p) {{ … }}`"
            self._errors.fail(written.span, "T40", message)
        block = Block(tuple(sorted(outer)), pattern)
        return BlockValue(name, block, function, argument, written.distinct, kind)

    def variable(self, variable: ast.Variable) -> Param | EntityId:
        """A parameter, or else the id of a bound variable."""
        parameter = self._scope.parameters.get(variable.name)
        if parameter is not None:
            return Param(variable.name, parameter)
        bound = self._scope.find(variable.name)
        if bound is None:
            hint = did_you_mean(variable.name, (*self._scope.parameters, *self._scope.names()))
            message = f"variable `${variable.name}` is not bound"
            if isinstance(self._scope.parameters, InferredParameters):
                message = undecided(variable.name)
                hint = hint or ask_for_declaration(variable.name)
            self._errors.fail(variable.span, "T33", message, hint)
        if isinstance(bound, BoundPath):
            message = f"path variable `${variable.name}` has no value of its own"
            hint = f"read `${variable.name}.length`, `.cost`, `.nodes` or `.edges`"
            self._errors.fail(variable.span, "T23", message, hint)
        return EntityId(bound.name, ID_TYPE.optional() if bound.optional else ID_TYPE)

    def _alias(self, reference: ast.AliasReference, aliases: Aliases) -> Expr:
        expression = aliases.get(reference.name.text)
        if expression is None:
            message = f"unknown alias `{reference.name}`"
            self._errors.fail(reference.span, "T6", message, self._name_hint(reference, aliases))
        return expression

    def _name_hint(self, reference: ast.AliasReference, aliases: Aliases) -> str | None:
        """What was probably meant by a bare word that is not an alias."""
        word = reference.name.text
        owners = (v for v in self._scope.names() if word in _properties(self._scope.find(v)))
        owner = next(iter(sorted(owners)), None)
        if owner is not None:
            return f"a property is read from its variable: `${owner}.{word}`"
        return did_you_mean(word, aliases) or name_hint(word)

    # -- aggregates -------------------------------------------------------------------------

    def _aggregate(self, aggregate: ast.Aggregate, aliases: Aliases | None) -> Aggregated:
        function = aggregate.function
        argument: Expr
        is_collected = function is ast.AggregateFunction.COLLECT
        if is_collected and isinstance(aggregate.argument, ast.WholeEntity):
            argument = self.entity(aggregate.argument)
            if aggregate.distinct:
                message = (
                    f"${aggregate.argument.variable.name}.* is an object, which is not compared"
                )
                self._errors.fail(aggregate.argument.span, "T65", message)
        else:
            argument = self.check(aggregate.argument, aliases)
        if has_aggregate(argument):
            message = f"{function.value} cannot be applied to another aggregate"
            self._errors.fail(aggregate.argument.span, "T8", message)
        if aggregate.distinct and argument.type.is_blob:
            message = f"distinct values of {argument.type.display} cannot be found"
            self._errors.fail(aggregate.argument.span, "T8", message)
        kind = self._aggregate_type(aggregate, argument)
        return Aggregated(function, argument, kind, aggregate.distinct)

    def entity(self, whole: ast.WholeEntity) -> MakeObject:
        """`$x.*`: the id and all properties that can be shown."""
        bound = self._bound(whole.variable, "T33")
        if isinstance(bound, BoundPath):
            message = f"path variable `${whole.variable.name}` has no properties of its own"
            self._errors.fail(whole.span, "T23", message)
        kind = ID_TYPE.optional() if bound.optional else ID_TYPE
        fields: list[tuple[str, Expr]] = [("@id", EntityId(bound.name, kind))]
        if isinstance(bound, BoundEdge):
            names = ("type", "src", "dst")
            fields += [(f"@{name}", SystemField(bound.name, name, kind)) for name in names]
        for name, found in bound.properties.items():
            if not (found.is_vector or found.is_blob):
                shown = found.optional() if bound.optional else found
                fields.append((name, Prop(bound.name, name, shown)))
        kinds = tuple((name, value.type) for name, value in fields)
        kind = PropType(Scalar.OBJECT, nullable=True, fields=kinds)
        return MakeObject(bound.name, tuple(fields), kind)

    def _aggregate_type(self, aggregate: ast.Aggregate, argument: Expr) -> PropType:
        function = aggregate.function
        given = argument.type
        is_node = isinstance(argument, EntityId)
        shown = "a node" if is_node else given.display
        match function:
            case ast.AggregateFunction.COUNT:
                return PropType(Scalar.I64)
            case ast.AggregateFunction.SUM | ast.AggregateFunction.AVG:
                if is_node or given.list or not given.scalar.is_numeric:
                    message = f"{function.value} requires numeric type, got {shown}"
                    self._errors.fail(aggregate.argument.span, "T8", message)
                return PropType(Scalar.F64, nullable=True)
            case ast.AggregateFunction.MIN | ast.AggregateFunction.MAX:
                if is_node or given.list or not _has_extremes(given):
                    message = f"{function.value} requires numbers, text, Bool or dates, got {shown}"
                    self._errors.fail(aggregate.argument.span, "T8", message)
                return PropType(given.scalar, nullable=True, enum_values=given.enum_values)
            case ast.AggregateFunction.COLLECT:
                if given.list or given.is_vector or given.is_blob:
                    message = f"collect takes scalars and objects, got {shown}"
                    self._errors.fail(aggregate.argument.span, "T8", message)
                return PropType(given.scalar, list=True, fields=given.fields)
            case _:
                assert_never(function)

    # -- text and rank functions ------------------------------------------------------------

    def _text(self, call: ast.TextCall) -> TextMatch:
        word = call.function.value
        code = _TEXT_CODES[call.function]
        field = self._text_field(call.field, word, code)
        query = self._text_query(call.query, word, code)
        edits = None
        if call.edits is not None:
            edits = self._whole_number(call.edits, "T19", "fuzzy edits must be an integer")
            if isinstance(call.edits, ast.IntegerLiteral) and call.edits.value > _MAX_EDITS:
                message = f"fuzzy edits must be between 0 and {_MAX_EDITS}, got {call.edits.value}"
                self._errors.fail(call.edits.span, "T19", message)
        return TextMatch(call.function, field, query, edits)

    def _bm25(self, call: ast.Bm25Call) -> Bm25:
        field = self._text_field(call.field, "bm25", "T20")
        return Bm25(field, self._text_query(call.query, "bm25", "T20"))

    def _text_field(self, expression: ast.Expression, word: str, code: str) -> Prop:
        if not isinstance(expression, ast.PropertyAccess):
            message = f"{word} field must be String property of a variable, as in `$x.title`"
            self._errors.fail(expression.span, code, message)
        field = self.node_property(expression, "T6", word)
        if not field.type.is_text:
            message = f"{word} field must be String, got {field.type.display}"
            self._errors.fail(expression.span, code, message)
        return field

    def _text_query(self, expression: ast.Expression, word: str, code: str) -> Expr:
        self.infer(expression, PropType(Scalar.STRING))
        query = self.check(expression)
        no_value = {EntityId: "a node", Aggregated: "an aggregate"}.get(type(query))
        if no_value or not query.type.is_text:
            shown = no_value or query.type.display
            message = f"{word} query must be String, got {shown}"
            self._errors.fail(expression.span, code, message)
        return query

    def _nearest(self, call: ast.NearestCall) -> Nearest:
        field = self.node_property(call.field, "T15", "nearest")
        if not field.type.is_vector:
            message = f"nearest requires a Vector property, got {field.type.display}"
            self._errors.fail(call.field.span, "T15", message)
        bound = self._bound(call.field.variable, "T15")
        assert isinstance(bound, BoundNode)
        model = bound.node_type.properties[field.property].embed_model
        return Nearest(field, self._nearest_query(call, field.type), model)

    def _nearest_query(self, call: ast.NearestCall, vector: PropType) -> Expr:
        if isinstance(call.query, ast.ListLiteral) and is_number_list(call.query):
            self._check_dimension(call, len(call.query.items), vector)
            return vector_constant(call.query)
        self.infer(call.query, vector)
        query = self.check(call.query)
        if not isinstance(query, Constant | Param):
            message = "nearest query must be a literal or parameter"
            self._errors.fail(call.query.span, "T15", message)
        if query.type.is_vector:
            self._check_dimension(call, query.type.dimension, vector)
        elif not query.type.is_text:
            message = f"nearest query must be Vector(n) or String, got {query.type.display}"
            self._errors.fail(call.query.span, "T15", message)
        return query

    def _check_dimension(self, call: ast.NearestCall, given: int | None, vector: PropType) -> None:
        if given != vector.dimension:
            message = f"nearest vector dimension mismatch: property has {vector.dimension}"
            self._errors.fail(call.query.span, "T15", f"{message}, query has {given}")

    def _rrf(self, call: ast.RrfCall) -> Rrf:
        first = self._rank(call.first)
        second = self._rank(call.second)
        k = None
        if call.k is not None:
            k = self._whole_number(call.k, "T21", "rrf k must be an integer scalar")
            if isinstance(call.k, ast.IntegerLiteral) and call.k.value == 0:
                self._errors.fail(call.k.span, "T21", "rrf k must be greater than 0")
        return Rrf(first, second, k)

    def _rank(self, call: ast.NearestCall | ast.Bm25Call) -> Nearest | Bm25:
        return self._nearest(call) if isinstance(call, ast.NearestCall) else self._bm25(call)

    def _whole_number(self, expression: ast.Expression, code: str, message: str) -> Expr:
        """A setting of a function: an integer literal or an integer parameter."""
        number = self.check(expression)
        is_setting = isinstance(expression, ast.IntegerLiteral) or isinstance(number, Param)
        if not is_setting or number.type.list or not number.type.scalar.is_integer:
            self._errors.fail(expression.span, code, message)
        return number
