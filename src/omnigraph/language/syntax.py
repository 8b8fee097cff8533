"""Sources, spans, and the base of both syntax trees.

Offsets count code points; line and column are computed only for errors. Trees are compared by
meaning: spans and spellings (how a string was escaped) do not take part in equality, so a printed
and parsed tree equals the original.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from msgspec import Struct

from omnigraph.diagnostics import Diagnostic, Position
from omnigraph.language.types import PropType


class Span(NamedTuple):
    """A half-open region of a source text, in code points."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Source:
    """A named text. Text given without a file is called `<schema>` or `<query>`."""

    name: str
    text: str

    def position(self, span: Span) -> Position:
        text = self.text
        start = min(span.start, len(text))
        end = max(span.end, start)
        if end == start:
            end = start + 1
        line_start = text.rfind("\n", 0, start) + 1
        end = min(end, max(len(text), start + 1))
        end_line_start = text.rfind("\n", 0, max(end - 1, start)) + 1
        first_byte = len(_encode(text[:start]))
        return Position(
            file=self.name,
            line=text.count("\n", 0, start) + 1,
            column=start - line_start + 1,
            end_line=text.count("\n", 0, max(end - 1, start)) + 1,
            end_column=end - end_line_start + 1,
            start=first_byte,
            end=first_byte + max(1, len(_encode(text[start:end]))),
        )

    def line_at(self, offset: int) -> str:
        """The whole line that holds `offset`, without its line break."""
        offset = min(offset, len(self.text))
        start = self.text.rfind("\n", 0, offset) + 1
        end = self.text.find("\n", offset)
        line = self.text[start : len(self.text) if end < 0 else end].rstrip("\r")
        return line.encode(errors="replace").decode()

    def diagnose(
        self, span: Span, category: str, code: str, message: str, hint: str | None = None
    ) -> Diagnostic:
        return Diagnostic(
            code=code,
            category=category,
            message=message,
            position=self.position(span),
            source_line=self.line_at(span.start),
            hint=hint,
        )


def _encode(text: str) -> bytes:
    """The bytes of a text, also of one with halves of characters that no file could hold."""
    return text.encode(errors="surrogatepass")


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
    """An identifier with its span."""

    text: str
    span: Span = NOWHERE

    def __str__(self) -> str:
        return self.text


class TypeRef(Syntax, frozen=True):
    """A written type. `enum_order` keeps the order of the source, which has no meaning."""

    type: PropType
    enum_order: tuple[str, ...] | None = None
    span: Span = NOWHERE
