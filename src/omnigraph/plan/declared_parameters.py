"""The parameters that a query declares: their types and defaults."""

from __future__ import annotations

from collections.abc import Mapping

from omnigraph.language.query.ast import Query
from omnigraph.language.types import PropType
from omnigraph.limits import MAX_VECTOR_DIMENSION
from omnigraph.plan.constants import InferredParameters
from omnigraph.plan.ir import NOW_PARAMETER, ParameterSpec
from omnigraph.plan.type_errors import TypeErrors


def parameter_types(errors: TypeErrors, query: Query) -> dict[str, PropType]:
    """The declared parameters of a query, each with a type that can exist."""
    types = InferredParameters() if query.anonymous else dict[str, PropType]()
    for parameter in query.parameters:
        if parameter.name == NOW_PARAMETER:
            message = f"parameter `${parameter.name}` is reserved for runtime timestamp injection"
            errors.fail(parameter.variable.span, "T31", message)
        dimension = parameter.type.type.dimension
        if dimension is not None and not 1 <= dimension <= MAX_VECTOR_DIMENSION:
            written = errors.source.text[parameter.type.span.start : parameter.type.span.end]
            message = f"unknown parameter type `{written[:40]}` for `${parameter.name}`"
            errors.fail(parameter.type.span, "T32", message)
        types[parameter.name] = parameter.type.type
    return types


def parameter_specs(
    errors: TypeErrors, query: Query, types: Mapping[str, PropType]
) -> tuple[ParameterSpec, ...]:
    """The parameters with their defaults; those of an anonymous query as they were inferred."""
    from omnigraph.plan.check_rows import check_default

    if isinstance(types, InferredParameters):
        return tuple(ParameterSpec(name, kind, is_inferred=True) for name, kind in types.items())
    return tuple(
        ParameterSpec(p.name, p.type.type, None if p.default is None else check_default(errors, p))
        for p in query.parameters
    )
