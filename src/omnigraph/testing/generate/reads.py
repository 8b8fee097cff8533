"""Random read queries that fit a catalog."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

from omnigraph.catalog.model import Catalog, EdgeType, Property
from omnigraph.language.nodes import Name
from omnigraph.language.query.ast import (
    ANONYMOUS,
    Aggregate,
    AggregateFunction,
    AliasReference,
    Binding,
    Bm25Call,
    Clause,
    Expression,
    Filter,
    Hops,
    IntegerLiteral,
    NearestCall,
    Negation,
    Now,
    Operator,
    OrderKey,
    Projection,
    PropertyAccess,
    PropertyMatch,
    ReadBody,
    RrfCall,
    StringLiteral,
    TextCall,
    TextClause,
    TextFunction,
    Traversal,
    Value,
    Variable,
)
from omnigraph.language.types import PropType, Scalar, compatible
from omnigraph.testing.generate.names import texts
from omnigraph.testing.generate.values import Parameters, literals, values

_COMPARISONS = [o for o in Operator if not o.value.isidentifier()]
_MAX_DEPTH = 2


class ReadBuilder:
    """Draws the clauses of one clause list, keeping track of what is bound."""

    def __init__(
        self, draw: st.DrawFn, catalog: Catalog, parameters: Parameters, depth: int = 0
    ) -> None:
        self.draw = draw
        self.catalog = catalog
        self.parameters = parameters
        self.depth = depth
        self.bound: dict[str, str] = {}

    def body(self) -> ReadBody:
        clauses = self.clauses()
        projections = self.projections()
        order = self.order(projections)
        limit = self.draw(st.one_of(st.none(), st.integers(0, 2**64 - 1)))
        if limit is None and order:
            limit = self.draw(st.integers(0, 50))
        return ReadBody(tuple(clauses), tuple(projections), tuple(order), limit)

    # -- clauses ----------------------------------------------------------------------------

    def clauses(self) -> list[Clause]:
        found: list[Clause] = [self.binding()]
        for _ in range(self.draw(st.integers(0, 5))):
            makers: list[Callable[[], Clause | None]] = [
                self.binding,
                self.traversal,
                self.filter,
                self.text_clause,
            ]
            if self.depth < _MAX_DEPTH:
                makers.append(self.negation)
            clause = self.draw(st.sampled_from(makers))()
            if clause is not None:
                found.append(clause)
        return found

    def binding(self) -> Binding:
        if self.draw(st.booleans()) and self.bound:
            name = self.draw(st.sampled_from(sorted(self.bound)))
            type_name = self.bound[name]
        else:
            name = self.fresh()
            type_name = self.draw(st.sampled_from(sorted(self.catalog.nodes)))
            self.bound[name] = type_name
        return Binding(Variable(name), Name(type_name), tuple(self.matches(type_name)))

    def matches(self, type_name: str) -> list[PropertyMatch]:
        usable = [p for p in self.properties(type_name) if not p.type.is_blob]
        if not usable:
            return []
        chosen = self.draw(st.lists(st.sampled_from(usable), max_size=2))
        return [PropertyMatch(Name(p.name), self.match_value(p.type)) for p in chosen]

    def match_value(self, kind: PropType) -> Value:
        """A match gives one element for a list property; `now()` only fits a plain DateTime."""
        wanted = kind.element() if kind.list else kind
        return values(self.draw, self.parameters, wanted, allow_now=not kind.list)

    def traversal(self) -> Traversal | None:
        if not self.catalog.edges:
            return None
        edge = self.draw(st.sampled_from(list(self.catalog.edges.values())))
        left_type, right_type = edge.from_type, edge.to_type
        if self.draw(st.booleans()) and not edge.is_self_typed:
            known = [n for n, t in self.bound.items() if t == edge.to_type]
            if known:
                left_type, right_type = right_type, left_type
                left = self.draw(st.sampled_from(sorted(known)))
                return self._traversal(edge, left, self.end(right_type))
        return self._traversal(edge, self.end(left_type), self.end(right_type))

    def _traversal(self, edge: EdgeType, left: str, right: str) -> Traversal:
        word = edge.name[0].lower() + edge.name[1:]
        if word == "not":
            word = "noT"
        hops = None
        if self.draw(st.booleans()):
            low = self.draw(st.integers(1, 3))
            hops = Hops(low, self.draw(st.integers(low, 5)))
        return Traversal(Variable(left), Name(word), Variable(right), hops)

    def end(self, type_name: str) -> str:
        """A bound variable of the type, a new one, or the anonymous one."""
        known = sorted(n for n, t in self.bound.items() if t == type_name)
        choices = ["new", ANONYMOUS, *(["known"] if known else [])]
        match self.draw(st.sampled_from(choices)):
            case "known":
                return self.draw(st.sampled_from(known))
            case "new":
                name = self.fresh()
                self.bound[name] = type_name
                return name
            case _:
                return ANONYMOUS

    def filter(self) -> Filter | None:
        prop = self.access(lambda kind: not kind.is_blob and not kind.is_vector)
        if prop is None:
            return None
        access, kind = prop
        if kind.list:
            needle = values(self.draw, self.parameters, kind.element())
            return Filter(access, Operator.CONTAINS, needle)
        operators = list(_COMPARISONS)
        if kind.is_text:
            operators += [Operator.CONTAINS, Operator.STARTS_WITH]
        operator = self.draw(st.sampled_from(operators))
        other = self.access(lambda k: not k.list and compatible(k, kind))
        if other is not None and self.draw(st.booleans()):
            return Filter(access, operator, other[0])
        return Filter(access, operator, values(self.draw, self.parameters, kind))

    def text_clause(self) -> TextClause | None:
        call = self.text_call()
        return None if call is None else TextClause(call)

    def negation(self) -> Negation:
        inner = ReadBuilder(self.draw, self.catalog, self.parameters, self.depth + 1)
        inner.bound = dict(self.bound)
        outer = self.draw(st.sampled_from(sorted(self.bound)))
        type_name = self.bound[outer]
        first = Binding(Variable(outer), Name(type_name), tuple(self.matches(type_name)))
        return Negation((first, *inner.clauses()))

    # -- expressions ------------------------------------------------------------------------

    def access(self, wanted: Callable[[PropType], bool]) -> tuple[PropertyAccess, PropType] | None:
        found = [
            (PropertyAccess(Variable(name), Name(p.name)), p.type)
            for name, type_name in sorted(self.bound.items())
            for p in self.properties(type_name)
            if wanted(p.type)
        ]
        return self.draw(st.sampled_from(found)) if found else None

    def text_query(self) -> Expression:
        if self.draw(st.booleans()):
            return self.parameters.use(self.draw, PropType(Scalar.STRING))
        return StringLiteral(self.draw(texts))

    def text_call(self) -> TextCall | None:
        prop = self.access(lambda kind: kind.is_text)
        if prop is None:
            return None
        function = self.draw(st.sampled_from(TextFunction))
        edits = None
        if function is TextFunction.FUZZY and self.draw(st.booleans()):
            edits = IntegerLiteral(self.draw(st.integers(0, 2)))
        return TextCall(function, prop[0], self.text_query(), edits)

    def bm25(self) -> Bm25Call | None:
        prop = self.access(lambda kind: kind.is_text)
        return None if prop is None else Bm25Call(prop[0], self.text_query())

    def nearest(self) -> NearestCall | None:
        prop = self.access(lambda kind: kind.is_vector)
        if prop is None:
            return None
        access, kind = prop
        if self.draw(st.booleans()):
            return NearestCall(access, self.draw(literals(kind)))
        return NearestCall(access, self.parameters.use(self.draw, kind.required()))

    def rank(self) -> Expression | None:
        first = self.nearest() or self.bm25()
        second = self.bm25() or self.nearest()
        if first is None or second is None:
            return first or second
        if not self.draw(st.booleans()):
            return first
        k = IntegerLiteral(self.draw(st.integers(1, 99))) if self.draw(st.booleans()) else None
        return RrfCall(first, second, k)

    # -- return and order -------------------------------------------------------------------

    def projections(self) -> list[Projection]:
        grouped = self.draw(st.booleans())
        found = [self.projected(grouped=grouped) for _ in range(self.draw(st.integers(1, 4)))]
        if grouped:
            function = self.draw(st.sampled_from(AggregateFunction))
            found.append(self.aggregate(function))
        projections: list[Projection] = []
        for i, expression in enumerate(found):
            alias = Name(f"alias{i}") if self.draw(st.booleans()) else None
            projections.append(Projection(expression, alias))
        return projections

    def projected(self, *, grouped: bool) -> Expression:
        options: list[Expression | None] = [
            Variable(self.draw(st.sampled_from(sorted(self.bound)))),
            self.text_call(),
            self.rank(),
        ]
        access = self.access(lambda kind: True)
        options.append(access[0] if access else None)
        if not grouped:
            options += [Now(), self.draw(literals(PropType(Scalar.I64)))]
        return self.draw(st.sampled_from([e for e in options if e is not None]))

    def aggregate(self, function: AggregateFunction) -> Aggregate:
        numeric = self.access(lambda kind: kind.scalar.is_numeric and not kind.list)
        if numeric is None or function is AggregateFunction.COUNT:
            node = Variable(self.draw(st.sampled_from(sorted(self.bound))))
            return Aggregate(AggregateFunction.COUNT, node)
        return Aggregate(function, numeric[0])

    def order(self, projections: list[Projection]) -> list[OrderKey]:
        """Keys are projections again, by alias or in full, as both kinds of query allow."""
        able = [p for p in projections if self.sortable(p.expression)]
        if not able:
            return []
        keys = []
        for projection in self.draw(st.lists(st.sampled_from(able), max_size=2)):
            expression = projection.expression
            if projection.alias is not None and self.draw(st.booleans()):
                expression = AliasReference(projection.alias)
            descending = self.draw(st.sampled_from([None, True, False]))
            keys.append(OrderKey(expression, descending))
        return keys

    def sortable(self, expression: Expression) -> bool:
        if not isinstance(expression, PropertyAccess):
            return True
        type_name = self.bound[expression.variable.name]
        kind = self.catalog.nodes[type_name].properties[expression.property.text].type
        return not (kind.list or kind.is_vector or kind.is_blob)

    # -- names ------------------------------------------------------------------------------

    def fresh(self) -> str:
        return f"v{self.depth}_{len(self.bound)}"

    def properties(self, type_name: str) -> list[Property]:
        return list(self.catalog.nodes[type_name].properties.values())
