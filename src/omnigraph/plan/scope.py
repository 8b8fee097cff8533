"""Names that are visible at a point of a query, and errors about the others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from typing import NoReturn

from omnigraph.catalog.model import NodeType, Property
from omnigraph.diagnostics import did_you_mean
from omnigraph.errors import TypeCheckError
from omnigraph.language.query.ast import ANONYMOUS, Query
from omnigraph.language.syntax import Name, Source, Span
from omnigraph.language.types import PropType
from omnigraph.limits import MAX_VECTOR_DIMENSION
from omnigraph.plan.ir import NOW_PARAMETER, ParameterSpec

_PLAIN_CODES = frozenset({"T31", "T32", "T33", "T34", "T35", "T36", "T37"})
"""Codes that their messages do not begin with."""


class TypeErrors:
    """Raises the type errors of one source."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def fail(self, span: Span, code: str, message: str, hint: str | None = None) -> NoReturn:
        shown = message if code in _PLAIN_CODES else f"{code}: {message}"
        category = TypeCheckError.category
        raise TypeCheckError([self.source.diagnose(span, category, code, shown, hint)])


class BoundVariable:
    """A node variable: `name` in the plan, which differs from the text only to avoid a clash."""

    __slots__ = ("name", "node_type")

    def __init__(self, name: str, node_type: NodeType) -> None:
        self.name = name
        self.node_type = node_type


class Scope:
    """Variables bound so far in one clause list, on top of those of the enclosing lists."""

    def __init__(self, parameters: Mapping[str, PropType], *, parent: Scope | None = None) -> None:
        self.parameters = parameters
        self.parent = parent
        self._own: dict[str, BoundVariable] = {}
        self._introduced: frozenset[str] = frozenset()
        self._depth: int = parent._depth + 1 if parent else 0
        self._anonymous: Iterator[int] = parent._anonymous if parent else count(1)

    def find(self, name: str) -> BoundVariable | None:
        """The variable of this name, from here or from an enclosing list."""
        scope: Scope | None = self
        while scope is not None:
            found = scope._own.get(name)
            if found is not None:
                return found
            scope = scope.parent
        return None

    def introduces(self, names: Iterable[str]) -> None:
        """Say which variables the clause list binds, also further down in the text."""
        self._introduced = frozenset(names)

    def _is_taken_by_enclosing(self, name: str) -> bool:
        scope = self.parent
        while scope is not None and name not in scope._introduced:
            scope = scope.parent
        return scope is not None

    def introduce(self, name: str, node_type: NodeType) -> BoundVariable:
        """Bind a new variable. Every `$_` is a variable of its own that nothing can refer to.

        A variable of a `not` block that an enclosing list binds later in the text is another
        variable; the mark `#`, which no source can contain, keeps the two apart in the plan. One
        mark per level of nesting, because the enclosing list may have to mark its own as well.
        """
        if name == ANONYMOUS:
            return BoundVariable(f"_#{next(self._anonymous)}", node_type)
        unique = name + "#" * self._depth if self._is_taken_by_enclosing(name) else name
        variable = BoundVariable(unique, node_type)
        self._own[name] = variable
        return variable

    def names(self) -> list[str]:
        """All variable names in reach, for hints."""
        inherited = self.parent.names() if self.parent else []
        return [*inherited, *self._own]

    @property
    def own(self) -> Mapping[str, BoundVariable]:
        return self._own


def parameter_types(errors: TypeErrors, query: Query) -> dict[str, PropType]:
    """The declared parameters of a query, each with a type that can exist."""
    types: dict[str, PropType] = {}
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


def parameter_specs(query: Query) -> tuple[ParameterSpec, ...]:
    return tuple(ParameterSpec(p.name, p.type.type) for p in query.parameters)


def find_property(errors: TypeErrors, node_type: NodeType, name: Name, code: str) -> Property:
    """A property of a node type, or the error that names the type and the closest property."""
    prop = node_type.properties.get(name.text)
    if prop is None:
        hint = did_you_mean(name.text, node_type.properties)
        if name.text == "id":
            hint = "return the variable itself to get the id"
        message = f"type `{node_type.name}` has no property `{name}`"
        errors.fail(name.span, code, message, hint)
    return prop
