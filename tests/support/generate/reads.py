"""Random read queries that fit a catalog."""

from __future__ import annotations

from hypothesis import strategies as st

from omnigraph.catalog.model import Catalog
from omnigraph.language.query.ast import (
    Aggregate,
    AggregateFunction,
    AliasReference,
    Expression,
    Now,
    OrderKey,
    Projection,
    PropertyAccess,
    ReadBody,
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
        order = self.order(projections, grouped=grouped)
        few = st.one_of(st.none(), st.integers(0, 12))
        limit = self.draw(st.one_of(few, st.integers(0, 2**64 - 1)))
        if limit is None and order and self.clauses.may.search:
            limit = self.draw(st.integers(0, 50))
        return ReadBody(tuple(clauses), tuple(projections), tuple(order), limit)

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
        options: list[Expression | None] = [self.variable()]
        access = self.clauses.access(lambda kind: True)
        options.append(access[0] if access else None)
        if self.clauses.may.search:
            options += [self.clauses.text_call(), self.clauses.rank()]
        if not grouped:
            scalar = self.draw(st.sampled_from([Scalar.I64, Scalar.STRING, Scalar.DATE]))
            options += [Now(), self.clauses.value(PropType(scalar))]
        return self.draw(st.sampled_from([e for e in options if e is not None]))

    def aggregate(self) -> Aggregate:
        numeric = self.clauses.access(lambda kind: kind.scalar.is_numeric and not kind.list)
        if numeric is not None and self.draw(st.booleans()):
            return Aggregate(self.draw(st.sampled_from(_FUNCTIONS_OF_NUMBERS)), numeric[0])
        text = self.clauses.access(lambda kind: kind.is_text)
        if text is not None and self.draw(st.booleans()):
            functions = [AggregateFunction.MIN, AggregateFunction.MAX]
            return Aggregate(self.draw(st.sampled_from(functions)), text[0])
        counted = self.clauses.access(lambda kind: True)
        if counted is not None and self.draw(st.booleans()):
            return Aggregate(AggregateFunction.COUNT, counted[0])
        return Aggregate(AggregateFunction.COUNT, self.variable())

    def variable(self) -> Variable:
        return Variable(self.draw(st.sampled_from(sorted(self.clauses.bound))))

    # -- order ------------------------------------------------------------------------------

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
                access = self.clauses.access(_is_sortable)
                expression = access[0] if access else self.variable()
            elif able:
                projection = self.draw(st.sampled_from(able))
                expression = projection.expression
                if projection.alias is not None and self.draw(st.booleans()):
                    expression = AliasReference(projection.alias)
            if expression is not None:
                keys.append(OrderKey(expression, self.draw(st.sampled_from([None, True, False]))))
        return keys

    def sortable(self, expression: Expression) -> bool:
        if not isinstance(expression, PropertyAccess):
            return True
        type_name = self.clauses.bound[expression.variable.name]
        properties = self.clauses.catalog.nodes[type_name].properties
        return _is_sortable(properties[expression.property.text].type)


def _is_sortable(kind: PropType) -> bool:
    return not (kind.list or kind.is_vector or kind.is_blob)
