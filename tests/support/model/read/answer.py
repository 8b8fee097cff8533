"""From solutions to the answer: projection, groups, order, limit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from omnigraph.language.types import PropType
from omnigraph.plan.ir import Aggregated, Column, Expr, ReadPlan, Rrf, SortKey
from tests.support.model.image import Image
from tests.support.model.read.aggregates import Rounded, aggregate
from tests.support.model.read.expressions import Assignment, Evaluator
from tests.support.model.read.match import Matcher
from tests.support.model.read.searching import Fused, Score
from tests.support.model.read.view import View, visible
from tests.support.model.values import Value

ResultRow = tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a query may answer. `every` are the rows before the limit.

    When `ordered`, their order is the one that must be found; else any order will do, and with a
    limit any choice of rows.
    """

    columns: tuple[str, ...]
    types: tuple[PropType, ...]
    every: tuple[ResultRow, ...]
    ordered: bool
    limit: int | None

    @property
    def rows(self) -> tuple[ResultRow, ...]:
        """One right answer; the only one when `ordered`."""
        return self.every if self.limit is None else self.every[: self.limit]

    def to_dicts(self) -> list[dict[str, Value]]:
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def difference(self, found: Sequence[ResultRow]) -> str:
        """Why rows of another evaluator are no right answer; empty when they are one."""
        if len(found) != len(self.rows):
            lines = [f"{len(found)} rows instead of {len(self.rows)}"]
            missing, unexpected = _unmatched(self.every, found)
            lines += [f"missing {row}" for row in missing if self.limit is None]
            return "\n".join(lines + [f"unexpected {row}" for row in unexpected])
        if self.ordered:
            pairs = enumerate(zip(self.rows, found, strict=True))
            wrong = [
                f"row {i}: {found} is not {wanted}"
                for i, (wanted, found) in pairs
                if not _same_row(wanted, found)
            ]
            return "\n".join(wrong)
        missing, unexpected = _unmatched(self.every, found)
        if not unexpected:
            return ""
        return "\n".join(
            [f"unexpected {row}" for row in unexpected] + [f"not found {row}" for row in missing]
        )


def answer(
    image: Image,
    plan: ReadPlan,
    parameters: Mapping[str, object],
    view: View | None = None,
) -> Answer:
    """Answer a read. `parameters` are bound values, the time of `now()` among them."""
    seen = image if view is None else visible(image, view)
    evaluator = Evaluator(parameters, seen)
    solutions = list(Matcher(seen, evaluator).solutions(plan.pattern, {}))
    for rank in _fused_ranks(plan):
        evaluator.fuse(rank, solutions, plan.limit)
    if any(column.is_aggregate for column in plan.columns):
        keyed = _grouped(plan, solutions, evaluator)
    else:
        keyed = _projected(plan, solutions, evaluator)
    if plan.order and plan.order[0].is_rank:
        keyed = [row for row in keyed if row[0][0] is not None]
    for position, key in reversed(list(enumerate(plan.order))):
        keyed.sort(key=lambda row: _ranks(row[0][position]))
        keyed.sort(key=lambda row: sortable(row[0][position]), reverse=key.descending)
        if key.is_rank:
            keyed.sort(key=lambda row: row[0][position] is None)
    is_certain = all(_is_certain([keys[i] for keys, _ in keyed]) for i in range(len(plan.order)))
    return Answer(
        columns=tuple(column.name for column in plan.columns),
        types=tuple(column.expression.type for column in plan.columns),
        every=tuple(row for _, row in keyed),
        ordered=bool(plan.order) and is_certain,
        limit=plan.limit,
    )


def _fused_ranks(plan: ReadPlan) -> set[Rrf]:
    parts = [column.expression for column in plan.columns]
    parts += [key.expression for key in plan.order]
    parts += [part.argument for part in parts if isinstance(part, Aggregated)]
    return {part for part in parts if isinstance(part, Rrf)}


def _ranks(value: Value) -> tuple[float, float]:
    return value.ranks if isinstance(value, Fused) else (0, 0)


