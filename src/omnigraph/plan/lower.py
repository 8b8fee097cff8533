"""Checked read queries to pipelines: which variable is scanned, which edges reach the others.

Within a clause list, variables joined by traversals form components. A component starts from a
variable of an enclosing list if it has one, else from its first declared binding, else from the
left end of its first traversal. Everything else in it is reached by expanding; an edge between two
variables that are both there already expands to a temporary variable and compares ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from omnigraph.language.query.ast import Operator, Query
from omnigraph.plan.checked import (
    CheckedBinding,
    CheckedClause,
    CheckedNegation,
    CheckedRead,
    CheckedTraversal,
)
from omnigraph.plan.ir import (
    AntiJoin,
    Direction,
    EntityId,
    Expand,
    Filter,
    Match,
    NodeScan,
    Op,
    Pipeline,
    Prop,
    ReadPlan,
    variables_of,
)
from omnigraph.plan.scope import parameter_specs

_T = TypeVar("_T")


def lower_read(query: Query, checked: CheckedRead) -> ReadPlan:
    """The plan of a checked read query."""
    temporaries = _Temporaries(checked.clauses)
    pipeline = _ClauseLowering(checked.clauses, frozenset(), temporaries).lower()
    return ReadPlan(
        name=query.name.text,
        parameters=parameter_specs(query),
        pipeline=pipeline,
        columns=checked.columns,
        order=checked.order,
        limit=checked.limit,
        variables=checked.variables,
    )


class _Temporaries:
    """Names that no variable and no other temporary of the query has, at any level."""

    def __init__(self, clauses: Iterable[CheckedClause]) -> None:
        self._variables = set(_bound_variables(clauses))
        self._count = 0

    def take(self, variable: str) -> str:
        while True:
            self._count += 1
            name = f"__temp_{variable}_{self._count}"
            if name not in self._variables:
                return name


class _ClauseLowering:
    """Lowers one clause list on top of variables that are bound already."""

    def __init__(
        self,
        clauses: Sequence[CheckedClause],
        outer: frozenset[str],
        temporaries: _Temporaries,
    ) -> None:
        self._bindings = _of_type(clauses, CheckedBinding)
        self._traversals = _of_type(clauses, CheckedTraversal)
        self._filters = _of_type(clauses, Filter)
        self._negations = _of_type(clauses, CheckedNegation)
        self._outer = outer
        self._own: set[str] = set()
        self._ops: list[Op] = []
        self._matches = self._collect_matches()
        self._temporaries = temporaries

    def lower(self) -> Pipeline:
        self._scan_roots()
        self._expand_all()
        self._filter_outer_bindings()
        self._ops.extend(self._filters)
        bound = self._outer | self._own if self._negations else self._outer
        for negation in self._negations:
            inner = _ClauseLowering(negation.clauses, bound, self._temporaries).lower()
            outer = tuple(sorted(name for name in _variables(inner) if name in bound))
            self._ops.append(AntiJoin(outer, inner))
        return tuple(self._ops)

    def _is_bound(self, variable: str) -> bool:
        return variable in self._own or variable in self._outer

    def _collect_matches(self) -> dict[str, tuple[Match, ...]]:
        """All conditions of a variable, also when its binding is written more than once."""
        matches: dict[str, list[Match]] = {}
        for binding in self._bindings:
            matches.setdefault(binding.variable, []).extend(binding.matches)
        return {variable: tuple(found) for variable, found in matches.items()}

    def _scan_roots(self) -> None:
        component = _components(self._traversals)
        rooted = {root for name, root in component.items() if name in self._outer}
        for binding in self._bindings:
            root = component.get(binding.variable, binding.variable)
            if not binding.outer and root not in rooted:
                rooted.add(root)
                self._scan(binding.variable, binding.node_type)

    def _scan(self, variable: str, node_type: str) -> None:
        self._ops.append(NodeScan(variable, node_type, self._matches.get(variable, ())))
        self._own.add(variable)

    def _expand_all(self) -> None:
        """In rounds: what touches a variable that was bound before the round, in text order."""
        touching: dict[str, list[int]] = {}
        for number, t in enumerate(self._traversals):
            for variable in {t.left, t.right}:
                touching.setdefault(variable, []).append(number)
        waiting = dict.fromkeys(range(len(self._traversals)))
        fresh = [variable for variable in touching if self._is_bound(variable)]
        while waiting:
            if not fresh:
                first = self._traversals[next(iter(waiting))]
                self._scan(first.left, first.left_type)
                fresh = [first.left]
            reachable = {n for variable in fresh for n in touching[variable] if n in waiting}
            fresh = []
            for number in sorted(reachable):
                del waiting[number]
                t = self._traversals[number]
                fresh += [v for v in (t.left, t.right) if not self._is_bound(v)]
                self._expand(t)

    def _expand(self, t: CheckedTraversal) -> None:
        if not self._is_bound(t.left):
            flipped = Direction.IN if t.direction is Direction.OUT else Direction.OUT
            self._expand_to(t, t.right, t.left, t.left_type, flipped)
        elif not self._is_bound(t.right):
            self._expand_to(t, t.left, t.right, t.right_type, t.direction)
        else:
            temporary = self._temporaries.take(t.right)
            self._expand_to(t, t.left, temporary, t.right_type, t.direction)
            self._ops.append(Filter(EntityId(temporary), Operator.EQ, EntityId(t.right)))

    def _expand_to(
        self,
        traversal: CheckedTraversal,
        source: str,
        target: str,
        target_type: str,
        direction: Direction,
    ) -> None:
        self._ops.append(
            Expand(
                source=source,
                target=target,
                edge=traversal.edge,
                direction=direction,
                target_type=target_type,
                low=traversal.low,
                high=traversal.high,
                target_matches=self._matches.get(target, ()),
            )
        )
        self._own.add(target)

    def _filter_outer_bindings(self) -> None:
        """A binding that re-states an enclosing list's variable only adds conditions to it."""
        for binding in self._bindings:
            if binding.outer:
                for match in binding.matches:
                    operator = Operator.CONTAINS if match.membership else Operator.EQ
                    prop = Prop(binding.variable, match.property, match.type)
                    self._ops.append(Filter(prop, operator, match.value))


def _bound_variables(clauses: Iterable[CheckedClause]) -> Iterator[str]:
    """Every variable of a clause list and of the lists inside it."""
    for clause in clauses:
        match clause:
            case CheckedBinding():
                yield clause.variable
            case CheckedTraversal():
                yield clause.left
                yield clause.right
            case CheckedNegation():
                yield from _bound_variables(clause.clauses)
            case Filter():
                pass


def _components(traversals: Iterable[CheckedTraversal]) -> dict[str, str]:
    """Each variable's component, named after one of its members."""
    parent: dict[str, str] = {}

    def root(name: str) -> str:
        parent.setdefault(name, name)
        while parent[name] != name:
            parent[name] = name = parent[parent[name]]
        return name

    for traversal in traversals:
        parent[root(traversal.left)] = root(traversal.right)
    return {name: root(name) for name in parent}


def _variables(pipeline: Pipeline) -> set[str]:
    """Every variable a pipeline mentions."""
    found: set[str] = set()
    for op in pipeline:
        match op:
            case NodeScan():
                found.add(op.variable)
            case Expand():
                found |= {op.source, op.target}
            case Filter():
                found |= variables_of(op.left) | variables_of(op.right)
            case AntiJoin():
                found |= _variables(op.inner)
    return found


def _of_type(clauses: Iterable[CheckedClause], kind: type[_T]) -> list[_T]:
    return [clause for clause in clauses if isinstance(clause, kind)]
