"""The steps that find the rows of one pattern, in an order that multiplies them least.

Tests: tests/unit/plan/test_arrange.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from omnigraph.language.query.ast import AggregateFunction
from omnigraph.plan.cost import Sizes
from omnigraph.plan.ir import (
    Block,
    BlockValue,
    EntityId,
    Expr,
    Pattern,
    variables_of,
    walk,
)
from omnigraph.plan.optionals import stages
from omnigraph.plan.stage_steps import Kinds, StageBuilder, node_types
from omnigraph.plan.steps import (
    Apply,
    LeftCount,
    LeftJoin,
    Step,
    Subpattern,
    With,
    Without,
)
from omnigraph.plan.subpatterns import (
    depth_of_block,
    subpattern_of_block,
)

_EXTREMES: Final = (AggregateFunction.MIN, AggregateFunction.MAX)


class Arranger:
    """Arranges a pattern, its blocks and the blocks that are values.

    `check` is called between decisions and may raise.
    """

    def __init__(self, sizes: Sizes, check: Callable[[], None]) -> None:
        self._sizes = sizes
        self._check = check

    def steps(
        self,
        pattern: Pattern,
        *,
        wanted: frozenset[str],
        outer: Kinds,
        optional: frozenset[str] = frozenset(),
        counted: bool = True,
    ) -> tuple[list[Step], tuple[str, ...], float]:
        """The steps, the variables that their rows enumerate, and the number of rows expected.

        `outer` are variables that are bound already, `optional` those of them that may be unbound.
        """
        if not pattern.optionals:
            return self._stage(pattern, wanted, outer, optional, counted=counted)
        before, after = stages(pattern)
        read_after = after.outer_variables()
        read_after |= {name for block in pattern.optionals for name in block.outer}
        steps, kept, rows = self._stage(
            before, wanted | read_after, outer, optional, counted=counted
        )
        bound: Kinds = dict(outer.items())
        bound |= {name: kind for name, kind in before.introduced.items() if name in kept}
        for number, block in enumerate(pattern.optionals):
            later = {name for other in pattern.optionals[number + 1 :] for name in other.outer}
            read = wanted | after.outer_variables() | later
            step = self._optional(block, frozenset(read), bound, optional, rows, counted=counted)
            if step is None:
                continue
            steps.append(step)
            rows = step.estimate
            bound |= block.inner.introduced
            optional |= block.inner.introduced.keys()
        more, also, rows = self._stage(after, wanted, bound, optional, counted=counted, rows=rows)
        return [*steps, *more], tuple(dict.fromkeys((*kept, *also))), rows

    def _stage(
        self,
        pattern: Pattern,
        wanted: frozenset[str],
        outer: Kinds,
        optional: frozenset[str],
        *,
        counted: bool,
        rows: float = 1.0,
    ) -> tuple[list[Step], tuple[str, ...], float]:
        builder = StageBuilder(
            self,
            self._sizes,
            self._check,
            pattern,
            wanted,
            outer,
            optional,
            counted=counted,
            rows=rows,
        )
        return builder.build(), builder.kept, builder.rows

    # -- blocks -----------------------------------------------------------------------------

    def _optional(
        self,
        block: Block,
        read: frozenset[str],
        bound: Kinds,
        optional: frozenset[str],
        rows: float,
        *,
        counted: bool,
    ) -> LeftJoin | LeftCount | None:
        introduced = block.inner.introduced
        is_read = not read.isdisjoint(introduced)
        if not is_read and not counted:
            return None
        named = tuple(introduced.items())
        if not is_read and depth_of_block(block) is not None:
            (source,) = block.outer
            subpattern = subpattern_of_block(block, node_types(bound))
            return LeftCount(source, subpattern, named, rows)
        outer = {name: bound[name] for name in block.outer}
        wanted = read & introduced.keys()
        steps, _, found = self.steps(
            block.inner, wanted=wanted, outer=outer, optional=optional, counted=counted
        )
        return LeftJoin(block.outer, tuple(steps), named, rows * max(found, 1.0))

    def existence(
        self, block: Block, bound: Kinds, optional: frozenset[str], rows: float, *, negated: bool
    ) -> Step:
        """Keep rows that have, or do not have, a solution of a block."""
        outer = {name: bound[name] for name in block.outer}
        steps, _, _ = self.steps(
            block.inner, wanted=frozenset(), outer=outer, optional=optional, counted=False
        )
        step = Without if negated else With
        return step(block.outer, tuple(steps), rows)

    def value(
        self, found: BlockValue, bound: Kinds, optional: frozenset[str], rows: float
    ) -> Apply:
        """How to compute the value of a block."""
        block, function = found.block, found.function
        argument, distinct = found.argument, found.distinct
        plain = isinstance(argument, EntityId) and argument.variable in (
            *block.inner.types,
            *block.inner.edge_types,
        )
        if function is AggregateFunction.COUNT and plain and not distinct:
            argument = None
        inner: tuple[Step, ...] | Subpattern
        if argument is None and depth_of_block(block) is not None:
            inner = subpattern_of_block(block, node_types(bound))
        else:
            outer = {name: bound[name] for name in block.outer}
            read = frozenset() if argument is None else variables_of(argument)
            counted = function is not None and function not in _EXTREMES and not distinct
            steps, _, _ = self.steps(
                block.inner,
                wanted=read - outer.keys(),
                outer=outer,
                optional=optional,
                counted=counted,
            )
            kinds = {**outer, **block.inner.introduced}
            steps += self.values(
                [] if argument is None else [argument],
                kinds,
                optional | block.inner.optional_types.keys(),
                rows,
            )
            inner = tuple(steps)
        return Apply(found.name, block.outer, inner, function, argument, distinct, rows)

    def values(
        self, expressions: Iterable[Expr], bound: Kinds, optional: frozenset[str], rows: float
    ) -> list[Step]:
        """How to compute all values of blocks in some expressions."""
        found = (part for e in expressions for part in walk(e) if isinstance(part, BlockValue))
        return [self.value(part, bound, optional, rows) for part in dict.fromkeys(found)]
