"""Checks a mutation query and builds its plan: statements are checked one by one, in order."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from omnigraph.catalog.constraints import identity_group
from omnigraph.catalog.model import Catalog, EdgeType, EntityType, NodeType
from omnigraph.diagnostics import did_you_mean
from omnigraph.language.query import ast
from omnigraph.language.query.ast import (
    Assignment,
    Delete,
    Expression,
    Insert,
    MatchStatement,
    MutationBody,
    Query,
    Statement,
    Update,
)
from omnigraph.language.syntax import Name, Source
from omnigraph.language.types import PropType
from omnigraph.plan.changes import (
    Action,
    Assign,
    DeleteEdges,
    DeleteMatched,
    DeleteNodes,
    InsertEdge,
    InsertNode,
    MatchChange,
    MutationPlan,
    Returning,
    StatementPlan,
    UpdateEdges,
    UpdateMatched,
    UpdateNodes,
    Upsert,
)
from omnigraph.plan.check_match import MatchedChecker, match_plan
from omnigraph.plan.check_read import check_pattern, named_variables
from omnigraph.plan.check_result import name_columns
from omnigraph.plan.check_returning import ReturnChecker
from omnigraph.plan.check_rows import ENDPOINT_COLUMNS, RowChecker
from omnigraph.plan.constants import InferredParameters, with_variable
from omnigraph.plan.declared_parameters import parameter_specs, parameter_types
from omnigraph.plan.ir import (
    ID_TYPE,
    EntityId,
    Expr,
    Param,
    ParameterSpec,
)
from omnigraph.plan.scope import Scope
from omnigraph.plan.type_errors import TypeErrors


def check_mutation(source: Source, catalog: Catalog, query: Query) -> MutationPlan:
    """Type-check a mutation. Raises `TypeCheckError`; the first error ends the check."""
    errors = TypeErrors(source)
    if not isinstance(query.body, MutationBody):
        message = "read query cannot be typechecked with mutation-query API"
        errors.fail(query.name.span, "T35", message)
    parameters = parameter_types(errors, query)
    checker = _MutationChecker(errors, catalog, query, parameters)
    statements = tuple(checker.statement(s) for s in query.body.statements)
    return MutationPlan(query.name.text, parameter_specs(errors, query, parameters), statements)


def check_condition(
    source: Source, target: EntityType, written: Expression
) -> tuple[Expr, tuple[ParameterSpec, ...]]:
    """Type-check a condition that stands alone, and find out its parameters.

    It means what it means behind `where` in a mutation of the type. Raises `TypeCheckError`.
    """
    parameters = InferredParameters()
    checker = RowChecker(TypeErrors(source), parameters, target, "`where`")
    condition = checker.condition(written)
    return condition, tuple(ParameterSpec(*found, is_inferred=True) for found in parameters.items())


class _MutationChecker:
    def __init__(
        self,
        errors: TypeErrors,
        catalog: Catalog,
        query: Query,
        parameters: Mapping[str, PropType],
    ) -> None:
        self._errors = errors
        self._parameters = parameters
        self._catalog = catalog
        self._query = query
        self._inserted: dict[str, str] = {}
        """The types of variables for what earlier statements wrote."""
        self._matched: MatchedChecker | None = None
        """What checks values inside a match statement."""

    def statement(self, statement: Statement) -> StatementPlan:
        if isinstance(statement, MatchStatement):
            return self._match(statement)
        target = self._target(statement.type)
        returning = self._returning(statement.returning, (target,))
        match statement:
            case Insert():
                return self._insert(statement, target, returning)
            case ast.Upsert():
                return self._upsert(statement, target, returning)
            case Update():
                self._refuse_identity(statement.assignments, target)
                assigned = self._assignments(statement.assignments, target, rows=True)
                values = tuple(assigned.values())
                condition = self._condition(statement.condition, target)
                if isinstance(target, EdgeType):
                    return UpdateEdges(target.name, values, condition, returning)
                return UpdateNodes(target.name, values, condition, returning)
            case Delete():
                condition = self._condition(statement.condition, target)
                if isinstance(target, NodeType):
                    return DeleteNodes(target.name, condition, returning)
                return DeleteEdges(target.name, condition, returning)

    def _condition(self, written: Expression, target: EntityType) -> Expr:
        return RowChecker(self._errors, self._parameters, target, "`where`").condition(written)

    # -- match ------------------------------------------------------------------------------

    def _match(self, statement: MatchStatement) -> MatchChange:
        scope, pattern = check_pattern(
            self._errors, self._catalog, self._parameters, statement.clauses
        )
        known, inserted = self._parameters, dict(self._inserted)
        actions: list[Action] = []
        made: list[str] = []
        for action in statement.actions:
            scope.parameters = self._parameters
            self._matched = MatchedChecker(self._errors, scope, self._parameters)
            actions.append(self._action(action, self._matched))
            if isinstance(plan := actions[-1], InsertNode | InsertEdge | Upsert) and plan.variable:
                made.append(plan.variable)
        self._matched = None
        # What an action made is known inside of its statement only.
        self._parameters, self._inserted = known, inserted
        match = match_plan(self._query.name.text, pattern, named_variables(scope), actions, made)
        return MatchChange(match, tuple(actions), tuple(made))

    def _action(self, action: ast.Action, matched: MatchedChecker) -> Action:
        match action:
            case Insert():
                target = self._target(action.type)
                return self._insert(action, target, self._returning(action.returning, (target,)))
            case ast.Upsert():
                target = self._target(action.type)
                return self._upsert(action, target, self._returning(action.returning, (target,)))
            case ast.UpdateMatched():
                name, targets = matched.target(self._catalog, action.variable, "updated")
                self._refuse_identity(action.assignments, targets[0])
                found = [
                    self._assignments(action.assignments, target, rows=True) for target in targets
                ]
                for target, assigned in zip(targets, found, strict=True):
                    matched.require_same(action.assignments, targets[0], target, found[0], assigned)
                values = tuple(found[0].values())
                returning = self._returning(action.returning, targets)
                return UpdateMatched(name, tuple(t.table_key for t in targets), values, returning)
            case ast.DeleteMatched():
                deleted: dict[str, tuple[EntityType, ...]] = {}
                for variable in action.variables:
                    name, targets = matched.target(self._catalog, variable, "deleted")
                    deleted[name] = targets
                kinds = tuple(
                    dict.fromkeys(t.table_key for found in deleted.values() for t in found)
                )
                types = tuple(self._catalog.entity(key) for key in kinds)
                return DeleteMatched(
                    tuple((n, tuple(t.table_key for t in found)) for n, found in deleted.items()),
                    self._returning(action.returning, types),
                )

    def _refuse_identity(self, assignments: tuple[Assignment, ...], target: EntityType) -> None:
        """Edges keep their ends, and the properties their ids come from."""
        if not isinstance(target, EdgeType):
            return
        fixed = {*ENDPOINT_COLUMNS, *(identity_group(target) or ())}
        for assignment in assignments:
            if assignment.property.text in fixed:
                message = f"`{assignment.property}` identifies edges of `{target.name}`"
                hint = "delete the edge and insert another one"
                shown = f"{message} and cannot be assigned"
                self._errors.fail(assignment.property.span, "T67", shown, hint)

    def _target(self, name: Name) -> EntityType:
        target = self._catalog.nodes.get(name.text) or self._catalog.edges.get(name.text)
        if target is None:
            known = (*self._catalog.nodes, *self._catalog.edges)
            message = f"unknown node/edge type `{name}`"
            self._errors.fail(name.span, "T10", message, did_you_mean(name.text, known))
        return target

    # -- insert -----------------------------------------------------------------------------

    def _insert(
        self, statement: Insert, target: EntityType, returning: Returning | None
    ) -> InsertNode | InsertEdge:
        assigned = self._assignments(statement.assignments, target, rows=False)
        if isinstance(target, NodeType):
            self._require_properties(target, assigned)
            name = self._inserted_variable(statement.variable, target)
            return InsertNode(target.name, tuple(assigned.values()), name, returning)
        ends = self._ends(statement, target, assigned)
        self._require_properties(target, assigned)
        source, destination = ends
        name = self._inserted_variable(statement.variable, target)
        values = tuple(assigned.values())
        return InsertEdge(target.name, source, destination, values, name, returning)

    def _upsert(
        self, statement: ast.Upsert, target: EntityType, returning: Returning | None
    ) -> Upsert:
        identity = target.key if isinstance(target, NodeType) else target.identity
        if identity is None:
            what = "a key" if isinstance(target, NodeType) else "an identity"
            message = f"upsert of `{target.name}` needs {what}, and the type has none"
            self._errors.fail(statement.type.span, "T67", message, "use `insert` or `update`")
        shown = {column: word for word, column in ENDPOINT_COLUMNS.items()}
        is_edge = isinstance(target, EdgeType)
        fixed = {shown.get(name, name) if is_edge else name for name in identity}
        assigned = self._assignments(statement.assignments, target, rows=True, fixed=fixed)
        for name in identity:
            word = shown.get(name, name) if is_edge else name
            if word not in assigned:
                message = (
                    f"upsert of `{target.name}` must assign `{word}`, which identifies the row"
                )
                self._errors.fail(statement.type.span, "T67", message)
        ends: dict[str, Assign] = {}
        if isinstance(target, EdgeType):
            source, destination = self._ends(statement, target, assigned)
            ends = {
                "src": Assign("src", source, ID_TYPE),
                "dst": Assign("dst", destination, ID_TYPE),
            }
        self._require_properties(target, assigned)
        variable = self._inserted_variable(statement.variable, target)
        values = (*ends.values(), *assigned.values())
        return Upsert(target.table_key, values, variable, returning)

    def _ends(
        self, statement: Insert | ast.Upsert, target: EdgeType, assigned: dict[str, Assign]
    ) -> tuple[Expr, Expr]:
        """The endpoints, taken out of the assignments."""
        ends: list[Expr] = []
        for word, type_name in zip(
            ENDPOINT_COLUMNS, (target.from_type, target.to_type), strict=True
        ):
            end = assigned.pop(word, None)
            if end is None:
                message = f"insert for `{target.name}` must provide required endpoint `{word}`"
                self._errors.fail(self._query.name.span, "T12", message)
            known = self._type_of(end.value)
            if known is not None and known != type_name:
                span = next(a.span for a in statement.assignments if a.property.text == word)
                message = f"`{word}` of `{target.name}` is a `{type_name}`, but got a `{known}`"
                self._errors.fail(span, "T5", message)
            ends.append(end.value)
        source, destination = ends
        return source, destination

    def _type_of(self, end: Expr) -> str | None:
        """The type of the entity whose id is given as an end, if that is known."""
        if isinstance(end, Param):
            return self._inserted.get(end.name)
        if isinstance(end, EntityId) and self._matched is not None:
            return self._matched.shown_type(end.variable)
        return None

    def _inserted_variable(self, variable: ast.Variable | None, target: EntityType) -> str | None:
        """A name for the id of what a statement writes; later statements know it as text."""
        if variable is None or variable.name == ast.ANONYMOUS:
            return None
        if variable.name in self._parameters or self._is_matched(variable.name):
            message = f"`${variable.name}` is already a parameter or an entity"
            self._errors.fail(variable.span, "T34", message)
        self._parameters = with_variable(self._parameters, variable.name, ID_TYPE)
        self._inserted[variable.name] = target.name
        return variable.name

    def _is_matched(self, name: str) -> bool:
        return self._matched is not None and self._matched.scope.find(name) is not None

    # -- return -----------------------------------------------------------------------------

    def _returning(
        self, written: ast.Returning | None, targets: tuple[EntityType, ...]
    ) -> Returning | None:
        if written is None:
            return None
        scope = Scope(self._parameters) if self._matched is None else self._matched.scope
        rows = ReturnChecker(self._errors, scope, self._parameters, targets)
        shown = []
        for projection in written.projections:
            name, value = rows.returned(projection.expression)
            alias = projection.alias
            shown.append((projection, name if alias is None else alias.text, value))
        return Returning(name_columns(shown), written.distinct)

    def _require_properties(self, target: EntityType, assigned: Mapping[str, Assign]) -> None:
        for name, prop in target.properties.items():
            if prop.type.nullable or name in assigned:
                continue
            message = f"insert for `{target.name}` must provide non-nullable property `{name}`"
            if prop.embed_source is not None:
                if prop.embed_source in assigned:
                    continue
                message += f" or @embed source `{prop.embed_source}`"
            self._errors.fail(self._query.name.span, "T12", message)

    # -- parts ------------------------------------------------------------------------------

    def _assignments(
        self,
        assignments: tuple[Assignment, ...],
        target: EntityType,
        *,
        rows: bool,
        fixed: Collection[str] = (),
    ) -> dict[str, Assign]:
        """Assigned values, which may read the row if there are `rows`, but for `fixed` names."""
        if not assignments:
            message = f"mutation of `{target.name}` requires at least one assignment"
            self._errors.fail(self._query.name.span, "T10", message)
        names = RowChecker(self._errors, self._parameters, target, "`set`")
        place = "the identity of an upsert" if rows else "an insert"
        constants = self._matched or RowChecker(self._errors, self._parameters, None, place)
        rows = rows and self._matched is None
        assigned: dict[str, Assign] = {}
        for assignment in assignments:
            name = assignment.property
            prop_type = names.property_type(target, name)
            if name.text in assigned:
                message = f"duplicate assignment to property `{name}`"
                self._errors.fail(assignment.span, "T13", message)
            checker = names if rows and name.text not in fixed else constants
            value = checker.assigned(name, prop_type, assignment.value)
            assigned[name.text] = Assign(name.text, value, prop_type)
        return assigned