def _is_certain(values: Sequence[Value]) -> bool:
    """Whether the order by a key is certain although the last digits of some values are not."""
    rounded = [value for value in values if isinstance(value, Rounded) and value.slack]
    if not all(isinstance(value, Score) for value in rounded):
        return False
    neighbours = pairwise(sorted(set(rounded)))
    return all(right - left > left.slack + right.slack for left, right in neighbours)


_Keyed = tuple[ResultRow, ResultRow]
"""The values of the order keys, and the row."""


def _projected(plan: ReadPlan, solutions: list[Assignment], evaluator: Evaluator) -> list[_Keyed]:
    """One row per solution, in the order that breaks ties: by the id of every variable."""
    names = [name for name, _ in plan.variables]
    solutions = sorted(solutions, key=lambda nodes: [nodes[name]["id"] for name in names])
    return [
        (
            tuple(evaluator.value(key.expression, nodes) for key in plan.order),
            tuple(_shown(column.expression, evaluator, nodes) for column in plan.columns),
        )
        for nodes in solutions
    ]


def _grouped(plan: ReadPlan, solutions: list[Assignment], evaluator: Evaluator) -> list[_Keyed]:
    """One row per group, in the order that breaks ties: by the group's own values."""
    keys = [column.expression for column in plan.columns if not column.is_aggregate]
    groups: dict[ResultRow, list[tuple[ResultRow, Assignment]]] = {} if keys else {(): []}
    for nodes in solutions:
        shown = tuple(_shown(key, evaluator, nodes) for key in keys)
        groups.setdefault(shown, []).append((shown, nodes))
    found = []
    for _, members in sorted(groups.items(), key=lambda item: sortable(item[0])):
        # Values of a group are equal, but the same score may come of different ranks.
        columns = zip(*(shown for shown, _ in members), strict=True)
        first = [min(values, key=_ranks) for values in columns]
        row = _group_row(plan.columns, first, [nodes for _, nodes in members], evaluator)
        found.append((tuple(_projection(plan, key, row) for key in plan.order), row))
    return found


def _group_row(
    columns: Sequence[Column],
    group: Sequence[Value],
    members: list[Assignment],
    evaluator: Evaluator,
) -> ResultRow:
    rest = iter(group)
    row: list[Value] = []
    for column in columns:
        if isinstance(column.expression, Aggregated):
            argument = column.expression.argument
            values = [evaluator.value(argument, nodes) for nodes in members]
            row.append(aggregate(column.expression.function, values))
        else:
            row.append(next(rest))
    return tuple(row)


def _projection(plan: ReadPlan, key: SortKey, row: ResultRow) -> Value:
    """The value of an order key of a grouped query, which is one of its columns."""
    position = [column.expression for column in plan.columns].index(key.expression)
    return row[position]


def _shown(expression: Expr, evaluator: Evaluator, nodes: Assignment) -> Value:
    """A value as results show it: what a blob holds is never read."""
    return None if expression.type.is_blob else evaluator.value(expression, nodes)


def sortable(value: Value) -> tuple[object, ...]:
    """A sort key that puts null first; lists compare item by item."""
    if value is None:
        return (0,)
    return (1, tuple(map(sortable, value)) if isinstance(value, tuple) else value)


# -- comparing ----------------------------------------------------------------------------------


def _same_row(wanted: ResultRow, found: ResultRow) -> bool:
    return all(_same(a, b) for a, b in zip(wanted, found, strict=True))


def _same(wanted: Value, found: Value) -> bool:
    if isinstance(wanted, Rounded) and isinstance(found, float):
        return wanted == found or abs(wanted - found) <= wanted.slack
    return isinstance(wanted, bool) == isinstance(found, bool) and wanted == found


def _unmatched(
    wanted: Sequence[ResultRow], found: Sequence[ResultRow]
) -> tuple[list[ResultRow], list[ResultRow]]:
    """The rows of each side that have no partner on the other."""
    missing = list((Counter(wanted) - Counter(found)).elements())
    unexpected = []
    for row in (Counter(found) - Counter(wanted)).elements():
        partner = next((i for i, other in enumerate(missing) if _same_row(other, row)), None)
        if partner is None:
            unexpected.append(row)
        else:
            del missing[partner]
    return missing, unexpected
