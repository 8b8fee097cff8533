"""Building blocks of both syntax trees.

Trees are compared by meaning: spans and spellings (how a string was escaped) do not take part in
equality, so a printed and re-read tree equals the original.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from omnigraph.language.span import Span
from omnigraph.language.types import PropType

NOWHERE: Final = Span(0, 0)
"""The span of a node that was not read from a text."""


@dataclass(frozen=True, slots=True)
class Name:
    """An identifier with its place."""

    text: str
    span: Span = field(default=NOWHERE, compare=False, repr=False)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class TypeRef:
    """A written type. `enum_order` keeps the order of the source, which has no meaning."""

    type: PropType
    enum_order: tuple[str, ...] | None = field(default=None, compare=False)
    span: Span = field(default=NOWHERE, compare=False, repr=False)
