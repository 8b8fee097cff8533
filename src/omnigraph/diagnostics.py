"""What is wrong with a piece of source text, and where.

A `Diagnostic` is plain data: it travels in exceptions, JSON documents and HTTP bodies, and knows
how to show itself to a person. It never reads files; the offending line travels with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from omnigraph.limits import MAX_SHOWN_CHARACTERS, SNIPPET_COLUMNS

_LONG_QUOTES: Final = tuple(
    # A quote behind a letter is an apostrophe, or ends something.
    re.compile(rf"(?<!\w)({quote})([^{quote}\n]{{{MAX_SHOWN_CHARACTERS + 1},}}){quote}")
    for quote in "'`\""
)
# Somewhat longer than what is cut, for addresses and for what was cut already.
_LONG_WORD: Final = re.compile(rf"\S{{{2 * MAX_SHOWN_CHARACTERS},}}")


@dataclass(frozen=True, slots=True)
class Position:
    """A region of a source: lines and columns from 1, columns in code points, the span in bytes."""

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
    """One finding about a source text. `category` is the prefix people see: parse, type, …"""

    code: str
    category: str
    message: str
    position: Position
    source_line: str
    hint: str | None = None
    severity: str = "error"

    @property
    def headline(self) -> str:
        """The message with its place: `queries.gq:12:8: type error: T6: …`."""
        where = self.position
        return f"{where.file}:{where.line}:{where.column}: {self.category} error: {self.message}"

    def render(self) -> str:
        """The headline, the source line with the region underlined, and the hint."""
        where = self.position
        before = self.source_line[: where.column - 1]
        last = where.end_column - 1 if where.end_line == where.line else len(self.source_line)
        width = max(1, last - where.column + 1)
        line, caret_at, width = _window(self.source_line, len(before), width)
        # A tab in the source must be a tab above the caret, or the two would not line up.
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
        """The wire form of one entry of `diagnostics`."""
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
    """Cut a very long line to the part around the caret, so a 1 MB line stays readable."""
    if len(line) <= SNIPPET_COLUMNS:
        return line, caret, width
    start = max(0, min(caret - SNIPPET_COLUMNS // 3, len(line) - SNIPPET_COLUMNS))
    end = min(len(line), start + SNIPPET_COLUMNS)
    left = "…" if start else ""
    right = "…" if end < len(line) else ""
    caret_at = caret - start + len(left)
    return left + line[start:end] + right, caret_at, min(width, end - caret)


def shortened(text: str, limit: int = MAX_SHOWN_CHARACTERS) -> str:
    """A value or name as a message shows it: long text is cut, with its length behind it."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}… ({len(text):,} characters)"


def cut_values(message: str) -> str:
    """A message in which everything quoted is cut, and every word that is longer than any name.

    Errors pass through here, so that none of them shows a long value as a whole.
    """
    if len(message) <= MAX_SHOWN_CHARACTERS:
        return message
    for pattern in _LONG_QUOTES:
        message = pattern.sub(lambda m: f"{m[1]}{shortened(m[2])}{m[1]}", message)
    return _LONG_WORD.sub(lambda m: shortened(m[0]), message)


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """A number of things: `1 row`, `2 rows`, `3 branches`."""
    return f"{count} {noun if count == 1 else plural or noun + 's'}"


def suggest(written: str, known: Iterable[str]) -> str | None:
    """The known name closest to what was written, when it is close enough to be a slip.

    Close means a Levenshtein distance of at most 2 and less than half the written length; the
    nearest wins, ties go to the alphabetically first.
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
    """The hint text for a misspelt name, or nothing when no known name is close."""
    name = suggest(written, known)
    return f"did you mean `{name}`?" if name else None


def with_hint(message: str, written: str, known: Iterable[str]) -> str:
    """A message about a name that nothing has, with the name that was probably meant."""
    hint = did_you_mean(written, known)
    return f"{message}; {hint}" if hint else message


def edit_distance(a: str, b: str, limit: int) -> int | None:
    """Levenshtein distance of two names, or None as soon as it must exceed `limit`."""
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
