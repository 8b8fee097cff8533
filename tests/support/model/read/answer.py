"""From solutions to the answer: projection, groups, order, limit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from omnigraph.language.types import PropType
from omnigraph.plan.ir import Expr, Param, ReadPlan, Rrf, has_aggregate, walk
from tests.support.model.image import Image
from tests.support.model.read.aggregates import Rounded
from tests.support.model.read.computing import Overflow
from tests.support.model.read.expressions import Assignment, Evaluator
from tests.support.model.read.match import Matcher
from tests.support.model.read.searching import Fused, Score
from tests.support.model.read.view import View, visible
from tests.support.model.values import Value
from tests.support.outcome import Refusal

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
    offset: int = 0

    @property
    def rows(self) -> tuple[ResultRow, ...]:
        """One right answer; the only one when `ordered`."""
        rest = self.every[self.offset :]
        return rest if self.limit is None else rest[: self.limit]

    def to_dicts(self) -> list[dict[str, Value]]:
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def difference(self, found: Sequence[ResultRow]) -> str:
        """Why rows of another evaluator are no right answer; empty when they are one."""
        if len(found) != len(self.rows):
            lines = [f"{len(found)} rows instead of {len(self.rows)}"]
            missing, unexpected = _unmatched(self.every, found)
            lines += [f"missing {row}" for row in missing if self.limit is None and not self.offset]
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
    """The first result of a read. `parameters` are bound values, the time of `now()` among them."""
    return answers(image, plan, parameters, view)[0]


def answers(
    image: Image,
    plan: ReadPlan,
    parameters: Mapping[str, object],
    view: View | None = None,
) -> list[Answer]:
    """All results of a read, which share the matched rows.

    Raises `Refusal` if a value leaves 64 bits.
    """
    try:
        return _answers(image, plan, parameters, view)
    except Overflow:
        raise Refusal("bad_request", "integer overflow") from None


def _answers(
    image: Image, plan: ReadPlan, parameters: Mapping[str, object], view: View | None
) -> list[Answer]:
    seen = image if view is None else visible(image, view)
    solutions = list(Matcher(seen, Evaluator(parameters, seen)).solutions(plan.pattern, {}))
    found = []
    for result in plan.all_results:
        evaluator = Evaluator(parameters, seen)
        Matcher(seen, evaluator)
        found.append(_answer(result, solutions, evaluator, parameters))
    return found


def _answer(
    plan: ReadPlan,
    solutions: list[Assignment],
    evaluator: Evaluator,
    parameters: Mapping[str, object],
) -> Answer:
    offset, limit = (_bound(bound, parameters) for bound in (plan.offset, plan.limit))
    stop = None if limit is None else limit + (offset or 0)
    for rank in _fused_ranks(plan):
        evaluator.fuse(rank, solutions, stop)
    names = [name for name, _ in plan.variables]
    solutions = sorted(solutions, key=lambda nodes: [_entity(nodes[name]) for name in names])
    if any(has_aggregate(expression) for expression in plan.expressions()):
        keyed = _grouped(plan, solutions, evaluator)
    else:
        keyed = _projected(plan, solutions, evaluator)
    if plan.distinct:
        first = {_identity(row): (keys, row) for keys, row in reversed(keyed)}
        keyed = sorted(first.values(), key=lambda found: sortable(found[1]))
    if plan.order and plan.order[0].is_rank:
        keyed = [row for row in keyed if row[0][0] is not None]
    for position, key in reversed(list(enumerate(plan.order))):
        keyed.sort(key=lambda row: _ranks(row[0][position]))
        keyed.sort(key=lambda row: sortable(row[0][position]), reverse=key.descending)
        last = key.is_rank if key.nulls_first is None else not key.nulls_first
        if last or key.nulls_first:
            keyed.sort(key=lambda row: (row[0][position] is None) == last)
    is_certain = all(_is_certain([keys[i] for keys, _ in keyed]) for i in range(len(plan.order)))
    return Answer(
        columns=tuple(column.name for column in plan.columns),
        types=tuple(column.expression.type for column in plan.columns),
        every=tuple(row for _, row in keyed),
        ordered=bool(plan.order) and is_certain,
        limit=limit,
        offset=offset or 0,
    )


def _bound(bound: int | Param | None, parameters: Mapping[str, object]) -> int | None:
    if not isinstance(bound, Param):
        return bound
    value = parameters[bound.name]
    if not isinstance(value, int) or value < 0:
        raise Refusal("bad_request", f"${bound.name} must not be negative or null")
    return value


def _identity(row: ResultRow) -> str:
    """What equal rows have in common; a float is not the integer or Boolean of its value."""
    return repr([value + 0.0 if isinstance(value, float) else value for value in row])


def _fused_ranks(plan: ReadPlan) -> set[Rrf]:
    return {part for e in plan.expressions() for part in walk(e) if isinstance(part, Rrf)}


def _ranks(value: Value) -> tuple[float, float]:
    return value.ranks if isinstance(value, Fused) else (0, 0)


def _is_certain(values: Sequence[Value]) -> bool:
    """Whether the order by a key is certain although the last digits of some values are not."""
    rounded = [value for value in values if isinstance(value, Rounded) and value.slack]
    if not all(isinstance(value, Score) for value in rounded):
        return False
    neighbours = pairwise(sorted(set(rounded)))
    return all(right - left > left.slack + right.slack for left, right in neighbours)


def _entity(row: Mapping[str, Value] | None) -> tuple[Value, ...]:
    """What breaks ties: unbound variables first, edges by type and id."""
    return (False,) if row is None else (True, row.get("@type", ""), row["id"])


_Keyed = tuple[ResultRow, ResultRow]
"""The values of the order keys, and the row."""


def _projected(plan: ReadPlan, solutions: list[Assignment], evaluator: Evaluator) -> list[_Keyed]:
    """One row per solution, in the order that breaks ties: by the id of every variable."""
    return [
        (
            tuple(evaluator.value(key.expression, nodes) for key in plan.order),
            tuple(_shown(column.expression, evaluator, nodes) for column in plan.columns),
        )
        for nodes in solutions
        if all(evaluator.value(condition, nodes) is True for condition in plan.having)
    ]


def _grouped(plan: ReadPlan, solutions: list[Assignment], evaluator: Evaluator) -> list[_Keyed]:
    """One row per group, in the order that breaks ties: by the group's own values."""
    keys = [c.expression for c in plan.columns if not has_aggregate(c.expression)]
    groups: dict[ResultRow, list[Assignment]] = {} if keys else {(): []}
    for nodes in solutions:
        shown = tuple(_shown(key, evaluator, nodes) for key in keys)
        groups.setdefault(shown, []).append(nodes)
    found = []
    for shown, members in sorted(groups.items(), key=lambda item: sortable(item[0])):
        # Values of a group are equal, but the same score may come of different ranks.
        known = dict(zip(keys, shown, strict=True))
        for key in keys:
            values = [_shown(key, evaluator, nodes) for nodes in members]
            if values:
                known[key] = min(values, key=_ranks)

        value = partial(evaluator.of_group, keys=known, members=members)
        if all(value(condition) is True for condition in plan.having):
            row = tuple(value(column.expression) for column in plan.columns)
            found.append((tuple(value(key.expression) for key in plan.order), row))
    return found


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
