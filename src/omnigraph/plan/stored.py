"""Catalogue entries of stored queries: what a client must know to offer and call one."""

from __future__ import annotations

from typing import Any

from omnigraph.language.types import PropType, Scalar
from omnigraph.plan.compile import CompiledQuery
from omnigraph.plan.ir import ParameterSpec

_KINDS = {
    Scalar.STRING: "string",
    Scalar.BOOL: "bool",
    Scalar.I32: "int",
    Scalar.U32: "int",
    Scalar.I64: "bigint",
    Scalar.U64: "bigint",
    Scalar.F32: "float",
    Scalar.F64: "float",
    Scalar.DATE: "date",
    Scalar.DATETIME: "datetime",
    Scalar.BLOB: "blob",
    Scalar.VECTOR: "vector",
}


def catalogue_entry(query: CompiledQuery, tool_name: str | None = None) -> dict[str, Any]:
    """The entry of one exposed query; `tool_name` falls back to the query's name."""
    entry: dict[str, Any] = {"name": query.name, "tool_name": tool_name or query.name}
    if query.description is not None:
        entry["description"] = query.description
    if query.instruction is not None:
        entry["instruction"] = query.instruction
    entry["mutation"] = query.is_mutation
    entry["params"] = [_parameter(p) for p in query.plan.parameters]
    return entry


def exposure_warnings(query: CompiledQuery) -> list[str]:
    """Why tool clients may have trouble with a query that is exposed to them."""
    return [
        f"parameter '{p.name}' is a {p.type.display}, which tool clients can hardly fill in"
        for p in query.plan.parameters
        if p.type.is_vector
    ]


def _parameter(parameter: ParameterSpec) -> dict[str, Any]:
    return {"name": parameter.name, **_kind(parameter.type), "nullable": parameter.type.nullable}


def _kind(prop_type: PropType) -> dict[str, Any]:
    if prop_type.list:
        return {"kind": "list", "item_kind": _KINDS[prop_type.scalar]}
    if prop_type.is_vector:
        return {"kind": "vector", "vector_dim": prop_type.dimension}
    return {"kind": _KINDS[prop_type.scalar]}
