"""Expressions about the rows of one table: conditions of changes and scans, and assigned values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from omnigraph.catalog.model import EntityType
from omnigraph.plan.ir import Comparison as Compared
from omnigraph.plan.ir import Constant, EntityId, Expr, Param, Prop, conjuncts, walk
from omnigraph.read.compute import Computation
from omnigraph.read.frame import Frame
from omnigraph.read.functions import is_true, repeated
from omnigraph.read.positions import Mask
from omnigraph.read.pushdown import stored_predicate
from omnigraph.read.stored_filters import id_filter
from omnigraph.storage.filters import And, Comparison, Filter, In


def value_of(parameters: Mapping[str, Any]) -> Callable[[Constant | Param], Any]:
    """The values of constants and bound parameters."""
    return lambda leaf: leaf.value if isinstance(leaf, Constant) else parameters[leaf.name]


class RowValues:
    """The values of expressions for rows whose columns are called like their properties."""

    def __init__(
        self, columns: Mapping[str, pa.Array], length: int, parameters: Mapping[str, Any]
    ) -> None:
        self._columns = columns
        self._length = length
        self.value = value_of(parameters)

    def evaluate(self, expression: Expr, *, lenient: bool = False) -> pa.Array:
        """One value per row. An integer that leaves 64 bits is an error, or `lenient`ly null."""
        return Computation(self, Frame(self._length)).result(expression, lenient=lenient)

    def values(self, expression: Expr, _frame: Frame) -> pa.Array:
        match expression:
            case Prop(_, name):
                return self._columns[name]
            case EntityId():
                return self._columns["id"]
            case Constant() | Param():
                return repeated(self.value(expression), expression.type, self._length)
            case _:
                raise AssertionError(f"{type(expression).__name__} has no value for a row")

    def presence(self, expression: Prop, _frame: Frame) -> pa.Array:
        return self._columns[expression.property]


@dataclass(frozen=True)
class RowCondition:
    """A condition on the rows of a type, split into what the store evaluates and the rest."""

    declared: EntityType
    condition: Expr
    parameters: Mapping[str, Any]

    @cached_property
    def _parts(self) -> list[tuple[Expr, Filter | None]]:
        values = value_of(self.parameters)
        return [(part, stored_predicate(part, values)) for part in conjuncts(self.condition)]

    @cached_property
    def predicate(self) -> Filter | None:
        """What the store, or `matches` in memory, can evaluate."""
        found = [predicate for _, predicate in self._parts if predicate is not None]
        found = [self._by_id(predicate) or predicate for predicate in found]
        return found[0] if len(found) == 1 else And(tuple(found)) if found else None

    def _by_id(self, predicate: Filter) -> Comparison | None:
        return id_filter(self.declared, predicate) if isinstance(predicate, Comparison) else None

    @cached_property
    def ids(self) -> tuple[str, ...] | None:
        """The only ids that rows can have which meet the condition; None if any may."""
        for _, predicate in self._parts:
            match predicate:
                case Comparison(column="id", operator="=", value=str() as id):
                    return (id,)
                case In(column="id", values=values):
                    return tuple(str(value) for value in values)
                case Comparison() if (by_id := self._by_id(predicate)) is not None:
                    return (str(by_id.value),)
        return None

    @cached_property
    def is_never_met(self) -> bool:
        """Whether no row can meet it: a part of it compares with null."""
        value = value_of(self.parameters)
        return any(
            isinstance(part, Compared)
            and any(
                isinstance(s, Constant | Param) and value(s) is None
                for s in (part.left, part.right)
            )
            for part in conjuncts(self.condition)
        )

    @cached_property
    def computed(self) -> list[Expr]:
        """The parts that the store cannot evaluate."""
        return [part for part, predicate in self._parts if predicate is None]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the part which is evaluated in memory reads."""
        found: dict[str, None] = {}
        for part in self.computed:
            for leaf in walk(part):
                if isinstance(leaf, Prop):
                    found[leaf.property] = None
                elif isinstance(leaf, EntityId):
                    found["id"] = None
        return tuple(found)

    def rest(self, columns: Mapping[str, pa.Array], length: int) -> Mask | None:
        """Which rows meet what the store could not evaluate; None if that is nothing."""
        mask: Mask | None = None
        rows = RowValues(columns, length, self.parameters)
        for part in self.computed:
            met = is_true(rows.evaluate(part, lenient=True))
            mask = met if mask is None else mask & met
        return mask

    def keep(self, rows: pa.Table) -> pa.Table:
        """The rows that meet what the store could not evaluate."""
        if not self.computed or not rows.num_rows:
            return rows
        columns = {name: rows.column(name).combine_chunks() for name in self.columns}
        return rows.filter(pa.array(self.rest(columns, rows.num_rows)))
