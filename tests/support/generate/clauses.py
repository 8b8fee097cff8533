"""Random match clauses that fit a catalog, and the expressions over what they bind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from omnigraph.catalog.model import Catalog, EdgeType, Property
from omnigraph.language.query.ast import (
    ANONYMOUS,
    AggregateBlock,
    AggregateFunction,
    Arithmetic,
    ArithmeticOperator,
    Binding,
    Bm25Call,
    Call,
    Case,
    Clause,
    Comparison,
    EdgeName,
    EdgeSelection,
    Exists,
    Expression,
    Filter,
    Hops,
    IntegerLiteral,
    Junction,
    Logical,
    NearestCall,
    Negation,
    Not,
    NullTest,
    Operator,
    Optional,
    PropertyAccess,
    PropertyMatch,
    RrfCall,
    StringLiteral,
    SystemAccess,
    TextCall,
    TextFunction,
    Traversal,
    Variable,
    When,
)
from omnigraph.language.syntax import Name
from omnigraph.language.types import PropType, Scalar, compatible
from tests.support.generate.values import Literals, Parameters, literals, values

_COMPARISONS = [o for o in Operator if not o.value.isidentifier()]
_WHOLE = [o for o in ArithmeticOperator if o is not ArithmeticOperator.DIVIDE]
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
        self.edges: dict[str, tuple[str, ...]] = {}
        """The edge variables, with the names of their edge types."""
        self.paths: list[str] = []
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
                makers += [self.negation, self.existence, self.counted, self.optional]
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

    def match_value(self, kind: PropType) -> Expression:
        """A match gives one element for a list property; `now()` only fits a plain DateTime."""
        wanted = kind.element() if kind.list else kind
        return self.value(wanted, allow_now=not kind.list)

    def traversal(self) -> Traversal | None:
        if not self.catalog.edges or not self.room:
            return None
        if self.draw(st.booleans()):
            return self.selection()
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
        hops = self.hops() if self.draw(st.booleans()) else None
        edges = EdgeSelection((_edge_name(edge.name),))
        return Traversal(Variable(left), edges, Variable(right), hops)

    def hops(self, lowest: int = 3) -> Hops:
        low = self.draw(st.integers(1, lowest))
        return Hops(low, self.draw(st.integers(low, 5)))

    def selection(self) -> Traversal:
        """Edges of several types or any, either way, with a variable, or the shortest path."""
        first = self.draw(st.sampled_from(list(self.catalog.edges.values())))
        ends = (first.from_type, first.to_type)
        alike = [e for e in self.catalog.edges.values() if (e.from_type, e.to_type) == ends]
        members = self.draw(
            st.lists(st.sampled_from(alike), max_size=2, unique_by=lambda e: e.name)
        )
        chosen = [first, *(e for e in members if e is not first)]
        names = tuple(_edge_name(e.name) for e in chosen)
        undirected = first.is_self_typed and self.draw(st.booleans())
        before = set(self.bound)
        left, right = self.end(ends[0]), self.end(ends[1])
        if {left, right} <= before and self.draw(st.booleans()):
            names = ()
        types = tuple(e.name for e in chosen) if names else self.joining(ends)
        edges = EdgeSelection(names, undirected)
        hops, variable, by = None, None, None
        is_shortest = first.is_self_typed and self.draw(st.integers(0, 3)) == 0
        if is_shortest:
            by = self.weight(types) if self.draw(st.booleans()) else None
            hops = self.hops(3 if by is None else 1)
            variable = self.named("p")
            if variable is not None and variable.name != ANONYMOUS:
                self.paths.append(variable.name)
        elif self.draw(st.booleans()):
            variable = self.named("e")
            if variable is not None and variable.name != ANONYMOUS:
                self.edges[variable.name] = types
        if variable is None and not is_shortest and first.is_self_typed:
            hops = self.hops() if self.draw(st.booleans()) else None
        return Traversal(Variable(left), edges, Variable(right), hops, variable, is_shortest, by)

    def joining(self, ends: tuple[str, str]) -> tuple[str, ...]:
        """The edge types that `*` stands for."""
        found = self.catalog.edges.values()
        return tuple(
            e.name for e in found if ends in ((e.from_type, e.to_type), (e.to_type, e.from_type))
        )

    def weight(self, types: tuple[str, ...]) -> Name | None:
        """A property that every edge type has and that is never negative."""
        edges = [self.catalog.edges[name] for name in types]
        able = [
            name
            for name, prop in edges[0].properties.items()
            if prop.type.scalar in (Scalar.U32, Scalar.U64) and not prop.type.list
            if all(name in edge.properties for edge in edges)
        ]
        return Name(self.draw(st.sampled_from(able))) if able else None

    def named(self, letter: str) -> Variable | None:
        """A new variable for an edge or path, the anonymous one, or none."""
        name = f"{letter}{len(self.edges) + len(self.paths)}_{self.depth}"
        return self.draw(st.sampled_from([None, Variable(ANONYMOUS), Variable(name)]))

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
        """A comparison, or conditions joined in a random way."""
        first = self.comparison()
        if first is None or not self.draw(st.booleans()):
            return first
        return Filter(self.condition(first.condition, depth=2))

    def condition(self, leaf: Expression, depth: int) -> Expression:
        """A Boolean expression around a comparison."""
        if not depth:
            return leaf
        found = self.comparison()
        other = leaf if found is None else self.condition(found.condition, depth - 1)
        access = self.access(lambda kind: not kind.is_blob)
        options: list[Expression] = [
            leaf,
            Not(leaf),
            Logical(Junction.AND, (leaf, other)),
            Logical(Junction.OR, (leaf, other)),
            Logical(Junction.OR, (Not(other), leaf)),
        ]
        if access is not None:
            test = NullTest(access[0], self.draw(st.booleans()))
            options += [Logical(Junction.OR, (test, leaf)), Logical(Junction.AND, (leaf, test))]
        options += [test for test in (self.membership(), self.computed_test()) if test is not None]
        return self.draw(st.sampled_from(options))

    def membership(self) -> Comparison | None:
        prop = self.access(lambda kind: not (kind.list or kind.is_blob or kind.is_vector))
        if prop is None:
            return None
        listed = self.draw(self.may.literals(PropType(prop[1].scalar, list=True)))
        return Comparison(prop[0], Operator.IN, listed)

    def computed_test(self) -> Comparison | None:
        value = self.computed()
        if value is None:
            return None
        expression, scalar = value
        limit = self.draw(self.may.literals(PropType(scalar)))
        return Comparison(expression, self.draw(st.sampled_from(_COMPARISONS)), limit)

    def computed(self) -> tuple[Expression, Scalar] | None:
        """Something computed of a property, and its type; small enough not to leave 64 bits."""
        if self.draw(st.booleans()):
            found = self.called()
            if found is not None:
                return found
        integer = self.access(lambda kind: kind.scalar is Scalar.I32 and not kind.list)
        if integer is not None and self.draw(st.booleans()):
            one = IntegerLiteral(self.draw(st.integers(-3, 3)))
            operator = self.draw(st.sampled_from(_WHOLE))
            both = Arithmetic(integer[0], operator, one)
            chosen = Case((When(NullTest(integer[0]), one),), both)
            coalesced = Call(Name("coalesce"), (both, one))
            numbers: list[Expression] = [both, chosen, coalesced]
            return self.draw(st.sampled_from(numbers)), Scalar.I64
        text = self.access(lambda kind: kind.is_text)
        if text is None:
            return None
        if self.draw(st.booleans()):
            return Call(Name("length"), (text[0],)), Scalar.I64
        joined = Arithmetic(text[0], ArithmeticOperator.ADD, StringLiteral("a"))
        part = Call(Name("substring"), (text[0], IntegerLiteral(1), IntegerLiteral(2)))
        texts: list[Expression] = [joined, part]
        return self.draw(st.sampled_from(texts)), Scalar.STRING

    def called(self) -> tuple[Expression, Scalar] | None:
        """A function of a property and constants."""
        kinds: dict[Scalar, list[tuple[str, tuple[Expression, ...], Scalar]]] = {
            Scalar.STRING: [
                ("lower", (), Scalar.STRING),
                ("upper", (), Scalar.STRING),
                ("trim", (), Scalar.STRING),
                ("matches", (StringLiteral("^[ax]|é"),), Scalar.BOOL),
            ],
            Scalar.DATE: [
                (name, (*given, StringLiteral(unit)), scalar)
                for unit in ("day", "week", "month", "quarter", "year")
                for name, given, scalar in (
                    ("date_trunc", (), Scalar.DATE),
                    ("date_part", (), Scalar.I64),
                    ("date_add", (IntegerLiteral(2),), Scalar.DATE),
                )
            ],
            Scalar.DATETIME: [
                ("date_trunc", (StringLiteral("hour"),), Scalar.DATETIME),
                ("date_part", (StringLiteral("minute"),), Scalar.I64),
                ("to_date", (), Scalar.DATE),
            ],
            Scalar.F64: [(name, (), Scalar.F64) for name in ("abs", "floor", "ceil", "round")],
        }
        prop = self.access(lambda kind: kind.list or kind.scalar in kinds)
        if prop is None or prop[1].enum_values is not None:
            return None
        access, kind = prop
        if kind.list and kind.scalar in (Scalar.STRING, Scalar.I32):
            items = self.draw(self.may.literals(PropType(kind.scalar, list=True)))
            name = self.draw(st.sampled_from(["contains_any", "contains_all"]))
            return Call(Name(name), (access, items)), Scalar.BOOL
        if kind.list or kind.is_vector:
            return (Call(Name("size"), (access,)), Scalar.I64) if kind.list else None
        name, given, scalar = self.draw(st.sampled_from(kinds[kind.scalar]))
        return Call(Name(name), (access, *given)), scalar

    def comparison(self) -> Filter | None:
        prop = self.access(lambda kind: not kind.is_blob and not kind.is_vector, edges=True)
        if prop is None:
            return None
        access, kind = prop
        if kind.list:
            return _filter(access, Operator.CONTAINS, self.operand(kind.element()))
        if self.draw(st.integers(0, 5)) == 0:
            listed = self.draw(self.may.literals(PropType(kind.scalar, list=True)))
            return _filter(listed, Operator.CONTAINS, access)
        operators = list(_COMPARISONS)
        if kind.is_text:
            operators += [Operator.CONTAINS, Operator.STARTS_WITH, Operator.ENDS_WITH]
        sides = (access, self.operand(kind))
        operator = self.draw(st.sampled_from(operators))
        left, right = sides if self.draw(st.booleans()) else sides[::-1]
        if operator not in _COMPARISONS and isinstance(left, Variable):
            # A bare variable before a word would read as the start of a traversal.
            left, right = right, left
        return _filter(left, operator, right)

    def operand(self, kind: PropType) -> Expression:
        """Something to compare a property with: another one, or a value."""
        other = self.access(lambda k: not k.list and compatible(k, kind))
        if other is not None and self.draw(st.booleans()):
            return other[0]
        return self.value(PropType(kind.scalar))

    def text_clause(self) -> Filter | None:
        call = self.text_call()
        return None if call is None else Filter(call)

    def negation(self) -> Negation:
        return Negation(self.block(3)[1])

    def existence(self) -> Filter:
        return Filter(Exists(self.block(3)[1]))

    def counted(self) -> Filter:
        operator = self.draw(st.sampled_from(_COMPARISONS))
        number = IntegerLiteral(self.draw(st.integers(0, 3)))
        return Filter(Comparison(self.aggregate_block(), operator, number))

    def aggregate_block(self) -> AggregateBlock:
        """A number made of the solutions of a block."""
        inner, clauses = self.block()
        argument = inner.access(lambda kind: kind.scalar.is_numeric and not kind.list, edges=True)
        if argument is None or self.draw(st.booleans()):
            return AggregateBlock(AggregateFunction.COUNT, clauses)
        functions = [AggregateFunction.COUNT, AggregateFunction.MIN, AggregateFunction.MAX]
        return AggregateBlock(
            self.draw(st.sampled_from(functions)), clauses, argument[0], self.draw(st.booleans())
        )

    def optional(self) -> Optional:
        """A block whose variables can be used behind it."""
        inner, clauses = self.block()
        self.bound, self.edges = inner.bound, inner.edges
        self.paths, self.room = inner.paths, max(0, self.room - 2)
        return Optional(clauses)

    def block(self, most: int = 1) -> tuple[ClauseBuilder, tuple[Clause, ...]]:
        """Clauses about an outer variable, and what they bind.

        All solutions of most blocks are tried one by one, so they bind few variables.
        """
        few = replace(self.may, variables=min(most, self.may.variables))
        inner = ClauseBuilder(self.draw, self.catalog, self.parameters, few, self.depth + 1)
        inner.bound, inner.edges = dict(self.bound), dict(self.edges)
        inner.paths = list(self.paths)
        outer = self.draw(st.sampled_from(sorted(self.bound)))
        type_name = self.bound[outer]
        first = Binding(Variable(outer), Name(type_name), tuple(self.matches(type_name)))
        return inner, (first, *inner.clauses())

    # -- expressions ------------------------------------------------------------------------

    def access(
        self, wanted: Callable[[PropType], bool], *, edges: bool = False
    ) -> tuple[Expression, PropType] | None:
        found: list[tuple[Expression, PropType]] = []
        if edges:
            found += self.edge_access(wanted)
        found += [
            (PropertyAccess(Variable(name), Name(p.name)), p.type)
            for name, type_name in sorted(self.bound.items())
            for p in self.properties(type_name)
            if wanted(p.type)
        ]
        return self.draw(st.sampled_from(found)) if found else None

    def edge_access(
        self, wanted: Callable[[PropType], bool]
    ) -> list[tuple[PropertyAccess, PropType]]:
        """Properties of edges, those that all types of an edge variable have alike."""
        found = []
        for name, types in sorted(self.edges.items()):
            members = [self.catalog.edges[member].properties for member in types]
            for prop in members[0].values() if members else ():
                kinds = {other[prop.name].type for other in members if prop.name in other}
                if (
                    wanted(prop.type)
                    and kinds == {prop.type}
                    and all(prop.name in other for other in members)
                ):
                    found.append((PropertyAccess(Variable(name), Name(prop.name)), prop.type))
        return found

    def system_access(self) -> Expression:
        """An `@` field, or a part of a path."""
        found: list[Expression] = []
        for name in sorted(self.bound):
            found += [SystemAccess(Variable(name), Name(field)) for field in ("id", "type")]
        for name in sorted(self.edges):
            fields = ("id", "type", "src", "dst")
            found += [SystemAccess(Variable(name), Name(field)) for field in fields]
        for name in self.paths:
            parts = ("length", "cost", "nodes", "edges")
            found += [PropertyAccess(Variable(name), Name(part)) for part in parts]
        return self.draw(st.sampled_from(found))

    def value(self, kind: PropType, *, allow_now: bool = True) -> Expression:
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
        assert isinstance(access, PropertyAccess), "vectors are searched in patterns only"
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


def _edge_name(name: str) -> EdgeName:
    word = name[0].lower() + name[1:]
    return EdgeName("noT" if word == "not" else word)


def _filter(left: Expression, operator: Operator, right: Expression) -> Filter:
    return Filter(Comparison(left, operator, right))
