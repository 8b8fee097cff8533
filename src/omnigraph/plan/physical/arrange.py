"""Choosing the order of steps: start small, follow edges that multiply least, count what is not kept.

A pattern is a graph of variables. What nobody looks at again and hangs on the rest by one link is a
branch: it is counted with degrees and never spelled out. Tests: tests/unit/plan/test_arrange.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from omnigraph.language.query.ast import AggregateFunction, Operator
from omnigraph.plan.ir import Aggregated, EntityId, Expr, Filter, Prop, ReadPlan, variables_of
from omnigraph.plan.physical.estimate import Sizes
from omnigraph.plan.physical.pattern import Link, Negation, Pattern, pattern_of
from omnigraph.plan.physical.steps import (
    Arrangement,
    Branch,
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
    Without,
)

_WAY_IN: Final = 0.1
"""A variable that leads to less than this share of its neighbour's nodes is a good place to start."""


def arrange(plan: ReadPlan, sizes: Sizes) -> Arrangement:
    """The steps that find all rows of a read."""
    pattern = pattern_of(plan.pipeline)
    counted = not _ignores_repetition(plan)
    builder = _Builder(pattern, sizes, wanted=_wanted(plan), outer={}, counted=counted)
    steps = builder.build()
    # A fused rank depends on all rows, also on those that a limit cuts off.
    needs_all = plan.order or plan.is_aggregate or plan.fused_ranks()
    enough = None if needs_all else plan.limit
    if enough is not None and len(steps) == 1 and isinstance(steps[0], Scan):
        estimate = min(steps[0].estimate, float(enough))
        steps = [replace(steps[0], enough=enough, estimate=estimate)]
    return Arrangement(tuple(steps), builder.kept, enough)


def _ignores_repetition(plan: ReadPlan) -> bool:
    """Whether the result is the same however often each row is found."""
    extremes = (AggregateFunction.MIN, AggregateFunction.MAX)
    aggregates = [c.expression for c in plan.columns if isinstance(c.expression, Aggregated)]
    return bool(aggregates) and all(a.function in extremes for a in aggregates)


def _wanted(plan: ReadPlan) -> frozenset[str]:
    """Variables whose nodes the end of the query looks at."""
    expressions: list[Expr] = [c.expression for c in plan.columns]
    wanted = frozenset[str]().union(*(_looked_at(e) for e in expressions))
    if not plan.order:
        return wanted
    if plan.is_aggregate:
        return wanted.union(*(_looked_at(key.expression) for key in plan.order))
    # Equal keys are ordered by the ids of all variables.
    keys = frozenset[str]().union(*(variables_of(key.expression) for key in plan.order))
    return wanted | keys | {name for name, _ in plan.variables}


def _looked_at(expression: Expr) -> frozenset[str]:
    """The variables an expression reads; counting rows reads none of them."""
    if isinstance(expression, Aggregated):
        is_count = expression.function is AggregateFunction.COUNT
        if is_count and isinstance(expression.argument, EntityId):
            return frozenset()
    return variables_of(expression)


