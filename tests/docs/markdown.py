"""Just enough Markdown for the documentation tests: links, headings, code."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]

_FENCE = re.compile(r"^(```+|~~~+).*?^\1[ \t]*$", re.MULTILINE | re.DOTALL)
_CODE_SPAN = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Page:
    """One Markdown file of the repository."""

    path: Path

    @property
    def name(self) -> str:
        return str(self.path.relative_to(ROOT))

    @property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @property
    def prose(self) -> str:
        """The text without its code blocks."""
        return _FENCE.sub("", self.text)

    def links(self) -> Iterator[str]:
        yield from _LINK.findall(_CODE_SPAN.sub("", self.prose))

    def code(self) -> Iterator[str]:
        """Code blocks and inline code."""
        yield from (match[0] for match in _FENCE.finditer(self.text))
        yield from _CODE_SPAN.findall(self.prose)

    def blocks(self, language: str) -> list[str]:
        """The content of the code blocks marked with a language."""
        found = (match[0].splitlines() for match in _FENCE.finditer(self.text))
        return ["\n".join(lines[1:-1]) for lines in found if lines[0].strip("`~ ") == language]

    def anchors(self) -> frozenset[str]:
        """The fragment of each heading, the way GitHub forms it."""
        return frozenset(
            re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
            for heading in _HEADING.findall(self.prose)
        )

    def table(self, heading: str) -> list[list[str]]:
        """The cells of the rows in the table under a heading, without its head."""
        section = self.text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
        lines = [line for line in section.splitlines() if line.startswith("|")]
        return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def pages() -> list[Page]:
    """The Markdown of the repository: the front pages, docs/ and examples/."""
    found = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")]
    return [Page(path) for path in sorted(found)]
