"""Random match clauses that fit a catalog, and the expressions over what they bind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from omnigraph.catalog.model import Catalog, EdgeType, Property
from omnigraph.language.query.ast import (
    ANONYMOUS,
    Binding,
    Bm25Call,
    Clause,
    Expression,
    Filter,
    Hops,
    IntegerLiteral,
    NearestCall,
    Negation,
    Operator,
    PropertyAccess,
    PropertyMatch,
    RrfCall,
    TextCall,
    TextClause,
    TextFunction,
    Traversal,
    Value,
    Variable,
)
from omnigraph.language.syntax import Name
from omnigraph.language.types import PropType, Scalar, compatible
from tests.support.generate.values import Literals, Parameters, literals, values

_COMPARISONS = [o for o in Operator if not o.value.isidentifier()]
_MAX_DEPTH = 2


@dataclass(frozen=True, slots=True)
class Range:
    """What generated reads may use: search functions, literals, and variables in one clause list.

    Every variable may multiply the rows, so those who run the queries keep them few.
    """

    search: bool = True
    variables: int = 12
    literals: Literals = literals


class ClauseBuilder:
    """Draws the clauses of one clause list, keeping track of what is bound."""

    def __init__(
        self,
        draw: st.DrawFn,
        catalog: Catalog,
        parameters: Parameters,
        may: Range,
        depth: int = 0,
    ) -> None:
        self.draw = draw
        self.catalog = catalog
        self.parameters = parameters
        self.may = may
        self.depth = depth
        self.bound: dict[str, str] = {}
        self.room = may.variables

    def clauses(self) -> list[Clause]:
        """At least one; afterwards a variable is bound."""
        start = self.traversal() if self.draw(st.booleans()) else None
        found: list[Clause] = [] if start is None else [start]
        if not self.bound:
            found.append(self.binding())
        for _ in range(self.draw(st.integers(0, 5))):
            makers: list[Callable[[], Clause | None]] = [
                self.binding,
                self.traversal,
                self.traversal,
                self.filter,
            ]
            if self.may.search:
                makers.append(self.text_clause)
            if self.depth < _MAX_DEPTH:
                makers.append(self.negation)
            clause = self.draw(st.sampled_from(makers))()
            if clause is not None:
                found.append(clause)
        return found

    # -- bindings and traversals ------------------------------------------------------------

    def binding(self) -> Binding:
        if self.bound and (not self.room or self.draw(st.booleans())):
            name = self.draw(st.sampled_from(sorted(self.bound)))
        else:
            name = self.introduce(self.draw(st.sampled_from(sorted(self.catalog.nodes))))
        type_name = self.bound[name]
        return Binding(Variable(name), Name(type_name), tuple(self.matches(type_name)))

    def matches(self, type_name: str) -> list[PropertyMatch]:
        usable = [p for p in self.properties(type_name) if not p.type.is_blob]
        if not usable:
            return []
        # Most bindings match everything: several conditions hardly ever leave a row.
        most = self.draw(st.sampled_from([0, 0, 1, 2]))
        chosen = self.draw(st.lists(st.sampled_from(usable), max_size=most))
        return [PropertyMatch(Name(p.name), self.match_value(p.type)) for p in chosen]

    def match_value(self, kind: PropType) -> Value:
        """A match gives one element for a list property; `now()` only fits a plain DateTime."""
        wanted = kind.element() if kind.list else kind
        return self.value(wanted, allow_now=not kind.list)

    def traversal(self) -> Traversal | None:
        if not self.catalog.edges or not self.room:
            return None
        edge = self.draw(st.sampled_from(list(self.catalog.edges.values())))
        if self.draw(st.booleans()) and not edge.is_self_typed:
            # Against the direction: one known end has to say so, the left one first.
            lefts, rights = self.known(edge.to_type), self.known(edge.from_type)
            if lefts:
                left = self.draw(st.sampled_from(lefts))
                return self._traversal(edge, left, self.end(edge.from_type))
            if rights:
                right = self.draw(st.sampled_from(rights))
                return self._traversal(edge, self.new_end(edge.to_type), right)
        return self._traversal(edge, self.end(edge.from_type), self.end(edge.to_type))

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
        """A bound variable of the type, or a new end."""
        known = self.known(type_name)
        if self.draw(st.booleans()) and known:
            return self.draw(st.sampled_from(known))
        return self.new_end(type_name)

    def new_end(self, type_name: str) -> str:
        """A new variable, or the anonymous one."""
        if self.draw(st.booleans()):
            return self.introduce(type_name)
        self.room = max(0, self.room - 1)
        return ANONYMOUS

    # -- conditions -------------------------------------------------------------------------

    def filter(self) -> Filter | None:
        prop = self.access(lambda kind: not kind.is_blob and not kind.is_vector)
        if prop is None:
            return None
        access, kind = prop
        if kind.list:
            return Filter(access, Operator.CONTAINS, self.operand(kind.element()))
        if self.draw(st.integers(0, 5)) == 0:
            listed = self.draw(self.may.literals(PropType(kind.scalar, list=True)))
            return Filter(listed, Operator.CONTAINS, access)
        operators = list(_COMPARISONS)
        if kind.is_text:
            operators += [Operator.CONTAINS, Operator.STARTS_WITH]
        sides = (access, self.operand(kind))
        operator = self.draw(st.sampled_from(operators))
        left, right = sides if self.draw(st.booleans()) else sides[::-1]
        if operator not in _COMPARISONS and isinstance(left, Variable):
            # A bare variable before a word would read as the start of a traversal.
            left, right = right, left
        return Filter(left, operator, right)

    def operand(self, kind: PropType) -> Expression:
        """Something to compare a property with: another one, or a value."""
        other = self.access(lambda k: not k.list and compatible(k, kind))
        if other is not None and self.draw(st.booleans()):
            return other[0]
        return self.value(PropType(kind.scalar))

    def text_clause(self) -> TextClause | None:
        call = self.text_call()
        return None if call is None else TextClause(call)

    def negation(self) -> Negation:
        few = replace(self.may, variables=min(3, self.may.variables))
        inner = ClauseBuilder(self.draw, self.catalog, self.parameters, few, self.depth + 1)
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

    def value(self, kind: PropType, *, allow_now: bool = True) -> Value:
        return values(
            self.draw, self.parameters, kind, allow_now=allow_now, literals=self.may.literals
        )

    def text_query(self) -> Expression:
        if self.draw(st.booleans()):
            return self.parameters.use(self.draw, PropType(Scalar.STRING))
        return self.draw(self.may.literals(PropType(Scalar.STRING)))

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
            return NearestCall(access, self.draw(self.may.literals(kind)))
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

    # -- names ------------------------------------------------------------------------------

    def introduce(self, type_name: str) -> str:
        """A new variable. One of a `not` block may be called like a later one outside of it."""
        name = f"v{len(self.bound)}"
        self.bound[name] = type_name
        self.room = max(0, self.room - 1)
        return name

    def known(self, type_name: str) -> list[str]:
        return sorted(name for name, known in self.bound.items() if known == type_name)

    def properties(self, type_name: str) -> list[Property]:
        return list(self.catalog.nodes[type_name].properties.values())
