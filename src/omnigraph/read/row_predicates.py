"""Row conditions of a view: expressions of the language as predicates that every access path evaluates.

A part that the store can test is pushed down to it. The rest is computed on columns in memory, wherever
a predicate is evaluated: in scans, on decoded columns, in diffs. Tests: tests/behaviour/test_view_conditions.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from time import time_ns
from typing import Any

import pyarrow as pa
from msgspec import Struct

from omnigraph.catalog.arrow import arrow_type
from omnigraph.catalog.model import EntityType
from omnigraph.language.query import ast
from omnigraph.language.query.parse import parse_condition
from omnigraph.language.syntax import Source
from omnigraph.plan.check_mutation import check_condition
from omnigraph.plan.ir import NOW_PARAMETER, EntityId, Expr, Param, Prop, walk
from omnigraph.plan.params import bind_host_values
from omnigraph.read.row_values import RowCondition, RowValues
from omnigraph.storage.filters import And, Computed, Filter


class ExpressionTest(Struct, frozen=True):
    """Whether a Boolean expression is true of rows whose columns are called like their properties."""

    condition: Expr
    parameters: tuple[tuple[str, Any], ...]

    def evaluate(self, columns: Mapping[str, pa.Array], length: int) -> pa.BooleanArray:
        """One value per row; an integer that leaves 64 bits is null."""
        there = dict(columns)
        for leaf in walk(self.condition):
            if isinstance(leaf, Prop) and leaf.property not in there:
                there[leaf.property] = pa.nulls(length, arrow_type(leaf.type))
        values = RowValues(there, length, dict(self.parameters))
        return values.evaluate(self.condition, lenient=True)


@lru_cache(256)
def parse_row_condition(type_name: str, text: str) -> tuple[Source, ast.Expression]:
    """Read a condition on the rows of a type. Raises `ParseError`."""
    source = Source(f"<rows of {type_name}>", text)
    return source, parse_condition(source)


def row_predicate(
    declared: EntityType, text: str, params: Mapping[str, object]
) -> tuple[Filter, bool]:
    """A condition as a predicate, and whether that holds at other times as well.

    Raises `LanguageError` or `ParameterError`.
    """
    source, written = parse_row_condition(declared.name, text)
    condition, specs = check_condition(source, declared, written)
    given = {spec.name: params[spec.name] for spec in specs if spec.name in params}
    bound: dict[str, Any] = bind_host_values(specs, given)
    bound.setdefault(NOW_PARAMETER, time_ns() // 1_000_000)
    rows = RowCondition(declared, condition, bound)
    tests = tuple(_computed(part, bound) for part in rows.computed)
    parts = tests if rows.predicate is None else (rows.predicate, *tests)
    return parts[0] if len(parts) == 1 else And(parts), NOW_PARAMETER not in _parameters(condition)


def _parameters(condition: Expr) -> set[str]:
    return {leaf.name for leaf in walk(condition) if isinstance(leaf, Param)}


def _computed(condition: Expr, bound: Mapping[str, Any]) -> Computed:
    names = {leaf.property for leaf in walk(condition) if isinstance(leaf, Prop)}
    if any(isinstance(leaf, EntityId) for leaf in walk(condition)):
        names.add("id")
    used = tuple((name, bound[name]) for name in sorted(_parameters(condition)))
    return Computed(tuple((name, name) for name in sorted(names)), ExpressionTest(condition, used))
