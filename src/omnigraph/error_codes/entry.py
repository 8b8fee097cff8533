"""One entry of the registry, and the shorthand the data modules write it with."""

from __future__ import annotations

import re
from dataclasses import dataclass
from inspect import cleandoc

_CODE = re.compile(r"[STLQ]\d+|OG-[A-Z]+-\d{3}")


@dataclass(frozen=True, slots=True)
class ErrorCode:
    """A code and what a person should know about it.

    `kind` is the family a caller branches on, the same word as on the exception class. `example`
    is the smallest source text that gets the code.
    """

    code: str
    kind: str
    title: str
    explanation: str
    example: str | None = None

    def __post_init__(self) -> None:
        if not _CODE.fullmatch(self.code):
            raise ValueError(f"'{self.code}' does not look like an error code")
        for text in (self.kind, self.title, self.explanation, self.example):
            if text is not None and (not text or text != text.strip()):
                raise ValueError(f"{self.code}: a text is empty or has blanks around it")

    @property
    def natural_key(self) -> tuple[tuple[str, int], ...]:
        """Sorts T2 before T10."""
        parts = re.findall(r"(\D+)(\d*)", self.code)
        return tuple((word, int(number or 0)) for word, number in parts)


def entry(
    kind: str, code: str, title: str, explanation: str, example: str | None = None
) -> ErrorCode:
    """An entry from indented text blocks."""
    shown = None if example is None else cleandoc(example)
    return ErrorCode(code, kind, title, cleandoc(explanation), shown)