class _Builder:
    """Arranges one pattern on top of variables that are bound already (`outer`, with types).

    `counted` says whether it matters how often a row is found.
    """

    def __init__(
        self,
        pattern: Pattern,
        sizes: Sizes,
        *,
        wanted: frozenset[str],
        outer: dict[str, str],
        counted: bool,
    ) -> None:
        self._pattern = pattern
        self._sizes = sizes
        self._wanted = wanted
        self._outer = outer
        self._counted = counted
        self._types = {**outer, **pattern.types}
        self._steps: list[Step] = []
        self._bound: dict[str, None] = dict.fromkeys(outer)
        self._rows = 1.0
        self._checks = list(pattern.filters)
        self._negations = [n for n in pattern.negations if not self._hangs_on_one(n)]
        self._lacking: dict[str, list[Branch]] = {}
        for negation in pattern.negations:
            if self._hangs_on_one(negation):
                source, branch = self._negated_branch(negation)
                self._lacking.setdefault(source, []).append(branch)
        needed = set(wanted) & self._types.keys()
        for check in self._checks:
            needed |= variables_of(check.left) | variables_of(check.right)
        for negation in self._negations:
            needed |= set(negation.outer)
        self._kept = self._core(needed)

    @property
    def kept(self) -> tuple[str, ...]:
        return tuple(name for name in self._types if name in self._kept)

    def build(self) -> list[Step]:
        self._start_outer()
        while waiting := [v for v in self._types if v in self._kept and v not in self._bound]:
            link = self._cheapest_link()
            if link is not None:
                self._follow(*link)
                continue
            start = min(waiting, key=self._scan_estimate)
            join = self._cheapest_join()
            if join is not None and self._join_growth(join) <= self._scan_estimate(start):
                self._join(join)
            else:
                self._scan(start)
        return self._steps

    # -- what is kept -----------------------------------------------------------------------

    def _core(self, needed: set[str]) -> set[str]:
        """Needed variables, those between them, and one per component that has none of them."""
        kept = set(self._types)
        links = list(self._pattern.links)
        while True:
            leaf = next(
                (
                    variable
                    for variable in sorted(kept)
                    if variable not in needed
                    and variable not in self._outer
                    and self._is_leaf(variable, links, needed)
                ),
                None,
            )
            if leaf is None:
                return kept
            kept.discard(leaf)
            links = [link for link in links if not link.touches(leaf)]

    def _is_leaf(self, variable: str, links: list[Link], needed: set[str]) -> bool:
        mine = [link for link in links if link.touches(variable)]
        if len(mine) != 1 or mine[0].left == mine[0].right:
            return False
        other = mine[0].other(variable)
        if self._is_way_in(mine[0], variable, other):
            return False
        # The last two of a component: the one that hangs on more is kept, it has the degrees.
        others = [link for link in links if link.touches(other)]
        if len(others) > 1 or other in needed or other in self._outer:
            return True
        return self._weight_of(other) >= self._weight_of(variable)

    def _is_way_in(self, link: Link, variable: str, other: str) -> bool:
        """Whether starting at a variable leads to far fewer nodes than its neighbour has.

        Such a variable is worth spelling out although nobody looks at it.
        """
        reached = self._scan_estimate(variable) * self._sizes.fan_out(self._hop(link, variable))
        return reached < _WAY_IN * self._scan_estimate(other)

    def _weight_of(self, variable: str) -> tuple[int, float, str]:
        """Which of two joined variables to keep when neither is looked at."""
        hanging = len(self._pattern.links_of(variable))
        return hanging, -self._scan_estimate(variable), variable

    # -- steps ------------------------------------------------------------------------------

    def _start_outer(self) -> None:
        """Conditions of this pattern on variables that came with the rows."""
        for variable in self._outer:
            for condition in self._pattern.conditions.get(variable, ()):
                self._rows *= self._sizes.selectivity(self._types[variable], [condition])
                self._steps.append(Check(condition, self._rows))
        for link in self._pattern.links:
            if link.left in self._outer and link.right in self._outer:
                self._connect(link)
        for variable in self._outer:
            self._after_binding(variable)
        self._run_checks()

    def _scan(self, variable: str) -> None:
        estimate = self._scan_estimate(variable)
        self._rows *= estimate
        conditions = self._pattern.conditions.get(variable, ())
        self._steps.append(Scan(variable, self._types[variable], conditions, self._rows))
        self._bind(variable)

    def _join(self, check: Filter) -> None:
        bound, prop = self._sides(check)
        variable = prop.variable
        self._checks.remove(check)
        self._rows *= self._join_growth(check)
        only_whether = not self._counted and not self._is_looked_at(variable)
        self._steps.append(
            Join(
                variable,
                self._types[variable],
                self._pattern.conditions.get(variable, ()),
                bound,
                prop,
                only_whether,
                self._rows,
            )
        )
        if only_whether:
            self._bound[variable] = None
        else:
            self._bind(variable)

    def _is_looked_at(self, variable: str) -> bool:
        """Whether anything but the comparison that introduces a variable is about it."""
        return bool(
            variable in self._wanted
            or self._pattern.links_of(variable)
            or self._lacking.get(variable)
            or any(variable in variables_of(c.left) | variables_of(c.right) for c in self._checks)
            or any(variable in negation.outer for negation in self._negations)
        )

    def _follow(self, link: Link, source: str) -> None:
        target = link.other(source)
        hop = self._hop(link, source)
        conditions = self._pattern.conditions.get(target, ())
        self._rows *= self._sizes.fan_out(hop) * self._sizes.selectivity(hop.node_type, conditions)
        self._steps.append(Follow(source, target, hop, conditions, self._rows))
        self._bind(target, through=link)

    def _bind(self, variable: str, through: Link | None = None) -> None:
        self._bound[variable] = None
        for link in self._pattern.links_of(variable):
            other = link.other(variable)
            if link is not through and other in self._bound:
                self._connect(link)
        self._after_binding(variable)
        self._run_checks()

    def _connect(self, link: Link) -> None:
        hop = self._hop(link, link.left)
        share = self._sizes.fan_out(hop) / self._sizes.nodes(hop.node_type)
        self._rows *= min(share, 1.0)
        self._steps.append(Connected(link.left, link.right, hop, self._rows))

    def _after_binding(self, variable: str) -> None:
        """Branches that hang on a variable, and those it must not have."""
        for branch in self._lacking.get(variable, ()):
            self._rows *= 0.5
            self._steps.append(Lacks(variable, branch, self._rows))
        for link in self._pattern.links_of(variable):
            other = link.other(variable)
            if other not in self._kept and other not in self._bound:
                branch = self._branch(link, variable)
                step = Count if self._counted else Has
                self._steps.append(step(variable, branch, self._rows))

    def _run_checks(self) -> None:
        """Comparisons and negations as soon as all they mention is bound."""
        for check in list(self._checks):
            if variables_of(check.left) | variables_of(check.right) <= self._bound.keys():
                self._checks.remove(check)
                self._rows *= 0.33
                self._steps.append(Check(check, self._rows))
        for negation in list(self._negations):
            if set(negation.outer) <= self._bound.keys():
                self._negations.remove(negation)
                self._rows *= 0.5
                self._steps.append(self._without(negation))

    def _without(self, negation: Negation) -> Without:
        outer = {name: self._types[name] for name in negation.outer}
        nothing = frozenset[str]()
        inner = _Builder(negation.inner, self._sizes, wanted=nothing, outer=outer, counted=False)
        return Without(negation.outer, tuple(inner.build()), self._rows)

    # -- branches ---------------------------------------------------------------------------

    def _branch(self, link: Link, source: str) -> Branch:
        """Everything beyond a link, none of which is kept."""
        variable = link.other(source)
        further = tuple(
            self._branch(other, variable)
            for other in self._pattern.links_of(variable)
            if other is not link
        )
        return Branch(
            self._hop(link, source),
            variable,
            self._pattern.conditions.get(variable, ()),
            further,
            tuple(self._lacking.get(variable, ())),
        )

    def _hangs_on_one(self, negation: Negation) -> bool:
        """Whether a negation is a tree of links on one outer variable, with plain conditions."""
        inner = negation.inner
        if len(negation.outer) != 1 or inner.filters or inner.negations:
            return False
        source = negation.outer[0]
        if inner.conditions.get(source) or len(inner.links_of(source)) != 1:
            return False
        return _is_tree(source, inner)

    def _negated_branch(self, negation: Negation) -> tuple[str, Branch]:
        source = negation.outer[0]
        types = {source: self._types[source], **negation.inner.types}
        return source, _tree(negation.inner.links_of(source)[0], source, negation.inner, types)

    # -- costs ------------------------------------------------------------------------------

    def _scan_estimate(self, variable: str) -> float:
        node_type = self._types[variable]
        conditions = self._pattern.conditions.get(variable, ())
        return self._sizes.nodes(node_type) * self._sizes.selectivity(node_type, conditions)

    def _cheapest_link(self) -> tuple[Link, str] | None:
        """The link to a kept variable that multiplies the rows least."""
        found = list(self._open_links())
        if not found:
            return None
        return min(found, key=lambda pair: self._growth(*pair))

    def _cheapest_join(self) -> Filter | None:
        """The equality of a bound and an unbound variable that multiplies the rows least."""
        found = [check for check in self._checks if self._can_join(check)]
        return min(found, key=self._join_growth, default=None)

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

    def _open_links(self) -> Iterator[tuple[Link, str]]:
        for link in self._pattern.links:
            for source in (link.left, link.right):
                target = link.other(source)
                if source in self._bound and target in self._kept and target not in self._bound:
                    yield link, source

    def _growth(self, link: Link, source: str) -> float:
        hop = self._hop(link, source)
        conditions = self._pattern.conditions.get(link.other(source), ())
        return self._sizes.fan_out(hop) * self._sizes.selectivity(hop.node_type, conditions)

    def _hop(self, link: Link, source: str) -> Hop:
        return _hop(link, source, self._types)


def _hop(link: Link, source: str, types: dict[str, str]) -> Hop:
    target = types[link.other(source)]
    return Hop(link.edge, link.direction_from(source), link.low, link.high, target)


def _is_tree(source: str, pattern: Pattern) -> bool:
    """Whether all variables of a pattern hang on one, each by a single link."""
    seen, waiting = {source}, [source]
    used: set[int] = set()
    while waiting:
        variable = waiting.pop()
        for number, link in enumerate(pattern.links):
            if number in used or not link.touches(variable):
                continue
            used.add(number)
            other = link.other(variable)
            if other in seen:
                return False
            seen.add(other)
            waiting.append(other)
    return len(used) == len(pattern.links) and seen == {source, *pattern.types}


def _tree(link: Link, source: str, pattern: Pattern, types: dict[str, str]) -> Branch:
    variable = link.other(source)
    further: Iterable[Link] = (o for o in pattern.links_of(variable) if o is not link)
    return Branch(
        _hop(link, source, types),
        variable,
        pattern.conditions.get(variable, ()),
        tuple(_tree(other, variable, pattern, types) for other in further),
    )
