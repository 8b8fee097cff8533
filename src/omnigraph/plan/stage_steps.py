"""The steps of one stage of a pattern, which has no optional blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from heapq import heappop, heappush
from typing import Protocol

from omnigraph.language.query.ast import Operator
from omnigraph.plan.cost import Sizes
from omnigraph.plan.ir import (
    Block,
    Comparison,
    EdgePattern,
    Expr,
    Filter,
    Pattern,
    Prop,
)
from omnigraph.plan.kept_variables import KeptVariables
from omnigraph.plan.pattern_costs import PatternCosts
from omnigraph.plan.steps import (
    Check,
    Connected,
    Count,
    EdgeRow,
    Follow,
    Has,
    Join,
    Lacks,
    Present,
    Route,
    Scan,
    ScanEdges,
    Step,
    Subpattern,
)
from omnigraph.plan.subpatterns import (
    depth_of_block,
    edge_row,
    subpattern_beyond,
    subpattern_of_block,
)
from omnigraph.plan.waiting import Waiting

Kinds = dict[str, str | tuple[str, ...]]
"""Bound variables with their node type or edge types; a path variable has no types."""


def node_types(kinds: Mapping[str, str | tuple[str, ...]]) -> dict[str, str]:
    """The node variables with their types."""
    return {name: kind for name, kind in kinds.items() if isinstance(kind, str)}


class BlockSteps(Protocol):
    """Arranges the blocks of a pattern, which are patterns themselves."""

    def existence(
        self, block: Block, bound: Kinds, optional: frozenset[str], rows: float, *, negated: bool
    ) -> Step:
        """Keep rows that have, or do not have, a solution of a block."""

    def values(
        self, expressions: Iterable[Expr], bound: Kinds, optional: frozenset[str], rows: float
    ) -> list[Step]:
        """How to compute all values of blocks in some expressions."""


_Existence = tuple[Block, bool]
"""A block, and whether it must have no solution."""


class StageBuilder:
    """Arranges one pattern without optional blocks.

    `counted` says whether it matters how often a row is found.
    """

    def __init__(
        self,
        blocks: BlockSteps,
        sizes: Sizes,
        check: Callable[[], None],
        pattern: Pattern,
        wanted: frozenset[str],
        outer: Kinds,
        optional: frozenset[str],
        *,
        counted: bool,
        rows: float,
    ) -> None:
        self._blocks = blocks
        self._pattern = pattern
        self._check = check
        self._wanted = wanted
        self._kinds: Kinds = {**outer, **pattern.introduced}
        self._outer = node_types(outer)
        self._outer_kinds = outer
        self._optional = optional
        self._counted = counted
        self._types = {**self._outer, **pattern.types}
        self._costs = PatternCosts(sizes, pattern, self._types)
        self._steps: list[Step] = []
        self._bound: dict[str, None] = dict.fromkeys(outer)
        self.rows = rows
        self._negated: dict[str, list[Subpattern]] = {}
        self._required: dict[str, list[Subpattern]] = {}
        self._depths: dict[str, int] = {}
        """Nesting depth of the subpatterns at each variable."""
        existences = list(self._existences())
        filters = [(f, f.variables) for f in pattern.filters]
        self._checks = Waiting(filters, self._bound)
        self._existence = Waiting(existences, self._bound)
        needed = set(wanted) & self._kinds.keys()
        needed.update(*(mentioned for _, mentioned in filters))
        needed.update(*(mentioned for _, mentioned in existences))
        for edge in pattern.edges:
            if edge.shortest or not needed.isdisjoint(edge.named):
                needed |= {edge.left, edge.right}
        self._needed = needed
        self._kept = KeptVariables(
            pattern, self._costs, self._types, needed, self._outer, self._depths, check
        ).find()
        self._edge_numbers = {id(edge): number for number, edge in enumerate(pattern.edges)}
        self._open_edges: list[tuple[float, int, bool, EdgePattern, str]] = []
        self._joins: list[tuple[float, int]] = []
        for variable in outer:
            self._open(variable)

    def _existences(self) -> Iterable[tuple[_Existence, tuple[str, ...]]]:
        """The blocks that are not one subpattern of a variable; the others are noted there."""
        pattern = self._pattern
        for blocks, hanging, negated in (
            (pattern.negations, self._negated, True),
            (pattern.requirements, self._required, False),
        ):
            for block in blocks:
                depth = depth_of_block(block)
                if depth is None:
                    yield (block, negated), block.outer
                    continue
                (source,) = block.outer
                subpattern = subpattern_of_block(block, self._types)
                hanging.setdefault(source, []).append(subpattern)
                self._depths[source] = max(self._depths.get(source, 0), depth)

    @property
    def kept(self) -> tuple[str, ...]:
        return tuple(name for name in self._kinds if name in self._kept or name in self._needed)

    def build(self) -> list[Step]:
        self._start_outer()
        starts = iter(
            sorted((n for n in self._types if n in self._kept), key=self._costs.nodes_found)
        )
        start = next(starts, None)
        while True:
            self._check()
            edge = self._cheapest_edge()
            if edge is not None:
                if self._should_scan_end(*edge):
                    self._scan(edge[0].other(edge[1]))
                else:
                    self._follow(*edge)
                continue
            while start is not None and start in self._bound:
                start = next(starts, None)
            if start is None:
                return self._steps
            join = self._cheapest_join()
            edges = self._edges_to_scan(start)
            if join is not None and join[0] <= self._costs.nodes_found(start):
                self._join(join[1])
            elif edges is not None:
                self._scan_edges(edges)
            else:
                self._scan(start)

    # -- steps ------------------------------------------------------------------------------

    def _start_outer(self) -> None:
        """Check what the pattern says about outer variables alone."""
        for variable in self._outer:
            if variable in self._optional and self._pattern.edges_of(variable):
                self._steps.append(Present(variable, self.rows))
        for variable in self._outer_kinds:
            for condition in self._pattern.conditions_of(variable):
                if variable in self._outer:
                    self.rows *= self._costs.condition_share(variable, condition)
                self._steps.append(Check(condition, self.rows))
        for edge in self._pattern.edges:
            if edge.left in self._outer and edge.right in self._outer:
                self._connect(edge)
        for variable in self._outer:
            self._after_binding(variable)
        self._run_checks()

    def _scan(self, variable: str) -> None:
        self.rows *= self._costs.nodes_found(variable)
        conditions = self._pattern.conditions_of(variable)
        self._steps.append(Scan(variable, self._types[variable], conditions, self.rows))
        self._bind(variable)

    def _edges_to_scan(self, start: str) -> EdgePattern | None:
        """An edge with a variable whose edges, as conditions leave them, are fewer than its nodes lead
        to."""
        for edge in self._pattern.edges_of(start):
            other = edge.other(start)
            if edge.variable is None or edge.left == edge.right or edge.shortest:
                continue
            if other not in self._kept or other in self._bound:
                continue
            found = self._costs.nodes_found(start) * self._costs.fan_out(edge, start)
            if self._costs.edges_found(edge) <= found:
                return edge
        return None

    def _scan_edges(self, edge: EdgePattern) -> None:
        hop, row = self._costs.hop(edge, edge.left), self._edge_row(edge)
        assert row is not None
        conditions = [self._pattern.conditions_of(name) for name in (edge.left, edge.right)]
        self.rows *= self._costs.edges_found(edge)
        self.rows *= self._costs.share(edge.left) * self._costs.share(edge.right)
        self._steps.append(
            ScanEdges(edge.left, edge.right, hop, row, conditions[0], conditions[1], self.rows)
        )
        self._bind(edge.left, edge.right, through=edge)

    def _join(self, number: int) -> None:
        check = self._checks.get(number)
        assert check is not None
        bound, prop = self._sides(check)
        variable = prop.variable
        self._checks.remove(number)
        self.rows *= self._join_growth(check)
        only_whether = not self._counted and not self._is_read_later(variable)
        self._steps.append(
            Join(
                variable,
                self._types[variable],
                self._pattern.conditions_of(variable),
                bound,
                prop,
                only_whether,
                self.rows,
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
            or self._required.get(variable)
            or self._checks.mentioning(variable)
            or self._existence.mentioning(variable)
        )

    def _should_scan_end(self, edge: EdgePattern, source: str) -> bool:
        """Whether a shortest path is better searched from both ends."""
        ends = self._costs.nodes_found(edge.other(source))
        return bool(edge.shortest) and ends < self._costs.fan_out(edge, source)

    def _follow(self, edge: EdgePattern, source: str) -> None:
        target = edge.other(source)
        hop = self._costs.hop(edge, source)
        conditions = self._pattern.conditions_of(target)
        self.rows *= self._costs.growth(edge, source)
        if edge.shortest:
            self._steps.append(self._route(edge, source, joined=False))
        else:
            row = self._edge_row(edge)
            self._steps.append(Follow(source, target, hop, conditions, self.rows, row))
        self._bind(target, through=edge)

    def _route(self, edge: EdgePattern, source: str, *, joined: bool) -> Route:
        assert edge.shortest is not None
        target, path = edge.other(source), edge.shortest.variable
        conditions = () if joined else self._pattern.conditions_of(target)
        return Route(
            source,
            target,
            self._costs.hop(edge, source),
            path if path in self._needed else None,
            edge.shortest.weight,
            conditions,
            joined,
            source != edge.left,
            self.rows,
        )

    def _mark_bound(self, variable: str) -> None:
        self._bound[variable] = None
        self._checks.bind(variable)
        self._existence.bind(variable)
        if variable in self._types:
            self._open(variable)

    def _open(self, variable: str) -> None:
        """Consider the edges and equalities that lead on from a newly bound variable."""
        for edge in self._pattern.edges_of(variable):
            target = edge.other(variable)
            if target in self._kept and target not in self._bound:
                number, is_right = self._edge_numbers[id(edge)], variable != edge.left
                entry = (self._costs.growth(edge, variable), number, is_right, edge, variable)
                heappush(self._open_edges, entry)
        for number, check in self._checks.mentioning(variable):
            if self._can_join(check):
                heappush(self._joins, (self._join_growth(check), number))

    def _bind(self, *variables: str, through: EdgePattern | None = None) -> None:
        """Go on from newly bound variables, and the edge that led to them."""
        for variable in variables:
            self._mark_bound(variable)
        self._bind_named(through)
        done = {id(through)}
        for variable in variables:
            for edge in self._pattern.edges_of(variable):
                other = edge.other(variable)
                if id(edge) not in done and other in self._bound:
                    done.add(id(edge))
                    self._connect(edge)
        for variable in variables:
            self._after_binding(variable)
        self._run_checks()

    def _bind_named(self, edge: EdgePattern | None) -> None:
        for name in () if edge is None else edge.named:
            if name in self._needed:
                self._mark_bound(name)

    def _connect(self, edge: EdgePattern) -> None:
        hop = self._costs.hop(edge, edge.left)
        self.rows *= self._costs.connected_share(edge)
        if edge.shortest:
            self._steps.append(self._route(edge, edge.left, joined=True))
        else:
            row = self._edge_row(edge)
            self._steps.append(Connected(edge.left, edge.right, hop, self.rows, row))
        self._bind_named(edge)

    def _after_binding(self, variable: str) -> None:
        """Count the subpatterns of a variable, and drop rows that have a negated one."""
        for subpattern in self._negated.get(variable, ()):
            self.rows *= 0.5
            self._steps.append(Lacks(variable, subpattern, self.rows))
        for subpattern in self._required.get(variable, ()):
            self.rows *= 0.5
            self._steps.append(Has(variable, subpattern, self.rows))
        for edge in self._pattern.edges_of(variable):
            other = edge.other(variable)
            if other not in self._kept and other not in self._bound:
                subpattern = subpattern_beyond(
                    edge, variable, self._pattern, self._types, self._required, self._negated
                )
                step = Count if self._counted else Has
                self._steps.append(step(variable, subpattern, self.rows))

    def _run_checks(self) -> None:
        """Run comparisons and blocks as soon as all their variables are bound."""
        for check in self._checks.take_ready():
            self._steps += self._blocks.values(
                [check.condition], self._kinds, self._optional, self.rows
            )
            self.rows *= 0.33
            self._steps.append(Check(check, self.rows))
        for block, negated in self._existence.take_ready():
            self.rows *= 0.5
            self._steps.append(
                self._blocks.existence(
                    block, self._kinds, self._optional, self.rows, negated=negated
                )
            )

    # -- costs ------------------------------------------------------------------------------

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
        match check.condition:
            case Comparison(Prop() as left, Operator.EQ, Prop() as right):
                names = left.variable, right.variable
                unbound = [name for name in names if name not in self._bound]
                return len(unbound) == 1 and unbound[0] in self._types
            case _:
                return False

    def _sides(self, check: Filter) -> tuple[Prop, Prop]:
        """The bound and the unbound property of an equality."""
        comparison = check.comparison
        assert comparison is not None
        left, right = comparison.left, comparison.right
        assert isinstance(left, Prop)
        assert isinstance(right, Prop)
        return (left, right) if left.variable in self._bound else (right, left)

    def _join_growth(self, check: Filter) -> float:
        prop = self._sides(check)[1]
        return self._costs.equal_nodes(prop)

    def _edge_row(self, edge: EdgePattern) -> EdgeRow | None:
        return edge_row(edge, self._pattern, is_read=edge.variable in self._needed)
