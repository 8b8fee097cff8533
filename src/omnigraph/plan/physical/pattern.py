"""The pattern of a read: variables with their own conditions, links between them, and the rest.

The typed pipeline says one order in which the pattern can be found. The pattern forgets the order,
so that another one may be chosen. Nothing here depends on data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from omnigraph.language.query.ast import Operator
from omnigraph.plan.ir import (
    AntiJoin,
    Direction,
    EntityId,
    Expand,
    Filter,
    Match,
    NodeScan,
    Pipeline,
    Prop,
    variables_of,
)


@dataclass(frozen=True, slots=True)
class Link:
    """An edge of the pattern; `direction` is how it is followed from `left` to `right`."""

    left: str
    right: str
    edge: str
    direction: Direction
    low: int
    high: int

    def other(self, variable: str) -> str:
        return self.right if variable == self.left else self.left

    def direction_from(self, variable: str) -> Direction:
        if variable == self.left:
            return self.direction
        return Direction.IN if self.direction is Direction.OUT else Direction.OUT

    def touches(self, variable: str) -> bool:
        return variable in (self.left, self.right)


@dataclass(frozen=True, slots=True)
class Negation:
    """A pattern of which an outer row must have no solution. `outer` are variables it shares."""

    outer: tuple[str, ...]
    inner: Pattern


@dataclass(frozen=True, slots=True)
class Pattern:
    """What a pipeline looks for.

    `types` has every variable the pattern introduces, in order; `conditions` those on one variable
    alone, of enclosing patterns too; `filters` are about several variables, or about none.
    """

    types: dict[str, str] = field(default_factory=dict)
    conditions: dict[str, tuple[Filter, ...]] = field(default_factory=dict)
    links: tuple[Link, ...] = ()
    filters: tuple[Filter, ...] = ()
    negations: tuple[Negation, ...] = ()
    _touching: dict[str, list[Link]] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        touching: dict[str, list[Link]] = {}
        for link in self.links:
            for variable in {link.left, link.right}:
                touching.setdefault(variable, []).append(link)
        object.__setattr__(self, "_touching", touching)

    def links_of(self, variable: str) -> Sequence[Link]:
        """The links that touch a variable, in text order."""
        return self._touching.get(variable, ())


def pattern_of(pipeline: Pipeline) -> Pattern:
    """The pattern a pipeline finds."""
    types: dict[str, str] = {}
    conditions: dict[str, list[Filter]] = {}
    links: list[Link] = []
    filters: list[Filter] = []
    negations: list[Negation] = []
    same = _temporaries(pipeline)
    for op in pipeline:
        match op:
            case NodeScan():
                types[op.variable] = op.node_type
                conditions.setdefault(op.variable, []).extend(_as_filters(op.variable, op.matches))
            case Expand():
                target = same.get(op.target, op.target)
                if target == op.target:
                    types[target] = op.target_type
                    matches = _as_filters(target, op.target_matches)
                    conditions.setdefault(target, []).extend(matches)
                links.append(Link(op.source, target, op.edge, op.direction, op.low, op.high))
            case Filter():
                if _closed(op) is not None:
                    continue
                mentioned = variables_of(op.left) | variables_of(op.right)
                if len(mentioned) == 1:
                    conditions.setdefault(next(iter(mentioned)), []).append(op)
                else:
                    filters.append(op)
            case AntiJoin():
                negations.append(Negation(op.outer, pattern_of(op.inner)))
    return Pattern(
        types=types,
        conditions={variable: tuple(found) for variable, found in conditions.items() if found},
        links=tuple(links),
        filters=tuple(filters),
        negations=tuple(negations),
    )


def _as_filters(variable: str, matches: Iterable[Match]) -> Iterator[Filter]:
    for match in matches:
        operator = Operator.CONTAINS if match.membership else Operator.EQ
        yield Filter(Prop(variable, match.property, match.type), operator, match.value)


def _temporaries(pipeline: Pipeline) -> dict[str, str]:
    """Temporary variables to the variable each one is compared with: an edge between both."""
    return dict(found for op in pipeline if isinstance(op, Filter) and (found := _closed(op)))


def _closed(op: Filter) -> tuple[str, str] | None:
    """The temporary and the variable it stands for, if that is what the filter says."""
    left, right = op.left, op.right
    if not (isinstance(left, EntityId) and isinstance(right, EntityId)):
        return None
    if op.operator is Operator.EQ and left.variable.startswith("__temp_"):
        return left.variable, right.variable
    return None
