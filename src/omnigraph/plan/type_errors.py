"""Type errors of a query or mutation."""

from __future__ import annotations

from typing import NoReturn

from omnigraph.catalog.model import NodeType, Property
from omnigraph.diagnostics import did_you_mean
from omnigraph.errors import TypeCheckError
from omnigraph.language.syntax import Name, Source, Span

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
