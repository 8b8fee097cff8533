"""The physical planner: from a pattern to the order of steps that find its rows.

It starts with few nodes and follows the edges that multiply rows least. A part of the pattern that
is connected to the rest by one edge, and whose nodes are not read later, is a subpattern: it is counted
on degrees instead of being enumerated. Tests: tests/unit/plan/test_arrange.py.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from heapq import heappop, heappush
from typing import Final, Generic, TypeVar

from msgspec.structs import replace

from omnigraph.language.query.ast import AggregateFunction, Operator
from omnigraph.limits import SUBPATTERN_MAX_DEPTH
from omnigraph.plan.cost import Sizes
from omnigraph.plan.ir import (
    Aggregated,
    EdgePattern,
    EntityId,
    Expr,
    Filter,
    Negation,
    Pattern,
    Prop,
    ReadPlan,
    variables_of,
)
from omnigraph.plan.steps import (
    Arrangement,
    Check,
    Connected,
    Count,
    Follow,
    Has,
    Hop,
    Join,
    Lacks,
    Scan,
    Step,
    Subpattern,
    Without,
)

_T = TypeVar("_T")

_MAX_ENTRY_SHARE: Final = 0.1
"""Start at a variable that leads to less than this share of its neighbour's nodes."""


def arrange(plan: ReadPlan, sizes: Sizes, check: Callable[[], None] = lambda: None) -> Arrangement:
    """Choose the steps that find all rows of a read, in time proportional to the pattern.

    `check` is called between decisions and may raise.
    """
    counted = not _ignores_repetition(plan)
    builder = _Builder(plan.pattern, sizes, check, wanted=_wanted(plan), outer={}, counted=counted)
    steps = builder.build()
    # A fused rank depends on all rows, also on those that a limit cuts off.
    needs_all = plan.order or plan.is_aggregate or plan.fused_ranks()
    enough = None if needs_all else plan.limit
    if enough is not None and len(steps) == 1 and isinstance(steps[0], Scan):
        estimate = min(steps[0].estimate, float(enough))
        steps = [replace(steps[0], enough=enough, estimate=estimate)]
    return Arrangement(tuple(steps), builder.kept, enough)


def _ignores_repetition(plan: ReadPlan) -> bool:
    """Whether the result does not depend on how often each row is found."""
    extremes = (AggregateFunction.MIN, AggregateFunction.MAX)
    aggregates = [c.expression for c in plan.columns if isinstance(c.expression, Aggregated)]
    return bool(aggregates) and all(a.function in extremes for a in aggregates)


def _wanted(plan: ReadPlan) -> frozenset[str]:
    """Variables that `return` and `order` read."""
    expressions: list[Expr] = [c.expression for c in plan.columns]
    wanted = frozenset[str]().union(*(_read_by(e) for e in expressions))
    if not plan.order:
        return wanted
    if plan.is_aggregate:
        return wanted.union(*(_read_by(key.expression) for key in plan.order))
    # Equal keys are ordered by the ids of all variables.
    keys = frozenset[str]().union(*(variables_of(key.expression) for key in plan.order))
    return wanted | keys | {name for name, _ in plan.variables}


def _read_by(expression: Expr) -> frozenset[str]:
    """The variables an expression reads; counting rows reads none."""
    if isinstance(expression, Aggregated):
        is_count = expression.function is AggregateFunction.COUNT
        if is_count and isinstance(expression.argument, EntityId):
            return frozenset()
    return variables_of(expression)


class _Waiting(Generic[_T]):
    """Items in order, each ready once all variables it mentions are bound."""

    def __init__(self, items: Iterable[tuple[_T, Iterable[str]]], bound: Container[str]) -> None:
        self._items: dict[int, _T] = {}
        self._missing: dict[int, int] = {}
        self._mentioning: dict[str, list[int]] = {}
        self._ready: list[int] = []
        for number, (item, variables) in enumerate(items):
            mentioned = set(variables)
            self._items[number] = item
            for variable in mentioned:
                self._mentioning.setdefault(variable, []).append(number)
            self._missing[number] = sum(variable not in bound for variable in mentioned)
            if not self._missing[number]:
                self._ready.append(number)

    def bind(self, variable: str) -> None:
        for number in self._mentioning.get(variable, ()):
            self._missing[number] -= 1
            if not self._missing[number]:
                self._ready.append(number)

    def take_ready(self) -> list[_T]:
        ready, self._ready = sorted(self._ready), []
        return [self._items.pop(number) for number in ready if number in self._items]

    def mentioning(self, variable: str) -> list[tuple[int, _T]]:
        """The items left that mention a variable, with their numbers."""
        numbers = self._mentioning.get(variable, ())
        return [(number, self._items[number]) for number in numbers if number in self._items]

    def get(self, number: int) -> _T | None:
        return self._items.get(number)

    def remove(self, number: int) -> None:
        del self._items[number]


