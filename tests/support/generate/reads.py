"""Random read queries that fit a catalog."""

from __future__ import annotations

from hypothesis import strategies as st

from omnigraph.catalog.model import Catalog
from omnigraph.language.query.ast import (
    Aggregate,
    AggregateFunction,
    AliasReference,
    Comparison,
    Expression,
    IntegerLiteral,
    Now,
    Operator,
    OrderKey,
    Projection,
    PropertyAccess,
    ReadBody,
    Result,
    Variable,
)
from omnigraph.language.syntax import Name
from omnigraph.language.types import PropType, Scalar
from tests.support.generate.clauses import ClauseBuilder, Range
from tests.support.generate.values import Parameters

_FUNCTIONS_OF_NUMBERS = (
    AggregateFunction.SUM,
    AggregateFunction.AVG,
    AggregateFunction.MIN,
    AggregateFunction.MAX,
)


class ReadBuilder:
    """Draws one read: clauses, then what is returned of them."""

    def __init__(
        self, draw: st.DrawFn, catalog: Catalog, parameters: Parameters, may: Range | None = None
    ) -> None:
        self.draw = draw
        self.clauses = ClauseBuilder(draw, catalog, parameters, may or Range())

    def body(self) -> ReadBody:
        clauses = self.clauses.clauses()
        grouped = self.draw(st.booleans())
        projections = self.projections(grouped=grouped)
        # Equal scores and sums may differ in their last digits, so they are not made distinct.
        distinct = not grouped and not self.clauses.may.search and self.draw(st.booleans())
        if distinct:
            projections = [p for p in projections if not self.is_blob(p, projections)]
            projections = projections or [Projection(self.variable())]
        order = self.order(projections, grouped=grouped or distinct)
        few = st.one_of(st.none(), st.integers(0, 12))
        limit = self.draw(st.one_of(few, st.integers(0, 2**64 - 1)))
        if limit is None and order and self.clauses.may.search:
            limit = self.draw(st.integers(0, 50))
        having = self.having(grouped=grouped) if self.draw(st.booleans()) else None
        result = Result(
            tuple(projections),
            distinct=distinct,
            having=() if having is None or distinct else (having,),
            order=tuple(order),
            offset=self.draw(st.one_of(st.none(), st.integers(0, 5))),
            limit=limit,
        )
        return ReadBody(tuple(clauses), result)

    # -- return -----------------------------------------------------------------------------

    def projections(self, *, grouped: bool) -> list[Projection]:
        found: list[Expression] = []
        if not grouped or self.draw(st.booleans()):
            count = self.draw(st.integers(1, 4))
            found = [self.projected(grouped=grouped) for _ in range(count)]
        if grouped:
            found += [self.aggregate() for _ in range(self.draw(st.integers(1, 3)))]
        projections: list[Projection] = []
        for i, expression in enumerate(self.draw(st.permutations(found))):
            alias = Name(f"alias{i}") if self.draw(st.booleans()) else None
            projections.append(Projection(expression, alias))
        aliases = [p.alias for p in projections if p.alias is not None]
        if self.draw(st.booleans()) and aliases:
            again = AliasReference(self.draw(st.sampled_from(aliases)))
            projections.append(Projection(again, Name("again")))
        return projections

    def projected(self, *, grouped: bool) -> Expression:
        options: list[Expression | None] = [self.variable(), self.clauses.system_access()]
        options.append(self.clauses.aggregate_block() if self.draw(st.booleans()) else None)
        access = self.clauses.access(lambda kind: True, edges=True)
        options.append(access[0] if access else None)
        if self.clauses.may.search:
            options += [self.clauses.text_call(), self.clauses.rank()]
        if not grouped:
            scalar = self.draw(st.sampled_from([Scalar.I64, Scalar.STRING, Scalar.DATE]))
            options += [Now(), self.clauses.value(PropType(scalar))]
            computed, test = self.clauses.computed(), self.clauses.comparison()
            options += [computed[0] if computed else None, test.condition if test else None]
        return self.draw(st.sampled_from([e for e in options if e is not None]))

    def is_blob(self, projection: Projection, among: list[Projection]) -> bool:
        expression = projection.expression
        if isinstance(expression, AliasReference):
            named = {p.alias.text: p.expression for p in among if p.alias}
            expression = named[expression.name.text]
        if not isinstance(expression, PropertyAccess):
            return False
        name, catalog = expression.variable.name, self.clauses.catalog
        if name in self.clauses.paths:
            return False
        if name in self.clauses.edges:
            properties = catalog.edges[self.clauses.edges[name][0]].properties
        else:
            properties = catalog.nodes[self.clauses.bound[name]].properties
        return properties[expression.property.text].type.is_blob

    def aggregate(self) -> Aggregate:
        found = self.any_aggregate()
        if isinstance(found.argument, PropertyAccess) and self.is_blob(
            Projection(found.argument), []
        ):
            return found
        return Aggregate(found.function, found.argument, self.draw(st.booleans()))

    def any_aggregate(self) -> Aggregate:
        ordered = (Scalar.BOOL, Scalar.DATE, Scalar.DATETIME)
        single = self.clauses.access(lambda kind: kind.scalar in ordered and not kind.list)
        if single is not None and self.draw(st.booleans()):
            functions = [AggregateFunction.MIN, AggregateFunction.MAX]
            return Aggregate(self.draw(st.sampled_from(functions)), single[0])
        listed = self.clauses.access(_is_sortable)
        if self.draw(st.booleans()):
            argument = listed[0] if listed is not None else self.variable()
            return Aggregate(AggregateFunction.COLLECT, argument)
        numeric = self.clauses.access(
            lambda kind: kind.scalar.is_numeric and not kind.list, edges=True
        )
        if numeric is not None and self.draw(st.booleans()):
            return Aggregate(self.draw(st.sampled_from(_FUNCTIONS_OF_NUMBERS)), numeric[0])
        text = self.clauses.access(lambda kind: kind.is_text, edges=True)
        if text is not None and self.draw(st.booleans()):
            functions = [AggregateFunction.MIN, AggregateFunction.MAX]
            return Aggregate(self.draw(st.sampled_from(functions)), text[0])
        counted = self.clauses.access(lambda kind: True, edges=True)
        if counted is not None and self.draw(st.booleans()):
            return Aggregate(AggregateFunction.COUNT, counted[0])
        return Aggregate(AggregateFunction.COUNT, self.variable())

    def variable(self) -> Variable:
        names = sorted([*self.clauses.bound, *self.clauses.edges])
        return Variable(self.draw(st.sampled_from(names)))

    # -- having and order -------------------------------------------------------------------

    def having(self, *, grouped: bool) -> Expression | None:
        """A condition on groups, or on rows where there are none."""
        if not grouped:
            test = self.clauses.comparison()
            return None if test is None else test.condition
        count = Aggregate(AggregateFunction.COUNT, self.variable(), self.draw(st.booleans()))
        operator = self.draw(st.sampled_from([Operator.GT, Operator.NE, Operator.LE]))
        return Comparison(count, operator, IntegerLiteral(self.draw(st.integers(0, 3))))

    def order(self, projections: list[Projection], *, grouped: bool) -> list[OrderKey]:
        """Keys are projections again, by alias or in full; without groups also anything else."""
        able = [p for p in projections if self.sortable(p.expression)]
        aliases = {p.alias.text: p.expression for p in projections if p.alias}
        able = [
            p
            for p in able
            if not isinstance(p.expression, AliasReference)
            or self.sortable(aliases[p.expression.name.text])
        ]
        keys = []
        for _ in range(self.draw(st.integers(0, 2))):
            expression: Expression | None = None
            if not grouped and self.draw(st.booleans()):
                access = self.clauses.access(_is_sortable, edges=True)
                expression = access[0] if access else self.variable()
            elif able:
                projection = self.draw(st.sampled_from(able))
                expression = projection.expression
                if projection.alias is not None and self.draw(st.booleans()):
                    expression = AliasReference(projection.alias)
            if expression is not None:
                descending, nulls_first = (
                    self.draw(st.sampled_from([None, True, False])) for _ in range(2)
                )
                keys.append(OrderKey(expression, descending, nulls_first))
        return keys

    def sortable(self, expression: Expression) -> bool:
        if isinstance(expression, Aggregate):
            return expression.function is not AggregateFunction.COLLECT
        if not isinstance(expression, PropertyAccess):
            return True
        name, catalog = expression.variable.name, self.clauses.catalog
        if name in self.clauses.paths:
            return expression.property.text in ("length", "cost")
        if name in self.clauses.edges:
            properties = catalog.edges[self.clauses.edges[name][0]].properties
        else:
            properties = catalog.nodes[self.clauses.bound[name]].properties
        return _is_sortable(properties[expression.property.text].type)


def _is_sortable(kind: PropType) -> bool:
    return not (kind.list or kind.is_vector or kind.is_blob)
