"""Diagnostics of source text, and helpers that word messages.

A `Diagnostic` is plain data: exceptions, JSON documents and HTTP bodies carry it. It contains the
source line, so rendering it never reads a file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from omnigraph.limits import MAX_SHOWN_CHARACTERS, SNIPPET_COLUMNS

_LONG_QUOTES: Final = tuple(
    # A quote after a letter is an apostrophe or a closing quote.
    re.compile(rf"(?<!\w)({quote})([^{quote}\n]{{{MAX_SHOWN_CHARACTERS + 1},}}){quote}")
    for quote in "'`\""
)
# Longer than the limit for quotes, so that URIs and text that is already cut stay as they are.
_LONG_WORD: Final = re.compile(rf"\S{{{2 * MAX_SHOWN_CHARACTERS},}}")


@dataclass(frozen=True, slots=True)
class Position:
    """A source range: lines and columns from 1, columns in code points, `start` and `end` in bytes."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    start: int
    end: int

    def to_json(self) -> dict[str, Any]:
        return {
            "file": self.file,
            "line": self.line,
            "column": self.column,
            "end_line": self.end_line,
            "end_column": self.end_column,
        }


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One problem in a source text. `category` is the prefix of its headline: parse, type, …"""

    code: str
    category: str
    message: str
    position: Position
    source_line: str
    hint: str | None = None
    severity: str = "error"

    @property
    def headline(self) -> str:
        """The message with its position: `queries.gq:12:8: type error: T6: …`."""
        where = self.position
        return f"{where.file}:{where.line}:{where.column}: {self.category} error: {self.message}"

    def render(self) -> str:
        """The headline, the source line with the range underlined, and the hint."""
        where = self.position
        before = self.source_line[: where.column - 1]
        last = where.end_column - 1 if where.end_line == where.line else len(self.source_line)
        width = max(1, last - where.column + 1)
        line, caret_at, width = _window(self.source_line, len(before), width)
        # Tabs are kept, so that the caret lines up with the source line above it.
        padding = "".join("\t" if c == "\t" else " " for c in line[:caret_at])
        gutter = f"{where.line:>5}"
        parts = [
            self.headline,
            f"{gutter} | {line}",
            f"{' ' * len(gutter)} | {padding}{'^' * width}",
        ]
        if self.hint:
            parts.append(f"   hint: {self.hint}")
        return "\n".join(parts)

    def to_json(self) -> dict[str, Any]:
        """One entry of `diagnostics` in a JSON document."""
        document: dict[str, Any] = {
            "severity": self.severity,
            "code": self.code,
            "message": self.message,
            **self.position.to_json(),
        }
        if self.hint:
            document["hint"] = self.hint
        return document


def _window(line: str, caret: int, width: int) -> tuple[str, int, int]:
    """Cut a long line to the part around the caret, so that a 1 MB line stays readable."""
    if len(line) <= SNIPPET_COLUMNS:
        return line, caret, width
    start = max(0, min(caret - SNIPPET_COLUMNS // 3, len(line) - SNIPPET_COLUMNS))
    end = min(len(line), start + SNIPPET_COLUMNS)
    left = "…" if start else ""
    right = "…" if end < len(line) else ""
    caret_at = caret - start + len(left)
    return left + line[start:end] + right, caret_at, min(width, end - caret)


def shortened(text: str, limit: int = MAX_SHOWN_CHARACTERS) -> str:
    """Cut a long value or name for a message, and append its length."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}… ({len(text):,} characters)"


def cut_values(message: str) -> str:
    """Cut long quoted values and very long words in a message.

    Every error message passes through here, so none of them shows a long value in full.
    """
    if len(message) <= MAX_SHOWN_CHARACTERS:
        return message
    for pattern in _LONG_QUOTES:
        message = pattern.sub(lambda m: f"{m[1]}{shortened(m[2])}{m[1]}", message)
    return _LONG_WORD.sub(lambda m: shortened(m[0]), message)


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """A count with its noun: `1 row`, `2 rows`, `3 branches`."""
    return f"{count} {noun if count == 1 else plural or noun + 's'}"


def suggest(written: str, known: Iterable[str]) -> str | None:
    """The known name most similar to a misspelt one, or None.

    Similar means a Levenshtein distance of at most 2 and less than half the written length; ties go
    to the alphabetically first.
    """
    best: tuple[int, str] | None = None
    for name in known:
        distance = edit_distance(written, name, limit=2)
        if distance is None or distance == 0 or distance * 2 >= len(written):
            continue
        if best is None or (distance, name) < best:
            best = (distance, name)
    return best[1] if best else None


def did_you_mean(written: str, known: Iterable[str]) -> str | None:
    """The hint for a misspelt name, or None if no known name is similar."""
    name = suggest(written, known)
    return f"did you mean `{name}`?" if name else None


def with_hint(message: str, written: str, known: Iterable[str]) -> str:
    """A message about an unknown name, with a suggestion if a known name is similar."""
    hint = did_you_mean(written, known)
    return f"{message}; {hint}" if hint else message


def edit_distance(a: str, b: str, limit: int) -> int | None:
    """Levenshtein distance of two names, or None if it exceeds `limit`."""
    if abs(len(a) - len(b)) > limit:
        return None
    previous = list(range(len(b) + 1))
    for i, left in enumerate(a, 1):
        current = [i]
        for j, right in enumerate(b, 1):
            substitution = previous[j - 1] + (left != right)
            current.append(min(previous[j] + 1, current[-1] + 1, substitution))
        if min(current) > limit:
            return None
        previous = current
    return previous[-1] if previous[-1] <= limit else None