class _Builder:
    """Arranges one pattern. `outer` has the types of variables that are already bound.

    `counted` says whether it matters how often a row is found.
    """

    def __init__(
        self,
        pattern: Pattern,
        sizes: Sizes,
        check: Callable[[], None],
        *,
        wanted: frozenset[str],
        outer: dict[str, str],
        counted: bool,
    ) -> None:
        self._pattern = pattern
        self._sizes = sizes
        self._check = check
        self._wanted = wanted
        self._outer = outer
        self._counted = counted
        self._types = {**outer, **pattern.types}
        self._steps: list[Step] = []
        self._bound: dict[str, None] = dict.fromkeys(outer)
        self._rows = 1.0
        self._shares: dict[str, float] = {}
        self._negated: dict[str, list[Subpattern]] = {}
        self._depths: dict[str, int] = {}
        """Nesting depth of the subpatterns at each variable."""
        negations = []
        for negation in pattern.negations:
            depth = _subpattern_depth(negation)
            if depth is None:
                negations.append((negation, negation.outer))
                continue
            (source,), inner = negation.outer, negation.inner
            types = {source: self._types[source], **inner.types}
            subpattern = _subpattern(inner.edges_of(source)[0], source, inner, types, {})
            self._negated.setdefault(source, []).append(subpattern)
            self._depths[source] = max(self._depths.get(source, 0), depth)
        filters = [(f, f.variables) for f in pattern.filters]
        self._checks = _Waiting(filters, self._bound)
        self._negations = _Waiting(negations, self._bound)
        needed = set(wanted) & self._types.keys()
        needed.update(*(mentioned for _, mentioned in filters))
        needed.update(*(mentioned for _, mentioned in negations))
        self._kept = self._core(needed)
        self._edge_numbers = {id(edge): number for number, edge in enumerate(pattern.edges)}
        self._open_edges: list[tuple[float, int, bool, EdgePattern, str]] = []
        self._joins: list[tuple[float, int]] = []
        for variable in outer:
            self._open(variable)

    @property
    def kept(self) -> tuple[str, ...]:
        return tuple(name for name in self._types if name in self._kept)

    def build(self) -> list[Step]:
        self._start_outer()
        starts = iter(sorted(self.kept, key=self._scan_estimate))
        start = next(starts, None)
        while True:
            self._check()
            edge = self._cheapest_edge()
            if edge is not None:
                self._follow(*edge)
                continue
            while start is not None and start in self._bound:
                start = next(starts, None)
            if start is None:
                return self._steps
            join = self._cheapest_join()
            if join is not None and join[0] <= self._scan_estimate(start):
                self._join(join[1])
            else:
                self._scan(start)

    # -- what is kept -----------------------------------------------------------------------

    def _core(self, needed: set[str]) -> set[str]:
        """RetainedVersions variables, those between them, and one per component that has none of them.

        Leaves are removed in the order of their names. A variable that loses an edge can become a
        leaf and waits again.
        """
        kept = set(self._types)
        edges = {
            variable: {id(edge): edge for edge in self._pattern.edges_of(variable)}
            for variable in kept
        }
        waiting = sorted(kept - needed - self._outer.keys())
        while waiting:
            self._check()
            leaf = heappop(waiting)
            if leaf not in kept or not self._is_leaf(leaf, edges, needed):
                continue
            kept.discard(leaf)
            [edge] = edges.pop(leaf).values()
            other = edge.other(leaf)
            del edges[other][id(edge)]
            self._depths[other] = max(self._depths.get(other, 0), self._depths.get(leaf, 0) + 1)
            if other not in needed and other not in self._outer:
                heappush(waiting, other)
        return kept

    def _is_leaf(
        self, variable: str, edges: dict[str, dict[int, EdgePattern]], needed: set[str]
    ) -> bool:
        if len(edges[variable]) != 1 or self._depths.get(variable, 0) >= SUBPATTERN_MAX_DEPTH:
            return False
        [edge] = edges[variable].values()
        if edge.left == edge.right:
            return False
        other = edge.other(variable)
        if self._is_entry(edge, variable, other):
            return False
        # The last two of a component: keep the one with more edges, it has the degrees.
        if len(edges[other]) > 1 or other in needed or other in self._outer:
            return True
        return self._weight_of(other) >= self._weight_of(variable)

    def _is_entry(self, edge: EdgePattern, variable: str, other: str) -> bool:
        """Whether starting at a variable leads to far fewer nodes than its neighbour has.

        Such a variable is kept although nothing reads it.
        """
        reached = self._scan_estimate(variable) * self._sizes.fan_out(self._hop(edge, variable))
        return reached < _MAX_ENTRY_SHARE * self._scan_estimate(other)

    def _weight_of(self, variable: str) -> tuple[int, float, str]:
        """Which of two connected variables to keep when neither is read."""
        return len(self._pattern.edges_of(variable)), -self._scan_estimate(variable), variable

    # -- steps ------------------------------------------------------------------------------

    def _start_outer(self) -> None:
        """Check what the pattern says about outer variables alone."""
        for variable in self._outer:
            for condition in self._pattern.conditions_of(variable):
                self._rows *= self._sizes.selectivity(self._types[variable], [condition])
                self._steps.append(Check(condition, self._rows))
        for edge in self._pattern.edges:
            if edge.left in self._outer and edge.right in self._outer:
                self._connect(edge)
        for variable in self._outer:
            self._after_binding(variable)
        self._run_checks()

    def _scan(self, variable: str) -> None:
        self._rows *= self._scan_estimate(variable)
        conditions = self._pattern.conditions_of(variable)
        self._steps.append(Scan(variable, self._types[variable], conditions, self._rows))
        self._bind(variable)

    def _join(self, number: int) -> None:
        check = self._checks.get(number)
        assert check is not None
        bound, prop = self._sides(check)
        variable = prop.variable
        self._checks.remove(number)
        self._rows *= self._join_growth(check)
        only_whether = not self._counted and not self._is_read_later(variable)
        self._steps.append(
            Join(
                variable,
                self._types[variable],
                self._pattern.conditions_of(variable),
                bound,
                prop,
                only_whether,
                self._rows,
            )
        )
        if only_whether:
            self._mark_bound(variable)
        else:
            self._bind(variable)

    def _is_read_later(self, variable: str) -> bool:
        """Whether anything but the comparison that introduces a variable mentions it."""
        return bool(
            variable in self._wanted
            or self._pattern.edges_of(variable)
            or self._negated.get(variable)
            or self._checks.mentioning(variable)
            or self._negations.mentioning(variable)
        )

    def _follow(self, edge: EdgePattern, source: str) -> None:
        target = edge.other(source)
        hop = self._hop(edge, source)
        conditions = self._pattern.conditions_of(target)
        self._rows *= self._growth(edge, source)
        self._steps.append(Follow(source, target, hop, conditions, self._rows))
        self._bind(target, through=edge)

    def _mark_bound(self, variable: str) -> None:
        self._bound[variable] = None
        self._checks.bind(variable)
        self._negations.bind(variable)
        self._open(variable)

    def _open(self, variable: str) -> None:
        """Consider the edges and equalities that lead on from a newly bound variable."""
        for edge in self._pattern.edges_of(variable):
            target = edge.other(variable)
            if target in self._kept and target not in self._bound:
                number, is_right = self._edge_numbers[id(edge)], variable != edge.left
                entry = (self._growth(edge, variable), number, is_right, edge, variable)
                heappush(self._open_edges, entry)
        for number, check in self._checks.mentioning(variable):
            if self._can_join(check):
                heappush(self._joins, (self._join_growth(check), number))

    def _bind(self, variable: str, through: EdgePattern | None = None) -> None:
        self._mark_bound(variable)
        for edge in self._pattern.edges_of(variable):
            other = edge.other(variable)
            if edge is not through and other in self._bound:
                self._connect(edge)
        self._after_binding(variable)
        self._run_checks()

    def _connect(self, edge: EdgePattern) -> None:
        hop = self._hop(edge, edge.left)
        share = self._sizes.fan_out(hop) / self._sizes.nodes(hop.node_type)
        self._rows *= min(share, 1.0)
        self._steps.append(Connected(edge.left, edge.right, hop, self._rows))

    def _after_binding(self, variable: str) -> None:
        """Count the subpatterns of a variable, and drop rows that have a negated one."""
        for subpattern in self._negated.get(variable, ()):
            self._rows *= 0.5
            self._steps.append(Lacks(variable, subpattern, self._rows))
        for edge in self._pattern.edges_of(variable):
            other = edge.other(variable)
            if other not in self._kept and other not in self._bound:
                subpattern = _subpattern(edge, variable, self._pattern, self._types, self._negated)
                step = Count if self._counted else Has
                self._steps.append(step(variable, subpattern, self._rows))

    def _run_checks(self) -> None:
        """Run comparisons and negations as soon as all their variables are bound."""
        for check in self._checks.take_ready():
            self._rows *= 0.33
            self._steps.append(Check(check, self._rows))
        for negation in self._negations.take_ready():
            self._rows *= 0.5
            self._steps.append(self._without(negation))

    def _without(self, negation: Negation) -> Without:
        outer = {name: self._types[name] for name in negation.outer}
        inner = _Builder(
            negation.inner,
            self._sizes,
            self._check,
            wanted=frozenset(),
            outer=outer,
            counted=False,
        )
        return Without(negation.outer, tuple(inner.build()), self._rows)

    # -- costs ------------------------------------------------------------------------------

    def _share(self, variable: str) -> float:
        """The share of a type's nodes that meet the conditions on a variable."""
        found = self._shares.get(variable)
        if found is None:
            conditions = self._pattern.conditions_of(variable)
            found = self._sizes.selectivity(self._types[variable], conditions)
            self._shares[variable] = found
        return found

    def _scan_estimate(self, variable: str) -> float:
        return self._sizes.nodes(self._types[variable]) * self._share(variable)

    def _cheapest_edge(self) -> tuple[EdgePattern, str] | None:
        """The edge to a kept variable that multiplies the rows least."""
        while self._open_edges:
            *_, edge, source = heappop(self._open_edges)
            if edge.other(source) not in self._bound:
                return edge, source
        return None

    def _cheapest_join(self) -> tuple[float, int] | None:
        """The factor and number of the equality between a bound and an unbound variable that
        multiplies the rows least."""
        while self._joins:
            check = self._checks.get(self._joins[0][1])
            if check is not None and self._can_join(check):
                return self._joins[0]
            heappop(self._joins)
        return None

    def _can_join(self, check: Filter) -> bool:
        left, right = check.left, check.right
        if check.operator is not Operator.EQ:
            return False
        if not isinstance(left, Prop) or not isinstance(right, Prop):
            return False
        return (left.variable in self._bound) != (right.variable in self._bound)

    def _sides(self, check: Filter) -> tuple[Prop, Prop]:
        """The bound and the unbound property of an equality."""
        left, right = check.left, check.right
        assert isinstance(left, Prop)
        assert isinstance(right, Prop)
        return (left, right) if left.variable in self._bound else (right, left)

    def _join_growth(self, check: Filter) -> float:
        prop = self._sides(check)[1]
        share = self._sizes.equal(self._types[prop.variable], prop)
        return self._scan_estimate(prop.variable) * share

    def _growth(self, edge: EdgePattern, source: str) -> float:
        return self._sizes.fan_out(self._hop(edge, source)) * self._share(edge.other(source))

    def _hop(self, edge: EdgePattern, source: str) -> Hop:
        return _hop(edge, source, self._types)


