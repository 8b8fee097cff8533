"""Building blocks of both syntax trees.

Trees are compared by meaning: spans and spellings (how a string was escaped) do not take part in
equality, so a printed and re-read tree equals the original.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from omnigraph.language.span import Span
from omnigraph.language.types import PropType

NOWHERE: Final = Span(0, 0)
"""The span of a node that was not read from a text."""


_AS_WRITTEN: Final = ("span", "spelling", "enum_order")
"""How the names of attributes end that say where and how a node was written."""


class Syntax(Struct, frozen=True, eq=False):
    """A part of a tree, compared by meaning."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._meaning() == other._meaning()

    def __hash__(self) -> int:
        return hash(self._meaning())

    def __repr__(self) -> str:
        shown = (f"{name}={getattr(self, name)!r}" for name in self._meaningful())
        return f"{type(self).__name__}({', '.join(shown)})"

    def _meaning(self) -> tuple[object, ...]:
        return tuple(getattr(self, name) for name in self._meaningful())

    def _meaningful(self) -> list[str]:
        return [name for name in self.__struct_fields__ if not name.endswith(_AS_WRITTEN)]


class Name(Syntax, frozen=True):
    """An identifier with its place."""

    text: str
    span: Span = NOWHERE

    def __str__(self) -> str:
        return self.text


class TypeRef(Syntax, frozen=True):
    """A written type. `enum_order` keeps the order of the source, which has no meaning."""

    type: PropType
    enum_order: tuple[str, ...] | None = None
    span: Span = NOWHERE
