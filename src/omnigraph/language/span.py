"""Sources and regions in them. Offsets count code points; positions are made only for errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from omnigraph.diagnostics import Diagnostic, Position


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
