"""Lines of a file in standard layout, with the comments and blank lines of the original."""

from __future__ import annotations

import re
from collections import deque
from typing import Final

from omnigraph.language.syntax import Span
from omnigraph.language.tokens import Comment, Tokens

INDENT: Final = "    "
LINE_WIDTH: Final = 92
"""Widest one-line form of a block; longer ones are written one element per line."""

# What may stand between an element and a comment that belongs behind it.
_JOINT = re.compile(r"[ \t,{(]*\Z")


class Layout:
    """Collects the lines of one file."""

    def __init__(self, tokens: Tokens | None = None) -> None:
        self._text = tokens.source.text if tokens else None
        self._comments: deque[Comment] = deque(tokens.comments if tokens else ())
        self._lines: list[str] = []
        self._depth = 0
        self._at_block_start = True

    def element(
        self, text: str, span: Span, *, apart: bool = False, last: int | None = None
    ) -> None:
        """One element on its own line. `apart` asks for a blank line before it and its comments.

        Comments inside the element are moved before it. `last` is where its text ends in the
        source, when that is before the end of `span` (the head of a block).
        """
        end = span.end if last is None else last
        apart = self._leading(end, apart)
        self._write(text, self._blank_before(span.start, apart))
        self._trailing(end)

    def open(self, head: str, span: Span, last: int, *, apart: bool = False) -> None:
        """The first line of a block whose head ends at `last` in the source."""
        self.element(head, span, apart=apart, last=last)
        self._depth += 1
        self._at_block_start = True

    def close(self, text: str, end: int) -> None:
        """The last line of a block that ends at `end` in the source, closing brace included."""
        self._leading(end, apart=False)
        self._depth -= 1
        self._write(text, blank=False)
        self._trailing(end)

    def reopen(self, text: str, end: int) -> None:
        """A line that ends one block and begins the next, such as the brace under long headers."""
        self.close(text, end)
        self._depth += 1
        self._at_block_start = True

    def finish(self) -> str:
        """The whole text; comments behind the last element come last."""
        if self._text is not None:
            self._leading(len(self._text) + 1, apart=False)
        return "".join(f"{line}\n" for line in self._lines)

    def fits(self, text: str) -> bool:
        """Whether a one-line form is short enough at the present depth."""
        return len(INDENT) * self._depth + len(text) <= LINE_WIDTH and "\n" not in text

    def _leading(self, end: int, apart: bool) -> bool:
        while self._comments and self._comments[0].span.start < end:
            comment = self._comments.popleft()
            self._write(comment.text, self._blank_before(comment.span.start, apart))
            apart = False
        return apart

    def _trailing(self, end: int) -> None:
        if not self._comments or self._text is None:
            return
        comment = self._comments[0]
        if "\n" not in comment.text and _JOINT.match(self._text[end : comment.span.start]):
            self._comments.popleft()
            self._lines[-1] += f"  {comment.text}"

    def _blank_before(self, start: int, apart: bool) -> bool:
        if self._at_block_start or apart or self._text is None:
            return apart and bool(self._lines) and not self._at_block_start
        before = self._text[:start].rstrip(" \t\r\n")
        return self._text.count("\n", len(before), start) >= 2

    def _write(self, text: str, blank: bool) -> None:
        if blank:
            self._lines.append("")
        self._lines.append(INDENT * self._depth + text.rstrip())
        self._at_block_start = False
