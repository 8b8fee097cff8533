"""Parts of a pattern that hang on one variable: trees that are counted instead of enumerated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from omnigraph.limits import SUBPATTERN_MAX_DEPTH
from omnigraph.plan.ir import Block, EdgePattern, Pattern
from omnigraph.plan.steps import EdgeRow, Hop, Subpattern

Hanging = Mapping[str, Sequence[Subpattern]]
"""Subpatterns by the variable on which they hang."""


def hop_of(edge: EdgePattern, source: str, types: Mapping[str, str]) -> Hop:
    """An edge of the pattern, followed from one of its ends."""
    return Hop(
        edge.members_from(source),
        types[source],
        types[edge.other(source)],
        edge.low,
        edge.high,
        edge.variable is not None,
    )


def edge_row(edge: EdgePattern, pattern: Pattern, *, is_read: bool) -> EdgeRow | None:
    """What is to be known of each edge; None if only the nodes it joins count."""
    if edge.variable is None:
        return None
    variable = edge.variable if is_read else None
    return EdgeRow(variable, edge.edge_types, pattern.conditions_of(edge.variable))


def subpattern_beyond(
    edge: EdgePattern,
    source: str,
    pattern: Pattern,
    types: Mapping[str, str],
    required: Hanging,
    negated: Hanging,
) -> Subpattern:
    """Everything beyond an edge of a tree, with what its variables must have and must not have."""
    variable = edge.other(source)
    return Subpattern(
        hop_of(edge, source, types),
        variable,
        pattern.conditions_of(variable),
        tuple(
            subpattern_beyond(other, variable, pattern, types, required, negated)
            for other in pattern.edges_of(variable)
            if other is not edge
        ),
        tuple(negated.get(variable, ())),
        tuple(required.get(variable, ())),
        edge_row(edge, pattern, is_read=False),
    )


def subpattern_of_block(block: Block, types: Mapping[str, str]) -> Subpattern:
    """A block that `depth_of_block` has a depth for, as a subpattern of its outer variable."""
    (source,), inner = block.outer, block.inner
    edge = inner.edges_of(source)[0]
    return subpattern_beyond(edge, source, inner, {source: types[source], **inner.types}, {}, {})


def depth_of_block(block: Block) -> int | None:
    """The depth of a block that is one subpattern of an outer variable; None for any other, and for
    one that is too deep to be counted."""
    inner = block.inner
    if len(block.outer) != 1 or inner.filters or any(inner.blocks()):
        return None
    source = block.outer[0]
    if inner.conditions_of(source) or len(inner.edges_of(source)) != 1:
        return None
    if any(edge.shortest for edge in inner.edges):
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