def _hop(edge: EdgePattern, source: str, types: Mapping[str, str]) -> Hop:
    target = types[edge.other(source)]
    return Hop(edge.edge_type, edge.direction_from(source), edge.low, edge.high, target)


# -- subpatterns --------------------------------------------------------------------------------


def _subpattern(
    edge: EdgePattern,
    source: str,
    pattern: Pattern,
    types: Mapping[str, str],
    negated: Mapping[str, list[Subpattern]],
) -> Subpattern:
    """Everything beyond an edge of a tree. `negated` are subpatterns that variables must not have."""
    variable = edge.other(source)
    return Subpattern(
        _hop(edge, source, types),
        variable,
        pattern.conditions_of(variable),
        tuple(
            _subpattern(other, variable, pattern, types, negated)
            for other in pattern.edges_of(variable)
            if other is not edge
        ),
        tuple(negated.get(variable, ())),
    )


def _subpattern_depth(negation: Negation) -> int | None:
    """The depth of a negation that is one subpattern of an outer variable; None for any other, and for
    one that is too deep to be counted."""
    inner = negation.inner
    if len(negation.outer) != 1 or inner.filters or inner.negations:
        return None
    source = negation.outer[0]
    if inner.conditions_of(source) or len(inner.edges_of(source)) != 1:
        return None
    depth = _tree_depth(source, inner)
    return None if depth is None or depth > SUBPATTERN_MAX_DEPTH else depth


def _tree_depth(root: str, pattern: Pattern) -> int | None:
    """The depth of a pattern that is a tree with this root; None if it is not a tree."""
    depths, waiting = {root: 0}, [root]
    used: set[int] = set()
    while waiting:
        variable = waiting.pop()
        for edge in pattern.edges_of(variable):
            if id(edge) in used:
                continue
            used.add(id(edge))
            other = edge.other(variable)
            if other in depths:
                return None
            depths[other] = depths[variable] + 1
            waiting.append(other)
    is_all = len(used) == len(pattern.edges) and depths.keys() == {root, *pattern.types}
    return max(depths.values()) if is_all else None
