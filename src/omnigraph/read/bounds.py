"""Offsets and limits that are parameters, as numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from omnigraph.errors import ParameterOutOfRange
from omnigraph.plan.ir import Param, ReadPlan


def with_bounds(plan: ReadPlan, parameters: Mapping[str, Any]) -> ReadPlan:
    """The plan with the values of parameters as bounds. Raises `ParameterOutOfRange`."""
    if not any(isinstance(b, Param) for r in plan.all_results for b in (r.offset, r.limit)):
        return plan

    def number(bound: int | Param | None, word: str) -> int | None:
        if not isinstance(bound, Param):
            return bound
        value = parameters[bound.name]
        if value is None or value < 0:
            given = "null" if value is None else value
            problem = f"is used as {word} and must not be negative or null, got {given}"
            raise ParameterOutOfRange(bound.name, problem)
        return int(value)

    def bounded(result: ReadPlan) -> ReadPlan:
        offset, limit = number(result.offset, "offset"), number(result.limit, "limit")
        return replace(result, offset=offset, limit=limit)

    return replace(bounded(plan), results=tuple(map(bounded, plan.results)))
