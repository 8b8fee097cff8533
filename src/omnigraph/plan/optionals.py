"""Patterns with optional blocks in stages: what is matched first, the blocks, and the rest.

Clauses that mention a variable of an optional block run after it. Inner joins commute with left joins of
other variables, so all of them may run after the last block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec.structs import replace

from omnigraph.plan.ir import Block, EdgePattern, Pattern


def stages(pattern: Pattern) -> tuple[Pattern, Pattern]:
    """The clauses before the optional blocks of a pattern, and those after them."""
    late = _late_variables(pattern)
    late_edges = [edge for edge in pattern.edges if not late.isdisjoint((edge.left, edge.right))]
    late |= {name for edge in late_edges for name in edge.named}
    return _part(pattern, late.isdisjoint), _part(pattern, lambda names: not late.isdisjoint(names))


def _part(pattern: Pattern, belongs: Callable[[Iterable[str]], bool]) -> Pattern:
    """The clauses whose variables belong to a stage. Filters without variables run first."""

    def ends(edge: EdgePattern) -> tuple[str, ...]:
        return edge.left, edge.right, *edge.named

    def blocks(found: tuple[Block, ...]) -> tuple[Block, ...]:
        return tuple(block for block in found if belongs(block.outer))

    return replace(
        pattern,
        types={name: kind for name, kind in pattern.types.items() if belongs((name,))},
        conditions={name: found for name, found in pattern.conditions.items() if belongs((name,))},
        edges=tuple(edge for edge in pattern.edges if belongs(ends(edge))),
        filters=tuple(condition for condition in pattern.filters if belongs(condition.variables)),
        negations=blocks(pattern.negations),
        requirements=blocks(pattern.requirements),
        optionals=(),
        edge_types={n: kind for n, kind in pattern.edge_types.items() if belongs((n,))},
    )


def _late_variables(pattern: Pattern) -> set[str]:
    """Optional variables, and those that only they lead to and that no optional block needs."""
    late = set(pattern.optional_types)
    group = {name: name for name in pattern.types}

    def root(name: str) -> str:
        while group[name] != name:
            name = group[name]
        return name

    links = [{edge.left, edge.right} for edge in pattern.edges]
    links += [set(condition.variables) for condition in pattern.filters]
    links += [set(block.outer) for block in (*pattern.negations, *pattern.requirements)]
    for names in links:
        if late.isdisjoint(names):
            own = [root(name) for name in names if name in group]
            for other in own[1:]:
                group[other] = own[0]
    led_to = {
        root(name)
        for edge in pattern.edges
        if not late.isdisjoint((edge.left, edge.right))
        for name in (edge.left, edge.right)
        if name in group
    }
    needed = {root(name) for block in pattern.optionals for name in block.outer if name in group}
    return late | {name for name in group if root(name) in led_to - needed}
